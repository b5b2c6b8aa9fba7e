/* split.c - which places the items of a RESERVE with PLACE come from.
 *
 *   NONE    all of one place: the first, as given, that has all
 *   ORDER   of each item what the first place has, then the next
 *   MOST    of each item what the place has that has most of it, then the next
 *   FEWEST  of as few places as all items together can do with; of several such
 *           choices, that whose places come first as given. Of these, each item
 *           as MOST has it
 *
 * Places that have as much as others come in the order given. What others wait
 * for, or is more than the owner may have at a place (quota.h), counts as if it
 * were not there.
 */
#include "hold/places.h"
#include "hold/quota.h"
#include "hold/reserve.h"

#define CHOICES (1u << HOLD_PLACES_MAX)
#define ALL     (CHOICES - 1)

/* Writes sku@place to `out`, which has HOLD_SKU_MAX bytes. */
static struct hf_bytes join(struct hf_bytes sku, struct hf_bytes place,
                            char *out)
{
    memcpy(out, sku.data, sku.len);
    out[sku.len] = '@';
    memcpy(out + sku.len + 1, place.data, place.len);
    return hf_bytes(out, sku.len + 1 + place.len);
}

/* What an item finds at a place; zeroed: nothing. */
struct offer {
    const struct product *product;
    uint64_t free; /* for the command */
    uint64_t over; /* what would be free for it without a limit, too */
};

static struct offer offer_at(const struct hold_engine *e,
                             const struct hold_command *c, uint32_t item,
                             struct hf_bytes place)
{
    char name[HOLD_SKU_MAX];
    uint32_t number =
        hf_index_find(&e->products, join(c->items[item].sku, place, name));

    if (number == 0)
        return (struct offer){NULL, 0, 0};
    const struct product *p = product_at(e, number);
    uint64_t free = is_short(e, p, 0, c) ? 0 : available(p);
    uint64_t left = quota_left(e, p, c->owner);
    return left < free ? (struct offer){p, left, free - left}
                       : (struct offer){p, free, 0};
}

/* Of all places; returns how many there are. */
static uint32_t find_offers(const struct hold_engine *e,
                            const struct hold_command *c, uint32_t item,
                            struct offer offers[HOLD_PLACES_MAX])
{
    struct hf_bytes place;
    uint32_t count = 0;

    for (size_t at = 0; hold_next_place(c->note, &at, &place);)
        offers[count++] = offer_at(e, c, item, place);
    return count;
}

/* How many items a place has not enough of. */
static uint32_t count_lacking(const struct hold_engine *e,
                              const struct hold_command *c,
                              struct hf_bytes place)
{
    uint32_t lacking = 0;

    for (uint32_t i = 0; i < c->item_count; i++)
        lacking += offer_at(e, c, i, place).free < c->items[i].quantity;
    return lacking;
}

/* The first place of those that lack the fewest items. */
static struct hf_bytes best_place(const struct hold_engine *e,
                                  const struct hold_command *c,
                                  uint32_t *lacking)
{
    struct hf_bytes place;
    struct hf_bytes best = {"", 0};

    *lacking = UINT32_MAX;
    for (size_t at = 0; hold_next_place(c->note, &at, &place);) {
        uint32_t count = count_lacking(e, c, place);
        if (count >= *lacking)
            continue;
        *lacking = count;
        best = place;
    }
    return best;
}

/* ---- SHORT. ---- */

/* No place has any of it: tells the first where it was looked for. */
static bool refuse_unknown(struct hold_engine *e, const struct hold_command *c)
{
    struct offer offers[HOLD_PLACES_MAX];
    char name[HOLD_SKU_MAX];
    struct hf_bytes place;
    size_t at = 0;

    (void)hold_next_place(c->note, &at, &place);
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint32_t count = find_offers(e, c, i, offers);
        while (count > 0 && offers[count - 1].product == NULL)
            count--;
        if (count > 0)
            continue;
        reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_SKU,
                         join(c->items[i].sku, place, name));
        return true;
    }
    return false;
}

/* ---- Limits. ---- */

/* Without an owner nobody could be counted. */
static bool refuse_unowned(struct hold_engine *e, const struct hold_command *c)
{
    struct offer offers[HOLD_PLACES_MAX];

    if (c->owner.len > 0 || hf_index_count(&e->quotas) == 0)
        return false;
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint32_t count = find_offers(e, c, i, offers);
        for (uint32_t k = 0; k < count; k++) {
            struct excess one = {offers[k].product, c->items[i].quantity};
            if (one.product != NULL && quota_most(e, one.product) > 0)
                return refuse_excess(e, c, &one, 1);
        }
    }
    return false;
}

static uint64_t add_up(uint64_t a, uint64_t b)
{
    return a > (uint64_t)HOLD_STOCK_MAX - b ? (uint64_t)HOLD_STOCK_MAX : a + b;
}

/* Of an item over all places; false: they have enough. `over` is the first with
 * a limit but for which they had; NULL: there is too little. */
static bool is_lacking(const struct hold_engine *e,
                       const struct hold_command *c, uint32_t i,
                       struct shortage *out, const struct product **over)
{
    struct offer offers[HOLD_PLACES_MAX];
    uint32_t count = find_offers(e, c, i, offers);
    uint64_t free = 0;
    uint64_t all = 0;

    *over = NULL;

    *out = (struct shortage){c->items[i].sku, c->items[i].quantity, 0, 0};
    for (uint32_t k = 0; k < count; k++) {
        free = add_up(free, offers[k].free);
        all = add_up(all, add_up(offers[k].free, offers[k].over));
        if (offers[k].product == NULL)
            continue;
        if (*over == NULL && offers[k].over > 0)
            *over = offers[k].product;
        out->free = add_up(out->free, available(offers[k].product));
        out->waiting += offers[k].product->waiting;
    }
    if (all < c->items[i].quantity)
        *over = NULL;
    return free < c->items[i].quantity;
}

/* The same of one place. */
static bool is_lacking_at(const struct hold_engine *e,
                          const struct hold_command *c, uint32_t i,
                          struct hf_bytes place, struct shortage *out,
                          const struct product **over)
{
    struct offer offer = offer_at(e, c, i, place);
    uint64_t wanted = c->items[i].quantity;
    /* scratch: a record has more than all these names */
    char *name = e->record.data + (size_t)i * HOLD_SKU_MAX;

    *out = (struct shortage){join(c->items[i].sku, place, name), wanted, 0, 0};
    *over = add_up(offer.free, offer.over) < wanted ? NULL : offer.product;
    if (offer.product != NULL) {
        out->free = available(offer.product);
        out->waiting = offer.product->waiting;
    }
    return offer.free < wanted;
}

bool split_refuse(struct hold_engine *e, const struct hold_command *c)
{
    struct shortage list[HOLD_ITEMS_MAX];
    struct excess excess[HOLD_ITEMS_MAX];
    bool split = hold_split(c) != SPLIT_NONE;
    struct hf_bytes place = {"", 0};
    uint32_t count = 0;
    uint32_t over = 0;

    if (refuse_unknown(e, c) || refuse_unowned(e, c))
        return true;
    if (!split)
        place = best_place(e, c, &count);
    if (!split && count == 0)
        return false;
    count = 0;
    for (uint32_t i = 0; i < c->item_count; i++) {
        const struct product *p;
        bool lacks = split ? is_lacking(e, c, i, &list[count], &p)
                           : is_lacking_at(e, c, i, place, &list[count], &p);
        count += lacks;
        if (lacks && p != NULL)
            excess[over++] = (struct excess){p, c->items[i].quantity};
    }
    if (over > 0)
        return refuse_excess(e, c, excess, over);
    return count > 0 && refuse_shortages(e, list, count);
}

/* ---- The choice. ---- */

/* Is the choice before the other, of as many places? */
static bool is_before(uint32_t choice, uint32_t other)
{
    uint32_t differ = choice ^ other;

    return (choice & (differ & -differ)) != 0;
}

/* The places that FEWEST takes, as bits. There are choices with enough. */
static uint32_t fewest(const struct hold_engine *e,
                       const struct hold_command *c)
{
    struct offer offers[HOLD_PLACES_MAX];
    uint64_t sums[CHOICES];
    bool lacks[CHOICES] = {false};
    uint32_t count = 0;
    uint32_t best = ALL;

    sums[0] = 0;
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint64_t wanted = c->items[i].quantity;
        count = find_offers(e, c, i, offers);
        for (uint32_t choice = 1; choice < 1u << count; choice++) {
            uint64_t free = offers[__builtin_ctz(choice)].free;
            uint64_t sum = sums[choice & (choice - 1)];
            sums[choice] = add_up(sum, free);
            lacks[choice] = lacks[choice] || sums[choice] < wanted;
        }
    }
    for (uint32_t choice = 1; choice < 1u << count; choice++) {
        int more = __builtin_popcount(choice) - __builtin_popcount(best);
        if (!lacks[choice] &&
            (more < 0 || (more == 0 && is_before(choice, best))))
            best = choice;
    }
    return best;
}

/* The items so far, by name. */
struct picked {
    struct hold_item *items;
    uint32_t count;
};

static void pick(const struct hold_engine *e, struct picked *picked,
                 const struct product *product, uint64_t quantity)
{
    struct hf_bytes sku = hf_index_name(&e->products, product);
    uint32_t i = picked->count++;

    for (; i > 0 && hf_bytes_compare(picked->items[i - 1].sku, sku) > 0; i--)
        picked->items[i] = picked->items[i - 1];
    picked->items[i] = (struct hold_item){sku, quantity, quantity};
}

/* Takes one item from the places of `among`. */
static void pick_item(const struct hold_engine *e, const struct hold_command *c,
                      uint32_t i, uint32_t among, struct picked *picked)
{
    struct offer offers[HOLD_PLACES_MAX];
    uint32_t count = find_offers(e, c, i, offers);
    bool ordered = hold_split(c) == SPLIT_ORDER;
    uint64_t left = c->items[i].quantity;

    while (left > 0) {
        struct offer *best = NULL;
        for (uint32_t k = 0; k < count; k++) {
            if ((among >> k & 1) != 0 && offers[k].free > 0 &&
                (best == NULL || (!ordered && offers[k].free > best->free)))
                best = &offers[k];
        }
        assert(best != NULL); /* there is enough */
        uint64_t taken = best->free < left ? best->free : left;
        pick(e, picked, best->product, taken);
        left -= taken;
        best->free = 0;
    }
}

uint32_t split_choose(const struct hold_engine *e, const struct hold_command *c,
                      struct hold_item *out)
{
    struct picked picked = {out, 0};
    uint32_t among = hold_split(c) == SPLIT_FEWEST ? fewest(e, c) : ALL;
    uint32_t lacking;

    if (hold_split(c) != SPLIT_NONE) {
        for (uint32_t i = 0; i < c->item_count; i++)
            pick_item(e, c, i, among, &picked);
        return picked.count;
    }
    struct hf_bytes place = best_place(e, c, &lacking);
    assert(lacking == 0);
    for (uint32_t i = 0; i < c->item_count; i++)
        pick(e, &picked, offer_at(e, c, i, place).product,
             c->items[i].quantity);
    return picked.count;
}

size_t split_bytes(const struct hold_command *c)
{
    struct hf_bytes place;
    size_t longest;
    size_t bytes = 0;
    size_t count = hold_count_places(c->note, &longest);
    size_t names = count * (2 + 1 + 8); /* and the names of the places */

    for (size_t at = 0; hold_next_place(c->note, &at, &place);)
        names += place.len;
    if (hold_split(c) == SPLIT_NONE) {
        count = 1;
        names = 2 + 1 + longest + 8;
    }
    for (uint32_t i = 0; i < c->item_count; i++)
        bytes += count * c->items[i].sku.len + names;
    return bytes;
}

/* ---- A RESERVE that was asked before. ---- */

/* The item of the command, or item_count. */
static uint32_t find_item(const struct hold_command *c, struct hf_bytes sku)
{
    uint32_t i = 0;

    while (i < c->item_count && !hf_bytes_equal(c->items[i].sku, sku))
        i++;
    return i;
}

bool split_may_be(struct hf_bytes items, const struct hold_command *c)
{
    uint64_t left[HOLD_ITEMS_MAX];
    struct hf_bytes first = {"", 0};
    struct hf_bytes sku;
    struct hf_bytes place;
    struct hold_item item;

    for (uint32_t i = 0; i < c->item_count; i++)
        left[i] = c->items[i].quantity;
    for (size_t at = 0; hold_next_item(items, &at, &item);) {
        if (!place_part(item.sku, &sku, &place) ||
            !hold_has_place(c->note, place))
            return false;
        if (first.len == 0)
            first = place;
        if (hold_split(c) == SPLIT_NONE && !hf_bytes_equal(first, place))
            return false;
        uint32_t i = find_item(c, sku);
        if (i == c->item_count || left[i] < item.quantity)
            return false;
        left[i] -= item.quantity;
    }
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (left[i] > 0)
            return false;
    }
    return true;
}
