/* journal.h - the ordered list of accepted commands, kept on disk.
 *
 *    append, append, append ... commit        one batch = one disk write
 *              |
 *   +----------v-----------+----------------------+-------------+
 *   | segment 7 (sealed)   | segment 8 (open)     | spare       |
 *   +----------------------+----------------------+-------------+
 *     the older ones go once a snapshot stands for them
 *
 * The journal knows nothing of what its records mean. Whoever owns the state
 * describes it as a `struct journal_machine`: how to make an empty one, how to
 * apply a record, how to save and load it. Recovery is "newest snapshot, then
 * every later record in order"; a snapshot is made the same way in the
 * background from files that are sealed, so that neither a fork nor a pause of
 * the loop is needed.
 *
 * Threads: one thread calls everything here (the loop). A thread of the
 *          journal's own prepares segments and syncs; a snapshot is made by a
 *          task of the process's pool, with a machine of its own; without
 *          io_uring one more thread writes batches. No call waits for them, or
 *          for the disk, longer than `slow_ns`, except open, stop, close,
 *          flush and note.
 * Memory:  records are copied by append.
 * Faults:  a write that fails (error, short write, no space) makes the journal
 *          refuse every further append with HF_IO; journal_error() says why.
 *          What was acknowledged before stays.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "holdfast/status.h"

/* Longest record, and longest batch; both are checked by append. */
#define JOURNAL_RECORD_MAX (1u << 20)
#define JOURNAL_BATCH_MAX  (8u << 20)

/* Longest text that an error call writes, with its end mark. */
#define JOURNAL_ERROR_MAX 512

enum journal_sync {
    JOURNAL_ALWAYS,   /* a batch is on disk before commit reports HF_OK */
    JOURNAL_INTERVAL, /* handed to the system at commit, synced every second */
    JOURNAL_NONE,     /* handed to the system at commit, synced when it likes */
};

/* Takes `len` bytes of a snapshot; returns HF_OK or the error to stop with. */
typedef enum hf_status journal_sink(void *context, const void *data,
                                    size_t len);

/* The state whose commands are journaled. Every call may be made from a thread
 * of the process's pool, for a machine that it created. */
struct journal_machine {
    void *context;
    /* An empty machine, or NULL without memory. */
    void *(*create)(void *context);
    void (*destroy)(void *machine);
    /* Applies one record. HF_CORRUPT if it cannot be a record. */
    enum hf_status (*apply)(void *machine, struct hf_bytes record);
    /* Writes the whole state as a sequence of sink calls. */
    enum hf_status (*save)(void *machine, journal_sink *sink,
                           void *sink_context);
    /* Rebuilds the state from one call's worth of what save wrote: `data` is
     * the next piece (the same pieces, in the same order, as save's sink calls
     * delivered them). */
    enum hf_status (*load)(void *machine, struct hf_bytes data);
};

struct journal_io; /* how bytes reach the disk: disk.h */

struct journal_opts {
    const char *dir; /* created if absent; one process at a time */
    enum journal_sync sync;
    const struct journal_machine *machine;
    uint64_t segment_bytes;  /* 0: 64 MiB; a multiple of 4096 */
    uint64_t snapshot_bytes; /* 0: 256 MiB; sealed bytes that call for a new
                                snapshot (or the last one's size, if larger);
                                UINT64_MAX: never */
    uint64_t slow_ns;        /* 0: 2 ms; a write that takes longer goes on
                                without the caller: HF_PENDING */
    struct journal_io *io;   /* NULL: the real disk */
};

struct journal_stats {
    uint64_t batch_count;   /* batches made durable since open */
    uint64_t record_count;  /* records in them */
    uint64_t byte_count;    /* bytes written for them, with padding */
    uint64_t pending_count; /* commits that outlasted slow_ns */
    uint64_t sync_last_ns;  /* how long the last write took */
    uint64_t sync_max_ns;
    uint64_t snapshot_count;    /* snapshots made since open */
    uint64_t snapshot_bytes;    /* size of the newest */
    uint64_t snapshot_failures; /* background attempts that failed */
    uint64_t snapshot_starts;   /* attempts begun */
    uint64_t snapshot_last_ns;  /* how long the last one that ended took */
    uint64_t disk_bytes;        /* segments, spares and snapshots */
    uint64_t replayed_count;    /* records applied by open */
    uint64_t replayed_batches;  /* that they were in */
    uint64_t cut_bytes;         /* torn tail removed by open */
    uint64_t note;              /* what journal_note() kept before open */
    bool unclean; /* the end before open was no journal_stop(), or more is
                     gone since: something acknowledged may be lost */
};

struct journal;

/* Opens `opts->dir`, recovers into a machine made by `opts->machine` and hands
 * it over in `*machine` (the caller destroys it, after journal_close).
 * On failure `error` (JOURNAL_ERROR_MAX bytes) says what, in which file and at
 * which offset, and what to do. HF_CORRUPT: damage before the tail, refused;
 * HF_EXISTS: another process has the folder open; HF_IO; HF_NOMEM. */
enum hf_status journal_open(struct journal **out,
                            const struct journal_opts *opts, void **machine,
                            char *error);

/* A clean end: finishes the commit and the snapshot under way, makes everything
 * durable whatever the mode, and notes in the folder that this was all; blocks.
 * From then on any damage to any batch is proven damage. Only journal_close()
 * may follow. HF_INVALID: something was appended and not committed; HF_IO: the
 * journal has failed, or does so now. Then the end is not clean. */
enum hf_status journal_stop(struct journal *journal);

/* Waits for the batch on its way, writes nothing more, frees. What was
 * appended and not committed is dropped. Without journal_stop() before it this
 * is an end like a crash. */
void journal_close(struct journal *journal);

/* Adds one record to the next batch. HF_FULL: the batch must be committed
 * first; HF_INVALID: the record is empty or too long (also: longer than a
 * segment has room for); HF_IO: the journal has failed; HF_NOMEM. May be
 * called while a commit is on its way: the record goes into the batch after. */
enum hf_status journal_append(struct journal *journal, struct hf_bytes record);

/* The same in two steps, to encode a record in place: `*space` has room for
 * `len` bytes until the next call; finish makes the first `used` of them a
 * record. */
enum hf_status journal_prepare(struct journal *journal, size_t len,
                               char **space);
void journal_finish(struct journal *journal, size_t used);

/* Bytes of records in the batch being built; 0 if there is none. */
size_t journal_batch_bytes(const struct journal *journal);

/* Writes the batch being built. HF_OK: it is as durable as the mode says, or
 * there was nothing to write. HF_PENDING: the disk is slow; the batch is on
 * its way, journal_poll() will tell. No second commit may start before that.
 * HF_IO: it failed, see the head of this file. */
enum hf_status journal_commit(struct journal *journal);

/* After HF_PENDING: HF_PENDING while on its way, then once HF_OK or HF_IO.
 * HF_EMPTY: no commit is waiting for an answer. Call it whenever the wake fd
 * is readable: it makes it unreadable again. */
enum hf_status journal_poll(struct journal *journal);

/* The records of the batch that the last commit wrote (or is writing), in
 * order, until the next commit: call with `*at` = 0 first; HF_EMPTY at the
 * end. `record` stays valid until the next commit. There are none after a
 * commit that failed or had nothing to write. */
enum hf_status journal_committed(const struct journal *journal, size_t *at,
                                 struct hf_bytes *record);

/* A file descriptor that becomes readable when journal_poll() has news. */
int journal_wake_fd(const struct journal *journal);

/* Starts the once-a-second sync of the interval mode, starts a snapshot when
 * one is called for, tries again to prepare a segment when there was no room.
 * Cheap, does not wait; call about every 100 ms with a monotonic time. */
void journal_tend(struct journal *journal, uint64_t now_ns);

/* Seals the open segment and has a snapshot made of everything up to here;
 * journal_tend() and journal_commit() see it through. HF_OK: on its way, or
 * there is nothing that the newest one does not hold. HF_PENDING: one is being
 * made already. HF_IO: the journal has failed. */
enum hf_status journal_snapshot(struct journal *journal);
/* True from then on until it is made, or has failed. */
bool journal_snapshot_running(const struct journal *journal);

/* Why the last snapshot that failed did so; "" if none has. */
void journal_snapshot_error(const struct journal *journal,
                            char out[JOURNAL_ERROR_MAX]);

/* Makes everything committed so far durable whatever the mode; blocks. */
enum hf_status journal_flush(struct journal *journal);

/* Keeps a number of the owner's in the folder, apart from the batches and
 * snapshots, so that it outlasts any repair; later opens find it in
 * journal_stats. For what must not be forgotten with the state, such as the
 * highest number ever told. Durable when it returns; blocks. HF_IO. */
enum hf_status journal_note(struct journal *journal, uint64_t note);
/* The same, cheap and without waiting: durable before the next segment takes
 * its first batch. */
void journal_note_later(struct journal *journal, uint64_t note);

/* Why the journal refuses; "" while it does not. */
const char *journal_error(const struct journal *journal);
void journal_stats(const struct journal *journal, struct journal_stats *out);
/* How long the write of the last commit took; cheaper than all of them. */
uint64_t journal_sync_ns(const struct journal *journal);

/* Offline: reads `dir` without changing it and applies all of it to a new
 * machine, as open would; the caller destroys it. `error` tells damage as open
 * does. HF_EXISTS: somebody has it open; read a copy. */
enum hf_status journal_read(const char *dir,
                            const struct journal_machine *machine, void **out,
                            struct journal_stats *stats, char *error);

/* Offline: what a repair would drop from the first damaged batch on, as text
 * added to `text`; with `apply` it does so, keeping the dropped files under
 * dir/dropped. HF_OK also if there is nothing to repair; HF_NOTFOUND: no such
 * folder; HF_EXISTS, HF_IO, HF_NOMEM with `error` as open. */
enum hf_status journal_repair(const char *dir, bool apply, struct hf_buf *text,
                              char *error);

#endif
