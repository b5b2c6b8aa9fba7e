/* writebehind_postgres.c - PostgreSQL with a prepared statement for each put,
 * a connection for each thread. */
#include <libpq-fe.h>
#include <stdlib.h>

#include "bench/keep/writebehind.h"

struct direct {
    PGconn *conns[WB_THREADS_MAX];
};

static void check(PGresult *result, PGconn *conn)
{
    if (PQresultStatus(result) != PGRES_COMMAND_OK)
        contest_fail(PQerrorMessage(conn));
    PQclear(result);
}

static void *direct_open(const struct contest_work *work)
{
    const char *conninfo = getenv(WB_POSTGRES);

    if (work->shape == WB_PUT || conninfo == NULL)
        return NULL;
    struct direct *self = contest_alloc(sizeof *self);
    for (unsigned i = 0; i < work->threads; i++) {
        PGconn *conn = PQconnectdb(conninfo);
        self->conns[i] = conn;
        if (PQstatus(conn) != CONNECTION_OK)
            contest_fail(PQerrorMessage(conn));
        check(PQexec(conn, "SET client_min_messages = warning"), conn);
        check(PQexec(conn, "CREATE TABLE IF NOT EXISTS direct "
                           "(key bytea PRIMARY KEY, value bytea NOT NULL)"),
              conn);
        if (i == 0)
            check(PQexec(conn, "TRUNCATE direct"), conn);
        check(PQprepare(conn, "put",
                        "INSERT INTO direct VALUES ($1::bytea, $2::bytea) "
                        "ON CONFLICT (key) DO UPDATE SET "
                        "value = excluded.value",
                        2, NULL),
              conn);
    }
    return self;
}

static void direct_close(void *context)
{
    struct direct *self = context;

    for (unsigned i = 0; i < WB_THREADS_MAX; i++)
        PQfinish(self->conns[i]);
    free(self);
}

CONTEST_INLINE void direct_put(struct contest_thread *thread, const char *key,
                               const char *value)
{
    struct direct *self = thread->self;
    PGconn *conn = self->conns[thread->index];
    const char *values[] = {key, value};
    const int lengths[] = {WB_KEY_BYTES, WB_VALUE_BYTES};
    const int formats[] = {1, 1};

    check(PQexecPrepared(conn, "put", 2, values, lengths, formats, 1), conn);
}

static void direct_finish(struct contest_thread *thread)
{
    (void)thread;
}

static void direct_run(struct contest_thread *thread)
{
    wb_run(thread, direct_put, direct_finish);
}

const struct contest_side writebehind_postgres = {
    .name = "postgres",
    .open = direct_open,
    .close = direct_close,
    .run = direct_run,
};
