/* limits.c - LIMIT, its policies, CL.THROTTLE and GCRA on a real server.
 * tests: also under sanitizers
 *
 * Periods are long, so that nothing is earned while a test runs; where time
 * must pass, a test waits for what it brings.
 */
#include <signal.h>

#include "support/server.h"
#include "support/test.h"

#define LONG "PER 3600000000" /* 41 days */

static struct test_server server;
static struct test_wire wire;
static struct test_wire other;

static void start(const char *const *more)
{
    test_server_begin(&server, &wire, &(struct test_server_opts){.more = more});
    test_wire_close(&other);
    test_server_connect(&server, &other);
}

static void stop(void)
{
    test_wire_close(&other);
    test_server_finish(&server, &wire);
}

static void define(const char *words)
{
    CHECK_REPLY(test_ask(&wire, "LIMIT DEFINE %s", words), "+OK");
}

static int64_t ask(const char *words, const char *field)
{
    return test_number(test_ask(&wire, "LIMIT %s", words), field);
}

static bool denied_by(struct hf_bytes reply, const char *policy)
{
    struct hf_bytes found = test_text(reply, "policy");

    return test_number(reply, "allowed") == 0 &&
           hf_bytes_equal(found, hf_bytes_text(policy));
}

TEST(numbers_with_the_call)
{
    start(NULL);
    struct hf_bytes reply = test_ask(&wire, "LIMIT k RATE 5 %s COST 3", LONG);
    CHECK_EQ(test_number(reply, "allowed"), 1);
    CHECK_EQ(test_number(reply, "limit"), 5);
    CHECK_EQ(test_number(reply, "remaining"), 2);
    CHECK_EQ(test_number(reply, "retry_ms"), 0);
    CHECK(test_number(reply, "reset_ms") > 2000000000);
    CHECK_EQ(test_number(reply, "taken"), TEST_NO_NUMBER);
    CHECK(ask("k RATE 5 " LONG " COST 0 PRIORITY 0", "taken") > 0);
    CHECK_EQ(ask("k RATE 5 " LONG " COST 3", "allowed"), 0);
    CHECK_EQ(ask("k RATE 5 " LONG " COST 3", "remaining"), 2);
    CHECK(ask("k RATE 5 " LONG " COST 3", "retry_ms") > 600000000);
    CHECK_EQ(ask("k RATE 5 " LONG " COST 6", "retry_ms"), -1); /* never */
    CHECK_EQ(ask("k RATE 5 " LONG " COST 0", "remaining"), 2);
    CHECK_EQ(ask("k RATE 5 " LONG " PEEK", "remaining"), 2);
    CHECK_EQ(ask("k RATE 5 " LONG " BURST 9 PEEK", "limit"), 9);
    stop();
}

TEST(policies_are_all_or_nothing_and_the_one_that_denies_is_named)
{
    start(NULL);
    define("user RATE 2 " LONG);
    define("address RATE 3 " LONG);
    define("all RATE 100 " LONG);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(ask("ann POLICY user,all ALSO 10.0.0.7 address", "allowed"),
                 1);
    for (int i = 0; i < 5; i++)
        CHECK(denied_by(
            test_ask(&wire, "LIMIT ann POLICY user,all ALSO 10.0.0.7 address"),
            "user"));
    CHECK_EQ(ask("10.0.0.7 POLICY address PEEK", "remaining"), 1);
    CHECK_EQ(ask("ann POLICY all PEEK", "remaining"), 98);
    CHECK_EQ(ask("bob POLICY user ALSO 10.0.0.7 address", "allowed"), 1);
    CHECK(denied_by(
        test_ask(&wire, "LIMIT bob POLICY user ALSO 10.0.0.7 address"),
        "address"));
    CHECK_EQ(ask("bob POLICY user PEEK", "remaining"), 1);
    /* The keys that were denied most, first. */
    struct hf_bytes top = test_ask(&wire, "LIMIT TOP 5");
    CHECK_EQ(test_length(top), 2);
    CHECK_EQ(test_number(test_element(top, 0), "denied"), 5);
    struct hf_bytes key = test_text(test_element(top, 0), "key");
    CHECK_TEXT(key.data, key.len, "ann");
    CHECK_EQ(test_length(test_ask(&wire, "LIMIT TOP 1")), 1);
    stop();
}

TEST(a_policy_that_changes_keeps_what_was_spent)
{
    start(NULL);
    define("p RATE 10 " LONG);
    CHECK_EQ(ask("k POLICY p COST 6", "remaining"), 4);
    define("p RATE 20 " LONG);
    CHECK_EQ(ask("k POLICY p PEEK", "remaining"), 14);
    define("p RATE 5 " LONG);
    CHECK_EQ(ask("k POLICY p", "allowed"), 0);
    struct hf_bytes list = test_ask(&wire, "LIMIT POLICIES");
    CHECK_EQ(test_length(list), 2); /* and the default one */
    CHECK_EQ(test_number(test_element(list, 1), "rate"), 5);
    CHECK_REPLY(test_ask(&wire, "LIMIT DROP p"), "+OK");
    CHECK_ERROR(test_ask(&wire, "LIMIT DROP p"), "NOTFOUND");
    CHECK_ERROR(test_ask(&wire, "LIMIT k POLICY p"), "NOTFOUND");
    CHECK_ERROR(test_ask(&wire, "LIMIT DROP default"), "BADARG");
    stop();
}

TEST(priorities_shadow_refund_and_headers)
{
    start(NULL);
    define("p RATE 10 " LONG " KEEP 2,6");
    CHECK_EQ(ask("k POLICY p PRIORITY 2 COST 4", "allowed"), 1);
    CHECK_EQ(ask("k POLICY p PRIORITY 2", "allowed"), 0);
    CHECK_EQ(ask("k POLICY p PRIORITY 1 COST 4", "allowed"), 1);
    CHECK_EQ(ask("k POLICY p PRIORITY 1", "allowed"), 0);
    int64_t taken = ask("k POLICY p COST 2", "taken");
    CHECK(taken > 0);
    CHECK_EQ(ask("k POLICY p", "allowed"), 0);
    CHECK_EQ(test_number(test_ask(&wire, "LIMIT k POLICY p COST 2 REFUND %lld",
                                  (long long)taken),
                         "remaining"),
             2);
    CHECK_EQ(ask("k POLICY p COST 2", "allowed"), 1);
    define("s RATE 1 " LONG " SHADOW");
    CHECK_EQ(ask("k POLICY s", "shadow"), 0);
    CHECK_EQ(ask("k POLICY s", "shadow"), 1);
    CHECK_EQ(ask("k POLICY s", "allowed"), 1);
    struct hf_bytes reply =
        test_ask(&wire, "LIMIT h RATE 5 PER 60000 HEADERS COST 5");
    struct hf_bytes text = test_text(reply, "ratelimit_policy");
    CHECK_TEXT(text.data, text.len, "\"limit\";q=5;w=60");
    text = test_text(reply, "ratelimit");
    CHECK_TEXT(text.data, text.len, "\"limit\";r=0;t=60");
    stop();
}

TEST(holds_are_settled_or_come_back)
{
    start(NULL);
    define("p RATE 10 " LONG);
    int64_t hold = ask("k POLICY p COST 8 HOLD 3600000", "hold");
    CHECK(hold > 0);
    CHECK_EQ(ask("k POLICY p COST 8 HOLD 3600000", "hold"), 0);
    CHECK_EQ(ask("k POLICY p PEEK", "remaining"), 2);
    CHECK_REPLY(test_ask(&wire, "LIMIT SETTLE %lld COST 3", (long long)hold),
                "+OK");
    CHECK_EQ(ask("k POLICY p PEEK", "remaining"), 7);
    CHECK_ERROR(test_ask(&wire, "LIMIT SETTLE %lld COST 3", (long long)hold),
                "NOTFOUND");
    /* One that nobody settles: whoever waits gets it back. */
    CHECK_EQ(ask("k POLICY p COST 7 HOLD 50", "allowed"), 1);
    for (uint64_t until = test_now_ms() + TEST_WIRE_DEADLINE_MS;
         ask("k POLICY p PEEK", "remaining") != 7;)
        CHECK(test_now_ms() < until);
    stop();
}

TEST(a_call_waits_for_its_permits)
{
    struct hf_bytes reply;

    start(NULL);
    CHECK_EQ(ask("k RATE 1 PER 200 BURST 1", "allowed"), 1);
    uint64_t before_ms = test_now_ms();
    CHECK_EQ(ask("k RATE 1 PER 200 BURST 1 WAIT 60000", "allowed"), 1);
    CHECK(test_now_ms() - before_ms >= 150);
    /* What cannot be had in time is told at once. */
    CHECK_EQ(ask("l RATE 1 " LONG, "allowed"), 1);
    CHECK_EQ(ask("l RATE 1 " LONG " WAIT 60000", "allowed"), 0);
    CHECK_EQ(ask("l RATE 1 " LONG " COST 2 WAIT 60000", "retry_ms"), -1);
    /* Others are served meanwhile, and what follows on the line waits. */
    test_wire_add(&other, "LIMIT k RATE 1 PER 200 BURST 1 WAIT 60000");
    TEST_SEND(&other, "PING");
    CHECK_REPLY(test_ask(&wire, "PING"), "+PONG");
    reply = TEST_ANSWER(&other);
    CHECK_EQ(test_number(reply, "allowed"), 1);
    CHECK_REPLY(TEST_ANSWER(&other), "+PONG");
    stop();
}

TEST(one_who_leaves_waits_no_more_and_a_stop_tells)
{
    struct hf_bytes reply;

    start(NULL);
    CHECK_EQ(ask("k RATE 1 PER 3600000 BURST 1", "allowed"), 1);
    for (int i = 0; i < 20; i++) {
        struct test_wire gone = {.fd = -1};
        test_server_connect(&server, &gone);
        TEST_SEND(&gone, "LIMIT k RATE 1 PER 3600000 WAIT 36000000");
        test_wire_close(&gone);
    }
    TEST_SEND(&other, "LIMIT k RATE 1 PER 3600000 WAIT 36000000");
    CHECK_REPLY(test_ask(&wire, "PING"), "+PONG");
    /* It has been read when another's question, sent later, was answered:
     * not certain, so the answer below may also be an end. */
    CHECK(test_server_signal(&server, SIGTERM));
    if (test_wire_read(&other, &reply) == HF_OK)
        CHECK_EQ(test_number(reply, "allowed"), 0);
    CHECK_EQ(test_server_end(&server), 0);
    test_wire_close(&wire);
    test_wire_close(&other);
}

/* Until so many calls wait. */
static void wait_for_waiters(int64_t count)
{
    uint64_t until = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    while (test_info(&wire, "limit_waiters") != count)
        CHECK(test_now_ms() < until);
}

TEST(what_is_given_back_ends_a_wait)
{
    static const char *const leases = "RATE 1 " LONG " ALGORITHM LEASES";
    struct hf_bytes reply;

    start(NULL);
    int64_t taken = test_number(test_ask(&wire, "LIMIT k %s", leases), "taken");
    /* Also if it would be free by itself only after the wait. */
    TEST_SEND(&other, "LIMIT k %s WAIT 600000", leases);
    wait_for_waiters(1);
    CHECK_EQ(test_info(&wire, "blocked_clients"), 1);
    CHECK_EQ(test_number(test_ask(&wire, "LIMIT k %s REFUND %lld", leases,
                                  (long long)taken),
                         "allowed"),
             1);
    reply = TEST_ANSWER(&other);
    CHECK_EQ(test_number(reply, "allowed"), 1);
    CHECK_EQ(test_number(test_ask(&wire, "LIMIT k %s", leases), "allowed"), 0);
    /* A hold that is settled. */
    define("p RATE 2 PER 3600000");
    int64_t hold = ask("k POLICY p COST 2 HOLD 3600000", "hold");
    TEST_SEND(&other, "LIMIT k POLICY p WAIT 7200000");
    wait_for_waiters(1);
    CHECK_REPLY(test_ask(&wire, "LIMIT SETTLE %lld COST 0", (long long)hold),
                "+OK");
    reply = TEST_ANSWER(&other);
    CHECK_EQ(test_number(reply, "allowed"), 1);
    /* A policy that allows more; one that is dropped. */
    CHECK_EQ(ask("k POLICY p", "allowed"), 1);
    TEST_SEND(&other, "LIMIT k POLICY p WAIT 7200000");
    wait_for_waiters(1);
    define("p RATE 3 PER 3600000");
    reply = TEST_ANSWER(&other);
    CHECK_EQ(test_number(reply, "allowed"), 1);
    TEST_SEND(&other, "LIMIT k POLICY p WAIT 7200000");
    wait_for_waiters(1);
    CHECK_REPLY(test_ask(&wire, "LIMIT DROP p"), "+OK");
    CHECK_ERROR(TEST_ANSWER(&other), "NOTFOUND");
    wait_for_waiters(0);
    stop();
}

TEST(those_who_wait_go_in_order_and_are_not_counted_as_denied)
{
    enum { WAITERS = 40 };
    static struct test_wire lines[WAITERS];
    static const char *const leases = "RATE 1 " LONG " ALGORITHM LEASES";
    struct hf_bytes reply;

    start(NULL);
    int64_t taken = test_number(test_ask(&wire, "LIMIT k %s", leases), "taken");
    for (int i = 0; i < WAITERS; i++) {
        lines[i].fd = -1;
        test_server_connect(&server, &lines[i]);
        TEST_SEND(&lines[i], "LIMIT k %s WAIT 600000", leases);
        wait_for_waiters(i + 1);
    }
    /* The first and another leave: the rest is served in turn. */
    test_wire_close(&lines[0]);
    test_wire_close(&lines[7]);
    wait_for_waiters(38);
    for (int i = 1; i < WAITERS; i++) {
        if (i == 7)
            continue;
        CHECK_DONE(test_ask(&wire, "LIMIT k %s REFUND %lld", leases,
                            (long long)taken));
        reply = TEST_ANSWER(&lines[i]);
        CHECK_EQ(test_number(reply, "allowed"), 1);
        taken = test_number(reply, "taken");
        test_wire_close(&lines[i]);
    }
    CHECK_EQ(test_length(test_ask(&wire, "LIMIT TOP")), 0);
    /* A wait that ends without permits is one denial. */
    CHECK_EQ(
        test_number(test_ask(&wire, "LIMIT k %s WAIT 50", leases), "allowed"),
        0);
    struct hf_bytes top = test_ask(&wire, "LIMIT TOP");
    CHECK_EQ(test_length(top), 1);
    CHECK_EQ(test_number(test_element(top, 0), "denied"), 1);
    /* More important ones do not wait behind others. */
    define("p RATE 10 PER 3600000 KEEP 0,0,5");
    CHECK_EQ(ask("k POLICY p COST 5", "allowed"), 1);
    TEST_SEND(&other, "LIMIT k POLICY p PRIORITY 3 WAIT 7200000");
    wait_for_waiters(1);
    CHECK_EQ(ask("k POLICY p WAIT 7200000", "allowed"), 1);
    stop();
}

/* Each priority has a queue of its own. */
TEST(those_who_wait_with_other_priorities_are_served_too)
{
    static struct test_wire lines[3];
    struct hf_bytes reply;
    int64_t taken[3];

    start(NULL);
    define("p RATE 3 " LONG " ALGORITHM LEASES");
    for (int i = 0; i < 3; i++)
        taken[i] = ask("k POLICY p", "taken");
    for (int i = 0; i < 3; i++) {
        lines[i].fd = -1;
        test_server_connect(&server, &lines[i]);
        TEST_SEND(&lines[i], "LIMIT k POLICY p PRIORITY %d WAIT 600000", i);
        wait_for_waiters(i + 1);
    }
    for (int i = 0; i < 3; i++)
        CHECK_DONE(test_ask(&wire, "LIMIT k POLICY p REFUND %lld",
                            (long long)taken[i]));
    for (int i = 0; i < 3; i++) {
        reply = TEST_ANSWER(&lines[i]);
        CHECK_EQ(test_number(reply, "allowed"), 1);
        test_wire_close(&lines[i]);
    }
    wait_for_waiters(0);
    stop();
}

TEST(the_least_and_the_most_that_may_be_asked_for)
{
    static const char *const sixteen = "a,b,a,b,a,b,a,b,a,b,a,b,a,b,a,b";

    start(NULL);
    define("a RATE 100 " LONG);
    define("b RATE 9 " LONG);
    CHECK_EQ(
        test_number(test_ask(&wire, "LIMIT k POLICY %s WAIT 1000", sixteen),
                    "allowed"),
        1);
    CHECK_EQ(test_number(
                 test_ask(&wire, "LIMIT l POLICY %s RATE 10 " LONG " WAIT 1000",
                          sixteen + 2),
                 "allowed"),
             1);
    CHECK_REPLY(test_ask(&wire, "LIMIT k POLICY %s,a", sixteen),
                "-BADARG at most 16 policies in one call");
    CHECK_REPLY(test_ask(&wire, "LIMIT k POLICY a,nosuch"),
                "-NOTFOUND no policy 'nosuch', LIMIT DEFINE makes one");
    CHECK(ask("m POLICY a HOLD 1", "hold") > 0);
    CHECK_EQ(ask("m RATE 1 PER 1 COST 1 WAIT 0", "allowed"), 1);
    /* The headers name the one that denied, else the first. */
    CHECK_EQ(ask("k POLICY a,b", "allowed"), 1);
    struct hf_bytes reply = test_ask(&wire, "LIMIT m POLICY b,a HEADERS");
    struct hf_bytes text = test_text(reply, "ratelimit_policy");
    CHECK(memmem(text.data, text.len, "\"b\";q=9", 7) != NULL);
    reply = test_ask(&wire, "LIMIT k POLICY a,b HEADERS");
    CHECK(denied_by(reply, "b"));
    text = test_text(reply, "ratelimit_policy");
    CHECK(memmem(text.data, text.len, "\"b\";q=9", 7) != NULL);
    CHECK_EQ(ask("n POLICY b COST 10", "allowed"), 0);
    CHECK_EQ(test_length(test_ask(&wire, "LIMIT TOP 1")), 1);
    CHECK_EQ(test_length(test_ask(&wire, "LIMIT TOP 100")), 2);
    stop();
}

TEST(a_repeated_request_is_counted_once)
{
    start(NULL);
    CHECK_EQ(ask("k RATE 5 " LONG " REQ a", "remaining"), 4);
    CHECK_EQ(ask("k RATE 5 " LONG " REQ a", "remaining"), 4);
    CHECK_EQ(ask("k RATE 5 " LONG " REQ b", "remaining"), 3);
    CHECK_EQ(ask("k RATE 5 " LONG " REQ a", "remaining"), 4);
    CHECK_EQ(test_number(test_ask(&wire, "limit k RATE 5 %s REQ a", LONG),
                         "remaining"),
             4);
    CHECK_ERROR(test_ask(&wire, "LIMIT k RATE 6 %s REQ a", LONG), "CONFLICT");
    CHECK_ERROR(test_ask(&wire, "LIMIT l RATE 5 %s REQ a", LONG), "CONFLICT");
    CHECK_ERROR(test_ask(&wire, "LIMIT K RATE 5 %s REQ a", LONG), "CONFLICT");
    CHECK_EQ(ask("rate RATE 9 PER 60000 ALGORITHM LOG REQ d", "remaining"), 8);
    CHECK_EQ(ask("rate Rate 9 per 60000 Algorithm log req d", "remaining"), 8);
    CHECK_ERROR(
        test_ask(&wire, "LIMIT RATE RATE 9 PER 60000 ALGORITHM LOG REQ d"),
        "CONFLICT");
    CHECK_ERROR(
        test_ask(&wire, "LIMIT rate RATE 9 PER 60000 ALGORITHM FIXED REQ d"),
        "CONFLICT");
    CHECK_EQ(ask("k RATE 5 " LONG " PEEK", "remaining"), 3);
    define("p RATE 9 " LONG);
    int64_t hold = ask("k POLICY p HOLD 3600000 REQ c", "hold");
    CHECK(hold > 0);
    CHECK_EQ(ask("k POLICY p HOLD 3600000 REQ c", "hold"), hold);
    stop();
}

TEST(every_algorithm)
{
    static const char *const names[] = {"BUCKET",  "GCRA", "FIXED",
                                        "SLIDING", "LOG",  "LEASES"};

    start(NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char words[128];
        snprintf(words, sizeof words, "p%zu ALGORITHM %s RATE 4 " LONG "%s", i,
                 names[i], i == 1 ? " BURST 3" : "");
        define(words);
        int64_t taken = 0;
        for (int k = 0; k < 4; k++) {
            struct hf_bytes reply = test_ask(&wire, "LIMIT k POLICY p%zu", i);
            CHECK_EQ(test_number(reply, "allowed"), 1);
            CHECK_EQ(test_number(reply, "remaining"), 3 - k);
            taken = test_number(reply, "taken");
        }
        CHECK_EQ(
            test_number(test_ask(&wire, "LIMIT k POLICY p%zu", i), "allowed"),
            0);
        CHECK_EQ(test_number(test_ask(&wire, "LIMIT k POLICY p%zu REFUND %lld",
                                      i, (long long)taken),
                             "remaining"),
                 1);
    }
    stop();
}

TEST(cl_throttle_and_gcra)
{
    start(NULL);
    /* Limit 5, one a day: redis-cell's cases at time 0. */
    CHECK_REPLY(test_ask(&wire, "CL.THROTTLE k 4 1 86400 6"),
                "*5\r\n:1\r\n:5\r\n:5\r\n:-1\r\n:0");
    CHECK_REPLY(test_ask(&wire, "CL.THROTTLE k 4 1 86400"),
                "*5\r\n:0\r\n:5\r\n:4\r\n:-1\r\n:86400");
    for (int left = 3; left >= 0; left--)
        CHECK_EQ(test_length(test_ask(&wire, "CL.THROTTLE k 4 1 86400 1")), 5);
    struct hf_bytes reply = test_ask(&wire, "CL.THROTTLE k 4 1 86400 1");
    CHECK_REPLY(test_element(reply, 0), ":1");
    CHECK_REPLY(test_element(reply, 2), ":0");
    CHECK_REPLY(test_ask(&wire, "CL.THROTTLE peek 4 1 86400 0"),
                "*5\r\n:0\r\n:5\r\n:5\r\n:-1\r\n:0");
    CHECK_REPLY(test_ask(&wire, "CL.THROTTLE k 4 0 60"),
                "-Cell error: Store error: Zero rates are not supported");
    CHECK_REPLY(test_ask(&wire, "CL.THROTTLE k 4 1 0"),
                "-Cell error: Store error: Zero rates are not supported");
    CHECK_REPLY(test_ask(&wire, "CL.THROTTLE k x 1 60"),
                "-Cell error: Store error: Couldn't parse as integer: x");
    /* the numbers come first, the key, which is too long, last */
    CHECK_REPLY(test_ask(&wire, "CL.THROTTLE %0513d x 1 60", 0),
                "-Cell error: Store error: Couldn't parse as integer: x");
    CHECK_REPLY(test_ask(&wire, "CL.THROTTLE %0513d 4 0 60", 0),
                "-Cell error: Store error: Zero rates are not supported");
    CHECK_ERROR(test_ask(&wire, "CL.THROTTLE %0513d 4 1 60", 0), "ERR");
    CHECK_ERROR(test_ask(&wire, "CL.THROTTLE k 4 -1 60"), "ERR");
    CHECK_ERROR(test_ask(&wire, "CL.THROTTLE k 4 1"), "BADARG");
    CHECK_REPLY(test_ask(&wire, "GCRA g 2 1 86400"),
                "*5\r\n:0\r\n:3\r\n:2\r\n:-1\r\n:86400");
    CHECK_REPLY(test_ask(&wire, "GCRA g 2 1 86400 TOKENS 4"),
                "*5\r\n:1\r\n:3\r\n:2\r\n:-1\r\n:86400");
    CHECK_ERROR(test_ask(&wire, "GCRA g 2 1 86400 NOSUCH 4"), "ERR");
    CHECK_ERROR(test_ask(&wire, "GCRA g 2 1 86400 TOKENS"), "ERR");
    stop();
}

TEST(they_are_described_as_what_they_are)
{
    static const char *const names[] = {"limit", "cl.throttle", "gcra"};

    start(NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct hf_bytes told =
            test_element(test_ask(&wire, "COMMAND INFO %s", names[i]), 0);
        CHECK_REPLY(test_element(test_element(told, 2), 0), "+write");
    }
    stop();
}

TEST(bad_input_changes_nothing)
{
    static const char *const bad[] = {
        "k",
        "k RATE 5",
        "k RATE 0 PER 5",
        "k RATE 5 PER 5 BURST 0",
        "k RATE 1000000001 PER 5",
        "k RATE 5 PER 4000000000001",
        "k RATE 5 PER 5 PEEK HOLD 5",
        "k RATE 5 PER 5 PEEK WAIT 5",
        "k RATE 5 PER 5 PEEK REFUND 5",
        "k RATE 5 PER 5 REFUND 5 HOLD 5",
        "k RATE 5 PER 5 REFUND 5 WAIT 5",
        "k RATE 5 PER 5 PEEK REQ a",
        "k RATE 5 PER 5 WAIT 5 REQ a",
        "k RATE 5 PER 5 REFUND 0",
        "k RATE 5 PER 5 REFUND",
        "k RATE 5 PER 5 PRIORITY 4",
        "k RATE 5 PER 5 ALGORITHM NOSUCH",
        "k RATE 5 PER 5 ALGORITHM FIXED BURST 3",
        "k RATE 10001 PER 5 ALGORITHM LOG",
        "k RATE 5 PER 5 KEEP 6",
        "k RATE 5 PER 5 KEEP 1,1,1,1",
        "k RATE 5 PER 5 RATE 5",
        "k POLICY",
        "k POLICY ,",
        "k POLICY default BURST 5",
        "k POLICY default ALSO k",
        "k ALSO other default",
        "DEFINE",
        "DEFINE p",
        "DEFINE p RATE 5",
        "DEFINE p RATE 5 PER 5 POLICY x",
        "DEFINE a,b RATE 5 PER 5",
        "DEFINE 01234567890123456789012345678901 RATE 5 PER 5",
        "SETTLE 1",
        "SETTLE x COST 1",
        "SETTLE 1 NOSUCH 1",
        "TOP 0",
        "TOP 101",
        "POLICIES x",
    };

    start(NULL);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_ERROR(test_ask(&wire, "LIMIT %s", bad[i]), "BADARG");
    CHECK_ERROR(test_ask(&wire, "LIMIT k POLICY nosuch"), "NOTFOUND");
    CHECK_EQ(test_length(test_ask(&wire, "LIMIT POLICIES")), 1);
    CHECK_EQ(test_length(test_ask(&wire, "LIMIT TOP")), 0);
    stop();
}

TEST(keys_are_bounded)
{
    static const char *const few[] = {"--limit-keys-max", "3", NULL};

    start(few);
    for (int i = 0; i < 3; i++)
        CHECK_DONE(test_ask(&wire, "LIMIT k%d RATE 5 %s", i, LONG));
    CHECK_ERROR(test_ask(&wire, "LIMIT k3 RATE 5 %s", LONG), "OVERLOADED");
    CHECK_EQ(ask("k0 RATE 5 " LONG, "remaining"), 3);
    /* Holds likewise, also those of nothing. */
    for (int i = 0; i < 3; i++)
        CHECK(ask("k0 RATE 5 " LONG " COST 0 HOLD 3600000", "hold") > 0);
    CHECK_ERROR(test_ask(&wire, "LIMIT k0 RATE 5 %s COST 0 HOLD 3600000", LONG),
                "OVERLOADED");
    stop();
}

TEST(memory_of_logs_is_bounded)
{
    static const char *const few[] = {"--limit-log-max-bytes", "200000", NULL};

    start(few);
    for (int i = 0; i < 2; i++)
        CHECK_DONE(
            test_ask(&wire, "LIMIT k%d RATE 10000 %s ALGORITHM LOG", i, LONG));
    CHECK_ERROR(test_ask(&wire, "LIMIT k2 RATE 10000 %s ALGORITHM LOG", LONG),
                "OVERLOADED");
    CHECK_ERROR(test_ask(&wire,
                         "LIMIT k2 RATE 10000 %s ALGORITHM LEASES HOLD 5000",
                         LONG),
                "OVERLOADED");
    CHECK_EQ(ask("k0 RATE 10000 " LONG " ALGORITHM LOG", "remaining"), 9998);
    CHECK_DONE(test_ask(&wire, "LIMIT k2 RATE 5 %s ALGORITHM LOG", LONG));
    CHECK_ERROR(test_ask(&wire, "LIMIT k2 RATE 10000 %s ALGORITHM LOG", LONG),
                "OVERLOADED");
    CHECK_EQ(ask("k2 RATE 5 " LONG " ALGORITHM LOG", "remaining"), 3);
    /* A policy that would need one says so too, and stays as it was. */
    define("p RATE 10 " LONG);
    CHECK_EQ(ask("k POLICY p", "remaining"), 9);
    define("p RATE 10000 " LONG " ALGORITHM LOG");
    CHECK_ERROR(test_ask(&wire, "LIMIT k POLICY p"), "OVERLOADED");
    define("p RATE 10 " LONG);
    CHECK_EQ(ask("k POLICY p", "remaining"), 8);
    stop();
}
