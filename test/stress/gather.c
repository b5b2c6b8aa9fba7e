/* gather.c - real threads, many gathers on one pool.
 *
 * tests: also under sanitizers
 *
 * Every result is shown or dropped, once. Whoever is not woken leaves the run
 * hanging, and it is stopped as failed.
 */
#include "holdfast/gather.h"

#include <sched.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 4
#define TASKS   12

static struct {
    struct hf_pool *pool;
    struct hf_gather *gather; /* of all threads */
    struct hf_atomic_u64 errors;
    struct hf_atomic_u64 made, over; /* results */
    uint32_t rounds;
} test;

static uint32_t scaled(uint32_t count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 8 : count;
}

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
}

static void begin(uint32_t threads, uint32_t rounds)
{
    struct hf_pool_opts opts = {.max_threads = threads};

    memset(&test, 0, sizeof test);
    test.rounds = rounds;
    CHECK_EQ(hf_pool_open(&test.pool, &opts), HF_OK);
}

static void end(void)
{
    hf_pool_close(test.pool);
    CHECK_EQ(hf_u64_load(&test.errors, __ATOMIC_RELAXED), 0);
    CHECK_EQ(hf_u64_load(&test.made, __ATOMIC_RELAXED),
             hf_u64_load(&test.over, __ATOMIC_RELAXED));
}

/* ---- Results on the heap: a leak or a second free is seen. ---- */

static int make(void *arg, void **result)
{
    uintptr_t kind = (uintptr_t)arg;

    if (kind == 0)
        return 1;
    if (kind == 1)
        sched_yield();
    *result = malloc(1);
    hf_u64_add(&test.made, 1, __ATOMIC_RELAXED);
    return 0;
}

static void drop(void *context, void *result)
{
    (void)context;
    free(result);
    hf_u64_add(&test.over, 1, __ATOMIC_RELAXED);
}

static void *take(void *context, void *so_far, void *result)
{
    (void)so_far;
    drop(context, result);
    return NULL;
}

static void own_round(struct hf_random *random)
{
    const struct hf_clock *clock = hf_clock_system();
    struct hf_gather_opts opts = {
        .pool = test.pool, .need = hf_random_below(random, 4), .drop = drop};
    struct hf_gather *gather;
    struct hf_gather_stats stats;

    expect(hf_gather_open(&gather, &opts) == HF_OK);
    for (int i = 0; i < TASKS; i++)
        expect(hf_gather_add(gather, make,
                             (void *)(uintptr_t)hf_random_below(random, 8)) ==
               HF_OK);
    uint64_t deadline_ns =
        hf_random_below(random, 2)
            ? HF_FOREVER
            : hf_clock_now_ns(clock) + hf_random_below(random, 50000);
    enum hf_status status = hf_gather_wait(gather, deadline_ns);
    expect(status == HF_OK || status == HF_FAILED ||
           (status == HF_TIMEOUT && deadline_ns != HF_FOREVER));
    hf_gather_stats(gather, &stats);
    expect(stats.added == TASKS);
    expect(status != HF_OK || stats.succeeded >= opts.need);
    if (hf_random_below(random, 2))
        (void)hf_gather_cancel(gather);
    if (hf_random_below(random, 2)) /* what comes after it is dropped */
        (void)hf_gather_merge(gather, take, NULL, NULL);
    hf_gather_close(gather);
}

static void own_body(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (uint32_t i = 0; i < test.rounds; i++)
        own_round(&random);
}

TEST(every_result_is_shown_or_dropped)
{
    begin(3, scaled(4000));
    test_threads(THREADS, own_body, NULL);
    end();
}

/* ---- One gather, many who add and wait. ---- */

static void shared_body(void *context, int index)
{
    (void)context;
    for (int i = 0; i < TASKS; i++)
        expect(hf_gather_add(test.gather, make, (void *)(uintptr_t)2) == HF_OK);
    if (index % 2)
        expect(hf_gather_wait(test.gather, HF_FOREVER) == HF_OK);
    else
        expect(hf_gather_settle(test.gather, HF_FOREVER) == HF_OK);
}

TEST(many_add_and_wait)
{
    struct hf_gather_stats stats;

    begin(3, scaled(800));
    for (uint32_t i = 0; i < test.rounds; i++) {
        struct hf_gather_opts opts = {.pool = test.pool, .drop = drop};
        CHECK_EQ(hf_gather_open(&test.gather, &opts), HF_OK);
        test_threads(THREADS, shared_body, NULL);
        CHECK_EQ(hf_gather_wait(test.gather, HF_FOREVER), HF_OK);
        hf_gather_stats(test.gather, &stats);
        CHECK_EQ(stats.succeeded, TASKS * THREADS);
        hf_gather_close(test.gather);
    }
    end();
}

/* ---- Tasks that wait for tasks, deeper than there are workers. ---- */

static int nest(void *arg, void **result)
{
    uintptr_t depth = (uintptr_t)arg;
    struct hf_gather_opts opts = {.pool = test.pool, .drop = drop};
    struct hf_gather *gather;
    int failed = 0;

    if (depth == 0)
        return make((void *)(uintptr_t)2, result);
    if (hf_gather_open(&gather, &opts) != HF_OK)
        return 1;
    for (int i = 0; i < 3; i++)
        failed |= hf_gather_add(gather, nest, (void *)(depth - 1)) != HF_OK;
    failed |= hf_gather_wait(gather, HF_FOREVER) != HF_OK;
    hf_gather_close(gather);
    *result = malloc(1);
    hf_u64_add(&test.made, 1, __ATOMIC_RELAXED);
    return failed;
}

TEST(tasks_wait_for_tasks)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        begin(threads, scaled(80));
        for (uint32_t i = 0; i < test.rounds; i++) {
            struct hf_gather_opts opts = {.pool = test.pool, .drop = drop};
            CHECK_EQ(hf_gather_open(&test.gather, &opts), HF_OK);
            for (int j = 0; j < 3; j++)
                CHECK_EQ(hf_gather_add(test.gather, nest, (void *)4), HF_OK);
            CHECK_EQ(hf_gather_wait(test.gather, HF_FOREVER), HF_OK);
            hf_gather_close(test.gather);
        }
        end();
    }
}
