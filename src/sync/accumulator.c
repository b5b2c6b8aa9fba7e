/* accumulator.c - striped running value: one for each thread.
 *
 * A reset swaps each stripe for the identity, so stripes are changed by
 * compare-and-swap, owner or not. That is seldom: most values leave a minimum
 * or maximum as it is and write nothing.
 */
#include "holdfast/accumulator.h"

#include "sync/locals.h"

struct stripe {
    /* (a) the running value, xor the identity: zeroed memory is neutral */
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 masked;
};

struct hf_accumulator_state {
    struct hf_locals stripes;
    uint64_t (*function)(uint64_t a, uint64_t b); /* (i) */
    uint64_t identity;                            /* (i) */
    struct stripe shared; /* (a) of threads that got no stripe */
};

enum hf_status hf_accumulator_init(struct hf_accumulator *accumulator,
                                   uint64_t (*function)(uint64_t a, uint64_t b),
                                   uint64_t identity)
{
    if (accumulator == NULL || function == NULL)
        return HF_INVALID;
    struct hf_accumulator_state *state =
        hf_locals_object_new(sizeof *state, sizeof(struct stripe));
    if (state == NULL)
        return HF_NOMEM;
    state->function = function;
    state->identity = identity;
    accumulator->state = state;
    return HF_OK;
}

void hf_accumulator_destroy(struct hf_accumulator *accumulator)
{
    if (accumulator == NULL)
        return;
    hf_locals_object_free(accumulator->state);
    accumulator->state = NULL;
}

void hf_accumulator_add(struct hf_accumulator *accumulator, uint64_t value)
{
    if (accumulator == NULL)
        return;
    struct hf_accumulator_state *state = accumulator->state;
    struct stripe *stripe = hf_locals_mine(&state->stripes, sizeof *stripe);

    if (__builtin_expect(stripe == NULL, 0))
        stripe = &state->shared;
    /* Relaxed: a value, which publishes nothing. One that changes nothing is in
     * what it was compared with: a reset that comes after takes that along. */
    uint64_t masked = hf_u64_load(&stripe->masked, __ATOMIC_RELAXED);
    uint64_t next;
    do {
        next =
            state->function(masked ^ state->identity, value) ^ state->identity;
    } while (next != masked &&
             !hf_u64_cas(&stripe->masked, &masked, next, __ATOMIC_RELAXED));
}

/* Combines all stripes; `read` reads one of them. */
static uint64_t combine(struct hf_accumulator_state *state,
                        uint64_t (*read)(struct stripe *stripe),
                        uint32_t *records)
{
    uint64_t value = read(&state->shared) ^ state->identity;
    uint32_t slot = 0;
    struct stripe *stripe;

    *records = 0;
    while ((stripe = hf_locals_next(&state->stripes, &slot)) != NULL) {
        value = state->function(value, read(stripe) ^ state->identity);
        ++*records;
    }
    return value;
}

/* Relaxed: adds that the caller knows to have ended came before it. */
static uint64_t stripe_load(struct stripe *stripe)
{
    return hf_u64_load(&stripe->masked, __ATOMIC_RELAXED);
}

/* Relaxed: what counts is the order of changes of this one word, in which each
 * add is before or after the swap. */
static uint64_t stripe_reset(struct stripe *stripe)
{
    return hf_u64_swap(&stripe->masked, 0, __ATOMIC_RELAXED);
}

uint64_t hf_accumulator_value(const struct hf_accumulator *accumulator)
{
    if (accumulator == NULL)
        return 0;
    uint32_t records;
    return combine(accumulator->state, stripe_load, &records);
}

uint64_t hf_accumulator_value_and_reset(struct hf_accumulator *accumulator)
{
    if (accumulator == NULL)
        return 0;
    uint32_t records;
    return combine(accumulator->state, stripe_reset, &records);
}

void hf_accumulator_stats(const struct hf_accumulator *accumulator,
                          struct hf_accumulator_stats *out)
{
    if (accumulator == NULL || out == NULL)
        return;
    out->value = combine(accumulator->state, stripe_load, &out->records);
}

uint64_t hf_accumulate_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t hf_accumulate_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

uint64_t hf_accumulate_min_signed(uint64_t a, uint64_t b)
{
    return (int64_t)a < (int64_t)b ? a : b;
}

uint64_t hf_accumulate_max_signed(uint64_t a, uint64_t b)
{
    return (int64_t)a > (int64_t)b ? a : b;
}
