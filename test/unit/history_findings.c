/* history_findings.c - faults that servers have had, as clients saw them, and
 * the rule that tells. Beside each, the same as it should have been. */
#include "support/test.h"
#include "support/told.h"

#define SHOWN(owner, token, ms, held)                                     \
    "name a owner " owner " token " #token " expires_ms " #ms " count 1 " \
    "waiting 0 held_ms " #held

static void crash(struct told *t)
{
    told_mark(t, 0, 0, HISTORY_CRASH);
    told_wait(t, 1000);
    told_mark(t, 0, 0, HISTORY_START);
}

/* A holds for 700 ms, B waits; kill -9, one second, start: B holds. */
TEST(a_restart_grants_the_lock_to_a_dead_waiter)
{
    struct told t;

    for (int dead = 0; dead < 2; dead++) {
        told_begin(&t);
        told(&t, 1, "LOCK a OWNER A TTL 700", "token 3 safe_ms 700 count 1");
        if (!dead)
            told_wait(&t, 600); /* A's time may be over before the crash */
        told_ask(&t, 2, "LOCK a OWNER B TTL 3600000 WAIT 60000");
        if (!dead)
            told_wait(&t, 200);
        crash(&t);
        told(&t, 3, "LOCKINFO a", SHOWN("B", 5, 3599000, 500));
        if (dead)
            TOLD_BAD(&t, "phantom");
        else
            TOLD_GOOD(&t);
    }
}

/* RENEW stalls past the expiry: free, then renewed, then held. */
TEST(a_read_forgets_a_lock_whose_renewal_is_on_its_way)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER A TTL 1000", "token 3 safe_ms 1000 count 1");
    told_wait(&t, 900);
    uint64_t renewal = told_ask(&t, 1, "RENEW a 3 TTL 5000");
    told_wait(&t, 600);
    told(&t, 2, "LOCKINFO a", "-NOTFOUND nobody holds lock 'a'");
    told_wait(&t, 600);
    told_answer(&t, 1, renewal, "safe_ms 5000");
    TOLD_BAD(&t, "missing");
}

TEST(a_read_calls_expired_what_is_confirmed_afterwards)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "STOCK SET s 9",
         "sku s total 9 available 9 reserved 0 sold 0 version 1 updated_ms 1");
    told(&t, 1, "RESERVE r ITEM s 1 TTL 1000",
         "id r status PENDING expires_ms 1000 items [ sku s quantity 1 ]");
    told_wait(&t, 900);
    uint64_t confirm = told_ask(&t, 1, "CONFIRM r");
    told_wait(&t, 600);
    told(&t, 2, "RESERVATION r",
         "id r status EXPIRED expires_ms 0 items [ sku s quantity 1 ]");
    told_answer(&t, 1, confirm,
                "id r status CONFIRMED expires_ms 0 items [ sku s quantity 1 "
                "]");
    TOLD_BAD(&t, "status");
}

/* LOCK TTL 1000 stalls for 1.5 s, is told 1000, and the next has it. */
TEST(the_safe_time_is_that_of_the_stamp)
{
    struct told t;

    for (int stamp = 0; stamp < 2; stamp++) {
        told_begin(&t);
        uint64_t slow = told_ask(&t, 1, "LOCK a OWNER A TTL 1000");
        told_mark(&t, 1, slow, HISTORY_ARRIVED);
        told_wait(&t, 1500);
        told_mark(&t, 1, slow, HISTORY_SENT);
        told_answer(&t, 1, slow,
                    stamp ? "token 3 safe_ms 1000 count 1"
                          : "token 3 safe_ms 0 count 1");
        told(&t, 2, "LOCK a OWNER B TTL 1000", "token 4 safe_ms 1000 count 1");
        if (stamp)
            TOLD_BAD(&t, "exclusion");
        else
            TOLD_GOOD(&t);
    }
}

/* TIMEOUT is told, and the lock is granted. */
static void time_out(struct told *t)
{
    told_begin(t);
    uint64_t id = told_ask(t, 1, "LOCK a OWNER A TTL 90000 WAIT 100 REQ r");
    told_wait(t, 100);
    told_answer(t, 1, id, "-TIMEOUT waited for the lock");
}

TEST(a_time_out_is_told_and_the_lock_is_granted)
{
    struct told t;

    told_begin(&t); /* seen before it was told: it was given back */
    uint64_t waits = told_ask(&t, 1, "LOCK a OWNER A TTL 90000 WAIT 100");
    told(&t, 2, "LOCKINFO a", SHOWN("A", 3, 89990, 1));
    told_wait(&t, 100);
    told_answer(&t, 1, waits, "-TIMEOUT waited for the lock");
    TOLD_GOOD(&t);

    time_out(&t);
    told(&t, 2, "LOCKINFO a", SHOWN("A", 3, 89000, 150));
    TOLD_BAD(&t, "phantom");

    time_out(&t);
    told(&t, 2, "LOCK a OWNER A TTL 90000 WAIT 100 REQ r",
         "token 3 safe_ms 89000 count 1");
    TOLD_BAD(&t, "request");

    time_out(&t); /* the only excuse: it crashed before the disk answered */
    crash(&t);
    told(&t, 2, "LOCKINFO a", SHOWN("A", 3, 88000, 1150));
    told(&t, 2, "LOCK a OWNER A TTL 90000 WAIT 100 REQ r",
         "token 3 safe_ms 88000 count 1");
    TOLD_GOOD(&t);
}

TEST(a_time_out_told_at_a_clean_stop_is_forgotten)
{
    struct told t;

    time_out(&t);
    told_mark(&t, 0, 0, HISTORY_STOP);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 2, "LOCK a OWNER A TTL 90000 WAIT 100 REQ r",
         "token 3 safe_ms 90000 count 1");
    TOLD_BAD(&t, "request");
}

/* Reservations have expired together, and their units are not back. */
TEST(stock_is_short_though_it_is_free)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "STOCK SET s 4",
         "sku s total 4 available 4 reserved 0 sold 0 version 1 updated_ms 1");
    told(&t, 1, "RESERVE r ITEM s 4 TTL 1000",
         "id r status PENDING expires_ms 1000 items [ sku s quantity 4 ]");
    told(&t, 1, "RESERVE q ITEM s 1",
         "-SHORT sku 's': requested 1, available 0");
    told_wait(&t, 1100);
    told(&t, 1, "RESERVATION r",
         "id r status EXPIRED expires_ms 0 items [ sku s quantity 4 ]");
    told(&t, 1, "RESERVE q ITEM s 1",
         "-SHORT sku 's': requested 1, available 0");
    TOLD_BAD(&t, "short");
}

/* LOCK WAIT on a free lock, its client gone while the record is on its way:
 * nobody was told, and it is held to its end. */
TEST(an_orphan_holds_the_lock)
{
    struct told t;

    told_begin(&t);
    uint64_t id = told_ask(&t, 1, "LOCK a OWNER A TTL 60000 WAIT 1000");
    told_mark(&t, 1, id, HISTORY_ARRIVED);
    told_mark(&t, 1, 0, HISTORY_CLOSED);
    told_mark(&t, 1, 0, HISTORY_GONE);
    told_wait(&t, 2000);
    told(&t, 2, "LOCKINFO a", SHOWN("A", 3, 57000, 2000));
    TOLD_BAD(&t, "gone");
}

/* A repeated LOCK or RENEW promises time that another has by now. */
TEST(a_repetition_promises_what_was_given_back)
{
    struct told t;

    for (int wrong = 0; wrong < 2; wrong++) {
        told_begin(&t);
        told(&t, 1, "LOCK a OWNER A TTL 9000 REQ r",
             "token 3 safe_ms 9000 count 1");
        told(&t, 1, "UNLOCK a 3", "remaining 0");
        told(&t, 1, "LOCK a OWNER A TTL 9000 REQ r",
             wrong ? "token 3 safe_ms 8990 count 1"
                   : "token 3 safe_ms 0 count 1");
        if (wrong)
            TOLD_BAD(&t, "promise");
        else
            TOLD_GOOD(&t);
    }
    told_begin(&t);
    told(&t, 1, "LOCK a OWNER A TTL 9000 REQ r",
         "token 3 safe_ms 9000 count 1");
    told(&t, 1, "UNLOCK a 3", "remaining 0");
    told(&t, 2, "LOCK a OWNER B TTL 9000", "token 4 safe_ms 9000 count 1");
    told(&t, 1, "LOCK a OWNER A TTL 9000 REQ r",
         "token 3 safe_ms 8990 count 1");
    TOLD_BAD(&t, "promise");
}

TEST(a_grant_was_told_and_its_repetition_says_time_out)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER A TTL 9000 WAIT 100 REQ r",
         "token 3 safe_ms 9000 count 1");
    told_wait(&t, 100);
    told(&t, 1, "LOCK a OWNER A TTL 9000 WAIT 100 REQ r",
         "-TIMEOUT waited while the disk did not answer");
    TOLD_BAD(&t, "request");
}

TEST(a_re_entry_that_was_told_time_out_counts)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER A TTL 90000", "token 3 safe_ms 90000 count 1");
    uint64_t waits = told_ask(&t, 1, "LOCK a OWNER A TTL 90000 WAIT 100");
    told_wait(&t, 100);
    told_answer(&t, 1, waits, "-TIMEOUT waited while the disk did not answer");
    told(&t, 1, "UNLOCK a 3", "remaining 1");
    TOLD_BAD(&t, "count");
}

/* The journal failed, the id was told, and its CONFIRM was found on disk. */
TEST(what_a_doubted_answer_named_may_be_sold)
{
    for (int told_id = 0; told_id < 2; told_id++) {
        struct told t;
        told_begin(&t);
        told(&t, 1, "STOCK SET s 10",
             "sku s total 10 available 10 reserved 0 sold 0 version 1 "
             "updated_ms 1");
        told_mark(&t, 0, 0, HISTORY_FAILED);
        uint64_t id = told_ask(&t, 1, "RESERVE * ITEM s 4");
        if (told_id)
            told_answer(&t, 1, id,
                        "id x-1 status PENDING expires_ms 9999 items [ sku s "
                        "quantity 4 ]");
        told_ask(&t, 1, "CONFIRM x-1");
        crash(&t);
        told(&t, 2, "STOCK GET s",
             "sku s total 10 available 6 reserved 0 sold 4 version 3 "
             "updated_ms 1");
        if (told_id)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "sold");
    }
}
