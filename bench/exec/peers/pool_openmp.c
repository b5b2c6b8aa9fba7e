/* pool_openmp.c - OpenMP tasks. The team is the submitter and the workers; two
 * submitters have a team each. */
#include "bench/exec/pool.h"

/* Its threads run tasks in the submitter when more wait for each of them. */
#define DEFERRED_MAX 64

static void *open_pool(const struct contest_work *work)
{
    static int nothing;

    if (work->shape == POOL_OF_WORKERS && work->size > 2 * DEFERRED_MAX)
        return NULL;
    return &nothing;
}

static void close_pool(void *self)
{
    (void)self;
}

static int team_size(const struct contest_thread *thread)
{
    return (int)(1 + POOL_WORKERS / thread->work->threads);
}

/* The team's threads are there when the time begins. */
static void enter(struct contest_thread *thread)
{
    pool_enter(thread);
#pragma omp parallel num_threads(team_size(thread))
    sched_yield();
}

CONTEST_INLINE void submit(struct contest_thread *thread,
                           struct pool_item *item)
{
    (void)thread;
#pragma omp task firstprivate(item)
    pool_task(item);
}

CONTEST_INLINE void finish_team(struct contest_thread *thread)
{
#pragma omp taskwait
    pool_wait(thread);
}

static void run(struct contest_thread *thread)
{
#pragma omp parallel num_threads(team_size(thread))
#pragma omp master
    {
        if (thread->work->shape == POOL_TEAM)
            pool_run(thread, submit, finish_team);
        else
            pool_run(thread, submit, pool_wait);
    }
}

const struct contest_side pool_openmp = {
    .name = "openmp",
    .open = open_pool,
    .close = close_pool,
    .run = run,
    .enter = enter,
    .leave = pool_leave,
};
