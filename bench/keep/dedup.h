/* dedup.h - the loop for "is this new?".
 *
 * Of the items that a thread asks about, every second one was asked about
 * shortly before; the others come for the first time. Each is 16 bytes. At the
 * end as many must have been told new as there are.
 */
#ifndef BENCH_KEEP_DEDUP_H
#define BENCH_KEEP_DEDUP_H

#include "../sync/table.h"

/* How far back the repeated items lie, and how long items count. */
#define DEDUP_BACK   1000u
#define DEDUP_WINDOW UINT64_C(1000000000000)

/* True if the item is new. */
typedef bool dedup_add(struct contest_thread *thread,
                       const struct table_key *key, uint64_t now_ns);

CONTEST_INLINE void dedup_run(struct contest_thread *thread, dedup_add *add)
{
    uint64_t from;
    uint64_t count;

    while (contest_chunk(thread, &from, &count)) {
        for (uint64_t i = from; i < from + count; i++) {
            struct table_key key;
            /* Even: for the first time. Odd: again, unless it is early. */
            uint64_t number = i % 2 == 0 ? i
                              : i < DEDUP_BACK
                                  ? i
                                  : (i - DEDUP_BACK) & ~UINT64_C(1);
            table_key_make(&key, number);
            thread->taken += add(thread, &key, i);
            thread->put += i % 2 == 0 || i < DEDUP_BACK;
        }
    }
}

#endif
