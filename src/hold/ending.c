/* ending.c - how reservations end: confirmed, cancelled or expired; or change.
 *
 * A CANCEL of some items frees them, and the reservation goes on with the rest.
 * A CONFIRM of some items frees all others first, as a CANCEL of them would,
 * and sells what is left; so the events of both add up alike.
 */
#include <assert.h>

#include "base/little.h"
#include "hold/bundle.h"
#include "hold/expect.h"
#include "hold/places.h"
#include "hold/quota.h"
#include "hold/reserve.h"

/* Units of an item that are set aside are sold, or free again. */
static void units_give(struct hold_engine *e, const struct hold_item *item,
                       bool sold, uint64_t seq)
{
    uint32_t number = hf_index_find(&e->products, item->sku);
    assert(number != 0); /* a product with reserved units stays */
    struct product *p = product_edit(e, number);

    assert(p->reserved >= item->quantity);
    p->reserved -= item->quantity;
    if (p->reserved == 0)
        p->ends_us = 0;
    e->stock_reserved -= item->quantity;
    if (sold) {
        p->sold += item->quantity;
        e->stock_sold += item->quantity;
    }
    if (p->is_placed) {
        struct places *places = places_of(e, p);
        places->reserved -= item->quantity;
        places->sold += sold ? item->quantity : 0;
    }
    p->version = seq;
    p->updated_us = e->now_us;
    if (!sold && p->waiting > 0)
        waitlist_list(e, number);
}

/* The one place where a reservation changes its status. */
static void end(struct hold_engine *e, uint32_t number, uint32_t status,
                uint64_t seq)
{
    struct reservation *r = reservation_edit(e, number);
    struct hold_item item;

    assert(r->status == RESERVATION_PENDING);
    assert(status != RESERVATION_PENDING);
    for (size_t at = 0; hold_next_item(items_of(e, r), &at, &item);)
        units_give(e, &item, status == RESERVATION_CONFIRMED, seq);
    quota_give(e, r, items_of(e, r));
    if (status != RESERVATION_EXPIRED)
        bundle_leave(e, number);
    r->status = status;
    r->ended_us = e->now_us;
    hf_agenda_remove(&e->due, r->due);
    list_append(RESERVATIONS(e), &e->ended, number);
    assert(e->pending > 0);
    e->pending--;
    if (status != RESERVATION_CONFIRMED)
        levels_tell(e, items_of(e, r), false);
}

void reservation_expire(struct hold_engine *e, uint32_t number)
{
    struct reservation *r = reservation_edit(e, number);

    assert(r->expires_us <= e->now_us);
    uint64_t seq =
        emit(e, EVENT_RESERVATION_EXPIRED, hf_index_name(&e->reservations, r),
             e->now_us - r->expires_us);
    emit_age(e, r->created_us);
    tell_reservation(e, r, hf_bytes("", 0), items_of(e, r));
    end(e, number, RESERVATION_EXPIRED, seq);
    waitlist_serve(e);
}

bool reservation_has_ended(const void *record)
{
    uint32_t status = ((const struct reservation *)record)->status;

    return status != RESERVATION_PENDING && status < RESERVATION_WAITING;
}

bool reservation_is_over(const struct hold_engine *e, uint32_t number)
{
    return number != 0 &&
           reservation_at(e, number)->status == RESERVATION_PENDING &&
           reservation_at(e, number)->expires_us <= e->now_us;
}

/* Something is due: may the reservation be another for it? One that waits ends
 * when its wait does, and is served by whatever else ends. */
bool reservation_may_be_over(const struct hold_engine *e, uint32_t number)
{
    return reservation_is_over(e, number) ||
           (number != 0 &&
            reservation_at(e, number)->status == RESERVATION_WAITING);
}

void reservation_settle(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->reservations, c->name);

    if (reservation_is_over(e, number))
        reservation_expire(e, number);
}

/* ---- In part: the items of a command are some of the reservation's. ---- */

static bool refuse_part(struct hold_engine *e, const struct hold_command *c,
                        const struct hold_item *item, uint64_t has)
{
    struct hf_buf *body = refuse(e, HOLD_BADARG, 4);

    reply_field_text(body, FIELD_ID, c->name);
    reply_field_text(body, FIELD_SKU, item->sku);
    reply_field_number(body, FIELD_REQUESTED, (int64_t)item->quantity);
    reply_field_number(body, FIELD_RESERVED, (int64_t)has);
    return true;
}

/* Both are in order. */
static bool check_parts(struct hold_engine *e, const struct hold_command *c,
                        const struct reservation *r)
{
    struct hold_item item;
    uint32_t i = 0;

    for (size_t at = 0;
         i < c->item_count && hold_next_item(items_of(e, r), &at, &item);) {
        if (!hf_bytes_equal(c->items[i].sku, item.sku))
            continue;
        if (c->items[i].quantity > item.quantity)
            return refuse_part(e, c, &c->items[i], item.quantity);
        i++;
    }
    return i < c->item_count && refuse_part(e, c, &c->items[i], 0);
}

/* ---- Time. ---- */

/* What counts for it: its class, or the settings. */
struct caps {
    uint64_t grace_ms;
    uint64_t extends_max;
    uint64_t life_ms;
};

static struct caps caps_of(const struct hold_engine *e,
                           const struct reservation *r)
{
    const struct class *class = class_of(e, r->class);

    if (class != NULL)
        return (struct caps){class->grace_ms, class->extends_max,
                             class->life_ms};
    return (struct caps){e->bounds.grace_ms, e->bounds.extends_max,
                         e->bounds.extend_total_ms};
}

static bool is_in_grace(const struct hold_engine *e,
                        const struct reservation *r, uint64_t now_us)
{
    bool open =
        r->status == RESERVATION_PENDING || r->status == RESERVATION_EXPIRED;

    return e->grace_ms > 0 && open && r->expires_us <= now_us &&
           now_us < r->expires_us + caps_of(e, r).grace_ms * US_PER_MS;
}

bool reservation_has_grace(const struct hold_engine *e,
                           const struct reservation *r)
{
    return r->status == RESERVATION_EXPIRED && is_in_grace(e, r, e->now_us);
}

bool reservation_may_change(const struct hold_engine *e,
                            const struct hold_command *c)
{
    bool confirms = c->kind == HOLD_CONFIRM && e->grace_ms > 0;
    bool waits =
        !e->old_waits && e->waitlist.first != 0 && hold_kind_ends(c->kind);
    uint32_t number =
        confirms || waits ? hf_index_find(&e->reservations, c->name) : 0;

    if (number == 0)
        return false;
    const struct reservation *r = reservation_at(e, number);
    return (waits && r->status == RESERVATION_WAITING) ||
           (confirms && is_in_grace(e, r, max_u64(e->now_us, c->now_us)));
}

static bool refuse_cap(struct hold_engine *e, const struct hold_command *c,
                       const char *limit, uint64_t maximum)
{
    struct hf_buf *body = refuse(e, HOLD_STATE, 3);

    reply_field_text(body, FIELD_ID, c->name);
    reply_field_text(body, FIELD_LIMIT, hf_bytes_text(limit));
    reply_field_number(body, FIELD_MAXIMUM, (int64_t)maximum);
    return true;
}

static bool check_caps(struct hold_engine *e, const struct hold_command *c,
                       const struct reservation *r)
{
    struct caps caps = caps_of(e, r);

    if (caps.extends_max > 0 && r->extends >= caps.extends_max)
        return refuse_cap(e, c, "extensions", caps.extends_max);
    if (caps.life_ms > 0 && e->now_us + c->ttl_ms * US_PER_MS >
                                r->created_us + caps.life_ms * US_PER_MS)
        return refuse_cap(e, c, "ms of life", caps.life_ms);
    return false;
}

/* Is there still enough for one that has expired? */
static bool check_late(struct hold_engine *e, const struct hold_command *c,
                       const struct reservation *r)
{
    struct hold_item items[HOLD_ITEMS_MAX];
    uint32_t count = 0;

    if (c->item_count > 0)
        return check_parts(e, c, r) ||
               refuse_list(e, c, c->items, c->item_count);
    for (size_t at = 0; hold_next_item(items_of(e, r), &at, &items[count]);)
        count++;
    return refuse_list(e, c, items, count);
}

void ending_need(struct hold_engine *e, const struct hold_command *c,
                 struct need *need)
{
    need_text(e, need, c->reason.len);
    need->shows = true;
}

bool ending_check(struct hold_engine *e, const struct hold_command *c,
                  struct target at)
{
    if (at.number == 0)
        return refuse_id(e, HOLD_NOTFOUND, c->name);
    struct reservation *r = reservation_edit(e, at.number);
    assert(!reservation_is_over(e, at.number));
    if (r->status == RESERVATION_PENDING && c->kind == HOLD_EXTEND)
        return check_caps(e, c, r);
    if (r->status == RESERVATION_PENDING)
        return c->item_count > 0 && check_parts(e, c, r);
    if (r->status == RESERVATION_BOOKED && c->kind == HOLD_CANCEL &&
        (c->item_count == 0 || same_items(e, r, c)))
        return false;
    if (c->kind == HOLD_CONFIRM && reservation_has_grace(e, r))
        return check_late(e, c, r);
    if (r->status != RESERVATION_EXPIRED)
        return refuse_status(e, r, c->name);
    struct hf_buf *body = refuse(e, HOLD_EXPIRED, 2);
    reply_field_text(body, FIELD_ID, c->name);
    reply_field_number(body, FIELD_EXPIRES_MS,
                       (int64_t)((e->now_us - r->expires_us) / US_PER_MS));
    return true;
}

/* Writes what the reservation has beyond the items of the command. */
static struct hf_bytes put_rest(const struct hold_engine *e,
                                const struct hold_command *c,
                                const struct reservation *r, char *out)
{
    struct hold_item item;
    char *end = out;
    uint32_t i = 0;

    for (size_t at = 0; hold_next_item(items_of(e, r), &at, &item);) {
        if (i < c->item_count && hf_bytes_equal(c->items[i].sku, item.sku))
            item.quantity -= c->items[i++].quantity;
        if (item.quantity == 0)
            continue;
        end = hold_put_text(end, item.sku);
        hf_put_u64(end, item.quantity);
        end += 8;
    }
    return hf_bytes(out, (size_t)(end - out));
}

/* In the place of the old ones, which are as long or longer: no memory is
 * needed. */
static void replace_items(struct hold_engine *e, struct reservation *r,
                          struct hf_bytes items)
{
    char *place =
        hf_slab_at(&e->texts.slabs[r->items.size_class], r->items.slot);

    assert(items.len > 0);
    assert(items.len <= r->items.len);
    (void)hf_undo_keep(&e->undo, place, r->items.len);
    memcpy(place, items.data, items.len);
    r->items.len = (uint16_t)items.len;
}

/* Frees the items of a CANCEL, or all others of a CONFIRM: the reservation has
 * the rest. */
static void free_part(struct hold_engine *e, const struct hold_command *c,
                      struct reservation *r)
{
    bool confirm = c->kind == HOLD_CONFIRM;
    char *named = e->record.data; /* scratch: a record has more than this */
    struct hold_item item;

    struct hf_bytes items =
        hf_bytes(named, (size_t)(hold_put_items(named, c) - named));
    /* scratch, too: there is room for a reply, which is longer */
    struct hf_bytes rest = put_rest(e, c, r, e->body.data + e->body.len);
    struct hf_bytes freed = confirm ? rest : items;
    uint64_t seq = emit(e, EVENT_REDUCED, c->name, 0);
    tell_reservation(e, r, c->reason, freed);
    for (size_t at = 0; hold_next_item(freed, &at, &item);)
        units_give(e, &item, false, seq);
    quota_give(e, r, freed);
    levels_tell(e, freed, false);
    replace_items(e, r, confirm ? items : rest);
}

/* A CONFIRM in the time of grace: the units are sold that were free again. The
 * only step out of an ended state; it has ended now, so it is the last of the
 * list. */
void reservation_sell_late(struct hold_engine *e, uint32_t number)
{
    struct reservation *r = reservation_edit(e, number);
    struct hold_item item;

    uint64_t seq =
        emit(e, EVENT_CONFIRMED_LATE, hf_index_name(&e->reservations, r), 0);
    emit_age(e, r->created_us);
    tell_reservation(e, r, hf_bytes("", 0), items_of(e, r));
    for (size_t at = 0; hold_next_item(items_of(e, r), &at, &item);) {
        units_take(e, &item, seq, UINT64_MAX);
        units_give(e, &item, true, seq);
    }
    r->status = RESERVATION_CONFIRMED;
    r->ended_us = e->now_us;
    bundle_leave(e, number);
    list_remove(RESERVATIONS(e), &e->ended, number);
    list_append(RESERVATIONS(e), &e->ended, number);
    levels_tell(e, items_of(e, r), true); /* they were available */
}

static void confirm_late(struct hold_engine *e, const struct hold_command *c,
                         uint32_t number)
{
    if (c->item_count > 0) {
        char *end = hold_put_items(e->record.data, c);
        replace_items(e, reservation_edit(e, number),
                      hf_bytes(e->record.data, (size_t)(end - e->record.data)));
    }
    reservation_sell_late(e, number);
}

void reservation_finish(struct hold_engine *e, uint32_t number, bool confirm,
                        struct hf_bytes reason)
{
    struct reservation *r = reservation_edit(e, number);
    uint64_t seq = emit(e, confirm ? EVENT_CONFIRMED : EVENT_CANCELLED,
                        hf_index_name(&e->reservations, r), 0);

    emit_age(e, r->created_us);
    tell_reservation(e, r, reason, items_of(e, r));
    keep_text(e, reason, &r->reason);
    end(e, number, confirm ? RESERVATION_CONFIRMED : RESERVATION_CANCELLED,
        seq);
}

void reservation_end(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    struct reservation *r = reservation_edit(e, at.number);
    bool confirm = c->kind == HOLD_CONFIRM;
    bool part = c->item_count > 0 && !same_items(e, r, c);

    if (r->status != RESERVATION_PENDING) {
        if (r->status == RESERVATION_BOOKED)
            booking_cancel(e, c, at.number);
        else
            confirm_late(e, c, at.number);
        reply_reservation(e, r, 0);
        return;
    }
    if (part)
        free_part(e, c, r);
    if (confirm || !part)
        reservation_finish(e, at.number, confirm, c->reason);
    reply_reservation(e, r, 0);
    waitlist_serve(e);
}

void reservation_give_up(struct hold_engine *e, struct hf_bytes id,
                         uint64_t seq_made)
{
    uint32_t number = hf_index_find(&e->reservations, id);

    if (seq_made == 0 || hold_reserved_by(e, id) != seq_made)
        return;
    if (reservation_is_over(e, number)) {
        reservation_expire(e, number);
        return;
    }
    reservation_finish(e, number, false, hf_bytes("", 0));
    waitlist_serve(e);
}

void reservation_extend(struct hold_engine *e, const struct hold_command *c,
                        struct target at)
{
    struct reservation *r = reservation_edit(e, at.number);
    uint64_t before_us = r->expires_us;

    emit(e, EVENT_EXTENDED, c->name, 0);
    tell_reservation(e, r, hf_bytes("", 0), items_of(e, r));
    r->expires_us = e->now_us + c->ttl_ms * US_PER_MS;
    if (r->expires_us < before_us)
        settled_lower(e, r);
    r->extends += r->extends < UINT32_MAX;
    hf_agenda_change(&e->due, r->due, r->expires_us, r->seq);
    reply_reservation(e, r, 0);
}

void reservation_remove(struct hold_engine *e, uint32_t number)
{
    const struct reservation *r = reservation_at(e, number);

    if (r->status == RESERVATION_WAITING)
        quota_give(e, r, items_of(e, r));
    bundle_leave(e, number);
    hf_texts_drop(&e->texts, r->owner);
    hf_texts_drop(&e->texts, r->reason);
    hf_texts_drop(&e->texts, r->items);
    hf_index_remove(&e->reservations, number);
}

void ended_forget_first(struct hold_engine *e)
{
    uint32_t number = e->ended.first;

    assert(reservation_has_ended(reservation_at(e, number)));
    list_remove(RESERVATIONS(e), &e->ended, number);
    reservation_remove(e, number);
}
