/* semaphore.c - real threads at both semaphores.
 *
 * tests: also under sanitizers
 *
 * More threads than processors, so that the system stops them at any place.
 * Whoever is forgotten leaves the run hanging, and it is stopped as failed.
 */
#include "holdfast/semaphore.h"

#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32
#define PERMITS 3

static int rounds(int count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 4 : count;
}

static struct {
    struct hf_semaphore semaphore;
    struct calls *history;
    uint64_t seed;
    int rounds;
    struct hf_atomic_u64 held; /* permits */
    struct hf_atomic_u64 errors;
    struct hf_atomic_u64 timeouts;
    uint64_t plain; /* guarded by one permit */
} test;

static void begin(uint32_t permits, bool fair)
{
    struct hf_semaphore_opts opts = {.permits = permits, .fair = fair};

    memset(&test, 0, sizeof test);
    CHECK_EQ(hf_semaphore_init(&test.semaphore, &opts), HF_OK);
}

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
}

/* ---- Results. ---- */

#define CALLERS 4
#define CALLS   6

static void call_body(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test.seed + (uint64_t)index);
    for (int i = 0; i < CALLS; i++) {
        uint32_t op = (uint32_t)hf_random_below(&random, 4);
        uint32_t count = 1 + (uint32_t)hf_random_below(&random, 3);
        struct call *call =
            calls_begin(test.history, (unsigned)index, op, 0, count);
        enum hf_status status = HF_OK;
        uint64_t value = MODEL_ANY;
        if (op == MODEL_COUNT_ADD)
            status = hf_semaphore_release(&test.semaphore, count);
        else if (op == MODEL_COUNT_TAKE)
            status = hf_semaphore_acquire(&test.semaphore, count, HF_NOW);
        else if (op == MODEL_COUNT_READ)
            value = hf_semaphore_available(&test.semaphore);
        else
            value = hf_semaphore_drain(&test.semaphore);
        calls_end(test.history, call, status == HF_TIMEOUT ? HF_EMPTY : status,
                  value);
    }
}

TEST(results_are_linearizable)
{
    static const uint64_t start = PERMITS;
    struct linear_model model = model_counter(&start);
    struct linear *checker = linear_new(&model, CALLERS * CALLS);
    struct calls *history = calls_new(CALLERS, CALLS);
    int count = rounds(3000);

    for (int i = 0; i < count; i++) {
        begin((uint32_t)start, i % 2 == 0);
        test.seed = test_seed() + (uint64_t)i * CALLERS;
        test.history = history;
        calls_clear(history);
        test_threads(CALLERS, call_body, NULL);
        CHECK_EQ(linear_check(checker, history, stdout), LINEAR_YES);
        hf_semaphore_destroy(&test.semaphore);
    }
    linear_free(checker);
    calls_free(history);
}

/* ---- Never more permits out than there are, and all come back. ---- */

static void hold(uint32_t count)
{
    uint64_t held = hf_u64_add(&test.held, count, __ATOMIC_RELAXED) + count;

    expect(held <= PERMITS);
    sched_yield(); /* so that others come while we hold */
    hf_u64_sub(&test.held, count, __ATOMIC_RELAXED);
    expect(hf_semaphore_release(&test.semaphore, count) == HF_OK);
}

/* Every third request has a deadline that is all but over. */
static void hold_body(void *context, int index)
{
    const struct hf_clock *clock = hf_clock_system();
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = 0; i < test.rounds; i++) {
        uint32_t count = 1 + (uint32_t)hf_random_below(&random, PERMITS);
        uint64_t deadline_ns = i % 3 == 0 ? hf_clock_now_ns(clock) +
                                                hf_random_below(&random, 100000)
                                          : HF_FOREVER;
        enum hf_status status =
            hf_semaphore_acquire(&test.semaphore, count, deadline_ns);
        if (status == HF_OK)
            hold(count);
        else if (status == HF_TIMEOUT && deadline_ns != HF_FOREVER)
            hf_u64_add(&test.timeouts, 1, __ATOMIC_RELAXED);
        else
            expect(false);
    }
}

static void hold_run(bool fair)
{
    begin(PERMITS, fair);
    test.rounds = rounds(800);
    test_threads(THREADS, hold_body, NULL);
    CHECK_EQ(test.errors.value, 0);
    CHECK_EQ(test.semaphore.state.value, PERMITS);
    printf("%s: %llu time-outs\n", fair ? "fair" : "unfair",
           (unsigned long long)test.timeouts.value);
    hf_semaphore_destroy(&test.semaphore);
}

TEST(unfair_permits_are_kept)
{
    hold_run(false);
}

TEST(fair_permits_are_kept)
{
    hold_run(true);
}

/* ---- One permit orders what is done under it. ---- */

static void lock_body(void *context, int index)
{
    (void)context;
    (void)index;
    for (int i = 0; i < test.rounds; i++) {
        expect(hf_semaphore_acquire(&test.semaphore, 1, HF_FOREVER) == HF_OK);
        test.plain++;
        if (i % 16 == 0)
            sched_yield();
        expect(hf_semaphore_release(&test.semaphore, 1) == HF_OK);
    }
}

TEST(one_permit_is_a_lock)
{
    for (int fair = 0; fair < 2; fair++) {
        begin(1, fair);
        test.rounds = rounds(fair ? 1000 : 5000);
        test_threads(8, lock_body, NULL);
        CHECK_EQ(test.errors.value, 0);
        CHECK_EQ(test.plain, (uint64_t)test.rounds * 8);
        hf_semaphore_destroy(&test.semaphore);
    }
}

/* ---- Shut while many wait. ---- */

static void shut_body(void *context, int index)
{
    (void)context;
    if (index == 0)
        hf_semaphore_shutdown(&test.semaphore);
    else
        expect(hf_semaphore_acquire(&test.semaphore, 1 + (uint32_t)index % 3,
                                    HF_FOREVER) == HF_CLOSED);
}

TEST(shut_lets_all_leave)
{
    int count = rounds(200);

    for (int i = 0; i < count; i++) {
        begin(0, i % 2 == 0);
        test_threads(16, shut_body, NULL);
        CHECK_EQ(test.errors.value, 0);
        hf_semaphore_destroy(&test.semaphore);
    }
}

/* ---- A stopped thread stops nobody. ---- */

static struct hf_atomic_u32 over;

static void take_and_give(void)
{
    if (hf_semaphore_acquire(&test.semaphore, 1, HF_NOW) == HF_OK)
        expect(hf_semaphore_release(&test.semaphore, 1) == HF_OK);
    else
        expect(false);
}

static void *victim_main(void *unused)
{
    while (!hf_u32_load(&over, __ATOMIC_RELAXED))
        take_and_give();
    return unused;
}

TEST(unfair_a_stopped_thread_stops_nobody)
{
    pthread_t victim;
    int count = rounds(500);

    begin(PERMITS, false);
    stall_init();
    hf_u32_store(&over, 0, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_create(&victim, NULL, victim_main, NULL), 0);
    for (int i = 0; i < count; i++) {
        struct stall *stall = stall_stop(victim);
        for (int j = 0; j < 1000; j++)
            take_and_give();
        stall_resume(stall);
        sched_yield();
    }
    hf_u32_store(&over, 1, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_join(victim, NULL), 0);
    CHECK_EQ(test.errors.value, 0);
    CHECK_EQ(test.semaphore.state.value, PERMITS);
    hf_semaphore_destroy(&test.semaphore);
}
