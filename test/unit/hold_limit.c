/* hold_limit.c - tests of the token buckets in the engine. */
#include "base/memory.h"
#include "base/random.h"
#include "support/engine.h"

TEST(the_burst_goes_at_once_then_the_wait_is_exact)
{
    engine_start();
    EXPECT(engine_limit("k", 10, 1000, 5, 2),
           "OK allowed=1 limit=5 remaining=3 retry_ms=0 reset_ms=200");
    EXPECT(engine_limit("k", 10, 1000, 5, 3),
           "OK allowed=1 limit=5 remaining=0 retry_ms=0 reset_ms=500");
    EXPECT(engine_limit("k", 10, 1000, 5, 1),
           "OK allowed=0 limit=5 remaining=0 retry_ms=100 reset_ms=500");
    engine_now_us += 100 * MS - 1;
    EXPECT(engine_limit("k", 10, 1000, 5, 1), /* rounded up */
           "OK allowed=0 limit=5 remaining=0 retry_ms=1 reset_ms=401");
    engine_now_us += 1;
    EXPECT(engine_limit("k", 10, 1000, 5, 1),
           "OK allowed=1 limit=5 remaining=0 retry_ms=0 reset_ms=500");
}

TEST(peeking_takes_nothing)
{
    engine_start();
    EXPECT(engine_limit("k", 10, 1000, 5, 0),
           "OK allowed=1 limit=5 remaining=5 retry_ms=0 reset_ms=0");
    engine_limit("k", 10, 1000, 5, 5);
    EXPECT(engine_limit("k", 10, 1000, 5, 0),
           "OK allowed=1 limit=5 remaining=0 retry_ms=0 reset_ms=500");
    EXPECT(engine_limit("k", 10, 1000, 5, 0),
           "OK allowed=1 limit=5 remaining=0 retry_ms=0 reset_ms=500");
}

TEST(more_than_the_burst_is_never_possible_and_burns_nothing)
{
    engine_start();
    EXPECT(engine_limit("k", 10, 1000, 5, 6),
           "OK allowed=0 limit=5 remaining=5 retry_ms=-1 reset_ms=0");
    EXPECT(engine_limit("k", 10, 1000, 5, 5),
           "OK allowed=1 limit=5 remaining=0 retry_ms=0 reset_ms=500");
}

TEST(time_that_goes_back_earns_nothing_twice)
{
    engine_start();
    engine_limit("k", 10, 1000, 5, 5);
    engine_now_us += 100 * MS;
    CHECK_EQ(reply_get_number(engine_limit("k", 10, 1000, 5, 1)->body,
                              FIELD_ALLOWED),
             1);
    engine_now_us -= 100 * MS;
    EXPECT(engine_limit("k", 10, 1000, 5, 1),
           "OK allowed=0 limit=5 remaining=0 retry_ms=100 reset_ms=500");
    /* the time of a journaled command counts as well */
    engine_now_us += 300 * MS;
    engine_tick();
    engine_now_us -= 300 * MS;
    EXPECT(engine_limit("k", 10, 1000, 5, 2),
           "OK allowed=1 limit=5 remaining=0 retry_ms=0 reset_ms=500");
}

/* Takes one permit whenever it is said to be there, for a long time: exactly
 * burst + rate * time permits, for rates that divide nothing evenly. */
static void take_all(uint64_t rate, uint64_t per_ms, uint64_t burst)
{
    uint64_t start_us = engine_now_us;
    uint64_t taken = 0;

    engine_start();
    start_us = engine_now_us;
    while (engine_now_us - start_us < 3000 * per_ms * MS) {
        const struct hold_out *out = engine_limit("k", rate, per_ms, burst, 1);
        if (reply_get_number(out->body, FIELD_ALLOWED)) {
            taken++;
            continue;
        }
        int64_t retry_ms = reply_get_number(out->body, FIELD_RETRY_MS);
        CHECK(retry_ms >= 1);
        engine_now_us += (uint64_t)retry_ms * MS;
    }
    /* up to now, all that was earned but for the part of a permit was taken,
     * and the last wait is not over before start + 3000 periods */
    uint64_t earned = (engine_now_us - start_us) * rate / (per_ms * MS);
    while (reply_get_number(engine_limit("k", rate, per_ms, burst, 1)->body,
                            FIELD_ALLOWED))
        taken++;
    CHECK_EQ(taken, burst + earned);
}

TEST(no_rate_drifts)
{
    take_all(1, 1000, 2);
    take_all(3, 1000, 2); /* one permit in 333,333.3 us */
    take_all(7, 11, 3);
    take_all(13, 7, 20);
    take_all(999, 1000, 5);
    take_all(3, 7, 2);
}

TEST(another_rule_for_the_same_key_keeps_the_time_to_full)
{
    engine_start();
    engine_limit("k", 10, 1000, 10, 5); /* full again in 500 ms */
    EXPECT(engine_limit("k", 20, 1000, 10, 0),
           "OK allowed=1 limit=10 remaining=0 retry_ms=0 reset_ms=500");
    EXPECT(engine_limit("k", 2, 1000, 10, 0),
           "OK allowed=1 limit=10 remaining=9 retry_ms=0 reset_ms=500");
    EXPECT(engine_limit("k", 10, 1000, 2, 1), /* already beyond a burst of 2 */
           "OK allowed=0 limit=2 remaining=0 retry_ms=400 reset_ms=500");
}

TEST(the_largest_rules_do_not_wrap_round)
{
    engine_start();
    int64_t taken = 0;
    for (int i = 0; i < 100; i++) {
        const struct hold_out *out =
            engine_limit("k", 1, HOLD_PER_MAX_MS, HOLD_RATE_MAX, 1);
        taken += reply_get_number(out->body, FIELD_ALLOWED);
    }
    /* a permit in 1,000 years: the span of time holds 36 of them */
    CHECK_EQ(taken, 36);
    engine_start();
    EXPECT(engine_limit("k", HOLD_RATE_MAX, 1, HOLD_RATE_MAX, HOLD_RATE_MAX),
           "OK allowed=1 limit=1000000000 remaining=0 retry_ms=0 reset_ms=1");
}

TEST(keys_are_bounded_and_full_buckets_make_room)
{
    struct hold_counts counts;

    engine_start();
    hold_set_limit_keys_max(engine, 2);
    engine_limit("a", 1, 1000, 1, 1);
    engine_limit("b", 1, 1000, 1, 1);
    EXPECT(engine_limit("c", 1, 1000, 1, 1),
           "OVERLOADED name=limit_keys_max maximum=2");
    EXPECT(engine_limit("c", 1, 1000, 1, 0), /* a peek needs no room */
           "OK allowed=1 limit=1 remaining=1 retry_ms=0 reset_ms=0");
    engine_now_us += 1000 * MS + 1;
    EXPECT(engine_limit("c", 1, 1000, 1, 1),
           "OK allowed=1 limit=1 remaining=0 retry_ms=0 reset_ms=1000");
    hold_count(engine, &counts);
    CHECK(counts.limits <= 2);
}

TEST(limits_are_not_part_of_the_state)
{
    engine_start();
    uint64_t before = hold_digest(engine);
    engine_limit("a", 1, 1000, 1, 1);
    CHECK(hold_digest(engine) == before);
    engine_flush();
    EXPECT(engine_limit("a", 1, 1000, 1, 1),
           "OK allowed=0 limit=1 remaining=0 retry_ms=1000 reset_ms=1000");
}

TEST(without_memory_a_new_key_is_refused_and_old_ones_go_on)
{
    engine_start();
    engine_limit("a", 1, 1000, 9, 1);
    hf_memory_fail_after(0);
    char key[64];
    bool refused = false;
    for (int i = 0; i < 20000 && !refused; i++) {
        snprintf(key, sizeof key, "a rather long key/%d", i);
        refused = engine_limit(key, 1, 1000, 9, 1)->code == HOLD_OVERLOADED;
    }
    CHECK(refused);
    CHECK_EQ(engine_limit("a", 1, 1000, 9, 1)->code, HOLD_OK);
    hf_memory_fail_never();
    CHECK_EQ(engine_limit(key, 1, 1000, 9, 1)->code, HOLD_OK);
}
