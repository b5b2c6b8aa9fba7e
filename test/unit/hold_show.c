/* hold_show.c - tests of LOCKINFO, LOCKS and HELD. */
#include "support/engine.h"

TEST_ONE_THREAD;

TEST(a_lock_is_shown_with_its_holders_and_those_who_wait)
{
    engine_start();
    engine_session(9000);
    engine_do("LOCK pool OWNER ann SESSION 1 PERMITS 2 OF 4 NOTE first");
    engine_now_us += 10 * MS;
    engine_do("LOCK pool OWNER bob PERMITS 2 OF 4 TTL 500");
    engine_do("LOCK pool OWNER eve SESSION 1 PERMITS 1 OF 4 WAIT 900 "
              "PRIORITY 2 NOTE waits");
    engine_now_us += 5 * MS;
    engine_do("LOCK pool OWNER kim WAIT 900");
    EXPECT(engine_do("LOCKINFO pool"),
           "OK name=pool owner=ann token=2 expires_ms=8985 count=1 waiting=2 "
           "held_ms=15 mode=counting session=1 names=0 note=first tree=0 "
           "holders=[{owner=ann session=1 token=2 mode=counting permits=2 "
           "count=1 expires_ms=8985 held_ms=15 note=first "
           "tree=0} "
           "{owner=bob session=0 token=3 mode=counting permits=2 count=1 "
           "expires_ms=495 held_ms=5 note= tree=0}] "
           "waiters=[{owner=kim session=0 mode=exclusive permits=0 priority=0 "
           "waited_ms=0 note= tree=0} {owner=eve session=1 mode=counting "
           "permits=1 "
           "priority=2 waited_ms=5 note=waits tree=0}]");
}

TEST(a_name_of_a_set_is_shown_as_such)
{
    engine_start();
    engine_do("LOCKSET OWNER ann NAME a NAME b SHARED TTL 500 NOTE both");
    engine_do("LOCKSET OWNER ann NAME a NAME b SHARED TTL 500");
    EXPECT(engine_do("LOCKINFO b"),
           "OK name=b owner=ann token=1 expires_ms=500 count=2 waiting=0 "
           "held_ms=0 mode=shared session=0 names=2 note=both tree=0 "
           "holders=[{owner=ann session=0 token=1 mode=shared permits=0 "
           "count=2 expires_ms=500 held_ms=0 note=both tree=0}] "
           "waiters=[]");
    EXPECT(engine_do("LOCKS b"),
           "OK locks=[{name=b owner=ann token=1 expires_ms=500 count=2 "
           "waiting=0 tree=0}] cursor=0");
}

TEST(names_that_nobody_holds_are_shown_and_not_listed)
{
    engine_start();
    engine_do("LOCK z OWNER zoe TTL 100 DELAY 500");
    engine_do("LOCKSET OWNER ann NAME a NAME z WAIT 9000");
    EXPECT(engine_do("LOCKINFO a"),
           "OK name=a owner= token=0 expires_ms=0 count=0 waiting=1 held_ms=0 "
           "mode=free session=0 names=0 note= tree=0 holders=[] "
           "waiters=[{owner=ann session=0 mode=exclusive permits=0 priority=0 "
           "waited_ms=0 note= tree=0}]");
    engine_now_us += 100 * MS;
    engine_tick();
    EXPECT_BEGINS(
        engine_do("LOCKINFO z"),
        "OK name=z owner= token=0 expires_ms=500 count=0 waiting=1 "
        "held_ms=0 mode=closed session=0 names=0 note= tree=0 holders=[] ");
    EXPECT(engine_do("LOCKS"), "OK locks=[] cursor=0");
    EXPECT(engine_do("LOCKINFO nothing"), "NOTFOUND name=nothing");
    struct hold_counts counts;
    hold_count(engine, &counts);
    CHECK_EQ(counts.locks, 0);
    CHECK_EQ(counts.waiters, 1);
}

/* Nobody holds it, and yet they wait. */
TEST(waits_for_a_name_that_is_closed_are_edges)
{
    engine_start();
    engine_do("LOCK a OWNER zoe TREE TTL 100 DELAY 500");
    engine_do("LOCK a OWNER ann WAIT 9000");
    engine_do("LOCK a/b OWNER bob WAIT 9000");
    engine_do("LOCKSET OWNER eve NAME a NAME z WAIT 9000");
    engine_now_us += 100 * MS;
    engine_tick();
    EXPECT(engine_do("WAITGRAPH"),
           "OK edges=[{owner=ann session=0 name=a mode=exclusive "
           "waited_ms=100 note= by=closed holder= tree=0} "
           "{owner=bob session=0 name=a/b mode=exclusive waited_ms=100 note= "
           "by=closed holder= tree=0} "
           "{owner=eve session=0 name=a mode=exclusive waited_ms=100 note= "
           "by=closed holder= tree=0} "
           "{owner=eve session=0 name=a mode=exclusive waited_ms=100 note= "
           "by=queue holder=ann tree=0}] cursor=0");
    EXPECT(engine_do("WAITGRAPH DOT"),
           "OK digraph waits {\n"
           "  \"ann\" -> \"(closed)\" [label=\"a\", style=dotted];\n"
           "  \"bob\" -> \"(closed)\" [label=\"a/b\", style=dotted];\n"
           "  \"eve\" -> \"(closed)\" [label=\"a\", style=dotted];\n"
           "  \"eve\" -> \"ann\" [label=\"a\", style=dashed];\n"
           "}\n");
    engine_now_us += 500 * MS;
    CHECK_EQ(engine_tick()->answer_count, 2);
    EXPECT_BEGINS(engine_do("WAITGRAPH"),
                  "OK edges=[{owner=eve session=0 name=a mode=exclusive "
                  "waited_ms=600 note= by=grant holder=ann tree=0}]");
}

static unsigned count_of(const char *text, const char *word)
{
    unsigned count = 0;

    while ((text = strstr(text, word)) != NULL) {
        text += strlen(word);
        count++;
    }
    return count;
}

TEST(a_hundred_holders_and_waiters_are_shown)
{
    engine_start();
    for (unsigned i = 0; i < 150; i++)
        engine_do("LOCK door OWNER r%03u SHARED", i);
    for (unsigned i = 0; i < 150; i++)
        engine_do("LOCK door OWNER w%03u FOREVER", i);
    const char *text = engine_reply_text(engine_do("LOCKINFO door"));
    CHECK_EQ(count_of(text, "{owner=r"), 100);
    CHECK_EQ(count_of(text, "{owner=w"), 100);
    CHECK_EQ(count_of(text, "waiting=150"), 1);
    CHECK(strstr(text, "{owner=r099 ") != NULL); /* the first of each */
    CHECK(strstr(text, "{owner=w099 ") != NULL);
}

TEST(held_asks_for_a_token_on_a_name)
{
    engine_start();
    engine_do("LOCK door OWNER ann SHARED TTL 100");
    engine_do("LOCK door OWNER bob SHARED TTL 200");
    EXPECT(engine_do("HELD door 1"), "OK");
    EXPECT(engine_do("HELD door 2"), "OK");
    EXPECT(engine_do("HELD door 3"), "LOST name=door token=3");
    EXPECT(engine_do("HELD gate 1"), "LOST name=gate token=1");
    engine_now_us += 100 * MS;
    EXPECT(engine_do("HELD door 1"), "EARLY"); /* never told again */
    engine_tick();
    EXPECT(engine_do("HELD door 1"), "LOST name=door token=1");
    EXPECT(engine_do("HELD door 2"), "OK");
}

/* ---- What threads of one process ask. ---- */

static const struct hold_out *run(struct hold_command command)
{
    command.now_us = engine_now_us;
    CHECK_EQ(hold_prepare(engine, &command), HF_OK);
    return hold_run(engine, &command);
}

TEST(a_command_runs_as_its_record_would)
{
    struct hold_command lock = {.kind = HOLD_LOCK,
                                .name = {"door", 4},
                                .owner = {"ann", 3},
                                .ttl_ms = 500};

    engine_start();
    CHECK_EQ(engine_lock("door", "ann", 500, 0)->code, HOLD_OK);
    CHECK_EQ(engine_unlock("door", 1)->code, HOLD_OK);
    CHECK_EQ(engine_lock("door", "ann", 500, 0)->code, HOLD_OK);
    uint64_t digest = hold_digest(engine);
    engine_start();
    EXPECT(run(lock), "OK token=1 safe_ms=500 count=1 waited_ms=0");
    EXPECT(run((struct hold_command){
               .kind = HOLD_UNLOCK, .name = {"door", 4}, .token = 1}),
           "OK remaining=0");
    EXPECT(run(lock), "OK token=3 safe_ms=500 count=1 waited_ms=0");
    CHECK(hold_digest(engine) == digest);
    engine_stop();
}

TEST(a_lock_without_a_ttl_is_held_for_ever)
{
    struct hold_command lock = {
        .kind = HOLD_LOCK, .name = {"door", 4}, .owner = {"ann", 3}};

    engine_start();
    CHECK_EQ(run(lock)->code, HOLD_OK);
    CHECK_EQ(hold_due_us(engine), UINT64_MAX);
    engine_now_us += UINT64_C(1) << 50;
    CHECK_EQ(engine_lock("door", "bob", 500, 0)->code, HOLD_BUSY);
    engine_stop();
}

TEST(the_token_of_a_holder_is_found)
{
    struct hf_bytes door = {"door", 4};
    struct hf_bytes ann = {"ann", 3};

    engine_start();
    CHECK_EQ(hold_token_of(engine, door, 0, ann), 0);
    CHECK_EQ(engine_do("SESSION OPEN TTL 1000")->code, HOLD_OK);
    CHECK_EQ(engine_do("LOCK door OWNER ann SHARED")->code, HOLD_OK);
    CHECK_EQ(engine_do("LOCK door OWNER ann SHARED SESSION 1")->code, HOLD_OK);
    CHECK_EQ(engine_do("LOCKSET OWNER bob NAME door SHARED NAME gate")->code,
             HOLD_OK);
    CHECK_EQ(hold_token_of(engine, door, 0, ann), 2);
    CHECK_EQ(hold_token_of(engine, door, 1, ann), 3);
    CHECK_EQ(hold_token_of(engine, door, 7, ann), 0);
    CHECK_EQ(hold_token_of(engine, door, 0, hf_bytes("bob", 3)), 4);
    CHECK_EQ(hold_token_of(engine, hf_bytes("gate", 4), 0, hf_bytes("bob", 3)),
             4);
    CHECK_EQ(hold_token_of(engine, hf_bytes("none", 4), 0, ann), 0);
    engine_stop();
}

/* A reader does not wait for the readers before it. */
TEST(readers_do_not_wait_for_each_other_in_the_graph)
{
    engine_start();
    engine_do("LOCK m OWNER ann");
    engine_do("LOCK k OWNER bob");
    engine_do("LOCKSET OWNER r1 NAME l SHARED NAME m SHARED FOREVER");
    engine_do("LOCKSET OWNER r2 NAME k SHARED NAME l SHARED FOREVER");
    EXPECT(engine_do("WAITGRAPH DOT"),
           "OK digraph waits {\n  \"r1\" -> \"ann\" [label=\"m\"];\n"
           "  \"r2\" -> \"bob\" [label=\"k\"];\n}\n");
    engine_do("LOCK l OWNER w FOREVER");
    engine_do("LOCK l OWNER r3 SHARED FOREVER");
    engine_do("LOCK l OWNER r4 SHARED FOREVER");
    EXPECT(engine_do("WAITGRAPH DOT"),
           "OK digraph waits {\n  \"r1\" -> \"ann\" [label=\"m\"];\n"
           "  \"r2\" -> \"bob\" [label=\"k\"];\n"
           "  \"w\" -> \"r2\" [label=\"l\", style=dashed];\n"
           "  \"w\" -> \"r1\" [label=\"l\", style=dashed];\n"
           "  \"r3\" -> \"w\" [label=\"l\", style=dashed];\n"
           "  \"r4\" -> \"w\" [label=\"l\", style=dashed];\n}\n");
    engine_stop();
}

/* ---- All that somebody waits for. ---- */

#define EDGES "OK digraph waits {\n"

static void make_reader_circle(void)
{
    engine_start();
    engine_do("LOCK sh OWNER r1 SHARED");
    engine_do("LOCK sh OWNER r2 SHARED");
    engine_do("LOCK x OWNER w");
    engine_do("LOCK sh OWNER w FOREVER");
    engine_do("LOCK x OWNER r2 FOREVER DEADLOCK NONE");
}

/* It goes through the second of two readers. */
TEST(a_circle_through_any_reader_is_seen)
{
    make_reader_circle();
    EXPECT(engine_do("WAITGRAPH DOT"),
           EDGES "  \"w\" -> \"r1\" [label=\"sh\"];\n"
                 "  \"w\" -> \"r2\" [label=\"sh\"];\n"
                 "  \"r2\" -> \"w\" [label=\"x\"];\n}\n");
}

/* A page may end between two edges of one wait. */
TEST(the_edges_of_one_wait_may_be_on_several_pages)
{
    static const char *const edges[] = {"{owner=w session=0 name=sh ",
                                        "{owner=w session=0 name=sh ",
                                        "{owner=r2 session=0 name=x "};
    static const char *const holders[] = {"holder=r1 ", "holder=r2 ",
                                          "holder=w "};
    uint64_t cursor = 0;

    make_reader_circle();
    for (unsigned page = 0; page < 3; page++) {
        const struct hold_out *out = engine_do("WAITGRAPH CURSOR %llu COUNT 1",
                                               (unsigned long long)cursor);
        const char *text = engine_reply_text(out);
        CHECK_EQ(count_of(text, "{owner="), 1);
        CHECK_EQ(count_of(text, edges[page]), 1);
        CHECK_EQ(count_of(text, holders[page]), 1);
        size_t at = 0;
        (void)reply_next(out->body, &at);
        (void)reply_next_field(out->body, &at);
        reply_skip(out->body, &at);
        (void)reply_next_field(out->body, &at);
        cursor = (uint64_t)reply_next(out->body, &at).number;
        CHECK_EQ(cursor == 0, page == 2);
    }
}

/* It waits for the readers behind the writer before it, and for that one, which
 * waits for all before. */
TEST(a_set_behind_a_writer_waits_for_all_that_stop_it)
{
    engine_start();
    engine_do("LOCK a OWNER ann SHARED");
    engine_do("LOCK a OWNER bob SHARED");
    engine_do("LOCK b OWNER kim");
    engine_do("LOCK a OWNER w1 FOREVER");
    engine_do("LOCK a OWNER w2 FOREVER");
    engine_do("LOCK a OWNER r1 SHARED FOREVER");
    engine_do("LOCK a OWNER r2 SHARED FOREVER");
    engine_do("LOCKSET OWNER set NAME a NAME b SHARED FOREVER");
    const char *text = engine_reply_text(engine_do("WAITGRAPH DOT"));
    CHECK(strstr(text, "  \"w2\" -> \"ann\" [label=\"a\"];\n"
                       "  \"w2\" -> \"bob\" [label=\"a\"];\n"
                       "  \"w2\" -> \"w1\" [label=\"a\", style=dashed];\n"
                       "  \"r1\" -> \"w2\" [label=\"a\", style=dashed];\n"
                       "  \"r2\" -> \"w2\" [label=\"a\", style=dashed];\n"
                       "  \"set\" -> \"ann\" [label=\"a\"];\n"
                       "  \"set\" -> \"bob\" [label=\"a\"];\n"
                       "  \"set\" -> \"r2\" [label=\"a\", style=dashed];\n"
                       "  \"set\" -> \"r1\" [label=\"a\", style=dashed];\n"
                       "  \"set\" -> \"w2\" [label=\"a\", style=dashed];\n"
                       "  \"set\" -> \"kim\" [label=\"b\"];\n}\n") != NULL);
}

/* Any of the holders may give back what is missing; waits for permits keep
 * their order. */
TEST(who_waits_for_permits_waits_for_all_holders)
{
    engine_start();
    engine_do("LOCK pool OWNER ann PERMITS 1 OF 3");
    engine_do("LOCK pool OWNER bob PERMITS 1 OF 3");
    engine_do("LOCK pool OWNER big PERMITS 2 OF 3 FOREVER");
    engine_do("LOCK pool OWNER tiny PERMITS 1 OF 3 FOREVER");
    EXPECT(engine_do("WAITGRAPH DOT"),
           EDGES "  \"big\" -> \"ann\" [label=\"pool\"];\n"
                 "  \"big\" -> \"bob\" [label=\"pool\"];\n"
                 "  \"tiny\" -> \"big\" [label=\"pool\", style=dashed];\n"
                 "}\n");
}

TEST(all_at_related_names_are_waited_for)
{
    engine_start();
    engine_do("LOCK a/b OWNER ann");
    engine_do("LOCK a/c OWNER bob");
    engine_do("LOCK a/c OWNER kim FOREVER");
    engine_do("LOCK a OWNER tree TREE FOREVER");
    EXPECT(engine_do("WAITGRAPH DOT"),
           EDGES "  \"kim\" -> \"bob\" [label=\"a/c\"];\n"
                 "  \"tree\" -> \"ann\" [label=\"a\"];\n"
                 "  \"tree\" -> \"bob\" [label=\"a\"];\n"
                 "  \"tree\" -> \"kim\" [label=\"a\", style=dashed];\n"
                 "}\n");
}

/* Of each kind so many edges of one name are shown; of the waits the nearest,
 * and the first that is not shared. */
TEST(the_edges_of_one_name_are_bounded)
{
    engine_start();
    for (unsigned i = 0; i < 150; i++) {
        engine_do("LOCK door OWNER g%03u SHARED", i);
        engine_do("LOCK tree/%03u OWNER t%03u", i, i);
    }
    engine_do("LOCK door OWNER w1 FOREVER");
    for (unsigned i = 0; i < 150; i++)
        engine_do("LOCK door OWNER r%03u SHARED FOREVER", i);
    engine_do("LOCK door OWNER w2 FOREVER");
    engine_do("LOCK tree OWNER top TREE FOREVER");
    const char *text = engine_reply_text(engine_do("WAITGRAPH"));
    CHECK_EQ(count_of(text, "{owner=w1 "), 100);
    CHECK_EQ(count_of(text, "{owner=w2 "), 201);
    CHECK_EQ(count_of(text, "{owner=top "), 100);
    CHECK_EQ(count_of(text, "by=queue holder=r"), 100);
    CHECK(strstr(text, "by=queue holder=r050 ") != NULL);
    CHECK(strstr(text, "by=queue holder=r049 ") == NULL);
    CHECK_EQ(count_of(text, "by=queue holder=w1 "), 151);
    CHECK_EQ(count_of(text, "by=grant holder=g099 "), 2);
    CHECK_EQ(count_of(text, "by=grant holder=g100 "), 0);
    engine_stop();
}
