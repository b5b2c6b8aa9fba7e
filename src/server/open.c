/* open.c - wires loop, engine and journal together, and ends them. */
#include <sys/resource.h>

#include "base/memory.h"
#include "server/conn.h"
#include "server/group.h"
#include "server/machine.h"
#include "server/reply.h"
#include "server/server.h"
#include "server/waits.h"

#define BACKLOG 1024
#define TEND_MS 100

/* How far the sequence jumps at a start whose predecessor may have told
 * numbers that its journal lost: more than fit into one segment, whose start
 * notes how far they had got. */
#define SEQUENCE_GAP (INT64_C(1) << 32)

/* The same, if a repair has found no note of how far they had got: the starts
 * whose batches are gone have skipped numbers, too. And no less than the
 * microseconds since 1970: above all that was ever skipped, and below 2^53. */
#define SEQUENCE_GAP_UNKNOWN (UINT64_C(1) << 40)

/* The date is read once. From then on monotonic time counts, so that setting
 * the date moves no expiry; and the last stamp in the journal is never
 * undercut, whatever the date says after a restart. */
static void start_time(struct server *server)
{
    uint64_t wall_us = hf_clock_wall_us(server->clock);
    uint64_t last_us = hold_now_us(server->engine);
    uint64_t from_us = wall_us > last_us ? wall_us : last_us;

    server->epoch_us = from_us - hf_clock_now_ns(server->clock) / 1000;
}

/* Open files that are not for clients: the journal's, the loop's. */
#define FILES_RESERVED 64u

/* Connections must not take the files that the journal will need. */
static void raise_file_limit(struct server *server)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    uint64_t most = limit.rlim_max > 2 * FILES_RESERVED
                        ? limit.rlim_max - FILES_RESERVED
                        : limit.rlim_max / 2;
    if (server->config.clients_max > most)
        server->config.clients_max = most;
    server->files_max = most;
}

/* Journals one record of the server's own and applies it; before the loop
 * runs, and durable whatever the mode. */
static enum hf_status journal_now(struct server *server,
                                  struct hold_command *command)
{
    char record[HOLD_RECORD_MAX];
    enum hf_status status;

    command->now_us = server_now_us(server);
    struct hf_bytes bytes = hf_bytes(record, hold_encode(command, record));
    status = log_append(server->log, bytes);
    if (status == HF_OK)
        status = log_commit(server->log);
    if (status == HF_PENDING) {
        (void)log_flush(server->log); /* waits for it */
        status = log_poll(server->log);
    }
    if (status == HF_OK)
        status = log_flush(server->log);
    return status == HF_OK ? hold_replay(server->engine, bytes, feed_take,
                                         server->events.feed)
                           : status;
}

static bool bounds_differ(const struct hold_bounds *a,
                          const struct hold_bounds *b)
{
    return memcmp(a, b, sizeof *a) != 0;
}

/* How many numbers are skipped. If the end before was not clean, some may have
 * been told by batches that are gone: a torn tail, or all that a repair has
 * dropped. The note is apart from those: no run tells more than SEQUENCE_GAP
 * numbers without raising it. */
static int64_t numbers_to_skip(const struct server *server)
{
    struct log_stats stats;
    uint64_t seq = hold_seq(server->engine);
    uint64_t now_us = server_now_us(server);

    if (!server->unclean)
        return 0;
    log_stats(server->log, &stats);
    if (stats.note == JOURNAL_NOTE_UNKNOWN)
        return (int64_t)(now_us > seq + SEQUENCE_GAP_UNKNOWN
                             ? now_us - seq
                             : SEQUENCE_GAP_UNKNOWN);
    return SEQUENCE_GAP + (stats.note > seq ? (int64_t)(stats.note - seq) : 0);
}

/* Nobody waits any more; numbers told and perhaps lost are skipped; the
 * settings of this start become part of the state. */
static enum hf_status begin_history(struct server *server, char *error)
{
    struct hold_bounds now = hold_get_bounds(server->engine);
    struct hold_command *c = &server->command;
    enum hf_status status;

    server->begun = true;
    *c = (struct hold_command){.kind = HOLD_RESTART,
                               .flags = HOLD_GRAPH | HOLD_SETTLED,
                               .amount = numbers_to_skip(server)};
    status = journal_now(server, c);
    if (status == HF_OK && bounds_differ(&now, &server->config.bounds)) {
        *c = (struct hold_command){.kind = HOLD_BOUNDS};
        for (size_t i = 0; i < HOLD_BOUNDS_COUNT; i++)
            (void)hold_add_item(c, hf_bytes_text(hold_bound_rows[i].name),
                                *hold_bound(&server->config.bounds, i));
        status = journal_now(server, c);
    }
    if (status == HF_OK)
        status = log_note(server->log, hold_seq(server->engine));
    if (status != HF_OK)
        snprintf(error, JOURNAL_ERROR_MAX, "cannot write to %s: %s",
                 server->config.dir, log_error(server->log));
    return status;
}

static enum hf_status open_state(struct server *server, char *error)
{
    struct hf_hash_seed seed;
    struct journal_opts opts = {
        .dir = server->config.dir,
        .sync = server->config.durability,
        .segment_bytes = server->config.segment_bytes,
        .snapshot_bytes = server->config.snapshot_bytes,
        .slow_ns = SERVER_SLOW_NS,
        .io = server->config.io,
        .clock = server->clock,
    };
    struct log_stats stats;
    void *machine = NULL;
    enum hf_status status;

    if (server_random(&seed, sizeof seed) != HF_OK) {
        snprintf(error, JOURNAL_ERROR_MAX, "the system gives no randomness");
        return HF_IO;
    }
    status = events_open(server, error);
    if (status != HF_OK)
        return status;
    opts.machine = server_machine(seed, server->events.feed);
    uint64_t begun_ns = hf_clock_now_ns(server->clock);
    status = server->config.open_log(&server->log, &opts, &machine, error);
    server_machine_opened();
    if (status != HF_OK)
        return status;
    server->engine = machine;
    events_start(server);
    log_stats(server->log, &stats);
    report_recovered(&server->report, &server->config, &stats,
                     hf_clock_now_ns(server->clock) - begun_ns);
    server->unclean = stats.unclean;
    start_time(server);
    server_apply_config(server);
    return HF_OK;
}

static enum hf_status uv_failed(int code, const char *what, char *error)
{
    if (code == 0)
        return HF_OK;
    snprintf(error, JOURNAL_ERROR_MAX, "%s: %s", what, uv_strerror(code));
    return HF_IO;
}

/* Where to listen, from the settings. */
static enum hf_status find_address(const struct server *server,
                                   struct sockaddr_storage *out, char *error)
{
    int port = (int)server->config.port;
    const char *bind = server->config.bind;

    if (uv_ip4_addr(bind, port, (struct sockaddr_in *)out) == 0 ||
        uv_ip6_addr(bind, port, (struct sockaddr_in6 *)out) == 0)
        return HF_OK;
    snprintf(error, JOURNAL_ERROR_MAX, "'%.64s' is not an IP address", bind);
    return HF_INVALID;
}

static enum hf_status listen_on(struct server *server,
                                const struct sockaddr_storage *address,
                                char *error)
{
    char what[128];
    int code =
        uv_tcp_bind(&server->listener, (const struct sockaddr *)address, 0);

    snprintf(what, sizeof what, "cannot listen on %.64s port %d",
             server->config.bind, (int)server->config.port);
    if (code == 0)
        code =
            uv_listen((uv_stream_t *)&server->listener, BACKLOG, conn_accept);
    return uv_failed(code, what, error);
}

static void set_up_loop(struct server *server)
{
    uv_loop_t *loop = &server->loop;

    uv_tcp_init(loop, &server->listener);
    uv_check_init(loop, &server->turn_end);
    uv_idle_init(loop, &server->again);
    uv_timer_init(loop, &server->due_timer);
    uv_timer_init(loop, &server->tend_timer);
    uv_signal_init(loop, &server->term);
    uv_signal_init(loop, &server->interrupt);
    uv_poll_init(loop, &server->log_wake, log_wake_fd(server->log));
    server->listener.data = server;
    server->turn_end.data = server;
    server->again.data = server;
    server->due_timer.data = server;
    server->tend_timer.data = server;
    server->term.data = server;
    server->interrupt.data = server;
    server->log_wake.data = server;
}

static enum hf_status set_up_memory(struct server *server)
{
    server->read_buffer = hf_alloc(SERVER_READ_BYTES);
    server->spare_conn = hf_alloc_zeroed(sizeof(struct conn));
    server->line = hf_alloc(SERVER_LINE_BYTES);
    if (server->read_buffer == NULL || server->spare_conn == NULL ||
        server->line == NULL || groups_open(server) != HF_OK)
        return HF_NOMEM;
    waits_open(&server->waits);
    enum hf_status status = lock_waits_open(&server->lock_waits);
    if (status == HF_OK)
        status = binds_open(&server->binds);
    if (status == HF_OK)
        status = pushes_open(&server->pushes);
    if (status == HF_OK)
        status = subscriptions_open(&server->subscriptions);
    return status == HF_OK ? shares_open(&server->shares) : status;
}

static enum hf_status open_all(struct server *server, char *error)
{
    struct sockaddr_storage address;
    enum hf_status status = find_address(server, &address, error);

    if (status != HF_OK)
        return status;
    raise_file_limit(server);
    reply_init();
    table_init();
    server->started_ns = hf_clock_now_ns(server->clock);
    if (set_up_memory(server) != HF_OK ||
        limits_open(&server->limits, server) != HF_OK ||
        metrics_open(&server->metrics, server) != HF_OK ||
        alarms_open(server) != HF_OK) {
        snprintf(error, JOURNAL_ERROR_MAX, "out of memory");
        return HF_NOMEM;
    }
    status = uv_failed(uv_loop_init(&server->loop), "loop", error);
    server->loop_open = status == HF_OK;
    if (status == HF_OK)
        status = open_state(server, error);
    if (status != HF_OK)
        return status;
    set_up_loop(server);
    status = uv_failed(audits_open(server), "loop", error);
    if (status == HF_OK)
        status = listen_on(server, &address, error);
    if (status == HF_OK) /* not before: it may be the wrong port */
        status = begin_history(server, error);
    if (status != HF_OK)
        return status;
    uv_check_start(&server->turn_end, server_turn_end);
    alarms_tend(server); /* rates count from now on */
    uv_timer_start(&server->tend_timer, server_tend, TEND_MS, TEND_MS);
    uv_poll_start(&server->log_wake, UV_READABLE, server_log);
    uv_signal_start(&server->term, server_signal, SIGTERM);
    uv_signal_start(&server->interrupt, server_signal, SIGINT);
    commit_arm(server);
    return HF_OK;
}

/* Without the watch, too: it only warns. */
static void start_watch(struct server *server)
{
    enum hf_status status =
        watch_open(&server->watch, server->report.log, server->config.dir,
                   server->config.disk_warn_bytes, server->clock);

    if (status != HF_OK)
        hf_log_write(server->report.log, HF_LOG_WARN,
                     "nobody watches the room on the disk: %s",
                     hf_status_text(status));
}

enum hf_status server_open(struct server *server, const struct config *config,
                           char *error)
{
    char address[128];

    *server = (struct server){.config = *config,
                              .clock = hf_clock_system(),
                              .due_armed_us = UINT64_MAX};
    enum hf_status status =
        report_open(&server->report, config, server->clock, error);
    if (status != HF_OK)
        return status;
    status = open_all(server, error);
    if (status == HF_OK) {
        start_watch(server);
        server_address(server, address, sizeof address);
        report_started(&server->report, &server->config, address);
    } else if (config->log_file[0] != '\0') {
        /* else whoever starts it says so in the same place */
        report_start_failed(&server->report, config, error);
    }
    return status;
}

static void close_handle(uv_handle_t *handle, void *context)
{
    struct server *server = context;

    if (uv_is_closing(handle))
        return;
    if (handle->type == UV_TCP && handle != (uv_handle_t *)&server->listener)
        conn_close(handle->data);
    else
        uv_close(handle, NULL);
}

static void release_batch(struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        if (batch->entries[i].conn != NULL)
            conn_unpend(batch->entries[i].conn);
        entry_free(&batch->entries[i]);
    }
    hf_free(batch->entries);
    hf_buf_destroy(&batch->records);
}

/* Everything that was accepted has been journaled and applied; not so when the
 * journal has failed. If nothing has begun the end is as it was before. */
static bool ended_well(const struct server *server)
{
    if (!server->begun)
        return server->engine != NULL && !server->unclean;
    return server->stopping && !server->failed && commit_is_idle(server);
}

static void close_journal(struct server *server)
{
    if (ended_well(server) && log_stop(server->log) != HF_OK)
        report_journal(&server->report, server->log);
    log_close(server->log);
    server->log = NULL;
}

/* Also after a failed open, in whatever state it was left. The journal goes
 * first: its threads must not find their files' numbers in use for sockets
 * that close meanwhile. What watches its descriptor goes before it, since the
 * number may be another file's then. */
void server_close(struct server *server)
{
    watch_close(&server->watch);
    if (server->loop_open && server->log_wake.data != NULL) {
        uv_close((uv_handle_t *)&server->log_wake, NULL);
        /* The disk may hang: from here on a signal ends the process. */
        uv_signal_stop(&server->term);
        uv_signal_stop(&server->interrupt);
    }
    events_stop(server, server->log != NULL && ended_well(server));
    if (server->log != NULL)
        close_journal(server);
    events_close(server);
    if (server->loop_open) {
        uv_walk(&server->loop, close_handle, server);
        uv_run(&server->loop, UV_RUN_DEFAULT);
        conn_unpark(server); /* nothing will be applied for them */
        conn_flush_dirty(server);
        uv_loop_close(&server->loop);
    }
    audits_close(server);
    release_batch(&server->building);
    release_batch(&server->verdicts);
    for (uint32_t i = 0; i < SERVER_FLIGHTS_MAX; i++)
        release_batch(&server->flights[i]);
    limits_close(&server->limits);
    hold_free(server->engine);
    alarms_close(server);
    metrics_close(&server->metrics);
    waits_close(&server->waits);
    lock_waits_close(&server->lock_waits);
    binds_close(&server->binds);
    pushes_close(&server->pushes);
    subscriptions_close(&server->subscriptions);
    shares_close(&server->shares);
    hf_free(server->spare_conn);
    hf_free(server->read_buffer);
    groups_close(server);
    hf_free(server->line);
    report_stopped(&server->report);
    report_close(&server->report);
}
