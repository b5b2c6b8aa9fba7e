/* stock.c - tests of stock for the threads of one process: the races of every
 * shop, and that what is not possible changes nothing.
 */
#include <stdatomic.h>
#include <stdio.h>

#include "base/memory.h"
#include "holdfast/inspect.h"
#include "holdfast/stock.h"
#include "support/clock.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 50
#define MS      UINT64_C(1000000)

static struct hf_stock *stock;

static void begin(const struct hf_stock_opts *opts, uint64_t units)
{
    CHECK_EQ(hf_stock_open(&stock, opts), HF_OK);
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

static void buy(void *context, int index)
{
    char id[32];

    (void)context;
    for (int i = 0; i < race.each; i++) {
        snprintf(id, sizeof id, "r%d", index * race.each + i);
        atomic_fetch_add(
            &race.of[hf_stock_reserve(stock, race.cart ? race.cart : id,
                                      race.items, race.count, 0, NULL)],
            1);
    }
}

static void confirm(void *context, int index)
{
    (void)context;
    (void)index;
    atomic_fetch_add(&race.of[hf_stock_confirm(stock, "cart", NULL)], 1);
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

TEST(fifty_who_want_three_each_of_a_hundred)
{
    begin(NULL, 100);
    run(1, 3, 0, 1);
    CHECK_EQ(race.of[HF_OK], 33);
    CHECK_EQ(race.of[HF_EMPTY], 17);
    has(1, 99, 0);
    hf_stock_close(stock);
}

TEST(a_thousand_buyers_for_the_last_five)
{
    begin(NULL, 5);
    run(1, 1, 0, 20);
    CHECK_EQ(race.of[HF_OK], 5);
    CHECK_EQ(race.of[HF_EMPTY], 995);
    has(0, 5, 0);
    hf_stock_close(stock);
}

TEST(the_same_sku_twice_counts_together_for_all)
{
    begin(NULL, 100);
    run(2, 1, 2, 1);
    CHECK_EQ(race.of[HF_OK], 33);
    CHECK_EQ(race.of[HF_EMPTY], 17);
    has(1, 99, 0);
    hf_stock_close(stock);
}

TEST(many_checkouts_of_the_same_cart_are_one)
{
    begin(NULL, 100);
    race.cart = "cart";
    run(1, 2, 0, 1);
    race.cart = NULL;
    CHECK_EQ(race.of[HF_OK], THREADS);
    has(98, 2, 0);
    race.of[HF_OK] = 0;
    test_threads(THREADS, confirm, NULL);
    CHECK_EQ(race.of[HF_OK], 1);
    CHECK_EQ(race.of[HF_CLOSED], THREADS - 1);
    has(98, 0, 2);
    hf_stock_close(stock);
}

/* ---- One after the other. ---- */

TEST(every_forbidden_transition_is_refused_and_changes_nothing)
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
    struct test_clock clock = {.now_ns = 1000};
    struct hf_stock_answer answer;
    struct hf_stock_product before, after;

    begin(
        &(struct hf_stock_opts){.clock = test_clock(&clock), .ttl_ns = 5 * MS},
        10);
    for (size_t i = 0; i < 3; i++)
        CHECK_EQ(reserve(ended[i].id, 2, NULL), HF_OK);
    CHECK_EQ(hf_stock_confirm(stock, "sold", &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_CONFIRMED);
    CHECK_EQ(hf_stock_cancel(stock, "back", &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_CANCELLED);
    test_clock_advance(&clock, 5 * MS);
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
    hf_stock_close(stock);
}

TEST(what_is_short_is_told_and_nothing_is_taken)
{
    const struct hf_stock_item items[] = {
        {"ticket", 2}, {"seat", 4}, {"ticket", 3}};
    struct hf_stock_answer answer;

    begin(NULL, 5);
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
    CHECK_EQ(reserve("a", 1, &answer), HF_EXISTS);
    CHECK_EQ(answer.state, HF_STOCK_PENDING);
    CHECK_EQ(hf_stock_reserve(stock, "c", &(struct hf_stock_item){"sofa", 1}, 1,
                              0, &answer),
             HF_NOTFOUND);
    hf_stock_close(stock);
}

TEST(a_product_is_changed_and_removed)
{
    struct hf_stock_product found;

    begin(NULL, 5);
    CHECK_EQ(hf_stock_add(stock, "ticket", 2), HF_OK);
    CHECK_EQ(hf_stock_add(stock, "sofa", 2), HF_NOTFOUND);
    CHECK_EQ(reserve("a", 3, NULL), HF_OK);
    CHECK_EQ(hf_stock_add(stock, "ticket", -5), HF_EMPTY);
    CHECK_EQ(hf_stock_add(stock, "ticket", INT64_MAX), HF_FULL);
    CHECK_EQ(hf_stock_set(stock, "ticket", 2), HF_EMPTY);
    CHECK_EQ(hf_stock_remove(stock, "ticket"), HF_EXISTS);
    has(4, 3, 0);
    CHECK_EQ(hf_stock_cancel(stock, "a", NULL), HF_OK);
    CHECK_EQ(hf_stock_set(stock, "ticket", HF_STOCK_UNITS_MAX), HF_OK);
    has(HF_STOCK_UNITS_MAX, 0, 0);
    CHECK_EQ(hf_stock_remove(stock, "ticket"), HF_OK);
    CHECK_EQ(hf_stock_remove(stock, "ticket"), HF_NOTFOUND);
    CHECK_EQ(hf_stock_get(stock, "ticket", &found), HF_NOTFOUND);
    hf_stock_close(stock);
}

TEST(time_is_exact_and_ended_reservations_are_forgotten)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_stock_answer answer;
    char id[16];

    begin(&(struct hf_stock_opts){.clock = test_clock(&clock),
                                  .ended_keep_ns = 100 * MS},
          1000);
    CHECK_EQ(reserve("usual", 1, &answer), HF_OK);
    CHECK_EQ(answer.left_ns, 600000 * MS); /* ten minutes */
    struct hf_stock_item item = {"ticket", 1};
    for (int i = 0; i < 999; i++) {
        snprintf(id, sizeof id, "r%d", i);
        CHECK_EQ(hf_stock_reserve(stock, id, &item, 1, 2 * MS, NULL), HF_OK);
    }
    test_clock_advance(&clock, 2 * MS - 1000);
    has(0, 1000, 0);
    test_clock_advance(&clock, 1000);
    has(999, 1, 0); /* of more than one step of the engine */
    CHECK_EQ(hf_stock_extend(stock, "usual", MS / 2, &answer), HF_OK);
    CHECK_EQ(answer.left_ns, MS); /* rounded up */
    test_clock_advance(&clock, MS);
    CHECK_EQ(reserve("all", 1000, NULL), HF_OK);
    CHECK_EQ(hf_stock_look(stock, "r7", &answer), HF_OK);
    test_clock_advance(&clock, 99 * MS);
    has(0, 1000, 0);
    for (int i = 0; i < 5; i++) /* a step at a time */
        CHECK_EQ(hf_stock_extend(stock, "all", 900 * MS, NULL), HF_OK);
    CHECK_EQ(hf_stock_look(stock, "r7", &answer), HF_NOTFOUND);
    CHECK_EQ(answer.state, HF_STOCK_NONE);
    hf_stock_close(stock);
}

TEST(wrong_names_and_numbers_are_refused)
{
    char text[HF_STOCK_SKU_MAX + 2];
    struct hf_stock_item items[HF_STOCK_ITEMS_MAX + 1];
    char skus[HF_STOCK_ITEMS_MAX + 1][8];

    begin(NULL, 5);
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
    CHECK_EQ(hf_stock_reserve(stock, "a", items, 1, UINT64_MAX, NULL),
             HF_INVALID);
    CHECK_EQ(hf_stock_extend(stock, "a", 0, NULL), HF_INVALID);
    CHECK_EQ(hf_stock_extend(stock, "a", UINT64_MAX, NULL), HF_INVALID);
    hf_stock_close(stock);
    CHECK_EQ(hf_stock_open(&stock,
                           &(struct hf_stock_opts){.products_max = UINT32_MAX}),
             HF_INVALID);
    CHECK_EQ(hf_stock_open(&stock, &(struct hf_stock_opts){.reservations_max =
                                                               UINT32_MAX}),
             HF_INVALID);
    CHECK_EQ(
        hf_stock_open(&stock, &(struct hf_stock_opts){.ttl_ns = UINT64_MAX}),
        HF_INVALID);
    CHECK_EQ(hf_stock_open(
                 &stock, &(struct hf_stock_opts){.ended_keep_ns = UINT64_MAX}),
             HF_INVALID);
}

TEST(its_bounds_are_kept_and_shown)
{
    char text[4096];

    begin(&(struct hf_stock_opts){.name = "box office",
                                  .products_max = 1,
                                  .reservations_max = 2},
          5);
    CHECK_EQ(hf_stock_set(stock, "seat", 1), HF_FULL);
    CHECK_EQ(reserve("a", 1, NULL), HF_OK);
    CHECK_EQ(reserve("b", 1, NULL), HF_OK);
    CHECK_EQ(reserve("c", 1, NULL), HF_FULL);
    CHECK_EQ(hf_stock_cancel(stock, "a", NULL), HF_OK);
    CHECK_EQ(reserve("c", 1, NULL), HF_OK);
    CHECK_EQ(hf_stock_look(stock, "a", &(struct hf_stock_answer){0}),
             HF_NOTFOUND);
    has(3, 2, 0);
    CHECK(hf_inspect_text(HF_INSPECT_TEXT, text, sizeof text) < sizeof text);
    CHECK(strstr(text, "box office") != NULL);
    CHECK(strstr(text, " 2 ") != NULL);
    hf_stock_close(stock);
}

TEST(without_memory_nothing_is_changed)
{
    struct hf_stock_product before, after;
    struct hf_stock_answer answer;
    enum hf_status status = HF_NOMEM;
    uint64_t allowed;

    for (allowed = 0; status != HF_OK; allowed++) {
        CHECK(allowed < 1000);
        hf_memory_fail_after(allowed);
        status = hf_stock_open(&stock, NULL);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
    }
    CHECK(allowed > 1);
    hf_memory_fail_after(0);
    status = hf_stock_set(stock, "ticket", 5);
    hf_memory_fail_never();
    CHECK_EQ(status, HF_NOMEM);
    CHECK_EQ(hf_stock_get(stock, "ticket", &before), HF_NOTFOUND);
    CHECK_EQ(hf_stock_set(stock, "ticket", 5), HF_OK);
    CHECK_EQ(hf_stock_get(stock, "ticket", &before), HF_OK);
    hf_memory_fail_after(0);
    status = reserve("a", 1, &answer);
    hf_memory_fail_never();
    CHECK_EQ(status, HF_NOMEM);
    CHECK_EQ(hf_stock_get(stock, "ticket", &after), HF_OK);
    CHECK_EQ(after.version, before.version);
    CHECK_EQ(hf_stock_look(stock, "a", &answer), HF_NOTFOUND);
    hf_stock_close(stock);
}
