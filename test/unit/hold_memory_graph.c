/* hold_memory_graph.c - tests of sessions, sets and waits without memory. */
#include "hold/locks.h"
#include "support/server.h"
#include "support/starve.h"

TEST_ONE_THREAD;

#define LONG_TEXT                                                           \
    "a-text-that-is-longer-than-the-names-so-far-so-that-it-needs-a-place-" \
    "of-its-own"

/* Nothing is held, waited for or promised. */
static void expect_nothing_left(void)
{
    CHECK_ENGINE();
    CHECK_EQ(hf_index_count(&engine->locks), 0);
    CHECK_EQ(hf_index_count(&engine->sets), 0);
    CHECK_EQ(hf_index_count(&engine->waiters), 0);
    CHECK_EQ(hf_index_count(&engine->holders), 0);
    CHECK_EQ(engine->parts.used + engine->parts.promised, 0);
    CHECK_EQ(engine->terms.used + engine->terms.promised, 0);
    CHECK_EQ(engine->marks.used + engine->marks.promised, 0);
    CHECK_EQ(engine->paths.used + engine->paths.promised, 0);
    CHECK_EQ(engine->trees.used + engine->trees.promised, 0);
    CHECK_EQ(engine->sets.slab.promised, 0);
    CHECK_EQ(engine->waiters.slab.promised, 0);
    CHECK_EQ(engine->holders.slab.promised, 0);
    CHECK_EQ(engine->locks.slab.promised, 0);
    CHECK_EQ(engine->due.heap.promised, 0);
    CHECK_EQ(engine->delays, 0);
    CHECK_EQ(engine->waited_parts + engine->waited_bytes, 0);
    CHECK_EQ(engine->promised_parts + engine->promised_bytes, 0);
}

/* The first command of each kind meets slabs that are not there yet; what the
 * later ones hand over has its memory. */
TEST(every_allocation_of_every_command_may_fail)
{
    static const struct {
        const char *command;
        enum hold_code code;
        unsigned answers;
    } rows[] = {
        {"SESSION OPEN TTL 9000 NAME " LONG_TEXT, HOLD_OK, 0}, /* 1 */
        {"SESSION OPEN TTL 9000 BIND", HOLD_OK, 0},            /* 2 */
        {"LOCK door OWNER ann SESSION 2 NOTE " LONG_TEXT " DELAY 9 MAXHOLD 99",
         HOLD_OK, 0},                                               /* 3 */
        {"LOCK hall OWNER ann SHARED REQ q2", HOLD_OK, 0},          /* 4 */
        {"LOCK pool OWNER ann PERMITS 2 OF 3 DELAY 9", HOLD_OK, 0}, /* 5 */
        {"LOCK door OWNER bob SESSION 1 FOREVER DELAY 7 NOTE n REQ q3",
         HOLD_WAITING, 0}, /* 6 */
        {"LOCK door OWNER bob SESSION 1 FOREVER DELAY 7 NOTE n REQ q3",
         HOLD_WAITING, 1}, /* 7: moved */
        {"LOCKSET OWNER eve SESSION 1 NAME door NAME " LONG_TEXT
         " NAME x SHARED DELAY 7 NOTE " LONG_TEXT " WAIT 900 REQ q4",
         HOLD_WAITING, 0}, /* 8 */
        {"LOCKSET OWNER kim NAME a NAME b SHARED DELAY 5 REQ q5", HOLD_OK,
         0}, /* 9, 10 */
        {"LOCKSET OWNER kim NAME a NAME b SHARED TTL 9", HOLD_OK, 0}, /* 11 */
        {"LOCK a OWNER ann WAIT 900", HOLD_WAITING, 0},               /* 12 */
        {"LOCK hall OWNER lea WAIT 900 REQ q6", HOLD_WAITING, 0},     /* 13 */
        {"LOCK hall OWNER lea WAIT 900 REQ q7", HOLD_WAITING, 0},     /* 14 */
        {"LOCKSET OWNER ann NAME b NAME hall WAIT 9 REQ q8", HOLD_STATE, 0},
        {"LOCK hall OWNER kim WAIT 900 REQ q9", HOLD_DEADLOCK, 0},
        {"LOCK door OWNER zoe SESSION 1 WAIT 9 DEADLOCK WOUNDWAIT REQ q10",
         HOLD_WAITING, 0}, /* wounds */
        {"RENEW door 3 TTL 50 REQ q11", HOLD_OK, 0},
        {"RENEWSET 9 TTL 5000 REQ q12", HOLD_OK, 0},
        {"DOWNGRADE hall 4 REQ q13", HOLD_OK, 0},
        {"UNLOCKSET 9 REQ q14", HOLD_OK, 0},
        {"UNLOCKSET 9 REQ q15", HOLD_OK, 1},
        {"UNLOCK hall 4 DONE 500 RESULT " LONG_TEXT, HOLD_OK, 2},
        {"LOCK hall OWNER eve REQ q16", HOLD_DONE, 0},
        {"REVOKE pool 5 REQ q17", HOLD_OK, 0}, /* closed for a while */
        {"LOCK pool OWNER eve SESSION 1 FOREVER", HOLD_WAITING, 0},
        {"SESSION KEEP 1", HOLD_OK, 0},
        {"UNLOCK door 3 REQ q19", HOLD_OK, 1},
        {"SESSION CLOSE 1 REQ q20", HOLD_OK, 3},
    };

    engine_start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hold_command c = *engine_parse("%s", rows[i].command);
        const struct hold_out *out = starve(&c);
        if (out->code != rows[i].code || out->answer_count != rows[i].answers)
            test_fail(__FILE__, __LINE__, "%s: %s | %s", rows[i].command,
                      engine_reply_text(out), engine_answers_text(out));
        CHECK_ENGINE();
    }
    hf_memory_fail_after(0);
    for (int i = 0; i < 3; i++) {
        engine_now_us += 3600000 * MS;
        engine_tick();
    }
    hf_memory_fail_never();
    CHECK_EQ(hf_index_count(&engine->sessions), 1); /* bound */
    engine_do("SESSION CLOSE 2");
    expect_nothing_left();
}

TEST(every_allocation_of_a_tree_may_fail)
{
    static const struct {
        const char *command;
        enum hold_code code;
        unsigned answers;
    } rows[] = {
        {"LOCK a/b/c OWNER ann", HOLD_OK, 0},                       /* 1 */
        {"LOCK a OWNER bob TREE WAIT 900 REQ q1", HOLD_WAITING, 0}, /* 2 */
        {"LOCK a OWNER eve TREE REQ q2", HOLD_BUSY, 0},
        {"LOCK a/b/c OWNER eve SHARED WAIT 900", HOLD_WAITING, 0},
        {"LOCK a/" LONG_TEXT "/x OWNER kim REQ q3", HOLD_BUSY, 0},
        {"UNLOCK a/b/c 1", HOLD_OK, 1}, /* 4, 5 */
        {"LOCKSET OWNER lee NAME a/b NAME b/1 TREE DELAY 9 WAIT 900 REQ q4",
         HOLD_WAITING, 0}, /* 6 */
        {"DOWNGRADE a 5", HOLD_OK, 1},
        {"UNLOCK a 5", HOLD_OK, 0},
        {"UNLOCK a/b/c 8", HOLD_OK, 1},
        {"REVOKE b/1 11", HOLD_OK, 0}, /* names below are closed */
        {"LOCK b/1/2 OWNER mia FOREVER REQ q5", HOLD_WAITING, 0},
    };

    engine_start();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct hold_command c = *engine_parse("%s", rows[i].command);
        const struct hold_out *out = starve(&c);
        if (out->code != rows[i].code || out->answer_count != rows[i].answers)
            test_fail(__FILE__, __LINE__, "%s: %s | %s | %s", rows[i].command,
                      engine_reply_text(out), engine_answers_text(out),
                      engine_events_text(out));
        CHECK_ENGINE();
    }
    hf_memory_fail_after(0);
    engine_now_us += 10 * MS;
    CHECK_EQ(engine_tick()->answer_count, 1);
    engine_now_us += 3600000 * MS;
    engine_tick();
    hf_memory_fail_never();
    expect_nothing_left();
}

/* All of it is ended by time, by its session, by a restart or by a flush. */
TEST(many_prepared_commands_are_applied_and_end_without_memory)
{
    enum { COUNT = 1500 };
    static struct hold_command commands[COUNT];
    static char names[COUNT][3][24];

    for (int round = 0; round < 4; round++) {
        engine_start();
        engine_session(5000);
        for (unsigned i = 0; i < COUNT; i++) {
            struct hold_command *c = &commands[i];
            *c = *engine_parse("LOCK x OWNER o%u SESSION 1 WAIT 900 DELAY 50 "
                               "NOTE note DEADLOCK NONE",
                               i % 7);
            c->owner = hf_bytes_text(i % 2 != 0 ? "ann" : "bob");
            c->note = hf_bytes_text("a note");
            if (i % 3 == 0)
                c->kind = HOLD_LOCKSET;
            if (i % 5 == 0)
                c->flags |= HOLD_TREE;
            for (unsigned k = 0; k < 3; k++) {
                snprintf(names[i][k], sizeof names[i][k], "%u/%u", i % 211 / 3,
                         k);
                if (i % 3 == 0)
                    CHECK_EQ(
                        hold_add_name(c, hf_bytes_text(names[i][k]), k == 1),
                        HF_OK);
            }
            c->name =
                i % 3 == 0 ? hf_bytes("", 0) : hf_bytes_text(names[i][i % 3]);
            CHECK_EQ(hold_prepare(engine, c), HF_OK);
        }
        for (unsigned i = 0; i < COUNT; i++)
            (void)apply_starved(&commands[i]);
        CHECK_ENGINE();
        hf_memory_fail_after(0);
        if (round == 0)
            engine_do("SESSION CLOSE 1");
        else if (round == 1)
            engine_restart(5);
        else if (round == 2)
            engine_flush();
        for (int i = 0; i < 100; i++) {
            engine_now_us += 100 * MS;
            engine_tick();
        }
        hf_memory_fail_never();
        expect_nothing_left();
        CHECK_EQ(hf_index_count(&engine->sessions), 0);
    }
}

TEST(a_forgotten_preparation_leaves_nothing_promised)
{
    engine_start();
    struct hold_command c = *engine_parse(
        "LOCKSET OWNER ann NAME a NAME b WAIT 9 DELAY 9 NOTE x REQ q");
    for (int i = 0; i < 100000; i++) {
        CHECK_EQ(hold_prepare(engine, &c), HF_OK);
        hold_forget(engine, &c);
        hf_memory_fail_after(0); /* the first one has made room */
    }
    hf_memory_fail_never();
    expect_nothing_left();
}

static char longest[HOLD_NAME_MAX + 1];

static struct hf_bytes of_length(size_t len)
{
    memset(longest, 'x', HOLD_NAME_MAX);
    return hf_bytes(longest, len);
}

/* What is kept for a REQ, and what a circle of the longest names takes. */
TEST(the_longest_texts_fit_what_was_promised_for_them)
{
    engine_start();
    struct hold_command hold = *engine_parse("LOCK n OWNER o NOTE t");
    hold.name = of_length(HOLD_NAME_MAX);
    hold.owner = of_length(HOLD_OWNER_MAX);
    hold.note = of_length(HOLD_NOTE_MAX);
    CHECK_EQ(starve(&hold)->code, HOLD_OK);
    static struct hold_command c;
    c = *engine_parse("LOCKSET OWNER o NAME a REQ q1");
    CHECK_EQ(hold_add_name(&c, hold.name, false), HF_OK);
    CHECK_EQ(starve(&c)->code, HOLD_BUSY);
    c.request = hf_bytes_text("q2");
    c.owner = hold.owner;
    CHECK_EQ(starve(&c)->code, HOLD_STATE);
    c = *engine_parse("UNLOCK n 1 DONE 900 RESULT t REQ q3");
    c.name = hold.name;
    c.note = hold.note;
    CHECK_EQ(starve(&c)->code, HOLD_OK);
    c = *engine_parse("LOCKSET OWNER o NAME a REQ q4");
    CHECK_EQ(hold_add_name(&c, hold.name, false), HF_OK);
    CHECK_EQ(starve(&c)->code, HOLD_DONE);
    EXPECT_BEGINS(engine_apply(&c), "DONE name=xxx"); /* kept whole */
    hold.request = hf_bytes_text("q5");
    CHECK_EQ(starve(&hold)->code, HOLD_DONE);
    CHECK_EQ(reply_get_text(engine_apply(&hold)->body, FIELD_RESULT).len,
             HOLD_NOTE_MAX);
}

/* Owner and name i are i, and as long as can be. */
static const struct hold_out *lock_longest(unsigned name, unsigned owner,
                                           const char *terms)
{
    static char names[2][HOLD_NAME_MAX + 1];
    static struct hold_command c;

    memset(names, 'x', sizeof names);
    c = *engine_parse("LOCK n OWNER o NOTE t %s", terms);
    names[0][0] = (char)(1 + name);
    names[1][0] = (char)(1 + owner);
    c.name = hf_bytes(names[0], HOLD_NAME_MAX);
    c.owner = hf_bytes(names[1], HOLD_OWNER_MAX);
    c.note = hf_bytes(names[1], HOLD_NOTE_MAX);
    return engine_apply(&c);
}

TEST(a_circle_of_the_longest_texts_is_told)
{
    engine_start();
    for (unsigned i = 0; i < 100; i++)
        CHECK_EQ(lock_longest(i, i, "")->code, HOLD_OK);
    for (unsigned i = 0; i < 99; i++)
        CHECK_EQ(lock_longest(i + 1, i, "FOREVER")->code, HOLD_WAITING);
    const struct hold_out *out = lock_longest(0, 99, "FOREVER");
    CHECK_EQ(out->code, HOLD_DEADLOCK);
    CHECK_EQ(reply_get_number(out->body, FIELD_LENGTH), 100);
    CHECK(out->body.len > 64 * (HOLD_NAME_MAX + 2 * HOLD_OWNER_MAX));
}

TEST(a_lock_with_the_longest_texts_is_shown)
{
    engine_start();
    for (unsigned i = 0; i < 120; i++)
        CHECK_EQ(lock_longest(0, i, "SHARED")->code, HOLD_OK);
    for (unsigned i = 120; i < 240; i++)
        CHECK_EQ(lock_longest(0, i, "FOREVER DEADLOCK NONE")->code,
                 HOLD_WAITING);
    struct hold_command c = {.kind = HOLD_LOCK_INFO, .now_us = engine_now_us};
    c.name = of_length(HOLD_NAME_MAX);
    longest[0] = 1;
    const struct hold_out *out = hold_ask(engine, &c);
    CHECK_EQ(out->code, HOLD_OK);
    CHECK(out->body.len > 200 * 2 * HOLD_OWNER_MAX);
    CHECK(out->body.len < 240 * 2 * HOLD_OWNER_MAX); /* a hundred of each */
}

/* ---- What is idle costs nothing. ---- */

TEST(nothing_is_due_when_nothing_is_held)
{
    engine_start();
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    engine_do("SESSION OPEN TTL 500"); /* 1 */
    engine_do("LOCK a OWNER ann SESSION 1");
    engine_do("LOCK b OWNER ann TTL 700");
    engine_do("LOCKSET OWNER ann NAME c NAME d");
    engine_do("LOCK b OWNER bob WAIT 600"); /* 6 */
    CHECK(hold_next_due_us(engine) == engine_now_us + 500 * MS);
    engine_abandon(6);
    engine_do("UNLOCK b 3");
    engine_do("UNLOCKSET 4");
    engine_do("SESSION CLOSE 1");
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    CHECK_EQ(hold_due_us(engine), UINT64_MAX);
    expect_nothing_left();
    engine_now_us += 1000000 * MS;
    const struct hold_out *out = engine_tick();
    CHECK_EQ(out->event_count + out->answer_count, 0);
}

/* A name with a '/' is in the ordered index, too. */
TEST(a_place_in_the_order_of_names_costs_little)
{
    const unsigned count = 100000;
    size_t used[2];

    for (unsigned round = 0; round < 2; round++) {
        engine_start();
        size_t before = memory_bytes();
        for (unsigned i = 0; i < count; i++) {
            char name[32];
            snprintf(name, sizeof name, "%c%cname-%07u", 'a', "-/"[round], i);
            engine_lock(name, "owner-of-16bytes", 30000, 0);
        }
        used[round] = memory_bytes() - before;
    }
    CHECK(used[1] > used[0]);
    CHECK(used[1] - used[0] < 48ull * count);
}

TEST(a_million_names_that_were_held_cost_nothing_and_make_room)
{
    const unsigned count = test_is_sanitized() ? 100000 : 1000000;
    size_t after_first = 0;

    engine_start();
    for (unsigned round = 0; round < 2; round++) {
        size_t before = memory_bytes();
        for (unsigned i = 0; i < count; i++) { /* other names each time */
            char name[32];
            snprintf(name, sizeof name, "%u-name-%07u", round, i);
            engine_lock(name, "owner-of-16bytes", 30000, 0);
        }
        if (!test_is_sanitized())
            CHECK(memory_bytes() - before < 232ull * count);
        for (unsigned i = 0; i < count; i++) {
            char name[32];
            snprintf(name, sizeof name, "%u-name-%07u", round, i);
            CHECK_EQ(engine_unlock(name, round * 2ull * count + 1 + i)->code,
                     HOLD_OK);
        }
        CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
        expect_nothing_left();
        if (round == 0)
            after_first = memory_bytes();
        else
            CHECK_EQ(memory_bytes(), after_first);
    }
    struct hold_counts counts;
    hold_count(engine, &counts);
    CHECK_EQ(counts.locks + counts.waiters + counts.sets + counts.sessions, 0);
}

/* What the second wait was promised comes back: the grant has its own. */
TEST(a_wait_that_re_enters_leaves_nothing_promised)
{
    engine_start();
    engine_do("LOCK b OWNER zoe");
    for (int i = 0; i < 2; i++)
        engine_do("LOCKSET OWNER ann NAME a NAME b WAIT 900 DELAY 50 NOTE x");
    CHECK_EQ(engine_do("UNLOCK b 1")->answer_count, 2);
    engine_do("UNLOCKSET 5");
    engine_do("UNLOCKSET 5");
    expect_nothing_left();
}

/* With a name and an owner of 16 bytes, whatever the number of locks. */
TEST(a_held_lock_takes_less_than_232_bytes)
{
    static const size_t sizes[] = {1000, 3000, 10000, 30000, 100000, 300000};
    struct hold_counts counts;
    char name[17];
    char owner[17];
    size_t at = 0;

    engine_start();
    hold_count(engine, &counts);
    size_t before = counts.memory_bytes;
    for (size_t count = 1; at < sizeof sizes / sizeof *sizes; count++) {
        snprintf(name, sizeof name, "l%015zu", count);
        snprintf(owner, sizeof owner, "o%015zu", count);
        engine_lock(name, owner, 100000000, 0);
        if (count != sizes[at])
            continue;
        at++;
        hold_count(engine, &counts);
        CHECK_EQ(counts.locks, count);
        CHECK((counts.memory_bytes - before) / count < 232);
    }
}

/* Many at once, so that the slab and the heap both grow, the heap several
 * times. */
TEST(marks_are_all_promised_or_none)
{
    const uint32_t count = 50000;
    bool promised = false;

    for (uint64_t memory = 0; !promised; memory++) {
        engine_start();
        hf_memory_fail_after(memory);
        enum hf_status status = mark_promise(engine, count);
        hf_memory_fail_never();
        promised = status == HF_OK;
        CHECK(promised || status == HF_NOMEM);
        CHECK_EQ(engine->delays, promised ? count : 0);
        CHECK_EQ(engine->marks.promised, engine->delays);
        CHECK_EQ(engine->due.heap.promised, engine->delays);
        mark_unpromise(engine, engine->delays);
        expect_nothing_left();
    }
}

/* A refusal names one related name, however many names the set has. */
TEST(a_set_of_paths_is_promised_room_for_one_related_name)
{
    static char line[HOLD_SET_MAX * 16 + 64];
    size_t len = 0;

    engine_start();
    for (unsigned i = 0; i < HOLD_SET_MAX; i++)
        len += (size_t)snprintf(line + len, sizeof line - len, " NAME a/%u", i);
    EXPECT_BEGINS(engine_do("LOCKSET OWNER ann%s TREE REQ q1", line), "OK ");
    CHECK(engine->spent.reply_len > 2 * HOLD_NAME_MAX + HOLD_OWNER_MAX);
    CHECK(engine->spent.reply_len < 3 * HOLD_NAME_MAX + HOLD_OWNER_MAX);
}
