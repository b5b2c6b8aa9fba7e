/* ring_ck.c - Concurrency Kit's ck_ring, MPMC and SPSC. It has no bulk calls.
 */
#include <ck_ring.h>
#include <stdlib.h>

#include "bench/sync/fifo.h"

struct ring {
    ck_ring_t ring;
    ck_ring_buffer_t *buffer;
};

static void *ring_open(const struct contest_work *work)
{
    if (fifo_is_bulk(work))
        return NULL;
    struct ring *ring = contest_alloc(sizeof *ring);
    ring->buffer = contest_alloc(work->size * sizeof *ring->buffer);
    ck_ring_init(&ring->ring, (unsigned)work->size);
    return ring;
}

static void ring_close(void *self)
{
    struct ring *ring = self;

    free(ring->buffer);
    free(ring);
}

CONTEST_INLINE bool mpmc_put(struct contest_thread *thread, void *item)
{
    struct ring *ring = thread->self;
    return ck_ring_enqueue_mpmc(&ring->ring, ring->buffer, item);
}

CONTEST_INLINE bool mpmc_take(struct contest_thread *thread, void **item)
{
    struct ring *ring = thread->self;
    return ck_ring_dequeue_mpmc(&ring->ring, ring->buffer, item);
}

CONTEST_INLINE bool spsc_put(struct contest_thread *thread, void *item)
{
    struct ring *ring = thread->self;
    return ck_ring_enqueue_spsc(&ring->ring, ring->buffer, item);
}

CONTEST_INLINE bool spsc_take(struct contest_thread *thread, void **item)
{
    struct ring *ring = thread->self;
    return ck_ring_dequeue_spsc(&ring->ring, ring->buffer, item);
}

static void ring_run(struct contest_thread *thread)
{
    if (thread->work->mode == FIFO_SPSC)
        fifo_run(thread, spsc_put, spsc_take);
    else
        fifo_run(thread, mpmc_put, mpmc_take);
}

const struct contest_side ring_ck = {
    .name = "ck",
    .open = ring_open,
    .close = ring_close,
    .run = ring_run,
};
