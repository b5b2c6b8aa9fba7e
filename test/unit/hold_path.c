/* hold_path.c - tests of the ordered index of names, and of what hold_check()
 * proves of it and of TREE. */
#include "hold/part.h"
#include "support/engine.h"

TEST_ONE_THREAD;

/* The index against a walk over all names, in any order of use. */
TEST(names_are_found_below_one_however_they_come_and_go)
{
    static const char *const parts[] = {"a", "b", "", "aa", "a\x80", "0"};
    char held[64][64];
    uint64_t tokens[64] = {0};
    uint64_t random = 20261118;

    engine_start();
    for (unsigned i = 0; i < 4000; i++) {
        random = random * 6364136223846793005ull + 1442695040888963407ull;
        unsigned slot = (unsigned)(random >> 40) % 64;
        if (tokens[slot] != 0) {
            engine_do("UNLOCK %s %llu", held[slot],
                      (unsigned long long)tokens[slot]);
            tokens[slot] = 0;
        } else {
            snprintf(held[slot], sizeof held[slot], "n%s/%s/%s%u",
                     parts[(random >> 50) % 6], parts[(random >> 53) % 6],
                     parts[(random >> 56) % 6], (unsigned)(random >> 59) % 3);
            const struct hold_out *out =
                engine_do("LOCK %s OWNER o%u", held[slot], slot);
            if (out->code == HOLD_OK)
                tokens[slot] = engine_token(out);
        }
        CHECK_ENGINE();
    }
    unsigned below = 0;
    for (unsigned slot = 0; slot < 64; slot++)
        below += tokens[slot] != 0 && strncmp(held[slot], "na/", 3) == 0;
    engine_bound("tree_names_max", below);
    CHECK(engine_do("LOCK na OWNER ann TREE WAIT 5")->code == HOLD_WAITING);
    engine_bound("tree_names_max", below - 1);
    CHECK(below > 1);
    EXPECT_BEGINS(engine_do("LOCK na OWNER bob TREE WAIT 5"), "OVERLOADED ");
    CHECK_ENGINE();
}

/* ---- What hold_check() proves. ---- */

#define BROKEN(expected)                                  \
    do {                                                  \
        char error_[256] = "";                            \
        CHECK_EQ(hold_check(engine, error_), HF_CORRUPT); \
        CHECK_TEXT(error_, strlen(error_), (expected));   \
    } while (0)

static struct lock *the_lock(const char *name)
{
    return lock_edit(engine,
                     hf_index_find(&engine->locks, hf_bytes_text(name)));
}

static void treed(void)
{
    engine_start();
    engine_do("LOCK a OWNER ann TREE");
    engine_do("LOCK a/b OWNER bob WAIT 900");
    engine_do("LOCK a/c OWNER eve TREE WAIT 900");
    engine_do("LOCK x OWNER ann");
    engine_do("LOCK x/y OWNER bob");
    CHECK_ENGINE();
}

static struct tree *the_tree(const char *name)
{
    return tree_edit(engine, the_lock(name)->path & ~LOCK_HAS_TREE);
}

TEST(a_tree_that_is_not_in_order_is_seen)
{
    treed();
    the_tree("a")->below--;
    BROKEN("the TREE of a is not in order");
    treed();
    the_tree("a")->grants--;
    BROKEN("the TREE of a is not in order");
    treed();
    the_tree("a/c")->writer = 0;
    BROKEN("the TREE of a/c is not in order");
    treed();
    part_edit(engine, the_lock("x")->grants.first)->tree = 1;
    BROKEN("a name below x was granted, too");
    treed();
    the_lock("x/y")->path = 0;
    BROKEN("the path of x/y is wrong");
    engine_start();
    engine_do("LOCK x/y OWNER bob");
    engine->path_root = 0;
    BROKEN("the names are not in order");
}
