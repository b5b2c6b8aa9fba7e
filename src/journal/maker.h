/* maker.h - makes a snapshot by replay, in the background.
 *
 * A task of the process's pool loads the newest snapshot into a machine of its
 * own, applies the sealed segments behind it, saves the result, and then
 * removes what the new snapshot stands for. The loop's machine is not touched,
 * so the loop does not wait.
 *
 * The same task, with a machine of somebody else's and nothing saved, is a
 * reading (maker_read). There is one of both at a time: a snapshot removes what
 * a reading reads.
 *
 * Threads: all calls from the loop.
 */
#ifndef JOURNAL_MAKER_H
#define JOURNAL_MAKER_H

#include "holdfast/future.h"
#include "journal/keeper.h"
#include "sync/mutex.h"

struct maker_state {
    bool running;    /* a snapshot is being made */
    bool reading;    /* or all is being read */
    uint64_t newest; /* last batch of the newest snapshot; 0: none */
    uint64_t bytes;  /* its size */
    uint64_t count;  /* made since open */
    uint64_t failures;
    uint64_t starts;  /* attempts; more than both: one is under way */
    uint64_t took_ns; /* by the last one that ended */
};

struct maker { /* (i) immutable  (m) under mutex  (l) the loop's own */
    struct folder *folder;           /* (i) */
    struct manifest *manifest;       /* (i) has its own mutex */
    struct keeper *keeper;           /* (i) */
    struct journal_machine machine;  /* (i) */
    const struct hf_clock *clock;    /* (i) */
    struct hf_future *task;          /* (l) the last one; NULL: none yet */
    uint64_t last;                   /* (i) while the task runs */
    const struct log_replay *reader; /* (i) while the task reads */
    struct hf_atomic_u32 unwanted;   /* 1: the task ends as soon as it can */
    struct hf_mutex mutex;
    struct maker_state state;      /* (m) */
    char error[JOURNAL_ERROR_MAX]; /* (m) of the last that failed */
};

void maker_init(struct maker *maker, struct manifest *manifest,
                struct keeper *keeper, const struct journal_opts *opts,
                uint64_t newest, uint64_t bytes);
/* Ends the task: nobody waits for a snapshot that a later run can make. */
void maker_destroy(struct maker *maker);

/* Starts one of all batches up to `last`, whose segments are sealed. Anything
 * but HF_OK: the pool has not taken it; counted as a failure. */
enum hf_status maker_start(struct maker *maker, uint64_t last);
/* Reads all batches up to `last`, which are on disk. HF_PENDING: something is
 * under way. HF_IO: the pool has not taken it. */
enum hf_status maker_read(struct maker *maker, uint64_t last,
                          const struct log_replay *replay);
/* What there is now. */
struct maker_state maker_look(struct maker *maker);

/* Removes snapshots below `last`, and the segments whose batches are all in
 * it. Used after a snapshot, and by open for what a crash left. */
void maker_clean(struct folder *folder, struct keeper *keeper,
                 const struct folder_list *list, uint64_t last);

#endif
