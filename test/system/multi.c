/* multi.c - MULTI, EXEC and DISCARD on a real server.
 * tests: also under sanitizers
 */
#include <inttypes.h>

#include "server/group.h"
#include "support/multi.h"

static void check_checkout(const char *hello, const char *map)
{
    start();
    CHECK_DONE(test_ask(&wire, "%s", hello));
    struct hf_bytes all = ask_group(
        &wire, "EXEC",
        "LIMIT k RATE 5 " LONG " COST 2; LOCK door OWNER ann TTL 60000; FENCE "
        "shop 1; RESERVE r ITEM pen 2 ITEM ink 1; CONFIRM r; STOCK GET pen; "
        "LIMIT k RATE 5 " LONG " COST 4");
    CHECK_ERROR(all, "EXECABORT");
    check_untouched();
    all = ask_group(
        &wire, "EXEC",
        "LIMIT k RATE 5 " LONG " COST 2; LOCK door OWNER ann TTL 60000; FENCE "
        "shop 1; RESERVE r ITEM pen 2 ITEM ink 1; CONFIRM r; STOCK GET pen; "
        "LIMIT k RATE 5 " LONG);
    CHECK_EQ(test_length(all), 7);
    CHECK(memcmp(test_element(all, 0).data, map, strlen(map)) == 0);
    CHECK_EQ(test_number(test_element(all, 0), "remaining"), 3);
    CHECK(test_number(test_element(all, 1), "safe_ms") <= 60000);
    CHECK_REPLY(test_element(all, 2), "+OK");
    CHECK(hf_bytes_equal(test_text(test_element(all, 3), "status"),
                         hf_bytes_text("PENDING")));
    CHECK(hf_bytes_equal(test_text(test_element(all, 4), "status"),
                         hf_bytes_text("CONFIRMED")));
    CHECK_EQ(test_number(test_element(all, 5), "sold"), 2);
    CHECK_EQ(test_number(test_element(all, 6), "remaining"), 2);
    CHECK_EQ(stock("ink", "sold"), 1);
    CHECK_EQ(permits("k"), 2);
    stop();
}

TEST(a_group_is_one_round_trip_and_each_command_is_answered)
{
    check_checkout("HELLO 2", "*10\r\n$7\r\nallowed");
    check_checkout("HELLO 3", "%5\r\n$7\r\nallowed");
}

TEST(exec_and_discard_need_multi_and_multi_is_not_nested)
{
    start();
    CHECK_REPLY(test_ask(&wire, "EXEC"), "-ERR EXEC without MULTI");
    CHECK_REPLY(test_ask(&wire, "EXEC REQ q"), "-ERR EXEC without MULTI");
    CHECK_REPLY(test_ask(&wire, "DISCARD"), "-ERR DISCARD without MULTI");
    CHECK_REPLY(test_ask(&wire, "MULTI"), "+OK");
    CHECK_REPLY(test_ask(&wire, "EXEC"), "*0");
    CHECK_REPLY(test_ask(&wire, "EXEC"), "-ERR EXEC without MULTI");
    CHECK_REPLY(test_ask(&wire, "MULTI"), "+OK");
    CHECK_REPLY(test_ask(&wire, "STOCK SET pen 20"), "+QUEUED");
    CHECK_REPLY(test_ask(&wire, "MULTI"), "-ERR MULTI calls can not be nested");
    CHECK_EQ(test_length(test_ask(&wire, "EXEC")), 1); /* as in Redis */
    CHECK_EQ(stock("pen", "total"), 20);
    CHECK_ERROR(test_ask(&wire, "EXEC"), "ERR");
    stop();
}

TEST(discard_forgets_what_was_queued)
{
    start();
    for (int i = 0; i < 2; i++) {
        CHECK_REPLY(test_ask(&wire, "MULTI"), "+OK");
        CHECK_REPLY(test_ask(&wire, "STOCK SET pen 20"), "+QUEUED");
        CHECK_REPLY(test_ask(&wire, "LIMIT k RATE 5 " LONG), "+QUEUED");
        if (i == 1)
            CHECK_ERROR(test_ask(&wire, "NOSUCH"), "ERR");
        CHECK_REPLY(test_ask(&wire, "DISCARD"), "+OK");
        CHECK_ERROR(test_ask(&wire, "EXEC"), "ERR");
        check_untouched();
    }
    CHECK_EQ(test_length(ask_group(&wire, "EXEC", "STOCK GET pen")), 1);
    stop();
}

/* Each is told what is wrong with it, at once; EXEC then refuses all. */
TEST(what_cannot_be_queued_spoils_the_group)
{
    static const struct {
        const char *command;
        const char *error;
    } wrong[] = {
        {"NOSUCH a b", "ERR"},
        {"WATCH pen", "ERR"},
        {"SUBSCRIBE news", "ERR"},
        {"PING", "ERR"},
        {"HELLO 3", "ERR"},
        {"INFO", "ERR"},
        {"CLIENT ID", "ERR"},
        {"CONFIG GET *", "ERR"},
        {"CONFIG SET locks-max 7", "ERR"},
        {"FLUSHALL", "ERR"},
        {"FENCE DEL shop", "ERR"},
        {"REVOKE door 1", "ERR"},
        {"SESSION OPEN TTL 1000", "ERR"},
        {"SESSION KEEP 1", "ERR"},
        {"SESSION CLOSE 1", "ERR"},
        {"SESSION", "BADARG"},
        {"LOCK door OWNER ann SESSION 0", "STATE"},
        {"EXPLAIN door", "ERR"},
        {"WAITLIST JOIN pen 1 OWNER ann", "ERR"},
        {"WAITLIST LEAVE pen w", "ERR"},
        {"STOCK HISTORY pen", "ERR"},
        {"STOCK GET pen AT 1", "ERR"},
        {"LOCKS", "ERR"},
        {"STOCK LIST", "ERR"},
        {"LOCK door", "BADARG"},
        {"LOCK door OWNER ann TTL x", "BADARG"},
        {"STOCK SET pen", "BADARG"},
        {"STOCK SET pen 20 REQ q", "BADARG"},
        {"MULTI now", "BADARG"},
        {"DISCARD it", "BADARG"},
        {"LIMIT k", "BADARG"},
        {"LIMIT k RATE 5", "BADARG"},
        {"LIMIT k POLICY nosuch", "NOTFOUND"},
        {"LIMIT k RATE 5 " LONG " WAIT 5", "BADARG"},
        {"LIMIT k RATE 5 " LONG " HOLD 5", "BADARG"},
        {"LIMIT k RATE 5 " LONG " REFUND 5", "BADARG"},
        {"LIMIT k RATE 5 " LONG " PEEK", "BADARG"},
        {"LIMIT k RATE 5 " LONG " HEADERS", "BADARG"},
        {"LIMIT k RATE 5 " LONG " REQ q", "BADARG"},
        {"LIMIT DEFINE p RATE 5 " LONG, "ERR"},
        {"LIMIT POLICIES", "ERR"},
        {"CL.THROTTLE k 5 5 3600", "ERR"},
    };

    start();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        CHECK_REPLY(test_ask(&wire, "MULTI"), "+OK");
        CHECK_REPLY(test_ask(&wire, "STOCK SET pen 20"), "+QUEUED");
        struct hf_bytes told = test_ask(&wire, "%s", wrong[i].command);
        if (!test_is_error(told, wrong[i].error))
            test_fail(__FILE__, __LINE__, "%s: %.*s", wrong[i].command,
                      (int)told.len, told.data);
        CHECK_REPLY(test_ask(&wire, "LOCK door OWNER ann"), "+QUEUED");
        CHECK_REPLY(test_ask(&wire, "EXEC"),
                    "-EXECABORT Transaction discarded because of previous "
                    "errors.");
        CHECK_ERROR(test_ask(&wire, "EXEC"), "ERR"); /* it is over */
        check_untouched();
    }
    stop();
}

#define SCRIPT_EXPIRE "d75bb8b5bd13532ddedd17762e772346e39b321e"

/* Examples of those that words and required options do not make. */
static const char *const special[][2] = {
    {"LOCK", "a OWNER o WAIT 5"},
    {"STOCK EXPECT", "pen 1 AT 4000000000000"},
    {"RESERVE", "r ITEM pen 1 WAIT 5"},
    {"LIMIT", "k RATE 5 PER 5"},
    {"SET", "a v NX PX 5"},
    {"SETNX", "a v"},
    {"DEL", "a b"},
    {"UNLINK", "a"},
    {"GETDEL", "a"},
    {"DELIFEQ", "a v"},
    {"DELEX", "a IFEQ v"},
    {"ZREM", "a v"},
    {"PEXPIRE", "a 5"},
    {"EXPIRE", "a 5"},
    {"PERSIST", "a"},
    {"GET", "a"},
    {"PTTL", "a"},
    {"TTL", "a"},
    {"TYPE", "a"},
    {"EXISTS", "a b"},
    {"EVAL", "return\tredis.call('set',KEYS[1],ARGV[1],'NX','PX',ARGV[2]) "
             "1 a v 5"},
    {"EVALSHA", SCRIPT_EXPIRE " 1 a v 5"},
};

/* The example of a command: all of its words are "1", and all values of the
 * options that it must have. */
static void make_example(const struct command *command, char *out, size_t room)
{
    const struct shape *shape = command->shape;
    size_t at = 0;

    for (size_t i = 0; i < sizeof special / sizeof *special; i++) {
        if (strcmp(special[i][0], command->name) == 0) {
            snprintf(out, room, "%s %s", command->name, special[i][1]);
            return;
        }
    }
    at += (size_t)snprintf(out, room, "%s", command->name);
    for (const uint8_t *word = shape->words; *word != WORD_END; word++) {
        if (!shape->vocabulary->words[*word].optional)
            at += (size_t)snprintf(out + at, room - at, " 1");
    }
    for (unsigned i = 0; i < shape->vocabulary->option_count; i++) {
        const struct hold_arg *option = &shape->vocabulary->options[i];
        if ((shape->required >> i & 1) == 0)
            continue;
        at += (size_t)snprintf(out + at, room - at, " %s", option->name);
        for (size_t value = parse_values(option); value > 0; value--)
            at += (size_t)snprintf(out + at, room - at, " 1");
    }
}

/* docs/commands.md says of each whether it may. */
TEST(what_may_be_in_a_group_is_told_and_is_queued)
{
    char example[512];

    start();
    table_init();
    CHECK_REPLY(test_ask(&wire, "MULTI"), "+OK");
    for (size_t i = 0; i < table_count(); i++) {
        const struct command *command = table_at(i);
        if (!group_takes(command))
            continue;
        make_example(command, example, sizeof example);
        struct hf_bytes told = test_ask(&wire, "%s", example);
        if (!test_is(told, "+QUEUED\r\n"))
            test_fail(__FILE__, __LINE__, "%s: %.*s", example, (int)told.len,
                      told.data);
    }
    CHECK_REPLY(test_ask(&wire, "DISCARD"), "+OK");
    check_untouched();
    stop();
}

/* Else what its client sends next would be queued, and not be done. */
TEST(an_exec_that_cannot_be_read_ends_the_group)
{
    start();
    CHECK_ERROR(test_ask(&wire, "EXEC REQ"), "BADARG");
    for (int i = 0; i < 2; i++) {
        if (i == 1) /* behind what is on its way */
            test_wire_add(&wire, "STOCK SET ink 3");
        test_wire_add(&wire, "MULTI");
        test_wire_add(&wire, "STOCK SET pen 20");
        TEST_SEND(&wire, "%s", i == 0 ? "EXEC REQ" : "EXEC at once");
        if (i == 1)
            (void)TEST_ANSWER(&wire);
        CHECK_REPLY(TEST_ANSWER(&wire), "+OK");
        CHECK_REPLY(TEST_ANSWER(&wire), "+QUEUED");
        CHECK_ERROR(TEST_ANSWER(&wire), "EXECABORT");
        CHECK_REPLY(test_ask(&wire, "EXEC"), "-ERR EXEC without MULTI");
        check_untouched();
    }
    stop();
}

TEST(a_client_that_goes_before_exec_leaves_nothing)
{
    start();
    struct test_wire rude;

    for (int i = 0; i < 100; i++) {
        test_server_connect(&server, &rude);
        test_wire_add(&rude, "MULTI");
        test_wire_add(&rude, "LIMIT k RATE 5 " LONG);
        test_wire_add(&rude, "STOCK SET pen 20");
        if (i % 2 == 0)
            test_wire_add_raw(&rude, "*1\r\n$4\r\nEX", 10);
        CHECK_EQ(test_wire_send(&rude), HF_OK);
        if (i % 3 == 0)
            CHECK_REPLY(TEST_ANSWER(&rude), "+OK");
        test_wire_close(&rude);
    }
    check_untouched();
    stop();
}

TEST(the_first_refusal_refuses_all_with_its_place_and_its_own_error)
{
    start();
    int64_t before = test_number(test_ask(&wire, "LOCK a OWNER ann"), "token");

    CHECK_REPLY(ask_group(&wire, "EXEC",
                          "LOCK door OWNER ann; RESERVE r ITEM pen 8; STOCK "
                          "ADD pen -3; STOCK SET ink 5"),
                "-EXECABORT command 3 of 4: SHORT sku 'pen': requested -3, "
                "available 2");
    CHECK_REPLY(ask_group(&wire, "EXEC", "STOCK SET ink 9; HELD a %" PRId64,
                          before + 7),
                "-EXECABORT command 2 of 2: LOST lock 'a' is no longer held "
                "with token 10");
    CHECK_ERROR(ask_group(&wire, "EXEC", "STOCK SET ink 9; FENCE shop 4711"),
                "EXECABORT");
    CHECK_ERROR(ask_group(&wire, "EXEC", "RESERVE r ITEM gold 1"), "EXECABORT");
    /* who has to wait does not: it is refused */
    CHECK_ERROR(ask_group(&wire, "EXEC",
                          "STOCK SET ink 9; LOCK a OWNER bob WAIT %d",
                          FOR_EVER_MS),
                "EXECABORT");
    CHECK_ERROR(ask_group(&wire, "EXEC", "LOCK a OWNER bob FOREVER"),
                "EXECABORT");
    check_untouched();
    /* not even a number was used up */
    CHECK_EQ(test_number(test_ask(&wire, "LOCK b OWNER ann"), "token"),
             before + 1);
    stop();
}

TEST(a_limit_in_a_refused_group_costs_nothing)
{
    start();
    for (int i = 0; i < 20; i++) {
        CHECK_ERROR(ask_group(&wire, "EXEC",
                              "LIMIT k RATE 5 " LONG
                              " COST 2; LIMIT k RATE 5 " LONG
                              "; RESERVE r ITEM ink 4"),
                    "EXECABORT");
        check_untouched();
    }
    CHECK_DONE(ask_group(&wire, "EXEC", "LIMIT k RATE 5 " LONG " COST 4"));
    struct hf_bytes denied =
        ask_group(&wire, "EXEC",
                  "STOCK SET pen 20; LIMIT other RATE 5 " LONG "; LIMIT k RATE "
                  "5 " LONG "; LIMIT k RATE 5 " LONG);
    static const char told[] = "-EXECABORT command 4 of 4: DENIED the limit "
                               "'k' has no permits, retry in ";
    CHECK(denied.len > sizeof told &&
          memcmp(denied.data, told, sizeof told - 1) == 0);
    CHECK_EQ(permits("k"), 1);
    CHECK_EQ(permits("other"), 5);
    CHECK_EQ(stock("pen", "total"), 10);
    stop();
}

/* The permits that it lacks are those of the first, which is not carried out
 * yet. */
TEST(a_repeated_exec_is_not_denied_while_the_first_is_on_its_way)
{
    char commands[GROUP_TEXT_MAX];

    start_in("always");
    CHECK_DONE(test_ask(&wire, "STOCK SET pen 1000"));
    for (int i = 0; i < 50; i++) {
        struct test_wire *wires[] = {&wire, &wire, &other};
        snprintf(commands, sizeof commands,
                 "LIMIT k%d RATE 5 " LONG
                 " COST 4; RESERVE r%d ITEM pen 1; CONFIRM r%d; LIMIT other "
                 "RATE 1000 " LONG,
                 i, i, i);
        (void)add_multi(&wire, commands);
        test_wire_add(&wire, "EXEC REQ q%d", i);
        (void)add_multi(&wire, commands);
        TEST_SEND(&wire, "EXEC REQ q%d", i);
        (void)add_multi(&other, commands);
        TEST_SEND(&other, "EXEC REQ q%d", i);
        for (int j = 0; j < 3; j++) {
            expect_queued(wires[j], 4);
            struct hf_bytes all = TEST_ANSWER(wires[j]);
            CHECK_EQ(test_length(all), 4);
        }
        snprintf(commands, sizeof commands, "k%d", i);
        CHECK_EQ(permits(commands), 1);
    }
    CHECK_EQ(stock("pen", "sold"), 50);
    CHECK_EQ(
        test_number(test_ask(&other, "LIMIT other RATE 1000 " LONG " PEEK"),
                    "remaining"),
        950);
    /* what is denied with nothing on its way is not remembered */
    static const char again[] = "LIMIT k0 RATE 5 " LONG " COST 2";
    CHECK_ERROR(ask_group(&wire, "EXEC REQ new", again), "EXECABORT");
    (void)add_multi(&wire, again);
    test_wire_add(&wire, "EXEC REQ new");
    (void)add_multi(&wire, "STOCK ADD pen 1");
    test_wire_add(&wire, "EXEC");
    (void)add_multi(&wire, again);
    TEST_SEND(&wire, "EXEC REQ new");
    expect_queued(&wire, 1);
    CHECK_ERROR(TEST_ANSWER(&wire), "EXECABORT");
    expect_queued(&wire, 1);
    CHECK_EQ(test_length(TEST_ANSWER(&wire)), 1);
    expect_queued(&wire, 1);
    CHECK_ERROR(TEST_ANSWER(&wire), "EXECABORT");
    stop();
}

/* A policy may go between LIMIT and EXEC. */
TEST(a_limit_that_cannot_be_asked_any_more_refuses_the_group)
{
    start();
    CHECK_DONE(test_ask(&other, "LIMIT DEFINE p RATE 5 " LONG));
    CHECK_REPLY(test_ask(&wire, "MULTI"), "+OK");
    CHECK_REPLY(test_ask(&wire, "LIMIT k RATE 5 " LONG), "+QUEUED");
    CHECK_REPLY(test_ask(&wire, "STOCK SET pen 20"), "+QUEUED");
    CHECK_REPLY(test_ask(&wire, "LIMIT k POLICY p"), "+QUEUED");
    CHECK_DONE(test_ask(&other, "LIMIT DROP p"));
    CHECK_REPLY(test_ask(&wire, "EXEC"),
                "-EXECABORT command 3 of 3: NOTFOUND no policy 'p', LIMIT "
                "DEFINE makes one");
    check_untouched();
    stop();
}

#define ONCE                                                                 \
    "LIMIT k RATE 5 " LONG "; LOCK door OWNER ann TTL 100000000; STOCK ADD " \
    "pen 5"

TEST(exec_with_a_req_is_carried_out_once)
{
    start_in("always");
    CHECK_DONE(test_ask(&wire, "STOCK SET pen 10"));
    struct hf_bytes all = ask_group(&wire, "EXEC REQ q", ONCE);
    int64_t token = test_number(test_element(all, 1), "token");
    CHECK(token > 0);
    for (int life = 0; life < 2; life++) {
        all = ask_group(life == 0 ? &other : &wire, "EXEC REQ q", ONCE);
        CHECK_EQ(test_number(test_element(all, 0), "remaining"), 4);
        CHECK_EQ(test_number(test_element(all, 1), "token"), token);
        CHECK_EQ(test_number(test_element(all, 2), "total"), 15);
        CHECK_EQ(permits("k"), life == 0 ? 4 : 5); /* limits are not kept */
        CHECK_ERROR(ask_group(&other, "EXEC REQ q", "STOCK ADD pen 5"),
                    "CONFLICT");
        CHECK_ERROR(ask_group(&other, "EXEC REQ q",
                              "LIMIT k RATE 5 " LONG " COST 2; LOCK door OWNER "
                              "ann TTL 100000000; STOCK ADD pen 5"),
                    "CONFLICT");
        CHECK_ERROR(test_ask(&other, "STOCK ADD pen 5 REQ q"), "CONFLICT");
        CHECK_EQ(stock("pen", "total"), 15);
        if (life == 0) {
            test_server_kill(&server);
            start_again("always");
        }
    }
    /* what is refused is kept, too, until there is room for nothing else */
    CHECK_ERROR(ask_group(&wire, "EXEC REQ r", "RESERVE r ITEM pen 99"),
                "EXECABORT");
    CHECK_DONE(test_ask(&wire, "STOCK ADD pen 100"));
    CHECK_ERROR(ask_group(&other, "EXEC REQ r", "RESERVE r ITEM pen 99"),
                "EXECABORT");
    CHECK_DONE(ask_group(&other, "EXEC REQ s", "RESERVE r ITEM pen 99"));
    stop();
}

static void await_waiters(const char *name, int count)
{
    while (test_number(test_ask(&wire, "LOCKINFO %s", name), "waiting") !=
           count)
        ;
}

TEST(who_waits_is_served_once_after_the_group)
{
    start();
    struct test_wire late;

    test_server_connect(&server, &late);
    int64_t token = test_number(
        test_ask(&wire, "LOCK a OWNER ann TTL %d", FOR_EVER_MS), "token");
    TEST_SEND(&other, "LOCK a OWNER bob WAIT %d", FOR_EVER_MS);
    await_waiters("a", 1);
    TEST_SEND(&late, "LOCK a OWNER eve WAIT %d", FOR_EVER_MS);
    await_waiters("a", 2);
    /* those who wait are before the group */
    CHECK_ERROR(ask_group(&wire, "EXEC",
                          "UNLOCK a %" PRId64 "; LOCK a OWNER kim", token),
                "EXECABORT");
    CHECK_EQ(test_number(test_ask(&wire, "LOCKINFO a"), "token"), token);
    /* given back, taken by one that barges, given back: bob is next, once */
    struct hf_bytes all =
        ask_group(&wire, "EXEC",
                  "UNLOCK a %" PRId64 "; LOCK a OWNER kim BARGE; UNLOCK a "
                  "%" PRId64 "; LOCK b OWNER ann",
                  token, token + 4);
    CHECK_EQ(test_length(all), 4);
    int64_t b = test_number(test_element(all, 3), "token");
    int64_t bob = test_number(TEST_ANSWER(&other), "token");
    CHECK(bob > b);
    await_waiters("a", 1);
    CHECK_DONE(ask_group(&wire, "EXEC", "UNLOCK a %" PRId64, bob));
    CHECK(test_number(TEST_ANSWER(&late), "token") > bob);
    test_wire_close(&late);
    stop();
}

static bool is_lost(struct hf_bytes push, const char *name)
{
    char raw[200];

    snprintf(raw, sizeof raw,
             ">3\r\n$9\r\nlock_lost\r\n$%zu\r\n%s\r\n:", strlen(name), name);
    return push.len > strlen(raw) && memcmp(push.data, raw, strlen(raw)) == 0;
}

TEST(the_holder_hears_of_locks_that_a_group_took)
{
    start();
    CHECK_DONE(test_ask(&wire, "HELLO 3"));
    CHECK_DONE(ask_group(&wire, "EXEC",
                         "STOCK GET pen; LOCK a OWNER ann TTL 1; "
                         "LIMIT k RATE 5 " LONG));
    CHECK(is_lost(TEST_ANSWER(&wire), "a"));
    CHECK_DONE(ask_group(&wire, "EXEC",
                         "LOCK b OWNER ann TTL %d; LOCKSET OWNER ann NAME c "
                         "NAME d TTL 1",
                         FOR_EVER_MS));
    CHECK(is_lost(TEST_ANSWER(&wire), "c"));
    /* one that asks again by its REQ hears of it, and the first does not */
    CHECK_DONE(ask_group(&wire, "EXEC REQ q", "LOCK e OWNER ann TTL 3600000"));
    CHECK_DONE(test_ask(&other, "HELLO 3"));
    struct hf_bytes all =
        ask_group(&other, "EXEC REQ q", "LOCK e OWNER ann TTL 3600000");
    int64_t token = test_number(test_element(all, 0), "token");
    CHECK_DONE(test_ask(&wire, "REVOKE e %" PRId64, token));
    CHECK(is_lost(TEST_ANSWER(&other), "e"));
    CHECK_REPLY(test_ask(&wire, "ECHO x"), "$1\r\nx");
    stop();
}

/* Groups, plain commands and errors in one write: each answer in its place,
 * also while those before are on their way to the disk. */
TEST(groups_are_pipelined_among_other_commands)
{
    start_in("always");
    CHECK_DONE(test_ask(&wire, "STOCK SET pen 0"));
    CHECK_DONE(test_ask(&wire, "LIMIT none RATE 1 " LONG));
    for (int i = 0; i < 100; i++) {
        add_multi(&wire, "STOCK ADD pen 1; STOCK ADD pen 1");
        test_wire_add(&wire, "EXEC");
        add_multi(&wire, "STOCK ADD pen 1; NOSUCH");
        test_wire_add(&wire, "EXEC");
        test_wire_add(&wire, "STOCK ADD pen 1");
        add_multi(&wire, "STOCK ADD pen 1; LIMIT none RATE 1 " LONG);
        test_wire_add(&wire, "EXEC");
        add_multi(&wire, "STOCK ADD pen 1; RESERVE r ITEM pen 999");
        test_wire_add(&wire, "EXEC");
        add_multi(&wire, "STOCK GET pen; MULTI");
        test_wire_add(&wire, "DISCARD");
        test_wire_add(&wire, "STOCK GET pen");
        add_multi(&wire, "");
        test_wire_add(&wire, "EXEC");
        test_wire_add(&wire, "MULTI 1");
    }
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 100; i++) {
        expect_queued(&wire, 2);
        struct hf_bytes all = TEST_ANSWER(&wire);
        CHECK_EQ(test_number(test_element(all, 1), "total"), i * 3 + 2);
        expect_queued(&wire, 1);
        CHECK_ERROR(TEST_ANSWER(&wire), "ERR");
        CHECK_ERROR(TEST_ANSWER(&wire), "EXECABORT");
        CHECK_EQ(test_number(TEST_ANSWER(&wire), "total"), i * 3 + 3);
        expect_queued(&wire, 2);
        CHECK_ERROR(TEST_ANSWER(&wire), "EXECABORT");
        expect_queued(&wire, 2);
        CHECK_ERROR(TEST_ANSWER(&wire), "EXECABORT");
        expect_queued(&wire, 1);
        CHECK_ERROR(TEST_ANSWER(&wire), "ERR");
        CHECK_REPLY(TEST_ANSWER(&wire), "+OK");
        CHECK_EQ(test_number(TEST_ANSWER(&wire), "total"), i * 3 + 3);
        expect_queued(&wire, 0);
        CHECK_REPLY(TEST_ANSWER(&wire), "*0");
        CHECK_ERROR(TEST_ANSWER(&wire), "BADARG");
    }
    stop();
}

/* Whose holder would be told of its end. */
TEST(a_lock_that_a_group_gives_back_again_is_not_remembered)
{
    start();
    CHECK_DONE(test_ask(&wire, "HELLO 3"));
    int64_t token = test_number(test_ask(&wire, "LOCK gate OWNER o"), "token");
    CHECK_EQ(test_info(&other, "pushed_grants"), 1);
    CHECK_DONE(test_ask(&wire, "MULTI"));
    CHECK_DONE(test_ask(&wire, "LOCK door OWNER o"));
    CHECK_DONE(test_ask(&wire, "UNLOCK door %" PRId64, token + 1));
    CHECK_EQ(test_length(test_ask(&wire, "EXEC")), 2);
    CHECK_EQ(test_info(&other, "pushed_grants"), 1);
    stop();
}
