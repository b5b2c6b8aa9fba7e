/* hold_priority.c - tests of the order of queues: PRIORITY, BARGE, position. */
#include "support/engine.h"

TEST_ONE_THREAD;

TEST(better_priorities_go_first_and_equal_ones_in_order)
{
    static const unsigned priorities[] = {2, 0, 3, 1, 0, 2};
    static const unsigned order[] = {3, 6, 5, 2, 7, 4}; /* tickets */

    engine_start();
    engine_do("LOCK door OWNER ann TTL 90000");
    for (unsigned i = 0; i < 6; i++) {
        const struct hold_out *out = engine_do(
            "LOCK door OWNER o%u WAIT 9000 PRIORITY %u", i, priorities[i]);
        CHECK_EQ(out->ticket, 2 + i);
    }
    engine_reload();
    uint64_t token = 1;
    for (unsigned i = 0; i < 6; i++) {
        const struct hold_out *out =
            engine_do("UNLOCK door %llu", (unsigned long long)token);
        CHECK_EQ(out->answer_count, 1);
        CHECK_EQ(out->answers[0].ticket, order[i]);
        token = (uint64_t)reply_get_number(out->answers[0].body, FIELD_TOKEN);
        CHECK_ENGINE();
    }
}

TEST(the_usual_priority_is_the_best)
{
    engine_start();
    engine_do("LOCK door OWNER ann");
    engine_do("LOCK door OWNER bob WAIT 9000 PRIORITY 0");
    EXPECT_BEGINS(engine_do("LOCK door OWNER eve"),
                  "BUSY name=door owner=ann expires_ms=30000 waiting=1 "
                  "position=2");
    EXPECT_BEGINS(engine_do("LOCK door OWNER eve PRIORITY 0"),
                  "BUSY name=door owner=ann expires_ms=30000 waiting=1 "
                  "position=2");
}

TEST(a_refusal_tells_the_place_that_the_request_would_have)
{
    engine_start();
    engine_do("LOCK door OWNER ann TTL 500");
    for (unsigned i = 0; i < 6; i++)
        engine_do("LOCK door OWNER o%u WAIT 9000 PRIORITY %u", i, i % 3);
    static const char *const places[] = {"3", "5", "7", "7"};
    for (unsigned i = 0; i < 4; i++) {
        char expected[100];
        snprintf(expected, sizeof expected,
                 "BUSY name=door owner=ann expires_ms=500 waiting=6 "
                 "position=%s",
                 places[i]);
        EXPECT(engine_do("LOCK door OWNER kim PRIORITY %u", i), expected);
    }
}

TEST(a_time_out_tells_the_place_that_it_left)
{
    engine_start();
    engine_do("LOCK door OWNER ann TTL 90000");
    engine_do("LOCK door OWNER o1 WAIT 9000");                          /* 2 */
    engine_do("LOCK door OWNER o2 WAIT 100");                           /* 3 */
    engine_do("LOCK door OWNER o3 WAIT 100");                           /* 4 */
    engine_do("LOCK door OWNER o4 WAIT 200 PRIORITY 1");                /* 5 */
    engine_do("LOCKSET OWNER o5 NAME door NAME x WAIT 200 PRIORITY 1"); /* 6 */
    engine_now_us += 100 * MS;
    EXPECT_ANSWERS(engine_tick(),
                   "3:TIMEOUT waited_ms=100 waiting=4 position=2; "
                   "4:TIMEOUT waited_ms=100 waiting=3 position=2");
    engine_now_us += 100 * MS;
    EXPECT_ANSWERS(engine_tick(),
                   "5:TIMEOUT waited_ms=200 waiting=2 position=2; "
                   "6:TIMEOUT waited_ms=200 waiting=1 position=2");
    CHECK_ENGINE();
}

TEST(places_are_counted_up_to_a_thousand)
{
    engine_start();
    engine_do("LOCK door OWNER ann TTL 90000");
    for (unsigned i = 0; i < 1200; i++) {
        if (i == 998)
            EXPECT_BEGINS(engine_do("LOCK door OWNER kim PRIORITY 1"),
                          "BUSY name=door owner=ann expires_ms=90000 "
                          "waiting=998 position=999");
        engine_do("LOCK door OWNER o WAIT 100 PRIORITY 1");
    }
    EXPECT_BEGINS(engine_do("LOCK door OWNER kim PRIORITY 1"),
                  "BUSY name=door owner=ann expires_ms=90000 waiting=1200 "
                  "position=1000");
    EXPECT_BEGINS(engine_do("LOCK door OWNER kim PRIORITY 0"),
                  "BUSY name=door owner=ann expires_ms=90000 waiting=1200 "
                  "position=1");
    EXPECT_ANSWERS(engine_timeout("", 1101, ""),
                   "1101:TIMEOUT waited_ms=0 waiting=1199 position=1000");
}

/* A lock is free for an instant only where somebody waits for another, too. */
TEST(who_barges_does_not_mind_the_queue)
{
    engine_start();
    engine_do("LOCK z OWNER zoe");
    engine_do("LOCKSET OWNER ann NAME a NAME z WAIT 9000"); /* 2 */
    EXPECT(engine_do("LOCK a OWNER bob"),
           "BUSY name=a owner=ann waited_ms=0 waiting=1 position=2");
    EXPECT(engine_do("LOCK a OWNER bob BARGE TTL 5"),
           "OK token=3 safe_ms=5 count=1 waited_ms=0");
    EXPECT(engine_do("LOCK a OWNER eve BARGE"), /* but the holder */
           "BUSY name=a owner=bob expires_ms=5 waiting=1 position=2");
    EXPECT(engine_do("LOCK a OWNER eve BARGE WAIT 9000"), "WAITING ticket=4");
    engine_do("UNLOCK z 1");
    /* when it waits it stands in the queue like anybody */
    const struct hold_out *out = engine_do("UNLOCK a 3");
    CHECK_EQ(out->answer_count, 1);
    CHECK_EQ(out->answers[0].ticket, 2);
    CHECK_ENGINE();
}

TEST(a_set_barges_too)
{
    engine_start();
    engine_do("LOCK z OWNER zoe");
    engine_do("LOCKSET OWNER ann NAME a NAME z WAIT 9000");
    EXPECT(engine_do("LOCKSET OWNER bob NAME a NAME b"),
           "BUSY name=a owner=ann waited_ms=0 waiting=1 position=2");
    EXPECT(engine_do("LOCKSET OWNER bob NAME a NAME b BARGE TTL 5"),
           "OK token=3 safe_ms=5 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(a_better_priority_is_granted_past_those_who_wait)
{
    engine_start();
    engine_do("LOCK z OWNER zoe");
    engine_do("LOCKSET OWNER ann NAME a NAME z WAIT 9000 PRIORITY 2");
    EXPECT(engine_do("LOCK a OWNER bob PRIORITY 2"),
           "BUSY name=a owner=ann waited_ms=0 waiting=1 position=2");
    EXPECT(engine_do("LOCK a OWNER bob PRIORITY 1 TTL 5"),
           "OK token=3 safe_ms=5 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(who_waits_for_ever_is_due_never)
{
    engine_start();
    engine_do("SESSION OPEN TTL 500 BIND"); /* 1 */
    engine_do("LOCK door OWNER ann SESSION 1");
    engine_do("LOCK door OWNER bob FOREVER TTL 5"); /* 3 */
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    engine_now_us += 1000000000000 * MS;
    engine_tick();
    EXPECT_ANSWERS(engine_do("UNLOCK door 2"),
                   "3:OK token=5 safe_ms=5 count=1 waited_ms=1000000000000");
    CHECK_ENGINE();
}

TEST(a_repeated_request_keeps_its_place_among_equals)
{
    engine_start();
    engine_do("LOCK door OWNER ann");
    engine_do("LOCK door OWNER o1 FOREVER PRIORITY 1 REQ q1"); /* 2 */
    engine_do("LOCK door OWNER o2 FOREVER PRIORITY 1");        /* 3 */
    engine_do("LOCK door OWNER o3 FOREVER PRIORITY 2");        /* 4 */
    EXPECT(engine_do("LOCK door OWNER o1 FOREVER PRIORITY 1 REQ q1"),
           "WAITING ticket=5");
    engine_reload();
    const struct hold_out *out = engine_do("UNLOCK door 1");
    CHECK_EQ(out->answers[0].ticket, 5);
    CHECK_ENGINE();
}
