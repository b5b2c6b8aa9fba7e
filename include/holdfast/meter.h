/* meter.h - named measures: counters, gauges, histograms; Prometheus text.
 *
 * A registry holds families; a family has a name, a kind and one series for
 * each set of labels. Threads update a series through its handle; whoever
 * scrapes reads all of them.
 *
 *   meter
 *     +- orders_total (counter) "Orders taken."
 *     |    +- {kind="buy"}    17     <-- hf_counter_add(buy, 1)
 *     |    +- {kind="sell"}    4
 *     +- queue_depth (gauge)
 *     |    +- {}               3     <-- hf_gauge_set(), or a callback
 *     +- order_seconds (histogram)   <-- hf_histogram_record()
 *
 *   counter    only grows; striped by thread
 *   gauge      goes up and down: set, add, or read from a callback
 *   histogram  how values are spread since the start (holdfast/histogram.h)
 *   window     the same with percentiles of the last minute; told as a summary
 *              (holdfast/window.h)
 *
 * The same name and labels give the same series, in whatever order the labels
 * come; a label with an empty value is as none. Families and series stay until
 * the registry is closed; each family takes `series_max` of them, so that
 * labels made of user input cannot fill the memory.
 *
 * Reading stops no writer. Counters and histograms only grow, so no reading
 * takes anything from another: what happened between two readings is their
 * difference, each update in exactly one of them. Two readings in turn are
 * monotone. Different series are read one after the other, at no one instant.
 *
 * Threads: all calls but open and close may overlap. Callbacks run outside
 *          locks; updates and callbacks may come from any thread.
 * Memory:  a counter 2 KB, a gauge a few words, a histogram as its header says.
 *          Texts are copied.
 * Time:    windows are read at the time of `clock`.
 *
 *   hf_counter_add  wait-free but for a thread's first; exact; no allocation
 *                   but a thread's first
 *   hf_gauge_*      lock-free, linearizable, no allocation
 *   finding a series takes a lock: keep the handle
 *
 * Example:
 *
 *   struct hf_meter *meter;
 *   struct hf_counter *buys;
 *   struct hf_label kind = {"kind", "buy"};
 *   char text[1000];
 *   assert(hf_meter_open(&meter, NULL) == HF_OK);
 *   assert(hf_meter_counter(meter,
 *                           &(struct hf_metric){.name = "orders_total",
 *                                               .help = "Orders taken.",
 *                                               .labels = &kind,
 *                                               .label_count = 1},
 *                           &buys) == HF_OK);
 *   hf_counter_add(buys, 2);
 *   size_t len = hf_meter_text(meter, 0, text, sizeof text);
 *   assert(len < sizeof text);
 *   assert(strstr(text, "\norders_total{kind=\"buy\"} 2\n") != NULL);
 *   hf_meter_close(meter);
 */
#ifndef HOLDFAST_METER_H
#define HOLDFAST_METER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/adder.h"
#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/histogram.h"
#include "holdfast/status.h"
#include "holdfast/window.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_METER_NAME_MAX   200  /* bytes of a metric's or label's name */
#define HF_METER_VALUE_MAX  1000 /* bytes of a label's value */
#define HF_METER_LABELS_MAX 16
#define HF_METER_BOUNDS_MAX 64

struct hf_meter;

struct hf_counter {
    struct hf_adder adder;
};

struct hf_gauge {
    struct hf_atomic_u64 value; /* (a) as int64_t */
};

struct hf_label {
    const char *name;  /* [a-zA-Z_][a-zA-Z0-9_]*, not beginning with "__" */
    const char *value; /* UTF-8 */
};

struct hf_meter_opts {
    const char *name;             /* for hf_inspect() */
    uint32_t series_max;          /* of a family; 0: 1,000 */
    const struct hf_clock *clock; /* NULL: the system's */
};

/* What a metric is called and how it is told. */
struct hf_metric {
    const char *name; /* [a-zA-Z_:][a-zA-Z0-9_:]* */
    const char *help; /* of the family: that of its first series counts */
    const struct hf_label *labels; /* may be NULL if label_count is 0 */
    size_t label_count;
    /* Told is value * scale, so that nanoseconds are told in seconds with
     * 1e-9; 0: 1. Of a family: that of its first series counts. */
    double scale;
    /* Histograms: upper bounds of the buckets in the text, before scaling and
     * growing. A value within the histogram's precision of a bound may be told
     * in the bucket above. NULL: 1, 2.5 and 5 in each power of ten, from the
     * lowest to the highest value, at most HF_METER_BOUNDS_MAX of them. */
    const uint64_t *bounds;
    size_t bound_count;
    struct hf_spread_opts spread; /* of histograms */
};

enum hf_meter_kind {
    HF_METER_COUNTER,
    HF_METER_GAUGE,
    HF_METER_HISTOGRAM,
    HF_METER_SUMMARY, /* a window */
};

/* One series as it was read. Valid during the call of the visitor. */
struct hf_meter_row {
    const char *name;
    const char *help;
    const char *labels; /* as in the text: a="b",c="d"; empty: none */
    enum hf_meter_kind kind;
    double scale;
    double value;   /* counters and gauges, before scaling */
    uint64_t count; /* histograms and summaries: since the start; counters: the
                     * exact value */
    uint64_t sum;
    /* Histograms: since the start. Summaries: of the window. NULL: others. */
    const struct hf_spread *spread;
    const uint64_t *bounds; /* of histograms */
    size_t bound_count;
};

struct hf_meter_stats {
    uint32_t families;
    uint32_t series;
    uint64_t rejected; /* series beyond series_max */
};

/* HF_INVALID: meter is NULL. HF_NOMEM. */
enum hf_status hf_meter_open(struct hf_meter **meter,
                             const struct hf_meter_opts *opts);
/* Frees all series; nobody may be inside a call or update. NULL is allowed. */
void hf_meter_close(struct hf_meter *meter);

/* The series of that name and those labels; made if it is not there.
 *
 * HF_INVALID: NULL, or a name, a label or an option breaks its rule: a label
 *     twice, `le` of a histogram, `quantile` of a summary, bounds not growing.
 * HF_EXISTS: the name is another kind's, or one of the names under which
 *     another is told (a histogram x takes x_bucket, x_sum and x_count), or
 *     one of those of hf_inspect() (holdfast_object_...); a callback is there.
 * HF_FULL: the family has series_max of them. HF_NOMEM. */
enum hf_status hf_meter_counter(struct hf_meter *meter,
                                const struct hf_metric *metric,
                                struct hf_counter **counter);
enum hf_status hf_meter_gauge(struct hf_meter *meter,
                              const struct hf_metric *metric,
                              struct hf_gauge **gauge);
enum hf_status hf_meter_histogram(struct hf_meter *meter,
                                  const struct hf_metric *metric,
                                  struct hf_histogram **histogram);
enum hf_status hf_meter_window(struct hf_meter *meter,
                               const struct hf_metric *metric,
                               const struct hf_window_opts *opts,
                               struct hf_window **window);
/* A series (counter or gauge) whose value is asked for when it is read, as
 * often as it is read, outside locks and until the registry is closed. There
 * is one callback for a series: HF_EXISTS if the series is there. */
enum hf_status hf_meter_call(struct hf_meter *meter, enum hf_meter_kind kind,
                             const struct hf_metric *metric,
                             double (*read)(void *context), void *context);

static inline void hf_counter_add(struct hf_counter *counter, uint64_t amount)
{
    hf_adder_add(counter == NULL ? NULL : &counter->adder, (int64_t)amount);
}
uint64_t hf_counter_value(const struct hf_counter *counter);
/* What was added since `*last` was read (0 at first), which it then is. */
uint64_t hf_counter_interval(const struct hf_counter *counter, uint64_t *last);

void hf_gauge_set(struct hf_gauge *gauge, int64_t value);
void hf_gauge_add(struct hf_gauge *gauge, int64_t amount);
int64_t hf_gauge_value(const struct hf_gauge *gauge);

/* Reads every series, families and series in the order they were made, outside
 * locks. HF_INVALID: NULL. HF_NOMEM: some were not visited. */
enum hf_status hf_meter_visit(struct hf_meter *meter,
                              void (*visit)(void *context,
                                            const struct hf_meter_row *row),
                              void *context);

/* Also tell what hf_inspect() knows of the open objects of this process. */
#define HF_METER_OBJECTS 1u

/* Writes the Prometheus text (format 0.0.4) into `out`, cut at `cap` and always
 * terminated if cap > 0. Returns the length it has uncut; 0: without memory, or
 * there is nothing to tell. */
size_t hf_meter_text(struct hf_meter *meter, unsigned flags, char *out,
                     size_t cap);

/* Hands the same text, of any length, to `write` in one piece, and returns what
 * that returns. HF_INVALID: NULL. HF_NOMEM: it was not called. */
enum hf_status hf_meter_write(struct hf_meter *meter, unsigned flags,
                              enum hf_status (*write)(void *context,
                                                      const char *text,
                                                      size_t len),
                              void *context);

void hf_meter_stats(struct hf_meter *meter, struct hf_meter_stats *out);

#ifdef __cplusplus
}
#endif

#endif
