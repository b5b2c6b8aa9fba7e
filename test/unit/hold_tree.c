/* hold_tree.c - tests of TREE: a lock on a name and on all names below it. */
#include "support/engine.h"

TEST_ONE_THREAD;

TEST(a_tree_keeps_others_from_names_below_and_from_no_others)
{
    engine_start();
    EXPECT(engine_do("LOCK db/orders OWNER ann TREE TTL 500"),
           "OK token=1 safe_ms=500 count=1 waited_ms=0");
    EXPECT(engine_do("LOCK db/orders/42 OWNER bob"),
           "BUSY name=db/orders/42 owner=ann expires_ms=500 waiting=0 "
           "position=1 related=db/orders tree=1");
    EXPECT_BEGINS(engine_do("LOCK db/orders/42/lines OWNER bob"), "BUSY ");
    EXPECT_BEGINS(engine_do("LOCK db/orders/ OWNER bob"), "BUSY ");
    EXPECT_BEGINS(engine_do("LOCK db OWNER bob"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK db/order OWNER bob"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK db/orders-2 OWNER bob"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK db/orders0/1 OWNER bob"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK db.orders/42 OWNER bob"), "OK ");
    CHECK_ENGINE();
    engine_do("UNLOCK db/orders 1");
    EXPECT_BEGINS(engine_do("LOCK db/orders/42 OWNER bob"), "OK ");
    CHECK_ENGINE();
}

TEST(a_held_name_below_keeps_a_tree_out)
{
    engine_start();
    engine_do("LOCK db/orders/42 OWNER ann TTL 500");
    EXPECT(engine_do("LOCK db/orders OWNER bob TREE"),
           "BUSY name=db/orders owner=ann expires_ms=500 waiting=0 position=1 "
           "related=db/orders/42");
    EXPECT_BEGINS(engine_do("LOCK db OWNER bob TREE"), "BUSY ");
    EXPECT_BEGINS(engine_do("LOCK db/orders OWNER bob"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK db/order OWNER bob TREE"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK db/orders/4 OWNER bob TREE"), "OK ");
    CHECK_ENGINE();
}

TEST(trees_above_each_other_conflict)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE");
    EXPECT_BEGINS(engine_do("LOCK a/b/c OWNER bob TREE"), "BUSY ");
    engine_do("UNLOCK a 1");
    EXPECT_BEGINS(engine_do("LOCK a/b/c OWNER bob TREE"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK a OWNER ann TREE"), "BUSY ");
    EXPECT_BEGINS(engine_do("LOCK a OWNER ann"), "OK ");
    CHECK_ENGINE();
}

TEST(readers_share_a_tree_and_names_below)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE SHARED");
    EXPECT_BEGINS(engine_do("LOCK a/b OWNER bob SHARED"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK a OWNER eve TREE SHARED"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK a/b OWNER kim"), "BUSY ");
    EXPECT_BEGINS(engine_do("LOCK a/c OWNER kim"), "BUSY ");
    EXPECT_BEGINS(engine_do("LOCK a/c OWNER kim PERMITS 1 OF 2"), "BUSY ");
    CHECK_ENGINE();
}

TEST(a_counting_lock_below_keeps_also_a_shared_tree_out)
{
    engine_start();
    engine_do("LOCK a/b OWNER ann PERMITS 1 OF 9");
    EXPECT_BEGINS(engine_do("LOCK a OWNER bob TREE SHARED"), "BUSY ");
    CHECK_ENGINE();
}

TEST(a_holder_does_not_conflict_with_itself)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE");
    EXPECT_BEGINS(engine_do("LOCK a/b OWNER ann"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK a/c OWNER ann TREE"), "OK ");
    engine_do("LOCK x/y OWNER ann");
    EXPECT_BEGINS(engine_do("LOCK x OWNER ann TREE"), "OK ");
    uint64_t session = engine_session(5000); /* another holder */
    EXPECT_BEGINS(engine_do("LOCK a/d OWNER ann SESSION %llu",
                            (unsigned long long)session),
                  "BUSY ");
    EXPECT_BEGINS(engine_do("LOCKSET OWNER eve NAME s NAME s/t TREE"), "OK ");
    CHECK_ENGINE();
}

TEST(who_is_below_waits_for_a_tree_that_is_held)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE"); /* 1 */
    EXPECT_BEGINS(engine_do("LOCK a/b OWNER bob WAIT 900"), "WAITING ");
    EXPECT_BEGINS(engine_do("LOCK a/c OWNER eve WAIT 900"), "WAITING ");
    CHECK_ENGINE();
    engine_now_us += 3 * MS;
    const struct hold_out *out = engine_do("UNLOCK a 1");
    EXPECT_ANSWERS(out, "2:OK token=5 safe_ms=30000 count=1 waited_ms=3; "
                        "3:OK token=6 safe_ms=30000 count=1 waited_ms=3");
    EXPECT_EVENTS(out, "4 LOCK_RELEASED a; 5 LOCK_GRANTED a/b; "
                       "6 LOCK_GRANTED a/c");
    CHECK_ENGINE();
}

TEST(names_below_are_served_in_their_order)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE");
    engine_do("LOCK a/c OWNER eve WAIT 900");
    engine_do("LOCK a/b OWNER bob WAIT 900");
    EXPECT_EVENTS(engine_do("UNLOCK a 1"),
                  "4 LOCK_RELEASED a; 5 LOCK_GRANTED a/b; 6 LOCK_GRANTED a/c");
}

TEST(a_tree_waits_for_all_names_below)
{
    engine_start();
    engine_do("LOCK a/b OWNER ann"); /* 1 */
    engine_do("LOCK a/c OWNER bob"); /* 2 */
    EXPECT_BEGINS(engine_do("LOCK a OWNER eve TREE WAIT 900"),
                  "WAITING "); /* 3 */
    EXPECT_ANSWERS(engine_do("UNLOCK a/b 1"), "");
    CHECK_ENGINE();
    EXPECT_EVENTS(engine_do("UNLOCK a/c 2"),
                  "5 LOCK_RELEASED a/c; 6 LOCK_GRANTED a");
    CHECK_ENGINE();
}

TEST(who_comes_later_waits_behind_a_tree_that_waits)
{
    engine_start();
    engine_do("LOCK a/b OWNER ann"); /* 1 */
    engine_do("LOCK a OWNER eve TREE WAIT 900");
    EXPECT(engine_do("LOCK a/x OWNER kim"),
           "BUSY name=a/x owner=eve waited_ms=0 waiting=0 position=1 "
           "related=a tree=1");
    EXPECT_BEGINS(engine_do("LOCK a/x OWNER kim WAIT 900"), "WAITING ");
    EXPECT_BEGINS(engine_do("LOCK a/y OWNER lee BARGE"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK a/b OWNER ann"), "OK "); /* it re-enters */
    EXPECT_BEGINS(engine_do("LOCK a/z OWNER mia WAIT 5"), "WAITING");
    CHECK_ENGINE();
    engine_now_us += 5 * MS;
    EXPECT_ANSWERS(engine_tick(), "6:TIMEOUT waited_ms=5 waiting=0 position=1");
    CHECK_ENGINE();
}

TEST(a_better_priority_goes_before_a_tree_that_waits)
{
    engine_start();
    engine_do("LOCK a/b OWNER ann"); /* 1 */
    engine_do("LOCK a OWNER eve TREE WAIT 900 PRIORITY 1");
    EXPECT_BEGINS(engine_do("LOCK a/x OWNER kim"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK a/y OWNER lee PRIORITY 2"), "BUSY ");
}

TEST(a_tree_that_gives_up_lets_those_below_go)
{
    engine_start();
    engine_do("LOCK a/b OWNER ann TTL 9000"); /* 1 */
    engine_do("LOCK a OWNER eve TREE WAIT 100");
    engine_do("LOCK a/x OWNER kim WAIT 900");
    engine_now_us += 100 * MS;
    EXPECT_EVENTS(engine_tick(), "4 LOCK_GRANTED a/x");
    CHECK_ENGINE();
}

TEST(a_wait_below_that_gives_up_lets_a_tree_go)
{
    engine_start();
    engine_do("LOCK a/b OWNER ann TTL 9000"); /* 1 */
    engine_do("LOCKSET OWNER kim NAME a/b NAME a/c WAIT 100");
    engine_do("LOCK a OWNER ann TREE WAIT 900 DEADLOCK NONE"); /* behind */
    engine_now_us += 100 * MS;
    EXPECT_EVENTS(engine_tick(), "4 LOCK_GRANTED a");
    CHECK_ENGINE();
}

TEST(an_end_of_any_kind_serves_related_names)
{
    static const char *const ends[] = {"REVOKE a 2", "SESSION CLOSE 1",
                                       "UNLOCK a 2"};

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        engine_start();
        engine_do("SESSION OPEN TTL 9000");
        engine_do("LOCK a OWNER ann TREE SESSION 1");
        engine_do("LOCK a/b OWNER bob WAIT 900");
        CHECK_EQ(engine_do("%s", ends[i])->answer_count, 1);
        CHECK_ENGINE();
    }
    engine_start();
    engine_do("LOCK a OWNER ann TREE TTL 100");
    engine_do("LOCK a/b OWNER bob WAIT 900");
    engine_now_us += 100 * MS;
    CHECK_EQ(engine_tick()->answer_count, 1);
    CHECK_ENGINE();
}

TEST(a_downgraded_tree_lets_readers_below_in)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE"); /* 1 */
    engine_do("LOCK a/b OWNER bob SHARED WAIT 900");
    engine_do("LOCK a/c OWNER eve WAIT 900");
    EXPECT_EVENTS(engine_do("DOWNGRADE a 1"),
                  "4 LOCK_DOWNGRADED a; 5 LOCK_GRANTED a/b");
    CHECK_ENGINE();
}

TEST(a_downgraded_name_below_lets_a_shared_tree_in)
{
    engine_start();
    engine_do("LOCK a/b OWNER ann"); /* 1 */
    engine_do("LOCK a OWNER bob TREE SHARED WAIT 900");
    EXPECT_EVENTS(engine_do("DOWNGRADE a/b 1"),
                  "3 LOCK_DOWNGRADED a/b; 4 LOCK_GRANTED a");
    CHECK_ENGINE();
}

TEST(a_holder_re_enters_its_tree_with_or_without_the_word)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE");
    EXPECT(engine_do("LOCK a OWNER ann TREE TTL 90000"),
           "OK token=1 safe_ms=90000 count=2 waited_ms=0");
    EXPECT(engine_do("LOCK a OWNER ann TTL 500"),
           "OK token=1 safe_ms=90000 count=3 waited_ms=0");
    engine_do("LOCK b OWNER ann");
    EXPECT(engine_do("LOCK b OWNER ann TREE"),
           "STATE name=b mode=exclusive tree=0");
    engine_do("LOCKSET OWNER ann NAME s/1 NAME s/2");
    EXPECT(engine_do("LOCKSET OWNER ann NAME s/1 NAME s/2 TREE"),
           "STATE name=s/1 mode=exclusive names=2");
    engine_do("LOCKSET OWNER ann NAME t/1 NAME t/2 TREE");
    EXPECT(engine_do("LOCKSET OWNER ann NAME t/1 NAME t/2"),
           "STATE name=t/1 mode=exclusive names=2");
    EXPECT_BEGINS(engine_do("LOCKSET OWNER ann NAME t/1 NAME t/2 TREE"),
                  "OK token=");
}

TEST(a_set_waits_for_related_names_and_holds_nothing_meanwhile)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE"); /* 1 */
    EXPECT(engine_do("LOCKSET OWNER bob NAME a/b NAME c"),
           "BUSY name=a/b owner=ann expires_ms=30000 waiting=0 position=1 "
           "related=a tree=1");
    EXPECT_BEGINS(engine_do("LOCKSET OWNER bob NAME a/b NAME c WAIT 900"),
                  "WAITING ");
    EXPECT_BEGINS(engine_do("LOCK c OWNER eve"), "BUSY "); /* behind it */
    EXPECT_EVENTS(engine_do("UNLOCK a 1"),
                  "3 LOCK_RELEASED a; 4 LOCK_GRANTED a/b; 5 LOCK_GRANTED c");
    CHECK_ENGINE();
}

/* ---- Deadlocks. ---- */

TEST(a_cycle_through_a_tree_is_refused)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE");
    engine_do("LOCK b OWNER bob");
    engine_do("LOCK b OWNER ann WAIT 900");
    EXPECT(engine_do("LOCK a/x OWNER bob WAIT 900"),
           "DEADLOCK name=a/x reason=cycle length=2 "
           "cycle=[{owner=bob session=0 name=a/x mode=exclusive since_ms=0 "
           "note=} {owner=ann session=0 name=b mode=exclusive since_ms=0 "
           "note=}]");
    EXPECT(engine_do("LOCK c/x OWNER bob WAIT 900"),
           "OK token=4 safe_ms=30000 count=1 waited_ms=0");
}

TEST(a_cycle_through_names_below_a_tree_is_refused)
{
    engine_start();
    engine_do("LOCK a/1 OWNER ann");
    engine_do("LOCK a/2 OWNER bob");
    engine_do("LOCK b OWNER bob");
    engine_do("LOCK b OWNER ann WAIT 900");
    EXPECT_BEGINS(engine_do("LOCK a OWNER bob TREE WAIT 900"),
                  "DEADLOCK name=a reason=cycle length=2 ");
    EXPECT_BEGINS(engine_do("LOCK a OWNER bob TREE WAIT 900 DEADLOCK NONE"),
                  "WAITING ");
}

TEST(a_cycle_through_a_tree_that_waits_is_refused)
{
    engine_start();
    engine_do("LOCK a/1 OWNER ann");             /* 1 */
    engine_do("LOCK a OWNER bob TREE WAIT 900"); /* for ann */
    /* ann would wait for bob's wait, which waits for ann */
    EXPECT_BEGINS(engine_do("LOCK a/2 OWNER ann WAIT 900"),
                  "DEADLOCK name=a/2 reason=cycle length=2 ");
    EXPECT_BEGINS(engine_do("LOCK a/2 OWNER eve WAIT 900"), "WAITING");
}

TEST(a_request_that_would_overtake_at_a_related_name_may_close_a_cycle)
{
    engine_start();
    engine_do("LOCK a/1 OWNER ann");                        /* 1 */
    engine_do("LOCK x OWNER eve");                          /* 2 */
    engine_do("LOCK a OWNER bob TREE WAIT 900 PRIORITY 1"); /* for ann */
    /* eve waits for bob behind it; ann goes before bob and waits for eve */
    EXPECT_BEGINS(engine_do("LOCK a/2 OWNER eve WAIT 900 PRIORITY 2"),
                  "WAITING ");
    EXPECT_BEGINS(engine_do("LOCKSET OWNER ann NAME a/3 NAME x WAIT 900"),
                  "DEADLOCK name=x reason=cycle length=3 ");
}

TEST(the_young_die_for_a_tree)
{
    engine_start();
    engine_do("SESSION OPEN TTL 9000"); /* 1 */
    engine_do("SESSION OPEN TTL 9000"); /* 2 */
    engine_do("LOCK a OWNER o SESSION 1 TREE");
    EXPECT_BEGINS(
        engine_do("LOCK a/b OWNER y SESSION 2 WAIT 900 DEADLOCK WAITDIE"),
        "DEADLOCK name=a/b reason=younger length=1 cycle=[{owner=o session=1 "
        "name=a ");
    engine_do("LOCK c/d OWNER y SESSION 2");
    EXPECT_BEGINS(
        engine_do("LOCK c OWNER o SESSION 1 TREE WAIT 900 DEADLOCK WAITDIE"),
        "WAITING ");
    CHECK_ENGINE();
}

TEST(a_tree_wounds_the_young_below_it)
{
    engine_start();
    engine_do("SESSION OPEN TTL 9000");      /* 1 */
    engine_do("SESSION OPEN TTL 9000");      /* 2 */
    engine_do("LOCK a/b OWNER y SESSION 2"); /* 3 */
    engine_do("LOCK a/c OWNER y SESSION 2"); /* 4 */
    EXPECT_EVENTS(engine_do("LOCK a OWNER o SESSION 1 TREE WAIT 5000 DEADLOCK "
                            "WOUNDWAIT"),
                  "5 LOCK_WOUNDED a/b; 6 LOCK_WOUNDED a/c");
    engine_now_us += 1000 * MS;
    CHECK_EQ(engine_tick()->answer_count, 1);
    CHECK_ENGINE();
}

/* ---- DELAY. ---- */

TEST(a_lost_tree_closes_the_names_below)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE TTL 100 DELAY 500");
    engine_now_us += 100 * MS;
    engine_tick();
    EXPECT(engine_do("LOCK a/b OWNER bob"),
           "BUSY name=a/b expires_ms=500 waiting=0 position=1 "
           "related=a tree=1");
    EXPECT_BEGINS(engine_do("LOCK a/b OWNER bob SHARED WAIT 9000"), "WAITING ");
    EXPECT_BEGINS(engine_do("LOCK a OWNER eve"), "BUSY ");
    CHECK_ENGINE();
    engine_reload();
    CHECK_ENGINE();
    engine_now_us += 500 * MS;
    CHECK_EQ(engine_tick()->answer_count, 1);
    CHECK_ENGINE();
}

TEST(a_lost_lock_without_tree_closes_its_name_only)
{
    engine_start();
    engine_do("LOCK a OWNER ann TTL 100 DELAY 500");
    engine_do("LOCK z OWNER ann TREE"); /* so that related names count */
    engine_now_us += 100 * MS;
    engine_tick();
    EXPECT_BEGINS(engine_do("LOCK a/b OWNER bob"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK a OWNER bob"), "BUSY ");
}

TEST(a_tree_waits_for_names_below_that_are_closed)
{
    engine_start();
    engine_do("LOCK a/b OWNER ann TTL 100 DELAY 500");
    engine_now_us += 100 * MS;
    engine_tick();
    EXPECT(engine_do("LOCK a OWNER bob TREE SHARED"),
           "BUSY name=a expires_ms=500 waiting=0 position=1 "
           "related=a/b");
    EXPECT_BEGINS(engine_do("LOCK a OWNER bob TREE WAIT 9000"), "WAITING ");
    engine_now_us += 500 * MS;
    CHECK_EQ(engine_tick()->answer_count, 1);
    CHECK_ENGINE();
}

TEST(a_released_tree_closes_nothing)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE DELAY 500");
    engine_do("UNLOCK a 1");
    EXPECT_BEGINS(engine_do("LOCK a/b OWNER bob"), "OK ");
    CHECK_ENGINE();
}

TEST(done_is_for_the_name_alone)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE");
    engine_do("LOCK a/b OWNER bob WAIT 900");
    engine_do("LOCK a OWNER eve WAIT 900");
    EXPECT_ANSWERS(engine_do("UNLOCK a 1 DONE 5000 RESULT well"),
                   "3:DONE name=a result=well expires_ms=5000; "
                   "2:OK token=6 safe_ms=30000 count=1 waited_ms=0");
    CHECK_ENGINE();
}

/* ---- Bounds. ---- */

TEST(a_tree_over_too_many_names_is_refused)
{
    engine_start();
    engine_bound("tree_names_max", 2);
    engine_do("LOCK a/1 OWNER ann");
    engine_do("LOCK a/2 OWNER ann");
    engine_do("LOCK a/2/x OWNER ann");
    EXPECT(engine_do("LOCK a OWNER ann TREE"),
           "OVERLOADED name=tree-names-max maximum=2");
    engine_do("UNLOCK a/1 1");
    EXPECT_BEGINS(engine_do("LOCK a OWNER ann TREE"), "OK ");
    EXPECT(engine_do("LOCK a/3 OWNER ann"),
           "OVERLOADED name=tree-names-max maximum=2");
    EXPECT_BEGINS(engine_do("LOCK a/2 OWNER ann"), "OK "); /* it is in use */
    EXPECT(engine_do("LOCKSET OWNER ann NAME a/4 NAME b WAIT 5"),
           "OVERLOADED name=tree-names-max maximum=2");
    EXPECT_BEGINS(engine_do("LOCK b OWNER ann"), "OK ");
    CHECK_ENGINE();
}

TEST(names_that_are_over_do_not_count)
{
    engine_start();
    for (unsigned i = 0; i < 600; i++)
        engine_do("LOCK a/%u OWNER o%u TTL 100", i, i);
    engine_now_us += 100 * MS;
    const struct hold_out *out = engine_do("LOCK a OWNER ann TREE");
    unsigned calls = 1;
    for (; out->code == HOLD_AGAIN; calls++)
        out = engine_again();
    EXPECT_BEGINS(out, "OK ");
    CHECK_EQ(calls, 3);
    CHECK_ENGINE();
}

TEST(the_ends_of_many_trees_are_swept_in_bounded_steps)
{
    engine_start();
    for (unsigned i = 0; i < 1000; i++)
        engine_do("LOCK a/%u OWNER ann SHARED", i);
    for (unsigned i = 0; i < 150; i++)
        engine_do("LOCK a OWNER o%u SHARED TREE TTL 100", i);
    engine_now_us += 100 * MS;
    CHECK_EQ(engine_tick()->event_count, HOLD_WALK_MAX / 1000);
    CHECK(hold_is_behind(engine));
    CHECK_EQ(engine_tick()->event_count, 150 - HOLD_WALK_MAX / 1000);
    CHECK(!hold_is_behind(engine));
    CHECK_ENGINE();
}

TEST(a_tree_over_many_names_counts_as_work)
{
    engine_start();
    for (unsigned i = 0; i < 500; i++)
        engine_do("LOCK a/%u OWNER ann", i);
    engine_do("LOCK a OWNER ann TREE");
    CHECK(hold_work(engine) >= 500);
    CHECK(hold_work(engine) < 2000);
    for (unsigned i = 0; i < 500; i++)
        engine_do("LOCK a/x/%u OWNER bob WAIT 900", i);
    engine_do("UNLOCK a 501");
    CHECK(hold_work(engine) >= 1000);
    CHECK(hold_work(engine) < 5000);
    CHECK_ENGINE();
}

/* In the order of their names, or the other way round. */
TEST(a_tree_that_waits_is_not_looked_for_from_the_start_each_time)
{
    for (unsigned up = 0; up < 2; up++) {
        engine_start();
        for (unsigned i = 0; i < 1500; i++)
            engine_do("LOCK a/%04u OWNER ann SHARED TTL 9000", i);
        for (unsigned i = 0; i < 200; i++)
            engine_do("LOCK a/x%04u OWNER bob TTL %u", i,
                      100 + (up ? i : 200 - i));
        engine_do("LOCK a OWNER cat TREE SHARED WAIT 5000");
        engine_now_us += 300 * MS;
        const struct hold_out *out = engine_tick();
        CHECK_EQ(out->event_count, 201);
        CHECK(out->work >= 1500);
        CHECK(out->work < 5000);
        CHECK_ENGINE();
    }
}

/* What stopped it is another name now, or one that is not below. */
TEST(a_tree_that_waits_finds_what_stops_it_wherever_that_is)
{
    engine_start();
    engine_do("LOCK a/m OWNER bob");
    engine_do("LOCK a OWNER cat TREE WAIT 5000");
    engine_do("LOCK a/b OWNER dan BARGE");
    engine_do("LOCK a/z OWNER dan BARGE");
    engine_do("UNLOCK a/m 1");
    engine_do("LOCK x OWNER eve");
    engine_do("LOCK y OWNER eve");
    CHECK_EQ(engine_do("UNLOCK a/z 4")->answer_count, 0);
    CHECK_EQ(engine_do("UNLOCK a/b 3")->answer_count, 1);
    CHECK_ENGINE();
}

/* ---- What is shown and kept. ---- */

TEST(tree_is_shown)
{
    engine_start();
    CHECK_EQ(hold_keep_past(engine, 16), HF_OK);
    engine_do("LOCK a OWNER ann TREE TTL 500");
    engine_do("LOCK a/b OWNER bob TREE WAIT 900");
    EXPECT(engine_do("LOCKS"), "OK locks=[{name=a owner=ann token=1 "
                               "expires_ms=500 count=1 waiting=0 tree=1}] "
                               "cursor=0");
    EXPECT(engine_do("LOCKINFO a"),
           "OK name=a owner=ann token=1 expires_ms=500 count=1 waiting=0 "
           "held_ms=0 mode=exclusive session=0 names=0 note= tree=1 "
           "holders=[{owner=ann session=0 token=1 mode=exclusive permits=0 "
           "count=1 expires_ms=500 held_ms=0 note= tree=1}] waiters=[]");
    EXPECT(engine_do("WAITGRAPH"),
           "OK edges=[{owner=bob session=0 name=a/b mode=exclusive waited_ms=0 "
           "note= by=grant holder=ann tree=1}] cursor=0");
    EXPECT(engine_do("EXPLAIN a"),
           "OK {what=lock_granted seq=1 age_ms=0 owner=ann token=1 "
           "mode=exclusive tree=1 why= by=}");
}

TEST(trees_survive_an_image)
{
    engine_start();
    engine_do("LOCK a/b OWNER ann TREE TTL 90000");                   /* 1 */
    engine_do("LOCKSET OWNER bob NAME c/d NAME e SHARED TREE");       /* 2, 3 */
    engine_do("LOCK a OWNER eve TREE FOREVER");                       /* 4 */
    engine_do("LOCK a/b/c OWNER kim FOREVER");                        /* 5 */
    engine_do("LOCKSET OWNER lee NAME c SHARED NAME f TREE FOREVER"); /* 6 */
    uint64_t digest = hold_digest(engine);
    engine_reload();
    CHECK(hold_digest(engine) == digest);
    CHECK_ENGINE();
    EXPECT_BEGINS(engine_do("LOCK a/b/x OWNER mia"), "BUSY ");
    EXPECT_BEGINS(engine_do("LOCK e/x OWNER mia SHARED"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK e/x OWNER mia"), "STATE ");
    EXPECT_EVENTS(engine_do("UNLOCK a/b 1"),
                  "8 LOCK_RELEASED a/b; 9 LOCK_GRANTED a");
    EXPECT_EVENTS(engine_do("UNLOCK a 9"),
                  "10 LOCK_RELEASED a; 11 LOCK_GRANTED a/b/c");
    CHECK_ENGINE();
}

TEST(everything_is_flushed)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE");
    engine_do("LOCK a/b OWNER bob TREE WAIT 900");
    engine_flush();
    CHECK_ENGINE();
    EXPECT_BEGINS(engine_do("LOCK a/b OWNER bob"), "OK ");
    CHECK_ENGINE();
}
