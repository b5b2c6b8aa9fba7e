// update_prometheus.cpp - prometheus-cpp's counter, histogram and summary.
#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/summary.h>

#include <memory>

#include "bench/meter/update.h"

namespace
{

struct metrics {
    prometheus::Registry registry;
    prometheus::Counter *counter = nullptr;
    prometheus::Histogram *histogram = nullptr;
    prometheus::Summary *summary = nullptr;
    std::uint64_t seen = 0;
};

void *open_metrics(const contest_work *work)
{
    auto *self = new metrics();

    if (work->shape == UPDATE_COUNTER)
        self->counter = &prometheus::BuildCounter()
                             .Name("x")
                             .Register(self->registry)
                             .Add({});
    else if (work->shape == UPDATE_HISTOGRAM)
        // A bucket for each power of ten, as few as users have.
        self->histogram =
            &prometheus::BuildHistogram()
                 .Name("x")
                 .Register(self->registry)
                 .Add({}, prometheus::Histogram::BucketBoundaries{
                              1, 10, 100, 1e3, 1e4, 1e5, 1e6});
    else
        self->summary = &prometheus::BuildSummary()
                             .Name("x")
                             .Register(self->registry)
                             .Add({}, prometheus::Summary::Quantiles{
                                          {0.5, 0.01}, {0.99, 0.001}});
    return self;
}

void close_metrics(void *self)
{
    delete static_cast<metrics *>(self);
}

CONTEST_INLINE void count(void *self, std::uint64_t value)
{
    static_cast<metrics *>(self)->counter->Increment(
        static_cast<double>(value));
}

CONTEST_INLINE void record(void *self, std::uint64_t value)
{
    static_cast<metrics *>(self)->histogram->Observe(
        static_cast<double>(value));
}

CONTEST_INLINE void observe(void *self, std::uint64_t value)
{
    static_cast<metrics *>(self)->summary->Observe(static_cast<double>(value));
}

void run(contest_thread *thread)
{
    if (thread->work->shape == UPDATE_WINDOW)
        update_run(thread, count, observe);
    else
        update_run(thread, count, record);
}

void check(contest_thread *thread)
{
    auto *self = static_cast<metrics *>(thread->self);
    std::uint64_t now;

    if (self->counter != nullptr)
        now = static_cast<std::uint64_t>(self->counter->Value());
    else if (self->histogram != nullptr)
        now = self->histogram->Collect().histogram.sample_count;
    else
        now = self->summary->Collect().summary.sample_count;
    thread->put = now - self->seen;
    self->seen = now;
}

} // namespace

extern "C" const contest_side update_prometheus = {
    "prometheus-cpp", open_metrics, close_metrics, run,
    nullptr,          nullptr,      check,
};
