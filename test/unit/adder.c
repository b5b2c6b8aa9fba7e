/* Tests of hf_adder: exact sums, resets, threads that come and go. */
#include "holdfast/adder.h"

#include <pthread.h>

#include "base/memory.h"
#include "base/thread.h"
#include "support/test.h"
#include "support/threads.h"

static struct hf_adder adder;

TEST(bad_input_is_refused)
{
    struct hf_adder none = {0};

    CHECK_EQ(hf_adder_init(NULL), HF_INVALID);
    hf_adder_destroy(NULL);
    hf_adder_destroy(&none);
}

TEST(what_was_added_is_the_sum)
{
    CHECK_EQ(hf_adder_init(&adder), HF_OK);
    CHECK_EQ(hf_adder_sum(&adder), 0);
    hf_adder_add(&adder, 5);
    hf_adder_add(&adder, -7);
    CHECK_EQ(hf_adder_sum(&adder), -2);
    hf_adder_add(&adder, 0);
    CHECK_EQ(hf_adder_sum(&adder), -2);
    hf_adder_destroy(&adder);
    hf_adder_destroy(&adder);
}

TEST(a_reset_takes_what_came_since_the_last)
{
    CHECK_EQ(hf_adder_init(&adder), HF_OK);
    hf_adder_add(&adder, 5);
    CHECK_EQ(hf_adder_sum_and_reset(&adder), 5);
    CHECK_EQ(hf_adder_sum(&adder), 0);
    CHECK_EQ(hf_adder_sum_and_reset(&adder), 0);
    hf_adder_add(&adder, -3);
    CHECK_EQ(hf_adder_sum(&adder), -3);
    CHECK_EQ(hf_adder_sum_and_reset(&adder), -3);
    hf_adder_destroy(&adder);
}

TEST(numbers_wrap_at_64_bits)
{
    CHECK_EQ(hf_adder_init(&adder), HF_OK);
    hf_adder_add(&adder, INT64_MAX);
    hf_adder_add(&adder, 1);
    CHECK_EQ(hf_adder_sum(&adder), INT64_MIN);
    CHECK_EQ(hf_adder_sum_and_reset(&adder), INT64_MIN);
    hf_adder_add(&adder, INT64_MIN);
    CHECK_EQ(hf_adder_sum(&adder), INT64_MIN);
    hf_adder_destroy(&adder);
}

TEST(without_memory_nothing_is_made)
{
    struct hf_adder fresh = {0};

    for (uint64_t i = 0; i < 2; i++) {
        hf_memory_fail_after(i);
        CHECK_EQ(hf_adder_init(&fresh), HF_NOMEM);
        hf_memory_fail_never();
        CHECK(fresh.state == NULL);
    }
    CHECK_EQ(hf_adder_init(&fresh), HF_OK);
    hf_adder_destroy(&fresh);
}

static void *add_one(void *context)
{
    *(uint32_t *)context = hf_thread_slot();
    hf_adder_add(&adder, 1);
    return NULL;
}

TEST(a_thread_takes_over_the_record_of_one_that_ended)
{
    struct hf_adder_stats stats;
    uint32_t first = 0;

    CHECK_EQ(hf_adder_init(&adder), HF_OK);
    for (int i = 0; i < 40; i++) {
        pthread_t thread;
        uint32_t slot;
        CHECK_EQ(pthread_create(&thread, NULL, add_one, &slot), 0);
        CHECK_EQ(pthread_join(thread, NULL), 0);
        if (i == 0)
            first = slot;
        CHECK_EQ(slot, first);
        CHECK_EQ(hf_adder_sum(&adder), i + 1);
    }
    hf_adder_stats(&adder, &stats);
    CHECK_EQ(stats.sum, 40);
    CHECK_EQ(stats.records, 16); /* the first chunk's */
    hf_adder_destroy(&adder);
}

/* More threads than init made records for, at first without memory. */
#define CROWD 24
static pthread_barrier_t together;
static struct hf_adder_stats poor, rich;

static void add_without_memory(void *context, int index)
{
    (void)context;
    (void)hf_thread_slot();
    pthread_barrier_wait(&together); /* all slots are taken */
    hf_memory_fail_after(0);
    hf_adder_add(&adder, index + 1);
    hf_memory_fail_never();
    pthread_barrier_wait(&together);
    if (index == 0)
        hf_adder_stats(&adder, &poor);
    pthread_barrier_wait(&together);
    hf_adder_add(&adder, index + 1);
    pthread_barrier_wait(&together);
    if (index == 0)
        hf_adder_stats(&adder, &rich);
}

TEST(threads_without_a_record_share_a_word_and_lose_nothing)
{
    int64_t once = CROWD * (CROWD + 1) / 2;

    CHECK_EQ(hf_adder_init(&adder), HF_OK);
    pthread_barrier_init(&together, NULL, CROWD);
    test_threads(CROWD, add_without_memory, NULL);
    pthread_barrier_destroy(&together);
    CHECK_EQ(poor.records, 16);
    CHECK_EQ(poor.sum, once);
    CHECK_EQ(rich.records, 32);
    CHECK_EQ(rich.sum, 2 * once);
    CHECK_EQ(hf_adder_sum_and_reset(&adder), 2 * once);
    CHECK_EQ(hf_adder_sum(&adder), 0);
    hf_adder_destroy(&adder);
}
