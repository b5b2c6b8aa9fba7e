/* spread.c - counts by place, in chunks that come when they are needed. */
#include "meter/spread.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/memory.h"

enum hf_status hf_spread_make(struct hf_spread **spread,
                              const struct hf_layout *layout)
{
    struct hf_spread *made =
        hf_alloc_zeroed(sizeof *made + layout->chunks * sizeof made->chunks[0]);

    if (made == NULL)
        return HF_NOMEM;
    made->layout = *layout;
    made->least = UINT64_MAX;
    *spread = made;
    return HF_OK;
}

enum hf_status hf_spread_open(struct hf_spread **spread,
                              const struct hf_spread_opts *opts)
{
    struct hf_layout layout;

    if (spread == NULL)
        return HF_INVALID;
    enum hf_status status = hf_layout_init(&layout, opts);
    return status ? status : hf_spread_make(spread, &layout);
}

void hf_spread_close(struct hf_spread *spread)
{
    if (spread == NULL)
        return;
    for (uint32_t c = 0; c < spread->layout.chunks; c++)
        hf_free(spread->chunks[c]);
    hf_free(spread);
}

uint64_t *hf_spread_chunk(struct hf_spread *spread, uint32_t chunk)
{
    assert(chunk < spread->layout.chunks);
    if (spread->chunks[chunk] == NULL)
        spread->chunks[chunk] =
            hf_alloc_zeroed(hf_layout_half(&spread->layout) * sizeof(uint64_t));
    return spread->chunks[chunk];
}

enum hf_status hf_spread_record(struct hf_spread *spread, uint64_t value,
                                uint64_t times)
{
    if (spread == NULL)
        return HF_INVALID;
    if (times == 0)
        return HF_OK;
    const struct hf_layout *layout = &spread->layout;
    uint32_t place = hf_layout_place(layout, value);
    uint64_t *counts = hf_spread_chunk(spread, place >> layout->half_bits);
    if (counts == NULL)
        return HF_NOMEM;
    counts[place & (hf_layout_half(layout) - 1)] += times;
    spread->count += times;
    spread->sum += value * times;
    if (value < spread->least)
        spread->least = value;
    if (value > spread->most)
        spread->most = value;
    return HF_OK;
}

void hf_spread_reset(struct hf_spread *spread)
{
    if (spread == NULL)
        return;
    size_t bytes = hf_layout_half(&spread->layout) * sizeof(uint64_t);
    for (uint32_t c = 0; c < spread->layout.chunks; c++)
        if (spread->chunks[c] != NULL)
            memset(spread->chunks[c], 0, bytes);
    spread->count = 0;
    spread->sum = 0;
    spread->least = UINT64_MAX;
    spread->most = 0;
}

enum hf_status hf_spread_promise(struct hf_spread *spread,
                                 const struct hf_spread *like)
{
    assert(hf_layout_equal(&spread->layout, &like->layout));
    for (uint32_t c = 0; c < like->layout.chunks; c++)
        if (like->chunks[c] != NULL && hf_spread_chunk(spread, c) == NULL)
            return HF_NOMEM;
    return HF_OK;
}

/* What a place of another layout stands for here: its last value, which is
 * where its percentiles are told. */
static uint64_t value_of(const struct hf_spread *spread, uint32_t place)
{
    const struct hf_layout *layout = &spread->layout;
    uint64_t high =
        hf_layout_low(layout, place) + hf_layout_width(layout, place) - 1;

    return high < spread->most ? high : spread->most;
}

/* Two passes over the places: memory first, so that the second cannot fail. */
static enum hf_status add_by_value(struct hf_spread *spread,
                                   const struct hf_spread *from)
{
    uint32_t half_bits = spread->layout.half_bits;
    uint32_t places = hf_layout_places(&from->layout);

    for (int pass = 0; pass < 2; pass++)
        for (uint32_t p = 0; p < places; p++) {
            uint64_t times = hf_spread_at(from, p);
            if (times == 0)
                continue;
            uint32_t place =
                hf_layout_place(&spread->layout, value_of(from, p));
            uint64_t *counts = hf_spread_chunk(spread, place >> half_bits);
            if (counts == NULL)
                return HF_NOMEM;
            if (pass == 1)
                counts[place & (hf_layout_half(&spread->layout) - 1)] += times;
        }
    return HF_OK;
}

enum hf_status hf_spread_add(struct hf_spread *spread,
                             const struct hf_spread *from)
{
    enum hf_status status;

    if (spread == NULL || from == NULL)
        return HF_INVALID;
    if (hf_layout_equal(&spread->layout, &from->layout)) {
        status = hf_spread_promise(spread, from);
        uint32_t half = hf_layout_half(&from->layout);
        for (uint32_t c = 0; c < from->layout.chunks && !status; c++)
            for (uint32_t p = 0; from->chunks[c] != NULL && p < half; p++)
                spread->chunks[c][p] += from->chunks[c][p];
    } else {
        status = add_by_value(spread, from);
    }
    if (status)
        return status;
    spread->count += from->count;
    spread->sum += from->sum;
    if (from->least < spread->least)
        spread->least = from->least;
    if (from->most > spread->most)
        spread->most = from->most;
    return HF_OK;
}

/* Makes min and max those of the places that have values, but not wider than
 * they were. */
static void narrow(struct hf_spread *spread)
{
    uint32_t first = 0;
    uint32_t last = hf_layout_places(&spread->layout);

    if (spread->count == 0) {
        spread->least = UINT64_MAX;
        spread->most = 0;
        return;
    }
    while (hf_spread_at(spread, first) == 0)
        first++;
    while (hf_spread_at(spread, last - 1) == 0)
        last--;
    uint64_t low = hf_layout_low(&spread->layout, first);
    if (low > spread->least)
        spread->least = low;
    /* What is beyond the limit lies in the last place, at its real value. */
    if (last < hf_layout_places(&spread->layout))
        spread->most = value_of(spread, last - 1);
}

enum hf_status hf_spread_subtract(struct hf_spread *spread,
                                  const struct hf_spread *what)
{
    if (spread == NULL || what == NULL ||
        !hf_layout_equal(&spread->layout, &what->layout))
        return HF_INVALID;
    uint32_t places = hf_layout_places(&what->layout);
    for (uint32_t p = 0; p < places; p++)
        if (hf_spread_at(what, p) > hf_spread_at(spread, p))
            return HF_INVALID;
    uint32_t half = hf_layout_half(&what->layout);
    for (uint32_t c = 0; c < what->layout.chunks; c++)
        for (uint32_t p = 0;
             what->chunks[c] != NULL && spread->chunks[c] != NULL && p < half;
             p++)
            spread->chunks[c][p] -= what->chunks[c][p];
    spread->count -= what->count;
    spread->sum -= what->sum;
    narrow(spread);
    return HF_OK;
}

uint64_t hf_spread_percentile(const struct hf_spread *spread, double percent)
{
    if (spread == NULL || spread->count == 0)
        return 0;
    if (!(percent > 0))
        return spread->least;
    if (percent >= 100)
        return spread->most;
    double exact = percent / 100 * (double)spread->count;
    /* 99.9 percent of 1000 is 999, also when its product is a bit above. */
    double rank = ceil(exact - exact * 1e-12);
    uint64_t seen = 0;
    for (uint32_t c = 0; c < spread->layout.chunks; c++) {
        if (spread->chunks[c] == NULL)
            continue;
        uint32_t half = hf_layout_half(&spread->layout);
        for (uint32_t p = 0; p < half; p++) {
            seen += spread->chunks[c][p];
            if (spread->chunks[c][p] > 0 && (double)seen >= rank)
                return value_of(spread, c * half + p);
        }
    }
    return spread->most;
}

uint64_t hf_spread_at_most(const struct hf_spread *spread, uint64_t value)
{
    uint64_t seen = 0;

    if (spread == NULL)
        return 0;
    if (value >= spread->most)
        return spread->count;
    const struct hf_layout *layout = &spread->layout;
    uint32_t place = hf_layout_place(layout, value);
    uint32_t mask = hf_layout_half(layout) - 1;
    if (value >=
            hf_layout_low(layout, place) + hf_layout_width(layout, place) - 1 &&
        value < layout->limit)
        place++; /* all of its place is not above it */
    for (uint32_t c = 0; c << layout->half_bits < place; c++) {
        const uint64_t *counts = spread->chunks[c];
        uint32_t end = place - (c << layout->half_bits);
        for (uint32_t p = 0; counts != NULL && p < end && p <= mask; p++)
            seen += counts[p];
    }
    return seen;
}

void hf_spread_visit(const struct hf_spread *spread,
                     void (*visit)(void *context, uint64_t low, uint64_t high,
                                   uint64_t count),
                     void *context)
{
    if (spread == NULL || visit == NULL)
        return;
    uint32_t places = hf_layout_places(&spread->layout);
    for (uint32_t p = 0; p < places; p++) {
        uint64_t count = hf_spread_at(spread, p);
        uint64_t low = hf_layout_low(&spread->layout, p);
        uint64_t width = hf_layout_width(&spread->layout, p);
        if (count > 0)
            visit(context, low, p + 1 == places ? UINT64_MAX : low + width - 1,
                  count);
    }
}

void hf_spread_stats(const struct hf_spread *spread,
                     struct hf_spread_stats *out)
{
    if (spread == NULL || out == NULL)
        return;
    *out = (struct hf_spread_stats){
        .count = spread->count,
        .sum = spread->sum,
        .min = spread->count == 0 ? 0 : spread->least,
        .max = spread->most,
        .mean = spread->count == 0
                    ? 0
                    : (double)spread->sum / (double)spread->count,
        .memory_bytes = sizeof *spread + spread->layout.chunks * sizeof(void *),
    };
    for (uint32_t c = 0; c < spread->layout.chunks; c++)
        if (spread->chunks[c] != NULL)
            out->memory_bytes +=
                hf_layout_half(&spread->layout) * sizeof(uint64_t);
}
