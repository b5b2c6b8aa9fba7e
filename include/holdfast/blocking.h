/* blocking.h - queues whose callers may wait: for an item, for room, or for
 * each other.
 *
 *   put ---.   +---+---+---+---+   .---> take
 *   put ----> full? wait   empty? wait ---> take
 *   put ---'   +---+---+---+---+   `---> take
 *
 *   kind         room                what is taken next
 *   ARRAY        `capacity`          the oldest
 *   LINKED       `capacity` or any   the oldest
 *   PRIORITY     `capacity` or any   the lowest rank, then the oldest
 *   DELAY        `capacity` or any   the earliest, once its time has come
 *   SYNCHRONOUS  none                a put meets a take, or neither ends
 *   TRANSFER     any                 the oldest; hf_blocking_transfer() ends
 *                                    when its item was taken
 *
 * Waiting. Every put and take has a deadline: HF_NOW tries (offer, poll),
 * HF_FOREVER waits as long as it takes (put, take), anything else is between
 * (offer-until, poll-until). HF_TIMEOUT: there was no room, or nothing to take,
 * at an instant after the deadline; for HF_NOW, at an instant within the call.
 * An item whose put did not return HF_OK is not in the queue, was never seen by
 * a taker and stays the caller's. One item wakes one taker, one place wakes one
 * putter. Those who wait in SYNCHRONOUS and TRANSFER are served in the order
 * in which they came; elsewhere a caller that comes by may be quicker than one
 * that is being woken.
 *
 * The end. hf_blocking_shutdown(): no put is accepted any more, those that wait
 * leave with HF_CLOSED, takers get all that was accepted (of a DELAY queue,
 * each item at its time) and HF_CLOSED when nothing is left.
 * hf_blocking_close() then frees the queue; items that nobody took go to
 * `drop`.
 *
 * Threads: every call but close may overlap every other, from any thread.
 *          Nobody may be inside a call, or come, when close is called: who
 *          shuts the queue waits for its threads first.
 * Memory:  items are the user's pointers, NULL is one like any other. ARRAY
 *          allocates when opened and never after, SYNCHRONOUS neither. LINKED
 *          gives memory back as it is emptied; PRIORITY and DELAY keep what
 *          they needed when they were fullest, until close.
 * Time:    by `clock`, also the times at which delayed items become visible.
 *
 *   linearizable  exact full/empty  lock-free  allocates         wakes
 *   yes           yes               no         see above; a put  one for one
 *                                              may HF_NOMEM
 *
 * Example:
 *
 *   struct hf_blocking *queue;
 *   struct hf_blocking_opts opts = {.kind = HF_BLOCKING_ARRAY, .capacity = 2};
 *   void *item;
 *   assert(hf_blocking_open(&queue, &opts) == HF_OK);
 *   assert(hf_blocking_put(queue, &opts, HF_FOREVER) == HF_OK);
 *   assert(hf_blocking_take(queue, &item, HF_FOREVER) == HF_OK);
 *   assert(item == &opts);
 *   assert(hf_blocking_take(queue, &item, HF_NOW) == HF_TIMEOUT);
 *   hf_blocking_shutdown(queue);
 *   assert(hf_blocking_take(queue, &item, HF_FOREVER) == HF_CLOSED);
 *   hf_blocking_close(queue);
 */
#ifndef HOLDFAST_BLOCKING_H
#define HOLDFAST_BLOCKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_BLOCKING_CAPACITY_DEFAULT 1024u      /* of an ARRAY */
#define HF_BLOCKING_CAPACITY_MAX     (1u << 30) /* of any kind */

enum hf_blocking_kind {
    HF_BLOCKING_ARRAY,
    HF_BLOCKING_LINKED,
    HF_BLOCKING_PRIORITY,
    HF_BLOCKING_DELAY,
    HF_BLOCKING_SYNCHRONOUS,
    HF_BLOCKING_TRANSFER,
    HF_BLOCKING_KINDS
};

struct hf_blocking;

struct hf_blocking_opts {
    const char *name; /* for hf_inspect() */
    enum hf_blocking_kind kind;
    /* Items at most. 0: the default for ARRAY, no bound for the others.
     * SYNCHRONOUS and TRANSFER take no other value. */
    uint64_t capacity;
    const struct hf_clock *clock; /* NULL: the system's */
    /* Notes when each item came, so that the age of the oldest is known. To be
     * asked for with ARRAY and LINKED only, where a look at the clock costs
     * more than the rest of a put. The other kinds always do. */
    bool ages;
    /* Gets each item that is left when the queue is closed; NULL: nobody. */
    void (*drop)(void *context, void *item);
    void *context;
};

struct hf_blocking_stats {
    uint64_t put;           /* accepted since open */
    uint64_t taken;         /* since open, drained ones too */
    uint64_t rejected;      /* puts that ended with HF_TIMEOUT or HF_CLOSED */
    uint64_t take_timeouts; /* takes that ended with HF_TIMEOUT */
    uint64_t put_waits;     /* puts that had to sleep */
    uint64_t take_waits;    /* takes that had to sleep */
    uint64_t putters;       /* who wait now */
    uint64_t takers;        /* who wait now */
    uint64_t depth;         /* as hf_blocking_size() */
    uint64_t capacity;      /* HF_INSPECT_NONE: without bound */
    uint64_t oldest_ns;     /* age; HF_INSPECT_NONE: no item, or not noted */
    /* 99 of 100 of the calls that slept did so for less; HF_INSPECT_NONE:
     * none did. hf_inspect() shows that of the putters: takers who wait are
     * idle, putters who wait are held up. */
    uint64_t put_wait_p99_ns;
    uint64_t take_wait_p99_ns;
    bool shutdown;
};

/* HF_INVALID: queue is NULL, or a field of the options is out of its range.
 * HF_NOMEM. */
enum hf_status hf_blocking_open(struct hf_blocking **queue,
                                const struct hf_blocking_opts *opts);
/* No put is accepted after this has returned. Again is harmless, NULL is
 * allowed. */
void hf_blocking_shutdown(struct hf_blocking *queue);
/* Frees the queue; see the top for who may be inside. NULL is allowed. */
void hf_blocking_close(struct hf_blocking *queue);

/* Puts an item in, waiting for room (SYNCHRONOUS: for a taker) until the
 * deadline. HF_TIMEOUT, HF_CLOSED, HF_NOMEM: the item is not in the queue. In
 * PRIORITY its rank is 0; in DELAY it is visible at once. */
enum hf_status hf_blocking_put(struct hf_blocking *queue, void *item,
                               uint64_t deadline_ns);
/* PRIORITY only, else HF_INVALID. Lower ranks are taken first; equal ones in
 * the order in which they were put. */
enum hf_status hf_blocking_put_ranked(struct hf_blocking *queue, void *item,
                                      uint64_t rank, uint64_t deadline_ns);
/* DELAY only, else HF_INVALID. Nobody gets the item before `visible_ns`. */
enum hf_status hf_blocking_put_at(struct hf_blocking *queue, void *item,
                                  uint64_t visible_ns, uint64_t deadline_ns);
/* SYNCHRONOUS and TRANSFER only, else HF_INVALID. HF_OK: a taker has the item.
 * HF_TIMEOUT, HF_CLOSED: nobody has it or will get it. With HF_NOW: only if a
 * taker waits. */
enum hf_status hf_blocking_transfer(struct hf_blocking *queue, void *item,
                                    uint64_t deadline_ns);

/* Takes the next item, waiting for one until the deadline. HF_TIMEOUT;
 * HF_CLOSED: the queue is shut down and empty. HF_INVALID: item is NULL. */
enum hf_status hf_blocking_take(struct hf_blocking *queue, void **item,
                                uint64_t deadline_ns);
/* Takes up to `max` items, in their order, without waiting. Returns how many;
 * 0 if items is NULL. */
size_t hf_blocking_drain(struct hf_blocking *queue, void **items, size_t max);

/* Items that were put and not taken, with those whose putters wait in
 * SYNCHRONOUS and TRANSFER, and those that are not yet visible in DELAY. */
size_t hf_blocking_size(const struct hf_blocking *queue);
void hf_blocking_stats(struct hf_blocking *queue,
                       struct hf_blocking_stats *out);

#ifdef __cplusplus
}
#endif

#endif
