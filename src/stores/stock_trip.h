/* stock_trip.h - a connection of a stock, and what goes to the database in one
 * trip: some of the prepared statements with their parameters.
 *
 *   begin(trip)   step(SQL_LOCK)   array = texts(trip)   ...   send
 *
 * Threads: one at a time.
 * Memory:  the room for parameters is kept from one trip to the next.
 */
#ifndef STORES_STOCK_TRIP_H
#define STORES_STOCK_TRIP_H

#include "stores/postgres_array.h"
#include "stores/stock_sql.h"

#define TRIP_STEPS_MAX  10
#define TRIP_PARAMS_MAX 40 /* of all steps */

struct trip_param {
    struct postgres_array array;
    bool is_array;
};

struct stock_trip {
    struct link_step steps[TRIP_STEPS_MAX];
    int step_count;
    struct trip_param params[TRIP_PARAMS_MAX];
    int param_count;
};

struct stock_conn {
    struct store_link link;
    const char *schema;       /* the owner's */
    uint32_t lock_timeout_ms; /* 0: the server's */
    char writer[40];          /* its row in `writers` */
    int64_t batch;            /* the number that is there */
    struct stock_trip trip;
    struct pg_result *results[TRIP_STEPS_MAX]; /* of the last trip */
    int result_count;
};

/* There is a connection with all statements prepared. `*again`: a new one that
 * is not the first. */
enum hf_status hf_stock_conn_make(struct stock_conn *conn, bool *again);
/* The row of a writer that is no more. */
enum hf_status hf_stock_conn_leave(struct stock_conn *conn, const char *writer);
void hf_stock_conn_destroy(struct stock_conn *conn);

void hf_stock_trip_begin(struct stock_conn *conn);
/* The parameters that are added next are its own. */
void hf_stock_trip_step(struct stock_conn *conn, enum stock_sql sql);
struct postgres_array *hf_stock_trip_array(struct stock_conn *conn,
                                           uint32_t type);
void hf_stock_trip_number(struct stock_conn *conn, int64_t number);
void hf_stock_trip_text(struct stock_conn *conn, const char *text);
/* HF_OK: `results` has one for each step, until the next trip or the end. Else
 * as hf_store_link_trip(). */
enum hf_status hf_stock_trip_send(struct stock_conn *conn);
/* A trip of one step without parameters. */
enum hf_status hf_stock_trip_run(struct stock_conn *conn, enum stock_sql sql);
/* The caller clears it. */
struct pg_result *hf_stock_trip_keep(struct stock_conn *conn, int step);

#endif
