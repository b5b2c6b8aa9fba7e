/* queue_urcu.c - liburcu's wfcqueue.
 *
 * Putting is wait-free; several takers need its lock, which is what the calls
 * without underscores take. Its items bring their own nodes.
 */
#define _LGPL_SOURCE /* its calls inline */
#include <urcu/wfcqueue.h>

#include "bench/sync/nodes.h"

struct queue {
    struct nodes_arena arena; /* first */
    struct cds_wfcq_head head __attribute__((aligned(CONTEST_LINE)));
    struct cds_wfcq_tail tail __attribute__((aligned(CONTEST_LINE)));
};

_Static_assert(sizeof(struct cds_wfcq_node) == sizeof(void *), "one pointer");

static void *queue_open(const struct contest_work *work)
{
    struct queue *queue = contest_alloc(sizeof *queue);

    nodes_open(&queue->arena, work);
    cds_wfcq_init(&queue->head, &queue->tail);
    return queue;
}

static void queue_close(void *self)
{
    struct queue *queue = self;

    nodes_close(&queue->arena);
    cds_wfcq_destroy(&queue->head, &queue->tail);
    free(queue);
}

CONTEST_INLINE bool queue_put(struct contest_thread *thread, void *item)
{
    struct queue *queue = thread->self;
    struct cds_wfcq_node *link =
        (struct cds_wfcq_node *)nodes_get(thread, item);

    cds_wfcq_node_init(link);
    cds_wfcq_enqueue(&queue->head, &queue->tail, link);
    return true;
}

CONTEST_INLINE bool queue_take(struct contest_thread *thread, void **item)
{
    struct queue *queue = thread->self;
    struct cds_wfcq_node *link =
        cds_wfcq_dequeue_blocking(&queue->head, &queue->tail);

    if (link == NULL)
        return false;
    *item = nodes_keep(thread, (struct nodes_node *)link);
    return true;
}

static void queue_run(struct contest_thread *thread)
{
    fifo_run(thread, queue_put, queue_take);
}

const struct contest_side queue_wfcqueue = {
    .name = "wfcqueue",
    .open = queue_open,
    .close = queue_close,
    .run = queue_run,
    .enter = nodes_enter,
    .leave = nodes_leave,
};
