/* timers.h - the tasks of a scheduler, and which of them is due first.
 *
 *   slab   [ - ][ task 1 ][ task 2 ][ free ][ task 4 ] ...
 *   heap   2, then 4, 1, (3)         by (time, tie)
 *
 *   tie   priority, 16 bits; submission, 48 bits: no two are equal
 *   id    submission, the lower 40 bits; the task's number, 24 bits
 *
 * A task that is withdrawn leaves its entry in the heap, as 3 above: nothing
 * has to know where it lies, which makes everything cheaper. Such entries are
 * known by their tie, which is nobody's any more; they are taken away when they
 * come first, and all at once when they are more than the others.
 *
 * A task that is due is out of the heap while it runs, and can be put back
 * without memory.
 *
 * Threads: one thread at a time.
 */
#ifndef EXEC_TIMERS_H
#define EXEC_TIMERS_H

#include <stdbool.h>

#include "base/heap.h"
#include "base/slab.h"
#include "holdfast/scheduler.h"

#define TIMERS_NUMBER_BITS 24u

enum timer_kind {
    TIMER_ONCE,
    TIMER_RATE,
    TIMER_DELAY,
};

/* 64 bytes: a million tasks take as many lines of the cache. */
struct timer {
    uint32_t number;  /* in the slab, never 0 */
    uint32_t queued;  /* runs handed to the pool and not begun */
    uint64_t tie;     /* see above */
    uint64_t when_ns; /* planned; while it does not wait, the last one */
    uint64_t period_ns;
    int (*fn)(void *arg);
    void *arg;
    struct hf_scheduler *owner;
    uint16_t running;  /* runs begun and not over */
    uint8_t kind;      /* enum timer_kind */
    bool waiting : 1;  /* for its time */
    bool promised : 1; /* it can be put back */
    bool catch_up : 1;
    bool overlap : 1;
    bool over : 1;      /* will not run again */
    bool cancelled : 1; /* `over` by cancel */
    bool joined : 1;    /* somebody waits for its end */
};

struct timers {
    struct hf_slab slab;
    struct hf_heap heap;
    uint32_t waiting; /* tasks in the heap; its other entries are dead */
    uint64_t submissions;
    size_t bytes;
};

void hf_timers_init(struct timers *timers);
void hf_timers_destroy(struct timers *timers);

/* A task like `form`, which waits for its time; NULL without memory. */
struct timer *hf_timers_add(struct timers *timers, const struct timer *form,
                            int priority);
/* The task does not wait and is over. */
void hf_timers_free(struct timers *timers, struct timer *timer);

/* The task that is due first, or NULL. */
struct timer *hf_timers_first(struct timers *timers);
/* The first task, `timer`, no longer waits. */
void hf_timers_take_first(struct timers *timers, struct timer *timer);
/* It waits again, for its `when_ns`. */
void hf_timers_put(struct timers *timers, struct timer *timer);
/* It no longer waits, wherever it is, and will not be put back. */
void hf_timers_withdraw(struct timers *timers, struct timer *timer);

/* The task of that id, or NULL. */
struct timer *hf_timers_find(const struct timers *timers, uint64_t id);
/* Any task that waits, or NULL. */
struct timer *hf_timers_any(struct timers *timers);
/* The first task whose number is not below `*number`, which then is the number
 * after it; NULL if there is none. */
struct timer *hf_timers_walk(const struct timers *timers, uint32_t *number);

uint64_t hf_timer_id(const struct timer *timer);

#endif
