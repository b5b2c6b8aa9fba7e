/* rate_state.h - the arithmetic of rates: a plan and a state give a new state.
 *
 * Pure functions. The rule is worked out once (`struct hf_rate_plan`), the
 * state of one key is one or two words that say nothing without the plan, so
 * that a million keys can share one plan:
 *
 *   (plan, state, count, now) -> wait, new state         hf_rate_state_take
 *   (plan, state, now)        -> remaining, reset        hf_rate_state_tell
 *   (plan, state, count, t)   -> new state               hf_rate_state_refund
 *   (old plan, new plan, state, now) -> new state        hf_rate_state_convert
 *   (plan, state, now)        -> as good as a new one?   hf_rate_state_idle
 *
 * A new state is all zero: every permit is free. With plan->words == 1 only
 * word[0] is used (the other is left alone), and a compare-and-swap of it makes
 * a lock-free limiter. With 2 the caller locks. With 0 (LOG, LEASES) the state
 * is an array of slots: see rate_slots.h.
 *
 * BUCKET, GCRA and FIXED are one algorithm. Time is a line that is marked in
 * units; `mark(now)` is the last mark passed, the word is the mark at which
 * every permit is back:
 *
 *     mark(now)          word             mark(now) + edge
 *   ----|=================|====================|-----> units
 *         spent permits       free permits
 *
 * BUCKET and GCRA: a permit costs U = floor(span / permits) units and permits
 * * U units pass in a span, so that U pass in exactly one permit's time. If
 * permits divide span, a unit is 1 ns and mark(now) is now. FIXED: a permit is
 * one unit and `permits` units pass at once whenever a window opens.
 *
 * `keep_back` permits are not to be touched by this call (a lower class, which
 * leaves a share to the classes above it): as if the limit were that lower.
 *
 * An older now than the state has seen never lets more through.
 */
#ifndef FLOW_RATE_STATE_H
#define FLOW_RATE_STATE_H

#include <stdbool.h>

#include "base/atomic.h"
#include "holdfast/rate.h"

struct rate_state {
    uint64_t word[2];
};

/* The first instant at which mark() is `mark` or more; at most UINT64_MAX - 1.
 */
uint64_t hf_rate_instant(const struct hf_rate_plan *plan, uint64_t mark);

HF_INLINE uint64_t rate_clip(uint64_t now_ns)
{
    return now_ns < HF_RATE_NOW_MAX_NS ? now_ns : HF_RATE_NOW_MAX_NS;
}

/* floor(now * units / span), by a product with the inverse, which is at most
 * one too small: 64 bits tell, since what is left is below 2 * span. */
HF_INLINE uint64_t rate_scale(const struct hf_rate_plan *plan, uint64_t now_ns)
{
    uint64_t whole =
        (uint64_t)((unsigned __int128)now_ns * plan->inverse >> 64);
    uint64_t left = now_ns * plan->units - whole * plan->span;

    return whole + (left >= plan->span);
}

/* now_ns is clipped. */
HF_INLINE uint64_t rate_mark(const struct hf_rate_plan *plan, uint64_t now_ns)
{
    if (plan->inverse == 0)
        return now_ns;
    return rate_scale(plan, now_ns) * plan->step;
}

/* How long until mark() is `mark`, which it is not yet. */
uint64_t hf_rate_line_wait(const struct hf_rate_plan *plan, uint64_t mark,
                           uint64_t now_ns);

/* Where the word goes if `cost` units are taken. No sum can wrap: it is at most
 * HF_RATE_NOW_MAX_NS and twice the edge. */
HF_INLINE uint64_t rate_line_end(uint64_t word, uint64_t mark, uint64_t cost)
{
    return (word > mark ? word : mark) + cost;
}

/* hf_rate_state_take() for plans on a line, which rate_on_line() tells. */
HF_INLINE uint64_t rate_line_take(const struct hf_rate_plan *plan,
                                  uint64_t word, uint64_t count,
                                  uint64_t keep_back, uint64_t now_ns,
                                  uint64_t *next)
{
    if (keep_back > plan->limit || count > plan->limit - keep_back)
        return HF_RATE_NEVER;
    now_ns = rate_clip(now_ns);
    uint64_t mark = rate_mark(plan, now_ns);
    uint64_t room = plan->edge - keep_back * plan->cost;
    uint64_t end = rate_line_end(word, mark, count * plan->cost);
    if (end > mark + room)
        return hf_rate_line_wait(plan, end - room, now_ns);
    *next = end;
    return 0;
}

static inline bool rate_on_line(const struct hf_rate_plan *plan)
{
    return plan->kind <= HF_RATE_FIXED;
}

/* 0 and `*next`, or the wait, or HF_RATE_NEVER; `*next` is then not written. It
 * may be `*state`, here and below. */
uint64_t hf_rate_state_take(const struct hf_rate_plan *plan,
                            const struct rate_state *state, uint64_t count,
                            uint64_t keep_back, uint64_t now_ns,
                            struct rate_state *next);
/* Writes limit, remaining, reset_ns, taken_ns of `*answer`; a take at now_ns
 * that led to `state` counts as taken at taken_ns. */
void hf_rate_state_tell(const struct hf_rate_plan *plan,
                        const struct rate_state *state, uint64_t now_ns,
                        struct hf_rate_answer *answer);
/* As hf_rate_refund() says. */
void hf_rate_state_refund(const struct hf_rate_plan *plan,
                          const struct rate_state *state, uint64_t count,
                          uint64_t taken_ns, struct rate_state *next);
/* What was spent stays spent, at most all of the new limit: fractions of a
 * permit too from bucket to bucket, else rounded up. Between windows of one
 * length the windows stay. Neither plan has slots. now_ns should be the newest
 * that is known: what an older one sees as spent is earned in its time. */
void hf_rate_state_convert(const struct hf_rate_plan *from,
                           const struct hf_rate_plan *to,
                           const struct rate_state *state, uint64_t now_ns,
                           struct rate_state *next);
/* True if every call from now_ns on would be answered as by a new state: the
 * key may be forgotten. */
bool hf_rate_state_idle(const struct hf_rate_plan *plan,
                        const struct rate_state *state, uint64_t now_ns);

#endif
