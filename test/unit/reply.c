/* reply.c - tests of the sentences in which a refusal is told. */
#include "server/reply.h"
#include "base/memory.h"

#include "support/engine.h"

TEST_ONE_THREAD;

static struct hf_buf out;

/* What a client reads, `age_ms` after it was decided. */
static void told(enum hold_code code, struct hf_bytes body, uint64_t age_ms,
                 const char *expected)
{
    struct reply reply = {.out = &out, .codec = &resp2_codec};

    reply_init();
    out.len = 0;
    reply_write(&reply, code, body, age_ms);
    CHECK(!reply.failed);
    CHECK(out.len > 3 && out.data[0] == '-');
    CHECK(memcmp(out.data + out.len - 2, "\r\n", 2) == 0);
    CHECK_TEXT(out.data + 1, out.len - 3, expected);
}

static void refused(const struct hold_out *answer, const char *expected)
{
    CHECK(answer != NULL);
    told(answer->code, answer->body, 0, expected);
}

TEST(refusals_of_locks_and_fences)
{
    engine_start();
    engine_lock("door", "ann", 500, 0);
    const struct hold_out *busy = engine_lock("door", "bob", 500, 0);
    refused(busy, "BUSY lock 'door' is held by 'ann' for 500 ms more, "
                  "0 waiting, position 1");
    told(busy->code, busy->body, 499,
         "BUSY lock 'door' is held by 'ann' for 1 ms more, 0 waiting, "
         "position 1");
    told(busy->code, busy->body, 501,
         "BUSY lock 'door' is held by 'ann' for 0 ms more, 0 waiting, "
         "position 1");
    engine_lock("door", "bob", 100, 50);
    engine_lock("door", "eve", 100, 60);
    refused(engine_lock("door", "joe", 500, 0),
            "BUSY lock 'door' is held by 'ann' for 500 ms more, 2 waiting, "
            "position 3");
    engine_now_us += 50 * MS;
    const struct hold_out *late = engine_tick();
    CHECK_EQ(late->answer_count, 1);
    told(late->answers[0].code, late->answers[0].body, 0,
         "TIMEOUT waited 50 ms for the lock, 1 waiting, position 1");
    told(HOLD_TIMED_OUT, hf_bytes("", 0), 0,
         "TIMEOUT the wait was given up, as was told before");
    refused(engine_unlock("door", 99),
            "NOTHELD lock 'door' is not held with token 99");
    refused(engine_renew("gate", 98, 5),
            "LOST lock 'gate' is no longer held with token 98");
    refused(engine_info("gate"), "NOTFOUND nobody holds lock 'gate'");
    engine_fence("disk", 2);
    refused(engine_fence("disk", 1),
            "STALE token 1 is older than 2, the newest seen for 'disk'");
    engine_start();
    engine_lock("door", "ann", 500, 0);
    refused(engine_fence("disk", 7),
            "BADARG the token 7 was never given, the newest number is 1");
    refused(engine_fence_delete("tape"), "NOTFOUND no fence 'tape'");
    engine_bound("locks_max", 1);
    refused(engine_lock("gate", "bob", 500, 0),
            "OVERLOADED locks-max of 1 is reached");
    told(HOLD_NOTHELD, hf_bytes("", 0), 0, "NOTHELD everything was flushed");
    told(HOLD_MOVED, hf_bytes("", 0), 0,
         "CONFLICT the request goes on in a newer connection");
}

TEST(refusals_of_locks_in_full)
{
    engine_start();
    refused(engine_do("LOCK a OWNER ann SESSION 9"),
            "LOST session 9 has ended");
    refused(engine_do("UNLOCKSET 9"), "NOTHELD no set is held with token 9");
    refused(engine_do("RENEWSET 9 TTL 5"),
            "LOST no set is held with token 9 any more");
    refused(engine_do("SESSION INFO 9"), "NOTFOUND no session 9");
    engine_do("LOCK a OWNER ann PERMITS 1 OF 3");
    refused(engine_do("LOCK a OWNER bob PERMITS 1 OF 4"),
            "STATE lock 'a' has 3 permits, as its first holder said");
    refused(engine_do("LOCK a OWNER ann SHARED"),
            "STATE this owner holds 'a' already, as counting, and not in the "
            "same way; unlock it first (an upgrade would deadlock with "
            "another one)");
    refused(engine_do("DOWNGRADE a 1"),
            "STATE lock 'a' (counting) cannot be downgraded: only an exclusive "
            "one that LOCK or ELECT took can");
    uint64_t set = engine_token(engine_do("LOCKSET OWNER ann NAME x NAME y"));
    refused(engine_do("UNLOCK x %llu", (unsigned long long)set),
            "STATE 'x' is held as one of the 2 names of a set, which has "
            "UNLOCKSET and RENEWSET");
    uint64_t token = engine_token(engine_do("LOCK b OWNER ann NOTE why"));
    engine_do("LOCK b OWNER ann");
    refused(engine_do("UNLOCK b %llu DONE 50", (unsigned long long)token),
            "STATE lock 'b' is held 2 times: DONE comes with the last UNLOCK");
    token = engine_token(engine_do("LOCK c OWNER bob"));
    engine_do("LOCK b OWNER bob WAIT 500 NOTE because");
    engine_now_us += 7 * MS;
    refused(engine_do("LOCK c OWNER ann WAIT 500"),
            "DEADLOCK waiting for 'c' would be a deadlock: 'ann' would wait "
            "for 'c' (exclusive, 0 ms), behind 'bob', who waits for 'b' "
            "(exclusive, 7 ms, because), behind 'ann'");
    engine_do("UNLOCK c %llu DONE 50 RESULT 42", (unsigned long long)token);
    const struct hold_out *done = engine_do("LOCK c OWNER eve");
    refused(done, "DONE the work of 'c' is done, for 50 ms more: 42");
    told(done->code, done->body, 20,
         "DONE the work of 'c' is done, for 30 ms more: 42");
}

/* Nobody holds it: somebody waits for more than it, or it is closed. */
TEST(a_lock_that_nobody_holds_is_busy_for_another_reason)
{
    engine_start();
    engine_do("LOCK a/x OWNER zoe TTL 9000");
    engine_do("LOCKSET OWNER wes NAME a/x NAME a/y WAIT 5000");
    engine_do("LOCK b OWNER zoe TREE TTL 5 DELAY 500");
    engine_do("LOCK c/x OWNER zoe TTL 5 DELAY 500");
    engine_now_us += 7 * MS;
    engine_tick();
    refused(engine_do("LOCK a/y OWNER bob"),
            "BUSY lock 'a/y' is wanted first by 'wes', who has waited 7 ms, "
            "1 waiting, position 2");
    refused(engine_do("LOCKSET OWNER bob NAME a/y NAME z"),
            "BUSY lock 'a/y' is wanted first by 'wes', who has waited 7 ms, "
            "1 waiting, position 2");
    refused(engine_do("LOCK b OWNER bob"),
            "BUSY lock 'b' is closed by DELAY for 500 ms more, 0 waiting, "
            "position 1");
    refused(engine_do("LOCK b/x OWNER bob"),
            "BUSY lock 'b/x' is closed with all names below 'b' by DELAY for "
            "500 ms more, 0 waiting, position 1");
    const struct hold_out *closed = engine_do("LOCK c OWNER bob TREE");
    told(closed->code, closed->body, 100,
         "BUSY lock 'c' is not free with TREE: 'c/x' below it is closed by "
         "DELAY for 400 ms more, 0 waiting, position 1");
}

TEST(a_request_is_busy_at_a_related_name)
{
    engine_start();
    engine_do("LOCK a/x OWNER zoe TTL 9000");
    engine_do("LOCK a OWNER wes TREE WAIT 5000");
    engine_now_us += 7 * MS;
    refused(engine_do("LOCK a/x/y OWNER bob TREE"),
            "BUSY lock 'a/x/y' is wanted first by 'wes' with TREE on 'a', who "
            "has waited 7 ms, 0 waiting, position 1");
    refused(engine_do("LOCK a OWNER bob TREE BARGE"),
            "BUSY lock 'a' is not free with TREE: 'a/x' below it is held by "
            "'zoe' for 8993 ms more, 1 waiting, position 2");
    engine_do("LOCK b/x/y OWNER zoe TREE TTL 9000");
    engine_do("LOCK b/x/y/z OWNER wes WAIT 5000");
    refused(engine_do("LOCK b/x/y/q OWNER bob"),
            "BUSY lock 'b/x/y/q' is held by 'zoe' with TREE on 'b/x/y' for "
            "9000 ms more, 0 waiting, position 1");
    engine_do("LOCK b/x/y/z OWNER zoe BARGE");
    engine_do("LOCK c OWNER zoe");
    engine_do("LOCKSET OWNER wes NAME c NAME d/e WAIT 5000");
    refused(engine_do("LOCK d OWNER bob TREE"),
            "BUSY lock 'd' is not free with TREE: 'd/e' below it is wanted "
            "first by 'wes', who has waited 0 ms, 0 waiting, position 1");
}

TEST(refusals_of_stock_and_reservations)
{
    engine_start();
    engine_set("apple", 5);
    refused(engine_reserve("r1", "apple 6", 500),
            "SHORT sku 'apple': requested 6, available 5");
    engine_set("plum", 2);
    refused(engine_reserve("r9", "apple 6 plum 3", 1000),
            "SHORT sku 'apple': requested 6, available 5; sku 'plum': "
            "requested 3, available 2");
    engine_reserve("r1", "apple 3", 500);
    engine_reserve("r2", "apple 1", 500);
    engine_confirm("r2");
    refused(engine_set("apple", 2),
            "SHORT sku 'apple': total 2 is below 3 reserved and 1 sold");
    refused(engine_delete("apple"), "STATE sku 'apple' has 3 reserved");
    refused(engine_cancel("r2", ""), "STATE reservation 'r2' is CONFIRMED");
    refused(engine_reserve("r3", "pear 1", 500), "NOTFOUND no product 'pear'");
    refused(engine_confirm("nope"), "NOTFOUND no reservation 'nope'");
    engine_request = "q";
    engine_set("plum", 1);
    refused(engine_set("plum", 2), "CONFLICT id 'q' was used with other "
                                   "arguments");
    engine_request = NULL;
    engine_now_us += 507 * MS;
    refused(engine_confirm("r1"), "EXPIRED reservation 'r1' expired 7 ms ago");
}

static void answered(const struct reply_codec *codec, struct hf_bytes body,
                     uint64_t age_ms, const char *expected)
{
    struct reply reply = {.out = &out, .codec = codec};

    reply_init();
    out.len = 0;
    reply_write(&reply, HOLD_OK, body, age_ms);
    CHECK(!reply.failed);
    CHECK_TEXT(out.data, out.len, expected);
}

TEST(values_are_told_in_the_words_of_the_protocol)
{
    engine_start();
    answered(&resp2_codec, hf_bytes("", 0), 0, "+OK\r\n");
    const struct hold_out *lock = engine_lock("door", "ann", 500, 0);
    answered(&resp3_codec, lock->body, 0,
             "%4\r\n$5\r\ntoken\r\n:1\r\n$7\r\nsafe_ms\r\n:500\r\n"
             "$5\r\ncount\r\n:1\r\n$9\r\nwaited_ms\r\n:0\r\n");
    answered(&resp2_codec, lock->body, 501,
             "*8\r\n$5\r\ntoken\r\n:1\r\n$7\r\nsafe_ms\r\n:0\r\n"
             "$5\r\ncount\r\n:1\r\n$9\r\nwaited_ms\r\n:0\r\n");
    engine_set("apple", 5);
    answered(&resp3_codec, engine_reserve("r1", "apple 3", 500)->body, 1,
             "%4\r\n$2\r\nid\r\n$2\r\nr1\r\n$6\r\nstatus\r\n$7\r\n"
             "PENDING\r\n$10\r\nexpires_ms\r\n:499\r\n$5\r\nitems\r\n"
             "*1\r\n%2\r\n$3\r\nsku\r\n$5\r\napple\r\n"
             "$8\r\nquantity\r\n:3\r\n");
}

/* Every allocation fails once. */
static void check_memory(struct hf_bytes body)
{
    bool failed = true;

    for (uint64_t at = 0; failed; at++) {
        struct hf_buf buf = {0};
        struct reply reply = {.out = &buf, .codec = &resp3_codec};
        uint64_t before = hf_memory_count();
        hf_memory_fail_once(at);
        reply_write(&reply, HOLD_OK, body, 1);
        hf_memory_fail_never();
        failed = hf_memory_count() - before > at;
        CHECK_EQ(reply.failed, failed);
        hf_buf_destroy(&buf);
    }
}

TEST(a_reply_without_memory_has_failed)
{
    reply_init();
    engine_start();
    check_memory(engine_lock("door", "ann", 500, 0)->body);
    check_memory(engine_set("apple", 5)->body);
    check_memory(engine_reserve("r1", "apple 3", 500)->body);
}

/* 128 bytes of a name are shown, and that it is longer. */
TEST(long_names_are_cut_and_odd_ones_do_not_end_the_sentence)
{
    char name[130];
    char expected[200];

    engine_start();
    memset(name, 'n', sizeof name);
    for (unsigned len = 127; len <= 129; len++) {
        name[len] = '\0';
        snprintf(expected, sizeof expected,
                 "NOTFOUND nobody holds lock '%.128s%s'", name,
                 len > 128 ? "..." : "");
        refused(engine_info(name), expected);
        name[len] = 'n';
    }
}

/* As many as fit, and how many more there are. */
TEST(a_long_list_of_what_is_short_is_cut)
{
    struct reply reply = {.out = &out, .codec = &resp2_codec};
    char items[HOLD_ITEMS_MAX * 64];
    size_t len = 0;

    engine_start();
    for (unsigned i = 0; i < HOLD_ITEMS_MAX; i++) {
        char sku[64];
        snprintf(sku, sizeof sku, "a-product-with-a-long-name-%03u", i);
        engine_set(sku, 0);
        len += (size_t)snprintf(items + len, sizeof items - len, "%s 1 ", sku);
    }
    const struct hold_out *answer = engine_reserve("r", items, 1000);
    out.len = 0;
    reply_write(&reply, answer->code, answer->body, 0);
    CHECK(out.len < 2100);
    CHECK(memmem(out.data, out.len, "; and ", 6) != NULL);
    CHECK(memcmp(out.data + out.len - 7, " more\r\n", 7) == 0);
}
