/* stores.h - atomic accesses by number, and the buffer of stores not yet done.
 *
 * schedule.c alone uses it. The buffer is a queue: stores enter it in program
 * order and are done in that order, as in a processor. Its owner looks into it
 * before it looks into memory.
 */
#ifndef TEST_SUPPORT_STORES_H
#define TEST_SUPPORT_STORES_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define STORES_MAX 8

struct store {
    void *at;
    uint64_t value;
    unsigned bytes;
    int order;
};

struct stores {
    unsigned count;
    struct store queue[STORES_MAX]; /* oldest first */
};

/* The compiler wants to see each order as a constant. */
static inline uint64_t load_now(const void *at, unsigned bytes, int order)
{
    const uint32_t *u32 = at;
    const uint64_t *u64 = at;

    assert(bytes == 4 || bytes == 8);
    switch (order) {
    case __ATOMIC_RELAXED:
        return bytes == 4 ? __atomic_load_n(u32, __ATOMIC_RELAXED)
                          : __atomic_load_n(u64, __ATOMIC_RELAXED);
    case __ATOMIC_ACQUIRE:
        return bytes == 4 ? __atomic_load_n(u32, __ATOMIC_ACQUIRE)
                          : __atomic_load_n(u64, __ATOMIC_ACQUIRE);
    default:
        return bytes == 4 ? __atomic_load_n(u32, __ATOMIC_SEQ_CST)
                          : __atomic_load_n(u64, __ATOMIC_SEQ_CST);
    }
}

#define STORE(at, bytes, value, order)                                    \
    ((bytes) == 4                                                         \
         ? __atomic_store_n((uint32_t *)(at), (uint32_t)(value), (order)) \
         : __atomic_store_n((uint64_t *)(at), (value), (order)))

static inline void store_now(void *at, unsigned bytes, uint64_t value,
                             int order)
{
    assert(bytes == 4 || bytes == 8);
    if (order == __ATOMIC_RELAXED)
        STORE(at, bytes, value, __ATOMIC_RELAXED);
    else if (order == __ATOMIC_RELEASE)
        STORE(at, bytes, value, __ATOMIC_RELEASE);
    else
        STORE(at, bytes, value, __ATOMIC_SEQ_CST);
}

#undef STORE

/* There must be room. */
static inline void stores_put(struct stores *stores, void *at, unsigned bytes,
                              uint64_t value, int order)
{
    struct store *store = &stores->queue[stores->count++];

    store->at = at;
    store->value = value;
    store->bytes = bytes;
    store->order = order;
}

/* Takes the oldest away. */
static inline void stores_shift(struct stores *stores)
{
    stores->count--;
    memmove(stores->queue, stores->queue + 1,
            stores->count * sizeof stores->queue[0]);
}

/* The newest store that touches any of these bytes, or NULL. */
static inline const struct store *stores_find(const struct stores *stores,
                                              const void *at, unsigned bytes)
{
    uintptr_t from = (uintptr_t)at;

    for (unsigned i = stores->count; i-- > 0;) {
        const struct store *store = &stores->queue[i];
        uintptr_t start = (uintptr_t)store->at;
        if (start < from + bytes && from < start + store->bytes)
            return store;
    }
    return NULL;
}

#endif
