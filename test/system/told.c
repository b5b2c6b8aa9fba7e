/* told.c - what was told stands, also while the disk hangs.
 * tests: also under sanitizers
 */
#include "support/gate.h"

TEST(a_read_does_not_contradict_a_renewal_on_its_way)
{
    start_new();
    uint64_t begun_ms = test_now_ms();
    int64_t token =
        test_number(test_ask(&first, "LOCK a OWNER me TTL 1500"), "token");
    shut_with(&second);
    int64_t before = commands();
    TEST_SEND(&first, "RENEW a %" PRId64 " TTL %d", token, FOR_EVER_MS);
    await_commands(before, 1);
    await_ms(begun_ms + 2000);
    struct test_wire reader;
    test_server_connect(&server, &reader);
    TEST_SEND(&reader, "LOCKINFO a");
    CHECK(is_silent(&reader));
    open_with(&second);
    struct hf_bytes renewed = TEST_ANSWER(&first);
    if (!test_is_error(renewed, "LOST")) { /* slow machine: it came too late */
        CHECK_DONE(renewed);
        CHECK_EQ(test_number(TEST_ANSWER(&reader), "token"), token);
    } else {
        CHECK_ERROR(TEST_ANSWER(&reader), "NOTFOUND");
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
    int64_t before = commands();
    TEST_SEND(&first, "CONFIRM r");
    await_commands(before, 1);
    await_ms(begun_ms + 2000);
    struct test_wire reader;
    test_server_connect(&server, &reader);
    test_wire_add(&reader, "RESERVATION r");
    TEST_SEND(&reader, "STOCK GET apple");
    CHECK(is_silent(&reader));
    open_with(&second);
    bool confirmed = !test_is_error(TEST_ANSWER(&first), "EXPIRED");
    const char *status = confirmed ? "CONFIRMED" : "EXPIRED";
    CHECK(hf_bytes_equal(test_text(TEST_ANSWER(&reader), "status"),
                         hf_bytes_text(status)));
    struct hf_bytes apple = TEST_ANSWER(&reader);
    CHECK_EQ(test_number(apple, "sold"), confirmed ? 3 : 0);
    CHECK_EQ(test_number(apple, "reserved"), 0);
    test_wire_close(&reader);
    stop();
}

/* The lock goes to one who was told TIMEOUT meanwhile; a question behind the
 * UNLOCK, in the same batch, does not see that. */
TEST(a_question_in_the_same_batch_does_not_see_a_hold_that_was_denied)
{
    struct test_wire waiting;

    start_new();
    int64_t token = test_number(
        test_ask(&first, "LOCK a OWNER holder TTL %d", FOR_EVER_MS), "token");
    test_server_connect(&server, &waiting);
    TEST_SEND(&waiting, "LOCK a OWNER late TTL %d WAIT 1500 REQ q",
              FOR_EVER_MS);
    while (test_number(test_ask(&watcher, "LOCKINFO a"), "waiting") != 1)
        ;
    test_server_shut(&server);
    test_wire_add(&first, "UNLOCK a %" PRId64, token);
    test_wire_add(&first, "LOCKINFO a");
    TEST_SEND(&first, "PING");
    await_hang();
    CHECK_ERROR(TEST_ANSWER(&waiting), "TIMEOUT");
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_EQ(test_number(TEST_ANSWER(&first), "remaining"), 0);
    CHECK_ERROR(TEST_ANSWER(&first), "NOTFOUND");
    CHECK_REPLY(TEST_ANSWER(&first), "+PONG");
    test_wire_close(&waiting);
    stop();
}

TEST(safe_ms_is_what_is_left_when_it_is_told)
{
    start_new();
    shut_with(&second);
    int64_t before = commands();
    TEST_SEND(&first, "LOCK a OWNER me TTL 5000");
    await_commands(before, 1);
    uint64_t taken_ms = test_now_ms();
    await_ms(taken_ms + 1000);
    uint64_t opened_ms = test_now_ms();
    open_with(&second);
    int64_t safe_ms = test_number(TEST_ANSWER(&first), "safe_ms");
    CHECK(safe_ms <= (int64_t)(5000 - (opened_ms - taken_ms) + 1));
    stop();
}

/* TIMEOUT is told for a LOCK whose own write hangs. */
static void time_out_flying(struct test_wire *wire, const char *more)
{
    test_server_shut(&server);
    CHECK_ERROR(test_ask(wire, "LOCK flying OWNER me TTL %d WAIT 60%s",
                         FOR_EVER_MS, more),
                "TIMEOUT");
}

TEST(a_timeout_that_was_told_is_the_answer_to_its_req)
{
    start_new();
    time_out_flying(&first, " REQ f");
    CHECK_ERROR(test_ask(&first, "LOCK gathered OWNER me TTL %d WAIT 60 REQ g",
                         FOR_EVER_MS),
                "TIMEOUT");
    CHECK_ERROR(test_ask(&second, "LOCK flying OWNER me TTL %d WAIT 60 REQ f",
                         FOR_EVER_MS),
                "TIMEOUT");
    CHECK(test_server_signal(&server, SIGUSR1));
    /* one behind another: when the first is answered all verdicts are told */
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_DONE(test_ask(&second, "STOCK SET x 2"));
    for (int life = 0; life < 2; life++) {
        CHECK_ERROR(test_ask(&second, "LOCKINFO flying"), "NOTFOUND");
        CHECK_ERROR(test_ask(&second, "LOCKINFO gathered"), "NOTFOUND");
        CHECK_ERROR(test_ask(&second,
                             "LOCK flying OWNER me TTL %d WAIT 60 REQ f",
                             FOR_EVER_MS),
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
    time_out_flying(&first, "");
    CHECK_ERROR(
        test_ask(&first, "LOCK gathered OWNER me TTL %d WAIT 60", FOR_EVER_MS),
        "TIMEOUT");
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(test_ask(&second, "LOCK flying OWNER other"));
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
    TEST_SEND(&second, "LOCK a OWNER late TTL %d WAIT 1500 REQ late",
              FOR_EVER_MS);
    while (test_number(test_ask(&watcher, "LOCKINFO a"), "waiting") != 1)
        ;
    struct test_wire probe;
    test_server_connect(&server, &probe);
    shut_with(&probe);
    TEST_SEND(&first, "UNLOCK a %" PRId64, token);
    CHECK_ERROR(TEST_ANSWER(&second), "TIMEOUT");
    open_with(&probe);
    CHECK_EQ(test_number(TEST_ANSWER(&first), "remaining"), 0);
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
    TEST_SEND(&late, "PING");
    CHECK(is_silent(&late));
    CHECK(is_silent(&late)); /* also when the wait's time is over */
    open_with(&second);
    CHECK_EQ(test_number(TEST_ANSWER(&late), "total"), 7);
    CHECK_ERROR(TEST_ANSWER(&late), "TIMEOUT");
    CHECK_REPLY(TEST_ANSWER(&late), "+PONG");
    test_wire_close(&late);
    stop();
}

TEST(a_stop_answers_a_wait_on_its_way_and_remembers_it)
{
    start_new();
    CHECK_DONE(test_ask(&second, "LOCK a OWNER holder TTL %d", FOR_EVER_MS));
    TEST_SEND(&first, "LOCK a OWNER queued WAIT %d REQ queued", FOR_EVER_MS);
    while (test_number(test_ask(&watcher, "LOCKINFO a"), "waiting") != 1)
        ;
    shut_with(&second);
    struct test_wire late;
    test_server_connect(&server, &late);
    int64_t before = commands();
    TEST_SEND(&late, "LOCK a OWNER late WAIT %d REQ late", FOR_EVER_MS);
    await_commands(before, 1);
    CHECK(test_server_signal(&server, SIGTERM));
    open_with(&second);
    CHECK_ERROR(TEST_ANSWER(&first), "TIMEOUT");
    CHECK_ERROR(TEST_ANSWER(&late), "TIMEOUT");
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
    TEST_SEND(&first, "LOCK a OWNER waiter TTL %d WAIT %d", FOR_EVER_MS,
              FOR_EVER_MS);
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
    int64_t before = commands();
    send_on(&first);
    await_commands(before, 1);
    reply = test_ask(&watcher, "CONFIG GET locks-max");
    CHECK(memmem(reply.data, reply.len, "77", 2) != NULL);
    open_with(&second);
    CHECK_REPLY(TEST_ANSWER(&first), "+OK");
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
    int64_t before = commands();
    TEST_SEND(&first, "RESERVE cart ITEM apple 2 REQ r");
    await_commands(before, 1);
    struct test_wire foreign;
    test_server_connect(&server, &foreign);
    CHECK_ERROR(test_ask(&foreign, "LOCK x OWNER me WAIT 50 REQ r"), "TIMEOUT");
    open_with(&second);
    CHECK_DONE(TEST_ANSWER(&first));
    CHECK_DONE(test_ask(&second, "STOCK SET x 1"));
    CHECK_DONE(test_ask(&first, "RESERVE cart ITEM apple 2 REQ r"));
    test_wire_close(&foreign);
    stop();
}

/* The table is full when the lock comes, and has room when the reservation
 * does: all in one batch, since the server stands still while they are sent.
 * In which order it hears of them is the system's choice, mostly this one; what
 * was told OK stands in any. */
TEST(a_timeout_that_was_not_kept_leaves_the_answer_of_another)
{
    struct test_wire other;

    start_new();
    CHECK_DONE(test_ask(&first, "STOCK SET apple 10 REQ one"));
    stop();
    start(); /* the share counts anew */
    CHECK_DONE(test_ask(&watcher, "CONFIG SET requests-max 2"));
    CHECK_DONE(test_ask(&watcher, "CONFIG SET requests-share 100"));
    test_server_connect(&server, &other);
    CHECK_REPLY(test_ask(&other, "PING"), "+PONG");
    CHECK_REPLY(test_ask(&first, "PING"), "+PONG"); /* it is heard first */
    test_server_shut(&server);
    CHECK(test_server_signal(&server, SIGSTOP));
    TEST_SEND(&first, "STOCK SET pear 1 REQ two");
    TEST_SEND(&second, "LOCK x OWNER me WAIT 50 REQ r");
    TEST_SEND(&watcher, "CONFIG SET requests-max 9");
    TEST_SEND(&other, "RESERVE cart ITEM apple 2 REQ r");
    CHECK(test_server_signal(&server, SIGCONT));
    (void)TEST_ANSWER(&second); /* TIMEOUT */
    CHECK(test_server_signal(&server, SIGUSR1));
    (void)TEST_ANSWER(&first);
    CHECK_REPLY(TEST_ANSWER(&watcher), "+OK");
    bool reserved = TEST_ANSWER(&other).data[0] != '-';
    CHECK_DONE(test_ask(&first, "STOCK SET plum 1"));
    if (reserved)
        CHECK_DONE(test_ask(&other, "RESERVE cart ITEM apple 2 REQ r"));
    test_wire_close(&other);
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
    CHECK_EQ(test_number(TEST_ANSWER(&first), "total"), 1);
    CHECK(test_number(TEST_ANSWER(&first), "token") > 0);
    struct hf_bytes name[] = {hf_bytes_text("LOCKINFO"),
                              hf_bytes_text("a \"b\" c")};
    test_wire_add_args(&second, 2, name);
    send_on(&second);
    CHECK_DONE(TEST_ANSWER(&second));
    stop();
}

/* What was promised for a LOCK is given back when it becomes a TIMEOUT. */
TEST(timeouts_that_were_told_leave_no_memory_behind)
{
    struct test_wire crowd[200];
    int64_t bytes[2] = {0};

    start_new();
    for (int i = 0; i < 200; i++)
        test_server_connect(&server, &crowd[i]);
    CHECK_REPLY(test_ask(&watcher, "CONFIG SET request-keep-ms 1"), "+OK");
    for (int round = 0; round < 2; round++) {
        shut_with(&second);
        for (int i = 0; i < 200; i++) {
            TEST_SEND(&crowd[i], "LOCK %0400d OWNER %0200d WAIT 1 REQ %0100d",
                      i, i, round * 1000 + i);
        }
        for (int i = 0; i < 200; i++)
            CHECK_ERROR(TEST_ANSWER(&crowd[i]), "TIMEOUT");
        open_with(&second);
        for (int i = 0; i < 10; i++) /* time passes, what is over goes */
            CHECK_DONE(test_ask(&first, "STOCK SET x %d", i));
        CHECK_EQ(test_info(&watcher, "requests"), 0);
        bytes[round] = test_info(&watcher, "engine_bytes");
    }
    CHECK(bytes[1] < bytes[0] + 100000);
    for (int i = 0; i < 200; i++)
        test_wire_close(&crowd[i]);
    stop();
}

/* More is gathered than a batch takes: writes are left where they are, and
 * what needs none is answered. */
TEST(a_full_batch_keeps_only_writes_waiting)
{
    enum { CROWD = 8, WRITES = 1500 };
    struct test_wire crowd[CROWD];
    int64_t seen;
    int64_t now = 0;

    start_new();
    CHECK_DONE(test_ask(&first, "LOCK a OWNER me TTL %d", FOR_EVER_MS));
    shut_with(&second);
    for (int i = 0; i < CROWD; i++) { /* each less than a socket takes */
        test_server_connect(&server, &crowd[i]);
        for (int k = 0; k < WRITES; k++)
            test_wire_add(&crowd[i], "STOCK SET %0200d 1", i * WRITES + k);
        send_on(&crowd[i]);
    }
    do { /* until it takes no more */
        seen = now;
        CHECK(is_silent(&second));
        now = commands();
    } while (now > seen + 1);
    CHECK(now < CROWD * WRITES);
    CHECK_REPLY(test_ask(&first, "PING"), "+PONG");
    CHECK_EQ(
        test_number(test_ask(&first, "LIMIT k RATE 1 PER 1000"), "allowed"), 1);
    CHECK_EQ(test_number(test_ask(&first, "LOCKINFO a"), "count"), 1);
    CHECK_ERROR(test_ask(&first, "LOCK a OWNER other"), "BUSY");
    CHECK_ERROR(test_ask(&first, "STOCK GET nothing"), "NOTFOUND");
    CHECK(test_ask(&first, "LOCKS").data[0] == '*');
    open_with(&second);
    for (int i = 0; i < CROWD; i++) {
        for (int k = 0; k < WRITES; k++)
            CHECK_DONE(TEST_ANSWER(&crowd[i]));
        test_wire_close(&crowd[i]);
    }
    stop();
}

/* The share of the client is spent by the very request that it asks again. */
TEST(a_req_on_its_way_is_not_refused_for_want_of_a_share)
{
    start_new();
    CHECK_REPLY(test_ask(&watcher, "CONFIG SET requests-max 4"), "+OK");
    CHECK_DONE(test_ask(&first, "STOCK SET p 100 REQ r0"));
    shut_with(&second);
    int64_t before = commands();
    TEST_SEND(&first, "STOCK ADD p 10 REQ r1");
    await_commands(before, 1);
    test_wire_close(&first);
    test_server_connect(&server, &first);
    test_wire_add(&first, "STOCK ADD p 10 REQ r1");
    TEST_SEND(&first, "STOCK ADD p 10 REQ r2");
    CHECK(is_silent(&first));
    open_with(&second);
    CHECK_EQ(test_number(TEST_ANSWER(&first), "total"), 110);
    CHECK_ERROR(TEST_ANSWER(&first), "OVERLOADED");
    CHECK_EQ(test_number(test_ask(&first, "STOCK GET p"), "total"), 110);
    stop();
}
