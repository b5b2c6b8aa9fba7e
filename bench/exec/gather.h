/* gather.h - the loop for the results of many tasks: `size` tasks on
 * GATHER_WORKERS workers, each gives a number; all are waited for and added
 * up. One operation is one task.
 */
#ifndef BENCH_EXEC_GATHER_H
#define BENCH_EXEC_GATHER_H

#include "../sync/contest.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GATHER_WORKERS 2

/* Runs tasks 1 .. count, which give their numbers; returns their sum. */
typedef uint64_t gather_all(void *self, uint64_t count);

CONTEST_INLINE void gather_run(struct contest_thread *thread, gather_all *all)
{
    uint64_t size = thread->work->size;

    for (uint64_t done = 0; done < thread->total; done += size) {
        thread->put += size * (size + 1) / 2;
        thread->taken += all(thread->self, size);
    }
}

#ifdef __cplusplus
}
#endif

#endif
