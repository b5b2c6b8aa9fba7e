/* latch.c - count-down latch: a count and a bell.
 *
 *      63 62            32 31             0
 *     +--+----------------+----------------+
 *     |s |    waiting     |      left      |    s: shut
 *     +--+----------------+----------------+
 *
 * One change of this word ends the counting: either the last is taken off or
 * the latch is shut, never both. Whoever made it rings, and the ring is its
 * last touch (bell.h). A waiter looks at the bell only: that `left` is 0 is no
 * leave to go, since the ringer may still be on its way.
 */
#include "holdfast/latch.h"

#include <assert.h>

#include "sync/bell.h"

#define SHUT        (UINT64_C(1) << 63)
#define WAITING_ONE (UINT64_C(1) << 32)

static uint32_t left_of(uint64_t state)
{
    return (uint32_t)state;
}

static uint32_t waiting_of(uint64_t state)
{
    return (uint32_t)((state & ~SHUT) >> 32);
}

enum hf_status hf_latch_init(struct hf_latch *latch, uint32_t count,
                             const struct hf_clock *clock)
{
    if (latch == NULL || count == 0)
        return HF_INVALID;
    /* Relaxed: whoever shares the latch orders that. */
    hf_u64_store(&latch->state, count, __ATOMIC_RELAXED);
    hf_event_init(&latch->opened);
    latch->clock = clock;
    return HF_OK;
}

void hf_latch_destroy(struct hf_latch *latch)
{
    if (latch == NULL)
        return;
    /* Relaxed: nobody else is inside. */
    assert(waiting_of(hf_u64_load(&latch->state, __ATOMIC_RELAXED)) == 0);
    (void)latch;
}

enum hf_status hf_latch_count_down(struct hf_latch *latch, uint32_t count)
{
    if (latch == NULL)
        return HF_INVALID;
    /* Relaxed: the exchange decides. */
    uint64_t state = hf_u64_load(&latch->state, __ATOMIC_RELAXED);

    do {
        if (state & SHUT)
            return HF_CLOSED;
        if (count == 0 || count > left_of(state))
            return HF_INVALID;
        /* Release: what was done. Acquire: the last one hands on with its ring
         * what all the others did. */
    } while (
        !hf_u64_cas(&latch->state, &state, state - count, __ATOMIC_ACQ_REL));
    if (left_of(state) == count)
        hf_bell_ring(&latch->opened);
    return HF_OK;
}

/* Whoever made the last change may still be on its way to the bell. */
static bool is_decided(uint64_t state)
{
    return (state & SHUT) != 0 || left_of(state) == 0;
}

enum hf_status hf_latch_wait(struct hf_latch *latch, uint64_t deadline_ns)
{
    if (latch == NULL)
        return HF_INVALID;
    enum hf_status status = HF_OK;
    uint64_t state;

    if (!hf_bell_rung(&latch->opened)) {
        /* Relaxed, here and below: how many wait guards nothing, and what is
         * left is read after the bell that follows its last change. */
        hf_u64_add(&latch->state, WAITING_ONE, __ATOMIC_RELAXED);
        status = hf_bell_wait(&latch->opened, latch->clock, deadline_ns);
        state = hf_u64_load(&latch->state, __ATOMIC_RELAXED);
        if (status == HF_TIMEOUT && is_decided(state))
            status = hf_bell_wait(&latch->opened, NULL, HF_FOREVER);
        hf_u64_sub(&latch->state, WAITING_ONE, __ATOMIC_RELAXED);
    }
    if (status != HF_OK)
        return status;
    state = hf_u64_load(&latch->state, __ATOMIC_RELAXED);
    return left_of(state) == 0 ? HF_OK : HF_CLOSED;
}

uint32_t hf_latch_count(const struct hf_latch *latch)
{
    if (latch == NULL)
        return 0;
    /* Acquire: who finds 0 may go by what was done, as a waiter may. */
    return left_of(hf_u64_load(&latch->state, __ATOMIC_ACQUIRE));
}

void hf_latch_shutdown(struct hf_latch *latch)
{
    if (latch == NULL)
        return;
    /* Relaxed: the exchange decides. */
    uint64_t state = hf_u64_load(&latch->state, __ATOMIC_RELAXED);

    do {
        if ((state & SHUT) || left_of(state) == 0)
            return;
        /* Release: for those who find it shut. */
    } while (
        !hf_u64_cas(&latch->state, &state, state | SHUT, __ATOMIC_RELEASE));
    hf_bell_ring(&latch->opened);
}

void hf_latch_stats(const struct hf_latch *latch, struct hf_latch_stats *out)
{
    if (latch == NULL || out == NULL)
        return;
    /* Relaxed: a picture of one instant. */
    uint64_t state = hf_u64_load(&latch->state, __ATOMIC_RELAXED);

    *out = (struct hf_latch_stats){.count = left_of(state),
                                   .waiting = waiting_of(state),
                                   .shutdown = (state & SHUT) != 0};
}
