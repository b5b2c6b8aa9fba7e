/* stock.c - products: total = available + reserved + sold. */
#include <assert.h>

#include "hold/state.h"

static const struct product *product_find(const struct hold_engine *e,
                                          struct hf_bytes sku)
{
    uint32_t number = hf_index_find(&e->products, sku);
    return number == 0 ? NULL : product_at(e, number);
}

static uint64_t committed(const struct product *product)
{
    assert(product->reserved <= product->total);
    assert(product->sold <= product->total - product->reserved);
    return product->reserved + product->sold;
}

static bool refuse_unknown(struct hold_engine *e, struct hf_bytes sku)
{
    reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_SKU, sku);
    return true;
}

static void reply_product(struct hold_engine *e, const void *record)
{
    const struct product *p = record;
    struct hf_buf *body = &e->body;

    reply_map(body, 7);
    reply_field_text(body, FIELD_SKU, hf_index_name(&e->products, p));
    reply_field_number(body, FIELD_TOTAL, (int64_t)p->total);
    reply_field_number(body, FIELD_AVAILABLE,
                       (int64_t)(p->total - committed(p)));
    reply_field_number(body, FIELD_RESERVED, (int64_t)p->reserved);
    reply_field_number(body, FIELD_SOLD, (int64_t)p->sold);
    reply_field_number(body, FIELD_VERSION, (int64_t)p->version);
    reply_field_number(body, FIELD_UPDATED_MS,
                       (int64_t)(p->updated_us / US_PER_MS));
}

static void change_total(struct hold_engine *e, struct product *product,
                         uint64_t total, struct hf_bytes reason)
{
    e->stock_total = e->stock_total - product->total + total;
    product->total = total;
    product->updated_us = e->now_us;
    product->version =
        emit(e, EVENT_STOCK_CHANGED, hf_index_name(&e->products, product), 0);
    told(e)->total = total;
    told(e)->available = total - committed(product);
    if (e->tells)
        told(e)->note = tell_text(e, reason);
    reply_product(e, product);
}

void stock_set_need(struct hold_engine *e, const struct hold_command *c,
                    struct need *need)
{
    need_record(e, need, &e->products, c->name.len);
}

bool stock_set_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    if (at.number == 0)
        return hf_index_count(&e->products) >= e->bounds.products_max &&
               refuse_overload(e, "products-max", e->bounds.products_max);
    struct product *product = product_edit(e, at.number);
    if ((uint64_t)c->amount >= committed(product))
        return false;
    struct hf_buf *body = refuse(e, HOLD_SHORT, 4);
    reply_field_text(body, FIELD_SKU, c->name);
    reply_field_number(body, FIELD_REQUESTED, c->amount);
    reply_field_number(body, FIELD_RESERVED, (int64_t)product->reserved);
    reply_field_number(body, FIELD_SOLD, (int64_t)product->sold);
    return true;
}

void stock_set(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    uint32_t number = at.number;

    if (number == 0)
        number = hf_index_add_hashed(&e->products, at.hash, c->name);
    assert(number != 0); /* promised */
    change_total(e, product_edit(e, number), (uint64_t)c->amount, c->reason);
}

bool stock_add_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    int64_t total;

    if (at.number == 0)
        return refuse_unknown(e, c->name);
    struct product *product = product_edit(e, at.number);
    if (__builtin_add_overflow((int64_t)product->total, c->amount, &total))
        return refuse_overload(e, "stock-max", HOLD_STOCK_MAX);
    if (total >= 0 && (uint64_t)total >= committed(product))
        return false;
    struct hf_buf *body = refuse(e, HOLD_SHORT, 3);
    reply_field_text(body, FIELD_SKU, c->name);
    reply_field_number(body, FIELD_REQUESTED, c->amount);
    reply_field_number(body, FIELD_AVAILABLE,
                       (int64_t)(product->total - committed(product)));
    return true;
}

void stock_add(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    struct product *product = product_edit(e, at.number);

    change_total(e, product, product->total + (uint64_t)c->amount, c->reason);
}

bool stock_del_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    if (at.number == 0)
        return refuse_unknown(e, c->name);
    struct product *product = product_edit(e, at.number);
    if (product->reserved == 0)
        return false;
    struct hf_buf *body = refuse(e, HOLD_STATE, 2);
    reply_field_text(body, FIELD_SKU, c->name);
    reply_field_number(body, FIELD_RESERVED, (int64_t)product->reserved);
    return true;
}

void stock_del(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    const struct product *product = product_at(e, at.number);

    e->stock_total -= product->total;
    e->stock_sold -= product->sold;
    assert(product->reserved == 0);
    emit(e, EVENT_STOCK_DELETED, c->name, 0);
    hf_index_remove(&e->products, at.number);
}

void stock_get(struct hold_engine *e, const struct hold_command *c)
{
    if (c->item_count == 1) {
        const struct product *product = product_find(e, c->items[0].sku);
        if (product == NULL)
            refuse_unknown(e, c->items[0].sku);
        else
            reply_product(e, product);
        return;
    }
    reply_list(&e->body, c->item_count);
    for (uint32_t i = 0; i < c->item_count; i++) {
        const struct product *product = product_find(e, c->items[i].sku);
        if (product == NULL)
            reply_null(&e->body);
        else
            reply_product(e, product);
    }
}

void stock_list(struct hold_engine *e, const struct hold_command *c)
{
    list_page(e, c, FIELD_PRODUCTS, &e->products, NULL, reply_product);
}

enum hf_status product_loaded(struct hold_engine *e, uint32_t number,
                              uint64_t link)
{
    const struct product *product = product_at(e, number);

    (void)link;
    e->stock_total += product->total;
    e->stock_reserved += product->reserved;
    e->stock_sold += product->sold;
    return HF_OK;
}
