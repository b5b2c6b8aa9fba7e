/* hold_timeout.c - tests of TIMEOUTs that were told before the engine knew. */
#include "base/memory.h"
#include "support/engine.h"

TEST(a_wait_ends_as_if_its_time_were_over)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_request = "q1";
    engine_lock("door", "bob", 1000, 4000); /* ticket 2 */
    engine_request = NULL;
    engine_lock("door", "eve", 1000, 4000); /* ticket 3 */
    engine_now_us += 70 * MS;
    const struct hold_out *out = engine_timeout("", 2, "");
    EXPECT(out, "OK");
    EXPECT_ANSWERS(out, "2:TIMEOUT waited_ms=70 waiting=1 position=1");
    EXPECT_EVENTS(out, "");
    engine_request = "q1"; /* kept: nothing is granted any more */
    EXPECT(engine_lock("door", "bob", 1000, 4000),
           "TIMEOUT waited_ms=70 waiting=1 position=1");
    engine_request = NULL;
    EXPECT_ANSWERS(engine_unlock("door", 1),
                   "3:OK token=5 safe_ms=1000 count=1 waited_ms=70");
    CHECK_ENGINE();
}

TEST(what_is_not_there_is_left_alone)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    uint64_t before = hold_digest(engine);
    EXPECT(engine_timeout("", 7, ""), "OK");
    EXPECT(engine_timeout("", 1, ""), "OK"); /* a token is no ticket */
    EXPECT(engine_timeout("door", 2, "q9"), "OK");
    EXPECT(engine_timeout("gate", 1, ""), "OK");
    EXPECT(engine_timeout("", 0, "q9"), "OK");
    CHECK(hold_digest(engine) == before);
}

TEST(a_grant_that_nobody_was_told_is_given_back_once)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_lock("door", "ann", 5000, 0); /* told TIMEOUT */
    engine_lock("door", "bob", 1000, 4000);
    const struct hold_out *out = engine_timeout("door", 1, "");
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "4 LOCK_RELEASED door");
    EXPECT_ANSWERS(out, "");
    out = engine_unlock("door", 1);
    EXPECT(out, "OK remaining=0");
    EXPECT_ANSWERS(out, "3:OK token=6 safe_ms=1000 count=1 waited_ms=0");
}

TEST(a_kept_grant_becomes_a_timeout_and_the_hold_is_given_back)
{
    engine_start();
    engine_request = "q1";
    engine_lock("door", "ann", 5000, 100);
    engine_request = NULL;
    engine_now_us += 200 * MS;
    EXPECT_EVENTS(engine_timeout("door", 1, "q1"), "2 LOCK_RELEASED door");
    engine_request = "q1";
    EXPECT(engine_lock("door", "ann", 5000, 100), "TIMEOUT");
    EXPECT(hold_answer_now(engine, engine_last()), "TIMEOUT");
    EXPECT(engine_lock("door", "ann", 5001, 100), "CONFLICT id=q1");
    engine_reload();
    EXPECT(engine_lock("door", "ann", 5000, 100), "TIMEOUT");
    EXPECT(engine_info("door"), "NOTFOUND name=door");
    CHECK_ENGINE();
}

TEST(a_request_alone_is_replaced_or_its_wait_ends)
{
    engine_start();
    engine_bound("request_keep_ms", 100);
    engine_request = "q1";
    engine_lock("door", "ann", 5000, 0);
    engine_request = "q2";
    engine_lock("door", "bob", 5000, 4000); /* ticket 2 */
    engine_request = NULL;
    engine_now_us += 50 * MS;
    const struct hold_out *out = engine_timeout("", 0, "q1");
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, ""); /* the hold stays */
    EXPECT_ANSWERS(engine_timeout("", 0, "q2"),
                   "2:TIMEOUT waited_ms=50 waiting=0 position=1");
    engine_timeout("", 0, "q2"); /* its facts stay */
    CHECK_ENGINE();
    engine_now_us += 99 * MS; /* remembered from the TIMEOUT on */
    engine_request = "q1";
    EXPECT(engine_lock("door", "ann", 5000, 0), "TIMEOUT");
    engine_request = "q2";
    EXPECT(engine_lock("door", "bob", 5000, 4000),
           "TIMEOUT waited_ms=50 waiting=0 position=1");
    engine_now_us += 1 * MS;
    engine_request = "q1";
    EXPECT(engine_lock("door", "ann", 5000, 0),
           "OK token=1 safe_ms=5000 count=2 waited_ms=0");
}

TEST(a_lock_that_is_told_is_only_remembered)
{
    engine_start();
    engine_request = "q1";
    const struct hold_out *out = engine_told("door", "ann", 5000, 100);
    EXPECT(out, "TIMEOUT");
    EXPECT_EVENTS(out, "");
    CHECK_EQ(hold_seq(engine), 0);
    EXPECT(engine_info("door"), "NOTFOUND name=door");
    EXPECT(engine_lock("door", "ann", 5000, 100), "TIMEOUT"); /* the same */
    EXPECT(engine_lock("door", "ann", 5000, 101), "CONFLICT id=q1");
    EXPECT(engine_told("door", "bob", 5000, 100), "TIMEOUT");
    EXPECT(engine_lock("door", "ann", 5000, 100), "TIMEOUT"); /* as it was */
    engine_request = NULL;
    uint64_t before = hold_digest(engine);
    EXPECT(engine_told("door", "ann", 5000, 100), "TIMEOUT"); /* no REQ */
    CHECK(hold_digest(engine) == before);
    CHECK_ENGINE();
}

TEST(a_request_that_was_answered_or_waits_is_not_changed_by_told)
{
    engine_start();
    engine_request = "q1";
    engine_lock("door", "ann", 5000, 0);
    engine_request = "q2";
    engine_lock("door", "bob", 5000, 400);
    uint64_t before = hold_digest(engine);
    engine_told("door", "bob", 5000, 400);
    engine_request = "q1";
    engine_told("door", "ann", 5000, 0);
    CHECK(hold_digest(engine) == before);
    CHECK(hold_answer_now(engine, engine_last()) == NULL); /* it is a record */
}
