/* future.h - the outcome of work that is done elsewhere.
 *
 *   who asked                       who does it
 *   get(f, deadline) ---- waits     ...
 *   then(f, call)                   complete(f, outcome)
 *         woken / called  <-------------'   once
 *
 * A future is completed once: done, failed or cancelled. Whoever holds a
 * reference may wait, ask for a call when it is completed, or withdraw the
 * request before the work has begun. Pools hand futures out; a program may
 * make its own (hf_future_open) and complete them.
 *
 * A task that waits for a future of its own pool does not just sleep: if the
 * future's task has not begun, the waiter runs it, deadline or not (except
 * HF_NOW). So tasks may wait for tasks.
 *
 * Threads: every call from any thread, except that a reference is released
 *          once. Calls given to then() run in the thread that completes, or at
 *          once in the caller's if it was completed before; outside locks.
 * Memory:  counted references: open and every submit give one, release takes
 *          one back. The result is the user's pointer and is not freed.
 * Time:    deadlines by the clock of the pool or of open.
 *
 *   linearizable  lock-free         allocates
 *   yes           retain, release   open; then; any
 *
 * Example:
 *
 *   struct hf_future *future;
 *   struct hf_outcome outcome = {HF_OK, 0, NULL};
 *   assert(hf_future_open(&future, NULL) == HF_OK);
 *   assert(hf_future_get(future, HF_NOW, &outcome) == HF_TIMEOUT);
 *   assert(hf_future_complete(future, &outcome) == HF_OK);
 *   assert(hf_future_get(future, HF_FOREVER, &outcome) == HF_OK);
 *   hf_future_release(future);
 */
#ifndef HOLDFAST_FUTURE_H
#define HOLDFAST_FUTURE_H

#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

struct hf_future;

struct hf_outcome {
    enum hf_status status; /* HF_OK, HF_FAILED or HF_CANCELLED */
    int code;              /* what the task returned; 0 is success */
    void *result;          /* what it left, or NULL */
};

/* A future that the caller completes. HF_INVALID, HF_NOMEM. */
enum hf_status hf_future_open(struct hf_future **future,
                              const struct hf_clock *clock);
/* Another reference, for another holder. */
void hf_future_retain(struct hf_future *future);
void hf_future_release(struct hf_future *future);

/* Once; HF_EXISTS: it was completed or cancelled already. HF_INVALID: the
 * outcome's status is none of the three, or the future is a pool's, which
 * completes it itself. */
enum hf_status hf_future_complete(struct hf_future *future,
                                  const struct hf_outcome *outcome);

/* HF_OK: completed, `outcome` (which may be NULL) tells how. HF_TIMEOUT. */
enum hf_status hf_future_get(struct hf_future *future, uint64_t deadline_ns,
                             struct hf_outcome *outcome);
/* HF_OK: the work had not begun and never will; the outcome is HF_CANCELLED.
 * HF_NOTFOUND: too late. */
enum hf_status hf_future_cancel(struct hf_future *future);

/* Calls `call` once, when completed; as if cancelled, if the last reference is
 * released before. HF_NOMEM: it will not be called. */
enum hf_status hf_future_then(struct hf_future *future,
                              void (*call)(void *context,
                                           const struct hf_outcome *outcome),
                              void *context);

/* Waits until all are completed. HF_TIMEOUT: some are not. */
enum hf_status hf_future_all(struct hf_future *const *futures, size_t count,
                             uint64_t deadline_ns);
/* Waits until one is completed; `*index` is the first in the array that is. By
 * the clock of the first. HF_TIMEOUT, HF_NOMEM. Each wait leaves a note of some
 * bytes with every future until that is completed. */
enum hf_status hf_future_any(struct hf_future *const *futures, size_t count,
                             uint64_t deadline_ns, size_t *index);

#ifdef __cplusplus
}
#endif

#endif
