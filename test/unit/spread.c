/* spread.c - tests of counts by place: precision, arithmetic, encoding. */
#include "holdfast/spread.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/random.h"
#include "support/test.h"

TEST_ONE_THREAD;

#define HOUR_NS UINT64_C(3600000000000)

static struct hf_spread *open_spread(uint32_t digits, uint64_t lowest,
                                     uint64_t highest)
{
    struct hf_spread *spread;
    struct hf_spread_opts opts = {digits, lowest, highest};

    CHECK_EQ(hf_spread_open(&spread, &opts), HF_OK);
    return spread;
}

static struct hf_spread_stats stats_of(const struct hf_spread *spread)
{
    struct hf_spread_stats stats;

    hf_spread_stats(spread, &stats);
    return stats;
}

TEST(an_empty_one_has_nothing)
{
    struct hf_spread *spread = open_spread(0, 0, 0);

    CHECK_EQ(hf_spread_percentile(spread, 50), 0);
    CHECK_EQ(hf_spread_at_most(spread, UINT64_MAX), 0);
    CHECK_EQ(stats_of(spread).count, 0);
    CHECK_EQ(stats_of(spread).min, 0);
    CHECK_EQ(stats_of(spread).max, 0);
    hf_spread_close(spread);
}

TEST(one_value_is_every_percentile)
{
    struct hf_spread *spread = open_spread(0, 0, 0);

    CHECK_EQ(hf_spread_record(spread, 123456789, 1), HF_OK);
    CHECK_EQ(hf_spread_percentile(spread, 0), 123456789);
    CHECK_EQ(hf_spread_percentile(spread, 50), 123456789);
    CHECK_EQ(hf_spread_percentile(spread, 100), 123456789);
    hf_spread_close(spread);
}

TEST(ranks_are_exact_where_places_are)
{
    struct hf_spread *spread = open_spread(3, 0, 0);

    for (uint64_t value = 1; value <= 1000; value++)
        CHECK_EQ(hf_spread_record(spread, value, 1), HF_OK);
    CHECK_EQ(hf_spread_percentile(spread, 0), 1);
    CHECK_EQ(hf_spread_percentile(spread, 0.1), 1);
    CHECK_EQ(hf_spread_percentile(spread, 0.11), 2);
    CHECK_EQ(hf_spread_percentile(spread, 50), 500);
    CHECK_EQ(hf_spread_percentile(spread, 99), 990);
    CHECK_EQ(hf_spread_percentile(spread, 99.9), 999);
    CHECK_EQ(hf_spread_percentile(spread, 99.91), 1000);
    CHECK_EQ(hf_spread_percentile(spread, 100), 1000);
    CHECK_EQ(hf_spread_percentile(spread, NAN), 1);
    CHECK_EQ(hf_spread_percentile(spread, -5), 1);
    CHECK_EQ(hf_spread_percentile(spread, 500), 1000);
    CHECK_EQ(hf_spread_at_most(spread, 0), 0);
    CHECK_EQ(hf_spread_at_most(spread, 1), 1);
    CHECK_EQ(hf_spread_at_most(spread, 999), 999);
    CHECK_EQ(hf_spread_at_most(spread, 1000), 1000);
    hf_spread_close(spread);
}

/* Many shapes, from flat to very long tails. */
static uint64_t draw(struct hf_random *random, int shape)
{
    double u = (double)(hf_random_next(random) >> 11) / 9007199254740992.0;

    switch (shape) {
    case 0:
        return hf_random_below(random, 1000);
    case 1:
        return hf_random_below(random, HOUR_NS);
    case 2: /* exponential */
        return (uint64_t)(-log(1 - u) * 1e6);
    case 3: /* Pareto */
        return (uint64_t)fmin(1000 / pow(1 - u, 1 / 1.1), 3.5e12);
    case 4: /* log-uniform */
        return (uint64_t)exp(u * log(3.5e12));
    case 5: /* two humps */
        return hf_random_below(random, 10) < 9
                   ? 5000 + hf_random_below(random, 100)
                   : 80000000 + hf_random_below(random, 1000000);
    case 6: /* powers of two and their neighbours */
        return (UINT64_C(1) << hf_random_below(random, 41)) +
               hf_random_below(random, 3) - 1;
    default: /* mostly one value */
        return u < 0.999 ? 777777 : hf_random_below(random, HOUR_NS);
    }
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a;
    uint64_t y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

TEST(percentiles_are_as_precise_as_promised)
{
    enum { COUNT = 20000 };
    static const double percents[] = {0.01, 1,  10, 25,   50,   75,
                                      90,   95, 99, 99.9, 99.99};
    static uint64_t values[COUNT];
    struct hf_random random;
    double parts = 1;

    hf_random_init(&random, test_seed());
    for (uint32_t digits = 1; digits <= 4; digits++) {
        parts *= 10;
        for (int shape = 0; shape < 8; shape++) {
            struct hf_spread *spread = open_spread(digits, 1, HOUR_NS);
            uint64_t sum = 0;
            for (int i = 0; i < COUNT; i++) {
                values[i] = draw(&random, shape);
                sum += values[i];
                CHECK_EQ(hf_spread_record(spread, values[i], 1), HF_OK);
            }
            qsort(values, COUNT, sizeof values[0], ascending);
            CHECK_EQ(stats_of(spread).count, COUNT);
            CHECK_EQ(stats_of(spread).sum, sum);
            CHECK_EQ(stats_of(spread).min, values[0]);
            CHECK_EQ(stats_of(spread).max, values[COUNT - 1]);
            for (size_t p = 0; p < sizeof percents / sizeof percents[0]; p++) {
                int rank = (int)ceil(percents[p] * COUNT / 100 - 1e-6);
                uint64_t exact = values[rank - 1];
                uint64_t told = hf_spread_percentile(spread, percents[p]);
                CHECK(told >= exact);
                CHECK((double)(told - exact) <= (double)exact / parts);
            }
            hf_spread_close(spread);
        }
    }
}

TEST(the_unit_is_the_lowest_value_of_interest)
{
    struct hf_spread *spread = open_spread(2, 1000, HOUR_NS);

    /* Below 256 units (of 512) all is told to the unit. */
    CHECK_EQ(hf_spread_record(spread, 100000, 1), HF_OK);
    CHECK_EQ(hf_spread_record(spread, 1000000, 1), HF_OK);
    CHECK(hf_spread_percentile(spread, 50) - 100000 < 512);
    hf_spread_close(spread);
}

TEST(what_is_beyond_the_end_is_counted_last)
{
    struct hf_spread *spread = open_spread(2, 1, 1000);

    CHECK_EQ(hf_spread_record(spread, 5, 1), HF_OK);
    CHECK_EQ(hf_spread_record(spread, UINT64_MAX / 4, 2), HF_OK);
    CHECK_EQ(stats_of(spread).count, 3);
    CHECK_EQ(stats_of(spread).max, UINT64_MAX / 4);
    CHECK_EQ(stats_of(spread).sum, 5 + UINT64_MAX / 4 * 2);
    CHECK(hf_spread_percentile(spread, 90) >= 1000);
    CHECK_EQ(hf_spread_percentile(spread, 100), UINT64_MAX / 4);
    CHECK_EQ(hf_spread_at_most(spread, 5000), 1);
    hf_spread_close(spread);
}

TEST(every_value_lies_in_its_place)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (uint32_t digits = 1; digits <= 4; digits++) {
        struct hf_spread *spread =
            open_spread(digits, 1, HF_SPREAD_HIGHEST_MAX);
        for (int i = 0; i < 20000; i++) {
            uint64_t value =
                hf_random_next(&random) >> (1 + hf_random_below(&random, 62));
            hf_spread_reset(spread);
            CHECK_EQ(hf_spread_record(spread, value, 1), HF_OK);
            CHECK_EQ(hf_spread_record(spread, HF_SPREAD_HIGHEST_MAX, 1), HF_OK);
            uint64_t told = hf_spread_percentile(spread, 50);
            CHECK(told >= value);
            CHECK((double)(told - value) <= (double)value / pow(10, digits));
            CHECK_EQ(hf_spread_at_most(spread, told),
                     told == value || told < HF_SPREAD_HIGHEST_MAX ? 1 : 2);
            if (i % 20 == 0)
                continue;
            CHECK_EQ(hf_spread_at_most(spread, value - (value > 0)),
                     value == 0);
            if (i > 500 && digits == 4)
                break; /* a reset clears all that was touched */
        }
        hf_spread_close(spread);
    }
}

TEST(merge_and_subtract)
{
    struct hf_spread *a = open_spread(2, 1, HOUR_NS);
    struct hf_spread *b = open_spread(2, 1, HOUR_NS);
    struct hf_spread *other = open_spread(3, 1, HOUR_NS);
    struct hf_random random;
    uint64_t sum = 0;

    hf_random_init(&random, test_seed());
    for (int i = 0; i < 1000; i++) {
        uint64_t value = draw(&random, 4);
        CHECK_EQ(hf_spread_record(i % 2 ? a : b, value, 1), HF_OK);
        sum += value;
    }
    uint64_t of_a = stats_of(a).sum;
    uint64_t most = stats_of(a).max;
    CHECK_EQ(hf_spread_add(a, b), HF_OK);
    CHECK_EQ(stats_of(a).count, 1000);
    CHECK_EQ(stats_of(a).sum, sum);
    CHECK_EQ(hf_spread_subtract(a, b), HF_OK);
    CHECK_EQ(stats_of(a).count, 500);
    CHECK_EQ(stats_of(a).sum, of_a);
    CHECK((double)stats_of(a).max <= (double)most * 1.01);
    CHECK(stats_of(a).max >= most);
    /* Not a part of it: nothing changes. */
    CHECK_EQ(hf_spread_record(b, 1, 1000), HF_OK);
    CHECK_EQ(hf_spread_subtract(a, b), HF_INVALID);
    CHECK_EQ(stats_of(a).count, 500);
    CHECK_EQ(hf_spread_subtract(a, other), HF_INVALID);
    /* Another precision: counts and sums are kept. */
    CHECK_EQ(hf_spread_add(other, a), HF_OK);
    CHECK_EQ(stats_of(other).count, 500);
    CHECK_EQ(stats_of(other).sum, of_a);
    double told = (double)hf_spread_percentile(a, 90);
    CHECK(fabs((double)hf_spread_percentile(other, 90) - told) <=
          told / 1000 + 1);
    CHECK_EQ(hf_spread_subtract(a, a), HF_OK);
    CHECK_EQ(stats_of(a).count, 0);
    CHECK_EQ(stats_of(a).max, 0);
    hf_spread_close(a);
    hf_spread_close(b);
    hf_spread_close(other);
}

static uint64_t visited;
static uint64_t visited_end;

static void visit(void *context, uint64_t low, uint64_t high, uint64_t count)
{
    (void)context;
    if (low > high || low < visited_end)
        visited += 1000000;
    visited += count;
    visited_end = high;
}

TEST(places_are_visited_in_order)
{
    struct hf_spread *spread = open_spread(1, 1, 100000);

    visited = visited_end = 0;
    for (uint64_t value = 0; value < 100000; value += 7)
        CHECK_EQ(hf_spread_record(spread, value, 2), HF_OK);
    hf_spread_visit(spread, visit, NULL);
    CHECK_EQ(visited, stats_of(spread).count);
    hf_spread_visit(spread, NULL, NULL);
    hf_spread_visit(NULL, visit, NULL);
    hf_spread_close(spread);
}

/* What HdrHistogram 2.1.11 for Java made of the same values. */
static const char golden_empty[] = "1c84931300000001000000000000000200000000"
                                   "000000010000034630b8a0003ff00000000000000"
                                   "0";
static const char golden_two[] =
    "1c84931300000017000000000000000200000000000000010000034630b8a0003ff00000"
    "00000000020202930180c8afa025e1020204f10306df2102c91d02";
static const char golden_three[] =
    "1c84931300000006000000000000000300000000000003e800000002540be4003ff00000"
    "000000000c06b18d0102";
static const char golden_one[] =
    "1c849313000000a30000000000000001000000000000000100000000000186a03ff00000"
    "000000000202030207020b020f020f0209020d0205020702070205020302030205020502"
    "000200020002030200020302000200020200020200020002000200020002020202020202"
    "020002020202000202020204020204020202020202020202020404040404040204020404"
    "020402040206040606040604040604040404040404080808080608060606080606060606"
    "060a0a0c0a0a0a0a080a080a080808080810100e100e0e";
static const char golden_four[] =
    "1c8493130000000a000000000000000400000000000000017fffffffffffffff3ff00000"
    "000000000d0295e73c02d5982702";
static const char golden_odd[] =
    "1c849313000000050000000000000002000000000000000300000000000000c83ff00000"
    "000000000302bf0102";

static const uint64_t golden_values[] = {
    0, 1, 2, 255, 256, 257, 1000, 1000, 1000, 123456789, HOUR_NS};

static void check_golden(struct hf_spread *spread, const char *golden)
{
    unsigned char bytes[1000];
    char text[2001];
    size_t len;
    size_t needed;
    struct hf_spread *decoded;

    CHECK_EQ(hf_spread_encode(spread, NULL, 0, &needed), HF_FULL);
    CHECK_EQ(hf_spread_encode(spread, bytes, needed - 1, &len), HF_FULL);
    CHECK_EQ(hf_spread_encode(spread, bytes, needed, &len), HF_OK);
    CHECK_EQ(len, needed);
    for (size_t i = 0; i < len; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    CHECK_TEXT(text, 2 * len, golden);
    CHECK_EQ(hf_spread_decode(&decoded, bytes, len), HF_OK);
    CHECK_EQ(stats_of(decoded).count, stats_of(spread).count);
    for (double percent = 10; percent < 100; percent += 10)
        CHECK_EQ(hf_spread_percentile(decoded, percent) >=
                     hf_spread_percentile(spread, percent),
                 true);
    CHECK_EQ(hf_spread_subtract(spread, decoded), HF_OK);
    CHECK_EQ(stats_of(spread).count, 0);
    hf_spread_close(decoded);
    hf_spread_close(spread);
}

TEST(encodes_as_HdrHistogram_does)
{
    struct hf_spread *spread = open_spread(2, 1, HOUR_NS);

    check_golden(spread, golden_empty);
    spread = open_spread(2, 1, HOUR_NS);
    for (size_t i = 0; i < 11; i++)
        CHECK_EQ(hf_spread_record(spread, golden_values[i], 1), HF_OK);
    CHECK_EQ(hf_spread_record(spread, 77, UINT64_C(5000000000)), HF_OK);
    check_golden(spread, golden_two);
    spread = open_spread(3, 1000, UINT64_C(10000000000));
    for (size_t i = 0; i < 10; i++)
        CHECK_EQ(hf_spread_record(spread, golden_values[i], 1), HF_OK);
    check_golden(spread, golden_three);
    spread = open_spread(1, 1, 100000);
    for (uint64_t i = 0; i <= 300; i++)
        CHECK_EQ(hf_spread_record(spread, i * i, 1), HF_OK);
    check_golden(spread, golden_one);
    spread = open_spread(4, 1, HF_SPREAD_HIGHEST_MAX);
    CHECK_EQ(hf_spread_record(spread, HF_SPREAD_HIGHEST_MAX, 1), HF_OK);
    CHECK_EQ(hf_spread_record(spread, UINT64_C(12345678901234), 1), HF_OK);
    CHECK_EQ(hf_spread_record(spread, 7, 1), HF_OK);
    check_golden(spread, golden_four);
    spread = open_spread(2, 3, 200);
    CHECK_EQ(hf_spread_record(spread, 199, 1), HF_OK);
    CHECK_EQ(hf_spread_record(spread, 5, 1), HF_OK);
    check_golden(spread, golden_odd);
}

TEST(damaged_bytes_are_refused)
{
    struct hf_spread *spread = open_spread(2, 1, HOUR_NS);
    struct hf_spread *decoded;
    unsigned char bytes[200];
    unsigned char damaged[200];
    struct hf_random random;
    size_t len;

    hf_random_init(&random, test_seed());
    for (size_t i = 0; i < 11; i++)
        CHECK_EQ(hf_spread_record(spread, golden_values[i], 1), HF_OK);
    CHECK_EQ(hf_spread_encode(spread, bytes, sizeof bytes, &len), HF_OK);
    for (size_t cut = 0; cut < len; cut++)
        CHECK_EQ(hf_spread_decode(&decoded, bytes, cut), HF_CORRUPT);
    CHECK_EQ(hf_spread_decode(&decoded, bytes, len + 1), HF_CORRUPT);
    for (int i = 0; i < 20000; i++) { /* no crash, whatever the bytes are */
        memcpy(damaged, bytes, len);
        for (int n = 0; n < 3; n++)
            damaged[hf_random_below(&random, len)] =
                (unsigned char)hf_random_next(&random);
        if (hf_spread_decode(&decoded, damaged, len) == HF_OK) {
            (void)hf_spread_percentile(decoded, 99);
            hf_spread_close(decoded);
        }
    }
    /* A run of zeroes that passes the end; a number that does not end. */
    memcpy(damaged, bytes, 40);
    memset(damaged + 40, 0xff, 9);
    damaged[7] = 9;
    CHECK_EQ(hf_spread_decode(&decoded, damaged, 49), HF_CORRUPT);
    damaged[7] = 1;
    CHECK_EQ(hf_spread_decode(&decoded, damaged, 41), HF_CORRUPT);
    /* Counts too large for the encoding. */
    CHECK_EQ(hf_spread_record(spread, 3, UINT64_MAX / 2), HF_OK);
    CHECK_EQ(hf_spread_encode(spread, bytes, sizeof bytes, &len), HF_INVALID);
    hf_spread_close(spread);
}

TEST(bad_input_is_refused)
{
    struct hf_spread *spread = NULL;
    size_t len;

    CHECK_EQ(hf_spread_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_spread_open(&spread, &(struct hf_spread_opts){5, 0, 0}),
             HF_INVALID);
    CHECK_EQ(hf_spread_open(&spread, &(struct hf_spread_opts){0, 10, 19}),
             HF_INVALID);
    CHECK_EQ(hf_spread_open(&spread,
                            &(struct hf_spread_opts){0, 0, UINT64_MAX / 2 + 1}),
             HF_INVALID);
    CHECK_EQ(hf_spread_open(
                 &spread, &(struct hf_spread_opts){4, 1ull << 50, 1ull << 60}),
             HF_INVALID);
    CHECK(spread == NULL);
    CHECK_EQ(hf_spread_record(NULL, 1, 1), HF_INVALID);
    CHECK_EQ(hf_spread_add(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_spread_subtract(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_spread_percentile(NULL, 50), 0);
    CHECK_EQ(hf_spread_at_most(NULL, 50), 0);
    CHECK_EQ(hf_spread_encode(NULL, NULL, 0, &len), HF_INVALID);
    CHECK_EQ(hf_spread_decode(NULL, "", 0), HF_INVALID);
    CHECK_EQ(hf_spread_decode(&spread, NULL, 0), HF_INVALID);
    hf_spread_reset(NULL);
    hf_spread_stats(NULL, NULL);
    hf_spread_close(NULL);
    spread = open_spread(0, 0, 0);
    CHECK_EQ(hf_spread_record(spread, 1, 0), HF_OK);
    CHECK_EQ(stats_of(spread).count, 0);
    CHECK_EQ(hf_spread_encode(spread, NULL, 5, &len), HF_INVALID);
    CHECK_EQ(hf_spread_encode(spread, NULL, 0, NULL), HF_INVALID);
    hf_spread_close(spread);
}

TEST(without_memory_nothing_changes)
{
    struct hf_spread *spread;
    struct hf_spread *from = open_spread(2, 1, HOUR_NS);
    struct hf_spread *fine = open_spread(3, 1, HOUR_NS);
    unsigned char bytes[200];
    size_t len;
    enum hf_status status;

    for (size_t i = 0; i < 11; i++)
        CHECK_EQ(hf_spread_record(from, golden_values[i], 1), HF_OK);
    CHECK_EQ(hf_spread_encode(from, bytes, sizeof bytes, &len), HF_OK);
    for (int what = 0; what < 3; what++)
        for (uint64_t fail = 0;; fail++) {
            spread = open_spread(2, 1, HOUR_NS);
            hf_memory_fail_after(fail);
            if (what == 0)
                status = hf_spread_add(spread, from);
            else if (what == 1)
                status = hf_spread_add(fine, from);
            else
                status = hf_spread_record(spread, 5, 1);
            hf_memory_fail_never();
            CHECK(status == HF_OK || status == HF_NOMEM);
            if (status)
                CHECK_EQ(stats_of(what == 1 ? fine : spread).count, 0);
            hf_spread_close(spread);
            if (!status)
                break;
        }
    for (uint64_t fail = 0;; fail++) {
        struct hf_spread *decoded = NULL;
        hf_memory_fail_after(fail);
        status = hf_spread_decode(&decoded, bytes, len);
        hf_memory_fail_never();
        hf_spread_close(decoded);
        if (!status)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK(decoded == NULL);
    }
    hf_spread_close(from);
    hf_spread_close(fine);
}
