// gather_tbb.cpp - tbb::task_group, each task with a place for its result.
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>

#include <vector>

#include "bench/exec/gather.h"

namespace
{

struct team {
    tbb::global_control threads{tbb::global_control::max_allowed_parallelism,
                                GATHER_WORKERS + 1};
    tbb::task_arena arena{GATHER_WORKERS + 1, 1};
};

void *open_team(const contest_work *)
{
    return new team();
}

void close_team(void *self)
{
    delete static_cast<team *>(self);
}

uint64_t all(void *self, uint64_t count)
{
    return static_cast<team *>(self)->arena.execute([count] {
        std::vector<uint64_t> results(count);
        tbb::task_group group;
        uint64_t sum = 0;
        for (uint64_t i = 0; i < count; i++)
            group.run([&results, i] { results[i] = i + 1; });
        group.wait();
        for (uint64_t result : results)
            sum += result;
        return sum;
    });
}

void run(contest_thread *thread)
{
    gather_run(thread, all);
}

} // namespace

extern "C" {

extern const contest_side gather_tbb;
const contest_side gather_tbb = {
    "tbb", open_team, close_team, run, nullptr, nullptr, nullptr,
};
}
