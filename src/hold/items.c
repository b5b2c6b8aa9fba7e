/* items.c - the items of a command: products with quantities, or names; and the
 * places that they are to come from. */
#include <assert.h>

#include "hold/command.h"
#include "hold/schema.h"

/* Opens a gap for an item that is to stand at `i`. */
static struct hold_item *open_gap(struct hold_command *command, uint32_t i)
{
    memmove(&command->items[i + 1], &command->items[i],
            (command->item_count - i) * sizeof command->items[0]);
    command->item_count++;
    return &command->items[i];
}

enum hf_status hold_add_name(struct hold_command *command, struct hf_bytes name,
                             bool shared)
{
    uint32_t i = 0;

    for (; i < command->item_count; i++) {
        int order = hf_bytes_compare(command->items[i].sku, name);
        if (order == 0)
            return HF_INVALID;
        if (order > 0)
            break;
    }
    if (command->item_count == HOLD_SET_MAX)
        return HF_FULL;
    *open_gap(command, i) = (struct hold_item){
        .sku = name,
        .quantity = shared ? HOLD_PART_SHARED : HOLD_PART_EXCLUSIVE};
    return HF_OK;
}

enum hf_status hold_add_item(struct hold_command *command, struct hf_bytes sku,
                             uint64_t quantity)
{
    return hold_add_some(command, sku, quantity, quantity);
}

enum hf_status hold_add_some(struct hold_command *command, struct hf_bytes sku,
                             uint64_t quantity, uint64_t least)
{
    uint32_t i = 0;

    bool mins = command->mins || least < quantity;

    for (; i < command->item_count; i++) {
        struct hold_item *item = &command->items[i];
        int order = hf_bytes_compare(item->sku, sku);
        if (order == 0) {
            if (__builtin_add_overflow(item->quantity, quantity, &quantity) ||
                quantity > (uint64_t)HOLD_STOCK_MAX)
                return HF_INVALID;
            item->quantity = quantity;
            item->least += least; /* each is at most the quantity */
            command->mins = mins;
            return HF_OK;
        }
        if (order > 0)
            break;
    }
    if (quantity > (uint64_t)HOLD_STOCK_MAX)
        return HF_INVALID;
    if (command->item_count == HOLD_ITEMS_MAX)
        return HF_FULL;
    *open_gap(command, i) = (struct hold_item){sku, quantity, least};
    command->mins = mins;
    return HF_OK;
}

/* ---- Places. ---- */

bool hold_next_place(struct hf_bytes places, size_t *at, struct hf_bytes *out)
{
    if (*at > places.len || places.len == 0)
        return false;
    const char *from = places.data + *at;
    const char *end = memchr(from, '@', places.len - *at);
    size_t len = end == NULL ? places.len - *at : (size_t)(end - from);
    *out = hf_bytes(from, len);
    *at += len + 1;
    return true;
}

bool hold_has_place(struct hf_bytes places, struct hf_bytes place)
{
    struct hf_bytes one;

    for (size_t at = 0; hold_next_place(places, &at, &one);) {
        if (hf_bytes_equal(one, place))
            return true;
    }
    return false;
}

uint32_t hold_count_places(struct hf_bytes places, size_t *longest)
{
    struct hf_bytes place;
    uint32_t count = 0;
    size_t from = 0;

    *longest = 0;
    for (size_t at = 0; hold_next_place(places, &at, &place); from = at) {
        struct hf_bytes before = hf_bytes(places.data, from > 0 ? from - 1 : 0);
        if (place.len == 0 || ++count > HOLD_PLACES_MAX ||
            hold_has_place(before, place))
            return 0;
        *longest = place.len > *longest ? place.len : *longest;
    }
    return count;
}

enum hf_status hold_add_place(struct hold_command *command,
                              struct hf_bytes place)
{
    size_t at = command->note.len;
    size_t longest;

    if (place.len == 0 || hf_bytes_have(place, '@') ||
        hold_has_place(command->note, place))
        return HF_INVALID;
    if (at + (at > 0) + place.len > HOLD_NOTE_MAX ||
        hold_count_places(command->note, &longest) == HOLD_PLACES_MAX)
        return HF_FULL;
    if (at > 0)
        command->places[at++] = '@';
    memcpy(command->places + at, place.data, place.len);
    command->note = hf_bytes(command->places, at + place.len);
    return HF_OK;
}

bool hold_next_item(struct hf_bytes items, size_t *at, struct hold_item *out)
{
    if (*at == items.len)
        return false;
    const char *place = items.data + *at;
    size_t len = hf_get_u16(place);
    out->sku = hf_bytes(place + 2, len);
    out->quantity = hf_get_u64(place + 2 + len);
    *at += 2 + len + 8;
    assert(*at <= items.len);
    return true;
}

/* ---- In records. ---- */

/* Of each item some, of at least one not all. */
static enum hf_status check_mins(const struct hold_command *c)
{
    bool less = false;

    for (uint32_t i = 0; i < c->item_count; i++) {
        if (c->items[i].least == 0 || c->items[i].least > c->items[i].quantity)
            return HF_CORRUPT;
        less = less || c->items[i].least < c->items[i].quantity;
    }
    return less && c->kind == HOLD_RESERVE ? HF_OK : HF_CORRUPT;
}

/* Each name of a set comes once, in order. */
static enum hf_status check_names(const struct hold_command *c)
{
    uint64_t most = !c->owners     ? HOLD_PART_SHARED
                    : c->count > 0 ? c->count
                                   : c->item_count;

    if (c->item_count > HOLD_SET_MAX)
        return HF_CORRUPT;
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint64_t number = c->items[i].quantity;
        if (number == 0 || number > most ||
            (i > 0 &&
             hf_bytes_compare(c->items[i - 1].sku, c->items[i].sku) >= 0))
            return HF_CORRUPT;
    }
    return HF_OK;
}

/* A key, or several that are new, or are ended or renewed, each once. Those
 * that have an owner each are told so. */
static enum hf_status check_keys(const struct hold_command *c)
{
    bool nx = c->kind == HOLD_KEY_SET &&
              (c->flags & ~(uint64_t)(HOLD_SAY_MASK | HOLD_AT)) == HOLD_NX;
    bool several = c->kind != HOLD_KEY_SET || nx;
    bool first = hold_say(c) == SAY_FIRST;

    if ((first && (!nx || c->permits != 0)) ||
        c->owners != (first && c->item_count > 0) ||
        (c->owners && c->owner.len > 0))
        return HF_CORRUPT;
    if ((c->name.len > 0) == (c->item_count > 0) || hold_say(c) >= SAYS ||
        (c->item_count > 0 && (!several || c->permits != 0)) ||
        (c->permits != 0 && (c->flags & HOLD_AT) != 0))
        return HF_CORRUPT;
    return check_names(c);
}

/* Reserved quantities are summed up without an overflow check later on: each
 * item is at least 1, at most the most units a product can have, and each
 * product comes once, in order. */
enum hf_status hold_check_items(const struct hold_command *c)
{
    uint64_t options = hold_operations[c->kind].options;

    if ((options & HOLD_BIT(ARG_MEMBER)) != 0)
        return check_names(c);
    if (hold_is_key(c->kind) && hold_kind_is_write(c->kind))
        return check_keys(c);
    if (hold_is_key(c->kind))
        return hold_say(c) < SAYS ? HF_OK : HF_CORRUPT;
    if ((options & (HOLD_BIT(ARG_ITEM) | HOLD_BIT(ARG_PART))) == 0 &&
        hold_operations[c->kind].words[0] != WORD_WANTED)
        return c->mins ? HF_CORRUPT : HF_OK;
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint64_t quantity = c->items[i].quantity;
        if (c->items[i].sku.len > HOLD_SKU_MAX || quantity == 0 ||
            quantity > (uint64_t)HOLD_STOCK_MAX ||
            (i > 0 &&
             hf_bytes_compare(c->items[i - 1].sku, c->items[i].sku) >= 0))
            return HF_CORRUPT;
    }
    return c->mins ? check_mins(c) : HF_OK;
}
