/* scheduler_state.h - the inside of a scheduler, shared by its source files.
 *
 * One lock guards the tasks and every count. It is held for one step of the
 * heap at a time; runs, observers and the pool's calls are outside it.
 */
#ifndef EXEC_SCHEDULER_STATE_H
#define EXEC_SCHEDULER_STATE_H

#include "base/thread.h"
#include "exec/timers.h"
#include "sync/listed.h"
#include "sync/mutex.h"
#include "sync/waits.h"

struct hf_scheduler {
    struct hf_listed listed;
    struct hf_scheduler_opts opts;    /* (i) with defaults filled in */
    const struct hf_clock *clock;     /* (i) */
    struct hf_thread thread;          /* (i) */
    struct hf_atomic_u32 references;  /* (a) whoever opened it, and each run
                                       * that the pool has */
    struct hf_mutex mutex;            /* guards what follows, marked (m) */
    struct timers timers;             /* (m) */
    bool shut;                        /* (m) nothing new */
    bool stopping;                    /* (m) the thread ends */
    uint64_t sleeps_until_ns;         /* (m) the thread; 0: it is awake */
    bool awaited;                     /* (m) somebody waits for the end */
    struct hf_scheduler_stats counts; /* (m) all but what is computed */
    struct hf_event due;              /* an earlier task, or the end */
    struct hf_event over;             /* a task that is joined */
    struct hf_event done;             /* shut, and no task is left */
    struct hf_waits lateness;         /* (a) */
};

/* ---- scheduler_run.c ---- */

/* What the thread does until it is told to stop. */
void hf_scheduler_main(void *scheduler);
/* A task begins to wait until `when_ns`; true: wake the thread, after the
 * lock. Under the mutex. */
bool hf_scheduler_is_sooner(struct hf_scheduler *scheduler, uint64_t when_ns);
/* The task is over. Under the mutex. */
void hf_scheduler_end(struct hf_scheduler *scheduler, struct timer *timer);
static inline bool scheduler_is_done(const struct hf_scheduler *scheduler)
{
    return scheduler->shut && scheduler->timers.slab.used == 0;
}
/* A reference is no longer needed; the last one frees. */
void hf_scheduler_release(struct hf_scheduler *scheduler);

#endif
