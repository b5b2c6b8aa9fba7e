/* pipeline.c - stages, links, order, and the end. Queues that are full are in
 * pipeline_full.c, failures in pipeline_failure.c. */
#include "holdfast/pipeline.h"

#include "holdfast/latch.h"
#include "support/clock.h"
#include "support/pipeline.h"
#include "support/test.h"

#define MS UINT64_C(1000000)

/* ---- Stages and links. ---- */

static int add_one(void *context, void *item, void **out)
{
    (void)context;
    (void)out;
    ++*(int *)item;
    return 0;
}

static int pass_odd(void *context, void *item, void **out)
{
    (void)context;
    if (*(int *)item % 2 == 0)
        *out = NULL;
    return 0;
}

/* Another pointer goes on. */
static int replace(void *context, void *item, void **out)
{
    int *others = context;
    *out = &others[*(int *)item];
    return 0;
}

TEST(an_item_goes_from_stage_to_stage_and_out)
{
    int others[12];
    struct list list = {0};
    struct hf_pipeline *line;
    struct hf_stage_stats stats;
    uint32_t first, second, third;
    int items[10];

    for (int i = 0; i < 12; i++)
        others[i] = 100 + i;
    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    first = stage(line, &(struct hf_stage_opts){.work = add_one});
    second = stage(line, &(struct hf_stage_opts){.work = pass_odd});
    third = stage(line,
                  &(struct hf_stage_opts){.work = list_note, .context = &list});
    uint32_t middle = stage(
        line, &(struct hf_stage_opts){.work = replace, .context = others});
    CHECK_EQ(hf_pipeline_link(line, first, second), HF_OK);
    CHECK_EQ(hf_pipeline_link(line, second, middle), HF_OK);
    CHECK_EQ(hf_pipeline_link(line, middle, third), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    for (int i = 0; i < 10; i++) {
        items[i] = i;
        CHECK_EQ(hf_pipeline_put(line, first, &items[i], HF_FOREVER), HF_OK);
    }
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, in_a_minute()), HF_OK);
    CHECK_EQ(hf_pipeline_stage_stats(line, second, &stats), HF_OK);
    CHECK_EQ(stats.in, 10);
    CHECK_EQ(stats.out, 5);
    CHECK_EQ(stats.filtered, 5);
    CHECK_EQ(list.count, 5);
    for (int i = 0; i < 5; i++)
        CHECK(list.items[i] == &others[2 * i + 1]);
    check_balance(line, third);
    hf_pipeline_close(line);
}

TEST(bad_input_is_refused_and_changes_nothing)
{
    struct hf_pipeline *line;
    struct hf_pipeline_stats stats;
    struct hf_stage_stats figures;
    struct hf_stage_opts good = {.work = add_one};
    struct hf_stage_opts bad[] = {
        {.work = NULL},
        {.work = add_one, .workers = HF_STAGE_WORKERS_MAX + 1},
        {.work = add_one, .queue_max = HF_STAGE_QUEUE_MAX + 1},
        {.work = add_one, .window = HF_STAGE_QUEUE_MAX + 1},
        {.work = add_one, .on_full = (enum hf_stage_full)3},
        {.work = add_one, .on_failure = (enum hf_stage_failure)2},
        {.work = add_one, .fan = (enum hf_stage_fan)3},
        {.work = add_one, .fan = HF_STAGE_BY_ROUTE},
    };
    uint32_t number = 77;
    int item = 0;

    CHECK_EQ(hf_pipeline_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_INVALID); /* no stage */
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_EQ(hf_pipeline_stage(line, &bad[i], &number), HF_INVALID);
    CHECK_EQ(hf_pipeline_stage(NULL, &good, &number), HF_INVALID);
    CHECK_EQ(hf_pipeline_stage(line, NULL, &number), HF_INVALID);
    CHECK_EQ(hf_pipeline_stage(line, &good, NULL), HF_INVALID);
    CHECK_EQ(number, 77);
    CHECK_EQ(hf_pipeline_stats(line, &stats), HF_OK);
    CHECK_EQ(stats.stages, 0);
    CHECK_EQ(stats.state, HF_PIPELINE_BUILDING);
    CHECK_EQ(hf_pipeline_stage(line, &good, &number), HF_OK);
    CHECK_EQ(number, 0);
    CHECK_EQ(hf_pipeline_put(line, 0, &item, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_INVALID);
    CHECK_EQ(hf_pipeline_link(line, 1, 0), HF_INVALID);
    CHECK_EQ(hf_pipeline_link(NULL, 0, 0), HF_INVALID);
    CHECK_EQ(hf_pipeline_start(NULL), HF_INVALID);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_INVALID);
    CHECK_EQ(hf_pipeline_stage(line, &good, &number), HF_INVALID);
    CHECK_EQ(hf_pipeline_put(line, 1, &item, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_pipeline_put(line, 0, NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_pipeline_put(NULL, 0, &item, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_pipeline_await(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_pipeline_stats(NULL, &stats), HF_INVALID);
    CHECK_EQ(hf_pipeline_stats(line, NULL), HF_INVALID);
    CHECK_EQ(hf_pipeline_stage_stats(line, 1, &figures), HF_INVALID);
    CHECK_EQ(hf_pipeline_stage_stats(line, 0, NULL), HF_INVALID);
    hf_pipeline_shutdown(NULL);
    hf_pipeline_close(NULL);
    hf_pipeline_close(line);
}

TEST(a_link_that_closes_a_cycle_is_refused)
{
    struct hf_pipeline *line;
    struct list list = {0};
    struct hf_stage_opts opts = {
        .work = keep, .out = list_out, .context = &list};
    int item = 0;

    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    for (uint32_t i = 0; i < 5; i++)
        CHECK_EQ(stage(line, &opts), i);
    CHECK_EQ(hf_pipeline_link(line, 0, 0), HF_INVALID);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_EXISTS);
    CHECK_EQ(hf_pipeline_link(line, 1, 0), HF_INVALID);
    /* A diamond is none. */
    CHECK_EQ(hf_pipeline_link(line, 0, 2), HF_OK);
    CHECK_EQ(hf_pipeline_link(line, 1, 3), HF_OK);
    CHECK_EQ(hf_pipeline_link(line, 2, 3), HF_OK);
    CHECK_EQ(hf_pipeline_link(line, 3, 0), HF_INVALID);
    CHECK_EQ(hf_pipeline_link(line, 3, 2), HF_INVALID);
    CHECK_EQ(hf_pipeline_link(line, 3, 4), HF_OK);
    CHECK_EQ(hf_pipeline_link(line, 4, 1), HF_INVALID);
    CHECK_EQ(hf_pipeline_link(line, 4, 0), HF_INVALID);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    CHECK_EQ(hf_pipeline_link(line, 1, 2), HF_INVALID); /* is started */
    CHECK_EQ(hf_pipeline_put(line, 1, &item, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_pipeline_put(line, 0, &item, HF_FOREVER), HF_OK);
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, in_a_minute()), HF_OK);
    CHECK_EQ(list.count, 2); /* by two ways, and no other */
    hf_pipeline_close(line);
}

TEST(a_cycle_is_seen_in_any_order_of_the_numbers)
{
    struct hf_pipeline *line;
    struct hf_stage_opts opts = {.work = keep};

    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    for (uint32_t i = 0; i < 6; i++)
        CHECK_EQ(stage(line, &opts), i);
    for (uint32_t i = 5; i > 0; i--)
        CHECK_EQ(hf_pipeline_link(line, i, i - 1), HF_OK);
    for (uint32_t i = 1; i < 6; i++)
        CHECK_EQ(hf_pipeline_link(line, 0, i), HF_INVALID);
    CHECK_EQ(hf_pipeline_link(line, 5, 0), HF_OK); /* a shorter way */
    hf_pipeline_close(line);
}

TEST(there_are_no_more_stages_than_the_most)
{
    struct hf_pipeline *line;
    struct hf_stage_opts opts = {.work = add_one};
    uint32_t number;

    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    for (uint32_t i = 0; i < HF_PIPELINE_STAGES_MAX; i++)
        CHECK_EQ(stage(line, &opts), i);
    CHECK_EQ(hf_pipeline_stage(line, &opts, &number), HF_FULL);
    /* The last two, which are the highest bits. */
    CHECK_EQ(hf_pipeline_link(line, 63, 62), HF_OK);
    CHECK_EQ(hf_pipeline_link(line, 62, 63), HF_INVALID);
    hf_pipeline_close(line);
}

static uint32_t by_value(void *context, void *item)
{
    (void)context;
    return (uint32_t)(*(int *)item % 4);
}

/* 12 items through one stage to three and from those to one. */
static void fan(enum hf_stage_fan way, unsigned per_branch, unsigned dead)
{
    struct hf_pipeline *line;
    struct list list = {0};
    struct list graves = {0};
    struct hf_stage_opts head = {.work = keep,
                                 .fan = way,
                                 .route = by_value,
                                 .dead = list_dead,
                                 .context = &graves};
    struct hf_stage_opts branch = {.work = keep};
    struct hf_stage_opts tail = {
        .work = keep, .out = list_out, .context = &list};
    struct hf_stage_stats stats;
    int items[12];

    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    CHECK_EQ(stage(line, &head), 0);
    for (uint32_t i = 1; i < 4; i++) {
        CHECK_EQ(stage(line, &branch), i);
        CHECK_EQ(hf_pipeline_link(line, 0, i), HF_OK);
    }
    CHECK_EQ(stage(line, &tail), 4);
    for (uint32_t i = 1; i < 4; i++)
        CHECK_EQ(hf_pipeline_link(line, i, 4), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    for (int i = 0; i < 12; i++) {
        items[i] = i;
        CHECK_EQ(hf_pipeline_put(line, 0, &items[i], HF_FOREVER), HF_OK);
    }
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, in_a_minute()), HF_OK);
    for (uint32_t i = 1; i < 4; i++) {
        CHECK_EQ(hf_pipeline_stage_stats(line, i, &stats), HF_OK);
        CHECK_EQ(stats.in, per_branch);
    }
    CHECK_EQ(list.count, 3 * per_branch);
    CHECK_EQ(graves.count, dead);
    for (unsigned i = 0; i < dead; i++) {
        CHECK_EQ(*(int *)graves.items[i] % 4, 3);
        CHECK_EQ(graves.codes[i], HF_NOTFOUND);
    }
    check_balance(line, 4);
    hf_pipeline_close(line);
}

TEST(fan_out_goes_to_all_in_turn_or_by_route_and_fan_in_brings_it_together)
{
    fan(HF_STAGE_TO_ALL, 12, 0);
    fan(HF_STAGE_IN_TURN, 4, 0);
    fan(HF_STAGE_BY_ROUTE, 3, 3); /* there is no fourth link */
}

/* ---- Order. ---- */

#define CROWD 4

/* Four at a time: the last of them to come is the first to be done. */
struct crowd {
    struct hf_latch done[CROWD + 1]; /* the last one is open */
    struct list list;
};

static int in_reverse(void *context, void *item, void **out)
{
    struct crowd *crowd = context;
    int place = *(int *)item;

    (void)hf_latch_wait(&crowd->done[place + 1], HF_FOREVER);
    list_add(&crowd->list, item, 0);
    (void)hf_latch_count_down(&crowd->done[place], 1);
    if (place == 1)
        *out = NULL;
    return place == 2 ? 5 : 0;
}

TEST(order_is_kept_by_many_workers_if_asked)
{
    struct crowd crowd = {0};
    struct list list = {0};
    struct hf_pipeline *line;
    struct hf_stage_opts first = {.work = in_reverse,
                                  .context = &crowd,
                                  .workers = CROWD,
                                  .ordered = true};
    struct hf_stage_opts last = {
        .work = keep, .out = list_out, .context = &list};
    int items[CROWD];

    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    (void)stage(line, &first);
    (void)stage(line, &last);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    for (int round = 0; round < 20; round++) {
        crowd.list.count = 0;
        for (int i = 0; i <= CROWD; i++)
            CHECK_EQ(hf_latch_init(&crowd.done[i], 1, NULL), HF_OK);
        CHECK_EQ(hf_latch_count_down(&crowd.done[CROWD], 1), HF_OK);
        for (int i = 0; i < CROWD; i++) {
            items[i] = i;
            CHECK_EQ(hf_pipeline_put(line, 0, &items[i], HF_FOREVER), HF_OK);
        }
        /* Two of four go on: one is dead, one was filtered. */
        AWAIT(inside(line) == 0);
        for (unsigned i = 0; i < CROWD; i++)
            CHECK(crowd.list.items[i] == &items[CROWD - 1 - i]);
        CHECK_EQ(list.count, 2);
        CHECK(list.items[0] == &items[0]);
        CHECK(list.items[1] == &items[3]);
        list.count = 0;
    }
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, in_a_minute()), HF_OK);
    check_balance(line, 1);
    hf_pipeline_close(line);
}

static int first_waits(void *context, void *item, void **out)
{
    return *(int *)item == 0 ? door_pass(context, item, out) : 0;
}

TEST(no_more_results_are_held_back_than_the_window_says)
{
    struct test_clock hands = {.now_ns = 1000 * MS};
    struct hf_pipeline_opts opts = {.clock = test_clock(&hands)};
    struct door door;
    struct hf_stage_opts wide = {.work = first_waits,
                                 .context = &door,
                                 .workers = 2,
                                 .ordered = true,
                                 .window = 3};
    struct list list = {0};
    struct hf_stage_opts last = {
        .work = keep, .out = list_out, .context = &list};
    struct hf_stage_stats stats;
    struct hf_pipeline *line;
    int items[8];

    door_init(&door);
    CHECK_EQ(hf_pipeline_open(&line, &opts), HF_OK);
    (void)stage(line, &wide);
    (void)stage(line, &last);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    for (int i = 0; i < 8; i++) {
        items[i] = i;
        CHECK_EQ(hf_pipeline_put(line, 0, &items[i], HF_NOW), HF_OK);
    }
    /* One in the door, two held back in the window of three, and one that has
     * no place in it and waits, as the stage after it does. */
    AWAIT(hf_pipeline_stage_stats(line, 0, &stats) == HF_OK &&
          stats.depth == 4);
    test_clock_await_sleepers(&hands, 2);
    CHECK_EQ(hf_pipeline_stage_stats(line, 0, &stats), HF_OK);
    CHECK_EQ(stats.depth, 4);
    CHECK_EQ(stats.active, 4);
    CHECK_EQ(list_count(&list), 0);
    hf_latch_count_down(&door.open, 1);
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, HF_FOREVER), HF_OK);
    CHECK_EQ(list.count, 8);
    for (int i = 0; i < 8; i++)
        CHECK(list.items[i] == &items[i]);
    hf_pipeline_close(line);
}

/* ---- The end. ---- */

TEST(shut_drains_stage_by_stage_and_takes_nothing_new)
{
    struct test_clock hands = {.now_ns = 1000 * MS};
    struct hf_pipeline_opts opts = {.clock = test_clock(&hands)};
    struct door door;
    struct hf_stage_opts first = {.work = door_pass, .context = &door};
    struct list list = {0};
    struct hf_stage_opts next = {
        .work = keep, .workers = 3, .out = list_out, .context = &list};
    struct hf_pipeline_stats stats;
    struct hf_pipeline *line;
    int items[30];

    door_init(&door);
    CHECK_EQ(hf_pipeline_open(&line, &opts), HF_OK);
    (void)stage(line, &first);
    (void)stage(line, &next);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    for (int i = 0; i < 30; i++)
        CHECK_EQ(hf_pipeline_put(line, 0, &items[i], HF_NOW), HF_OK);
    CHECK_EQ(hf_pipeline_await(line, HF_NOW), HF_TIMEOUT); /* not shut */
    hf_pipeline_shutdown(line);
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_put(line, 0, &items[0], HF_FOREVER), HF_CLOSED);
    CHECK_EQ(hf_pipeline_await(line, 1), HF_TIMEOUT);
    CHECK_EQ(hf_pipeline_stats(line, &stats), HF_OK);
    CHECK_EQ(stats.state, HF_PIPELINE_SHUT);
    CHECK_EQ(stats.inside, 30);
    hf_latch_count_down(&door.open, 1);
    CHECK_EQ(hf_pipeline_await(line, HF_FOREVER), HF_OK);
    CHECK_EQ(list.count, 30);
    CHECK_EQ(hf_pipeline_stats(line, &stats), HF_OK);
    CHECK_EQ(stats.state, HF_PIPELINE_ENDED);
    CHECK_EQ(stats.inside, 0);
    CHECK_EQ(stats.refused, 1);
    CHECK_EQ(hf_pipeline_start(line), HF_CLOSED);
    hf_pipeline_close(line);
}

TEST(what_was_never_started_can_be_shut_awaited_and_closed)
{
    struct hf_pipeline *line;
    struct hf_stage_opts opts = {.work = keep, .workers = 3, .ordered = true};

    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    (void)stage(line, &opts);
    CHECK_EQ(hf_pipeline_await(line, HF_NOW), HF_TIMEOUT);
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_CLOSED);
    hf_pipeline_close(line);
}
