/* blocking.c - hf_blocking's buffered kinds, step by step.
 *
 * Each fiber runs a short script. What it was told is recorded, and the whole
 * must be explained by some order; a wake-up that is lost is a deadlock.
 */
#include "holdfast/blocking.h"

#include "base/memory.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS_MAX 4
#define CALLS_MAX  8 /* of a fiber */

enum what { END, PUT, TAKE, DRAIN, SHUT, SIZE };

/* One call: how long it may wait is in nanoseconds from its beginning. Whatever
 * has a time is called again until it succeeds, so that the numbers of puts and
 * takes are the same in every schedule and nobody waits in vain. */
struct line {
    enum what what;
    uint64_t wait_ns; /* HF_NOW, HF_FOREVER or a time */
    uint64_t rank;
};

struct scene {
    struct hf_blocking_opts opts;
    uint64_t pass;   /* items that go in and out before, see linked */
    uint64_t inside; /* items that are inside before */
    bool no_memory;  /* while the fibers run */
    struct line scripts[FIBERS_MAX][CALLS_MAX];
    /* While it runs. */
    struct hf_blocking *queue;
    struct calls *history;
    struct linear *checker;
};

static uint64_t deadline(uint64_t wait_ns)
{
    return wait_ns == HF_NOW || wait_ns == HF_FOREVER
               ? wait_ns
               : schedule_now_ns() + wait_ns;
}

static void setup(void *context, uint64_t seed)
{
    struct scene *scene = context;
    void *item;

    (void)seed;
    if (hf_blocking_open(&scene->queue, &scene->opts) != HF_OK)
        schedule_wrong("could not be opened");
    for (uint64_t i = 0; i < scene->pass; i++)
        if (hf_blocking_put(scene->queue, NULL, HF_NOW) != HF_OK ||
            hf_blocking_take(scene->queue, &item, HF_NOW) != HF_OK)
            schedule_wrong("nothing goes through");
    calls_clear(scene->history);
    for (uintptr_t i = 0; i < scene->inside; i++) {
        struct call *call =
            calls_begin(scene->history, FIBERS_MAX, MODEL_PUT, 0, 1000 + i);
        calls_end(scene->history, call,
                  hf_blocking_put(scene->queue, (void *)(1000 + i), HF_NOW), 0);
    }
    if (scene->no_memory)
        hf_memory_fail_after(0);
}

static void teardown(void *context)
{
    struct scene *scene = context;
    hf_blocking_close(scene->queue);
}

/* A try that was refused says that the queue was full, or empty. */
static uint64_t result_of(const struct line *line, enum hf_status status)
{
    if (status != HF_TIMEOUT || line->wait_ns != HF_NOW)
        return status;
    return line->what == PUT ? HF_FULL : HF_EMPTY;
}

static enum hf_status put(struct scene *scene, const struct line *line,
                          uintptr_t value)
{
    uint64_t until_ns = deadline(line->wait_ns);

    if (scene->opts.kind == HF_BLOCKING_PRIORITY)
        return hf_blocking_put_ranked(scene->queue, (void *)value, line->rank,
                                      until_ns);
    return hf_blocking_put(scene->queue, (void *)value, until_ns);
}

static enum hf_status put_or_take(struct scene *scene, const struct line *line,
                                  uintptr_t value, void **item)
{
    enum hf_status status;

    do
        status = line->what == PUT ? put(scene, line, value)
                                   : hf_blocking_take(scene->queue, item,
                                                      deadline(line->wait_ns));
    while (status == HF_TIMEOUT && line->wait_ns != HF_NOW);
    return status;
}

/* Four items at most, as four takes at once; they are one after the other. */
static void drain(struct scene *scene, unsigned fiber)
{
    struct call *calls[4];
    void *items[4] = {NULL};

    for (int i = 0; i < 4; i++)
        calls[i] = calls_begin(scene->history, fiber, MODEL_TAKE_FIRST, 0, 0);
    size_t count = hf_blocking_drain(scene->queue, items, 4);
    for (size_t i = 0; i < 4; i++)
        calls_end(scene->history, calls[i], i < count ? HF_OK : HF_TIMEOUT,
                  (uintptr_t)items[i]);
}

static void run_line(struct scene *scene, unsigned fiber, unsigned index)
{
    const struct line *line = &scene->scripts[fiber][index];
    uintptr_t value = fiber * 10 + index + 1;
    struct calls *history = scene->history;
    struct call *call;
    void *item = NULL;

    switch (line->what) {
    case PUT:
    case TAKE:
        call = calls_begin(history, fiber,
                           line->what == PUT ? MODEL_PUT : MODEL_TAKE_FIRST, 0,
                           value);
        call->argument2 = line->rank;
        enum hf_status status = put_or_take(scene, line, value, &item);
        calls_end(history, call, result_of(line, status), (uintptr_t)item);
        break;
    case SIZE:
        call = calls_begin(history, fiber, MODEL_SIZE, 0, 0);
        calls_end(history, call, HF_OK, hf_blocking_size(scene->queue));
        break;
    case DRAIN:
        drain(scene, fiber);
        break;
    default:
        hf_blocking_shutdown(scene->queue);
    }
}

static void body(void *context, unsigned fiber)
{
    struct scene *scene = context;

    for (unsigned i = 0; i < CALLS_MAX && scene->scripts[fiber][i].what != END;
         i++)
        run_line(scene, fiber, i);
}

/* Everything that was accepted was taken or is inside; linear.h does the rest.
 */
static bool check(void *context, FILE *explain)
{
    struct scene *scene = context;
    struct hf_blocking_stats stats;

    hf_memory_fail_never();
    hf_blocking_stats(scene->queue, &stats);
    if (stats.takers != 0 || stats.putters != 0 ||
        stats.put != stats.taken + stats.depth) {
        fprintf(explain, "put %d taken %d depth %d takers %d putters %d",
                (int)stats.put, (int)stats.taken, (int)stats.depth,
                (int)stats.takers, (int)stats.putters);
        return false;
    }
    return linear_check(scene->checker, scene->history, explain) == LINEAR_YES;
}

static void run_as(struct scene *scene, const char *name, unsigned fibers,
                   const struct linear_model *model)
{
    unsigned room = (unsigned)scene->inside + 8 * CALLS_MAX;
    struct schedule_case c = {.name = name,
                              .fibers = fibers,
                              .setup = setup,
                              .teardown = teardown,
                              .body = body,
                              .check = check,
                              .context = scene};

    scene->history = calls_new(FIBERS_MAX + 1, room);
    scene->checker = linear_new(model, (FIBERS_MAX + 1) * room);
    schedule_check(&c);
    linear_free(scene->checker);
    calls_free(scene->history);
}

static void run_fifo(struct scene *scene, const char *name, unsigned fibers)
{
    struct model_list list = {.room = 64, .bounded = false};

    if (scene->opts.capacity != 0)
        list = (struct model_list){.room = (uint32_t)scene->opts.capacity,
                                   .bounded = true};
    struct linear_model model = model_list(&list);
    run_as(scene, name, fibers, &model);
}

#define W HF_FOREVER /* waits */

TEST(array_waiting_for_one_place)
{
    struct scene scene = {.opts = {.kind = HF_BLOCKING_ARRAY, .capacity = 1},
                          .scripts = {{{PUT, W, 0}, {PUT, W, 0}},
                                      {{PUT, W, 0}, {PUT, W, 0}},
                                      {{TAKE, W, 0}, {TAKE, W, 0}},
                                      {{TAKE, W, 0}, {TAKE, W, 0}}}};

    run_fifo(&scene, "array: one place", 4);
}

TEST(array_full_and_empty_are_exact)
{
    struct scene scene = {
        .opts = {.kind = HF_BLOCKING_ARRAY, .capacity = 2},
        .scripts = {{{PUT, HF_NOW, 0}, {PUT, HF_NOW, 0}, {TAKE, HF_NOW, 0}},
                    {{PUT, HF_NOW, 0}, {TAKE, HF_NOW, 0}, {PUT, HF_NOW, 0}},
                    {{TAKE, HF_NOW, 0}, {SIZE, 0, 0}, {TAKE, HF_NOW, 0}}}};

    run_fifo(&scene, "array: tries", 3);
}

/* Deadlines that come while a wake-up is under way: what one who leaves was
 * woken for, another must get. */
TEST(array_time_outs_race_with_wake_ups)
{
    struct scene scene = {
        .opts = {.kind = HF_BLOCKING_ARRAY, .capacity = 1},
        .scripts = {{{PUT, 300, 0}, {PUT, W, 0}},
                    {{PUT, W, 0}, {PUT, 200, 0}, {PUT, W, 0}},
                    {{TAKE, 400, 0}, {TAKE, W, 0}},
                    {{TAKE, W, 0}, {TAKE, 100, 0}, {TAKE, 300, 0}}}};

    run_fifo(&scene, "array: time-outs", 4);
}

TEST(linked_over_the_edge_of_a_block)
{
    struct scene scene = {.opts = {.kind = HF_BLOCKING_LINKED, .capacity = 1},
                          .pass = 125,
                          .scripts = {{{PUT, W, 0}, {PUT, W, 0}},
                                      {{PUT, W, 0}, {PUT, W, 0}},
                                      {{TAKE, W, 0}, {TAKE, W, 0}},
                                      {{TAKE, 300, 0}, {TAKE, W, 0}}}};

    run_fifo(&scene, "linked: edge", 4);
}

TEST(linked_without_bound)
{
    struct scene scene = {.opts = {.kind = HF_BLOCKING_LINKED},
                          .pass = 124,
                          .scripts = {{{PUT, W, 0}, {PUT, W, 0}, {SIZE, 0, 0}},
                                      {{PUT, HF_NOW, 0}, {PUT, W, 0}},
                                      {{TAKE, W, 0}, {TAKE, HF_NOW, 0}},
                                      {{TAKE, W, 0}, {SIZE, 0, 0}}}};

    run_fifo(&scene, "linked: no bound", 4);
}

TEST(drained_places_are_for_those_who_wait)
{
    struct scene scene = {
        .opts = {.kind = HF_BLOCKING_ARRAY, .capacity = 2},
        .inside = 2,
        .scripts = {{{PUT, W, 0}}, {{PUT, W, 0}}, {{DRAIN, 0, 0}}}};

    run_fifo(&scene, "array: drain", 3);
}

/* What was accepted before is taken, what was not is not inside. */
TEST(shut_while_all_wait)
{
    const enum hf_blocking_kind kinds[] = {HF_BLOCKING_ARRAY,
                                           HF_BLOCKING_LINKED};

    for (int k = 0; k < 2; k++) {
        struct scene scene = {
            .opts = {.kind = kinds[k], .capacity = 1},
            .scripts = {{{PUT, W, 0}, {PUT, W, 0}},
                        {{PUT, W, 0}, {PUT, 300, 0}},
                        {{TAKE, W, 0}, {TAKE, W, 0}, {TAKE, 300, 0}},
                        {{SHUT, 0, 0}, {PUT, HF_NOW, 0}, {TAKE, W, 0}}}};
        run_fifo(&scene, "shut", 4);
    }
}

/* Nobody else would wake them. */
TEST(shut_sends_all_away)
{
    struct scene putters = {
        .opts = {.kind = HF_BLOCKING_ARRAY, .capacity = 1},
        .inside = 1,
        .scripts = {{{PUT, W, 0}}, {{PUT, W, 0}}, {{SHUT, 0, 0}}}};
    struct scene takers = {
        .opts = {.kind = HF_BLOCKING_ARRAY, .capacity = 1},
        .scripts = {{{TAKE, W, 0}}, {{TAKE, W, 0}}, {{SHUT, 0, 0}}}};

    run_fifo(&putters, "shut: putters", 3);
    run_fifo(&takers, "shut: takers", 3);
}

/* A putter that is woken and finds no memory leaves its place to the next. */
TEST(no_memory_for_one_is_no_sleep_for_another)
{
    struct scene scene = {
        .opts = {.kind = HF_BLOCKING_LINKED, .capacity = 20},
        .pass = 126 - 20, /* then the block is full when the queue is */
        .inside = 20,
        .no_memory = true,
        .scripts = {{{PUT, W, 0}}, {{PUT, W, 0}}, {{TAKE, W, 0}}}};

    run_fifo(&scene, "linked: memory", 3);
}

/* Ordered by (rank, order of puts): the state is a sorted list. */
struct ranked {
    uint64_t count;
    uint64_t ranks[16];
    uint64_t values[16];
};

static bool ranked_apply(void *state, const struct call *call, void *context)
{
    struct ranked *list = state;
    uint64_t at = 0;

    (void)context;
    if (call->op == MODEL_PUT && call->result == HF_OK) {
        at = list->count++;
        while (at > 0 && list->ranks[at - 1] > call->argument2) {
            list->ranks[at] = list->ranks[at - 1];
            list->values[at] = list->values[at - 1];
            at--;
        }
        list->ranks[at] = call->argument2;
        list->values[at] = call->argument;
        return true;
    }
    if (call->op == MODEL_TAKE_FIRST && call->result == HF_OK) {
        if (list->count == 0 || list->values[0] != call->value)
            return false;
        for (list->count--; at < list->count; at++) {
            list->ranks[at] = list->ranks[at + 1];
            list->values[at] = list->values[at + 1];
        }
        list->ranks[at] = 0;
        list->values[at] = 0;
        return true;
    }
    return call->result == HF_EMPTY  ? list->count == 0
           : call->result == HF_FULL ? list->count == 2
                                     : true;
}

TEST(priority_gives_the_least)
{
    struct scene scene = {.opts = {.kind = HF_BLOCKING_PRIORITY, .capacity = 2},
                          .scripts = {{{PUT, W, 5}, {PUT, W, 1}, {PUT, 300, 3}},
                                      {{PUT, W, 3}, {PUT, HF_NOW, 5}},
                                      {{TAKE, W, 0}, {TAKE, W, 0}},
                                      {{TAKE, HF_NOW, 0}, {TAKE, 300, 0}}}};
    struct linear_model model = {.state_bytes = sizeof(struct ranked),
                                 .apply = ranked_apply};

    run_as(&scene, "priority", 4, &model);
}
