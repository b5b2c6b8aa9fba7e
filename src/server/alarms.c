/* alarms.c - rules over the server's figures, a row each. */
#include "server/alarms.h"

#include "server/server.h"

/* Expiries a second, for ten seconds: clients die, or their TTL is too short.
 */
#define EXPIRIES_PER_S 10

static const struct {
    const char *name;
    const char *metric;
    struct hf_label label; /* no name: none */
    enum hf_alert_figure figure;
    uint64_t window_ns;
    double bound; /* above it, the rule holds */
} rules[] = {
    {"acquiring a lock takes more than 100 ms (p99)",
     "holdfast_lock_acquire_seconds",
     {NULL, NULL},
     HF_ALERT_PERCENTILE,
     60 * HF_NS_PER_S,
     0.1},
    {"many locks expire",
     "holdfast_events_total",
     {"event", "lock_expired"},
     HF_ALERT_RATE,
     10 * HF_NS_PER_S,
     EXPIRIES_PER_S},
    {"many sessions expire",
     "holdfast_events_total",
     {"event", "session_expired"},
     HF_ALERT_RATE,
     10 * HF_NS_PER_S,
     EXPIRIES_PER_S},
    {"a fence has rejected a late write",
     "holdfast_errors_total",
     {"code", "STALE"},
     HF_ALERT_RATE,
     60 * HF_NS_PER_S,
     0},
    {"events are lost to the feed",
     "holdfast_feed_lost_total",
     {NULL, NULL},
     HF_ALERT_RATE,
     60 * HF_NS_PER_S,
     0},
    {"the disk of the feed fails",
     "holdfast_feed_failures_total",
     {NULL, NULL},
     HF_ALERT_RATE,
     60 * HF_NS_PER_S,
     0},
    {"a lock was granted twice",
     "holdfast_lock_double_grants_total",
     {NULL, NULL},
     HF_ALERT_VALUE,
     0,
     0},
};

static int tell(void *context, const struct hf_alert_note *note)
{
    struct server *server = context;

    report_alarm(&server->report, note->name, note->firing);
    return 0;
}

enum hf_status alarms_open(struct server *server)
{
    struct hf_alerts_opts opts = {.name = "server", .clock = server->clock};
    enum hf_status status =
        hf_alerts_open(&server->alerts, server->metrics.meter, &opts);

    for (size_t i = 0; i < sizeof rules / sizeof *rules && !status; i++) {
        struct hf_alert alert = {
            .name = rules[i].name,
            .metric = rules[i].metric,
            .labels = &rules[i].label,
            .label_count = rules[i].label.name != NULL,
            .figure = rules[i].figure,
            .percent = rules[i].figure == HF_ALERT_PERCENTILE ? 99 : 0,
            .window_ns = rules[i].window_ns,
            .compare = HF_ALERT_ABOVE,
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
    (void)hf_alerts_evaluate(server->alerts, hf_clock_now_ns(server->clock));
}

uint32_t alarms_firing(const struct server *server)
{
    struct hf_alerts_stats stats;

    hf_alerts_stats(server->alerts, &stats);
    return stats.firing;
}
