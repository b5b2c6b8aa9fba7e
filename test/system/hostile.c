/* hostile.c - clients that misbehave cost only themselves.
 * tests: also under sanitizers
 *
 * Each test has a server with something in it and a client that behaves; it is
 * asked all the time, and at the end the server must be as it was.
 */
#include <errno.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/random.h"
#include "support/scene.h"
#include "support/test.h"

#define IDLE_COUNT      10000
#define IDLE_GROWTH_KB  (512u * 1024) /* for all of them together */
#define DEAF_BYTES_MAX  (256u << 20)
#define VANISHING       1000
#define FEW_DESCRIPTORS 200
#define GOOD_WORK       200
#define GARBLED         1500
#define PIPELINE        10000
#define LORIS_COUNT     200

/* As many descriptors as the system lets us have, here and in the server. */
static size_t raise_descriptors(void)
{
    struct rlimit limit;

    CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max != RLIM_INFINITY && limit.rlim_max < IDLE_COUNT + 200) {
        struct rlimit more = {IDLE_COUNT + 200, IDLE_COUNT + 200};
        if (setrlimit(RLIMIT_NOFILE, &more) == 0)
            return IDLE_COUNT + 200;
    }
    limit.rlim_cur = limit.rlim_max;
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return (size_t)limit.rlim_cur;
}

/* Milliseconds for the good client's usual work. */
static uint64_t good_work_ms(struct test_scene *scene)
{
    uint64_t start = test_now_ms();

    for (int i = 0; i < GOOD_WORK; i++) {
        struct hf_bytes reply =
            test_ask(&scene->good, "LOCK work OWNER good TTL 60000");
        int64_t token = test_number(reply, "token");
        CHECK_DONE(reply);
        CHECK_DONE(test_ask(&scene->good, "UNLOCK work %" PRId64, token));
        CHECK_REPLY(test_ask(&scene->good, "PING"), "+PONG");
    }
    return test_now_ms() - start;
}

TEST(ten_thousand_idle_connections_leave_the_others_their_speed)
{
    static struct test_wire idle[IDLE_COUNT];
    size_t room = raise_descriptors();
    size_t count = room >= IDLE_COUNT + 100 ? IDLE_COUNT : room - 100;
    struct test_scene *scene = test_scene_open();

    scene->growth_kb = IDLE_GROWTH_KB;
    uint64_t alone_ms = good_work_ms(scene);
    for (size_t i = 0; i < count; i++)
        test_server_connect(&scene->server, &idle[i]);
    uint64_t crowded_ms = good_work_ms(scene);
    printf("idle connections: %zu; %d requests: %" PRIu64 " ms alone, %" PRIu64
           " ms beside them\n",
           count, 3 * GOOD_WORK, alone_ms, crowded_ms);
    CHECK(crowded_ms < 10 * alone_ms + 2000);
    for (size_t i = 0; i < count; i += 97) {
        TEST_SEND(&idle[i], "PING");
        CHECK_REPLY(TEST_ANSWER(&idle[i]), "+PONG");
    }
    test_scene_check(scene);
    for (size_t i = 0; i < count; i++)
        test_wire_close(&idle[i]);
    good_work_ms(scene);
    test_scene_close(scene);
}

TEST(more_connections_than_descriptors_do_not_harm_the_journal)
{
    struct test_server_opts opts = {.dir = test_folder(),
                                    .segment_bytes = 1 << 20,
                                    .descriptors = FEW_DESCRIPTORS};
    struct test_wire crowd[2 * FEW_DESCRIPTORS];
    struct test_server server;
    struct test_wire good;

    test_server_start(&server, &opts);
    test_server_connect(&server, &good);
    for (int i = 0; i < 2 * FEW_DESCRIPTORS; i++)
        (void)test_wire_open(&crowd[i], server.port);
    for (int i = 1; i <= 1200; i++) /* several files of the journal */
        CHECK_DONE(test_ask(&good, "STOCK SET f %d", i));
    for (int i = 0; i < 2 * FEW_DESCRIPTORS; i++)
        test_wire_close(&crowd[i]);
    test_wire_close(&good);
    /* there is room again as soon as it has noticed that the crowd is gone */
    bool welcome = false;
    for (int i = 0; i < 10000 && !welcome; i++) {
        test_server_connect(&server, &good);
        welcome = test_ask(&good, "PING").data[0] == '+';
        test_wire_close(&good);
    }
    CHECK(welcome);
    CHECK_EQ(test_server_stop(&server), 0);
}

/* Sends the same bytes as long as the server takes them. False: it closed. */
static bool flood(struct test_wire *wire, struct test_scene *scene,
                  const char *text, size_t *sent)
{
    size_t len = strlen(text);
    size_t at = 0;
    int stalls = 0;

    while (*sent < DEAF_BYTES_MAX && stalls < 3) {
        ssize_t got =
            send(wire->fd, text + at, len - at, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (got < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (got > 0) {
            *sent += (size_t)got;
            at = (at + (size_t)got) % len;
            stalls = 0;
            continue;
        }
        /* full for now; if it still is after all this, then for good */
        good_work_ms(scene);
        test_scene_check(scene);
        stalls++;
    }
    return true;
}

static void ignore_replies_to(const char *command)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire deaf;
    struct hf_buf text = {0};
    int small = 4096;
    size_t sent = 0;

    for (int i = 0; i < 1000; i++)
        CHECK_DONE(test_ask(&scene->good, "STOCK SET filler-%d 1", i));
    CHECK_DONE(test_ask(&scene->good, "COMMAND DOCS"));
    scene->memory_kb = test_server_memory_kb(&scene->server);
    test_server_connect(&scene->server, &deaf);
    CHECK_EQ(setsockopt(deaf.fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small),
             0);
    for (int i = 0; i < 1000; i++)
        CHECK_EQ(hf_buf_format(&text, "%s\r\n", command), HF_OK);
    CHECK_EQ(hf_buf_append(&text, "", 1), HF_OK);
    bool open = flood(&deaf, scene, text.data, &sent);
    printf("%s, never read: %s after %zu bytes\n", command,
           open ? "stalled" : "closed", sent);
    CHECK(sent < DEAF_BYTES_MAX);
    test_scene_check(scene);
    hf_buf_destroy(&text);
    for (int i = 0; i < 1000; i++)
        CHECK_DONE(test_ask(&scene->good, "STOCK DEL filler-%d", i));
    test_scene_close(scene); /* which one that never reads cannot hold up */
    test_wire_close(&deaf);
}

TEST(a_client_that_never_reads_long_replies_is_stopped)
{
    ignore_replies_to("STOCK LIST * COUNT 1000");
}

TEST(a_client_that_never_reads_short_replies_is_stopped)
{
    ignore_replies_to("PING");
}

TEST(a_byte_at_a_time_is_as_good_as_all_at_once)
{
    static const char text[] = "*2\r\n$4\r\nPING\r\n$5\r\nhello\r\n";
    struct test_scene *scene = test_scene_open();
    struct test_wire slow[LORIS_COUNT];

    for (int i = 0; i < LORIS_COUNT; i++)
        test_server_connect(&scene->server, &slow[i]);
    for (size_t at = 0; at < sizeof text - 1; at++) {
        for (int i = 0; i < LORIS_COUNT; i++) {
            test_wire_add_raw(&slow[i], text + at, 1);
            CHECK_EQ(test_wire_send(&slow[i]), HF_OK);
        }
        test_scene_check(scene);
    }
    for (int i = 0; i < LORIS_COUNT; i++) {
        CHECK_REPLY(TEST_ANSWER(&slow[i]), "$5\r\nhello");
        test_wire_close(&slow[i]);
    }
    test_scene_close(scene);
}

/* Closes with a reset instead of a goodbye. */
static void slam(struct test_wire *wire)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    CHECK_EQ(setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    test_wire_close(wire);
}

TEST(connections_that_vanish_leave_nothing_behind)
{
    static const char *const halves[] = {
        "",
        "*",
        "*2\r\n$4\r\nPI",
        "*4\r\n$4\r\nLOCK\r\n$1\r\na\r\n$5\r\nOWNER\r\n",
        "*3\r\n$5\r\nSTOCK\r\n$3\r\nSET\r\n$60000\r\nabc",
        "STOCK SET half ",
        "STOCK LIST *\r\nSTOCK LIST *\r\nLOCKINFO held\r\nSTOCK SET",
    };
    struct test_scene *scene = test_scene_open();

    for (int i = 0; i < VANISHING; i++) {
        const char *half = halves[(size_t)i % (sizeof halves / sizeof *halves)];
        struct test_wire wire;
        test_server_connect(&scene->server, &wire);
        test_wire_add_raw(&wire, half, strlen(half));
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        if (i % 2 == 0)
            slam(&wire);
        else
            test_wire_close(&wire);
        if (i % 50 == 0)
            test_scene_check(scene);
    }
    test_scene_close(scene);
}

TEST(one_that_vanishes_while_waiting_leaves_the_queue)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire waiters[4];
    struct hf_bytes reply;
    int64_t token = test_number(
        test_ask(&scene->good, "LOCK gate OWNER first TTL 3600000"), "token");

    for (int i = 0; i < 4; i++) {
        test_server_connect(&scene->server, &waiters[i]);
        TEST_SEND(&waiters[i], "LOCK gate OWNER w%d TTL 3600000 WAIT 3600000",
                  i);
        test_scene_await(scene, "gate", i + 1);
    }
    slam(&waiters[0]);
    test_wire_close(&waiters[2]);
    test_scene_await(scene, "gate", 2);
    CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64, token));
    reply = TEST_ANSWER(&waiters[1]);
    int64_t next = test_number(reply, "token");
    CHECK(next > token);
    CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64, next));
    reply = TEST_ANSWER(&waiters[3]);
    CHECK(test_number(reply, "token") > next);
    CHECK_DONE(test_ask(&scene->good, "UNLOCK gate %" PRId64,
                        test_number(reply, "token")));
    test_wire_close(&waiters[1]);
    test_wire_close(&waiters[3]);
    test_scene_close(scene);
}

TEST(ten_thousand_commands_in_one_write_are_answered_in_order)
{
    struct test_scene *scene = test_scene_open();
    struct hf_bytes reply;
    char expected[64];

    for (int i = 0; i < PIPELINE; i++) /* each raise gives the next token */
        test_wire_add(&scene->good, i % 2 == 0 ? "PING n%d" : "FENCE pipe %d",
                      i % 2 == 0 ? i : i / 2 + 1);
    CHECK_EQ(test_wire_send(&scene->good), HF_OK);
    for (int i = 0; i < PIPELINE; i++) {
        reply = TEST_ANSWER(&scene->good);
        int len = snprintf(expected, sizeof expected, "n%d", i);
        if (i % 2 == 0)
            snprintf(expected, sizeof expected, "$%d\r\nn%d\r\n", len, i);
        else
            snprintf(expected, sizeof expected, "+OK\r\n");
        if (!test_is(reply, expected))
            test_fail(__FILE__, __LINE__, "reply %d: expected %s, got %.*s", i,
                      expected, (int)reply.len, reply.data);
    }
    test_scene_close(scene);
}

TEST(one_that_has_finished_sending_still_gets_its_answers)
{
    struct test_scene *scene = test_scene_open();
    struct hf_bytes reply;

    for (int i = 1; i <= 300; i++) {
        struct test_wire wire;
        test_server_connect(&scene->server, &wire);
        test_wire_add(&wire, "PING");
        test_wire_add(&wire, "FENCE half %d", i);
        TEST_SEND(&wire, "LOCKINFO held");
        CHECK_EQ(shutdown(wire.fd, SHUT_WR), 0);
        CHECK_REPLY(TEST_ANSWER(&wire), "+PONG");
        CHECK_REPLY(TEST_ANSWER(&wire), "+OK");
        reply = TEST_ANSWER(&wire);
        CHECK_EQ(test_number(reply, "token"), scene->token);
        CHECK_EQ(test_wire_read(&wire, &reply), HF_CLOSED);
        test_wire_close(&wire);
    }
    test_scene_close(scene);
}

TEST(quit_is_answered_after_what_came_before_it)
{
    struct test_scene *scene = test_scene_open();
    struct test_wire wire;
    struct hf_bytes reply;

    test_server_connect(&scene->server, &wire);
    test_wire_add(&wire, "FENCE last 1");
    test_wire_add(&wire, "LOCKINFO held");
    test_wire_add(&wire, "QUIT");
    TEST_SEND(&wire, "STOCK SET never 1");
    CHECK_REPLY(TEST_ANSWER(&wire), "+OK");
    reply = TEST_ANSWER(&wire);
    CHECK_EQ(test_number(reply, "token"), scene->token);
    CHECK_REPLY(TEST_ANSWER(&wire), "+OK");
    CHECK_EQ(test_wire_read(&wire, &reply), HF_CLOSED);
    test_wire_close(&wire);
    test_scene_close(scene);
}

/* Bytes that are no request, or one that reads, with a few bytes changed. */
static size_t garble(struct hf_random *random, char *out, size_t max)
{
    static const char *const seeds[] = {
        "*2\r\n$8\r\nLOCKINFO\r\n$4\r\nheld\r\n",
        "*3\r\n$5\r\nSTOCK\r\n$4\r\nLIST\r\n$1\r\n*\r\n",
        "LOCKINFO \"he\\x6cd\"\r\nPING\r\nSTOCK LIST 'b*'\r\n",
        "*2\r\n$5\r\nHELLO\r\n$1\r\n3\r\n*1\r\n$7\r\nCOMMAND\r\n",
    };
    size_t len = 1 + hf_random_below(random, max);

    if (hf_random_below(random, 2) == 0) {
        for (size_t i = 0; i < len; i++)
            out[i] = (char)hf_random_next(random);
        return len;
    }
    const char *seed = seeds[hf_random_below(random, 4)];
    size_t part = strlen(seed);
    for (size_t i = 0; i < len; i++)
        out[i] = seed[i % part];
    for (size_t i = hf_random_below(random, 4); i > 0; i--)
        out[hf_random_below(random, len)] = (char)hf_random_next(random);
    return len;
}

TEST(random_bytes_harm_nobody)
{
    struct test_scene *scene = test_scene_open();
    struct hf_random random;
    char bytes[4096];

    hf_random_init(&random, test_seed());
    for (int i = 0; i < GARBLED; i++) {
        struct test_wire wire;
        test_server_connect(&scene->server, &wire);
        uint64_t writes = 1 + hf_random_below(&random, 3);
        enum hf_status status = HF_OK;
        while (writes-- > 0 && status == HF_OK) {
            size_t len = garble(&random, bytes, sizeof bytes);
            test_wire_add_raw(&wire, bytes, len);
            status = test_wire_send(&wire);
        }
        CHECK(status == HF_OK || status == HF_CLOSED);
        if (i % 3 == 0) /* hear it out: it must come to an end by itself */
            (void)shutdown(wire.fd, SHUT_WR);
        if (i % 3 == 0 && status == HF_OK)
            CHECK(test_wire_ends(&wire));
        test_wire_close(&wire);
        if (i % 10 == 0)
            test_scene_check(scene);
    }
    test_scene_close(scene);
}
