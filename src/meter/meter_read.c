/* meter_read.c - what series are worth: one by one, or all of them. */

#include "meter/histogram.h"
#include "meter/meter_state.h"
#include "meter/window.h"

uint64_t hf_counter_value(const struct hf_counter *counter)
{
    return counter == NULL ? 0 : (uint64_t)hf_adder_sum(&counter->adder);
}

uint64_t hf_counter_interval(const struct hf_counter *counter, uint64_t *last)
{
    if (counter == NULL || last == NULL)
        return 0;
    uint64_t now = hf_counter_value(counter);
    uint64_t since = now - *last;

    *last = now;
    return since;
}

void hf_gauge_set(struct hf_gauge *gauge, int64_t value)
{
    /* Relaxed, here and below: a figure, which publishes nothing. */
    if (gauge != NULL)
        hf_u64_store(&gauge->value, (uint64_t)value, __ATOMIC_RELAXED);
}

void hf_gauge_add(struct hf_gauge *gauge, int64_t amount)
{
    if (gauge != NULL)
        hf_u64_add(&gauge->value, (uint64_t)amount, __ATOMIC_RELAXED);
}

int64_t hf_gauge_value(const struct hf_gauge *gauge)
{
    return gauge == NULL
               ? 0
               : (int64_t)hf_u64_load(&gauge->value, __ATOMIC_RELAXED);
}

const struct hf_layout *hf_meter_layout(const struct hf_series *series)
{
    return series->histogram != NULL ? hf_histogram_layout(series->histogram)
           : series->window != NULL  ? hf_window_layout(series->window)
                                     : NULL;
}

enum hf_status hf_meter_read(const struct hf_series *series,
                             struct hf_reading *out)
{
    enum hf_status status = HF_OK;

    if (series->read != NULL) {
        out->value = series->read(series->context);
        /* Its rate is that of whole numbers, as a counter's is. */
        out->count =
            out->value > 0 && out->value < 1.8e19 ? (uint64_t)out->value : 0;
    } else if (series->histogram != NULL) {
        status = hf_histogram_read(series->histogram, out->spread);
        out->count = out->spread->count;
        out->sum = out->spread->sum;
        out->value = (double)out->count;
    } else if (series->window != NULL) {
        status = hf_window_total(series->window, out);
        out->value = (double)out->count;
    } else if (series->family->kind == HF_METER_COUNTER) {
        out->count = hf_counter_value(&series->counter);
        out->value = (double)out->count;
    } else {
        out->value = (double)hf_gauge_value(&series->gauge);
    }
    return status;
}

/* A summary tells the percentiles of its window, and the totals of all. */
static enum hf_status read_window(const struct hf_meter *meter,
                                  const struct hf_series *series,
                                  struct hf_reading *reading)
{
    struct hf_window_stats stats;

    hf_window_stats(series->window, &stats);
    reading->count = stats.count;
    reading->sum = stats.sum;
    return reading->spread == NULL
               ? HF_OK
               : hf_window_read(series->window, hf_clock_now_ns(meter->clock),
                                reading->spread);
}

static enum hf_status
visit_series(const struct hf_meter *meter, const struct hf_series *series,
             void (*visit)(void *context, const struct hf_meter_row *),
             void *context)
{
    const struct hf_family *family = series->family;
    const struct hf_layout *layout = hf_meter_layout(series);
    struct hf_reading reading = {0};
    enum hf_status status = HF_OK;

    if (layout != NULL)
        status = hf_spread_make(&reading.spread, layout);
    if (!status)
        status = series->window != NULL ? read_window(meter, series, &reading)
                                        : hf_meter_read(series, &reading);
    if (!status)
        visit(context,
              &(struct hf_meter_row){.name = family->name,
                                     .help = family->help,
                                     .labels = series->labels,
                                     .kind = family->kind,
                                     .scale = family->scale,
                                     .value = reading.value,
                                     .count = reading.count,
                                     .sum = reading.sum,
                                     .spread = reading.spread,
                                     .bounds = family->bounds,
                                     .bound_count = family->bound_count});
    hf_spread_close(reading.spread);
    return status;
}

enum hf_status hf_meter_visit(struct hf_meter *meter,
                              void (*visit)(void *context,
                                            const struct hf_meter_row *row),
                              void *context)
{
    enum hf_status status = HF_OK;

    if (meter == NULL || visit == NULL)
        return HF_INVALID;
    /* Acquire: what is in the lists was written before it was put there. */
    const struct hf_family *family =
        hf_ptr_load(&meter->first, __ATOMIC_ACQUIRE);
    for (; family != NULL && !status;
         family = hf_ptr_load(&family->next, __ATOMIC_ACQUIRE)) {
        const struct hf_series *series =
            hf_ptr_load(&family->first, __ATOMIC_ACQUIRE);
        for (; series != NULL && !status;
             series = hf_ptr_load(&series->next, __ATOMIC_ACQUIRE))
            status = visit_series(meter, series, visit, context);
    }
    return status;
}
