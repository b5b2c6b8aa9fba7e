/* blocking_glib.c - GLib's GAsyncQueue, which has no bound. */
#include <glib.h>
#include <stdlib.h>

#include "bench/sync/blocking.h"

static void *pair_open(const struct contest_work *work)
{
    struct blocking_pair *pair = contest_alloc(sizeof *pair);

    (void)work;
    pair->queue[0] = g_async_queue_new();
    pair->queue[1] = g_async_queue_new();
    return pair;
}

static void pair_close(void *self)
{
    struct blocking_pair *pair = self;

    g_async_queue_unref(pair->queue[0]);
    g_async_queue_unref(pair->queue[1]);
    free(pair);
}

CONTEST_INLINE void put(void *queue, void *item)
{
    g_async_queue_push(queue, item);
}

CONTEST_INLINE void *take(void *queue)
{
    return g_async_queue_pop(queue);
}

static void pair_run(struct contest_thread *thread)
{
    blocking_run(thread, put, take);
}

const struct contest_side blocking_glib = {
    .name = "glib",
    .open = pair_open,
    .close = pair_close,
    .run = pair_run,
};
