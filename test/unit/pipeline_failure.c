/* pipeline_failure.c - items that fail, a pipeline that fails, memory that
 * cannot be had; and who is told. */
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "support/clock.h"
#include "support/pipeline.h"

#define MS UINT64_C(1000000)

/* ---- One item. ---- */

/* Fails so many times, then succeeds; dead and drop go to lists. */
struct trouble {
    struct hf_atomic_u32 left;  /* failures to come */
    struct hf_atomic_u32 calls; /* so far */
    struct list out, dead, dropped;
    struct door door;
};

static int fail_first(void *context, void *item, void **out)
{
    struct trouble *trouble = context;
    uint32_t calls = hf_u32_add(&trouble->calls, 1, __ATOMIC_ACQ_REL) + 1;
    uint32_t left = hf_u32_load(&trouble->left, __ATOMIC_ACQUIRE);

    (void)item;
    *out = NULL; /* of no effect if it fails */
    if (left > 0) {
        hf_u32_store(&trouble->left, left - 1, __ATOMIC_RELEASE);
        return (int)(100 + calls);
    }
    *out = item;
    return 0;
}

static void trouble_out(void *context, void *item)
{
    list_add(&((struct trouble *)context)->out, item, 0);
}

static void trouble_dead(void *context, void *item, int code)
{
    list_add(&((struct trouble *)context)->dead, item, code);
}

static void trouble_drop(void *context, void *item, enum hf_status why)
{
    list_add(&((struct trouble *)context)->dropped, item, (int)why);
}

static uint32_t calls_of(struct trouble *trouble)
{
    return hf_u32_load(&trouble->calls, __ATOMIC_ACQUIRE);
}

static struct hf_stage_opts troubled(struct trouble *trouble)
{
    return (struct hf_stage_opts){.work = fail_first,
                                  .out = trouble_out,
                                  .dead = trouble_dead,
                                  .drop = trouble_drop,
                                  .context = trouble};
}

static struct hf_pipeline *one_stage(const struct hf_stage_opts *opts,
                                     const struct hf_clock *clock)
{
    struct hf_pipeline_opts all = {.clock = clock};
    struct hf_pipeline *line;

    CHECK_EQ(hf_pipeline_open(&line, &all), HF_OK);
    (void)stage(line, opts);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    return line;
}

TEST(an_item_that_fails_is_tried_again_after_pauses_that_double)
{
    struct test_clock hands = {.now_ns = 1000 * MS};
    struct trouble trouble = {.left = {4}};
    struct hf_stage_opts opts = troubled(&trouble);
    static const uint64_t pauses_ns[] = {10 * MS, 20 * MS, 30 * MS, 30 * MS};
    struct hf_stage_stats stats;
    int item;

    opts.retries = 4;
    opts.pause_max_ns = 30 * MS;
    struct hf_pipeline *line = one_stage(&opts, test_clock(&hands));
    CHECK_EQ(hf_pipeline_put(line, 0, &item, HF_NOW), HF_OK);
    for (uint32_t i = 0; i < 4; i++) {
        AWAIT(calls_of(&trouble) == i + 1);
        test_clock_await_sleepers(&hands, 1);
        test_clock_advance(&hands, pauses_ns[i] - 1);
        CHECK_EQ(calls_of(&trouble), i + 1);
        test_clock_await_sleepers(&hands, 1);
        test_clock_advance(&hands, 1);
    }
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_pipeline_stage_stats(line, 0, &stats), HF_OK);
    CHECK_EQ(stats.failed, 4);
    CHECK_EQ(stats.retried, 4);
    CHECK_EQ(stats.dead, 0);
    CHECK_EQ(stats.out, 1);
    CHECK_EQ(trouble.out.count, 1);
    check_balance(line, 0);
    hf_pipeline_close(line);
}

TEST(an_item_that_fails_for_good_is_buried_and_the_worker_goes_on)
{
    struct trouble trouble = {.left = {3}};
    struct hf_stage_opts opts = troubled(&trouble);
    struct hf_stage_stats stats;
    int items[2];

    opts.retries = 2;
    opts.pause_ns = 1;
    struct hf_pipeline *line = one_stage(&opts, NULL);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(hf_pipeline_put(line, 0, &items[i], HF_FOREVER), HF_OK);
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, in_a_minute()), HF_OK);
    CHECK_EQ(trouble.dead.count, 1);
    CHECK(trouble.dead.items[0] == &items[0]);
    CHECK_EQ(trouble.dead.codes[0], 103); /* the last of three */
    CHECK_EQ(trouble.out.count, 1);
    CHECK(trouble.out.items[0] == &items[1]);
    CHECK_EQ(hf_pipeline_stage_stats(line, 0, &stats), HF_OK);
    CHECK_EQ(stats.failed, 3);
    CHECK_EQ(stats.retried, 2);
    CHECK_EQ(stats.dead, 1);
    check_balance(line, 0);
    hf_pipeline_close(line);
}

/* ---- The whole. ---- */

static int trouble_door(void *context, void *item, void **out)
{
    return door_pass(&((struct trouble *)context)->door, item, out);
}

/* The second stage stands in a door with one item and has four more in its
 * queue when the first one fails. */
TEST(fail_fast_ends_the_pipeline_and_gives_up_what_is_inside)
{
    struct trouble trouble = {.left = {0}};
    struct hf_stage_opts first = troubled(&trouble);
    struct hf_stage_opts second = troubled(&trouble);
    struct hf_pipeline_stats stats;
    struct hf_stage_stats figures;
    struct hf_pipeline *line;
    int items[7];

    door_init(&trouble.door);
    first.on_failure = HF_STAGE_FAIL_FAST;
    second.work = trouble_door;
    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    (void)stage(line, &first);
    (void)stage(line, &second);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    for (int i = 0; i < 5; i++)
        CHECK_EQ(hf_pipeline_put(line, 0, &items[i], HF_NOW), HF_OK);
    AWAIT(hf_pipeline_stage_stats(line, 0, &figures) == HF_OK &&
          figures.out == 5);
    CHECK_EQ(hf_latch_wait(&trouble.door.entered, in_a_minute()), HF_OK);
    hf_u32_store(&trouble.left, 1, __ATOMIC_RELEASE);
    CHECK_EQ(hf_pipeline_put(line, 0, &items[5], HF_NOW), HF_OK);
    AWAIT(list_count(&trouble.dead) == 1);
    CHECK_EQ(hf_pipeline_put(line, 0, &items[6], HF_FOREVER), HF_CLOSED);
    CHECK_EQ(hf_pipeline_await(line, HF_NOW), HF_TIMEOUT);
    hf_latch_count_down(&trouble.door.open, 1);
    CHECK_EQ(hf_pipeline_await(line, in_a_minute()), HF_FAILED);
    CHECK_EQ(trouble.dead.codes[0], 106);
    CHECK(trouble.dead.items[0] == &items[5]);
    CHECK_EQ(trouble.out.count, 1); /* the one that was being worked on */
    CHECK_EQ(trouble.dropped.count, 4);
    for (int i = 0; i < 4; i++) {
        CHECK(trouble.dropped.items[i] == &items[1 + i]);
        CHECK_EQ(trouble.dropped.codes[i], HF_CANCELLED);
    }
    CHECK_EQ(hf_pipeline_stats(line, &stats), HF_OK);
    CHECK(stats.failed);
    CHECK_EQ(stats.failed_stage, 0);
    CHECK_EQ(stats.failed_code, 106);
    CHECK_EQ(stats.put, 6);
    CHECK_EQ(stats.refused, 1);
    CHECK_EQ(hf_pipeline_stage_stats(line, 1, &figures), HF_OK);
    CHECK_EQ(figures.cancelled, 4);
    check_balance(line, 1);
    hf_pipeline_close(line);
}

static int fail_always(void *context, void *item, void **out)
{
    (void)context;
    (void)item;
    (void)out;
    return -7;
}

/* One stage pauses for an hour that does not come, the other one fails. */
TEST(a_failure_ends_the_pauses_of_others)
{
    struct test_clock hands = {.now_ns = 1000 * MS};
    struct hf_pipeline_opts opts = {.clock = test_clock(&hands)};
    struct trouble trouble = {.left = {2}};
    struct hf_stage_opts patient = troubled(&trouble);
    struct hf_stage_opts hasty = {.work = fail_always,
                                  .on_failure = HF_STAGE_FAIL_FAST};
    struct hf_pipeline_stats stats;
    struct hf_pipeline *line;
    int items[2];

    patient.retries = 5;
    patient.pause_ns = patient.pause_max_ns = 3600 * 1000 * MS;
    CHECK_EQ(hf_pipeline_open(&line, &opts), HF_OK);
    (void)stage(line, &patient);
    (void)stage(line, &hasty);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    CHECK_EQ(hf_pipeline_put(line, 0, &items[0], HF_NOW), HF_OK);
    AWAIT(calls_of(&trouble) == 1);
    CHECK_EQ(hf_pipeline_put(line, 1, &items[1], HF_NOW), HF_OK);
    CHECK_EQ(hf_pipeline_await(line, HF_FOREVER), HF_FAILED);
    CHECK_EQ(calls_of(&trouble), 1);
    CHECK_EQ(trouble.dead.count, 1);
    CHECK_EQ(trouble.dead.codes[0], 101);
    CHECK_EQ(hf_pipeline_stats(line, &stats), HF_OK);
    CHECK_EQ(stats.failed_stage, 1);
    CHECK_EQ(stats.failed_code, -7);
    check_balance(line, 1);
    hf_pipeline_close(line);
}

/* ---- Who is told. ---- */

struct notes {
    struct list all; /* codes are the events */
    int failed_code;
    char name[HF_NAME_BYTES];
};

static void observe(void *context, const struct hf_pipeline_note *note)
{
    struct notes *notes = context;

    list_add(&notes->all, note->item, (int)note->event);
    if (note->event == HF_PIPELINE_FAILED) {
        notes->failed_code = note->code;
        (void)snprintf(notes->name, sizeof notes->name, "%s", note->name);
    }
}

TEST(an_observer_is_told_what_happens_to_items_and_stages)
{
    struct notes notes = {0};
    struct hf_pipeline_opts opts = {.observe = observe, .context = &notes};
    struct hf_stage_opts bad = {.name = "bad",
                                .work = fail_always,
                                .retries = 1,
                                .pause_ns = 1,
                                .on_failure = HF_STAGE_FAIL_FAST};
    struct hf_stage_opts idle = {.work = keep};
    static const int expected[] = {
        HF_PIPELINE_ITEM_FAILED, HF_PIPELINE_ITEM_FAILED,
        HF_PIPELINE_FAILED,      HF_PIPELINE_ITEM_DEAD,
        HF_PIPELINE_STAGE_ENDED, HF_PIPELINE_STAGE_ENDED,
    };
    struct hf_pipeline *line;
    int item;

    CHECK_EQ(hf_pipeline_open(&line, &opts), HF_OK);
    (void)stage(line, &bad);
    (void)stage(line, &idle);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    CHECK_EQ(hf_pipeline_put(line, 0, &item, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_pipeline_await(line, in_a_minute()), HF_FAILED);
    CHECK_EQ(notes.all.count, 6);
    for (unsigned i = 0; i < 6; i++) {
        CHECK_EQ(notes.all.codes[i], expected[i]);
        CHECK(notes.all.items[i] == (i < 4 ? &item : NULL));
    }
    CHECK_EQ(notes.failed_code, -7);
    CHECK_TEXT(notes.name, strlen(notes.name), "bad");
    hf_pipeline_close(line);
}

/* Its stages may be told to end by a callback, and be fed by one. */
struct own {
    struct hf_pipeline *line;
    int more;
    enum hf_status put;
};

static int feed_and_shut(void *context, void *item, void **out)
{
    struct own *own = context;

    (void)out;
    if (item == &own->more)
        hf_pipeline_shutdown(own->line);
    else
        own->put = hf_pipeline_put(own->line, 0, &own->more, HF_NOW);
    return 0;
}

TEST(a_callback_may_put_and_shut)
{
    struct own own = {.put = HF_INVALID};
    struct hf_stage_opts opts = {.work = feed_and_shut, .context = &own};
    struct hf_stage_stats stats;
    int item;

    CHECK_EQ(hf_pipeline_open(&own.line, NULL), HF_OK);
    (void)stage(own.line, &opts);
    CHECK_EQ(hf_pipeline_start(own.line), HF_OK);
    CHECK_EQ(hf_pipeline_put(own.line, 0, &item, HF_NOW), HF_OK);
    CHECK_EQ(hf_pipeline_await(own.line, in_a_minute()), HF_OK);
    CHECK_EQ(own.put, HF_OK);
    CHECK_EQ(hf_pipeline_stage_stats(own.line, 0, &stats), HF_OK);
    CHECK_EQ(stats.out, 2);
    hf_pipeline_close(own.line);
}

/* ---- Memory. ---- */

/* All that is built, or HF_NOMEM with what was left closed. */
static enum hf_status build_and_run(void)
{
    struct hf_stage_opts wide = {.work = keep, .workers = 3, .ordered = true};
    struct hf_pipeline *line;
    enum hf_status status;
    uint32_t number;
    int item;

    status = hf_pipeline_open(&line, NULL);
    if (status != HF_OK)
        return status;
    for (int i = 0; i < 2 && status == HF_OK; i++)
        status = hf_pipeline_stage(line, &wide, &number);
    if (status == HF_OK)
        status = hf_pipeline_link(line, 0, 1);
    if (status == HF_OK)
        status = hf_pipeline_start(line);
    if (status == HF_OK)
        status = hf_pipeline_put(line, 0, &item, HF_FOREVER);
    hf_pipeline_close(line);
    return status;
}

TEST(each_allocation_may_fail)
{
    uint64_t before = hf_memory_count();

    CHECK_EQ(build_and_run(), HF_OK);
    uint64_t count = hf_memory_count() - before;
    CHECK(count >= 13); /* 1, two stages with 5 each, and the threads */
    for (uint64_t i = 0; i < count; i++) {
        hf_memory_fail_after(i);
        enum hf_status status = build_and_run();
        hf_memory_fail_never();
        CHECK_EQ(status, HF_NOMEM);
    }
}

TEST(a_start_without_memory_can_be_tried_again)
{
    struct hf_stage_opts opts = {.work = keep, .workers = 4};
    struct hf_pipeline *line;
    struct hf_stage_stats stats;
    int item;

    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    (void)stage(line, &opts);
    (void)stage(line, &opts);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_OK);
    for (uint64_t i = 0; i < 8; i++) {
        hf_memory_fail_after(i);
        enum hf_status status = hf_pipeline_start(line);
        hf_memory_fail_never();
        CHECK_EQ(status, HF_NOMEM);
        CHECK_EQ(hf_pipeline_put(line, 0, &item, HF_NOW), HF_INVALID);
    }
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    CHECK_EQ(hf_pipeline_put(line, 0, &item, HF_NOW), HF_OK);
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, in_a_minute()), HF_OK);
    CHECK_EQ(hf_pipeline_stage_stats(line, 1, &stats), HF_OK);
    CHECK_EQ(stats.out, 1);
    hf_pipeline_close(line);
}

/* ---- Inspection. ---- */

struct rows {
    struct hf_inspect_row line, first, second;
    unsigned count;
};

static void look(void *context, const struct hf_inspect_row *row)
{
    struct rows *rows = context;

    if (strcmp(row->kind, "pipeline") == 0)
        rows->line = *row;
    else if (strcmp(row->name, "orders/read") == 0)
        rows->first = *row;
    else if (strcmp(row->name, "orders/store") == 0)
        rows->second = *row;
    else
        return;
    rows->count++;
}

TEST(the_pipeline_and_its_queues_are_listed)
{
    struct hf_pipeline_opts opts = {.name = "orders", .times = true};
    struct door door;
    struct hf_stage_opts first = {
        .name = "read", .work = door_pass, .context = &door, .queue_max = 3};
    struct hf_stage_opts second = {.name = "store", .work = keep};
    struct rows rows = {.count = 0};
    struct hf_pipeline *line;
    int item;

    door_init(&door);
    CHECK_EQ(hf_pipeline_open(&line, &opts), HF_OK);
    (void)stage(line, &first);
    (void)stage(line, &second);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    CHECK_EQ(hf_pipeline_put(line, 0, &item, HF_NOW), HF_OK);
    CHECK_EQ(hf_latch_wait(&door.entered, in_a_minute()), HF_OK);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_pipeline_put(line, 0, &item, HF_NOW), HF_OK);
    CHECK_EQ(hf_pipeline_put(line, 0, &item, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(hf_inspect(look, &rows), HF_OK);
    CHECK_EQ(rows.count, 3);
    CHECK_TEXT(rows.line.name, strlen(rows.line.name), "orders");
    CHECK_EQ(rows.line.depth, 4); /* the one in work as well */
    CHECK_EQ(rows.line.capacity, 3 + HF_STAGE_QUEUE_DEFAULT);
    CHECK_EQ(rows.line.rejected, 1);
    CHECK(rows.line.oldest_ns != HF_INSPECT_NONE);
    CHECK_EQ(rows.line.wait_p99_ns, HF_INSPECT_NONE); /* nobody waited */
    CHECK_EQ(rows.first.depth, 3);
    CHECK_EQ(rows.first.capacity, 3);
    CHECK_EQ(rows.first.rejected, 1);
    CHECK_EQ(rows.second.depth, 0);
    CHECK_EQ(rows.second.oldest_ns, HF_INSPECT_NONE);
    hf_latch_count_down(&door.open, 1);
    hf_pipeline_close(line);
    rows.count = 0;
    CHECK_EQ(hf_inspect(look, &rows), HF_OK);
    CHECK_EQ(rows.count, 0);
}
