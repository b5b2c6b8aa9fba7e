/* history_groups.c - what clients may be told of groups, and what not. */
#include "support/test.h"
#include "support/told.h"

#define GRANT(token) "token " #token " safe_ms 10000 count 1"
#define SEEN(sku, total, version)                    \
    "sku " sku " total " #total " available " #total \
    " reserved 0 sold 0 version " #version " updated_ms 1"
#define HELD_BY(owner, token)                                                \
    "name a owner " owner " token " #token " expires_ms 9994 count 1 "       \
    "waiting 0 held_ms 5 mode exclusive session 0 names 0 note - holders [ " \
    "owner " owner " session 0 token " #token " mode exclusive permits 0 "   \
    "count 1 expires_ms 9994 held_ms 5 ] waiters [ ]"
#define BOOKED(id, status, ms)                                                 \
    "id " id " status " status " expires_ms " #ms " items [ sku s quantity 4 " \
    "]"
#define LIMIT(remaining) \
    "allowed 1 limit 10 remaining " #remaining " retry_ms 0 reset_ms 100"

/* MULTI, the commands, which are separated by ';', and EXEC, answered as that
 * says; NULL: EXEC is not answered. */
static uint64_t multi(struct told *t, uint32_t client, const char *commands,
                      const char *exec, const char *reply)
{
    told(t, client, "MULTI", "+OK");
    while (*commands != '\0') {
        char command[200];
        size_t len = strcspn(commands, ";");
        CHECK(len < sizeof command);
        memcpy(command, commands, len);
        command[len] = '\0';
        told(t, client, command, "+QUEUED");
        commands += len + (commands[len] == ';');
    }
    uint64_t id = told_ask(t, client, exec);
    if (reply != NULL)
        told_answer(t, client, id, reply);
    return id;
}

/* One group and one call behind it. */
static void group_then(const char *commands, const char *reply,
                       const char *words, const char *told_then,
                       const char *rule)
{
    struct told t;

    told_begin(&t);
    told(&t, 9, "STOCK SET s 10", SEEN("s", 10, 1));
    multi(&t, 1, commands, "EXEC", reply);
    if (words != NULL)
        told(&t, 2, words, told_then);
    if (rule == NULL)
        TOLD_GOOD(&t);
    else
        TOLD_BAD(&t, rule);
}

TEST(members_are_judged_as_calls)
{
    group_then("LOCK a OWNER x;STOCK ADD s 5",
               "[ " GRANT(2) " | " SEEN("s", 15, 3) " ]", "LOCKINFO a",
               HELD_BY("x", 2), NULL);
    group_then("LOCK a OWNER x;STOCK ADD s 5",
               "[ " GRANT(2) " | " SEEN("s", 15, 3) " ]", "LOCK a OWNER y",
               GRANT(4), "exclusion");
    group_then("LOCK a OWNER x;STOCK ADD s 5",
               "[ " GRANT(2) " | " SEEN("s", 15, 3) " ]", "STOCK GET s",
               SEEN("s", 10, 4), "total");
    group_then("LOCK a OWNER x;STOCK ADD s 5",
               "[ " GRANT(2) " | " SEEN("s", 15, 3) " ]", "LOCKINFO a",
               "-NOTFOUND no lock 'a'", "missing");
}

TEST(a_refused_group_has_no_effect)
{
    static const char commands[] =
        "LOCK a OWNER x;RESERVE r ITEM s 11 TTL 9000";
    static const char refused[] = "-EXECABORT command 2 of 2: SHORT sku 's': "
                                  "requested 11, available 10";

    group_then(commands, refused, "LOCKINFO a", "-NOTFOUND no lock 'a'", NULL);
    group_then(commands, refused, "LOCKINFO a", HELD_BY("x", 2), "phantom");
    group_then("STOCK ADD s 5;HELD a 77",
               "-EXECABORT command 2 of 2: LOST token 77", "STOCK GET s",
               SEEN("s", 15, 2), "total");
}

TEST(its_refusal_is_judged_unless_earlier_members_explain_it)
{
    group_then("LOCK b OWNER x;RESERVE r ITEM s 4 TTL 9000",
               "-EXECABORT command 2 of 2: SHORT sku 's': requested 4, "
               "available 3",
               NULL, NULL, "short");
    group_then("STOCK SET s 3;RESERVE r ITEM s 4 TTL 9000",
               "-EXECABORT command 2 of 2: SHORT sku 's': requested 4, "
               "available 3",
               NULL, NULL, NULL);
    group_then("LOCK a OWNER x;LOCK a OWNER y",
               "-EXECABORT command 2 of 2: BUSY lock 'a' is held by 'x' for "
               "30000 ms more",
               NULL, NULL, NULL);
    group_then("STOCK GET s;LOCK a OWNER y",
               "-EXECABORT command 2 of 2: BUSY lock 'a' is held by 'x' for "
               "30000 ms more",
               NULL, NULL, "busy");
    group_then("SET a x PX 30000;LOCK a OWNER y",
               "-EXECABORT command 2 of 2: BUSY lock 'a' is held by 'x' for "
               "30000 ms more",
               NULL, NULL, NULL);
}

/* How it ended is told within the group only. */
TEST(a_group_of_reservations_may_end_in_a_group_that_is_refused)
{
    for (int lie = 0; lie < 2; lie++) {
        struct told t;
        told_begin(&t);
        told(&t, 1, "STOCK SET s 9", SEEN("s", 9, 1));
        told(&t, 1, "RESERVE i ITEM s 1 TTL 90000 GROUP g",
             "id i status PENDING expires_ms 90000 items [ sku s quantity 1 "
             "]");
        multi(&t, 1,
              lie ? "STOCK GET s;CONFIRM i" : "GROUP CONFIRM g;CONFIRM i",
              "EXEC",
              "-EXECABORT command 2 of 2: STATE reservation 'i' is CONFIRMED");
        told(&t, 2, "RESERVATION i",
             "id i status PENDING expires_ms 89990 items [ sku s quantity 1 "
             "]");
        if (lie)
            TOLD_BAD(&t, "status");
        else
            TOLD_GOOD(&t);
    }
}

TEST(what_was_queued_and_never_executed_has_no_effect)
{
    for (int end = 0; end < 6; end++) {
        struct told t;
        told_begin(&t);
        told(&t, 1, "MULTI", "+OK");
        told(&t, 1, "LOCK a OWNER x", "+QUEUED");
        if (end % 3 == 1)
            told(&t, 1, "DISCARD", "+OK");
        if (end % 3 == 2) {
            told(&t, 1, "PING", "-ERR PING is not allowed in MULTI");
            told(&t, 1, "EXEC",
                 "-EXECABORT Transaction discarded because of "
                 "previous errors.");
        }
        told_mark(&t, 1, 0, HISTORY_CLOSED);
        told(&t, 2, "LOCKINFO a",
             end < 3 ? "-NOTFOUND no lock 'a'" : HELD_BY("x", 1));
        if (end < 3)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "phantom");
    }
}

/* MULTI, one command, EXEC: what each was told. */
static void protocol(const char *begun, const char *queued, const char *done,
                     const char *rule)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "MULTI", begun);
    told(&t, 1, "LOCK a OWNER x", queued);
    told(&t, 1, "EXEC", done);
    if (rule == NULL)
        TOLD_GOOD(&t);
    else
        TOLD_BAD(&t, rule);
}

TEST(queueing_is_told_as_it_is)
{
    protocol("+OK", "+QUEUED", "[ " GRANT(1) " ]", NULL);
    protocol("+QUEUED", "+QUEUED", "[ " GRANT(1) " ]", "queued");
    protocol("+OK", "+OK", "[ " GRANT(1) " ]", "queued");
    protocol("+OK", GRANT(1), "[ " GRANT(1) " ]", "queued");
    protocol("+OK", "+QUEUED", "[ ]", "queued");
    protocol("+OK", "+QUEUED", "[ " GRANT(1) " | +OK ]", "queued");
    protocol("+OK", "+QUEUED", GRANT(1), "queued");
    protocol("+OK", "+QUEUED", "-ERR EXEC without MULTI", "queued");
    protocol("+OK", "+QUEUED",
             "-EXECABORT Transaction discarded because of previous errors.",
             "queued");
    protocol("+OK", "+QUEUED", "-EXECABORT command 2 of 2: STATE no session",
             "queued");
    protocol("+OK", "+QUEUED", "-EXECABORT command 1 of 1: STATE no session",
             NULL);
    protocol("+OK", "-ERR unknown command", "[ " GRANT(1) " ]", "queued");
    protocol("+OK", "-ERR unknown command", "[ ]", "queued");
    protocol("-ERR no", "+QUEUED", "-ERR EXEC without MULTI", "queued");
    protocol("-ERR no", GRANT(1), "-ERR EXEC without MULTI", NULL);
}

TEST(a_later_member_sees_what_an_earlier_one_did)
{
    group_then(
        "STOCK SET s 7;STOCK ADD s 1;STOCK GET s",
        "[ " SEEN("s", 7, 2) " | " SEEN("s", 8, 3) " | " SEEN("s", 8, 3) " ]",
        NULL, NULL, NULL);
    group_then("STOCK SET s 7;STOCK GET s",
               "[ " SEEN("s", 7, 2) " | " SEEN("s", 10, 1) " ]", NULL, NULL,
               "step");
    group_then("LOCK a OWNER x;LOCKINFO a",
               "[ " GRANT(2) " | " HELD_BY("x", 2) " ]", NULL, NULL, NULL);
    group_then("LOCK a OWNER x;LOCK a OWNER x",
               "[ " GRANT(2) " | token 2 safe_ms 10000 count 2 ]", NULL, NULL,
               NULL);
    group_then("LOCK a OWNER x;LOCKINFO a",
               "[ " GRANT(2) " | mode free holders [ ] ]", NULL, NULL, "step");
    group_then("RESERVE r ITEM s 4 TTL 9000;CONFIRM r;RESERVATION r",
               "[ " BOOKED("r", "PENDING", 9000) " | " BOOKED(
                   "r", "CONFIRMED", 0) " | " BOOKED("r", "CONFIRMED", 0) " ]",
               NULL, NULL, NULL);
    group_then("RESERVE r ITEM s 4 TTL 9000;CONFIRM r;RESERVATION r",
               "[ " BOOKED("r", "PENDING", 9000) " | " BOOKED(
                   "r", "CONFIRMED", 0) " | " BOOKED("r", "PENDING", 9000) " ]",
               NULL, NULL, "step");
    group_then("STOCK GET s;RESERVE * ITEM s 4 TTL 9000;STOCK GET s",
               "[ " SEEN("s", 10, 1) " | " BOOKED(
                   "x-1", "PENDING", 9000) " | " SEEN("s", 10, 1) " ]",
               NULL, NULL, "step");
}

TEST(nothing_happens_in_the_middle_of_a_group)
{
    for (int token = 2; token <= 4; token++) {
        struct told t;
        told_begin(&t);
        uint64_t id =
            multi(&t, 1, "LOCK a OWNER x;LOCK b OWNER x", "EXEC", NULL);
        char grant[64];
        snprintf(grant, sizeof grant, "token %d safe_ms 10000 count 1", token);
        told(&t, 2, "LOCK c OWNER y", grant);
        told_answer(&t, 1, id,
                    token == 2   ? "[ " GRANT(3) " | " GRANT(4) " ]"
                    : token == 3 ? "[ " GRANT(2) " | " GRANT(4) " ]"
                                 : "[ " GRANT(2) " | " GRANT(3) " ]");
        if (token == 3)
            TOLD_BAD(&t, "step");
        else
            TOLD_GOOD(&t);
    }
}

TEST(numbers_grow_in_the_order_of_a_connection)
{
    for (int late = 0; late < 2; late++) {
        struct told t;
        told_begin(&t);
        uint64_t first = told_ask(&t, 1, "LOCK c OWNER x");
        uint64_t multi_id = told_ask(&t, 1, "MULTI");
        uint64_t lock = told_ask(&t, 1, "LOCK a OWNER x");
        uint64_t exec = told_ask(&t, 1, "EXEC");
        told_answer(&t, 1, first, late ? GRANT(2) : GRANT(1));
        told_answer(&t, 1, multi_id, "+OK");
        told_answer(&t, 1, lock, "+QUEUED");
        told_answer(&t, 1, exec,
                    late ? "[ " GRANT(1) " ]" : "[ " GRANT(2) " ]");
        if (late)
            TOLD_BAD(&t, "order");
        else
            TOLD_GOOD(&t);
    }
}

/* The answer of a group is lost; the server may have been killed. */
static void lost(const char *commands, const char *const *told_then,
                 size_t count, const char *rule)
{
    for (int crash = 0; crash < 2; crash++) {
        struct told t;
        told_begin(&t);
        told(&t, 9, "STOCK SET s 10", SEEN("s", 10, 1));
        told(&t, 9, "STOCK SET q 10", SEEN("q", 10, 2));
        multi(&t, 1, commands, "EXEC", NULL);
        if (crash == 1) {
            told_mark(&t, 0, 0, HISTORY_CRASH);
            told_mark(&t, 0, 0, HISTORY_START);
        }
        for (size_t i = 0; i < count; i += 2)
            told(&t, 2, told_then[i], told_then[i + 1]);
        if (rule == NULL)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, rule);
    }
}
#define LOST(commands, rule, ...)                                           \
    lost(commands, (const char *const[]){__VA_ARGS__},                      \
         sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *), \
         rule)

#define MOVE      "STOCK ADD s -1;STOCK ADD q 1"
#define BUY       "LOCK a OWNER x TTL 60000;RESERVE r ITEM s 4 TTL 60000"
#define IS_BOOKED BOOKED("r", "PENDING", 59000)
#define NO_LOCK   "-NOTFOUND no lock 'a'"
#define NOT_THERE "-NOTFOUND no reservation 'r'"

TEST(a_group_whose_answer_was_lost_happened_whole_or_not_at_all)
{
    LOST(MOVE, NULL, "STOCK GET s q",
         "[ " SEEN("s", 9, 3) " | " SEEN("q", 11, 4) " ]");
    LOST(MOVE, NULL, "STOCK GET s q",
         "[ " SEEN("s", 10, 1) " | " SEEN("q", 10, 2) " ]");
    LOST(MOVE, "whole", "STOCK GET s q",
         "[ " SEEN("s", 9, 3) " | " SEEN("q", 10, 2) " ]");
    LOST(MOVE, "whole", "STOCK GET s q",
         "[ " SEEN("s", 10, 1) " | " SEEN("q", 11, 4) " ]");
    LOST(MOVE, "whole", "STOCK GET s", SEEN("s", 9, 3), "STOCK GET q",
         SEEN("q", 10, 2));
    LOST(BUY, NULL, "LOCKINFO a", HELD_BY("x", 3), "RESERVATION r", IS_BOOKED);
    LOST(BUY, NULL, "LOCKINFO a", NO_LOCK, "RESERVATION r", NOT_THERE);
    LOST(BUY, "whole", "LOCKINFO a", HELD_BY("x", 3), "RESERVATION r",
         NOT_THERE);
    LOST(BUY, "whole", "RESERVATION r", IS_BOOKED, "LOCKINFO a", NO_LOCK);
    LOST("FENCE f 2;RESERVE r ITEM s 4 TTL 60000", "whole", "FENCE f 1",
         "-STALE resource 'f'", "RESERVATION r", NOT_THERE);
    LOST("FENCE f 2;RESERVE r ITEM s 4 TTL 60000", "whole", "RESERVATION r",
         IS_BOOKED, "FENCE f 1", "+OK");
    LOST("FENCE f 2;RESERVE r ITEM s 4 TTL 60000", NULL, "FENCE f 1", "+OK",
         "RESERVATION r", NOT_THERE);
}

TEST(it_may_happen_late_but_while_its_server_lives_only)
{
    struct told t;

    told_begin(&t);
    told(&t, 9, "STOCK SET s 10", SEEN("s", 10, 1));
    multi(&t, 1, BUY, "EXEC", NULL);
    told(&t, 2, "LOCKINFO a", NO_LOCK);
    told(&t, 2, "RESERVATION r", IS_BOOKED);
    TOLD_GOOD(&t);
    told_begin(&t);
    multi(&t, 1, BUY, "EXEC", NULL);
    told_mark(&t, 0, 0, HISTORY_CRASH);
    told_mark(&t, 0, 0, HISTORY_START);
    told(&t, 9, "STOCK SET s 10", SEEN("s", 10, 1));
    told(&t, 2, "LOCKINFO a", NO_LOCK);
    told(&t, 2, "LOCK a OWNER y", GRANT(2));
    TOLD_GOOD(&t);
}

TEST(what_is_made_and_ended_by_one_group_is_never_seen_in_between)
{
    LOST("RESERVE r ITEM s 4 TTL 60000;CONFIRM r", "whole", "RESERVATION r",
         IS_BOOKED);
    LOST("RESERVE r ITEM s 4 TTL 60000;CONFIRM r", NULL, "RESERVATION r",
         BOOKED("r", "CONFIRMED", 0));
}

TEST(others_see_a_group_whole_while_it_is_answered)
{
    for (int torn = 0; torn < 2; torn++) {
        struct told t;
        told_begin(&t);
        told(&t, 9, "STOCK SET s 10", SEEN("s", 10, 1));
        told(&t, 9, "STOCK SET q 10", SEEN("q", 10, 2));
        uint64_t id = multi(&t, 1, MOVE, "EXEC", NULL);
        told(&t, 2, "STOCK GET s", SEEN("s", 9, 3));
        told(&t, 2, "STOCK GET q", torn ? SEEN("q", 10, 2) : SEEN("q", 11, 4));
        told_answer(&t, 1, id,
                    "[ " SEEN("s", 9, 3) " | " SEEN("q", 11, 4) " ]");
        if (torn)
            TOLD_BAD(&t, "whole");
        else
            TOLD_GOOD(&t);
    }
}

TEST(products_are_shown_as_of_one_instant)
{
    struct told t;

    told_begin(&t);
    told(&t, 9, "STOCK SET s 10", SEEN("s", 10, 1));
    told(&t, 9, "STOCK SET q 10", SEEN("q", 10, 2));
    uint64_t add = told_ask(&t, 1, "STOCK ADD s 1");
    uint64_t other = told_ask(&t, 3, "STOCK ADD q 1");
    told(&t, 2, "STOCK GET s q",
         "[ " SEEN("s", 10, 1) " | " SEEN("q", 11, 4) " ]");
    told_answer(&t, 1, add, SEEN("s", 11, 3));
    told_answer(&t, 3, other, SEEN("q", 11, 4));
    TOLD_BAD(&t, "version");
}

TEST(a_repeated_exec_is_told_the_first_answer)
{
    static const char one[] = "[ " GRANT(1) " | " SEEN("s", 7, 2) " ]";
    static const char other[] =
        "[ token 1 safe_ms 900 count 1 | sku s total 7 available 7 reserved 0 "
        "sold 0 version 2 updated_ms 2 ]";
    static const char again[] =
        "[ token 1 safe_ms 900 count 1 | " SEEN("s", 7, 2) " ]";
    static const char commands[] = "LOCK a OWNER x;STOCK SET s 7";

    for (int lie = 0; lie < 2; lie++) {
        for (int answered = 0; answered < 2; answered++) {
            struct told t;
            told_begin(&t);
            multi(&t, 1, commands, "EXEC REQ r", answered || lie ? one : NULL);
            multi(&t, 2, commands, "EXEC REQ r", lie ? other : again);
            multi(&t, 3, commands, "EXEC REQ r", again);
            if (lie)
                TOLD_BAD(&t, "request");
            else
                TOLD_GOOD(&t);
        }
    }
}

TEST(a_repeated_exec_has_the_same_commands)
{
    static const char one[] = "[ " GRANT(1) " | " GRANT(2) " ]";
    struct told t;

    told_begin(&t);
    multi(&t, 1, "LOCK a OWNER x;LOCK b OWNER x", "EXEC REQ r", one);
    multi(&t, 1, "LOCK a OWNER x;LOCK c OWNER x", "EXEC REQ r",
          "-CONFLICT request id 'r'");
    TOLD_GOOD(&t);
    told_begin(&t);
    multi(&t, 1, "LOCK a OWNER x;LOCK b OWNER x", "EXEC REQ r", one);
    multi(&t, 1, "LOCK a OWNER x;LOCK b OWNER x", "EXEC REQ r",
          "-CONFLICT request id 'r'");
    TOLD_BAD(&t, "conflict");
    told_begin(&t);
    multi(&t, 1, "LOCK a OWNER x;LOCK b OWNER x", "EXEC REQ r", one);
    multi(&t, 1, "LOCK c OWNER x", "EXEC REQ r", "[ " GRANT(3) " ]");
    TOLD_BAD(&t, "conflict");
    told_begin(&t); /* one of nothing is not kept */
    multi(&t, 1, "", "EXEC REQ r", "[ ]");
    multi(&t, 1, "LOCK a OWNER x;LOCK b OWNER x", "EXEC REQ r", one);
    multi(&t, 1, "", "EXEC REQ r", "[ ]");
    TOLD_GOOD(&t);
    told_begin(&t);
    multi(&t, 1, "LOCK a OWNER x;LOCK b OWNER x", "EXEC REQ r", one);
    multi(&t, 1, "LOCK c OWNER x;LOCK d OWNER x", "EXEC REQ r",
          "[ " GRANT(3) " | " GRANT(4) " ]");
    TOLD_BAD(&t, "conflict");
}

TEST(a_refusal_is_told_again_but_not_that_of_a_limit)
{
    static const char short_of[] =
        "-EXECABORT command 2 of 2: NOTFOUND no product 's'";
    static const char denied[] = "-EXECABORT command 1 of 2: DENIED the limit "
                                 "'k' has no permits, retry in 5 ms";
    static const char done[] = "[ " LIMIT(9) " | " GRANT(1) " ]";
    struct told t;

    told_begin(&t);
    multi(&t, 1, "LOCK a OWNER x;STOCK ADD s 1", "EXEC REQ r", short_of);
    multi(&t, 1, "LOCK a OWNER x;STOCK ADD s 1", "EXEC REQ r",
          "[ " GRANT(1) " | " SEEN("s", 1, 2) " ]");
    TOLD_BAD(&t, "request");
    for (int lie = 0; lie < 2; lie++) {
        told_begin(&t);
        multi(&t, 1, "LOCK a OWNER x;STOCK ADD s 1", "EXEC REQ r", short_of);
        multi(&t, 1, "LOCK a OWNER x;STOCK ADD s 1", "EXEC REQ r",
              lie ? "-EXECABORT command 1 of 2: STATE this owner holds 'a'"
                  : short_of);
        if (lie)
            TOLD_BAD(&t, "request");
        else
            TOLD_GOOD(&t);
    }
    told_begin(&t);
    told(&t, 9, "LIMIT k RATE 10 PER 1000 COST 10", LIMIT(0));
    multi(&t, 1, "LIMIT k RATE 10 PER 1000;LOCK a OWNER x", "EXEC REQ r",
          denied);
    told_wait(&t, 900);
    multi(&t, 1, "LIMIT k RATE 10 PER 1000;LOCK a OWNER x", "EXEC REQ r", done);
    TOLD_GOOD(&t);
}

#define TAKE "LIMIT k RATE 10 PER 60000 COST 10"
#define HALF "LIMIT k RATE 10 PER 60000 COST 4;LOCK a OWNER x"

TEST(a_refused_group_costs_no_permits)
{
    static const char refused[] =
        "-EXECABORT command 2 of 2: NOTFOUND no product 's'";
    static const char denied[] = "allowed 0 limit 10 remaining 0 retry_ms "
                                 "60000 reset_ms 60000";
    struct told t;

    told_begin(&t);
    multi(&t, 1, TAKE ";STOCK ADD s 1", "EXEC", refused);
    told(&t, 2, TAKE, LIMIT(0));
    TOLD_GOOD(&t);
    told_begin(&t);
    multi(&t, 1, TAKE ";STOCK ADD s 1", "EXEC", refused);
    told(&t, 2, TAKE, denied);
    TOLD_BAD(&t, "denied");
    told_begin(&t); /* meanwhile they are held */
    uint64_t id = multi(&t, 1, TAKE ";STOCK ADD s 1", "EXEC", NULL);
    told(&t, 2, TAKE, denied);
    told_answer(&t, 1, id, refused);
    TOLD_GOOD(&t);
    for (int lie = 0; lie < 2; lie++) { /* also for a REQ that is another's */
        told_begin(&t);
        multi(&t, 1, "LOCK a OWNER x;LOCK b OWNER x", "EXEC REQ r",
              "[ " GRANT(1) " | " GRANT(2) " ]");
        id = multi(&t, 1, TAKE ";STOCK ADD s 1", "EXEC REQ r", NULL);
        if (lie)
            told_answer(&t, 1, id, "-CONFLICT id 'r'");
        told(&t, 2, TAKE, denied);
        if (!lie)
            told_answer(&t, 1, id, "-CONFLICT id 'r'");
        if (lie)
            TOLD_BAD(&t, "denied");
        else
            TOLD_GOOD(&t);
    }
}

TEST(permits_of_groups_are_counted_once)
{
    static const char done[] = "[ " LIMIT(0) " | " GRANT(1) " ]";
    struct told t;

    told_begin(&t);
    multi(&t, 1, TAKE ";LOCK a OWNER x", "EXEC", done);
    told(&t, 2, TAKE, LIMIT(0));
    TOLD_BAD(&t, "limit");
    for (int lie = 0; lie < 2; lie++) {
        told_begin(&t);
        multi(&t, 1, HALF, "EXEC REQ r", "[ " LIMIT(6) " | " GRANT(1) " ]");
        multi(&t, 2, HALF, "EXEC REQ r", "[ " LIMIT(6) " | " GRANT(1) " ]");
        told(&t, 2, "LIMIT k RATE 10 PER 60000 COST 6",
             lie ? "allowed 0 limit 10 remaining 2 retry_ms 9 reset_ms 60000"
                 : LIMIT(0));
        if (lie)
            TOLD_BAD(&t, "denied");
        else
            TOLD_GOOD(&t);
    }
    told_begin(&t); /* meanwhile both have theirs */
    uint64_t id = multi(&t, 1, HALF, "EXEC REQ r", NULL);
    uint64_t twin = multi(&t, 2, HALF, "EXEC REQ r", NULL);
    told(&t, 3, "LIMIT k RATE 10 PER 60000 COST 6",
         "allowed 0 limit 10 remaining 2 retry_ms 9 reset_ms 60000");
    told_answer(&t, 1, id, "[ " LIMIT(6) " | " GRANT(1) " ]");
    told_answer(&t, 2, twin, "[ " LIMIT(6) " | " GRANT(1) " ]");
    TOLD_GOOD(&t);
    told_begin(&t);
    multi(&t, 1, TAKE ";LOCK a OWNER x", "EXEC",
          "-EXECABORT command 1 of 2: DENIED the limit 'k' has no permits, "
          "retry in 5 ms");
    TOLD_BAD(&t, "denied");
}

TEST(a_lock_of_a_group_is_kept_when_its_client_is_gone)
{
    struct told t;

    for (int group = 0; group < 2; group++) {
        told_begin(&t);
        uint64_t id;
        if (group) {
            told(&t, 1, "MULTI", "+OK");
            id = told_ask(&t, 1, "LOCK a OWNER x");
            told_mark(&t, 1, id, HISTORY_ARRIVED);
            told_answer(&t, 1, id, "+QUEUED");
            id = told_ask(&t, 1, "EXEC");
        } else {
            id = told_ask(&t, 1, "LOCK a OWNER x");
        }
        told_mark(&t, 1, id, HISTORY_ARRIVED);
        told_mark(&t, 1, 0, HISTORY_GONE);
        told_wait(&t, 1000);
        told(&t, 2, "LOCKINFO a", HELD_BY("x", 1));
        if (group)
            TOLD_GOOD(&t);
        else
            TOLD_BAD(&t, "gone");
    }
}
