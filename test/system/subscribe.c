/* subscribe.c - pub/sub on a real server: who is told what, in which order.
 * tests: also under sanitizers
 */
#include <inttypes.h>

#include "support/hear.h"
#include "support/redis.h"
#include "support/server.h"
#include "support/test.h"

static struct test_server server;
static struct test_wire wire; /* does things */
static struct test_wire ear;  /* has subscribed */
static struct test_wire other;

static void start(void)
{
    test_server_begin(&server, &wire,
                      &(struct test_server_opts){.durability = "none"});
    test_wire_close(&ear);
    test_wire_close(&other);
    test_server_connect(&server, &ear);
    test_server_connect(&server, &other);
    CHECK_REPLY(test_ask(&other, "PING"), "+PONG");
}

static void stop(void)
{
    test_wire_close(&ear);
    test_wire_close(&other);
    test_server_finish(&server, &wire);
}

static void subscribe(struct test_wire *from, const char *hello,
                      const char *pattern)
{
    CHECK_DONE(test_ask(from, "%s", hello));
    TEST_SEND(from, "PSUBSCRIBE %s", pattern);
    expect_count(from, "psubscribe", pattern, 1);
}

/* ---- Events. ---- */

/* What happens to each kind of thing, to one who hears all. */
static void check_all_families(const char *hello)
{
    static const char all[] = "hf:*";

    start();
    subscribe(&ear, hello, all);
    int64_t token = token_of(test_ask(&wire, "LOCK door OWNER ann NOTE why"));
    CHECK_EQ(hear_event(&ear, all, "hf:lock:door", "lock_granted"), token);
    CHECK_EQ(hear_event(&ear, all, "hf:election:door", "lock_granted"), token);
    CHECK_DONE(test_ask(&wire, "UNLOCK door %" PRId64, token));
    CHECK(hear_event(&ear, all, "hf:lock:door", "lock_released") > token);
    CHECK(hear_event(&ear, all, "hf:election:door", "lock_released") > token);
    CHECK_DONE(test_ask(&wire, "LOCK page OWNER ann SHARED"));
    CHECK(hear_event(&ear, all, "hf:lock:page", "lock_granted") > token);
    CHECK_DONE(test_ask(&wire, "STOCK SET pen 10"));
    CHECK(hear_event(&ear, all, "hf:stock:pen", "stock_changed") > token);
    CHECK_DONE(test_ask(&wire, "FENCE disk 1"));
    CHECK(hear_event(&ear, all, "hf:fence:disk", "fence_raised") > token);
    struct hf_bytes opened = test_ask(&wire, "SESSION OPEN TTL 60000");
    char session[96];
    snprintf(session, sizeof session, "hf:session:%" PRId64,
             test_number(opened, "session"));
    CHECK(hear_event(&ear, all, session, "session_opened") > token);
    CHECK_DONE(test_ask(&wire, "FLUSHALL"));
    CHECK(hear_event(&ear, all, "hf:all", "flushed") > token);
    expect_silence(&ear);
    stop();
}

TEST(what_happens_is_told_on_its_channels)
{
    check_all_families("HELLO 2");
    check_all_families("HELLO 3");
}

/* ann leads, bob follows when she steps down. */
TEST(an_election_is_told_on_a_channel_of_its_own)
{
    start();
    TEST_SEND(&ear, "SUBSCRIBE hf:election:boss");
    expect_count(&ear, "subscribe", "hf:election:boss", 1);
    int64_t ann = token_of(test_ask(&wire, "ELECT boss OWNER ann"));
    CHECK_EQ(hear_event(&ear, NULL, "hf:election:boss", "lock_granted"), ann);
    TEST_SEND(&other, "ELECT boss OWNER bob WAIT 60000");
    while (test_info(&wire, "lock_waiters") == 0)
        ;
    CHECK_DONE(test_ask(&wire, "RESIGN boss %" PRId64, ann));
    CHECK(hear_event(&ear, NULL, "hf:election:boss", "lock_released") > ann);
    int64_t bob = token_of(TEST_ANSWER(&other));
    CHECK_EQ(hear_event(&ear, NULL, "hf:election:boss", "lock_granted"), bob);
    stop();
}

/* One event, and a message for each of its channels that is listened to. */
TEST(a_reservation_of_three_products_is_one_event)
{
    static const char *const channels[] = {"hf:reservation:r", "hf:stock:a",
                                           "hf:stock:b", "hf:stock:c"};
    int64_t seq = 0;

    start();
    for (char sku = 'a'; sku <= 'c'; sku++)
        CHECK_DONE(test_ask(&wire, "STOCK SET %c 9", sku));
    TEST_SEND(&ear, "PSUBSCRIBE hf:[rs]* hf:stock:?");
    expect_count(&ear, "psubscribe", "hf:[rs]*", 1);
    expect_count(&ear, "psubscribe", "hf:stock:?", 2);
    CHECK_DONE(test_ask(&wire, "RESERVE r ITEM a 1 ITEM b 2 ITEM c 3"));
    for (size_t i = 0; i < 4; i++) {
        int64_t told = hear_event(&ear, "hf:[rs]*", channels[i], "reserved");
        CHECK(i == 0 || told == seq);
        seq = told;
        if (i > 0)
            CHECK_EQ(hear_event(&ear, "hf:stock:?", channels[i], "reserved"),
                     seq);
    }
    expect_silence(&ear);
    CHECK_DONE(test_ask(&wire, "CONFIRM r"));
    struct hf_bytes text = hear(&ear, "hf:[rs]*", channels[0]);
    CHECK(test_json_is_object(text));
    struct hf_bytes items = test_json_field(text, "items");
    CHECK_TEXT(items.data, items.len,
               "[{\"sku\":\"a\",\"quantity\":1},"
               "{\"sku\":\"b\",\"quantity\":2},"
               "{\"sku\":\"c\",\"quantity\":3}]");
    stop();
}

/* Names, owners and notes may be any bytes. */
TEST(a_payload_is_one_json_object_whatever_names_are)
{
    static const char nasty[] = "q\"u\\o\x01\x7f\xc3\x28\xf4\x8f\xbf\xbf{}";
    struct hf_bytes words[] = {hf_bytes_text("LOCK"),  hf_bytes_text(nasty),
                               hf_bytes_text("OWNER"), hf_bytes_text(nasty),
                               hf_bytes_text("NOTE"),  hf_bytes_text(nasty)};

    start();
    subscribe(&ear, "HELLO 3", "hf:lock:*");
    test_wire_add_args(&wire, 6, words);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    int64_t token = token_of(TEST_ANSWER(&wire));
    char channel[64];
    snprintf(channel, sizeof channel, "hf:lock:%s", nasty);
    struct hf_bytes text = hear(&ear, "hf:lock:*", channel);
    CHECK(test_json_is_object(text));
    CHECK_EQ(test_json_number(text, "seq"), token);
    CHECK_EQ(test_json_number(text, "token"), token);
    struct hf_bytes owner = test_json_field(text, "owner");
    CHECK(hf_bytes_equal(owner, test_json_field(text, "name")));
    CHECK(hf_bytes_equal(owner, test_json_field(text, "note")));
    CHECK_TEXT(owner.data, owner.len,
               "q\\\"u\\\\o\\u0001\\u007f\\ufffd(\xf4\x8f\xbf\xbf{}");
    stop();
}

/* With the number of its ticket, which is that of its grant. */
TEST(who_waits_for_a_lock_is_told_to_those_who_listen)
{
    start();
    int64_t token = token_of(test_ask(&wire, "LOCK door OWNER ann"));
    TEST_SEND(&ear, "SUBSCRIBE hf:lock:door");
    expect_count(&ear, "subscribe", "hf:lock:door", 1);
    TEST_SEND(&other, "LOCK door OWNER bob WAIT 60000");
    struct hf_bytes text = hear(&ear, NULL, "hf:lock:door");
    CHECK(test_json_is_object(text));
    CHECK(test_json_number(text, "seq") > token);
    struct hf_bytes kind = test_json_field(text, "kind");
    CHECK_TEXT(kind.data, kind.len, "lock_wanted");
    CHECK_DONE(test_ask(&wire, "UNLOCK door %" PRId64, token));
    (void)hear_event(&ear, NULL, "hf:lock:door", "lock_released");
    int64_t bob = token_of(TEST_ANSWER(&other));
    CHECK_EQ(hear_event(&ear, NULL, "hf:lock:door", "lock_granted"), bob);
    stop();
}

/* Clients of Redis that lock with SET do not expect pushes. */
TEST(who_holds_a_key_by_SET_is_pushed_nothing_and_subscribers_are_told)
{
    static const char channel[] = "hf:lock:door";

    start();
    CHECK_DONE(test_ask(&other, "HELLO 3")); /* the holder */
    subscribe(&ear, "HELLO 3", channel);
    CHECK_REPLY(test_ask(&other, "SET door me NX PX 3600000"), "+OK");
    int64_t token = hear_event(&ear, channel, channel, "lock_granted");
    TEST_SEND(&wire, "LOCK door OWNER bob WAIT 60000");
    struct hf_bytes wanted = hear(&ear, channel, channel);
    CHECK(memmem(wanted.data, wanted.len, "lock_wanted", 11) != NULL);
    expect_silence(&other);
    CHECK_REPLY(test_ask(&other, "SET door we XX PX 3600000"), "+OK");
    CHECK(hear_event(&ear, channel, channel, "lock_lost") > token);
    token = hear_event(&ear, channel, channel, "lock_granted");
    CHECK_DONE(test_ask(&other, "REVOKE door %" PRId64, token));
    int64_t lost = hear_event(&ear, channel, channel, "lock_lost");
    CHECK_EQ(hear_event(&ear, channel, channel, "lock_granted"),
             token_of(TEST_ANSWER(&wire)));
    expect_silence(&other);
    struct hf_bytes page =
        test_ask(&other, "EVENTS FROM %" PRId64 " COUNT 1", lost - 1);
    CHECK_EQ(test_number(test_element(test_part(page, "events"), 0), "seq"),
             lost);
    stop();
}

/* A client of RESP3 does and hears: each reply in its turn, and each message
 * before the reply to what came after it. */
TEST(messages_and_replies_keep_their_order)
{
    enum { COUNT = 200 };
    int64_t token = 0;
    int replies = 0;
    int messages = 0;

    start();
    CHECK_DONE(test_ask(&ear, "HELLO 3"));
    TEST_SEND(&ear, "SUBSCRIBE hf:fence:disk");
    expect_count(&ear, "subscribe", "hf:fence:disk", 1);
    token = token_of(test_ask(&wire, "LOCK a OWNER x"));
    for (int i = 1; i < COUNT; i++)
        token = token_of(test_ask(&wire, "LOCK a%d OWNER x", i));
    for (int i = 0; i < COUNT; i++) {
        test_wire_add(&ear, "FENCE disk %" PRId64, token - COUNT + 1 + i);
        test_wire_add(&ear, "ECHO %d", i);
    }
    CHECK_EQ(test_wire_send(&ear), HF_OK);
    while (replies < 2 * COUNT) {
        struct hf_bytes told = TEST_ANSWER(&ear);
        char number[32];
        if (told.data[0] == '>') {
            struct hf_bytes text = test_bulk(test_element(told, 2));
            CHECK_EQ(test_json_number(text, "token"),
                     token - COUNT + 1 + messages);
            messages++;
            continue;
        }
        snprintf(number, sizeof number, "%d", replies / 2);
        if (replies % 2 == 0)
            CHECK(test_is(told, "+OK\r\n"));
        else
            CHECK(is_text(told, number));
        replies++;
        CHECK(messages >= (replies + 1) / 2);
    }
    CHECK_EQ(messages, COUNT);
    stop();
}

/* ---- As Redis has it. ---- */

/* The same requests to both, and after each what there is to read. */
static void gather(uint16_t port, const char *hello, struct hf_buf *out)
{
    /* those with > are sent by another client */
    static const char *const words[] = {
        "SUBSCRIBE a",
        "SUBSCRIBE a b a",
        "PING",
        "PSUBSCRIBE ab* ?",
        ">PUBLISH a one",
        ">PUBLISH b two",
        ">PUBLISH abc three",
        ">PUBLISH nobody four",
        ">PUBSUB NUMSUB a b c a",
        ">PUBSUB NUMSUB",
        ">PUBSUB NUMPAT",
        "UNSUBSCRIBE b nosuch",
        "PUNSUBSCRIBE nosuch ?",
        ">PUBSUB CHANNELS",
        ">PUBSUB CHANNELS b*",
        ">PUBSUB CHANNELS a*",
        "UNSUBSCRIBE",
        "UNSUBSCRIBE",
        ">PUBLISH ab five",
        "PUNSUBSCRIBE",
        "PUNSUBSCRIBE",
        ">PUBLISH a six",
        ">PUBSUB CHANNELS *",
        "PING",
        "UNSUBSCRIBE x y",
        "PUNSUBSCRIBE x",
        "SUBSCRIBE a",
        "QUIT",
    };
    struct test_wire mine = {.fd = -1};
    struct test_wire theirs = {.fd = -1};
    struct hf_bytes told;

    CHECK_EQ(test_wire_open(&mine, port), HF_OK);
    CHECK_EQ(test_wire_open(&theirs, port), HF_OK);
    CHECK_DONE(test_ask(&mine, "%s", hello));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        struct test_wire *from = words[i][0] == '>' ? &theirs : &mine;
        CHECK_EQ(hf_buf_format(out, "%s\n", words[i]), HF_OK);
        test_wire_add(from, "%s", words[i] + (from == &theirs));
        CHECK_EQ(test_wire_send(from), HF_OK);
        if (from == &theirs) {
            told = TEST_ANSWER(from);
            CHECK_EQ(hf_buf_append(out, told.data, told.len), HF_OK);
        }
        if (strcmp(words[i], "QUIT") == 0)
            break;
        TEST_SEND(&mine, "PING %s", "mark");
        do {
            told = TEST_ANSWER(&mine);
            CHECK_EQ(hf_buf_append(out, told.data, told.len), HF_OK);
        } while (memmem(told.data, told.len, "mark", 4) == NULL);
    }
    CHECK(test_is(TEST_ANSWER(&mine), "+OK\r\n"));
    CHECK(test_wire_ends(&mine));
    test_wire_close(&mine);
    test_wire_close(&theirs);
}

static void check_as_redis(const char *hello)
{
    struct test_redis *redis = test_redis_start(NULL);
    struct hf_buf ours = {0};
    struct hf_buf theirs = {0};

    start();
    gather(server.port, hello, &ours);
    gather(redis->port, hello, &theirs);
    CHECK_EQ(hf_buf_append(&theirs, "", 1), HF_OK);
    CHECK_TEXT(ours.data, ours.len, theirs.data);
    hf_buf_destroy(&ours);
    hf_buf_destroy(&theirs);
    test_redis_end(redis);
    stop();
}

TEST(ordinary_channels_are_told_as_redis_tells_them)
{
    check_as_redis("HELLO 2");
    check_as_redis("HELLO 3");
}

TEST(a_subscriber_of_resp2_may_only_listen)
{
    static const char *const refused[] = {
        "ECHO a",        "LOCK a OWNER b", "PUBLISH a b", "EVENTS FROM 0",
        "MULTI",         "HELLO 3",        "INFO",        "NOSUCH",
        "PUBSUB NUMPAT", "EXEC",           "STOCK GET"};

    start();
    TEST_SEND(&ear, "SUBSCRIBE a");
    expect_count(&ear, "subscribe", "a", 1);
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        CHECK_ERROR(test_ask(&ear, "%s", refused[i]), "ERR");
    CHECK_REPLY(test_ask(&ear, "PING"), "*2\r\n$4\r\npong\r\n$0\r\n");
    CHECK_REPLY(test_ask(&ear, "PING x"), "*2\r\n$4\r\npong\r\n$1\r\nx");
    CHECK_DONE(test_ask(&ear, "UNSUBSCRIBE"));
    CHECK_REPLY(test_ask(&ear, "PING"), "+PONG");
    CHECK_DONE(test_ask(&ear, "HELLO 3"));
    TEST_SEND(&ear, "SUBSCRIBE a");
    expect_count(&ear, "subscribe", "a", 1);
    CHECK_REPLY(test_ask(&ear, "PING"), "+PONG");
    CHECK_DONE(test_ask(&ear, "EVENTS FROM 0"));
    stop();
}
