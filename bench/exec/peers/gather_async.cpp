// gather_async.cpp - std::async, a thread for each task.
#include <future>
#include <vector>

#include "bench/exec/gather.h"

namespace
{

void *open_none(const contest_work *)
{
    static char none;
    return &none;
}

void close_none(void *)
{
}

uint64_t all(void *, uint64_t count)
{
    std::vector<std::future<uint64_t>> futures;
    uint64_t sum = 0;

    futures.reserve(count);
    for (uint64_t i = 0; i < count; i++)
        futures.push_back(
            std::async(std::launch::async, [i] { return i + 1; }));
    for (auto &future : futures)
        sum += future.get();
    return sum;
}

void run(contest_thread *thread)
{
    gather_run(thread, all);
}

} // namespace

extern "C" {

extern const contest_side gather_async;
const contest_side gather_async = {
    "async", open_none, close_none, run, nullptr, nullptr, nullptr,
};
}
