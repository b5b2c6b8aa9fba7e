/* told.c - what was told stands, also while the disk hangs.
 * tests: also under sanitizers
 *
 * The server's disk is a gate (HOLDFAST_FAULT=write:0:gate): from SIGUSR2 on
 * every write hangs, until SIGUSR1. A request is "flying" when its write is
 * the one that hangs, and "gathered" when it came behind it.
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include "support/server.h"
#include "support/test.h"

#define FOR_EVER_MS 3600000
#define GLANCE_MS   50

static struct test_server server;
static struct test_wire first; /* three clients */
static struct test_wire second;
static struct test_wire watcher;
static char dir[512];

static void connect_all(void)
{
    test_server_connect(&server, &first);
    test_server_connect(&server, &second);
    test_server_connect(&server, &watcher);
}

static void close_all(void)
{
    test_wire_close(&first);
    test_wire_close(&second);
    test_wire_close(&watcher);
}

static void start(void)
{
    test_server_start(&server, &(struct test_server_opts){
                                   .dir = dir, .fault = "write:0:gate"});
    connect_all();
}

/* On an empty folder; a server that a failed test left goes. */
static void start_new(void)
{
    static int count;

    if (server.pid > 0)
        test_server_kill(&server);
    close_all();
    snprintf(dir, sizeof dir, "%s/%d", test_folder(), count++);
    start();
}

static void stop(void)
{
    close_all();
    CHECK_EQ(test_server_stop(&server), 0);
}

static uint64_t info_number(const char *field)
{
    struct hf_bytes info = test_ask(&watcher, "INFO");
    const char *at = memmem(info.data, info.len, field, strlen(field));

    CHECK(at != NULL);
    return strtoull(at + strlen(field), NULL, 10);
}

static void send_on(struct test_wire *wire)
{
    CHECK_EQ(test_wire_send(wire), HF_OK);
}

static struct hf_bytes read_on(struct test_wire *wire)
{
    struct hf_bytes reply;

    CHECK_EQ(test_wire_read(wire, &reply), HF_OK);
    return reply;
}

static bool is_silent(struct test_wire *wire)
{
    struct hf_bytes reply;

    return test_wire_read_within(wire, GLANCE_MS, &reply) == HF_TIMEOUT;
}

/* The disk hangs, with a write of `probe` on its way, whose answer is owed. */
static void shut_with(struct test_wire *probe)
{
    CHECK(test_server_signal(&server, SIGUSR2));
    for (int i = 1; i < 1000; i++) {
        test_wire_add(probe, "STOCK SET probe %d", i);
        send_on(probe);
        while (is_silent(probe)) {
            if (info_number("journal_waiting_ms:") > 0)
                return;
        }
    }
    test_fail(__FILE__, __LINE__, "the disk never hung");
}

static void open_with(struct test_wire *probe)
{
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(read_on(probe));
}

/* The server has read and gathered `count` more requests than before. */
static void await_commands(uint64_t before, uint64_t count)
{
    static const char field[] = "total_commands_processed:";
    uint64_t asked = 1;

    while (info_number(field) < before + asked + count)
        asked++;
}

static uint64_t commands(void)
{
    return info_number("total_commands_processed:");
}

/* Time on the server's clock, as ours, cannot be made to pass. */
static void await_ms(uint64_t until_ms)
{
    while (test_now_ms() < until_ms)
        CHECK_REPLY(test_ask(&watcher, "PING"), "+PONG");
}

TEST(a_read_does_not_contradict_a_renewal_on_its_way)
{
    start_new();
    uint64_t begun_ms = test_now_ms();
    int64_t token =
        test_number(test_ask(&first, "LOCK a OWNER me TTL 1500"), "token");
    shut_with(&second);
    uint64_t before = commands();
    test_wire_add(&first, "RENEW a %" PRId64 " TTL %d", token, FOR_EVER_MS);
    send_on(&first);
    await_commands(before, 1);
    await_ms(begun_ms + 2000);
    struct test_wire reader;
    test_server_connect(&server, &reader);
    test_wire_add(&reader, "LOCKINFO a");
    send_on(&reader);
    CHECK(is_silent(&reader));
    open_with(&second);
    struct hf_bytes renewed = read_on(&first);
    if (!test_is_error(renewed, "LOST")) { /* slow machine: it came too late */
        CHECK_DONE(renewed);
        CHECK_EQ(test_number(read_on(&reader), "token"), token);
    } else {
        CHECK_ERROR(read_on(&reader), "NOTFOUND");
    }
    test_wire_close(&reader);
    stop();
}

TEST(a_read_does_not_contradict_a_confirmation_on_its_way)
{
    start_new();
    CHECK_DONE(test_ask(&first, "STOCK SET apple 10"));
    uint64_t begun_ms = test_now_ms();
    CHECK_DONE(test_ask(&first, "RESERVE r ITEM apple 3 TTL 1500"));
    shut_with(&second);
    uint64_t before = commands();
    test_wire_add(&first, "CONFIRM r");
    send_on(&first);
    await_commands(before, 1);
    await_ms(begun_ms + 2000);
    struct test_wire reader;
    test_server_connect(&server, &reader);
    test_wire_add(&reader, "RESERVATION r");
    test_wire_add(&reader, "STOCK GET apple");
    send_on(&reader);
    CHECK(is_silent(&reader));
    open_with(&second);
    bool confirmed = !test_is_error(read_on(&first), "EXPIRED");
    const char *status = confirmed ? "CONFIRMED" : "EXPIRED";
    CHECK(hf_bytes_equal(test_text(read_on(&reader), "status"),
                         hf_bytes_text(status)));
    struct hf_bytes apple = read_on(&reader);
    CHECK_EQ(test_number(apple, "sold"), confirmed ? 3 : 0);
    CHECK_EQ(test_number(apple, "reserved"), 0);
    test_wire_close(&reader);
    stop();
}

TEST(safe_ms_is_what_is_left_when_it_is_told)
{
    start_new();
    shut_with(&second);
    uint64_t sent_ms = test_now_ms();
    test_wire_add(&first, "LOCK a OWNER me TTL 5000");
    send_on(&first);
    await_ms(sent_ms + 1000);
    uint64_t opened_ms = test_now_ms();
    open_with(&second);
    int64_t safe_ms = test_number(read_on(&first), "safe_ms");
    CHECK(safe_ms <= (int64_t)(5000 - (opened_ms - sent_ms) + 1));
    stop();
}

/* TIMEOUT is told for a LOCK whose own write hangs; returns its number. */
static int time_out_flying(struct test_wire *wire, const char *more)
{
    CHECK(test_server_signal(&server, SIGUSR2));
    for (int i = 0; i < 1000; i++) {
        struct hf_bytes reply =
            test_ask(wire, "LOCK flying-%d OWNER me TTL %d WAIT 60%s%d", i,
                     FOR_EVER_MS, more, i);
        if (test_is_error(reply, "TIMEOUT"))
            return i;
        CHECK_DONE(reply);
    }
    test_fail(__FILE__, __LINE__, "the disk never hung");
}

TEST(a_timeout_that_was_told_is_the_answer_to_its_req)
{
    start_new();
    int n = time_out_flying(&first, " REQ f");
    CHECK_ERROR(test_ask(&first, "LOCK gathered OWNER me TTL %d WAIT 60 REQ g",
                         FOR_EVER_MS),
                "TIMEOUT");
    CHECK_ERROR(test_ask(&second,
                         "LOCK flying-%d OWNER me TTL %d WAIT 60 REQ f%d", n,
                         FOR_EVER_MS, n),
                "TIMEOUT");
    CHECK(test_server_signal(&server, SIGUSR1));
    /* one behind another: when the first is answered all verdicts are told */
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_DONE(test_ask(&second, "STOCK SET x 2"));
    for (int life = 0; life < 2; life++) {
        CHECK_ERROR(test_ask(&second, "LOCKINFO flying-%d", n), "NOTFOUND");
        CHECK_ERROR(test_ask(&second, "LOCKINFO gathered"), "NOTFOUND");
        CHECK_ERROR(test_ask(&second,
                             "LOCK flying-%d OWNER me TTL %d WAIT 60 REQ f%d",
                             n, FOR_EVER_MS, n),
                    "TIMEOUT");
        CHECK_ERROR(test_ask(&second,
                             "LOCK gathered OWNER me TTL %d WAIT 60 REQ g",
                             FOR_EVER_MS),
                    "TIMEOUT");
        stop();
        start();
    }
    stop();
}

TEST(a_timeout_that_was_told_leaves_no_hold_without_req)
{
    start_new();
    int n = time_out_flying(&first, " REQ f");
    CHECK_ERROR(
        test_ask(&first, "LOCK gathered OWNER me TTL %d WAIT 60", FOR_EVER_MS),
        "TIMEOUT");
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(test_ask(&second, "LOCK flying-%d OWNER other", n));
    CHECK_DONE(test_ask(&second, "LOCK gathered OWNER other"));
    stop();
}

TEST(a_re_entry_that_was_told_timeout_does_not_count)
{
    start_new();
    int64_t token = test_number(
        test_ask(&first, "LOCK a OWNER me TTL %d", FOR_EVER_MS), "token");
    shut_with(&second);
    CHECK_ERROR(test_ask(&first, "LOCK a OWNER me TTL %d WAIT 60", FOR_EVER_MS),
                "TIMEOUT");
    open_with(&second);
    CHECK_EQ(
        test_number(test_ask(&first, "UNLOCK a %" PRId64, token), "remaining"),
        0);
    stop();
}

TEST(a_wait_in_the_queue_that_was_told_timeout_is_not_granted)
{
    start_new();
    int64_t token = test_number(
        test_ask(&first, "LOCK a OWNER me TTL %d", FOR_EVER_MS), "token");
    test_wire_add(&second, "LOCK a OWNER late TTL %d WAIT 1500 REQ late",
                  FOR_EVER_MS);
    send_on(&second);
    while (test_number(test_ask(&watcher, "LOCKINFO a"), "waiting") != 1)
        ;
    struct test_wire probe;
    test_server_connect(&server, &probe);
    shut_with(&probe);
    test_wire_add(&first, "UNLOCK a %" PRId64, token);
    send_on(&first);
    CHECK_ERROR(read_on(&second), "TIMEOUT");
    open_with(&probe);
    CHECK_EQ(test_number(read_on(&first), "remaining"), 0);
    CHECK_ERROR(test_ask(&first, "LOCKINFO a"), "NOTFOUND");
    CHECK_ERROR(test_ask(&first, "LOCK a OWNER late TTL %d WAIT 1500 REQ late",
                         FOR_EVER_MS),
                "TIMEOUT");
    test_wire_close(&probe);
    stop();
}

TEST(a_grant_that_was_told_is_told_again_while_the_disk_hangs)
{
    start_new();
    int64_t token = test_number(
        test_ask(&first, "LOCK a OWNER me TTL %d WAIT 60 REQ one", FOR_EVER_MS),
        "token");
    CHECK_DONE(test_ask(&first, "LOCK brief OWNER me TTL 1"));
    shut_with(&second); /* brief is over, and nobody can note it */
    CHECK_EQ(
        test_number(test_ask(&first, "LOCK a OWNER me TTL %d WAIT 60 REQ one",
                             FOR_EVER_MS),
                    "token"),
        token);
    open_with(&second);
    stop();
}

TEST(timeouts_come_in_order_behind_earlier_requests)
{
    struct test_wire late;

    start_new();
    CHECK_DONE(test_ask(&first, "LOCK a OWNER me TTL %d", FOR_EVER_MS));
    shut_with(&second);
    test_server_connect(&server, &late);
    test_wire_add(&late, "STOCK SET x 7");
    test_wire_add(&late, "LOCK a OWNER other WAIT 60");
    test_wire_add(&late, "PING");
    send_on(&late);
    CHECK(is_silent(&late));
    CHECK(is_silent(&late)); /* also when the wait's time is over */
    open_with(&second);
    CHECK_EQ(test_number(read_on(&late), "total"), 7);
    CHECK_ERROR(read_on(&late), "TIMEOUT");
    CHECK_REPLY(read_on(&late), "+PONG");
    test_wire_close(&late);
    stop();
}

static void reset(struct test_wire *wire)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    CHECK_EQ(setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    test_wire_close(wire);
}

/* The server has noticed that only the others are connected. */
static void await_clients(uint64_t count)
{
    while (info_number("connected_clients:") != count)
        ;
}

static void check_orphan(const char *lock)
{
    start_new();
    shut_with(&second);
    uint64_t before = commands();
    test_wire_add(&first, "LOCK %s", lock);
    send_on(&first);
    await_commands(before, 1);
    reset(&first);
    await_clients(2);
    open_with(&second);
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_ERROR(test_ask(&second, "LOCKINFO a"), "NOTFOUND");
    stop();
}

TEST(a_lock_is_not_left_with_a_client_that_went_before_the_grant)
{
    check_orphan("a OWNER me TTL 3600000 WAIT 60000");
    check_orphan("a OWNER me TTL 3600000");
}

/* Its own write hangs: not only gathered behind another. */
TEST(a_lock_on_its_way_is_not_left_with_a_client_that_went)
{
    for (int i = 0; i < 2; i++) {
        start_new();
        CHECK(test_server_signal(&server, SIGUSR2));
        int n = 0;
        do {
            CHECK(n++ < 1000);
            test_wire_add(&first, "LOCK a-%d OWNER me TTL %d%s", n, FOR_EVER_MS,
                          i == 0 ? "" : " WAIT 60000");
            send_on(&first);
        } while (!is_silent(&first));
        reset(&first);
        await_clients(2);
        CHECK(test_server_signal(&server, SIGUSR1));
        CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
        CHECK_DONE(test_ask(&second, "STOCK SET x 2"));
        CHECK_ERROR(test_ask(&second, "LOCKINFO a-%d", n), "NOTFOUND");
        stop();
    }
}

TEST(a_waiter_that_sent_too_much_and_died_is_not_granted)
{
    static char words[700 * 1024];
    struct hf_bytes reply;

    start_new();
    int64_t token = test_number(
        test_ask(&second, "LOCK a OWNER holder TTL %d", FOR_EVER_MS), "token");
    test_wire_add(&first, "LOCK a OWNER me TTL %d WAIT %d", FOR_EVER_MS,
                  FOR_EVER_MS);
    for (size_t i = 0; i + 6 <= sizeof words; i += 6)
        memcpy(words + i, "PING\r\n", 6);
    test_wire_add_raw(&first, words, sizeof words / 6 * 6);
    send_on(&first);
    while (test_number(test_ask(&watcher, "LOCKINFO a"), "waiting") != 1)
        ;
    CHECK_EQ(test_wire_read_within(&first, GLANCE_MS, &reply), HF_TIMEOUT);
    reset(&first);
    CHECK_DONE(test_ask(&second, "UNLOCK a %" PRId64, token));
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_ERROR(test_ask(&second, "LOCKINFO a"), "NOTFOUND");
    stop();
}

TEST(a_stop_answers_a_wait_on_its_way_and_remembers_it)
{
    start_new();
    CHECK_DONE(test_ask(&second, "LOCK a OWNER holder TTL %d", FOR_EVER_MS));
    test_wire_add(&first, "LOCK a OWNER queued WAIT %d REQ queued",
                  FOR_EVER_MS);
    send_on(&first);
    while (test_number(test_ask(&watcher, "LOCKINFO a"), "waiting") != 1)
        ;
    shut_with(&second);
    struct test_wire late;
    test_server_connect(&server, &late);
    uint64_t before = commands();
    test_wire_add(&late, "LOCK a OWNER late WAIT %d REQ late", FOR_EVER_MS);
    send_on(&late);
    await_commands(before, 1);
    CHECK(test_server_signal(&server, SIGTERM));
    open_with(&second);
    CHECK_ERROR(read_on(&first), "TIMEOUT");
    CHECK_ERROR(read_on(&late), "TIMEOUT");
    CHECK_EQ(test_server_end(&server), 0);
    close_all();
    test_wire_close(&late);
    start();
    CHECK_ERROR(
        test_ask(&first, "LOCK a OWNER queued WAIT %d REQ queued", FOR_EVER_MS),
        "TIMEOUT");
    CHECK_ERROR(
        test_ask(&first, "LOCK a OWNER late WAIT %d REQ late", FOR_EVER_MS),
        "TIMEOUT");
    stop();
}

TEST(a_restart_grants_nothing_to_those_who_waited_before)
{
    start_new();
    uint64_t begun_ms = test_now_ms();
    CHECK_DONE(test_ask(&second, "LOCK a OWNER holder TTL 700"));
    test_wire_add(&first, "LOCK a OWNER waiter TTL %d WAIT %d", FOR_EVER_MS,
                  FOR_EVER_MS);
    send_on(&first);
    while (test_now_ms() < begun_ms + 600 &&
           test_number(test_ask(&watcher, "LOCKINFO a"), "waiting") != 1)
        ;
    close_all();
    test_server_kill(&server);
    while (test_now_ms() < begun_ms + 1000)
        ; /* nobody is there to be asked */
    start();
    CHECK_ERROR(test_ask(&first, "LOCKINFO a"), "NOTFOUND");
    stop();
}

TEST(a_bound_is_shown_when_the_journal_has_it)
{
    struct hf_bytes reply;

    start_new();
    CHECK_DONE(test_ask(&first, "CONFIG SET locks-max 77"));
    shut_with(&second);
    test_wire_add(&first, "CONFIG SET locks-max 99");
    uint64_t before = commands();
    send_on(&first);
    await_commands(before, 1);
    reply = test_ask(&watcher, "CONFIG GET locks-max");
    CHECK(memmem(reply.data, reply.len, "77", 2) != NULL);
    open_with(&second);
    CHECK_REPLY(read_on(&first), "+OK");
    reply = test_ask(&watcher, "CONFIG GET locks-max");
    CHECK(memmem(reply.data, reply.len, "99", 2) != NULL);
    reply = test_ask(&watcher, "METRICS");
    static const char took[] =
        "holdfast_command_seconds_count{command=\"CONFIG SET\"} 2\n";
    CHECK(memmem(reply.data, reply.len, took, sizeof took - 1) != NULL);
    stop();
}

/* The second is told TIMEOUT, and its CONFLICT is nobody's answer. */
TEST(a_timeout_under_a_foreign_req_leaves_the_first_answer)
{
    start_new();
    CHECK_DONE(test_ask(&first, "STOCK SET apple 10"));
    shut_with(&second);
    uint64_t before = commands();
    test_wire_add(&first, "RESERVE cart ITEM apple 2 REQ r");
    send_on(&first);
    await_commands(before, 1);
    struct test_wire foreign;
    test_server_connect(&server, &foreign);
    CHECK_ERROR(test_ask(&foreign, "LOCK x OWNER me WAIT 50 REQ r"), "TIMEOUT");
    open_with(&second);
    CHECK_DONE(read_on(&first));
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_DONE(test_ask(&first, "RESERVE cart ITEM apple 2 REQ r"));
    test_wire_close(&foreign);
    stop();
}

/* The second has to wait for the first, and is decoded again then. */
TEST(an_inline_request_that_waits_is_what_was_sent)
{
    static const char lines[] =
        "STOCK SET x 1\r\nLOCK \"a \\\"b\\\" c\" OWNER me WAIT 5000\r\n";

    start_new();
    test_wire_add_raw(&first, lines, sizeof lines - 1);
    send_on(&first);
    CHECK_EQ(test_number(read_on(&first), "total"), 1);
    CHECK(test_number(read_on(&first), "token") > 0);
    struct hf_bytes name[] = {hf_bytes_text("LOCKINFO"),
                              hf_bytes_text("a \"b\" c")};
    test_wire_add_args(&second, 2, name);
    send_on(&second);
    CHECK_DONE(read_on(&second));
    stop();
}

/* It went while the server stood still: what has expired is looked at before
 * what was read. */
TEST(a_client_that_went_unread_is_not_granted)
{
    start_new();
    uint64_t begun_ms = test_now_ms();
    CHECK_DONE(test_ask(&second, "LOCK a OWNER holder TTL 700"));
    test_wire_add(&first, "LOCK a OWNER gone TTL %d WAIT %d", FOR_EVER_MS,
                  FOR_EVER_MS);
    send_on(&first);
    while (test_now_ms() < begun_ms + 600 &&
           test_number(test_ask(&watcher, "LOCKINFO a"), "waiting") != 1)
        ;
    CHECK(test_server_signal(&server, SIGSTOP));
    reset(&first);
    while (test_now_ms() < begun_ms + 900)
        ;
    CHECK(test_server_signal(&server, SIGCONT));
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_DONE(test_ask(&second, "STOCK SET x 2"));
    CHECK_ERROR(test_ask(&second, "LOCKINFO a"), "NOTFOUND");
    stop();
}
