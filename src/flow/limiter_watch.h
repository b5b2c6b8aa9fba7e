/* limiter_watch.h - for one who waits for permits in a way of its own.
 *
 * hf_limiter_acquire() has a thread wait. A server that has none to spare keeps
 * its own queues and is told here what may end a wait early: a refund, a
 * settled hold, a rule that was changed or removed.
 *
 * Threads: limiter_watch() before others use the limiter. `freed` is called by
 *          whoever gives back, inside that call and outside all locks.
 */
#ifndef FLOW_LIMITER_WATCH_H
#define FLOW_LIMITER_WATCH_H

#include "holdfast/limiter.h"

/* Not one key: all of them. No key has this id. */
#define LIMITER_WATCH_ALL UINT64_MAX

/* `freed` NULL ends it. */
void limiter_watch(struct hf_limiter *limiter,
                   void (*freed)(void *context, uint64_t id), void *context);
/* What `freed` calls the pair of this ask. Different keys may share an id: then
 * one looks in vain. */
uint64_t limiter_watch_id(struct hf_limiter *limiter,
                          const struct hf_limiter_ask *ask);

#endif
