// ring_moodycamel.cpp - moodycamel's ConcurrentQueue, used as a bounded one:
// room for all is made first, and try_enqueue never makes more.
#include "moodycamel.h"

static void *ring_open(const contest_work *work)
{
    if (work->mode == FIFO_SPSC)
        return nullptr;
    return new camel(work->threads, work->size, work->threads, 0);
}

CONTEST_INLINE bool ring_put(contest_thread *thread, void *item)
{
    return camel_queue(thread).try_enqueue(camel_own(thread).producer, item);
}

CONTEST_INLINE size_t ring_put_many(contest_thread *thread, void **items,
                                    size_t count)
{
    bool all = camel_queue(thread).try_enqueue_bulk(camel_own(thread).producer,
                                                    items, count);
    return all ? count : 0;
}

CONTEST_INLINE size_t ring_take_many(contest_thread *thread, void **items,
                                     size_t count)
{
    return camel_queue(thread).try_dequeue_bulk(camel_own(thread).consumer,
                                                items, count);
}

static void ring_run(contest_thread *thread)
{
    if (fifo_is_bulk(thread->work))
        fifo_bulk(thread, ring_put_many, ring_take_many);
    else
        fifo_run(thread, ring_put, camel_take);
}

extern "C" const contest_side ring_moodycamel = {
    "moodycamel", ring_open, camel_close, ring_run,
    camel_enter,  nullptr,   nullptr,
};
