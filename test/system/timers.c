/* timers.c - whom the server closes after a time, and above all whom it spares.
 * tests: also under sanitizers
 *
 * The server is a fork of this program, whose clock_gettime() below is the
 * only clock that its loop has: its time stands still until a test lets some
 * pass. So an hour takes no time, and a slow machine changes nothing. Other
 * threads of it (log, disk) have the true time, by which the system wakes them.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "journal/disk.h"
#include "journal/journal.h"
#include "main/serve.h"
#include "server/conn.h"
#include "support/fault.h"
#include "support/server.h"
#include "support/test.h"

#define STEP_MS     100 /* no timer of the server is more frequent */
#define IDLE_MS     10000
#define MINUTE_MS   60000
#define FOR_EVER_MS 86400000
#define CROWD       20

/* Shared by test and server. While it stands, the server's time is `at_ns`. */
struct shared_time {
    atomic_bool stands;
    atomic_uint_least64_t at_ns;
};
static struct shared_time *shared_time;
static _Thread_local bool is_loop; /* true in the server's first thread */

static struct test_server server;
static struct test_wire ticker; /* makes the server look at its clock */

static uint64_t true_ns(void)
{
    struct timespec now;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* In place of libc's, for libuv as well. */
int clock_gettime(clockid_t id, struct timespec *out)
{
    bool monotonic = id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE;

    if (!is_loop || !monotonic || !atomic_load(&shared_time->stands))
        return (int)syscall(SYS_clock_gettime, id, out);
    uint64_t now_ns = atomic_load(&shared_time->at_ns);
    out->tv_sec = (time_t)(now_ns / 1000000000u);
    out->tv_nsec = (long)(now_ns % 1000000000u);
    return 0;
}

/* Does not return. */
static void become_server(const char *dir, const char *fault, int output,
                          pid_t parent)
{
    char *args[] = {"serve", "--port", "0", "--dir", (char *)(uintptr_t)dir,
                    NULL};
    char error[JOURNAL_ERROR_MAX];
    struct journal_io *disk = NULL;

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(output, 1) < 0 || dup2(output, 2) < 0)
        _exit(126);
    if (fault != NULL && fault_open(fault, &disk, error) != HF_OK)
        _exit(126);
    is_loop = true;
    int code = serve_on(disk, 5, args);
    if (disk != NULL)
        disk->close(disk);
    exit(code);
}

static void start(const char *fault)
{
    pid_t parent = getpid();
    const char *dir = test_folder();
    int ends[2];

    if (server.pid > 0)
        test_server_kill(&server); /* what a failed test left */
    test_wire_close(&ticker);
    if (shared_time == NULL)
        shared_time = mmap(NULL, sizeof *shared_time, PROT_READ | PROT_WRITE,
                           MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared_time != MAP_FAILED);
    atomic_store(&shared_time->stands, false);
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        become_server(dir, fault, ends[1], parent);
    CHECK(pid > 0);
    close(ends[1]);
    CHECK_EQ(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    server = (struct test_server){.pid = pid, .output = ends[0]};
    CHECK(test_server_ready(&server));
    test_server_connect(&server, &ticker);
}

static void end(void)
{
    test_server_finish(&server, &ticker);
}

/* From now on only pass() makes it later. The disk is not to be used any more
 * but for what hangs. */
static void stop_time(void)
{
    atomic_store(&shared_time->at_ns, true_ns());
    atomic_store(&shared_time->stands, true);
    for (int i = 0; i < 2; i++)
        CHECK_REPLY(test_ask(&ticker, "PING"), "+PONG");
}

/* In steps, so that every timer rings as often as it should. The second answer
 * comes after the timers of the turn that the first one began. */
static void pass(uint64_t ms)
{
    while (ms > 0) {
        uint64_t step = ms < STEP_MS ? ms : STEP_MS;
        atomic_fetch_add(&shared_time->at_ns, step * 1000000);
        for (int i = 0; i < 2; i++)
            CHECK_REPLY(test_ask(&ticker, "PING"), "+PONG");
        ms -= step;
    }
}

/* Has the server closed it? What it may have sent before stays unread. */
static bool is_closed(const struct test_wire *wire)
{
    char byte;
    ssize_t got = recv(wire->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    return got == 0 || (got < 0 && errno != EAGAIN);
}

static int64_t info(const char *name)
{
    return test_info(&ticker, name);
}

static void await_more(const char *name, int64_t than)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    while (info(name) <= than)
        CHECK(test_now_ms() < end_ms);
}

static int64_t clients(void)
{
    return info("connected_clients");
}

TEST(new_and_busy_clients_are_not_idle)
{
    struct test_wire silent;
    struct test_wire fresh;
    struct test_wire busy;

    start(NULL);
    CHECK_REPLY(test_ask(&ticker, "CONFIG SET idle-ms %d", IDLE_MS), "+OK");
    stop_time();
    test_server_connect(&server, &busy);
    CHECK_REPLY(test_ask(&busy, "PING"), "+PONG");
    test_server_connect(&server, &silent);
    CHECK_REPLY(test_ask(&silent, "PING"), "+PONG");
    for (int i = 0; i < 5; i++) {
        pass(IDLE_MS / 5);
        CHECK_REPLY(test_ask(&busy, "PING"), "+PONG");
        CHECK(!is_closed(&silent)); /* it has just as long, to the end */
    }
    test_server_connect(&server, &fresh); /* and says nothing at all */
    pass(2000);
    CHECK(is_closed(&silent));
    CHECK(!is_closed(&fresh));
    CHECK(!is_closed(&busy));
    pass(IDLE_MS - 2000);
    CHECK(!is_closed(&fresh));
    CHECK_REPLY(test_ask(&busy, "PING"), "+PONG");
    pass(2000);
    CHECK(is_closed(&fresh));
    CHECK(!is_closed(&busy));
    test_wire_close(&silent);
    test_wire_close(&fresh);
    test_wire_close(&busy);
    end();
}

/* A byte is enough, also of a request that never becomes whole. */
TEST(a_client_that_sends_a_byte_now_and_then_is_not_idle)
{
    static const char text[] = "*1\r\n$4\r\nPING\r\n";
    struct test_wire wire;

    start(NULL);
    CHECK_REPLY(test_ask(&ticker, "CONFIG SET idle-ms %d", IDLE_MS), "+OK");
    stop_time();
    test_server_connect(&server, &wire);
    for (size_t i = 0; i < sizeof text - 1; i++) {
        pass(IDLE_MS / 2);
        CHECK(!is_closed(&wire));
        test_wire_add_raw(&wire, text + i, 1);
        CHECK_EQ(test_wire_send(&wire), HF_OK);
    }
    CHECK_REPLY(TEST_ANSWER(&wire), "+PONG");
    test_wire_close(&wire);
    end();
}

TEST(with_idle_ms_0_nobody_is_idle)
{
    struct test_wire silent;

    start(NULL);
    test_server_connect(&server, &silent);
    stop_time();
    pass(10 * IDLE_MS);
    CHECK(!is_closed(&silent));
    CHECK_REPLY(test_ask(&silent, "PING"), "+PONG");
    test_wire_close(&silent);
    end();
}

/* Nor is one that has more behind its wait than one turn does. The server looks
 * for idle clients every tenth step: one of the waits ends right before. */
TEST(who_waits_for_a_lock_or_a_limit_is_not_idle)
{
    struct test_wire waiter;
    struct test_wire limited[10];
    struct test_wire silent;
    struct hf_bytes reply;

    start(NULL);
    test_server_connect(&server, &waiter);
    test_server_connect(&server, &silent);
    CHECK_REPLY(test_ask(&ticker, "CONFIG SET idle-ms %d", IDLE_MS), "+OK");
    int64_t token = test_number(
        test_ask(&ticker, "LOCK gate OWNER me TTL %d", FOR_EVER_MS), "token");
    test_wire_add(&waiter, "LOCK gate OWNER you WAIT %d", FOR_EVER_MS);
    CHECK_EQ(test_wire_send(&waiter), HF_OK);
    await_more("lock_waiters", 0);
    for (int i = 0; i < 10; i++) {
        int per_ms = 10 * IDLE_MS + i * STEP_MS;
        test_server_connect(&server, &limited[i]);
        CHECK_DONE(test_ask(&ticker, "LIMIT k%d RATE 1 PER %d", i, per_ms));
        test_wire_add(&limited[i], "LIMIT k%d RATE 1 PER %d WAIT %d", i, per_ms,
                      FOR_EVER_MS);
        test_wire_add(&limited[i], "METRICS");
        test_wire_add(&limited[i], "PING");
        CHECK_EQ(test_wire_send(&limited[i]), HF_OK);
        await_more("limit_waiters", i);
    }
    stop_time();
    pass(5 * IDLE_MS);
    CHECK(is_closed(&silent));
    CHECK(!is_closed(&waiter));
    pass(5 * IDLE_MS + 10 * STEP_MS); /* what they waited for */
    for (int i = 0; i < 10; i++) {
        CHECK_EQ(test_number(TEST_ANSWER(&limited[i]), "allowed"), 1);
        CHECK(test_bulk(TEST_ANSWER(&limited[i])).len > 0);
        CHECK_REPLY(TEST_ANSWER(&limited[i]), "+PONG");
        test_wire_close(&limited[i]);
    }
    atomic_store(&shared_time->stands, false); /* back to the true time */
    CHECK_DONE(test_ask(&ticker, "UNLOCK gate %" PRId64, token));
    reply = TEST_ANSWER(&waiter);
    CHECK(test_number(reply, "token") > token);
    test_wire_close(&waiter);
    test_wire_close(&silent);
    end();
}

/* ---- A disk that hangs. ---- */

/* A write of `writer` hangs from here on, and time stands. */
static void hang(struct test_wire *writer)
{
    int64_t slow = info("journal_slow_commits_total");

    test_server_shut(&server);
    TEST_SEND(writer, "STOCK SET nut 7");
    await_more("journal_slow_commits_total", slow);
    stop_time();
}

static void go_on(struct test_wire *writer)
{
    struct hf_bytes reply;

    atomic_store(&shared_time->stands, false);
    CHECK(test_server_signal(&server, SIGUSR1));
    reply = TEST_ANSWER(writer);
    CHECK_EQ(test_number(reply, "total"), 7);
}

TEST(who_waits_for_the_disk_is_not_idle)
{
    struct test_wire writer;
    struct test_wire silent;

    start("write:0:gate");
    test_server_connect(&server, &writer);
    test_server_connect(&server, &silent);
    CHECK_REPLY(test_ask(&ticker, "CONFIG SET idle-ms %d", IDLE_MS), "+OK");
    hang(&writer);
    pass(5 * IDLE_MS);
    CHECK(is_closed(&silent));
    CHECK(!is_closed(&writer));
    go_on(&writer);
    test_wire_close(&writer);
    test_wire_close(&silent);
    end();
}

static void send_many(struct test_wire *wire, int count, const char *request)
{
    for (int i = 0; i < count; i++)
        test_wire_add(wire, "%s", request);
    CHECK_EQ(test_wire_send(wire), HF_OK);
}

/* No timer rings: each turn has to bring about the next one. */
TEST(a_long_pipeline_is_answered_while_the_disk_hangs)
{
    enum { COUNT = 10 * CONN_TURN_WORK };
    struct test_wire writer;
    struct test_wire other;

    start("write:0:gate");
    test_server_connect(&server, &writer);
    test_server_connect(&server, &other);
    hang(&writer);
    send_many(&other, COUNT, "PING");
    for (int i = 0; i < COUNT; i++) {
        CHECK_REPLY(TEST_ANSWER(&other), "+PONG");
    }
    go_on(&writer);
    test_wire_close(&writer);
    test_wire_close(&other);
    end();
}

/* All are over when the batch with the last one, which may wait, is applied. */
TEST(what_is_over_after_a_hang_is_swept_in_many_turns)
{
    enum { COUNT = 10000 };
    struct test_wire writer;
    struct test_wire other;
    struct hf_bytes reply;

    start("write:0:gate");
    test_server_connect(&server, &writer);
    test_server_connect(&server, &other);
    CHECK_DONE(test_ask(&other, "STOCK SET apple %d", COUNT));
    send_many(&other, COUNT, "RESERVE * ITEM apple 1 TTL 600000");
    for (int i = 0; i < COUNT; i++) {
        CHECK_DONE(TEST_ANSWER(&other));
    }
    hang(&writer);
    atomic_fetch_add(&shared_time->at_ns, UINT64_C(700000000000));
    pass(STEP_MS);
    send_many(&other, 1, "RESERVE all ITEM apple 10000 WAIT 3600000");
    pass(STEP_MS);
    go_on(&writer);
    reply = TEST_ANSWER(&other);
    CHECK(test_number(reply, "expires_ms") > 0);
    CHECK_EQ(info("turn_sweeps_max"), 16); /* of 40 */
    test_wire_close(&writer);
    test_wire_close(&other);
    end();
}

TEST(a_wait_that_was_left_lasted_until_then)
{
    struct test_wire waiter;

    start(NULL);
    test_server_connect(&server, &waiter);
    CHECK_DONE(test_ask(&ticker, "LOCK x OWNER a TTL %d", FOR_EVER_MS));
    send_many(&waiter, 1, "LOCK x OWNER b WAIT 3600000");
    while (test_number(test_ask(&ticker, "LOCKINFO x"), "waiting") == 0)
        ;
    (void)poll(NULL, 0, 500); /* nothing happens in it */
    test_wire_close(&waiter);
    await_more("lock_wait_seconds_count{result=\"left\"}", 0);
    CHECK(test_info_real(&ticker, "lock_wait_seconds_sum{result=\"left\"}") >=
          0.5);
    end();
}

/* The number behind `name` in the log's line number `which` with `message`. */
static int64_t logged(const char *message, int which, const char *name)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;
    const char *line = NULL;
    char field[64];

    while (line == NULL || strchr(line, '\n') == NULL) {
        CHECK(test_now_ms() < end_ms);
        CHECK_REPLY(test_ask(&ticker, "PING"), "+PONG");
        line = strstr(test_server_said(&server), message);
        for (int i = 1; i < which && line != NULL; i++)
            line = strstr(line + 1, message);
    }
    snprintf(field, sizeof field, " %s=", name);
    const char *at = strstr(line, field);
    CHECK(at != NULL && at < strchr(line, '\n'));
    return strtoll(at + strlen(field), NULL, 10);
}

TEST(the_log_tells_for_how_long_the_disk_was_slow)
{
    static const char slow[] = "the disk is slow";
    static const char well[] = "the disk is well again";
    struct test_wire writer;
    struct hf_bytes reply;

    start("write:1:stall");
    test_server_connect(&server, &writer);
    uint64_t begun_ms = test_now_ms();
    TEST_SEND(&writer, "STOCK SET nut 7");
    int64_t told_ms = logged(slow, 1, "waiting_ms");
    CHECK(told_ms >= 2); /* which the loop waits */
    CHECK(told_ms <= (int64_t)(test_now_ms() - begun_ms) + 1);
    CHECK_EQ(logged(slow, 1, "slow_commits"), 0);
    stop_time();
    int64_t real_ms = (int64_t)(test_now_ms() - begun_ms);
    pass(2 * MINUTE_MS);
    int64_t waited_ms = logged(slow, 2, "waiting_ms");
    CHECK(waited_ms >= MINUTE_MS && waited_ms <= 2 * MINUTE_MS + real_ms);
    CHECK(test_server_signal(&server, SIGUSR1));
    reply = TEST_ANSWER(&writer);
    CHECK_EQ(test_number(reply, "total"), 7);
    pass(5000);
    CHECK_EQ(logged(well, 1, "slow_commits"), 1);
    int64_t max_ms = logged(well, 1, "max_ms");
    CHECK(max_ms >= 2 * MINUTE_MS && max_ms <= 2 * MINUTE_MS + real_ms + 2);
    CHECK(logged(well, 1, "after_ms") <= max_ms);
    test_wire_close(&writer);
    end();
}

/* ---- Those who do not read. ---- */

#define LISTS      300
#define READ_BYTES 30000 /* of a slow reader, every ten seconds */

static size_t list_bytes;

/* A client that is owed far more than the system keeps for it. */
static void open_greedy(struct test_wire *wire)
{
    int small = 65536;

    test_server_connect(&server, wire);
    CHECK_EQ(setsockopt(wire->fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small),
             0);
    for (int i = 0; i < LISTS; i++)
        test_wire_add(wire, "STOCK LIST * COUNT 1000");
    ssize_t sent = send(wire->fd, wire->out.data, wire->out.len, MSG_NOSIGNAL);
    CHECK_EQ(sent, wire->out.len);
    wire->out.len = 0;
}

static void start_with_stock(void)
{
    start(NULL);
    for (int i = 0; i < 1000; i++)
        test_wire_add(&ticker, "STOCK SET a-product-with-a-long-name-%d 1", i);
    CHECK_EQ(test_wire_send(&ticker), HF_OK);
    for (int i = 0; i < 1000; i++) {
        CHECK_DONE(TEST_ANSWER(&ticker));
    }
    list_bytes = test_ask(&ticker, "STOCK LIST * COUNT 1000").len;
    CHECK(list_bytes * LISTS > 20u << 20);
}

/* Reads up to `most` bytes of what is there; the rest can wait. */
static size_t read_some(const struct test_wire *wire, size_t most)
{
    static char bytes[65536];
    size_t total = 0;

    while (total < most) {
        ssize_t got = recv(wire->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            test_fail(__FILE__, __LINE__, "closed after %zu bytes", total);
        if (got < 0)
            break;
        total += (size_t)got;
    }
    return total;
}

TEST(who_reads_slowly_is_not_closed_and_gets_all)
{
    struct test_wire slow;
    size_t total = 0;

    start_with_stock();
    stop_time();
    open_greedy(&slow);
    for (int i = 0; i < 18; i++) { /* three minutes without a word */
        pass(MINUTE_MS / 6);
        total += read_some(&slow, READ_BYTES);
        CHECK_EQ(clients(), 2);
    }
    CHECK(total < list_bytes * LISTS);
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;
    while (total < list_bytes * LISTS) {
        CHECK(test_now_ms() < end_ms);
        total += read_some(&slow, list_bytes * LISTS - total);
    }
    CHECK_REPLY(test_ask(&slow, "PING"), "+PONG");
    test_wire_close(&slow);
    end();
}

TEST(who_does_not_read_but_sends_is_not_closed)
{
    struct test_wire wire;

    start_with_stock();
    CHECK_REPLY(test_ask(&ticker, "CONFIG SET output-max-bytes 1000000000"),
                "+OK");
    stop_time();
    open_greedy(&wire);
    for (int i = 0; i < 18; i++) {
        pass(MINUTE_MS / 6);
        test_wire_add(&wire, "PING");
        CHECK(send(wire.fd, wire.out.data, wire.out.len, MSG_NOSIGNAL) > 0);
        wire.out.len = 0;
        CHECK_EQ(clients(), 2);
    }
    test_wire_close(&wire);
    end();
}

TEST(who_neither_reads_nor_sends_is_closed_but_not_at_once)
{
    struct test_wire deaf;

    start_with_stock();
    stop_time();
    open_greedy(&deaf);
    pass(MINUTE_MS / 2);
    CHECK_EQ(clients(), 2);
    pass(4 * MINUTE_MS);
    CHECK_EQ(clients(), 1);
    test_wire_close(&deaf);
    end();
}

/* ---- The stop. ---- */

/* Its patience is for those who are owed something. As no time passes here, a
 * stop that waits for any is one that never ends. */
TEST(a_stop_does_not_wait_for_clients_that_are_owed_nothing)
{
    struct test_wire crowd[CROWD];

    start(NULL);
    for (int i = 0; i < CROWD; i++) {
        test_server_connect(&server, &crowd[i]);
        if (i % 2 == 0)
            CHECK_REPLY(test_ask(&crowd[i], "PING"), "+PONG");
    }
    CHECK_DONE(test_ask(&crowd[0], "STOCK SET bolt 1"));
    CHECK_EQ(clients(), CROWD + 1);
    stop_time();
    CHECK_EQ(test_server_stop(&server), 0);
    for (int i = 0; i < CROWD; i++) {
        CHECK(is_closed(&crowd[i]));
        test_wire_close(&crowd[i]);
    }
    test_wire_close(&ticker);
}
