/* log.h - the seam between the server and whatever keeps its log.
 *
 *    prepare, finish, prepare, finish ... commit      one batch
 *                                           |
 *    +---------+---------+---------+        v
 *    | batch 5 | batch 6 | batch 7 |  <- batch 8 joins those on their way
 *    +---------+---------+---------+
 *      poll tells the end of the oldest; committed shows its records
 *
 * A log takes batches of records, makes them durable and tells their ends in
 * the order of the commits. The state is changed only by what has ended well.
 * The journal (journal.h) is the log on a local disk. A log that is kept by
 * several machines has the same calls; the server knows no others.
 *
 * A log may stop leading: another machine may have appended to it. Then
 * leads() is false, and nothing may be told from memory. That may pass, by a
 * commit that ends well. If it does not pass, what is on its way ends with
 * HF_IO, and so does everything later: what was committed is recovered by the
 * next open. A batch that ended with HF_IO may be in the log or not.
 *
 * Threads: one thread calls everything here (the loop). No call waits longer
 *          than a commit may, except flush, note, stop and close.
 * Memory:  records are copied. The log's own memory ends with close.
 */
#ifndef JOURNAL_LOG_H
#define JOURNAL_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "holdfast/status.h"

/* Longest text that an error call writes, with its end mark. */
#define JOURNAL_ERROR_MAX 512

#define JOURNAL_NOTE_UNKNOWN UINT64_MAX

struct log_stats {
    uint64_t batch_count;   /* batches made durable since open */
    uint64_t record_count;  /* records in them */
    uint64_t byte_count;    /* bytes written for them, with padding */
    uint64_t pending_count; /* commits that ended after their call */
    uint64_t sync_last_ns;  /* how long the last one took */
    uint64_t sync_max_ns;
    uint64_t snapshot_count;    /* snapshots made since open */
    uint64_t snapshot_bytes;    /* size of the newest */
    uint64_t snapshot_failures; /* background attempts that failed */
    uint64_t snapshot_starts;   /* attempts begun */
    uint64_t snapshot_last_ns;  /* how long the last one that ended took */
    uint64_t disk_bytes;        /* all files */
    uint64_t replayed_count;    /* records applied by open */
    uint64_t replayed_batches;  /* that they were in */
    uint64_t cut_bytes;         /* torn tail removed by open */
    uint64_t note;              /* what log_note() kept before open */
    bool unclean; /* the end before open was no log_stop(), or more is gone
                     since: something acknowledged may be lost */
};

struct log;
struct journal_machine;

/* A reading of all that a log keeps, in the background. */
struct log_replay {
    /* What it is applied to: a new one is created. `unwanted` is the log's. */
    const struct journal_machine *machine;
    /* It has ended, from another thread. `state` is the caller's from then on;
     * NULL: there was no memory for one. HF_CANCELLED: the log is being
     * closed. */
    void (*done)(void *context, void *state, enum hf_status status,
                 const char *error);
    void *context;
};

struct log_ops {
    enum hf_status (*prepare)(struct log *log, size_t len, char **space);
    void (*finish)(struct log *log, size_t used);
    size_t (*batch_bytes)(const struct log *log);
    enum hf_status (*commit)(struct log *log);
    enum hf_status (*poll)(struct log *log);
    enum hf_status (*committed)(const struct log *log, size_t *at,
                                struct hf_bytes *record);
    bool (*leads)(const struct log *log); /* NULL: always */
    int (*wake_fd)(const struct log *log);
    void (*tend)(struct log *log, uint64_t now_ns);
    enum hf_status (*flush)(struct log *log);
    enum hf_status (*note)(struct log *log, uint64_t note);
    void (*note_later)(struct log *log, uint64_t note);
    enum hf_status (*snapshot)(struct log *log);
    bool (*snapshot_running)(const struct log *log);
    void (*snapshot_error)(const struct log *log, char out[JOURNAL_ERROR_MAX]);
    enum hf_status (*replay)(struct log *log,
                             const struct log_replay *replay); /* NULL: no */
    const char *(*error)(const struct log *log);
    void (*stats)(const struct log *log, struct log_stats *out);
    uint64_t (*sync_ns)(const struct log *log);
    enum hf_status (*stop)(struct log *log);
    void (*close)(struct log *log);
};

/* The head of every log. */
struct log {
    const struct log_ops *ops;
    uint32_t flights_max; /* commits that may be on their way at once */
};

/* ---- Batches. ---- */

/* Room for a record of `len` bytes at the end of the batch being built, until
 * the next call; finish makes the first `used` of them a record. HF_FULL: the
 * batch must be committed first; HF_INVALID: the record is empty or too long;
 * HF_IO: the log has failed; HF_NOMEM. May be called while commits are on their
 * way. */
static inline enum hf_status log_prepare(struct log *log, size_t len,
                                         char **space)
{
    return log->ops->prepare(log, len, space);
}

static inline void log_finish(struct log *log, size_t used)
{
    log->ops->finish(log, used);
}

/* Both, with a copy of `record`. */
static inline enum hf_status log_append(struct log *log, struct hf_bytes record)
{
    char *space;
    enum hf_status status = log_prepare(log, record.len, &space);

    if (status != HF_OK)
        return status;
    memcpy(space, record.data, record.len);
    log_finish(log, record.len);
    return HF_OK;
}

/* Bytes of records in the batch being built; 0 if there is none. */
static inline size_t log_batch_bytes(const struct log *log)
{
    return log->ops->batch_bytes(log);
}

/* Commits the batch being built. HF_OK: it has ended well, and none is on its
 * way, or there was nothing to commit. HF_PENDING: it is on its way, log_poll()
 * will tell. HF_IO: it failed; those before it are still told by log_poll(). No
 * more than `flights_max` may be on their way, with the one whose records are
 * still read. */
static inline enum hf_status log_commit(struct log *log)
{
    return log->ops->commit(log);
}

/* Tells the end of the oldest commit on its way, once: HF_OK or HF_IO.
 * HF_PENDING: it has not ended; HF_EMPTY: there is none. Call it whenever the
 * wake fd is readable, until neither HF_OK nor HF_IO comes: that makes it
 * unreadable again. */
static inline enum hf_status log_poll(struct log *log)
{
    return log->ops->poll(log);
}

/* The records of the batch that ended well last, as log_poll() or log_commit()
 * told, in order: call with `*at` = 0 first; HF_EMPTY at the end. `record`
 * stays valid until the next end is told. */
static inline enum hf_status log_committed(const struct log *log, size_t *at,
                                           struct hf_bytes *record)
{
    return log->ops->committed(log, at, record);
}

/* A file descriptor that becomes readable when log_poll() has news. */
static inline int log_wake_fd(const struct log *log)
{
    return log->ops->wake_fd(log);
}

/* May something be told that is in no batch? False: it is put into one. */
static inline bool log_leads(const struct log *log)
{
    return log->ops->leads == NULL || log->ops->leads(log);
}

/* ---- Upkeep. ---- */

/* Does what is due in the background. Cheap, does not wait; call about every
 * 100 ms with a monotonic time. */
static inline void log_tend(struct log *log, uint64_t now_ns)
{
    log->ops->tend(log, now_ns);
}

/* Waits until everything on its way has ended, and is durable whatever the
 * mode. The ends are still to be told by poll. */
static inline enum hf_status log_flush(struct log *log)
{
    return log->ops->flush(log);
}

/* Keeps a number of the owner's, apart from the batches and snapshots, so that
 * it outlasts any repair; later opens find it in the stats, or
 * JOURNAL_NOTE_UNKNOWN after a repair that could not read it. For what must not
 * be forgotten with the state, such as the highest number ever told. Durable
 * when it returns; blocks. HF_IO. */
static inline enum hf_status log_note(struct log *log, uint64_t note)
{
    return log->ops->note(log, note);
}

/* The same, cheap and without waiting: durable some time later, and before so
 * much is committed that the numbers could pass it by 2^32. */
static inline void log_note_later(struct log *log, uint64_t note)
{
    log->ops->note_later(log, note);
}

/* Has a snapshot made of everything up to here, in the background. HF_OK: on
 * its way, or there is nothing that the newest one does not hold. HF_PENDING:
 * one is being made already. HF_IO: the log has failed. */
static inline enum hf_status log_snapshot(struct log *log)
{
    return log->ops->snapshot(log);
}

/* True from then on until it is made, or has failed. */
static inline bool log_snapshot_running(const struct log *log)
{
    return log->ops->snapshot_running(log);
}

/* Why the last snapshot that failed did so; "" if none has. */
static inline void log_snapshot_error(const struct log *log,
                                      char out[JOURNAL_ERROR_MAX])
{
    log->ops->snapshot_error(log, out);
}

/* Applies all that the log keeps, from the oldest snapshot up to the batch
 * that ended last, to a machine of the caller's, in the background. `replay`
 * stays until it is done. HF_OK: it has begun. HF_PENDING: not now, a snapshot
 * is being made, or another one runs. HF_IO: the log has failed, or there is no
 * thread. HF_NOTFOUND: this log cannot. */
static inline enum hf_status log_replay(struct log *log,
                                        const struct log_replay *replay)
{
    return log->ops->replay == NULL ? HF_NOTFOUND
                                    : log->ops->replay(log, replay);
}

/* Why the log refuses; "" while it does not. */
static inline const char *log_error(const struct log *log)
{
    return log->ops->error(log);
}

static inline void log_stats(const struct log *log, struct log_stats *out)
{
    log->ops->stats(log, out);
}

/* How long the last commit took that has ended; cheaper than all of them. */
static inline uint64_t log_sync_ns(const struct log *log)
{
    return log->ops->sync_ns(log);
}

/* ---- The end. ---- */

/* A clean end: finishes the commits on their way, makes everything durable
 * whatever the mode, and notes that this was all; blocks. Only log_close() may
 * follow. HF_INVALID: something was appended and not committed; HF_IO: the log
 * has failed, or does so now. Then the end is not clean. */
static inline enum hf_status log_stop(struct log *log)
{
    return log->ops->stop(log);
}

/* Waits for the commits on their way, writes nothing more, frees. Without
 * log_stop() before it this is an end like a crash. NULL is allowed. */
static inline void log_close(struct log *log)
{
    if (log != NULL)
        log->ops->close(log);
}

#endif
