/* rate_slots.h - a circle of permits, each of which says when it comes back.
 *
 * For LOG and LEASES, which are one algorithm: a permit that was taken comes
 * back span_ns later. The circle holds the last `limit` permits that were
 * taken, oldest first, by the instant at which they are back (0: never taken):
 *
 *      head
 *       v
 *     | 70 | 70 | 90 | 120 | 130 |        span 100, limit 5, now 95:
 *       back back back  out   out          3 can be taken
 *
 * n can be taken if the n-th from head is back; they then go to the end. So a
 * decision is one look, and the wait is what that look found. Instants are
 * written in ascending order: one that arrives late counts as the newest. And
 * nothing is forgotten before `limit` more were taken, so that a late arrival
 * finds all that a timely one would have found.
 *
 * Threads: the caller locks. Memory: the caller's; all zero is a new state.
 */
#ifndef FLOW_RATE_SLOTS_H
#define FLOW_RATE_SLOTS_H

#include "flow/rate_state.h"

struct rate_slots {
    uint64_t head;
    uint64_t back_ns[]; /* plan->limit of them */
};

#define RATE_SLOTS_BYTES(limit) \
    (sizeof(struct rate_slots) + (size_t)(limit) * sizeof(uint64_t))

/* As hf_rate_state_take(); `*slots` is changed if it returns 0. */
uint64_t hf_rate_slots_take(const struct hf_rate_plan *plan,
                            struct rate_slots *slots, uint64_t count,
                            uint64_t keep_back, uint64_t now_ns);
uint64_t hf_rate_slots_wait(const struct hf_rate_plan *plan,
                            const struct rate_slots *slots, uint64_t count,
                            uint64_t keep_back, uint64_t now_ns);
/* As hf_rate_state_tell(). */
void hf_rate_slots_tell(const struct hf_rate_plan *plan,
                        const struct rate_slots *slots, uint64_t now_ns,
                        struct hf_rate_answer *answer);
/* As hf_rate_refund() says. */
void hf_rate_slots_refund(const struct hf_rate_plan *plan,
                          struct rate_slots *slots, uint64_t count,
                          uint64_t taken_ns);
/* Fills `to`, which is new: the newest permits stay taken, as many as fit, for
 * as long as the new span says. */
void hf_rate_slots_convert(const struct hf_rate_plan *from_plan,
                           const struct rate_slots *from,
                           const struct hf_rate_plan *to_plan,
                           struct rate_slots *to);
bool hf_rate_slots_idle(const struct hf_rate_plan *plan,
                        const struct rate_slots *slots, uint64_t now_ns);

#endif
