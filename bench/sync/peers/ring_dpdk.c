/* ring_dpdk.c - DPDK's rte_ring, without its environment.
 *
 * Two sides: `rte` is the default, in which a thread that was interrupted
 * between its two steps stops the others; `rte-rts` is its mode for more
 * threads than cores, in which it does not.
 */
#include <rte_ring.h>
#include <stdlib.h>

#include "bench/sync/fifo.h"

static void *ring_open_as(const struct contest_work *work, unsigned flags)
{
    /* It keeps one slot free, unless the size is exact. */
    unsigned count = (unsigned)work->size;
    ssize_t bytes = rte_ring_get_memsize(count);

    if (bytes < 0)
        contest_fail("rte_ring_get_memsize");
    struct rte_ring *ring = contest_alloc((size_t)bytes);
    if (rte_ring_init(ring, work->name, count, flags) != 0)
        contest_fail("rte_ring_init");
    return ring;
}

static void *ring_open(const struct contest_work *work)
{
    return ring_open_as(
        work, work->mode == FIFO_SPSC ? RING_F_SP_ENQ | RING_F_SC_DEQ : 0);
}

static void *ring_open_rts(const struct contest_work *work)
{
    if (work->mode == FIFO_SPSC)
        return NULL;
    return ring_open_as(work, RING_F_MP_RTS_ENQ | RING_F_MC_RTS_DEQ);
}

/* Calls that name the mode, as a user who knows it writes them. */
#define RING_CALLS(mode, enqueue, dequeue)                                    \
    CONTEST_INLINE bool mode##_put(struct contest_thread *thread, void *item) \
    {                                                                         \
        return rte_ring_##enqueue##_bulk(thread->self, &item, 1, NULL) == 1;  \
    }                                                                         \
    CONTEST_INLINE bool mode##_take(struct contest_thread *thread,            \
                                    void **item)                              \
    {                                                                         \
        return rte_ring_##dequeue##_bulk(thread->self, item, 1, NULL) == 1;   \
    }                                                                         \
    CONTEST_INLINE size_t mode##_put_many(struct contest_thread *thread,      \
                                          void **items, size_t count)         \
    {                                                                         \
        return rte_ring_##enqueue##_burst(thread->self, items,                \
                                          (unsigned)count, NULL);             \
    }                                                                         \
    CONTEST_INLINE size_t mode##_take_many(struct contest_thread *thread,     \
                                           void **items, size_t count)        \
    {                                                                         \
        return rte_ring_##dequeue##_burst(thread->self, items,                \
                                          (unsigned)count, NULL);             \
    }

RING_CALLS(mpmc, mp_enqueue, mc_dequeue)
RING_CALLS(spsc, sp_enqueue, sc_dequeue)
RING_CALLS(rts, enqueue, dequeue)

static void ring_run(struct contest_thread *thread)
{
    bool spsc = thread->work->mode == FIFO_SPSC;

    if (fifo_is_bulk(thread->work) && spsc)
        fifo_bulk(thread, spsc_put_many, spsc_take_many);
    else if (fifo_is_bulk(thread->work))
        fifo_bulk(thread, mpmc_put_many, mpmc_take_many);
    else if (spsc)
        fifo_run(thread, spsc_put, spsc_take);
    else
        fifo_run(thread, mpmc_put, mpmc_take);
}

static void ring_run_rts(struct contest_thread *thread)
{
    if (fifo_is_bulk(thread->work))
        fifo_bulk(thread, rts_put_many, rts_take_many);
    else
        fifo_run(thread, rts_put, rts_take);
}

const struct contest_side ring_rte = {
    .name = "rte",
    .open = ring_open,
    .close = free,
    .run = ring_run,
};

const struct contest_side ring_rte_rts = {
    .name = "rte-rts",
    .open = ring_open_rts,
    .close = free,
    .run = ring_run_rts,
};
