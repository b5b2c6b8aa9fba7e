/* stock_trip.c - see stock_trip.h. */
#include "stores/stock_trip.h"

#include <assert.h>
#include <endian.h>
#include <libpq-fe.h>

#define SQL_BYTES 512

/* ---- Trips. ---- */

static void clear_results(struct stock_conn *conn)
{
    for (int i = 0; i < conn->result_count; i++)
        PQclear(conn->results[i]);
    conn->result_count = 0;
}

void hf_stock_trip_begin(struct stock_conn *conn)
{
    clear_results(conn);
    conn->trip.step_count = conn->trip.param_count = 0;
}

void hf_stock_trip_step(struct stock_conn *conn, enum stock_sql sql)
{
    struct stock_trip *trip = &conn->trip;

    assert(trip->step_count < TRIP_STEPS_MAX);
    trip->steps[trip->step_count++] =
        (struct link_step){.name = hf_stock_sql_names[sql]};
}

static struct trip_param *next_param(struct stock_conn *conn)
{
    struct stock_trip *trip = &conn->trip;

    assert(trip->step_count > 0);
    assert(trip->param_count < TRIP_PARAMS_MAX);
    trip->steps[trip->step_count - 1].params++;
    return &trip->params[trip->param_count++];
}

struct postgres_array *hf_stock_trip_array(struct stock_conn *conn,
                                           uint32_t type)
{
    struct trip_param *param = next_param(conn);

    param->is_array = true;
    hf_postgres_array_begin(&param->array, type);
    return &param->array;
}

static void add_bytes(struct stock_conn *conn, const void *data, size_t len)
{
    struct trip_param *param = next_param(conn);

    param->is_array = false;
    param->array.buf.len = 0;
    param->array.failed = hf_buf_append(&param->array.buf, data, len) != HF_OK;
}

void hf_stock_trip_number(struct stock_conn *conn, int64_t number)
{
    uint64_t net = htobe64((uint64_t)number);

    add_bytes(conn, &net, sizeof net);
}

void hf_stock_trip_text(struct stock_conn *conn, const char *text)
{
    add_bytes(conn, text, strlen(text));
}

enum hf_status hf_stock_trip_send(struct stock_conn *conn)
{
    struct stock_trip *trip = &conn->trip;
    const char *values[TRIP_PARAMS_MAX];
    int lengths[TRIP_PARAMS_MAX];

    conn->link.state[0] = '\0';
    for (int i = 0; i < trip->param_count; i++) {
        struct trip_param *param = &trip->params[i];
        if (param->is_array)
            hf_postgres_array_end(&param->array);
        if (param->array.failed || param->array.buf.len > INT32_MAX) {
            (void)snprintf(conn->link.text, sizeof conn->link.text,
                           "out of memory");
            return HF_NOMEM;
        }
        values[i] = param->array.buf.data;
        lengths[i] = (int)param->array.buf.len;
    }
    for (int i = 0, first = 0; i < trip->step_count; i++) {
        trip->steps[i].values = &values[first];
        trip->steps[i].lengths = &lengths[first];
        first += trip->steps[i].params;
    }
    enum hf_status status = hf_store_link_trip(&conn->link, trip->steps,
                                               trip->step_count, conn->results);
    if (status == HF_OK)
        conn->result_count = trip->step_count;
    return status;
}

enum hf_status hf_stock_trip_run(struct stock_conn *conn, enum stock_sql sql)
{
    hf_stock_trip_begin(conn);
    hf_stock_trip_step(conn, sql);
    return hf_stock_trip_send(conn);
}

PGresult *hf_stock_trip_keep(struct stock_conn *conn, int step)
{
    PGresult *result = conn->results[step];

    assert(step < conn->result_count);
    conn->results[step] = NULL; /* which may be cleared */
    return result;
}

/* ---- The connection. ---- */

static enum hf_status prepare_all(struct stock_conn *conn)
{
    struct link_step steps[SQL_COUNT];
    PGresult *results[SQL_COUNT];

    _Static_assert(SQL_COUNT <= LINK_STEPS_MAX, "all in one trip");
    for (int i = 0; i < SQL_COUNT; i++)
        steps[i] = (struct link_step){.name = hf_stock_sql_names[i],
                                      .sql = hf_stock_sql[i]};
    enum hf_status status =
        hf_store_link_trip(&conn->link, steps, SQL_COUNT, results);
    for (int i = 0; i < SQL_COUNT && status == HF_OK; i++)
        PQclear(results[i]);
    return status;
}

static enum hf_status enter(struct stock_conn *conn)
{
    enum hf_status status = hf_stock_trip_run(conn, SQL_ENTER);

    if (status != HF_OK)
        return status;
    (void)snprintf(conn->writer, sizeof conn->writer, "%.*s",
                   HF_SHOW(hf_postgres_text(conn->results[0], 0, 0)));
    conn->batch = 0;
    return HF_OK;
}

/* A session left in a transaction, by a network that is cut, ends by itself.
 * All statements find rows by an index: a plan that was made for empty tables
 * must not read them whole when they have grown. */
static enum hf_status set_up(struct stock_conn *conn)
{
    char sql[SQL_BYTES];

    (void)snprintf(sql, sizeof sql,
                   "SET client_encoding = 'UTF8'; SET search_path = \"%s\"; "
                   "SET lock_timeout = %u; "
                   "SET idle_in_transaction_session_timeout = %u; "
                   "SET default_transaction_isolation = 'read committed'; "
                   "SET default_transaction_read_only = off; "
                   "SET enable_seqscan = off; SET jit = off",
                   conn->schema, conn->lock_timeout_ms, conn->link.timeout_ms);
    enum hf_status status = hf_store_link_run(&conn->link, sql);
    if (status == HF_OK)
        status = prepare_all(conn);
    if (status == HF_OK)
        status = enter(conn);
    return status;
}

enum hf_status hf_stock_conn_make(struct stock_conn *conn, bool *again)
{
    bool was_there =
        conn->link.conn != NULL && PQstatus(conn->link.conn) == CONNECTION_OK;
    enum hf_status status = hf_store_link_make(&conn->link, again);

    if (status != HF_OK || was_there)
        return status;
    status = set_up(conn);
    if (status != HF_OK)
        hf_store_link_destroy(&conn->link);
    return status;
}

enum hf_status hf_stock_conn_leave(struct stock_conn *conn, const char *writer)
{
    hf_stock_trip_begin(conn);
    hf_stock_trip_step(conn, SQL_LEAVE);
    hf_stock_trip_text(conn, writer);
    return hf_stock_trip_send(conn);
}

void hf_stock_conn_destroy(struct stock_conn *conn)
{
    if (conn->link.conn != NULL)
        (void)hf_stock_conn_leave(conn, conn->writer);
    clear_results(conn);
    for (int i = 0; i < TRIP_PARAMS_MAX; i++)
        hf_buf_destroy(&conn->trip.params[i].array.buf);
    hf_store_link_destroy(&conn->link);
}
