/* rate.h - rate limiter: "may this caller act now, and if not, when?"
 *
 * The default, a token bucket, lets `burst` permits go at once and earns them
 * back one by one. It keeps no counter and runs no timer. Its whole state is
 * one instant, `full_at`, when every permit will be back:
 *
 *      now            full_at          now + burst * period
 *   ----|================|------------------|-----> time
 *          spent permits     free permits
 *
 * Taking n permits moves `full_at` right by n periods. A take that would pass
 * the right edge changes nothing and reports how long to wait.
 *
 * Other rules answer the same calls:
 *
 *   kind             lets through                               state
 *   HF_RATE_BUCKET   `burst` at once, `permits` per span_ns     1 word
 *   HF_RATE_GCRA     the same in GCRA's words: one, and         1 word
 *                    `burst` more at once
 *   HF_RATE_FIXED    `permits` from k * span to (k + 1) * span  1 word
 *   HF_RATE_SLIDING  `permits` per span: this window's, and     1 word, or 2
 *                    those of the last one by the share of it   and a lock
 *                    that still counts
 *   HF_RATE_LOG      `permits` in any span_ns, whenever it      8 bytes a
 *                    begins                                     permit, lock
 *   HF_RATE_LEASES   `permits` at a time; one that is not       the same
 *                    given back comes back span_ns after it
 *                    was taken
 *
 * The rate need not be a whole number of nanoseconds a permit. n permits are
 * earned in n * span_ns / permits, never more and never less however long it
 * runs. Where that is no whole number, a bucket counts in units of a permit's
 * floor(span_ns / permits)th part, each between 1 and 2 ns long, and an instant
 * is rounded down to such a unit: nothing else is rounded, nothing drifts. So a
 * permit is never later than it is due, and earlier by less than one unit.
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
 *   struct hf_rate_rule rule = {
 *       .kind = HF_RATE_LOG, .permits = 3, .span_ns = 60000000000};
 *   struct hf_rate_answer answer;
 *   void *memory = malloc(hf_rate_memory(&rule));
 *   hf_rate_open(&rate, &rule, memory);
 *   assert(hf_rate_ask(&rate, 2, now_ns, &answer) == 0);
 *   assert(answer.limit == 3 && answer.remaining == 1);
 *   assert(answer.reset_ns == 60000000000);
 *   hf_rate_refund(&rate, 1, answer.taken_ns); // one was not needed
 *   assert(hf_rate_wait(&rate, 2, now_ns) == 0);
 *   free(memory);
 *
 * Threads: every call but init and open from any thread. With a state of one
 *          word they are lock-free; else they take a short lock.
 * Memory:  the caller owns `struct hf_rate` and, where hf_rate_memory() is not
 *          0, that many bytes; no call allocates or frees.
 * Time:    the caller passes `now_ns` from one monotonic clock. Calls whose
 *          `now_ns` arrive out of order, or go back, never let more through: a
 *          bucket's instant only moves right, a window that was left is never
 *          opened again, a permit comes back no sooner than it would have.
 *
 *   linearizable  exact                         lock-free  allocates
 *   yes           the budget under any number   one word   no
 *                 of threads; the wait to the
 *                 nanosecond
 */
#ifndef HOLDFAST_RATE_H
#define HOLDFAST_RATE_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What hf_rate_take() returns when no wait can help: count above the limit. */
#define HF_RATE_NEVER UINT64_MAX

/* The longest span, and the longest time to earn a whole burst: about 146
 * years. Keeps every sum of an instant and a span inside 64 bits. */
#define HF_RATE_SPAN_MAX_NS (UINT64_MAX / 4)

/* Later instants (292 years from the clock's start) count as this one. */
#define HF_RATE_NOW_MAX_NS (UINT64_MAX / 2)

/* Permits of HF_RATE_LOG and HF_RATE_LEASES, which take memory each. */
#define HF_RATE_SLOTS_MAX (1u << 28)

enum hf_rate_kind {
    HF_RATE_BUCKET,
    HF_RATE_GCRA,
    HF_RATE_FIXED,
    HF_RATE_SLIDING,
    HF_RATE_LOG,
    HF_RATE_LEASES,
};

struct hf_rate_rule {
    enum hf_rate_kind kind;
    uint32_t permits; /* per span_ns; LEASES: at a time */
    uint32_t burst;   /* BUCKET: 0 means as many as `permits`; GCRA: may be 0;
                         all others: 0 */
    uint64_t span_ns; /* LEASES: how long one may be kept */
};

/* A rule, worked out; to be read only. (i) immutable after open */
struct hf_rate_plan {
    uint64_t limit;   /* permits at once, at most */
    uint64_t cost;    /* units of one permit */
    uint64_t edge;    /* units of all permits: limit * cost */
    uint64_t inverse; /* 2^64 * units / span; 0: one unit is 1 ns */
    uint64_t units;   /* so many units pass in `span` ns */
    uint64_t span;
    uint64_t step;    /* units pass so many at once: a window of FIXED opens */
    uint64_t span_ns; /* of the rule */
    uint32_t bits;    /* SLIDING: of a count, if all fits one word */
    uint16_t words;   /* of state: 1 or 2; 0: slots, one for each permit */
    uint16_t kind;
};

struct hf_rate {
    struct hf_atomic_u64 word; /* (a) the state, if it is one word */
    struct hf_rate_plan plan;  /* (i) */
    void *memory;              /* (i) lock and state, if it is not; else NULL */
};

/* What a call was told. */
struct hf_rate_answer {
    uint64_t wait_ns;   /* as hf_rate_take() returns it */
    uint64_t limit;     /* the most that can be taken at once, ever */
    uint64_t remaining; /* that could be taken now, after this call */
    uint64_t reset_ns;  /* until all of `limit` can be taken */
    uint64_t taken_ns;  /* for hf_rate_refund(): when it counts as taken */
};

/* A token bucket, all permits free: `burst` at once, one earned per period_ns.
 * HF_INVALID, and `rate` untouched, if it is NULL, if burst or period_ns is 0,
 * or if burst * period_ns exceeds HF_RATE_SPAN_MAX_NS. */
enum hf_status hf_rate_init(struct hf_rate *rate, uint32_t burst,
                            uint64_t period_ns);

/* Bytes that a limiter of this rule needs beside the struct: 0 for most, and 8
 * per permit and some for LOG and LEASES. 0 also if the rule is NULL or bad. */
size_t hf_rate_memory(const struct hf_rate_rule *rule);
/* A limiter by this rule, all permits free. `memory` is hf_rate_memory() bytes,
 * aligned to 8, or NULL if that is 0; it must stay as long as the limiter.
 * HF_INVALID, and nothing changed: an argument is NULL that must not be; no
 * such kind; permits or span_ns is 0, or span_ns above HF_RATE_SPAN_MAX_NS; a
 * bucket, GCRA or FIXED with more permits than span_ns (a billion a second) or
 * with a burst that takes longer than HF_RATE_SPAN_MAX_NS to earn; a burst
 * where it must be 0; too many slots. */
enum hf_status hf_rate_open(struct hf_rate *rate,
                            const struct hf_rate_rule *rule, void *memory);

/* What the rule works out to, without a limiter: what hf_rate_open() accepts
 * makes a plan, and plan->limit is the most that can be taken at once.
 * HF_INVALID as there; `*plan` is then untouched. */
enum hf_status hf_rate_plan_make(struct hf_rate_plan *plan,
                                 const struct hf_rate_rule *rule);

/* Takes `count` permits or none. Returns 0 if taken, otherwise the nanoseconds
 * after which the same call will succeed if nobody else comes, and not one
 * nanosecond earlier, or HF_RATE_NEVER: `count` is above the limit, or `rate`
 * is NULL. */
uint64_t hf_rate_take(struct hf_rate *rate, uint32_t count, uint64_t now_ns);

/* What hf_rate_take() would return; takes nothing. */
uint64_t hf_rate_wait(const struct hf_rate *rate, uint32_t count,
                      uint64_t now_ns);

/* hf_rate_take() and hf_rate_wait() that also tell the rest. Nothing is written
 * if an argument is NULL. */
uint64_t hf_rate_ask(struct hf_rate *rate, uint32_t count, uint64_t now_ns,
                     struct hf_rate_answer *answer);
uint64_t hf_rate_look(const struct hf_rate *rate, uint32_t count,
                      uint64_t now_ns, struct hf_rate_answer *answer);

/* Gives back `count` permits of a take at `taken_ns` (the now_ns that it was
 * given; if instants can arrive out of order, the answer's taken_ns): as if
 * they had not been taken. At once, the exact inverse of the take. Later, what
 * time has given back already is not given back again where the state can tell:
 *   FIXED, SLIDING   nothing, once the window of taken_ns no longer counts
 *   LOG, LEASES      nothing, if no permit taken at taken_ns is still out;
 *                    so a lease that ended frees nobody else's
 *   BUCKET, GCRA     never more than full; but a bucket that was full again
 *                    since the take cannot tell: refund soon or not at all
 */
void hf_rate_refund(struct hf_rate *rate, uint32_t count, uint64_t taken_ns);

#ifdef __cplusplus
}
#endif

#endif
