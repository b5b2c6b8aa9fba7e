/* blocking_linked.c - a buffer that grows and shrinks by blocks.
 *
 *   first             ...                last
 *   [ |begin..|..] -> [ ........ ] -> [ ..|end| ]        spare
 *
 * A block for many items: an allocation for each one would cost more than all
 * the rest of a put, and would happen under the lock.
 */
#include <assert.h>

#include "base/memory.h"
#include "sync/blocking_buffer.h"

/* So that a block without stamps is 1 KB, with what malloc adds. */
#define BLOCK_ITEMS 126u

struct linked_block {
    struct linked_block *next;
    void *items[BLOCK_ITEMS];
    uint64_t stamps[]; /* BLOCK_ITEMS, if ages are noted */
};

static enum hf_status linked_open(struct hf_blocking *queue)
{
    struct blocking_linked_state *in = &queue->in.linked;

    *in = (struct blocking_linked_state){.end = BLOCK_ITEMS};
    return HF_OK;
}

static void linked_release(struct hf_blocking *queue)
{
    struct blocking_linked_state *in = &queue->in.linked;

    while (in->first != NULL) {
        struct linked_block *next = in->first->next;
        hf_free(in->first);
        in->first = next;
    }
    hf_free(in->spare);
}

static enum hf_status append_block(struct hf_blocking *queue)
{
    struct blocking_linked_state *in = &queue->in.linked;
    struct linked_block *block = in->spare;
    size_t stamps = queue->opts.ages ? BLOCK_ITEMS * sizeof(uint64_t) : 0;

    in->spare = NULL;
    if (block == NULL)
        block = hf_alloc(sizeof *block + stamps);
    if (block == NULL)
        return HF_NOMEM;
    block->next = NULL;
    *(in->last == NULL ? &in->first : &in->last->next) = block;
    in->last = block;
    in->end = 0;
    return HF_OK;
}

static enum hf_status linked_add(struct hf_blocking *queue,
                                 const struct blocking_new *what)
{
    struct blocking_linked_state *in = &queue->in.linked;

    if (in->end == BLOCK_ITEMS && append_block(queue) != HF_OK)
        return HF_NOMEM;
    in->last->items[in->end] = what->item;
    if (queue->opts.ages)
        in->last->stamps[in->end] = what->stamp_ns;
    in->end++;
    return HF_OK;
}

static void *linked_remove(struct hf_blocking *queue)
{
    struct blocking_linked_state *in = &queue->in.linked;
    struct linked_block *block = in->first;
    void *item = block->items[in->begin++];

    assert(block != in->last || in->begin <= in->end);
    if (in->begin < BLOCK_ITEMS)
        return item;
    in->begin = 0;
    in->first = block->next;
    if (in->first == NULL)
        in->last = NULL; /* and `end` says that a block is needed */
    if (in->spare == NULL)
        in->spare = block;
    else
        hf_free(block);
    return item;
}

static uint64_t linked_oldest_ns(const struct hf_blocking *queue)
{
    return queue->in.linked.first->stamps[queue->in.linked.begin];
}

static const struct blocking_buffer linked_buffer = {
    .open = linked_open,
    .release = linked_release,
    .add = linked_add,
    .remove = linked_remove,
    .oldest_ns = linked_oldest_ns,
};

BUFFER_CALLS(linked)

const struct blocking_kind hf_blocking_kind_linked = {
    .name = "linked-queue",
    .buffer = &linked_buffer,
    .capacity_default = UINT64_MAX,
    .capacity_max = HF_BLOCKING_CAPACITY_MAX,
    .put = linked_put,
    .take = linked_take,
    .drain = hf_buffer_drain,
};
