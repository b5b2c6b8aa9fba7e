/* stock_postgres.c - the stock in PostgreSQL: its queue, its threads.
 *
 *   run() --> changes --.                 each takes what is there, of one of
 *         --> reads ----+--> worker 1..n  the two lists in turns, and carries
 *                                         it out together
 *
 * Questions lock nothing, so they go apart from changes.
 */
#include "holdfast/stock_postgres.h"

#include <ctype.h>

#include "base/memory.h"
#include "base/thread.h"
#include "locks/stock_state.h"
#include "stores/stock_flow.h"
#include "sync/mutex.h"

#define CONNECTIONS_USUAL 2u
#define BATCH_USUAL       128u
#define ITEMS_MAX         4096u /* of a batch, unless one request has more */
#define TTL_USUAL_NS      UINT64_C(600000000000)
#define TIMEOUT_USUAL     10000u
#define LOCK_USUAL        2000u
#define SCHEMA_BYTES      64

enum { CHANGES, READS, LISTS };

struct list {
    struct hf_stock_request *first;
    struct hf_stock_request **last; /* where the next one goes */
};

struct worker {
    struct stock_postgres *stock;
    struct hf_thread thread;
    struct stock_flow flow;
    struct hf_stock_request **taken; /* batch_max */
    size_t taken_count;
    int taken_of; /* which list */
};

/* (i) immutable after open  (m) under mutex  (s) under sweep_mutex */
struct stock_postgres {
    struct hf_stock stock;
    struct stock_common common;
    uint32_t connections;      /* (i) */
    uint32_t batch_max;        /* (i) */
    int64_t ttl_us;            /* (i) */
    uint32_t lock_timeout_ms;  /* (i) */
    char *conninfo;            /* (i) */
    char schema[SCHEMA_BYTES]; /* (i) */
    struct worker *workers;    /* (i) */
    uint32_t started;          /* (i) workers with a thread */
    struct hf_mutex sweep_mutex;
    struct stock_flow sweeper; /* (s) */
    struct hf_mutex mutex;
    struct hf_event event;    /* something to take, or closing */
    struct list lists[LISTS]; /* (m) */
    uint64_t queued;          /* (m) */
    bool closing;             /* (m) */
};

/* ---- The queue. ---- */

static bool is_read(const struct hf_stock_request *request)
{
    return request->call == HF_STOCK_GET || request->call == HF_STOCK_LOOK;
}

static void run_all(struct hf_stock *handle, struct hf_stock_request *requests,
                    size_t count)
{
    struct stock_postgres *stock = (struct stock_postgres *)handle;

    hf_mutex_lock(&stock->mutex);
    for (size_t i = 0; i < count; i++) {
        struct list *list = &stock->lists[is_read(&requests[i])];
        requests[i].next = NULL;
        *list->last = &requests[i];
        list->last = &requests[i].next;
    }
    stock->queued += count;
    hf_mutex_unlock(&stock->mutex);
    /* From here on they may be answered and gone. */
    if (count > stock->batch_max)
        hf_event_wake_all(&stock->event);
    else
        hf_event_wake(&stock->event, 1);
}

static void take_from(struct worker *worker, struct list *list)
{
    struct stock_postgres *stock = worker->stock;
    size_t items = 0;

    while (list->first != NULL && worker->taken_count < stock->batch_max) {
        struct hf_stock_request *request = list->first;
        size_t more = request->call == HF_STOCK_RESERVE ? request->count : 1;
        if (worker->taken_count > 0 && items + more > ITEMS_MAX)
            break;
        items += more;
        list->first = request->next;
        worker->taken[worker->taken_count++] = request;
    }
    if (list->first == NULL)
        list->last = &list->first;
    stock->queued -= worker->taken_count;
}

/* HF_PENDING: there is nothing; HF_CLOSED: and nothing comes. */
static enum hf_status take(void *context)
{
    struct worker *worker = context;
    struct stock_postgres *stock = worker->stock;
    enum hf_status status = HF_OK;

    worker->taken_count = 0;
    worker->taken_of = !worker->taken_of;
    hf_mutex_lock(&stock->mutex);
    if (stock->lists[worker->taken_of].first == NULL)
        worker->taken_of = !worker->taken_of;
    if (stock->lists[worker->taken_of].first != NULL)
        take_from(worker, &stock->lists[worker->taken_of]);
    else
        status = stock->closing ? HF_CLOSED : HF_PENDING;
    bool is_more = stock->queued > 0;
    hf_mutex_unlock(&stock->mutex);
    if (status == HF_OK && is_more)
        hf_event_wake(&stock->event, 1);
    return status;
}

static void work(void *context)
{
    struct worker *worker = context;

    while (hf_event_until(&worker->stock->event, take, worker, NULL,
                          HF_FOREVER) == HF_OK)
        if (worker->taken_of == READS)
            hf_stock_flow_read(&worker->flow, worker->taken,
                               worker->taken_count);
        else
            hf_stock_flow_change(&worker->flow, worker->taken,
                                 worker->taken_count);
}

/* ---- Closing. ---- */

static void free_all(struct stock_postgres *stock)
{
    for (uint32_t i = 0; stock->workers != NULL && i < stock->connections;
         i++) {
        hf_stock_flow_destroy(&stock->workers[i].flow);
        hf_free(stock->workers[i].taken);
    }
    hf_stock_flow_destroy(&stock->sweeper);
    hf_free(stock->workers);
    hf_free(stock->conninfo);
    hf_free(stock);
}

static void close_stock(struct hf_stock *handle)
{
    struct stock_postgres *stock = (struct stock_postgres *)handle;

    hf_mutex_lock(&stock->mutex);
    stock->closing = true;
    hf_mutex_unlock(&stock->mutex);
    hf_event_wake_all(&stock->event);
    for (uint32_t i = 0; i < stock->started; i++)
        hf_thread_join(&stock->workers[i].thread);
    free_all(stock);
}

static const struct stock_kind postgres_kind = {.run = run_all,
                                                .close = close_stock};

/* ---- Opening. ---- */

static bool is_name(const char *text)
{
    size_t len = strnlen(text, SCHEMA_BYTES);

    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '_')
            return false;
    return len > 0 && len < SCHEMA_BYTES;
}

static bool are_right(const struct hf_stock_postgres_opts *opts)
{
    return opts->conninfo != NULL &&
           (opts->schema == NULL || is_name(opts->schema)) &&
           (unsigned)opts->strategy <= HF_STOCK_ATOMIC &&
           opts->connections <= HF_STOCK_CONNECTIONS_MAX &&
           opts->batch_max <= HF_STOCK_BATCH_MAX &&
           opts->ttl_ns <= STOCK_TTL_MAX_NS && opts->timeout_ms <= INT32_MAX &&
           opts->lock_timeout_ms <= INT32_MAX;
}

static uint32_t or_usual(uint32_t value, uint32_t usual)
{
    return value == 0 ? usual : value;
}

static void set_options(struct stock_postgres *stock,
                        const struct hf_stock_postgres_opts *opts)
{
    uint64_t ttl_ns = opts->ttl_ns == 0 ? TTL_USUAL_NS : opts->ttl_ns;

    stock->stock.kind = &postgres_kind;
    stock->common = (struct stock_common){
        .strategy = opts->strategy,
        .timeout_ms = or_usual(opts->timeout_ms, TIMEOUT_USUAL),
        .outbox = opts->outbox,
        .failed = opts->failed,
        .context = opts->context,
    };
    stock->connections = or_usual(opts->connections, CONNECTIONS_USUAL);
    stock->batch_max = or_usual(opts->batch_max, BATCH_USUAL);
    stock->lock_timeout_ms = or_usual(opts->lock_timeout_ms, LOCK_USUAL);
    stock->ttl_us = (int64_t)stock_ms_of(ttl_ns) * 1000;
    (void)snprintf(stock->schema, sizeof stock->schema, "%s",
                   opts->schema == NULL ? "holdfast" : opts->schema);
    for (int i = 0; i < LISTS; i++)
        stock->lists[i].last = &stock->lists[i].first;
}

static void set_up_flow(struct stock_postgres *stock, struct stock_flow *flow)
{
    hf_stock_flow_init(flow, &stock->common, stock->ttl_us);
    flow->conn.schema = stock->schema;
    flow->conn.lock_timeout_ms = stock->lock_timeout_ms;
    flow->conn.link = (struct store_link){
        .conninfo = stock->conninfo, .timeout_ms = stock->common.timeout_ms};
}

static enum hf_status make_workers(struct stock_postgres *stock,
                                   const char *conninfo)
{
    size_t len = strlen(conninfo);

    stock->conninfo = hf_alloc(len + 1);
    stock->workers =
        hf_alloc_zeroed(stock->connections * sizeof *stock->workers);
    if (stock->conninfo == NULL || stock->workers == NULL)
        return HF_NOMEM;
    memcpy(stock->conninfo, conninfo, len + 1);
    set_up_flow(stock, &stock->sweeper);
    for (uint32_t i = 0; i < stock->connections; i++) {
        struct worker *worker = &stock->workers[i];
        worker->stock = stock;
        set_up_flow(stock, &worker->flow);
        worker->taken =
            hf_alloc(stock->batch_max * sizeof(struct hf_stock_request *));
        if (worker->taken == NULL)
            return HF_NOMEM;
    }
    return HF_OK;
}

/* The tables, and one connection: are they such that it can work with them? */
static enum hf_status make_tables(struct stock_postgres *stock)
{
    struct store_link link = {.conninfo = stock->conninfo,
                              .timeout_ms = stock->common.timeout_ms};
    struct store_link *told = &link;
    enum hf_status status = hf_stock_migrate(&link, stock->schema);

    if (status == HF_OK) {
        told = &stock->workers[0].flow.conn.link;
        status = hf_stock_flow_connect(&stock->workers[0].flow);
    }
    if (status != HF_OK && status != HF_NOMEM && status != HF_IO)
        status = HF_FAILED;
    if (status != HF_OK && stock->common.failed != NULL)
        stock->common.failed(stock->common.context, status, told->text);
    hf_store_link_destroy(&link);
    return status;
}

static enum hf_status start(struct stock_postgres *stock)
{
    for (; stock->started < stock->connections; stock->started++) {
        struct worker *worker = &stock->workers[stock->started];
        enum hf_status status =
            hf_thread_start(&worker->thread, "hf-stock", work, worker);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct stock_postgres *stock = (struct stock_postgres *)(uintptr_t)listed;

    hf_mutex_lock(&stock->mutex);
    row->depth = stock->queued;
    hf_mutex_unlock(&stock->mutex);
}

enum hf_status hf_stock_postgres_open(struct hf_stock **out,
                                      const struct hf_stock_postgres_opts *opts)
{
    if (out == NULL || opts == NULL || !are_right(opts))
        return HF_INVALID;
    struct stock_postgres *stock = hf_alloc_zeroed(sizeof *stock);
    if (stock == NULL)
        return HF_NOMEM;
    set_options(stock, opts);
    enum hf_status status = make_workers(stock, opts->conninfo);
    if (status == HF_OK)
        status = make_tables(stock);
    if (status == HF_OK)
        status = start(stock);
    if (status != HF_OK) {
        close_stock(&stock->stock);
        return status;
    }
    hf_listed_add(&stock->stock.listed, "stock", opts->name, fill);
    *out = &stock->stock;
    return HF_OK;
}

/* ---- What only this kind has. ---- */

enum hf_status hf_stock_postgres_sweep(struct hf_stock *handle, uint32_t max,
                                       uint32_t *count)
{
    struct stock_postgres *stock = (struct stock_postgres *)handle;
    uint32_t unread;

    if (handle == NULL || handle->kind != &postgres_kind ||
        max > HF_STOCK_SWEEP_MAX)
        return HF_INVALID;
    hf_mutex_lock(&stock->sweep_mutex);
    enum hf_status status =
        hf_stock_flow_sweep(&stock->sweeper, or_usual(max, HF_STOCK_SWEEP_MAX),
                            count == NULL ? &unread : count);
    hf_mutex_unlock(&stock->sweep_mutex);
    return status;
}

static uint64_t figure(const struct hf_atomic_u64 *at)
{
    return hf_u64_load(at, __ATOMIC_RELAXED); /* a figure */
}

void hf_stock_postgres_stats(const struct hf_stock *handle,
                             struct hf_stock_postgres_stats *out)
{
    if (out == NULL)
        return;
    *out = (struct hf_stock_postgres_stats){0};
    if (handle == NULL || handle->kind != &postgres_kind)
        return;
    const struct stock_common *common =
        &((const struct stock_postgres *)handle)->common;
    *out = (struct hf_stock_postgres_stats){
        .requests = figure(&common->requests),
        .batches = figure(&common->batches),
        .retries = figure(&common->retries),
        .contended = figure(&common->contended),
        .expired = figure(&common->expired),
        .unknown = figure(&common->unknown),
        .reconnects = figure(&common->reconnects),
    };
}
