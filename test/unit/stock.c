/* stock.c - tests of stock for the threads of one process. What every kind of
 * stock does is in the suite; here is what only the engine has.
 */
#include "base/memory.h"
#include "holdfast/inspect.h"
#include "support/clock.h"

#include "support/stock_suite.h"

static struct test_clock engine_clock;

static void open_kind(int kind, uint64_t ttl_ns)
{
    (void)kind;
    engine_clock = (struct test_clock){.now_ns = 1000};
    CHECK_EQ(hf_stock_open(&stock, &(struct hf_stock_opts){.clock = test_clock(
                                                               &engine_clock),
                                                           .ttl_ns = ttl_ns}),
             HF_OK);
}

static void close_kind(void)
{
    hf_stock_close(stock);
}

static void pass_time(uint64_t ms)
{
    test_clock_advance(&engine_clock, ms * MS);
}

static const struct stock_kinds kinds = {
    .count = 1, .open = open_kind, .close = close_kind, .pass_time = pass_time};

static void begin_with(const struct hf_stock_opts *opts, uint64_t units)
{
    CHECK_EQ(hf_stock_open(&stock, opts), HF_OK);
    CHECK_EQ(hf_stock_set(stock, "ticket", units), HF_OK);
}

TEST(time_is_exact_and_ended_reservations_are_forgotten)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_stock_answer answer;
    char id[16];

    begin_with(&(struct hf_stock_opts){.clock = test_clock(&clock),
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

TEST(wrong_options_are_refused)
{
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

    begin_with(&(struct hf_stock_opts){.name = "box office",
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
