/* queue.c - the unbounded queue, each step in the hands of a seed.
 *
 * Segments of two slots: every few calls one fills, is followed by another,
 * empties, and is used anew.
 */
#include "holdfast/queue.h"

#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define SCHEDULE_COUNT 30000 /* of each case */
#define FIBERS_MAX     4
#define CALLS_MAX      8 /* of one fiber */
#define ITEMS_MAX      (FIBERS_MAX * CALLS_MAX)

struct item {
    uint64_t number; /* plain: the thread sanitizer watches the hand-over */
};

struct scene {
    struct hf_queue *queue;
    struct calls *history;
    struct linear *checker;
    struct item items[ITEMS_MAX]; /* written by who puts, read by who takes */
    unsigned calls;               /* of each fiber */
};

static void setup(void *context, uint64_t seed)
{
    struct scene *scene = context;
    struct hf_queue_opts opts = {.segment = seed % 4 == 0 ? 4 : 2};

    if (hf_queue_open(&scene->queue, &opts) != HF_OK)
        schedule_wrong("no queue");
    calls_clear(scene->history);
    memset(scene->items, 0, sizeof scene->items);
}

static void teardown(void *context)
{
    struct scene *scene = context;

    hf_queue_close(scene->queue);
}

static void put(struct scene *scene, unsigned thread, unsigned index)
{
    struct item *item = &scene->items[thread * CALLS_MAX + index];

    item->number = thread * 100 + index + 1;
    struct call *call = calls_begin(scene->history, thread, MODEL_PUT, 0,
                                    thread * 100 + index + 1);
    calls_end(scene->history, call, hf_queue_put(scene->queue, item), 0);
}

static enum hf_status take(struct scene *scene, unsigned thread)
{
    void *found = NULL;
    struct call *call =
        calls_begin(scene->history, thread, MODEL_TAKE_FIRST, 0, 0);
    enum hf_status status = hf_queue_take(scene->queue, &found);
    uint64_t number = status == HF_OK ? ((struct item *)found)->number : 0;

    calls_end(scene->history, call, status, number);
    return status;
}

/* Takes what is left, as one more thread, and looks at the whole. */
static bool check(void *context, FILE *explain)
{
    struct scene *scene = context;
    struct hf_queue_stats stats;
    uint64_t left = hf_queue_size(scene->queue);

    for (uint64_t i = 0; i < left; i++)
        (void)take(scene, FIBERS_MAX);
    if (take(scene, FIBERS_MAX) != HF_EMPTY) {
        fprintf(explain, "size %llu is too small", (unsigned long long)left);
        return false;
    }
    hf_queue_stats(scene->queue, &stats);
    if (stats.segments < stats.spare + stats.retired + 1) {
        fprintf(explain, "%llu segments, %llu spare, %llu retired",
                (unsigned long long)stats.segments,
                (unsigned long long)stats.spare,
                (unsigned long long)stats.retired);
        return false;
    }
    return linear_check(scene->checker, scene->history, explain) == LINEAR_YES;
}

static void run(const char *name, unsigned fibers, unsigned calls,
                void (*body)(void *context, unsigned fiber))
{
    struct model_list list = {.room = ITEMS_MAX};
    struct linear_model model = model_list(&list);
    struct scene scene = {
        .history = calls_new(FIBERS_MAX + 1, ITEMS_MAX + 1),
        .checker = linear_new(&model, 3 * ITEMS_MAX),
        .calls = calls,
    };
    struct schedule_case c = {.name = name,
                              .fibers = fibers,
                              .setup = setup,
                              .teardown = teardown,
                              .body = body,
                              .check = check,
                              .context = &scene,
                              .schedules = SCHEDULE_COUNT};
    CHECK(calls <= CALLS_MAX && fibers <= FIBERS_MAX);
    schedule_check(&c);
    linear_free(scene.checker);
    calls_free(scene.history);
}

static void mixed(void *context, unsigned fiber)
{
    struct scene *scene = context;

    for (unsigned i = 0; i < scene->calls; i++) {
        if (schedule_random(2) == 0)
            put(scene, fiber, i);
        else
            (void)take(scene, fiber);
    }
}

TEST(any_calls_of_three_threads_have_an_order)
{
    run("mixed", 3, 5, mixed);
}

static void one_way(void *context, unsigned fiber)
{
    struct scene *scene = context;

    for (unsigned i = 0; i < scene->calls; i++) {
        if (fiber % 2 == 0)
            put(scene, fiber, i);
        else
            (void)take(scene, fiber);
    }
}

TEST(one_puts_and_one_takes)
{
    run("one and one", 2, 8, one_way);
}

TEST(two_put_and_two_take)
{
    run("two and two", 4, 4, one_way);
}

/* Nearly empty all the time: what is taken is what was just put, and segments
 * go through all hands. */
static void in_and_out(void *context, unsigned fiber)
{
    struct scene *scene = context;

    for (unsigned i = 0; i < scene->calls; i++) {
        put(scene, fiber, i);
        (void)take(scene, fiber);
        if (i == fiber && hf_queue_size(scene->queue) > ITEMS_MAX)
            schedule_wrong("size");
    }
}

TEST(segments_are_used_anew_only_when_nobody_looks)
{
    run("in and out", 3, 5, in_and_out);
}

TEST(two_threads_use_many_segments)
{
    run("many segments", 2, 8, in_and_out);
}

/* One puts, one takes, and one asks how many there are: never more than were
 * put, and (the queue asserts it) never fewer put than taken. */
static void counted(void *context, unsigned fiber)
{
    struct scene *scene = context;

    if (fiber < 2)
        one_way(context, fiber);
    for (unsigned i = 0; fiber == 2 && i < scene->calls; i++)
        if (hf_queue_size(scene->queue) > scene->calls)
            schedule_wrong("size");
}

TEST(who_counts_sees_a_size_that_can_be)
{
    run("size", 3, 8, counted);
}
