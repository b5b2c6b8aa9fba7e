/* cache_change.c - put and remove.
 *
 * A put makes a whole new entry, also in the place of another: so a reader sees
 * a value with its own version, weight and end, or the one before with its own.
 *
 * The stamp moves after the change and before the lock is free. Who takes the
 * new stamp sees the change; who took the old one before the change may have
 * read either, and learns by the next look at the stamp.
 */
#include "base/memory.h"
#include "keep/cache_state.h"

#define SWEEP_A_PUT 2u
#define CALM_SHARE  64u

enum hf_status hf_cache_entry_new(struct hf_cache *cache,
                                  const struct cache_key *key, void *value,
                                  uint64_t ttl_ns, struct cache_entry **out)
{
    const struct hf_cache_opts *opts = &cache->opts;
    uint64_t weight = 1;
    uint64_t now_ns = 0;

    if (opts->weigh != NULL && value != NULL)
        weight = opts->weigh(opts->context, key->data, key->len, value);
    if (weight > HF_CACHE_ENTRY_MAX)
        return HF_INVALID;
    struct cache_entry *entry = hf_alloc(sizeof *entry + key->len);
    if (entry == NULL)
        return HF_NOMEM;
    *entry = (struct cache_entry){
        .retired.kind = CACHE_ENTRY,
        .holds.value = 1,
        .weight = (uint32_t)weight,
        .negative = value == NULL,
        .key_len = (uint32_t)key->len,
        .hash = key->hash,
        .value = value,
        .limit_ns = HF_FOREVER,
        .expires_ns.value = HF_FOREVER,
        .refresh_at_ns.value = HF_FOREVER,
    };
    if (key->len > 0)
        memcpy(entry->key, key->data, key->len);
    if (ttl_ns == 0)
        ttl_ns = opts->ttl_ns == 0 ? HF_FOREVER : opts->ttl_ns;
    if (opts->ttl_max_ns != 0 && ttl_ns > opts->ttl_max_ns)
        ttl_ns = opts->ttl_max_ns;
    if (ttl_ns != HF_FOREVER || opts->idle_ns != 0 || opts->refresh_ns != 0)
        now_ns = cache_now(cache);
    entry->limit_ns = cache_after(now_ns, ttl_ns);
    entry->expires_ns.value = entry->limit_ns;
    if (opts->idle_ns != 0 &&
        cache_after(now_ns, opts->idle_ns) < entry->limit_ns)
        entry->expires_ns.value = cache_after(now_ns, opts->idle_ns);
    if (opts->refresh_ns != 0)
        entry->refresh_at_ns.value = cache_after(now_ns, opts->refresh_ns);
    *out = entry;
    return HF_OK;
}

void hf_cache_stamp_move(struct hf_cache *cache, uint64_t hash)
{
    struct hf_atomic_u64 *stamp = cache_stamp_of(cache, hash);

    /* Release: the change before. The lock's holder alone writes it. */
    hf_u64_store(stamp, cache_figure(stamp) + 1, __ATOMIC_RELEASE);
}

/* What an entry takes and gives back. */
static void account(struct cache_segment *segment,
                    const struct cache_entry *entry, bool comes)
{
    uint64_t weight = entry->weight;

    cache_count(&segment->count, comes ? 1 : UINT64_MAX);
    cache_count(&segment->weight, comes ? weight : -weight);
}

/* The policy has heard of it, see cache.c. Relaxed: hints. */
static void heard(struct cache_segment *segment, struct cache_entry *entry)
{
    uint32_t tick = hf_u32_load(&segment->tick, __ATOMIC_RELAXED) + 1;
    uint64_t calm = cache_figure(&segment->count) / CALM_SHARE;

    hf_u32_store(&segment->tick, tick, __ATOMIC_RELAXED);
    hf_u32_store(&segment->calm, (uint32_t)calm, __ATOMIC_RELAXED);
    if (segment->policy.kind != HF_CACHE_S3FIFO)
        hf_u32_store(&entry->used, tick, __ATOMIC_RELAXED);
}

/* It is out of the table and of the policy: the rest. */
static void leave(struct cache_segment *segment, struct cache_entry *entry,
                  enum hf_cache_cause cause, struct cache_batch *batch)
{
    hf_cache_due_remove(segment, entry);
    account(segment, entry, false);
    entry->cause = (uint8_t)cause;
    if (!entry->negative)
        cache_count(&segment->removals[cause], 1);
    cache_batch_add(batch, entry);
}

void hf_cache_take(struct cache_segment *segment, struct cache_entry *entry,
                   const struct cache_place *place, enum hf_cache_cause cause,
                   struct cache_batch *batch)
{
    hf_cache_table_remove(segment, place, entry);
    hf_cache_queue_unlink(&segment->policy, entry);
    leave(segment, entry, cause, batch);
}

void hf_cache_take_entry(struct cache_segment *segment,
                         struct cache_entry *entry, enum hf_cache_cause cause,
                         struct cache_batch *batch)
{
    struct cache_place place;
    bool there = hf_cache_table_place(segment, entry, &place);

    assert(there);
    (void)there;
    hf_cache_take(segment, entry, &place, cause, batch);
}

/* The key's entry whose time is not over; one that is over is taken out. */
static struct cache_entry *find_living(struct hf_cache *cache,
                                       struct cache_segment *segment,
                                       const struct cache_key *key,
                                       struct cache_place *place,
                                       struct cache_batch *batch)
{
    struct cache_entry *entry = hf_cache_table_find(segment, key, place);
    uint64_t now_ns = 0;

    if (entry == NULL || !cache_is_over(cache, entry, &now_ns))
        return entry;
    hf_cache_take(segment, entry, place, HF_CACHE_EXPIRED, batch);
    return NULL;
}

/* May it be put there, beside or in the place of `old`? */
static enum hf_status is_wanted(const struct hf_cache *cache,
                                const struct cache_store *store,
                                const struct cache_entry *old)
{
    bool there = old != NULL && !old->negative;
    uint64_t stamp;

    switch (store->when) {
    case CACHE_IF_ABSENT:
        return there ? HF_EXISTS : HF_OK;
    case CACHE_IF_VERSION:
        if (!there)
            return store->expect == 0 ? HF_OK : HF_NOTFOUND;
        return old->version == store->expect ? HF_OK : HF_EXISTS;
    case CACHE_IF_STAMP:
        /* Relaxed: what moves the stamp for this key holds the lock. */
        stamp = 1 + cache_figure(cache_stamp_of(cache, store->entry->hash));
        return stamp == store->expect ? HF_OK : HF_EXISTS;
    default:
        return HF_OK;
    }
}

enum hf_status hf_cache_store(struct hf_cache *cache,
                              struct cache_segment *segment,
                              struct hf_epoch_reader *reader,
                              struct cache_store *store,
                              struct cache_batch *batch)
{
    struct cache_entry *entry = store->entry;
    struct cache_key key = {entry->key, entry->key_len, entry->hash};
    struct cache_place place;
    struct cache_entry *old = find_living(cache, segment, &key, &place, batch);
    enum hf_status status = is_wanted(cache, store, old);

    if (status != HF_OK) {
        store->found = old;
        /* Seen by a load of this epoch, `old` lasts until it is left. */
        (void)epoch_load(reader, &segment->table);
        return status;
    }
    if ((old == NULL && !hf_cache_table_room(segment, reader, batch)) ||
        (entry->expires_ns.value != HF_FOREVER && !hf_cache_due_room(segment)))
        return HF_NOMEM;
    segment->version += cache->segment_count;
    entry->version = segment->version;
    if (old != NULL) {
        hf_cache_table_replace(&place, entry);
        hf_cache_policy_replaced(segment, old, entry);
        leave(segment, old,
              entry->negative ? HF_CACHE_EXPLICIT : HF_CACHE_REPLACED, batch);
    } else {
        hf_cache_table_insert(segment, entry);
        hf_cache_policy_added(segment, entry);
    }
    account(segment, entry, true);
    heard(segment, entry);
    hf_cache_due_add(segment, entry);
    if (!entry->negative)
        cache_count(&segment->puts, 1);
    if (store->when < CACHE_IF_STAMP) {
        hf_cache_loads_detach(segment, &key);
        hf_cache_stamp_move(cache, key.hash);
    }
    if (segment->due.count > 0)
        (void)hf_cache_due_sweep(segment, cache_now(cache), SWEEP_A_PUT, batch);
    hf_cache_policy_settle(segment, batch);
    return HF_OK;
}

static enum hf_status put(struct hf_cache *cache, const void *data, size_t len,
                          void *value, uint64_t ttl_ns, enum cache_when when,
                          uint64_t expect, void **existing)
{
    struct cache_store store = {.when = when, .expect = expect};
    struct cache_batch batch = {0};
    struct cache_key key;

    if (!cache_key_init(cache, data, len, &key) || value == NULL)
        return HF_INVALID;
    struct cache_segment *segment = cache_segment_of(cache, key.hash);
    cache_fetch(segment, key.hash);
    enum hf_status status =
        hf_cache_entry_new(cache, &key, value, ttl_ns, &store.entry);
    if (status != HF_OK)
        return status;
    struct hf_epoch_reader *reader = epoch_enter(cache->epoch);
    if (reader == NULL) {
        hf_free(store.entry);
        return HF_NOMEM;
    }
    hf_epoch_born(reader, &store.entry->retired.epoch);
    hf_cache_lock(cache, segment);
    status = hf_cache_store(cache, segment, reader, &store, &batch);
    hf_mutex_unlock(&segment->mutex);
    if (status != HF_OK)
        hf_free(store.entry);
    if (status == HF_EXISTS && store.found != NULL)
        hf_cache_hand_out(cache, store.found, existing);
    hf_cache_batch_end(cache, reader, &batch);
    epoch_leave(reader);
    return status;
}

enum hf_status hf_cache_put(struct hf_cache *cache, const void *data,
                            size_t len, void *value, uint64_t ttl_ns)
{
    return put(cache, data, len, value, ttl_ns, CACHE_ALWAYS, 0, NULL);
}

enum hf_status hf_cache_put_if_absent(struct hf_cache *cache, const void *data,
                                      size_t len, void *value, uint64_t ttl_ns,
                                      void **existing)
{
    return put(cache, data, len, value, ttl_ns, CACHE_IF_ABSENT, 0, existing);
}

enum hf_status hf_cache_put_if(struct hf_cache *cache, const void *data,
                               size_t len, void *value, uint64_t ttl_ns,
                               uint64_t version)
{
    return put(cache, data, len, value, ttl_ns, CACHE_IF_VERSION, version,
               NULL);
}

enum hf_status hf_cache_put_loaded(struct hf_cache *cache, const void *data,
                                   size_t len, void *value, uint64_t ttl_ns,
                                   uint64_t stamp)
{
    return put(cache, data, len, value, ttl_ns, CACHE_IF_STAMP, stamp, NULL);
}

enum hf_status hf_cache_put_all(struct hf_cache *cache,
                                const struct hf_cache_item *items, size_t count,
                                size_t *done)
{
    enum hf_status status = HF_OK;
    size_t i = 0;

    if (done != NULL)
        *done = 0;
    if (cache == NULL || (items == NULL && count > 0))
        return HF_INVALID;
    while (i < count && status == HF_OK) {
        status = hf_cache_put(cache, items[i].key, items[i].key_len,
                              items[i].value, items[i].ttl_ns);
        i += status == HF_OK;
    }
    if (done != NULL)
        *done = i;
    return status;
}

/* `version` 0: whichever. */
static enum hf_status remove_key(struct hf_cache *cache,
                                 const struct cache_key *key, uint64_t version)
{
    struct cache_segment *segment = cache_segment_of(cache, key->hash);
    struct cache_batch batch = {0};
    struct cache_place place;
    enum hf_status status = HF_NOTFOUND;
    struct hf_epoch_reader *reader = epoch_enter(cache->epoch);

    if (reader == NULL)
        return HF_NOMEM;
    hf_cache_lock(cache, segment);
    struct cache_entry *entry =
        find_living(cache, segment, key, &place, &batch);
    if (entry != NULL && !entry->negative)
        status = version == 0 || entry->version == version ? HF_OK : HF_EXISTS;
    if (entry != NULL && (status == HF_OK || version == 0))
        hf_cache_take(segment, entry, &place, HF_CACHE_EXPLICIT, &batch);
    if (status == HF_OK || version == 0) {
        hf_cache_loads_detach(segment, key);
        hf_cache_stamp_move(cache, key->hash);
    }
    hf_mutex_unlock(&segment->mutex);
    hf_cache_batch_end(cache, reader, &batch);
    epoch_leave(reader);
    return status;
}

enum hf_status hf_cache_remove(struct hf_cache *cache, const void *data,
                               size_t len)
{
    struct cache_key key;

    if (!cache_key_init(cache, data, len, &key))
        return HF_INVALID;
    return remove_key(cache, &key, 0);
}

enum hf_status hf_cache_remove_version(struct hf_cache *cache, const void *data,
                                       size_t len, uint64_t version)
{
    struct cache_key key;

    if (version == 0 || !cache_key_init(cache, data, len, &key))
        return HF_INVALID;
    return remove_key(cache, &key, version);
}
