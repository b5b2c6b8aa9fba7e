/* hold_expect.c - tests of what is announced, and of who books it. */
#include "hold/expect.h"
#include "support/engine.h"

TEST_ONE_THREAD;

/* The engine starts at second 1000. */
#define ANNOUNCE(n, at, ref) "STOCK EXPECT pen " #n " AT " #at " REF " ref
#define SUMS(expected, booked, uncovered)                            \
    "OK sku=pen expected=" #expected " booked=" #booked " uncovered" \
    "=" #uncovered
#define BOOKED(id, position, at) \
    "OK id=" id " status=BOOKED position=" #position " expected_ms=" #at
#define SHOWN(expected, booked, uncovered, arrivals, bookings) \
    SUMS(expected, booked, uncovered)                          \
    " arrivals=[" arrivals "] bookings=[" bookings "] cursor=0"
#define ARRIVAL(ref, n, at, late) \
    "{ref=" ref " quantity=" #n " expected_ms=" #at " late=" #late "}"

/* None there, 5 for second 1002 and 3 for second 1001. */
static void two_arrivals(void)
{
    engine_start();
    engine_set("pen", 0);
    EXPECT(engine_do(ANNOUNCE(5, 1002000, "b")), SUMS(5, 0, 0));
    EXPECT(engine_do(ANNOUNCE(3, 1001000, "a")), SUMS(8, 0, 0));
}

static void book(const char *id, unsigned quantity, const char *expected)
{
    char words[80];

    snprintf(words, sizeof words, "RESERVE %s ITEM pen %u TTL 500 PREORDER", id,
             quantity);
    EXPECT(engine_do(words), expected);
}

TEST(what_is_announced_is_outside_the_total)
{
    two_arrivals();
    EXPECT_BEGINS(engine_do("STOCK GET pen"),
                  "OK sku=pen total=0 available=0 reserved=0 sold=0 version=1 "
                  "updated_ms=1000000 low=0 waiting=0 attributes={} expected=8 "
                  "booked=0");
    EXPECT(engine_do("STOCK EXPECTED pen"),
           SHOWN(8, 0, 0,
                 ARRIVAL("a", 3, 1001000, 0) " " ARRIVAL("b", 5, 1002000, 0),
                 ""));
    EXPECT(engine_do("STOCK EXPECTED ink"), "NOTFOUND sku=ink");
    CHECK_ENGINE();
}

TEST(the_same_reference_again_changes_units_and_time_and_0_withdraws_it)
{
    two_arrivals();
    EXPECT_EVENTS(engine_do(ANNOUNCE(7, 1009000, "a")),
                  "4 ARRIVAL_EXPECTED pen");
    EXPECT(engine_do("STOCK EXPECT pen 6 REF a"), SUMS(11, 0, 0));
    EXPECT(engine_do("STOCK EXPECTED pen"),
           SHOWN(11, 0, 0,
                 ARRIVAL("b", 5, 1002000, 0) " " ARRIVAL("a", 6, 1009000, 0),
                 ""));
    EXPECT(engine_do("STOCK EXPECT pen 0 REF b"), SUMS(6, 0, 0));
    EXPECT(engine_do("STOCK EXPECT pen 0 REF b"), "NOTFOUND sku=pen ref=b");
    EXPECT(engine_do("STOCK EXPECT pen 2 REF b"), "BADARG sku=pen ref=b");
    EXPECT(engine_do("STOCK EXPECT ink 2 AT 5 REF b"), "NOTFOUND sku=ink");
    EXPECT(engine_do("STOCK EXPECT pen 0 REF a"), SUMS(0, 0, 0));
    CHECK_EQ(hf_index_count(&engine->expects), 0); /* nothing is kept */
    CHECK_ENGINE();
}

TEST(announcements_have_bounds)
{
    char words[80];

    engine_start();
    engine_set("pen", 0);
    for (unsigned i = 0; i < HOLD_EXPECT_MAX; i++) {
        snprintf(words, sizeof words, "STOCK EXPECT pen 1 AT 2000000 REF r%u",
                 i);
        EXPECT_BEGINS(engine_do(words), "OK sku=pen ");
    }
    EXPECT(engine_do(ANNOUNCE(1, 2000000, "more")),
           "OVERLOADED name=arrivals-max maximum=16");
    EXPECT(engine_do(ANNOUNCE(9223372036854775792, 2000000, "r0")),
           SUMS(9223372036854775807, 0, 0));
    EXPECT(engine_do(ANNOUNCE(2, 2000000, "r1")),
           "OVERLOADED name=stock-max maximum=9223372036854775807");
    EXPECT(engine_do("STOCK ARRIVE pen 9223372036854775807"),
           "OK sku=pen total=9223372036854775807 "
           "available=9223372036854775807 reserved=0 sold=0 version=19 "
           "updated_ms=1000000 low=0 waiting=0 announced=0 served=0 booked=0");
    EXPECT(engine_do("STOCK ARRIVE pen 1"),
           "OVERLOADED name=stock-max maximum=9223372036854775807");
    CHECK_ENGINE();
}

TEST(who_finds_too_little_books_what_is_announced_and_not_booked)
{
    two_arrivals();
    book("r1", 2, BOOKED("r1", 1, 1001000));
    book("r2", 2, BOOKED("r2", 2, 1002000));
    book("r3", 5,
         "SHORT sku=pen requested=5 available=0 expected=8 booked=4 "
         "uncovered=0");
    book("r3", 4, BOOKED("r3", 3, 1002000));
    book("r4", 1,
         "SHORT sku=pen requested=1 available=0 expected=8 booked=8 "
         "uncovered=0");
    book("r2", 2, BOOKED("r2", 2, 1002000)); /* asked again */
    book("r2", 1, "STATE id=r2 status=BOOKED");
    EXPECT(engine_do("RESERVE r2 ITEM pen 2"), "STATE id=r2 status=BOOKED");
    EXPECT(engine_do("CONFIRM r2"), "STATE id=r2 status=BOOKED");
    EXPECT(engine_do("EXTEND r2 TTL 5"), "STATE id=r2 status=BOOKED");
    EXPECT(engine_do("CANCEL r2 ITEM pen 1"), "STATE id=r2 status=BOOKED");
    EXPECT(engine_do("RESERVE x ITEM ink 1 PREORDER"), "NOTFOUND sku=ink");
    EXPECT(engine_do("RESERVATION r2"),
           "OK id=r2 status=BOOKED expires_ms=0 items=[{sku=pen quantity=2}] "
           "owner= created_ms=1000000 ended_ms=0 reason= class= extends=0 "
           "position=2 expected_ms=1002000");
    CHECK_ENGINE();
}

/* However many have booked before. */
TEST(whoever_books_looks_at_no_other)
{
    engine_start();
    engine_set("pen", 0);
    engine_do(ANNOUNCE(1000, 1001000, "a"));
    for (unsigned i = 0; i < 500; i++) {
        const struct hold_out *out =
            engine_do("RESERVE r%u ITEM pen 2 PREORDER", i);
        CHECK(out->work < 10);
        CHECK_EQ(reply_get_number(out->body, FIELD_POSITION), i + 1);
        CHECK_EQ(reply_get_number(out->body, FIELD_EXPECTED_MS), 1001000);
    }
    CHECK_ENGINE();
}

TEST(what_is_there_is_reserved_at_once_and_a_booking_sets_nothing_aside)
{
    two_arrivals();
    engine_add("pen", 4);
    book("now", 3,
         "OK id=now status=PENDING expires_ms=500 "
         "items=[{sku=pen quantity=3}]");
    book("r1", 2, BOOKED("r1", 1, 1001000));
    EXPECT_BEGINS(engine_do("RESERVE other ITEM pen 1 TTL 500"),
                  "OK id=other status=PENDING ");
    CHECK_ENGINE();
}

TEST(while_others_wait_what_is_there_is_booked_or_short)
{
    two_arrivals();
    engine_add("pen", 4);
    engine_do("WAITLIST JOIN pen 9 OWNER ann ID w");
    book("r1", 2, BOOKED("r1", 1, 1001000));
    book("r2", 7,
         "SHORT sku=pen requested=7 available=4 waiting=1 expected=8 "
         "booked=2 uncovered=0");
    CHECK_ENGINE();
}

TEST(too_many_bookings_are_refused)
{
    two_arrivals();
    engine_bound("waiters_max", 1);
    book("r1", 2, BOOKED("r1", 1, 1001000));
    book("r2", 2, "OVERLOADED name=waiters-max maximum=1");
    CHECK_ENGINE();
}

TEST(an_arrival_serves_in_order_of_booking_and_the_ttl_starts_then)
{
    two_arrivals();
    book("r1", 2, BOOKED("r1", 1, 1001000));
    book("r2", 6, BOOKED("r2", 2, 1002000));
    engine_now_us += 300 * MS;
    EXPECT(engine_do("STOCK ARRIVE pen 3 REF a REASON dock"),
           "OK sku=pen total=3 available=1 reserved=2 sold=0 version=7 "
           "updated_ms=1000300 low=0 waiting=0 announced=3 served=1 booked=6");
    EXPECT_BEGINS(engine_do("RESERVATION r1"),
                  "OK id=r1 status=PENDING expires_ms=500 ");
    EXPECT_EVENTS(engine_do("STOCK ARRIVE pen 5 REF b"),
                  "9 STOCK_CHANGED pen; 10 OFFERED r2");
    EXPECT_BEGINS(engine_do("STOCK GET pen"),
                  "OK sku=pen total=8 available=0 reserved=8 ");
    CHECK_EQ(hf_index_count(&engine->expects), 0);
    engine_now_us += 500 * MS;
    EXPECT_EVENTS(engine_tick(),
                  "11 RESERVATION_EXPIRED r1; 12 RESERVATION_EXPIRED r2");
    CHECK_ENGINE();
}

TEST(the_first_that_does_not_fit_stops_those_behind_it)
{
    two_arrivals();
    book("r1", 5, BOOKED("r1", 1, 1002000));
    book("r2", 1, BOOKED("r2", 2, 1002000));
    EXPECT_EVENTS(engine_do("STOCK ARRIVE pen 3 REF a"),
                  "6 STOCK_CHANGED pen; 7 ARRIVAL_SHORT pen");
    EXPECT_BEGINS(engine_do("RESERVE other ITEM pen 3"),
                  "OK id=other status=PENDING ");
    EXPECT_EVENTS(engine_do("STOCK ARRIVE pen 6 REF b"),
                  "9 STOCK_CHANGED pen; 10 OFFERED r1; 11 OFFERED r2");
    CHECK_ENGINE();
}

TEST(what_is_left_goes_to_who_waits_whose_units_bookings_do_not_take)
{
    two_arrivals();
    engine_add("pen", 2);
    book("r1", 4, BOOKED("r1", 1, 1002000));
    engine_do("WAITLIST JOIN pen 3 OWNER ann ID w");
    EXPECT_EVENTS(engine_do("STOCK ARRIVE pen 3 REF a"),
                  "7 STOCK_CHANGED pen; 8 OFFERED w"); /* 2 were for w */
    EXPECT_EVENTS(engine_do("STOCK ARRIVE pen 5 REF b"),
                  "9 STOCK_CHANGED pen; 10 OFFERED r1");
    CHECK_ENGINE();
}

TEST(what_was_free_before_counts_if_nobody_waits)
{
    two_arrivals();
    engine_add("pen", 2);
    book("r1", 5, BOOKED("r1", 1, 1002000));
    EXPECT_EVENTS(engine_do("STOCK ARRIVE pen 3 REF a"),
                  "6 STOCK_CHANGED pen; 7 OFFERED r1");
    CHECK_ENGINE();
}

TEST(only_an_arrival_serves_bookings)
{
    two_arrivals();
    book("r1", 2, BOOKED("r1", 1, 1001000));
    EXPECT_EVENTS(engine_add("pen", 5), "5 STOCK_CHANGED pen");
    EXPECT_EVENTS(engine_set("pen", 7), "6 STOCK_CHANGED pen");
    EXPECT_EVENTS(engine_do("STOCK ARRIVE pen 1 REF unknown"),
                  "7 STOCK_CHANGED pen; 8 OFFERED r1");
    CHECK_ENGINE();
}

TEST(a_short_arrival_is_told_and_the_rest_is_served_by_the_next)
{
    two_arrivals();
    book("r1", 3, BOOKED("r1", 1, 1001000));
    book("r2", 5, BOOKED("r2", 2, 1002000));
    const struct hold_out *out = engine_do("STOCK ARRIVE pen 2 REF a");
    EXPECT_EVENTS(out, "6 STOCK_CHANGED pen; 7 ARRIVAL_SHORT pen");
    CHECK_EQ(out->events[1].total, 3);
    CHECK_EQ(out->events[1].available, 2);
    CHECK_EQ(out->events[1].token, 3); /* of 8 booked, 5 are announced */
    EXPECT_EVENTS(engine_do("STOCK ARRIVE pen 9"),
                  "8 STOCK_CHANGED pen; 9 OFFERED r1; 10 OFFERED r2");
    CHECK_ENGINE();
}

TEST(an_arrival_that_the_first_booking_does_not_fit_into_leaves_it_uncovered)
{
    two_arrivals();
    book("r1", 2, BOOKED("r1", 1, 1001000));
    book("r2", 6, BOOKED("r2", 2, 1002000));
    const struct hold_out *out = engine_do("STOCK ARRIVE pen 3 REF a");
    EXPECT_EVENTS(out,
                  "6 STOCK_CHANGED pen; 7 OFFERED r1; 8 ARRIVAL_SHORT pen");
    CHECK_EQ(out->events[2].total, 3);
    CHECK_EQ(out->events[2].available, 3);
    CHECK_EQ(out->events[2].token, 1); /* of 6 booked, 5 are announced */
    EXPECT_EVENTS(engine_do("STOCK ARRIVE pen 5 REF b"),
                  "9 STOCK_CHANGED pen; 10 OFFERED r2");
    CHECK_ENGINE();
}

TEST(bookings_that_are_not_covered_any_more_are_told)
{
    two_arrivals();
    book("r1", 4, BOOKED("r1", 1, 1002000));
    EXPECT_EVENTS(engine_do("STOCK EXPECT pen 1 REF b"),
                  "5 ARRIVAL_EXPECTED pen"); /* 4 of 4 */
    EXPECT_EVENTS(engine_do("STOCK EXPECT pen 0 REF a"),
                  "6 ARRIVAL_EXPECTED pen; 7 ARRIVAL_SHORT pen");
    EXPECT_BEGINS(engine_do("STOCK EXPECTED pen"), SUMS(1, 4, 3));
    EXPECT_EVENTS(engine_do("STOCK EXPECT pen 2 REF b"),
                  "8 ARRIVAL_EXPECTED pen"); /* less than before */
    book("r1", 4, BOOKED("r1", 1, 0));
    book("r2", 1,
         "SHORT sku=pen requested=1 available=0 expected=2 booked=4 "
         "uncovered=2");
    CHECK_ENGINE();
}

TEST(a_late_arrival_is_told_once)
{
    two_arrivals();
    engine_now_us = 1001000 * MS - 1;
    EXPECT_EVENTS(engine_tick(), "");
    CHECK_EQ(hold_next_due_us(engine), 1001000 * MS);
    engine_now_us = 1001000 * MS;
    EXPECT_EVENTS(engine_tick(), "4 ARRIVAL_LATE pen");
    EXPECT_EVENTS(engine_tick(), "");
    EXPECT(engine_do("STOCK EXPECTED pen"),
           SHOWN(8, 0, 0,
                 ARRIVAL("a", 3, 1001000, 1) " " ARRIVAL("b", 5, 1002000, 0),
                 ""));
    engine_do("STOCK ARRIVE pen 5 REF b");
    engine_now_us += 5000 * MS;
    EXPECT_EVENTS(engine_tick(), ""); /* it came in time */
    EXPECT_EVENTS(engine_do(ANNOUNCE(3, 1007000, "a")),
                  "6 ARRIVAL_EXPECTED pen");
    engine_now_us += 5000 * MS;
    EXPECT_EVENTS(engine_tick(), "7 ARRIVAL_LATE pen +4000000us"); /* again */
    EXPECT_EVENTS(engine_do(ANNOUNCE(3, 5, "c")),
                  "8 ARRIVAL_EXPECTED pen; 9 ARRIVAL_LATE pen +1010995000us");
    CHECK_ENGINE();
}

TEST(cancel_ends_a_booking)
{
    two_arrivals();
    book("r1", 6, BOOKED("r1", 1, 1002000));
    book("r2", 2, BOOKED("r2", 2, 1002000));
    EXPECT_EVENTS(engine_do("CANCEL r1 REASON changed"),
                  "6 BOOKING_CANCELLED r1");
    EXPECT_BEGINS(engine_do("RESERVATION r1"),
                  "OK id=r1 status=CANCELLED expires_ms=0 items=[{sku=pen "
                  "quantity=6}] owner= created_ms=1000000 ended_ms=1000000 "
                  "reason=changed ");
    EXPECT(engine_do("CANCEL r1"), "STATE id=r1 status=CANCELLED");
    book("r1", 6, "STATE id=r1 status=CANCELLED");
    book("r3", 6, BOOKED("r3", 2, 1002000)); /* they are free again */
    EXPECT_BEGINS(engine_do("CANCEL r2 ITEM pen 2"),
                  "OK id=r2 status=CANCELLED "); /* all of it */
    CHECK_ENGINE();
}

TEST(what_is_booked_counts_for_the_limit_per_owner)
{
    two_arrivals();
    engine_do("STOCK LIMIT pen 4");
    EXPECT_BEGINS(engine_do("RESERVE a ITEM pen 3 OWNER ann PREORDER"),
                  "OK id=a status=BOOKED ");
    EXPECT(engine_do("RESERVE b ITEM pen 2 OWNER ann PREORDER"),
           "QUOTA sku=pen requested=2 has=3 limit=4 owner=ann");
    engine_do("CANCEL a");
    EXPECT_BEGINS(engine_do("RESERVE b ITEM pen 4 OWNER ann PREORDER"),
                  "OK id=b status=BOOKED ");
    CHECK_ENGINE();
    engine_do("STOCK ARRIVE pen 8");
    EXPECT(engine_do("RESERVE c ITEM pen 1 OWNER ann"),
           "QUOTA sku=pen requested=1 has=4 limit=4 owner=ann");
    engine_do("CONFIRM b");
    EXPECT_BEGINS(engine_do("RESERVE c ITEM pen 1 OWNER ann"), "OK ");
    CHECK_ENGINE();
}

TEST(a_product_with_bookings_stays_and_takes_its_announcements_along)
{
    two_arrivals();
    book("r1", 6, BOOKED("r1", 1, 1002000));
    EXPECT(engine_delete("pen"), "STATE sku=pen reserved=0 booked=6");
    engine_do("CANCEL r1");
    EXPECT_EVENTS(engine_delete("pen"), "6 STOCK_DELETED pen");
    engine_now_us += 5000 * MS;
    EXPECT_EVENTS(engine_tick(), "");
    CHECK_ENGINE();
}

TEST(bookings_survive_an_image_and_a_restart_but_no_flush)
{
    two_arrivals();
    book("r1", 2, BOOKED("r1", 1, 1001000));
    book("r2", 2, BOOKED("r2", 2, 1002000));
    engine_reload();
    engine_restart(0);
    book("r2", 2, BOOKED("r2", 2, 1002000));
    EXPECT_BEGINS(engine_do("STOCK EXPECTED pen CURSOR 2"), SUMS(8, 4, 0));
    EXPECT_BEGINS(engine_do("STOCK ARRIVE pen 8 REF b"),
                  "OK sku=pen total=8 available=4 reserved=4 ");
    engine_do(ANNOUNCE(9, 2000000, "c"));
    book("r3", 9, BOOKED("r3", 1, 2000000));
    engine_flush();
    EXPECT(engine_do("RESERVATION r3"), "NOTFOUND id=r3");
    engine_set("pen", 0);
    EXPECT_BEGINS(engine_do("STOCK EXPECTED pen"), SUMS(0, 0, 0));
    CHECK_ENGINE();
}

TEST(a_page_of_bookings_begins_where_the_last_one_ended)
{
    two_arrivals();
    book("r1", 1, BOOKED("r1", 1, 1001000));
    book("r2", 3, BOOKED("r2", 2, 1002000));
    EXPECT(engine_do("STOCK EXPECTED pen COUNT 1"),
           SUMS(8, 4, 0) " arrivals=[" ARRIVAL("a", 3, 1001000, 0) " " ARRIVAL(
               "b", 5, 1002000,
               0) "] bookings=[{id=r1 owner= quantity=1 created_ms=1000000 "
                  "position=1 expected_ms=1001000}] cursor=2");
    EXPECT(engine_do("STOCK EXPECTED pen CURSOR 2"),
           SUMS(8, 4, 0) " arrivals=[" ARRIVAL("a", 3, 1001000, 0) " " ARRIVAL(
               "b", 5, 1002000,
               0) "] bookings=[{id=r2 owner= quantity=3 created_ms=1000000 "
                  "position=2 expected_ms=1002000}] cursor=0");
    CHECK_ENGINE();
}

TEST(a_group_that_is_refused_leaves_announcements_and_bookings_as_they_were)
{
    two_arrivals();
    book("r1", 2, BOOKED("r1", 1, 1001000));
    uint64_t before = hold_digest(engine);
    EXPECT_BEGINS(engine_group(NULL, "STOCK EXPECT pen 9 AT 2000000 REF c; "
                                     "RESERVE r2 ITEM pen 9 PREORDER; "
                                     "STOCK ARRIVE pen 20 REF a; "
                                     "CANCEL r1; STOCK EXPECT pen 0 REF b; "
                                     "RESERVE r3 ITEM pen 99"),
                  "EXECABORT position=6 count=6 ");
    CHECK_EQ(hold_digest(engine), before);
    CHECK_ENGINE();
    EXPECT_EVENTS(
        engine_group(NULL, "RESERVE r2 ITEM pen 6 PREORDER; "
                           "STOCK ARRIVE pen 3 REF a; "
                           "RESERVE r3 ITEM pen 1; CANCEL r2"),
        "5 BOOKED r2; 6 STOCK_CHANGED pen; 7 OFFERED r1; "
        "8 ARRIVAL_SHORT pen; 9 RESERVED r3; 10 BOOKING_CANCELLED r2");
    CHECK_ENGINE();
}

static void refused(const struct hold_command *c, enum hold_wrong wrong)
{
    static struct hold_command decoded;
    char record[HOLD_RECORD_MAX];
    size_t len = hold_encode(c, record);

    CHECK_EQ(hold_find_wrong(c), wrong);
    CHECK_EQ(hold_decode(hf_bytes(record, len), &decoded),
             wrong == HOLD_RIGHT ? HF_OK : HF_CORRUPT);
}

TEST(what_does_not_go_with_preorder_is_no_record)
{
    static struct hold_command plain;
    static struct hold_command c;

    engine_start();
    plain = *engine_parse("RESERVE r ITEM pen 2 PREORDER");
    refused(&plain, HOLD_RIGHT);
    c = plain;
    hold_add_item(&c, hf_bytes_text("quill"), 1);
    refused(&c, WRONG_BOOK_MANY);
    c = plain;
    c.wait_ms = 5;
    refused(&c, WRONG_BOOK_SOME);
    c = plain;
    c.flags |= HOLD_BEST;
    refused(&c, WRONG_BOOK_SOME);
    c = plain;
    c.mins = true;
    c.items[0].least = 1;
    refused(&c, WRONG_BOOK_SOME);
    c = plain;
    c.note = hf_bytes_text("berlin");
    refused(&c, WRONG_BOOK_SOME);
    c = plain;
    c.bundle = hf_bytes_text("trip");
    refused(&c, WRONG_BOOK_SOME);
    c = *engine_parse("WAITLIST JOIN pen 2 OWNER ann ID r");
    c.flags |= HOLD_PREORDER;
    refused(&c, WRONG_KEY);
}

/* ---- What hold_check() sees. ---- */

static struct expect *the_expect(void)
{
    return hf_index_at(&engine->expects,
                       hf_index_find(&engine->expects, hf_bytes_text("pen")));
}

static void broken(const char *expected)
{
    char error[256] = "";

    CHECK_EQ(hold_check(engine, error), HF_CORRUPT);
    CHECK_TEXT(error, strlen(error), expected);
}

TEST(announcements_and_bookings_out_of_order_are_seen)
{
    static const char order[] = "what is to arrive of pen is out of order";

    two_arrivals();
    book("r1", 1, BOOKED("r1", 1, 1001000));
    CHECK_ENGINE();
    the_expect()->announced++;
    broken(order);
    the_expect()->announced--;
    the_expect()->booked++;
    broken(order);
    the_expect()->booked--;
    the_expect()->arrivals[0].at_us += 5000 * MS;
    broken(order);
    the_expect()->arrivals[0].at_us -= 5000 * MS;
    the_expect()->arrivals[0].late = true; /* it is due no more */
    broken(order);
    the_expect()->arrivals[0].late = false;
    the_expect()->booking_count++;
    broken(order);
    the_expect()->booking_count--;
    CHECK_ENGINE();
}
