/* multi_size.c - how large a group of MULTI and EXEC may be.
 * tests: also under sanitizers
 */
#include <inttypes.h>

#include "hold/bounds.h"
#include "support/multi.h"

TEST(a_group_of_ten_thousand_commands_is_refused)
{
    start();
    test_wire_add(&wire, "MULTI");
    for (int i = 0; i < 10000; i++)
        test_wire_add(&wire, "STOCK ADD pen 1");
    TEST_SEND(&wire, "EXEC");
    expect_queued(&wire, HOLD_GROUP_MAX);
    for (int i = HOLD_GROUP_MAX; i < 10000; i++)
        CHECK_REPLY(TEST_ANSWER(&wire), "-BADARG a group has at most 128 "
                                        "commands and 32768 bytes");
    CHECK_ERROR(TEST_ANSWER(&wire), "EXECABORT");
    check_untouched();
    stop();
}

/* So many commands, with and without limits among them. */
static struct hf_bytes ask_many(int count, int limits)
{
    test_wire_add(&wire, "MULTI");
    for (int i = 0; i < count - limits; i++)
        test_wire_add(&wire, "STOCK ADD pen 1");
    for (int i = 0; i < limits; i++)
        test_wire_add(&wire, "LIMIT many RATE 1000 " LONG);
    TEST_SEND(&wire, "EXEC");
    expect_queued(&wire, HOLD_GROUP_MAX);
    if (count > (int)HOLD_GROUP_MAX)
        CHECK_ERROR(TEST_ANSWER(&wire), "BADARG");
    return TEST_ANSWER(&wire);
}

TEST(a_group_has_128_commands_at_most)
{
    start();
    struct hf_bytes all = ask_many(HOLD_GROUP_MAX, 0);
    CHECK_EQ(test_length(all), HOLD_GROUP_MAX);
    CHECK_EQ(test_number(test_element(all, 127), "total"), 138);
    CHECK_ERROR(ask_many(HOLD_GROUP_MAX + 1, 0), "EXECABORT");
    CHECK_EQ(test_length(ask_many(HOLD_GROUP_MAX, 60)), HOLD_GROUP_MAX);
    CHECK_ERROR(ask_many(HOLD_GROUP_MAX + 1, 1), "EXECABORT");
    CHECK_EQ(stock("pen", "total"), 138 + 68);
    stop();
}

static void add_fence(const char *name, int len)
{
    test_wire_add(&wire, "FENCE %.*s 1", len, name);
}

/* MULTI with `full` commands about long names and one about a name of `len`
 * bytes: was all of it queued? */
static bool takes(const char *name, int full, int len)
{
    bool queued = true;

    test_wire_add(&wire, "MULTI");
    for (int i = 0; i < full; i++)
        add_fence(name, HOLD_NAME_MAX);
    if (len > 0)
        add_fence(name, len);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    CHECK_REPLY(TEST_ANSWER(&wire), "+OK");
    for (int i = 0; i < full + (len > 0); i++)
        queued = test_is(TEST_ANSWER(&wire), "+QUEUED\r\n") && queued;
    return queued;
}

TEST(a_group_of_as_many_bytes_as_there_may_be_is_carried_out)
{
    char name[HOLD_NAME_MAX + 1];
    int full = 0;
    int len = 1;

    start();
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    CHECK_DONE(test_ask(&wire, "LOCK a OWNER ann")); /* a token to show */
    while (takes(name, full + 1, 0)) {
        CHECK_REPLY(test_ask(&wire, "DISCARD"), "+OK");
        full++;
    }
    CHECK_ERROR(test_ask(&wire, "EXEC"), "EXECABORT");
    CHECK(full > 50 && full < (int)HOLD_GROUP_MAX);
    while (takes(name, full, len)) {
        struct hf_bytes all = test_ask(&wire, "EXEC");
        CHECK_EQ(test_length(all), (size_t)full + 1);
        len++;
    }
    CHECK(len > 1 && len < (int)HOLD_NAME_MAX);
    CHECK_ERROR(test_ask(&wire, "EXEC"), "EXECABORT");
    stop();
}

TEST(the_words_of_a_limit_count_among_the_bytes)
{
    char key[257];
    int queued = 0;

    start();
    memset(key, 'k', 256);
    key[256] = '\0';
    CHECK_REPLY(test_ask(&wire, "MULTI"), "+OK");
    while (test_is(test_ask(&wire, "LIMIT %s RATE 1000 " LONG, key),
                   "+QUEUED\r\n"))
        queued++;
    CHECK(queued > 10 && queued < (int)HOLD_GROUP_MAX);
    CHECK_ERROR(test_ask(&wire, "EXEC"), "EXECABORT");
    test_wire_add(&wire, "MULTI");
    for (int i = 0; i < queued; i++)
        test_wire_add(&wire, "LIMIT %s RATE 1000 " LONG, key);
    TEST_SEND(&wire, "EXEC");
    expect_queued(&wire, queued);
    CHECK_EQ(test_length(TEST_ANSWER(&wire)), (size_t)queued);
    stop();
}
