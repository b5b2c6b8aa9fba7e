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

/* All names below are looked at for the first of them. */
TEST(many_readers_with_tree_are_let_in_without_a_look_at_all_names_for_each)
{
    engine_start();
    for (unsigned i = 0; i < NAMES; i++)
        engine_do("LOCK p/%u OWNER ann SHARED", i);
    engine_do("LOCK p OWNER zoe");
    for (unsigned i = 0; i < WAITS; i++)
        engine_do("LOCK p OWNER o%u SHARED TREE WAIT 500 DEADLOCK NONE", i);
    const struct hold_out *out = engine_do("UNLOCK p %u", NAMES + 1);
    CHECK_EQ(out->answer_count, WAITS);
    CHECK(out->work >= NAMES);
    CHECK(out->work < 2 * NAMES + 10 * WAITS);
    CHECK_ENGINE();
}

/* What is known of the names below does not outlast what comes there. */
TEST(a_reader_with_tree_waits_for_what_came_since_others_were_let_in)
{
    static const char *const comers[] = {
        "LOCK p/2 OWNER bob", "LOCK p/2 OWNER kim WAIT 900", "REVOKE p/3 2"};

    for (unsigned i = 0; i < 3; i++) {
        engine_start();
        engine_do("LOCK p OWNER zoe");                       /* 1 */
        engine_do("LOCK p/3 OWNER ann SHARED DELAY 900000"); /* 2 */
        engine_do("LOCK p OWNER bob SHARED TREE WAIT 900");
        CHECK_EQ(engine_do("UNLOCK p 1")->answer_count, 1);
        engine_do("%s", comers[i]);
        EXPECT_BEGINS(engine_do("LOCK p OWNER eve SHARED TREE WAIT 900"),
                      "WAITING ");
        engine_do("LOCK p OWNER dan SHARED TREE WAIT 100");
        engine_now_us += 100 * MS;
        const struct hold_out *out = engine_tick(); /* p is looked at again */
        CHECK_EQ(out->answer_count, 1);
        CHECK_EQ(out->event_count, 0);
        CHECK_ENGINE();
    }
}

/* "a/a/a..." of that letter and depth. */
static const char *deep_of(char letter, unsigned depth)
{
    static char name[2 * DEPTH + 2];

    for (unsigned i = 0; i < 2 * depth - 1; i++)
        name[i] = i % 2 == 0 ? letter : '/';
    name[2 * depth - 1] = '\0';
    return name;
}

static const char *deep(unsigned depth)
{
    return deep_of('a', depth);
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
    CHECK(out->work >= WAITS);
    CHECK(out->work < 5 * WAITS + 2 * DEPTH);
    CHECK_ENGINE();
}

/* The names differ, but not those above them. */
TEST(many_names_below_nested_trees_do_not_look_at_each)
{
    engine_start();
    for (unsigned i = 1; i < DEPTH; i++)
        engine_do("LOCK %s OWNER ann TREE SHARED", deep(i));
    engine_do("LOCK %s OWNER ann TREE", deep(DEPTH));
    for (unsigned i = 0; i < WAITS; i++)
        engine_do("LOCK %s/%u OWNER o%u SHARED WAIT 500", deep(DEPTH), i, i);
    const struct hold_out *out = engine_do("UNLOCK %s %u", deep(DEPTH), DEPTH);
    CHECK_EQ(out->answer_count, WAITS);
    CHECK(out->work >= WAITS);
    CHECK(out->work < 5 * WAITS + 2 * DEPTH);
    CHECK_ENGINE();
}

/* Nor do the folders that they are in have to be the same. */
TEST(many_names_each_in_its_own_folder_look_up_what_differs)
{
    engine_start();
    for (unsigned i = 1; i < DEPTH; i++)
        engine_do("LOCK %s OWNER ann TREE SHARED", deep(i));
    engine_do("LOCK %s OWNER ann TREE", deep(DEPTH));
    for (unsigned i = 0; i < WAITS; i++)
        engine_do("LOCK %s/%u/z OWNER o%u SHARED WAIT 500", deep(DEPTH), i, i);
    const struct hold_out *out = engine_do("UNLOCK %s %u", deep(DEPTH), DEPTH);
    CHECK_EQ(out->answer_count, WAITS);
    CHECK(out->work >= WAITS);
    CHECK(out->work < 5 * WAITS + 2 * DEPTH);
    CHECK_ENGINE();
}

/* Of names above that have no TREE it is kept, too, that they have none. */
TEST(names_above_that_are_not_found_are_looked_up_once)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE");
    for (unsigned i = 1; i < DEPTH; i++)
        engine_do("LOCK %s OWNER ann TREE", deep_of('b', i));
    for (unsigned i = 0; i < WAITS; i++)
        engine_do("LOCK %s/%u/z OWNER o%u WAIT 500", deep(DEPTH), i, i);
    const struct hold_out *out = engine_do("UNLOCK a 1");
    CHECK_EQ(out->answer_count, WAITS);
    CHECK(out->work >= WAITS);
    CHECK(out->work < 10 * WAITS + 2 * DEPTH);
    CHECK_ENGINE();
}

/* What two names share ends at a '/', or within a part. */
TEST(names_that_begin_alike_have_their_own_names_above)
{
    static const char *const names[] = {"a/b/c",   "a/b/cd/e", "a/bc/e",
                                        "a/b/c/e", "a/bc",     "a/b/cd",
                                        "/b/c",    "//b/c",    "a/b/c/e/f"};

    for (unsigned held = 0; held < 9; held++) {
        engine_start();
        for (unsigned i = 1; i < 10; i++) /* of each length there is a TREE */
            engine_do("LOCK %.*s OWNER ann TREE", (int)i, "yyyyyyyyy");
        engine_do("LOCK %s OWNER ann TREE", names[held]);
        for (unsigned i = 0; i < 9 * 9 * 2; i++) {
            const char *name = names[i % 2 == 0 ? i / 18 : i / 2 % 9];
            size_t len = strlen(names[held]);
            bool below = strncmp(name, names[held], len) == 0 &&
                         (name[len] == '/' || name[len] == '\0');
            CHECK_EQ(engine_do("LOCK %s OWNER bob", name)->code,
                     below ? HOLD_BUSY : HOLD_OK);
            if (!below)
                engine_do("UNLOCK %s %llu", name,
                          (unsigned long long)hold_seq(engine));
        }
        CHECK_ENGINE();
    }
}

/* What is known of the names above does not outlast them. */
TEST(what_is_known_of_the_names_above_ends_with_them)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE SHARED");                    /* 1 */
    engine_do("LOCK a/b OWNER ann TREE SHARED TTL 100 DELAY 50"); /* 2 */
    EXPECT_BEGINS(engine_do("LOCK a/b/1 OWNER bob SHARED"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK a OWNER kim WAIT 900"), "WAITING ");
    EXPECT_BEGINS(engine_do("LOCK a/b/2 OWNER bob SHARED"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK a OWNER kim TREE WAIT 900"), "WAITING ");
    EXPECT_BEGINS(engine_do("LOCK a/b/3 OWNER bob SHARED"), "BUSY ");
    engine_do("UNLOCK a 1"); /* to kim, who wants the name alone first */
    engine_now_us += 100 * MS;
    engine_tick();
    EXPECT(engine_do("LOCK a/b/4 OWNER kim SHARED"),
           "BUSY name=a/b/4 expires_ms=50 waiting=0 position=1 related=a/b "
           "tree=1");
    engine_now_us += 800 * MS;
    engine_tick();
    EXPECT_BEGINS(engine_do("LOCK a/b/4 OWNER kim SHARED"), "OK ");
    EXPECT_BEGINS(engine_do("LOCK a/b/5 OWNER bob SHARED"), "OK ");
    CHECK_ENGINE();
}

/* That nothing above stops readers is known of names that others have, too. */
TEST(a_reader_beside_one_that_was_let_in_is_stopped_by_a_tree_of_its_own)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE SHARED");
    engine_do("LOCK a/b OWNER ann TREE SHARED");
    engine_do("LOCK a/c OWNER ann TREE");
    engine_do("LOCK a/b/1 OWNER ann"); /* 4 */
    engine_do("LOCK a/c/1 OWNER ann"); /* 5 */
    engine_do("LOCK a/b/1 OWNER bob SHARED WAIT 900");
    engine_do("LOCK a/c/1 OWNER bob SHARED WAIT 900 DEADLOCK NONE");
    CHECK_EQ(engine_do("UNLOCK a/b/1 4")->answer_count, 1);
    CHECK_EQ(engine_do("UNLOCK a/c/1 5")->answer_count, 0);
    CHECK_ENGINE();
}

/* Nobody stopped readers there, and then somebody waits. */
TEST(a_tree_that_comes_to_wait_stops_the_readers_behind_it)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE SHARED");
    engine_do("LOCK a/x OWNER ann");
    engine_do("LOCK a/y OWNER ann");
    engine_do("LOCK a/x OWNER bob SHARED WAIT 900");
    CHECK_EQ(engine_do("UNLOCK a/x 2")->answer_count, 1);
    engine_do("LOCK a OWNER kim TREE WAIT 900");
    engine_do("LOCK a/y OWNER bob SHARED WAIT 900 DEADLOCK NONE");
    CHECK_EQ(engine_do("UNLOCK a/y 3")->answer_count, 0);
    CHECK_ENGINE();
}

/* Parts may be empty: the longest name has one less above it than bytes. */
TEST(names_of_slashes_have_the_most_names_above)
{
    char name[HOLD_NAME_MAX + 1];

    engine_start();
    for (unsigned i = 1; i <= HOLD_NAME_MAX; i++) {
        memset(name, '/', i);
        name[i] = '\0';
        CHECK_EQ(engine_do("LOCK %s OWNER ann TREE", name)->code, HOLD_OK);
    }
    EXPECT_BEGINS(engine_do("LOCK %s OWNER bob", name), "BUSY ");
    EXPECT_BEGINS(engine_do("LOCK //a OWNER bob"), "BUSY name=//a owner=ann ");
    EXPECT_BEGINS(engine_do("LOCK a// OWNER bob"), "OK ");
    CHECK_ENGINE();
}

/* "LOCKSET OWNER bob NAME a SHARED NAME a/a SHARED ..." */
static const char *nested_set(unsigned names, const char *end)
{
    static char words[8192];
    size_t len = 0;

    len += (size_t)snprintf(words, sizeof words, "LOCKSET OWNER bob");
    for (unsigned i = 1; i <= names; i++)
        len += (size_t)snprintf(words + len, sizeof words - len,
                                " NAME %s SHARED", deep(i));
    snprintf(words + len, sizeof words - len, " TREE%s", end);
    return words;
}

/* What is below a set of nested names is below the first of them. */
TEST(a_set_of_nested_trees_looks_at_the_names_below_once)
{
    enum { DEEP = 60 };

    for (int waits = 0; waits < 2; waits++) {
        engine_start();
        for (unsigned i = 0; i < NAMES; i++)
            engine_do("LOCK %s/%u OWNER ann SHARED", deep(DEEP), i);
        if (waits == 1)
            engine_do("LOCK %s OWNER kim", deep(DEEP));
        const struct hold_out *out = engine_do(
            "%s",
            nested_set(DEEP, waits == 1 ? " WAIT 500 DEADLOCK NONE" : ""));
        CHECK(out->work < 2 * NAMES);
        if (waits == 1) {
            out = engine_do("UNLOCK %s %u", deep(DEEP), NAMES + 1);
            CHECK_EQ(out->answer_count, 1);
            CHECK(out->work < 2 * NAMES + 10 * DEEP);
        }
        CHECK_ENGINE();
        EXPECT_BEGINS(engine_do("LOCK %s/7 OWNER cat", deep(DEEP)), "BUSY ");
        out = engine_do("UNLOCKSET %u", NAMES + 1 + (waits == 1 ? 3 : 0));
        CHECK_EQ(out->code, HOLD_OK);
        CHECK(out->work < HOLD_WALK_MAX);
        CHECK_ENGINE();
    }
}

/* A shared name above does not look for one below it that is not. */
TEST(an_exclusive_tree_below_a_shared_one_of_its_set_is_looked_at)
{
    engine_start();
    engine_do("LOCK a/b/c OWNER ann SHARED TTL 900");
    EXPECT_BEGINS(engine_do("LOCKSET OWNER bob NAME a SHARED NAME a/b TREE"),
                  "BUSY name=a/b owner=ann ");
    EXPECT_BEGINS(
        engine_do("LOCKSET OWNER bob NAME a SHARED NAME a/b SHARED TREE"),
        "OK ");
    engine_do("LOCKSET OWNER kim NAME a SHARED NAME a/b TREE WAIT 5000 "
              "DEADLOCK NONE");
    CHECK_EQ(engine_do("UNLOCKSET 2")->answer_count, 0);
    CHECK_EQ(engine_do("UNLOCK a/b/c 1")->answer_count, 1);
    CHECK_ENGINE();
}

TEST(many_waits_with_tree_that_end_together_list_the_names_below_once)
{
    engine_start();
    for (unsigned i = 0; i < NAMES; i++)
        engine_do("LOCK p/%u OWNER ann SHARED", i);
    engine_do("LOCK p OWNER zoe SHARED TREE");
    for (unsigned i = 0; i < WAITS; i++)
        engine_do("LOCK p OWNER o%u TREE WAIT 500 DEADLOCK NONE", i);
    const struct hold_out *out = engine_do("UNLOCK p %u DONE 500", NAMES + 1);
    CHECK_EQ(out->answer_count, WAITS);
    CHECK(out->work < 3 * NAMES);
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

/* The names below all names of a set count together. */
TEST(a_set_with_tree_has_as_many_names_below_as_one_name_may)
{
    engine_start();
    engine_bound("tree_names_max", 4);
    for (unsigned i = 0; i < 2; i++) {
        engine_do("LOCK a/%u OWNER ann SHARED", i);
        engine_do("LOCK b/c/%u OWNER ann SHARED", i);
    }
    EXPECT_BEGINS(
        engine_do("LOCKSET OWNER bob NAME a SHARED NAME b SHARED TREE"), "OK ");
    engine_bound("tree_names_max", 3);
    EXPECT_BEGINS(engine_do("LOCKSET OWNER eve NAME a SHARED NAME b SHARED "
                            "NAME b/c SHARED TREE"),
                  "OVERLOADED name=tree-names-max maximum=3");
    engine_unlock("b/c/1", 4);
    EXPECT_BEGINS(engine_do("LOCKSET OWNER eve NAME a SHARED NAME b SHARED "
                            "NAME b/c SHARED TREE"),
                  "OK ");
    CHECK_ENGINE();
}

/* A TREE elsewhere, with a name as long, has each name above looked up. */
TEST(names_above_that_are_looked_up_and_not_found_are_counted)
{
    engine_start();
    for (unsigned i = 1; i < DEPTH; i++)
        engine_do("LOCK %s OWNER ann TREE", deep_of('b', i));
    engine_do("LOCK %s OWNER ann", deep(DEPTH));
    const struct hold_out *out =
        engine_do("LOCK %s OWNER bob WAIT 500", deep(DEPTH));
    CHECK_EQ(out->code, HOLD_WAITING);
    CHECK(out->work >= DEPTH - 1);
    CHECK(out->work < 3 * DEPTH);
    CHECK_ENGINE();
}

/* Names are compared for each part that the search comes to. */
TEST(a_search_counts_the_names_that_it_compares)
{
    static char names[64 * 16];
    size_t len = 0;

    engine_start();
    for (unsigned i = 0; i < 60; i++)
        len +=
            (size_t)snprintf(names + len, sizeof names - len, " NAME n%u", i);
    for (unsigned i = 0; i < NAMES; i++)
        engine_do("LOCK a OWNER o%u WAIT 500 DEADLOCK NONE TREE", i);
    EXPECT_BEGINS(engine_do("LOCK z OWNER bob"), "OK ");
    const struct hold_out *out =
        engine_do("LOCKSET OWNER bob NAME a%s TREE WAIT 500", names);
    CHECK_EQ(out->code, HOLD_WAITING);
    CHECK(out->work >= 60 * (NAMES - 1));
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
