/* forkjoin.c - hf_forkjoin beside TBB and OpenMP.
 *
 * fib and the sort are the same on all sides, line by line, but for the calls
 * that fork and join. tbb-sort is tbb::parallel_sort, which sorts its own way.
 */
#include "forkjoin.h"

#include <stdlib.h>
#include <string.h>

#include "holdfast/forkjoin.h"

extern const struct contest_side forkjoin_tbb;
extern const struct contest_side forkjoin_tbb_sort;
extern const struct contest_side forkjoin_openmp;

#define INSERTION_MOST 24

static const struct contest_work works[] = {
    {.name = "fib-32",
     .threads = 1,
     .shape = FORKJOIN_FIB,
     .mode = 10,
     .size = 32,
     .exact = 15,
     .roam = true},
    {.name = "fib-24-forks",
     .threads = 1,
     .shape = FORKJOIN_FIB,
     .mode = 1,
     .size = 24,
     .exact = 30,
     .roam = true},
    {.name = "sort-4m",
     .threads = 1,
     .shape = FORKJOIN_SORT,
     .size = 4u << 20,
     .exact = 1,
     .roam = true},
    {.name = NULL},
};

/* The same for all sides. */

__attribute__((noinline)) uint64_t forkjoin_fib_calls(uint64_t n)
{
    return n < 2 ? n : forkjoin_fib_calls(n - 1) + forkjoin_fib_calls(n - 2);
}

static void insert(uint32_t *numbers, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t number = numbers[i];
        size_t at = i;
        for (; at > 0 && numbers[at - 1] > number; at--)
            numbers[at] = numbers[at - 1];
        numbers[at] = number;
    }
}

static uint32_t middle(uint32_t a, uint32_t b, uint32_t c)
{
    uint32_t low = a < b ? a : b;
    uint32_t high = a < b ? b : a;

    return c < low ? low : c > high ? high : c;
}

/* Both parts have one number at least: the pivot is none of the ends, or ends
 * are equal to it and stop the search. */
size_t forkjoin_partition(uint32_t *numbers, size_t count)
{
    uint32_t pivot = middle(numbers[0], numbers[count / 2], numbers[count - 1]);
    size_t i = 0;
    size_t j = count - 1;

    for (;; i++, j--) {
        while (numbers[i] < pivot)
            i++;
        while (numbers[j] > pivot)
            j--;
        if (i >= j)
            return i == 0 ? 1 : i;
        uint32_t number = numbers[i];
        numbers[i] = numbers[j];
        numbers[j] = number;
    }
}

void forkjoin_sort_serial(uint32_t *numbers, size_t count)
{
    while (count > INSERTION_MOST) {
        size_t low = forkjoin_partition(numbers, count);
        forkjoin_sort_serial(numbers, low);
        numbers += low;
        count -= low;
    }
    insert(numbers, count);
}

void forkjoin_enter(struct contest_thread *thread)
{
    size_t count = thread->work->size;

    if (thread->work->shape != FORKJOIN_SORT)
        return;
    uint32_t *numbers = contest_alloc(count * sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        numbers[i] = (uint32_t)contest_random(thread);
        thread->put += numbers[i];
    }
    thread->own = numbers;
}

void forkjoin_leave(struct contest_thread *thread)
{
    if (thread->work->shape == FORKJOIN_SORT)
        free(thread->own);
}

void forkjoin_check(struct contest_thread *thread)
{
    const uint32_t *numbers = thread->own;

    if (thread->work->shape != FORKJOIN_SORT)
        return;
    thread->taken += numbers[0];
    for (size_t i = 1; i < thread->work->size; i++) {
        thread->taken += numbers[i];
        if (numbers[i - 1] > numbers[i])
            contest_fail("not sorted");
    }
}

/* Ours. */

struct fib {
    uint64_t n;
    uint64_t cutoff;
    uint64_t result;
};

static void ours_fib_piece(struct hf_forkjoin_worker *worker, void *arg)
{
    struct fib *fib = arg;

    if (fib->n <= fib->cutoff) {
        fib->result = forkjoin_fib_calls(fib->n);
        return;
    }
    struct fib a = {fib->n - 1, fib->cutoff, 0};
    struct fib b = {fib->n - 2, fib->cutoff, 0};
    struct hf_fork fork;
    hf_fork(worker, &fork, ours_fib_piece, &a);
    ours_fib_piece(worker, &b);
    hf_join(worker, &fork);
    fib->result = a.result + b.result;
}

struct sort {
    uint32_t *numbers;
    size_t count;
};

static void ours_sort_piece(struct hf_forkjoin_worker *worker, void *arg)
{
    const struct sort *sort = arg;

    if (sort->count <= FORKJOIN_SORT_CUTOFF) {
        forkjoin_sort_serial(sort->numbers, sort->count);
        return;
    }
    size_t low = forkjoin_partition(sort->numbers, sort->count);
    struct sort a = {sort->numbers, low};
    struct sort b = {sort->numbers + low, sort->count - low};
    struct hf_fork fork;
    hf_fork(worker, &fork, ours_sort_piece, &a);
    ours_sort_piece(worker, &b);
    hf_join(worker, &fork);
}

static uint64_t ours_fib(struct contest_thread *thread, uint64_t n,
                         uint64_t cutoff)
{
    struct fib fib = {n, cutoff, 0};

    if (hf_forkjoin_run(thread->self, ours_fib_piece, &fib))
        contest_fail("hf_forkjoin_run");
    return fib.result;
}

static void ours_sort(struct contest_thread *thread, uint32_t *numbers,
                      size_t count)
{
    struct sort sort = {numbers, count};

    if (hf_forkjoin_run(thread->self, ours_sort_piece, &sort))
        contest_fail("hf_forkjoin_run");
}

static void *ours_open(const struct contest_work *work)
{
    struct hf_forkjoin_opts opts = {
        .name = work->name,
        .threads = FORKJOIN_THREADS,
    };
    struct hf_forkjoin *forkjoin;

    if (hf_forkjoin_open(&forkjoin, &opts))
        contest_fail("hf_forkjoin_open");
    return forkjoin;
}

static void ours_close(void *self)
{
    hf_forkjoin_close(self);
}

static void ours_run(struct contest_thread *thread)
{
    forkjoin_run(thread, ours_fib, ours_sort);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
    .enter = forkjoin_enter,
    .leave = forkjoin_leave,
    .check = forkjoin_check,
};

static const struct contest_side *const sides[] = {
    &ours, &forkjoin_tbb, &forkjoin_tbb_sort, &forkjoin_openmp, NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
