/* Tests of hf_accumulator: min, max, functions of the user's, resets. */
#include "holdfast/accumulator.h"

#include <pthread.h>

#include "base/memory.h"
#include "base/thread.h"
#include "support/test.h"
#include "support/threads.h"

static struct hf_accumulator acc;

static void start(uint64_t (*function)(uint64_t a, uint64_t b),
                  uint64_t identity)
{
    CHECK_EQ(hf_accumulator_init(&acc, function, identity), HF_OK);
    CHECK(hf_accumulator_value(&acc) == identity);
}

TEST(bad_input_is_refused)
{
    struct hf_accumulator none = {0};

    CHECK_EQ(hf_accumulator_init(NULL, hf_accumulate_max, 0), HF_INVALID);
    CHECK_EQ(hf_accumulator_init(&none, NULL, 0), HF_INVALID);
    CHECK(none.state == NULL);
    hf_accumulator_destroy(NULL);
    hf_accumulator_destroy(&none);
}

TEST(the_greatest_and_the_least_are_kept)
{
    start(hf_accumulate_max, 0);
    hf_accumulator_add(&acc, 4);
    hf_accumulator_add(&acc, UINT64_MAX);
    hf_accumulator_add(&acc, 9);
    CHECK(hf_accumulator_value(&acc) == UINT64_MAX);
    hf_accumulator_destroy(&acc);

    start(hf_accumulate_min, UINT64_MAX);
    hf_accumulator_add(&acc, 4);
    hf_accumulator_add(&acc, 0);
    hf_accumulator_add(&acc, 9);
    CHECK_EQ(hf_accumulator_value(&acc), 0);
    hf_accumulator_destroy(&acc);
}

TEST(signed_values_are_compared_as_such)
{
    start(hf_accumulate_max_signed, (uint64_t)INT64_MIN);
    hf_accumulator_add(&acc, (uint64_t)-9);
    hf_accumulator_add(&acc, (uint64_t)-4);
    CHECK_EQ(hf_accumulator_value(&acc), -4);
    hf_accumulator_add(&acc, 2);
    CHECK_EQ(hf_accumulator_value(&acc), 2);
    hf_accumulator_destroy(&acc);

    start(hf_accumulate_min_signed, INT64_MAX);
    hf_accumulator_add(&acc, 3);
    hf_accumulator_add(&acc, (uint64_t)-9);
    hf_accumulator_add(&acc, (uint64_t)-4);
    CHECK_EQ(hf_accumulator_value(&acc), -9);
    hf_accumulator_destroy(&acc);
}

static uint64_t either(uint64_t a, uint64_t b)
{
    return a | b;
}

static uint64_t both(uint64_t a, uint64_t b)
{
    return a & b;
}

static uint64_t product(uint64_t a, uint64_t b)
{
    return a * b;
}

TEST(any_function_that_does_not_care_for_order_will_do)
{
    start(either, 0);
    hf_accumulator_add(&acc, 1);
    hf_accumulator_add(&acc, 8);
    CHECK_EQ(hf_accumulator_value(&acc), 9);
    hf_accumulator_destroy(&acc);

    start(both, UINT64_MAX);
    hf_accumulator_add(&acc, 7);
    hf_accumulator_add(&acc, 14);
    CHECK_EQ(hf_accumulator_value(&acc), 6);
    hf_accumulator_destroy(&acc);

    start(product, 1);
    hf_accumulator_add(&acc, 7);
    hf_accumulator_add(&acc, 6);
    CHECK_EQ(hf_accumulator_value(&acc), 42);
    hf_accumulator_destroy(&acc);
}

TEST(a_reset_takes_what_came_since_the_last)
{
    start(hf_accumulate_min, UINT64_MAX);
    hf_accumulator_add(&acc, 5);
    CHECK_EQ(hf_accumulator_value_and_reset(&acc), 5);
    CHECK(hf_accumulator_value(&acc) == UINT64_MAX);
    CHECK(hf_accumulator_value_and_reset(&acc) == UINT64_MAX);
    hf_accumulator_add(&acc, 7); /* not the least ever, but since */
    CHECK_EQ(hf_accumulator_value_and_reset(&acc), 7);
    hf_accumulator_destroy(&acc);
}

TEST(without_memory_nothing_is_made)
{
    struct hf_accumulator fresh = {0};

    for (uint64_t i = 0; i < 2; i++) {
        hf_memory_fail_after(i);
        CHECK_EQ(hf_accumulator_init(&fresh, hf_accumulate_max, 0), HF_NOMEM);
        hf_memory_fail_never();
        CHECK(fresh.state == NULL);
    }
    CHECK_EQ(hf_accumulator_init(&fresh, hf_accumulate_max, 0), HF_OK);
    hf_accumulator_destroy(&fresh);
}

static void *add_slot(void *context)
{
    hf_accumulator_add(&acc, *(uint64_t *)context);
    return NULL;
}

TEST(a_thread_takes_over_the_record_of_one_that_ended)
{
    struct hf_accumulator_stats stats;

    start(product, 1);
    for (uint64_t i = 1; i <= 5; i++) {
        pthread_t thread;
        CHECK_EQ(pthread_create(&thread, NULL, add_slot, &i), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
    }
    hf_accumulator_stats(&acc, &stats);
    CHECK_EQ(stats.value, 120);
    CHECK_EQ(stats.records, 16); /* the first chunk's */
    hf_accumulator_destroy(&acc);
}

/* More threads than init made records for, at first without memory. */
#define CROWD 24
static pthread_barrier_t together;
static struct hf_accumulator_stats poor, rich;

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a + b;
}

static void add_without_memory(void *context, int index)
{
    (void)context;
    (void)hf_thread_slot();
    pthread_barrier_wait(&together); /* all slots are taken */
    hf_memory_fail_after(0);
    hf_accumulator_add(&acc, (uint64_t)index + 1);
    hf_memory_fail_never();
    pthread_barrier_wait(&together);
    if (index == 0)
        hf_accumulator_stats(&acc, &poor);
    pthread_barrier_wait(&together);
    hf_accumulator_add(&acc, (uint64_t)index + 1);
    pthread_barrier_wait(&together);
    if (index == 0)
        hf_accumulator_stats(&acc, &rich);
}

TEST(threads_without_a_record_share_one_and_lose_nothing)
{
    uint64_t once = CROWD * (CROWD + 1) / 2;

    start(plus, 0);
    pthread_barrier_init(&together, NULL, CROWD);
    test_threads(CROWD, add_without_memory, NULL);
    pthread_barrier_destroy(&together);
    CHECK_EQ(poor.records, 16);
    CHECK_EQ(poor.value, once);
    CHECK_EQ(rich.records, 32);
    CHECK_EQ(rich.value, 2 * once);
    CHECK_EQ(hf_accumulator_value_and_reset(&acc), 2 * once);
    CHECK_EQ(hf_accumulator_value(&acc), 0);
    hf_accumulator_destroy(&acc);
}
