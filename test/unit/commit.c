/* commit.c - tests of a journal that fails between two batches, of one that
 * hangs in two of them, and of when a batch is committed and answered. */
#include "support/batch.h"

TEST(a_verdict_for_which_there_is_no_memory_is_still_owed)
{
    enum { LOCKS = 400 };
    char name[NAME_BYTES + 1];

    start();
    for (int i = 0; i < LOCKS; i++) {
        snprintf(name, sizeof name, "%0*d", NAME_BYTES, i);
        command = (struct hold_command){.kind = HOLD_LOCK,
                                        .name = hf_bytes_text(name),
                                        .owner = hf_bytes_text("me"),
                                        .ttl_ms = HOLD_TTL_MAX_MS};
        const struct hold_out *out = apply();
        CHECK_EQ(out->code, HOLD_OK);
        CHECK(lock_wait_spare(&server));
        lock_wait_orphan(&server, command.name,
                         (uint64_t)reply_get_number(out->body, FIELD_TOKEN));
    }
    for (uint64_t memory = 0; memory < 30; memory++) {
        hf_memory_fail_after(memory);
        server_turn(&server);
        hf_memory_fail_never();
    }
    for (int i = 0; i < LOCKS && server.lock_waits.owed != NULL; i++)
        server_turn(&server);
    CHECK_EQ(counts().locks, 0);
    CHECK_EQ(server.orphans, 0);
    stop();
}

/* More is over than the records before the question sweep, and the record that
 * would have swept the rest does not fit any more: the journal has 64 KiB for
 * a batch, and gets no more. */
TEST(a_question_whose_time_cannot_pass_is_refused)
{
    enum { COUNT = 1000 };
    struct conn asking = gone();
    struct conn writing = gone();

    start();
    struct test_clock clock = {.now_ns = hf_clock_now_ns(server.clock)};
    server.clock = test_clock(&clock);
    command = (struct hold_command){.kind = HOLD_STOCK_SET,
                                    .name = hf_bytes_text("apple"),
                                    .amount = 1000000};
    CHECK_EQ(apply()->code, HOLD_OK);
    for (size_t last = 1; last < 20; last += 3) {
        for (int i = 0; i < COUNT; i++) {
            command = (struct hold_command){.kind = HOLD_RESERVE, .ttl_ms = 1};
            CHECK_EQ(hold_add_item(&command, hf_bytes_text("apple"), 1), HF_OK);
            CHECK_EQ(apply()->code, HOLD_OK);
        }
        test_clock_advance(&clock, 1000000);
        submit_long(&writing, HOLD_BOUNDS, HOLD_ITEMS_MAX, last);
        submit_long(&writing, HOLD_BOUNDS, HOLD_ITEMS_MAX - 9, HOLD_SKU_MAX);
        command = (struct hold_command){.kind = HOLD_STOCK_GET};
        CHECK_EQ(hold_add_item(&command, hf_bytes_text("apple"), 0), HF_OK);
        submit(&asking);
        CHECK_EQ(asking.pending, 1);
        hf_memory_fail_after(1);
        server_turn(&server);
        hf_memory_fail_never();
        CHECK_EQ(asking.pending, 0);
        CHECK_EQ(writing.pending, 0);
    }
    stop();
}

static void fail_without_a_batch(void)
{
    test_disk_fail(&disk, TEST_DISK_WRITE, 0, EIO);
    CHECK_EQ(log_note(server.log, 1), HF_IO);
    CHECK(!server.failed);
    commit_tend(&server);
    server_turn(&server);
    CHECK(server.failed);
}

TEST(who_waits_for_a_batch_goes_on_when_the_journal_fails_without_one)
{
    struct conn parked = gone();

    start();
    parked.parked = true;
    server.parked = &parked;
    fail_without_a_batch();
    CHECK(!parked.parked);
    CHECK(server.parked == NULL);
    stop();
}

static void settle(void)
{
    for (int i = 0; i < 4; i++) {
        commit_poll(&server);
        server_turn(&server);
    }
}

/* TIMEOUT is told while the LOCK is on its way. */
static void time_out(struct conn *asking, struct test_clock *clock)
{
    start_with(JOURNAL_ALWAYS); /* else a write does not wait for the disk */
    clock->now_ns = hf_clock_now_ns(server.clock);
    server.clock = test_clock(clock);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    lock_and_wait(asking);
    server_turn(&server);
    CHECK(server.flight_count > 0);
    CHECK_EQ(asking->out.len, 0);
    test_clock_advance(clock, 61 * 1000000);
    commit_due(&server);
    server_turn(&server);
    CHECK(was_told(asking, "-TIMEOUT "));
    CHECK_EQ(counts().locks, 0);
}

/* In nanoseconds it is more than 64 bits have: 448,384 of them are over. */
TEST(a_wait_for_centuries_does_not_time_out)
{
    struct conn asking;

    listening(&asking);
    start_with(JOURNAL_ALWAYS);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("me"),
                                    .ttl_ms = HOLD_TTL_MAX_MS,
                                    .wait_ms = UINT64_MAX / 1000000 + 1};
    submit(&asking);
    server_turn(&server);
    struct test_clock clock = {.now_ns = asking.wait->came_ns + 1000000000};
    server.clock = test_clock(&clock);
    commit_due(&server);
    CHECK_EQ(asking.out.len, 0);
    CHECK(asking.wait != NULL);
    test_disk_let_go(&disk);
    settle();
    CHECK(was_told(&asking, "*8"));
    stop();
}

/* The lock was granted, after TIMEOUT was told; the record that takes it back
 * is on its way. */
TEST(a_timeout_is_told_again_while_its_verdict_is_on_its_way)
{
    struct conn asking, again;
    struct test_clock clock;

    listening(&asking);
    listening(&again);
    time_out(&asking, &clock);
    write_one();
    CHECK(server.flight_count > 0);
    CHECK_EQ(counts().locks, 1);
    lock_and_wait(&again);
    CHECK(was_told(&again, "-TIMEOUT "));
    write_one();
    CHECK(server.flight_count == 0);
    CHECK_EQ(counts().locks, 0);
    lock_and_wait(&again);
    CHECK(was_told(&again, "-TIMEOUT "));
    CHECK_EQ(asking.out.len, 0);
    stop();
}

/* Nobody looks from time to time. */
TEST(the_end_of_a_commit_wakes_the_loop)
{
    struct conn writing;

    listening(&writing);
    start_with(JOURNAL_ALWAYS);
    uv_timer_stop(&server.tend_timer);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    command = (struct hold_command){
        .kind = HOLD_STOCK_SET, .name = hf_bytes_text("apple"), .amount = 1};
    submit(&writing);
    server_turn(&server);
    CHECK_EQ(writing.pending, 1);
    test_disk_let_go(&disk);
    for (int i = 0; i < 1000 && writing.pending > 0; i++)
        uv_run(&server.loop, UV_RUN_ONCE);
    CHECK_EQ(writing.pending, 0);
    hf_buf_destroy(&writing.out);
    stop();
}

/* It goes, as far as those who wait are concerned. */
static void leave(struct conn *conn)
{
    conn->closing = true;
    waits_leave(&server, conn);
}

/* The first two wait, and go while the lock is on its way to the first. The
 * record that passes it on to the second, and the one that would end the
 * second's wait, are on their way when its REQ comes again: that is told
 * TIMEOUT, so the second must not keep the lock. */
static void tell_against_a_kept_lock(bool full)
{
    struct conn before, asking, again, unlocking, writing = gone();
    struct test_clock clock;

    listening(&before);
    listening(&asking);
    listening(&again);
    listening(&unlocking);
    start_with(JOURNAL_ALWAYS);
    clock.now_ns = hf_clock_now_ns(server.clock);
    server.clock = test_clock(&clock);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("you"),
                                    .ttl_ms = HOLD_TTL_MAX_MS};
    uint64_t token = (uint64_t)reply_get_number(apply()->body, FIELD_TOKEN);
    command.owner = hf_bytes_text("they");
    command.wait_ms = HOLD_TTL_MAX_MS;
    submit(&before);
    settle();
    lock_and_wait(&asking);
    settle();
    CHECK_EQ(counts().waiters, 2);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    command = (struct hold_command){
        .kind = HOLD_UNLOCK, .name = hf_bytes_text("door"), .token = token};
    submit(&unlocking);
    server_turn(&server);
    leave(&before);
    leave(&asking);
    write_one(); /* the verdicts hang */
    CHECK(was_told(&unlocking, "*2"));
    if (full)
        submit_all_but_a_lock(&writing);
    lock_and_wait(&again);
    test_clock_advance(&clock, 61 * 1000000);
    commit_due(&server);
    CHECK(was_told(&again, "-TIMEOUT "));
    if (full)
        hf_memory_fail_after(0);
    write_one();
    hf_memory_fail_never();
    CHECK_EQ(counts().locks, 1);
    test_disk_let_go(&disk);
    settle();
    CHECK_EQ(counts().locks, 0);
    CHECK_EQ(server.orphans, 0);
    lock_and_wait(&again);
    CHECK(was_told(&again, "-TIMEOUT "));
    stop();
}

TEST(a_timeout_stands_although_the_lock_was_kept_for_its_req)
{
    tell_against_a_kept_lock(false);
}

TEST(so_it_does_when_the_log_has_no_memory_for_it)
{
    tell_against_a_kept_lock(true);
}

/* The lock stays held, since nothing can be written; but who was told TIMEOUT
 * is not told of it. */
TEST(a_timeout_stands_when_the_journal_fails_before_its_verdict)
{
    struct conn asking, again;
    struct test_clock clock;

    listening(&asking);
    listening(&again);
    time_out(&asking, &clock);
    test_disk_fail(&disk, TEST_DISK_BATCH, 0, EIO); /* of the verdict */
    write_one();
    CHECK_EQ(counts().locks, 1);
    write_one();
    CHECK(server.failed);
    CHECK_EQ(server.orphans, 0);
    lock_and_wait(&again);
    CHECK(was_told(&again, "-JOURNAL "));
    stop();
}

static uint64_t counted(enum metrics_wait end)
{
    struct hf_histogram_stats stats;

    hf_histogram_stats(server.metrics.wait_us[end], &stats);
    return stats.count;
}

/* TIMEOUT is told while the disk hangs, and then the journal fails, which ends
 * all waits. */
TEST(a_wait_is_counted_once)
{
    struct conn asking, writing = gone();
    struct test_clock clock;

    listening(&asking);
    start_with(JOURNAL_ALWAYS);
    clock.now_ns = hf_clock_now_ns(server.clock);
    server.clock = test_clock(&clock);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("you"),
                                    .ttl_ms = HOLD_TTL_MAX_MS};
    CHECK_EQ(apply()->code, HOLD_OK);
    lock_and_wait(&asking);
    settle();
    CHECK_EQ(counts().waiters, 1);
    test_disk_fail(&disk, TEST_DISK_BATCH, 0, EIO);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    submit_long(&writing, HOLD_BOUNDS, 1, 1);
    server_turn(&server);
    test_clock_advance(&clock, 61 * 1000000);
    commit_due(&server);
    CHECK(was_told(&asking, "-TIMEOUT "));
    CHECK_EQ(counted(METRICS_TIMED_OUT), 1);
    test_disk_let_go(&disk);
    settle();
    CHECK(server.failed);
    CHECK_EQ(counted(METRICS_TIMED_OUT), 1);
    CHECK_EQ(counted(METRICS_LEFT), 0);
    CHECK_EQ(counted(METRICS_GRANTED), 0);
    stop();
}

static bool never_leads(const struct log *log)
{
    (void)log;
    return false;
}

/* Another server may know better, and no record can be written that shows who
 * leads. */
TEST(a_question_without_a_record_is_refused_unless_the_log_leads)
{
    struct conn asking;

    start();
    fail_without_a_batch();
    const struct log_ops *ops = server.log->ops;
    struct log_ops others = *ops;
    others.leads = never_leads;
    for (int leads = 0; leads < 2; leads++) {
        server.log->ops = leads ? ops : &others;
        listening(&asking);
        command = (struct hold_command){.kind = HOLD_STOCK_GET};
        CHECK_EQ(hold_add_item(&command, hf_bytes_text("apple"), 0), HF_OK);
        submit(&asking);
        server_turn(&server);
        CHECK(was_told(&asking, leads ? "-NOTFOUND " : "-JOURNAL "));
    }
    stop();
}

/* A LOCK with WAIT of one who holds the lock may be told TIMEOUT, and counts
 * until that is written down. */
TEST(what_counts_a_reentry_does_not_share_its_batch)
{
    static const char *const owners[] = {"you", "me"};
    static const char *const names[] = {"gate", "hatch"};
    struct conn waiting, holding;

    for (int i = 0; i < 2; i++) {
        listening(&waiting);
        listening(&holding);
        start_with(JOURNAL_ALWAYS);
        command = (struct hold_command){.kind = HOLD_LOCK,
                                        .name = hf_bytes_text(names[i]),
                                        .owner = hf_bytes_text("me"),
                                        .ttl_ms = HOLD_TTL_MAX_MS};
        CHECK_EQ(apply()->code, HOLD_OK);
        command.owner = hf_bytes_text(owners[i]);
        command.wait_ms = 60;
        submit(&waiting);
        CHECK_EQ(server.building.count, 1);
        command = (struct hold_command){
            .kind = HOLD_UNLOCK, .name = hf_bytes_text(names[i]), .token = 1};
        CHECK_EQ(submit_admits(&server, &holding, &command), i == 0);
        command.kind = HOLD_FENCE;
        CHECK(submit_admits(&server, &holding, &command));
        settle();
        command.kind = HOLD_UNLOCK;
        CHECK(submit_admits(&server, &holding, &command));
        hf_buf_destroy(&waiting.out);
        stop();
    }
}

/* Nobody can say who holds it. */
TEST(a_lock_that_is_over_is_not_reentered)
{
    struct test_clock clock;
    struct conn waiting;

    listening(&waiting);
    start_with(JOURNAL_ALWAYS);
    let_a_lock_expire(&clock);
    lock_and_wait(&waiting);
    CHECK(!server.building.reenters);
    CHECK_EQ(server.building.count, 1);
    hf_buf_destroy(&waiting.out);
    stop();
}

static void set_stock(struct conn *conn, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        command = (struct hold_command){.kind = HOLD_STOCK_SET,
                                        .name = hf_bytes_text("apple"),
                                        .amount = 1};
        submit(conn);
    }
}

/* A part ends where another client's requests begin. */
TEST(answers_go_out_before_all_of_a_batch_is_applied)
{
    enum { EACH = 100 };
    struct conn clients[3];

    start();
    for (size_t i = 0; i < 3; i++) {
        listening(&clients[i]);
        set_stock(&clients[i], EACH);
    }
    CHECK(commit_round(&server));
    CHECK_EQ(clients[0].pending, 0);
    CHECK_EQ(clients[1].pending, 0);
    CHECK_EQ(clients[2].pending, EACH);
    CHECK(commit_has_work(&server));
    CHECK(commit_round(&server));
    CHECK_EQ(clients[2].pending, 0);
    CHECK(!commit_has_work(&server));
    for (size_t i = 0; i < 3; i++)
        hf_buf_destroy(&clients[i].out);
    stop();
}

TEST(all_parts_of_a_batch_are_applied_in_one_turn)
{
    enum { CLIENTS = 20, EACH = 100 };
    struct conn clients[CLIENTS];

    start();
    for (size_t i = 0; i < CLIENTS; i++) {
        listening(&clients[i]);
        set_stock(&clients[i], EACH);
    }
    server_turn(&server);
    CHECK(commit_is_idle(&server));
    for (size_t i = 0; i < CLIENTS; i++) {
        CHECK_EQ(clients[i].pending, 0);
        hf_buf_destroy(&clients[i].out);
    }
    stop();
}

/* One more request, so long after the first of its batch: is another look at
 * the sockets worth it? */
static bool looks_again(struct conn *conn, uint64_t after_ns)
{
    set_stock(conn, 1);
    server.heard_ns = server.building.entries[0].came_ns + after_ns;
    return commit_looks_again(&server);
}

TEST(the_sockets_are_looked_at_again_before_a_commit)
{
    struct conn conn;

    start_with(JOURNAL_ALWAYS);
    listening(&conn);
    set_stock(&conn, 5);
    server_turn(&server);
    CHECK_EQ(conn.pending, 0);
    uint64_t half_ns = log_sync_ns(server.log) / 2;
    CHECK(looks_again(&conn, 0));
    CHECK(!commit_looks_again(&server)); /* nothing has come since */
    CHECK(looks_again(&conn, half_ns - 1));
    CHECK(!looks_again(&conn, half_ns));
    CHECK(looks_again(&conn, 0));
    CHECK(!looks_again(&conn, 0)); /* as many as in the batch before */
    server_turn(&server);
    CHECK(looks_again(&conn, 0));
    CHECK_EQ(conn.pending, 1);
    server_turn(&server);
    CHECK(!looks_again(&conn, 0)); /* that one was alone */
    server_turn(&server);
    hf_buf_destroy(&conn.out);
    stop();
}

static uint64_t sync_of_a_minute(const struct log *log)
{
    (void)log;
    return UINT64_C(60000000000);
}

TEST(a_flush_that_was_slow_does_not_delay_the_next_one)
{
    struct conn conn;

    start_with(JOURNAL_ALWAYS);
    listening(&conn);
    set_stock(&conn, 5);
    server_turn(&server);
    struct log_ops slow = *server.log->ops;
    slow.sync_ns = sync_of_a_minute;
    server.log->ops = &slow;
    CHECK(looks_again(&conn, SERVER_SLOW_NS / 2 - 1));
    CHECK(!looks_again(&conn, SERVER_SLOW_NS / 2));
    server_turn(&server);
    hf_buf_destroy(&conn.out);
    stop();
}

TEST(a_look_at_the_sockets_is_a_turn_of_the_loop_without_a_commit)
{
    struct conn conn;
    struct conn touched = gone();

    start_with(JOURNAL_ALWAYS);
    uv_timer_stop(&server.tend_timer); /* it commits, too */
    listening(&conn);
    set_stock(&conn, 5);
    server_turn(&server);
    set_stock(&conn, 1);
    touched.dirty = true;
    server.dirty = &touched;
    uv_run(&server.loop, UV_RUN_NOWAIT);
    CHECK_EQ(conn.pending, 1);
    CHECK(!touched.dirty);
    CHECK(uv_is_active((uv_handle_t *)&server.again)); /* it does not sleep */
    uv_run(&server.loop, UV_RUN_NOWAIT);
    CHECK_EQ(conn.pending, 0);
    CHECK(!uv_is_active((uv_handle_t *)&server.again));
    hf_buf_destroy(&conn.out);
    stop();
}

/* Nothing could be committed: what was started comes first, and verdicts. */
TEST(the_sockets_are_not_looked_at_again_for_a_batch_that_is_not_next)
{
    struct conn conn;

    start_with(JOURNAL_ALWAYS);
    listening(&conn);
    set_stock(&conn, 5);
    server_turn(&server);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    set_stock(&conn, 5);
    server_turn(&server);
    CHECK_EQ(conn.pending, 5);
    CHECK(!looks_again(&conn, 0));
    test_disk_let_go(&disk);
    commit_poll(&server);
    server_turn(&server);
    CHECK_EQ(conn.pending, 0);
    set_stock(&conn, 5);
    server_turn(&server);
    CHECK(lock_wait_spare(&server));
    lock_wait_orphan(&server, hf_bytes_text("door"), 1);
    CHECK(!looks_again(&conn, 0));
    server_turn(&server);
    CHECK_EQ(conn.pending, 0);
    hf_buf_destroy(&conn.out);
    stop();
}

/* As with a log that takes two commits at a time. */
TEST(what_was_gathered_does_not_follow_a_lock_whose_client_may_go)
{
    struct conn conn;

    for (int lock = 0; lock < 2; lock++) {
        start_with(JOURNAL_ALWAYS);
        listening(&conn);
        set_stock(&conn, 5);
        server_turn(&server);
        test_disk_hold(&disk, TEST_DISK_BATCH);
        set_stock(&conn, 5);
        lock_at_once(&conn, lock ? "" : "q"); /* with REQ it is kept */
        server_turn(&server);
        server.log->flights_max = 2;
        CHECK_EQ(looks_again(&conn, 0), !lock);
        server.log->flights_max = 1;
        test_disk_let_go(&disk);
        settle();
        hf_buf_destroy(&conn.out);
        stop();
    }
}
