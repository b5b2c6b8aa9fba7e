/* histogram.c - tests of recording into a histogram, reading it, and timers. */
#include "holdfast/histogram.h"

#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "holdfast/inspect.h"
#include "support/clock.h"
#include "support/test.h"
#include "support/threads.h"

static struct hf_spread_stats stats_of(const struct hf_spread *spread)
{
    struct hf_spread_stats stats;

    hf_spread_stats(spread, &stats);
    return stats;
}

static struct hf_spread *spread_for(struct hf_histogram *histogram)
{
    struct hf_spread *spread;

    CHECK_EQ(hf_histogram_spread(histogram, &spread), HF_OK);
    return spread;
}

TEST(a_reading_is_what_was_recorded)
{
    struct hf_histogram *histogram;
    struct hf_histogram_stats stats;
    struct hf_spread *expected;
    struct hf_random random;

    hf_random_init(&random, test_seed());
    CHECK_EQ(hf_histogram_open(&histogram, NULL), HF_OK);
    CHECK_EQ(hf_spread_open(&expected, NULL), HF_OK);
    struct hf_spread *seen = spread_for(histogram);
    CHECK_EQ(hf_histogram_read(histogram, seen), HF_OK);
    CHECK_EQ(stats_of(seen).count, 0);
    for (int i = 0; i < 100000; i++) {
        uint64_t value =
            hf_random_next(&random) >> hf_random_below(&random, 64);
        hf_histogram_record(histogram, value);
        CHECK_EQ(hf_spread_record(expected, value, 1), HF_OK);
    }
    CHECK_EQ(hf_histogram_read(histogram, seen), HF_OK);
    hf_histogram_stats(histogram, &stats);
    CHECK_EQ(stats_of(seen).count, 100000);
    CHECK_EQ(stats.count, 100000);
    CHECK_EQ(stats_of(seen).sum, stats_of(expected).sum);
    CHECK_EQ(stats.sum, stats_of(expected).sum);
    CHECK_EQ(stats_of(seen).min, stats_of(expected).min);
    CHECK_EQ(stats.min, stats_of(expected).min);
    CHECK_EQ(stats_of(seen).max, stats_of(expected).max);
    CHECK_EQ(stats.max, stats_of(expected).max);
    CHECK_EQ(stats.coarse, 0);
    CHECK_EQ(stats.threads, 1);
    for (double percent = 0; percent <= 100; percent += 2.5)
        CHECK_EQ(hf_spread_percentile(seen, percent),
                 hf_spread_percentile(expected, percent));
    CHECK_EQ(hf_spread_subtract(seen, expected), HF_OK);
    CHECK_EQ(stats_of(seen).count, 0);
    hf_spread_close(seen);
    hf_spread_close(expected);
    hf_histogram_close(histogram);
}

TEST(intervals_add_up_for_each_reader)
{
    struct hf_histogram *histogram;
    struct hf_spread *total;

    CHECK_EQ(hf_histogram_open(&histogram, NULL), HF_OK);
    CHECK_EQ(hf_spread_open(&total, NULL), HF_OK);
    struct hf_spread *last = spread_for(histogram);
    struct hf_spread *since = spread_for(histogram);
    struct hf_spread *other_last = spread_for(histogram);
    struct hf_spread *other = spread_for(histogram);
    for (uint64_t i = 0; i < 1000; i++) {
        hf_histogram_record(histogram, i * i);
        if (i % 7 != 0)
            continue;
        CHECK_EQ(hf_histogram_interval(histogram, last, since), HF_OK);
        CHECK_EQ(stats_of(since).count, i == 0 ? 1 : 7);
        CHECK_EQ(stats_of(since).max, i * i); /* exact: the largest so far */
        CHECK_EQ(hf_spread_add(total, since), HF_OK);
        if (i % 14 == 0)
            CHECK_EQ(hf_histogram_interval(histogram, other_last, other),
                     HF_OK);
    }
    CHECK_EQ(hf_histogram_interval(histogram, last, since), HF_OK);
    CHECK_EQ(hf_spread_add(total, since), HF_OK);
    CHECK_EQ(stats_of(total).count, 1000);
    CHECK_EQ(stats_of(total).sum, 999u * 1000 * 1999 / 6);
    CHECK_EQ(hf_histogram_interval(histogram, last, since), HF_OK);
    CHECK_EQ(stats_of(since).count, 0);
    CHECK_EQ(stats_of(last).count, 1000);
    CHECK_EQ(stats_of(last).min, 0);
    CHECK_EQ(stats_of(last).max, 999 * 999);
    hf_spread_close(last);
    hf_spread_close(since);
    hf_spread_close(other_last);
    hf_spread_close(other);
    hf_spread_close(total);
    hf_histogram_close(histogram);
}

static void record_some(void *context, int index)
{
    for (uint64_t i = 0; i < 1000; i++)
        hf_histogram_record(context, (uint64_t)index * 1000 + i);
}

TEST(threads_have_counts_of_their_own)
{
    struct hf_histogram *histogram;
    struct hf_histogram_stats stats;

    CHECK_EQ(hf_histogram_open(&histogram, NULL), HF_OK);
    test_threads(20, record_some, histogram); /* beyond the first 16 slots */
    hf_histogram_stats(histogram, &stats);
    CHECK_EQ(stats.count, 20000);
    CHECK_EQ(stats.sum, UINT64_C(20000) * 19999 / 2);
    CHECK_EQ(stats.min, 0);
    CHECK_EQ(stats.max, 19999);
    CHECK(stats.threads > 0 && stats.threads <= 21);
    CHECK(stats.memory_bytes > 0);
    hf_histogram_close(histogram);
}

/* Whatever allocation fails, nothing is lost; only percentiles get coarse. */
TEST(without_memory_count_sum_min_and_max_stay_exact)
{
    uint64_t coarse = 0;

    for (uint64_t fail = 0; fail < 20; fail++) {
        struct hf_histogram *histogram;
        struct hf_histogram_stats stats;
        CHECK_EQ(hf_histogram_open(&histogram, NULL), HF_OK);
        hf_memory_fail_after(fail);
        for (uint64_t value = 1; value < 1000000; value *= 3)
            hf_histogram_record(histogram, value);
        hf_memory_fail_never();
        hf_histogram_stats(histogram, &stats);
        CHECK_EQ(stats.count, 13);
        CHECK_EQ(stats.sum, 797161);
        CHECK_EQ(stats.min, 1);
        CHECK_EQ(stats.max, 531441);
        coarse += stats.coarse;
        struct hf_spread *seen = spread_for(histogram);
        CHECK_EQ(hf_histogram_read(histogram, seen), HF_OK);
        CHECK_EQ(stats_of(seen).count, 13);
        CHECK_EQ(stats_of(seen).sum, 797161);
        CHECK_EQ(stats_of(seen).min, 1);
        CHECK_EQ(stats_of(seen).max, 531441);
        CHECK(hf_spread_percentile(seen, 50) >= 729);
        CHECK(hf_spread_percentile(seen, 50) < 1024 * 2);
        hf_spread_close(seen);
        hf_histogram_close(histogram);
    }
    CHECK(coarse > 0);
}

TEST(a_reading_that_finds_no_memory_takes_nothing)
{
    struct hf_histogram *histogram;

    CHECK_EQ(hf_histogram_open(&histogram, NULL), HF_OK);
    for (uint64_t value = 1; value < 1000000; value *= 3)
        hf_histogram_record(histogram, value);
    for (uint64_t fail = 0;; fail++) {
        struct hf_spread *last = spread_for(histogram);
        struct hf_spread *since = spread_for(histogram);
        hf_memory_fail_after(fail);
        enum hf_status status = hf_histogram_interval(histogram, last, since);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
        if (status) {
            CHECK_EQ(stats_of(last).count, 0);
            CHECK_EQ(hf_histogram_interval(histogram, last, since), HF_OK);
        }
        CHECK_EQ(stats_of(since).count, 13);
        hf_spread_close(last);
        hf_spread_close(since);
        if (!status)
            break;
    }
    hf_histogram_close(histogram);
}

TEST(open_needs_memory)
{
    struct hf_histogram *histogram = NULL;

    for (uint64_t fail = 0;; fail++) {
        hf_memory_fail_after(fail);
        enum hf_status status = hf_histogram_open(&histogram, NULL);
        hf_memory_fail_never();
        if (!status)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK(histogram == NULL);
    }
    hf_histogram_close(histogram);
}

TEST(a_timer_measures_by_its_clock)
{
    struct test_clock hands = {.now_ns = 1000};
    struct hf_histogram *histogram;
    struct hf_histogram_stats stats;
    struct hf_timer timer;

    CHECK_EQ(hf_histogram_open(&histogram, NULL), HF_OK);
    hf_timer_start(&timer, histogram, test_clock(&hands));
    test_clock_advance(&hands, 250);
    CHECK_EQ(hf_timer_stop(&timer), 250);
    test_clock_advance(&hands, 50);
    CHECK_EQ(hf_timer_stop(&timer), 300);
    hands.now_ns = 5; /* a clock that went back */
    CHECK_EQ(hf_timer_stop(&timer), 0);
    hf_histogram_stats(histogram, &stats);
    CHECK_EQ(stats.count, 3);
    CHECK_EQ(stats.sum, 550);
    hf_timer_start(&timer, NULL, NULL);
    (void)hf_timer_stop(&timer);
    hf_timer_start(NULL, NULL, NULL);
    CHECK_EQ(hf_timer_stop(NULL), 0);
    hf_histogram_close(histogram);
}

static uint64_t listed;

static void look(void *context, const struct hf_inspect_row *row)
{
    (void)context;
    if (!strcmp(row->kind, "histogram") && !strcmp(row->name, "times"))
        listed = row->depth;
}

TEST(it_is_listed_by_its_name)
{
    struct hf_histogram *histogram;
    struct hf_histogram_opts opts = {.name = "times", .spread = {.digits = 3}};

    CHECK_EQ(hf_histogram_open(&histogram, &opts), HF_OK);
    hf_histogram_record(histogram, 5);
    CHECK_EQ(hf_inspect(look, NULL), HF_OK);
    CHECK_EQ(listed, 1);
    hf_histogram_close(histogram);
}

TEST(bad_input_is_refused)
{
    struct hf_histogram *histogram = NULL;
    struct hf_histogram_opts opts = {.spread = {.digits = 9}};
    struct hf_spread *spread;
    struct hf_histogram_stats stats;

    CHECK_EQ(hf_histogram_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_histogram_open(&histogram, &opts), HF_INVALID);
    CHECK(histogram == NULL);
    hf_histogram_record(NULL, 1);
    hf_histogram_stats(NULL, &stats);
    hf_histogram_close(NULL);
    CHECK_EQ(hf_histogram_open(&histogram, NULL), HF_OK);
    hf_histogram_stats(histogram, NULL);
    CHECK_EQ(hf_spread_open(&spread, &opts.spread), HF_INVALID);
    opts.spread.digits = 3;
    CHECK_EQ(hf_spread_open(&spread, &opts.spread), HF_OK);
    CHECK_EQ(hf_histogram_read(histogram, spread), HF_INVALID);
    CHECK_EQ(hf_histogram_read(histogram, NULL), HF_INVALID);
    CHECK_EQ(hf_histogram_read(NULL, spread), HF_INVALID);
    CHECK_EQ(hf_histogram_spread(NULL, &spread), HF_INVALID);
    CHECK_EQ(hf_histogram_spread(histogram, NULL), HF_INVALID);
    CHECK_EQ(hf_histogram_interval(histogram, NULL, spread), HF_INVALID);
    CHECK_EQ(hf_histogram_interval(histogram, spread, spread), HF_INVALID);
    struct hf_spread *fits = spread_for(histogram);
    CHECK_EQ(hf_histogram_interval(histogram, spread, fits), HF_INVALID);
    hf_spread_close(fits);
    hf_spread_close(spread);
    hf_histogram_close(histogram);
}
