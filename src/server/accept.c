/* accept.c - a client comes: its socket, its address, the bound on clients. */
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "base/memory.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/server.h"

/* How long the system probes a host, once a second, before it is given up. */
#define PROBES_S 10u

static bool is_local(const struct sockaddr_storage *address)
{
    if (address->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)address;
        return ntohl(in->sin_addr.s_addr) >> 24 == 127;
    }
    const struct in6_addr *host =
        &((const struct sockaddr_in6 *)address)->sin6_addr;
    return IN6_IS_ADDR_LOOPBACK(host) ||
           (IN6_IS_ADDR_V4MAPPED(host) && host->s6_addr[12] == 127);
}

static void note_peer(struct conn *conn, const struct sockaddr_storage *peer)
{
    const struct sockaddr_in *in = (const void *)peer;
    const struct sockaddr_in6 *in6 = (const void *)peer;
    bool four = peer->ss_family == AF_INET;

    conn->local = is_local(peer);
    conn->address_len = four ? sizeof in->sin_addr : sizeof in6->sin6_addr;
    memcpy(conn->address, four ? (const void *)&in->sin_addr : &in6->sin6_addr,
           conn->address_len);
}

static void turn_away(struct conn *conn)
{
    struct server *server = conn->server;

    server->metrics.connections_refused++;
    report_refused(&server->report, conn, server->config.clients_max);
    answer_error(server, conn, ERROR_CLIENTS);
    conn->quitting = true;
}

static void link_conn(struct server *server, struct conn *conn)
{
    conn->next = server->conns;
    if (server->conns != NULL)
        server->conns->prev = conn;
    server->conns = conn;
    server->conn_count++;
}

static void begin(struct server *server, struct conn *conn)
{
    conn->server = server;
    conn->reply = (struct reply){.out = &conn->out, .codec = &resp2_codec};
    conn->id = ++server->conn_id;
    conn->heard_ms = conn->sent_ms = uv_now(&server->loop);
    uv_tcp_init(&server->loop, &conn->tcp);
    conn->tcp.data = conn;
    link_conn(server, conn);
}

/* A host that vanished is noticed after this: the system probes one that is
 * silent, and gives up one that does not confirm what it was sent. */
static void keep_alive(struct conn *conn)
{
    uint64_t delay_s = (conn->server->config.keepalive_ms + 999) / 1000;
    /* Not before one that is there and does not read is closed, see
     * CONN_STUCK_MS: the system does not tell the two apart. */
    uint64_t unread_ms =
        delay_s * 1000 > CONN_STUCK_MS ? delay_s * 1000 : CONN_STUCK_MS;
    unsigned give_up_ms = (unsigned)unread_ms + PROBES_S * 1000;
    uv_os_fd_t fd;

    uv_tcp_nodelay(&conn->tcp, 1);
    if (delay_s == 0)
        return;
    uv_tcp_keepalive(&conn->tcp, 1, (unsigned)delay_s);
    if (uv_fileno((uv_handle_t *)&conn->tcp, &fd) == 0)
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &give_up_ms,
                         sizeof give_up_ms);
}

/* Without memory a client is accepted by the spare connection, and closed: as
 * long as one is not accepted the loop hears of no other. If the spare one is
 * in use the client waits for it. */
void conn_accept(uv_stream_t *listener, int status)
{
    struct server *server = listener->data;
    struct conn *conn = status < 0 ? NULL : hf_alloc_zeroed(sizeof *conn);
    struct sockaddr_storage peer;
    int peer_len = sizeof peer;
    bool spare = status >= 0 && conn == NULL;

    if (spare) {
        conn = server->spare_conn;
        server->spare_conn = NULL;
        server->accept_owed = conn == NULL;
    }
    if (conn == NULL)
        return;
    begin(server, conn);
    if (uv_accept(listener, (uv_stream_t *)&conn->tcp) != 0) {
        conn_close(conn);
        return;
    }
    server->metrics.connections++;
    if (spare) {
        conn_close_no_memory(conn);
        return;
    }
    if (server->conn_count > server->config.clients_max) {
        turn_away(conn);
        return;
    }
    if (uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&peer, &peer_len) ==
        0)
        note_peer(conn, &peer);
    report_opened(&server->report, conn);
    keep_alive(conn);
    conn_set_reading(conn, true);
}
