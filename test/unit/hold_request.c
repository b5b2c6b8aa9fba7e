/* hold_request.c - tests of REQ: a request happens once, its answer stays. */
#include "base/memory.h"
#include "support/engine.h"

TEST(a_repeated_request_gets_the_first_answer_and_changes_nothing)
{
    engine_start();
    engine_request = "q1";
    engine_lock("door", "ann", 500, 0);
    engine_now_us += 100 * MS;
    const struct hold_out *out = engine_lock("door", "ann", 500, 0);
    EXPECT(out, "OK token=1 safe_ms=400 count=1 waited_ms=0");
    EXPECT_EVENTS(out, "");
    CHECK_EQ(hold_seq(engine), 1);
}

TEST(refusals_are_remembered_too)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 500, 0),
           "BUSY name=door owner=ann expires_ms=500 waiting=0");
    engine_request = NULL;
    engine_unlock("door", 1);
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 500, 0), /* as it was then */
           "BUSY name=door owner=ann expires_ms=500 waiting=0");
    EXPECT(engine_info("door"), "NOTFOUND name=door");
}

TEST(the_same_id_with_other_arguments_conflicts)
{
    engine_start();
    engine_request = "q1";
    engine_set("apple", 5);
    EXPECT(engine_set("apple", 6), "CONFLICT id=q1");
    EXPECT(engine_set("pear", 5), "CONFLICT id=q1");
    EXPECT(engine_add("apple", 5), "CONFLICT id=q1");
    EXPECT(engine_set("apple", 5), "OK sku=apple total=5 available=5 "
                                   "reserved=0 sold=0 version=1 "
                                   "updated_ms=1000000");
}

TEST(every_kind_may_carry_a_request)
{
    engine_start();
    engine_set("apple", 9);
    engine_lock("door", "ann", 5000, 0);
    uint64_t seq = hold_seq(engine);
    for (int round = 0; round < 2; round++) {
        engine_request = "q1";
        CHECK_EQ(engine_reserve("r1", "apple 1", 1000)->code, HOLD_OK);
        engine_request = "q2";
        CHECK_EQ(engine_extend("r1", 2000)->code, HOLD_OK);
        engine_request = "q3";
        CHECK_EQ(engine_confirm("r1")->code, HOLD_OK);
        engine_request = "q4";
        CHECK_EQ(engine_cancel("r1", "no")->code, HOLD_STATE);
        engine_request = "q5";
        CHECK_EQ(engine_renew("door", 2, 9000)->code, HOLD_OK);
        engine_request = "q6";
        CHECK_EQ(engine_fence("disk", 2)->code, HOLD_OK);
        engine_request = "q7";
        CHECK_EQ(engine_unlock("door", 2)->code, HOLD_OK);
        engine_request = "q8";
        CHECK_EQ(engine_add("apple", 1)->code, HOLD_OK);
        engine_request = "q9";
        CHECK_EQ(engine_delete("pear")->code, HOLD_NOTFOUND);
        CHECK_EQ(hold_seq(engine), seq + 7);
    }
    CHECK_ENGINE();
}

TEST(a_request_without_an_id_is_made_once_under_one_id)
{
    engine_start();
    engine_set("apple", 9);
    engine_request = "q1";
    EXPECT(engine_reserve("", "apple 1", 1000),
           "OK id=000000YGJ00000000000000002 status=PENDING expires_ms=1000 "
           "items=[{sku=apple quantity=1}]");
    engine_now_us += 5 * MS;
    EXPECT(engine_reserve("", "apple 1", 1000), /* its time counted on */
           "OK id=000000YGJ00000000000000002 status=PENDING expires_ms=995 "
           "items=[{sku=apple quantity=1}]");
    EXPECT(engine_get("apple"), "OK sku=apple total=9 available=8 reserved=1 "
                                "sold=0 version=2 updated_ms=1000000");
}

TEST(a_grant_told_again_promises_no_more_than_is_left)
{
    engine_start();
    engine_request = "q1";
    EXPECT(engine_lock("door", "ann", 200, 0),
           "OK token=1 safe_ms=200 count=1 waited_ms=0");
    engine_now_us += 199 * MS;
    EXPECT(engine_lock("door", "ann", 200, 0),
           "OK token=1 safe_ms=1 count=1 waited_ms=0");
    engine_now_us += 200 * MS;
    EXPECT(engine_lock("door", "ann", 200, 0),
           "OK token=1 safe_ms=0 count=1 waited_ms=0");
}

TEST(a_request_is_remembered_for_its_time_from_the_answer_on)
{
    engine_start();
    engine_bound("request_keep_ms", 100);
    engine_lock("door", "ann", 500, 0);
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 1000, 400), "WAITING ticket=2");
    engine_now_us += 300 * MS; /* longer than remembered, but not answered */
    engine_request = NULL;
    EXPECT_ANSWERS(engine_unlock("door", 1),
                   "2:OK token=4 safe_ms=1000 count=1 waited_ms=300");
    engine_now_us += 100 * MS - 1;
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 1000, 400),
           "OK token=4 safe_ms=901 count=1 waited_ms=300");
    engine_now_us += 1;
    EXPECT(engine_lock("door", "bob", 1000, 400), /* forgotten: a re-entry */
           "OK token=4 safe_ms=1000 count=2 waited_ms=0");
}

TEST(asking_again_for_a_wait_takes_it_over)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 1000, 400), "WAITING ticket=2");
    engine_request = NULL;
    EXPECT(engine_lock("door", "eve", 1000, 400), "WAITING ticket=3");
    engine_now_us += 100 * MS;
    engine_request = "q1";
    const struct hold_out *out = engine_lock("door", "bob", 1000, 400);
    EXPECT(out, "WAITING ticket=4");
    EXPECT_ANSWERS(out, "2:MOVED");
    EXPECT_EVENTS(out, "");
    EXPECT(engine_lock("door", "bob", 999, 400), "CONFLICT id=q1");
    engine_request = NULL;
    /* the place in the queue is that of the first */
    EXPECT_ANSWERS(engine_unlock("door", 1),
                   "4:OK token=6 safe_ms=1000 count=1 waited_ms=100");
    CHECK_ENGINE();
}

TEST(a_moved_wait_keeps_its_deadline)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_request = "q1";
    engine_lock("door", "bob", 1000, 400);
    engine_now_us += 399 * MS;
    engine_lock("door", "bob", 1000, 400);
    engine_now_us += 1 * MS;
    EXPECT_ANSWERS(engine_tick(), "3:TIMEOUT waited_ms=400 waiting=0");
    EXPECT(engine_lock("door", "bob", 1000, 400),
           "TIMEOUT waited_ms=400 waiting=0");
}

TEST(a_moved_wait_takes_its_turn_by_its_new_ticket)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_lock("gate", "ann", 5000, 0);
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 9, 400), "WAITING ticket=3");
    EXPECT(engine_lock("door", "bob", 9, 400), "WAITING ticket=4");
    engine_request = NULL;
    EXPECT(engine_lock("gate", "bob", 9, 400), "WAITING ticket=5");
    engine_now_us += 400 * MS; /* both at once */
    EXPECT_ANSWERS(engine_tick(), "4:TIMEOUT waited_ms=400 waiting=0; "
                                  "5:TIMEOUT waited_ms=400 waiting=0");
}

TEST(an_abandoned_wait_forgets_its_request)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 1000, 400), "WAITING ticket=2");
    engine_abandon(2);
    EXPECT(engine_lock("door", "bob", 77, 0), /* other arguments: no conflict */
           "BUSY name=door owner=ann expires_ms=5000 waiting=0");
    engine_request = "q2";
    EXPECT(engine_lock("door", "bob", 1000, 400), "WAITING ticket=3");
    engine_restart(0);
    EXPECT(engine_lock("door", "bob", 1000, 400), "WAITING ticket=4");
    CHECK_ENGINE();
}

TEST(requests_max_refuses_before_anything_happens)
{
    engine_start();
    engine_bound("requests_max", 1);
    engine_request = "q1";
    engine_set("apple", 1);
    engine_request = "q2";
    EXPECT(engine_set("apple", 2), "OVERLOADED name=requests_max maximum=1");
    CHECK_EQ(hold_seq(engine), 1);
    engine_request = "q1";
    CHECK_EQ(engine_set("apple", 1)->code, HOLD_OK); /* the known one goes on */
    engine_bound("requests_max", 2);
    engine_request = "q2"; /* that refusal was not remembered */
    CHECK_EQ(engine_set("apple", 2)->code, HOLD_OK);
}

TEST(refuse_tells_what_apply_would_without_a_change)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_lock("door", "bob", 500, 0);
    struct hold_command busy = *engine_last();
    uint64_t before = hold_digest(engine);

    busy.now_us += 100 * MS;
    EXPECT(hold_refuse(engine, &busy),
           "BUSY name=door owner=ann expires_ms=400 waiting=0");
    busy.request = hf_bytes_text("q1"); /* to be remembered: a change */
    CHECK(hold_refuse(engine, &busy) == NULL);
    busy.request = hf_bytes("", 0);
    busy.wait_ms = 5;
    CHECK(hold_refuse(engine, &busy) == NULL);
    busy.wait_ms = 0;
    busy.now_us = engine_now_us + 500 * MS; /* something is due: a change */
    CHECK(hold_refuse(engine, &busy) == NULL);
    CHECK(hold_digest(engine) == before);
}

/* Finding 17: what was told once is told again, whatever is due. */
TEST(a_stored_answer_is_told_although_something_is_due)
{
    engine_start();
    engine_request = "q1";
    engine_lock("door", "ann", 500, 0);
    struct hold_command again = *engine_last();
    engine_request = "q2";
    engine_lock("gate", "ann", 100, 0);
    again.now_us += 200 * MS; /* the gate is over */
    EXPECT(hold_refuse(engine, &again),
           "OK token=1 safe_ms=300 count=1 waited_ms=0");
    again.ttl_ms++;
    EXPECT(hold_refuse(engine, &again), "CONFLICT id=q1");
    again.request = hf_bytes_text("q3");
    CHECK(hold_refuse(engine, &again) == NULL); /* a new one: not told */
    CHECK_EQ(hold_now_us(engine), engine_now_us);
}

TEST(refuse_repeats_a_stored_answer)
{
    engine_start();
    engine_request = "q1";
    engine_set("apple", 5);
    EXPECT(hold_refuse(engine, engine_last()),
           "OK sku=apple total=5 available=5 reserved=0 sold=0 version=1 "
           "updated_ms=1000000");
    struct hold_command other = *engine_last();
    other.amount = 6;
    EXPECT(hold_refuse(engine, &other), "CONFLICT id=q1");
    CHECK_EQ(hold_seq(engine), 1);
}
