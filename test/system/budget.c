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

    if (server.pid > 0)
        test_server_kill(&server);
    test_wire_close(&wire);
    snprintf(dir, sizeof dir, "%s/%d", test_folder(), count++);
    test_server_start(&server, &(struct test_server_opts){.dir = dir,
                                                          .durability = "none",
                                                          .more = more});
    test_server_connect(&server, &wire);
}

static void stop(void)
{
    test_wire_close(&wire);
    CHECK_EQ(test_server_stop(&server), 0);
}

static uint64_t info_number(const char *field)
{
    struct hf_bytes info = test_ask(&wire, "INFO");
    const char *at = memmem(info.data, info.len, field, strlen(field));

    CHECK(at != NULL);
    return strtoull(at + strlen(field), NULL, 10);
}

static void make_products(void)
{
    struct hf_bytes reply;

    for (int i = 0; i < PRODUCTS; i++) {
        test_wire_add(&wire, "STOCK SET aaaaaaaa-%d-aaaaaaaaaaaaaaaa 1", i);
        if (i % 500 < 499 && i + 1 < PRODUCTS)
            continue;
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        for (int k = i - i % 500; k <= i; k++) {
            CHECK_EQ(test_wire_read(&wire, &reply), HF_OK);
            CHECK_DONE(reply);
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
            CHECK_EQ(test_wire_read(&hostile[i], &reply), HF_OK);
            CHECK_EQ(test_length(test_part(reply, "products")), 0);
        }
        test_wire_close(&hostile[i]);
    }
    CHECK(info_number("turn_steps_max:") < 50000 + CONN_LONG_STEPS + 1);
    CHECK(info_number("turn_work_max:") <=
          CONN_TURN_WORK + CONN_LONG_STEPS / CONN_STEPS_A_WORK);
    stop();
}

TEST(long_replies_share_the_budget_of_listings)
{
    enum { CLIENTS = 8, ASKED = 16 };
    struct test_wire hostile[CLIENTS];
    struct hf_bytes reply;

    start(NULL);
    for (int i = 0; i < CLIENTS; i++) {
        test_server_connect(&server, &hostile[i]);
        for (int k = 0; k < ASKED; k++)
            test_wire_add(&hostile[i], "METRICS");
        CHECK_EQ(test_wire_send(&hostile[i]), HF_OK);
    }
    for (int i = 0; i < CLIENTS; i++) {
        for (int k = 0; k < ASKED; k++) {
            CHECK_EQ(test_wire_read(&hostile[i], &reply), HF_OK);
            CHECK_DONE(reply);
        }
        test_wire_close(&hostile[i]);
    }
    CHECK(info_number("turn_steps_max:") <= CONN_LONG_STEPS);
    stop();
}

TEST(requests_of_one_client_are_spread_over_turns)
{
    struct hf_bytes reply;

    start(NULL);
    for (int i = 0; i < 20000; i++)
        test_wire_add(&wire, "PING");
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 20000; i++) {
        CHECK_EQ(test_wire_read(&wire, &reply), HF_OK);
        CHECK_REPLY(reply, "+PONG");
    }
    CHECK(info_number("turn_work_max:") <=
          CONN_TURN_WORK + CONN_LONG_STEPS / CONN_STEPS_A_WORK);
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

/* Twenty thousand reservations are over when one is asked for that needs their
 * units: it gets them, and no turn sweeps more than its part. */
TEST(units_are_free_when_they_are_over_however_many_at_once)
{
    enum { COUNT = 20000 };
    struct hf_bytes reply;
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
        CHECK_EQ(test_wire_read(&wire, &reply), HF_OK);
        CHECK_DONE(reply);
    }
    struct hf_bytes apple;
    do
        apple = test_ask(&wire, "STOCK GET apple");
    while (test_number(apple, "reserved") != 0);
    CHECK_DONE(test_ask(&wire, "RESERVE all ITEM apple %d", COUNT));
    CHECK_DONE(test_ask(&other, "RENEW a %lld TTL 600000", (long long)token));
    CHECK(info_number("turn_sweeps_max:") <= 17);
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
        CHECK_EQ(test_wire_read(&wire, &reply), HF_OK);
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
    CHECK_EQ(info_number("requests_share_refused:"), 31);
    CHECK(info_number("requests_dropped:") >= 900 + 100);
    for (int i = 0; i < 60; i++) { /* a repetition counts once */
        test_wire_add(&wire, "STOCK SET more 1");
        test_wire_add(&wire, "STOCK SET s7 1 REQ s7");
    }
    CHECK_EQ(test_wire_send(&wire), HF_OK);
    for (int i = 0; i < 120; i++) {
        CHECK_EQ(test_wire_read(&wire, &reply), HF_OK);
        CHECK_DONE(reply);
    }
    CHECK_DONE(test_ask(&wire, "CONFIG SET requests-share 100"));
    reply = test_ask(&other, "STOCK SET more 2 REQ full");
    CHECK_ERROR(reply, "OVERLOADED");
    CHECK(memmem(reply.data, reply.len, "requests_max", 12) != NULL);
    CHECK(info_number("requests_refused:") >= 1);
    CHECK_DONE(test_ask(&wire, "FLUSHALL"));
    CHECK_DONE(test_ask(&wire, "CONFIG SET requests-share 1"));
    CHECK_DONE(test_ask(&wire, "STOCK SET new 1 REQ new"));
    test_wire_close(&other);
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

    start(NULL);
    CHECK_REPLY(test_ask(&wire, "PING"), "+PONG");
    CHECK_EQ(getsockname(wire.fd, (struct sockaddr *)&self, &len), 0);
    while (!is_kept_alive(server.port, ntohs(self.sin_port)))
        CHECK(test_now_ms() < end_ms);
    stop();
}
