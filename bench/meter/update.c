/* update.c - what an update costs: hf_counter, hf_histogram and hf_window
 * beside a plain atomic add and prometheus-cpp.
 *
 * The plain atomic add does less than a histogram in `histogram-`: it is there
 * as the measure of what threads pay for sharing a word. At the end of each run
 * the count must be that of the updates.
 */
#include "update.h"

#include <stdlib.h>

#include "holdfast/meter.h"

extern const struct contest_side update_prometheus;

static const struct contest_work works[] = {
    {.name = "counter-1", .threads = 1, .shape = UPDATE_COUNTER},
    {.name = "counter-2", .threads = 2, .shape = UPDATE_COUNTER},
    {.name = "counter-8", .threads = 8, .shape = UPDATE_COUNTER},
    {.name = "histogram-1", .threads = 1, .shape = UPDATE_HISTOGRAM},
    {.name = "histogram-2", .threads = 2, .shape = UPDATE_HISTOGRAM},
    {.name = "histogram-8", .threads = 8, .shape = UPDATE_HISTOGRAM},
    {.name = "window-1", .threads = 1, .shape = UPDATE_WINDOW},
    {.name = "window-2", .threads = 2, .shape = UPDATE_WINDOW},
    {.name = NULL},
};

struct ours {
    struct hf_meter *meter;
    struct hf_counter *counter;
    struct hf_histogram *histogram;
    struct hf_window *window;
    uint64_t seen; /* by the runs before */
};

static void *ours_open(const struct contest_work *work)
{
    struct ours *ours = contest_alloc(sizeof *ours);
    struct hf_metric metric = {.name = "x"};
    enum hf_status status = hf_meter_open(&ours->meter, NULL);

    if (!status && work->shape == UPDATE_COUNTER)
        status = hf_meter_counter(ours->meter, &metric, &ours->counter);
    else if (!status && work->shape == UPDATE_HISTOGRAM)
        status = hf_meter_histogram(ours->meter, &metric, &ours->histogram);
    else if (!status)
        status = hf_meter_window(ours->meter, &metric, NULL, &ours->window);
    if (status)
        contest_fail("hf_meter_open");
    return ours;
}

static void ours_close(void *self)
{
    hf_meter_close(((struct ours *)self)->meter);
    free(self);
}

CONTEST_INLINE void ours_count(void *self, uint64_t value)
{
    hf_counter_add(((struct ours *)self)->counter, value);
}

CONTEST_INLINE void ours_record(void *self, uint64_t value)
{
    hf_histogram_record(((struct ours *)self)->histogram, value);
}

CONTEST_INLINE void ours_window(void *self, uint64_t value)
{
    hf_window_record(((struct ours *)self)->window, value, value);
}

static void ours_run(struct contest_thread *thread)
{
    if (thread->work->shape == UPDATE_WINDOW)
        update_run(thread, ours_count, ours_window);
    else
        update_run(thread, ours_count, ours_record);
}

static void ours_check(struct contest_thread *thread)
{
    struct ours *ours = thread->self;
    struct hf_histogram_stats histogram;
    struct hf_window_stats window;
    uint64_t now;

    if (thread->work->shape == UPDATE_COUNTER) {
        now = hf_counter_value(ours->counter);
    } else if (thread->work->shape == UPDATE_HISTOGRAM) {
        hf_histogram_stats(ours->histogram, &histogram);
        now = histogram.count;
    } else {
        hf_window_stats(ours->window, &window);
        now = window.count;
    }
    thread->put = now - ours->seen;
    ours->seen = now;
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
    .check = ours_check,
};

static void *atomic_open(const struct contest_work *work)
{
    return work->shape == UPDATE_WINDOW ? NULL : contest_alloc(CONTEST_LINE);
}

CONTEST_INLINE void atomic_add(void *self, uint64_t value)
{
    (void)value;
    __atomic_fetch_add((uint64_t *)self, 1, __ATOMIC_RELAXED);
}

static void atomic_run(struct contest_thread *thread)
{
    update_run(thread, atomic_add, atomic_add);
}

static void atomic_check(struct contest_thread *thread)
{
    thread->put =
        __atomic_exchange_n((uint64_t *)thread->self, 0, __ATOMIC_RELAXED);
}

static const struct contest_side atomic = {
    .name = "atomic",
    .open = atomic_open,
    .close = free,
    .run = atomic_run,
    .check = atomic_check,
};

static const struct contest_side *const sides[] = {
    &ours,
    &atomic,
    &update_prometheus,
    NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
