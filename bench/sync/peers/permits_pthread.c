/* permits_pthread.c - what the system brings: sem_t, pthread_barrier_t, and a
 * latch made of a mutex and a condition variable. */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "bench/sync/permits.h"

struct latch {
    pthread_mutex_t mutex;
    pthread_cond_t opened;
    unsigned count;
};

struct side {
    struct permits permits; /* first */
    sem_t semaphore;
    char apart[CONTEST_LINE];
    pthread_barrier_t barrier;
    struct latch *latches;
};

static void *side_open(const struct contest_work *work)
{
    struct side *side = contest_alloc(sizeof *side);

    permits_open(&side->permits);
    if (sem_init(&side->semaphore, 0, 1) != 0 ||
        pthread_barrier_init(&side->barrier, NULL, work->threads) != 0)
        contest_fail("init");
    side->latches = contest_alloc(PERMITS_ROUNDS_MAX * sizeof *side->latches);
    for (size_t i = 0; i < PERMITS_ROUNDS_MAX; i++) {
        pthread_mutex_init(&side->latches[i].mutex, NULL);
        pthread_cond_init(&side->latches[i].opened, NULL);
        side->latches[i].count = work->threads;
    }
    return side;
}

static void side_close(void *self)
{
    struct side *side = self;

    for (size_t i = 0; i < PERMITS_ROUNDS_MAX; i++) {
        pthread_cond_destroy(&side->latches[i].opened);
        pthread_mutex_destroy(&side->latches[i].mutex);
    }
    pthread_barrier_destroy(&side->barrier);
    sem_destroy(&side->semaphore);
    free(side->permits.arrived);
    free(side->latches);
    free(side);
}

CONTEST_INLINE void acquire(struct permits *permits)
{
    while (sem_wait(&((struct side *)permits)->semaphore) != 0)
        if (errno != EINTR)
            contest_fail("sem_wait");
}

CONTEST_INLINE void give(struct permits *permits)
{
    if (sem_post(&((struct side *)permits)->semaphore) != 0)
        contest_fail("sem_post");
}

CONTEST_INLINE void latch(struct permits *permits, uint64_t round)
{
    struct latch *one = &((struct side *)permits)->latches[round];

    pthread_mutex_lock(&one->mutex);
    if (--one->count == 0)
        pthread_cond_broadcast(&one->opened);
    while (one->count > 0)
        pthread_cond_wait(&one->opened, &one->mutex);
    pthread_mutex_unlock(&one->mutex);
}

CONTEST_INLINE void barrier(struct permits *permits, uint64_t round)
{
    (void)round;
    pthread_barrier_wait(&((struct side *)permits)->barrier);
}

static void side_run(struct contest_thread *thread)
{
    permits_run(thread, acquire, give, latch, barrier);
}

const struct contest_side permits_pthread = {
    .name = "pthread",
    .open = side_open,
    .close = side_close,
    .run = side_run,
    .check = permits_check,
};
