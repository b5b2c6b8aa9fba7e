/* conn.c - reads requests, runs them in order, writes what is owed. */
#include "server/conn.h"

#include <assert.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>

#include "base/memory.h"
#include "resp/resp.h"
#include "server/answer.h"
#include "server/errors.h"
#include "server/group.h"
#include "server/server.h"
#include "server/subscribe.h"
#include "server/waits.h"

/* An idle connection keeps no buffer larger than this. */
#define KEEP_BYTES (16u * 1024)

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct conn *conn = handle->data;

    (void)suggested;
    *buf = uv_buf_init(conn->server->read_buffer, SERVER_READ_BYTES);
}

static size_t owed(const struct conn *conn)
{
    return conn->out.len + conn->sending.len;
}

bool conn_is_full(const struct conn *conn)
{
    return owed(conn) > conn->server->config.output_max_bytes;
}

/* True while later requests have to wait for an earlier one's answer. */
static bool is_blocked(const struct conn *conn)
{
    return conn->closing || conn->quitting || conn->parked ||
           conn->wait != NULL || conn->server->stopping ||
           (conn->barrier && conn->pending > 0) || conn_is_full(conn);
}

static void begin_turn(struct conn *conn)
{
    if (conn->turn == conn->server->turn)
        return;
    conn->turn = conn->server->turn;
    conn->turn_work = 0;
    conn->turn_bytes = 0;
}

/* With `left` bytes of input. */
static bool has_spent(const struct conn *conn, size_t left)
{
    return conn->turn_work >= CONN_TURN_WORK ||
           conn->turn_bytes >= CONN_TURN_BYTES ||
           (conn->server->turn_all >= CONN_TURN_ALL &&
            (conn->turn_work >= CONN_LITTLE || left > CONN_LITTLE_BYTES));
}

void conn_spend(struct conn *conn, uint64_t steps)
{
    struct server *server = conn->server;

    conn->turn_work += (uint32_t)(steps / CONN_STEPS_A_WORK);
    server->turn_all += (uint32_t)(steps / CONN_STEPS_A_WORK);
    server->turn_steps += steps;
    if (server->turn_steps > server->turn_steps_max)
        server->turn_steps_max = server->turn_steps;
}

/* The request was run. */
static void spend_request(struct conn *conn, size_t bytes)
{
    struct server *server = conn->server;

    conn->turn_work++;
    conn->turn_bytes += (uint32_t)bytes;
    server->turn_all += 1 + bytes / CONN_BYTES_A_WORK;
    if (conn->turn_work > server->turn_work_max)
        server->turn_work_max = conn->turn_work;
    if (server->turn_all > server->turn_all_max)
        server->turn_all_max = server->turn_all;
}

/* It goes on when a batch has been applied, or there is room in the next one.
 */
static void park(struct conn *conn)
{
    struct server *server = conn->server;

    conn->parked = true;
    conn->next_parked = server->parked;
    server->parked = conn;
}

/* Its next request is not to be run now: in the next turn, if the budget of all
 * is spent; when what it asked before is answered; else after the next batch.
 */
static void hold_back(struct conn *conn)
{
    struct server *server = conn->server;

    if (conn->pending == 0 && submit_is_spent(server))
        conn_touch(conn);
    else if (conn->pending == 0 || commit_is_full(server))
        park(conn);
    else
        conn->barrier = true;
}

/* An inline request is changed by decoding, and may be decoded again: a copy of
 * its line is. */
static enum hf_status decode(struct server *server, char *data, size_t len,
                             struct call *call)
{
    if (data[0] != '*') {
        const char *end = memchr(data, '\n', len);
        if (end != NULL)
            len = (size_t)(end - data) + 1;
        if (len > SERVER_LINE_BYTES)
            len = SERVER_LINE_BYTES;
        memcpy(server->line, data, len);
        data = server->line;
    }
    enum hf_status status = resp_decode(data, len, &call->request);
    call->command = NULL;
    if (status == HF_OK && call->request.count > 0)
        table_look_up(call);
    return status;
}

/* Before a request is run, the next one is decoded, if it is there: what it
 * will need of a large table is on its way from memory meanwhile. */
static bool look_ahead(struct server *server, char *data, size_t len,
                       struct call *call, struct call *next)
{
    if (len == 0 || data[0] != '*' ||
        decode(server, data, len, next) != HF_OK || next->request.count == 0)
        return false;
    if (next->command != NULL && next->command->expect != NULL)
        next->command->expect(server, &next->request, false);
    if (call->command != NULL && call->command->expect != NULL)
        call->command->expect(server, &call->request, true);
    return true;
}

static void misframed(struct conn *conn, const char *error)
{
    struct server *server = conn->server;

    answer_error(server, conn, HOLD_ERR, "%s", error);
    report_misbehaved(&server->report, conn, "protocol error", error);
    conn->quitting = true;
}

/* Runs the whole requests at the start of `data`; returns the bytes used. */
static size_t run_requests(struct conn *conn, char *data, size_t len)
{
    struct server *server = conn->server;
    struct call *call = &server->calls[0];
    struct call *next = &server->calls[1];
    bool decoded = false; /* as the next one, before */
    size_t at = 0;

    conn->barrier = conn->barrier && conn->pending > 0;
    begin_turn(conn);
    answer_read_begin(server);
    while (at < len && !is_blocked(conn)) {
        if (has_spent(conn, len - at)) {
            conn_touch(conn);
            break;
        }
        enum hf_status status =
            decoded ? HF_OK : decode(server, data + at, len - at, call);
        if (status == HF_MORE)
            break;
        if (status != HF_OK && conn->pending > 0) {
            conn->barrier = true; /* the error comes in its turn, too */
            break;
        }
        if (status != HF_OK) {
            misframed(conn, call->request.error);
            at = len;
            break;
        }
        size_t end = at + call->request.used;
        decoded = look_ahead(server, data + end, len - end, call, next);
        if (call->request.count > 0 && !table_run(server, conn, call)) {
            hold_back(conn);
            break;
        }
        spend_request(conn, call->request.used);
        at = end;
        call = next;
        next = &server->calls[call == server->calls];
    }
    answer_read_end(server);
    return at;
}

static void on_read(uv_stream_t *stream, ssize_t got, const uv_buf_t *buf)
{
    struct conn *conn = stream->data;
    size_t len = got > 0 ? (size_t)got : 0;
    size_t used = 0;

    if (got == UV_EOF && waits_may_close(conn)) {
        conn->ended = true; /* it may still want what it asked for */
        conn_set_reading(conn, false);
        conn_touch(conn);
        return;
    }
    if (got < 0) {
        conn_close(conn);
        return;
    }
    conn->heard_ms = uv_now(stream->loop);
    conn->server->metrics.bytes_in += len;
    if (conn->in.len == 0)
        used = run_requests(conn, buf->base, len);
    if (used < len && !conn->closing && !conn->quitting &&
        hf_buf_append(&conn->in, buf->base + used, len - used) != HF_OK) {
        conn_close_no_memory(conn);
        return;
    }
    if (used == 0 && conn->in.len > 0)
        hf_buf_consume(&conn->in,
                       run_requests(conn, conn->in.data, conn->in.len));
    if (conn->in.len > CONN_INPUT_MAX)
        conn_set_reading(conn, false);
    conn_touch(conn);
}

void conn_set_reading(struct conn *conn, bool reading)
{
    if (conn->closing || conn->reading == reading || (reading && conn->ended))
        return;
    conn->reading = reading;
    conn->read_turn = conn->server->turn;
    if (reading)
        uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);
    else
        uv_read_stop((uv_stream_t *)&conn->tcp);
}

void conn_touch(struct conn *conn)
{
    if (conn->dirty || conn->closing)
        return;
    conn->dirty = true;
    conn->next_dirty = conn->server->dirty;
    conn->server->dirty = conn;
}

static void free_if_done(struct conn *conn)
{
    if (!conn->closed || conn->pending > 0 || conn->dirty || conn->parked)
        return;
    group_leave(conn);
    hf_buf_destroy(&conn->in);
    hf_buf_destroy(&conn->out);
    hf_buf_destroy(&conn->sending);
    if (conn->server->spare_conn == NULL) {
        conn->server->spare_conn = conn;
        memset(conn, 0, sizeof *conn);
    } else {
        hf_free(conn);
    }
}

static void on_close(uv_handle_t *handle)
{
    struct conn *conn = handle->data;
    struct server *server = conn->server;

    if (conn->prev != NULL)
        conn->prev->next = conn->next;
    else
        server->conns = conn->next;
    if (conn->next != NULL)
        conn->next->prev = conn->prev;
    server->conn_count--;
    subscribe_leave(server, conn); /* not earlier: they may be walked through */
    conn->closed = true;
    free_if_done(conn);
    if (server->accept_owed && server->spare_conn != NULL &&
        !uv_is_closing((uv_handle_t *)&server->listener)) {
        server->accept_owed = false;
        conn_accept((uv_stream_t *)&server->listener, 0);
    }
}

void conn_address(const struct conn *conn, char *out, size_t len)
{
    struct sockaddr_storage address = {.ss_family = AF_UNSPEC};
    int address_len = sizeof address;

    if (uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&address,
                           &address_len) != 0)
        address.ss_family = AF_UNSPEC;
    (void)server_format_address(&address, out, len);
}

void conn_close_no_memory(struct conn *conn)
{
    answer_no_memory(conn->server, conn);
    conn_close(conn);
}

void conn_close(struct conn *conn)
{
    if (conn->closing)
        return;
    report_closed(&conn->server->report, conn);
    conn->closing = true;
    uv_close((uv_handle_t *)&conn->tcp, on_close);
    waits_leave(conn->server, conn);
    bind_leave(conn->server, conn);
    push_leave(conn->server, conn);
}

void conn_unpend(struct conn *conn)
{
    assert(conn->pending > 0);
    conn->pending--;
    if (conn->pending == 0)
        group_catch_up(conn);
    if (conn->pending == 0 && (conn->in.len > 0 || conn->ended))
        conn_touch(conn);
    free_if_done(conn);
}

static void on_written(uv_write_t *write, int status)
{
    struct conn *conn = write->data;

    conn->sending.len = 0;
    if (conn->closing)
        return;
    if (status < 0) {
        conn_close(conn);
        return;
    }
    conn->sent_ms = uv_now(&conn->server->loop);
    conn_touch(conn);
    server_go_on(conn->server); /* the loop may be about to sleep */
}

/* What the socket does not take at once goes on in the background, from a
 * buffer of its own. */
static void send_owed(struct conn *conn)
{
    uv_stream_t *stream = (uv_stream_t *)&conn->tcp;
    uv_buf_t buf = uv_buf_init(conn->out.data, (unsigned)conn->out.len);

    if (conn->out.len == 0 || conn->sending.len > 0)
        return;
    conn->server->metrics.bytes_out += conn->out.len;
    int sent = uv_try_write(stream, &buf, 1);
    if (sent < 0 && sent != UV_EAGAIN) {
        conn_close(conn);
        return;
    }
    if (sent > 0) {
        conn->sent_ms = uv_now(&conn->server->loop);
        hf_buf_consume(&conn->out, (size_t)sent);
    }
    if (conn->out.len == 0)
        return;
    struct hf_buf swap = conn->sending;
    conn->sending = conn->out;
    conn->out = swap;
    conn->write.data = conn;
    buf = uv_buf_init(conn->sending.data, (unsigned)conn->sending.len);
    if (uv_write(&conn->write, stream, &buf, 1, on_written) != 0)
        conn_close(conn);
}

static void shrink(struct hf_buf *buf)
{
    if (buf->len == 0 && buf->cap > KEEP_BYTES)
        hf_buf_destroy(buf);
}

static void go_on(struct conn *conn)
{
    if (conn->in.len > 0 && !is_blocked(conn)) {
        size_t used = run_requests(conn, conn->in.data, conn->in.len);
        hf_buf_consume(&conn->in, used);
    }
    bool was_full = conn_is_full(conn);
    send_owed(conn);
    if (conn->closing)
        return;
    if (was_full && !conn_is_full(conn) && conn->in.len > 0) {
        conn_touch(conn); /* nothing else would make it go on */
        return;
    }
    if ((conn->quitting || conn->ended) && owed(conn) == 0 &&
        conn->pending == 0 && !conn->dirty && !conn->parked &&
        (conn->wait == NULL || !waits_may_close(conn))) {
        conn_close(conn);
        return;
    }
    shrink(&conn->in);
    shrink(&conn->out);
    shrink(&conn->sending);
    conn_set_reading(conn,
                     conn->in.len <= CONN_INPUT_MAX &&
                         owed(conn) <= conn->server->config.output_max_bytes);
}

void conn_unpark(struct server *server)
{
    struct conn *conn = server->parked;

    server->parked = NULL;
    while (conn != NULL) {
        struct conn *next = conn->next_parked;
        conn->parked = false;
        conn_touch(conn);
        free_if_done(conn);
        conn = next;
    }
}

/* Those that are touched meanwhile have their turn in the next call. */
void conn_flush_dirty(struct server *server)
{
    struct conn *conn = server->dirty;

    server->dirty = NULL;
    while (conn != NULL) {
        struct conn *next = conn->next_dirty;
        conn->dirty = false;
        if (!conn->closing)
            go_on(conn);
        free_if_done(conn);
        conn = next;
    }
}

bool conn_is_gone(const struct conn *conn)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    uv_os_fd_t fd;

    /* The end of one that is read from closes it, once the loop has looked. */
    bool heard = conn->reading && conn->server->turn - conn->read_turn > 1;

    if (conn->closing || (heard && conn->wait == NULL))
        return conn->closing;
    if (uv_fileno((const uv_handle_t *)&conn->tcp, &fd) != 0 ||
        getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0)
        return false;
    if (info.tcpi_state == TCP_CLOSE_WAIT)
        return !waits_may_close(conn);
    return info.tcpi_state != TCP_ESTABLISHED;
}

bool conn_any_owed(const struct server *server)
{
    for (const struct conn *conn = server->conns; conn; conn = conn->next) {
        if (owed(conn) > 0 && !conn->closing)
            return true;
    }
    return false;
}

/* Has the client taken anything since the last look? The loop says so only of a
 * whole reply, the system of every byte. */
static bool takes_some(struct conn *conn)
{
    int in_socket = 0;
    uv_os_fd_t fd;

    if (uv_fileno((const uv_handle_t *)&conn->tcp, &fd) == 0)
        (void)ioctl(fd, TIOCOUTQ, &in_socket);
    uint64_t untaken =
        conn->out.len + conn->tcp.write_queue_size + (uint64_t)in_socket;
    bool less = untaken < conn->untaken;
    conn->untaken = untaken;
    return less;
}

static void close_for(struct conn *conn, const char *why)
{
    report_misbehaved(&conn->server->report, conn, why, NULL);
    conn_close(conn);
}

/* True if nothing is under way for it, so that it may count as idle. */
static bool is_at_rest(const struct conn *conn)
{
    return conn->pending == 0 && conn->wait == NULL && !conn->parked &&
           !conn->dirty && conn->subscriptions == NULL && owed(conn) == 0;
}

void conn_tend(struct server *server)
{
    uint64_t now_ms = uv_now(&server->loop);
    uint64_t idle_ms = server->config.idle_ms;
    struct conn *next;

    for (struct conn *conn = server->conns; conn != NULL; conn = next) {
        next = conn->next;
        if (owed(conn) > 0 && takes_some(conn))
            conn->sent_ms = now_ms;
        if (owed(conn) > 0 && now_ms - conn->sent_ms > CONN_STUCK_MS &&
            now_ms - conn->heard_ms > CONN_STUCK_MS)
            close_for(conn, "does not read its replies");
        else if (conn->wait != NULL && !conn->reading && conn_is_gone(conn))
            conn_close(conn); /* nobody reads how it went */
        else if (idle_ms > 0 && is_at_rest(conn) &&
                 now_ms - conn->heard_ms > idle_ms)
            close_for(conn, "idle");
    }
}
