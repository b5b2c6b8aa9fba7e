/* hold_set.c - tests of sets: several locks, all of them or none. */
#include "support/engine.h"

TEST_ONE_THREAD;

TEST(a_set_is_granted_as_one_with_the_number_of_its_first_name)
{
    engine_start();
    const struct hold_out *out =
        engine_do("LOCKSET OWNER ann NAME c NAME a NAME b SHARED TTL 500");
    EXPECT(out, "OK token=1 safe_ms=500 count=1 waited_ms=0");
    EXPECT_EVENTS(out, "1 LOCK_GRANTED a; 2 LOCK_GRANTED b; 3 LOCK_GRANTED c");
    for (unsigned i = 0; i < 3; i++) {
        CHECK_EQ(out->events[i].token, 1);
        CHECK_EQ(out->events[i].mode, i == 1);
    }
    EXPECT(engine_do("HELD a 1"), "OK");
    EXPECT(engine_do("HELD c 1"), "OK");
    EXPECT(engine_do("HELD c 3"), "LOST name=c token=3");
    EXPECT(engine_do("LOCK c OWNER bob"),
           "BUSY name=c owner=ann expires_ms=500 waiting=0 position=1");
    EXPECT(engine_do("LOCK b OWNER bob SHARED TTL 5"),
           "OK token=4 safe_ms=5 count=1 waited_ms=0 fence=1");
    EXPECT(engine_do("FENCE disk 1"), "OK");
    CHECK_ENGINE();
}

TEST(a_set_is_refused_whole_and_names_the_first_name_that_is_not_free)
{
    engine_start();
    engine_do("LOCK b OWNER bob TTL 500");
    engine_do("LOCK c OWNER eve TTL 600");
    uint64_t seq = hold_seq(engine);
    const struct hold_out *out =
        engine_do("LOCKSET OWNER ann NAME c NAME b NAME a");
    EXPECT(out, "BUSY name=b owner=bob expires_ms=500 waiting=0 position=1");
    EXPECT_EVENTS(out, "");
    CHECK_EQ(hold_seq(engine), seq);
    EXPECT(engine_do("LOCKINFO a"), "NOTFOUND name=a"); /* nothing is held */
    struct hold_counts counts;
    hold_count(engine, &counts);
    CHECK_EQ(counts.locks, 2);
    CHECK_EQ(counts.sets, 0);
    CHECK_ENGINE();
}

/* Also while it waits, and while names become free one by one. */
TEST(a_set_that_waits_holds_nothing_until_it_gets_all)
{
    engine_start();
    engine_do("LOCK b OWNER bob TTL 500");
    engine_do("LOCK c OWNER eve TTL 600");
    EXPECT(
        engine_do("LOCKSET OWNER ann NAME a NAME b NAME c TTL 500 WAIT 9000"),
        "WAITING ticket=3");
    EXPECT_BEGINS(engine_do("LOCKINFO a"), "OK name=a owner= token=0 ");
    EXPECT_ANSWERS(engine_do("UNLOCK b 1"), "");
    EXPECT_BEGINS(engine_do("LOCKINFO b"), "OK name=b owner= token=0 ");
    const struct hold_out *out = engine_do("UNLOCK c 2");
    EXPECT_ANSWERS(out, "3:OK token=6 safe_ms=500 count=1 waited_ms=0");
    EXPECT_EVENTS(out, "5 LOCK_RELEASED c; 6 LOCK_GRANTED a; 7 LOCK_GRANTED b; "
                       "8 LOCK_GRANTED c");
    CHECK_ENGINE();
}

TEST(a_set_is_given_back_whole)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME a NAME b TTL 500");
    engine_do("LOCK b OWNER bob TTL 500 WAIT 900"); /* 3 */
    EXPECT(engine_do("UNLOCK a 1"), "STATE name=a mode=exclusive names=2");
    EXPECT(engine_do("RENEW b 1 TTL 9"), "STATE name=b mode=exclusive names=2");
    EXPECT(engine_do("UNLOCK a 2"), "NOTHELD name=a token=2");
    EXPECT(engine_do("RENEWSET 2 TTL 9"), "LOST token=2");
    const struct hold_out *out = engine_do("RENEWSET 1 TTL 700");
    EXPECT(out, "OK safe_ms=700");
    EXPECT_EVENTS(out, "4 LOCK_RENEWED a");
    out = engine_do("UNLOCKSET 1");
    EXPECT(out, "OK remaining=0");
    EXPECT_EVENTS(out,
                  "5 LOCK_RELEASED a; 6 LOCK_RELEASED b; 7 LOCK_GRANTED b");
    EXPECT_ANSWERS(out, "3:OK token=7 safe_ms=500 count=1 waited_ms=0");
    EXPECT(engine_do("UNLOCKSET 1"), "NOTHELD token=1");
    EXPECT(engine_do("UNLOCKSET 7"), "NOTHELD token=7"); /* of a single lock */
    CHECK_ENGINE();
}

TEST(the_identical_set_is_re_entered)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME a NAME b SHARED TTL 500");
    const struct hold_out *out =
        engine_do("LOCKSET OWNER ann NAME b SHARED NAME a TTL 900");
    EXPECT(out, "OK token=1 safe_ms=900 count=2 waited_ms=0");
    EXPECT_EVENTS(out, "3 LOCK_REENTERED a");
    out = engine_do("UNLOCKSET 1");
    EXPECT(out, "OK remaining=1");
    EXPECT_EVENTS(out, "4 LOCK_RELEASED a");
    CHECK(out->events[0].age_us == HOLD_NO_AGE);
    engine_now_us += 10 * MS;
    out = engine_do("UNLOCKSET 1");
    EXPECT(out, "OK remaining=0");
    EXPECT_EVENTS(out, "5 LOCK_RELEASED a; 6 LOCK_RELEASED b");
    CHECK_EQ(out->events[0].age_us, 10 * MS);
    CHECK_EQ(out->events[1].age_us, 10 * MS);
    CHECK_ENGINE();
}

TEST(an_overlap_with_own_grants_is_refused)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME b NAME c SHARED");
    EXPECT(engine_do("LOCKSET OWNER ann NAME a NAME b"),
           "STATE name=b mode=exclusive names=2");
    EXPECT(engine_do("LOCKSET OWNER ann NAME b NAME c"), /* other modes */
           "STATE name=b mode=exclusive names=2");
    EXPECT(engine_do("LOCKSET OWNER ann NAME b NAME c SHARED NAME d WAIT 100"),
           "STATE name=b mode=exclusive names=2");
    EXPECT(engine_do("LOCKSET OWNER ann NAME c SHARED"),
           "STATE name=c mode=shared names=2");
    EXPECT(engine_do("LOCK c OWNER ann SHARED"),
           "STATE name=c mode=shared names=2");
    EXPECT(engine_do("LOCK b OWNER ann FOREVER"),
           "STATE name=b mode=exclusive names=2");
    engine_do("LOCK x OWNER ann");
    EXPECT(engine_do("LOCKSET OWNER ann NAME x"),
           "STATE name=x mode=exclusive");
    EXPECT(engine_do("LOCKSET OWNER ann NAME w NAME x"),
           "STATE name=x mode=exclusive");
    /* another holder has no overlap */
    EXPECT(engine_do("LOCKSET OWNER bob NAME c SHARED TTL 5"),
           "OK token=4 safe_ms=5 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(a_set_of_one_name_is_a_set)
{
    engine_start();
    EXPECT(engine_do("LOCKSET OWNER ann NAME a TTL 5"),
           "OK token=1 safe_ms=5 count=1 waited_ms=0");
    EXPECT(engine_do("UNLOCK a 1"), "STATE name=a mode=exclusive names=1");
    EXPECT(engine_do("UNLOCKSET 1"), "OK remaining=0");
}

/* In each queue it has its place, like anybody else. */
TEST(a_set_that_waits_is_not_overtaken_by_later_requests_for_one_of_its_names)
{
    engine_start();
    engine_do("LOCK b OWNER bob TTL 500");
    EXPECT(engine_do("LOCKSET OWNER ann NAME a NAME b TTL 500 WAIT 9000"),
           "WAITING ticket=2");
    EXPECT(engine_do("LOCK a OWNER eve"), /* free, but ann is before */
           "BUSY name=a owner=ann waited_ms=0 waiting=1 position=2");
    EXPECT(engine_do("LOCK a OWNER eve SHARED"),
           "BUSY name=a owner=ann waited_ms=0 waiting=1 position=2");
    engine_do("LOCK a OWNER eve TTL 500 WAIT 9000"); /* 3 */
    engine_do("LOCK b OWNER kim TTL 500 WAIT 9000"); /* 4 */
    EXPECT_ANSWERS(engine_do("UNLOCK b 1"),
                   "2:OK token=6 safe_ms=500 count=1 waited_ms=0");
    EXPECT_ANSWERS(engine_do("UNLOCKSET 6"),
                   "3:OK token=10 safe_ms=500 count=1 waited_ms=0; "
                   "4:OK token=11 safe_ms=500 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(a_set_waits_behind_those_who_came_before)
{
    engine_start();
    engine_do("LOCK a OWNER bob TTL 500");
    engine_do("LOCK a OWNER eve TTL 500 WAIT 9000");                /* 2 */
    engine_do("LOCKSET OWNER ann NAME a NAME b TTL 500 WAIT 9000"); /* 3 */
    engine_do("LOCKSET OWNER kim NAME b NAME c TTL 500 WAIT 9000"); /* 4 */
    EXPECT_BEGINS(engine_do("LOCKINFO b"), "OK name=b owner= token=0 ");
    EXPECT_ANSWERS(engine_do("UNLOCK a 1"),
                   "2:OK token=6 safe_ms=500 count=1 waited_ms=0");
    EXPECT_ANSWERS(engine_do("UNLOCK a 6"),
                   "3:OK token=8 safe_ms=500 count=1 waited_ms=0");
    EXPECT_ANSWERS(engine_do("UNLOCKSET 8"),
                   "4:OK token=12 safe_ms=500 count=1 waited_ms=0");
    CHECK_ENGINE();
}

/* What one wait for several names blocked is looked at when it goes. */
TEST(the_end_of_a_wait_for_a_set_serves_all_its_names)
{
    for (int round = 0; round < 3; round++) {
        engine_start();
        engine_do("LOCK z OWNER bob TTL 5000");
        engine_do("LOCKSET OWNER ann NAME a NAME b NAME z WAIT 100"); /* 2 */
        engine_do("LOCK a OWNER eve TTL 500 WAIT 9000");              /* 3 */
        engine_do("LOCKSET OWNER kim NAME b NAME c TTL 9 WAIT 9000"); /* 4 */
        const struct hold_out *out;
        if (round == 0) {
            engine_now_us += 100 * MS;
            out = engine_tick();
            EXPECT_ANSWERS(out,
                           "2:TIMEOUT waited_ms=100 waiting=1 position=1; "
                           "3:OK token=5 safe_ms=500 count=1 waited_ms=100; "
                           "4:OK token=6 safe_ms=9 count=1 waited_ms=100");
        } else {
            out = round == 1 ? engine_abandon(2) : engine_timeout("", 2, "");
            CHECK_EQ(out->answer_count, round == 1 ? 2 : 3);
        }
        EXPECT_EVENTS(out,
                      "5 LOCK_GRANTED a; 6 LOCK_GRANTED b; 7 LOCK_GRANTED c");
        CHECK_ENGINE();
    }
}

/* A reader of a set that waits elsewhere lets later readers pass. */
TEST(a_shared_name_of_a_waiting_set_stops_writers_only)
{
    engine_start();
    engine_do("LOCK z OWNER bob TTL 5000");
    engine_do("LOCKSET OWNER ann NAME a SHARED NAME z WAIT 9000"); /* 2 */
    EXPECT(engine_do("LOCK a OWNER eve SHARED TTL 5"),
           "OK token=3 safe_ms=5 count=1 waited_ms=0 fence=3");
    EXPECT(engine_do("LOCK a OWNER kim TTL 500 WAIT 9000"), "WAITING ticket=4");
    EXPECT(engine_do("LOCK a OWNER lea SHARED TTL 5 WAIT 9000"),
           "WAITING ticket=5");
    engine_do("UNLOCK a 3");
    /* kim is behind ann, who waits for z: nobody is granted */
    EXPECT_BEGINS(engine_do("LOCKINFO a"), "OK name=a owner= token=0 ");
    const struct hold_out *out = engine_do("UNLOCK z 1");
    CHECK_EQ(out->answer_count, 1);
    CHECK_EQ(out->answers[0].ticket, 2);
    CHECK_ENGINE();
}

TEST(a_set_expires_whole_and_its_names_are_served)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME a NAME b TTL 500");
    engine_do("LOCK a OWNER bob TTL 500 WAIT 9000");
    engine_do("LOCK b OWNER eve TTL 500 WAIT 9000");
    engine_now_us += 500 * MS + 7;
    const struct hold_out *out = engine_tick();
    EXPECT_EVENTS(out, "5 LOCK_EXPIRED a +7us; 6 LOCK_EXPIRED b +7us; "
                       "7 LOCK_GRANTED a; 8 LOCK_GRANTED b");
    CHECK_EQ(out->events[1].age_us, 500 * MS + 7);
    EXPECT(engine_do("RENEWSET 1 TTL 5"), "LOST token=1");
    CHECK_ENGINE();
}

TEST(a_set_is_revoked_whole_by_any_of_its_names)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME a NAME b TTL 500");
    EXPECT(engine_do("REVOKE b 9"), "NOTHELD name=b token=9");
    const struct hold_out *out = engine_do("REVOKE b 1 GRACE 100");
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "3 LOCK_WOUNDED a");
    EXPECT(engine_do("RENEWSET 1 TTL 900"), "OK safe_ms=100"); /* sealed */
    out = engine_do("REVOKE b 1");
    EXPECT_EVENTS(out, "5 LOCK_LOST a; 6 LOCK_LOST b");
    EXPECT(engine_do("LOCKINFO a"), "NOTFOUND name=a");
    CHECK_ENGINE();
}

TEST(a_set_given_up_for_a_client_is_given_back_once)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME a NAME b");
    engine_do("LOCKSET OWNER ann NAME a NAME b");
    EXPECT_EVENTS(engine_timeout("b", 1, ""), "4 LOCK_RELEASED a");
    EXPECT_EVENTS(engine_timeout("b", 1, ""),
                  "5 LOCK_RELEASED a; 6 LOCK_RELEASED b");
    EXPECT_EVENTS(engine_timeout("b", 1, ""), "");
    CHECK_ENGINE();
}

TEST(a_wait_for_the_set_that_its_owner_got_meanwhile_re_enters)
{
    engine_start();
    engine_do("LOCK b OWNER bob");
    engine_do("LOCKSET OWNER ann NAME a NAME b TTL 500 WAIT 9000"); /* 2 */
    engine_do("LOCKSET OWNER ann NAME a NAME b TTL 900 WAIT 9000"); /* 3 */
    EXPECT_ANSWERS(engine_do("UNLOCK b 1"),
                   "2:OK token=5 safe_ms=500 count=1 waited_ms=0; "
                   "3:OK token=5 safe_ms=900 count=2 waited_ms=0");
    EXPECT(engine_do("UNLOCKSET 5"), "OK remaining=1");
    EXPECT(engine_do("UNLOCKSET 5"), "OK remaining=0");
    CHECK_ENGINE();
}

/* Not the same set: it waits for its own grant to end, and deadlocks nobody. */
TEST(a_wait_for_another_set_with_a_name_of_its_own_waits_for_itself)
{
    engine_start();
    engine_do("LOCK b OWNER bob");
    engine_do("LOCKSET OWNER ann NAME a NAME b TTL 500 WAIT 9000"); /* 2 */
    engine_do("LOCKSET OWNER ann NAME b NAME c TTL 900 WAIT 9000"); /* 3 */
    EXPECT_ANSWERS(engine_do("UNLOCK b 1"),
                   "2:OK token=5 safe_ms=500 count=1 waited_ms=0");
    EXPECT_ANSWERS(engine_do("UNLOCKSET 5"),
                   "3:OK token=9 safe_ms=900 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(the_bounds_of_a_set_are_those_of_its_names)
{
    engine_start();
    engine_bound("locks_max", 3);
    engine_bound("waiters_max", 1);
    engine_do("LOCK a OWNER bob TTL 500");
    EXPECT(engine_do("LOCKSET OWNER ann NAME b NAME c NAME d"),
           "OVERLOADED name=locks-max maximum=3");
    EXPECT(engine_do("LOCKSET OWNER ann NAME b NAME c TTL 5"),
           "OK token=2 safe_ms=5 count=1 waited_ms=0");
    engine_do("LOCK a OWNER eve WAIT 100");
    EXPECT(engine_do("LOCKSET OWNER kim NAME a NAME b WAIT 100"),
           "OVERLOADED name=waiters-max maximum=1");
    CHECK_ENGINE();
}

TEST(the_largest_set_is_taken_queued_and_given_back)
{
    static char names[HOLD_SET_MAX * 16];
    size_t len = 0;

    engine_start();
    for (unsigned i = 0; i < HOLD_SET_MAX; i++)
        len +=
            (size_t)snprintf(names + len, sizeof names - len, " NAME n%02u", i);
    CHECK_EQ(engine_do("LOCKSET OWNER ann%s", names)->event_count,
             HOLD_SET_MAX);
    CHECK_EQ(engine_do("LOCKSET OWNER bob%s WAIT 900", names)->code,
             HOLD_WAITING);
    CHECK_ENGINE();
    engine_reload();
    const struct hold_out *out = engine_do("UNLOCKSET 1");
    CHECK_EQ(out->event_count, 2 * HOLD_SET_MAX);
    CHECK_EQ(out->answer_count, 1);
    engine_do("UNLOCKSET %d",
              (int)reply_get_number(out->answers[0].body, FIELD_TOKEN));
    struct hold_counts counts;
    hold_count(engine, &counts);
    CHECK_EQ(counts.locks + counts.sets + counts.waiters, 0);
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    CHECK_ENGINE();
}

TEST(sets_and_waits_for_sets_survive_an_image)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME a NAME b SHARED TTL 500");
    engine_do("LOCK b OWNER bob SHARED TTL 500");
    engine_do("LOCKSET OWNER eve NAME b NAME c TTL 500 WAIT 9000"); /* 4 */
    engine_do("LOCK c OWNER kim TTL 500 WAIT 9000");                /* 5 */
    engine_reload();
    EXPECT(engine_do("LOCKSET OWNER ann NAME a NAME b SHARED TTL 900"),
           "OK token=1 safe_ms=900 count=2 waited_ms=0");
    engine_do("UNLOCKSET 1");
    EXPECT_ANSWERS(engine_do("UNLOCKSET 1"), "");
    EXPECT_ANSWERS(engine_do("UNLOCK b 3"),
                   "4:OK token=11 safe_ms=500 count=1 waited_ms=0");
    EXPECT_ANSWERS(engine_do("UNLOCKSET 11"),
                   "5:OK token=15 safe_ms=500 count=1 waited_ms=0");
    CHECK_ENGINE();
}

/* Sets that fall due at once count by their names. */
TEST(sets_that_expire_at_once_are_swept_in_bounded_steps)
{
    engine_start();
    for (unsigned i = 0; i < 100; i++)
        engine_do("LOCKSET OWNER ann NAME %ua NAME %ub NAME %uc NAME %ud "
                  "NAME %ue NAME %uf NAME %ug TTL 100",
                  i, i, i, i, i, i, i);
    engine_now_us += 100 * MS;
    size_t ended = 0;
    for (int calls = 0; ended < 700; calls++) {
        size_t events = engine_tick()->event_count;
        CHECK(events <= HOLD_STEP_MAX + HOLD_SET_MAX);
        CHECK(events > 0);
        ended += events;
        CHECK(calls < 4);
    }
    CHECK(!hold_is_behind(engine));
    CHECK_ENGINE();
}

/* While behind, what is about sets waits for the sweep. */
TEST(commands_about_sets_are_exact)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME y NAME z TTL 200");
    for (unsigned i = 0; i < 600; i++)
        engine_do("LOCK n%03u OWNER ann TTL 100", i);
    engine_now_us += 200 * MS;
    const struct hold_out *out = engine_do("UNLOCKSET 1");
    EXPECT(out, "AGAIN");
    CHECK_EQ(out->event_count, HOLD_STEP_MAX);
    EXPECT(engine_again(), "AGAIN");
    EXPECT(engine_again(), "NOTHELD token=1");
    CHECK_ENGINE();
}

/* ann's set waits for z, too; eve wants the same as it of a, and no more. */
TEST(a_reader_passes_a_set_that_waits_elsewhere_also_from_the_queue)
{
    engine_start();
    engine_do("LOCK z OWNER zoe");
    engine_do("LOCK a OWNER bob");
    engine_do("LOCKSET OWNER ann NAME a SHARED NAME z WAIT 9000"); /* 3 */
    engine_do("LOCK a OWNER eve SHARED TTL 5 WAIT 9000");          /* 4 */
    EXPECT_ANSWERS(engine_do("UNLOCK a 2"),
                   "4:OK token=6 safe_ms=5 count=1 waited_ms=0 fence=6");
    CHECK_ENGINE();
}

TEST(a_wait_for_a_part_of_an_own_set_is_no_re_entry)
{
    engine_start();
    engine_do("LOCK b OWNER zoe");
    engine_do("LOCKSET OWNER ann NAME a NAME b TTL 500 WAIT 9000"); /* 2 */
    engine_do("LOCKSET OWNER ann NAME a TTL 500 WAIT 9000");        /* 3 */
    EXPECT_ANSWERS(engine_do("UNLOCK b 1"),
                   "2:OK token=5 safe_ms=500 count=1 waited_ms=0");
    EXPECT_ANSWERS(engine_do("UNLOCKSET 5"),
                   "3:OK token=9 safe_ms=500 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(a_set_of_names_that_are_in_use_meets_no_bound)
{
    engine_start();
    engine_do("LOCKSET OWNER bob NAME a SHARED NAME b SHARED");
    engine_bound("locks_max", 1);
    EXPECT(engine_do("LOCKSET OWNER eve NAME a SHARED NAME c"),
           "OVERLOADED name=locks-max maximum=1");
    EXPECT(engine_do("LOCKSET OWNER eve NAME a SHARED NAME b SHARED TTL 5"),
           "OK token=3 safe_ms=5 count=1 waited_ms=0");
}
