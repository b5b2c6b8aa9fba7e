/* stock_migrate.c - makes the tables, once, whoever comes first.
 *
 * What was applied stands in the table `migrations` with a checksum of its
 * text. An advisory lock for the schema keeps openers apart; one that finds all
 * applied needs neither it nor the right to create.
 */
#include <inttypes.h>
#include <libpq-fe.h>

#include "base/hash.h"
#include "stores/postgres_array.h"
#include "stores/stock_sql.h"

#define SQL_BYTES 512

static void checksum(char out[17], const char *text)
{
    const struct hf_hash_seed seed = {{UINT64_C(0x686f6c64), 1}};

    (void)snprintf(out, 17, "%016" PRIx64, hf_hash(seed, hf_bytes_text(text)));
}

static enum hf_status refuse(struct store_link *link, const char *schema,
                             int number, const char *why)
{
    (void)snprintf(link->text, sizeof link->text,
                   "migration %d of the schema %s %s", number, schema, why);
    return HF_FAILED;
}

/* How many were applied. */
static enum hf_status read_applied(struct store_link *link, const char *schema,
                                   int *applied)
{
    PGresult *result;
    enum hf_status status = hf_store_link_query(
        link, "SELECT number, checksum FROM migrations ORDER BY number",
        &result);
    char sum[17];

    *applied = 0;
    if (status != HF_OK)
        return status;
    for (int i = 0; i < PQntuples(result) && status == HF_OK; i++) {
        if (i >= STOCK_MIGRATIONS) {
            status = refuse(link, schema, i + 1, "is of a newer library");
            break;
        }
        checksum(sum, hf_stock_migrations[i].sql);
        if (strtol(PQgetvalue(result, i, 0), NULL, 10) != i + 1 ||
            strcmp(PQgetvalue(result, i, 1), sum) != 0)
            status = refuse(link, schema, i + 1, "is not this library's");
        *applied = i + 1;
    }
    PQclear(result);
    return status;
}

/* Is it there? */
static enum hf_status is_made(struct store_link *link, const char *what,
                              bool *found)
{
    char sql[SQL_BYTES];
    PGresult *result;

    (void)snprintf(sql, sizeof sql, "SELECT %s IS NOT NULL", what);
    enum hf_status status = hf_store_link_query(link, sql, &result);
    if (status != HF_OK)
        return status;
    *found = PQgetvalue(result, 0, 0)[0] == 't';
    PQclear(result);
    return HF_OK;
}

static enum hf_status apply(struct store_link *link, int number)
{
    char sql[SQL_BYTES];
    char sum[17];
    const char *text = hf_stock_migrations[number - 1].sql;
    enum hf_status status = hf_store_link_run(link, text);

    checksum(sum, text);
    (void)snprintf(sql, sizeof sql,
                   "INSERT INTO migrations (number, checksum) "
                   "VALUES (%d, '%s')",
                   number, sum);
    return status == HF_OK ? hf_store_link_run(link, sql) : status;
}

/* In a transaction, alone. */
static enum hf_status apply_all(struct store_link *link, const char *schema)
{
    char sql[SQL_BYTES];
    bool found = false;
    int applied = 0;
    enum hf_status status;

    (void)snprintf(sql, sizeof sql, "to_regnamespace('\"%s\"')", schema);
    if ((status = is_made(link, sql, &found)) != HF_OK)
        return status;
    (void)snprintf(sql, sizeof sql, "CREATE SCHEMA \"%s\"", schema);
    if (!found && (status = hf_store_link_run(link, sql)) != HF_OK)
        return status;
    status = hf_store_link_run(
        link, "CREATE TABLE IF NOT EXISTS migrations ("
              "number int PRIMARY KEY, checksum text NOT NULL, "
              "applied timestamptz NOT NULL DEFAULT clock_timestamp())");
    if (status == HF_OK)
        status = read_applied(link, schema, &applied);
    for (int i = applied; i < STOCK_MIGRATIONS && status == HF_OK; i++)
        status = apply(link, i + 1);
    return status;
}

static enum hf_status apply_alone(struct store_link *link, const char *schema)
{
    char sql[SQL_BYTES];
    char text[STORE_TEXT_BYTES];

    (void)snprintf(sql, sizeof sql,
                   "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; "
                   "SELECT pg_advisory_xact_lock("
                   "hashtextextended('holdfast stock %s', 0))",
                   schema);
    enum hf_status status = hf_store_link_run(link, sql);
    if (status == HF_OK)
        status = apply_all(link, schema);
    if (status == HF_OK)
        return hf_store_link_run(link, "COMMIT");
    memcpy(text, link->text, sizeof text);
    if (link->conn != NULL)
        (void)hf_store_link_run(link, "ROLLBACK");
    memcpy(link->text, text, sizeof text);
    return status;
}

static enum hf_status check(struct store_link *link, const char *schema)
{
    char what[SQL_BYTES];
    bool found = false;
    int applied = 0;

    (void)snprintf(what, sizeof what, "to_regclass('\"%s\".migrations')",
                   schema);
    enum hf_status status = is_made(link, what, &found);
    if (status == HF_OK && found)
        status = read_applied(link, schema, &applied);
    if (status == HF_OK && applied < STOCK_MIGRATIONS)
        status = apply_alone(link, schema);
    return status;
}

enum hf_status hf_stock_migrate(struct store_link *link, const char *schema)
{
    char sql[SQL_BYTES];
    bool again;
    enum hf_status status = hf_store_link_make(link, &again);

    if (status != HF_OK)
        return status;
    const char *encoding = PQparameterStatus(link->conn, "server_encoding");
    if (encoding == NULL || strcmp(encoding, "UTF8") != 0) {
        (void)snprintf(link->text, sizeof link->text,
                       "the database's encoding is not UTF8");
        return HF_FAILED;
    }
    (void)snprintf(sql, sizeof sql,
                   "SET client_min_messages = warning; "
                   "SET search_path = \"%s\"",
                   schema);
    status = hf_store_link_run(link, sql);
    if (status == HF_OK)
        status = check(link, schema);
    return status == HF_NOTFOUND ? HF_FAILED : status;
}
