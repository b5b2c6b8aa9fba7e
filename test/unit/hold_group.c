/* hold_group.c - tests of several commands as one step. */
#include "hold/group.h"

#include "hold/state.h"
#include "support/starve.h"

TEST_ONE_THREAD;

static void stocked(void)
{
    engine_start();
    engine_set("pen", 10);
    engine_set("ink", 3);
}

TEST(all_of_a_group_is_done_in_one_step_and_each_is_answered)
{
    stocked();
    const struct hold_out *out =
        engine_group(NULL, "LOCK door OWNER ann TTL 500; RESERVE c ITEM pen 2 "
                           "TTL 900; FENCE db 1; HELD door 3");
    EXPECT(out, "OK {token=3 safe_ms=500 count=1 waited_ms=0} {id=c "
                "status=PENDING expires_ms=900 items=[{sku=pen quantity=2}]} "
                "OK OK");
    EXPECT_EVENTS(out, "3 LOCK_GRANTED door; 4 RESERVED c; 5 FENCE_RAISED db");
    CHECK_ENGINE();
}

TEST(a_later_command_sees_what_an_earlier_one_did)
{
    stocked();
    EXPECT(engine_group(NULL, "RESERVE c ITEM pen 4; CONFIRM c; STOCK ADD pen "
                              "-6; STOCK GET pen"),
           "OK {id=c status=PENDING expires_ms=600000 items=[{sku=pen "
           "quantity=4}]} {id=c status=CONFIRMED expires_ms=0 items=[{sku=pen "
           "quantity=4}]} {sku=pen total=4 available=0 reserved=0 sold=4 "
           "version=5 updated_ms=1000000 low=0 waiting=0} {sku=pen total=4 "
           "available=0 "
           "reserved=0 sold=4 version=5 updated_ms=1000000 low=0 waiting=0 "
           "attributes={}}");
    EXPECT(engine_group(NULL, "LOCK a OWNER ann; LOCK a OWNER ann; LOCK a "
                              "OWNER bob"),
           "EXECABORT position=3 count=3 status=2 BUSY name=a owner=ann "
           "expires_ms=30000 waiting=0 position=1");
    EXPECT(engine_info("a"), "NOTFOUND name=a");
    CHECK_ENGINE();
}

TEST(the_first_refusal_leaves_everything_as_it_was)
{
    stocked();
    engine_lock("held", "ann", 5000, 0);
    engine_lock("held", "bob", 5000, 5000);
    engine_do("LOCKSET OWNER kim NAME s1 NAME s2 DELAY 9");
    engine_do("LOCK p/q OWNER kim TREE");
    uint64_t before = hold_digest(engine);
    uint64_t seq = hold_seq(engine);
    const struct hold_out *out = engine_group(
        NULL,
        "UNLOCK held 3; UNLOCKSET 5; LOCK s1 OWNER eve; LOCK p/q/r OWNER kim; "
        "UNLOCK p/q 7; LOCK p/q/r OWNER eve TREE NOTE n DELAY 8; STOCK SET new "
        "5; RESERVE * ITEM new 5 ITEM ink 2 OWNER eve; STOCK DEL pen; FENCE db "
        "1; LOCK held OWNER eve BARGE; UNLOCK held 3");
    CHECK_EQ(out->code, HOLD_ABORTED);
    EXPECT_EVENTS(out, "");
    EXPECT_ANSWERS(out, "");
    CHECK(hold_digest(engine) == before);
    CHECK_EQ(hold_seq(engine), seq);
    CHECK_ENGINE();
    engine_reload();
}

/* What was found out of the names above, while a refused group had a TREE
 * there, is found out anew. */
TEST(a_tree_of_a_refused_group_stops_nobody_afterwards)
{
    engine_start();
    engine_do("LOCK z OWNER kim TREE");
    engine_do("LOCK a/c OWNER kim SHARED");
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(engine_group(NULL,
                              "LOCK a OWNER kim TREE SHARED; LOCK a/b OWNER "
                              "kim SHARED; LOCK z OWNER eve")
                     ->code,
                 HOLD_ABORTED);
        CHECK_EQ(engine_do("LOCK a/d OWNER eve SHARED")->code, HOLD_OK);
        CHECK_EQ(engine_do("LOCK a/b OWNER bob SHARED")->code, HOLD_OK);
    }
    CHECK_ENGINE();
}

/* What was found above a name is kept for the next look. */
TEST(names_above_that_a_refused_group_had_are_not_found_after_it)
{
    engine_start();
    engine_do("LOCK z OWNER ann TREE");
    EXPECT_BEGINS(engine_group(NULL, "LOCK p OWNER ann TREE; LOCK p/x OWNER "
                                     "ann SHARED; HELD q 7"),
                  "EXECABORT position=3 ");
    EXPECT_BEGINS(engine_do("LOCK p/y OWNER bob SHARED"), "OK ");
    CHECK_ENGINE();
}

TEST(the_names_below_the_trees_of_a_group_count_together)
{
    engine_start();
    engine_bound("tree_names_max", 3);
    for (unsigned i = 0; i < 2; i++) {
        engine_do("LOCK a/%u OWNER ann SHARED", i);
        engine_do("LOCK b/%u OWNER ann SHARED", i);
    }
    EXPECT(engine_group(NULL, "LOCK a OWNER bob TREE SHARED; LOCK b OWNER bob "
                              "TREE SHARED"),
           "EXECABORT position=2 count=2 status=12 OVERLOADED "
           "name=tree-names-max maximum=3");
    EXPECT_BEGINS(engine_group(NULL, "LOCK a OWNER bob TREE SHARED; LOCK c "
                                     "OWNER bob TREE SHARED"),
                  "OK ");
    EXPECT_BEGINS(engine_do("LOCK b OWNER bob TREE SHARED"), "OK ");
    CHECK_ENGINE();
}

TEST(who_waits_is_served_once_after_the_last_command)
{
    stocked();
    engine_lock("a", "ann", 5000, 0);    /* 3 */
    engine_lock("a", "bob", 5000, 5000); /* waits */
    /* the lock is free inside the group, but bob is before others */
    EXPECT(engine_group(NULL, "UNLOCK a 3; LOCK a OWNER eve"),
           "EXECABORT position=2 count=2 status=2 BUSY name=a owner=bob "
           "waited_ms=0 waiting=1 position=2");
    const struct hold_out *out =
        engine_group(NULL, "UNLOCK a 3; STOCK SET pen 11");
    EXPECT_EVENTS(out, "5 LOCK_RELEASED a; 6 STOCK_CHANGED pen; 7 LOCK_GRANTED "
                       "a");
    EXPECT_ANSWERS(out, "4:OK token=7 safe_ms=5000 count=1 waited_ms=0");
    /* given back and taken again by one who barges: bob's turn did not come */
    engine_lock("b", "ann", 5000, 0);    /* 8 */
    engine_lock("b", "bob", 5000, 5000); /* 9 */
    out = engine_group(NULL, "UNLOCK b 8; LOCK b OWNER eve BARGE");
    EXPECT_ANSWERS(out, "");
    CHECK_EQ(out->code, HOLD_OK);
    CHECK_ENGINE();
}

/* What a command has ended is not in use for the next one. */
TEST(names_that_are_given_back_do_not_count_for_the_rest_of_the_group)
{
    engine_start();
    engine_bound("locks_max", 2);
    engine_do("LOCK a/1 OWNER ann SHARED");
    engine_do("LOCK a/1 OWNER bob SHARED");
    engine_do("LOCK z OWNER kim");
    EXPECT_BEGINS(
        engine_group(NULL, "UNLOCK a/1 1; UNLOCK a/1 2; "
                           "LOCK b OWNER eve; LOCK a/1 OWNER eve"),
        "EXECABORT position=4 count=4 status=12 OVERLOADED name=locks-max ");
    CHECK_ENGINE();
    EXPECT_BEGINS(
        engine_group(NULL, "UNLOCK a/1 1; UNLOCK a/1 2; LOCK b OWNER eve"),
        "OK ");
    engine_bound("locks_max", 9);
    engine_bound("tree_names_max", 1);
    uint64_t tree = engine_token(engine_do("LOCK t OWNER ann SHARED TREE"));
    engine_do("LOCK t OWNER kim WAIT 500");
    engine_do("LOCK t/1 OWNER ann SHARED");
    EXPECT_BEGINS(engine_do("LOCK t/2 OWNER ann SHARED"), "OVERLOADED ");
    char words[80];
    snprintf(words, sizeof words, "UNLOCK t %llu; LOCK t/2 OWNER ann SHARED",
             (unsigned long long)tree);
    EXPECT_BEGINS(engine_group(NULL, words), "OK ");
    CHECK_ENGINE();
}

/* However often. */
TEST(a_name_may_be_taken_and_given_back_in_one_group)
{
    engine_start();
    engine_do("LOCK a OWNER ann NOTE n"); /* 1 */
    CHECK_EQ(engine_group(NULL,
                          "UNLOCK a 1; LOCK a OWNER bob; UNLOCK a 3; LOCK "
                          "a OWNER eve NOTE x; UNLOCK a 5; LOCK a OWNER "
                          "kim")
                 ->code,
             HOLD_OK);
    EXPECT_BEGINS(engine_info("a"), "OK name=a owner=kim token=7");
    CHECK_EQ(
        engine_group(NULL, "UNLOCK a 7; LOCK a OWNER kim; UNLOCK a 9")->code,
        HOLD_OK);
    EXPECT(engine_info("a"), "NOTFOUND name=a");
    CHECK_ENGINE();
}

TEST(work_that_is_done_in_a_group_is_told_to_who_waited)
{
    engine_start();
    engine_lock("job", "ann", 5000, 0);
    engine_lock("job", "bob", 5000, 5000);
    engine_lock("job", "eve", 5000, 5000);
    const struct hold_out *out = engine_group(
        NULL, "UNLOCK job 1 DONE 900 RESULT yes; LOCK job OWNER kim");
    CHECK_EQ(out->code, HOLD_ABORTED);
    EXPECT_ANSWERS(out, "");
    CHECK_ENGINE();
    out = engine_group(NULL, "UNLOCK job 1 DONE 900 RESULT yes; STOCK SET a 1");
    EXPECT_ANSWERS(out, "2:DONE name=job result=yes expires_ms=900; 3:DONE "
                        "name=job result=yes expires_ms=900");
    CHECK_ENGINE();
}

TEST(a_repeated_request_gets_the_first_answer_and_nothing_is_done_again)
{
    static const char *const commands = "LOCK door OWNER ann TTL 5000; RESERVE "
                                        "c ITEM pen 2 TTL 9000; CONFIRM c";
    static const char *const later =
        "OK {token=3 safe_ms=3999 count=1 waited_ms=0} {id=c status=PENDING "
        "expires_ms=7999 items=[{sku=pen quantity=2}]} {id=c status=CONFIRMED "
        "expires_ms=0 items=[{sku=pen quantity=2}]}";

    stocked();
    CHECK_EQ(engine_group("q", commands)->code, HOLD_OK);
    uint64_t seq = hold_seq(engine);
    engine_now_us += 1000 * MS + 1;
    EXPECT(hold_answer_now(engine, engine_group_of("q", commands)), later);
    EXPECT(engine_group("q", commands), later);
    EXPECT(engine_group("q", "RESERVE d ITEM pen 1"), "CONFLICT id=q");
    CHECK_EQ(hold_seq(engine), seq);
    engine_reload();
    EXPECT(engine_group("q", commands), later);
    /* the lock is another's by now: it is safe for no time */
    engine_unlock("door", 3);
    EXPECT_BEGINS(engine_group("q", commands),
                  "OK {token=3 safe_ms=0 count=1 waited_ms=0}");
}

/* Attributes are texts, and fields follow them. */
TEST(a_repeated_question_tells_attributes_and_what_is_behind_them)
{
    static const char *const commands = "STOCK GET pen; LOCK a OWNER ann TTL "
                                        "5000; STOCK ADD pen 1";

    stocked();
    engine_do("STOCK ATTR pen color blue");
    engine_do("STOCK EXPECT pen 5 AT 4000000000000");
    CHECK_EQ(engine_group("q", commands)->code, HOLD_OK);
    char first[1024];
    snprintf(first, sizeof first, "%s",
             engine_reply_text(engine_group("q", commands)));
    CHECK(strstr(first, "attributes={color=blue} expected=5") != NULL);
    CHECK(strstr(first, "safe_ms=5000") != NULL);
    engine_now_us += 1000 * MS;
    engine_reload();
    const char *later = engine_reply_text(engine_group("q", commands));
    CHECK(strstr(later, "attributes={color=blue} expected=5") != NULL);
    CHECK(strstr(later, "safe_ms=4000") != NULL);
}

TEST(a_refused_group_is_remembered_too)
{
    stocked();
    static const char *const refused =
        "EXECABORT position=1 count=1 status=7 SHORT sku=pen requested=11 "
        "available=10";
    EXPECT(engine_group("q", "RESERVE c ITEM pen 11"), refused);
    engine_set("pen", 100);
    EXPECT(engine_group("q", "RESERVE c ITEM pen 11"), refused);
    EXPECT(
        hold_answer_now(engine, engine_group_of("q", "RESERVE c ITEM pen 11")),
        refused);
}

static void put_member(char *group, size_t *len, const struct hold_command *c)
{
    size_t bytes = hold_encode(c, group + *len + HOLD_GROUP_HEAD);

    hf_put_u32(group + *len, (uint32_t)bytes);
    *len += HOLD_GROUP_HEAD + bytes;
}

/* An answer that was given elsewhere is told in its place; it may be another
 * one when the request is repeated. */
TEST(what_was_said_elsewhere_is_told_but_not_compared)
{
    static char group[HOLD_GROUP_BYTES];
    char text[64];
    struct hf_buf note = {text, 0, sizeof text};
    struct hold_command said = {.kind = HOLD_SAID, .token = 77};
    struct hold_command c = {.kind = HOLD_GROUP, .count = 1};
    size_t len = 0;

    engine_start();
    reply_map(&note, 1);
    reply_field_number(&note, FIELD_ALLOWED, 1);
    said.note = hf_buf_bytes(&note);
    put_member(group, &len, &said);
    c.now_us = engine_now_us;
    c.request = hf_bytes_text("q");
    c.group = hf_bytes(group, len);
    EXPECT(engine_apply(&c), "OK {allowed=1}");
    said.note = hf_bytes("", 0);
    len = 0;
    put_member(group, &len, &said);
    c.group = hf_bytes(group, len);
    EXPECT(hold_answer_now(engine, &c), "OK {allowed=1}");
    said.token = 78; /* it was asked something else */
    len = 0;
    put_member(group, &len, &said);
    EXPECT(hold_answer_now(engine, &c), "CONFLICT id=q");
}

TEST(a_question_that_is_long_is_refused)
{
    char name[32];

    engine_start();
    engine_bound("holders-max", 100);
    for (int i = 0; i < 90; i++) {
        snprintf(name, sizeof name, "holder-%d", i);
        engine_do("LOCK crowd OWNER %s SHARED", name);
    }
    EXPECT(engine_group(NULL, "STOCK SET a 1; LOCKINFO crowd"),
           "EXECABORT position=2 count=2 status=12 OVERLOADED name=group-read "
           "maximum=8192");
    EXPECT(engine_get("a"), "NOTFOUND sku=a");
}

TEST(a_long_question_behind_long_replies_is_refused)
{
    char value[HOLD_NOTE_MAX + 1] = "";
    char group[16 * 1024] = "";
    char *end = group;

    memset(value, 'v', HOLD_NOTE_MAX - 16);
    engine_start();
    for (uint32_t i = 0; i < HOLD_ITEMS_MAX; i++) {
        engine_do("STOCK SET p%u 1", i);
        for (int k = 0; k < 4; k++)
            engine_do("STOCK ATTR p%u a%d %s", i, k, value);
    }
    for (int i = 0; i < 25; i++)
        end = stpcpy(end, "STOCK GET p0 p1 p2 p3 p4 p5; ");
    end = stpcpy(end, "STOCK GET");
    for (uint32_t i = 0; i < HOLD_ITEMS_MAX; i++)
        end += snprintf(end, 8, " p%u", i);
    EXPECT(engine_group(NULL, group),
           "EXECABORT position=26 count=26 status=12 OVERLOADED "
           "name=group-read maximum=8192");
}

TEST(the_replies_of_a_group_are_bounded_together)
{
    char words[2048];
    char name[32];
    size_t len = 0;

    engine_start();
    for (int i = 0; i < 45; i++) {
        snprintf(name, sizeof name, "holder-%d", i);
        engine_do("LOCK crowd OWNER %s SHARED", name);
    }
    uint64_t before = hold_digest(engine);
    for (int i = 0; i < 60; i++)
        len += (size_t)snprintf(words + len, sizeof words - len, "%s; ",
                                i == 0 ? "STOCK SET a 1" : "LOCKINFO crowd");
    EXPECT(engine_group(NULL, words),
           "EXECABORT position=44 count=60 status=12 OVERLOADED "
           "name=group-reply maximum=196608");
    CHECK_EQ(hold_digest(engine), before);
    CHECK_ENGINE();
}

/* ---- Records. ---- */

static char record[HOLD_RECORD_MAX];

static enum hf_status decode(const struct hold_command *c)
{
    struct hold_command out;

    return hold_decode(hf_bytes(record, hold_encode(c, record)), &out);
}

TEST(what_may_not_be_in_a_group_is_no_record)
{
    static const char *const lines[] = {
        "SESSION OPEN TTL 100",
        "SESSION KEEP 1",
        "SESSION CLOSE 1",
        "EXPLAIN a",
        "REVOKE a 1",
        "FENCE DEL a",
        "LOCKS",
        "STOCK SET a 1 REQ q",
        "STOCK LIST",
    };
    struct hold_command c;

    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        c = *engine_group_of(NULL, lines[i]);
        CHECK_EQ(decode(&c), HF_CORRUPT);
    }
    c = *engine_group_of(NULL, "STOCK SET a 1; STOCK SET b 1");
    CHECK_EQ(decode(&c), HF_OK);
    for (uint64_t count = 0; count < 5; count++) {
        c.count = count;
        CHECK_EQ(decode(&c), count == 2 ? HF_OK : HF_CORRUPT);
    }
    c.count = 2;
    size_t len = hold_encode(&c, record);
    for (size_t i = 1; i < c.group.len; i++)
        CHECK_EQ(hold_decode(hf_bytes(record, len - i), &c), HF_CORRUPT);
}

TEST(what_waits_does_not_wait_in_a_group)
{
    engine_start();
    engine_lock("a", "ann", 5000, 0);
    EXPECT_BEGINS(engine_group(NULL, "LOCK a OWNER bob WAIT 100"),
                  "EXECABORT position=1 count=1 status=2 BUSY name=a");
    EXPECT_BEGINS(engine_group(NULL, "LOCK a OWNER bob FOREVER"),
                  "EXECABORT position=1 count=1 status=2 BUSY name=a");
}

/* ---- Memory. ---- */

TEST(every_allocation_may_fail_and_applying_needs_none)
{
    static const char *const groups[] = {
        "LOCK door OWNER ann NOTE n DELAY 5; LOCKSET OWNER bob NAME x NAME y/z "
        "TREE; RESERVE c ITEM pen 2 ITEM ink 1 OWNER me; CONFIRM c; FENCE f 1; "
        "STOCK SET more 5; RESERVE * ITEM more 1",
        "UNLOCK door 3 DONE 50 RESULT r; STOCK DEL nothing",
        "UNLOCK door 3 DONE 50 RESULT r; UNLOCKSET 4; STOCK GET pen",
    };
    char request[8];

    stocked();
    for (size_t i = 0; i < 3; i++) {
        snprintf(request, sizeof request, "q%zu", i);
        const struct hold_out *out =
            starve(engine_group_of(request, groups[i]));
        CHECK_EQ(out->code, i == 1 ? HOLD_ABORTED : HOLD_OK);
        CHECK_ENGINE();
    }
    CHECK_EQ(engine->prepared, 0);
}

/* Tables do not grow inside of a group; they have caught up at its end. */
TEST(tables_grow_when_only_groups_add_to_them)
{
    char line[64];

    engine_start();
    for (int i = 0; i < 500; i++) {
        snprintf(line, sizeof line, "STOCK SET a%d 1; STOCK SET b%d 1", i, i);
        CHECK_EQ(engine_group(NULL, line)->code, HOLD_OK);
        CHECK(engine->products.buckets >= engine->products.slab.used);
    }
    CHECK_ENGINE();
}

/* What a group may note of those who wait is reserved once, and suffices. */
TEST(many_who_wait_are_reserved_for_once_and_no_memory_is_needed)
{
    char line[64];

    engine_start();
    engine_do("LOCK top OWNER ann TREE TTL 9000");
    for (int i = 0; i < 500; i++) {
        snprintf(line, sizeof line, "LOCK top/%d OWNER b%d WAIT 900", i, i);
        CHECK_EQ(engine_do("%s", line)->code, HOLD_WAITING);
    }
    const struct hold_command *c =
        engine_group_of(NULL, "UNLOCK top 1; HELD top 1; UNLOCK x 1 DONE 5");
    CHECK_EQ(hold_prepare(engine, c), HF_OK);
    CHECK(engine->undo.cap < 1024u * 1024);
    CHECK_EQ(apply_starved(c)->code, HOLD_ABORTED);
    CHECK_ENGINE();
    c = engine_group_of(NULL, "UNLOCK top 1; STOCK SET a 1");
    CHECK_EQ(hold_prepare(engine, c), HF_OK);
    CHECK_EQ(apply_starved(c)->answer_count, 500);
    CHECK_ENGINE();
}

/* What a refused group learned of the names above does not outlive it. */
TEST(a_tree_of_a_refused_group_stops_nobody)
{
    stocked();
    engine_do("LOCK z OWNER kim TREE");
    EXPECT_BEGINS(engine_group(NULL, "LOCK a OWNER ann TREE; LOCK a/b OWNER "
                                     "ann; UNLOCK z 99"),
                  "EXECABORT position=3 ");
    EXPECT_BEGINS(engine_do("LOCK a/b OWNER bob"), "OK token=");
    CHECK_ENGINE();
}

/* Can the answer to so many of the line be kept for a REQ? */
static enum hf_status prepare_many(const char *line, int count)
{
    char lines[1024];
    size_t len = 0;

    for (int i = 0; i < count; i++)
        len += (size_t)snprintf(lines + len, sizeof lines - len, "%s%s",
                                i > 0 ? "; " : "", line);
    CHECK(len < sizeof lines);
    const struct hold_command *c = engine_group_of("q", lines);
    enum hf_status status = hold_prepare(engine, c);
    if (status == HF_OK)
        hold_forget(engine, c);
    return status;
}

/* A question may have a long reply, but for those whose reply is short. */
TEST(a_group_of_many_conditions_is_kept_for_a_request)
{
    engine_start();
    engine_lock("a", "ann", 5000, 0);
    CHECK_EQ(prepare_many("LOCKINFO a", 7), HF_OK);
    CHECK_EQ(prepare_many("LOCKINFO a", 8), HF_INVALID);
    CHECK_EQ(prepare_many("HELD a 1", 64), HF_OK);
    EXPECT_BEGINS(engine_group("q", "HELD a 1; HELD a 1"), "OK OK");
    CHECK_ENGINE();
}
