/* blocking.h - the loops for queues whose calls wait.
 *
 *   STREAM    the first half of the threads puts, the others take
 *   PINGPONG  two queues of one place: an item goes there and another back
 *
 * One operation is one item, or one way there and back.
 */
#ifndef BENCH_SYNC_BLOCKING_H
#define BENCH_SYNC_BLOCKING_H

#include "fifo.h"

enum blocking_shape {
    BLOCKING_STREAM,
    BLOCKING_PINGPONG,
};

/* What our side is; the peers have one kind each. */
enum blocking_mode {
    BLOCKING_ARRAY,
    BLOCKING_LINKED,
};

/* What a side's open() returns begins with this; STREAM uses the first. */
struct blocking_pair {
    void *queue[2];
};

typedef void blocking_put(void *queue, void *item);
typedef void *blocking_take(void *queue);

CONTEST_INLINE uint64_t blocking_take_number(void *queue, blocking_take *take)
{
    return (uint64_t)(uintptr_t)take(queue);
}

CONTEST_INLINE void blocking_stream(struct contest_thread *thread, void *queue,
                                    blocking_put *put, blocking_take *take)
{
    uint64_t share = fifo_share(thread);
    uint64_t sum = 0;

    if (thread->index < thread->work->threads / 2) {
        for (uint64_t i = 1; i <= share; i++) {
            put(queue, (void *)(uintptr_t)i);
            sum += i;
        }
        thread->put = sum;
    } else {
        for (uint64_t i = 1; i <= share; i++)
            sum += blocking_take_number(queue, take);
        thread->taken = sum;
    }
}

CONTEST_INLINE void blocking_run(struct contest_thread *thread,
                                 blocking_put *put, blocking_take *take)
{
    struct blocking_pair *pair = (struct blocking_pair *)thread->self;

    if (thread->work->shape == BLOCKING_STREAM) {
        blocking_stream(thread, pair->queue[0], put, take);
        return;
    }
    for (uint64_t i = 1; i <= thread->total; i++) {
        if (thread->index == 0)
            put(pair->queue[0], (void *)(uintptr_t)i);
        thread->taken +=
            blocking_take_number(pair->queue[1 - thread->index], take);
        if (thread->index == 1)
            put(pair->queue[1], (void *)(uintptr_t)i);
        thread->put += i;
    }
}

#endif
