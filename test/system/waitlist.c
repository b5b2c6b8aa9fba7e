/* waitlist.c - RESERVE ... WAIT over real connections.
 * tests: also under sanitizers
 */
#include <inttypes.h>
#include <signal.h>

#include "support/server.h"
#include "support/test.h"

#define QUEUE       20
#define CROWD       1000
#define FOR_EVER_MS 3600000

static struct test_server server;
static struct test_wire shop;

static void begin(const char *fault)
{
    test_server_begin(
        &server, &shop,
        &(struct test_server_opts){.dir = test_folder(), .fault = fault});
}

/* `count` units of s, all of which are reserved as a. */
static void sell_out(int count, int ttl_ms)
{
    CHECK_DONE(test_ask(&shop, "STOCK SET s %d", count));
    CHECK_DONE(test_ask(&shop, "RESERVE a ITEM s %d TTL %d", count, ttl_ms));
}

/* Asks until so many wait. */
static void await(int count)
{
    uint64_t until = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    while (test_number(test_ask(&shop, "STOCK GET s"), "waiting") != count)
        CHECK(test_now_ms() < until);
}

static void wait_as(struct test_wire *wire, const char *id)
{
    test_server_connect(&server, wire);
    TEST_SEND(wire, "RESERVE %s ITEM s 1 TTL %d WAIT %d", id, FOR_EVER_MS,
              FOR_EVER_MS);
}

static bool is_pending(struct hf_bytes reply)
{
    return hf_bytes_is(test_text(reply, "status"), "PENDING");
}

TEST(who_waits_is_served_in_order)
{
    struct test_wire waiters[QUEUE];
    char id[16];

    begin(NULL);
    sell_out(QUEUE, FOR_EVER_MS);
    for (int i = 0; i < QUEUE; i++) {
        snprintf(id, sizeof id, "w%d", i);
        wait_as(&waiters[i], id);
        await(i + 1);
    }
    for (int i = 0; i < QUEUE; i++) {
        CHECK_DONE(test_ask(&shop, "STOCK ADD s 1"));
        struct hf_bytes reply = TEST_ANSWER(&waiters[i]);
        CHECK(is_pending(reply));
        CHECK_EQ(test_number(test_ask(&shop, "STOCK GET s"), "waiting"),
                 QUEUE - 1 - i);
        test_wire_close(&waiters[i]);
    }
    test_server_finish(&server, &shop);
}

TEST(others_are_short_while_somebody_waits)
{
    struct test_wire waiter;

    begin(NULL);
    CHECK_DONE(test_ask(&shop, "STOCK SET s 2"));
    test_server_connect(&server, &waiter);
    TEST_SEND(&waiter, "RESERVE w ITEM s 3 WAIT %d", FOR_EVER_MS);
    await(1);
    CHECK_REPLY(test_ask(&shop, "RESERVE b ITEM s 1"),
                "-SHORT sku 's': requested 1, available 2, 1 waiting");
    CHECK_REPLY(test_ask(&shop, "STOCK DEL s"),
                "-STATE sku 's' has 0 reserved, and 1 wait for it");
    CHECK_REPLY(test_ask(&shop, "CONFIRM w"),
                "-STATE reservation 'w' is WAITING");
    CHECK_EQ(test_info(&shop, "stock_waiters"), 1);
    test_wire_close(&waiter); /* who goes leaves the queue */
    await(0);
    CHECK_DONE(test_ask(&shop, "RESERVE b ITEM s 1"));
    CHECK_ERROR(test_ask(&shop, "RESERVATION w"), "NOTFOUND");
    test_server_finish(&server, &shop);
}

TEST(a_wait_ends_with_timeout_when_its_time_is_over_and_not_before)
{
    begin(NULL);
    sell_out(1, FOR_EVER_MS);
    uint64_t start = test_now_ms();
    CHECK_ERROR(test_ask(&shop, "RESERVE b ITEM s 1 WAIT 200"), "TIMEOUT");
    CHECK(test_now_ms() - start >= 199);
    CHECK(test_now_ms() - start < TEST_WIRE_DEADLINE_MS / 2);
    test_server_finish(&server, &shop);
}

TEST(what_expires_goes_to_who_waits)
{
    begin(NULL);
    sell_out(1, 150);
    CHECK(is_pending(
        test_ask(&shop, "RESERVE b ITEM s 1 TTL 60000 WAIT %d", FOR_EVER_MS)));
    CHECK_ERROR(test_ask(&shop, "CONFIRM a"), "EXPIRED");
    CHECK_DONE(test_ask(&shop, "CONFIRM b"));
    test_server_finish(&server, &shop);
}

TEST(a_wait_can_be_taken_over_by_its_req)
{
    struct test_wire lost;
    struct test_wire again;

    begin(NULL);
    sell_out(1, FOR_EVER_MS);
    test_server_connect(&server, &lost);
    test_server_connect(&server, &again);
    TEST_SEND(&lost, "RESERVE * ITEM s 1 WAIT %d REQ q", FOR_EVER_MS);
    await(1);
    TEST_SEND(&again, "RESERVE * ITEM s 1 WAIT %d REQ q", FOR_EVER_MS);
    CHECK_ERROR(TEST_ANSWER(&lost), "CONFLICT");
    CHECK_DONE(test_ask(&shop, "CANCEL a"));
    CHECK(is_pending(TEST_ANSWER(&again)));
    test_wire_close(&lost);
    test_wire_close(&again);
    test_server_finish(&server, &shop);
}

TEST(a_timeout_that_was_told_while_the_disk_hangs_stands)
{
    struct test_wire waiter;

    begin("write:0:gate");
    sell_out(1, FOR_EVER_MS);
    test_server_connect(&server, &waiter);
    TEST_SEND(&waiter, "RESERVE w ITEM s 1 WAIT 3000 REQ q");
    await(1);
    test_server_shut(&server);
    test_wire_add(&shop, "CANCEL a"); /* goes to w when it is written */
    test_wire_add(&shop, "STOCK GET s");
    TEST_SEND(&shop, "PING");
    CHECK_ERROR(TEST_ANSWER(&waiter), "TIMEOUT");
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(TEST_ANSWER(&shop));
    CHECK_EQ(test_number(TEST_ANSWER(&shop), "available"), 1);
    CHECK_REPLY(TEST_ANSWER(&shop), "+PONG");
    CHECK_ERROR(test_ask(&waiter, "RESERVE w ITEM s 1 WAIT 3000 REQ q"),
                "TIMEOUT");
    test_wire_close(&waiter);
    test_server_finish(&server, &shop);
}

TEST(a_restart_ends_the_waits_of_connections)
{
    struct test_wire waiter;

    begin(NULL);
    sell_out(1, FOR_EVER_MS);
    wait_as(&waiter, "w");
    await(1);
    test_server_kill(&server);
    test_wire_close(&shop);
    test_wire_close(&waiter);
    begin(NULL);
    await(0);
    CHECK_ERROR(test_ask(&shop, "RESERVATION w"), "NOTFOUND");
    test_server_finish(&server, &shop);
}

TEST(who_is_not_connected_survives_a_kill_and_is_offered_what_is_freed)
{
    char id[16];

    begin(NULL);
    sell_out(3, FOR_EVER_MS);
    for (int i = 0; i < QUEUE; i++) {
        struct hf_bytes reply = test_ask(
            &shop, "WAITLIST JOIN s 1 OWNER o%d ID w%d TTL 60000", i, i);
        CHECK_EQ(test_number(reply, "position"), i + 1);
    }
    test_server_kill(&server);
    test_wire_close(&shop);
    begin(NULL);
    await(QUEUE);
    CHECK_DONE(test_ask(&shop, "WAITLIST LEAVE s w1"));
    CHECK_DONE(test_ask(&shop, "CANCEL a ITEM s 2"));
    for (int i = 0; i < 4; i++) {
        snprintf(id, sizeof id, "w%d", i);
        struct hf_bytes reply = test_ask(&shop, "RESERVATION %s", id);
        if (i == 1)
            CHECK_ERROR(reply, "NOTFOUND");
        else
            CHECK(hf_bytes_is(test_text(reply, "status"),
                              i == 3 ? "WAITING" : "PENDING"));
    }
    CHECK_DONE(test_ask(&shop, "CONFIRM w0"));
    CHECK_EQ(test_number(test_ask(&shop, "STOCK GET s"), "waiting"), QUEUE - 3);
    struct hf_bytes events =
        test_ask(&shop, "EVENTS FROM 0 COUNT 1000 MATCH hf:reservation:w0");
    CHECK(memmem(events.data, events.len, "offered", 7) != NULL);
    test_server_finish(&server, &shop);
}

TEST(a_thousand_wait_and_all_are_served_in_one_step)
{
    static struct test_wire crowd[CROWD];
    char id[16];

    begin(NULL);
    CHECK_DONE(test_ask(&shop, "STOCK SET s 0"));
    for (int i = 0; i < CROWD; i++) {
        snprintf(id, sizeof id, "w%d", i);
        wait_as(&crowd[i], id);
    }
    await(CROWD);
    CHECK_DONE(test_ask(&shop, "STOCK ADD s %d", CROWD));
    for (int i = 0; i < CROWD; i++) {
        struct hf_bytes reply = TEST_ANSWER(&crowd[i]);
        CHECK(is_pending(reply));
        test_wire_close(&crowd[i]);
    }
    CHECK_EQ(test_number(test_ask(&shop, "STOCK GET s"), "reserved"), CROWD);
    test_server_finish(&server, &shop);
}
