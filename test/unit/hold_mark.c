/* hold_mark.c - tests of DELAY, DONE and MAXHOLD. */
#include "hold/state.h"
#include "support/engine.h"

TEST_ONE_THREAD;

TEST(after_an_expiry_a_lock_with_delay_stays_closed)
{
    engine_start();
    engine_do("LOCK door OWNER ann TTL 100 DELAY 50");
    engine_do("LOCK door OWNER bob TTL 500 WAIT 9000"); /* 2 */
    engine_now_us += 100 * MS;
    const struct hold_out *out = engine_tick();
    EXPECT_EVENTS(out, "3 LOCK_EXPIRED door");
    EXPECT_ANSWERS(out, "");
    EXPECT(engine_do("LOCK door OWNER eve"),
           "BUSY name=door expires_ms=50 waiting=1 position=2");
    EXPECT(engine_do("LOCK door OWNER eve BARGE SHARED"),
           "BUSY name=door expires_ms=50 waiting=1 position=2");
    EXPECT(engine_do("LOCK door OWNER ann"), /* who lost it has no right */
           "BUSY name=door expires_ms=50 waiting=1 position=2");
    EXPECT_BEGINS(engine_do("LOCKINFO door"),
                  "OK name=door owner= token=0 expires_ms=50 count=0 waiting=1 "
                  "held_ms=0 mode=closed ");
    engine_now_us += 50 * MS - 1;
    EXPECT_EVENTS(engine_tick(), "");
    engine_now_us += 1;
    out = engine_tick();
    EXPECT_EVENTS(out, "5 LOCK_GRANTED door"); /* 4 is the mark's */
    EXPECT_ANSWERS(out, "2:OK token=5 safe_ms=500 count=1 waited_ms=150");
    CHECK_ENGINE();
}

TEST(a_release_closes_nothing)
{
    engine_start();
    engine_do("LOCK door OWNER ann DELAY 50");
    engine_do("UNLOCK door 1");
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    EXPECT(engine_do("LOCK door OWNER bob DELAY 50 TTL 5"),
           "OK token=3 safe_ms=5 count=1 waited_ms=0");
    engine_timeout("door", 3, ""); /* nobody was told of it */
    EXPECT(engine_do("LOCK door OWNER eve TTL 5"),
           "OK token=5 safe_ms=5 count=1 waited_ms=0");
    uint64_t set =
        engine_token(engine_do("LOCKSET OWNER ann NAME a NAME b DELAY 50"));
    engine_do("UNLOCKSET %d", (int)set);
    EXPECT(engine_do("LOCKINFO a"), "NOTFOUND name=a");
    CHECK_ENGINE();
}

/* Its session, a revocation, a wound. */
TEST(every_end_that_is_no_release_closes)
{
    for (int round = 0; round < 3; round++) {
        engine_start();
        engine_session(9000000);
        engine_session(9000000);
        engine_bound("wound_grace_ms", 10);
        engine_do("LOCK door OWNER ann SESSION 2 DELAY 50");
        if (round == 0)
            engine_do("SESSION CLOSE 2");
        else if (round == 1)
            engine_do("REVOKE door 3");
        else
            engine_do("LOCK door OWNER x SESSION 1 WAIT 10 DEADLOCK WOUNDWAIT");
        engine_now_us += round == 2 ? 10 * MS : 0;
        EXPECT(engine_do("LOCK door OWNER eve"),
               "BUSY name=door expires_ms=50 waiting=0 position=1");
        CHECK_ENGINE();
    }
}

TEST(a_set_with_delay_closes_all_its_names)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME a NAME b SHARED TTL 100 DELAY 50");
    engine_do("LOCK b OWNER bob SHARED TTL 900");
    engine_now_us += 100 * MS;
    engine_tick();
    EXPECT(engine_do("LOCK a OWNER eve"),
           "BUSY name=a expires_ms=50 waiting=0 position=1");
    EXPECT(engine_do("LOCK b OWNER eve SHARED"), /* held, and closed */
           "BUSY name=b expires_ms=50 waiting=0 position=1");
    EXPECT(engine_do("LOCK b OWNER bob SHARED TTL 9"), /* it is in already */
           "OK token=3 safe_ms=800 count=2 waited_ms=0 fence=1");
    EXPECT(engine_do("LOCKSET OWNER eve NAME a NAME c WAIT 9000 TTL 5"),
           "WAITING ticket=9");
    engine_now_us += 50 * MS;
    EXPECT_ANSWERS(engine_tick(),
                   "9:OK token=10 safe_ms=5 count=1 waited_ms=50");
    CHECK_ENGINE();
}

TEST(the_longer_of_two_delays_counts)
{
    engine_start();
    engine_do("LOCK door OWNER ann SHARED TTL 100 DELAY 500");
    engine_do("LOCK door OWNER bob SHARED TTL 200 DELAY 50");
    engine_now_us += 200 * MS;
    engine_tick();
    EXPECT(engine_do("LOCK door OWNER eve"),
           "BUSY name=door expires_ms=500 waiting=0 position=1");
}

TEST(a_wait_keeps_its_delay_for_the_grant)
{
    engine_start();
    engine_do("LOCK door OWNER ann TTL 100");
    engine_do("LOCK door OWNER bob TTL 100 DELAY 50 WAIT 9000");
    engine_do("LOCK gate OWNER ann TTL 900");
    engine_do("LOCK gate OWNER bob TTL 100 DELAY 50 WAIT 20"); /* in vain */
    engine_do("LOCKSET OWNER kim NAME door NAME x WAIT 30 DELAY 9");
    engine_reload();
    engine_now_us += 100 * MS;
    CHECK_EQ(engine_tick()->answer_count, 3);
    engine_now_us += 100 * MS;
    engine_tick();
    EXPECT(engine_do("LOCK door OWNER eve"),
           "BUSY name=door expires_ms=50 waiting=0 position=1");
    engine_reload();
    engine_now_us += 49 * MS;
    EXPECT(engine_do("LOCK door OWNER eve"),
           "BUSY name=door expires_ms=1 waiting=0 position=1");
    engine_now_us += 1 * MS;
    CHECK_EQ(engine_do("LOCK door OWNER eve")->code, HOLD_OK);
    CHECK_ENGINE();
}

/* ---- DONE. ---- */

TEST(work_that_is_done_is_not_done_again)
{
    engine_start();
    engine_do("LOCK migrate OWNER ann");
    engine_do("LOCK migrate OWNER bob WAIT 9000");        /* 2 */
    engine_do("LOCK migrate OWNER eve SHARED WAIT 9000"); /* 3 */
    const struct hold_out *out =
        engine_do("UNLOCK migrate 1 DONE 500 RESULT v7");
    EXPECT(out, "OK remaining=0");
    EXPECT_ANSWERS(out, "2:DONE name=migrate result=v7 expires_ms=500; "
                        "3:DONE name=migrate result=v7 expires_ms=500");
    EXPECT_EVENTS(out, "4 LOCK_RELEASED migrate");
    engine_now_us += 100 * MS;
    EXPECT(engine_do("LOCK migrate OWNER kim"),
           "DONE name=migrate result=v7 expires_ms=400");
    EXPECT(engine_do("LOCK migrate OWNER kim SHARED BARGE WAIT 9000"),
           "DONE name=migrate result=v7 expires_ms=400");
    EXPECT(engine_do("LOCKSET OWNER kim NAME a NAME migrate"),
           "DONE name=migrate result=v7 expires_ms=400");
    EXPECT_BEGINS(engine_do("LOCKINFO migrate"),
                  "OK name=migrate owner= token=0 expires_ms=400 count=0 "
                  "waiting=0 held_ms=0 mode=done session=0 names=0 note=v7 ");
    engine_reload();
    engine_now_us += 400 * MS - 1;
    EXPECT(engine_do("LOCK migrate OWNER kim"),
           "DONE name=migrate result=v7 expires_ms=0");
    engine_now_us += 1;
    CHECK_EQ(engine_do("LOCK migrate OWNER kim")->code, HOLD_OK);
    CHECK_ENGINE();
}

TEST(a_done_mark_ends_by_itself_and_costs_nothing_then)
{
    engine_start();
    engine_do("LOCK job OWNER ann");
    engine_do("UNLOCK job 1 DONE 500");
    EXPECT(engine_do("LOCK job OWNER ann"),
           "DONE name=job result= expires_ms=500");
    CHECK_EQ(hold_next_due_us(engine), engine_now_us + 500 * MS);
    struct hold_counts counts;
    hold_count(engine, &counts);
    CHECK_EQ(counts.locks, 0);
    engine_now_us += 500 * MS;
    engine_tick();
    EXPECT(engine_do("LOCKINFO job"), "NOTFOUND name=job");
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    CHECK_ENGINE();
}

TEST(only_the_last_release_can_say_done)
{
    engine_start();
    engine_do("LOCK job OWNER ann");
    engine_do("LOCK job OWNER ann");
    EXPECT(engine_do("UNLOCK job 1 DONE 500"), "STATE name=job count=2");
    EXPECT(engine_do("UNLOCK job 1"), "OK remaining=1");
    EXPECT(engine_do("UNLOCK job 1 DONE 500"), "OK remaining=0");
    EXPECT(engine_do("UNLOCK job 1 DONE 500"), "NOTHELD name=job token=1");
}

/* One of several holders says done: the others keep what they have. */
TEST(holders_beside_it_go_on_and_the_newest_result_counts)
{
    engine_start();
    engine_do("LOCK job OWNER ann SHARED TTL 5000");
    engine_do("LOCK job OWNER bob SHARED TTL 5000");
    engine_do("UNLOCK job 1 DONE 500 RESULT one");
    EXPECT(engine_do("HELD job 2"), "OK");
    EXPECT(engine_do("LOCK job OWNER bob SHARED TTL 5000"),
           "DONE name=job result=one expires_ms=500");
    EXPECT(engine_do("UNLOCK job 2 DONE 900 RESULT two"), "OK remaining=0");
    EXPECT(engine_do("LOCK job OWNER bob"),
           "DONE name=job result=two expires_ms=900");
    CHECK_ENGINE();
}

TEST(a_wait_for_a_set_ends_whole_when_one_of_its_names_is_done)
{
    engine_start();
    engine_do("LOCK b OWNER ann");
    engine_do(
        "LOCKSET OWNER bob NAME a NAME b NAME c WAIT 9000 DELAY 9"); /* 2 */
    engine_do("LOCK a OWNER eve TTL 5 WAIT 9000");                   /* 3 */
    engine_do("LOCK c OWNER kim TTL 5 WAIT 9000");                   /* 4 */
    const struct hold_out *out = engine_do("UNLOCK b 1 DONE 500");
    EXPECT_EVENTS(out, "5 LOCK_RELEASED b; 7 LOCK_GRANTED a; 8 LOCK_GRANTED c");
    EXPECT_ANSWERS(out, "2:DONE name=b result= expires_ms=500; "
                        "3:OK token=7 safe_ms=5 count=1 waited_ms=0; "
                        "4:OK token=8 safe_ms=5 count=1 waited_ms=0");
    CHECK_ENGINE();
}

/* What is kept for a REQ has no room for a result. */
TEST(a_request_that_waited_gets_the_result_again_when_it_asks_again)
{
    engine_start();
    engine_do("LOCK job OWNER ann");
    engine_do("LOCK job OWNER bob WAIT 9000 REQ q1"); /* 2 */
    EXPECT_ANSWERS(engine_do("UNLOCK job 1 DONE 500 RESULT r"),
                   "2:DONE name=job result=r expires_ms=500");
    engine_now_us += 100 * MS;
    EXPECT(engine_do("LOCK job OWNER bob WAIT 9000 REQ q1"),
           "DONE name=job result=r expires_ms=400");
    engine_now_us += 100 * MS; /* kept now */
    EXPECT(engine_do("LOCK job OWNER bob WAIT 9000 REQ q1"),
           "DONE name=job result=r expires_ms=300");
    CHECK_ENGINE();
}

TEST(a_name_may_be_closed_and_done)
{
    engine_start();
    engine_do("LOCK job OWNER ann SHARED TTL 100 DELAY 500");
    engine_do("LOCK job OWNER bob SHARED TTL 5000");
    engine_now_us += 100 * MS;
    engine_tick(); /* closed until 600 */
    engine_do("UNLOCK job 2 DONE 200");
    EXPECT(engine_do("LOCK job OWNER eve"),
           "DONE name=job result= expires_ms=200");
    engine_reload();
    engine_now_us += 200 * MS;
    EXPECT(engine_do("LOCK job OWNER eve"),
           "BUSY name=job expires_ms=300 waiting=0 position=1");
    engine_now_us += 300 * MS;
    CHECK_EQ(engine_do("LOCK job OWNER eve")->code, HOLD_OK);
    CHECK_ENGINE();
}

/* While there is more due than one call sweeps, marks are exact, too. */
TEST(marks_that_are_over_and_not_swept_do_not_count)
{
    engine_start();
    engine_do("LOCK job OWNER ann");
    engine_do("UNLOCK job 1 DONE 150");
    engine_do("LOCK door OWNER ann TTL 50 DELAY 100");
    for (unsigned i = 0; i < 600; i++)
        engine_do("LOCK n%03u OWNER ann TTL 100", i);
    engine_now_us += 50 * MS;
    engine_tick();
    engine_now_us += 100 * MS;
    engine_tick();
    CHECK(hold_is_behind(engine));
    EXPECT(engine_do("LOCKINFO job"), "EARLY");
    EXPECT(engine_do("HELD door 4"), "EARLY");
    CHECK_EQ(engine->marks.used, 2);
    CHECK_EQ(engine_do("LOCK job OWNER bob")->code, HOLD_OK);
    CHECK(hold_is_behind(engine));
    CHECK_EQ(engine->marks.used, 1); /* that of what was touched is gone */
    CHECK_EQ(engine_do("LOCK door OWNER bob")->code, HOLD_OK);
    CHECK_ENGINE();
}

/* ---- MAXHOLD. ---- */

TEST(maxhold_bounds_what_renewals_add_up_to)
{
    engine_start();
    EXPECT(engine_do("LOCK door OWNER ann TTL 500 MAXHOLD 800"),
           "OK token=1 safe_ms=500 count=1 waited_ms=0");
    engine_now_us += 400 * MS;
    EXPECT(engine_do("RENEW door 1 TTL 300"), "OK safe_ms=300");
    EXPECT(engine_do("RENEW door 1 TTL 500"), "OK safe_ms=400");
    EXPECT(engine_do("LOCK door OWNER ann TTL 9000"), /* nor a re-entry */
           "OK token=1 safe_ms=400 count=2 waited_ms=0");
    EXPECT(engine_do("LOCK door OWNER ann TTL 9000 MAXHOLD 90000"),
           "OK token=1 safe_ms=400 count=3 waited_ms=0");
    engine_reload();
    EXPECT(engine_do("RENEW door 1 TTL 9000"), "OK safe_ms=400");
    engine_now_us += 400 * MS;
    EXPECT(engine_do("RENEW door 1 TTL 1"), "LOST name=door token=1");
    EXPECT(engine_do("LOCK door OWNER ann TTL 500 MAXHOLD 100"),
           "OK token=8 safe_ms=100 count=1 waited_ms=0");
}

TEST(maxhold_counts_from_the_grant_not_from_the_request)
{
    engine_start();
    engine_session(90000);
    engine_do("LOCK door OWNER ann TTL 500");
    engine_do("LOCK door OWNER bob SESSION 1 MAXHOLD 300 WAIT 9000"); /* 3 */
    engine_now_us += 500 * MS;
    EXPECT_ANSWERS(engine_tick(),
                   "3:OK token=5 safe_ms=300 count=1 waited_ms=500");
    EXPECT(engine_do("LOCKSET OWNER bob SESSION 1 NAME a NAME b MAXHOLD 200"),
           "OK token=6 safe_ms=200 count=1 waited_ms=0");
    engine_now_us += 100 * MS;
    EXPECT(engine_do("RENEWSET 6 TTL 9000"), "OK safe_ms=100");
    engine_do("SESSION KEEP 1");
    engine_now_us += 200 * MS;
    const struct hold_out *out = engine_tick();
    CHECK_EQ(out->event_count, 3);
    CHECK_EQ(out->events[2].kind, EVENT_LOCK_EXPIRED);
    CHECK_ENGINE();
}

TEST(the_end_of_a_delay_leaves_done_what_is)
{
    engine_start();
    engine_do("LOCK job OWNER ann SHARED TTL 100 DELAY 200");
    engine_do("LOCK job OWNER bob SHARED TTL 5000");
    engine_now_us += 100 * MS;
    engine_tick(); /* closed until 300 */
    engine_do("UNLOCK job 2 DONE 900 RESULT r");
    engine_now_us += 200 * MS;
    engine_tick();
    EXPECT(engine_do("LOCK job OWNER eve"),
           "DONE name=job result=r expires_ms=700");
    CHECK_EQ(hold_next_due_us(engine), engine_now_us + 700 * MS);
    CHECK_ENGINE();
}
