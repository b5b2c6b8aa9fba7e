/* history_versions.c - what clients may be told of IF and versions. */
#include "support/test.h"
#include "support/told.h"

#define SEEN(total, version)                                         \
    "sku s total " #total " available " #total " reserved 0 sold 0 " \
    "version " #version " updated_ms 1"
#define CLASH(version, wanted) \
    "-CONFLICT sku 's' is at version " #version ", not " #wanted

static void begin(struct told *t)
{
    told_begin(t);
    told(t, 1, "STOCK SET s 10 IF 0", SEEN(10, 1));
}

TEST(changes_at_the_version_that_is_are_good)
{
    struct told t;

    begin(&t);
    told(&t, 1, "STOCK ADD s 1 IF 1", SEEN(11, 2));
    told(&t, 2, "STOCK ADD s 1 IF 1", CLASH(2, 1));
    told(&t, 2, "STOCK SET s 9 IF 2 REQ q", SEEN(9, 5));
    told(&t, 2, "STOCK SET s 9 IF 2 REQ q", SEEN(9, 5));
    told(&t, 2, "STOCK ADD s 1 IF 7 REQ p", CLASH(5, 7));
    told(&t, 2, "STOCK ADD s 1 IF 7 REQ p", CLASH(5, 7));
    told(&t, 1, "STOCK DEL s IF 5", "+OK");
    told(&t, 2, "STOCK SET s 9 IF 5", CLASH(0, 5));
    told(&t, 2, "STOCK SET s 9 IF 0", SEEN(9, 8));
    TOLD_GOOD(&t);
}

TEST(what_lies_between_is_told_against_it)
{
    struct told t;

    begin(&t);
    told(&t, 1, "STOCK ADD s 1", SEEN(11, 2));
    told(&t, 1, "STOCK ADD s 1 IF 1", SEEN(12, 3));
    TOLD_BAD(&t, "version");
    begin(&t);
    told(&t, 1, "STOCK SET s 9 IF 0", SEEN(9, 2));
    TOLD_BAD(&t, "missing");
    begin(&t);
    told(&t, 1, "STOCK SET s 9 IF 3", CLASH(0, 3));
    TOLD_BAD(&t, "missing");
}

TEST(a_conflict_tells_another_version_that_was_given)
{
    struct told t;

    begin(&t);
    told(&t, 1, "STOCK ADD s 1 IF 1", CLASH(1, 1));
    TOLD_BAD(&t, "version");
    begin(&t);
    told(&t, 1, "STOCK ADD s 1 IF 1", SEEN(11, 2));
    told(&t, 2, "STOCK ADD s 1 IF 7", CLASH(1, 7));
    TOLD_BAD(&t, "version");
    begin(&t);
    told(&t, 1, "STOCK ADD s 1 IF 3 REQ q",
         "-CONFLICT id 'q' was used with other arguments");
    TOLD_BAD(&t, "conflict");
}

#define LOW(n, version) SEEN(10, version) " low " #n

TEST(a_threshold_is_the_last_that_was_set)
{
    struct told t;

    begin(&t);
    told(&t, 1, "STOCK LOW s 4", LOW(4, 2));
    told(&t, 2, "STOCK GET s", LOW(4, 2));
    told_ask(&t, 3, "STOCK LOW s 7");
    told(&t, 2, "STOCK ATTR s colour red", LOW(7, 5));
    told(&t, 2, "STOCK ATTR s colour REQ q", LOW(7, 6));
    told(&t, 1, "STOCK LOW s 0", LOW(0, 9));
    told(&t, 2, "STOCK GET s", LOW(0, 9));
    TOLD_GOOD(&t);
    begin(&t);
    told(&t, 1, "STOCK LOW s 4", LOW(4, 2));
    told(&t, 2, "STOCK ATTR s colour red", LOW(0, 3));
    TOLD_BAD(&t, "low");
    told_begin(&t);
    told(&t, 1, "STOCK SET s 10", LOW(4, 1));
    TOLD_BAD(&t, "low");
    begin(&t);
    told(&t, 1, "STOCK LOW s 4", LOW(4, 2));
    told_ask(&t, 3, "STOCK LOW s 7");
    told(&t, 2, "STOCK GET s", LOW(7, 2));
    TOLD_BAD(&t, "version");
    begin(&t);
    told(&t, 1, "STOCK LOW s 4", LOW(4, 2));
    told(&t, 1, "STOCK DEL s", "+OK");
    told(&t, 1, "STOCK SET s 10", LOW(0, 5));
    TOLD_GOOD(&t);
}
