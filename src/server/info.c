/* info.c - what the server holds and does: INFO as lines of `name:value`,
 * METRICS for Prometheus. */
#include <unistd.h>

#include "meter/meter_text.h"
#include "resp/resp.h"
#include "server/admin.h"
#include "server/conn.h"
#include "server/server.h"
#include "server/version.h"

struct info {
    struct server *server;
    struct hf_buf text;
};

static void line(struct info *info, const char *name, uint64_t value)
{
    (void)hf_buf_format(&info->text, "%s:%llu\r\n", name,
                        (unsigned long long)value);
}

static void text_line(struct info *info, const char *name, const char *value)
{
    (void)hf_buf_format(&info->text, "%s:%s\r\n", name, value);
}

static void about_server(struct info *info)
{
    struct server *s = info->server;
    uint64_t up_ns = hf_clock_now_ns(s->clock) - s->started_ns;

    text_line(info, "holdfast_version", HOLDFAST_VERSION);
    text_line(info, "redis_mode", "standalone");
    line(info, "process_id", (uint64_t)getpid());
    line(info, "uptime_in_seconds", up_ns / 1000000000u);
    line(info, "tcp_port", s->config.port);
}

static void about_clients(struct info *info)
{
    struct server *s = info->server;
    struct hold_counts counts;

    hold_count(s->engine, &counts);
    line(info, "connected_clients", s->conn_count);
    line(info, "maxclients", s->config.clients_max);
    line(info, "blocked_clients", counts.waiters);
}

static void about_memory(struct info *info)
{
    struct hold_counts counts;

    hold_count(info->server->engine, &counts);
    line(info, "engine_bytes", counts.memory_bytes);
    line(info, "engine_max_bytes", info->server->config.memory_max_bytes);
}

static void about_persistence(struct info *info)
{
    struct server *s = info->server;
    struct journal_stats j;

    journal_stats(s->journal, &j);
    line(info, "loading", 0);
    text_line(info, "durability", config_durability_name(s->config.durability));
    text_line(info, "journal_state", s->failed ? "failed" : "ok");
    text_line(info, "journal_error", journal_error(s->journal));
    line(info, "journal_batches", j.batch_count);
    line(info, "journal_records", j.record_count);
    line(info, "journal_bytes", j.byte_count);
    line(info, "journal_slow_commits", j.pending_count);
    line(info, "journal_waiting_ms",
         s->in_flight ? (hf_clock_now_ns(s->clock) - s->slow_since_ns) / 1000000
                      : 0);
    line(info, "journal_sync_last_us", j.sync_last_ns / 1000);
    line(info, "journal_sync_max_us", j.sync_max_ns / 1000);
    line(info, "journal_disk_bytes", j.disk_bytes);
    line(info, "journal_replayed", j.replayed_count);
    line(info, "snapshots", j.snapshot_count);
    line(info, "snapshot_bytes", j.snapshot_bytes);
    line(info, "snapshot_failures", j.snapshot_failures);
    line(info, "snapshot_running", journal_snapshot_running(s->journal));
}

static void about_log(struct info *info)
{
    struct server *s = info->server;
    uint64_t free_bytes = watch_free_bytes(&s->watch);
    struct hf_log_stats stats;

    hf_log_stats(s->report.log, &stats);
    text_line(info, "log_level", config_level_name(s->config.log_level));
    line(info, "log_lines", stats.written);
    line(info, "log_dropped", stats.dropped);
    line(info, "log_failed", stats.failed);
    line(info, "log_cut", stats.cut);
    line(info, "log_rotated", stats.rotated);
    line(info, "log_waiting_bytes", stats.waiting_bytes);
    line(info, "disk_free_bytes", free_bytes == WATCH_UNKNOWN ? 0 : free_bytes);
}

static void count_line(struct info *info, const char *name,
                       const struct hf_counter *counter)
{
    line(info, name, hf_counter_value(counter));
}

static void about_stats(struct info *info)
{
    static const struct {
        const char *name;
        enum hold_event_kind kind;
    } events[] = {
        {"locks_granted", EVENT_LOCK_GRANTED},
        {"locks_reentered", EVENT_LOCK_REENTERED},
        {"locks_renewed", EVENT_LOCK_RENEWED},
        {"locks_released", EVENT_LOCK_RELEASED},
        {"locks_expired", EVENT_LOCK_EXPIRED},
        {"fences_raised", EVENT_FENCE_RAISED},
        {"fences_deleted", EVENT_FENCE_DELETED},
        {"stock_changes", EVENT_STOCK_CHANGED},
        {"stock_deletes", EVENT_STOCK_DELETED},
        {"reserved", EVENT_RESERVED},
        {"confirmed", EVENT_CONFIRMED},
        {"cancelled", EVENT_CANCELLED},
        {"extended", EVENT_EXTENDED},
        {"reservations_expired", EVENT_RESERVATION_EXPIRED},
        {"flushes", EVENT_FLUSHED},
    };
    const struct metrics *m = &info->server->metrics;
    struct hf_histogram_stats lag;
    struct hold_counts counts;

    hold_count(info->server->engine, &counts);
    hf_histogram_stats(m->lag_us, &lag);
    count_line(info, "total_connections_received", m->connections);
    count_line(info, "rejected_connections", m->connections_refused);
    line(info, "total_commands_processed", metrics_commands_total(m));
    line(info, "total_error_replies", metrics_errors_total(m));
    count_line(info, "refused_without_journal", m->refusals);
    count_line(info, "commits", m->commits);
    line(info, "expiry_lag_max_us", lag.max);
    line(info, "requests_dropped", counts.requests_dropped);
    line(info, "requests_refused", counts.requests_refused);
    count_line(info, "requests_share_refused", m->shares_refused);
    line(info, "turn_work_max", info->server->turn_work_max);
    line(info, "turn_sweeps_max", info->server->turn_sweeps_max);
    line(info, "turn_steps_max", info->server->turn_steps_max);
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        count_line(info, events[i].name, m->events[events[i].kind]);
    count_line(info, "limits_allowed", m->limits_allowed);
    count_line(info, "limits_denied", m->limits_denied);
}

/* Percentiles are of the last minute, averages since the start. */
static void about_latency(struct info *info)
{
    static const char *const waits[METRICS_ENDS] = {"granted", "timeout",
                                                    "left"};
    struct server *s = info->server;
    struct hf_window_view acquire = {0};
    struct hf_histogram_stats stats;
    char name[64];

    (void)hf_window_view(s->metrics.acquire_ns, hf_clock_now_ns(s->clock),
                         &acquire);
    line(info, "lock_acquire_count", acquire.count);
    line(info, "lock_acquire_p50_us", acquire.p50 / 1000);
    line(info, "lock_acquire_p95_us", acquire.p95 / 1000);
    line(info, "lock_acquire_p99_us", acquire.p99 / 1000);
    line(info, "lock_acquire_max_us", acquire.max / 1000);
    for (size_t i = 0; i < METRICS_ENDS; i++) {
        hf_histogram_stats(s->metrics.wait_us[i], &stats);
        snprintf(name, sizeof name, "lock_waits_%s", waits[i]);
        line(info, name, stats.count);
        snprintf(name, sizeof name, "lock_waits_%s_us", waits[i]);
        line(info, name, stats.sum);
    }
    hf_histogram_stats(s->metrics.hold_us, &stats);
    line(info, "lock_holds", stats.count);
    line(info, "lock_holds_us", stats.sum);
    hf_histogram_stats(s->metrics.confirm_us, &stats);
    line(info, "confirms", stats.count);
    line(info, "confirms_us", stats.sum);
}

static void about_holds(struct info *info)
{
    struct hold_counts counts;
    struct hf_limiter_stats limits;

    hold_count(info->server->engine, &counts);
    hf_limiter_stats(info->server->limits.limiter, &limits);
    line(info, "sequence", hold_seq(info->server->engine));
    line(info, "locks", counts.locks);
    line(info, "waiters", counts.waiters);
    line(info, "products", counts.products);
    line(info, "reservations", counts.reservations);
    line(info, "reservations_pending", counts.pending);
    line(info, "fences", counts.fences);
    line(info, "requests", counts.requests);
    line(info, "limit_keys", limits.keys);
    line(info, "limit_bytes", limits.bytes);
    line(info, "limit_policies", limits.rules);
    line(info, "limit_holds", limits.holds);
    line(info, "limit_waiters", info->server->limits.waits.count);
    line(info, "limit_shadow_denied", limits.shadow_denied);
}

void admin_info(struct server *server, struct conn *conn,
                struct resp_request *request)
{
    static const struct {
        const char *title;
        const char *name;
        void (*write)(struct info *info);
    } sections[] = {
        {"Server", "SERVER", about_server},
        {"Clients", "CLIENTS", about_clients},
        {"Memory", "MEMORY", about_memory},
        {"Persistence", "PERSISTENCE", about_persistence},
        {"Log", "LOG", about_log},
        {"Stats", "STATS", about_stats},
        {"Latency", "LATENCY", about_latency},
        {"Holds", "HOLDS", about_holds},
    };
    struct info info = {server, {0}};

    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (request->count > 1 &&
            !hf_bytes_is(request->args[1], sections[i].name) &&
            !hf_bytes_is(request->args[1], "ALL") &&
            !hf_bytes_is(request->args[1], "EVERYTHING") &&
            !hf_bytes_is(request->args[1], "DEFAULT"))
            continue;
        (void)hf_buf_format(&info.text, "%s# %s\r\n", i > 0 ? "\r\n" : "",
                            sections[i].title);
        sections[i].write(&info);
    }
    (void)resp_bulk(&conn->out, hf_buf_bytes(&info.text));
    hf_buf_release(&info.text);
}

void admin_metrics(struct server *server, struct conn *conn,
                   struct resp_request *request)
{
    struct hf_buf text = {0};

    (void)request;
    if (hf_meter_write(server->metrics.meter, HF_METER_OBJECTS, &text) !=
            HF_OK ||
        resp_bulk(&conn->out, hf_buf_bytes(&text)) != HF_OK)
        conn_close_no_memory(conn);
    hf_buf_release(&text);
}
