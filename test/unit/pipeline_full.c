/* pipeline_full.c - what a stage that is full does to those before it. */
#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/latch.h"
#include "support/clock.h"
#include "support/pipeline.h"
#include "support/test.h"

#define MS UINT64_C(1000000)

static uint64_t depth(struct hf_pipeline *line, uint32_t stage_number)
{
    struct hf_stage_stats stats;
    CHECK_EQ(hf_pipeline_stage_stats(line, stage_number, &stats), HF_OK);
    return stats.depth;
}

struct producer {
    struct hf_pipeline *line;
    int items[20];
    struct hf_atomic_u32 put;
};

static void produce(void *context)
{
    struct producer *producer = context;

    for (int i = 0; i < 20; i++)
        if (hf_pipeline_put(producer->line, 0, &producer->items[i],
                            HF_FOREVER) == HF_OK)
            (void)hf_u32_add(&producer->put, 1, __ATOMIC_RELEASE);
}

TEST(a_slow_stage_slows_the_producer)
{
    struct test_clock hands = {.now_ns = 1000 * MS};
    struct hf_pipeline_opts opts = {
        .name = "slow", .clock = test_clock(&hands), .times = true};
    struct hf_stage_opts quick = {.work = keep, .queue_max = 2};
    struct door door;
    struct hf_stage_opts slow = {
        .work = door_pass, .context = &door, .queue_max = 2};
    struct producer producer = {0};
    struct hf_thread thread;
    struct hf_stage_stats stats;

    door_init(&door);
    CHECK_EQ(hf_pipeline_open(&producer.line, &opts), HF_OK);
    (void)stage(producer.line, &quick);
    (void)stage(producer.line, &quick);
    (void)stage(producer.line, &slow);
    CHECK_EQ(hf_pipeline_link(producer.line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_link(producer.line, 1, 2), HF_OK);
    CHECK_EQ(hf_pipeline_start(producer.line), HF_OK);
    CHECK_EQ(hf_thread_start(&thread, "producer", produce, &producer), HF_OK);
    /* Three queues of two, and one in each worker's hands. */
    AWAIT(hf_u32_load(&producer.put, __ATOMIC_ACQUIRE) == 9);
    /* Two workers and the producer wait for room, the third has begun. */
    test_clock_await_sleepers(&hands, 3);
    CHECK_EQ(hf_latch_wait(&door.entered, in_a_minute()), HF_OK);
    CHECK_EQ(inside(producer.line), 9);
    CHECK_EQ(hf_u32_load(&producer.put, __ATOMIC_ACQUIRE), 9);
    CHECK_EQ(hf_pipeline_stage_stats(producer.line, 2, &stats), HF_OK);
    CHECK_EQ(stats.depth, 2);
    CHECK_EQ(stats.active, 1);
    test_clock_advance(&hands, 50 * MS);
    CHECK_EQ(hf_pipeline_stage_stats(producer.line, 0, &stats), HF_OK);
    CHECK_EQ(stats.oldest_ns, 50 * MS);
    hf_latch_count_down(&door.open, 1);
    hf_thread_join(&thread);
    hf_pipeline_shutdown(producer.line);
    CHECK_EQ(hf_pipeline_await(producer.line, HF_FOREVER), HF_OK);
    for (uint32_t i = 0; i < 3; i++) {
        CHECK_EQ(hf_pipeline_stage_stats(producer.line, i, &stats), HF_OK);
        CHECK_EQ(stats.out, 20);
        CHECK(stats.waits >= 1);
        CHECK(stats.wait_p99_ns != HF_INSPECT_NONE);
        CHECK(stats.wait_p99_ns >= 50 * MS);
    }
    CHECK(stats.run_p99_ns >= 50 * MS && stats.run_p99_ns < 63 * MS);
    check_balance(producer.line, 2);
    hf_pipeline_close(producer.line);
}

/* The first stage's worker stands in the door, its queue of one is full. */
static struct hf_pipeline *full_line(struct door *door,
                                     struct test_clock *hands,
                                     const struct hf_stage_opts *more,
                                     int *items)
{
    struct hf_pipeline_opts opts = {.clock = test_clock(hands)};
    struct hf_stage_opts slow = *more;
    struct hf_pipeline *line;

    door_init(door);
    slow.work = door_pass;
    slow.context = door;
    slow.queue_max = 1;
    CHECK_EQ(hf_pipeline_open(&line, &opts), HF_OK);
    (void)stage(line, &slow);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    CHECK_EQ(hf_pipeline_put(line, 0, &items[0], HF_NOW), HF_OK);
    CHECK_EQ(hf_latch_wait(&door->entered, in_a_minute()), HF_OK);
    CHECK_EQ(hf_pipeline_put(line, 0, &items[1], HF_NOW), HF_OK);
    return line;
}

static void end_full_line(struct hf_pipeline *line, struct door *door,
                          uint64_t refused)
{
    struct hf_pipeline_stats stats;

    hf_latch_count_down(&door->open, 1);
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_pipeline_stats(line, &stats), HF_OK);
    CHECK_EQ(stats.put, 2);
    CHECK_EQ(stats.refused, refused);
    check_balance(line, 0);
    hf_pipeline_close(line);
}

TEST(a_put_that_finds_no_room_is_refused_as_the_stage_says)
{
    struct test_clock hands = {.now_ns = 1000 * MS};
    struct hf_stage_opts more = {0};
    struct door door;
    int items[3];
    struct hf_pipeline *line = full_line(&door, &hands, &more, items);

    CHECK_EQ(hf_pipeline_put(line, 0, &items[2], HF_NOW), HF_TIMEOUT);
    CHECK_EQ(hf_pipeline_put(line, 0, &items[2], 1), HF_TIMEOUT);
    end_full_line(line, &door, 2);
    more.on_full = HF_STAGE_DROP;
    line = full_line(&door, &hands, &more, items);
    CHECK_EQ(hf_pipeline_put(line, 0, &items[2], HF_FOREVER), HF_FULL);
    end_full_line(line, &door, 1);
}

struct late {
    struct hf_pipeline *line;
    int item;
    enum hf_status status;
};

static void put_late(void *context)
{
    struct late *late = context;
    late->status = hf_pipeline_put(late->line, 0, &late->item, HF_FOREVER);
}

TEST(a_put_waits_no_longer_than_the_stage_says)
{
    struct test_clock hands = {.now_ns = 1000 * MS};
    struct hf_stage_opts more = {.on_full = HF_STAGE_TIMEOUT,
                                 .full_ns = 10 * MS};
    struct door door;
    int items[2];
    struct late late = {.line = full_line(&door, &hands, &more, items)};
    struct hf_thread thread;

    CHECK_EQ(hf_pipeline_put(late.line, 0, &late.item, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(hf_thread_start(&thread, "late", put_late, &late), HF_OK);
    test_clock_await_sleepers(&hands, 1);
    test_clock_advance(&hands, 10 * MS);
    hf_thread_join(&thread);
    CHECK_EQ(late.status, HF_TIMEOUT);
    end_full_line(late.line, &door, 2);
}

/* Five items from a quick stage to one whose worker stands in a door. */
static void drop_between(enum hf_stage_full how, enum hf_status why)
{
    struct test_clock hands = {.now_ns = 1000 * MS};
    struct hf_pipeline_opts opts = {.clock = test_clock(&hands)};
    struct door door;
    struct hf_stage_opts quick = {.work = keep};
    struct hf_stage_opts slow = {.work = door_pass,
                                 .drop = door_drop,
                                 .context = &door,
                                 .queue_max = 1,
                                 .on_full = how,
                                 .full_ns = 10 * MS};
    struct hf_stage_stats stats;
    struct hf_pipeline *line;
    int items[5];

    door_init(&door);
    CHECK_EQ(hf_pipeline_open(&line, &opts), HF_OK);
    (void)stage(line, &quick);
    (void)stage(line, &slow);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    CHECK_EQ(hf_pipeline_put(line, 0, &items[0], HF_NOW), HF_OK);
    CHECK_EQ(hf_latch_wait(&door.entered, in_a_minute()), HF_OK);
    for (int i = 1; i < 5; i++)
        CHECK_EQ(hf_pipeline_put(line, 0, &items[i], HF_NOW), HF_OK);
    for (unsigned i = 0; i < 3; i++) {
        if (how == HF_STAGE_TIMEOUT) {
            /* The first stage has taken one more and waits with it. */
            AWAIT(depth(line, 0) == 2 - i && depth(line, 1) == 1);
            test_clock_await_sleepers(&hands, 1);
            test_clock_advance(&hands, 10 * MS);
        }
        AWAIT(list_count(&door.dropped) > i);
        CHECK(door.dropped.items[i] == &items[2 + i]);
        CHECK_EQ(door.dropped.codes[i], why);
    }
    hf_latch_count_down(&door.open, 1);
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_pipeline_stage_stats(line, 1, &stats), HF_OK);
    CHECK_EQ(stats.in, 2);
    CHECK_EQ(stats.dropped, 3);
    check_balance(line, 1);
    hf_pipeline_close(line);
}

TEST(an_item_between_stages_is_dropped_if_the_next_one_says_so)
{
    drop_between(HF_STAGE_DROP, HF_FULL);
    drop_between(HF_STAGE_TIMEOUT, HF_TIMEOUT);
}
