/* history_requests.c - repeated requests, fences, and answers that do not
 * come. */
#include "support/test.h"
#include "support/told.h"

#define GRANT "token 3 safe_ms 10000 count 1 waited_ms 0"
#define BUSY  "-BUSY lock 'a' is held by 'z' for 900 ms more, 0 waiting"
#define LOCK  "LOCK a OWNER x TTL 10000 REQ r"

/* What is told again may be forgotten soon: it was kept when it was first
 * carried out. */
TEST(an_id_is_free_again_when_its_first_use_is_over)
{
    for (int lie = 0; lie < 2; lie++) {
        struct told t;
        told_begin(&t);
        t.opts.request_keep_us = 5000000;
        told_ask(&t, 1, "LOCK a OWNER x REQ r");
        told_wait(&t, lie ? 0 : 4000);
        told(&t, 2, "LOCK a OWNER x REQ r", "token 1 safe_ms 900 count 1");
        told_wait(&t, 2000);
        told(&t, 2, "LOCK b OWNER x REQ r", "token 2 safe_ms 900 count 1");
        if (lie)
            TOLD_BAD(&t, "conflict");
        else
            TOLD_GOOD(&t);
    }
}

TEST(a_repetition_is_told_the_first_answer_with_less_time)
{
    struct told t;

    told_begin(&t);
    told_ask(&t, 1, LOCK);
    told(&t, 2, LOCK, GRANT);
    told(&t, 3, LOCK, "token 3 safe_ms 9995 count 1 waited_ms 0");
    told(&t, 3, "UNLOCK a 3 REQ s", "remaining 0");
    told(&t, 3, "UNLOCK a 3 REQ s", "remaining 0");
    told(&t, 3, LOCK, "token 3 safe_ms 0 count 1 waited_ms 0");
    TOLD_GOOD(&t);
}

/* It was sent before, and is carried out anew when it comes after the flush. */
TEST(a_request_on_its_way_during_a_flush_is_carried_out_after_it)
{
    struct told t;

    told_begin(&t);
    told_ask(&t, 1, LOCK);
    told(&t, 2, LOCK, GRANT);
    told(&t, 2, "FLUSHALL", "+OK");
    told(&t, 3, "LOCKINFO a",
         "name a owner x token 9 expires_ms 900 count 1 waiting 0 held_ms 5");
    TOLD_GOOD(&t);
}

TEST(a_repetition_is_told_nothing_else)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, LOCK, GRANT);
    told(&t, 2, LOCK, "token 3 safe_ms 9995 count 2 waited_ms 0");
    TOLD_BAD(&t, "request");

    told_begin(&t);
    told(&t, 1, "STOCK SET s 5 REQ r",
         "sku s total 5 available 5 reserved 0 sold 0 version 7 updated_ms 1");
    told(&t, 1, "STOCK SET s 5 REQ r",
         "sku s total 5 available 5 reserved 0 sold 0 version 8 updated_ms 1");
    TOLD_BAD(&t, "request");
}

TEST(a_refusal_is_remembered_too_unless_the_table_was_full)
{
    struct told t;

    for (int full = 0; full < 2; full++) {
        told_begin(&t);
        t.opts.requests_full = full;
        told(&t, 1, "LOCK a OWNER z TTL 10000", GRANT);
        told(&t, 1, LOCK, BUSY);
        told(&t, 1, "UNLOCK a 3", "remaining 0");
        told(&t, 1, LOCK, "token 4 safe_ms 10000 count 1 waited_ms 0");
        if (full)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "request");
    }
}

TEST(an_id_is_forgotten_after_its_time_and_by_a_flush)
{
    struct told t;

    told_begin(&t);
    t.opts.request_keep_us = 1000000;
    told(&t, 1, LOCK, GRANT);
    told(&t, 1, "UNLOCK a 3", "remaining 0");
    told_wait(&t, 1000);
    told(&t, 1, LOCK, "token 5 safe_ms 10000 count 1 waited_ms 0");
    TOLD_GOOD(&t);

    told_begin(&t);
    told(&t, 1, LOCK, GRANT);
    told(&t, 1, "FLUSHALL", "+OK");
    told(&t, 1, LOCK, "token 5 safe_ms 10000 count 1 waited_ms 0");
    TOLD_GOOD(&t);
}

TEST(an_effect_comes_once_though_it_is_asked_for_twice)
{
    struct told t;

    told_begin(&t); /* the second answer says count 2: it happened twice */
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT);
    told_ask(&t, 1, "LOCK a OWNER x REQ q");
    told(&t, 2, "LOCK a OWNER x REQ q",
         "token 3 safe_ms 9000 count 3 waited_ms 0");
    TOLD_BAD(&t, "count");

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT);
    told_ask(&t, 1, "LOCK a OWNER x REQ q");
    told(&t, 2, "LOCK a OWNER x REQ q",
         "token 3 safe_ms 9000 count 2 waited_ms 0");
    TOLD_GOOD(&t);
}

/* One REQ on its way on two connections at once. */

#define WAIT "LOCK a OWNER x TTL 10000 WAIT 3000 REQ r"

/* The first is sent first and read last. Its keep-time is over before the
 * second is known to have ended. */
struct pair {
    uint64_t first;
    uint64_t second;
};

static struct pair ask_twice(struct told *t, const char *words)
{
    struct pair pair;

    t->opts.request_keep_us = 1000000;
    pair.first = told_ask(t, 1, words);
    pair.second = told_ask(t, 2, words);
    told_mark(t, 2, pair.second, HISTORY_ARRIVED);
    return pair;
}

TEST(of_two_waits_under_one_req_the_one_that_arrived_first_counts)
{
    for (int early = 0; early < 2; early++) {
        struct told t;
        told_begin(&t);
        told(&t, 3, "LOCK a OWNER z TTL 60000",
             "token 2 safe_ms 60000 count 1");
        struct pair pair = ask_twice(&t, WAIT);
        told_wait(&t, 500);
        told_mark(&t, 1, pair.first, HISTORY_ARRIVED);
        told_answer(&t, 2, pair.second,
                    "-CONFLICT the request goes on in a newer connection");
        told_wait(&t, early ? 2400 : 2500);
        told_answer(&t, 1, pair.first, "-TIMEOUT waited 3000 ms for the lock");
        if (early)
            TOLD_BAD(&t, "early");
        else
            TOLD_GOOD(&t);
    }
}

TEST(of_two_with_one_req_either_may_have_been_carried_out)
{
    for (int late = 0; late < 2; late++) {
        struct told t;
        told_begin(&t);
        if (late) /* before either of them has arrived */
            told(&t, 3, "LOCK b OWNER y", "token 5 safe_ms 9000 count 1");
        struct pair pair = ask_twice(&t, LOCK);
        if (!late)
            told(&t, 3, "LOCK b OWNER y", "token 5 safe_ms 9000 count 1");
        told(&t, 3, "LOCKINFO a",
             "name a owner x token 3 expires_ms 9990 count 1 waiting 0 "
             "held_ms 3");
        told_mark(&t, 1, pair.first, HISTORY_ARRIVED);
        told_answer(&t, 1, pair.first, GRANT);
        told_wait(&t, 1500);
        told(&t, 3, "PING", "+PONG");
        if (late)
            TOLD_BAD(&t, "order");
        else
            TOLD_GOOD(&t);
    }
}

TEST(two_with_one_req_are_told_the_same_while_the_first_can_be_remembered)
{
    static const char *const answers[] = {GRANT, BUSY};

    for (int turned = 0; turned < 2; turned++) {
        for (int soon = 0; soon < 2; soon++) {
            struct told t;
            told_begin(&t);
            told(&t, 3, "LOCK a OWNER z", "token 2 safe_ms 9000 count 1");
            struct pair pair = ask_twice(&t, LOCK);
            told_ask(&t, 3, "UNLOCK a 2");
            told_answer(&t, 2, pair.second, answers[turned]);
            told_ask(&t, 3, "UNLOCK a 3");
            told_wait(&t, soon ? 500 : 1500);
            told_ask(&t, 3, "LOCK a OWNER z");
            told_answer(&t, 1, pair.first, answers[!turned]);
            if (soon)
                TOLD_BAD(&t, "request");
            else
                TOLD_GOOD(&t);
        }
    }
}

TEST(two_with_one_req_have_one_effect)
{
    for (int64_t count = 2; count < 4; count++) {
        struct told t;
        told_begin(&t);
        told(&t, 3, "LOCK a OWNER x TTL 10000", GRANT);
        struct pair pair = ask_twice(&t, LOCK);
        told_mark(&t, 1, pair.first, HISTORY_ARRIVED);
        told_answer(&t, 1, pair.first,
                    "token 3 safe_ms 9990 count 2 waited_ms 0");
        told_answer(&t, 2, pair.second,
                    "token 3 safe_ms 9990 count 2 waited_ms 0");
        told(&t, 3, "LOCKINFO a",
             count == 2 ? "name a owner x token 3 expires_ms 9990 count 2 "
                          "waiting 0 held_ms 3"
                        : "name a owner x token 3 expires_ms 9990 count 3 "
                          "waiting 0 held_ms 3");
        if (count == 2)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "count");
    }
}

TEST(a_conflict_needs_other_words)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, LOCK, GRANT);
    told(&t, 1, "LOCK b OWNER x REQ r",
         "-CONFLICT id 'r' was used with other arguments");
    TOLD_GOOD(&t);

    told_begin(&t);
    told(&t, 1, LOCK, "-CONFLICT id 'r' was used with other arguments");
    TOLD_BAD(&t, "conflict");

    told_begin(&t);
    told(&t, 1, LOCK, GRANT);
    told(&t, 1, "LOCK b OWNER x REQ r",
         "token 4 safe_ms 10000 count 1 waited_ms 0");
    TOLD_BAD(&t, "conflict");

    told_begin(&t); /* also of one whose session is not known */
    told(&t, 1, "LOCK b OWNER x SESSION 0 REQ r", GRANT);
    told(&t, 2, LOCK, "-CONFLICT id 'r' was used with other arguments");
    TOLD_GOOD(&t);

    told_begin(&t); /* the wait goes on elsewhere: not a conflict of words */
    told_ask(&t, 1, "LOCK a OWNER z");
    uint64_t first = told_ask(&t, 2, "LOCK a OWNER x WAIT 9000 REQ r");
    uint64_t again = told_ask(&t, 3, "LOCK a OWNER x WAIT 9000 REQ r");
    told_answer(&t, 2, first,
                "-CONFLICT the request goes on in a newer connection");
    told_answer(&t, 3, again, "token 4 safe_ms 9000 count 1 waited_ms 5");
    TOLD_GOOD(&t);
}

/* Of commands that say nothing else to the checker, too. */
TEST(the_id_of_every_command_counts)
{
    static const char *const first[] = {
        "CLASS DEL k REQ r", "PROCLAIM a 3 VALUE v REQ r", "FENCE DEL f REQ r"};
    struct told t;

    for (size_t i = 0; i < sizeof first / sizeof *first; i++) {
        told_begin(&t);
        told_ask(&t, 1, first[i]);
        told(&t, 2, LOCK, "-CONFLICT id 'r' was used with other arguments");
        TOLD_GOOD(&t);
    }
}

/* The id that was used may be the reservation's. */
TEST(who_joins_a_waitlist_may_be_in_conflict_with_a_reservation)
{
    struct told t;

    told_begin(&t);
    told_ask(&t, 1, "RESERVE i ITEM s 1");
    told(&t, 2, "WAITLIST JOIN s 2 OWNER o ID i REQ r",
         "-CONFLICT id 'i' was used with other arguments");
    TOLD_GOOD(&t);
}

TEST(after_a_failed_journal_a_restart_may_find_otherwise)
{
    struct told t;

    for (int doubted = 0; doubted < 2; doubted++) {
        told_begin(&t);
        t.opts.failed_doubted = doubted;
        told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT);
        told(&t, 1, "UNLOCK a 3", "-JOURNAL not acknowledged");
        told(&t, 2, "LOCKINFO a",
             "name a owner x token 3 expires_ms 9990 count 2 waiting 0 "
             "held_ms 3");
        told_mark(&t, 0, 0, HISTORY_STOP);
        told_mark(&t, 0, 0, HISTORY_START);
        told(&t, 2, "LOCKINFO a", "-NOTFOUND nobody holds lock 'a'");
        if (doubted)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "count");
    }
}

TEST(a_failed_batch_that_is_on_disk_leaves_open_what_is_told_after_it)
{
    struct told t;

    for (int late = 0; late < 2; late++) {
        told_begin(&t);
        told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT);
        if (late)
            told(&t, 2, "LOCKINFO a",
                 "name a owner x token 3 expires_ms 9998 count 2 waiting 0 "
                 "held_ms 3");
        told_mark(&t, 0, 0, HISTORY_FAILED);
        if (!late)
            told(&t, 2, "LOCKINFO a",
                 "name a owner x token 3 expires_ms 9998 count 2 waiting 0 "
                 "held_ms 3");
        told_mark(&t, 0, 0, HISTORY_STOP);
        told_mark(&t, 0, 0, HISTORY_START);
        if (late)
            TOLD_BAD(&t, "count");
        else
            TOLD_GOOD(&t);
    }
}

/* A start that fails may leave such a batch, too. */
TEST(what_is_told_after_a_start_that_failed_stands)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "PING", "+PONG");
    told_mark(&t, 0, 0, HISTORY_CRASH);
    told_mark(&t, 0, 0, HISTORY_START);
    told_mark(&t, 0, 0, HISTORY_FAILED);
    told_mark(&t, 0, 0, HISTORY_STOP);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 1, "LOCK a OWNER x TTL 10000", GRANT);
    told(&t, 1, "LOCKINFO a", "-NOTFOUND nobody holds lock 'a'");
    TOLD_BAD(&t, "missing");
}

/* Fences. */

TEST(a_resource_accepts_no_older_token)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", "token 9 safe_ms 9000 count 1");
    told(&t, 1, "FENCE f 7", "+OK");
    told(&t, 1, "FENCE f 9", "+OK");
    told(&t, 1, "FENCE f 9", "+OK");
    told(&t, 1, "FENCE f 7", "-STALE token 7 is older than 9");
    told(&t, 1, "FENCE f 99", "-BADARG the token 99 was never given");
    told(&t, 1, "FENCE DEL f", "+OK");
    TOLD_GOOD(&t);

    told_begin(&t);
    told(&t, 1, "FENCE f 9", "+OK");
    told(&t, 1, "FENCE f 7", "+OK");
    TOLD_BAD(&t, "fence");

    told_begin(&t); /* deleted in between */
    told(&t, 1, "FENCE f 9", "+OK");
    told_ask(&t, 2, "FENCE DEL f");
    told(&t, 1, "FENCE f 7", "+OK");
    TOLD_GOOD(&t);
}

TEST(a_refused_token_must_be_older)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "FENCE f 9", "+OK");
    told(&t, 1, "FENCE f 9", "-STALE token 9 is older than 10");
    TOLD_BAD(&t, "stale");

    told_begin(&t); /* one without an answer may have been accepted */
    told(&t, 1, "FENCE f 9", "+OK");
    told_ask(&t, 2, "FENCE f 12");
    told(&t, 1, "FENCE f 9", "-STALE token 9 is older than 12");
    TOLD_GOOD(&t);
}

TEST(a_token_that_was_given_is_not_unknown)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", "token 9 safe_ms 9000 count 1");
    told(&t, 1, "FENCE f 8", "-BADARG the token 8 was never given");
    TOLD_BAD(&t, "badarg");
}

TEST(a_token_that_is_accepted_was_given)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "LOCK a OWNER x", "token 9 safe_ms 9000 count 1");
    told(&t, 1, "FENCE f 50000", "+OK");
    TOLD_BAD(&t, "fence");

    told_begin(&t); /* two calls can have made that many */
    told(&t, 1, "LOCK a OWNER x", "token 9 safe_ms 9000 count 1");
    told(&t, 1, "FENCE f 12", "+OK");
    TOLD_GOOD(&t);

    told_begin(&t); /* but then the next is larger */
    told(&t, 1, "LOCK a OWNER x", "token 9 safe_ms 9000 count 1");
    told(&t, 1, "FENCE f 12", "+OK");
    told(&t, 1, "LOCK b OWNER x", "token 11 safe_ms 9000 count 1");
    TOLD_BAD(&t, "order");

    told_begin(&t); /* and what was accepted is not unknown */
    told(&t, 1, "FENCE f 12", "+OK");
    told(&t, 1, "FENCE g 11", "-BADARG the token 11 was never given");
    TOLD_BAD(&t, "badarg");

    told_begin(&t); /* a start may leave numbers out */
    told(&t, 1, "LOCK a OWNER x", "token 9 safe_ms 9000 count 1");
    told_mark(&t, 0, 0, HISTORY_CRASH);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 1, "FENCE f 50000", "+OK");
    TOLD_GOOD(&t);

    told_begin(&t); /* it did not: the next one tells */
    told(&t, 1, "LOCK a OWNER x", "token 9 safe_ms 9000 count 1");
    told_mark(&t, 0, 0, HISTORY_CRASH);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 1, "FENCE f 50000", "+OK");
    told(&t, 1, "STOCK SET s 1",
         "sku s total 1 available 1 reserved 0 sold 0 "
         "version 10 updated_ms 1");
    TOLD_BAD(&t, "fence");

    told_begin(&t); /* nothing is known of what was given */
    told(&t, 1, "FENCE f 50000", "+OK");
    TOLD_GOOD(&t);

    told_begin_open(&t); /* others make numbers, too */
    told(&t, 1, "LOCK a OWNER x", "token 9 safe_ms 9000 count 1");
    told(&t, 1, "FENCE f 50000", "+OK");
    TOLD_GOOD(&t);
}

/* Answers. */

TEST(who_stays_is_answered)
{
    struct told t;

    told_begin(&t);
    t.opts.answer_within_us = 1000000;
    told_ask(&t, 1, "PING");
    told_wait(&t, 2000);
    told(&t, 2, "PING", "+PONG");
    TOLD_BAD(&t, "unanswered");

    told_begin(&t); /* it left */
    t.opts.answer_within_us = 1000000;
    told_ask(&t, 1, "PING");
    told_mark(&t, 1, 0, HISTORY_CLOSED);
    told_wait(&t, 2000);
    told(&t, 2, "PING", "+PONG");
    TOLD_GOOD(&t);

    told_begin(&t); /* there is nobody to answer */
    t.opts.answer_within_us = 1000000;
    told_ask(&t, 1, "PING");
    told_mark(&t, 0, 0, HISTORY_CRASH);
    told_wait(&t, 2000);
    told_mark(&t, 0, 0, HISTORY_START);
    TOLD_GOOD(&t);
}

TEST(who_waits_is_answered_in_time)
{
    struct told t;

    for (int late = 0; late < 2; late++) {
        told_begin(&t);
        t.opts.answer_within_us = 100000;
        told(&t, 2, "LOCK a OWNER y TTL 60000",
             "token 3 safe_ms 60000 count 1");
        uint64_t first = told_ask(&t, 1, "LOCK a OWNER x WAIT 500");
        uint64_t behind = told_ask(&t, 1, "LOCK a OWNER x WAIT 500");
        told_wait(&t, 550);
        told_answer(&t, 1, first, "-TIMEOUT waited 500 ms for the lock");
        told_wait(&t, late ? 650 : 550);
        told_answer(&t, 1, behind, "-TIMEOUT waited 500 ms for the lock");
        if (late)
            TOLD_BAD(&t, "late");
        else
            TOLD_GOOD(&t);
    }
}

TEST(who_waits_for_permits_is_answered_in_time)
{
    struct told t;

    for (int late = 0; late < 2; late++) {
        told_begin(&t);
        t.opts.answer_within_us = 100000;
        uint64_t call = told_ask(&t, 1, "LIMIT k RATE 1 PER 1000 WAIT 500");
        told_wait(&t, late ? 650 : 550);
        told_answer(&t, 1, call, "allowed 1");
        if (late)
            TOLD_BAD(&t, "late");
        else
            TOLD_GOOD(&t);
    }
}
