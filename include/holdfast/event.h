/* event.h - event count: sleep until something may have changed.
 *
 * The one way to wait in this library: every queue, lock and gate that blocks
 * stands on it. Whoever needs a condition that others make true announces
 * itself, looks once more, and only then sleeps; whoever makes it true does so
 * first and wakes after. Neither needs a lock, and no wake-up is lost:
 *
 *   waits                           wakes
 *   key = prepare(event)            make the condition true
 *   condition? -> cancel, go on     wake(event, 1)
 *   wait(event, key, ...)           (costs one atomic operation when
 *   look again                       nobody waits)
 *
 * The race in the shorter way, "look, then sleep": the condition comes true
 * and the wake-up is sent between the two, and the sleep lasts for ever.
 * hf_event_until() is the right loop, written once.
 *
 *      63            32 31     16 15      0
 *     +----------------+---------+---------+   epoch: wake-ups so far; the
 *     |     epoch      |  called | waiters |   key of who prepares. called:
 *     +----------------+---------+---------+   waiters on their way out
 *
 * Threads: every call but init may overlap every other.
 *          At most 65,535 wait for one event at a time.
 * Memory:  the caller owns `struct hf_event`; no call allocates. It may go when
 *          nobody is inside a call.
 * Time:    deadlines are absolute, by the clock that is passed (NULL: the
 *          system's).
 *
 *   wakes exactly one  loses none  lock-free             allocates
 *   yes (a sleeper)    yes         prepare, cancel, wake no
 *
 * Example:
 *
 *   struct hf_event event;
 *   hf_event_init(&event);
 *   uint32_t key = hf_event_prepare(&event);
 *   hf_event_wake(&event, 1); // another thread would
 *   assert(hf_event_wait(&event, key, NULL, HF_FOREVER) == HF_OK);
 */
#ifndef HOLDFAST_EVENT_H
#define HOLDFAST_EVENT_H

#include <stdint.h>

#include "holdfast/atomic.h"
#include "holdfast/clock.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_event {
    struct hf_atomic_u64 word; /* (a) see the drawing above */
};

/* A zeroed struct is an event as well. */
void hf_event_init(struct hf_event *event);

/* Announces a waiter. Exactly one of cancel and wait must follow. */
uint32_t hf_event_prepare(struct hf_event *event);
/* The waiter found its condition true and does not wait. */
void hf_event_cancel(struct hf_event *event, uint32_t key);
/* Sleeps until a wake-up that came after prepare. HF_OK: look again;
 * HF_TIMEOUT: the deadline came first. Returns HF_OK now and then without
 * cause; hf_event_until() does not. */
enum hf_status hf_event_wait(struct hf_event *event, uint32_t key,
                             const struct hf_clock *clock,
                             uint64_t deadline_ns);

/* Wakes `count` waiters, or all if there are fewer. What the caller wrote
 * before is seen by whoever prepares after or is woken. Fewer than all only
 * where every waiter waits for the same thing (an item, a permit), so that it
 * does not matter which of them is woken; a younger one may be. */
void hf_event_wake(struct hf_event *event, uint32_t count);
void hf_event_wake_all(struct hf_event *event);

/* Calls attempt(context) until it returns anything but HF_PENDING, and returns
 * that; sleeps in between. HF_TIMEOUT if it is still pending at the deadline:
 * the last attempt is made after the deadline has passed, never before it. */
enum hf_status hf_event_until(struct hf_event *event,
                              enum hf_status (*attempt)(void *context),
                              void *context, const struct hf_clock *clock,
                              uint64_t deadline_ns);

#ifdef __cplusplus
}
#endif

#endif
