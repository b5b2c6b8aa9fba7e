/* waiting.c - LOCK ... WAIT over real connections.
 * tests: also under sanitizers
 */
#include <inttypes.h>

#include "support/scene.h"
#include "support/test.h"

#define QUEUE       20
#define FOR_EVER_MS 3600000

static int64_t take(struct test_wire *wire, const char *owner)
{
    int64_t token = test_number(
        test_ask(wire, "LOCK gate OWNER %s TTL %d", owner, FOR_EVER_MS),
        "token");

    CHECK(token > 0);
    return token;
}

static struct hf_bytes next_reply(struct test_wire *wire)
{
    struct hf_bytes reply;

    reply = TEST_ANSWER(wire);
    return reply;
}

TEST(waiters_are_served_in_the_order_in_which_they_came)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire waiters[QUEUE];
    int64_t token = take(&scene->good, "first");

    for (int i = 0; i < QUEUE; i++) {
        test_server_connect(&scene->server, &waiters[i]);
        TEST_SEND(&waiters[i], "LOCK gate OWNER w%d TTL %d WAIT %d", i,
                  FOR_EVER_MS, FOR_EVER_MS);
        test_scene_await(scene, "gate", i + 1);
    }
    for (int i = 0; i < QUEUE; i++) {
        CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64, token));
        struct hf_bytes reply = next_reply(&waiters[i]);
        CHECK(test_number(reply, "token") > token);
        CHECK_EQ(test_number(reply, "count"), 1);
        token = test_number(reply, "token");
    }
    CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64, token));
    for (int i = 0; i < QUEUE; i++)
        test_wire_close(&waiters[i]);
    test_scene_close(scene);
}

TEST(a_wait_ends_with_timeout_when_its_time_is_over_and_not_before)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire waiter;
    int64_t token = take(&scene->good, "first");
    uint64_t start = test_now_ms();

    test_server_connect(&scene->server, &waiter);
    struct hf_bytes reply = test_ask(&waiter, "LOCK gate OWNER other WAIT 200");
    CHECK_ERROR(reply, "TIMEOUT");
    CHECK(test_now_ms() - start >= 199);
    CHECK(test_now_ms() - start < TEST_WIRE_DEADLINE_MS / 2);
    test_scene_await(scene, "gate", 0);
    CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64, token));
    test_wire_close(&waiter);
    test_scene_close(scene);
}

TEST(a_hold_that_runs_out_goes_to_the_waiter)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire waiter;
    int64_t first = test_number(
        test_ask(&scene->good, "LOCK gate OWNER brief TTL 150"), "token");

    test_server_connect(&scene->server, &waiter);
    struct hf_bytes reply =
        test_ask(&waiter, "LOCK gate OWNER other TTL %d WAIT %d", FOR_EVER_MS,
                 FOR_EVER_MS);
    CHECK(test_number(reply, "token") > first);
    int64_t second = test_number(reply, "token");
    CHECK_ERROR(test_ask(&scene->good, "UNLOCK gate %" PRId64, first),
                "NOTHELD");
    CHECK_ERROR(
        test_ask(&scene->good, "RENEW gate %" PRId64 " TTL 1000", first),
        "LOST");
    CHECK_DONE(test_ask(&waiter, "UNLOCK gate %" PRId64, second));
    test_wire_close(&waiter);
    test_scene_close(scene);
}

TEST(commands_behind_a_waiting_one_are_answered_after_it_in_order)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire waiter;
    struct hf_bytes reply;
    int64_t token = take(&scene->good, "first");

    test_server_connect(&scene->server, &waiter);
    test_wire_add(&waiter, "PING before");
    test_wire_add(&waiter, "LOCK gate OWNER other TTL %d WAIT %d", FOR_EVER_MS,
                  FOR_EVER_MS);
    test_wire_add(&waiter, "PING behind");
    TEST_SEND(&waiter, "LOCKINFO gate");
    CHECK_REPLY(next_reply(&waiter), "$6\r\nbefore");
    test_scene_await(scene, "gate", 1);
    /* a round trip of another connection: time enough to overtake */
    CHECK_REPLY(test_ask(&scene->good, "PING"), "+PONG");
    CHECK_EQ(test_wire_read_within(&waiter, 1, &reply), HF_TIMEOUT);
    CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64, token));
    int64_t next = test_number(next_reply(&waiter), "token");
    CHECK(next > token);
    CHECK_REPLY(next_reply(&waiter), "$6\r\nbehind");
    CHECK_EQ(test_number(next_reply(&waiter), "token"), next);
    CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64, next));
    test_wire_close(&waiter);
    test_scene_close(scene);
}

TEST(a_waiting_request_can_be_taken_over_by_another_connection)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire lost;
    struct test_wire again;
    struct hf_bytes reply;
    int64_t token = take(&scene->good, "first");

    test_server_connect(&scene->server, &lost);
    test_server_connect(&scene->server, &again);
    TEST_SEND(&lost, "LOCK gate OWNER other TTL %d WAIT %d REQ one",
              FOR_EVER_MS, FOR_EVER_MS);
    test_scene_await(scene, "gate", 1);
    TEST_SEND(&again, "LOCK gate OWNER other TTL %d WAIT %d REQ one",
              FOR_EVER_MS, FOR_EVER_MS);
    CHECK(next_reply(&lost).data[0] == '-'); /* told that it was moved */
    test_scene_await(scene, "gate", 1);
    CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64, token));
    reply = next_reply(&again);
    int64_t next = test_number(reply, "token");
    CHECK(next > token);
    CHECK_EQ(test_number(reply, "count"), 1);
    /* asked once more, it is told the same */
    reply = test_ask(&lost, "LOCK gate OWNER other TTL %d WAIT %d REQ one",
                     FOR_EVER_MS, FOR_EVER_MS);
    CHECK_EQ(test_number(reply, "token"), next);
    CHECK_EQ(test_number(test_ask(&scene->good, "LOCKINFO gate"), "count"), 1);
    CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64, next));
    test_wire_close(&lost);
    test_wire_close(&again);
    test_scene_close(scene);
}

TEST(a_waiter_holds_up_nobody_else)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire waiters[QUEUE];
    int64_t token = take(&scene->good, "first");

    for (int i = 0; i < QUEUE; i++) {
        test_server_connect(&scene->server, &waiters[i]);
        TEST_SEND(&waiters[i], "LOCK gate OWNER w%d WAIT %d", i, FOR_EVER_MS);
    }
    test_scene_await(scene, "gate", QUEUE);
    for (int i = 0; i < 200; i++) {
        CHECK_DONE(test_ask(&scene->good, "FENCE other %d", i + 1));
        CHECK_ERROR(test_ask(&scene->good, "LOCK gate OWNER late"), "BUSY");
    }
    for (int i = 0; i < QUEUE; i++)
        test_wire_close(&waiters[i]);
    test_scene_await(scene, "gate", 0);
    CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64, token));
    test_scene_close(scene);
}
