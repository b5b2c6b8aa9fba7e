/* hold_quota.c - tests of STOCK LIMIT: how many units one owner may have. */
#include "hold/quota.h"
#include "support/engine.h"
#include "support/starve.h"

TEST_ONE_THREAD;

#define TAKEN(id, items) \
    "OK id=" id " status=PENDING expires_ms=600000 items=[" items "]"
#define ONE(sku, n) "{sku=" sku " quantity=" #n "}"

/* 100 apples and 100 pears, of which no owner may have more than 4. */
static void start_limited(void)
{
    engine_start();
    engine_set("apple", 100);
    engine_set("pear", 100);
    engine_do("STOCK LIMIT apple 4");
    engine_do("STOCK LIMIT pear 4");
}

TEST(a_limit_is_told_and_shown)
{
    engine_start();
    engine_set("apple", 10);
    const struct hold_out *out = engine_do("STOCK LIMIT apple 4");
    EXPECT(out,
           "OK sku=apple total=10 available=10 reserved=0 sold=0 version=2 "
           "updated_ms=1000000 low=0 waiting=0 limit=4");
    EXPECT_EVENTS(out, "2 STOCK_LIMIT apple");
    CHECK_EQ(out->events[0].token, 4);
    EXPECT(engine_get("apple"),
           "OK sku=apple total=10 available=10 reserved=0 sold=0 version=2 "
           "updated_ms=1000000 low=0 waiting=0 limit=4 attributes={}");
    engine_do("STOCK LIMIT apple 0");
    EXPECT(engine_get("apple"),
           "OK sku=apple total=10 available=10 reserved=0 sold=0 version=3 "
           "updated_ms=1000000 low=0 waiting=0 attributes={}");
    EXPECT(engine_do("STOCK LIMIT plum 4"), "NOTFOUND sku=plum");
    CHECK_ENGINE();
}

TEST(an_owner_gets_no_more_than_the_limit)
{
    start_limited();
    EXPECT(engine_do("RESERVE a ITEM apple 3 OWNER ann"),
           TAKEN("a", ONE("apple", 3)));
    EXPECT(engine_do("RESERVE b ITEM apple 2 OWNER ann"),
           "QUOTA sku=apple requested=2 has=3 limit=4 owner=ann");
    EXPECT(engine_do("RESERVE b ITEM apple 1 ITEM apple 1 OWNER ann"),
           "QUOTA sku=apple requested=2 has=3 limit=4 owner=ann");
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 1 OWNER ann"), "OK ");
    EXPECT_BEGINS(engine_do("RESERVE c ITEM apple 4 OWNER bob"), "OK ");
    EXPECT(engine_do("RESERVE d ITEM apple 5 ITEM pear 5 OWNER cid"),
           "QUOTA sku=apple requested=5 has=0 limit=4 owner=cid items=["
           "{sku=apple requested=5 has=0 limit=4} "
           "{sku=pear requested=5 has=0 limit=4}]");
    CHECK_ENGINE();
}

TEST(a_product_with_a_limit_is_not_reserved_without_an_owner)
{
    start_limited();
    engine_set("plum", 1);
    EXPECT(engine_do("RESERVE a ITEM pear 1"), "BADARG sku=pear limit=4");
    EXPECT(engine_do("RESERVE a ITEM plum 1 ITEM pear 1 BEST"),
           "BADARG sku=pear limit=4");
    EXPECT_BEGINS(engine_do("RESERVE a ITEM plum 1"), "OK ");
    engine_do("STOCK LIMIT pear 0");
    EXPECT_BEGINS(engine_do("RESERVE b ITEM pear 9"), "OK ");
    CHECK_ENGINE();
}

TEST(what_ends_in_any_way_makes_room)
{
    static const char *const ends[] = {"CANCEL a", "CONFIRM a",
                                       "CANCEL a ITEM apple 4"};

    start_limited();
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        engine_do("RESERVE a ITEM apple 4 OWNER ann");
        EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 1 OWNER ann"), "QUOTA ");
        EXPECT_BEGINS(engine_do("%s", ends[i]), "OK ");
        EXPECT_BEGINS(engine_do("RESERVE c%zu ITEM apple 4 OWNER ann", i),
                      "OK ");
        engine_do("CANCEL c%zu", i);
        engine_now_us += 3600000000;
        engine_tick();
        engine_tick();
    }
    engine_do("RESERVE x ITEM apple 4 OWNER ann TTL 100");
    engine_now_us += 100000;
    EXPECT_BEGINS(engine_do("RESERVE y ITEM apple 4 OWNER ann"), "OK ");
    CHECK_ENGINE();
}

TEST(a_part_that_is_cancelled_makes_room_for_as_much)
{
    start_limited();
    engine_do("RESERVE a ITEM apple 4 ITEM pear 2 OWNER ann");
    engine_do("CANCEL a ITEM apple 1");
    EXPECT(engine_do("RESERVE b ITEM apple 2 OWNER ann"),
           "QUOTA sku=apple requested=2 has=3 limit=4 owner=ann");
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 1 ITEM pear 2 OWNER ann"),
                  "OK ");
    engine_do("CONFIRM a ITEM apple 1");
    EXPECT_BEGINS(engine_do("RESERVE c ITEM apple 3 ITEM pear 2 OWNER ann"),
                  "OK ");
    CHECK_ENGINE();
}

/* Without a limit counting goes on while there are shares. */
TEST(what_one_owner_has_is_always_a_number_of_units)
{
    static const char join[] =
        "WAITLIST JOIN apple 9223372036854775%d OWNER ann ID %s";

    start_limited();
    engine_do("RESERVE a ITEM apple 1 OWNER ann");
    engine_do("STOCK LIMIT apple 0");
    EXPECT(engine_do(join, 807, "b"),
           "QUOTA sku=apple requested=9223372036854775807 has=1 "
           "limit=9223372036854775807 owner=ann");
    EXPECT_BEGINS(engine_do(join, 806, "b"), "OK ");
    EXPECT_BEGINS(engine_do(join, 806, "c"), "QUOTA ");
    EXPECT_BEGINS(engine_do("WAITLIST LEAVE apple b"), "OK");
    EXPECT_BEGINS(engine_do(join, 806, "d"), "OK ");
    CHECK_ENGINE();
}

TEST(an_id_that_is_asked_for_again_counts_once)
{
    start_limited();
    engine_do("RESERVE a ITEM apple 3 OWNER ann");
    EXPECT_BEGINS(engine_do("RESERVE a ITEM apple 3 OWNER ann"), "OK ");
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 1 OWNER ann"), "OK ");
    CHECK_ENGINE();
}

TEST(with_min_as_much_is_taken_as_the_limit_leaves)
{
    start_limited();
    engine_do("RESERVE a ITEM apple 1 OWNER ann");
    EXPECT(engine_do("RESERVE b ITEM apple 9 MIN 4 OWNER ann"),
           "QUOTA sku=apple requested=9 has=1 limit=4 owner=ann");
    EXPECT(engine_do("RESERVE b ITEM apple 9 MIN 2 OWNER ann"),
           TAKEN("b", ONE("apple", 3)));
    CHECK_ENGINE();
}

TEST(with_best_what_is_too_much_has_failed)
{
    start_limited();
    engine_set("plum", 1);
    EXPECT(engine_do("RESERVE a ITEM apple 5 ITEM pear 4 ITEM plum 2 BEST "
                     "OWNER ann"),
           TAKEN("a", ONE("pear", 4)) " failed=["
                                      "{sku=apple requested=5 has=0 limit=4} "
                                      "{sku=plum requested=2 available=1}]");
    EXPECT(engine_do("RESERVE b ITEM plum 2 ITEM pear 1 BEST OWNER ann"),
           "QUOTA sku=pear requested=1 has=4 limit=4 owner=ann");
    CHECK_ENGINE();
}

TEST(a_limit_of_a_place_is_its_own)
{
    engine_start();
    engine_set("pen@berlin", 9);
    engine_set("pen@paris", 9);
    engine_do("STOCK LIMIT pen@berlin 2");
    EXPECT(engine_do("RESERVE a ITEM pen 3 PLACE berlin"),
           "BADARG sku=pen@berlin limit=2");
    EXPECT(engine_do("RESERVE a ITEM pen 3 PLACE berlin OWNER ann"),
           "QUOTA sku=pen@berlin requested=3 has=0 limit=2 owner=ann");
    EXPECT(engine_do("RESERVE a ITEM pen 10 PLACE berlin OWNER ann"),
           "SHORT sku=pen@berlin requested=10 available=9");
    EXPECT(engine_do("RESERVE a ITEM pen 3 PLACE berlin PLACE paris OWNER ann"),
           TAKEN("a", ONE("pen@paris", 3)));
    EXPECT(engine_do("RESERVE b ITEM pen 3 PLACE berlin PLACE paris SPLIT "
                     "ORDER OWNER ann"),
           TAKEN("b", ONE("pen@berlin", 2) " " ONE("pen@paris", 1)));
    EXPECT(engine_do("RESERVE c ITEM pen 6 PLACE berlin PLACE paris SPLIT "
                     "MOST OWNER ann"),
           "QUOTA sku=pen@berlin requested=6 has=2 limit=2 owner=ann");
    CHECK_ENGINE();
}

TEST(who_waits_is_counted_and_served_without_a_look)
{
    engine_start();
    engine_set("apple", 0);
    engine_do("STOCK LIMIT apple 4");
    EXPECT_BEGINS(engine_do("RESERVE a ITEM apple 3 OWNER ann WAIT 9000"),
                  "WAITING");
    EXPECT_BEGINS(engine_do("WAITLIST JOIN apple 2 OWNER ann ID j"), "QUOTA ");
    EXPECT_BEGINS(engine_do("WAITLIST JOIN apple 1 OWNER ann ID j"), "OK ");
    engine_do("STOCK LIMIT apple 1");
    engine_reload();
    EXPECT_EVENTS(engine_do("STOCK ADD apple 9"),
                  "6 STOCK_CHANGED apple; 7 RESERVED a; 8 OFFERED j");
    CHECK_ENGINE();
    engine_do("CANCEL a");
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 1 OWNER ann"),
                  "QUOTA sku=apple requested=1 has=1 ");
    engine_do("CANCEL j");
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 1 OWNER ann"), "OK ");
    CHECK_ENGINE();
}

TEST(a_wait_in_vain_is_not_counted_any_more)
{
    engine_start();
    engine_set("apple", 0);
    engine_do("STOCK LIMIT apple 4");
    engine_do("RESERVE a ITEM apple 4 OWNER ann WAIT 10");
    engine_now_us += 10000;
    engine_tick();
    EXPECT_BEGINS(engine_do("WAITLIST JOIN apple 4 OWNER ann ID j"), "OK ");
    engine_do("WAITLIST LEAVE apple j");
    EXPECT_BEGINS(engine_do("WAITLIST JOIN apple 4 OWNER ann ID k"), "OK ");
    CHECK_ENGINE();
}

/* One that waited before, too, and is served behind it. */
TEST(what_was_there_before_the_limit_is_not_counted)
{
    engine_start();
    engine_set("apple", 9);
    engine_do("RESERVE a ITEM apple 9 OWNER ann");
    engine_do("WAITLIST JOIN apple 5 OWNER ann ID j");
    engine_do("STOCK LIMIT apple 2");
    engine_do("CANCEL a ITEM apple 8");
    engine_reload();
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 2 OWNER ann"), "OK ");
    CHECK_ENGINE();
    engine_do("CANCEL a");
    engine_do("CANCEL j");
    CHECK_ENGINE();
    EXPECT_BEGINS(engine_do("RESERVE c ITEM apple 1 OWNER ann"),
                  "QUOTA sku=apple requested=1 has=2 ");
}

/* As long as one is open from the time of the limit. */
TEST(without_a_limit_counting_goes_on_until_nobody_has_any)
{
    start_limited();
    engine_do("RESERVE a ITEM apple 1 OWNER ann");
    engine_do("STOCK LIMIT apple 0");
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 9 OWNER ann"), "OK ");
    engine_do("RESERVE c ITEM apple 9");
    engine_reload();
    CHECK_ENGINE();
    engine_do("STOCK LIMIT apple 4");
    EXPECT_BEGINS(engine_do("RESERVE d ITEM apple 1 OWNER ann"),
                  "QUOTA sku=apple requested=1 has=10 ");
    engine_do("STOCK LIMIT apple 0");
    engine_do("CANCEL a");
    engine_do("CANCEL b");
    CHECK_ENGINE();
    engine_do("RESERVE d ITEM apple 9 OWNER ann");
    engine_do("STOCK LIMIT apple 4");
    EXPECT_BEGINS(engine_do("RESERVE e ITEM apple 4 OWNER ann"), "OK ");
    CHECK_ENGINE();
}

TEST(what_is_deleted_or_flushed_has_no_limit)
{
    start_limited();
    engine_do("RESERVE a ITEM apple 4 OWNER ann");
    engine_do("CANCEL a");
    engine_delete("apple");
    engine_set("apple", 9);
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 9"), "OK ");
    engine_do("RESERVE c ITEM pear 4 OWNER ann");
    engine_do("FLUSHALL");
    engine_set("pear", 9);
    EXPECT_BEGINS(engine_do("RESERVE d ITEM pear 9 OWNER ann"), "OK ");
    CHECK_ENGINE();
}

TEST(a_group_that_is_refused_counts_nothing)
{
    start_limited();
    engine_do("RESERVE r ITEM pear 2 OWNER ann");
    EXPECT(engine_group(NULL, "STOCK LIMIT apple 0; RESERVE a ITEM apple 4 "
                              "OWNER ann; CANCEL r; RESERVE b ITEM pear 5 "
                              "OWNER ann"),
           "EXECABORT position=4 count=4 status=20 QUOTA sku=pear requested=5 "
           "has=0 "
           "limit=4 owner=ann");
    CHECK_ENGINE();
    EXPECT_BEGINS(engine_do("RESERVE c ITEM pear 3 OWNER ann"), "QUOTA ");
    EXPECT_BEGINS(engine_group(NULL, "RESERVE a ITEM apple 3 OWNER ann; "
                                     "CANCEL r; RESERVE b ITEM pear 4 OWNER "
                                     "ann"),
                  "OK ");
    EXPECT_BEGINS(engine_do("RESERVE c ITEM apple 2 OWNER ann"),
                  "QUOTA sku=apple requested=2 has=3 ");
    CHECK_ENGINE();
}

TEST(a_late_confirm_has_no_limit)
{
    start_limited();
    engine_do("CLASS SET c GRACE 1000");
    engine_do("RESERVE a ITEM apple 4 OWNER ann CLASS c TTL 10");
    engine_now_us += 20000;
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 4 OWNER ann"), "OK ");
    EXPECT_BEGINS(engine_do("CONFIRM a"), "OK id=a status=CONFIRMED");
    CHECK_ENGINE();
}

TEST(counting_needs_no_memory_when_it_is_done)
{
    static const char owner[] = "an-owner-whose-name-is-longer-than-a-few";

    start_limited();
    for (uint64_t i = 0; i < 4; i++) {
        struct hold_command c = {.kind = HOLD_RESERVE,
                                 .name = hf_bytes("abcd" + i, 1),
                                 .owner = hf_bytes(owner, 8 * (i + 1)),
                                 .ttl_ms = 1000,
                                 .now_us = engine_now_us};
        hold_add_item(&c, hf_bytes_text("apple"), 3);
        hold_add_item(&c, hf_bytes_text("pear"), 1);
        CHECK_EQ(starve(&c)->code, HOLD_OK);
    }
    CHECK_ENGINE();
}

TEST(what_is_given_back_leaves_no_memory_behind)
{
    size_t before = 0;

    start_limited();
    for (int i = 0; i < 4000; i++) {
        engine_do("RESERVE r%d ITEM apple 4 OWNER an-owner-of-the-number-%d", i,
                  i);
        engine_do("CANCEL r%d", i);
        engine_now_us += 3600000000;
        engine_tick();
        if (i == 10)
            before = memory_bytes();
    }
    CHECK_EQ(memory_bytes(), before);
    CHECK_ENGINE();
}
