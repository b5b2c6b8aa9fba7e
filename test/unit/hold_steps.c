/* hold_steps.c - the work of one step is bounded, whatever falls due at once.
 */
#include "support/engine.h"

TEST_ONE_THREAD;

enum { MANY = 20000 };

struct swept {
    unsigned calls;
    size_t events;
    size_t answers;
};

/* Lets it all fall due; no call may tell of more than `most` events. */
static struct swept sweep(size_t most)
{
    struct swept swept = {0};

    do {
        const struct hold_out *out = engine_tick();
        CHECK(out->event_count <= most);
        CHECK(out->answer_count <= HOLD_STEP_MAX);
        swept.events += out->event_count;
        swept.answers += out->answer_count;
        swept.calls++;
    } while (hold_is_behind(engine));
    CHECK_ENGINE();
    return swept;
}

TEST(sessions_that_expire_at_once)
{
    engine_start();
    for (unsigned i = 0; i < MANY; i++) {
        engine_session(500);
        engine_do("LOCK n%u OWNER ann SESSION %llu", i,
                  (unsigned long long)hold_seq(engine));
    }
    engine_now_us += 500 * MS;
    struct swept swept = sweep(HOLD_STEP_MAX);
    CHECK_EQ(swept.events, 2 * MANY);
    CHECK_EQ(swept.calls, (2 * MANY + HOLD_STEP_MAX - 1) / HOLD_STEP_MAX);
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
}

TEST(waits_that_time_out_at_once)
{
    engine_start();
    engine_do("LOCK door OWNER ann TTL 900000");
    for (unsigned i = 0; i < HOLD_QUEUE_MAX; i++)
        engine_do("LOCK door OWNER o%u WAIT 500", i);
    engine_now_us += 500 * MS;
    struct swept swept = sweep(0);
    CHECK_EQ(swept.answers, HOLD_QUEUE_MAX);
    CHECK_EQ(swept.calls, HOLD_QUEUE_MAX / HOLD_STEP_MAX + 1);
}

TEST(delays_and_done_marks_that_end_at_once)
{
    engine_start();
    for (unsigned i = 0; i < MANY; i++) {
        engine_do("LOCK n%u OWNER ann DELAY 500", i);
        engine_do(i % 2 == 0 ? "REVOKE n%u %llu" : "UNLOCK n%u %llu DONE 500",
                  i, (unsigned long long)hold_seq(engine));
        engine_do("LOCK n%u OWNER bob WAIT 900 TTL 9000", i);
    }
    engine_now_us += 500 * MS;
    struct swept swept = sweep(HOLD_STEP_MAX); /* a grant each, of one half */
    CHECK_EQ(swept.events, MANY / 2);
    CHECK_EQ(swept.answers, MANY / 2);
    CHECK_EQ(swept.calls, (MANY + HOLD_STEP_MAX - 1) / HOLD_STEP_MAX);
}

/* An end that was begun is finished, so that a set ends whole. */
TEST(large_sets_that_expire_at_once)
{
    static char names[HOLD_SET_MAX * 16];

    engine_start();
    for (unsigned i = 0; i < 50; i++) {
        size_t len = 0;
        for (unsigned k = 0; k < HOLD_SET_MAX; k++)
            len += (size_t)snprintf(names + len, sizeof names - len,
                                    " NAME %u/%u", i, k);
        engine_do("LOCKSET OWNER ann TTL 500%s", names);
    }
    engine_now_us += 500 * MS;
    struct swept swept = sweep(HOLD_STEP_MAX + HOLD_SET_MAX - 1);
    CHECK_EQ(swept.events, 50 * HOLD_SET_MAX);
    CHECK_EQ(swept.calls, 13);
}

TEST(readers_that_expire_at_once_and_the_writer_behind_them)
{
    engine_start();
    engine_bound("holders_max", HOLD_QUEUE_MAX);
    for (unsigned i = 0; i < HOLD_QUEUE_MAX; i++)
        engine_do("LOCK door OWNER r%u SHARED TTL 500", i);
    engine_do("LOCK door OWNER w TTL 9000 WAIT 9000");
    engine_now_us += 500 * MS;
    struct swept swept = sweep(HOLD_STEP_MAX);
    CHECK_EQ(swept.events, HOLD_QUEUE_MAX + 1);
    CHECK_EQ(swept.answers, 1);
}

/* A name with few parts is settled for the command that is about it; one with
 * many waits for the sweep. */
TEST(a_crowded_name_waits_for_the_sweep)
{
    for (unsigned extra = 0; extra < 2; extra++) {
        engine_start();
        for (unsigned i = 0; i < 600; i++)
            engine_do("LOCK old%u OWNER ann TTL 100", i);
        for (unsigned i = 0; i < HOLD_SETTLE_MAX + extra; i++)
            engine_do("LOCK door OWNER r%u SHARED TTL 200", i);
        engine_now_us += 200 * MS;
        const struct hold_out *out = engine_do("LOCK door OWNER w TTL 5");
        CHECK_EQ(out->event_count, extra == 0
                                       ? HOLD_STEP_MAX + HOLD_SETTLE_MAX + 1
                                       : HOLD_STEP_MAX);
        unsigned again = 0;
        for (; out->code == HOLD_AGAIN; again++)
            out = engine_again();
        CHECK_EQ(again, extra == 0 ? 0 : 2);
        CHECK_EQ(out->code, HOLD_OK);
        CHECK_ENGINE();
    }
}

/* The same for each command about one name, and for those of sets. */
TEST(other_commands_about_a_crowded_name_wait_for_the_sweep)
{
    static const char *const commands[] = {"UNLOCK door 601",
                                           "RENEW door 601 TTL 5",
                                           "DOWNGRADE door 601",
                                           "REVOKE door 601",
                                           "UNLOCKSET 601",
                                           "RENEWSET 601 TTL 5",
                                           "LOCKSET OWNER w NAME door NAME x"};

    for (unsigned k = 0; k < sizeof commands / sizeof commands[0]; k++) {
        engine_start();
        for (unsigned i = 0; i < 600; i++)
            engine_do("LOCK old%u OWNER ann TTL 100", i);
        for (unsigned i = 0; i < 20; i++)
            engine_do("LOCK door OWNER r%u SHARED TTL 200", i);
        engine_now_us += 200 * MS;
        const struct hold_command *c = engine_parse("%s", commands[k]);
        CHECK(hold_is_exact(engine, c));
        EXPECT(engine_apply(c), "AGAIN");
        EXPECT(engine_again(), "AGAIN");
        CHECK(engine_again()->code != HOLD_AGAIN);
        CHECK_ENGINE();
    }
}

/* One release may hand a lock to all readers, who are told in one step. */
TEST(a_full_queue_of_readers_is_served_in_one_step)
{
    engine_start();
    engine_bound("holders_max", HOLD_QUEUE_MAX);
    engine_do("LOCK door OWNER ann");
    for (unsigned i = 0; i < HOLD_QUEUE_MAX; i++)
        engine_do("LOCK door OWNER r%u SHARED FOREVER DEADLOCK NONE", i);
    const struct hold_out *out = engine_do("UNLOCK door 1");
    CHECK_EQ(out->answer_count, HOLD_QUEUE_MAX);
    CHECK_EQ(out->event_count, HOLD_QUEUE_MAX + 1);
    CHECK(out->work <= 2 * HOLD_QUEUE_MAX);
    CHECK_ENGINE();
}

/* Many ends in one sweep do not each look at all who wait. */
TEST(readers_that_wait_elsewhere_do_not_make_a_sweep_long)
{
    enum { HOLDERS = 200, READERS = 3000 };

    engine_start();
    for (unsigned i = 0; i < HOLDERS; i++)
        engine_do("LOCK a OWNER h%u SHARED TTL 500", i);
    engine_do("LOCK b OWNER ann TTL 900000");
    for (unsigned i = 0; i < READERS; i++)
        engine_do("LOCKSET OWNER o%u NAME a SHARED NAME b SHARED FOREVER "
                  "DEADLOCK NONE",
                  i);
    engine_now_us += 500 * MS;
    do
        CHECK(engine_tick()->work < 2 * HOLD_WALK_MAX);
    while (hold_is_behind(engine));
    CHECK_ENGINE();
}

TEST(many_grants_make_a_sweep_end)
{
    enum { LOCKS = 100, READERS = 200 };
    size_t most = 0;

    engine_start();
    for (unsigned i = 0; i < LOCKS; i++) {
        engine_do("LOCK n%u OWNER ann TTL 500", i);
        for (unsigned k = 0; k < READERS; k++)
            engine_do("LOCK n%u OWNER r%u SHARED FOREVER DEADLOCK NONE", i, k);
    }
    engine_now_us += 500 * MS;
    do {
        size_t answers = engine_tick()->answer_count;
        most = answers > most ? answers : most;
    } while (hold_is_behind(engine));
    CHECK(most >= READERS);
    CHECK(most <= HOLD_WALK_MAX / 8 + READERS);
    CHECK_ENGINE();
}

/* Nobody is there whose turn it could be but the first. */
TEST(a_queue_of_writers_is_not_looked_through_for_readers)
{
    engine_start();
    engine_do("LOCK door OWNER ann");
    for (unsigned i = 0; i < 1000; i++)
        engine_do("LOCK door OWNER o%u FOREVER DEADLOCK NONE", i);
    engine_do("LOCK door OWNER kim SHARED WAIT 500 DEADLOCK NONE");
    const struct hold_out *out = engine_do("UNLOCK door 1"); /* to kim */
    CHECK(out->work >= 1000);
    engine_unlock("door", hold_seq(engine));
    out = engine_unlock("door", hold_seq(engine));
    CHECK_EQ(out->answer_count, 1);
    CHECK(out->work < 10);
    CHECK_ENGINE();
}

/* A set looks first at the name that stopped it last. */
TEST(sets_that_wait_for_their_last_name_do_not_look_at_all)
{
    enum { WAITS = 100, NAMES = 60 };
    static char names[NAMES * 16];
    size_t len = 0;

    engine_start();
    engine_do("LOCK a OWNER ann");
    engine_do("LOCK z OWNER ann");
    for (unsigned i = 0; i < NAMES; i++)
        len += (size_t)snprintf(names + len, sizeof names - len,
                                " NAME n%u SHARED", i);
    for (unsigned i = 0; i < WAITS; i++)
        engine_do("LOCKSET OWNER o%u NAME a SHARED%s NAME z SHARED FOREVER "
                  "DEADLOCK NONE",
                  i, names);
    engine_do("UNLOCK a 1");
    engine_do("LOCK a OWNER kim BARGE");
    const struct hold_out *out =
        engine_do("UNLOCK a %llu", (unsigned long long)hold_seq(engine));
    CHECK_EQ(out->code, HOLD_OK);
    CHECK(out->work < 4 * WAITS);
    CHECK_EQ(engine_do("UNLOCK z 2")->answer_count, WAITS);
    CHECK_ENGINE();
}

/* The same of permits, of which some wait twice and re-enter. */
TEST(a_queue_of_permits_is_let_in_without_a_look_at_all_holders_for_each)
{
    enum { WAITS = 2000 };

    engine_start();
    engine_bound("holders_max", HOLD_QUEUE_MAX);
    engine_do("LOCK door OWNER ann");
    for (unsigned i = 0; i < WAITS; i++)
        engine_do("LOCK door OWNER r%u PERMITS 1 OF 9999 FOREVER DEADLOCK NONE",
                  i % (WAITS / 2));
    const struct hold_out *out = engine_do("UNLOCK door 1");
    CHECK_EQ(out->answer_count, WAITS);
    CHECK(out->work <= 3 * WAITS);
    CHECK_ENGINE();
    out = engine_do("LOCK door OWNER r7 PERMITS 1 OF 9999");
    CHECK(strstr(engine_reply_text(out), " count=3 ") != NULL);
    EXPECT_BEGINS(engine_do("LOCK door OWNER kim"), "BUSY name=door owner=r0 ");
    struct hold_counts counts;
    hold_count(engine, &counts);
    CHECK_EQ(counts.waiters, 0);
}

/* But not to more than may hold it: the next come as others leave. */
TEST(no_more_readers_are_served_than_may_hold_the_lock)
{
    engine_start();
    engine_bound("holders_max", 3);
    engine_do("LOCK door OWNER ann");
    for (unsigned i = 0; i < 5; i++)
        engine_do("LOCK door OWNER r%u SHARED FOREVER", i);
    const struct hold_out *out = engine_do("UNLOCK door 1");
    CHECK_EQ(out->answer_count, 3);
    out = engine_do("UNLOCK door %llu", (unsigned long long)hold_seq(engine));
    CHECK_EQ(out->answer_count, 1);
    CHECK_ENGINE();
}

/* Readers that wait for another name, too, are looked at once each. */
TEST(readers_that_wait_elsewhere_are_looked_at_once)
{
    enum { READERS = 2000 };

    engine_start();
    engine_bound("holders_max", HOLD_QUEUE_MAX);
    uint64_t a = engine_token(engine_do("LOCK a OWNER ann TTL 900000"));
    uint64_t b = engine_token(engine_do("LOCK b OWNER ann TTL 900000"));
    for (unsigned i = 0; i < READERS; i++)
        engine_do("LOCKSET OWNER o%u NAME a SHARED NAME b SHARED FOREVER", i);
    const struct hold_out *out =
        engine_do("UNLOCK a %llu", (unsigned long long)a);
    CHECK_EQ(out->answer_count, 0);
    CHECK(out->work <= 3 * READERS + 10);
    out = engine_do("UNLOCK b %llu", (unsigned long long)b);
    CHECK_EQ(out->answer_count, READERS);
    CHECK(out->work <= 5 * READERS + 10);
    CHECK_ENGINE();
}

/* A circle that permits may break: who is stuck is found in bounded steps. */
TEST(a_search_for_who_is_stuck_is_given_up)
{
    enum { HOLDERS = 900, WAITERS = 300 };

    engine_start();
    for (unsigned i = 0; i < HOLDERS; i++)
        engine_do("LOCK pool OWNER h%u PERMITS 1 OF %u", i, HOLDERS);
    engine_do("LOCK door OWNER r TTL 900000");
    for (unsigned i = 0; i < WAITERS; i++)
        engine_do("LOCK pool OWNER w%u PERMITS 1 OF %u FOREVER", i, HOLDERS);
    engine_do("LOCK door OWNER h0 FOREVER");
    const struct hold_out *out =
        engine_do("LOCK pool OWNER r PERMITS 1 OF %u FOREVER", HOLDERS);
    EXPECT(out, "OVERLOADED name=detect-max maximum=100000");
    CHECK(out->work <= 2 * HOLD_DETECT_MAX);
    CHECK_ENGINE();
}

/* What looks through the holders of a lock says so, answered or not. */
TEST(a_look_at_many_holders_is_counted)
{
    static const char *const commands[] = {
        "LOCK door OWNER w",        "LOCK door OWNER w SHARED",
        "UNLOCK door 9999",         "UNLOCK door 500",
        "RENEW door 9999 TTL 5",    "LOCKSET OWNER w NAME door NAME x",
        "ELECT door OWNER w TTL 5", "REVOKE door 9999"};

    engine_start();
    for (unsigned i = 0; i < 1000; i++)
        engine_do("LOCK door OWNER r%u SHARED", i);
    for (unsigned k = 0; k < sizeof commands / sizeof commands[0]; k++) {
        (void)hold_answer_now(engine, engine_parse("%s", commands[k]));
        CHECK(hold_work(engine) >= 1000);
    }
    CHECK(engine_do("HELD door 9999")->work >= 1000);
    CHECK(engine_do("LOCKINFO door")->work >= 1000);
}
