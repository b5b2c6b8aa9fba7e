/* report.c - the events of the server's log. */
#include "server/report.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "holdfast/version.h"
#include "server/config.h"
#include "server/conn.h"

#define SECOND_NS UINT64_C(1000000000)
#define MS_NS     UINT64_C(1000000)

/* A log that cannot be written delays the end of the server so long. */
#define CLOSE_PATIENCE_NS (2 * SECOND_NS)

/* The disk is well again when no commit was slow for so long. */
#define WELL_NS (2 * SECOND_NS)

/* Lines about one subject: so many at once, then one in so long. */
#define CLIENT_BURST     10
#define CLIENT_PERIOD_NS (10 * SECOND_NS)
#define DISK_PERIOD_NS   (60 * SECOND_NS)

#define FIELDS_MAX 10

/* ---- Lines. ---- */

struct line {
    struct hf_log_field fields[FIELDS_MAX];
    size_t count;
    char address[80];
};

static void add(struct line *line, struct hf_log_field field)
{
    if (line->count < FIELDS_MAX)
        line->fields[line->count++] = field;
}

static void add_text(struct line *line, const char *name, const char *text)
{
    add(line, hf_log_text(name, text));
}

static void add_number(struct line *line, const char *name, uint64_t number)
{
    add(line, hf_log_number(name, number));
}

static void add_client(struct line *line, const struct conn *conn)
{
    if (conn == NULL)
        return;
    add_number(line, "client", conn->id);
    if (conn->name[0] != '\0')
        add_text(line, "name", conn->name);
    conn_address(conn, line->address, sizeof line->address);
    add_text(line, "from", line->address);
}

static void tell(const struct report *report, enum hf_log_level level,
                 const char *message, const struct line *line)
{
    hf_log_event(report->log, level, message, line->fields, line->count);
}

/* May a line about this be written now? Adds how many were not. */
static bool pass(const struct report *report, struct report_gate *gate,
                 struct line *line)
{
    if (hf_rate_take(&gate->rate, 1, hf_clock_now_ns(report->clock)) != 0) {
        gate->hidden++;
        return false;
    }
    if (gate->hidden > 0)
        add_number(line, "hidden", gate->hidden);
    gate->hidden = 0;
    return true;
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
    struct line line = {.count = 0};

    add_text(&line, "dir", config->dir);
    add_number(&line, "batches", stats->replayed_batches);
    add_number(&line, "records", stats->replayed_count);
    add_number(&line, "snapshot_bytes", stats->snapshot_bytes);
    add_number(&line, "ms", took_ns / MS_NS);
    tell(report, HF_LOG_INFO, "recovered", &line);
    if (!stats->unclean)
        return;
    line = (struct line){.count = 0};
    add_text(&line, "dir", config->dir);
    if (stats->cut_bytes == 0) {
        tell(report, HF_LOG_WARN, "not stopped cleanly", &line);
        return;
    }
    add_number(&line, "bytes", stats->cut_bytes);
    tell(report, HF_LOG_WARN, "torn tail cut", &line);
}

void report_started(struct report *report, const struct config *config,
                    const char *address)
{
    struct line line = {.count = 0};

    add_text(&line, "version", HOLDFAST_VERSION);
    add_text(&line, "address", address);
    add_text(&line, "dir", config->dir);
    add_text(&line, "durability", config_durability_name(config->durability));
    add_number(&line, "pid", (uint64_t)getpid());
    tell(report, HF_LOG_INFO, "started", &line);
}

void report_start_failed(struct report *report, const struct config *config,
                         const char *why)
{
    struct line line = {.count = 0};

    add_text(&line, "version", HOLDFAST_VERSION);
    add_text(&line, "dir", config->dir);
    add_text(&line, "why", why);
    tell(report, HF_LOG_ERROR, "start failed", &line);
}

void report_stopping(struct report *report, int signal, uint64_t clients)
{
    struct line line = {.count = 0};

    report->stop_ns = hf_clock_now_ns(report->clock);
    add_text(&line, "reason", signal == SIGTERM ? "SIGTERM" : "SIGINT");
    add_number(&line, "clients", clients);
    tell(report, HF_LOG_INFO, "stopping", &line);
}

void report_stop_forced(struct report *report)
{
    struct line line = {.count = 0};

    add_text(&line, "reason", "asked twice");
    tell(report, HF_LOG_WARN, "stopped without waiting", &line);
}

void report_stopped(struct report *report)
{
    struct line line = {.count = 0};

    if (report->stop_ns == 0)
        return;
    add_number(&line, "drain_ms",
               (hf_clock_now_ns(report->clock) - report->stop_ns) / MS_NS);
    tell(report, HF_LOG_INFO, "stopped", &line);
}

/* ---- The disk. ---- */

void report_slow(struct report *report, uint64_t waited_ns, bool ended)
{
    struct line line = {.count = 0};
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
    add_number(&line, "waiting_ms", waited_ns / MS_NS);
    add_number(&line, "slow_commits", report->slow_commits);
    add_number(&line, "max_ms", report->slow_max_ns / MS_NS);
    tell(report, HF_LOG_WARN, "the disk is slow", &line);
}

void report_tend_disk(struct report *report)
{
    struct line line = {.count = 0};
    uint64_t now_ns = hf_clock_now_ns(report->clock);

    if (report->slow_last_ns == 0 || now_ns - report->slow_last_ns < WELL_NS)
        return;
    if (report->slow_told_ns != 0) {
        add_number(&line, "slow_commits", report->slow_commits);
        add_number(&line, "max_ms", report->slow_max_ns / MS_NS);
        add_number(&line, "after_ms",
                   (report->slow_last_ns - report->slow_told_ns) / MS_NS);
        tell(report, HF_LOG_INFO, "the disk is well again", &line);
    }
    report->slow_told_ns = 0;
    report->slow_last_ns = 0;
    report->slow_max_ns = 0;
    report->slow_commits = 0;
}

static void tell_snapshot_end(struct report *report,
                              const struct log_stats *stats)
{
    struct line line = {.count = 0};

    add_number(&line, "bytes", stats->snapshot_bytes);
    add_number(&line, "ms", stats->snapshot_last_ns / MS_NS);
    tell(report, HF_LOG_INFO, "snapshot finished", &line);
}

static void tell_snapshot_failure(struct report *report, const struct log *kept,
                                  const struct log_stats *stats)
{
    char why[JOURNAL_ERROR_MAX];
    struct line line = {.count = 0};

    log_snapshot_error(kept, why);
    add_text(&line, "why", why);
    add_number(&line, "ms", stats->snapshot_last_ns / MS_NS);
    add_number(&line, "failures", stats->snapshot_failures);
    tell(report, HF_LOG_ERROR, "snapshot failed", &line);
}

void report_snapshots(struct report *report, const struct log *kept)
{
    struct log_stats stats;
    struct line line = {.count = 0};

    log_stats(kept, &stats);
    if (stats.snapshot_starts != report->snapshot_starts) {
        add_number(&line, "journal_bytes", stats.disk_bytes);
        tell(report, HF_LOG_INFO, "snapshot begun", &line);
    }
    if (stats.snapshot_count != report->snapshot_count)
        tell_snapshot_end(report, &stats);
    if (stats.snapshot_failures != report->snapshot_failures)
        tell_snapshot_failure(report, kept, &stats);
    report->snapshot_starts = stats.snapshot_starts;
    report->snapshot_count = stats.snapshot_count;
    report->snapshot_failures = stats.snapshot_failures;
}

void report_journal(struct report *report, const struct log *kept)
{
    const char *why = log_error(kept);
    struct line line = {.count = 0};

    if (report->failed || why[0] == '\0')
        return;
    report->failed = true;
    add_text(&line, "why", why);
    tell(report, HF_LOG_ERROR, "the journal has failed, writes are refused",
         &line);
}

/* ---- Clients. ---- */

void report_opened(struct report *report, const struct conn *conn)
{
    struct line line = {.count = 0};

    if (!report->debug)
        return; /* its address is not asked for in vain */
    add_client(&line, conn);
    tell(report, HF_LOG_DEBUG, "connection opened", &line);
}

void report_closed(struct report *report, const struct conn *conn)
{
    struct line line = {.count = 0};

    if (!report->debug)
        return;
    add_client(&line, conn);
    tell(report, HF_LOG_DEBUG, "connection closed", &line);
}

void report_refused(struct report *report, const struct conn *conn,
                    uint64_t clients)
{
    struct line line = {.count = 0};

    if (!pass(report, &report->refused, &line))
        return;
    add_client(&line, conn);
    add_number(&line, "maxclients", clients);
    tell(report, HF_LOG_WARN, "client refused", &line);
}

void report_misbehaved(struct report *report, const struct conn *conn,
                       const char *why, const char *detail)
{
    struct line line = {.count = 0};

    if (!pass(report, &report->closed, &line))
        return;
    add_client(&line, conn);
    add_text(&line, "why", why);
    if (detail != NULL)
        add_text(&line, "detail", detail);
    tell(report, HF_LOG_WARN, "client closed", &line);
}

void report_no_memory(struct report *report, const struct conn *conn,
                      uint64_t engine_bytes)
{
    struct line line = {.count = 0};

    if (!pass(report, &report->memory, &line))
        return;
    add_client(&line, conn);
    add_number(&line, "engine_bytes", engine_bytes);
    tell(report, HF_LOG_WARN, "request refused, no memory", &line);
}

void report_behind(struct report *report, const struct conn *conn)
{
    struct line line = {.count = 0};

    if (!pass(report, &report->behind, &line))
        return;
    add_client(&line, conn);
    tell(report, HF_LOG_WARN, "request refused, the disk does not keep up",
         &line);
}

void report_requests_full(struct report *report, const struct conn *conn)
{
    struct line line = {.count = 0};

    if (!pass(report, conn != NULL ? &report->shares : &report->requests,
              &line))
        return;
    if (conn != NULL)
        add_client(&line, conn);
    tell(report, HF_LOG_WARN,
         conn != NULL ? "REQ refused, the client has filled its share"
                      : "REQ refused, requests-max is reached",
         &line);
}

/* ---- Those who run it. ---- */

void report_config(struct report *report, const struct conn *conn,
                   const char *name, const char *from, const char *to)
{
    struct line line = {.count = 0};

    add_client(&line, conn);
    add_text(&line, "setting", name);
    add_text(&line, "was", from);
    add_text(&line, "is", to);
    tell(report, HF_LOG_INFO, "setting changed", &line);
}

void report_admin(struct report *report, const struct conn *conn,
                  const char *command)
{
    struct line line = {.count = 0};

    add_client(&line, conn);
    add_text(&line, "command", command);
    tell(report, HF_LOG_INFO, "admin command", &line);
}

void report_denied(struct report *report, const struct conn *conn,
                   const char *command)
{
    struct line line = {.count = 0};

    if (!pass(report, &report->denied, &line))
        return;
    add_client(&line, conn);
    add_text(&line, "command", command);
    tell(report, HF_LOG_WARN, "admin command denied", &line);
}
