/* window.h - what happened lately: rates and percentiles of the last seconds.
 *
 * A window counts since it was opened, and remembers what its counts were at
 * the edges of the last slices of time. What happened lately is the difference:
 *
 *         |<---------- span ----------->|
 *   ...---|------|------|------|------|--> now
 *         ^ counts were a               counts are b:  b - a happened
 *
 * The window begins at an edge: with n slices it spans at most span_ns, and at
 * least span_ns less one slice (or the time since open, if that is less). Rates
 * are by what it really spans.
 *
 * Nothing is cleared while threads record, so nothing is lost or counted twice:
 * an update falls into one slice. One that overlaps the passing of an edge may
 * fall into the slice before or after; one whose now_ns is behind that of
 * others falls into the slice that is current.
 *
 * Threads: record, add, read, rate and stats may overlap; open and close not.
 *          Who comes first in a new slice notes the counts, under a lock;
 *          others go on meanwhile. Reading takes that lock.
 * Memory:  with values: a histogram, and a spread for each slice.
 * Time:    the caller passes `now_ns`, from one monotonic clock.
 *
 *   record, add  lock-free but for the first in a slice; may allocate
 *   read, rate   exact over [begin, now] when nothing overlaps them
 *
 * Example:
 *
 *   struct hf_window *window;
 *   struct hf_window_view view;
 *   uint64_t second = 1000000000;
 *   uint64_t now = 5000 * second; // from the caller's clock
 *   assert(hf_window_open(&window, NULL, now) == HF_OK);
 *   for (uint64_t i = 0; i < 100; i++)
 *       hf_window_record(window, 1 + i, now + i * second / 10);
 *   assert(hf_window_view(window, now + 10 * second, &view) == HF_OK);
 *   assert(view.count == 100 && view.span_ns == 10 * second);
 *   assert(view.per_second == 10.0 && view.p50 == 50);
 *   assert(hf_window_view(window, now + 99 * second, &view) == HF_OK);
 *   assert(view.count == 0); // long ago
 *   hf_window_close(window);
 */
#ifndef HOLDFAST_WINDOW_H
#define HOLDFAST_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/spread.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_WINDOW_SLICES_MAX 3600

struct hf_window;

struct hf_window_opts {
    const char *name; /* for hf_inspect() */
    uint64_t span_ns; /* 0: a minute; at least a ns for each slice */
    uint32_t slices;  /* 0: 12; at most HF_WINDOW_SLICES_MAX */
    bool count_only;  /* no values: rates, but no percentiles; cheaper */
    struct hf_spread_opts spread; /* of values */
};

/* What happened from now_ns - span_ns to now_ns. */
struct hf_window_view {
    uint64_t count;
    uint64_t sum;
    uint64_t span_ns;
    double per_second; /* of count; 0 if nothing is spanned */
    uint64_t min;      /* of values; 0 if there are none, as those below */
    uint64_t max;
    uint64_t p50;
    uint64_t p95;
    uint64_t p99;
};

struct hf_window_stats {
    uint64_t count; /* since open */
    uint64_t sum;
    uint64_t late; /* edges noted late because there was no memory */
    size_t memory_bytes;
};

/* HF_INVALID: window is NULL or an option is out of its range. HF_NOMEM. */
enum hf_status hf_window_open(struct hf_window **window,
                              const struct hf_window_opts *opts,
                              uint64_t now_ns);
/* Nobody may be inside a call. NULL is allowed. */
void hf_window_close(struct hf_window *window);

/* One thing happened, of this value (ignored with count_only). */
void hf_window_record(struct hf_window *window, uint64_t value,
                      uint64_t now_ns);
/* So many things happened; with count_only. Without, each is of value 0. */
void hf_window_add(struct hf_window *window, uint64_t count, uint64_t now_ns);

/* HF_INVALID: NULL; HF_NOMEM. */
enum hf_status hf_window_view(struct hf_window *window, uint64_t now_ns,
                              struct hf_window_view *out);
/* How the values of the window are spread, for other percentiles. `spread` has
 * the window's options. HF_INVALID: also with count_only. HF_NOMEM. */
enum hf_status hf_window_read(struct hf_window *window, uint64_t now_ns,
                              struct hf_spread *spread);
void hf_window_stats(struct hf_window *window, struct hf_window_stats *out);

#ifdef __cplusplus
}
#endif

#endif
