/* rate_state.c - takes, refunds and changes of rule, on one or two words.
 *
 * The sliding counter. Its state is the number of the current window, what was
 * taken in it and what in the one before:
 *
 *        window k - 1          window k
 *   |---- before ------|---- current ----:------|
 *                       <------ gone --->:<left>     estimate =
 *                                       now            before * left / span
 *                                                      + current
 *
 * Estimates are compared by their products with the span, so nothing is
 * rounded. The estimate falls without a jump as time goes on, also where the
 * windows change, so the wait is the first instant at which it is low enough.
 */
#include "flow/rate_state.h"

#include <assert.h>

typedef unsigned __int128 u128;

struct pair {
    uint64_t index; /* of the current window */
    uint64_t before;
    uint64_t current;
};

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Inline: a pair that is passed in memory costs more than all the sums. */
HF_INLINE struct pair pair_read(const struct hf_rate_plan *plan,
                                const struct rate_state *state)
{
    uint64_t word = state->word[0];

    if (plan->words == 2)
        return (struct pair){.index = word,
                             .before = state->word[1] >> 32,
                             .current = (uint32_t)state->word[1]};
    uint64_t mask = (UINT64_C(1) << plan->bits) - 1;
    return (struct pair){.index = word >> (2 * plan->bits),
                         .before = word >> plan->bits & mask,
                         .current = word & mask};
}

HF_INLINE void pair_write(const struct hf_rate_plan *plan, struct pair pair,
                          struct rate_state *state)
{
    assert(pair.before <= plan->limit);
    assert(pair.current <= plan->limit);
    if (plan->words == 2) {
        state->word[0] = pair.index;
        state->word[1] = pair.before << 32 | pair.current;
        return;
    }
    state->word[0] = pair.index << (2 * plan->bits) |
                     pair.before << plan->bits | pair.current;
}

/* The pair as it is at now_ns. False if its window begins later: an instant
 * that arrives late opens no window that was left. */
HF_INLINE bool pair_roll(const struct hf_rate_plan *plan, struct pair *pair,
                         uint64_t now_ns)
{
    uint64_t index = rate_mark(plan, now_ns);

    if (index < pair->index)
        return false;
    if (index > pair->index) {
        pair->before = index == pair->index + 1 ? pair->current : 0;
        pair->current = 0;
        pair->index = index;
    }
    return true;
}

/* What is left of the window in which now_ns lies. */
static uint64_t pair_left(const struct hf_rate_plan *plan, struct pair pair,
                          uint64_t now_ns)
{
    uint64_t gone = now_ns - pair.index * plan->span_ns;

    assert(gone < plan->span_ns);
    return plan->span_ns - gone;
}

/* How far into its window the estimate of `counted` permits of the window
 * before falls to `room`. */
static uint64_t pair_fall_ns(const struct hf_rate_plan *plan, uint64_t counted,
                             uint64_t room)
{
    if (counted <= room)
        return 0;
    return plan->span_ns - (uint64_t)((u128)room * plan->span_ns / counted);
}

/* The first instant at which `count` could be taken, if nobody else came. */
static uint64_t pair_instant(const struct hf_rate_plan *plan, struct pair pair,
                             uint64_t count, uint64_t limit)
{
    uint64_t start_ns = pair.index * plan->span_ns;

    assert(count <= limit);
    if (pair.current + count <= limit)
        return start_ns +
               pair_fall_ns(plan, pair.before, limit - pair.current - count);
    return start_ns + plan->span_ns +
           pair_fall_ns(plan, pair.current, limit - count);
}

static uint64_t pair_take(const struct hf_rate_plan *plan,
                          const struct rate_state *state, uint64_t count,
                          uint64_t keep_back, uint64_t now_ns,
                          struct rate_state *next)
{
    struct pair pair = pair_read(plan, state);
    uint64_t limit = plan->limit - keep_back;

    if (keep_back > plan->limit || count > limit)
        return HF_RATE_NEVER;
    bool timely = pair_roll(plan, &pair, now_ns);
    if (!timely || pair.before + pair.current + count > limit) {
        uint64_t instant_ns = pair_instant(plan, pair, count, limit);
        if (instant_ns > now_ns)
            return instant_ns - now_ns;
    }
    pair.current += count;
    pair_write(plan, pair, next);
    return 0;
}

/* The estimate, rounded up to permits. */
static uint64_t pair_spent(const struct hf_rate_plan *plan, struct pair pair,
                           uint64_t now_ns)
{
    u128 part = (u128)pair.before * pair_left(plan, pair, now_ns);

    return pair.current +
           (uint64_t)((part + plan->span_ns - 1) / plan->span_ns);
}

static void pair_tell(const struct hf_rate_plan *plan,
                      const struct rate_state *state, uint64_t now_ns,
                      struct hf_rate_answer *answer)
{
    struct pair pair = pair_read(plan, state);
    bool timely = pair_roll(plan, &pair, now_ns);
    uint64_t spent = timely ? pair_spent(plan, pair, now_ns) : plan->limit;
    uint64_t windows = pair.current > 0 ? 2 : pair.before > 0 ? 1 : 0;
    uint64_t full_ns = (pair.index + windows) * plan->span_ns;

    answer->remaining = spent < plan->limit ? plan->limit - spent : 0;
    answer->reset_ns = windows == 0 && timely ? 0 : full_ns - now_ns;
    answer->taken_ns = now_ns;
}

static void pair_refund(const struct hf_rate_plan *plan,
                        const struct rate_state *state, uint64_t count,
                        uint64_t taken_ns, struct rate_state *next)
{
    struct pair pair = pair_read(plan, state);
    uint64_t index = rate_mark(plan, taken_ns);

    if (index == pair.index)
        pair.current -= min_u64(count, pair.current);
    else if (index + 1 == pair.index)
        pair.before -= min_u64(count, pair.before);
    pair_write(plan, pair, next);
}

/* ---- On a line. ---- */

static void line_tell(const struct hf_rate_plan *plan, uint64_t word,
                      uint64_t now_ns, struct hf_rate_answer *answer)
{
    uint64_t mark = rate_mark(plan, now_ns);
    uint64_t spent = word > mark ? word - mark : 0;

    answer->remaining =
        spent < plan->edge ? (plan->edge - spent) / plan->cost : 0;
    answer->reset_ns = spent == 0 ? 0 : hf_rate_line_wait(plan, word, now_ns);
    answer->taken_ns = now_ns;
}

static uint64_t line_refund(const struct hf_rate_plan *plan, uint64_t word,
                            uint64_t count, uint64_t taken_ns)
{
    uint64_t mark = rate_mark(plan, taken_ns);

    if (word <= mark)
        return word;
    if (plan->kind == HF_RATE_FIXED && word - mark > plan->edge)
        return word; /* it counts in a later window */
    return word -
           min_u64(min_u64(count, plan->limit) * plan->cost, word - mark);
}

/* ---- Whatever the kind. ---- */

uint64_t hf_rate_state_take(const struct hf_rate_plan *plan,
                            const struct rate_state *state, uint64_t count,
                            uint64_t keep_back, uint64_t now_ns,
                            struct rate_state *next)
{
    assert(plan->words != 0);
    if (rate_on_line(plan))
        return rate_line_take(plan, state->word[0], count, keep_back, now_ns,
                              &next->word[0]);
    return pair_take(plan, state, count, keep_back, rate_clip(now_ns), next);
}

void hf_rate_state_tell(const struct hf_rate_plan *plan,
                        const struct rate_state *state, uint64_t now_ns,
                        struct hf_rate_answer *answer)
{
    assert(plan->words != 0);
    now_ns = rate_clip(now_ns);
    answer->limit = plan->limit;
    if (rate_on_line(plan))
        line_tell(plan, state->word[0], now_ns, answer);
    else
        pair_tell(plan, state, now_ns, answer);
}

void hf_rate_state_refund(const struct hf_rate_plan *plan,
                          const struct rate_state *state, uint64_t count,
                          uint64_t taken_ns, struct rate_state *next)
{
    assert(plan->words != 0);
    taken_ns = rate_clip(taken_ns);
    if (rate_on_line(plan))
        next->word[0] = line_refund(plan, state->word[0], count, taken_ns);
    else
        pair_refund(plan, state, count, taken_ns, next);
}

bool hf_rate_state_idle(const struct hf_rate_plan *plan,
                        const struct rate_state *state, uint64_t now_ns)
{
    now_ns = rate_clip(now_ns);
    if (rate_on_line(plan))
        return state->word[0] <= rate_mark(plan, now_ns);
    struct pair pair = pair_read(plan, state);
    return pair_roll(plan, &pair, now_ns) && pair.before == 0 &&
           pair.current == 0;
}

/* ---- Another rule. ---- */

static bool both(const struct hf_rate_plan *a, const struct hf_rate_plan *b,
                 enum hf_rate_kind kind)
{
    return a->kind == kind && b->kind == kind && a->span_ns == b->span_ns;
}

static uint64_t convert_bucket(const struct hf_rate_plan *from,
                               const struct hf_rate_plan *to, uint64_t word,
                               uint64_t now_ns)
{
    uint64_t mark = rate_mark(from, now_ns);
    u128 spent = word > mark ? word - mark : 0;

    spent = (spent * to->cost + from->cost - 1) / from->cost;
    return rate_mark(to, now_ns) +
           (spent < to->edge ? (uint64_t)spent : to->edge);
}

/* The window in which something was taken last, whatever the time. */
static uint64_t convert_fixed(const struct hf_rate_plan *from,
                              const struct hf_rate_plan *to, uint64_t word)
{
    if (word == 0)
        return 0;
    uint64_t window = (word - 1) / from->limit;
    uint64_t taken = word - window * from->limit;
    return window * to->limit + min_u64(taken, to->limit);
}

void hf_rate_state_convert(const struct hf_rate_plan *from,
                           const struct hf_rate_plan *to,
                           const struct rate_state *state, uint64_t now_ns,
                           struct rate_state *next)
{
    struct hf_rate_answer answer;

    assert(from->words != 0);
    assert(to->words != 0);
    now_ns = rate_clip(now_ns);
    if (from->kind < HF_RATE_FIXED && to->kind < HF_RATE_FIXED) {
        next->word[0] = convert_bucket(from, to, state->word[0], now_ns);
        return;
    }
    if (both(from, to, HF_RATE_FIXED)) {
        next->word[0] = convert_fixed(from, to, state->word[0]);
        return;
    }
    struct pair pair = {.index = rate_mark(to, now_ns)};
    if (both(from, to, HF_RATE_SLIDING)) {
        pair = pair_read(from, state);
        pair.before = min_u64(pair.before, to->limit);
        pair.current = min_u64(pair.current, to->limit);
    } else {
        hf_rate_state_tell(from, state, now_ns, &answer);
        pair.current = min_u64(from->limit - answer.remaining, to->limit);
    }
    if (rate_on_line(to))
        next->word[0] = rate_mark(to, now_ns) + pair.current * to->cost;
    else
        pair_write(to, pair, next);
}
