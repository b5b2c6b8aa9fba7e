/* Tests of groups: what is put together is in one transaction, always. */
#include "base/random.h"
#include "support/writebehind.h"

static const struct hf_writebehind_opts by_hand = {.age_ns = HF_FOREVER};

TEST(a_group_is_one_transaction_whatever_the_size_of_a_batch)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 2});
    memory_hold(&test.memory, true);
    put("x", "1");
    put("y", "1");
    memory_await(&test.memory);
    put("a", "1");
    put_group("b=1 c=1 d=1"); /* larger than a batch */
    put("e", "1");
    put_group("f=1 g-");
    memory_hold(&test.memory, false);
    flush();
    check_trace("x=1 y=1;a=1;b=1 c=1 d=1;e=1;f=1 g-;");
    CHECK_EQ(figures().groups, 2);
    CHECK_EQ(figures().merged, 0);
    end();
}

TEST(a_later_put_of_a_member_stays_in_the_group)
{
    begin(by_hand);
    put_group("a=1 b=1");
    put("a", "2");
    drop("b");
    put("c", "1");
    CHECK_EQ(figures().coalesced, 2);
    flush();
    check_trace("a=2 b- c=1;");
    end();
}

TEST(groups_that_meet_become_one)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 3});
    memory_hold(&test.memory, true);
    put_group("x=1 y=1 z=1");
    memory_await(&test.memory);
    put_group("a=1 b=1");
    put("q", "1");
    put_group("c=1 d=1");
    put_group("d=2 e=2"); /* c d e */
    CHECK_EQ(figures().merged, 1);
    put_group("b=3 c=3"); /* a b c d e */
    CHECK_EQ(figures().merged, 3);
    memory_hold(&test.memory, false);
    flush();
    /* One transaction, at the place of the oldest. */
    CHECK_EQ(test.memory.applies, 3);
    CHECK_EQ(test.memory.largest, 5);
    CHECK(strstr(test.memory.trace, ";q=1;") != NULL);
    CHECK_TEXT(memory_value(&test.memory, "a"), 1, "1");
    CHECK_TEXT(memory_value(&test.memory, "b"), 1, "3");
    CHECK_TEXT(memory_value(&test.memory, "c"), 1, "3");
    CHECK_TEXT(memory_value(&test.memory, "d"), 1, "2");
    CHECK_TEXT(memory_value(&test.memory, "e"), 1, "2");
    end();
}

TEST(a_group_takes_in_single_puts_that_it_overwrites)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 2});
    memory_hold(&test.memory, true);
    put("x", "1");
    put("y", "1");
    memory_await(&test.memory);
    put("a", "1");
    put("b", "1");
    put_group("a=2 c=2");
    memory_hold(&test.memory, false);
    flush();
    check_trace("x=1 y=1;a=2 c=2;b=1;");
    CHECK_EQ(figures().merged, 0);
    end();
}

TEST(a_member_on_its_way_is_left_there)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 2});
    memory_hold(&test.memory, true);
    put_group("a=1 b=1");
    memory_await(&test.memory);
    put_group("b=2 c=2");
    check_get("b", "2");
    memory_hold(&test.memory, false);
    flush();
    check_trace("a=1 b=1;b=2 c=2;");
    CHECK_EQ(figures().merged, 0);
    CHECK_EQ(figures().coalesced, 0);
    end();
}

TEST(of_a_key_that_comes_twice_the_last_counts)
{
    begin(by_hand);
    put_group("a=1 b=1 a=2");
    CHECK_EQ(figures().dirty, 2);
    CHECK_EQ(figures().coalesced, 1);
    flush();
    put_group("a=1 a=2 a=3");
    flush();
    CHECK_TEXT(memory_value(&test.memory, "a"), 1, "3");
    CHECK_TEXT(memory_value(&test.memory, "b"), 1, "1");
    end();
}

TEST(a_dead_group_is_given_back_whole)
{
    begin(by_hand);
    test.memory.poison = "b";
    put("x", "1");
    put_group("a=1 b=1 c=1");
    put("y", "1");
    CHECK_EQ(hf_writebehind_flush(test.behind, HF_FOREVER), HF_FAILED);
    /* Only the group to blame. */
    CHECK_TEXT(test.dead, strlen(test.dead), "a=1 b=1 c=1!14;");
    check_trace("x=1;y=1;");
    check_get("a", NULL);
    CHECK_EQ(figures().dead, 3);
    CHECK_EQ(figures().flushed, 2);
    test.memory.poison = NULL;
    end();
}

/* Pairs of keys that are always put together, with one number. */
#define PAIRS 8

static uint64_t broken;

static void check_pairs(void *context, struct memory_store *memory)
{
    (void)context;
    for (int i = 0; i < PAIRS; i++) {
        char left[8], right[8];
        snprintf(left, sizeof left, "l%d", i);
        snprintf(right, sizeof right, "r%d", i);
        const char *a = memory_value(memory, left);
        const char *b = memory_value(memory, right);
        broken +=
            (a == NULL) != (b == NULL) || (a != NULL && strcmp(a, b) != 0);
    }
}

/* A group of one to three pairs, chosen at random. */
static void put_pairs(struct hf_random *random, int number)
{
    char text[128] = "";
    size_t len = 0;

    for (uint64_t n = 1 + hf_random_below(random, 3); n > 0; n--) {
        int i = (int)hf_random_below(random, PAIRS);
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%sl%d=%d r%d=%d",
                             len > 0 ? " " : "", i, number, i, number);
    }
    put_group(text);
}

TEST(random_groups_are_whole_in_the_store_after_every_transaction)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    begin((struct hf_writebehind_opts){.age_ns = 1, .batch_max = 3});
    broken = 0;
    test.memory.applied = check_pairs;
    for (int i = 0; i < 20000; i++) {
        put_pairs(&random, i);
        if (hf_random_below(&random, 100) == 0)
            test_clock_advance(&test.hands, 1);
        if (hf_random_below(&random, 500) == 0)
            flush();
    }
    end();
    CHECK_EQ(broken, 0);
    CHECK(test.memory.applies > 20);
}

TEST(a_group_larger_than_a_batch_is_handed_back_whole)
{
    begin((struct hf_writebehind_opts){.age_ns = HF_FOREVER, .batch_max = 2});
    memory_hold(&test.memory, true);
    put("x", "1");
    put("y", "1");
    memory_await(&test.memory);
    put_group("a=1 b=1 c=1 d=1 e=1");
    test.memory.fail = 1000;
    test.memory.status = HF_IO;
    memory_hold(&test.memory, false);
    await(failures_are, 1);
    CHECK_EQ(hf_writebehind_close(test.behind, HF_NOW), HF_TIMEOUT);
    CHECK_TEXT(test.dead, strlen(test.dead),
               "x=1!8;y=1!8;a=1 b=1 c=1 d=1 e=1!8;");
}
