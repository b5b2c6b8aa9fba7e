/* adder.c - hf_adder beside one atomic word.
 *
 * At the end of each run the sum must be all that was added in it.
 */
#include <stdlib.h>

#include "contest.h"
#include "holdfast/adder.h"

enum shape {
    ADD,
    SUM,
};

static const struct contest_work works[] = {
    {.name = "add-1", .threads = 1, .shape = ADD},
    {.name = "add-2", .threads = 2, .shape = ADD},
    {.name = "add-8", .threads = 8, .shape = ADD},
    {.name = "sum", .threads = 1, .shape = SUM},
    {.name = NULL},
};

typedef void add_fn(void *self);
typedef int64_t sum_fn(const void *self);

CONTEST_INLINE void run(struct contest_thread *thread, add_fn *add, sum_fn *sum)
{
    uint64_t from;
    uint64_t count;

    if (thread->work->shape == ADD)
        while (contest_chunk(thread, &from, &count))
            for (uint64_t i = 0; i < count; i++)
                add(thread->self);
    else
        while (contest_chunk(thread, &from, &count))
            for (uint64_t i = 0; i < count; i++)
                if (sum(thread->self) < 0)
                    contest_fail("the sum is below 0");
    /* The other side of the balance comes from check(). */
    thread->taken = thread->work->shape == ADD ? thread->done : 0;
}

/* The sum was 0 before the run. */
CONTEST_INLINE void check(struct contest_thread *thread, sum_fn *sum)
{
    thread->put = (uint64_t)sum(thread->self);
}

struct ours {
    struct hf_adder adder __attribute__((aligned(CONTEST_LINE)));
};

static void *ours_open(const struct contest_work *work)
{
    struct ours *ours = contest_alloc(sizeof *ours);

    (void)work;
    if (hf_adder_init(&ours->adder))
        contest_fail("hf_adder_init");
    return ours;
}

static void ours_close(void *self)
{
    hf_adder_destroy(&((struct ours *)self)->adder);
    free(self);
}

CONTEST_INLINE void ours_add(void *self)
{
    hf_adder_add(&((struct ours *)self)->adder, 1);
}

CONTEST_INLINE int64_t ours_sum(const void *self)
{
    return hf_adder_sum(&((const struct ours *)self)->adder);
}

static void ours_run(struct contest_thread *thread)
{
    run(thread, ours_add, ours_sum);
}

static void ours_check(struct contest_thread *thread)
{
    check(thread, ours_sum);
    (void)hf_adder_sum_and_reset(&((struct ours *)thread->self)->adder);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
    .check = ours_check,
};

static void *atomic_open(const struct contest_work *work)
{
    (void)work;
    return contest_alloc(CONTEST_LINE);
}

CONTEST_INLINE void atomic_add(void *self)
{
    __atomic_fetch_add((int64_t *)self, 1, __ATOMIC_RELAXED);
}

CONTEST_INLINE int64_t atomic_sum(const void *self)
{
    return __atomic_load_n((const int64_t *)self, __ATOMIC_RELAXED);
}

static void atomic_run(struct contest_thread *thread)
{
    run(thread, atomic_add, atomic_sum);
}

static void atomic_check(struct contest_thread *thread)
{
    check(thread, atomic_sum);
    __atomic_store_n((int64_t *)thread->self, 0, __ATOMIC_RELAXED);
}

static const struct contest_side atomic = {
    .name = "atomic",
    .open = atomic_open,
    .close = free,
    .run = atomic_run,
    .check = atomic_check,
};

static const struct contest_side *const sides[] = {
    &ours,
    &atomic,
    NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
