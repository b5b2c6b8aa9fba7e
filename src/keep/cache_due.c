/* cache_due.c - what expires next: a heap by time, and sweeps.
 *
 * A four-way heap of (time, entry) for entries that have an end. A read may put
 * an entry's end off (`idle_ns`) without a lock: the heap then has an earlier
 * time than the entry, and whoever comes to it by that time puts it back by the
 * right one. The heap's time is never later than the entry's, so nothing that
 * is over is missed.
 */
#include "base/memory.h"
#include "keep/cache_state.h"

#define WAYS     4u
#define ROOM_MIN 64u

bool cache_due_room(struct cache_segment *segment)
{
    if (segment->due_count + 2 <= segment->due_room)
        return true;
    uint32_t room = segment->due_room == 0 ? ROOM_MIN : segment->due_room * 2;
    struct cache_due *due =
        hf_realloc(segment->due, (size_t)room * sizeof *due);
    if (due == NULL)
        return false;
    segment->due = due;
    segment->due_room = room;
    return true;
}

static void place(struct cache_segment *segment, uint32_t at,
                  struct cache_due due)
{
    segment->due[at] = due;
    due.entry->due = at;
}

static uint32_t rise(struct cache_segment *segment, uint32_t at,
                     struct cache_due due)
{
    while (at > 1) {
        uint32_t parent = (at - 2) / WAYS + 1;
        if (segment->due[parent].when_ns <= due.when_ns)
            break;
        place(segment, at, segment->due[parent]);
        at = parent;
    }
    place(segment, at, due);
    return at;
}

static void sink(struct cache_segment *segment, uint32_t at,
                 struct cache_due due)
{
    for (;;) {
        uint64_t first = (uint64_t)(at - 1) * WAYS + 2;
        if (first > segment->due_count)
            break;
        uint32_t least = (uint32_t)first;
        for (uint32_t i = 1; i < WAYS && first + i <= segment->due_count; i++)
            if (segment->due[first + i].when_ns < segment->due[least].when_ns)
                least = (uint32_t)first + i;
        if (segment->due[least].when_ns >= due.when_ns)
            break;
        place(segment, at, segment->due[least]);
        at = least;
    }
    place(segment, at, due);
}

void cache_due_add(struct cache_segment *segment, struct cache_entry *entry)
{
    /* Relaxed: any value that it had is no later than what it has. */
    struct cache_due due = {hf_u64_load(&entry->expires_ns, __ATOMIC_RELAXED),
                            entry};

    assert(entry->due == 0);
    if (due.when_ns == HF_FOREVER)
        return;
    assert(segment->due_count + 2 <= segment->due_room);
    rise(segment, ++segment->due_count, due);
}

void cache_due_remove(struct cache_segment *segment, struct cache_entry *entry)
{
    uint32_t at = entry->due;

    if (at == 0)
        return;
    assert(segment->due[at].entry == entry);
    struct cache_due last = segment->due[segment->due_count--];
    entry->due = 0;
    if (at > segment->due_count)
        return;
    if (rise(segment, at, last) == at)
        sink(segment, at, last);
}

size_t cache_due_sweep(struct cache_segment *segment, uint64_t now_ns,
                       size_t max, struct cache_batch *batch)
{
    size_t taken = 0;

    for (size_t looks = 0; looks < 2 * max && taken < max; looks++) {
        if (segment->due_count == 0 || segment->due[1].when_ns > now_ns)
            break;
        struct cache_entry *entry = segment->due[1].entry;
        uint64_t expires_ns = hf_u64_load(&entry->expires_ns, __ATOMIC_RELAXED);
        if (expires_ns > now_ns) {
            sink(segment, 1, (struct cache_due){expires_ns, entry});
            continue;
        }
        cache_take_entry(segment, entry, HF_CACHE_EXPIRED, batch);
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
        cache_lock(cache, segment);
        taken +=
            cache_due_sweep(segment, cache_now(cache), max - taken, &batch);
        hf_mutex_unlock(&segment->mutex);
        cache_batch_end(cache, reader, &batch);
    }
    hf_u64_store(&cache->sweep_next, first + done, __ATOMIC_RELAXED);
    epoch_leave(reader);
    return taken;
}
