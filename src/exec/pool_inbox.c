/* pool_inbox.c - the way into the queue without the lock.
 *
 *   submitters --push--> inbox of the level --swap, turn round--> list
 *                        newest first           under the lock
 *
 * A push is one swap of the inbox's word, so submitters do not wait for
 * workers, and a worker fetches all that has come in one go, and only when its
 * list is empty: tasks in an inbox are younger than those in the list of the
 * same level.
 *
 * `attention` says that a push alone is not enough: somebody is to be woken, or
 * another worker to be born. Whoever makes it so stores it and looks at the
 * inboxes then; whoever pushes looks at it then. All four are seq_cst, so that
 * one of the two sees the other.
 *
 *   pushes             falls asleep, or leaves it to others to look
 *   swap the inbox     store attention
 *   load attention     load the inboxes
 *
 * Shutdown puts `shut` into the inboxes, for good.
 */
#include <assert.h>

#include "exec/pool_state.h"

/* Records that a thread takes at a time, for its next pushes. */
#ifdef HF_STEPPED
#define REFILL 2
#else
#define REFILL 64
#endif

static struct hf_pool_task shut; /* its address only */

/* ---- Places in a queue that has a bound. ---- */

static bool enter_below(struct hf_pool *pool, uint64_t end)
{
    /* Relaxed: counts. Who is told "full" looks under the lock. */
    uint64_t entered = hf_u64_load(&pool->entered, __ATOMIC_RELAXED);

    do {
        if (entered >= end)
            return false;
    } while (
        !hf_u64_cas(&pool->entered, &entered, entered + 1, __ATOMIC_RELAXED));
    return true;
}

bool hf_pool_is_full(const struct hf_pool *pool)
{
    assert(hf_mutex_held(&pool->mutex));
    if (pool->opts.queue_max == HF_POOL_QUEUE_UNBOUNDED)
        return false;
    return hf_u64_load(&pool->entered, __ATOMIC_RELAXED) - pool->left >=
           pool->opts.queue_max;
}

bool hf_pool_enter(struct hf_pool *pool)
{
    uint64_t end;

    assert(hf_mutex_held(&pool->mutex));
    if (pool->opts.queue_max == HF_POOL_QUEUE_UNBOUNDED)
        return true;
    if (__builtin_add_overflow(pool->left, pool->opts.queue_max, &end))
        end = UINT64_MAX;
    if (!enter_below(pool, end))
        return false;
    /* Relaxed: it only grows, and what is too small costs a look. */
    hf_u64_store(&pool->entry_end, end, __ATOMIC_RELAXED);
    return true;
}

/* ---- Who is to be woken. ---- */

/* So many awake or on their way are enough: each that takes a task calls the
 * next. Not one only: it may be the one that gets no processor. */
#define LOOKERS 2

static bool enough_look(const struct hf_pool *pool)
{
    return pool->searching + pool->called >= LOOKERS;
}

void hf_pool_note_attention(struct hf_pool *pool)
{
    bool sleepers = pool->asleep > pool->called && !enough_look(pool);
    uint32_t attention = sleepers || pool->opts.min_threads == 0 ||
                         pool->threads < pool->opts.max_threads;

    assert(hf_mutex_held(&pool->mutex));
    /* Written under the lock only. */
    if (hf_u32_load(&pool->attention, __ATOMIC_RELAXED) != attention)
        hf_u32_store(&pool->attention, attention, __ATOMIC_SEQ_CST);
}

bool hf_pool_inbox_any(const struct hf_pool *pool)
{
    for (unsigned i = 0; i < HF_POOL_PRIORITIES; i++) {
        struct hf_pool_task *last =
            hf_ptr_load(&pool->inboxes[i].last, __ATOMIC_SEQ_CST);
        if (last != NULL && last != &shut)
            return true;
    }
    return false;
}

bool hf_pool_call_one(struct hf_pool *pool)
{
    assert(hf_mutex_held(&pool->mutex));
    if (pool->asleep <= pool->called || enough_look(pool))
        return false;
    if (pool->counts.queued == 0 && !hf_pool_inbox_any(pool))
        return false;
    pool->called++;
    hf_pool_note_attention(pool);
    return true;
}

/* ---- From the inboxes to the lists. ---- */

/* What was pushed, the newest first, to the end of its list. */
static void append(struct hf_pool *pool, struct pool_list *list,
                   struct hf_pool_task *newest)
{
    struct hf_pool_task *last = newest;
    struct hf_pool_task *after = NULL;
    uint64_t count = 0;

    while (newest != NULL) { /* turned round, link by link */
        struct hf_pool_task *older = newest->next;
        newest->next = after;
        newest->prev = older;
        after = newest;
        newest = older;
        count++;
    }
    after->prev = list->last;
    *(list->last == NULL ? &list->first : &list->last->next) = after;
    list->last = last;
    pool->counts.submitted += count;
    pool->counts.queued += count;
}

void hf_pool_fetch(struct hf_pool *pool, unsigned level)
{
    struct hf_atomic_ptr *inbox = &pool->inboxes[level].last;

    /* Relaxed: who submitted before in time is seen by coherence; who sleeps
     * looks again. Shut is never taken out. */
    if (hf_ptr_load(inbox, __ATOMIC_RELAXED) == NULL ||
        pool->state != HF_POOL_RUNNING)
        return;
    /* Acquire: what the records hold. */
    append(pool, &pool->queue[level],
           hf_ptr_swap(inbox, NULL, __ATOMIC_ACQUIRE));
}

void hf_pool_fetch_all(struct hf_pool *pool)
{
    assert(hf_mutex_held(&pool->mutex));
    for (unsigned i = 0; i < HF_POOL_PRIORITIES; i++)
        hf_pool_fetch(pool, i);
}

void hf_pool_shut_inboxes(struct hf_pool *pool)
{
    assert(hf_mutex_held(&pool->mutex));
    assert(pool->state == HF_POOL_RUNNING);
    for (unsigned i = 0; i < HF_POOL_PRIORITIES; i++) {
        struct hf_pool_task *last =
            hf_ptr_swap(&pool->inboxes[i].last, &shut, __ATOMIC_ACQUIRE);
        if (last != NULL)
            append(pool, &pool->queue[i], last);
    }
}

/* ---- Pushing. ---- */

struct hf_pool_task *hf_pool_free_record(struct hf_pool *pool)
{
    struct pool_local *local =
        hf_locals_find(&pool->locals, hf_thread_slot(), sizeof *local);
    struct hf_pool_task **shelf = &pool->free_tasks;

    assert(hf_mutex_held(&pool->mutex));
    if (local != NULL && local->free == NULL) {
        for (int i = 0; i < REFILL && *shelf != NULL; i++) {
            struct hf_pool_task *record = *shelf;
            *shelf = record->next;
            record->next = local->free;
            local->free = record;
        }
    }
    if (*shelf == NULL && local != NULL)
        shelf = &local->free;
    struct hf_pool_task *record = *shelf;
    if (record != NULL)
        *shelf = record->next;
    return record;
}

/* Into the inbox of its level; false: it is shut. */
static bool link_in(struct hf_pool *pool, struct hf_pool_task *record)
{
    struct hf_atomic_ptr *inbox = &pool->inboxes[record->level].last;
    void *last = hf_ptr_load(inbox, __ATOMIC_RELAXED);

    do {
        if (last == &shut)
            return false;
        record->next = last;
        /* Release: what is in the record. seq_cst: see above. */
    } while (!hf_ptr_cas(inbox, &last, record, __ATOMIC_SEQ_CST));
    return true;
}

bool hf_pool_push(struct hf_pool *pool, const struct hf_pool_task *form)
{
    /* Relaxed: a hint, it is looked at again below. */
    if (hf_u32_load(&pool->attention, __ATOMIC_RELAXED) != 0)
        return false;
    struct pool_local *local =
        hf_locals_find(&pool->locals, hf_thread_slot(), sizeof *local);
    if (local == NULL || local->free == NULL)
        return false;
    if (pool->opts.queue_max != HF_POOL_QUEUE_UNBOUNDED &&
        !enter_below(pool, hf_u64_load(&pool->entry_end, __ATOMIC_RELAXED)))
        return false;
    struct hf_pool_task *record = local->free;
    local->free = record->next;
    pool_fill_record(record, form);
    record->number = 0;
    if (!link_in(pool, record)) { /* its place does not matter any more */
        record->next = local->free;
        local->free = record;
        return false;
    }
    if (hf_u32_load(&pool->attention, __ATOMIC_SEQ_CST) != 0)
        hf_pool_attend(pool);
    return true;
}
