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

TEST(short_is_not_told_when_there_is_enough)
{
    struct told t;

    begin(&t);
    told(&t, 2, "RESERVE q ITEM s 8", SHORT(10));
    TOLD_BAD(&t, "short");

    begin(&t); /* whatever the sentence says */
    told(&t, 2, "RESERVE q ITEM s 5 ITEM s 5", "-SHORT of s");
    TOLD_BAD(&t, "short");

    begin(&t);
    told(&t, 2, "STOCK ADD s -10", "-SHORT of s");
    TOLD_BAD(&t, "short");

    begin_reserved(&t);
    told(&t, 2, "STOCK SET s 4",
         "-SHORT sku 's': total 4 is below 4 reserved and 0 sold");
    TOLD_BAD(&t, "short");
}

TEST(short_may_be_told_when_there_may_be_too_little)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 2, "RESERVE q ITEM s 3 ITEM s 4",
         "-SHORT sku 's': requested 7, available 6");
    told(&t, 2, "STOCK ADD s -7", "-SHORT of s");
    told(&t, 2, "STOCK SET s 3",
         "-SHORT sku 's': total 3 is below 4 reserved and 0 sold");
    TOLD_GOOD(&t);

    begin(&t); /* one without an answer may have taken it */
    told_ask(&t, 3, "RESERVE * ITEM s 1");
    told(&t, 2, "RESERVE q ITEM s 10",
         "-SHORT sku 's': requested 10, available 9");
    told(&t, 2, "STOCK SET s 0",
         "-SHORT sku 's': total 0 is below 1 reserved and 0 sold");
    TOLD_GOOD(&t);

    begin(&t); /* another product may be the one */
    told(&t, 2, "RESERVE q ITEM s 5 ITEM t 5", "-SHORT of something");
    TOLD_GOOD(&t);

    begin_reserved(&t); /* the first answer again */
    told(&t, 2, "STOCK ADD s -10 REQ q", "-SHORT of s");
    told(&t, 1, "CANCEL r", BOOKED("CANCELLED", 0));
    told(&t, 2, "STOCK ADD s -10 REQ q", "-SHORT of s");
    TOLD_GOOD(&t);
}

TEST(only_reserved_units_keep_a_product)
{
    struct told t;

    begin(&t);
    told(&t, 2, "STOCK DEL s", "-STATE sku 's' has 4 reserved");
    TOLD_BAD(&t, "state");

    begin_reserved(&t); /* sold ones do not */
    told(&t, 1, "CONFIRM r", BOOKED("CONFIRMED", 0));
    told(&t, 2, "STOCK DEL s", "-STATE sku 's' has 4 reserved");
    TOLD_BAD(&t, "state");

    begin_reserved(&t);
    told(&t, 2, "STOCK DEL s", "-STATE sku 's' has 4 reserved");
    told_ask(&t, 3, "CANCEL r");
    told(&t, 2, "STOCK DEL s", "-STATE sku 's' has 4 reserved");
    TOLD_GOOD(&t);

    begin(&t);
    told_ask(&t, 3, "RESERVE * ITEM s 1");
    told(&t, 2, "STOCK DEL s", "-STATE sku 's' has 1 reserved");
    TOLD_GOOD(&t);
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

TEST(a_deleted_product_is_not_shown_until_it_is_set_again)
{
    struct told t;

    begin(&t);
    told(&t, 1, "STOCK DEL s", "+OK");
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 1));
    TOLD_BAD(&t, "deleted");

    begin(&t);
    told(&t, 1, "STOCK DEL s", "+OK");
    told(&t, 2, "STOCK LIST",
         "products [ " SEEN(10, 10, 0, 0, 1) " ] cursor 0");
    TOLD_BAD(&t, "deleted");

    begin(&t);
    told(&t, 1, "FLUSHALL", "+OK");
    told(&t, 2, "STOCK ADD s 5", SEEN(15, 15, 0, 0, 3));
    TOLD_BAD(&t, "deleted");

    begin(&t); /* a second deletion without an answer changes nothing */
    told(&t, 1, "STOCK DEL s", "+OK");
    told_ask(&t, 3, "STOCK DEL s");
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 1));
    TOLD_BAD(&t, "deleted");

    begin(&t); /* a restart does not bring it back */
    told(&t, 1, "STOCK DEL s", "+OK");
    told_mark(&t, 0, 0, HISTORY_CRASH);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 1));
    TOLD_BAD(&t, "deleted");

    begin(&t); /* a repeated request sets nothing */
    told(&t, 1, "STOCK SET s 9 REQ q", SET(9, 2));
    told(&t, 1, "STOCK DEL s", "+OK");
    told(&t, 1, "STOCK SET s 9 REQ q", SET(9, 2));
    told(&t, 2, "STOCK GET s", SEEN(9, 9, 0, 0, 2));
    TOLD_BAD(&t, "deleted");
}

TEST(a_deleted_product_may_be_shown_if_it_may_be_there)
{
    struct told t;
    uint64_t id;

    begin(&t); /* set again by one who was not answered */
    told_ask(&t, 3, "STOCK SET s 10");
    told(&t, 1, "STOCK DEL s", "+OK");
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 3));
    TOLD_GOOD(&t);

    begin(&t); /* set again while it is read */
    told(&t, 1, "STOCK DEL s", "+OK");
    id = told_ask(&t, 2, "STOCK GET s");
    told(&t, 1, "STOCK SET s 10", SET(10, 3));
    told_answer(&t, 2, id, SEEN(10, 10, 0, 0, 3));
    TOLD_GOOD(&t);

    begin(&t); /* asked before the deletion was answered */
    id = told_ask(&t, 1, "STOCK DEL s");
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 1));
    told_answer(&t, 1, id, "+OK");
    TOLD_GOOD(&t);

    begin(&t); /* set while it was deleted */
    id = told_ask(&t, 1, "STOCK DEL s");
    told(&t, 2, "STOCK SET s 10", SET(10, 3));
    told_answer(&t, 1, id, "+OK");
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 3));
    TOLD_GOOD(&t);

    begin(&t); /* the deletion may not have happened */
    told(&t, 1, "STOCK DEL s", "-JOURNAL the disk failed");
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 1));
    TOLD_GOOD(&t);

    told_begin_open(&t); /* others may have set it */
    told(&t, 1, "STOCK DEL s", "+OK");
    told(&t, 2, "STOCK GET s", SEEN(10, 10, 0, 0, 3));
    TOLD_GOOD(&t);

    begin(&t); /* a refusal may be forgotten when the table is full */
    t.opts.requests_full = true;
    told(&t, 1, RESERVE, BOOKED("PENDING", 10000));
    told(&t, 1, "STOCK SET s 3 REQ q",
         "-SHORT sku 's': total 3 is below 4 reserved and 0 sold");
    told(&t, 1, "CANCEL r", BOOKED("CANCELLED", 0));
    told(&t, 1, "STOCK DEL s", "+OK");
    told_ask(&t, 3, "STOCK SET s 3 REQ q");
    told(&t, 2, "STOCK GET s", SEEN(3, 3, 0, 0, 9));
    TOLD_GOOD(&t);
}

TEST(a_product_with_reserved_units_is_not_deleted)
{
    struct told t;
    uint64_t id;

    begin_reserved(&t);
    told(&t, 1, "STOCK DEL s", "+OK");
    TOLD_BAD(&t, "deleted");

    begin_reserved(&t); /* nor later, if it is still pending then */
    id = told_ask(&t, 1, "STOCK DEL s");
    told_wait(&t, 8000);
    told_answer(&t, 1, id, "+OK");
    TOLD_BAD(&t, "deleted");

    begin(&t); /* perhaps before the reservation */
    id = told_ask(&t, 1, "STOCK DEL s");
    told(&t, 2, "STOCK SET s 10", SET(10, 3));
    told(&t, 1, RESERVE, BOOKED("PENDING", 10000));
    told_answer(&t, 1, id, "+OK");
    TOLD_GOOD(&t);

    begin_reserved(&t); /* perhaps behind its end */
    told_ask(&t, 3, "CANCEL r");
    told(&t, 1, "STOCK DEL s", "+OK");
    TOLD_GOOD(&t);

    begin_reserved(&t); /* surely */
    told_wait(&t, 10000);
    told(&t, 1, "STOCK DEL s", "+OK");
    TOLD_GOOD(&t);

    begin(&t); /* one without an answer may not have been made */
    told_ask(&t, 3, RESERVE);
    told(&t, 1, "STOCK DEL s", "+OK");
    TOLD_GOOD(&t);

    begin_reserved(&t); /* forgotten, perhaps */
    told_ask(&t, 3, "FLUSHALL");
    told(&t, 1, "STOCK DEL s", "+OK");
    TOLD_GOOD(&t);

    begin_reserved(&t); /* the first answer again is of another time */
    told(&t, 1, "CANCEL r", BOOKED("CANCELLED", 0));
    told(&t, 1, "STOCK DEL s REQ q", "+OK");
    told(&t, 1, "STOCK SET s 10", SET(10, 7));
    told(&t, 1, "RESERVE p ITEM s 4",
         "id p status PENDING expires_ms 600000 items [ sku s quantity 4 ]");
    told(&t, 1, "STOCK DEL s REQ q", "+OK");
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

/* What ended it was read early and written late; the answer was lost. */
TEST(a_reservation_is_remembered_from_the_time_of_its_end)
{
    for (uint64_t keep_ms = 1000; keep_ms <= 1010; keep_ms += 10) {
        struct told t;
        begin_reserved(&t);
        t.opts.ended_keep_us = keep_ms * 1000;
        (void)told_ask(&t, 1, "CANCEL r");
        told_wait(&t, 900);
        told(&t, 2, "RESERVATION r", BOOKED("PENDING", 9000));
        told_wait(&t, 98);
        told(&t, 2, "RESERVATION r", "-NOTFOUND no reservation 'r'");
        if (keep_ms == 1000)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "missing");
    }
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

#define CLASH "-CONFLICT id 'r' was used with other arguments"

TEST(an_id_that_nobody_used_is_in_nobodys_way)
{
    struct told t;

    begin(&t);
    told(&t, 1, RESERVE, CLASH);
    TOLD_BAD(&t, "conflict");

    begin(&t); /* the id was refused before, and used only later */
    told(&t, 1, "RESERVE r ITEM s 11", "-SHORT of s");
    told(&t, 1, RESERVE " REQ q", CLASH);
    told(&t, 2, RESERVE, BOOKED("PENDING", 10000));
    TOLD_BAD(&t, "conflict");

    begin_reserved(&t);
    told(&t, 2, "RESERVE r ITEM s 5", CLASH);
    TOLD_GOOD(&t);

    begin(&t); /* used by one without an answer */
    told_ask(&t, 3, "RESERVE r ITEM s 5");
    told(&t, 1, RESERVE, CLASH);
    TOLD_GOOD(&t);

    begin(&t); /* made for one without an answer */
    told_ask(&t, 3, "RESERVE * ITEM s 5");
    told(&t, 1, RESERVE, CLASH);
    TOLD_GOOD(&t);

    begin(&t); /* made for one who asked for any */
    told(&t, 3, "RESERVE * ITEM s 4 TTL 10000", BOOKED("PENDING", 10000));
    told(&t, 1, "RESERVE r ITEM s 5", CLASH);
    TOLD_GOOD(&t);

    begin(&t); /* the request's id was used */
    told(&t, 1, "STOCK ADD s 1 REQ q", SEEN(11, 11, 0, 0, 2));
    told(&t, 1, RESERVE " REQ q", CLASH);
    TOLD_GOOD(&t);
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
