/* history_reserve.c - what clients may be told of reservations in full: lists
 * of what is short, ids that have ended. */
#include "support/test.h"
#include "support/told.h"

#define SET(sku, n, version)                 \
    "sku " sku " total " #n " available " #n \
    " reserved 0 sold 0 version " #version " updated_ms 1"
#define BOOKED(status, ms) \
    "id r status " status " expires_ms " #ms " items [ sku s quantity 4 ]"
#define RESERVE "RESERVE r ITEM s 4 TTL 10000"

static void begin_two(struct told *t)
{
    told_begin(t);
    told(t, 1, "STOCK SET s 10", SET("s", 10, 1));
    told(t, 1, "STOCK SET t 4", SET("t", 4, 2));
}

static void begin_reserved(struct told *t)
{
    begin_two(t);
    told(t, 1, RESERVE, BOOKED("PENDING", 10000));
}

TEST(each_item_that_is_told_to_be_short_is)
{
    struct told t;

    begin_two(&t); /* each that is named must be short */
    told(&t, 2, "RESERVE q ITEM s 11 ITEM t 5",
         "-SHORT sku 's': requested 11, available 10; sku 't': requested 5, "
         "available 4");
    TOLD_GOOD(&t);
    begin_two(&t);
    told(&t, 2, "RESERVE q ITEM s 11 ITEM t 5",
         "-SHORT sku 's': requested 11, available 10; sku 't': requested 5, "
         "available 3");
    TOLD_BAD(&t, "short");
    begin_two(&t);
    told(&t, 2, "RESERVE q ITEM s 11 ITEM t 3",
         "-SHORT sku 's': requested 11, available 10; sku 't': requested 3, "
         "available 2");
    TOLD_BAD(&t, "short");
}

TEST(an_id_that_has_ended_is_not_reserved_again)
{
    struct told t;

    begin_reserved(&t); /* an id that has ended is not reserved again */
    told(&t, 1, "CONFIRM r", BOOKED("CONFIRMED", 0));
    told(&t, 1, RESERVE, "-STATE reservation 'r' is CONFIRMED");
    TOLD_GOOD(&t);
    begin_reserved(&t);
    told(&t, 1, RESERVE, "-STATE reservation 'r' is CONFIRMED");
    TOLD_BAD(&t, "status");
    begin_reserved(&t);
    told(&t, 1, "CONFIRM r", BOOKED("CONFIRMED", 0));
    told(&t, 1, RESERVE, BOOKED("CONFIRMED", 0));
    TOLD_BAD(&t, "status");
}

TEST(what_ends_a_reservation_says_how)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 1, "CONFIRM r", BOOKED("CANCELLED", 0));
    TOLD_BAD(&t, "status");
    begin_reserved(&t);
    told(&t, 1, "CONFIRM r", BOOKED("PENDING", 10000));
    TOLD_BAD(&t, "status");
    begin_reserved(&t);
    told(&t, 1, "CANCEL r", BOOKED("CONFIRMED", 0));
    TOLD_BAD(&t, "status");
    begin_reserved(&t); /* of all that it has */
    told(&t, 1, "CANCEL r", BOOKED("PENDING", 10000));
    TOLD_BAD(&t, "status");
    begin_reserved(&t);
    told(&t, 1, "EXTEND r TTL 5000", BOOKED("EXPIRED", 0));
    TOLD_BAD(&t, "status");
}

#define OF(status, ms, units)                                                  \
    "id r status " status " expires_ms " #ms " items [ sku s quantity " #units \
    " ]"
#define SEEN(total, available, reserved, sold, version)                   \
    "sku s total " #total " available " #available " reserved " #reserved \
    " sold " #sold " version " #version " updated_ms 1"

TEST(units_that_were_cancelled_in_part_are_free)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 1, "CANCEL r ITEM s 1", OF("PENDING", 10000, 3));
    told(&t, 2, "STOCK GET s", SEEN(10, 7, 3, 0, 5));
    told(&t, 1, "CONFIRM r", OF("CONFIRMED", 0, 3));
    told(&t, 2, "STOCK GET s", SEEN(10, 7, 0, 3, 6));
    TOLD_GOOD(&t);

    begin_reserved(&t);
    told(&t, 1, "CANCEL r ITEM s 1", OF("PENDING", 10000, 3));
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 4, 0, 5));
    TOLD_BAD(&t, "reserved");

    begin_reserved(&t);
    told(&t, 1, "CANCEL r ITEM s 1", OF("PENDING", 10000, 4));
    TOLD_BAD(&t, "items");

    begin_reserved(&t);
    told(&t, 1, "CANCEL r ITEM s 1", OF("PENDING", 10000, 3));
    told(&t, 1, "CONFIRM r", OF("CONFIRMED", 0, 3));
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 0, 4, 6));
    TOLD_BAD(&t, "sold");

    begin_reserved(&t); /* it goes on, and was not ended by that */
    told(&t, 1, "CANCEL r ITEM s 1", OF("PENDING", 10000, 3));
    told(&t, 1, "RESERVATION r", OF("CANCELLED", 0, 3));
    TOLD_BAD(&t, "status");

    begin_reserved(&t); /* without an answer both may be */
    told_ask(&t, 1, "CANCEL r ITEM s 1");
    told(&t, 2, "STOCK GET s", SEEN(10, 7, 3, 0, 5));
    TOLD_GOOD(&t);
    begin_reserved(&t);
    told_ask(&t, 1, "CANCEL r ITEM s 1");
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 4, 0, 5));
    TOLD_GOOD(&t);
}

TEST(a_sale_in_part_frees_the_rest)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 1, "CONFIRM r ITEM s 3", OF("CONFIRMED", 0, 3));
    told(&t, 2, "STOCK GET s", SEEN(10, 7, 0, 3, 5));
    TOLD_GOOD(&t);

    begin_reserved(&t);
    told(&t, 1, "CONFIRM r ITEM s 3", OF("CONFIRMED", 0, 3));
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 0, 4, 5));
    TOLD_BAD(&t, "sold");

    begin_reserved(&t);
    told(&t, 1, "CONFIRM r ITEM s 3", OF("CONFIRMED", 0, 3));
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 1, 3, 5));
    TOLD_BAD(&t, "reserved");

    begin_reserved(&t);
    told(&t, 1, "CONFIRM r ITEM s 3", OF("CONFIRMED", 0, 4));
    TOLD_BAD(&t, "items");
}

/* The CONFIRM is asked first, and done last. */
TEST(a_sale_in_part_may_be_asked_before_a_cancel_in_part)
{
    struct told t;

    begin_reserved(&t);
    uint64_t id = told_ask(&t, 3, "CONFIRM r ITEM s 2");
    told(&t, 1, "CANCEL r ITEM s 1", OF("PENDING", 10000, 3));
    told_answer(&t, 3, id, OF("CONFIRMED", 0, 2));
    told(&t, 2, "STOCK GET s", SEEN(10, 8, 0, 2, 5));
    TOLD_GOOD(&t);

    begin_reserved(&t);
    id = told_ask(&t, 3, "CONFIRM r ITEM s 2");
    told(&t, 1, "CANCEL r ITEM s 1", OF("PENDING", 10000, 3));
    told_answer(&t, 3, id, OF("CONFIRMED", 0, 2));
    told(&t, 2, "STOCK GET s", SEEN(10, 9, 0, 1, 5));
    TOLD_BAD(&t, "sold");
}

/* Of a CANCEL in part without an answer nobody knows whether it came before the
 * CONFIRM, or was refused behind it: then the CONFIRM freed its units. */
TEST(a_sale_in_part_frees_what_a_later_cancel_may_have_named)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 1, "CONFIRM r ITEM s 3", OF("CONFIRMED", 0, 3));
    told(&t, 2, "STOCK GET s", SEEN(10, 7, 0, 3, 5));
    told_ask(&t, 1, "CANCEL r ITEM s 4");
    TOLD_GOOD(&t);

    begin_reserved(&t); /* its CANCEL does not hide what was not sold */
    told(&t, 1, "CONFIRM r ITEM s 3", OF("CONFIRMED", 0, 3));
    told(&t, 2, "STOCK GET s", SEEN(10, 8, 0, 2, 5));
    told_ask(&t, 1, "CANCEL r ITEM s 4");
    TOLD_BAD(&t, "sold");

    begin_reserved(&t); /* both at once */
    uint64_t id = told_ask(&t, 3, "CONFIRM r ITEM s 3");
    told_ask(&t, 1, "CANCEL r ITEM s 1");
    told(&t, 2, "STOCK GET s", SEEN(10, 7, 0, 3, 5));
    told_answer(&t, 3, id, OF("CONFIRMED", 0, 3));
    TOLD_GOOD(&t);
}

#define FAILED(units)                                                         \
    "id r status PENDING expires_ms 10000 items [ sku t quantity 1 ] failed " \
    "[ sku s requested 12 available " #units " ]"

TEST(what_best_and_min_got_is_what_there_was)
{
    struct told t;

    begin_two(&t);
    told(&t, 1, "RESERVE r ITEM s 12 MIN 3 TTL 10000",
         OF("PENDING", 10000, 10));
    told(&t, 2, "STOCK GET s", SEEN(10, 0, 10, 0, 5));
    TOLD_GOOD(&t);

    begin_two(&t);
    told(&t, 1, "RESERVE r ITEM s 12 MIN 3 TTL 10000", OF("PENDING", 10000, 2));
    TOLD_BAD(&t, "items");

    begin_two(&t);
    told(&t, 1, "RESERVE r ITEM s 12 MIN 3 TTL 10000",
         OF("PENDING", 10000, 10));
    told(&t, 2, "STOCK GET s", SEEN(10, 1, 9, 0, 5));
    TOLD_BAD(&t, "reserved");

    begin_two(&t);
    told(&t, 1, "RESERVE r BEST ITEM s 12 ITEM t 1 TTL 10000", FAILED(10));
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 1));
    TOLD_GOOD(&t);

    begin_two(&t);
    told(&t, 1, "RESERVE r BEST ITEM s 12 ITEM t 1 TTL 10000", FAILED(9));
    TOLD_BAD(&t, "short");

    begin_two(&t); /* enough for the minimum */
    told(&t, 1, "RESERVE r ITEM s 12 MIN 10 TTL 10000",
         "-SHORT sku 's': requested 12, available 10");
    TOLD_BAD(&t, "short");

    begin_two(&t); /* a part of an item */
    told(&t, 1, "RESERVE r BEST ITEM s 12 TTL 10000",
         OF("PENDING", 10000, 10) " failed [ ]");
    TOLD_BAD(&t, "items");
}
