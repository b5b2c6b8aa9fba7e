/* hold_image_graph.c - tests of images of sessions, grants, sets and waits. */
#include "base/memory.h"
#include "support/image.h"
#include "support/server.h"

TEST_ONE_THREAD;

/* Each kind of grant, wait, mark and term. */
static void fill(void)
{
    engine_start();
    engine_do("SESSION OPEN TTL 9000 NAME worker");                  /* 1 */
    engine_do("SESSION OPEN TTL 8000 BIND");                         /* 2 */
    engine_do("LOCK door OWNER ann SESSION 1 NOTE mine");            /* 3 */
    engine_do("LOCK door OWNER ann SESSION 1");                      /* 4 */
    engine_do("LOCKSET OWNER bob NAME a NAME b SHARED DELAY 70");    /* 5, 6 */
    engine_do("LOCK b OWNER eve SHARED SESSION 2 MAXHOLD 7000");     /* 7 */
    engine_do("LOCK pool OWNER bob PERMITS 2 OF 5 TTL 6000");        /* 8 */
    engine_do("LOCK pool OWNER kim PERMITS 3 OF 5 TTL 6000");        /* 9 */
    engine_do("LOCK lid OWNER ann DELAY 3000");                      /* 10 */
    engine_do("REVOKE lid 10");                                      /* 12 */
    engine_do("LOCK job OWNER ann");                                 /* 13 */
    engine_do("UNLOCK job 13 DONE 4000 RESULT well");                /* 15 */
    engine_do("REVOKE pool 9 GRACE 5000");                           /* 16 */
    engine_do("LOCK door OWNER c1 FOREVER REQ q1");                  /* 17 */
    engine_do("LOCK door OWNER c2 WAIT 900 PRIORITY 1 DELAY 5");     /* 18 */
    engine_do("LOCKSET OWNER c3 NAME a NAME door FOREVER NOTE set"); /* 19 */
    engine_do("LOCK pool OWNER c4 PERMITS 1 OF 5 WAIT 800");         /* 20 */
    engine_do("LOCK b OWNER c5 SESSION 1 WAIT 800 DEADLOCK WAITDIE "
              "PRIORITY 2"); /* refused: bob's set is older */
    engine_do("LOCK b OWNER c6 SESSION 2 WAIT 700"); /* 21 */
    engine_do("LOCK b OWNER c7 SHARED WAIT 600");    /* 22 */
    CHECK_ENGINE();
}

/* What is told by the same commands, with and without an image between. */
static void go_on(char *out, size_t room)
{
    size_t len = 0;

    for (int i = 0; i < 12; i++) {
        const struct hold_out *got;
        if (i == 0)
            got = engine_do("UNLOCK door 3");
        else if (i == 1)
            got = engine_do("SESSION CLOSE 1");
        else if (i == 2)
            got = engine_do("RENEW pool 9 TTL 9000");
        else if (i == 3)
            got = engine_do("LOCK door OWNER c1 FOREVER REQ q1");
        else
            got = engine_tick();
        len += (size_t)snprintf(
            out + len, room - len, "%s | %s | %s\n", engine_reply_text(got),
            engine_answers_text(got), engine_events_text(got));
        engine_now_us += i < 3 ? 0 : 1000 * MS;
        CHECK_ENGINE();
    }
    CHECK(len < room);
}

TEST(a_loaded_graph_goes_on_as_the_saved_one_would)
{
    static char expected[32768];
    static char found[32768];

    fill();
    go_on(expected, sizeof expected);
    fill();
    engine_reload();
    go_on(found, sizeof found);
    CHECK_TEXT(found, strlen(found), expected);
    fill();
    engine_reload();
    engine_reload();
    go_on(found, sizeof found);
    CHECK_TEXT(found, strlen(found), expected);
}

TEST(every_change_to_the_graph_changes_the_digest)
{
    static const char *const commands[] = {
        "SESSION KEEP 1",         "RENEW pool 8 TTL 9",
        "REVOKE pool 8 GRACE 9",  "UNLOCK pool 9",
        "RENEWSET 5 TTL 9",       "LOCKSET OWNER bob NAME a NAME b SHARED",
        "LOCK b OWNER c8 WAIT 9", "LOCK b OWNER c8 WAIT 9 PRIORITY 1"};
    enum { COUNT = sizeof commands / sizeof commands[0] };
    uint64_t seen[COUNT + 2];

    fill();
    seen[0] = hold_digest(engine);
    engine_left(2, 2);
    seen[1] = hold_digest(engine);
    for (unsigned i = 0; i < COUNT; i++) {
        engine_do("%s", commands[i]);
        seen[i + 2] = hold_digest(engine);
        for (unsigned k = 0; k < i + 2; k++)
            CHECK(seen[i + 2] != seen[k]);
    }
    CHECK(seen[0] != seen[1]);
}

/* The order in which locks came to be is in no entry. */
TEST(equal_graphs_have_equal_digests_however_they_were_reached)
{
    engine_start();
    engine_do("LOCK x OWNER ann");
    engine_do("LOCK a OWNER ann");
    engine_do("UNLOCK x 1");
    engine_do("LOCKSET OWNER bob NAME b NAME c");
    uint64_t digest = hold_digest(engine);
    engine_start();
    engine_do("LOCK b OWNER kim");
    engine_do("LOCK a OWNER ann");
    engine_do("UNLOCK b 1");
    engine_do("LOCKSET OWNER bob NAME b NAME c");
    CHECK(hold_digest(engine) == digest);
}

TEST(a_graph_has_the_same_digest_in_every_version)
{
    fill();
    CHECK(hold_digest(engine) == 0x86af79aaaad90809);
}

/* A cut image is refused, or is a shorter one at the end of an entry. */
TEST(every_truncation_is_refused_or_ends_behind_an_entry)
{
    char error[256];
    size_t step = test_is_sanitized() ? 3 : 1;
    unsigned refused = 0;

    fill();
    save();
    CHECK_EQ(piece_count, 1);
    for (size_t cut = 0; cut < image.len; cut += step) {
        struct hold_engine *other = hold_new((struct hf_hash_seed){{5, 6}});
        enum hf_status status = load_guarded(other, cut);
        if (status == HF_OK)
            hold_check(other, error); /* wrong or not, it must not crash */
        refused += status != HF_OK;
        CHECK(status == HF_OK || status == HF_CORRUPT);
        hold_free(other);
    }
    CHECK(refused > image.len / step / 2);
}

/* The journal's checksum keeps such images away; still nothing may crash. */
TEST(every_flipped_bit_is_refused_or_harmless)
{
    char error[256];
    size_t step = test_is_sanitized() ? 31 : 1; /* all bits, too */

    fill();
    save();
    for (size_t bit = 0; bit < image.len * 8; bit += step) {
        struct hold_engine *other = hold_new((struct hf_hash_seed){{5, 6}});
        image.data[bit / 8] = (char)(image.data[bit / 8] ^ 1 << bit % 8);
        enum hf_status status = load(other);
        CHECK(status == HF_OK || status == HF_CORRUPT);
        if (status == HF_OK)
            hold_check(other, error);
        hold_free(other);
        image.data[bit / 8] = (char)(image.data[bit / 8] ^ 1 << bit % 8);
    }
}

TEST(loading_without_memory_says_so_at_every_allocation)
{
    enum hf_status status = HF_NOMEM;

    fill();
    save();
    for (uint64_t allowed = 0; status == HF_NOMEM; allowed++) {
        struct hold_engine *other = hold_new((struct hf_hash_seed){{5, 6}});
        CHECK(other != NULL);
        hf_memory_fail_after(allowed);
        status = load(other);
        hf_memory_fail_never();
        if (status == HF_OK)
            CHECK(hold_digest(other) == hold_digest(engine));
        hold_free(other);
    }
    CHECK_EQ(status, HF_OK);
}

/* Each comes last in the image of all that were added before, or last of its
 * kind. */
TEST(what_is_in_an_image_twice_is_refused)
{
    static const struct {
        const char *command;
        char kind;
    } rows[] = {{"SESSION OPEN TTL 9000", 'S'},
                {"LOCK a OWNER ann", 'G'},
                {"LOCK b OWNER ann SHARED", 'G'},
                {"LOCK c OWNER ann PERMITS 1 OF 9", 'G'},
                {"UNLOCK b 3 DONE 9000", 'M'},
                {"LOCKSET OWNER ann NAME x NAME y SHARED", 'T'},
                {"LOCK a OWNER bob WAIT 900", 'W'}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        engine_start();
        save();
        size_t head = image.len;
        for (size_t k = 0; k <= i; k++)
            engine_do("%s", rows[k].command);
        save();
        unsigned found = 0;
        for (size_t at = head; at < image.len; at++) {
            if (image.data[at] != rows[i].kind)
                continue;
            struct hold_engine *other = hold_new((struct hf_hash_seed){{3, 4}});
            CHECK_EQ(load(other), HF_OK);
            found += hold_load(other, hf_bytes(image.data + at,
                                               image.len - at)) == HF_CORRUPT;
            hold_free(other);
        }
        CHECK(found > 0);
    }
}

/* What belongs to a session names it by its id; sessions come first. */
TEST(what_belongs_to_a_session_that_is_not_there_is_refused)
{
    engine_start();
    engine_session(9000);
    engine_do("LOCK door OWNER ann SESSION 1");
    save();
    size_t grant = 0;
    while (image.data[grant] != 'G' || hf_get_u64(image.data + grant + 1) != 2)
        grant++;
    char *session = image.data + grant + 1 + 10 * 8;
    CHECK_EQ(hf_get_u64(session), 1);
    for (unsigned bit = 0; bit < 64; bit++) {
        struct hold_engine *other = hold_new((struct hf_hash_seed){{3, 4}});
        hf_put_u64(session, 1 ^ 1ull << bit);
        CHECK_EQ(load(other), bit == 0 ? HF_OK : HF_CORRUPT); /* 0: none */
        hold_free(other);
    }
}

/* More than a piece holds of each kind. */
TEST(large_graphs_come_in_pieces)
{
    char note[200];

    memset(note, 'n', sizeof note);
    engine_start();
    engine_session(9000000);
    engine_do("LOCK door OWNER ann");
    for (unsigned i = 0; i < 2000; i++) {
        engine_do("LOCK l%u OWNER ann SESSION 1 NOTE %.*s", i, 200, note);
        engine_do("LOCKSET OWNER ann NAME s%u NAME t%u SHARED NOTE %.*s", i, i,
                  200, note);
        engine_do("LOCK door OWNER w%u FOREVER DEADLOCK NONE NOTE %.*s", i, 200,
                  note);
        engine_do("SESSION OPEN TTL 9000 NAME %.*s", 200, note);
        engine_do("LOCK m%u OWNER ann", i);
        engine_do("UNLOCK m%u %llu DONE 900 RESULT %.*s", i,
                  (unsigned long long)hold_seq(engine), 200, note);
    }
    save();
    CHECK(piece_count > 5);
    engine_reload();
    EXPECT_BEGINS(engine_do("SESSION INFO 1"),
                  "OK session=1 name= ttl_ms=9000000 expires_ms=9000000 "
                  "bound=0 locks=2000 waits=0");
}

/* An image has the locks of a session in any order. */
TEST(a_session_that_was_loaded_ends_its_parts_oldest_first)
{
    char events[200] = "";

    engine_start();
    engine_do("SESSION OPEN TTL 9000"); /* 1 */
    for (int i = 0; i < 5; i++)
        engine_do("LOCK n%d OWNER ann", i);
    for (int i = 0; i < 5; i++)
        engine_do("UNLOCK n%d %d", (i * 3) % 5, 2 + (i * 3) % 5);
    engine_do("LOCKSET OWNER ann SESSION 1 NAME s NAME t"); /* 12 */
    for (int i = 0; i < 5; i++)
        engine_do("LOCK n%d OWNER ann SESSION 1", i);   /* 14 to 18 */
    engine_do("LOCK n0 OWNER bob SESSION 1 WAIT 9000"); /* 19 */
    engine_reload();
    CHECK_ENGINE();
    engine_now_us += 9000 * MS;
    const struct hold_out *out = engine_tick();
    for (size_t i = 0; i < out->event_count; i++) {
        size_t len = strlen(events);
        snprintf(events + len, sizeof events - len, " %.*s",
                 HF_SHOW(out->events[i].name));
    }
    CHECK_TEXT(events, strlen(events), " 1 s t n0 n1 n2 n3 n4");
    CHECK_ENGINE();
}
