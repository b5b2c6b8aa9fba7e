/* stock_suite.h - what every kind of stock does the same: the races of every
 * shop, and that what is not possible changes nothing.
 *
 * Whoever includes it says by `kinds` how to open one.
 */
#ifndef TEST_SUPPORT_STOCK_SUITE_H
#define TEST_SUPPORT_STOCK_SUITE_H

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/stock.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 50
#define MS      UINT64_C(1000000)

static struct hf_stock *stock;

struct stock_kinds {
    int count;                               /* each test runs for each */
    void (*open)(int kind, uint64_t ttl_ns); /* sets `stock` */
    void (*close)(void);                     /* and looks at the sums */
    void (*pass_time)(uint64_t ms);
};

static const struct stock_kinds kinds; /* defined by who includes this */

#define SUITE(name)                                    \
    static void suite_##name(int kind);                \
    TEST(name)                                         \
    {                                                  \
        for (int kind = 0; kind < kinds.count; kind++) \
            suite_##name(kind);                        \
    }                                                  \
    static void suite_##name(int kind)

static void begin(int kind, uint64_t units)
{
    kinds.open(kind, 0);
    CHECK_EQ(hf_stock_set(stock, "ticket", units), HF_OK);
}

static void has(uint64_t available, uint64_t reserved, uint64_t sold)
{
    struct hf_stock_product found;

    CHECK_EQ(hf_stock_get(stock, "ticket", &found), HF_OK);
    CHECK_EQ(found.available, available);
    CHECK_EQ(found.reserved, reserved);
    CHECK_EQ(found.sold, sold);
    CHECK_EQ(found.total, available + reserved + sold);
}

static enum hf_status reserve(const char *id, uint64_t quantity,
                              struct hf_stock_answer *answer)
{
    struct hf_stock_item item = {"ticket", quantity};

    return hf_stock_reserve(stock, id, &item, 1, 0, answer);
}

/* ---- Races. ---- */

static struct {
    struct hf_stock_item items[2];
    size_t count;
    int each;         /* calls of one thread */
    const char *cart; /* one id for all */
    atomic_int of[HF_STATUS_COUNT];
} race;

static void confirm(void *context, int index)
{
    (void)context;
    (void)index;
    atomic_fetch_add(&race.of[hf_stock_confirm(stock, "cart", NULL)], 1);
}

/* The optimistic strategy may tell a buyer that others were faster: who buys
 * calls again then, as a shop would. */
static void buy(void *context, int index)
{
    char id[32];

    (void)context;
    for (int i = 0; i < race.each; i++) {
        enum hf_status status = HF_CONTENDED;
        snprintf(id, sizeof id, "r%d", index * race.each + i);
        for (int j = 0; j < 1000 && status == HF_CONTENDED; j++)
            status = hf_stock_reserve(stock, race.cart ? race.cart : id,
                                      race.items, race.count, 0, NULL);
        atomic_fetch_add(&race.of[status], 1);
    }
}

static void run(size_t count, uint64_t first, uint64_t second, int each)
{
    race.items[0] = (struct hf_stock_item){"ticket", first};
    race.items[1] = (struct hf_stock_item){"ticket", second};
    race.count = count;
    race.each = each;
    for (int i = 0; i < HF_STATUS_COUNT; i++)
        race.of[i] = 0;
    test_threads(THREADS, buy, NULL);
}

SUITE(fifty_who_want_three_each_of_a_hundred)
{
    begin(kind, 100);
    run(1, 3, 0, 1);
    CHECK_EQ(race.of[HF_OK], 33);
    CHECK_EQ(race.of[HF_EMPTY], 17);
    has(1, 99, 0);
    kinds.close();
}

SUITE(a_thousand_buyers_for_the_last_five)
{
    begin(kind, 5);
    run(1, 1, 0, 20);
    CHECK_EQ(race.of[HF_OK], 5);
    CHECK_EQ(race.of[HF_EMPTY], 995);
    has(0, 5, 0);
    kinds.close();
}

SUITE(the_same_sku_twice_counts_together_for_all)
{
    begin(kind, 100);
    run(2, 1, 2, 1);
    CHECK_EQ(race.of[HF_OK], 33);
    CHECK_EQ(race.of[HF_EMPTY], 17);
    has(1, 99, 0);
    kinds.close();
}

SUITE(many_checkouts_of_the_same_cart_are_one)
{
    begin(kind, 100);
    race.cart = "cart";
    run(1, 2, 0, 1);
    race.cart = NULL;
    CHECK_EQ(race.of[HF_OK], THREADS);
    has(98, 2, 0);
    race.of[HF_OK] = 0;
    test_threads(THREADS, confirm, NULL);
    CHECK_EQ(race.of[HF_OK], 1);
    CHECK_EQ(race.of[HF_CLOSED] + race.of[HF_CONTENDED], THREADS - 1);
    has(98, 0, 2);
    kinds.close();
}

/* ---- One after the other. ---- */

SUITE(every_forbidden_transition_is_refused_and_changes_nothing)
{
    static const struct {
        const char *id;
        enum hf_status status;
        enum hf_stock_state state;
    } ended[] = {
        {"sold", HF_CLOSED, HF_STOCK_CONFIRMED},
        {"back", HF_CLOSED, HF_STOCK_CANCELLED},
        {"late", HF_TIMEOUT, HF_STOCK_EXPIRED},
        {"none", HF_NOTFOUND, HF_STOCK_NONE},
    };
    struct hf_stock_answer answer;
    struct hf_stock_product before, after;

    kinds.open(kind, 100000 * MS);
    CHECK_EQ(hf_stock_set(stock, "ticket", 10), HF_OK);
    for (size_t i = 0; i < 3; i++)
        CHECK_EQ(reserve(ended[i].id, 2, NULL), HF_OK);
    CHECK_EQ(hf_stock_confirm(stock, "sold", &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_CONFIRMED);
    CHECK_EQ(hf_stock_cancel(stock, "back", &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_CANCELLED);
    CHECK_EQ(answer.left_ns, 0);
    kinds.pass_time(100000);
    has(8, 0, 2);
    CHECK_EQ(hf_stock_get(stock, "ticket", &before), HF_OK);
    for (size_t i = 0; i < sizeof ended / sizeof ended[0]; i++) {
        const char *id = ended[i].id;
        CHECK_EQ(hf_stock_confirm(stock, id, &answer), ended[i].status);
        CHECK_EQ(answer.state, ended[i].state);
        CHECK_EQ(hf_stock_cancel(stock, id, &answer), ended[i].status);
        CHECK_EQ(answer.state, ended[i].state);
        CHECK_EQ(hf_stock_extend(stock, id, MS, &answer), ended[i].status);
        CHECK_EQ(answer.state, ended[i].state);
        if (ended[i].state == HF_STOCK_NONE)
            break;
        CHECK_EQ(reserve(id, 2, &answer), HF_CLOSED);
        CHECK_EQ(answer.state, ended[i].state);
        CHECK_EQ(hf_stock_look(stock, id, &answer), HF_OK);
        CHECK_EQ(answer.state, ended[i].state);
        CHECK_EQ(answer.left_ns, 0);
    }
    CHECK_EQ(hf_stock_get(stock, "ticket", &after), HF_OK);
    CHECK_EQ(after.version, before.version);
    kinds.close();
}

SUITE(what_is_short_is_told_and_nothing_is_taken)
{
    const struct hf_stock_item items[] = {
        {"ticket", 2}, {"seat", 4}, {"ticket", 3}};
    const struct hf_stock_item both[] = {{"sofa", 1}, {"seat", 9}};
    struct hf_stock_answer answer;

    begin(kind, 5);
    CHECK_EQ(hf_stock_set(stock, "seat", 3), HF_OK);
    CHECK_EQ(hf_stock_reserve(stock, "a", items, 3, 0, &answer), HF_EMPTY);
    CHECK(answer.sku == items[1].sku);
    CHECK_EQ(answer.requested, 4);
    CHECK_EQ(answer.available, 3);
    CHECK_EQ(answer.state, HF_STOCK_NONE);
    has(5, 0, 0);
    CHECK_EQ(hf_stock_add(stock, "seat", 1), HF_OK);
    CHECK_EQ(hf_stock_reserve(stock, "a", items, 3, 0, &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_PENDING);
    has(0, 5, 0);
    CHECK_EQ(reserve("b", 1, &answer), HF_EMPTY);
    CHECK_EQ(answer.available, 0);
    CHECK_EQ(reserve("a", 1, &answer), HF_EXISTS);
    CHECK_EQ(answer.state, HF_STOCK_PENDING);
    CHECK_EQ(hf_stock_reserve(stock, "a", items, 3, 0, &answer), HF_OK);
    has(0, 5, 0);
    CHECK_EQ(hf_stock_reserve(stock, "c", &(struct hf_stock_item){"sofa", 1}, 1,
                              0, &answer),
             HF_NOTFOUND);
    CHECK_EQ(hf_stock_reserve(stock, "c", both, 2, 0, &answer), HF_NOTFOUND);
    kinds.close();
}

SUITE(a_product_is_changed_and_removed)
{
    struct hf_stock_product found, later;

    begin(kind, 5);
    CHECK_EQ(hf_stock_get(stock, "ticket", &found), HF_OK);
    CHECK_EQ(hf_stock_add(stock, "ticket", 2), HF_OK);
    CHECK_EQ(hf_stock_get(stock, "ticket", &later), HF_OK);
    CHECK(later.version > found.version);
    CHECK_EQ(hf_stock_add(stock, "sofa", 2), HF_NOTFOUND);
    CHECK_EQ(reserve("a", 3, NULL), HF_OK);
    CHECK_EQ(hf_stock_add(stock, "ticket", -5), HF_EMPTY);
    CHECK_EQ(hf_stock_add(stock, "ticket", INT64_MIN), HF_EMPTY);
    CHECK_EQ(hf_stock_add(stock, "ticket", INT64_MAX), HF_FULL);
    CHECK_EQ(hf_stock_set(stock, "ticket", 2), HF_EMPTY);
    CHECK_EQ(hf_stock_remove(stock, "ticket"), HF_EXISTS);
    has(4, 3, 0);
    CHECK_EQ(hf_stock_cancel(stock, "a", NULL), HF_OK);
    CHECK_EQ(hf_stock_set(stock, "ticket", HF_STOCK_UNITS_MAX), HF_OK);
    has(HF_STOCK_UNITS_MAX, 0, 0);
    CHECK_EQ(reserve("all", HF_STOCK_UNITS_MAX, NULL), HF_OK);
    CHECK_EQ(reserve("more", HF_STOCK_UNITS_MAX, NULL), HF_EMPTY);
    CHECK_EQ(hf_stock_cancel(stock, "all", NULL), HF_OK);
    CHECK_EQ(hf_stock_remove(stock, "ticket"), HF_OK);
    CHECK_EQ(hf_stock_remove(stock, "ticket"), HF_NOTFOUND);
    CHECK_EQ(hf_stock_get(stock, "ticket", &found), HF_NOTFOUND);
    CHECK_EQ(hf_stock_set(stock, "ticket", 7), HF_OK);
    has(7, 0, 0);
    kinds.close();
}

SUITE(what_is_overdue_is_free_for_whoever_comes)
{
    struct hf_stock_answer answer;
    struct hf_stock_item item = {"ticket", 1};
    char id[16];

    begin(kind, 30);
    CHECK_EQ(reserve("usual", 1, &answer), HF_OK);
    CHECK_EQ(answer.left_ns, 600000 * MS); /* ten minutes */
    for (int i = 0; i < 29; i++) {
        snprintf(id, sizeof id, "r%d", i);
        CHECK_EQ(hf_stock_reserve(stock, id, &item, 1, 300000 * MS - 1, NULL),
                 HF_OK);
    }
    has(0, 30, 0);
    CHECK_EQ(reserve("more", 1, NULL), HF_EMPTY);
    kinds.pass_time(300000);
    has(29, 1, 0);
    CHECK_EQ(reserve("more", 30, &answer), HF_EMPTY);
    CHECK_EQ(answer.available, 29);
    CHECK_EQ(reserve("all", 29, NULL), HF_OK);
    has(0, 30, 0);
    kinds.pass_time(200000);
    CHECK_EQ(hf_stock_extend(stock, "usual", 100000 * MS - MS / 2, &answer),
             HF_OK);
    CHECK_EQ(answer.left_ns, 100000 * MS); /* rounded up */
    CHECK_EQ(hf_stock_confirm(stock, "usual", NULL), HF_OK);
    kinds.pass_time(400000);
    CHECK_EQ(hf_stock_look(stock, "all", &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_EXPIRED);
    CHECK_EQ(hf_stock_set(stock, "ticket", 1), HF_OK);
    has(0, 0, 1);
    CHECK_EQ(hf_stock_add(stock, "ticket", 4), HF_OK);
    CHECK_EQ(reserve("last", 4, NULL), HF_OK);
    kinds.pass_time(600000);
    CHECK_EQ(hf_stock_remove(stock, "ticket"), HF_OK);
    kinds.close();
}

SUITE(wrong_names_and_numbers_are_refused)
{
    char text[HF_STOCK_SKU_MAX + 2];
    struct hf_stock_item items[HF_STOCK_ITEMS_MAX + 1];
    char skus[HF_STOCK_ITEMS_MAX + 1][8];

    begin(kind, 5);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    CHECK_EQ(hf_stock_set(stock, text, 1), HF_INVALID);
    CHECK_EQ(hf_stock_set(stock, text + 1, 1), HF_OK);
    CHECK_EQ(hf_stock_set(stock, "", 1), HF_INVALID);
    CHECK_EQ(hf_stock_set(stock, "a", HF_STOCK_UNITS_MAX + UINT64_C(1)),
             HF_INVALID);
    text[HF_STOCK_ID_MAX + 1] = '\0';
    CHECK_EQ(reserve(text, 1, NULL), HF_INVALID);
    CHECK_EQ(reserve(text + 1, 1, NULL), HF_OK);
    CHECK_EQ(reserve("a", 0, NULL), HF_INVALID);
    CHECK_EQ(reserve("a", HF_STOCK_UNITS_MAX + UINT64_C(1), NULL), HF_INVALID);
    for (size_t i = 0; i <= HF_STOCK_ITEMS_MAX; i++) {
        snprintf(skus[i], sizeof skus[i], "s%zu", i);
        items[i] = (struct hf_stock_item){skus[i], 1};
    }
    CHECK_EQ(hf_stock_reserve(stock, "a", items, 0, 0, NULL), HF_INVALID);
    CHECK_EQ(
        hf_stock_reserve(stock, "a", items, HF_STOCK_ITEMS_MAX + 1, 0, NULL),
        HF_INVALID);
    CHECK_EQ(hf_stock_reserve(stock, "a", items, HF_STOCK_ITEMS_MAX, 0, NULL),
             HF_NOTFOUND);
    items[0] = items[1] = (struct hf_stock_item){"ticket", HF_STOCK_UNITS_MAX};
    CHECK_EQ(hf_stock_reserve(stock, "a", items, 2, 0, NULL), HF_INVALID);
    CHECK_EQ(hf_stock_reserve(stock, "a", items, 1, UINT64_MAX, NULL),
             HF_INVALID);
    CHECK_EQ(hf_stock_extend(stock, "a", 0, NULL), HF_INVALID);
    CHECK_EQ(hf_stock_extend(stock, "a", UINT64_MAX, NULL), HF_INVALID);
    CHECK_EQ(hf_stock_reserve(stock, "long",
                              &(struct hf_stock_item){"ticket", 1}, 1,
                              INT64_MAX, NULL),
             HF_OK);
    CHECK_EQ(hf_stock_cancel(stock, "long", NULL), HF_OK);
    kinds.close();
}

/* ---- Many at once. ---- */

#define MANY 300

static atomic_int answered[MANY];
static atomic_int left;

static void note_answer(struct hf_stock_request *request)
{
    atomic_fetch_add((atomic_int *)request->context, 1);
    atomic_fetch_sub(&left, 1);
}

static void submit_and_wait(struct hf_stock_request *requests, int count)
{
    for (int i = 0; i < count; i++) {
        answered[i] = 0;
        requests[i].done = note_answer;
        requests[i].context = &answered[i];
    }
    left = count;
    CHECK_EQ(hf_stock_submit(stock, requests, (size_t)count), HF_OK);
    struct hf_stock_answer answer;
    while (left > 0) /* each round is a trip of its own */
        (void)hf_stock_look(stock, "nobody", &answer);
    for (int i = 0; i < count; i++)
        CHECK_EQ(answered[i], 1);
}

SUITE(requests_that_go_together_are_answered_each_by_itself)
{
    static struct hf_stock_request requests[MANY];
    static struct hf_stock_item items[MANY];
    static char ids[MANY][16];
    int of[HF_STATUS_COUNT] = {0};

    begin(kind, 100);
    memset(requests, 0, sizeof requests);
    for (int i = 0; i < MANY; i++) {
        snprintf(ids[i], sizeof ids[i], "m%d", i);
        items[i] = (struct hf_stock_item){i % 10 == 1 ? "sofa" : "ticket",
                                          i % 10 == 2 ? 1000 : 1};
        requests[i] = (struct hf_stock_request){
            .call = HF_STOCK_RESERVE,
            .name = i % 10 == 3 ? "" : ids[i],
            .items = &items[i],
            .count = 1,
        };
    }
    submit_and_wait(requests, MANY);
    for (int i = 0; i < MANY; i++) {
        of[requests[i].status]++;
        if (requests[i].status == HF_OK)
            CHECK_EQ(requests[i].answer.state, HF_STOCK_PENDING);
    }
    CHECK_EQ(of[HF_NOTFOUND], MANY / 10);
    CHECK_EQ(of[HF_INVALID], MANY / 10);
    if (of[HF_CONTENDED] == 0) {
        CHECK_EQ(of[HF_OK], 100);
        CHECK_EQ(of[HF_EMPTY], 140);
        has(0, 100, 0);
    }
    for (int i = 0; i < MANY; i++)
        requests[i] =
            (struct hf_stock_request){.call = HF_STOCK_CANCEL, .name = ids[i]};
    submit_and_wait(requests, MANY);
    for (int i = 0; i < MANY; i++)
        CHECK(requests[i].status != HF_CONTENDED || kind > 0);
    kinds.close();
}

SUITE(what_is_in_one_batch_is_carried_out_in_order)
{
    const struct hf_stock_item two = {"ticket", 2};
    struct hf_stock_request requests[] = {
        {.call = HF_STOCK_ADD, .name = "ticket", .units = 2},
        {.call = HF_STOCK_RESERVE, .name = "a", .items = &two, .count = 1},
        {.call = HF_STOCK_RESERVE, .name = "b", .items = &two, .count = 1},
        {.call = HF_STOCK_CANCEL, .name = "a"},
        {.call = HF_STOCK_RESERVE, .name = "b", .items = &two, .count = 1},
        {.call = HF_STOCK_EXTEND, .name = "b", .ttl_ns = 60000 * MS},
        {.call = HF_STOCK_CONFIRM, .name = "b"},
        {.call = HF_STOCK_REMOVE, .name = "ticket"},
        {.call = HF_STOCK_SET, .name = "ticket", .total = 3},
        {.call = HF_STOCK_SET, .name = "seat", .total = 3},
        {.call = HF_STOCK_REMOVE, .name = "seat"},
    };
    static const enum hf_status expected[] = {HF_OK, HF_OK, HF_EMPTY, HF_OK,
                                              HF_OK, HF_OK, HF_OK,    HF_OK,
                                              HF_OK, HF_OK, HF_OK};

    begin(kind, 0);
    submit_and_wait(requests, 11);
    for (int i = 0; i < 11; i++)
        CHECK_EQ(requests[i].status, expected[i]);
    has(3, 0, 0);
    CHECK_EQ(hf_stock_get(stock, "seat", &requests[0].product), HF_NOTFOUND);
    CHECK_EQ(hf_stock_submit(stock, requests, 0), HF_OK);
    requests[1].done = NULL;
    CHECK_EQ(hf_stock_submit(stock, requests, 2), HF_INVALID);
    CHECK_EQ(answered[0], 1);
    kinds.close();
}

#endif
