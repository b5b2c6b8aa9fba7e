/* meter.c - tests of the registry: names, kinds and bounds. */
#include "holdfast/meter.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "support/metering.h"
#include "support/test.h"

TEST(the_same_name_and_labels_are_the_same_series)
{
    struct hf_meter *meter = open_meter();
    struct hf_label ab[] = {{"a", "1"}, {"b", "2"}};
    struct hf_label ba[] = {{"b", "2"}, {"a", "1"}};
    struct hf_label abc[] = {{"a", "1"}, {"c", ""}, {"b", "2"}};
    struct hf_metric metric = {.name = "x", .labels = ab, .label_count = 2};
    struct hf_counter *first;
    struct hf_counter *again;
    struct hf_counter *other;

    CHECK_EQ(hf_meter_counter(meter, &metric, &first), HF_OK);
    metric.labels = ba;
    CHECK_EQ(hf_meter_counter(meter, &metric, &again), HF_OK);
    CHECK(first == again);
    metric.labels = abc;
    metric.label_count = 3;
    CHECK_EQ(hf_meter_counter(meter, &metric, &again), HF_OK);
    CHECK(first == again);
    metric.labels = ab;
    metric.label_count = 1;
    CHECK_EQ(hf_meter_counter(meter, &metric, &other), HF_OK);
    CHECK(first != other);
    hf_counter_add(first, 3);
    CHECK_EQ(hf_counter_value(first), 3);
    CHECK_EQ(hf_counter_value(other), 0);
    struct hf_meter_stats stats;
    hf_meter_stats(meter, &stats);
    CHECK_EQ(stats.families, 1);
    CHECK_EQ(stats.series, 2);
    hf_meter_close(meter);
}

TEST(a_name_has_one_kind)
{
    struct hf_meter *meter = open_meter();
    struct hf_metric x = {.name = "x"};
    struct hf_metric h = {.name = "h"};
    struct hf_metric s = {.name = "s"};
    struct hf_counter *c;
    struct hf_gauge *g;
    struct hf_histogram *histogram;
    struct hf_window *window;

    CHECK_EQ(hf_meter_counter(meter, &x, &c), HF_OK);
    CHECK_EQ(hf_meter_gauge(meter, &x, &g), HF_EXISTS);
    CHECK_EQ(hf_meter_histogram(meter, &x, &histogram), HF_EXISTS);
    CHECK_EQ(hf_meter_window(meter, &x, NULL, &window), HF_EXISTS);
    CHECK_EQ(hf_meter_histogram(meter, &h, &histogram), HF_OK);
    CHECK_EQ(counter(meter, "h_count", NULL, NULL, &c), HF_EXISTS);
    CHECK_EQ(counter(meter, "h_sum", "a", "b", &c), HF_EXISTS);
    CHECK_EQ(counter(meter, "h_bucket", NULL, NULL, &c), HF_EXISTS);
    CHECK_EQ(counter(meter, "y_sum", NULL, NULL, &c), HF_OK);
    struct hf_metric y = {.name = "y"};
    CHECK_EQ(hf_meter_histogram(meter, &y, &histogram), HF_EXISTS);
    CHECK_EQ(hf_meter_window(meter, &y, NULL, &window), HF_EXISTS);
    CHECK_EQ(hf_meter_window(meter, &s, NULL, &window), HF_OK);
    CHECK_EQ(counter(meter, "s_bucket", NULL, NULL, &c), HF_OK);
    CHECK_EQ(counter(meter, "s_count", NULL, NULL, &c), HF_EXISTS);
    CHECK_EQ(counter(meter, "holdfast_object_depth", NULL, NULL, &c),
             HF_EXISTS);
    hf_meter_close(meter);
}

TEST(names_and_labels_follow_the_rules)
{
    static const char *const good[] = {"a", "_", ":", "a:b_C9", "Z"};
    static const char *const bad[] = {"", "9a", "a-b", "a b", "\xc3\xa4", "a."};
    static const char *const bad_labels[] = {"",    "9",   "a:b", "__name__",
                                             "a-b", "__x", "a b"};
    static const char *const bad_values[] = {
        "\xff",        "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80",
        "\xe0\x80\x80"};
    struct hf_meter *meter = open_meter();
    struct hf_meter_stats stats;
    struct hf_counter *c = NULL;
    char *long_name = malloc(1002);

    for (size_t i = 0; i < 5; i++)
        CHECK_EQ(counter(meter, good[i], "_a", "\xc3\xa4\xf0\x9f\x98\x80", &c),
                 HF_OK);
    c = NULL;
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(counter(meter, bad[i], NULL, NULL, &c), HF_INVALID);
    for (size_t i = 0; i < 7; i++)
        CHECK_EQ(counter(meter, "x", bad_labels[i], "v", &c), HF_INVALID);
    for (size_t i = 0; i < 6; i++)
        CHECK_EQ(counter(meter, "x", "l", bad_values[i], &c), HF_INVALID);
    CHECK_EQ(counter(meter, "x", "l", NULL, &c), HF_INVALID);
    CHECK_EQ(counter(meter, NULL, NULL, NULL, &c), HF_INVALID);
    CHECK(long_name != NULL);
    memset(long_name, 'a', 1001);
    long_name[1001] = '\0';
    CHECK_EQ(counter(meter, long_name, NULL, NULL, &c), HF_INVALID);
    CHECK_EQ(counter(meter, "x", long_name, "v", &c), HF_INVALID);
    CHECK_EQ(counter(meter, "x", "l", long_name, &c), HF_INVALID);
    long_name[HF_METER_NAME_MAX + 1] = '\0';
    CHECK_EQ(counter(meter, long_name, NULL, NULL, &c), HF_INVALID);
    CHECK(c == NULL);
    hf_meter_stats(meter, &stats);
    CHECK_EQ(stats.series, 5);
    long_name[HF_METER_NAME_MAX] = '\0';
    CHECK_EQ(counter(meter, long_name, NULL, NULL, &c), HF_OK);
    free(long_name);
    hf_meter_close(meter);
}

TEST(labels_twice_too_many_or_reserved_are_refused)
{
    struct hf_meter *meter = open_meter();
    struct hf_label twice[] = {{"a", "1"}, {"b", "2"}, {"a", "3"}};
    struct hf_label many[HF_METER_LABELS_MAX + 1];
    struct hf_label le = {"le", "1"};
    struct hf_label quantile = {"quantile", "1"};
    struct hf_metric metric = {.name = "x", .labels = twice, .label_count = 3};
    struct hf_counter *c;
    struct hf_histogram *histogram;
    struct hf_window *window;

    CHECK_EQ(hf_meter_counter(meter, &metric, &c), HF_INVALID);
    for (size_t i = 0; i <= HF_METER_LABELS_MAX; i++)
        many[i] = (struct hf_label){"a", "1"};
    metric.labels = many;
    metric.label_count = HF_METER_LABELS_MAX + 1;
    CHECK_EQ(hf_meter_counter(meter, &metric, &c), HF_INVALID);
    metric.labels = NULL;
    metric.label_count = 1;
    CHECK_EQ(hf_meter_counter(meter, &metric, &c), HF_INVALID);
    metric.labels = &le;
    CHECK_EQ(hf_meter_histogram(meter, &metric, &histogram), HF_INVALID);
    CHECK_EQ(hf_meter_counter(meter, &metric, &c), HF_OK);
    metric.name = "y";
    metric.labels = &quantile;
    CHECK_EQ(hf_meter_window(meter, &metric, NULL, &window), HF_INVALID);
    CHECK_EQ(hf_meter_histogram(meter, &metric, &histogram), HF_OK);
    hf_meter_close(meter);
}

TEST(bounds_and_options_are_checked)
{
    struct hf_meter *meter = open_meter();
    uint64_t falling[] = {1, 3, 3};
    struct hf_metric metric = {
        .name = "x", .bounds = falling, .bound_count = 3};
    struct hf_histogram *histogram;
    struct hf_window *window;
    struct hf_counter *c;

    CHECK_EQ(hf_meter_histogram(meter, &metric, &histogram), HF_INVALID);
    metric.bounds = NULL;
    CHECK_EQ(hf_meter_histogram(meter, &metric, &histogram), HF_INVALID);
    metric.bound_count = 0;
    metric.spread.digits = 6;
    CHECK_EQ(hf_meter_histogram(meter, &metric, &histogram), HF_INVALID);
    metric.scale = -1;
    CHECK_EQ(hf_meter_counter(meter, &metric, &c), HF_INVALID);
    metric.scale = NAN;
    CHECK_EQ(hf_meter_counter(meter, &metric, &c), HF_INVALID);
    metric = (struct hf_metric){.name = "x"};
    CHECK_EQ(hf_meter_window(meter, &metric,
                             &(struct hf_window_opts){.slices = 100000},
                             &window),
             HF_INVALID);
    CHECK_EQ(hf_meter_window(meter, &metric, NULL, &window), HF_OK);
    hf_meter_close(meter);
}

TEST(a_family_takes_so_many_series)
{
    struct hf_meter *meter;
    struct hf_meter_stats stats;
    struct hf_meter_opts opts = {.series_max = 3};
    struct hf_counter *c;
    char value[10];

    CHECK_EQ(hf_meter_open(&meter, &opts), HF_OK);
    for (int i = 0; i < 10; i++) {
        snprintf(value, sizeof value, "%d", i);
        CHECK_EQ(counter(meter, "x", "l", value, &c), i < 3 ? HF_OK : HF_FULL);
        CHECK_EQ(counter(meter, "y", "l", "same", &c), HF_OK);
    }
    CHECK_EQ(counter(meter, "x", "l", "2", &c), HF_OK);
    hf_meter_stats(meter, &stats);
    CHECK_EQ(stats.series, 4);
    CHECK_EQ(stats.rejected, 7);
    hf_meter_close(meter);
}

static double answer(void *context)
{
    return *(double *)context;
}

TEST(gauges_are_set_added_to_or_asked)
{
    struct hf_meter *meter = open_meter();
    struct hf_metric g = {.name = "g"};
    struct hf_metric f = {.name = "f", .help = "Asked."};
    struct hf_gauge *gauge;
    double value = 2.5;

    CHECK_EQ(hf_meter_gauge(meter, &g, &gauge), HF_OK);
    hf_gauge_set(gauge, 5);
    hf_gauge_add(gauge, -7);
    CHECK_EQ(hf_gauge_value(gauge), -2);
    CHECK_EQ(hf_meter_call(meter, HF_METER_GAUGE, &f, answer, &value), HF_OK);
    CHECK_EQ(hf_meter_call(meter, HF_METER_GAUGE, &f, answer, &value),
             HF_EXISTS);
    CHECK_EQ(hf_meter_gauge(meter, &f, &gauge), HF_EXISTS);
    CHECK_EQ(hf_meter_call(meter, HF_METER_GAUGE, &g, answer, &value),
             HF_EXISTS);
    CHECK_EQ(hf_meter_call(meter, HF_METER_HISTOGRAM,
                           &(struct hf_metric){.name = "z"}, answer, NULL),
             HF_INVALID);
    char *text = text_of(meter, 0);
    CHECK_TEXT(text, strlen(text),
               "# TYPE g gauge\n"
               "g -2\n"
               "# HELP f Asked.\n"
               "# TYPE f gauge\n"
               "f 2.5\n");
    free(text);
    value = NAN;
    text = text_of(meter, 0);
    CHECK(strstr(text, "f NaN\n") != NULL);
    free(text);
    value = -INFINITY;
    text = text_of(meter, 0);
    CHECK(strstr(text, "f -Inf\n") != NULL);
    free(text);
    hf_meter_close(meter);
}

TEST(every_allocation_may_fail)
{
    struct hf_meter *meter;

    for (uint64_t fail = 0;; fail++) {
        meter = NULL;
        hf_memory_fail_after(fail);
        enum hf_status status = hf_meter_open(&meter, NULL);
        hf_memory_fail_never();
        if (!status)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK(meter == NULL);
    }
    for (uint64_t fail = 0;; fail++) {
        struct hf_label label = {"l", "v"};
        char name[20];
        snprintf(name, sizeof name, "h%llu", (unsigned long long)fail);
        struct hf_metric metric = {
            .name = name, .labels = &label, .label_count = 1};
        struct hf_histogram *histogram;
        struct hf_meter_stats before;
        struct hf_meter_stats after;
        hf_meter_stats(meter, &before);
        hf_memory_fail_after(fail);
        enum hf_status status = hf_meter_histogram(meter, &metric, &histogram);
        hf_memory_fail_never();
        hf_meter_stats(meter, &after);
        if (!status)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK_EQ(before.series, after.series);
        CHECK_EQ(before.families, after.families);
        /* No name was left behind. */
        metric.label_count = 0;
        struct hf_counter *c;
        struct hf_window *window;
        CHECK_EQ(hf_meter_counter(meter, &metric, &c), HF_OK);
        snprintf(name, sizeof name, "h%llu_sum", (unsigned long long)fail);
        CHECK_EQ(hf_meter_window(meter, &metric, NULL, &window), HF_OK);
        hf_window_record(window, 5, 0);
    }
    for (uint64_t fail = 0;; fail++) {
        hf_memory_fail_after(fail);
        size_t len = hf_meter_text(meter, HF_METER_OBJECTS, NULL, 0);
        hf_memory_fail_never();
        if (len > 0)
            break;
    }
    hf_meter_close(meter);
}

static void count_rows(void *context, const struct hf_meter_row *row)
{
    *(uint64_t *)context += row->kind == HF_METER_COUNTER ? row->count : 100;
}

TEST(rows_are_visited)
{
    struct hf_meter *meter = open_meter();
    struct hf_counter *c;
    struct hf_gauge *gauge;
    uint64_t total = 0;
    uint64_t last = 0;

    CHECK_EQ(counter(meter, "x", "l", "1", &c), HF_OK);
    hf_counter_add(c, 3);
    CHECK_EQ(counter(meter, "x", "l", "2", &c), HF_OK);
    hf_counter_add(c, 4);
    CHECK_EQ(hf_meter_gauge(meter, &(struct hf_metric){.name = "g"}, &gauge),
             HF_OK);
    CHECK_EQ(hf_meter_visit(meter, count_rows, &total), HF_OK);
    CHECK_EQ(total, 107);
    CHECK_EQ(hf_counter_interval(c, &last), 4);
    hf_counter_add(c, 5);
    CHECK_EQ(hf_counter_interval(c, &last), 5);
    CHECK_EQ(hf_counter_interval(c, &last), 0);
    hf_meter_close(meter);
}

TEST(bad_input_is_refused)
{
    struct hf_meter *meter = open_meter();
    struct hf_metric metric = {.name = "x"};
    struct hf_counter *c;
    struct hf_gauge *gauge;
    struct hf_histogram *histogram;
    struct hf_window *window;
    uint64_t last = 1;
    char text[4] = "abc";

    CHECK_EQ(hf_meter_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_counter(NULL, &metric, &c), HF_INVALID);
    CHECK_EQ(hf_meter_counter(meter, NULL, &c), HF_INVALID);
    CHECK_EQ(hf_meter_counter(meter, &metric, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_gauge(NULL, &metric, &gauge), HF_INVALID);
    CHECK_EQ(hf_meter_gauge(meter, &metric, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_histogram(NULL, &metric, &histogram), HF_INVALID);
    CHECK_EQ(hf_meter_histogram(meter, &metric, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_window(NULL, &metric, NULL, &window), HF_INVALID);
    CHECK_EQ(hf_meter_window(meter, &metric, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_call(NULL, HF_METER_GAUGE, &metric, answer, NULL),
             HF_INVALID);
    CHECK_EQ(hf_meter_call(meter, HF_METER_GAUGE, &metric, NULL, NULL),
             HF_INVALID);
    CHECK_EQ(hf_meter_visit(NULL, count_rows, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_visit(meter, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_text(NULL, 0, text, sizeof text), 0);
    CHECK_EQ(text[0], '\0');
    hf_counter_add(NULL, 1);
    CHECK_EQ(hf_counter_value(NULL), 0);
    CHECK_EQ(hf_counter_interval(NULL, &last), 0);
    hf_gauge_set(NULL, 1);
    hf_gauge_add(NULL, 1);
    CHECK_EQ(hf_gauge_value(NULL), 0);
    hf_meter_stats(NULL, NULL);
    hf_meter_stats(meter, NULL);
    hf_meter_close(NULL);
    struct hf_meter_stats stats;
    hf_meter_stats(meter, &stats);
    CHECK_EQ(stats.series, 0);
    hf_meter_close(meter);
}
