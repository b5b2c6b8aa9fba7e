/* stock.c - the calls of a stock, whatever stands behind it.
 *
 * Each call is a request that is submitted and waited for. What is wrong
 * whatever the stock has in it is refused here, so that each kind is asked only
 * what it can decide.
 */
#include <assert.h>
#include <string.h>

#include "locks/stock_state.h"
#include "sync/bell.h"

/* ---- What is wrong in any stock. ---- */

static bool fits(const char *text, size_t max)
{
    return text != NULL && *text != '\0' && strnlen(text, max + 1) <= max;
}

static bool items_fit(const struct hf_stock_item *items, size_t count)
{
    if (items == NULL || count == 0)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!fits(items[i].sku, HF_STOCK_SKU_MAX) || items[i].quantity == 0 ||
            items[i].quantity > HF_STOCK_UNITS_MAX)
            return false;
    return true;
}

static bool is_right(const struct hf_stock_request *request)
{
    const char *name = request->name;

    switch (request->call) {
    case HF_STOCK_SET:
        return fits(name, HF_STOCK_SKU_MAX) &&
               request->total <= HF_STOCK_UNITS_MAX;
    case HF_STOCK_ADD:
    case HF_STOCK_REMOVE:
    case HF_STOCK_GET:
        return fits(name, HF_STOCK_SKU_MAX);
    case HF_STOCK_RESERVE:
        return fits(name, HF_STOCK_ID_MAX) &&
               request->ttl_ns <= STOCK_TTL_MAX_NS &&
               items_fit(request->items, request->count);
    case HF_STOCK_EXTEND:
        return fits(name, HF_STOCK_ID_MAX) && request->ttl_ns > 0 &&
               request->ttl_ns <= STOCK_TTL_MAX_NS;
    case HF_STOCK_CONFIRM:
    case HF_STOCK_CANCEL:
    case HF_STOCK_LOOK:
        return fits(name, HF_STOCK_ID_MAX);
    }
    return false;
}

/* ---- Many, and one. ---- */

static void refuse(struct hf_stock_request *request)
{
    request->status = HF_INVALID;
    request->done(request);
}

enum hf_status hf_stock_submit(struct hf_stock *stock,
                               struct hf_stock_request *requests, size_t count)
{
    if (stock == NULL || requests == NULL)
        return HF_INVALID;
    for (size_t i = 0; i < count; i++)
        if (requests[i].done == NULL)
            return HF_INVALID;
    /* As long as one of them is not answered all of them are there. */
    for (size_t i = 0, end; i < count; i = end) {
        end = i;
        while (end < count && is_right(&requests[end]))
            end++;
        if (end > i)
            stock->kind->run(stock, &requests[i], end - i);
        else
            refuse(&requests[end++]);
    }
    return HF_OK;
}

static void seen_on_return(struct hf_stock_request *request)
{
    (void)request;
}

static void ring(struct hf_stock_request *request)
{
    hf_bell_ring(request->context);
}

static enum hf_status ask(struct hf_stock *stock,
                          struct hf_stock_request *request)
{
    struct hf_event bell;

    if (stock == NULL || !is_right(request))
        return HF_INVALID;
    request->done = seen_on_return;
    if (!stock->kind->at_once) {
        hf_event_init(&bell);
        request->context = &bell;
        request->done = ring;
    }
    stock->kind->run(stock, request, 1);
    if (!stock->kind->at_once)
        (void)hf_bell_wait(&bell, NULL, HF_FOREVER);
    return request->status;
}

static enum hf_status ask_answer(struct hf_stock *stock,
                                 struct hf_stock_request *request,
                                 struct hf_stock_answer *answer)
{
    enum hf_status status = ask(stock, request);

    if (answer != NULL && status != HF_INVALID)
        *answer = request->answer;
    return status;
}

void hf_stock_close(struct hf_stock *stock)
{
    if (stock == NULL)
        return;
    hf_listed_remove(&stock->listed);
    stock->kind->close(stock);
}

/* ---- The calls. ---- */

enum hf_status hf_stock_set(struct hf_stock *stock, const char *sku,
                            uint64_t total)
{
    struct hf_stock_request request = {
        .call = HF_STOCK_SET, .name = sku, .total = total};

    return ask(stock, &request);
}

enum hf_status hf_stock_add(struct hf_stock *stock, const char *sku,
                            int64_t units)
{
    struct hf_stock_request request = {
        .call = HF_STOCK_ADD, .name = sku, .units = units};

    return ask(stock, &request);
}

enum hf_status hf_stock_remove(struct hf_stock *stock, const char *sku)
{
    struct hf_stock_request request = {.call = HF_STOCK_REMOVE, .name = sku};

    return ask(stock, &request);
}

enum hf_status hf_stock_get(struct hf_stock *stock, const char *sku,
                            struct hf_stock_product *product)
{
    struct hf_stock_request request = {.call = HF_STOCK_GET, .name = sku};

    if (product == NULL)
        return HF_INVALID;
    enum hf_status status = ask(stock, &request);
    if (status == HF_OK)
        *product = request.product;
    return status;
}

enum hf_status hf_stock_reserve(struct hf_stock *stock, const char *id,
                                const struct hf_stock_item *items, size_t count,
                                uint64_t ttl_ns, struct hf_stock_answer *answer)
{
    struct hf_stock_request request = {.call = HF_STOCK_RESERVE,
                                       .name = id,
                                       .items = items,
                                       .count = count,
                                       .ttl_ns = ttl_ns};

    return ask_answer(stock, &request, answer);
}

enum hf_status hf_stock_confirm(struct hf_stock *stock, const char *id,
                                struct hf_stock_answer *answer)
{
    struct hf_stock_request request = {.call = HF_STOCK_CONFIRM, .name = id};

    return ask_answer(stock, &request, answer);
}

enum hf_status hf_stock_cancel(struct hf_stock *stock, const char *id,
                               struct hf_stock_answer *answer)
{
    struct hf_stock_request request = {.call = HF_STOCK_CANCEL, .name = id};

    return ask_answer(stock, &request, answer);
}

enum hf_status hf_stock_extend(struct hf_stock *stock, const char *id,
                               uint64_t ttl_ns, struct hf_stock_answer *answer)
{
    struct hf_stock_request request = {
        .call = HF_STOCK_EXTEND, .name = id, .ttl_ns = ttl_ns};

    return ask_answer(stock, &request, answer);
}

enum hf_status hf_stock_look(struct hf_stock *stock, const char *id,
                             struct hf_stock_answer *answer)
{
    struct hf_stock_request request = {.call = HF_STOCK_LOOK, .name = id};

    if (answer == NULL)
        return HF_INVALID;
    return ask_answer(stock, &request, answer);
}
