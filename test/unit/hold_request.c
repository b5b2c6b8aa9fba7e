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
           "BUSY name=door owner=ann expires_ms=500 waiting=0 position=1");
    engine_request = NULL;
    engine_unlock("door", 1);
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 500, 0), /* as it was then */
           "BUSY name=door owner=ann expires_ms=500 waiting=0 position=1");
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
                                   "updated_ms=1000000 low=0 waiting=0");
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
    EXPECT(engine_get("apple"),
           "OK sku=apple total=9 available=8 reserved=1 "
           "sold=0 version=2 updated_ms=1000000 low=0 waiting=0 attributes={}");
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
           "OK token=4 safe_ms=900 count=1 waited_ms=300");
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
    EXPECT_ANSWERS(engine_tick(),
                   "3:TIMEOUT waited_ms=400 waiting=0 position=1");
    EXPECT(engine_lock("door", "bob", 1000, 400),
           "TIMEOUT waited_ms=400 waiting=0 position=1");
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
    EXPECT_ANSWERS(engine_tick(),
                   "4:TIMEOUT waited_ms=400 waiting=0 position=1; "
                   "5:TIMEOUT waited_ms=400 waiting=0 position=1");
}

TEST(an_abandoned_wait_forgets_its_request)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 1000, 400), "WAITING ticket=2");
    engine_abandon(2);
    EXPECT(engine_lock("door", "bob", 77, 0), /* other arguments: no conflict */
           "BUSY name=door owner=ann expires_ms=5000 waiting=0 position=1");
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
    EXPECT(engine_set("apple", 2), "OVERLOADED name=requests-max maximum=1");
    CHECK_EQ(hold_seq(engine), 1);
    engine_request = "q1";
    CHECK_EQ(engine_set("apple", 1)->code, HOLD_OK); /* the known one goes on */
    engine_bound("requests_max", 2);
    engine_request = "q2"; /* that refusal was not remembered */
    CHECK_EQ(engine_set("apple", 2)->code, HOLD_OK);
}

static struct hold_counts counts(void)
{
    struct hold_counts found;

    hold_count(engine, &found);
    return found;
}

/* A LOCK that is BUSY, under this REQ. */
static void refuse_one(const char *request)
{
    engine_request = request;
    CHECK_EQ(engine_lock("door", "bob", 500, 0)->code, HOLD_BUSY);
}

/* Is the request remembered? */
static bool knows(const char *request)
{
    engine_request = request;
    return engine_add("no product", 1)->code == HOLD_CONFLICT;
}

/* Finding 10: refusals make room, the oldest first, one for one. */
TEST(a_full_table_drops_the_oldest_refusal)
{
    engine_start();
    engine_bound("requests_max", 3);
    engine_lock("door", "ann", 5000, 0);
    refuse_one("q1");
    engine_request = "q2";
    CHECK_EQ(engine_set("apple", 5)->code, HOLD_OK);
    refuse_one("q3");
    engine_request = "q4"; /* q1 goes */
    CHECK_EQ(engine_set("apple", 6)->code, HOLD_OK);
    CHECK_EQ(counts().requests, 3);
    CHECK_EQ(counts().requests_dropped, 1);
    refuse_one("q3"); /* is still known: nothing is dropped */
    CHECK_EQ(counts().requests_dropped, 1);
    engine_reload();
    CHECK_EQ(counts().requests_dropped, 0); /* a figure, no state */
    engine_request = "q5";                  /* q3 goes, the successes stay */
    CHECK_EQ(engine_set("apple", 7)->code, HOLD_OK);
    CHECK(knows("q2") && knows("q4") && knows("q5"));
    CHECK_EQ(counts().requests_refused, 0);
    engine_request = "q6"; /* nothing is left to be dropped */
    EXPECT(engine_set("apple", 8), "OVERLOADED name=requests-max maximum=3");
    CHECK_EQ(counts().requests_refused, 1);
    EXPECT(hold_answer_now(engine, engine_last()),
           "OVERLOADED name=requests-max maximum=3");
    CHECK_EQ(counts().requests_refused, 2);
    CHECK_ENGINE();
}

TEST(a_refusal_that_goes_may_be_asked_anew)
{
    engine_start();
    engine_bound("requests_max", 1);
    engine_lock("door", "ann", 5000, 0);
    refuse_one("q1");
    struct hold_command other = *engine_last();
    other.request = hf_bytes_text("q2");
    CHECK(hold_answer_now(engine, &other) == NULL); /* dropping is a change */
    refuse_one("q2");
    engine_request = NULL;
    engine_unlock("door", 1);
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 500, 0),
           "OK token=3 safe_ms=500 count=1 waited_ms=0");
    CHECK_EQ(counts().requests_dropped, 2);
}

TEST(who_waits_or_was_told_a_timeout_is_kept_and_dropped_by_its_code)
{
    engine_start();
    engine_bound("requests_max", 2);
    engine_lock("door", "ann", 5000, 0);
    engine_request = "q1";
    EXPECT(engine_lock("door", "bob", 500, 400), "WAITING ticket=2");
    engine_request = "q2";
    CHECK_EQ(engine_set("apple", 5)->code, HOLD_OK);
    engine_request = "q3"; /* one waits, one succeeded */
    CHECK_EQ(engine_set("apple", 6)->code, HOLD_OVERLOADED);
    EXPECT(engine_told("door", "eve", 5, 5),
           "OVERLOADED name=requests-max maximum=2");
    engine_timeout("", 0, "q2"); /* no success any more */
    CHECK_EQ(engine_set("apple", 6)->code, HOLD_OK);
    CHECK_EQ(counts().requests_dropped, 1);
    engine_request = NULL;
    engine_timeout("", 2, "");
    engine_request = "q4";
    CHECK_EQ(engine_set("apple", 7)->code, HOLD_OK);
    CHECK_EQ(counts().requests, 2);
    CHECK(knows("q3") && knows("q4"));
    CHECK_ENGINE();
}

TEST(a_lowered_bound_makes_room_in_bounded_steps)
{
    char id[32];

    engine_start();
    engine_lock("door", "ann", 5000, 0);
    for (unsigned i = 0; i < HOLD_STEP_MAX + 10; i++) {
        snprintf(id, sizeof id, "r%u", i);
        refuse_one(id);
    }
    engine_bound("requests_max", 5);
    engine_request = "q1";
    EXPECT(engine_set("apple", 5), "OVERLOADED name=requests-max maximum=5");
    CHECK_EQ(counts().requests_dropped, HOLD_STEP_MAX);
    CHECK_EQ(counts().requests_refused, 1);
    CHECK_EQ(engine_set("apple", 5)->code, HOLD_OK);
    CHECK_EQ(counts().requests, 5);
    CHECK_EQ(counts().requests_dropped, HOLD_STEP_MAX + 6);
    CHECK_ENGINE();
}

TEST(a_request_that_is_over_makes_room_for_itself)
{
    char name[32];

    engine_start();
    engine_bound("requests_max", 1);
    engine_bound("request_keep_ms", 100);
    for (unsigned i = 0; i < HOLD_STEP_MAX; i++) { /* a sweep's work */
        snprintf(name, sizeof name, "lock/%u", i);
        engine_lock(name, "ann", 100, 0);
    }
    engine_request = "q1";
    CHECK_EQ(engine_set("apple", 5)->code, HOLD_OK);
    engine_now_us += 100 * MS;
    CHECK_EQ(engine_lock("gate", "bob", 5, 0)->code, HOLD_OK);
    CHECK_EQ(counts().requests, 1);
    CHECK_EQ(counts().requests_dropped, 0);
    CHECK_ENGINE();
}

TEST(both_outcomes_are_forgotten_in_the_order_of_time)
{
    engine_start();
    engine_bound("request_keep_ms", 100);
    engine_lock("door", "ann", 5000, 0);
    refuse_one("q1");
    engine_now_us += 10 * MS;
    engine_request = "q2";
    engine_set("apple", 5);
    engine_now_us += 10 * MS;
    refuse_one("q3");
    engine_request = NULL;
    engine_now_us += 80 * MS; /* 100 after q1 */
    CHECK_EQ(hold_next_due_us(engine), engine_now_us);
    engine_tick();
    CHECK_EQ(counts().requests, 2);
    engine_reload();
    engine_now_us += 10 * MS;
    CHECK_EQ(hold_next_due_us(engine), engine_now_us);
    engine_tick();
    CHECK(knows("q3"));
    engine_now_us += 10 * MS;
    CHECK_EQ(hold_next_due_us(engine), engine_now_us);
    engine_tick();
    CHECK_EQ(counts().requests, 0);
    CHECK_EQ(counts().requests_dropped, 0);
}

/* Finding 15: what is told again is not safe for longer than it is held. */
TEST(a_grant_told_again_is_safe_only_while_it_is_held)
{
    engine_start();
    engine_request = "q1";
    engine_lock("door", "ann", 500, 0);
    engine_request = "q2";
    EXPECT(engine_renew("door", 1, 1000), "OK safe_ms=1000");
    engine_request = "q1"; /* the first answer, also if it was renewed */
    EXPECT(engine_lock("door", "ann", 500, 0),
           "OK token=1 safe_ms=500 count=1 waited_ms=0");
    engine_request = NULL;
    engine_renew("door", 1, 70);
    engine_request = "q1"; /* what is left */
    EXPECT(engine_lock("door", "ann", 500, 0),
           "OK token=1 safe_ms=70 count=1 waited_ms=0");
    engine_request = "q2";
    EXPECT(engine_renew("door", 1, 1000), "OK safe_ms=70");
    engine_request = NULL;
    engine_unlock("door", 1);
    engine_request = "q1";
    EXPECT(engine_lock("door", "ann", 500, 0),
           "OK token=1 safe_ms=0 count=1 waited_ms=0");
    engine_request = NULL;
    engine_lock("door", "bob", 500, 0); /* another's now */
    engine_request = "q1";
    EXPECT(hold_answer_now(
               engine, &(struct hold_command){.kind = HOLD_LOCK,
                                              .now_us = engine_now_us,
                                              .name = hf_bytes_text("door"),
                                              .owner = hf_bytes_text("ann"),
                                              .request = hf_bytes_text("q1"),
                                              .ttl_ms = 500}),
           "OK token=1 safe_ms=0 count=1 waited_ms=0");
    engine_request = "q2";
    EXPECT(engine_renew("door", 1, 1000), "OK safe_ms=0");
}

TEST(refuse_tells_what_apply_would_without_a_change)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    engine_lock("door", "bob", 500, 0);
    struct hold_command busy = *engine_last();
    uint64_t before = hold_digest(engine);

    busy.now_us += 100 * MS;
    EXPECT(hold_answer_now(engine, &busy),
           "BUSY name=door owner=ann expires_ms=400 waiting=0 position=1");
    busy.request = hf_bytes_text("q1"); /* to be remembered: a change */
    CHECK(hold_answer_now(engine, &busy) == NULL);
    busy.request = hf_bytes("", 0);
    busy.wait_ms = 5;
    CHECK(hold_answer_now(engine, &busy) == NULL);
    busy.wait_ms = 0;
    busy.now_us = engine_now_us + 500 * MS; /* something is due: a change */
    CHECK(hold_answer_now(engine, &busy) == NULL);
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
    EXPECT(hold_answer_now(engine, &again),
           "OK token=1 safe_ms=300 count=1 waited_ms=0");
    again.ttl_ms++;
    EXPECT(hold_answer_now(engine, &again), "CONFLICT id=q1");
    again.request = hf_bytes_text("q3");
    CHECK(hold_answer_now(engine, &again) == NULL); /* a new one: not told */
    CHECK_EQ(hold_now_us(engine), engine_now_us);
}

/* It was told nothing yet, so nothing about it is told while something is due.
 */
TEST(a_conflict_with_one_who_waits_is_not_told_while_something_is_due)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine_request = "q";
    EXPECT(engine_lock("door", "bob", 500, 50), "WAITING ticket=2");
    struct hold_command other = *engine_last();
    other.ttl_ms++;
    EXPECT(hold_answer_now(engine, &other), "CONFLICT id=q");
    other.now_us += 50 * MS;
    CHECK(hold_answer_now(engine, &other) == NULL);
}

TEST(refuse_repeats_a_stored_answer)
{
    engine_start();
    engine_request = "q1";
    engine_set("apple", 5);
    EXPECT(hold_answer_now(engine, engine_last()),
           "OK sku=apple total=5 available=5 reserved=0 sold=0 version=1 "
           "updated_ms=1000000 low=0 waiting=0");
    struct hold_command other = *engine_last();
    other.amount = 6;
    EXPECT(hold_answer_now(engine, &other), "CONFLICT id=q1");
    CHECK_EQ(hold_seq(engine), 1);
}
