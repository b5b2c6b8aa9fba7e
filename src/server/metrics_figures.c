/* metrics_figures.c - what engine, journal, log and process know themselves:
 * asked for when the registry is read. */
#include <stdio.h>
#include <unistd.h>

#include "base/memory.h"
#include "server/metrics.h"
#include "server/server.h"

struct metrics_figure {
    const struct server *server;
    double (*read)(const struct server *server);
};

static struct hold_counts held(const struct server *server)
{
    struct hold_counts counts;

    hold_count(server->engine, &counts);
    return counts;
}

static struct journal_stats kept(const struct server *server)
{
    struct journal_stats stats;

    journal_stats(server->journal, &stats);
    return stats;
}

static struct hf_log_stats logged(const struct server *server)
{
    struct hf_log_stats stats;

    hf_log_stats(server->report.log, &stats);
    return stats;
}

static struct hf_limiter_stats limited(const struct server *server)
{
    struct hf_limiter_stats stats;

    hf_limiter_stats(server->limits.limiter, &stats);
    return stats;
}

static double event_count(const struct server *server,
                          enum hold_event_kind kind)
{
    return (double)hf_counter_value(server->metrics.events[kind]);
}

/* Of the reservations that ended; 0 before the first. */
static double part_of_ended(const struct server *server,
                            enum hold_event_kind kind)
{
    double ended = event_count(server, EVENT_CONFIRMED) +
                   event_count(server, EVENT_CANCELLED) +
                   event_count(server, EVENT_RESERVATION_EXPIRED);

    return ended > 0 ? event_count(server, kind) / ended : 0;
}

#define FIGURE(name, value)                         \
    static double name(const struct server *server) \
    {                                               \
        return (double)(value);                     \
    }

FIGURE(clients, server->conn_count)
FIGURE(uptime,
       (double)(hf_clock_now_ns(server->clock) - server->started_ns) / 1e9)
FIGURE(locks, held(server).locks)
FIGURE(waiters, held(server).waiters)
FIGURE(products, held(server).products)
FIGURE(reservations, held(server).reservations)
FIGURE(pending, held(server).pending)
FIGURE(fences, held(server).fences)
FIGURE(requests, held(server).requests)
FIGURE(requests_dropped, held(server).requests_dropped)
FIGURE(requests_refused, held(server).requests_refused)
FIGURE(turn_work, server->turn_work_max)
FIGURE(turn_steps, server->turn_steps_max)
FIGURE(limit_keys, limited(server).keys)
FIGURE(limit_bytes, limited(server).bytes)
FIGURE(limit_holds, limited(server).holds)
FIGURE(limit_waiters, server->limits.waits.count)
FIGURE(limit_rules, limited(server).rules)
FIGURE(limit_shadow, limited(server).shadow_denied)
FIGURE(engine_bytes, held(server).memory_bytes)
FIGURE(stock_total, held(server).stock_total)
FIGURE(stock_reserved, held(server).stock_reserved)
FIGURE(stock_sold, held(server).stock_sold)
FIGURE(sequence, hold_seq(server->engine))
FIGURE(fence_rejections, hf_counter_value(server->metrics.errors[HOLD_STALE]))
FIGURE(success, part_of_ended(server, EVENT_CONFIRMED))
FIGURE(expiry, part_of_ended(server, EVENT_RESERVATION_EXPIRED))
FIGURE(journal_failed, server->failed)
FIGURE(journal_bytes, kept(server).byte_count)
FIGURE(journal_records, kept(server).record_count)
FIGURE(journal_slow, kept(server).pending_count)
FIGURE(journal_disk, kept(server).disk_bytes)
FIGURE(snapshots, kept(server).snapshot_count)
FIGURE(snapshot_failures, kept(server).snapshot_failures)
FIGURE(snapshot_bytes, kept(server).snapshot_bytes)
FIGURE(snapshot_last, (double)kept(server).snapshot_last_ns / 1e9)
FIGURE(disk_free, watch_free_bytes(&server->watch) == WATCH_UNKNOWN
                      ? 0
                      : watch_free_bytes(&server->watch))
FIGURE(log_lines, logged(server).written)
FIGURE(log_dropped, logged(server).dropped)
FIGURE(log_failed, logged(server).failed)

static double utilisation(const struct server *server)
{
    struct hold_counts counts = held(server);

    return counts.stock_total > 0
               ? (counts.stock_reserved + counts.stock_sold) /
                     counts.stock_total
               : 0;
}

/* The second number of the line: pages in memory. */
static double resident(const struct server *server)
{
    char line[128] = "";
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "re");

    (void)server;
    if (file != NULL) {
        if (fgets(line, sizeof line, file) == NULL ||
            sscanf(line, "%*u %lu", &pages) != 1)
            pages = 0;
        fclose(file);
    }
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static const struct {
    const char *name;
    const char *help;
    double (*read)(const struct server *server);
    bool grows;
} figures[] = {
    {"holdfast_connections", "Clients connected now.", clients, false},
    {"holdfast_uptime_seconds", "Since the start.", uptime, false},
    {"process_resident_memory_bytes", "Memory of the process.", resident,
     false},
    {"holdfast_engine_bytes", "Memory of holds and stock.", engine_bytes,
     false},
    {"holdfast_locks", "Locks held.", locks, false},
    {"holdfast_lock_waiters", "Clients in the queues of locks.", waiters,
     false},
    {"holdfast_fences", "Resources with a newest token.", fences, false},
    {"holdfast_fence_rejections_total", "Tokens refused as stale.",
     fence_rejections, true},
    {"holdfast_products", "Products.", products, false},
    {"holdfast_stock_total_units", "Units of all products.", stock_total,
     false},
    {"holdfast_stock_reserved_units", "Units set aside.", stock_reserved,
     false},
    {"holdfast_stock_sold_units", "Units sold.", stock_sold, false},
    {"holdfast_stock_utilisation_ratio", "Reserved and sold of total.",
     utilisation, false},
    {"holdfast_reservations", "Reservations, with ended ones remembered.",
     reservations, false},
    {"holdfast_reservations_pending", "Reservations not ended.", pending,
     false},
    {"holdfast_reservation_success_ratio",
     "Confirmed of those that ended since the start.", success, false},
    {"holdfast_reservation_expiry_ratio",
     "Expired of those that ended since the start.", expiry, false},
    {"holdfast_requests", "REQ ids remembered.", requests, false},
    {"holdfast_requests_dropped_total",
     "Refusals forgotten early to make room for a REQ.", requests_dropped,
     true},
    {"holdfast_requests_refused_total",
     "REQ refused: requests-max successes are remembered.", requests_refused,
     true},
    {"holdfast_turn_work_max", "Most work for one client in one turn.",
     turn_work, false},
    {"holdfast_turn_steps_max", "Most steps of listings in one turn.",
     turn_steps, false},
    {"holdfast_limit_keys", "Keys of LIMIT.", limit_keys, false},
    {"holdfast_limit_bytes", "Memory of limits.", limit_bytes, false},
    {"holdfast_limit_holds", "Holds of LIMIT that are not settled.",
     limit_holds, false},
    {"holdfast_limit_waiters", "Calls of LIMIT that wait.", limit_waiters,
     false},
    {"holdfast_limit_policies", "Policies defined.", limit_rules, false},
    {"holdfast_limit_shadow_denied_total",
     "What shadow policies would have denied.", limit_shadow, true},
    {"holdfast_sequence", "The newest number given out.", sequence, false},
    {"holdfast_journal_failed", "1: writes are refused.", journal_failed,
     false},
    {"holdfast_journal_records_total", "Records written.", journal_records,
     true},
    {"holdfast_journal_bytes_total", "Bytes written, with padding.",
     journal_bytes, true},
    {"holdfast_journal_slow_commits_total",
     "Commits that the loop did not wait for.", journal_slow, true},
    {"holdfast_journal_disk_bytes", "Files of the journal.", journal_disk,
     false},
    {"holdfast_disk_free_bytes", "Room on the journal's disk; 0: not known.",
     disk_free, false},
    {"holdfast_snapshots_total", "Snapshots made.", snapshots, true},
    {"holdfast_snapshot_failures_total", "Snapshots that failed.",
     snapshot_failures, true},
    {"holdfast_snapshot_bytes", "Size of the newest.", snapshot_bytes, false},
    {"holdfast_snapshot_last_seconds", "How long the last one took.",
     snapshot_last, false},
    {"holdfast_log_lines_total", "Lines written.", log_lines, true},
    {"holdfast_log_dropped_total", "Lines for which there was no room.",
     log_dropped, true},
    {"holdfast_log_failed_total", "Lines that could not be written.",
     log_failed, true},
};
#define FIGURES (sizeof figures / sizeof figures[0])

static double read_figure(void *context)
{
    const struct metrics_figure *figure = context;

    return figure->read(figure->server);
}

enum hf_status metrics_add_figures(struct metrics *metrics,
                                   struct server *server)
{
    enum hf_status status = HF_OK;

    metrics->figures = hf_alloc_zeroed(FIGURES * sizeof *metrics->figures);
    if (metrics->figures == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < FIGURES && !status; i++) {
        struct hf_metric metric = {.name = figures[i].name,
                                   .help = figures[i].help};
        metrics->figures[i] = (struct metrics_figure){server, figures[i].read};
        status =
            hf_meter_call(metrics->meter,
                          figures[i].grows ? HF_METER_COUNTER : HF_METER_GAUGE,
                          &metric, read_figure, &metrics->figures[i]);
    }
    return status;
}
