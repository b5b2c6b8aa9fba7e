/* load.h - workers that load a server and remember what they were told.
 *
 *                    sent          answered
 *   worker  ---- o---o---o---o   x   x  |
 *                                       | kill -9
 *           told: the model             |
 *           unanswered: `flight`, in the order in which it was sent
 *
 * Each worker has one connection, some things of its own (a product, a
 * reservation's id, a fenced resource) and shares locks and products with the
 * others. What the server answers goes into the worker's model at once; what
 * it did not answer stays in `flight`. Commands that are under way together
 * never touch the same lock or reservation, so that each of them can be
 * recognised afterwards as done or not done.
 *
 * Threads: a worker belongs to one thread at a time.
 */
#ifndef TEST_SUPPORT_LOAD_H
#define TEST_SUPPORT_LOAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/random.h"
#include "support/wire.h"

#define LOAD_WORKERS  6
#define LOAD_LOCKS    8
#define LOAD_SKUS     8
#define LOAD_STOCK    400 /* units of each shared product at first */
#define LOAD_SLOTS    512
#define LOAD_ITEMS    3
#define LOAD_GRANTS   8192
#define LOAD_FLIGHT   12
#define LOAD_REPEATS  4 /* answered requests that are asked again */
#define LOAD_SHORT_MS 3600000
#define LOAD_LONG_MS  7200000
#define LOAD_ADD_MAX  5
#define LOAD_TOTALS   (LOAD_WORKERS * LOAD_FLIGHT * LOAD_ADD_MAX + 1)

enum load_kind {
    LOAD_LOCK,
    LOAD_UNLOCK,
    LOAD_RENEW,
    LOAD_FENCE,
    LOAD_SET,
    LOAD_ADD,
    LOAD_RESERVE,
    LOAD_CONFIRM,
    LOAD_CANCEL,
    LOAD_EXTEND,
};

struct load_op {
    enum load_kind kind;
    int object;      /* a lock, a shared product or a slot */
    uint64_t amount; /* of a set or add; a token */
    uint64_t sent_ns;
    bool repeatable; /* it carries a REQ */
    char text[256];
};

/* What a worker knows of its hold on a lock. */
struct load_hold {
    uint64_t token;
    int64_t count; /* 0: not held */
    bool renewed;  /* to LOAD_LONG_MS, at some time */
    bool doubtful; /* timed out while the disk hung: perhaps granted after
                      all, and to be left alone for the rest of the round */
    int grant;     /* where the grant is written down */
};

enum load_status {
    LOAD_FREE,
    LOAD_ASKED,
    LOAD_PENDING,
    LOAD_CONFIRMED,
    LOAD_CANCELLED,
};

struct load_slot { /* a reservation */
    enum load_status status;
    bool extended;
    char id[64]; /* "": the server will make one */
    int item_count;
    int sku[LOAD_ITEMS];
    int64_t quantity[LOAD_ITEMS];
};

struct load_grant {
    uint64_t token;
    int lock;
    uint64_t sent_ns;
    uint64_t told_ns;
    uint64_t left_ns; /* when its last UNLOCK was sent; UINT64_MAX: never */
};

struct load_repeat { /* an answered request, to be asked again */
    char text[256];
    struct hf_buf answer;
};

struct load_worker {
    int index;
    struct hf_random random;
    struct test_wire wire;
    struct load_hold holds[LOAD_LOCKS];
    struct load_slot slots[LOAD_SLOTS];
    int64_t added[LOAD_SKUS]; /* told, this round */
    uint64_t own_total;       /* of its own product */
    uint64_t fence;           /* newest token told to be seen */
    uint64_t fence_next;      /* never used before */
    uint64_t own_next;        /* the same for its own product's total */
    uint64_t id_next;         /* the same for ids */
    struct load_op flight[LOAD_FLIGHT];
    int flight_count;
    struct load_repeat repeats[LOAD_REPEATS];
    uint64_t repeat_count;
    struct load_grant grants[LOAD_GRANTS];
    int grant_count;
    uint64_t kinds[LOAD_EXTEND + 1]; /* told, by kind, over all rounds */
    uint64_t refused;                /* BUSY, TIMEOUT, SHORT */
    char failure[512];               /* "": everything was as it may be */
};

struct load {
    struct load_worker workers[LOAD_WORKERS];
    uint16_t port;
    pid_t pid;          /* ended when `target` answers have come */
    uint64_t target;    /* 0: at once */
    uint64_t linger_ns; /* then so much later */
    atomic_ulong told;  /* answers of this round */
};

/* All empty; the seed decides everything that the workers will ask. */
void test_load_init(struct load *load, uint64_t seed);
void test_load_release(struct load *load);
/* Sets up the products on a new server. */
void test_load_prepare(struct load *load, struct test_wire *wire);

/* One burst on all connections, until the server has been killed. */
void test_load_run(struct load *load);

/* Puts an answer into the worker's model, as the worker does for its own.
 * False: the answer may not be; `failure` says why. */
bool test_load_told(struct load_worker *worker, const struct load_op *op,
                    struct hf_bytes reply);
/* Is it the time-out of a lock that a hanging disk held up? The lock may still
 * be granted, and is then given back at once. */
bool test_load_doubtful(struct hf_bytes reply);
/* Writes down that a lock was given, as of now. */
void test_load_granted(struct load_worker *worker, const struct load_op *op,
                       uint64_t token);
/* Judges all grants that were written down, and forgets them: tokens are above
 * `*newest`, which moves on, and no two of one lock overlap. False: `*wrong`
 * may not have been given. */
bool test_load_grants_ok(struct load *load, uint64_t *newest,
                         struct load_grant *wrong);
/* Marks by how much a product's total may exceed what was told: for each
 * worker by the first so many of its additions that nobody answered.
 * `possible` has LOAD_TOTALS places. */
void test_load_totals(const struct load *load, int sku, bool *possible);
/* Has every kind of command been answered, and some with a refusal? */
bool test_load_met_all(const struct load *load);
/* Does the slot hold what the reply tells of the reservation? */
bool test_load_same_items(const struct load_slot *slot, struct hf_bytes reply);

#endif
