/* forkjoin.c - open, run, the end, figures.
 *
 * Callers of run are workers for that time. The workers for them are made when
 * more callers come than ever before, and kept; open makes the first. So the
 * array of workers grows only, and thieves walk through it without a lock.
 */
#include "holdfast/forkjoin.h"

#include <assert.h>
#include <string.h>

#include "base/memory.h"
#include "base/thread.h"
#include "exec/forkjoin_state.h"
#include "exec/quota.h"
#include "holdfast/deque.h"

/* Relaxed: a figure, written under the mutex. */
static void add_one(struct hf_atomic_u64 *figure)
{
    hf_u64_store(figure, hf_u64_load(figure, __ATOMIC_RELAXED) + 1,
                 __ATOMIC_RELAXED);
}

/* (m), or while opening: another worker, known to all, without a thread. NULL
 * without memory. */
static struct hf_forkjoin_worker *add_worker(struct hf_forkjoin *forkjoin)
{
    uint32_t index = hf_forkjoin_count(forkjoin);
    struct hf_deque_opts opts = {.name = forkjoin->listed.name};
    struct hf_forkjoin_worker *worker = hf_alloc_lines(sizeof *worker);

    if (worker == NULL)
        return NULL;
    worker->forkjoin = forkjoin;
    worker->index = index;
    if (hf_deque_open(&worker->deque, &opts) != HF_OK) {
        hf_free(worker);
        return NULL;
    }
    /* Release: the worker, then the array. A change of the count, not a store:
     * who is falling asleep changes it as well, so one sees the other. */
    hf_ptr_store(&forkjoin->workers[index], worker, __ATOMIC_RELEASE);
    hf_u32_add(&forkjoin->count, 1, __ATOMIC_ACQ_REL);
    return worker;
}

/* The worker that this thread is already; NULL: none. */
static struct hf_forkjoin_worker *find_self(const struct hf_forkjoin *forkjoin)
{
    uint32_t slot_plus_1 = hf_thread_slot() + 1;
    uint32_t workers = hf_forkjoin_count(forkjoin);

    for (uint32_t i = 0; i < workers; i++) {
        struct hf_forkjoin_worker *worker = hf_forkjoin_worker_at(forkjoin, i);
        /* Relaxed: only this thread writes that number anywhere. */
        if (hf_u32_load(&worker->slot_plus_1, __ATOMIC_RELAXED) == slot_plus_1)
            return worker;
    }
    return NULL;
}

/* Makes this thread a worker for the time of a run. */
static enum hf_status enter(struct hf_forkjoin *forkjoin,
                            struct hf_forkjoin_worker **out)
{
    enum hf_status status = HF_OK;
    struct hf_forkjoin_worker *guest = NULL;

    hf_mutex_lock(&forkjoin->mutex);
    if (hf_u32_load(&forkjoin->shut, __ATOMIC_RELAXED) != 0) {
        status = HF_CLOSED;
    } else if (forkjoin->free != NULL) {
        guest = forkjoin->free;
        forkjoin->free = guest->next_free;
    } else if (hf_forkjoin_count(forkjoin) == forkjoin->count_max) {
        status = HF_FULL;
    } else {
        guest = add_worker(forkjoin);
        status = guest == NULL ? HF_NOMEM : HF_OK;
    }
    if (status == HF_OK)
        add_one(&forkjoin->runs);
    else
        add_one(&forkjoin->rejected);
    hf_mutex_unlock(&forkjoin->mutex);
    *out = guest;
    return status;
}

static void leave(struct hf_forkjoin *forkjoin,
                  struct hf_forkjoin_worker *guest)
{
    assert(hf_deque_size(guest->deque) == 0); /* all was joined */
    /* Relaxed: as in find_self. */
    hf_u32_store(&guest->slot_plus_1, 0, __ATOMIC_RELAXED);
    hf_mutex_lock(&forkjoin->mutex);
    guest->next_free = forkjoin->free;
    forkjoin->free = guest;
    hf_mutex_unlock(&forkjoin->mutex);
}

enum hf_status hf_forkjoin_run(struct hf_forkjoin *forkjoin, hf_forkjoin_fn *fn,
                               void *arg)
{
    if (forkjoin == NULL || fn == NULL)
        return HF_INVALID;
    struct hf_forkjoin_worker *worker = find_self(forkjoin);
    if (worker != NULL) {
        fn(worker, arg);
        return HF_OK;
    }
    enum hf_status status = enter(forkjoin, &worker);
    if (status != HF_OK)
        return status;
    /* Relaxed: as in find_self. */
    hf_u32_store(&worker->slot_plus_1, hf_thread_slot() + 1, __ATOMIC_RELAXED);
    fn(worker, arg);
    leave(forkjoin, worker);
    return HF_OK;
}

struct hf_forkjoin *hf_forkjoin_of(struct hf_forkjoin_worker *worker)
{
    return worker == NULL ? NULL : worker->forkjoin;
}

/* ---- Figures. ---- */

void hf_forkjoin_stats(const struct hf_forkjoin *forkjoin,
                       struct hf_forkjoin_stats *out)
{
    if (out == NULL)
        return;
    *out = (struct hf_forkjoin_stats){.join_p99_ns = HF_INSPECT_NONE};
    if (forkjoin == NULL)
        return;
    uint32_t workers = hf_forkjoin_count(forkjoin);
    /* Relaxed: figures. */
    out->threads = forkjoin->threads;
    out->sleeping = hf_u32_load(&forkjoin->sleepers, __ATOMIC_RELAXED);
    out->runs = hf_u64_load(&forkjoin->runs, __ATOMIC_RELAXED);
    out->rejected = hf_u64_load(&forkjoin->rejected, __ATOMIC_RELAXED);
    out->shutdown = hf_u32_load(&forkjoin->shut, __ATOMIC_RELAXED) != 0;
    out->join_p99_ns = hf_waits_percentile_ns(&forkjoin->waits, 99);
    for (uint32_t i = 0; i < workers; i++) {
        const struct hf_forkjoin_worker *worker =
            hf_forkjoin_worker_at(forkjoin, i);
        out->forks += hf_u64_load(&worker->forks, __ATOMIC_RELAXED);
        out->steals += hf_u64_load(&worker->steals, __ATOMIC_RELAXED);
        out->parks += hf_u64_load(&worker->parks, __ATOMIC_RELAXED);
        out->queued += hf_deque_size(worker->deque);
    }
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_forkjoin_stats stats;

    /* `listed` is the first member. */
    hf_forkjoin_stats((const struct hf_forkjoin *)(const void *)listed, &stats);
    row->depth = stats.queued;
    row->rejected = stats.rejected;
    row->wait_p99_ns = stats.join_p99_ns;
}

/* ---- Beginning and end. ---- */

void hf_forkjoin_shutdown(struct hf_forkjoin *forkjoin)
{
    if (forkjoin == NULL)
        return;
    hf_mutex_lock(&forkjoin->mutex);
    hf_u32_store(&forkjoin->shut, 1, __ATOMIC_RELAXED); /* the mutex orders */
    hf_mutex_unlock(&forkjoin->mutex);
}

/* Ends the threads that were started, the first `started` workers. */
static void stop(struct hf_forkjoin *forkjoin, uint32_t started)
{
    /* Release: the event orders it, too. */
    hf_u32_store(&forkjoin->ending, 1, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < started; i++)
        hf_event_wake_all(&hf_forkjoin_worker_at(forkjoin, i)->event);
    for (uint32_t i = 0; i < started; i++)
        hf_thread_join(&hf_forkjoin_worker_at(forkjoin, i)->thread);
}

static void release(struct hf_forkjoin *forkjoin)
{
    uint32_t workers = hf_forkjoin_count(forkjoin);

    for (uint32_t i = 0; i < workers; i++) {
        struct hf_forkjoin_worker *worker = hf_forkjoin_worker_at(forkjoin, i);
        hf_deque_close(worker->deque);
        hf_free(worker);
    }
    hf_free(forkjoin);
}

void hf_forkjoin_close(struct hf_forkjoin *forkjoin)
{
    if (forkjoin == NULL)
        return;
    assert(find_self(forkjoin) == NULL); /* not in a task */
    hf_forkjoin_shutdown(forkjoin);
    stop(forkjoin, forkjoin->threads - 1);
    hf_listed_remove(&forkjoin->listed);
    release(forkjoin);
}

/* All workers there are to be from the beginning: first those with threads,
 * then one for the first caller. */
static enum hf_status populate(struct hf_forkjoin *forkjoin)
{
    for (uint32_t i = 0; i < forkjoin->threads; i++) {
        struct hf_forkjoin_worker *worker = add_worker(forkjoin);
        if (worker == NULL)
            return HF_NOMEM;
        forkjoin->free = worker; /* the last one stays it */
    }
    for (uint32_t i = 0; i < forkjoin->threads - 1; i++) {
        struct hf_forkjoin_worker *worker = hf_forkjoin_worker_at(forkjoin, i);
        enum hf_status status = hf_thread_start(
            &worker->thread, forkjoin->listed.name, hf_forkjoin_work, worker);
        if (status != HF_OK) {
            stop(forkjoin, i);
            return status;
        }
    }
    return HF_OK;
}

enum hf_status hf_forkjoin_open(struct hf_forkjoin **out,
                                const struct hf_forkjoin_opts *opts)
{
    struct hf_forkjoin_opts none = {0};

    if (opts == NULL)
        opts = &none;
    if (out == NULL || opts->threads > HF_FORKJOIN_THREADS_MAX)
        return HF_INVALID;
    uint32_t threads = opts->threads != 0 ? opts->threads : hf_cpu_share();
    if (threads > HF_FORKJOIN_THREADS_MAX)
        threads = HF_FORKJOIN_THREADS_MAX;
    uint32_t most = threads - 1 + HF_FORKJOIN_RUNS_MAX;
    size_t bytes = sizeof(struct hf_forkjoin) + most * sizeof(void *);
    bytes = (bytes + HF_CACHE_LINE - 1) / HF_CACHE_LINE * HF_CACHE_LINE;
    struct hf_forkjoin *forkjoin = hf_alloc_lines(bytes);
    if (forkjoin == NULL)
        return HF_NOMEM;
    forkjoin->clock = opts->clock != NULL ? opts->clock : hf_clock_system();
    forkjoin->threads = threads;
    forkjoin->count_max = most;
    hf_listed_add(&forkjoin->listed, "forkjoin", opts->name, fill);
    enum hf_status status = populate(forkjoin);
    if (status != HF_OK) {
        hf_listed_remove(&forkjoin->listed);
        release(forkjoin);
        return status;
    }
    *out = forkjoin;
    return HF_OK;
}
