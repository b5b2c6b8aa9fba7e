/* choose.c - which units a RESERVE gets: all of its items, as a rule.
 *
 *                    enough   at least MIN   less
 *   all or nothing   all      what there is  SHORT
 *   BEST             all      what there is  the item fails
 *
 * Without MIN all is the least. BEST is SHORT if every item fails. What the
 * owner may not have (quota.h) counts as if it were not there, but is refused
 * as QUOTA, and before anything that is short.
 */
#include "hold/reserve.h"

#include "hold/expect.h"
#include "hold/places.h"
#include "hold/quota.h"

/* What somebody wants; whether and how the command waits counts, too. */
struct wish {
    const struct hold_command *command;
    const struct hold_item *items;
    uint32_t count;
    bool mins; /* less will do of some */
    bool best; /* some of them will do */
    bool late; /* of a CONFIRM, to which no limit applies */
};

static struct wish wish_of(const struct hold_command *c)
{
    return (struct wish){
        c,    c->items, c->item_count, c->mins, (c->flags & HOLD_BEST) != 0,
        false};
}

static uint64_t least_of(const struct wish *wish, uint32_t i)
{
    return wish->mins ? wish->items[i].least : wish->items[i].quantity;
}

/* It is there. */
static const struct product *product_of(const struct hold_engine *e,
                                        const struct hold_item *item)
{
    return product_at(e, hf_index_find(&e->products, item->sku));
}

/* Would the owner have too much of it? */
static inline bool is_over(const struct hold_engine *e, const struct wish *wish,
                           const struct product *p, uint32_t i)
{
    return p->is_limited && !wish->late &&
           quota_left(e, p, wish->command->owner) < least_of(wish, i);
}

/* Is there too little of an item, or do others wait for it? */
static bool is_lacking(const struct hold_engine *e, const struct wish *wish,
                       uint32_t i)
{
    return is_short(e, product_of(e, &wish->items[i]), least_of(wish, i),
                    wish->command);
}

static struct shortage shortage_of(const struct hold_engine *e,
                                   const struct hold_item *item)
{
    const struct product *product = product_of(e, item);

    return (struct shortage){item->sku, item->quantity, available(product),
                             product->waiting};
}

/* A map of the facts; `more` follow. */
static void reply_short(struct hf_buf *body, const struct shortage *s,
                        uint32_t more)
{
    reply_map(body, (s->waiting > 0 ? 4 : 3) + more);
    reply_field_text(body, FIELD_SKU, s->sku);
    reply_field_number(body, FIELD_REQUESTED, (int64_t)s->requested);
    reply_field_number(body, FIELD_AVAILABLE, (int64_t)s->free);
    if (s->waiting > 0)
        reply_field_number(body, FIELD_WAITING, s->waiting);
}

bool refuse_shortages(struct hold_engine *e, const struct shortage *list,
                      uint32_t count)
{
    bool listed = count > 1;

    e->out.code = HOLD_SHORT;
    reply_short(&e->body, &list[0], listed);
    if (!listed)
        return true;
    reply_field(&e->body, FIELD_ITEMS);
    reply_list(&e->body, count);
    for (uint32_t i = 0; i < count; i++)
        reply_short(&e->body, &list[i], 0);
    return true;
}

__attribute__((noinline)) static bool refuse_short(struct hold_engine *e,
                                                   const struct wish *wish)
{
    struct shortage list[HOLD_ITEMS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < wish->count; i++) {
        if (is_lacking(e, wish, i))
            list[count++] = shortage_of(e, &wish->items[i]);
    }
    return refuse_shortages(e, list, count);
}

/* Without an owner nobody could be counted. */
static bool lacks_owner(const struct hold_engine *e, const struct wish *wish,
                        const struct product *p)
{
    return p->is_limited && !wish->late && wish->command->owner.len == 0 &&
           quota_most(e, p) > 0;
}

__attribute__((noinline)) static bool refuse_over(struct hold_engine *e,
                                                  const struct wish *wish)
{
    struct excess list[HOLD_ITEMS_MAX];
    uint32_t count = 0;

    for (uint32_t i = 0; i < wish->count; i++) {
        const struct product *p = product_of(e, &wish->items[i]);
        if (is_over(e, wish, p, i) || lacks_owner(e, wish, p))
            list[count++] = (struct excess){p, wish->items[i].quantity};
    }
    return refuse_excess(e, wish->command, list, count);
}

static inline bool refuse_wish(struct hold_engine *e, const struct wish *wish)
{
    uint32_t lacking = 0;
    uint32_t over = 0;
    bool unowned = false;

    for (uint32_t i = 0; i < wish->count; i++) {
        uint32_t number = hf_index_find(&e->products, wish->items[i].sku);
        if (number == 0) {
            reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_SKU,
                             wish->items[i].sku);
            return true;
        }
        const struct product *p = product_at(e, number);
        bool is_much = is_over(e, wish, p, i);
        unowned = unowned || lacks_owner(e, wish, p);
        over += is_much;
        lacking += is_much || is_short(e, p, least_of(wish, i), wish->command);
    }
    if (unowned || (over > 0 && (!wish->best || lacking == wish->count)))
        return refuse_over(e, wish);
    if (lacking == 0 || (wish->best && lacking < wish->count))
        return false;
    if (hold_may_book(wish->command))
        return booking_refuse(e, wish->command);
    return hold_may_queue(wish->command) ? waitlist_refuse(e, wish->command)
                                         : refuse_short(e, wish);
}

bool refuse_items(struct hold_engine *e, const struct hold_command *c)
{
    struct wish wish = wish_of(c);

    return hold_is_placed(c) ? split_refuse(e, c) : refuse_wish(e, &wish);
}

bool refuse_list(struct hold_engine *e, const struct hold_command *c,
                 const struct hold_item *items, uint32_t count)
{
    struct wish wish = {c, items, count, false, false, true};

    return refuse_wish(e, &wish);
}

void choose_items(const struct hold_engine *e, const struct hold_command *c,
                  struct chosen *out)
{
    struct wish wish = wish_of(c);

    for (uint32_t i = 0; i < c->item_count; i++) {
        struct hold_item item = c->items[i];
        const struct product *p = product_of(e, &item);
        uint64_t left = quota_left(e, p, c->owner);
        uint64_t free = available(p);
        bool over = is_over(e, &wish, p, i);
        if (over || is_lacking(e, &wish, i)) {
            out->failed[out->failed_count] = item;
            out->failed[out->failed_count++].least = over ? FAILED_OVER : free;
            continue;
        }
        free = left < free ? left : free;
        if (free < item.quantity)
            item.quantity = free;
        out->items[out->count++] = item;
    }
}

void reply_failed(struct hold_engine *e, const struct hold_command *c,
                  const struct chosen *chosen)
{
    struct hf_buf *body = &e->body;

    reply_field(body, FIELD_FAILED);
    reply_list(body, chosen->failed_count);
    for (uint32_t i = 0; i < chosen->failed_count; i++) {
        struct shortage failed = shortage_of(e, &chosen->failed[i]);
        if (chosen->failed[i].least == FAILED_OVER) {
            struct excess excess = {product_of(e, &chosen->failed[i]),
                                    failed.requested};
            reply_excess(e, c, &excess, 0);
            continue;
        }
        failed.free = chosen->failed[i].least; /* before anything was taken */
        reply_short(body, &failed, 0);
    }
}

bool same_items(const struct hold_engine *e, const struct reservation *r,
                const struct hold_command *c)
{
    struct hf_bytes items = items_of(e, r);
    struct hold_item item;
    size_t at = 0;

    for (uint32_t i = 0; i < c->item_count; i++) {
        if (!hold_next_item(items, &at, &item) ||
            item.quantity != c->items[i].quantity ||
            !hf_bytes_equal(item.sku, c->items[i].sku))
            return false;
    }
    return at == items.len;
}

bool may_be_items(const struct hold_engine *e, const struct reservation *r,
                  const struct hold_command *c)
{
    struct hf_bytes items = items_of(e, r);
    struct hold_item item;
    struct wish wish = wish_of(c);
    size_t at = 0;

    if (hold_is_placed(c))
        return split_may_be(items, c);
    if (wants_all(c))
        return same_items(e, r, c);
    bool more = hold_next_item(items, &at, &item);
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (!more || !hf_bytes_equal(item.sku, c->items[i].sku)) {
            if (!wish.best)
                return false;
            continue; /* it failed */
        }
        if (item.quantity < least_of(&wish, i) ||
            item.quantity > c->items[i].quantity)
            return false;
        more = hold_next_item(items, &at, &item);
    }
    return !more;
}
