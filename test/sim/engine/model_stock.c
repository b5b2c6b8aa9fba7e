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

/* The one whose name comes next in order behind `last`. */
static const struct model_attribute *
next_attribute(const struct model_product *p, const struct model_text *last)
{
    const struct model_attribute *next = NULL;

    for (size_t i = 0; i < p->attribute_count; i++) {
        const struct model_attribute *one = &p->attributes[i];
        if ((last == NULL || hf_bytes_compare(model_bytes(&one->name),
                                              model_bytes(last)) > 0) &&
            (next == NULL || hf_bytes_compare(model_bytes(&one->name),
                                              model_bytes(&next->name)) < 0))
            next = one;
    }
    return next;
}

void model_write_product(const struct model *model, struct hf_buf *out,
                         const struct model_product *p, bool all)
{
    bool expected = all && model_is_expected(model, model_bytes(&p->sku));

    reply_map(out,
              9 + (uint32_t)all + (all && p->limit > 0) + (expected ? 2 : 0));
    reply_field_text(out, FIELD_SKU, model_bytes(&p->sku));
    reply_field_number(out, FIELD_TOTAL, p->total);
    reply_field_number(out, FIELD_AVAILABLE, available(p));
    reply_field_number(out, FIELD_RESERVED, p->reserved);
    reply_field_number(out, FIELD_SOLD, p->sold);
    reply_field_number(out, FIELD_VERSION, (int64_t)p->version);
    reply_field_number(out, FIELD_UPDATED_MS, (int64_t)(p->updated_us / 1000));
    reply_field_number(out, FIELD_LOW, p->low);
    reply_field_number(
        out, FIELD_WAITING,
        (int64_t)model_count_buyers(model, model_bytes(&p->sku)));
    if (!all)
        return;
    if (p->limit > 0)
        reply_field_number(out, FIELD_LIMIT, p->limit);
    const struct model_attribute *one = next_attribute(p, NULL);
    reply_field(out, FIELD_ATTRIBUTES);
    reply_texts(out, (uint32_t)p->attribute_count);
    for (; one != NULL; one = next_attribute(p, &one->name)) {
        reply_text(out, model_bytes(&one->name));
        reply_text(out, model_bytes(&one->value));
    }
    if (!expected)
        return;
    reply_field_number(out, FIELD_EXPECTED,
                       (int64_t)model_announced(model, model_bytes(&p->sku)));
    reply_field_number(out, FIELD_BOOKED,
                       (int64_t)model_booked(model, model_bytes(&p->sku)));
}

void model_tell_level(struct model *model, struct model_product *product)
{
    bool low = product->low != 0 && available(product) <= product->low;

    if (low == product->is_low)
        return;
    product->is_low = low;
    model_event(model, low ? EVENT_STOCK_LOW : EVENT_STOCK_REFILLED,
                model_bytes(&product->sku), 0);
    model_tell(model, &(struct model_facts){.total = product->total,
                                            .available = available(product)});
    model->steps++;
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

void model_set_total(struct model *model, struct model_product *product,
                     int64_t total, const struct hold_command *c)
{
    product->total = total;
    product->version =
        model_event(model, EVENT_STOCK_CHANGED, model_bytes(&product->sku), 0);
    product->updated_us = model->now_us;
    model_tell(model,
               &(struct model_facts){.owner = c->note,
                                     .note = c->reason,
                                     .total = total,
                                     .available = total - product->reserved -
                                                  product->sold});
    model_tell_level(model, product);
}

static void set_total(struct model *model, struct model_product *product,
                      int64_t total, const struct hold_command *c)
{
    model_set_total(model, product, total, c);
    model_write_product(model, model_reply(model, HOLD_OK), product, false);
    model_call_product(model, model_bytes(&product->sku));
    model_serve_products(model);
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
    set_total(model, product, c->amount, c);
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
        set_total(model, product, (int64_t)total, c);
    }
}

static void stock_low(struct model *model, struct model_product *product,
                      const struct hold_command *c)
{
    product->low = c->amount;
    set_total(model, product, product->total, c);
}

static struct model_attribute *find_attribute(struct model_product *product,
                                              struct hf_bytes name)
{
    for (size_t i = 0; i < product->attribute_count; i++) {
        if (model_is(&product->attributes[i].name, name))
            return &product->attributes[i];
    }
    return NULL;
}

static size_t attribute_bytes(const struct model_product *product)
{
    size_t bytes = 0;

    for (size_t i = 0; i < product->attribute_count; i++)
        bytes += 4 + product->attributes[i].name.len +
                 product->attributes[i].value.len;
    return bytes;
}

/* True if there is room for it, else refused. */
static bool fits(struct model *model, struct model_product *product,
                 const struct hold_command *c)
{
    const struct model_attribute *known = find_attribute(product, c->reason);
    size_t bytes = attribute_bytes(product) + 4 + c->reason.len + c->note.len;

    if (known == NULL && product->attribute_count == HOLD_ATTRS_MAX) {
        model_overloaded(model, "attributes-max", HOLD_ATTRS_MAX);
        return false;
    }
    if (known != NULL)
        bytes -= 4 + known->name.len + known->value.len;
    if (bytes <= HOLD_ATTRS_BYTES)
        return true;
    model_overloaded(model, "attributes-bytes", HOLD_ATTRS_BYTES);
    return false;
}

static void stock_attribute(struct model *model, struct model_product *product,
                            const struct hold_command *c)
{
    struct model_attribute *one = find_attribute(product, c->reason);

    if (c->note.len > 0 && !fits(model, product, c))
        return;
    if (one != NULL)
        model_close_gap(product->attributes, sizeof *one,
                        &product->attribute_count,
                        (size_t)(one - product->attributes));
    if (c->note.len > 0)
        product->attributes[product->attribute_count++] =
            (struct model_attribute){model_text(c->reason),
                                     model_text(c->note)};
    product->updated_us = model->now_us;
    product->version = model_event(model, EVENT_STOCK_ATTRIBUTES, c->name, 0);
    model_tell(model,
               &(struct model_facts){.owner = c->note, .note = c->reason});
    model_write_product(model, model_reply(model, HOLD_OK), product, false);
}

static void stock_delete(struct model *model, struct model_product *product,
                         const struct hold_command *c)
{
    size_t waiting = model_count_buyers(model, c->name);
    int64_t booked = (int64_t)model_booked(model, c->name);

    if (product->reserved > 0 || waiting > 0 || booked > 0) {
        struct hf_buf *out = refuse(model, HOLD_STATE,
                                    2u + (waiting > 0) + (booked > 0), c->name);
        reply_field_number(out, FIELD_RESERVED, product->reserved);
        if (waiting > 0)
            reply_field_number(out, FIELD_WAITING, (int64_t)waiting);
        if (booked > 0)
            reply_field_number(out, FIELD_BOOKED, booked);
        return;
    }
    model_forget_arrivals(model, c->name);
    model_close_gap(model->products, sizeof *product, &model->product_count,
                    (size_t)(product - model->products));
    model_event(model, EVENT_STOCK_DELETED, c->name, 0);
    model_reply(model, HOLD_OK);
}

/* IF: the version must be this one. */
static bool clashes(struct model *model, const struct model_product *product,
                    const struct hold_command *c)
{
    int64_t version = product == NULL ? 0 : (int64_t)product->version;
    int64_t wanted = (int64_t)c->token - 1;

    if (wanted < 0 || wanted == version)
        return false;
    struct hf_buf *out = refuse(model, HOLD_CONFLICT, 3, c->name);
    reply_field_number(out, FIELD_REQUESTED, wanted);
    reply_field_number(out, FIELD_VERSION, version);
    return true;
}

static void stock_command(struct model *model, const struct hold_command *c)
{
    struct model_product *product = model_find_product(model, c->name);

    if (product == NULL && c->kind != HOLD_STOCK_SET)
        refuse(model, HOLD_NOTFOUND, 1, c->name);
    else if (c->kind == HOLD_STOCK_LOW)
        stock_low(model, product, c);
    else if (c->kind == HOLD_STOCK_LIMIT)
        model_limit(model, product, c);
    else if (c->kind == HOLD_STOCK_ATTR)
        stock_attribute(model, product, c);
    else if (clashes(model, product, c))
        return;
    else if (c->kind == HOLD_STOCK_SET)
        stock_set(model, product, c);
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
