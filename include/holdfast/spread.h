/* spread.h - how often each value was seen, to so many digits.
 *
 * A spread keeps a count for each place. Places are as wide as the wanted
 * precision allows: each power of two is cut into equal parts, so that the
 * error is relative and the number of places small (HdrHistogram's layout):
 *
 *   value   0 1 2 3 ... 255 256 258 260 ... 510 512 516 ... 1020 1024 1032 ...
 *           | one each      | two each          | four each      | eight ...
 *                             (2 digits: no place is wider than 1/100 of what
 *                              it holds)
 *
 * This is the plain form: one thread at a time. It is what is read from a
 * histogram that many threads record into (holdfast/histogram.h); it can be
 * merged, subtracted, stored and asked for percentiles.
 *
 * Threads: one at a time; reading calls may overlap each other.
 * Memory:  counts of a power of two are allocated when the first value falls
 *          there: 128 bytes, 1, 8 or 128 KB for 1, 2, 3 or 4 digits.
 *
 *   count, sum, min, max  exact (the sum modulo 2^64); see subtract and decode
 *   percentile            not below the exact one; above it by less than
 *                         1/10^digits of it
 *   above `highest`       counted in the last place; percentiles there say so
 *                         much: more than highest
 *
 * Example:
 *
 *   struct hf_spread *spread;
 *   struct hf_spread_stats stats;
 *   assert(hf_spread_open(&spread, NULL) == HF_OK);
 *   for (uint64_t value = 1; value <= 1000; value++)
 *       assert(hf_spread_record(spread, value, 1) == HF_OK);
 *   hf_spread_stats(spread, &stats);
 *   assert(stats.count == 1000 && stats.min == 1 && stats.max == 1000);
 *   uint64_t p99 = hf_spread_percentile(spread, 99);
 *   assert(p99 >= 990 && p99 < 990 + 990 / 100);
 *   hf_spread_close(spread);
 */
#ifndef HOLDFAST_SPREAD_H
#define HOLDFAST_SPREAD_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_SPREAD_DIGITS_MAX  4
#define HF_SPREAD_HIGHEST_MAX ((uint64_t)INT64_MAX)

struct hf_spread;

struct hf_spread_opts {
    uint32_t digits;  /* 1 .. HF_SPREAD_DIGITS_MAX; 0: 2 */
    uint64_t lowest;  /* smaller differences are of no interest; 0: 1 */
    uint64_t highest; /* at least twice lowest, at most HF_SPREAD_HIGHEST_MAX;
                       * 0: 3,600,000,000,000 (an hour in ns) */
};

struct hf_spread_stats {
    uint64_t count;
    uint64_t sum;
    uint64_t min; /* 0 if count is 0, as max and mean */
    uint64_t max;
    double mean;
    size_t memory_bytes;
};

/* HF_INVALID: spread is NULL or an option is out of its range. HF_NOMEM. */
enum hf_status hf_spread_open(struct hf_spread **spread,
                              const struct hf_spread_opts *opts);
/* NULL is allowed. */
void hf_spread_close(struct hf_spread *spread);

/* Counts `value` so many times. HF_NOMEM: nothing changed. */
enum hf_status hf_spread_record(struct hf_spread *spread, uint64_t value,
                                uint64_t times);
/* Forgets everything and keeps the memory. */
void hf_spread_reset(struct hf_spread *spread);

/* Adds all of `from`, or nothing (HF_NOMEM). Of another precision or range, the
 * values are those of its places, as precise as the coarser of the two. */
enum hf_status hf_spread_add(struct hf_spread *spread,
                             const struct hf_spread *from);
/* Takes away all of `what`, which was part of it: two readings of one histogram
 * give what was recorded between them. min and max are then exact if they are
 * those of the whole, and precise to the digits if not. HF_INVALID, and nothing
 * changed: the options differ, or a count would fall below 0. */
enum hf_status hf_spread_subtract(struct hf_spread *spread,
                                  const struct hf_spread *what);

/* The smallest value that is not below so many percent (0 to 100) of all, or a
 * little more, never beyond max; 0 if there are none. */
uint64_t hf_spread_percentile(const struct hf_spread *spread, double percent);
/* How many are not above `value`, as far as places tell: all whose place ends
 * there or before. */
uint64_t hf_spread_at_most(const struct hf_spread *spread, uint64_t value);
/* Calls visit(context, low, high, count) for each place that has values, in
 * order; values in it lie from low to high. */
void hf_spread_visit(const struct hf_spread *spread,
                     void (*visit)(void *context, uint64_t low, uint64_t high,
                                   uint64_t count),
                     void *context);
void hf_spread_stats(const struct hf_spread *spread,
                     struct hf_spread_stats *out);

/* HdrHistogram's V2 encoding, uncompressed: what its libraries decode. `len`
 * is the length of it, also when `cap` is less (HF_FULL; out may be NULL with
 * cap 0). HF_INVALID: NULL, or a count does not fit 62 bits. */
enum hf_status hf_spread_encode(const struct hf_spread *spread, void *out,
                                size_t cap, size_t *len);
/* A new spread of what was encoded, here or by another library. The encoding
 * has no sum, min and max: min and max are the ends of their places, the sum is
 * that of the places' middles. HF_CORRUPT: not such bytes, or more digits than
 * HF_SPREAD_DIGITS_MAX; HF_INVALID: NULL; HF_NOMEM. */
enum hf_status hf_spread_decode(struct hf_spread **spread, const void *bytes,
                                size_t len);

#ifdef __cplusplus
}
#endif

#endif
