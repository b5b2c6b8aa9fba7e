/* pool_apr.c - APR's thread pool. */
#include <apr_general.h>
#include <apr_thread_pool.h>
#include <stdlib.h>

#include "bench/exec/pool.h"

struct pool {
    apr_pool_t *memory;
    apr_thread_pool_t *threads;
};

static void *APR_THREAD_FUNC task(apr_thread_t *thread, void *item)
{
    (void)thread;
    pool_task(item);
    return NULL;
}

static void *open_pool(const struct contest_work *work)
{
    if (work->shape != POOL_OF_WORKERS)
        return NULL;
    struct pool *pool = contest_alloc(sizeof *pool);
    if (apr_initialize() || apr_pool_create(&pool->memory, NULL) ||
        apr_thread_pool_create(&pool->threads, POOL_WORKERS, POOL_WORKERS,
                               pool->memory))
        contest_fail("apr_thread_pool_create");
    return pool;
}

static void close_pool(void *self)
{
    struct pool *pool = self;

    apr_thread_pool_destroy(pool->threads);
    apr_pool_destroy(pool->memory);
    apr_terminate();
    free(pool);
}

CONTEST_INLINE void submit(struct contest_thread *thread,
                           struct pool_item *item)
{
    struct pool *pool = thread->self;

    if (apr_thread_pool_push(pool->threads, task, item,
                             APR_THREAD_TASK_PRIORITY_NORMAL, NULL))
        contest_fail("apr_thread_pool_push");
}

static void run(struct contest_thread *thread)
{
    pool_run(thread, submit, pool_wait);
}

const struct contest_side pool_apr = {
    .name = "apr",
    .open = open_pool,
    .close = close_pool,
    .run = run,
    .enter = pool_enter,
    .leave = pool_leave,
};
