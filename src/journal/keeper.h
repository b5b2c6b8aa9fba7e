/* keeper.h - looks after segments in the background.
 *
 *   prepare   keeps one spare ready, so that a full segment costs no wait
 *   switch    turns a spare into the next segment, has the manifest name it
 *             and hands it over
 *   sync      fdatasync, in the modes where commit does not
 *
 * Each is a work of a pool of one thread, by its own priority: a switch goes
 * before a sync, a sync before a preparation. Works need no memory to be handed
 * over, so nothing here fails for want of it after keeper_run(). A preparation
 * that fails (no space) is tried again when told; it harms nobody until a
 * switch needs the spare.
 *
 * Threads: `open`, `close`, `switch`, `sync` from the loop; `recycle` from the
 *          snapshot's thread. No call of the loop waits for the disk, except
 *          those that say so.
 */
#ifndef JOURNAL_KEEPER_H
#define JOURNAL_KEEPER_H

#include "base/atomic.h"
#include "holdfast/event.h"
#include "holdfast/pool.h"
#include "journal/journal.h"
#include "journal/manifest.h"
#include "journal/segment.h"
#include "sync/mutex.h"

enum keeper_spare { SPARE_NONE, SPARE_BUSY, SPARE_READY };

struct keeper { /* (i) immutable  (a) atomic  (m) under mutex  (k) the works'
                   own */
    struct folder *folder;     /* (i) */
    struct manifest *manifest; /* (i) has its own mutex */
    bool always;               /* (i) commit syncs by itself */
    uint64_t segment_bytes;    /* (i) */
    char *fill;                /* (i) zeros */
    char *block;               /* (k) behind them: a header being written */
    struct hf_pool *pool;      /* (i) after run; NULL before */
    struct hf_pool_work switch_work;
    struct hf_pool_work sync_work;
    struct hf_pool_work prepare_work;
    struct hf_mutex mutex;
    struct hf_event done; /* for the loop: something is done */

    enum keeper_spare spares[FOLDER_SPARES_MAX]; /* (m) */
    bool spare_failed;          /* (m) making one failed; not before a retry */
    struct hf_atomic_u64 bytes; /* (a) all files of the journal */

    bool switch_wanted;            /* (m) */
    bool switch_done;              /* (m) */
    bool notify;                   /* (m) the loop has given up waiting */
    enum hf_status switch_end;     /* (m) */
    struct segment old;            /* (m) sealed by the switch; fd -1: none */
    struct segment next;           /* (m) what the switch made */
    uint64_t note;                 /* (m) for the manifest */
    char error[JOURNAL_ERROR_MAX]; /* (m) why it failed */

    int sync_fd;             /* (m) to be synced; -1: none */
    uint64_t sync_number;    /* (m) last batch written to it */
    uint64_t synced;         /* (m) last batch known durable */
    enum hf_status sync_end; /* (m) HF_IO once a sync has failed */
};

/* Takes over the spares in `list`, removing those of another size; starts no
 * thread yet. What the manifest calls synced is the last batch known to be
 * durable. */
enum hf_status keeper_open(struct keeper *keeper, struct manifest *manifest,
                           const struct folder_list *list, bool always,
                           uint64_t segment_bytes, char *error);
enum hf_status keeper_run(struct keeper *keeper, char *error);
/* Finishes the work under way, not more. */
void keeper_close(struct keeper *keeper);

/* Before keeper_run(): the segment that starts with `first`, behind the one
 * named `previous` (0: none); blocks. */
enum hf_status keeper_first(struct keeper *keeper, uint64_t first,
                            uint64_t previous, struct segment *out,
                            char *error);

/* Asks for the segment that starts with batch `first`; takes `old` over. */
void keeper_switch_start(struct keeper *keeper, const struct segment *old,
                         uint64_t first, uint64_t synced, uint64_t note);
/* HF_OK: `*out` is it. HF_PENDING: not within `timeout_ns`; the folder's
 * `wake_fd` becomes readable. HF_IO: `error` says why. */
enum hf_status keeper_switch_wait(struct keeper *keeper, uint64_t timeout_ns,
                                  struct segment *out, char *error);

/* Asks for a sync of `fd`, which holds batches up to `number`. */
void keeper_sync_start(struct keeper *keeper, int fd, uint64_t number);
/* HF_OK, or HF_IO with `error` once a sync has failed; `*synced` is the last
 * batch known to be durable. Does not wait. */
enum hf_status keeper_sync_state(struct keeper *keeper, uint64_t *synced,
                                 char *error);
/* Waits until that sync, or a later one, has ended. */
enum hf_status keeper_sync_wait(struct keeper *keeper, char *error);

/* Tries again to prepare a spare, if that has failed. */
void keeper_retry(struct keeper *keeper);

/* After keeper_run(), from any thread: the segment `first` is no longer
 * needed; it becomes a spare or goes. */
void keeper_recycle(struct keeper *keeper, uint64_t first);
/* From any thread: files grew, or shrank. */
void keeper_count(struct keeper *keeper, int64_t bytes);

#endif
