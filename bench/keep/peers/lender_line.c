/* lender_line.c - the same in strict order: whoever waits has a condition
 * variable of its own and is handed its thing. What hf_lender promises, with a
 * mutex. */
#include <pthread.h>
#include <stdlib.h>

#include "bench/keep/lender.h"

struct place {
    struct place *next;
    pthread_cond_t served;
    struct lender_thing *thing;
};

struct line {
    struct lender_side side; /* first */
    pthread_mutex_t mutex;
    struct place *first;
    struct place *last;
    unsigned count;
    struct lender_thing *idle[LENDER_THINGS_MAX];
};

static void *line_open(const struct contest_work *work)
{
    if (work->mode == LENDER_TIMED)
        return NULL;
    struct line *line = contest_alloc(sizeof *line);

    pthread_mutex_init(&line->mutex, NULL);
    for (uint64_t i = 0; i < work->size; i++)
        line->idle[line->count++] = lender_make(&line->side);
    return line;
}

static void line_close(void *self)
{
    struct line *line = self;

    pthread_mutex_destroy(&line->mutex);
    free(line);
}

CONTEST_INLINE struct lender_thing *borrow(struct lender_side *side, void *loan)
{
    struct line *line = (struct line *)side;
    struct lender_thing *thing;

    (void)loan;
    pthread_mutex_lock(&line->mutex);
    if (line->count > 0) { /* then nobody waits */
        thing = line->idle[--line->count];
    } else {
        struct place place = {.served = PTHREAD_COND_INITIALIZER};
        *(line->first != NULL ? &line->last->next : &line->first) = &place;
        line->last = &place;
        while (place.thing == NULL)
            pthread_cond_wait(&place.served, &line->mutex);
        thing = place.thing;
    }
    pthread_mutex_unlock(&line->mutex);
    return thing;
}

CONTEST_INLINE void back(struct lender_side *side, void *loan,
                         struct lender_thing *thing)
{
    struct line *line = (struct line *)side;
    struct place *first;

    (void)loan;
    pthread_mutex_lock(&line->mutex);
    first = line->first;
    if (first != NULL) {
        line->first = first->next;
        first->thing = thing;
        pthread_cond_signal(&first->served);
    } else {
        line->idle[line->count++] = thing;
    }
    pthread_mutex_unlock(&line->mutex);
}

static void line_run(struct contest_thread *thread)
{
    lender_run(thread, borrow, back);
}

const struct contest_side lender_line = {
    .name = "line",
    .open = line_open,
    .close = line_close,
    .run = line_run,
    .check = lender_check,
};
