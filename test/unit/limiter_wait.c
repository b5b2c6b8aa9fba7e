/* Tests of those who wait for permits, by a clock that the test moves. */
#include <stdio.h>
#include <string.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "support/clock.h"
#include "support/limiting.h"

#define WAITERS 8

struct waiter {
    struct scene *scene;
    const char *key;
    uint64_t cost;
    uint64_t deadline_ns;
    enum hf_status status;
    struct hf_limiter_answer answer;
    uint64_t place; /* in the order in which they were served */
    struct hf_thread thread;
};

struct scene {
    struct test_clock clock;
    struct hf_limiter *limiter;
    struct hf_atomic_u64 served;
    struct waiter waiters[WAITERS];
};

static void scene_open(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    scene->clock.now_ns = SECOND;
    struct hf_limiter_opts opts = {.clock = test_clock(&scene->clock)};
    CHECK_EQ(hf_limiter_open(&scene->limiter, &opts), HF_OK);
}

static void wait_body(void *argument)
{
    struct waiter *waiter = argument;
    struct hf_limiter_ask one = ask(0, waiter->key, waiter->cost);
    struct hf_limiter_call call = {.asks = &one, .count = 1};

    waiter->status = hf_limiter_acquire(waiter->scene->limiter, &call,
                                        waiter->deadline_ns, &waiter->answer);
    waiter->place = hf_u64_add(&waiter->scene->served, 1, __ATOMIC_RELAXED);
}

/* Starts a waiter and returns when it sleeps. */
static void start(struct scene *scene, unsigned index, const char *key,
                  uint64_t cost, uint64_t deadline_ns)
{
    struct waiter *waiter = &scene->waiters[index];

    waiter->scene = scene;
    waiter->key = key;
    waiter->cost = cost;
    waiter->deadline_ns = deadline_ns;
    CHECK_EQ(hf_thread_start(&waiter->thread, NULL, wait_body, waiter), HF_OK);
    test_clock_await_sleepers(&scene->clock, index + 1);
}

TEST(nobody_waits_for_what_there_is)
{
    struct scene scene;
    struct hf_limiter_ask one = ask(0, "a", 10);
    struct hf_limiter_call call = {.asks = &one, .count = 1};
    struct hf_limiter_answer answer;

    scene_open(&scene);
    CHECK_EQ(hf_limiter_acquire(scene.limiter, &call, HF_FOREVER, &answer),
             HF_OK);
    CHECK(answer.allowed);
    CHECK_EQ(hf_limiter_acquire(scene.limiter, &call, HF_NOW, &answer),
             HF_TIMEOUT);
    CHECK_EQ(answer.retry_after_ns, 10 * SECOND);
    one.cost = 11;
    CHECK_EQ(hf_limiter_acquire(scene.limiter, &call, HF_FOREVER, &answer),
             HF_FULL);
    CHECK_EQ(answer.retry_after_ns, HF_LIMITER_NEVER);
    CHECK_EQ(stats_of(scene.limiter).waiters, 0);
    CHECK_EQ(stats_of(scene.limiter).denied, 2);
    hf_limiter_close(scene.limiter);
}

TEST(waiters_go_one_by_one_at_their_nanosecond)
{
    struct scene scene;

    scene_open(&scene);
    CHECK(take(scene.limiter, 0, "a", 10, SECOND).allowed);
    for (unsigned i = 0; i < 4; i++)
        start(&scene, i, "a", 1, HF_FOREVER);
    CHECK_EQ(stats_of(scene.limiter).waiters, 4);
    for (unsigned i = 0; i < 4; i++) {
        test_clock_advance(&scene.clock, SECOND - 1);
        CHECK_EQ(hf_u64_load(&scene.served, __ATOMIC_RELAXED), i);
        test_clock_advance(&scene.clock, 1);
        hf_thread_join(&scene.waiters[i].thread); /* in order */
        CHECK_EQ(scene.waiters[i].status, HF_OK);
        CHECK_EQ(scene.waiters[i].place, i);
        if (i < 3) /* the next has taken its place */
            test_clock_await_sleepers(&scene.clock, 3 - i);
    }
    CHECK_EQ(stats_of(scene.limiter).waiters, 0);
    CHECK_EQ(stats_of(scene.limiter).denied, 0);
    hf_limiter_close(scene.limiter);
}

TEST(a_deadline_ends_a_wait_and_the_next_is_served)
{
    struct scene scene;

    scene_open(&scene);
    CHECK(take(scene.limiter, 0, "a", 10, SECOND).allowed);
    start(&scene, 0, "a", 9, SECOND + SECOND / 2);
    start(&scene, 1, "a", 1, HF_FOREVER);
    start(&scene, 2, "a", 5, SECOND + SECOND / 4);
    test_clock_advance(&scene.clock, SECOND / 4);
    hf_thread_join(&scene.waiters[2].thread); /* it was never its turn */
    CHECK_EQ(scene.waiters[2].status, HF_TIMEOUT);
    CHECK(!scene.waiters[2].answer.allowed);
    test_clock_advance(&scene.clock, SECOND / 4);
    hf_thread_join(&scene.waiters[0].thread);
    CHECK_EQ(scene.waiters[0].status, HF_TIMEOUT);
    test_clock_await_sleepers(&scene.clock, 1);
    test_clock_advance(&scene.clock, SECOND / 2);
    hf_thread_join(&scene.waiters[1].thread);
    CHECK_EQ(scene.waiters[1].status, HF_OK);
    CHECK_EQ(stats_of(scene.limiter).denied, 2);
    hf_limiter_close(scene.limiter);
}

TEST(other_keys_are_not_held_up)
{
    struct scene scene;
    struct hf_limiter_ask one = ask(0, "b", 1);
    struct hf_limiter_call call = {.asks = &one, .count = 1};

    scene_open(&scene);
    CHECK(take(scene.limiter, 0, "a", 10, SECOND).allowed);
    start(&scene, 0, "a", 1, HF_FOREVER);
    CHECK_EQ(hf_limiter_acquire(scene.limiter, &call, HF_FOREVER, NULL), HF_OK);
    test_clock_advance(&scene.clock, SECOND);
    hf_thread_join(&scene.waiters[0].thread);
    CHECK_EQ(scene.waiters[0].status, HF_OK);
    hf_limiter_close(scene.limiter);
}

TEST(what_is_given_back_wakes_the_first)
{
    struct scene scene;
    struct hf_limiter_ask one = ask(0, "a", 1);
    struct hf_limiter_call call = {.asks = &one, .count = 1};
    struct hf_limiter_answer answer;
    uint64_t hold;

    scene_open(&scene);
    answer = take(scene.limiter, 0, "a", 8, SECOND);
    one.cost = 2;
    CHECK_EQ(
        hf_limiter_hold(scene.limiter, &call, 1000 * SECOND, &answer, &hold),
        HF_OK);
    one.cost = 1;
    start(&scene, 0, "a", 1, HF_FOREVER);
    CHECK_EQ(hf_limiter_refund(scene.limiter, &call, SECOND), HF_OK);
    hf_thread_join(&scene.waiters[0].thread);
    CHECK_EQ(scene.waiters[0].status, HF_OK);
    start(&scene, 0, "a", 1, HF_FOREVER);
    CHECK_EQ(hf_limiter_settle(scene.limiter, hold, 1, 0), HF_OK);
    hf_thread_join(&scene.waiters[0].thread);
    CHECK_EQ(scene.waiters[0].status, HF_OK);
    start(&scene, 0, "a", 1, HF_FOREVER);
    struct hf_limiter_rule more = bucket(1, SECOND, 20);
    CHECK_EQ(hf_limiter_define(scene.limiter, "default", &more, NULL), HF_OK);
    hf_thread_join(&scene.waiters[0].thread);
    CHECK_EQ(scene.waiters[0].status, HF_OK);
    hf_limiter_close(scene.limiter);
}

TEST(shut_wakes_all)
{
    struct scene scene;

    scene_open(&scene);
    CHECK(take(scene.limiter, 0, "a", 10, SECOND).allowed);
    CHECK(take(scene.limiter, 0, "b", 10, SECOND).allowed);
    for (unsigned i = 0; i < WAITERS; i++)
        start(&scene, i, i % 2 ? "a" : "b", 1, HF_FOREVER);
    hf_limiter_shutdown(scene.limiter);
    for (unsigned i = 0; i < WAITERS; i++) {
        hf_thread_join(&scene.waiters[i].thread);
        CHECK_EQ(scene.waiters[i].status, HF_CLOSED);
    }
    hf_limiter_close(scene.limiter);
}
