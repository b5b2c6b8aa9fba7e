/* update.h - the loops that all sides of the contest about updates share. */
#ifndef BENCH_METER_UPDATE_H
#define BENCH_METER_UPDATE_H

#include "../sync/contest.h"

enum update_shape {
    UPDATE_COUNTER,
    UPDATE_HISTOGRAM, /* values of a few to a million */
    UPDATE_WINDOW,
};

typedef void update_fn(void *self, uint64_t value);

/* At the end `total` must be what check() finds. */
CONTEST_INLINE void update_run(struct contest_thread *thread, update_fn *count,
                               update_fn *record)
{
    uint64_t from;
    uint64_t many;

    if (thread->work->shape == UPDATE_COUNTER)
        while (contest_chunk(thread, &from, &many))
            for (uint64_t i = 0; i < many; i++)
                count(thread->self, 1);
    else
        while (contest_chunk(thread, &from, &many))
            for (uint64_t i = 0; i < many; i++) {
                uint64_t bits = contest_random(thread);
                record(thread->self, (bits >> 44) >> (bits & 15));
            }
    /* The other side of the balance comes from check(). */
    thread->taken = thread->done;
}

#endif
