/* history_modes.c - what clients may be told of shared and counting locks,
 * sets, deadlocks and work that is done, and what not. */
#include "support/test.h"
#include "support/told.h"

#define GRANT(token)         "token " #token " safe_ms 10000 count 1"
#define READER(token, fence) GRANT(token) " fence " #fence
#define HOLDER(owner, token, mode)                          \
    "owner " owner " session 0 token " #token " mode " mode \
    " permits 0 count 1 expires_ms 9994 held_ms 5"
#define INFO(owner, token, mode)                                          \
    "name a owner " owner " token " #token " expires_ms 9994 count 1 "    \
    "waiting 0 held_ms 5 mode " mode " session 0 names 0 note - holders " \
    "[ " HOLDER(owner, token, mode) " ] waiters [ ]"

TEST(readers_share_and_writers_do_not)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x SHARED", READER(1, 1));
    told(&t, 2, "LOCK a OWNER y SHARED", READER(2, 1));
    told(&t, 3, "LOCK a OWNER z", "-BUSY lock 'a' is held by 'x' for 9 ms");
    told(&t, 1, "UNLOCK a 1", "remaining 0");
    told(&t, 4, "LOCK a OWNER v SHARED", READER(3, 1));
    told(&t, 2, "UNLOCK a 2", "remaining 0");
    told(&t, 4, "UNLOCK a 3", "remaining 0");
    told(&t, 3, "LOCK a OWNER z", GRANT(7));
    told(&t, 3, "DOWNGRADE a 7", "token 7 safe_ms 9997 fence 7");
    told(&t, 1, "LOCK a OWNER x SHARED", READER(9, 7));
    told(&t, 2, "LOCKINFO a", INFO("z", 7, "shared"));
    TOLD_GOOD(&t);
}

static void two(const char *first, const char *one, const char *second,
                const char *other, const char *rule)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, first, one);
    told(&t, 2, second, other);
    if (rule == NULL)
        TOLD_GOOD(&t);
    else
        TOLD_BAD(&t, rule);
}

TEST(a_writer_excludes_all_and_readers_exclude_what_is_not_shared)
{
    two("LOCK a OWNER x SHARED", READER(1, 1), "LOCK a OWNER y", GRANT(2),
        "exclusion");
    two("LOCK a OWNER x", GRANT(1), "LOCK a OWNER y SHARED", READER(2, 2),
        "exclusion");
    two("LOCK a OWNER x", GRANT(1), "LOCK a OWNER y PERMITS 1 OF 2", GRANT(2),
        "exclusion");
    two("LOCK a OWNER x PERMITS 1 OF 2", GRANT(1), "LOCK a OWNER y SHARED",
        READER(2, 2), "exclusion");
    two("LOCK a OWNER x SHARED", READER(1, 1), "LOCKSET OWNER y NAME a",
        GRANT(2), "exclusion");
    two("LOCKSET OWNER x NAME a SHARED NAME b", GRANT(1), "LOCK b OWNER y",
        GRANT(3), "exclusion");
    two("LOCKSET OWNER x NAME a SHARED NAME b", GRANT(1),
        "LOCK a OWNER y SHARED", READER(3, 1), NULL);
}

TEST(a_tree_excludes_what_is_below_it)
{
    two("LOCK a OWNER x TREE", GRANT(1), "LOCK a/b OWNER y", GRANT(2),
        "exclusion");
    two("LOCK a/b OWNER x", GRANT(1), "LOCK a OWNER y TREE", GRANT(2),
        "exclusion");
    two("LOCK a OWNER x TREE SHARED", READER(1, 1), "LOCK a/b/c OWNER y TREE",
        GRANT(2), "exclusion");
    two("LOCKSET OWNER x NAME a NAME b TREE", GRANT(1), "LOCK b/c OWNER y",
        GRANT(3), "exclusion");
    two("LOCK a OWNER x TREE", GRANT(1), "LOCK a/b OWNER y PERMITS 1 OF 2",
        GRANT(2), "exclusion");
    two("LOCK a OWNER x TREE", GRANT(1), "LOCK a/b OWNER x", GRANT(2), NULL);
    two("LOCK a OWNER x TREE", GRANT(1), "LOCK ab OWNER y", GRANT(2), NULL);
    two("LOCK a OWNER x", GRANT(1), "LOCK a/b OWNER y TREE", GRANT(2), NULL);
    two("LOCK a OWNER x TREE SHARED", READER(1, 1), "LOCK a/b OWNER y SHARED",
        READER(2, 2), NULL);
}

TEST(busy_by_a_tree_says_nothing_of_the_name_itself)
{
    two("LOCK a OWNER x TREE", GRANT(1), "LOCK a/b OWNER y",
        "-BUSY lock 'a/b' is held by 'x' with TREE on 'a' for 9 ms more", NULL);
    two("LOCK a/b OWNER x", GRANT(1), "LOCK a OWNER y TREE",
        "-BUSY lock 'a' is not free with TREE: 'a/b' below it is held by 'x' "
        "for 9 ms more",
        NULL);
}

TEST(a_reader_comes_in_after_a_downgrade_not_before)
{
    for (int sure = 0; sure < 3; sure++) {
        struct told t;
        told_begin(&t);
        told(&t, 1, "LOCK a OWNER x", GRANT(1));
        if (sure == 1)
            told(&t, 1, "DOWNGRADE a 1", "token 1 safe_ms 9000 fence 1");
        if (sure == 2)
            told_ask(&t, 1, "DOWNGRADE a 1");
        told(&t, 2, "LOCK a OWNER y SHARED",
             sure == 0 ? READER(3, 3) : READER(3, 1));
        if (sure == 0)
            TOLD_BAD(&t, "exclusion");
        else
            TOLD_GOOD(&t);
    }
}

TEST(a_holder_has_one_token)
{
    struct told t;

    two("LOCK a OWNER x SHARED", READER(1, 1), "LOCK a OWNER x SHARED",
        READER(2, 1), "count");
    two("LOCK a OWNER x PERMITS 1 OF 3", GRANT(1),
        "LOCK a OWNER x PERMITS 1 OF 3", GRANT(2), "count");
    two("LOCK a OWNER x SHARED", READER(1, 1), "LOCK a OWNER x SHARED",
        "token 1 safe_ms 10000 count 2 fence 1", NULL);
    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x SHARED", READER(1, 1));
    told(&t, 2, "LOCK a OWNER y SHARED", READER(2, 1));
    told(&t, 1, "UNLOCK a 1", "remaining 0");
    told(&t, 1, "LOCK a OWNER x SHARED", READER(4, 1));
    TOLD_GOOD(&t);
}

TEST(permits_are_not_given_beyond_their_number)
{
    two("LOCK a OWNER x PERMITS 2 OF 3", GRANT(1),
        "LOCK a OWNER y PERMITS 1 OF 3", GRANT(2), NULL);
    two("LOCK a OWNER x PERMITS 2 OF 3", GRANT(1),
        "LOCK a OWNER y PERMITS 2 OF 3", GRANT(2), "permits");
    two("LOCK a OWNER x PERMITS 1 OF 3", GRANT(1),
        "LOCK a OWNER y PERMITS 1 OF 4", GRANT(2), "permits");
}

TEST(readers_of_one_phase_have_one_fence_which_is_new)
{
    struct told t;

    two("LOCK a OWNER x SHARED", READER(1, 1), "LOCK a OWNER y SHARED",
        READER(2, 2), "phase");
    two("LOCK a OWNER x SHARED", READER(3, 5), "LOCK b OWNER y SHARED",
        READER(4, 4), "phase");
    two("LOCK a OWNER x", GRANT(1), "LOCK a OWNER y SHARED",
        "-BUSY lock 'a' is held by 'x' for 900 ms more, 0 waiting", NULL);
    told_begin(&t); /* a fence of readers before a writer */
    told(&t, 1, "LOCK a OWNER x SHARED", READER(1, 1));
    told(&t, 1, "UNLOCK a 1", "remaining 0");
    told(&t, 2, "LOCK a OWNER y", GRANT(3));
    told(&t, 2, "UNLOCK a 3", "remaining 0");
    told(&t, 1, "LOCK a OWNER x SHARED", READER(5, 1));
    TOLD_BAD(&t, "phase");
}

TEST(shared_grants_have_a_fence_and_others_have_none)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x SHARED", GRANT(1));
    TOLD_BAD(&t, "reply");
    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", READER(1, 1));
    TOLD_BAD(&t, "reply");
}

/* Sets. */

static void begin_with_a_set(struct told *t)
{
    told_begin(t);
    told(t, 1, "LOCKSET OWNER x NAME a NAME b TTL 10000", GRANT(1));
}

TEST(a_set_that_is_given_back_is_good)
{
    struct told t;

    begin_with_a_set(&t);
    told(&t, 1, "RENEWSET 1 TTL 20000", "safe_ms 19999");
    told(&t, 2, "HELD b 1", "+OK");
    told(&t, 2, "HELD c 1", "-LOST lock 'c' is no longer held");
    told(&t, 2, "UNLOCK b 1", "-STATE this owner holds 'b' in a set");
    told(&t, 1, "LOCKSET OWNER x NAME a NAME b TTL 10000",
         "token 1 safe_ms 19990 count 2 waited_ms 0");
    told(&t, 1, "UNLOCKSET 1", "remaining 1");
    told(&t, 1, "UNLOCKSET 1", "remaining 0");
    told(&t, 2, "LOCK b OWNER y", GRANT(5));
    told(&t, 1, "UNLOCKSET 1", "-NOTHELD no set is held with token 1");
    TOLD_GOOD(&t);
}

TEST(a_set_is_not_held_in_part)
{
    static const char *const asks[] = {"LOCKINFO b", "HELD b 1", "UNLOCKSET 1",
                                       "LOCK b OWNER y"};
    static const char *const tells[] = {"-NOTFOUND nobody holds lock 'b'",
                                        "-LOST lock 'b' is no longer held",
                                        "-NOTHELD no set is held", GRANT(4)};
    static const char *const rules[] = {"missing", "lost", "lost", "exclusion"};

    for (int i = 0; i < 4; i++) {
        struct told t;
        begin_with_a_set(&t);
        told(&t, 2, asks[i], tells[i]);
        TOLD_BAD(&t, rules[i]);
    }
}

/* What is seen of one name is true of the others. */
TEST(a_set_that_is_seen_at_one_name_is_held_at_the_other)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCKSET OWNER x NAME a NAME b TTL 10", GRANT(1));
    TOLD_BAD(&t, "expiry");
    begin_with_a_set(&t);
    told(&t, 1, "UNLOCKSET 1", "remaining 0");
    told(&t, 2, "HELD a 1", "+OK");
    TOLD_BAD(&t, "stale-read");
}

TEST(a_token_of_a_set_is_of_its_names_only)
{
    struct told t;

    begin_with_a_set(&t);
    told_ask(&t, 1, "LOCK c OWNER x");
    told(&t, 2, "LOCKS",
         "locks [ name c owner x token 1 expires_ms 9994 count 1 waiting 0 ] "
         "cursor 7");
    TOLD_BAD(&t, "token");
}

TEST(a_set_may_be_revoked_by_one_of_its_names)
{
    for (int revoked = 0; revoked < 2; revoked++) {
        struct told t;
        begin_with_a_set(&t);
        if (revoked)
            told_ask(&t, 3, "REVOKE a 1");
        told(&t, 2, "LOCK b OWNER y", GRANT(4));
        if (revoked)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "exclusion");
    }
}

/* Ends. */

TEST(what_was_revoked_is_over)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", GRANT(1));
    told(&t, 2, "REVOKE a 1", "+OK");
    told_wait(&t, 5);
    told(&t, 2, "LOCKINFO a", INFO("x", 1, "exclusive"));
    TOLD_BAD(&t, "stale-read");
    told_begin(&t); /* at once, whatever the clocks say */
    told(&t, 1, "LOCK a OWNER x", GRANT(1));
    told(&t, 2, "REVOKE a 1", "+OK");
    told(&t, 1, "RENEW a 1 TTL 5000", "safe_ms 5000");
    TOLD_BAD(&t, "revived");
    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", GRANT(1));
    told(&t, 2, "REVOKE a 1 GRACE 100", "+OK");
    told_wait(&t, 200);
    told(&t, 1, "RENEW a 1 TTL 100", "safe_ms 100");
    TOLD_BAD(&t, "revived");
}

TEST(maxhold_ends_a_hold_that_is_renewed)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 100 MAXHOLD 150",
         "token 1 safe_ms 100 count 1 waited_ms 0");
    told_wait(&t, 50);
    told(&t, 1, "RENEW a 1 TTL 1000", "safe_ms 90");
    told_wait(&t, 200);
    told(&t, 2, "HELD a 1", "-LOST lock 'a' is no longer held");
    TOLD_GOOD(&t);
    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 100 MAXHOLD 150",
         "token 1 safe_ms 100 count 1 waited_ms 0");
    told_wait(&t, 50);
    told(&t, 1, "RENEW a 1 TTL 1000", "safe_ms 900");
    TOLD_BAD(&t, "expiry");
}

TEST(who_waits_for_ever_is_not_told_time_out)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", GRANT(1));
    uint64_t waits = told_ask(&t, 2, "LOCK a OWNER y FOREVER");
    told_wait(&t, 9000);
    told_answer(&t, 2, waits, "-TIMEOUT waited 9000 ms for the lock");
    TOLD_BAD(&t, "early");
    told_begin(&t);
    waits = told_ask(&t, 2, "LOCKSET OWNER y NAME a FOREVER");
    told_answer(&t, 2, waits, "-TIMEOUT the server stops");
    TOLD_GOOD(&t);
}

/* Who was told that it has no lock has none. */
TEST(nobody_is_granted_who_was_refused)
{
    static const char *const tells[] = {
        "-LOST session 3 has ended",
        "-DONE the work of 'b' is done, for 5 ms more: x",
        "-DEADLOCK waiting for 'a' would have been a deadlock",
        "-STATE this owner holds 'a' as shared",
    };

    for (size_t i = 0; i < sizeof tells / sizeof tells[0]; i++) {
        struct told t;
        told_begin(&t);
        told(&t, 3, "LOCK b OWNER z", GRANT(1));
        told(&t, 3, "UNLOCK b 1 DONE 1000 RESULT x", "remaining 0");
        told(&t, 1, "LOCK a OWNER x WAIT 1000", tells[i]);
        told(&t, 2, "LOCKINFO a", INFO("x", 5, "exclusive"));
        TOLD_BAD(&t, "phantom");
    }
}

/* DELAY: x lets its time run out, or gives back by `gives`; then y comes. */
static void delayed(const char *first, const char *gives, const char *second,
                    uint64_t wait_ms, const char *rule)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, first, "token 1 safe_ms 100 count 1 waited_ms 0");
    if (gives != NULL)
        told(&t, 1, gives, "remaining 0");
    told_wait(&t, wait_ms);
    told(&t, 2, second, GRANT(2));
    if (rule == NULL)
        TOLD_GOOD(&t);
    else
        TOLD_BAD(&t, rule);
}

TEST(a_name_is_closed_for_its_delay)
{
    const char *a = "LOCK a OWNER x TTL 100 DELAY 500";
    const char *tree = "LOCK a OWNER x TTL 100 DELAY 500 TREE";
    const char *below = "LOCK a/b OWNER x TTL 100 DELAY 500";

    delayed(a, NULL, "LOCK a OWNER y", 590, "exclusion");
    delayed(a, NULL, "LOCK a OWNER y", 610, NULL);
    delayed(a, "UNLOCK a 1", "LOCK a OWNER y", 590, NULL);
    delayed("LOCK a OWNER x TTL 100", NULL, "LOCK a OWNER y", 590, NULL);
    delayed(a, NULL, "LOCK a/b OWNER y", 590, NULL);
    delayed(tree, NULL, "LOCK a/b OWNER y", 590, "exclusion");
    delayed(tree, NULL, "LOCK a/b OWNER y", 610, NULL);
    delayed(below, NULL, "LOCK a OWNER y TREE", 590, "exclusion");
    delayed(below, NULL, "LOCK a OWNER y", 590, NULL);
}

/* The queue. */

/* The second is granted first, and gives back by `gives`. */
static void queue_for(const char *first, const char *second, const char *gives,
                      const char *rule)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TREE", GRANT(1));
    uint64_t one = told_ask(&t, 2, first);
    told_mark(&t, 2, one, HISTORY_ARRIVED);
    told_wait(&t, 100);
    uint64_t two = told_ask(&t, 3, second);
    told_mark(&t, 3, two, HISTORY_ARRIVED);
    told_wait(&t, 100);
    told(&t, 1, "UNLOCK a 1", "remaining 0");
    told_answer(&t, 3, two, "token 7 safe_ms 10000 count 1 waited_ms 100");
    told(&t, 3, gives, "remaining 0");
    told_answer(&t, 2, one, "token 9 safe_ms 10000 count 1 waited_ms 200");
    if (rule == NULL)
        TOLD_GOOD(&t);
    else
        TOLD_BAD(&t, rule);
}

static void queue_two(const char *first, const char *second, const char *rule)
{
    queue_for(first, second, "UNLOCK a 7", rule);
}

/* A TREE and names below are one queue. */
TEST(names_above_and_below_each_other_wait_in_order)
{
    queue_for("LOCK a OWNER y WAIT 5000 TREE", "LOCK a/b OWNER z FOREVER",
              "UNLOCK a/b 7", "fifo");
    queue_for("LOCK a/b OWNER y WAIT 5000", "LOCK a OWNER z FOREVER TREE",
              "UNLOCK a 7", "fifo");
    queue_for("LOCKSET OWNER y NAME a NAME c FOREVER TREE",
              "LOCK c/d/e OWNER z FOREVER", "UNLOCK c/d/e 7", "fifo");
    queue_for("LOCK a OWNER y WAIT 5000", "LOCK a/b OWNER z FOREVER",
              "UNLOCK a/b 7", NULL);
    queue_for("LOCK a/b OWNER y WAIT 5000", "LOCK a/c OWNER z FOREVER TREE",
              "UNLOCK a/c 7", NULL);
    queue_for("LOCK a OWNER y WAIT 5000 TREE", "LOCK a/b OWNER y FOREVER",
              "UNLOCK a/b 7", NULL);
    queue_for("LOCK a OWNER y WAIT 5000 TREE PRIORITY 1",
              "LOCK a/b OWNER z FOREVER", "UNLOCK a/b 7", NULL);
    queue_for("LOCK a OWNER y WAIT 5000 TREE", "LOCK a/b OWNER z FOREVER BARGE",
              "UNLOCK a/b 7", NULL);
}

TEST(only_those_of_one_priority_wait_in_order)
{
    queue_two("LOCK a OWNER y WAIT 5000", "LOCK a OWNER z FOREVER", "fifo");
    queue_two("LOCK a OWNER y FOREVER PRIORITY 2",
              "LOCKSET OWNER z NAME a FOREVER PRIORITY 2", "fifo");
    queue_two("LOCK a OWNER y WAIT 5000 PRIORITY 1", "LOCK a OWNER z WAIT 5000",
              NULL);
    queue_two("LOCK a OWNER y WAIT 5000", "LOCK a OWNER z WAIT 5000 BARGE",
              NULL);
}

TEST(an_election_takes_the_lock_of_its_name)
{
    struct told t;

    two("ELECT a OWNER x VALUE v", GRANT(1), "LOCK a OWNER y", GRANT(2),
        "exclusion");
    told_begin(&t);
    told(&t, 1, "ELECT a OWNER x VALUE v", GRANT(1));
    told(&t, 1, "RESIGN a 1", "remaining 0");
    told(&t, 2, "LOCK a OWNER y", GRANT(3));
    TOLD_GOOD(&t);
}

/* Deadlocks. */

#define CYCLE(owner, name)                                                   \
    "-DEADLOCK waiting for 'b' would be a deadlock: 'x' would wait for 'b' " \
    "(exclusive, 0 ms), behind '" owner "', who waits for '" name            \
    "' (exclusive, 5 ms), behind 'x'"

static void deadlock(const char *told_so, const char *rule)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", GRANT(1));
    told(&t, 2, "LOCK b OWNER y", GRANT(2));
    told(&t, 4, "LOCK c OWNER z", GRANT(3));
    told_ask(&t, 3, "LOCK a OWNER y WAIT 1000");
    told(&t, 1, "LOCK b OWNER x WAIT 1000", told_so);
    if (rule == NULL)
        TOLD_GOOD(&t);
    else
        TOLD_BAD(&t, rule);
}

TEST(a_deadlock_names_those_who_can_be_in_it)
{
    deadlock(CYCLE("y", "a"), NULL);
    deadlock(CYCLE("z", "a"), "deadlock"); /* neither holds b nor waits */
    deadlock(CYCLE("y", "c"), "deadlock"); /* does not wait for c */
    deadlock("-DEADLOCK waiting for 'b' would be a deadlock: 'y', who is "
             "older, has or wants 'b' (exclusive, 7 ms)",
             NULL);
    deadlock("-DEADLOCK waiting for 'b' would be a deadlock: 'z', who is "
             "older, has or wants 'b' (exclusive, 7 ms)",
             "deadlock");
    deadlock("-DEADLOCK waiting for 'b' would have been a deadlock", NULL);
}

/* Work that is done. */

#define DONE(result) "-DONE the work of 'a' is done, for 50 ms more: " result

static void finish(const char *second, const char *answer, uint64_t wait_ms,
                   const char *rule)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", GRANT(1));
    told(&t, 1, "UNLOCK a 1 DONE 100 RESULT ok", "remaining 0");
    told_wait(&t, wait_ms);
    told(&t, 2, second, answer);
    if (rule == NULL)
        TOLD_GOOD(&t);
    else
        TOLD_BAD(&t, rule);
}

/* The first call may have been the one, and its answer lost. */
TEST(work_is_done_from_the_first_call_with_its_req)
{
    static const char *const unlock = "UNLOCK a 1 DONE 100 RESULT ok REQ q";

    for (int i = 0; i < 2; i++) {
        struct told t;
        told_begin(&t);
        told(&t, 1, "LOCK a OWNER x", GRANT(1));
        if (i > 0)
            told_ask(&t, 1, unlock);
        told_wait(&t, 60);
        told(&t, 2, unlock, "remaining 0");
        told_wait(&t, 60);
        told(&t, 2, "LOCK a OWNER y", GRANT(5));
        if (i > 0)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "done");
    }
}

TEST(work_that_is_done_is_told_so_for_its_time)
{
    finish("LOCK a OWNER y", DONE("ok"), 50, NULL);
    finish("LOCK a OWNER y", DONE("other"), 50, "done");
    finish("LOCK a OWNER y", DONE("ok"), 200, "done");
    finish("LOCK a OWNER y", GRANT(5), 50, "done");
    finish("LOCKSET OWNER y NAME a NAME b", GRANT(5), 50, "done");
    finish("LOCK a OWNER y", GRANT(5), 200, NULL);
}
