/* limiter_table.c - keys: found, added, and spread over more buckets.
 *
 * A shard grows by one bucket at a time. The keys that belong to the new
 * bucket are entered there, then the new number of buckets is published, then
 * they are taken out of the old one. A reader in between may find a key twice,
 * which is the same cell, or not at all, and then looks again under the lock.
 */
#include <string.h>

#include "base/memory.h"
#include "flow/limiter_bucket.h"

#define LOAD 6u /* keys a bucket that ask for one more */

/* ---- Finding. ---- */

uint32_t hf_limiter_find_locked(struct hf_limiter *limiter,
                                struct limiter_shard *shard,
                                const struct limiter_key *key)
{
    struct limiter_bucket *bucket = bucket_of(shard, (uint32_t)key->hash);

    assert(hf_mutex_held(&shard->mutex));
    for (; bucket != NULL; bucket = bucket_next(limiter, bucket)) {
        for (uint32_t i = 0; i < BUCKET_WORDS; i++) {
            uint64_t found = bucket_match(bucket, i, tag_of(key->hash));
            for (; found != 0; found &= found - 1) {
                uint32_t number = hf_u32_load(
                    &bucket->cells[bucket_slot(i, found)], __ATOMIC_RELAXED);
                if (number != 0 &&
                    limiter_cell_is(limiter_cell_at(limiter, number), key))
                    return number;
            }
        }
    }
    return 0;
}

/* ---- Growing. ---- */

/* Enters a cell into the chain of a bucket. HF_NOMEM. */
static enum hf_status chain_enter(struct hf_limiter *limiter,
                                  struct limiter_shard *shard,
                                  struct limiter_bucket *bucket, uint32_t tag,
                                  uint32_t number)
{
    for (;;) {
        if (slot_fill(bucket, tag, number))
            return HF_OK;
        struct limiter_bucket *next = bucket_next(limiter, bucket);
        if (next == NULL)
            break;
        bucket = next;
    }
    uint32_t more = hf_limiter_more_take(limiter, shard);
    if (more == 0)
        return HF_NOMEM;
    (void)slot_fill(limiter_memory_at(limiter, more), tag, number);
    /* Release: the bucket. */
    hf_u32_store(&bucket->more, more, __ATOMIC_RELEASE);
    return HF_OK;
}

/* Drops the buckets at the end of a chain that are empty. */
static void chain_trim(struct hf_limiter *limiter, struct limiter_shard *shard,
                       struct limiter_bucket *bucket)
{
    struct limiter_bucket *last = bucket;
    struct limiter_bucket *next;
    uint32_t more;

    while ((next = bucket_next(limiter, bucket)) != NULL) {
        for (uint32_t slot = 0; slot < BUCKET_SLOTS; slot++)
            if (hf_u32_load(&next->cells[slot], __ATOMIC_RELAXED) != 0)
                last = next;
        bucket = next;
    }
    more = hf_u32_load(&last->more, __ATOMIC_RELAXED);
    hf_u32_store(&last->more, 0, __ATOMIC_RELAXED);
    while (more != 0) {
        bucket = limiter_memory_at(limiter, more);
        uint32_t behind = hf_u32_load(&bucket->more, __ATOMIC_RELAXED);
        hf_limiter_more_give(limiter, shard, more);
        more = behind;
    }
}

/* Makes sure that bucket `number` has memory. */
static bool segment_make(struct hf_limiter *limiter,
                         struct limiter_shard *shard, uint32_t number)
{
    uint32_t count = number, segment;

    if (number == 0) {
        count = FIRST_BUCKETS;
        segment = 0;
    } else if (number >= SEGMENT_BUCKETS) {
        count = SEGMENT_BUCKETS;
        segment = SEGMENT_FIRST + number / SEGMENT_BUCKETS;
    } else {
        segment = 30 - (uint32_t)__builtin_clz(number);
    }
    uint32_t memory = hf_limiter_arena_take(
        &limiter->arena,
        count * (uint32_t)sizeof(struct limiter_bucket) / GRANULE);
    return memory != 0 &&
           hf_limiter_array_set(&shard->segments, segment,
                                limiter_memory_at(limiter, memory)) == HF_OK;
}

/* True if `number` is the first bucket of a segment. */
static bool segment_starts(uint32_t number)
{
    return number >= SEGMENT_BUCKETS ? number % SEGMENT_BUCKETS == 0
                                     : (number & (number - 1)) == 0;
}

/* The keys of a chain that belong to the new bucket: copied `to` there, or, if
 * that is NULL, taken out. On failure some are in both, and the new bucket is
 * not published: those there are to be taken out. */
static bool split_keys(struct hf_limiter *limiter, struct limiter_shard *shard,
                       struct limiter_bucket *from, struct limiter_bucket *to,
                       uint32_t low)
{
    for (; from != NULL; from = bucket_next(limiter, from)) {
        for (uint32_t slot = 0; slot < BUCKET_SLOTS; slot++) {
            uint32_t number = hf_u32_load(&from->cells[slot], __ATOMIC_RELAXED);
            if (number == 0)
                continue;
            struct limiter_cell *cell = limiter_cell_at(limiter, number);
            if (!(hf_u32_load(&cell->hash, __ATOMIC_RELAXED) & low))
                continue;
            if (to == NULL)
                slot_clear(from, slot);
            else if (chain_enter(limiter, shard, to, tag_get(from, slot),
                                 number))
                return false;
        }
    }
    return true;
}

/* Moves keys from chained buckets into free places before them. */
static void chain_pack(struct hf_limiter *limiter, struct limiter_shard *shard,
                       struct limiter_bucket *first)
{
    struct limiter_bucket *bucket = bucket_next(limiter, first);

    if (bucket == NULL)
        return;
    for (; bucket != NULL; bucket = bucket_next(limiter, bucket)) {
        for (uint32_t slot = 0; slot < BUCKET_SLOTS; slot++) {
            uint32_t number =
                hf_u32_load(&bucket->cells[slot], __ATOMIC_RELAXED);
            if (number != 0 && slot_fill(first, tag_get(bucket, slot), number))
                slot_clear(bucket, slot);
        }
    }
    chain_trim(limiter, shard, first);
}

/* One more bucket. Without memory the chains just get longer. */
static void split(struct hf_limiter *limiter, struct limiter_shard *shard)
{
    /* Relaxed: under the shard's lock. */
    uint32_t buckets = hf_u32_load(&shard->buckets, __ATOMIC_RELAXED);
    uint32_t low = 1u << (31 - __builtin_clz(buckets));

    if (buckets >= 1u << 30)
        return;
    if (segment_starts(buckets) && !segment_make(limiter, shard, buckets))
        return;
    struct limiter_bucket *from = bucket_at(shard, buckets - low);
    struct limiter_bucket *to = bucket_at(shard, buckets);
    if (!split_keys(limiter, shard, from, to, low)) {
        (void)split_keys(limiter, shard, to, NULL, low);
        chain_trim(limiter, shard, to);
        return;
    }
    /* Release: the bucket and what is in it. */
    hf_u32_store(&shard->buckets, buckets + 1, __ATOMIC_RELEASE);
    (void)split_keys(limiter, shard, from, NULL, low);
    chain_pack(limiter, shard, from);
}

/* ---- Adding. ---- */

enum hf_status hf_limiter_add(struct hf_limiter *limiter,
                              struct limiter_shard *shard,
                              const struct limiter_key *key, uint32_t version,
                              const struct rate_state *words, uint32_t flags,
                              uint64_t now_ns, uint32_t *number)
{
    assert(hf_mutex_held(&shard->mutex));
    hf_limiter_evict_some(limiter, shard, now_ns);
    if (!hf_limiter_keys_reserve(limiter, shard, now_ns))
        return HF_FULL;
    *number = hf_limiter_cell_take(limiter, shard, key->len);
    if (*number == 0)
        goto no_memory;
    struct limiter_cell *cell = limiter_cell_at(limiter, *number);
    hf_limiter_lock(limiter, cell);
    hf_limiter_cell_set_key(cell, key, flags);
    hf_u32_store(&cell->version, version, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < CELL_WORDS; i++)
        hf_u64_store(&cell->words[i], words->word[i], __ATOMIC_RELAXED);
    limiter_unlock(limiter, cell);
    if (chain_enter(limiter, shard, bucket_of(shard, (uint32_t)key->hash),
                    tag_of(key->hash), *number) != HF_OK) {
        hf_limiter_lock(limiter, cell);
        hf_u32_store(&cell->identity, 0, __ATOMIC_RELAXED);
        limiter_unlock(limiter, cell);
        hf_limiter_cell_give(limiter, shard, *number, key->len);
        goto no_memory;
    }
    limiter_count(&shard->keys, 1);
    if (hf_u64_load(&shard->keys, __ATOMIC_RELAXED) >
        (uint64_t)LOAD * hf_u32_load(&shard->buckets, __ATOMIC_RELAXED))
        split(limiter, shard);
    return HF_OK;

no_memory:
    hf_u64_sub(&limiter->keys, 1, __ATOMIC_RELAXED);
    return HF_NOMEM;
}

/* ---- Shards. ---- */

enum hf_status hf_limiter_shards_init(struct hf_limiter *limiter,
                                      uint32_t count)
{
    size_t bytes = count * sizeof(struct limiter_shard);

    limiter->shards = hf_alloc_lines(bytes);
    if (limiter->shards == NULL)
        return HF_NOMEM;
    limiter->shard_count = count;
    limiter->shard_shift = 32 - (uint32_t)__builtin_ctz(count);
    for (uint32_t i = 0; i < count; i++) {
        if (!segment_make(limiter, &limiter->shards[i], 0))
            return HF_NOMEM;
        hf_u32_store(&limiter->shards[i].buckets, FIRST_BUCKETS,
                     __ATOMIC_RELAXED);
    }
    return HF_OK;
}

void hf_limiter_shards_destroy(struct hf_limiter *limiter)
{
    for (uint32_t i = 0; i < limiter->shard_count; i++) {
        struct limiter_shard *shard = &limiter->shards[i];
        uint32_t buckets = hf_u32_load(&shard->buckets, __ATOMIC_RELAXED);
        /* Only arrays and holds are worth the walk. */
        bool owns = hf_u64_load(&limiter->array_bytes, __ATOMIC_RELAXED) ||
                    limiter->holds.cap != 0;
        for (uint32_t j = 0; owns && j < buckets; j++)
            hf_limiter_chain_clear(limiter, bucket_at(shard, j));
        hf_limiter_array_destroy(&shard->segments);
    }
    hf_free(limiter->shards);
}

void hf_limiter_expect(struct hf_limiter *limiter,
                       const struct hf_limiter_ask *ask, bool found)
{
    struct limiter_key key;

    if (limiter == NULL || ask == NULL ||
        limiter_key_make(limiter, ask, &key) != HF_OK)
        return;
    const struct limiter_bucket *bucket =
        bucket_of(limiter_shard_of(limiter, key.hash), (uint32_t)key.hash);
    __builtin_prefetch(bucket);
    for (uint32_t i = 0; i < BUCKET_WORDS && found; i++) {
        uint64_t match = bucket_match(bucket, i, tag_of(key.hash));
        if (match == 0)
            continue;
        /* Relaxed: nothing is read there. */
        uint32_t number = hf_u32_load(&bucket->cells[bucket_slot(i, match)],
                                      __ATOMIC_RELAXED);
        if (number != 0)
            __builtin_prefetch(limiter_cell_at(limiter, number), 1);
    }
}
