/* hold_shared.c - tests of shared locks: readers and writers take turns. */
#include "hold/locks.h"
#include "support/engine.h"

TEST_ONE_THREAD;

TEST(readers_hold_a_lock_together_and_share_the_fence_of_the_first)
{
    engine_start();
    const struct hold_out *out =
        engine_do("LOCK door OWNER ann SHARED TTL 500");
    EXPECT(out, "OK token=1 safe_ms=500 count=1 waited_ms=0 fence=1");
    EXPECT_EVENTS(out, "1 LOCK_GRANTED door");
    CHECK_EQ(out->events[0].token, 1);
    CHECK_EQ(out->events[0].mode, 1);
    EXPECT(engine_do("LOCK door OWNER bob SHARED TTL 500"),
           "OK token=2 safe_ms=500 count=1 waited_ms=0 fence=1");
    EXPECT(engine_do("LOCK door OWNER eve SHARED TTL 900"),
           "OK token=3 safe_ms=900 count=1 waited_ms=0 fence=1");
    EXPECT(engine_do("UNLOCK door 1"), "OK remaining=0");
    /* the phase goes on without its first reader */
    EXPECT(engine_do("LOCK door OWNER ann SHARED TTL 500"),
           "OK token=5 safe_ms=500 count=1 waited_ms=0 fence=1");
    CHECK_ENGINE();
}

TEST(a_new_phase_has_a_new_fence)
{
    engine_start();
    engine_do("LOCK door OWNER ann SHARED");
    engine_do("UNLOCK door 1");
    EXPECT(engine_do("LOCK door OWNER bob SHARED TTL 5"),
           "OK token=3 safe_ms=5 count=1 waited_ms=0 fence=3");
    engine_now_us += 5 * MS;
    EXPECT(engine_do("LOCK door OWNER eve SHARED TTL 5"),
           "OK token=5 safe_ms=5 count=1 waited_ms=0 fence=5");
}

TEST(an_exclusive_request_and_a_reader_keep_each_other_out)
{
    engine_start();
    engine_do("LOCK door OWNER ann SHARED TTL 500");
    engine_do("LOCK door OWNER bob SHARED TTL 700");
    EXPECT(engine_do("LOCK door OWNER eve"), /* the oldest is named */
           "BUSY name=door owner=ann expires_ms=500 waiting=0 position=1");
    engine_start();
    engine_do("LOCK door OWNER ann TTL 500");
    EXPECT(engine_do("LOCK door OWNER bob SHARED"),
           "BUSY name=door owner=ann expires_ms=500 waiting=0 position=1");
}

TEST(a_reader_re_enters_and_leaves_as_often)
{
    engine_start();
    engine_do("LOCK door OWNER ann SHARED TTL 500");
    engine_do("LOCK door OWNER bob SHARED TTL 500");
    EXPECT(engine_do("LOCK door OWNER bob SHARED TTL 900"),
           "OK token=2 safe_ms=900 count=2 waited_ms=0 fence=1");
    EXPECT(engine_do("UNLOCK door 2"), "OK remaining=1");
    EXPECT(engine_do("UNLOCK door 2"), "OK remaining=0");
    EXPECT(engine_do("UNLOCK door 2"), "NOTHELD name=door token=2");
    EXPECT(engine_do("HELD door 1"), "OK");
    EXPECT(engine_do("HELD door 2"), "LOST name=door token=2");
}

TEST(a_reader_re_enters_also_while_a_writer_waits)
{
    engine_start();
    engine_do("LOCK door OWNER ann SHARED TTL 500");
    EXPECT(engine_do("LOCK door OWNER bob WAIT 400"), "WAITING ticket=2");
    EXPECT(engine_do("LOCK door OWNER ann SHARED TTL 500"),
           "OK token=1 safe_ms=500 count=2 waited_ms=0 fence=1");
    CHECK_ENGINE();
}

TEST(an_upgrade_is_refused_with_the_mode_that_is_held)
{
    engine_start();
    engine_do("LOCK door OWNER ann SHARED TTL 500");
    EXPECT(engine_do("LOCK door OWNER ann"), "STATE name=door mode=shared");
    EXPECT(engine_do("LOCK door OWNER ann WAIT 100"), /* it would deadlock */
           "STATE name=door mode=shared");
    EXPECT(engine_do("LOCK door OWNER ann FOREVER BARGE DEADLOCK NONE"),
           "STATE name=door mode=shared");
    engine_start();
    engine_do("LOCK door OWNER ann TTL 500");
    EXPECT(engine_do("LOCK door OWNER ann SHARED"),
           "STATE name=door mode=exclusive");
    CHECK_EQ(hold_seq(engine), 1);
}

/* A stream of readers does not starve it. */
TEST(a_waiting_writer_stops_later_readers)
{
    engine_start();
    engine_do("LOCK door OWNER r1 SHARED TTL 500");
    EXPECT(engine_do("LOCK door OWNER w1 TTL 500 WAIT 9000"),
           "WAITING ticket=2");
    EXPECT(engine_do("LOCK door OWNER r2 SHARED"),
           "BUSY name=door owner=w1 waited_ms=0 waiting=1 position=2");
    EXPECT(engine_do("LOCK door OWNER r2 SHARED TTL 500 WAIT 9000"),
           "WAITING ticket=3");
    const struct hold_out *out = engine_do("UNLOCK door 1");
    EXPECT_ANSWERS(out, "2:OK token=5 safe_ms=500 count=1 waited_ms=0");
    EXPECT_EVENTS(out, "4 LOCK_RELEASED door; 5 LOCK_GRANTED door");
    CHECK_ENGINE();
}

/* Readers who waited go before the next writer, those who come later do not. */
TEST(readers_who_waited_go_before_the_next_writer)
{
    engine_start();
    engine_do("LOCK door OWNER w1 TTL 500");
    engine_do("LOCK door OWNER w2 TTL 500 WAIT 9000");        /* 2 */
    engine_do("LOCK door OWNER r1 SHARED TTL 500 WAIT 9000"); /* 3 */
    engine_do("LOCK door OWNER w3 TTL 500 WAIT 9000");        /* 4 */
    engine_do("LOCK door OWNER r2 SHARED TTL 500 WAIT 9000"); /* 5 */
    const struct hold_out *out = engine_do("UNLOCK door 1");
    EXPECT_ANSWERS(out, "3:OK token=7 safe_ms=500 count=1 waited_ms=0 fence=7; "
                        "5:OK token=8 safe_ms=500 count=1 waited_ms=0 fence=7");
    EXPECT(engine_do("LOCK door OWNER r3 SHARED TTL 500 WAIT 9000"),
           "WAITING ticket=9"); /* w2 waits */
    EXPECT_ANSWERS(engine_do("UNLOCK door 7"), "");
    EXPECT_ANSWERS(engine_do("UNLOCK door 8"),
                   "2:OK token=12 safe_ms=500 count=1 waited_ms=0");
    /* r3 came after w2, and before w2 ends: it goes before w3 */
    EXPECT_ANSWERS(engine_do("UNLOCK door 12"),
                   "9:OK token=14 safe_ms=500 count=1 waited_ms=0 fence=14");
    EXPECT_ANSWERS(engine_do("UNLOCK door 14"),
                   "4:OK token=16 safe_ms=500 count=1 waited_ms=0");
    CHECK_ENGINE();
}

/* Also if one of them is the first. */
TEST(a_reader_waits_for_one_writer_at_most)
{
    engine_start();
    engine_do("LOCK door OWNER w1 TTL 500");
    engine_do("LOCK door OWNER r1 SHARED TTL 500 WAIT 9000"); /* 2 */
    engine_do("LOCK door OWNER w2 TTL 500 WAIT 9000");        /* 3 */
    engine_do("LOCK door OWNER r2 SHARED TTL 500 WAIT 9000"); /* 4 */
    EXPECT_ANSWERS(engine_do("UNLOCK door 1"),
                   "2:OK token=6 safe_ms=500 count=1 waited_ms=0 fence=6; "
                   "4:OK token=7 safe_ms=500 count=1 waited_ms=0 fence=6");
    CHECK_ENGINE();
}

TEST(it_is_the_readers_turn_also_when_a_writer_expires_or_is_revoked)
{
    for (int round = 0; round < 2; round++) {
        engine_start();
        engine_do("LOCK door OWNER w1 TTL 500");
        engine_do("LOCK door OWNER w2 WAIT 9000");
        engine_do("LOCK door OWNER r1 SHARED TTL 9 WAIT 9000");
        engine_now_us += round == 0 ? 500 * MS : 499 * MS;
        const struct hold_out *out =
            round == 0 ? engine_tick() : engine_do("REVOKE door 1");
        EXPECT_EVENTS(out, round == 0
                               ? "4 LOCK_EXPIRED door; 5 LOCK_GRANTED door"
                               : "4 LOCK_LOST door; 5 LOCK_GRANTED door");
        CHECK_EQ(out->answer_count, 1);
        CHECK_EQ(out->answers[0].ticket, 3);
    }
}

/* The end of readers is the writers' turn, whoever waits behind it. */
TEST(after_readers_the_first_in_the_queue_is_next)
{
    engine_start();
    engine_do("LOCK door OWNER r1 SHARED TTL 500");
    engine_do("LOCK door OWNER w1 TTL 500 WAIT 9000");        /* 2 */
    engine_do("LOCK door OWNER r2 SHARED TTL 500 WAIT 9000"); /* 3 */
    engine_do("LOCK door OWNER w2 TTL 500 WAIT 9000");        /* 4 */
    EXPECT_ANSWERS(engine_do("UNLOCK door 1"),
                   "2:OK token=6 safe_ms=500 count=1 waited_ms=0");
    /* a writer that gives up ends no phase */
    engine_start();
    engine_do("LOCK door OWNER r1 SHARED TTL 500");
    engine_do("LOCK door OWNER w1 TTL 500 WAIT 9000");        /* 2 */
    engine_do("LOCK door OWNER r2 SHARED TTL 500 WAIT 9000"); /* 3 */
    engine_do("LOCK door OWNER w2 TTL 500 WAIT 9000");        /* 4 */
    engine_do("LOCK door OWNER r3 SHARED TTL 500 WAIT 9000"); /* 5 */
    EXPECT_ANSWERS(engine_abandon(2),
                   "3:OK token=6 safe_ms=500 count=1 waited_ms=0 fence=1");
    CHECK_ENGINE();
}

TEST(waiting_readers_in_front_are_granted_together)
{
    engine_start();
    engine_do("LOCK door OWNER w1 TTL 500");
    for (int i = 2; i < 6; i++)
        engine_do("LOCK door OWNER r%d SHARED TTL 500 WAIT 9000", i);
    const struct hold_out *out = engine_do("UNLOCK door 1");
    CHECK_EQ(out->answer_count, 4);
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(out->answers[i].ticket, 2 + i);
        CHECK_EQ(reply_get_number(out->answers[i].body, FIELD_FENCE), 7);
    }
    CHECK_ENGINE();
}

/* Those of a worse priority than the next writer wait for it. */
TEST(the_readers_turn_does_not_pass_a_writer_of_better_priority)
{
    engine_start();
    engine_do("LOCK door OWNER w1 TTL 500");
    engine_do("LOCK door OWNER w2 TTL 500 WAIT 9000 PRIORITY 1");        /* 2 */
    engine_do("LOCK door OWNER r1 SHARED TTL 500 WAIT 9000 PRIORITY 1"); /* 3 */
    engine_do("LOCK door OWNER r2 SHARED TTL 500 WAIT 9000 PRIORITY 2"); /* 4 */
    EXPECT_ANSWERS(engine_do("UNLOCK door 1"),
                   "3:OK token=6 safe_ms=500 count=1 waited_ms=0 fence=6");
    EXPECT_ANSWERS(engine_do("UNLOCK door 6"),
                   "2:OK token=8 safe_ms=500 count=1 waited_ms=0");
    EXPECT_ANSWERS(engine_do("UNLOCK door 8"),
                   "4:OK token=10 safe_ms=500 count=1 waited_ms=0 fence=10");
}

TEST(a_downgrade_keeps_the_token_and_lets_readers_in)
{
    engine_start();
    engine_do("LOCK door OWNER ann TTL 500");
    engine_do("LOCK door OWNER ann TTL 500");
    engine_do("LOCK door OWNER r1 SHARED TTL 500 WAIT 9000"); /* 3 */
    engine_do("LOCK door OWNER w1 TTL 500 WAIT 9000");        /* 4 */
    engine_do("LOCK door OWNER r2 SHARED TTL 500 WAIT 9000"); /* 5 */
    engine_now_us += 100 * MS;
    const struct hold_out *out = engine_do("DOWNGRADE door 1");
    EXPECT(out, "OK token=1 safe_ms=400 fence=1");
    EXPECT_EVENTS(out, "6 LOCK_DOWNGRADED door; 7 LOCK_GRANTED door");
    EXPECT_ANSWERS(out,
                   "3:OK token=7 safe_ms=500 count=1 waited_ms=100 fence=1");
    out = engine_do("DOWNGRADE door 1"); /* it is shared already */
    EXPECT(out, "OK token=1 safe_ms=400 fence=1");
    EXPECT_EVENTS(out, "");
    EXPECT(engine_do("DOWNGRADE door 7"), "OK token=7 safe_ms=500 fence=1");
    EXPECT(engine_do("DOWNGRADE door 9"), "LOST name=door token=9");
    EXPECT(engine_do("DOWNGRADE gate 1"), "LOST name=gate token=1");
    EXPECT(engine_do("UNLOCK door 1"), "OK remaining=1");
    EXPECT(engine_do("LOCK door OWNER ann"), "STATE name=door mode=shared");
    CHECK_ENGINE();
}

TEST(only_a_single_exclusive_grant_can_be_downgraded)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 1 OF 3");
    EXPECT(engine_do("DOWNGRADE pool 1"),
           "STATE name=pool mode=counting token=1");
    uint64_t set = engine_token(engine_do("LOCKSET OWNER ann NAME a NAME b"));
    EXPECT(engine_do("DOWNGRADE a %d", (int)set),
           "STATE name=a mode=exclusive names=2");
}

TEST(the_number_of_holders_is_bounded)
{
    engine_start();
    engine_bound("holders_max", 2);
    engine_do("LOCK door OWNER r1 SHARED");
    engine_do("LOCK door OWNER r2 SHARED");
    EXPECT(engine_do("LOCK door OWNER r3 SHARED"),
           "OVERLOADED name=holders-max maximum=2");
    EXPECT(engine_do("LOCKSET OWNER r3 NAME door SHARED NAME gate"),
           "OVERLOADED name=holders-max maximum=2");
    EXPECT(engine_do("LOCK door OWNER r2 SHARED TTL 30000"), /* no new one */
           "OK token=2 safe_ms=30000 count=2 waited_ms=0 fence=1");
    EXPECT(engine_do("LOCK pool OWNER r1 PERMITS 1 OF 9 TTL 5"),
           "OK token=4 safe_ms=5 count=1 waited_ms=0");
    engine_do("LOCK pool OWNER r2 PERMITS 1 OF 9");
    EXPECT(engine_do("LOCK pool OWNER r3 PERMITS 1 OF 9"),
           "OVERLOADED name=holders-max maximum=2");
}

TEST(a_reader_expires_alone_and_its_lock_is_free_when_all_have)
{
    engine_start();
    engine_do("LOCK door OWNER r1 SHARED TTL 100");
    engine_do("LOCK door OWNER r2 SHARED TTL 200");
    engine_do("LOCK door OWNER w1 TTL 500 WAIT 9000");
    engine_now_us += 100 * MS;
    EXPECT_EVENTS(engine_tick(), "4 LOCK_EXPIRED door");
    EXPECT(engine_do("RENEW door 1 TTL 9"), "LOST name=door token=1");
    EXPECT(engine_do("RENEW door 2 TTL 300"), "OK safe_ms=300");
    engine_now_us += 300 * MS;
    EXPECT_EVENTS(engine_tick(), "6 LOCK_EXPIRED door; 7 LOCK_GRANTED door");
    CHECK_ENGINE();
}

TEST(shared_grants_waits_and_their_fence_survive_an_image)
{
    engine_start();
    engine_do("LOCK door OWNER r1 SHARED TTL 500");
    engine_do("LOCK door OWNER r2 SHARED TTL 500");
    engine_do("UNLOCK door 1");
    engine_do("LOCK door OWNER w1 TTL 500 WAIT 9000"); /* 4 */
    engine_do("LOCK door OWNER r3 SHARED TTL 500 WAIT 9000");
    engine_reload();
    EXPECT(engine_do("LOCK door OWNER r4 SHARED BARGE TTL 500"),
           "OK token=6 safe_ms=500 count=1 waited_ms=0 fence=1");
    engine_do("UNLOCK door 2");
    EXPECT_ANSWERS(engine_do("UNLOCK door 6"),
                   "4:OK token=9 safe_ms=500 count=1 waited_ms=0");
    CHECK_ENGINE();
}

/* What never happens is counted, if it does: a grant of another lock is put
 * among those of the first. */
TEST(a_grant_beside_one_that_it_conflicts_with_is_counted)
{
    static const char *const modes[] = {"SHARED", "TTL 900", "PERMITS 1 OF 3"};

    for (int held = 0; held < 3; held++) {
        for (int joins = 0; joins < 3; joins++) {
            engine_start();
            engine_do("LOCK door OWNER ann %s", modes[held]);
            engine_do("LOCK hall OWNER bob %s", modes[joins]);
            uint32_t door =
                hf_index_find(&engine->locks, hf_bytes_text("door"));
            uint32_t hall =
                hf_index_find(&engine->locks, hf_bytes_text("hall"));
            uint32_t grant = lock_at(engine, hall)->grants.first;
            part_edit(engine, grant)->lock = door;
            grants_join(engine, grant, 2, 3);
            CHECK_EQ(engine->double_grants, held != joins || joins == 1);
        }
    }
}

/* The same of permits: the last that is free is no double grant, one more is,
 * and so is each that follows. */
TEST(a_grant_of_more_permits_than_are_left_is_counted)
{
    static const unsigned permits[] = {2, 1, 1, 3};

    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 2 OF 5");
    uint32_t pool = hf_index_find(&engine->locks, hf_bytes_text("pool"));
    for (unsigned i = 0; i < 4; i++) {
        engine_do("LOCK p%u OWNER bob PERMITS %u OF 5", i, permits[i]);
        char name[] = {'p', (char)('0' + i), '\0'};
        uint32_t other = hf_index_find(&engine->locks, hf_bytes_text(name));
        uint32_t grant = lock_at(engine, other)->grants.first;
        part_edit(engine, grant)->lock = pool;
        grants_join(engine, grant, 2 + i, 5);
        CHECK_EQ(engine->double_grants, i < 2 ? 0 : i - 1);
    }
}
