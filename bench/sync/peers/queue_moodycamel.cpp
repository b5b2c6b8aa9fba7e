// queue_moodycamel.cpp - moodycamel's ConcurrentQueue, unbounded.
#include "moodycamel.h"

static void *queue_open(const contest_work *work)
{
    return new camel(work->threads);
}

CONTEST_INLINE bool queue_put(contest_thread *thread, void *item)
{
    return camel_queue(thread).enqueue(camel_own(thread).producer, item);
}

static void queue_run(contest_thread *thread)
{
    fifo_run(thread, queue_put, camel_take);
}

extern "C" const contest_side queue_moodycamel = {
    "moodycamel", queue_open, camel_close, queue_run,
    camel_enter,  nullptr,    nullptr,
};
