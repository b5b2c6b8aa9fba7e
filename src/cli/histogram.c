/* histogram.c - the slot of a value is its exponent and its next six bits. */
#include "cli/histogram.h"

#include <assert.h>

_Static_assert(HISTOGRAM_PARTS == 64, "HISTOGRAM_SLOTS counts on it");

static uint32_t slot_of(uint64_t value)
{
    if (value < HISTOGRAM_PARTS)
        return (uint32_t)value;
    if (value >> HISTOGRAM_BITS != 0)
        return HISTOGRAM_SLOTS - 1;
    uint32_t top = 63 - (uint32_t)__builtin_clzll(value);
    uint32_t shift = top - HISTOGRAM_PART_BITS;
    return (shift << HISTOGRAM_PART_BITS) + (uint32_t)(value >> shift);
}

/* The largest value that falls into the slot. */
static uint64_t slot_end(uint32_t slot)
{
    if (slot < 2 * HISTOGRAM_PARTS)
        return slot;
    uint32_t shift = (slot >> HISTOGRAM_PART_BITS) - 1;
    uint64_t part = HISTOGRAM_PARTS + (slot & (HISTOGRAM_PARTS - 1));
    return ((part + 1) << shift) - 1;
}

void histogram_reset(struct histogram *histogram)
{
    *histogram = (struct histogram){0};
}

void histogram_add(struct histogram *histogram, uint64_t value)
{
    uint32_t slot = slot_of(value);

    assert(slot < HISTOGRAM_SLOTS);
    histogram->counts[slot]++;
    histogram->total++;
    if (value > histogram->max)
        histogram->max = value;
}

uint64_t histogram_at(const struct histogram *histogram, uint32_t per_mille)
{
    uint64_t seen = 0;

    assert(per_mille <= 1000);
    uint64_t want = (histogram->total * per_mille + 999) / 1000;
    for (uint32_t slot = 0; slot < HISTOGRAM_SLOTS; slot++) {
        seen += histogram->counts[slot];
        if (seen >= want && seen > 0) {
            uint64_t end = slot_end(slot);
            return end < histogram->max ? end : histogram->max;
        }
    }
    return histogram->max;
}
