/* seen.h - what an engine has come to, in one number.
 *
 * Compiled with this engine and with the old one, so of both it uses only what
 * both have.
 */
#ifndef TEST_SUPPORT_OLD_SEEN_H
#define TEST_SUPPORT_OLD_SEEN_H

#include "hold/engine.h"
#include "hold/image.h"

static inline uint64_t seen_mix(uint64_t sum, uint64_t number)
{
    return (sum ^ number) * UINT64_C(0x9e3779b97f4a7c15) >> 7 ^ sum << 11;
}

static inline enum hf_status seen_lock(void *context,
                                       const struct hold_held *held)
{
    uint64_t sum = 1;

    for (size_t i = 0; i < held->name.len; i++)
        sum = seen_mix(sum, (unsigned char)held->name.data[i]);
    sum = seen_mix(sum, held->token);
    sum = seen_mix(sum, held->expires_us);
    *(uint64_t *)context += seen_mix(sum, held->count); /* in any order */
    return HF_OK;
}

/* After a record was applied with this result. */
static inline uint32_t seen_after(const struct hold_engine *e,
                                  enum hold_code code)
{
    struct hold_counts counts;
    uint64_t sum = 1;

    (void)hold_each_lock(e, seen_lock, &sum);
    hold_count(e, &counts);
    sum = seen_mix(sum, hold_seq(e));
    sum = seen_mix(sum, (uint64_t)code);
    sum = seen_mix(sum, counts.waiters);
    sum = seen_mix(sum, counts.products);
    sum = seen_mix(sum, counts.reservations);
    sum = seen_mix(sum, counts.pending);
    sum = seen_mix(sum, counts.fences);
    sum = seen_mix(sum, counts.requests);
    sum = seen_mix(sum, (uint64_t)counts.stock_total);
    sum = seen_mix(sum, (uint64_t)counts.stock_reserved);
    sum = seen_mix(sum, (uint64_t)counts.stock_sold);
    return (uint32_t)(sum >> 16);
}

#endif
