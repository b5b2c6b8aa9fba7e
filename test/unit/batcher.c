/* Tests of hf_batcher: when batches are made, what is done when there is no
 * room, flush, input and figures. */
#include "base/memory.h"
#include "support/batching.h"

/* ---- When a batch is made. ---- */

TEST(a_full_batch_is_handled_at_once)
{
    begin((struct hf_batcher_opts){.batch_max = 4, .age_ns = HF_FOREVER});
    add(1, 3);
    await(sleeps_until, HF_FOREVER);
    test_clock_advance(&test.hands, UINT64_MAX / 2);
    CHECK_EQ(figures().handled, 0);
    add(4, 9);
    await(handled_are, 8);
    CHECK_EQ(figures().by_size, 2);
    CHECK_EQ(figures().depth, 1);
    CHECK_EQ(test.batches[0], 4);
    CHECK_EQ(test.batches[1], 4);
    end(9);
}

TEST(age_counts_from_the_oldest_item)
{
    begin((struct hf_batcher_opts){.batch_max = 100, .age_ns = 10 * MS});
    add(1, 1);
    await(sleeps_until, 1000 + 10 * MS);
    test_clock_advance(&test.hands, 6 * MS);
    add(2, 3); /* do not start it anew */
    test_clock_advance(&test.hands, 4 * MS - 1);
    CHECK_EQ(figures().depth, 3);
    CHECK_EQ(figures().oldest_ns, 10 * MS - 1);
    test_clock_advance(&test.hands, 1);
    await(handled_are, 3);
    CHECK_EQ(test.times[0], 1000 + 10 * MS);
    CHECK_EQ(figures().by_age, 1);
    CHECK_EQ(figures().by_size, 0);
    CHECK_EQ(figures().oldest_ns, HF_INSPECT_NONE);
    CHECK(figures().wait_p99_ns >= 10 * MS);
    CHECK(figures().wait_p99_ns <= 13 * MS);
    /* The next has its own time. */
    test_clock_advance(&test.hands, 50 * MS);
    add(4, 4);
    await(sleeps_until, 1000 + 70 * MS);
    CHECK_EQ(figures().depth, 1);
    test_clock_advance(&test.hands, 10 * MS);
    await(handled_are, 4);
    CHECK_EQ(figures().by_age, 2);
    end(4);
}

TEST(size_and_age_whichever_is_first)
{
    begin((struct hf_batcher_opts){.batch_max = 3, .age_ns = 10 * MS});
    add(1, 4); /* three by size; the fourth is left with its time */
    await(handled_are, 3);
    await(sleeps_until, 1000 + 10 * MS);
    test_clock_advance(&test.hands, 5 * MS);
    add(5, 5);
    test_clock_advance(&test.hands, 5 * MS);
    await(handled_are, 5);
    CHECK_EQ(test.batches[1], 2);
    CHECK_EQ(figures().by_size, 1);
    CHECK_EQ(figures().by_age, 1);
    CHECK_EQ(figures().batches, 2);
    CHECK_EQ(figures().added, 5);
    end(5);
}

/* ---- A handler that is slower than those who add. ---- */

TEST(block_waits_for_room_or_the_deadline)
{
    struct adder late = {.item = 99, .deadline_ns = 1000 + MS};
    struct adder patient = {.item = 7, .deadline_ns = HF_FOREVER};

    fill_up(HF_BATCHER_BLOCK);
    CHECK_EQ(hf_batcher_add(test.batcher, number(99), HF_NOW), HF_TIMEOUT);
    start(&late);
    test_clock_await_sleepers(&test.hands, 1);
    test_clock_advance(&test.hands, MS - 1);
    test_clock_await_sleepers(&test.hands, 1);
    test_clock_advance(&test.hands, 1);
    CHECK_EQ(end_of(&late), HF_TIMEOUT);
    start(&patient);
    test_clock_await_sleepers(&test.hands, 1);
    CHECK_EQ(figures().refused, 2);
    set_hold(false);
    CHECK_EQ(end_of(&patient), HF_OK);
    end(7);
}

TEST(drop_refuses_and_counts)
{
    fill_up(HF_BATCHER_DROP);
    CHECK_EQ(hf_batcher_add(test.batcher, number(98), HF_FOREVER), HF_FULL);
    CHECK_EQ(hf_batcher_add(test.batcher, number(99), HF_NOW), HF_FULL);
    CHECK_EQ(figures().refused, 2);
    CHECK_EQ(figures().added, 6);
    set_hold(false);
    await(handled_are, 6);
    add(7, 7);
    end(7);
}

TEST(flush_now_waits_for_room_while_another_handles)
{
    struct adder second = {.item = 7, .deadline_ns = HF_FOREVER};

    fill_up(HF_BATCHER_FLUSH);
    CHECK_EQ(hf_batcher_add(test.batcher, number(99), HF_NOW), HF_TIMEOUT);
    start(&second); /* the role is taken: it waits for room */
    test_clock_await_sleepers(&test.hands, 1);
    set_hold(false);
    CHECK_EQ(end_of(&second), HF_OK);
    await(handled_are, 6);
    end(7);
}

static uint32_t handler_threads; /* bits: 1 this thread, 2 another */
static pthread_t this_thread;

static int note_thread(void *context, void *const *items, size_t count)
{
    (void)context;
    (void)items;
    (void)count;
    __atomic_or_fetch(&handler_threads,
                      pthread_equal(pthread_self(), this_thread) ? 1 : 2,
                      __ATOMIC_RELAXED);
    return 0;
}

/* One by one and with no room but for one: sooner or later whoever adds is
 * faster than the batcher's thread, and does it itself. */
TEST(flush_now_makes_the_adding_thread_handle)
{
    struct hf_batcher_opts opts = {.handle = note_thread,
                                   .batch_max = 1,
                                   .queue_max = 1,
                                   .full = HF_BATCHER_FLUSH};
    const struct hf_clock *real = hf_clock_system();
    uint64_t deadline_ns = hf_clock_after_ms(real, 60000);
    struct hf_batcher *batcher;

    this_thread = pthread_self();
    handler_threads = 0;
    CHECK_EQ(hf_batcher_open(&batcher, &opts), HF_OK);
    uint64_t added = 0;
    while (!(__atomic_load_n(&handler_threads, __ATOMIC_RELAXED) & 1)) {
        CHECK(hf_clock_now_ns(real) < deadline_ns);
        CHECK_EQ(hf_batcher_add(batcher, number(1), HF_FOREVER), HF_OK);
        added++;
    }
    CHECK_EQ(hf_batcher_flush(batcher, HF_FOREVER), HF_OK);
    struct hf_batcher_stats stats;
    hf_batcher_stats(batcher, &stats);
    CHECK_EQ(stats.handled, added);
    hf_batcher_close(batcher);
}

/* ---- Flush. ---- */

TEST(flush_handles_what_is_inside)
{
    begin((struct hf_batcher_opts){.batch_max = 100, .age_ns = HF_FOREVER});
    CHECK_EQ(hf_batcher_flush(test.batcher, HF_FOREVER), HF_OK); /* nothing */
    add(1, 5);
    CHECK_EQ(hf_batcher_flush(test.batcher, HF_FOREVER), HF_OK);
    check_handled(5);
    CHECK_EQ(figures().batches, 1);
    CHECK_EQ(figures().by_age + figures().by_size, 0);
    add(6, 6); /* that flush was not for it */
    test_clock_await_sleepers(&test.hands, 1);
    CHECK_EQ(figures().depth, 1);
    end(6);
}

static void *flusher_main(void *context)
{
    struct adder *self = context;

    self->status = hf_batcher_flush(test.batcher, self->deadline_ns);
    return NULL;
}

TEST(flush_leaves_at_its_deadline_while_the_handler_hangs)
{
    struct adder flusher = {.deadline_ns = 1000 + MS};

    begin((struct hf_batcher_opts){.batch_max = 2, .age_ns = HF_FOREVER});
    test.hold = true;
    add(1, 3);
    await(calls_are, 1);
    CHECK_EQ(hf_batcher_flush(test.batcher, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(pthread_create(&flusher.thread, NULL, flusher_main, &flusher), 0);
    test_clock_await_sleepers(&test.hands, 1);
    test_clock_advance(&test.hands, MS);
    CHECK_EQ(end_of(&flusher), HF_TIMEOUT);
    set_hold(false);
    await(handled_are, 3); /* it goes on */
    CHECK_EQ(hf_batcher_flush(test.batcher, HF_NOW), HF_OK);
    end(3);
}

TEST(flush_ends_when_the_batch_is_dead)
{
    begin((struct hf_batcher_opts){.retries = HF_BATCHER_RETRIES_NONE});
    test.fail = 1;
    add(1, 2);
    CHECK_EQ(hf_batcher_flush(test.batcher, HF_FOREVER), HF_OK);
    CHECK_EQ(test.dead_count, 2);
    hf_batcher_close(test.batcher);
}

/* ---- Input, memory, inspection. ---- */

TEST(bad_input_is_refused)
{
    struct hf_batcher *batcher = NULL;
    const struct hf_batcher_opts bad[] = {
        {.handle = NULL},
        {.handle = handle, .batch_max = HF_BATCHER_BATCH_MAX + 1},
        {.handle = handle, .queue_max = HF_BATCHER_QUEUE_MAX + 1},
        {.handle = handle, .batch_max = 5, .queue_max = 4},
        {.handle = handle, .shards = HF_BATCHER_SHARDS_MAX + 1},
        {.handle = handle, .full = (enum hf_batcher_full)3},
        {.handle = handle, .full = (enum hf_batcher_full) - 1},
        {.handle = handle, .pause_ns = 2, .pause_max_ns = 1},
        {.handle = handle, .pause_max_ns = 1},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(hf_batcher_open(&batcher, &bad[i]), HF_INVALID);
    CHECK_EQ(hf_batcher_open(&batcher, NULL), HF_INVALID);
    CHECK_EQ(hf_batcher_open(NULL, &(struct hf_batcher_opts){.handle = handle}),
             HF_INVALID);
    CHECK(batcher == NULL);
    CHECK_EQ(hf_batcher_add(NULL, number(1), HF_NOW), HF_INVALID);
    CHECK_EQ(hf_batcher_flush(NULL, HF_NOW), HF_INVALID);
    hf_batcher_stats(NULL, NULL);
    hf_batcher_shutdown(NULL);
    hf_batcher_close(NULL);
    begin((struct hf_batcher_opts){0});
    CHECK_EQ(hf_batcher_add(test.batcher, NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(figures().refused, 0);
    end(0);
}

TEST(a_first_pause_above_a_second_raises_the_longest)
{
    begin((struct hf_batcher_opts){.batch_max = 1, .pause_ns = 5000 * MS});
    test.fail = 1;
    add(1, 1);
    await(calls_are, 1);
    await(sleeps_until, 1000 + 5000 * MS);
    test_clock_advance(&test.hands, 5000 * MS);
    await(handled_are, 1);
    end(1);
}

TEST(without_memory_nothing_is_opened)
{
    struct hf_batcher_opts opts = {.handle = handle, .shards = 3};
    struct hf_batcher *batcher = NULL;
    uint64_t before = hf_memory_count();

    begin(opts);
    uint64_t count = hf_memory_count() - before;
    end(0);
    CHECK(count >= 8);
    for (uint64_t i = 0; i < count; i++) {
        hf_memory_fail_after(i);
        enum hf_status status = hf_batcher_open(&batcher, &opts);
        hf_memory_fail_never();
        CHECK_EQ(status, HF_NOMEM);
        CHECK(batcher == NULL);
    }
}

static void find_row(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->name, "letters") == 0)
        *(struct hf_inspect_row *)context = *row;
}

TEST(it_is_listed)
{
    struct hf_inspect_row row = {.depth = 77};

    begin((struct hf_batcher_opts){.name = "letters",
                                   .batch_max = 2,
                                   .queue_max = 3,
                                   .shards = 2,
                                   .full = HF_BATCHER_DROP});
    test.hold = true;
    add(1, 2);
    await(calls_are, 1);
    add(3, 5);
    CHECK_EQ(hf_batcher_add(test.batcher, number(9), HF_NOW), HF_FULL);
    test_clock_advance(&test.hands, 5);
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_EQ(strcmp(row.kind, "batcher"), 0);
    CHECK_EQ(row.depth, 5);
    CHECK_EQ(row.capacity, 6);
    CHECK_EQ(row.oldest_ns, 5);
    CHECK_EQ(row.rejected, 1);
    CHECK_EQ(row.wait_p99_ns, 0);
    set_hold(false);
    end(5);
    row.depth = 77;
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_EQ(row.depth, 77);
}
