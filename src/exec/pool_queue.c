/* pool_queue.c - a list for each priority, and records that are used again.
 *
 * Tasks are copied in and out, so a record is free again as soon as its task
 * has been taken, and the one that was used last is used next. The record of a
 * work lies in the work, and is not touched after it has been taken.
 */
#include <assert.h>
#include <stddef.h>

#include "exec/pool_state.h"

/* What is read without the lock is only whether a look is worth it: relaxed.
 */
static void note_any(struct hf_pool *pool)
{
    uint32_t any = pool->counts.queued > 0;

    if (hf_u32_load(&pool->any, __ATOMIC_RELAXED) != any)
        hf_u32_store(&pool->any, any, __ATOMIC_RELAXED);
}

static void give_back(struct hf_pool *pool, struct hf_pool_task *record)
{
    record->next = pool->free_tasks;
    pool->free_tasks = record;
}

void pool_add_block(struct hf_pool *pool, struct pool_block *block)
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

bool pool_is_queued(const struct hf_pool_task *form)
{
    return form->next != NULL && work_of(form->next)->queued;
}

/* A free record with the form in it; NULL: there is none. A work has what its
 * form has since it was initialised, and others may read that now. */
static struct hf_pool_task *fill_record(struct hf_pool *pool,
                                        const struct hf_pool_task *form)
{
    struct hf_pool_task *record = form->next;

    if (record != NULL) {
        work_of(record)->queued = true;
        return record;
    }
    record = pool->free_tasks;
    if (record == NULL)
        return NULL;
    pool->free_tasks = record->next;
    record->run = form->run;
    record->arg = form->arg;
    record->name = form->name;
    record->future = form->future;
    record->level = form->level;
    record->has_result = form->has_result;
    record->posted = false;
    return record;
}

enum hf_status pool_put(struct hf_pool *pool, struct hf_pool_task *form)
{
    struct pool_list *list = &pool->queue[form->level];

    assert(hf_mutex_held(&pool->mutex));
    if (pool_is_queued(form))
        return HF_EXISTS;
    if (pool->state != HF_POOL_RUNNING)
        return HF_CLOSED;
    if (pool->counts.queued >= pool->opts.queue_max)
        return HF_FULL;
    struct hf_pool_task *record = fill_record(pool, form);
    if (record == NULL)
        return HF_MORE;
    form->number = ++pool->number;
    pool->counts.submitted++;
    record->submitted_ns = form->submitted_ns;
    record->number = form->number;
    record->next = NULL;
    record->prev = list->last;
    *(list->last == NULL ? &list->first : &list->last->next) = record;
    list->last = record;
    if (record->future != NULL)
        record->future->place = record;
    pool->counts.queued++;
    note_any(pool);
    return HF_OK;
}

static void take_out(struct hf_pool *pool, struct hf_pool_task *record,
                     struct hf_pool_task *out)
{
    struct pool_list *list = &pool->queue[record->level];

    *(record->prev == NULL ? &list->first : &record->prev->next) = record->next;
    *(record->next == NULL ? &list->last : &record->next->prev) = record->prev;
    *out = *record;
    out->prev = record;
    if (record->posted)
        work_of(record)->queued = false;
    else
        give_back(pool, record);
    pool->counts.queued--;
    note_any(pool);
    if (pool->blocked > 0)
        hf_event_wake(&pool->room, 1);
}

/* Takes the first of a list; false: it had been cancelled. */
static bool take_first(struct hf_pool *pool, struct pool_list *list,
                       struct hf_pool_task *out)
{
    take_out(pool, list->first, out);
    if (out->future == NULL || future_begin(out->future))
        return true;
    pool->counts.cancelled++;
    hf_future_release(out->future);
    return false;
}

bool pool_take(struct hf_pool *pool, struct hf_pool_task *out)
{
    struct pool_list *list = pool->queue;

    assert(hf_mutex_held(&pool->mutex));
    while (pool->counts.queued > 0) {
        if (list->first == NULL)
            list++;
        else if (take_first(pool, list, out))
            return true;
    }
    return false;
}

bool pool_take_least(struct hf_pool *pool, struct hf_pool_task *out)
{
    struct pool_list *list = &pool->queue[HF_POOL_PRIORITIES - 1];

    assert(hf_mutex_held(&pool->mutex));
    assert(pool->counts.queued > 0);
    while (list->first == NULL)
        list--;
    return take_first(pool, list, out);
}

bool pool_take_this(struct hf_pool *pool, struct hf_future *future,
                    struct hf_pool_task *out)
{
    assert(hf_mutex_held(&pool->mutex));
    if (!future_begin(future))
        return false;
    take_out(pool, future->place, out);
    assert(out->future == future);
    return true;
}

bool pool_withdraw(struct hf_pool *pool, const struct hf_pool_task *form)
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
