/* forkjoin_openmp.c - OpenMP tasks. */
#include "bench/exec/forkjoin.h"

static uint64_t fib_piece(uint64_t n, uint64_t cutoff)
{
    uint64_t a;
    uint64_t b;

    if (n <= cutoff)
        return forkjoin_fib_calls(n);
#pragma omp task shared(a)
    a = fib_piece(n - 1, cutoff);
    b = fib_piece(n - 2, cutoff);
#pragma omp taskwait
    return a + b;
}

static void sort_piece(uint32_t *numbers, size_t count)
{
    if (count <= FORKJOIN_SORT_CUTOFF) {
        forkjoin_sort_serial(numbers, count);
        return;
    }
    size_t low = forkjoin_partition(numbers, count);
#pragma omp task
    sort_piece(numbers, low);
    sort_piece(numbers + low, count - low);
#pragma omp taskwait
}

static uint64_t fib(struct contest_thread *thread, uint64_t n, uint64_t cutoff)
{
    uint64_t result = 0;

    (void)thread;
#pragma omp parallel num_threads(FORKJOIN_THREADS)
#pragma omp master
    result = fib_piece(n, cutoff);
    return result;
}

static void sort(struct contest_thread *thread, uint32_t *numbers, size_t count)
{
    (void)thread;
#pragma omp parallel num_threads(FORKJOIN_THREADS)
#pragma omp master
    sort_piece(numbers, count);
}

static void *open_team(const struct contest_work *work)
{
    static int nothing;

    (void)work;
    return &nothing;
}

static void close_team(void *self)
{
    (void)self;
}

/* The team's threads are there when the time begins. */
static void enter(struct contest_thread *thread)
{
    forkjoin_enter(thread);
#pragma omp parallel num_threads(FORKJOIN_THREADS)
    sched_yield();
}

static void run(struct contest_thread *thread)
{
    forkjoin_run(thread, fib, sort);
}

const struct contest_side forkjoin_openmp = {
    .name = "openmp",
    .open = open_team,
    .close = close_team,
    .run = run,
    .enter = enter,
    .leave = forkjoin_leave,
    .check = forkjoin_check,
};
