/* gone.c - clients that go, or have said all, while the disk hangs.
 * tests: also under sanitizers
 */
#include <netinet/in.h>
#include <sys/socket.h>

#include "support/gate.h"

static void reset(struct test_wire *wire)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    CHECK_EQ(setsockopt(wire->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now), 0);
    test_wire_close(wire);
}

/* The server has noticed that only the others are connected. */
static void await_clients(int64_t count)
{
    while (test_info(&watcher, "connected_clients") != count)
        ;
}

static void check_orphan(const char *lock)
{
    start_new();
    shut_with(&second);
    int64_t before = commands();
    TEST_SEND(&first, "LOCK %s", lock);
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
        test_server_shut(&server);
        TEST_SEND(&first, "LOCK a OWNER me TTL %d%s", FOR_EVER_MS,
                  i == 0 ? "" : " WAIT 60000");
        await_hang();
        reset(&first);
        await_clients(2);
        CHECK(test_server_signal(&server, SIGUSR1));
        CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
        CHECK_DONE(test_ask(&second, "STOCK SET x 2"));
        CHECK_ERROR(test_ask(&second, "LOCKINFO a"), "NOTFOUND");
        stop();
    }
}

/* One who is gone has sent a re-entry and its end: together they change
 * nothing, whether both are on their way or the second is gathered behind. */
static void check_reentry(bool together)
{
    start_new();
    int64_t token = test_number(
        test_ask(&second, "LOCK a OWNER me TTL %d", FOR_EVER_MS), "token");
    test_server_shut(&server);
    if (together)
        test_wire_add(&first, "LOCK a OWNER me TTL %d", FOR_EVER_MS);
    else
        TEST_SEND(&first, "LOCK a OWNER me TTL %d", FOR_EVER_MS);
    if (!together)
        await_hang();
    int64_t before = commands();
    TEST_SEND(&first, "UNLOCK a %" PRId64 " REQ q", token);
    await_hang();
    if (!together)
        await_commands(before, 1);
    reset(&first);
    await_clients(2);
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_DONE(test_ask(&second, "STOCK SET x 2"));
    struct hf_bytes told =
        test_ask(&second, "UNLOCK a %" PRId64 " REQ q", token);
    CHECK_EQ(test_number(told, "remaining"), 1);
    CHECK_EQ(test_number(test_ask(&second, "LOCKINFO a"), "count"), 1);
    stop();
}

/* The same of every command that takes and every one that gives back. */
static void check_pair(const char *take, const char *give, bool flying)
{
    start_new();
    int64_t token = test_number(
        test_ask(&second, "%s OWNER me TTL %d", take, FOR_EVER_MS), "token");
    if (flying)
        test_server_shut(&server);
    else
        shut_with(&second);
    int64_t before = commands();
    test_wire_add(&first, "%s OWNER me TTL %d", take, FOR_EVER_MS);
    TEST_SEND(&first, "%s %" PRId64, give, token);
    await_hang();
    await_commands(before, flying ? 2 : 1);
    reset(&first);
    await_clients(2);
    if (flying)
        CHECK(test_server_signal(&server, SIGUSR1));
    else
        open_with(&second);
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_DONE(test_ask(&second, "STOCK SET x 2"));
    CHECK_EQ(test_number(test_ask(&second, "LOCKINFO a"), "count"), 1);
    stop();
}

TEST(what_one_who_went_took_again_and_gave_back_is_held_as_before)
{
    static const char *const pairs[][2] = {
        {"ELECT a", "RESIGN a"},
        {"ELECT a", "UNLOCK a"},
        {"LOCK a", "RESIGN a"},
        {"LOCK a", "UNLOCK a"},
        {"LOCKSET NAME a NAME b", "UNLOCKSET"},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        check_pair(pairs[i][0], pairs[i][1], true);
        check_pair(pairs[i][0], pairs[i][1], false);
    }
}

TEST(a_reentry_is_given_back_once_by_one_who_went)
{
    check_reentry(true);
    check_reentry(false);
}

/* Both are gathered behind a write that hangs; `between` keeps the second from
 * being run. A half-closed client is gone only when it resets. */
static void check_gathered(const char *between, bool half_closed)
{
    start_new();
    int64_t token = test_number(
        test_ask(&second, "LOCK a OWNER me TTL %d", FOR_EVER_MS), "token");
    shut_with(&second);
    int64_t before = commands();
    test_wire_add(&first, "LOCK a OWNER me TTL %d", FOR_EVER_MS);
    if (between[0] != '\0')
        test_wire_add(&first, "%s", between);
    TEST_SEND(&first, "UNLOCK a %" PRId64, token);
    await_commands(before, 1);
    if (half_closed) {
        CHECK_EQ(shutdown(first.fd, SHUT_WR), 0);
        CHECK(is_silent(&first));
    }
    reset(&first);
    if (!half_closed)
        await_clients(2);
    open_with(&second);
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_DONE(test_ask(&second, "STOCK SET x 2"));
    CHECK_EQ(test_number(test_ask(&second, "LOCKINFO a"), "count"), 1);
    stop();
}

TEST(a_gathered_reentry_and_its_end_change_nothing_when_their_client_goes)
{
    static const char *const between[] = {"", "LOCKINFO a", "PING", "LOCKS"};

    for (size_t i = 0; i < sizeof between / sizeof *between; i++) {
        check_gathered(between[i], false);
        check_gathered(between[i], true);
    }
}

/* An UNLOCK that was carried out before does not give the re-entry back. */
TEST(a_repeated_unlock_does_not_count_for_a_reentry_of_one_who_went)
{
    start_new();
    int64_t token = test_number(
        test_ask(&second, "LOCK a OWNER me TTL %d", FOR_EVER_MS), "token");
    CHECK_DONE(test_ask(&second, "LOCK a OWNER me TTL %d", FOR_EVER_MS));
    CHECK_DONE(test_ask(&second, "LOCK a OWNER me TTL %d", FOR_EVER_MS));
    CHECK_DONE(test_ask(&second, "UNLOCK a %" PRId64 " REQ u", token));
    test_server_shut(&server);
    test_wire_add(&first, "LOCK a OWNER me TTL %d", FOR_EVER_MS);
    TEST_SEND(&first, "UNLOCK a %" PRId64 " REQ u", token);
    await_hang();
    reset(&first);
    await_clients(2);
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_DONE(test_ask(&second, "STOCK SET x 2"));
    CHECK_EQ(test_number(test_ask(&second, "LOCKINFO a"), "count"), 2);
    stop();
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

/* It went while the server stood still: what has expired is looked at before
 * what was read. */
TEST(a_client_that_went_unread_is_not_granted)
{
    start_new();
    uint64_t begun_ms = test_now_ms();
    CHECK_DONE(test_ask(&second, "LOCK a OWNER holder TTL 700"));
    TEST_SEND(&first, "LOCK a OWNER gone TTL %d WAIT %d", FOR_EVER_MS,
              FOR_EVER_MS);
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

TEST(a_wait_that_is_taken_over_counts_again_when_it_is_granted)
{
    start_new();
    int64_t token = test_number(
        test_ask(&watcher, "LOCK x OWNER a TTL %d", FOR_EVER_MS), "token");
    TEST_SEND(&first, "LOCK x OWNER b TTL 1000 WAIT %d REQ r", FOR_EVER_MS);
    while (test_number(test_ask(&watcher, "LOCKINFO x"), "waiting") == 0)
        ;
    shut_with(&second);
    int64_t clients = test_info(&watcher, "connected_clients");
    test_wire_close(&first);
    while (test_info(&watcher, "connected_clients") == clients)
        ;
    test_server_connect(&server, &first);
    int64_t before = commands();
    TEST_SEND(&first, "LOCK x OWNER b TTL 1000 WAIT %d REQ r", FOR_EVER_MS);
    await_commands(before, 1);
    open_with(&second);
    CHECK_DONE(test_ask(&watcher, "UNLOCK x %" PRId64, token));
    CHECK_DONE(TEST_ANSWER(&first));
    CHECK_EQ(test_info(&watcher, "lock_wait_seconds_count{result=\"granted\"}"),
             1);
    CHECK_EQ(test_info(&watcher, "lock_wait_seconds_count{result=\"left\"}"),
             1);
    stop();
}

/* One that waits must not close its side, before or after; what it was owed
 * before is told. */
TEST(one_that_has_closed_its_side_does_not_wait_for_permits)
{
    for (int early = 0; early < 2; early++) {
        start_new();
        (void)test_ask(&watcher, "LIMIT k RATE 1 PER %d", FOR_EVER_MS);
        shut_with(&second);
        int64_t before = commands();
        test_wire_add(&first, "STOCK SET x 1");
        TEST_SEND(&first, "LIMIT k RATE 1 PER %d WAIT %d", FOR_EVER_MS,
                  FOR_EVER_MS);
        await_commands(before, 1);
        if (early) {
            CHECK_EQ(shutdown(first.fd, SHUT_WR), 0);
            CHECK(is_silent(&first));
        }
        open_with(&second);
        CHECK_DONE(TEST_ANSWER(&first));
        if (!early) {
            CHECK(is_silent(&first));
            CHECK_EQ(shutdown(first.fd, SHUT_WR), 0);
        }
        CHECK(test_wire_ends(&first));
        await_clients(2);
        CHECK_EQ(test_info(&watcher, "limit_waiters"), 0);
        stop();
    }
}

/* A listing waits for time to pass, and its client has said all. False: what
 * was to be over while the disk hangs was over before. */
static bool ask_half_closed(unsigned ttl_ms)
{
    struct hf_bytes reply;

    start_new();
    CHECK_DONE(test_ask(&first, "STOCK SET apple 3"));
    CHECK_DONE(test_ask(&first, "RESERVE r ITEM apple 1 TTL %u", ttl_ms));
    uint64_t over_ms = test_now_ms() + ttl_ms + 5;
    shut_with(&second);
    await_ms(over_ms);
    int64_t before = commands();
    TEST_SEND(&first, "STOCK LIST apple");
    CHECK_EQ(shutdown(first.fd, SHUT_WR), 0);
    test_wire_add(&watcher, "PING"); /* read after it, or in the same turn */
    send_on(&watcher);
    CHECK_REPLY(TEST_ANSWER(&watcher), "+PONG");
    CHECK(commands() > before);
    enum hf_status status = test_wire_read_within(&first, GLANCE_MS, &reply);
    CHECK(status == HF_TIMEOUT || status == HF_OK); /* not closed */
    return status == HF_TIMEOUT;
}

TEST(a_half_closed_client_gets_a_listing_that_had_to_wait)
{
    unsigned ttl_ms = 100;

    while (!ask_half_closed(ttl_ms))
        ttl_ms *= 2;
    open_with(&second);
    struct hf_bytes reply = TEST_ANSWER(&first);
    CHECK(memmem(reply.data, reply.len, "apple", 5) != NULL);
    CHECK(test_wire_ends(&first));
    stop();
}
