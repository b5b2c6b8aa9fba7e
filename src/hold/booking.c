/* booking.c - reservations of stock that is to arrive. */
#include "base/little.h"
#include "hold/expect.h"
#include "hold/image_parts.h"
#include "hold/quota.h"
#include "hold/reserve.h"

/* The one item of a booked reservation. */
static struct hold_item item_of(const struct hold_engine *e,
                                const struct reservation *r)
{
    struct hold_item item = {.quantity = 0};
    size_t at = 0;

    (void)hold_next_item(items_of(e, r), &at, &item);
    return item;
}

/* That of a booked reservation. */
static uint32_t expect_of(const struct hold_engine *e,
                          const struct reservation *r)
{
    return hf_index_find(&e->expects, item_of(e, r).sku);
}

/* ---- Coming. ---- */

void booking_need(const struct hold_command *c, size_t items_len,
                  struct need *need)
{
    size_t id_len = c->name.len > 0 ? c->name.len : HOLD_ID_MADE_BYTES;

    need->waiter = true;
    need->names = 1 + c->item_count; /* as waitlist_need() */
    need->name_bytes = id_len + c->owner.len + 2 * items_len;
    need->answer_bytes = 0;
}

bool booking_refuse(struct hold_engine *e, const struct hold_command *c)
{
    const struct hold_item *item = &c->items[0];
    const struct product *p =
        product_at(e, hf_index_find(&e->products, item->sku));
    uint32_t number = expect_find(e, item->sku);
    const struct expect *x = number == 0 ? NULL : expect_at(e, number);

    if (x != NULL && x->booked <= x->announced &&
        item->quantity <= x->announced - x->booked)
        return x->booking_count >= e->bounds.waiters_max &&
               refuse_overload(e, "waiters-max", e->bounds.waiters_max);
    struct hf_buf *body = refuse(e, HOLD_SHORT, p->waiting > 0 ? 7 : 6);
    reply_field_text(body, FIELD_SKU, item->sku);
    reply_field_number(body, FIELD_REQUESTED, (int64_t)item->quantity);
    reply_field_number(body, FIELD_AVAILABLE, (int64_t)available(p));
    if (p->waiting > 0)
        reply_field_number(body, FIELD_WAITING, p->waiting);
    reply_expect(e, number);
    return true;
}

/* Puts it behind all others. */
static void enter(struct hold_engine *e, uint32_t reservation, uint32_t number)
{
    const struct reservation *r = reservation_at(e, reservation);
    struct told_room room = waitlist_room(e, r);
    struct expect *x = expect_edit(e, number);

    list_append(RESERVATIONS(e), &x->bookings, reservation);
    x->booking_count++;
    x->booked += item_of(e, r).quantity;
    e->booked++;
    e->waited_parts += room.events;
    e->waited_bytes += room.event_bytes;
}

void booking_make(struct hold_engine *e, uint32_t reservation, uint64_t ttl_ms)
{
    struct reservation *r = reservation_edit(e, reservation);

    r->seq = emit(e, EVENT_BOOKED, hf_index_name(&e->reservations, r), 0);
    tell_reservation(e, r, hf_bytes("", 0), items_of(e, r));
    r->status = RESERVATION_BOOKED;
    r->created_us = e->now_us;
    r->expires_us = ttl_ms * US_PER_MS;
    due_add(e, DUE_RESERVATION, reservation, UINT64_MAX, r->seq);
    enter(e, reservation, expect_of(e, r));
    quota_count(e, r);
    reply_booked(e, reservation);
}

/* ---- Going. ---- */

/* It leaves the queue, and the agenda. */
static void leave(struct hold_engine *e, uint32_t reservation, struct expect *x)
{
    const struct reservation *r = reservation_at(e, reservation);
    struct told_room room = waitlist_room(e, r);

    hf_agenda_remove(&e->due, r->due);
    list_remove(RESERVATIONS(e), &x->bookings, reservation);
    x->booking_count--;
    x->booked -= item_of(e, r).quantity;
    e->booked--;
    e->waited_parts -= room.events;
    e->waited_bytes -= room.event_bytes;
}

void booking_cancel(struct hold_engine *e, const struct hold_command *c,
                    uint32_t reservation)
{
    struct reservation *r = reservation_edit(e, reservation);
    uint32_t number = expect_of(e, r);

    emit(e, EVENT_BOOKING_CANCELLED, c->name, 0);
    tell_reservation(e, r, c->reason, items_of(e, r));
    keep_text(e, c->reason, &r->reason);
    quota_give(e, r, items_of(e, r));
    leave(e, reservation, expect_edit(e, number));
    expect_trim(e, number);
    r->status = RESERVATION_CANCELLED;
    r->ended_us = e->now_us;
    list_append(RESERVATIONS(e), &e->ended, reservation);
}

uint32_t bookings_serve(struct hold_engine *e, uint32_t number, uint64_t spare)
{
    struct expect *x = expect_edit(e, number);
    const struct product *p = product_at(
        e, hf_index_find(&e->products, hf_index_name(&e->expects, x)));
    uint32_t served = 0;

    for (uint32_t n; (n = x->bookings.first) != 0; served++) {
        const struct reservation *r = reservation_at(e, n);
        if (available(p) - spare < item_of(e, r).quantity)
            break;
        leave(e, n, x);
        reservation_begin(e, n, EVENT_OFFERED, r->expires_us / US_PER_MS);
    }
    return served;
}

/* ---- What is told. ---- */

void reply_booking(struct hold_engine *e, uint32_t reservation)
{
    const struct expect *x =
        expect_at(e, expect_of(e, reservation_at(e, reservation)));
    /* the last, as each is at first, is behind all others */
    bool last = x->bookings.last == reservation;
    uint64_t position = last ? x->booking_count : 0;
    uint64_t units = last ? x->booked : 0;

    for (uint32_t n = last ? 0 : reservation; n != 0;
         n = reservation_at(e, n)->listed.links.prev) {
        position++;
        units += item_of(e, reservation_at(e, n)).quantity;
        e->out.work++;
    }
    reply_field_number(&e->body, FIELD_POSITION, (int64_t)position);
    reply_field_number(&e->body, FIELD_EXPECTED_MS, expect_time_ms(x, units));
}

void reply_booked(struct hold_engine *e, uint32_t reservation)
{
    const struct reservation *r = reservation_at(e, reservation);

    reply_map(&e->body, 4);
    reply_field_text(&e->body, FIELD_ID, hf_index_name(&e->reservations, r));
    reply_field_text(&e->body, FIELD_STATUS, hf_bytes_text("BOOKED"));
    reply_booking(e, reservation);
}

/* ---- Images. ---- */

struct told_room expect_sums(const struct hold_engine *e)
{
    struct told_room sums = {0};

    for (uint32_t i = 1; i < hf_index_top(&e->reservations); i++) {
        const struct reservation *r = hf_index_used(&e->reservations, i);
        if (r == NULL || r->status != RESERVATION_BOOKED)
            continue;
        struct told_room room = waitlist_room(e, r);
        sums.events += room.events;
        sums.event_bytes += room.event_bytes;
    }
    return sums;
}

static enum hf_status walk_bookings(struct walk *walk, const struct expect *x)
{
    const struct hold_engine *e = walk->e;
    enum hf_status status = HF_OK;
    uint64_t place = 0;

    for (uint32_t n = x->bookings.first; status == HF_OK && n != 0;
         n = reservation_at(e, n)->listed.links.next) {
        char *at = e->body.data;
        *at++ = 'K';
        at = hold_put_text(
            at, hf_index_name(&e->reservations, reservation_at(e, n)));
        status = walk_give(walk, at, ++place);
    }
    return status;
}

/* Of each product what is announced, then its bookings in order. */
enum hf_status expects_walk(struct walk *walk)
{
    const struct hold_engine *e = walk->e;
    enum hf_status status = HF_OK;

    for (uint32_t i = 1; status == HF_OK && i < hf_index_top(&e->expects);
         i++) {
        const struct expect *x = hf_index_used(&e->expects, i);
        char *at = e->body.data;
        if (x == NULL)
            continue;
        *at++ = 'E';
        at = image_put(at, x->arrival_count);
        at = hold_put_text(at, hf_index_name(&e->expects, x));
        for (uint32_t k = 0; k < x->arrival_count; k++) {
            const struct arrival *arrival = &x->arrivals[k];
            at = image_put(at, arrival->units);
            at = image_put(at, arrival->at_us);
            at = image_put(at, arrival->seq);
            at = image_put(at, arrival->late);
            at = hold_put_text(at, hf_text_bytes(&e->texts, arrival->ref));
        }
        status = walk_give(walk, at, 0);
        if (status == HF_OK)
            status = walk_bookings(walk, x);
    }
    return status;
}

static enum hf_status load_arrival(struct hold_engine *e, struct reader *in,
                                   struct expect *x)
{
    struct arrival *arrival = &x->arrivals[x->arrival_count];

    arrival->units = read_number(in);
    arrival->at_us = read_number(in);
    arrival->seq = read_number(in);
    arrival->late = read_number(in) != 0;
    struct hf_bytes ref = read_text(in);
    if (in->bad || arrival->units == 0 ||
        arrival->units > (uint64_t)HOLD_STOCK_MAX - x->announced)
        return HF_CORRUPT;
    x->arrival_count++;
    x->announced += arrival->units;
    return hf_texts_put(&e->texts, ref, ref.len, &arrival->ref);
}

enum hf_status expect_load(struct hold_engine *e, struct reader *in)
{
    uint64_t count = read_number(in);
    struct hf_bytes sku = read_text(in);
    enum hf_status status = HF_OK;

    if (in->bad || count > HOLD_EXPECT_MAX ||
        hf_index_find(&e->products, sku) == 0 ||
        hf_index_find(&e->expects, sku) != 0)
        return HF_CORRUPT;
    uint32_t number = hf_index_add(&e->expects, sku);
    if (number == 0)
        return HF_NOMEM;
    while (status == HF_OK && count-- > 0)
        status = load_arrival(e, in, expect_edit(e, number));
    if (status == HF_OK)
        status = hf_agenda_promise(&e->due);
    if (status != HF_OK)
        return status;
    hf_agenda_unpromise(&e->due);
    expect_set_due(e, number);
    return HF_OK;
}

enum hf_status booking_load(struct hold_engine *e, struct reader *in)
{
    uint32_t reservation = hf_index_find(&e->reservations, read_text(in));

    if (in->bad || reservation == 0)
        return HF_CORRUPT;
    const struct reservation *r = reservation_at(e, reservation);
    uint32_t number = expect_of(e, r);
    if (r->status != RESERVATION_BOOKED || r->due != 0 || number == 0)
        return HF_CORRUPT;
    const struct expect *x = expect_at(e, number);
    uint32_t last = x->bookings.last;
    if ((last != 0 && reservation_at(e, last)->seq >= r->seq) ||
        item_of(e, r).quantity > (uint64_t)HOLD_STOCK_MAX - x->booked)
        return HF_CORRUPT;
    if (waitlist_reserve(e, r, 0) != HF_OK)
        return HF_NOMEM;
    enter(e, reservation, number);
    return due_load(e, DUE_RESERVATION, reservation, UINT64_MAX, r->seq);
}
