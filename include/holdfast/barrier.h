/* barrier.h - cyclic barrier: a party of threads meets, again and again.
 *
 * Each of `parties` threads comes to the barrier and waits there for the
 * others. The last one runs the action, if there is one, and then all go on:
 *
 *   A  work |wait ........| work     |wait .....
 *   B  work    |wait .....| work        |wait ..
 *   C  work         |wait | work  |wait ........
 *                    action
 *      generation 0         generation 1
 *
 * All of a generation go on, or none does: if one of them gives up (time-out,
 * break, reset, shutdown), the barrier is broken, those who are there leave
 * with HF_CANCELLED, and so does whoever comes, until hf_barrier_reset().
 *
 *        63        20 19    18      17     16 15       0
 *       +------------+----+-------+--------+-+----------+
 *       | generation | -  | reset | broken |s| arrived  |   s: shut down
 *       +------------+----+-------+--------+-+----------+
 *
 * A reset barrier starts its next generation when the last of the broken one
 * has left; who comes in between waits for that.
 *
 * Threads: every call but init and destroy may overlap every other. More
 *          threads than parties may come; each belongs to one generation.
 * Memory:  the caller owns `struct hf_barrier`; no call allocates. It may go
 *          when nobody is inside a call.
 * Time:    deadlines are absolute, by the clock given to init.
 * What a thread wrote before it came is seen by the action and by all who go
 * on; what the action wrote is seen by all who go on.
 *
 *   linearizable  all or none  wakes   lock-free                 allocates
 *   yes           yes          all     break, reset, shutdown    no
 *
 * Example:
 *
 *   struct hf_barrier barrier;
 *   struct hf_barrier_opts opts = {.parties = 1};
 *   uint32_t index = 7;
 *   assert(hf_barrier_init(&barrier, &opts) == HF_OK);
 *   assert(hf_barrier_wait(&barrier, HF_FOREVER, &index) == HF_OK);
 *   assert(index == 0);
 *   hf_barrier_destroy(&barrier);
 */
#ifndef HOLDFAST_BARRIER_H
#define HOLDFAST_BARRIER_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/event.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_BARRIER_PARTIES_MAX 65535u

struct hf_barrier {                /* (i) immutable after init  (a) atomic */
    struct hf_atomic_u64 state;    /* (a) see the drawing above */
    struct hf_event event;         /* (a) those who wait */
    uint32_t parties;              /* (i) */
    void (*action)(void *context); /* (i) */
    void *context;                 /* (i) */
    const struct hf_clock *clock;  /* (i) */
};

struct hf_barrier_opts {
    uint32_t parties; /* 1 .. HF_BARRIER_PARTIES_MAX */
    /* Run by the last of each generation before the others go on, outside
     * locks. It must not come to the same barrier. NULL: none. */
    void (*action)(void *context);
    void *context;
    const struct hf_clock *clock; /* NULL: the system's */
};

struct hf_barrier_stats {
    uint64_t generation; /* how many have ended: gone on or reset */
    uint32_t parties;
    uint32_t arrived; /* wait for the others */
    bool broken;
    bool shutdown;
};

/* HF_INVALID: an argument is NULL, or parties is out of range. */
enum hf_status hf_barrier_init(struct hf_barrier *barrier,
                               const struct hf_barrier_opts *opts);
/* The memory may go. Nobody may be inside a call. */
void hf_barrier_destroy(struct hf_barrier *barrier);

/* Comes to the barrier and waits for the rest. HF_OK: all came, and `index`
 * (may be NULL) tells as which of them we did: 0 .. parties - 1, the last one
 * ran the action.
 * HF_TIMEOUT: they did not by the deadline; the barrier is broken by that,
 * unless we could not even be counted, since the action of those before us
 * was running or they were leaving.
 * HF_CANCELLED: the barrier is or was broken. HF_CLOSED: it was shut down. */
enum hf_status hf_barrier_wait(struct hf_barrier *barrier, uint64_t deadline_ns,
                               uint32_t *index);

/* For a party that will not come: the others leave with HF_CANCELLED. */
void hf_barrier_break(struct hf_barrier *barrier);
/* Whoever waits leaves with HF_CANCELLED, and a new generation begins.
 * HF_CLOSED after shutdown. */
enum hf_status hf_barrier_reset(struct hf_barrier *barrier);
/* For good: waiters leave with HF_CLOSED and so does whoever comes. From any
 * thread, any number of times. */
void hf_barrier_shutdown(struct hf_barrier *barrier);

void hf_barrier_stats(const struct hf_barrier *barrier,
                      struct hf_barrier_stats *out);

#ifdef __cplusplus
}
#endif

#endif
