/* server.c - a turn of the loop, time, and the way to a stop. */
#include "server/server.h"

#include <assert.h>
#include <sys/random.h>
#include <unistd.h>

#include "server/conn.h"
#include "server/history.h"
#include "server/waits.h"

/* Rounds of commit and answer in one turn; what is left goes to the next. */
#define TURN_ROUNDS_MAX 4

/* Every how many tending calls the connections are looked at. */
#define TEND_CONNS 10

uint64_t server_now_us(const struct server *server)
{
    return server->epoch_us + hf_clock_now_ns(server->clock) / 1000;
}

static void on_again(uv_idle_t *handle)
{
    (void)handle; /* only keeps the loop from sleeping: turn_end does it */
}

void server_go_on(struct server *server)
{
    uv_idle_start(&server->again, on_again);
}

/* What clients sent goes in, what they are owed goes out. */
static void run_conns(struct server *server)
{
    if (server->applied)
        conn_unpark(server);
    server->applied = false;
    events_serve(server);
    history_serve(server);
    conn_flush_dirty(server);
}

static bool has_work(struct server *server)
{
    return server->dirty != NULL || server->events.news ||
           history_has_work(server) || commit_has_work(server);
}

void server_turn(struct server *server)
{
    run_conns(server);
    for (int i = 0; i < TURN_ROUNDS_MAX && commit_round(server);
         i += !server->applying)
        run_conns(server);
    commit_arm(server);
    if (has_work(server))
        server_go_on(server);
    else
        uv_idle_stop(&server->again);
}

void server_turn_end(uv_check_t *handle)
{
    struct server *server = handle->data;

    if (commit_looks_again(server)) {
        run_conns(server); /* what needs no commit does not wait for it */
        server_go_on(server);
    } else if (has_work(server)) {
        server_turn(server);
    } else {
        commit_arm(server); /* one who went may have let another one in */
    }
    server->turn++;
    if (server->turn_sweeps > server->turn_sweeps_max)
        server->turn_sweeps_max = server->turn_sweeps;
    server->turn_sweeps = 0;
    server->turn_applied = 0;
    server->turn_steps = 0;
    server->turn_all = 0;
}

void server_due(uv_timer_t *handle)
{
    struct server *server = handle->data;

    server->due_armed_us = UINT64_MAX;
    commit_due(server);
    server_turn(server);
}

void server_log(uv_poll_t *handle, int status, int events)
{
    (void)status;
    (void)events;
    commit_poll(handle->data);
    server_turn(handle->data);
}

/* A client that does not take its answers delays the stop for so long. */
#define STOP_PATIENCE_TENDS 30

static void stop_if_done(struct server *server)
{
    if (!server->stopping || !commit_is_idle(server))
        return;
    if (!conn_any_owed(server) || ++server->stop_tends > STOP_PATIENCE_TENDS)
        uv_stop(&server->loop);
}

/* The table of REQ ids is full of successes: that is an alarm. */
static void tend_requests(struct server *server)
{
    struct hold_counts counts;

    hold_count(server->engine, &counts);
    if (counts.requests_refused != server->report.requests_refused)
        report_requests_full(&server->report, NULL);
    server->report.requests_refused = counts.requests_refused;
}

void server_tend(uv_timer_t *handle)
{
    struct server *server = handle->data;

    log_note_later(server->log, hold_seq(server->engine));
    log_tend(server->log, hf_clock_now_ns(server->clock));
    if (server->flight_count > 0)
        commit_poll(server);
    commit_tend(server);
    events_tend(server);
    server_turn(server);
    uint64_t waiting_ns = commit_waiting_ns(server);
    if (waiting_ns >= SERVER_SLOW_NS)
        report_slow(&server->report, waiting_ns, false);
    report_tend_disk(&server->report);
    report_snapshots(&server->report, server->log);
    report_journal(&server->report, server->log);
    if (++server->tend_count % TEND_CONNS == 0) {
        conn_tend(server);
        shares_tend(server);
        tend_requests(server);
        alarms_tend(server);
    }
    stop_if_done(server);
}

/* No new connections, no new requests; what was accepted is answered. A disk
 * that hangs would delay that for ever, hence the way out. */
void server_signal(uv_signal_t *handle, int number)
{
    struct server *server = handle->data;

    if (server->stopping) {
        report_stop_forced(&server->report);
        report_flush(&server->report);
        _exit(EXIT_FAILURE); /* asked twice: as safe as a crash */
    }
    server->stopping = true;
    report_stopping(&server->report, number, server->conn_count);
    uv_close((uv_handle_t *)&server->listener, NULL);
    waits_end(server, WAIT_STOP);
    server_turn(server);
    stop_if_done(server);
}

void server_apply_config(struct server *server)
{
    if (server->config.clients_max > server->files_max)
        server->config.clients_max = server->files_max;
    hold_set_memory_max(server->engine, server->config.memory_max_bytes);
    watch_set(&server->watch, server->config.disk_warn_bytes);
    report_set_level(&server->report, server->config.log_level);
}

enum hf_status server_random(void *out, size_t bytes)
{
    return getrandom(out, bytes, 0) == (ssize_t)bytes ? HF_OK : HF_IO;
}

int server_format_address(const struct sockaddr_storage *address, char *out,
                          size_t len)
{
    char host[64] = "?";
    int port = 0;

    if (address->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const void *)address;
        uv_ip6_name(in6, host, sizeof host);
        port = ntohs(in6->sin6_port);
    } else if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        uv_ip4_name(in, host, sizeof host);
        port = ntohs(in->sin_port);
    }
    snprintf(out, len, strchr(host, ':') ? "[%s]:%d" : "%s:%d", host, port);
    return port;
}

void server_address(struct server *server, char *out, size_t len)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    int address_len = sizeof address;

    uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address,
                       &address_len);
    server->config.port = (uint64_t)server_format_address(&address, out, len);
}

void server_run(struct server *server)
{
    uv_run(&server->loop, UV_RUN_DEFAULT);
}
