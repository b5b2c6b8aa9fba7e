/* pool.c - open, the end, figures. */
#include "holdfast/pool.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

#include "base/memory.h"
#include "exec/pool_state.h"
#include "exec/quota.h"

_Static_assert(sizeof(struct hf_pool_task) == POOL_LINE, "fits a cache line");
_Static_assert(sizeof(struct pool_block) == 4096, "fits a page");

#define IDLE_NS_DEFAULT UINT64_C(10000000000)

/* ---- The end. ---- */

void hf_pool_shutdown(struct hf_pool *pool)
{
    if (pool == NULL)
        return;
    hf_mutex_lock(&pool->birth); /* no birth is under way */
    hf_mutex_lock(&pool->mutex);
    if (pool->state == HF_POOL_RUNNING) {
        hf_pool_shut_inboxes(pool);
        pool->state = pool->threads == 0 ? HF_POOL_STOPPED : HF_POOL_SHUTDOWN;
        hf_u32_store(&pool->any, 1, __ATOMIC_RELAXED); /* for a look */
    }
    hf_mutex_unlock(&pool->mutex);
    hf_mutex_unlock(&pool->birth);
    hf_event_wake_all(&pool->work);
    hf_event_wake_all(&pool->room);
    hf_event_wake_all(&pool->over);
}

size_t hf_pool_shutdown_now(struct hf_pool *pool,
                            void (*hand_back)(void *context, void *arg),
                            void *context)
{
    struct pool_list back = {NULL, NULL};
    struct hf_pool_task task;
    size_t returned = 0;

    if (pool == NULL)
        return 0;
    hf_pool_shutdown(pool);
    /* All at once, so that none begins while others are handed back. */
    hf_mutex_lock(&pool->mutex);
    while (hf_pool_take(pool, &task)) {
        struct hf_pool_task *record = task.prev; /* the one it was in */
        if (!record->posted)
            pool->free_tasks = record->next;
        record->next = NULL;
        *(back.last == NULL ? &back.first : &back.last->next) = record;
        back.last = record;
        returned++;
    }
    pool->counts.returned += returned;
    hf_mutex_unlock(&pool->mutex);
    /* The records go with the pool; a work may go when it is handed back. */
    for (struct hf_pool_task *at = back.first, *next; at != NULL; at = next) {
        next = at->next;
        hf_pool_cancel(at);
        if (hand_back != NULL)
            hand_back(context, at->arg);
    }
    return returned;
}

static enum hf_status is_stopped(void *context)
{
    struct hf_pool *pool = context;

    hf_mutex_lock(&pool->mutex);
    bool stopped = pool->state == HF_POOL_STOPPED;
    hf_mutex_unlock(&pool->mutex);
    return stopped ? HF_OK : HF_PENDING;
}

enum hf_status hf_pool_await(struct hf_pool *pool, uint64_t deadline_ns)
{
    if (pool == NULL || hf_pool_is_mine(pool)) /* it would wait for itself */
        return HF_INVALID;
    enum hf_status status =
        hf_event_until(&pool->over, is_stopped, pool, pool->clock, deadline_ns);
    if (status == HF_OK)
        hf_pool_bury(pool);
    return status;
}

void hf_pool_close(struct hf_pool *pool)
{
    if (pool == NULL || pool->of_process)
        return;
    hf_pool_shutdown(pool);
    enum hf_status status = hf_pool_await(pool, HF_FOREVER);
    assert(status == HF_OK); /* not from a task */
    (void)status;
    hf_listed_remove(&pool->listed);
    hf_locals_destroy(&pool->locals);
    while (pool->blocks != NULL) {
        struct pool_block *block = pool->blocks;
        pool->blocks = block->next;
        hf_free(block);
    }
    hf_free(pool);
}

/* ---- Figures. ---- */

static uint64_t percentile_ns(const struct hf_waits *waits, unsigned percent)
{
    return waits == NULL ? HF_INSPECT_NONE
                         : hf_waits_percentile_ns(waits, percent);
}

void hf_pool_stats(struct hf_pool *pool, struct hf_pool_stats *out)
{
    if (pool == NULL || out == NULL)
        return;
    hf_mutex_lock(&pool->mutex);
    hf_pool_fetch_all(pool);
    uint64_t now_ns = hf_clock_now_ns(pool->clock);
    *out = pool->counts;
    out->state = pool->state;
    out->threads = pool_alive(pool);
    uint64_t thread_ns =
        pool->thread_ns + out->threads * (now_ns - pool->changed_ns);
    uint64_t busy_ns = pool->busy_ns;
    hf_mutex_unlock(&pool->mutex);
    out->utilisation = thread_ns == 0 ? 0 : (double)busy_ns / (double)thread_ns;
    const bool times = pool->opts.times;
    const struct hf_waits *queue = times ? &pool->queue_waits : NULL;
    const struct hf_waits *runs = times ? &pool->runs : NULL;
    out->queue_p50_ns = percentile_ns(queue, 50);
    out->queue_p99_ns = percentile_ns(queue, 99);
    out->run_p50_ns = percentile_ns(runs, 50);
    out->run_p99_ns = percentile_ns(runs, 99);
}

/* How long the oldest task has waited; with `times`. */
static uint64_t oldest_ns(struct hf_pool *pool)
{
    uint64_t first_ns = UINT64_MAX;

    hf_mutex_lock(&pool->mutex);
    hf_pool_fetch_all(pool);
    uint64_t now_ns = hf_clock_now_ns(pool->clock);
    for (unsigned i = 0; i < HF_POOL_PRIORITIES; i++) {
        const struct hf_pool_task *task = pool->queue[i].first;
        if (task != NULL && task->submitted_ns < first_ns)
            first_ns = task->submitted_ns;
    }
    hf_mutex_unlock(&pool->mutex);
    return first_ns < now_ns ? now_ns - first_ns : 0;
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_pool_stats stats;
    /* `listed` is the first member of the pool, which is no constant. */
    struct hf_pool *pool = (struct hf_pool *)(uintptr_t)listed;

    hf_pool_stats(pool, &stats);
    row->depth = stats.queued;
    if (pool->opts.queue_max != HF_POOL_QUEUE_UNBOUNDED)
        row->capacity = pool->opts.queue_max;
    if (pool->opts.times)
        row->oldest_ns = oldest_ns(pool);
    row->rejected = stats.rejected + stats.discarded;
    row->wait_p99_ns = stats.queue_p99_ns;
}

/* ---- Opening. ---- */

/* Fills in the defaults; false if a field is out of its range. */
static bool complete(struct hf_pool_opts *opts)
{
    bool single = opts->kind == HF_POOL_SINGLE;
    uint32_t most = single ? 1 : HF_POOL_THREADS_MAX;

    if ((unsigned)opts->kind > HF_POOL_DYNAMIC ||
        (unsigned)opts->reject > HF_POOL_ASK ||
        (opts->reject == HF_POOL_ASK && opts->ask == NULL) ||
        opts->min_threads > most || opts->max_threads > most ||
        (opts->max_threads != 0 && opts->min_threads > opts->max_threads))
        return false;
    if (opts->max_threads == 0)
        opts->max_threads = single                         ? 1
                            : opts->kind == HF_POOL_CACHED ? HF_POOL_THREADS_MAX
                                                           : hf_cpu_share();
    if (opts->max_threads > HF_POOL_THREADS_MAX)
        opts->max_threads = HF_POOL_THREADS_MAX;
    if (opts->max_threads < opts->min_threads)
        opts->max_threads = opts->min_threads;
    if (opts->kind == HF_POOL_CACHED)
        opts->min_threads = 0;
    else if (opts->kind != HF_POOL_DYNAMIC)
        opts->min_threads = opts->max_threads;
    else if (opts->min_threads == 0)
        opts->min_threads = 1;
    if (opts->queue_max == 0)
        opts->queue_max = HF_POOL_QUEUE_DEFAULT;
    if (opts->grow_depth == 0)
        opts->grow_depth = 2 * opts->max_threads;
    if (opts->idle_ns == 0)
        opts->idle_ns = IDLE_NS_DEFAULT;
    return true;
}

static bool wants_least(const struct hf_pool *pool)
{
    return pool->threads < pool->opts.min_threads;
}

enum hf_status hf_pool_open(struct hf_pool **out,
                            const struct hf_pool_opts *opts)
{
    struct hf_pool_opts all = {0};
    enum hf_status status = HF_OK;

    if (opts != NULL)
        all = *opts;
    if (out == NULL || !complete(&all))
        return HF_INVALID;
    struct hf_pool *pool = hf_alloc_lines(sizeof *pool);
    if (pool == NULL)
        return HF_NOMEM;
    if (hf_locals_init(&pool->locals, sizeof(struct pool_local)) != HF_OK) {
        hf_free(pool);
        return HF_NOMEM;
    }
    pool->opts = all;
    pool->clock = all.clock == NULL ? hf_clock_system() : all.clock;
    pool->changed_ns = hf_clock_now_ns(pool->clock);
    hf_listed_add(&pool->listed, "pool", all.name, fill);
    /* Until its threads are there. Relaxed: nobody else has it yet. */
    hf_u32_store(&pool->attention, 1, __ATOMIC_RELAXED);
    hf_mutex_lock(&pool->birth);
    for (uint32_t i = 0; i < all.min_threads && status == HF_OK; i++)
        status = hf_pool_grow(pool, wants_least);
    hf_mutex_unlock(&pool->birth);
    if (status != HF_OK) {
        hf_pool_close(pool);
        return HF_NOMEM;
    }
    *out = pool;
    return HF_OK;
}

static struct hf_pool *default_pool; /* (i) after the first call */

static void open_default(void)
{
    const struct hf_pool_opts opts = {.name = "default",
                                      .kind = HF_POOL_DYNAMIC,
                                      .queue_max = HF_POOL_QUEUE_UNBOUNDED};

    if (hf_pool_open(&default_pool, &opts) == HF_OK)
        default_pool->of_process = true;
    else
        default_pool = NULL;
}

struct hf_pool *hf_pool_default(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, open_default);
    return default_pool;
}

/* Nobody closes it. What the thread sanitizer reports as a leak is a thread
 * that has ended, of old age for instance, and was not joined. */
__attribute__((destructor)) static void join_default(void)
{
    if (default_pool != NULL)
        hf_pool_bury(default_pool);
}
