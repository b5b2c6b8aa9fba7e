/* barrier.c - tests of the cyclic barrier: what one or two threads can see. */
#include "holdfast/barrier.h"

#include <pthread.h>

#include "support/clock.h"
#include "support/test.h"

static void add_one(void *context)
{
    ++*(int *)context;
}

TEST(bad_arguments_are_refused)
{
    struct hf_barrier barrier;
    struct hf_barrier_opts opts = {.parties = 0};

    CHECK_EQ(hf_barrier_init(&barrier, NULL), HF_INVALID);
    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_INVALID);
    opts.parties = HF_BARRIER_PARTIES_MAX + 1;
    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_INVALID);
    opts.parties = HF_BARRIER_PARTIES_MAX;
    CHECK_EQ(hf_barrier_init(NULL, &opts), HF_INVALID);
    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_OK);
    hf_barrier_destroy(&barrier);
}

TEST(a_party_of_one_never_waits)
{
    struct hf_barrier barrier;
    struct hf_barrier_stats stats;
    int runs = 0;
    struct hf_barrier_opts opts = {
        .parties = 1, .action = add_one, .context = &runs};
    uint32_t index = 9;

    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_OK);
    for (int i = 1; i <= 5; i++) {
        CHECK_EQ(hf_barrier_wait(&barrier, HF_NOW, &index), HF_OK);
        CHECK_EQ(index, 0);
        CHECK_EQ(runs, i);
    }
    CHECK_EQ(hf_barrier_wait(&barrier, HF_FOREVER, NULL), HF_OK);
    hf_barrier_stats(&barrier, &stats);
    CHECK_EQ(stats.generation, 6);
    CHECK_EQ(stats.arrived, 0);
    CHECK_EQ(stats.parties, 1);
    hf_barrier_destroy(&barrier);
}

TEST(a_time_out_breaks_it_until_reset)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_barrier barrier;
    struct hf_barrier_stats stats;
    struct hf_barrier_opts opts = {.parties = 2, .clock = test_clock(&clock)};
    uint32_t index = 9;

    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_OK);
    CHECK_EQ(hf_barrier_wait(&barrier, 1000, &index), HF_TIMEOUT);
    CHECK_EQ(index, 9);
    hf_barrier_stats(&barrier, &stats);
    CHECK(stats.broken);
    CHECK_EQ(stats.arrived, 0);
    CHECK_EQ(hf_barrier_wait(&barrier, HF_FOREVER, NULL), HF_CANCELLED);
    CHECK_EQ(hf_barrier_wait(&barrier, HF_NOW, NULL), HF_CANCELLED);
    CHECK_EQ(hf_barrier_reset(&barrier), HF_OK);
    hf_barrier_stats(&barrier, &stats);
    CHECK(!stats.broken);
    CHECK_EQ(stats.generation, 1);
    CHECK_EQ(hf_barrier_wait(&barrier, HF_NOW, NULL), HF_TIMEOUT);
    hf_barrier_destroy(&barrier);
}

TEST(it_can_be_broken_and_reset_by_hand)
{
    struct hf_barrier barrier;
    struct hf_barrier_opts opts = {.parties = 1};

    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_OK);
    hf_barrier_break(&barrier);
    hf_barrier_break(&barrier);
    CHECK_EQ(hf_barrier_wait(&barrier, HF_FOREVER, NULL), HF_CANCELLED);
    CHECK_EQ(hf_barrier_reset(&barrier), HF_OK);
    CHECK_EQ(hf_barrier_reset(&barrier), HF_OK);
    CHECK_EQ(hf_barrier_wait(&barrier, HF_FOREVER, NULL), HF_OK);
    hf_barrier_destroy(&barrier);
}

TEST(shut_is_for_good)
{
    struct hf_barrier barrier;
    struct hf_barrier_stats stats;
    struct hf_barrier_opts opts = {.parties = 1};

    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_OK);
    hf_barrier_shutdown(&barrier);
    hf_barrier_shutdown(&barrier);
    CHECK_EQ(hf_barrier_wait(&barrier, HF_FOREVER, NULL), HF_CLOSED);
    CHECK_EQ(hf_barrier_reset(&barrier), HF_CLOSED);
    hf_barrier_break(&barrier);
    CHECK_EQ(hf_barrier_wait(&barrier, HF_FOREVER, NULL), HF_CLOSED);
    hf_barrier_stats(&barrier, &stats);
    CHECK(stats.shutdown);
    CHECK(!stats.broken);
    hf_barrier_destroy(&barrier);
}

/* Shut from within its own action: nobody has gone on yet, so nobody does. */
static void shut_it(void *context)
{
    hf_barrier_shutdown(context);
}

TEST(shut_while_the_action_runs_lets_nobody_go_on)
{
    struct hf_barrier barrier;
    struct hf_barrier_opts opts = {
        .parties = 1, .action = shut_it, .context = &barrier};

    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_OK);
    CHECK_EQ(hf_barrier_wait(&barrier, HF_FOREVER, NULL), HF_CLOSED);
    hf_barrier_destroy(&barrier);
}

static void reset_it(void *context)
{
    (void)hf_barrier_reset(context);
}

TEST(reset_while_the_action_runs_cancels_this_generation_only)
{
    struct hf_barrier barrier;
    struct hf_barrier_stats stats;
    struct hf_barrier_opts opts = {
        .parties = 1, .action = reset_it, .context = &barrier};

    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_OK);
    CHECK_EQ(hf_barrier_wait(&barrier, HF_FOREVER, NULL), HF_CANCELLED);
    hf_barrier_stats(&barrier, &stats);
    CHECK(!stats.broken);
    CHECK_EQ(stats.generation, 1);
    CHECK_EQ(stats.arrived, 0);
    hf_barrier_destroy(&barrier);
}

static void *wait_until_2000(void *barrier)
{
    return (void *)(uintptr_t)hf_barrier_wait(barrier, 2000, NULL);
}

TEST(a_waiter_times_out_by_the_clock_it_was_given)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_barrier barrier;
    struct hf_barrier_opts opts = {.parties = 2, .clock = test_clock(&clock)};
    struct hf_barrier_stats stats;
    pthread_t thread;
    void *status;

    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_OK);
    CHECK_EQ(pthread_create(&thread, NULL, wait_until_2000, &barrier), 0);
    test_clock_await_sleepers(&clock, 1);
    hf_barrier_stats(&barrier, &stats);
    CHECK_EQ(stats.arrived, 1);
    test_clock_advance(&clock, 1000);
    CHECK_EQ(pthread_join(thread, &status), 0);
    CHECK_EQ((uintptr_t)status, HF_TIMEOUT);
    CHECK_EQ(hf_barrier_wait(&barrier, HF_FOREVER, NULL), HF_CANCELLED);
    hf_barrier_destroy(&barrier);
}

/* A reset is under way while the other has not left: broken again by hand, it
 * stays broken. */
TEST(break_takes_back_a_reset_that_is_under_way)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_barrier barrier;
    struct hf_barrier_opts opts = {.parties = 2, .clock = test_clock(&clock)};
    struct hf_barrier_stats stats;
    pthread_t thread;
    void *status;

    CHECK_EQ(hf_barrier_init(&barrier, &opts), HF_OK);
    CHECK_EQ(pthread_create(&thread, NULL, wait_until_2000, &barrier), 0);
    test_clock_await_sleepers(&clock, 1);
    CHECK_EQ(hf_barrier_reset(&barrier), HF_OK);
    hf_barrier_break(&barrier);
    CHECK_EQ(pthread_join(thread, &status), 0);
    CHECK_EQ((uintptr_t)status, HF_CANCELLED);
    hf_barrier_stats(&barrier, &stats);
    CHECK(stats.broken);
    CHECK_EQ(stats.arrived, 0);
    hf_barrier_destroy(&barrier);
}
