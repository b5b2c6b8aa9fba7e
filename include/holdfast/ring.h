/* ring.h - bounded queue on an array, between any number of threads.
 *
 * A position counts puts or takes from the start; position p lies in slot
 * p mod capacity, in lap p / capacity. Each slot has one word that says which
 * lap it is in and whether it holds an item:
 *
 *   slot        0        1        2        3        4
 *            +--------+--------+--------+--------+--------+
 *   word     | lap 8  | lap 8  | lap 8  | lap 7  | lap 7  |
 *            | full   | full   | empty  | full   | full   |
 *            +--------+--------+--------+--------+--------+
 *                               ^ next put ^ next take
 *
 * A put turns "lap 8, empty" into "lap 8, full" by one compare-and-swap, a take
 * turns "lap 7, full" into "lap 8, empty". That swap is the whole put or take.
 * No place is ever claimed first and filled later: a thread that is stopped,
 * wherever, stops nobody, and nobody is told "empty" because of an item
 * that is half put. Where the next position lies is remembered as a hint; who
 * finds it too low walks on.
 *
 * An empty word means empty: who finds the next slot to take "lap 8, empty"
 * knows that all before is taken and nothing is put. Likewise for full.
 *
 * How an item of 64 bits gets into a slot by one swap of 64 bits: the word
 * holds the number of a cell with the item. A put writes its item into a cell
 * that its thread owns, swaps it for the empty cell of the slot, and owns that
 * one from then on.
 *
 * The mode says how many threads put and take at a time. A side that one
 * thread has alone needs no compare-and-swap; HF_RING_SPSC needs none at all.
 * That no two threads are at such a side at once is up to the caller.
 *
 * Threads: puts, takes, size and stats may overlap as the mode says. Not to be
 *          called from a signal handler.
 * Memory:  items are the caller's; the slots are made by open. A put allocates
 *          only when more than 16 threads have been alive: a record, once.
 *
 *          linearizable  exact empty/full  lock-free  allocates
 *   MPMC   yes           yes               yes        see above
 *   MPSC   yes (1)       yes (1)           yes        see above
 *   SPMC   yes (1)       yes (1)           yes        no
 *   SPSC   yes (1)       yes (1)           wait-free  no
 *
 *   (1) A side that one thread has alone tells of its work by plain release
 *       stores: whoever comes after it (is woken, joined, told by any
 *       release-acquire pair) sees it. Without that, "after" is not defined
 *       and the answer may be the one of a moment ago.
 *
 * Example:
 *
 *   struct hf_ring *ring;
 *   struct hf_ring_opts opts = {.name = "orders", .capacity = 2};
 *   int first = 1, second = 2;
 *   void *item;
 *   assert(hf_ring_open(&ring, &opts) == HF_OK);
 *   assert(hf_ring_put(ring, &first) == HF_OK);
 *   assert(hf_ring_put(ring, &second) == HF_OK);
 *   assert(hf_ring_put(ring, &second) == HF_FULL);
 *   assert(hf_ring_take(ring, &item) == HF_OK && item == &first);
 *   hf_ring_close(ring);
 */
#ifndef HOLDFAST_RING_H
#define HOLDFAST_RING_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_ring;

#define HF_RING_CAPACITY_DEFAULT 1024
#define HF_RING_CAPACITY_MAX     (UINT64_C(1) << 24)

enum hf_ring_mode {               /* how many put : how many take */
                    HF_RING_MPMC, /* many : many; the default */
                    HF_RING_SPSC, /* one : one */
                    HF_RING_MPSC, /* many : one */
                    HF_RING_SPMC, /* one : many */
};

struct hf_ring_opts {
    const char *name;  /* for hf_inspect() */
    uint64_t capacity; /* items, exactly; 0: HF_RING_CAPACITY_DEFAULT */
    enum hf_ring_mode mode;
};

struct hf_ring_stats {
    uint64_t size;
    uint64_t capacity;
    uint64_t puts;    /* items since open */
    uint64_t takes;   /* items since open */
    uint64_t refused; /* puts that found it full */
};

/* HF_INVALID: ring is NULL, capacity is beyond its maximum, no such mode.
 * HF_NOMEM. */
enum hf_status hf_ring_open(struct hf_ring **ring,
                            const struct hf_ring_opts *opts);
/* What is inside is forgotten. Nobody may be inside a call. NULL is allowed.*/
void hf_ring_close(struct hf_ring *ring);

/* HF_FULL: at one instant of the call `capacity` items were inside.
 * HF_INVALID: the item is NULL. HF_NOMEM: see above. */
enum hf_status hf_ring_put(struct hf_ring *ring, void *item);
/* The oldest item. HF_EMPTY: at one instant of the call there was none.
 * HF_INVALID: item is NULL. */
enum hf_status hf_ring_take(struct hf_ring *ring, void **item);

/* Puts items[0], items[1], ... in this order, and says how many: fewer than
 * `count` only if the ring was then full, the next item is NULL, or HF_NOMEM.
 * As that many single puts: those of other threads may come between. */
size_t hf_ring_put_many(struct hf_ring *ring, void *const *items, size_t count);
/* Takes up to `count` items, oldest first, and says how many: fewer only if the
 * ring was then empty. As that many single takes. */
size_t hf_ring_take_many(struct hf_ring *ring, void **items, size_t count);

/* Exact while nobody puts or takes; otherwise near to what it was during the
 * call, and never more than the capacity. */
uint64_t hf_ring_size(const struct hf_ring *ring);
void hf_ring_stats(const struct hf_ring *ring, struct hf_ring_stats *out);

#ifdef __cplusplus
}
#endif

#endif
