/* gather.c - hf_gather beside tbb::task_group and std::async.
 *
 * TBB has no results and no errors of single tasks: here each task writes its
 * own into an array. std::async starts a thread for every task.
 */
#include "gather.h"

#include <stdlib.h>

#include "holdfast/gather.h"

extern const struct contest_side gather_tbb;
extern const struct contest_side gather_async;

static const struct contest_work works[] = {
    {.name = "all-10", .threads = 1, .size = 10, .exact = 10000, .roam = true},
    {.name = "all-1000",
     .threads = 1,
     .size = 1000,
     .exact = 100000,
     .roam = true},
    {.name = NULL},
};

static int give(void *arg, void **result)
{
    *result = arg;
    return 0;
}

static uint64_t ours_all(void *self, uint64_t count)
{
    struct hf_gather_opts opts = {.pool = self};
    struct hf_gather *gather;
    struct hf_gather_item one;
    uint64_t sum = 0;

    if (hf_gather_open(&gather, &opts))
        contest_fail("hf_gather_open");
    for (uintptr_t i = 1; i <= count; i++) {
        if (hf_gather_add(gather, give, (void *)i))
            contest_fail("hf_gather_add");
    }
    if (hf_gather_wait(gather, HF_FOREVER))
        contest_fail("hf_gather_wait");
    for (size_t i = 0; i < count; i++) {
        if (hf_gather_item(gather, i, &one))
            contest_fail("hf_gather_item");
        sum += (uintptr_t)one.result;
    }
    hf_gather_close(gather);
    return sum;
}

static void *ours_open(const struct contest_work *work)
{
    struct hf_pool_opts opts = {.name = work->name,
                                .max_threads = GATHER_WORKERS};
    struct hf_pool *pool;

    if (hf_pool_open(&pool, &opts))
        contest_fail("hf_pool_open");
    return pool;
}

static void ours_close(void *self)
{
    hf_pool_close(self);
}

static void ours_run(struct contest_thread *thread)
{
    gather_run(thread, ours_all);
}

static const struct contest_side ours = {
    .name = "ours", .open = ours_open, .close = ours_close, .run = ours_run};

static const struct contest_side *const sides[] = {&ours, &gather_tbb,
                                                   &gather_async, NULL};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
