/* hold_session.c - tests of sessions: what belongs together ends together. */
#include "support/engine.h"

TEST_ONE_THREAD;

TEST(a_session_is_opened_kept_and_closed)
{
    engine_start();
    const struct hold_out *out = engine_do("SESSION OPEN TTL 500 NAME worker");
    EXPECT(out, "OK session=1 ttl_ms=500 bound=0");
    EXPECT_EVENTS(out, "1 SESSION_OPENED 1");
    EXPECT(engine_do("SESSION INFO 1"),
           "OK session=1 name=worker ttl_ms=500 expires_ms=500 bound=0 "
           "locks=0 waits=0");
    engine_now_us += 400 * MS;
    out = engine_do("SESSION KEEP 1");
    EXPECT(out, "OK session=1 ttl_ms=500 bound=0");
    EXPECT_EVENTS(out, "2 SESSION_KEPT 1");
    engine_now_us += 499 * MS;
    EXPECT(engine_do("SESSION LIST"),
           "OK sessions=[{session=1 name=worker ttl_ms=500 expires_ms=1 "
           "bound=0 locks=0 waits=0}] cursor=0");
    out = engine_do("SESSION CLOSE 1");
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "3 SESSION_CLOSED 1");
    EXPECT(engine_do("SESSION CLOSE 1"), "LOST session=1");
    EXPECT(engine_do("SESSION KEEP 1"), "LOST session=1");
    EXPECT(engine_do("SESSION INFO 1"), "NOTFOUND session=1");
    EXPECT(engine_do("LOCK door OWNER ann SESSION 1"), "LOST session=1");
    EXPECT(engine_do("LOCKSET OWNER ann NAME a SESSION 1"), "LOST session=1");
    CHECK_ENGINE();
}

TEST(a_session_expires_at_its_microsecond_with_all_it_has)
{
    engine_start();
    engine_session(500);
    EXPECT(engine_do("LOCK door OWNER ann SESSION 1"),
           "OK token=2 safe_ms=500 count=1 waited_ms=0");
    EXPECT(engine_do("LOCKSET OWNER ann NAME a NAME b SESSION 1 TTL 300"),
           "OK token=3 safe_ms=300 count=1 waited_ms=0");
    EXPECT(engine_do("LOCK pool OWNER ann PERMITS 1 OF 2 SESSION 1 TTL 900"),
           "OK token=5 safe_ms=500 count=1 waited_ms=0");
    EXPECT(engine_do("SESSION INFO 1"),
           "OK session=1 name= ttl_ms=500 expires_ms=500 bound=0 locks=3 "
           "waits=0");
    engine_now_us += 300 * MS;
    EXPECT_EVENTS(engine_tick(), "6 LOCK_EXPIRED a; 7 LOCK_EXPIRED b");
    engine_now_us += 200 * MS - 1;
    EXPECT_EVENTS(engine_tick(), "");
    engine_now_us += 3;
    const struct hold_out *out = engine_tick();
    EXPECT_EVENTS(out, "8 SESSION_EXPIRED 1 +2us; 9 LOCK_LOST door +2us; "
                       "10 LOCK_LOST pool +2us");
    CHECK_EQ(out->events[1].age_us, 500 * MS + 2);
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    CHECK_ENGINE();
}

/* Without a TTL a grant ends with its session, and only those are kept. */
TEST(keep_lengthens_only_grants_without_a_time_of_their_own)
{
    engine_start();
    engine_session(500);
    engine_do("LOCK door OWNER ann SESSION 1");
    engine_do("LOCK gate OWNER ann SESSION 1 TTL 600");
    engine_now_us += 400 * MS;
    engine_do("SESSION KEEP 1");
    EXPECT_BEGINS(
        engine_do("LOCKINFO door"),
        "OK name=door owner=ann token=2 expires_ms=500 count=1 waiting=0 "
        "held_ms=400");
    EXPECT_BEGINS(
        engine_do("LOCKINFO gate"),
        "OK name=gate owner=ann token=3 expires_ms=200 count=1 waiting=0 "
        "held_ms=400");
    EXPECT(engine_do("RENEW door 2 TTL 5000"), "OK safe_ms=500");
    EXPECT(engine_do("RENEW gate 3 TTL 100"), "OK safe_ms=100");
    CHECK_ENGINE();
}

TEST(a_holder_is_a_session_and_an_owner)
{
    engine_start();
    engine_session(500); /* 1 */
    engine_session(500); /* 2 */
    engine_do("LOCK door OWNER ann SESSION 1");
    EXPECT(engine_do("LOCK door OWNER ann SESSION 1"),
           "OK token=3 safe_ms=500 count=2 waited_ms=0");
    EXPECT(engine_do("LOCK door OWNER ann SESSION 2"),
           "BUSY name=door owner=ann expires_ms=500 waiting=0 position=1");
    EXPECT(engine_do("LOCK door OWNER ann"),
           "BUSY name=door owner=ann expires_ms=500 waiting=0 position=1");
    EXPECT(engine_do("LOCK door OWNER bob SESSION 1"),
           "BUSY name=door owner=ann expires_ms=500 waiting=0 position=1");
}

TEST(a_re_entry_without_a_time_lasts_as_long_as_the_session)
{
    engine_start();
    engine_session(500);
    engine_do("LOCK door OWNER ann SESSION 1 TTL 100");
    EXPECT(engine_do("LOCK door OWNER ann SESSION 1"),
           "OK token=2 safe_ms=500 count=2 waited_ms=0");
    engine_now_us += 200 * MS;
    EXPECT(engine_do("HELD door 2"), "OK");
}

TEST(closing_ends_grants_and_waits_oldest_first_and_serves_the_next)
{
    engine_start();
    engine_session(500);
    engine_do("LOCK gate OWNER bob TTL 5000");                       /* 2 */
    engine_do("LOCK door OWNER ann SESSION 1");                      /* 3 */
    engine_do("LOCK gate OWNER ann SESSION 1 REQ q1 WAIT 9000");     /* 4 */
    engine_do("LOCKSET OWNER ann NAME a NAME b SESSION 1");          /* 5, 6 */
    engine_do("LOCK door OWNER eve TTL 500 WAIT 9000");              /* 7 */
    engine_do("LOCKSET OWNER kim NAME b NAME gate TTL 9 WAIT 9000"); /* 8 */
    engine_do("LOCK a OWNER lea TTL 9 WAIT 9000");                   /* 9 */
    EXPECT(engine_do("SESSION INFO 1"),
           "OK session=1 name= ttl_ms=500 expires_ms=500 bound=0 locks=2 "
           "waits=1");
    const struct hold_out *out = engine_do("SESSION CLOSE 1");
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "10 SESSION_CLOSED 1; 11 LOCK_LOST door; "
                       "12 LOCK_GRANTED door; 13 LOCK_LOST a; 14 LOCK_LOST b; "
                       "15 LOCK_GRANTED a");
    EXPECT_ANSWERS(out, "7:OK token=12 safe_ms=500 count=1 waited_ms=0; "
                        "4:LOST session=1; "
                        "9:OK token=15 safe_ms=9 count=1 waited_ms=0");
    EXPECT(engine_do("LOCK gate OWNER ann SESSION 1 REQ q1 WAIT 9000"),
           "LOST session=1"); /* as it was told */
    EXPECT_ANSWERS(engine_do("UNLOCK gate 2"),
                   "8:OK token=17 safe_ms=9 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(an_expiry_tells_the_waits_of_a_session_that_they_are_lost)
{
    engine_start();
    engine_session(500);
    engine_do("LOCK door OWNER bob TTL 5000");
    engine_do("LOCK door OWNER ann SESSION 1 FOREVER"); /* 3 */
    engine_do("LOCKSET OWNER kim SESSION 1 NAME door NAME gate WAIT 9000");
    engine_do("LOCK gate OWNER eve TTL 9 WAIT 9000"); /* 5 */
    engine_now_us += 500 * MS;
    const struct hold_out *out = engine_tick();
    EXPECT_ANSWERS(out, "3:LOST session=1; 4:LOST session=1; "
                        "5:OK token=7 safe_ms=9 count=1 waited_ms=500");
    EXPECT_EVENTS(out, "6 SESSION_EXPIRED 1; 7 LOCK_GRANTED gate");
    CHECK_ENGINE();
}

TEST(a_wait_whose_own_time_is_over_first_times_out)
{
    engine_start();
    engine_session(500);
    engine_do("LOCK door OWNER bob TTL 5000");
    engine_do("LOCK door OWNER ann SESSION 1 WAIT 400"); /* 3 */
    engine_now_us += 400 * MS;
    EXPECT_ANSWERS(engine_tick(),
                   "3:TIMEOUT waited_ms=400 waiting=0 position=1");
    EXPECT(engine_do("SESSION INFO 1"),
           "OK session=1 name= ttl_ms=500 expires_ms=100 bound=0 locks=0 "
           "waits=0");
    CHECK_ENGINE();
}

TEST(a_bound_session_lives_as_long_as_its_connection_and_its_time_after)
{
    engine_start();
    EXPECT(engine_do("SESSION OPEN TTL 500 BIND"),
           "OK session=1 ttl_ms=500 bound=1");
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX); /* no timer */
    EXPECT(engine_do("LOCK door OWNER ann SESSION 1"),
           "OK token=2 safe_ms=500 count=1 waited_ms=0");
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    engine_now_us += 9000 * MS;
    EXPECT(engine_do("SESSION INFO 1"),
           "OK session=1 name= ttl_ms=500 expires_ms=500 bound=1 locks=1 "
           "waits=0");
    const struct hold_out *out = engine_left(1, 1);
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "");
    engine_now_us += 400 * MS;
    engine_left(1, 1); /* twice is once */
    EXPECT(engine_do("SESSION INFO 1"),
           "OK session=1 name= ttl_ms=500 expires_ms=100 bound=1 locks=1 "
           "waits=0");
    engine_do("SESSION KEEP 1"); /* another connection took it over */
    engine_now_us += 9000 * MS;
    engine_left(1, 1); /* means the connection that it had then */
    engine_now_us += 9000 * MS;
    EXPECT(engine_do("HELD door 2"), "OK");
    engine_left(1, 3);
    engine_now_us += 500 * MS;
    EXPECT_EVENTS(engine_tick(), "4 SESSION_EXPIRED 1; 5 LOCK_LOST door");
    CHECK_ENGINE();
}

TEST(that_a_connection_left_means_nothing_to_other_sessions)
{
    engine_start();
    engine_session(500);
    uint64_t before = hold_digest(engine);
    EXPECT(engine_left(1, 1), "OK"); /* not bound */
    EXPECT(engine_left(7, 7), "OK"); /* unknown */
    CHECK(hold_digest(engine) == before);
}

TEST(after_a_restart_bound_sessions_have_their_time_and_nobody_waits)
{
    engine_start();
    engine_do("SESSION OPEN TTL 500 BIND");     /* 1 */
    engine_do("SESSION OPEN TTL 9000");         /* 2 */
    engine_do("LOCK door OWNER ann SESSION 1"); /* 3 */
    engine_do("LOCK door OWNER bob SESSION 2 FOREVER");
    engine_do("LOCKSET OWNER eve SESSION 1 NAME a NAME door FOREVER");
    EXPECT_ANSWERS(engine_restart(10), "");
    EXPECT(engine_do("SESSION INFO 1"),
           "OK session=1 name= ttl_ms=500 expires_ms=500 bound=1 locks=1 "
           "waits=0");
    EXPECT(engine_do("LOCKINFO a"), "NOTFOUND name=a");
    engine_now_us += 500 * MS;
    EXPECT_EVENTS(engine_tick(), "16 SESSION_EXPIRED 1; 17 LOCK_LOST door");
    EXPECT(engine_do("SESSION INFO 2"),
           "OK session=2 name= ttl_ms=9000 expires_ms=8500 bound=0 locks=0 "
           "waits=0");
    CHECK_ENGINE();
}

TEST(the_number_of_sessions_is_bounded_by_those_that_are_not_over)
{
    engine_start();
    engine_bound("sessions_max", 2);
    engine_session(500);
    engine_session(900);
    EXPECT(engine_do("SESSION OPEN TTL 5"),
           "OVERLOADED name=sessions-max maximum=2");
    engine_now_us += 500 * MS;
    EXPECT(engine_do("SESSION OPEN TTL 5"), "OK session=4 ttl_ms=5 bound=0");
}

/* 600 locks are over before the session is: what one call sweeps is used up. */
static void fall_behind(void)
{
    for (unsigned i = 0; i < 600; i++)
        engine_do("LOCK old%03u OWNER ann TTL 100", i);
    engine_now_us += 200 * MS;
    engine_tick();
    CHECK(hold_is_behind(engine));
}

TEST(what_a_session_had_is_over_before_it_was_swept)
{
    engine_start();
    engine_session(150); /* 1 */
    engine_do("LOCK door OWNER ann SESSION 1");
    engine_do("LOCK gate OWNER bob TTL 9000");
    engine_do("LOCK gate OWNER ann SESSION 1 WAIT 9000"); /* 4 */
    engine_do("LOCKSET OWNER ann SESSION 1 NAME a NAME b");
    fall_behind();
    EXPECT(engine_do("HELD door 2"), "EARLY");
    EXPECT(engine_do("LOCKINFO gate"), "EARLY");
    EXPECT(engine_do("SESSION INFO 1"), "EARLY");
    EXPECT(engine_do("SESSION LIST"), "EARLY");
    EXPECT(engine_do("SESSION KEEP 1"), "LOST session=1");
    EXPECT(engine_do("LOCK x OWNER ann SESSION 1"), "LOST session=1");
    CHECK_ENGINE();
    while (hold_is_behind(engine))
        engine_tick();
    EXPECT(engine_do("SESSION INFO 1"), "NOTFOUND session=1");
    EXPECT(engine_do("LOCKINFO a"), "NOTFOUND name=a");
    CHECK_ENGINE();
}

TEST(a_lock_of_a_session_that_is_over_is_given_to_the_next_at_once)
{
    engine_start();
    engine_session(150); /* 1 */
    engine_do("LOCK door OWNER ann SESSION 1");
    fall_behind();
    engine_now_us += 1;
    const struct hold_out *out = engine_do("LOCK door OWNER bob TTL 5");
    CHECK_EQ(out->code, HOLD_OK);
    const struct hold_event *lost = &out->events[out->event_count - 2];
    CHECK_EQ(lost->kind, EVENT_LOCK_LOST);
    CHECK_EQ(lost->lag_us, 50 * MS + 1);
    CHECK_ENGINE();
    EXPECT(engine_do("RENEW door 2 TTL 5"), "LOST name=door token=2");
    while (hold_is_behind(engine))
        engine_tick();
    EXPECT(engine_do("SESSION INFO 1"), "NOTFOUND session=1");
    CHECK_ENGINE();
}

enum { MANY = 100000 };

static void open_many(void)
{
    engine_start();
    CHECK_EQ(engine_session(500), 1);
    for (unsigned i = 0; i < MANY; i++)
        engine_do("LOCK n%u OWNER ann SESSION 1", i);
}

/* The work of one call is bounded; meanwhile everything is exact. */
TEST(a_hundred_thousand_grants_of_one_session_end_in_bounded_steps)
{
    open_many();
    engine_now_us += 500 * MS;
    size_t events = 0;
    unsigned calls = 0;
    for (; calls == 0 || hold_is_behind(engine); calls++) {
        const struct hold_out *out = engine_tick();
        CHECK(out->event_count <= HOLD_STEP_MAX);
        events += out->event_count;
        if (calls == 100) { /* the last ones are over, too */
            EXPECT(engine_do("HELD n99999 100001"), "EARLY");
            out = engine_do("LOCK n99999 OWNER bob TTL 5000");
            CHECK_EQ(out->code, HOLD_OK);
            CHECK_EQ(out->event_count, HOLD_STEP_MAX + 2);
            events += out->event_count - 1;
            calls++;
        }
        if (calls % 97 == 0)
            CHECK_ENGINE();
    }
    CHECK_EQ(events, 1 + MANY);
    CHECK_EQ(calls, (1 + MANY) / HOLD_STEP_MAX + 1);
    EXPECT(engine_do("SESSION INFO 1"), "NOTFOUND session=1");
    struct hold_counts counts;
    hold_count(engine, &counts);
    CHECK_EQ(counts.locks, 1);
    CHECK_ENGINE();
}

TEST(closing_a_large_session_ends_in_bounded_steps_too)
{
    open_many();
    const struct hold_out *out = engine_do("SESSION CLOSE 1");
    EXPECT(out, "OK");
    CHECK_EQ(out->event_count, 1 + HOLD_STEP_MAX);
    CHECK(hold_is_behind(engine));
    EXPECT(engine_do("SESSION CLOSE 1"), "LOST session=1");
    size_t events = 1 + 2 * HOLD_STEP_MAX; /* that one swept, too */
    for (; hold_is_behind(engine); events += out->event_count) {
        out = engine_tick();
        CHECK(out->event_count <= HOLD_STEP_MAX);
    }
    CHECK_EQ(events, 1 + MANY);
    CHECK_ENGINE();
}

/* Each end serves a queue: two events and an answer for a step. */
TEST(ends_that_hand_locks_over_are_bounded_too)
{
    engine_start();
    engine_session(500);
    for (unsigned i = 0; i < 1000; i++) {
        engine_do("LOCK n%u OWNER ann SESSION 1", i);
        engine_do("LOCK n%u OWNER bob TTL 9000 WAIT 9000", i);
    }
    engine_now_us += 500 * MS;
    size_t granted = 0;
    for (unsigned calls = 0; calls < 4; calls++) {
        const struct hold_out *out = engine_tick();
        CHECK(out->event_count <= 2 * HOLD_STEP_MAX);
        CHECK(out->answer_count <= HOLD_STEP_MAX);
        granted += out->answer_count;
    }
    CHECK_EQ(granted, 1000);
    CHECK_ENGINE();
}

TEST(sessions_with_parts_survive_an_image_also_half_ended)
{
    for (int round = 0; round < 2; round++) {
        engine_start();
        engine_do("SESSION OPEN TTL 500 NAME worker BIND"); /* 1 */
        engine_session(400);                                /* 2 */
        engine_do("LOCK gate OWNER bob TTL 9000");
        for (unsigned i = 0; i < 600; i++)
            engine_do("LOCK n%03u OWNER ann SESSION 2", i);
        engine_do("LOCK gate OWNER ann SESSION 2 WAIT 9000");
        engine_do("LOCKSET OWNER eve SESSION 2 NAME a NAME b NOTE x DELAY 9");
        engine_do("LOCK door OWNER eve SESSION 1 TTL 700");
        if (round == 1)
            engine_do("SESSION CLOSE 2");
        engine_reload();
        EXPECT(engine_do("HELD door 607"), "OK");
        engine_now_us += round == 0 ? 400 * MS : 0;
        size_t events = 0;
        size_t answers = 0;
        do {
            const struct hold_out *out = engine_tick();
            events += out->event_count;
            answers += out->answer_count;
        } while (hold_is_behind(engine));
        CHECK_EQ(answers, 1);
        CHECK_EQ(events, round == 0 ? 603 : 602 - HOLD_STEP_MAX);
        EXPECT(engine_do("SESSION LIST"),
               "OK sessions=[{session=1 name=worker ttl_ms=500 expires_ms=500 "
               "bound=1 locks=1 waits=0}] cursor=0");
        CHECK_ENGINE();
    }
}

TEST(sessions_are_listed_in_pages)
{
    engine_start();
    for (int i = 0; i < 5; i++)
        engine_session(500);
    EXPECT(engine_do("SESSION LIST COUNT 1"),
           "OK sessions=[{session=1 name= ttl_ms=500 expires_ms=500 bound=0 "
           "locks=0 waits=0}] cursor=2");
    EXPECT(engine_do("SESSION LIST CURSOR 5"),
           "OK sessions=[{session=5 name= ttl_ms=500 expires_ms=500 bound=0 "
           "locks=0 waits=0}] cursor=0");
}

TEST(a_request_to_open_a_session_opens_one)
{
    engine_start();
    EXPECT(engine_do("SESSION OPEN TTL 500 REQ q1"),
           "OK session=1 ttl_ms=500 bound=0");
    EXPECT(engine_do("SESSION OPEN TTL 500 REQ q1"),
           "OK session=1 ttl_ms=500 bound=0");
    EXPECT(engine_do("SESSION OPEN TTL 501 REQ q1"), "CONFLICT id=q1");
    struct hold_counts counts;
    hold_count(engine, &counts);
    CHECK_EQ(counts.sessions, 1);
}
