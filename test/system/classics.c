/* classics.c - the races of every shop, over connections of their own.
 * tests: also under sanitizers
 */
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "support/server.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 50

static struct test_server server;
static struct test_wire good;

/* What the buyers were told. */
static struct {
    const char *words; /* of a request; %d is the buyer's number */
    int each;          /* requests of one thread */
    atomic_int done;
    atomic_int refused; /* with `code` */
    const char *code;
    atomic_int other;
} race;

static void count_reply(struct hf_bytes reply)
{
    size_t len = strlen(race.code);

    if (reply.len > 0 && reply.data[0] != '-')
        atomic_fetch_add(&race.done, 1);
    else if (reply.len > len && memcmp(reply.data + 1, race.code, len) == 0)
        atomic_fetch_add(&race.refused, 1);
    else
        atomic_fetch_add(&race.other, 1);
}

static void buy(void *context, int index)
{
    struct test_wire wire = {.fd = -1};
    struct hf_bytes reply;

    (void)context;
    if (test_wire_open(&wire, server.port) != HF_OK) {
        atomic_fetch_add(&race.other, 1);
        return;
    }
    for (int i = 0; i < race.each; i++) {
        int buyer = index * race.each + i;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        test_wire_add(&wire, race.words, buyer);
#pragma GCC diagnostic pop
        if (test_wire_send(&wire) == HF_OK &&
            test_wire_read(&wire, &reply) == HF_OK)
            count_reply(reply);
        else
            atomic_fetch_add(&race.other, 1);
    }
    test_wire_close(&wire);
}

static void run(const char *words, int each, const char *code)
{
    race.words = words;
    race.each = each;
    race.code = code;
    race.done = race.refused = race.other = 0;
    test_threads(THREADS, buy, NULL);
    CHECK_EQ(race.other, 0);
}

static void begin(const char *sku, int total)
{
    test_server_begin(&server, &good,
                      &(struct test_server_opts){.durability = "none"});
    test_ask(&good, "STOCK SET %s %d", sku, total);
}

TEST(fifty_who_want_three_each_of_a_hundred)
{
    begin("ticket", 100);
    run("RESERVE r%d ITEM ticket 3 TTL 600000", 1, "SHORT");
    CHECK_EQ(race.done, 33);
    CHECK_EQ(race.refused, 17);
    CHECK_EQ(test_number(test_ask(&good, "STOCK GET ticket"), "available"), 1);
    test_server_finish(&server, &good);
}

TEST(a_thousand_buyers_for_the_last_five)
{
    begin("ticket", 5);
    run("RESERVE r%d ITEM ticket 1 TTL 600000", 20, "SHORT");
    CHECK_EQ(race.done, 5);
    CHECK_EQ(race.refused, 995);
    struct hf_bytes product = test_ask(&good, "STOCK GET ticket");
    CHECK_EQ(test_number(product, "available"), 0);
    CHECK_EQ(test_number(product, "reserved"), 5);
    test_server_finish(&server, &good);
}

/* Each asks twice for the same product in one request. */
TEST(the_same_sku_twice_counts_together_for_all)
{
    begin("ticket", 100);
    run("RESERVE r%d ITEM ticket 1 ITEM ticket 2 TTL 600000", 1, "SHORT");
    CHECK_EQ(race.done, 33);
    CHECK_EQ(test_number(test_ask(&good, "STOCK GET ticket"), "available"), 1);
    test_server_finish(&server, &good);
}

/* Who comes later is shown the first one's, and it is sold once. */
TEST(many_checkouts_of_the_same_cart_are_one)
{
    begin("ticket", 100);
    run("RESERVE cart ITEM ticket 2 TTL 60000%d", 1, "STATE");
    CHECK_EQ(race.done, THREADS);
    CHECK_EQ(test_number(test_ask(&good, "STOCK GET ticket"), "reserved"), 2);
    run("CONFIRM cart REQ q%d", 1, "STATE");
    CHECK_EQ(race.done, 1);
    CHECK_EQ(race.refused, THREADS - 1);
    struct hf_bytes product = test_ask(&good, "STOCK GET ticket");
    CHECK_EQ(test_number(product, "reserved"), 0);
    CHECK_EQ(test_number(product, "sold"), 2);
    test_server_finish(&server, &good);
}

/* What has ended stays as it ended, and so do the numbers of its product. */
TEST(every_forbidden_transition_is_refused_and_changes_nothing)
{
    static const char *const ids[] = {"sold", "back", "late", "none"};
    static const char *const ended[] = {"STATE", "STATE", "EXPIRED",
                                        "NOTFOUND"};
    static const char *const steps[] = {
        "CONFIRM %s",         "CONFIRM %s ITEM ticket 1",
        "CANCEL %s REASON x", "CANCEL %s ITEM ticket 1",
        "EXTEND %s TTL 5000",
    };
    struct hf_bytes product;
    int64_t version;

    begin("ticket", 10);
    test_ask(&good, "RESERVE sold ITEM ticket 2");
    test_ask(&good, "RESERVE back ITEM ticket 2");
    test_ask(&good, "RESERVE late ITEM ticket 2 TTL 1");
    CHECK_DONE(test_ask(&good, "CONFIRM sold"));
    CHECK_DONE(test_ask(&good, "CANCEL back"));
    do
        product = test_ask(&good, "STOCK GET ticket");
    while (test_number(product, "reserved") != 0);
    version = test_number(product, "version");
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++)
            CHECK_ERROR(test_ask(&good, steps[k], ids[i]), ended[i]);
#pragma GCC diagnostic pop
        if (i == 3)
            break;
        CHECK_ERROR(test_ask(&good, "RESERVE %s ITEM ticket 2", ids[i]),
                    "STATE");
        CHECK_ERROR(test_ask(&good, "RESERVE %s ITEM ticket 9", ids[i]),
                    "STATE");
    }
    product = test_ask(&good, "STOCK GET ticket");
    CHECK_EQ(test_number(product, "version"), version);
    CHECK_EQ(test_number(product, "available"), 8);
    CHECK_EQ(test_number(product, "reserved"), 0);
    CHECK_EQ(test_number(product, "sold"), 2);
    test_server_finish(&server, &good);
}
