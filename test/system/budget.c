/* budget.c - what one client may take from the others: turns, REQ ids, a
 * place in a queue. Work is counted, not time. */
#include <arpa/inet.h>

#include "server/conn.h"
#include "support/server.h"
#include "support/test.h"

#define PRODUCTS 20000
#define SECOND   0x7f000002u /* 127.0.0.2 */

static struct test_server server;
static struct test_wire wire;

static void start(const char *const *more)
{
    static int count;
    char dir[512];

    snprintf(dir, sizeof dir, "%s/%d", test_folder(), count++);
    test_server_begin(&server, &wire,
                      &(struct test_server_opts){
                          .dir = dir, .durability = "none", .more = more});
}

static void stop(void)
{
    test_server_finish(&server, &wire);
}

static int64_t info(const char *name)
{
    return test_info(&wire, name);
}

static void make_products(void)
{
    for (int i = 0; i < PRODUCTS; i++) {
        test_wire_add(&wire, "STOCK SET aaaaaaaa-%d-aaaaaaaaaaaaaaaa 1", i);
        if (i % 500 < 499 && i + 1 < PRODUCTS)
            continue;
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        for (int k = i - i % 500; k <= i; k++) {
            CHECK_DONE(TEST_ANSWER(&wire));
        }
    }
}

/* The listings of a pipeline are spread over turns: no turn does more than one
 * page beyond its budget, for one client and for all of them. */
TEST(listings_cost_their_own_client_turns)
{
    enum { CLIENTS = 8, LISTINGS = 60 };
    struct test_wire hostile[CLIENTS];
    struct hf_bytes reply;

    start(NULL);
    make_products();
    for (int i = 0; i < CLIENTS; i++) {
        test_server_connect(&server, &hostile[i]);
        for (int k = 0; k < LISTINGS; k++)
            test_wire_add(&hostile[i], "STOCK LIST *a*a*a*a*z");
        CHECK_EQ(test_wire_send(&hostile[i]), HF_OK);
    }
    for (int i = 0; i < CLIENTS; i++) {
        for (int k = 0; k < LISTINGS; k++) {
            reply = TEST_ANSWER(&hostile[i]);
            CHECK_EQ(test_length(test_part(reply, "products")), 0);
        }
        test_wire_close(&hostile[i]);
    }
    CHECK(info("turn_steps_max") < 50000 + CONN_LONG_STEPS + 1);
    CHECK(info("turn_work_max") <=
          CONN_TURN_WORK + CONN_LONG_STEPS / CONN_STEPS_A_WORK);
    stop();
}

TEST(long_replies_share_the_budget_of_listings)
{
    enum { CLIENTS = 8, ASKED = 16 };
    struct test_wire hostile[CLIENTS];

    start(NULL);
    for (int i = 0; i < CLIENTS; i++) {
        test_server_connect(&server, &hostile[i]);
        for (int k = 0; k < ASKED; k++)
            test_wire_add(&hostile[i], "METRICS");
        CHECK_EQ(test_wire_send(&hostile[i]), HF_OK);
    }
    for (int i = 0; i < CLIENTS; i++) {
        for (int k = 0; k < ASKED; k++) {
            CHECK_DONE(TEST_ANSWER(&hostile[i]));
        }
        test_wire_close(&hostile[i]);
    }
    CHECK(info("turn_steps_max") <= CONN_LONG_STEPS);
    stop();
}

TEST(requests_of_one_client_are_spread_over_turns)
{
    start(NULL);
    for (int i = 0; i < 20000; i++)
        test_wire_add(&wire, "PING");
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 20000; i++) {
        CHECK_REPLY(TEST_ANSWER(&wire), "+PONG");
    }
    CHECK(info("turn_work_max") <=
          CONN_TURN_WORK + CONN_LONG_STEPS / CONN_STEPS_A_WORK);
    stop();
}

/* Large requests count by their bytes, for all clients together. */
TEST(large_requests_of_many_clients_are_spread_over_turns)
{
    enum { CLIENTS = 100, BYTES = 60000 };
    static struct test_wire large[CLIENTS];
    static char text[BYTES + 1];

    start(NULL);
    memset(text, 'x', BYTES);
    for (int i = 0; i < CLIENTS; i++)
        test_server_connect(&server, &large[i]);
    CHECK(test_server_signal(&server, SIGSTOP)); /* all come in one turn */
    for (int i = 0; i < CLIENTS; i++) {
        test_wire_add_raw(&large[i], "ECHO ", 5);
        test_wire_add_raw(&large[i], text, BYTES);
        test_wire_add_raw(&large[i], "\r\n", 2);
        CHECK_EQ(test_wire_send(&large[i]), HF_OK);
    }
    CHECK(test_server_signal(&server, SIGCONT));
    for (int i = 0; i < CLIENTS; i++) {
        CHECK(TEST_ANSWER(&large[i]).len > BYTES);
        test_wire_close(&large[i]);
    }
    CHECK(info("turn_all_max") > BYTES / CONN_BYTES_A_WORK);
    CHECK(info("turn_all_max") <=
          CONN_TURN_ALL + BYTES / CONN_BYTES_A_WORK + 1);
    stop();
}

/* By pages, to the end, everything is listed once. */
TEST(pages_that_end_early_still_list_everything)
{
    uint64_t cursor = 0;
    size_t found = 0;

    start(NULL);
    make_products();
    do {
        struct hf_bytes page =
            test_ask(&wire, "STOCK LIST aaaaaaaa-*7-a* CURSOR %llu",
                     (unsigned long long)cursor);
        found += test_length(test_part(page, "products"));
        cursor = (uint64_t)test_number(page, "cursor");
    } while (cursor != 0);
    CHECK_EQ(found, PRODUCTS / 10);
    stop();
}

/* A pipeline of LOCKs that each look at many names is spread over batches,
 * which others need not wait for, and over turns. The same of what gives them
 * back. */
TEST(locks_with_tree_cost_their_own_client_batches)
{
    enum { NAMES = 2000, LOCKS = 300 };
    int64_t tokens[LOCKS];
    int64_t commits = 0;

    start(NULL);
    for (int i = 0; i < NAMES; i++)
        test_wire_add(&wire, "LOCK p/%d OWNER ann SHARED TTL 900000", i);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < NAMES; i++)
        CHECK_DONE(TEST_ANSWER(&wire));
    for (int gives = 0; gives < 2; gives++) {
        commits = info("commits_total");
        for (int i = 0; i < LOCKS; i++) {
            if (gives)
                test_wire_add(&wire, "UNLOCK p %lld", (long long)tokens[i]);
            else
                test_wire_add(&wire, "LOCK p OWNER o%d SHARED TREE", i);
        }
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        for (int i = 0; i < LOCKS; i++) {
            struct hf_bytes reply = TEST_ANSWER(&wire);
            CHECK_DONE(reply);
            tokens[i] = gives ? 0 : test_number(reply, "token");
        }
        CHECK(info("commits_total") - commits >= LOCKS * NAMES / 60000);
    }
    stop();
}

/* Whoever holds a name goes, and each time all are looked at who wait for it
 * and for another one. */
TEST(ends_before_many_readers_are_spread_over_turns)
{
    enum { HOLDERS = 1000, READERS = 200 };
    static struct test_wire readers[READERS];

    start(NULL);
    CHECK_DONE(test_ask(&wire, "LOCK b OWNER ann TTL 900000"));
    for (int i = 0; i < READERS; i++) {
        test_server_connect(&server, &readers[i]);
        test_wire_add(&readers[i],
                      "LOCKSET OWNER r%d NAME a SHARED NAME b SHARED FOREVER",
                      i);
        CHECK_EQ(test_wire_send(&readers[i]), HF_OK);
    }
    while (info("lock_waiters") < READERS)
        continue;
    for (int i = 0; i < HOLDERS; i++)
        test_wire_add(&wire, "LOCK a OWNER h%d SHARED TTL 20", i);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < HOLDERS; i++)
        CHECK_DONE(TEST_ANSWER(&wire));
    while (info("locks") > 1)
        continue;
    CHECK(info("turn_applied_max") < 300000);
    for (int i = 0; i < READERS; i++)
        test_wire_close(&readers[i]);
    stop();
}

/* Twenty thousand reservations are over when one is asked for that needs their
 * units: it gets them, and no turn sweeps more than its part. */
TEST(units_are_free_when_they_are_over_however_many_at_once)
{
    enum { COUNT = 20000 };
    struct test_wire other;

    start(NULL);
    test_server_connect(&server, &other);
    CHECK_DONE(test_ask(&wire, "STOCK SET apple %d", COUNT));
    int64_t token =
        test_number(test_ask(&other, "LOCK a OWNER me TTL 600000"), "token");
    for (int i = 0; i < COUNT; i++)
        test_wire_add(&wire, "RESERVE * ITEM apple 1 TTL 1");
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < COUNT; i++) {
        CHECK_DONE(TEST_ANSWER(&wire));
    }
    struct hf_bytes apple;
    do
        apple = test_ask(&wire, "STOCK GET apple");
    while (test_number(apple, "reserved") != 0);
    CHECK_DONE(test_ask(&wire, "RESERVE all ITEM apple %d", COUNT));
    CHECK_DONE(test_ask(&other, "RENEW a %lld TTL 600000", (long long)token));
    CHECK(info("turn_sweeps_max") <= 16);
    test_wire_close(&other);
    stop();
}

TEST(refusals_make_room_and_nobody_fills_the_whole_table)
{
    static const char *const small[] = {"--requests-max", "100", NULL};
    struct test_wire other;
    struct hf_bytes reply;

    start(small);
    for (int i = 0; i < 1000; i++)
        CHECK_ERROR(test_ask(&wire, "CONFIRM nope REQ r%d", i), "NOTFOUND");
    for (int i = 0; i < 80; i++) /* what is on its way counts, too */
        test_wire_add(&wire, "STOCK SET s%d 1 REQ s%d", i, i);
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 80; i++) {
        reply = TEST_ANSWER(&wire);
        if (i < 50)
            CHECK_DONE(reply);
        else
            CHECK_ERROR(reply, "OVERLOADED");
    }
    reply = test_ask(&wire, "STOCK SET more 1 REQ more");
    CHECK_ERROR(reply, "OVERLOADED");
    CHECK(memmem(reply.data, reply.len, "share", 5) != NULL);
    CHECK_DONE(test_ask(&wire, "STOCK SET s7 1 REQ s7")); /* the first answer */
    CHECK_ERROR(test_ask(&wire, "STOCK GET more"), "NOTFOUND");
    CHECK_DONE(test_ask(&wire, "STOCK SET more 1"));
    CHECK_EQ(test_wire_open_from(&other, server.port, SECOND), HF_OK);
    for (int i = 0; i < 50; i++)
        CHECK_DONE(test_ask(&other, "STOCK SET t%d 1 REQ t%d", i, i));
    CHECK_ERROR(test_ask(&other, "STOCK SET more 2 REQ full"), "OVERLOADED");
    CHECK_EQ(info("requests_share_refused_total"), 31);
    CHECK(info("requests_dropped_total") >= 900 + 100);
    for (int i = 0; i < 60; i++) { /* a repetition counts once */
        test_wire_add(&wire, "STOCK SET more 1");
        test_wire_add(&wire, "STOCK SET s7 1 REQ s7");
    }
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 120; i++) {
        CHECK_DONE(TEST_ANSWER(&wire));
    }
    CHECK_DONE(test_ask(&wire, "CONFIG SET requests-share 100"));
    reply = test_ask(&other, "STOCK SET more 2 REQ full");
    CHECK_ERROR(reply, "OVERLOADED");
    CHECK(memmem(reply.data, reply.len, "requests-max", 12) != NULL);
    CHECK(info("requests_refused_total") >= 1);
    CHECK_DONE(test_ask(&wire, "FLUSHALL"));
    CHECK_DONE(test_ask(&wire, "CONFIG SET requests-share 1"));
    CHECK_DONE(test_ask(&wire, "STOCK SET new 1 REQ new"));
    test_wire_close(&other);
    stop();
}

/* A share that is spent refuses what is new, not what is known. */
TEST(a_wait_is_taken_over_although_the_share_is_spent)
{
    static const char *const small[] = {"--requests-max", "100",
                                        "--requests-share", "2", NULL};
    struct test_wire waiter;
    struct test_wire again;

    start(small);
    test_server_connect(&server, &waiter);
    test_server_connect(&server, &again);
    int64_t token =
        test_number(test_ask(&wire, "LOCK x OWNER a TTL 600000"), "token");
    TEST_SEND(&waiter, "LOCK x OWNER b WAIT 600000 REQ w");
    while (test_number(test_ask(&wire, "LOCKINFO x"), "waiting") == 0)
        ;
    CHECK_DONE(test_ask(&wire, "STOCK SET p 1 REQ p"));
    CHECK_ERROR(test_ask(&wire, "STOCK SET p 1 REQ q"), "OVERLOADED");
    TEST_SEND(&again, "LOCK x OWNER b WAIT 600000 REQ w");
    CHECK_DONE(test_ask(&wire, "UNLOCK x %lld", (long long)token));
    CHECK_DONE(TEST_ANSWER(&again));
    test_wire_close(&waiter);
    test_wire_close(&again);
    stop();
}

/* What the system says of our connection's other end: its timer is that of
 * keep-alive (2), once all is acknowledged. */
static bool is_kept_alive(uint16_t port, uint16_t peer)
{
    FILE *file = fopen("/proc/net/tcp", "re");
    char line[512];
    bool found = false;

    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned local = 0;
        unsigned remote = 0;
        unsigned timer = 0;
        if (sscanf(line, "%*d: %*x:%x %*x:%x %*x %*x:%*x %x:", &local, &remote,
                   &timer) == 3 &&
            local == port && remote == peer)
            found = found || timer == 2;
    }
    fclose(file);
    return found;
}

TEST(a_host_that_vanishes_would_be_noticed)
{
    struct sockaddr_in self;
    socklen_t len = sizeof self;
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;
    /* less than a second is a second */
    static const char *const soon[] = {"--keepalive-ms", "1", NULL};

    start(soon);
    CHECK_REPLY(test_ask(&wire, "PING"), "+PONG");
    CHECK_EQ(getsockname(wire.fd, (struct sockaddr *)&self, &len), 0);
    while (!is_kept_alive(server.port, ntohs(self.sin_port)))
        CHECK(test_now_ms() < end_ms);
    CHECK_DONE(test_ask(&wire, "CONFIG SET keepalive-ms 32767000"));
    CHECK_ERROR(test_ask(&wire, "CONFIG SET keepalive-ms 32767001"), "BADARG");
    stop();
}

/* Compared with a name of 490 bytes, each takes almost as long as one may. */
static void subscribe_to_slow_patterns(struct test_wire *wire_of, int count)
{
    for (int i = 0; i < count; i++)
        test_wire_add(wire_of, "PSUBSCRIBE *aaaaaaaaaaaaaaaaab%d", i);
    CHECK_EQ(test_wire_send(wire_of), HF_OK);
    for (int i = 0; i < count; i++)
        CHECK_DONE(TEST_ANSWER(wire_of));
}

/* In RESP3 it is a push: an error would answer what the client asked last. */
static bool tells_why(struct test_wire *cut, bool resp3)
{
    struct hf_bytes told = TEST_ANSWER(cut);
    const char *push = ">3\r\n$3\r\ncut\r\n$10\r\nOVERLOADED\r\n";

    if (!resp3)
        return test_is_error(told, "OVERLOADED");
    return told.len > strlen(push) &&
           memcmp(told.data, push, strlen(push)) == 0;
}

/* The patterns of all clients share a budget in each turn: beyond it those that
 * take long are cut, whether a client publishes or something happens. */
TEST(patterns_that_take_long_together_are_cut)
{
    struct test_wire hostile;
    struct test_wire kind;
    char name[491];

    start(NULL);
    test_server_connect(&server, &kind);
    CHECK_DONE(test_ask(&kind, "PSUBSCRIBE *aaa"));
    memset(name, 'a', 490);
    name[490] = '\0';
    for (int i = 0; i < 2; i++) {
        test_server_connect(&server, &hostile);
        if (i == 1)
            CHECK_DONE(test_ask(&hostile, "HELLO 3"));
        subscribe_to_slow_patterns(&hostile, 400);
        CHECK_DONE(i == 0 ? test_ask(&wire, "PUBLISH %s text", name)
                          : test_ask(&wire, "LOCK %s OWNER me", name));
        CHECK(tells_why(&hostile, i == 1));
        CHECK(test_wire_ends(&hostile));
        CHECK_DONE(TEST_ANSWER(&kind));
        test_wire_close(&hostile);
    }
    CHECK(info("turn_steps_max") > 2000000);
    CHECK(info("turn_steps_max") < 2200000);
    CHECK(info("turn_applied_max") > 2000000);
    CHECK(info("turn_applied_max") < 2200000);
    test_wire_close(&kind);
    stop();
}

TEST(a_pattern_that_takes_long_lists_no_channels)
{
    struct test_wire other;
    char name[1001];

    start(NULL);
    test_server_connect(&server, &other);
    memset(name, 'a', 1000);
    name[1000] = '\0';
    for (int i = 0; i < 100; i++) {
        name[0] = (char)('0' + i % 10);
        name[1] = (char)('0' + i / 10);
        CHECK_DONE(test_ask(&other, "SUBSCRIBE %s", name));
    }
    CHECK_EQ(test_length(test_ask(&wire, "PUBSUB CHANNELS")), 100);
    CHECK_EQ(test_length(test_ask(&wire, "PUBSUB CHANNELS 1*")), 10);
    CHECK_ERROR(test_ask(&wire, "PUBSUB CHANNELS *aaaaaaaab"), "OVERLOADED");
    test_wire_close(&other);
    stop();
}

/* Those who wait for events are looked at in several turns. */
TEST(events_that_are_slow_to_compare_are_spread_over_turns)
{
    enum { CLIENTS = 100 };
    struct test_wire hostile[CLIENTS];
    char name[491];
    char pattern[122];

    start(NULL);
    memset(name, 'a', 490);
    name[490] = '\0';
    memset(pattern, 'a', 121);
    pattern[0] = '*';
    pattern[120] = 'b';
    pattern[121] = '\0';
    for (int i = 0; i < CLIENTS; i++) {
        test_server_connect(&server, &hostile[i]);
        TEST_SEND(&hostile[i], "EVENTS FROM 0 WAIT 3600000 MATCH %s", pattern);
    }
    for (int i = 0; i < 100000 && info("blocked_clients") < CLIENTS; i++)
        ;
    CHECK_EQ(info("blocked_clients"), CLIENTS);
    CHECK_DONE(test_ask(&wire, "LOCK %s OWNER me", name));
    CHECK_DONE(test_ask(&wire, "LOCK %s OWNER me", pattern)); /* it matches */
    for (int i = 0; i < CLIENTS; i++) {
        CHECK(test_number(TEST_ANSWER(&hostile[i]), "next") >= 1);
        test_wire_close(&hostile[i]);
    }
    CHECK(info("turn_steps_max") < 2000000);
    stop();
}
