/* hold_tree_steps.c - what related names cost is bounded, and counted. */
#include "support/engine.h"

TEST_ONE_THREAD;

enum { NAMES = 500, WAITS = 200, DEPTH = 100 };

/* Each of two holders is stopped by the other one's name only, and these are
 * far apart. */
TEST(many_waits_with_tree_of_two_holders_do_not_walk_each)
{
    engine_start();
    for (unsigned i = 0; i < NAMES; i++)
        engine_do("LOCK p/%03u OWNER %s%s", i, i < NAMES / 2 ? "ann" : "bob",
                  i % (NAMES / 2) == 0 ? "" : " SHARED");
    for (unsigned i = 0; i < WAITS; i++)
        CHECK_EQ(engine_do("LOCK p OWNER %s TREE SHARED WAIT 500 DEADLOCK NONE",
                           i % 2 == 0 ? "ann" : "bob")
                     ->code,
                 HOLD_WAITING);
    const struct hold_out *out = engine_do("UNLOCK p/001 2");
    CHECK_EQ(out->code, HOLD_OK);
    CHECK(out->work >= WAITS);
    CHECK(out->work < 4 * WAITS + 2 * NAMES);
    CHECK_ENGINE();
}

/* "a/a/a..." of that depth. */
static const char *deep(unsigned depth)
{
    static char name[2 * DEPTH + 2];

    for (unsigned i = 0; i < 2 * depth - 1; i++)
        name[i] = i % 2 == 0 ? 'a' : '/';
    name[2 * depth - 1] = '\0';
    return name;
}

TEST(many_waits_below_nested_trees_do_not_look_at_each)
{
    engine_start();
    for (unsigned i = 1; i < DEPTH; i++)
        engine_do("LOCK %s OWNER ann TREE SHARED", deep(i));
    engine_do("LOCK %s OWNER ann TREE", deep(DEPTH));
    for (unsigned i = 0; i < WAITS; i++)
        engine_do("LOCK %s/z OWNER o%u SHARED WAIT %u", deep(DEPTH), i,
                  i == 0 ? 100 : 500);
    engine_now_us += 100 * MS;
    const struct hold_out *out = engine_tick();
    CHECK_EQ(out->answer_count, 1);
    CHECK(out->work >= WAITS);
    CHECK(out->work < 4 * WAITS + 2 * DEPTH);
    CHECK_ENGINE();
    out = engine_do("UNLOCK %s %u", deep(DEPTH), DEPTH);
    CHECK_EQ(out->answer_count, WAITS - 1);
    CHECK(out->work >= (WAITS - 1) * DEPTH / 2);
    CHECK_ENGINE();
}

/* One step of the sweep ends before it has looked at ever more names. */
TEST(a_sweep_ends_after_so_many_names)
{
    unsigned calls = 0;

    engine_start();
    for (unsigned i = 1; i <= DEPTH; i++)
        engine_do("LOCK %s OWNER ann TREE SHARED", deep(i));
    for (unsigned i = 0; i < HOLD_STEP_MAX; i++) {
        engine_do("LOCK %s/%u OWNER ann TTL 500", deep(DEPTH), i);
        for (unsigned k = 0; k < 20; k++)
            engine_do("LOCK %s/%u OWNER o%u SHARED WAIT 900", deep(DEPTH), i,
                      k);
    }
    engine_now_us += 500 * MS;
    do {
        const struct hold_out *out = engine_tick();
        CHECK(out->work < 2 * HOLD_WALK_MAX);
        calls++;
    } while (hold_is_behind(engine));
    CHECK(calls > 1);
    CHECK_ENGINE();
}

/* A queue above with one TREE in front is looked through from many names. */
TEST(a_search_counts_the_waits_that_it_passes_by_above)
{
    engine_start();
    engine_do("LOCK p OWNER ann");
    engine_do("LOCK p OWNER tim TREE WAIT 500");
    for (unsigned i = 0; i < NAMES; i++) {
        engine_do("LOCK p OWNER n%u WAIT 500 DEADLOCK NONE", i);
        engine_do("LOCK z/%u OWNER o%u", i, i);
    }
    for (unsigned i = 0; i < NAMES; i++)
        engine_do("LOCK p/%u OWNER o%u WAIT 500 DEADLOCK NONE", i, i);
    EXPECT_BEGINS(engine_do("LOCK z OWNER bob TREE WAIT 500"),
                  "OVERLOADED name=detect-max");
    CHECK_ENGINE();
}

TEST(a_look_at_who_waits_counts_the_names_below)
{
    engine_start();
    for (unsigned i = 0; i < NAMES; i++)
        engine_do("LOCK p/%03u OWNER ann%s", i, i < NAMES - 1 ? " SHARED" : "");
    engine_do("LOCK p OWNER bob TREE SHARED WAIT 500");
    EXPECT_BEGINS(engine_do("WAITGRAPH"), "OK edges=[{owner=bob ");
    CHECK(hold_work(engine) >= NAMES);
    CHECK(hold_work(engine) < 3 * NAMES);
}
