/* reuse.c - what clients used is there for the next ones: descriptors, buffers.
 * tests: also under sanitizers
 */
#include <dirent.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "support/server.h"
#include "support/test.h"

#define CONNECTS   1000
#define CROWD      600
#define LARGE      60000 /* bytes of one argument */
#define GROWTH_KB  (24u * 1024)
#define GREEDY     40
#define LISTS      60
#define ROUNDS     6
#define ROUND_SETS 3000

static struct test_server server;
static struct test_wire good;

static void begin(struct test_server_opts opts)
{
    test_server_begin(&server, &good, &opts);
}

static void end(void)
{
    test_server_finish(&server, &good);
}

static int64_t info(const char *name)
{
    return test_info(&good, name);
}

static void await(const char *name, int64_t value)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    while (info(name) != value)
        CHECK(test_now_ms() < end_ms);
}

/* Open files of the server. */
static int descriptors(void)
{
    char path[64];
    int count = 0;

    snprintf(path, sizeof path, "/proc/%d/fd", (int)server.pid);
    DIR *dir = opendir(path);
    CHECK(dir != NULL);
    while (readdir(dir) != NULL)
        count++;
    closedir(dir);
    return count;
}

/* Until the server has so many; others of its threads may have some for a
 * moment. */
static void await_descriptors(int most)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;
    int found;

    while ((found = descriptors()) > most) {
        if (test_now_ms() > end_ms)
            test_fail(__FILE__, __LINE__, "%d descriptors, not %d", found,
                      most);
        CHECK_REPLY(test_ask(&good, "PING"), "+PONG");
    }
}

static void close_by_reset(struct test_wire *wire)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    CHECK_EQ(setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    test_wire_close(wire);
}

/* Every way in which a connection ends. */
static void come_and_go(int way)
{
    struct test_wire wire;

    test_server_connect(&server, &wire);
    switch (way) {
    case 0: /* says nothing */
        break;
    case 1:
        CHECK_REPLY(test_ask(&wire, "PING"), "+PONG");
        break;
    case 2:
        CHECK_REPLY(test_ask(&wire, "QUIT"), "+OK");
        CHECK(test_wire_ends(&wire));
        break;
    case 3:
        test_wire_add_raw(&wire, "*x\r\n", 4);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        CHECK(test_wire_ends(&wire));
        break;
    case 4: /* half a request, an answer unread, and a reset */
        test_wire_add(&wire, "STOCK SET bolt 1");
        test_wire_add_raw(&wire, "*2\r\n$4\r\nEC", 10);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        close_by_reset(&wire);
        return;
    case 5: /* goes while it waits for a lock */
        TEST_SEND(&wire, "LOCK gate OWNER you WAIT 3600000");
        break;
    case 6: /* and for a limit */
        TEST_SEND(&wire, "LIMIT k RATE 1 PER 3600000 WAIT 3600000");
        break;
    default:
        CHECK_EQ(shutdown(wire.fd, SHUT_WR), 0);
        CHECK(test_wire_ends(&wire));
        break;
    }
    test_wire_close(&wire);
}

#define WAYS 8

TEST(a_thousand_connections_leave_no_descriptor_behind)
{
    begin((struct test_server_opts){.dir = NULL});
    CHECK_DONE(test_ask(&good, "LOCK gate OWNER me TTL 3600000"));
    CHECK_DONE(test_ask(&good, "LIMIT k RATE 1 PER 3600000"));
    for (int i = 0; i < 4 * WAYS; i++) /* what is made once is made */
        come_and_go(i % WAYS);
    await("connected_clients", 1);
    CHECK_DONE(test_ask(&good, "STOCK SET fed 1"));
    while (info("feed_bytes") == 0) /* its file is open from then on */
        CHECK_REPLY(test_ask(&good, "PING"), "+PONG");
    int before = descriptors();
    int64_t came = info("total_connections_received");
    for (int i = 0; i < CONNECTS; i++)
        come_and_go(i % WAYS);
    await("connected_clients", 1);
    CHECK_EQ(info("total_connections_received"), came + CONNECTS);
    await("lock_waiters", 0);
    await("limit_waiters", 0);
    await_descriptors(before);
    end();
}

TEST(connections_that_are_turned_away_leave_no_descriptor_behind)
{
    struct test_wire wire;

    begin((struct test_server_opts){.dir = NULL});
    CHECK_REPLY(test_ask(&good, "CONFIG SET maxclients 1"), "+OK");
    int before = descriptors();
    for (int i = 0; i < CONNECTS; i++) {
        test_server_connect(&server, &wire);
        CHECK_ERROR(TEST_ANSWER(&wire), "OVERLOADED");
        test_wire_close(&wire);
    }
    await("connected_clients", 1);
    CHECK_EQ(info("rejected_connections"), CONNECTS);
    await_descriptors(before);
    end();
}

/* Files of the journal are closed when they are full, and those of snapshots
 * when they are made. */
TEST(a_journal_of_many_files_has_few_of_them_open)
{
    int most = 0;

    begin((struct test_server_opts){.segment_bytes = 1 << 20,
                                    .snapshot_bytes = 1 << 20,
                                    .durability = "none"});
    for (int round = 0; round < ROUNDS; round++) {
        int64_t made = info("snapshots_total");
        uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;
        do { /* a snapshot is called for by what was written before */
            for (int i = 0; i < ROUND_SETS; i++)
                test_wire_add(&good, "STOCK SET bolt %d", i);
            CHECK_EQ(test_wire_send(&good), HF_OK);
            for (int i = 0; i < ROUND_SETS; i++) {
                CHECK_DONE(TEST_ANSWER(&good));
            }
            CHECK(test_now_ms() < end_ms);
        } while (info("snapshots_total") == made);
        await("snapshot_running", 0);
        if (round == 1)
            most = descriptors();
    }
    await_descriptors(most);
    end();
}

/* One after the other has a long request and a long answer. If each kept its
 * buffers, they would have more than three times what they may. */
TEST(idle_connections_keep_no_large_buffers)
{
    static struct test_wire crowd[CROWD];
    static char large[LARGE];
    struct hf_bytes args[] = {hf_bytes_text("ECHO"), hf_bytes(large, LARGE)};
    struct hf_bytes reply;

    if (test_is_sanitized())
        return; /* which keeps what was freed for a while */
    begin((struct test_server_opts){.dir = NULL});
    memset(large, 'x', sizeof large);
    for (int i = 0; i < CROWD; i++)
        test_server_connect(&server, &crowd[i]);
    for (int i = 0; i < 20; i++) /* what is made once is made */
        CHECK_EQ(test_ask(&good, "COMMAND DOCS").data[0], '*');
    uint64_t before_kb = test_server_memory_kb(&server);
    for (int i = 0; i < CROWD; i++) {
        struct test_wire *wire = &crowd[i];
        test_wire_add_args(wire, 2, args);
        size_t len = wire->out.len;
        wire->out.len = len / 2; /* the server has to keep it meanwhile */
        CHECK_EQ(test_wire_send(wire), HF_OK);
        CHECK_REPLY(test_ask(&good, "PING"), "+PONG");
        test_wire_add_args(wire, 2, args);
        memmove(wire->out.data, wire->out.data + len / 2, len - len / 2);
        wire->out.len = len - len / 2;
        CHECK_EQ(test_wire_send(wire), HF_OK);
        reply = TEST_ANSWER(wire);
        CHECK(reply.len > LARGE);
        hf_buf_destroy(&wire->in);
        hf_buf_destroy(&wire->out);
        wire->at = 0;
    }
    uint64_t after_kb = test_server_memory_kb(&server);
    printf("%d idle connections: from %" PRIu64 " to %" PRIu64 " KiB\n", CROWD,
           before_kb, after_kb);
    CHECK(after_kb < before_kb + GROWTH_KB);
    for (int i = 0; i < CROWD; i++)
        test_wire_close(&crowd[i]);
    await("connected_clients", 1);
    end();
}

/* The same for answers that do not fit into what the system keeps. */
TEST(idle_connections_keep_nothing_of_what_they_read_late)
{
    static struct test_wire crowd[GREEDY];

    if (test_is_sanitized())
        return; /* which keeps what was freed for a while */
    begin((struct test_server_opts){.durability = "none"});
    for (int i = 0; i < 1000; i++)
        CHECK_DONE(test_ask(&good, "STOCK SET a-long-name-of-one-%d 1", i));
    for (int i = 0; i < 20; i++)
        CHECK_DONE(test_ask(&good, "STOCK LIST * COUNT 1000"));
    uint64_t before_kb = test_server_memory_kb(&server);
    for (int i = 0; i < GREEDY; i++) {
        struct test_wire *wire = &crowd[i];
        test_server_connect(&server, wire);
        for (int j = 0; j < LISTS; j++)
            test_wire_add(wire, "STOCK LIST * COUNT 1000");
        CHECK_EQ(test_wire_send(wire), HF_OK);
        for (int j = 0; j < 3; j++)
            CHECK_REPLY(test_ask(&good, "PING"), "+PONG");
        for (int j = 0; j < LISTS; j++) {
            CHECK_DONE(TEST_ANSWER(wire));
        }
        hf_buf_destroy(&wire->in);
        hf_buf_destroy(&wire->out);
        wire->at = 0;
    }
    uint64_t after_kb = test_server_memory_kb(&server);
    printf("%d late readers: from %" PRIu64 " to %" PRIu64 " KiB\n", GREEDY,
           before_kb, after_kb);
    CHECK(after_kb < before_kb + GROWTH_KB);
    for (int i = 0; i < GREEDY; i++)
        test_wire_close(&crowd[i]);
    end();
}

TEST(connections_that_go_amid_a_request_leave_no_memory_behind)
{
    static char large[LARGE];
    struct hf_bytes args[] = {hf_bytes_text("ECHO"), hf_bytes(large, LARGE)};
    struct test_wire wire;

    begin((struct test_server_opts){.dir = NULL});
    memset(large, 'x', sizeof large);
    uint64_t before_kb = test_server_memory_kb(&server);
    for (int i = 0; i < CONNECTS; i++) {
        test_server_connect(&server, &wire);
        test_wire_add_args(&wire, 2, args);
        wire.out.len -= 100;
        CHECK_EQ(test_wire_send(&wire), HF_OK);
        CHECK_REPLY(test_ask(&good, "PING"), "+PONG");
        test_wire_close(&wire);
    }
    await("connected_clients", 1);
    uint64_t after_kb = test_server_memory_kb(&server);
    CHECK(test_is_sanitized() || after_kb < before_kb + GROWTH_KB);
    end();
}
