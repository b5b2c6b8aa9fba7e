/* adder.c - real threads add, sum and reset; nothing is lost or doubled.
 *
 * tests: also under sanitizers
 */
#include "holdfast/adder.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS   32
#define RESETTERS 2

static struct {
    struct hf_adder adder;
    struct hf_atomic_u64 added;
    struct hf_atomic_u64 taken;
    struct hf_atomic_u64 wrong; /* sums outside their bounds */
    struct hf_atomic_u32 stop;
} rig;

static int work(int plain)
{
    const char *san = getenv("HOLDFAST_SAN");
    return san != NULL && *san != '\0' ? plain / 20 : plain;
}

static void start(void)
{
    memset(&rig, 0, sizeof rig);
    CHECK_EQ(hf_adder_init(&rig.adder), HF_OK);
}

static void add_or_reset(void *context, int index)
{
    struct hf_random random;
    uint64_t added = 0;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = work(1000000); i > 0; i--) {
        if (index < RESETTERS && i % 16 == 0) {
            int64_t sum = hf_adder_sum_and_reset(&rig.adder);
            hf_u64_add(&rig.taken, (uint64_t)sum, __ATOMIC_RELAXED);
        }
        uint64_t amount = hf_random_below(&random, 1000);
        hf_adder_add(&rig.adder, (int64_t)amount);
        added += amount;
    }
    hf_u64_add(&rig.added, added, __ATOMIC_RELAXED);
}

TEST(every_add_is_in_exactly_one_result_with_32_threads)
{
    start();
    /* In the second round threads take over what others left. */
    for (int round = 0; round < 2; round++)
        test_threads(THREADS, add_or_reset, NULL);
    uint64_t left = (uint64_t)hf_adder_sum(&rig.adder);
    CHECK_EQ(rig.taken.value + left, rig.added.value);
    hf_adder_destroy(&rig.adder);
}

/* One thread adds 1s and says so; sums lie between what was said before and
 * what is said after. */
static void add_and_watch(void *context, int index)
{
    (void)context;
    for (int i = work(2000000); i > 0; i--) {
        if (index > 0) {
            hf_u64_add(&rig.taken, 1, __ATOMIC_RELAXED); /* begun */
            hf_adder_add(&rig.adder, 1);
            hf_u64_add(&rig.added, 1, __ATOMIC_RELEASE); /* ended */
            continue;
        }
        uint64_t least = hf_u64_load(&rig.added, __ATOMIC_ACQUIRE);
        uint64_t sum = (uint64_t)hf_adder_sum(&rig.adder);
        if (sum < least)
            hf_u64_add(&rig.wrong, 1, __ATOMIC_RELAXED);
    }
}

TEST(a_sum_has_every_add_that_is_known_to_have_ended)
{
    start();
    test_threads(4, add_and_watch, NULL);
    CHECK_EQ(rig.wrong.value, 0);
    CHECK_EQ(hf_adder_sum(&rig.adder), rig.added.value);
    hf_adder_destroy(&rig.adder);
}

static void *add_until_stopped(void *context)
{
    uint64_t count = 0;

    (void)context;
    while (!hf_u32_load(&rig.stop, __ATOMIC_RELAXED)) {
        hf_adder_add(&rig.adder, 1);
        count++;
    }
    hf_u64_add(&rig.added, count, __ATOMIC_RELAXED);
    return NULL;
}

TEST(a_stopped_thread_stops_nobody)
{
    pthread_t thread;

    start();
    stall_init();
    CHECK_EQ(pthread_create(&thread, NULL, add_until_stopped, NULL), 0);
    for (int i = 0; i < 100; i++) {
        struct stall *stall = stall_stop(thread);
        add_or_reset(NULL, THREADS + i);
        rig.taken.value += (uint64_t)hf_adder_sum_and_reset(&rig.adder);
        CHECK_EQ(hf_adder_sum(&rig.adder), 0); /* it stands still */
        stall_resume(stall);
    }
    hf_u32_store(&rig.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    uint64_t left = (uint64_t)hf_adder_sum(&rig.adder);
    CHECK_EQ(rig.taken.value + left, rig.added.value);
    hf_adder_destroy(&rig.adder);
}
