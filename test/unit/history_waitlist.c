/* history_waitlist.c - what clients may be told who wait for stock. */
#include "support/test.h"
#include "support/told.h"

#define SEEN(available, reserved, version, waiting)              \
    "sku s total 4 available " #available " reserved " #reserved \
    " sold 0 version " #version " updated_ms 1 waiting " #waiting
#define BOOKED(id) \
    "id " id " status PENDING expires_ms 9000 items [ sku s quantity 4 ]"
#define TIMED_OUT "-TIMEOUT waited 5000 ms for sku 's', 0 waiting, position 1"

/* All four are reserved as a, until they are cancelled. */
static void begin(struct told *t)
{
    told_begin(t);
    told(t, 1, "STOCK SET s 4", SEEN(4, 0, 1, 0));
    told(t, 1, "RESERVE a ITEM s 4 TTL 90000",
         "id a status PENDING expires_ms 90000 items [ sku s quantity 4 ]");
}

static void cancel(struct told *t)
{
    told(t, 1, "CANCEL a",
         "id a status CANCELLED expires_ms 0 items [ sku s quantity 4 ]");
}

/* It came, as the network knows. */
static uint64_t wait_for(struct told *t, uint32_t client, const char *words)
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
    told_wait(t, 100);
}

TEST(who_waits_gets_what_was_cancelled_in_order)
{
    struct told t;

    begin(&t);
    uint64_t b = wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 9000 WAIT 5000");
    uint64_t c = wait_for(&t, 3, "RESERVE c ITEM s 4 TTL 9000 WAIT 5000");
    told(&t, 4, "STOCK GET s", SEEN(0, 4, 2, 2));
    cancel(&t);
    answer(&t, 2, b, BOOKED("b"));
    told_wait(&t, 4800);
    answer(&t, 3, c, TIMED_OUT);
    told(&t, 4, "STOCK GET s", SEEN(0, 4, 5, 0));
    TOLD_GOOD(&t);
}

TEST(who_came_later_is_not_served_first)
{
    struct told t;

    begin(&t);
    uint64_t b = wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 9000 WAIT 5000");
    uint64_t c = wait_for(&t, 3, "RESERVE c ITEM s 4 TTL 9000 WAIT 5000");
    cancel(&t);
    answer(&t, 3, c, BOOKED("c"));
    told_wait(&t, 4700);
    answer(&t, 2, b, TIMED_OUT);
    TOLD_BAD(&t, "fifo");

    begin(&t); /* unless it has a better priority */
    b = wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 9000 WAIT 5000 PRIORITY 1");
    c = wait_for(&t, 3, "RESERVE c ITEM s 4 TTL 9000 WAIT 5000");
    cancel(&t);
    answer(&t, 3, c, BOOKED("c"));
    told_wait(&t, 4700);
    answer(&t, 2, b, TIMED_OUT);
    TOLD_GOOD(&t);

    begin(&t); /* nor one that does not wait */
    b = wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 9000 WAIT 5000 PRIORITY 3");
    cancel(&t);
    c = wait_for(&t, 3, "RESERVE c ITEM s 4 TTL 9000");
    answer(&t, 3, c, BOOKED("c"));
    told_wait(&t, 4700);
    answer(&t, 2, b, TIMED_OUT);
    TOLD_BAD(&t, "fifo");
}

TEST(short_of_what_is_there_are_those_only_who_come_behind_others)
{
    struct told t;

    begin(&t);
    cancel(&t);
    uint64_t b = wait_for(&t, 2, "RESERVE b ITEM s 5 TTL 9000 WAIT 5000");
    told(&t, 3, "RESERVE c ITEM s 1",
         "-SHORT sku 's': requested 1, available 4, 1 waiting");
    told(&t, 3, "STOCK DEL s",
         "-STATE sku 's' has 0 reserved, and 1 wait for it");
    told_wait(&t, 4900);
    answer(&t, 2, b, TIMED_OUT);
    TOLD_GOOD(&t);

    begin(&t);
    cancel(&t);
    told(&t, 3, "RESERVE c ITEM s 1",
         "-SHORT sku 's': requested 1, available 4, 1 waiting");
    TOLD_BAD(&t, "short");
}

TEST(nobody_waits_whom_nobody_knows)
{
    struct told t;

    begin(&t);
    told(&t, 3, "STOCK GET s", SEEN(0, 4, 2, 1));
    TOLD_BAD(&t, "waiting");
}

TEST(nobody_waits_for_what_is_there)
{
    struct told t;

    begin(&t);
    uint64_t b = wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 9000 WAIT 5000");
    cancel(&t);
    told(&t, 3, "STOCK GET s", SEEN(4, 0, 3, 1));
    told_wait(&t, 4900);
    answer(&t, 2, b, TIMED_OUT);
    TOLD_BAD(&t, "idle");
}

TEST(what_was_told_timeout_is_not_reserved)
{
    for (int crashes = 0; crashes < 2; crashes++) {
        struct told t;
        begin(&t);
        uint64_t b = wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 90000 WAIT 5000");
        told_wait(&t, 4900);
        cancel(&t);
        answer(&t, 2, b, "-TIMEOUT waited while the disk did not answer");
        if (crashes) { /* the only excuse */
            told_mark(&t, 0, 0, HISTORY_CRASH);
            told_mark(&t, 0, 0, HISTORY_START);
        }
        told(&t, 3, "RESERVATION b",
             "id b status PENDING expires_ms 89000 items [ sku s quantity 4 ] "
             "owner x created_ms 1 ended_ms 0 reason x");
        if (crashes)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "phantom");
    }
}

/* Also if the server crashes later, behind the verdict. */
TEST(what_was_told_timeout_may_have_been_reserved_and_cancelled)
{
    for (int crashes = 0; crashes < 2; crashes++) {
        struct told t;
        begin(&t);
        uint64_t b =
            wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 90000 WAIT 5000 REQ q");
        told_wait(&t, 4900);
        cancel(&t);
        answer(&t, 2, b, "-TIMEOUT waited while the disk did not answer");
        told(&t, 3, "CONFIRM b", "-STATE reservation 'b' is CANCELLED");
        if (crashes)
            told_mark(&t, 0, 0, HISTORY_CRASH);
        TOLD_GOOD(&t);
    }
}

/* What was in the same batch saw it reserved. */
TEST(what_was_told_timeout_may_have_made_others_short)
{
    static const char *const replies[] = {
        TIMED_OUT, "-TIMEOUT waited while the disk did not answer"};

    for (int stalled = 0; stalled < 2; stalled++) {
        for (int kind = 0; kind < 2; kind++) {
            struct told t;
            begin(&t);
            uint64_t b =
                wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 90000 WAIT 5000");
            told_wait(&t, 4900);
            cancel(&t);
            uint64_t c = told_ask(
                &t, 3, kind == 0 ? "RESERVE c ITEM s 2" : "STOCK ADD s 1");
            answer(&t, 2, b, replies[stalled]);
            told_answer(&t, 3, c,
                        kind == 0 ? "-SHORT sku 's': requested 2, available 0"
                                  : "sku s total 5 available 1 reserved 4 sold "
                                    "0 version 4 updated_ms 1 waiting 0");
            if (stalled)
                TOLD_GOOD(&t);
            else
                TOLD_BAD(&t, kind == 0 ? "short" : "reserved");
        }
    }
}

TEST(a_wait_for_stock_is_not_ended_before_its_time)
{
    struct told t;

    begin(&t);
    uint64_t b = wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 9000 WAIT 5000");
    answer(&t, 2, b, TIMED_OUT);
    TOLD_BAD(&t, "early");
}

TEST(who_is_gone_has_no_reservation)
{
    for (int cancelled = 0; cancelled < 2; cancelled++) {
        struct told t;
        begin(&t);
        (void)wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 9000 WAIT 5000");
        told_mark(&t, 2, 0, HISTORY_GONE);
        told_wait(&t, 100);
        cancel(&t);
        told(&t, 3, "RESERVATION b",
             cancelled
                 ? "id b status CANCELLED expires_ms 0 items [ sku s quantity "
                   "4 ] owner x created_ms 1 ended_ms 2 reason x"
                 : "id b status PENDING expires_ms 8990 items [ sku s quantity "
                   "4 ] owner x created_ms 1 ended_ms 0 reason x");
        if (cancelled)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "gone");
    }
}

TEST(one_that_waits_is_shown_so)
{
    struct told t;

    begin(&t);
    uint64_t b = wait_for(&t, 2, "RESERVE b ITEM s 4 TTL 9000 WAIT 5000");
    told(&t, 3, "RESERVATION b",
         "id b status WAITING expires_ms 0 items [ sku s quantity 4 ] owner x "
         "created_ms 1 ended_ms 0 reason x");
    told(&t, 3, "CONFIRM b", "-STATE reservation 'b' is WAITING");
    told_wait(&t, 4900);
    answer(&t, 2, b, TIMED_OUT);
    TOLD_GOOD(&t);
}

/* What is made for one who was told TIMEOUT while the disk hung is given back;
 * who asked before that may see it. */
TEST(units_may_be_reserved_for_one_who_is_told_timeout)
{
    for (int lie = 0; lie < 3; lie++) {
        struct told t;
        uint64_t read = 0;
        told_begin(&t);
        told(&t, 1, "STOCK SET s 4", SEEN(4, 0, 1, 0));
        uint64_t waits = told_ask(&t, 1, "RESERVE * ITEM s 2 WAIT 1");
        if (lie != 1)
            read = told_ask(&t, 2, "STOCK GET s");
        told_answer(&t, 1, waits,
                    lie == 2 ? "-TIMEOUT waited 1 ms for sku 's', 0 others "
                               "wait, position 1"
                             : "-TIMEOUT waited while the disk did not answer");
        if (lie == 1)
            read = told_ask(&t, 2, "STOCK GET s");
        told_answer(&t, 2, read, SEEN(2, 2, 3, 0));
        if (lie)
            TOLD_BAD(&t, "reserved");
        else
            TOLD_GOOD(&t);
    }
}

/* Once, and no more. */
TEST(no_more_units_are_reserved_for_one_who_is_told_timeout_than_he_wants)
{
    for (int lie = 0; lie < 4; lie++) {
        struct told t;
        told_begin(&t);
        told(&t, 1, "STOCK SET s 4", SEEN(4, 0, 1, 0));
        uint64_t waits = told_ask(&t, 1, "RESERVE * ITEM s 2 WAIT 1");
        uint64_t asks =
            told_ask(&t, 2, lie < 2 ? "STOCK GET s" : "RESERVE c ITEM s 3");
        told_answer(&t, 1, waits,
                    "-TIMEOUT waited while the disk did not answer");
        told_answer(&t, 2, asks,
                    lie == 0   ? SEEN(2, 2, 3, 0)
                    : lie == 1 ? SEEN(0, 4, 3, 0)
                    : lie == 2 ? "-SHORT sku 's': requested 3, available 2"
                               : "-SHORT sku 's': requested 3, available 0");
        if (lie % 2 == 0)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, lie == 1 ? "reserved" : "short");
    }
}
