/* rate.c - 32 real threads at one limiter of every kind.
 *
 * tests: also under sanitizers
 *
 * Exactly the budget goes through: at one instant the limit, and over time as
 * much as one greedy thread alone would get.
 */
#include "holdfast/rate.h"

#include <sched.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32

static const struct hf_rate_rule rules[] = {
    {.kind = HF_RATE_BUCKET, .permits = 1, .span_ns = 7, .burst = 50},
    {.kind = HF_RATE_BUCKET, .permits = 3, .span_ns = 10, .burst = 50},
    {.kind = HF_RATE_BUCKET, .permits = 999, .span_ns = 1000, .burst = 50},
    {.kind = HF_RATE_GCRA, .permits = 2, .span_ns = 7, .burst = 49},
    {.kind = HF_RATE_FIXED, .permits = 50, .span_ns = 100},
    {.kind = HF_RATE_SLIDING, .permits = 50, .span_ns = 100000},
    {.kind = HF_RATE_SLIDING, .permits = 50, .span_ns = 100},
    {.kind = HF_RATE_LOG, .permits = 50, .span_ns = 100},
    {.kind = HF_RATE_LEASES, .permits = 50, .span_ns = 100},
};

#define RULES (sizeof rules / sizeof rules[0])

static struct {
    struct hf_rate rate;
    uint64_t memory[128];
    struct hf_atomic_u64 now_ns;
    struct hf_atomic_u64 granted;
    struct hf_atomic_u64 holders;
    struct hf_atomic_u64 errors;
    uint64_t end_ns;
    uint64_t step_ns;
} test;

static uint64_t share(uint64_t count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 8 : count;
}

static void begin(const struct hf_rate_rule *rule)
{
    memset(&test, 0, sizeof test);
    CHECK(hf_rate_memory(rule) <= sizeof test.memory);
    CHECK_EQ(hf_rate_open(&test.rate, rule, test.memory), HF_OK);
    CHECK_EQ(test.rate.plan.limit, 50);
}

/* ---- At one instant. ---- */

static void instant_body(void *context, int index)
{
    (void)context;
    (void)index;
    for (int i = 0; i < 200; i++)
        if (hf_rate_take(&test.rate, 1, 1000) == 0)
            hf_u64_add(&test.granted, 1, __ATOMIC_RELAXED);
}

TEST(at_one_instant_exactly_the_limit_goes_through)
{
    for (unsigned i = 0; i < RULES; i++) {
        begin(&rules[i]);
        test_threads(THREADS, instant_body, NULL);
        CHECK_EQ(test.granted.value, 50);
    }
}

/* ---- Over time. Whoever is refused moves the clock on, if nobody has. ---- */

static void greedy_body(void *context, int index)
{
    uint64_t granted = 0;

    (void)context;
    (void)index;
    for (;;) {
        uint64_t now_ns = hf_u64_load(&test.now_ns, __ATOMIC_RELAXED);
        if (now_ns >= test.end_ns)
            break;
        if (hf_rate_take(&test.rate, 1, now_ns) == 0) {
            granted++;
            continue;
        }
        hf_u64_cas(&test.now_ns, &now_ns, now_ns + test.step_ns,
                   __ATOMIC_RELAXED);
    }
    hf_u64_add(&test.granted, granted, __ATOMIC_RELAXED);
}

TEST(over_time_as_much_goes_through_as_one_thread_alone_would_get)
{
    for (unsigned i = 0; i < RULES; i++) {
        uint64_t ticks = share(20000);
        uint64_t alone;
        begin(&rules[i]);
        test.step_ns = rules[i].span_ns > 10000 ? rules[i].span_ns / 100 : 1;
        test.end_ns = ticks * test.step_ns;
        greedy_body(NULL, 0);
        alone = test.granted.value;
        uint64_t end_ns = test.end_ns;
        uint64_t step_ns = test.step_ns;
        begin(&rules[i]);
        test.end_ns = end_ns;
        test.step_ns = step_ns;
        test_threads(THREADS, greedy_body, NULL);
        CHECK_EQ(test.granted.value, alone);
    }
}

/* ---- Instants in any order, refunds in between: the sum never passes the
 * budget of the whole time. ---- */

static void jumble_body(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (uint64_t i = 0; i < share(4000); i++) {
        uint64_t now_ns = hf_random_below(&random, 1000);
        uint32_t count = 1 + (uint32_t)hf_random_below(&random, 3);
        struct hf_rate_answer answer;
        if (hf_rate_ask(&test.rate, count, now_ns, &answer) != 0)
            continue;
        if (answer.remaining > 50 - count || answer.taken_ns < now_ns)
            hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
        if (hf_random_below(&random, 2) == 0)
            hf_rate_refund(&test.rate, count, answer.taken_ns);
        else
            hf_u64_add(&test.granted, count, __ATOMIC_RELAXED);
    }
}

TEST(instants_in_any_order_let_no_more_through)
{
    for (unsigned i = 0; i < RULES; i++) {
        uint64_t span_ns = rules[i].span_ns;
        begin(&rules[i]);
        test_threads(THREADS, jumble_body, NULL);
        uint64_t most =
            rules[i].burst != 0
                ? 50 + 1000 * (uint64_t)rules[i].permits / span_ns + 1
                : (1000 / span_ns + 2) * 50;
        CHECK(test.granted.value <= most);
        CHECK(test.granted.value >= 40);
        CHECK_EQ(test.errors.value, 0);
    }
}

/* ---- Leases that are given back. ---- */

static void holder_body(void *context, int index)
{
    (void)context;
    (void)index;
    for (uint64_t i = 0; i < share(4000); i++) {
        struct hf_rate_answer answer;
        uint64_t now_ns = hf_u64_add(&test.now_ns, 1, __ATOMIC_RELAXED);
        if (hf_rate_ask(&test.rate, 1, now_ns, &answer) != 0)
            continue;
        if (hf_u64_add(&test.holders, 1, __ATOMIC_RELAXED) >= 3)
            hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
        if (i % 16 == 0)
            sched_yield();
        hf_u64_sub(&test.holders, 1, __ATOMIC_RELAXED);
        hf_rate_refund(&test.rate, 1, answer.taken_ns);
        hf_u64_add(&test.granted, 1, __ATOMIC_RELAXED);
    }
}

TEST(never_more_hold_a_lease_than_there_are)
{
    struct hf_rate_rule rule = {
        .kind = HF_RATE_LEASES, .permits = 3, .span_ns = 1000000000};

    memset(&test, 0, sizeof test);
    CHECK_EQ(hf_rate_open(&test.rate, &rule, test.memory), HF_OK);
    test_threads(THREADS, holder_body, NULL);
    CHECK_EQ(test.errors.value, 0);
    CHECK(test.granted.value > 0);
    /* all came back */
    CHECK_EQ(hf_rate_wait(&test.rate, 3, test.now_ns.value), 0);
}
