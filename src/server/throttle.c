/* throttle.c - GCRA as redis-cell and Redis answer it. */
#include "server/throttle.h"

#include <assert.h>

#include "holdfast/clock.h"

#define US_NS UINT64_C(1000)

enum hf_status throttle_rule(enum throttle_form form, int64_t max_burst,
                             int64_t count, uint64_t period_ns,
                             struct hf_rate_rule *rule)
{
    if (max_burst < 0 || max_burst >= UINT32_MAX || count <= 0 ||
        period_ns == 0)
        return HF_INVALID;
    uint64_t interval_ns = period_ns / (uint64_t)count;
    if (form == THROTTLE_REDIS) {
        unsigned __int128 half = (unsigned __int128)US_NS * (uint64_t)count;
        uint64_t interval_us =
            (uint64_t)((2 * (unsigned __int128)period_ns + half) / (2 * half));
        if (interval_us > HF_RATE_SPAN_MAX_NS / US_NS)
            return HF_INVALID;
        interval_ns = (interval_us == 0 ? 1 : interval_us) * US_NS;
    }
    *rule = (struct hf_rate_rule){.kind = HF_RATE_GCRA,
                                  .permits = 1,
                                  .burst = (uint32_t)max_burst,
                                  .span_ns = interval_ns};
    return HF_OK;
}

/* redis-cell looks at whole milliseconds of the rest only. */
static int64_t seconds(enum throttle_form form, uint64_t ns)
{
    uint64_t rest = ns % HF_NS_PER_S;

    if (form == THROTTLE_CELL)
        rest /= HF_NS_PER_MS;
    return (int64_t)(ns / HF_NS_PER_S + (rest != 0));
}

void throttle_tell(enum throttle_form form, const struct hf_rate_plan *plan,
                   const struct hf_rate_answer *told,
                   struct throttle_answer *answer)
{
    uint64_t remaining = told->remaining;
    uint64_t wait_ns = told->wait_ns;

    assert(plan->kind == HF_RATE_GCRA);
    assert(plan->inverse == 0);
    if (form == THROTTLE_CELL && plan->cost >= US_NS) {
        uint64_t left_ns =
            told->reset_ns < plan->edge ? plan->edge - told->reset_ns : 0;
        remaining = left_ns / US_NS / (plan->cost / US_NS);
    }
    *answer = (struct throttle_answer){
        .limited = wait_ns != 0,
        .limit = (int64_t)told->limit,
        .remaining = (int64_t)remaining,
        .retry_s = wait_ns == 0 || wait_ns == HF_RATE_NEVER
                       ? -1
                       : seconds(form, wait_ns),
        .reset_s = seconds(form, told->reset_ns)};
}
