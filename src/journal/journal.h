/* journal.h - the log on a local disk: accepted commands, in order.
 *
 *    prepare, finish, prepare, finish ... commit   one batch = one disk write
 *              |
 *   +----------v-----------+----------------------+-------------+
 *   | segment 7 (sealed)   | segment 8 (open)     | spare       |
 *   +----------------------+----------------------+-------------+
 *     the older ones go once a snapshot stands for them
 *
 * Its calls are those of log.h; here is how it is opened. One commit is on its
 * way at a time: two writes at once would not be quicker, and recovery would
 * have to judge holes.
 *
 * The journal knows nothing of what its records mean. Whoever owns the state
 * describes it as a `struct journal_machine`: how to make an empty one, how to
 * apply a record, how to save and load it. Recovery is "newest snapshot, then
 * every later record in order"; a snapshot is made the same way in the
 * background from files that are sealed, so that neither a fork nor a pause of
 * the loop is needed.
 *
 * Threads: one thread calls (the loop). A thread of the journal's own prepares
 *          segments and syncs; a snapshot is made by a task of the process's
 *          pool, with a machine of its own; without io_uring one more thread
 *          writes batches. No call waits for them, or for the disk, longer than
 *          `slow_ns`, except open, stop, close, flush and note.
 * Faults:  a write that fails (error, short write, no space) makes the journal
 *          refuse every further record with HF_IO; log_error() says why. What
 *          was acknowledged before stays.
 */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "journal/log.h"

/* Longest record, and longest batch; both are checked by prepare. */
#define JOURNAL_RECORD_MAX (1u << 20)
#define JOURNAL_BATCH_MAX  (8u << 20)

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
    /* Writes the whole state as a sequence of sink calls; not for reading. */
    enum hf_status (*save)(void *machine, journal_sink *sink,
                           void *sink_context);
    /* Rebuilds the state from one call's worth of what save wrote: `data` is
     * the next piece (the same pieces, in the same order, as save's sink calls
     * delivered them). */
    enum hf_status (*load)(void *machine, struct hf_bytes data);
    /* The journal's own: 1 there ends the making of a snapshot. */
    const struct hf_atomic_u32 *unwanted;
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
    const struct hf_clock *clock; /* NULL: the system's */
};

/* Opens `opts->dir`, recovers into a machine made by `opts->machine` and hands
 * it over in `*machine` (the caller destroys it, after log_close).
 * On failure `error` (JOURNAL_ERROR_MAX bytes) says what, in which file and at
 * which offset, and what to do. HF_CORRUPT: damage before the tail, refused;
 * HF_EXISTS: another process has the folder open; HF_IO; HF_NOMEM. */
enum hf_status journal_open(struct log **out, const struct journal_opts *opts,
                            void **machine, char *error);

/* Offline: reads `dir` without changing it and applies all of it to a new
 * machine, as open would; the caller destroys it. `error` tells damage as open
 * does. HF_EXISTS: somebody has it open; read a copy. */
enum hf_status journal_read(const char *dir,
                            const struct journal_machine *machine, void **out,
                            struct log_stats *stats, char *error);

/* Offline: what a repair would drop from the first damaged batch on, as text
 * added to `text`; with `apply` it does so, keeping the dropped files under
 * dir/dropped. HF_OK also if there is nothing to repair; HF_NOTFOUND: no such
 * folder, or no journal in it; HF_EXISTS, HF_IO, HF_NOMEM with `error` as open.
 */
enum hf_status journal_repair(const char *dir, bool apply, struct hf_buf *text,
                              char *error);

#endif
