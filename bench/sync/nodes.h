/* nodes.h - nodes for peers whose items must bring their own.
 *
 * Such a peer links the user's objects and allocates nothing. What it is given
 * here is the best case of that: a thread that puts and takes uses the nodes
 * that it took last for its next items; a thread that only puts has an array
 * with a node for each item, filled in order.
 *
 * The structure that a side opens begins with `struct nodes_arena`.
 */
#ifndef BENCH_SYNC_NODES_H
#define BENCH_SYNC_NODES_H

#include <stdlib.h>

#include "fifo.h"

struct nodes_node {
    void *link; /* the peer's */
    void *item;
};

struct nodes { /* of one thread */
    struct nodes_node *spare[FIFO_BURST];
    size_t spare_count;
    struct nodes_node *next; /* in its array */
};

struct nodes_arena {
    struct nodes_node *array[CONTEST_THREADS_MAX];
};

CONTEST_INLINE struct nodes_node *nodes_get(struct contest_thread *thread,
                                            void *item)
{
    struct nodes *nodes = (struct nodes *)thread->own;
    struct nodes_node *node = nodes->spare_count > 0
                                  ? nodes->spare[--nodes->spare_count]
                                  : nodes->next++;

    node->item = item;
    return node;
}

CONTEST_INLINE void *nodes_keep(struct contest_thread *thread,
                                struct nodes_node *node)
{
    struct nodes *nodes = (struct nodes *)thread->own;

    if (nodes->spare_count < FIFO_BURST)
        nodes->spare[nodes->spare_count++] = node;
    return node->item;
}

CONTEST_INLINE void nodes_open(struct nodes_arena *arena,
                               const struct contest_work *work)
{
    bool stream = work->shape == FIFO_STREAM;
    unsigned puts = stream ? work->threads / 2 : work->threads;
    size_t count = stream ? work->most / puts + 1 : FIFO_BURST;

    for (unsigned i = 0; i < puts; i++)
        arena->array[i] = (struct nodes_node *)contest_alloc(
            count * sizeof(struct nodes_node));
}

CONTEST_INLINE void nodes_close(struct nodes_arena *arena)
{
    for (unsigned i = 0; i < CONTEST_THREADS_MAX; i++)
        free(arena->array[i]);
}

CONTEST_INLINE void nodes_enter(struct contest_thread *thread)
{
    struct nodes_arena *arena = (struct nodes_arena *)thread->self;
    struct nodes *nodes = (struct nodes *)contest_alloc(sizeof *nodes);

    nodes->next = arena->array[thread->index];
    thread->own = nodes;
}

CONTEST_INLINE void nodes_leave(struct contest_thread *thread)
{
    free(thread->own);
}

#endif
