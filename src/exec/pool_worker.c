/* pool_worker.c - a worker's life: birth, work, idleness, end. */
#include <assert.h>
#include <pthread.h>

#include "base/memory.h"
#include "exec/pool_state.h"

/* Looks for work before a worker sleeps: as long as some short tasks take; and
 * then as long as a sleep and a wake-up would take, with the processor free for
 * others. */
#define SPINS  200
#define YIELDS 10

/* ---- Idleness. ---- */

/* Before it changes how many are alive. */
static void note_thread_ns(struct hf_pool *pool)
{
    uint64_t now_ns = hf_clock_now_ns(pool->clock);

    assert(hf_mutex_held(&pool->mutex));
    pool->thread_ns += pool_alive(pool) * (now_ns - pool->changed_ns);
    pool->changed_ns = now_ns;
}

static void threads_change(struct hf_pool *pool, int by)
{
    assert(hf_mutex_held(&pool->mutex));
    pool->threads = (uint32_t)((int)pool->threads + by);
    hf_pool_note_attention(pool);
}

/* Looks for a while without the lock. One at a time: it calls the next if it
 * finds more than it can do. */
static void search(struct hf_pool *pool)
{
    pool->searching++;
    hf_pool_note_attention(pool);
    hf_u32_store(&pool->any, 0, __ATOMIC_RELAXED);
    hf_mutex_unlock(&pool->mutex);
    const int looks = hf_thread_spins(SPINS + YIELDS);
    for (int i = 0; i < looks; i++) {
        /* Relaxed: the look that counts is under the lock. */
        if (hf_u32_load(&pool->any, __ATOMIC_RELAXED) ||
            hf_pool_inbox_any(pool))
            break;
        if (i < SPINS)
            hf_thread_pause();
        else
            hf_thread_yield();
    }
    hf_mutex_lock(&pool->mutex);
    pool->searching--;
    hf_pool_note_attention(pool);
}

/* HF_OK: it was woken; there may be more to come. */
static enum hf_status sleep_until(struct hf_pool *pool, uint64_t deadline_ns)
{
    enum hf_status status = HF_OK;

    pool->asleep++;
    uint32_t key = hf_event_prepare(&pool->work);
    hf_pool_note_attention(pool);
    if (hf_pool_inbox_any(pool)) {
        hf_event_cancel(&pool->work, key);
    } else {
        hf_mutex_unlock(&pool->mutex);
        status = hf_event_wait(&pool->work, key, pool->clock, deadline_ns);
        hf_mutex_lock(&pool->mutex);
    }
    pool->asleep--;
    /* Or another was called: then that one finds us at work. */
    if (pool->called > 0)
        pool->called--;
    hf_pool_note_attention(pool);
    return status;
}

/* The next task, for which the worker waits; false: its life is over. The
 * worker is counted as idle before and after, but not if it has a task. */
static bool await_task(struct hf_pool *pool, struct hf_pool_task *task)
{
    uint64_t idle_until_ns = 0; /* not known before it has to be */
    bool searched = false;

    assert(hf_mutex_held(&pool->mutex));
    while (!hf_pool_take(pool, task)) {
        uint64_t deadline_ns = HF_FOREVER;
        if (pool->state != HF_POOL_RUNNING)
            return false;
        /* A birth under way may fail: it does not let another go. */
        if (pool_alive(pool) > pool->opts.min_threads) {
            if (idle_until_ns == 0)
                idle_until_ns =
                    hf_clock_after_ns(pool->clock, pool->opts.idle_ns);
            deadline_ns = idle_until_ns;
            if (deadline_ns != HF_FOREVER &&
                hf_clock_now_ns(pool->clock) >= deadline_ns)
                return false;
        }
        if (searched || pool->searching > 0) {
            searched = sleep_until(pool, deadline_ns) != HF_OK;
        } else {
            search(pool);
            searched = true;
        }
    }
    return true;
}

/* Leaves the count; false: somebody has pushed a task meanwhile and counted on
 * this one, which has to stay. */
static bool leave(struct hf_pool *pool)
{
    note_thread_ns(pool);
    pool->idle--;
    threads_change(pool, -1);
    if (!hf_pool_inbox_any(pool)) /* after it was noted that one is missing */
        return true;
    pool->idle++;
    threads_change(pool, +1);
    return false;
}

/* ---- Birth. ---- */

/* One who is being born will look for work. */
static void birth_begins(struct hf_pool *pool, struct pool_worker *worker)
{
    assert(pool->newborn == NULL);
    pool->newborn = worker;
    pool->idle++;
    threads_change(pool, +1);
}

static void birth_failed(struct hf_pool *pool)
{
    pool->newborn = NULL;
    pool->idle--;
    threads_change(pool, -1);
}

/* It is alive: it says so itself, or whoever started it, as it comes. */
static void birth_succeeded(struct hf_pool *pool)
{
    note_thread_ns(pool);
    pool->newborn = NULL;
    if (pool->counts.threads_peak < pool->threads)
        pool->counts.threads_peak = pool->threads;
    /* Those who had to stay sleep without a deadline. Now one may leave. */
    if (pool->threads == pool->opts.min_threads + 1 && pool->asleep > 0)
        hf_event_wake_all(&pool->work);
}

static void worker_main(void *argument);

/* Ends a birth that was begun; the worker's memory is taken care of. */
static enum hf_status start(struct hf_pool *pool, struct pool_worker *worker)
{
    assert(hf_mutex_held(&pool->birth));
    worker->pool = pool;
    enum hf_status status = hf_thread_start(&worker->thread, pool->listed.name,
                                            worker_main, worker);
    hf_mutex_lock(&pool->mutex);
    if (status != HF_OK)
        birth_failed(pool);
    else if (pool->newborn != NULL) /* it has not come to it itself */
        birth_succeeded(pool);
    hf_mutex_unlock(&pool->mutex);
    if (status != HF_OK)
        hf_free(worker);
    return status;
}

enum hf_status hf_pool_grow(struct hf_pool *pool,
                            bool (*wanted)(const struct hf_pool *pool))
{
    enum hf_status status = HF_OK;
    struct pool_worker *worker = hf_alloc_zeroed(sizeof *worker);

    assert(hf_mutex_held(&pool->birth));
    hf_mutex_lock(&pool->mutex);
    if (pool->state != HF_POOL_RUNNING)
        status = HF_CLOSED;
    else if (!wanted(pool))
        status = HF_FULL;
    else if (worker == NULL)
        status = HF_NOMEM;
    else
        birth_begins(pool, worker);
    hf_mutex_unlock(&pool->mutex);
    if (status == HF_OK)
        return start(pool, worker);
    hf_free(worker);
    return status;
}

/* ---- Life, and death. ---- */

/* Those who are gone are to be joined; they may still be on their way out. */
static void join_the_gone(struct hf_pool *pool, struct pool_worker *worker)
{
    worker->next = pool->gone;
    pool->gone = worker;
}

void hf_pool_forsake(struct hf_pool *pool)
{
    struct hf_pool_task task;
    bool any = true;

    while (any) {
        hf_mutex_lock(&pool->mutex);
        any = pool->threads == 0 && hf_pool_take(pool, &task);
        pool->counts.discarded += any;
        if (!any && pool->threads == 0 && pool->state == HF_POOL_SHUTDOWN) {
            pool->state = HF_POOL_STOPPED;
            hf_event_wake_all(&pool->over);
        }
        hf_mutex_unlock(&pool->mutex);
        if (any)
            hf_pool_discard(pool, &task);
    }
}

/* A task has ended the thread, and has been accounted for. Another takes the
 * worker's place, also after shutdown if there is work; so nobody is born whom
 * those who wait for the end do not know of. */
static void worker_lost(void *argument)
{
    struct pool_worker *worker = argument;
    struct hf_pool *pool = worker->pool;
    struct pool_worker *heir = hf_alloc_zeroed(sizeof *heir);

    hf_mutex_lock(&pool->birth);
    hf_mutex_lock(&pool->mutex);
    note_thread_ns(pool);
    threads_change(pool, -1);
    join_the_gone(pool, worker);
    bool needed = pool->state == HF_POOL_RUNNING || pool->counts.queued > 0;
    if (needed && heir != NULL)
        birth_begins(pool, heir);
    hf_mutex_unlock(&pool->mutex);
    if (!needed)
        hf_free(heir);
    else if (heir != NULL)
        (void)start(pool, heir);
    hf_mutex_unlock(&pool->birth);
    hf_pool_forsake(pool); /* if there is nobody */
}

static void worker_main(void *argument)
{
    struct pool_worker *worker = argument;
    struct hf_pool *pool = worker->pool;
    struct hf_pool_task task;

    hf_mutex_lock(&pool->mutex);
    if (pool->newborn == worker)
        birth_succeeded(pool);
    pthread_cleanup_push(worker_lost, worker);
    do {
        while (await_task(pool, &task)) {
            pool->idle--;
            hf_pool_run(pool, &task);
            pool->idle++;
        }
    } while (!leave(pool));
    pthread_cleanup_pop(0);
    /* It leaves the count, and comes to those who are gone, in one breath:
     * whoever finds nobody left finds all of them there, and joins them. */
    join_the_gone(pool, worker);
    if (pool->threads == 0 && pool->state != HF_POOL_RUNNING) {
        pool->state = HF_POOL_STOPPED;
        hf_event_wake_all(&pool->over);
    }
    hf_mutex_unlock(&pool->mutex);
}

void hf_pool_bury(struct hf_pool *pool)
{
    /* A worker may be gone before whoever started it has noted its thread. */
    hf_mutex_lock(&pool->birth);
    hf_mutex_lock(&pool->mutex);
    struct pool_worker *gone = pool->gone;
    pool->gone = NULL;
    hf_mutex_unlock(&pool->mutex);
    hf_mutex_unlock(&pool->birth);
    while (gone != NULL) {
        struct pool_worker *worker = gone;
        gone = worker->next;
        hf_thread_join(&worker->thread);
        hf_free(worker);
    }
}
