/* cache.h - the loops for caches: keys of 16 bytes, asked for by a Zipf
 * distribution (exponent 0.99) over twice as many as there is room for.
 *
 *   GET    look it up; if it is not there, put it
 *   MIXED  of five operations four look up, as above, and one puts
 *   LOAD   get or load: the loader is called for what is not there
 *
 * The order of the keys is drawn before the time begins, and is the same for
 * all sides. A value is its key's number + 1.
 */
#ifndef BENCH_KEEP_CACHE_H
#define BENCH_KEEP_CACHE_H

#include <math.h>
#include <stdlib.h>

#include "../sync/table.h"

#define CACHE_ROOM   50000u
#define CACHE_KEYS   100000u
#define CACHE_STREAM (1u << 20)
#define CACHE_S      0.99

enum cache_shape {
    CACHE_GET,
    CACHE_MIXED,
    CACHE_LOAD,
};

typedef bool cache_get(struct contest_thread *thread,
                       const struct table_key *key, void **value);
typedef void cache_put(struct contest_thread *thread,
                       const struct table_key *key, void *value);
/* Gets it or loads it by cache_loaded(). */
typedef void *cache_load(struct contest_thread *thread,
                         const struct table_key *key);

/* What every loader does. */
CONTEST_INLINE void *cache_loaded(const struct table_key *key)
{
    uint64_t number;

    memcpy(&number, key->bytes + 8, sizeof number);
    return (void *)(uintptr_t)(number + 1);
}

/* Made once; the numbers of the most frequent keys are spread over all. */
static __attribute__((unused)) uint32_t *cache_stream_make(void)
{
    uint32_t *stream =
        (uint32_t *)contest_alloc(CACHE_STREAM * sizeof(uint32_t));
    double *sums = (double *)contest_alloc(CACHE_KEYS * sizeof(double));
    uint64_t random = 88172645463325252u;
    double sum = 0;

    for (uint32_t i = 0; i < CACHE_KEYS; i++)
        sums[i] = sum += 1 / pow(i + 1, CACHE_S);
    for (uint32_t i = 0; i < CACHE_STREAM; i++) {
        uint32_t low = 0, high = CACHE_KEYS - 1;
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        double at = (double)(random >> 11) / 9007199254740992.0 * sum;
        while (low < high) {
            uint32_t middle = (low + high) / 2;
            if (sums[middle] < at)
                low = middle + 1;
            else
                high = middle;
        }
        stream[i] = (uint32_t)(low * UINT64_C(61843) % CACHE_KEYS);
    }
    free(sums);
    return stream;
}

CONTEST_INLINE const uint32_t *cache_stream(void)
{
    static uint32_t *stream;

    if (stream == NULL)
        stream = cache_stream_make();
    return stream;
}

CONTEST_INLINE void *cache_get_or_put(struct contest_thread *thread,
                                      const struct table_key *key,
                                      cache_get *get, cache_put *put)
{
    void *value;

    if (!get(thread, key, &value)) {
        value = cache_loaded(key);
        put(thread, key, value);
    }
    return value;
}

CONTEST_INLINE void cache_run(struct contest_thread *thread, cache_get *get,
                              cache_put *put, cache_load *load)
{
    const uint32_t *stream = (const uint32_t *)thread->own;
    int shape = thread->work->shape;
    uint64_t from, count;

    while (contest_chunk(thread, &from, &count)) {
        for (uint64_t i = from; i < from + count; i++) {
            uint64_t number = stream[i & (CACHE_STREAM - 1)];
            struct table_key key;
            void *value;
            table_key_make(&key, number);
            if (shape == CACHE_LOAD) {
                value = load(thread, &key);
            } else if (shape == CACHE_MIXED && i % 5 == 0) {
                value = cache_loaded(&key);
                put(thread, &key, value);
            } else {
                value = cache_get_or_put(thread, &key, get, put);
            }
            thread->put += number + 1;
            thread->taken += (uint64_t)(uintptr_t)value;
        }
    }
}

/* Before the time begins: the order of keys. */
static __attribute__((unused)) void cache_enter(struct contest_thread *thread)
{
    thread->own = (void *)(uintptr_t)cache_stream();
}

#endif
