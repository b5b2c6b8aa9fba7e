/* pipeline.c - how a pipeline is built, fed, ended and looked at. */
#include "holdfast/pipeline.h"

#include <assert.h>

#include "base/memory.h"
#include "exec/pipeline_state.h"

#define FULL_NS_DEFAULT      UINT64_C(1000000000)
#define PAUSE_NS_DEFAULT     UINT64_C(10000000)
#define PAUSE_MAX_NS_DEFAULT UINT64_C(1000000000)
#define WINDOW_OF_WORKER     4u /* results that are held back, by default */

static_assert(HF_PIPELINE_STAGES_MAX <= 64, "links are bits of 64");

static uint32_t life_of(const struct hf_pipeline *pipeline)
{
    /* Acquire: the pipeline as it was built. */
    return hf_u32_load(&pipeline->life, __ATOMIC_ACQUIRE);
}

static uint32_t stage_count(const struct hf_pipeline *pipeline)
{
    /* Acquire: the stages that are counted. */
    return hf_u32_load(&pipeline->stage_count, __ATOMIC_ACQUIRE);
}

/* NULL: there is none of that number. */
static struct stage *find_stage(const struct hf_pipeline *pipeline,
                                uint32_t number)
{
    if (pipeline == NULL || number >= stage_count(pipeline))
        return NULL;
    return pipeline->stages[number];
}

/* Relaxed: fixed after start; before it hf_inspect() may look. */
static uint32_t upstream_count(const struct stage *stage)
{
    return hf_u32_load(&stage->upstream_count, __ATOMIC_RELAXED);
}

static bool is_source(const struct stage *stage)
{
    return upstream_count(stage) == 0;
}

/* ---- Figures. ---- */

/* Acquire: see count() in pipeline_run.c. */
static uint64_t read_figure(const struct hf_atomic_u64 *figure)
{
    return hf_u64_load(figure, __ATOMIC_ACQUIRE);
}

static void stage_stats(struct stage *stage, struct hf_stage_stats *out)
{
    struct hf_blocking_stats queue;
    bool source = is_source(stage);

    *out = (struct hf_stage_stats){
        .out = read_figure(&stage->out),
        .filtered = read_figure(&stage->filtered),
        .failed = read_figure(&stage->failed),
        .retried = read_figure(&stage->retried),
        .dead = read_figure(&stage->dead),
        .cancelled = read_figure(&stage->cancelled),
        .run_p50_ns = hf_waits_percentile_ns(&stage->run_times, 50),
        .run_p99_ns = hf_waits_percentile_ns(&stage->run_times, 99),
    };
    /* After those: what is finished was taken before. */
    hf_blocking_stats(stage->queue, &queue);
    out->in = queue.put;
    out->active =
        queue.taken - (out->out + out->filtered + out->dead + out->cancelled);
    out->dropped = source ? 0 : queue.rejected;
    out->refused = source ? queue.rejected : 0;
    out->depth = queue.depth;
    out->capacity = queue.capacity;
    out->oldest_ns = queue.oldest_ns;
    out->waits = queue.put_waits;
    out->wait_p99_ns = queue.put_wait_p99_ns;
}

enum hf_status hf_pipeline_stage_stats(struct hf_pipeline *pipeline,
                                       uint32_t stage,
                                       struct hf_stage_stats *out)
{
    struct stage *found = find_stage(pipeline, stage);

    if (found == NULL || out == NULL)
        return HF_INVALID;
    stage_stats(found, out);
    return HF_OK;
}

static bool has_ended(const struct hf_pipeline *pipeline)
{
    /* Acquire: all that the stages did. */
    return life_of(pipeline) == LIFE_SHUT &&
           hf_u32_load(&pipeline->stages_left, __ATOMIC_ACQUIRE) == 0;
}

static enum hf_pipeline_state state_of(const struct hf_pipeline *pipeline)
{
    switch (life_of(pipeline)) {
    case LIFE_RUNNING:
        return HF_PIPELINE_RUNNING;
    case LIFE_SHUT:
        return has_ended(pipeline) ? HF_PIPELINE_ENDED : HF_PIPELINE_SHUT;
    default:
        return HF_PIPELINE_BUILDING;
    }
}

enum hf_status hf_pipeline_stats(struct hf_pipeline *pipeline,
                                 struct hf_pipeline_stats *out)
{
    if (pipeline == NULL || out == NULL)
        return HF_INVALID;
    uint64_t failure = pipeline_failure(pipeline);
    *out = (struct hf_pipeline_stats){
        .state = state_of(pipeline),
        .stages = stage_count(pipeline),
        .failed = failure != 0,
        .failed_stage =
            (uint32_t)(failure >> 32) & (HF_PIPELINE_STAGES_MAX - 1),
        .failed_code = (int)(uint32_t)failure,
    };
    for (uint32_t i = 0; i < out->stages; i++) {
        struct hf_stage_stats stage;
        stage_stats(pipeline->stages[i], &stage);
        out->inside += stage.depth + stage.active;
        out->refused += stage.refused;
        if (is_source(pipeline->stages[i]))
            out->put += stage.in;
    }
    return HF_OK;
}

/* The larger one; HF_INSPECT_NONE is none at all. */
static uint64_t worse(uint64_t a, uint64_t b)
{
    if (a == HF_INSPECT_NONE || b == HF_INSPECT_NONE)
        return a == HF_INSPECT_NONE ? b : a;
    return a > b ? a : b;
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    /* `listed` is the first member. The queues' locks are taken to read. */
    struct hf_pipeline *pipeline = (struct hf_pipeline *)(uintptr_t)listed;

    static_assert(offsetof(struct hf_pipeline, listed) == 0, "is the first");
    row->depth = row->capacity = row->rejected = 0;
    for (uint32_t i = 0; i < stage_count(pipeline); i++) {
        struct hf_stage_stats stage;
        stage_stats(pipeline->stages[i], &stage);
        row->depth += stage.depth + stage.active;
        row->capacity += stage.capacity;
        row->rejected += stage.refused + stage.dropped;
        row->oldest_ns = worse(row->oldest_ns, stage.oldest_ns);
        row->wait_p99_ns = worse(row->wait_p99_ns, stage.wait_p99_ns);
    }
}

/* ---- Building. ---- */

/* Fills in the defaults; false: something is out of its range. */
static bool complete(struct hf_stage_opts *opts)
{
    if (opts->work == NULL || (unsigned)opts->on_full > HF_STAGE_TIMEOUT ||
        (unsigned)opts->on_failure > HF_STAGE_FAIL_FAST ||
        (unsigned)opts->fan > HF_STAGE_BY_ROUTE ||
        opts->workers > HF_STAGE_WORKERS_MAX ||
        opts->queue_max > HF_STAGE_QUEUE_MAX ||
        opts->window > HF_STAGE_QUEUE_MAX ||
        (opts->fan == HF_STAGE_BY_ROUTE && opts->route == NULL))
        return false;
    if (opts->workers == 0)
        opts->workers = 1;
    if (opts->queue_max == 0)
        opts->queue_max = HF_STAGE_QUEUE_DEFAULT;
    if (opts->window == 0)
        opts->window = WINDOW_OF_WORKER * opts->workers;
    if (opts->full_ns == 0)
        opts->full_ns = FULL_NS_DEFAULT;
    if (opts->pause_ns == 0)
        opts->pause_ns = PAUSE_NS_DEFAULT;
    if (opts->pause_max_ns == 0)
        opts->pause_max_ns = PAUSE_MAX_NS_DEFAULT;
    if (opts->pause_ns > opts->pause_max_ns)
        opts->pause_ns = opts->pause_max_ns;
    return true;
}

enum hf_status hf_pipeline_open(struct hf_pipeline **out,
                                const struct hf_pipeline_opts *opts)
{
    static const struct hf_pipeline_opts defaults;

    if (out == NULL)
        return HF_INVALID;
    if (opts == NULL)
        opts = &defaults;
    struct hf_pipeline *pipeline = hf_alloc_zeroed(sizeof *pipeline);
    if (pipeline == NULL)
        return HF_NOMEM;
    pipeline->opts = *opts;
    pipeline->clock = opts->clock == NULL ? hf_clock_system() : opts->clock;
    (void)snprintf(pipeline->name, sizeof pipeline->name, "%s",
                   opts->name == NULL ? "" : opts->name);
    pipeline->opts.name = pipeline->name;
    hf_listed_add(&pipeline->listed, "pipeline", pipeline->name, fill);
    *out = pipeline;
    return HF_OK;
}

static void stage_free(struct stage *stage)
{
    if (stage == NULL)
        return;
    hf_blocking_close(stage->queue);
    hf_free(stage->window);
    hf_free(stage->workers);
    hf_free(stage);
}

static enum hf_status open_queue(struct stage *stage)
{
    const struct hf_pipeline *pipeline = stage->pipeline;
    char name[2 * HF_NAME_BYTES];

    (void)snprintf(name, sizeof name, "%s/%s", pipeline->name, stage->name);
    struct hf_blocking_opts opts = {
        .name = name,
        .kind = HF_BLOCKING_ARRAY,
        .capacity = stage->opts.queue_max,
        .clock = pipeline->clock,
        .ages = pipeline->opts.times,
    };
    return hf_blocking_open(&stage->queue, &opts);
}

/* One block: the window, its events, its places. */
static struct window *window_new(const struct hf_stage_opts *opts)
{
    size_t events_bytes = opts->workers * sizeof(struct hf_event);
    size_t head_bytes = sizeof(struct window) + events_bytes;
    struct window *window =
        hf_alloc_zeroed(head_bytes + opts->window * sizeof(struct place));

    if (window == NULL)
        return NULL;
    static_assert(sizeof(struct window) % _Alignof(struct place) == 0 &&
                      sizeof(struct hf_event) % _Alignof(struct place) == 0,
                  "places may follow events");
    window->size = opts->window;
    window->places = (struct place *)(void *)((char *)window + head_bytes);
    return window;
}

/* `opts` are complete. NULL: no memory. */
static struct stage *stage_new(struct hf_pipeline *pipeline,
                               const struct hf_stage_opts *opts)
{
    struct stage *stage = hf_alloc_lines(sizeof *stage);

    if (stage == NULL)
        return NULL;
    stage->pipeline = pipeline;
    stage->opts = *opts;
    if (opts->name != NULL)
        (void)snprintf(stage->name, sizeof stage->name, "%s", opts->name);
    stage->opts.name = stage->name;
    stage->workers = hf_alloc_zeroed(opts->workers * sizeof *stage->workers);
    if (stage->workers == NULL)
        goto no_memory;
    for (uint32_t i = 0; i < opts->workers; i++)
        stage->workers[i].stage = stage;
    /* One worker keeps the order as it is. */
    if (opts->ordered && opts->workers > 1) {
        stage->window = window_new(opts);
        if (stage->window == NULL)
            goto no_memory;
    }
    if (open_queue(stage) == HF_OK)
        return stage;
no_memory:
    stage_free(stage);
    return NULL;
}

enum hf_status hf_pipeline_stage(struct hf_pipeline *pipeline,
                                 const struct hf_stage_opts *opts,
                                 uint32_t *stage)
{
    if (pipeline == NULL || opts == NULL || stage == NULL)
        return HF_INVALID;
    struct hf_stage_opts all = *opts;
    uint32_t number = stage_count(pipeline);
    if (!complete(&all) || life_of(pipeline) != LIFE_BUILDING)
        return HF_INVALID;
    if (number == HF_PIPELINE_STAGES_MAX)
        return HF_FULL;
    struct stage *made = stage_new(pipeline, &all);
    if (made == NULL)
        return HF_NOMEM;
    made->number = number;
    pipeline->stages[number] = made;
    /* Release: see stage_count. */
    hf_u32_store(&pipeline->stage_count, number + 1, __ATOMIC_RELEASE);
    *stage = number;
    return HF_OK;
}

/* The stages that lie behind this one, and itself, as bits. Ends since there
 * is no cycle yet and each round finds a new one. */
static uint64_t reach(const struct hf_pipeline *pipeline, uint32_t from)
{
    uint64_t found = UINT64_C(1) << from;

    for (uint64_t before = 0; before != found;) {
        before = found;
        for (uint32_t i = 0; i < stage_count(pipeline); i++)
            if (found >> i & 1)
                found |= pipeline->stages[i]->link_bits;
    }
    return found;
}

enum hf_status hf_pipeline_link(struct hf_pipeline *pipeline, uint32_t from,
                                uint32_t to)
{
    struct stage *first = find_stage(pipeline, from);
    struct stage *second = find_stage(pipeline, to);

    if (first == NULL || second == NULL || life_of(pipeline) != LIFE_BUILDING)
        return HF_INVALID;
    if (first->link_bits >> to & 1)
        return HF_EXISTS;
    if (reach(pipeline, to) >> from & 1)
        return HF_INVALID;
    first->link_bits |= UINT64_C(1) << to;
    first->links[first->link_count++] = second;
    (void)hf_u32_add(&second->upstream_count, 1, __ATOMIC_RELAXED);
    return HF_OK;
}

/* ---- Starting. ---- */

static void open_gate(struct hf_pipeline *pipeline, enum life life)
{
    /* Release: the pipeline as it was built. */
    hf_u32_store(&pipeline->life, life, __ATOMIC_RELEASE);
    hf_event_wake_all(&pipeline->gate);
}

/* Starts the workers of one stage; returns how many could be. */
static uint32_t start_stage(struct stage *stage)
{
    const char *name = *stage->name ? stage->name : stage->pipeline->name;
    uint32_t started = 0;

    /* Relaxed: the thread that is started sees it, and nobody else looks. */
    hf_u32_store(&stage->workers_left, stage->opts.workers, __ATOMIC_RELAXED);
    hf_u32_store(&stage->upstream_left, upstream_count(stage),
                 __ATOMIC_RELAXED);
    while (started < stage->opts.workers &&
           hf_thread_start(&stage->workers[started].thread, name,
                           hf_pipeline_work, &stage->workers[started]) == HF_OK)
        started++;
    return started;
}

static void join_stage(struct stage *stage, uint32_t started)
{
    for (uint32_t i = 0; i < started; i++)
        hf_thread_join(&stage->workers[i].thread);
}

enum hf_status hf_pipeline_start(struct hf_pipeline *pipeline)
{
    if (pipeline == NULL || stage_count(pipeline) == 0)
        return HF_INVALID;
    uint32_t count = stage_count(pipeline);
    if (life_of(pipeline) != LIFE_BUILDING)
        return life_of(pipeline) == LIFE_SHUT ? HF_CLOSED : HF_INVALID;
    /* Relaxed, both: read by threads that are started after. */
    hf_u32_store(&pipeline->life, LIFE_GATE, __ATOMIC_RELAXED);
    hf_u32_store(&pipeline->stages_left, count, __ATOMIC_RELAXED);
    for (uint32_t i = 0; i < count; i++) {
        struct stage *stage = pipeline->stages[i];
        uint32_t started = start_stage(stage);
        if (started == stage->opts.workers)
            continue;
        hf_u32_store(&pipeline->stages_left, 0, __ATOMIC_RELAXED);
        open_gate(pipeline, LIFE_BUILDING);
        join_stage(stage, started);
        while (i-- > 0)
            join_stage(pipeline->stages[i], pipeline->stages[i]->opts.workers);
        return HF_NOMEM;
    }
    pipeline->started = true;
    open_gate(pipeline, LIFE_RUNNING);
    return HF_OK;
}

/* ---- Putting. ---- */

uint64_t hf_pipeline_full_deadline_ns(const struct stage *stage,
                                      uint64_t deadline_ns)
{
    if (stage->opts.on_full == HF_STAGE_BLOCK || deadline_ns == HF_NOW)
        return deadline_ns;
    if (stage->opts.on_full == HF_STAGE_DROP)
        return HF_NOW;
    uint64_t now_ns = hf_clock_now_ns(stage->pipeline->clock);
    uint64_t full_ns = stage->opts.full_ns;
    uint64_t until_ns =
        full_ns < HF_FOREVER - now_ns ? now_ns + full_ns : HF_FOREVER;
    return until_ns < deadline_ns ? until_ns : deadline_ns;
}

enum hf_status hf_pipeline_put(struct hf_pipeline *pipeline, uint32_t stage,
                               void *item, uint64_t deadline_ns)
{
    struct stage *to = find_stage(pipeline, stage);

    if (to == NULL || item == NULL || !is_source(to) ||
        life_of(pipeline) < LIFE_RUNNING)
        return HF_INVALID;
    enum hf_status status = hf_blocking_put(
        to->queue, item, hf_pipeline_full_deadline_ns(to, deadline_ns));
    return status == HF_TIMEOUT && to->opts.on_full == HF_STAGE_DROP ? HF_FULL
                                                                     : status;
}

/* ---- The end. ---- */

void hf_pipeline_shutdown(struct hf_pipeline *pipeline)
{
    if (pipeline == NULL)
        return;
    /* Release: the pipeline as it was built, as with the gate. */
    hf_u32_store(&pipeline->life, LIFE_SHUT, __ATOMIC_RELEASE);
    /* Also if another is at it: when this returns, they are shut. */
    for (uint32_t i = 0; i < stage_count(pipeline); i++)
        if (is_source(pipeline->stages[i]))
            hf_blocking_shutdown(pipeline->stages[i]->queue);
    hf_event_wake_all(&pipeline->ended); /* if it was never started */
}

static enum hf_status is_over(void *context)
{
    if (!has_ended(context))
        return HF_PENDING;
    return pipeline_failure(context) != 0 ? HF_FAILED : HF_OK;
}

enum hf_status hf_pipeline_await(struct hf_pipeline *pipeline,
                                 uint64_t deadline_ns)
{
    if (pipeline == NULL)
        return HF_INVALID;
    return hf_event_until(&pipeline->ended, is_over, pipeline, pipeline->clock,
                          deadline_ns);
}

void hf_pipeline_close(struct hf_pipeline *pipeline)
{
    if (pipeline == NULL)
        return;
    hf_pipeline_shutdown(pipeline);
    for (uint32_t i = 0; i < stage_count(pipeline) && pipeline->started; i++)
        join_stage(pipeline->stages[i], pipeline->stages[i]->opts.workers);
    hf_listed_remove(&pipeline->listed);
    for (uint32_t i = 0; i < stage_count(pipeline); i++)
        stage_free(pipeline->stages[i]);
    hf_free(pipeline);
}
