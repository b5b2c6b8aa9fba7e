/* hold_explain.c - tests of EXPLAIN: what happened to a lock, and why. */
#include "support/engine.h"

TEST_ONE_THREAD;

#define SHOWN_MAX 32u

static void start(uint32_t count)
{
    engine_start();
    CHECK_EQ(hold_keep_past(engine, count), HF_OK);
}

static struct hf_bytes explained(const char *name)
{
    const struct hold_out *out = engine_do("EXPLAIN %s", name);

    CHECK_EQ(out->code, HOLD_OK);
    return out->body;
}

static uint32_t count_of(struct hf_bytes body)
{
    size_t at = 0;

    return reply_next(body, &at).count;
}

/* Of the entry so far back: what, owner, why and by, as far as it has them. */
static const char *entry_text(const char *name, uint32_t back)
{
    static char text[1200];
    struct hf_bytes body = explained(name);
    size_t at = 0;
    struct hf_buf out = {.data = text, .cap = sizeof text};

    CHECK(reply_next(body, &at).count > back);
    while (back-- > 0)
        reply_skip(body, &at);
    uint32_t fields = reply_next(body, &at).count;
    for (; fields > 0; fields--) {
        enum hold_field field = reply_next_field(body, &at);
        struct reply_node node = reply_next(body, &at);
        char *place = text + out.len;
        size_t left = sizeof text - out.len;
        int bytes = 0;
        if (node.kind == REPLY_TEXT && field != FIELD_MODE && node.text.len > 0)
            bytes = snprintf(place, left, "%s%s=%.*s", out.len > 0 ? " " : "",
                             hold_field_name(field), (int)node.text.len,
                             node.text.data);
        CHECK(bytes >= 0 && (size_t)bytes < left);
        out.len += (size_t)bytes;
    }
    text[out.len] = '\0';
    return text;
}

#define EXPECT_BACK(name, back, expected)           \
    do {                                            \
        const char *text_ = entry_text(name, back); \
        CHECK_TEXT(text_, strlen(text_), expected); \
    } while (0)
#define EXPECT_LAST(name, expected) EXPECT_BACK(name, 0, expected)

TEST(all_of_an_entry_is_told)
{
    start(16);
    engine_do("LOCK pool OWNER ann PERMITS 2 OF 4 TTL 500");
    engine_now_us += 7 * MS;
    engine_do("UNLOCK pool 1");
    EXPECT(engine_do("EXPLAIN pool"),
           "OK {what=lock_released seq=2 age_ms=0 owner=ann token=1 "
           "mode=counting tree=0 why=released by=} "
           "{what=lock_granted seq=1 age_ms=7 owner=ann token=1 "
           "mode=counting tree=0 why= by=}");
    EXPECT(engine_do("EXPLAIN other"), "OK ");
}

TEST(how_a_release_came_about_is_told)
{
    start(64);
    engine_do("LOCK door OWNER ann");
    engine_do("LOCK door OWNER ann");
    EXPECT_LAST("door", "what=lock_reentered owner=ann");
    engine_do("UNLOCK door 1");
    EXPECT_LAST("door", "what=lock_released owner=ann why=still_held");
    engine_do("RENEW door 1 TTL 900");
    EXPECT_LAST("door", "what=lock_renewed owner=ann");
    engine_do("UNLOCK door 1 DONE 5000 RESULT yes");
    EXPECT_LAST("door", "what=lock_released owner=ann why=done");
    uint64_t token = engine_token(engine_do("LOCKSET OWNER eve NAME a NAME b"));
    engine_do("LOCKSET OWNER eve NAME a NAME b");
    engine_do("UNLOCKSET %d", (int)token);
    EXPECT_LAST("a", "what=lock_released owner=eve why=still_held");
    engine_do("UNLOCKSET %d", (int)token);
    EXPECT_LAST("a", "what=lock_released owner=eve why=released");
    EXPECT_LAST("b", "what=lock_released owner=eve why=released");
}

TEST(keys_tell_that_they_were_replaced_or_deleted)
{
    start(64);
    engine_do("SET key ann");
    engine_do("SET key bob");
    EXPECT_LAST("key", "what=lock_granted owner=bob");
    EXPECT_BACK("key", 1, "what=lock_lost owner=ann why=replaced");
    engine_do("DEL key");
    EXPECT_LAST("key", "what=lock_released owner=bob why=deleted");
}

TEST(how_a_wait_ended_is_told)
{
    start(64);
    uint64_t session = engine_session(9000); /* 1 */
    engine_do("LOCK door OWNER ann TTL 90000");
    engine_do("LOCK door OWNER bob WAIT 100 SHARED"); /* 3 */
    EXPECT_LAST("door", "what=queued owner=bob");
    engine_now_us += 100 * MS;
    engine_tick();
    EXPECT_LAST("door", "what=timeout owner=bob");
    engine_do("LOCK door OWNER bob FOREVER"); /* 4 */
    engine_abandon(4);
    EXPECT_LAST("door", "what=left owner=bob why=gone");
    engine_do("LOCK door OWNER eve SESSION %d FOREVER", (int)session);
    engine_do("SESSION CLOSE %d", (int)session);
    EXPECT_LAST("door", "what=wait_lost owner=eve why=session");
    engine_do("LOCK door OWNER kim FOREVER");
    engine_do("UNLOCK door 2 DONE 5000");
    EXPECT_LAST("door", "what=left owner=kim why=done");
    EXPECT_BACK("door", 2, "what=queued owner=kim");
    EXPECT_BACK("door", 1, "what=lock_released owner=ann why=done");
}

TEST(a_session_that_ends_and_one_that_is_revoked_are_told_apart)
{
    start(64);
    engine_session(9000);
    engine_session(9000);
    engine_do("LOCK a OWNER ann SESSION 1");
    engine_do("LOCKSET OWNER bob SESSION 2 NAME b NAME c");
    uint64_t token = engine_token(engine_do("LOCK d OWNER eve TTL 20000"));
    engine_do("SESSION CLOSE 1");
    EXPECT_LAST("a", "what=lock_lost owner=ann why=session");
    engine_now_us += 9000 * MS;
    for (int i = 0; i < 4; i++)
        engine_tick();
    EXPECT_LAST("b", "what=lock_lost owner=bob why=session");
    EXPECT_LAST("c", "what=lock_lost owner=bob why=session");
    engine_do("REVOKE d %d", (int)token);
    EXPECT_LAST("d", "what=lock_lost owner=eve why=revoked");
    token = engine_token(engine_do("LOCKSET OWNER kim NAME e NAME f"));
    engine_do("REVOKE f %d", (int)token);
    EXPECT_LAST("e", "what=lock_lost owner=kim why=revoked");
}

TEST(what_ends_by_its_time_says_which_time_that_was)
{
    start(64);
    engine_do("LOCK a OWNER ann TTL 500");
    engine_do("LOCKSET OWNER ann NAME b NAME c TTL 500");
    engine_do("LOCK d OWNER ann TTL 500 MAXHOLD 600");
    engine_do("LOCK e OWNER ann TTL 500 MAXHOLD 500");
    engine_do("LOCK f OWNER ann TTL 900"); /* 6 */
    engine_do("REVOKE f 6 GRACE 400");
    EXPECT_LAST("f", "what=lock_wounded owner=ann why=revoked");
    engine_now_us += 500 * MS;
    for (int i = 0; i < 4; i++)
        engine_tick();
    EXPECT_LAST("a", "what=lock_expired owner=ann why=ttl");
    EXPECT_LAST("b", "what=lock_expired owner=ann why=ttl");
    EXPECT_LAST("c", "what=lock_expired owner=ann why=ttl");
    EXPECT_LAST("d", "what=lock_expired owner=ann why=ttl");
    EXPECT_LAST("e", "what=lock_expired owner=ann why=maxhold");
    EXPECT_LAST("f", "what=lock_expired owner=ann why=revoked");
}

TEST(who_wounded_a_lock_is_told_and_that_it_ended_so)
{
    start(64);
    engine_bound("wound_grace_ms", 300);
    engine_session(90000);
    engine_session(90000);
    engine_do("LOCK door OWNER ann SESSION 2");
    engine_do("LOCKSET OWNER ann SESSION 2 NAME a NAME b");
    engine_do("LOCK door OWNER old SESSION 1 FOREVER DEADLOCK WOUNDWAIT");
    EXPECT_LAST("door", "what=queued owner=old");
    EXPECT_BACK("door", 1, "what=lock_wounded owner=ann why=wounded by=old");
    engine_do("LOCK b OWNER old SESSION 1 FOREVER DEADLOCK WOUNDWAIT");
    EXPECT_LAST("a", "what=lock_wounded owner=ann why=wounded by=old");
    engine_now_us += 300 * MS;
    for (int i = 0; i < 4; i++)
        engine_tick();
    EXPECT_LAST("door", "what=lock_granted owner=old");
    EXPECT_BACK("door", 1, "what=lock_expired owner=ann why=wounded");
    EXPECT_LAST("a", "what=lock_expired owner=ann why=wounded");
}

/* An image says that it was wounded or revoked, not which. */
TEST(what_was_wounded_before_an_image_ends_by_its_ttl)
{
    start(64);
    engine_do("LOCK door OWNER ann TTL 900");
    engine_do("REVOKE door 1 GRACE 400");
    engine_reload();
    CHECK_EQ(hold_keep_past(engine, 16), HF_OK);
    EXPECT(engine_do("RENEW door 1 TTL 900"), "OK safe_ms=400");
    engine_now_us += 400 * MS;
    engine_tick();
    EXPECT_LAST("door", "what=lock_expired owner=ann why=ttl");
}

TEST(a_deadlock_names_its_kind_and_whom_it_would_have_waited_for)
{
    start(64);
    engine_do("LOCK a OWNER ann");
    engine_do("LOCK b OWNER bob SHARED");
    engine_do("LOCK c OWNER eve");
    engine_do("LOCK b OWNER ann FOREVER");
    engine_do("LOCK c OWNER bob FOREVER");
    CHECK_EQ(engine_do("LOCK a OWNER eve SHARED WAIT 100")->code,
             HOLD_DEADLOCK);
    EXPECT_LAST("a", "what=deadlock owner=eve why=cycle by=ann");
    engine_session(9000);
    CHECK_EQ(
        engine_do("LOCK a OWNER kim SESSION 6 WAIT 100 DEADLOCK WAITDIE")->code,
        HOLD_DEADLOCK);
    EXPECT_LAST("a", "what=deadlock owner=kim why=younger by=ann");
    EXPECT_BACK("a", 1, "what=deadlock owner=eve why=cycle by=ann");
    EXPECT_BEGINS(
        engine_do("EXPLAIN a"),
        "OK {what=deadlock seq=6 age_ms=0 owner=kim token=0 "
        "mode=exclusive tree=0 why=younger by=ann} "
        "{what=deadlock seq=5 age_ms=0 owner=eve token=0 mode=shared ");
}

/* The ring is one for all locks: what happens to others drives out what
 * happened to this one. */
TEST(the_oldest_entries_make_room)
{
    start(8);
    engine_do("LOCK door OWNER ann TTL 90000"); /* 1 */
    for (int i = 0; i < 3; i++)
        engine_do("RENEW door 1 TTL 90000");
    CHECK_EQ(count_of(explained("door")), 4);
    for (int i = 0; i < 6; i++)
        engine_do("LOCK gate%d OWNER bob", i);
    CHECK_EQ(count_of(explained("door")), 2);
    EXPECT_BACK("door", 1, "what=lock_renewed owner=ann");
    engine_do("LOCK gate6 OWNER bob");
    CHECK_EQ(count_of(explained("door")), 1);
    engine_do("LOCK gate7 OWNER bob");
    CHECK_EQ(count_of(explained("door")), 0);
    for (int i = 0; i < 100; i++)
        engine_do("RENEW door 1 TTL 90000");
    CHECK_EQ(count_of(explained("door")), 8);
}

/* Who is named beside an entry stands behind it, and takes a place: at the end
 * of the ring the first. */
TEST(the_other_holder_is_told_also_where_the_ring_begins_again)
{
    for (int before = 0; before < 9; before++) {
        start(8);
        engine_session(90000);
        engine_do("LOCK door OWNER ann"); /* 2 */
        for (int i = 0; i < before; i++)
            engine_do("RENEW door 2 TTL 90000");
        engine_do("LOCK door OWNER eve SESSION 1 FOREVER DEADLOCK WOUNDWAIT");
        EXPECT_LAST("door", "what=queued owner=eve");
        EXPECT_BACK("door", 1,
                    "what=lock_wounded owner=ann why=wounded by=eve");
        CHECK_EQ(count_of(explained("door")),
                 before < 5 ? (unsigned)before + 3 : 7);
    }
}

TEST(so_many_entries_are_told_at_most)
{
    start(256);
    engine_do("LOCK door OWNER ann TTL 90000"); /* 1 */
    for (unsigned i = 1; i < SHOWN_MAX; i++)
        engine_do("RENEW door 1 TTL 90000");
    CHECK_EQ(count_of(explained("door")), SHOWN_MAX);
    EXPECT_BACK("door", SHOWN_MAX - 1, "what=lock_granted owner=ann");
    engine_do("RENEW door 1 TTL 90000");
    CHECK_EQ(count_of(explained("door")), SHOWN_MAX);
    EXPECT_BACK("door", SHOWN_MAX - 1, "what=lock_renewed owner=ann");
}

/* Names that begin alike and are as long, and longer ones, are other names. */
TEST(names_too_long_to_be_kept_whole_are_told_apart)
{
    char names[4][HOLD_NAME_MAX + 1] = {{0}};
    char owner[HOLD_OWNER_MAX + 1] = {0};

    start(64);
    memset(owner, 'o', HOLD_OWNER_MAX);
    for (unsigned i = 0; i < 4; i++)
        memset(names[i], 'n', i < 2 ? 60 : HOLD_NAME_MAX);
    names[1][59] = 'm';
    names[3][HOLD_NAME_MAX - 1] = 'm';
    for (unsigned i = 0; i < 4; i++)
        engine_do("LOCK %s OWNER %c%s TTL 90000", names[i], (char)('a' + i),
                  owner + 1);
    for (unsigned i = 0; i < 4; i++) {
        char text[100];
        CHECK_EQ(count_of(explained(names[i])), 1);
        snprintf(text, sizeof text, "what=lock_granted owner=%c%.44s",
                 (char)('a' + i), owner + 1); /* its first 45 bytes */
        EXPECT_LAST(names[i], text);
    }
    names[0][48] = '\0'; /* as long as what is kept */
    CHECK_EQ(count_of(explained(names[0])), 0);
}

TEST(without_a_ring_nothing_is_told)
{
    engine_start();
    engine_do("LOCK door OWNER ann");
    EXPECT(engine_do("EXPLAIN door"), "OK ");
    engine_stop();
}
