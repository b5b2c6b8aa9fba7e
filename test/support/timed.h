/* timed.h - a scheduler by a clock that the test moves, and what it ran.
 *
 *   begin();                  a scheduler whose own thread runs the tasks
 *   at(2000, 0, 'a');         a task that notes 'a'
 *   advance(1000);            the clock is at 2000, and what was due is over
 *   check_seen("a");
 */
#ifndef TEST_SUPPORT_TIMED_H
#define TEST_SUPPORT_TIMED_H

#include <sched.h>
#include <string.h>

#include "base/atomic.h"
#include "holdfast/scheduler.h"
#include "support/clock.h"
#include "support/test.h"

#define START_NS UINT64_C(1000)
#define SEEN_MAX 64

static struct {
    struct test_clock clock;
    struct hf_scheduler *scheduler;
    struct hf_scheduler_opts opts;
    uintptr_t seen[SEEN_MAX]; /* arguments of the runs, in order */
    struct hf_atomic_u32 runs;
    struct hf_atomic_u32 gate; /* open: a task that waits goes on */
    struct hf_scheduler_note notes[SEEN_MAX];
    struct hf_atomic_u32 told;
} test;

static inline void observe(void *context, const struct hf_scheduler_note *note)
{
    (void)context;
    uint32_t told = hf_u32_load(&test.told, __ATOMIC_RELAXED);
    if (told < SEEN_MAX)
        test.notes[told] = *note;
    /* Release: the note. */
    hf_u32_store(&test.told, told + 1, __ATOMIC_RELEASE);
}

static inline void prepare(void)
{
    memset(&test, 0, sizeof test);
    test.clock.now_ns = START_NS;
    test.opts = (struct hf_scheduler_opts){.name = "timers",
                                           .direct = true,
                                           .observe = observe,
                                           .clock = test_clock(&test.clock)};
}

static inline void begin(void)
{
    prepare();
    CHECK_EQ(hf_scheduler_open(&test.scheduler, &test.opts), HF_OK);
}

static inline void begin_on(struct hf_pool **pool,
                            const struct hf_pool_opts *opts)
{
    prepare();
    CHECK_EQ(hf_pool_open(pool, opts), HF_OK);
    test.opts.direct = false;
    test.opts.pool = *pool;
    CHECK_EQ(hf_scheduler_open(&test.scheduler, &test.opts), HF_OK);
}

static inline struct hf_scheduler_stats stats(void)
{
    struct hf_scheduler_stats out;

    hf_scheduler_stats(test.scheduler, &out);
    return out;
}

/* Until the word is `value` at least; a slow machine does not fail. */
static inline void await(struct hf_atomic_u32 *word, uint32_t value)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    while (hf_u32_load(word, __ATOMIC_ACQUIRE) < value) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
}

/* Is nothing due and nothing running? A run between the two looks would show
 * in the counts. */
static inline bool is_quiet(void)
{
    struct hf_scheduler_stats before = stats();
    uint64_t next_ns = hf_scheduler_next_ns(test.scheduler);
    struct hf_scheduler_stats after = stats();

    return next_ns > hf_clock_now_ns(test.opts.clock) && before.active == 0 &&
           after.active == 0 && before.fired == after.fired &&
           before.dropped == after.dropped;
}

static inline void await_quiet(void)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    while (!is_quiet()) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
}

static inline void advance(uint64_t ns)
{
    test_clock_advance(&test.clock, ns);
    await_quiet();
}

static inline int note(void *arg)
{
    /* Relaxed: one run at a time. Release: what was seen. */
    uint32_t run = hf_u32_load(&test.runs, __ATOMIC_RELAXED);
    if (run < SEEN_MAX)
        test.seen[run] = (uintptr_t)arg;
    hf_u32_store(&test.runs, run + 1, __ATOMIC_RELEASE);
    return 0;
}

static inline int fail(void *arg)
{
    (void)note(arg);
    return 7;
}

static inline int wait_at_gate(void *arg)
{
    (void)note(arg);
    while (hf_u32_load(&test.gate, __ATOMIC_ACQUIRE) == 0)
        sched_yield();
    return 0;
}

static inline void *argument(uintptr_t value)
{
    return (void *)value; /* a number is all that the tests need */
}

static inline uint64_t at(uint64_t when_ns, int priority, uintptr_t value)
{
    uint64_t id = 0;

    CHECK_EQ(hf_scheduler_at(test.scheduler, when_ns, priority, note,
                             argument(value), &id),
             HF_OK);
    CHECK(id != 0);
    return id;
}

static inline void check_seen(const char *expected)
{
    char text[SEEN_MAX + 1] = "";
    uint32_t runs = hf_u32_load(&test.runs, __ATOMIC_ACQUIRE);

    for (uint32_t i = 0; i < runs && i < SEEN_MAX; i++)
        text[i] = (char)test.seen[i];
    CHECK_TEXT(text, strlen(text), expected);
}

/* What was scheduled is accounted for. */
static inline void check_sum(void)
{
    struct hf_scheduler_stats now = stats();

    CHECK_EQ(now.active, 0);
    CHECK_EQ(now.scheduled,
             now.pending + now.ended + now.cancelled + now.returned);
}

#endif
