/* cache_due.c - what expires next: a heap by time, and sweeps.
 *
 * A read may put an entry's end off (`idle_ns`) without a lock: the heap then
 * has an earlier time than the entry, and whoever comes to it by that time puts
 * it back by the right one. The heap's time is never later than the entry's, so
 * nothing that is over is missed.
 */
#include "keep/cache_state.h"

/* The tie of an entry in the heap is where the cache's entry is. */
static struct cache_entry *entry_of(const struct hf_heap_entry *due)
{
    return (struct cache_entry *)(uintptr_t)due->tie;
}

static void moved(void *context, uint32_t ref, uint32_t position)
{
    struct cache_segment *segment = context;

    (void)ref;
    if (position > 0) /* 0: removed, and known to be */
        entry_of(&segment->due.entries[position])->due = position;
}

void hf_cache_due_init(struct cache_segment *segment)
{
    hf_heap_init(&segment->due, moved, segment, &segment->due_bytes);
}

bool hf_cache_due_room(struct cache_segment *segment)
{
    if (hf_heap_promise(&segment->due) != HF_OK)
        return false;
    hf_heap_unpromise(&segment->due); /* the room stays */
    return true;
}

void hf_cache_due_add(struct cache_segment *segment, struct cache_entry *entry)
{
    /* Relaxed: any value that it had is no later than what it has. */
    struct hf_heap_entry due = {
        .when = hf_u64_load(&entry->expires_ns, __ATOMIC_RELAXED),
        .tie = (uintptr_t)entry};

    assert(entry->due == 0);
    if (due.when == HF_FOREVER)
        return;
    enum hf_status status = hf_heap_add(&segment->due, due);
    assert(status == HF_OK);
    (void)status;
}

void hf_cache_due_remove(struct cache_segment *segment,
                         struct cache_entry *entry)
{
    if (entry->due == 0)
        return;
    assert(entry_of(&segment->due.entries[entry->due]) == entry);
    hf_heap_remove(&segment->due, entry->due);
    entry->due = 0;
}

size_t hf_cache_due_sweep(struct cache_segment *segment, uint64_t now_ns,
                          size_t max, struct cache_batch *batch)
{
    const struct hf_heap_entry *first;
    size_t taken = 0;

    for (size_t looks = 0; looks < 2 * max && taken < max; looks++) {
        first = hf_heap_first(&segment->due);
        if (first == NULL || first->when > now_ns)
            break;
        struct cache_entry *entry = entry_of(first);
        uint64_t expires_ns = hf_u64_load(&entry->expires_ns, __ATOMIC_RELAXED);
        if (expires_ns > now_ns) {
            hf_heap_change(&segment->due, 1, expires_ns, first->tie);
            continue;
        }
        hf_cache_take_entry(segment, entry, HF_CACHE_EXPIRED, batch);
        taken++;
    }
    return taken;
}

size_t hf_cache_sweep(struct hf_cache *cache, size_t max)
{
    size_t taken = 0;

    if (cache == NULL || max == 0)
        return 0;
    struct hf_epoch_reader *reader = epoch_enter(cache->epoch);
    if (reader == NULL)
        return 0;
    /* Each sweep begins where the last one ended. Relaxed: shares out work. */
    uint64_t first = cache_figure(&cache->sweep_next);
    uint32_t done = 0;
    while (done < cache->segment_count && taken < max) {
        struct cache_segment *segment =
            &cache->segments[(first + done++) & (cache->segment_count - 1)];
        struct cache_batch batch = {0};
        hf_cache_lock(cache, segment);
        taken +=
            hf_cache_due_sweep(segment, cache_now(cache), max - taken, &batch);
        hf_mutex_unlock(&segment->mutex);
        hf_cache_batch_end(cache, reader, &batch);
    }
    hf_u64_store(&cache->sweep_next, first + done, __ATOMIC_RELAXED);
    epoch_leave(reader);
    return taken;
}
