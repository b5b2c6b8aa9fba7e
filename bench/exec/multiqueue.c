/* multiqueue.c - hf_multiqueue beside what one would write by hand: three
 * rings, a mutex, condition variables and weights. By hand there are no
 * deadlines, tickets, waiting times or alarms. No library that is packaged has
 * such a part.
 */
#include "multiqueue.h"

#include "holdfast/multiqueue.h"

extern const struct contest_side multiqueue_mutex;

static const struct contest_work works[] = {
    {.name = "pair-1", .threads = 1, .shape = MULTIQUEUE_PAIR, .roam = true},
    {.name = "pair-2", .threads = 2, .shape = MULTIQUEUE_PAIR, .roam = true},
    {.name = "flow-2",
     .threads = 2,
     .shape = MULTIQUEUE_FLOW,
     .exact = 500000,
     .roam = true},
    {.name = NULL},
};

CONTEST_INLINE void ours_put(void *self, unsigned class_index, void *item)
{
    if (hf_multiqueue_put(self, class_index, item, HF_FOREVER, NULL))
        contest_fail("hf_multiqueue_put");
}

CONTEST_INLINE void *ours_take(void *self)
{
    void *item;

    if (hf_multiqueue_take(self, &item, HF_FOREVER))
        contest_fail("hf_multiqueue_take");
    return item;
}

static void *ours_open(const struct contest_work *work)
{
    struct hf_multiqueue_opts opts = {.name = work->name,
                                      .capacity = MULTIQUEUE_ROOM};
    struct hf_multiqueue *queue;

    if (hf_multiqueue_open(&queue, &opts))
        contest_fail("hf_multiqueue_open");
    return queue;
}

static void ours_close(void *self)
{
    hf_multiqueue_close(self);
}

static void ours_run(struct contest_thread *thread)
{
    multiqueue_run(thread, ours_put, ours_take);
}

static const struct contest_side ours = {
    .name = "ours", .open = ours_open, .close = ours_close, .run = ours_run};

static const struct contest_side *const sides[] = {&ours, &multiqueue_mutex,
                                                   NULL};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
