/* pool.h - threads that run tasks.
 *
 *   submit --> [ queue, by priority ] --> worker  worker  worker
 *     full or shut down? the rejection policy decides
 *
 *   kind      threads
 *   FIXED     max_threads, all the time
 *   SINGLE    one: tasks run in order, one after the other
 *   CACHED    as many as there is work for, none when there is none
 *   DYNAMIC   min_threads to max_threads: one more when `grow_depth` tasks wait
 *             or all are busy with work waiting; one less when one has been
 *             idle for `idle_ns`. The marks lie apart, so that a load between
 *             them changes nothing.
 *
 * A task is int fn(void *arg): 0 is success, anything else a failure, which is
 * counted and told to the observer; the worker goes on. A task may submit, wait
 * for futures of its own pool and shut the pool down. It should return. One
 * that ends its thread instead (pthread_exit, deferred cancellation) has failed
 * with HF_POOL_EXITED, and so have those that wait for it further out on the
 * same stack; another worker takes the lost one's place. If no thread can be
 * had for that and it was the last one, what is queued is discarded. The other
 * callbacks (ask, observe, then, hand_back) must return.
 *
 * A task that waits for another of its pool runs that one itself if nobody has
 * begun it; if somebody has, it sleeps. So tasks can wait for tasks, in a pool
 * of one thread as well, as long as they do not wait in a circle. It runs no
 * other meanwhile: such a one could wait for what lies below it on the same
 * stack, and neither would end, though there is no circle. A task that
 * submits to its own pool when that is full, where others would wait for room
 * (BLOCK), runs the new one itself.
 *
 * The end: shutdown() takes nothing new and finishes what is queued;
 * shutdown_now() hands back what has not begun; await() waits for the last
 * worker; close() is shutdown, await for ever, and frees.
 *
 * Threads: every call but open and close from any thread, tasks included
 *          (await: not from a task). Nobody else may be inside a call when
 *          close is called, except those who run tasks.
 * Memory:  a task that is submitted needs a record, which is kept for the next
 *          (each thread that submits keeps some for itself); one that is posted
 *          needs none. Arguments are the user's. A cancelled task keeps its
 *          place until a worker comes to it.
 * Time:    by `clock`.
 *
 *   order        by priority, then by submission, is the order of beginning,
 *                except of tasks that others wait for; which worker is open
 *   exactly once every task that was accepted runs once, or is cancelled, or
 *                is handed back, or is discarded and counted: never silently
 *                lost
 *   counts       submitted = completed + failed + cancelled + discarded +
 *                returned + queued + active, at any time
 *   lock-free    submit, while there is room, nobody to be woken and no thread
 *                to be started; the rest goes by one lock, held for some ten
 *                instructions
 *
 * Example:
 *
 *   static int hello(void *arg)
 *   {
 *       printf("hello %s\n", (const char *)arg);
 *       return 0;
 *   }
 *   int main(void)
 *   {
 *       struct hf_pool *pool;
 *       static char who[] = "world";
 *       assert(hf_pool_open(&pool, NULL) == HF_OK);
 *       assert(hf_pool_submit(pool, hello, who, NULL, NULL) == HF_OK);
 *       hf_pool_close(pool);
 *       return 0;
 *   }
 */
#ifndef HOLDFAST_POOL_H
#define HOLDFAST_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "holdfast/clock.h"
#include "holdfast/future.h"
#include "holdfast/inspect.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_POOL_THREADS_MAX     1024u
#define HF_POOL_PRIORITIES      4u /* 1 is first, 4 is last */
#define HF_POOL_QUEUE_UNBOUNDED UINT64_MAX
#define HF_POOL_QUEUE_DEFAULT   65536u
/* The code of a task that ended its thread; one may return it as well. */
#define HF_POOL_EXITED (-2147483647 - 1)

struct hf_pool;

enum hf_pool_kind {
    HF_POOL_FIXED,
    HF_POOL_SINGLE,
    HF_POOL_CACHED,
    HF_POOL_DYNAMIC,
};

enum hf_pool_reject {
    HF_POOL_ABORT,          /* submit returns HF_FULL or HF_CLOSED */
    HF_POOL_DISCARD,        /* the new task is dropped, counted, observed */
    HF_POOL_DISCARD_OLDEST, /* of the lowest priority that is queued; or the
                             * new task, if all of those are more urgent */
    HF_POOL_CALLER_RUNS,    /* the submitter runs it, unless shut down */
    HF_POOL_BLOCK,          /* wait until there is room or the deadline */
    HF_POOL_ASK,            /* call `ask` */
};

enum hf_pool_event {
    HF_POOL_SUBMITTED,
    HF_POOL_STARTED,
    HF_POOL_COMPLETED,
    HF_POOL_FAILED,
    HF_POOL_REJECTED,  /* not accepted, or accepted by `ask` */
    HF_POOL_DISCARDED, /* dropped in spite of HF_OK */
};

/* What an observer is told; valid during the call. */
struct hf_pool_note {
    enum hf_pool_event event;
    const char *task;  /* its name, "" without one */
    int code;          /* of a failed task */
    uint64_t queue_ns; /* from submit to start; 0 before */
    uint64_t run_ns;   /* from start to end; 0 before */
};

struct hf_pool_opts {
    const char *name; /* for hf_inspect() and the threads' names */
    enum hf_pool_kind kind;
    uint32_t min_threads; /* DYNAMIC: 0 means 1 */
    uint32_t max_threads; /* 0: processors, as far as the cgroup's quota goes;
                           * CACHED: HF_POOL_THREADS_MAX */
    uint64_t queue_max;   /* tasks that wait; 0: HF_POOL_QUEUE_DEFAULT */
    uint32_t grow_depth;  /* DYNAMIC: 0 means twice max_threads */
    uint64_t idle_ns;     /* CACHED, DYNAMIC: 0 means 10 s */
    enum hf_pool_reject reject;
    uint64_t block_ns; /* BLOCK: at most so long; 0: until there is room */
    /* ASK: HF_OK: it has taken care of the task, whose future is cancelled;
     * else what submit returns. `fn` is NULL for a task of hf_pool_call. */
    enum hf_status (*ask)(void *context, int (*fn)(void *arg), void *arg);
    /* Told of every event, outside locks, by the thread in which it happens: a
     * task may have started before SUBMITTED is told. */
    void (*observe)(void *context, const struct hf_pool_note *note);
    void *context;                /* of ask and observe */
    const struct hf_clock *clock; /* NULL: the system's */
    /* Notes queue and run times: two looks at the clock for each task. */
    bool times;
};

struct hf_task_opts {
    const char *name;  /* kept by pointer: a string that lasts */
    uint32_t priority; /* 1 first .. HF_POOL_PRIORITIES last; 0 means 3 */
};

enum hf_pool_state {
    HF_POOL_RUNNING,
    HF_POOL_SHUTDOWN, /* finishes what is queued */
    HF_POOL_STOPPED,  /* the last worker has gone */
};

struct hf_pool_stats {
    enum hf_pool_state state;
    uint32_t threads; /* alive */
    uint32_t threads_peak;
    uint32_t active; /* tasks that run, those that wait for others too */
    uint64_t queued;
    uint64_t submitted; /* accepted or discarded since open */
    uint64_t completed; /* with 0 */
    uint64_t failed;    /* with another code, or HF_POOL_EXITED */
    uint64_t cancelled;
    uint64_t rejected;
    uint64_t discarded;
    uint64_t returned;     /* handed back by shutdown_now */
    uint64_t caller_ran;   /* of the completed and failed, by submitters */
    double utilisation;    /* share of worker time in tasks; with `times` */
    uint64_t queue_p50_ns; /* HF_INSPECT_NONE without `times` */
    uint64_t queue_p99_ns;
    uint64_t run_p50_ns;
    uint64_t run_p99_ns;
};

/* HF_INVALID: pool is NULL or a field is out of its range (min above max, ASK
 * without `ask`, more than HF_POOL_THREADS_MAX, SINGLE with more than one).
 * HF_NOMEM: no memory, or the system has no room for the threads. */
enum hf_status hf_pool_open(struct hf_pool **pool,
                            const struct hf_pool_opts *opts);
/* The process's own: DYNAMIC, opened at the first call, never closed
 * (hf_pool_close() leaves it alone: others use it); NULL if that failed. */
struct hf_pool *hf_pool_default(void);
/* shutdown, await for ever, free. Not from a task of the pool. NULL is
 * allowed. */
void hf_pool_close(struct hf_pool *pool);

/* Runs fn(arg) once. `opts` may be NULL. With `future` it can be waited for;
 * release it. HF_FULL, HF_CLOSED, HF_TIMEOUT as the policy says, HF_NOMEM (no
 * memory, or no thread could be had and there was none): it will not run. */
enum hf_status hf_pool_submit(struct hf_pool *pool, int (*fn)(void *arg),
                              void *arg, const struct hf_task_opts *opts,
                              struct hf_future **future);
/* The same for a task with a result, which the future's outcome carries. */
enum hf_status hf_pool_call(struct hf_pool *pool,
                            int (*fn)(void *arg, void **result), void *arg,
                            const struct hf_task_opts *opts,
                            struct hf_future **future);

/* ---- Tasks in the caller's memory. ----
 *
 * hf_pool_submit() needs memory for each task. Whoever has the same task again
 * and again, and cannot be told "no memory" when it matters, keeps it in a
 * `struct hf_pool_work` and posts that:
 *
 *        init          post               a worker takes it
 *   ---------> at rest ----> queued ----------------------> at rest
 *                             ^  |                          fn(arg) runs
 *                             `--' post: HF_EXISTS
 *
 * It is at rest again before fn is called, and the pool does not look at it
 * after that: fn may post it again, or free it. So in a pool of several
 * threads two runs of one work may overlap, if it is posted while one runs.
 * It must not go, nor be initialised again, while it is queued.
 *
 * One post is one task: counted, bounded, refused, observed and handed back by
 * shutdown_now() as those of hf_pool_submit() are. There is no future. */

/* How a pool keeps a task; its own. */
struct hf_pool_task {
    struct hf_pool_task *next;
    struct hf_pool_task *prev;
    union {
        int (*fn)(void *arg);
        int (*call)(void *arg, void **result); /* if has_result */
    } run;
    void *arg;
    const char *name;
    struct hf_future *future; /* may be NULL; a reference */
    uint64_t submitted_ns;    /* 0 without `times` */
    uint32_t number;          /* by submission; comes round */
    uint16_t level;           /* 0 is first */
    bool has_result;
    bool posted; /* it lies in a struct hf_pool_work */
};

/* The caller's memory; its contents are the pool's. */
struct hf_pool_work {
    struct hf_pool_task task;
    struct hf_pool *pool; /* (i) */
    bool queued;          /* (m) by the pool's lock */
};

/* Prepares a work that runs fn(arg) in this pool. `opts` may be NULL.
 * HF_INVALID: work, pool or fn is NULL, or there is no such priority. */
enum hf_status hf_pool_work_init(struct hf_pool_work *work,
                                 struct hf_pool *pool, int (*fn)(void *arg),
                                 void *arg, const struct hf_task_opts *opts);
/* Queues a work that was initialised, from any thread. No memory is needed.
 * HF_EXISTS: it is queued already. The run that comes sees what was written
 *     before this call, so that whoever only says "there is something to do"
 *     may take it for HF_OK.
 * HF_FULL, HF_CLOSED, HF_TIMEOUT: as the policy says; it is at rest.
 * HF_NOMEM: only in a CACHED pool that has no thread at the moment and could
 *     not start one; it is at rest. */
enum hf_status hf_pool_post(struct hf_pool_work *work);

void hf_pool_shutdown(struct hf_pool *pool);
/* Also takes back what has not begun, all at once: calls hand_back (which may
 * be NULL) for each, outside locks, in the order in which they would have run;
 * futures are HF_CANCELLED. Returns how many. */
size_t hf_pool_shutdown_now(struct hf_pool *pool,
                            void (*hand_back)(void *context, void *arg),
                            void *context);
/* HF_OK: shut down, and the last worker has gone (tasks that submitters run
 * themselves are theirs). HF_TIMEOUT. HF_INVALID: from a task of the pool,
 * which would wait for itself. */
enum hf_status hf_pool_await(struct hf_pool *pool, uint64_t deadline_ns);

void hf_pool_stats(struct hf_pool *pool, struct hf_pool_stats *out);

#ifdef __cplusplus
}
#endif

#endif
