/* breaker.h - circuit breaker: stop calling what does not answer.
 *
 *             too many failures
 *    CLOSED --------------------> OPEN <-------------.
 *      ^    all calls pass         |  none passes     | a probe failed,
 *      |                           | open_ns later,   | or was never heard of
 *      |                           v  at a call       |
 *      '------------------------ HALF_OPEN -----------'
 *         all `probes` came back    `probes` calls pass, never more
 *
 * A caller asks before each call and tells afterwards how it went:
 *
 *   CLOSED trips by failures in a row, or by the share of failures (and, if
 *   asked, of slow calls) among the last `window_calls` calls or those of the
 *   last `window_ns`. What a call does is held against the state in which it
 *   began and no other: one that began before the breaker tripped neither
 *   closes it nor opens it again.
 *
 * Example:
 *
 *   struct hf_breaker *breaker;
 *   struct hf_breaker_opts opts = {.failures_max = 2, .open_ns = 1000};
 *   struct hf_breaker_call call;
 *   uint64_t now_ns = 5; // from the caller's clock
 *
 *   assert(hf_breaker_new(&breaker, &opts) == HF_OK);
 *   for (int i = 0; i < 2; i++) {
 *       assert(hf_breaker_enter(breaker, now_ns, &call) == 0);
 *       // ... the call is made and fails ...
 *       hf_breaker_leave(breaker, &call, HF_BREAKER_FAILED, now_ns);
 *   }
 *   assert(hf_breaker_enter(breaker, now_ns, &call) == 1000); // not now
 *   assert(hf_breaker_enter(breaker, now_ns + 1000, &call) == 0); // a probe
 *   hf_breaker_leave(breaker, &call, HF_BREAKER_WORKED, now_ns + 1000);
 *   assert(hf_breaker_state(breaker) == HF_BREAKER_CLOSED);
 *   hf_breaker_free(breaker);
 *
 * Threads: any call from any thread, except free. enter() takes no lock while
 *          the breaker is closed, or open and not due; leave() takes a short
 *          one. The listener runs outside it, in the thread whose call changed
 *          the state.
 * Memory:  new allocates, free frees, no other call does either.
 * Time:    the caller passes `now_ns` from one monotonic clock. An older now_ns
 *          than others had opens nothing sooner.
 *
 *   linearizable  exact                       lock-free      allocates
 *   yes           never more than `probes`    enter, closed  no
 *                 per half-open state; one    or open
 *                 listener call per change
 */
#ifndef HOLDFAST_BREAKER_H
#define HOLDFAST_BREAKER_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What hf_breaker_enter() returns when no wait helps: the breaker is forced
 * open. */
#define HF_BREAKER_NEVER UINT64_MAX

#define HF_BREAKER_WINDOW_CALLS_MAX 1000000u
#define HF_BREAKER_PROBES_MAX       1000000u

struct hf_breaker;

enum hf_breaker_state {
    HF_BREAKER_CLOSED,
    HF_BREAKER_OPEN,
    HF_BREAKER_HALF_OPEN,
    HF_BREAKER_FORCED_OPEN, /* by hf_breaker_force, until it is called again */
    HF_BREAKER_FORCED_CLOSED, /* the same: counts, and never trips */
};

enum hf_breaker_outcome {
    HF_BREAKER_WORKED,
    HF_BREAKER_FAILED,
    HF_BREAKER_IGNORED, /* says nothing about the other side: not counted */
};

struct hf_breaker_change {
    enum hf_breaker_state from;
    enum hf_breaker_state to;
    uint64_t sequence; /* 1 for the first change, then one more for each */
    uint64_t now_ns;   /* of the call that changed it */
};

struct hf_breaker_opts {
    const char *name;         /* for hf_inspect; copied */
    uint32_t failures_max;    /* in a row that trip; 0: not by these */
    uint32_t failure_percent; /* share that trips, 1 .. 100; 0: 50, or not at
                                 all if failures_max is set */
    uint32_t slow_percent;    /* the same for slow calls; 0: they do not trip,
                                 and a slow probe has worked */
    uint64_t slow_ns;         /* a call that took so long or longer is slow;
                                 needed if slow_percent is set */
    uint32_t window_calls;    /* 0: 100 */
    uint64_t window_ns;       /* 0: by window_calls. Else the calls that ended
                                 in this time, in steps of a tenth of it */
    uint32_t calls_min;       /* before a share trips; 0: 10, or window_calls */
    uint32_t probes;          /* 0: 1 */
    uint64_t probe_ns;        /* a probe that is not heard of for so long has
                                 failed; 0: 60 s */
    uint64_t open_ns;         /* 0: 30 s */
    uint64_t open_max_ns;     /* each time it opens again without having been
                                 closed, open_ns doubles up to this; 0: it
                                 stays */
    bool spread;              /* it is open for half to all of that time, at
                                 random: many breakers do not probe at once */
    uint64_t seed;            /* for spread; as in backoff.h */
    /* Called once per change of state, outside any lock, by the thread that
     * caused it. Two changes by two threads may be told at once or in the
     * other order: `sequence` tells. NULL: nobody is told. */
    void (*on_change)(void *context, const struct hf_breaker_change *change);
    void *context;
};

/* What a call carries from enter to leave; the library's. */
struct hf_breaker_call {
    uint64_t state; /* word of the breaker when it began */
    uint64_t began_ns;
};

struct hf_breaker_stats {
    enum hf_breaker_state state;
    uint64_t worked; /* calls that ended so, ever; slow ones included */
    uint64_t failed;
    uint64_t ignored;
    uint64_t slow;
    uint64_t late;     /* of these: ended in another state than they began in */
    uint64_t refused;  /* by enter */
    uint64_t trips;    /* closed or half-open to open */
    uint64_t lost;     /* half-open ended because a probe was not heard of */
    uint64_t until_ns; /* open: when the first probe may go; else 0 */
    uint32_t window_calls; /* in the window now, and of these: */
    uint32_t window_failed;
    uint32_t window_slow;
    uint32_t failures; /* in a row */
    uint32_t probes;   /* half-open: let through so far */
};

/* NULL options: all defaults. HF_INVALID: breaker is NULL, a share above 100,
 * slow_percent without slow_ns, calls_min above window_calls (if that counts),
 * window_calls or probes above its maximum, window_ns below 10, open_max_ns
 * below open_ns. HF_NOMEM. */
enum hf_status hf_breaker_new(struct hf_breaker **breaker,
                              const struct hf_breaker_opts *opts);
/* Nobody may be inside a call; NULL does nothing. */
void hf_breaker_free(struct hf_breaker *breaker);

/* May a call be made? 0: yes, and `call` must be given to hf_breaker_leave()
 * when it has ended. Otherwise the nanoseconds after which asking again may
 * help, at the latest, or HF_BREAKER_NEVER (also for a NULL argument); `call`
 * is then not written. */
uint64_t hf_breaker_enter(struct hf_breaker *breaker, uint64_t now_ns,
                          struct hf_breaker_call *call);
/* The call has ended. Once for each enter that returned 0. HF_INVALID: an
 * argument is NULL or no outcome. */
enum hf_status hf_breaker_leave(struct hf_breaker *breaker,
                                const struct hf_breaker_call *call,
                                enum hf_breaker_outcome outcome,
                                uint64_t now_ns);

/* Some instant between call and return. NULL: closed. */
enum hf_breaker_state hf_breaker_state(const struct hf_breaker *breaker);
/* Whatever the state was: CLOSED starts anew with an empty window, OPEN trips
 * it, FORCED_OPEN and FORCED_CLOSED stay until the next force. HF_INVALID:
 * NULL, or any other state. */
enum hf_status hf_breaker_force(struct hf_breaker *breaker,
                                enum hf_breaker_state state, uint64_t now_ns);

void hf_breaker_stats(const struct hf_breaker *breaker,
                      struct hf_breaker_stats *out);

#ifdef __cplusplus
}
#endif

#endif
