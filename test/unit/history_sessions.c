/* history_sessions.c - what clients may be told of sessions, and of what is
 * held in them, and what not. */
#include "support/test.h"
#include "support/told.h"

#define SESSION(id, ms, bound) "session " #id " ttl_ms " #ms " bound " #bound
#define GRANT(token, ms)       "token " #token " safe_ms " #ms " count 1"
#define HELD                   "+OK"

/* A lock without a TTL, in a session of a second. */
static void begin(struct told *t, bool bound)
{
    told_begin(t);
    told(t, 1, bound ? "SESSION OPEN TTL 1000 BIND" : "SESSION OPEN TTL 1000",
         bound ? SESSION(1, 1000, 1) : SESSION(1, 1000, 0));
    told(t, 1, "LOCK a OWNER x SESSION 1", GRANT(2, 990));
}

static void end(struct told *t, const char *rule)
{
    if (rule == NULL)
        TOLD_GOOD(t);
    else
        TOLD_BAD(t, rule);
}

TEST(what_is_in_a_session_is_held_as_long_as_it_is_kept)
{
    static const char *const tells[] = {"-BUSY lock 'a' is held by 'x' for 9",
                                        GRANT(7, 30000)};

    for (int i = 0; i < 2; i++) {
        struct told t;
        begin(&t, false);
        for (int n = 0; n < 3; n++) {
            told_wait(&t, 900);
            told(&t, 1, "SESSION KEEP 1", SESSION(1, 1000, 0));
        }
        told_wait(&t, 900);
        told(&t, 2, "LOCK a OWNER y", tells[i]);
        end(&t, i == 0 ? NULL : "exclusion");
    }
}

TEST(nothing_of_a_session_is_held_beyond_its_end)
{
    for (int i = 0; i < 4; i++) {
        struct told t;
        begin(&t, false);
        if (i % 2 == 0)
            told(&t, 1, "SESSION CLOSE 1", "+OK");
        else
            told_wait(&t, 1100);
        if (i < 2)
            told(&t, 2, "HELD a 2", HELD);
        else
            told(&t, 2, "LOCK a OWNER y", GRANT(7, 30000));
        end(&t, i < 2 ? "stale-read" : NULL);
    }
}

TEST(a_close_without_an_answer_may_have_ended_all)
{
    struct told t;

    begin(&t, false);
    told_ask(&t, 1, "SESSION CLOSE 1");
    told(&t, 2, "LOCK a OWNER y", GRANT(7, 30000));
    TOLD_GOOD(&t);
}

TEST(a_session_that_was_kept_is_there)
{
    static const char *const asks[] = {"SESSION KEEP 1", "SESSION CLOSE 1",
                                       "LOCK b OWNER x SESSION 1",
                                       "SESSION INFO 1"};

    for (int i = 0; i < 4; i++) {
        for (int late = 0; late < 2; late++) {
            struct told t;
            begin(&t, false);
            told_wait(&t, late ? 1100 : 900);
            told(&t, 2, asks[i],
                 i == 3 ? "-NOTFOUND no session 1"
                        : "-LOST session 1 has ended");
            end(&t, late ? NULL : "lost");
        }
    }
}

/* The first call was carried out, perhaps, and its answer was lost. */
TEST(a_session_lives_from_the_first_call_with_its_req)
{
    static const char *const opens = "SESSION OPEN TTL 1000 REQ q";

    for (int i = 0; i < 3; i++) {
        struct told t;
        told_begin(&t);
        if (i > 0)
            told_ask(&t, 1, opens);
        told_wait(&t, 600);
        told(&t, 2, opens, SESSION(1, 1000, 0));
        if (i > 1)
            told(&t, 2, opens, SESSION(1, 1000, 0));
        told_wait(&t, 600);
        told(&t, 2, "SESSION KEEP 1", "-LOST session 1 has ended");
        end(&t, i > 0 ? NULL : "lost");
    }
}

TEST(a_session_whose_req_is_answered_again_is_one_session)
{
    struct told t;

    told_begin(&t);
    uint64_t first = told_ask(&t, 1, "SESSION OPEN TTL 1000 REQ q");
    told(&t, 2, "SESSION OPEN TTL 1000 REQ q", SESSION(1, 1000, 0));
    told_answer(&t, 1, first, SESSION(1, 1000, 0));
    told(&t, 1, "SESSION CLOSE 1", "+OK");
    TOLD_GOOD(&t);
}

TEST(a_session_that_is_over_is_not_used)
{
    struct told t;

    begin(&t, false);
    told(&t, 1, "SESSION CLOSE 1", "+OK");
    told(&t, 1, "SESSION KEEP 1", SESSION(1, 1000, 0));
    TOLD_BAD(&t, "revived");
    begin(&t, false);
    told(&t, 1, "UNLOCK a 2", "remaining 0");
    told_wait(&t, 1100);
    told(&t, 1, "SESSION INFO 1",
         "session 1 name - ttl_ms 1000 expires_ms 5 bound 0 locks 0 waits 0");
    TOLD_BAD(&t, "stale-read");
}

TEST(no_more_is_promised_than_the_session_has)
{
    for (int bound = 0; bound < 2; bound++) {
        struct told t;
        told_begin(&t);
        told(&t, 1,
             bound ? "SESSION OPEN TTL 1000 BIND" : "SESSION OPEN TTL 1000",
             bound ? SESSION(1, 1000, 1) : SESSION(1, 1000, 0));
        told(&t, 1, "LOCK a OWNER x SESSION 1 TTL 9000", GRANT(2, 8000));
        TOLD_BAD(&t, "expiry");
    }
}

TEST(a_session_is_as_it_was_asked_for)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "SESSION OPEN TTL 1000", SESSION(1, 2000, 0));
    TOLD_BAD(&t, "reply");
    told_begin(&t);
    told(&t, 1, "SESSION OPEN TTL 1000", SESSION(1, 1000, 1));
    TOLD_BAD(&t, "reply");
    told_begin(&t);
    told(&t, 1, "SESSION OPEN TTL 1000", "+OK");
    TOLD_BAD(&t, "reply");
}

TEST(a_bound_session_lives_while_its_connection_does)
{
    for (int lives = 0; lives < 2; lives++) {
        struct told t;
        begin(&t, true);
        for (int n = 0; n < 5; n++) {
            told_wait(&t, 900);
            told(&t, 1, "PING", "+PONG");
        }
        if (!lives) {
            told_mark(&t, 1, 0, HISTORY_CLOSED);
            told_wait(&t, 1100);
        }
        told(&t, 2, "LOCK a OWNER y", GRANT(7, 30000));
        end(&t, lives ? "exclusion" : NULL);
    }
}

/* The server has heard of the end, and has written something since. */
TEST(a_bound_session_ends_when_its_time_is_over_since_its_connection)
{
    for (int written = 0; written < 2; written++) {
        struct told t;
        begin(&t, true);
        told_mark(&t, 1, 0, HISTORY_CLOSED);
        told_mark(&t, 1, 0, HISTORY_GONE);
        told_wait(&t, 5000);
        if (written)
            told(&t, 2, "LOCK b OWNER y", GRANT(7, 30000));
        told_wait(&t, 1100);
        told(&t, 2, "HELD a 2", HELD);
        end(&t, written ? "stale-read" : NULL);
    }
}

TEST(a_bound_session_that_is_kept_elsewhere_lives_there)
{
    for (int kept = 0; kept < 2; kept++) {
        struct told t;
        begin(&t, true);
        told_mark(&t, 1, 0, HISTORY_CLOSED);
        told_mark(&t, 1, 0, HISTORY_GONE);
        if (kept)
            told(&t, 3, "SESSION KEEP 1", SESSION(1, 1000, 1));
        told_wait(&t, 5000);
        told(&t, 2, "LOCK b OWNER y", GRANT(7, 30000));
        told(&t, 3, "PING", "+PONG");
        told_wait(&t, 900);
        told(&t, 2, "HELD a 2", "-LOST lock 'a' is no longer held");
        end(&t, kept ? "lost" : NULL);
    }
}

/* A start unbinds all sessions, and each lives for its time from then on. */
TEST(a_bound_session_lives_for_its_time_after_a_start)
{
    for (int late = 0; late < 2; late++) {
        struct told t;
        begin(&t, true);
        t.opts.start_slack_us = 1;
        told_mark(&t, 0, 0, HISTORY_CRASH);
        told_mark(&t, 0, 0, HISTORY_START);
        told(&t, 2, "LOCK b OWNER y", GRANT(4294967297, 30000));
        told_wait(&t, late ? 1100 : 500);
        told(&t, 2, "HELD a 2", HELD);
        end(&t, late ? "stale-read" : NULL);
    }
}

/* One that was started, and did not come up, unbinds nothing: MULTI without an
 * answer shows no more of it than any other call. */
TEST(a_start_that_nobody_was_answered_after_unbinds_no_session)
{
    for (int answered = 0; answered < 2; answered++) {
        struct told t;
        begin(&t, true);
        t.opts.start_slack_us = 1;
        told_mark(&t, 0, 0, HISTORY_CRASH);
        told_mark(&t, 0, 0, HISTORY_START);
        uint64_t multi = told_ask(&t, 2, "MULTI");
        uint64_t queued = told_ask(&t, 2, "UNLOCK b 9");
        if (answered) {
            told_answer(&t, 2, multi, "+OK");
            told_answer(&t, 2, queued, "+QUEUED");
        }
        told_mark(&t, 2, 0, HISTORY_CLOSED);
        told_mark(&t, 0, 0, HISTORY_STOP);
        told_wait(&t, 5000);
        told_mark(&t, 0, 0, HISTORY_START);
        told(&t, 3, "HELD a 2", HELD);
        end(&t, answered ? "stale-read" : NULL);
    }
}

/* SESSION 0 is the session of the connection, if there is one only. */
TEST(what_is_in_the_session_of_its_connection_ends_with_it)
{
    for (int others = 0; others < 2; others++) {
        struct told t;
        told_begin(&t);
        told(&t, 1, "SESSION OPEN TTL 1000 BIND", SESSION(1, 1000, 1));
        if (others)
            told(&t, 1, "SESSION OPEN TTL 1000 BIND", SESSION(2, 1000, 1));
        told(&t, 1, "LOCK a OWNER x SESSION 0", GRANT(3, 990));
        told(&t, 1, "SESSION CLOSE 1", "+OK");
        told(&t, 2, "HELD a 3", HELD);
        end(&t, others ? NULL : "stale-read");
    }
}

#define SHOWN(ms)                                                  \
    "name a owner x token 2 expires_ms " #ms " count 1 waiting 0 " \
    "mode exclusive"

/* Whose grant it was is not known if it had REQ and SESSION 0; that it was
 * renewed, or given back, is known all the same. */
TEST(what_is_told_of_a_set_is_told_of_the_names_that_were_shown)
{
    for (int how = 0; how < 3; how++) {
        struct told t;
        told_begin(&t);
        told(&t, 1, "SESSION OPEN TTL 1000 BIND", SESSION(1, 1000, 1));
        told(&t, 1, "LOCKSET OWNER x NAME a SESSION 0 TTL 20 REQ q",
             GRANT(2, 19));
        told(&t, 2, "LOCKINFO a", SHOWN(17));
        if (how == 1)
            told(&t, 1, "RENEWSET 2 TTL 100", "safe_ms 99");
        if (how == 2)
            told(&t, 1, "UNLOCKSET 2", "remaining 0");
        told_wait(&t, how == 2 ? 1 : 50);
        told(&t, 2, "LOCKINFO a", SHOWN(46));
        end(&t, how == 1 ? NULL : "stale-read");
    }
}

TEST(a_session_is_opened_once)
{
    struct told t;

    for (int again = 0; again < 2; again++) {
        const char *open =
            again ? "SESSION OPEN TTL 1000 REQ r" : "SESSION OPEN TTL 1000";
        told_begin(&t);
        told(&t, 1, open, SESSION(1, 1000, 0));
        told(&t, 2, open, SESSION(1, 1000, 0));
        end(&t, again ? NULL : "token");
    }
}

/* An owner in a session and one of that name outside of it are two. */
TEST(a_hold_is_not_reentered_from_another_session)
{
    static const char *const asks[] = {"LOCK a OWNER x SESSION 1 TTL 900",
                                       "LOCK a OWNER x TTL 900"};
    struct told t;

    for (int i = 0; i < 2; i++) {
        told_begin(&t);
        told(&t, 1, "SESSION OPEN TTL 1000", SESSION(1, 1000, 0));
        told(&t, 1, asks[0], GRANT(2, 890));
        told(&t, 2, asks[i], "token 2 safe_ms 890 count 2");
        end(&t, i == 0 ? NULL : "token");
    }
}
