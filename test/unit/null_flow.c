/* Tests that NULL is refused, or does nothing, in every call of the headers
 * for how much and how fast, and what happened.
 *
 * Each pointer in turn is NULL and all else is good: a call that tells a status
 * says HF_INVALID, unless the header says that it may be NULL. What users pass
 * through (context, arg) is not looked at. test/system/null.sh knows which
 * calls there are. */
#include "holdfast/alert.h"
#include "holdfast/backoff.h"
#include "holdfast/breaker.h"
#include "holdfast/histogram.h"
#include "holdfast/limiter.h"
#include "holdfast/meter.h"
#include "holdfast/rate.h"
#include "holdfast/scheduler.h"
#include "holdfast/spread.h"
#include "holdfast/window.h"
#include "support/test.h"

static char item[8]; /* something to point to */
static char buffer[4096];

static int notify(void *context, const struct hf_alert_note *note)
{
    (void)context;
    (void)note;
    return 0;
}

static enum hf_status meter_write(void *a0, const char *a1, size_t a2)
{
    (void)a0;
    (void)a1;
    (void)a2;
    return HF_FULL;
}

static void limiter_visit(void *a0, const char *a1, uint32_t a2,
                          const struct hf_limiter_rule *a3)
{
    (void)a0;
    (void)a1;
    (void)a2;
    (void)a3;
}

static double meter_read(void *a0)
{
    (void)a0;
    return 0;
}

static void meter_visit(void *a0, const struct hf_meter_row *a1)
{
    (void)a0;
    (void)a1;
}

static void spread_visit(void *a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
    (void)a0;
    (void)a1;
    (void)a2;
    (void)a3;
}

TEST(alert)
{
    struct hf_meter *meter;
    struct hf_alerts *alerts, *new_alerts;
    struct hf_scheduler *scheduler;
    struct hf_metric metric = {.name = "m_total", .help = "m"};
    struct hf_counter *counter;
    struct hf_alert alert = {
        .name = "a", .metric = "m_total", .notify = notify};
    CHECK_EQ(hf_meter_open(&meter, NULL), HF_OK);
    CHECK_EQ(hf_meter_counter(meter, &metric, &counter), HF_OK);
    CHECK_EQ(hf_alerts_open(&alerts, meter, NULL), HF_OK);
    struct hf_scheduler_opts direct = {.direct = true};
    CHECK_EQ(hf_scheduler_open(&scheduler, &direct), HF_OK);

    CHECK_EQ(hf_alerts_open(NULL, meter, &(struct hf_alerts_opts){0}),
             HF_INVALID);
    CHECK_EQ(hf_alerts_open(&new_alerts, NULL, &(struct hf_alerts_opts){0}),
             HF_INVALID);
    hf_alerts_close(NULL);
    CHECK_EQ(hf_alerts_add(NULL, &alert, &(uint64_t){0}), HF_INVALID);
    CHECK_EQ(hf_alerts_add(alerts, NULL, &(uint64_t){0}), HF_INVALID);
    CHECK_EQ(hf_alerts_remove(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_alerts_state(NULL, 1, &(enum hf_alert_state){0}, &(double){0}),
             HF_INVALID);
    CHECK_EQ(hf_alerts_evaluate(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_alerts_schedule(NULL, scheduler, 1000000000), HF_INVALID);
    CHECK_EQ(hf_alerts_schedule(alerts, NULL, 1000000000), HF_INVALID);
    hf_alerts_stats(NULL, &(struct hf_alerts_stats){0});
    hf_alerts_stats(alerts, NULL);
    CHECK(hf_alerts_add(alerts, &alert, NULL) != HF_INVALID);
    hf_alerts_close(alerts);
    hf_scheduler_close(scheduler);
    hf_meter_close(meter);
}

TEST(backoff)
{
    struct hf_backoff backoff;
    CHECK_EQ(hf_backoff_init(&backoff, NULL), HF_OK);

    CHECK_EQ(hf_backoff_init(NULL, &(struct hf_backoff_opts){0}), HF_INVALID);
    CHECK_EQ(hf_backoff_next(NULL, 1, HF_FOREVER, &(uint64_t){0}), HF_INVALID);
    CHECK_EQ(hf_backoff_next(&backoff, 1, HF_FOREVER, NULL), HF_INVALID);
    hf_backoff_reset(NULL);
}

TEST(breaker)
{
    struct hf_breaker *breaker;
    struct hf_breaker_call call;
    CHECK_EQ(hf_breaker_new(&breaker, NULL), HF_OK);
    CHECK_EQ(hf_breaker_enter(breaker, 1, &call), 0);

    CHECK_EQ(hf_breaker_new(NULL, &(struct hf_breaker_opts){0}), HF_INVALID);
    hf_breaker_free(NULL);
    CHECK(hf_breaker_enter(NULL, 1, &call) == UINT64_MAX);
    CHECK(hf_breaker_enter(breaker, 1, NULL) == UINT64_MAX);
    CHECK_EQ(hf_breaker_leave(NULL, &call, (enum hf_breaker_outcome)0, 1),
             HF_INVALID);
    CHECK_EQ(hf_breaker_leave(breaker, NULL, (enum hf_breaker_outcome)0, 1),
             HF_INVALID);
    CHECK_EQ(hf_breaker_state(NULL), 0);
    CHECK_EQ(hf_breaker_force(NULL, (enum hf_breaker_state)0, 1), HF_INVALID);
    hf_breaker_stats(NULL, &(struct hf_breaker_stats){0});
    hf_breaker_stats(breaker, NULL);
    hf_breaker_free(breaker);
}

TEST(histogram)
{
    struct hf_histogram *histogram;
    struct hf_spread *spread, *spread2;
    struct hf_timer timer;
    struct hf_spread *new_spread;
    CHECK_EQ(hf_histogram_open(&histogram, NULL), HF_OK);
    CHECK_EQ(hf_histogram_spread(histogram, &spread), HF_OK);
    CHECK_EQ(hf_histogram_spread(histogram, &spread2), HF_OK);
    hf_timer_start(&timer, histogram, NULL);

    CHECK_EQ(hf_histogram_open(NULL, &(struct hf_histogram_opts){0}),
             HF_INVALID);
    hf_histogram_close(NULL);
    hf_histogram_record(NULL, 1);
    CHECK_EQ(hf_histogram_spread(NULL, &new_spread), HF_INVALID);
    CHECK_EQ(hf_histogram_spread(histogram, NULL), HF_INVALID);
    CHECK_EQ(hf_histogram_read(NULL, spread), HF_INVALID);
    CHECK_EQ(hf_histogram_read(histogram, NULL), HF_INVALID);
    CHECK_EQ(hf_histogram_interval(NULL, spread, spread2), HF_INVALID);
    CHECK_EQ(hf_histogram_interval(histogram, NULL, spread2), HF_INVALID);
    CHECK_EQ(hf_histogram_interval(histogram, spread, NULL), HF_INVALID);
    hf_histogram_stats(NULL, &(struct hf_histogram_stats){0});
    hf_histogram_stats(histogram, NULL);
    hf_timer_start(NULL, histogram, hf_clock_system());
    hf_timer_start(&timer, NULL, hf_clock_system());
    hf_timer_start(&timer, histogram, NULL);
    CHECK_EQ(hf_timer_stop(NULL), 0);
    hf_histogram_close(histogram);
    hf_spread_close(spread);
    hf_spread_close(spread2);
}

TEST(limiter)
{
    struct hf_limiter *limiter;
    struct hf_limiter_rule rule = {
        .rate = {.permits = 1, .span_ns = 1000, .burst = 5}};
    struct hf_limiter_ask ask = {.key = "k", .key_len = 1, .cost = 1};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 5};
    struct hf_limiter_answer answer;
    struct hf_limiter_top top;
    CHECK_EQ(hf_limiter_open(&limiter, NULL), HF_OK);

    CHECK_EQ(hf_limiter_open(NULL, &(struct hf_limiter_opts){0}), HF_INVALID);
    hf_limiter_shutdown(NULL);
    hf_limiter_close(NULL);
    CHECK_EQ(hf_limiter_define(NULL, "r", &rule, &(uint32_t){0}), HF_INVALID);
    CHECK_EQ(hf_limiter_define(limiter, NULL, &rule, &(uint32_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_limiter_define(limiter, "r", NULL, &(uint32_t){0}), HF_INVALID);
    CHECK_EQ(hf_limiter_remove(NULL, "n"), HF_INVALID);
    CHECK_EQ(hf_limiter_remove(limiter, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_find(NULL, "n", &(uint32_t){0}, &rule), HF_INVALID);
    CHECK_EQ(hf_limiter_find(limiter, NULL, &(uint32_t){0}, &rule), HF_INVALID);
    CHECK_EQ(hf_limiter_list(NULL, limiter_visit, &item), HF_INVALID);
    CHECK_EQ(hf_limiter_list(limiter, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_limiter_take(NULL, &call, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_take(limiter, NULL, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_take(limiter, &call, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_peek(NULL, &call, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_peek(limiter, NULL, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_peek(limiter, &call, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_refund(NULL, &call, 1), HF_INVALID);
    CHECK_EQ(hf_limiter_refund(limiter, NULL, 1), HF_INVALID);
    CHECK(!hf_limiter_allow(NULL, "n"));
    CHECK(!hf_limiter_allow(limiter, NULL));
    CHECK_EQ(hf_limiter_acquire(NULL, &call, HF_NOW, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_acquire(limiter, NULL, HF_NOW, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_hold(NULL, &call, 1, &answer, &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_limiter_hold(limiter, NULL, 1, &answer, &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_limiter_hold(limiter, &call, 1, NULL, &(uint64_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_limiter_hold(limiter, &call, 1, &answer, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_settle(NULL, 1, 1, 1), HF_INVALID);
    hf_limiter_watch(NULL, NULL, NULL);
    hf_limiter_watch(limiter, NULL, NULL);
    CHECK_EQ(hf_limiter_watch_id(NULL, &ask), HF_LIMITER_WATCH_ALL);
    CHECK_EQ(hf_limiter_watch_id(limiter, NULL), HF_LIMITER_WATCH_ALL);
    hf_limiter_expect(NULL, &ask, true);
    hf_limiter_expect(limiter, NULL, true);
    CHECK_EQ(hf_limiter_top(NULL, &top, 1), 0);
    CHECK_EQ(hf_limiter_top(limiter, NULL, 1), 0);
    CHECK_EQ(hf_limiter_sweep(NULL, 1, 1), 0);
    hf_limiter_stats(NULL, &(struct hf_limiter_stats){0});
    hf_limiter_stats(limiter, NULL);
    CHECK(hf_limiter_define(limiter, "r", &rule, NULL) != HF_INVALID);
    CHECK(hf_limiter_find(limiter, "n", NULL, &rule) != HF_INVALID);
    CHECK(hf_limiter_find(limiter, "n", &(uint32_t){0}, NULL) != HF_INVALID);
    CHECK(hf_limiter_acquire(limiter, &call, HF_NOW, NULL) != HF_INVALID);
    hf_limiter_close(limiter);
}

TEST(meter)
{
    struct hf_meter *meter;
    struct hf_metric metric = {.name = "m_total", .help = "m"};
    struct hf_metric one = {.name = "c_total", .help = "c"};
    struct hf_metric two = {.name = "g", .help = "g"};
    struct hf_counter *counter, *new_counter;
    struct hf_gauge *gauge, *new_gauge;
    struct hf_histogram *new_histogram;
    struct hf_window *new_window;
    CHECK_EQ(hf_meter_open(&meter, NULL), HF_OK);
    CHECK_EQ(hf_meter_counter(meter, &one, &counter), HF_OK);
    CHECK_EQ(hf_meter_gauge(meter, &two, &gauge), HF_OK);

    CHECK_EQ(hf_meter_open(NULL, &(struct hf_meter_opts){0}), HF_INVALID);
    hf_meter_close(NULL);
    CHECK_EQ(hf_meter_counter(NULL, &metric, &new_counter), HF_INVALID);
    CHECK_EQ(hf_meter_counter(meter, NULL, &new_counter), HF_INVALID);
    CHECK_EQ(hf_meter_counter(meter, &metric, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_gauge(NULL, &metric, &new_gauge), HF_INVALID);
    CHECK_EQ(hf_meter_gauge(meter, NULL, &new_gauge), HF_INVALID);
    CHECK_EQ(hf_meter_gauge(meter, &metric, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_histogram(NULL, &metric, &new_histogram), HF_INVALID);
    CHECK_EQ(hf_meter_histogram(meter, NULL, &new_histogram), HF_INVALID);
    CHECK_EQ(hf_meter_histogram(meter, &metric, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_window(NULL, &metric, &(struct hf_window_opts){0},
                             &new_window),
             HF_INVALID);
    CHECK_EQ(
        hf_meter_window(meter, NULL, &(struct hf_window_opts){0}, &new_window),
        HF_INVALID);
    CHECK_EQ(hf_meter_window(meter, &metric, &(struct hf_window_opts){0}, NULL),
             HF_INVALID);
    CHECK_EQ(
        hf_meter_call(NULL, (enum hf_meter_kind)0, &metric, meter_read, &item),
        HF_INVALID);
    CHECK_EQ(
        hf_meter_call(meter, (enum hf_meter_kind)0, NULL, meter_read, &item),
        HF_INVALID);
    CHECK_EQ(hf_meter_call(meter, (enum hf_meter_kind)0, &metric, NULL, &item),
             HF_INVALID);
    hf_counter_add(NULL, 1);
    CHECK_EQ(hf_counter_value(NULL), 0);
    CHECK_EQ(hf_counter_interval(NULL, &(uint64_t){0}), 0);
    CHECK_EQ(hf_counter_interval(counter, NULL), 0);
    hf_gauge_set(NULL, 1);
    hf_gauge_add(NULL, 1);
    CHECK_EQ(hf_gauge_value(NULL), 0);
    CHECK_EQ(hf_meter_visit(NULL, meter_visit, &item), HF_INVALID);
    CHECK_EQ(hf_meter_visit(meter, NULL, &item), HF_INVALID);
    CHECK_EQ(hf_meter_write(NULL, 1, meter_write, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_write(meter, 1, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_meter_write(meter, 1, meter_write, NULL), HF_FULL);
    CHECK_EQ(hf_meter_text(NULL, 1, buffer, sizeof buffer), 0);
    CHECK(hf_meter_text(meter, 1, NULL, sizeof buffer) > 0);
    hf_meter_stats(NULL, &(struct hf_meter_stats){0});
    hf_meter_stats(meter, NULL);
    CHECK(hf_meter_window(meter, &metric, NULL, &new_window) != HF_INVALID);
    hf_meter_close(meter);
}

TEST(rate)
{
    struct hf_rate rate;
    struct hf_rate_rule rule = {
        .kind = HF_RATE_LOG, .permits = 2, .span_ns = 1000};
    struct hf_rate_answer answer;
    uint64_t memory[64];
    CHECK_EQ(hf_rate_init(&rate, 2, 100), HF_OK);

    CHECK_EQ(hf_rate_init(NULL, 1, 1), HF_INVALID);
    CHECK_EQ(hf_rate_memory(NULL), 0);
    CHECK_EQ(hf_rate_plan_make(NULL, &(struct hf_rate_rule){0}), HF_INVALID);
    CHECK_EQ(hf_rate_plan_make(&(struct hf_rate_plan){0}, NULL), HF_INVALID);
    CHECK_EQ(hf_rate_open(NULL, &rule, memory), HF_INVALID);
    CHECK_EQ(hf_rate_open(&rate, NULL, memory), HF_INVALID);
    CHECK_EQ(hf_rate_open(&rate, &rule, NULL), HF_INVALID);
    CHECK(hf_rate_take(NULL, 1, 1) == UINT64_MAX);
    CHECK(hf_rate_wait(NULL, 1, 1) == UINT64_MAX);
    CHECK(hf_rate_ask(NULL, 1, 1, &answer) == UINT64_MAX);
    CHECK(hf_rate_ask(&rate, 1, 1, NULL) == UINT64_MAX);
    CHECK(hf_rate_look(NULL, 1, 1, &answer) == UINT64_MAX);
    CHECK(hf_rate_look(&rate, 1, 1, NULL) == UINT64_MAX);
    hf_rate_refund(NULL, 1, 1);
}

TEST(spread)
{
    struct hf_spread *spread, *new_spread;
    struct hf_spread *spread2;
    CHECK_EQ(hf_spread_open(&spread, NULL), HF_OK);
    CHECK_EQ(hf_spread_open(&spread2, NULL), HF_OK);

    CHECK_EQ(hf_spread_open(NULL, &(struct hf_spread_opts){0}), HF_INVALID);
    hf_spread_close(NULL);
    CHECK_EQ(hf_spread_record(NULL, 1, 1), HF_INVALID);
    hf_spread_reset(NULL);
    CHECK_EQ(hf_spread_add(NULL, spread2), HF_INVALID);
    CHECK_EQ(hf_spread_add(spread, NULL), HF_INVALID);
    CHECK_EQ(hf_spread_subtract(NULL, spread2), HF_INVALID);
    CHECK_EQ(hf_spread_subtract(spread, NULL), HF_INVALID);
    CHECK_EQ(hf_spread_percentile(NULL, 50), 0);
    CHECK_EQ(hf_spread_at_most(NULL, 1), 0);
    hf_spread_visit(NULL, spread_visit, &item);
    hf_spread_visit(spread, NULL, &item);
    hf_spread_stats(NULL, &(struct hf_spread_stats){0});
    hf_spread_stats(spread, NULL);
    CHECK_EQ(hf_spread_encode(NULL, buffer, sizeof buffer, &(size_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_spread_encode(spread, NULL, sizeof buffer, &(size_t){0}),
             HF_INVALID);
    CHECK_EQ(hf_spread_encode(spread, buffer, sizeof buffer, NULL), HF_INVALID);
    CHECK_EQ(hf_spread_decode(NULL, "k", 1), HF_INVALID);
    CHECK_EQ(hf_spread_decode(&new_spread, NULL, 1), HF_INVALID);
    hf_spread_close(spread);
    hf_spread_close(spread2);
}

TEST(window)
{
    struct hf_window *window;
    struct hf_spread *spread;
    CHECK_EQ(hf_window_open(&window, NULL, 1), HF_OK);
    CHECK_EQ(hf_spread_open(&spread, NULL), HF_OK);

    CHECK_EQ(hf_window_open(NULL, &(struct hf_window_opts){0}, 1), HF_INVALID);
    hf_window_close(NULL);
    hf_window_record(NULL, 1, 1);
    hf_window_add(NULL, 1, 1);
    CHECK_EQ(hf_window_view(NULL, 1, &(struct hf_window_view){0}), HF_INVALID);
    CHECK_EQ(hf_window_view(window, 1, NULL), HF_INVALID);
    CHECK_EQ(hf_window_read(NULL, 1, spread), HF_INVALID);
    CHECK_EQ(hf_window_read(window, 1, NULL), HF_INVALID);
    hf_window_stats(NULL, &(struct hf_window_stats){0});
    hf_window_stats(window, NULL);
    hf_window_close(window);
    hf_spread_close(spread);
}
