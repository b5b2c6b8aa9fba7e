/* pool_uv.c - libuv's work queue. Only a loop's own thread may submit, so each
 * submitter has a loop; the threads are the process's. */
#include <stdlib.h>
#include <uv.h>

#include "bench/exec/pool.h"

struct mine {
    uv_loop_t loop;
    uv_work_t *requests; /* as many as items, got for free */
};

static void *open_pool(const struct contest_work *work)
{
    static int nothing;

    if (work->shape != POOL_OF_WORKERS)
        return NULL;
    _Static_assert(POOL_WORKERS == 2, "the text below");
    setenv("UV_THREADPOOL_SIZE", "2", 1);
    return &nothing;
}

static void close_pool(void *self)
{
    (void)self;
}

static void enter(struct contest_thread *thread)
{
    struct mine *mine = contest_alloc(sizeof *mine);

    pool_enter(thread);
    if (uv_loop_init(&mine->loop))
        contest_fail("uv_loop_init");
    mine->requests = contest_alloc(thread->work->size * sizeof *mine->requests);
    pool_own(thread)->extra = mine;
}

static void leave(struct contest_thread *thread)
{
    struct mine *mine = pool_own(thread)->extra;

    if (uv_loop_close(&mine->loop))
        contest_fail("uv_loop_close");
    free(mine->requests);
    free(mine);
    pool_leave(thread);
}

static void task(uv_work_t *request)
{
    pool_task(request->data);
}

static void after(uv_work_t *request, int status)
{
    (void)request;
    if (status != 0)
        contest_fail("uv_queue_work: cancelled");
}

CONTEST_INLINE void submit(struct contest_thread *thread,
                           struct pool_item *item)
{
    struct mine *mine = pool_own(thread)->extra;
    uv_work_t *request = &mine->requests[item - pool_own(thread)->items];

    request->data = item;
    if (uv_queue_work(&mine->loop, request, task, after))
        contest_fail("uv_queue_work");
}

/* The loop ends with its last request; nobody sleeps in pool_wait. */
CONTEST_INLINE void finish(struct contest_thread *thread)
{
    struct mine *mine = pool_own(thread)->extra;

    uv_run(&mine->loop, UV_RUN_DEFAULT);
    pool_wait(thread);
}

static void run(struct contest_thread *thread)
{
    pool_run(thread, submit, finish);
}

const struct contest_side pool_uv = {
    .name = "libuv",
    .open = open_pool,
    .close = close_pool,
    .run = run,
    .enter = enter,
    .leave = leave,
};
