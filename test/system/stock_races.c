/* stock_races.c - a stock in PostgreSQL whose rows, settings and sessions
 * change under it, at the moment that hurts.
 *
 * tests: also under sanitizers
 */
#include <libpq-fe.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "holdfast/stock_postgres.h"
#include "support/postgres.h"
#include "support/test.h"
#include "support/threads.h"

static struct test_postgres *server;
static PGconn *conn;
static struct hf_stock *stock;

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

/* Until it is not 0. */
static void await_sql(const char *sql)
{
    while (ask(sql) == 0)
        sched_yield();
}

static struct hf_stock_postgres_opts fresh(enum hf_stock_strategy strategy)
{
    if (server == NULL) {
        server = test_postgres_start(NULL);
        conn = PQconnectdb(server->conninfo);
        CHECK_EQ(PQstatus(conn), CONNECTION_OK);
    }
    (void)ask("SET client_min_messages = warning; "
              "DROP SCHEMA IF EXISTS holdfast CASCADE; "
              "SET search_path = holdfast");
    return (struct hf_stock_postgres_opts){.conninfo = server->conninfo,
                                           .strategy = strategy,
                                           .connections = 1,
                                           .lock_timeout_ms = 60000,
                                           .timeout_ms = 60000};
}

static void begin(enum hf_stock_strategy strategy, uint64_t units)
{
    struct hf_stock_postgres_opts opts = fresh(strategy);

    CHECK_EQ(hf_stock_postgres_open(&stock, &opts), HF_OK);
    CHECK_EQ(hf_stock_set(stock, "ticket", units), HF_OK);
}

static enum hf_status reserve(const char *id, uint64_t quantity)
{
    struct hf_stock_item item = {"ticket", quantity};

    return hf_stock_reserve(stock, id, &item, 1, 0, NULL);
}

static void has(uint64_t available, uint64_t reserved, uint64_t sold)
{
    struct hf_stock_product found;

    CHECK_EQ(hf_stock_get(stock, "ticket", &found), HF_OK);
    CHECK_EQ(found.available, available);
    CHECK_EQ(found.reserved, reserved);
    CHECK_EQ(found.sold, sold);
}

static atomic_int waiting;

static void answered(struct hf_stock_request *request)
{
    (void)request;
    atomic_fetch_sub(&waiting, 1);
}

static void submit(struct hf_stock_request *requests, int count)
{
    for (int i = 0; i < count; i++)
        requests[i].done = answered;
    waiting = count;
    CHECK_EQ(hf_stock_submit(stock, requests, (size_t)count), HF_OK);
}

static void await_answers(void)
{
    while (waiting > 0)
        sched_yield();
}

#define SOMEBODY_WAITS                                            \
    "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid <> " \
    "pg_backend_pid()"

/* ---- Levels of isolation. ---- */

static struct hf_stock *opened[10];
static enum hf_status openings[10];
static struct hf_stock_postgres_opts openers;

static void open_one(void *context, int index)
{
    (void)context;
    openings[index] = hf_stock_postgres_open(&opened[index], &openers);
}

TEST(openers_agree_whatever_the_databases_own_isolation_is)
{
    for (int round = 0; round < 5; round++) {
        openers = fresh(HF_STOCK_PESSIMISTIC);
        (void)ask("ALTER DATABASE postgres SET default_transaction_isolation "
                  "= 'repeatable read'");
        test_threads(10, open_one, NULL);
        (void)ask("ALTER DATABASE postgres "
                  "RESET default_transaction_isolation");
        for (int i = 0; i < 10; i++) {
            if (openings[i] == HF_OK)
                hf_stock_close(opened[i]);
            CHECK_EQ(openings[i], HF_OK);
        }
    }
}

/* ---- Sessions. ---- */

/* The first commit of a product's row ends its own session. */
#define END_AT_COMMIT                                                          \
    "CREATE SEQUENCE holdfast.times; "                                         \
    "CREATE FUNCTION holdfast.fall() RETURNS trigger LANGUAGE plpgsql AS "     \
    "$$BEGIN IF nextval('holdfast.times') = 1 THEN PERFORM "                   \
    "pg_terminate_backend(pg_backend_pid()); PERFORM pg_sleep(1); "            \
    "END IF; RETURN NULL; END$$; CREATE CONSTRAINT TRIGGER fall AFTER UPDATE " \
    "ON "                                                                      \
    "holdfast.products DEFERRABLE INITIALLY DEFERRED FOR EACH ROW "            \
    "EXECUTE FUNCTION holdfast.fall()"

TEST(a_lost_commit_of_an_old_session_is_found_out)
{
    for (int i = 0; i < 3; i++) {
        begin((enum hf_stock_strategy)i, 10);
        (void)ask(END_AT_COMMIT);
        (void)ask("UPDATE writers SET started = started - interval '1 day'");
        CHECK_EQ(reserve("a", 2), HF_OK);
        has(8, 2, 0);
        hf_stock_close(stock);
    }
}

TEST(a_commit_that_is_refused_is_an_error)
{
    for (int i = 0; i < 3; i++) {
        begin((enum hf_stock_strategy)i, 10);
        (void)ask("CREATE FUNCTION holdfast.fall() RETURNS trigger LANGUAGE "
                  "plpgsql AS $$BEGIN RAISE 'not so'; END$$; "
                  "CREATE CONSTRAINT TRIGGER fall AFTER UPDATE ON "
                  "holdfast.products DEFERRABLE INITIALLY DEFERRED FOR EACH "
                  "ROW EXECUTE FUNCTION holdfast.fall()");
        CHECK_EQ(reserve("a", 2), HF_FAILED);
        has(10, 0, 0);
        (void)ask("DROP TRIGGER fall ON holdfast.products");
        CHECK_EQ(reserve("a", 2), HF_OK);
        hf_stock_close(stock);
    }
}

TEST(a_writer_whose_row_is_gone_gets_another)
{
    for (int i = 0; i < 3; i++) {
        begin((enum hf_stock_strategy)i, 10);
        (void)ask("DELETE FROM writers");
        CHECK_EQ(hf_stock_add(stock, "ticket", 5), HF_OK);
        (void)ask("DELETE FROM writers");
        CHECK_EQ(reserve("a", 2), HF_OK);
        has(13, 2, 0);
        hf_stock_close(stock);
    }
}

/* ---- Rows. ---- */

TEST(a_product_that_was_removed_and_made_again_is_not_the_one_that_was_read)
{
    struct hf_stock_postgres_opts opts = fresh(HF_STOCK_OPTIMISTIC);
    struct hf_stock_item items[] = {{"door", 1}, {"ticket", 2}};
    struct hf_stock_request request = {
        .call = HF_STOCK_RESERVE, .name = "a", .items = items, .count = 2};
    struct hf_stock *other;

    CHECK_EQ(hf_stock_postgres_open(&stock, &opts), HF_OK);
    CHECK_EQ(hf_stock_postgres_open(&other, &opts), HF_OK);
    CHECK_EQ(hf_stock_set(stock, "door", 1), HF_OK);
    CHECK_EQ(hf_stock_set(stock, "ticket", 10), HF_OK);
    (void)ask("BEGIN; SELECT sku FROM products WHERE sku = 'door' FOR UPDATE");
    submit(&request, 1);
    await_sql(SOMEBODY_WAITS);
    CHECK_EQ(hf_stock_remove(other, "ticket"), HF_OK);
    CHECK_EQ(hf_stock_set(other, "ticket", 3), HF_OK);
    (void)ask("COMMIT");
    await_answers();
    CHECK_EQ(request.status, HF_OK);
    has(1, 2, 0);
    hf_stock_close(other);
    hf_stock_close(stock);
}

/* A reservation that is made after its product was read. */
TEST(an_optimist_does_not_take_what_came_meanwhile_for_damage)
{
    struct hf_stock_item item = {"ticket", 1000};
    struct hf_stock_request requests[] = {
        {.call = HF_STOCK_RESERVE, .name = "b", .items = &item, .count = 1},
        {.call = HF_STOCK_CONFIRM, .name = "a"}};

    begin(HF_STOCK_OPTIMISTIC, 10);
    (void)ask("BEGIN; LOCK TABLE reservations IN ACCESS EXCLUSIVE MODE");
    submit(requests, 2);
    await_sql(SOMEBODY_WAITS);
    (void)ask(
        "UPDATE products SET available = 7, reserved = 3, version = version + "
        "1; INSERT INTO reservations (id, status, created, expires) VALUES "
        "('a', 'PENDING', now(), now() + interval '1 hour'); "
        "INSERT INTO items VALUES ('a', 'ticket', 3); COMMIT");
    await_answers();
    CHECK_EQ(requests[0].status, HF_EMPTY);
    CHECK_EQ(requests[1].status, HF_OK);
    has(7, 0, 3);
    hf_stock_close(stock);
}

TEST(columns_of_another_width_do_no_harm)
{
    for (int i = 0; i < 3; i++) {
        begin((enum hf_stock_strategy)i, 10);
        CHECK_EQ(reserve("a", 2), HF_OK);
        (void)ask("ALTER TABLE products ALTER available TYPE int, "
                  "ALTER reserved TYPE int, ALTER sold TYPE int, "
                  "ALTER version TYPE numeric; "
                  "ALTER TABLE items ALTER quantity TYPE int");
        CHECK_EQ(reserve("b", 2), HF_OK);
        CHECK_EQ(hf_stock_confirm(stock, "a", NULL), HF_OK);
        has(6, 2, 2);
        hf_stock_close(stock);
    }
}

TEST(what_waits_until_its_reservation_is_over_comes_too_late)
{
    struct hf_stock_item item = {"ticket", 2};

    for (int i = 0; i < 3; i++) {
        struct hf_stock_request request = {.call = HF_STOCK_CONFIRM,
                                           .name = "a"};
        begin((enum hf_stock_strategy)i, 10);
        CHECK_EQ(
            hf_stock_reserve(stock, "a", &item, 1, UINT64_C(500000000), NULL),
            HF_OK);
        (void)ask("BEGIN; SELECT sku FROM products FOR UPDATE");
        submit(&request, 1);
        await_sql("SELECT count(*) FROM reservations "
                  "WHERE expires < clock_timestamp()");
        (void)ask("COMMIT");
        await_answers();
        CHECK_EQ(request.status, HF_TIMEOUT);
        has(10, 0, 0);
        hf_stock_close(stock);
    }
}

/* What is overdue cannot be ended, since others hold one of its products. */
TEST(one_who_waits_for_overdue_units_does_not_fail_the_others)
{
    struct hf_stock_postgres_opts opts = fresh(HF_STOCK_PESSIMISTIC);
    struct hf_stock_item both[] = {{"seat", 1}, {"ticket", 4}};
    struct hf_stock_item ticket = {"ticket", 2}, sofa = {"sofa", 1};

    opts.lock_timeout_ms = 50;
    for (int i = 0; i < 3; i++) {
        struct hf_stock_request requests[] = {
            {.call = HF_STOCK_RESERVE,
             .name = "b",
             .items = &ticket,
             .count = 1},
            {.call = HF_STOCK_RESERVE, .name = "c", .items = &sofa, .count = 1},
        };
        (void)fresh(HF_STOCK_PESSIMISTIC);
        opts.strategy = (enum hf_stock_strategy)i;
        CHECK_EQ(hf_stock_postgres_open(&stock, &opts), HF_OK);
        CHECK_EQ(hf_stock_set(stock, "ticket", 5), HF_OK);
        CHECK_EQ(hf_stock_set(stock, "seat", 5), HF_OK);
        CHECK_EQ(hf_stock_set(stock, "sofa", 5), HF_OK);
        CHECK_EQ(hf_stock_reserve(stock, "a", both, 2, 0, NULL), HF_OK);
        (void)ask("UPDATE reservations SET expires = now()");
        (void)ask(
            "BEGIN; SELECT sku FROM products WHERE sku = 'seat' FOR UPDATE");
        submit(requests, 2);
        await_answers();
        CHECK_EQ(requests[0].status, HF_CONTENDED);
        CHECK_EQ(requests[1].status, HF_OK);
        (void)ask("COMMIT");
        CHECK_EQ(reserve("b", 2), HF_OK);
        hf_stock_close(stock);
    }
}

/* A reservation by hand, of a product that there is not. */
TEST(a_broken_reservation_fails_alone)
{
    struct hf_stock_item item = {"ticket", 1};
    for (int i = 0; i < 3; i++) {
        struct hf_stock_request requests[] = {
            {.call = HF_STOCK_RESERVE, .name = "b", .items = &item, .count = 1},
            {.call = HF_STOCK_CONFIRM, .name = "a"}};
        begin((enum hf_stock_strategy)i, 10);
        (void)ask(
            "INSERT INTO reservations (id, status, created, expires) VALUES "
            "('a', 'PENDING', now(), now() + interval '1 hour'); "
            "INSERT INTO items VALUES ('a', 'nowhere', 3)");
        submit(requests, 2);
        await_answers();
        CHECK_EQ(requests[0].status, HF_OK);
        CHECK_EQ(requests[1].status, HF_CORRUPT);
        hf_stock_close(stock);
    }
}
