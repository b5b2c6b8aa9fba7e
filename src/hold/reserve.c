/* reserve.c - reservations: units set aside until confirmed or given back.
 *
 *   PENDING --confirm--> CONFIRMED    reserved -> sold
 *      |------cancel---> CANCELLED    reserved -> available
 *      '------time-----> EXPIRED      reserved -> available
 *
 * Nothing leaves an ended state. Ended ones are remembered for a while, so
 * that a late question or a repeated id gets a true answer.
 */
#include <assert.h>

#include "base/little.h"
#include "hold/state.h"

/* How reservations are listed. */
#define RESERVATIONS(e) CHAIN(e->reservations.slab, reservation, listed.links)

/* Crockford's digits: no I, L, O, U to be misread. */
static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

#define TIME_DIGITS 10u

static const char *status_name(uint32_t status)
{
    static const char *const names[] = {"PENDING", "CONFIRMED", "CANCELLED",
                                        "EXPIRED"};

    assert(status <= RESERVATION_EXPIRED);
    return names[status];
}

static void put_digits(char *out, uint32_t count, uint64_t number)
{
    for (uint32_t i = count; i > 0; i--, number >>= 5)
        out[i - 1] = digits[number & 31];
}

/* An id made of the time and the number that the reservation will take: in
 * order of time, and never the same twice. */
static struct hf_bytes id_of(const struct hold_engine *e,
                             const struct hold_command *c,
                             char made[HOLD_ID_MADE_BYTES])
{
    if (c->name.len > 0)
        return c->name;
    put_digits(made, TIME_DIGITS, e->now_us / US_PER_MS);
    put_digits(made + TIME_DIGITS, HOLD_ID_MADE_BYTES - TIME_DIGITS,
               e->seq + 1);
    return hf_bytes(made, HOLD_ID_MADE_BYTES);
}

static size_t items_bytes(const struct hold_command *c)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < c->item_count; i++)
        bytes += 2 + c->items[i].sku.len + 8;
    return bytes;
}

static struct hf_bytes items_of(const struct hold_engine *e,
                                const struct reservation *r)
{
    return hf_text_bytes(&e->texts, r->items);
}

static bool same_items(const struct hold_engine *e, const struct reservation *r,
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

static void reply_reservation(struct hold_engine *e,
                              const struct reservation *r, uint32_t more)
{
    struct hf_buf *body = &e->body;
    uint64_t left_us =
        r->status == RESERVATION_PENDING ? r->expires_us - e->now_us : 0;
    struct hold_item item;
    uint32_t count = 0;

    reply_map(body, 4 + more);
    reply_field_text(body, FIELD_ID, hf_index_name(&e->reservations, r));
    reply_field_text(body, FIELD_STATUS, hf_bytes_text(status_name(r->status)));
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

static bool refuse_id(struct hold_engine *e, enum hold_code code,
                      struct hf_bytes id)
{
    reply_field_text(refuse(e, code, 1), FIELD_ID, id);
    return true;
}

static uint64_t available(const struct product *product)
{
    return product->total - product->reserved - product->sold;
}

/* Answers with the first product that is missing, else the first that is
 * short. */
static bool refuse_items(struct hold_engine *e, const struct hold_command *c)
{
    const struct product *lacking = NULL;
    uint32_t lacking_item = 0;

    for (uint32_t i = 0; i < c->item_count; i++) {
        uint32_t number = hf_index_find(&e->products, c->items[i].sku);
        if (number == 0) {
            reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_SKU,
                             c->items[i].sku);
            return true;
        }
        const struct product *product = product_at(e, number);
        if (lacking == NULL && available(product) < c->items[i].quantity) {
            lacking = product;
            lacking_item = i;
        }
    }
    if (lacking == NULL)
        return false;
    struct hf_buf *body = refuse(e, HOLD_SHORT, 3);
    reply_field_text(body, FIELD_SKU, c->items[lacking_item].sku);
    reply_field_number(body, FIELD_REQUESTED,
                       (int64_t)c->items[lacking_item].quantity);
    reply_field_number(body, FIELD_AVAILABLE, (int64_t)available(lacking));
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
    need->reply_len = promise_reservation(items_len, c->item_count);
    need->reserves = hf_texts_class(need->reply_len) + 1;
}

bool reserve_check(struct hold_engine *e, const struct hold_command *c,
                   struct target at)
{
    char made[HOLD_ID_MADE_BYTES];
    struct hf_bytes id = id_of(e, c, made);
    uint32_t number = at.number;

    if (c->name.len == 0)
        number = hf_index_find(&e->reservations, id);
    if (number != 0) {
        struct reservation *r = reservation_edit(e, number);
        if (c->name.len == 0 || !same_items(e, r, c))
            return refuse_id(e, HOLD_CONFLICT, id);
        reply_reservation(e, r, 0);
        return true;
    }
    if (refuse_items(e, c))
        return true;
    if (hf_index_count(&e->reservations) >= e->bounds.reservations_max &&
        e->ended.first == 0)
        return refuse_overload(e, "reservations-max",
                               e->bounds.reservations_max);
    return false;
}

static struct hf_text store_items(struct hold_engine *e,
                                  const struct hold_command *c)
{
    struct hf_text text;
    size_t len = items_bytes(c);

    assert(len <= e->record.cap); /* scratch: a record has more than this */
    (void)hold_put_items(e->record.data, c);
    keep_text(e, hf_bytes(e->record.data, len), &text);
    return text;
}

/* All of a reservation that an event is about; `reason`: why it ended. */
static void tell_reservation(struct hold_engine *e, const struct reservation *r,
                             struct hf_bytes reason)
{
    struct hold_event *event = told(e);

    if (!e->tells)
        return;
    event->owner = tell_text(e, hf_text_bytes(&e->texts, r->owner));
    event->note = tell_text(e, reason);
    event->items = tell_text(e, items_of(e, r));
}

void reserve(struct hold_engine *e, const struct hold_command *c,
             struct target at)
{
    char made[HOLD_ID_MADE_BYTES];
    struct hf_bytes id = id_of(e, c, made);

    if (hf_index_count(&e->reservations) >= e->bounds.reservations_max)
        ended_forget_first(e);
    uint64_t seq = emit(e, EVENT_RESERVED, id, 0);
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint32_t product = hf_index_find(&e->products, c->items[i].sku);
        struct product *p = product_edit(e, product);
        assert(available(p) >= c->items[i].quantity);
        p->reserved += c->items[i].quantity;
        e->stock_reserved += c->items[i].quantity;
        p->version = seq;
        p->updated_us = e->now_us;
    }
    uint32_t number = c->name.len > 0
                          ? hf_index_add_hashed(&e->reservations, at.hash, id)
                          : hf_index_add(&e->reservations, id);
    assert(number != 0); /* promised */
    struct reservation *r = reservation_edit(e, number);
    r->seq = seq;
    r->created_us = e->now_us;
    r->expires_us = e->now_us + c->ttl_ms * US_PER_MS;
    r->status = RESERVATION_PENDING;
    r->items = store_items(e, c);
    keep_text(e, c->owner, &r->owner);
    tell_reservation(e, r, hf_bytes("", 0));
    due_add(e, DUE_RESERVATION, number, r->expires_us, r->seq);
    e->pending++;
    reply_reservation(e, r, 0);
}

/* The one place where a reservation changes its status. */
static void end(struct hold_engine *e, uint32_t number, uint32_t status,
                uint64_t seq)
{
    struct reservation *r = reservation_edit(e, number);
    struct hold_item item;

    assert(r->status == RESERVATION_PENDING);
    assert(status != RESERVATION_PENDING);
    for (size_t at = 0; hold_next_item(items_of(e, r), &at, &item);) {
        uint32_t product = hf_index_find(&e->products, item.sku);
        assert(product != 0); /* a product with reserved units stays */
        struct product *p = product_edit(e, product);
        assert(p->reserved >= item.quantity);
        p->reserved -= item.quantity;
        e->stock_reserved -= item.quantity;
        if (status == RESERVATION_CONFIRMED) {
            p->sold += item.quantity;
            e->stock_sold += item.quantity;
        }
        p->version = seq;
        p->updated_us = e->now_us;
    }
    r->status = status;
    r->ended_us = e->now_us;
    hf_heap_remove(&e->due, r->due);
    list_append(RESERVATIONS(e), &e->ended, number);
    assert(e->pending > 0);
    e->pending--;
}

void reservation_expire(struct hold_engine *e, uint32_t number)
{
    struct reservation *r = reservation_edit(e, number);

    assert(r->expires_us <= e->now_us);
    uint64_t seq =
        emit(e, EVENT_RESERVATION_EXPIRED, hf_index_name(&e->reservations, r),
             e->now_us - r->expires_us);
    emit_age(e, r->created_us);
    tell_reservation(e, r, hf_bytes("", 0));
    end(e, number, RESERVATION_EXPIRED, seq);
}

bool reservation_has_ended(const void *record)
{
    return ((const struct reservation *)record)->status != RESERVATION_PENDING;
}

bool reservation_is_over(const struct hold_engine *e, uint32_t number)
{
    return number != 0 &&
           reservation_at(e, number)->status == RESERVATION_PENDING &&
           reservation_at(e, number)->expires_us <= e->now_us;
}

void reservation_settle(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->reservations, c->name);

    if (reservation_is_over(e, number))
        reservation_expire(e, number);
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
    if (r->status == RESERVATION_PENDING)
        return false;
    bool expired = r->status == RESERVATION_EXPIRED;
    struct hf_buf *body = refuse(e, expired ? HOLD_EXPIRED : HOLD_STATE, 2);
    reply_field_text(body, FIELD_ID, c->name);
    if (expired)
        reply_field_number(body, FIELD_EXPIRES_MS,
                           (int64_t)((e->now_us - r->expires_us) / US_PER_MS));
    else
        reply_field_text(body, FIELD_STATUS,
                         hf_bytes_text(status_name(r->status)));
    return true;
}

void reservation_end(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    struct reservation *r = reservation_edit(e, at.number);
    bool confirm = c->kind == HOLD_CONFIRM;
    uint64_t seq =
        emit(e, confirm ? EVENT_CONFIRMED : EVENT_CANCELLED, c->name, 0);

    emit_age(e, r->created_us);
    tell_reservation(e, r, c->reason);
    keep_text(e, c->reason, &r->reason);
    end(e, at.number, confirm ? RESERVATION_CONFIRMED : RESERVATION_CANCELLED,
        seq);
    reply_reservation(e, r, 0);
}

void reservation_extend(struct hold_engine *e, const struct hold_command *c,
                        struct target at)
{
    struct reservation *r = reservation_edit(e, at.number);

    emit(e, EVENT_EXTENDED, c->name, 0);
    tell_reservation(e, r, hf_bytes("", 0));
    r->expires_us = e->now_us + c->ttl_ms * US_PER_MS;
    hf_heap_change(&e->due, r->due, r->expires_us, r->seq);
    reply_reservation(e, r, 0);
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
    reply_reservation(e, r, 4);
    reply_field_text(&e->body, FIELD_OWNER, hf_text_bytes(&e->texts, r->owner));
    reply_field_number(&e->body, FIELD_CREATED_MS,
                       (int64_t)(r->created_us / US_PER_MS));
    reply_field_number(&e->body, FIELD_ENDED_MS,
                       (int64_t)(ended_us / US_PER_MS));
    reply_field_text(&e->body, FIELD_REASON,
                     hf_text_bytes(&e->texts, r->reason));
}

void ended_forget_first(struct hold_engine *e)
{
    uint32_t number = e->ended.first;
    struct reservation *r = reservation_edit(e, number);

    assert(r->status != RESERVATION_PENDING);
    list_remove(RESERVATIONS(e), &e->ended, number);
    hf_texts_drop(&e->texts, r->owner);
    hf_texts_drop(&e->texts, r->reason);
    hf_texts_drop(&e->texts, r->items);
    hf_index_remove(&e->reservations, number);
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
    if (r->status > RESERVATION_EXPIRED ||
        !items_are_whole(hf_text_bytes(&e->texts, r->items)))
        return HF_CORRUPT;
    if (r->status != RESERVATION_PENDING) {
        list_append(RESERVATIONS(e), &e->ended, number);
        return HF_OK;
    }
    e->pending++;
    return due_load(e, DUE_RESERVATION, number, r->expires_us, r->seq);
}
