/* places.c - which places a sku has, and the sums over them. */
#include "hold/places.h"

#include <assert.h>

#include "base/little.h"
#include "hold/path.h"

static struct places *places_edit(struct hold_engine *e, uint32_t number)
{
    return hf_undo_keep(&e->undo, hf_index_at(&e->places, number),
                        sizeof(struct places));
}

static const struct fork *fork_at(const struct hold_engine *e, uint32_t number)
{
    return hf_slab_at(&e->forks, number);
}
static struct fork *fork_edit(struct hold_engine *e, uint32_t number)
{
    return hf_undo_keep(&e->undo, hf_slab_at(&e->forks, number),
                        sizeof(struct fork));
}

/* References: to a fork, and with the lowest bit to a product. */
static bool is_fork(uint32_t ref)
{
    return (ref & 1) == 0;
}
static uint32_t product_ref(uint32_t product)
{
    assert(product < 1u << 31);
    return product << 1 | 1;
}

static struct hf_bytes name_of(const struct hold_engine *e, uint32_t product)
{
    return hf_index_name(&e->products, product_at(e, product));
}

bool place_part(struct hf_bytes name, struct hf_bytes *sku,
                struct hf_bytes *place)
{
    size_t at = name.len;

    if (!hf_bytes_have(name, '@'))
        return false; /* as a rule */
    while (name.data[at - 1] != '@')
        at--;
    *sku = hf_bytes(name.data, at - 1);
    *place = hf_bytes(name.data + at, name.len - at);
    return sku->len > 0 && place->len > 0;
}

void place_need(struct hold_engine *e, struct hf_bytes name, struct need *need)
{
    struct hf_bytes sku;
    struct hf_bytes place;

    if (!place_part(name, &sku, &place))
        return;
    need_record(e, need, &e->places, sku.len);
    need_item(need, &e->forks);
}

/* ---- The tree. ---- */

/* The product at whose name the way that `name` takes ends. */
static uint32_t nearest(const struct hold_engine *e, uint32_t ref,
                        struct hf_bytes name)
{
    while (is_fork(ref)) {
        const struct fork *fork = fork_at(e, ref >> 1);
        ref = fork->under[path_bit(name, fork->bit)];
    }
    return ref >> 1;
}

static uint32_t count_under(const struct hold_engine *e, uint32_t ref)
{
    return is_fork(ref) ? fork_at(e, ref >> 1)->count : 1;
}

/* A place in the tree: under a fork, or the root. */
struct spot {
    uint32_t places;
    uint32_t fork; /* 0: the root */
    uint32_t side;
};

static uint32_t spot_ref(const struct hold_engine *e, struct spot spot)
{
    return spot.fork == 0 ? places_at(e, spot.places)->root
                          : fork_at(e, spot.fork)->under[spot.side];
}

static void spot_set(struct hold_engine *e, struct spot spot, uint32_t ref)
{
    if (spot.fork == 0)
        places_edit(e, spot.places)->root = ref;
    else
        fork_edit(e, spot.fork)->under[spot.side] = ref;
}

/* Goes one step down, past a fork under which there will be one more, or
 * less. */
static struct spot spot_down(struct hold_engine *e, struct spot spot,
                             struct hf_bytes name, int change)
{
    spot.fork = spot_ref(e, spot) >> 1;
    struct fork *fork = fork_edit(e, spot.fork);
    fork->count += (uint32_t)change;
    spot.side = path_bit(name, fork->bit);
    return spot;
}

static enum hf_status tree_add(struct hold_engine *e, uint32_t places,
                               uint32_t product)
{
    struct spot spot = {places, 0, 0};
    struct hf_bytes name = name_of(e, product);
    uint32_t root = places_at(e, places)->root;

    if (root == 0) {
        spot_set(e, spot, product_ref(product));
        return HF_OK;
    }
    uint32_t bit = path_difference(name_of(e, nearest(e, root, name)), name);
    uint32_t number = hf_slab_take(&e->forks);
    if (number == 0)
        return HF_NOMEM;
    while (is_fork(spot_ref(e, spot)) &&
           fork_at(e, spot_ref(e, spot) >> 1)->bit < bit)
        spot = spot_down(e, spot, name, 1);
    uint32_t side = path_bit(name, bit);
    uint32_t other = spot_ref(e, spot);
    struct fork *fork = fork_edit(e, number);
    fork->bit = bit;
    fork->under[side] = product_ref(product);
    fork->under[!side] = other;
    fork->count = count_under(e, other) + 1;
    spot_set(e, spot, number << 1);
    return HF_OK;
}

static void tree_remove(struct hold_engine *e, uint32_t places,
                        uint32_t product)
{
    struct spot above = {places, 0, 0};
    struct spot spot = above;
    struct hf_bytes name = name_of(e, product);

    while (is_fork(spot_ref(e, spot))) {
        above = spot;
        spot = spot_down(e, spot, name, -1);
    }
    assert(spot_ref(e, spot) == product_ref(product));
    if (spot.fork == 0) {
        spot_set(e, spot, 0);
        return;
    }
    spot_set(e, above, fork_at(e, spot.fork)->under[!spot.side]);
    hf_slab_give(&e->forks, spot.fork);
}

uint32_t place_nth(const struct hold_engine *e, const struct places *places,
                   uint32_t position, uint64_t *steps)
{
    uint32_t ref = places->root;

    assert(position < places->count);
    for (++*steps; is_fork(ref); ++*steps) {
        const struct fork *fork = fork_at(e, ref >> 1);
        uint32_t before = count_under(e, fork->under[0]);
        ref = fork->under[position >= before];
        position -= position >= before ? before : 0;
    }
    return ref >> 1;
}

/* ---- The sums. ---- */

static uint32_t number_of(const struct hold_engine *e,
                          const struct product *product)
{
    struct hf_bytes sku;
    struct hf_bytes place;
    bool placed =
        place_part(hf_index_name(&e->products, product), &sku, &place);

    assert(placed);
    (void)placed;
    return hf_index_find(&e->places, sku);
}

struct places *places_of(struct hold_engine *e, const struct product *product)
{
    return places_edit(e, number_of(e, product));
}

enum hf_status place_add(struct hold_engine *e, uint32_t product)
{
    struct product *p = product_edit(e, product);
    struct hf_bytes sku;
    struct hf_bytes place;

    if (!place_part(hf_index_name(&e->products, p), &sku, &place))
        return HF_OK;
    uint32_t number = hf_index_find(&e->places, sku);
    if (number == 0)
        number = hf_index_add(&e->places, sku);
    if (number == 0 || tree_add(e, number, product) != HF_OK)
        return HF_NOMEM;
    struct places *places = places_edit(e, number);
    places->count++;
    places->total += p->total;
    places->reserved += p->reserved;
    places->sold += p->sold;
    p->is_placed = true;
    return HF_OK;
}

void place_remove(struct hold_engine *e, uint32_t product)
{
    const struct product *p = product_at(e, product);
    uint32_t number = number_of(e, p);
    struct places *places = places_edit(e, number);

    places->total -= p->total;
    places->reserved -= p->reserved;
    places->sold -= p->sold;
    tree_remove(e, number, product);
    if (--places->count == 0)
        hf_index_remove(&e->places, number);
}

/* ---- STOCK PLACES. ---- */

/* What cannot be told is told as the most that can. */
static int64_t told_sum(hold_wide sum)
{
    return sum > INT64_MAX ? INT64_MAX : (int64_t)sum;
}

static void reply_sums(struct hf_buf *body, const struct places *p)
{
    reply_field_number(body, FIELD_TOTAL, told_sum(p->total));
    reply_field_number(body, FIELD_AVAILABLE,
                       told_sum(p->total - p->reserved - p->sold));
    reply_field_number(body, FIELD_RESERVED, told_sum(p->reserved));
    reply_field_number(body, FIELD_SOLD, told_sum(p->sold));
    reply_field_number(body, FIELD_COUNT, p->count);
}

static void reply_place(struct hold_engine *e, uint32_t number)
{
    const struct product *p = product_at(e, number);
    struct hf_bytes sku;
    struct hf_bytes place;

    (void)place_part(hf_index_name(&e->products, p), &sku, &place);
    reply_product(e, p, 1);
    reply_field_text(&e->body, FIELD_PLACE, place);
}

/* Of a place, in an answer. */
#define PLACE_BYTES (2 * HOLD_SKU_MAX + 160u)

void places_show(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->places, c->name);
    struct hf_buf *body = &e->body;
    uint64_t most = c->count > 0 ? c->count : HOLD_LIST_MAX;
    uint64_t steps = 0;
    uint32_t shown = 0;

    if (number == 0) {
        reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_SKU, c->name);
        return;
    }
    const struct places *places = places_at(e, number);
    reply_map(body, 8);
    reply_field_text(body, FIELD_SKU, c->name);
    reply_sums(body, places);
    reply_field(body, FIELD_PLACES);
    reply_list(body, 0);
    size_t count_at = body->len - 4;
    uint64_t at = c->cursor;
    for (; at < places->count && shown < most && shown < HOLD_LIST_MAX &&
           steps < HOLD_STEPS_MAX && body->cap - body->len >= 2 * PLACE_BYTES;
         at++, shown++)
        reply_place(e, place_nth(e, places, (uint32_t)at, &steps));
    e->out.work += steps;
    hf_put_u32(body->data + count_at, shown);
    reply_field_number(body, FIELD_CURSOR,
                       at < places->count ? (int64_t)at : 0);
}
