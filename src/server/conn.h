/* conn.h - one client: what it sent, what it is owed.
 *
 *   socket --> in (only what is not a whole request yet, or must wait)
 *                 --> requests, in order
 *   socket <-- sending <-- out (what the turn answered)
 *
 * Bounds: a client that does not read its answers is not read from either
 * once `output-max-bytes` are owed; one that sends behind a request that waits
 * is not read from beyond CONN_INPUT_MAX. Neither costs more than that. What
 * one client may have done in one turn of the loop has a budget of work, so
 * that the others have their turn; what is left goes to the next turn.
 *
 * Memory: freed when the socket is closed and no batch refers to it.
 */
#ifndef SERVER_CONN_H
#define SERVER_CONN_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/bytes.h"
#include "resp/reply.h"
#include "server/share.h"

#define CONN_INPUT_MAX (512u * 1024)
#define CONN_NAME_MAX  64

/* Work of one client in one turn: requests, of which a long one counts as
 * many (so many of its steps are one), and bytes of them; beyond it the client
 * waits for the next turn. The last request may pass it. */
#define CONN_TURN_WORK    1024u
#define CONN_TURN_BYTES   (256u * 1024)
#define CONN_STEPS_A_WORK 16u

/* What a command whose reply is long counts as; METRICS takes milliseconds. */
#define CONN_LONG_STEPS 50000u

/* When all clients together have had so much done in a turn, requests and so
 * many bytes of them for one more, each has a little and no more: so many
 * requests, and none if more bytes than that wait. */
#define CONN_TURN_ALL     20000u
#define CONN_BYTES_A_WORK 128u
#define CONN_LITTLE       16u
#define CONN_LITTLE_BYTES 4096u

/* A client that takes nothing of what it is owed for this long is closed. */
#define CONN_STUCK_MS 60000u

struct group;
struct server;
struct subscription;

struct conn {
    uv_tcp_t tcp;
    uv_write_t write;
    struct server *server;
    struct conn *prev; /* in the list of all */
    struct conn *next;
    struct conn *next_dirty;
    struct conn *next_parked;
    uint64_t id;
    struct hf_buf in;
    struct hf_buf out;
    struct reply reply;    /* writes to it, in the client's protocol */
    struct hf_buf sending; /* on its way to the socket */
    uint32_t pending;      /* requests in batches: not to be freed before */
    struct wait *wait;     /* not NULL: its last request waits */
    struct group *group;   /* not NULL: it is in MULTI */
    uint32_t bound;        /* the last session of its own; 0: none */
    uint32_t pushed;       /* the last grant it knows of: see push.h */
    uint32_t subscription_count;
    struct subscription *subscriptions; /* see subscribe.h */
    char address[SHARE_ADDRESS_BYTES];
    uint32_t address_len;
    uint64_t heard_ms;   /* loop time of the last byte in */
    uint64_t sent_ms;    /* loop time of the last byte out, as far as seen */
    uint64_t untaken;    /* bytes that the client had not when last looked at */
    uint64_t read_turn;  /* of the loop, since which it is read from */
    uint64_t turn;       /* of the loop, to which the next two belong */
    uint32_t turn_work;  /* done for it in that turn */
    uint32_t turn_bytes; /* of its requests */
    bool dirty;
    bool parked;  /* goes on when the next batch has been applied */
    bool barrier; /* nothing more runs while `pending` is not 0 */
    bool reading;
    bool local;    /* from this machine: may use admin commands */
    bool ended;    /* the client sends no more, but may still read */
    bool quitting; /* closes when everything is sent */
    bool closing;
    bool closed;
    char name[CONN_NAME_MAX];
};

/* accept.c */
void conn_accept(uv_stream_t *listener, int status);
/* Hears, or does not hear for now, what the client sends. */
void conn_set_reading(struct conn *conn, bool reading);
/* Something was put into `out`, or the connection can go on. */
void conn_touch(struct conn *conn);
/* A batch was applied: those go on whose request had to wait for one. */
void conn_unpark(struct server *server);
/* Goes on with what the touched ones sent, and writes what they are owed. Only
 * the loop's turn calls it. */
void conn_flush_dirty(struct server *server);
/* Where the client is, as host:port; "?:0" if that is not known any more. */
void conn_address(const struct conn *conn, char *out, size_t len);
/* Drops the connection now. */
void conn_close(struct conn *conn);
/* The same, and the log is told that there is no memory. */
void conn_close_no_memory(struct conn *conn);
/* A batch does not refer to it any more. */
void conn_unpend(struct conn *conn);
/* Where the client is, without its port. */
static inline struct hf_bytes conn_host(const struct conn *conn)
{
    return hf_bytes(conn->address, conn->address_len);
}
/* So many steps were done for it, besides the request itself. */
void conn_spend(struct conn *conn, uint64_t steps);
/* True if an answer would reach nobody: the connection is closed or lost, as
 * the socket has it, whether or not that was read. One that has only closed its
 * own side may still read, but for one that waits: see waits_may_close(). */
bool conn_is_gone(const struct conn *conn);
/* Closes those that are silent, or do not read, for too long. */
void conn_tend(struct server *server);
/* True while some client is still owed an answer. */
bool conn_any_owed(const struct server *server);
/* Is it owed so much that it is not read from? */
bool conn_is_full(const struct conn *conn);

#endif
