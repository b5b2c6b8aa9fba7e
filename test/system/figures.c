/* figures.c - what the server counts: these, so often, and nothing else.
 * tests: also under sanitizers
 *
 * A session of requests is run between two looks at METRICS. Its table tells
 * by how much each count grows; every count that is not in it must stay. Times
 * to live are long, so that nothing is due by itself.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>

#include "support/prometheus.h"
#include "support/server.h"
#include "support/test.h"

#define LONG_MS 3600000

static struct test_server server;
static struct test_wire me;
static struct test_wire you;
static struct prometheus before;
static struct prometheus after;
static unsigned scrapes; /* since begin_session */

struct change {
    const char *name;  /* without "holdfast_" */
    const char *label; /* its only label's value; NULL: it has none */
    double by;
};

/* Counts that depend on how the disk and the log are doing, or on how long what
 * was said is. */
static const char *const loose[5] = {
    "holdfast_journal_bytes_total", "holdfast_journal_slow_commits_total",
    "holdfast_log_lines_total", "holdfast_received_bytes_total",
    "holdfast_sent_bytes_total"};
/* And, where the server writes records of its own, these. */
static const char *const written[5] = {
    "holdfast_journal_records_total", "holdfast_journal_batch_records_count",
    "holdfast_journal_batch_bytes_count", "holdfast_journal_sync_seconds_count",
    "holdfast_commits_total"};
static bool has_own_records;

static void begin(const char *fault)
{
    test_server_begin(&server, &me, &(struct test_server_opts){.fault = fault});
    test_wire_close(&you);
    test_server_connect(&server, &you);
    CHECK_REPLY(test_ask(&you, "PING"), "+PONG");
}

static void end(void)
{
    test_wire_close(&you);
    prometheus_release(&before);
    prometheus_release(&after);
    test_server_finish(&server, &me);
}

static void scrape(struct prometheus *into)
{
    struct hf_bytes text = test_bulk(test_ask(&me, "METRICS"));

    prometheus_release(into);
    scrapes++;
    if (!prometheus_read(into, text.data, text.len))
        test_fail(__FILE__, __LINE__, "%s", into->wrong);
}

static void begin_session(void)
{
    scrape(&before);
    scrapes = 0;
    has_own_records = false;
}

static double grown(const char *key)
{
    return prometheus_value(&after, key) - prometheus_value(&before, key);
}

static void await(const char *key, double value)
{
    uint64_t end_ms = test_now_ms() + TEST_WIRE_DEADLINE_MS;

    do {
        CHECK(test_now_ms() < end_ms);
        scrape(&after);
    } while (prometheus_value(&after, key) != value);
}

/* A sample that only grows: a counter, or how often something was measured. */
static bool is_count(const struct prometheus_sample *sample)
{
    size_t len = strlen(sample->name);

    if (strcmp(after.families[sample->family].kind, "counter") == 0)
        return true;
    return len > 6 && strcmp(sample->name + len - 6, "_count") == 0;
}

static bool is_loose(const char *name)
{
    for (size_t i = 0; i < 5; i++) {
        if (strcmp(loose[i], name) == 0 ||
            (has_own_records && strcmp(written[i], name) == 0))
            return true;
    }
    return false;
}

/* The server's, and not that of a pool or another object of the library. */
static bool is_ours(const char *name)
{
    return strncmp(name, "holdfast_", 9) == 0 &&
           strncmp(name, "holdfast_object_", 16) != 0;
}

/* Is it the sample of that row? Labels are {name="value"}. */
static bool is_row(const struct prometheus_sample *sample,
                   const struct change *row)
{
    char value[80];

    if (strcmp(sample->name + strlen("holdfast_"), row->name) != 0)
        return false;
    if (row->label == NULL)
        return strchr(sample->key, '{') == NULL;
    snprintf(value, sizeof value, "=\"%s\"}", row->label);
    return strstr(sample->key, value) != NULL;
}

static double expected_of(const struct prometheus_sample *sample,
                          const struct change *changes, size_t count,
                          size_t *used)
{
    for (size_t i = 0; i < count; i++) {
        if (is_row(sample, &changes[i])) {
            ++*used;
            return changes[i].by;
        }
    }
    if (strstr(sample->key, "command=\"METRICS\"") != NULL)
        return scrapes;
    return 0;
}

static void check_session(const struct change *changes, size_t count)
{
    size_t used = 0;

    scrape(&after);
    for (size_t i = 0; i < after.sample_count; i++) {
        const struct prometheus_sample *sample = &after.samples[i];
        if (!is_count(sample) || is_loose(sample->name) ||
            !is_ours(sample->name))
            continue;
        double expected = expected_of(sample, changes, count, &used);
        if (grown(sample->key) != expected)
            test_fail(__FILE__, __LINE__, "%s grew by %g, not by %g",
                      sample->key, grown(sample->key), expected);
    }
    CHECK_EQ(used, count); /* each row names one that is there */
}

#define CHECK_SESSION(changes) \
    check_session(changes, sizeof(changes) / sizeof *(changes))

/* A request that was answered counts twice: that it came, how long it took. */
#define ASKED(command, times)                   \
    {"commands_total", command, times},         \
    {                                           \
        "command_seconds_count", command, times \
    }
#define TOLD(code, times)           \
    {                               \
        "errors_total", code, times \
    }
#define EVENT(event, times)          \
    {                                \
        "events_total", event, times \
    }
/* So many records, each in a batch of its own. */
#define JOURNALED(records)                              \
    {"journal_records_total", NULL, records},           \
        {"journal_batch_records_count", NULL, records}, \
        {"journal_batch_bytes_count", NULL, records},   \
        {"journal_sync_seconds_count", NULL, records},  \
    {                                                   \
        "commits_total", NULL, records                  \
    }

static int64_t lock(struct test_wire *wire, const char *words)
{
    int64_t token = test_number(test_ask(wire, "LOCK %s", words), "token");

    CHECK(token > 0);
    return token;
}

static double info(const char *name)
{
    return (double)test_info(&me, name);
}

TEST(looking_counts_nothing_but_itself)
{
    begin(NULL);
    begin_session();
    check_session(NULL, 0);
    end();
}

TEST(requests_without_the_engine)
{
    static const struct change changes[] = {
        ASKED("PING", 3),
        ASKED("ECHO", 1),
        ASKED("CONFIG GET", 1),
        ASKED("LIMIT", 4),
        {"commands_total", "unknown", 2},
        {"commands_total", "LOCK", 1},
        {"commands_total", "SELECT", 1},
        {"commands_total", "HELLO", 1},
        {"command_seconds_count", "HELLO", 1},
        TOLD("ERR", 1),
        TOLD("BADARG", 3),
        TOLD("NOPROTO", 1),
        {"limit_decisions_total", "allowed", 1},
        {"limit_decisions_total", "denied", 3},
        {"connections_total", NULL, 1},
    };
    struct test_wire third;

    begin(NULL);
    begin_session();
    for (int i = 0; i < 3; i++)
        CHECK_REPLY(test_ask(&me, "PING"), "+PONG");
    CHECK_DONE(test_ask(&you, "ECHO a"));
    CHECK_DONE(test_ask(&me, "CONFIG GET port"));
    CHECK_ERROR(test_ask(&me, "NONSENSE"), "ERR");
    CHECK_ERROR(test_ask(&me, "STOCK NONSENSE"), "BADARG");
    CHECK_ERROR(test_ask(&me, "LOCK gate"), "BADARG");
    CHECK_ERROR(test_ask(&me, "SELECT"), "BADARG");
    CHECK_ERROR(test_ask(&me, "HELLO 9"), "NOPROTO");
    for (int i = 0; i < 4; i++)
        CHECK_DONE(test_ask(&me, "LIMIT k RATE 1 PER %d", LONG_MS));
    test_server_connect(&server, &third);
    test_wire_close(&third);
    await("holdfast_connections", 2);
    CHECK_SESSION(changes);
    CHECK_EQ(info("total_error_replies"), 5);
    end();
}

TEST(locks_and_their_refusals)
{
    static const struct change changes[] = {
        ASKED("LOCK", 6),
        ASKED("UNLOCK", 4),
        ASKED("RENEW", 2),
        ASKED("FENCE", 2),
        ASKED("LOCKINFO", 2),
        ASKED("LOCKS", 1),
        TOLD("BUSY", 1),
        TOLD("NOTHELD", 1),
        TOLD("LOST", 1),
        TOLD("STALE", 1),
        TOLD("NOTFOUND", 1),
        EVENT("lock_granted", 3),
        EVENT("lock_reentered", 1),
        EVENT("lock_renewed", 1),
        EVENT("lock_released", 3),
        EVENT("fence_raised", 1),
        {"lock_hold_seconds_count", NULL, 2},
        {"lock_acquire_seconds_count", NULL, 4},
        /* BUSY, NOTHELD, LOST, STALE, and the REQ that was answered again */
        {"refused_without_journal_total", NULL, 5},
        JOURNALED(9),
    };

    begin(NULL);
    begin_session();
    int64_t first = lock(&me, "gate OWNER me TTL 3600000");
    CHECK_EQ(lock(&me, "gate OWNER me TTL 3600000"), first);
    CHECK_ERROR(test_ask(&you, "LOCK gate OWNER you"), "BUSY");
    int64_t second = lock(&you, "door OWNER you TTL 3600000 REQ one");
    CHECK_EQ(lock(&me, "door OWNER you TTL 3600000 REQ one"), second);
    (void)lock(&me, "last OWNER me TTL 3600000 WAIT 1000"); /* at once */
    CHECK_DONE(test_ask(&me, "FENCE disk %" PRId64, second));
    CHECK_ERROR(test_ask(&me, "FENCE disk %" PRId64, first), "STALE");
    CHECK_DONE(test_ask(&me, "RENEW gate %" PRId64 " TTL 3600000", first));
    CHECK_ERROR(test_ask(&me, "RENEW gate %" PRId64 " TTL 9", second), "LOST");
    CHECK_DONE(test_ask(&me, "LOCKINFO gate"));
    CHECK_ERROR(test_ask(&me, "LOCKINFO nothing"), "NOTFOUND");
    CHECK_DONE(test_ask(&me, "LOCKS"));
    CHECK_DONE(test_ask(&me, "UNLOCK gate %" PRId64, first));
    CHECK_DONE(test_ask(&me, "UNLOCK gate %" PRId64, first));
    CHECK_ERROR(test_ask(&me, "UNLOCK gate %" PRId64, first), "NOTHELD");
    CHECK_DONE(test_ask(&you, "UNLOCK door %" PRId64, second));
    CHECK_SESSION(changes);
    CHECK_EQ(grown("holdfast_journal_batch_records_sum"), 9);
    CHECK_EQ(info("refused_without_journal_total"), 5);
    CHECK_EQ(info("events_total{event=\"lock_granted\"}"), 3);
    CHECK_EQ(info("locks"), 1);
    end();
}

TEST(stock_and_its_refusals)
{
    static const struct change changes[] = {
        ASKED("STOCK SET", 2),
        ASKED("STOCK ADD", 1),
        ASKED("STOCK GET", 2),
        ASKED("STOCK LIST", 1),
        ASKED("STOCK DEL", 1),
        ASKED("RESERVE", 4),
        ASKED("CONFIRM", 3),
        ASKED("CANCEL", 2),
        ASKED("EXTEND", 1),
        ASKED("RESERVATION", 1),
        TOLD("SHORT", 1),
        TOLD("NOTFOUND", 3),
        TOLD("STATE", 1),
        EVENT("stock_changed", 3),
        EVENT("stock_deleted", 1),
        EVENT("reserved", 2),
        EVENT("extended", 1),
        EVENT("confirmed", 1),
        EVENT("cancelled", 1),
        {"reservation_confirm_seconds_count", NULL, 1},
        /* SHORT, STATE, two of three NOTFOUND, and a CONFIRM once more */
        {"refused_without_journal_total", NULL, 5},
        {"reserves_refused_total", NULL, 2},
        JOURNALED(9),
    };

    begin(NULL);
    begin_session();
    CHECK_DONE(test_ask(&me, "STOCK SET bolt 10"));
    CHECK_DONE(test_ask(&me, "STOCK SET nut 5"));
    CHECK_DONE(test_ask(&me, "STOCK ADD bolt 2"));
    CHECK_DONE(test_ask(&me, "STOCK GET bolt"));
    CHECK_ERROR(test_ask(&me, "STOCK GET nothing"), "NOTFOUND");
    CHECK_DONE(test_ask(&me, "STOCK LIST"));
    CHECK_DONE(test_ask(&me, "STOCK DEL nut"));
    CHECK_DONE(test_ask(&me, "RESERVE one ITEM bolt 3"));
    CHECK_DONE(test_ask(&me, "RESERVE two ITEM bolt 4"));
    CHECK_ERROR(test_ask(&me, "RESERVE three ITEM bolt 100"), "SHORT");
    CHECK_ERROR(test_ask(&me, "RESERVE three ITEM nut 1"), "NOTFOUND");
    CHECK_DONE(test_ask(&me, "EXTEND one TTL 3600000"));
    CHECK_DONE(test_ask(&me, "CONFIRM one REQ sold"));
    CHECK_DONE(test_ask(&me, "CONFIRM one REQ sold"));
    CHECK_ERROR(test_ask(&me, "CONFIRM nothing"), "NOTFOUND");
    CHECK_DONE(test_ask(&me, "CANCEL two"));
    CHECK_ERROR(test_ask(&me, "CANCEL one"), "STATE");
    CHECK_DONE(test_ask(&me, "RESERVATION one"));
    CHECK_SESSION(changes);
    CHECK_EQ(grown("holdfast_journal_batch_records_sum"), 9);
    CHECK_EQ(prometheus_value(&after, "holdfast_stock_total_units"), 12);
    CHECK_EQ(prometheus_value(&after, "holdfast_stock_sold_units"), 3);
    CHECK_EQ(prometheus_value(&after, "holdfast_stock_reserved_units"), 0);
    end();
}

/* What is in a batch depends on how it arrives, how much there is does not. */
TEST(a_pipeline_has_as_many_records_as_writes)
{
    begin(NULL);
    begin_session();
    for (int i = 0; i < 50; i++)
        test_wire_add(&me, "STOCK SET s%d 1", i);
    CHECK_EQ(test_wire_send(&me), HF_OK);
    for (int i = 0; i < 50; i++) {
        CHECK_DONE(TEST_ANSWER(&me));
    }
    scrape(&after);
    double batches = grown("holdfast_journal_batch_records_count");
    CHECK(batches >= 1 && batches <= 50);
    CHECK_EQ(grown("holdfast_journal_records_total"), 50);
    CHECK_EQ(grown("holdfast_journal_batch_records_sum"), 50);
    CHECK_EQ(grown("holdfast_commits_total"), batches);
    CHECK_EQ(grown("holdfast_journal_batch_bytes_count"), batches);
    CHECK_EQ(grown("holdfast_journal_sync_seconds_count"), batches);
    CHECK(grown("holdfast_journal_batch_bytes_sum") >= 50 * 10);
    CHECK(grown("holdfast_journal_sync_seconds_sum") > 0);
    end();
}

TEST(events_and_those_who_hear_of_them)
{
    static const struct change changes[] = {
        ASKED("SUBSCRIBE", 1),
        ASKED("PSUBSCRIBE", 1),
        ASKED("PUBLISH", 2),
        ASKED("EVENTS", 2),
        ASKED("INFO", 4),
        ASKED("LOCK", 1),
        TOLD("NOPERM", 1),
        EVENT("lock_granted", 1),
        {"lock_acquire_seconds_count", NULL, 1},
        {"published_total", NULL, 3}, /* a lock has two channels */
        {"delivered_total", NULL, 4},
        JOURNALED(1),
    };
    struct test_wire third;

    begin(NULL);
    test_server_connect(&server, &third);
    CHECK_REPLY(test_ask(&third, "PING"), "+PONG");
    int64_t from = (int64_t)info("feed_last");
    begin_session();
    CHECK_DONE(test_ask(&you, "SUBSCRIBE news hf:lock:gate"));
    CHECK_DONE(TEST_ANSWER(&you));
    CHECK_DONE(test_ask(&you, "PSUBSCRIBE hf:*"));
    CHECK_EQ(info("subscriptions"), 3);
    CHECK_EQ(info("pubsub_channels"), 2);
    CHECK_EQ(info("pubsub_patterns"), 1);
    TEST_SEND(&third, "EVENTS FROM %" PRId64 " WAIT 3600000", from);
    await("holdfast_feed_waiters", 1);
    CHECK_EQ(info("blocked_clients"), 1);
    CHECK_REPLY(test_ask(&me, "PUBLISH news a"), ":1");
    CHECK_ERROR(test_ask(&me, "PUBLISH hf:lock:gate a"), "NOPERM");
    (void)lock(&me, "gate OWNER me TTL 3600000");
    for (int i = 0; i < 4; i++)
        CHECK_DONE(TEST_ANSWER(&you));
    CHECK_DONE(TEST_ANSWER(&third));
    CHECK_DONE(test_ask(&me, "EVENTS FROM %" PRId64, from));
    CHECK_SESSION(changes);
    CHECK_EQ(info("feed_last"), info("sequence"));
    test_wire_close(&third);
    end();
}

/* Questions behind a write, and writes that are refused behind one, take their
 * turn and are counted as those that go alone. */
TEST(what_is_queued_is_counted_as_what_is_not)
{
    static const struct change changes[] = {
        ASKED("STOCK SET", 1),    ASKED("STOCK GET", 1),
        ASKED("LOCKINFO", 2),     ASKED("RESERVATION", 1),
        ASKED("CONFIG SET", 1),   ASKED("RENEW", 1),
        ASKED("RESERVE", 3),      TOLD("NOTFOUND", 2),
        TOLD("OVERLOADED", 3),    EVENT("stock_changed", 1),
        EVENT("lock_renewed", 1),
    };

    begin(NULL);
    int64_t token = lock(&me, "gate OWNER me TTL 3600000");
    begin_session();
    has_own_records = true; /* time passes before a question */
    test_wire_add(&you, "STOCK SET bolt 7");
    test_wire_add(&you, "LOCKINFO nothing");
    test_wire_add(&you, "RESERVATION nothing");
    test_wire_add(&you, "LOCKINFO gate");
    TEST_SEND(&you, "STOCK GET bolt");
    CHECK_EQ(test_number(TEST_ANSWER(&you), "total"), 7);
    CHECK_ERROR(TEST_ANSWER(&you), "NOTFOUND");
    CHECK_ERROR(TEST_ANSWER(&you), "NOTFOUND");
    CHECK_EQ(test_number(TEST_ANSWER(&you), "token"), token);
    CHECK_EQ(test_number(TEST_ANSWER(&you), "total"), 7);
    CHECK_REPLY(test_ask(&me, "CONFIG SET memory-max-bytes 1"), "+OK");
    test_wire_add(&you, "RENEW gate %" PRId64 " TTL 3600000", token);
    test_wire_add(&you, "RESERVE one ITEM bolt 1");
    TEST_SEND(&you, "RESERVE two ITEM bolt 1");
    CHECK_DONE(TEST_ANSWER(&you));
    CHECK_ERROR(TEST_ANSWER(&you), "OVERLOADED");
    CHECK_ERROR(TEST_ANSWER(&you), "OVERLOADED");
    CHECK_ERROR(test_ask(&you, "RESERVE three ITEM bolt 1"), "OVERLOADED");
    CHECK_SESSION(changes);
    end();
}

/* Whatever the server does by itself is no request of anybody. */
TEST(waits_by_their_ends_and_what_the_server_does_itself)
{
    static const struct change changes[] = {
        {"commands_total", "LOCK", 5},
        {"command_seconds_count", "LOCK", 4}, /* one goes without an answer */
        ASKED("LOCKSET", 1),
        ASKED("ELECT", 1),
        ASKED("UNLOCK", 2),
        TOLD("TIMEOUT", 3),
        EVENT("lock_granted", 3),
        EVENT("lock_released", 2),
        EVENT("lock_expired", 1),
        {"lock_acquire_seconds_count", NULL, 3},
        {"lock_hold_seconds_count", NULL, 3},
        {"cleanup_lag_seconds_count", NULL, 1},
        {"lock_wait_seconds_count", "granted", 1},
        {"lock_wait_seconds_count", "timeout", 3},
        {"lock_wait_seconds_count", "left", 1},
    };
    struct test_wire third;

    begin(NULL);
    test_server_connect(&server, &third);
    CHECK_REPLY(test_ask(&third, "PING"), "+PONG");
    begin_session();
    has_own_records = true;
    (void)lock(&me, "brief OWNER me TTL 1");
    await("holdfast_locks", 0);
    int64_t first = lock(&me, "gate OWNER me TTL 3600000");
    TEST_SEND(&you, "LOCK gate OWNER you TTL 3600000 WAIT 3600000");
    await("holdfast_lock_waiters", 1);
    TEST_SEND(&third, "LOCK gate OWNER third WAIT 3600000");
    await("holdfast_lock_waiters", 2);
    test_wire_close(&third);
    await("holdfast_lock_waiters", 1);
    CHECK_DONE(test_ask(&me, "UNLOCK gate %" PRId64, first));
    int64_t second = test_number(TEST_ANSWER(&you), "token");
    CHECK(second > first);
    uint64_t start_ms = test_now_ms();
    CHECK_ERROR(test_ask(&me, "LOCK gate OWNER me WAIT 30"), "TIMEOUT");
    CHECK_ERROR(test_ask(&me, "LOCKSET OWNER me NAME gate WAIT 1"), "TIMEOUT");
    CHECK_ERROR(test_ask(&me, "ELECT gate OWNER me WAIT 1"), "TIMEOUT");
    double waited_s = (double)(test_now_ms() - start_ms) / 1000;
    CHECK_DONE(test_ask(&you, "UNLOCK gate %" PRId64, second));
    CHECK_SESSION(changes);
    double told_s = grown("holdfast_lock_wait_seconds_sum{result=\"timeout\"}");
    CHECK(told_s >= 0.029 && told_s <= waited_s + 0.002);
    CHECK_EQ(info("lock_wait_seconds_count{result=\"granted\"}"), 1);
    CHECK_EQ(info("lock_wait_seconds_count{result=\"timeout\"}"), 3);
    CHECK_EQ(info("lock_wait_seconds_count{result=\"left\"}"), 1);
    CHECK_EQ(info("lock_hold_seconds_count"), 3);
    end();
}

/* One that waits is told while the disk hangs. It is counted once, and not
 * again when the journal has it. */
TEST(a_disk_that_hangs)
{
    static const struct change changes[] = {
        ASKED("LOCK", 2),
        ASKED("STOCK SET", 1),
        TOLD("TIMEOUT", 1),
        EVENT("lock_granted", 1),
        EVENT("stock_changed", 1),
        {"lock_acquire_seconds_count", NULL, 1},
        {"lock_wait_seconds_count", "timeout", 1},
    };
    struct test_wire writer;

    begin("write:3:stall"); /* the first is of the start */
    test_server_connect(&server, &writer);
    CHECK_REPLY(test_ask(&writer, "PING"), "+PONG");
    begin_session();
    has_own_records = true;
    (void)lock(&me, "gate OWNER me TTL 3600000");
    TEST_SEND(&you, "LOCK gate OWNER you WAIT 6000");
    await("holdfast_lock_waiters", 1);
    scrape(&after);
    double slow =
        prometheus_value(&after, "holdfast_journal_slow_commits_total");
    TEST_SEND(&writer, "STOCK SET bolt 1");
    await("holdfast_journal_slow_commits_total", slow + 1);
    CHECK_ERROR(TEST_ANSWER(&you), "TIMEOUT");
    await("holdfast_journal_slow_commits_total", slow + 1); /* not again */
    CHECK(test_server_signal(&server, SIGUSR1));
    CHECK_DONE(TEST_ANSWER(&writer));
    await("holdfast_lock_waiters", 0);
    CHECK_SESSION(changes);
    CHECK(info("journal_slow_commits_total") >= slow + 1);
    CHECK(info("journal_sync_max_us") > 0);
    test_wire_close(&writer);
    end();
}

TEST(a_journal_that_fails)
{
    static const struct change changes[] = {
        ASKED("LOCK", 2),
        ASKED("STOCK SET", 5),
        ASKED("STOCK GET", 1),
        ASKED("CONFIG SET", 1),
        TOLD("JOURNAL", 7),
        TOLD("NOTFOUND", 1),
        EVENT("lock_granted", 1),
        {"lock_acquire_seconds_count", NULL, 1},
        {"lock_wait_seconds_count", "left", 1},
    };

    begin("write:3:eio");
    begin_session();
    has_own_records = true;
    (void)lock(&me, "gate OWNER me TTL 3600000");
    TEST_SEND(&you, "LOCK gate OWNER you WAIT 3600000");
    await("holdfast_lock_waiters", 1);
    for (int i = 0; i < 5; i++)
        CHECK_ERROR(test_ask(&me, "STOCK SET bolt %d", i), "JOURNAL");
    CHECK_ERROR(TEST_ANSWER(&you), "JOURNAL");
    CHECK_ERROR(test_ask(&me, "STOCK GET bolt"), "NOTFOUND");
    CHECK_ERROR(test_ask(&me, "CONFIG SET locks-max 5"), "JOURNAL");
    CHECK_SESSION(changes);
    CHECK_EQ(prometheus_value(&after, "holdfast_journal_failed"), 1);
    end();
}
