/* pool_threads.c - a new thread for each task. One task: create and join; more:
 * detached threads. */
#include <pthread.h>

#include "bench/exec/pool.h"

/* More at a time would run into limits of the system. */
#define THREADS_MOST 100

static void *open_pool(const struct contest_work *work)
{
    static int nothing;

    if (work->shape != POOL_OF_WORKERS || work->size > THREADS_MOST)
        return NULL;
    return &nothing;
}

static void close_pool(void *self)
{
    (void)self;
}

static void *task(void *item)
{
    pool_task(item);
    return NULL;
}

CONTEST_INLINE void submit(struct contest_thread *thread,
                           struct pool_item *item)
{
    pthread_t id;

    if (pthread_create(&id, NULL, task, item))
        contest_fail("pthread_create");
    if (thread->work->size == 1)
        pthread_join(id, NULL);
    else
        pthread_detach(id);
}

static void run(struct contest_thread *thread)
{
    pool_run(thread, submit, pool_wait);
}

const struct contest_side pool_threads = {
    .name = "threads",
    .open = open_pool,
    .close = close_pool,
    .run = run,
    .enter = pool_enter,
    .leave = pool_leave,
};
