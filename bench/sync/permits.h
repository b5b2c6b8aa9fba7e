/* permits.h - the loops for what threads wait at.
 *
 *   SEMAPHORE  one permit: take it, add to a plain counter, give it back. The
 *              counter is right only if nobody was inside at the same time.
 *   LATCH      for each round a new latch, opened when all threads have
 *              counted it down; all wait for it
 *   BARRIER    all threads meet, again and again
 *
 * One operation is a taking and giving back, or a round.
 */
#ifndef BENCH_SYNC_PERMITS_H
#define BENCH_SYNC_PERMITS_H

#include "contest.h"

enum permits_shape {
    PERMITS_SEMAPHORE,
    PERMITS_LATCH,
    PERMITS_BARRIER,
};

/* What a side's open() returns begins with this. */
struct permits {
    uint64_t counter;  /* plain */
    uint64_t *arrived; /* a word for each round of a run; atomic */
    char apart[CONTEST_LINE];
};

/* Rounds of a run at most: so many latches are made before it. */
#define PERMITS_ROUNDS_MAX 100000

typedef void permits_call(struct permits *permits);
/* Counts down, or comes, and waits. */
typedef void permits_meet(struct permits *permits, uint64_t round);

CONTEST_INLINE void permits_open(struct permits *permits)
{
    permits->arrived =
        (uint64_t *)contest_alloc(PERMITS_ROUNDS_MAX * sizeof(uint64_t));
}

CONTEST_INLINE void permits_inside(struct contest_thread *thread,
                                   permits_call *acquire, permits_call *give)
{
    struct permits *permits = (struct permits *)thread->self;
    uint64_t from;
    uint64_t count;

    while (contest_chunk(thread, &from, &count))
        for (uint64_t i = 0; i < count; i++) {
            acquire(permits);
            permits->counter++;
            give(permits);
        }
    thread->put = thread->done;
}

/* Each writes that it came; after the meeting all must have. */
CONTEST_INLINE void permits_rounds(struct contest_thread *thread,
                                   permits_meet *meet)
{
    struct permits *permits = (struct permits *)thread->self;

    for (uint64_t i = 0; i < thread->total; i++) {
        __atomic_fetch_add(&permits->arrived[i], 1, __ATOMIC_RELAXED);
        meet(permits, i);
        if (__atomic_load_n(&permits->arrived[i], __ATOMIC_RELAXED) !=
            thread->work->threads)
            contest_fail("a thread went on before all had come");
    }
}

CONTEST_INLINE void permits_run(struct contest_thread *thread,
                                permits_call *acquire, permits_call *give,
                                permits_meet *latch, permits_meet *barrier)
{
    if (thread->work->shape == PERMITS_SEMAPHORE)
        permits_inside(thread, acquire, give);
    else if (thread->work->shape == PERMITS_LATCH)
        permits_rounds(thread, latch);
    else
        permits_rounds(thread, barrier);
}

/* For check(). */
CONTEST_INLINE void permits_check(struct contest_thread *thread)
{
    struct permits *permits = (struct permits *)thread->self;

    if (thread->work->shape == PERMITS_SEMAPHORE)
        thread->taken = permits->counter;
    permits->counter = 0;
}

#endif
