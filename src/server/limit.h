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

#include <uv.h>

#include "base/bytes.h"
#include "base/heap.h"
#include "holdfast/dedup.h"
#include "holdfast/limiter.h"
#include "server/table.h"

struct conn;
struct config;
struct limit_queue;
struct limit_wait;
struct resp_request;
struct server;

#define LIMIT_RATE_MAX   1000000000u    /* permits, and burst */
#define LIMIT_PER_MAX_MS 4000000000000u /* 126 years */
#define LIMIT_SLOTS_MAX  10000u         /* permits of LOG and LEASES */
#define LIMIT_TOP_MAX    100u           /* rows of LIMIT TOP */

/* What one LIMIT asks for. Texts are the request's. */
struct limit_call {
    struct hf_limiter_ask asks[HF_LIMITER_ASKS_MAX];
    uint32_t count;
    struct hf_limiter_rule own; /* of RATE ... PER */
    bool has_own;
    bool has_policy;
    bool plain; /* nothing but RATE, PER, BURST and COST: a short reply */
    char policy[HF_NAME_BYTES]; /* the first one's name */
    bool peek;
    bool headers;
    bool refund;
    uint64_t refund_ns; /* `taken` of the call that is undone */
    uint64_t cost;
    uint64_t priority;
    uint64_t hold_ms;
    uint64_t wait_ms;
    struct hf_bytes request; /* REQ */
};

/* What a call waits for. */
struct limit_turn {
    uint64_t id;     /* of the pair that denied: flow/limiter_watch.h */
    uint64_t class;  /* those who want the same of it wait in one queue */
    uint64_t due_ns; /* when it can succeed, if nobody else takes */
};

#define LIMIT_STRIPES 1024u

struct limits {
    struct hf_limiter *limiter;
    struct hf_dedup *seen;     /* REQ ids, with their answers */
    struct hf_buf body;        /* a reply being made */
    struct hf_heap waits;      /* when each parked call is made again */
    struct limit_wait **calls; /* parked, by number; NULL: free */
    uint32_t call_count;       /* places there are */
    uint32_t call_free;        /* those below it are taken */
    uint64_t order;            /* of those that are due at once */
    size_t wait_bytes;         /* of the heap */
    struct limit_queue *queues[LIMIT_STRIPES]; /* by id */
    uv_timer_t timer;
};

/* HF_NOMEM. The loop is open. */
enum hf_status limits_open(struct limits *limits, struct server *server);
void limits_close(struct limits *limits);
/* The connection goes: its parked call is forgotten. */
void limits_leave(struct server *server, struct conn *conn);
/* The server stops: those who wait are told what they would be told now. */
void limits_end_waits(struct server *server);

/* limit_parse.c: the words behind LIMIT, or an error. */
enum hf_status limit_parse(struct limits *limits, const struct hf_bytes *args,
                           size_t count, struct limit_call *out,
                           char error[PARSE_ERROR_MAX]);
/* The words behind LIMIT DEFINE name. */
enum hf_status limit_parse_rule(const struct hf_bytes *args, size_t count,
                                struct hf_limiter_rule *out,
                                char error[PARSE_ERROR_MAX]);
const char *limit_kind_name(enum hf_rate_kind kind);

/* limit_wait.c: parks the call at the end of its queue. HF_NOMEM. */
enum hf_status limit_park(struct server *server, struct conn *conn,
                          const struct resp_request *request,
                          const struct limit_turn *turn, uint64_t deadline_ns);
/* True if others wait for the same. */
bool limit_queued(const struct limits *limits, const struct limit_turn *turn);
/* Those who wait for it are to look again; LIMITER_WATCH_ALL: everybody. */
void limit_freed(void *server, uint64_t id);
/* limit.c: makes a parked call again; `last`: it waits no more. False: it is
 * to wait on, and `turn` says for what. */
bool limit_again(struct server *server, struct conn *conn,
                 struct resp_request *request, uint64_t deadline_ns, bool last,
                 struct limit_turn *turn);

/* Commands. */
void limit_take(struct server *server, struct conn *conn,
                struct resp_request *request);
void limit_define(struct server *server, struct conn *conn,
                  struct resp_request *request);
void limit_drop(struct server *server, struct conn *conn,
                struct resp_request *request);
void limit_policies(struct server *server, struct conn *conn,
                    struct resp_request *request);
void limit_settle(struct server *server, struct conn *conn,
                  struct resp_request *request);
void limit_top(struct server *server, struct conn *conn,
               struct resp_request *request);
void limit_cell(struct server *server, struct conn *conn,
                struct resp_request *request);
void limit_gcra(struct server *server, struct conn *conn,
                struct resp_request *request);

#endif
