/* throttle.h - the words of CL.THROTTLE (redis-cell) and GCRA (Redis).
 *
 * Both are a GCRA plan of rate.h with a whole emission interval, and
 * answer five integers. What differs is how they round:
 *
 *              redis-cell                            Redis
 *
 *   interval   period / count, cut to 1 ns           to 1 us, at least 1
 *   remaining  both sides cut to microseconds        exact
 *   seconds    cut; 1 more for a millisecond or      rounded up
 *              more of a part
 *
 * Redis also reads its clock in whole milliseconds; that is the caller's to do.
 *
 * Threads: pure functions. Memory: the caller's.
 */
#ifndef SERVER_THROTTLE_H
#define SERVER_THROTTLE_H

#include <stdbool.h>

#include "holdfast/rate.h"

enum throttle_form {
    THROTTLE_CELL,
    THROTTLE_REDIS,
};

struct throttle_answer {
    bool limited;
    int64_t limit; /* max_burst + 1 */
    int64_t remaining;
    int64_t retry_s; /* -1: allowed, or it can never be */
    int64_t reset_s;
};

/* HF_INVALID: max_burst is negative or above UINT32_MAX - 1, count or period
 * is not above 0, the interval is 0 (more than one a nanosecond), or the burst
 * takes more than 146 years to earn. */
enum hf_status throttle_rule(enum throttle_form form, int64_t max_burst,
                             int64_t count, uint64_t period_ns,
                             struct hf_rate_rule *rule);
/* What a limiter of that plan told, in their words; wait_ns is filled in. */
void throttle_tell(enum throttle_form form, const struct hf_rate_plan *plan,
                   const struct hf_rate_answer *told,
                   struct throttle_answer *answer);

#endif
