/* limiter_evict.c - forgetting keys that have nothing spent.
 *
 * Each new key looks at two old ones, on average: so there are never more than
 * twice as many keys as have something spent, or had within the last second,
 * beside one for each bucket of a table that was fuller once. A hand goes round
 * the buckets.
 */
#include "flow/limiter_bucket.h"
#include "flow/limiter_hold.h"

#define EVICT_STEPS 2    /* keys to look at for each new one */
#define EVICT_FULL  64u  /* of a shard, when there is no room */
#define EVICT_MOST  576u /* of all shards, then */

/* A key that has nothing spent is kept so long while there is room: making it
 * again costs more than its memory. */
#define EVICT_AGE_NS UINT64_C(1000000000)

/* Idle at now_ns: its words, by its own version of the rule, say nothing; or
 * its rule has been removed. The caller has the cell's lock. */
static bool cell_idle(struct hf_limiter *limiter, struct limiter_open *open,
                      uint64_t now_ns)
{
    /* Relaxed: under the cell's lock. */
    uint32_t identity = hf_u32_load(&open->cell->identity, __ATOMIC_RELAXED);

    if (identity & IDENTITY_FRESH) {
        /* Once: its maker is about to use it. */
        hf_u32_store(&open->cell->identity, identity & ~IDENTITY_FRESH,
                     __ATOMIC_RELAXED);
        return false;
    }
    if (!hf_limiter_version_lives(limiter,
                                  limiter_version_at(limiter, open->version)))
        return true;
    if (open->holds != NULL && hf_limiter_holds_expire(limiter, open, now_ns))
        hf_limiter_cell_store(open);
    return open->holds == NULL &&
           hf_words_idle(&open->plan, &open->words, now_ns);
}

static bool evict_slot(struct hf_limiter *limiter, struct limiter_shard *shard,
                       struct limiter_bucket *bucket, uint32_t slot,
                       uint64_t now_ns)
{
    uint32_t number = hf_u32_load(&bucket->cells[slot], __ATOMIC_RELAXED);
    struct limiter_cell *cell = limiter_cell_at(limiter, number);
    uint32_t word = hf_u32_load(&cell->lock, __ATOMIC_RELAXED);
    struct limiter_open open;

    if ((word & LOCK_HELD) || !limiter_lock_seen(cell, word))
        return false; /* it is in use */
    hf_limiter_cell_open(limiter, cell, number, &open);
    if (!cell_idle(limiter, &open, now_ns)) {
        limiter_unlock(limiter, cell);
        return false;
    }
    hf_limiter_cell_clear(limiter, &open);
    uint32_t len =
        hf_u32_load(&cell->identity, __ATOMIC_RELAXED) & IDENTITY_LEN;
    /* Release: before the cell is seen to have gone. Relaxed reads: written
     * under the shard's lock only. */
    if (hf_u64_load(&shard->evicted_ns, __ATOMIC_RELAXED) < now_ns)
        hf_u64_store(&shard->evicted_ns, now_ns, __ATOMIC_RELEASE);
    hf_u32_store(&cell->identity, 0, __ATOMIC_RELAXED);
    slot_clear(bucket, slot);
    limiter_unlock(limiter, cell);
    hf_limiter_cell_give(limiter, shard, number, len);
    hf_limiter_version_drop(limiter, open.version);
    limiter_count(&shard->keys, (uint64_t)-1);
    limiter_count(&shard->evictions, 1);
    /* Relaxed: a bound on a count. */
    hf_u64_sub(&limiter->keys, 1, __ATOMIC_RELAXED);
    return true;
}

/* Looks at the keys of the next bucket; returns how many those were. */
static uint32_t evict_bucket(struct hf_limiter *limiter,
                             struct limiter_shard *shard, uint64_t now_ns,
                             uint32_t *evicted)
{
    uint32_t seen = 0;

    if (shard->hand >= hf_u32_load(&shard->buckets, __ATOMIC_RELAXED))
        shard->hand = 0;
    struct limiter_bucket *bucket = bucket_at(shard, shard->hand++);
    for (; bucket != NULL; bucket = bucket_next(limiter, bucket)) {
        for (uint32_t slot = 0; slot < BUCKET_SLOTS; slot++) {
            if (hf_u32_load(&bucket->cells[slot], __ATOMIC_RELAXED) == 0)
                continue;
            *evicted += evict_slot(limiter, shard, bucket, slot, now_ns);
            seen++;
        }
    }
    return seen;
}

uint32_t hf_limiter_evict(struct hf_limiter *limiter,
                          struct limiter_shard *shard, uint32_t count,
                          uint64_t now_ns, uint32_t *evicted)
{
    uint32_t buckets = hf_u32_load(&shard->buckets, __ATOMIC_RELAXED);
    uint32_t seen = 0;

    assert(hf_mutex_held(&shard->mutex));
    for (uint32_t i = 0; i < buckets && i < count && seen < count; i++)
        seen += evict_bucket(limiter, shard, now_ns, evicted);
    return seen;
}

/* There are as many keys as may be: looks for one that is idle, also in other
 * shards until it has seen enough. */
static bool evict_any(struct hf_limiter *limiter, struct limiter_shard *shard,
                      uint64_t now_ns)
{
    uint32_t evicted = 0;

    uint32_t seen =
        hf_limiter_evict(limiter, shard, EVICT_FULL, now_ns, &evicted);
    for (uint32_t i = 0;
         i < limiter->shard_count && seen < EVICT_MOST && evicted == 0; i++) {
        /* Relaxed: where to look. */
        uint32_t turn = hf_u32_add(&limiter->evict_turn, 1, __ATOMIC_RELAXED);
        struct limiter_shard *other =
            &limiter->shards[turn & (limiter->shard_count - 1)];
        if (other == shard || !hf_mutex_try(&other->mutex))
            continue;
        seen += hf_limiter_evict(limiter, other, EVICT_FULL, now_ns, &evicted);
        hf_mutex_unlock(&other->mutex);
    }
    return evicted > 0;
}

bool hf_limiter_keys_reserve(struct hf_limiter *limiter,
                             struct limiter_shard *shard, uint64_t now_ns)
{
    /* Relaxed: a bound on a count. */
    if (hf_u64_add(&limiter->keys, 1, __ATOMIC_RELAXED) < limiter->keys_max)
        return true;
    if (evict_any(limiter, shard, now_ns) &&
        hf_u64_load(&limiter->keys, __ATOMIC_RELAXED) <= limiter->keys_max)
        return true;
    hf_u64_sub(&limiter->keys, 1, __ATOMIC_RELAXED);
    return false;
}

void hf_limiter_evict_some(struct hf_limiter *limiter,
                           struct limiter_shard *shard, uint64_t now_ns)
{
    uint32_t evicted = 0;

    assert(hf_mutex_held(&shard->mutex));
    if (now_ns < EVICT_AGE_NS)
        return;
    /* A whole bucket at a time, so that its keys are fetched together. */
    now_ns -= EVICT_AGE_NS;
    shard->evict_credit += EVICT_STEPS;
    if (shard->evict_credit > 0)
        shard->evict_credit -=
            1 + (int)evict_bucket(limiter, shard, now_ns, &evicted);
    if (shard->evict_credit > 0) /* nothing there: no more to look at later */
        shard->evict_credit = 0;
}

void hf_limiter_chain_clear(struct hf_limiter *limiter,
                            struct limiter_bucket *bucket)
{
    struct limiter_open open;

    for (; bucket != NULL; bucket = bucket_next(limiter, bucket)) {
        for (uint32_t slot = 0; slot < BUCKET_SLOTS; slot++) {
            uint32_t number =
                hf_u32_load(&bucket->cells[slot], __ATOMIC_RELAXED);
            if (number == 0)
                continue;
            hf_limiter_cell_open(limiter, limiter_cell_at(limiter, number),
                                 number, &open);
            hf_limiter_cell_clear(limiter, &open);
        }
    }
}
