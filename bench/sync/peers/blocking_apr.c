/* blocking_apr.c - APR's bounded queue. */
#include <apr_general.h>
#include <apr_queue.h>
#include <stdlib.h>

#include "bench/sync/blocking.h"

struct pair {
    struct blocking_pair queues; /* first */
    apr_pool_t *pool;
};

static void *pair_open(const struct contest_work *work)
{
    if (work->mode != BLOCKING_ARRAY)
        return NULL;
    struct pair *pair = contest_alloc(sizeof *pair);
    if (apr_initialize() || apr_pool_create(&pair->pool, NULL))
        contest_fail("apr_initialize");
    for (int i = 0; i < 2; i++) {
        apr_queue_t *queue;
        if (apr_queue_create(&queue, (unsigned)work->size, pair->pool))
            contest_fail("apr_queue_create");
        pair->queues.queue[i] = queue;
    }
    return pair;
}

static void pair_close(void *self)
{
    struct pair *pair = self;

    apr_pool_destroy(pair->pool);
    apr_terminate();
    free(pair);
}

/* Its waits may end early, and then tell so. */
CONTEST_INLINE void put(void *queue, void *item)
{
    apr_status_t status;

    do
        status = apr_queue_push(queue, item);
    while (status == APR_EINTR);
    if (status != APR_SUCCESS)
        contest_fail("apr_queue_push");
}

CONTEST_INLINE void *take(void *queue)
{
    apr_status_t status;
    void *item = NULL;

    do
        status = apr_queue_pop(queue, &item);
    while (status == APR_EINTR);
    if (status != APR_SUCCESS)
        contest_fail("apr_queue_pop");
    return item;
}

static void pair_run(struct contest_thread *thread)
{
    blocking_run(thread, put, take);
}

const struct contest_side blocking_apr = {
    .name = "apr",
    .open = pair_open,
    .close = pair_close,
    .run = pair_run,
};
