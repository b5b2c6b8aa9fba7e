/* history_stock.c - what clients may be told of products and reservations. */
#include "support/test.h"
#include "support/told.h"

#define SET(n, version)                                                       \
    "sku s total " #n " available " #n " reserved 0 sold 0 version " #version \
    " updated_ms 1"
#define SEEN(total, available, reserved, sold, version)                   \
    "sku s total " #total " available " #available " reserved " #reserved \
    " sold " #sold " version " #version " updated_ms 1"
#define BOOKED(status, ms) \
    "id r status " status " expires_ms " #ms " items [ sku s quantity 4 ]"
#define RESERVE  "RESERVE r ITEM s 4 TTL 10000"
#define SHORT(n) "-SHORT sku 's': requested 8, available " #n

static void begin(struct told *t)
{
    told_begin(t);
    told(t, 1, "STOCK SET s 10", SET(10, 1));
}

static void begin_reserved(struct told *t)
{
    begin(t);
    told(t, 1, RESERVE, BOOKED("PENDING", 10000));
}

TEST(a_sale_from_beginning_to_end_is_good)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 4, 0, 2));
    told(&t, 2, "RESERVE q ITEM s 8", SHORT(6));
    told(&t, 1, "EXTEND r TTL 20000", BOOKED("PENDING", 20000));
    told(
        &t, 2, "RESERVATION r",
        "id r status PENDING expires_ms 19998 items [ sku s quantity 4 ] owner "
        "x created_ms 1 ended_ms 0 reason x");
    told(&t, 1, "CONFIRM r", BOOKED("CONFIRMED", 0));
    told(&t, 1, "CANCEL r", "-STATE reservation 'r' is CONFIRMED");
    told(&t, 2, "STOCK ADD s 5", SEEN(15, 11, 0, 4, 9));
    told(&t, 2, "STOCK LIST",
         "products [ " SEEN(15, 11, 0, 4, 9) " ] cursor 0");
    told(&t, 2, "STOCK GET s nope", "[ " SEEN(15, 11, 0, 4, 9) " | null ]");
    TOLD_GOOD(&t);
}

TEST(numbers_add_up)
{
    struct told t;

    begin(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 9, 0, 0, 1));
    TOLD_BAD(&t, "sum");
    told_begin_open(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 11, -1, 0, 1));
    TOLD_BAD(&t, "sum");
}

TEST(a_version_is_one_state_and_does_not_go_back)
{
    struct told t;

    told_begin_open(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 5));
    told(&t, 2, "STOCK GET s", SEEN(10, 9, 1, 0, 5));
    TOLD_BAD(&t, "version");

    told_begin_open(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 9, 1, 0, 5));
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 4));
    TOLD_BAD(&t, "version");
}

TEST(the_total_is_what_was_set_and_added)
{
    struct told t;

    begin(&t);
    told(&t, 2, "STOCK GET s", SEEN(11, 11, 0, 0, 2));
    TOLD_BAD(&t, "total");

    begin(&t);
    told(&t, 2, "STOCK ADD s 5", SEEN(14, 14, 0, 0, 2));
    TOLD_BAD(&t, "total");

    begin(&t); /* an addition without an answer may count */
    told_ask(&t, 2, "STOCK ADD s 5");
    told(&t, 1, "STOCK GET s", SEEN(15, 15, 0, 0, 2));
    TOLD_GOOD(&t);

    begin(&t); /* but not more than once */
    told_ask(&t, 2, "STOCK ADD s 5");
    told(&t, 1, "STOCK GET s", SEEN(20, 20, 0, 0, 2));
    TOLD_BAD(&t, "total");
}

TEST(reserved_units_are_those_of_reservations)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 3));
    TOLD_BAD(&t, "reserved");

    begin_reserved(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 5, 5, 0, 3));
    TOLD_BAD(&t, "reserved");

    begin_reserved(&t); /* without an answer: both are possible */
    told_ask(&t, 3, "RESERVE * ITEM s 1");
    told(&t, 2, "STOCK GET s", SEEN(10, 5, 5, 0, 3));
    TOLD_GOOD(&t);
}

TEST(sold_units_are_those_of_confirmed_reservations)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 1, "CONFIRM r", BOOKED("CONFIRMED", 0));
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 3));
    TOLD_BAD(&t, "sold");

    begin_reserved(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 0, 4, 3));
    TOLD_BAD(&t, "reserved");

    begin_reserved(&t);
    told_ask(&t, 3, "CONFIRM r");
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 3));
    TOLD_BAD(&t, "committed"); /* pending or sold, but not neither */

    begin_reserved(&t);
    told_ask(&t, 3, "CONFIRM r");
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 0, 4, 3));
    TOLD_GOOD(&t);

    begin(&t); /* by nobody */
    told(&t, 2, "STOCK GET s", SEEN(10, 9, 0, 1, 3));
    TOLD_BAD(&t, "sold");
}

TEST(short_means_that_there_is_too_little)
{
    struct told t;

    begin(&t);
    told(&t, 2, "RESERVE q ITEM s 8", SHORT(6));
    TOLD_BAD(&t, "short");
}

TEST(nobody_reserves_what_there_is_not)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 2, "RESERVE q ITEM s 7",
         "id q status PENDING expires_ms 9 items [ sku s quantity 7 ]");
    TOLD_BAD(&t, "oversold");
}

TEST(products_are_there_until_they_are_deleted)
{
    struct told t;

    begin(&t);
    told(&t, 2, "STOCK GET s", "-NOTFOUND no product 's'");
    TOLD_BAD(&t, "missing");
    begin(&t);
    told(&t, 2, "STOCK GET t s", "[ null | null ]");
    TOLD_BAD(&t, "missing");

    begin(&t);
    told(&t, 2, "STOCK LIST", "products [ ] cursor 0");
    TOLD_BAD(&t, "missing");

    begin_reserved(&t);
    told(&t, 1, "CONFIRM r", BOOKED("CONFIRMED", 0));
    told(&t, 1, "STOCK DEL s", "+OK");
    told(&t, 2, "STOCK GET s", "-NOTFOUND no product 's'");
    told(&t, 2, "STOCK LIST", "products [ ] cursor 0");
    told(&t, 1, "STOCK SET s 3", SET(3, 9));
    told(&t, 2, "STOCK GET s", SEEN(3, 3, 0, 0, 9));
    TOLD_GOOD(&t);
}

TEST(a_reservation_ends_once_and_stays_so)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 1, "CONFIRM r", BOOKED("CONFIRMED", 0));
    told(&t, 2, "RESERVATION r", BOOKED("CANCELLED", 0));
    TOLD_BAD(&t, "status");

    begin_reserved(&t);
    told(&t, 1, "CANCEL r", BOOKED("CANCELLED", 0));
    told(&t, 2, "RESERVATION r", BOOKED("PENDING", 100));
    TOLD_BAD(&t, "status");

    begin_reserved(&t); /* nobody asked for that */
    told(&t, 2, "RESERVATION r", BOOKED("CONFIRMED", 0));
    TOLD_BAD(&t, "status");

    begin_reserved(&t); /* nor later */
    told_wait(&t, 11000);
    told(&t, 2, "RESERVATION r", BOOKED("CANCELLED", 0));
    TOLD_BAD(&t, "status");

    begin_reserved(&t); /* its time is not over */
    told(&t, 2, "CONFIRM r", "-EXPIRED reservation 'r' expired 5 ms ago");
    TOLD_BAD(&t, "status");

    begin_reserved(&t);
    told(&t, 1, "CANCEL r", BOOKED("CANCELLED", 0));
    told(&t, 1, "EXTEND r TTL 5", BOOKED("PENDING", 5));
    told_wait(&t, 10);
    told(&t, 1, "PING", "+PONG");
    TOLD_BAD(&t, "revived");
}

TEST(a_reservation_is_remembered)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 2, "RESERVATION r", "-NOTFOUND no reservation 'r'");
    TOLD_BAD(&t, "missing");

    begin_reserved(&t);
    told(&t, 1, "CONFIRM r", BOOKED("CONFIRMED", 0));
    told_mark(&t, 0, 0, HISTORY_CRASH);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 2, "RESERVATION r", "-NOTFOUND no reservation 'r'");
    TOLD_BAD(&t, "missing");

    begin_reserved(&t); /* for a while */
    t.opts.ended_keep_us = 1000000;
    told(&t, 1, "CONFIRM r", BOOKED("CONFIRMED", 0));
    told_wait(&t, 1000);
    told(&t, 2, "RESERVATION r", "-NOTFOUND no reservation 'r'");
    told(&t, 1, RESERVE, BOOKED("PENDING", 10000));
    told(&t, 2, "STOCK GET s", SEEN(10, 2, 4, 4, 8));
    TOLD_GOOD(&t);
}

TEST(a_reservation_has_its_items_and_its_maker)
{
    struct told t;

    begin(&t);
    told(&t, 1, "RESERVE r ITEM s 2 ITEM s 2 TTL 10000",
         BOOKED("PENDING", 10000));
    TOLD_GOOD(&t);

    begin(&t);
    told(&t, 1, "RESERVE r ITEM s 3 TTL 10000", BOOKED("PENDING", 10000));
    TOLD_BAD(&t, "items");

    begin(&t);
    told(&t, 1, "RESERVATION q",
         "id q status PENDING expires_ms 10 items [ sku s quantity 1 ]");
    TOLD_BAD(&t, "phantom");

    begin(&t); /* it was asked for later only */
    told(&t, 1, "RESERVATION r", BOOKED("PENDING", 9999));
    told(&t, 1, RESERVE, BOOKED("PENDING", 9998));
    TOLD_BAD(&t, "phantom");
}

TEST(the_time_of_a_reservation_is_as_it_was_promised)
{
    struct told t;

    begin_reserved(&t); /* the extension is lost */
    told(&t, 1, "EXTEND r TTL 90000", BOOKED("PENDING", 90000));
    told(&t, 2, "RESERVATION r", BOOKED("PENDING", 9000));
    TOLD_BAD(&t, "expiry");

    begin_reserved(&t);
    told(&t, 2, "RESERVATION r", BOOKED("PENDING", 60000));
    TOLD_BAD(&t, "expiry");

    begin_reserved(&t);
    told_wait(&t, 11000);
    told(&t, 2, "RESERVATION r", BOOKED("EXPIRED", 0));
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 3));
    TOLD_GOOD(&t);

    begin_reserved(&t); /* its time is over, its units are not back */
    told_wait(&t, 11000);
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 4, 0, 3));
    TOLD_BAD(&t, "reserved");
}

TEST(a_flush_forgets_products_and_reservations)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 1, "FLUSHALL", "+OK");
    told(&t, 2, "RESERVATION r", "-NOTFOUND no reservation 'r'");
    told(&t, 2, "STOCK GET s", "-NOTFOUND no product 's'");
    told(&t, 1, "STOCK SET s 3", SET(3, 9));
    told(&t, 2, "STOCK GET s", SEEN(3, 3, 0, 0, 9));
    TOLD_GOOD(&t);

    begin_reserved(&t);
    told(&t, 1, "FLUSHALL", "+OK");
    told(&t, 1, "STOCK SET s 3", SET(3, 9));
    told(&t, 2, "STOCK GET s", "-NOTFOUND no product 's'");
    TOLD_BAD(&t, "missing");
}
