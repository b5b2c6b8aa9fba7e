// pool_tbb.cpp - TBB: task_arena::enqueue, whose tasks workers run, and
// task_group, whose wait runs them too.
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include "bench/exec/pool.h"

namespace
{

struct pool {
    // The submitter and the workers.
    tbb::global_control threads{tbb::global_control::max_allowed_parallelism,
                                POOL_WORKERS + 1};
    tbb::task_arena workers{POOL_WORKERS, 0};
    tbb::task_arena team{POOL_WORKERS + 1, 1};
    tbb::task_group group;
};

pool &of(contest_thread *thread)
{
    return *static_cast<pool *>(thread->self);
}

void *open_pool(const contest_work *)
{
    return new pool();
}

void close_pool(void *self)
{
    delete static_cast<pool *>(self);
}

CONTEST_INLINE void submit(contest_thread *thread, pool_item *item)
{
    of(thread).workers.enqueue([item] { pool_task(item); });
}

CONTEST_INLINE void submit_team(contest_thread *thread, pool_item *item)
{
    of(thread).group.run([item] { pool_task(item); });
}

CONTEST_INLINE void finish_team(contest_thread *thread)
{
    of(thread).group.wait();
    pool_wait(thread);
}

void run(contest_thread *thread)
{
    if (thread->work->shape == POOL_TEAM)
        of(thread).team.execute(
            [thread] { pool_run(thread, submit_team, finish_team); });
    else
        pool_run(thread, submit, pool_wait);
}

} // namespace

extern "C" const contest_side pool_tbb = {
    "tbb", open_pool, close_pool, run, pool_enter, pool_leave, nullptr,
};
