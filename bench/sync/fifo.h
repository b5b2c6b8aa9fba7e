/* fifo.h - the loops for what items go into and come out of.
 *
 * put and take of a side return false when there is no room or nothing to
 * take; then they are tried again after a moment, the same for all sides. An
 * item is a number in the shape of a pointer, so that only the structure is
 * measured and not the memory behind it.
 *
 *   PAIRS   each thread: put one, take one
 *   BURSTS  each thread: put 1 to 16, take as many
 *   STREAM  the first half of the threads puts, the others take
 *   BULK, BULK_STREAM  PAIRS and STREAM, 16 with one call
 *
 * One operation is one item put and taken.
 */
#ifndef BENCH_SYNC_FIFO_H
#define BENCH_SYNC_FIFO_H

#include "contest.h"

enum fifo_shape {
    FIFO_PAIRS,
    FIFO_BURSTS,
    FIFO_STREAM,
    FIFO_BULK,
    FIFO_BULK_STREAM,
};

/* A ring's mode. */
enum fifo_mode {
    FIFO_MPMC,
    FIFO_SPSC,
};

#define FIFO_BURST 16

typedef bool fifo_put(struct contest_thread *thread, void *item);
typedef bool fifo_take(struct contest_thread *thread, void **item);
typedef size_t fifo_put_many(struct contest_thread *thread, void **items,
                             size_t count);
typedef size_t fifo_take_many(struct contest_thread *thread, void **items,
                              size_t count);

CONTEST_INLINE bool fifo_is_bulk(const struct contest_work *work)
{
    return work->shape == FIFO_BULK || work->shape == FIFO_BULK_STREAM;
}

CONTEST_INLINE void fifo_put_one(struct contest_thread *thread, fifo_put *put,
                                 uint64_t number)
{
    unsigned spins = 0;

    while (!put(thread, (void *)(uintptr_t)number))
        contest_wait(&spins);
}

CONTEST_INLINE uint64_t fifo_take_one(struct contest_thread *thread,
                                      fifo_take *take)
{
    unsigned spins = 0;
    void *item;

    while (!take(thread, &item))
        contest_wait(&spins);
    return (uint64_t)(uintptr_t)item;
}

CONTEST_INLINE void fifo_pairs(struct contest_thread *thread, fifo_put *put,
                               fifo_take *take)
{
    uint64_t from;
    uint64_t count;
    uint64_t sum_put = 0;
    uint64_t sum_taken = 0;

    while (contest_chunk(thread, &from, &count))
        for (uint64_t i = 0; i < count; i++) {
            fifo_put_one(thread, put, from + i + 1);
            sum_put += from + i + 1;
            sum_taken += fifo_take_one(thread, take);
        }
    thread->put = sum_put;
    thread->taken = sum_taken;
}

CONTEST_INLINE void fifo_bursts(struct contest_thread *thread, fifo_put *put,
                                fifo_take *take)
{
    uint64_t from;
    uint64_t count;
    uint64_t sum_put = 0;
    uint64_t sum_taken = 0;

    while (contest_chunk(thread, &from, &count))
        while (count > 0) {
            uint64_t burst = contest_random(thread) % FIFO_BURST + 1;
            if (burst > count)
                burst = count;
            for (uint64_t i = 0; i < burst; i++) {
                fifo_put_one(thread, put, from + i + 1);
                sum_put += from + i + 1;
            }
            for (uint64_t i = 0; i < burst; i++)
                sum_taken += fifo_take_one(thread, take);
            from += burst;
            count -= burst;
        }
    thread->put = sum_put;
    thread->taken = sum_taken;
}

/* How many items this thread puts, or takes, in a stream. */
CONTEST_INLINE uint64_t fifo_share(const struct contest_thread *thread)
{
    uint64_t half = thread->work->threads / 2;
    uint64_t index = thread->index % half;

    return thread->total / half + (index < thread->total % half);
}

CONTEST_INLINE void fifo_stream(struct contest_thread *thread, fifo_put *put,
                                fifo_take *take)
{
    uint64_t share = fifo_share(thread);
    uint64_t sum = 0;

    if (thread->index < thread->work->threads / 2) {
        for (uint64_t i = 1; i <= share; i++) {
            fifo_put_one(thread, put, i);
            sum += i;
        }
        thread->put = sum;
    } else {
        for (uint64_t i = 1; i <= share; i++)
            sum += fifo_take_one(thread, take);
        thread->taken = sum;
    }
}

/* Puts or takes until `count` items have gone; the calls may do fewer. */
CONTEST_INLINE void fifo_all(struct contest_thread *thread, fifo_put_many *many,
                             void **items, size_t count)
{
    unsigned spins = 0;
    size_t done = 0;

    for (;;) {
        done += many(thread, items + done, count - done);
        if (done == count)
            return;
        contest_wait(&spins);
    }
}

CONTEST_INLINE void fifo_bulk(struct contest_thread *thread, fifo_put_many *put,
                              fifo_take_many *take)
{
    bool stream = thread->work->shape == FIFO_BULK_STREAM;
    bool puts = !stream || thread->index == 0;
    bool takes = !stream || thread->index == 1;
    uint64_t sum_put = 0;
    uint64_t sum_taken = 0;
    void *items[FIFO_BURST];

    for (uint64_t i = 0; i < thread->total; i += FIFO_BURST) {
        size_t count = thread->total - i < FIFO_BURST
                           ? (size_t)(thread->total - i)
                           : FIFO_BURST;
        if (puts) {
            for (size_t k = 0; k < count; k++) {
                items[k] = (void *)(uintptr_t)(i + k + 1);
                sum_put += i + k + 1;
            }
            fifo_all(thread, put, items, count);
        }
        if (takes) {
            fifo_all(thread, take, items, count);
            for (size_t k = 0; k < count; k++)
                sum_taken += (uint64_t)(uintptr_t)items[k];
        }
    }
    thread->put = sum_put;
    thread->taken = sum_taken;
}

CONTEST_INLINE void fifo_run(struct contest_thread *thread, fifo_put *put,
                             fifo_take *take)
{
    switch (thread->work->shape) {
    case FIFO_PAIRS:
        fifo_pairs(thread, put, take);
        break;
    case FIFO_BURSTS:
        fifo_bursts(thread, put, take);
        break;
    default:
        fifo_stream(thread, put, take);
    }
}

#endif
