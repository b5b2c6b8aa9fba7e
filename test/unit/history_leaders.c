/* history_leaders.c - what clients may be told of who leads, and what not. */
#include "support/test.h"
#include "support/told.h"

#define GRANT(token) "token " #token " safe_ms 10000 count 1"
#define LEADS(token, value)                        \
    "name a owner x token " #token " value " value \
    " expires_ms 9994 held_ms 5 waiting 0"

TEST(a_leader_shows_what_it_proclaimed_last)
{
    struct told t;

    told_begin(&t);
    told(&t, 2, "LEADER a", "-NOTFOUND");
    told(&t, 1, "ELECT a OWNER x VALUE one", GRANT(1));
    told(&t, 2, "LEADER a", LEADS(1, "one"));
    told(&t, 1, "PROCLAIM a 1 VALUE two", "+OK");
    told(&t, 2, "LEADER a", LEADS(1, "two"));
    uint64_t asked = told_ask(&t, 1, "PROCLAIM a 1 VALUE three");
    told(&t, 2, "LEADER a", LEADS(1, "two"));
    told(&t, 2, "LEADER a", LEADS(1, "three"));
    told_answer(&t, 1, asked, "+OK");
    told(&t, 1, "RESIGN a 1", "remaining 0");
    told(&t, 1, "PROCLAIM a 1 VALUE four", "-LOST");
    told(&t, 2, "LEADER a", "-NOTFOUND");
    TOLD_GOOD(&t);
}

static void lead(const char *proclaimed, const char *shown, const char *rule)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "ELECT a OWNER x VALUE one", GRANT(1));
    told(&t, 1, proclaimed, "+OK");
    told(&t, 2, "LEADER a", shown);
    if (rule == NULL)
        TOLD_GOOD(&t);
    else
        TOLD_BAD(&t, rule);
}

TEST(what_no_leader_says_is_wrong)
{
    lead("PROCLAIM a 1 VALUE two", LEADS(1, "two"), NULL);
    lead("PROCLAIM a 1 VALUE two", LEADS(1, "one"), "leader");
    lead("PROCLAIM a 1 VALUE two", LEADS(1, "three"), "leader");
    lead("RESIGN a 1", LEADS(1, "one"), "reply");
    lead("PROCLAIM a 1 VALUE one", "owner x token 1 value one", "reply");
}

TEST(a_value_is_proclaimed_by_one_who_leads)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "ELECT a OWNER x", GRANT(1));
    told(&t, 1, "RESIGN a 1", "remaining 0");
    told(&t, 1, "PROCLAIM a 1 VALUE two", "+OK");
    TOLD_BAD(&t, "stale-read");

    told_begin(&t);
    told(&t, 1, "ELECT a OWNER x", GRANT(1));
    told(&t, 1, "PROCLAIM a 1 VALUE two", "-LOST");
    TOLD_BAD(&t, "lost");

    told_begin(&t);
    told(&t, 1, "ELECT a OWNER x", GRANT(1));
    told(&t, 2, "LEADER a", "-NOTFOUND");
    TOLD_BAD(&t, "missing");
}
