/* Tests of hf_event: deadlines by an injected clock, keys, waking. */
#include "holdfast/event.h"

#include <pthread.h>

#include "base/atomic.h"
#include "support/clock.h"
#include "support/test.h"
#include "support/threads.h"

TEST(a_wake_up_after_prepare_ends_the_wait_at_once)
{
    struct hf_event event;

    hf_event_init(&event);
    uint32_t key = hf_event_prepare(&event);
    hf_event_wake(&event, 1);
    CHECK_EQ(hf_event_wait(&event, key, NULL, HF_FOREVER), HF_OK);
}

TEST(a_wake_up_before_prepare_does_not)
{
    struct test_clock hands = {.now_ns = 100};
    struct hf_event event = {{0}};

    hf_event_wake(&event, 1);
    hf_event_wake_all(&event);
    uint32_t key = hf_event_prepare(&event);
    CHECK_EQ(hf_event_wait(&event, key, test_clock(&hands), 100), HF_TIMEOUT);
}

TEST(cancel_leaves_nobody_to_wake)
{
    struct hf_event event = {{0}};

    uint32_t key = hf_event_prepare(&event);
    CHECK(event.word.value != 0);
    hf_event_cancel(&event, key);
    CHECK_EQ(event.word.value, 0);
    key = hf_event_prepare(&event);
    hf_event_wake(&event, 1);
    hf_event_cancel(&event, key);
    CHECK_EQ((uint32_t)event.word.value, 0);
}

TEST(deadlines_in_the_past_do_not_wait)
{
    struct test_clock hands = {.now_ns = 1000};
    struct hf_event event = {{0}};
    const uint64_t deadlines[] = {HF_NOW, 1, 999, 1000};

    for (size_t i = 0; i < sizeof deadlines / sizeof deadlines[0]; i++) {
        uint32_t key = hf_event_prepare(&event);
        CHECK_EQ(hf_event_wait(&event, key, test_clock(&hands), deadlines[i]),
                 HF_TIMEOUT);
    }
    CHECK_EQ((uint32_t)event.word.value, 0);
}

/* A condition that others make true. */
struct gate {
    struct hf_event event;
    const struct hf_clock *clock;
    struct hf_atomic_u32 open;
    struct hf_atomic_u32 passed;
    uint64_t deadline_ns;
    enum hf_status status;
};

static enum hf_status try_gate(void *context)
{
    struct gate *gate = context;
    return hf_u32_load(&gate->open, __ATOMIC_ACQUIRE) ? HF_OK : HF_PENDING;
}

static void *wait_at_gate(void *context)
{
    struct gate *gate = context;
    enum hf_status status = hf_event_until(&gate->event, try_gate, gate,
                                           gate->clock, gate->deadline_ns);
    __atomic_store_n(&gate->status, status, __ATOMIC_RELAXED);
    hf_u32_add(&gate->passed, 1, __ATOMIC_RELEASE);
    return NULL;
}

TEST(until_times_out_when_the_clock_reaches_the_deadline_not_before)
{
    struct test_clock hands = {.now_ns = 100};
    struct gate gate = {.clock = test_clock(&hands), .deadline_ns = 200};
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, wait_at_gate, &gate), 0);
    test_clock_await_sleepers(&hands, 1);
    test_clock_advance(&hands, 99);
    CHECK_EQ(hf_u32_load(&gate.passed, __ATOMIC_ACQUIRE), 0);
    test_clock_advance(&hands, 1);
    pthread_join(thread, NULL);
    CHECK_EQ(gate.status, HF_TIMEOUT);
}

TEST(until_ends_when_the_condition_is_true_and_somebody_wakes)
{
    struct test_clock hands = {.now_ns = 100};
    struct gate gate = {.clock = test_clock(&hands), .deadline_ns = HF_FOREVER};
    pthread_t thread;

    CHECK_EQ(pthread_create(&thread, NULL, wait_at_gate, &gate), 0);
    test_clock_await_sleepers(&hands, 1);
    hf_event_wake(&gate.event, 1); /* for nothing: it goes on waiting */
    hf_u32_store(&gate.open, 1, __ATOMIC_RELEASE);
    hf_event_wake(&gate.event, 1);
    pthread_join(thread, NULL);
    CHECK_EQ(gate.status, HF_OK);
}

TEST(until_with_no_time_tries_once)
{
    struct gate gate = {.status = HF_OK};

    CHECK_EQ(hf_event_until(&gate.event, try_gate, &gate, NULL, HF_NOW),
             HF_TIMEOUT);
    gate.open.value = 1;
    CHECK_EQ(hf_event_until(&gate.event, try_gate, &gate, NULL, HF_NOW), HF_OK);
}

#define MANY 32

TEST(wake_all_lets_every_waiter_go)
{
    struct test_clock hands = {.now_ns = 100};
    struct gate gate = {.clock = test_clock(&hands), .deadline_ns = HF_FOREVER};
    pthread_t threads[MANY];

    for (int i = 0; i < MANY; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, wait_at_gate, &gate), 0);
    test_clock_await_sleepers(&hands, MANY);
    hf_u32_store(&gate.open, 1, __ATOMIC_RELEASE);
    hf_event_wake_all(&gate.event);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(gate.passed.value, MANY);
    CHECK_EQ((uint32_t)gate.event.word.value, 0);
}
