/* accumulator.c - real threads add, look and reset; nothing is lost.
 *
 * tests: also under sanitizers
 */
#include "holdfast/accumulator.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS   32
#define RESETTERS 2

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a + b;
}

static struct {
    uint64_t (*function)(uint64_t a, uint64_t b);
    struct hf_accumulator acc;
    struct hf_atomic_u64 added; /* combined */
    struct hf_atomic_u64 taken;
    struct hf_atomic_u32 stop;
} rig;

static int work(int plain)
{
    const char *san = getenv("HOLDFAST_SAN");
    return san != NULL && *san != '\0' ? plain / 20 : plain;
}

static void start(uint64_t (*function)(uint64_t, uint64_t), uint64_t identity)
{
    memset(&rig, 0, sizeof rig);
    rig.function = function;
    rig.added.value = rig.taken.value = identity;
    CHECK_EQ(hf_accumulator_init(&rig.acc, function, identity), HF_OK);
}

static void combine(struct hf_atomic_u64 *into, uint64_t value)
{
    uint64_t old = hf_u64_load(into, __ATOMIC_RELAXED);

    while (!hf_u64_cas(into, &old, rig.function(old, value), __ATOMIC_RELAXED))
        continue;
}

static void add_or_reset(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = work(200000); i > 0; i--) {
        if (index < RESETTERS && i % 4 == 0)
            combine(&rig.taken, hf_accumulator_value_and_reset(&rig.acc));
        uint64_t value = hf_random_next(&random) >> 8;
        hf_accumulator_add(&rig.acc, value);
        combine(&rig.added, value);
    }
}

static void conserve(uint64_t (*function)(uint64_t, uint64_t),
                     uint64_t identity)
{
    start(function, identity);
    test_threads(THREADS, add_or_reset, NULL);
    combine(&rig.taken, hf_accumulator_value(&rig.acc));
    CHECK(rig.taken.value == rig.added.value);
    hf_accumulator_destroy(&rig.acc);
}

TEST(every_add_is_in_exactly_one_result_with_32_threads)
{
    conserve(plus, 0);
}

TEST(the_least_and_the_greatest_are_in_a_result)
{
    conserve(hf_accumulate_min, UINT64_MAX);
    conserve(hf_accumulate_max, 0);
}

static void *add_until_stopped(void *context)
{
    (void)context;
    for (uint64_t i = 1; !hf_u32_load(&rig.stop, __ATOMIC_RELAXED); i++) {
        if (i % 8 == 0)
            combine(&rig.taken, hf_accumulator_value_and_reset(&rig.acc));
        hf_accumulator_add(&rig.acc, i);
        combine(&rig.added, i);
    }
    return NULL;
}

TEST(a_stopped_thread_stops_nobody)
{
    pthread_t thread;

    start(plus, 0);
    stall_init();
    CHECK_EQ(pthread_create(&thread, NULL, add_until_stopped, NULL), 0);
    for (int i = 0; i < 100; i++) {
        struct stall *stall = stall_stop(thread);
        add_or_reset(NULL, i % 3);
        stall_resume(stall);
    }
    hf_u32_store(&rig.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    combine(&rig.taken, hf_accumulator_value(&rig.acc));
    CHECK_EQ(rig.taken.value, rig.added.value);
    hf_accumulator_destroy(&rig.acc);
}
