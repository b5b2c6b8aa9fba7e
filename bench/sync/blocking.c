/* blocking.c - hf_blocking beside GLib's GAsyncQueue and APR's queue.
 *
 * GAsyncQueue has no bound, so its producers never wait. It is compared with
 * our array of 1024 places, which makes them wait, and with our linked queue,
 * which has no bound either.
 */
#include "blocking.h"

#include <stdlib.h>

#include "holdfast/blocking.h"

extern const struct contest_side blocking_glib;
extern const struct contest_side blocking_apr;

#define CAPACITY 1024
/* How far the producers of a queue without bound could get ahead. */
#define STREAM_MOST 4000000

#define STREAM(text, kind, count)                                 \
    {                                                             \
        .name = text, .threads = count, .shape = BLOCKING_STREAM, \
        .mode = kind, .size = CAPACITY, .most = STREAM_MOST,      \
    }

static const struct contest_work works[] = {
    STREAM("array-1p1c", BLOCKING_ARRAY, 2),
    STREAM("array-2p2c", BLOCKING_ARRAY, 4),
    STREAM("array-4p4c", BLOCKING_ARRAY, 8),
    STREAM("linked-1p1c", BLOCKING_LINKED, 2),
    STREAM("linked-2p2c", BLOCKING_LINKED, 4),
    STREAM("linked-4p4c", BLOCKING_LINKED, 8),
    {.name = "pingpong",
     .threads = 2,
     .shape = BLOCKING_PINGPONG,
     .mode = BLOCKING_ARRAY,
     .size = 1},
    {.name = NULL},
};

static void *ours_open(const struct contest_work *work)
{
    struct blocking_pair *pair = contest_alloc(sizeof *pair);
    bool array = work->mode == BLOCKING_ARRAY;
    struct hf_blocking_opts opts = {
        .name = work->name,
        .kind = array ? HF_BLOCKING_ARRAY : HF_BLOCKING_LINKED,
        .capacity = array ? work->size : 0,
    };

    for (int i = 0; i < 2; i++) {
        struct hf_blocking *queue;
        if (hf_blocking_open(&queue, &opts))
            contest_fail("hf_blocking_open");
        pair->queue[i] = queue;
    }
    return pair;
}

static void ours_close(void *self)
{
    struct blocking_pair *pair = self;

    hf_blocking_close(pair->queue[0]);
    hf_blocking_close(pair->queue[1]);
    free(pair);
}

CONTEST_INLINE void ours_put(void *queue, void *item)
{
    if (hf_blocking_put(queue, item, HF_FOREVER))
        contest_fail("hf_blocking_put");
}

CONTEST_INLINE void *ours_take(void *queue)
{
    void *item;

    if (hf_blocking_take(queue, &item, HF_FOREVER))
        contest_fail("hf_blocking_take");
    return item;
}

static void ours_run(struct contest_thread *thread)
{
    blocking_run(thread, ours_put, ours_take);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
};

static const struct contest_side *const sides[] = {
    &ours,
    &blocking_glib,
    &blocking_apr,
    NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
