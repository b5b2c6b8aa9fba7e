/* stock_engine.c - stock for the threads of one process: the engine under a
 * mutex.
 *
 * The engine decides; what is here makes commands of calls and statuses of
 * answers. Nobody waits, so there is nobody to be told when time passes: each
 * call lets what is due fall due first.
 */
#include <assert.h>

#include "base/memory.h"
#include "hold/engine.h"
#include "locks/stock_state.h"
#include "sync/mutex.h"

#define NS_PER_US 1000u

_Static_assert(HF_STOCK_SKU_MAX == HOLD_SKU_MAX &&
                   HF_STOCK_ID_MAX == HOLD_ID_MAX &&
                   HF_STOCK_ITEMS_MAX == HOLD_ITEMS_MAX &&
                   HF_STOCK_UNITS_MAX == HOLD_STOCK_MAX,
               "the bounds of stock.h are the engine's");

struct stock_engine { /* (i) immutable after open  (m) under mutex */
    struct hf_stock stock;
    const struct hf_clock *clock; /* (i) */
    uint64_t reservations_max;    /* (i) */
    struct hf_mutex mutex;
    uint64_t now_us;             /* (m) of the call under way */
    struct hold_engine *engine;  /* (m) */
    struct hold_command command; /* (m) */
};

/* ---- Commands. ---- */

static void lock(struct stock_engine *stock)
{
    hf_mutex_lock(&stock->mutex);
    /* Under the mutex, so that time does not go back for the engine. */
    stock->now_us = hf_clock_now_ns(stock->clock) / NS_PER_US;
}

static struct hold_command *command(struct stock_engine *stock,
                                    enum hold_kind kind, const char *name)
{
    struct hold_command *c = &stock->command;

    assert(hf_mutex_held(&stock->mutex));
    hold_command_clear(c);
    c->kind = kind;
    c->name = hf_bytes_text(name);
    c->now_us = stock->now_us;
    return c;
}

/* Carries the command out. NULL: there is no memory, and nothing has changed.
 */
static const struct hold_out *run(struct stock_engine *stock)
{
    const struct hold_out *out;

    if (hold_prepare(stock->engine, &stock->command) != HF_OK)
        return NULL;
    do {
        out = hold_run(stock->engine, &stock->command);
    } while (out->code == HOLD_AGAIN);
    return out;
}

/* What is over ends: for questions. */
static void pass_time(struct stock_engine *stock)
{
    if (hold_due_us(stock->engine) > stock->now_us)
        return;
    command(stock, HOLD_TICK, "")->amount = 1;
    (void)run(stock); /* which needs no memory */
}

static const struct hold_out *ask(struct stock_engine *stock)
{
    const struct hold_out *out = hold_ask(stock->engine, &stock->command);

    assert(out != NULL); /* nothing is due */
    return out;
}

/* ---- Products. ---- */

/* What the answer to a change of a product means. */
static enum hf_status judge_product(const struct hold_out *out)
{
    if (out == NULL)
        return HF_NOMEM;
    switch (out->code) {
    case HOLD_OK:
        return HF_OK;
    case HOLD_SHORT:
        return HF_EMPTY;
    case HOLD_STATE:
        return HF_EXISTS;
    case HOLD_NOTFOUND:
        return HF_NOTFOUND;
    default:
        assert(out->code == HOLD_OVERLOADED);
        return HF_FULL;
    }
}

static enum hf_status change(struct stock_engine *stock, enum hold_kind kind,
                             const char *sku, int64_t amount)
{
    command(stock, kind, sku)->amount = amount;
    return judge_product(run(stock));
}

static enum hf_status get(struct stock_engine *stock,
                          struct hf_stock_request *request)
{
    pass_time(stock);
    struct hold_command *c = command(stock, HOLD_STOCK_GET, "");
    c->items[c->item_count++] =
        (struct hold_item){.sku = hf_bytes_text(request->name)};
    const struct hold_out *out = ask(stock);
    enum hf_status status = judge_product(out);
    if (status == HF_OK)
        request->product = (struct hf_stock_product){
            .total = (uint64_t)reply_get_number(out->body, FIELD_TOTAL),
            .available = (uint64_t)reply_get_number(out->body, FIELD_AVAILABLE),
            .reserved = (uint64_t)reply_get_number(out->body, FIELD_RESERVED),
            .sold = (uint64_t)reply_get_number(out->body, FIELD_SOLD),
            .version = (uint64_t)reply_get_number(out->body, FIELD_VERSION),
        };
    return status;
}

/* ---- Reservations. ---- */

static enum hf_stock_state state_of(struct hf_bytes status)
{
    static const char *const names[] = {"", "PENDING", "CONFIRMED", "CANCELLED",
                                        "EXPIRED"};

    for (unsigned i = HF_STOCK_PENDING; i <= HF_STOCK_EXPIRED; i++)
        if (hf_bytes_equal(status, hf_bytes_text(names[i])))
            return (enum hf_stock_state)i;
    return HF_STOCK_NONE;
}

/* What is short, by the caller's own text. */
static void tell_short(struct hf_bytes body, const struct hf_stock_item *items,
                       size_t count, struct hf_stock_answer *answer)
{
    struct hf_bytes sku = reply_get_text(body, FIELD_SKU);

    for (size_t i = 0; i < count && answer->sku == NULL; i++)
        if (hf_bytes_equal(sku, hf_bytes_text(items[i].sku)))
            answer->sku = items[i].sku;
    answer->requested = (uint64_t)reply_get_number(body, FIELD_REQUESTED);
    answer->available = (uint64_t)reply_get_number(body, FIELD_AVAILABLE);
}

/* What the answer about a reservation means; writes what it tells. */
static enum hf_status judge(const struct hold_out *out,
                            struct hf_stock_answer *answer)
{
    *answer = (struct hf_stock_answer){.state = HF_STOCK_NONE};
    if (out == NULL)
        return HF_NOMEM;
    answer->state = state_of(reply_get_text(out->body, FIELD_STATUS));
    switch (out->code) {
    case HOLD_OK:
        answer->left_ns =
            (uint64_t)reply_get_number(out->body, FIELD_EXPIRES_MS) *
            HF_NS_PER_MS;
        return HF_OK;
    case HOLD_SHORT:
        return HF_EMPTY;
    case HOLD_STATE:
        return HF_CLOSED;
    case HOLD_EXPIRED:
        answer->state = HF_STOCK_EXPIRED;
        return HF_TIMEOUT;
    case HOLD_NOTFOUND:
        return HF_NOTFOUND;
    case HOLD_CONFLICT:
        answer->state = HF_STOCK_PENDING;
        return HF_EXISTS;
    default:
        assert(out->code == HOLD_OVERLOADED);
        return HF_FULL;
    }
}

static enum hf_status fill_items(struct hold_command *c,
                                 const struct hf_stock_item *items,
                                 size_t count)
{
    enum hf_status status = HF_OK;

    for (size_t i = 0; i < count && status == HF_OK; i++)
        status =
            hold_add_item(c, hf_bytes_text(items[i].sku), items[i].quantity);
    return status == HF_OK ? HF_OK : HF_INVALID;
}

static enum hf_status reserve(struct stock_engine *stock,
                              struct hf_stock_request *request)
{
    struct hold_command *c = command(stock, HOLD_RESERVE, request->name);

    c->ttl_ms = stock_ms_of(request->ttl_ns);
    enum hf_status status = fill_items(c, request->items, request->count);
    if (status != HF_OK)
        return status;
    const struct hold_out *out = run(stock);
    status = judge(out, &request->answer);
    if (status == HF_EMPTY)
        tell_short(out->body, request->items, request->count, &request->answer);
    return status;
}

/* A command about a reservation that is there. */
static enum hf_status about(struct stock_engine *stock, enum hold_kind kind,
                            struct hf_stock_request *request)
{
    uint64_t ttl_ms = kind == HOLD_EXTEND ? stock_ms_of(request->ttl_ns) : 0;

    command(stock, kind, request->name)->ttl_ms = ttl_ms;
    return judge(run(stock), &request->answer);
}

static enum hf_status look(struct stock_engine *stock,
                           struct hf_stock_request *request)
{
    pass_time(stock);
    (void)command(stock, HOLD_RESERVATION, request->name);
    return judge(ask(stock), &request->answer);
}

/* ---- Requests. ---- */

static enum hf_status carry_out(struct stock_engine *stock,
                                struct hf_stock_request *request)
{
    switch (request->call) {
    case HF_STOCK_SET:
        return change(stock, HOLD_STOCK_SET, request->name,
                      (int64_t)request->total);
    case HF_STOCK_ADD:
        return change(stock, HOLD_STOCK_ADD, request->name, request->units);
    case HF_STOCK_REMOVE:
        return change(stock, HOLD_STOCK_DEL, request->name, 0);
    case HF_STOCK_GET:
        return get(stock, request);
    case HF_STOCK_RESERVE:
        return reserve(stock, request);
    case HF_STOCK_CONFIRM:
        return about(stock, HOLD_CONFIRM, request);
    case HF_STOCK_CANCEL:
        return about(stock, HOLD_CANCEL, request);
    case HF_STOCK_EXTEND:
        return about(stock, HOLD_EXTEND, request);
    case HF_STOCK_LOOK:
        break;
    }
    return look(stock, request);
}

static void run_all(struct hf_stock *handle, struct hf_stock_request *requests,
                    size_t count)
{
    struct stock_engine *stock = (struct stock_engine *)handle;

    lock(stock);
    for (size_t i = 0; i < count; i++)
        requests[i].status = carry_out(stock, &requests[i]);
    hf_mutex_unlock(&stock->mutex);
    for (size_t i = 0; i < count; i++)
        requests[i].done(&requests[i]);
}

static void close_engine(struct hf_stock *handle)
{
    struct stock_engine *stock = (struct stock_engine *)handle;

    hold_free(stock->engine);
    hf_free(stock);
}

static const struct stock_kind engine_kind = {
    .run = run_all, .close = close_engine, .at_once = true};

/* ---- Opening. ---- */

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct stock_engine *stock = (struct stock_engine *)(uintptr_t)listed;
    struct hold_counts counts;

    hf_mutex_lock(&stock->mutex);
    hold_count(stock->engine, &counts);
    hf_mutex_unlock(&stock->mutex);
    row->depth = counts.pending;
    row->capacity = stock->reservations_max;
}

static void bound(struct stock_engine *stock, const char *name, uint64_t value)
{
    if (value == 0)
        return;
    struct hold_command *c = command(stock, HOLD_BOUNDS, "");
    c->items[c->item_count++] =
        (struct hold_item){.sku = hf_bytes_text(name), .quantity = value};
    (void)run(stock); /* which needs no memory */
}

static void set_bounds(struct stock_engine *stock,
                       const struct hf_stock_opts *opts)
{
    lock(stock);
    bound(stock, "products_max", opts->products_max);
    bound(stock, "reservations_max", opts->reservations_max);
    bound(stock, "reserve_ttl_ms", stock_ms_of(opts->ttl_ns));
    bound(stock, "ended_keep_ms", stock_ms_of(opts->ended_keep_ns));
    stock->reservations_max = hold_get_bounds(stock->engine).reservations_max;
    hf_mutex_unlock(&stock->mutex);
}

static bool is_within(const char *name, uint64_t value)
{
    for (size_t i = 0; i < HOLD_BOUNDS_COUNT; i++)
        if (strcmp(hold_bound_rows[i].name, name) == 0)
            return value <= hold_bound_rows[i].max;
    return false;
}

enum hf_status hf_stock_open(struct hf_stock **out,
                             const struct hf_stock_opts *opts)
{
    static const struct hf_stock_opts defaults = {.name = NULL};

    if (opts == NULL)
        opts = &defaults;
    if (out == NULL || !is_within("products_max", opts->products_max) ||
        !is_within("reservations_max", opts->reservations_max) ||
        opts->ttl_ns > STOCK_TTL_MAX_NS ||
        opts->ended_keep_ns > STOCK_TTL_MAX_NS)
        return HF_INVALID;
    struct stock_engine *stock = hf_alloc_zeroed(sizeof *stock);
    if (stock == NULL)
        return HF_NOMEM;
    stock->engine = hold_new(hf_hash_seed((struct hf_hash_seed){{0, 0}}));
    if (stock->engine == NULL) {
        hf_free(stock);
        return HF_NOMEM;
    }
    stock->stock.kind = &engine_kind;
    stock->clock = opts->clock;
    set_bounds(stock, opts);
    hf_listed_add(&stock->stock.listed, "stock", opts->name, fill);
    *out = &stock->stock;
    return HF_OK;
}
