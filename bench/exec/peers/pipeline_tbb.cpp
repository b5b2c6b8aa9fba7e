// pipeline_tbb.cpp - tbb::parallel_pipeline.
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>
#include <tbb/task_arena.h>

#include "bench/exec/pipeline.h"

namespace
{

struct team {
    tbb::global_control threads{tbb::global_control::max_allowed_parallelism,
                                PIPELINE_WORKERS + 1};
    tbb::task_arena arena{PIPELINE_WORKERS + 1, 1};
};

void *open_team(const contest_work *)
{
    return new team();
}

void close_team(void *self)
{
    delete static_cast<team *>(self);
}

void pump(contest_thread *thread)
{
    int rounds = thread->work->mode;
    uint64_t total = thread->total;
    uint64_t next = 0;
    uint64_t put = 0;
    uint64_t last = 0;
    uint64_t taken = 0;

    tbb::parallel_pipeline(
        PIPELINE_ROOM,
        tbb::make_filter<void, uintptr_t>(
            tbb::filter_mode::serial_in_order,
            [&](tbb::flow_control &control) -> uintptr_t {
                if (next == total) {
                    control.stop();
                    return 0;
                }
                put += ++next;
                return next;
            }) &
            tbb::make_filter<uintptr_t, uintptr_t>(
                tbb::filter_mode::parallel,
                [rounds](uintptr_t item) {
                    return pipeline_work(item, rounds);
                }) &
            tbb::make_filter<uintptr_t, void>(
                tbb::filter_mode::serial_in_order, [&](uintptr_t item) {
                    item = pipeline_work(item, rounds);
                    if (item != last + 1)
                        contest_fail("out of order");
                    last = item;
                    taken += item;
                }));
    thread->put += put;
    thread->taken += taken;
}

void run(contest_thread *thread)
{
    static_cast<team *>(thread->self)->arena.execute([thread] {
        pump(thread);
    });
}

} // namespace

extern "C" {

extern const contest_side pipeline_tbb;
const contest_side pipeline_tbb = {
    "tbb", open_team, close_team, run, nullptr, nullptr, nullptr,
};
}
