/* hold_counting.c - tests of counting locks: so many permits of so many. */
#include "support/engine.h"

TEST_ONE_THREAD;

TEST(permits_are_granted_as_long_as_there_are_enough)
{
    engine_start();
    const struct hold_out *out =
        engine_do("LOCK pool OWNER ann PERMITS 2 OF 5 TTL 500");
    EXPECT(out, "OK token=1 safe_ms=500 count=1 waited_ms=0");
    CHECK_EQ(out->events[0].mode, 2);
    EXPECT(engine_do("LOCK pool OWNER bob PERMITS 3 OF 5 TTL 900"),
           "OK token=2 safe_ms=900 count=1 waited_ms=0");
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 1 OF 5"),
           "BUSY name=pool owner=ann expires_ms=500 waiting=0 position=1");
    EXPECT(engine_do("UNLOCK pool 1"), "OK remaining=0");
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 3 OF 5"),
           "BUSY name=pool owner=bob expires_ms=900 waiting=0 position=1");
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 2 OF 5 TTL 7"),
           "OK token=4 safe_ms=7 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(the_first_holder_fixes_how_many_there_are)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 1 OF 5");
    EXPECT(engine_do("LOCK pool OWNER bob PERMITS 1 OF 6"),
           "STATE name=pool maximum=5");
    EXPECT(engine_do("LOCK pool OWNER bob PERMITS 1 OF 4 WAIT 100"),
           "STATE name=pool maximum=5");
    engine_do("UNLOCK pool 1");
    EXPECT(engine_do("LOCK pool OWNER bob PERMITS 6 OF 6 TTL 5"),
           "OK token=3 safe_ms=5 count=1 waited_ms=0");
}

TEST(a_holder_re_enters_with_the_same_permits_and_takes_no_more)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 3 OF 5 TTL 500");
    EXPECT(engine_do("LOCK pool OWNER ann PERMITS 3 OF 5 TTL 900"),
           "OK token=1 safe_ms=900 count=2 waited_ms=0");
    EXPECT(engine_do("LOCK pool OWNER ann PERMITS 2 OF 5"),
           "STATE name=pool mode=counting");
    EXPECT(engine_do("LOCK pool OWNER ann PERMITS 3 OF 6"),
           "STATE name=pool mode=counting");
    EXPECT(engine_do("LOCK pool OWNER bob PERMITS 2 OF 5 TTL 5"),
           "OK token=3 safe_ms=5 count=1 waited_ms=0");
    EXPECT(engine_do("UNLOCK pool 1"), "OK remaining=1");
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 1 OF 5"),
           "BUSY name=pool owner=ann expires_ms=900 waiting=0 position=1");
    EXPECT(engine_do("UNLOCK pool 1"), "OK remaining=0");
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 3 OF 5 TTL 5"),
           "OK token=6 safe_ms=5 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(other_modes_and_permits_keep_each_other_out)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 1 OF 5 TTL 500");
    EXPECT(engine_do("LOCK pool OWNER bob"),
           "BUSY name=pool owner=ann expires_ms=500 waiting=0 position=1");
    EXPECT(engine_do("LOCK pool OWNER bob SHARED"),
           "BUSY name=pool owner=ann expires_ms=500 waiting=0 position=1");
    EXPECT(engine_do("LOCK pool OWNER ann"), "STATE name=pool mode=counting");
    engine_start();
    engine_do("LOCK pool OWNER ann SHARED TTL 500");
    EXPECT(engine_do("LOCK pool OWNER bob PERMITS 1 OF 5"),
           "BUSY name=pool owner=ann expires_ms=500 waiting=0 position=1");
    EXPECT(engine_do("LOCK pool OWNER ann PERMITS 1 OF 5"),
           "STATE name=pool mode=shared");
}

/* Else one that wants many would never come. */
TEST(a_large_request_is_not_overtaken_by_small_ones)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 3 OF 5 TTL 500");
    EXPECT(engine_do("LOCK pool OWNER bob PERMITS 4 OF 5 TTL 500 WAIT 9000"),
           "WAITING ticket=2");
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 1 OF 5"),
           "BUSY name=pool owner=bob waited_ms=0 waiting=1 position=2");
    engine_do("LOCK pool OWNER eve PERMITS 1 OF 5 TTL 500 WAIT 9000"); /* 3 */
    engine_do("LOCK pool OWNER kim PERMITS 1 OF 5 TTL 500 WAIT 9000"); /* 4 */
    const struct hold_out *out = engine_do("UNLOCK pool 1");
    EXPECT_ANSWERS(out, "2:OK token=6 safe_ms=500 count=1 waited_ms=0; "
                        "3:OK token=7 safe_ms=500 count=1 waited_ms=0");
    EXPECT_ANSWERS(engine_do("UNLOCK pool 7"),
                   "4:OK token=9 safe_ms=500 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(whoever_barges_takes_what_is_there)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 3 OF 5");
    engine_do("LOCK pool OWNER bob PERMITS 4 OF 5 WAIT 9000");
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 2 OF 5 BARGE TTL 5"),
           "OK token=3 safe_ms=5 count=1 waited_ms=0");
    EXPECT(engine_do("LOCK pool OWNER kim PERMITS 1 OF 5 BARGE"),
           "BUSY name=pool owner=ann expires_ms=30000 waiting=1 position=2");
}

/* Two who wait behind a writer and count otherwise: one after the other. */
TEST(waits_of_another_maximum_wait_until_all_permits_are_back)
{
    engine_start();
    engine_do("LOCK pool OWNER ann");
    engine_do("LOCK pool OWNER bob PERMITS 1 OF 5 TTL 500 WAIT 9000"); /* 2 */
    engine_do("LOCK pool OWNER eve PERMITS 1 OF 6 TTL 500 WAIT 9000"); /* 3 */
    engine_do("LOCK pool OWNER kim PERMITS 1 OF 5 TTL 500 WAIT 9000"); /* 4 */
    EXPECT_ANSWERS(engine_do("UNLOCK pool 1"),
                   "2:OK token=6 safe_ms=500 count=1 waited_ms=0");
    EXPECT_ANSWERS(engine_do("UNLOCK pool 6"),
                   "3:OK token=8 safe_ms=500 count=1 waited_ms=0");
    EXPECT_ANSWERS(engine_do("UNLOCK pool 8"),
                   "4:OK token=10 safe_ms=500 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(the_end_of_the_last_permit_is_the_readers_turn)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 1 OF 5 TTL 500");
    engine_do("LOCK pool OWNER kim PERMITS 1 OF 5 TTL 500");
    engine_do("LOCK pool OWNER bob TTL 500 WAIT 9000");        /* 3 */
    engine_do("LOCK pool OWNER eve SHARED TTL 500 WAIT 9000"); /* 4 */
    EXPECT_ANSWERS(engine_do("UNLOCK pool 1"), "");
    EXPECT_ANSWERS(engine_do("UNLOCK pool 2"),
                   "4:OK token=7 safe_ms=500 count=1 waited_ms=0 fence=7");
}

/* Two waits of one owner for the same: the second is a re-entry of the first,
 * also when no permit is left. */
TEST(a_wait_for_what_its_owner_got_meanwhile_re_enters)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 5 OF 5 TTL 500");
    engine_do("LOCK pool OWNER bob PERMITS 4 OF 5 TTL 500 WAIT 9000"); /* 2 */
    engine_do("LOCK pool OWNER bob PERMITS 4 OF 5 TTL 700 WAIT 9000"); /* 3 */
    const struct hold_out *out = engine_do("UNLOCK pool 1");
    EXPECT_ANSWERS(out, "2:OK token=5 safe_ms=500 count=1 waited_ms=0; "
                        "3:OK token=5 safe_ms=700 count=2 waited_ms=0");
    EXPECT_EVENTS(out, "4 LOCK_RELEASED pool; 5 LOCK_GRANTED pool; "
                       "6 LOCK_REENTERED pool");
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 1 OF 5 TTL 5"),
           "OK token=7 safe_ms=5 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(permits_come_back_one_holder_at_a_time_when_their_time_is_over)
{
    engine_start();
    for (int i = 1; i <= 5; i++)
        engine_do("LOCK pool OWNER h%d PERMITS 1 OF 5 TTL %d", i, 100 * i);
    engine_do("LOCK pool OWNER bob PERMITS 2 OF 5 TTL 9000 WAIT 9000");
    engine_now_us += 100 * MS;
    EXPECT_EVENTS(engine_tick(), "7 LOCK_EXPIRED pool");
    engine_now_us += 100 * MS;
    EXPECT_EVENTS(engine_tick(), "8 LOCK_EXPIRED pool; 9 LOCK_GRANTED pool");
    engine_now_us += 300 * MS;
    engine_tick();
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 3 OF 5 TTL 5"),
           "OK token=13 safe_ms=5 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(the_most_permits_can_be_counted)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS %d OF %d", INT32_MAX - 1, INT32_MAX);
    EXPECT(
        engine_do("LOCK pool OWNER bob PERMITS %d OF %d", INT32_MAX, INT32_MAX),
        "BUSY name=pool owner=ann expires_ms=30000 waiting=0 position=1");
    EXPECT(engine_do("LOCK pool OWNER bob PERMITS 1 OF %d TTL 5", INT32_MAX),
           "OK token=2 safe_ms=5 count=1 waited_ms=0");
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 1 OF %d", INT32_MAX),
           "BUSY name=pool owner=ann expires_ms=30000 waiting=0 position=1");
    CHECK_ENGINE();
}

TEST(permits_and_their_maximum_survive_an_image)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 2 OF 5 TTL 500");
    engine_do("LOCK pool OWNER bob PERMITS 2 OF 5 TTL 500");
    engine_do("LOCK pool OWNER kim PERMITS 4 OF 5 TTL 500 WAIT 9000"); /* 3 */
    engine_reload();
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 1 OF 6"),
           "STATE name=pool maximum=5");
    EXPECT(engine_do("LOCK pool OWNER eve PERMITS 2 OF 5 BARGE"),
           "BUSY name=pool owner=ann expires_ms=500 waiting=1 position=2");
    EXPECT_ANSWERS(engine_do("UNLOCK pool 1"), "");
    EXPECT_ANSWERS(engine_do("UNLOCK pool 2"),
                   "3:OK token=6 safe_ms=500 count=1 waited_ms=0");
    CHECK_ENGINE();
}

/* Other permits, or of another number: it waits until its own are back. */
TEST(a_wait_for_other_permits_than_its_owner_got_is_no_re_entry)
{
    static const char *const others[] = {"3 OF 5", "2 OF 6"};

    for (unsigned i = 0; i < 2; i++) {
        engine_start();
        engine_do("LOCK pool OWNER zoe");
        engine_do("LOCK pool OWNER ann PERMITS 2 OF 5 TTL 500 WAIT 9000");
        engine_do("LOCK pool OWNER ann PERMITS %s TTL 500 WAIT 9000",
                  others[i]);
        EXPECT_ANSWERS(engine_do("UNLOCK pool 1"),
                       "2:OK token=5 safe_ms=500 count=1 waited_ms=0");
        EXPECT_ANSWERS(engine_do("UNLOCK pool 5"),
                       "3:OK token=7 safe_ms=500 count=1 waited_ms=0");
        CHECK_ENGINE();
    }
}
