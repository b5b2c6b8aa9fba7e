/* history_locks.c - what clients may be told of locks, and what not. */
#include "support/test.h"
#include "support/told.h"

#define GRANT(token) "token " #token " safe_ms 10000 count 1 waited_ms 0"
#define BUSY(owner) \
    "-BUSY lock 'a' is held by '" owner "' for 900 ms more, 0 waiting"

TEST(a_lock_that_goes_from_hand_to_hand_is_good)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    uint64_t waits = told_ask(&t, 2, "LOCK a OWNER y TTL 10000 WAIT 5000");
    told(&t, 3, "LOCKINFO a",
         "name a owner x token 3 expires_ms 9997 count 1 waiting 1 held_ms 3");
    told(&t, 3, "LOCK a OWNER z", BUSY("x"));
    told(&t, 1, "RENEW a 3 TTL 20000", "safe_ms 20000");
    told(&t, 1, "UNLOCK a 3", "remaining 0");
    told_answer(&t, 2, waits, "token 7 safe_ms 10000 count 1 waited_ms 8");
    told(&t, 1, "RENEW a 3 TTL 10", "-LOST lock 'a' is no longer held");
    told(&t, 3, "LOCKS",
         "locks [ name a owner y token 7 expires_ms 9990 count 1 waiting 0 ] "
         "cursor 0");
    told_wait(&t, 20000);
    told(&t, 3, "LOCKINFO a", "-NOTFOUND nobody holds lock 'a'");
    told(&t, 3, "LOCK a OWNER z", GRANT(9));
    TOLD_GOOD(&t);
}

TEST(two_holders_at_once_are_an_exclusion)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 2, "LOCK a OWNER y TTL 10000", GRANT(4));
    TOLD_BAD(&t, "exclusion");
}

/* x was told 10 s; nothing may shorten that but x. */
TEST(a_grant_before_the_safe_time_is_over_is_an_exclusion)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told_wait(&t, 9990);
    told(&t, 2, "LOCK a OWNER y TTL 10000", GRANT(4));
    TOLD_BAD(&t, "exclusion");

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told_wait(&t, 10000);
    told(&t, 2, "LOCK a OWNER y TTL 10000", GRANT(4));
    TOLD_GOOD(&t);
}

TEST(no_more_time_is_promised_than_was_asked_for)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 9000", GRANT(3));
    TOLD_BAD(&t, "expiry");

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 1, "RENEW a 3 TTL 20000", "safe_ms 21000");
    TOLD_BAD(&t, "expiry");

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x",
         "token 3 safe_ms 9223372036854775807 count 1 "
         "waited_ms 0");
    TOLD_BAD(&t, "expiry");

    told_begin(&t); /* a re-entry does not shorten the hold */
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 1, "LOCK a OWNER x TTL 10",
         "token 3 safe_ms 9998 count 2 "
         "waited_ms 0");
    TOLD_GOOD(&t);

    told_begin(&t); /* the one without an answer may have made it longer */
    told_ask(&t, 2, "LOCK a OWNER x TTL 20000");
    told(&t, 1, "LOCK a OWNER x TTL 10000",
         "token 3 safe_ms 19999 count 2 waited_ms 0");
    TOLD_GOOD(&t);

    told_begin(&t); /* so may a renewal */
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told_ask(&t, 2, "RENEW a 3 TTL 20000");
    told(&t, 1, "LOCK a OWNER x TTL 10000",
         "token 3 safe_ms 19999 count 2 waited_ms 0");
    TOLD_GOOD(&t);

    told_begin(&t); /* the time of a wait is not known */
    uint64_t id = told_ask(&t, 1, "LOCK a OWNER x TTL 10000 WAIT 5000");
    told_wait(&t, 3000);
    told_answer(&t, 1, id, "token 3 safe_ms 10000 count 1 waited_ms 2999");
    TOLD_GOOD(&t);

    told_begin_open(&t); /* others may have asked for more */
    told(&t, 1, "LOCK a OWNER x TTL 9000", GRANT(3));
    TOLD_GOOD(&t);
}

#define TIMED_OUT "-TIMEOUT waited for the lock"

/* It was on its way together with the one that was told TIMEOUT. */
TEST(a_hold_that_was_told_time_out_may_be_reentered_by_what_was_asked_before)
{
    for (int late = 0; late < 2; late++) {
        struct told t;
        told_begin(&t);
        uint64_t first = told_ask(&t, 1, "LOCK a OWNER x TTL 9000 WAIT 50");
        uint64_t second = late ? 0 : told_ask(&t, 2, "LOCK a OWNER x TTL 9000");
        told_wait(&t, 50);
        told_answer(&t, 1, first, TIMED_OUT);
        if (late)
            second = told_ask(&t, 2, "LOCK a OWNER x TTL 9000");
        told_answer(&t, 2, second, "token 3 safe_ms 9000 count 2 waited_ms 0");
        told(&t, 2, "UNLOCK a 3", "remaining 0");
        if (late)
            TOLD_BAD(&t, "phantom");
        else
            TOLD_GOOD(&t);
    }
}

TEST(a_wait_is_not_ended_before_its_time)
{
    struct told t;
    uint64_t id;

    told_begin(&t);
    id = told_ask(&t, 1, "LOCK a OWNER x WAIT 5000");
    told_wait(&t, 4980);
    told_answer(&t, 1, id, TIMED_OUT);
    TOLD_BAD(&t, "early");

    told_begin(&t);
    id = told_ask(&t, 1, "LOCK a OWNER x WAIT 5000");
    told_wait(&t, 5000);
    told_answer(&t, 1, id, TIMED_OUT);
    TOLD_GOOD(&t);

    told_begin(&t); /* a stop after a wait that was ended is no excuse */
    told(&t, 1, "LOCK a OWNER x WAIT 5000 REQ q", TIMED_OUT);
    told_mark(&t, 0, 0, HISTORY_STOP);
    TOLD_BAD(&t, "early");

    told_begin(&t); /* one that ends it is, and is remembered */
    told(&t, 1, "LOCK a OWNER x WAIT 5000 REQ q", "-TIMEOUT the server stops");
    told_mark(&t, 0, 0, HISTORY_STOP);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 1, "LOCK a OWNER x WAIT 5000 REQ q", TIMED_OUT);
    TOLD_GOOD(&t);

    told_begin(&t); /* the first answer again comes at once */
    id = told_ask(&t, 1, "LOCK a OWNER x WAIT 5000 REQ q");
    told_wait(&t, 5000);
    told_answer(&t, 1, id, TIMED_OUT);
    told(&t, 1, "LOCK a OWNER x WAIT 5000 REQ q", TIMED_OUT);
    told(&t, 1, "LOCK a OWNER x WAIT 9000 REQ q", TIMED_OUT);
    TOLD_GOOD(&t);

    told_begin(&t); /* what a server with a broken journal tells is void */
    t.opts.failed_doubted = true;
    told(&t, 2, "STOCK DEL s", "-JOURNAL the disk failed");
    told(&t, 1, "LOCK a OWNER x WAIT 5000", TIMED_OUT);
    TOLD_GOOD(&t);
}

TEST(a_renewal_may_shorten_the_time_also_one_without_an_answer)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told_ask(&t, 1, "RENEW a 3 TTL 5");
    told_wait(&t, 10);
    told(&t, 2, "LOCK a OWNER y TTL 10000", GRANT(4));
    TOLD_GOOD(&t);
}

TEST(an_unlock_without_an_answer_may_have_freed_the_lock)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told_ask(&t, 1, "UNLOCK a 3");
    told(&t, 2, "LOCK a OWNER y TTL 10000", GRANT(4));
    told(&t, 1, "RENEW a 3 TTL 10", "-LOST lock 'a' is no longer held");
    TOLD_GOOD(&t);
}

TEST(a_hold_that_is_still_changed_was_held_all_along)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10", "token 3 safe_ms 10 count 1");
    told_wait(&t, 100);
    told(&t, 2, "LOCK a OWNER y TTL 10", "token 4 safe_ms 10 count 1");
    told(&t, 1, "UNLOCK a 3", "remaining 0");
    TOLD_BAD(&t, "exclusion");
}

TEST(tokens_grow)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", GRANT(9));
    told(&t, 1, "LOCK b OWNER x", GRANT(8));
    TOLD_BAD(&t, "order");
}

TEST(tokens_grow_over_a_restart)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", GRANT(9));
    told_mark(&t, 0, 0, HISTORY_STOP);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 2, "LOCK b OWNER x", GRANT(5));
    TOLD_BAD(&t, "order");
}

TEST(calls_that_overlap_may_have_tokens_in_any_order)
{
    struct told t;

    told_begin(&t);
    uint64_t slow = told_ask(&t, 1, "LOCK b OWNER x");
    told(&t, 2, "LOCK a OWNER x", GRANT(9));
    told_answer(&t, 1, slow, GRANT(8));
    TOLD_GOOD(&t);
}

TEST(a_token_is_of_one_lock_and_one_owner)
{
    struct told t;

    told_begin(&t);
    uint64_t one = told_ask(&t, 1, "LOCK a OWNER x");
    uint64_t two = told_ask(&t, 2, "LOCK b OWNER y");
    told_answer(&t, 1, one, GRANT(8));
    told_answer(&t, 2, two, GRANT(8));
    TOLD_BAD(&t, "token");
}

TEST(re_entries_are_counted)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", GRANT(3));
    told(&t, 1, "LOCK a OWNER x", "token 3 safe_ms 9000 count 2 waited_ms 0");
    told(&t, 1, "UNLOCK a 3", "remaining 1");
    told(&t, 1, "UNLOCK a 3", "remaining 0");
    TOLD_GOOD(&t);

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", GRANT(3));
    told(&t, 1, "LOCK a OWNER x", "token 3 safe_ms 9000 count 3 waited_ms 0");
    TOLD_BAD(&t, "count");

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", GRANT(3));
    told(&t, 1, "LOCK a OWNER x", "token 3 safe_ms 9000 count 2 waited_ms 0");
    told(&t, 1, "UNLOCK a 3", "remaining 0");
    TOLD_BAD(&t, "count");

    told_begin(&t); /* one without an answer may count */
    told(&t, 1, "LOCK a OWNER x", GRANT(3));
    told_ask(&t, 2, "LOCK a OWNER x");
    told(&t, 1, "LOCK a OWNER x", "token 3 safe_ms 9000 count 3 waited_ms 0");
    TOLD_GOOD(&t);
}

TEST(what_is_surely_held_is_shown)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 2, "LOCKINFO a", "-NOTFOUND nobody holds lock 'a'");
    TOLD_BAD(&t, "missing");

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 2, "LOCKS b*", "locks [ ] cursor 0");
    told(&t, 2, "LOCKS a* COUNT 1", "locks [ ] cursor 0");
    told(&t, 2, "LOCKS", "locks [ ] cursor 7");
    TOLD_GOOD(&t);
    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 2, "LOCKS a*", "locks [ ] cursor 0");
    TOLD_BAD(&t, "missing");

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 2, "LOCK a OWNER y", BUSY("z"));
    TOLD_BAD(&t, "busy");

    told_begin(&t); /* the holder re-enters, and is not refused */
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 1, "LOCK a OWNER x", BUSY("x"));
    TOLD_BAD(&t, "busy");
}

TEST(what_is_surely_held_is_not_lost)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 1, "RENEW a 3 TTL 10000", "-LOST lock 'a' is no longer held");
    TOLD_BAD(&t, "lost");

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 1, "UNLOCK a 3", "-NOTHELD lock 'a' is not held with token 3");
    TOLD_BAD(&t, "lost");
}

TEST(an_acknowledged_hold_survives_a_crash)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told_mark(&t, 0, 0, HISTORY_CRASH);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 2, "LOCKINFO a", "-NOTFOUND nobody holds lock 'a'");
    TOLD_BAD(&t, "missing");

    told_begin(&t); /* unless the date was set meanwhile */
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told_mark(&t, 0, 0, HISTORY_CRASH);
    told_mark(&t, 0, 0, HISTORY_DATE);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 2, "LOCKINFO a", "-NOTFOUND nobody holds lock 'a'");
    TOLD_GOOD(&t);
}

TEST(a_holder_must_have_asked)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCKINFO a",
         "name a owner x token 3 expires_ms 99 count 1 waiting 0 held_ms 3");
    TOLD_BAD(&t, "phantom");

    told_begin(&t); /* refused: not the holder */
    told(&t, 2, "LOCK a OWNER y TTL 10", "token 2 safe_ms 10 count 1");
    told(&t, 1, "LOCK a OWNER x", BUSY("y"));
    told_wait(&t, 20);
    told(&t, 1, "LOCKINFO a",
         "name a owner x token 3 expires_ms 99 count 1 waiting 0 held_ms 3");
    TOLD_BAD(&t, "phantom");

    told_begin(&t); /* it was asked for later only */
    told(&t, 1, "LOCKINFO a",
         "name a owner x token 3 expires_ms 99 count 1 waiting 0 held_ms 3");
    told(&t, 2, "LOCK a OWNER x", GRANT(3));
    TOLD_BAD(&t, "phantom");

    told_begin(&t); /* no answer came: it may be */
    told_ask(&t, 2, "LOCK a OWNER x");
    told(&t, 1, "LOCKINFO a",
         "name a owner x token 3 expires_ms 99 count 1 waiting 0 held_ms 3");
    TOLD_GOOD(&t);

    told_begin_open(&t); /* others may be there */
    told(&t, 1, "LOCKINFO a",
         "name a owner x token 3 expires_ms 99 count 1 waiting 0 held_ms 3");
    TOLD_GOOD(&t);

    told_begin(&t); /* the journal may have it, after the restart */
    told(&t, 2, "LOCK a OWNER x", "-JOURNAL not acknowledged");
    told_mark(&t, 0, 0, HISTORY_STOP);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 1, "LOCKINFO a",
         "name a owner x token 3 expires_ms 99 count 1 waiting 0 held_ms 3");
    TOLD_GOOD(&t);

    told_begin(&t);
    told(&t, 1, "LOCK b OWNER x", BUSY("w"));
    TOLD_BAD(&t, "busy");
}

TEST(what_is_over_is_not_shown)
{
    struct told t;

    told_begin(&t); /* given back */
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 1, "UNLOCK a 3", "remaining 0");
    told(&t, 2, "LOCKINFO a",
         "name a owner x token 3 expires_ms 9 count 1 waiting 0 held_ms 3");
    TOLD_BAD(&t, "stale-read");

    told_begin(&t); /* its time was over */
    told(&t, 1, "LOCK a OWNER x TTL 100", "token 3 safe_ms 100 count 1");
    told_wait(&t, 200);
    told(&t, 2, "LOCKINFO a",
         "name a owner x token 3 expires_ms 0 count 1 waiting 0 held_ms 3");
    TOLD_BAD(&t, "stale-read");

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 100", "token 3 safe_ms 100 count 1");
    told_wait(&t, 200);
    told(&t, 2, "LOCK a OWNER y", BUSY("x"));
    TOLD_BAD(&t, "busy");
}

TEST(times_are_as_they_were_promised)
{
    struct told t;

    told_begin(&t); /* the renewal is lost */
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 1, "RENEW a 3 TTL 90000", "safe_ms 90000");
    told(&t, 2, "LOCKINFO a",
         "name a owner x token 3 expires_ms 9990 count 1 waiting 0 held_ms 3");
    TOLD_BAD(&t, "expiry");

    told_begin(&t); /* nobody asked for that long */
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 2, "LOCKINFO a",
         "name a owner x token 3 expires_ms 60000 count 1 waiting 0 held_ms 3");
    TOLD_BAD(&t, "expiry");
}

static void two_in_the_queue(struct told *t, uint64_t token1, uint64_t token2)
{
    char text[100];

    told_begin(t);
    uint64_t first = told_ask(t, 1, "LOCK a OWNER x WAIT 9000 TTL 5");
    told_mark(t, 1, first, HISTORY_ARRIVED);
    told_wait(t, 60);
    uint64_t second = told_ask(t, 2, "LOCK a OWNER y WAIT 9000 TTL 5");
    told_mark(t, 2, second, HISTORY_ARRIVED);
    told_wait(t, 60);
    snprintf(text, sizeof text, "token %d safe_ms 5 count 1", (int)token1);
    told_answer(t, 1, first, text);
    told_wait(t, 60);
    snprintf(text, sizeof text, "token %d safe_ms 5 count 1", (int)token2);
    told_answer(t, 2, second, text);
}

TEST(who_came_first_is_served_first)
{
    struct told t;

    two_in_the_queue(&t, 5, 7);
    TOLD_GOOD(&t);
    two_in_the_queue(&t, 7, 5);
    TOLD_BAD(&t, "fifo");
}

TEST(nobody_is_granted_who_was_gone)
{
    struct told t;

    for (int grant_late = 0; grant_late < 2; grant_late++) {
        told_begin(&t);
        told(&t, 1, "LOCK a OWNER x TTL 1000", "token 3 safe_ms 1000 count 1");
        uint64_t waits = told_ask(&t, 2, "LOCK a OWNER y WAIT 9000 TTL 90000");
        told_mark(&t, 2, waits, HISTORY_ARRIVED);
        if (!grant_late)
            told_mark(&t, 2, waits, HISTORY_SENT);
        told_mark(&t, 2, 0, HISTORY_CLOSED);
        told_mark(&t, 2, 0, HISTORY_GONE);
        told(&t, 1, "UNLOCK a 3", "remaining 0");
        told_wait(&t, 500);
        told(&t, 3, "LOCKINFO a",
             grant_late ? "name a owner y token 4 expires_ms 89000 count 1 "
                          "waiting 0 held_ms 300"
                        : "name a owner y token 4 expires_ms 89000 count 1 "
                          "waiting 0 held_ms 503");
        if (grant_late)
            TOLD_BAD(&t, "gone");
        else
            TOLD_GOOD(&t);
    }
}

TEST(a_hold_of_one_who_is_gone_may_be_reentered_by_what_was_asked_before)
{
    for (int late = 0; late < 3; late++) {
        struct told t;
        uint64_t second = 0;
        told_begin(&t);
        uint64_t first = told_ask(&t, 1, "LOCK a OWNER x TTL 9000");
        told_mark(&t, 1, first, HISTORY_ARRIVED);
        if (!late)
            second = told_ask(&t, 2, "LOCK a OWNER x TTL 9000");
        told_mark(&t, 1, 0, HISTORY_GONE);
        if (late == 2)
            told_wait(&t, 60);
        if (late)
            second = told_ask(&t, 2, "LOCK a OWNER x TTL 9000");
        told_wait(&t, 500);
        told_answer(&t, 2, second, "token 3 safe_ms 9000 count 2 waited_ms 0");
        if (late < 2)
            told(&t, 3, "LOCKINFO a",
                 "name a owner x token 3 expires_ms 8990 count 1 waiting 0 "
                 "held_ms 2");
        if (late)
            TOLD_BAD(&t, "gone");
        else
            TOLD_GOOD(&t);
    }
}

TEST(that_a_hold_of_one_who_is_gone_is_over_is_no_sign_of_it)
{
    struct told t;

    told_begin(&t);
    uint64_t first = told_ask(&t, 1, "LOCK a OWNER x TTL 9000");
    told_mark(&t, 1, first, HISTORY_ARRIVED);
    told_mark(&t, 1, 0, HISTORY_GONE);
    told(&t, 3, "LOCKINFO a",
         "name a owner x token 3 expires_ms 8990 count 1 waiting 0 held_ms 2");
    told_wait(&t, 500);
    told(&t, 3, "UNLOCK a 3", "-NOTHELD lock 'a' is not held");
    TOLD_GOOD(&t);
}

TEST(after_a_flush_everything_may_be_gone)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 1, "FLUSHALL", "+OK");
    told(&t, 2, "LOCKINFO a", "-NOTFOUND nobody holds lock 'a'");
    told(&t, 2, "LOCK a OWNER y", GRANT(5));
    TOLD_GOOD(&t);

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 1, "FLUSHALL", "+OK");
    told(&t, 2, "LOCKINFO a",
         "name a owner x token 3 expires_ms 9 count 1 waiting 0 held_ms 3");
    TOLD_BAD(&t, "stale-read");
}

TEST(what_is_over_is_not_changed)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT(3));
    told(&t, 1, "UNLOCK a 3", "remaining 0");
    told(&t, 1, "RENEW a 3 TTL 5", "safe_ms 0");
    TOLD_BAD(&t, "revived");

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 100", "token 3 safe_ms 100 count 1");
    told_wait(&t, 200);
    told(&t, 1, "UNLOCK a 3", "remaining 0");
    TOLD_BAD(&t, "revived");
}

TEST(replies_are_what_the_command_promises)
{
    static const char *const calls[] = {
        "LOCK a OWNER x", "UNLOCK a 3",         "RENEW a 3 TTL 5", "LOCKINFO a",
        "RESERVATION r",  "RESERVE r ITEM s 1", "STOCK GET s",
    };
    struct told t;

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        told_begin(&t);
        told(&t, 1, calls[i], "what 1");
        TOLD_BAD(&t, "reply");
    }
    told_begin(&t);
    uint64_t id = told_ask(&t, 1, "PING");
    CHECK_EQ(history_answer(t.history, t.now_us, 1, id, hf_bytes("+PO", 3)),
             HF_OK);
    TOLD_BAD(&t, "reply");
}
