/* settled.c - what of stock need not wait for all that is due.
 *
 * More may be due than one step sweeps. What depends on stock then waits for
 * it, but only if something of its own products may be due:
 *
 *   pen   reserved until 9:10, 9:12, 9:40     ends_us 9:10
 *   cup   nothing reserved                    ends_us 0
 *
 * At 9:05 both are settled, however much else is due. No pending reservation of
 * a product ends before `ends_us`. It may be too early, since it does not move
 * when the reservation that ends first is confirmed, cancelled or extended;
 * only when nothing is reserved any more it begins anew. So a product may be
 * taken for one that is not settled, and never the other way round.
 *
 * A product that somebody waits for is not settled: what another product gets
 * back may let him be served.
 *
 * The time decides in which order things happen, and with which numbers. So it
 * is a part of the state, in images, and the same in each replay: under the
 * rules from before HOLD_SETTLED it is 0, as it is of an image that has none.
 */
#include "hold/places.h"
#include "hold/reserve.h"

static bool product_is_settled(const struct hold_engine *e, struct hf_bytes sku,
                               uint64_t now_us)
{
    uint32_t number = hf_index_find(&e->products, sku);

    if (number == 0)
        return true; /* nothing that is due makes one */
    const struct product *p = product_at(e, number);
    return p->waiting == 0 && (p->reserved == 0 || p->ends_us > now_us);
}

static bool items_are_settled(const struct hold_engine *e,
                              const struct hold_command *c, uint64_t now_us)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (!product_is_settled(e, c->items[i].sku, now_us))
            return false;
    }
    return true;
}

/* One that has the id already must not be over, nor wait for what may be. What
 * is near a bound, or looks at more than its items, is not settled. */
static bool reserve_is_settled(const struct hold_engine *e,
                               const struct hold_command *c, uint64_t now_us)
{
    uint32_t number =
        c->name.len == 0 ? 0 : hf_index_find(&e->reservations, c->name);

    if (hold_is_placed(c) || hold_may_book(c) || c->bundle.len > 0 ||
        hf_index_count(&e->reservations) >= e->bounds.reservations_max)
        return false;
    if (number != 0) {
        const struct reservation *r = reservation_at(e, number);
        if (r->status == RESERVATION_WAITING ||
            (r->status == RESERVATION_PENDING && r->expires_us <= now_us))
            return false;
    }
    return items_are_settled(e, c, now_us);
}

bool stock_is_settled(const struct hold_engine *e, const struct hold_command *c)
{
    uint64_t now_us = max_u64(e->now_us, c->now_us);

    switch (c->kind) {
    case HOLD_RESERVE:
        return reserve_is_settled(e, c, now_us);
    case HOLD_STOCK_SET:
    case HOLD_STOCK_ADD:
    case HOLD_STOCK_LOW:
    case HOLD_STOCK_ATTR:
    case HOLD_STOCK_LIMIT:
        return product_is_settled(e, c->name, now_us);
    case HOLD_STOCK_GET:
        return items_are_settled(e, c, now_us);
    default:
        return false;
    }
}

void settled_lower(struct hold_engine *e, const struct reservation *r)
{
    struct hold_item item;

    for (size_t at = 0; hold_next_item(items_of(e, r), &at, &item);) {
        uint32_t number = hf_index_find(&e->products, item.sku);
        struct product *p = product_edit(e, number);
        if (r->expires_us < p->ends_us)
            p->ends_us = r->expires_us;
    }
}
