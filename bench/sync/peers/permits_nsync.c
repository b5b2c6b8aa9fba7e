/* permits_nsync.c - nsync: its counter as the latch; it has no semaphore and no
 * barrier, so these are made of its mutex and condition variable. */
#include <nsync.h>
#include <stdlib.h>

#include "bench/sync/permits.h"

struct side {
    struct permits permits; /* first */
    nsync_mu mutex;
    nsync_cv changed;
    unsigned free_permits;
    unsigned parties;
    unsigned arrived;
    uint64_t generation;
    char apart[CONTEST_LINE];
    nsync_counter *counters;
};

static void *side_open(const struct contest_work *work)
{
    struct side *side = contest_alloc(sizeof *side);

    permits_open(&side->permits);
    side->free_permits = 1;
    side->parties = work->threads;
    nsync_mu_init(&side->mutex);
    nsync_cv_init(&side->changed);
    side->counters = contest_alloc(PERMITS_ROUNDS_MAX * sizeof *side->counters);
    for (size_t i = 0; i < PERMITS_ROUNDS_MAX; i++)
        if (work->shape == PERMITS_LATCH &&
            (side->counters[i] = nsync_counter_new(work->threads)) == NULL)
            contest_fail("nsync_counter_new");
    return side;
}

static void side_close(void *self)
{
    struct side *side = self;

    for (size_t i = 0; i < PERMITS_ROUNDS_MAX; i++)
        if (side->counters[i] != NULL)
            nsync_counter_free(side->counters[i]);
    free(side->permits.arrived);
    free(side->counters);
    free(side);
}

CONTEST_INLINE void acquire(struct permits *permits)
{
    struct side *side = (struct side *)permits;

    nsync_mu_lock(&side->mutex);
    while (side->free_permits == 0)
        nsync_cv_wait(&side->changed, &side->mutex);
    side->free_permits--;
    nsync_mu_unlock(&side->mutex);
}

CONTEST_INLINE void give(struct permits *permits)
{
    struct side *side = (struct side *)permits;

    nsync_mu_lock(&side->mutex);
    side->free_permits++;
    nsync_cv_signal(&side->changed);
    nsync_mu_unlock(&side->mutex);
}

CONTEST_INLINE void latch(struct permits *permits, uint64_t round)
{
    nsync_counter counter = ((struct side *)permits)->counters[round];

    nsync_counter_add(counter, -1);
    if (nsync_counter_wait(counter, nsync_time_no_deadline) != 0)
        contest_fail("nsync_counter_wait");
}

CONTEST_INLINE void barrier(struct permits *permits, uint64_t round)
{
    struct side *side = (struct side *)permits;

    (void)round;
    nsync_mu_lock(&side->mutex);
    uint64_t generation = side->generation;
    if (++side->arrived == side->parties) {
        side->arrived = 0;
        side->generation++;
        nsync_cv_broadcast(&side->changed);
    }
    while (side->generation == generation)
        nsync_cv_wait(&side->changed, &side->mutex);
    nsync_mu_unlock(&side->mutex);
}

static void side_run(struct contest_thread *thread)
{
    permits_run(thread, acquire, give, latch, barrier);
}

const struct contest_side permits_nsync = {
    .name = "nsync",
    .open = side_open,
    .close = side_close,
    .run = side_run,
    .check = permits_check,
};
