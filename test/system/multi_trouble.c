/* multi_trouble.c - MULTI and EXEC on a disk that hangs or fails, and crashes.
 * tests: also under sanitizers
 */
#include "holdfast/clock.h"
#include "support/gate.h"
#include "support/group.h"

#define LONG "PER 3600000000"
#define TAKE "LIMIT k RATE 5 " LONG "; STOCK ADD pen 1"

static int64_t permits(void)
{
    return test_number(test_ask(&watcher, "LIMIT k RATE 5 " LONG " PEEK"),
                       "remaining");
}

TEST(permits_are_held_while_the_group_is_on_its_way)
{
    start_new();
    CHECK_DONE(test_ask(&first, "STOCK SET pen 1"));
    shut_with(&second);
    add_multi(&first, TAKE);
    TEST_SEND(&first, "EXEC");
    expect_queued(&first, 2);
    while (permits() != 4)
        ;
    CHECK(is_silent(&first));
    open_with(&second);
    CHECK_EQ(test_length(TEST_ANSWER(&first)), 2);
    CHECK_EQ(permits(), 4);
    /* one that is refused when it is applied gives them back */
    shut_with(&second);
    add_multi(&first, "LIMIT k RATE 5 " LONG " COST 3; RESERVE r ITEM pen 9");
    TEST_SEND(&first, "EXEC");
    while (permits() != 1)
        ;
    open_with(&second);
    expect_queued(&first, 2);
    CHECK_ERROR(TEST_ANSWER(&first), "EXECABORT");
    CHECK_EQ(permits(), 4);
    stop();
}

/* Two of the same REQ on their way: only the first is carried out, and only its
 * permits are spent. */
TEST(a_group_that_is_sent_twice_is_paid_for_once)
{
    start_new();
    CHECK_DONE(test_ask(&first, "STOCK SET pen 1"));
    shut_with(&second);
    add_multi(&first, TAKE);
    TEST_SEND(&first, "EXEC REQ q");
    while (permits() != 4)
        ;
    struct test_wire again;
    test_server_connect(&server, &again);
    add_multi(&again, TAKE);
    TEST_SEND(&again, "EXEC REQ q");
    while (permits() != 3)
        ;
    open_with(&second);
    expect_queued(&first, 2);
    expect_queued(&again, 2);
    CHECK_EQ(test_number(test_element(TEST_ANSWER(&first), 1), "total"), 2);
    CHECK_EQ(test_number(test_element(TEST_ANSWER(&again), 1), "total"), 2);
    CHECK_EQ(permits(), 4);
    test_wire_close(&again);
    stop();
}

/* It was asked for and is carried out, whoever hears of it. */
TEST(a_group_whose_client_goes_while_the_disk_hangs_is_carried_out)
{
    start_new();
    CHECK_DONE(test_ask(&first, "STOCK SET pen 1"));
    shut_with(&second);
    add_multi(&first, TAKE "; LOCK a OWNER ann TTL 3600000");
    TEST_SEND(&first, "EXEC");
    while (permits() != 4)
        ;
    test_wire_close(&first);
    open_with(&second);
    while (test_number(test_ask(&watcher, "STOCK GET pen"), "total") != 2)
        ;
    CHECK_EQ(permits(), 4);
    CHECK_DONE(test_ask(&watcher, "LOCKINFO a"));
    stop();
}

/* What MULTI and the commands behind it are answered waits for the answer of
 * what was sent before, with and without EXEC. */
TEST(queueing_behind_a_write_is_answered_after_it)
{
    start_new();
    CHECK_DONE(test_ask(&second, "STOCK SET pen 1"));
    shut_with(&second);
    int64_t before = commands();
    test_wire_add(&first, "STOCK ADD pen 1");
    add_multi(&first, "STOCK ADD pen 1; STOCK GET pen");
    test_wire_add(&first, "EXEC");
    add_multi(&first, TAKE);
    CHECK_EQ(test_wire_send(&first), HF_OK);
    await_commands(before, 8); /* all of them were read */
    CHECK(is_silent(&first));
    open_with(&second);
    CHECK_EQ(test_number(TEST_ANSWER(&first), "total"), 2);
    expect_queued(&first, 2);
    CHECK_EQ(test_number(test_element(TEST_ANSWER(&first), 1), "total"), 3);
    expect_queued(&first, 2);
    CHECK_REPLY(test_ask(&first, "STOCK GET pen"), "+QUEUED");
    CHECK_EQ(permits(), 5);
    CHECK_EQ(test_length(test_ask(&first, "EXEC")), 3);
    CHECK_EQ(permits(), 4);
    stop();
}

/* Before the group come more ends of holds than one turn has work for: each
 * looks at all who wait. So the group is left to the next turn, when what was
 * owed has been told. */
TEST(what_is_owed_is_told_once_though_the_group_is_left_to_the_next_turn)
{
    enum { HOLDS = 900, READERS = 150 };
    static struct test_wire readers[READERS];
    static int64_t tokens[HOLDS];

    start_new();
    CHECK_DONE(test_ask(&first, "STOCK SET pen 1"));
    CHECK_DONE(test_ask(&first, "LOCK b OWNER ann TTL 3600000"));
    for (int i = 0; i < READERS; i++) {
        test_server_connect(&server, &readers[i]);
        TEST_SEND(&readers[i],
                  "LOCKSET OWNER r%d NAME a SHARED NAME b SHARED FOREVER", i);
    }
    while (test_info(&watcher, "lock_waiters") < READERS)
        ;
    for (int i = 0; i < HOLDS; i++)
        test_wire_add(&first, "LOCK a OWNER h%d SHARED TTL 3600000", i);
    CHECK_EQ(test_wire_send(&first), HF_OK);
    for (int i = 0; i < HOLDS; i++)
        tokens[i] = test_number(TEST_ANSWER(&first), "token");
    shut_with(&second);
    int64_t before = commands();
    for (int i = 0; i < HOLDS; i++)
        test_wire_add(&first, "UNLOCK a %" PRId64, tokens[i]);
    add_multi(&first, "STOCK ADD pen 1");
    test_wire_add(&first, "EXEC");
    CHECK_EQ(test_wire_send(&first), HF_OK);
    await_commands(before, HOLDS + 3);
    open_with(&second);
    for (int i = 0; i < HOLDS; i++)
        CHECK_DONE(TEST_ANSWER(&first));
    expect_queued(&first, 1);
    CHECK_EQ(test_length(TEST_ANSWER(&first)), 1);
    CHECK_REPLY(test_ask(&first, "PING"), "+PONG");
    CHECK(test_info(&watcher, "turn_applied_max") >= 100000);
    for (int i = 0; i < READERS; i++)
        test_wire_close(&readers[i]);
    stop();
}

TEST(errors_behind_a_write_are_answered_after_it)
{
    static const char *const wrong[] = {"NOSUCH",
                                        "PING",
                                        "MULTI",
                                        "MULTI 1",
                                        "LOCK",
                                        "LOCK a OWNER o SESSION 0",
                                        "LIMIT k RATE 5 " LONG " PEEK",
                                        "REVOKE a 1"};

    start_new();
    CHECK_DONE(test_ask(&second, "STOCK SET pen 1"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        shut_with(&second);
        test_wire_add(&first, "STOCK SET pen %zu", i);
        add_multi(&first, "STOCK GET pen");
        test_wire_add(&first, "%s", wrong[i]);
        TEST_SEND(&first, "DISCARD");
        CHECK(is_silent(&first));
        open_with(&second);
        CHECK_EQ(test_number(TEST_ANSWER(&first), "total"), i);
        expect_queued(&first, 1);
        CHECK(TEST_ANSWER(&first).data[0] == '-');
        CHECK_REPLY(TEST_ANSWER(&first), "+OK");
    }
    /* and a limit that denies */
    shut_with(&second);
    test_wire_add(&first, "STOCK SET pen 20");
    add_multi(&first, "LIMIT k RATE 5 " LONG " COST 6");
    TEST_SEND(&first, "EXEC");
    CHECK(is_silent(&first));
    open_with(&second);
    CHECK_EQ(test_number(TEST_ANSWER(&first), "total"), 20);
    expect_queued(&first, 1);
    CHECK_ERROR(TEST_ANSWER(&first), "EXECABORT");
    CHECK_EQ(permits(), 5);
    stop();
}

/* The session that a group means is the one that is bound when all before it
 * has been carried out. */
TEST(a_group_finds_the_session_that_was_bound_before_it)
{
    start_new();
    test_wire_add(&first, "SESSION OPEN TTL 3600000 BIND");
    add_multi(&first, "LOCK a OWNER ann SESSION 0");
    TEST_SEND(&first, "EXEC");
    int64_t id = test_number(TEST_ANSWER(&first), "session");
    expect_queued(&first, 1);
    CHECK_EQ(test_length(TEST_ANSWER(&first)), 1);
    CHECK_EQ(test_number(test_ask(&second, "LOCKINFO a"), "session"), id);
    stop();
}

TEST(a_failed_log_refuses_groups_and_gives_their_permits_back)
{
    static const char *const kinds[] = {"eio", "enospc", "short"};

    for (int i = 0; i < 3; i++) {
        char fault[32];
        snprintf(fault, sizeof fault, "write:3:%s", kinds[i]);
        snprintf(dir, sizeof dir, "%s/failed-%d", test_folder(), i);
        if (server.pid > 0)
            test_server_kill(&server);
        close_all();
        test_server_start(
            &server, &(struct test_server_opts){.dir = dir, .fault = fault});
        connect_all();
        int told = 0;
        for (;; told++) {
            struct hf_bytes reply =
                ask_group(&first, "EXEC",
                          "LIMIT k RATE 5 " LONG "; STOCK SET pen %d", told);
            if (test_is_error(reply, "JOURNAL"))
                break;
            CHECK_EQ(test_length(reply), 2);
            CHECK(told < 4);
        }
        CHECK_EQ(permits(), 5 - told);
        /* it is refused at once from now on, and costs nothing */
        CHECK_ERROR(ask_group(&second, "EXEC", TAKE), "JOURNAL");
        CHECK_EQ(permits(), 5 - told);
        close_all();
        test_server_kill(&server);
    }
}

static int64_t total_of(int sku)
{
    return test_number(test_ask(&watcher, "STOCK GET sku-%d", sku), "total");
}

/* Killed while groups are on their way: each is there whole or not at all, and
 * all that were answered are there. */
TEST(a_group_is_whole_after_a_crash)
{
    enum { ROUNDS = 5, GROUPS = 400 };
    int64_t sent = 0;
    int64_t told = 0;

    start_new();
    for (int i = 0; i < 3; i++)
        CHECK_DONE(test_ask(&first, "STOCK SET sku-%d 0", i));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < GROUPS; i++) {
            add_multi(&first, "STOCK ADD sku-0 1; STOCK ADD sku-1 1; LIMIT k "
                              "RATE 1000000 " LONG "; STOCK ADD sku-2 1");
            test_wire_add(&first, "EXEC");
        }
        CHECK_EQ(test_wire_send(&first), HF_OK);
        sent += GROUPS;
        for (int i = 0; i < 1 + round * 90; i++) {
            expect_queued(&first, 4);
            struct hf_bytes all = TEST_ANSWER(&first);
            CHECK_EQ(test_length(all), 4);
            told = test_number(test_element(all, 0), "total");
        }
        test_server_kill(&server);
        close_all();
        start();
        int64_t total = total_of(0);
        CHECK(total >= told && total <= sent);
        CHECK_EQ(total_of(1), total);
        CHECK_EQ(total_of(2), total);
        sent = total;
    }
    stop();
}
