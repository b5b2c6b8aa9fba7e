/* history_keys.c - what clients may be told of keys, and what not. */
#include "support/test.h"
#include "support/told.h"

TEST(a_key_that_goes_from_hand_to_hand_is_good)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "SET k x NX PX 1000", "+OK");
    told(&t, 2, "SETNX k y", ":0");
    told(&t, 3, "LOCKS",
         "locks [ name k owner x token 3 expires_ms 990 count 1 waiting 0 ] "
         "cursor 0");
    told(&t, 1, "DELIFEQ k x", ":1");
    told(&t, 2, "SET k y NX PX 1000", "+OK");
    told_wait(&t, 1000);
    told(&t, 1, "SET k x NX", "+OK");
    told_ask(&t, 1, "DEL other k");
    told(&t, 2, "SET k y NX PX 1000", "+OK");
    TOLD_GOOD(&t);
}

TEST(two_that_nx_gave_a_key_to_are_one_too_many)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "SET k x NX PX 1000", "+OK");
    told_wait(&t, 980);
    told(&t, 2, "SET k y NX PX 1000", "+OK");
    TOLD_BAD(&t, "key");

    told_begin(&t);
    told(&t, 1, "SET k x NX", "+OK");
    told(&t, 2, "DELIFEQ k y", ":0");
    told_wait(&t, 100000);
    told(&t, 2, "SET k y NX PX 1000", "+OK");
    TOLD_BAD(&t, "key");
}

TEST(what_setnx_took_has_no_end)
{
    struct told t;

    told_begin(&t);
    told(&t, 1, "SETNX k x", ":1");
    told_wait(&t, 100000);
    told(&t, 2, "SETNX k y", ":1");
    TOLD_BAD(&t, "key");

    told_begin(&t);
    told(&t, 1, "SET k x NX PX 1000", "+OK");
    told(&t, 2, "SETNX k y", ":1");
    TOLD_BAD(&t, "key");

    told_begin(&t);
    told(&t, 1, "SETNX k x", ":1");
    told(&t, 2, "ZREM k x", ":1");
    told(&t, 2, "SETNX k y", ":1");
    TOLD_GOOD(&t);
}

/* Nothing is sure of what comes at the same time. */
TEST(what_may_have_been_first_is_good)
{
    struct told t;

    told_begin(&t);
    uint64_t first = told_ask(&t, 1, "SET k x NX PX 1000");
    uint64_t second = told_ask(&t, 2, "SET k y NX PX 1000");
    uint64_t third = told_ask(&t, 3, "EVALSHA sha 2 j k x");
    told_answer(&t, 1, first, "+OK");
    told_answer(&t, 2, second, "+OK");
    told_answer(&t, 3, third, ":1");
    TOLD_GOOD(&t);
}
