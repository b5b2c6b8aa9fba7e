/* cache_visit.c - all entries, and figures.
 *
 * A visit collects the entries of one segment after the other under its lock,
 * and calls the user's function after it. The entries last meanwhile: the
 * visitor is inside the epoch.
 */
#include "base/memory.h"
#include "keep/cache_state.h"

struct snapshot {
    struct cache_entry **entries;
    size_t count;
};

/* All that is in the policy's queues is in the table and the other way. */
static void collect(struct cache_segment *segment, struct snapshot *snapshot)
{
    snapshot->count = 0;
    for (unsigned queue = 0; queue < 3; queue++) {
        struct cache_entry *entry = segment->policy.queues[queue].newest;
        for (; entry != NULL; entry = entry->older)
            snapshot->entries[snapshot->count++] = entry;
    }
    assert(snapshot->count == cache_figure(&segment->count));
}

/* To be freed. HF_NOMEM. */
static enum hf_status snapshot_take(struct hf_cache *cache,
                                    struct cache_segment *segment,
                                    struct hf_epoch_reader *reader,
                                    struct snapshot *snapshot)
{
    uint64_t room = cache_figure(&segment->count) + 1;

    for (;;) {
        snapshot->entries = hf_alloc(room * sizeof(struct cache_entry *));
        if (snapshot->entries == NULL)
            return HF_NOMEM;
        hf_cache_lock(cache, segment);
        uint64_t count = cache_figure(&segment->count);
        if (count <= room) {
            collect(segment, snapshot);
            /* Tells the epoch that we have seen what lives now. */
            (void)epoch_load(reader, &segment->table);
        }
        hf_mutex_unlock(&segment->mutex);
        if (count <= room)
            return HF_OK;
        hf_free(snapshot->entries);
        room = count + count / 8;
    }
}

/* Calls each(context, entry) for all that are there. */
static enum hf_status for_all(struct hf_cache *cache,
                              bool (*each)(void *context,
                                           struct hf_epoch_reader *reader,
                                           struct cache_entry *entry),
                              void *context)
{
    struct hf_epoch_reader *reader = epoch_enter(cache->epoch);
    enum hf_status status = HF_OK;
    bool goes_on = true;

    if (reader == NULL)
        return HF_NOMEM;
    for (uint32_t i = 0; i < cache->segment_count && goes_on && status == HF_OK;
         i++) {
        struct snapshot snapshot;
        status = snapshot_take(cache, &cache->segments[i], reader, &snapshot);
        if (status != HF_OK)
            break;
        for (size_t at = 0; at < snapshot.count && goes_on; at++) {
            struct cache_entry *entry = snapshot.entries[at];
            uint64_t now_ns = 0;
            if (!entry->negative && !cache_is_over(cache, entry, &now_ns))
                goes_on = each(context, reader, entry);
        }
        hf_free(snapshot.entries);
    }
    epoch_leave(reader);
    return status;
}

struct visit {
    bool (*visit)(void *context, const void *key, size_t key_len,
                  const struct hf_cache_found *found);
    void *context;
};

static bool visit_one(void *context, struct hf_epoch_reader *reader,
                      struct cache_entry *entry)
{
    const struct visit *visit = context;
    struct hf_cache_found found = {
        .value = entry->value,
        .version = entry->version,
        .expires_ns = hf_u64_load(&entry->expires_ns, __ATOMIC_RELAXED),
    };

    (void)reader;
    return visit->visit(visit->context, entry->key, entry->key_len, &found);
}

enum hf_status hf_cache_visit(struct hf_cache *cache,
                              bool (*visit)(void *context, const void *key,
                                            size_t key_len,
                                            const struct hf_cache_found *found),
                              void *context)
{
    struct visit all = {visit, context};

    if (cache == NULL || visit == NULL)
        return HF_INVALID;
    return for_all(cache, visit_one, &all);
}

struct removal {
    struct hf_cache *cache;
    bool (*test)(void *context, const void *key, size_t key_len, void *value);
    void *context;
    uint64_t count;
};

static bool remove_one(void *context, struct hf_epoch_reader *reader,
                       struct cache_entry *entry)
{
    struct removal *removal = context;
    struct hf_cache *cache = removal->cache;
    struct cache_segment *segment = cache_segment_of(cache, entry->hash);
    struct cache_key key = {entry->key, entry->key_len, entry->hash};
    struct cache_batch batch = {0};
    struct cache_place place;

    if (!removal->test(removal->context, entry->key, entry->key_len,
                       entry->value))
        return true;
    hf_cache_lock(cache, segment);
    /* The same entry, since its memory cannot be another's meanwhile. */
    if (hf_cache_table_place(segment, entry, &place)) {
        hf_cache_take(segment, entry, &place, HF_CACHE_EXPLICIT, &batch);
        hf_cache_loads_detach(segment, &key);
        hf_cache_stamp_move(cache, key.hash);
        removal->count++;
    }
    hf_mutex_unlock(&segment->mutex);
    hf_cache_batch_end(cache, reader, &batch);
    return true;
}

enum hf_status hf_cache_remove_if(struct hf_cache *cache,
                                  bool (*test)(void *context, const void *key,
                                               size_t key_len, void *value),
                                  void *context, uint64_t *count)
{
    struct removal removal = {cache, test, context, 0};

    if (cache == NULL || test == NULL)
        return HF_INVALID;
    enum hf_status status = for_all(cache, remove_one, &removal);
    if (count != NULL)
        *count = removal.count;
    return status;
}

void hf_cache_remove_all(struct hf_cache *cache, enum hf_cache_cause cause)
{
    struct hf_epoch_reader *reader = epoch_enter(cache->epoch);

    assert(reader != NULL); /* the callers have seen to that */
    for (uint32_t i = 0; i < cache->segment_count; i++) {
        struct cache_segment *segment = &cache->segments[i];
        struct cache_batch batch = {0};
        hf_cache_lock(cache, segment);
        for (unsigned queue = 0; queue < 3; queue++)
            while (segment->policy.queues[queue].newest != NULL)
                hf_cache_take_entry(segment,
                                    segment->policy.queues[queue].newest, cause,
                                    &batch);
        hf_cache_loads_detach(segment, NULL);
        /* After the change, as ever; `i` as a hash's segment. */
        for (uint64_t stamp = 0; stamp <= cache->stamp_mask; stamp++)
            hf_cache_stamp_move(cache, (uint64_t)i << 48 | stamp);
        hf_mutex_unlock(&segment->mutex);
        hf_cache_batch_end(cache, reader, &batch);
    }
    epoch_leave(reader);
}

enum hf_status hf_cache_clear(struct hf_cache *cache)
{
    if (cache == NULL)
        return HF_INVALID;
    if (hf_cache_enter(cache) != HF_OK) /* a record for this thread */
        return HF_NOMEM;
    hf_cache_remove_all(cache, HF_CACHE_EXPLICIT);
    hf_cache_leave(cache);
    return HF_OK;
}

static void add_segments(const struct hf_cache *cache,
                         struct hf_cache_stats *out)
{
    for (uint32_t i = 0; i < cache->segment_count; i++) {
        const struct cache_segment *segment = &cache->segments[i];
        out->count += cache_figure(&segment->count);
        out->weight += cache_figure(&segment->weight);
        out->puts += cache_figure(&segment->puts);
        out->window += cache_figure(&segment->window);
        for (unsigned cause = 0; cause < HF_CACHE_CAUSES; cause++)
            out->removals[cause] += cache_figure(&segment->removals[cause]);
    }
}

void hf_cache_stats(struct hf_cache *cache, struct hf_cache_stats *out)
{
    struct hf_epoch_stats epoch;
    uint32_t slot = 0;

    if (cache == NULL || out == NULL)
        return;
    /* Relaxed, all of it: figures, each for itself. */
    *out = (struct hf_cache_stats){
        .loads = cache_figure(&cache->loads),
        .load_failures = cache_figure(&cache->load_failures),
        .load_negatives = cache_figure(&cache->load_negatives),
        .load_waits = cache_figure(&cache->load_waits),
        .load_discards = cache_figure(&cache->load_discards),
        .load_ns = cache_figure(&cache->load_ns),
        .refreshes = cache_figure(&cache->refreshes),
    };
    add_segments(cache, out);
    const struct cache_local *local;
    while ((local = hf_locals_next(&cache->locals, &slot)) != NULL) {
        out->hits += cache_figure(&local->hits);
        out->misses += cache_figure(&local->misses);
        out->hits_negative += cache_figure(&local->hits_negative);
        out->reads_lost += cache_figure(&local->reads_lost);
    }
    hf_epoch_stats(cache->epoch, &epoch);
    out->garbage = epoch.retired - epoch.freed;
}
