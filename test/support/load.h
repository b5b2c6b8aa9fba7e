/* load.h - workers that load a server; all that they are told is written down.
 *
 *   worker  ---- o---o---o---o   x   x  |            o asked, answered
 *                                       | kill -9    x asked, no answer
 *           every call and every answer goes to one history; the checker
 *           (history/history.h) says afterwards whether that can be
 *
 * Each worker has one connection at a time and asks for what it knows of: it
 * remembers the tokens and ids that it was told, to use them, not to judge.
 * What it cannot be sure of (a lost answer) it asks about again later.
 *
 * Threads: a worker belongs to one thread at a time; the history has a lock.
 */
#ifndef TEST_SUPPORT_LOAD_H
#define TEST_SUPPORT_LOAD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/random.h"
#include "history/history.h"
#include "support/wire.h"

#define LOAD_WORKERS 6
#define LOAD_LOCKS   8
/* Those that are not exclusive, or not always: */
#define LOAD_SHARED_LOCK  4
#define LOAD_PERMITS_LOCK 5
#define LOAD_SET_LOCK     6 /* with the next one */
#define LOAD_SKUS         8
#define LOAD_STOCK        400 /* units of each shared product at first */
#define LOAD_FLIGHT       12
#define LOAD_GROUPED      4  /* calls of a group */
#define LOAD_IDS          64 /* reservations that a worker remembers */
#define LOAD_REPEATS      16 /* requests that may be asked again */
#define LOAD_TEXT         256

enum load_kind {
    LOAD_LOCK,
    LOAD_UNLOCK,
    LOAD_RENEW,
    LOAD_LOCKINFO,
    LOAD_FENCE,
    LOAD_SET,
    LOAD_ADD,
    LOAD_GET,
    LOAD_RESERVE,
    LOAD_CONFIRM,
    LOAD_CANCEL,
    LOAD_EXTEND,
    LOAD_RESERVATION,
    LOAD_LIMIT,
    LOAD_REPEAT,
    LOAD_GROUP, /* MULTI to EXEC, each a call */
    LOAD_TRACE, /* leaves a trace of its own, so that its order can be seen */
    LOAD_SESSION,
    LOAD_KINDS,
};

struct load_op {
    enum load_kind kind;
    int object; /* a lock, or the place of a reservation's id */
    uint64_t id;
    char text[LOAD_TEXT];
};

struct load_worker {
    int index;
    uint32_t client; /* its connection's number in the history */
    struct hf_random random;
    struct test_wire wire;
    uint64_t tokens[LOAD_LOCKS]; /* 0: none was told */
    uint64_t set;                /* the token of LOAD_SET_LOCK if it is a set */
    uint64_t session;            /* 0: none was told */
    char ids[LOAD_IDS][64];      /* "": free */
    char repeats[LOAD_REPEATS][LOAD_TEXT];
    uint64_t next; /* a number for a name, never used before */
    char group[LOAD_GROUPED][LOAD_TEXT]; /* the last with a REQ */
    struct load_op flight[LOAD_FLIGHT * LOAD_GROUPED];
    int flight_count;             /* not answered */
    uint64_t answers[LOAD_KINDS]; /* by kind, over all rounds */
    uint64_t refusals;
};

struct load {
    struct load_worker workers[LOAD_WORKERS];
    pthread_mutex_t mutex;
    struct history *history; /* (m) */
    uint64_t id;             /* (m) the last call */
    uint32_t client;         /* the last connection */
    uint16_t port;
    pid_t pid;          /* ended when `target` answers have come */
    uint64_t target;    /* 0: at once */
    uint64_t linger_ns; /* then so much later */
    atomic_ulong told;  /* answers of this round */
};

/* All empty; the seed decides everything that the workers will ask. */
void test_load_init(struct load *load, uint64_t seed);
void test_load_destroy(struct load *load);

/* Writes down. */
void test_load_mark(struct load *load, uint32_t client,
                    enum history_event event);
/* Asks on a connection of the test's own, and writes both down. The test fails
 * if there is no answer. */
struct hf_bytes test_load_ask(struct load *load, struct test_wire *wire,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* One burst on all connections, until the server has been killed. */
void test_load_run(struct load *load);

#endif
