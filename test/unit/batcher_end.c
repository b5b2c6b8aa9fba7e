/* Tests of hf_batcher: failures and retries, calls from the handler, the end.
 */
#include "base/thread.h"
#include "support/batching.h"

/* No pause is as long: what it slept until before a retry is another time. */
#define OTHER_AGE_NS (700 * MS)

/* ---- Failure. ---- */

TEST(pauses_double_up_to_the_longest)
{
    static const uint64_t pauses[] = {10, 20, 40, 50, 50};

    begin((struct hf_batcher_opts){.batch_max = 2,
                                   .age_ns = OTHER_AGE_NS,
                                   .retries = 5,
                                   .pause_ns = 10 * MS,
                                   .pause_max_ns = 50 * MS});
    test.fail = 5;
    add(1, 2);
    for (size_t i = 0; i < 5; i++) {
        await(calls_are, i + 1);
        await(sleeps_until, test.times[i] + pauses[i] * MS);
        test_clock_advance(&test.hands, pauses[i] * MS);
    }
    await(handled_are, 2);
    for (size_t i = 0; i < 5; i++)
        CHECK_EQ(test.times[i + 1] - test.times[i], pauses[i] * MS);
    CHECK_EQ(figures().failures, 5);
    CHECK_EQ(figures().batches, 1);
    CHECK_EQ(figures().by_size, 1);
    CHECK_EQ(test.told, 5);
    end(2);
    CHECK_EQ(test.dead_count, 0);
}

TEST(a_batch_that_keeps_failing_is_dead_and_the_next_goes_on)
{
    begin((struct hf_batcher_opts){
        .batch_max = 2, .age_ns = OTHER_AGE_NS, .retries = 1});
    test.fail = 2;
    test.hold = true;
    add(1, 2);
    await(calls_are, 1);
    add(3, 4);
    set_hold(false);
    await(sleeps_until, 1000 + 10 * MS);
    CHECK_EQ(figures().depth, 4); /* 3 and 4 wait behind, in order */
    test_clock_advance(&test.hands, 10 * MS);
    await(handled_are, 2);
    CHECK_EQ(figures().dead, 2);
    CHECK_EQ(figures().failures, 2);
    CHECK_EQ(test.dead_count, 2);
    CHECK_EQ(test.dead[0], 1);
    CHECK_EQ(test.dead[1], 2);
    CHECK_EQ(test.items[0], 3);
    hf_batcher_close(test.batcher);
}

TEST(without_retries_the_first_failure_is_the_last)
{
    begin((struct hf_batcher_opts){.batch_max = 1,
                                   .retries = HF_BATCHER_RETRIES_NONE});
    test.fail = 1;
    add(1, 1);
    await(depth_is, 0);
    CHECK_EQ(figures().dead, 1);
    CHECK_EQ(figures().failures, 1);
    hf_batcher_close(test.batcher);
}

/* Neither `dead` nor `failed` is there, and nothing ever succeeds. */
static int never(void *context, void *const *items, size_t count)
{
    (void)context;
    (void)items;
    (void)count;
    return -1;
}

TEST(a_handler_that_always_fails_loses_nothing_from_the_count)
{
    struct hf_batcher_opts opts = {
        .handle = never, .batch_max = 3, .pause_ns = 1, .pause_max_ns = 1};
    struct hf_batcher_stats stats;
    struct hf_batcher *batcher;

    CHECK_EQ(hf_batcher_open(&batcher, &opts), HF_OK);
    for (int i = 0; i < 100; i++)
        CHECK_EQ(hf_batcher_add(batcher, number(1), HF_FOREVER), HF_OK);
    CHECK_EQ(hf_batcher_flush(batcher, HF_FOREVER), HF_OK);
    hf_batcher_stats(batcher, &stats);
    CHECK_EQ(stats.dead, 100);
    CHECK_EQ(stats.handled, 0);
    CHECK_EQ(stats.depth, 0);
    CHECK(stats.failures >= 4 * 34);
    hf_batcher_close(batcher);
}

/* With HF_BATCHER_FLUSH a pause is the batch's, not that of who adds. */
TEST(who_adds_does_not_sit_through_a_pause)
{
    struct adder late = {.item = 99, .deadline_ns = 1000 + MS};

    begin((struct hf_batcher_opts){.batch_max = 1,
                                   .queue_max = 1,
                                   .pause_ns = 500 * MS,
                                   .full = HF_BATCHER_FLUSH});
    test.fail = 1;
    add(1, 1);
    await(calls_are, 1);
    await(sleeps_until, 1000 + 500 * MS);
    add(2, 2);
    start(&late);
    test_clock_await_sleepers(&test.hands, 2);
    test_clock_advance(&test.hands, MS);
    CHECK_EQ(end_of(&late), HF_TIMEOUT);
    CHECK_EQ(test.batch_count, 1);
    test_clock_advance(&test.hands, 499 * MS);
    await(handled_are, 2);
    end(2);
}

/* ---- Calls from the handler. ---- */

static enum hf_status inner_status[3];

static void add_inside(void)
{
    struct hf_batcher_stats stats;

    hf_batcher_stats(test.batcher, &stats);
    inner_status[0] = hf_batcher_add(test.batcher, number(2), HF_FOREVER);
    inner_status[1] = hf_batcher_add(test.batcher, number(99), HF_FOREVER);
    inner_status[2] = hf_batcher_flush(test.batcher, HF_FOREVER);
}

/* Its own item has left the queue: there is room for one, not for two. */
TEST(what_the_handler_calls_does_not_wait)
{
    for (int full = HF_BATCHER_BLOCK; full <= HF_BATCHER_FLUSH; full++) {
        begin((struct hf_batcher_opts){.batch_max = 1,
                                       .queue_max = 1,
                                       .full = (enum hf_batcher_full)full});
        test.inner = add_inside;
        add(1, 1);
        await(handled_are, 2);
        CHECK_EQ(inner_status[0], HF_OK);
        CHECK_EQ(inner_status[1],
                 full == HF_BATCHER_DROP ? HF_FULL : HF_TIMEOUT);
        CHECK_EQ(inner_status[2], HF_TIMEOUT);
        CHECK_EQ(figures().refused, 1);
        end(2);
    }
}

static void shut_inside(void)
{
    hf_batcher_shutdown(test.batcher);
    inner_status[0] = hf_batcher_add(test.batcher, number(99), HF_FOREVER);
}

TEST(the_handler_may_shut)
{
    begin((struct hf_batcher_opts){.batch_max = 1});
    test.inner = shut_inside;
    add(1, 1);
    await(handled_are, 1);
    CHECK_EQ(inner_status[0], HF_CLOSED);
    end(1);
}

/* ---- The end. ---- */

TEST(close_handles_what_is_inside)
{
    begin((struct hf_batcher_opts){.batch_max = 4, .age_ns = HF_FOREVER});
    test.hold = true;
    add(1, 4);
    await(calls_are, 1);
    add(5, 30);
    set_hold(false);
    end(30);
    CHECK_EQ(test.batch_count, 8);
    CHECK_EQ(test.batches[7], 2);
}

TEST(after_shut_nothing_is_accepted)
{
    begin((struct hf_batcher_opts){.age_ns = HF_FOREVER});
    add(1, 2);
    hf_batcher_shutdown(test.batcher);
    hf_batcher_shutdown(test.batcher);
    CHECK_EQ(hf_batcher_add(test.batcher, number(9), HF_FOREVER), HF_CLOSED);
    CHECK_EQ(hf_batcher_flush(test.batcher, HF_FOREVER), HF_OK);
    CHECK_EQ(figures().handled, 2);
    CHECK_EQ(figures().refused, 1);
    end(2);
}

TEST(shut_lets_those_who_wait_for_room_leave)
{
    struct adder adders[3] = {{.item = 97, .deadline_ns = HF_FOREVER},
                              {.item = 98, .deadline_ns = HF_FOREVER},
                              {.item = 99, .deadline_ns = 1000 + MS}};

    for (int full = HF_BATCHER_BLOCK; full <= HF_BATCHER_FLUSH; full += 2) {
        fill_up((enum hf_batcher_full)full);
        for (int i = 0; i < 3; i++)
            start(&adders[i]);
        test_clock_await_sleepers(&test.hands, 3);
        hf_batcher_shutdown(test.batcher);
        for (int i = 0; i < 3; i++)
            CHECK_EQ(end_of(&adders[i]), HF_CLOSED);
        CHECK_EQ(figures().refused, 3);
        set_hold(false);
        end(6);
    }
}

TEST(shut_ends_the_pauses)
{
    begin((struct hf_batcher_opts){.batch_max = 2,
                                   .retries = 3,
                                   .pause_ns = HF_FOREVER,
                                   .pause_max_ns = HF_FOREVER});
    test.fail = 5;
    add(1, 2);
    await(calls_are, 1);
    add(3, 3);
    hf_batcher_close(test.batcher); /* 1 and 2 fail 3 times more, 3 once */
    CHECK_EQ(test.batch_count, 6);
    CHECK_EQ(test.dead_count, 2);
    CHECK_EQ(test.dead[1], 2);
    CHECK_EQ(test.item_count, 1);
    CHECK_EQ(test.items[0], 3);
}

/* ---- Shards. ---- */

/* Threads are started until one is of the other shard; those of this one stay
 * alive meanwhile, so that the next has another slot. */
static uint32_t this_slot;
static uint32_t found;

static void *add_to_other_shard(void *context)
{
    if (hf_thread_slot() % 2 == this_slot % 2) {
        while (!__atomic_load_n(&found, __ATOMIC_RELAXED))
            sched_yield();
        return NULL;
    }
    if (__atomic_exchange_n(&found, 1, __ATOMIC_RELAXED)) /* another was */
        return NULL;
    for (uintptr_t i = 2; i <= 5; i++)
        (void)hf_batcher_add(test.batcher, number(i), HF_NOW);
    return context;
}

TEST(a_failing_batch_does_not_stop_other_shards)
{
    pthread_t threads[16];
    int count = 0;

    begin((struct hf_batcher_opts){
        .batch_max = 1, .shards = 2, .queue_max = 64, .pause_ns = 10 * MS});
    this_slot = hf_thread_slot();
    found = 0;
    test.fail = 1;
    add(1, 1);
    await(calls_are, 1);
    add(6, 6);
    while (!__atomic_load_n(&found, __ATOMIC_RELAXED) && count < 16) {
        CHECK_EQ(
            pthread_create(&threads[count++], NULL, add_to_other_shard, NULL),
            0);
        sched_yield();
    }
    await(handled_are, 4);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(figures().depth, 2);
    test_clock_advance(&test.hands, 10 * MS);
    await(handled_are, 6);
    hf_batcher_close(test.batcher);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK_EQ(test.items[i], i + 2);
    CHECK_EQ(test.items[4], 1);
    CHECK_EQ(test.items[5], 6);
}
