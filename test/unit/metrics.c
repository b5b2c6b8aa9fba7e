/* metrics.c - tests of what is put into the server's registry. */
#include "server/metrics.h"

#include <string.h>

#include "base/memory.h"
#include "server/server.h"
#include "server/table.h"
#include "support/test.h"

static struct server server;

static struct metrics *start(void)
{
    memset(&server, 0, sizeof server);
    server.clock = hf_clock_system();
    CHECK_EQ(metrics_open(&server.metrics, &server), HF_OK);
    return &server.metrics;
}

static uint64_t count_of(struct hf_histogram *histogram)
{
    struct hf_histogram_stats stats;

    hf_histogram_stats(histogram, &stats);
    return stats.count;
}

static size_t index_of(const char *name)
{
    for (size_t i = 0; i < table_count(); i++)
        if (strcmp(table_at(i)->name, name) == 0)
            return i;
    test_fail(__FILE__, __LINE__, "no command %s", name);
}

TEST(a_kind_of_question_is_measured_under_its_command)
{
    struct metrics *m = start();

    for (size_t i = 0; i < table_count(); i++)
        if (table_at(i)->run == NULL && table_at(i)->make == NULL) {
            metrics_took(m, m->by_kind[table_at(i)->kind], 5);
            CHECK_EQ(count_of(m->took_ns[i]), 1);
        }
    /* several commands of one kind count as the first */
    metrics_took(m, m->by_kind[HOLD_KEY_DEL], 5);
    CHECK_EQ(count_of(m->took_ns[index_of("DEL")]), 1);
    CHECK_EQ(count_of(m->took_ns[index_of("UNLINK")]), 0);
    metrics_command(m, index_of("PING"));
    metrics_took(m, index_of("PING"), 7);
    metrics_command(m, table_count());
    CHECK_EQ(metrics_sum(m->commands, METRICS_COMMANDS_MAX), 2);
    CHECK_EQ(count_of(m->took_ns[index_of("PING")]), 1);
    metrics_close(m);
}

TEST(errors_are_counted_by_code)
{
    struct metrics *m = start();

    metrics_refused(m, HOLD_BUSY);
    metrics_refused(m, HOLD_MOVED);
    metrics_refused(m, HOLD_CONFLICT);
    metrics_refused(m, HOLD_BUSY);
    metrics_refused(m, HOLD_BADARG);
    metrics_refused(m, HOLD_ERR);
    metrics_refused(m, HOLD_OVERLOADED);
    metrics_refused(m, HOLD_ERR);
    CHECK_EQ(m->errors[HOLD_BUSY], 2);
    CHECK_EQ(m->errors[HOLD_CONFLICT], 2);
    CHECK_EQ(m->errors[HOLD_BADARG], 1);
    CHECK_EQ(m->errors[HOLD_OVERLOADED], 1);
    CHECK_EQ(m->errors[HOLD_ERR], 2);
    CHECK_EQ(metrics_sum(m->errors, HOLD_ALL_CODES), 8);
    metrics_close(m);
}

TEST(events_tell_holds_confirms_and_lags)
{
    struct metrics *m = start();
    struct hf_histogram_stats stats;
    struct hold_event events[] = {
        {.kind = EVENT_LOCK_GRANTED, .age_us = HOLD_NO_AGE},
        {.kind = EVENT_LOCK_RELEASED, .age_us = HOLD_NO_AGE}, /* a re-entry */
        {.kind = EVENT_LOCK_RELEASED, .age_us = 30},
        {.kind = EVENT_LOCK_EXPIRED, .age_us = 70, .lag_us = 0},
        {.kind = EVENT_CONFIRMED, .age_us = 5},
        {.kind = EVENT_CONFIRMED_LATE, .age_us = 7},
        {.kind = EVENT_OFFERED, .age_us = HOLD_NO_AGE}, /* it did not wait */
        {.kind = EVENT_OFFERED, .age_us = 4},
        {.kind = EVENT_CANCELLED, .age_us = 6},
        {.kind = EVENT_RESERVATION_EXPIRED, .age_us = 8, .lag_us = 9},
        {.kind = EVENT_SESSION_EXPIRED, .age_us = HOLD_NO_AGE, .lag_us = 11},
        {.kind = EVENT_LOCK_LOST, .age_us = 900, .lag_us = 11},
    };
    struct hold_out out = {.events = events,
                           .event_count = sizeof events / sizeof events[0]};

    metrics_events(m, &out);
    hf_histogram_stats(m->hold_us, &stats);
    CHECK_EQ(stats.count, 3);
    CHECK_EQ(stats.sum, 1000);
    hf_histogram_stats(m->confirm_us, &stats);
    CHECK_EQ(stats.count, 2);
    CHECK_EQ(stats.sum, 12);
    hf_histogram_stats(m->stock_wait_us[METRICS_GRANTED], &stats);
    CHECK_EQ(stats.count, 1);
    CHECK_EQ(stats.sum, 4);
    hf_histogram_stats(m->lag_us, &stats);
    CHECK_EQ(stats.count, 3);
    CHECK_EQ(stats.max, 11);
    CHECK_EQ(m->events[EVENT_LOCK_RELEASED], 2);
    CHECK_EQ(m->events[EVENT_LOCK_GRANTED], 1);
    metrics_waited(m, false, METRICS_LEFT, 5000);
    metrics_waited(m, true, METRICS_LEFT, 8000);
    hf_histogram_stats(m->wait_us[METRICS_LEFT], &stats);
    CHECK_EQ(stats.sum, 5);
    hf_histogram_stats(m->stock_wait_us[METRICS_LEFT], &stats);
    CHECK_EQ(stats.sum, 8);
    metrics_batch(m, 3, 100, 7);
    hf_histogram_stats(m->batch_records, &stats);
    CHECK_EQ(stats.sum, 3);
    hf_histogram_stats(m->batch_bytes, &stats);
    CHECK_EQ(stats.sum, 100);
    hf_histogram_stats(m->sync_ns, &stats);
    CHECK_EQ(stats.sum, 7);
    metrics_close(m);
}

TEST(every_allocation_may_fail)
{
    memset(&server, 0, sizeof server);
    server.clock = hf_clock_system();
    for (uint64_t fail = 0;; fail += 1 + fail / 20) {
        hf_memory_fail_after(fail);
        enum hf_status status = metrics_open(&server.metrics, &server);
        hf_memory_fail_never();
        metrics_close(&server.metrics);
        if (!status)
            break;
        CHECK_EQ(status, HF_NOMEM);
    }
}
