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

/* ---- Every step that is forbidden: its answer, and that nothing changed. */

/* One in each state, of which `sku` is its product. */
enum { SOLD, BACK, LATE, GRACE, WAITS, BOOKED, OFFER, NONE, KINDS };
static const struct {
    const char *id;
    const char *sku;
} kinds[KINDS] = {[SOLD] = {"sold", "ticket"},  [BACK] = {"back", "ticket"},
                  [LATE] = {"late", "ticket"},  [GRACE] = {"grace", "ticket"},
                  [WAITS] = {"waits", "queue"}, [BOOKED] = {"booked", "soon"},
                  [OFFER] = {"offer", "gift"},  [NONE] = {"none", "ticket"}};

/* What is forbidden to each; NULL: it is not. */
static const struct {
    const char *words; /* the id, then the product */
    const char *codes[KINDS];
} steps[] = {
    {"CONFIRM %s",
     {"STATE", "STATE", "EXPIRED", NULL, "STATE", "STATE", NULL, "NOTFOUND"}},
    {"CONFIRM %s ITEM %s 1",
     {"STATE", "STATE", "EXPIRED", NULL, "STATE", "STATE", NULL, "NOTFOUND"}},
    {"CONFIRM %s ITEM %s 3",
     {"STATE", "STATE", "EXPIRED", "BADARG", "STATE", "STATE", "BADARG",
      "NOTFOUND"}},
    {"CANCEL %s REASON x",
     {"STATE", "STATE", "EXPIRED", "EXPIRED", "STATE", NULL, NULL, "NOTFOUND"}},
    {"CANCEL %s ITEM %s 1",
     {"STATE", "STATE", "EXPIRED", "EXPIRED", "STATE", "STATE", NULL,
      "NOTFOUND"}},
    {"CANCEL %s ITEM %s 3",
     {"STATE", "STATE", "EXPIRED", "EXPIRED", "STATE", "STATE", "BADARG",
      "NOTFOUND"}},
    {"EXTEND %s TTL 5000",
     {"STATE", "STATE", "EXPIRED", "EXPIRED", "STATE", "STATE", NULL,
      "NOTFOUND"}},
    {"RESERVE %s ITEM %s 2",
     {"STATE", "STATE", "STATE", "STATE", "STATE", "STATE", NULL, NULL}},
    {"RESERVE %s ITEM %s 3",
     {"STATE", "STATE", "STATE", "STATE", "STATE", "STATE", "CONFLICT", NULL}},
    {"RESERVE %s ITEM %s 3 PREORDER",
     {"STATE", "STATE", "STATE", "STATE", "STATE", "STATE", "CONFLICT", NULL}},
    {"WAITLIST LEAVE %2$s %1$s",
     {"STATE", "STATE", "STATE", "STATE", NULL, "STATE", "STATE", "NOTFOUND"}},
    {"WAITLIST JOIN %2$s 3 OWNER ann ID %1$s",
     {"STATE", "STATE", "STATE", "STATE", "STATE", "STATE", "CONFLICT", NULL}},
};

static const struct {
    const char *words;
    const char *code;
} of_groups[] = {
    {"GROUP CONFIRM ended", "NOTFOUND"},
    {"GROUP CANCEL ended", "NOTFOUND"},
    {"GROUP CONFIRM over", "EXPIRED"},
    {"GROUP CANCEL over", "EXPIRED"},
    {"GROUP CONFIRM queued", "STATE"},
    {"GROUP CANCEL unknown", "NOTFOUND"},
    {"WAITLIST LEAVE soon waits", "NOTFOUND"},
};

/* What may be asked of them and their products, without the time that is left:
 * of a reservation from its items on, and its status. */
static size_t put_all(char *out, size_t cap)
{
    size_t len = 0;

    for (int i = 0; i < KINDS; i++) {
        struct hf_bytes asked = test_ask(&good, "RESERVATION %s", kinds[i].id);
        const char *items = memmem(asked.data, asked.len, "items", 5);
        struct hf_bytes status =
            items == NULL ? asked : test_text(asked, "status");
        len += (size_t)snprintf(out + len, cap - len, "%.*s\n", (int)status.len,
                                status.data);
        if (items != NULL)
            len +=
                (size_t)snprintf(out + len, cap - len, "%.*s\n",
                                 (int)(asked.data + asked.len - items), items);
        asked = test_ask(&good, "STOCK GET %s", kinds[i].sku);
        len += (size_t)snprintf(out + len, cap - len, "%.*s\n", (int)asked.len,
                                asked.data);
    }
    return len;
}

static void wait_for_expiry(const char *id)
{
    while (!hf_bytes_is(
        test_text(test_ask(&good, "RESERVATION %s", id), "status"), "EXPIRED"))
        continue;
}

static void begin_kinds(void)
{
    begin("ticket", 10);
    test_ask(&good, "STOCK SET queue 0");
    test_ask(&good, "STOCK SET soon 0");
    test_ask(&good, "STOCK SET gift 2");
    CHECK_DONE(test_ask(&good, "STOCK EXPECT soon 5 AT 4102444800000"));
    CHECK_DONE(test_ask(&good, "CLASS SET slow GRACE 86400000"));
    CHECK_DONE(test_ask(&good, "RESERVE sold ITEM ticket 2 GROUP ended"));
    CHECK_DONE(test_ask(&good, "RESERVE back ITEM ticket 2 GROUP ended"));
    CHECK_DONE(test_ask(&good, "RESERVE late ITEM ticket 2 TTL 1 GROUP over"));
    CHECK_DONE(test_ask(&good, "RESERVE grace ITEM ticket 2 TTL 1 CLASS slow"));
    CHECK_DONE(test_ask(&good, "WAITLIST JOIN queue 2 OWNER ann ID waits "
                               "GROUP queued"));
    CHECK_DONE(test_ask(&good, "RESERVE booked ITEM soon 2 PREORDER"));
    CHECK_DONE(test_ask(&good, "WAITLIST JOIN gift 2 OWNER ann ID offer"));
    CHECK_DONE(test_ask(&good, "CONFIRM sold"));
    CHECK_DONE(test_ask(&good, "CANCEL back"));
    wait_for_expiry("late");
    wait_for_expiry("grace");
}

TEST(every_forbidden_transition_is_refused_and_changes_nothing)
{
    static char before[16 * 1024];
    static char after[sizeof before];

    begin_kinds();
    size_t len = put_all(before, sizeof before);
    CHECK(len < sizeof before);
    for (size_t k = 0; k < sizeof steps / sizeof steps[0]; k++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
        for (int i = 0; i < KINDS; i++)
            if (steps[k].codes[i] != NULL)
                CHECK_ERROR(
                    test_ask(&good, steps[k].words, kinds[i].id, kinds[i].sku),
                    steps[k].codes[i]);
#pragma GCC diagnostic pop
    }
    for (size_t k = 0; k < sizeof of_groups / sizeof of_groups[0]; k++)
        CHECK_ERROR(test_ask(&good, "%s", of_groups[k].words),
                    of_groups[k].code);
    CHECK_EQ(put_all(after, sizeof after), len);
    CHECK(memcmp(before, after, len) == 0);
    test_server_finish(&server, &good);
}

/* What the table of docs/stock.md allows to one that waits, or is booked. */
TEST(one_that_waits_leaves_and_one_that_is_booked_is_cancelled)
{
    begin_kinds();
    struct hf_bytes shown = test_ask(&good, "RESERVE booked ITEM soon 2 "
                                            "PREORDER");
    CHECK_EQ(test_number(shown, "position"), 1);
    shown = test_ask(&good, "WAITLIST JOIN queue 2 OWNER ann ID waits");
    CHECK_EQ(test_number(shown, "position"), 1);
    CHECK_DONE(test_ask(&good, "WAITLIST LEAVE queue waits"));
    CHECK_ERROR(test_ask(&good, "RESERVATION waits"), "NOTFOUND");
    shown = test_ask(&good, "CANCEL booked");
    CHECK(hf_bytes_is(test_text(shown, "status"), "CANCELLED"));
    shown = test_ask(&good, "CONFIRM grace");
    CHECK(hf_bytes_is(test_text(shown, "status"), "CONFIRMED"));
    CHECK_DONE(test_ask(&good, "CANCEL offer"));
    test_server_finish(&server, &good);
}
