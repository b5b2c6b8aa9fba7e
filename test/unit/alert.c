/* alert.c - tests of rules: when they fire, when they are resolved. */
#include "holdfast/alert.h"

#include <math.h>
#include <string.h>

#include "base/memory.h"
#include "holdfast/inspect.h"
#include "support/clock.h"
#include "support/test.h"

#define SECOND UINT64_C(1000000000)

static struct {
    struct hf_meter *meter;
    struct hf_alerts *alerts;
    struct hf_gauge *gauge;
    unsigned fired;
    unsigned resolved;
    double value;
    uint64_t at_ns;
    int answer;
} rig;

static int notify(void *context, const struct hf_alert_note *note)
{
    (void)context;
    *(note->firing ? &rig.fired : &rig.resolved) += 1;
    rig.value = note->value;
    rig.at_ns = note->at_ns;
    return rig.answer;
}

static void start(void)
{
    memset(&rig, 0, sizeof rig);
    CHECK_EQ(hf_meter_open(&rig.meter, NULL), HF_OK);
    CHECK_EQ(hf_alerts_open(&rig.alerts, rig.meter, NULL), HF_OK);
    CHECK_EQ(
        hf_meter_gauge(rig.meter, &(struct hf_metric){.name = "g"}, &rig.gauge),
        HF_OK);
}

static void end(void)
{
    hf_alerts_close(rig.alerts);
    hf_meter_close(rig.meter);
}

static struct hf_alert rule(enum hf_alert_compare compare, double bound,
                            uint64_t for_ns)
{
    return (struct hf_alert){.name = "rule",
                             .metric = "g",
                             .compare = compare,
                             .bound = bound,
                             .for_ns = for_ns,
                             .notify = notify};
}

static uint64_t add(struct hf_alert alert)
{
    uint64_t id;

    CHECK_EQ(hf_alerts_add(rig.alerts, &alert, &id), HF_OK);
    return id;
}

static enum hf_alert_state evaluate(uint64_t id, uint64_t now_ns)
{
    enum hf_alert_state state;

    CHECK_EQ(hf_alerts_evaluate(rig.alerts, now_ns), HF_OK);
    CHECK_EQ(hf_alerts_state(rig.alerts, id, &state, NULL), HF_OK);
    return state;
}

TEST(it_fires_after_its_time_to_the_ns_and_resolves_at_once)
{
    start();
    uint64_t id = add(rule(HF_ALERT_ABOVE, 10, 100));
    CHECK_EQ(evaluate(id, 1000), HF_ALERT_OK);
    hf_gauge_set(rig.gauge, 11);
    CHECK_EQ(evaluate(id, 2000), HF_ALERT_PENDING);
    CHECK_EQ(evaluate(id, 2099), HF_ALERT_PENDING);
    CHECK_EQ(rig.fired, 0);
    CHECK_EQ(evaluate(id, 2100), HF_ALERT_FIRING);
    CHECK_EQ(rig.fired, 1);
    CHECK_EQ(rig.at_ns, 2100);
    CHECK(rig.value == 11);
    CHECK_EQ(evaluate(id, 9000), HF_ALERT_FIRING);
    CHECK_EQ(rig.fired, 1);
    hf_gauge_set(rig.gauge, 10);
    CHECK_EQ(evaluate(id, 9001), HF_ALERT_OK);
    CHECK_EQ(rig.resolved, 1);
    struct hf_alerts_stats stats;
    hf_alerts_stats(rig.alerts, &stats);
    CHECK_EQ(stats.rules, 1);
    CHECK_EQ(stats.fired, 1);
    CHECK_EQ(stats.resolved, 1);
    CHECK_EQ(stats.evaluations, 6);
    CHECK_EQ(stats.firing, 0);
    end();
}

TEST(a_moment_of_health_starts_the_time_anew)
{
    start();
    uint64_t id = add(rule(HF_ALERT_ABOVE, 10, 100));
    hf_gauge_set(rig.gauge, 11);
    CHECK_EQ(evaluate(id, 1000), HF_ALERT_PENDING);
    hf_gauge_set(rig.gauge, 10);
    CHECK_EQ(evaluate(id, 1050), HF_ALERT_OK);
    CHECK_EQ(rig.resolved, 0); /* it had not fired */
    hf_gauge_set(rig.gauge, 11);
    CHECK_EQ(evaluate(id, 1060), HF_ALERT_PENDING);
    CHECK_EQ(evaluate(id, 1159), HF_ALERT_PENDING);
    CHECK_EQ(evaluate(id, 1160), HF_ALERT_FIRING);
    end();
}

TEST(time_does_not_go_back)
{
    start();
    uint64_t id = add(rule(HF_ALERT_ABOVE, 10, 100));
    hf_gauge_set(rig.gauge, 11);
    CHECK_EQ(evaluate(id, 1000), HF_ALERT_PENDING);
    CHECK_EQ(evaluate(id, 5), HF_ALERT_PENDING);
    CHECK_EQ(evaluate(id, 1100), HF_ALERT_FIRING);
    end();
}

TEST(the_four_comparisons)
{
    static const struct {
        enum hf_alert_compare compare;
        bool below, equal, above;
    } cases[] = {
        {HF_ALERT_ABOVE, false, false, true},
        {HF_ALERT_AT_LEAST, false, true, true},
        {HF_ALERT_BELOW, true, false, false},
        {HF_ALERT_AT_MOST, true, true, false},
    };

    for (int i = 0; i < 4; i++) {
        start();
        uint64_t id = add(rule(cases[i].compare, 5, 0));
        hf_gauge_set(rig.gauge, 4);
        CHECK_EQ(evaluate(id, 1) == HF_ALERT_FIRING, cases[i].below);
        hf_gauge_set(rig.gauge, 5);
        CHECK_EQ(evaluate(id, 2) == HF_ALERT_FIRING, cases[i].equal);
        hf_gauge_set(rig.gauge, 6);
        CHECK_EQ(evaluate(id, 3) == HF_ALERT_FIRING, cases[i].above);
        end();
    }
}

TEST(a_series_that_is_not_there_holds_nothing)
{
    struct hf_counter *counter;
    struct hf_alerts_stats stats;
    struct hf_label label = {"l", "v"};
    double value;

    start();
    struct hf_alert alert = rule(HF_ALERT_AT_MOST, 100, 0);
    alert.metric = "later";
    alert.labels = &label;
    alert.label_count = 1;
    uint64_t id = add(alert);
    CHECK_EQ(evaluate(id, 1), HF_ALERT_OK);
    CHECK_EQ(hf_alerts_state(rig.alerts, id, NULL, &value), HF_OK);
    CHECK(isnan(value));
    hf_alerts_stats(rig.alerts, &stats);
    CHECK_EQ(stats.missing, 1);
    CHECK_EQ(hf_meter_counter(rig.meter,
                              &(struct hf_metric){.name = "later",
                                                  .labels = &label,
                                                  .label_count = 1},
                              &counter),
             HF_OK);
    CHECK_EQ(evaluate(id, 2), HF_ALERT_FIRING);
    end();
}

TEST(a_rate_is_per_second_over_its_window)
{
    struct hf_counter *counter;
    double value;

    start();
    CHECK_EQ(hf_meter_counter(rig.meter,
                              &(struct hf_metric){.name = "c", .scale = 0.5},
                              &counter),
             HF_OK);
    hf_counter_add(counter, 1000000); /* before the first look: not counted */
    struct hf_alert alert = rule(HF_ALERT_ABOVE, 5, 0);
    alert.metric = "c";
    alert.figure = HF_ALERT_RATE;
    alert.window_ns = 10 * SECOND;
    uint64_t id = add(alert);
    CHECK_EQ(evaluate(id, 100 * SECOND), HF_ALERT_OK);
    hf_counter_add(counter, 40);
    CHECK_EQ(evaluate(id, 104 * SECOND), HF_ALERT_OK);
    CHECK_EQ(hf_alerts_state(rig.alerts, id, NULL, &value), HF_OK);
    CHECK(value == 5); /* 40 in 4 seconds, told as halves */
    hf_counter_add(counter, 20);
    CHECK_EQ(evaluate(id, 105 * SECOND), HF_ALERT_FIRING);
    CHECK_EQ(evaluate(id, 109 * SECOND), HF_ALERT_OK);
    /* All of it is older than the window. */
    CHECK_EQ(evaluate(id, 130 * SECOND), HF_ALERT_OK);
    CHECK_EQ(hf_alerts_state(rig.alerts, id, NULL, &value), HF_OK);
    CHECK(value == 0);
    end();
}

TEST(a_percentile_is_of_what_was_recorded_lately)
{
    struct hf_histogram *histogram;
    double value;

    start();
    CHECK_EQ(hf_meter_histogram(rig.meter,
                                &(struct hf_metric){.name = "h", .scale = 1e-3},
                                &histogram),
             HF_OK);
    for (int i = 0; i < 1000; i++)
        hf_histogram_record(histogram, 1000000);
    struct hf_alert alert = rule(HF_ALERT_ABOVE, 0.1, 0);
    alert.metric = "h";
    alert.figure = HF_ALERT_PERCENTILE;
    alert.percent = 99;
    alert.window_ns = 10 * SECOND;
    uint64_t id = add(alert);
    alert.figure = HF_ALERT_VALUE;
    alert.bound = 1000;
    uint64_t count = add(alert);
    CHECK_EQ(evaluate(id, 100 * SECOND), HF_ALERT_OK);
    for (uint64_t i = 1; i <= 100; i++)
        hf_histogram_record(histogram, i);
    CHECK_EQ(evaluate(id, 101 * SECOND), HF_ALERT_OK);
    CHECK_EQ(hf_alerts_state(rig.alerts, id, NULL, &value), HF_OK);
    CHECK(fabs(value - 0.099) < 1e-9);
    CHECK_EQ(evaluate(count, 101 * SECOND), HF_ALERT_FIRING); /* 1100 of them */
    for (uint64_t i = 1; i <= 100; i++)
        hf_histogram_record(histogram, 200);
    CHECK_EQ(evaluate(id, 102 * SECOND), HF_ALERT_FIRING);
    CHECK_EQ(evaluate(id, 200 * SECOND), HF_ALERT_OK); /* nothing lately */
    end();
}

static uint64_t removed_id;

static int remove_it(void *context, const struct hf_alert_note *note)
{
    enum hf_status *status = context;

    rig.fired++;
    status[0] = hf_alerts_remove(rig.alerts, note->id);
    status[1] = hf_alerts_evaluate(rig.alerts, 99999);
    status[2] = hf_alerts_remove(rig.alerts, removed_id);
    struct hf_alert more = rule(HF_ALERT_ABOVE, 0, 0);
    status[3] = hf_alerts_add(rig.alerts, &more, NULL);
    return 1;
}

TEST(a_callback_may_add_and_remove_rules_and_fail)
{
    enum hf_status status[4];
    struct hf_alerts_stats stats;

    start();
    struct hf_alert alert = rule(HF_ALERT_ABOVE, 10, 0);
    alert.notify = remove_it;
    alert.context = status;
    uint64_t id = add(alert);
    removed_id = add(rule(HF_ALERT_ABOVE, 10, 0));
    hf_gauge_set(rig.gauge, 11);
    CHECK_EQ(hf_alerts_evaluate(rig.alerts, 1), HF_OK);
    CHECK_EQ(status[0], HF_PENDING);
    CHECK_EQ(status[1], HF_PENDING);
    CHECK_EQ(status[2], HF_PENDING);
    CHECK_EQ(status[3], HF_OK);
    CHECK_EQ(rig.fired, 2); /* the first, and the one it added */
    CHECK_EQ(hf_alerts_remove(rig.alerts, id), HF_NOTFOUND);
    CHECK_EQ(hf_alerts_state(rig.alerts, removed_id, NULL, NULL), HF_NOTFOUND);
    hf_alerts_stats(rig.alerts, &stats);
    CHECK_EQ(stats.rules, 1);
    CHECK_EQ(stats.failed, 1);
    CHECK_EQ(hf_alerts_evaluate(rig.alerts, 2), HF_OK);
    CHECK_EQ(rig.fired, 2);
    end();
}

TEST(a_scheduler_evaluates)
{
    struct test_clock hands = {.now_ns = 1000};
    struct hf_scheduler *scheduler;
    struct hf_alerts_stats stats;
    struct hf_alerts_opts opts = {.clock = test_clock(&hands)};

    start();
    hf_alerts_close(rig.alerts);
    CHECK_EQ(hf_alerts_open(&rig.alerts, rig.meter, &opts), HF_OK);
    (void)add(rule(HF_ALERT_ABOVE, 10, 20));
    hf_gauge_set(rig.gauge, 11);
    CHECK_EQ(
        hf_scheduler_open(&scheduler,
                          &(struct hf_scheduler_opts){
                              .direct = true, .clock = test_clock(&hands)}),
        HF_OK);
    CHECK_EQ(hf_alerts_schedule(rig.alerts, scheduler, 0), HF_INVALID);
    CHECK_EQ(hf_alerts_schedule(rig.alerts, scheduler, 10), HF_OK);
    CHECK_EQ(hf_alerts_schedule(rig.alerts, scheduler, 10), HF_EXISTS);
    for (int i = 1; i <= 3; i++) {
        test_clock_await_sleepers(&hands, 1);
        test_clock_advance(&hands, 10);
        do {
            hf_alerts_stats(rig.alerts, &stats);
        } while (stats.evaluations < (uint64_t)i);
        CHECK_EQ(stats.evaluations, i);
    }
    CHECK_EQ(stats.fired, 1);
    hf_alerts_close(rig.alerts);
    CHECK_EQ(hf_scheduler_pending(scheduler), 0);
    hf_scheduler_close(scheduler);
    CHECK_EQ(rig.at_ns, 1030);
    hf_meter_close(rig.meter);
}

TEST(every_allocation_may_fail)
{
    struct hf_histogram *histogram;

    start();
    CHECK_EQ(hf_meter_histogram(rig.meter, &(struct hf_metric){.name = "h"},
                                &histogram),
             HF_OK);
    struct hf_alert alert = rule(HF_ALERT_ABOVE, 10, 0);
    alert.metric = "h";
    alert.figure = HF_ALERT_PERCENTILE;
    alert.percent = 50;
    uint64_t id = 0;
    for (uint64_t fail = 0; id == 0; fail++) {
        hf_memory_fail_after(fail);
        enum hf_status status = hf_alerts_add(rig.alerts, &alert, &id);
        hf_memory_fail_never();
        CHECK(status == (id == 0 ? HF_NOMEM : HF_OK));
    }
    struct hf_alerts_stats stats = {.starved = 1};
    for (uint64_t fail = 0, before = 0;; fail++) {
        before = stats.starved;
        hf_histogram_record(histogram, 1000 + fail);
        hf_memory_fail_after(fail);
        CHECK_EQ(hf_alerts_evaluate(rig.alerts, SECOND * (1 + fail) / 10),
                 HF_OK);
        hf_memory_fail_never();
        hf_alerts_stats(rig.alerts, &stats);
        if (fail > 0 && stats.starved == before)
            break;
    }
    CHECK(stats.starved > 0);
    hf_histogram_record(histogram, 2000);
    CHECK_EQ(hf_alerts_evaluate(rig.alerts, 100 * SECOND), HF_OK);
    hf_alerts_close(rig.alerts);
    for (uint64_t fail = 0;; fail++) {
        rig.alerts = NULL;
        hf_memory_fail_after(fail);
        enum hf_status status = hf_alerts_open(&rig.alerts, rig.meter, NULL);
        hf_memory_fail_never();
        if (!status)
            break;
        CHECK_EQ(status, HF_NOMEM);
    }
    end();
}

static uint64_t listed;

static void look(void *context, const struct hf_inspect_row *row)
{
    (void)context;
    if (!strcmp(row->kind, "alerts"))
        listed = row->depth;
}

TEST(it_is_listed)
{
    start();
    (void)add(rule(HF_ALERT_ABOVE, 10, 0));
    CHECK_EQ(hf_inspect(look, NULL), HF_OK);
    CHECK_EQ(listed, 1);
    end();
}

TEST(bad_input_is_refused)
{
    struct hf_alerts *alerts = NULL;
    uint64_t id = 7;

    start();
    CHECK_EQ(hf_alerts_open(NULL, rig.meter, NULL), HF_INVALID);
    CHECK_EQ(hf_alerts_open(&alerts, NULL, NULL), HF_INVALID);
    CHECK(alerts == NULL);
    hf_alerts_close(NULL);
    struct hf_alert bad[] = {
        rule(HF_ALERT_ABOVE, NAN, 0), rule(HF_ALERT_ABOVE, 0, 0),
        rule(HF_ALERT_ABOVE, 0, 0),   rule(HF_ALERT_ABOVE, 0, 0),
        rule(HF_ALERT_ABOVE, 0, 0),   rule(HF_ALERT_ABOVE, 0, 0),
        rule(HF_ALERT_ABOVE, 0, 0),   rule((enum hf_alert_compare)9, 0, 0),
        rule(HF_ALERT_ABOVE, 0, 0)};
    bad[1].name = NULL;
    bad[2].metric = "not a name";
    bad[3].notify = NULL;
    bad[4].figure = HF_ALERT_PERCENTILE; /* of 0 percent */
    bad[5].figure = HF_ALERT_PERCENTILE;
    bad[5].percent = 101;
    bad[6].figure = HF_ALERT_RATE;
    bad[6].window_ns = 9;
    bad[8].figure = (enum hf_alert_figure)9;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(hf_alerts_add(rig.alerts, &bad[i], &id), HF_INVALID);
    CHECK_EQ(id, 7);
    CHECK_EQ(hf_alerts_add(rig.alerts, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_alerts_add(NULL, &bad[0], &id), HF_INVALID);
    CHECK_EQ(hf_alerts_remove(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_alerts_remove(rig.alerts, 1), HF_NOTFOUND);
    CHECK_EQ(hf_alerts_state(NULL, 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_alerts_evaluate(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_alerts_schedule(NULL, NULL, 1), HF_INVALID);
    CHECK_EQ(hf_alerts_schedule(rig.alerts, NULL, 1), HF_INVALID);
    hf_alerts_stats(NULL, NULL);
    hf_alerts_stats(rig.alerts, NULL);
    end();
}
