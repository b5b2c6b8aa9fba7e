/* model_stock.c - products in the model. */
#include <assert.h>

#include "sim/engine/model.h"

struct model_product *model_find_product(struct model *model,
                                         struct hf_bytes sku)
{
    for (size_t i = 0; i < model->product_count; i++) {
        if (model_is(&model->products[i].sku, sku))
            return &model->products[i];
    }
    return NULL;
}

static int64_t available(const struct model_product *product)
{
    return product->total - product->reserved - product->sold;
}

void model_write_product(struct hf_buf *out, const struct model_product *p)
{
    reply_map(out, 7);
    reply_field_text(out, FIELD_SKU, model_bytes(&p->sku));
    reply_field_number(out, FIELD_TOTAL, p->total);
    reply_field_number(out, FIELD_AVAILABLE, available(p));
    reply_field_number(out, FIELD_RESERVED, p->reserved);
    reply_field_number(out, FIELD_SOLD, p->sold);
    reply_field_number(out, FIELD_VERSION, (int64_t)p->version);
    reply_field_number(out, FIELD_UPDATED_MS, (int64_t)(p->updated_us / 1000));
}

/* Begins a refusal with `count` facts, of which the sku is the first. */
static struct hf_buf *refuse(struct model *model, enum hold_code code,
                             uint32_t count, struct hf_bytes sku)
{
    struct hf_buf *out = model_reply(model, code);

    reply_map(out, count);
    reply_field_text(out, FIELD_SKU, sku);
    return out;
}

static void set_total(struct model *model, struct model_product *product,
                      int64_t total, struct hf_bytes reason)
{
    product->total = total;
    product->version =
        model_event(model, EVENT_STOCK_CHANGED, model_bytes(&product->sku), 0);
    product->updated_us = model->now_us;
    model_tell(model,
               &(struct model_facts){.note = reason,
                                     .total = total,
                                     .available = total - product->reserved -
                                                  product->sold});
    model_write_product(model_reply(model, HOLD_OK), product);
}

static void stock_set(struct model *model, struct model_product *product,
                      const struct hold_command *c)
{
    if (product == NULL && model->product_count >= model->bounds.products_max) {
        model_overloaded(model, "products-max", model->bounds.products_max);
        return;
    }
    if (product != NULL && c->amount < product->reserved + product->sold) {
        struct hf_buf *out = refuse(model, HOLD_SHORT, 4, c->name);
        reply_field_number(out, FIELD_REQUESTED, c->amount);
        reply_field_number(out, FIELD_RESERVED, product->reserved);
        reply_field_number(out, FIELD_SOLD, product->sold);
        return;
    }
    if (product == NULL) {
        assert(model->product_count < MODEL_MAX);
        product = &model->products[model->product_count++];
        *product = (struct model_product){.sku = model_text(c->name)};
    }
    set_total(model, product, c->amount, c->reason);
}

static void stock_add(struct model *model, struct model_product *product,
                      const struct hold_command *c)
{
    __int128 total = (__int128)product->total + c->amount;

    if (total < product->reserved + product->sold) {
        struct hf_buf *out = refuse(model, HOLD_SHORT, 3, c->name);
        reply_field_number(out, FIELD_REQUESTED, c->amount);
        reply_field_number(out, FIELD_AVAILABLE, available(product));
    } else if (total > HOLD_STOCK_MAX) {
        model_overloaded(model, "stock-max", HOLD_STOCK_MAX);
    } else {
        set_total(model, product, (int64_t)total, c->reason);
    }
}

static void stock_delete(struct model *model, struct model_product *product,
                         const struct hold_command *c)
{
    if (product->reserved > 0) {
        struct hf_buf *out = refuse(model, HOLD_STATE, 2, c->name);
        reply_field_number(out, FIELD_RESERVED, product->reserved);
        return;
    }
    model_close_gap(model->products, sizeof *product, &model->product_count,
                    (size_t)(product - model->products));
    model_event(model, EVENT_STOCK_DELETED, c->name, 0);
    model_reply(model, HOLD_OK);
}

static void stock_command(struct model *model, const struct hold_command *c)
{
    struct model_product *product = model_find_product(model, c->name);

    if (c->kind == HOLD_STOCK_SET)
        stock_set(model, product, c);
    else if (product == NULL)
        refuse(model, HOLD_NOTFOUND, 1, c->name);
    else if (c->kind == HOLD_STOCK_ADD)
        stock_add(model, product, c);
    else
        stock_delete(model, product, c);
}

static void clear(struct model *model)
{
    model->product_count = 0;
}

MODEL_PART("stock", stock_command, clear);
