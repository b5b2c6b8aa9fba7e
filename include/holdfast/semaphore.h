/* semaphore.h - so many permits: acquire some, release them.
 *
 * Two manners of waiting:
 *
 *   unfair   who comes first when there are permits gets them: fastest. A
 *            thread that comes by may pass those who sleep, and a request for
 *            many permits may wait for ever while small ones pass it.
 *   fair     strict order: nobody passes a waiter, not even a small request
 *            an early large one. Each waiter is handed its permits:
 *
 *              permits 2   queue: [A wants 3] [B wants 1] [C wants 2]
 *              release(2)  A gets 3, B gets 1; C stays
 *
 *            If A gives up, B and C are looked at again at once.
 *
 *        63      48 47     32 31 30 29 28 27            0
 *       +----------+---------+--+--+--+--+--------------+
 *       |   many   | waiting | -| l| q| s|   permits    |
 *       +----------+---------+--+--+--+--+--------------+
 *        waiting: threads that wait; many: those of them who want more than
 *        one permit; q, l: there is a queue, and it is being changed (fair);
 *        s: shut down
 *
 * Threads: every call but init and destroy may overlap every other. Permits
 *          have no owner: any thread may release them.
 * Memory:  the caller owns `struct hf_semaphore`; no call allocates, a waiter's
 *          place in the queue is on its own stack. It may go when nobody is
 *          inside a call, release included.
 * Time:    deadlines are absolute, by the clock given to init.
 *
 *   linearizable  lock-free               wakes                 allocates
 *   yes           unfair: all but the     as many as permits    no
 *                 waiting itself          were released; unfair:
 *                                         and all who want many
 *
 * Example:
 *
 *   struct hf_semaphore permits;
 *   struct hf_semaphore_opts opts = {.permits = 2, .fair = true};
 *   assert(hf_semaphore_init(&permits, &opts) == HF_OK);
 *   assert(hf_semaphore_acquire(&permits, 2, HF_FOREVER) == HF_OK);
 *   assert(hf_semaphore_acquire(&permits, 1, HF_NOW) == HF_TIMEOUT);
 *   assert(hf_semaphore_release(&permits, 2) == HF_OK);
 *   hf_semaphore_destroy(&permits);
 */
#ifndef HOLDFAST_SEMAPHORE_H
#define HOLDFAST_SEMAPHORE_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/event.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_SEMAPHORE_PERMITS_MAX ((1u << 28) - 1)
#define HF_SEMAPHORE_WAITERS_MAX 65535u

struct hf_semaphore_waiter;

struct hf_semaphore { /* (i) immutable after init  (a) atomic  (l) while l */
    struct hf_atomic_u64 state; /* (a) see the drawing above */
    struct hf_event event;      /* (a) who waits for one; fair: for l to go */
    struct hf_event many;       /* (a) who waits for more, if unfair */
    struct hf_semaphore_waiter *first; /* (l) the queue */
    struct hf_semaphore_waiter *last;  /* (l) */
    const struct hf_clock *clock;      /* (i) */
    bool fair;                         /* (i) */
};

struct hf_semaphore_opts {
    uint32_t permits; /* to begin with: 0 .. HF_SEMAPHORE_PERMITS_MAX */
    bool fair;
    const struct hf_clock *clock; /* NULL: the system's */
};

struct hf_semaphore_stats {
    uint32_t permits; /* that could be taken */
    uint32_t waiting; /* threads inside acquire */
    bool shutdown;
};

/* HF_INVALID: an argument is NULL, or too many permits. */
enum hf_status hf_semaphore_init(struct hf_semaphore *semaphore,
                                 const struct hf_semaphore_opts *opts);
/* The memory may go. Nobody may be inside a call. */
void hf_semaphore_destroy(struct hf_semaphore *semaphore);

/* Takes `count` permits, or none. HF_NOW tries: fair, it does not pass a queue.
 * HF_INVALID: count is 0 or above HF_SEMAPHORE_PERMITS_MAX; HF_TIMEOUT;
 * HF_CLOSED; HF_FULL: HF_SEMAPHORE_WAITERS_MAX threads wait. */
enum hf_status hf_semaphore_acquire(struct hf_semaphore *semaphore,
                                    uint32_t count, uint64_t deadline_ns);
/* Releases `count` permits, or new ones; also after shutdown. HF_INVALID: count
 * is 0, or there would be more than HF_SEMAPHORE_PERMITS_MAX; nothing changed.
 */
enum hf_status hf_semaphore_release(struct hf_semaphore *semaphore,
                                    uint32_t count);
/* Takes all permits that there are, past any queue; returns how many. */
uint32_t hf_semaphore_drain(struct hf_semaphore *semaphore);
/* Permits that there are now. */
uint32_t hf_semaphore_available(const struct hf_semaphore *semaphore);

/* Nobody gets permits any more: waiters leave with HF_CLOSED. From any thread,
 * any number of times. */
void hf_semaphore_shutdown(struct hf_semaphore *semaphore);

void hf_semaphore_stats(const struct hf_semaphore *semaphore,
                        struct hf_semaphore_stats *out);

#ifdef __cplusplus
}
#endif

#endif
