/* history_expected.c - what clients may be told of announced stock. */
#include "support/test.h"
#include "support/told.h"

#define SUMS(expected, booked, uncovered) \
    "sku pen expected " #expected " booked " #booked " uncovered " #uncovered
#define BOOKED(id, position) \
    "id " id " status BOOKED position " #position " expected_ms 9000"
#define PENDING(id, n) \
    "id " id " status PENDING expires_ms 9000 items [ sku pen quantity " #n " ]"
#define PRODUCT(total, available, reserved, version)                        \
    "sku pen total " #total " available " #available " reserved " #reserved \
    " sold 0 version " #version " updated_ms 1 low 0"

/* 5 are announced, of which a books 2 and then b 3. */
static void begin(struct told *t)
{
    told_begin(t);
    told(t, 1, "STOCK SET pen 0", PRODUCT(0, 0, 0, 1));
    told(t, 1, "STOCK EXPECT pen 5 AT 9000", SUMS(5, 0, 0));
    told(t, 1, "RESERVE a ITEM pen 2 PREORDER TTL 9000", BOOKED("a", 1));
    told(t, 1, "RESERVE b ITEM pen 3 PREORDER TTL 9000", BOOKED("b", 2));
}

TEST(bookings_are_reserved_when_units_arrive)
{
    struct told t;

    begin(&t);
    told(&t, 2, "RESERVATION a",
         "id a status BOOKED expires_ms 0 items [ sku pen quantity 2 ]");
    told(&t, 1, "STOCK ARRIVE pen 5",
         PRODUCT(5, 0, 5, 7) " announced 5 served 2 booked 0");
    told(&t, 2, "RESERVATION a", PENDING("a", 2));
    told(&t, 2, "STOCK GET pen", PRODUCT(5, 0, 5, 7));
    TOLD_GOOD(&t);
}

TEST(what_arrives_is_in_the_total)
{
    struct told t;

    begin(&t);
    told(&t, 1, "STOCK ARRIVE pen 5",
         PRODUCT(6, 1, 5, 7) " announced 5 served 2 booked 0");
    TOLD_BAD(&t, "total");
}

TEST(no_more_is_reserved_than_was_booked)
{
    struct told t;

    begin(&t);
    told(&t, 1, "STOCK ARRIVE pen 9",
         PRODUCT(9, 1, 8, 7) " announced 5 served 2 booked 0");
    TOLD_BAD(&t, "reserved");
}

TEST(nothing_is_booked_that_nobody_announced)
{
    struct told t;

    begin(&t);
    told(&t, 2, "RESERVE c ITEM pen 6 PREORDER TTL 9000", BOOKED("c", 3));
    TOLD_BAD(&t, "unannounced");
}

TEST(who_booked_first_is_served_first)
{
    struct told t;

    begin(&t);
    told(&t, 1, "STOCK ARRIVE pen 4",
         PRODUCT(4, 1, 3, 6) " announced 5 served 1 booked 2");
    told(&t, 1, "RESERVATION b", PENDING("b", 3));
    TOLD_GOOD(&t);
    begin(&t);
    told(&t, 1, "STOCK ARRIVE pen 4",
         PRODUCT(4, 1, 3, 6) " announced 5 served 1 booked 2");
    told(&t, 1, "RESERVATION b", PENDING("b", 3));
    told(&t, 1, "RESERVATION a",
         "id a status BOOKED expires_ms 0 items [ sku pen quantity 2 ]");
    TOLD_BAD(&t, "turn");
}

/* Is it good that STOCK EXPECTED shows this? */
static void shown(const char *reply, const char *rule)
{
    struct told t;

    begin(&t);
    told(&t, 2, "STOCK EXPECTED pen", reply);
    if (rule == NULL)
        TOLD_GOOD(&t);
    else
        TOLD_BAD(&t, rule);
}

#define ARRIVALS(n) \
    " arrivals [ ref x quantity " #n " expected_ms 9000 late 0 ]"
#define ONE(id, n, position, at)                                         \
    "id " id " owner x quantity " #n " created_ms 1 position " #position \
    " expected_ms " #at
#define BOTH " bookings [ " ONE("a", 2, 1, 9000) " | " ONE("b", 3, 2, 9000) " ]"

TEST(what_is_expected_and_booked_adds_up)
{
    shown(SUMS(5, 5, 0) ARRIVALS(5) BOTH " cursor 0", NULL);
    shown(SUMS(5, 5, 1) ARRIVALS(5) BOTH " cursor 0", "expected");
    shown(SUMS(5, 5, 0) ARRIVALS(4) BOTH " cursor 0", "expected");
    shown(SUMS(5, 4, 0) ARRIVALS(5) BOTH " cursor 0", "expected");
    shown(SUMS(4, 5, 1) ARRIVALS(4) BOTH " cursor 0", "expected");
    shown(SUMS(4, 5, 1) ARRIVALS(4) " bookings [ " ONE(
              "a", 2, 1, 9000) " | " ONE("b", 3, 2, 0) " ] cursor 0",
          NULL);
    shown(SUMS(5, 5, 0) ARRIVALS(5) " bookings [ " ONE(
              "b", 3, 2, 9000) " | " ONE("a", 2, 1, 9000) " ] cursor 0",
          "expected");
}
