/* model_choose.c - which units a RESERVE gets, in the model. */
#include "sim/engine/model.h"

uint64_t model_free_units(struct model *model, struct hf_bytes sku)
{
    struct model_product *p = model_find_product(model, sku);

    return (uint64_t)(p->total - p->reserved - p->sold);
}

/* So many must be there at least. */
static uint64_t least(const struct hold_command *c, uint32_t i)
{
    return c->mins ? c->items[i].least : c->items[i].quantity;
}

bool model_lacks_item(struct model *model, const struct hold_command *c,
                      uint32_t i)
{
    return model_is_over(model, c, i) ||
           model_is_short(model, c, c->items[i].sku, least(c, i));
}

/* A map of an item that is short; `more` fields follow. */
static void write_item(struct model *model, struct hf_buf *out,
                       const struct hold_item *item, uint32_t more)
{
    size_t waiting = model_count_buyers(model, item->sku);

    reply_map(out, (waiting > 0 ? 4 : 3) + more);
    reply_field_text(out, FIELD_SKU, item->sku);
    reply_field_number(out, FIELD_REQUESTED, (int64_t)item->quantity);
    reply_field_number(out, FIELD_AVAILABLE,
                       (int64_t)model_free_units(model, item->sku));
    if (waiting > 0)
        reply_field_number(out, FIELD_WAITING, (int64_t)waiting);
    model->figures[FIGURE_STOCK_BEHIND] +=
        model_free_units(model, item->sku) >= item->quantity;
}

void model_write_list(struct model *model, struct hf_buf *out,
                      const struct hold_command *c, uint32_t count)
{
    reply_list(out, count);
    for (uint32_t i = 0; i < c->item_count; i++) {
        const struct hold_item *item = &c->items[i];
        if (!model_lacks_item(model, c, i))
            continue;
        if (model_is_over(model, c, i))
            model_write_excess(model, out, model_find_product(model, item->sku),
                               c->owner, item->quantity, 0);
        else
            write_item(model, out, item, 0);
    }
}

/* The first that is short, then all of them if there are more. Always true. */
static bool write_short(struct model *model, const struct hold_command *c,
                        uint32_t count)
{
    struct hf_buf *out = model_reply(model, HOLD_SHORT);
    uint32_t first = 0;

    while (!model_lacks_item(model, c, first))
        first++;
    write_item(model, out, &c->items[first], count > 1);
    if (count > 1) {
        reply_field(out, FIELD_ITEMS);
        model_write_list(model, out, c, count);
    }
    return true;
}

uint32_t model_count_short(struct model *model, const struct hold_command *c)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < c->item_count; i++)
        count += model_lacks_item(model, c, i);
    return count;
}

bool model_lacks_product(struct model *model, const struct hold_command *c)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (model_find_product(model, c->items[i].sku) == NULL) {
            struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);
            reply_map(out, 1);
            reply_field_text(out, FIELD_SKU, c->items[i].sku);
            return true;
        }
    }
    return false;
}

bool model_lacks_stock(struct model *model, const struct hold_command *c)
{
    uint32_t count = model_count_short(model, c);
    if (count == 0 || ((c->flags & HOLD_BEST) != 0 && count < c->item_count))
        return false;
    return write_short(model, c, count);
}

bool model_may_be_of(const struct model_reservation *r,
                     const struct hold_command *c)
{
    size_t found = 0;

    if (hold_is_placed(c))
        return model_may_be_placed(r, c);
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint64_t has = 0;
        for (size_t j = 0; j < r->item_count; j++) {
            if (model_is(&r->items[j].sku, c->items[i].sku))
                has = r->items[j].quantity;
        }
        if (has == 0 && (c->flags & HOLD_BEST) != 0)
            continue;
        if (has < least(c, i) || has > c->items[i].quantity)
            return false;
        found++;
    }
    return found == r->item_count;
}

bool model_must_wait(struct model *model, const struct hold_command *c)
{
    bool may = c->wait_ms > 0 || c->kind == HOLD_WAITLIST_JOIN;
    bool waits = may && model_count_short(model, c) > 0;
    bool passes = false;

    for (uint32_t i = 0; may && i < c->item_count; i++)
        passes |= model_count_buyers(model, c->items[i].sku) > 0;
    model->figures[FIGURE_STOCK_PASSED] += passes && !waits;
    return waits;
}
