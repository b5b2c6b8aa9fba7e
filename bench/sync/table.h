/* table.h - the loops for maps from keys of 16 bytes to pointers.
 *
 * A key is made from its number when it is needed and lies in no memory of
 * the loop's; its value is its number + 1.
 *
 *   READS   of 20 operations 19 look a random key up, 1 writes
 *   WRITES  every second operation writes
 *   GROWTH  keys are put into an empty map
 *
 * The map of READS and WRITES is full at the start. A write removes a random
 * key; the thread's next write puts it back. So every write changes the map,
 * nearly every look-up hits, and at the end all keys must be there again.
 */
#ifndef BENCH_SYNC_TABLE_H
#define BENCH_SYNC_TABLE_H

#include <string.h>

#include "contest.h"

#define TABLE_KEY_BYTES 16

enum table_shape {
    TABLE_READS,
    TABLE_WRITES,
    TABLE_GROWTH,
};

struct table_key {
    char bytes[TABLE_KEY_BYTES];
};

/* Works, with 1, 2 and 8 threads. */
#define TABLE_WORK(text, count, kind, keys)                          \
    {                                                                \
        .name = text, .threads = count, .shape = kind, .size = keys, \
        .exact = kind == TABLE_GROWTH ? keys : 0,                    \
        .fresh = kind == TABLE_GROWTH,                               \
    }
#define TABLE_WORKS(text, kind, keys)         \
    TABLE_WORK(text "-1", 1, kind, keys),     \
        TABLE_WORK(text "-2", 2, kind, keys), \
        TABLE_WORK(text "-8", 8, kind, keys)

typedef bool table_get(struct contest_thread *thread,
                       const struct table_key *key, void **value);
typedef void table_put(struct contest_thread *thread,
                       const struct table_key *key, void *value);
typedef void table_remove(struct contest_thread *thread,
                          const struct table_key *key);

/* Different numbers give different keys, in no order. */
CONTEST_INLINE void table_key_make(struct table_key *key, uint64_t number)
{
    uint64_t mixed = (number + 1) * 0x9e3779b97f4a7c15u;

    mixed ^= mixed >> 29;
    memcpy(key->bytes, &mixed, 8);
    memcpy(key->bytes + 8, &number, 8);
}

CONTEST_INLINE void table_put_number(struct contest_thread *thread,
                                     table_put *put, uint64_t number)
{
    struct table_key key;

    table_key_make(&key, number);
    put(thread, &key, (void *)(uintptr_t)(number + 1));
}

CONTEST_INLINE bool table_has(struct contest_thread *thread, table_get *get,
                              uint64_t number)
{
    struct table_key key;
    void *value = NULL;

    table_key_make(&key, number);
    if (!get(thread, &key, &value))
        return false;
    if ((uintptr_t)value != number + 1)
        contest_fail("a key has another key's value");
    return true;
}

CONTEST_INLINE void table_grow(struct contest_thread *thread, table_put *put)
{
    uint64_t from;
    uint64_t count;

    while (contest_chunk(thread, &from, &count))
        for (uint64_t i = 0; i < count; i++)
            table_put_number(thread, put, from + i);
}

CONTEST_INLINE void table_mix(struct contest_thread *thread, table_get *get,
                              table_put *put, table_remove *remove)
{
    const uint64_t keys = thread->work->size;
    const unsigned writes = thread->work->shape == TABLE_READS ? 20 : 2;
    uint64_t removed = UINT64_MAX;
    uint64_t from;
    uint64_t count;
    uint64_t found = 0;
    uint64_t asked = 0;

    while (contest_chunk(thread, &from, &count))
        for (uint64_t i = 0; i < count; i++) {
            uint64_t number = (contest_random(thread) >> 11) % keys;
            if ((from + i) % writes != 0) {
                asked++;
                found += table_has(thread, get, number);
            } else if (removed != UINT64_MAX) {
                table_put_number(thread, put, removed);
                removed = UINT64_MAX;
            } else {
                struct table_key key;
                table_key_make(&key, number);
                remove(thread, &key);
                removed = number;
            }
        }
    if (removed != UINT64_MAX)
        table_put_number(thread, put, removed);
    if (asked - found > asked / 20 + CONTEST_THREADS_MAX)
        contest_fail("keys that must be there were not found");
}

CONTEST_INLINE void table_run(struct contest_thread *thread, table_get *get,
                              table_put *put, table_remove *remove)
{
    if (thread->work->shape == TABLE_GROWTH)
        table_grow(thread, put);
    else
        table_mix(thread, get, put, remove);
}

/* For enter(): the first thread fills the map, the first time. */
CONTEST_INLINE void table_fill(struct contest_thread *thread, table_get *get,
                               table_put *put)
{
    const uint64_t keys = thread->work->size;

    if (thread->index != 0 || thread->work->shape == TABLE_GROWTH ||
        table_has(thread, get, 0))
        return;
    for (uint64_t i = 0; i < keys; i++)
        table_put_number(thread, put, i);
}

/* For check(): at the end all keys are there; at most 20,000 are asked for. */
CONTEST_INLINE void table_check(struct contest_thread *thread, table_get *get)
{
    const uint64_t keys = thread->work->size;
    const uint64_t stride = keys / 20000 + 1;

    for (uint64_t i = 0; i < keys; i += stride)
        if (!table_has(thread, get, i))
            contest_fail("a key is missing at the end");
}

#endif
