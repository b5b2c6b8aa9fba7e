/* queue.c - hf_queue beside wfcqueue, moodycamel and boost::lockfree. */
#include "holdfast/queue.h"
#include "fifo.h"

extern const struct contest_side queue_wfcqueue;
extern const struct contest_side queue_moodycamel;
extern const struct contest_side queue_boost;

/* How far a stream's producer could get ahead. */
#define STREAM_MOST 4000000

static const struct contest_work works[] = {
    {.name = "pairs-1", .threads = 1, .shape = FIFO_PAIRS},
    {.name = "stream-1p1c",
     .threads = 2,
     .shape = FIFO_STREAM,
     .most = STREAM_MOST},
    {.name = "pairs-2", .threads = 2, .shape = FIFO_PAIRS},
    {.name = "bursts-8", .threads = 8, .shape = FIFO_BURSTS},
    {.name = NULL},
};

CONTEST_INLINE bool ours_put(struct contest_thread *thread, void *item)
{
    return hf_queue_put(thread->self, item) == HF_OK;
}

CONTEST_INLINE bool ours_take(struct contest_thread *thread, void **item)
{
    return hf_queue_take(thread->self, item) == HF_OK;
}

static void *ours_open(const struct contest_work *work)
{
    struct hf_queue *queue;

    if (hf_queue_open(&queue, &(struct hf_queue_opts){.name = work->name}))
        contest_fail("hf_queue_open");
    return queue;
}

static void ours_close(void *self)
{
    hf_queue_close(self);
}

static void ours_run(struct contest_thread *thread)
{
    fifo_run(thread, ours_put, ours_take);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
};
static const struct contest_side *const sides[] = {
    &ours, &queue_wfcqueue, &queue_moodycamel, &queue_boost, NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
