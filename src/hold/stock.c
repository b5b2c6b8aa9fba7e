/* stock.c - products: total = available + reserved + sold. */
#include <assert.h>

#include "hold/expect.h"
#include "hold/places.h"
#include "hold/quota.h"

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

/* IF: true, and CONFLICT, if the product has another version. One that does not
 * exist has version 0. */
static bool refuse_version(struct hold_engine *e, const struct hold_command *c,
                           struct target at)
{
    uint64_t version = at.number == 0 ? 0 : product_at(e, at.number)->version;

    if (c->token == 0 || c->token - 1 == version)
        return false;
    struct hf_buf *body = refuse(e, HOLD_CONFLICT, 3);
    reply_field_text(body, FIELD_SKU, c->name);
    reply_field_number(body, FIELD_REQUESTED, (int64_t)(c->token - 1));
    reply_field_number(body, FIELD_VERSION, (int64_t)version);
    return true;
}

void reply_product(struct hold_engine *e, const struct product *p,
                   uint32_t more)
{
    struct hf_buf *body = &e->body;

    reply_map(body, 9 + more);
    reply_field_text(body, FIELD_SKU, hf_index_name(&e->products, p));
    reply_field_number(body, FIELD_TOTAL, (int64_t)p->total);
    reply_field_number(body, FIELD_AVAILABLE, (int64_t)available(p));
    reply_field_number(body, FIELD_RESERVED, (int64_t)p->reserved);
    reply_field_number(body, FIELD_SOLD, (int64_t)p->sold);
    reply_field_number(body, FIELD_VERSION, (int64_t)p->version);
    reply_field_number(body, FIELD_UPDATED_MS,
                       (int64_t)(p->updated_us / US_PER_MS));
    reply_field_number(body, FIELD_LOW, (int64_t)p->low);
    reply_field_number(body, FIELD_WAITING, p->waiting);
}

static void show_product(struct hold_engine *e, const void *record)
{
    const struct product *p = record;

    uint64_t limit = quota_most(e, p);
    uint32_t expect = expect_find(e, hf_index_name(&e->products, p));

    reply_product(e, p, 1u + (limit > 0) + (expect == 0 ? 0 : 2));
    if (limit > 0)
        reply_field_number(&e->body, FIELD_LIMIT, (int64_t)limit);
    reply_attributes(e, p);
    if (expect == 0)
        return;
    reply_field_number(&e->body, FIELD_EXPECTED,
                       (int64_t)expect_at(e, expect)->announced);
    reply_field_number(&e->body, FIELD_BOOKED,
                       (int64_t)expect_at(e, expect)->booked);
}

/* ---- Thresholds. ---- */

static bool is_low(const struct product *p, uint64_t units)
{
    return p->low > 0 && units <= p->low;
}

uint64_t emit_product(struct hold_engine *e, const struct product *p,
                      enum hold_event_kind kind)
{
    uint64_t seq = emit(e, kind, hf_index_name(&e->products, p), 0);

    told(e)->total = p->total;
    told(e)->available = available(p);
    return seq;
}

/* The product was low before, or was not: tells if that is not so any more. A
 * sweep counts it as a step, since its events are bounded. */
static void tell_level(struct hold_engine *e, const struct product *p,
                       bool was_low)
{
    bool low = is_low(p, available(p));

    if (low == was_low)
        return;
    emit_product(e, p, low ? EVENT_STOCK_LOW : EVENT_STOCK_REFILLED);
    e->steps++;
}

void levels_tell(struct hold_engine *e, struct hf_bytes items, bool taken)
{
    struct hold_item item;

    if (e->lows == 0)
        return; /* as a rule */
    for (size_t at = 0; hold_next_item(items, &at, &item);) {
        const struct product *p =
            product_at(e, hf_index_find(&e->products, item.sku));
        uint64_t before =
            taken ? available(p) + item.quantity : available(p) - item.quantity;
        tell_level(e, p, is_low(p, before));
    }
}

bool stock_known_check(struct hold_engine *e, const struct hold_command *c,
                       struct target at)
{
    return at.number == 0 && refuse_unknown(e, c->name);
}

void stock_low(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    struct product *p = product_edit(e, at.number);
    bool was_low = is_low(p, available(p));

    e->lows = e->lows - (p->low > 0) + (c->amount > 0);
    p->low = (uint64_t)c->amount;
    p->updated_us = e->now_us;
    p->version = emit_product(e, p, EVENT_STOCK_CHANGED);
    tell_level(e, p, was_low);
    reply_product(e, p, 0);
}

/* ---- Units. ---- */

void stock_set_total(struct hold_engine *e, uint32_t number, uint64_t total,
                     const struct hold_command *c)
{
    struct product *product = product_edit(e, number);
    bool was_low = is_low(product, available(product));

    e->stock_total = e->stock_total - product->total + total;
    if (product->is_placed) {
        struct places *places = places_of(e, product);
        places->total = places->total - product->total + total;
    }
    product->total = total;
    product->updated_us = e->now_us;
    product->version = emit_product(e, product, EVENT_STOCK_CHANGED);
    if (e->tells) {
        told(e)->owner = tell_text(e, c->note);
        told(e)->note = tell_text(e, c->reason);
    }
    tell_level(e, product, was_low);
}

static void change_total(struct hold_engine *e, uint32_t number, uint64_t total,
                         const struct hold_command *c)
{
    stock_set_total(e, number, total, c);
    reply_product(e, product_at(e, number), 0);
    waitlist_later(e, number);
    waitlist_serve(e);
}

void stock_set_need(struct hold_engine *e, const struct hold_command *c,
                    struct need *need)
{
    need_record(e, need, &e->products, c->name.len);
    place_need(e, c->name, need);
}

bool stock_set_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    if (refuse_version(e, c, at))
        return true;
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

    if (number == 0) {
        number = hf_index_add_hashed(&e->products, at.hash, c->name);
        assert(number != 0); /* promised */
        enum hf_status status = place_add(e, number);
        assert(status == HF_OK); /* promised */
        (void)status;
    }
    change_total(e, number, (uint64_t)c->amount, c);
}

bool stock_add_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    int64_t total;

    if (at.number == 0)
        return refuse_unknown(e, c->name);
    if (refuse_version(e, c, at))
        return true;
    struct product *product = product_edit(e, at.number);
    if (__builtin_add_overflow((int64_t)product->total, c->amount, &total))
        return refuse_overload(e, "stock-max", HOLD_STOCK_MAX);
    if (total >= 0 && (uint64_t)total >= committed(product))
        return false;
    struct hf_buf *body = refuse(e, HOLD_SHORT, 3);
    reply_field_text(body, FIELD_SKU, c->name);
    reply_field_number(body, FIELD_REQUESTED, c->amount);
    reply_field_number(body, FIELD_AVAILABLE, (int64_t)available(product));
    return true;
}

void stock_add(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    uint64_t total = product_at(e, at.number)->total + (uint64_t)c->amount;

    change_total(e, at.number, total, c);
}

bool stock_del_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    if (at.number == 0)
        return refuse_unknown(e, c->name);
    if (refuse_version(e, c, at))
        return true;
    struct product *product = product_edit(e, at.number);
    uint64_t booked = expect_booked(e, c->name);
    if (product->reserved == 0 && product->waiting == 0 && booked == 0)
        return false;
    struct hf_buf *body =
        refuse(e, HOLD_STATE, 2u + (product->waiting > 0) + (booked > 0));
    reply_field_text(body, FIELD_SKU, c->name);
    reply_field_number(body, FIELD_RESERVED, (int64_t)product->reserved);
    if (product->waiting > 0)
        reply_field_number(body, FIELD_WAITING, product->waiting);
    if (booked > 0)
        reply_field_number(body, FIELD_BOOKED, (int64_t)booked);
    return true;
}

void stock_del(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    const struct product *product = product_at(e, at.number);

    e->stock_total -= product->total;
    e->stock_sold -= product->sold;
    e->lows -= product->low > 0;
    assert(product->reserved == 0);
    quota_drop(e, product);
    if (product->is_placed)
        place_remove(e, at.number);
    hf_texts_drop(&e->texts, product->attributes);
    expect_forget(e, c->name);
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
            show_product(e, product);
        return;
    }
    reply_list(&e->body, c->item_count);
    for (uint32_t i = 0; i < c->item_count; i++) {
        const struct product *product = product_find(e, c->items[i].sku);
        if (product == NULL)
            reply_null(&e->body);
        else
            show_product(e, product);
    }
}

void stock_list(struct hold_engine *e, const struct hold_command *c)
{
    list_page(e, c, FIELD_PRODUCTS, &e->products, NULL, show_product);
}

enum hf_status product_loaded(struct hold_engine *e, uint32_t number,
                              uint64_t link)
{
    const struct product *product = product_at(e, number);

    (void)link;
    e->stock_total += product->total;
    e->stock_reserved += product->reserved;
    e->stock_sold += product->sold;
    e->lows += product->low > 0;
    if (!attributes_are_whole(hf_text_bytes(&e->texts, product->attributes)))
        return HF_CORRUPT;
    return place_add(e, number);
}
