/* rate.h - rate limiter: "may this caller act now, and if not, when?"
 *
 * A limiter lets `burst` permits go at once and earns one back every
 * `period_ns`. It keeps no counter and runs no timer. Its whole state is one
 * instant, `full_at`, when every permit will be back:
 *
 *      now            full_at          now + burst * period
 *   ----|================|------------------|-----> time
 *          spent permits     free permits
 *
 * Taking n permits moves `full_at` right by n periods. A take that would pass
 * the right edge changes nothing and reports how long to wait.
 *
 * Example:
 *
 *   struct hf_rate rate;
 *   uint64_t now_ns = 5; // from the caller's clock
 *
 *   hf_rate_init(&rate, 10, 1000000000); // 10 at once, then 1 a second
 *   assert(hf_rate_take(&rate, 10, now_ns) == 0);
 *   assert(hf_rate_take(&rate, 1, now_ns) == 1000000000); // come back then
 *   assert(hf_rate_take(&rate, 1, now_ns + 1000000000) == 0);
 *
 * Threads: hf_rate_take() and hf_rate_wait() are lock-free and safe from any
 *          thread; init is not.
 * Memory:  the caller owns `struct hf_rate`; no call allocates or frees.
 * Time:    the caller passes `now_ns` from one monotonic clock. Calls whose
 *          `now_ns` arrive out of order never let more through: the state is
 *          an instant, and it only moves right.
 *
 *   linearizable  lock-free  allocates  may overlap
 *   yes           yes        no         take with take and wait
 */
#ifndef HOLDFAST_RATE_H
#define HOLDFAST_RATE_H

#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What hf_rate_take() returns when no wait can help: count above the burst. */
#define HF_RATE_NEVER UINT64_MAX

/* The longest time that `burst` periods may span: about 146 years. Keeps every
 * sum of an instant and a span inside 64 bits. */
#define HF_RATE_SPAN_MAX_NS (UINT64_MAX / 4)

struct hf_rate {                     /* (i) immutable after init  (a) atomic */
    uint64_t period_ns;              /* (i) time to earn one permit */
    uint64_t burst_ns;               /* (i) burst * period_ns */
    struct hf_atomic_u64 full_at_ns; /* (a) see the drawing above */
};

/* Starts with every permit free. HF_INVALID, and `rate` untouched, if it is
 * NULL, if burst or period_ns is 0, or if burst * period_ns exceeds
 * HF_RATE_SPAN_MAX_NS. */
enum hf_status hf_rate_init(struct hf_rate *rate, uint32_t burst,
                            uint64_t period_ns);

/* Takes `count` permits or none. Returns 0 if taken, otherwise the nanoseconds
 * until the same call can succeed, or HF_RATE_NEVER. `now_ns` may be at most
 * UINT64_MAX / 2 (292 years from the clock's start). */
uint64_t hf_rate_take(struct hf_rate *rate, uint32_t count, uint64_t now_ns);

/* What hf_rate_take() would return; takes nothing. */
uint64_t hf_rate_wait(const struct hf_rate *rate, uint32_t count,
                      uint64_t now_ns);

#ifdef __cplusplus
}
#endif

#endif
