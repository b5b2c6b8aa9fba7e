/* load.h - many connections from one thread, each with one request in flight.
 *
 * The frame of the clients that measure etcd and ZooKeeper: the same shape as
 * `holdfast bench` (one thread, epoll, blocking on nothing else), so that the
 * client costs every server about the same. A protocol tells how to greet, how
 * to begin a cycle and what to do with bytes that arrive:
 *
 *   connect -> greet ... load_ready() -> begin ... load_done() -> begin ...
 *                                          ^ timed from here
 *
 * A cycle is one lock and its unlock. In the hand-off work every client wants
 * the same lock: what is timed is from the release that leaves one client to
 * the grant that reaches the next.
 *
 * Threads: one. Errors end the process with a message.
 */
#ifndef BENCH_PEERS_LOAD_H
#define BENCH_PEERS_LOAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct load_client {
    int fd;
    uint32_t number;
    struct hf_buf in;
    struct hf_buf out; /* sent when the protocol's call returns */
    uint64_t begun_ns;
    uint64_t grants; /* hand-off: how many there were when it gave back */
    bool resting;    /* hand-off: until another has the lock */
    void *state;     /* the protocol's */
};

struct load_protocol {
    const char *name;
    const char *recipes; /* what --recipe may be, with spaces around each */
    size_t state_bytes;  /* zeroed, for each client */
    /* Connected: ask for what a client needs first. */
    void (*greet)(struct load_client *client);
    /* Ask for the lock; load_granted() tells that it is there. */
    void (*begin)(struct load_client *client);
    /* Give it back; load_done() tells that this was answered. */
    void (*release)(struct load_client *client);
    /* The last cycle is over: give back what greet asked for. */
    void (*leave)(struct load_client *client);
    /* Takes whole messages from the front of `in`; returns the bytes taken. */
    size_t (*take)(struct load_client *client, const unsigned char *data,
                   size_t len);
};

/* What the command line said, for the protocols. */
struct load_opts {
    const char *host;
    const char *recipe;
    uint16_t port;
    uint32_t clients;
    uint32_t seconds;
    uint32_t warmup;  /* seconds before that */
    bool handoff;     /* all on one lock */
    uint32_t hold_us; /* and how long each one keeps it */
};

const struct load_opts *load_opts(void);

/* The client has what it needs. */
void load_ready(struct load_client *client);
/* The lock is held: release is called at once or, in the hand-off work, when
 * it was held for a while. */
void load_granted(struct load_client *client);
/* The release leaves with the bytes now in `out`. */
void load_released(struct load_client *client);
/* The release was answered: the cycle is over. */
void load_done(struct load_client *client);

void load_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));

/* Appends, or ends the process without memory. */
void load_put(struct hf_buf *out, const void *data, size_t len);
void load_put_u8(struct hf_buf *out, uint8_t number);
void load_put_be32(struct hf_buf *out, uint32_t number);
void load_put_be64(struct hf_buf *out, uint64_t number);
uint32_t load_get_be32(const unsigned char *data);
uint64_t load_get_be64(const unsigned char *data);

/* Parses the command line, runs, prints one line of JSON. */
int load_main(int argc, char **argv, const struct load_protocol *protocol);

#endif
