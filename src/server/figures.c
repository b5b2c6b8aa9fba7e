/* figures.c - the list, and how a figure is read and told. */
#include "server/figures.h"

#include <assert.h>
#include <stdio.h>
#include <unistd.h>

#include "holdfast/version.h"
#include "server/metrics.h"
#include "server/server.h"
#include "server/table.h"

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

/* ---- Where figures come from. ---- */

union gathered {
    struct hold_counts held;
    struct log_stats kept;
    struct hf_log_stats logged;
    struct hf_limiter_stats limited;
    struct feed_stats fed;
};

static void held(const struct server *server, void *out)
{
    hold_count(server->engine, out);
}

static void kept(const struct server *server, void *out)
{
    log_stats(server->log, out);
}

static void logged(const struct server *server, void *out)
{
    hf_log_stats(server->report.log, out);
}

static void limited(const struct server *server, void *out)
{
    hf_limiter_stats(server->limits.limiter, out);
}

static void fed(const struct server *server, void *out)
{
    memset(out, 0, sizeof(struct feed_stats));
    if (server->events.feed != NULL)
        feed_stats(server->events.feed, out);
}

static double event_count(const struct server *server,
                          enum hold_event_kind kind)
{
    return (double)server->metrics.events[kind];
}

/* RESERVEs granted, of all; 1 before the first. */
static double success(const struct server *server)
{
    double granted = event_count(server, EVENT_RESERVED);
    double asked = granted + (double)server->metrics.reserves_refused;

    return asked > 0 ? granted / asked : 1;
}

/* Of the reservations that ended; 0 before the first. */
static double expiry(const struct server *server)
{
    double ended = event_count(server, EVENT_CONFIRMED) +
                   event_count(server, EVENT_CANCELLED) +
                   event_count(server, EVENT_RESERVATION_EXPIRED);

    return ended > 0 ? event_count(server, EVENT_RESERVATION_EXPIRED) / ended
                     : 0;
}

static double utilisation(const struct server *server)
{
    struct hold_counts c;

    hold_count(server->engine, &c);
    double unsold = c.stock_total - c.stock_sold;
    return unsold > 0 ? c.stock_reserved / unsold : 0;
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

static double processor(const struct server *server)
{
    struct timespec used = {0};

    (void)server;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

/* As Redis counts them: clients whose request waits, for whatever. */
static double blocked(const struct server *server)
{
    struct hold_counts c;

    hold_count(server->engine, &c);
    return (double)(c.waiters + c.buyers + server->waits.counts[WAIT_LIMIT] +
                    server->waits.counts[WAIT_FEED]);
}

static double disk_free(const struct server *server)
{
    uint64_t bytes = watch_free_bytes(&server->watch);

    return bytes == WATCH_UNKNOWN ? 0 : (double)bytes;
}

#define READ(name, value)                           \
    static double name(const struct server *server) \
    {                                               \
        return (double)(value);                     \
    }

READ(recent_success, server->health.success)
READ(recent_expiry, server->health.expiry)
READ(uptime,
     (double)(hf_clock_now_ns(server->clock) - server->started_ns) / 1e9)
READ(pushed, hf_index_count(&server->pushes.grants))
READ(waiting_ms, commit_waiting_ns(server) / HF_NS_PER_MS)
READ(snapshot_running, log_snapshot_running(server->log))
READ(commands_sum, metrics_sum(server->metrics.commands, METRICS_COMMANDS_MAX))
READ(errors_sum, metrics_sum(server->metrics.errors, HOLD_ALL_CODES))
READ(sequence, hold_seq(server->engine))
READ(channels, hf_index_count(&server->subscriptions.channels))
READ(patterns, hf_index_count(&server->subscriptions.patterns))
READ(alarms, alarms_firing(server))
READ(process_id, ((void)server, getpid()))
READ(loading, ((void)server, 0))

#define WORDS(name, value)                               \
    static const char *name(const struct server *server) \
    {                                                    \
        return value;                                    \
    }

WORDS(version, ((void)server, HOLDFAST_VERSION))
WORDS(mode, ((void)server, "standalone"))
WORDS(durability, config_durabilities[server->config.durability])
WORDS(journal_text, log_error(server->log))
WORDS(level, config_levels[server->config.log_level])

/* ---- Labels. ---- */

static const char *event_name(size_t index)
{
    return hold_event_name((enum hold_event_kind)index);
}

/* Two codes have one name and are counted as one, see metrics_refused(). */
static const char *error_name(size_t index)
{
    if (index == HOLD_OK || index == HOLD_WAITING || index == HOLD_AGAIN ||
        index == HOLD_MOVED)
        return NULL;
    return hold_code_name((enum hold_code)index);
}

static const char *command_name(size_t index)
{
    if (index < table_count())
        return table_at(index)->name;
    return index == table_count() ? "unknown" : NULL;
}

static const char *wait_name(size_t index)
{
    static const char *const names[METRICS_ENDS] = {"granted", "timeout",
                                                    "left"};

    return names[index];
}

static const char *decision_name(size_t index)
{
    return index == METRICS_ALLOWED ? "allowed" : "denied";
}

/* ---- The list. ---- */

#define IN(type, member) \
    .at = offsetof(type, member), .size = sizeof((type *)0)->member
#define OWN(member)     IN(struct server, member)
#define HELD(member)    .gather = held, IN(struct hold_counts, member)
#define KEPT(member)    .gather = kept, IN(struct log_stats, member)
#define LOGGED(member)  .gather = logged, IN(struct hf_log_stats, member)
#define LIMITED(member) .gather = limited, IN(struct hf_limiter_stats, member)
#define FED(member)     .gather = fed, IN(struct feed_stats, member)

#define COUNTER .kind = FIGURE_COUNTER
#define TEXT(f) .kind = FIGURE_TEXT, .text = f
/* One series for each index of an array of the server. */
#define EACH(member, label_name, function)                         \
    OWN(member[0]), .label = label_name, .value = function,        \
                    .series = sizeof((struct server *)0)->member / \
                              sizeof((struct server *)0)->member[0]
#define HISTOGRAM(unit, list)                                \
    .kind = FIGURE_HISTOGRAM, .scale = unit, .bounds = list, \
    .bound_count = sizeof list / sizeof list[0]
#define NS 1e-9
#define US 1e-6

static const struct figure figures[] = {
    {SECTION_SERVER, "holdfast_version", NULL, TEXT(version)},
    {SECTION_SERVER, "redis_mode", NULL, TEXT(mode)},
    {SECTION_SERVER, "process_id", NULL, .read = process_id},
    {SECTION_SERVER, "holdfast_uptime_seconds", "Since the start.",
     .redis = "uptime_in_seconds", .read = uptime},
    {SECTION_SERVER, "tcp_port", NULL, OWN(config.port)},
    {SECTION_CLIENTS, "holdfast_connections", "Clients connected now.",
     .redis = "connected_clients", OWN(conn_count)},
    {SECTION_CLIENTS, "maxclients", NULL, OWN(config.clients_max)},
    {SECTION_CLIENTS, "blocked_clients", NULL, .read = blocked},
    {SECTION_CLIENTS, "pushed_grants", NULL, .read = pushed},
    {SECTION_MEMORY, "holdfast_engine_bytes", "Memory of holds and stock.",
     HELD(memory_bytes)},
    {SECTION_MEMORY, "engine_max_bytes", NULL, OWN(config.memory_max_bytes)},
    {SECTION_NONE, "process_resident_memory_bytes", "Memory of the process.",
     .read = resident},
    {SECTION_NONE, "process_cpu_seconds_total",
     "Processor time of the process.", COUNTER, .read = processor},
    {SECTION_PERSISTENCE, "loading", NULL, .read = loading},
    {SECTION_PERSISTENCE, "durability", NULL, TEXT(durability)},
    {SECTION_PERSISTENCE, "holdfast_journal_failed", "1: writes are refused.",
     OWN(failed)},
    {SECTION_PERSISTENCE, "journal_error", NULL, TEXT(journal_text)},
    {SECTION_PERSISTENCE, "journal_batches", NULL, KEPT(batch_count)},
    {SECTION_PERSISTENCE, "holdfast_journal_records_total", "Records written.",
     COUNTER, KEPT(record_count)},
    {SECTION_PERSISTENCE, "holdfast_journal_bytes_total",
     "Bytes written, with padding.", COUNTER, KEPT(byte_count)},
    {SECTION_PERSISTENCE, "holdfast_journal_slow_commits_total",
     "Commits that the loop did not wait for.", COUNTER, KEPT(pending_count)},
    {SECTION_PERSISTENCE, "journal_waiting_ms", NULL, .read = waiting_ms},
    {SECTION_PERSISTENCE, "journal_sync_last_us", NULL, KEPT(sync_last_ns),
     .scale = 1e-3},
    {SECTION_PERSISTENCE, "journal_sync_max_us", NULL, KEPT(sync_max_ns),
     .scale = 1e-3},
    {SECTION_NONE, "holdfast_journal_sync_seconds",
     "Writing a batch; with durability always until it is on disk.",
     HISTOGRAM(NS, sync_bounds_ns), OWN(metrics.sync_ns)},
    {SECTION_NONE, "holdfast_journal_batch_records",
     "Records in a batch of the journal.", HISTOGRAM(1, record_bounds),
     OWN(metrics.batch_records)},
    {SECTION_NONE, "holdfast_journal_batch_bytes",
     "Bytes of records in a batch.", HISTOGRAM(1, byte_bounds),
     OWN(metrics.batch_bytes)},
    {SECTION_PERSISTENCE, "holdfast_journal_disk_bytes",
     "Files of the journal.", KEPT(disk_bytes)},
    {SECTION_PERSISTENCE, "journal_replayed", NULL, KEPT(replayed_count)},
    {SECTION_PERSISTENCE, "holdfast_snapshots_total", "Snapshots made.",
     COUNTER, KEPT(snapshot_count)},
    {SECTION_PERSISTENCE, "holdfast_snapshot_bytes", "Size of the newest.",
     KEPT(snapshot_bytes)},
    {SECTION_PERSISTENCE, "holdfast_snapshot_failures_total",
     "Snapshots that failed.", COUNTER, KEPT(snapshot_failures)},
    {SECTION_NONE, "holdfast_snapshot_last_seconds",
     "How long the last one took.", KEPT(snapshot_last_ns), .scale = NS},
    {SECTION_PERSISTENCE, "snapshot_running", NULL, .read = snapshot_running},
    {SECTION_PERSISTENCE, "holdfast_audits_total",
     "Audits of products that found nothing.", COUNTER, OWN(audits.count)},
    {SECTION_PERSISTENCE, "holdfast_audit_failures_total",
     "Audits that found something, or could not read the journal.", COUNTER,
     OWN(audits.failures)},
    {SECTION_LOG, "log_level", NULL, TEXT(level)},
    {SECTION_LOG, "holdfast_log_lines_total", "Lines written.", COUNTER,
     LOGGED(written)},
    {SECTION_LOG, "holdfast_log_dropped_total",
     "Lines for which there was no room.", COUNTER, LOGGED(dropped)},
    {SECTION_LOG, "holdfast_log_failed_total",
     "Lines that could not be written.", COUNTER, LOGGED(failed)},
    {SECTION_LOG, "log_cut", NULL, LOGGED(cut)},
    {SECTION_LOG, "log_rotated", NULL, LOGGED(rotated)},
    {SECTION_LOG, "log_waiting_bytes", NULL, LOGGED(waiting_bytes)},
    {SECTION_LOG, "holdfast_disk_free_bytes",
     "Room on the journal's disk; 0: not known.", .read = disk_free},
    {SECTION_STATS, "holdfast_connections_total", "Connections accepted.",
     .redis = "total_connections_received", COUNTER, OWN(metrics.connections)},
    {SECTION_STATS, "holdfast_connections_refused_total",
     "Connections turned away: maxclients.", .redis = "rejected_connections",
     COUNTER, OWN(metrics.connections_refused)},
    {SECTION_STATS, "holdfast_received_bytes_total", "Bytes from clients.",
     .redis = "total_net_input_bytes", COUNTER, OWN(metrics.bytes_in)},
    {SECTION_STATS, "holdfast_sent_bytes_total", "Bytes to clients.",
     .redis = "total_net_output_bytes", COUNTER, OWN(metrics.bytes_out)},
    {SECTION_STATS, "holdfast_alarms", "Alarms that hold now.", .read = alarms},
    {SECTION_STATS, "total_commands_processed", NULL, .read = commands_sum},
    {SECTION_STATS, "total_error_replies", NULL, .read = errors_sum},
    {SECTION_NONE, "holdfast_commands_total",
     "Requests by command; unknown: of none, or not well formed.", COUNTER,
     EACH(metrics.commands, "command", command_name)},
    {SECTION_NONE, "holdfast_command_seconds",
     "From a request's arrival to its answer.",
     HISTOGRAM(NS, command_bounds_ns),
     EACH(metrics.took_ns, "command", command_name)},
    {SECTION_NONE, "holdfast_errors_total", "Error replies by their code.",
     COUNTER, EACH(metrics.errors, "code", error_name)},
    {SECTION_STATS, "holdfast_refused_without_journal_total",
     "Writes refused, or answered again, from memory.", COUNTER,
     OWN(metrics.refusals)},
    {SECTION_STATS, "holdfast_commits_total", "Commits handed to the journal.",
     COUNTER, OWN(metrics.commits)},
    {SECTION_STATS, "holdfast_cleanup_lag_seconds",
     "How late what expired was cleaned up.", HISTOGRAM(US, wait_bounds_us),
     OWN(metrics.lag_us)},
    {SECTION_STATS, "holdfast_requests_dropped_total",
     "Refusals forgotten early to make room for a REQ.", COUNTER,
     HELD(requests_dropped)},
    {SECTION_STATS, "holdfast_requests_refused_total",
     "REQ refused: requests-max successes are remembered.", COUNTER,
     HELD(requests_refused)},
    {SECTION_STATS, "holdfast_requests_share_refused_total",
     "REQ refused: the client has filled its share.", COUNTER,
     OWN(metrics.shares_refused)},
    {SECTION_STATS, "holdfast_turn_work_max",
     "Most work for one client in one turn.", OWN(turn_work_max)},
    {SECTION_STATS, "holdfast_turn_all_max",
     "Most work for all clients in one turn.", OWN(turn_all_max)},
    {SECTION_STATS, "turn_sweeps_max", NULL, OWN(turn_sweeps_max)},
    {SECTION_STATS, "turn_applied_max", NULL, OWN(turn_applied_max)},
    {SECTION_STATS, "holdfast_turn_steps_max",
     "Most steps of listings in one turn.", OWN(turn_steps_max)},
    {SECTION_STATS, "holdfast_events_total",
     "What happened to locks, stock and reservations.", COUNTER,
     EACH(metrics.events, "event", event_name)},
    {SECTION_STATS, "holdfast_limit_decisions_total", "Decisions of LIMIT.",
     COUNTER, EACH(metrics.decisions, "decision", decision_name)},
    {SECTION_LATENCY, "holdfast_lock_acquire_seconds",
     "From a LOCK's arrival to its grant, over the last minute.",
     .kind = FIGURE_WINDOW, .scale = NS, OWN(metrics.acquire_ns)},
    {SECTION_LATENCY, "holdfast_lock_wait_seconds",
     "Waits in the queue of a lock, by how they ended.",
     HISTOGRAM(US, wait_bounds_us), EACH(metrics.wait_us, "result", wait_name)},
    {SECTION_LATENCY, "holdfast_stock_wait_seconds",
     "Waits for stock, by how they ended; of WAITLIST JOIN those granted.",
     HISTOGRAM(US, wait_bounds_us),
     EACH(metrics.stock_wait_us, "result", wait_name)},
    {SECTION_LATENCY, "holdfast_lock_hold_seconds", "How long locks were held.",
     HISTOGRAM(US, life_bounds_us), OWN(metrics.hold_us)},
    {SECTION_LATENCY, "holdfast_reservation_confirm_seconds",
     "From reserve to confirm.", HISTOGRAM(US, life_bounds_us),
     OWN(metrics.confirm_us)},
    {SECTION_EVENTS, "holdfast_feed_first",
     "Events above this number are kept.", FED(first)},
    {SECTION_EVENTS, "holdfast_feed_last", "All events up to this are known.",
     FED(last)},
    {SECTION_EVENTS, "holdfast_feed_bytes", "Files of the feed.", FED(bytes)},
    {SECTION_EVENTS, "holdfast_feed_files", "How many they are.", FED(files)},
    {SECTION_EVENTS, "holdfast_feed_lost_total",
     "Events that the feed has not: its disk failed or was too slow.", COUNTER,
     FED(lost)},
    {SECTION_EVENTS, "holdfast_feed_failures_total",
     "Disk calls of the feed that failed.", COUNTER, FED(failures)},
    {SECTION_EVENTS, "holdfast_feed_waiters", "Calls of EVENTS that wait.",
     OWN(waits.counts[WAIT_FEED])},
    {SECTION_EVENTS, "holdfast_subscriptions",
     "Subscriptions of all clients, to channels and patterns.",
     OWN(subscriptions.count)},
    {SECTION_EVENTS, "holdfast_subscribed_channels",
     "Channels with subscribers.", .redis = "pubsub_channels",
     .read = channels},
    {SECTION_EVENTS, "holdfast_subscribed_patterns",
     "Patterns with subscribers.", .redis = "pubsub_patterns",
     .read = patterns},
    {SECTION_EVENTS, "holdfast_published_total",
     "Texts published on a channel, events among them.", COUNTER,
     OWN(subscriptions.published)},
    {SECTION_EVENTS, "holdfast_delivered_total", "Messages to subscribers.",
     COUNTER, OWN(subscriptions.delivered)},
    {SECTION_EVENTS, "holdfast_subscribers_cut_total",
     "Subscribers cut: too slow, or a pattern that takes too long.", COUNTER,
     OWN(subscriptions.cut)},
    {SECTION_EVENTS, "holdfast_pattern_steps_max",
     "Most steps that patterns took for one message.",
     OWN(subscriptions.steps_max)},
    {SECTION_HOLDS, "holdfast_sequence", "The newest number given out.",
     .read = sequence},
    {SECTION_HOLDS, "holdfast_locks", "Locks held.", HELD(locks)},
    {SECTION_HOLDS, "holdfast_lock_waiters", "Clients in the queues of locks.",
     HELD(waiters)},
    {SECTION_HOLDS, "holdfast_lock_sets", "Sets of locks held.", HELD(sets)},
    {SECTION_HOLDS, "holdfast_lock_trees",
     "Names held, waited for or closed with TREE.", HELD(trees)},
    {SECTION_HOLDS, "holdfast_lock_double_grants_total",
     "Grants beside one that excludes them: a fault of the server.", COUNTER,
     HELD(double_grants)},
    {SECTION_HOLDS, "holdfast_sessions", "Sessions open.", HELD(sessions)},
    {SECTION_HOLDS, "holdfast_products", "Products.", HELD(products)},
    {SECTION_NONE, "holdfast_stock_total_units", "Units of all products.",
     HELD(stock_total), .real = true},
    {SECTION_NONE, "holdfast_stock_reserved_units", "Units set aside.",
     HELD(stock_reserved), .real = true},
    {SECTION_NONE, "holdfast_stock_sold_units", "Units sold.", HELD(stock_sold),
     .real = true},
    {SECTION_NONE, "holdfast_stock_utilisation_ratio",
     "Reserved of what is not sold: reserved / (available + reserved).",
     .read = utilisation},
    {SECTION_HOLDS, "holdfast_reservations",
     "Reservations, with ended ones remembered.", HELD(reservations)},
    {SECTION_HOLDS, "holdfast_reservations_pending", "Reservations not ended.",
     HELD(pending)},
    {SECTION_HOLDS, "holdfast_stock_waiters",
     "Requests in the queues of products.", HELD(buyers)},
    {SECTION_NONE, "holdfast_reservation_success_ratio",
     "RESERVEs granted of those asked since the start.", .read = success},
    {SECTION_NONE, "holdfast_reserves_refused_total", "RESERVEs refused.",
     COUNTER, OWN(metrics.reserves_refused)},
    {SECTION_NONE, "holdfast_reservation_expiry_ratio",
     "Expired of those that ended since the start.", .read = expiry},
    {SECTION_HOLDS, "holdfast_fences", "Resources with a newest token.",
     HELD(fences)},
    {SECTION_HOLDS, "holdfast_requests", "REQ ids remembered.", HELD(requests)},
    {SECTION_HOLDS, "holdfast_limit_keys", "Keys of LIMIT.", LIMITED(keys)},
    {SECTION_HOLDS, "holdfast_limit_bytes", "Memory of limits.",
     LIMITED(bytes)},
    {SECTION_HOLDS, "holdfast_limit_policies", "Policies defined.",
     LIMITED(rules)},
    {SECTION_HOLDS, "holdfast_limit_holds",
     "Holds of LIMIT that are not settled.", LIMITED(holds)},
    {SECTION_HOLDS, "holdfast_limit_waiters", "Calls of LIMIT that wait.",
     OWN(waits.counts[WAIT_LIMIT])},
    {SECTION_HOLDS, "holdfast_limit_shadow_denied_total",
     "What shadow policies would have denied.", COUNTER,
     LIMITED(shadow_denied)},
    {SECTION_ALERTS, "holdfast_alert", "1: the rule holds now.",
     EACH(alarms, "rule", alarms_rule)},
    {SECTION_ALERTS, "holdfast_reservation_recent_success_ratio",
     "RESERVEs granted of those asked in the last five minutes.",
     .read = recent_success},
    {SECTION_ALERTS, "holdfast_reservation_recent_expiry_ratio",
     "Reservations expired of those that ended in the last five minutes.",
     .read = recent_expiry},
    {SECTION_ALERTS, "holdfast_cleanup_behind_seconds",
     "How long the oldest thing that is over waits to be cleaned up.",
     .read = health_behind},
    {SECTION_ALERTS, "holdfast_reservation_overdue_seconds",
     "How long the oldest pending reservation is beyond its time.",
     .read = health_overdue},
};
#define FIGURES (sizeof figures / sizeof figures[0])

size_t figure_count(void)
{
    return FIGURES;
}

const struct figure *figure_at(size_t index)
{
    assert(index < FIGURES);
    return &figures[index];
}

double figure_read(const struct figure *figure, const struct server *server,
                   size_t index)
{
    union gathered gathered;
    const char *at = (const char *)server;
    double scale = figure->scale > 0 ? figure->scale : 1;

    if (figure->read != NULL)
        return figure->read(server);
    if (figure->gather != NULL) {
        figure->gather(server, &gathered);
        at = (const char *)&gathered;
    }
    at += figure->at + index * figure->size;
    if (figure->real)
        return *(const double *)at;
    switch (figure->size) {
    case sizeof(bool):
        return *(const bool *)at;
    case sizeof(uint16_t):
        return *(const uint16_t *)at;
    case sizeof(uint32_t):
        return *(const uint32_t *)at;
    default:
        assert(figure->size == sizeof(uint64_t));
        return (double)*(const uint64_t *)at * scale;
    }
}
