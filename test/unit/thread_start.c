/* thread_start.c - the system has no room for another thread: whoever needs
 * one fails cleanly, or works with those it has, as its header says.
 *
 * Every start of a thread fails in its turn. What was begun is undone, which
 * the address sanitizer's search for leaks sees, and nothing is left listed. */
#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/batcher.h"
#include "holdfast/forkjoin.h"
#include "holdfast/log.h"
#include "holdfast/pipeline.h"
#include "holdfast/pool.h"
#include "holdfast/scheduler.h"
#include "support/test.h"

#define THREADS 4
#define TASKS   100

static struct hf_atomic_u64 runs;

static int run(void *arg)
{
    (void)arg;
    hf_u64_add(&runs, 1, __ATOMIC_RELAXED);
    return 0;
}

static void submit_all(struct hf_pool *pool)
{
    struct hf_future *futures[TASKS];

    hf_u64_store(&runs, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(hf_pool_submit(pool, run, NULL, NULL, &futures[i]), HF_OK);
    for (int i = 0; i < TASKS; i++) {
        CHECK_EQ(hf_future_get(futures[i], HF_FOREVER, NULL), HF_OK);
        hf_future_release(futures[i]);
    }
    CHECK_EQ(hf_u64_load(&runs, __ATOMIC_RELAXED), TASKS);
}

TEST(a_fixed_pool_has_all_its_threads_or_is_not_opened)
{
    struct hf_pool_opts opts = {.kind = HF_POOL_FIXED, .max_threads = THREADS};
    struct hf_pool *pool = NULL;

    for (uint64_t i = 0; i < THREADS; i++) {
        hf_thread_fail_after(i);
        CHECK_EQ(hf_pool_open(&pool, &opts), HF_NOMEM);
        hf_thread_fail_never();
        CHECK(pool == NULL);
    }
    hf_thread_fail_after(THREADS); /* exactly those it needs */
    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
    submit_all(pool);
    hf_thread_fail_never();
    hf_pool_close(pool);
}

TEST(a_dynamic_pool_works_with_the_threads_it_has)
{
    struct hf_pool_opts opts = {
        .kind = HF_POOL_DYNAMIC, .max_threads = THREADS, .grow_depth = 1};
    struct hf_pool_stats stats;
    struct hf_pool *pool = NULL;

    hf_thread_fail_after(0);
    CHECK_EQ(hf_pool_open(&pool, &opts), HF_NOMEM);
    CHECK(pool == NULL);
    hf_thread_fail_after(1);
    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
    submit_all(pool); /* wants to grow all the time */
    hf_pool_stats(pool, &stats);
    CHECK_EQ(stats.threads, 1);
    CHECK_EQ(stats.completed, TASKS);
    CHECK_EQ(stats.rejected, 0);
    hf_thread_fail_never();
    hf_pool_close(pool);
}

TEST(a_cached_pool_without_a_thread_refuses_and_with_one_goes_on)
{
    struct hf_pool_opts opts = {.kind = HF_POOL_CACHED, .max_threads = THREADS};
    struct hf_pool_stats stats;
    struct hf_pool_work work;
    struct hf_pool *pool = NULL;
    struct hf_future *future = NULL;

    hf_u64_store(&runs, 0, __ATOMIC_RELAXED);
    hf_thread_fail_after(0);
    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK); /* it starts with none */
    CHECK_EQ(hf_pool_submit(pool, run, NULL, NULL, &future), HF_NOMEM);
    CHECK(future == NULL);
    CHECK_EQ(hf_pool_submit(pool, run, NULL, NULL, NULL), HF_NOMEM);
    CHECK_EQ(hf_pool_work_init(&work, pool, run, NULL, NULL), HF_OK);
    CHECK_EQ(hf_pool_post(&work), HF_NOMEM);
    hf_pool_stats(pool, &stats);
    CHECK_EQ(stats.threads, 0);
    CHECK_EQ(stats.queued, 0);
    hf_thread_fail_after(1); /* one, and no more */
    submit_all(pool);
    hf_pool_stats(pool, &stats);
    CHECK_EQ(stats.threads, 1);
    CHECK_EQ(stats.completed, TASKS); /* what was refused never ran */
    hf_thread_fail_never();
    hf_pool_close(pool);
}

TEST(a_scheduler_without_its_thread_is_not_opened)
{
    struct hf_scheduler *scheduler = NULL;

    (void)hf_pool_default(); /* not the one that is missing */
    for (int direct = 0; direct <= 1; direct++) {
        struct hf_scheduler_opts opts = {.direct = direct};
        hf_thread_fail_after(0);
        CHECK_EQ(hf_scheduler_open(&scheduler, &opts), HF_NOMEM);
        hf_thread_fail_never();
        CHECK(scheduler == NULL);
        CHECK_EQ(hf_scheduler_open(&scheduler, &opts), HF_OK);
        hf_scheduler_close(scheduler);
        scheduler = NULL;
    }
}

static struct hf_atomic_u64 drops;

static void note_drop(void *context, const struct hf_scheduler_note *note)
{
    (void)context;
    CHECK_EQ(note->event, HF_SCHEDULER_DROPPED);
    CHECK_EQ(note->status, HF_NOMEM);
    hf_u64_add(&drops, 1, __ATOMIC_RELAXED);
}

/* Called by the scheduler's thread, when the pool has taken its first run. */
static void fail_from_now(void *context, const struct hf_pool_note *note)
{
    (void)context;
    if (note->event == HF_POOL_SUBMITTED)
        hf_thread_fail_after(0);
}

static void await_no_thread(struct hf_pool *pool)
{
    struct hf_pool_stats stats;

    do {
        hf_thread_yield();
        hf_pool_stats(pool, &stats);
    } while (stats.threads > 0 || stats.completed == 0);
}

TEST(a_run_for_which_no_thread_can_be_had_is_dropped_and_told)
{
    struct hf_pool_opts pool_opts = {
        .kind = HF_POOL_CACHED, .idle_ns = 1, .observe = fail_from_now};
    struct hf_scheduler_opts opts = {.observe = note_drop};
    struct hf_scheduler_stats stats;
    struct hf_scheduler *scheduler = NULL;

    hf_u64_store(&runs, 0, __ATOMIC_RELAXED);
    CHECK_EQ(hf_pool_open(&opts.pool, &pool_opts), HF_OK);
    CHECK_EQ(hf_scheduler_open(&scheduler, &opts), HF_OK);
    CHECK_EQ(hf_scheduler_after(scheduler, 0, 0, run, NULL, NULL), HF_OK);
    await_no_thread(opts.pool);
    CHECK_EQ(hf_scheduler_after(scheduler, 0, 0, run, NULL, NULL), HF_OK);
    hf_scheduler_shutdown(scheduler);
    CHECK_EQ(hf_scheduler_await(scheduler, HF_FOREVER), HF_OK);
    hf_scheduler_stats(scheduler, &stats);
    CHECK_EQ(stats.dropped, 1);
    CHECK_EQ(hf_u64_load(&runs, __ATOMIC_RELAXED), 1);
    hf_scheduler_close(scheduler); /* observers have been told then */
    CHECK_EQ(hf_u64_load(&drops, __ATOMIC_RELAXED), 1);
    hf_pool_close(opts.pool);
}

/* ---- The others. ---- */

static void count_task(struct hf_forkjoin_worker *worker, void *arg)
{
    (void)worker;
    (void)run(arg);
}

TEST(a_forkjoin_has_all_its_threads_or_is_not_opened)
{
    struct hf_forkjoin_opts opts = {.threads = THREADS};
    struct hf_forkjoin *forkjoin = NULL;

    for (uint64_t i = 0; i < THREADS - 1; i++) { /* the caller is the last */
        hf_thread_fail_after(i);
        CHECK_EQ(hf_forkjoin_open(&forkjoin, &opts), HF_NOMEM);
        CHECK(forkjoin == NULL);
    }
    hf_thread_fail_after(THREADS - 1);
    hf_u64_store(&runs, 0, __ATOMIC_RELAXED);
    CHECK_EQ(hf_forkjoin_open(&forkjoin, &opts), HF_OK);
    CHECK_EQ(hf_forkjoin_run(forkjoin, count_task, NULL), HF_OK);
    CHECK_EQ(hf_u64_load(&runs, __ATOMIC_RELAXED), 1);
    hf_thread_fail_never();
    hf_forkjoin_close(forkjoin);
}

static int pass_on(void *context, void *item, void **result)
{
    (void)context;
    *result = item;
    return run(NULL);
}

TEST(a_pipeline_that_cannot_be_started_can_be_tried_again)
{
    struct hf_stage_opts opts = {.work = pass_on, .workers = 2};
    struct hf_pipeline *pipeline = NULL;
    uint32_t first;
    uint32_t second;
    int item;

    CHECK_EQ(hf_pipeline_open(&pipeline, NULL), HF_OK);
    CHECK_EQ(hf_pipeline_stage(pipeline, &opts, &first), HF_OK);
    CHECK_EQ(hf_pipeline_stage(pipeline, &opts, &second), HF_OK);
    CHECK_EQ(hf_pipeline_link(pipeline, first, second), HF_OK);
    for (uint64_t i = 0; i < 4; i++) {
        hf_thread_fail_after(i);
        CHECK_EQ(hf_pipeline_start(pipeline), HF_NOMEM);
        CHECK_EQ(hf_pipeline_put(pipeline, first, &item, HF_FOREVER),
                 HF_INVALID);
    }
    hf_thread_fail_after(4);
    CHECK_EQ(hf_pipeline_start(pipeline), HF_OK);
    hf_thread_fail_never();
    hf_u64_store(&runs, 0, __ATOMIC_RELAXED);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(hf_pipeline_put(pipeline, first, &item, HF_FOREVER), HF_OK);
    hf_pipeline_shutdown(pipeline);
    CHECK_EQ(hf_pipeline_await(pipeline, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_u64_load(&runs, __ATOMIC_RELAXED), 2 * TASKS);
    hf_pipeline_close(pipeline);
}

TEST(a_pipeline_that_was_never_started_for_want_of_threads_closes)
{
    struct hf_stage_opts opts = {.work = pass_on, .workers = 3};
    struct hf_pipeline *pipeline = NULL;
    uint32_t stage;

    CHECK_EQ(hf_pipeline_open(&pipeline, NULL), HF_OK);
    CHECK_EQ(hf_pipeline_stage(pipeline, &opts, &stage), HF_OK);
    hf_thread_fail_after(2);
    CHECK_EQ(hf_pipeline_start(pipeline), HF_NOMEM);
    hf_thread_fail_never();
    hf_pipeline_close(pipeline);
}

static int handle(void *context, void *const *items, size_t count)
{
    (void)context;
    (void)items;
    hf_u64_add(&runs, count, __ATOMIC_RELAXED);
    return 0;
}

TEST(a_batcher_without_its_thread_is_not_opened)
{
    struct hf_batcher *batcher = NULL;
    int item;

    for (uint32_t shards = 1; shards <= 4; shards++) {
        struct hf_batcher_opts opts = {.handle = handle, .shards = shards};
        hf_thread_fail_after(0);
        CHECK_EQ(hf_batcher_open(&batcher, &opts), HF_NOMEM);
        CHECK(batcher == NULL);
        hf_thread_fail_after(1); /* one is enough for all shards */
        hf_u64_store(&runs, 0, __ATOMIC_RELAXED);
        CHECK_EQ(hf_batcher_open(&batcher, &opts), HF_OK);
        CHECK_EQ(hf_batcher_add(batcher, &item, HF_FOREVER), HF_OK);
        hf_thread_fail_never();
        hf_batcher_close(batcher);
        CHECK_EQ(hf_u64_load(&runs, __ATOMIC_RELAXED), 1);
        batcher = NULL;
    }
}

static int drop_lines(void *context, const void *data, size_t len)
{
    (void)context;
    (void)data;
    (void)len;
    return 0;
}

/* Also as often as there are places for logs that write when all crashes. */
TEST(a_log_without_its_thread_is_not_opened)
{
    struct hf_log_opts opts = {.sink = drop_lines, .crash = true};
    struct hf_log *log = NULL;

    for (unsigned i = 0; i <= 2 * HF_LOG_CRASH_MAX; i++) {
        hf_thread_fail_after(0);
        CHECK_EQ(hf_log_open(&log, &opts), HF_NOMEM);
        CHECK(log == NULL);
    }
    hf_thread_fail_never();
    CHECK_EQ(hf_log_open(&log, &opts), HF_OK);
    hf_log_write(log, HF_LOG_INFO, "here");
    CHECK_EQ(hf_log_flush(log, HF_FOREVER), HF_OK);
    hf_log_close(log);
}
