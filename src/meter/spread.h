/* spread.h - what a spread is made of, for those who read into one. */
#ifndef METER_SPREAD_H
#define METER_SPREAD_H

#include "holdfast/spread.h"
#include "meter/layout.h"

struct hf_spread {
    struct hf_layout layout;
    uint64_t count; /* the sum of all counts */
    uint64_t sum;
    uint64_t least;     /* UINT64_MAX if there is none */
    uint64_t most;      /* 0 if there is none */
    uint64_t *chunks[]; /* layout.chunks; NULL: all counts are 0 */
};

enum hf_status hf_spread_make(struct hf_spread **spread,
                              const struct hf_layout *layout);
/* The counts of a chunk; NULL without memory. */
uint64_t *hf_spread_chunk(struct hf_spread *spread, uint32_t chunk);
/* Chunks for all that `like` has, so that adding it cannot fail. */
enum hf_status hf_spread_promise(struct hf_spread *spread,
                                 const struct hf_spread *like);

static inline uint64_t hf_spread_at(const struct hf_spread *spread,
                                    uint32_t place)
{
    const uint64_t *counts = spread->chunks[place >> spread->layout.half_bits];
    uint32_t mask = hf_layout_half(&spread->layout) - 1;

    return counts == NULL ? 0 : counts[place & mask];
}

#endif
