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
};

/* All of these: HF_NOTFOUND: the table is not there, or of another shape.
 *
 * HF_OK: there is a connection. `*again`: one that is not the first. */
enum hf_status hf_store_link_make(struct store_link *link, bool *again);
void hf_store_link_destroy(struct store_link *link);
/* One command without results. */
enum hf_status hf_store_link_run(struct store_link *link, const char *sql);
/* The prepared statement, all parameters and results in binary. On HF_OK
 * `*result` is to be cleared. */
enum hf_status hf_store_link_ask(struct store_link *link,
                                 const char *const *values, const int *lengths,
                                 struct pg_result **result);

#endif
