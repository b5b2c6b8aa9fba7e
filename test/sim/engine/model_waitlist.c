/* model_waitlist.c - who waits for stock, in the model. */
#include <assert.h>

#include "base/memory.h"
#include "sim/engine/model.h"

/* Places in a queue are counted up to here. */
#define POSITION_MAX 1000u

struct model_buyer *model_find_buyer(struct model *model, struct hf_bytes id)
{
    for (size_t i = 0; i < model->buyer_count; i++) {
        if (model_is(&model->buyers[i].id, id))
            return &model->buyers[i];
    }
    return NULL;
}

struct model_buyer *model_find_buyer_ticket(struct model *model,
                                            uint64_t ticket)
{
    for (size_t i = 0; i < model->buyer_count; i++) {
        if (model->buyers[i].ticket == ticket && !model->buyers[i].joined)
            return &model->buyers[i];
    }
    return NULL;
}

static bool wants(const struct model_buyer *buyer, struct hf_bytes sku)
{
    for (size_t i = 0; i < buyer->item_count; i++) {
        if (model_is(&buyer->items[i].sku, sku))
            return true;
    }
    return false;
}

size_t model_count_buyers(const struct model *model, struct hf_bytes sku)
{
    size_t count = 0;

    for (size_t i = 0; i < model->buyer_count; i++)
        count += wants(&model->buyers[i], sku);
    return count;
}

/* Is `a` before `b` in every queue that both are in? */
static bool is_before(const struct model_buyer *a, const struct model_buyer *b)
{
    if (a->priority != b->priority)
        return a->priority < b->priority;
    return a->order < b->order;
}

/* How many are before it in the queue of a product. */
static size_t count_before(const struct model *model,
                           const struct model_buyer *buyer, struct hf_bytes sku)
{
    size_t count = 0;

    for (size_t i = 0; i < model->buyer_count; i++) {
        const struct model_buyer *other = &model->buyers[i];
        count += wants(other, sku) && is_before(other, buyer);
    }
    return count;
}

static int64_t free_units(struct model *model, struct hf_bytes sku)
{
    const struct model_product *p = model_find_product(model, sku);

    return p->total - p->reserved - p->sold;
}

bool model_is_short(struct model *model, const struct hold_command *c,
                    struct hf_bytes sku, uint64_t quantity)
{
    struct model_buyer new = {.order = UINT64_MAX,
                              .priority = hold_priority(c)};
    bool joins = c->kind == HOLD_WAITLIST_JOIN;
    bool behind = c->wait_ms == 0 && !joins
                      ? model_count_buyers(model, sku) > 0
                      : count_before(model, &new, sku) > 0;

    return behind || (uint64_t)free_units(model, sku) < quantity;
}

void model_show_joined(struct model *model, const struct model_buyer *buyer)
{
    struct hf_buf *out = model_reply(model, HOLD_OK);
    size_t before =
        count_before(model, buyer, model_bytes(&buyer->items[0].sku));

    reply_map(out, 3);
    reply_field_text(out, FIELD_ID, model_bytes(&buyer->id));
    reply_field_text(out, FIELD_STATUS, hf_bytes_text("WAITING"));
    reply_field_number(out, FIELD_POSITION,
                       before < POSITION_MAX ? (int64_t)before + 1
                                             : POSITION_MAX);
}

void model_queue_buyer(struct model *model, struct hf_bytes id,
                       const struct hold_command *c)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (model_count_buyers(model, c->items[i].sku) >=
            model->bounds.waiters_max) {
            model_overloaded(model, "waiters-max", model->bounds.waiters_max);
            return;
        }
    }
    if (model_group_is_full(model, c))
        return;
    if (!model_make_room(model)) {
        model_overloaded(model, "reservations-max",
                         model->bounds.reservations_max);
        return;
    }
    assert(model->buyer_count < MODEL_MAX);
    struct model_buyer *buyer = &model->buyers[model->buyer_count++];
    *buyer = (struct model_buyer){
        .id = model_text(id),
        .owner = model_text(c->owner),
        .request = model_text(c->request),
        .group = model_text(c->bundle),
        .ticket = ++model->seq,
        .order = model->seq,
        .queued_us = model->now_us,
        .joined = c->kind == HOLD_WAITLIST_JOIN,
        .ttl_ms = model_ttl_ms(model, c),
        .class = model_class_number(model, c->class),
        .priority = hold_priority(c),
        .item_count = c->item_count,
        .items = hf_alloc((c->item_count + 1) * sizeof *buyer->items),
    };
    if (buyer->items == NULL)
        abort();
    for (uint32_t i = 0; i < c->item_count; i++)
        buyer->items[i] = (struct model_item){model_text(c->items[i].sku),
                                              c->items[i].quantity};
    uint64_t stay_ms = buyer->joined ? c->delay_ms : c->wait_ms;
    buyer->deadline_us =
        model->now_us + (stay_ms > 0 ? stay_ms : HOLD_TTL_MAX_MS) * 1000;
    model->figures[FIGURE_STOCK_QUEUED]++;
    if (buyer->joined) {
        buyer->request.len = 0; /* it is answered */
        model->figures[FIGURE_STOCK_JOINED]++;
        model_show_joined(model, buyer);
        return;
    }
    model_reply(model, HOLD_WAITING);
    model->ticket = buyer->ticket;
}

/* It leaves its queues, and others may be first there; its items are the
 * caller's. */
static struct model_buyer leave(struct model *model, struct model_buyer *buyer)
{
    struct model_buyer left = *buyer;

    model_close_gap(model->buyers, sizeof *buyer, &model->buyer_count,
                    (size_t)(buyer - model->buyers));
    for (size_t i = 0; i < left.item_count; i++)
        model_call_product(model, model_bytes(&left.items[i].sku));
    return left;
}

void model_end_buyer(struct model *model, struct model_buyer *buyer)
{
    struct hf_bytes sku = model_bytes(&buyer->items[0].sku);
    size_t before = count_before(model, buyer, sku);
    struct model_buyer left = leave(model, buyer);

    if (!left.joined) {
        struct hf_buf *out = model_answer(model, HOLD_TIMED_OUT, left.ticket);
        sku = model_bytes(&left.items[0].sku);
        reply_map(out, 4);
        reply_field_text(out, FIELD_SKU, sku);
        reply_field_number(out, FIELD_WAITED_MS,
                           (int64_t)((model->now_us - left.queued_us) / 1000));
        reply_field_number(out, FIELD_WAITING,
                           (int64_t)model_count_buyers(model, sku));
        reply_field_number(out, FIELD_POSITION,
                           before < POSITION_MAX ? (int64_t)before + 1
                                                 : POSITION_MAX);
        if (left.request.len > 0)
            model_store_answer(model, model_bytes(&left.request));
        model->figures[FIGURE_STOCK_TIMEOUT]++;
    }
    hf_free(left.items);
}

void model_drop_buyer(struct model *model, struct model_buyer *buyer)
{
    struct model_buyer left = leave(model, buyer);
    struct model_request *request =
        model_find_request(model, model_bytes(&left.request));

    if (request != NULL && left.request.len > 0)
        model_forget_request(model, request);
    hf_free(left.items);
}

void model_buyer_due(struct model *model, void *buyer)
{
    model_end_buyer(model, buyer);
    model_serve_products(model);
}

void model_restart_waitlist(struct model *model)
{
    for (size_t i = 0; i < model->buyer_count;) {
        if (model->buyers[i].joined)
            i++;
        else
            model_drop_buyer(model, &model->buyers[i]);
    }
    model_serve_products(model);
}

/* Serving: the products that are called, first in, first out. */

void model_call_product(struct model *model, struct hf_bytes sku)
{
    if (model_count_buyers(model, sku) == 0)
        return;
    for (size_t i = 0; i < model->hungry_count; i++) {
        if (model_is(&model->hungry[i], sku))
            return;
    }
    assert(model->hungry_count < MODEL_MAX);
    model->hungry[model->hungry_count++] = model_text(sku);
}

/* First everywhere, and everything is there? */
static bool is_ready(struct model *model, const struct model_buyer *buyer)
{
    if (buyer->deadline_us <= model->now_us)
        return false;
    for (size_t i = 0; i < buyer->item_count; i++) {
        struct hf_bytes sku = model_bytes(&buyer->items[i].sku);
        if (count_before(model, buyer, sku) > 0 ||
            (uint64_t)free_units(model, sku) < buyer->items[i].quantity)
            return false;
    }
    return true;
}

bool model_find_hungry(struct model *model)
{
    for (size_t i = 0; i < model->buyer_count; i++) {
        if (is_ready(model, &model->buyers[i]))
            return true;
    }
    return false;
}

static void serve(struct model *model, struct model_buyer *buyer)
{
    struct model_buyer left = leave(model, buyer);
    const struct model_reservation *r = model_add_reservation(
        model, &left, left.joined ? EVENT_OFFERED : EVENT_RESERVED);

    model->figures[FIGURE_STOCK_OFFERED] += left.joined;
    model->figures[FIGURE_STOCK_SERVED] += !left.joined;
    if (left.joined)
        return;

    model_write_reservation(model, model_answer(model, HOLD_OK, left.ticket), r,
                            0);
    if (left.request.len > 0)
        model_store_answer(model, model_bytes(&left.request));
    model->figures[FIGURE_STOCK_SEVERAL] += left.item_count > 1;
}

void model_serve_products(struct model *model)
{
    while (model->hungry_count > 0 && !model->grouping) {
        struct model_text sku = model->hungry[0];
        struct model_buyer *first = NULL;
        model_close_gap(model->hungry, sizeof sku, &model->hungry_count, 0);
        for (size_t i = 0; i < model->buyer_count; i++) {
            struct model_buyer *buyer = &model->buyers[i];
            if (wants(buyer, model_bytes(&sku)) &&
                (first == NULL || is_before(buyer, first)))
                first = buyer;
        }
        if (first != NULL && is_ready(model, first))
            serve(model, first);
    }
}

static void leave_list(struct model *model, const struct hold_command *c)
{
    const struct model_reservation *r = model_find_reservation(model, c->name);
    struct model_buyer *buyer = model_find_buyer(model, c->name);
    struct hf_buf *out;

    if (r != NULL) {
        out = model_reply(model, HOLD_STATE);
        reply_map(out, 2);
        reply_field_text(out, FIELD_ID, c->name);
        reply_field_text(out, FIELD_STATUS,
                         hf_bytes_text(model_status_name(r->status)));
    } else if (model_find_booking(model, c->name) != NULL) {
        out = model_reply(model, HOLD_STATE);
        reply_map(out, 2);
        reply_field_text(out, FIELD_ID, c->name);
        reply_field_text(out, FIELD_STATUS, hf_bytes_text("BOOKED"));
    } else if (buyer == NULL || !buyer->joined || !wants(buyer, c->note)) {
        out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_ID, c->name);
    } else {
        model_drop_buyer(model, buyer);
        model_serve_products(model);
        model_reply(model, HOLD_OK);
        model->figures[FIGURE_STOCK_LEFT]++;
    }
}

static void write_buyer(const struct model *model, struct hf_buf *out,
                        const struct model_buyer *buyer, struct hf_bytes sku,
                        uint64_t now_us)
{
    uint64_t quantity = 0;

    for (size_t i = 0; i < buyer->item_count; i++) {
        if (model_is(&buyer->items[i].sku, sku))
            quantity = buyer->items[i].quantity;
    }
    reply_map(out, 7);
    reply_field_text(out, FIELD_ID, model_bytes(&buyer->id));
    reply_field_text(out, FIELD_OWNER, model_bytes(&buyer->owner));
    reply_field_number(out, FIELD_QUANTITY, (int64_t)quantity);
    reply_field_number(out, FIELD_PRIORITY, buyer->priority);
    reply_field_number(out, FIELD_WAITED_MS,
                       (int64_t)((now_us - buyer->queued_us) / 1000));
    reply_field_number(out, FIELD_POSITION,
                       (int64_t)count_before(model, buyer, sku) + 1);
    reply_field_number(out, FIELD_CONNECTED, !buyer->joined);
}

void model_list_buyers(struct model *model, const struct hold_command *c,
                       uint64_t now_us)
{
    size_t count = model_count_buyers(model, c->name);
    size_t from = c->cursor > 0 ? c->cursor - 1 : 0;
    size_t most = c->count > 0 ? c->count : HOLD_LIST_MAX;
    struct hf_buf *out;

    if (model_find_product(model, c->name) == NULL) {
        out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_SKU, c->name);
        return;
    }
    out = model_reply(model, HOLD_OK);
    size_t to = from + most < count ? from + most : count;
    size_t shown = to > from ? to - from : 0;
    reply_map(out, 2);
    reply_field(out, FIELD_WAITERS);
    reply_list(out, (uint32_t)shown);
    for (size_t place = from; place < to; place++) {
        for (size_t i = 0; i < model->buyer_count; i++) {
            const struct model_buyer *buyer = &model->buyers[i];
            if (wants(buyer, c->name) &&
                count_before(model, buyer, c->name) == place)
                write_buyer(model, out, buyer, c->name, now_us);
        }
    }
    reply_field_number(out, FIELD_CURSOR, to < count ? (int64_t)to + 1 : 0);
}

static void waitlist_command(struct model *model, const struct hold_command *c)
{
    if (c->kind == HOLD_WAITLIST_JOIN)
        model_reserve(model, c);
    else
        leave_list(model, c);
}

static void clear(struct model *model)
{
    while (model->buyer_count > 0) {
        hf_free(model->buyers[0].items);
        model_close_gap(model->buyers, sizeof model->buyers[0],
                        &model->buyer_count, 0);
    }
    model->hungry_count = 0;
}

MODEL_PART("waitlist", waitlist_command, clear);
