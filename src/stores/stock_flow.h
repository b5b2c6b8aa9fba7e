/* stock_flow.h - a batch of requests becomes a transaction.
 *
 *   read    BEGIN, lock or only read the rows, the time
 *   decide  stock_decide.c
 *   write   what has changed, COMMIT
 *
 * and again from the start if others were faster, or if the connection was lost
 * and the database says that nothing was committed.
 *
 * Threads: one at a time; each has a flow of its own.
 */
#ifndef STORES_STOCK_FLOW_H
#define STORES_STOCK_FLOW_H

#include "base/atomic.h"
#include "holdfast/stock_postgres.h"
#include "stores/stock_batch.h"
#include "stores/stock_trip.h"

/* What all flows of a stock share. (i) immutable after open  (a) atomic */
struct stock_common {
    enum hf_stock_strategy strategy; /* (i) */
    uint32_t timeout_ms;             /* (i) */
    bool outbox;                     /* (i) */
    void (*failed)(void *context, enum hf_status status,
                   const char *text); /* (i) the user's, or NULL */
    void *context;                    /* (i) */
    /* (a) relaxed: figures */
    struct hf_atomic_u64 requests, batches, retries, contended, expired;
    struct hf_atomic_u64 unknown, reconnects;
};

#define WORK_ROWS 4

/* A batch and the rows whose names it uses. */
struct stock_work {
    struct stock_batch batch;
    struct pg_result *rows[WORK_ROWS]; /* products, reservations, items; all
                                        * products, also those of others */
};

struct stock_flow {
    struct stock_common *common;
    struct stock_conn conn;
    struct stock_work asked;   /* the requests */
    struct stock_work freed;   /* overdue reservations that are in their way */
    struct pg_result *overdue; /* their ids */
};

void hf_stock_flow_init(struct stock_flow *flow, struct stock_common *common,
                        int64_t ttl_us);
void hf_stock_flow_destroy(struct stock_flow *flow);

/* Carries them out and answers them: changes, or questions, not both. */
void hf_stock_flow_change(struct stock_flow *flow,
                          struct hf_stock_request *const *requests,
                          size_t count);
void hf_stock_flow_read(struct stock_flow *flow,
                        struct hf_stock_request *const *requests, size_t count);
/* Ends at most `max` overdue reservations, in one transaction. */
enum hf_status hf_stock_flow_sweep(struct stock_flow *flow, uint32_t max,
                                   uint32_t *count);

/* For its files. How an attempt ended: */
enum stock_end {
    END_DONE,
    END_AGAIN,   /* others were faster; nothing was changed */
    END_OVERDUE, /* reservations are in the way: flow->overdue */
    END_LOST,    /* the connection, before anything could be committed */
    END_UNKNOWN, /* the connection, in the commit */
    END_FAILED,  /* see the status */
};

struct stock_ended {
    enum stock_end end;
    enum hf_status status; /* what the requests are told if that is the end */
};

enum hf_status hf_stock_flow_connect(struct stock_flow *flow);
/* What a trip that failed means. */
struct stock_ended hf_stock_flow_judge(struct stock_flow *flow,
                                       enum hf_status status);
struct stock_ended hf_stock_flow_attempt(struct stock_flow *flow,
                                         struct stock_work *work,
                                         enum stock_sql lock, bool is_begun);
/* Ends a transaction that goes no further, if there is one. */
void hf_stock_flow_roll_back(struct stock_flow *flow);
/* The last step before a commit: by it find_out() knows. */
void hf_stock_flow_send_mark(struct stock_flow *flow);
/* How the transaction ended: END_DONE, END_LOST (it was rolled back), or
 * END_FAILED, HF_IO: that cannot be known. */
struct stock_ended hf_stock_flow_find_out(struct stock_flow *flow);
/* Reserves by one statement. END_AGAIN: go the other way. */
struct stock_ended hf_stock_flow_take(struct stock_flow *flow);
/* Answers the questions in its batch. */
struct stock_ended hf_stock_flow_look(struct stock_flow *flow);
/* Rows of products and of reservations go into the batch. */
void hf_stock_flow_take_products(struct stock_batch *batch,
                                 const struct pg_result *rows);
void hf_stock_flow_take_bookings(struct stock_batch *batch,
                                 const struct pg_result *rows);
void hf_stock_flow_clear(struct stock_work *work);

static inline void stock_count(struct hf_atomic_u64 *figure, uint64_t more)
{
    (void)hf_u64_add(figure, more, __ATOMIC_RELAXED); /* a figure */
}

#endif
