/* reserve.c - reservations: units set aside until confirmed or given back.
 *
 *   PENDING --confirm--> CONFIRMED    reserved -> sold
 *      |------cancel---> CANCELLED    reserved -> available
 *      '------time-----> EXPIRED      reserved -> available
 *
 * One that waits for stock is WAITING first, one of stock that is to arrive
 * BOOKED; neither sets anything aside: see waitlist.h and expect.h.
 *
 * Nothing leaves an ended state but by a CONFIRM in the time of grace. Ended
 * ones are remembered for a while, so that a late question or a repeated id
 * gets a true answer. How they end is in ending.c.
 */
#include <assert.h>

#include "base/little.h"
#include "hold/bundle.h"
#include "hold/expect.h"
#include "hold/places.h"
#include "hold/quota.h"
#include "hold/reserve.h"

/* Crockford's digits: no I, L, O, U to be misread. */
static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

#define TIME_DIGITS 10u

const char *reservation_status(const struct reservation *r)
{
    static const char *const names[] = {"PENDING", "CONFIRMED", "CANCELLED",
                                        "EXPIRED", "WAITING",   "BOOKED"};

    assert(r->status <= RESERVATION_BOOKED);
    return names[r->status];
}

static void put_digits(char *out, uint32_t count, uint64_t number)
{
    for (uint32_t i = count; i > 0; i--, number >>= 5)
        out[i - 1] = digits[number & 31];
}

/* An id made of the time and the number that the reservation will take: in
 * order of time, and never the same twice. It is asked for several times. */
static const struct made_id *make_id(struct hold_engine *e)
{
    struct made_id *made = &e->made;
    uint64_t ms = e->now_us / US_PER_MS;

    if (made->seq == e->seq + 1 && made->ms == ms)
        return made;
    if (made->seq == 0 || made->ms != ms)
        put_digits(made->text, TIME_DIGITS, ms);
    put_digits(made->text + TIME_DIGITS, HOLD_ID_MADE_BYTES - TIME_DIGITS,
               e->seq + 1);
    made->ms = ms;
    made->seq = e->seq + 1;
    made->hash = hf_index_hash(&e->reservations,
                               hf_bytes(made->text, sizeof made->text));
    return made;
}

/* The id of a reservation to be made. */
static struct hf_bytes id_of(struct hold_engine *e,
                             const struct hold_command *c, uint32_t *hash)
{
    if (c->name.len > 0)
        return c->name;
    const struct made_id *made = make_id(e);
    *hash = made->hash;
    return hf_bytes(made->text, sizeof made->text);
}

static size_t items_bytes(const struct hold_command *c)
{
    size_t bytes = 0;

    if (hold_is_placed(c))
        return split_bytes(c);
    for (uint32_t i = 0; i < c->item_count; i++)
        bytes += 2 + c->items[i].sku.len + 8;
    return bytes;
}

void write_reservation(const struct hold_engine *e, struct hf_buf *body,
                       const struct reservation *r, uint32_t more)
{
    uint64_t left_us =
        r->status == RESERVATION_PENDING ? r->expires_us - e->now_us : 0;
    struct hold_item item;
    uint32_t count = 0;

    reply_map(body, 4 + more);
    reply_field_text(body, FIELD_ID, hf_index_name(&e->reservations, r));
    reply_field_text(body, FIELD_STATUS, hf_bytes_text(reservation_status(r)));
    reply_field_number(body, FIELD_EXPIRES_MS, (int64_t)(left_us / US_PER_MS));
    reply_field(body, FIELD_ITEMS);
    for (size_t at = 0; hold_next_item(items_of(e, r), &at, &item);)
        count++;
    reply_list(body, count);
    for (size_t at = 0; hold_next_item(items_of(e, r), &at, &item);) {
        reply_map(body, 2);
        reply_field_text(body, FIELD_SKU, item.sku);
        reply_field_number(body, FIELD_QUANTITY, (int64_t)item.quantity);
    }
}

bool refuse_id(struct hold_engine *e, enum hold_code code, struct hf_bytes id)
{
    reply_field_text(refuse(e, code, 1), FIELD_ID, id);
    return true;
}

bool refuse_status(struct hold_engine *e, const struct reservation *r,
                   struct hf_bytes id)
{
    struct hf_buf *body = refuse(e, HOLD_STATE, 2);

    reply_field_text(body, FIELD_ID, id);
    reply_field_text(body, FIELD_STATUS, hf_bytes_text(reservation_status(r)));
    return true;
}

void reserve_need(struct hold_engine *e, const struct hold_command *c,
                  struct need *need)
{
    size_t items_len = items_bytes(c);

    need_record(e, need, &e->reservations,
                c->name.len > 0 ? c->name.len : HOLD_ID_MADE_BYTES);
    need_text(e, need, c->owner.len);
    need_text(e, need, items_len);
    need->due = 1;
    quota_need(e, c, need);
    bundle_need(e, c, need);
    need->reply_len = promise_reservation(items_len, hold_most_items(c));
    if (c->request.len > 0) /* QUOTA names a product twice, and the owner */
        need->reply_len += HOLD_SKU_MAX + c->owner.len;
    need->reserves = hf_texts_class(need->reply_len) + 1;
    if (hold_may_queue(c))
        waitlist_need(e, c, items_len, need);
    if (hold_may_book(c))
        booking_need(c, items_len, need);
}

/* The one that ended first makes room, unless it may still be confirmed. */
static bool may_forget_first(const struct hold_engine *e)
{
    return e->ended.first != 0 &&
           !reservation_has_grace(e, reservation_at(e, e->ended.first));
}

bool reserve_check(struct hold_engine *e, const struct hold_command *c,
                   struct target at)
{
    struct hf_bytes id = id_of(e, c, &at.hash);
    uint32_t number = at.number;

    if (c->name.len == 0)
        number = hf_index_find_hashed(&e->reservations, at.hash, id);
    if (number != 0) {
        struct reservation *r = reservation_edit(e, number);
        if (c->name.len == 0)
            return refuse_id(e, HOLD_CONFLICT, id);
        if (r->status == RESERVATION_WAITING && c->kind == HOLD_WAITLIST_JOIN &&
            buyer_at(e, r->buyer)->joined && same_items(e, r, c)) {
            reply_joined(e, r->buyer);
            return true;
        }
        if (r->status == RESERVATION_BOOKED && hold_may_book(c) &&
            same_items(e, r, c)) {
            reply_booked(e, number);
            return true;
        }
        if (r->status >= RESERVATION_WAITING ||
            (r->status != RESERVATION_PENDING && !e->old_queues))
            return refuse_status(e, r, id);
        if (!may_be_items(e, r, c))
            return refuse_id(e, HOLD_CONFLICT, id);
        reply_reservation(e, r, 0);
        return true;
    }
    if (c->class.len > 0 && hf_index_find(&e->classes, c->class) == 0)
        return refuse_class(e, c->class);
    if (refuse_items(e, c) || bundle_refuse(e, c))
        return true;
    if (hf_index_count(&e->reservations) >= e->bounds.reservations_max &&
        !may_forget_first(e))
        return refuse_overload(e, "reservations-max",
                               e->bounds.reservations_max);
    return false;
}

/* Not all of the items may be taken: then the text is shorter than promised. */
static struct hf_text store_items(struct hold_engine *e,
                                  const struct hold_command *c,
                                  const struct hold_item *items, uint32_t count)
{
    struct hf_text text;
    size_t bound = items_bytes(c);

    assert(bound <= e->record.cap); /* scratch: a record has more than this */
    const char *end = hold_put_list(e->record.data, items, count);
    struct hf_bytes bytes =
        hf_bytes(e->record.data, (size_t)(end - e->record.data));
    enum hf_status status = hf_texts_put(&e->texts, bytes, bound, &text);
    assert(status == HF_OK); /* promised */
    (void)status;
    return text;
}

void tell_reservation(struct hold_engine *e, const struct reservation *r,
                      struct hf_bytes reason, struct hf_bytes items)
{
    struct hold_event *event = told(e);

    if (!e->tells)
        return;
    event->owner = tell_text(e, hf_text_bytes(&e->texts, r->owner));
    event->note = tell_text(e, reason);
    event->items = tell_text(e, items);
    event->group = tell_text(e, bundle_name(e, r));
}

void units_take(struct hold_engine *e, const struct hold_item *item,
                uint64_t seq, uint64_t ends_us)
{
    uint32_t number = hf_index_find(&e->products, item->sku);
    struct product *p = product_edit(e, number);

    assert(available(p) >= item->quantity);
    if (p->reserved == 0 || ends_us < p->ends_us)
        p->ends_us = ends_us;
    p->reserved += item->quantity;
    e->stock_reserved += item->quantity;
    if (p->is_placed)
        places_of(e, p)->reserved += item->quantity;
    p->version = seq;
    p->updated_us = e->now_us;
}

/* NULL: it has none. */
static const struct class *class_asked(const struct hold_engine *e,
                                       const struct hold_command *c)
{
    return c->class.len == 0
               ? NULL
               : class_at(e, hf_index_find(&e->classes, c->class));
}

/* By the command, else by the class, else by the setting. */
static uint64_t ttl_of(const struct hold_engine *e,
                       const struct hold_command *c)
{
    if (c->ttl_ms > 0)
        return c->ttl_ms;
    const struct class *class = class_asked(e, c);
    if (class != NULL && class->ttl_ms > 0)
        return class->ttl_ms;
    return max_u64(e->bounds.reserve_ttl_ms, 1);
}

/* A record for the command, with these items; nothing is set aside yet. */
static inline uint32_t add(struct hold_engine *e, const struct hold_command *c,
                           struct target at, const struct hold_item *items,
                           uint32_t count)
{
    struct hf_bytes id = id_of(e, c, &at.hash);
    const struct class *class = class_asked(e, c);

    if (hf_index_count(&e->reservations) >= e->bounds.reservations_max)
        ended_forget_first(e);
    uint32_t number = hf_index_add_hashed(&e->reservations, at.hash, id);
    assert(number != 0); /* promised */
    struct reservation *r = reservation_edit(e, number);
    r->class = class == NULL ? 0 : class->number;
    r->items = store_items(e, c, items, count);
    keep_text(e, c->owner, &r->owner);
    bundle_join(e, c, number);
    return number;
}

/* Sets the units of these items aside, which are its own; NULL: read them from
 * it. */
__attribute__((always_inline)) static inline struct reservation *
begin(struct hold_engine *e, uint32_t number, enum hold_event_kind kind,
      uint64_t ttl_ms, const struct hold_item *items, uint32_t count)
{
    struct reservation *r = reservation_edit(e, number);
    struct hold_item item;

    r->expires_us = e->now_us + ttl_ms * US_PER_MS;
    uint64_t ends_us = e->old_waits ? 0 : r->expires_us; /* see settled.c */
    uint64_t seq = emit(e, kind, hf_index_name(&e->reservations, r), 0);
    if (r->seq == 0)
        r->seq = seq;
    else if (kind == EVENT_OFFERED && r->status == RESERVATION_WAITING)
        emit_age(e, r->created_us); /* it has waited, and nobody else counts */
    for (uint32_t i = 0; items != NULL && i < count; i++)
        units_take(e, &items[i], seq, ends_us);
    for (size_t at = 0;
         items == NULL && hold_next_item(items_of(e, r), &at, &item);)
        units_take(e, &item, seq, ends_us);
    r->created_us = e->now_us;
    r->status = RESERVATION_PENDING;
    tell_reservation(e, r, hf_bytes("", 0), items_of(e, r));
    levels_tell(e, items_of(e, r), true);
    due_add(e, DUE_RESERVATION, number, r->expires_us, r->seq);
    e->pending++;
    return r;
}

void reservation_begin(struct hold_engine *e, uint32_t number,
                       enum hold_event_kind kind, uint64_t ttl_ms)
{
    (void)begin(e, number, kind, ttl_ms, NULL, 0);
}

static struct reservation *make(struct hold_engine *e,
                                const struct hold_command *c, struct target at,
                                const struct hold_item *items, uint32_t count)
{
    uint32_t number = add(e, c, at, items, count);
    enum hold_event_kind kind =
        c->kind == HOLD_RESERVE ? EVENT_RESERVED : EVENT_OFFERED;
    struct reservation *r = begin(e, number, kind, ttl_of(e, c), items, count);

    quota_count(e, r);
    return r;
}

/* With BEST or MIN: what there is. */
__attribute__((noinline)) static void reserve_some(struct hold_engine *e,
                                                   const struct hold_command *c,
                                                   struct target at)
{
    struct hold_item some[HOLD_ITEMS_MAX];
    struct hold_item failed[HOLD_ITEMS_MAX];
    struct chosen chosen = {some, 0, failed, 0};
    bool best = (c->flags & HOLD_BEST) != 0;

    choose_items(e, c, &chosen);
    assert(chosen.count > 0);
    const struct reservation *r = make(e, c, at, some, chosen.count);
    reply_reservation(e, r, best);
    if (best)
        reply_failed(e, c, &chosen);
}

/* With PLACE: from there. */
__attribute__((noinline)) static void
reserve_placed(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    struct hold_item items[HOLD_ITEMS_MAX];
    uint32_t count = split_choose(e, c, items);

    reply_reservation(e, make(e, c, at, items, count), 0);
}

void reserve(struct hold_engine *e, const struct hold_command *c,
             struct target at)
{
    if (hold_is_placed(c))
        reserve_placed(e, c, at);
    else if (hold_may_book(c) && is_any_short(e, c))
        booking_make(e, add(e, c, at, c->items, c->item_count), ttl_of(e, c));
    else if (hold_may_queue(c) && is_any_short(e, c))
        waitlist_queue(e, c, add(e, c, at, c->items, c->item_count),
                       ttl_of(e, c));
    else if (wants_all(c))
        reply_reservation(e, make(e, c, at, c->items, c->item_count), 0);
    else
        reserve_some(e, c, at);
}

uint64_t hold_reserved_by(const struct hold_engine *e, struct hf_bytes id)
{
    uint32_t number = hf_index_find(&e->reservations, id);

    return number != 0 &&
                   reservation_at(e, number)->status == RESERVATION_PENDING
               ? reservation_at(e, number)->seq
               : 0;
}

void reservation_show(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->reservations, c->name);

    if (number == 0) {
        refuse_id(e, HOLD_NOTFOUND, c->name);
        return;
    }
    struct reservation *r = reservation_edit(e, number);
    assert(!reservation_is_over(e, number));
    /* when its time was over, not when that was noticed */
    bool expired = r->status == RESERVATION_EXPIRED;
    uint64_t ended_us = expired ? r->expires_us : r->ended_us;
    const struct class *class = class_of(e, r->class);
    bool booked = r->status == RESERVATION_BOOKED;
    bool waits = r->status == RESERVATION_WAITING;
    reply_reservation(e, r, 6u + waits + (r->member != 0) + (booked ? 2 : 0));
    reply_field_text(&e->body, FIELD_OWNER, hf_text_bytes(&e->texts, r->owner));
    reply_field_number(&e->body, FIELD_CREATED_MS,
                       (int64_t)(r->created_us / US_PER_MS));
    reply_field_number(&e->body, FIELD_ENDED_MS,
                       (int64_t)(ended_us / US_PER_MS));
    reply_field_text(&e->body, FIELD_REASON,
                     hf_text_bytes(&e->texts, r->reason));
    reply_field_text(&e->body, FIELD_CLASS,
                     class == NULL ? hf_bytes("", 0)
                                   : hf_index_name(&e->classes, class));
    reply_field_number(&e->body, FIELD_EXTENDS, r->extends);
    if (waits)
        reply_field_number(&e->body, FIELD_PRIORITY,
                           buyer_at(e, r->buyer)->priority);
    if (r->member != 0)
        reply_field_text(&e->body, FIELD_GROUP, bundle_name(e, r));
    if (booked)
        reply_booking(e, number);
}

/* At least one item, each whole. */
static bool items_are_whole(struct hf_bytes items)
{
    size_t at = 0;

    while (items.len - at >= 2) {
        size_t len = hf_get_u16(items.data + at);
        if (len == 0 || items.len - at < 2 + len + 8)
            return false;
        at += 2 + len + 8;
    }
    return at > 0 && at == items.len;
}

enum hf_status reservation_loaded(struct hold_engine *e, uint32_t number,
                                  uint64_t link)
{
    struct reservation *r = reservation_edit(e, number);

    (void)link;
    if (r->status > RESERVATION_BOOKED ||
        !items_are_whole(hf_text_bytes(&e->texts, r->items)))
        return HF_CORRUPT;
    if (reservation_has_ended(r)) {
        list_append(RESERVATIONS(e), &e->ended, number);
        return HF_OK;
    }
    if (quota_load(e, r) != HF_OK)
        return HF_NOMEM;
    if (r->status >= RESERVATION_WAITING)
        return HF_OK; /* its buyer or booking comes later */
    e->pending++;
    return due_load(e, DUE_RESERVATION, number, r->expires_us, r->seq);
}
