/* history_places.c - what clients may be told of products at several places. */
#include "support/test.h"
#include "support/told.h"

#define SET(sku, n, version)                 \
    "sku " sku " total " #n " available " #n \
    " reserved 0 sold 0 version " #version " updated_ms 1 low 0"
#define GOT(items) "id r status PENDING expires_ms 9000 items [ " items " ]"

/* pen: 3 at a, 4 at b. */
static void begin(struct told *t)
{
    told_begin(t);
    told(t, 1, "STOCK SET pen@a 3", SET("pen@a", 3, 1));
    told(t, 1, "STOCK SET pen@b 4", SET("pen@b", 4, 2));
}

/* Is it good that `words` are answered so? */
static void answered(const char *words, const char *reply, const char *rule)
{
    struct told t;

    begin(&t);
    told(&t, 2, words, reply);
    if (rule == NULL)
        TOLD_GOOD(&t);
    else
        TOLD_BAD(&t, rule);
}

#define SPLIT "RESERVE r ITEM pen 5 PLACE a PLACE b SPLIT MOST TTL 9000"
#define WHOLE "RESERVE r ITEM pen 3 PLACE a PLACE b TTL 9000"

TEST(what_comes_from_several_places_adds_up)
{
    answered(SPLIT, GOT("sku pen@a quantity 1 | sku pen@b quantity 4"), NULL);
    answered(SPLIT, GOT("sku pen@a quantity 3 | sku pen@b quantity 2"), NULL);
    answered(SPLIT, GOT("sku pen@b quantity 4"), "items");
    answered(SPLIT, GOT("sku pen@a quantity 3 | sku pen@b quantity 3"),
             "items");
    answered(SPLIT, GOT("sku pen@a quantity 1 | sku pen@c quantity 4"),
             "items");
    answered(SPLIT, GOT("sku pen quantity 5"), "items");
}

TEST(without_split_it_comes_from_one_place)
{
    answered(WHOLE, GOT("sku pen@a quantity 3"), NULL);
    answered(WHOLE, GOT("sku pen@b quantity 3"), NULL);
    answered(WHOLE, GOT("sku pen@a quantity 1 | sku pen@b quantity 2"),
             "items");
}

TEST(a_place_does_not_give_more_than_it_has)
{
    struct told t;

    begin(&t);
    told(&t, 2, WHOLE, GOT("sku pen@a quantity 3"));
    told(&t, 1, "RESERVE s ITEM pen 4 PLACE a PLACE b SPLIT ORDER TTL 9000",
         "id s status PENDING expires_ms 9000 items [ sku pen@a quantity 1 | "
         "sku pen@b quantity 3 ]");
    TOLD_BAD(&t, "oversold");
}

#define READ(sku, total, available, reserved, version)   \
    "sku " sku " total " #total " available " #available \
    " reserved " #reserved " sold 0 version " #version   \
    " updated_ms 1 low 0 waiting 0"

TEST(the_sums_over_places_are_those_of_the_places)
{
    answered(
        "STOCK PLACES pen",
        "sku pen total 7 available 7 reserved 0 sold 0 count 2 places [ " READ(
            "pen@a", 3, 3, 0, 1) " | " READ("pen@b", 4, 4, 0, 2) " ] cursor 0",
        NULL);
    answered(
        "STOCK PLACES pen",
        "sku pen total 8 available 7 reserved 0 sold 0 count 2 places [ " READ(
            "pen@a", 3, 3, 0, 1) " | " READ("pen@b", 4, 4, 0, 2) " ] cursor 0",
        "sum");
    answered(
        "STOCK PLACES pen",
        "sku pen total 7 available 6 reserved 0 sold 0 count 2 places [ " READ(
            "pen@a", 3, 2, 0, 1) " | " READ("pen@b", 4, 4, 0, 2) " ] cursor 0",
        "sum");
}

/* It came, or was answered, as the network knows. */
static uint64_t come(struct told *t, uint32_t client, const char *words)
{
    uint64_t id = told_ask(t, client, words);

    told_mark(t, client, id, HISTORY_ARRIVED);
    told_wait(t, 100);
    return id;
}

static void answer(struct told *t, uint32_t client, uint64_t id,
                   const char *reply)
{
    told_mark(t, client, id, HISTORY_SENT);
    told_answer(t, client, id, reply);
}

TEST(only_what_comes_from_a_place_is_taken_from_those_who_wait_there)
{
    for (int ahead = 0; ahead < 2; ahead++) {
        struct told t;
        begin(&t);
        uint64_t waits =
            come(&t, 1, "RESERVE w ITEM pen@a 9 TTL 9000 WAIT 5000");
        uint64_t later = come(&t, 2, WHOLE);
        answer(&t, 2, later,
               ahead ? GOT("sku pen@a quantity 3")
                     : GOT("sku pen@b quantity 3"));
        told_wait(&t, 4800);
        answer(&t, 1, waits,
               "-TIMEOUT waited 5000 ms for sku 'pen@a', 0 waiting, "
               "position 1");
        if (ahead)
            TOLD_BAD(&t, "fifo");
        else
            TOLD_GOOD(&t);
    }
}

/* A CONFIRM in the time of grace sells what was made anew. */
TEST(a_late_confirm_may_sell_of_a_product_that_was_made_again)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "CLASS SET c GRACE 1000", "+OK");
    told(&t, 1, "STOCK SET s 3", SET("s", 3, 1));
    told(&t, 1, "RESERVE r ITEM s 1 TTL 10 CLASS c",
         "id r status PENDING expires_ms 10 items [ sku s quantity 1 ]");
    told_wait(&t, 50);
    told(&t, 1, "STOCK DEL s", "+OK");
    told(&t, 1, "STOCK SET s 3", SET("s", 3, 5));
    told(&t, 1, "CONFIRM r",
         "id r status CONFIRMED expires_ms 0 items [ sku s quantity 1 ]");
    told(&t, 1, "STOCK GET s",
         "sku s total 3 available 2 reserved 0 sold 1 version 6 updated_ms 1 "
         "low 0");
    TOLD_GOOD(&t);
}

/* Or it finds none, which does not say that the reservation is forgotten. */
TEST(a_late_confirm_may_find_that_a_product_was_deleted)
{
    for (int forgotten = 0; forgotten < 2; forgotten++) {
        struct told t;
        told_begin(&t);
        told(&t, 1, "CLASS SET c GRACE 1000", "+OK");
        told(&t, 1, "STOCK SET s 3", SET("s", 3, 1));
        told(&t, 1, "RESERVE r ITEM s 1 TTL 10 CLASS c",
             "id r status PENDING expires_ms 10 items [ sku s quantity 1 ]");
        told_wait(&t, 50);
        told(&t, 1, "STOCK DEL s", "+OK");
        told(&t, 1, "CONFIRM r",
             forgotten ? "-NOTFOUND no reservation 'r'"
                       : "-NOTFOUND no product 's'");
        if (forgotten)
            TOLD_BAD(&t, "missing");
        else
            TOLD_GOOD(&t);
    }
}
