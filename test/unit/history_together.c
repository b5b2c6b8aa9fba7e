/* history_together.c - tests of what the checker says of groups of
 * reservations. */
#include "support/test.h"
#include "support/told.h"

#define SET(available, reserved, sold, version)                  \
    "sku s total 9 available " #available " reserved " #reserved \
    " sold " #sold " version " #version " updated_ms 1 low 0 waiting 0"
#define TAKEN(id, status, ms)                                       \
    "id " id " status " status " expires_ms " #ms " items [ sku s " \
    "quantity 2 ]"

/* Two of a group, which is confirmed. */
static void begin(struct told *t, const char *verb)
{
    told_begin(t);
    told(t, 1, "STOCK SET s 9", SET(9, 0, 0, 1));
    told(t, 1, "RESERVE a ITEM s 2 GROUP g TTL 9000",
         TAKEN("a", "PENDING", 9000));
    told(t, 1, "RESERVE b ITEM s 2 GROUP g TTL 9000",
         TAKEN("b", "PENDING", 9000));
    if (verb[0] == 'C' && verb[1] == 'O')
        told(t, 2, "GROUP CONFIRM g", "group g status CONFIRMED count 2");
    else
        told(t, 2, "GROUP CANCEL g", "group g status CANCELLED count 2");
}

TEST(a_group_that_is_confirmed_is_sold)
{
    struct told t;

    begin(&t, "CONFIRM");
    told(&t, 1, "STOCK GET s", SET(5, 0, 4, 5));
    told(&t, 1, "RESERVATION a", TAKEN("a", "CONFIRMED", 0));
    told(&t, 1, "CONFIRM b", "-STATE reservation 'b' is CONFIRMED");
    TOLD_GOOD(&t);
}

TEST(a_group_that_is_cancelled_is_free)
{
    struct told t;

    begin(&t, "CANCEL");
    told(&t, 1, "STOCK GET s", SET(9, 0, 0, 5));
    told(&t, 1, "RESERVATION a", TAKEN("a", "CANCELLED", 0));
    TOLD_GOOD(&t);
}

TEST(none_is_pending_behind_the_end_of_its_group)
{
    struct told t;

    begin(&t, "CONFIRM");
    told(&t, 1, "RESERVATION b", TAKEN("b", "PENDING", 8000));
    TOLD_BAD(&t, "group");

    begin(&t, "CANCEL");
    told(&t, 1, "RESERVATION a", TAKEN("a", "PENDING", 8000));
    TOLD_BAD(&t, "group");
}

TEST(a_group_that_is_refused_ends_nothing)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "STOCK SET s 9", SET(9, 0, 0, 1));
    told(&t, 1, "RESERVE a ITEM s 2 GROUP g TTL 9000",
         TAKEN("a", "PENDING", 9000));
    told(&t, 2, "GROUP CONFIRM g", "-STATE reservation 'w' is WAITING");
    told(&t, 1, "RESERVATION a", TAKEN("a", "PENDING", 8996));
    TOLD_GOOD(&t);
}

/* Somebody asks for it with another group, which does not become its own. */
TEST(the_end_of_another_group_leaves_it_pending)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "STOCK SET s 9", SET(9, 0, 0, 1));
    told(&t, 1, "RESERVE a ITEM s 2 GROUP g TTL 9000",
         TAKEN("a", "PENDING", 9000));
    told(&t, 1, "RESERVE b ITEM s 2 GROUP h TTL 9000",
         TAKEN("b", "PENDING", 9000));
    told(&t, 2, "GROUP CONFIRM g", "group g status CONFIRMED count 1");
    told(&t, 1, "RESERVATION b", TAKEN("b", "PENDING", 8990));
    told(&t, 2, "RESERVE b ITEM s 3 GROUP g TTL 9000",
         "-CONFLICT id 'b' was used with other arguments");
    TOLD_GOOD(&t);
}

/* With those that are pending, in the time of grace. */
TEST(a_late_member_is_sold_with_its_group_if_it_has_grace)
{
    for (int grace = 0; grace < 2; grace++) {
        struct told t;
        told_begin(&t);
        told(&t, 1, grace ? "CLASS SET c GRACE 1000" : "CLASS SET c", "+OK");
        told(&t, 1, "STOCK SET s 9", SET(9, 0, 0, 1));
        told(&t, 1, "RESERVE a ITEM s 2 GROUP g TTL 9000",
             TAKEN("a", "PENDING", 9000));
        told(&t, 1, "RESERVE b ITEM s 2 GROUP g TTL 10 CLASS c",
             TAKEN("b", "PENDING", 10));
        told_wait(&t, 50);
        told(&t, 1, "RESERVATION b", TAKEN("b", "EXPIRED", 0));
        told(&t, 2, "GROUP CONFIRM g", "group g status CONFIRMED count 2");
        told(&t, 1, "RESERVATION b", TAKEN("b", "CONFIRMED", 0));
        told(&t, 1, "STOCK GET s", SET(5, 0, 4, 6));
        if (grace)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "status");
    }
}
