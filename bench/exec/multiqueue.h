/* multiqueue.h - the loops for queues of three classes that share consumers,
 * 70 to 20 to 10, with room for MULTIQUEUE_ROOM items each.
 *
 *   PAIR  each thread puts an item and takes one
 *   FLOW  half of the threads put, the others take
 *
 * One operation is one item, put and taken.
 */
#ifndef BENCH_EXEC_MULTIQUEUE_H
#define BENCH_EXEC_MULTIQUEUE_H

#include "../sync/contest.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MULTIQUEUE_CLASSES 3
#define MULTIQUEUE_ROOM    1024

enum multiqueue_shape { MULTIQUEUE_PAIR, MULTIQUEUE_FLOW };

/* Both wait: for room, for an item. */
typedef void multiqueue_put(void *self, unsigned class_index, void *item);
typedef void *multiqueue_take(void *self);

CONTEST_INLINE void multiqueue_run(struct contest_thread *thread,
                                   multiqueue_put *put, multiqueue_take *take)
{
    unsigned pairs = thread->work->threads / 2;
    uint64_t from;
    uint64_t count;

    if (thread->work->shape == MULTIQUEUE_FLOW) {
        uint64_t share = thread->total / pairs;
        for (uint64_t i = 0; i < share; i++) {
            if (thread->index < pairs) {
                thread->put += i + 1;
                put(thread->self, (unsigned)(i % MULTIQUEUE_CLASSES),
                    (void *)(uintptr_t)(i + 1));
            } else {
                thread->taken += (uintptr_t)take(thread->self);
            }
        }
        return;
    }
    while (contest_chunk(thread, &from, &count)) {
        for (uint64_t i = from; i < from + count; i++) {
            thread->put += i + 1;
            put(thread->self, (unsigned)(i % MULTIQUEUE_CLASSES),
                (void *)(uintptr_t)(i + 1));
            thread->taken += (uintptr_t)take(thread->self);
        }
    }
}

#ifdef __cplusplus
}
#endif

#endif
