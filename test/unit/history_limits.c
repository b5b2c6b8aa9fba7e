/* history_limits.c - what a limit gives, and what comes back of it. */
#include "support/test.h"
#include "support/told.h"

#define LIMIT "LIMIT k RATE 10 PER 1000 BURST 2"
#define ONE   "allowed 1 limit 2 remaining 1 retry_ms 0 reset_ms 1"
#define YES   "allowed 1 limit 2 remaining 0 retry_ms 0 reset_ms 1"
#define NO    "allowed 0 limit 2 remaining 0 retry_ms 100 reset_ms 1"

TEST(no_more_is_allowed_than_the_burst_and_the_time_give)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, LIMIT, ONE);
    told(&t, 1, LIMIT, YES);
    told(&t, 1, LIMIT, NO);
    told_wait(&t, 100);
    told(&t, 1, LIMIT, YES);
    TOLD_GOOD(&t);

    told_begin(&t);
    for (int i = 0; i < 4; i++)
        told(&t, 1, LIMIT, i == 0 ? ONE : YES);
    TOLD_BAD(&t, "limit");

    told_begin(&t); /* a restart fills the bucket */
    for (int i = 0; i < 4; i++) {
        told(&t, 1, LIMIT, i % 2 == 0 ? ONE : YES);
        if (i == 1) {
            told_mark(&t, 0, 0, HISTORY_CRASH);
            told_mark(&t, 0, 0, HISTORY_START);
        }
    }
    TOLD_GOOD(&t);
}

TEST(nobody_is_denied_what_is_there)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, LIMIT, ONE);
    told(&t, 1, LIMIT, NO);
    TOLD_BAD(&t, "denied");

    told_begin(&t); /* one without an answer may have taken it */
    told(&t, 1, LIMIT, ONE);
    told_ask(&t, 2, LIMIT);
    told(&t, 1, LIMIT, NO);
    TOLD_GOOD(&t);
}

/* Holds: ten permits, one earned in a second. */

#define TEN "LIMIT k RATE 1 PER 1000 BURST 10"
#define HELD(n) \
    "allowed 1 limit 10 remaining " #n " retry_ms 0 reset_ms 1 hold 7"
#define TOOK(n)   "allowed 1 limit 10 remaining " #n " retry_ms 0 reset_ms 1"
#define DENIED    "allowed 0 limit 10 remaining 0 retry_ms 100 reset_ms 1"
#define HOLD_FOUR TEN " COST 4 HOLD 60000"
#define GONE      "-NOTFOUND no such hold"

/* Holds four, settles with `cost`, and takes so much afterwards. */
static void hold_and_take(struct told *t, const char *cost, const char *then,
                          const char *reply)
{
    char words[100];

    told_begin(t);
    told(t, 1, HOLD_FOUR, HELD(6));
    snprintf(words, sizeof words, "LIMIT SETTLE 7 COST %s", cost);
    told(t, 1, words, "+OK");
    snprintf(words, sizeof words, TEN " COST %s", then);
    told(t, 1, words, reply);
}

TEST(what_is_above_the_hold_is_spent_once)
{
    struct told t;

    hold_and_take(&t, "7", "2", TOOK(1));
    TOLD_GOOD(&t);
    hold_and_take(&t, "7", "2", DENIED); /* it was spent twice */
    TOLD_BAD(&t, "denied");
    hold_and_take(&t, "6", "1", TOOK(1)); /* twice, and less is left */
    TOLD_BAD(&t, "denied");
    hold_and_take(&t, "10", "6", TOOK(0)); /* not at all */
    TOLD_BAD(&t, "limit");
    hold_and_take(&t, "4", "8", TOOK(0));
    TOLD_BAD(&t, "limit");
    hold_and_take(&t, "100", "1", DENIED); /* a debt */
    TOLD_GOOD(&t);
}

TEST(what_is_below_the_hold_may_come_back)
{
    struct told t;

    hold_and_take(&t, "0", "10", TOOK(0));
    TOLD_GOOD(&t);
    hold_and_take(&t, "2", "8", TOOK(0));
    TOLD_GOOD(&t);
    hold_and_take(&t, "2", "10", TOOK(0));
    TOLD_BAD(&t, "limit");
    hold_and_take(&t, "2", "6", DENIED); /* nothing had to come back for it */
    TOLD_BAD(&t, "denied");

    told_begin(&t); /* of a hold from before the span */
    told(&t, 1, HOLD_FOUR, HELD(6));
    told_wait(&t, 4000);
    told(&t, 1, TEN " COST 10", TOOK(0));
    told(&t, 1, "LIMIT SETTLE 7 COST 0", "+OK");
    told(&t, 1, TEN " COST 4", TOOK(0));
    TOLD_GOOD(&t);

    told_begin(&t); /* or by itself */
    told(&t, 1, TEN " COST 4 HOLD 5000", HELD(6));
    told_wait(&t, 4000);
    told(&t, 1, TEN " COST 10", TOOK(0));
    told_wait(&t, 1000);
    told(&t, 1, TEN " COST 5", TOOK(0));
    TOLD_GOOD(&t);
}

TEST(time_earns_what_was_spent_beyond_a_hold)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, HOLD_FOUR, HELD(6));
    told(&t, 1, "LIMIT SETTLE 7 COST 10", "+OK");
    told_wait(&t, 6000);
    told(&t, 1, TEN " PEEK", TOOK(6));
    told(&t, 1, TEN " COST 4 WAIT 100", TOOK(2));
    TOLD_GOOD(&t);

    told_begin(&t); /* twice */
    told(&t, 1, HOLD_FOUR, HELD(6));
    told(&t, 1, "LIMIT SETTLE 7 COST 10", "+OK");
    told_wait(&t, 6000);
    told(&t, 1, TEN " PEEK", TOOK(0));
    TOLD_BAD(&t, "denied");
}

TEST(a_settling_without_an_answer_may_have_been)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, HOLD_FOUR, HELD(6));
    told_ask(&t, 2, "LIMIT SETTLE 7 COST 10");
    told(&t, 1, TEN " COST 6", TOOK(0));
    TOLD_GOOD(&t);

    told_begin(&t);
    told(&t, 1, HOLD_FOUR, HELD(6));
    told_ask(&t, 2, "LIMIT SETTLE 7 COST 10");
    told(&t, 1, TEN " COST 6", DENIED);
    TOLD_GOOD(&t);

    told_begin(&t); /* nor is it known which hold it was of */
    told_ask(&t, 2, HOLD_FOUR);
    told(&t, 1, "LIMIT SETTLE 7 COST 10", "+OK");
    told(&t, 1, TEN " COST 1", DENIED);
    TOLD_GOOD(&t);

    told_begin(&t); /* of another run: a restart ends all holds */
    told(&t, 1, HOLD_FOUR, HELD(6));
    told_mark(&t, 0, 0, HISTORY_CRASH);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 1, "LIMIT SETTLE 7 COST 10", GONE);
    told(&t, 1, TEN " COST 10", TOOK(0));
    TOLD_GOOD(&t);
}

TEST(a_hold_is_settled_once_and_in_time)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, HOLD_FOUR, HELD(6));
    told(&t, 1, "LIMIT SETTLE 7 COST 1", "+OK");
    told(&t, 1, "LIMIT SETTLE 7 COST 1", GONE);
    TOLD_GOOD(&t);

    told_begin(&t);
    told(&t, 1, HOLD_FOUR, HELD(6));
    told(&t, 1, "LIMIT SETTLE 7 COST 1", "+OK");
    told(&t, 1, "LIMIT SETTLE 7 COST 1", "+OK");
    TOLD_BAD(&t, "settled");

    told_begin(&t);
    told(&t, 1, HOLD_FOUR, HELD(6));
    told(&t, 1, "LIMIT SETTLE 7 COST 1", GONE);
    TOLD_BAD(&t, "settled");

    told_begin(&t);
    told(&t, 1, HOLD_FOUR, HELD(6));
    told_wait(&t, 61000);
    told(&t, 1, "LIMIT SETTLE 7 COST 1", GONE);
    TOLD_GOOD(&t);

    told_begin(&t);
    told(&t, 1, HOLD_FOUR, HELD(6));
    told_wait(&t, 61000);
    told(&t, 1, "LIMIT SETTLE 7 COST 1", "+OK");
    TOLD_BAD(&t, "settled");

    told_begin(&t); /* it was made when the REQ was used first */
    told_ask(&t, 1, HOLD_FOUR " REQ r");
    told_wait(&t, 50000);
    told(&t, 1, HOLD_FOUR " REQ r", HELD(6));
    told_wait(&t, 11000);
    told(&t, 1, "LIMIT SETTLE 7 COST 1", GONE);
    TOLD_GOOD(&t);
}
