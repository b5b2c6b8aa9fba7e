/* metrics.c - the registry's series, and what is put into them. */
#include "server/metrics.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "server/server.h"
#include "server/table.h"

#define KINDS (HOLD_RESERVATION + 1)

static const uint64_t command_bounds_ns[] = {
    10000, 100000, 1000000, 10000000, 100000000, 1000000000, 10000000000};
static const uint64_t wait_bounds_us[] = {100,     1000,     10000,   100000,
                                          1000000, 10000000, 60000000};
static const uint64_t life_bounds_us[] = {1000,      10000,      100000,
                                          1000000,   10000000,   60000000,
                                          600000000, 3600000000, 86400000000};
static const uint64_t sync_bounds_ns[] = {10000,    100000,    250000,
                                          500000,   1000000,   2500000,
                                          10000000, 100000000, 1000000000};
static const uint64_t record_bounds[] = {1,   2,   5,   10,   20,  50,
                                         100, 200, 500, 1000, 5000};
static const uint64_t byte_bounds[] = {4096,  8192,   16384,   32768,
                                       65536, 262144, 1048576, 4194304};

#define NS           1e-9
#define US           1e-6
#define BOUNDS(list) .bounds = list, .bound_count = sizeof list / sizeof list[0]

static const char *const event_names[HOLD_EVENT_COUNT] = {
    [EVENT_LOCK_GRANTED] = "lock_granted",
    [EVENT_LOCK_REENTERED] = "lock_reentered",
    [EVENT_LOCK_RENEWED] = "lock_renewed",
    [EVENT_LOCK_RELEASED] = "lock_released",
    [EVENT_LOCK_EXPIRED] = "lock_expired",
    [EVENT_FENCE_RAISED] = "fence_raised",
    [EVENT_FENCE_DELETED] = "fence_deleted",
    [EVENT_STOCK_CHANGED] = "stock_changed",
    [EVENT_STOCK_DELETED] = "stock_deleted",
    [EVENT_RESERVED] = "reserved",
    [EVENT_CONFIRMED] = "confirmed",
    [EVENT_CANCELLED] = "cancelled",
    [EVENT_EXTENDED] = "extended",
    [EVENT_RESERVATION_EXPIRED] = "reservation_expired",
    [EVENT_FLUSHED] = "flushed",
};

static const char *code_name(size_t code)
{
    static const char *const own[] = {"ERR", "NOPERM", "NOPROTO", "JOURNAL"};

    return code < HOLD_CODE_COUNT ? hold_code_name((enum hold_code)code)
                                  : own[code - HOLD_CODE_COUNT];
}

/* The first failure is kept, so that the list below needs no checks. */
struct opening {
    struct metrics *metrics;
    enum hf_status status;
};

static void keep(struct opening *opening, enum hf_status status)
{
    if (opening->status == HF_OK)
        opening->status = status;
}

static struct hf_counter *counter(struct opening *opening, const char *name,
                                  const char *help, const char *label,
                                  const char *value)
{
    struct hf_label labels = {label, value};
    struct hf_metric metric = {.name = name,
                               .help = help,
                               .labels = &labels,
                               .label_count = label != NULL};
    struct hf_counter *made = NULL;

    keep(opening, hf_meter_counter(opening->metrics->meter, &metric, &made));
    return made;
}

static struct hf_histogram *histogram(struct opening *opening,
                                      struct hf_metric metric,
                                      const char *label, const char *value)
{
    struct hf_label labels = {label, value};
    struct hf_histogram *made = NULL;

    metric.labels = &labels;
    metric.label_count = label != NULL;
    keep(opening, hf_meter_histogram(opening->metrics->meter, &metric, &made));
    return made;
}

static void add_counters(struct opening *o)
{
    struct metrics *m = o->metrics;

    m->connections = counter(o, "holdfast_connections_total",
                             "Connections accepted.", NULL, NULL);
    m->connections_refused =
        counter(o, "holdfast_connections_refused_total",
                "Connections turned away: maxclients.", NULL, NULL);
    for (size_t i = 0; i < CODE_COUNT; i++)
        if (i != HOLD_OK && i != HOLD_WAITING && i != HOLD_AGAIN)
            m->errors[i] =
                counter(o, "holdfast_errors_total",
                        "Error replies by their code.", "code", code_name(i));
    m->shares_refused =
        counter(o, "holdfast_requests_share_refused_total",
                "REQ refused: the client has filled its share.", NULL, NULL);
    m->refusals =
        counter(o, "holdfast_refused_without_journal_total",
                "Writes refused, or answered again, from memory.", NULL, NULL);
    m->commits = counter(o, "holdfast_commits_total",
                         "Commits handed to the journal.", NULL, NULL);
    for (size_t i = 0; i < HOLD_EVENT_COUNT; i++)
        m->events[i] =
            counter(o, "holdfast_events_total",
                    "What happened to locks, stock and reservations.", "event",
                    event_names[i]);
    m->limits_allowed = counter(o, "holdfast_limit_decisions_total",
                                "Decisions of LIMIT.", "decision", "allowed");
    m->limits_denied =
        counter(o, "holdfast_limit_decisions_total", "", "decision", "denied");
}

static void add_command(struct opening *o, size_t index)
{
    struct metrics_command *command = &o->metrics->commands[index];
    bool known = index < table_count();
    const char *name = known ? table_at(index)->name : "unknown";

    if (known && table_at(index)->kind != 0) {
        assert((size_t)table_at(index)->kind < KINDS);
        o->metrics->by_kind[table_at(index)->kind] = (uint16_t)index;
    }
    command->count =
        counter(o, "holdfast_commands_total",
                "Requests by command; unknown: of none, or not well formed.",
                "command", name);
    command->took_ns = histogram(
        o,
        (struct hf_metric){.name = "holdfast_command_seconds",
                           .help = "From a request's arrival to its answer.",
                           .scale = NS,
                           BOUNDS(command_bounds_ns)},
        "command", name);
}

static void add_commands(struct opening *o)
{
    struct metrics *m = o->metrics;
    size_t count = table_count() + 1;

    m->command_count = count;
    m->commands = hf_alloc_zeroed(count * sizeof *m->commands);
    m->by_kind = hf_alloc_zeroed(KINDS * sizeof *m->by_kind);
    if (m->commands == NULL || m->by_kind == NULL) {
        keep(o, HF_NOMEM);
        return;
    }
    /* What is of no command in the table (a tick) is counted as unknown. */
    for (size_t i = 0; i < KINDS; i++)
        m->by_kind[i] = (uint16_t)(count - 1);
    for (size_t i = 0; i < count; i++)
        add_command(o, i);
}

static void add_times(struct opening *o)
{
    static const char *const ends[METRICS_ENDS] = {"granted", "timeout",
                                                   "left"};
    struct metrics *m = o->metrics;
    struct hf_metric acquire = {
        .name = "holdfast_lock_acquire_seconds",
        .help = "From a LOCK's arrival to its grant, over the last minute.",
        .scale = NS};

    keep(o, hf_meter_window(m->meter, &acquire, NULL, &m->acquire_ns));
    for (size_t i = 0; i < METRICS_ENDS; i++)
        m->wait_us[i] = histogram(
            o,
            (struct hf_metric){.name = "holdfast_lock_wait_seconds",
                               .help = "Waits in the queue of a lock, by how "
                                       "they ended.",
                               .scale = US,
                               BOUNDS(wait_bounds_us)},
            "result", ends[i]);
    m->hold_us =
        histogram(o,
                  (struct hf_metric){.name = "holdfast_lock_hold_seconds",
                                     .help = "How long locks were held.",
                                     .scale = US,
                                     BOUNDS(life_bounds_us)},
                  NULL, NULL);
    m->confirm_us = histogram(
        o,
        (struct hf_metric){.name = "holdfast_reservation_confirm_seconds",
                           .help = "From reserve to confirm.",
                           .scale = US,
                           BOUNDS(life_bounds_us)},
        NULL, NULL);
    m->lag_us = histogram(
        o,
        (struct hf_metric){.name = "holdfast_cleanup_lag_seconds",
                           .help = "How late what expired was cleaned up.",
                           .scale = US,
                           BOUNDS(wait_bounds_us)},
        NULL, NULL);
}

static void add_journal(struct opening *o)
{
    struct metrics *m = o->metrics;

    m->batch_records = histogram(
        o,
        (struct hf_metric){.name = "holdfast_journal_batch_records",
                           .help = "Records in a batch of the journal.",
                           BOUNDS(record_bounds)},
        NULL, NULL);
    m->batch_bytes =
        histogram(o,
                  (struct hf_metric){.name = "holdfast_journal_batch_bytes",
                                     .help = "Bytes of records in a batch.",
                                     BOUNDS(byte_bounds)},
                  NULL, NULL);
    m->sync_ns = histogram(
        o,
        (struct hf_metric){.name = "holdfast_journal_sync_seconds",
                           .help = "Writing a batch; with durability always "
                                   "until it is on disk.",
                           .scale = NS,
                           BOUNDS(sync_bounds_ns)},
        NULL, NULL);
}

enum hf_status metrics_open(struct metrics *metrics, struct server *server)
{
    struct opening opening = {.metrics = metrics};

    *metrics = (struct metrics){0};
    keep(&opening, hf_meter_open(&metrics->meter, &(struct hf_meter_opts){
                                                      .name = "server",
                                                      .clock = server->clock}));
    if (opening.status)
        return opening.status;
    add_counters(&opening);
    add_commands(&opening);
    add_times(&opening);
    add_journal(&opening);
    keep(&opening, metrics_add_figures(metrics, server));
    return opening.status;
}

void metrics_close(struct metrics *metrics)
{
    hf_meter_close(metrics->meter);
    hf_free(metrics->commands);
    hf_free(metrics->by_kind);
    hf_free(metrics->figures);
    *metrics = (struct metrics){0};
}

void metrics_command(struct metrics *metrics, size_t index)
{
    assert(index < metrics->command_count);
    hf_counter_add(metrics->commands[index].count, 1);
}

void metrics_took(struct metrics *metrics, size_t index, uint64_t took_ns)
{
    assert(index < metrics->command_count);
    hf_histogram_record(metrics->commands[index].took_ns, took_ns);
}

void metrics_answered(struct metrics *metrics, enum hold_kind kind,
                      uint64_t took_ns)
{
    assert((size_t)kind < KINDS);
    metrics_took(metrics, metrics->by_kind[kind], took_ns);
}

void metrics_refused(struct metrics *metrics, enum hold_code code)
{
    hf_counter_add(metrics->errors[code], 1);
}

void metrics_failed(struct metrics *metrics, const char *text)
{
    size_t len = strcspn(text, " ");

    for (size_t i = 0; i < CODE_COUNT; i++)
        if (metrics->errors[i] != NULL && strlen(code_name(i)) == len &&
            !memcmp(code_name(i), text, len)) {
            hf_counter_add(metrics->errors[i], 1);
            return;
        }
    hf_counter_add(metrics->errors[CODE_ERR], 1);
}

void metrics_events(struct metrics *metrics, const struct hold_out *out)
{
    for (size_t i = 0; i < out->event_count; i++) {
        const struct hold_event *event = &out->events[i];
        hf_counter_add(metrics->events[event->kind], 1);
        if (event->kind == EVENT_LOCK_EXPIRED ||
            event->kind == EVENT_RESERVATION_EXPIRED)
            hf_histogram_record(metrics->lag_us, event->lag_us);
        if (event->age_us == HOLD_NO_AGE)
            continue;
        if (event->kind == EVENT_LOCK_RELEASED ||
            event->kind == EVENT_LOCK_EXPIRED)
            hf_histogram_record(metrics->hold_us, event->age_us);
        else if (event->kind == EVENT_CONFIRMED)
            hf_histogram_record(metrics->confirm_us, event->age_us);
    }
}

void metrics_waited(struct metrics *metrics, enum metrics_wait end,
                    uint64_t waited_ns)
{
    hf_histogram_record(metrics->wait_us[end], waited_ns / 1000);
}

void metrics_batch(struct metrics *metrics, uint64_t records, uint64_t bytes,
                   uint64_t sync_ns)
{
    hf_histogram_record(metrics->batch_records, records);
    hf_histogram_record(metrics->batch_bytes, bytes);
    hf_histogram_record(metrics->sync_ns, sync_ns);
}

uint64_t metrics_commands_total(const struct metrics *metrics)
{
    uint64_t total = 0;

    for (size_t i = 0; i <= table_count(); i++)
        total += hf_counter_value(metrics->commands[i].count);
    return total;
}

/* Two codes of the engine have one name and so one series. */
uint64_t metrics_errors_total(const struct metrics *metrics)
{
    uint64_t total = 0;

    for (size_t i = 0; i < CODE_COUNT; i++)
        if (i != HOLD_MOVED)
            total += hf_counter_value(metrics->errors[i]);
    assert(metrics->errors[HOLD_MOVED] == metrics->errors[HOLD_CONFLICT]);
    return total;
}
