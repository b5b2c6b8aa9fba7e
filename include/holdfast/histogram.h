/* histogram.h - how values are spread, recorded by many threads.
 *
 * Each thread that records has counts of its own; a reading adds them up:
 *
 *   thread 0   sum min max [ counts by place ]  --.
 *   thread 1   sum min max [ counts by place ]  --+--> struct hf_spread
 *   thread 2   sum min max [ counts by place ]  --'
 *
 * A thread's words are written by that thread only, so recording is a few
 * loads and stores without a locked instruction. The places, the precision and
 * the memory are those of holdfast/spread.h, for each thread that records.
 *
 * Counts only grow. A reading stops nobody and takes nothing away. Whoever
 * wants what was recorded since his last reading keeps that reading and
 * subtracts it (hf_histogram_interval does), so that any number of readers
 * have intervals of their own, and the sum of a reader's intervals is all that
 * was recorded: each update is in exactly one.
 *
 * Threads: record, read, interval and stats may overlap; open and close not.
 * Memory:  a thread's first value, and its first in a power of two, allocate.
 *          Without memory the value is counted in words that all threads
 *          share, one for each power of two: count, sum, min and max stay
 *          exact, percentiles become coarse (`coarse` in the stats).
 * Time:    none; timers are given a clock.
 *
 *   record    lock-free, wait-free but for what allocates
 *   read      no instant: each record that the caller knows to have ended is in
 *             it, none that began after its return; others may be. Two readings
 *             in turn are monotone: no count falls, nor does the sum
 *   in one reading  count is the sum of the counts; each counted value lies
 *             from min to max; the sum has only values that are counted (it
 *             may miss one of each thread that is just recording)
 *
 * A timer measures from start to stop by an injected clock:
 *
 * Example:
 *
 *   struct hf_histogram *times;
 *   struct hf_spread *seen;
 *   struct hf_timer timer;
 *   assert(hf_histogram_open(&times, NULL) == HF_OK);
 *   hf_timer_start(&timer, times, NULL);
 *   uint64_t took_ns = hf_timer_stop(&timer);
 *   hf_histogram_record(times, 17);
 *   assert(hf_spread_open(&seen, NULL) == HF_OK);
 *   assert(hf_histogram_read(times, seen) == HF_OK);
 *   assert(hf_spread_percentile(seen, 100) >= took_ns);
 *   hf_spread_close(seen);
 *   hf_histogram_close(times);
 */
#ifndef HOLDFAST_HISTOGRAM_H
#define HOLDFAST_HISTOGRAM_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/spread.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_histogram;

struct hf_histogram_opts {
    const char *name; /* for hf_inspect() */
    struct hf_spread_opts spread;
};

struct hf_histogram_stats {
    uint64_t count;
    uint64_t sum;
    uint64_t min; /* 0 if count is 0, as max */
    uint64_t max;
    uint64_t coarse;  /* values that found no memory for their place */
    uint32_t threads; /* that have, or had, counts of their own */
    size_t memory_bytes;
};

/* HF_INVALID: histogram is NULL or an option is out of its range. HF_NOMEM. */
enum hf_status hf_histogram_open(struct hf_histogram **histogram,
                                 const struct hf_histogram_opts *opts);
/* Nobody may be inside a call. NULL is allowed. */
void hf_histogram_close(struct hf_histogram *histogram);

void hf_histogram_record(struct hf_histogram *histogram, uint64_t value);

/* A spread with this histogram's options. HF_INVALID: NULL. HF_NOMEM. */
enum hf_status hf_histogram_spread(const struct hf_histogram *histogram,
                                   struct hf_spread **spread);
/* Makes `spread` all that was recorded so far. HF_INVALID: NULL, or it has
 * other options. HF_NOMEM: it is empty then. */
enum hf_status hf_histogram_read(const struct hf_histogram *histogram,
                                 struct hf_spread *spread);
/* Makes `since` what was recorded since `last` was read, and `last` all that
 * was recorded so far. Both have this histogram's options and are the caller's
 * own; `last` begins empty. HF_INVALID, HF_NOMEM: `last` is as before. */
enum hf_status hf_histogram_interval(const struct hf_histogram *histogram,
                                     struct hf_spread *last,
                                     struct hf_spread *since);
void hf_histogram_stats(const struct hf_histogram *histogram,
                        struct hf_histogram_stats *out);

/* One measurement of one thread. */
struct hf_timer {
    struct hf_histogram *histogram;
    const struct hf_clock *clock;
    uint64_t start_ns;
};

/* NULL clock: the system's; NULL histogram: measured and not recorded. */
void hf_timer_start(struct hf_timer *timer, struct hf_histogram *histogram,
                    const struct hf_clock *clock);
/* Records the nanoseconds since the start and returns them; again: from the
 * same start. */
uint64_t hf_timer_stop(struct hf_timer *timer);

#ifdef __cplusplus
}
#endif

#endif
