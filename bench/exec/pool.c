/* pool.c - hf_pool and hf_forkjoin beside GLib's and APR's thread pools, TBB,
 * libuv's work queue, OpenMP tasks and a thread for each task.
 *
 * Two workers and a submitter outside, on all sides. Where the submitter may
 * run tasks too (`team-`) ours is hf_forkjoin, beside tbb::task_group and
 * OpenMP's taskwait. OpenMP runs a task in its submitter as soon as 64 for each
 * thread wait; so it is beside pools only where fewer do.
 */
#include "pool.h"

#include <stdlib.h>

#include "holdfast/forkjoin.h"
#include "holdfast/pool.h"

extern const struct contest_side pool_glib;
extern const struct contest_side pool_apr;
extern const struct contest_side pool_tbb;
extern const struct contest_side pool_uv;
extern const struct contest_side pool_openmp;
extern const struct contest_side pool_threads;

#define WAVE 10000

#define WORK(text, kind, count, wave)                                \
    {                                                                \
        .name = text, .threads = count, .shape = kind, .size = wave, \
        .most = UINT64_C(4000000), .roam = true,                     \
    }

static const struct contest_work works[] = {
    WORK("submit-1", POOL_OF_WORKERS, 1, WAVE),
    WORK("submit-2", POOL_OF_WORKERS, 2, WAVE),
    WORK("waves-100", POOL_OF_WORKERS, 1, 100),
    WORK("round-trip", POOL_OF_WORKERS, 1, 1),
    WORK("team-10000", POOL_TEAM, 1, WAVE),
    WORK("team-100", POOL_TEAM, 1, 100),
    {.name = NULL},
};

/* The pool. */

static void *ours_open(const struct contest_work *work)
{
    struct hf_pool_opts opts = {
        .name = work->name,
        .max_threads = POOL_WORKERS,
        .queue_max = HF_POOL_QUEUE_UNBOUNDED,
    };
    struct hf_pool *pool;

    if (work->shape != POOL_OF_WORKERS)
        return NULL;
    if (hf_pool_open(&pool, &opts))
        contest_fail("hf_pool_open");
    return pool;
}

static void ours_close(void *self)
{
    hf_pool_close(self);
}

static int ours_task(void *arg)
{
    pool_task(arg);
    return 0;
}

CONTEST_INLINE void ours_submit(struct contest_thread *thread,
                                struct pool_item *item)
{
    if (hf_pool_submit(thread->self, ours_task, item, NULL, NULL))
        contest_fail("hf_pool_submit");
}

static void ours_run(struct contest_thread *thread)
{
    pool_run(thread, ours_submit, pool_wait);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
    .enter = pool_enter,
    .leave = pool_leave,
};

/* The pool, and its own way to wait for one task. */

static void *future_open(const struct contest_work *work)
{
    return work->size == 1 ? ours_open(work) : NULL;
}

CONTEST_INLINE void future_submit(struct contest_thread *thread,
                                  struct pool_item *item)
{
    struct hf_future *future;

    if (hf_pool_submit(thread->self, ours_task, item, NULL, &future) ||
        hf_future_get(future, HF_FOREVER, NULL))
        contest_fail("hf_pool_submit");
    hf_future_release(future);
}

static void future_run(struct contest_thread *thread)
{
    pool_run(thread, future_submit, pool_wait);
}

static const struct contest_side ours_future = {
    .name = "ours-future",
    .open = future_open,
    .close = ours_close,
    .run = future_run,
    .enter = pool_enter,
    .leave = pool_leave,
};

/* Fork and join. */

struct team {
    struct hf_forkjoin *forkjoin;
    struct hf_forkjoin_worker *worker; /* the submitter, while inside */
    struct hf_fork *forks;
};

static void *team_open(const struct contest_work *work)
{
    struct hf_forkjoin_opts opts = {
        .name = work->name,
        .threads = POOL_WORKERS + 1,
    };

    if (work->shape != POOL_TEAM)
        return NULL;
    struct team *team = contest_alloc(sizeof *team);
    team->forks = contest_alloc(work->size * sizeof *team->forks);
    if (hf_forkjoin_open(&team->forkjoin, &opts))
        contest_fail("hf_forkjoin_open");
    return team;
}

static void team_close(void *self)
{
    struct team *team = self;

    hf_forkjoin_close(team->forkjoin);
    free(team->forks);
    free(team);
}

static void team_task(struct hf_forkjoin_worker *worker, void *arg)
{
    (void)worker;
    pool_task(arg);
}

CONTEST_INLINE void team_submit(struct contest_thread *thread,
                                struct pool_item *item)
{
    struct team *team = thread->self;
    struct hf_fork *fork = &team->forks[item - item->own->items];

    if (hf_fork(team->worker, fork, team_task, item))
        contest_fail("hf_fork");
}

CONTEST_INLINE void team_finish(struct contest_thread *thread)
{
    struct team *team = thread->self;

    for (uint64_t i = pool_own(thread)->wave; i > 0; i--)
        if (hf_join(team->worker, &team->forks[i - 1]))
            contest_fail("hf_join");
    pool_wait(thread);
}

static void team_main(struct hf_forkjoin_worker *worker, void *arg)
{
    struct contest_thread *thread = arg;
    struct team *team = thread->self;

    team->worker = worker;
    pool_run(thread, team_submit, team_finish);
}

static void team_run(struct contest_thread *thread)
{
    struct team *team = thread->self;

    if (hf_forkjoin_run(team->forkjoin, team_main, thread))
        contest_fail("hf_forkjoin_run");
}

static const struct contest_side ours_team = {
    .name = "ours",
    .open = team_open,
    .close = team_close,
    .run = team_run,
    .enter = pool_enter,
    .leave = pool_leave,
};

static const struct contest_side *const sides[] = {
    &ours,     &ours_future, &ours_team,   &pool_glib,    &pool_apr,
    &pool_tbb, &pool_uv,     &pool_openmp, &pool_threads, NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
