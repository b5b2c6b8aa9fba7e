/* report.c - the events of the server's log. */
#include "server/report.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "holdfast/version.h"
#include "server/config.h"
#include "server/conn.h"

/* A log that cannot be written delays the end of the server so long. */
#define CLOSE_PATIENCE_NS (2 * HF_NS_PER_S)

/* The disk is well again when no commit was slow for so long. */
#define WELL_NS (2 * HF_NS_PER_S)

/* Lines about one subject: so many at once, then one in so long. */
#define CLIENT_BURST     10
#define CLIENT_PERIOD_NS (10 * HF_NS_PER_S)
#define DISK_PERIOD_NS   (60 * HF_NS_PER_S)

#define FIELDS_MAX 10

/* ---- Lines. ---- */

#define FIELDS(...)                                  \
    (const struct hf_log_field[]){__VA_ARGS__},      \
        sizeof(struct hf_log_field[]){__VA_ARGS__} / \
            sizeof(struct hf_log_field)
#define TEXT(name, text)     hf_log_text(name, text)
#define NUMBER(name, number) hf_log_number(name, number)

static void tell(const struct report *report, enum hf_log_level level,
                 const char *message, const struct hf_log_field *fields,
                 size_t count)
{
    hf_log_event(report->log, level, message, fields, count);
}

/* The same about a client, NULL: none. With a gate, only if a line about this
 * may be written now; how many were not is told with the next. */
static void tell_client(const struct report *report, struct report_gate *gate,
                        const struct conn *conn, enum hf_log_level level,
                        const char *message, const struct hf_log_field *more,
                        size_t more_count)
{
    struct hf_log_field fields[FIELDS_MAX];
    char address[80];
    size_t count = 0;

    if (gate != NULL) {
        gate->hidden++;
        if (hf_rate_take(&gate->rate, 1, hf_clock_now_ns(report->clock)) != 0)
            return;
        if (gate->hidden > 1)
            fields[count++] = NUMBER("hidden", gate->hidden - 1);
        gate->hidden = 0;
    }
    if (conn != NULL) {
        conn_address(conn, address, sizeof address);
        fields[count++] = NUMBER("client", conn->id);
        if (conn->name[0] != '\0')
            fields[count++] = TEXT("name", conn->name);
        fields[count++] = TEXT("from", address);
    }
    assert(count + more_count <= FIELDS_MAX);
    for (size_t i = 0; i < more_count; i++)
        fields[count++] = more[i];
    tell(report, level, message, fields, count);
}

/* ---- Open and close. ---- */

void report_init(struct report *report, struct hf_log *log,
                 const struct hf_clock *clock)
{
    *report = (struct report){.log = log, .clock = clock};
    (void)hf_rate_init(&report->refused.rate, CLIENT_BURST, CLIENT_PERIOD_NS);
    (void)hf_rate_init(&report->closed.rate, CLIENT_BURST, CLIENT_PERIOD_NS);
    (void)hf_rate_init(&report->denied.rate, CLIENT_BURST, CLIENT_PERIOD_NS);
    (void)hf_rate_init(&report->memory.rate, 1, CLIENT_PERIOD_NS);
    (void)hf_rate_init(&report->behind.rate, 1, CLIENT_PERIOD_NS);
    (void)hf_rate_init(&report->requests.rate, 1, CLIENT_PERIOD_NS);
    (void)hf_rate_init(&report->shares.rate, 1, CLIENT_PERIOD_NS);
    (void)hf_rate_init(&report->slow.rate, 1, DISK_PERIOD_NS);
}

enum hf_status report_open(struct report *report, const struct config *config,
                           const struct hf_clock *clock, char *error)
{
    bool to_file = config->log_file[0] != '\0';
    struct hf_log_opts opts = {
        .name = "server",
        .path = to_file ? config->log_file : NULL,
        .level = config->log_level,
        .form = config->log_format,
        .rotate_bytes = to_file ? config->log_rotate_bytes : 0,
        .rotate_keep = (uint32_t)config->log_rotate_keep,
        .crash = true,
    };
    struct hf_log *log = NULL;

    errno = 0;
    enum hf_status status = hf_log_open(&log, &opts);
    if (status == HF_IO)
        snprintf(error, JOURNAL_ERROR_MAX, "cannot open the log %s: %s",
                 config->log_file, strerror(errno));
    else if (status != HF_OK)
        snprintf(error, JOURNAL_ERROR_MAX, "cannot open the log: %s",
                 hf_status_text(status));
    if (status == HF_OK) {
        report_init(report, log, clock);
        report_set_level(report, config->log_level);
    }
    return status;
}

void report_set_level(struct report *report, enum hf_log_level level)
{
    report->debug = level == HF_LOG_DEBUG;
    hf_log_set_level(report->log, level);
}

void report_flush(struct report *report)
{
    uint64_t until_ns = hf_clock_now_ns(hf_clock_system()) + CLOSE_PATIENCE_NS;

    (void)hf_log_flush(report->log, until_ns);
}

void report_close(struct report *report)
{
    static struct hf_log *stuck; /* its thread hangs in a write */
    uint64_t until_ns = hf_clock_now_ns(hf_clock_system()) + CLOSE_PATIENCE_NS;

    if (report->log == NULL)
        return;
    if (hf_log_flush(report->log, until_ns) == HF_TIMEOUT)
        stuck = report->log;
    else
        hf_log_close(report->log);
    (void)stuck;
    report->log = NULL;
}

/* ---- Start and stop. ---- */

void report_recovered(struct report *report, const struct config *config,
                      const struct log_stats *stats, uint64_t took_ns)
{
    tell(report, HF_LOG_INFO, "recovered",
         FIELDS(TEXT("dir", config->dir),
                NUMBER("batches", stats->replayed_batches),
                NUMBER("records", stats->replayed_count),
                NUMBER("snapshot_bytes", stats->snapshot_bytes),
                NUMBER("ms", took_ns / HF_NS_PER_MS)));
    if (stats->unclean && stats->cut_bytes == 0)
        tell(report, HF_LOG_WARN, "not stopped cleanly",
             FIELDS(TEXT("dir", config->dir)));
    else if (stats->unclean)
        tell(report, HF_LOG_WARN, "torn tail cut",
             FIELDS(TEXT("dir", config->dir),
                    NUMBER("bytes", stats->cut_bytes)));
}

void report_started(struct report *report, const struct config *config,
                    const char *address)
{
    tell(report, HF_LOG_INFO, "started",
         FIELDS(TEXT("version", HOLDFAST_VERSION), TEXT("address", address),
                TEXT("dir", config->dir),
                TEXT("durability", config_durabilities[config->durability]),
                NUMBER("pid", (uint64_t)getpid())));
}

void report_start_failed(struct report *report, const struct config *config,
                         const char *why)
{
    tell(report, HF_LOG_ERROR, "start failed",
         FIELDS(TEXT("version", HOLDFAST_VERSION), TEXT("dir", config->dir),
                TEXT("why", why)));
}

void report_stopping(struct report *report, int signal, uint64_t clients)
{
    report->stop_ns = hf_clock_now_ns(report->clock);
    tell(report, HF_LOG_INFO, "stopping",
         FIELDS(TEXT("reason", signal == SIGTERM ? "SIGTERM" : "SIGINT"),
                NUMBER("clients", clients)));
}

void report_stop_forced(struct report *report)
{
    tell(report, HF_LOG_WARN, "stopped without waiting",
         FIELDS(TEXT("reason", "asked twice")));
}

void report_stopped(struct report *report)
{
    uint64_t now_ns = hf_clock_now_ns(report->clock);

    if (report->stop_ns != 0)
        tell(report, HF_LOG_INFO, "stopped",
             FIELDS(NUMBER("drain_ms",
                           (now_ns - report->stop_ns) / HF_NS_PER_MS)));
}

/* ---- The disk. ---- */

void report_slow(struct report *report, uint64_t waited_ns, bool ended)
{
    uint64_t now_ns = hf_clock_now_ns(report->clock);

    report->slow_last_ns = now_ns;
    report->slow_commits += ended;
    if (waited_ns > report->slow_max_ns)
        report->slow_max_ns = waited_ns;
    /* A commit that has ended was told of when it began to be slow. */
    if (ended || hf_rate_take(&report->slow.rate, 1, now_ns) != 0)
        return;
    if (report->slow_told_ns == 0)
        report->slow_told_ns = now_ns;
    tell(report, HF_LOG_WARN, "the disk is slow",
         FIELDS(NUMBER("waiting_ms", waited_ns / HF_NS_PER_MS),
                NUMBER("slow_commits", report->slow_commits),
                NUMBER("max_ms", report->slow_max_ns / HF_NS_PER_MS)));
}

void report_tend_disk(struct report *report)
{
    uint64_t last_ns = report->slow_last_ns;

    if (last_ns == 0 || hf_clock_now_ns(report->clock) - last_ns < WELL_NS)
        return;
    if (report->slow_told_ns != 0)
        tell(report, HF_LOG_INFO, "the disk is well again",
             FIELDS(NUMBER("slow_commits", report->slow_commits),
                    NUMBER("max_ms", report->slow_max_ns / HF_NS_PER_MS),
                    NUMBER("after_ms",
                           (last_ns - report->slow_told_ns) / HF_NS_PER_MS)));
    report->slow_told_ns = 0;
    report->slow_last_ns = 0;
    report->slow_max_ns = 0;
    report->slow_commits = 0;
}

void report_snapshots(struct report *report, const struct log *kept)
{
    char why[JOURNAL_ERROR_MAX];
    struct log_stats stats;

    log_stats(kept, &stats);
    uint64_t took_ms = stats.snapshot_last_ns / HF_NS_PER_MS;
    if (stats.snapshot_starts != report->snapshot_starts)
        tell(report, HF_LOG_INFO, "snapshot begun",
             FIELDS(NUMBER("journal_bytes", stats.disk_bytes)));
    if (stats.snapshot_count != report->snapshot_count)
        tell(report, HF_LOG_INFO, "snapshot finished",
             FIELDS(NUMBER("bytes", stats.snapshot_bytes),
                    NUMBER("ms", took_ms)));
    if (stats.snapshot_failures != report->snapshot_failures) {
        log_snapshot_error(kept, why);
        tell(report, HF_LOG_ERROR, "snapshot failed",
             FIELDS(TEXT("why", why), NUMBER("ms", took_ms),
                    NUMBER("failures", stats.snapshot_failures)));
    }
    report->snapshot_starts = stats.snapshot_starts;
    report->snapshot_count = stats.snapshot_count;
    report->snapshot_failures = stats.snapshot_failures;
}

void report_journal(struct report *report, const struct log *kept)
{
    const char *why = log_error(kept);

    if (report->failed || why[0] == '\0')
        return;
    report->failed = true;
    tell(report, HF_LOG_ERROR, "the journal has failed, writes are refused",
         FIELDS(TEXT("why", why)));
}

void report_feed(struct report *report, const char *why)
{
    tell(report, HF_LOG_WARN, "events cannot be written; it is tried again",
         FIELDS(TEXT("why", why)));
}

/* ---- Clients. ---- */

void report_opened(struct report *report, const struct conn *conn)
{
    if (report->debug) /* its address is not asked for in vain */
        tell_client(report, NULL, conn, HF_LOG_DEBUG, "connection opened", NULL,
                    0);
}

void report_closed(struct report *report, const struct conn *conn)
{
    if (report->debug)
        tell_client(report, NULL, conn, HF_LOG_DEBUG, "connection closed", NULL,
                    0);
}

void report_refused(struct report *report, const struct conn *conn,
                    uint64_t clients)
{
    tell_client(report, &report->refused, conn, HF_LOG_WARN, "client refused",
                FIELDS(NUMBER("maxclients", clients)));
}

void report_misbehaved(struct report *report, const struct conn *conn,
                       const char *why, const char *detail)
{
    struct hf_log_field fields[] = {TEXT("why", why), TEXT("detail", detail)};

    tell_client(report, &report->closed, conn, HF_LOG_WARN, "client closed",
                fields, detail != NULL ? 2 : 1);
}

void report_no_memory(struct report *report, const struct conn *conn,
                      uint64_t engine_bytes)
{
    tell_client(report, &report->memory, conn, HF_LOG_WARN,
                "request refused, no memory",
                FIELDS(NUMBER("engine_bytes", engine_bytes)));
}

void report_behind(struct report *report, const struct conn *conn)
{
    tell_client(report, &report->behind, conn, HF_LOG_WARN,
                "request refused, the disk does not keep up", NULL, 0);
}

void report_requests_full(struct report *report, const struct conn *conn)
{
    if (conn != NULL)
        tell_client(report, &report->shares, conn, HF_LOG_WARN,
                    "REQ refused, the client has filled its share", NULL, 0);
    else
        tell_client(report, &report->requests, NULL, HF_LOG_WARN,
                    "REQ refused, requests-max is reached", NULL, 0);
}

void report_alarm(struct report *report, const char *rule, bool holds)
{
    tell(report, holds ? HF_LOG_WARN : HF_LOG_INFO,
         holds ? "alarm" : "alarm is over", FIELDS(TEXT("rule", rule)));
}

/* ---- Those who run it. ---- */

void report_config(struct report *report, const struct conn *conn,
                   const char *name, const char *from, const char *to)
{
    tell_client(
        report, NULL, conn, HF_LOG_INFO, "setting changed",
        FIELDS(TEXT("setting", name), TEXT("was", from), TEXT("is", to)));
}

void report_admin(struct report *report, const struct conn *conn,
                  const char *command)
{
    tell_client(report, NULL, conn, HF_LOG_INFO, "admin command",
                FIELDS(TEXT("command", command)));
}

void report_denied(struct report *report, const struct conn *conn,
                   const char *command)
{
    tell_client(report, &report->denied, conn, HF_LOG_WARN,
                "admin command denied", FIELDS(TEXT("command", command)));
}
