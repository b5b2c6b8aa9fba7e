/* Tests of the store in a PostgreSQL table, against a real server.
 *
 * tests: also under sanitizers
 */
#include <libpq-fe.h>
#include <signal.h>
#include <string.h>

#include "base/memory.h"
#include "holdfast/store.h"
#include "support/postgres.h"
#include "support/storing.h"
#include "support/test.h"
#include "support/threads.h"

static struct test_postgres *server;

/* One server for all tests; each has a table of its own. */
static struct hf_store begin(struct hf_store_postgres_opts opts)
{
    struct hf_store store;

    memset(&told, 0, sizeof told);
    if (server == NULL)
        server = test_postgres_start(NULL);
    opts.conninfo = server->conninfo;
    opts.failed = tell;
    CHECK_EQ(hf_store_postgres_open(&store, &opts), HF_OK);
    return store;
}

static PGconn *connect_other(void)
{
    PGconn *conn = PQconnectdb(server->conninfo);

    CHECK_EQ(PQstatus(conn), CONNECTION_OK);
    return conn;
}

static void run(PGconn *conn, const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, PQerrorMessage(conn));
}

TEST(puts_and_deletes_are_applied_and_survive)
{
    struct hf_store_postgres_opts opts = {.table = "plain"};
    struct hf_store store = begin(opts);
    struct hf_store_change first[] = {put("a", "1"), put("b", ""), gone("c")};
    struct hf_store_change second[] = {put("a", "2"), gone("b")};
    struct hf_store_change third[] = {gone("a")};
    struct hf_store_stats stats;

    CHECK_EQ(store.apply(store.context, first, 3), HF_OK);
    check_value(&store, "a", "1");
    check_value(&store, "b", "");
    check_value(&store, "c", NULL);
    CHECK_EQ(store.apply(store.context, second, 2), HF_OK);
    hf_store_stats(&store, &stats);
    CHECK_EQ(stats.applies, 2);
    CHECK_EQ(stats.changes, 5);
    CHECK_EQ(stats.found, 2);
    CHECK_EQ(stats.failures, 0);
    CHECK_EQ(stats.reconnects, 0);
    hf_store_close(&store);
    store = begin(opts);
    check_value(&store, "a", "2");
    check_value(&store, "b", NULL);
    CHECK_EQ(store.apply(store.context, third, 1), HF_OK);
    check_value(&store, "a", NULL);
    hf_store_close(&store);
}

TEST(keys_and_values_are_any_bytes)
{
    struct hf_store store =
        begin((struct hf_store_postgres_opts){.table = "bytes"});
    static char large[3 << 20];
    struct hf_store_change batch[] = {
        {.key = "\0'\"", .key_len = 3, .value = "x\0y", .value_len = 3},
        {.key = "\xff",
         .key_len = 1,
         .value = large,
         .value_len = sizeof large},
    };
    char text[TEXT_BYTES];

    CHECK_EQ(store.apply(store.context, batch, 2), HF_OK);
    CHECK_EQ(store.read(store.context, "\0'\"", 3, note, text), HF_OK);
    CHECK_EQ(memcmp(text, "x\0y", 4), 0);
    CHECK_EQ(store.read(store.context, "\xff", 1, note, text), HF_OK);
    hf_store_close(&store);
}

TEST(a_batch_is_all_or_nothing)
{
    struct hf_store store =
        begin((struct hf_store_postgres_opts){.table = "strict"});
    struct hf_store_change batch[] = {put("a", "1"), put("bad", "x"),
                                      gone("c")};
    struct hf_store_change before = put("c", "0");
    PGconn *other = connect_other();

    CHECK_EQ(store.apply(store.context, &before, 1), HF_OK);
    run(other, "ALTER TABLE strict ADD CHECK (key <> 'bad')");
    CHECK_EQ(store.apply(store.context, batch, 3), HF_FAILED);
    CHECK_EQ(told.count, 1);
    CHECK(strstr(told.text, "check constraint") != NULL);
    check_value(&store, "a", NULL);
    check_value(&store, "c", "0");
    batch[1] = gone("bad");
    CHECK_EQ(store.apply(store.context, batch, 3), HF_OK);
    check_value(&store, "a", "1");
    check_value(&store, "c", NULL);
    PQfinish(other);
    hf_store_close(&store);
}

TEST(a_lock_that_lasts_is_a_reason_to_try_again)
{
    struct hf_store store = begin(
        (struct hf_store_postgres_opts){.table = "locked", .timeout_ms = 200});
    struct hf_store_change one = put("a", "1");
    PGconn *other = connect_other();

    run(other, "BEGIN; LOCK TABLE locked IN EXCLUSIVE MODE");
    CHECK_EQ(store.apply(store.context, &one, 1), HF_TIMEOUT);
    run(other, "COMMIT");
    CHECK_EQ(store.apply(store.context, &one, 1), HF_OK);
    PQfinish(other);
    hf_store_close(&store);
}

TEST(a_table_that_is_gone_is_a_reason_to_try_again)
{
    struct hf_store store =
        begin((struct hf_store_postgres_opts){.table = "moved"});
    struct hf_store_change one = put("a", "1");
    char text[TEXT_BYTES];
    PGconn *other = connect_other();

    run(other, "ALTER TABLE moved RENAME TO away");
    CHECK_EQ(store.apply(store.context, &one, 1), HF_IO);
    CHECK_EQ(store.read(store.context, "a", 1, note, text), HF_IO);
    run(other, "ALTER TABLE away RENAME TO moved");
    CHECK_EQ(store.apply(store.context, &one, 1), HF_OK);
    check_value(&store, "a", "1");
    PQfinish(other);
    hf_store_close(&store);
}

TEST(a_server_that_was_away_is_found_again)
{
    struct hf_store store =
        begin((struct hf_store_postgres_opts){.table = "away2"});
    struct hf_store_change one = put("a", "1");
    struct hf_store_change two = put("a", "2");
    struct hf_store_stats stats;
    char text[TEXT_BYTES];

    CHECK_EQ(store.apply(store.context, &one, 1), HF_OK);
    test_postgres_kill(server);
    CHECK_EQ(store.apply(store.context, &two, 1), HF_IO);
    CHECK_EQ(store.read(store.context, "a", 1, note, text), HF_IO);
    CHECK_EQ(store.apply(store.context, &two, 1), HF_IO);
    test_postgres_restart(server);
    check_value(&store, "a", "1");
    CHECK_EQ(store.apply(store.context, &two, 1), HF_OK);
    check_value(&store, "a", "2");
    hf_store_stats(&store, &stats);
    CHECK(stats.reconnects >= 2);
    CHECK_EQ(stats.failures, 3);
    hf_store_close(&store);
}

/* The statement of a writer that is gone waits for a lock in the server. A new
 * writer of that name ends it: it never overwrites what comes after. */
TEST(what_an_earlier_writer_left_behind_is_ended)
{
    struct hf_store_postgres_opts opts = {.table = "fenced", .writer = "me"};
    struct hf_store store = begin(opts);
    struct hf_store_change one = put("a", "1");
    PGconn *other = connect_other();
    PGconn *stale = connect_other();

    CHECK_EQ(store.apply(store.context, &one, 1), HF_OK);
    run(stale, "SET application_name = 'me'");
    run(other, "BEGIN; SELECT * FROM fenced FOR UPDATE");
    CHECK(PQsendQuery(stale, "UPDATE fenced SET value = 'old'"));
    hf_store_close(&store);
    store = begin(opts);
    run(other, "COMMIT");
    one = put("a", "2");
    CHECK_EQ(store.apply(store.context, &one, 1), HF_OK);
    PGresult *result = PQgetResult(stale);
    CHECK(PQresultStatus(result) == PGRES_FATAL_ERROR);
    PQclear(result);
    check_value(&store, "a", "2");
    PQfinish(other);
    PQfinish(stale);
    hf_store_close(&store);
}

TEST(what_is_no_store_is_refused)
{
    struct hf_store store = begin((struct hf_store_postgres_opts){0});
    struct hf_store_postgres_opts opts = {.conninfo = server->conninfo};
    struct hf_store_change bad = {.key = "a"};
    struct hf_store unused;
    PGconn *other = connect_other();

    CHECK_EQ(store.apply(store.context, &bad, 1), HF_INVALID);
    CHECK_EQ(store.apply(store.context, NULL, 1), HF_INVALID);
    CHECK_EQ(store.read(store.context, NULL, 1, note, NULL), HF_INVALID);
    hf_store_close(&store);
    CHECK_EQ(hf_store_postgres_open(NULL, &opts), HF_INVALID);
    CHECK_EQ(hf_store_postgres_open(&unused, NULL), HF_INVALID);
    opts.table = "a\"b";
    CHECK_EQ(hf_store_postgres_open(&unused, &opts), HF_INVALID);
    opts.table = NULL;
    opts.writer = "";
    CHECK_EQ(hf_store_postgres_open(&unused, &opts), HF_INVALID);
    opts.writer = NULL;
    opts.readers = 65;
    CHECK_EQ(hf_store_postgres_open(&unused, &opts), HF_INVALID);
    opts.readers = 0;
    run(other, "CREATE TABLE shape (id int)");
    opts.table = "shape";
    CHECK_EQ(hf_store_postgres_open(&unused, &opts), HF_FAILED);
    opts.conninfo = "host=/nowhere";
    CHECK_EQ(hf_store_postgres_open(&unused, &opts), HF_IO);
    opts.conninfo = NULL;
    CHECK_EQ(hf_store_postgres_open(&unused, &opts), HF_INVALID);
    PQfinish(other);
}

static void work(void *context, int index)
{
    struct hf_store *store = context;
    char key[16], value[16], text[TEXT_BYTES];

    snprintf(key, sizeof key, "k%d", index);
    for (int i = 0; i < 30; i++) {
        snprintf(value, sizeof value, "%d", i);
        struct hf_store_change one = put(key, value);
        if (store->apply(store->context, &one, 1) != HF_OK)
            abort();
        if (store->read(store->context, key, strlen(key), note, text) !=
                HF_OK ||
            strcmp(text, value) != 0)
            abort();
    }
}

TEST(threads_read_what_they_have_applied)
{
    struct hf_store store =
        begin((struct hf_store_postgres_opts){.table = "threads"});

    test_threads(8, work, &store);
    check_value(&store, "k7", "29");
    hf_store_close(&store);
}

TEST(without_memory_nothing_leaks)
{
    enum hf_status status = HF_NOMEM;
    struct hf_store store = begin((struct hf_store_postgres_opts){0});

    hf_store_close(&store);
    for (uint64_t i = 0; status == HF_NOMEM && i < 100; i++) {
        struct hf_store_postgres_opts opts = {.conninfo = server->conninfo};
        hf_memory_fail_after(i);
        status = hf_store_postgres_open(&store, &opts);
        hf_memory_fail_never();
    }
    CHECK_EQ(status, HF_OK);
    struct hf_store_change one = put("a", "1");
    hf_memory_fail_after(0);
    CHECK_EQ(store.apply(store.context, &one, 1), HF_NOMEM);
    hf_memory_fail_never();
    CHECK_EQ(store.apply(store.context, &one, 1), HF_OK);
    hf_store_close(&store);
}
