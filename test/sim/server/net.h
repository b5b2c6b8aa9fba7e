/* net.h - simulated TCP: bytes that take their time, and may stop anywhere.
 *
 *   client --write--> [ on its way | arrived ] --read--> server     up
 *   client <--read--- [ arrived | on its way ] <-write-- server     down
 *
 * A wire is one connection. What is written arrives in order, in pieces, each
 * after a delay of its own. Down has a window: a client that does not read
 * lets it fill, and the server's writes are short then. A wire may be made to
 * break behind any byte of either direction: nothing more passes, and each end
 * hears of it (a reset) in its own time.
 *
 * The client's end is used by calls and hears by `struct wire_calls`; the
 * server's end belongs to the libuv of uv.c.
 *
 * Memory: wires live until net_end().
 */
#ifndef SIM_SERVER_NET_H
#define SIM_SERVER_NET_H

#include "base/bytes.h"
#include "sim/server/world.h"

struct wire;

/* What the client's end, and the record of what happened, hear. */
struct wire_calls {
    void (*connected)(struct wire *wire);
    void (*readable)(struct wire *wire); /* something has arrived */
    void (*ended)(struct wire *wire);    /* closed by the other side, cut, or
                                            never let in; the last call */
    void (*taken)(struct wire *wire);    /* the server has read `up.taken` */
    /* a whole reply was handed over */
    void (*replied)(struct wire *wire, struct hf_bytes reply);
    void (*cut)(struct wire *wire);  /* a reset has come to the server */
    void (*gone)(struct wire *wire); /* and it was told */
    void (*shut)(struct wire *wire); /* the server closes it */
};

struct pipe {
    char *data;       /* bytes taken .. written */
    size_t cap;       /* of data */
    uint64_t taken;   /* read by the other end */
    uint64_t arrived; /* there to be read */
    uint64_t written;
    uint64_t cut_at;     /* breaks behind this byte; UINT64_MAX: not */
    uint64_t arrival_ns; /* of the last piece under way */
    bool fin;            /* nothing more will be written */
    bool fin_arrived;
};

struct wire {
    struct wire *next; /* of all */
    uint64_t number;   /* from 1 */
    struct dice dice;
    const struct wire_calls *calls;
    void *owner;
    struct pipe up;
    struct pipe down;
    uint64_t delay_ns; /* the usual one */
    uint64_t window;   /* bytes down that are not read yet, at most */

    bool local; /* comes from the server's own machine */
    bool six;   /* by IPv6 */
    bool client_closed;
    bool client_ended; /* it was told, or has closed */

    /* the server's end */
    void *tcp;         /* the handle; NULL: not accepted, or closed */
    uint64_t heard_ns; /* when it last read something, or accepted */
    uint64_t sent_ns;  /* when something of what it writes was last taken */
    struct wire *next_waiting;
    bool server_closed; /* or never let in */
    bool reset;         /* a reset has arrived */
    bool reset_told;
    bool eof_told;
    bool broken; /* cut: nothing passes any more */
    char *reply; /* bytes written that are not a whole reply yet */
    size_t reply_len;
    size_t reply_cap;

    /* an unfinished write of the server */
    void *write;
    const char *write_data;
    size_t write_len;
};

/* How the wires of this run behave. */
struct net_mix {
    uint64_t delay_ns;   /* least delay */
    uint64_t delay_max;  /* most */
    uint64_t split;      /* of 1000 writes, so many come in pieces */
    uint64_t cut;        /* of 1000 wires, so many break */
    uint64_t cut_bytes;  /* within so many bytes */
    uint64_t vanish;     /* of 1000 that break, so many hosts vanish */
    uint64_t window_min; /* of the server's socket buffer */
    uint64_t window_max;
    uint64_t refuse; /* of 1000 accepts, so many fail at first */
};

void net_begin(const struct net_mix *mix);
void net_end(void);
/* No more faults on the wires, also on those that are there. */
void net_heal(void);

/* ---- The client's end. ---- */

struct wire *wire_connect(const struct wire_calls *calls, void *owner,
                          bool local);
void wire_write(struct wire *wire, const void *data, size_t len);
/* Nothing more is written; reading goes on. */
void wire_finish(struct wire *wire);
size_t wire_read(struct wire *wire, char *data, size_t len);
/* `reset`: at once, with what is under way lost. */
void wire_close(struct wire *wire, bool reset);

/* ---- The server's end: see uv.c. ---- */

void net_listen(bool on);
/* The one that is to be accepted next. */
struct wire *net_waiting(void);
/* The listener's next accept fails, says the dice. */
bool net_accept_fails(struct wire *wire);
void wire_accept(struct wire *wire, void *tcp);
size_t wire_window(const struct wire *wire);
void wire_send(struct wire *wire, const char *data, size_t len);
size_t wire_take(struct wire *wire, char *data, size_t len);
/* What the server had to write is written, or cannot be. */
void wire_write_end(struct wire *wire);
void wire_shut(struct wire *wire);
/* The machine is off: every wire breaks. */
void net_kill(void);
struct wire *net_first(void);
/* When the server was last rid of something that it owed. */
uint64_t net_owed_ns(void);

#endif
