/* alarms.c - rules over the server's figures, a row each. */
#include "server/alarms.h"

#include <string.h>

#include "server/server.h"

/* Expiries a second, for ten seconds: clients die, or their TTL is too short.
 */
#define EXPIRIES_PER_S 10

struct alarm {
    const char *rule; /* in figures */
    const char *name; /* in the log */
    const char *metric;
    struct hf_label label; /* no name: none */
    enum hf_alert_figure figure;
    uint64_t window_ns;
    enum hf_alert_compare compare;
    double bound;
};

static const struct alarm rules[] = {
    {"lock_acquire_slow",
     "acquiring a lock takes more than 100 ms (p99)",
     "holdfast_lock_acquire_seconds",
     {NULL, NULL},
     HF_ALERT_PERCENTILE,
     60 * HF_NS_PER_S,
     HF_ALERT_ABOVE,
     0.1},
    {"locks_expire",
     "many locks expire",
     "holdfast_events_total",
     {"event", "lock_expired"},
     HF_ALERT_RATE,
     10 * HF_NS_PER_S,
     HF_ALERT_ABOVE,
     EXPIRIES_PER_S},
    {"sessions_expire",
     "many sessions expire",
     "holdfast_events_total",
     {"event", "session_expired"},
     HF_ALERT_RATE,
     10 * HF_NS_PER_S,
     HF_ALERT_ABOVE,
     EXPIRIES_PER_S},
    {"fence_rejected",
     "a fence has rejected a late write",
     "holdfast_errors_total",
     {"code", "STALE"},
     HF_ALERT_RATE,
     60 * HF_NS_PER_S,
     HF_ALERT_ABOVE,
     0},
    {"requests_refused",
     "a REQ is refused because the table is full of successes",
     "holdfast_requests_refused_total",
     {NULL, NULL},
     HF_ALERT_RATE,
     60 * HF_NS_PER_S,
     HF_ALERT_ABOVE,
     0},
    {"audit_failed",
     "an audit of a product found something, or could not read the journal",
     "holdfast_audit_failures_total",
     {NULL, NULL},
     HF_ALERT_RATE,
     60 * HF_NS_PER_S,
     HF_ALERT_ABOVE,
     0},
    {"feed_lost",
     "events are lost to the feed",
     "holdfast_feed_lost_total",
     {NULL, NULL},
     HF_ALERT_RATE,
     60 * HF_NS_PER_S,
     HF_ALERT_ABOVE,
     0},
    {"feed_failed",
     "the disk of the feed fails",
     "holdfast_feed_failures_total",
     {NULL, NULL},
     HF_ALERT_RATE,
     60 * HF_NS_PER_S,
     HF_ALERT_ABOVE,
     0},
    {"lock_granted_twice",
     "a lock was granted twice",
     "holdfast_lock_double_grants_total",
     {NULL, NULL},
     HF_ALERT_VALUE,
     0,
     HF_ALERT_ABOVE,
     0},
    {"reservation_success",
     "less than 95 % of RESERVEs are granted",
     "holdfast_reservation_recent_success_ratio",
     {NULL, NULL},
     HF_ALERT_VALUE,
     0,
     HF_ALERT_BELOW,
     0.95},
    {"reservation_expiry",
     "more than 30 % of reservations expire",
     "holdfast_reservation_recent_expiry_ratio",
     {NULL, NULL},
     HF_ALERT_VALUE,
     0,
     HF_ALERT_ABOVE,
     0.3},
    {"cleanup_behind",
     "what is over is cleaned up more than 5 minutes late",
     "holdfast_cleanup_behind_seconds",
     {NULL, NULL},
     HF_ALERT_VALUE,
     0,
     HF_ALERT_ABOVE,
     300},
    {"reservation_overdue",
     "a reservation is pending 15 minutes after its time",
     "holdfast_reservation_overdue_seconds",
     {NULL, NULL},
     HF_ALERT_VALUE,
     0,
     HF_ALERT_ABOVE,
     900},
};

#define RULES (sizeof rules / sizeof *rules)
_Static_assert(RULES <= ALARMS_MAX, "too many rules");

const char *alarms_rule(size_t index)
{
    return index < RULES ? rules[index].rule : NULL;
}

static int tell(void *context, const struct hf_alert_note *note)
{
    struct server *server = context;

    for (size_t i = 0; i < RULES; i++) {
        if (strcmp(rules[i].name, note->name) == 0)
            server->alarms[i] = note->firing;
    }
    report_alarm(&server->report, note->name, note->firing);
    return 0;
}

enum hf_status alarms_open(struct server *server)
{
    struct hf_alerts_opts opts = {.name = "server", .clock = server->clock};

    health_init(&server->health);
    memset(server->alarms, 0, sizeof server->alarms);
    enum hf_status status =
        hf_alerts_open(&server->alerts, server->metrics.meter, &opts);

    for (size_t i = 0; i < RULES && !status; i++) {
        struct hf_alert alert = {
            .name = rules[i].name,
            .metric = rules[i].metric,
            .labels = &rules[i].label,
            .label_count = rules[i].label.name != NULL,
            .figure = rules[i].figure,
            .percent = rules[i].figure == HF_ALERT_PERCENTILE ? 99 : 0,
            .window_ns = rules[i].window_ns,
            .compare = rules[i].compare,
            .bound = rules[i].bound,
            .notify = tell,
            .context = server,
        };
        status = hf_alerts_add(server->alerts, &alert, NULL);
    }
    return status;
}

void alarms_close(struct server *server)
{
    hf_alerts_close(server->alerts);
    server->alerts = NULL;
}

void alarms_tend(struct server *server)
{
    uint64_t now_ns = hf_clock_now_ns(server->clock);

    health_tend(&server->health, &server->metrics, now_ns);
    (void)hf_alerts_evaluate(server->alerts, now_ns);
}

uint32_t alarms_firing(const struct server *server)
{
    struct hf_alerts_stats stats;

    hf_alerts_stats(server->alerts, &stats);
    return stats.firing;
}
