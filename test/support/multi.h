/* multi.h - a server with some stock, for tests of groups. */
#ifndef TEST_SUPPORT_MULTI_H
#define TEST_SUPPORT_MULTI_H

#include "support/group.h"
#include "support/server.h"

#define FOR_EVER_MS 100000000
#define LONG        "PER 3600000000" /* 41 days: nothing is earned meanwhile */

static struct test_server server;
static struct test_wire wire;
static struct test_wire other;
static char dir[512];

static inline void start_again(const char *durability)
{
    test_server_begin(
        &server, &wire,
        &(struct test_server_opts){.dir = dir, .durability = durability});
    test_wire_close(&other);
    test_server_connect(&server, &other);
}

static inline void start_in(const char *durability)
{
    static int count;

    snprintf(dir, sizeof dir, "%s/%d", test_folder(), count++);
    start_again(durability);
}

static inline void start(void)
{
    start_in("none");
    CHECK_DONE(test_ask(&wire, "STOCK SET pen 10"));
    CHECK_DONE(test_ask(&wire, "STOCK SET ink 3"));
}

static inline void stop(void)
{
    test_wire_close(&other);
    test_server_finish(&server, &wire);
}

static inline int64_t stock(const char *sku, const char *field)
{
    return test_number(test_ask(&other, "STOCK GET %s", sku), field);
}

static inline int64_t permits(const char *key)
{
    return test_number(test_ask(&other, "LIMIT %s RATE 5 " LONG " PEEK", key),
                       "remaining");
}

/* Nothing of what the tests below queue was done. */
static inline void check_untouched(void)
{
    CHECK_EQ(stock("pen", "available"), 10);
    CHECK_EQ(stock("ink", "available"), 3);
    CHECK_ERROR(test_ask(&other, "LOCKINFO door"), "NOTFOUND");
    CHECK_ERROR(test_ask(&other, "RESERVATION r"), "NOTFOUND");
    CHECK_EQ(permits("k"), 5);
}

#endif
