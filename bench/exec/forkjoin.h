/* forkjoin.h - jobs that are cut into pieces, and what is the same in them.
 *
 *   FIB   fib(n) is fib(n - 1) + fib(n - 2), forked down to a cut-off: with it
 *         the pieces have some work, without it there is nothing but forks
 *   SORT  quicksort of random numbers; one half is forked, the other done,
 *         down to a cut-off below which one thread sorts
 *
 * A side gives the recursive function that forks and joins; all else is here.
 * Threads are the submitter and one more. One operation is a whole job.
 */
#ifndef BENCH_EXEC_FORKJOIN_H
#define BENCH_EXEC_FORKJOIN_H

#include <stdlib.h>
#include <string.h>

#include "../sync/contest.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FORKJOIN_THREADS     2u
#define FORKJOIN_SORT_CUTOFF 8192

enum forkjoin_shape {
    FORKJOIN_FIB,  /* size is n, mode the cut-off */
    FORKJOIN_SORT, /* size is how many numbers */
};

CONTEST_INLINE uint64_t fib_serial(uint64_t n)
{
    uint64_t a = 0;
    uint64_t b = 1;

    for (; n > 0; n--) {
        uint64_t next = a + b;
        a = b;
        b = next;
    }
    return a;
}

/* By calls, as the forks do; not inline, so that it is the same code. */
uint64_t forkjoin_fib_calls(uint64_t n);

/* Orders `count` numbers in one thread; Hoare's way, then insertion. */
void forkjoin_sort_serial(uint32_t *numbers, size_t count);

/* Moves the lower ones to the front; how many there are. */
size_t forkjoin_partition(uint32_t *numbers, size_t count);

/* What to sort: a copy of the same random numbers for each run. */
void forkjoin_enter(struct contest_thread *thread);
void forkjoin_leave(struct contest_thread *thread);
void forkjoin_check(struct contest_thread *thread);

typedef uint64_t forkjoin_fib_fn(struct contest_thread *thread, uint64_t n,
                                 uint64_t cutoff);
typedef void forkjoin_sort_fn(struct contest_thread *thread, uint32_t *numbers,
                              size_t count);

CONTEST_INLINE void forkjoin_run(struct contest_thread *thread,
                                 forkjoin_fib_fn *fib, forkjoin_sort_fn *sort)
{
    uint64_t size = thread->work->size;

    if (thread->work->shape == FORKJOIN_SORT) {
        sort(thread, (uint32_t *)thread->own, size);
        return;
    }
    for (uint64_t i = 0; i < thread->total; i++) {
        thread->put += fib_serial(size);
        thread->taken += fib(thread, size, (uint64_t)thread->work->mode);
    }
}

#ifdef __cplusplus
}
#endif

#endif
