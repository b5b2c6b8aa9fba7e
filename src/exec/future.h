/* future.h - the inside of holdfast/future.h, for those who hand futures out.
 *
 *   PENDING --begin--> RUNNING --complete--> DONE
 *      `------ cancel or complete -----------^
 *
 * Every change of state is one compare-and-swap: of those who want to begin,
 * cancel or complete, one wins.
 */
#ifndef EXEC_FUTURE_H
#define EXEC_FUTURE_H

#include <stdbool.h>

#include "base/atomic.h"
#include "holdfast/event.h"
#include "holdfast/future.h"
#include "sync/mutex.h"

enum future_state {
    FUTURE_PENDING,
    FUTURE_RUNNING, /* has begun, or is being completed */
    FUTURE_DONE,
};

struct future_then;
struct hf_pool_task;
struct hf_pool;

struct hf_future {
    struct hf_atomic_u32 references; /* (a) */
    struct hf_atomic_u32 state;      /* (a) enum future_state */
    struct hf_event event;           /* (a) it is done */
    struct hf_outcome outcome;       /* (i) once done */
    const struct hf_clock *clock;    /* (i) */
    struct hf_pool *owner;           /* (i) the pool, which may be gone */
    struct hf_pool_task *place;      /* in the queue; under the pool's lock */
    struct hf_mutex mutex;           /* guards thens */
    struct future_then *thens;       /* (m) to be called */
    struct future_then **thens_end;  /* (m) */
};

/* One reference for the caller. NULL without memory. */
struct hf_future *hf_future_new(const struct hf_clock *clock,
                                struct hf_pool *owner);
/* The work begins; false if it was cancelled. */
bool hf_future_begin(struct hf_future *future);
/* After begin: the work is over. */
void hf_future_finish(struct hf_future *future,
                      const struct hf_outcome *outcome);

static inline bool future_is_done(const struct hf_future *future)
{
    /* Acquire: the outcome. */
    return hf_u32_load(&future->state, __ATOMIC_ACQUIRE) == FUTURE_DONE;
}

/* If the running thread runs a task of the future's pool, and nobody has begun
 * the future's task: runs it here. In pool_worker.c. */
void hf_pool_help(struct hf_future *future);

#endif
