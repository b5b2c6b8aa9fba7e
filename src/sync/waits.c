/* waits.c - a histogram with four buckets for each power of two. */
#include "sync/waits.h"

#include <assert.h>

#include "base/atomic.h"
#include "base/layout.h"
#include "holdfast/inspect.h"

static const struct hf_layout quarters = {.limit = UINT64_MAX,
                                          .mask = 7,
                                          .half_bits = 2,
                                          .top = 61,
                                          .chunks = WAITS_BUCKETS / 4};

void hf_waits_note(struct hf_waits *waits, uint64_t ns)
{
    /* Relaxed, here and below: a count guards nothing. */
    hf_u64_add(&waits->buckets[hf_layout_place(&quarters, ns)], 1,
               __ATOMIC_RELAXED);
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
    /* The last bucket's end is where the numbers end. */
    return hf_layout_low(&quarters, bucket) +
           (hf_layout_width(&quarters, bucket) - 1);
}
