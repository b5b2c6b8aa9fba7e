/* stock_take.c - what needs one statement: reserves of the atomic strategy, and
 * questions. */
#include <libpq-fe.h>

#include "stores/stock_flow.h"

/* ---- Reserves. ---- */

/* Reserves only, each with an id of its own. */
static bool may_take(const struct stock_batch *batch)
{
    for (uint32_t i = 0; i < batch->task_count; i++)
        if (batch->tasks[i].call != HF_STOCK_RESERVE || batch->tasks[i].wrong)
            return false;
    return !batch->no_memory && batch->task_count == batch->booking_count;
}

/* What is wanted of each product: its cell is the sum, `available` the units
 * and `version` how many want some. False: more than a product can have. */
static bool add_up(struct stock_batch *batch)
{
    hf_stock_batch_unread(batch);
    for (uint32_t i = 0; i < batch->line_count; i++) {
        const struct stock_line *line = &batch->lines[i];
        struct stock_cell *cell = &batch->cells[line->cell];
        if (__builtin_add_overflow(cell->available, line->quantity,
                                   &cell->available))
            return false;
        cell->version++;
    }
    return true;
}

static void send_wishes(struct stock_conn *conn,
                        const struct stock_batch *batch)
{
    struct postgres_array *skus = hf_stock_trip_array(conn, POSTGRES_TEXT);
    struct postgres_array *units = hf_stock_trip_array(conn, POSTGRES_BIGINT);
    struct postgres_array *times = hf_stock_trip_array(conn, POSTGRES_BIGINT);

    for (uint32_t i = 0; i < batch->cell_count; i++) {
        hf_postgres_array_text(skus, batch->cells[i].sku);
        hf_postgres_array_number(units, batch->cells[i].available);
        hf_postgres_array_number(times, batch->cells[i].version);
    }
}

static void send_bookings(struct stock_conn *conn,
                          const struct stock_batch *batch, bool outbox)
{
    struct postgres_array *ids = hf_stock_trip_array(conn, POSTGRES_TEXT);
    struct postgres_array *ttls = hf_stock_trip_array(conn, POSTGRES_BIGINT);
    struct postgres_array *owners = hf_stock_trip_array(conn, POSTGRES_TEXT);
    struct postgres_array *skus = hf_stock_trip_array(conn, POSTGRES_TEXT);
    struct postgres_array *units = hf_stock_trip_array(conn, POSTGRES_BIGINT);
    struct postgres_array *told = hf_stock_trip_array(conn, POSTGRES_TEXT);

    for (uint32_t i = 0; i < batch->task_count; i++) {
        const struct stock_task *task = &batch->tasks[i];
        hf_postgres_array_text(ids, task->name);
        hf_postgres_array_number(ttls,
                                 hf_stock_batch_ttl_us(batch, task->request));
        for (uint32_t j = 0; j < task->lines.count; j++) {
            const struct stock_line *line =
                &batch->lines[task->lines.first + j];
            hf_postgres_array_text(owners, task->name);
            hf_postgres_array_text(skus, batch->cells[line->cell].sku);
            hf_postgres_array_number(units, line->quantity);
        }
        if (outbox)
            hf_postgres_array_text(told, task->name);
    }
}

static void answer_all(struct stock_batch *batch)
{
    for (uint32_t i = 0; i < batch->task_count; i++) {
        struct stock_task *task = &batch->tasks[i];
        int64_t ttl_us = hf_stock_batch_ttl_us(batch, task->request);
        task->status = HF_OK;
        task->answer = (struct hf_stock_answer){
            .state = HF_STOCK_PENDING, .left_ns = (uint64_t)ttl_us * 1000};
    }
}

/* The connection was lost. When nothing of it can come late any more, the other
 * way finds the reservations if they were made, and then that is the answer. */
static struct stock_ended find_again(struct stock_flow *flow)
{
    struct stock_ended ended = hf_stock_flow_find_out(flow);

    if (ended.end == END_FAILED)
        return ended;
    return (struct stock_ended){END_AGAIN, HF_CONTENDED};
}

struct stock_ended hf_stock_flow_take(struct stock_flow *flow)
{
    const struct stock_ended other_way = {END_AGAIN, HF_CONTENDED};
    struct stock_batch *batch = &flow->asked.batch;
    struct stock_conn *conn = &flow->conn;

    if (!may_take(batch) || !add_up(batch))
        return other_way;
    enum hf_status status = hf_stock_flow_connect(flow);
    if (status != HF_OK)
        return hf_stock_flow_judge(flow, status);
    stock_count(&flow->common->batches, 1);
    hf_stock_trip_begin(conn);
    hf_stock_trip_step(conn, SQL_TAKE);
    send_wishes(conn, batch);
    send_bookings(conn, batch, flow->common->outbox);
    hf_stock_flow_send_mark(flow);
    status = hf_stock_trip_send(conn);
    if (status != HF_OK) {
        struct stock_ended ended = hf_stock_flow_judge(flow, status);
        return ended.end == END_LOST ? find_again(flow) : ended;
    }
    conn->batch++;
    if (hf_postgres_number(conn->results[0], 0, 0) == 0)
        return other_way;
    answer_all(batch);
    return (struct stock_ended){END_DONE, HF_OK};
}

/* ---- Questions. ---- */

static void send_names(struct stock_flow *flow, enum stock_sql sql)
{
    const struct stock_batch *batch = &flow->asked.batch;

    hf_stock_trip_step(&flow->conn, sql);
    struct postgres_array *names =
        hf_stock_trip_array(&flow->conn, POSTGRES_TEXT);
    for (uint32_t i = 0; sql == SQL_GET && i < batch->cell_mark; i++)
        hf_postgres_array_text(names, batch->cells[i].sku);
    for (uint32_t i = 0; sql == SQL_LOOK && i < batch->booking_mark; i++)
        hf_postgres_array_text(names, batch->bookings[i].id);
}

struct stock_ended hf_stock_flow_look(struct stock_flow *flow)
{
    struct stock_batch *batch = &flow->asked.batch;
    struct stock_conn *conn = &flow->conn;

    if (batch->no_memory)
        return (struct stock_ended){END_FAILED, HF_NOMEM};
    enum hf_status status = hf_stock_flow_connect(flow);
    if (status != HF_OK)
        return hf_stock_flow_judge(flow, status);
    stock_count(&flow->common->batches, 1);
    hf_stock_batch_unread(batch);
    hf_stock_trip_begin(conn);
    send_names(flow, SQL_GET);
    send_names(flow, SQL_LOOK);
    status = hf_stock_trip_send(conn);
    if (status != HF_OK)
        return hf_stock_flow_judge(flow, status);
    hf_stock_flow_take_products(batch, conn->results[0]);
    hf_stock_flow_take_bookings(batch, conn->results[1]);
    if (PQntuples(conn->results[1]) > 0)
        batch->now_us = hf_postgres_number(conn->results[1], 0, 3);
    hf_stock_batch_decide(batch);
    if (batch->no_memory)
        return (struct stock_ended){END_FAILED, HF_NOMEM};
    return (struct stock_ended){END_DONE, HF_OK};
}
