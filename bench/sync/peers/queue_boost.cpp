// queue_boost.cpp - boost::lockfree::queue that takes more nodes when it needs
// them. It keeps them all: memory is given back when it is destroyed.
#include <boost/lockfree/queue.hpp>

#include "bench/sync/fifo.h"

using queue = boost::lockfree::queue<void *>;

static void *queue_open(const contest_work *)
{
    return new queue(0);
}

static void queue_close(void *self)
{
    delete static_cast<queue *>(self);
}

CONTEST_INLINE bool queue_put(contest_thread *thread, void *item)
{
    return static_cast<queue *>(thread->self)->push(item);
}

CONTEST_INLINE bool queue_take(contest_thread *thread, void **item)
{
    return static_cast<queue *>(thread->self)->pop(*item);
}

static void queue_run(contest_thread *thread)
{
    fifo_run(thread, queue_put, queue_take);
}

extern "C" const contest_side queue_boost = {
    "boost", queue_open, queue_close, queue_run, nullptr, nullptr, nullptr,
};
