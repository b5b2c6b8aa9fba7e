/* semaphore.c - tests of both semaphores: what one or two threads can see. */
#include "holdfast/semaphore.h"

#include <pthread.h>

#include "support/clock.h"
#include "support/test.h"

static struct hf_semaphore_stats stats_of(struct hf_semaphore *semaphore)
{
    struct hf_semaphore_stats stats;

    hf_semaphore_stats(semaphore, &stats);
    return stats;
}

TEST(bad_arguments_are_refused)
{
    struct hf_semaphore semaphore;
    struct hf_semaphore_opts opts = {.permits = HF_SEMAPHORE_PERMITS_MAX + 1};

    CHECK_EQ(hf_semaphore_init(&semaphore, NULL), HF_INVALID);
    CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_INVALID);
    opts.permits = 0;
    CHECK_EQ(hf_semaphore_init(NULL, &opts), HF_INVALID);
    for (int fair = 0; fair < 2; fair++) {
        const uint32_t too_many = HF_SEMAPHORE_PERMITS_MAX + 1;
        opts.fair = fair;
        CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_OK);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, 0, HF_NOW), HF_INVALID);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, too_many, HF_NOW),
                 HF_INVALID);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, UINT32_MAX, HF_NOW),
                 HF_INVALID);
        CHECK_EQ(hf_semaphore_release(&semaphore, 0), HF_INVALID);
        CHECK_EQ(hf_semaphore_release(&semaphore, too_many), HF_INVALID);
        CHECK_EQ(hf_semaphore_release(&semaphore, UINT32_MAX), HF_INVALID);
        CHECK_EQ(hf_semaphore_available(&semaphore), 0);
        hf_semaphore_destroy(&semaphore);
    }
}

TEST(permits_are_taken_and_given_back)
{
    for (int fair = 0; fair < 2; fair++) {
        struct hf_semaphore semaphore;
        struct hf_semaphore_opts opts = {.permits = 3, .fair = fair};

        CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_OK);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, 2, HF_NOW), HF_OK);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, 2, HF_NOW), HF_TIMEOUT);
        CHECK_EQ(hf_semaphore_available(&semaphore), 1);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, 1, HF_FOREVER), HF_OK);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, 1, HF_NOW), HF_TIMEOUT);
        CHECK_EQ(hf_semaphore_release(&semaphore, 4), HF_OK);
        CHECK_EQ(hf_semaphore_available(&semaphore), 4);
        CHECK_EQ(hf_semaphore_drain(&semaphore), 4);
        CHECK_EQ(hf_semaphore_drain(&semaphore), 0);
        CHECK_EQ(stats_of(&semaphore).permits, 0);
        CHECK_EQ(stats_of(&semaphore).waiting, 0);
        hf_semaphore_destroy(&semaphore);
    }
}

TEST(more_than_the_most_is_refused)
{
    for (int fair = 0; fair < 2; fair++) {
        struct hf_semaphore semaphore;
        struct hf_semaphore_opts opts = {.fair = fair};
        const uint32_t most = HF_SEMAPHORE_PERMITS_MAX;

        CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_OK);
        CHECK_EQ(hf_semaphore_release(&semaphore, most), HF_OK);
        CHECK_EQ(hf_semaphore_release(&semaphore, 1), HF_INVALID);
        CHECK_EQ(hf_semaphore_release(&semaphore, most), HF_INVALID);
        CHECK_EQ(hf_semaphore_available(&semaphore), most);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, most, HF_NOW), HF_OK);
        CHECK_EQ(hf_semaphore_available(&semaphore), 0);
        hf_semaphore_destroy(&semaphore);
    }
}

TEST(a_passed_deadline_times_out_and_leaves_nothing_behind)
{
    for (int fair = 0; fair < 2; fair++) {
        struct test_clock clock = {.now_ns = 1000};
        struct hf_semaphore semaphore;
        struct hf_semaphore_opts opts = {
            .permits = 1, .fair = fair, .clock = test_clock(&clock)};

        CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_OK);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, 2, 1000), HF_TIMEOUT);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, 1, 1000), HF_OK);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, 1, 1000), HF_TIMEOUT);
        CHECK_EQ(stats_of(&semaphore).waiting, 0);
        CHECK_EQ(semaphore.state.value, 0);
        hf_semaphore_destroy(&semaphore);
    }
}

TEST(shut_gives_nothing_any_more)
{
    for (int fair = 0; fair < 2; fair++) {
        struct hf_semaphore semaphore;
        struct hf_semaphore_opts opts = {.permits = 1, .fair = fair};

        CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_OK);
        hf_semaphore_shutdown(&semaphore);
        hf_semaphore_shutdown(&semaphore);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, 1, HF_NOW), HF_CLOSED);
        CHECK_EQ(hf_semaphore_acquire(&semaphore, 1, HF_FOREVER), HF_CLOSED);
        CHECK_EQ(hf_semaphore_release(&semaphore, 1), HF_OK);
        CHECK_EQ(hf_semaphore_available(&semaphore), 2);
        CHECK(stats_of(&semaphore).shutdown);
        hf_semaphore_destroy(&semaphore);
    }
}

struct request {
    struct hf_semaphore *semaphore;
    uint32_t count;
    uint64_t deadline_ns;
    enum hf_status status;
    pthread_t thread;
};

static void *ask(void *argument)
{
    struct request *request = argument;

    request->status = hf_semaphore_acquire(request->semaphore, request->count,
                                           request->deadline_ns);
    return NULL;
}

/* Returns when the request waits as the `place`th. */
static void ask_in_thread(struct request *request, struct test_clock *clock,
                          unsigned place)
{
    CHECK_EQ(pthread_create(&request->thread, NULL, ask, request), 0);
    test_clock_await_sleepers(clock, place);
}

static enum hf_status answer(struct request *request)
{
    CHECK_EQ(pthread_join(request->thread, NULL), 0);
    return request->status;
}

TEST(a_waiter_times_out_by_the_clock_it_was_given)
{
    for (int fair = 0; fair < 2; fair++) {
        struct test_clock clock = {.now_ns = 1000};
        struct hf_semaphore semaphore;
        struct hf_semaphore_opts opts = {.fair = fair,
                                         .clock = test_clock(&clock)};
        struct request request = {&semaphore, 2, 2000, HF_OK, 0};

        CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_OK);
        ask_in_thread(&request, &clock, 1);
        CHECK_EQ(stats_of(&semaphore).waiting, 1);
        CHECK_EQ(hf_semaphore_release(&semaphore, 1), HF_OK);
        test_clock_advance(&clock, 1000);
        CHECK_EQ(answer(&request), HF_TIMEOUT);
        CHECK_EQ(semaphore.state.value, 1);
        hf_semaphore_destroy(&semaphore);
    }
}

TEST(fair_a_small_request_does_not_pass_a_large_one)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_semaphore semaphore;
    struct hf_semaphore_opts opts = {
        .permits = 1, .fair = true, .clock = test_clock(&clock)};
    struct request large = {&semaphore, 3, HF_FOREVER, HF_PENDING, 0};
    struct request small = {&semaphore, 1, HF_FOREVER, HF_PENDING, 0};

    CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_OK);
    ask_in_thread(&large, &clock, 1);
    CHECK_EQ(hf_semaphore_acquire(&semaphore, 1, HF_NOW), HF_TIMEOUT);
    ask_in_thread(&small, &clock, 2);
    CHECK_EQ(hf_semaphore_release(&semaphore, 1), HF_OK);
    CHECK_EQ(hf_semaphore_available(&semaphore), 2);
    CHECK_EQ(stats_of(&semaphore).waiting, 2);
    CHECK_EQ(hf_semaphore_release(&semaphore, 1), HF_OK);
    CHECK_EQ(answer(&large), HF_OK);
    CHECK_EQ(stats_of(&semaphore).waiting, 1);
    CHECK_EQ(hf_semaphore_release(&semaphore, 1), HF_OK);
    CHECK_EQ(answer(&small), HF_OK);
    CHECK_EQ(semaphore.state.value, 0);
    hf_semaphore_destroy(&semaphore);
}

/* The permits that the first could not use are enough for the second. */
TEST(fair_a_time_out_lets_the_next_be_served)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_semaphore semaphore;
    struct hf_semaphore_opts opts = {
        .permits = 1, .fair = true, .clock = test_clock(&clock)};
    struct request large = {&semaphore, 3, 2000, HF_PENDING, 0};
    struct request small = {&semaphore, 1, HF_FOREVER, HF_PENDING, 0};

    CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_OK);
    ask_in_thread(&large, &clock, 1);
    ask_in_thread(&small, &clock, 2);
    test_clock_advance(&clock, 1000);
    CHECK_EQ(answer(&large), HF_TIMEOUT);
    CHECK_EQ(answer(&small), HF_OK);
    CHECK_EQ(semaphore.state.value, 0);
    hf_semaphore_destroy(&semaphore);
}

TEST(drain_passes_the_queue)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_semaphore semaphore;
    struct hf_semaphore_opts opts = {
        .permits = 2, .fair = true, .clock = test_clock(&clock)};
    struct request large = {&semaphore, 3, HF_FOREVER, HF_PENDING, 0};

    CHECK_EQ(hf_semaphore_init(&semaphore, &opts), HF_OK);
    ask_in_thread(&large, &clock, 1);
    CHECK_EQ(hf_semaphore_drain(&semaphore), 2);
    CHECK_EQ(hf_semaphore_release(&semaphore, 2), HF_OK);
    CHECK_EQ(hf_semaphore_release(&semaphore, HF_SEMAPHORE_PERMITS_MAX),
             HF_INVALID);
    CHECK_EQ(stats_of(&semaphore).waiting, 1);
    hf_semaphore_shutdown(&semaphore);
    CHECK_EQ(answer(&large), HF_CLOSED);
    CHECK_EQ(hf_semaphore_available(&semaphore), 2);
    hf_semaphore_destroy(&semaphore);
}
