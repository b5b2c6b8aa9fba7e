/* stock_postgres.c - the suite of every stock over PostgreSQL's three
 * strategies, against a real server. After each test the sums are looked at in
 * SQL.
 *
 * tests: also under sanitizers
 */
#include <libpq-fe.h>

#include "holdfast/stock_postgres.h"
#include "support/postgres.h"

#include "support/stock_suite.h"

static struct test_postgres *server;
static PGconn *conn; /* on the schema of the running test */
static char schema[32];

/* What the first field of the answer is. */
static long long ask(const char *sql)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);
    long long number = 0;

    if (status == PGRES_TUPLES_OK && PQntuples(result) > 0)
        number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        test_fail(__FILE__, __LINE__, "%s: %s", sql, PQerrorMessage(conn));
    return number;
}

/* Nothing that the database refuses is expected here. */
static void tell(void *context, enum hf_status status, const char *text)
{
    (void)context;
    fprintf(stderr, "%s: %s\n", hf_status_text(status), text);
}

static void open_kind(int kind, uint64_t ttl_ns)
{
    static int count;
    struct hf_stock_postgres_opts opts = {
        .schema = schema,
        .strategy = (enum hf_stock_strategy)kind,
        .ttl_ns = ttl_ns,
        .connections = 4,
        .timeout_ms = 60000,
        .lock_timeout_ms = 60000,
        .failed = tell,
        .outbox = kind != HF_STOCK_OPTIMISTIC,
    };
    char sql[64];

    if (server == NULL)
        server = test_postgres_start(NULL);
    opts.conninfo = server->conninfo;
    snprintf(schema, sizeof schema, "Test_%d", count++);
    CHECK_EQ(hf_stock_postgres_open(&stock, &opts), HF_OK);
    conn = PQconnectdb(server->conninfo);
    snprintf(sql, sizeof sql, "SET search_path = \"%s\"", schema);
    (void)ask(sql);
}

static void close_kind(void)
{
    hf_stock_close(stock);
    CHECK_EQ(ask("SELECT count(*) FROM products AS p WHERE "
                 "total <> available + reserved + sold "
                 "OR least(available, reserved, sold) < 0 "
                 "OR reserved <> (SELECT coalesce(sum(quantity), 0) FROM items "
                 "JOIN reservations AS r ON r.id = reservation "
                 "WHERE items.sku = p.sku AND status = 'PENDING')"),
             0);
    CHECK_EQ(ask("SELECT count(*) FROM reservations WHERE id NOT IN "
                 "(SELECT reservation FROM items)"),
             0);
    PQfinish(conn);
}

static void pass_time(uint64_t ms)
{
    char sql[128];

    snprintf(sql, sizeof sql,
             "UPDATE reservations SET expires = expires - interval '%llu ms'",
             (unsigned long long)ms);
    (void)ask(sql);
}

static const struct stock_kinds kinds = {
    .count = 3, .open = open_kind, .close = close_kind, .pass_time = pass_time};
