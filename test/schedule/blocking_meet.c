/* blocking_meet.c - hf_blocking's SYNCHRONOUS, TRANSFER and DELAY kinds, step
 * by step.
 *
 * Each item is a slot that notes what happened to it: its put's answer, and
 * how often and when it was taken. An item is taken once if its put was told
 * HF_OK, and never if not; items that must be met are taken within their put;
 * delayed ones not before their time. A wake-up that is lost is a deadlock.
 */
#include "holdfast/blocking.h"

#include "base/memory.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS_MAX 4
#define CALLS_MAX  4 /* of a fiber */
#define DRAIN_MAX  3
#define NEVER      UINT64_MAX /* as a delay */

enum what { END, PUT, MEET, TAKE, DRAIN, SHUT, REST };

/* How long a call may wait, in nanoseconds from its beginning. */
struct line {
    enum what what;
    uint64_t wait_ns;  /* HF_NOW, HF_FOREVER or a time */
    uint64_t delay_ns; /* of a DELAY queue's item */
};

struct slot {
    enum hf_status status;
    uint64_t visible_ns;
    uint64_t begun; /* by the scene's counter, which every event moves on */
    uint64_t ended;
    uint64_t taken_first; /* the take's beginning and end */
    uint64_t taken_last;
    unsigned taken;
    unsigned dropped;
};

struct scene {
    enum hf_blocking_kind kind;
    uint64_t capacity;
    struct line scripts[FIBERS_MAX][CALLS_MAX];
    /* While it runs. */
    struct hf_blocking *queue;
    uint64_t events;
    uint64_t oks;      /* of puts */
    uint64_t received; /* by takes */
    struct slot slots[FIBERS_MAX][CALLS_MAX];
};

/* Relaxed, and no step of the scheduler: it only counts. */
static uint64_t tick(uint64_t *counter)
{
    return __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static uint64_t deadline(uint64_t wait_ns)
{
    return wait_ns == HF_NOW || wait_ns == HF_FOREVER
               ? wait_ns
               : schedule_now_ns() + wait_ns;
}

static void drop(void *context, void *item)
{
    struct slot *slot = item;

    (void)context;
    slot->dropped++;
}

static void setup(void *context, uint64_t seed)
{
    struct scene *scene = context;
    struct hf_blocking_opts opts = {
        .kind = scene->kind, .capacity = scene->capacity, .drop = drop};

    (void)seed;
    memset(scene->slots, 0, sizeof scene->slots);
    scene->events = 0;
    scene->oks = 0;
    scene->received = 0;
    if (hf_blocking_open(&scene->queue, &opts) != HF_OK)
        schedule_wrong("could not be opened");
}

static void teardown(void *context)
{
    struct scene *scene = context;
    hf_blocking_close(scene->queue);
}

static void run_put(struct scene *scene, const struct line *line,
                    struct slot *slot)
{
    uint64_t until_ns = deadline(line->wait_ns);

    slot->begun = tick(&scene->events);
    slot->visible_ns = line->delay_ns == NEVER
                           ? HF_FOREVER
                           : schedule_now_ns() + line->delay_ns;
    if (line->what == MEET)
        slot->status = hf_blocking_transfer(scene->queue, slot, until_ns);
    else if (scene->kind == HF_BLOCKING_DELAY)
        slot->status =
            hf_blocking_put_at(scene->queue, slot, slot->visible_ns, until_ns);
    else
        slot->status = hf_blocking_put(scene->queue, slot, until_ns);
    slot->ended = tick(&scene->events);
    if (slot->status == HF_OK)
        (void)tick(&scene->oks);
    else if (slot->status == HF_TIMEOUT &&
             (line->wait_ns == HF_FOREVER || schedule_now_ns() < until_ns))
        schedule_wrong("a put left before its deadline");
}

static void note_taken(struct scene *scene, struct slot *slot, uint64_t begun)
{
    slot->taken++;
    slot->taken_first = begun;
    slot->taken_last = tick(&scene->events);
    (void)tick(&scene->received);
    if (scene->kind == HF_BLOCKING_DELAY &&
        schedule_now_ns() < slot->visible_ns)
        schedule_wrong("taken before its time");
}

static void run_take(struct scene *scene, const struct line *line)
{
    uint64_t until_ns = deadline(line->wait_ns);
    uint64_t begun = tick(&scene->events);
    void *item;
    enum hf_status status = hf_blocking_take(scene->queue, &item, until_ns);

    if (status == HF_OK)
        note_taken(scene, item, begun);
    else if (status == HF_TIMEOUT &&
             (line->wait_ns == HF_FOREVER || schedule_now_ns() < until_ns))
        schedule_wrong("a take left before its deadline");
}

static void run_drain(struct scene *scene)
{
    uint64_t begun = tick(&scene->events);
    void *items[DRAIN_MAX];
    size_t count = hf_blocking_drain(scene->queue, items, DRAIN_MAX);

    for (size_t i = 0; i < count; i++)
        note_taken(scene, items[i], begun);
}

/* Takes until nothing is left of a queue that was shut, or is to be. */
static void run_rest(struct scene *scene)
{
    uint64_t begun = tick(&scene->events);
    void *item;
    enum hf_status status;

    while ((status = hf_blocking_take(scene->queue, &item, HF_FOREVER)) ==
           HF_OK)
        note_taken(scene, item, begun);
    if (status != HF_CLOSED)
        schedule_wrong("the rest ends with %s", hf_status_text(status));
}

static void body(void *context, unsigned fiber)
{
    struct scene *scene = context;

    for (unsigned i = 0; i < CALLS_MAX; i++) {
        const struct line *line = &scene->scripts[fiber][i];
        if (line->what == PUT || line->what == MEET)
            run_put(scene, line, &scene->slots[fiber][i]);
        else if (line->what == TAKE)
            run_take(scene, line);
        else if (line->what == DRAIN)
            run_drain(scene);
        else if (line->what == SHUT)
            hf_blocking_shutdown(scene->queue);
        else if (line->what == REST)
            run_rest(scene);
    }
}

static bool slot_is_right(const struct scene *scene, const struct line *line,
                          const struct slot *slot, FILE *explain)
{
    bool must_meet =
        line->what == MEET || scene->kind == HF_BLOCKING_SYNCHRONOUS;

    if (slot->status != HF_OK && slot->taken != 0)
        fprintf(explain, "put: %s, but taken", hf_status_text(slot->status));
    else if (slot->taken > 1)
        fprintf(explain, "taken %u times", slot->taken);
    else if (must_meet && slot->status == HF_OK && slot->taken == 0)
        fprintf(explain, "nobody was met");
    else if (slot->taken != 0 && slot->taken_last < slot->begun)
        fprintf(explain, "taken before it was put");
    else if (must_meet && slot->taken != 0 && slot->taken_first > slot->ended)
        fprintf(explain, "the put ended before the take began");
    else
        return true;
    return false;
}

static bool check(void *context, FILE *explain)
{
    struct scene *scene = context;
    struct hf_blocking_stats stats;

    for (unsigned f = 0; f < FIBERS_MAX; f++)
        for (unsigned i = 0; i < CALLS_MAX; i++) {
            const struct line *line = &scene->scripts[f][i];
            if ((line->what == PUT || line->what == MEET) &&
                !slot_is_right(scene, line, &scene->slots[f][i], explain))
                return false;
        }
    hf_blocking_stats(scene->queue, &stats);
    fprintf(explain, "put %d (%d) taken %d (%d) depth %d", (int)stats.put,
            (int)scene->oks, (int)stats.taken, (int)scene->received,
            (int)stats.depth);
    return stats.takers == 0 && stats.putters == 0 && stats.put == scene->oks &&
           stats.taken == scene->received &&
           stats.depth == scene->oks - scene->received &&
           (!stats.shutdown || stats.depth == 0);
}

static void run(struct scene *scene, const char *name, unsigned fibers)
{
    struct schedule_case c = {.name = name,
                              .fibers = fibers,
                              .setup = setup,
                              .teardown = teardown,
                              .body = body,
                              .check = check,
                              .context = scene};
    schedule_check(&c);
}

#define W HF_FOREVER /* waits */

TEST(synchronous_all_meet)
{
    struct scene scene = {.kind = HF_BLOCKING_SYNCHRONOUS,
                          .scripts = {{{PUT, W, 0}, {PUT, W, 0}},
                                      {{PUT, W, 0}, {PUT, W, 0}},
                                      {{TAKE, W, 0}, {TAKE, W, 0}},
                                      {{TAKE, W, 0}, {TAKE, W, 0}}}};

    run(&scene, "synchronous: all meet", 4);
}

TEST(synchronous_time_outs_race_with_meetings)
{
    struct scene scene = {
        .kind = HF_BLOCKING_SYNCHRONOUS,
        .scripts = {{{PUT, 300, 0}, {PUT, HF_NOW, 0}, {PUT, 200, 0}},
                    {{PUT, 500, 0}, {TAKE, 300, 0}},
                    {{TAKE, 200, 0}, {TAKE, 300, 0}},
                    {{TAKE, HF_NOW, 0}, {TAKE, 400, 0}}}};

    run(&scene, "synchronous: time-outs", 4);
}

TEST(synchronous_shut_while_all_wait)
{
    struct scene scene = {.kind = HF_BLOCKING_SYNCHRONOUS,
                          .scripts = {{{PUT, W, 0}, {PUT, W, 0}},
                                      {{PUT, W, 0}},
                                      {{TAKE, W, 0}, {REST, 0, 0}},
                                      {{SHUT, 0, 0}}}};

    run(&scene, "synchronous: shut", 4);
}

/* Nobody else would end their waits. */
TEST(shut_sends_all_away)
{
    struct scene putters = {
        .kind = HF_BLOCKING_TRANSFER,
        .scripts = {{{MEET, W, 0}}, {{MEET, W, 0}}, {{SHUT, 0, 0}}}};
    struct scene takers = {
        .kind = HF_BLOCKING_SYNCHRONOUS,
        .scripts = {{{TAKE, W, 0}}, {{TAKE, W, 0}}, {{SHUT, 0, 0}}}};

    run(&putters, "transfer: putters sent away", 3);
    run(&takers, "synchronous: takers sent away", 3);
}

TEST(transfer_is_withdrawn_or_taken)
{
    struct scene scene = {
        .kind = HF_BLOCKING_TRANSFER,
        .scripts = {{{MEET, 300, 0}, {PUT, W, 0}, {MEET, HF_NOW, 0}},
                    {{PUT, W, 0}, {MEET, 200, 0}},
                    {{TAKE, 200, 0}, {TAKE, 300, 0}},
                    {{TAKE, HF_NOW, 0}, {DRAIN, 0, 0}, {PUT, HF_NOW, 0}}}};

    run(&scene, "transfer: withdrawn", 4);
}

TEST(transfer_all_meet)
{
    struct scene scene = {
        .kind = HF_BLOCKING_TRANSFER,
        .scripts = {{{MEET, W, 0}, {PUT, W, 0}, {MEET, W, 0}},
                    {{PUT, W, 0}, {MEET, W, 0}},
                    {{TAKE, W, 0}, {TAKE, W, 0}, {TAKE, W, 0}},
                    {{TAKE, W, 0}, {TAKE, W, 0}}}};

    run(&scene, "transfer: all meet", 4);
}

TEST(transfer_shut_while_all_wait)
{
    struct scene scene = {.kind = HF_BLOCKING_TRANSFER,
                          .scripts = {{{PUT, W, 0}, {MEET, W, 0}},
                                      {{MEET, W, 0}, {PUT, W, 0}},
                                      {{TAKE, W, 0}, {REST, 0, 0}},
                                      {{SHUT, 0, 0}, {TAKE, W, 0}}}};

    run(&scene, "transfer: shut", 4);
}

/* Later items first, so that leaders are deposed. */
TEST(delay_all_are_taken_at_their_time)
{
    struct scene scene = {
        .kind = HF_BLOCKING_DELAY,
        .scripts = {{{PUT, W, 900}, {PUT, W, 500}, {PUT, W, 100}},
                    {{PUT, W, 700}, {PUT, W, 0}},
                    {{TAKE, W, 0}, {TAKE, W, 0}, {TAKE, W, 0}},
                    {{TAKE, W, 0}, {TAKE, W, 0}}}};

    run(&scene, "delay: all taken", 4);
}

/* A leader that waits for an item that never comes must not lead on: another
 * could be woken for the earlier item, and leave it to the leader. */
TEST(delay_earlier_items_depose_the_leader)
{
    struct scene scene = {
        .kind = HF_BLOCKING_DELAY,
        .scripts = {{{PUT, W, NEVER}, {PUT, W, 500}, {PUT, W, 100}},
                    {{TAKE, W, 0}},
                    {{TAKE, W, 0}}}};

    run(&scene, "delay: deposed", 3);
}

/* A leader whose deadline comes first leaves others behind, who must lead. */
TEST(delay_leaders_leave)
{
    struct scene scene = {
        .kind = HF_BLOCKING_DELAY,
        .scripts = {
            {{PUT, W, 3000}, {PUT, W, 2000}, {PUT, W, 2500}, {PUT, W, 900}},
            {{TAKE, 400, 0}, {TAKE, 1500, 0}},
            {{TAKE, 900, 0}},
            {{TAKE, W, 0}}}};

    run(&scene, "delay: leaders leave", 4);
}

/* Room for one: putters and takers wait. */
TEST(delay_bounded)
{
    struct scene scene = {.kind = HF_BLOCKING_DELAY,
                          .capacity = 1,
                          .scripts = {{{PUT, W, 500}, {PUT, W, 0}},
                                      {{PUT, W, 200}, {PUT, W, 300}},
                                      {{TAKE, W, 0}, {TAKE, W, 0}},
                                      {{TAKE, W, 0}, {TAKE, W, 0}}}};

    run(&scene, "delay: bounded", 4);
}

TEST(delay_shut_gives_out_the_rest_in_time)
{
    struct scene scene = {.kind = HF_BLOCKING_DELAY,
                          .scripts = {{{PUT, W, 600}, {PUT, W, 300}},
                                      {{SHUT, 0, 0}, {REST, 0, 0}},
                                      {{REST, 0, 0}},
                                      {{TAKE, 500, 0}, {REST, 0, 0}}}};

    run(&scene, "delay: shut", 4);
}
