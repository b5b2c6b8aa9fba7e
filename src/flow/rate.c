/* rate.c - token bucket on one atomic word. */
#include "holdfast/rate.h"

#include <assert.h>
#include <stddef.h>

#include "base/atomic.h"

enum hf_status hf_rate_init(struct hf_rate *rate, uint32_t burst,
                            uint64_t period_ns)
{
    if (rate == NULL || burst == 0 || period_ns == 0)
        return HF_INVALID;
    if (period_ns > HF_RATE_SPAN_MAX_NS / burst)
        return HF_INVALID;
    rate->period_ns = period_ns;
    rate->burst_ns = burst * period_ns;
    hf_u64_store(&rate->full_at_ns, 0, __ATOMIC_RELAXED);
    return HF_OK;
}

/* How far `count` permits, taken from `full_at_ns`, would pass the right edge.
 * On 0, `*next_ns` is where full_at goes. The caller has ruled out a count
 * above the burst, so no sum here can overflow. */
static inline uint64_t overshoot(const struct hf_rate *rate, uint64_t cost_ns,
                                 uint64_t full_at_ns, uint64_t now_ns,
                                 uint64_t *next_ns)
{
    uint64_t start_ns = full_at_ns > now_ns ? full_at_ns : now_ns;
    uint64_t edge_ns = now_ns + rate->burst_ns;

    *next_ns = start_ns + cost_ns;
    return *next_ns > edge_ns ? *next_ns - edge_ns : 0;
}

uint64_t hf_rate_take(struct hf_rate *rate, uint32_t count, uint64_t now_ns)
{
    uint64_t cost_ns;
    uint64_t next_ns;
    uint64_t wait_ns;

    assert(now_ns <= UINT64_MAX / 2);
    if (__builtin_mul_overflow(count, rate->period_ns, &cost_ns) ||
        cost_ns > rate->burst_ns)
        return HF_RATE_NEVER;

    /* Relaxed throughout: the word guards no other memory, and every decision
     * is made on the value that the swap confirms. */
    uint64_t full_at_ns = hf_u64_load(&rate->full_at_ns, __ATOMIC_RELAXED);
    do {
        wait_ns = overshoot(rate, cost_ns, full_at_ns, now_ns, &next_ns);
        if (wait_ns != 0)
            return wait_ns;
    } while (
        !hf_u64_cas(&rate->full_at_ns, &full_at_ns, next_ns, __ATOMIC_RELAXED));
    return 0;
}

uint64_t hf_rate_wait(const struct hf_rate *rate, uint32_t count,
                      uint64_t now_ns)
{
    uint64_t cost_ns;
    uint64_t next_ns;

    assert(now_ns <= UINT64_MAX / 2);
    if (__builtin_mul_overflow(count, rate->period_ns, &cost_ns) ||
        cost_ns > rate->burst_ns)
        return HF_RATE_NEVER;
    return overshoot(rate, cost_ns,
                     hf_u64_load(&rate->full_at_ns, __ATOMIC_RELAXED), now_ns,
                     &next_ns);
}
