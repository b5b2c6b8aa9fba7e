/* histogram.h - how often each duration was seen, to within two percent.
 *
 * Log-linear: every power of two is cut into HISTOGRAM_PARTS equal parts, so
 * that the error is relative and the size fixed. Below HISTOGRAM_PARTS every
 * number has its own place.
 */
#ifndef CLI_HISTOGRAM_H
#define CLI_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_PART_BITS 6
#define HISTOGRAM_PARTS     (1u << HISTOGRAM_PART_BITS)
/* Durations from 2^HISTOGRAM_BITS (73 minutes in ns) on count as the last. */
#define HISTOGRAM_BITS  42
#define HISTOGRAM_SLOTS ((HISTOGRAM_BITS - HISTOGRAM_PART_BITS + 1) * 64)

struct histogram {
    uint64_t counts[HISTOGRAM_SLOTS];
    uint64_t total;
    uint64_t max; /* exact */
};

void histogram_reset(struct histogram *histogram);
void histogram_add(struct histogram *histogram, uint64_t value);
/* The smallest value that is not below `per_mille` of a thousand of those
 * seen, or a little more (at most the largest seen); 0 if there are none. */
uint64_t histogram_at(const struct histogram *histogram, uint32_t per_mille);

#endif
