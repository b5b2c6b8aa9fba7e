/* Tests of writing behind: batches, coalescing, order, what get sees. */
#include "support/writebehind.h"
#include "base/memory.h"
#include "holdfast/inspect.h"

/* Nothing is written by age or size. */
static const struct hf_writebehind_opts by_hand = {.age_ns = HF_FOREVER};

TEST(a_put_is_seen_at_once_and_written_later)
{
    begin(by_hand);
    put("a", "1");
    check_get("a", "1");
    check_trace("");
    CHECK_EQ(figures().dirty, 1);
    flush();
    check_trace("a=1;");
    check_get("a", "1"); /* from the store */
    check_get("b", NULL);
    end();
}

TEST(a_delete_is_seen_at_once_and_written_later)
{
    begin(by_hand);
    put("a", "1");
    flush();
    drop("a");
    check_get("a", NULL);
    CHECK(memory_value(&test.memory, "a") != NULL);
    flush();
    check_trace("a=1;a-;");
    check_get("a", NULL);
    end();
}

TEST(writes_to_one_key_become_one_and_are_counted)
{
    begin(by_hand);
    put("a", "1");
    put("b", "1");
    for (int i = 0; i < 7; i++)
        put("a", "2");
    drop("b");
    put("a", "3");
    check_get("a", "3");
    check_get("b", NULL);
    CHECK_EQ(figures().coalesced, 9);
    CHECK_EQ(figures().dirty, 2);
    flush();
    check_trace("a=3 b-;"); /* in the order in which they became dirty */
    CHECK_EQ(figures().changes, 11);
    CHECK_EQ(figures().flushed, 2);
    CHECK_EQ(figures().batches, 1);
    end();
}

TEST(an_empty_value_is_a_value)
{
    begin(by_hand);
    CHECK_EQ(hf_writebehind_put(test.behind, "a", 1, NULL, 0, HF_NOW), HF_OK);
    check_get("a", "");
    flush();
    check_get("a", "");
    end();
}

TEST(a_batch_is_written_when_it_is_full)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 3});
    put("a", "1");
    put("b", "1");
    put("b", "2");
    check_trace("");
    put("c", "1");
    await(dirty_is, 0);
    check_trace("a=1 b=2 c=1;");
    CHECK_EQ(figures().by_size, 1);
    CHECK_EQ(figures().by_age, 0);
    end();
}

TEST(a_batch_is_written_when_it_has_bytes_enough)
{
    begin((struct hf_writebehind_opts){
        .age_ns = HF_FOREVER, .batch_bytes = 2 * HF_WRITEBEHIND_OVERHEAD + 6});
    put("a", "12");
    put("b", "12");
    await(dirty_is, 0);
    check_trace("a=12 b=12;");
    CHECK_EQ(figures().by_size, 1);
    end();
}

TEST(a_batch_is_written_when_its_oldest_change_is_old_enough)
{
    begin((struct hf_writebehind_opts){.age_ns = 5 * MS});
    put("a", "1");
    test_clock_await_sleepers(&test.hands, 1);
    test_clock_advance(&test.hands, 4 * MS);
    put("b", "1");
    put("a", "2"); /* no younger by that */
    CHECK_EQ(figures().oldest_ns, 4 * MS);
    check_trace("");
    test_clock_advance(&test.hands, 1 * MS);
    await(dirty_is, 0);
    check_trace("a=2 b=1;");
    CHECK_EQ(figures().by_age, 1);
    CHECK_EQ(figures().oldest_ns, HF_INSPECT_NONE);
    end();
}

TEST(a_long_queue_is_written_in_batches)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 2});
    memory_hold(&test.memory, true);
    put("a", "1");
    put("b", "1");
    memory_await(&test.memory);
    put("c", "1");
    put("d", "1");
    put("e", "1");
    memory_hold(&test.memory, false);
    flush();
    check_trace("a=1 b=1;c=1 d=1;e=1;");
    CHECK_EQ(figures().batches, 3);
    CHECK_EQ(figures().by_size, 2);
    end();
}

TEST(a_key_on_its_way_keeps_its_order)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 1});
    memory_hold(&test.memory, true);
    put("a", "1");
    memory_await(&test.memory);
    put("a", "2");
    check_get("a", "2");
    drop("a");
    check_get("a", NULL);
    put("a", "3");
    check_get("a", "3");
    CHECK_EQ(figures().coalesced, 2);
    CHECK_EQ(figures().dirty, 2); /* a=1 is still on its way */
    memory_hold(&test.memory, false);
    flush();
    check_trace("a=1;a=3;");
    end();
}

TEST(flush_waits_for_what_was_put_before_and_no_more)
{
    begin(by_hand);
    CHECK_EQ(hf_writebehind_flush(test.behind, HF_NOW), HF_OK); /* nothing */
    memory_hold(&test.memory, true);
    put("a", "1");
    CHECK_EQ(hf_writebehind_flush(test.behind, HF_NOW), HF_TIMEOUT);
    memory_await(&test.memory);
    put("b", "1");
    CHECK_EQ(hf_writebehind_flush(test.behind, HF_NOW), HF_TIMEOUT);
    memory_hold(&test.memory, false);
    flush();
    check_trace("a=1;b=1;");
    put("c", "1");
    check_trace("a=1;b=1;");
    end();
}

TEST(write_through_is_in_the_store_when_it_returns)
{
    begin(by_hand);
    put("a", "1");
    CHECK_EQ(through("b=1 c-", HF_FOREVER), HF_OK);
    check_trace("a=1 b=1 c-;");
    CHECK_EQ(through("", HF_FOREVER), HF_OK);
    memory_hold(&test.memory, true);
    CHECK_EQ(through("a=2", HF_NOW), HF_PENDING);
    check_get("a", "2");
    memory_hold(&test.memory, false);
    CHECK_EQ(through("a=3", HF_FOREVER), HF_OK);
    CHECK_TEXT(memory_value(&test.memory, "a"), 1, "3");
    end();
}

TEST(what_the_store_says_of_a_read_is_passed_on)
{
    char text[MEMORY_BYTES];

    begin(by_hand);
    put("a", "1");
    test.memory.reads = HF_IO;
    check_get("a", "1");
    CHECK_EQ(hf_writebehind_get(test.behind, "b", 1, note_value, text), HF_IO);
    test.memory.reads = HF_OK;
    end();
}

TEST(it_can_stand_where_a_store_stands)
{
    struct hf_store_change changes[GROUP_MAX];
    struct hf_store store;
    char text[MEMORY_BYTES];

    begin(by_hand);
    CHECK_EQ(hf_writebehind_as_store(test.behind, &store), HF_OK);
    CHECK_EQ(
        store.apply(store.context, changes, changes_of("a=1 b=2", changes)),
        HF_OK);
    CHECK_EQ(store.read(store.context, "b", 1, note_value, text), HF_OK);
    CHECK_TEXT(text, strlen(text), "2");
    check_trace("");
    hf_store_close(&store); /* closes nothing */
    end();
    check_trace("a=1 b=2;");
}

TEST(close_writes_what_is_left)
{
    begin(by_hand);
    put("a", "1");
    put("b", "1");
    CHECK_EQ(hf_writebehind_close(test.behind, HF_FOREVER), HF_OK);
    check_trace("a=1 b=1;");
    CHECK_EQ(hf_writebehind_close(NULL, HF_NOW), HF_OK);
}

TEST(shut_takes_nothing_new_and_writes_the_rest)
{
    begin(by_hand);
    put("a", "1");
    hf_writebehind_shutdown(test.behind);
    hf_writebehind_shutdown(test.behind);
    CHECK_EQ(try_put("b", "1", HF_FOREVER), HF_CLOSED);
    CHECK_EQ(figures().refused, 1);
    await(dirty_is, 0);
    check_get("a", "1");
    check_get("b", NULL);
    end();
    check_trace("a=1;");
}

TEST(it_is_listed)
{
    static char text[1 << 16];

    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .name = "orders"});
    put("a", "1");
    hf_inspect_text(HF_INSPECT_TEXT, text, sizeof text);
    const char *row = strstr(text, "writebehind");
    CHECK(row != NULL && strstr(row, "orders") != NULL);
    end();
}

TEST(bad_options_are_refused)
{
    struct hf_writebehind *behind = NULL;
    struct hf_store half = {.read = memory_read};
    struct hf_writebehind_opts good, bad;

    prepare();
    good = completed((struct hf_writebehind_opts){0});
    CHECK_EQ(hf_writebehind_open(NULL, &good), HF_INVALID);
    CHECK_EQ(hf_writebehind_open(&behind, NULL), HF_INVALID);
#define REFUSED(field, value) \
    bad = good;               \
    bad.field = value;        \
    CHECK_EQ(hf_writebehind_open(&behind, &bad), HF_INVALID)
    REFUSED(store, NULL);
    REFUSED(store, &half);
    REFUSED(dead, NULL);
    REFUSED(batch_max, HF_WRITEBEHIND_BATCH_MAX + 1);
    REFUSED(dirty_max, HF_WRITEBEHIND_DIRTY_MAX + 1);
    REFUSED(pause_max_ns, 1);
    REFUSED(segment_bytes, UINT64_MAX);
    REFUSED(log_bytes, 1);
#undef REFUSED
    bad = good;
    bad.batch_max = 10;
    bad.dirty_max = 9;
    CHECK_EQ(hf_writebehind_open(&behind, &bad), HF_INVALID);
    CHECK(behind == NULL);
}

TEST(bad_input_is_refused_and_changes_nothing)
{
    struct hf_store_change pair[2] = {
        {.key = "a", .key_len = 1, .value = "1", .value_len = 1},
        {.key = "", .key_len = 0},
    };
    struct hf_store store;

    begin((struct hf_writebehind_opts){
        .age_ns = HF_FOREVER, .dirty_max = 3, .dirty_bytes = 1000});
    struct hf_writebehind *behind = test.behind;
    CHECK_EQ(hf_writebehind_put_all(behind, pair, 2, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_put_all(behind, NULL, 2, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_put_all(behind, NULL, 0, HF_NOW), HF_OK);
    CHECK_EQ(hf_writebehind_put(behind, NULL, 1, "1", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_put(behind, "a", 0, "1", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_put(behind, "a", 1, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_put(behind, "a", HF_STORE_KEY_MAX + 1, "", 0, 0),
             HF_INVALID);
    CHECK_EQ(hf_writebehind_put(behind, "a", 1, "",
                                (size_t)HF_STORE_VALUE_MAX + 1, 0),
             HF_INVALID);
    /* Larger than would ever fit. */
    CHECK_EQ(hf_writebehind_put(behind, "a", 1, "", 1000, HF_FOREVER),
             HF_INVALID);
    CHECK_EQ(try_group("a=1 b=1 c=1 d=1", HF_FOREVER), HF_INVALID);
    CHECK_EQ(hf_writebehind_delete(behind, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_get(behind, "a", 0, note_value, NULL), HF_INVALID);
    CHECK_EQ(hf_writebehind_get(behind, "a", 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_writebehind_as_store(behind, NULL), HF_INVALID);
    CHECK_EQ(hf_writebehind_put(NULL, "a", 1, "", 0, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_delete(NULL, "a", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_put_all(NULL, pair, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_through(NULL, pair, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_get(NULL, "a", 1, note_value, NULL), HF_INVALID);
    CHECK_EQ(hf_writebehind_flush(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_writebehind_as_store(NULL, &store), HF_INVALID);
    hf_writebehind_shutdown(NULL);
    hf_writebehind_stats(behind, NULL);
    struct hf_writebehind_stats stats;
    hf_writebehind_stats(NULL, &stats);
    CHECK_EQ(stats.changes, 0);
    CHECK_EQ(figures().changes, 0);
    end();
}

TEST(without_memory_nothing_is_changed)
{
    enum hf_status status = HF_NOMEM;
    uint64_t i;

    prepare();
    struct hf_writebehind_opts opts = completed(by_hand);
    for (i = 0; status == HF_NOMEM; i++) {
        CHECK(i < 100);
        hf_memory_fail_after(i);
        status = hf_writebehind_open(&test.behind, &opts);
        hf_memory_fail_never();
    }
    CHECK_EQ(status, HF_OK);
    put("a", "1");
    for (status = HF_NOMEM, i = 0; status == HF_NOMEM; i++) {
        hf_memory_fail_after(i);
        status = try_group("a=2 b=2 c=2", HF_NOW);
        hf_memory_fail_never();
        if (status == HF_NOMEM) {
            check_get("a", "1");
            check_get("b", NULL);
        }
    }
    CHECK_EQ(status, HF_OK);
    CHECK_EQ(i, 5); /* three changes and a group */
    flush();
    check_get("c", "2");
    end();
}
