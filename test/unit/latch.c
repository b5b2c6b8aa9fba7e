/* latch.c - tests of the count-down latch: what one thread can see. */
#include "holdfast/latch.h"

#include <pthread.h>

#include "support/clock.h"
#include "support/test.h"

TEST(bad_arguments_are_refused)
{
    struct hf_latch latch;

    CHECK_EQ(hf_latch_init(NULL, 1, NULL), HF_INVALID);
    CHECK_EQ(hf_latch_init(&latch, 0, NULL), HF_INVALID);
    CHECK_EQ(hf_latch_init(&latch, UINT32_MAX, NULL), HF_OK);
    CHECK_EQ(hf_latch_count(&latch), UINT32_MAX);
    CHECK_EQ(hf_latch_count_down(&latch, UINT32_MAX), HF_OK);
    CHECK_EQ(hf_latch_wait(&latch, HF_FOREVER), HF_OK);
    hf_latch_destroy(&latch);
}

TEST(it_opens_when_nothing_is_left_and_stays_open)
{
    struct hf_latch latch;

    CHECK_EQ(hf_latch_init(&latch, 3, NULL), HF_OK);
    CHECK_EQ(hf_latch_count(&latch), 3);
    CHECK_EQ(hf_latch_wait(&latch, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(hf_latch_count_down(&latch, 2), HF_OK);
    CHECK_EQ(hf_latch_wait(&latch, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(hf_latch_count_down(&latch, 1), HF_OK);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_latch_wait(&latch, HF_NOW), HF_OK);
    CHECK_EQ(hf_latch_wait(&latch, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_latch_count(&latch), 0);
    hf_latch_destroy(&latch);
}

TEST(more_than_is_left_changes_nothing)
{
    struct hf_latch latch;

    CHECK_EQ(hf_latch_init(&latch, 2, NULL), HF_OK);
    CHECK_EQ(hf_latch_count_down(&latch, 3), HF_INVALID);
    CHECK_EQ(hf_latch_count_down(&latch, UINT32_MAX), HF_INVALID);
    CHECK_EQ(hf_latch_count_down(&latch, 0), HF_INVALID);
    CHECK_EQ(hf_latch_count(&latch), 2);
    CHECK_EQ(hf_latch_count_down(&latch, 2), HF_OK);
    CHECK_EQ(hf_latch_count_down(&latch, 1), HF_INVALID);
    CHECK_EQ(hf_latch_wait(&latch, HF_NOW), HF_OK);
    hf_latch_destroy(&latch);
}

TEST(shut_before_it_is_open_closes_it_for_good)
{
    struct hf_latch latch;

    CHECK_EQ(hf_latch_init(&latch, 2, NULL), HF_OK);
    hf_latch_shutdown(&latch);
    hf_latch_shutdown(&latch);
    CHECK_EQ(hf_latch_wait(&latch, HF_FOREVER), HF_CLOSED);
    CHECK_EQ(hf_latch_count_down(&latch, 2), HF_CLOSED);
    CHECK_EQ(hf_latch_count(&latch), 2);
    hf_latch_destroy(&latch);
}

TEST(shut_after_it_is_open_changes_nothing)
{
    struct hf_latch latch;

    CHECK_EQ(hf_latch_init(&latch, 1, NULL), HF_OK);
    CHECK_EQ(hf_latch_count_down(&latch, 1), HF_OK);
    hf_latch_shutdown(&latch);
    CHECK_EQ(hf_latch_wait(&latch, HF_NOW), HF_OK);
    hf_latch_destroy(&latch);
}

TEST(stats_tell_what_is_left)
{
    struct hf_latch latch;
    struct hf_latch_stats stats;

    CHECK_EQ(hf_latch_init(&latch, 5, NULL), HF_OK);
    CHECK_EQ(hf_latch_count_down(&latch, 2), HF_OK);
    hf_latch_stats(&latch, &stats);
    CHECK_EQ(stats.count, 3);
    CHECK_EQ(stats.waiting, 0);
    CHECK(!stats.shutdown);
    hf_latch_shutdown(&latch);
    hf_latch_stats(&latch, &stats);
    CHECK(stats.shutdown);
    hf_latch_destroy(&latch);
}

static void *wait_until_2000(void *latch)
{
    return (void *)(uintptr_t)hf_latch_wait(latch, 2000);
}

TEST(a_waiter_times_out_by_the_clock_it_was_given)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_latch latch;
    struct hf_latch_stats stats;
    pthread_t thread;
    void *status;

    CHECK_EQ(hf_latch_init(&latch, 1, test_clock(&clock)), HF_OK);
    CHECK_EQ(pthread_create(&thread, NULL, wait_until_2000, &latch), 0);
    test_clock_await_sleepers(&clock, 1);
    hf_latch_stats(&latch, &stats);
    CHECK_EQ(stats.waiting, 1);
    test_clock_advance(&clock, 1000);
    CHECK_EQ(pthread_join(thread, &status), 0);
    CHECK_EQ((uintptr_t)status, HF_TIMEOUT);
    hf_latch_stats(&latch, &stats);
    CHECK_EQ(stats.waiting, 0);
    hf_latch_destroy(&latch);
}
