/* layout.c - how many places there are. */
#include "meter/layout.h"

#include <assert.h>

#define DIGITS_DEFAULT  2u
#define HIGHEST_DEFAULT UINT64_C(3600000000000)

/* The smallest number of bits that hold `value` places. */
static uint32_t bits_for(uint64_t value)
{
    uint32_t bits = 0;

    while ((UINT64_C(1) << bits) < value)
        bits++;
    return bits;
}

enum hf_status hf_layout_init(struct hf_layout *layout,
                              const struct hf_spread_opts *opts)
{
    struct hf_spread_opts given = {0};
    uint64_t single = 2; /* up to here a place for each unit */

    if (opts != NULL)
        given = *opts;
    uint32_t digits = given.digits == 0 ? DIGITS_DEFAULT : given.digits;
    uint64_t lowest = given.lowest == 0 ? 1 : given.lowest;
    uint64_t highest = given.highest == 0 ? HIGHEST_DEFAULT : given.highest;
    if (digits > HF_SPREAD_DIGITS_MAX || highest > HF_SPREAD_HIGHEST_MAX ||
        lowest > highest / 2)
        return HF_INVALID;
    for (uint32_t i = 0; i < digits; i++)
        single *= 10;
    uint32_t bits = bits_for(single);
    uint32_t unit_bits = 63 - (uint32_t)__builtin_clzll(lowest);
    if (unit_bits + bits > 62)
        return HF_INVALID;
    *layout = (struct hf_layout){
        .lowest = lowest,
        .highest = highest,
        .limit = highest,
        .mask = ((UINT64_C(1) << bits) - 1) << unit_bits,
        .digits = digits,
        .unit_bits = unit_bits,
        .half_bits = bits - 1,
        .top = 64 - bits - unit_bits,
    };
    layout->chunks = (hf_layout_place(layout, highest) >> (bits - 1)) + 1;
    if (layout->chunks < 2)
        layout->chunks = 2;
    assert(layout->chunks <= HF_LAYOUT_CHUNKS_MAX);
    uint32_t last = hf_layout_places(layout) - 1;
    layout->limit = hf_layout_low(layout, last) + hf_layout_width(layout, last);
    layout->limit--;
    return HF_OK;
}
