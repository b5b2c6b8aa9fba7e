/* window.c - tests of what happened lately, by a time that is passed in. */
#include "holdfast/window.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "holdfast/inspect.h"
#include "support/test.h"

TEST_ONE_THREAD;

#define SECOND UINT64_C(1000000000)

static struct hf_window *open_window(uint64_t span_ns, uint32_t slices,
                                     bool count_only, uint64_t now_ns)
{
    struct hf_window *window;
    struct hf_window_opts opts = {
        .span_ns = span_ns, .slices = slices, .count_only = count_only};

    CHECK_EQ(hf_window_open(&window, &opts, now_ns), HF_OK);
    return window;
}

static struct hf_window_view view_at(struct hf_window *window, uint64_t now_ns)
{
    struct hf_window_view view;

    CHECK_EQ(hf_window_view(window, now_ns, &view), HF_OK);
    return view;
}

TEST(what_is_older_than_the_window_is_gone_to_the_ns)
{
    struct hf_window *window = open_window(10 * SECOND, 10, true, 0);

    hf_window_add(window, 5, 0);
    hf_window_add(window, 2, SECOND - 1);
    hf_window_add(window, 1, SECOND);
    CHECK_EQ(view_at(window, 10 * SECOND - 1).count, 8);
    CHECK_EQ(view_at(window, 10 * SECOND - 1).span_ns, 10 * SECOND - 1);
    CHECK_EQ(view_at(window, 10 * SECOND).count, 1);
    CHECK_EQ(view_at(window, 10 * SECOND).span_ns, 9 * SECOND);
    CHECK_EQ(view_at(window, 11 * SECOND - 1).count, 1);
    CHECK_EQ(view_at(window, 11 * SECOND).count, 0);
    hf_window_close(window);
}

TEST(a_rate_is_by_what_is_really_spanned)
{
    struct hf_window *window = open_window(10 * SECOND, 10, true, 7 * SECOND);

    CHECK(view_at(window, 7 * SECOND).per_second == 0);
    for (uint64_t i = 0; i < 100; i++)
        hf_window_add(window, 1, 7 * SECOND + i * SECOND / 50);
    CHECK(view_at(window, 9 * SECOND).per_second == 50);
    CHECK_EQ(view_at(window, 9 * SECOND).span_ns, 2 * SECOND);
    hf_window_close(window);
}

TEST(percentiles_are_those_of_the_last_minute)
{
    struct hf_window *window = open_window(0, 0, false, 100 * SECOND);
    struct hf_spread *spread;

    for (uint64_t value = 1; value <= 100; value++)
        hf_window_record(window, value, 100 * SECOND);
    for (uint64_t value = 101; value <= 200; value++)
        hf_window_record(window, value, 130 * SECOND);
    struct hf_window_view view = view_at(window, 131 * SECOND);
    CHECK_EQ(view.count, 200);
    CHECK_EQ(view.sum, 200 * 201 / 2);
    CHECK_EQ(view.p50, 100);
    CHECK_EQ(view.p95, 190);
    CHECK_EQ(view.p99, 198);
    CHECK_EQ(view.min, 1);
    CHECK_EQ(view.max, 200);
    view = view_at(window, 165 * SECOND); /* the first slice has gone */
    CHECK_EQ(view.count, 100);
    CHECK_EQ(view.p50, 150);
    CHECK_EQ(view.min, 101);
    CHECK_EQ(hf_spread_open(&spread, NULL), HF_OK);
    CHECK_EQ(hf_window_read(window, 165 * SECOND, spread), HF_OK);
    CHECK_EQ(hf_spread_percentile(spread, 90), 190);
    view = view_at(window, 1000 * SECOND);
    CHECK_EQ(view.count, 0);
    CHECK_EQ(view.p50, 0);
    CHECK_EQ(view.max, 0);
    hf_spread_close(spread);
    struct hf_window_stats stats;
    hf_window_stats(window, &stats);
    CHECK_EQ(stats.count, 200);
    CHECK_EQ(stats.sum, 200 * 201 / 2);
    CHECK_EQ(stats.late, 0);
    CHECK(stats.memory_bytes > 0);
    hf_window_close(window);
}

TEST(a_time_that_is_behind_counts_as_now)
{
    struct hf_window *window = open_window(10 * SECOND, 10, true, 0);

    hf_window_add(window, 1, 50 * SECOND);
    hf_window_add(window, 1, 3 * SECOND);
    CHECK_EQ(view_at(window, 3 * SECOND).count, 2);
    CHECK_EQ(view_at(window, 55 * SECOND).count, 2);
    CHECK_EQ(view_at(window, 60 * SECOND).count, 0);
    hf_window_close(window);
}

/* Beside a list of all that happened. */
TEST(random_traces_agree_with_a_naive_model)
{
    enum { EVENTS = 3000 };
    static uint64_t at[EVENTS];
    static uint64_t values[EVENTS];
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (int round = 0; round < 20; round++) {
        uint32_t slices = 1 + (uint32_t)hf_random_below(&random, 20);
        uint64_t slice_ns = 1 + hf_random_below(&random, 1000);
        bool count_only = round % 2 == 0;
        uint64_t now = hf_random_below(&random, 100000);
        uint64_t opened = now;
        struct hf_window *window =
            open_window(slice_ns * slices, slices, count_only, now);
        for (int i = 0; i < EVENTS; i++) {
            uint64_t step = hf_random_below(&random, 30) == 0
                                ? slice_ns * slices * 2
                                : slice_ns;
            now += hf_random_below(&random, step);
            at[i] = now;
            values[i] = hf_random_below(&random, 100000);
            hf_window_record(window, values[i], now);
            if (i % 10 != 0)
                continue;
            uint64_t then = now + hf_random_below(&random, slice_ns);
            uint64_t slice = then / slice_ns;
            uint64_t begin =
                slice < slices ? 0 : (slice - slices + 1) * slice_ns;
            uint64_t count = 0;
            uint64_t sum = 0;
            for (int j = 0; j <= i; j++) {
                count += at[j] >= begin;
                sum += at[j] >= begin ? values[j] : 0;
            }
            struct hf_window_view view = view_at(window, then);
            CHECK_EQ(view.count, count);
            CHECK_EQ(view.sum, count_only ? 0 : sum);
            CHECK_EQ(view.span_ns, then - (begin < opened ? opened : begin));
            now = then;
        }
        hf_window_close(window);
    }
}

TEST(an_edge_without_memory_is_noted_later)
{
    struct hf_window *window = open_window(10 * SECOND, 10, false, 0);
    struct hf_window_stats stats;

    hf_window_record(window, 1000, 0);
    hf_memory_fail_after(0);
    hf_window_record(window, 1000, SECOND); /* no memory for the edge */
    struct hf_window_view view;
    enum hf_status status = hf_window_view(window, 2 * SECOND, &view);
    hf_memory_fail_never();
    CHECK_EQ(status, HF_NOMEM);
    hf_window_stats(window, &stats);
    CHECK(stats.late > 0);
    CHECK_EQ(stats.count, 2);
    hf_window_record(window, 1000, 3 * SECOND);
    CHECK_EQ(view_at(window, 4 * SECOND).count, 3);
    hf_window_close(window);
}

TEST(open_needs_memory)
{
    struct hf_window *window = NULL;

    for (int count_only = 0; count_only < 2; count_only++) {
        struct hf_window_opts opts = {.count_only = count_only != 0};
        for (uint64_t fail = 0;; fail++) {
            window = NULL;
            hf_memory_fail_after(fail);
            enum hf_status status = hf_window_open(&window, &opts, 0);
            hf_memory_fail_never();
            if (!status)
                break;
            CHECK_EQ(status, HF_NOMEM);
            CHECK(window == NULL);
        }
        hf_window_close(window);
    }
}

static uint64_t listed;

static void look(void *context, const struct hf_inspect_row *row)
{
    (void)context;
    if (!strcmp(row->kind, "window") && !strcmp(row->name, "recent"))
        listed += row->depth;
}

TEST(it_is_listed_by_its_name)
{
    struct hf_window *windows[2];

    for (int i = 0; i < 2; i++) {
        struct hf_window_opts opts = {.name = "recent", .count_only = i == 0};
        CHECK_EQ(hf_window_open(&windows[i], &opts, 0), HF_OK);
        hf_window_record(windows[i], 3, 1);
    }
    CHECK_EQ(hf_inspect(look, NULL), HF_OK);
    CHECK_EQ(listed, 2);
    hf_window_close(windows[0]);
    hf_window_close(windows[1]);
}

TEST(bad_input_is_refused)
{
    struct hf_window *window = NULL;
    struct hf_window_view view;
    struct hf_window_stats stats;
    struct hf_spread *spread;

    CHECK_EQ(hf_window_open(NULL, NULL, 0), HF_INVALID);
    CHECK_EQ(hf_window_open(&window,
                            &(struct hf_window_opts){.span_ns = 5, .slices = 6},
                            0),
             HF_INVALID);
    CHECK_EQ(
        hf_window_open(&window, &(struct hf_window_opts){.slices = 3601}, 0),
        HF_INVALID);
    CHECK_EQ(hf_window_open(&window,
                            &(struct hf_window_opts){.span_ns = UINT64_MAX}, 0),
             HF_INVALID);
    CHECK_EQ(hf_window_open(
                 &window, &(struct hf_window_opts){.spread = {.digits = 7}}, 0),
             HF_INVALID);
    CHECK(window == NULL);
    hf_window_record(NULL, 1, 1);
    hf_window_add(NULL, 1, 1);
    hf_window_stats(NULL, &stats);
    hf_window_close(NULL);
    CHECK_EQ(hf_window_view(NULL, 0, &view), HF_INVALID);
    CHECK_EQ(hf_window_read(NULL, 0, NULL), HF_INVALID);
    window = open_window(0, 0, true, 0);
    CHECK_EQ(hf_window_view(window, 0, NULL), HF_INVALID);
    CHECK_EQ(hf_spread_open(&spread, NULL), HF_OK);
    CHECK_EQ(hf_window_read(window, 0, spread), HF_INVALID);
    hf_window_stats(window, NULL);
    hf_window_close(window);
    window = open_window(0, 0, false, 0);
    hf_window_add(window, 3, 1);
    CHECK_EQ(view_at(window, 2).count, 3);
    hf_window_close(window);
    hf_spread_close(spread);
}
