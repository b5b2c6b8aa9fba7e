/* locks.h - the loop for locks that are found by name.
 *
 * A name out of `size` is picked at random; its lock is acquired, a plain
 * counter of the name goes up (exclusive only), and the lock is released. The
 * counters are right only if nobody was inside at the same time.
 */
#ifndef BENCH_SYNC_LOCKS_H
#define BENCH_SYNC_LOCKS_H

#include <stdio.h>

#include "contest.h"

enum locks_shape {
    LOCKS_EXCLUSIVE,
    LOCKS_SHARED,
};

#define LOCKS_NAMES 1024
#define LOCKS_BYTES 16

/* What a side's open() returns begins with this. */
struct locks {
    char names[LOCKS_NAMES][LOCKS_BYTES];
    uint64_t counters[LOCKS_NAMES]; /* plain */
    char apart[CONTEST_LINE];
};

CONTEST_INLINE void locks_open(struct locks *locks)
{
    for (int i = 0; i < LOCKS_NAMES; i++)
        snprintf(locks->names[i], LOCKS_BYTES, "orders/%d", i);
}

/* Takes the lock of name number `name`; what it returns is given to release. */
typedef uint64_t locks_acquire(struct locks *locks, uint64_t name, int shape);
typedef void locks_release(struct locks *locks, uint64_t name, uint64_t got);

CONTEST_INLINE void locks_run(struct contest_thread *thread,
                              locks_acquire *acquire, locks_release *release)
{
    struct locks *locks = (struct locks *)thread->self;
    int shape = thread->work->shape;
    uint64_t from;
    uint64_t count;

    while (contest_chunk(thread, &from, &count))
        for (uint64_t i = 0; i < count; i++) {
            uint64_t name = contest_random(thread) % thread->work->size;
            uint64_t got = acquire(locks, name, shape);
            if (shape == LOCKS_EXCLUSIVE)
                locks->counters[name]++;
            release(locks, name, got);
        }
    thread->put = shape == LOCKS_EXCLUSIVE ? thread->done : 0;
}

/* For check(). */
CONTEST_INLINE void locks_check(struct contest_thread *thread)
{
    struct locks *locks = (struct locks *)thread->self;

    for (int i = 0; i < LOCKS_NAMES; i++) {
        thread->taken += locks->counters[i];
        locks->counters[i] = 0;
    }
}

#endif
