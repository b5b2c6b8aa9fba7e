/* model_settled.c - what of stock need not wait for all that is due, in the
 * model.
 *
 * When a product is first reserved from, its `ends_us` is that of the
 * reservation; what is set aside later, or made to end earlier, only brings it
 * forward. The rule is the engine's, since it decides what comes first; whether
 * it is right is found out by looking at all that is pending.
 */
#include <assert.h>

#include "sim/engine/model.h"

void model_set_aside(struct model *model, struct model_product *product,
                     int64_t units, const struct model_reservation *r)
{
    uint64_t ends_us = model->old_waits ? 0 : r->expires_us;

    if (product->reserved == 0 || ends_us < product->ends_us)
        product->ends_us = ends_us;
    product->reserved += units;
}

void model_ends_earlier(struct model *model, const struct model_reservation *r)
{
    for (size_t i = 0; i < r->item_count; i++) {
        struct model_product *p =
            model_find_product(model, model_bytes(&r->items[i].sku));
        if (r->expires_us < p->ends_us)
            p->ends_us = r->expires_us;
    }
}

/* Is a pending reservation of it over? */
static bool is_due(const struct model *model, struct hf_bytes sku,
                   uint64_t now_us)
{
    for (size_t i = 0; i < model->reservation_count; i++) {
        const struct model_reservation *r = &model->reservations[i];
        if (r->status != MODEL_PENDING || r->expires_us > now_us)
            continue;
        for (size_t k = 0; k < r->item_count; k++) {
            if (model_is(&r->items[k].sku, sku))
                return true;
        }
    }
    return false;
}

static bool product_is_settled(struct model *model, struct hf_bytes sku,
                               uint64_t now_us)
{
    const struct model_product *p = model_find_product(model, sku);
    bool queue = model_count_buyers(model, sku) > 0;
    bool settled = p == NULL || p->reserved == 0 || p->ends_us > now_us;

    if (model_is_behind(model, now_us)) {
        bool due = is_due(model, sku, now_us);
        assert(!settled || !due); /* nobody is told what is not so */
        model->figures[FIGURE_STOCK_SETTLED] += settled && !queue;
        model->figures[FIGURE_STOCK_UNSETTLED] += !settled || queue;
        model->figures[FIGURE_STOCK_DOUBTED] += !settled && !due;
    }
    return settled && !queue;
}

/* The id must not be that of one that may be another by then. */
static bool id_is_settled(struct model *model, struct hf_bytes id,
                          uint64_t now_us)
{
    const struct model_reservation *r = model_find_reservation(model, id);

    return model_find_buyer(model, id) == NULL &&
           (r == NULL || r->status != MODEL_PENDING || r->expires_us > now_us);
}

bool model_is_settled(struct model *model, const struct hold_command *c,
                      uint64_t now_us)
{
    bool of_one = c->kind == HOLD_STOCK_SET || c->kind == HOLD_STOCK_ADD ||
                  c->kind == HOLD_STOCK_LOW || c->kind == HOLD_STOCK_ATTR ||
                  c->kind == HOLD_STOCK_LIMIT;

    if (of_one)
        return product_is_settled(model, c->name, now_us);
    if (c->kind != HOLD_RESERVE && c->kind != HOLD_STOCK_GET)
        return false;
    if (c->kind == HOLD_RESERVE &&
        (hold_is_placed(c) || hold_may_book(c) || c->bundle.len > 0 ||
         model->reservation_count + model->buyer_count + model->booking_count >=
             model->bounds.reservations_max ||
         !id_is_settled(model, c->name, now_us)))
        return false;
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (!product_is_settled(model, c->items[i].sku, now_us))
            return false;
    }
    return true;
}
