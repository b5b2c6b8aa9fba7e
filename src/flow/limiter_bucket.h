/* limiter_bucket.h - buckets: where they are, and their ten places.
 *
 * A shard's buckets lie in segments: 4, 4, 8, 16, ... 128, and from bucket 256
 * on 256 each. Bucket `number` is the home of the hashes whose lower bits are
 * that number, as many bits as there are buckets for.
 *
 * Threads: who changes a bucket has the shard's lock; who reads does not.
 */
#ifndef FLOW_LIMITER_BUCKET_H
#define FLOW_LIMITER_BUCKET_H

#include "flow/limiter_state.h"

#define FIRST_BUCKETS   4u   /* of a shard */
#define SEGMENT_BUCKETS 256u /* of every segment from that bucket on */
#define SEGMENT_FIRST   6u   /* segments before those, less one */
#define CHAIN_MAX       64u  /* buckets that a reader follows */

#define TAG_LANES UINT64_C(0x0001000100010001)

/* The part of the hash that no bucket number uses in practice; the topmost
 * bits are the shard. */
static inline uint32_t tag_of(uint64_t hash)
{
    return (uint32_t)(hash >> 34) & 0xffff;
}

static inline struct limiter_bucket *
bucket_at(const struct limiter_shard *shard, uint32_t number)
{
    uint32_t segment, place;

    if (number >= SEGMENT_BUCKETS) {
        segment = SEGMENT_FIRST + number / SEGMENT_BUCKETS;
        place = number % SEGMENT_BUCKETS;
    } else if (number >= FIRST_BUCKETS) {
        uint32_t top = 31 - (uint32_t)__builtin_clz(number);
        segment = top - 1;
        place = number - (1u << top);
    } else {
        segment = 0;
        place = number;
    }
    struct limiter_bucket *buckets =
        limiter_array_at(&shard->segments, segment);
    return &buckets[place];
}

static inline uint32_t bucket_number(uint32_t hash, uint32_t buckets)
{
    uint32_t low = 1u << (31 - __builtin_clz(buckets));
    uint32_t number = hash & (2 * low - 1);

    return number < buckets ? number : number - low;
}

static inline struct limiter_bucket *
bucket_of(const struct limiter_shard *shard, uint32_t hash)
{
    /* Acquire: the bucket is there before its number is. */
    uint32_t buckets = hf_u32_load(&shard->buckets, __ATOMIC_ACQUIRE);
    return bucket_at(shard, bucket_number(hash, buckets));
}

static inline struct limiter_bucket *
bucket_next(const struct hf_limiter *limiter,
            const struct limiter_bucket *bucket)
{
    /* Acquire: the bucket was empty before it was chained. */
    uint32_t more = hf_u32_load(&bucket->more, __ATOMIC_ACQUIRE);
    return more == 0 ? NULL : limiter_memory_at(limiter, more);
}

/* The slots are in three words: 4, 4 and 2. Of word `i` the bit 16 * n + 15 is
 * set if its slot n may have the tag: perhaps without cause above one that has
 * it, never clear without cause. */
#define BUCKET_WORDS 3u

static inline uint64_t bucket_match(const struct limiter_bucket *bucket,
                                    uint32_t i, uint32_t tag)
{
    /* Relaxed: a hint; the cell decides. */
    uint64_t tags = i < 2 ? hf_u64_load(&bucket->tags[i], __ATOMIC_RELAXED)
                          : hf_u32_load(&bucket->tags_last, __ATOMIC_RELAXED) |
                                UINT64_C(0xffffffff00000000);
    uint64_t differ = tags ^ tag * TAG_LANES;
    uint64_t found = (differ - TAG_LANES) & ~differ & (TAG_LANES << 15);

    return i < 2 ? found : found & UINT64_C(0xffffffff);
}

static inline uint32_t bucket_slot(uint32_t i, uint64_t found)
{
    return i * 4 + (uint32_t)__builtin_ctzll(found) / 16;
}

static inline uint32_t tag_get(const struct limiter_bucket *bucket,
                               uint32_t slot)
{
    uint64_t tags = slot < 8
                        ? hf_u64_load(&bucket->tags[slot / 4], __ATOMIC_RELAXED)
                        : hf_u32_load(&bucket->tags_last, __ATOMIC_RELAXED);
    return (uint32_t)(tags >> (slot % 4 * 16)) & 0xffff;
}

/* Relaxed: readers that see an old tag look again under the lock. */
static inline void tag_set(struct limiter_bucket *bucket, uint32_t slot,
                           uint32_t tag)
{
    uint32_t shift = slot % 4 * 16;

    if (slot < 8) {
        uint64_t tags = hf_u64_load(&bucket->tags[slot / 4], __ATOMIC_RELAXED);
        tags &= ~(UINT64_C(0xffff) << shift);
        hf_u64_store(&bucket->tags[slot / 4], tags | (uint64_t)tag << shift,
                     __ATOMIC_RELAXED);
    } else {
        uint32_t tags = hf_u32_load(&bucket->tags_last, __ATOMIC_RELAXED);
        tags &= ~(0xffffu << shift);
        hf_u32_store(&bucket->tags_last, tags | tag << shift, __ATOMIC_RELAXED);
    }
}

static inline void slot_clear(struct limiter_bucket *bucket, uint32_t slot)
{
    /* Relaxed: who still sees it finds another key in the cell, or none. */
    hf_u32_store(&bucket->cells[slot], 0, __ATOMIC_RELAXED);
    tag_set(bucket, slot, 0);
}

static inline bool slot_fill(struct limiter_bucket *bucket, uint32_t tag,
                             uint32_t number)
{
    for (uint32_t slot = 0; slot < BUCKET_SLOTS; slot++) {
        if (hf_u32_load(&bucket->cells[slot], __ATOMIC_RELAXED) != 0)
            continue;
        tag_set(bucket, slot, tag);
        /* Release: the cell has its key. */
        hf_u32_store(&bucket->cells[slot], number, __ATOMIC_RELEASE);
        return true;
    }
    return false;
}

/* True if the cell had the key at some view of its lock. */
static inline bool limiter_cell_seen(struct hf_limiter *limiter,
                                     uint32_t number,
                                     const struct limiter_key *key,
                                     uint32_t *word)
{
    struct limiter_cell *cell = limiter_cell_at(limiter, number);

    /* Acquire: what the last holder wrote. */
    *word = hf_u32_load(&cell->lock, __ATOMIC_ACQUIRE);
    if (__builtin_expect(*word & LOCK_HELD, 0))
        *word = hf_limiter_lock_await(limiter, cell);
    return limiter_cell_is(cell, key);
}

/* The cell of a key, or 0. `*word` is a view of its lock, free: what is read
 * of the cell holds if the lock is seen the same afterwards. */
static inline uint32_t limiter_find(struct hf_limiter *limiter,
                                    const struct limiter_key *key,
                                    uint32_t *word)
{
    struct limiter_shard *shard = limiter_shard_of(limiter, key->hash);
    struct limiter_bucket *bucket = bucket_of(shard, (uint32_t)key->hash);
    uint32_t tag = tag_of(key->hash);

    for (uint32_t hops = 0; bucket != NULL && hops < CHAIN_MAX; hops++) {
        for (uint32_t i = 0; i < BUCKET_WORDS; i++) {
            uint64_t found = bucket_match(bucket, i, tag);
            for (; found != 0; found &= found - 1) {
                /* Acquire: the cell had its key before. */
                uint32_t number = hf_u32_load(
                    &bucket->cells[bucket_slot(i, found)], __ATOMIC_ACQUIRE);
                if (number != 0 &&
                    limiter_cell_seen(limiter, number, key, word))
                    return number;
            }
        }
        bucket = bucket_next(limiter, bucket);
    }
    return 0;
}

#endif
