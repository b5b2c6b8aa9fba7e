/* past.c - a ring of readings, each with the slice that it begins. */
#include "meter/past.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"

void hf_past_destroy(struct hf_past *past)
{
    for (uint32_t i = 0; past->edges != NULL && i < past->slices; i++)
        hf_spread_close(past->edges[i].reading.spread);
    hf_free(past->edges);
    past->edges = NULL;
}

enum hf_status hf_past_init(struct hf_past *past, uint64_t slice_ns,
                            uint32_t slices, const struct hf_layout *layout)
{
    assert(slice_ns > 0 && slices > 0);
    *past = (struct hf_past){.slice_ns = slice_ns, .slices = slices};
    past->edges = hf_alloc_zeroed(slices * sizeof *past->edges);
    if (past->edges == NULL)
        return HF_NOMEM;
    for (uint32_t i = 0; layout != NULL && i < slices; i++)
        if (hf_spread_make(&past->edges[i].reading.spread, layout)) {
            hf_past_destroy(past);
            return HF_NOMEM;
        }
    return HF_OK;
}

static struct hf_edge *edge_at(const struct hf_past *past, uint32_t index)
{
    return &past->edges[(past->first + index) % past->slices];
}

static const struct hf_edge *newest(const struct hf_past *past)
{
    assert(past->count > 0);
    return edge_at(past, past->count - 1);
}

static enum hf_status set(struct hf_edge *edge, uint64_t slice,
                          const struct hf_reading *reading)
{
    struct hf_spread *spread = edge->reading.spread;

    if (spread != NULL) {
        if (hf_spread_promise(spread, reading->spread))
            return HF_NOMEM;
        hf_spread_reset(spread);
        enum hf_status status = hf_spread_add(spread, reading->spread);
        assert(status == HF_OK);
        (void)status;
    }
    edge->slice = slice;
    edge->reading = *reading;
    edge->reading.spread = spread;
    return HF_OK;
}

enum hf_status hf_past_begin(struct hf_past *past, uint64_t now_ns,
                             const struct hf_reading *reading)
{
    enum hf_status status =
        set(&past->edges[0], now_ns / past->slice_ns, reading);

    if (status)
        return status;
    past->first = 0;
    past->count = 1;
    past->begun_ns = now_ns;
    return HF_OK;
}

bool hf_past_is_due(const struct hf_past *past, uint64_t now_ns)
{
    return now_ns / past->slice_ns > newest(past)->slice;
}

enum hf_status hf_past_note(struct hf_past *past, uint64_t now_ns,
                            const struct hf_reading *reading)
{
    uint64_t slice = now_ns / past->slice_ns;
    uint32_t gone = 0;

    assert(hf_past_is_due(past, now_ns));
    /* Edges that no window from now on begins with make room: there is always
     * one if the ring is full. */
    while (gone < past->count &&
           slice - edge_at(past, gone)->slice >= past->slices)
        gone++;
    assert(past->count - gone < past->slices);
    enum hf_status status =
        set(edge_at(past, past->count % past->slices), slice, reading);
    if (status)
        return status;
    past->first = (past->first + gone) % past->slices;
    past->count = past->count - gone + 1;
    return HF_OK;
}

const struct hf_reading *hf_past_start(const struct hf_past *past,
                                       uint64_t now_ns, uint64_t *begin_ns)
{
    uint64_t slice = now_ns / past->slice_ns;
    uint64_t last = newest(past)->slice;
    uint32_t index = 0;

    if (slice < last)
        slice = last; /* a caller whose time is behind */
    uint64_t from = slice < past->slices ? 0 : slice - past->slices + 1;
    while (index + 1 < past->count && edge_at(past, index)->slice < from)
        index++;
    *begin_ns = from * past->slice_ns;
    if (*begin_ns < past->begun_ns)
        *begin_ns = past->begun_ns;
    return &edge_at(past, index)->reading;
}

uint64_t hf_past_next_ns(const struct hf_past *past)
{
    return (newest(past)->slice + 1) * past->slice_ns;
}

size_t hf_past_bytes(const struct hf_past *past)
{
    size_t bytes = past->slices * sizeof *past->edges;
    struct hf_spread_stats stats;

    for (uint32_t i = 0; i < past->slices; i++)
        if (past->edges[i].reading.spread != NULL) {
            hf_spread_stats(past->edges[i].reading.spread, &stats);
            bytes += stats.memory_bytes;
        }
    return bytes;
}
