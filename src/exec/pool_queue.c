/* pool_queue.c - a list for each priority, and records that are used again.
 *
 * Tasks are copied in and out, so a record is free again as soon as its task
 * has been taken, and the one that was used last is used next. The record of a
 * work lies in the work, and is not touched after it has been taken.
 */
#include <assert.h>
#include <stddef.h>

#include "exec/pool_state.h"

static void give_back(struct hf_pool *pool, struct hf_pool_task *record)
{
    record->next = pool->free_tasks;
    pool->free_tasks = record;
}

void hf_pool_add_block(struct hf_pool *pool, struct pool_block *block)
{
    size_t count = sizeof block->tasks / sizeof *block->tasks;

    assert(hf_mutex_held(&pool->mutex));
    block->next = pool->blocks;
    pool->blocks = block;
    while (count > 0)
        give_back(pool, &block->tasks[--count]);
}

static struct hf_pool_work *work_of(struct hf_pool_task *posted)
{
    char *at = (char *)posted - offsetof(struct hf_pool_work, task);

    return (struct hf_pool_work *)(void *)at;
}

bool hf_pool_is_queued(const struct hf_pool_task *form)
{
    return form->next != NULL && work_of(form->next)->queued;
}

enum hf_status hf_pool_put(struct hf_pool *pool, struct hf_pool_task *form)
{
    struct pool_list *list = &pool->queue[form->level];

    assert(hf_mutex_held(&pool->mutex));
    if (hf_pool_is_queued(form))
        return HF_EXISTS;
    if (pool->state != HF_POOL_RUNNING)
        return HF_CLOSED;
    if (hf_pool_is_full(pool))
        return HF_FULL;
    struct hf_pool_task *record =
        form->next != NULL ? form->next : hf_pool_free_record(pool);
    if (record == NULL)
        return HF_MORE;
    if (!hf_pool_enter(pool)) { /* others pushed meanwhile */
        if (form->next == NULL)
            give_back(pool, record);
        return HF_FULL;
    }
    /* A work has what its form has since it was initialised, and others may
     * read that now. */
    if (form->next == NULL) {
        pool_fill_record(record, form);
    } else {
        record->submitted_ns = form->submitted_ns;
        work_of(record)->queued = true;
    }
    hf_pool_fetch(pool, form->level); /* what came before goes before */
    if (++pool->number == 0)
        pool->number = 1;
    form->number = record->number = pool->number;
    pool->counts.submitted++;
    record->next = NULL;
    record->prev = list->last;
    *(list->last == NULL ? &list->first : &list->last->next) = record;
    list->last = record;
    pool->counts.queued++;
    /* Relaxed: only that a look is worth it. */
    if (pool->searching > 0)
        hf_u32_store(&pool->any, 1, __ATOMIC_RELAXED);
    return HF_OK;
}

static void take_out(struct hf_pool *pool, struct hf_pool_task *record,
                     struct hf_pool_task *out)
{
    struct pool_list *list = &pool->queue[record->level];

    *(record->prev == NULL ? &list->first : &record->prev->next) = record->next;
    *(record->next == NULL ? &list->last : &record->next->prev) = record->prev;
    __builtin_prefetch(record->next); /* the next will be wanted soon */
    *out = *record;
    out->prev = record;
    if (record->posted)
        work_of(record)->queued = false;
    else
        give_back(pool, record);
    pool->counts.queued--;
    pool->left++;
    if (pool->blocked > 0)
        hf_event_wake(&pool->room, 1);
}

/* Takes the first of a list; false: it had been cancelled. */
static bool take_first(struct hf_pool *pool, struct pool_list *list,
                       struct hf_pool_task *out)
{
    take_out(pool, list->first, out);
    if (out->future == NULL || hf_future_begin(out->future))
        return true;
    pool->counts.cancelled++;
    hf_future_release(out->future);
    return false;
}

bool hf_pool_take(struct hf_pool *pool, struct hf_pool_task *out)
{
    assert(hf_mutex_held(&pool->mutex));
    for (unsigned i = 0; i < HF_POOL_PRIORITIES;) {
        struct pool_list *list = &pool->queue[i];
        if (list->first == NULL)
            hf_pool_fetch(pool, i);
        if (list->first == NULL)
            i++;
        else if (take_first(pool, list, out))
            return true;
    }
    return false;
}

unsigned hf_pool_least(const struct hf_pool *pool)
{
    unsigned level = HF_POOL_PRIORITIES - 1;

    assert(hf_mutex_held(&pool->mutex));
    assert(pool->counts.queued > 0);
    while (pool->queue[level].first == NULL)
        level--;
    return level;
}

bool hf_pool_take_least(struct hf_pool *pool, struct hf_pool_task *out)
{
    return take_first(pool, &pool->queue[hf_pool_least(pool)], out);
}

bool hf_pool_take_this(struct hf_pool *pool, struct hf_future *future,
                       struct hf_pool_task *out)
{
    assert(hf_mutex_held(&pool->mutex));
    if (!hf_future_begin(future))
        return false;
    hf_pool_fetch_all(pool);
    take_out(pool, future->place, out);
    assert(out->future == future);
    return true;
}

bool hf_pool_withdraw(struct hf_pool *pool, const struct hf_pool_task *form)
{
    struct hf_pool_task *at = pool->queue[form->level].first;
    struct hf_pool_task out;

    assert(hf_mutex_held(&pool->mutex));
    while (at != NULL && at->number != form->number)
        at = at->next;
    if (at == NULL)
        return false;
    take_out(pool, at, &out);
    pool->counts.submitted--;
    return true;
}
