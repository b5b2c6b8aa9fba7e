/* submit.c - what is taken while more is due than one record handles. */
#include "support/batch.h"

enum { MANY = HOLD_STEP_MAX * 18 };

static struct test_clock time_now;

static void set(const char *sku)
{
    command = (struct hold_command){
        .kind = HOLD_STOCK_SET, .name = hf_bytes_text(sku), .amount = 1000000};
    CHECK_EQ(apply()->code, HOLD_OK);
}

static void make(enum hold_kind kind, const char *sku)
{
    command = (struct hold_command){.kind = kind, .ttl_ms = 5};
    CHECK_EQ(hold_add_item(&command, hf_bytes_text(sku), 1), HF_OK);
}

static bool admits(enum hold_kind kind, const char *sku)
{
    struct conn conn = gone();

    make(kind, sku);
    return submit_admits(&server, &conn, &command);
}

static bool admits_pending(enum hold_kind kind, const char *sku)
{
    struct conn conn = gone();

    make(kind, sku);
    conn.pending = 1;
    return submit_admits(&server, &conn, &command);
}

/* Apples fall due, a pear in a minute, a fig soon. */
static void start_backlog(void)
{
    start();
    time_now.now_ns = hf_clock_now_ns(server.clock);
    server.clock = test_clock(&time_now);
    set("apple");
    set("pear");
    set("fig");
    for (unsigned i = 0; i < MANY; i++) {
        make(HOLD_RESERVE, "apple");
        CHECK_EQ(apply()->code, HOLD_OK);
    }
    make(HOLD_RESERVE, "pear");
    command.ttl_ms = 60000;
    CHECK_EQ(apply()->code, HOLD_OK);
    make(HOLD_RESERVE, "fig");
    command.ttl_ms = 500;
    CHECK_EQ(apply()->code, HOLD_OK);
    test_clock_advance(&time_now, 5 * 1000000);
    server.heard_ns = time_now.now_ns;
}

static void check_admitted(void)
{
    CHECK(!admits(HOLD_RESERVE, "apple"));
    CHECK(!admits(HOLD_STOCK_GET, "apple"));
    CHECK(admits(HOLD_RESERVE, "pear"));
    CHECK(admits(HOLD_STOCK_GET, "pear"));
    CHECK(admits(HOLD_RESERVE, "none"));
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("me"),
                                    .ttl_ms = 5};
    struct conn conn = gone();
    CHECK(submit_admits(&server, &conn, &command));
    /* it would be asked behind a record that lets all of it pass */
    CHECK(!admits_pending(HOLD_STOCK_GET, "pear"));
    CHECK(admits_pending(HOLD_RESERVE, "pear"));
}

TEST(while_much_is_due_only_what_does_not_depend_on_it_is_taken)
{
    start_backlog();
    CHECK(!hold_is_behind(server.engine)); /* as far as it knows */
    check_admitted();
    command = (struct hold_command){.kind = HOLD_TICK};
    (void)apply();
    CHECK(hold_is_behind(server.engine));
    check_admitted();
    for (unsigned i = 1; i < MANY / HOLD_STEP_MAX; i++) {
        CHECK(hold_is_behind(server.engine));
        command = (struct hold_command){.kind = HOLD_TICK};
        (void)apply();
    }
    struct batch none = {.end = HF_OK}; /* until one is applied it counts */
    server.flight_count = 1;
    (void)apply_batch(&server, &none);
    CHECK(admits(HOLD_RESERVE, "apple"));
    CHECK(admits(HOLD_STOCK_GET, "apple"));
    CHECK(admits_pending(HOLD_STOCK_GET, "pear"));
    stop();
}

/* Each request would take as long as it takes to count them. */
TEST(what_is_due_is_counted_once_for_all_that_is_read_together)
{
    for (unsigned later = 0; later < 3; later++) {
        start_backlog();
        server.heard_ns -= 1000000;
        CHECK(admits(HOLD_RESERVE, "apple")); /* nothing is due */
        server.epoch_us += 5000; /* by the engine's time all of it is */
        struct batch none = {.end = HF_OK};
        server.flight_count = later == 2;
        if (later == 1)
            server.heard_ns++;
        else if (later == 2)
            (void)apply_batch(&server, &none);
        CHECK_EQ(admits(HOLD_RESERVE, "apple"), later == 0);
        CHECK(admits(HOLD_RESERVE, "pear"));
        stop();
    }
}

/* Else all that is due would have to be handled for it, and all behind it
 * would wait. */
TEST(what_may_be_due_when_it_is_applied_is_not_taken)
{
    start_backlog();
    CHECK(!admits(HOLD_RESERVE, "fig"));
    CHECK(admits(HOLD_STOCK_GET, "fig"));
    CHECK(admits(HOLD_RESERVE, "pear"));
    stop();
}

static void reserve_pear(const char *id, uint64_t ttl_ms)
{
    make(HOLD_RESERVE, "pear");
    command.name = hf_bytes_text(id);
    command.ttl_ms = ttl_ms;
    CHECK_EQ(apply()->code, HOLD_OK);
}

/* One that comes in time would be late if it had to wait. */
TEST(a_confirm_is_held_back_only_in_the_time_of_grace)
{
    static const char *const ids[] = {"late", "too late", "soon"};
    struct conn conn = gone();

    start_backlog();
    time_now.now_ns -= 5 * 1000000;
    command = (struct hold_command){.kind = HOLD_BOUNDS};
    CHECK_EQ(hold_add_item(&command, hf_bytes_text("grace_ms"), 3), HF_OK);
    CHECK_EQ(apply()->code, HOLD_OK);
    reserve_pear("late", 3);
    reserve_pear("too late", 1);
    reserve_pear("soon", 500);
    time_now.now_ns += 5 * 1000000;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        command = (struct hold_command){.kind = HOLD_CONFIRM,
                                        .name = hf_bytes_text(ids[i])};
        CHECK_EQ(submit_admits(&server, &conn, &command), i > 0);
    }
    command = (struct hold_command){.kind = HOLD_BOUNDS};
    CHECK_EQ(hold_add_item(&command, hf_bytes_text("grace_ms"), 9999), HF_OK);
    CHECK_EQ(apply()->code, HOLD_OK);
    command = (struct hold_command){.kind = HOLD_CONFIRM,
                                    .name = hf_bytes_text("soon")};
    CHECK(hold_is_behind(server.engine)); /* it knows by now */
    CHECK(submit_admits(&server, &conn, &command));
    stop();
}

/* What is about its end depends on all that is due; of others it does not. */
TEST(the_end_of_one_that_waits_is_not_taken)
{
    static const enum hold_kind kinds[] = {HOLD_CONFIRM, HOLD_CANCEL,
                                           HOLD_EXTEND};
    struct conn conn = gone();

    start_backlog();
    time_now.now_ns -= 5 * 1000000;
    reserve_pear("mine", 60000);
    command = (struct hold_command){.kind = HOLD_WAITLIST_JOIN,
                                    .name = hf_bytes_text("waits"),
                                    .owner = hf_bytes_text("me")};
    CHECK_EQ(hold_add_item(&command, hf_bytes_text("apple"), 1000000), HF_OK);
    CHECK_EQ(apply()->code, HOLD_OK);
    time_now.now_ns += 5 * 1000000;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        command = (struct hold_command){
            .kind = kinds[i], .name = hf_bytes_text("waits"), .ttl_ms = 5};
        CHECK(!submit_admits(&server, &conn, &command));
        command.name = hf_bytes_text("mine");
        CHECK(submit_admits(&server, &conn, &command));
    }
    stop();
}

/* No record may tell the engine what time it is. */
TEST(what_the_log_would_not_take_is_not_held_back_for_it)
{
    start_backlog();
    server.failed = true;
    CHECK(admits(HOLD_RESERVE, "apple"));
    CHECK(admits(HOLD_STOCK_GET, "apple"));
    server.failed = false;
    stop();
}
