/* waits.h - how long callers had to wait: a small histogram.
 *
 * Four buckets for each power of two, so that a bucket is at most a quarter
 * wider than what it holds:
 *
 *   ns   0 1 2 3 4 5 6 7 8   10   12   14   16    20    24    28    32 ...
 *        | | | | | | | | |    |    |    |    |     |     |     |     |
 *
 * Threads: any call from any thread. What is read while others note is some
 *          state between the calls' beginnings and ends.
 * Memory:  the caller's, 2 KB; zeroed is empty.
 */
#ifndef SYNC_WAITS_H
#define SYNC_WAITS_H

#include <stdint.h>

#include "holdfast/atomic.h"

#define WAITS_BUCKETS 252

struct hf_waits {
    struct hf_atomic_u64 buckets[WAITS_BUCKETS]; /* (a) waits of that length */
};

void hf_waits_note(struct hf_waits *waits, uint64_t ns);
/* How many were noted. */
uint64_t hf_waits_count(const struct hf_waits *waits);
/* The length that so many of 100 waits do not exceed, rounded up to the end of
 * its bucket; HF_INSPECT_NONE if none was noted. */
uint64_t hf_waits_percentile_ns(const struct hf_waits *waits, unsigned percent);

#endif
