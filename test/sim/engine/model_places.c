/* model_places.c - products at several places, in the model. */
#include <assert.h>
#include <stdlib.h>

#include "base/little.h"
#include "sim/engine/model.h"

/* sku@place, and the product of that name; NULL: there is none. */
static struct model_text join(struct hf_bytes sku, struct hf_bytes place)
{
    struct model_text name = model_text(sku);

    name.data[name.len++] = '@';
    memcpy(name.data + name.len, place.data, place.len);
    name.len += place.len;
    return name;
}

static struct model_product *find_at(struct model *model, struct hf_bytes sku,
                                     struct hf_bytes place)
{
    struct model_text name = join(sku, place);

    return model_find_product(model, model_bytes(&name));
}

/* The places of the command, by number. */
static size_t list_places(const struct hold_command *c, struct hf_bytes *out)
{
    size_t count = 0;

    for (size_t at = 0, i = 0; i <= c->note.len; i++) {
        if (i < c->note.len && c->note.data[i] != '@')
            continue;
        out[count++] = hf_bytes(c->note.data + at, i - at);
        at = i + 1;
    }
    return count;
}

/* How many units of the item are there. */
static __int128 all_at(struct model *model, const struct hold_item *item,
                       struct hf_bytes place)
{
    struct model_product *p = find_at(model, item->sku, place);

    if (p == NULL || model_count_buyers(model, model_bytes(&p->sku)) > 0)
        return 0;
    return p->total - p->reserved - p->sold;
}

/* The owner of the command that is carried out. */
static struct hf_bytes asking;

/* How many of them it may take. */
static __int128 free_at(struct model *model, const struct hold_item *item,
                        struct hf_bytes place)
{
    __int128 all = all_at(model, item, place);
    struct model_product *p = find_at(model, item->sku, place);

    if (p != NULL && all > (__int128)model_left(model, p, asking))
        all = (__int128)model_left(model, p, asking);
    return all;
}

static int64_t bounded(__int128 sum)
{
    return sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
}

/* ---- SHORT. ---- */

/* A map about the item at these places, under a name; `more` fields follow. */
static void write_short(struct model *model, struct hf_buf *out,
                        const struct hold_item *item, struct hf_bytes name,
                        const struct hf_bytes *places, size_t count,
                        uint32_t more)
{
    __int128 units = 0;
    size_t waiting = 0;

    for (size_t k = 0; k < count; k++) {
        struct model_product *p = find_at(model, item->sku, places[k]);
        if (p == NULL)
            continue;
        units += p->total - p->reserved - p->sold;
        waiting += model_count_buyers(model, model_bytes(&p->sku));
    }
    reply_map(out, (waiting > 0 ? 4 : 3) + more);
    reply_field_text(out, FIELD_SKU, name);
    reply_field_number(out, FIELD_REQUESTED, (int64_t)item->quantity);
    reply_field_number(out, FIELD_AVAILABLE, bounded(units));
    if (waiting > 0)
        reply_field_number(out, FIELD_WAITING, (int64_t)waiting);
}

static bool lacks(struct model *model, const struct hold_item *item,
                  const struct hf_bytes *places, size_t count)
{
    __int128 units = 0;

    for (size_t k = 0; k < count; k++)
        units += free_at(model, item, places[k]);
    return units < (__int128)item->quantity;
}

static uint32_t count_lacking(struct model *model, const struct hold_command *c,
                              const struct hf_bytes *places, size_t count)
{
    uint32_t lacking = 0;

    for (uint32_t i = 0; i < c->item_count; i++)
        lacking += lacks(model, &c->items[i], places, count);
    return lacking;
}

/* The first of the places where a limit holds units back, without which the
 * item had enough; NULL: it had not. */
static struct model_product *find_over(struct model *model,
                                       const struct hold_item *item,
                                       const struct hf_bytes *places,
                                       size_t count)
{
    struct model_product *over = NULL;
    __int128 units = 0;

    for (size_t k = 0; k < count; k++) {
        __int128 all = all_at(model, item, places[k]);
        units += all;
        if (over == NULL && free_at(model, item, places[k]) < all)
            over = find_at(model, item->sku, places[k]);
    }
    return units < (__int128)item->quantity ? NULL : over;
}

static bool refuse_over(struct model *model, const struct hold_command *c,
                        const struct hf_bytes *places, size_t count)
{
    struct model_product *products[HOLD_ITEMS_MAX];
    uint64_t wanted[HOLD_ITEMS_MAX];
    size_t over = 0;

    for (uint32_t i = 0; i < c->item_count; i++) {
        struct model_product *p =
            lacks(model, &c->items[i], places, count)
                ? find_over(model, &c->items[i], places, count)
                : NULL;
        if (p == NULL)
            continue;
        products[over] = p;
        wanted[over++] = c->items[i].quantity;
    }
    return over > 0 && model_refuse_excess(model, c, products, wanted, over);
}

static bool refuse_unowned(struct model *model, const struct hold_command *c,
                           const struct hf_bytes *places, size_t count)
{
    uint64_t none = 0;

    for (uint32_t i = 0; i < c->item_count && c->owner.len == 0; i++) {
        for (size_t k = 0; k < count; k++) {
            struct model_product *p =
                find_at(model, c->items[i].sku, places[k]);
            if (p != NULL && p->limit > 0)
                return model_refuse_excess(model, c, &p, &none, 1);
        }
    }
    return false;
}

/* True if these places together lack some items, with the refusal written;
 * `one`: they are one, which is told. */
static bool refuse_short(struct model *model, const struct hold_command *c,
                         const struct hf_bytes *places, size_t count, bool one)
{
    uint32_t lacking = count_lacking(model, c, places, count);
    bool listed = lacking > 1;
    bool first = true;
    struct hf_buf *out = NULL;

    if (lacking == 0)
        return false;
    if (refuse_over(model, c, places, count))
        return true;
    out = model_reply(model, HOLD_SHORT);
    for (uint32_t i = 0; i < c->item_count; i++) {
        const struct hold_item *item = &c->items[i];
        struct model_text joined = join(item->sku, places[0]);
        struct hf_bytes name = one ? model_bytes(&joined) : item->sku;
        if (!lacks(model, item, places, count))
            continue;
        if (first)
            write_short(model, out, item, name, places, count, listed);
        if (first && listed) {
            reply_field(out, FIELD_ITEMS);
            reply_list(out, lacking);
        }
        if (listed)
            write_short(model, out, item, name, places, count, 0);
        first = false;
    }
    return true;
}

static bool refuse_unknown(struct model *model, const struct hold_command *c,
                           const struct hf_bytes *places, size_t count)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        size_t known = 0;
        for (size_t k = 0; k < count; k++)
            known += find_at(model, c->items[i].sku, places[k]) != NULL;
        if (known > 0)
            continue;
        struct model_text name = join(c->items[i].sku, places[0]);
        struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_SKU, model_bytes(&name));
        return true;
    }
    return false;
}

/* ---- The choice. ---- */

/* Tries to choose `more` of the places from `from` on, in order, behind those
 * that were chosen. */
static bool choose(struct model *model, const struct hold_command *c,
                   const struct hf_bytes *places, size_t count, size_t from,
                   size_t more, struct hf_bytes *chosen, size_t *chosen_count)
{
    if (more == 0)
        return count_lacking(model, c, chosen, *chosen_count) == 0;
    for (size_t k = from; k < count; k++) {
        chosen[(*chosen_count)++] = places[k];
        if (choose(model, c, places, count, k + 1, more - 1, chosen,
                   chosen_count))
            return true;
        --*chosen_count;
    }
    return false;
}

/* Takes what the item wants from the places, one after the other as they
 * stand. */
static void take(struct model *model, const struct hold_item *item,
                 const struct hf_bytes *places, size_t count,
                 struct hold_command *out)
{
    __int128 left = (__int128)item->quantity;

    for (size_t k = 0; k < count && left > 0; k++) {
        __int128 units = free_at(model, item, places[k]);
        if (units > left)
            units = left;
        if (units == 0)
            continue;
        struct model_product *p = find_at(model, item->sku, places[k]);
        hold_add_item(out, model_bytes(&p->sku), (uint64_t)units);
        left -= units;
    }
    assert(left == 0);
}

/* Sorts them by what they have, the most first; equal ones stay in order. */
static void sort(struct model *model, const struct hold_item *item,
                 struct hf_bytes *places, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        for (size_t k = i; k > 0 && free_at(model, item, places[k - 1]) <
                                        free_at(model, item, places[k]);
             k--) {
            struct hf_bytes place = places[k];
            places[k] = places[k - 1];
            places[k - 1] = place;
        }
    }
}

bool model_choose_places(struct model *model, const struct hold_command *c,
                         struct hold_command *out)
{
    struct hf_bytes places[HOLD_PLACES_MAX];
    struct hf_bytes chosen[HOLD_PLACES_MAX];
    size_t count = list_places(c, places);
    size_t chosen_count = 0;
    enum hold_split split = hold_split(c);
    size_t best = 0;

    *out = *c;
    out->item_count = 0;
    out->note = hf_bytes("", 0);
    asking = c->owner;
    if (refuse_unknown(model, c, places, count) ||
        refuse_unowned(model, c, places, count))
        return false;
    if (split == SPLIT_NONE) {
        for (size_t k = 1; k < count; k++) {
            if (count_lacking(model, c, &places[k], 1) <
                count_lacking(model, c, &places[best], 1))
                best = k;
        }
        places[0] = places[best];
        count = 1;
    }
    if (refuse_short(model, c, places, count, split == SPLIT_NONE))
        return false;
    memcpy(chosen, places, sizeof chosen);
    for (size_t n = 1; split == SPLIT_FEWEST && chosen_count == 0; n++)
        choose(model, c, places, count, 0, n, chosen, &chosen_count);
    if (split == SPLIT_FEWEST)
        count = chosen_count;
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (split == SPLIT_MOST || split == SPLIT_FEWEST) {
            memcpy(places, chosen, sizeof places);
            sort(model, &c->items[i], places, count);
        }
        take(model, &c->items[i], places, count, out);
    }
    model->figures[FIGURE_PLACED]++;
    model->figures[FIGURE_PLACED_SPLIT] += out->item_count > c->item_count;
    return true;
}

bool model_may_be_placed(const struct model_reservation *r,
                         const struct hold_command *c)
{
    struct hf_bytes places[HOLD_PLACES_MAX];
    size_t count = list_places(c, places);
    size_t used = 0; /* items that some place explains */
    size_t whole = 0;

    for (size_t k = 0; k < count; k++) {
        size_t before = used;
        for (uint32_t i = 0; i < c->item_count; i++) {
            struct model_text name = join(c->items[i].sku, places[k]);
            for (size_t j = 0; j < r->item_count; j++)
                used += model_is(&r->items[j].sku, model_bytes(&name));
        }
        whole += used > before;
    }
    for (uint32_t i = 0; i < c->item_count; i++) {
        __int128 sum = 0;
        for (size_t k = 0; k < count; k++) {
            struct model_text name = join(c->items[i].sku, places[k]);
            for (size_t j = 0; j < r->item_count; j++) {
                if (model_is(&r->items[j].sku, model_bytes(&name)))
                    sum += (__int128)r->items[j].quantity;
            }
        }
        if (sum != (__int128)c->items[i].quantity)
            return false;
    }
    return used == r->item_count && (whole == 1 || hold_split(c) != SPLIT_NONE);
}

/* ---- STOCK PLACES. ---- */

static int compare(const void *a, const void *b)
{
    return hf_bytes_compare(
        model_bytes(&(*(struct model_product *const *)a)->sku),
        model_bytes(&(*(struct model_product *const *)b)->sku));
}

/* All products that are the sku at a place, by name. */
static size_t find_places(struct model *model, struct hf_bytes sku,
                          struct model_product **out)
{
    size_t count = 0;

    for (size_t i = 0; i < model->product_count; i++) {
        struct model_product *p = &model->products[i];
        struct hf_bytes name = model_bytes(&p->sku);
        if (name.len < sku.len + 2 || name.data[sku.len] != '@' ||
            memcmp(name.data, sku.data, sku.len) != 0 ||
            memchr(name.data + sku.len + 1, '@', name.len - sku.len - 1) !=
                NULL)
            continue;
        out[count++] = p;
    }
    if (count > 0)
        qsort(out, count, sizeof *out, compare);
    return count;
}

void model_show_places(struct model *model, const struct hold_command *c)
{
    static struct model_product *found[MODEL_MAX];
    size_t count = find_places(model, c->name, found);
    size_t most = c->count > 0 ? c->count : HOLD_LIST_MAX;
    size_t end = c->cursor + most < count ? c->cursor + most : count;
    __int128 total = 0;
    __int128 reserved = 0;
    __int128 sold = 0;
    struct hf_buf *out =
        model_reply(model, count == 0 ? HOLD_NOTFOUND : HOLD_OK);

    reply_map(out, count == 0 ? 1 : 8);
    reply_field_text(out, FIELD_SKU, c->name);
    if (count == 0)
        return;
    for (size_t i = 0; i < count; i++) {
        total += found[i]->total;
        reserved += found[i]->reserved;
        sold += found[i]->sold;
    }
    reply_field_number(out, FIELD_TOTAL, bounded(total));
    reply_field_number(out, FIELD_AVAILABLE, bounded(total - reserved - sold));
    reply_field_number(out, FIELD_RESERVED, bounded(reserved));
    reply_field_number(out, FIELD_SOLD, bounded(sold));
    reply_field_number(out, FIELD_COUNT, (int64_t)count);
    reply_field(out, FIELD_PLACES);
    reply_list(out, (uint32_t)(c->cursor < end ? end - c->cursor : 0));
    for (size_t i = c->cursor; i < end; i++) {
        struct hf_bytes name = model_bytes(&found[i]->sku);
        size_t at = c->name.len + 1;
        size_t map_at = out->len;
        model_write_product(model, out, found[i], false);
        hf_put_u32(out->data + map_at + 1, 10); /* and one more */
        reply_field_text(out, FIELD_PLACE,
                         hf_bytes(name.data + at, name.len - at));
    }
    reply_field_number(out, FIELD_CURSOR, end < count ? (int64_t)end : 0);
}
