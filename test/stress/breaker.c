/* breaker.c - 32 real threads at one circuit breaker.
 *
 * tests: also under sanitizers
 */
#include "holdfast/breaker.h"

#include <sched.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS     32
#define PROBES      3
#define CHANGES_MAX 400000

static struct {
    struct hf_breaker *breaker;
    struct hf_atomic_u64 now_ns;
    struct hf_atomic_u32 told[CHANGES_MAX];   /* 1 + from * 8 + to */
    struct hf_atomic_u32 probes[CHANGES_MAX]; /* by the state they began in */
    struct hf_atomic_u64 calls;
    struct hf_atomic_u64 refused;
    struct hf_atomic_u64 errors;
} test;

static int rounds(int count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 8 : count;
}

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
}

static void on_change(void *context, const struct hf_breaker_change *change)
{
    (void)context;
    expect(change->sequence < CHANGES_MAX);
    if (change->sequence < CHANGES_MAX)
        expect(
            hf_u32_swap(&test.told[change->sequence],
                        1 + (uint32_t)change->from * 8 + (uint32_t)change->to,
                        __ATOMIC_RELAXED) == 0);
}

static void body(void *context, int index)
{
    struct hf_random random;
    int count = rounds(10000);

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = 0; i < count; i++) {
        struct hf_breaker_call call;
        uint64_t now_ns = hf_u64_add(&test.now_ns, 1, __ATOMIC_RELAXED);
        if (hf_breaker_enter(test.breaker, now_ns, &call) != 0) {
            hf_u64_add(&test.refused, 1, __ATOMIC_RELAXED);
            continue;
        }
        hf_u64_add(&test.calls, 1, __ATOMIC_RELAXED);
        uint64_t sequence = call.state >> 3;
        bool probe = (call.state & 7) == HF_BREAKER_HALF_OPEN;
        if (probe)
            expect(hf_u32_add(&test.probes[sequence], 1, __ATOMIC_RELAXED) <
                   PROBES);
        if (hf_random_below(&random, 64) == 0)
            sched_yield();
        bool failed = hf_random_below(&random, 4) == 0;
        expect(hf_breaker_leave(test.breaker, &call,
                                failed ? HF_BREAKER_FAILED : HF_BREAKER_WORKED,
                                now_ns + 1) == HF_OK);
    }
}

TEST(probes_changes_and_counts_hold_under_load)
{
    struct hf_breaker_opts opts = {.failures_max = 4,
                                   .failure_percent = 40,
                                   .window_calls = 20,
                                   .probes = PROBES,
                                   .open_ns = 20,
                                   .probe_ns = 1000000000,
                                   .on_change = on_change};
    struct hf_breaker_stats stats;
    enum hf_breaker_state state = HF_BREAKER_CLOSED;
    unsigned last = 0;

    memset(&test, 0, sizeof test);
    CHECK_EQ(hf_breaker_new(&test.breaker, &opts), HF_OK);
    test_threads(THREADS, body, NULL);
    CHECK_EQ(test.errors.value, 0);
    hf_breaker_stats(test.breaker, &stats);
    CHECK_EQ(stats.worked + stats.failed, test.calls.value);
    CHECK_EQ(stats.refused, test.refused.value);
    for (unsigned i = 1; i < CHANGES_MAX && test.told[i].value != 0; i++) {
        CHECK_EQ((test.told[i].value - 1) / 8, state);
        state = (enum hf_breaker_state)((test.told[i].value - 1) % 8);
        last = i;
    }
    for (unsigned i = last + 1; i < CHANGES_MAX; i++)
        CHECK_EQ(test.told[i].value, 0);
    CHECK_EQ(state, stats.state);
    CHECK(stats.trips > 0);
    hf_breaker_free(test.breaker);
}
