/* window.c - a histogram or adder that only grows, and its past. */
#include "meter/window.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "holdfast/adder.h"
#include "meter/histogram.h"
#include "sync/listed.h"
#include "sync/mutex.h"

#define SPAN_DEFAULT_NS UINT64_C(60000000000)
#define SLICES_DEFAULT  12u

struct hf_window {
    struct hf_histogram *values;  /* (i) NULL with count_only */
    struct hf_adder adder;        /* with count_only */
    struct hf_atomic_u64 next_ns; /* (a) when the next edge is due */
    struct hf_mutex mutex;        /* guards the past */
    struct hf_past past;          /* (m) */
    struct hf_spread *now;        /* (m) scratch; NULL with count_only */
    uint64_t late;                /* (m) */
    struct hf_listed listed;
    bool is_listed; /* (i) */
};

const struct hf_layout *hf_window_layout(const struct hf_window *window)
{
    return window->values == NULL ? NULL : hf_histogram_layout(window->values);
}

static void release(struct hf_window *window)
{
    hf_past_destroy(&window->past);
    hf_spread_close(window->now);
    hf_histogram_close(window->values);
    hf_adder_destroy(&window->adder);
    hf_free(window);
}

static enum hf_status build(struct hf_window *window,
                            const struct hf_window_opts *opts, uint64_t span_ns,
                            uint32_t slices, uint64_t now_ns)
{
    enum hf_status status;

    if (opts->count_only) {
        status = hf_adder_init(&window->adder);
    } else {
        status = hf_histogram_make(&window->values, &opts->spread);
        if (!status)
            status = hf_histogram_spread(window->values, &window->now);
    }
    if (!status)
        status = hf_past_init(&window->past, span_ns / slices, slices,
                              hf_window_layout(window));
    if (!status)
        status = hf_past_begin(&window->past, now_ns,
                               &(struct hf_reading){.spread = window->now});
    if (!status)
        hf_u64_store(&window->next_ns, hf_past_next_ns(&window->past),
                     __ATOMIC_RELAXED);
    return status;
}

enum hf_status hf_window_make(struct hf_window **window,
                              const struct hf_window_opts *opts,
                              uint64_t now_ns)
{
    struct hf_window_opts given = {0};

    if (opts != NULL)
        given = *opts;
    uint64_t span_ns = given.span_ns == 0 ? SPAN_DEFAULT_NS : given.span_ns;
    uint32_t slices = given.slices == 0 ? SLICES_DEFAULT : given.slices;
    if (slices > HF_WINDOW_SLICES_MAX || span_ns < slices ||
        span_ns > UINT64_MAX / 4)
        return HF_INVALID;
    struct hf_window *made = hf_alloc_zeroed(sizeof *made);
    if (made == NULL)
        return HF_NOMEM;
    enum hf_status status = build(made, &given, span_ns, slices, now_ns);
    if (status) {
        release(made);
        return status;
    }
    *window = made;
    return HF_OK;
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    const struct hf_window *window =
        (const void *)((const char *)listed -
                       offsetof(struct hf_window, listed));
    struct hf_histogram_stats stats;

    if (window->values == NULL) {
        row->depth = (uint64_t)hf_adder_sum(&window->adder);
        return;
    }
    hf_histogram_stats(window->values, &stats);
    row->depth = stats.count;
}

enum hf_status hf_window_open(struct hf_window **window,
                              const struct hf_window_opts *opts,
                              uint64_t now_ns)
{
    if (window == NULL)
        return HF_INVALID;
    enum hf_status status = hf_window_make(window, opts, now_ns);
    if (status)
        return status;
    (*window)->is_listed = true;
    hf_listed_add(&(*window)->listed, "window",
                  opts == NULL ? NULL : opts->name, fill);
    return HF_OK;
}

void hf_window_close(struct hf_window *window)
{
    if (window == NULL)
        return;
    if (window->is_listed)
        hf_listed_remove(&window->listed);
    release(window);
}

enum hf_status hf_window_total(struct hf_window *window, struct hf_reading *out)
{
    if (window->values == NULL) {
        out->count = (uint64_t)hf_adder_sum(&window->adder);
        return HF_OK;
    }
    enum hf_status status = hf_histogram_read(window->values, out->spread);
    if (!status) {
        out->count = out->spread->count;
        out->sum = out->spread->sum;
    }
    return status;
}

/* Reads the counts into `*reading`, whose spread is the scratch, and notes them
 * for edges that have passed. */
static enum hf_status look(struct hf_window *window, uint64_t now_ns,
                           struct hf_reading *reading)
{
    assert(hf_mutex_held(&window->mutex));
    *reading = (struct hf_reading){.spread = window->now};
    enum hf_status status = hf_window_total(window, reading);
    if (!hf_past_is_due(&window->past, now_ns))
        return status;
    if (!status)
        status = hf_past_note(&window->past, now_ns, reading);
    if (status)
        window->late++;
    else
        /* Relaxed: a hint; the past itself is under the lock. */
        hf_u64_store(&window->next_ns, hf_past_next_ns(&window->past),
                     __ATOMIC_RELAXED);
    return status;
}

static __attribute__((noinline)) void pass_edge(struct hf_window *window,
                                                uint64_t now_ns)
{
    struct hf_reading reading;

    if (!hf_mutex_try(&window->mutex))
        return; /* whoever holds it notes the edge, or is about to */
    if (hf_past_is_due(&window->past, now_ns))
        (void)look(window, now_ns, &reading);
    hf_mutex_unlock(&window->mutex);
}

static inline void before(struct hf_window *window, uint64_t now_ns)
{
    /* Relaxed: see look(). */
    if (__builtin_expect(
            now_ns >= hf_u64_load(&window->next_ns, __ATOMIC_RELAXED), 0))
        pass_edge(window, now_ns);
}

void hf_window_record(struct hf_window *window, uint64_t value, uint64_t now_ns)
{
    if (window == NULL)
        return;
    before(window, now_ns);
    if (window->values == NULL)
        hf_adder_add(&window->adder, 1);
    else
        hf_histogram_record(window->values, value);
}

void hf_window_add(struct hf_window *window, uint64_t count, uint64_t now_ns)
{
    if (window == NULL)
        return;
    before(window, now_ns);
    if (window->values == NULL) {
        hf_adder_add(&window->adder, (int64_t)count);
        return;
    }
    for (; count > 0; count--)
        hf_histogram_record(window->values, 0);
}

/* What happened since the window began; `*reading` as look() leaves it, less
 * what was at that edge. */
static enum hf_status view(struct hf_window *window, uint64_t now_ns,
                           struct hf_reading *reading, uint64_t *begin_ns)
{
    enum hf_status status = look(window, now_ns, reading);

    if (status)
        return status;
    const struct hf_reading *start =
        hf_past_start(&window->past, now_ns, begin_ns);
    reading->count -= start->count;
    reading->sum -= start->sum;
    return reading->spread == NULL
               ? HF_OK
               : hf_spread_subtract(reading->spread, start->spread);
}

enum hf_status hf_window_view(struct hf_window *window, uint64_t now_ns,
                              struct hf_window_view *out)
{
    struct hf_reading reading;
    uint64_t begin_ns;

    if (window == NULL || out == NULL)
        return HF_INVALID;
    hf_mutex_lock(&window->mutex);
    enum hf_status status = view(window, now_ns, &reading, &begin_ns);
    if (!status) {
        uint64_t span_ns = now_ns > begin_ns ? now_ns - begin_ns : 0;
        *out = (struct hf_window_view){
            .count = reading.count, .sum = reading.sum, .span_ns = span_ns};
        if (span_ns > 0)
            out->per_second = (double)reading.count * 1e9 / (double)span_ns;
        if (reading.count > 0 && reading.spread != NULL) {
            out->min = reading.spread->least;
            out->max = reading.spread->most;
            out->p50 = hf_spread_percentile(reading.spread, 50);
            out->p95 = hf_spread_percentile(reading.spread, 95);
            out->p99 = hf_spread_percentile(reading.spread, 99);
        }
    }
    hf_mutex_unlock(&window->mutex);
    return status;
}

enum hf_status hf_window_read(struct hf_window *window, uint64_t now_ns,
                              struct hf_spread *spread)
{
    struct hf_reading reading;
    uint64_t begin_ns;

    if (window == NULL || spread == NULL || window->values == NULL ||
        !hf_layout_equal(&spread->layout, hf_window_layout(window)))
        return HF_INVALID;
    hf_mutex_lock(&window->mutex);
    enum hf_status status = view(window, now_ns, &reading, &begin_ns);
    if (!status)
        status = hf_spread_promise(spread, reading.spread);
    if (!status) {
        hf_spread_reset(spread);
        status = hf_spread_add(spread, reading.spread);
    }
    hf_mutex_unlock(&window->mutex);
    return status;
}

void hf_window_stats(struct hf_window *window, struct hf_window_stats *out)
{
    struct hf_histogram_stats values = {0};

    if (window == NULL || out == NULL)
        return;
    *out = (struct hf_window_stats){.memory_bytes = sizeof *window};
    if (window->values == NULL) {
        out->count = (uint64_t)hf_adder_sum(&window->adder);
    } else {
        hf_histogram_stats(window->values, &values);
        out->count = values.count;
        out->sum = values.sum;
        out->memory_bytes += values.memory_bytes;
    }
    hf_mutex_lock(&window->mutex);
    out->late = window->late;
    out->memory_bytes += hf_past_bytes(&window->past);
    hf_mutex_unlock(&window->mutex);
}
