/* batcher_state.h - the inside of a batcher, shared by its source files.
 *
 *   batcher.c      open, add, flush, the end, figures
 *   batcher_run.c  who handles batches, and how
 *
 * A shard is a circle of entries, followed by one batch:
 *
 *   since open    0 ....... done ======= taken ############# added
 *                           the batch          in the circle
 *
 * The batch is out of the circle from its first call until it is handled or
 * dead; between two calls it waits for its next. Only then the next is taken:
 * so a shard keeps its order, and does not stop the others.
 */
#ifndef EXEC_BATCHER_STATE_H
#define EXEC_BATCHER_STATE_H

#include <stdbool.h>

#include "base/thread.h"
#include "holdfast/batcher.h"
#include "sync/listed.h"
#include "sync/mutex.h"
#include "sync/waits.h"

struct batcher_entry {
    void *item;
    uint64_t added_ns;
};

/* (i) immutable after open  (m) under the shard's mutex
 * (r) of whoever has the role of the handler */
struct batcher_shard {
    _Alignas(HF_CACHE_LINE) struct hf_mutex mutex;
    struct batcher_entry *entries; /* (i) a circle of queue_max, its content
                                    * (m) */
    uint64_t added;                /* (m) see the drawing above */
    uint64_t taken;                /* (m) */
    uint64_t done;                 /* (m) */
    uint64_t flush_to;             /* (m) `added` at the last flush */
    uint64_t refused;              /* (m) */
    uint32_t blocked;              /* (m) who wait for room */
    bool shut;                     /* (m) */
    struct hf_event room;          /* there is room, or shut */
    uint64_t since_ns;             /* (m) the batch's oldest was added */
    void **batch;                  /* (i) room for batch_max, its content (r) */
    uint32_t retries_left;         /* (r) of the batch */
    uint64_t pause_ns;             /* (r) before its next retry but one */
    uint64_t retry_ns;             /* (r) when its next call is due */
};

struct hf_batcher {
    struct hf_listed listed;
    struct hf_batcher_opts opts;  /* (i) with defaults */
    const struct hf_clock *clock; /* (i) */
    struct batcher_shard *shards; /* (i) opts.shards of them */
    struct hf_thread thread;
    struct hf_event work; /* for its thread: a shard may be ready, the role
                           * is free, or shut */
    struct hf_event done; /* a batch is done */
    struct hf_atomic_u32
        role;      /* (a) 1 + the slot of whoever handles; 0: free */
    uint32_t next; /* (r) the shard to look at first */
    struct hf_atomic_u64 handled, dead, batches, by_size, by_age,
        failures;          /* (a) figures, written by (r) */
    struct hf_waits waits; /* (a) from add to the first call */
};

/* The end of time, if it would be beyond. */
static inline uint64_t batcher_after(uint64_t from_ns, uint64_t ns)
{
    return ns < HF_FOREVER - from_ns ? from_ns + ns : HF_FOREVER;
}

/* ---- batcher_run.c ---- */

/* Is the running thread inside the handler? */
bool hf_batcher_is_mine(const struct hf_batcher *batcher);
/* Makes one call for the shard if the role is free and one is due; false: there
 * was none to make. */
bool hf_batcher_help(struct hf_batcher *batcher, struct batcher_shard *shard);
/* What the batcher's thread does. */
void hf_batcher_main(void *batcher);

#endif
