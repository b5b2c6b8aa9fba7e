/* stock_tables.c - the tables of a stock in PostgreSQL: who makes them, what
 * they refuse, what is swept, and what a server that is killed leaves behind.
 *
 * tests: also under sanitizers
 */
#include <libpq-fe.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/stock_postgres.h"
#include "support/postgres.h"
#include "support/test.h"
#include "support/threads.h"

#define MS UINT64_C(1000000)

static struct test_postgres *server;
static PGconn *conn;
static struct hf_stock *stock;
static struct {
    enum hf_status status;
    char text[256];
} told;

static void tell(void *context, enum hf_status status, const char *text)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

    (void)context;
    pthread_mutex_lock(&mutex); /* in the threads of the stock */
    told.status = status;
    snprintf(told.text, sizeof told.text, "%s", text);
    pthread_mutex_unlock(&mutex);
}

static void connect_again(void)
{
    PQfinish(conn);
    conn = PQconnectdb(server->conninfo);
    CHECK_EQ(PQstatus(conn), CONNECTION_OK);
}

/* Whether it was carried out; of an answer `*number` is the first field. */
static bool try_sql(const char *sql, long long *number)
{
    PGresult *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status == PGRES_TUPLES_OK && PQntuples(result) > 0)
        *number = strtoll(PQgetvalue(result, 0, 0), NULL, 10);
    PQclear(result);
    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

static long long ask(const char *sql)
{
    long long number = 0;

    if (!try_sql(sql, &number))
        test_fail(__FILE__, __LINE__, "%s: %s", sql, PQerrorMessage(conn));
    return number;
}

static bool is_refused(const char *sql)
{
    long long number;

    return !try_sql(sql, &number);
}

/* An empty schema of the usual name. */
static struct hf_stock_postgres_opts fresh(void)
{
    if (server == NULL) {
        server = test_postgres_start(NULL);
        connect_again();
    }
    (void)ask("SET client_min_messages = warning; "
              "DROP SCHEMA IF EXISTS holdfast CASCADE; "
              "SET search_path = holdfast");
    memset(&told, 0, sizeof told);
    return (struct hf_stock_postgres_opts){
        .conninfo = server->conninfo, .timeout_ms = 60000, .failed = tell};
}

static void begin(struct hf_stock_postgres_opts opts, uint64_t units)
{
    CHECK_EQ(hf_stock_postgres_open(&stock, &opts), HF_OK);
    CHECK_EQ(hf_stock_set(stock, "ticket", units), HF_OK);
}

static enum hf_status reserve(const char *id, uint64_t quantity)
{
    struct hf_stock_item item = {"ticket", quantity};

    return hf_stock_reserve(stock, id, &item, 1, 0, NULL);
}

static atomic_int waiting;

static void answered(struct hf_stock_request *request)
{
    (void)request;
    atomic_fetch_sub(&waiting, 1);
}

static void submit_and_wait(struct hf_stock_request *requests, int count)
{
    for (int i = 0; i < count; i++)
        requests[i].done = answered;
    waiting = count;
    CHECK_EQ(hf_stock_submit(stock, requests, (size_t)count), HF_OK);
    while (waiting > 0)
        sched_yield();
}

static void check_sums(void)
{
    CHECK_EQ(ask("SELECT count(*) FROM products AS p WHERE "
                 "total <> available + reserved + sold "
                 "OR reserved <> (SELECT coalesce(sum(quantity), 0) FROM items "
                 "JOIN reservations AS r ON r.id = reservation "
                 "WHERE items.sku = p.sku AND status = 'PENDING') "
                 "OR sold <> (SELECT coalesce(sum(quantity), 0) FROM items "
                 "JOIN reservations AS r ON r.id = reservation "
                 "WHERE items.sku = p.sku AND status = 'CONFIRMED')"),
             0);
}

/* ---- The schema. ---- */

static struct hf_stock *opened[8];
static struct hf_stock_postgres_opts openers;

static void open_one(void *context, int index)
{
    (void)context;
    if (hf_stock_postgres_open(&opened[index], &openers) != HF_OK)
        opened[index] = NULL;
}

TEST(whoever_opens_first_makes_the_tables_once)
{
    openers = fresh();
    openers.connections = 1;
    test_threads(8, open_one, NULL);
    for (int i = 0; i < 8; i++) {
        CHECK(opened[i] != NULL);
        hf_stock_close(opened[i]);
    }
    CHECK_EQ(ask("SELECT count(*) FROM migrations"), 1);
    CHECK_EQ(ask("SELECT count(*) FROM writers"), 0);
}

TEST(tables_of_another_library_are_refused_with_the_reason)
{
    struct hf_stock_postgres_opts opts = fresh();

    begin(opts, 1);
    hf_stock_close(stock);
    (void)ask("INSERT INTO migrations VALUES (2, 'x')");
    CHECK_EQ(hf_stock_postgres_open(&stock, &opts), HF_FAILED);
    CHECK(strstr(told.text, "newer") != NULL);
    (void)ask("DELETE FROM migrations WHERE number = 2");
    begin(opts, 1);
    hf_stock_close(stock);
    (void)ask("UPDATE migrations SET checksum = 'x'");
    CHECK_EQ(hf_stock_postgres_open(&stock, &opts), HF_FAILED);
    CHECK(strstr(told.text, "not this library's") != NULL);
}

TEST(numbers_that_do_not_add_up_are_refused_by_the_tables)
{
    begin(fresh(), 5);
    CHECK_EQ(reserve("a", 2), HF_OK);
    CHECK(is_refused("UPDATE products SET available = available - 1"));
    CHECK(is_refused("UPDATE products SET available = -1, total = 1"));
    CHECK(is_refused("UPDATE products SET reserved = -1, total = 2"));
    CHECK(is_refused("UPDATE products SET sold = -1, total = 4"));
    CHECK(is_refused("UPDATE products SET total = total + 1"));
    CHECK(is_refused("UPDATE reservations SET status = 'GONE'"));
    CHECK(is_refused("UPDATE reservations SET status = 'CONFIRMED'"));
    CHECK(is_refused("UPDATE items SET quantity = 0"));
    CHECK(is_refused("INSERT INTO items VALUES ('nobody', 'ticket', 1)"));
    check_sums();
    /* Rows that do not belong together are told, not believed. */
    (void)ask("UPDATE items SET quantity = 3");
    CHECK_EQ(hf_stock_confirm(stock, "a", NULL), HF_CORRUPT);
    (void)ask("UPDATE items SET quantity = 2");
    CHECK_EQ(hf_stock_confirm(stock, "a", NULL), HF_OK);
    check_sums();
    hf_stock_close(stock);
}

TEST(wrong_options_and_names_are_refused)
{
    struct hf_stock_postgres_opts opts = fresh();
    struct hf_stock_postgres_opts wrong[8];
    struct hf_stock_postgres_stats stats;
    struct hf_stock *engine;

    for (int i = 0; i < 8; i++)
        wrong[i] = opts;
    wrong[0].conninfo = NULL;
    wrong[1].schema = "a\"b";
    wrong[2].schema = "";
    wrong[3].strategy = (enum hf_stock_strategy)3;
    wrong[4].connections = HF_STOCK_CONNECTIONS_MAX + 1;
    wrong[5].batch_max = HF_STOCK_BATCH_MAX + 1;
    wrong[6].ttl_ns = UINT64_MAX;
    wrong[7].timeout_ms = UINT32_MAX;
    for (int i = 0; i < 8; i++)
        CHECK_EQ(hf_stock_postgres_open(&stock, &wrong[i]), HF_INVALID);
    begin(opts, 5);
    CHECK_EQ(hf_stock_set(stock, "\xff", 5), HF_INVALID);
    CHECK_EQ(reserve("\xc0\x80", 1), HF_INVALID);
    CHECK_EQ(hf_stock_set(stock,
                          "b\xc3\xbc"
                          "cher",
                          5),
             HF_OK);
    CHECK_EQ(hf_stock_postgres_sweep(stock, HF_STOCK_SWEEP_MAX + 1, NULL),
             HF_INVALID);
    CHECK_EQ(hf_stock_open(&engine, NULL), HF_OK);
    CHECK_EQ(hf_stock_postgres_sweep(engine, 0, NULL), HF_INVALID);
    hf_stock_postgres_stats(engine, &stats);
    CHECK_EQ(stats.requests, 0);
    hf_stock_close(engine);
    hf_stock_close(stock);
}

TEST(every_change_is_in_the_outbox_of_its_transaction)
{
    struct hf_stock_postgres_opts opts = fresh();

    opts.outbox = true;
    opts.strategy = HF_STOCK_ATOMIC;
    begin(opts, 5);
    CHECK_EQ(reserve("a", 2), HF_OK);
    CHECK_EQ(reserve("b", 4), HF_EMPTY);
    CHECK_EQ(hf_stock_extend(stock, "a", 60000 * MS, NULL), HF_OK);
    CHECK_EQ(hf_stock_confirm(stock, "a", NULL), HF_OK);
    CHECK_EQ(reserve("b", 3), HF_OK);
    CHECK_EQ(hf_stock_cancel(stock, "b", NULL), HF_OK);
    CHECK_EQ(hf_stock_add(stock, "ticket", -3), HF_OK);
    CHECK_EQ(hf_stock_remove(stock, "ticket"), HF_OK);
    CHECK_EQ(ask("SELECT (string_agg(event || name, ' ' ORDER BY seq) = "
                 "'setticket reserveda extendeda confirmeda reservedb "
                 "cancelledb addedticket removedticket')::int FROM outbox"),
             1);
    CHECK_EQ(ask("SELECT units FROM outbox WHERE event = 'added'"), -3);
    hf_stock_close(stock);
}

/* ---- Others at work. ---- */

TEST(rows_that_others_hold_too_long_are_contended)
{
    struct hf_stock_postgres_opts opts = fresh();

    opts.lock_timeout_ms = 50;
    for (int i = 0; i < 3; i++) {
        opts.strategy = (enum hf_stock_strategy)i;
        begin(opts, 5);
        (void)ask("BEGIN; SELECT * FROM products FOR UPDATE");
        CHECK_EQ(reserve("a", 1), HF_CONTENDED);
        (void)ask("COMMIT");
        CHECK_EQ(reserve("a", 1), HF_OK);
        CHECK_EQ(hf_stock_cancel(stock, "a", NULL), HF_OK);
        (void)ask("DELETE FROM reservations");
        hf_stock_close(stock);
    }
}

TEST(a_product_that_others_hold_does_not_fail_the_rest_of_its_batch)
{
    struct hf_stock_postgres_opts opts = fresh();
    const struct hf_stock_item ticket = {"ticket", 1};
    const struct hf_stock_item seat = {"seat", 1};
    struct hf_stock_request requests[] = {
        {.call = HF_STOCK_RESERVE, .name = "a", .items = &ticket, .count = 1},
        {.call = HF_STOCK_RESERVE, .name = "b", .items = &seat, .count = 1},
        {.call = HF_STOCK_ADD, .name = "ticket", .units = 1},
        {.call = HF_STOCK_ADD, .name = "sofa", .units = 1},
        {.call = HF_STOCK_CONFIRM, .name = "old"},
    };
    static const enum hf_status expected[] = {HF_CONTENDED, HF_OK, HF_CONTENDED,
                                              HF_NOTFOUND, HF_CONTENDED};

    opts.lock_timeout_ms = 50;
    opts.connections = 1;
    for (int i = 0; i < 3; i++) {
        (void)ask("DROP SCHEMA IF EXISTS holdfast CASCADE");
        opts.strategy = (enum hf_stock_strategy)i;
        begin(opts, 5);
        CHECK_EQ(hf_stock_set(stock, "seat", 5), HF_OK);
        CHECK_EQ(reserve("old", 1), HF_OK);
        (void)ask("BEGIN; SELECT * FROM products WHERE sku = 'ticket' "
                  "FOR UPDATE");
        submit_and_wait(requests, 5);
        for (int j = 0; j < 5; j++)
            CHECK_EQ(requests[j].status, expected[j]);
        (void)ask("COMMIT");
        check_sums();
        hf_stock_close(stock);
    }
}

/* What changes the product each time that it was read and is to be written. */
static void meddle(void)
{
    (void)ask("CREATE FUNCTION meddle() RETURNS trigger LANGUAGE plpgsql AS "
              "$$BEGIN RETURN NULL; END$$; "
              "CREATE TRIGGER meddle BEFORE UPDATE ON products "
              "FOR EACH ROW EXECUTE FUNCTION meddle()");
}

TEST(an_optimist_gives_up_after_three_retries)
{
    struct hf_stock_postgres_opts opts = fresh();
    struct hf_stock_postgres_stats stats;

    opts.strategy = HF_STOCK_OPTIMISTIC;
    begin(opts, 5);
    meddle();
    CHECK_EQ(reserve("a", 1), HF_CONTENDED);
    hf_stock_postgres_stats(stock, &stats);
    CHECK_EQ(stats.retries, 3);
    CHECK_EQ(stats.contended, 1);
    (void)ask("DROP TRIGGER meddle ON products");
    CHECK_EQ(ask("SELECT count(*) FROM reservations"), 0);
    CHECK_EQ(reserve("a", 1), HF_OK);
    check_sums();
    hf_stock_close(stock);
}

TEST(what_the_database_refuses_of_one_does_not_fail_the_others)
{
    struct hf_stock_postgres_opts opts = fresh();
    struct hf_stock_product product;

    begin(opts, 5);
    (void)ask("ALTER TABLE items ADD CHECK (reservation <> 'bad')");
    CHECK_EQ(reserve("bad", 1), HF_FAILED);
    CHECK_EQ(told.status, HF_FAILED);
    CHECK(strstr(told.text, "check constraint") != NULL);
    CHECK_EQ(reserve("good", 1), HF_OK);
    CHECK_EQ(hf_stock_get(stock, "ticket", &product), HF_OK);
    CHECK_EQ(product.reserved, 1);
    check_sums();
    hf_stock_close(stock);
}

/* ---- The sweep. ---- */

static atomic_uint swept;

static void sweep(void *context, int index)
{
    uint32_t count = 0;

    (void)context;
    (void)index;
    for (int i = 0; i < 1000; i++) {
        if (hf_stock_postgres_sweep(opened[index % 5], 100, &count) != HF_OK)
            abort();
        atomic_fetch_add(&swept, count);
        if (count == 0)
            break;
    }
}

TEST(ten_who_sweep_give_each_reservation_back_once)
{
    struct hf_stock_postgres_opts opts = fresh();
    struct hf_stock_product product;
    struct hf_stock_answer answer;
    uint32_t count;

    begin(opts, 3000);
    openers = opts;
    openers.connections = 1;
    for (int i = 0; i < 5; i++)
        CHECK_EQ(hf_stock_postgres_open(&opened[i], &openers), HF_OK);
    (void)ask("INSERT INTO reservations (id, status, created, expires) "
              "SELECT 's' || i, 'PENDING', now() - interval '1 hour', "
              "now() - i * interval '1 second' "
              "FROM generate_series(1, 2500) AS i; "
              "INSERT INTO items SELECT id, 'ticket', 1 FROM reservations; "
              "UPDATE products SET available = 500, reserved = 2500");
    swept = 0;
    CHECK_EQ(hf_stock_get(stock, "ticket", &product), HF_OK);
    CHECK_EQ(product.available, 3000);
    test_threads(10, sweep, NULL);
    while (hf_stock_postgres_sweep(stock, 0, &count) == HF_OK && count > 0)
        swept += count;
    CHECK_EQ(swept, 2500);
    CHECK_EQ(ask("SELECT available FROM products"), 3000);
    CHECK_EQ(ask("SELECT count(*) FROM reservations "
                 "WHERE status = 'EXPIRED' AND ended IS NOT NULL"),
             2500);
    CHECK_EQ(hf_stock_look(stock, "s7", &answer), HF_OK);
    CHECK_EQ(answer.state, HF_STOCK_EXPIRED);
    check_sums();
    for (int i = 0; i < 5; i++)
        hf_stock_close(opened[i]);
    hf_stock_close(stock);
}

TEST(a_sweep_waits_for_nobody)
{
    uint32_t count = 7;

    begin(fresh(), 10);
    CHECK_EQ(reserve("a", 1), HF_OK);
    (void)ask("UPDATE reservations SET expires = created; "
              "BEGIN; SELECT * FROM products FOR UPDATE");
    CHECK_EQ(hf_stock_postgres_sweep(stock, 0, &count), HF_OK);
    CHECK_EQ(count, 0);
    (void)ask("COMMIT");
    CHECK_EQ(hf_stock_postgres_sweep(stock, 0, &count), HF_OK);
    CHECK_EQ(count, 1);
    check_sums();
    hf_stock_close(stock);
}

TEST(without_memory_nothing_is_changed_and_nothing_leaks)
{
    struct hf_stock_postgres_opts opts = fresh();
    enum hf_status status = HF_NOMEM;
    uint32_t count = 0;

    opts.connections = 1;
    begin(opts, 10);
    hf_stock_close(stock);
    for (uint64_t i = 0; status != HF_OK; i++) {
        CHECK(i < 1000);
        hf_memory_fail_after(i);
        status = hf_stock_postgres_open(&stock, &opts);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
    }
    CHECK_EQ(reserve("a", 1), HF_OK);
    (void)ask("UPDATE reservations SET expires = created");
    status = HF_NOMEM;
    for (uint64_t i = 0; status != HF_OK; i++) {
        CHECK(i < 1000);
        hf_memory_fail_after(i);
        status = hf_stock_postgres_sweep(stock, 0, &count);
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK_EQ(count, status == HF_OK);
        check_sums();
    }
    hf_stock_close(stock);
}

/* ---- A server that is killed. ---- */

#define BUYERS 12
#define EACH   40

static struct {
    atomic_int done;          /* calls that returned */
    char state[BUYERS][EACH]; /* what the caller was told: see buy_one() */
} shop;

static bool is_to_be_asked_again(enum hf_status status, int times)
{
    return (status == HF_IO || status == HF_CONTENDED) && times < 1000000;
}

/* r: reserved, c: confirmed, x: refused, ?: something else. While the server is
 * away each call is made again: that it may have happened changes nothing. */
static char buy_one(int index, int i)
{
    struct hf_stock_item items[] = {{"ticket", 1}, {"seat", 2}};
    struct hf_stock_answer answer;
    enum hf_status status = HF_IO;
    char id[32];

    snprintf(id, sizeof id, "b%d-%d", index, i);
    for (int j = 0; is_to_be_asked_again(status, j); j++)
        status = hf_stock_reserve(stock, id, items, 2, 0, NULL);
    if (status != HF_OK)
        return status == HF_EMPTY ? 'x' : '?';
    if (i % 2 == 0)
        return 'r';
    status = HF_IO;
    for (int j = 0; is_to_be_asked_again(status, j); j++)
        status = hf_stock_confirm(stock, id, &answer);
    if (status == HF_CLOSED && answer.state == HF_STOCK_CONFIRMED)
        status = HF_OK;
    return status == HF_OK ? 'c' : '?';
}

static void buy(void *context, int index)
{
    (void)context;
    for (int i = 0; i < EACH; i++) {
        shop.state[index][i] = buy_one(index, i);
        atomic_fetch_add(&shop.done, 1);
    }
}

static void *buy_all(void *context)
{
    (void)context;
    test_threads(BUYERS, buy, NULL);
    return NULL;
}

static void check_told(void)
{
    char sql[160];

    for (int i = 0; i < BUYERS; i++) {
        for (int j = 0; j < EACH; j++) {
            char seen = shop.state[i][j];
            snprintf(sql, sizeof sql,
                     "SELECT CASE status WHEN 'PENDING' THEN 1 WHEN "
                     "'CONFIRMED' THEN 2 ELSE 3 END FROM reservations "
                     "WHERE id = 'b%d-%d'",
                     i, j);
            long long found = ask(sql);
            if (seen == 'x')
                CHECK_EQ(found, 0);
            else
                CHECK_EQ(found, (seen == 'r' ? 1 : seen == 'c' ? 2 : -1));
        }
    }
}

static void kill_in_the_midst(enum hf_stock_strategy strategy)
{
    struct hf_stock_postgres_opts opts = fresh();
    pthread_t buyers;

    opts.strategy = strategy;
    opts.connections = 3;
    begin(opts, BUYERS * EACH - 20);
    CHECK_EQ(hf_stock_set(stock, "seat", 2 * BUYERS * EACH), HF_OK);
    memset(&shop, 0, sizeof shop);
    CHECK_EQ(pthread_create(&buyers, NULL, buy_all, NULL), 0);
    for (int kills = 1; kills <= 3; kills++) {
        while (shop.done < kills * BUYERS * EACH / 5)
            sched_yield();
        test_postgres_kill(server);
        test_postgres_restart(server);
    }
    pthread_join(buyers, NULL);
    hf_stock_close(stock);
    connect_again();
    (void)ask("SET search_path = holdfast");
    check_told();
    check_sums();
    CHECK_EQ(ask("SELECT count(*) FROM reservations"), BUYERS * EACH - 20);
}

TEST(a_killed_server_loses_nothing_and_sells_nothing_twice_pessimistic)
{
    kill_in_the_midst(HF_STOCK_PESSIMISTIC);
}

TEST(a_killed_server_loses_nothing_and_sells_nothing_twice_optimistic)
{
    kill_in_the_midst(HF_STOCK_OPTIMISTIC);
}

TEST(a_killed_server_loses_nothing_and_sells_nothing_twice_atomic)
{
    kill_in_the_midst(HF_STOCK_ATOMIC);
}

TEST(a_server_that_is_away_is_an_error_of_input_and_output)
{
    struct hf_stock_postgres_opts opts = fresh();
    struct hf_stock_product product;
    struct hf_stock_postgres_stats stats;
    uint32_t count;

    opts.connections = 1; /* which was there before */
    begin(opts, 5);
    test_postgres_kill(server);
    CHECK_EQ(reserve("a", 1), HF_IO);
    CHECK_EQ(hf_stock_get(stock, "ticket", &product), HF_IO);
    CHECK_EQ(hf_stock_postgres_sweep(stock, 0, &count), HF_IO);
    test_postgres_restart(server);
    CHECK_EQ(reserve("a", 1), HF_OK);
    CHECK_EQ(hf_stock_get(stock, "ticket", &product), HF_OK);
    CHECK_EQ(product.available, 4);
    hf_stock_postgres_stats(stock, &stats);
    CHECK(stats.reconnects > 0);
    hf_stock_close(stock);
    connect_again();
}
