/* history_hoard.c - tests of what the checker says of limits per owner. */
#include "support/test.h"
#include "support/told.h"

#define PRODUCT(available, reserved, version)                    \
    "sku s total 9 available " #available " reserved " #reserved \
    " sold 0 version " #version " updated_ms 1 low 0 waiting 0"
#define TAKEN(id, n) \
    "id " id " status PENDING expires_ms 9000 items [ sku s quantity " #n " ]"

static void begin(struct told *t)
{
    told_begin(t);
    told(t, 1, "STOCK SET s 9", PRODUCT(9, 0, 1));
    told(t, 1, "STOCK LIMIT s 3", PRODUCT(9, 0, 2) " limit 3");
    told(t, 1, "RESERVE a ITEM s 2 OWNER ann TTL 9000", TAKEN("a", 2));
}

TEST(nobody_has_more_than_the_limit)
{
    struct told t;

    begin(&t);
    told(&t, 2, "RESERVE b ITEM s 1 OWNER ann TTL 9000", TAKEN("b", 1));
    told(&t, 2, "RESERVE c ITEM s 3 OWNER bob TTL 9000", TAKEN("c", 3));
    TOLD_GOOD(&t);

    begin(&t);
    told(&t, 2, "RESERVE b ITEM s 2 OWNER ann TTL 9000", TAKEN("b", 2));
    TOLD_BAD(&t, "hoard");

    begin(&t);
    told(&t, 2, "RESERVE b ITEM s 4 OWNER bob TTL 9000", TAKEN("b", 4));
    TOLD_BAD(&t, "hoard");
}

TEST(what_may_have_ended_or_changed_says_nothing)
{
    struct told t;

    begin(&t);
    told_ask(&t, 3, "CANCEL a");
    told(&t, 2, "RESERVE b ITEM s 2 OWNER ann TTL 9000", TAKEN("b", 2));
    TOLD_GOOD(&t);

    begin(&t);
    told_ask(&t, 3, "STOCK LIMIT s 0");
    told(&t, 2, "RESERVE b ITEM s 2 OWNER ann TTL 9000", TAKEN("b", 2));
    TOLD_GOOD(&t);

    begin(&t);
    told(&t, 3, "STOCK LIMIT s 4", PRODUCT(7, 2, 4) " limit 4");
    told(&t, 2, "RESERVE b ITEM s 4 OWNER ann TTL 9000", TAKEN("b", 4));
    TOLD_GOOD(&t); /* a may be from before */
}

#define QUOTA(requested, has, limit)                                   \
    "-QUOTA owner 'ann': sku 's': requested " #requested ", has " #has \
    ", limit " #limit

TEST(a_refusal_by_a_limit_adds_up)
{
    struct told t;

    begin(&t);
    told(&t, 2, "RESERVE b ITEM s 2 OWNER ann TTL 9000", QUOTA(2, 2, 3));
    TOLD_GOOD(&t);

    begin(&t);
    told(&t, 2, "RESERVE b ITEM s 1 OWNER ann TTL 9000", QUOTA(1, 2, 3));
    TOLD_BAD(&t, "quota");
}
