/* metrics.c - the registry's series, and what is put into them. */
#include "server/metrics.h"

#include <assert.h>

#include "base/memory.h"
#include "server/figures.h"
#include "server/server.h"
#include "server/table.h"

/* A counter or gauge, read when the meter is. */
struct metrics_series {
    const struct figure *figure;
    const struct server *server;
    size_t index;
};

static double read_series(void *context)
{
    const struct metrics_series *series = context;

    return figure_read(series->figure, series->server, series->index);
}

static enum hf_status add_series(struct metrics *metrics, struct server *server,
                                 const struct figure *figure, size_t index,
                                 struct metrics_series *series)
{
    struct hf_label label = {figure->label,
                             figure->series > 0 ? figure->value(index) : ""};
    struct hf_metric metric = {.name = figure->name,
                               .help = figure->help,
                               .labels = &label,
                               .label_count = figure->series > 0,
                               .bounds = figure->bounds,
                               .bound_count = figure->bound_count};
    void *place = (char *)server + figure->at + index * figure->size;

    switch (figure->kind) {
    case FIGURE_HISTOGRAM:
        metric.scale = figure->scale;
        return hf_meter_histogram(metrics->meter, &metric, place);
    case FIGURE_WINDOW:
        metric.scale = figure->scale;
        return hf_meter_window(metrics->meter, &metric, NULL, place);
    default:
        *series = (struct metrics_series){figure, server, index};
        return hf_meter_call(metrics->meter,
                             figure->kind == FIGURE_COUNTER ? HF_METER_COUNTER
                                                            : HF_METER_GAUGE,
                             &metric, read_series, series);
    }
}

static size_t series_of(const struct figure *figure)
{
    return figure->series > 0 ? figure->series : 1;
}

static enum hf_status add_figures(struct metrics *metrics,
                                  struct server *server)
{
    enum hf_status status = HF_OK;
    size_t count = 0;

    for (size_t i = 0; i < figure_count(); i++)
        count += series_of(figure_at(i));
    metrics->series = hf_alloc_zeroed(count * sizeof *metrics->series);
    if (metrics->series == NULL)
        return HF_NOMEM;
    struct metrics_series *next = metrics->series;
    for (size_t i = 0; i < figure_count(); i++) {
        const struct figure *figure = figure_at(i);
        if (figure->help == NULL)
            continue;
        for (size_t k = 0; k < series_of(figure) && !status; k++)
            if (figure->series == 0 || figure->value(k) != NULL)
                status = add_series(metrics, server, figure, k, next++);
    }
    return status;
}

enum hf_status metrics_open(struct metrics *metrics, struct server *server)
{
    struct hf_meter_opts opts = {.name = "server", .clock = server->clock};

    assert(metrics == &server->metrics && table_count() < METRICS_COMMANDS_MAX);
    *metrics = (struct metrics){0};
    /* What is of no command in the table (a tick) is counted as unknown. */
    for (size_t i = 0; i < HOLD_KINDS; i++)
        metrics->by_kind[i] = (uint16_t)table_count();
    for (size_t i = 0; i < table_count(); i++)
        if (table_at(i)->kind != 0 &&
            metrics->by_kind[table_at(i)->kind] == table_count())
            metrics->by_kind[table_at(i)->kind] = (uint16_t)i;
    enum hf_status status = hf_meter_open(&metrics->meter, &opts);
    return status ? status : add_figures(metrics, server);
}

void metrics_close(struct metrics *metrics)
{
    hf_meter_close(metrics->meter);
    hf_free(metrics->series);
    *metrics = (struct metrics){0};
}

void metrics_command(struct metrics *metrics, size_t index)
{
    assert(index < METRICS_COMMANDS_MAX);
    metrics->commands[index]++;
}

void metrics_took(struct metrics *metrics, size_t index, uint64_t took_ns)
{
    assert(index < METRICS_COMMANDS_MAX);
    hf_histogram_record(metrics->took_ns[index], took_ns);
}

/* Two codes of the engine have one name and so one count. */
void metrics_refused(struct metrics *metrics, enum hold_code code)
{
    metrics->errors[code == HOLD_MOVED ? HOLD_CONFLICT : code]++;
}

void metrics_answered(struct metrics *metrics, enum hold_kind kind,
                      enum hold_code code)
{
    if (kind == HOLD_RESERVE && code != HOLD_OK && code != HOLD_WAITING)
        metrics->reserves_refused++;
}

void metrics_decided(struct metrics *metrics, bool allowed)
{
    metrics->decisions[allowed ? METRICS_ALLOWED : METRICS_DENIED]++;
}

void metrics_events(struct metrics *metrics, const struct hold_out *out)
{
    for (size_t i = 0; i < out->event_count; i++) {
        const struct hold_event *event = &out->events[i];
        metrics->events[event->kind]++;
        if (event->kind == EVENT_LOCK_EXPIRED ||
            event->kind == EVENT_SESSION_EXPIRED ||
            event->kind == EVENT_RESERVATION_EXPIRED)
            hf_histogram_record(metrics->lag_us, event->lag_us);
        if (event->age_us == HOLD_NO_AGE)
            continue;
        if (event->kind == EVENT_LOCK_RELEASED ||
            event->kind == EVENT_LOCK_EXPIRED || event->kind == EVENT_LOCK_LOST)
            hf_histogram_record(metrics->hold_us, event->age_us);
        else if (event->kind == EVENT_CONFIRMED ||
                 event->kind == EVENT_CONFIRMED_LATE)
            hf_histogram_record(metrics->confirm_us, event->age_us);
        else if (event->kind == EVENT_OFFERED)
            hf_histogram_record(metrics->stock_wait_us[METRICS_GRANTED],
                                event->age_us);
    }
}

void metrics_waited(struct metrics *metrics, bool stock, enum metrics_wait end,
                    uint64_t waited_ns)
{
    hf_histogram_record(stock ? metrics->stock_wait_us[end]
                              : metrics->wait_us[end],
                        waited_ns / 1000);
}

void metrics_batch(struct metrics *metrics, uint64_t records, uint64_t bytes,
                   uint64_t sync_ns)
{
    hf_histogram_record(metrics->batch_records, records);
    hf_histogram_record(metrics->batch_bytes, bytes);
    hf_histogram_record(metrics->sync_ns, sync_ns);
}

uint64_t metrics_sum(const uint64_t *counts, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += counts[i];
    return sum;
}
