/* adder.c - striped counter: a word for each thread.
 *
 * Words only grow (modulo 2^64). A reset does not touch them, since their
 * owners write them without a lock; it remembers the sum that was taken.
 */
#include "holdfast/adder.h"

#include "sync/locals.h"
#include "sync/mutex.h"

struct stripe {
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 sum; /* (a) owner writes */
};

struct hf_adder_state {
    struct hf_locals stripes;
    /* (a) of threads that got no stripe; changed by additions */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 shared;
    struct hf_mutex mutex;      /* one reset at a time */
    struct hf_atomic_u64 taken; /* (a) by resets so far; written under mutex */
};

enum hf_status hf_adder_init(struct hf_adder *adder)
{
    if (adder == NULL)
        return HF_INVALID;
    struct hf_adder_state *state =
        hf_locals_object_new(sizeof *state, sizeof(struct stripe));
    if (state == NULL)
        return HF_NOMEM;
    adder->state = state;
    return HF_OK;
}

void hf_adder_destroy(struct hf_adder *adder)
{
    if (adder == NULL)
        return;
    hf_locals_object_free(adder->state);
    adder->state = NULL;
}

/* Of a thread far from the first ones, or without memory. */
static __attribute__((noinline)) void add_slow(struct hf_adder_state *state,
                                               int64_t amount)
{
    struct stripe *stripe = hf_locals_mine(&state->stripes, sizeof *stripe);

    /* Relaxed: as below. */
    if (stripe == NULL) {
        hf_u64_add(&state->shared, (uint64_t)amount, __ATOMIC_RELAXED);
        return;
    }
    uint64_t sum = hf_u64_load(&stripe->sum, __ATOMIC_RELAXED);
    hf_u64_store(&stripe->sum, sum + (uint64_t)amount, __ATOMIC_RELAXED);
}

void hf_adder_add(struct hf_adder *adder, int64_t amount)
{
    if (adder == NULL)
        return;
    struct stripe *stripe =
        hf_locals_quick(&adder->state->stripes, sizeof *stripe);

    if (__builtin_expect(stripe == NULL, 0)) {
        add_slow(adder->state, amount);
        return;
    }
    /* Relaxed: a count, which publishes nothing. Nobody else writes it. */
    uint64_t sum = hf_u64_load(&stripe->sum, __ATOMIC_RELAXED);
    hf_u64_store(&stripe->sum, sum + (uint64_t)amount, __ATOMIC_RELAXED);
}

/* All that was ever added. */
static uint64_t total(const struct hf_adder_state *state, uint32_t *records)
{
    uint64_t sum = hf_u64_load(&state->shared, __ATOMIC_RELAXED);
    uint32_t slot = 0;
    const struct stripe *stripe;

    *records = 0;
    while ((stripe = hf_locals_next(&state->stripes, &slot)) != NULL) {
        sum += hf_u64_load(&stripe->sum, __ATOMIC_RELAXED);
        ++*records;
    }
    return sum;
}

int64_t hf_adder_sum(const struct hf_adder *adder)
{
    struct hf_adder_stats stats = {0};

    hf_adder_stats(adder, &stats);
    return stats.sum;
}

int64_t hf_adder_sum_and_reset(struct hf_adder *adder)
{
    if (adder == NULL)
        return 0;
    struct hf_adder_state *state = adder->state;
    uint32_t records;

    hf_mutex_lock(&state->mutex);
    uint64_t sum = total(state, &records);
    uint64_t before = hf_u64_load(&state->taken, __ATOMIC_RELAXED);
    hf_u64_store(&state->taken, sum, __ATOMIC_RELEASE);
    hf_mutex_unlock(&state->mutex);
    return (int64_t)(sum - before);
}

void hf_adder_stats(const struct hf_adder *adder, struct hf_adder_stats *out)
{
    if (adder == NULL || out == NULL)
        return;
    /* Taken first, acquire: what a reset took is seen by the words read after,
     * so that the difference is never of the past. */
    uint64_t taken = hf_u64_load(&adder->state->taken, __ATOMIC_ACQUIRE);

    out->sum = (int64_t)(total(adder->state, &out->records) - taken);
}
