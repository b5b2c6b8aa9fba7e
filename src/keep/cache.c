/* cache.c - open and close, and what readers do.
 *
 * A reader looks through its segment's table without a lock, and leaves the
 * hash of what it read in a small buffer that only its thread uses. When that
 * is full it tries the segment's lock and tells the policy all at once; if
 * another has the lock, the buffer is forgotten: a policy lives on samples, and
 * nobody waits to read. Hashes and not entries: an entry may be gone by then.
 *
 * Of an entry that the policy heard of a short while ago it need not hear
 * again: it is among the newest 1/64 of all in any case. For a cache with less
 * than 64 entries that is none. So a few very popular entries cost no more than
 * a look-up.
 */
#include "keep/cache_state.h"

#include "base/memory.h"

#define SEGMENT_COUNT 4096u /* entries that are worth a segment */
#define SEGMENTS_MOST 16u   /* by default */
#ifdef HF_STEPPED
#define FIRST_KEYS 8u /* so that the tests' scheduler sees tables grow */
#else
#define FIRST_KEYS 1024u /* room for so many at once */
#endif
#define SWEEP_NS   100000000u
#define SWEEP_STEP 1024u
#define STAMPS_MIN 64u

static void reclaim(void *context, struct hf_epoch_node *node)
{
    const struct hf_cache *cache = context;
    /* Both are the first field of what contains them. */
    struct cache_retired *retired = (struct cache_retired *)node;
    struct cache_entry *entry = (struct cache_entry *)retired;

    if (retired->kind == CACHE_ENTRY && cache->opts.release != NULL &&
        !entry->negative)
        cache->opts.release(cache->opts.context, entry->value);
    hf_free(retired);
}

void hf_cache_entry_drop(struct hf_epoch_reader *reader,
                         struct cache_entry *entry)
{
    /* One hold is one's own: nobody can make it two. Acquire: what the others
     * did; release: what this holder read. */
    if (hf_u32_load(&entry->holds, __ATOMIC_ACQUIRE) == 1 ||
        hf_u32_sub(&entry->holds, 1, __ATOMIC_ACQ_REL) == 1)
        hf_epoch_retire(reader, &entry->retired.epoch);
}

void hf_cache_batch_end(struct hf_cache *cache, struct hf_epoch_reader *reader,
                        struct cache_batch *batch)
{
    struct cache_entry *entry = batch->first;

    while (entry != NULL) {
        struct cache_entry *next = entry->older;
        if (cache->opts.removed != NULL && !entry->negative)
            cache->opts.removed(cache->opts.context, entry->key, entry->key_len,
                                entry->value,
                                (enum hf_cache_cause)entry->cause);
        hf_cache_entry_drop(reader, entry);
        entry = next;
    }
    if (batch->table != NULL)
        hf_epoch_retire(reader, &batch->table->retired.epoch);
    *batch = (struct cache_batch){0};
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    /* The list is the first field. */
    struct hf_cache *cache = (struct hf_cache *)(uintptr_t)listed;

    row->depth = hf_cache_count(cache);
    row->capacity = cache->opts.weigh == NULL ? cache->opts.max_count
                                              : cache->opts.max_weight;
}

static bool opts_are_good(const struct hf_cache_opts *opts)
{
    bool weighs = opts->weigh != NULL;
    uint64_t bound = weighs ? opts->max_weight : opts->max_count;

    return (unsigned)opts->policy <= HF_CACHE_S3FIFO &&
           opts->max_count <= HF_CACHE_COUNT_MAX &&
           opts->max_weight <= HF_CACHE_WEIGHT_MAX &&
           weighs == (opts->max_weight != 0) &&
           (!weighs || opts->max_count == 0) &&
           opts->segments <= HF_CACHE_SEGMENTS_MAX &&
           (opts->segments & (opts->segments - 1)) == 0 &&
           (bound == 0 || opts->segments <= bound) &&
           (opts->retain == NULL || opts->release != NULL) &&
           (opts->load != NULL ||
            (opts->refresh_ns == 0 && opts->refresher == NULL)) &&
           opts->sweep_ns <= HF_SCHEDULER_TIME_MAX_NS;
}

static void opts_complete(struct hf_cache_opts *opts)
{
    if (opts->weigh == NULL && opts->max_count == 0)
        opts->max_count = HF_CACHE_COUNT_DEFAULT;
    if (opts->clock == NULL)
        opts->clock = hf_clock_system();
    if (opts->sweep_ns == 0)
        opts->sweep_ns = SWEEP_NS;
    if (opts->segments != 0)
        return;
    opts->segments = 1;
    while (opts->segments < SEGMENTS_MOST &&
           opts->max_count >= (uint64_t)opts->segments * 2 * SEGMENT_COUNT)
        opts->segments *= 2;
}

static enum hf_status segment_init(struct hf_cache *cache, uint32_t index)
{
    struct cache_segment *segment = &cache->segments[index];
    uint64_t bound = cache->opts.weigh == NULL ? cache->opts.max_count
                                               : cache->opts.max_weight;
    uint64_t max =
        bound / cache->segment_count + (index < bound % cache->segment_count);
    uint64_t keys = max < FIRST_KEYS ? max : FIRST_KEYS;
    struct cache_table *table = hf_cache_table_new(keys);

    if (table == NULL)
        return HF_NOMEM;
    /* Relaxed: nobody else has the cache yet. */
    hf_ptr_store(&segment->table, table, __ATOMIC_RELAXED);
    hf_u64_store(&segment->mask, table->mask, __ATOMIC_RELAXED);
    segment->version = index;
    hf_cache_due_init(segment);
    return hf_cache_policy_init(&segment->policy, cache->opts.policy, max,
                                keys);
}

/* What open made so far, or all when nobody is inside any more. */
static void dispose(struct hf_cache *cache)
{
    for (uint32_t i = 0; cache->segments != NULL && i < cache->segment_count;
         i++) {
        struct cache_segment *segment = &cache->segments[i];
        hf_free(hf_ptr_load(&segment->table, __ATOMIC_RELAXED));
        hf_cache_policy_destroy(&segment->policy);
        hf_heap_destroy(&segment->due);
    }
    hf_epoch_close(cache->epoch); /* releases what is retired */
    hf_free(cache->segments);
    hf_free(cache->stamps);
    hf_locals_destroy(&cache->locals);
    hf_free(cache);
}

static enum hf_status build(struct hf_cache *cache)
{
    struct hf_epoch_opts epoch_opts = {.name = cache->opts.name,
                                       .free = reclaim,
                                       .context = cache,
                                       .clock = cache->opts.clock};
    uint64_t stamps = STAMPS_MIN; /* of a segment */
    size_t bytes = cache->segment_count * sizeof *cache->segments;

    while (stamps * cache->segment_count < CACHE_STAMPS_MAX &&
           stamps * cache->segment_count < cache->opts.max_count)
        stamps *= 2;
    cache->stamp_mask = stamps - 1;
    cache->local_bytes = sizeof(struct cache_local) +
                         cache->segment_count * sizeof(struct cache_reads);
    cache->stamps =
        hf_alloc_zeroed(stamps * cache->segment_count * sizeof *cache->stamps);
    struct cache_segment *segments = hf_alloc_lines(bytes);
    if (segments != NULL)
        cache->segments = segments;
    if (cache->stamps == NULL || segments == NULL ||
        hf_locals_init(&cache->locals, cache->local_bytes) != HF_OK ||
        hf_epoch_open(&cache->epoch, &epoch_opts) != HF_OK)
        return HF_NOMEM;
    for (uint32_t i = 0; i < cache->segment_count; i++)
        if (segment_init(cache, i) != HF_OK)
            return HF_NOMEM;
    return HF_OK;
}

static int sweep_task(void *arg)
{
    (void)hf_cache_sweep(arg, SWEEP_STEP);
    return 0;
}

static enum hf_status sweep_start(struct hf_cache *cache)
{
    struct hf_every every = {.period_ns = cache->opts.sweep_ns};

    if (cache->opts.scheduler == NULL)
        return HF_OK;
    enum hf_status status = hf_scheduler_every_after(
        cache->opts.scheduler, &every, sweep_task, cache, &cache->sweep_id);
    cache->sweeping = status == HF_OK;
    return status;
}

enum hf_status hf_cache_open(struct hf_cache **out,
                             const struct hf_cache_opts *opts)
{
    static const struct hf_cache_opts none;

    opts = opts == NULL ? &none : opts;
    if (out == NULL || !opts_are_good(opts))
        return HF_INVALID;
    struct hf_cache *cache = hf_alloc_lines(sizeof *cache);
    if (cache == NULL)
        return HF_NOMEM;
    cache->opts = *opts;
    opts_complete(&cache->opts);
    cache->segment_count = cache->opts.segments;
    hf_hasher_init(&cache->hash,
                   hf_hash_seed((struct hf_hash_seed){
                       {cache->opts.seed[0], cache->opts.seed[1]}}));
    enum hf_status status = build(cache);
    if (status == HF_OK) {
        hf_listed_add(&cache->listed, "cache", opts->name, fill);
        cache->opts.name = cache->listed.name;
        status = sweep_start(cache);
        if (status == HF_OK) {
            *out = cache;
            return HF_OK;
        }
        hf_listed_remove(&cache->listed);
    }
    dispose(cache);
    return status;
}

void hf_cache_shutdown(struct hf_cache *cache)
{
    if (cache == NULL)
        return;
    /* Release: before the wake-ups, which those who wait look after. */
    hf_u32_store(&cache->shut, 1, __ATOMIC_RELEASE);
    for (uint32_t i = 0; i < cache->segment_count; i++) {
        hf_mutex_lock(&cache->segments[i].mutex);
        hf_cache_loads_wake(&cache->segments[i]);
        hf_mutex_unlock(&cache->segments[i].mutex);
    }
}

void hf_cache_close(struct hf_cache *cache)
{
    if (cache == NULL)
        return;
    hf_cache_shutdown(cache);
    if (cache->sweeping && hf_scheduler_cancel(cache->opts.scheduler,
                                               cache->sweep_id) == HF_PENDING)
        (void)hf_scheduler_join(cache->opts.scheduler, cache->sweep_id,
                                HF_FOREVER);
    hf_cache_refreshes_await(cache);
    hf_listed_remove(&cache->listed);
    hf_cache_remove_all(cache, HF_CACHE_CLOSED);
    dispose(cache);
}

void hf_cache_drain(struct cache_segment *segment, struct cache_reads *reads)
{
    struct cache_entry *entries[CACHE_READS];
    uint32_t tick = hf_u32_load(&segment->tick, __ATOMIC_RELAXED);

    assert(hf_mutex_held(&segment->mutex));
    /* First all are found and what they need is asked for, so that the memory
     * is on its way while others are dealt with. */
    for (uint64_t i = 0; i < reads->count; i++) {
        entries[i] = hf_cache_table_find_hash(segment, reads->hashes[i]);
        if (entries[i] != NULL)
            hf_cache_policy_fetch(segment, entries[i]);
    }
    for (uint64_t i = 0; i < reads->count; i++) {
        if (entries[i] == NULL)
            continue;
        /* Relaxed: a hint, and so is the tick. */
        hf_u32_store(&entries[i]->used, ++tick, __ATOMIC_RELAXED);
        hf_cache_policy_read(segment, entries[i]);
    }
    hf_u32_store(&segment->tick, tick, __ATOMIC_RELAXED);
    reads->count = 0;
}

void hf_cache_lock(struct hf_cache *cache, struct cache_segment *segment)
{
    struct cache_local *local = cache_local(cache);

    hf_mutex_lock(&segment->mutex);
    if (local != NULL)
        hf_cache_drain(segment, &local->reads[segment - cache->segments]);
}

static void __attribute__((noinline))
drain_full(struct cache_segment *segment, struct cache_local *local,
           struct cache_reads *reads)
{
    if (hf_mutex_try(&segment->mutex)) {
        hf_cache_drain(segment, reads);
        hf_mutex_unlock(&segment->mutex);
        return;
    }
    cache_count(&local->reads_lost, reads->count);
    reads->count = 0;
}

/* Inline, so that get does not pay for a call. */
HF_INLINE void note_hit(struct hf_cache *cache, struct cache_segment *segment,
                        struct cache_entry *entry, uint64_t hash)
{
    struct cache_local *local = cache_local(cache);

    if (__builtin_expect(local == NULL, 0))
        return;
    cache_count(&local->hits, 1);
    if (cache->opts.policy == HF_CACHE_S3FIFO) {
        /* Relaxed, and not one step: a hint; to lose one is no harm. */
        uint32_t used = hf_u32_load(&entry->used, __ATOMIC_RELAXED);
        if (used < 3)
            hf_u32_store(&entry->used, used + 1, __ATOMIC_RELAXED);
        return;
    }
    /* Relaxed: hints. */
    if (hf_u32_load(&segment->tick, __ATOMIC_RELAXED) -
            hf_u32_load(&entry->used, __ATOMIC_RELAXED) <
        hf_u32_load(&segment->calm, __ATOMIC_RELAXED))
        return;
    struct cache_reads *reads = &local->reads[segment - cache->segments];
    reads->hashes[reads->count++] = hash;
    if (__builtin_expect(reads->count == CACHE_READS, 0))
        drain_full(segment, local, reads);
}

void hf_cache_note_read(struct hf_cache *cache, struct cache_segment *segment,
                        struct cache_entry *entry)
{
    note_hit(cache, segment, entry, entry->hash);
}

static void note_miss(struct hf_cache *cache, bool negative)
{
    struct cache_local *local = cache_local(cache);

    if (local == NULL)
        return;
    cache_count(&local->misses, 1);
    if (negative)
        cache_count(&local->hits_negative, 1);
}

/* Puts the end off, if reads do. It never comes nearer, and what is over stays
 * over: the caller saw that it was not. */
static void touch(const struct hf_cache *cache, struct cache_entry *entry,
                  uint64_t now_ns)
{
    uint64_t later_ns = cache_after(now_ns, cache->opts.idle_ns);
    uint64_t expires_ns = hf_u64_load(&entry->expires_ns, __ATOMIC_RELAXED);

    if (later_ns > entry->limit_ns)
        later_ns = entry->limit_ns;
    /* Relaxed: one word, that says all. */
    while (expires_ns < later_ns && now_ns < expires_ns &&
           !hf_u64_cas(&entry->expires_ns, &expires_ns, later_ns,
                       __ATOMIC_RELAXED))
        continue;
}

/* The entry for a reader inside the epoch, or NULL; counts the miss. */
HF_INLINE struct cache_entry *look_up(struct hf_cache *cache,
                                      struct cache_segment *segment,
                                      struct hf_epoch_reader *reader,
                                      const struct cache_key *key,
                                      bool *negative)
{
    struct cache_entry *entry = cache_find(segment, reader, key);
    uint64_t now_ns = 0;

    if (__builtin_expect(entry == NULL, 0)) {
        note_miss(cache, false);
        return NULL;
    }
    bool over = cache_is_over(cache, entry, &now_ns);
    if (__builtin_expect(over || entry->negative, 0)) {
        *negative = !over;
        note_miss(cache, !over);
        return NULL;
    }
    if (cache->opts.idle_ns != 0)
        touch(cache, entry, now_ns);
    return entry;
}

struct cache_entry *hf_cache_look_up(struct hf_cache *cache,
                                     struct cache_segment *segment,
                                     struct hf_epoch_reader *reader,
                                     const struct cache_key *key,
                                     bool *negative)
{
    return look_up(cache, segment, reader, key, negative);
}

void hf_cache_hand_out(struct hf_cache *cache, const struct cache_entry *entry,
                       void **value)
{
    if (value == NULL)
        return;
    *value = entry->value;
    if (cache->opts.retain != NULL)
        cache->opts.retain(cache->opts.context, entry->value);
}

/* A read by one key: from the look-up to the end of it. */
struct reading {
    struct cache_key key;
    struct cache_segment *segment;
    struct hf_epoch_reader *reader;
    struct cache_entry *entry;
};

/* HF_OK: `entry` is it, until the reader leaves. Otherwise it has left. */
HF_INLINE enum hf_status read_begin(struct hf_cache *cache, const void *data,
                                    size_t len, struct reading *reading)
{
    bool negative;

    if (!cache_key_init(cache, data, len, &reading->key))
        return HF_INVALID;
    reading->segment = cache_segment_of(cache, reading->key.hash);
    cache_fetch(reading->segment, reading->key.hash);
    reading->reader = epoch_enter(cache->epoch);
    if (reading->reader == NULL)
        return HF_NOMEM;
    reading->entry = look_up(cache, reading->segment, reading->reader,
                             &reading->key, &negative);
    if (reading->entry != NULL)
        return HF_OK;
    epoch_leave(reading->reader);
    return HF_NOTFOUND;
}

HF_INLINE void read_note(struct hf_cache *cache, const struct reading *reading)
{
    note_hit(cache, reading->segment, reading->entry, reading->key.hash);
}

enum hf_status hf_cache_get(struct hf_cache *cache, const void *data,
                            size_t len, void **value)
{
    struct reading reading;
    enum hf_status status = read_begin(cache, data, len, &reading);

    if (status != HF_OK)
        return status;
    hf_cache_hand_out(cache, reading.entry, value);
    read_note(cache, &reading);
    epoch_leave(reading.reader);
    return HF_OK;
}

enum hf_status hf_cache_look(struct hf_cache *cache, const void *data,
                             size_t len, struct hf_cache_found *found)
{
    struct reading reading;
    enum hf_status status = read_begin(cache, data, len, &reading);

    if (status != HF_OK)
        return status;
    if (found != NULL) {
        hf_cache_hand_out(cache, reading.entry, &found->value);
        found->version = reading.entry->version;
        /* Relaxed: a time, which guards nothing. */
        found->expires_ns =
            hf_u64_load(&reading.entry->expires_ns, __ATOMIC_RELAXED);
    }
    read_note(cache, &reading);
    epoch_leave(reading.reader);
    return HF_OK;
}

enum hf_status hf_cache_read(struct hf_cache *cache, const void *data,
                             size_t len,
                             void (*read)(void *context, void *value),
                             void *context)
{
    struct reading reading;

    if (read == NULL)
        return HF_INVALID;
    enum hf_status status = read_begin(cache, data, len, &reading);
    if (status != HF_OK)
        return status;
    read_note(cache, &reading);
    read(context, reading.entry->value);
    epoch_leave(reading.reader);
    return HF_OK;
}

enum hf_status hf_cache_enter(struct hf_cache *cache)
{
    if (cache == NULL)
        return HF_INVALID;
    return epoch_enter(cache->epoch) == NULL ? HF_NOMEM : HF_OK;
}

void hf_cache_leave(struct hf_cache *cache)
{
    if (cache != NULL)
        epoch_leave(epoch_reader_mine(cache->epoch));
}

uint64_t hf_cache_stamp(struct hf_cache *cache, const void *data, size_t len)
{
    struct cache_key key;

    if (!cache_key_init(cache, data, len, &key))
        return 0;
    /* Acquire: who sees that it has moved sees the change that moved it. */
    return 1 + hf_u64_load(cache_stamp_of(cache, key.hash), __ATOMIC_ACQUIRE);
}

uint64_t hf_cache_count(struct hf_cache *cache)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; cache != NULL && i < cache->segment_count; i++)
        sum += cache_figure(&cache->segments[i].count);
    return sum;
}
