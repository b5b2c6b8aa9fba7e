/* pipeline.c - hf_pipeline step by step: order, the end, failures, time-outs.
 *
 * Fiber 0 builds the pipeline, whose workers are fibers, too. A wake-up that is
 * lost, or a turn that nobody passes on, is a deadlock.
 */
#include "holdfast/pipeline.h"

#include "base/atomic.h"
#include "holdfast/latch.h"
#include "support/schedule.h"
#include "support/test.h"

#define ITEMS_MAX 8
#define LOG_MAX   64
#define DEAD      1000 /* item numbers in the log, by what became of them */
#define DROPPED   2000
#define ENDED     3000 /* stage numbers */

struct item {
    int number;
    int worth; /* see work */
};

/* Worth 1: a result. 0: none. 2: fails once. 3: fails always. */
struct scene {
    unsigned items;
    int worths[ITEMS_MAX];
    struct hf_stage_opts opts;
    bool by_two; /* a second fiber puts, and fiber 0 shuts in the middle */
    /* While it runs. */
    struct item made[ITEMS_MAX];
    struct hf_pipeline *line;
    struct hf_latch ready, done;
    int log[LOG_MAX];
    struct hf_atomic_u32 places; /* taken in the log */
    unsigned logged;             /* as they were in the end */
    unsigned accepted;
    enum hf_status end;
    struct hf_pipeline_stats stats;
    struct hf_stage_stats last;
};

static void note(struct scene *scene, int what)
{
    /* Relaxed: that each gets a place of its own. */
    uint32_t place = hf_u32_add(&scene->places, 1, __ATOMIC_RELAXED);

    if (place < LOG_MAX)
        scene->log[place] = what;
}

static unsigned noted(const struct scene *scene, int from)
{
    unsigned count = 0;

    for (unsigned i = 0; i < scene->logged; i++)
        count += scene->log[i] >= from && scene->log[i] < from + 1000;
    return count;
}

static int work(void *context, void *item, void **out)
{
    struct item *it = item;

    (void)context;
    if (it->worth == 0)
        *out = NULL;
    if (it->worth == 2) {
        it->worth = 1;
        return 7;
    }
    return it->worth == 3 ? 9 : 0;
}

static int keep(void *context, void *item, void **out)
{
    (void)context;
    (void)item;
    (void)out;
    return 0;
}

static void come_out(void *context, void *item)
{
    note(context, ((struct item *)item)->number);
}

static void bury(void *context, void *item, int code)
{
    (void)code;
    note(context, DEAD + ((struct item *)item)->number);
}

static void drop(void *context, void *item, enum hf_status why)
{
    (void)why;
    note(context, DROPPED + ((struct item *)item)->number);
}

static void observe(void *context, const struct hf_pipeline_note *what)
{
    if (what->event == HF_PIPELINE_STAGE_ENDED)
        note(context, ENDED + (int)what->stage);
}

static void setup(void *context, uint64_t seed)
{
    struct scene *scene = context;

    (void)seed;
    scene->logged = scene->accepted = 0;
    hf_u32_store(&scene->places, 0, __ATOMIC_RELAXED);
    hf_latch_init(&scene->ready, 1, NULL);
    hf_latch_init(&scene->done, 1, NULL);
    for (unsigned i = 0; i < scene->items; i++)
        scene->made[i] =
            (struct item){.number = (int)i, .worth = scene->worths[i]};
    scene->opts.context = scene;
    scene->opts.out = come_out;
    scene->opts.dead = bury;
    scene->opts.drop = drop;
}

static void open_line(struct scene *scene)
{
    struct hf_pipeline_opts opts = {.observe = observe, .context = scene};
    if (hf_pipeline_open(&scene->line, &opts) != HF_OK)
        schedule_wrong("could not be opened");
}

static void add_stage(struct scene *scene, const struct hf_stage_opts *opts)
{
    uint32_t number;
    if (hf_pipeline_stage(scene->line, opts, &number) != HF_OK)
        schedule_wrong("no stage can be had");
}

static void add_link(struct scene *scene, uint32_t from, uint32_t to)
{
    if (hf_pipeline_link(scene->line, from, to) != HF_OK)
        schedule_wrong("no link can be had");
}

static void start(struct scene *scene)
{
    if (hf_pipeline_start(scene->line) != HF_OK)
        schedule_wrong("could not be started");
}

static void put_all(struct scene *scene)
{
    for (unsigned i = 0; i < scene->items; i++) {
        enum hf_status status =
            hf_pipeline_put(scene->line, 0, &scene->made[i], HF_FOREVER);
        if (status == HF_OK)
            scene->accepted++;
        else if (status != HF_CLOSED)
            schedule_wrong("a put ended with %s", hf_status_text(status));
    }
}

/* Waits for the end, looks at the figures and closes. */
static void finish(struct scene *scene, uint32_t last)
{
    scene->end = hf_pipeline_await(scene->line, HF_FOREVER);
    (void)hf_pipeline_stats(scene->line, &scene->stats);
    for (uint32_t i = 0; i <= last; i++) {
        (void)hf_pipeline_stage_stats(scene->line, i, &scene->last);
        if (scene->last.in != scene->last.out + scene->last.filtered +
                                  scene->last.dead + scene->last.cancelled)
            schedule_wrong("stage %u does not add up", i);
    }
    hf_pipeline_close(scene->line);
    scene->logged = hf_u32_load(&scene->places, __ATOMIC_RELAXED);
    if (scene->logged > LOG_MAX)
        schedule_wrong("too much has come out");
}

/* ---- Order. ---- */

static void ordered_body(void *context, unsigned fiber)
{
    struct scene *scene = context;

    (void)fiber;
    open_line(scene);
    add_stage(scene, &scene->opts);
    start(scene);
    put_all(scene);
    hf_pipeline_shutdown(scene->line);
    finish(scene, 0);
}

static bool in_order(void *context, FILE *explain)
{
    struct scene *scene = context;
    int last = -1;
    unsigned out = 0;

    for (unsigned i = 0; i < scene->logged; i++) {
        fprintf(explain, "%d ", scene->log[i]);
        if (scene->log[i] >= DEAD)
            continue;
        if (scene->log[i] <= last)
            return false;
        last = scene->log[i];
        out++;
    }
    return out == 3 && noted(scene, DEAD) == 1 && scene->end == HF_OK;
}

TEST(three_workers_keep_the_order)
{
    struct scene scene = {.items = 5,
                          .worths = {1, 3, 1, 0, 2},
                          .opts = {.work = work,
                                   .workers = 3,
                                   .ordered = true,
                                   .window = 2,
                                   .queue_max = 2,
                                   .retries = 1,
                                   .pause_ns = 100}};
    struct schedule_case c = {.name = "order",
                              .fibers = 1,
                              .setup = setup,
                              .body = ordered_body,
                              .check = in_order,
                              .context = &scene};
    schedule_check(&c);
}

/* ---- The end of a diamond. ---- */

static void diamond_body(void *context, unsigned fiber)
{
    struct scene *scene = context;
    struct hf_stage_opts plain = {.work = keep, .queue_max = 1};

    (void)fiber;
    open_line(scene);
    add_stage(scene, &plain);
    plain.workers = 2;
    add_stage(scene, &plain);
    plain.workers = 1;
    add_stage(scene, &plain);
    add_stage(scene, &scene->opts);
    add_link(scene, 0, 1);
    add_link(scene, 0, 2);
    add_link(scene, 1, 3);
    add_link(scene, 2, 3);
    start(scene);
    put_all(scene);
    hf_pipeline_shutdown(scene->line);
    finish(scene, 3);
}

/* All has come out by both ways, and stages ended after those before them. */
static bool drained(void *context, FILE *explain)
{
    struct scene *scene = context;
    unsigned n = scene->logged;

    for (unsigned i = 0; i < n; i++)
        fprintf(explain, "%d ", scene->log[i]);
    if (noted(scene, 0) != 2 * scene->items || noted(scene, ENDED) != 4 ||
        scene->log[n - 1] != ENDED + 3 || scene->end != HF_OK)
        return false;
    for (unsigned i = 0; i < n; i++)
        if (scene->log[i] >= ENDED)
            return scene->log[i] == ENDED;
    return false;
}

TEST(a_diamond_drains)
{
    struct scene scene = {.items = 2, .opts = {.work = keep, .queue_max = 1}};
    struct schedule_case c = {.name = "diamond",
                              .fibers = 1,
                              .setup = setup,
                              .body = diamond_body,
                              .check = drained,
                              .context = &scene};
    schedule_check(&c);
}

/* ---- Two stages; who puts and who shuts may be two. ---- */

static void two_body(void *context, unsigned fiber)
{
    struct scene *scene = context;
    struct hf_stage_opts plain = {.work = keep,
                                  .drop = drop,
                                  .context = scene,
                                  .queue_max = 1,
                                  .workers = 2};

    if (fiber == 1) {
        (void)hf_latch_wait(&scene->ready, HF_FOREVER);
        put_all(scene);
        (void)hf_latch_count_down(&scene->done, 1);
        return;
    }
    open_line(scene);
    add_stage(scene, &plain);
    add_stage(scene, &scene->opts);
    add_link(scene, 0, 1);
    start(scene);
    (void)hf_latch_count_down(&scene->ready, 1);
    if (!scene->by_two) {
        put_all(scene);
        (void)hf_latch_count_down(&scene->done, 1);
    }
    hf_pipeline_shutdown(scene->line);
    if (hf_pipeline_put(scene->line, 0, scene->made, HF_NOW) != HF_CLOSED)
        schedule_wrong("a put was accepted after shut");
    (void)hf_latch_wait(&scene->done, HF_FOREVER);
    finish(scene, 1);
}

/* Every item that was accepted came out, or is dead, or was dropped. */
static bool accounted(void *context, FILE *explain)
{
    struct scene *scene = context;
    unsigned seen[ITEMS_MAX] = {0};
    unsigned sum = 0;

    for (unsigned i = 0; i < scene->logged; i++) {
        fprintf(explain, "%d ", scene->log[i]);
        if (scene->log[i] < ENDED && ++seen[scene->log[i] % 1000] > 1)
            return false;
        sum += scene->log[i] < ENDED;
    }
    fprintf(explain, "accepted %u, %s", scene->accepted,
            hf_status_text(scene->end));
    return sum == scene->accepted && scene->stats.put == scene->accepted &&
           scene->end == (scene->stats.failed ? HF_FAILED : HF_OK);
}

static bool failed_and_accounted(void *context, FILE *explain)
{
    struct scene *scene = context;
    return accounted(context, explain) && scene->end == HF_FAILED &&
           scene->stats.failed_stage == 1 && scene->stats.failed_code == 9;
}

TEST(what_was_accepted_before_shut_comes_out)
{
    struct scene scene = {.items = 3,
                          .worths = {1, 1, 1},
                          .opts = {.work = work, .queue_max = 1},
                          .by_two = true};
    struct schedule_case c = {.name = "shut",
                              .fibers = 2,
                              .setup = setup,
                              .body = two_body,
                              .check = accounted,
                              .context = &scene};
    schedule_check(&c);
}

/* The putter and a worker wait for room, another pauses, when it fails. */
TEST(a_pipeline_that_fails_accounts_for_all)
{
    struct scene scene = {.items = 5,
                          .worths = {1, 2, 3, 1, 2},
                          .opts = {.work = work,
                                   .workers = 2,
                                   .ordered = true,
                                   .window = 1,
                                   .queue_max = 1,
                                   .retries = 1,
                                   .pause_ns = 200,
                                   .on_failure = HF_STAGE_FAIL_FAST},
                          .by_two = false};
    struct schedule_case c = {.name = "fail fast",
                              .fibers = 1,
                              .setup = setup,
                              .body = two_body,
                              .check = failed_and_accounted,
                              .context = &scene};
    schedule_check(&c);
}

TEST(a_failure_and_a_shut_may_meet)
{
    struct scene scene = {.items = 3,
                          .worths = {1, 3, 1},
                          .opts = {.work = work,
                                   .queue_max = 1,
                                   .on_failure = HF_STAGE_FAIL_FAST},
                          .by_two = true};
    struct schedule_case c = {.name = "fail and shut",
                              .fibers = 2,
                              .setup = setup,
                              .body = two_body,
                              .check = accounted,
                              .context = &scene};
    schedule_check(&c);
}

TEST(what_is_dropped_or_late_is_accounted_for)
{
    struct scene scene = {.items = 4,
                          .worths = {1, 2, 1, 2},
                          .opts = {.work = work,
                                   .queue_max = 1,
                                   .retries = 1,
                                   .pause_ns = 400,
                                   .on_full = HF_STAGE_TIMEOUT,
                                   .full_ns = 100}};
    struct schedule_case c = {.name = "late",
                              .fibers = 2,
                              .setup = setup,
                              .body = two_body,
                              .check = accounted,
                              .context = &scene,
                              .schedules = 5000};
    scene.by_two = true;
    schedule_check(&c);
    scene.opts.on_full = HF_STAGE_DROP;
    schedule_check(&c);
}
