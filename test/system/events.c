/* events.c - EVENTS on a real server: what is told, from where on, and when.
 * tests: also under sanitizers
 */
#include <signal.h>

#include "support/pages.h"
#include "support/server.h"

#define COUNT_MAX   1000
#define WAIT_MAX_MS 3600000
#define MATCH_MAX   256

static struct test_server server;
static struct test_wire wire;
static struct test_wire other;
static struct pages all;
static struct pages some;

static void start_with(const char *const *more)
{
    test_server_begin(
        &server, &wire,
        &(struct test_server_opts){.durability = "none", .more = more});
    test_wire_close(&other);
    test_server_connect(&server, &other);
    CHECK_REPLY(test_ask(&other, "PING"), "+PONG");
}

static void start(void)
{
    start_with(NULL);
    CHECK_DONE(test_ask(&wire, "FLUSHALL"));
    pages_clear(&all, test_info(&wire, "feed_last"));
    pages_clear(&some, all.next);
}

static void stop(void)
{
    test_wire_close(&other);
    pages_free(&all);
    pages_free(&some);
    test_server_finish(&server, &wire);
}

static int64_t lock(const char *name)
{
    int64_t token =
        test_number(test_ask(&wire, "LOCK %s OWNER ann", name), "token");

    CHECK(token > 0);
    return token;
}

/* So many changes of the same product. */
static void change_stock(int count)
{
    for (int i = 0; i < count; i++)
        test_wire_add(&wire, "STOCK SET pen %d", i);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < count; i++)
        CHECK_DONE(TEST_ANSWER(&wire));
}

/* The event at that place of the reply. */
static struct hf_bytes event_at(struct hf_bytes reply, size_t index)
{
    return test_element(test_part(reply, "events"), index);
}

static void expect_kind(struct hf_bytes event, const char *kind)
{
    struct hf_bytes found = test_text(event, "kind");

    CHECK_TEXT(found.data, found.len, kind);
}

static void check_every_kind(const char *hello)
{
    static const char *const kinds[] = {
        "lock_granted",  "lock_reentered", "lock_renewed",   "lock_released",
        "stock_changed", "stock_changed",  "reserved",       "extended",
        "confirmed",     "reserved",       "cancelled",      "fence_raised",
        "fence_deleted", "session_opened", "session_closed", "stock_deleted"};
    enum { KINDS = sizeof kinds / sizeof *kinds };

    start();
    CHECK_DONE(test_ask(&wire, "%s", hello));
    int64_t token = lock("door");
    CHECK_EQ(lock("door"), token);
    CHECK_DONE(test_ask(&wire, "RENEW door %" PRId64 " TTL 9000", token));
    CHECK_DONE(test_ask(&wire, "UNLOCK door %" PRId64, token));
    CHECK_DONE(test_ask(&wire, "UNLOCK door %" PRId64, token));
    CHECK_DONE(test_ask(&wire, "STOCK SET pen 5"));
    CHECK_DONE(test_ask(&wire, "STOCK SET ink 5"));
    CHECK_DONE(test_ask(&wire, "RESERVE r ITEM pen 2 ITEM ink 1"));
    CHECK_DONE(test_ask(&wire, "EXTEND r TTL 9000"));
    CHECK_DONE(test_ask(&wire, "CONFIRM r"));
    CHECK_DONE(test_ask(&wire, "RESERVE s ITEM ink 1"));
    CHECK_DONE(test_ask(&wire, "CANCEL s"));
    CHECK_DONE(test_ask(&wire, "FENCE disk %" PRId64, token));
    CHECK_DONE(test_ask(&wire, "FENCE DEL disk"));
    int64_t session =
        test_number(test_ask(&wire, "SESSION OPEN TTL 9000"), "session");
    CHECK_DONE(test_ask(&wire, "SESSION CLOSE %" PRId64, session));
    CHECK_DONE(test_ask(&wire, "STOCK DEL ink"));
    struct hf_bytes told = test_ask(&wire, "EVENTS FROM %" PRId64, all.next);
    CHECK_EQ(test_length(test_part(told, "events")), KINDS + 1);
    for (size_t i = 0, k = 0; i < KINDS; i++, k++) {
        k += i == 4; /* the second release is one more */
        expect_kind(event_at(told, k), kinds[i]);
    }
    struct hf_bytes granted = event_at(told, 0);
    CHECK_EQ(test_number(granted, "seq"), token);
    CHECK_EQ(test_number(granted, "token"), token);
    CHECK(test_number(granted, "at_ms") > 1600000000000);
    CHECK(hf_bytes_equal(test_text(granted, "owner"), hf_bytes_text("ann")));
    CHECK(hf_bytes_equal(test_text(granted, "name"), hf_bytes_text("door")));
    CHECK(
        hf_bytes_equal(test_text(granted, "mode"), hf_bytes_text("exclusive")));
    CHECK(test_number(event_at(told, 4), "held_ms") >= 0);
    CHECK_EQ(test_number(event_at(told, 5), "total"), 5);
    CHECK_EQ(test_length(test_part(event_at(told, 7), "items")), 2);
    pages_add(&all, told);
    CHECK_EQ(all.gaps, 0);
    CHECK_EQ(all.next, test_info(&wire, "feed_last"));
    CHECK_EQ(all.next, test_info(&wire, "sequence"));
    stop();
}

TEST(each_change_is_an_event)
{
    check_every_kind("HELLO 2");
    check_every_kind("HELLO 3");
}

/* Refusals, questions and limits are none. */
TEST(what_changes_nothing_is_no_event)
{
    start();
    (void)lock("door");
    CHECK_ERROR(test_ask(&other, "LOCK door OWNER bob"), "BUSY");
    CHECK_ERROR(test_ask(&other, "UNLOCK door 1"), "NOTHELD");
    CHECK_ERROR(test_ask(&other, "CONFIRM r"), "NOTFOUND");
    CHECK_DONE(test_ask(&other, "LOCKINFO door"));
    CHECK_DONE(test_ask(&other, "LIMIT k RATE 1 PER 1000"));
    CHECK_REPLY(test_ask(&other, "MULTI"), "+OK");
    CHECK_REPLY(test_ask(&other, "STOCK SET pen 1"), "+QUEUED");
    CHECK_REPLY(test_ask(&other, "HELD door 99"), "+QUEUED");
    CHECK_ERROR(test_ask(&other, "EXEC"), "EXECABORT");
    pages_read(&all, &wire, "");
    CHECK_EQ(all.count, 1);
    stop();
}

/* All commands of a group are told, and in their order. */
TEST(a_group_is_told_as_its_commands_are)
{
    start();
    CHECK_REPLY(test_ask(&wire, "MULTI"), "+OK");
    CHECK_REPLY(test_ask(&wire, "STOCK SET pen 5"), "+QUEUED");
    CHECK_REPLY(test_ask(&wire, "LOCK door OWNER ann"), "+QUEUED");
    CHECK_REPLY(test_ask(&wire, "RESERVE r ITEM pen 1"), "+QUEUED");
    CHECK_DONE(test_ask(&wire, "EXEC"));
    struct hf_bytes told = test_ask(&wire, "EVENTS FROM %" PRId64, all.next);
    CHECK_EQ(test_length(test_part(told, "events")), 3);
    expect_kind(event_at(told, 0), "stock_changed");
    expect_kind(event_at(told, 1), "lock_granted");
    expect_kind(event_at(told, 2), "reserved");
    stop();
}

TEST(what_is_asked_has_a_form)
{
    static const char *const wrong[] = {
        "EVENTS",
        "EVENTS 0",
        "EVENTS FROM",
        "EVENTS FROM x",
        "EVENTS FROM -1",
        "EVENTS FROM 9223372036854775808",
        "EVENTS FROM 0 FROM 0",
        "EVENTS FROM 0 COUNT 0",
        "EVENTS FROM 0 COUNT 1001",
        "EVENTS FROM 0 COUNT x",
        "EVENTS FROM 0 COUNT",
        "EVENTS FROM 0 WAIT -1",
        "EVENTS FROM 0 WAIT 3600001",
        "EVENTS FROM 0 WAIT",
        "EVENTS FROM 0 MATCH",
        "EVENTS FROM 0 NOSUCH 1",
        "EVENTS COUNT 1",
    };
    char pattern[MATCH_MAX + 2];

    start();
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        CHECK_ERROR(test_ask(&wire, "%s", wrong[i]), "BADARG");
    memset(pattern, 'p', sizeof pattern);
    pattern[MATCH_MAX + 1] = '\0';
    CHECK_ERROR(test_ask(&wire, "EVENTS FROM 0 MATCH %s", pattern), "BADARG");
    pattern[MATCH_MAX] = '\0';
    CHECK_DONE(test_ask(&wire, "EVENTS FROM 0 MATCH %s", pattern));
    CHECK_DONE(test_ask(&wire, "events match * wait 0 count 1 from 0"));
    CHECK_DONE(test_ask(&wire, "EVENTS FROM 0 COUNT %d WAIT %d", COUNT_MAX,
                        WAIT_MAX_MS));
    stop();
}

TEST(count_bounds_a_page_and_pages_go_on_exactly)
{
    static const char *const options[] = {"COUNT 1", "COUNT 7", "COUNT 99",
                                          "COUNT 1000", ""};

    start();
    change_stock(2345);
    pages_read(&all, &wire, "COUNT 1000");
    CHECK_EQ(all.count, 2345);
    CHECK_EQ(test_length(test_part(
                 test_ask(&wire, "EVENTS FROM %" PRId64, some.next), "events")),
             100); /* unless told */
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        pages_clear(&some, pages_seq(&all, 0) - 1);
        pages_read(&some, &wire, options[i]);
        CHECK_EQ(some.count, all.count);
        CHECK(hf_bytes_equal(hf_buf_bytes(&some.bytes),
                             hf_buf_bytes(&all.bytes)));
        CHECK_EQ(some.gaps, 0);
    }
    pages_clear(&some, pages_seq(&all, 999)); /* that one is not told again */
    pages_read(&some, &wire, "");
    CHECK_EQ(pages_seq(&some, 0), pages_seq(&all, 1000));
    stop();
}

/* By any of its channels; what is passed by is not asked for again. */
TEST(match_picks_by_channel)
{
    static const struct {
        const char *pattern;
        size_t count;
    } rows[] = {{"hf:*", 9},
                {"*", 9},
                {"hf:lock:*", 4},
                {"hf:lock:a", 2},
                {"hf:election:*", 2},
                {"hf:stock:pen", 3},
                {"hf:stock:*", 4},
                {"hf:reservation:r", 2},
                {"hf:reservation:nosuch", 0},
                {"hf:fence:*", 1},
                {"hf:[rf]*", 3},
                {"lock_granted", 0}};

    start();
    (void)lock("a");
    CHECK_DONE(test_ask(&wire, "LOCK b OWNER ann SHARED"));
    CHECK_DONE(test_ask(&wire, "LOCK b OWNER bob SHARED"));
    CHECK_DONE(test_ask(&wire, "STOCK SET pen 5"));
    CHECK_DONE(test_ask(&wire, "STOCK SET ink 5"));
    CHECK_DONE(test_ask(&wire, "RESERVE r ITEM pen 1"));
    CHECK_DONE(test_ask(&wire, "CANCEL r"));
    CHECK_DONE(test_ask(&wire, "FENCE disk 1"));
    CHECK_DONE(test_ask(&wire, "LOCK a OWNER ann"));
    int64_t from = all.next;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char match[64];
        snprintf(match, sizeof match, "MATCH %s", rows[i].pattern);
        pages_clear(&some, from);
        pages_read(&some, &wire, match);
        if (some.count != rows[i].count)
            test_fail(__FILE__, __LINE__, "%s has %zu", rows[i].pattern,
                      some.count);
        CHECK_EQ(some.next, test_info(&wire, "feed_last"));
    }
    stop();
}

/* A page ends early when it took many steps; the next goes on there. */
TEST(a_search_for_few_among_many_is_cut_into_pages)
{
    start();
    for (int i = 0; i < 30; i++) {
        change_stock(1000);
        (void)lock("rare");
    }
    pages_read(&all, &wire, "MATCH hf:lock:rare");
    CHECK_EQ(all.count, 30);
    CHECK(all.pages > 3);
    CHECK_EQ(all.next, test_info(&wire, "feed_last"));
    stop();
}

TEST(a_pattern_that_takes_too_long_for_one_event_is_refused)
{
    enum { PRODUCTS = 4 };
    static const char item[] = "ITEM";
    char skus[PRODUCTS][256];
    char pattern[MATCH_MAX];
    struct hf_bytes words[2 + 3 * PRODUCTS] = {hf_bytes_text("RESERVE"),
                                               hf_bytes_text("r")};

    start();
    for (size_t i = 0; i < PRODUCTS; i++) {
        snprintf(skus[i], sizeof skus[i], "%0254d%zu", 0, i);
        CHECK_DONE(test_ask(&wire, "STOCK SET %s 9", skus[i]));
        words[2 + 3 * i] = hf_bytes_text(item);
        words[3 + 3 * i] = hf_bytes_text(skus[i]);
        words[4 + 3 * i] = hf_bytes_text("1");
    }
    /* a set as long as it may be, which every byte is looked for in */
    memset(pattern, 'x', sizeof pattern);
    memcpy(pattern, "*[", 2);
    memcpy(pattern + MATCH_MAX - 3, "]y", 3);
    pages_read(&all, &wire, "");
    pages_clear(&some, all.next);
    CHECK_DONE(test_ask(&wire, "EVENTS FROM 0 MATCH %s", pattern));
    test_wire_add_args(&wire, 2 + 3 * PRODUCTS, words);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    CHECK_DONE(TEST_ANSWER(&wire));
    struct hf_bytes told =
        test_ask(&wire, "EVENTS FROM %" PRId64 " MATCH %s", all.next, pattern);
    CHECK_ERROR(told, "OVERLOADED");
    CHECK(memmem(told.data, told.len, "pattern", 7) != NULL);
    CHECK(test_info(&wire, "turn_steps_max") < 200000);
    pages_read(&some, &wire, "MATCH hf:reservation:*");
    CHECK_EQ(some.count, 1);
    stop();
}

/* Who goes on from a number of other data would not hear of what comes before
 * it. */
TEST(a_number_that_there_is_not_yet_is_refused)
{
    start();
    (void)lock("door");
    int64_t newest = test_info(&wire, "sequence");
    CHECK_ERROR(test_ask(&wire, "EVENTS FROM %" PRId64, newest + 1), "STATE");
    CHECK_ERROR(
        test_ask(&wire, "EVENTS FROM %" PRId64 " WAIT 3600000", INT64_MAX),
        "STATE");
    struct hf_bytes told = test_ask(&wire, "EVENTS FROM %" PRId64, newest);
    CHECK_EQ(test_length(test_part(told, "events")), 0);
    CHECK_EQ(test_number(told, "next"), newest);
    CHECK_EQ(test_number(told, "gap"), 0);
    stop();
}

/* ---- Waiting. ---- */

static void await_waiters(int64_t count)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    while (test_info(&wire, "feed_waiters") != count)
        CHECK(test_now_ms() < end_ms);
}

TEST(who_waits_is_told_the_next_event)
{
    start();
    TEST_SEND(&other, "EVENTS FROM %" PRId64 " WAIT 3600000", all.next);
    await_waiters(1);
    CHECK_EQ(test_info(&wire, "blocked_clients"), 1);
    int64_t token = lock("door");
    pages_add(&all, TEST_ANSWER(&other));
    CHECK_EQ(all.count, 1);
    CHECK_EQ(pages_seq(&all, 0), token);
    await_waiters(0);
    /* what is there already is not waited for */
    TEST_SEND(&other, "EVENTS FROM 0 WAIT 3600000");
    CHECK_DONE(TEST_ANSWER(&other));
    stop();
}

/* Others' events do not wake it, and it goes on behind them. */
TEST(who_waits_for_a_pattern_is_told_what_matches)
{
    start();
    TEST_SEND(&other, "EVENTS FROM %" PRId64 " WAIT 3600000 MATCH hf:lock:door",
              all.next);
    await_waiters(1);
    change_stock(500);
    (void)lock("window");
    await_waiters(1);
    int64_t token = lock("door");
    pages_add(&all, TEST_ANSWER(&other));
    CHECK_EQ(all.count, 1);
    CHECK_EQ(pages_seq(&all, 0), token);
    CHECK_EQ(all.next, token);
    stop();
}

TEST(a_wait_that_times_out_is_told_so)
{
    start();
    pages_read(&all, &wire, "");
    uint64_t begun_ms = test_now_ms();
    struct hf_bytes told =
        test_ask(&other, "EVENTS FROM %" PRId64 " WAIT 30", all.next);
    CHECK(test_now_ms() - begun_ms >= 29);
    CHECK_EQ(test_length(test_part(told, "events")), 0);
    CHECK_EQ(test_number(told, "next"), all.next);
    CHECK_EQ(test_number(told, "gap"), 0);
    /* it goes on behind what does not match */
    change_stock(10);
    told = test_ask(&other, "EVENTS FROM %" PRId64 " WAIT 1 MATCH nothing",
                    all.next);
    CHECK_EQ(test_number(told, "next"), test_info(&wire, "feed_last"));
    stop();
}

TEST(who_waits_may_go)
{
    start();
    for (int i = 0; i < 3; i++) {
        TEST_SEND(&other, "EVENTS FROM %" PRId64 " WAIT 3600000", all.next);
        await_waiters(1);
        test_wire_close(&other);
        await_waiters(0);
        test_server_connect(&server, &other);
    }
    (void)lock("door");
    pages_read(&all, &other, "");
    CHECK_EQ(all.count, 1);
    stop();
}

TEST(many_wait_and_all_are_told)
{
    struct test_wire many[50];

    start();
    for (int i = 0; i < 50; i++) {
        test_server_connect(&server, &many[i]);
        TEST_SEND(&many[i], "EVENTS FROM %" PRId64 " WAIT 3600000 MATCH %s",
                  all.next, i % 2 ? "hf:lock:*" : "hf:stock:*");
    }
    await_waiters(50);
    (void)lock("door");
    await_waiters(25);
    change_stock(1);
    for (int i = 0; i < 50; i++) {
        struct hf_bytes told = TEST_ANSWER(&many[i]);
        CHECK_EQ(test_length(test_part(told, "events")), 1);
        expect_kind(event_at(told, 0),
                    i % 2 ? "lock_granted" : "stock_changed");
        test_wire_close(&many[i]);
    }
    stop();
}

TEST(a_server_that_stops_tells_those_who_wait)
{
    start();
    TEST_SEND(&other, "EVENTS FROM %" PRId64 " WAIT 3600000", all.next);
    await_waiters(1);
    CHECK(test_server_signal(&server, SIGTERM));
    struct hf_bytes told = TEST_ANSWER(&other);
    CHECK_EQ(test_length(test_part(told, "events")), 0);
    CHECK_EQ(test_number(told, "next"), all.next);
    CHECK(test_wire_ends(&other));
    CHECK_EQ(test_server_end(&server), 0);
    test_wire_close(&wire);
    test_wire_close(&other);
}

TEST(without_a_feed_there_is_pub_sub_only)
{
    static const char *const more[] = {"--events-keep-bytes", "0", NULL};

    start_with(more);
    CHECK_ERROR(test_ask(&wire, "EVENTS FROM 0"), "STATE");
    CHECK_ERROR(test_ask(&wire, "EVENTS FROM 0 WAIT 1000"), "STATE");
    CHECK_EQ(test_info(&wire, "feed_files"), 0);
    CHECK_DONE(test_ask(&other, "SUBSCRIBE hf:lock:door"));
    (void)lock("door");
    CHECK_EQ(test_length(TEST_ANSWER(&other)), 3);
    stop();
}
