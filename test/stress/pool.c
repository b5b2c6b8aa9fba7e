/* pool.c - pools under real threads: every task once, whatever happens.
 * tests: also under sanitizers
 */
#include "holdfast/pool.h"

#include <sched.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/test.h"
#include "support/threads.h"

/* How much of the work is done: a sanitizer makes it slow. */
static uint32_t share(uint32_t work, uint32_t part)
{
    const char *san = getenv("HOLDFAST_SAN");
    return san != NULL && *san != '\0' ? work / part : work;
}

static struct hf_pool *pool;
static struct hf_atomic_u32 *ran; /* by task */

static int once(void *arg)
{
    hf_u32_add(&ran[(uintptr_t)arg], 1, __ATOMIC_RELAXED);
    return 0;
}

static void open_pool(struct hf_pool_opts opts)
{
    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
}

static struct hf_pool_stats finish(void)
{
    struct hf_pool_stats s;

    hf_pool_shutdown(pool);
    CHECK_EQ(hf_pool_await(pool, HF_FOREVER), HF_OK);
    hf_pool_stats(pool, &s);
    CHECK_EQ(s.queued + s.active + s.threads, 0);
    CHECK_EQ(s.submitted,
             s.completed + s.failed + s.cancelled + s.discarded + s.returned);
    hf_pool_close(pool);
    return s;
}

/* ---- Ten million. ---- */

#define SUBMITTERS 2

static void submit_many(void *context, int index)
{
    uintptr_t count = *(uint32_t *)context;

    for (uintptr_t i = (uintptr_t)index; i < count; i += SUBMITTERS)
        if (hf_pool_submit(pool, once, (void *)i, NULL, NULL) != HF_OK)
            hf_u32_add(&ran[i], 100, __ATOMIC_RELAXED);
}

static void run_many(struct hf_pool_opts opts, uint32_t count)
{
    ran = calloc(count, sizeof *ran);
    CHECK(ran != NULL);
    opts.reject = HF_POOL_BLOCK;
    open_pool(opts);
    test_threads(SUBMITTERS, submit_many, &count);
    struct hf_pool_stats s = finish();
    CHECK_EQ(s.completed, count);
    CHECK(s.threads_peak <= opts.max_threads);
    for (uint32_t i = 0; i < count; i++)
        CHECK_EQ(hf_u32_load(&ran[i], __ATOMIC_RELAXED), 1);
    free(ran);
}

TEST(ten_million_tasks_run_once)
{
    run_many((struct hf_pool_opts){.max_threads = 3}, share(10000000, 100));
}

TEST(cached_and_dynamic_pools_run_each_task_once)
{
    run_many((struct hf_pool_opts){.kind = HF_POOL_CACHED,
                                   .max_threads = 4,
                                   .idle_ns = 1000},
             share(300000, 10));
    run_many((struct hf_pool_opts){.kind = HF_POOL_DYNAMIC,
                                   .max_threads = 4,
                                   .queue_max = 16,
                                   .idle_ns = 1000},
             share(300000, 10));
}

/* ---- Works: few, posted by many, again and again. ---- */

#define WORKS   8
#define POSTERS 32

struct job {
    struct hf_pool_work work;
    struct hf_atomic_u64 to_do; /* posts that have not been seen by a run */
    struct hf_atomic_u64 done;
    struct hf_atomic_u64 accepted;
    struct hf_atomic_u64 runs;
};

static struct job jobs[WORKS];

static int do_job(void *arg)
{
    struct job *job = arg;

    hf_u64_add(&job->done, hf_u64_swap(&job->to_do, 0, __ATOMIC_ACQ_REL),
               __ATOMIC_RELAXED);
    hf_u64_add(&job->runs, 1, __ATOMIC_RELAXED);
    return 0;
}

static void post_many(void *context, int index)
{
    uint32_t count = *(uint32_t *)context;

    for (uint32_t i = 0; i < count; i++) {
        struct job *job = &jobs[(i + (unsigned)index) % WORKS];
        hf_u64_add(&job->to_do, 1, __ATOMIC_RELAXED);
        enum hf_status status = hf_pool_post(&job->work);
        if (status == HF_OK)
            hf_u64_add(&job->accepted, 1, __ATOMIC_RELAXED);
        else if (status != HF_EXISTS)
            hf_u64_add(&job->done, 1000000, __ATOMIC_RELAXED); /* wrong */
    }
}

static void run_posts(struct hf_pool_opts opts)
{
    uint32_t each = share(20000, 20);
    uint64_t done = 0;
    uint64_t accepted = 0;

    opts.reject = HF_POOL_BLOCK;
    open_pool(opts);
    for (uint32_t i = 0; i < WORKS; i++) {
        const struct hf_task_opts task = {.priority = i % 4 + 1};
        jobs[i] = (struct job){0};
        CHECK_EQ(
            hf_pool_work_init(&jobs[i].work, pool, do_job, &jobs[i], &task),
            HF_OK);
    }
    test_threads(POSTERS, post_many, &each);
    struct hf_pool_stats s = finish();
    for (uint32_t i = 0; i < WORKS; i++) {
        done += hf_u64_load(&jobs[i].done, __ATOMIC_RELAXED);
        accepted += hf_u64_load(&jobs[i].accepted, __ATOMIC_RELAXED);
        CHECK_EQ(hf_u64_load(&jobs[i].runs, __ATOMIC_RELAXED),
                 hf_u64_load(&jobs[i].accepted, __ATOMIC_RELAXED));
    }
    CHECK_EQ(done, (uint64_t)each * POSTERS);
    CHECK_EQ(s.completed, accepted);
}

TEST(every_post_is_seen_by_a_run)
{
    run_posts((struct hf_pool_opts){.kind = HF_POOL_SINGLE});
    run_posts((struct hf_pool_opts){.max_threads = 4, .queue_max = 3});
    run_posts((struct hf_pool_opts){
        .kind = HF_POOL_CACHED, .max_threads = 4, .idle_ns = 1000});
}

/* ---- Everything at once. ---- */

#define CHAOS_THREADS 4

struct chaos {
    uint32_t each; /* tasks per thread */
    uint64_t seed;
    struct hf_atomic_u32 accepted;
    struct hf_atomic_u32 cancelled;
    struct hf_atomic_u32 tasks;
    struct hf_atomic_u32 inside;
    struct hf_atomic_u32 back;
};

static struct chaos chaos;

static int leaf(void *arg)
{
    (void)arg;
    hf_u32_add(&chaos.tasks, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Some fail, some submit, some wait for what they submit. */
static int mixed(void *arg)
{
    uintptr_t draw = (uintptr_t)arg;
    struct hf_future *future = NULL;

    hf_u32_add(&chaos.tasks, 1, __ATOMIC_RELAXED);
    if (draw % 4 == 0)
        return 1;
    if (draw % 4 == 1)
        return 0;
    if (hf_pool_submit(pool, leaf, NULL, NULL, &future) != HF_OK)
        return 0;
    hf_u32_add(&chaos.accepted, 1, __ATOMIC_RELAXED);
    if (draw % 4 == 2)
        (void)hf_future_get(future, HF_FOREVER, NULL);
    hf_future_release(future);
    return 0;
}

static void note_back(void *context, void *arg)
{
    (void)context;
    (void)arg;
    hf_u32_add(&chaos.back, 1, __ATOMIC_RELAXED);
}

static void chaos_body(void *context, int index)
{
    bool now = *(bool *)context;
    struct hf_random random;

    hf_random_init(&random, chaos.seed + (unsigned)index);
    for (uint32_t i = 0; i < chaos.each; i++) {
        uintptr_t draw = hf_random_below(&random, 1000);
        struct hf_future *future = NULL;
        struct hf_task_opts opts = {.priority = (uint32_t)(draw % 5)};
        if (index == 0 && i == chaos.each / 2) {
            if (now)
                (void)hf_pool_shutdown_now(pool, note_back, NULL);
            else
                hf_pool_shutdown(pool);
        }
        enum hf_status status = hf_pool_submit(pool, mixed, (void *)draw, &opts,
                                               draw % 3 == 0 ? &future : NULL);
        if (status != HF_OK)
            continue;
        hf_u32_add(&chaos.accepted, 1, __ATOMIC_RELAXED);
        if (future != NULL && draw % 2 == 0 &&
            hf_future_cancel(future) == HF_OK)
            hf_u32_add(&chaos.cancelled, 1, __ATOMIC_RELAXED);
        hf_future_release(future);
    }
}

static void run_chaos(struct hf_pool_opts opts, bool now)
{
    for (uint32_t round = 0; round < share(60, 6); round++) {
        chaos = (struct chaos){.each = 300,
                               .seed = test_seed() + round * CHAOS_THREADS};
        opts.idle_ns = 1000;
        opts.max_threads = 3;
        open_pool(opts);
        test_threads(CHAOS_THREADS, chaos_body, &now);
        struct hf_pool_stats s = finish();
        CHECK_EQ(s.completed + s.failed,
                 hf_u32_load(&chaos.tasks, __ATOMIC_RELAXED));
        CHECK_EQ(s.submitted, hf_u32_load(&chaos.accepted, __ATOMIC_RELAXED));
        CHECK_EQ(s.returned, hf_u32_load(&chaos.back, __ATOMIC_RELAXED));
        CHECK_EQ(s.cancelled, hf_u32_load(&chaos.cancelled, __ATOMIC_RELAXED));
        CHECK(s.threads_peak <= 3);
    }
}

TEST(shutdown_in_the_middle_of_everything)
{
    static const enum hf_pool_kind kinds[] = {HF_POOL_FIXED, HF_POOL_CACHED,
                                              HF_POOL_DYNAMIC};
    static const enum hf_pool_reject policies[] = {HF_POOL_ABORT, HF_POOL_BLOCK,
                                                   HF_POOL_CALLER_RUNS,
                                                   HF_POOL_DISCARD_OLDEST};

    for (unsigned i = 0; i < 12; i++)
        run_chaos((struct hf_pool_opts){.kind = kinds[i % 3],
                                        .queue_max = 8,
                                        .reject = policies[i / 3]},
                  i % 2 == 0);
}

/* ---- Sizes in real time. ---- */

TEST(a_dynamic_pool_grows_and_shrinks_in_real_time)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);
    struct hf_pool_stats s;

    open_pool((struct hf_pool_opts){.kind = HF_POOL_DYNAMIC,
                                    .min_threads = 1,
                                    .max_threads = 4,
                                    .queue_max = 64,
                                    .reject = HF_POOL_BLOCK,
                                    .idle_ns = 1000000});
    for (uint32_t round = 0; round < share(20, 4); round++) {
        chaos = (struct chaos){0};
        for (uint32_t i = 0; i < 2000; i++)
            CHECK_EQ(
                hf_pool_submit(pool, mixed, (void *)(uintptr_t)i, NULL, NULL),
                HF_OK);
        do {
            hf_pool_stats(pool, &s);
            CHECK(s.threads >= 1 && s.threads <= 4);
            CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
            sched_yield();
        } while (s.threads > 1 || s.queued + s.active > 0);
    }
    hf_pool_stats(pool, &s);
    CHECK(s.threads_peak >= 2);
    (void)finish();
}
