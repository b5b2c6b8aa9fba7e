/* bind.c - tests of sessions that are bound to connections, of what is told of
 * locks in sessions that end, and of a REQ while the log does not lead. */
#include "support/batch.h"

/* Nothing is on its way any more: a batch may have to wait until the journal's
 * thread has made the next segment. */
static void settle(void)
{
    for (int i = 0; i < 4 || server.flight_count > 0; i++) {
        commit_poll(&server);
        server_turn(&server);
    }
}

/* It goes, as far as its waits and sessions are concerned. */
static void leave(struct conn *conn)
{
    conn->closing = true;
    waits_leave(&server, conn);
    bind_leave(&server, conn);
}

/* What SESSION OPEN BIND, KEEP or CLOSE of a client would do. */
static void submit_session(struct conn *conn, enum hold_kind kind, uint64_t id)
{
    command = (struct hold_command){.kind = kind, .token = id};
    if (kind == HOLD_SESSION_OPEN) {
        command.ttl_ms = 1000;
        command.flags = HOLD_BIND;
    }
    submit(conn);
}

static uint64_t open_session(struct conn *conn)
{
    submit_session(conn, HOLD_SESSION_OPEN, 0);
    settle();
    CHECK(was_told(conn, "*6"));
    return bind_own(&server, conn);
}

/* How long it would live if its connection went now; 0: it is over. */
static uint64_t lives_until_us(uint64_t id)
{
    command = (struct hold_command){.kind = HOLD_SESSION_INFO,
                                    .now_us = server_now_us(&server),
                                    .token = id};
    const struct hold_out *out = hold_ask(server.engine, &command);
    CHECK(out != NULL);
    return out->code != HOLD_OK ? 0 : hold_due_us(server.engine);
}

/* Nothing is left for the next start. */
static void flush(void)
{
    struct conn conn = gone();

    submit_session(&conn, HOLD_FLUSH, 0);
    settle();
}

static bool is_bound(uint64_t id)
{
    return lives_until_us(id) == UINT64_MAX;
}

TEST(a_session_lives_for_its_ttl_when_its_connection_goes)
{
    struct conn conn;

    listening(&conn);
    start();
    uint64_t id = open_session(&conn);
    CHECK(is_bound(id));
    leave(&conn);
    CHECK(!commit_is_idle(&server));
    settle();
    CHECK(commit_is_idle(&server));
    CHECK(!is_bound(id) && lives_until_us(id) > 0);
    CHECK_EQ(hf_index_count(&server.binds.sessions), 0);
    stop();
}

/* The refusal has its place behind what is on its way, and no promise. */
TEST(a_session_for_which_there_is_no_memory_is_refused)
{
    bool opened = false;

    for (uint64_t memory = 0; !opened; memory++) {
        struct conn conn;
        listening(&conn);
        start();
        lock_at_once(&conn, "");
        hf_memory_fail_after(memory);
        submit_session(&conn, HOLD_SESSION_OPEN, 0);
        hf_memory_fail_never();
        CHECK_EQ(conn.pending, 2);
        settle();
        CHECK_EQ(conn.pending, 0);
        CHECK_EQ(server.binds.sessions.slab.promised, 0);
        opened = bind_own(&server, &conn) != 0;
        CHECK(memory > 0 || !opened);
        flush();
        hf_buf_destroy(&conn.out);
        stop();
    }
}

/* The end of the old connection is heard before or after KEEP, or is on its way
 * to the disk when KEEP comes. */
TEST(a_session_that_is_kept_elsewhere_is_bound_there)
{
    for (int when = 0; when < 3; when++) {
        struct conn old, new;
        listening(&old);
        listening(&new);
        start_with(JOURNAL_ALWAYS);
        uint64_t id = open_session(&old);
        if (when == 0)
            leave(&old);
        if (when == 1) {
            leave(&old);
            test_disk_hold(&disk, TEST_DISK_BATCH);
            server_turn(&server);
            CHECK(server.flight_count > 0);
        }
        submit_session(&new, HOLD_SESSION_KEEP, id);
        test_disk_let_go(&disk);
        settle();
        CHECK(was_told(&new, "*6"));
        if (when == 2)
            leave(&old);
        settle();
        CHECK(is_bound(id));
        CHECK_EQ(bind_own(&server, &new), id);
        leave(&new);
        settle();
        CHECK(!is_bound(id));
        flush();
        stop();
    }
}

/* One that went before its OPEN was applied. */
TEST(a_session_of_one_who_is_gone_is_not_bound)
{
    struct conn conn;

    listening(&conn);
    start();
    submit_session(&conn, HOLD_SESSION_OPEN, 0);
    leave(&conn);
    server_turn(&server);
    settle();
    CHECK_EQ(hf_index_count(&server.binds.sessions), 0);
    CHECK(hold_due_us(server.engine) != UINT64_MAX);
    stop();
}

/* Behind a record that fills what the journal has for a batch, which gets no
 * more: true if the record that says so was refused. */
static bool leave_without_room(size_t last)
{
    struct conn conn, writing = gone();

    listening(&conn);
    start();
    uint64_t id = open_session(&conn);
    submit_all_but_a_lock(&writing);
    submit_long(&writing, HOLD_BOUNDS, 1, last);
    leave(&conn);
    submit_left(&server);
    CHECK_EQ(server.binds.owed, 0);
    hf_memory_fail_after(0);
    server_turn(&server);
    hf_memory_fail_never();
    bool refused = is_bound(id);
    settle();
    CHECK(!is_bound(id));
    CHECK_EQ(hf_index_count(&server.binds.sessions), 0);
    flush();
    stop();
    return refused;
}

TEST(that_a_connection_went_is_owed_until_it_is_written)
{
    size_t refused = 0;

    for (size_t last = 1; last < 100; last += 4)
        refused += leave_without_room(last);
    CHECK(refused > 0);
}

TEST(what_says_that_a_connection_went_may_find_no_session)
{
    start();
    command = (struct hold_command){.kind = HOLD_SESSION_LEFT, .token = 1};
    for (int applied = 0; applied < 2; applied++)
        bind_left(&server, &command, applied);
    CHECK_EQ(hf_index_count(&server.binds.sessions), 0);
    CHECK_EQ(server.binds.owed, 0);
    stop();
}

TEST(a_session_that_is_closed_or_flushed_is_bound_no_more)
{
    for (int flush = 0; flush < 2; flush++) {
        struct conn conn, other;
        listening(&conn);
        listening(&other);
        start();
        uint64_t id = open_session(&conn);
        submit_session(&other, flush ? HOLD_FLUSH : HOLD_SESSION_CLOSE, id);
        settle();
        CHECK(was_told(&other, "+OK"));
        CHECK_EQ(bind_own(&server, &conn), 0);
        CHECK_EQ(hf_index_count(&server.binds.sessions), 0);
        leave(&conn);
        CHECK(commit_is_idle(&server));
        stop();
    }
}

/* It may be another session when what is on its way has been applied, and its
 * error would overtake earlier replies. */
TEST(session_0_waits_for_what_is_on_its_way)
{
    struct conn conn;

    listening(&conn);
    start();
    struct hold_command lock = {.kind = HOLD_LOCK,
                                .name = hf_bytes_text("door"),
                                .owner = hf_bytes_text("me"),
                                .session = HOLD_SESSION_OWN};
    command = lock;
    CHECK(submit_admits(&server, &conn, &command));
    submit(&conn);
    CHECK(was_told(&conn, "-STATE no session is bound"));
    submit_session(&conn, HOLD_SESSION_OPEN, 0);
    command = lock;
    CHECK(!submit_admits(&server, &conn, &command));
    settle();
    hf_buf_destroy(&conn.out);
    command = lock;
    CHECK(submit_admits(&server, &conn, &command));
    CHECK_EQ(command.session, bind_own(&server, &conn));
    stop();
}

/* While the disk hangs TIMEOUT is told, under a REQ. What is on its way ends
 * the session of the wait, or marks the lock as done. */
static void end_after_timeout(bool done)
{
    struct conn asking, ending;
    struct test_clock clock;

    listening(&asking);
    listening(&ending);
    start_with(JOURNAL_ALWAYS);
    clock.now_ns = hf_clock_now_ns(server.clock);
    server.clock = test_clock(&clock);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("you"),
                                    .ttl_ms = HOLD_TTL_MAX_MS};
    uint64_t token = (uint64_t)reply_get_number(apply()->body, FIELD_TOKEN);
    uint64_t id = open_session(&ending);
    struct hold_command lock = {.kind = HOLD_LOCK,
                                .name = hf_bytes_text("door"),
                                .owner = hf_bytes_text("me"),
                                .session = id,
                                .request = hf_bytes_text("q"),
                                .wait_ms = 60};
    command = lock;
    submit(&asking);
    settle();
    CHECK_EQ(counts().waiters, 1);
    test_disk_hold(&disk, TEST_DISK_BATCH);
    command = (struct hold_command){.kind = HOLD_SESSION_CLOSE, .token = id};
    if (done)
        command = (struct hold_command){.kind = HOLD_UNLOCK,
                                        .name = hf_bytes_text("door"),
                                        .token = token,
                                        .done_ms = 1};
    submit(&ending);
    server_turn(&server);
    test_clock_advance(&clock, 61 * 1000000);
    commit_due(&server);
    CHECK(was_told(&asking, "-TIMEOUT "));
    test_disk_let_go(&disk);
    settle();
    CHECK_EQ(counts().waiters, 0);
    CHECK(commit_is_idle(&server));
    hf_buf_destroy(&ending.out);
    command = lock;
    submit(&asking);
    settle();
    CHECK(was_told(&asking, "-TIMEOUT "));
    CHECK_EQ(hf_index_count(&server.lock_waits.requests), 0);
    stop();
}

TEST(a_timeout_stands_although_the_session_has_ended)
{
    end_after_timeout(false);
}

TEST(a_timeout_stands_although_the_work_is_done)
{
    end_after_timeout(true);
}

/* A set that is entered again may be told TIMEOUT, and counts until that is
 * written down. */
TEST(no_set_and_no_group_is_behind_a_reentry_of_its_batch)
{
    struct hold_command group = {.kind = HOLD_GROUP};
    struct conn waiting, holding;

    listening(&waiting);
    listening(&holding);
    start_with(JOURNAL_ALWAYS);
    struct hold_command set = {.kind = HOLD_LOCKSET,
                               .owner = hf_bytes_text("me"),
                               .ttl_ms = HOLD_TTL_MAX_MS};
    CHECK_EQ(hold_add_name(&set, hf_bytes_text("door"), false), HF_OK);
    command = set;
    CHECK_EQ(apply()->code, HOLD_OK);
    command = set;
    command.wait_ms = 60;
    submit(&waiting);
    command = set;
    CHECK(!submit_admits(&server, &holding, &command));
    CHECK(!submit_admits(&server, &holding, &group));
    settle();
    command = set;
    CHECK(submit_admits(&server, &holding, &command));
    CHECK(submit_admits(&server, &holding, &group));
    hf_buf_destroy(&waiting.out);
    stop();
}

/* More is due than one record handles. Who cannot wait is not taken before all
 * of it was handled; who can is, since its time passes. */
TEST(a_set_that_may_wait_is_taken_while_much_is_due)
{
    struct test_clock clock;
    struct conn conn;
    char name[8];

    listening(&conn);
    start_with(JOURNAL_ALWAYS);
    clock.now_ns = hf_clock_now_ns(server.clock);
    server.clock = test_clock(&clock);
    for (unsigned i = 0; i < HOLD_STEP_MAX + 10; i++) {
        snprintf(name, sizeof name, "n%u", i);
        command = (struct hold_command){.kind = HOLD_LOCK,
                                        .name = hf_bytes_text(name),
                                        .owner = hf_bytes_text("me"),
                                        .ttl_ms = 5};
        CHECK_EQ(apply()->code, HOLD_OK);
    }
    test_clock_advance(&clock, 6 * 1000000);
    command = (struct hold_command){.kind = HOLD_TICK};
    (void)apply();
    CHECK(hold_is_behind(server.engine));
    struct hold_command set = {
        .kind = HOLD_LOCKSET, .owner = hf_bytes_text("you"), .ttl_ms = 1000};
    CHECK_EQ(hold_add_name(&set, hf_bytes_text("n0"), false), HF_OK);
    command = set;
    CHECK(!submit_admits(&server, &conn, &command));
    test_disk_hold(&disk, TEST_DISK_BATCH);
    command = set;
    command.wait_ms = 60;
    CHECK(submit_admits(&server, &conn, &command));
    submit(&conn);
    server_turn(&server);
    test_clock_advance(&clock, 61 * 1000000);
    commit_due(&server);
    CHECK(was_told(&conn, "-TIMEOUT "));
    test_disk_let_go(&disk);
    settle();
    CHECK_EQ(counts().locks, 0);
    stop();
}

static bool never_leads(const struct log *log)
{
    (void)log;
    return false;
}

/* The same REQ again while the log does not lead: the answer is known, and must
 * not be told. Nor may TIMEOUT, which is not the first answer. */
TEST(a_deadline_under_a_req_whose_answer_is_known_is_no_timeout)
{
    struct conn asking, again, later;
    struct test_clock clock;

    listening(&asking);
    listening(&again);
    listening(&later);
    start_with(JOURNAL_ALWAYS);
    clock.now_ns = hf_clock_now_ns(server.clock);
    server.clock = test_clock(&clock);
    lock_and_wait(&asking);
    settle();
    CHECK(was_told(&asking, "*8"));
    const struct log_ops *ops = server.log->ops;
    struct log_ops others = *ops;
    others.leads = never_leads;
    server.log->ops = &others;
    test_disk_hold(&disk, TEST_DISK_BATCH);
    lock_and_wait(&again);
    server_turn(&server);
    CHECK_EQ(again.out.len, 0);
    test_clock_advance(&clock, 61 * 1000000);
    commit_due(&server);
    CHECK(was_told(&again, "-JOURNAL "));
    server.log->ops = ops;
    test_disk_let_go(&disk);
    settle();
    lock_and_wait(&later);
    settle();
    CHECK(was_told(&later, "*8"));
    stop();
}
