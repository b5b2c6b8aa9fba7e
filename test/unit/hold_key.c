/* hold_key.c - tests of locks as keys of Redis. */
#include "hold/state.h"
#include "support/starve.h"

TEST_ONE_THREAD;

TEST(set_takes_a_lock_whose_owner_is_the_value)
{
    engine_start();
    const struct hold_out *out = engine_do("SET door ann PX 500");
    EXPECT(out, "OK OK");
    EXPECT_EVENTS(out, "1 LOCK_GRANTED door");
    EXPECT(engine_do("GET door"), "OK ann");
    EXPECT_BEGINS(engine_do("LOCKINFO door"),
                  "OK name=door owner=ann token=1 expires_ms=500 count=1 "
                  "waiting=0 held_ms=0 mode=exclusive session=0 ");
    EXPECT(engine_do("LOCK door OWNER bob"),
           "BUSY name=door owner=ann expires_ms=500 waiting=0 position=1");
    EXPECT(engine_do("FENCE db 1"), "OK");
    CHECK_ENGINE();
}

TEST(nx_xx_and_ifeq_answer_null_and_change_nothing)
{
    engine_start();
    EXPECT(engine_do("SET door ann XX"), "OK null");
    EXPECT(engine_do("SET door ann IFEQ bob"), "OK null");
    EXPECT(engine_do("SET door ann NX"), "OK OK");
    EXPECT(engine_do("SET door bob NX"), "OK null");
    EXPECT(engine_do("SET door ann NX"), "OK null"); /* also its own */
    EXPECT(engine_do("SETNX door bob"), "OK 0");
    EXPECT(engine_do("SET door bob IFEQ eve"), "OK null");
    EXPECT(engine_do("GET door"), "OK ann");
    CHECK_EQ(hold_seq(engine), 1);
    EXPECT(engine_do("SET door bob IFEQ ann"), "OK OK");
    EXPECT(engine_do("SET door eve XX GET"), "OK bob");
    EXPECT(engine_do("SET door kim NX GET"), "OK eve");
    EXPECT(engine_do("SETNX gate bob"), "OK 1");
    EXPECT(engine_do("SET wall bob GET"), "OK null");
    CHECK_ENGINE();
}

/* A refusal needs no journal. */
TEST(what_changes_nothing_is_told_at_once)
{
    static const char *const refused[] = {
        "SET door bob NX",  "SETNX door bob",  "SET free x XX",
        "DEL free",         "DELIFEQ door x",  "DELEX door IFEQ x",
        "PEXPIRE free 100", "PERSIST free",    "SET locked x",
        "DEL locked",       "EXPIRE locked 1", "GETDEL free"};
    static const char *const done[] = {"SET door bob",     "DEL door",
                                       "DELIFEQ door ann", "EXPIRE door 1",
                                       "PEXPIRE door 0",   "GETDEL door"};

    engine_start();
    engine_do("SET door ann PX 500");
    engine_do("LOCK locked OWNER ann");
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++)
        CHECK(hold_answer_now(engine, engine_parse("%s", refused[i])) != NULL);
    for (size_t i = 0; i < sizeof done / sizeof done[0]; i++)
        CHECK(hold_answer_now(engine, engine_parse("%s", done[i])) == NULL);
}

TEST(set_of_a_key_is_a_new_grant_with_a_new_token)
{
    engine_start();
    engine_do("SET door ann PX 500");
    const struct hold_out *out = engine_do("SET door ann PX 900");
    EXPECT_EVENTS(out, "2 LOCK_LOST door; 3 LOCK_GRANTED door");
    EXPECT(engine_do("HELD door 1"), "LOST name=door token=1");
    EXPECT(engine_do("HELD door 3"), "OK");
    EXPECT(engine_do("PTTL door"), "OK 900");
    engine_do("SET door bob KEEPTTL");
    EXPECT(engine_do("PTTL door"), "OK 900");
    engine_do("SET door bob");
    EXPECT(engine_do("PTTL door"), "OK -1");
    engine_do("SET door bob KEEPTTL");
    EXPECT(engine_do("PTTL door"), "OK -1");
    CHECK_ENGINE();
}

TEST(who_waits_behind_a_key_that_is_set_again_waits_on)
{
    engine_start();
    engine_do("SET door ann PX 500");
    engine_do("LOCK door OWNER bob WAIT 9000"); /* 2 */
    const struct hold_out *out = engine_do("SET door eve PX 900");
    EXPECT_ANSWERS(out, "");
    EXPECT(engine_do("GET door"), "OK eve");
    EXPECT_ANSWERS(engine_do("DEL door"),
                   "2:OK token=6 safe_ms=30000 count=1 waited_ms=0");
    CHECK_ENGINE();
}

TEST(expiry_is_exact_to_the_microsecond)
{
    engine_start();
    engine_do("SET door ann PX 500");
    engine_now_us += 500 * MS - 1;
    EXPECT(engine_do("GET door"), "OK ann");
    EXPECT(engine_do("PTTL door"), "OK 1");
    EXPECT(engine_do("EXISTS door"), "OK 1");
    EXPECT(engine_do("SET door bob NX"), "OK null");
    engine_now_us += 1;
    EXPECT(engine_do("GET door"), "EARLY"); /* not from memory */
    EXPECT(engine_do("EXISTS door"), "EARLY");
    CHECK(hold_answer_now(engine, engine_parse("SET door bob NX")) == NULL);
    EXPECT_EVENTS(engine_do("SET door bob NX PX 5"),
                  "2 LOCK_EXPIRED door; 3 LOCK_GRANTED door");
    engine_now_us += 5 * MS;
    EXPECT_EVENTS(engine_do("DELIFEQ door bob"), "4 LOCK_EXPIRED door");
    EXPECT(engine_do("GET door"), "OK null");
    EXPECT(engine_do("PTTL door"), "OK -2");
    EXPECT(engine_do("EXISTS door"), "OK 0");
    CHECK_ENGINE();
}

TEST(a_time_of_day_ends_a_key_then)
{
    engine_start(); /* at second 1000 */
    engine_do("SET door ann PXAT 1000500");
    EXPECT(engine_do("PTTL door"), "OK 500");
    engine_do("SET door ann EXAT 1002");
    EXPECT(engine_do("TTL door"), "OK 2");
    /* that is over: the key ends, and none begins */
    EXPECT_EVENTS(engine_do("SET door bob PXAT 1000000"), "4 LOCK_LOST door");
    EXPECT(engine_do("GET door"), "OK null");
    EXPECT(engine_do("SET door bob NX PXAT 1"), "OK OK");
    EXPECT(engine_do("DBSIZE"), "OK 0");
    CHECK_ENGINE();
}

TEST(del_gives_back_what_set_took)
{
    engine_start();
    engine_do("SET a 1");
    engine_do("SET b 2");
    engine_do("SET c 3");
    engine_do("LOCKSET OWNER bob NAME a NAME b WAIT 9000"); /* 4 */
    EXPECT(engine_do("DELIFEQ a 2"), "OK 0");
    EXPECT(engine_do("DELEX a IFEQ 2"), "OK 0");
    const struct hold_out *out = engine_do("DEL a b x a");
    EXPECT(out, "OK 2");
    EXPECT_EVENTS(out, "5 LOCK_RELEASED a; 6 LOCK_RELEASED b; 7 LOCK_GRANTED "
                       "a; 8 LOCK_GRANTED b");
    EXPECT_ANSWERS(out, "4:OK token=7 safe_ms=30000 count=1 waited_ms=0");
    EXPECT(engine_do("GETDEL c"), "OK 3");
    EXPECT(engine_do("GETDEL c"), "OK null");
    EXPECT(engine_do("UNLINK c"), "OK 0");
    CHECK_ENGINE();
}

TEST(expire_and_persist)
{
    engine_start();
    engine_do("SET door ann");
    EXPECT(engine_do("PERSIST door"), "OK 0");
    EXPECT(engine_do("EXPIRE door 5"), "OK 1");
    EXPECT(engine_do("TTL door"), "OK 5");
    EXPECT_EVENTS(engine_do("PEXPIRE door 1499"), "3 LOCK_RENEWED door");
    EXPECT(engine_do("TTL door"), "OK 1");
    EXPECT(engine_do("PERSIST door"), "OK 1");
    EXPECT(engine_do("TTL door"), "OK -1");
    EXPECT_EVENTS(engine_do("PEXPIRE door -1"), "5 LOCK_RELEASED door");
    EXPECT(engine_do("EXPIRE door 5"), "OK 0");
    EXPECT(engine_do("TTL door"), "OK -2");
    CHECK_ENGINE();
}

/* Whoever is told 1 goes on for so long. */
TEST(a_key_that_was_revoked_is_not_told_to_last)
{
    engine_start();
    engine_do("SET door me PX 900");
    engine_do("REVOKE door 1 GRACE 300");
    EXPECT(engine_do("PEXPIRE door 500"), "OK 0");
    EXPECT(engine_do("PERSIST door"), "OK 0");
    EXPECT(engine_do("PTTL door"), "OK 300");
    EXPECT(engine_do("PEXPIRE door 200"), "OK 1");
    EXPECT(engine_do("PTTL door"), "OK 200");
    EXPECT(engine_do("PEXPIRE door 300"), "OK 0");
    CHECK_ENGINE();
}

TEST(what_lock_made_is_left_alone)
{
    static const char *const wrong[] = {"SET door x",          "SET door x XX",
                                        "SET door x IFEQ ann", "DEL door",
                                        "DEL free door",       "GETDEL door",
                                        "DELIFEQ door ann",    "EXPIRE door 1",
                                        "PEXPIRE door 0",      "PERSIST door"};

    engine_start();
    engine_do("LOCK door OWNER ann");
    engine_do("SET free x");
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        EXPECT(engine_do("%s", wrong[i]), "WRONGTYPE name=door mode=exclusive");
    EXPECT(engine_do("SET door x NX"), "OK null");
    EXPECT(engine_do("DELIFEQ door bob"), "OK 0");
    EXPECT(engine_do("GET door"), "OK ann");
    EXPECT(engine_do("EXISTS door free door"), "OK 3");
    CHECK_EQ(hold_seq(engine), 2);
    engine_do("LOCK many OWNER ann SHARED");
    EXPECT(engine_do("GET many"), "WRONGTYPE name=many mode=shared");
    EXPECT(engine_do("SET many x NX"), "OK null");
    EXPECT(engine_do("SET many x NX GET"), "WRONGTYPE name=many mode=shared");
    EXPECT(engine_do("TYPE many"), "OK zset");
    EXPECT(engine_do("TYPE door"), "OK string");
    EXPECT(engine_do("TYPE none"), "OK none");
    CHECK_ENGINE();
}

TEST(a_name_that_is_not_free_is_null_for_nx_and_else_refused)
{
    engine_start();
    engine_do("LOCK closed OWNER ann TTL 5 DELAY 900");
    engine_do("LOCK done OWNER ann"); /* 2 */
    engine_do("UNLOCK done 2 DONE 900 RESULT all");
    engine_do("LOCK t OWNER ann TREE");
    engine_do("LOCK taken OWNER ann TTL 5");
    engine_do("LOCK taken OWNER bob WAIT 9000 PERMITS 1 OF 2");
    engine_now_us += 5 * MS;
    engine_tick();
    EXPECT(engine_do("SET closed x NX"), "OK null");
    EXPECT(engine_do("SET closed x"),
           "BUSY name=closed expires_ms=900 waiting=0 position=1");
    EXPECT(engine_do("SET done x NX"), "OK null");
    EXPECT(engine_do("SET done x"), "DONE name=done result=all expires_ms=895");
    EXPECT(engine_do("SET t/u x NX"), "OK null");
    EXPECT_BEGINS(engine_do("SET t/u x"), "BUSY name=t/u owner=ann ");
    EXPECT(engine_do("SET taken x NX"), "OK null");
    EXPECT_BEGINS(engine_do("SET closed x NX GET"), "BUSY name=closed ");
    EXPECT_BEGINS(engine_do("SET done x NX GET"), "DONE name=done ");
    EXPECT_BEGINS(engine_do("SET t/u x NX GET"), "BUSY name=t/u ");
    EXPECT(engine_do("EXISTS closed done t/u"), "OK 0");
    CHECK_ENGINE();
}

/* The holder of a TREE may set a key below it, and nobody else may take that
 * over. */
TEST(a_key_is_not_taken_over_below_the_tree_of_another)
{
    engine_start();
    engine_do("LOCK t OWNER ann TREE");
    EXPECT(engine_do("SET t/u ann NX"), "OK OK");
    EXPECT_BEGINS(engine_do("SET t/u bob"), "BUSY name=t/u ");
    EXPECT(engine_do("SET t/u ann PX 5"), "OK OK");
    EXPECT(engine_do("DEL t/u"), "OK 1");
    CHECK_ENGINE();
}

TEST(a_key_has_a_token_like_any_lock)
{
    engine_start();
    engine_do("SET door ann PX 500"); /* 1 */
    EXPECT(engine_do("LOCK door OWNER ann"), "STATE name=door mode=exclusive");
    EXPECT(engine_do("LOCKSET OWNER ann NAME door NAME b"),
           "STATE name=door mode=exclusive");
    EXPECT(engine_do("DOWNGRADE door 1"),
           "STATE name=door mode=exclusive token=1");
    EXPECT(engine_do("RENEW door 1 TTL 900"), "OK safe_ms=900");
    EXPECT(engine_do("UNLOCK door 1"), "OK remaining=0");
    engine_do("SET door ann"); /* 4 */
    EXPECT_EVENTS(engine_do("REVOKE door 4"), "5 LOCK_LOST door");
    EXPECT(engine_do("LOCKINFO door"), "NOTFOUND name=door");
    CHECK_ENGINE();
}

TEST(a_key_without_an_end_lasts)
{
    engine_start();
    engine_do("SET door ann");
    CHECK_EQ(hold_next_due_us(engine), UINT64_MAX);
    engine_now_us += 900000000 * MS;
    engine_tick();
    EXPECT(engine_do("GET door"), "OK ann");
    EXPECT(engine_do("LOCK door OWNER bob"),
           "BUSY name=door owner=ann expires_ms=1000000000000000 waiting=0 "
           "position=1");
    engine_restart(1);
    engine_reload();
    EXPECT(engine_do("GET door"), "OK ann");
    EXPECT(engine_do("SET door bob PX 900719925474099"), "OK OK");
    EXPECT(engine_do("PTTL door"), "OK 900719925474099");
}

/* What an image would forget: that a grant is a key. */
TEST(keys_are_keys_after_a_snapshot)
{
    engine_start();
    engine_do("SET door ann PX 500");
    engine_do("LOCK gate OWNER ann");
    engine_do("EVALSHA 43ebdb49120d170e08af560cb4e46e36f8585936 1 sem 2 me 500 "
              "0");
    engine_reload();
    EXPECT(engine_do("DEL gate"), "WRONGTYPE name=gate mode=exclusive");
    EXPECT(engine_do("DEL door"), "OK 1");
    EXPECT(engine_do("ZREM sem me"), "OK 1");
    CHECK_ENGINE();
}

TEST(values_and_names_are_any_bytes)
{
    struct hold_command c = {.kind = HOLD_KEY_SET,
                             .name = hf_bytes("a\0b", 3),
                             .owner = hf_bytes("\r\n\0\xff", 4),
                             .ttl_ms = 500};

    engine_start();
    c.now_us = engine_now_us;
    EXPECT(engine_apply(&c), "OK OK");
    c.kind = HOLD_KEY_DEL;
    c.flags = HOLD_EQUAL | SAY_COUNT << HOLD_SAY_SHIFT;
    c.reason = hf_bytes("\r\n\0\xfe", 4);
    c.owner.len = c.ttl_ms = 0;
    EXPECT(engine_apply(&c), "OK 0");
    c.reason = hf_bytes("\r\n\0\xff", 4);
    EXPECT(engine_apply(&c), "OK 1");
    /* and empty ones */
    c.kind = HOLD_KEY_SET;
    c.flags = c.reason.len = 0;
    EXPECT(engine_apply(&c), "OK OK");
    engine_reload();
    c.kind = HOLD_KEY_DEL;
    c.flags = HOLD_EQUAL | SAY_COUNT << HOLD_SAY_SHIFT;
    EXPECT(engine_apply(&c), "OK 1");
    CHECK_ENGINE();
}

TEST(in_a_group_a_null_refuses_nothing_and_an_error_all)
{
    engine_start();
    EXPECT(engine_group(NULL, "SET a 1 NX; SET a 2 NX; GET a; SET a 3; EXISTS "
                              "a b; PTTL a; DEL a; SETNX a 4"),
           "OK OK null 1 OK 1 -1 1 1");
    engine_do("LOCK door OWNER ann");
    uint64_t before = hold_digest(engine);
    EXPECT(engine_group(NULL, "SET a 5 PX 10; SET b 6; DEL a; SET door 7"),
           "EXECABORT position=4 count=4 status=19 WRONGTYPE name=door "
           "mode=exclusive");
    CHECK(hold_digest(engine) == before);
    EXPECT(engine_do("GET a"), "OK 4");
    CHECK_ENGINE();
}

TEST(keys_count_among_the_locks)
{
    engine_start();
    engine_bound("locks_max", 2);
    engine_do("SET a 1 PX 5");
    engine_do("LOCK b OWNER ann");
    EXPECT(engine_do("SET c 1 NX"), "OVERLOADED name=locks-max maximum=2");
    EXPECT(engine_do("SET a 2 PX 5"), "OK OK"); /* it is there already */
    engine_now_us += 5 * MS;
    EXPECT(engine_do("SET c 1 NX"), "OK OK");
    CHECK_ENGINE();
}

TEST(names_are_listed_in_pages)
{
    engine_start();
    for (int i = 0; i < 25; i++)
        engine_do("SET key:%d x", i);
    engine_do("LOCK many OWNER ann SHARED");
    EXPECT(engine_do("DBSIZE"), "OK 26");
    EXPECT(engine_do("SCAN 0 MATCH key:2? COUNT 3"),
           "OK 24 [key:20 key:21 key:22]");
    EXPECT(engine_do("SCAN 24 MATCH key:2? COUNT 3"), "OK 0 [key:23 key:24]");
    EXPECT(engine_do("SCAN 0 TYPE zset"), "OK 0 [many]");
    EXPECT(engine_do("SCAN 0 TYPE hash"), "OK 0 []");
    EXPECT(engine_do("SCAN 999"), "OK 0 []");
    EXPECT(engine_do("KEYS key:1?"), "OK key:10 key:11 key:12 key:13 key:14 "
                                     "key:15 key:16 key:17 key:18 key:19");
    for (int i = 25; i < 1001; i++)
        engine_do("SET key:%d x", i);
    EXPECT(engine_do("KEYS key:*"), "OVERLOADED name=keys maximum=1000");
    engine_do("DEL key:1000");
    EXPECT_BEGINS(engine_do("KEYS key:*"), "OK key:0 key:1 ");
    EXPECT(engine_do("KEYS *"), "OVERLOADED name=keys maximum=1000");
}

/* Many were held once: their numbers are passed quickly. */
TEST(few_names_are_listed_where_many_were)
{
    const int count = 2 * HOLD_STEPS_MAX;

    engine_start();
    for (int i = 0; i < count; i++)
        engine_do("SET key:%d x", i);
    for (int i = 0; i < count; i++)
        engine_do("DEL key:%d", i);
    EXPECT(engine_do("KEYS *"), "OK ");
    engine_do("SET door x");
    EXPECT(engine_do("KEYS *"), "OK door");
}

/* A wait is no re-entry of a key that was set meanwhile. */
TEST(who_waits_for_a_key_of_its_own_name_waits_on)
{
    engine_start();
    engine_do("SET door ann");
    engine_do("LOCK door OWNER bob WAIT 9000"); /* 2 */
    EXPECT_ANSWERS(engine_do("SET door bob"), "");
    EXPECT_ANSWERS(engine_do("DEL door"),
                   "2:OK token=6 safe_ms=30000 count=1 waited_ms=0");
    CHECK_ENGINE();
}

/* Each has a place of its own. */
TEST(values_of_keys_need_no_memory_but_what_was_promised)
{
    static char values[3][HOLD_OWNER_MAX];
    struct hold_command command = {.kind = HOLD_KEY_SET,
                                   .flags = HOLD_NX | (uint64_t)SAY_FIRST
                                                          << HOLD_SAY_SHIFT,
                                   .owners = true};

    engine_start();
    command.now_us = engine_now_us;
    (void)hold_add_name(&command, hf_bytes_text("a"), false);
    (void)hold_add_name(&command, hf_bytes_text("b"), false);
    (void)hold_add_name(&command, hf_bytes_text("c"), false);
    for (uint32_t i = 0; i < 3; i++) {
        memset(values[i], 'x' + (char)i, HOLD_OWNER_MAX);
        *hold_own_owner(&command, i) = hf_bytes(values[i], 40u << i);
        command.items[i].quantity = 3 - i;
    }
    EXPECT(starve(&command), "OK 1 3");
    EXPECT(starve(&command), "OK 0 1 c");
    CHECK_ENGINE();
}
