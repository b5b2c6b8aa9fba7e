/* scheduler.c - a million timers, and many threads at one scheduler.
 *
 * tests: also under sanitizers
 */
#include "holdfast/scheduler.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/clock.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 8
#define MILLION 1000000u

static bool slow_build(void)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0';
}

/* ---- A million pending. ---- */

struct plan {
    uint64_t when_ns;
    uint64_t id;
    int priority;
    bool cancelled;
};

static struct {
    struct plan *plans;
    uint32_t *order; /* numbers of plans, as they ran */
    struct hf_atomic_u32 ran;
} many;

static int note(void *arg)
{
    const struct plan *plan = arg;
    uint32_t ran = hf_u32_load(&many.ran, __ATOMIC_RELAXED);

    many.order[ran] = (uint32_t)(plan - many.plans);
    /* Release: the order so far. */
    hf_u32_store(&many.ran, ran + 1, __ATOMIC_RELEASE);
    return 0;
}

/* `a` goes before `b`: plans were submitted in the order of their numbers. */
static bool goes_before(const struct plan *a, const struct plan *b)
{
    if (a->when_ns != b->when_ns)
        return a->when_ns < b->when_ns;
    return a->priority != b->priority ? a->priority < b->priority : a < b;
}

/* Times collide, so that priority and submission decide often. */
static void submit_many(struct hf_scheduler *scheduler, uint32_t count)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (uint32_t i = 0; i < count; i++) {
        struct plan *plan = &many.plans[i];
        plan->when_ns = 1000 + hf_random_below(&random, count / 4);
        plan->priority = (int)hf_random_below(&random, 3) - 1;
        plan->cancelled = hf_random_below(&random, 3) != 0;
        CHECK_EQ(hf_scheduler_at(scheduler, plan->when_ns, plan->priority, note,
                                 plan, &plan->id),
                 HF_OK);
    }
}

TEST(a_million_wait_most_are_cancelled_the_rest_run_in_exact_order)
{
    uint32_t count = slow_build() ? MILLION / 5 : MILLION;
    struct test_clock clock = {.now_ns = 1};
    struct hf_scheduler *scheduler;
    const struct hf_scheduler_opts opts = {.direct = true,
                                           .clock = test_clock(&clock)};
    uint32_t cancelled = 0;

    memset(&many, 0, sizeof many);
    many.plans = calloc(count, sizeof *many.plans);
    many.order = calloc(count, sizeof *many.order);
    CHECK(many.plans != NULL && many.order != NULL);
    CHECK_EQ(hf_scheduler_open(&scheduler, &opts), HF_OK);
    submit_many(scheduler, count);
    CHECK_EQ(hf_scheduler_pending(scheduler), count);
    for (uint32_t i = 0; i < count; i++) {
        if (!many.plans[i].cancelled)
            continue;
        CHECK_EQ(hf_scheduler_cancel(scheduler, many.plans[i].id), HF_OK);
        cancelled++;
    }
    CHECK_EQ(hf_scheduler_pending(scheduler), count - cancelled);
    hf_scheduler_shutdown(scheduler);
    test_clock_advance(&clock, 1000 + count);
    CHECK_EQ(hf_scheduler_await(scheduler, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_u32_load(&many.ran, __ATOMIC_ACQUIRE), count - cancelled);
    for (uint32_t i = 0; i < count - cancelled; i++) {
        const struct plan *plan = &many.plans[many.order[i]];
        CHECK(!plan->cancelled);
        if (i > 0)
            CHECK(goes_before(&many.plans[many.order[i - 1]], plan));
    }
    hf_scheduler_close(scheduler);
    free(many.plans);
    free(many.order);
}

/* ---- Many threads. ---- */

/* What a task was told to be, and what became of it. */
struct job {
    struct hf_atomic_u32 runs;
    uint32_t cancelled; /* by its thread: 1 for certain, 2 it was running */
    uint64_t when_ns;
};

static struct {
    struct hf_scheduler *scheduler;
    struct job *jobs; /* of all threads */
    uint32_t each;
    uint64_t seed;
    struct hf_atomic_u64 errors;
    struct hf_atomic_u64 again; /* runs of periodic tasks */
} mix;

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&mix.errors, 1, __ATOMIC_RELAXED);
}

static int do_job(void *arg)
{
    struct job *job = arg;

    expect(hf_clock_now_ns(hf_clock_system()) >= job->when_ns);
    hf_u32_add(&job->runs, 1, __ATOMIC_RELAXED);
    return 0;
}

static int do_again(void *arg)
{
    struct hf_atomic_u32 *inside = arg;

    expect(hf_u32_add(inside, 1, __ATOMIC_RELAXED) == 0); /* no overlap */
    hf_u64_add(&mix.again, 1, __ATOMIC_RELAXED);
    sched_yield();
    hf_u32_sub(inside, 1, __ATOMIC_RELAXED);
    return 0;
}

/* Periodic tasks come and go meanwhile; when join is back, none runs. */
static void come_and_go(struct hf_random *random)
{
    struct hf_atomic_u32 inside = {0};
    const struct hf_every plan = {
        .period_ns = 1 + hf_random_below(random, 20000),
        .first_ns = hf_clock_now_ns(hf_clock_system())};
    uint64_t id;

    expect((hf_random_below(random, 2) ? hf_scheduler_every
                                       : hf_scheduler_every_after)(
               mix.scheduler, &plan, do_again, &inside, &id) == HF_OK);
    for (uint64_t i = hf_random_below(random, 20); i > 0; i--)
        sched_yield();
    enum hf_status status = hf_scheduler_cancel(mix.scheduler, id);
    expect(status == HF_OK || status == HF_PENDING);
    if (status == HF_PENDING)
        expect(hf_scheduler_join(mix.scheduler, id, HF_FOREVER) == HF_OK);
    /* `inside` is on this stack and goes now. */
    expect(hf_u32_load(&inside, __ATOMIC_RELAXED) == 0);
}

static void mix_body(void *context, int index)
{
    struct hf_random random;
    struct job *jobs = mix.jobs + (size_t)index * mix.each;

    (void)context;
    hf_random_init(&random, mix.seed + (uint64_t)index);
    for (uint32_t i = 0; i < mix.each; i++) {
        struct job *job = &jobs[i];
        uint64_t id;
        job->when_ns = hf_clock_now_ns(hf_clock_system()) +
                       hf_random_below(&random, 3000000);
        expect(hf_scheduler_at(mix.scheduler, job->when_ns,
                               (int)hf_random_below(&random, 5), do_job, job,
                               &id) == HF_OK);
        if (i % 64 == 0)
            come_and_go(&random);
        if (hf_random_below(&random, 3) > 0)
            continue;
        enum hf_status status = hf_scheduler_cancel(mix.scheduler, id);
        expect(status == HF_OK || status == HF_PENDING ||
               status == HF_NOTFOUND);
        job->cancelled = status == HF_OK;
    }
}

static void run_mix(struct hf_scheduler_opts opts, uint64_t seed)
{
    struct hf_scheduler_stats stats;
    uint32_t cancelled = 0;

    memset(&mix, 0, sizeof mix);
    mix.seed = seed;
    mix.each = slow_build() ? 1500 : 10000;
    mix.jobs = calloc((size_t)THREADS * mix.each, sizeof *mix.jobs);
    CHECK(mix.jobs != NULL);
    CHECK_EQ(hf_scheduler_open(&mix.scheduler, &opts), HF_OK);
    test_threads(THREADS, mix_body, NULL);
    hf_scheduler_shutdown(mix.scheduler);
    CHECK_EQ(hf_scheduler_await(mix.scheduler,
                                hf_clock_after_ms(hf_clock_system(), 60000)),
             HF_OK);
    for (uint32_t i = 0; i < THREADS * mix.each; i++) {
        cancelled += mix.jobs[i].cancelled;
        CHECK_EQ(hf_u32_load(&mix.jobs[i].runs, __ATOMIC_RELAXED),
                 !mix.jobs[i].cancelled);
    }
    hf_scheduler_stats(mix.scheduler, &stats);
    CHECK_EQ(hf_u64_load(&mix.errors, __ATOMIC_RELAXED), 0);
    CHECK_EQ(stats.fired, THREADS * mix.each - cancelled +
                              hf_u64_load(&mix.again, __ATOMIC_RELAXED));
    CHECK_EQ(stats.scheduled, stats.ended + stats.cancelled);
    CHECK_EQ(stats.dropped, 0);
    CHECK_EQ(stats.pending + stats.active, 0);
    printf("%llu runs, %u cancelled, late p50 %llu p99 %llu max %llu us\n",
           (unsigned long long)stats.fired, cancelled,
           (unsigned long long)stats.late_p50_ns / 1000,
           (unsigned long long)stats.late_p99_ns / 1000,
           (unsigned long long)stats.late_max_ns / 1000);
    hf_scheduler_close(mix.scheduler);
    free(mix.jobs);
}

TEST(threads_schedule_and_cancel_and_each_task_runs_once_directly)
{
    run_mix((struct hf_scheduler_opts){.direct = true}, test_seed());
}

TEST(threads_schedule_and_cancel_and_each_task_runs_once_on_a_pool)
{
    struct hf_pool *pool;
    const struct hf_pool_opts opts = {.max_threads = 3,
                                      .queue_max = HF_POOL_QUEUE_UNBOUNDED};

    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
    run_mix((struct hf_scheduler_opts){.pool = pool}, test_seed() + 1);
    hf_pool_close(pool);
}

/* ---- The end, again and again. ---- */

static int count_run(void *arg)
{
    hf_u32_add(arg, 1, __ATOMIC_RELAXED);
    return 0;
}

static void count_back(void *context, void *arg)
{
    (void)arg;
    ++*(uint32_t *)context;
}

/* Whoever runs the last task leaves while the scheduler is being freed. */
TEST(close_while_the_pool_runs_the_last_tasks)
{
    struct hf_pool *pool;
    int rounds = slow_build() ? 400 : 4000;

    CHECK_EQ(hf_pool_open(&pool, &(struct hf_pool_opts){.max_threads = 2}),
             HF_OK);
    for (int i = 0; i < rounds; i++) {
        const struct hf_scheduler_opts opts = {.pool = pool};
        const struct hf_every plan = {.first_ns = 1, .period_ns = 1000};
        struct hf_scheduler *scheduler;
        struct hf_atomic_u32 runs = {0};
        struct hf_atomic_u32 more = {0};
        uint32_t returned = 0;
        CHECK_EQ(hf_scheduler_open(&scheduler, &opts), HF_OK);
        for (int task = 0; task < 8; task++)
            CHECK_EQ(hf_scheduler_after(scheduler, (uint64_t)task * 2000, 0,
                                        count_run, &runs, NULL),
                     HF_OK);
        CHECK_EQ(hf_scheduler_every(scheduler, &plan, count_run, &more, NULL),
                 HF_OK);
        hf_scheduler_shutdown_now(scheduler, count_back, &returned);
        hf_scheduler_close(scheduler);
        CHECK_EQ(hf_u32_load(&runs, __ATOMIC_RELAXED) + returned, 8);
    }
    hf_pool_close(pool);
}
