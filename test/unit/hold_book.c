/* hold_book.c - tests of the book that is kept from events. */
#include "hold/book.h"

#include "base/memory.h"
#include "support/engine.h"

TEST_ONE_THREAD;

static const struct hf_hash_seed seed = {{5, 6}};
static struct hold_book *book;  /* of all */
static struct hold_book *apple; /* of that product */

static void start_books(void)
{
    hold_book_free(book);
    hold_book_free(apple);
    book = hold_book_new(seed, hf_bytes("", 0));
    apple = hold_book_new(seed, hf_bytes_text("apple"));
    CHECK(book != NULL && apple != NULL);
    CHECK_EQ(hold_book_open(book, engine), HF_OK);
    CHECK_EQ(hold_book_open(apple, engine), HF_OK);
}

static void start(void)
{
    engine_start();
    CHECK_EQ(hold_tell(engine), HF_OK);
    start_books();
}

static void follow(const struct hold_out *out)
{
    for (size_t i = 0; i < out->event_count; i++) {
        CHECK_EQ(hold_book_event(book, &out->events[i]), HF_OK);
        CHECK_EQ(hold_book_event(apple, &out->events[i]), HF_OK);
    }
    CHECK_EQ(hold_book_compare(book, engine), HF_OK);
    CHECK_EQ(hold_book_compare(apple, engine), HF_OK);
    CHECK_EQ(hold_book_finish(book, engine), HF_OK);
    CHECK_EQ(hold_book_finish(apple, engine), HF_OK);
}

/* "total reserved sold", or "none". */
static const char *numbers_text(struct hold_numbers numbers)
{
    static char text[80];

    if (!numbers.exists)
        return "none";
    snprintf(
        text, sizeof text, "%llu %llu %llu", (unsigned long long)numbers.total,
        (unsigned long long)numbers.reserved, (unsigned long long)numbers.sold);
    return text;
}

#define EXPECT_NUMBERS(sku, expected)                                   \
    do {                                                                \
        const char *text_ =                                             \
            numbers_text(hold_book_numbers(book, hf_bytes_text(sku)));  \
        CHECK_TEXT(text_, strlen(text_), expected);                     \
        text_ = numbers_text(hold_numbers(engine, hf_bytes_text(sku))); \
        CHECK_TEXT(text_, strlen(text_), expected);                     \
    } while (0)

TEST(a_book_follows_everything_that_happens_to_stock)
{
    start();
    follow(engine_set("apple", 10));
    follow(engine_set("pear", 5));
    follow(engine_reserve("a", "apple 3 pear 1", 1000));
    EXPECT_NUMBERS("apple", "10 3 0");
    follow(engine_reserve("b", "apple 2", 500));
    follow(engine_confirm("a"));
    EXPECT_NUMBERS("apple", "10 2 3");
    EXPECT_NUMBERS("pear", "5 0 1");
    follow(engine_add("apple", 7));
    follow(engine_extend("b", 900));
    engine_now_us += 900 * MS;
    follow(engine_tick());
    EXPECT_NUMBERS("apple", "17 0 3");
    follow(engine_reserve("c", "apple 14", 500));
    follow(engine_cancel("c", "no"));
    follow(engine_delete("apple"));
    EXPECT_NUMBERS("apple", "none");
    follow(engine_set("apple", 4));
    EXPECT_NUMBERS("apple", "4 0 0");
    follow(engine_group(NULL, "STOCK DEL apple; STOCK SET apple 6; "
                              "RESERVE d ITEM apple 6"));
    EXPECT_NUMBERS("apple", "6 6 0");
    follow(engine_flush());
    EXPECT_NUMBERS("apple", "none");
    CHECK_EQ(hold_book_numbers(apple, hf_bytes_text("pear")).exists, false);
    CHECK(hold_book_steps(book) > hold_book_steps(apple));
    CHECK_EQ(hold_book_steps(apple), 14);
}

/* Also a book about one product, when units of others are freed, or its own. */
TEST(a_book_follows_reservations_that_end_in_part)
{
    start();
    follow(engine_set("apple", 10));
    follow(engine_set("pear", 5));
    follow(engine_reserve("a", "apple 3 pear 4", 1000));
    follow(engine_do("CANCEL a ITEM pear 1"));
    EXPECT_NUMBERS("pear", "5 3 0");
    follow(engine_do("CANCEL a ITEM apple 1 ITEM pear 1"));
    EXPECT_NUMBERS("apple", "10 2 0");
    follow(engine_do("CONFIRM a ITEM apple 1"));
    EXPECT_NUMBERS("apple", "10 0 1");
    EXPECT_NUMBERS("pear", "5 0 0");
    follow(engine_reserve("b", "apple 3 pear 4", 1000));
    follow(engine_do("CANCEL b ITEM apple 3"));
    EXPECT_NUMBERS("apple", "10 0 1");
    follow(engine_do("CANCEL b ITEM pear 3"));
    follow(engine_confirm("b"));
    EXPECT_NUMBERS("pear", "5 0 1");
    follow(engine_reserve("c", "pear 2", 1000));
    follow(engine_do("CANCEL c ITEM pear 1"));
    engine_now_us += 1000 * MS;
    follow(engine_tick());
    EXPECT_NUMBERS("pear", "5 0 1");
}

/* Its units are free in between. */
TEST(a_book_follows_reservations_that_are_confirmed_late)
{
    start();
    engine_bound("grace_ms", 1000);
    follow(engine_set("apple", 10));
    follow(engine_set("pear", 5));
    follow(engine_reserve("a", "apple 3 pear 4", 1000));
    engine_now_us += 1000 * MS;
    follow(engine_tick());
    EXPECT_NUMBERS("apple", "10 0 0");
    follow(engine_confirm("a"));
    EXPECT_NUMBERS("apple", "10 0 3");
    EXPECT_NUMBERS("pear", "5 0 4");
    follow(engine_reserve("b", "apple 3 pear 1", 1000));
    engine_now_us += 1000 * MS;
    follow(engine_do("CONFIRM b ITEM apple 2"));
    EXPECT_NUMBERS("apple", "10 0 5");
    EXPECT_NUMBERS("pear", "5 0 4");
    follow(engine_delete("apple"));
}

TEST(a_book_is_opened_with_what_is_there)
{
    start();
    engine_set("apple", 10);
    engine_set("pear", 5);
    engine_reserve("a", "apple 3 pear 1", 1000);
    engine_reserve("b", "apple 2", 1000);
    engine_confirm("b");
    engine_reload();
    CHECK_EQ(hold_tell(engine), HF_OK);
    start_books();
    EXPECT_NUMBERS("apple", "10 3 2");
    follow(engine_confirm("a"));
    EXPECT_NUMBERS("apple", "10 0 5");
}

/* What an event should not say, said to a book with 10 apples, of which "a" has
 * 3; returns what is found wrong. */
static const char *lie(enum hold_event_kind kind, const char *name,
                       const char *items, uint64_t total, uint64_t available)
{
    static char bytes[64];
    struct hold_event event = {.seq = 9,
                               .kind = kind,
                               .name = hf_bytes_text(name),
                               .total = total,
                               .available = available};
    const char *space = strchr(items, ' ');

    start();
    follow(engine_set("apple", 10));
    follow(engine_reserve("a", "apple 3", 1000));
    if (space != NULL) {
        size_t len = (size_t)(space - items);
        hf_put_u16(bytes, (uint16_t)len);
        memcpy(bytes + 2, items, len);
        hf_put_u64(bytes + 2 + len, strtoull(space, NULL, 10));
        event.items = hf_bytes(bytes, 2 + len + 8);
    }
    CHECK_EQ(hold_book_event(book, &event), HF_CORRUPT);
    CHECK_EQ(hold_book_event(apple, &event),
             strncmp(items, "pear", 4) == 0 ? HF_OK : HF_CORRUPT);
    return hold_book_wrong(book);
}

#define EXPECT_WRONG(found, expected) CHECK_TEXT(found, strlen(found), expected)

TEST(a_unit_that_is_promised_or_comes_back_twice_is_found)
{
    EXPECT_WRONG(lie(EVENT_RESERVED, "a", "apple 1", 0, 0),
                 "reservation 'a' is made a second time");
    EXPECT_WRONG(lie(EVENT_RESERVED, "b", "apple 8", 0, 0),
                 "product 'apple' is promised twice: total 10, reserved 11, "
                 "sold 0");
    EXPECT_WRONG(lie(EVENT_CONFIRMED, "b", "apple 3", 0, 0),
                 "event 9 is about reservation 'b', which is not pending");
    EXPECT_WRONG(lie(EVENT_RESERVATION_EXPIRED, "a", "apple 4", 0, 0),
                 "event 9 ends reservation 'a' with other units than it had");
    EXPECT_WRONG(lie(EVENT_REDUCED, "a", "apple 4", 0, 0),
                 "event 9 frees units of reservation 'a' that it does not "
                 "have, or all of them");
    EXPECT_WRONG(lie(EVENT_REDUCED, "a", "apple 3", 0, 0),
                 "event 9 frees units of reservation 'a' that it does not "
                 "have, or all of them");
    EXPECT_WRONG(lie(EVENT_REDUCED, "b", "apple 1", 0, 0),
                 "event 9 frees units of reservation 'b' that it does not "
                 "have, or all of them");
    EXPECT_WRONG(lie(EVENT_CONFIRMED_LATE, "a", "apple 3", 0, 0),
                 "event 9 confirms reservation 'a' late, which is still "
                 "pending");
    EXPECT_WRONG(lie(EVENT_CONFIRMED_LATE, "b", "apple 8", 0, 0),
                 "product 'apple' is promised twice: total 10, reserved 3, "
                 "sold 8");
    EXPECT_WRONG(lie(EVENT_EXTENDED, "b", "apple 3", 0, 0),
                 "event 9 extends reservation 'b', which is not pending");
    EXPECT_WRONG(lie(EVENT_RESERVED, "b", "pear 1", 0, 0),
                 "event 9 of reservation 'b' is about 1 units of product "
                 "'pear', which is not there");
}

TEST(numbers_that_do_not_add_up_are_found)
{
    EXPECT_WRONG(lie(EVENT_STOCK_CHANGED, "apple", "", 12, 12),
                 "event 9: product 'apple' has 12 available of 12, with 3 "
                 "reserved and 0 sold");
    EXPECT_WRONG(lie(EVENT_STOCK_CHANGED, "apple", "", 2, 5),
                 "event 9: product 'apple' has 5 available of 2, with 3 "
                 "reserved and 0 sold");
    EXPECT_WRONG(lie(EVENT_STOCK_DELETED, "apple", "", 0, 0),
                 "event 9 deletes product 'apple', which has reserved units");
}

/* The engine does something that it does not tell, or that is not told on. */
TEST(an_engine_that_has_other_numbers_is_found)
{
    start();
    follow(engine_set("apple", 10));
    engine_add("apple", 1);
    CHECK_EQ(hold_book_compare(book, engine), HF_OK); /* nothing was touched */
    CHECK_EQ(hold_book_finish(book, engine), HF_CORRUPT);
    EXPECT_WRONG(hold_book_wrong(book),
                 "product 'apple' has total 11, reserved 0, sold 0, by the "
                 "events 10, 0, 0");
    start();
    engine_set("apple", 10);
    CHECK_EQ(hold_book_finish(book, engine), HF_CORRUPT);
    EXPECT_WRONG(hold_book_wrong(book),
                 "1 products and 0 pending reservations, by the events 0 and "
                 "0");
    CHECK_EQ(hold_book_finish(apple, engine), HF_CORRUPT);
    start();
    follow(engine_set("apple", 10));
    engine_reserve("a", "apple 3", 1000);
    const struct hold_out *out = engine_confirm("a");
    CHECK_EQ(hold_book_event(book, &out->events[0]), HF_CORRUPT);
    start();
    follow(engine_set("apple", 10));
    engine_delete("apple");
    out = engine_set("apple", 9);
    CHECK_EQ(hold_book_event(book, &out->events[0]), HF_OK);
    CHECK_EQ(hold_book_compare(book, engine), HF_OK);
    engine_delete("apple");
    CHECK_EQ(hold_book_finish(book, engine), HF_CORRUPT);
    EXPECT_WRONG(hold_book_wrong(book), "product 'apple' is gone");
}

TEST(what_an_event_does_to_a_product)
{
    const struct hf_bytes sku = hf_bytes_text("apple");

    start();
    engine_set("pear", 10);
    const struct hold_out *out = engine_set("apple", 10);
    struct hold_change change = hold_event_change(&out->events[0], sku);
    CHECK_EQ(change.effect, EFFECT_TOTAL);
    CHECK_EQ(change.total, 10);
    CHECK_EQ(change.committed, 0);
    change = hold_event_change(&out->events[0], hf_bytes_text("pear"));
    CHECK_EQ(change.effect, EFFECT_NONE);
    out = engine_reserve("apple", "pear 1 apple 2", 1000);
    change = hold_event_change(&out->events[0], sku);
    CHECK_EQ(change.effect, EFFECT_UNITS);
    CHECK_EQ(change.reserved, 2);
    CHECK_EQ(change.sold, 0);
    out = engine_confirm("apple");
    change = hold_event_change(&out->events[0], sku);
    CHECK_EQ(change.effect, EFFECT_UNITS);
    CHECK_EQ(change.reserved, -2);
    CHECK_EQ(change.sold, 2);
    engine_bound("grace_ms", 1000);
    engine_reserve("late", "apple 3", 1);
    engine_now_us += MS;
    engine_tick();
    out = engine_confirm("late");
    change = hold_event_change(&out->events[0], sku);
    CHECK_EQ(change.effect, EFFECT_UNITS);
    CHECK_EQ(change.reserved, 0);
    CHECK_EQ(change.sold, 3);
    out = engine_add("apple", 5);
    CHECK_EQ(hold_event_change(&out->events[0], sku).committed, 5);
    out = engine_do("STOCK ATTR apple colour red");
    change = hold_event_change(&out->events[0], sku);
    CHECK_EQ(change.effect, EFFECT_UNITS);
    CHECK_EQ(change.reserved, 0);
    CHECK_EQ(change.sold, 0);
    out = engine_delete("apple");
    CHECK_EQ(hold_event_change(&out->events[0], sku).effect, EFFECT_GONE);
    out = engine_flush();
    CHECK_EQ(hold_event_change(&out->events[0], sku).effect, EFFECT_GONE);
}

/* Opens a book and lets it follow; HF_NOMEM at the first failure. */
static enum hf_status try_all(const struct hold_out *out)
{
    struct hold_book *tried = hold_book_new(seed, hf_bytes("", 0));
    enum hf_status status = HF_NOMEM;

    if (tried != NULL)
        status = hold_book_open(tried, engine);
    for (size_t i = 0; status == HF_OK && out != NULL && i < out->event_count;
         i++)
        status = hold_book_event(tried, &out->events[i]);
    hold_book_free(tried);
    return status;
}

TEST(without_memory_a_book_says_so)
{
    start();
    engine_set("apple", 10);
    engine_reserve("a", "apple 3", 1000);
    enum hf_status status = HF_NOMEM;
    for (uint64_t allowed = 0; status == HF_NOMEM; allowed++) {
        hf_memory_fail_after(allowed);
        status = try_all(NULL);
        hf_memory_fail_never();
        CHECK(status == HF_OK || (status == HF_NOMEM && allowed < 100));
    }
}
