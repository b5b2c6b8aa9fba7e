/* backoff.h - how long to wait before trying again.
 *
 * After failure n (from 0) the wait is drawn below a ceiling that doubles:
 *
 *   ceiling   base, 2 base, 4 base, 8 base ... cap, cap, cap
 *
 *   HF_JITTER_FULL          0 .. ceiling             (the default)
 *   HF_JITTER_EQUAL         ceiling / 2 .. ceiling
 *   HF_JITTER_NONE          ceiling
 *   HF_JITTER_DECORRELATED  base .. 3 * the wait before, at most cap
 *
 * all ends included. Callers that failed together must not come back together:
 * full jitter spreads them best and costs the least work in all.
 *
 * Example:
 *
 *   struct hf_backoff backoff;
 *   struct hf_backoff_opts opts = {
 *       .base_ns = 10000000, .cap_ns = 1000000000, .attempts_max = 2};
 *   uint64_t now_ns = 5, wait_ns; // from the caller's clock
 *
 *   assert(hf_backoff_init(&backoff, &opts) == HF_OK);
 *   // the call failed: when may it be made again?
 *   assert(hf_backoff_next(&backoff, now_ns, HF_FOREVER, &wait_ns) == HF_OK);
 *   assert(wait_ns <= 10000000);
 *   assert(hf_backoff_next(&backoff, now_ns, HF_FOREVER, &wait_ns) == HF_OK);
 *   assert(wait_ns <= 20000000);
 *   // attempts_max: that was the last
 *   assert(hf_backoff_next(&backoff, now_ns, HF_FOREVER, &wait_ns) == HF_FULL);
 *   hf_backoff_reset(&backoff); // the call succeeded
 *
 * Threads: one backoff, one thread at a time. A call site has one of its own.
 * Memory:  the caller owns `struct hf_backoff`; no call allocates or frees.
 * Time:    the caller passes `now_ns` and waits by its own means.
 *
 *   exact ceiling  lock-free  allocates  may overlap
 *   yes            -          no         nothing, on one object
 */
#ifndef HOLDFAST_BACKOFF_H
#define HOLDFAST_BACKOFF_H

#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

enum hf_jitter {
    HF_JITTER_FULL,
    HF_JITTER_EQUAL,
    HF_JITTER_NONE,
    HF_JITTER_DECORRELATED,
};

struct hf_backoff_opts {
    uint64_t base_ns; /* 0: 10 ms, or the cap if that is less */
    uint64_t cap_ns;  /* 0: 30 s, or the base if that is more */
    enum hf_jitter jitter;
    uint32_t attempts_max; /* waits that are given out; 0: without end */
    /* The same seed gives the same waits. 0: one made of the system's clock and
     * the object's address, so that no two objects keep step. */
    uint64_t seed;
};

struct hf_backoff {
    uint64_t base_ns;
    uint64_t cap_ns;
    uint64_t last_ns;   /* the wait that was given last, 0 if none was */
    uint64_t random[4]; /* state of the generator */
    uint32_t attempts;  /* waits given since init or reset */
    uint32_t attempts_max;
    enum hf_jitter jitter;
};

/* NULL options: all defaults. HF_INVALID: backoff is NULL, the base is above
 * the cap, or the jitter is none of the enum's. */
enum hf_status hf_backoff_init(struct hf_backoff *backoff,
                               const struct hf_backoff_opts *opts);

/* An attempt has failed; `*delay_ns` is how long to wait before the next.
 *   HF_OK       wait, then try again
 *   HF_FULL     attempts_max waits have been given: give up
 *   HF_TIMEOUT  the wait would end after `deadline_ns`: give up. (HF_NOW: at
 *               once; HF_FOREVER: never.)
 *   HF_INVALID  an argument is NULL
 * Only HF_OK writes `*delay_ns` and counts as an attempt. */
enum hf_status hf_backoff_next(struct hf_backoff *backoff, uint64_t now_ns,
                               uint64_t deadline_ns, uint64_t *delay_ns);

/* An attempt has succeeded: the next wait is again the first. The random
 * numbers go on where they were. */
void hf_backoff_reset(struct hf_backoff *backoff);

/* min(cap, base * 2^attempt), for any numbers. */
uint64_t hf_backoff_ceiling_ns(uint64_t base_ns, uint64_t cap_ns,
                               uint32_t attempt);

#ifdef __cplusplus
}
#endif

#endif
