/* limiter_lock.c - the lock of a cell, and the key that it guards.
 *
 * Who finds a cell locked spins for a moment, then sleeps on one of a few
 * events. These are shared by many cells: all who sleep on one are woken, and
 * each looks at its own.
 */
#include <string.h>

#include "flow/limiter_state.h"

#ifdef HF_STEPPED
#define SPINS 2 /* so that the tests' scheduler comes to the sleeping */
#else
#define SPINS 100
#endif

static struct hf_event *lock_event(struct hf_limiter *limiter, uint32_t number)
{
    return &limiter->lock_events[number / 8 % LOCK_EVENTS];
}

uint32_t limiter_lock_await(struct hf_limiter *limiter,
                            struct limiter_cell *cell, uint32_t number)
{
    struct hf_event *event = lock_event(limiter, number);

    for (int spins = 0;; spins++) {
        /* Acquire: what the last holder wrote. */
        uint32_t word = hf_u32_load(&cell->lock, __ATOMIC_ACQUIRE);
        if (!(word & LOCK_HELD))
            return word;
        if (spins < SPINS) {
            hf_thread_pause();
            continue;
        }
        uint32_t key = hf_event_prepare(event);
        /* Whoever unlocks finds the mark, or has unlocked before. Release:
         * that we are counted. */
        if ((word & LOCK_WAITED) ||
            hf_u32_cas(&cell->lock, &word, word | LOCK_WAITED,
                       __ATOMIC_ACQ_REL)) {
            /* Acquire: as above. Still held by the same holder? */
            word = hf_u32_load(&cell->lock, __ATOMIC_ACQUIRE);
            if ((word & (LOCK_HELD | LOCK_WAITED)) ==
                (LOCK_HELD | LOCK_WAITED)) {
                (void)hf_event_wait(event, key, NULL, HF_FOREVER);
                continue;
            }
        }
        hf_event_cancel(event, key);
    }
}

uint32_t limiter_lock_slow(struct hf_limiter *limiter,
                           struct limiter_cell *cell, uint32_t number)
{
    uint32_t word;

    do
        word = limiter_lock_await(limiter, cell, number);
    while (!limiter_lock_seen(cell, word));
    return word;
}

void limiter_unlock_wake(struct hf_limiter *limiter, uint32_t number)
{
    hf_event_wake_all(lock_event(limiter, number));
}

/* ---- Keys of cells. ---- */

/* The last, shorter word of a key, padded with zeros. */
static uint64_t key_tail(const unsigned char *bytes, uint32_t len)
{
    uint64_t word = 0;

    memcpy(&word, bytes, len);
    return word;
}

bool limiter_cell_is(const struct limiter_cell *cell,
                     const struct limiter_key *key)
{
    /* Acquire, here and below: so that the look at the lock that follows
     * comes after. */
    uint32_t identity = hf_u32_load(&cell->identity, __ATOMIC_ACQUIRE);
    uint32_t i = 0;
    uint64_t word;

    if ((identity & IDENTITY_MASK) != key->identity)
        return false;
    for (; (i + 1) * 8 <= key->len; i++) {
        memcpy(&word, key->bytes + (size_t)i * 8, 8);
        if (hf_u64_load(&cell->key[i], __ATOMIC_ACQUIRE) != word)
            return false;
    }
    return i * 8 == key->len ||
           hf_u64_load(&cell->key[i], __ATOMIC_ACQUIRE) ==
               key_tail(key->bytes + (size_t)i * 8, key->len - i * 8);
}

void limiter_cell_set_key(struct limiter_cell *cell,
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
        hf_u64_store(&cell->key[i],
                     key_tail(key->bytes + (size_t)i * 8, key->len - i * 8),
                     __ATOMIC_RELAXED);
    hf_u32_store(&cell->identity, key->identity | flags, __ATOMIC_RELAXED);
}
