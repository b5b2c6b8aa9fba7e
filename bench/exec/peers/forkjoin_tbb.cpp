// forkjoin_tbb.cpp - tbb::task_group, and tbb::parallel_sort.
#include <tbb/global_control.h>
#include <tbb/parallel_sort.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "bench/exec/forkjoin.h"

namespace
{

struct team {
    tbb::global_control threads{tbb::global_control::max_allowed_parallelism,
                                FORKJOIN_THREADS};
    tbb::task_arena arena{FORKJOIN_THREADS, 1};
};

tbb::task_arena &arena(contest_thread *thread)
{
    return static_cast<team *>(thread->self)->arena;
}

uint64_t fib_piece(uint64_t n, uint64_t cutoff)
{
    if (n <= cutoff)
        return forkjoin_fib_calls(n);
    uint64_t a;
    tbb::task_group group;
    group.run([&a, n, cutoff] { a = fib_piece(n - 1, cutoff); });
    uint64_t b = fib_piece(n - 2, cutoff);
    group.wait();
    return a + b;
}

void sort_piece(uint32_t *numbers, size_t count)
{
    if (count <= FORKJOIN_SORT_CUTOFF) {
        forkjoin_sort_serial(numbers, count);
        return;
    }
    size_t low = forkjoin_partition(numbers, count);
    tbb::task_group group;
    group.run([numbers, low] { sort_piece(numbers, low); });
    sort_piece(numbers + low, count - low);
    group.wait();
}

uint64_t fib(contest_thread *thread, uint64_t n, uint64_t cutoff)
{
    return arena(thread).execute([n, cutoff] { return fib_piece(n, cutoff); });
}

void sort(contest_thread *thread, uint32_t *numbers, size_t count)
{
    arena(thread).execute([numbers, count] { sort_piece(numbers, count); });
}

void sort_by_tbb(contest_thread *thread, uint32_t *numbers, size_t count)
{
    arena(thread).execute(
        [numbers, count] { tbb::parallel_sort(numbers, numbers + count); });
}

void *open_team(const contest_work *)
{
    return new team();
}

void *open_sort(const contest_work *work)
{
    return work->shape == FORKJOIN_SORT ? new team() : nullptr;
}

void close_team(void *self)
{
    delete static_cast<team *>(self);
}

void run(contest_thread *thread)
{
    forkjoin_run(thread, fib, sort);
}

void run_sort(contest_thread *thread)
{
    forkjoin_run(thread, fib, sort_by_tbb);
}

} // namespace

extern "C" {

extern const contest_side forkjoin_tbb;
extern const contest_side forkjoin_tbb_sort;

const contest_side forkjoin_tbb = {
    "tbb",          open_team,      close_team,     run,
    forkjoin_enter, forkjoin_leave, forkjoin_check,
};

const contest_side forkjoin_tbb_sort = {
    "tbb-sort",     open_sort,      close_team,     run_sort,
    forkjoin_enter, forkjoin_leave, forkjoin_check,
};
}
