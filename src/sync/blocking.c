/* blocking.c - open and close, figures, and who does what for which kind. */
#include "holdfast/blocking.h"

#include <assert.h>

#include "base/memory.h"
#include "sync/blocking_state.h"

static const struct blocking_kind *const kinds[HF_BLOCKING_KINDS] = {
    [HF_BLOCKING_ARRAY] = &hf_blocking_kind_array,
    [HF_BLOCKING_LINKED] = &hf_blocking_kind_linked,
    [HF_BLOCKING_PRIORITY] = &hf_blocking_kind_priority,
    [HF_BLOCKING_DELAY] = &hf_blocking_kind_delay,
    [HF_BLOCKING_SYNCHRONOUS] = &hf_blocking_kind_synchronous,
    [HF_BLOCKING_TRANSFER] = &hf_blocking_kind_transfer,
};

static uint64_t oldest_ns(const struct hf_blocking *queue)
{
    if (blocking_count(queue) == 0 || !queue->opts.ages)
        return HF_INSPECT_NONE;
    uint64_t came_ns = queue->buffer != NULL ? queue->buffer->oldest_ns(queue)
                                             : hf_handoff_oldest_ns(queue);
    uint64_t now_ns = blocking_now_ns(queue);
    return now_ns > came_ns ? now_ns - came_ns : 0;
}

void hf_blocking_stats(struct hf_blocking *queue, struct hf_blocking_stats *out)
{
    if (queue == NULL || out == NULL)
        return;
    hf_mutex_lock(&queue->mutex);
    *out = (struct hf_blocking_stats){
        .put = queue->put,
        .taken = queue->taken,
        .rejected = queue->rejected,
        .take_timeouts = queue->take_timeouts,
        .putters = queue->putters,
        .takers = queue->takers,
        .depth = blocking_count(queue),
        .oldest_ns = oldest_ns(queue),
        .shutdown = queue->shut,
    };
    hf_mutex_unlock(&queue->mutex);
    out->put_waits = hf_waits_count(&queue->put_waits);
    out->take_waits = hf_waits_count(&queue->take_waits);
    out->put_wait_p99_ns = hf_waits_percentile_ns(&queue->put_waits, 99);
    out->take_wait_p99_ns = hf_waits_percentile_ns(&queue->take_waits, 99);
    out->capacity = queue->capacity;
    static_assert(HF_INSPECT_NONE == UINT64_MAX, "without bound is none");
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    /* The queue is not const: its lock is taken to read it. */
    struct hf_blocking *queue = (struct hf_blocking *)(uintptr_t)listed;
    struct hf_blocking_stats stats = {0};

    static_assert(offsetof(struct hf_blocking, listed) == 0, "is the first");
    hf_blocking_stats(queue, &stats);
    row->depth = stats.depth;
    row->capacity = stats.capacity;
    row->oldest_ns = stats.oldest_ns;
    row->rejected = stats.rejected;
    row->wait_p99_ns = stats.put_wait_p99_ns;
}

enum hf_status hf_blocking_open(struct hf_blocking **queue,
                                const struct hf_blocking_opts *opts)
{
    static const struct hf_blocking_opts defaults;

    if (opts == NULL)
        opts = &defaults;
    if (queue == NULL || (unsigned)opts->kind >= HF_BLOCKING_KINDS)
        return HF_INVALID;
    const struct blocking_kind *kind = kinds[opts->kind];
    if (opts->capacity > kind->capacity_max)
        return HF_INVALID;
    struct hf_blocking *made =
        hf_alloc_aligned(_Alignof(struct hf_blocking), sizeof *made);
    if (made == NULL)
        return HF_NOMEM;
    *made = (struct hf_blocking){
        .opts = *opts,
        .kind = kind,
        .buffer = kind->buffer,
        .capacity = opts->capacity ? opts->capacity : kind->capacity_default,
    };
    made->opts.ages = opts->ages || kind->ages;
    if (opts->clock == NULL)
        made->opts.clock = hf_clock_system();
    if (made->buffer != NULL && made->buffer->open(made) != HF_OK) {
        hf_free(made);
        return HF_NOMEM;
    }
    hf_listed_add(&made->listed, kind->name, opts->name, fill);
    *queue = made;
    return HF_OK;
}

void hf_blocking_shutdown(struct hf_blocking *queue)
{
    if (queue == NULL)
        return;
    hf_mutex_lock(&queue->mutex);
    bool first = !queue->shut;
    queue->shut = true;
    if (first && queue->buffer == NULL)
        hf_handoff_shutdown(queue);
    hf_mutex_unlock(&queue->mutex);
    if (first && queue->buffer != NULL) {
        hf_event_wake_all(&queue->items);
        hf_event_wake_all(&queue->room);
    }
}

/* Gives out what is left, visible or not. */
static void drop_all(struct hf_blocking *queue)
{
    for (uint64_t left = blocking_count(queue); left > 0; left--) {
        void *item;
        if (queue->buffer != NULL)
            item = queue->buffer->remove(queue);
        else
            (void)queue->kind->drain(queue, &item, 1);
        if (queue->opts.drop != NULL)
            queue->opts.drop(queue->opts.context, item);
    }
}

void hf_blocking_close(struct hf_blocking *queue)
{
    if (queue == NULL)
        return;
    assert(queue->takers == 0);
    assert(queue->putters == 0);
    hf_listed_remove(&queue->listed);
    drop_all(queue);
    if (queue->buffer != NULL)
        queue->buffer->release(queue);
    hf_free(queue);
}

enum hf_status hf_blocking_put(struct hf_blocking *queue, void *item,
                               uint64_t deadline_ns)
{
    if (queue == NULL)
        return HF_INVALID;
    return queue->kind->put(queue, item, 0, deadline_ns);
}

enum hf_status hf_blocking_put_ranked(struct hf_blocking *queue, void *item,
                                      uint64_t rank, uint64_t deadline_ns)
{
    if (queue == NULL || queue->kind != &hf_blocking_kind_priority)
        return HF_INVALID;
    return queue->kind->put(queue, item, rank, deadline_ns);
}

enum hf_status hf_blocking_put_at(struct hf_blocking *queue, void *item,
                                  uint64_t visible_ns, uint64_t deadline_ns)
{
    if (queue == NULL || queue->kind != &hf_blocking_kind_delay)
        return HF_INVALID;
    return queue->kind->put(queue, item, visible_ns, deadline_ns);
}

enum hf_status hf_blocking_transfer(struct hf_blocking *queue, void *item,
                                    uint64_t deadline_ns)
{
    if (queue == NULL || queue->buffer != NULL)
        return HF_INVALID;
    return hf_handoff_transfer(queue, item, 0, deadline_ns);
}

enum hf_status hf_blocking_take(struct hf_blocking *queue, void **item,
                                uint64_t deadline_ns)
{
    if (queue == NULL || item == NULL)
        return HF_INVALID;
    return queue->kind->take(queue, item, deadline_ns);
}

size_t hf_blocking_drain(struct hf_blocking *queue, void **items, size_t max)
{
    if (queue == NULL || items == NULL)
        return 0;
    return queue->kind->drain(queue, items, max);
}

size_t hf_blocking_size(const struct hf_blocking *queue)
{
    return queue == NULL ? 0 : (size_t)blocking_count(queue);
}
