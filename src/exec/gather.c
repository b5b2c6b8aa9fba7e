/* gather.c - items on a pool, counted as they end.
 *
 * An item's future calls back when it is done; the item holds a reference to
 * the gather until then. So close() need not wait.
 *
 *   add       run it on the pool --> ask for the call --> list it
 *   its end          (may come at any time from here) --> count it
 *
 * Whichever of the last two comes second does the counting, so that an item is
 * counted once and nobody sees one that is not listed.
 */
#include "holdfast/gather.h"

#include <assert.h>

#include "base/memory.h"
#include "exec/pool_state.h"

#define ITEMS_FIRST 8u

struct item {
    struct hf_gather *gather;   /* (i) */
    struct hf_future *future;   /* (i) until it is done, then nobody's */
    struct hf_gather_item view; /* (m) */
    bool listed;                /* (m) */
    bool given;                 /* (m) its result has been shown */
};

struct hf_gather {
    struct hf_listed listed;
    struct hf_gather_opts opts;      /* (i) */
    const struct hf_clock *clock;    /* (i) the pool's */
    struct hf_atomic_u32 references; /* (a) the user's and one for each item
                                      * that is not done */
    struct hf_event progress;        /* wait() may have an end; or more to do */
    struct hf_mutex mutex;           /* guards what follows */
    struct item **items;             /* (m) in order of add, counts.added */
    size_t items_max;                /* (m) room in the array */
    size_t coming;                   /* (m) items that will be listed */
    size_t helpers;                  /* (m) waiters in tasks of the pool */
    uint64_t refused;                /* (m) by the pool */
    struct hf_gather_stats counts;   /* (m) */
    bool closed;                     /* (m) */
};

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    /* `listed` is the first member of the gather, which is no constant. */
    struct hf_gather *gather = (struct hf_gather *)(uintptr_t)listed;

    hf_mutex_lock(&gather->mutex);
    row->depth = gather->counts.pending;
    row->rejected = gather->refused;
    hf_mutex_unlock(&gather->mutex);
}

enum hf_status hf_gather_open(struct hf_gather **out,
                              const struct hf_gather_opts *opts)
{
    if (out == NULL)
        return HF_INVALID;
    struct hf_gather *gather = hf_alloc_zeroed(sizeof *gather);
    if (gather == NULL)
        return HF_NOMEM;
    if (opts != NULL)
        gather->opts = *opts;
    if (gather->opts.pool == NULL)
        gather->opts.pool = hf_pool_default();
    if (gather->opts.pool == NULL) {
        hf_free(gather);
        return HF_NOMEM;
    }
    gather->clock = gather->opts.pool->clock;
    hf_u32_store(&gather->references, 1, __ATOMIC_RELAXED); /* not shared yet */
    hf_listed_add(&gather->listed, "gather", gather->opts.name, fill);
    *out = gather;
    return HF_OK;
}

static void release(struct hf_gather *gather)
{
    /* Release and acquire: all that anybody did comes before the end. */
    if (hf_u32_sub(&gather->references, 1, __ATOMIC_ACQ_REL) != 1)
        return;
    for (size_t i = 0; i < gather->counts.added; i++)
        hf_free(gather->items[i]);
    hf_free(gather->items);
    hf_free(gather);
}

/* ---- Counting. ---- */

/* Have enough succeeded, or can they no more? HF_PENDING: neither. */
static enum hf_status judge(const struct hf_gather *gather)
{
    const struct hf_gather_stats *counts = &gather->counts;
    size_t need = gather->opts.need == 0 ? counts->added : gather->opts.need;

    assert(hf_mutex_held(&gather->mutex));
    if (counts->succeeded >= need)
        return HF_OK;
    return counts->succeeded + counts->pending < need ? HF_FAILED : HF_PENDING;
}

/* A listed item is done. Returns whether those who wait must look. */
static bool count(struct hf_gather *gather, enum hf_status status)
{
    assert(hf_mutex_held(&gather->mutex) && gather->counts.pending > 0);
    gather->counts.pending--;
    if (status == HF_OK)
        gather->counts.succeeded++;
    else if (status == HF_CANCELLED)
        gather->counts.cancelled++;
    else
        gather->counts.failed++;
    return judge(gather) != HF_PENDING; /* so also after the last */
}

/* Its place is kept for it. Returns whether those who wait must look. */
static bool list(struct hf_gather *gather, struct item *item)
{
    assert(hf_mutex_held(&gather->mutex) && gather->coming > 0);
    gather->coming--;
    gather->items[gather->counts.added++] = item;
    gather->counts.pending++;
    item->listed = true;
    if (item->view.status == HF_PENDING)
        return gather->helpers > 0;
    return count(gather, item->view.status);
}

/* The item's end, in whichever thread that is. */
static void item_done(void *context, const struct hf_outcome *outcome)
{
    struct item *item = context;
    struct hf_gather *gather = item->gather;
    struct hf_future *future = item->future;

    hf_mutex_lock(&gather->mutex);
    assert(item->view.status == HF_PENDING);
    item->view = (struct hf_gather_item){outcome->status, outcome->code,
                                         outcome->result};
    bool wake = item->listed && count(gather, outcome->status);
    bool late = gather->closed && outcome->status == HF_OK;
    hf_mutex_unlock(&gather->mutex);
    if (wake)
        hf_event_wake_all(&gather->progress);
    if (late && gather->opts.drop != NULL)
        gather->opts.drop(gather->opts.context, outcome->result);
    hf_future_release(future);
    release(gather);
}

/* ---- Adding. ---- */

/* Room for one more in the array, so that listing cannot fail. */
static bool reserve(struct hf_gather *gather)
{
    bool room = true;

    hf_mutex_lock(&gather->mutex);
    if (gather->counts.added + gather->coming == gather->items_max) {
        size_t max =
            gather->items_max == 0 ? ITEMS_FIRST : 2 * gather->items_max;
        struct item **items =
            hf_realloc(gather->items, max * sizeof *gather->items);
        room = items != NULL;
        if (room) {
            gather->items = items;
            gather->items_max = max;
        }
    }
    gather->coming += room;
    hf_mutex_unlock(&gather->mutex);
    return room;
}

/* There will be no item after all. */
static enum hf_status forget(struct hf_gather *gather, struct item *item)
{
    hf_mutex_lock(&gather->mutex);
    gather->coming--;
    hf_mutex_unlock(&gather->mutex);
    hf_free(item);
    return HF_NOMEM;
}

/* The task is the pool's: asks for the call at its end. False: there is no
 * memory for that, and it will not run. */
static bool follow(struct hf_gather *gather, struct item *item,
                   struct hf_future *future)
{
    struct hf_outcome outcome;

    item->future = future;
    /* Relaxed: the caller has a reference as well. */
    hf_u32_add(&gather->references, 1, __ATOMIC_RELAXED);
    hf_future_retain(future); /* the end of the item takes the other */
    enum hf_status status = hf_future_then(future, item_done, item);
    if (status != HF_OK && hf_future_cancel(future) == HF_OK) {
        hf_future_release(future);
        release(gather);
    } else if (status != HF_OK) {
        /* It has begun: waits for it here, and makes the call. */
        (void)hf_future_get(future, HF_FOREVER, &outcome);
        item_done(item, &outcome);
        status = HF_OK;
    }
    hf_future_release(future);
    return status == HF_OK;
}

enum hf_status hf_gather_add(struct hf_gather *gather,
                             int (*fn)(void *arg, void **result), void *arg)
{
    struct hf_future *future;

    if (gather == NULL || fn == NULL)
        return HF_INVALID;
    const struct hf_task_opts opts = {.name = gather->opts.name};
    if (!reserve(gather))
        return HF_NOMEM;
    struct item *item = hf_alloc_zeroed(sizeof *item);
    if (item == NULL)
        return forget(gather, item);
    item->gather = gather;
    item->view.status = HF_PENDING;
    enum hf_status status =
        hf_pool_call(gather->opts.pool, fn, arg, &opts, &future);
    if (status == HF_NOMEM ||
        (status == HF_OK && !follow(gather, item, future)))
        return forget(gather, item);
    hf_mutex_lock(&gather->mutex);
    if (status != HF_OK) {
        item->view.status = status;
        gather->refused++;
    }
    bool wake = list(gather, item);
    hf_mutex_unlock(&gather->mutex);
    if (wake)
        hf_event_wake_all(&gather->progress);
    return status;
}

/* ---- Waiting. ---- */

struct waiter {
    struct hf_gather *gather;
    bool settles; /* waits for the end of all */
    bool helps;
    size_t helped; /* so many items have begun, here or elsewhere */
};

/* HF_MORE: there are items that it should help with. */
static enum hf_status look(void *context)
{
    struct waiter *waiter = context;
    struct hf_gather *gather = waiter->gather;

    hf_mutex_lock(&gather->mutex);
    enum hf_status status = judge(gather);
    if (waiter->settles)
        status = gather->counts.pending == 0 ? HF_OK : HF_PENDING;
    if (status == HF_PENDING && waiter->helps &&
        waiter->helped < gather->counts.added)
        status = HF_MORE;
    hf_mutex_unlock(&gather->mutex);
    return status;
}

/* A reference to the future of an item that is not done, else NULL. */
static struct hf_future *future_of(struct hf_gather *gather, size_t index)
{
    struct hf_future *future = NULL;

    hf_mutex_lock(&gather->mutex);
    if (index < gather->counts.added &&
        gather->items[index]->view.status == HF_PENDING) {
        future = gather->items[index]->future;
        hf_future_retain(future); /* its end takes the item's away */
    }
    hf_mutex_unlock(&gather->mutex);
    return future;
}

/* In a task of the same pool: whoever waits for an item that has not begun runs
 * it, since there may be nobody else who could. */
static enum hf_status wait_helping(struct waiter *waiter, uint64_t deadline_ns)
{
    struct hf_gather *gather = waiter->gather;
    enum hf_status status;

    while ((status = hf_event_until(&gather->progress, look, waiter,
                                    gather->clock, deadline_ns)) == HF_MORE) {
        struct hf_future *future = future_of(gather, waiter->helped++);
        if (future != NULL)
            hf_pool_help(future);
        hf_future_release(future);
        if (hf_clock_now_ns(gather->clock) >= deadline_ns)
            waiter->helps = false; /* no time for more */
    }
    return status;
}

static enum hf_status wait_until(struct hf_gather *gather, bool settles,
                                 uint64_t deadline_ns)
{
    struct waiter waiter = {.gather = gather, .settles = settles};

    if (gather == NULL)
        return HF_INVALID;
    if (deadline_ns == HF_NOW || !hf_pool_is_mine(gather->opts.pool))
        return hf_event_until(&gather->progress, look, &waiter, gather->clock,
                              deadline_ns);
    waiter.helps = true;
    hf_mutex_lock(&gather->mutex);
    gather->helpers++;
    hf_mutex_unlock(&gather->mutex);
    enum hf_status status = wait_helping(&waiter, deadline_ns);
    hf_mutex_lock(&gather->mutex);
    gather->helpers--;
    hf_mutex_unlock(&gather->mutex);
    return status;
}

enum hf_status hf_gather_wait(struct hf_gather *gather, uint64_t deadline_ns)
{
    return wait_until(gather, false, deadline_ns);
}

enum hf_status hf_gather_settle(struct hf_gather *gather, uint64_t deadline_ns)
{
    return wait_until(gather, true, deadline_ns);
}

/* ---- What has become of them. ---- */

/* Items are only added, and freed with the gather: by index it is safe to let
 * go of the lock between one and the next. */
static size_t item_count(struct hf_gather *gather)
{
    hf_mutex_lock(&gather->mutex);
    size_t added = gather->counts.added;
    hf_mutex_unlock(&gather->mutex);
    return added;
}

size_t hf_gather_cancel(struct hf_gather *gather)
{
    size_t cancelled = 0;

    if (gather == NULL)
        return 0;
    for (size_t i = item_count(gather); i-- > 0;) {
        struct hf_future *future = future_of(gather, i);
        if (future == NULL)
            continue;
        cancelled += hf_future_cancel(future) == HF_OK;
        hf_future_release(future);
    }
    return cancelled;
}

/* The item's result, if it has one; from then on it is the caller's. `again`:
 * also if it was given before. */
static bool give(struct hf_gather *gather, size_t index, bool again,
                 void **result)
{
    hf_mutex_lock(&gather->mutex);
    struct item *item = gather->items[index];
    bool there = item->view.status == HF_OK && (again || !item->given);
    if (there) {
        item->given = true;
        *result = item->view.result;
    }
    hf_mutex_unlock(&gather->mutex);
    return there;
}

void hf_gather_close(struct hf_gather *gather)
{
    void *result;

    if (gather == NULL)
        return;
    hf_listed_remove(&gather->listed);
    (void)hf_gather_cancel(gather);
    hf_mutex_lock(&gather->mutex);
    gather->closed = true;
    /* What is done by now is ours to drop, the rest is dropped by its end. */
    size_t added = gather->counts.added;
    for (size_t i = 0; i < added; i++)
        gather->items[i]->given |= gather->items[i]->view.status == HF_PENDING;
    hf_mutex_unlock(&gather->mutex);
    for (size_t i = 0; i < added && gather->opts.drop != NULL; i++) {
        if (give(gather, i, false, &result))
            gather->opts.drop(gather->opts.context, result);
    }
    release(gather);
}

enum hf_status hf_gather_item(struct hf_gather *gather, size_t index,
                              struct hf_gather_item *out)
{
    enum hf_status status = HF_NOTFOUND;

    if (gather == NULL || out == NULL)
        return HF_INVALID;
    hf_mutex_lock(&gather->mutex);
    if (index < gather->counts.added) {
        *out = gather->items[index]->view;
        gather->items[index]->given |= out->status == HF_OK;
        status = HF_OK;
    }
    hf_mutex_unlock(&gather->mutex);
    return status;
}

void *hf_gather_merge(struct hf_gather *gather,
                      void *(*merge)(void *context, void *so_far, void *result),
                      void *context, void *so_far)
{
    void *result;

    if (gather == NULL || merge == NULL)
        return so_far;
    size_t added = item_count(gather);
    for (size_t i = 0; i < added; i++) {
        if (give(gather, i, true, &result))
            so_far = merge(context, so_far, result);
    }
    return so_far;
}

void hf_gather_stats(struct hf_gather *gather, struct hf_gather_stats *out)
{
    if (gather == NULL || out == NULL)
        return;
    hf_mutex_lock(&gather->mutex);
    *out = gather->counts;
    hf_mutex_unlock(&gather->mutex);
}
