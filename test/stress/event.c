/* event.c - real threads on the event count and the mutex.
 *
 * tests: also under sanitizers
 *
 * More threads than processors, so that threads are stopped by the system at
 * any place. A lost wake-up would leave somebody asleep: the run then does not
 * end and is stopped as failed.
 */
#include "holdfast/event.h"

#include "base/atomic.h"
#include "support/test.h"
#include "support/threads.h"
#include "sync/mutex.h"

#define THREADS 32
#define ROUNDS  2000

/* Half of the threads put tokens, half take as many. */
static struct {
    struct hf_event event;
    struct hf_atomic_u64 tokens;
    struct hf_atomic_u64 expired;
} market;

static enum hf_status take(void *context)
{
    (void)context;
    uint64_t tokens = hf_u64_load(&market.tokens, __ATOMIC_RELAXED);
    while (tokens != 0) {
        if (hf_u64_cas(&market.tokens, &tokens, tokens - 1, __ATOMIC_ACQUIRE))
            return HF_OK;
    }
    return HF_PENDING;
}

/* Every third look has a deadline that is all but over, and is repeated. */
static void take_one(int round)
{
    const struct hf_clock *clock = hf_clock_system();
    enum hf_status status = HF_TIMEOUT;

    while (status == HF_TIMEOUT) {
        uint64_t deadline_ns =
            round++ % 3 == 0 ? hf_clock_now_ns(clock) + 20000 : HF_FOREVER;
        status = hf_event_until(&market.event, take, NULL, clock, deadline_ns);
        if (status == HF_TIMEOUT)
            hf_u64_add(&market.expired, 1, __ATOMIC_RELAXED);
    }
}

static void trade(void *context, int index)
{
    (void)context;
    for (int i = 0; i < ROUNDS; i++) {
        if (index % 2 == 0) {
            hf_u64_add(&market.tokens, 1, __ATOMIC_RELEASE);
            hf_event_wake(&market.event, 1);
        } else {
            take_one(i);
        }
    }
}

TEST(every_token_reaches_a_taker_with_more_threads_than_processors)
{
    test_threads(THREADS, trade, NULL);
    CHECK_EQ(market.tokens.value, 0);
    CHECK_EQ((uint32_t)market.event.word.value, 0);
}

static struct {
    struct hf_mutex mutex;
    uint64_t sum; /* (m) */
} guarded;

static void add(void *context, int index)
{
    (void)context;
    (void)index;
    for (int i = 0; i < ROUNDS; i++) {
        hf_mutex_lock(&guarded.mutex);
        guarded.sum++;
        hf_mutex_unlock(&guarded.mutex);
    }
}

TEST(a_mutex_has_one_holder_with_more_threads_than_processors)
{
    test_threads(THREADS, add, NULL);
    CHECK_EQ(guarded.sum, THREADS * ROUNDS);
    CHECK(!hf_mutex_held(&guarded.mutex));
}
