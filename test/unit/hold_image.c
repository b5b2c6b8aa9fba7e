/* hold_image.c - tests of images, digests and the check of all invariants. */
#include "base/memory.h"
#include "support/image.h"
#include "support/server.h"

TEST_ONE_THREAD;

/* A state with some of everything. */
static void fill(void)
{
    engine_start();
    engine_set("apple", 10);
    engine_set("pear", 5);
    engine_request = "q1";
    engine_reserve("r1", "apple 1 pear 2", 1000);
    engine_request = "q2";
    engine_reserve("r2", "apple 1", 2000);
    engine_cancel("r2", "no");
    engine_request = NULL;
    engine_reserve("r2", "apple 1", 2000);
    engine_cancel("r2", "changed my mind");
    engine_reserve("r3", "apple 1", 500);
    engine_confirm("r3");
    engine_lock("door", "ann", 5000, 0);
    engine_lock("door", "ann", 5000, 0);
    engine_now_us += 7 * MS;
    engine_lock("door", "bob", 100, 900);
    engine_request = "q3";
    engine_lock("door", "eve", 100, 800);
    engine_request = NULL;
    engine_lock("gate", "ann", 5000, 0);
    engine_fence("disk", 4);
    engine_bound("locks_max", 50);
    engine_bound("request_keep_ms", 5000);
}

TEST(a_loaded_engine_goes_on_as_the_saved_one_would)
{
    char expected[4][2000];

    for (int round = 0; round < 2; round++) {
        fill();
        if (round == 1)
            engine_reload();
        const struct hold_out *out;
        engine_request = "q3";
        out = engine_lock("door", "eve", 100, 800);
        EXPECT_ANSWERS(out, "11:MOVED");
        engine_request = NULL;
        EXPECT(engine_unlock("door", 8), "OK remaining=1");
        out = engine_unlock("door", 8);
        if (round == 0)
            snprintf(expected[0], 2000, "%s", engine_answers_text(out));
        EXPECT_ANSWERS(out, expected[0]);
        engine_now_us += 150 * MS;
        out = engine_tick();
        if (round == 0) {
            snprintf(expected[1], 2000, "%s", engine_answers_text(out));
            snprintf(expected[2], 2000, "%s", engine_events_text(out));
        }
        EXPECT_ANSWERS(out, expected[1]);
        EXPECT_EVENTS(out, expected[2]);
        out = engine_reservation("r2");
        if (round == 0)
            snprintf(expected[3], 2000, "%s", engine_reply_text(out));
        EXPECT(out, expected[3]);
        CHECK_ENGINE();
    }
    CHECK(strstr(expected[0], "10:OK") != NULL);
    CHECK(strstr(expected[1], "14:OK") != NULL);
}

TEST(an_empty_engine_has_an_image_too)
{
    engine_start();
    engine_reload();
    CHECK_EQ(hold_seq(engine), 0);
    EXPECT(engine_lock("a", "b", 1, 0),
           "OK token=1 safe_ms=1 count=1 waited_ms=0");
}

TEST(equal_states_have_equal_digests_however_they_were_reached)
{
    engine_start();
    engine_set("apple", 5);
    engine_set("pear", 5);
    engine_delete("apple");
    engine_set("apple", 7);
    engine_restart(0);
    uint64_t first = hold_digest(engine);
    engine_start();
    engine_set("x", 1);
    engine_set("pear", 5);
    engine_delete("x");
    engine_set("apple", 7);
    CHECK(hold_digest(engine) == first);
    engine_set("apple", 7); /* another version */
    CHECK(hold_digest(engine) != first);
}

/* Whatever is changed shows in the digest. */
TEST(every_change_changes_the_digest)
{
    uint64_t seen[32];
    unsigned count = 0;

    fill();
    seen[count++] = hold_digest(engine);
    engine_tick();
    seen[count++] = hold_digest(engine);
    CHECK(seen[0] == seen[1]); /* nothing happened, no time passed */
    count = 1;
    engine_now_us++;
    engine_tick();
    seen[count++] = hold_digest(engine);
    engine_abandon(10);
    seen[count++] = hold_digest(engine);
    engine_renew("gate", 12, 4999);
    seen[count++] = hold_digest(engine);
    engine_extend("r1", 999);
    seen[count++] = hold_digest(engine);
    engine_fence("disk", 5);
    seen[count++] = hold_digest(engine);
    engine_bound("ended_keep_ms", 1234567);
    seen[count++] = hold_digest(engine);
    engine_request = "q9";
    engine_unlock("nothing", 1);
    seen[count++] = hold_digest(engine);
    for (unsigned i = 0; i < count; i++) {
        for (unsigned k = 0; k < i; k++)
            CHECK(seen[i] != seen[k]);
    }
}

/* Two versions that replay one journal can be compared by it. */
TEST(a_state_has_the_same_digest_in_every_version)
{
    fill();
    engine_request = "no1";
    engine_unlock("nothing", 1);
    engine_request = "no2";
    engine_unlock("nothing", 2);
    CHECK(hold_digest(engine) == 0xf1a4d3ea82ac4f87);
}

TEST(large_states_come_in_pieces)
{
    char name[200];

    engine_start();
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "%d/%0150d", i, i);
        engine_lock(name, "ann", 50000 + (uint64_t)i, 0);
    }
    save();
    CHECK(piece_count > 1);
    engine_reload();
    CHECK_EQ(engine_lock(name, "ann", 5, 0)->code, HOLD_OK);
    CHECK_ENGINE();
}

static enum hf_status fail_second(void *context, const void *data, size_t len)
{
    int *calls = context;

    (void)data;
    (void)len;
    return ++*calls == 2 ? HF_IO : HF_OK;
}

TEST(a_sink_that_fails_stops_the_save)
{
    char name[200];
    int calls = 0;

    engine_start();
    for (int i = 0; i < 5000; i++) {
        snprintf(name, sizeof name, "%d/%0150d", i, i);
        engine_lock(name, "ann", 50000, 0);
    }
    uint64_t before = hold_digest(engine);
    CHECK_EQ(hold_save(engine, fail_second, &calls), HF_IO);
    CHECK_EQ(calls, 2);
    CHECK(hold_digest(engine) == before);
}

static enum hf_status fail_at_once(void *context, const void *data, size_t len)
{
    (void)data;
    (void)len;
    ++*(int *)context;
    return HF_IO;
}

enum many {
    MANY_LOCKS,
    MANY_WAITERS,
    MANY_PRODUCTS,
    MANY_FENCES,
    MANY_PENDING,
    MANY_ENDED,
    MANY_WAITING_REQUESTS,
    MANY_DONE_REQUESTS,
    MANY_REFUSED_REQUESTS,
    MANY_KINDS
};

static void make_one(enum many kind, const char *name)
{
    engine_request = kind >= MANY_WAITING_REQUESTS ? name : NULL;
    if (kind == MANY_LOCKS)
        engine_lock(name, "ann", 50000, 0);
    else if (kind == MANY_WAITERS)
        engine_lock("door", name, 50000, 50000);
    else if (kind == MANY_PRODUCTS)
        engine_set(name, 1);
    else if (kind == MANY_FENCES)
        engine_fence(name, 1);
    else if (kind == MANY_PENDING || kind == MANY_ENDED)
        engine_reserve(name, "pear 1", 50000);
    else if (kind == MANY_WAITING_REQUESTS)
        engine_lock("door", "eve", 50000, 50000);
    else if (kind == MANY_DONE_REQUESTS)
        engine_lock("door", "ann", 50000, 0);
    else
        engine_unlock("nothing", 1);
    if (kind == MANY_ENDED)
        engine_cancel(name, "no");
}

/* Some of everything, and of one kind more than a piece holds. */
TEST(a_sink_that_failed_is_not_asked_again_whatever_was_to_be_saved)
{
    char name[HOLD_ID_MAX + 1];

    for (unsigned kind = 0; kind < MANY_KINDS; kind++) {
        int calls = 0;
        fill();
        engine_bound("locks_max", 10000);
        engine_set("pear", 10000);
        for (unsigned i = 0; i < 2000; i++) {
            snprintf(name, sizeof name, "%0128u", i);
            make_one((enum many)kind, name);
        }
        engine_request = NULL;
        CHECK_EQ(hold_save(engine, fail_at_once, &calls), HF_IO);
        CHECK_EQ(calls, 1);
        save();
        CHECK(piece_count > 1);
    }
}

/* A cut image is refused, or is a shorter one at the end of an entry. */
TEST(every_truncation_is_refused_or_ends_behind_an_entry)
{
    char error[256];

    fill();
    save();
    CHECK_EQ(piece_count, 1);
    unsigned refused = 0;
    for (size_t cut = 0; cut < image.len; cut++) {
        struct hold_engine *other = hold_new((struct hf_hash_seed){{5, 6}});
        enum hf_status status = load_guarded(other, cut);
        if (status == HF_OK)
            hold_check(other, error); /* wrong or not, it must not crash */
        else
            refused++;
        CHECK(status == HF_OK || status == HF_CORRUPT);
        hold_free(other);
    }
    CHECK(refused > image.len / 2);
}

/* The journal's checksum keeps such images away; still nothing may crash. */
TEST(every_flipped_bit_is_refused_or_harmless)
{
    char error[256];
    size_t step = test_is_sanitized() ? 7 : 1; /* all bits of the bytes, too */

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
    fill();
    save();
    enum hf_status status = HF_NOMEM;
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

/* Only where buckets are made in advance a failure does no harm. */
TEST(one_allocation_that_fails_while_loading_is_told_or_harmless)
{
    unsigned refused = 0;
    uint64_t used = 1;

    fill();
    save();
    for (uint64_t at = 0; at < used; at++) {
        struct hold_engine *other = hold_new((struct hf_hash_seed){{5, 6}});
        CHECK(other != NULL);
        uint64_t before = hf_memory_count();
        hf_memory_fail_once(at);
        enum hf_status status = load(other);
        hf_memory_fail_never();
        used = hf_memory_count() - before;
        if (status == HF_OK)
            CHECK(hold_digest(other) == hold_digest(engine));
        else
            CHECK_EQ(status, HF_NOMEM);
        refused += status == HF_NOMEM;
        hold_free(other);
        if (status == HF_NOMEM)
            used = at + 2; /* there may be more behind it */
    }
    CHECK(refused > 5);
}

/* Survivor of a mutation: an item that is longer than what is left. */
TEST(items_that_are_cut_are_refused_and_not_read_beyond_their_end)
{
    for (unsigned item = 0; item < 2; item++) {
        for (unsigned len = 1; len <= 60; len++) {
            engine_start();
            engine_set("apple", 10);
            engine_set("berry", 10);
            engine_reserve("r1", "apple 3 berry 4", 1000);
            save();
            /* two items of 15 bytes end the image, each begins with the
             * length of its sku */
            image.data[image.len - 30 + 15 * item] = (char)len;
            struct hold_engine *other = hold_new((struct hf_hash_seed){{3, 4}});
            bool whole = len == 5 || (item == 0 && len == 20); /* one of both */
            CHECK_EQ(load_guarded(other, image.len),
                     whole ? HF_OK : HF_CORRUPT);
            hold_free(other);
        }
    }
}

/* Twenty bytes are one item with a name of ten, or two without a name. */
TEST(an_item_without_a_name_is_refused_and_one_byte_is_a_name)
{
    engine_start();
    engine_set("a", 10);
    engine_set("0123456789", 10);
    engine_reserve("r1", "a 1", 1000);
    engine_reload();
    engine_reserve("r2", "0123456789 3", 1000);
    save();
    struct hold_engine *other = hold_new((struct hf_hash_seed){{3, 4}});
    CHECK_EQ(load(other), HF_OK);
    hold_free(other);
    memset(image.data + image.len - 20, 0, 2);
    memset(image.data + image.len - 10, 0, 2);
    other = hold_new((struct hf_hash_seed){{3, 4}});
    CHECK_EQ(load(other), HF_CORRUPT);
    hold_free(other);
}

/* Also where nothing follows that would be refused for itself. */
TEST(a_head_of_another_format_or_a_second_one_is_refused_at_once)
{
    char head[9] = "H";

    for (unsigned format = 0; format <= 6; format += 6) {
        struct hold_engine *other = hold_new((struct hf_hash_seed){{3, 4}});
        head[1] = (char)format;
        CHECK_EQ(hold_load(other, hf_bytes(head, sizeof head)), HF_CORRUPT);
        hold_free(other);
    }
    engine_start();
    save();
    struct hold_engine *other = hold_new((struct hf_hash_seed){{3, 4}});
    CHECK_EQ(load(other), HF_OK);
    CHECK_EQ(hold_load(other, hf_bytes("H", 1)), HF_CORRUPT);
    hold_free(other);
}

static void add_lock(void)
{
    engine_lock("door", "ann", 5000, 0);
}

static void add_waiter(void)
{
    engine_lock("door", "bob", 5000, 5000);
}

static void add_product(void)
{
    engine_set("apple", 10);
}

static void add_fence(void)
{
    engine_fence("disk", 1);
}

static void add_reservation(void)
{
    engine_reserve("r1", "apple 1", 5000);
}

static void end_reservation(void)
{
    engine_reserve("r2", "apple 1", 5000);
    engine_confirm("r2");
}

static void add_request(void)
{
    engine_request = "q";
    engine_fence("disk", 1);
    engine_request = NULL;
}

/* Each comes last in the image of all that were added before. */
TEST(what_is_in_an_image_twice_is_refused)
{
    static void (*const add[])(void) = {
        add_lock,        add_waiter,      add_product, add_fence,
        add_reservation, end_reservation, add_request};

    engine_start();
    for (size_t i = 0; i < sizeof add / sizeof add[0]; i++) {
        save();
        size_t start = image.len;
        add[i]();
        save();
        CHECK(image.len > start);
        struct hold_engine *other = hold_new((struct hf_hash_seed){{3, 4}});
        CHECK_EQ(load(other), HF_OK);
        CHECK_EQ(
            hold_load(other, hf_bytes(image.data + start, image.len - start)),
            HF_CORRUPT);
        hold_free(other);
    }
}
