/* limit.h - LIMIT and its kin: the limiter of the library, over the wire.
 *
 *   LIMIT key RATE n PER ms ...     numbers that come with the call
 *   LIMIT key POLICY a,b ...        policies that were defined before
 *   LIMIT DEFINE | DROP | POLICIES | SETTLE | TOP
 *   CL.THROTTLE, GCRA               as redis-cell and Redis have them
 *
 * Limits are not journaled: a decision costs no disk, and a restart gives every
 * key a full bucket. A call that may wait is parked with a copy of its words,
 * in the queue of what it waits for. The first of a queue is made again when
 * its time has come, or when something is given back:
 *
 *   LIMIT ... WAIT ms --> denied, retry in 30 ms --> parked --> again --> reply
 *                                                                 '--> next
 *
 * Threads: the loop's.
 */
#ifndef SERVER_LIMIT_H
#define SERVER_LIMIT_H

#include "base/bytes.h"
#include "hold/bounds.h"
#include "holdfast/dedup.h"
#include "holdfast/limiter.h"
#include "server/table.h"
#include "server/waits.h"

struct conn;
struct config;
struct limit_queue;
struct resp_request;
struct server;

#define LIMIT_SLOTS_MAX 10000u /* permits of LOG and LEASES */
#define LIMIT_TOP_MAX   100u   /* rows of LIMIT TOP */

/* What the commands about limits may carry. */
struct limit_words {
    struct hf_bytes key;
    struct hf_bytes name;
    struct hf_bytes request; /* REQ */
    uint64_t rate;
    uint64_t per_ms;
    uint64_t burst;
    uint64_t cost;
    uint64_t priority;
    uint64_t refund_ns; /* `taken` of the call that is undone; 0: none */
    uint64_t hold_ms;
    uint64_t wait_ms;
    uint64_t hold;
    uint64_t count;
    int64_t max_burst; /* of CL.THROTTLE and GCRA, from here on */
    int64_t permits;
    int64_t period_s;
    int64_t quantity;
};

/* What one LIMIT asks for. Texts are the request's. */
struct limit_call {
    struct hf_limiter_ask asks[HF_LIMITER_ASKS_MAX];
    uint32_t count;
    struct hf_limiter_rule own; /* of RATE ... PER */
    bool plain; /* nothing but RATE, PER, BURST and COST: a short reply */
    char policy[HF_NAME_BYTES]; /* the first one's name */
    bool peek;
    bool headers;
    struct limit_words words;
};

/* What a call waits for. */
struct limit_turn {
    uint64_t id;     /* of the pair that denied: hf_limiter_watch() */
    uint64_t class;  /* those who want the same of it wait in one queue */
    uint64_t due_ns; /* when it can succeed, if nobody else takes */
};

#define LIMIT_STRIPES 1024u

struct limits {
    struct hf_limiter *limiter;
    struct hf_dedup *seen;                     /* REQ ids, with their answers */
    struct limit_queue *queues[LIMIT_STRIPES]; /* by id */
};

/* HF_NOMEM. */
enum hf_status limits_open(struct limits *limits, struct server *server);
void limits_close(struct limits *limits);

/* limit_parse.c: their arguments. */
extern const struct shape limit_take_shape, limit_define_shape,
    limit_drop_shape, limit_policies_shape, limit_settle_shape, limit_top_shape,
    limit_cell_shape, limit_gcra_shape;
/* Of those but LIMIT and LIMIT DEFINE, or an error. What is not given
 * stays as it is in `out`; `*at` is behind the argument that was wrong. */
enum hf_status limit_parse_words(const struct shape *shape,
                                 const struct asked *asked,
                                 struct limit_words *out, size_t *at,
                                 char error[PARSE_ERROR_MAX]);
/* The words behind LIMIT, or an error. */
enum hf_status limit_parse(struct limits *limits, const struct hf_bytes *args,
                           size_t count, struct limit_call *out,
                           char error[PARSE_ERROR_MAX]);
/* A hash of these words, once they were parsed: the same whatever the case of
 * names of options and algorithms. */
uint64_t limit_hash(const struct hf_bytes *args, size_t count,
                    const struct limit_call *call);
/* The words behind LIMIT DEFINE. */
enum hf_status limit_parse_rule(const struct hf_bytes *args, size_t count,
                                struct hf_bytes *name,
                                struct hf_limiter_rule *out,
                                char error[PARSE_ERROR_MAX]);
const char *limit_kind_name(enum hf_rate_kind kind);

/* Takes permits, and nothing else? Such a one may be in a group. */
bool limit_is_simple(const struct limit_call *call);
/* limit.c: makes the call of a group, with a hold. The reply is written to
 * `answer` as the engine writes its own. False: `error` says why not. `*hold`
 * 0: nothing to settle. */
bool limit_hold(struct server *server, const struct hf_bytes *args,
                size_t count, uint64_t hold_ns, struct hf_buf *answer,
                uint64_t *hold, uint64_t *cost, char error[PARSE_ERROR_MAX]);

/* limit_wait.c: parks the call at the end of its queue. HF_NOMEM. */
enum hf_status limit_park(struct server *server, struct conn *conn,
                          const struct resp_request *request,
                          const struct limit_turn *turn, uint64_t deadline_ns);
/* True if others wait for the same. */
bool limit_queued(const struct limits *limits, const struct limit_turn *turn);
/* Those who wait for it are to look again; HF_LIMITER_WATCH_ALL: everybody. */
void limit_freed(void *server, uint64_t id);
/* What can happen to one who waits: see waits.h. At a stop it is told what it
 * would be told now. */
wait_fn limit_wait_again, limit_wait_left;
/* limit.c: makes a parked call again; `last`: it waits no more. False: it is
 * to wait on, and `turn` says for what. */
bool limit_again(struct server *server, struct conn *conn,
                 struct resp_request *request, uint64_t deadline_ns, bool last,
                 struct limit_turn *turn);

/* The call will be made soon: what it will look at is brought near. */
expect_fn limit_expect;
command_fn limit_take, limit_define, limit_drop, limit_policies, limit_settle,
    limit_top, limit_cell, limit_gcra;

#endif
