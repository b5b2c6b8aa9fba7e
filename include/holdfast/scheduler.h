/* scheduler.h - tasks that run later, or again and again.
 *
 *   at, after, every --> [ what is due first ] --> thread --> pool
 *                         by (time, priority,        sleeps until the first
 *                         submission)                is due; an earlier one
 *                                                    that comes wakes it
 *
 * A task is int fn(void *arg): 0 is success, anything else a failure, which is
 * counted and told to the observer. Tasks are handed to the pool in exact
 * order; with `direct` the scheduler's thread runs them itself, one after the
 * other, which suits tasks that are short.
 *
 * Again and again, in two manners, of period p; == is a run:
 *
 *   every (fixed rate)         planned  0----p----2p---3p---4p---5p
 *                              runs     ==   ==   ========== ==  ==
 *       planned times are multiples of the period, whenever a run began or
 *       ended. Times that passed during a run are made up for by one run; the
 *       others are counted as missed. `catch_up` runs all of them.
 *   every_after (fixed delay)  runs     ==-p-==-p-=====-p-==
 *       a period from the end of a run to the next.
 *
 * A task never overlaps itself, unless `overlap` is asked for. A run that the
 * pool refuses, discards or hands back is counted as dropped and told to the
 * observer; a periodic task goes on.
 *
 * The end: shutdown() takes nothing new, ends what is periodic and lets the
 * others run at their times; shutdown_now() hands back what waits; await()
 * waits until nothing is left; close() is shutdown_now, await for ever, and
 * frees.
 *
 * Threads: every call but open and close from any thread, tasks included. Tasks
 *          and observers run outside locks.
 * Memory:  64 bytes for a task and 24 for its place (for at most twice as many
 *          places as tasks), kept for the next one; each run on a pool has a
 *          future for its time; arguments are the user's.
 * Time:    all times are absolute, by `clock`; one that has passed is due now.
 *
 *   order         (time, priority, submission), exact; on a pool with several
 *                 threads the order in which runs are handed over
 *   cancel        HF_OK: does not run and will not. An id is never another
 *                 task's, until 2^40 more have been scheduled
 *   schedule      O(1) on average, O(log n) at most; allocates only to grow
 *   cancel        O(1) on average: now and then one of them clears away what
 *                 the others left; no allocation
 *
 * Example:
 *
 *   static int ring(void *arg)
 *   {
 *       printf("%s\n", (const char *)arg);
 *       return 0;
 *   }
 *   int main(void)
 *   {
 *       struct hf_scheduler *scheduler;
 *       static char wake[] = "wake up", late[] = "too late";
 *       uint64_t id;
 *       assert(hf_scheduler_open(&scheduler, NULL) == HF_OK);
 *       assert(hf_scheduler_after(scheduler, 1000, 0, ring, wake, NULL) ==
 *              HF_OK);
 *       assert(hf_scheduler_after(scheduler, 60000000000, 0, ring, late,
 *                                 &id) == HF_OK);
 *       assert(hf_scheduler_cancel(scheduler, id) == HF_OK);
 *       hf_scheduler_shutdown(scheduler); // the other one still runs
 *       assert(hf_scheduler_await(scheduler, HF_FOREVER) == HF_OK);
 *       hf_scheduler_close(scheduler);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_SCHEDULER_H
#define HOLDFAST_SCHEDULER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/inspect.h"
#include "holdfast/pool.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_SCHEDULER_TASKS_MAX    ((1u << 24) - 1)
#define HF_SCHEDULER_TIME_MAX_NS  (UINT64_MAX / 2) /* of times and periods */
#define HF_SCHEDULER_PRIORITY_MIN (-32768)
#define HF_SCHEDULER_PRIORITY_MAX 32767

struct hf_scheduler;

enum hf_scheduler_event {
    HF_SCHEDULER_FAILED,  /* a run returned something else than 0 */
    HF_SCHEDULER_DROPPED, /* the pool did not take a run, or gave it up */
    HF_SCHEDULER_MISSED,  /* planned times passed without a run */
};

/* What an observer is told; valid during the call. */
struct hf_scheduler_note {
    enum hf_scheduler_event event;
    uint64_t id;
    void *arg;
    int code;              /* of a failed run */
    enum hf_status status; /* of a dropped run: why */
    uint64_t count;        /* of missed times */
};

struct hf_scheduler_opts {
    const char *name;     /* for hf_inspect() and the thread's name */
    struct hf_pool *pool; /* outlives the scheduler; its policy is not ASK.
                           * NULL: hf_pool_default() */
    bool direct;          /* no pool: the scheduler's thread runs the tasks */
    uint32_t tasks_max;   /* 0: HF_SCHEDULER_TASKS_MAX */
    /* Outside locks, by the thread in which it happens. */
    void (*observe)(void *context, const struct hf_scheduler_note *note);
    void *context;                /* of observe */
    const struct hf_clock *clock; /* NULL: the system's */
};

/* A periodic task's plan. */
struct hf_every {
    uint64_t first_ns;  /* the first time; 0: one period from now */
    uint64_t period_ns; /* from time to time, or from end to start; not 0 */
    int priority;       /* lower is first */
    bool catch_up;      /* fixed rate: no planned time is left out */
    bool overlap;       /* fixed rate: a run need not wait for the last one's
                         * end; not with `direct` */
};

struct hf_scheduler_stats {
    uint64_t pending;   /* tasks that wait for their time */
    uint64_t active;    /* tasks handed to the pool, or running */
    uint64_t scheduled; /* tasks accepted since open, and what became of them:
                         */
    uint64_t ended;     /*   done or dropped; periodic: ended by shutdown */
    uint64_t cancelled; /*   by cancel */
    uint64_t returned;  /*   handed back by shutdown_now */
    uint64_t fired;     /* runs begun */
    uint64_t failed;    /* runs that returned something else than 0 */
    uint64_t dropped;   /* runs that the pool did not take, or gave up */
    uint64_t missed;    /* planned times without a run */
    uint64_t rejected;  /* tasks not accepted: full or shut down */
    uint64_t wakes;     /* of the sleeping thread, by an earlier task */
    size_t memory_bytes;
    /* From the planned time to the hand-over to the pool (what the pool adds,
     * the pool tells), or with `direct` to the start. HF_INSPECT_NONE before
     * the first. */
    uint64_t late_p50_ns;
    uint64_t late_p99_ns;
    uint64_t late_max_ns; /* exact */
};

/* HF_INVALID: scheduler is NULL, a field is out of its range, or `direct` and a
 * pool. HF_NOMEM: no memory, or no room for a thread. */
enum hf_status hf_scheduler_open(struct hf_scheduler **scheduler,
                                 const struct hf_scheduler_opts *opts);
/* shutdown_now, await for ever, free. Not from a task of the scheduler, and
 * nobody else may be inside a call. NULL is allowed. */
void hf_scheduler_close(struct hf_scheduler *scheduler);

/* Runs fn(arg) once, at `when_ns` or `delay_ns` from now. `id`, which may be
 * NULL, names it to cancel. HF_INVALID: fn is NULL, or a time or priority is
 * out of its range; HF_FULL: tasks_max; HF_CLOSED: shut down; HF_NOMEM. */
enum hf_status hf_scheduler_at(struct hf_scheduler *scheduler, uint64_t when_ns,
                               int priority, int (*fn)(void *arg), void *arg,
                               uint64_t *id);
enum hf_status hf_scheduler_after(struct hf_scheduler *scheduler,
                                  uint64_t delay_ns, int priority,
                                  int (*fn)(void *arg), void *arg,
                                  uint64_t *id);
/* Runs it at a fixed rate, or with a fixed delay, until it is cancelled. As
 * above; HF_INVALID also if the period is 0, or an option does not fit. */
enum hf_status hf_scheduler_every(struct hf_scheduler *scheduler,
                                  const struct hf_every *every,
                                  int (*fn)(void *arg), void *arg,
                                  uint64_t *id);
enum hf_status hf_scheduler_every_after(struct hf_scheduler *scheduler,
                                        const struct hf_every *every,
                                        int (*fn)(void *arg), void *arg,
                                        uint64_t *id);

/* HF_OK: it is not running and will not run. HF_PENDING: it is running now
 * (perhaps it is the caller) and will not run again; join waits for its end.
 * HF_NOTFOUND: it is over, or was cancelled before. */
enum hf_status hf_scheduler_cancel(struct hf_scheduler *scheduler, uint64_t id);
/* Waits until the task is over: done, or cancelled and not running. HF_OK at
 * once if there is no such task. HF_TIMEOUT. */
enum hf_status hf_scheduler_join(struct hf_scheduler *scheduler, uint64_t id,
                                 uint64_t deadline_ns);

/* Tasks that wait for their time. */
uint64_t hf_scheduler_pending(struct hf_scheduler *scheduler);
/* The time of the first of them; HF_FOREVER if there is none. */
uint64_t hf_scheduler_next_ns(struct hf_scheduler *scheduler);

/* Takes nothing new, ends periodic tasks; the others run at their times. */
void hf_scheduler_shutdown(struct hf_scheduler *scheduler);
/* Also withdraws what waits for its time: calls hand_back (which may be NULL)
 * for each, outside locks, in no order. Returns how many. */
size_t hf_scheduler_shutdown_now(struct hf_scheduler *scheduler,
                                 void (*hand_back)(void *context, void *arg),
                                 void *context);
/* HF_OK: shut down, and no task is left. HF_TIMEOUT. Not from a task. */
enum hf_status hf_scheduler_await(struct hf_scheduler *scheduler,
                                  uint64_t deadline_ns);

void hf_scheduler_stats(struct hf_scheduler *scheduler,
                        struct hf_scheduler_stats *out);

#ifdef __cplusplus
}
#endif

#endif
