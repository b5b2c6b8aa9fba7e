/* store_postgres_link.h - one connection to PostgreSQL that mends itself.
 *
 * libpq's own calls wait for ever. Here every call has a time limit, by the
 * system's clock; a connection that does not answer in time is given up, and
 * the next call makes another.
 *
 * Threads: one at a time.
 */
#ifndef STORES_STORE_POSTGRES_LINK_H
#define STORES_STORE_POSTGRES_LINK_H

#include "base/bytes.h"
#include "stores/store_ready.h"

#define LINK_PARAMS_MAX 3

/* libpq's own names for PGconn and PGresult. */
struct pg_conn;
struct pg_result;

struct store_link {
    struct pg_conn *conn;  /* NULL: none */
    const char *conninfo;  /* the owner's */
    const char *writer;    /* ends others of this name; NULL: none */
    const char *statement; /* prepared as "s" with each connection */
    int params;            /* of it */
    uint32_t timeout_ms;
    bool was_made;               /* a connection, before */
    char text[STORE_TEXT_BYTES]; /* about the last error */
    char state[6];               /* its SQLSTATE; "": the server gave none */
};

/* A statement among several that go together. */
struct link_step {
    const char *name; /* it is prepared under this name */
    const char *sql;  /* prepares it; NULL: carries it out */
    int params;       /* all in binary, as are its results */
    const char *const *values;
    const int *lengths;
};

#define LINK_STEPS_MAX 32

/* All of these: HF_NOTFOUND: the table is not there, or of another shape.
 *
 * HF_OK: there is a connection. `*again`: one that is not the first. */
enum hf_status hf_store_link_make(struct store_link *link, bool *again);
void hf_store_link_destroy(struct store_link *link);
/* One command without results. */
enum hf_status hf_store_link_run(struct store_link *link, const char *sql);
/* One command, its result in text; to be cleared on HF_OK. */
enum hf_status hf_store_link_query(struct store_link *link, const char *sql,
                                   struct pg_result **result);
/* The prepared statement, all parameters and results in binary. On HF_OK
 * `*result` is to be cleared. */
enum hf_status hf_store_link_ask(struct store_link *link,
                                 const char *const *values, const int *lengths,
                                 struct pg_result **result);
/* All of the steps in one trip. They are one transaction, unless they begin or
 * end one. HF_OK: each of the results is to be cleared. Else there are none: of
 * the first that failed the reason is told, those behind it were not carried
 * out, and a transaction that was open has failed. If the connection was lost
 * as well, `conn` is NULL. */
enum hf_status hf_store_link_trip(struct store_link *link,
                                  const struct link_step *steps, int count,
                                  struct pg_result **results);

#endif
