/* stock_postgres.h - stock in PostgreSQL, for any number of processes.
 *
 * The calls of stock.h over tables in a database. Requests that wait for a
 * connection anyway go together: each connection's thread takes what is queued
 * and carries it out in one transaction, with one UPDATE for a product however
 * many requests are about it. Nothing is answered before the commit.
 *
 *   callers --> queue --> 1..n threads, a connection each --> one transaction:
 *
 *     validate   names, numbers, the same product twice
 *     lock       BEGIN, products in the order of their names, reservations
 *     change     decided here, one request after the other, each with its
 *                own answer: one that is short does not fail another
 *     record     arrays of new values, one statement per table
 *     commit     in the same trip
 *
 * What locks and how is the strategy:
 *
 *   PESSIMISTIC  rows are locked when they are read
 *   OPTIMISTIC   rows are read, and written if their version is the same; if
 *                not, three more times after a pause, then HF_CONTENDED
 *   ATOMIC       one statement that takes the units if they are there: a trip
 *                for a batch of reserves. All else goes the pessimistic way
 *
 * Products and reservations are tables of a schema that is made by numbered
 * migrations when it is opened, for which the first opener needs the right to
 * create. CHECK constraints refuse what breaks a sum, also by hand.
 *
 * Answers that the engine does not have:
 *
 *   HF_CONTENDED  others held the rows too long, or were faster each time.
 *                 Nothing was changed
 *   HF_IO         the database is not there, or did not answer in time. What
 *                 was asked may have happened: repeat a reserve with the same
 *                 id, look at a reservation
 *   HF_FAILED     it refused for a reason that will stay; `failed` is told
 *   HF_CORRUPT    somebody wrote by hand: a reservation has products that there
 *                 are not, or more units than are reserved of them
 *
 * A connection that is lost in a commit is made again and the database asked
 * how the transaction ended, so that HF_IO is for the case that it cannot be
 * known. Names are UTF-8, else HF_INVALID. The bounds of hf_stock_opts are the
 * engine's: here reservations that have ended are kept, until you delete them.
 *
 * Threads: as stock.h. hf_stock_postgres_sweep() may overlap every call, itself
 *          and that of other processes.
 * Memory:  as stock.h; some kilobytes for a connection.
 * Time:    the database's, by clock_timestamp(): processes need not agree. What
 *          is overdue counts as available in every answer, exactly, whether it
 *          was swept or not; sweeping keeps the work for that small.
 *
 * Example:
 *
 *   struct hf_stock *stock;
 *   struct hf_stock_postgres_opts opts = {.conninfo = "host=/nowhere"};
 *
 *   // nobody is there
 *   assert(hf_stock_postgres_open(&stock, &opts) == HF_IO);
 *   // else: the calls of stock.h, and now and then, in any process:
 *   // hf_stock_postgres_sweep(stock, 0, &count);
 */
#ifndef HOLDFAST_STOCK_POSTGRES_H
#define HOLDFAST_STOCK_POSTGRES_H

#include <stdbool.h>
#include <stdint.h>

#include "holdfast/stock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define HF_STOCK_CONNECTIONS_MAX 64u
#define HF_STOCK_BATCH_MAX       1024u
#define HF_STOCK_SWEEP_MAX       1000u

enum hf_stock_strategy {
    HF_STOCK_PESSIMISTIC,
    HF_STOCK_OPTIMISTIC,
    HF_STOCK_ATOMIC,
};

struct hf_stock_postgres_opts {
    const char *name;     /* for hf_inspect() */
    const char *conninfo; /* libpq's; required; copied. Not a pool that gives
                           * each transaction another session */
    const char *schema;   /* letters, digits, _; NULL: "holdfast" */
    enum hf_stock_strategy strategy;
    uint32_t connections; /* threads; 0: 2; HF_STOCK_CONNECTIONS_MAX */
    uint32_t batch_max;   /* requests together; 0: 128; HF_STOCK_BATCH_MAX */
    uint64_t ttl_ns;      /* of reservations; 0: ten minutes */
    uint32_t timeout_ms;  /* of a trip; 0: 10,000 */
    uint32_t lock_timeout_ms; /* of the wait for a row; 0: 2,000 */
    /* Writes a row to the table `outbox` for every change, in the transaction
     * that makes it. Whoever reads them deletes them. */
    bool outbox;
    /* Told of every error of the database, in the thread that met it, also in
     * that of the open; NULL: nobody. */
    void (*failed)(void *context, enum hf_status status, const char *text);
    void *context;
};

struct hf_stock_postgres_stats {
    uint64_t requests;   /* answered */
    uint64_t batches;    /* transactions for them, and reads */
    uint64_t retries;    /* done again: others were faster, or a deadlock */
    uint64_t contended;  /* requests answered so */
    uint64_t expired;    /* reservations found overdue and ended */
    uint64_t unknown;    /* commits whose end had to be found out */
    uint64_t reconnects; /* connections made anew */
};

/* Connects, makes or checks the tables, and starts the threads. HF_INVALID: an
 * argument is out of its range; HF_NOMEM; HF_IO: the database cannot be
 * reached; HF_FAILED: it refused, or its tables were made by a newer or another
 * library: `failed` is told why. */
enum hf_status
hf_stock_postgres_open(struct hf_stock **stock,
                       const struct hf_stock_postgres_opts *opts);

/* Ends reservations that are overdue, at most `max` (0: HF_STOCK_SWEEP_MAX,
 * which is also the most) in one transaction, and tells how many: again while
 * that is `max`. Rows that others have locked are left to them. Whoever calls
 * it, and how many at once, each is given back once. `count` may be NULL.
 * HF_INVALID: also: the stock is not in PostgreSQL. HF_NOMEM, HF_IO,
 * HF_CONTENDED, HF_FAILED: nothing was given back, or (HF_IO) that is not
 * known. */
enum hf_status hf_stock_postgres_sweep(struct hf_stock *stock, uint32_t max,
                                       uint32_t *count);

/* Since it was opened. Zeros if the stock is not in PostgreSQL. */
void hf_stock_postgres_stats(const struct hf_stock *stock,
                             struct hf_stock_postgres_stats *out);

#ifdef __cplusplus
}
#endif

#endif
