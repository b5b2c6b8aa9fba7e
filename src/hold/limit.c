/* limit.c - token buckets by key, exact whatever the rate.
 *
 * The rule comes with each call, so a bucket is one instant: when it will be
 * full again. With r permits earned per p microseconds, one permit is worth
 * p / r microseconds, which need not be whole. All sums are therefore made in
 * units of 1/r microsecond:
 *
 *   spent = (full - now) * r      a permit costs p       the burst is burst * p
 *
 * and the instant keeps its part of a microsecond as a fraction of r. Nothing
 * is rounded, so nothing drifts.
 *
 * A full bucket says nothing that a missing one does not say, so buckets that
 * are full are dropped: every new key looks at two old ones.
 */
#include <assert.h>

#include "hold/state.h"

typedef unsigned __int128 u128;

#define EVICTIONS_PER_NEW_KEY 2u

/* A bucket is never further from full than this (36,000 years): a burst that
 * would take longer to earn is cut, so that the instant fits its field. */
#define SPAN_MAX_US (1ull << 60)

static u128 spent_units(const struct bucket *bucket, uint64_t rate,
                        uint64_t now_us)
{
    if (bucket == NULL || bucket->full_us < now_us)
        return 0;
    uint64_t part = bucket->part;
    if (bucket->rate != rate && bucket->rate != 0)
        part = part * rate / bucket->rate;
    return (u128)(bucket->full_us - now_us) * rate + part;
}

static void set_spent(struct bucket *bucket, u128 units, uint64_t rate,
                      uint64_t now_us)
{
    bucket->full_us = now_us + (uint64_t)(units / rate);
    bucket->part = (uint32_t)(units % rate);
    bucket->rate = (uint32_t)rate;
}

static void evict_some(struct hold_engine *e, uint64_t now_us)
{
    for (uint32_t i = 0; i < EVICTIONS_PER_NEW_KEY; i++) {
        uint32_t top = hf_index_top(&e->buckets);
        if (top <= 1)
            return;
        if (e->bucket_hand == 0 || e->bucket_hand >= top)
            e->bucket_hand = 1;
        struct bucket *bucket = hf_index_used(&e->buckets, e->bucket_hand);
        if (bucket != NULL && bucket->full_us < now_us)
            hf_index_remove(&e->buckets, e->bucket_hand);
        e->bucket_hand++;
    }
}

static int64_t ceil_ms(u128 units, uint64_t rate)
{
    u128 per_ms = (u128)rate * US_PER_MS;
    u128 ms = (units + per_ms - 1) / per_ms;

    return ms > INT64_MAX ? INT64_MAX : (int64_t)ms;
}

/* The bucket for a key that is about to spend; NULL without room. */
static struct bucket *bucket_make(struct hold_engine *e, struct hf_bytes key,
                                  uint64_t now_us)
{
    evict_some(e, now_us);
    if (hf_index_count(&e->buckets) >= e->buckets_max)
        return NULL;
    uint32_t number = hf_index_add(&e->buckets, key);
    return number == 0 ? NULL : hf_index_at(&e->buckets, number);
}

void limit_take(struct hold_engine *e, const struct hold_command *c)
{
    uint64_t now_us = e->bucket_now_us = max_u64(e->bucket_now_us, e->now_us);
    u128 permit = (u128)c->per_ms * US_PER_MS;
    u128 span = (u128)c->rate * SPAN_MAX_US;
    u128 edge = permit * c->burst < span ? permit * c->burst : span;
    u128 cost = permit * c->cost;
    uint32_t number = hf_index_find(&e->buckets, c->name);
    struct bucket *bucket =
        number == 0 ? NULL : hf_index_at(&e->buckets, number);
    u128 spent = spent_units(bucket, c->rate, now_us);
    bool allowed = spent + cost <= edge;
    int64_t retry_ms = 0;

    if (allowed && cost > 0) {
        if (bucket == NULL)
            bucket = bucket_make(e, c->name, now_us);
        if (bucket == NULL) {
            refuse_overload(e, "limit_keys_max", e->buckets_max);
            return;
        }
        spent += cost;
        set_spent(bucket, spent, c->rate, now_us);
    } else if (!allowed) {
        retry_ms = cost > edge ? -1 : ceil_ms(spent + cost - edge, c->rate);
    }
    u128 left = spent < edge ? (edge - spent) / permit : 0;
    reply_map(&e->body, 5);
    reply_field_number(&e->body, FIELD_ALLOWED, allowed);
    reply_field_number(&e->body, FIELD_LIMIT, (int64_t)c->burst);
    reply_field_number(&e->body, FIELD_REMAINING, (int64_t)left);
    reply_field_number(&e->body, FIELD_RETRY_MS, retry_ms);
    reply_field_number(&e->body, FIELD_RESET_MS, ceil_ms(spent, c->rate));
}
