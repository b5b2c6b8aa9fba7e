/* lender_postgres.c - libpq connections for a lender. */
#include "holdfast/lender_postgres.h"

#include <libpq-fe.h>

static int create(void *context, void **resource)
{
    PGconn *conn = PQconnectdb(context);

    if (PQstatus(conn) != CONNECTION_OK) {
        PQfinish(conn); /* NULL too */
        return 1;
    }
    *resource = conn;
    return 0;
}

static void destroy(void *context, void *resource)
{
    (void)context;
    PQfinish(resource);
}

static int ask(PGconn *conn, const char *query)
{
    PGresult *result = PQexec(conn, query);
    ExecStatusType status = PQresultStatus(result);

    PQclear(result);
    return status != PGRES_EMPTY_QUERY && status != PGRES_COMMAND_OK;
}

static int validate(void *context, void *resource)
{
    (void)context;
    return PQstatus(resource) != CONNECTION_OK || ask(resource, "");
}

static int reset(void *context, void *resource)
{
    (void)context;
    switch (PQtransactionStatus(resource)) {
    case PQTRANS_IDLE:
        return 0;
    case PQTRANS_INTRANS:
    case PQTRANS_INERROR:
        return ask(resource, "ROLLBACK");
    default:
        return 1;
    }
}

enum hf_status hf_lender_postgres(struct hf_lender_opts *opts,
                                  const char *conninfo)
{
    if (opts == NULL || conninfo == NULL)
        return HF_INVALID;
    opts->create = create;
    opts->destroy = destroy;
    opts->validate = validate;
    opts->reset = reset;
    opts->context = (void *)(uintptr_t)conninfo;
    return HF_OK;
}
