/* limiter_bucket.h - buckets: where they are, and their ten places.
 *
 * A shard's buckets lie in segments: 4, 4, 8, 16, ... 512, and from bucket 1024
 * on 1024 each. Bucket `number` is the home of the hashes whose lower bits are
 * that number, as many bits as there are buckets for.
 *
 * Threads: who changes a bucket has the shard's lock; who reads does not.
 */
#ifndef FLOW_LIMITER_BUCKET_H
#define FLOW_LIMITER_BUCKET_H

#include "flow/limiter_state.h"

#define FIRST_BUCKETS   4u    /* of a shard */
#define SEGMENT_BUCKETS 1024u /* of every segment from that bucket on */

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
        segment = 8 + number / SEGMENT_BUCKETS;
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

/* Bit i: slot i may have the tag. May be set without cause above a slot that
 * has it, never clear without cause. */
static inline uint32_t bucket_match(const struct limiter_bucket *bucket,
                                    uint32_t tag)
{
    uint64_t wanted = tag * TAG_LANES;
    uint32_t found = 0;

    for (uint32_t i = 0; i < 3; i++) {
        /* Relaxed: a hint; the cell decides. */
        uint64_t tags = i < 2
                            ? hf_u64_load(&bucket->tags[i], __ATOMIC_RELAXED)
                            : hf_u32_load(&bucket->tags_last, __ATOMIC_RELAXED);
        uint64_t differ = tags ^ wanted;
        uint64_t zero = (differ - TAG_LANES) & ~differ & (TAG_LANES << 15);
        /* the top bits of four lanes, side by side */
        uint32_t lanes =
            (uint32_t)((zero >> 15) * UINT64_C(0x0001000200040008) >> 48);
        found |= (lanes & (i < 2 ? 15u : 3u)) << (4 * i);
    }
    return found;
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

#endif
