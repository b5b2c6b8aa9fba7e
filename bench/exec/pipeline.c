/* pipeline.c - hf_pipeline beside tbb::parallel_pipeline.
 *
 * The shape is the same: two workers, then one in order. What is promised is
 * not: a worker of TBB carries its item through all stages, so there are no
 * queues between stages and no workers of a stage's own; whoever puts is inside
 * for the whole run. Ours takes items at any time, one by one, holds each stage
 * to its own room and counts what happens.
 */
#include "pipeline.h"

#include "holdfast/pipeline.h"

extern const struct contest_side pipeline_tbb;

static const struct contest_work works[] = {
    {.name = "empty",
     .threads = 1,
     .exact = 100000,
     .fresh = true,
     .roam = true},
    {.name = "busy",
     .threads = 1,
     .mode = 4000,
     .exact = 20000,
     .fresh = true,
     .roam = true},
    {.name = NULL},
};

struct ours {
    struct hf_pipeline *pipeline;
    uint32_t first;
    int rounds;
    uint64_t sum;
    uint64_t last;
};

static int first_stage(void *context, void *item, void **result)
{
    struct ours *ours = context;

    *result = (void *)pipeline_work((uintptr_t)item, ours->rounds);
    return 0;
}

static int last_stage(void *context, void *item, void **result)
{
    struct ours *ours = context;
    uintptr_t number = pipeline_work((uintptr_t)item, ours->rounds);

    *result = NULL;
    if (number != ours->last + 1)
        contest_fail("out of order");
    ours->last = number;
    ours->sum += number;
    return 0;
}

static void *ours_open(const struct contest_work *work)
{
    struct ours *ours = contest_alloc(sizeof *ours);
    struct hf_stage_opts first = {.work = first_stage,
                                  .context = ours,
                                  .workers = PIPELINE_WORKERS,
                                  .queue_max = PIPELINE_ROOM,
                                  .ordered = true};
    struct hf_stage_opts last = {.work = last_stage,
                                 .context = ours,
                                 .workers = 1,
                                 .queue_max = PIPELINE_ROOM};
    uint32_t second;

    ours->rounds = work->mode;
    if (hf_pipeline_open(&ours->pipeline, NULL) ||
        hf_pipeline_stage(ours->pipeline, &first, &ours->first) ||
        hf_pipeline_stage(ours->pipeline, &last, &second) ||
        hf_pipeline_link(ours->pipeline, ours->first, second) ||
        hf_pipeline_start(ours->pipeline))
        contest_fail("hf_pipeline_start");
    return ours;
}

static void ours_close(void *self)
{
    struct ours *ours = self;

    hf_pipeline_close(ours->pipeline);
}

static void ours_run(struct contest_thread *thread)
{
    struct ours *ours = thread->self;

    for (uintptr_t i = 1; i <= thread->total; i++) {
        thread->put += i;
        if (hf_pipeline_put(ours->pipeline, ours->first, (void *)i, HF_FOREVER))
            contest_fail("hf_pipeline_put");
    }
    hf_pipeline_shutdown(ours->pipeline);
    if (hf_pipeline_await(ours->pipeline, HF_FOREVER))
        contest_fail("hf_pipeline_await");
    thread->taken += ours->sum;
}

static const struct contest_side ours = {
    .name = "ours", .open = ours_open, .close = ours_close, .run = ours_run};

static const struct contest_side *const sides[] = {&ours, &pipeline_tbb, NULL};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
