/* subscribe_trouble.c - subscribers that do not read, that vanish, that want
 * too much; and what is refused.
 * tests: also under sanitizers
 */
#include "support/hear.h"
#include "support/server.h"

#define CHANNEL_MAX       1024
#define SUBSCRIPTIONS_MAX 1024
#define PATTERNS_MAX      1024
#define TEXT_BYTES        60000

static struct test_server server;
static struct test_wire wire; /* does things */
static struct test_wire ear;  /* has subscribed */
static struct test_wire deaf; /* the same, and does not read */

static void start(void)
{
    test_server_begin(&server, &wire,
                      &(struct test_server_opts){.durability = "none"});
    test_wire_close(&ear);
    test_wire_close(&deaf);
    test_server_connect(&server, &ear);
    test_server_connect(&server, &deaf);
    CHECK_REPLY(test_ask(&deaf, "PING"), "+PONG");
}

static void stop(void)
{
    test_wire_close(&ear);
    test_wire_close(&deaf);
    test_server_finish(&server, &wire);
}

static void await(const char *figure, int64_t value)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    while (test_info(&wire, figure) != value)
        CHECK(test_now_ms() < end_ms);
}

TEST(only_the_server_publishes_on_its_channels)
{
    start();
    CHECK_DONE(test_ask(&ear, "PSUBSCRIBE *"));
    CHECK_ERROR(test_ask(&wire, "PUBLISH hf: x"), "NOPERM");
    CHECK_ERROR(test_ask(&wire, "PUBLISH hf:lock:door x"), "NOPERM");
    CHECK_REPLY(test_ask(&wire, "PUBLISH hf x"), ":1");
    CHECK_REPLY(test_ask(&wire, "PUBLISH HF:lock:door x"), ":1");
    struct hf_bytes text = hear(&ear, "*", "hf");
    CHECK_TEXT(text.data, text.len, "x");
    text = hear(&ear, "*", "HF:lock:door");
    CHECK_TEXT(text.data, text.len, "x");
    expect_silence(&ear);
    stop();
}

/* The group is spoilt; the connection is as it was. */
TEST(subscribing_is_refused_inside_a_group)
{
    static const char *const words[] = {"SUBSCRIBE a", "PSUBSCRIBE a",
                                        "UNSUBSCRIBE", "PUNSUBSCRIBE",
                                        "PUBLISH a b", "EVENTS FROM 0"};

    start();
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        CHECK_REPLY(test_ask(&wire, "MULTI"), "+OK");
        CHECK_ERROR(test_ask(&wire, "%s", words[i]), "ERR");
        CHECK_ERROR(test_ask(&wire, "EXEC"), "EXECABORT");
    }
    CHECK_EQ(test_info(&wire, "subscriptions"), 0);
    stop();
}

static struct hf_bytes ask_named(const char *command, const char *name,
                                 size_t len)
{
    struct hf_bytes words[] = {hf_bytes_text(command), hf_bytes(name, len),
                               hf_bytes_text("text")};

    test_wire_add_args(&wire, strcmp(command, "PUBLISH") == 0 ? 3 : 2, words);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    return TEST_ANSWER(&wire);
}

TEST(names_have_a_length)
{
    static const char *const commands[] = {"SUBSCRIBE", "PSUBSCRIBE",
                                           "PUBLISH"};
    char name[CHANNEL_MAX + 1];

    memset(name, 'n', sizeof name);
    start();
    CHECK_DONE(test_ask(&wire, "HELLO 3"));
    for (size_t i = 0; i < 3; i++) {
        CHECK_ERROR(ask_named(commands[i], name, 0), "BADARG");
        CHECK_ERROR(ask_named(commands[i], name, CHANNEL_MAX + 1), "BADARG");
        CHECK_EQ(test_info(&wire, "subscriptions"), i);
        CHECK_DONE(ask_named(commands[i], name, CHANNEL_MAX));
    }
    CHECK_DONE(TEST_ANSWER(&wire)); /* its own message, or the reply */
    CHECK_DONE(TEST_ANSWER(&wire));
    CHECK_REPLY(test_ask(&wire, "PING"), "+PONG");
    CHECK_ERROR(test_ask(&wire, "SUBSCRIBE"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "PUBLISH a"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "PUBLISH a b c"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "PUBSUB"), "BADARG");
    CHECK_ERROR(test_ask(&wire, "PUBSUB NOSUCH"), "BADARG");
    stop();
}

/* Adds `count` commands with a name each, and reads what they were told: how
 * many were refused. */
static int64_t subscribe_many(struct test_wire *from, const char *command,
                              int from_number, int count)
{
    int64_t refused = 0;

    for (int i = 0; i < count; i++)
        test_wire_add(from, "%s n%d", command, from_number + i);
    CHECK_EQ(test_wire_send(from), HF_OK);
    for (int i = 0; i < count; i++)
        refused += test_is_error(TEST_ANSWER(from), "OVERLOADED");
    return refused;
}

TEST(subscriptions_of_one_client_are_bounded)
{
    start();
    CHECK_EQ(subscribe_many(&ear, "SUBSCRIBE", 0, SUBSCRIPTIONS_MAX), 0);
    CHECK_ERROR(test_ask(&ear, "SUBSCRIBE more"), "OVERLOADED");
    CHECK_ERROR(test_ask(&ear, "PSUBSCRIBE more"), "OVERLOADED");
    CHECK_DONE(test_ask(&ear, "SUBSCRIBE n0")); /* it has that one */
    CHECK_EQ(test_info(&wire, "subscriptions"), SUBSCRIPTIONS_MAX);
    CHECK_DONE(test_ask(&ear, "UNSUBSCRIBE n0"));
    CHECK_DONE(test_ask(&ear, "PSUBSCRIBE more"));
    TEST_SEND(&ear, "UNSUBSCRIBE");
    for (int left = SUBSCRIPTIONS_MAX - 1; left > 0; left--) {
        char number[32];
        snprintf(number, sizeof number, ":%d\r\n", left);
        CHECK(test_is(test_element(TEST_ANSWER(&ear), 2), number));
    }
    CHECK_EQ(test_info(&wire, "subscriptions"), 1);
    stop();
}

TEST(patterns_of_all_clients_are_bounded)
{
    start();
    CHECK_EQ(subscribe_many(&ear, "PSUBSCRIBE", 0, PATTERNS_MAX - 1), 0);
    CHECK_EQ(subscribe_many(&deaf, "PSUBSCRIBE", PATTERNS_MAX - 1, 3), 2);
    CHECK_DONE(test_ask(&deaf, "PSUBSCRIBE n7")); /* one that there is */
    CHECK_EQ(test_info(&wire, "pubsub_patterns"), PATTERNS_MAX);
    test_wire_close(&ear);
    await("pubsub_patterns", 2);
    CHECK_EQ(subscribe_many(&deaf, "PSUBSCRIBE", PATTERNS_MAX + 9, 3), 0);
    stop();
}

TEST(a_client_that_vanishes_leaves_no_subscription)
{
    struct test_wire many[50];

    start();
    for (int i = 0; i < 50; i++) {
        test_server_connect(&server, &many[i]);
        TEST_SEND(&many[i], "SUBSCRIBE a b");
        CHECK_DONE(TEST_ANSWER(&many[i]));
        CHECK_DONE(test_ask(&many[i], "PSUBSCRIBE *"));
    }
    CHECK_DONE(test_ask(&ear, "SUBSCRIBE a"));
    CHECK_EQ(test_info(&wire, "subscriptions"), 151);
    for (int i = 0; i < 50; i++) { /* some before, some while it publishes */
        test_wire_add(&wire, "PUBLISH a %d", i);
        if (i % 10 == 0)
            CHECK_EQ(test_wire_send(&wire), HF_OK);
        test_wire_close(&many[i]);
    }
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 50; i++) {
        CHECK(TEST_ANSWER(&wire).data[0] == ':');
        (void)hear(&ear, NULL, "a");
    }
    await("subscriptions", 1);
    CHECK_EQ(test_info(&wire, "pubsub_patterns"), 0);
    CHECK_REPLY(test_ask(&wire, "PUBLISH a x"), ":1");
    stop();
}

/* ---- Those who cost too much. ---- */

/* Publishes long texts, which `ear` hears, until somebody has been cut. */
static int publish_until_cut(void)
{
    static char text[TEXT_BYTES];
    struct hf_bytes words[] = {hf_bytes_text("PUBLISH"), hf_bytes_text("news"),
                               hf_bytes(text, sizeof text)};
    int count = 0;

    while (test_info(&wire, "subscribers_cut_total") == 0) {
        test_wire_add_args(&wire, 3, words);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        CHECK_DONE(TEST_ANSWER(&wire));
        CHECK_EQ(hear(&ear, NULL, "news").len, TEXT_BYTES);
        CHECK(++count < 5000); /* sockets have room for so much */
    }
    return count;
}

TEST(a_subscriber_that_does_not_read_is_cut_and_told_why)
{
    struct hf_bytes told;
    int heard = 0;

    start();
    CHECK_DONE(test_ask(&ear, "SUBSCRIBE news"));
    CHECK_DONE(test_ask(&deaf, "SUBSCRIBE news"));
    int count = publish_until_cut();
    CHECK_EQ(test_info(&wire, "subscribers_cut_total"), 1);
    CHECK_REPLY(test_ask(&wire, "PUBLISH news last"), ":1");
    CHECK_EQ(hear(&ear, NULL, "news").len, 4);
    /* all that it was owed, then why; then the connection ends */
    while (told = TEST_ANSWER(&deaf), told.data[0] == '*')
        heard++;
    CHECK_ERROR(told, "OVERLOADED");
    CHECK(memmem(told.data, told.len, "output-max-bytes", 16) != NULL);
    CHECK_EQ(heard, count - 1);
    CHECK(test_wire_ends(&deaf));
    await("subscriptions", 1);
    stop();
}

/* "*", as many a as there are and a b, to be looked for among more a. */
static void subscribe_slowly(struct test_wire *from, int length)
{
    TEST_SEND(from, "PSUBSCRIBE *%0*db", length, 0);
    CHECK_DONE(TEST_ANSWER(from));
}

/* In Redis such a comparison may take the time of 10^6 others. */
TEST(a_pattern_that_takes_too_long_is_cut_and_told_why)
{
    enum { LISTENERS = 20 };
    struct test_wire many[LISTENERS];

    start();
    CHECK_DONE(test_ask(&ear, "PSUBSCRIBE hf:lock:*"));
    for (int i = 0; i < LISTENERS; i++) {
        test_server_connect(&server, &many[i]);
        subscribe_slowly(&many[i], 100 + i);
    }
    CHECK_DONE(test_ask(&wire, "LOCK short OWNER o")); /* costs little */
    (void)hear_event(&ear, "hf:lock:*", "hf:lock:short", "lock_granted");
    CHECK_EQ(test_info(&wire, "subscribers_cut_total"), 0);
    CHECK_DONE(test_ask(&wire, "LOCK %0500d OWNER o", 0));
    char channel[512];
    snprintf(channel, sizeof channel, "hf:lock:%0500d", 0);
    (void)hear_event(&ear, "hf:lock:*", channel, "lock_granted");
    for (int i = 0; i < LISTENERS; i++) {
        struct hf_bytes told = TEST_ANSWER(&many[i]);
        CHECK_ERROR(told, "OVERLOADED");
        CHECK(memmem(told.data, told.len, "pattern", 7) != NULL);
        CHECK(test_wire_ends(&many[i]));
        test_wire_close(&many[i]);
    }
    CHECK_EQ(test_info(&wire, "subscribers_cut_total"), LISTENERS);
    CHECK(test_info(&wire, "pattern_steps_max") < LISTENERS * 11000);
    await("pubsub_patterns", 1);
    stop();
}

/* The first of them ends it; the others are not even looked at. */
TEST(many_slow_patterns_of_one_client_cost_no_more_than_one)
{
    start();
    for (int i = 0; i < 500; i++)
        subscribe_slowly(&deaf, 50 + i % 400 + i / 400);
    CHECK_DONE(test_ask(&wire, "LOCK %0500d OWNER o", 0));
    CHECK(test_info(&wire, "pattern_steps_max") < 11000);
    CHECK_ERROR(TEST_ANSWER(&deaf), "OVERLOADED");
    CHECK(test_wire_ends(&deaf));
    CHECK_EQ(test_info(&wire, "subscribers_cut_total"), 1);
    stop();
}

/* What is published costs the turn of who publishes. */
TEST(who_publishes_pays_for_it)
{
    char words[4096] = "SUBSCRIBE";

    start();
    for (int i = 0; i < 300; i++) {
        TEST_SEND(&ear, "PSUBSCRIBE *%d*", i);
        CHECK_DONE(TEST_ANSWER(&ear));
    }
    for (int i = 0; i < 500; i++)
        test_wire_add(&wire, "PUBLISH %0500d x", 0);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    CHECK_EQ(test_wire_send(&ear), HF_OK);
    for (int i = 0; i < 500; i++)
        CHECK(TEST_ANSWER(&wire).data[0] == ':');
    int64_t most = test_info(&wire, "turn_steps_max");
    CHECK(most > 2 * 300 * 2 && most < 3 * 300 * 600);
    for (int i = 0; i < 500; i++)
        snprintf(words + strlen(words), 16, " n%d", i);
    CHECK_DONE(test_ask(&deaf, "%s", words));
    for (int i = 0; i < 499; i++)
        CHECK_DONE(TEST_ANSWER(&deaf));
    int64_t before = test_info(&wire, "turn_steps_max");
    CHECK_DONE(test_ask(&deaf, "%s", words));
    CHECK(test_info(&wire, "turn_steps_max") >= before);
    CHECK(test_info(&wire, "turn_steps_max") >= 500 * 500);
    stop();
}
