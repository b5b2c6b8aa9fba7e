/* bell.h - an event that happens once, and then its memory may go.
 *
 * The trouble with "set a flag, then wake": whoever sees the flag may return
 * and free the flag and the event while the waker is still on its way to wake.
 * A bell has no flag beside the event. It has rung when the event has had its
 * first wake-up, and that is the last thing that the ringer touches:
 *
 *   ringer    ... change the event's word | (the kernel is told an address)
 *   waiter                                | sees it, returns, frees the bell
 *
 * An address that is told to the kernel after its memory has gone wakes nobody
 * or somebody who looks again, as all who sleep do.
 *
 * Threads: ring once; the rest any number of times, from any thread.
 * Memory:  the caller's; zeroed has not rung. May go as soon as its only waiter
 *          has seen it ring.
 */
#ifndef SYNC_BELL_H
#define SYNC_BELL_H

#include <assert.h>
#include <stdbool.h>

#include "base/atomic.h"
#include "holdfast/event.h"

/* What the caller wrote before is seen by whoever sees it rung. */
static inline void hf_bell_ring(struct hf_event *bell)
{
    /* One who waits, so that the wake-up is not spared: it is one count, and
     * no other wake-up takes it off. */
    uint32_t key = hf_event_prepare(bell);

    assert(key == 0);
    (void)key;
    hf_event_wake_all(bell);
}

/* The wake-ups since init: the upper half of the event's word. */
static inline bool hf_bell_rung(const struct hf_event *bell)
{
    /* Acquire: what the ringer wrote. */
    return hf_u64_load(&bell->word, __ATOMIC_ACQUIRE) >> 32 != 0;
}

/* HF_OK: it has rung. HF_TIMEOUT. */
enum hf_status hf_bell_wait(struct hf_event *bell, const struct hf_clock *clock,
                            uint64_t deadline_ns);

#endif
