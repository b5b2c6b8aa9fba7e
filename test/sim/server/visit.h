/* visit.h - one connection of a client, and what was asked on it. */
#ifndef SIM_SERVER_VISIT_H
#define SIM_SERVER_VISIT_H

#include "sim/server/hearing.h"
#include "sim/server/net.h"

struct client;

struct call {
    uint64_t id;       /* 0: not a request: garbage that gets an error */
    uint64_t end;      /* its last byte in the stream */
    uint64_t taken_ns; /* when the server had read that */
    uint64_t taken_at; /* the newest event then */
    bool alone;        /* nothing before it was unanswered then */
    bool answered;
    bool queued; /* behind MULTI */
    struct words words;
    struct words *group; /* of its EXEC, all of it; or NULL */
};

struct visit {
    struct visit *next; /* of all */
    struct client *client;
    struct wire *wire;
    struct call **calls;
    size_t count;
    size_t cap;
    size_t taken;    /* calls that the server has read */
    size_t replied;  /* that it has answered */
    size_t answered; /* whose answers arrived */
    char *in;        /* an answer that is not whole */
    size_t in_len;
    size_t in_cap;
    uint64_t stream; /* bytes sent */
    struct hearing hearing;
    bool open; /* the client has it */
    bool connected;
    bool multi;       /* it has sent MULTI, and not what ends it */
    bool finished;    /* it sends no more */
    bool slow;        /* reads a little at a time */
    bool reading;     /* its next read is planned */
    bool gone;        /* the server could know that it is */
    uint64_t sip_ns;  /* not 0: so long between two reads of a little */
    uint32_t sips;    /* so far */
    uint64_t deaf_ns; /* until then it reads nothing */
};

/* What a client hears of its visit. */
struct visit_calls {
    void (*answered)(struct visit *visit, struct call *call,
                     struct hf_bytes reply);
    void (*connected)(struct visit *visit);
    void (*ended)(struct visit *visit);
};

void visits_begin(const struct visit_calls *calls);
void visits_end(void);
void visits_heal(void);
/* The server may close any connection: it stops, or has no memory. One that
 * stops takes no more requests. */
void visits_excuse(bool on, bool stops);
/* What the server was told: how long one may be silent, 0: for ever; and that
 * there may be no room for everybody. */
void visits_bounds(uint64_t idle_ns, bool full);
struct visit *visit_open(struct client *client, bool local, bool slow);
/* Sends a request, or all of a group; returns how many that is. `inline_`: as a
 * line, if it can be one. */
uint64_t visit_ask(struct visit *visit, const struct words *words,
                   bool inline_);
/* What is to be asked if it is asked again, because it has a REQ; NULL: it has
 * none. */
const struct words *call_again(const struct call *call);
/* Sends bytes that are no request. */
void visit_send(struct visit *visit, const char *data, size_t len);
/* More than the server takes behind a request that waits. */
void visit_flood(struct visit *visit);
void visit_finish(struct visit *visit);
void visit_close(struct visit *visit, bool reset);
/* What is no request, and perhaps not enough of one, is unanswered; or it waits
 * for ever. */
bool visit_is_stuck(const struct visit *visit);
/* Calls without an answer. */
size_t visit_open_calls(const struct visit *visit);
/* The server has stopped cleanly after it was asked to at that time: whoever
 * had one request read by then has its answer. */
void visits_stopped(uint64_t asked_ns);
/* The journal failed at that time, a while ago: the same. */
void visits_failed(uint64_t failed_ns);
uint64_t visits_next_id(void);
/* What no server may do; NULL: nothing of that kind. */
const char *visits_wrong(void);

#endif
