/* latch.h - count-down latch: wait until so many things have been done.
 *
 * Opened with a count; whoever finishes a thing counts down; whoever waits goes
 * on when nothing is left. A latch opens once and stays open.
 *
 *   worker   count_down(1) -> 2 left
 *   worker   count_down(1) -> 1 left
 *   main     wait ......................... goes on
 *   worker   count_down(1) -> 0 left: opens, wakes all
 *
 * Threads: every call but init and destroy may overlap every other.
 * Memory:  the caller owns `struct hf_latch`; no call allocates. As soon as a
 *          wait has said HF_OK or HF_CLOSED, the last counter-down (or the
 *          shutdown) touches the latch no more: a thread that knows that nobody
 *          else waits or counts may free it at once, on its own stack too. A
 *          time-out promises nothing of the kind.
 * Time:    deadlines are absolute, by the clock given to init.
 *
 *   linearizable  wakes          lock-free          allocates
 *   yes           all, once      count_down, count  no
 *
 * Example:
 *
 *   struct hf_latch latch;
 *   assert(hf_latch_init(&latch, 2, NULL) == HF_OK);
 *   assert(hf_latch_wait(&latch, HF_NOW) == HF_TIMEOUT);
 *   assert(hf_latch_count_down(&latch, 1) == HF_OK); // other threads would
 *   assert(hf_latch_count_down(&latch, 1) == HF_OK);
 *   assert(hf_latch_wait(&latch, HF_FOREVER) == HF_OK);
 *   hf_latch_destroy(&latch);
 */
#ifndef HOLDFAST_LATCH_H
#define HOLDFAST_LATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/event.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_latch {               /* (i) immutable after init  (a) atomic */
    struct hf_atomic_u64 state; /* (a) shut down, how many wait, what is left */
    struct hf_event opened;     /* (a) its first wake-up opens the latch */
    const struct hf_clock *clock; /* (i) */
};

struct hf_latch_stats {
    uint32_t count;   /* left to do; 0: open */
    uint32_t waiting; /* threads inside wait */
    bool shutdown;
};

/* `clock` may be NULL: the system's. HF_INVALID: latch is NULL, count is 0. */
enum hf_status hf_latch_init(struct hf_latch *latch, uint32_t count,
                             const struct hf_clock *clock);
/* The memory may go. Nobody may be inside a call. */
void hf_latch_destroy(struct hf_latch *latch);

/* Takes `count` off. HF_INVALID: count is 0 or more than is left, and nothing
 * changed; HF_CLOSED after shutdown. */
enum hf_status hf_latch_count_down(struct hf_latch *latch, uint32_t count);
/* HF_OK: nothing is left. HF_TIMEOUT; HF_CLOSED: it was shut down before it was
 * open. */
enum hf_status hf_latch_wait(struct hf_latch *latch, uint64_t deadline_ns);
/* What is left. */
uint32_t hf_latch_count(const struct hf_latch *latch);

/* It will never open: waiters leave with HF_CLOSED. An open latch stays open.
 * From any thread, any number of times. */
void hf_latch_shutdown(struct hf_latch *latch);

void hf_latch_stats(const struct hf_latch *latch, struct hf_latch_stats *out);

#ifdef __cplusplus
}
#endif

#endif
