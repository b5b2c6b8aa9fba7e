/* stock_flow.c - from requests to answers: attempts, and what comes between. */
#include "stores/stock_flow.h"

#include <assert.h>
#include <libpq-fe.h>

#include "holdfast/backoff.h"
#include "holdfast/event.h"

#define READ_AGAIN_MAX 3   /* the optimistic strategy's retries */
#define LOCK_AGAIN_MAX 10  /* deadlocks, ids used at the same time */
#define FREE_TIMES_MAX 100 /* of up to 1,000 overdue reservations each */
#define FREE_IN_VAIN   10
#define LOST_TIMES_MAX 2 /* connections, for one batch */
#define PAUSE_BASE_NS  UINT64_C(1000000)
#define PAUSE_CAP_NS   UINT64_C(100000000)

/* ---- Memory. ---- */

void hf_stock_flow_init(struct stock_flow *flow, struct stock_common *common,
                        int64_t ttl_us)
{
    flow->common = common;
    hf_stock_batch_init(&flow->asked.batch, ttl_us);
    hf_stock_batch_init(&flow->freed.batch, ttl_us);
}

void hf_stock_flow_destroy(struct stock_flow *flow)
{
    hf_stock_flow_clear(&flow->asked);
    hf_stock_flow_clear(&flow->freed);
    hf_stock_batch_destroy(&flow->asked.batch);
    hf_stock_batch_destroy(&flow->freed.batch);
    PQclear(flow->overdue);
    hf_stock_conn_destroy(&flow->conn);
}

static void gather(struct stock_flow *flow,
                   struct hf_stock_request *const *requests, size_t count)
{
    hf_stock_batch_clear(&flow->asked.batch);
    for (size_t i = 0; i < count; i++)
        hf_stock_batch_add(&flow->asked.batch, requests[i]);
}

/* Each has its answer in its task, or all have the same. */
static void answer(struct stock_flow *flow,
                   struct hf_stock_request *const *requests, size_t count,
                   enum hf_status status)
{
    const struct stock_batch *batch = &flow->asked.batch;

    stock_count(&flow->common->requests, count);
    for (size_t i = 0; i < count; i++) {
        struct hf_stock_request *request = requests[i];
        /* Without memory some have no task, and those behind them another. */
        bool is_told = !batch->no_memory;
        request->answer = (struct hf_stock_answer){.state = HF_STOCK_NONE};
        request->status = status;
        if (is_told && batch->tasks[i].wrong) {
            request->status = HF_INVALID;
        } else if (status == HF_OK) {
            assert(is_told);
            request->status = batch->tasks[i].status;
            request->answer = batch->tasks[i].answer;
            request->product = batch->tasks[i].product;
        }
        if (request->status == HF_CONTENDED)
            stock_count(&flow->common->contended, 1);
        request->done(request);
    }
}

/* ---- Waiting. ---- */

static void pause_ns(uint64_t ns)
{
    struct hf_event nobody;

    hf_event_init(&nobody);
    (void)hf_event_wait(&nobody, hf_event_prepare(&nobody), NULL,
                        hf_clock_after_ns(NULL, ns));
}

static void begin_pauses(struct hf_backoff *backoff)
{
    const struct hf_backoff_opts opts = {.base_ns = PAUSE_BASE_NS,
                                         .cap_ns = PAUSE_CAP_NS};

    (void)hf_backoff_init(backoff, &opts);
}

static void pause_again(struct hf_backoff *backoff)
{
    uint64_t ns;

    if (hf_backoff_next(backoff, 0, HF_FOREVER, &ns) == HF_OK)
        pause_ns(ns);
}

/* ---- A commit whose answer was lost. ---- */

static enum hf_status send_writer(struct stock_flow *flow, enum stock_sql sql,
                                  const char *writer)
{
    hf_stock_trip_begin(&flow->conn);
    hf_stock_trip_step(&flow->conn, sql);
    hf_stock_trip_text(&flow->conn, writer);
    return hf_stock_trip_send(&flow->conn);
}

/* Was the batch of that number committed? END_UNKNOWN: ask again. */
static struct stock_ended ask_outcome(struct stock_flow *flow,
                                      const char *writer, int64_t number)
{
    const struct stock_ended unknown = {END_FAILED, HF_IO};
    const struct stock_ended not_yet = {END_UNKNOWN, HF_IO};
    enum hf_status status = hf_stock_flow_connect(flow);

    if (status != HF_OK)
        return status == HF_IO ? not_yet : unknown;
    /* Its session may not have seen that we are gone, and hold its locks. That
     * it cannot be ended is no reason not to ask. */
    (void)send_writer(flow, SQL_END_BACKEND, writer);
    if (flow->conn.link.conn == NULL ||
        send_writer(flow, SQL_FENCE, writer) != HF_OK)
        return not_yet;
    if (PQntuples(flow->conn.results[0]) == 0)
        return unknown;
    bool is_done = hf_postgres_number(flow->conn.results[0], 0, 0) == number;
    (void)hf_stock_conn_leave(&flow->conn, writer);
    if (is_done)
        return (struct stock_ended){END_DONE, HF_OK};
    return (struct stock_ended){END_LOST, HF_IO};
}

struct stock_ended hf_stock_flow_find_out(struct stock_flow *flow)
{
    uint64_t deadline_ns = hf_clock_after_ms(NULL, flow->common->timeout_ms);
    int64_t number = flow->conn.batch + 1;
    struct hf_backoff backoff;
    struct stock_ended ended;
    char writer[sizeof flow->conn.writer];

    stock_count(&flow->common->unknown, 1);
    memcpy(writer, flow->conn.writer, sizeof writer);
    begin_pauses(&backoff);
    for (;;) {
        ended = ask_outcome(flow, writer, number);
        if (ended.end != END_UNKNOWN)
            return ended;
        if (hf_clock_now_ns(NULL) >= deadline_ns)
            return (struct stock_ended){END_FAILED, HF_IO};
        pause_again(&backoff);
    }
}

/* ---- Attempts. ---- */

/* How often each thing has happened to a batch. */
struct tries {
    struct hf_backoff backoff;
    uint32_t again, freed, lost;
    uint32_t again_max;
};

static void begin_tries(struct tries *tries, uint32_t again_max)
{
    *tries = (struct tries){.again_max = again_max};
    begin_pauses(&tries->backoff);
}

/* Is there to be another attempt? */
static bool may_try(struct stock_flow *flow, struct tries *tries,
                    const struct stock_ended *ended)
{
    switch (ended->end) {
    case END_AGAIN:
        if (tries->again++ == tries->again_max)
            return false;
        stock_count(&flow->common->retries, 1);
        pause_again(&tries->backoff);
        return true;
    case END_OVERDUE:
        return tries->freed++ < FREE_TIMES_MAX;
    case END_LOST:
        return ++tries->lost < LOST_TIMES_MAX;
    default:
        return false;
    }
}

/* One attempt; what became of a commit is known afterwards. */
static struct stock_ended attempt(struct stock_flow *flow,
                                  struct stock_work *work, enum stock_sql lock)
{
    enum hf_status status = hf_stock_flow_connect(flow);

    if (status != HF_OK)
        return hf_stock_flow_judge(flow, status);
    struct stock_ended ended = hf_stock_flow_attempt(flow, work, lock, false);
    return ended.end == END_UNKNOWN ? hf_stock_flow_find_out(flow) : ended;
}

/* Ends the overdue reservations that were found. They are locked as all are, in
 * the order of their products, and looked at again. */
static struct stock_ended free_overdue(struct stock_flow *flow)
{
    struct stock_batch *batch = &flow->freed.batch;
    struct stock_ended ended;
    struct tries tries;

    hf_stock_batch_clear(batch);
    for (int i = 0; i < PQntuples(flow->overdue); i++)
        hf_stock_batch_add_own(batch, STOCK_EXPIRE,
                               hf_postgres_text(flow->overdue, i, 0));
    begin_tries(&tries, LOCK_AGAIN_MAX);
    do {
        ended = attempt(flow, &flow->freed, SQL_LOCK);
    } while (may_try(flow, &tries, &ended));
    if (ended.end == END_DONE)
        stock_count(&flow->common->expired, batch->expired);
    return ended;
}

static struct stock_ended change(struct stock_flow *flow)
{
    bool reads = flow->common->strategy == HF_STOCK_OPTIMISTIC;
    struct stock_ended ended = {END_AGAIN, HF_CONTENDED};
    struct tries tries;

    if (flow->common->strategy == HF_STOCK_ATOMIC)
        ended = hf_stock_flow_take(flow);
    if (ended.end == END_DONE || ended.end == END_FAILED)
        return ended;
    begin_tries(&tries, reads ? READ_AGAIN_MAX : LOCK_AGAIN_MAX);
    do {
        ended = attempt(flow, &flow->asked, reads ? SQL_READ : SQL_LOCK);
        if (ended.end != END_OVERDUE)
            continue;
        struct stock_ended freed = free_overdue(flow);
        if (freed.end != END_DONE)
            return freed;
        /* Somebody else was first, or they cannot be: not for ever. */
        if (flow->freed.batch.expired == 0)
            tries.freed += FREE_IN_VAIN;
    } while (may_try(flow, &tries, &ended));
    return ended;
}

/* Rows that others hold were waited for, in vain, or there are none of a
 * reservation, or what is overdue could not be ended. Now they are left out,
 * and only those are refused who want them. */
static struct stock_ended change_the_rest(struct stock_flow *flow)
{
    struct stock_ended ended = attempt(flow, &flow->asked, SQL_LOCK_FREE);

    if (ended.end == END_OVERDUE) {
        flow->asked.batch.gives_up = true;
        ended = attempt(flow, &flow->asked, SQL_LOCK_FREE);
    }
    return ended.end == END_DONE || ended.end == END_FAILED
               ? ended
               : (struct stock_ended){END_FAILED, HF_CONTENDED};
}

static bool is_for_some(const struct stock_flow *flow,
                        const struct stock_ended *ended, size_t count)
{
    if (ended->end == END_AGAIN)
        return flow->asked.batch.stale;
    if (ended->end == END_OVERDUE)
        return true;
    return ended->end == END_FAILED && ended->status == HF_CONTENDED &&
           count > 1;
}

void hf_stock_flow_change(struct stock_flow *flow,
                          struct hf_stock_request *const *requests,
                          size_t count)
{
    gather(flow, requests, count);
    struct stock_ended ended = change(flow);
    if (is_for_some(flow, &ended, count))
        ended = change_the_rest(flow);
    /* What the database refuses may be one request's fault. */
    if (ended.end == END_FAILED && ended.status == HF_FAILED && count > 1)
        for (size_t i = 0; i < count; i++)
            hf_stock_flow_change(flow, &requests[i], 1);
    else
        answer(flow, requests, count,
               ended.end == END_DONE ? HF_OK : ended.status);
    hf_stock_flow_clear(&flow->asked);
    hf_stock_flow_clear(&flow->freed);
}

/* ---- The sweep. ---- */

/* A transaction that has locked what is overdue. */
static struct stock_ended find_due(struct stock_flow *flow, uint32_t max)
{
    struct stock_batch *batch = &flow->asked.batch;
    struct stock_conn *conn = &flow->conn;
    enum hf_status status = hf_stock_flow_connect(flow);

    hf_stock_batch_clear(batch);
    if (status != HF_OK)
        return hf_stock_flow_judge(flow, status);
    hf_stock_trip_begin(conn);
    hf_stock_trip_step(conn, SQL_BEGIN);
    hf_stock_trip_step(conn, SQL_DUE);
    hf_stock_trip_number(conn, max);
    status = hf_stock_trip_send(conn);
    if (status != HF_OK)
        return hf_stock_flow_judge(flow, status);
    PQclear(flow->overdue);
    flow->overdue = hf_stock_trip_keep(conn, 1);
    for (int i = 0; i < PQntuples(flow->overdue); i++)
        hf_stock_batch_add_own(batch, STOCK_EXPIRE,
                               hf_postgres_text(flow->overdue, i, 0));
    return (struct stock_ended){END_DONE, HF_OK};
}

/* The reservations are locked before their products, against the order: so it
 * waits for neither. */
static struct stock_ended sweep(struct stock_flow *flow, uint32_t max)
{
    struct stock_ended ended = find_due(flow, max);

    if (ended.end != END_DONE || PQntuples(flow->overdue) == 0) {
        hf_stock_flow_roll_back(flow);
        return ended;
    }
    ended = hf_stock_flow_attempt(flow, &flow->asked, SQL_LOCK_FREE, true);
    return ended.end == END_UNKNOWN ? hf_stock_flow_find_out(flow) : ended;
}

enum hf_status hf_stock_flow_sweep(struct stock_flow *flow, uint32_t max,
                                   uint32_t *count)
{
    struct stock_ended ended;
    struct tries tries;

    begin_tries(&tries, LOCK_AGAIN_MAX);
    do {
        ended = sweep(flow, max);
    } while (may_try(flow, &tries, &ended));
    *count = ended.end == END_DONE ? flow->asked.batch.expired : 0;
    stock_count(&flow->common->expired, *count);
    hf_stock_flow_clear(&flow->asked);
    return ended.end == END_DONE ? HF_OK : ended.status;
}

/* ---- Questions. ---- */

void hf_stock_flow_read(struct stock_flow *flow,
                        struct hf_stock_request *const *requests, size_t count)
{
    struct stock_ended ended;
    struct tries tries;

    gather(flow, requests, count);
    begin_tries(&tries, LOCK_AGAIN_MAX);
    do {
        ended = hf_stock_flow_look(flow);
    } while (may_try(flow, &tries, &ended));
    answer(flow, requests, count, ended.end == END_DONE ? HF_OK : ended.status);
    hf_stock_flow_clear(&flow->asked);
}
