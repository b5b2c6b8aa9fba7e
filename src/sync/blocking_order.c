/* blocking_order.c - buffers that give out the least first: by rank (PRIORITY)
 * or by time (DELAY), and what is equal in the order of puts.
 *
 * The heap holds (rank, number of the put, where the item is). The items are
 * also linked in the order in which they came, so that the oldest is known
 * without a search.
 */
#include <assert.h>

#include "sync/blocking_buffer.h"

struct order_item {
    uint32_t used; /* 1: a free item of a slab begins with 0 */
    uint32_t older;
    uint32_t newer;
    void *item;
    uint64_t stamp_ns;
};

/* Entries are removed from the top only: where they lie is not needed. */
static void moved(void *context, uint32_t ref, uint32_t position)
{
    (void)context;
    (void)ref;
    (void)position;
}

static enum hf_status order_open(struct hf_blocking *queue)
{
    struct blocking_order_state *in = &queue->in.order;

    hf_heap_init(&in->heap, moved, NULL, &in->bytes);
    hf_slab_init(&in->slab, sizeof(struct order_item), &in->bytes);
    return HF_OK;
}

static void order_release(struct hf_blocking *queue)
{
    hf_heap_destroy(&queue->in.order.heap);
    hf_slab_destroy(&queue->in.order.slab);
}

static struct order_item *item_at(struct blocking_order_state *in, uint32_t ref)
{
    return ref == 0 ? NULL : hf_slab_at(&in->slab, ref);
}

static enum hf_status order_add(struct hf_blocking *queue,
                                const struct blocking_new *what)
{
    struct blocking_order_state *in = &queue->in.order;
    uint32_t ref = hf_slab_take(&in->slab);

    if (ref == 0)
        return HF_NOMEM;
    struct hf_heap_entry entry = {what->rank, in->puts, ref};
    if (hf_heap_add(&in->heap, entry) != HF_OK) {
        hf_slab_give(&in->slab, ref);
        return HF_NOMEM;
    }
    in->puts++;
    *item_at(in, ref) = (struct order_item){.used = 1,
                                            .older = in->newest,
                                            .item = what->item,
                                            .stamp_ns = what->stamp_ns};
    *(in->newest == 0 ? &in->oldest : &item_at(in, in->newest)->newer) = ref;
    in->newest = ref;
    return HF_OK;
}

static void *order_remove(struct hf_blocking *queue)
{
    struct blocking_order_state *in = &queue->in.order;
    uint32_t ref = hf_heap_first(&in->heap)->ref;
    struct order_item *found = item_at(in, ref);
    void *item = found->item;

    assert(found->used);
    *(found->older == 0 ? &in->oldest : &item_at(in, found->older)->newer) =
        found->newer;
    *(found->newer == 0 ? &in->newest : &item_at(in, found->newer)->older) =
        found->older;
    hf_heap_remove(&in->heap, 1);
    hf_slab_give(&in->slab, ref);
    return item;
}

static uint64_t order_oldest_ns(const struct hf_blocking *queue)
{
    const struct order_item *oldest =
        hf_slab_at(&queue->in.order.slab, queue->in.order.oldest);
    return oldest->stamp_ns;
}

static uint64_t order_visible_ns(const struct hf_blocking *queue)
{
    return hf_heap_first(&queue->in.order.heap)->when;
}

static const struct blocking_buffer priority_buffer = {
    .open = order_open,
    .release = order_release,
    .add = order_add,
    .remove = order_remove,
    .oldest_ns = order_oldest_ns,
};

BUFFER_CALLS(priority)

const struct blocking_kind hf_blocking_kind_priority = {
    .name = "priority-queue",
    .buffer = &priority_buffer,
    .capacity_default = UINT64_MAX,
    .capacity_max = HF_BLOCKING_CAPACITY_MAX,
    .ages = true,
    .put = priority_put,
    .take = priority_take,
    .drain = hf_buffer_drain,
};

static const struct blocking_buffer delay_buffer = {
    .open = order_open,
    .release = order_release,
    .add = order_add,
    .remove = order_remove,
    .oldest_ns = order_oldest_ns,
    .visible_ns = order_visible_ns,
};

BUFFER_CALLS(delay)

const struct blocking_kind hf_blocking_kind_delay = {
    .name = "delay-queue",
    .buffer = &delay_buffer,
    .capacity_default = UINT64_MAX,
    .capacity_max = HF_BLOCKING_CAPACITY_MAX,
    .ages = true,
    .put = delay_put,
    .take = delay_take,
    .drain = hf_buffer_drain,
};
