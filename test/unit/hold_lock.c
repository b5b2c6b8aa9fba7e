/* hold_lock.c - tests of locks and fences in the engine. */
#include "support/engine.h"

TEST(a_free_lock_is_granted_with_the_next_number_as_token)
{
    engine_start();
    const struct hold_out *out = engine_lock("door", "ann", 500, 0);
    EXPECT(out, "OK token=1 safe_ms=500 count=1 waited_ms=0");
    EXPECT_EVENTS(out, "1 LOCK_GRANTED door");
    EXPECT_ANSWERS(out, "");
    EXPECT(engine_lock("gate", "ann", 7, 0),
           "OK token=2 safe_ms=7 count=1 waited_ms=0");
}

TEST(a_held_lock_is_refused_with_who_and_how_long_and_how_many_wait)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_lock("door", "bob", 500, 900);
    engine_now_us += 100 * MS + 1;
    EXPECT(engine_lock("door", "eve", 500, 0),
           "BUSY name=door owner=ann expires_ms=399 waiting=1 position=2");
    CHECK_EQ(hold_seq(engine), 2); /* the grant and the ticket */
}

TEST(the_owner_enters_again_with_the_same_token_and_leaves_as_often)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    const struct hold_out *out = engine_lock("door", "ann", 900, 0);
    EXPECT(out, "OK token=1 safe_ms=900 count=2 waited_ms=0");
    EXPECT_EVENTS(out, "2 LOCK_REENTERED door");
    /* a shorter time does not shorten the hold */
    EXPECT(engine_lock("door", "ann", 5, 0),
           "OK token=1 safe_ms=900 count=3 waited_ms=0");
    EXPECT(engine_unlock("door", 1), "OK remaining=2");
    EXPECT(engine_unlock("door", 1), "OK remaining=1");
    out = engine_unlock("door", 1);
    EXPECT(out, "OK remaining=0");
    EXPECT_EVENTS(out, "6 LOCK_RELEASED door");
    EXPECT(engine_unlock("door", 1), "NOTHELD name=door token=1");
    EXPECT(engine_info("door"), "NOTFOUND name=door");
}

TEST(a_lock_expires_at_its_microsecond_and_not_before)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_now_us += 500 * MS - 1;
    EXPECT_EVENTS(engine_tick(), "");
    EXPECT(engine_lock("door", "bob", 5, 0),
           "BUSY name=door owner=ann expires_ms=0 waiting=0 position=1");
    engine_now_us += 1;
    EXPECT(engine_info("door"), "EARLY"); /* never shown again */
    EXPECT(engine_info("gate"), "NOTFOUND name=gate");
    CHECK_EQ(hold_next_due_us(engine), engine_now_us);
    CHECK(!hold_is_behind(engine)); /* not at the engine's own time */
    const struct hold_out *out = engine_lock("door", "bob", 5, 0);
    EXPECT(out, "OK token=3 safe_ms=5 count=1 waited_ms=0");
    EXPECT_EVENTS(out, "2 LOCK_EXPIRED door; 3 LOCK_GRANTED door");
    EXPECT(engine_unlock("door", 1), "NOTHELD name=door token=1");
}

TEST(time_that_goes_back_counts_as_standing_still)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_now_us -= 300 * MS;
    EXPECT(engine_lock("door", "bob", 5, 0),
           "BUSY name=door owner=ann expires_ms=500 waiting=0 position=1");
    CHECK_EQ(hold_now_us(engine), engine_now_us + 300 * MS);
}

TEST(an_expiry_tells_how_late_it_was_noticed)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_now_us += 500 * MS + 42;
    EXPECT_EVENTS(engine_tick(), "2 LOCK_EXPIRED door +42us");
}

TEST(waiters_are_served_first_in_first_out)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    EXPECT(engine_lock("door", "bob", 100, 4000), "WAITING ticket=2");
    engine_now_us += 10 * MS;
    EXPECT(engine_lock("door", "eve", 200, 4000), "WAITING ticket=3");
    engine_now_us += 10 * MS;
    const struct hold_out *out = engine_unlock("door", 1);
    EXPECT(out, "OK remaining=0");
    EXPECT_ANSWERS(out, "2:OK token=5 safe_ms=100 count=1 waited_ms=20");
    EXPECT_EVENTS(out, "4 LOCK_RELEASED door; 5 LOCK_GRANTED door");
    engine_now_us += 100 * MS; /* bob's time is over: eve is next */
    out = engine_tick();
    EXPECT_ANSWERS(out, "3:OK token=7 safe_ms=200 count=1 waited_ms=110");
    EXPECT_EVENTS(out, "6 LOCK_EXPIRED door; 7 LOCK_GRANTED door");
    EXPECT_BEGINS(engine_info("door"),
                  "OK name=door owner=eve token=7 expires_ms=200 "
                  "count=1 waiting=0 held_ms=0");
}

TEST(waiters_of_one_owner_in_a_row_are_served_together)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_lock("door", "bob", 100, 4000);
    engine_lock("door", "bob", 300, 4000);
    engine_lock("door", "eve", 100, 4000);
    engine_lock("door", "bob", 100, 4000);
    const struct hold_out *out = engine_unlock("door", 1);
    EXPECT_ANSWERS(out, "2:OK token=7 safe_ms=100 count=1 waited_ms=0; "
                        "3:OK token=7 safe_ms=300 count=2 waited_ms=0");
    EXPECT_EVENTS(out, "6 LOCK_RELEASED door; 7 LOCK_GRANTED door; "
                       "8 LOCK_REENTERED door");
    EXPECT_BEGINS(engine_info("door"),
                  "OK name=door owner=bob token=7 expires_ms=300 "
                  "count=2 waiting=2 held_ms=0");
}

TEST(a_wait_ends_at_its_microsecond)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_lock("door", "bob", 100, 70);
    engine_lock("door", "eve", 100, 71);
    engine_now_us += 70 * MS - 1;
    EXPECT_ANSWERS(engine_tick(), "");
    engine_now_us += 1;
    EXPECT_ANSWERS(engine_tick(),
                   "2:TIMEOUT waited_ms=70 waiting=1 position=1");
    engine_now_us += MS;
    const struct hold_out *out = engine_tick();
    EXPECT_ANSWERS(out, "3:TIMEOUT waited_ms=71 waiting=0 position=1");
    EXPECT_EVENTS(out, "");
    EXPECT_BEGINS(
        engine_info("door"),
        "OK name=door owner=ann token=1 expires_ms=4929 count=1 waiting=0 "
        "held_ms=71");
}

TEST(what_is_due_at_one_instant_comes_in_the_order_of_numbers)
{
    engine_start();
    engine_lock("door", "ann", 50, 0);   /* 1, until 50 */
    engine_lock("gate", "ann", 100, 0);  /* 2, until 100 */
    engine_lock("gate", "bob", 100, 50); /* 3, waits until 50 */
    engine_lock("lid", "ann", 50, 0);    /* 4, until 50 */
    engine_now_us += 50 * MS;
    const struct hold_out *out = engine_tick();
    EXPECT_EVENTS(out, "5 LOCK_EXPIRED door; 6 LOCK_EXPIRED lid");
    EXPECT_ANSWERS(out, "3:TIMEOUT waited_ms=50 waiting=0 position=1");
}

TEST(a_lock_and_its_waiter_due_together_time_out_the_waiter)
{
    engine_start();
    engine_lock("door", "ann", 50, 0);
    engine_lock("door", "bob", 100, 50);
    engine_lock("door", "eve", 100, 51);
    engine_now_us += 50 * MS;
    const struct hold_out *out = engine_tick();
    EXPECT_EVENTS(out, "4 LOCK_EXPIRED door; 5 LOCK_GRANTED door");
    EXPECT_ANSWERS(out, "2:TIMEOUT waited_ms=50 waiting=1 position=1; "
                        "3:OK token=5 safe_ms=100 count=1 waited_ms=50");
}

TEST(renewing_needs_the_token_and_counts_from_now)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_now_us += 400 * MS;
    const struct hold_out *out = engine_renew("door", 1, 300);
    EXPECT(out, "OK safe_ms=300");
    EXPECT_EVENTS(out, "2 LOCK_RENEWED door");
    EXPECT(engine_renew("door", 2, 300), "LOST name=door token=2");
    EXPECT(engine_renew("gate", 1, 300), "LOST name=gate token=1");
    EXPECT(engine_renew("door", 1, 10), "OK safe_ms=10"); /* also shorter */
    engine_now_us += 10 * MS;
    EXPECT(engine_renew("door", 1, 10), "LOST name=door token=1");
}

TEST(an_abandoned_wait_gets_no_answer_and_no_lock)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_lock("door", "bob", 500, 400);
    engine_lock("door", "eve", 500, 400);
    EXPECT(engine_abandon(2), "OK");
    EXPECT(engine_abandon(2), "OK"); /* unknown by now: nothing */
    EXPECT(engine_abandon(999), "OK");
    CHECK_EQ(hold_seq(engine), 3);
    EXPECT_ANSWERS(engine_unlock("door", 1),
                   "3:OK token=5 safe_ms=500 count=1 waited_ms=0");
}

TEST(an_abandoned_hold_is_given_back_once)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_lock("door", "ann", 500, 0);
    engine_lock("door", "bob", 500, 400);
    struct hold_command c = {.kind = HOLD_ABANDON,
                             .now_us = engine_now_us,
                             .name = hf_bytes_text("door"),
                             .token = 1};
    const struct hold_out *out = engine_apply(&c);
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "4 LOCK_RELEASED door");
    out = engine_apply(&c);
    EXPECT_EVENTS(out, "5 LOCK_RELEASED door; 6 LOCK_GRANTED door");
    EXPECT_ANSWERS(out, "3:OK token=6 safe_ms=500 count=1 waited_ms=0");
    out = engine_apply(&c); /* no longer held with that token: nothing */
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "");
}

TEST(a_restart_forgets_who_waits_and_skips_numbers)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_lock("door", "bob", 500, 400);
    const struct hold_out *out = engine_restart(1000);
    EXPECT(out, "OK");
    EXPECT_ANSWERS(out, "");
    CHECK_EQ(hold_seq(engine), 1002);
    EXPECT_EVENTS(engine_unlock("door", 1), "1003 LOCK_RELEASED door");
    EXPECT(engine_info("door"), "NOTFOUND name=door");
}

TEST(an_engine_starts_with_the_documented_bounds)
{
    engine_start();
    struct hold_bounds b = hold_get_bounds(engine);

    CHECK_EQ(b.locks_max, 10000000);
    CHECK_EQ(b.waiters_max, 10000);
    CHECK_EQ(b.products_max, 100000000);
    CHECK_EQ(b.reservations_max, 10000000);
    CHECK_EQ(b.fences_max, 1000000);
    CHECK_EQ(b.requests_max, 1000000);
    CHECK_EQ(b.request_keep_ms, 600000);
    CHECK_EQ(b.ended_keep_ms, 600000);
    CHECK_EQ(b.holders_max, 1000);
    CHECK_EQ(b.sessions_max, 1000000);
    CHECK_EQ(b.wound_grace_ms, 1000);
}

TEST(bounds_of_locks_and_queues_are_told_by_name)
{
    engine_start();
    engine_bound("locks_max", 1);
    engine_bound("waiters_max", 1);
    engine_bound("no_such_bound", 1);
    engine_lock("door", "ann", 500, 0);
    EXPECT(engine_lock("gate", "ann", 500, 0),
           "OVERLOADED name=locks-max maximum=1");
    engine_lock("door", "bob", 500, 100);
    EXPECT(engine_lock("door", "eve", 500, 100),
           "OVERLOADED name=waiters-max maximum=1");
    EXPECT(engine_lock("door", "eve", 500, 0),
           "BUSY name=door owner=ann expires_ms=500 waiting=1 position=2");
    engine_bound("waiters_max", UINT64_MAX);
    CHECK_EQ(hold_get_bounds(engine).waiters_max, HOLD_QUEUE_MAX);
    CHECK_EQ(hold_get_bounds(engine).locks_max, 1);
}

TEST(a_fence_takes_tokens_that_are_not_older_than_the_newest)
{
    engine_start();
    EXPECT(engine_fence("disk", 0), "OK"); /* nothing seen, nothing kept */
    CHECK_EQ(hold_seq(engine), 0);
    engine_restart(9);
    const struct hold_out *out = engine_fence("disk", 7);
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "10 FENCE_RAISED disk");
    EXPECT_EVENTS(engine_fence("disk", 7), ""); /* the same again */
    EXPECT(engine_fence("disk", 6), "STALE name=disk token=6 newest=7");
    EXPECT(engine_fence("disk", 9), "OK");
    EXPECT(engine_fence("tape", 1), "OK");
    engine_bound("fences_max", 2);
    EXPECT(engine_fence("card", 1), "OVERLOADED name=fences-max maximum=2");
    EXPECT(engine_fence("tape", 2), "OK"); /* the old ones go on */
    EXPECT(engine_fence("card", 0), "OK"); /* nothing is kept */
}

TEST(a_fence_refuses_a_token_that_was_never_given)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    EXPECT(engine_fence("disk", 2), "BADARG token=2 newest=1");
    EXPECT(engine_fence("disk", INT64_MAX),
           "BADARG token=9223372036854775807 newest=1");
    EXPECT(engine_fence("disk", 1), "OK");
    EXPECT(engine_fence("disk", 2), "OK"); /* the raise took number 2 */
    EXPECT(engine_fence("disk", 4), "BADARG token=4 newest=3");
    engine_bound("fences_max", 1);
    EXPECT(engine_fence("tape", 9), "BADARG token=9 newest=3");
}

TEST(a_deleted_fence_takes_old_tokens_again_and_makes_room)
{
    engine_start();
    engine_restart(9);
    engine_bound("fences_max", 1);
    engine_fence("disk", 7);
    EXPECT(engine_fence_delete("tape"), "NOTFOUND resource=tape");
    const struct hold_out *out = engine_fence_delete("disk");
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "11 FENCE_DELETED disk");
    EXPECT(engine_fence_delete("disk"), "NOTFOUND resource=disk");
    EXPECT(engine_fence("tape", 3), "OK");
    engine_fence_delete("tape");
    EXPECT(engine_fence("disk", 3), "OK");
    CHECK_ENGINE();
}

/* Finding 2: the lock was over, its waiter gone with the server. */
TEST(a_restart_grants_nothing_to_those_who_waited)
{
    engine_start();
    engine_lock("door", "ann", 700, 0);
    engine_request = "q1";
    engine_lock("door", "bob", 3600000, 60000);
    engine_request = NULL;
    engine_now_us += 1000 * MS;
    const struct hold_out *out = engine_restart(10);
    EXPECT_EVENTS(out, "3 LOCK_EXPIRED door +300000us");
    EXPECT_ANSWERS(out, "");
    CHECK_EQ(hold_seq(engine), 13);
    EXPECT(engine_info("door"), "NOTFOUND name=door");
    EXPECT(engine_lock("door", "bob", 5, 0),
           "OK token=14 safe_ms=5 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(a_flush_ends_everything_but_the_numbers)
{
    engine_start();
    engine_restart(7);
    engine_lock("door", "ann", 500, 0);
    engine_lock("door", "bob", 500, 400);
    engine_fence("disk", 7);
    const struct hold_out *out = engine_flush();
    EXPECT(out, "OK");
    EXPECT_ANSWERS(out, "9:NOTHELD");
    EXPECT_EVENTS(out, "11 FLUSHED");
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    EXPECT(engine_fence("disk", 1), "OK");
    EXPECT(engine_lock("door", "eve", 5, 0),
           "OK token=13 safe_ms=5 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(locks_are_listed_in_pages_without_the_expired_ones)
{
    engine_start();
    engine_lock("a/1", "ann", 100, 0);
    engine_lock("a/2", "bob", 50, 0);
    engine_lock("b/1", "ann", 100, 0);
    engine_now_us += 50 * MS;
    EXPECT(engine_locks("a/*", 0, 0), "EARLY");
    engine_tick();
    EXPECT(engine_locks("a/*", 0, 0),
           "OK locks=[{name=a/1 owner=ann token=1 expires_ms=50 count=1 "
           "waiting=0 tree=0}] cursor=0");
    EXPECT(engine_locks("", 0, 1),
           "OK locks=[{name=a/1 owner=ann token=1 expires_ms=50 count=1 "
           "waiting=0 tree=0}] cursor=2");
    EXPECT(engine_locks("", 2, 1),
           "OK locks=[{name=b/1 owner=ann token=3 expires_ms=50 count=1 "
           "waiting=0 tree=0}] cursor=0");
    EXPECT(engine_locks("", 99, 1), "OK locks=[] cursor=0");
}

/* A thousand locks fall due at once: each step handles HOLD_STEP_MAX. */
TEST(a_backlog_is_swept_in_bounded_steps_and_never_shown)
{
    char name[32];

    engine_start();
    for (int i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "lock/%d", i);
        engine_lock(name, "ann", 100, 0);
    }
    engine_now_us += 200 * MS;
    CHECK_EQ(engine_tick()->event_count, HOLD_STEP_MAX);
    CHECK(hold_is_behind(engine));
    EXPECT(engine_info("lock/999"), "EARLY");
    EXPECT(engine_info("lock/0"), "NOTFOUND name=lock/0");
    EXPECT(engine_locks("", 0, 0), "EARLY");
    /* a command settles the lock it is about, however long the backlog */
    const struct hold_out *out = engine_lock("lock/999", "bob", 100, 0);
    CHECK_EQ(out->event_count, HOLD_STEP_MAX + 2);
    EXPECT(out, "OK token=1514 safe_ms=100 count=1 waited_ms=0");
    EXPECT(engine_unlock("lock/998", 999), "NOTHELD name=lock/998 token=999");
    engine_tick();
    CHECK(!hold_is_behind(engine));
    struct hold_counts counts;
    hold_count(engine, &counts);
    CHECK_EQ(counts.locks, 1);
    CHECK_ENGINE();
}

/* What is over does not count, however much of it there is: 600 locks, or 600
 * waits with a REQ, of which one call sweeps HOLD_STEP_MAX. Of the locks, the
 * bound may be met when some are swept; requests go when there is need. */
TEST(a_bound_is_not_met_by_what_is_over_and_not_swept_yet)
{
    static const struct {
        bool requests;
        uint64_t bound;
        int again;
    } rounds[] = {
        {false, 10, 2}, {false, 601 - HOLD_STEP_MAX, 1}, {true, 600, 2}};
    char name[32];

    for (unsigned round = 0; round < 3; round++) {
        bool requests = rounds[round].requests;
        engine_start();
        engine_lock("door", "ann", 100000, 0);
        for (int i = 0; i < 600; i++) {
            snprintf(name, sizeof name, "%d", i);
            engine_request = requests ? name : NULL;
            engine_lock(requests ? "door" : name, "bob", 100, 100);
        }
        engine_bound(requests ? "requests_max" : "locks_max",
                     rounds[round].bound);
        engine_now_us += 100 * MS;
        engine_request = requests ? "new" : NULL;
        const struct hold_out *out = engine_lock("gate", "bob", 100, 0);
        int again = 0;
        for (; out->code == HOLD_AGAIN; again++)
            out = engine_again();
        CHECK_EQ(out->code, HOLD_OK);
        CHECK_EQ(again, rounds[round].again);
        CHECK_ENGINE();
    }
}

TEST(a_full_queue_of_one_owner_is_served_in_one_step)
{
    engine_start();
    engine_lock("door", "ann", 100000, 0);
    for (unsigned i = 0; i < HOLD_QUEUE_MAX; i++)
        CHECK_EQ(engine_lock("door", "bob", 5, 50000)->code, HOLD_WAITING);
    EXPECT(engine_lock("door", "bob", 5, 50000),
           "OVERLOADED name=waiters-max maximum=10000");
    const struct hold_out *out = engine_unlock("door", 1);
    CHECK_EQ(out->answer_count, HOLD_QUEUE_MAX);
    CHECK_EQ(out->event_count, HOLD_QUEUE_MAX + 1);
    CHECK_EQ(
        reply_get_number(out->answers[HOLD_QUEUE_MAX - 1].body, FIELD_COUNT),
        HOLD_QUEUE_MAX);
    CHECK_ENGINE();
}
