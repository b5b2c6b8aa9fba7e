/* Tests that NULL is refused, or does nothing, in every call of the headers
 * for who runs the work.
 *
 * Each pointer in turn is NULL and all else is good: a call that tells a status
 * says HF_INVALID, unless the header says that it may be NULL. What users pass
 * through (context, arg) is not looked at. test/system/null.sh knows which
 * calls there are. */
#include "holdfast/batcher.h"
#include "holdfast/forkjoin.h"
#include "holdfast/future.h"
#include "holdfast/gather.h"
#include "holdfast/log.h"
#include "holdfast/multiqueue.h"
#include "holdfast/pipeline.h"
#include "holdfast/pool.h"
#include "holdfast/scheduler.h"
#include "support/test.h"

static char item[8]; /* something to point to */
static void *out;

static int task(void *arg)
{
    (void)arg;
    return 0;
}

static int handle(void *context, void *const *items, size_t count)
{
    (void)context;
    (void)items;
    (void)count;
    return 0;
}

static void reduce(void *context, uint64_t from, uint64_t to, void *value)
{
    (void)context;
    (void)from;
    (void)to;
    (void)value;
}

static void combine(void *context, void *value, const void *right)
{
    (void)context;
    (void)value;
    (void)right;
}

static int sink(void *context, const void *data, size_t len)
{
    (void)context;
    (void)data;
    (void)len;
    return 0;
}

static int work(void *context, void *item_in, void **item_out)
{
    (void)context;
    *item_out = item_in;
    return 0;
}

static void forkjoin_fn(struct hf_forkjoin_worker *a0, void *a1)
{
    (void)a0;
    (void)a1;
}

static void forkjoin_fn2(void *a0, uint64_t a1, uint64_t a2)
{
    (void)a0;
    (void)a1;
    (void)a2;
}

static void future_call(void *a0, const struct hf_outcome *a1)
{
    (void)a0;
    (void)a1;
}

static int gather_fn(void *a0, void **a1)
{
    (void)a0;
    (void)a1;
    return 0;
}

static int pool_fn(void *a0)
{
    (void)a0;
    return 0;
}

static void pool_hand_back(void *a0, void *a1)
{
    (void)a0;
    (void)a1;
}

TEST(batcher)
{
    struct hf_batcher *batcher, *new_batcher;
    struct hf_batcher_opts opts = {.handle = handle};
    CHECK_EQ(hf_batcher_open(&batcher, &opts), HF_OK);

    CHECK_EQ(hf_batcher_open(NULL, &opts), HF_INVALID);
    CHECK_EQ(hf_batcher_open(&new_batcher, NULL), HF_INVALID);
    hf_batcher_shutdown(NULL);
    hf_batcher_close(NULL);
    CHECK_EQ(hf_batcher_add(NULL, &item, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_batcher_add(batcher, NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_batcher_flush(NULL, HF_NOW), HF_INVALID);
    hf_batcher_stats(NULL, &(struct hf_batcher_stats){0});
    hf_batcher_stats(batcher, NULL);
    hf_batcher_close(batcher);
}

static void inside(struct hf_forkjoin_worker *worker, void *arg)
{
    int *refused = arg;
    struct hf_fork fork;

    *refused += hf_fork(worker, NULL, forkjoin_fn, NULL) == HF_INVALID;
    *refused += hf_fork(worker, &fork, NULL, NULL) == HF_INVALID;
    *refused += hf_join(worker, NULL) == HF_INVALID;
}

TEST(forkjoin)
{
    struct hf_forkjoin *forkjoin;
    struct hf_fork fork;
    uint64_t zero = 0;
    struct hf_reduction reduction = {
        .bytes = 8, .identity = &zero, .fn = reduce, .combine = combine};
    struct hf_forkjoin_opts small = {.threads = 1};
    CHECK_EQ(hf_forkjoin_open(&forkjoin, &small), HF_OK);

    CHECK_EQ(hf_forkjoin_open(NULL, &small), HF_INVALID);
    hf_forkjoin_shutdown(NULL);
    hf_forkjoin_close(NULL);
    CHECK_EQ(hf_forkjoin_run(NULL, forkjoin_fn, &item), HF_INVALID);
    CHECK_EQ(hf_forkjoin_run(forkjoin, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_fork(NULL, &fork, forkjoin_fn, &item), HF_INVALID);
    CHECK_EQ(hf_join(NULL, &fork), HF_INVALID);
    int refused = 0;
    CHECK_EQ(hf_forkjoin_run(forkjoin, inside, &refused), HF_OK);
    CHECK_EQ(refused, 3);
    CHECK(hf_forkjoin_of(NULL) == NULL);
    CHECK_EQ(hf_parallel_for(NULL, 1, 2, 1, forkjoin_fn2, &item), HF_INVALID);
    CHECK_EQ(hf_parallel_for(forkjoin, 1, 2, 1, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_parallel_reduce(NULL, 1, 2, 1, &reduction, &zero), HF_INVALID);
    CHECK_EQ(hf_parallel_reduce(forkjoin, 1, 2, 1, NULL, &zero), HF_INVALID);
    CHECK_EQ(hf_parallel_reduce(forkjoin, 1, 2, 1, &reduction, NULL),
             HF_INVALID);
    hf_forkjoin_stats(NULL, &(struct hf_forkjoin_stats){0});
    hf_forkjoin_stats(forkjoin, NULL);
    hf_forkjoin_close(forkjoin);
}

TEST(future)
{
    struct hf_future *future;
    struct hf_future *futures[1];
    CHECK_EQ(hf_future_open(&future, NULL), HF_OK);
    futures[0] = future;

    CHECK_EQ(hf_future_open(NULL, hf_clock_system()), HF_INVALID);
    hf_future_retain(NULL);
    hf_future_release(NULL);
    CHECK_EQ(hf_future_complete(NULL, &(struct hf_outcome){.status = HF_OK}),
             HF_INVALID);
    CHECK_EQ(hf_future_complete(future, NULL), HF_INVALID);
    CHECK_EQ(hf_future_get(NULL, HF_NOW, &(struct hf_outcome){0}), HF_INVALID);
    CHECK_EQ(hf_future_cancel(NULL), HF_INVALID);
    CHECK_EQ(hf_future_then(NULL, future_call, &item), HF_INVALID);
    CHECK_EQ(hf_future_then(future, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_future_all(NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_future_any(NULL, 1, HF_NOW, &(size_t){0}), HF_INVALID);
    CHECK_EQ(hf_future_any(futures, 1, HF_NOW, NULL), HF_INVALID);
    futures[0] = NULL;
    CHECK_EQ(hf_future_all(futures, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_future_any(futures, 1, HF_NOW, &(size_t){0}), HF_INVALID);
    CHECK(hf_future_get(future, HF_NOW, NULL) != HF_INVALID);
    hf_future_release(future);
}

static void *merge(void *context, void *so_far, void *result)
{
    (void)context;
    (void)so_far;
    return result;
}

TEST(gather)
{
    struct hf_gather *gather;
    CHECK_EQ(hf_gather_open(&gather, NULL), HF_OK);

    CHECK_EQ(hf_gather_open(NULL, &(struct hf_gather_opts){0}), HF_INVALID);
    hf_gather_close(NULL);
    CHECK_EQ(hf_gather_add(NULL, gather_fn, &item), HF_INVALID);
    CHECK_EQ(hf_gather_add(gather, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_gather_wait(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_gather_settle(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_gather_cancel(NULL), 0);
    CHECK(hf_gather_merge(NULL, merge, NULL, &item) == &item);
    CHECK(hf_gather_merge(gather, NULL, NULL, &item) == &item);
    CHECK_EQ(hf_gather_item(NULL, 1, &(struct hf_gather_item){0}), HF_INVALID);
    CHECK_EQ(hf_gather_item(gather, 1, NULL), HF_INVALID);
    hf_gather_stats(NULL, &(struct hf_gather_stats){0});
    hf_gather_stats(gather, NULL);
    hf_gather_close(gather);
}

TEST(log)
{
    struct hf_log *log;
    struct hf_log_opts opts = {.sink = sink};
    struct hf_log_field field = hf_log_number("n", 1);
    const char *nothing = NULL;
    CHECK_EQ(hf_log_open(&log, &opts), HF_OK);

    (void)hf_log_bytes(NULL, "n", 1);
    (void)hf_log_bytes("n", NULL, 1);
    (void)hf_log_text(NULL, "n");
    (void)hf_log_text("n", NULL);
    (void)hf_log_number(NULL, 1);
    CHECK_EQ(hf_log_open(NULL, &opts), HF_INVALID);
    hf_log_close(NULL);
    hf_log_write(NULL, (enum hf_log_level)0, "n");
    hf_log_write(log, (enum hf_log_level)0, nothing);
    hf_log_event(NULL, (enum hf_log_level)0, "n", &field, 1);
    hf_log_event(log, (enum hf_log_level)0, NULL, &field, 1);
    hf_log_event(log, (enum hf_log_level)0, "n", NULL, 1);
    hf_log_set_level(NULL, (enum hf_log_level)0);
    CHECK_EQ(hf_log_flush(NULL, HF_NOW), HF_INVALID);
    hf_log_stats(NULL, &(struct hf_log_stats){0});
    hf_log_stats(log, NULL);
    hf_log_close(log);
}

TEST(multiqueue)
{
    struct hf_multiqueue *multiqueue;
    struct hf_multiqueue_ticket ticket;
    CHECK_EQ(hf_multiqueue_open(&multiqueue, NULL), HF_OK);
    CHECK_EQ(hf_multiqueue_put(multiqueue, 2, &item, HF_NOW, &ticket), HF_OK);

    CHECK_EQ(hf_multiqueue_open(NULL, &(struct hf_multiqueue_opts){0}),
             HF_INVALID);
    hf_multiqueue_shutdown(NULL);
    hf_multiqueue_close(NULL);
    CHECK_EQ(hf_multiqueue_put(NULL, 1, &item, HF_NOW, &ticket), HF_INVALID);
    CHECK_EQ(hf_multiqueue_put(multiqueue, 1, NULL, HF_NOW, &ticket),
             HF_INVALID);
    CHECK_EQ(hf_multiqueue_take(NULL, &out, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_multiqueue_take(multiqueue, NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_multiqueue_take_from(NULL, 1, &out, HF_NOW, &(uint32_t){0}),
             HF_INVALID);
    CHECK_EQ(
        hf_multiqueue_take_from(multiqueue, 1, NULL, HF_NOW, &(uint32_t){0}),
        HF_INVALID);
    CHECK_EQ(hf_multiqueue_promote(NULL, &ticket, 1), HF_INVALID);
    CHECK_EQ(hf_multiqueue_promote(multiqueue, NULL, 1), HF_INVALID);
    CHECK_EQ(hf_multiqueue_size(NULL), 0);
    hf_multiqueue_stats(NULL, &(struct hf_multiqueue_stats){0});
    hf_multiqueue_stats(multiqueue, NULL);
    CHECK(hf_multiqueue_put(multiqueue, 1, &item, HF_NOW, NULL) != HF_INVALID);
    CHECK(hf_multiqueue_take_from(multiqueue, 1, &out, HF_NOW, NULL) !=
          HF_INVALID);
    hf_multiqueue_close(multiqueue);
}

TEST(pipeline)
{
    struct hf_pipeline *pipeline;
    struct hf_stage_opts stage = {.name = "s", .work = work};
    uint32_t first;
    CHECK_EQ(hf_pipeline_open(&pipeline, NULL), HF_OK);
    CHECK_EQ(hf_pipeline_stage(pipeline, &stage, &first), HF_OK);

    CHECK_EQ(hf_pipeline_open(NULL, &(struct hf_pipeline_opts){0}), HF_INVALID);
    CHECK_EQ(hf_pipeline_stage(NULL, &stage, &(uint32_t){0}), HF_INVALID);
    CHECK_EQ(hf_pipeline_stage(pipeline, NULL, &(uint32_t){0}), HF_INVALID);
    CHECK_EQ(hf_pipeline_stage(pipeline, &stage, NULL), HF_INVALID);
    CHECK_EQ(hf_pipeline_link(NULL, 1, 1), HF_INVALID);
    CHECK_EQ(hf_pipeline_start(NULL), HF_INVALID);
    CHECK_EQ(hf_pipeline_put(NULL, 1, &item, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_pipeline_put(pipeline, 1, NULL, HF_NOW), HF_INVALID);
    hf_pipeline_shutdown(NULL);
    CHECK_EQ(hf_pipeline_await(NULL, HF_NOW), HF_INVALID);
    hf_pipeline_close(NULL);
    CHECK_EQ(hf_pipeline_stats(NULL, &(struct hf_pipeline_stats){0}),
             HF_INVALID);
    CHECK_EQ(hf_pipeline_stats(pipeline, NULL), HF_INVALID);
    CHECK_EQ(hf_pipeline_stage_stats(NULL, 1, &(struct hf_stage_stats){0}),
             HF_INVALID);
    CHECK_EQ(hf_pipeline_stage_stats(pipeline, 1, NULL), HF_INVALID);
    hf_pipeline_close(pipeline);
}

TEST(pool)
{
    struct hf_pool *pool;
    struct hf_pool_work work;
    struct hf_future *new_future = NULL;
    struct hf_pool_opts small = {.max_threads = 1};
    CHECK_EQ(hf_pool_open(&pool, &small), HF_OK);
    CHECK_EQ(hf_pool_work_init(&work, pool, task, NULL, NULL), HF_OK);

    CHECK_EQ(hf_pool_open(NULL, &small), HF_INVALID);
    hf_pool_close(NULL);
    CHECK_EQ(hf_pool_submit(NULL, pool_fn, &item, &(struct hf_task_opts){0},
                            &new_future),
             HF_INVALID);
    CHECK_EQ(hf_pool_submit(pool, NULL, &item, &(struct hf_task_opts){0},
                            &new_future),
             HF_INVALID);
    CHECK_EQ(hf_pool_call(NULL, gather_fn, &item, &(struct hf_task_opts){0},
                          &new_future),
             HF_INVALID);
    CHECK_EQ(
        hf_pool_call(pool, NULL, &item, &(struct hf_task_opts){0}, &new_future),
        HF_INVALID);
    CHECK_EQ(hf_pool_work_init(NULL, pool, pool_fn, &item,
                               &(struct hf_task_opts){0}),
             HF_INVALID);
    CHECK_EQ(hf_pool_work_init(&work, NULL, pool_fn, &item,
                               &(struct hf_task_opts){0}),
             HF_INVALID);
    CHECK_EQ(
        hf_pool_work_init(&work, pool, NULL, &item, &(struct hf_task_opts){0}),
        HF_INVALID);
    CHECK_EQ(hf_pool_post(NULL), HF_INVALID);
    hf_pool_shutdown(NULL);
    CHECK_EQ(hf_pool_shutdown_now(NULL, pool_hand_back, &item), 0);
    CHECK_EQ(hf_pool_await(NULL, HF_NOW), HF_INVALID);
    hf_pool_stats(NULL, &(struct hf_pool_stats){0});
    hf_pool_stats(pool, NULL);
    new_future = NULL;
    CHECK(hf_pool_submit(pool, pool_fn, &item, NULL, &new_future) !=
          HF_INVALID);
    if (new_future != NULL)
        hf_future_release(new_future);
    new_future = NULL;
    CHECK(hf_pool_submit(pool, pool_fn, &item, &(struct hf_task_opts){0},
                         NULL) != HF_INVALID);
    CHECK(hf_pool_call(pool, gather_fn, &item, NULL, &new_future) !=
          HF_INVALID);
    if (new_future != NULL)
        hf_future_release(new_future);
    CHECK(hf_pool_call(pool, gather_fn, &item, &(struct hf_task_opts){0},
                       NULL) != HF_INVALID);
    hf_pool_close(pool);
}

TEST(scheduler)
{
    struct hf_scheduler *scheduler;
    struct hf_every every = {.period_ns = 1000000000};
    struct hf_scheduler_opts direct = {.direct = true};
    CHECK_EQ(hf_scheduler_open(&scheduler, &direct), HF_OK);

    CHECK_EQ(hf_scheduler_open(NULL, &direct), HF_INVALID);
    hf_scheduler_close(NULL);
    CHECK_EQ(hf_scheduler_at(NULL, HF_FOREVER - 1, 1, pool_fn, &item,
                             &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_scheduler_at(scheduler, HF_FOREVER - 1, 1, NULL, &item,
                             &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(
        hf_scheduler_at(scheduler, HF_FOREVER - 1, 1, pool_fn, &item, NULL),
        HF_INVALID);
    CHECK_EQ(hf_scheduler_after(NULL, 1000000000000, 1, pool_fn, &item,
                                &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_scheduler_after(scheduler, 1000000000000, 1, NULL, &item,
                                &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_scheduler_every(NULL, &every, pool_fn, &item, &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(
        hf_scheduler_every(scheduler, NULL, pool_fn, &item, &(uint64_t){0}),
        HF_INVALID);
    CHECK_EQ(hf_scheduler_every(scheduler, &every, NULL, &item, &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(
        hf_scheduler_every_after(NULL, &every, pool_fn, &item, &(uint64_t){0}),
        HF_INVALID);
    CHECK_EQ(hf_scheduler_every_after(scheduler, NULL, pool_fn, &item,
                                      &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_scheduler_every_after(scheduler, &every, NULL, &item,
                                      &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_scheduler_cancel(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_scheduler_join(NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_scheduler_pending(NULL), 0);
    CHECK(hf_scheduler_next_ns(NULL) == UINT64_MAX);
    hf_scheduler_shutdown(NULL);
    CHECK_EQ(hf_scheduler_shutdown_now(NULL, pool_hand_back, &item), 0);
    CHECK_EQ(hf_scheduler_await(NULL, HF_NOW), HF_INVALID);
    hf_scheduler_stats(NULL, &(struct hf_scheduler_stats){0});
    hf_scheduler_stats(scheduler, NULL);
    CHECK(hf_scheduler_after(scheduler, 1000000000000, 1, pool_fn, &item,
                             NULL) != HF_INVALID);
    CHECK(hf_scheduler_every(scheduler, &every, pool_fn, &item, NULL) !=
          HF_INVALID);
    CHECK(hf_scheduler_every_after(scheduler, &every, pool_fn, &item, NULL) !=
          HF_INVALID);
    hf_scheduler_close(scheduler);
}
