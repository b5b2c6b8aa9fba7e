/* hold_deadlock.c - tests of DETECT: a wait that would close a circle is
 * refused with the circle, and no other. */
#include "support/engine.h"

TEST_ONE_THREAD;

/* "cycle 2: ann b exclusive, bob a shared" */
static const char *circle(const struct hold_out *out)
{
    static char text[8192];
    struct hf_bytes field[4];
    size_t at = 0;
    size_t len;

    CHECK_EQ(out->code, HOLD_DEADLOCK);
    CHECK_EQ(reply_next(out->body, &at).count, 4);
    CHECK_EQ(reply_next_field(out->body, &at), FIELD_NAME);
    struct hf_bytes name = reply_next(out->body, &at).text;
    CHECK_EQ(reply_next_field(out->body, &at), FIELD_REASON);
    struct hf_bytes reason = reply_next(out->body, &at).text;
    CHECK_EQ(reply_next_field(out->body, &at), FIELD_LENGTH);
    len = (size_t)snprintf(text, sizeof text, "%.*s %d:", HF_SHOW(reason),
                           (int)reply_next(out->body, &at).number);
    CHECK_EQ(reply_next_field(out->body, &at), FIELD_CYCLE);
    uint32_t entries = reply_next(out->body, &at).count;
    for (uint32_t i = 0; i < entries; i++) {
        CHECK_EQ(reply_next(out->body, &at).count, 6);
        for (int k = 0; k < 4; k++) {
            (void)reply_next_field(out->body, &at);
            field[k] = reply_next(out->body, &at).text;
        }
        for (int k = 0; k < 2; k++) {
            (void)reply_next_field(out->body, &at);
            (void)reply_next(out->body, &at);
        }
        if (i == 0)
            CHECK(hf_bytes_equal(name, field[2]));
        len +=
            (size_t)snprintf(text + len, sizeof text - len, "%s %.*s %.*s %.*s",
                             i > 0 ? "," : "", HF_SHOW(field[0]),
                             HF_SHOW(field[2]), HF_SHOW(field[3]));
    }
    CHECK_EQ(at, out->body.len);
    return text;
}

#define EXPECT_CIRCLE(out, expected)                                  \
    do {                                                              \
        const char *circle_ = circle(out);                            \
        test_check_text(__FILE__, __LINE__, circle_, strlen(circle_), \
                        (expected));                                  \
    } while (0)

#define EXPECT_WAITS(out) CHECK_EQ((out)->code, HOLD_WAITING)

TEST(two_who_wait_for_each_other_are_named_with_all_that_is_known)
{
    engine_start();
    engine_do("SESSION OPEN TTL 90000");
    engine_do("LOCK a OWNER ann NOTE holds-a");
    engine_do("LOCK b OWNER bob SESSION 1");
    EXPECT_WAITS(
        engine_do("LOCK a OWNER bob SESSION 1 WAIT 9000 NOTE nightly"));
    engine_now_us += 70 * MS;
    uint64_t before = hold_digest(engine);
    const struct hold_command *c =
        engine_parse("LOCK b OWNER ann WAIT 100 NOTE report");
    static const char expected[] =
        "DEADLOCK name=b reason=cycle length=2 cycle=["
        "{owner=ann session=0 name=b mode=exclusive since_ms=0 note=report} "
        "{owner=bob session=1 name=a mode=exclusive since_ms=70 note=nightly}]";
    EXPECT(hold_answer_now(engine, c), expected);
    CHECK(hold_digest(engine) == before);
    uint64_t seq = hold_seq(engine);
    EXPECT(engine_apply(c), expected);
    CHECK_EQ(hold_seq(engine), seq);
    EXPECT(engine_do("HELD a 2"), "OK"); /* it keeps what it has */
    EXPECT(engine_do("LOCK b OWNER ann"),
           "BUSY name=b owner=bob expires_ms=89930 waiting=0 position=1");
    CHECK_ENGINE();
}

TEST(a_refusal_that_is_kept_for_a_request_has_no_members)
{
    engine_start();
    engine_do("LOCK a OWNER ann");
    engine_do("LOCK b OWNER bob");
    engine_do("LOCK a OWNER bob WAIT 9000");
    EXPECT_CIRCLE(engine_do("LOCK b OWNER ann WAIT 100 REQ q1"),
                  "cycle 2: ann b exclusive, bob a exclusive");
    EXPECT(engine_do("LOCK b OWNER ann WAIT 100 REQ q1"),
           "DEADLOCK name=b reason=cycle");
}

/* Owner i holds lock i and waits for lock i + 1; the last closes it. */
static const struct hold_out *ring(unsigned length)
{
    engine_start();
    for (unsigned i = 0; i < length; i++)
        engine_do("LOCK %u OWNER o%u", i, i);
    for (unsigned i = 0; i + 1 < length; i++)
        EXPECT_WAITS(engine_do("LOCK %u OWNER o%u FOREVER", i + 1, i));
    return engine_do("LOCK 0 OWNER o%u FOREVER", length - 1);
}

TEST(circles_of_any_length_are_found)
{
    EXPECT_CIRCLE(ring(3), "cycle 3: o2 0 exclusive, o0 1 exclusive, "
                           "o1 2 exclusive");
    for (unsigned length = 4; length <= 64; length += 10) {
        const struct hold_out *out = ring(length);
        CHECK_EQ(out->code, HOLD_DEADLOCK);
        CHECK_EQ(reply_get_number(out->body, FIELD_LENGTH), length);
    }
    const struct hold_out *out = ring(500); /* of a long one the beginning */
    const char *text = circle(out);
    CHECK(strstr(text, "cycle 500: o499 0 exclusive, o0 1 ") == text);
    CHECK(strstr(text, " o62 63 exclusive") != NULL);
    CHECK(strstr(text, " o63 ") == NULL);
}

TEST(a_circle_goes_through_shared_grants_and_writers_that_wait)
{
    engine_start();
    engine_do("LOCK a OWNER ann SHARED");
    engine_do("LOCK a OWNER bob SHARED");
    engine_do("LOCK c OWNER eve");
    EXPECT_WAITS(engine_do("LOCK c OWNER bob WAIT 9000"));
    EXPECT_CIRCLE(engine_do("LOCK a OWNER eve WAIT 9000"),
                  "cycle 2: eve a exclusive, bob c exclusive");
    engine_start();
    engine_do("LOCK a OWNER ann SHARED");
    EXPECT_WAITS(engine_do("LOCK a OWNER bob WAIT 9000"));
    engine_do("LOCK b OWNER eve");
    EXPECT_WAITS(engine_do("LOCK a OWNER eve SHARED WAIT 9000"));
    EXPECT_CIRCLE(engine_do("LOCK b OWNER ann WAIT 9000"),
                  "cycle 3: ann b exclusive, eve a shared, bob a exclusive");
}

/* Two readers of one lock do not wait for each other. */
TEST(readers_are_no_edge_for_readers)
{
    engine_start();
    engine_do("LOCK a OWNER ann SHARED");
    engine_do("LOCK b OWNER bob");
    EXPECT_WAITS(engine_do("LOCK b OWNER ann SHARED WAIT 9000"));
    EXPECT(engine_do("LOCK a OWNER bob SHARED WAIT 9000 TTL 5"),
           "OK token=4 safe_ms=5 count=1 waited_ms=0 fence=1");
    EXPECT_WAITS(engine_do("LOCK b OWNER eve SHARED WAIT 9000"));
}

/* Behind a writer that waits for a reader, two readers of two locks. */
TEST(a_reader_that_waits_behind_a_writer_is_an_edge)
{
    engine_start();
    engine_do("LOCK a OWNER ann SHARED");
    engine_do("LOCK b OWNER bob SHARED");
    EXPECT_WAITS(engine_do("LOCK a OWNER w1 WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK b OWNER w2 WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK b OWNER ann SHARED WAIT 9000"));
    EXPECT_CIRCLE(engine_do("LOCK a OWNER bob SHARED WAIT 9000"),
                  "cycle 4: bob a shared, w1 a exclusive, ann b shared, "
                  "w2 b exclusive");
}

TEST(permits_that_can_come_from_elsewhere_close_no_circle)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 1 OF 2");
    engine_do("LOCK pool OWNER bob PERMITS 1 OF 2");
    engine_do("LOCK x OWNER eve");
    EXPECT_WAITS(engine_do("LOCK x OWNER ann WAIT 9000"));
    /* bob waits for nobody: one permit will come */
    const struct hold_out *out =
        engine_do("LOCK pool OWNER eve PERMITS 1 OF 2 WAIT 9000");
    EXPECT_WAITS(out);
    engine_abandon(out->ticket);
    /* but not two */
    EXPECT_CIRCLE(engine_do("LOCK pool OWNER eve PERMITS 2 OF 2 WAIT 9000"),
                  "cycle 2: eve pool counting, ann x exclusive");
    /* when bob waits for eve, too, none comes */
    EXPECT_WAITS(engine_do("LOCK x OWNER bob WAIT 9000"));
    EXPECT_CIRCLE(engine_do("LOCK pool OWNER eve PERMITS 1 OF 2 WAIT 9000"),
                  "cycle 2: eve pool counting, ann x exclusive");
    /* an exclusive request needs all of them */
    EXPECT_CIRCLE(engine_do("LOCK pool OWNER eve WAIT 9000"),
                  "cycle 2: eve pool exclusive, ann x exclusive");
}

/* The permits come from one who waits, but not for these. */
TEST(a_holder_of_permits_that_waits_for_others_will_go_on)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 1 OF 2");
    engine_do("LOCK pool OWNER bob PERMITS 1 OF 2");
    engine_do("LOCK x OWNER eve");
    engine_do("LOCK y OWNER zoe");
    EXPECT_WAITS(engine_do("LOCK x OWNER ann WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK y OWNER bob WAIT 9000")); /* zoe goes on */
    EXPECT_WAITS(engine_do("LOCK pool OWNER eve PERMITS 1 OF 2 WAIT 9000"));
    /* until zoe waits for eve: she would close it */
    EXPECT_CIRCLE(engine_do("LOCK x OWNER zoe WAIT 9000"),
                  "cycle 3: zoe x exclusive, eve pool counting, "
                  "bob y exclusive");
}

/* ann's second wait needs no permit, but stands behind bob's. */
TEST(a_wait_that_will_re_enter_waits_for_its_place_only)
{
    engine_start();
    engine_do("LOCK n1 OWNER ann");
    engine_do("LOCK pool OWNER zoe PERMITS 5 OF 5");
    EXPECT_WAITS(engine_do("LOCK pool OWNER ann PERMITS 2 OF 5 WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK pool OWNER kim PERMITS 3 OF 5 WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK pool OWNER bob PERMITS 1 OF 5 WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK pool OWNER ann PERMITS 2 OF 5 WAIT 9000"));
    CHECK_EQ(engine_do("UNLOCK pool 2")->answer_count, 2);
    EXPECT_CIRCLE(engine_do("LOCK n1 OWNER kim WAIT 9000"),
                  "cycle 3: kim n1 exclusive, ann pool counting, "
                  "bob pool counting");
}

TEST(a_circle_goes_through_sets_that_are_held_and_waited_for)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME a NAME b");
    engine_do("LOCK c OWNER bob");
    EXPECT_WAITS(engine_do("LOCKSET OWNER bob NAME b NAME d WAIT 9000"));
    EXPECT_CIRCLE(engine_do("LOCK c OWNER ann WAIT 9000"),
                  "cycle 2: ann c exclusive, bob b exclusive");
    /* the place of a set in the queue of a name that nobody holds */
    engine_start();
    engine_do("LOCK b OWNER bob");
    EXPECT_WAITS(engine_do("LOCKSET OWNER ann NAME a NAME b WAIT 9000"));
    EXPECT_CIRCLE(engine_do("LOCK a OWNER bob WAIT 9000"),
                  "cycle 2: bob a exclusive, ann b exclusive");
    /* sets against each other, shared names and others */
    engine_start();
    engine_do("LOCKSET OWNER ann NAME a NAME s SHARED");
    engine_do("LOCKSET OWNER bob NAME b NAME s SHARED");
    EXPECT_WAITS(engine_do("LOCKSET OWNER ann NAME b SHARED NAME x WAIT 9000"));
    EXPECT_CIRCLE(engine_do("LOCKSET OWNER bob NAME a NAME y WAIT 9000"),
                  "cycle 2: bob a exclusive, ann b shared");
}

/* Sets that take all they need at once never wait for each other. */
TEST(sets_that_are_asked_for_at_once_deadlock_nobody)
{
    static const char *const names[] = {"NAME a NAME b", "NAME b NAME c",
                                        "NAME c NAME a"};

    engine_start();
    for (int i = 0; i < 12; i++) {
        const struct hold_out *out =
            engine_do("LOCKSET OWNER o%d %s WAIT 9000", i, names[i % 3]);
        CHECK(out->code == HOLD_OK || out->code == HOLD_WAITING);
    }
    CHECK_ENGINE();
}

TEST(a_request_of_better_priority_closes_a_circle_by_the_place_it_takes)
{
    engine_start();
    engine_do("LOCK z OWNER zoe");
    engine_do("LOCK b OWNER bob");
    EXPECT_WAITS(
        engine_do("LOCKSET OWNER bob NAME a NAME z WAIT 9000 PRIORITY 2"));
    EXPECT_CIRCLE(
        engine_do("LOCKSET OWNER eve NAME a NAME b WAIT 9000 PRIORITY 1"),
        "cycle 2: eve b exclusive, bob a exclusive");
    /* behind bob it only waits */
    EXPECT_WAITS(
        engine_do("LOCKSET OWNER eve NAME a NAME b WAIT 9000 PRIORITY 2"));
    CHECK_ENGINE();
}

TEST(of_several_circles_a_shortest_is_told)
{
    engine_start();
    engine_do("LOCK a OWNER ann");
    engine_do("LOCK d OWNER r1 SHARED");
    engine_do("LOCK d OWNER r2 SHARED");
    engine_do("LOCK x OWNER kim");
    EXPECT_WAITS(engine_do("LOCK x OWNER r1 WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK a OWNER kim WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK a OWNER r2 SHARED WAIT 9000"));
    EXPECT_CIRCLE(engine_do("LOCK d OWNER ann WAIT 9000"),
                  "cycle 2: ann d exclusive, r2 a shared");
}

TEST(waits_that_converge_are_no_circle)
{
    engine_start();
    engine_do("LOCK x OWNER eve");
    engine_do("LOCK a OWNER ann");
    EXPECT_WAITS(engine_do("LOCK x OWNER ann WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK x OWNER bob WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK a OWNER bob WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCKSET OWNER kim NAME a NAME x WAIT 9000"));
    CHECK_ENGINE();
}

TEST(what_was_granted_meanwhile_is_no_circle)
{
    engine_start();
    engine_do("LOCK a OWNER ann");
    engine_do("LOCK b OWNER bob");
    EXPECT_WAITS(engine_do("LOCK a OWNER bob WAIT 9000"));
    engine_do("UNLOCK a 1"); /* bob has both now */
    EXPECT_WAITS(engine_do("LOCK b OWNER ann WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK a OWNER ann WAIT 9000"));
}

TEST(a_wait_that_ended_is_no_edge)
{
    for (int round = 0; round < 3; round++) {
        engine_start();
        engine_do("LOCK a OWNER ann TTL 900000");
        engine_do("LOCK b OWNER bob TTL 900000");
        EXPECT_WAITS(engine_do("LOCK a OWNER bob WAIT 100"));
        if (round == 0)
            engine_abandon(3);
        else if (round == 1)
            engine_timeout("", 3, "");
        else
            engine_now_us += 100 * MS;
        EXPECT_WAITS(engine_do("LOCK b OWNER ann WAIT 9000"));
    }
}

/* A thread of ann's waits behind bob, who waits behind another of hers. */
TEST(an_owner_may_stand_in_a_queue_twice_with_another_between)
{
    engine_start();
    engine_do("LOCK door OWNER eve");
    EXPECT_WAITS(engine_do("LOCK door OWNER ann WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK door OWNER bob WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK door OWNER ann WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK door OWNER bob WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCKSET OWNER ann NAME door NAME x WAIT 9000"));
    CHECK_ENGINE();
}

/* Nobody is refused who asks for another lock while it waits for one. */
TEST(an_older_wait_of_the_requester_is_a_wait_of_its_own)
{
    engine_start();
    engine_do("LOCK n3 OWNER kim");
    EXPECT_WAITS(engine_do("LOCK n3 OWNER eve WAIT 9000"));
    engine_do("LOCK n2 OWNER ann");
    EXPECT_WAITS(engine_do("LOCK n3 OWNER ann WAIT 9000"));
    /* eve would get n3 and have it, waiting for ann, who waits for n3; but
     * eve's older wait is not this request: it goes on when kim does */
    EXPECT_WAITS(engine_do("LOCK n2 OWNER eve WAIT 9000"));
}

TEST(holders_of_one_name_in_other_sessions_are_others)
{
    engine_start();
    engine_do("SESSION OPEN TTL 90000"); /* 1 */
    engine_do("SESSION OPEN TTL 90000"); /* 2 */
    engine_do("LOCK a OWNER ann SESSION 1");
    engine_do("LOCK b OWNER ann SESSION 2");
    EXPECT_WAITS(engine_do("LOCK b OWNER ann SESSION 1 WAIT 9000"));
    EXPECT(engine_do("LOCK a OWNER ann SESSION 2 WAIT 9000"),
           "DEADLOCK name=a reason=cycle length=2 cycle=["
           "{owner=ann session=2 name=a mode=exclusive since_ms=0 note=} "
           "{owner=ann session=1 name=b mode=exclusive since_ms=0 note=}]");
    EXPECT_WAITS(engine_do("LOCK a OWNER ann WAIT 9000"));
}

/* Who did not want to be told is not; others are told of their own only. */
TEST(a_deadlock_that_was_let_be_is_not_told_to_others)
{
    engine_start();
    engine_do("LOCK a OWNER ann");
    engine_do("LOCK b OWNER bob");
    EXPECT_WAITS(engine_do("LOCK b OWNER ann WAIT 9000 DEADLOCK NONE"));
    EXPECT_WAITS(engine_do("LOCK a OWNER bob WAIT 9000 DEADLOCK NONE"));
    EXPECT_WAITS(engine_do("LOCK a OWNER eve WAIT 9000"));
    engine_do("LOCK c OWNER kim");
    EXPECT_WAITS(engine_do("LOCK c OWNER zoe WAIT 9000"));
    CHECK_ENGINE();
}

TEST(a_circle_is_found_after_a_reload)
{
    engine_start();
    engine_do("LOCK a OWNER ann");
    engine_do("LOCKSET OWNER bob NAME b NAME c SHARED");
    EXPECT_WAITS(engine_do("LOCKSET OWNER bob NAME a SHARED NAME x WAIT 9000"));
    engine_reload();
    EXPECT_CIRCLE(engine_do("LOCK c OWNER ann WAIT 9000"),
                  "cycle 2: ann c exclusive, bob a shared");
}

/* bob's b is over, but behind 600 others: nobody waits for it any more. */
TEST(a_grant_that_is_over_and_not_swept_is_no_edge)
{
    for (int round = 0; round < 2; round++) {
        engine_start();
        engine_do("LOCK a OWNER ann TTL 9000");
        engine_do("LOCK b OWNER bob TTL %d", round == 0 ? 200 : 9000);
        engine_do("LOCK c OWNER eve TTL 9000");
        EXPECT_WAITS(engine_do("LOCK b OWNER eve WAIT 8000"));
        EXPECT_WAITS(engine_do("LOCK a OWNER bob WAIT 8000"));
        for (unsigned i = 0; i < 600; i++)
            engine_do("LOCK old%u OWNER kim TTL 100", i);
        engine_now_us += 200 * MS;
        const struct hold_out *out = engine_do("LOCK c OWNER ann WAIT 9000");
        CHECK(hold_is_behind(engine));
        CHECK_EQ(out->code, round == 0 ? HOLD_WAITING : HOLD_DEADLOCK);
    }
}

/* In the queue of a lock that one holds stands a set that waits elsewhere. */
TEST(a_circle_goes_through_a_set_before_the_place_of_the_request)
{
    engine_start();
    engine_do("LOCK m OWNER ann");
    engine_do("LOCK door OWNER zoe");
    EXPECT_WAITS(engine_do("LOCK door OWNER x WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCKSET OWNER bob NAME door NAME m WAIT 9000"));
    EXPECT_CIRCLE(engine_do("LOCK door OWNER ann WAIT 9000"),
                  "cycle 2: ann door exclusive, bob m exclusive");
}

/* ann holds L and waits for it with M in a set: the search comes there by her
 * own wait first, which passes her grant by, and then by kim's. */
TEST(a_grant_that_its_holder_passed_by_is_followed_by_others)
{
    engine_start();
    engine_do("LOCK L OWNER zoe");
    engine_do("LOCK n OWNER bob");
    engine_do("LOCK q OWNER kim");
    EXPECT_WAITS(engine_do("LOCK L OWNER ann SHARED FOREVER"));
    EXPECT_WAITS(engine_do("LOCKSET OWNER ann NAME L NAME M FOREVER"));
    CHECK_EQ(engine_do("UNLOCK L 1")->answer_count, 1);
    EXPECT_WAITS(engine_do("LOCK M OWNER bob FOREVER"));
    EXPECT_WAITS(engine_do("LOCK q OWNER bob FOREVER"));
    EXPECT_WAITS(engine_do("LOCK L OWNER kim FOREVER"));
    EXPECT_CIRCLE(engine_do("LOCK n OWNER ann FOREVER"),
                  "cycle 3: ann n exclusive, bob q exclusive, "
                  "kim L exclusive");
}

/* ---- How long it takes. ---- */

/* A full queue, at whose beginning and end every request is looked at. */
static void queue_up(const char *hold, const char *wait)
{
    engine_start();
    engine_do("LOCK door OWNER eve%s", hold);
    for (unsigned i = 0; i < HOLD_QUEUE_MAX; i++) {
        bool detect = i < 600 || i >= HOLD_QUEUE_MAX - 10;
        const struct hold_out *out =
            engine_do("LOCK door OWNER o%u%s FOREVER DEADLOCK %s", i, wait,
                      detect ? "DETECT" : "NONE");
        if (out->code != HOLD_WAITING)
            test_fail(__FILE__, __LINE__, "the %uth: %s", i,
                      engine_reply_text(out));
        CHECK(out->work <= 3 * i + 10);
    }
}

TEST(a_full_queue_for_an_exclusive_lock_is_no_search)
{
    queue_up("", "");
}

TEST(a_full_queue_of_writers_for_a_shared_lock_is_a_short_search)
{
    queue_up(" SHARED", "");
}

TEST(a_full_queue_for_permits_is_a_short_search)
{
    queue_up(" PERMITS 5 OF 5", " PERMITS 1 OF 5");
}

/* One who looks at all holders is enough. */
TEST(a_long_queue_for_permits_of_many_is_a_short_search)
{
    engine_start();
    for (unsigned i = 0; i < 1000; i++)
        engine_do("LOCK pool OWNER h%u PERMITS 1 OF 1000", i);
    for (unsigned i = 0; i < 2000; i++) {
        const struct hold_out *out =
            engine_do("LOCK pool OWNER o%u PERMITS 1 OF 1000 FOREVER "
                      "DEADLOCK %s",
                      i, i % 100 == 99 ? "DETECT" : "NONE");
        EXPECT_WAITS(out);
        CHECK(out->work <= 10000);
    }
    /* that many are stuck when one holder waits for who asks */
    engine_do("LOCK x OWNER eve");
    for (unsigned i = 0; i < 1000; i++)
        EXPECT_WAITS(engine_do("LOCK x OWNER h%u FOREVER", i));
    EXPECT_CIRCLE(engine_do("LOCK pool OWNER eve PERMITS 1 OF 1000 FOREVER"),
                  "cycle 2: eve pool counting, h0 x exclusive");
    CHECK_ENGINE();
}

/* What ann has of the pool is another number of permits: her second wait does
 * not enter it again, but needs two more. */
TEST(another_number_of_permits_is_no_re_entry)
{
    engine_start();
    engine_do("LOCK x OWNER ann");
    engine_do("LOCK pool OWNER zoe PERMITS 3 OF 3"); /* 2 */
    EXPECT_WAITS(engine_do("LOCK pool OWNER ann PERMITS 1 OF 3 WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK pool OWNER bob PERMITS 1 OF 3 WAIT 9000"));
    EXPECT_WAITS(engine_do("LOCK pool OWNER ann PERMITS 2 OF 3 WAIT 9000"));
    CHECK_EQ(engine_do("UNLOCK pool 2")->answer_count, 2);
    EXPECT_CIRCLE(engine_do("LOCK x OWNER bob WAIT 9000"),
                  "cycle 2: bob x exclusive, ann pool counting");
    CHECK_ENGINE();
}

/* Who could go on is looked for among the waits of all, over and over: that is
 * a part of the search. */
TEST(who_is_stuck_is_looked_for_in_bounded_steps)
{
    engine_start();
    for (unsigned i = 0; i < 1000; i++)
        engine_do("LOCK pool OWNER h%u PERMITS 1 OF 1000", i);
    engine_do("LOCK x OWNER eve");
    EXPECT_WAITS(engine_do("LOCK x OWNER h1 FOREVER"));
    for (unsigned i = 0; i < 1000; i++)
        EXPECT_WAITS(engine_do("LOCK pool OWNER o%u PERMITS 1 OF 1000 FOREVER "
                               "DEADLOCK NONE",
                               i));
    const struct hold_out *out =
        engine_do("LOCK pool OWNER eve PERMITS 1 OF 1000 FOREVER");
    EXPECT(out, "OVERLOADED name=detect-max maximum=100000");
    CHECK(out->work <= 2 * HOLD_DETECT_MAX);
}
