/* holders.c - what holders of locks are told, and what can be asked about them:
 * pushes, bound sessions, elections, EXPLAIN, WAITGRAPH, alarms. */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/daemon.h"
#include "support/server.h"
#include "support/test.h"

#define FOR_EVER_MS 100000000

static struct test_server server;
static struct test_wire good;

/* ---- A holder that stands still. ---- */

/* It is a process of its own, this program anew, with the port in the
 * environment. What is not as it must be ends it, with a number. */
#define HOLDER "HOLDERS_PORT"

static struct still {
    struct test_wire wire;
    int64_t token;
    bool lost; /* it was told so */
} still;

static void must(bool holds, int code)
{
    if (!holds)
        _exit(code);
}

/* The next that comes; a push that the lock is lost is noted. */
static struct hf_bytes holder_read(void)
{
    struct hf_bytes reply;
    char raw[100];

    must(test_wire_read(&still.wire, &reply) == HF_OK, 2);
    snprintf(raw, sizeof raw,
             ">3\r\n$9\r\nlock_lost\r\n$4\r\ngate\r\n:%" PRId64 "\r\n",
             still.token);
    if (test_is(reply, raw))
        still.lost = true;
    return reply;
}

static struct hf_bytes holder_ask(const char *words)
{
    struct hf_bytes reply;

    test_wire_add(&still.wire, "%s", words);
    must(test_wire_send(&still.wire) == HF_OK, 3);
    do
        reply = holder_read();
    while (reply.data[0] == '>');
    return reply;
}

/* Stops itself when it has the lock, as a machine does that is paused. When it
 * goes on it hears that the lock is lost, and what it writes is refused. */
static void hold_and_stop(uint16_t port)
{
    char fence[64];

    must(test_wire_open(&still.wire, port) == HF_OK, 4);
    must(holder_ask("HELLO 3").data[0] == '%', 5);
    still.token =
        test_number(holder_ask("LOCK gate OWNER ann TTL 200"), "token");
    snprintf(fence, sizeof fence, "FENCE ledger %" PRId64, still.token);
    must(test_is(holder_ask(fence), "+OK\r\n"), 6);
    must(raise(SIGSTOP) == 0, 7);
    while (!still.lost)
        must(holder_read().data[0] == '>', 8);
    must(test_is_error(holder_ask(fence), "STALE"), 9);
    test_wire_close(&still.wire);
}

__attribute__((constructor)) static void be_the_holder(void)
{
    const char *port = getenv(HOLDER);

    if (port == NULL)
        return;
    uint64_t number = 0;
    must(hf_parse_u64(hf_bytes_text(port), &number) == HF_OK, 10);
    hold_and_stop((uint16_t)number);
    exit(0);
}

static pid_t start_holder(void)
{
    char port[16];

    snprintf(port, sizeof port, "%d", server.port);
    fflush(stdout);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        setenv(HOLDER, port, 1);
        execl("/proc/self/exe", "holder", (char *)NULL);
        _exit(127);
    }
    return pid;
}

static void start(void)
{
    static int count;
    char dir[512];

    snprintf(dir, sizeof dir, "%s/%d", test_folder(), count++);
    test_server_begin(
        &server, &good,
        &(struct test_server_opts){.dir = dir, .durability = "none"});
}

static void stop(void)
{
    test_server_finish(&server, &good);
}

/* Asks until so many wait for the lock. */
static void await(const char *name, int count)
{
    while (test_number(test_ask(&good, "LOCKINFO %s", name), "waiting") !=
           count)
        ;
}

/* Is the reply a push of this kind about that lock? */
static bool is_push(struct hf_bytes reply, const char *what, const char *name,
                    int64_t token)
{
    char raw[200];

    snprintf(raw, sizeof raw,
             ">3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n:%" PRId64 "\r\n", strlen(what),
             what, strlen(name), name, token);
    return test_is(reply, raw);
}

static int64_t take(struct test_wire *wire, const char *name, const char *owner,
                    int ttl_ms)
{
    struct hf_bytes reply =
        test_ask(wire, "LOCK %s OWNER %s TTL %d", name, owner, ttl_ms);

    CHECK_DONE(reply);
    return test_number(reply, "token");
}

TEST(a_holder_that_speaks_resp3_hears_what_happens_to_its_lock)
{
    start();
    struct test_wire holder, waiter;

    test_server_connect(&server, &holder);
    test_server_connect(&server, &waiter);
    CHECK_DONE(test_ask(&holder, "HELLO 3"));
    int64_t gate = take(&holder, "gate", "ann", FOR_EVER_MS);
    int64_t door = take(&holder, "door", "ann", FOR_EVER_MS);
    int64_t hall = take(&holder, "hall", "ann", 1);
    CHECK(is_push(TEST_ANSWER(&holder), "lock_lost", "hall", hall));
    TEST_SEND(&waiter, "LOCK gate OWNER bob WAIT %d", FOR_EVER_MS);
    CHECK(is_push(TEST_ANSWER(&holder), "lock_wanted", "gate", gate));
    CHECK_DONE(test_ask(&good, "REVOKE gate %" PRId64 " GRACE 1", gate));
    CHECK(is_push(TEST_ANSWER(&holder), "lock_wounded", "gate", gate));
    CHECK(is_push(TEST_ANSWER(&holder), "lock_lost", "gate", gate));
    CHECK(test_number(TEST_ANSWER(&waiter), "token") > gate);
    CHECK_DONE(test_ask(&good, "REVOKE door %" PRId64, door));
    CHECK(is_push(TEST_ANSWER(&holder), "lock_lost", "door", door));
    /* what it gives back itself is no news */
    int64_t next = take(&holder, "door", "ann", FOR_EVER_MS);
    CHECK_DONE(test_ask(&holder, "UNLOCK door %" PRId64, next));
    CHECK(test_is(test_ask(&holder, "PING"), "+PONG\r\n"));
    /* nor what is flushed, which it does not hold any more */
    take(&holder, "attic", "ann", 1000);
    CHECK_DONE(test_ask(&good, "FLUSHALL"));
    take(&holder, "attic", "ann", FOR_EVER_MS);
    CHECK(test_is(test_ask(&holder, "PING"), "+PONG\r\n"));
    test_wire_close(&holder);
    test_wire_close(&waiter);
    stop();
}

/* The TTL passes while it stands: another gets the lock, and a newer token. */
TEST(a_holder_that_was_stopped_past_its_ttl_hears_so_and_writes_nothing)
{
    int status;

    start();
    pid_t pid = start_holder();
    CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
    CHECK_EQ(WIFEXITED(status) ? WEXITSTATUS(status) : 0, 0);
    CHECK(WIFSTOPPED(status));
    struct hf_bytes reply =
        test_ask(&good, "LOCK gate OWNER bob WAIT %d", FOR_EVER_MS);
    CHECK_DONE(reply);
    int64_t token = test_number(reply, "token");
    CHECK_DONE(test_ask(&good, "FENCE ledger %" PRId64, token));
    CHECK_EQ(kill(pid, SIGCONT), 0);
    CHECK_EQ(test_daemon_reap(pid), 0);
    CHECK_DONE(test_ask(&good, "HELD gate %" PRId64, token));
    CHECK_DONE(test_ask(&good, "FENCE ledger %" PRId64, token));
    stop();
}

/* The name may have any bytes: what a reader of text would take for its end is
 * part of it. */
TEST(subscribers_hear_who_wants_a_lock_of_any_name)
{
    start();
    struct test_wire subscriber, waiter;
    struct hf_bytes asked[] = {
        hf_bytes_text("LOCK"), hf_bytes("a\0b", 3),   hf_bytes_text("OWNER"),
        hf_bytes_text("ann"),  hf_bytes_text("WAIT"), hf_bytes_text("3600000")};

    test_server_connect(&server, &subscriber);
    test_server_connect(&server, &waiter);
    test_wire_add_args(&good, 4, asked);
    CHECK_EQ(test_wire_send(&good), HF_OK);
    CHECK_DONE(TEST_ANSWER(&good));
    CHECK_DONE(test_ask(&subscriber, "PSUBSCRIBE hf:lock:*"));
    asked[3] = hf_bytes_text("bob");
    test_wire_add_args(&waiter, 6, asked);
    CHECK_EQ(test_wire_send(&waiter), HF_OK);
    struct hf_bytes channel =
        test_bulk(test_element(TEST_ANSWER(&subscriber), 2));
    CHECK(hf_bytes_equal(channel, hf_bytes("hf:lock:a\0b", 11)));
    test_wire_close(&subscriber);
    test_wire_close(&waiter);
    stop();
}

TEST(a_holder_hears_of_a_set_once_and_of_each_lock_of_its_session)
{
    start();
    struct test_wire holder;

    test_server_connect(&server, &holder);
    CHECK_DONE(test_ask(&holder, "HELLO 3"));
    int64_t id =
        test_number(test_ask(&holder, "SESSION OPEN TTL 3600000"), "session");
    int64_t set = test_number(
        test_ask(&holder, "LOCKSET OWNER o NAME b NAME a SESSION %" PRId64, id),
        "token");
    int64_t one = test_number(
        test_ask(&holder, "LOCK c OWNER o SESSION %" PRId64, id), "token");
    CHECK_DONE(test_ask(&good, "SESSION CLOSE %" PRId64, id));
    CHECK(is_push(TEST_ANSWER(&holder), "lock_lost", "a", set));
    CHECK(is_push(TEST_ANSWER(&holder), "lock_lost", "c", one));
    CHECK(test_is(test_ask(&holder, "PING"), "+PONG\r\n"));
    test_wire_close(&holder);
    stop();
}

TEST(a_holder_that_speaks_resp2_hears_nothing)
{
    start();
    struct test_wire holder;

    test_server_connect(&server, &holder);
    CHECK_DONE(test_ask(&holder, "HELLO 3"));
    CHECK_DONE(test_ask(&holder, "HELLO 2"));
    int64_t gate = take(&holder, "gate", "ann", FOR_EVER_MS);
    CHECK_DONE(test_ask(&good, "REVOKE gate %" PRId64, gate));
    CHECK(test_is(test_ask(&holder, "PING"), "+PONG\r\n"));
    test_wire_close(&holder);
    stop();
}

/* Who does not read hears of as many as there is room for. */
TEST(a_holder_that_does_not_read_costs_bounded_memory)
{
    enum { WAITERS = 20, ROUNDS = 20, WAITS = 100 };
    struct test_wire waiters[WAITERS];
    struct test_wire holder;
    char name[513];
    int pushes = 0;

    memset(name, 'n', 512);
    name[512] = '\0';
    start();
    test_server_connect(&server, &holder);
    CHECK_DONE(test_ask(&holder, "HELLO 3"));
    CHECK_DONE(test_ask(&holder, "LOCK %s OWNER o TTL 3600000", name));
    for (int i = 0; i < WAITERS; i++)
        test_server_connect(&server, &waiters[i]);
    for (int i = 0; i < WAITERS * ROUNDS; i++) {
        for (int k = 0; k < WAITS; k++)
            test_wire_add(&waiters[i % WAITERS], "LOCK %s OWNER w WAIT 1",
                          name);
        CHECK_EQ(test_wire_send(&waiters[i % WAITERS]), HF_OK);
        for (int k = 0; i % WAITERS == WAITERS - 1 && k < WAITERS * WAITS; k++)
            CHECK_ERROR(TEST_ANSWER(&waiters[k % WAITERS]), "TIMEOUT");
    }
    TEST_SEND(&holder, "PING");
    while (TEST_ANSWER(&holder).data[0] == '>')
        pushes++;
    CHECK(pushes > 0);
    CHECK(pushes < WAITERS * ROUNDS * WAITS / 4 * 3);
    for (int i = 0; i < WAITERS; i++)
        test_wire_close(&waiters[i]);
    test_wire_close(&holder);
    stop();
}

TEST(a_bound_session_ends_its_time_after_the_connection)
{
    start();
    struct test_wire holder;

    test_server_connect(&server, &holder);
    CHECK_ERROR(test_ask(&holder, "LOCK gate OWNER ann SESSION 0"), "STATE");
    CHECK_DONE(test_ask(&holder, "SESSION OPEN TTL 1 NAME worker BIND"));
    CHECK_DONE(test_ask(&holder, "LOCK gate OWNER ann SESSION 0"));
    /* its time does not pass while the connection is there */
    struct hf_bytes reply = test_ask(&good, "LOCK gate OWNER bob WAIT 50");
    CHECK_ERROR(reply, "TIMEOUT");
    TEST_SEND(&good, "LOCK gate OWNER bob WAIT %d", FOR_EVER_MS);
    test_wire_close(&holder);
    CHECK_EQ(test_number(TEST_ANSWER(&good), "count"), 1);
    stop();
}

static int64_t open_bound(void)
{
    struct hf_bytes reply =
        test_ask(&good, "SESSION OPEN TTL %d BIND", FOR_EVER_MS);

    return test_number(reply, "session");
}

/* The session of a lock that is taken by SESSION 0. */
static int64_t own_session(const char *name)
{
    CHECK_DONE(test_ask(&good, "LOCK %s OWNER ann SESSION 0", name));
    return test_number(test_ask(&good, "LOCKINFO %s", name), "session");
}

TEST(session_0_is_the_one_that_the_connection_opened_or_kept_last)
{
    start();
    int64_t first = open_bound();
    int64_t second = open_bound();

    CHECK_EQ(own_session("a"), second);
    CHECK_DONE(test_ask(&good, "SESSION KEEP %" PRId64, first));
    CHECK_EQ(own_session("b"), first);
    CHECK_DONE(test_ask(&good, "SESSION CLOSE %" PRId64, first));
    CHECK_EQ(own_session("c"), second);
    CHECK_DONE(test_ask(&good, "SESSION CLOSE %" PRId64, second));
    CHECK_ERROR(test_ask(&good, "LOCK d OWNER ann SESSION 0"), "STATE");
    stop();
}

TEST(a_session_is_taken_over_by_keep_on_another_connection)
{
    start();
    struct test_wire first, second;

    test_server_connect(&server, &first);
    test_server_connect(&server, &second);
    struct hf_bytes reply =
        test_ask(&first, "SESSION OPEN TTL %d BIND", FOR_EVER_MS);
    int64_t id = test_number(reply, "session");
    CHECK_DONE(test_ask(&first, "LOCK gate OWNER ann SESSION %" PRId64, id));
    CHECK_DONE(test_ask(&second, "SESSION KEEP %" PRId64, id));
    test_wire_close(&first);
    reply = test_ask(&good, "SESSION INFO %" PRId64, id);
    CHECK_EQ(test_number(reply, "locks"), 1);
    CHECK_EQ(test_number(reply, "bound"), 1);
    CHECK_DONE(test_ask(&second, "SESSION CLOSE %" PRId64, id));
    CHECK_ERROR(test_ask(&second, "SESSION KEEP %" PRId64, id), "LOST");
    CHECK_DONE(test_ask(&good, "LOCK gate OWNER bob"));
    test_wire_close(&second);
    stop();
}

TEST(a_leader_shows_a_value_and_hands_over)
{
    start();
    struct test_wire next;

    test_server_connect(&server, &next);
    CHECK_ERROR(test_ask(&good, "LEADER boss"), "NOTFOUND");
    struct hf_bytes reply = test_ask(&good, "ELECT boss OWNER ann VALUE a:1");
    int64_t term = test_number(reply, "token");
    TEST_SEND(&next, "ELECT boss OWNER bob VALUE b:1 FOREVER");
    await("boss", 1);
    CHECK_DONE(test_ask(&good, "PROCLAIM boss %" PRId64 " VALUE a:2", term));
    reply = test_ask(&good, "LEADER boss");
    CHECK(hf_bytes_equal(test_text(reply, "value"), hf_bytes_text("a:2")));
    CHECK_EQ(test_number(reply, "waiting"), 1);
    CHECK_DONE(test_ask(&good, "RESIGN boss %" PRId64, term));
    CHECK(test_number(TEST_ANSWER(&next), "token") > term);
    reply = test_ask(&good, "LEADER boss");
    CHECK(hf_bytes_equal(test_text(reply, "value"), hf_bytes_text("b:1")));
    CHECK_ERROR(test_ask(&good, "PROCLAIM boss %" PRId64 " VALUE x", term),
                "LOST");
    test_wire_close(&next);
    stop();
}

TEST(who_waits_for_whom_and_what_happened_can_be_asked)
{
    start();
    struct test_wire waiter;

    test_server_connect(&server, &waiter);
    int64_t token = take(&good, "gate", "ann", FOR_EVER_MS);
    TEST_SEND(&waiter, "LOCK gate OWNER bob WAIT %d NOTE cleaning",
              FOR_EVER_MS);
    await("gate", 1);
    struct hf_bytes edges = test_part(test_ask(&good, "WAITGRAPH"), "edges");
    CHECK_EQ(test_length(edges), 1);
    struct hf_bytes edge = test_element(edges, 0);
    CHECK(hf_bytes_equal(test_text(edge, "owner"), hf_bytes_text("bob")));
    CHECK(hf_bytes_equal(test_text(edge, "holder"), hf_bytes_text("ann")));
    CHECK(hf_bytes_equal(test_text(edge, "by"), hf_bytes_text("grant")));
    CHECK(hf_bytes_equal(test_text(edge, "note"), hf_bytes_text("cleaning")));
    CHECK(hf_bytes_equal(test_bulk(test_ask(&good, "WAITGRAPH DOT")),
                         hf_bytes_text("digraph waits {\n  \"bob\" -> \"ann\" "
                                       "[label=\"gate\"];\n}\n")));
    CHECK_DONE(test_ask(&good, "UNLOCK gate %" PRId64, token));
    CHECK_DONE(TEST_ANSWER(&waiter));
    struct hf_bytes past = test_ask(&good, "EXPLAIN gate");
    static const char *const what[] = {"lock_granted", "lock_released",
                                       "queued", "lock_granted"};
    CHECK_EQ(test_length(past), 4);
    for (size_t i = 0; i < 4; i++)
        CHECK(hf_bytes_equal(test_text(test_element(past, i), "what"),
                             hf_bytes_text(what[i])));
    CHECK_EQ(test_length(test_ask(&good, "EXPLAIN other")), 0);
    test_wire_close(&waiter);
    stop();
}

TEST(a_deadlock_is_told_with_its_members)
{
    start();
    struct test_wire other;

    test_server_connect(&server, &other);
    take(&good, "a", "ann", FOR_EVER_MS);
    take(&other, "b", "bob", FOR_EVER_MS);
    TEST_SEND(&other, "LOCK a OWNER bob WAIT %d NOTE backup", FOR_EVER_MS);
    await("a", 1);
    struct hf_bytes reply =
        test_ask(&good, "LOCK b OWNER ann WAIT %d", FOR_EVER_MS);
    CHECK_ERROR(reply, "DEADLOCK");
    static const char *const parts[] = {
        "'ann' would wait for 'b' (exclusive, 0 ms)",
        ", behind 'bob', who waits for 'a' (exclusive, ", "backup)",
        ", behind 'ann'"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        CHECK(memmem(reply.data, reply.len, parts[i], strlen(parts[i])) !=
              NULL);
    test_wire_close(&other);
    stop();
}

/* The rules are looked at about once a second; the answer says how it was. */
TEST(a_rejected_fence_raises_an_alarm)
{
    start();
    int64_t first = take(&good, "a", "ann", FOR_EVER_MS);
    int64_t second = take(&good, "b", "ann", FOR_EVER_MS);

    CHECK_EQ(test_info(&good, "alarms"), 0);
    CHECK_DONE(test_ask(&good, "FENCE r %" PRId64, second));
    CHECK_ERROR(test_ask(&good, "FENCE r %" PRId64, first), "STALE");
    while (test_info(&good, "alarms") == 0)
        test_daemon_pause();
    CHECK_EQ(test_info(&good, "lock_double_grants_total"), 0);
    stop();
}
