/* ring.c - hf_ring beside ck_ring, rte_ring, boost::lockfree and moodycamel. */
#include "holdfast/ring.h"
#include "fifo.h"

extern const struct contest_side ring_ck;
extern const struct contest_side ring_rte;
extern const struct contest_side ring_rte_rts;
extern const struct contest_side ring_boost;
extern const struct contest_side ring_moodycamel;

#define CAPACITY 1024

static const struct contest_work works[] = {
    {.name = "pairs-1", .threads = 1, .shape = FIFO_PAIRS, .size = CAPACITY},
    {.name = "stream-1p1c",
     .threads = 2,
     .shape = FIFO_STREAM,
     .size = CAPACITY},
    {.name = "pairs-2", .threads = 2, .shape = FIFO_PAIRS, .size = CAPACITY},
    {.name = "bursts-8", .threads = 8, .shape = FIFO_BURSTS, .size = CAPACITY},
    {.name = "bulk-1", .threads = 1, .shape = FIFO_BULK, .size = CAPACITY},
    {.name = "bulk-1p1c",
     .threads = 2,
     .shape = FIFO_BULK_STREAM,
     .size = CAPACITY},
    {.name = "spsc-pairs-1",
     .threads = 1,
     .shape = FIFO_PAIRS,
     .mode = FIFO_SPSC,
     .size = CAPACITY},
    {.name = "spsc-1p1c",
     .threads = 2,
     .shape = FIFO_STREAM,
     .mode = FIFO_SPSC,
     .size = CAPACITY},
    {.name = "spsc-bulk-1p1c",
     .threads = 2,
     .shape = FIFO_BULK_STREAM,
     .mode = FIFO_SPSC,
     .size = CAPACITY},
    {.name = NULL},
};

CONTEST_INLINE bool ours_put(struct contest_thread *thread, void *item)
{
    return hf_ring_put(thread->self, item) == HF_OK;
}

CONTEST_INLINE bool ours_take(struct contest_thread *thread, void **item)
{
    return hf_ring_take(thread->self, item) == HF_OK;
}

CONTEST_INLINE size_t ours_put_many(struct contest_thread *thread, void **items,
                                    size_t count)
{
    return hf_ring_put_many(thread->self, items, count);
}

CONTEST_INLINE size_t ours_take_many(struct contest_thread *thread,
                                     void **items, size_t count)
{
    return hf_ring_take_many(thread->self, items, count);
}

static void *ours_open(const struct contest_work *work)
{
    struct hf_ring *ring;
    struct hf_ring_opts opts = {
        .name = work->name,
        .capacity = work->size,
        .mode = work->mode == FIFO_SPSC ? HF_RING_SPSC : HF_RING_MPMC,
    };

    if (hf_ring_open(&ring, &opts))
        contest_fail("hf_ring_open");
    return ring;
}

static void ours_close(void *self)
{
    hf_ring_close(self);
}

static void ours_run(struct contest_thread *thread)
{
    if (fifo_is_bulk(thread->work))
        fifo_bulk(thread, ours_put_many, ours_take_many);
    else
        fifo_run(thread, ours_put, ours_take);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
};
static const struct contest_side *const sides[] = {
    &ours,       &ring_ck,         &ring_rte, &ring_rte_rts,
    &ring_boost, &ring_moodycamel, NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
