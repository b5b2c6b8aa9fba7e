/* pipeline_run.c - what a worker does with an item, and how stages end.
 *
 * Failing fast needs no second way out: the sources are shut and the stages
 * end one after the other as they always do, only that workers cancel what they
 * take instead of working on it. So whoever waits for room gets it.
 */
#include <assert.h>

#include "exec/pipeline_state.h"

/* One more of something. Release: whoever reads the figure (acquire) sees that
 * the item was taken before. */
static void count(struct hf_atomic_u64 *figure)
{
    (void)hf_u64_add(figure, 1, __ATOMIC_RELEASE);
}

static void tell(const struct stage *stage, enum hf_pipeline_event event,
                 void *item, int code)
{
    const struct hf_pipeline_opts *opts = &stage->pipeline->opts;

    if (opts->observe == NULL)
        return;
    struct hf_pipeline_note note = {
        .event = event,
        .stage = stage->number,
        .name = stage->name,
        .item = item,
        .code = code,
    };
    opts->observe(opts->context, &note);
}

/* False: the queue is shut and empty. */
static bool take(struct stage *stage, void **item, uint64_t *ticket)
{
    struct window *window = stage->window;

    if (window == NULL)
        return hf_blocking_take(stage->queue, item, HF_FOREVER) == HF_OK;
    /* One worker waits for an item, the others for the lock: taking and
     * numbering must be one step. */
    hf_mutex_lock(&window->take);
    bool taken = hf_blocking_take(stage->queue, item, HF_FOREVER) == HF_OK;
    if (taken)
        *ticket = window->tickets++;
    hf_mutex_unlock(&window->take);
    return taken;
}

/* ---- Items that go no further. ---- */

/* Ends the pipeline, unless it has failed already. */
static void fail(struct stage *stage, void *item, int code)
{
    struct hf_pipeline *pipeline = stage->pipeline;
    uint64_t none = 0;
    uint64_t failure = PIPELINE_FAILED | (uint64_t)stage->number << 32 |
                       (uint64_t)(uint32_t)code;

    /* Release: see pipeline_failure(). */
    if (!hf_u64_cas(&pipeline->failure, &none, failure, __ATOMIC_RELEASE))
        return;
    hf_pipeline_shutdown(pipeline);
    hf_event_wake_all(&pipeline->failing);
    tell(stage, HF_PIPELINE_FAILED, item, code);
}

static void bury(struct stage *stage, void *item, int code)
{
    if (stage->opts.on_failure == HF_STAGE_FAIL_FAST)
        fail(stage, item, code);
    tell(stage, HF_PIPELINE_ITEM_DEAD, item, code);
    if (stage->opts.dead != NULL)
        stage->opts.dead(stage->opts.context, item, code);
    count(&stage->dead);
}

static void cancel(struct stage *stage, void *item)
{
    tell(stage, HF_PIPELINE_ITEM_CANCELLED, item, HF_CANCELLED);
    if (stage->opts.drop != NULL)
        stage->opts.drop(stage->opts.context, item, HF_CANCELLED);
    count(&stage->cancelled);
}

/* ---- Working. ---- */

static enum hf_status has_failed(void *context)
{
    return pipeline_failure(context) != 0 ? HF_OK : HF_PENDING;
}

/* False: the pipeline failed meanwhile. */
static bool pause_for(struct stage *stage, uint64_t ns)
{
    struct hf_pipeline *pipeline = stage->pipeline;
    uint64_t now_ns = hf_clock_now_ns(pipeline->clock);
    uint64_t until_ns = ns < HF_FOREVER - now_ns ? now_ns + ns : HF_FOREVER;

    return hf_event_until(&pipeline->failing, has_failed, pipeline,
                          pipeline->clock, until_ns) == HF_TIMEOUT;
}

static int call_work(struct stage *stage, void *item, void **result)
{
    const struct hf_stage_opts *opts = &stage->opts;
    const struct hf_clock *clock = stage->pipeline->clock;

    *result = item;
    if (!stage->pipeline->opts.times)
        return opts->work(opts->context, item, result);
    uint64_t started_ns = hf_clock_now_ns(clock);
    int code = opts->work(opts->context, item, result);
    hf_waits_note(&stage->run_times, hf_clock_now_ns(clock) - started_ns);
    return code;
}

/* Tries until it succeeds or has had its chances; returns the last code. */
static int work_on(struct stage *stage, void *item, void **result)
{
    const struct hf_stage_opts *opts = &stage->opts;
    uint64_t pause_ns = opts->pause_ns;
    int code;

    for (uint32_t tries = 0; (code = call_work(stage, item, result)) != 0;
         tries++) {
        count(&stage->failed);
        tell(stage, HF_PIPELINE_ITEM_FAILED, item, code);
        if (tries == opts->retries || !pause_for(stage, pause_ns))
            break;
        count(&stage->retried);
        pause_ns = pause_ns < opts->pause_max_ns / 2 ? 2 * pause_ns
                                                     : opts->pause_max_ns;
    }
    return code;
}

/* ---- Handing on. ---- */

static void send(struct stage *to, void *item)
{
    uint64_t deadline_ns = hf_pipeline_full_deadline_ns(to, HF_FOREVER);
    enum hf_status status = hf_blocking_put(to->queue, item, deadline_ns);

    if (status == HF_OK)
        return;
    /* A queue is not shut before the stages that lead to it have ended. */
    assert(status == HF_TIMEOUT);
    if (to->opts.on_full == HF_STAGE_DROP)
        status = HF_FULL;
    tell(to, HF_PIPELINE_ITEM_DROPPED, item, (int)status);
    if (to->opts.drop != NULL)
        to->opts.drop(to->opts.context, item, status);
}

/* The link by which it goes on; none that there is, if the route says so. */
static uint32_t choose_link(struct stage *stage, void *result)
{
    if (stage->opts.fan == HF_STAGE_BY_ROUTE)
        return stage->opts.route(stage->opts.context, result);
    /* Relaxed: only that each gets another number. */
    return hf_u32_add(&stage->next_link, 1, __ATOMIC_RELAXED) %
           stage->link_count;
}

/* To the stages that follow, or out. */
static void hand_on(struct stage *stage, void *result)
{
    const struct hf_stage_opts *opts = &stage->opts;

    if (stage->link_count == 0) {
        if (opts->out != NULL)
            opts->out(opts->context, result);
    } else if (opts->fan == HF_STAGE_TO_ALL) {
        for (uint32_t i = 0; i < stage->link_count; i++)
            send(stage->links[i], result);
    } else {
        uint32_t link = choose_link(stage, result);
        if (link >= stage->link_count) {
            bury(stage, result, HF_NOTFOUND);
            return;
        }
        send(stage->links[link], result);
    }
    count(&stage->out);
}

/* ---- The window of an ordered stage; see the drawing in the header. ---- */

static void await_place(struct stage *stage, uint64_t ticket)
{
    struct window *window = stage->window;

    while (ticket >= window->turn + window->size) {
        struct hf_event *event = &window->events[ticket % stage->opts.workers];
        uint32_t key = hf_event_prepare(event);
        window->waiting++;
        hf_mutex_unlock(&window->mutex);
        (void)hf_event_wait(event, key, stage->pipeline->clock, HF_FOREVER);
        hf_mutex_lock(&window->mutex);
        window->waiting--;
    }
}

/* Hands on what is there in a row, one after the other, outside the lock; what
 * comes meanwhile is left to this worker. */
static void hand_on_in_order(struct stage *stage)
{
    struct window *window = stage->window;

    while (!window->busy && window->places[window->turn % window->size].left) {
        struct place *place = &window->places[window->turn % window->size];
        if (place->result != NULL) {
            window->busy = true;
            hf_mutex_unlock(&window->mutex);
            hand_on(stage, place->result);
            hf_mutex_lock(&window->mutex);
            window->busy = false;
        }
        place->left = false;
        uint64_t next = window->turn++ + window->size;
        if (window->waiting > 0)
            hf_event_wake(&window->events[next % stage->opts.workers], 1);
    }
}

/* Also for an item without a result, or the next would wait for ever. */
static void leave(struct stage *stage, uint64_t ticket, void *result)
{
    struct window *window = stage->window;

    hf_mutex_lock(&window->mutex);
    await_place(stage, ticket);
    struct place *place = &window->places[ticket % window->size];
    assert(!place->left);
    *place = (struct place){.result = result, .left = true};
    hand_on_in_order(stage);
    hf_mutex_unlock(&window->mutex);
}

/* ---- The life of an item. ---- */

static void handle(struct stage *stage, void *item, uint64_t ticket)
{
    void *result = NULL;

    if (pipeline_failure(stage->pipeline) != 0) {
        cancel(stage, item);
    } else {
        int code = work_on(stage, item, &result);
        if (code != 0) {
            result = NULL;
            bury(stage, item, code);
        } else if (result == NULL) {
            count(&stage->filtered);
        }
    }
    if (stage->window != NULL)
        leave(stage, ticket, result);
    else if (result != NULL)
        hand_on(stage, result);
}

/* ---- The life of a worker. ---- */

/* The last worker of a stage ends it. */
static void end_stage(struct stage *stage)
{
    struct hf_pipeline *pipeline = stage->pipeline;

    tell(stage, HF_PIPELINE_STAGE_ENDED, NULL, 0);
    /* Both counts, acquire and release: the last one sees, and passes on, all
     * that the others did. */
    for (uint32_t i = 0; i < stage->link_count; i++)
        if (hf_u32_sub(&stage->links[i]->upstream_left, 1, __ATOMIC_ACQ_REL) ==
            1)
            hf_blocking_shutdown(stage->links[i]->queue);
    if (hf_u32_sub(&pipeline->stages_left, 1, __ATOMIC_ACQ_REL) == 1)
        hf_event_wake_all(&pipeline->ended);
}

static enum hf_status is_decided(void *context)
{
    const struct hf_pipeline *pipeline = context;
    /* Acquire: the pipeline as it was built. */
    uint32_t life = hf_u32_load(&pipeline->life, __ATOMIC_ACQUIRE);

    if (life == LIFE_GATE)
        return HF_PENDING;
    return life == LIFE_BUILDING ? HF_CANCELLED : HF_OK;
}

void hf_pipeline_work(void *argument)
{
    const struct worker *worker = argument;
    struct stage *stage = worker->stage;
    struct hf_pipeline *pipeline = stage->pipeline;
    void *item;
    uint64_t ticket = 0;

    if (hf_event_until(&pipeline->gate, is_decided, pipeline, pipeline->clock,
                       HF_FOREVER) != HF_OK)
        return; /* not all could be started */
    while (take(stage, &item, &ticket))
        handle(stage, item, ticket);
    /* Acquire and release: as in end_stage. */
    if (hf_u32_sub(&stage->workers_left, 1, __ATOMIC_ACQ_REL) == 1)
        end_stage(stage);
}
