/* batcher.h - the loop for batchers: threads add items, one handler gets them
 * in batches of BATCHER_MOST, or when the oldest is BATCHER_AGE_NS old. Whoever
 * adds waits when BATCHER_ROOM items wait. At the end of a run all is flushed.
 * One operation is one item, added and handled.
 */
#ifndef BENCH_EXEC_BATCHER_H
#define BENCH_EXEC_BATCHER_H

#include "../sync/contest.h"

#ifdef __cplusplus
extern "C" {
#endif

#define BATCHER_MOST   64
#define BATCHER_ROOM   4096
#define BATCHER_AGE_NS 1000000

/* What a side's open() returns begins with this. */
struct batcher_board {
    uint64_t sum; /* atomic: of the items that were handled */
};

CONTEST_INLINE void batcher_handle(struct batcher_board *board,
                                   void *const *items, size_t count)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += (uintptr_t)items[i];
    __atomic_add_fetch(&board->sum, sum, __ATOMIC_RELAXED);
}

typedef void batcher_add(void *self, void *item);
/* Returns when all that was added before is handled. */
typedef void batcher_flush(void *self);

CONTEST_INLINE void batcher_run(struct contest_thread *thread, batcher_add *add,
                                batcher_flush *flush)
{
    uint64_t from;
    uint64_t count;

    while (contest_chunk(thread, &from, &count)) {
        for (uint64_t i = from; i < from + count; i++) {
            thread->put += i + 1;
            add(thread->self, (void *)(uintptr_t)(i + 1));
        }
    }
    flush(thread->self);
}

/* In the first thread, when all have flushed. */
CONTEST_INLINE void batcher_check(struct contest_thread *thread)
{
    struct batcher_board *board = (struct batcher_board *)thread->self;

    thread->taken += __atomic_exchange_n(&board->sum, 0, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif

#endif
