/* pool_run.c - running a task.
 *
 * Why a task that waits for another runs that one and no other: then whatever
 * lies on one stack needs what lies above it, every wait is one that the tasks
 * asked for, and tasks that do not wait for each other in a circle all end. If
 * it ran any task meanwhile, two threads could each have below the top what
 * the other one waits for at the top; and the stack could grow without end.
 *
 * A task that ends its thread (pthread_exit, cancellation) does not return, but
 * it is seen: by the handlers that pthread_cleanup_push() puts around it. With
 * -fexceptions, for which the Makefile cares, that is a table beside the code
 * and costs some stores; without, a setjmp for each task.
 */
#include <pthread.h>

#include "exec/pool_state.h"

/* The tasks that a thread runs, the newest first: one may run another, of its
 * own pool or (CALLER_RUNS) of another. */
struct frame {
    struct hf_pool *pool;
    struct frame *outer;
    const struct hf_pool_task *task;
    uint64_t started_ns; /* with `times` */
    struct hf_pool_note note;
};

/* By slot. Relaxed: each thread reads and writes its own. */
static struct hf_atomic_ptr frames[HF_SLOTS_MAX];

bool hf_pool_is_mine(const struct hf_pool *pool)
{
    struct frame *at = hf_ptr_load(&frames[hf_thread_slot()], __ATOMIC_RELAXED);

    while (at != NULL && at->pool != pool)
        at = at->outer;
    return at != NULL;
}

static void begin(struct frame *frame)
{
    struct hf_pool *pool = frame->pool;
    struct hf_pool_note *note = &frame->note;

    *note = (struct hf_pool_note){.event = HF_POOL_STARTED,
                                  .task = frame->task->name};
    if (pool->opts.times) {
        frame->started_ns = hf_clock_now_ns(pool->clock);
        note->queue_ns = frame->started_ns - frame->task->submitted_ns;
        hf_waits_note(&pool->queue_waits, note->queue_ns);
    }
    pool_tell(pool, note);
}

/* Accounts for it; takes the mutex. */
static void end(struct frame *frame, int code, void *result)
{
    const struct hf_outcome outcome = {code == 0 ? HF_OK : HF_FAILED, code,
                                       result};
    struct hf_pool *pool = frame->pool;
    struct hf_pool_note *note = &frame->note;
    struct hf_future *future = frame->task->future;

    if (pool->opts.times) {
        note->run_ns = hf_clock_now_ns(pool->clock) - frame->started_ns;
        hf_waits_note(&pool->runs, note->run_ns);
    }
    note->event = code == 0 ? HF_POOL_COMPLETED : HF_POOL_FAILED;
    note->code = code;
    pool_tell(pool, note);
    hf_mutex_lock(&pool->mutex);
    pool->counts.active--;
    *(code == 0 ? &pool->counts.completed : &pool->counts.failed) += 1;
    pool->busy_ns += note->run_ns;
    if (future != NULL) { /* after the counts: who waits may look */
        hf_mutex_unlock(&pool->mutex);
        hf_future_finish(future, &outcome);
        hf_future_release(future);
        hf_mutex_lock(&pool->mutex);
    }
    hf_ptr_store(&frames[hf_thread_slot()], frame->outer, __ATOMIC_RELAXED);
}

static void ended_its_thread(void *context)
{
    struct frame *frame = context;

    end(frame, HF_POOL_EXITED, NULL);
    hf_mutex_unlock(&frame->pool->mutex);
}

void hf_pool_run(struct hf_pool *pool, const struct hf_pool_task *task)
{
    struct hf_atomic_ptr *mine = &frames[hf_thread_slot()];
    struct frame frame = {.pool = pool,
                          .outer = hf_ptr_load(mine, __ATOMIC_RELAXED),
                          .task = task};
    void *result = NULL;
    int code = 0;

    pool->counts.active++;
    bool wake = hf_pool_call_one(pool);
    hf_mutex_unlock(&pool->mutex);
    if (wake)
        hf_event_wake(&pool->work, 1);
    hf_ptr_store(mine, &frame, __ATOMIC_RELAXED);
    pthread_cleanup_push(ended_its_thread, &frame);
    begin(&frame);
    code = task->has_result ? task->run.call(task->arg, &result)
                            : task->run.fn(task->arg);
    pthread_cleanup_pop(0);
    end(&frame, code, result);
}

void hf_pool_help(struct hf_future *future)
{
    /* It is compared before it is used: whoever runs a task of a pool knows
     * that the pool is there. */
    struct hf_pool *pool = future->owner;
    struct hf_pool_task task;

    if (pool == NULL || !hf_pool_is_mine(pool))
        return;
    hf_mutex_lock(&pool->mutex);
    if (hf_pool_take_this(pool, future, &task))
        hf_pool_run(pool, &task);
    hf_mutex_unlock(&pool->mutex);
}
