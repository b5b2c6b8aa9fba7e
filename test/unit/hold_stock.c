/* hold_stock.c - tests of products and reservations in the engine. */
#include "base/memory.h"
#include "hold/state.h"
#include "support/engine.h"

static void start_shop(void)
{
    engine_start();
    engine_set("apple", 10); /* version 1 */
    engine_set("pear", 5);   /* version 2 */
}

TEST(a_product_is_set_changed_and_shown)
{
    engine_start();
    const struct hold_out *out = engine_set("apple", 10);
    EXPECT(out, "OK sku=apple total=10 available=10 reserved=0 sold=0 "
                "version=1 updated_ms=1000000 low=0 waiting=0");
    EXPECT_EVENTS(out, "1 STOCK_CHANGED apple");
    engine_now_us += 3 * MS;
    EXPECT(engine_add("apple", -4), "OK sku=apple total=6 available=6 "
                                    "reserved=0 sold=0 version=2 "
                                    "updated_ms=1000003 low=0 waiting=0");
    EXPECT(engine_add("pear", 1), "NOTFOUND sku=pear");
    EXPECT(engine_get("apple"),
           "OK sku=apple total=6 available=6 reserved=0 "
           "sold=0 version=2 updated_ms=1000003 low=0 waiting=0 attributes={}");
    EXPECT(engine_get("pear"), "NOTFOUND sku=pear");
    EXPECT(engine_get("pear apple pear"),
           "OK null {sku=apple total=6 available=6 reserved=0 sold=0 "
           "version=2 updated_ms=1000003 low=0 waiting=0 attributes={}} null");
}

TEST(a_total_never_falls_below_what_is_reserved_and_sold)
{
    start_shop();
    engine_reserve("r1", "apple 3", 1000);
    engine_confirm("r1");
    engine_reserve("r2", "apple 2", 1000);
    EXPECT(engine_set("apple", 4),
           "SHORT sku=apple requested=4 reserved=2 sold=3");
    EXPECT(engine_add("apple", -6), "SHORT sku=apple requested=-6 available=5");
    EXPECT(engine_add("apple", -5),
           "OK sku=apple total=5 available=0 reserved=2 sold=3 version=6 "
           "updated_ms=1000000 low=0 waiting=0");
}

TEST(totals_stop_at_the_largest_number)
{
    engine_start();
    engine_set("apple", INT64_MAX);
    EXPECT(engine_add("apple", 1),
           "OVERLOADED name=stock-max maximum=9223372036854775807");
    EXPECT(engine_add("apple", INT64_MIN),
           "SHORT sku=apple requested=-9223372036854775808 "
           "available=9223372036854775807");
    engine_set("apple", 1);
    EXPECT(engine_add("apple", INT64_MAX),
           "OVERLOADED name=stock-max maximum=9223372036854775807");
    EXPECT(engine_reserve("r", "apple 9223372036854775807", 5),
           "SHORT sku=apple requested=9223372036854775807 available=1");
}

TEST(a_product_is_deleted_when_nothing_of_it_is_reserved)
{
    start_shop();
    engine_reserve("r1", "apple 1", 1000);
    EXPECT(engine_delete("apple"), "STATE sku=apple reserved=1");
    engine_confirm("r1");
    const struct hold_out *out = engine_delete("apple");
    EXPECT(out, "OK");
    EXPECT_EVENTS(out, "5 STOCK_DELETED apple");
    EXPECT(engine_delete("apple"), "NOTFOUND sku=apple");
}

TEST(products_max_is_told_by_name)
{
    start_shop();
    engine_bound("products_max", 2);
    EXPECT(engine_set("plum", 1), "OVERLOADED name=products-max maximum=2");
    EXPECT(engine_set("pear", 0),
           "OK sku=pear total=0 available=0 reserved=0 "
           "sold=0 version=3 updated_ms=1000000 low=0 waiting=0");
}

TEST(a_reservation_takes_all_items_or_none)
{
    start_shop();
    EXPECT(engine_reserve("r1", "pear 6 apple 1", 1000),
           "SHORT sku=pear requested=6 available=5");
    EXPECT(engine_reserve("r1", "plum 1 apple 99", 1000), "NOTFOUND sku=plum");
    EXPECT(engine_reserve("r1", "pear 9 apple 99", 1000),
           "SHORT sku=apple requested=99 available=10 items=["
           "{sku=apple requested=99 available=10} "
           "{sku=pear requested=9 available=5}]"); /* in sku order */
    CHECK_EQ(hold_seq(engine), 2);
    const struct hold_out *out = engine_reserve("r1", "pear 1 apple 3", 1000);
    EXPECT(out, "OK id=r1 status=PENDING expires_ms=1000 "
                "items=[{sku=apple quantity=3} {sku=pear quantity=1}]");
    EXPECT_EVENTS(out, "3 RESERVED r1");
    EXPECT(
        engine_get("apple pear"),
        "OK {sku=apple total=10 available=7 reserved=3 sold=0 version=3 "
        "updated_ms=1000000 low=0 waiting=0 attributes={}} {sku=pear total=5 "
        "available=4 reserved=1 "
        "sold=0 version=3 updated_ms=1000000 low=0 waiting=0 attributes={}}");
    CHECK_ENGINE();
}

TEST(the_same_sku_twice_counts_together)
{
    start_shop();
    EXPECT(engine_reserve("r1", "pear 3 apple 1 pear 3", 1000),
           "SHORT sku=pear requested=6 available=5");
    EXPECT(engine_reserve("r1", "pear 3 pear 2", 1000),
           "OK id=r1 status=PENDING expires_ms=1000 "
           "items=[{sku=pear quantity=5}]");
}

TEST(the_same_id_again_gives_the_first_answer_other_items_conflict)
{
    start_shop();
    engine_reserve("r1", "apple 3", 1000);
    engine_now_us += 400 * MS;
    const struct hold_out *out = engine_reserve("r1", "apple 3", 9999);
    EXPECT(out, "OK id=r1 status=PENDING expires_ms=600 "
                "items=[{sku=apple quantity=3}]");
    EXPECT_EVENTS(out, "");
    EXPECT(engine_reserve("r1", "apple 2", 1000), "CONFLICT id=r1");
    EXPECT(engine_reserve("r1", "apple 3 pear 1", 1000), "CONFLICT id=r1");
    engine_confirm("r1");
    EXPECT(engine_reserve("r1", "apple 3", 1000),
           "STATE id=r1 status=CONFIRMED");
    EXPECT(engine_reserve("r1", "apple 2", 1000),
           "STATE id=r1 status=CONFIRMED");
}

TEST(an_id_that_has_ended_is_not_reserved_again)
{
    start_shop();
    engine_reserve("sold", "apple 1", 1000);
    engine_reserve("back", "apple 1", 1000);
    engine_reserve("late", "apple 1", 1000);
    engine_confirm("sold");
    engine_cancel("back", "");
    engine_now_us += 1000 * MS;
    engine_tick();
    uint64_t digest = hold_digest(engine);
    EXPECT(engine_reserve("sold", "apple 1", 1000),
           "STATE id=sold status=CONFIRMED");
    EXPECT(engine_reserve("back", "apple 1", 1000),
           "STATE id=back status=CANCELLED");
    EXPECT(engine_reserve("late", "apple 1", 1000),
           "STATE id=late status=EXPIRED");
    CHECK_EQ(hold_digest(engine), digest);
}

/* The longest names there are: what is kept for the REQ has room. */
TEST(a_shortage_of_many_items_is_kept_for_its_request)
{
    char items[4 * (HOLD_SKU_MAX + 4) + 1];
    size_t len = 0;

    engine_start();
    for (int i = 0; i < 4; i++) {
        char sku[HOLD_SKU_MAX + 1];
        memset(sku, 'a' + i, HOLD_SKU_MAX);
        sku[HOLD_SKU_MAX] = '\0';
        engine_set(sku, i == 3 ? 5 : 1);
        len += (size_t)snprintf(items + len, sizeof items - len, "%s 2 ", sku);
    }
    engine_request = "q";
    char first[8192];
    snprintf(first, sizeof first, "%s",
             engine_reply_text(engine_reserve("r", items, 1000)));
    const char *list = strstr(first, "items=[");
    CHECK(list != NULL);
    for (int i = 0; i < 3; i++)
        CHECK((list = strstr(list + 1, "requested=2 available=1")) != NULL);
    CHECK(strstr(list + 1, "requested") == NULL); /* the fourth is not short */
    EXPECT(engine_reserve("r", items, 1000), first);
    engine_request = NULL;
}

TEST(a_made_id_holds_time_and_number_in_order)
{
    start_shop();
    EXPECT(engine_reserve("", "apple 1", 1000),
           "OK id=000000YGJ00000000000000003 status=PENDING expires_ms=1000 "
           "items=[{sku=apple quantity=1}]");
    EXPECT(engine_reserve("", "apple 1", 1000),
           "OK id=000000YGJ00000000000000004 status=PENDING expires_ms=1000 "
           "items=[{sku=apple quantity=1}]");
    /* somebody took the next id before */
    engine_reserve("000000YGJ00000000000000006", "apple 1", 1000);
    EXPECT(engine_reserve("", "apple 1", 1000),
           "CONFLICT id=000000YGJ00000000000000006");
}

/* An id that is made is longer, and of those there is none yet. */
TEST(an_id_of_one_byte_takes_the_room_of_a_short_one)
{
    start_shop();
    engine_reserve("r1", "apple 1", 5000);
    struct hold_command c = *engine_last();
    hf_memory_fail_after(0);
    c.name = hf_bytes_text("");
    enum hf_status made = hold_prepare(engine, &c);
    c.name = hf_bytes_text("r");
    enum hf_status named = hold_prepare(engine, &c);
    hf_memory_fail_never();
    CHECK_EQ(made, HF_NOMEM);
    CHECK_EQ(named, HF_OK);
}

TEST(confirming_sells_and_cancelling_gives_back)
{
    start_shop();
    engine_reserve("r1", "apple 3", 1000);
    engine_reserve("r2", "apple 2", 1000);
    const struct hold_out *out = engine_confirm("r1");
    EXPECT(out, "OK id=r1 status=CONFIRMED expires_ms=0 "
                "items=[{sku=apple quantity=3}]");
    EXPECT_EVENTS(out, "5 CONFIRMED r1");
    out = engine_cancel("r2", "too late");
    EXPECT(out, "OK id=r2 status=CANCELLED expires_ms=0 "
                "items=[{sku=apple quantity=2}]");
    EXPECT_EVENTS(out, "6 CANCELLED r2");
    EXPECT(engine_get("apple"),
           "OK sku=apple total=10 available=7 reserved=0 "
           "sold=3 version=6 updated_ms=1000000 low=0 waiting=0 attributes={}");
    EXPECT(engine_confirm("r1"), "STATE id=r1 status=CONFIRMED");
    EXPECT(engine_cancel("r1", ""), "STATE id=r1 status=CONFIRMED");
    EXPECT(engine_confirm("r2"), "STATE id=r2 status=CANCELLED");
    EXPECT(engine_extend("r2", 5), "STATE id=r2 status=CANCELLED");
    EXPECT(engine_confirm("r3"), "NOTFOUND id=r3");
    EXPECT(engine_cancel("r3", ""), "NOTFOUND id=r3");
    EXPECT(engine_extend("r3", 5), "NOTFOUND id=r3");
    EXPECT(engine_reservation("r2"),
           "OK id=r2 status=CANCELLED expires_ms=0 "
           "items=[{sku=apple quantity=2}] owner=ann created_ms=1000000 "
           "ended_ms=1000000 reason=too late class= extends=0");
}

TEST(a_reservation_expires_at_its_microsecond)
{
    start_shop();
    engine_reserve("r1", "apple 3", 100);
    engine_now_us += 100 * MS - 1;
    EXPECT(engine_reservation("r1"),
           "OK id=r1 status=PENDING expires_ms=0 "
           "items=[{sku=apple quantity=3}] owner=ann created_ms=1000000 "
           "ended_ms=0 reason= class= extends=0");
    EXPECT_EVENTS(engine_tick(), "");
    engine_now_us += 1;
    EXPECT(engine_reservation("r1"), "EARLY"); /* never shown again */
    EXPECT(engine_reservation("r2"), "NOTFOUND id=r2");
    EXPECT(engine_get("apple"), "EARLY");
    EXPECT(engine_products("", 0, 0), "EARLY");
    engine_now_us += 3 * MS;
    const struct hold_out *out = engine_confirm("r1");
    EXPECT(out, "EXPIRED id=r1 expires_ms=3");
    EXPECT_EVENTS(out, "4 RESERVATION_EXPIRED r1 +3000us");
    engine_now_us += 2 * MS;
    EXPECT(engine_cancel("r1", ""), "EXPIRED id=r1 expires_ms=5");
    EXPECT(engine_reservation("r1"), /* when it was over, not when swept */
           "OK id=r1 status=EXPIRED expires_ms=0 "
           "items=[{sku=apple quantity=3}] owner=ann created_ms=1000000 "
           "ended_ms=1000100 reason= class= extends=0");
    EXPECT(engine_extend("r1", 5), "EXPIRED id=r1 expires_ms=5");
    EXPECT(engine_get("apple"),
           "OK sku=apple total=10 available=10 reserved=0 "
           "sold=0 version=4 updated_ms=1000103 low=0 waiting=0 attributes={}");
}

TEST(extending_counts_from_now_and_may_shorten)
{
    start_shop();
    engine_reserve("r1", "apple 3", 100);
    engine_now_us += 99 * MS;
    const struct hold_out *out = engine_extend("r1", 500);
    EXPECT(out, "OK id=r1 status=PENDING expires_ms=500 "
                "items=[{sku=apple quantity=3}]");
    EXPECT_EVENTS(out, "4 EXTENDED r1");
    engine_extend("r1", 20);
    engine_now_us += 20 * MS;
    EXPECT_EVENTS(engine_tick(), "6 RESERVATION_EXPIRED r1");
}

TEST(ended_reservations_are_remembered_for_their_time)
{
    start_shop();
    engine_bound("ended_keep_ms", 50);
    engine_reserve("r1", "apple 1", 1000);
    engine_confirm("r1");
    engine_now_us += 50 * MS - 1;
    EXPECT(engine_confirm("r1"), "STATE id=r1 status=CONFIRMED");
    engine_now_us += 1;
    EXPECT(engine_confirm("r1"), "NOTFOUND id=r1");
    EXPECT(engine_reserve("r1", "pear 1", 1000), /* the id is free again */
           "OK id=r1 status=PENDING expires_ms=1000 "
           "items=[{sku=pear quantity=1}]");
}

/* Owner, reason and items, each in a place of its own. */
TEST(the_texts_of_a_reservation_go_with_it)
{
    struct hold_counts counts;
    size_t before = 0;

    start_shop();
    engine_bound("ended_keep_ms", 50);
    for (int i = 0; i < 20000; i++) {
        engine_reserve("r1", "apple 1 pear 1", 1000);
        engine_cancel("r1", "a reason that is longer than what was reserved, "
                            "so that they do not share their places");
        engine_now_us += 50 * MS;
        hold_count(engine, &counts);
        if (i == 10)
            before = counts.memory_bytes;
    }
    CHECK_EQ(counts.memory_bytes, before);
}

TEST(the_oldest_ended_reservation_makes_room)
{
    start_shop();
    engine_bound("reservations_max", 2);
    engine_reserve("r1", "apple 1", 1000);
    engine_reserve("r2", "apple 1", 1000);
    EXPECT(engine_reserve("r3", "apple 1", 1000),
           "OVERLOADED name=reservations-max maximum=2");
    EXPECT(
        engine_reserve("r3", "apple 99", 1000), /* stock is looked at first */
        "SHORT sku=apple requested=99 available=8");
    engine_cancel("r2", "");
    engine_confirm("r1");
    CHECK_EQ(engine_reserve("r3", "apple 1", 1000)->code, HOLD_OK);
    EXPECT(engine_confirm("r2"), "NOTFOUND id=r2");
    EXPECT(engine_confirm("r1"), "STATE id=r1 status=CONFIRMED");
    CHECK_ENGINE();
}

TEST(a_backlog_of_expired_reservations_is_settled_when_touched)
{
    char id[32];

    engine_start();
    engine_set("apple", 1000);
    for (int i = 0; i < 1000; i++) {
        snprintf(id, sizeof id, "r%d", i);
        engine_reserve(id, "apple 1", 100);
    }
    engine_now_us += 100 * MS;
    CHECK_EQ(engine_tick()->event_count, HOLD_STEP_MAX);
    EXPECT(engine_reservation("r999"), "EARLY");
    EXPECT(engine_confirm("r999"), "EXPIRED id=r999 expires_ms=0");
    CHECK(hold_is_behind(engine));
    EXPECT(engine_get("apple"), "EARLY");
    CHECK_EQ(engine_reserve("r998", "apple 1", 100)->code, HOLD_AGAIN);
    EXPECT(engine_again(), "STATE id=r998 status=EXPIRED");
    EXPECT(engine_get("apple"),
           "OK sku=apple total=1000 available=1000 reserved=0 sold=0 "
           "version=2001 updated_ms=1000100 low=0 waiting=0 attributes={}");
    CHECK_ENGINE();
}

/* Finding 8: units that are free are never refused, and no call is long. */
static void start_backlog(void)
{
    char id[32];

    engine_start();
    engine_set("apple", 1000);
    for (int i = 0; i < 1000; i++) {
        snprintf(id, sizeof id, "r%d", i);
        engine_reserve(id, "apple 1", 100);
    }
    engine_now_us += 100 * MS;
}

/* Applies the last record on; returns how often that was. */
static int go_on(const struct hold_out **out)
{
    int calls = 1;

    for (; (*out)->code == HOLD_AGAIN; *out = engine_again(), calls++) {
        CHECK_EQ((*out)->event_count, HOLD_STEP_MAX);
        CHECK_EQ((*out)->body.len, 0);
    }
    return calls;
}

TEST(what_depends_on_stock_waits_until_all_that_is_over_was_swept)
{
    start_backlog();
    const struct hold_out *out = engine_reserve("new", "apple 1000", 100);
    CHECK_EQ(go_on(&out), 4);
    EXPECT(out, "OK id=new status=PENDING expires_ms=100 "
                "items=[{sku=apple quantity=1000}]");
    start_backlog();
    out = engine_set("apple", 0);
    CHECK_EQ(go_on(&out), 4);
    CHECK_EQ(out->code, HOLD_OK);
    start_backlog();
    out = engine_add("apple", -1000);
    CHECK_EQ(go_on(&out), 4);
    CHECK_EQ(out->code, HOLD_OK);
    start_backlog();
    out = engine_delete("apple");
    CHECK_EQ(go_on(&out), 4);
    EXPECT(out, "OK");
    start_backlog();
    struct hold_command all = {
        .kind = HOLD_TICK, .now_us = engine_now_us, .amount = 1};
    out = engine_apply(&all);
    CHECK_EQ(go_on(&out), 4);
    EXPECT(out, "OK");
    CHECK(!hold_is_behind(engine));
    CHECK_EQ(engine_get("apple")->code, HOLD_OK);
    CHECK_ENGINE();
}

TEST(the_kinds_that_depend_on_stock_are_exact)
{
    CHECK(hold_kind_is_exact(HOLD_RESERVE));
    CHECK(hold_kind_is_exact(HOLD_STOCK_SET));
    CHECK(hold_kind_is_exact(HOLD_STOCK_ADD));
    CHECK(hold_kind_is_exact(HOLD_STOCK_DEL));
    CHECK(!hold_kind_is_exact(HOLD_CONFIRM));
    CHECK(!hold_kind_is_exact(HOLD_LOCK));
    CHECK(!hold_kind_is_exact(HOLD_TICK)); /* only with an amount */
    CHECK(!hold_kind_is_exact(HOLD_STOCK_GET));
}

TEST(a_replay_takes_all_the_calls_that_a_record_needs)
{
    static char record[HOLD_RECORD_MAX];

    start_backlog();
    engine_reload();
    struct hold_command c = *engine_last();
    c.name = hf_bytes_text("new");
    c.items[0].quantity = 1000;
    c.now_us = engine_now_us;
    size_t len = hold_encode(&c, record);
    CHECK_EQ(hold_replay(engine, hf_bytes(record, len), NULL, NULL), HF_OK);
    CHECK(!hold_is_behind(engine));
    CHECK_EQ(engine_reservation("new")->code, HOLD_OK);
}

TEST(products_are_listed_in_pages)
{
    start_shop();
    EXPECT(engine_products("p*", 0, 0),
           "OK products=[{sku=pear total=5 available=5 reserved=0 sold=0 "
           "version=2 updated_ms=1000000 low=0 waiting=0 attributes={}}] "
           "cursor=0");
    EXPECT(engine_products("", 0, 1),
           "OK products=[{sku=apple total=10 available=10 reserved=0 sold=0 "
           "version=1 updated_ms=1000000 low=0 waiting=0 attributes={}}] "
           "cursor=2");
    EXPECT(engine_products("nothing", 0, 9), "OK products=[] cursor=0");
}

/* Reads a listing to its end; returns its pages. */
static unsigned read_list(const char *pattern, uint64_t *listed,
                          uint64_t *most_work)
{
    uint64_t cursor = 0;
    unsigned pages = 0;

    *listed = 0;
    *most_work = 0;
    do {
        const struct hold_out *out = engine_products(pattern, cursor, 0);
        size_t at = 0;
        reply_next(out->body, &at);
        reply_next_field(out->body, &at);
        *listed += reply_next(out->body, &at).count;
        if (out->work > *most_work)
            *most_work = out->work;
        at = out->body.len - 9;
        cursor = (uint64_t)reply_next(out->body, &at).number;
        pages++;
    } while (cursor != 0);
    return pages;
}

/* Finding 3: what a page costs has a bound, whatever the pattern. */
TEST(a_page_ends_when_its_steps_are_used_up)
{
    char name[64];
    uint64_t listed;
    uint64_t work;

    engine_start();
    for (int i = 0; i < 30000; i++) {
        snprintf(name, sizeof name, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%d", i);
        engine_set(name, i);
    }
    CHECK_EQ(engine_get(name)->work, 1);
    CHECK_EQ(engine_set(name, 1)->work, 1);
    /* one step for each record, and one for each first byte */
    CHECK_EQ(read_list("nothing", &listed, &work), 2);
    CHECK_EQ(listed, 0);
    CHECK_EQ(work, HOLD_STEPS_MAX + 1);
    /* about 60 for each record: no page has an entry */
    CHECK(read_list("*a*a*a*a*z", &listed, &work) > 50);
    CHECK_EQ(listed, 0);
    CHECK(work > HOLD_STEPS_MAX && work < HOLD_STEPS_MAX + 1000);
    /* all of them, by the number of entries */
    CHECK_EQ(read_list("", &listed, &work), 30);
    CHECK_EQ(listed, 30000);
    CHECK_EQ(work, 1001);
    CHECK_EQ(read_list("a*", &listed, &work), 30);
    CHECK_EQ(listed, 30000);
}

/* Product `i`, with a name of this length. */
static void set_long(int i, size_t len)
{
    char name[HOLD_SKU_MAX + 1];

    memset(name, 'x', len);
    name[snprintf(name, sizeof name, "%03d", i)] = 'x';
    name[len] = '\0';
    engine_set(name, i);
}

/* Lists never outgrow their buffer, whatever the names. */
TEST(a_list_of_the_longest_names_comes_in_pages_that_add_up)
{
    uint64_t cursor = 0;
    uint64_t listed = 0;

    engine_start();
    for (int i = 0; i < 2500; i++)
        set_long(i, HOLD_SKU_MAX);
    do {
        const struct hold_out *out = engine_products("*x", cursor, 0);
        size_t at = 0;
        reply_next(out->body, &at);
        reply_next_field(out->body, &at);
        uint32_t count = reply_next(out->body, &at).count;
        CHECK(count > 0 && count <= HOLD_LIST_MAX);
        listed += count;
        /* the cursor is the last number of the body */
        at = out->body.len - 9;
        cursor = (uint64_t)reply_next(out->body, &at).number;
    } while (cursor != 0);
    CHECK_EQ(listed, 2500);
}

/* COUNT products, the first with a name of its own length. */
enum { COUNT = 990, OTHERS = 200 };
static const struct hold_out *list_of_names(size_t first, uint64_t count)
{
    engine_start();
    set_long(0, first);
    for (int i = 1; i < COUNT; i++)
        set_long(i, OTHERS);
    return engine_products("", 0, count);
}

/* The page goes on while two of the longest entries have room, and the length
 * of the first name decides whether they have, to the byte. */
TEST(a_page_takes_one_more_entry_while_two_have_room)
{
    enum { SHORT = 10, TAIL = 10 /* the cursor */ };
    size_t first = list_of_names(SHORT, 1)->body.len - TAIL;
    size_t entry = engine_products("", 0, 2)->body.len - TAIL - first;
    size_t limit = engine->body.cap - 2 * (HOLD_SKU_MAX + HOLD_ATTRS_BYTES +
                                           2 * HOLD_ATTRS_MAX + 160);
    uint64_t fit = 1 + (limit - first) / entry;
    size_t len = SHORT + (limit - first) % entry;

    CHECK(fit + 1 < COUNT && len < HOLD_SKU_MAX);
    CHECK_EQ(list_of_names(len, 0)->work, 1 + fit + 1);
    CHECK_EQ(list_of_names(len + 1, 0)->work, 1 + fit);
}
