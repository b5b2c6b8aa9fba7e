/* pool.h - the loop for those who run tasks: submit some, wait for all.
 *
 *   submitter   submit submit submit ... wait for all | submit submit ...
 *   workers       task   task   task ... the last one wakes the submitter
 *
 * A task is one atomic addition to what its submitter waits for: it counts
 * itself, and the sum tells whether each ran once. One operation is a task.
 *
 *   WORKERS  others run the tasks, the submitter waits
 *   TEAM     the submitter may run them too, as in fork and join
 */
#ifndef BENCH_EXEC_POOL_H
#define BENCH_EXEC_POOL_H

#include <semaphore.h>
#include <stdlib.h>

#include "../sync/contest.h"

#define POOL_WORKERS 2u

enum pool_shape {
    POOL_OF_WORKERS,
    POOL_TEAM,
};

struct pool_item {
    struct pool_own *own;
    uint64_t value;
};

/* What a submitter has. A wave is what is submitted before waiting. */
struct pool_own {
    uint64_t sum; /* atomic: tasks that ran, and above them their values */
    uint64_t wave;
    sem_t all_done;
    struct pool_item *items;
    void *extra; /* the side's */
} __attribute__((aligned(CONTEST_LINE)));

typedef void pool_submit_fn(struct contest_thread *thread,
                            struct pool_item *item);
typedef void pool_finish_fn(struct contest_thread *thread);

CONTEST_INLINE struct pool_own *pool_own(struct contest_thread *thread)
{
    return (struct pool_own *)thread->own;
}

/* The task. Release and acquire: who is woken has seen all of them end. */
CONTEST_INLINE void pool_task(struct pool_item *item)
{
    struct pool_own *own = item->own;
    uint64_t sum =
        __atomic_add_fetch(&own->sum, item->value << 32 | 1, __ATOMIC_ACQ_REL);

    if ((uint32_t)sum == own->wave)
        sem_post(&own->all_done);
}

static __attribute__((unused)) void pool_enter(struct contest_thread *thread)
{
    struct pool_own *own = (struct pool_own *)contest_alloc(sizeof *own);
    uint64_t count = thread->work->size;

    own->items = (struct pool_item *)contest_alloc(count * sizeof *own->items);
    for (uint64_t i = 0; i < count; i++) {
        own->items[i].own = own;
        own->items[i].value = i + 1;
    }
    sem_init(&own->all_done, 0, 0);
    thread->own = own;
}

static __attribute__((unused)) void pool_leave(struct contest_thread *thread)
{
    struct pool_own *own = pool_own(thread);

    sem_destroy(&own->all_done);
    free(own->items);
    free(own);
}

/* Waits until the last task of the wave has said so. */
CONTEST_INLINE void pool_wait(struct contest_thread *thread)
{
    while (sem_wait(&pool_own(thread)->all_done) != 0)
        continue;
}

CONTEST_INLINE void pool_run(struct contest_thread *thread,
                             pool_submit_fn *submit, pool_finish_fn *finish)
{
    struct pool_own *own = pool_own(thread);
    uint64_t left = thread->total / thread->work->threads;

    thread->done = left;
    while (left > 0) {
        uint64_t wave = left < thread->work->size ? left : thread->work->size;
        own->sum = 0;
        own->wave = wave;
        for (uint64_t i = 0; i < wave; i++)
            submit(thread, &own->items[i]);
        finish(thread);
        thread->put += wave * (wave + 1) / 2;
        thread->taken += __atomic_load_n(&own->sum, __ATOMIC_ACQUIRE) >> 32;
        left -= wave;
    }
}

#endif
