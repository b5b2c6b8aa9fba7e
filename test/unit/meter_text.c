/* meter_text.c - tests of the Prometheus text, and of its strict reader. */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/meter.h"
#include "support/clock.h"
#include "support/metering.h"
#include "support/prometheus.h"
#include "support/test.h"

static double answer(void *context)
{
    return *(double *)context;
}

TEST(the_text_escapes_what_it_must)
{
    struct hf_meter *meter = open_meter();
    struct hf_label labels[] = {{"b", "a\"b\\c\nd"}, {"a", "\xc3\xa4,}"}};
    struct hf_metric metric = {.name = "x_total",
                               .help = "Back\\slash\nand \"line\".",
                               .labels = labels,
                               .label_count = 2};
    struct hf_counter *c;

    CHECK_EQ(hf_meter_counter(meter, &metric, &c), HF_OK);
    hf_counter_add(c, (uint64_t)1 << 60);
    hf_counter_add(c, 1);
    char *text = text_of(meter, 0);
    CHECK_TEXT(text, strlen(text),
               "# HELP x_total Back\\\\slash\\nand \"line\".\n"
               "# TYPE x_total counter\n"
               "x_total{a=\"\xc3\xa4,}\",b=\"a\\\"b\\\\c\\nd\"} "
               "1152921504606846977\n");
    free(text);
    hf_meter_close(meter);
}

static enum hf_status keep_text(void *context, const char *text, size_t len)
{
    char *out = context;

    if (text == NULL || len >= 200)
        return HF_FULL;
    memcpy(out, text, len);
    out[len] = 0;
    return HF_OK;
}

TEST(the_text_is_handed_over_in_one_piece_also_if_it_is_empty)
{
    struct hf_meter *meter = open_meter();
    struct hf_counter *c;
    char told[200] = "?";

    CHECK_EQ(hf_meter_write(meter, 0, keep_text, told), HF_OK);
    CHECK_TEXT(told, strlen(told), "");
    CHECK_EQ(counter(meter, "x_total", NULL, NULL, &c), HF_OK);
    CHECK_EQ(hf_meter_write(meter, 0, keep_text, told), HF_OK);
    char *text = text_of(meter, 0);
    CHECK_TEXT(told, strlen(told), text);
    free(text);
    hf_meter_close(meter);
}

TEST(a_histogram_is_told_in_buckets)
{
    struct hf_meter *meter = open_meter();
    uint64_t bounds[] = {1000, 1000000};
    struct hf_label label = {"kind", "buy"};
    struct hf_metric metric = {.name = "took_seconds",
                               .help = "Time.",
                               .labels = &label,
                               .label_count = 1,
                               .scale = 1e-9,
                               .bounds = bounds,
                               .bound_count = 2};
    struct hf_histogram *histogram;

    CHECK_EQ(hf_meter_histogram(meter, &metric, &histogram), HF_OK);
    hf_histogram_record(histogram, 3);
    hf_histogram_record(histogram, 500);
    hf_histogram_record(histogram, 2000);
    hf_histogram_record(histogram, 5000000);
    char *text = text_of(meter, 0);
    CHECK_TEXT(text, strlen(text),
               "# HELP took_seconds Time.\n"
               "# TYPE took_seconds histogram\n"
               "took_seconds_bucket{kind=\"buy\",le=\"1e-06\"} 2\n"
               "took_seconds_bucket{kind=\"buy\",le=\"0.001\"} 3\n"
               "took_seconds_bucket{kind=\"buy\",le=\"+Inf\"} 4\n"
               "took_seconds_sum{kind=\"buy\"} 0.005002503\n"
               "took_seconds_count{kind=\"buy\"} 4\n");
    free(text);
    hf_meter_close(meter);
}

TEST(usual_bounds_cover_the_range)
{
    struct hf_meter *meter = open_meter();
    struct hf_metric metric = {.name = "h"};
    struct hf_metric whole = {.name = "w",
                              .spread = {.highest = HF_SPREAD_HIGHEST_MAX}};
    struct hf_histogram *histogram;

    CHECK_EQ(hf_meter_histogram(meter, &metric, &histogram), HF_OK);
    CHECK_EQ(hf_meter_histogram(meter, &whole, &histogram), HF_OK);
    char *text = text_of(meter, 0);
    CHECK(strstr(text, "h_bucket{le=\"1\"} 0\n") != NULL);
    CHECK(strstr(text, "h_bucket{le=\"2500\"} 0\n") != NULL);
    CHECK(strstr(text, "h_bucket{le=\"2500000000000\"} 0\n") != NULL);
    CHECK(strstr(text, "h_bucket{le=\"5000000000000\"} 0\n") == NULL);
    CHECK(strstr(text, "w_bucket{le=\"5e+18\"} 0\n") != NULL);
    free(text);
    hf_meter_close(meter);
}

TEST(a_window_is_told_as_a_summary)
{
    struct test_clock hands = {.now_ns = 1000000000};
    struct hf_meter *meter;
    struct hf_meter_opts opts = {.clock = test_clock(&hands)};
    struct hf_metric metric = {.name = "s"};
    struct hf_metric counts = {.name = "c"};
    struct hf_window *window;
    struct hf_window *count_only;

    CHECK_EQ(hf_meter_open(&meter, &opts), HF_OK);
    CHECK_EQ(hf_meter_window(meter, &metric, NULL, &window), HF_OK);
    CHECK_EQ(hf_meter_window(meter, &counts,
                             &(struct hf_window_opts){.count_only = true},
                             &count_only),
             HF_OK);
    for (uint64_t value = 1; value <= 100; value++)
        hf_window_record(window, value, hands.now_ns);
    hf_window_add(count_only, 7, hands.now_ns);
    char *text = text_of(meter, 0);
    CHECK_TEXT(text, strlen(text),
               "# TYPE s summary\n"
               "s{quantile=\"0.5\"} 50\n"
               "s{quantile=\"0.95\"} 95\n"
               "s{quantile=\"0.99\"} 99\n"
               "s_sum 5050\n"
               "s_count 100\n"
               "# TYPE c summary\n"
               "c_sum 0\n"
               "c_count 7\n");
    free(text);
    test_clock_advance(&hands, UINT64_C(100000000000));
    text = text_of(meter, 0);
    CHECK(strstr(text, "s{quantile=\"0.5\"} NaN\n") != NULL);
    CHECK(strstr(text, "s_count 100\n") != NULL);
    free(text);
    hf_meter_close(meter);
}

TEST(the_objects_of_the_process_are_told_on_request)
{
    struct hf_meter *meter;
    struct hf_meter_opts opts = {.name = "the \"meter\""};
    struct hf_counter *c;

    CHECK_EQ(hf_meter_open(&meter, &opts), HF_OK);
    CHECK_EQ(counter(meter, "x", NULL, NULL, &c), HF_OK);
    char *text = text_of(meter, HF_METER_OBJECTS);
    CHECK(strstr(text, "holdfast_object_depth{kind=\"meter\",name=\"the "
                       "\\\"meter\\\"\",index=\"0\"} 1\n") != NULL);
    CHECK(strstr(text, "holdfast_object_rejected_total{kind=\"meter\"") !=
          NULL);
    free(text);
    hf_meter_close(meter);
}

TEST(a_text_is_cut_where_there_is_no_room)
{
    struct hf_meter *meter = open_meter();
    struct hf_counter *c;
    char text[8] = "xxxxxxx";

    CHECK_EQ(hf_meter_text(meter, 0, text, sizeof text), 0);
    CHECK_TEXT(text, strlen(text), "");
    CHECK_EQ(counter(meter, "x", NULL, NULL, &c), HF_OK);
    size_t len = hf_meter_text(meter, 0, text, sizeof text);
    CHECK(len > sizeof text);
    CHECK_TEXT(text, strlen(text), "# HELP ");
    CHECK_EQ(hf_meter_text(meter, 0, NULL, 100), len);
    hf_meter_close(meter);
}

/* Where people write a comma, the text still has a point. */
TEST(the_text_does_not_follow_the_locale)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE"};
    struct hf_meter *meter = open_meter();
    double value = 0.5;

    for (int i = 0; i < 3 && setlocale(LC_NUMERIC, names[i]) == NULL; i++)
        continue; /* a system without them tries nothing */
    CHECK_EQ(hf_meter_call(meter, HF_METER_GAUGE,
                           &(struct hf_metric){.name = "g"}, answer, &value),
             HF_OK);
    char text[100];
    (void)hf_meter_text(meter, 0, text, sizeof text);
    setlocale(LC_NUMERIC, "C");
    CHECK(strstr(text, "g 0.5\n") != NULL);
    hf_meter_close(meter);
}

/* The reader of texts that the tests go by finds what is wrong. */
TEST(the_strict_reader_bites)
{
    static const char *const bad[] = {
        "x 1",                                       /* no line end */
        "x 1\n",                                     /* no type */
        "# TYPE x counter\nx -1\n",                  /* a counter below 0 */
        "# TYPE x counter\nx one\n",                 /* no number */
        "# TYPE x counter\nx{a=b} 1\n",              /* no quotes */
        "# TYPE x counter\nx{a=\"\\t\"} 1\n",        /* no such escape */
        "# TYPE x counter\nx{a=\"1\",a=\"2\"} 1\n",  /* label twice */
        "# TYPE x counter\nx 1\nx 2\n",              /* sample twice */
        "# TYPE x counter\nx 1\n# TYPE x counter\n", /* type after samples */
        "# TYPE x counter\n# TYPE x counter\n",      /* type twice */
        "# TYPE x thing\n",                          /* no such type */
        "# TYPE x counter\ny 1\n",                   /* another's sample */
        "# TYPE x counter\nx 1\n# TYPE y counter\ny 1\n# HELP x h\n",
        "# TYPE h histogram\nh_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n",
        "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 2\nh_sum 1\nh_count 1\n",
        "# TYPE h histogram\nh_bucket{le=\"+Inf\"} 1\nh_count 1\n",
        "# TYPE h histogram\nh_bucket{le=\"2\"} 1\nh_bucket{le=\"1\"} 1\n"
        "h_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
        "# TYPE h histogram\nh_bucket{le=\"1\"} 2\n"
        "h_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n",
    };
    struct prometheus told;

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bool good = prometheus_read(&told, bad[i], strlen(bad[i]));
        prometheus_release(&told);
        if (good)
            test_fail(__FILE__, __LINE__, "not found: %s", bad[i]);
    }
}
