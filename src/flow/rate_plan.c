/* rate_plan.c - a rule, worked out once for all keys that it holds for. */
#include <assert.h>

#include "flow/rate_state.h"

typedef unsigned __int128 u128;

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* `units` pass in `span` ns, step by step; never more than one a nanosecond. */
static void set_scale(struct hf_rate_plan *plan, uint64_t units, uint64_t span)
{
    assert(units <= span);
    plan->units = units;
    plan->span = span;
    plan->inverse = units == span ? 0 : (uint64_t)(((u128)units << 64) / span);
}

static bool plan_bucket(struct hf_rate_plan *plan,
                        const struct hf_rate_rule *rule)
{
    uint64_t common = greatest_divisor(rule->span_ns, rule->permits);
    uint64_t span = rule->span_ns / common;
    uint64_t permits = rule->permits / common;

    if (permits > span)
        return false;
    plan->limit = rule->kind == HF_RATE_GCRA ? (uint64_t)rule->burst + 1
                  : rule->burst == 0         ? rule->permits
                                             : rule->burst;
    plan->cost = span / permits;
    /* The whole burst takes limit * span / permits ns to earn: no shorter than
     * its units, and the limit is for both. */
    if ((u128)plan->limit * span / permits > HF_RATE_SPAN_MAX_NS)
        return false;
    plan->edge = plan->limit * plan->cost;
    plan->step = 1;
    plan->words = 1;
    set_scale(plan, permits * plan->cost, span);
    return true;
}

static bool plan_fixed(struct hf_rate_plan *plan,
                       const struct hf_rate_rule *rule)
{
    if (rule->burst != 0 || rule->permits > rule->span_ns)
        return false;
    plan->cost = 1;
    plan->edge = rule->permits;
    plan->step = rule->permits;
    plan->words = 1;
    set_scale(plan, 1, rule->span_ns);
    return true;
}

static unsigned bits_of(uint64_t number)
{
    return number == 0 ? 0 : 64 - (unsigned)__builtin_clzll(number);
}

/* One word if the number of the window and both counts fit it: 2^15 permits a
 * second, 2^18 a minute, 2^23 a day. */
static bool plan_sliding(struct hf_rate_plan *plan,
                         const struct hf_rate_rule *rule)
{
    unsigned bits = bits_of(rule->permits);
    bool fits = bits_of(HF_RATE_NOW_MAX_NS / rule->span_ns) + 2 * bits <= 64;

    if (rule->burst != 0)
        return false;
    plan->step = 1;
    plan->bits = fits ? bits : 0;
    plan->words = fits ? 1 : 2;
    set_scale(plan, 1, rule->span_ns);
    return true;
}

enum hf_status hf_rate_plan_make(struct hf_rate_plan *plan,
                                 const struct hf_rate_rule *rule)
{
    struct hf_rate_plan made = {0};
    bool good = false;

    if (plan == NULL || rule == NULL || rule->permits == 0 ||
        rule->span_ns == 0 || rule->span_ns > HF_RATE_SPAN_MAX_NS)
        return HF_INVALID;
    made.kind = (uint16_t)rule->kind;
    made.limit = rule->permits;
    made.span_ns = rule->span_ns;
    switch (rule->kind) {
    case HF_RATE_BUCKET:
    case HF_RATE_GCRA:
        good = plan_bucket(&made, rule);
        break;
    case HF_RATE_FIXED:
        good = plan_fixed(&made, rule);
        break;
    case HF_RATE_SLIDING:
        good = plan_sliding(&made, rule);
        break;
    case HF_RATE_LOG:
    case HF_RATE_LEASES:
        good = rule->burst == 0 && rule->permits <= HF_RATE_SLOTS_MAX;
        break;
    }
    if (!good)
        return HF_INVALID;
    *plan = made;
    return HF_OK;
}

uint64_t hf_rate_instant(const struct hf_rate_plan *plan, uint64_t mark)
{
    if (plan->inverse == 0)
        return mark;
    uint64_t steps = mark / plan->step + (mark % plan->step != 0);
    u128 instant = ((u128)steps * plan->span + plan->units - 1) / plan->units;
    return instant < UINT64_MAX - 1 ? (uint64_t)instant : UINT64_MAX - 1;
}

uint64_t hf_rate_line_wait(const struct hf_rate_plan *plan, uint64_t mark,
                           uint64_t now_ns)
{
    uint64_t instant_ns = hf_rate_instant(plan, mark);

    assert(instant_ns > now_ns);
    return instant_ns - now_ns;
}
