/* pool_glib.c - GLib's GThreadPool, with threads of its own. */
#include <glib.h>

#include "bench/exec/pool.h"

static void task(void *item, void *context)
{
    (void)context;
    pool_task(item);
}

static void *open_pool(const struct contest_work *work)
{
    if (work->shape != POOL_OF_WORKERS)
        return NULL;
    GThreadPool *pool =
        g_thread_pool_new(task, NULL, (int)POOL_WORKERS, TRUE, NULL);
    if (pool == NULL)
        contest_fail("g_thread_pool_new");
    return pool;
}

static void close_pool(void *self)
{
    g_thread_pool_free(self, FALSE, TRUE);
}

CONTEST_INLINE void submit(struct contest_thread *thread,
                           struct pool_item *item)
{
    if (!g_thread_pool_push(thread->self, item, NULL))
        contest_fail("g_thread_pool_push");
}

static void run(struct contest_thread *thread)
{
    pool_run(thread, submit, pool_wait);
}

const struct contest_side pool_glib = {
    .name = "glib",
    .open = open_pool,
    .close = close_pool,
    .run = run,
    .enter = pool_enter,
    .leave = pool_leave,
};
