/* apply.c - tests of a batch for which there is no memory, and of a grant whose
 * client is gone. */
#include <sys/socket.h>
#include <unistd.h>

#include "support/batch.h"

/* Its time, and then it itself, is put into a batch in which there is room for
 * nothing, or for all but one more entry. */
static void ask_without_memory(void (*fail)(uint64_t at), uint64_t at,
                               bool full, bool refused)
{
    struct test_clock clock;
    struct conn asking;

    start();
    let_a_lock_expire(&clock);
    listening(&asking);
    CHECK_EQ(hf_buf_reserve(&asking.out, 1024), HF_OK);
    if (full) {
        CHECK_EQ(hf_buf_reserve(&server.building.records, 1u << 16), HF_OK);
        do
            submit_tick(&server);
        while (server.building.count < server.building.cap - 1);
    }
    fail(at);
    submit_long(&asking, HOLD_KEY_COUNT, HOLD_ITEMS_MAX, HOLD_SKU_MAX);
    hf_memory_fail_never();
    CHECK_EQ(asking.pending, !refused);
    CHECK_EQ(was_told(&asking, "-OVERLOADED "), refused);
    stop();
}

TEST(a_question_for_which_there_is_no_memory_is_refused)
{
    for (uint64_t at = 0; at <= 3; at++) { /* three are needed */
        ask_without_memory(hf_memory_fail_after, at, false, at < 3);
        ask_without_memory(hf_memory_fail_once, at, false, at < 3);
    }
    ask_without_memory(hf_memory_fail_after, 0, true, true);
}

/* What needs no place in a batch, but comes behind what is on its way. */
TEST(a_full_batch_takes_only_what_can_be_told_at_once)
{
    struct conn asking = gone(), writing = gone();

    start();
    while (!commit_is_full(&server))
        submit_long(&writing, HOLD_BOUNDS, HOLD_ITEMS_MAX, HOLD_SKU_MAX);
    command = (struct hold_command){.kind = HOLD_LOCK_INFO,
                                    .name = hf_bytes_text("door")};
    CHECK(submit_admits(&server, &asking, &command));
    asking.pending = 1;
    CHECK(!submit_admits(&server, &asking, &command));
    stop();
}

/* It found no room in a batch, and goes on when that is on its way: otherwise
 * those who come while it is would be before it. */
TEST(who_waits_for_room_in_a_batch_goes_on_when_there_is_some)
{
    struct conn parked = gone(), writing = gone();

    start_with(JOURNAL_ALWAYS);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    while (!commit_is_full(&server))
        submit_long(&writing, HOLD_BOUNDS, HOLD_ITEMS_MAX, HOLD_SKU_MAX);
    parked.parked = true;
    server.parked = &parked;
    server_turn(&server);
    CHECK_EQ(server.flight_count, 1);
    CHECK(!parked.parked);
    CHECK(server.parked == NULL);
    test_disk_let_go(&disk);
    write_one();
    stop();
}

/* The log has no room for its record, and gets none: it is told so, and waits
 * no more. */
TEST(a_wait_whose_record_finds_no_memory_is_over)
{
    struct conn waiting, writing = gone();

    listening(&waiting);
    CHECK_EQ(hf_buf_reserve(&waiting.out, 1024), HF_OK);
    start();
    submit_long(&writing, HOLD_BOUNDS, HOLD_ITEMS_MAX, HOLD_SKU_MAX);
    submit_long(&writing, HOLD_BOUNDS, HOLD_ITEMS_MAX, HOLD_SKU_MAX);
    lock_and_wait(&waiting);
    CHECK(waiting.wait != NULL);
    hf_memory_fail_after(0);
    server_turn(&server);
    hf_memory_fail_never();
    CHECK(was_told(&waiting, "-OVERLOADED "));
    CHECK(waiting.wait == NULL);
    CHECK(!lock_wait_knows(&server.lock_waits, hf_bytes_text("q")));
    stop();
}

/* A LOCK is gathered while the disk hangs, and is told TIMEOUT. The log has no
 * memory for its record, which says so. */
static void tell_without_memory(bool fails)
{
    struct conn waiting, again, writing = gone();
    struct test_clock clock;

    listening(&waiting);
    listening(&again);
    start_with(JOURNAL_ALWAYS);
    clock.now_ns = hf_clock_now_ns(server.clock);
    server.clock = test_clock(&clock);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    submit_long(&writing, HOLD_BOUNDS, 1, 1);
    server_turn(&server);
    submit_all_but_a_lock(&writing);
    lock_and_wait(&waiting);
    test_clock_advance(&clock, 61 * 1000000);
    commit_due(&server);
    CHECK(was_told(&waiting, "-TIMEOUT "));
    hf_memory_fail_after(0);
    write_one();
    hf_memory_fail_never();
    CHECK_EQ(writing.pending, 2); /* their batch hangs */
    if (fails)
        test_disk_fail(&disk, TEST_DISK_BATCH, 0, EIO);
    write_one();
    CHECK_EQ(writing.pending, 0);
    CHECK_EQ(server.flight_count, 1); /* the record is a verdict */
    CHECK(lock_wait_was_told(&server.lock_waits, hf_bytes_text("q")));
    write_one();
    CHECK_EQ(server.failed, fails);
    CHECK(commit_is_idle(&server));
    CHECK_EQ(lock_wait_knows(&server.lock_waits, hf_bytes_text("q")), fails);
    lock_and_wait(&again);
    CHECK(was_told(&again, fails ? "-JOURNAL " : "-TIMEOUT "));
    CHECK_EQ(counts().locks, 0);
    stop();
}

TEST(a_told_timeout_whose_record_finds_no_memory_is_still_owed)
{
    tell_without_memory(false);
}

TEST(a_told_timeout_that_is_owed_is_not_when_the_journal_fails)
{
    tell_without_memory(true);
}

/* A connection whose client has reset it, which nobody has read. */
static struct conn *reset(void)
{
    struct linger at_once = {.l_onoff = 1};
    struct sockaddr_storage at;
    int len = sizeof at;
    struct conn *conn = hf_alloc_zeroed(sizeof *conn);
    int client = socket(AF_INET, SOCK_STREAM, 0);

    CHECK_EQ(uv_tcp_getsockname(&server.listener, (struct sockaddr *)&at, &len),
             0);
    CHECK_EQ(connect(client, (struct sockaddr *)&at, (socklen_t)len), 0);
    conn->server = &server;
    conn->reply = (struct reply){.out = &conn->out, .codec = &resp2_codec};
    server.conn_count++;
    CHECK_EQ(uv_tcp_init(&server.loop, &conn->tcp), 0);
    conn->tcp.data = conn;
    int fd = accept(server.listener.io_watcher.fd, NULL, NULL);
    CHECK_EQ(uv_tcp_open(&conn->tcp, fd), 0);
    CHECK_EQ(
        setsockopt(client, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once), 0);
    close(client);
    return conn;
}

/* One that was not read from for a while may have gone meanwhile. What counts
 * is whether the loop has looked at it since. */
TEST(one_that_is_read_from_again_may_be_gone)
{
    for (uint64_t turns = 0; turns < 3; turns++) {
        start();
        struct conn *asking = reset();
        asking->reading = true;
        server.turn = turns;
        command = (struct hold_command){.kind = HOLD_LOCK,
                                        .name = hf_bytes_text("door"),
                                        .owner = hf_bytes_text("me"),
                                        .ttl_ms = HOLD_TTL_MAX_MS};
        submit(asking);
        for (int i = 0; i < 3; i++) {
            server_turn(&server);
            commit_poll(&server);
        }
        CHECK_EQ(counts().locks, turns > 1);
        conn_close(asking);
        stop();
    }
}

/* The client is gone that sends a re-entry and more, perhaps its end, or that
 * of another hold: another one's UNLOCK in the same batch meets no more than
 * one hold. */
TEST(a_reentry_of_one_who_is_gone_is_not_counted)
{
    for (int ended = 0; ended < 4; ended++) {
        struct conn leaving = gone(), holding;
        start();
        listening(&holding);
        command = (struct hold_command){.kind = HOLD_LOCK,
                                        .name = hf_bytes_text("door"),
                                        .owner = hf_bytes_text("me"),
                                        .ttl_ms = HOLD_TTL_MAX_MS};
        uint64_t token = (uint64_t)reply_get_number(apply()->body, FIELD_TOKEN);
        submit(&leaving);
        command = (struct hold_command){
            .kind = ended > 0 ? HOLD_UNLOCK : HOLD_FENCE,
            .name = hf_bytes_text(ended == 2 ? "gate" : "door"),
            .token = ended == 3 ? token + 1 : token};
        submit(&leaving);
        command.kind = HOLD_UNLOCK;
        command.name = hf_bytes_text("door");
        command.token = token;
        submit(&holding);
        CHECK_EQ(server.building.count, 3);
        server_turn(&server);
        CHECK(was_told(&holding, "*2\r\n$9\r\nremaining\r\n:0"));
        CHECK_EQ(server.orphans, 0);
        CHECK_EQ(counts().locks, 0);
        stop();
    }
}

/* It is gone before two re-entries and one UNLOCK are journaled: the UNLOCK is
 * for the first of them, and the second is not counted. */
TEST(an_unlock_keeps_one_reentry_of_one_who_is_gone)
{
    struct conn leaving = gone(), holding;

    start();
    listening(&holding);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("me"),
                                    .ttl_ms = HOLD_TTL_MAX_MS};
    command.token = (uint64_t)reply_get_number(apply()->body, FIELD_TOKEN);
    submit(&leaving);
    submit(&leaving);
    command.kind = HOLD_UNLOCK;
    submit(&leaving);
    submit(&holding);
    CHECK_EQ(server.building.count, 4);
    server_turn(&server);
    CHECK(was_told(&holding, "*2\r\n$9\r\nremaining\r\n:0"));
    CHECK_EQ(server.orphans, 0);
    CHECK_EQ(counts().locks, 0);
    stop();
}

/* It goes while two re-entries and one UNLOCK are on their way: the UNLOCK ends
 * one of them, and the server the other. */
TEST(an_unlock_ends_one_reentry_of_one_who_is_gone)
{
    struct conn leaving;

    start_with(JOURNAL_ALWAYS);
    listening(&leaving);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("me"),
                                    .ttl_ms = HOLD_TTL_MAX_MS};
    uint64_t token = (uint64_t)reply_get_number(apply()->body, FIELD_TOKEN);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    submit(&leaving);
    submit(&leaving);
    command.kind = HOLD_UNLOCK;
    command.token = token;
    submit(&leaving);
    server_turn(&server);
    leaving.closing = true;
    write_one();
    test_disk_let_go(&disk);
    for (int i = 0; i < 3; i++) {
        commit_poll(&server);
        server_turn(&server);
    }
    CHECK_EQ(server.orphans, 0);
    command.kind = HOLD_LOCK_INFO;
    command.now_us = server_now_us(&server);
    CHECK_EQ(
        reply_get_number(hold_ask(server.engine, &command)->body, FIELD_COUNT),
        1);
    stop();
}

/* Whichever allocation fails, a grant that reaches nobody is given back. */
TEST(a_grant_to_one_who_is_gone_is_given_back_without_memory)
{
    for (uint64_t memory = 0; memory < 12; memory++) {
        struct conn asking;

        start_with(JOURNAL_ALWAYS);
        listening(&asking);
        test_disk_hold(&disk, TEST_DISK_BATCH);
        lock_at_once(&asking, "");
        server_turn(&server);
        CHECK(server.flight_count > 0);
        asking.closing = true;
        test_disk_let_go(&disk);
        commit_poll(&server);
        hf_memory_fail_after(memory);
        server_turn(&server);
        hf_memory_fail_never();
        for (int i = 0; i < 3; i++) {
            commit_poll(&server);
            server_turn(&server);
        }
        CHECK_EQ(counts().locks, 0);
        CHECK_EQ(server.orphans, 0);
        CHECK_EQ(asking.pending, 0);
        CHECK_EQ(asking.out.len, 0);
        stop();
    }
}
