/* hold_product.c - tests of what a product has beside its units. */
#include "support/starve.h"

static void start_shop(void)
{
    engine_start();
    engine_set("apple", 10); /* version 1 */
}

TEST(if_changes_a_product_only_at_that_version)
{
    start_shop();
    EXPECT(engine_do("STOCK SET apple 7 IF 2"),
           "CONFLICT sku=apple requested=2 version=1");
    EXPECT(engine_do("STOCK ADD apple 7 IF 0"),
           "CONFLICT sku=apple requested=0 version=1");
    EXPECT(engine_do("STOCK DEL apple IF 9"),
           "CONFLICT sku=apple requested=9 version=1");
    CHECK_EQ(hold_seq(engine), 1);
    EXPECT_BEGINS(engine_do("STOCK SET apple 7 IF 1"), "OK sku=apple total=7 ");
    EXPECT_BEGINS(engine_do("STOCK ADD apple 3 IF 2"),
                  "OK sku=apple total=10 ");
    EXPECT(engine_do("STOCK DEL apple IF 3"), "OK");
    EXPECT(engine_do("STOCK ADD apple 1 IF 0"), "NOTFOUND sku=apple");
    EXPECT(engine_do("STOCK DEL apple IF 3"), "NOTFOUND sku=apple");
    CHECK_ENGINE();
}

TEST(if_0_makes_a_product_that_is_not_there)
{
    start_shop();
    EXPECT(engine_do("STOCK SET apple 7 IF 0"),
           "CONFLICT sku=apple requested=0 version=1");
    EXPECT(engine_do("STOCK SET pear 7 IF 1"),
           "CONFLICT sku=pear requested=1 version=0");
    EXPECT_BEGINS(engine_do("STOCK SET pear 7 IF 0"), "OK sku=pear total=7 ");
    EXPECT(engine_do("STOCK SET pear 7 IF 0"),
           "CONFLICT sku=pear requested=0 version=2");
}

TEST(reservations_change_the_version)
{
    start_shop();
    engine_reserve("r", "apple 1", 100);
    EXPECT(engine_do("STOCK ADD apple 1 IF 1"),
           "CONFLICT sku=apple requested=1 version=2");
    engine_now_us += 100 * MS; /* its expiry counts before anything else */
    EXPECT(engine_do("STOCK ADD apple 1 IF 2"),
           "CONFLICT sku=apple requested=2 version=3");
    EXPECT_BEGINS(engine_do("STOCK ADD apple 1 IF 3"),
                  "OK sku=apple total=11 ");
}

TEST(a_conflict_is_kept_for_its_req)
{
    start_shop();
    EXPECT(engine_do("STOCK ADD apple 1 IF 4 REQ q"),
           "CONFLICT sku=apple requested=4 version=1");
    engine_add("apple", 1);
    engine_add("apple", 1);
    engine_add("apple", 1);
    EXPECT(engine_do("STOCK ADD apple 1 IF 4 REQ q"),
           "CONFLICT sku=apple requested=4 version=1");
    EXPECT(engine_do("STOCK ADD apple 1 IF 3 REQ q"), "CONFLICT id=q");
    EXPECT(engine_do("STOCK ADD apple 1 REQ q"), "CONFLICT id=q");
}

TEST(a_group_is_refused_by_a_version)
{
    start_shop();
    EXPECT_BEGINS(
        engine_group(NULL, "STOCK SET pear 1; STOCK ADD apple 1 IF 2"),
        "EXECABORT position=2 ");
    EXPECT(engine_get("pear"), "NOTFOUND sku=pear");
    EXPECT_BEGINS(engine_group(NULL,
                               "STOCK ADD apple 1 IF 1; STOCK ADD apple 1 "
                               "IF 2"),
                  "OK {sku=apple total=11 ");
}

TEST(reason_and_reference_are_told)
{
    engine_start();
    CHECK_EQ(hold_tell(engine), HF_OK);
    const struct hold_out *out =
        engine_do("STOCK SET apple 7 REF po-17 REASON delivered");
    CHECK_EQ(out->event_count, 1);
    CHECK(hf_bytes_is(out->events[0].owner, "po-17"));
    CHECK(hf_bytes_is(out->events[0].note, "delivered"));
    out = engine_do("STOCK ADD apple -1 REASON broken");
    CHECK_EQ(out->events[0].owner.len, 0);
    CHECK(hf_bytes_is(out->events[0].note, "broken"));
    out = engine_do("STOCK ADD apple -1 REF x");
    CHECK(hf_bytes_is(out->events[0].owner, "x"));
    CHECK_EQ(out->events[0].note.len, 0);
}

TEST(a_threshold_tells_once_when_it_is_crossed)
{
    start_shop();
    const struct hold_out *out = engine_do("STOCK LOW apple 4");
    EXPECT(out, "OK sku=apple total=10 available=10 reserved=0 sold=0 "
                "version=2 updated_ms=1000000 low=4 waiting=0");
    EXPECT_EVENTS(out, "2 STOCK_CHANGED apple");
    EXPECT_EVENTS(engine_reserve("a", "apple 5", 100), "3 RESERVED a");
    EXPECT_EVENTS(engine_reserve("b", "apple 1", 200),
                  "4 RESERVED b; 5 STOCK_LOW apple");
    EXPECT_EVENTS(engine_reserve("c", "apple 1", 300), "6 RESERVED c");
    EXPECT_EVENTS(engine_do("CANCEL c"), "7 CANCELLED c");
    EXPECT_EVENTS(engine_do("CANCEL b"),
                  "8 CANCELLED b; 9 STOCK_REFILLED apple");
    EXPECT_EVENTS(engine_add("apple", -1),
                  "10 STOCK_CHANGED apple; 11 STOCK_LOW apple");
    EXPECT_EVENTS(engine_confirm("a"), "12 CONFIRMED a");
    EXPECT_EVENTS(engine_set("apple", 30),
                  "13 STOCK_CHANGED apple; 14 STOCK_REFILLED apple");
    EXPECT(engine_get("apple"),
           "OK sku=apple total=30 available=25 reserved=0 sold=5 version=13 "
           "updated_ms=1000000 low=4 waiting=0 attributes={}");
    CHECK_ENGINE();
}

TEST(what_expires_refills)
{
    start_shop();
    engine_do("STOCK LOW apple 4");
    engine_reserve("a", "apple 7", 100);
    engine_now_us += 100 * MS;
    EXPECT_EVENTS(engine_tick(),
                  "5 RESERVATION_EXPIRED a; 6 STOCK_REFILLED apple");
}

TEST(a_threshold_that_is_set_tells_what_it_finds)
{
    start_shop();
    EXPECT_EVENTS(engine_do("STOCK LOW apple 10"),
                  "2 STOCK_CHANGED apple; 3 STOCK_LOW apple");
    EXPECT_EVENTS(engine_do("STOCK LOW apple 20"), "4 STOCK_CHANGED apple");
    EXPECT_EVENTS(engine_do("STOCK LOW apple 0"),
                  "5 STOCK_CHANGED apple; 6 STOCK_REFILLED apple");
    EXPECT_EVENTS(engine_add("apple", -10), "7 STOCK_CHANGED apple");
    EXPECT(engine_do("STOCK LOW pear 1"), "NOTFOUND sku=pear");
    engine_do("STOCK LOW apple 5");
    engine_delete("apple");
    EXPECT_EVENTS(engine_set("apple", 3), "11 STOCK_CHANGED apple");
    CHECK_ENGINE();
}

TEST(a_group_that_is_refused_leaves_thresholds_as_they_were)
{
    start_shop();
    engine_do("STOCK LOW apple 4");
    uint64_t digest = hold_digest(engine);
    EXPECT_BEGINS(
        engine_group(NULL, "STOCK LOW apple 0; STOCK ATTR apple a b; STOCK SET "
                           "pear 1; STOCK LOW pear 9; STOCK DEL pear; "
                           "RESERVE r ITEM apple 99"),
        "EXECABORT position=6 ");
    CHECK_EQ(hold_digest(engine), digest);
    CHECK_ENGINE();
    EXPECT_EVENTS(engine_group(NULL, "RESERVE r ITEM apple 6; CANCEL r"),
                  "3 RESERVED r; 4 STOCK_LOW apple; 5 CANCELLED r; 6 "
                  "STOCK_REFILLED apple");
}

/* More products than one call can tell of come to be refilled at one instant:
 * the sweep stops in between. */
TEST(a_sweep_counts_the_products_that_it_refills)
{
    enum { CARTS = 40, ITEMS = 100 };
    size_t events = 0;
    size_t most = 0;

    engine_start();
    for (int i = 0; i < CARTS; i++) {
        char items[ITEMS * 12 + 1];
        size_t len = 0;
        for (int j = 0; j < ITEMS; j++) {
            engine_do("STOCK SET p%04d 2", i * ITEMS + j);
            engine_do("STOCK LOW p%04d 1", i * ITEMS + j);
            len += (size_t)snprintf(items + len, sizeof items - len, "p%04d 1 ",
                                    i * ITEMS + j);
        }
        items[len - 1] = '\0';
        CHECK_EQ(engine_reserve("", items, 100)->event_count, ITEMS + 1);
    }
    engine_now_us += 100 * MS;
    const struct hold_out *out = engine_tick();
    for (int calls = 0; calls < 2 * CARTS; calls++) {
        events += out->event_count;
        most = out->event_count > most ? out->event_count : most;
        out = engine_tick();
    }
    CHECK_EQ(events, CARTS * (ITEMS + 1));
    CHECK(most >= HOLD_STEP_MAX && most <= HOLD_STEP_MAX + HOLD_ITEMS_MAX);
    CHECK_ENGINE();
}

TEST(attributes_are_set_replaced_and_removed)
{
    start_shop();
    CHECK_EQ(hold_tell(engine), HF_OK);
    const struct hold_out *out = engine_do("STOCK ATTR apple colour red");
    EXPECT(out, "OK sku=apple total=10 available=10 reserved=0 sold=0 "
                "version=2 updated_ms=1000000 low=0 waiting=0");
    EXPECT_EVENTS(out, "2 STOCK_ATTRIBUTES apple");
    CHECK(hf_bytes_is(out->events[0].note, "colour"));
    CHECK(hf_bytes_is(out->events[0].owner, "red"));
    engine_do("STOCK ATTR apple weight 120");
    engine_do("STOCK ATTR apple brand x");
    engine_do("STOCK ATTR apple colour green");
    EXPECT(
        engine_get("apple"),
        "OK sku=apple total=10 available=10 reserved=0 sold=0 version=5 "
        "updated_ms=1000000 low=0 waiting=0 attributes={brand=x colour=green "
        "weight=120}");
    engine_do("STOCK ATTR apple colour");
    engine_do("STOCK ATTR apple brand ");
    engine_do("STOCK ATTR apple nothing");
    EXPECT(engine_products("*", 0, 0),
           "OK products=[{sku=apple total=10 available=10 reserved=0 sold=0 "
           "version=8 updated_ms=1000000 low=0 waiting=0 "
           "attributes={weight=120}}] "
           "cursor=0");
    EXPECT(engine_do("STOCK ATTR pear colour red"), "NOTFOUND sku=pear");
    engine_delete("apple");
    CHECK_ENGINE();
}

TEST(attributes_are_bounded_in_number_and_bytes)
{
    char value[HOLD_NOTE_MAX + 1];

    start_shop();
    for (unsigned i = 0; i < HOLD_ATTRS_MAX; i++)
        engine_do("STOCK ATTR apple a%02u x", i);
    EXPECT(engine_do("STOCK ATTR apple more x"),
           "OVERLOADED name=attributes-max maximum=16");
    EXPECT_BEGINS(engine_do("STOCK ATTR apple a03 y"), "OK ");
    EXPECT_BEGINS(engine_do("STOCK ATTR apple a03"), "OK ");
    EXPECT_BEGINS(engine_do("STOCK ATTR apple more x"), "OK ");
    memset(value, 'v', sizeof value - 1);
    value[sizeof value - 1] = '\0';
    for (unsigned i = 0; i < 3; i++)
        EXPECT_BEGINS(engine_do("STOCK ATTR apple a%02u %s", i, value), "OK ");
    EXPECT(engine_do("STOCK ATTR apple a04 %s", value),
           "OVERLOADED name=attributes-bytes maximum=1024");
    /* 13 others of 8 bytes and three of 263: 131 are left for a04 */
    value[1024 - 12 * 8 - 1 - 3 * 263 - 7] = '\0';
    EXPECT_BEGINS(engine_do("STOCK ATTR apple a04 %s", value), "OK ");
    EXPECT(engine_do("STOCK ATTR apple a04 %sv", value),
           "OVERLOADED name=attributes-bytes maximum=1024");
    CHECK_ENGINE();
}

TEST(an_image_keeps_thresholds_and_attributes)
{
    start_shop();
    engine_do("STOCK LOW apple 4");
    engine_do("STOCK ATTR apple colour red");
    engine_reserve("r", "apple 7", 100);
    engine_reload();
    EXPECT(engine_get("apple"),
           "OK sku=apple total=10 available=3 reserved=7 sold=0 version=4 "
           "updated_ms=1000000 low=4 waiting=0 attributes={colour=red}");
    EXPECT_EVENTS(engine_do("CANCEL r"),
                  "6 CANCELLED r; 7 STOCK_REFILLED apple");
    CHECK_ENGINE();
}

/* Each attribute makes the text longer, and needs a place of another size. */
TEST(attributes_need_no_memory_when_they_are_set)
{
    char value[HOLD_NOTE_MAX];

    start_shop();
    memset(value, 'v', sizeof value);
    for (unsigned i = 0; i < 9; i++) {
        char name[2] = {(char)('a' + i), 0};
        struct hold_command c = {.kind = HOLD_STOCK_ATTR,
                                 .name = hf_bytes_text("apple"),
                                 .reason = hf_bytes_text(name),
                                 .note = hf_bytes(value, 20 * i + 1),
                                 .now_us = engine_now_us};
        CHECK_EQ(starve(&c)->code, HOLD_OK);
    }
    CHECK_ENGINE();
}

TEST(what_is_deleted_gives_its_attributes_back)
{
    size_t before = 0;

    engine_start();
    for (int i = 0; i < 4000; i++) {
        engine_set("apple", 1);
        engine_do("STOCK ATTR apple colour a-value-of-more-than-sixteen-bytes");
        engine_do("STOCK ATTR apple colour another-value-of-about-that-size");
        engine_delete("apple");
        if (i == 1)
            before = memory_bytes();
    }
    CHECK_EQ(memory_bytes(), before);
}
