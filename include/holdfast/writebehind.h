/* writebehind.h - puts at the speed of memory, a store that follows.
 *
 * A put changes memory and returns; what was changed is "dirty" until a thread
 * has written it to the store, many changes in one transaction:
 *
 *   put a=1, put b=1, put a=2, delete c
 *        |
 *        v        dirty, oldest first            one transaction
 *      [ a=2 ] [ b=1 ] [ c gone ] ...   ====>   apply({a=2, b=1, c gone})
 *        ^
 *        get: dirty values first, then the store
 *
 * A batch is written when there are `batch_max` changes or `batch_bytes`, when
 * the oldest is `age_ns` old, when somebody flushes, or when there is no room.
 *
 * Coalescing. A key that is changed again before it was written keeps its place
 * and is written once, with its last value. While a key is on its way to the
 * store its next change waits behind it: so each key has its order.
 *
 * Groups. What is put by one hf_writebehind_put_all() is in one transaction of
 * the store, whatever happens to its keys later. A group that changes a key of
 * another that was not written yet becomes one group with it:
 *
 *   put_all {a=1 b=1}   put_all {b=2 c=2}   put a=3   ==>  {a=3 b=2 c=2}
 *
 * A single put of a key of a group changes the value within its group. A group
 * is never cut: one that is larger than a batch is a batch of its own.
 *
 * Failures. A batch that the store cannot take now (hf_store_may_retry) is
 * tried again as it is, after pauses that grow, for `give_up_ns`; then it goes
 * to `dead`, and so does at once what the store will never take. In that last
 * case the groups of the batch are tried one by one, so that only the one to
 * blame is dead. Nothing leaves otherwise: a dirty change is written, or given
 * to `dead`, or (at the end) kept in the log.
 *
 * Bounds. At most `dirty_max` changes and `dirty_bytes` are inside, those being
 * written included. Who puts waits for room, first come first served, or is
 * refused (`refuse`).
 *
 * The log. With `log_dir`, a put returns when its record is on disk: threads
 * that put at the same time share one sync. What was put and not written is
 * found again by the next open, also after a crash; it may be written twice, in
 * order, which changes nothing. If a record cannot be written the put says so
 * and nothing has changed (HF_FULL: no room on the disk). If a sync fails, all
 * later puts fail with HF_IO: what the system then keeps of the file is not
 * known, and whether the changes of that sync come back is not either. Writing
 * to the store goes on.
 *
 * Threads: every call but open and close from any thread. The callbacks run in
 *          the thread that writes, one at a time, outside locks. What is called
 *          from them does not wait: put is then as with HF_NOW, and flush and
 *          through are HF_INVALID. They must not close.
 * Memory:  keys and values are copied. One allocation for each change; bounded
 *          by dirty_bytes. `store` is the user's and must outlive it.
 * Time:    ages, pauses and deadlines by `clock`. Deadlines are for waiting
 *          for room; the disk under the log is waited for as long as it takes.
 *
 *               linearizable  atomic   lock-free  allocates      may overlap
 *   put, delete yes, per key  yes      no         one            all but
 *   put_all     no: see below in store no         one per change open, close
 *   get         yes           -        no         in the store
 *   flush       yes           -        no         no
 *
 * Who reads two keys of a group by two gets may see one of them before and the
 * other after the group. A get of a key that is not dirty is as good as the
 * store's own read.
 *
 * Example:
 *
 *   static void dead(void *context, enum hf_status why,
 *                    const struct hf_store_change *group, size_t count)
 *   {
 *       (void)context, (void)group;
 *       fprintf(stderr, "%zu changes lost: %s\n", count, hf_status_text(why));
 *   }
 *   static void print(void *arg, const void *value, size_t len)
 *   {
 *       (void)arg;
 *       printf("%.*s\n", (int)len, (const char *)value);
 *   }
 *   int main(void)
 *   {
 *       struct hf_store store;
 *       struct hf_store_sqlite_opts in = {.path = ":memory:"};
 *       assert(hf_store_sqlite_open(&store, &in) == HF_OK);
 *       struct hf_writebehind *behind;
 *       struct hf_writebehind_opts opts = {.store = &store, .dead = dead};
 *       assert(hf_writebehind_open(&behind, &opts) == HF_OK);
 *       enum hf_status status;
 *       status = hf_writebehind_put(behind, "k", 1, "v", 1, HF_FOREVER);
 *       assert(status == HF_OK);
 *       assert(hf_writebehind_get(behind, "k", 1, print, NULL) == HF_OK);
 *       assert(hf_writebehind_close(behind, HF_FOREVER) == HF_OK);
 *       assert(store.read(store.context, "k", 1, print, NULL) == HF_OK);
 *       hf_store_close(&store);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_WRITEBEHIND_H
#define HOLDFAST_WRITEBEHIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/status.h"
#include "holdfast/store.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_WRITEBEHIND_BATCH_DEFAULT 1000u
#define HF_WRITEBEHIND_BATCH_MAX     (1u << 20)
#define HF_WRITEBEHIND_DIRTY_DEFAULT (1u << 16)
#define HF_WRITEBEHIND_DIRTY_MAX     (1u << 26)
#define HF_WRITEBEHIND_GROUP_MAX     (1u << 20) /* changes of one put_all */
#define HF_WRITEBEHIND_GROUP_BYTES   (1u << 30) /* and their bytes */

/* What each change takes beside its key and its value, as dirty_bytes counts
 * it. */
#define HF_WRITEBEHIND_OVERHEAD 128u

struct hf_writebehind;

struct hf_writebehind_opts {
    const char *name;             /* for hf_inspect() and the thread's name */
    const struct hf_store *store; /* required; the struct is copied */
    /* Gets what is not written, once, a group at a time; required. `why` is
     * what the store said, or HF_CLOSED: the end came first. */
    void (*dead)(void *context, enum hf_status why,
                 const struct hf_store_change *group, size_t count);
    /* Told of every apply that failed, and of how many changes; NULL: nobody.
     */
    void (*failed)(void *context, enum hf_status why, size_t count);
    void *context;
    uint32_t batch_max;     /* changes; 0: HF_WRITEBEHIND_BATCH_DEFAULT */
    uint64_t batch_bytes;   /* 0: 4 MiB */
    uint64_t age_ns;        /* 0: 100 ms; HF_FOREVER: by size only */
    uint32_t dirty_max;     /* 0: HF_WRITEBEHIND_DIRTY_DEFAULT */
    uint64_t dirty_bytes;   /* 0: 64 MiB */
    bool refuse;            /* no room: HF_FULL at once, and no waiting */
    uint64_t pause_ns;      /* before the first retry; 0: 10 ms */
    uint64_t pause_max_ns;  /* 0: 5 s, or pause_ns if that is more */
    uint64_t give_up_ns;    /* from the first failure of a batch; 0: 10
                             * minutes; HF_FOREVER: never */
    const char *log_dir;    /* a folder of its own, made if missing; NULL: no
                             * log. Its owner alone opens it */
    uint64_t segment_bytes; /* of the log's files; 0: 16 MiB */
    uint64_t log_bytes;     /* no room beyond; 0: 1 GiB. At least 4 segments */
    uint64_t seed;          /* of the pauses' jitter; 0: made by the system */
    const struct hf_clock *clock; /* NULL: the system's */
};

struct hf_writebehind_stats {
    uint64_t changes;   /* accepted since open: puts and deletes, each of a
                         * group, and those found in the log */
    uint64_t coalesced; /* of these, overwritten before they were written */
    uint64_t flushed;   /* written to the store */
    uint64_t dead;      /* given to `dead` */
    uint64_t dirty;     /* inside now; = changes - coalesced - flushed - dead */
    uint64_t dirty_bytes; /* that they take, and those that are being put */
    uint64_t groups;      /* calls of put_all with more than one change */
    uint64_t merged;      /* groups that became one with an earlier one */
    uint64_t
        refused; /* calls not accepted: no room, too late, shut down, disk */
    uint64_t batches;     /* transactions of the store that succeeded */
    uint64_t by_size;     /* batches that were full */
    uint64_t by_age;      /* batches whose oldest change was old enough */
    uint64_t failures;    /* calls of apply that failed */
    uint64_t oldest_ns;   /* age of the oldest inside, or HF_INSPECT_NONE */
    uint64_t wait_p99_ns; /* for room, of those who waited; or
                           * HF_INSPECT_NONE */
    uint64_t recovered;   /* changes found in the log by open */
    uint64_t log_records; /* written since open: one for each call */
    uint64_t log_syncs;   /* for these */
    uint64_t log_bytes;   /* of the log's files now */
    uint64_t log_segments;
    bool log_failed; /* a sync failed: no more puts */
};

/* HF_INVALID: a required field is missing or one is out of its range, or
 * dirty_max is below batch_max. HF_NOMEM: no memory, or the system has no room
 * for the thread. HF_IO, HF_FULL: the log's folder cannot be used. HF_EXISTS:
 * another has it open. HF_CORRUPT: a record that was on disk is damaged;
 * nothing was changed. What the log holds is dirty when it returns, even if
 * that is more than dirty_max. */
enum hf_status hf_writebehind_open(struct hf_writebehind **behind,
                                   const struct hf_writebehind_opts *opts);
/* Nothing new: who puts is told HF_CLOSED. What is inside is written at once,
 * and get goes on. Again is harmless. */
void hf_writebehind_shutdown(struct hf_writebehind *behind);
/* Shuts, waits until all is written or dead or the deadline has come, and
 * frees. HF_OK: nothing is left. HF_TIMEOUT: what was left is in the log for
 * the next open; without a log it went to `dead` with HF_CLOSED. A call of the
 * store that is on its way is waited for even so. Nobody may be inside a call.
 * NULL is HF_OK. */
enum hf_status hf_writebehind_close(struct hf_writebehind *behind,
                                    uint64_t deadline_ns);

/* HF_OK: accepted, and with a log on disk. Otherwise nothing was changed:
 * HF_TIMEOUT: no room by the deadline. HF_FULL: no room (`refuse`), or none on
 * the log's disk. HF_CLOSED. HF_IO: the log cannot be written. HF_NOMEM.
 * HF_INVALID: an argument is out of the range of holdfast/store.h, or larger
 * than would ever fit. */
enum hf_status hf_writebehind_put(struct hf_writebehind *behind,
                                  const void *key, size_t key_len,
                                  const void *value, size_t value_len,
                                  uint64_t deadline_ns);
enum hf_status hf_writebehind_delete(struct hf_writebehind *behind,
                                     const void *key, size_t key_len,
                                     uint64_t deadline_ns);
/* All of them, as a group; of a key that comes twice the last. None is HF_OK.
 */
enum hf_status hf_writebehind_put_all(struct hf_writebehind *behind,
                                      const struct hf_store_change *changes,
                                      size_t count, uint64_t deadline_ns);
/* Write-through: put_all, and waits until it is in the store. HF_PENDING: it
 * was accepted and was not written by the deadline; it will be. HF_FAILED: it
 * was accepted, and some of what had to be written, this or an earlier change,
 * is dead. Else as above. */
enum hf_status hf_writebehind_through(struct hf_writebehind *behind,
                                      const struct hf_store_change *changes,
                                      size_t count, uint64_t deadline_ns);

/* What the last put that has returned left, or the store's own. `found` is
 * called in this thread, outside locks, with bytes that live until it returns.
 * HF_NOTFOUND: there is none, or it was deleted. Else what the store says. */
enum hf_status hf_writebehind_get(
    struct hf_writebehind *behind, const void *key, size_t key_len,
    void (*found)(void *arg, const void *value, size_t value_len), void *arg);

/* Has all that was put before written now, and waits. HF_OK: it is in the
 * store. HF_TIMEOUT: not in time, it goes on. HF_FAILED: some of it is dead. */
enum hf_status hf_writebehind_flush(struct hf_writebehind *behind,
                                    uint64_t deadline_ns);

/* It as a store: read is get, apply is put_all that waits for room for as long
 * as it takes. Valid until close. */
enum hf_status hf_writebehind_as_store(struct hf_writebehind *behind,
                                       struct hf_store *out);

void hf_writebehind_stats(struct hf_writebehind *behind,
                          struct hf_writebehind_stats *out);

#ifdef __cplusplus
}
#endif

#endif
