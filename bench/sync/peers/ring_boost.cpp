// ring_boost.cpp - boost::lockfree: queue of a fixed size, and spsc_queue.
//
// Only spsc_queue has bulk calls.
#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>

#include "bench/sync/fifo.h"

using mpmc_ring =
    boost::lockfree::queue<void *, boost::lockfree::fixed_sized<true>>;
using spsc_ring = boost::lockfree::spsc_queue<void *>;

struct ring {
    mpmc_ring *mpmc;
    spsc_ring *spsc;
};

static void *ring_open(const contest_work *work)
{
    if (work->mode == FIFO_SPSC)
        return new ring{nullptr, new spsc_ring(work->size)};
    if (fifo_is_bulk(work))
        return nullptr;
    return new ring{new mpmc_ring(work->size), nullptr};
}

static void ring_close(void *self)
{
    ring *both = static_cast<ring *>(self);
    delete both->mpmc;
    delete both->spsc;
    delete both;
}

CONTEST_INLINE bool mpmc_put(contest_thread *thread, void *item)
{
    return static_cast<ring *>(thread->self)->mpmc->bounded_push(item);
}

CONTEST_INLINE bool mpmc_take(contest_thread *thread, void **item)
{
    return static_cast<ring *>(thread->self)->mpmc->pop(*item);
}

CONTEST_INLINE bool spsc_put(contest_thread *thread, void *item)
{
    return static_cast<ring *>(thread->self)->spsc->push(item);
}

CONTEST_INLINE bool spsc_take(contest_thread *thread, void **item)
{
    return static_cast<ring *>(thread->self)->spsc->pop(*item);
}

CONTEST_INLINE size_t spsc_put_many(contest_thread *thread, void **items,
                                    size_t count)
{
    return static_cast<ring *>(thread->self)->spsc->push(items, count);
}

CONTEST_INLINE size_t spsc_take_many(contest_thread *thread, void **items,
                                     size_t count)
{
    return static_cast<ring *>(thread->self)->spsc->pop(items, count);
}

static void ring_run(contest_thread *thread)
{
    if (fifo_is_bulk(thread->work))
        fifo_bulk(thread, spsc_put_many, spsc_take_many);
    else if (thread->work->mode == FIFO_SPSC)
        fifo_run(thread, spsc_put, spsc_take);
    else
        fifo_run(thread, mpmc_put, mpmc_take);
}

extern "C" const contest_side ring_boost = {
    "boost", ring_open, ring_close, ring_run, nullptr, nullptr, nullptr,
};
