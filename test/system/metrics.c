/* metrics.c - METRICS and INFO tell what was done to a real server, exactly.
 * tests: also under sanitizers
 */
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/prometheus.h"
#include "support/server.h"
#include "support/test.h"

#define FOR_EVER_MS 3600000

static struct test_server server;
static struct test_wire good;
static struct prometheus told; /* by the last METRICS */
static unsigned scrapes;

static void begin_with(const char *fault)
{
    test_server_begin(&server, &good,
                      &(struct test_server_opts){.fault = fault});
}

static void begin(void)
{
    begin_with(NULL);
}

static void end(void)
{
    test_server_finish(&server, &good);
}

static size_t scraped_bytes; /* of the last reply, as it was sent */

static void scrape(struct test_wire *wire)
{
    struct hf_bytes reply = test_ask(wire, "METRICS");
    struct hf_bytes text = test_bulk(reply);

    scraped_bytes = reply.len;
    prometheus_release(&told);
    scrapes++;
    if (!prometheus_read(&told, text.data, text.len))
        test_fail(__FILE__, __LINE__, "%s", told.wrong);
}

static double value(const char *key)
{
    double found = prometheus_value(&told, key);

    if (isnan(found))
        test_fail(__FILE__, __LINE__, "there is no %s", key);
    return found;
}

#define CHECK_METRIC(key, expected)                                       \
    do {                                                                  \
        if (value(key) != (double)(expected))                             \
            test_fail(__FILE__, __LINE__, "%s: expected %g, got %g", key, \
                      (double)(expected), value(key));                    \
    } while (0)

static double info(struct test_wire *wire, const char *name)
{
    return test_info_real(wire, name);
}

static int64_t take(struct test_wire *wire, const char *lock,
                    const char *options)
{
    int64_t token = test_number(
        test_ask(wire, "LOCK %s OWNER me %s", lock, options), "token");

    CHECK(token > 0);
    return token;
}

/* Asks again until the metric has got there; it cannot get further. */
static void await(struct test_wire *wire, const char *key, double expected)
{
    uint64_t start = test_now_ms();

    do {
        CHECK(test_now_ms() - start < TEST_WIRE_DEADLINE_MS);
        scrape(wire);
    } while (value(key) < expected);
    CHECK_METRIC(key, expected);
}

static void check_lock_counts(void)
{
    CHECK_METRIC("holdfast_events_total{event=\"lock_granted\"}", 2);
    CHECK_METRIC("holdfast_events_total{event=\"lock_reentered\"}", 1);
    CHECK_METRIC("holdfast_events_total{event=\"lock_renewed\"}", 1);
    CHECK_METRIC("holdfast_events_total{event=\"lock_released\"}", 3);
    CHECK_METRIC("holdfast_lock_acquire_seconds_count", 3);
    CHECK_METRIC("holdfast_lock_wait_seconds_count{result=\"granted\"}", 1);
    CHECK_METRIC("holdfast_lock_wait_seconds_count{result=\"timeout\"}", 1);
    CHECK_METRIC("holdfast_lock_wait_seconds_count{result=\"left\"}", 0);
    CHECK_METRIC("holdfast_lock_hold_seconds_count", 2);
    CHECK_METRIC("holdfast_errors_total{code=\"BUSY\"}", 1);
    CHECK_METRIC("holdfast_errors_total{code=\"NOTHELD\"}", 1);
    CHECK_METRIC("holdfast_errors_total{code=\"LOST\"}", 1);
    CHECK_METRIC("holdfast_errors_total{code=\"TIMEOUT\"}", 1);
    CHECK_METRIC("holdfast_locks", 0);
    CHECK_METRIC("holdfast_commands_total{command=\"LOCK\"}", 5);
    CHECK_METRIC("holdfast_command_seconds_count{command=\"LOCK\"}", 5);
    CHECK_METRIC("holdfast_commands_total{command=\"UNLOCK\"}", 4);
    CHECK_METRIC("holdfast_command_seconds_count{command=\"UNLOCK\"}", 4);
    CHECK_METRIC("holdfast_commands_total{command=\"RENEW\"}", 2);
}

TEST(locks)
{
    struct test_wire *wire = &good;
    struct test_wire other;
    struct hf_bytes reply;

    begin();
    scrape(wire);
    double connections = value("holdfast_connections_total");
    test_server_connect(&server, &other);
    int64_t token = take(wire, "gate", "TTL 3600000");
    CHECK_EQ(take(wire, "gate", "TTL 3600000"), token); /* again */
    CHECK_ERROR(test_ask(&other, "LOCK gate OWNER you"), "BUSY");
    uint64_t queued_ms = test_now_ms();
    TEST_SEND(&other, "LOCK gate OWNER you WAIT %d TTL %d", FOR_EVER_MS,
              FOR_EVER_MS);
    await(wire, "holdfast_lock_waiters", 1);
    scrape(wire);
    CHECK_METRIC("holdfast_locks", 1);
    CHECK_METRIC("holdfast_lock_waiters", 1);
    CHECK_METRIC("holdfast_connections_total", connections + 1);
    CHECK_METRIC("holdfast_lock_wait_seconds_count{result=\"granted\"}", 0);
    CHECK_METRIC("holdfast_lock_hold_seconds_count", 0);
    CHECK_DONE(test_ask(wire, "UNLOCK gate %" PRId64, token));
    CHECK_DONE(test_ask(wire, "UNLOCK gate %" PRId64, token));
    reply = TEST_ANSWER(&other);
    int64_t next = test_number(reply, "token");
    uint64_t granted_ms = test_now_ms();
    CHECK_DONE(test_ask(&other, "RENEW gate %" PRId64 " TTL 60000", next));
    CHECK_ERROR(test_ask(wire, "UNLOCK gate %" PRId64, token), "NOTHELD");
    CHECK_ERROR(test_ask(wire, "RENEW gate %" PRId64 " TTL 5", token), "LOST");
    uint64_t start_ms = test_now_ms();
    CHECK_ERROR(test_ask(wire, "LOCK gate OWNER me WAIT 60"), "TIMEOUT");
    uint64_t waited_ms = test_now_ms() - start_ms;
    CHECK_DONE(test_ask(&other, "UNLOCK gate %" PRId64, next));
    scrape(wire);
    check_lock_counts();
    /* Times lie between what must have passed and what has passed. */
    double wait = value("holdfast_lock_wait_seconds_sum{result=\"timeout\"}");
    CHECK(wait >= 0.0599 && wait <= (double)waited_ms / 1000 + 0.002);
    wait = value("holdfast_lock_wait_seconds_sum{result=\"granted\"}");
    CHECK(wait > 0 && wait <= (double)(granted_ms - queued_ms) / 1000 + 0.002);
    CHECK(value("holdfast_lock_hold_seconds_sum") >= 0.0599);
    CHECK(value("holdfast_lock_acquire_seconds_sum") >= wait);
    /* Of the last minute: gone by then on a machine that is very slow. */
    double p99 = prometheus_value(
        &told, "holdfast_lock_acquire_seconds{quantile=\"0.99\"}");
    CHECK(isnan(p99) || p99 >= wait * 0.999);
    CHECK_EQ(info(wire, "lock_acquire_seconds_count"), 3);
    CHECK(info(wire, "lock_acquire_seconds{quantile=\"0.99\"}") >=
          info(wire, "lock_acquire_seconds{quantile=\"0.5\"}"));
    CHECK(info(wire, "lock_acquire_seconds{quantile=\"0.95\"}") <=
          info(wire, "lock_acquire_seconds{quantile=\"0.99\"}"));
    CHECK_EQ(info(wire, "lock_wait_seconds_count{result=\"granted\"}"), 1);
    CHECK(info(wire, "lock_wait_seconds_sum{result=\"timeout\"}") >= 0.0599);
    CHECK_EQ(info(wire, "lock_hold_seconds_count"), 2);
    test_wire_close(&other);
    end();
}

/* A MULTI that a fence refuses; behind a change, so that it is journaled, or
 * alone. */
static void fence_group(struct test_wire *wire, bool behind)
{
    struct hf_bytes reply = {NULL, 0};
    int replies = 4 + behind;

    if (behind)
        test_wire_add(wire, "STOCK SET pen 1");
    test_wire_add(wire, "MULTI");
    test_wire_add(wire, "STOCK SET ink 1");
    test_wire_add(wire, "FENCE disk 1");
    test_wire_add(wire, "EXEC");
    CHECK_EQ(test_wire_send(wire), HF_OK);
    while (replies-- > 0)
        CHECK_EQ(test_wire_read(wire, &reply), HF_OK);
    CHECK_ERROR(reply, "EXECABORT");
}

TEST(expiry_fences_and_clients_that_leave)
{
    struct test_wire *wire = &good;
    struct test_wire other;

    begin();
    (void)take(wire, "brief", "TTL 1");
    await(wire, "holdfast_events_total{event=\"lock_expired\"}", 1);
    CHECK_METRIC("holdfast_cleanup_lag_seconds_count", 1);
    CHECK_METRIC("holdfast_lock_hold_seconds_count", 1);
    CHECK(value("holdfast_lock_hold_seconds_sum") >= 0.001);
    CHECK(fabs(value("holdfast_cleanup_lag_seconds_sum") -
               info(wire, "cleanup_lag_seconds_sum")) < 1e-9);
    CHECK_DONE(test_ask(wire, "FENCE disk 2"));
    CHECK_DONE(test_ask(wire, "FENCE disk 3"));
    CHECK_ERROR(test_ask(wire, "FENCE disk 1"), "STALE");
    CHECK_ERROR(test_ask(wire, "FENCE disk 2"), "STALE");
    CHECK_ERROR(test_ask(wire, "FENCE disk 5"), "BADARG");
    fence_group(wire, false);
    fence_group(wire, true);
    int64_t token = take(wire, "gate", "TTL 3600000");
    test_server_connect(&server, &other);
    TEST_SEND(&other, "LOCK gate OWNER you WAIT %d", FOR_EVER_MS);
    await(wire, "holdfast_lock_waiters", 1);
    test_wire_close(&other);
    await(wire, "holdfast_lock_wait_seconds_count{result=\"left\"}", 1);
    CHECK_DONE(test_ask(wire, "UNLOCK gate %" PRId64, token));
    scrape(wire);
    CHECK_METRIC("holdfast_errors_total{code=\"STALE\"}", 4);
    CHECK_METRIC("holdfast_errors_total{code=\"EXECABORT\"}", 2);
    CHECK_METRIC("holdfast_errors_total{code=\"BADARG\"}", 1);
    CHECK_METRIC("holdfast_events_total{event=\"fence_raised\"}", 2);
    CHECK_METRIC("holdfast_fences", 1);
    CHECK_METRIC("holdfast_lock_waiters", 0);
    CHECK_METRIC("holdfast_lock_wait_seconds_count{result=\"granted\"}", 0);
    end();
}

/* A MULTI that `words` refuse, behind a RESERVE that would succeed; in one
 * write with a change, so that it is journaled, or alone. */
static void ask_group(struct test_wire *wire, bool behind, const char *words)
{
    struct hf_bytes reply = {NULL, 0};
    int replies = 5 + behind;

    if (behind)
        test_wire_add(wire, "STOCK ATTR a color red");
    test_wire_add(wire, "MULTI");
    test_wire_add(wire, "RESERVE first ITEM b 1");
    test_wire_add(wire, "STOCK GET a");
    test_wire_add(wire, "%s", words);
    test_wire_add(wire, "EXEC");
    CHECK_EQ(test_wire_send(wire), HF_OK);
    while (replies-- > 0)
        CHECK_EQ(test_wire_read(wire, &reply), HF_OK);
    CHECK_ERROR(reply, "EXECABORT");
}

TEST(stock_and_reservations)
{
    struct test_wire *wire = &good;

    begin();
    CHECK_DONE(test_ask(wire, "STOCK SET a 100"));
    CHECK_DONE(test_ask(wire, "STOCK SET b 60"));
    CHECK_DONE(test_ask(wire, "STOCK SET gone 5"));
    CHECK_DONE(test_ask(wire, "STOCK ADD b -10"));
    CHECK_DONE(test_ask(wire, "STOCK DEL gone"));
    CHECK_DONE(test_ask(wire, "RESERVE r1 ITEM a 10"));
    CHECK_DONE(test_ask(wire, "RESERVE r2 ITEM a 5 ITEM b 7"));
    CHECK_DONE(test_ask(wire, "RESERVE r3 ITEM a 1 TTL 1"));
    CHECK_DONE(test_ask(wire, "RESERVE r4 ITEM b 20"));
    CHECK_DONE(test_ask(wire, "RESERVE r5 ITEM b 3"));
    CHECK_ERROR(test_ask(wire, "RESERVE r6 ITEM a 1000"), "SHORT");
    CHECK_ERROR(test_ask(wire, "RESERVE r6 ITEM nothing 1"), "NOTFOUND");
    ask_group(wire, false, "RESERVE r7 ITEM a 1000"); /* these two count */
    ask_group(wire, true, "RESERVE r7 ITEM a 1000");
    ask_group(wire, false, "CANCEL nothing");
    ask_group(wire, true, "CANCEL nothing");
    CHECK_DONE(test_ask(wire, "EXTEND r1 TTL 600000"));
    CHECK_DONE(test_ask(wire, "CONFIRM r1"));
    CHECK_DONE(test_ask(wire, "CONFIRM r5"));
    CHECK_DONE(test_ask(wire, "CANCEL r2"));
    CHECK_ERROR(test_ask(wire, "CANCEL r1"), "STATE");
    await(wire, "holdfast_events_total{event=\"reservation_expired\"}", 1);
    CHECK_METRIC("holdfast_events_total{event=\"reserved\"}", 5);
    CHECK_METRIC("holdfast_events_total{event=\"confirmed\"}", 2);
    CHECK_METRIC("holdfast_events_total{event=\"cancelled\"}", 1);
    CHECK_METRIC("holdfast_events_total{event=\"extended\"}", 1);
    CHECK_METRIC("holdfast_events_total{event=\"stock_changed\"}", 4);
    CHECK_METRIC("holdfast_events_total{event=\"stock_deleted\"}", 1);
    CHECK_METRIC("holdfast_reservation_confirm_seconds_count", 2);
    CHECK_METRIC("holdfast_cleanup_lag_seconds_count", 1);
    CHECK_METRIC("holdfast_reservation_success_ratio", 5.0 / 9);
    CHECK_METRIC("holdfast_reserves_refused_total", 4);
    CHECK_METRIC("holdfast_reservation_recent_success_ratio", 1); /* too few */
    CHECK_METRIC("holdfast_reservation_recent_expiry_ratio", 0);
    CHECK_METRIC("holdfast_alert{rule=\"reservation_success\"}", 0);
    CHECK_METRIC("holdfast_reservation_expiry_ratio", 0.25);
    CHECK_METRIC("holdfast_reservations", 5);
    CHECK_METRIC("holdfast_reservations_pending", 1);
    CHECK_METRIC("holdfast_products", 2);
    CHECK_METRIC("holdfast_stock_total_units", 150);
    CHECK_METRIC("holdfast_stock_reserved_units", 20);
    CHECK_METRIC("holdfast_stock_sold_units", 13);
    CHECK_METRIC("holdfast_stock_utilisation_ratio", 20.0 / 137);
    CHECK_METRIC("holdfast_errors_total{code=\"SHORT\"}", 1);
    CHECK_METRIC("holdfast_errors_total{code=\"NOTFOUND\"}", 1);
    CHECK_METRIC("holdfast_errors_total{code=\"STATE\"}", 1);
    CHECK_METRIC("holdfast_commands_total{command=\"STOCK SET\"}", 3);
    CHECK_EQ(info(wire, "events_total{event=\"reserved\"}"), 5);
    CHECK_EQ(info(wire, "reservation_confirm_seconds_count"), 2);
    CHECK_DONE(test_ask(wire, "FLUSHALL"));
    scrape(wire);
    CHECK_METRIC("holdfast_stock_total_units", 0);
    CHECK_METRIC("holdfast_stock_utilisation_ratio", 0);
    CHECK_METRIC("holdfast_events_total{event=\"flushed\"}", 1);
    end();
}

/* A look counts what it was asked by, but not its answer, which is not sent
 * yet. */
TEST(bytes_in_and_out_and_processor_time)
{
    static const char *const time = "process_cpu_seconds_total";
    struct test_wire *wire = &good;

    begin();
    scrape(wire);
    double in = value("holdfast_received_bytes_total");
    double out = value("holdfast_sent_bytes_total") + (double)scraped_bytes;
    double used = value(time);
    CHECK(used > 0);
    for (int i = 0; i < 3; i++)
        CHECK_REPLY(test_ask(wire, "PING"), "+PONG");
    scrape(wire);
    in += (double)(3 * strlen("*1\r\n$4\r\nPING\r\n") +
                   strlen("*1\r\n$7\r\nMETRICS\r\n"));
    out += (double)(3 * strlen("+PONG\r\n"));
    CHECK_METRIC("holdfast_received_bytes_total", in);
    CHECK_METRIC("holdfast_sent_bytes_total", out);
    uint64_t start = test_now_ms();
    while (value(time) <= used) { /* each look takes some */
        CHECK(test_now_ms() - start < TEST_WIRE_DEADLINE_MS);
        scrape(wire);
    }
    end();
}

TEST(commands_errors_limits_and_the_journal)
{
    struct test_wire *wire = &good;

    begin();
    scrape(wire);
    double records = value("holdfast_journal_records_total");
    double before = value("holdfast_journal_batch_records_sum");
    double batches = value("holdfast_journal_batch_records_count");
    double commits = value("holdfast_commits_total");
    scrapes = 1;
    for (int i = 0; i < 3; i++)
        CHECK_REPLY(test_ask(wire, "PING"), "+PONG");
    CHECK_ERROR(test_ask(wire, "NONSENSE"), "ERR");
    CHECK_ERROR(test_ask(wire, "NONSENSE again"), "ERR");
    CHECK_ERROR(test_ask(wire, "LOCK x"), "BADARG");
    CHECK_ERROR(test_ask(wire, "ECHO"), "BADARG");
    CHECK_ERROR(test_ask(wire, "HELLO 9"), "NOPROTO");
    for (int i = 0; i < 5; i++)
        CHECK_DONE(test_ask(wire, "LIMIT k RATE 2 PER 3600000"));
    for (int i = 0; i < 10; i++)
        test_wire_add(wire, "STOCK SET s%d 1", i);
    CHECK_EQ(test_wire_send(wire), HF_OK);
    for (int i = 0; i < 10; i++) {
        CHECK_DONE(TEST_ANSWER(wire));
    }
    scrape(wire);
    CHECK_METRIC("holdfast_commands_total{command=\"PING\"}", 3);
    CHECK_METRIC("holdfast_command_seconds_count{command=\"PING\"}", 3);
    CHECK_METRIC("holdfast_commands_total{command=\"unknown\"}", 2);
    CHECK_METRIC("holdfast_commands_total{command=\"LOCK\"}", 1);
    CHECK_METRIC("holdfast_command_seconds_count{command=\"LOCK\"}", 0);
    CHECK_METRIC("holdfast_commands_total{command=\"LIMIT\"}", 5);
    CHECK_METRIC("holdfast_commands_total{command=\"METRICS\"}", 2);
    CHECK_METRIC("holdfast_errors_total{code=\"ERR\"}", 2);
    CHECK_METRIC("holdfast_errors_total{code=\"BADARG\"}", 2);
    CHECK_METRIC("holdfast_errors_total{code=\"NOPROTO\"}", 1);
    CHECK_METRIC("holdfast_limit_decisions_total{decision=\"allowed\"}", 2);
    CHECK_METRIC("holdfast_limit_decisions_total{decision=\"denied\"}", 3);
    CHECK_METRIC("holdfast_limit_keys", 1);
    CHECK_METRIC("holdfast_journal_records_total", records + 10);
    CHECK_METRIC("holdfast_journal_batch_records_sum", before + 10);
    double more = value("holdfast_journal_batch_records_count") - batches;
    CHECK(more >= 1 && more <= 10);
    CHECK_METRIC("holdfast_commits_total", commits + more);
    CHECK_METRIC("holdfast_journal_sync_seconds_count", batches + more);
    CHECK_METRIC("holdfast_journal_batch_bytes_count", batches + more);
    CHECK(value("holdfast_journal_batch_bytes_sum") > 0);
    CHECK(value("holdfast_journal_sync_seconds_sum") > 0);
    CHECK_METRIC("holdfast_connections", 1);
    CHECK_METRIC("holdfast_connections_refused_total", 0);
    CHECK_METRIC("holdfast_log_dropped_total", 0);
    CHECK_METRIC("holdfast_journal_failed", 0);
    CHECK(value("process_resident_memory_bytes") > 1e6);
    CHECK(value("holdfast_engine_bytes") > 0);
    CHECK(value("holdfast_uptime_seconds") > 0);
    CHECK_EQ(info(wire, "total_error_replies"), 5);
    CHECK_EQ(info(wire, "limit_decisions_total{decision=\"allowed\"}"), 2);
    CHECK_EQ(info(wire, "limit_decisions_total{decision=\"denied\"}"), 3);
    /* 3 + 2 + 2 + 1 + 5 + 10, the scrapes, and INFO as often as asked. */
    CHECK_EQ(info(wire, "total_commands_processed"), 23 + scrapes + 4);
    end();
}

/* Its end is told before the engine can know of it, and counted once. */
TEST(a_wait_that_times_out_while_the_disk_hangs)
{
    struct test_wire waiter;
    struct test_wire writer;

    begin_with("write:4:stall");
    test_server_connect(&server, &waiter);
    test_server_connect(&server, &writer);
    (void)take(&good, "gate", "TTL 3600000");
    TEST_SEND(&waiter, "LOCK gate OWNER you WAIT 1500");
    await(&good, "holdfast_lock_waiters", 1);
    test_wire_add(&writer, "FENCE disk 1"); /* the fourth write */
    CHECK_EQ(test_wire_send(&writer), HF_OK);
    CHECK_ERROR(TEST_ANSWER(&waiter), "TIMEOUT");
    scrape(&good);
    CHECK_METRIC("holdfast_lock_wait_seconds_count{result=\"timeout\"}", 1);
    CHECK_METRIC("holdfast_command_seconds_count{command=\"LOCK\"}", 2);
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(TEST_ANSWER(&writer));
    uint64_t start_ms = test_now_ms();
    do {
        CHECK(test_now_ms() - start_ms < TEST_WIRE_DEADLINE_MS);
        scrape(&good);
    } while (value("holdfast_lock_waiters") > 0);
    CHECK_METRIC("holdfast_lock_wait_seconds_count{result=\"timeout\"}", 1);
    CHECK_METRIC("holdfast_lock_wait_seconds_count{result=\"left\"}", 0);
    CHECK_METRIC("holdfast_lock_wait_seconds_count{result=\"granted\"}", 0);
    CHECK_METRIC("holdfast_command_seconds_count{command=\"LOCK\"}", 2);
    test_wire_close(&waiter);
    test_wire_close(&writer);
    end();
    prometheus_release(&told);
}

/* Prometheus reckons with the one as it does not with the other. */
TEST(what_is_counted_is_a_counter_and_nothing_else_is)
{
    static const char head[] = "# TYPE ";
    unsigned counters = 0;

    begin();
    struct hf_bytes text = test_bulk(test_ask(&good, "METRICS"));
    for (const char *at = text.data, *to = text.data + text.len; at < to;) {
        const char *stop_at = memchr(at, '\n', (size_t)(to - at));
        CHECK(stop_at != NULL);
        struct hf_bytes line = hf_bytes(at, (size_t)(stop_at - at));
        at = stop_at + 1;
        if (line.len < sizeof head || memcmp(line.data, head, sizeof head - 1))
            continue;
        bool total = memmem(line.data, line.len, "_total ", 7) != NULL;
        if ((memmem(line.data, line.len, " counter", 8) != NULL) != total)
            test_fail(__FILE__, __LINE__, "%.*s", (int)line.len, line.data);
        counters += total;
    }
    CHECK(counters > 10);
    end();
}

TEST(a_reservation_that_waits_in_vain_is_no_success)
{
    begin();
    CHECK_DONE(test_ask(&good, "STOCK SET pen 1"));
    CHECK_DONE(test_ask(&good, "RESERVE a ITEM pen 1 TTL %d", FOR_EVER_MS));
    scrape(&good);
    CHECK(value("holdfast_reservation_success_ratio") == 1);
    CHECK_ERROR(test_ask(&good, "RESERVE b ITEM pen 1 WAIT 1"), "TIMEOUT");
    scrape(&good);
    CHECK(value("holdfast_reservation_success_ratio") == 0.5);
    end();
}
