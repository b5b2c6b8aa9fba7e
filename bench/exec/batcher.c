/* batcher.c - hf_batcher beside what one would write by hand: an array, a
 * mutex and condition variables, with the same sizes and ages, but without
 * retries, dead letters, figures and an end for those who wait. No library that
 * is packaged has such a part.
 */
#include "batcher.h"

#include <stdlib.h>

#include "holdfast/batcher.h"

extern const struct contest_side batcher_mutex;

static const struct contest_work works[] = {
    {.name = "add-1", .threads = 1, .roam = true},
    {.name = "add-2", .threads = 2, .roam = true},
    {.name = NULL},
};

struct ours {
    struct batcher_board board; /* first */
    struct hf_batcher *batcher;
};

static int ours_handle(void *context, void *const *items, size_t count)
{
    batcher_handle(context, items, count);
    return 0;
}

CONTEST_INLINE void ours_add(void *self, void *item)
{
    struct ours *ours = self;

    if (hf_batcher_add(ours->batcher, item, HF_FOREVER))
        contest_fail("hf_batcher_add");
}

CONTEST_INLINE void ours_flush(void *self)
{
    struct ours *ours = self;

    if (hf_batcher_flush(ours->batcher, HF_FOREVER))
        contest_fail("hf_batcher_flush");
}

static void *ours_open(const struct contest_work *work)
{
    struct ours *ours = contest_alloc(sizeof *ours);
    struct hf_batcher_opts opts = {.name = work->name,
                                   .handle = ours_handle,
                                   .context = ours,
                                   .batch_max = BATCHER_MOST,
                                   .age_ns = BATCHER_AGE_NS,
                                   .queue_max = BATCHER_ROOM};

    if (hf_batcher_open(&ours->batcher, &opts))
        contest_fail("hf_batcher_open");
    return ours;
}

static void ours_close(void *self)
{
    struct ours *ours = self;

    hf_batcher_close(ours->batcher);
    free(ours);
}

static void ours_run(struct contest_thread *thread)
{
    batcher_run(thread, ours_add, ours_flush);
}

static const struct contest_side ours = {.name = "ours",
                                         .open = ours_open,
                                         .close = ours_close,
                                         .run = ours_run,
                                         .check = batcher_check};

static const struct contest_side *const sides[] = {&ours, &batcher_mutex, NULL};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
