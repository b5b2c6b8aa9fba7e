/* stall.c - tests of stopping a thread where it stands. */
#include "support/stall.h"

#include "base/atomic.h"
#include "base/futex.h"
#include "base/memory.h"
#include "base/thread.h"
#include "holdfast/clock.h"
#include "support/test.h"

#define COUNTERS 3
#define OTHERS   1000000u

struct counter {
    pthread_t thread;
    struct hf_atomic_u64 count; /* (a) */
    struct hf_atomic_u32 end;   /* (a) */
};

/* Relaxed throughout: the numbers alone matter. */
static uint64_t count_of(const struct counter *counter)
{
    return hf_u64_load(&counter->count, __ATOMIC_RELAXED);
}

static void *count(void *argument)
{
    struct counter *counter = argument;

    while (hf_u32_load(&counter->end, __ATOMIC_RELAXED) == 0)
        hf_u64_add(&counter->count, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void wait_until_above(const struct counter *counter, uint64_t number)
{
    const struct hf_clock *clock = hf_clock_system();
    uint64_t deadline_ns = hf_clock_after_ms(clock, 60000);

    while (count_of(counter) <= number) {
        CHECK(hf_clock_now_ns(clock) < deadline_ns);
        hf_thread_yield();
    }
}

static void start(struct counter *counters, unsigned n)
{
    stall_init();
    for (unsigned i = 0; i < n; i++) {
        CHECK_EQ(pthread_create(&counters[i].thread, NULL, count, &counters[i]),
                 0);
        wait_until_above(&counters[i], 0);
    }
}

static void finish(struct counter *counters, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        hf_u32_store(&counters[i].end, 1, __ATOMIC_RELAXED);
        pthread_join(counters[i].thread, NULL);
    }
}

TEST(a_stopped_thread_stands_still_while_others_go_on)
{
    struct counter counters[2] = {{0}};
    struct stall *stall;
    uint64_t stood;

    start(counters, 2);
    for (int i = 0; i < 10; i++) {
        stall = stall_stop(counters[0].thread);
        stood = count_of(&counters[0]);
        wait_until_above(&counters[1], count_of(&counters[1]) + OTHERS);
        CHECK_EQ(count_of(&counters[0]), stood);
        stall_resume(stall);
        wait_until_above(&counters[0], stood);
    }
    finish(counters, 2);
}

TEST(several_can_be_stopped_and_go_on_in_any_order)
{
    struct counter counters[COUNTERS] = {{0}};
    struct stall *stalls[COUNTERS];
    uint64_t stood[COUNTERS];

    start(counters, COUNTERS);
    for (unsigned i = 0; i < COUNTERS; i++) {
        stalls[i] = stall_stop(counters[i].thread);
        stood[i] = count_of(&counters[i]);
    }
    stall_resume(stalls[1]);
    wait_until_above(&counters[1], stood[1] + OTHERS);
    CHECK_EQ(count_of(&counters[0]), stood[0]);
    CHECK_EQ(count_of(&counters[2]), stood[2]);
    stall_resume(stalls[2]);
    stall_resume(stalls[0]);
    wait_until_above(&counters[0], stood[0]);
    wait_until_above(&counters[2], stood[2]);
    finish(counters, COUNTERS);
}

static void *sleep_until_end(void *argument)
{
    struct counter *counter = argument;

    while (hf_u32_load(&counter->end, __ATOMIC_RELAXED) == 0) {
        hf_u64_add(&counter->count, 1, __ATOMIC_RELAXED);
        hf_futex_wait(&counter->end.value, 0, hf_clock_system(), HF_FOREVER);
    }
    return NULL;
}

TEST(a_thread_that_sleeps_can_be_stopped)
{
    struct counter counter = {0};
    struct stall *stall = NULL;

    stall_init();
    CHECK_EQ(pthread_create(&counter.thread, NULL, sleep_until_end, &counter),
             0);
    wait_until_above(&counter, 0);
    for (int i = 0; i < 100; i++) {
        stall = stall_stop(counter.thread);
        if (i < 99)
            stall_resume(stall);
    }
    /* What wakes it while it is stopped is not lost. */
    hf_u32_store(&counter.end, 1, __ATOMIC_RELAXED);
    hf_futex_wake(&counter.end.value, 1);
    stall_resume(stall);
    pthread_join(counter.thread, NULL);
}

/* Blocks too large for a thread's own cache go back to the arena of whoever
 * allocated them. */
static void exchange(struct hf_atomic_ptr *block)
{
    hf_free(hf_ptr_swap(block, hf_alloc(4096), __ATOMIC_ACQ_REL));
}

struct exchanger {
    struct hf_atomic_ptr block;
    struct hf_atomic_u32 end;
};

static void *exchange_until_end(void *argument)
{
    struct exchanger *exchanger = argument;

    while (!hf_u32_load(&exchanger->end, __ATOMIC_RELAXED))
        exchange(&exchanger->block);
    return NULL;
}

TEST(a_stopped_thread_is_not_inside_the_allocator)
{
    struct exchanger exchanger = {0};
    pthread_t thread;

    stall_init();
    CHECK_EQ(pthread_create(&thread, NULL, exchange_until_end, &exchanger), 0);
    for (int i = 0; i < 300; i++) {
        struct stall *stall = stall_stop(thread);
        for (int k = 0; k < 20; k++)
            exchange(&exchanger.block);
        stall_resume(stall);
    }
    hf_u32_store(&exchanger.end, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    hf_free(exchanger.block.value);
}
