/* gate.h - a server whose disk hangs and goes on when the test says.
 *
 * Its disk is a gate (the fault write:0:gate): from test_server_shut()
 * on every write hangs, until SIGUSR1. A request is "flying" when its write is
 * the one that hangs, and "gathered" when it came behind it.
 */
#ifndef TEST_SUPPORT_GATE_H
#define TEST_SUPPORT_GATE_H

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

#include "support/server.h"
#include "support/test.h"

#define FOR_EVER_MS 3600000
#define GLANCE_MS   50

static struct test_server server;
static struct test_wire first; /* three clients */
static struct test_wire second;
static struct test_wire watcher;
static char dir[512];

static inline void connect_all(void)
{
    test_server_connect(&server, &first);
    test_server_connect(&server, &second);
    test_server_connect(&server, &watcher);
}

static inline void close_all(void)
{
    test_wire_close(&first);
    test_wire_close(&second);
    test_wire_close(&watcher);
}

static inline void start(void)
{
    test_server_start(&server, &(struct test_server_opts){
                                   .dir = dir, .fault = "write:0:gate"});
    connect_all();
}

/* On an empty folder; a server that a failed test left goes. */
static inline void start_new(void)
{
    static int count;

    if (server.pid > 0)
        test_server_kill(&server);
    close_all();
    snprintf(dir, sizeof dir, "%s/%d", test_folder(), count++);
    start();
}

static inline void stop(void)
{
    close_all();
    CHECK_EQ(test_server_stop(&server), 0);
}

static inline void send_on(struct test_wire *wire)
{
    CHECK_EQ(test_wire_send(wire), HF_OK);
}

static inline bool is_silent(struct test_wire *wire)
{
    struct hf_bytes reply;

    return test_wire_read_within(wire, GLANCE_MS, &reply) == HF_TIMEOUT;
}

/* A write is on its way, and takes long. */
static inline void await_hang(void)
{
    while (test_info(&watcher, "journal_waiting_ms") <= 0)
        ;
}

/* The disk hangs, with a write of `probe` on its way, whose answer is owed. */
static inline void shut_with(struct test_wire *probe)
{
    test_server_shut(&server);
    TEST_SEND(probe, "STOCK SET probe 1");
    await_hang();
}

static inline void open_with(struct test_wire *probe)
{
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(TEST_ANSWER(probe));
}

static inline int64_t commands(void)
{
    return test_info(&watcher, "total_commands_processed");
}

/* The server has read and gathered `count` more requests than before. */
static inline void await_commands(int64_t before, int64_t count)
{
    int64_t asked = 1;

    while (commands() < before + asked + count)
        asked++;
}

/* Time on the server's clock, as ours, cannot be made to pass. */
static inline void await_ms(uint64_t until_ms)
{
    while (test_now_ms() < until_ms)
        CHECK_REPLY(test_ask(&watcher, "PING"), "+PONG");
}

#endif
