/* cache_policy.c - which entry goes: the queues that all policies are made of,
 * who is asked, and LRU, which is one queue. */
#include "base/memory.h"
#include "keep/cache_state.h"

void hf_cache_queue_push(struct cache_policy *policy, unsigned queue,
                         struct cache_entry *entry)
{
    struct cache_queue *to = &policy->queues[queue];

    entry->queue = (uint8_t)queue;
    entry->newer = NULL;
    entry->older = to->newest;
    if (to->newest == NULL)
        to->oldest = entry;
    else
        to->newest->newer = entry;
    to->newest = entry;
    to->weight += entry->weight;
}

void hf_cache_queue_unlink(struct cache_policy *policy,
                           struct cache_entry *entry)
{
    struct cache_queue *from = &policy->queues[entry->queue];

    *(entry->newer == NULL ? &from->newest : &entry->newer->older) =
        entry->older;
    *(entry->older == NULL ? &from->oldest : &entry->older->newer) =
        entry->newer;
    assert(from->weight >= entry->weight);
    from->weight -= entry->weight;
}

void hf_cache_queue_move(struct cache_policy *policy, unsigned queue,
                         struct cache_entry *entry)
{
    if (entry->queue == queue && entry->newer == NULL)
        return; /* it is the newest already */
    hf_cache_queue_unlink(policy, entry);
    hf_cache_queue_push(policy, queue, entry);
}

/* Puts `entry` where `old` was. */
static void swap(struct cache_policy *policy, struct cache_entry *old,
                 struct cache_entry *entry)
{
    struct cache_queue *queue = &policy->queues[old->queue];

    entry->queue = old->queue;
    entry->newer = old->newer;
    entry->older = old->older;
    *(entry->newer == NULL ? &queue->newest : &entry->newer->older) = entry;
    *(entry->older == NULL ? &queue->oldest : &entry->older->newer) = entry;
    queue->weight = queue->weight - old->weight + entry->weight;
}

enum hf_status hf_cache_policy_init(struct cache_policy *policy,
                                    enum hf_cache_policy kind, uint64_t max,
                                    uint64_t keys)
{
    policy->kind = kind;
    policy->max = max;
    if (kind == HF_CACHE_TINYLFU)
        return hf_cache_tinylfu_init(policy, keys);
    return kind == HF_CACHE_S3FIFO ? hf_cache_s3fifo_init(policy, keys) : HF_OK;
}

void hf_cache_policy_destroy(struct cache_policy *policy)
{
    hf_free(policy->sketch.words);
    hf_free(policy->shadows);
    hf_free(policy->ghosts.names);
}

void hf_cache_policy_added(struct cache_segment *segment,
                           struct cache_entry *entry)
{
    struct cache_policy *policy = &segment->policy;

    if (policy->kind == HF_CACHE_TINYLFU)
        hf_cache_tinylfu_added(segment, entry);
    else if (policy->kind == HF_CACHE_S3FIFO)
        hf_cache_s3fifo_added(segment, entry);
    else
        hf_cache_queue_push(policy, 0, entry);
}

void hf_cache_policy_read(struct cache_segment *segment,
                          struct cache_entry *entry)
{
    struct cache_policy *policy = &segment->policy;

    if (policy->kind == HF_CACHE_TINYLFU)
        hf_cache_tinylfu_read(segment, entry);
    else if (policy->kind == HF_CACHE_LRU)
        hf_cache_queue_move(policy, 0, entry);
}

void hf_cache_policy_fetch(const struct cache_segment *segment,
                           const struct cache_entry *entry)
{
    const struct cache_policy *policy = &segment->policy;

    if (entry->newer != NULL)
        __builtin_prefetch(&entry->newer->newer, 1);
    if (entry->older != NULL)
        __builtin_prefetch(&entry->older->newer, 1);
    if (policy->kind == HF_CACHE_TINYLFU)
        hf_cache_sketch_fetch(&policy->sketch, entry->hash);
}

void hf_cache_policy_replaced(struct cache_segment *segment,
                              struct cache_entry *old,
                              struct cache_entry *entry)
{
    /* Relaxed: a hint, and readers of the old one have no say any more. */
    uint32_t used = hf_u32_load(&old->used, __ATOMIC_RELAXED);

    if (segment->policy.kind == HF_CACHE_S3FIFO)
        hf_u32_store(&entry->used, used < 3 ? used + 1 : used,
                     __ATOMIC_RELAXED);
    swap(&segment->policy, old, entry);
    hf_cache_policy_read(segment, entry);
}

void hf_cache_evict(struct cache_segment *segment, struct cache_entry *entry,
                    struct cache_batch *batch)
{
    hf_cache_take_entry(segment, entry, HF_CACHE_SIZE, batch);
}

static void lru_settle(struct cache_segment *segment, struct cache_batch *batch)
{
    struct cache_queue *queue = &segment->policy.queues[0];
    struct cache_entry *entry = queue->oldest;

    while (queue->weight > segment->policy.max) {
        struct cache_entry *next = entry->newer;
        if (entry->weight > 0)
            hf_cache_evict(segment, entry, batch);
        entry = next;
    }
}

void hf_cache_policy_settle(struct cache_segment *segment,
                            struct cache_batch *batch)
{
    struct cache_policy *policy = &segment->policy;

    if (policy->kind == HF_CACHE_TINYLFU)
        hf_cache_tinylfu_settle(segment, batch);
    else if (policy->kind == HF_CACHE_S3FIFO)
        hf_cache_s3fifo_settle(segment, batch);
    else
        lru_settle(segment, batch);
}
