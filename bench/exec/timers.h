/* timers.h - the loop for timers: add many, cancel half of them, fire the rest.
 *
 *   ADD     all are added, at random times within 10 s, a minute from now
 *   CANCEL  every other one is cancelled
 *   FIRE    those that are left are due already, at random times within the
 *           last 10 s: how long until all have been called, in order
 *
 * Each shape is a work of its own; what comes before it is not timed. Times
 * are whole milliseconds, as the coarsest side has them. Memory is there before
 * the time begins, on all sides. One operation is one timer.
 */
#ifndef BENCH_EXEC_TIMERS_H
#define BENCH_EXEC_TIMERS_H

#include <stdlib.h>

#include "../sync/contest.h"

#define TIMERS_RANGE_MS 10000u
#define TIMERS_AHEAD_MS 60000u

enum timers_shape {
    TIMERS_ADD,
    TIMERS_CANCEL,
    TIMERS_FIRE,
};

/* What a side's open() returns begins with this. */
struct timers_board {
    uint64_t count;
    uint64_t fired;
    uint64_t sum; /* of the numbers of those that fired */
};

/* `after_ms` is from now, or in FIRE from 10 s ago. */
typedef void timers_add(void *self, uint64_t number, uint32_t after_ms);
typedef void timers_cancel(void *self, uint64_t number);
typedef void timers_fire(void *self);

/* Every timer's call. */
CONTEST_INLINE void timers_called(struct timers_board *board, uint64_t number)
{
    board->fired++;
    board->sum += number;
}

CONTEST_INLINE void timers_add_all(struct contest_thread *thread,
                                   timers_add *add)
{
    uint32_t ahead_ms =
        thread->work->shape == TIMERS_FIRE ? 0 : TIMERS_AHEAD_MS;

    for (uint64_t i = 0; i < thread->total; i++)
        add(thread->self, i,
            ahead_ms + (uint32_t)(contest_random(thread) % TIMERS_RANGE_MS));
}

CONTEST_INLINE void timers_cancel_half(struct contest_thread *thread,
                                       timers_cancel *cancel)
{
    for (uint64_t i = 0; i < thread->total; i += 2)
        cancel(thread->self, i);
}

/* What comes before the shape. */
CONTEST_INLINE void timers_before(struct contest_thread *thread,
                                  timers_add *add, timers_cancel *cancel)
{
    if (thread->work->shape != TIMERS_ADD)
        timers_add_all(thread, add);
    if (thread->work->shape == TIMERS_FIRE)
        timers_cancel_half(thread, cancel);
}

CONTEST_INLINE void timers_run(struct contest_thread *thread, timers_add *add,
                               timers_cancel *cancel, timers_fire *fire)
{
    thread->done = thread->total;
    if (thread->work->shape == TIMERS_ADD) {
        timers_add_all(thread, add);
        return;
    }
    thread->done /= 2;
    if (thread->work->shape == TIMERS_CANCEL)
        timers_cancel_half(thread, cancel);
    else
        fire(thread->self);
}

static __attribute__((unused)) void timers_check(struct contest_thread *thread)
{
    const struct timers_board *board =
        (const struct timers_board *)thread->self;
    uint64_t half = thread->total / 2;
    bool all = thread->work->shape == TIMERS_FIRE;

    if (board->fired != (all ? half : 0))
        contest_fail("too many have fired, or too few");
    thread->put = all ? half * half : 0; /* 1 + 3 + 5 + ... */
    thread->taken = board->sum;
}

#endif
