/* limiter_lock.c - the lock of a cell, and the key that it guards.
 *
 * A cell is locked for a few stores. Who finds it locked spins for a moment;
 * if it is locked still, its holder does not run, and the wait is for the
 * processor. It then sleeps until any cell is unlocked. Unlocking is a plain
 * store and a plain look for sleepers, which the processor may do in the other
 * order: a sleeper that was missed so looks again after NAP_NS.
 */
#include <string.h>

#include "flow/limiter_state.h"

#ifdef HF_STEPPED
#define SPINS 2 /* so that the tests' scheduler comes to the sleeping */
#else
#define SPINS 200
#endif

#define NAP_NS UINT64_C(200000)

uint32_t hf_limiter_lock_await(struct hf_limiter *limiter,
                               struct limiter_cell *cell)
{
    const struct hf_clock *clock = hf_clock_system();

    for (int spins = 0;; spins++) {
        /* Acquire: what the last holder wrote. */
        uint32_t word = hf_u32_load(&cell->lock, __ATOMIC_ACQUIRE);
        if (!(word & LOCK_HELD))
            return word;
        if (spins < SPINS) {
            hf_thread_pause();
            continue;
        }
        /* seq_cst: as early as can be, for whoever unlocks. */
        hf_u32_add(&limiter->lock_sleepers, 1, __ATOMIC_SEQ_CST);
        uint32_t key = hf_event_prepare(&limiter->lock_event);
        if (hf_u32_load(&cell->lock, __ATOMIC_SEQ_CST) == word)
            (void)hf_event_wait(&limiter->lock_event, key, clock,
                                hf_clock_now_ns(clock) + NAP_NS);
        else
            hf_event_cancel(&limiter->lock_event, key);
        /* Relaxed: a hint. */
        hf_u32_sub(&limiter->lock_sleepers, 1, __ATOMIC_RELAXED);
    }
}

void hf_limiter_lock(struct hf_limiter *limiter, struct limiter_cell *cell)
{
    while (!limiter_lock_seen(cell, hf_limiter_lock_await(limiter, cell)))
        hf_thread_pause();
}

/* ---- Keys of cells. ---- */

void hf_limiter_cell_set_key(struct limiter_cell *cell,
                             const struct limiter_key *key, uint32_t flags)
{
    uint32_t i = 0;
    uint64_t word;

    /* Relaxed: unlock releases. */
    hf_u32_store(&cell->hash, (uint32_t)key->hash, __ATOMIC_RELAXED);
    for (; (i + 1) * 8 <= key->len; i++) {
        memcpy(&word, key->bytes + (size_t)i * 8, 8);
        hf_u64_store(&cell->key[i], word, __ATOMIC_RELAXED);
    }
    if (i * 8 < key->len)
        hf_u64_store(
            &cell->key[i],
            limiter_key_tail(key->bytes + (size_t)i * 8, key->len - i * 8),
            __ATOMIC_RELAXED);
    hf_u32_store(&cell->identity, key->identity | flags, __ATOMIC_RELAXED);
}
