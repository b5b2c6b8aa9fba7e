/* alarms.c - tests of the alarms that a server has by default, and of what it
 * does while nothing is held. */
#include "feed/state.h"
#include "hold/state.h"
#include "support/batch.h"

#define MS_NS UINT64_C(1000000)

static struct test_clock passing;

/* From a whole minute on, since rates are of whole parts of one, and not the
 * next: what was read at the start is no reading of the test then. */
static void begin(void)
{
    start();
    uint64_t minutes = hf_clock_now_ns(server.clock) / (60 * HF_NS_PER_S);
    passing = (struct test_clock){.now_ns = (minutes + 2) * 60 * HF_NS_PER_S};
    server.clock = test_clock(&passing);
    alarms_tend(&server);
    CHECK_EQ(alarms_firing(&server), 0);
}

/* Looks at the rules every second, as the server does; how many hold then. */
static uint32_t firing_after(unsigned seconds)
{
    for (unsigned i = 0; i < seconds; i++) {
        test_clock_advance(&passing, HF_NS_PER_S);
        alarms_tend(&server);
    }
    return alarms_firing(&server);
}

/* So many events of that kind in each of ten seconds; how many rules hold then,
 * and that they do not for long. */
static uint32_t firing_by(enum hold_event_kind kind, unsigned each)
{
    struct hold_event event = {.kind = kind, .age_us = HOLD_NO_AGE};
    struct hold_out out = {.events = &event, .event_count = 1};

    begin();
    for (unsigned i = 0; i < 10 * each; i++) {
        metrics_events(&server.metrics, &out);
        if (i % each == each - 1)
            (void)firing_after(1);
    }
    uint32_t firing = alarms_firing(&server);
    CHECK_EQ(firing_after(11), 0);
    stop();
    return firing;
}

TEST(a_server_in_order_raises_no_alarm)
{
    begin();
    answer_note_grant(&server, 99 * MS_NS);
    CHECK_EQ(firing_after(100), 0);
    stop();
}

TEST(many_locks_that_expire_raise_an_alarm)
{
    CHECK_EQ(firing_by(EVENT_LOCK_EXPIRED, 11), 1);
    CHECK_EQ(firing_by(EVENT_LOCK_EXPIRED, 10), 0);
    CHECK_EQ(firing_by(EVENT_LOCK_RELEASED, 1000), 0);
}

/* What they held is lost, which is no expiry of a lock. */
TEST(many_sessions_that_expire_raise_an_alarm)
{
    CHECK_EQ(firing_by(EVENT_SESSION_EXPIRED, 11), 1);
    CHECK_EQ(firing_by(EVENT_SESSION_EXPIRED, 10), 0);
    CHECK_EQ(firing_by(EVENT_SESSION_CLOSED, 1000), 0);
}

TEST(slow_acquisition_raises_an_alarm)
{
    begin();
    for (unsigned i = 0; i < 100; i++) {
        answer_now(&server);
        answer_note_grant(&server, (i < 2 ? 200 : 1) * MS_NS);
    }
    CHECK_EQ(firing_after(1), 1);
    CHECK_EQ(firing_after(120), 0);
    stop();
}

TEST(a_rejected_fence_raises_an_alarm)
{
    begin();
    metrics_refused(&server.metrics, HOLD_STALE);
    CHECK_EQ(firing_after(1), 1);
    CHECK_EQ(firing_after(61), 0);
    stop();
}

/* A payment that cannot be made sure to run once is refused. */
TEST(a_req_that_finds_the_table_full_raises_an_alarm)
{
    begin();
    server.engine->requests_refused++;
    CHECK_EQ(firing_after(1), 1);
    CHECK_EQ(firing_after(61), 0);
    stop();
}

TEST(an_audit_that_fails_raises_an_alarm)
{
    begin();
    server.audits.failures++;
    CHECK_EQ(firing_after(1), 1);
    CHECK_EQ(firing_after(61), 0);
    stop();
}

TEST(events_that_are_lost_and_a_disk_that_does_not_take_them_raise_alarms)
{
    begin();
    server.events.feed->lost++;
    CHECK_EQ(firing_after(1), 1);
    server.events.feed->failures++;
    CHECK_EQ(firing_after(1), 2);
    CHECK_EQ(firing_after(61), 0);
    stop();
}

TEST(a_double_grant_raises_an_alarm_that_stays)
{
    begin();
    server.engine->double_grants++;
    CHECK_EQ(firing_after(1), 1);
    CHECK_EQ(firing_after(1000), 1);
    stop();
}

/* ---- Reservations. ---- */

/* So many events of a kind, and RESERVEs that were refused. */
static void count(enum hold_event_kind kind, unsigned events, unsigned refused)
{
    server.metrics.events[kind] += events;
    for (unsigned i = 0; i < refused; i++)
        metrics_answered(&server.metrics, HOLD_RESERVE, HOLD_SHORT);
}

static bool holds(const char *rule)
{
    size_t i = 0;

    while (strcmp(alarms_rule(i), rule) != 0)
        i++;
    return server.alarms[i];
}

TEST(success_below_95_percent_raises_an_alarm)
{
    begin();
    count(EVENT_RESERVED, 95, 5);
    CHECK_EQ(firing_after(1), 0);
    count(EVENT_RESERVED, 0, 1);
    CHECK_EQ(firing_after(1), 1);
    CHECK(holds("reservation_success"));
    CHECK_EQ(firing_after(290), 1); /* five minutes */
    CHECK_EQ(firing_after(20), 0);
    CHECK(!holds("reservation_success"));
    metrics_answered(&server.metrics, HOLD_RESERVE, HOLD_OK);
    metrics_answered(&server.metrics, HOLD_CONFIRM, HOLD_EXPIRED);
    CHECK_EQ(server.metrics.reserves_refused, 6);
    stop();
}

/* What came before the window does not make up for what comes in it. */
TEST(success_is_of_the_last_five_minutes)
{
    begin();
    count(EVENT_RESERVED, 100000, 0);
    CHECK_EQ(firing_after(320), 0);
    count(EVENT_RESERVED, 15, 5);
    CHECK_EQ(firing_after(1), 1);
    CHECK(server.health.success == 0.75);
    stop();
}

TEST(a_few_refusals_raise_no_alarm)
{
    begin();
    count(EVENT_RESERVED, 0, HEALTH_LEAST - 1);
    CHECK_EQ(firing_after(1), 0);
    CHECK(server.health.success == 1);
    count(EVENT_RESERVED, 0, 1);
    CHECK_EQ(firing_after(1), 1);
    CHECK(server.health.success == 0);
    stop();
}

TEST(expiry_of_more_than_30_percent_raises_an_alarm)
{
    begin();
    count(EVENT_CONFIRMED, 60, 0);
    count(EVENT_CANCELLED, 10, 0);
    count(EVENT_RESERVATION_EXPIRED, 30, 0);
    CHECK_EQ(firing_after(1), 0);
    CHECK(server.health.expiry == 0.3);
    count(EVENT_RESERVATION_EXPIRED, 1, 0);
    CHECK_EQ(firing_after(1), 1);
    CHECK(holds("reservation_expiry"));
    CHECK_EQ(firing_after(320), 0);
    CHECK(server.health.expiry == 0);
    count(EVENT_RESERVATION_EXPIRED, HEALTH_LEAST - 1, 0);
    CHECK_EQ(firing_after(1), 0);
    stop();
}

/* Nothing sweeps here: what is over waits. */
TEST(what_is_over_and_not_cleaned_up_raises_alarms)
{
    begin();
    command = (struct hold_command){
        .kind = HOLD_STOCK_SET, .name = hf_bytes_text("bolt"), .amount = 5};
    CHECK_EQ(apply()->code, HOLD_OK);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("me"),
                                    .ttl_ms = 1000};
    CHECK_EQ(apply()->code, HOLD_OK);
    command = (struct hold_command){.kind = HOLD_RESERVE,
                                    .name = hf_bytes_text("cart"),
                                    .ttl_ms = 100 * 1000};
    CHECK_EQ(hold_add_item(&command, hf_bytes_text("bolt"), 1), HF_OK);
    CHECK_EQ(apply()->code, HOLD_OK);
    CHECK_EQ(firing_after(301), 0);
    CHECK(health_behind(&server) == 300);
    CHECK_EQ(firing_after(1), 1);
    CHECK(holds("cleanup_behind"));
    CHECK(health_overdue(&server) == 202);
    CHECK_EQ(firing_after(698), 1);
    CHECK_EQ(firing_after(1), 2);
    CHECK(holds("reservation_overdue"));
    command = (struct hold_command){.kind = HOLD_TICK, .amount = 1};
    (void)apply();
    CHECK_EQ(firing_after(1), 0);
    CHECK(health_behind(&server) == 0 && health_overdue(&server) == 0);
    stop();
}

/* ---- How long they last. ---- */

#define TENTH_NS (100 * MS_NS)
/* Later than the server's own clock can be, and the begin of a minute. */
#define BEGIN_NS (UINT64_C(6000000000) * HF_NS_PER_S)

/* Rates count from now on, the begin of a minute. */
static void begin_minute(void)
{
    begin();
    alarms_close(&server);
    passing.now_ns = BEGIN_NS;
    CHECK_EQ(alarms_open(&server), HF_OK);
    alarms_tend(&server);
}

static bool fires(void)
{
    test_clock_advance(&passing, TENTH_NS);
    alarms_tend(&server);
    return alarms_firing(&server) > 0;
}

/* In tenths of a second since the begin. */
static uint64_t ends_at(void)
{
    CHECK(fires());
    while (fires())
        CHECK(passing.now_ns < BEGIN_NS + 10000 * TENTH_NS);
    uint64_t tenths = (passing.now_ns - BEGIN_NS) / TENTH_NS;
    stop();
    return tenths;
}

TEST(slow_acquisition_and_a_rejected_fence_are_told_for_a_minute)
{
    begin_minute();
    for (unsigned i = 0; i < 1000; i++)
        hf_window_record(server.metrics.acquire_ns, (i < 10 ? 500 : 90) * MS_NS,
                         passing.now_ns);
    CHECK(!fires()); /* one in a hundred may be slow */
    for (unsigned i = 0; i < 10; i++)
        hf_window_record(server.metrics.acquire_ns, 500 * MS_NS,
                         passing.now_ns);
    CHECK_EQ(ends_at(), 600);
    begin_minute();
    CHECK(!fires());
    metrics_refused(&server.metrics, HOLD_STALE);
    CHECK_EQ(ends_at(), 600);
}

TEST(many_expiries_are_told_for_ten_seconds)
{
    static const enum hold_event_kind kinds[] = {EVENT_LOCK_EXPIRED,
                                                 EVENT_SESSION_EXPIRED};

    for (int i = 0; i < 2; i++) {
        begin_minute();
        server.metrics.events[kinds[i]] += 200;
        CHECK_EQ(ends_at(), 100);
    }
}

/* ---- Nothing is held. ---- */

static bool is_armed(void)
{
    return uv_is_active((uv_handle_t *)&server.due_timer) != 0;
}

/* The timer rings. */
static void ring(void)
{
    uv_timer_stop(&server.due_timer);
    server_due(&server.due_timer);
}

TEST(no_timer_of_the_engine_is_set_while_nothing_is_held)
{
    struct conn conn;

    begin();
    CHECK(!is_armed());
    listening(&conn);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("me"),
                                    .ttl_ms = 500};
    submit(&conn);
    server_turn(&server);
    CHECK_EQ(counts().locks, 1);
    CHECK(is_armed());
    command = (struct hold_command){.kind = HOLD_UNLOCK,
                                    .name = hf_bytes_text("door"),
                                    .token = hold_seq(server.engine)};
    submit(&conn);
    server_turn(&server);
    CHECK_EQ(counts().locks, 0);
    ring(); /* once more, in vain */
    CHECK(!is_armed());
    hf_buf_destroy(&conn.out);
    stop();
}

/* What expired is swept, and that was all. */
TEST(no_timer_of_the_engine_is_set_after_the_last_hold_has_expired)
{
    begin();
    command = (struct hold_command){.kind = HOLD_SESSION_OPEN, .ttl_ms = 500};
    uint64_t session = (uint64_t)reply_get_number(apply()->body, FIELD_SESSION);
    command = (struct hold_command){.kind = HOLD_LOCK,
                                    .name = hf_bytes_text("door"),
                                    .owner = hf_bytes_text("me"),
                                    .session = session};
    CHECK_EQ(apply()->code, HOLD_OK);
    server_turn(&server);
    CHECK(is_armed());
    test_clock_advance(&passing, 501 * MS_NS);
    for (int i = 0; i < 5 && is_armed(); i++)
        ring();
    CHECK(!is_armed());
    CHECK_EQ(counts().sessions, 0);
    CHECK_EQ(counts().locks, 0);
    stop();
}
