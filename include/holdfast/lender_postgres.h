/* lender_postgres.h - connections to PostgreSQL, lent by an hf_lender.
 *
 * Sets the callbacks of a lender's options, so that what it lends is a
 * `PGconn *` of libpq:
 *
 *   create    PQconnectdb; a connection that is not up is a failure
 *   validate  an empty query, one trip to the server
 *   reset     a transaction that was left open is rolled back; a connection
 *             that lies in the midst of a query or a copy is broken
 *   destroy   PQfinish
 *
 * A borrower that is told of a lost connection discards it. A server that does
 * not answer holds whoever waits for it, as libpq does: `connect_timeout` and
 * `tcp_user_timeout` in the conninfo bound that. What a session has set (SET,
 * temporary tables, LISTEN) stays with its connection.
 *
 * Threads: as the lender. Memory: the conninfo is kept by pointer, and lasts
 *          as long as the lender. Programs that use this link libpq.
 *
 * Example:
 *
 *   struct hf_lender *lender;
 *   struct hf_lender_opts opts = {.max = 4, .trust_ns = 500000000};
 *   struct hf_loan loan;
 *   assert(hf_lender_postgres(&opts, "host=/nowhere connect_timeout=2") ==
 *          HF_OK);
 *   assert(hf_lender_open(&lender, &opts) == HF_OK);
 *   // nobody is there: it is tried until the deadline
 *   assert(hf_lender_borrow(lender, "main", hf_clock_after_ms(NULL, 5),
 *                           &loan) == HF_TIMEOUT);
 *   // else: PGresult *result = PQexec(loan.resource, "select 1");
 *   hf_lender_close(lender);
 */
#ifndef HOLDFAST_LENDER_POSTGRES_H
#define HOLDFAST_LENDER_POSTGRES_H

#include "holdfast/lender.h"
#include "holdfast/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Sets create, destroy, validate, reset and context; `observe` is called with
 * the conninfo as its context. HF_INVALID: an argument is NULL. */
enum hf_status hf_lender_postgres(struct hf_lender_opts *opts,
                                  const char *conninfo);

#ifdef __cplusplus
}
#endif

#endif
