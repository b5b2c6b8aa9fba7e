/* waits.c - a histogram with four buckets for each power of two.
 *
 * A number below 4 has a bucket of its own. Of a larger one the highest bit
 * and the two bits after it say which bucket:
 *
 *   1 0 1 1 0 1  =  45      highest bit 5, then 01
 *   | \_/                   bucket 4 * (5 - 1) + 1 = 17
 */
#include "sync/waits.h"

#include <assert.h>

#include "base/atomic.h"
#include "holdfast/inspect.h"

static unsigned bucket_of(uint64_t ns)
{
    if (ns < 4)
        return (unsigned)ns;
    unsigned high = 63 - (unsigned)__builtin_clzll(ns);
    return 4 * (high - 1) + (unsigned)(ns >> (high - 2) & 3);
}

/* The longest wait that falls into the bucket. */
static uint64_t bucket_end(unsigned bucket)
{
    if (bucket < 4)
        return bucket;
    unsigned high = bucket / 4 + 1;
    uint64_t width = UINT64_C(1) << (high - 2);
    /* The last bucket's end is where the numbers end. */
    return (UINT64_C(1) << high) + (bucket % 4) * width + (width - 1);
}

void hf_waits_note(struct hf_waits *waits, uint64_t ns)
{
    /* Relaxed, here and below: a count guards nothing. */
    hf_u64_add(&waits->buckets[bucket_of(ns)], 1, __ATOMIC_RELAXED);
}

uint64_t hf_waits_count(const struct hf_waits *waits)
{
    uint64_t count = 0;

    for (unsigned i = 0; i < WAITS_BUCKETS; i++)
        count += hf_u64_load(&waits->buckets[i], __ATOMIC_RELAXED);
    return count;
}

uint64_t hf_waits_percentile_ns(const struct hf_waits *waits, unsigned percent)
{
    uint64_t counts[WAITS_BUCKETS];
    uint64_t count = 0;
    uint64_t seen = 0;

    for (unsigned i = 0; i < WAITS_BUCKETS; i++) {
        counts[i] = hf_u64_load(&waits->buckets[i], __ATOMIC_RELAXED);
        count += counts[i];
    }
    if (count == 0)
        return HF_INSPECT_NONE;
    assert(percent <= 100);
    /* The place of the longest among the shortest, from 1. Divided first: the
     * count may be large. */
    uint64_t left_out =
        count / 100 * (100 - percent) + count % 100 * (100 - percent) / 100;
    uint64_t place = count - left_out;
    unsigned bucket = 0;
    while ((seen += counts[bucket]) < place)
        bucket++;
    return bucket_end(bucket);
}
