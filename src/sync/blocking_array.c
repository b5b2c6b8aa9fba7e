/* blocking_array.c - a buffer that is allocated once and used in a circle. */
#include <assert.h>

#include "base/memory.h"
#include "sync/blocking_buffer.h"

static enum hf_status array_open(struct hf_blocking *queue)
{
    struct blocking_array_state *in = &queue->in.array;
    size_t bytes = queue->capacity * sizeof *in->items;

    static_assert(sizeof *in->items == sizeof *in->stamps, "of one size");
    in->items = hf_alloc(queue->opts.ages ? 2 * bytes : bytes);
    if (in->items == NULL)
        return HF_NOMEM;
    if (queue->opts.ages)
        in->stamps = (uint64_t *)(void *)(in->items + queue->capacity);
    return HF_OK;
}

static void array_release(struct hf_blocking *queue)
{
    hf_free(queue->in.array.items);
}

/* No remainder: capacity need not be a power of two. */
static uint64_t after(const struct hf_blocking *queue, uint64_t place)
{
    return place + 1 == queue->capacity ? 0 : place + 1;
}

static enum hf_status array_add(struct hf_blocking *queue,
                                const struct blocking_new *what)
{
    struct blocking_array_state *in = &queue->in.array;

    in->items[in->end] = what->item;
    if (in->stamps != NULL)
        in->stamps[in->end] = what->stamp_ns;
    in->end = after(queue, in->end);
    return HF_OK;
}

static void *array_remove(struct hf_blocking *queue)
{
    struct blocking_array_state *in = &queue->in.array;
    void *item = in->items[in->first];

    in->first = after(queue, in->first);
    return item;
}

static uint64_t array_oldest_ns(const struct hf_blocking *queue)
{
    return queue->in.array.stamps[queue->in.array.first];
}

static const struct blocking_buffer array_buffer = {
    .open = array_open,
    .release = array_release,
    .add = array_add,
    .remove = array_remove,
    .oldest_ns = array_oldest_ns,
};

BUFFER_CALLS(array)

const struct blocking_kind hf_blocking_kind_array = {
    .name = "array-queue",
    .buffer = &array_buffer,
    .capacity_default = HF_BLOCKING_CAPACITY_DEFAULT,
    .capacity_max = HF_BLOCKING_CAPACITY_MAX,
    .put = array_put,
    .take = array_take,
    .drain = hf_buffer_drain,
};
