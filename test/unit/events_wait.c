/* events_wait.c - tests of who waits for events, histories and audits, and of
 * their end without memory. */
#include "feed/state.h"
#include "server/audit.h"
#include "server/events.h"
#include "server/history.h"
#include "support/batch.h"

/* As if it had been accepted: it can be closed. */
static struct conn *accepted(void)
{
    struct conn *conn = hf_alloc_zeroed(sizeof *conn);

    CHECK(conn != NULL);
    listening(conn);
    conn->dirty = false;
    CHECK_EQ(uv_tcp_init(&server.loop, &conn->tcp), 0);
    conn->tcp.data = conn;
    server.conns = conn;
    server.conn_count++;
    return conn;
}

static void wait_for(struct conn *conn, const char *pattern)
{
    struct hf_bytes words[] = {hf_bytes_text("EVENTS"), hf_bytes_text("FROM"),
                               hf_bytes_text("0"),      hf_bytes_text("WAIT"),
                               hf_bytes_text("60000"),  hf_bytes_text("MATCH"),
                               hf_bytes_text(pattern)};
    struct asked asked = {
        .server = &server, .conn = conn, .args = words + 1, .count = 6};

    table_init();
    answer_read_begin(&server);
    events_read(&asked);
    CHECK(conn->wait != NULL);
}

static void serve(bool without_memory)
{
    if (without_memory)
        hf_memory_fail_after(0);
    events_serve(&server);
    hf_memory_fail_never();
}

static void tell_long(size_t len)
{
    char name[HOLD_NAME_MAX];

    memset(name, 'a', sizeof name);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes(name, len),
                                    .owner = hf_bytes_text("me"),
                                    .ttl_ms = HOLD_TTL_MAX_MS};
    events_tell(&server, apply());
}

/* Locks a name of this length, and tells it to those who wait. */
static void lock_long(size_t len, bool without_memory)
{
    tell_long(len);
    serve(without_memory);
}

/* The pattern takes more steps than it may, for one event. */
static void slow_pattern(char pattern[257])
{
    memset(pattern, 'a', 256);
    pattern[0] = '*';
    pattern[255] = 'b';
    pattern[256] = '\0';
}

TEST(a_slow_pattern_ends_its_wait_with_or_without_memory_to_say_so)
{
    char pattern[257];

    slow_pattern(pattern);
    for (int i = 0; i < 2; i++) {
        start();
        struct conn *conn = accepted();
        wait_for(conn, pattern);
        lock_long(8, false);
        CHECK(conn->wait != NULL);
        lock_long(HOLD_NAME_MAX, i == 1);
        CHECK(conn->wait == NULL);
        CHECK_EQ(server.waits.counts[WAIT_FEED], 0);
        CHECK(server.events.first == NULL);
        CHECK_EQ(conn->closing, i == 1);
        if (i == 0)
            CHECK(was_told(conn, "-OVERLOADED "));
        conn_close(conn);
        stop();
    }
}

TEST(an_event_ends_a_wait_with_or_without_memory_to_tell_it)
{
    for (int i = 0; i < 2; i++) {
        start();
        struct conn *conn = accepted();
        wait_for(conn, "hf:lock:*");
        lock_long(8, i == 1);
        CHECK(conn->wait == NULL);
        CHECK_EQ(server.waits.counts[WAIT_FEED], 0);
        CHECK_EQ(conn->closing, i == 1);
        if (i == 0)
            CHECK(was_told(conn, "*6"));
        conn_close(conn);
        stop();
    }
}

static uint64_t lost(void)
{
    struct feed_stats stats;

    feed_stats(server.events.feed, &stats);
    return stats.lost;
}

static void set_key(struct conn *conn)
{
    static char text[HOLD_NAME_MAX];

    memset(text, 'a', sizeof text);
    command = (struct hold_command){
        .kind = HOLD_KEY_SET,
        .name = hf_bytes(text, sizeof text),
        .owner = hf_bytes(text, HOLD_OWNER_MAX),
        .flags = (uint64_t)SAY_OK << HOLD_SAY_SHIFT,
    };
    submit(conn);
}

/* The words behind the name of the command. */
static void ask(struct conn *conn, command_fn *run, const char *first,
                const char *second)
{
    struct hf_bytes words[] = {hf_bytes_text(first), hf_bytes_text(second)};
    struct asked asked = {.server = &server,
                          .conn = conn,
                          .args = words,
                          .count = second[0] != '\0' ? 2 : 1};

    table_init();
    answer_read_begin(&server);
    run(&asked);
}

/* A product, and a file of events, which is gone when somebody reads it. */
static void have_a_past(void)
{
    struct feed *feed;

    command = (struct hold_command){
        .kind = HOLD_STOCK_SET, .name = hf_bytes_text("pen"), .amount = 3};
    CHECK_EQ(apply()->code, HOLD_OK);
    feed = server.events.feed;
    feed->files = hf_alloc_zeroed(sizeof *feed->files);
    CHECK(feed->files != NULL);
    feed->files[0].up_to = 1;
    feed->file_count = feed->file_cap = 1;
}

static void start_with_a_past(void)
{
    start();
    have_a_past();
}

/* What happened meanwhile is in a file. */
TEST(a_wait_that_has_to_read_and_finds_no_memory_is_over)
{
    for (int i = 0; i < 2; i++) {
        start();
        struct conn *conn = accepted();
        wait_for(conn, "hf:*");
        have_a_past();
        tell_long(8);
        struct feed *feed = server.events.feed;
        feed->chunks[feed->first % FEED_CHUNKS_MAX]->before = 1;
        serve(i == 1);
        CHECK_EQ(conn->wait == NULL, i == 1);
        CHECK_EQ(server.waits.counts[WAIT_FEED], i == 0);
        CHECK_EQ(conn->closing, i == 1);
        conn_close(conn);
        CHECK_EQ(server.waits.counts[WAIT_FEED], 0);
        stop();
    }
}

TEST(a_stop_ends_a_history_and_an_audit_with_or_without_memory_to_say_so)
{
    for (int i = 0; i < 4; i++) {
        start_with_a_past();
        struct conn *conn = accepted();
        bool audit = i >= 2;
        bool fails = i % 2 == 1;
        ask(conn, audit ? audit_stock : history_at, "pen", audit ? "" : "0");
        CHECK(conn->wait != NULL);
        if (fails)
            hf_memory_fail_after(0);
        waits_end(&server, WAIT_STOP);
        hf_memory_fail_never();
        CHECK(conn->wait == NULL);
        CHECK_EQ(server.waits.counts[WAIT_HISTORY], 0);
        CHECK_EQ(server.waits.counts[WAIT_AUDIT], 0);
        CHECK_EQ(conn->closing, fails);
        if (!fails)
            CHECK(was_told(conn, "-TIMEOUT "));
        conn_close(conn);
        stop();
    }
}

/* Events that have to be read are no reason to go: only who waits for what is
 * to come must keep its side open. */
TEST(who_has_closed_its_side_is_told_what_has_to_be_read)
{
    start_with_a_past();
    struct conn *conn = accepted();
    ask(conn, events_read, "FROM", "0");
    CHECK(conn->wait != NULL);
    CHECK(waits_may_close(conn));
    conn_close(conn);
    conn = accepted();
    wait_for(conn, "hf:stock:*");
    CHECK(!waits_may_close(conn));
    conn_close(conn);
    stop();
}

/* However much memory there is when it begins to wait, it waits or is over. */
TEST(a_history_that_finds_no_memory_is_over)
{
    bool waits = false;

    for (uint64_t n = 0; !waits; n++) {
        start_with_a_past();
        struct conn *conn = accepted();
        hf_memory_fail_after(n);
        ask(conn, history_at, "pen", "0");
        hf_memory_fail_never();
        waits = conn->wait != NULL;
        CHECK_EQ(conn->closing, !waits);
        CHECK_EQ(server.waits.counts[WAIT_HISTORY], waits);
        CHECK_EQ(server.events.searches != NULL, waits);
        conn_close(conn);
        CHECK_EQ(server.waits.counts[WAIT_HISTORY], 0);
        stop();
    }
}

static struct journal_io *plain;
static struct hf_atomic_u32 held;
static struct hf_event let_go;

static enum hf_status is_free(void *context)
{
    (void)context;
    return hf_u32_load(&held, __ATOMIC_SEQ_CST) == 0 ? HF_OK : HF_PENDING;
}

static int slow_write(void *context, int fd, const void *data, size_t len,
                      uint64_t offset)
{
    (void)context;
    (void)hf_event_until(&let_go, is_free, NULL, NULL, HF_FOREVER);
    return plain->write(plain, fd, data, len, offset);
}

/* The disk takes batches and no events: what brings events waits, whatever is
 * on its way by then, and goes on when they are written. */
TEST(what_the_feed_would_lose_is_applied_later)
{
    struct test_clock clock;
    struct journal_io slow;
    struct conn conn;

    start();
    CHECK_EQ(journal_io_plain(&plain), HF_OK);
    slow = *plain;
    slow.write = slow_write;
    server.events.feed->io = &slow;
    clock.now_ns = hf_clock_now_ns(server.clock);
    server.clock = test_clock(&clock); /* it is not given up */
    listening(&conn);
    hf_u32_store(&held, 1, __ATOMIC_SEQ_CST);
    for (int i = 0; !events_are_behind(&server); i++) {
        CHECK(i < 10000);
        set_key(&conn);
        while (conn.pending > 0 && !events_are_behind(&server)) {
            (void)uv_run(&server.loop, UV_RUN_NOWAIT); /* a write has ended */
            server_turn(&server);
        }
    }
    for (int i = 0; i < 10000; i++)
        set_key(&conn);
    for (int i = 0; i < 100; i++)
        server_turn(&server);
    CHECK_EQ(conn.pending, 10000);
    CHECK_EQ(lost(), 0);
    hf_u32_store(&held, 0, __ATOMIC_SEQ_CST);
    hf_event_wake_all(&let_go);
    while (conn.pending > 0)
        (void)uv_run(&server.loop, UV_RUN_ONCE);
    CHECK_EQ(lost(), 0);
    hf_buf_destroy(&conn.out);
    stop();
    plain->close(plain);
}
