/* histogram.c - tests of the log-linear histogram. */
#include "cli/histogram.h"

#include "base/random.h"
#include "support/test.h"

static struct histogram histogram;

TEST(nothing_seen_is_zero)
{
    histogram_reset(&histogram);
    CHECK_EQ(histogram_at(&histogram, 500), 0);
    CHECK_EQ(histogram.max, 0);
}

TEST(one_value_is_every_percentile)
{
    histogram_reset(&histogram);
    histogram_add(&histogram, 123456789);
    CHECK_EQ(histogram_at(&histogram, 0), 123456789);
    CHECK_EQ(histogram_at(&histogram, 500), 123456789);
    CHECK_EQ(histogram_at(&histogram, 1000), 123456789);
    CHECK_EQ(histogram.total, 1);
}

TEST(small_values_are_exact)
{
    histogram_reset(&histogram);
    for (uint64_t value = 1; value <= 100; value++)
        histogram_add(&histogram, value);
    CHECK_EQ(histogram_at(&histogram, 10), 1);
    CHECK_EQ(histogram_at(&histogram, 500), 50);
    CHECK_EQ(histogram_at(&histogram, 990), 99);
    CHECK_EQ(histogram_at(&histogram, 999), 100);
    CHECK_EQ(histogram_at(&histogram, 1000), 100);
}

TEST(every_value_is_told_to_within_two_percent)
{
    struct hf_random random;
    hf_random_init(&random, test_seed());
    for (int i = 0; i < 20000; i++) {
        uint64_t value = hf_random_next(&random) >> (22 + i % 42);
        histogram_reset(&histogram);
        histogram_add(&histogram, value);
        histogram_add(&histogram, UINT64_MAX >> 22); /* so that max is far */
        uint64_t told = histogram_at(&histogram, 500);
        CHECK(told >= value);
        CHECK(told - value <= value / 50);
    }
}

TEST(values_at_the_edges_of_slots_keep_their_order)
{
    uint64_t before = 0;
    for (int bit = 0; bit < 42; bit++) {
        for (int64_t step = -1; step <= 1; step++) {
            uint64_t value = ((uint64_t)1 << bit) + (uint64_t)step;
            histogram_reset(&histogram);
            histogram_add(&histogram, value);
            histogram_add(&histogram, (uint64_t)1 << 41);
            uint64_t told = histogram_at(&histogram, 500);
            CHECK(told >= value || value >= (uint64_t)1 << 41);
            if (bit > 1)
                CHECK(told >= before);
            before = told;
        }
    }
}

TEST(what_is_too_long_counts_as_the_longest)
{
    histogram_reset(&histogram);
    histogram_add(&histogram, UINT64_MAX);
    histogram_add(&histogram, (uint64_t)1 << HISTOGRAM_BITS);
    CHECK_EQ(histogram.total, 2);
    CHECK_EQ(histogram.max, (int64_t)UINT64_MAX);
    CHECK(histogram_at(&histogram, 1000) >= ((uint64_t)1 << 42) - 1);
}
