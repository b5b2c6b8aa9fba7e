/* hold_class.c - tests of classes of reservations: TTL, caps, grace. */
#include "support/engine.h"

TEST_ONE_THREAD;

static void start_shop(void)
{
    engine_start();
    engine_set("apple", 10);
    engine_set("pear", 5);
}

TEST(the_ttl_is_of_the_call_else_of_the_class_else_of_the_setting)
{
    start_shop();
    EXPECT(engine_do("RESERVE a ITEM apple 1 CLASS vip"), "NOTFOUND class=vip");
    EXPECT_EVENTS(engine_do("CLASS SET vip TTL 5000"), "3 CLASS_SET vip");
    engine_do("CLASS SET plain EXTENDS 2");
    EXPECT_BEGINS(engine_do("RESERVE a ITEM apple 1 CLASS vip TTL 9"),
                  "OK id=a status=PENDING expires_ms=9 ");
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 1 CLASS vip"),
                  "OK id=b status=PENDING expires_ms=5000 ");
    EXPECT_BEGINS(engine_do("RESERVE c ITEM apple 1 CLASS plain"),
                  "OK id=c status=PENDING expires_ms=600000 ");
    engine_bound("reserve_ttl_ms", 7000);
    EXPECT_BEGINS(engine_do("RESERVE d ITEM apple 1"),
                  "OK id=d status=PENDING expires_ms=7000 ");
    EXPECT_BEGINS(engine_do("RESERVATION b"),
                  "OK id=b status=PENDING expires_ms=5000 items=["
                  "{sku=apple quantity=1}] owner= created_ms=1000000 "
                  "ended_ms=0 reason= class=vip extends=0");
    CHECK_ENGINE();
}

TEST(classes_are_listed_changed_deleted_and_bounded)
{
    start_shop();
    engine_do("CLASS SET a TTL 1 GRACE 2 EXTENDS 3 LIFE 4");
    engine_do("CLASS SET b");
    engine_do("CLASS SET a TTL 9");
    engine_reload();
    EXPECT(engine_do("CLASS LIST"),
           "OK classes=[{name=a ttl_ms=9 grace_ms=0 extends=0 life_ms=0} "
           "{name=b ttl_ms=0 grace_ms=0 extends=0 life_ms=0}] cursor=0");
    engine_bound("classes_max", 2);
    EXPECT(engine_do("CLASS SET c"), "OVERLOADED name=classes-max maximum=2");
    EXPECT(engine_do("CLASS SET b TTL 5"), "OK");
    EXPECT_EVENTS(engine_do("CLASS DEL b"), "7 CLASS_DELETED b");
    EXPECT(engine_do("CLASS DEL b"), "NOTFOUND class=b");
    CHECK_ENGINE();
}

/* A class of the same name is another one. */
TEST(a_class_that_was_deleted_counts_no_more)
{
    start_shop();
    engine_do("CLASS SET vip EXTENDS 1");
    engine_do("RESERVE r ITEM apple 1 CLASS vip TTL 1000");
    engine_do("EXTEND r TTL 1000");
    EXPECT(engine_do("EXTEND r TTL 1000"),
           "STATE id=r limit=extensions maximum=1");
    engine_do("CLASS DEL vip");
    engine_do("CLASS SET vip EXTENDS 1");
    engine_reload();
    EXPECT_BEGINS(engine_do("EXTEND r TTL 1000"), "OK id=r");
    EXPECT_BEGINS(engine_do("RESERVATION r"), "OK id=r");
    CHECK(strstr(engine_reply_text(engine_do("RESERVATION r")),
                 "class= extends=2") != NULL);
}

TEST(extensions_are_capped_in_number_and_in_all)
{
    start_shop();
    engine_bound("extends_max", 2);
    engine_bound("extend_total_ms", 5000);
    engine_do("RESERVE r ITEM apple 1 TTL 1000");
    engine_do("RESERVE q ITEM apple 1 TTL 60000"); /* longer from the start */
    engine_now_us += 500 * MS;
    engine_tick();
    uint64_t digest = hold_digest(engine);
    EXPECT(engine_do("EXTEND r TTL 4501"),
           "STATE id=r limit=ms of life maximum=5000");
    EXPECT(engine_do("EXTEND q TTL 60000"),
           "STATE id=q limit=ms of life maximum=5000");
    CHECK_EQ(hold_digest(engine), digest);
    EXPECT_BEGINS(engine_do("EXTEND r TTL 4500"),
                  "OK id=r status=PENDING expires_ms=4500 ");
    engine_do("EXTEND r TTL 1");
    EXPECT(engine_do("EXTEND r TTL 1"),
           "STATE id=r limit=extensions maximum=2");
    engine_bound("extends_max", 3); /* counts at once */
    EXPECT_BEGINS(engine_do("EXTEND r TTL 1"), "OK id=r");
    CHECK_ENGINE();
}

static void start_grace(void)
{
    start_shop();
    engine_bound("grace_ms", 100);
    engine_do("RESERVE r ITEM apple 4 ITEM pear 2 TTL 1000");
    engine_now_us += 1000 * MS;
    engine_tick();
}

TEST(a_confirm_within_the_grace_time_sells_what_is_still_free)
{
    start_grace();
    engine_has("apple", 10, 0, 0);
    engine_now_us += 100 * MS - 1;
    engine_reload();
    const struct hold_out *out = engine_do("CONFIRM r");
    EXPECT(out, "OK id=r status=CONFIRMED expires_ms=0 items=["
                "{sku=apple quantity=4} {sku=pear quantity=2}]");
    EXPECT_EVENTS(out, "5 CONFIRMED_LATE r");
    engine_has("apple", 6, 0, 4);
    engine_has("pear", 3, 0, 2);
    EXPECT(engine_do("CONFIRM r"), "STATE id=r status=CONFIRMED");
    CHECK_ENGINE();
    engine_reload();
    CHECK_ENGINE();
}

TEST(the_grace_time_ends_at_its_microsecond)
{
    start_grace();
    engine_now_us += 100 * MS;
    EXPECT(engine_do("CONFIRM r"), "EXPIRED id=r expires_ms=100");
    engine_has("apple", 10, 0, 0);
}

TEST(only_confirm_has_a_grace_time)
{
    start_grace();
    uint64_t digest = hold_digest(engine);
    EXPECT(engine_do("CANCEL r"), "EXPIRED id=r expires_ms=0");
    EXPECT(engine_do("CANCEL r ITEM apple 1"), "EXPIRED id=r expires_ms=0");
    EXPECT(engine_do("EXTEND r TTL 5"), "EXPIRED id=r expires_ms=0");
    EXPECT(engine_do("RESERVE r ITEM apple 4 ITEM pear 2"),
           "STATE id=r status=EXPIRED");
    CHECK_EQ(hold_digest(engine), digest);
}

TEST(a_late_confirm_of_what_is_gone_is_short_and_may_be_tried_again)
{
    start_grace();
    engine_do("RESERVE q ITEM apple 7 ITEM pear 4 TTL 1000");
    uint64_t digest = hold_digest(engine);
    EXPECT(engine_do("CONFIRM r"),
           "SHORT sku=apple requested=4 available=3 items=["
           "{sku=apple requested=4 available=3} "
           "{sku=pear requested=2 available=1}]");
    CHECK_EQ(hold_digest(engine), digest);
    EXPECT(engine_do("CONFIRM r ITEM apple 3 ITEM pear 3"),
           "BADARG id=r sku=pear requested=3 reserved=2");
    EXPECT(engine_do("CONFIRM r ITEM apple 3"),
           "OK id=r status=CONFIRMED expires_ms=0 items=["
           "{sku=apple quantity=3}]");
    engine_has("apple", 0, 7, 3);
    engine_has("pear", 1, 4, 0);
    CHECK_ENGINE();
}

TEST(a_product_that_was_deleted_is_not_sold_late)
{
    start_grace();
    engine_delete("pear");
    EXPECT(engine_do("CONFIRM r"), "NOTFOUND sku=pear");
    EXPECT_BEGINS(engine_do("CONFIRM r ITEM apple 4"), "OK id=r");
    CHECK_ENGINE();
}

/* What is due frees units first: it is not short of them. */
TEST(a_late_confirm_waits_for_the_sweep)
{
    char id[32];

    engine_start();
    engine_set("apple", 1000);
    engine_bound("grace_ms", 1000);
    engine_do("RESERVE late ITEM apple 1000 TTL 100");
    engine_now_us += 100 * MS;
    engine_tick();
    for (int i = 0; i < 1000; i++) {
        snprintf(id, sizeof id, "r%d", i);
        engine_reserve(id, "apple 1", 100);
    }
    engine_now_us += 100 * MS;
    CHECK_EQ(engine_do("CONFIRM late")->code, HOLD_AGAIN);
    while (hold_is_behind(engine))
        engine_again();
    EXPECT_BEGINS(engine_do("RESERVATION late"), "OK id=late status=CONFIRMED");
    engine_has("apple", 0, 0, 1000);
    CHECK_ENGINE();
}

TEST(one_with_grace_is_remembered_as_long)
{
    start_grace();
    engine_bound("ended_keep_ms", 1);
    engine_bound("reservations_max", 1);
    engine_now_us += 50 * MS;
    engine_tick();
    EXPECT_BEGINS(engine_do("RESERVATION r"), "OK id=r status=EXPIRED");
    EXPECT(engine_do("RESERVE q ITEM apple 1"),
           "OVERLOADED name=reservations-max maximum=1");
    engine_now_us += 50 * MS;
    EXPECT_BEGINS(engine_do("RESERVE q ITEM apple 1"), "OK id=q");
    EXPECT(engine_do("RESERVATION r"), "NOTFOUND id=r");
}

TEST(a_late_confirm_in_a_group_that_is_refused_is_taken_back)
{
    start_grace();
    engine_do("CLASS SET vip GRACE 1");
    uint64_t digest = hold_digest(engine);
    EXPECT_BEGINS(engine_group(NULL, "CLASS SET vip GRACE 9; CLASS SET new; "
                                     "CONFIRM r ITEM apple 1; CONFIRM none"),
                  "EXECABORT position=4");
    CHECK_EQ(hold_digest(engine), digest);
    CHECK_ENGINE();
    EXPECT_BEGINS(engine_group(NULL, "CONFIRM r; STOCK GET apple"), "OK ");
    CHECK_ENGINE();
}

/* The TTL is decided when it is queued, and counts from when it is served. */
TEST(what_waits_for_stock_has_the_ttl_of_its_class)
{
    start_shop();
    engine_do("CLASS SET vip TTL 5000");
    engine_do("RESERVE a ITEM apple 10 TTL 60000");
    EXPECT_BEGINS(engine_do("RESERVE b ITEM apple 1 CLASS vip WAIT 9000"),
                  "WAITING");
    EXPECT(engine_do("RESERVE c ITEM apple 1 CLASS none WAIT 9000"),
           "NOTFOUND class=none");
    engine_do("CLASS SET vip TTL 7000");
    engine_reload();
    engine_now_us += 1000 * MS;
    EXPECT_BEGINS(engine_do("RESERVATION b"), "OK id=b status=WAITING");
    CHECK(strstr(engine_reply_text(engine_do("RESERVATION b")),
                 "class=vip extends=0") != NULL);
    engine_do("CANCEL a");
    EXPECT_BEGINS(engine_do("RESERVATION b"),
                  "OK id=b status=PENDING expires_ms=5000 ");
    CHECK(strstr(engine_reply_text(engine_do("RESERVATION b")),
                 "class=vip extends=0") != NULL);
    CHECK_ENGINE();
}

/* As a RESERVE that does not wait. */
TEST(a_late_confirm_does_not_take_what_others_wait_for)
{
    start_grace();
    EXPECT_BEGINS(engine_do("RESERVE w ITEM apple 11 WAIT 9000"), "WAITING");
    uint64_t digest = hold_digest(engine);
    EXPECT(engine_do("CONFIRM r"),
           "SHORT sku=apple requested=4 available=10 waiting=1");
    EXPECT(engine_do("CONFIRM r ITEM apple 1"),
           "SHORT sku=apple requested=1 available=10 waiting=1");
    CHECK_EQ(hold_digest(engine), digest);
    EXPECT_BEGINS(engine_do("CONFIRM r ITEM pear 2"), "OK id=r");
    engine_has("apple", 10, 0, 0);
    engine_has("pear", 3, 0, 2);
    CHECK_ENGINE();
}

/* Their units were available. */
TEST(a_late_confirm_tells_that_a_product_is_low)
{
    start_grace();
    engine_do("STOCK LOW apple 6");
    engine_do("STOCK LOW pear 2");
    EXPECT_EVENTS(engine_do("CONFIRM r"), "7 CONFIRMED_LATE r; 8 STOCK_LOW "
                                          "apple");
    CHECK_ENGINE();
}

/* Writes the items that a command has of all products, one unit of each, whose
 * names have so many bytes. */
static const char *all_items(uint32_t count, int len)
{
    static char text[16 * (HOLD_SKU_MAX + 8)];
    size_t at = 0;

    for (uint32_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, " ITEM %0*u 1", len,
                               i);
    return text;
}

/* SHORT names the first product twice, and how many wait: all of it is kept
 * for the REQ. */
TEST(a_late_confirm_that_is_short_is_kept_for_its_req_whatever_the_names)
{
    char first[16 * (HOLD_SKU_MAX + 80)];

    for (uint32_t count = 1; count <= 12; count++) {
        for (int len = HOLD_SKU_MAX - 24; len <= (int)HOLD_SKU_MAX; len++) {
            engine_start();
            engine_bound("grace_ms", 100);
            for (uint32_t i = 0; i < count; i++)
                engine_do("STOCK SET %0*u 1", len, i);
            engine_do("RESERVE r%s TTL 10", all_items(count, len));
            engine_now_us += 10 * MS;
            engine_do("RESERVE q%s", all_items(count, len));
            engine_do("RESERVE w%s WAIT 50", all_items(count, len));
            EXPECT_BEGINS(engine_group("y", "CONFIRM r"),
                          "EXECABORT position=1");
            snprintf(first, sizeof first, "%s",
                     engine_reply_text(engine_do("CONFIRM r REQ x")));
            CHECK(strncmp(first, "SHORT", 5) == 0);
            engine_now_us += 50 * MS;
            engine_do("CANCEL q");
            EXPECT(engine_do("CONFIRM r REQ x"), first);
        }
    }
}

static void put_numbers(struct hf_buf *out, char kind, const uint64_t *numbers,
                        size_t count)
{
    char bytes[8];

    CHECK_EQ(hf_buf_append(out, &kind, 1), HF_OK);
    for (size_t i = 0; i < count; i++) {
        hf_put_u64(bytes, numbers[i]);
        CHECK_EQ(hf_buf_append(out, bytes, sizeof bytes), HF_OK);
    }
}

static void put_text(struct hf_buf *out, const char *data, size_t len)
{
    char bytes[2];

    hf_put_u16(bytes, (uint16_t)len);
    CHECK_EQ(hf_buf_append(out, bytes, sizeof bytes), HF_OK);
    CHECK_EQ(hf_buf_append(out, data, len), HF_OK);
}

/* Twelve bounds without a count, reservations with five numbers. */
TEST(a_snapshot_of_a_build_before_classes_is_read)
{
    static const uint64_t head[] = {2,  9,  1000000000, 10,    10,    10,
                                    10, 10, 10,         60000, 60000, 10,
                                    10, 10, 10,         0,     1,     1};
    static const uint64_t product[] = {10, 3, 0, 9, 1000000000};
    static const uint64_t reservation[] = {9, 1000000000, 1001000000, 0, 0};
    static const char items[] = "\5\0apple\3\0\0\0\0\0\0\0";
    struct hf_buf image = {0};

    engine_start();
    put_numbers(&image, 'H', head, sizeof head / sizeof head[0]);
    put_numbers(&image, 'P', product, 5);
    put_text(&image, "apple", 5);
    put_numbers(&image, 'R', reservation, 5);
    put_text(&image, "r", 1);
    put_text(&image, "ann", 3);
    put_text(&image, "", 0);
    put_text(&image, items, sizeof items - 1);
    CHECK_EQ(hold_load(engine, hf_buf_bytes(&image)), HF_OK);
    hf_buf_destroy(&image);
    CHECK_ENGINE();
    EXPECT(engine_do("RESERVATION r"),
           "OK id=r status=PENDING expires_ms=1000 items=["
           "{sku=apple quantity=3}] owner=ann created_ms=1000000 ended_ms=0 "
           "reason= class= extends=0");
    CHECK_EQ(hold_get_bounds(engine).reserve_ttl_ms, 600000);
    CHECK_EQ(hold_get_bounds(engine).tree_names_max, 10);
    EXPECT_BEGINS(engine_do("CONFIRM r"), "OK id=r status=CONFIRMED");
}

/* So a later build may have more of them. */
TEST(a_snapshot_tells_how_many_bounds_it_has)
{
    uint64_t head[] = {4, 9, 1000000000, 0, 2, 11, 12, 0, 0, 0};
    struct hf_buf image = {0};

    engine_start();
    put_numbers(&image, 'H', head, sizeof head / sizeof head[0]);
    CHECK_EQ(hold_load(engine, hf_buf_bytes(&image)), HF_OK);
    CHECK_EQ(hold_get_bounds(engine).locks_max, 11);
    CHECK_EQ(hold_get_bounds(engine).waiters_max, 12);
    CHECK_EQ(hold_get_bounds(engine).classes_max, 100);
    CHECK_ENGINE();
    engine_start();
    image.len = 0;
    head[4] = HOLD_BOUNDS_COUNT + 1;
    put_numbers(&image, 'H', head, sizeof head / sizeof head[0]);
    CHECK_EQ(hold_load(engine, hf_buf_bytes(&image)), HF_CORRUPT);
    hf_buf_destroy(&image);
}
