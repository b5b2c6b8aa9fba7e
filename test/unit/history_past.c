/* history_past.c - what clients may be told of the past of a product. */
#include "support/test.h"
#include "support/told.h"

#define SEEN(total, available, reserved, sold, version)                   \
    "sku s total " #total " available " #available " reserved " #reserved \
    " sold " #sold " version " #version " updated_ms 1"
#define BOOKED(status, ms) \
    "id r status " status " expires_ms " #ms " items [ sku s quantity 4 ]"

static void begin_reserved(struct told *t)
{
    told_begin(t);
    told(t, 1, "STOCK SET s 10", SEEN(10, 10, 0, 0, 1));
    told(t, 1, "RESERVE r ITEM s 4 TTL 10000", BOOKED("PENDING", 10000));
}

#define PAST(total, available, reserved, sold, version) \
    SEEN(total, available, reserved, sold, version) " at 9"

TEST(the_past_is_what_was_told)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 4, 0, 2));
    told(&t, 1, "CONFIRM r", BOOKED("CONFIRMED", 0));
    told(&t, 2, "STOCK ADD s 5", SEEN(15, 11, 0, 4, 9));
    told(&t, 2, "STOCK GET s AT 2", PAST(10, 6, 4, 0, 2));
    told(&t, 2, "STOCK AT s 1", PAST(10, 10, 0, 0, 1));
    told(&t, 2, "STOCK GET s AT 8", PAST(10, 6, 0, 4, 3));
    told(&t, 2, "STOCK GET s AT 0", "-NOTFOUND there was no product 's' at 0");
    told(&t, 2, "STOCK GET s AT 8", "-STATE they are from 9 on");
    told(&t, 2, "RESERVATION HISTORY r", "events [ ] next 9 gap 0");
    TOLD_GOOD(&t);
}

TEST(a_wrong_past_is_found)
{
    struct told t;

    begin_reserved(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 4, 0, 2));
    told(&t, 2, "STOCK GET s AT 2", PAST(10, 5, 5, 0, 2)); /* another one */
    TOLD_BAD(&t, "past");
    begin_reserved(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 4, 0, 2));
    told(&t, 2, "STOCK GET s AT 2", PAST(10, 10, 0, 0, 1)); /* too old */
    TOLD_BAD(&t, "past");
    begin_reserved(&t);
    told(&t, 2, "STOCK GET s AT 1", PAST(10, 6, 4, 0, 2)); /* too new */
    TOLD_BAD(&t, "past");
    begin_reserved(&t);
    told(&t, 2, "STOCK GET s AT 1", PAST(10, 6, 3, 0, 1));
    TOLD_BAD(&t, "past");
    begin_reserved(&t);
    told(&t, 2, "STOCK GET s", SEEN(10, 6, 4, 0, 2));
    told(&t, 2, "STOCK GET s AT 2", "-NOTFOUND there was no product 's' at 2");
    TOLD_BAD(&t, "past");
}
