/* layout.h - which place a value has: the arithmetic of log-linear counts.
 *
 *   value   0 .............. 2h | ......... 4h | ............... 8h | ...
 *   chunk   0 (h)    1 (h)      | 2 (h)        | 3 (h)              |
 *   width   1        1          | 2            | 4
 *
 * h = 1 << half_bits places make a chunk; h is chosen so that 2h is not below
 * 2 * 10^digits. All widths are times 1 << unit_bits, the power of two in
 * `lowest`. Place numbers are HdrHistogram's, which its encoding counts on.
 */
#ifndef BASE_LAYOUT_H
#define BASE_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

#define HF_LAYOUT_CHUNKS_MAX 64u

struct hf_layout { /* (i) all of it */
    uint64_t lowest;
    uint64_t highest;
    uint64_t limit; /* the last value of the last place; from highest on */
    uint64_t mask;  /* values below 2h units have these bits only */
    uint32_t digits;
    uint32_t unit_bits;
    uint32_t half_bits;
    uint32_t top; /* 63 - bits of a value in chunks 0 and 1 */
    uint32_t chunks;
};

static inline bool hf_layout_equal(const struct hf_layout *a,
                                   const struct hf_layout *b)
{
    return a->half_bits == b->half_bits && a->unit_bits == b->unit_bits &&
           a->chunks == b->chunks;
}

static inline uint32_t hf_layout_half(const struct hf_layout *layout)
{
    return 1u << layout->half_bits;
}

static inline uint32_t hf_layout_places(const struct hf_layout *layout)
{
    return layout->chunks << layout->half_bits;
}

/* The place of a value; of one beyond the limit the last. */
static inline uint32_t hf_layout_place(const struct hf_layout *layout,
                                       uint64_t value)
{
    if (__builtin_expect(value > layout->limit, 0))
        value = layout->limit;
    uint32_t power =
        layout->top - (uint32_t)__builtin_clzll(value | layout->mask);
    uint32_t part = (uint32_t)(value >> (power + layout->unit_bits));

    return (power << layout->half_bits) + part;
}

/* By how many bits more than the unit the places of a chunk are wide. */
static inline uint32_t hf_layout_power(const struct hf_layout *layout,
                                       uint32_t place)
{
    uint32_t chunk = place >> layout->half_bits;

    return chunk == 0 ? 0 : chunk - 1;
}

/* How many values a place holds. */
static inline uint64_t hf_layout_width(const struct hf_layout *layout,
                                       uint32_t place)
{
    return UINT64_C(1) << (layout->unit_bits + hf_layout_power(layout, place));
}

/* The first of them. */
static inline uint64_t hf_layout_low(const struct hf_layout *layout,
                                     uint32_t place)
{
    uint32_t power = hf_layout_power(layout, place);
    uint64_t part = place - (power << layout->half_bits);

    return part << (power + layout->unit_bits);
}

#endif
