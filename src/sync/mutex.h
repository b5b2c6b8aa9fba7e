/* mutex.h - a lock for short sections, on the library's own parking.
 *
 * pthread's would do, but the tests' scheduler could not see it. State 0 is
 * free, 1 held, 2 held and perhaps waited for; only a holder who finds 2 pays
 * for a wake-up. Not fair: a thread that comes by may take it first.
 *
 * Threads: any; only the holder unlocks. Memory: the caller's; zeroed is free.
 */
#ifndef SYNC_MUTEX_H
#define SYNC_MUTEX_H

#include <assert.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "holdfast/event.h"

struct hf_mutex {
    struct hf_atomic_u32 state; /* (a) 0, 1 or 2: see above */
    struct hf_event event;      /* (a) those who wait */
};

void hf_mutex_lock_slow(struct hf_mutex *mutex);
void hf_mutex_wake(struct hf_mutex *mutex);

static inline bool hf_mutex_try(struct hf_mutex *mutex)
{
    uint32_t free = 0;
    /* Acquire: what the last holder wrote. */
    return hf_u32_cas(&mutex->state, &free, 1, __ATOMIC_ACQUIRE);
}

static inline void hf_mutex_lock(struct hf_mutex *mutex)
{
    if (__builtin_expect(!hf_mutex_try(mutex), 0))
        hf_mutex_lock_slow(mutex);
}

static inline void hf_mutex_unlock(struct hf_mutex *mutex)
{
    /* Release: for the next holder. Acquire: a waiter that left 2 here was
     * counted by the event before. */
    uint32_t was = hf_u32_swap(&mutex->state, 0, __ATOMIC_ACQ_REL);

    assert(was != 0); /* it was held */
    if (was == 2)
        hf_mutex_wake(mutex);
}

/* For assertions: held by somebody. */
static inline bool hf_mutex_held(const struct hf_mutex *mutex)
{
    return hf_u32_load(&mutex->state, __ATOMIC_RELAXED) != 0;
}

#endif
