/* lender_condvar.c - what people write themselves: a stack of free things, a
 * mutex and a condition variable. Whoever comes by may pass who waits, a thing
 * may be given back twice, and no time is noted. */
#include <pthread.h>
#include <stdlib.h>

#include "bench/keep/lender.h"

struct own {
    struct lender_side side; /* first */
    pthread_mutex_t mutex;
    pthread_cond_t freed;
    unsigned count;
    struct lender_thing *idle[LENDER_THINGS_MAX];
};

static void *own_open(const struct contest_work *work)
{
    if (work->mode == LENDER_TIMED)
        return NULL;
    struct own *own = contest_alloc(sizeof *own);

    pthread_mutex_init(&own->mutex, NULL);
    pthread_cond_init(&own->freed, NULL);
    for (uint64_t i = 0; i < work->size; i++)
        own->idle[own->count++] = lender_make(&own->side);
    return own;
}

static void own_close(void *self)
{
    struct own *own = self;

    pthread_cond_destroy(&own->freed);
    pthread_mutex_destroy(&own->mutex);
    free(own);
}

CONTEST_INLINE struct lender_thing *borrow(struct lender_side *side, void *loan)
{
    struct own *own = (struct own *)side;

    (void)loan;
    pthread_mutex_lock(&own->mutex);
    while (own->count == 0)
        pthread_cond_wait(&own->freed, &own->mutex);
    struct lender_thing *thing = own->idle[--own->count];
    pthread_mutex_unlock(&own->mutex);
    return thing;
}

CONTEST_INLINE void back(struct lender_side *side, void *loan,
                         struct lender_thing *thing)
{
    struct own *own = (struct own *)side;

    (void)loan;
    pthread_mutex_lock(&own->mutex);
    own->idle[own->count++] = thing;
    pthread_cond_signal(&own->freed);
    pthread_mutex_unlock(&own->mutex);
}

static void own_run(struct contest_thread *thread)
{
    lender_run(thread, borrow, back);
}

const struct contest_side lender_condvar = {
    .name = "condvar",
    .open = own_open,
    .close = own_close,
    .run = own_run,
    .check = lender_check,
};
