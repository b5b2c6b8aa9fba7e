/* stock_attempt.c - one attempt of a flow: read, decide, write. */
#include <libpq-fe.h>
#include <stdlib.h>

#include "stores/stock_flow.h"

/* ---- Errors. ---- */

enum hf_status hf_stock_flow_connect(struct stock_flow *flow)
{
    bool again;
    enum hf_status status = hf_stock_conn_make(&flow->conn, &again);

    if (again)
        stock_count(&flow->common->reconnects, 1);
    return status;
}

static bool is_state(const struct stock_flow *flow, const char *state)
{
    return strncmp(flow->conn.link.state, state, strlen(state)) == 0;
}

static void tell(const struct stock_flow *flow, enum hf_status status)
{
    if (flow->common->failed != NULL)
        flow->common->failed(flow->common->context, status,
                             flow->conn.link.text);
}

struct stock_ended hf_stock_flow_judge(struct stock_flow *flow,
                                       enum hf_status status)
{
    /* a deadlock, a serialization failure; the same id at the same time; rows
     * that are not as they were read */
    if (is_state(flow, "40") || is_state(flow, "23505") ||
        is_state(flow, "HF001"))
        return (struct stock_ended){END_AGAIN, HF_CONTENDED};
    /* Its row in `writers` is gone, with the old tables or by hand: another
     * session has another one. */
    if (is_state(flow, "22012")) {
        hf_store_link_destroy(&flow->conn.link);
        return (struct stock_ended){END_AGAIN, HF_CONTENDED};
    }
    if (is_state(flow, "55P03")) /* lock_timeout */
        return (struct stock_ended){END_FAILED, HF_CONTENDED};
    enum hf_status told = HF_FAILED;
    if (status == HF_NOMEM && flow->conn.link.state[0] == '\0')
        told = HF_NOMEM;
    else if (status == HF_IO || status == HF_TIMEOUT || status == HF_FULL ||
             status == HF_NOMEM)
        told = HF_IO;
    tell(flow, told);
    return (struct stock_ended){
        flow->conn.link.conn == NULL ? END_LOST : END_FAILED, told};
}

void hf_stock_flow_roll_back(struct stock_flow *flow)
{
    PGconn *conn = flow->conn.link.conn;

    if (conn != NULL && PQtransactionStatus(conn) != PQTRANS_IDLE)
        (void)hf_stock_trip_run(&flow->conn, SQL_ROLLBACK);
}

/* ---- Reading. ---- */

void hf_stock_flow_clear(struct stock_work *work)
{
    for (int i = 0; i < WORK_ROWS; i++) {
        PQclear(work->rows[i]);
        work->rows[i] = NULL;
    }
}

static void send_names(struct stock_flow *flow, const struct stock_batch *batch,
                       bool cells)
{
    struct postgres_array *names =
        hf_stock_trip_array(&flow->conn, POSTGRES_TEXT);

    for (uint32_t i = 0; cells && i < batch->cell_mark; i++)
        hf_postgres_array_text(names, batch->cells[i].sku);
    for (uint32_t i = 0; !cells && i < batch->booking_mark; i++)
        hf_postgres_array_text(names, batch->bookings[i].id);
}

static enum hf_stock_state state_of(struct hf_bytes text)
{
    static const char *const names[] = {
        [HF_STOCK_PENDING] = "PENDING",
        [HF_STOCK_CONFIRMED] = "CONFIRMED",
        [HF_STOCK_CANCELLED] = "CANCELLED",
    };

    for (unsigned i = HF_STOCK_PENDING; i <= HF_STOCK_CANCELLED; i++)
        if (hf_bytes_equal(text, hf_bytes_text(names[i])))
            return (enum hf_stock_state)i;
    return HF_STOCK_EXPIRED;
}

static const char *text_of(enum hf_stock_state state)
{
    static const char *const names[] = {"", "PENDING", "CONFIRMED", "CANCELLED",
                                        "EXPIRED"};

    return names[state];
}

void hf_stock_flow_take_products(struct stock_batch *batch,
                                 const PGresult *rows)
{
    for (int i = 0; i < PQntuples(rows); i++)
        hf_stock_batch_read_cell(
            batch,
            &(struct stock_cell){.sku = hf_postgres_text(rows, i, 0),
                                 .available = hf_postgres_number(rows, i, 1),
                                 .reserved = hf_postgres_number(rows, i, 2),
                                 .sold = hf_postgres_number(rows, i, 3),
                                 .version = hf_postgres_number(rows, i, 4)});
}

void hf_stock_flow_take_bookings(struct stock_batch *batch,
                                 const PGresult *rows)
{
    for (int i = 0; i < PQntuples(rows); i++)
        hf_stock_batch_read_booking(
            batch, &(struct stock_booking){
                       .id = hf_postgres_text(rows, i, 0),
                       .state = state_of(hf_postgres_text(rows, i, 1)),
                       .expires_us = hf_postgres_number(rows, i, 2)});
}

static void take_lines(struct stock_batch *batch, const PGresult *rows)
{
    for (int i = 0; i < PQntuples(rows); i++)
        hf_stock_batch_read_line(batch, hf_postgres_text(rows, i, 0),
                                 hf_postgres_text(rows, i, 1),
                                 hf_postgres_number(rows, i, 2));
}

/* Locks come first: what is read after them is as nobody changes it. */
static enum hf_status read_rows(struct stock_flow *flow,
                                struct stock_work *work, enum stock_sql lock,
                                bool is_begun)
{
    struct stock_conn *conn = &flow->conn;
    struct stock_batch *batch = &work->batch;
    bool asks_held = lock == SQL_LOCK_FREE && !is_begun; /* no sweep */
    int at = is_begun ? 0 : 1;

    hf_stock_batch_unread(batch);
    hf_stock_flow_clear(work);
    hf_stock_trip_begin(conn);
    if (!is_begun)
        hf_stock_trip_step(conn, SQL_BEGIN);
    hf_stock_trip_step(conn, lock);
    send_names(flow, batch, true);
    send_names(flow, batch, false);
    hf_stock_trip_step(conn, SQL_BOOKINGS);
    send_names(flow, batch, false);
    hf_stock_trip_step(conn, SQL_LINES);
    send_names(flow, batch, false);
    hf_stock_trip_step(conn, SQL_NOW);
    if (asks_held) {
        hf_stock_trip_step(conn, SQL_READ);
        send_names(flow, batch, true);
        send_names(flow, batch, false);
    }
    enum hf_status status = hf_stock_trip_send(conn);
    if (status != HF_OK)
        return status;
    batch->now_us = hf_postgres_number(conn->results[at + 3], 0, 0);
    batch->is_locked = lock != SQL_READ;
    batch->is_sure = lock == SQL_LOCK_FREE;
    for (int i = 0; i < 3; i++)
        work->rows[i] = hf_stock_trip_keep(conn, at + i);
    if (asks_held)
        work->rows[3] = hf_stock_trip_keep(conn, at + 4);
    hf_stock_flow_take_products(batch, work->rows[0]);
    hf_stock_flow_take_bookings(batch, work->rows[1]);
    for (int i = 0; i < PQntuples(work->rows[3]); i++)
        hf_stock_batch_read_held(batch, hf_postgres_text(work->rows[3], i, 0));
    take_lines(batch, work->rows[2]);
    return HF_OK;
}

/* ---- Writing. ---- */

enum change { STAYS, UPDATED, INSERTED, DELETED };

static enum change change_of(const struct stock_cell *cell)
{
    if (!cell->changed || (!cell->known && !cell->is_there))
        return STAYS;
    if (!cell->known)
        return INSERTED;
    return cell->is_there ? UPDATED : DELETED;
}

static uint32_t count_cells(const struct stock_batch *batch, enum change change)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < batch->cell_count; i++)
        count += change_of(&batch->cells[i]) == change;
    return count;
}

static uint32_t count_bookings(const struct stock_batch *batch, bool known)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < batch->booking_count; i++)
        count +=
            batch->bookings[i].changed && batch->bookings[i].known == known;
    return count;
}

/* Columns of the cells with this change, as arrays. */
static void send_skus(struct stock_flow *flow, const struct stock_batch *batch,
                      enum change change)
{
    struct postgres_array *skus =
        hf_stock_trip_array(&flow->conn, POSTGRES_TEXT);

    for (uint32_t i = 0; i < batch->cell_count; i++)
        if (change_of(&batch->cells[i]) == change)
            hf_postgres_array_text(skus, batch->cells[i].sku);
}

static void send_numbers(struct stock_flow *flow,
                         const struct stock_batch *batch, enum change change,
                         size_t offset)
{
    struct postgres_array *numbers =
        hf_stock_trip_array(&flow->conn, POSTGRES_BIGINT);

    for (uint32_t i = 0; i < batch->cell_count; i++) {
        const struct stock_cell *cell = &batch->cells[i];
        int64_t number;
        if (change_of(cell) != change)
            continue;
        memcpy(&number, (const char *)cell + offset, sizeof number);
        hf_postgres_array_number(numbers, number);
    }
}

#define CELL(field) offsetof(struct stock_cell, field)

static void write_cells(struct stock_flow *flow,
                        const struct stock_batch *batch)
{
    static const struct {
        enum change change;
        enum stock_sql sql;
        size_t columns[5];
        int count;
    } rows[] = {
        {UPDATED,
         SQL_UPDATE,
         {CELL(read_version), CELL(available), CELL(reserved), CELL(sold),
          CELL(version)},
         5},
        {DELETED, SQL_DELETE, {CELL(read_version)}, 1},
        {INSERTED,
         SQL_INSERT,
         {CELL(available), CELL(reserved), CELL(sold), CELL(version)},
         4},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (count_cells(batch, rows[i].change) == 0)
            continue;
        hf_stock_trip_step(&flow->conn, rows[i].sql);
        send_skus(flow, batch, rows[i].change);
        for (int j = 0; j < rows[i].count; j++)
            send_numbers(flow, batch, rows[i].change, rows[i].columns[j]);
    }
}

static void write_items(struct stock_flow *flow,
                        const struct stock_batch *batch)
{
    struct stock_conn *conn = &flow->conn;

    hf_stock_trip_step(conn, SQL_LIST);
    struct postgres_array *ids = hf_stock_trip_array(conn, POSTGRES_TEXT);
    struct postgres_array *skus = hf_stock_trip_array(conn, POSTGRES_TEXT);
    struct postgres_array *units = hf_stock_trip_array(conn, POSTGRES_BIGINT);
    for (uint32_t i = 0; i < batch->booking_count; i++) {
        const struct stock_booking *booking = &batch->bookings[i];
        if (!booking->changed || booking->known)
            continue;
        for (uint32_t j = 0; j < booking->lines.count; j++) {
            const struct stock_line *line =
                &batch->lines[booking->lines.first + j];
            hf_postgres_array_text(ids, booking->id);
            hf_postgres_array_text(skus, batch->cells[line->cell].sku);
            hf_postgres_array_number(units, line->quantity);
        }
    }
}

static void write_bookings(struct stock_flow *flow,
                           const struct stock_batch *batch, bool known)
{
    struct stock_conn *conn = &flow->conn;
    struct postgres_array *read = NULL;

    if (count_bookings(batch, known) == 0)
        return;
    hf_stock_trip_step(conn, known ? SQL_REBOOK : SQL_BOOK);
    struct postgres_array *ids = hf_stock_trip_array(conn, POSTGRES_TEXT);
    struct postgres_array *states = hf_stock_trip_array(conn, POSTGRES_TEXT);
    struct postgres_array *now = hf_stock_trip_array(conn, POSTGRES_BIGINT);
    struct postgres_array *expires = hf_stock_trip_array(conn, POSTGRES_BIGINT);
    if (known)
        read = hf_stock_trip_array(conn, POSTGRES_BIGINT);
    for (uint32_t i = 0; i < batch->booking_count; i++) {
        const struct stock_booking *booking = &batch->bookings[i];
        if (!booking->changed || booking->known != known)
            continue;
        hf_postgres_array_text(ids, booking->id);
        hf_postgres_array_text(states, hf_bytes_text(text_of(booking->state)));
        hf_postgres_array_number(now, batch->now_us);
        hf_postgres_array_number(expires, booking->expires_us);
        if (read != NULL)
            hf_postgres_array_number(read, booking->read_expires_us);
    }
    if (!known)
        write_items(flow, batch);
}

static void write_events(struct stock_flow *flow,
                         const struct stock_batch *batch)
{
    struct stock_conn *conn = &flow->conn;

    if (!flow->common->outbox || batch->event_count == 0)
        return;
    hf_stock_trip_step(conn, SQL_TELL);
    struct postgres_array *events = hf_stock_trip_array(conn, POSTGRES_TEXT);
    struct postgres_array *names = hf_stock_trip_array(conn, POSTGRES_TEXT);
    struct postgres_array *units = hf_stock_trip_array(conn, POSTGRES_BIGINT);
    for (uint32_t i = 0; i < batch->event_count; i++) {
        hf_postgres_array_text(events, hf_bytes_text(batch->events[i].name));
        hf_postgres_array_text(names, batch->events[i].about);
        hf_postgres_array_number(units, batch->events[i].units);
    }
}

void hf_stock_flow_send_mark(struct stock_flow *flow)
{
    hf_stock_trip_step(&flow->conn, SQL_MARK);
    hf_stock_trip_text(&flow->conn, flow->conn.writer);
    hf_stock_trip_number(&flow->conn, flow->conn.batch + 1);
}

/* All that has changed, and the commit, in one trip. Without locks so far the
 * rows are locked in their order first, and then compared. */
static struct stock_ended write_rows(struct stock_flow *flow,
                                     const struct stock_batch *batch,
                                     bool is_locked)
{
    struct stock_conn *conn = &flow->conn;

    hf_stock_trip_begin(conn);
    if (!is_locked) {
        hf_stock_trip_step(conn, SQL_LOCK_ONLY);
        struct postgres_array *skus = hf_stock_trip_array(conn, POSTGRES_TEXT);
        for (uint32_t i = 0; i < batch->cell_count; i++)
            if (batch->cells[i].known)
                hf_postgres_array_text(skus, batch->cells[i].sku);
    }
    write_cells(flow, batch);
    write_bookings(flow, batch, true);
    write_bookings(flow, batch, false);
    write_events(flow, batch);
    hf_stock_flow_send_mark(flow);
    hf_stock_trip_step(conn, SQL_COMMIT);
    enum hf_status status = hf_stock_trip_send(conn);
    if (status == HF_OK) {
        conn->batch++;
        return (struct stock_ended){END_DONE, HF_OK};
    }
    struct stock_ended ended = hf_stock_flow_judge(flow, status);
    if (ended.end == END_LOST)
        ended.end = END_UNKNOWN;
    return ended;
}

/* ---- All of it. ---- */

/* Refused for want of units: are some of them overdue? */
static struct stock_ended look_for_overdue(struct stock_flow *flow,
                                           const struct stock_batch *batch)
{
    hf_stock_trip_begin(&flow->conn);
    hf_stock_trip_step(&flow->conn, SQL_OVERDUE);
    send_names(flow, batch, true);
    enum hf_status status = hf_stock_trip_send(&flow->conn);
    if (status != HF_OK)
        return hf_stock_flow_judge(flow, status);
    if (PQntuples(flow->conn.results[0]) == 0)
        return (struct stock_ended){END_DONE, HF_OK};
    PQclear(flow->overdue);
    flow->overdue = hf_stock_trip_keep(&flow->conn, 0);
    return (struct stock_ended){END_OVERDUE, HF_CONTENDED};
}

static struct stock_ended go_through(struct stock_flow *flow,
                                     struct stock_work *work,
                                     enum stock_sql lock, bool is_begun)
{
    struct stock_batch *batch = &work->batch;
    enum hf_status status = read_rows(flow, work, lock, is_begun);

    if (status != HF_OK)
        return hf_stock_flow_judge(flow, status);
    hf_stock_batch_decide(batch);
    if (batch->no_memory)
        return (struct stock_ended){END_FAILED, HF_NOMEM};
    if (batch->stale)
        return (struct stock_ended){END_AGAIN, HF_CONTENDED};
    if (batch->short_of) {
        struct stock_ended ended = look_for_overdue(flow, batch);
        if (ended.end != END_DONE)
            return ended;
    }
    if (batch->event_count > 0) /* one for each change */
        return write_rows(flow, batch, lock != SQL_READ);
    /* What was refused is so, whatever becomes of this. */
    hf_stock_flow_roll_back(flow);
    return (struct stock_ended){END_DONE, HF_OK};
}

struct stock_ended hf_stock_flow_attempt(struct stock_flow *flow,
                                         struct stock_work *work,
                                         enum stock_sql lock, bool is_begun)
{
    struct stock_ended ended = {END_FAILED, HF_NOMEM};

    if (!work->batch.no_memory) {
        stock_count(&flow->common->batches, 1);
        ended = go_through(flow, work, lock, is_begun);
    }
    if (ended.end != END_DONE)
        hf_stock_flow_roll_back(flow);
    return ended;
}
