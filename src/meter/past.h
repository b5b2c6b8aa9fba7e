/* past.h - what a growing figure was at the edges of the last time slices.
 *
 *   time   ...|--------|--------|--------|-----> now
 *   slice        k - 2    k - 1    k
 *   kept      [ ]      [ ]      [ ]            readings at the left edges
 *
 * What happened in the last n slices is the reading of now less the one at the
 * left edge of the first of them. Nothing is cleared while others write, so
 * nothing is lost: each update falls between two readings.
 *
 * Readings are taken when somebody comes by. One taken late, in slice k, after
 * nobody came since slice j, is the reading of all edges from j + 1 to k.
 *
 * Threads: one at a time; the user locks.
 */
#ifndef METER_PAST_H
#define METER_PAST_H

#include <stdbool.h>

#include "meter/spread.h"

/* A growing figure: a count, and for histograms how its values are spread. */
struct hf_reading {
    double value; /* of a gauge */
    uint64_t count;
    uint64_t sum;
    struct hf_spread *spread; /* owned by whoever made it; NULL: none */
};

struct hf_edge {
    uint64_t slice; /* it is the reading at the left edge of this one */
    struct hf_reading reading;
};

struct hf_past {
    uint64_t slice_ns; /* (i) */
    uint32_t slices;   /* (i) how many make the window */
    uint32_t first;    /* the oldest edge */
    uint32_t count;    /* edges that are there, at least 1 after begin */
    uint64_t begun_ns;
    struct hf_edge *edges; /* a ring of `slices` */
};

/* HF_NOMEM. Spreads are made if layout is not NULL. */
enum hf_status hf_past_init(struct hf_past *past, uint64_t slice_ns,
                            uint32_t slices, const struct hf_layout *layout);
void hf_past_destroy(struct hf_past *past);

/* The first reading; forgets all others. */
enum hf_status hf_past_begin(struct hf_past *past, uint64_t now_ns,
                             const struct hf_reading *reading);
/* True if now_ns lies in a slice whose left edge has no reading yet. */
bool hf_past_is_due(const struct hf_past *past, uint64_t now_ns);
/* Notes what the figure is at the edges that have passed. HF_NOMEM: nothing
 * changed, and it is due still. */
enum hf_status hf_past_note(struct hf_past *past, uint64_t now_ns,
                            const struct hf_reading *reading);
/* The edge where the window begins that ends with now; `begin_ns` is when. It
 * must not be due. */
const struct hf_reading *hf_past_start(const struct hf_past *past,
                                       uint64_t now_ns, uint64_t *begin_ns);
/* When the next edge is due. */
uint64_t hf_past_next_ns(const struct hf_past *past);
size_t hf_past_bytes(const struct hf_past *past);

#endif
