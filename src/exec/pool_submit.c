/* pool_submit.c - a task comes in, or is refused as the policy says. */
#include <assert.h>

#include "base/memory.h"
#include "exec/pool_state.h"

#define PRIORITY_DEFAULT 3u

bool hf_pool_wants_more(const struct hf_pool *pool)
{
    const struct hf_pool_opts *opts = &pool->opts;

    if (pool->threads >= opts->max_threads || pool->counts.queued == 0)
        return false;
    if (pool->threads < opts->min_threads || pool->threads == 0)
        return true;
    if (opts->kind == HF_POOL_DYNAMIC &&
        pool->counts.queued >= opts->grow_depth)
        return true;
    return pool->counts.queued > pool->idle;
}

void hf_pool_cancel(const struct hf_pool_task *task)
{
    const struct hf_outcome cancelled = {HF_CANCELLED, 0, NULL};

    if (task->future == NULL)
        return;
    hf_future_finish(task->future, &cancelled);
    hf_future_release(task->future);
}

static void tell(struct hf_pool *pool, enum hf_pool_event event,
                 const struct hf_pool_task *task)
{
    const struct hf_pool_note note = {.event = event, .task = task->name};

    pool_tell(pool, &note);
}

/* ---- Accepting. ---- */

/* Asks for another worker for this task. HF_NOMEM, HF_CLOSED: there is none,
 * nobody else will run it, and it has been taken back. */
static enum hf_status hire(struct hf_pool *pool,
                           const struct hf_pool_task *task)
{
    hf_mutex_lock(&pool->birth);
    enum hf_status status = hf_pool_grow(pool, hf_pool_wants_more);
    if (status == HF_NOMEM || status == HF_CLOSED) {
        /* Nobody is about to be born, so what is counted is alive, and who is
         * alive does not leave while the task is queued. */
        hf_mutex_lock(&pool->mutex);
        if (pool->threads > 0 || !hf_pool_withdraw(pool, task))
            status = HF_OK;
        hf_mutex_unlock(&pool->mutex);
    } else {
        status = HF_OK;
    }
    hf_mutex_unlock(&pool->birth);
    hf_pool_bury(pool);
    return status;
}

void hf_pool_discard(struct hf_pool *pool, const struct hf_pool_task *task)
{
    hf_pool_cancel(task);
    tell(pool, HF_POOL_DISCARDED, task);
}

void hf_pool_attend(struct hf_pool *pool)
{
    hf_mutex_lock(&pool->mutex);
    hf_pool_fetch_all(pool);
    bool wake = hf_pool_call_one(pool);
    bool grow = hf_pool_wants_more(pool);
    hf_mutex_unlock(&pool->mutex);
    if (wake)
        hf_event_wake(&pool->work, 1);
    if (grow) {
        hf_mutex_lock(&pool->birth);
        enum hf_status status = hf_pool_grow(pool, hf_pool_wants_more);
        hf_mutex_unlock(&pool->birth);
        /* Who can push has threads that stay, unless their tasks end them. */
        if (status == HF_NOMEM)
            hf_pool_forsake(pool);
        hf_pool_bury(pool);
    }
}

/* Puts the task into the queue, under the lock. HF_MORE: no memory. */
static enum hf_status put(struct hf_pool *pool, struct hf_pool_task *task)
{
    enum hf_status status = hf_pool_put(pool, task);

    if (status == HF_MORE) {
        hf_mutex_unlock(&pool->mutex);
        struct pool_block *block = hf_alloc_aligned(POOL_LINE, sizeof *block);
        hf_mutex_lock(&pool->mutex);
        if (block != NULL)
            hf_pool_add_block(pool, block);
        status = hf_pool_put(pool, task);
    }
    return status;
}

/* HF_OK: the pool has the task, or had. Anything else: it has not. With
 * `evict` it takes the place of the oldest if there is no other; HF_EMPTY: all
 * that are queued are more urgent. */
static enum hf_status accept(struct hf_pool *pool, struct hf_pool_task *task,
                             bool evict)
{
    struct hf_pool_task oldest;
    bool evicted = false;

    if (task->next == NULL && pool->opts.min_threads > 0)
        (void)hf_locals_mine(&pool->locals, sizeof(struct pool_local));
    hf_mutex_lock(&pool->mutex);
    hf_pool_fetch_all(pool);
    /* Full and yet empty: others have a place and are about to push. */
    if (evict && pool->state == HF_POOL_RUNNING && !hf_pool_is_queued(task) &&
        hf_pool_is_full(pool) && pool->counts.queued > 0) {
        if (hf_pool_least(pool) < task->level) {
            hf_mutex_unlock(&pool->mutex);
            return HF_EMPTY;
        }
        evicted = hf_pool_take_least(pool, &oldest);
        pool->counts.discarded += evicted;
    }
    enum hf_status status = put(pool, task);
    bool wake = hf_pool_call_one(pool);
    bool grow = hf_pool_wants_more(pool) || pool_alive(pool) == 0;
    hf_mutex_unlock(&pool->mutex);
    if (evicted)
        hf_pool_discard(pool, &oldest);
    if (wake)
        hf_event_wake(&pool->work, 1);
    if (status != HF_OK)
        return status == HF_MORE ? HF_NOMEM : status;
    if (grow)
        status = hire(pool, task);
    if (status == HF_OK)
        tell(pool, HF_POOL_SUBMITTED, task);
    return status;
}

/* ---- Refusing. ---- */

/* Waits until there may be room. */
static enum hf_status await_room(struct hf_pool *pool, uint64_t deadline_ns)
{
    hf_mutex_lock(&pool->mutex);
    if (pool->state != HF_POOL_RUNNING || !hf_pool_is_full(pool)) {
        hf_mutex_unlock(&pool->mutex);
        return HF_OK; /* accept will tell */
    }
    pool->blocked++;
    uint32_t key = hf_event_prepare(&pool->room);
    hf_mutex_unlock(&pool->mutex);
    enum hf_status status =
        hf_event_wait(&pool->room, key, pool->clock, deadline_ns);
    hf_mutex_lock(&pool->mutex);
    pool->blocked--;
    hf_mutex_unlock(&pool->mutex);
    return status;
}

/* After a time-out the task is tried once more: so a wake-up that came with
 * the deadline is not lost to those who still wait. */
static enum hf_status accept_blocking(struct hf_pool *pool,
                                      struct hf_pool_task *task)
{
    uint64_t deadline_ns = HF_FOREVER;
    enum hf_status status = HF_FULL;

    if (pool->opts.block_ns != 0)
        deadline_ns = hf_clock_after_ns(pool->clock, pool->opts.block_ns);
    while (status == HF_FULL) {
        enum hf_status waited = await_room(pool, deadline_ns);
        status = accept(pool, task, false);
        if (status == HF_FULL && waited == HF_TIMEOUT)
            return HF_TIMEOUT;
    }
    if (status == HF_NOMEM || status == HF_EXISTS) /* the room is another's */
        hf_event_wake(&pool->room, 1);
    return status;
}

/* The submitter runs it, and is a worker for that time. */
static enum hf_status run_here(struct hf_pool *pool, struct hf_pool_task *task)
{
    if (task->future != NULL) {
        bool begun = hf_future_begin(task->future);
        assert(begun); /* nobody else has it */
        (void)begun;
    }
    tell(pool, HF_POOL_SUBMITTED, task);
    hf_mutex_lock(&pool->mutex);
    pool->counts.submitted++;
    pool->counts.caller_ran++;
    hf_pool_run(pool, task);
    hf_mutex_unlock(&pool->mutex);
    return HF_OK;
}

static void count(struct hf_pool *pool, uint64_t *counter)
{
    hf_mutex_lock(&pool->mutex);
    ++*counter;
    hf_mutex_unlock(&pool->mutex);
}

/* Not by us, but without an error: dropped, or cared for by `ask`. */
static enum hf_status let_go(struct hf_pool *pool, struct hf_pool_task *task,
                             enum hf_pool_event event)
{
    if (task->future != NULL && hf_future_begin(task->future))
        hf_pool_cancel(task);
    tell(pool, event, task);
    return HF_OK;
}

static enum hf_status discard_new(struct hf_pool *pool,
                                  struct hf_pool_task *task)
{
    hf_mutex_lock(&pool->mutex);
    pool->counts.submitted++;
    pool->counts.discarded++;
    hf_mutex_unlock(&pool->mutex);
    return let_go(pool, task, HF_POOL_DISCARDED);
}

static enum hf_status accept_for_oldest(struct hf_pool *pool,
                                        struct hf_pool_task *task)
{
    enum hf_status status = accept(pool, task, true);

    while (status == HF_FULL) { /* others were quicker */
        hf_thread_yield();
        status = accept(pool, task, true);
    }
    return status == HF_EMPTY ? discard_new(pool, task) : status;
}

/* `why` is HF_FULL or HF_CLOSED. Anything but HF_OK: the task is not the
 * pool's. */
static enum hf_status refuse(struct hf_pool *pool, struct hf_pool_task *task,
                             enum hf_status why)
{
    switch (pool->opts.reject) {
    case HF_POOL_DISCARD:
        return discard_new(pool, task);
    case HF_POOL_DISCARD_OLDEST:
        return why == HF_CLOSED ? why : accept_for_oldest(pool, task);
    case HF_POOL_CALLER_RUNS:
        return why == HF_CLOSED ? why : run_here(pool, task);
    case HF_POOL_BLOCK:
        if (why == HF_CLOSED)
            return why;
        /* A task that waited for room in its own pool could wait for ever. */
        return hf_pool_is_mine(pool) ? run_here(pool, task)
                                     : accept_blocking(pool, task);
    case HF_POOL_ASK:
        why = pool->opts.ask(pool->opts.context,
                             task->has_result ? NULL : task->run.fn, task->arg);
        if (why != HF_OK)
            return why;
        count(pool, &pool->counts.rejected);
        return let_go(pool, task, HF_POOL_REJECTED);
    default:
        return why;
    }
}

/* ---- Submitting. ---- */

/* The level of a task; false: there is no such priority. */
static bool set_options(struct hf_pool_task *task,
                        const struct hf_task_opts *opts)
{
    uint32_t priority =
        opts == NULL || opts->priority == 0 ? PRIORITY_DEFAULT : opts->priority;

    if (priority > HF_POOL_PRIORITIES)
        return false;
    task->name = opts == NULL || opts->name == NULL ? "" : opts->name;
    task->level = (uint16_t)(priority - 1);
    return true;
}

/* By the pool, or by its policy. */
static enum hf_status bring(struct hf_pool *pool, struct hf_pool_task *task)
{
    if (pool->opts.times)
        task->submitted_ns = hf_clock_now_ns(pool->clock);
    if (task->next == NULL && hf_pool_push(pool, task)) {
        tell(pool, HF_POOL_SUBMITTED, task);
        return HF_OK;
    }
    enum hf_status status = accept(pool, task, false);
    if (status == HF_FULL || status == HF_CLOSED)
        status = refuse(pool, task, status);
    if (status != HF_OK && status != HF_EXISTS) {
        count(pool, &pool->counts.rejected);
        tell(pool, HF_POOL_REJECTED, task);
    }
    return status;
}

static enum hf_status submit(struct hf_pool *pool, struct hf_pool_task *task,
                             const struct hf_task_opts *opts,
                             struct hf_future **future)
{
    if (pool == NULL || !set_options(task, opts))
        return HF_INVALID;
    if (future != NULL) {
        task->future = hf_future_new(pool->clock, pool);
        if (task->future == NULL)
            return HF_NOMEM;
        hf_future_retain(
            task->future); /* one for the task, one for the caller */
    }
    enum hf_status status = bring(pool, task);
    if (status != HF_OK) {
        hf_future_release(task->future); /* nobody has seen it */
        hf_future_release(task->future);
        return status;
    }
    if (future != NULL)
        *future = task->future;
    return HF_OK;
}

enum hf_status hf_pool_submit(struct hf_pool *pool, int (*fn)(void *arg),
                              void *arg, const struct hf_task_opts *opts,
                              struct hf_future **future)
{
    struct hf_pool_task task = {.run.fn = fn, .arg = arg};

    return fn == NULL ? HF_INVALID : submit(pool, &task, opts, future);
}

enum hf_status hf_pool_call(struct hf_pool *pool,
                            int (*fn)(void *arg, void **result), void *arg,
                            const struct hf_task_opts *opts,
                            struct hf_future **future)
{
    struct hf_pool_task task = {.run.call = fn, .arg = arg, .has_result = true};

    return fn == NULL ? HF_INVALID : submit(pool, &task, opts, future);
}

/* ---- Posting. ---- */

enum hf_status hf_pool_work_init(struct hf_pool_work *work,
                                 struct hf_pool *pool, int (*fn)(void *arg),
                                 void *arg, const struct hf_task_opts *opts)
{
    struct hf_pool_task task = {.run.fn = fn, .arg = arg, .posted = true};

    if (work == NULL || pool == NULL || fn == NULL || !set_options(&task, opts))
        return HF_INVALID;
    *work = (struct hf_pool_work){.task = task, .pool = pool};
    return HF_OK;
}

enum hf_status hf_pool_post(struct hf_pool_work *work)
{
    if (work == NULL)
        return HF_INVALID;
    /* Only what never changes: others may post it, or run it. */
    struct hf_pool_task form = {.next = &work->task,
                                .run.fn = work->task.run.fn,
                                .arg = work->task.arg,
                                .name = work->task.name,
                                .level = work->task.level,
                                .posted = true};
    return bring(work->pool, &form);
}
