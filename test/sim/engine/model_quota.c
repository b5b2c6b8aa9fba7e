/* model_quota.c - limits per owner, in the model: what an owner has is added up
 * over all reservations, each time. */
#include "base/little.h"
#include "sim/engine/model.h"

static uint64_t units_of(const struct model_item *items, size_t count,
                         const struct model_product *p)
{
    for (size_t i = 0; i < count; i++) {
        if (model_is(&items[i].sku, model_bytes(&p->sku)))
            return items[i].quantity;
    }
    return 0;
}

/* What one owner has, or, if none is asked for, all of them have; so much as is
 * counted. */
static uint64_t add_up(const struct model *model, const struct model_product *p,
                       const struct hf_bytes *owner)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < model->reservation_count && p->counting; i++) {
        const struct model_reservation *r = &model->reservations[i];
        bool counts =
            r->status == MODEL_PENDING && r->seq > p->since && r->owner.len > 0;
        if (counts && (owner == NULL || model_is(&r->owner, *owner)))
            sum += units_of(r->items, r->item_count, p);
    }
    for (size_t i = 0; i < model->buyer_count && p->counting; i++) {
        const struct model_buyer *b = &model->buyers[i];
        bool counts = b->order > p->since && b->owner.len > 0;
        if (counts && (owner == NULL || model_is(&b->owner, *owner)))
            sum += units_of(b->items, b->item_count, p);
    }
    for (size_t i = 0; i < model->booking_count && p->counting; i++) {
        const struct model_booking *b = &model->bookings[i];
        bool counts = b->seq > p->since && b->owner.len > 0;
        if (counts && (owner == NULL || model_is(&b->owner, *owner)))
            sum += units_of(&b->item, 1, p);
    }
    return sum;
}

/* Without a limit so much as can be counted. */
static int64_t most_of(const struct model_product *p)
{
    return p->limit == 0 ? HOLD_STOCK_MAX : p->limit;
}

uint64_t model_left(const struct model *model, const struct model_product *p,
                    struct hf_bytes owner)
{
    uint64_t has = add_up(model, p, &owner);
    uint64_t most = (uint64_t)most_of(p);

    return !p->counting ? UINT64_MAX : has < most ? most - has : 0;
}

void model_settle_limits(struct model *model)
{
    for (size_t i = 0; i < model->product_count; i++) {
        struct model_product *p = &model->products[i];
        if (p->limit == 0 && add_up(model, p, NULL) == 0)
            p->counting = false;
    }
}

void model_write_excess(struct model *model, struct hf_buf *out,
                        const struct model_product *p, struct hf_bytes owner,
                        uint64_t wanted, uint32_t more)
{
    reply_map(out, 4 + more);
    reply_field_text(out, FIELD_SKU, model_bytes(&p->sku));
    reply_field_number(out, FIELD_REQUESTED, (int64_t)wanted);
    reply_field_number(out, FIELD_HAS, (int64_t)add_up(model, p, &owner));
    reply_field_number(out, FIELD_LIMIT, most_of(p));
}

bool model_refuse_excess(struct model *model, const struct hold_command *c,
                         struct model_product *const *products,
                         const uint64_t *wanted, size_t count)
{
    bool unowned = c->owner.len == 0;
    struct hf_buf *out = model_reply(model, unowned ? HOLD_BADARG : HOLD_QUOTA);

    model->figures[FIGURE_QUOTA]++;
    if (unowned) {
        reply_map(out, 2);
        reply_field_text(out, FIELD_SKU, model_bytes(&products[0]->sku));
        reply_field_number(out, FIELD_LIMIT, products[0]->limit);
        return true;
    }
    model_write_excess(model, out, products[0], c->owner, wanted[0],
                       count > 1 ? 2 : 1);
    reply_field_text(out, FIELD_OWNER, c->owner);
    if (count == 1)
        return true;
    reply_field(out, FIELD_ITEMS);
    reply_list(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++)
        model_write_excess(model, out, products[i], c->owner, wanted[i], 0);
    return true;
}

bool model_is_over(struct model *model, const struct hold_command *c,
                   uint32_t i)
{
    const struct hold_item *item = &c->items[i];

    return c->kind != HOLD_CONFIRM &&
           model_left(model, model_find_product(model, item->sku), c->owner) <
               (c->mins ? item->least : item->quantity);
}

bool model_exceeds(struct model *model, const struct hold_command *c)
{
    struct model_product *products[HOLD_ITEMS_MAX];
    uint64_t wanted[HOLD_ITEMS_MAX];
    size_t over = 0;
    bool unowned = false;

    for (uint32_t i = 0; i < c->item_count; i++) {
        struct model_product *p = model_find_product(model, c->items[i].sku);
        bool needs = p->limit > 0 && c->owner.len == 0;
        unowned = unowned || needs;
        if (!needs && !model_is_over(model, c, i))
            continue;
        products[over] = p;
        wanted[over++] = c->items[i].quantity;
    }
    bool some = (c->flags & HOLD_BEST) != 0 &&
                model_count_short(model, c) < c->item_count;
    if (!unowned && (over == 0 || some))
        return false;
    return model_refuse_excess(model, c, products, wanted, over);
}

void model_limit(struct model *model, struct model_product *p,
                 const struct hold_command *c)
{
    model_settle_limits(model);
    p->version = model_event(model, EVENT_STOCK_LIMIT, model_bytes(&p->sku), 0);
    p->updated_us = model->now_us;
    model_tell(model, &(struct model_facts){
                          .total = p->total,
                          .available = p->total - p->reserved - p->sold});
    model->events[model->event_count - 1].token = (uint64_t)c->amount;
    if (!p->counting)
        p->since = model->seq;
    p->limit = c->amount;
    p->counting = p->counting || c->amount > 0;
    struct hf_buf *out = model_reply(model, HOLD_OK);
    size_t map_at = out->len;
    model_write_product(model, out, p, false);
    hf_put_u32(out->data + map_at + 1, 10); /* and one more */
    reply_field_number(out, FIELD_LIMIT, p->limit);
}
