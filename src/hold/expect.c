/* expect.c - what is announced to arrive, and what arrives. */
#include "hold/expect.h"

#include "base/little.h"
#include "hold/reserve.h"

/* ---- The announcements of a product. ---- */

/* The one with that reference; arrival_count: none. */
static uint32_t find_ref(const struct hold_engine *e, const struct expect *x,
                         struct hf_bytes ref)
{
    uint32_t i = 0;

    while (i < x->arrival_count &&
           !hf_bytes_equal(hf_text_bytes(&e->texts, x->arrivals[i].ref), ref))
        i++;
    return i;
}

/* The units announced with that reference; 0: none. `number` may be 0. */
static uint64_t units_of(const struct hold_engine *e, uint32_t number,
                         struct hf_bytes ref)
{
    if (number == 0)
        return 0;
    const struct expect *x = expect_at(e, number);
    uint32_t i = find_ref(e, x, ref);
    return i < x->arrival_count ? x->arrivals[i].units : 0;
}

static void put(struct expect *x, struct arrival arrival)
{
    uint32_t i = x->arrival_count++;

    for (; i > 0 && x->arrivals[i - 1].at_us > arrival.at_us; i--)
        x->arrivals[i] = x->arrivals[i - 1];
    x->arrivals[i] = arrival;
    x->announced += arrival.units;
}

static struct arrival take(struct expect *x, uint32_t i)
{
    struct arrival arrival = x->arrivals[i];

    x->announced -= arrival.units;
    x->arrival_count--;
    memmove(&x->arrivals[i], &x->arrivals[i + 1],
            (x->arrival_count - i) * sizeof arrival);
    return arrival;
}

/* arrival_count: all are. */
static uint32_t first_in_time(const struct expect *x)
{
    uint32_t i = 0;

    while (i < x->arrival_count && x->arrivals[i].late)
        i++;
    return i;
}

void expect_set_due(struct hold_engine *e, uint32_t number)
{
    const struct expect *x = expect_at(e, number);
    uint32_t i = first_in_time(x);
    bool none = i == x->arrival_count;

    if (none && x->due != 0) {
        hf_agenda_remove(&e->due, x->due);
        expect_edit(e, number)->due = 0;
    } else if (!none && x->due != 0) {
        hf_agenda_change(&e->due, x->due, x->arrivals[i].at_us,
                         x->arrivals[i].seq);
    } else if (!none) {
        due_add(e, DUE_ARRIVAL, number, x->arrivals[i].at_us,
                x->arrivals[i].seq);
    }
}

void expect_trim(struct hold_engine *e, uint32_t number)
{
    const struct expect *x = expect_at(e, number);

    if (x->arrival_count + x->booking_count == 0)
        hf_index_remove(&e->expects, number);
}

/* Its announcements have changed. */
static void settle(struct hold_engine *e, uint32_t number)
{
    expect_set_due(e, number);
    expect_trim(e, number);
}

void expect_forget(struct hold_engine *e, struct hf_bytes sku)
{
    uint32_t number = expect_find(e, sku);

    if (number == 0)
        return;
    struct expect *x = expect_edit(e, number);
    assert(x->booking_count == 0);
    while (x->arrival_count > 0)
        hf_texts_drop(&e->texts, take(x, 0).ref);
    settle(e, number);
}

uint64_t expect_booked(const struct hold_engine *e, struct hf_bytes sku)
{
    uint32_t number = expect_find(e, sku);

    return number == 0 ? 0 : expect_at(e, number)->booked;
}

int64_t expect_time_ms(const struct expect *x, uint64_t units)
{
    for (uint32_t i = 0; i < x->arrival_count; i++) {
        if (units <= x->arrivals[i].units)
            return (int64_t)(x->arrivals[i].at_us / US_PER_MS);
        units -= x->arrivals[i].units;
    }
    return 0;
}

/* ---- What is told. ---- */

/* Of `announced` units: so many arrived, or are still expected; the time they
 * are for, in ms, or how many are booked and not announced. */
static uint64_t tell(struct hold_engine *e, enum hold_event_kind kind,
                     struct hf_bytes sku, struct hf_bytes ref,
                     uint64_t announced, uint64_t arrived, uint64_t token)
{
    uint64_t seq = emit(e, kind, sku, 0);

    told(e)->total = announced;
    told(e)->available = arrived;
    told(e)->token = token;
    if (e->tells)
        told(e)->owner = tell_text(e, ref);
    return seq;
}

static void tell_late(struct hold_engine *e, struct hf_bytes sku,
                      struct arrival *arrival)
{
    arrival->late = true;
    tell(e, EVENT_ARRIVAL_LATE, sku, hf_text_bytes(&e->texts, arrival->ref),
         arrival->units, 0, arrival->at_us / US_PER_MS);
    told(e)->lag_us = e->now_us - arrival->at_us;
}

void arrival_late(struct hold_engine *e, uint32_t number)
{
    struct expect *x = expect_edit(e, number);

    tell_late(e, hf_index_name(&e->expects, x), &x->arrivals[first_in_time(x)]);
    settle(e, number);
}

void reply_expect(struct hold_engine *e, uint32_t number)
{
    static const struct expect none;
    const struct expect *x = number == 0 ? &none : expect_at(e, number);

    reply_field_number(&e->body, FIELD_EXPECTED, (int64_t)x->announced);
    reply_field_number(&e->body, FIELD_BOOKED, (int64_t)x->booked);
    reply_field_number(&e->body, FIELD_UNCOVERED, (int64_t)expect_uncovered(x));
}

/* ---- STOCK EXPECT. ---- */

void expect_need(struct hold_engine *e, const struct hold_command *c,
                 struct need *need)
{
    need_record(e, need, &e->expects, c->name.len);
    need_text(e, need, c->note.len);
    need->due = 1;
    need->reply_len += c->note.len; /* a refusal names both */
}

static bool refuse_ref(struct hold_engine *e, const struct hold_command *c,
                       enum hold_code code)
{
    struct hf_buf *body = refuse(e, code, 2);

    reply_field_text(body, FIELD_SKU, c->name);
    reply_field_text(body, FIELD_REF, c->note);
    return true;
}

bool expect_check(struct hold_engine *e, const struct hold_command *c,
                  struct target at)
{
    uint32_t number = expect_find(e, c->name);
    uint64_t before = units_of(e, number, c->note);

    if (stock_known_check(e, c, at))
        return true;
    if (before == 0 && c->amount == 0)
        return refuse_ref(e, c, HOLD_NOTFOUND);
    if (before == 0 && c->delay_ms == 0)
        return refuse_ref(e, c, HOLD_BADARG);
    if (number == 0)
        return false;
    const struct expect *x = expect_at(e, number);
    if ((uint64_t)c->amount > (uint64_t)HOLD_STOCK_MAX - x->announced + before)
        return refuse_overload(e, "stock-max", HOLD_STOCK_MAX);
    return before == 0 && x->arrival_count == HOLD_EXPECT_MAX &&
           refuse_overload(e, "arrivals-max", HOLD_EXPECT_MAX);
}

/* What is announced changes from `before` to what the command says, of which
 * one that is withdrawn keeps its time. */
static void announce(struct hold_engine *e, const struct hold_command *c,
                     struct expect *x, struct arrival before)
{
    struct arrival arrival = before;

    if (c->delay_ms > 0)
        arrival.at_us = c->delay_ms * US_PER_MS;
    arrival.units = (uint64_t)c->amount;
    arrival.late = false;
    arrival.seq = tell(e, EVENT_ARRIVAL_EXPECTED, c->name, c->note,
                       arrival.units, 0, arrival.at_us / US_PER_MS);
    if (arrival.units == 0) {
        hf_texts_drop(&e->texts, arrival.ref);
        return;
    }
    if (before.units == 0)
        keep_text(e, c->note, &arrival.ref);
    if (arrival.at_us <= e->now_us)
        tell_late(e, c->name, &arrival);
    put(x, arrival);
}

void expect(struct hold_engine *e, const struct hold_command *c,
            struct target at)
{
    uint32_t number = expect_find(e, c->name);
    struct arrival before = {.units = 0};

    (void)at;
    if (number == 0)
        number = hf_index_add(&e->expects, c->name);
    assert(number != 0); /* promised */
    struct expect *x = expect_edit(e, number);
    uint64_t uncovered = expect_uncovered(x);
    uint32_t i = find_ref(e, x, c->note);
    if (i < x->arrival_count)
        before = take(x, i);
    announce(e, c, x, before);
    if (expect_uncovered(x) > uncovered)
        tell(e, EVENT_ARRIVAL_SHORT, c->name, c->note, before.units,
             (uint64_t)c->amount, expect_uncovered(x));
    reply_map(&e->body, 4);
    reply_field_text(&e->body, FIELD_SKU, c->name);
    reply_expect(e, number);
    settle(e, number);
}

/* ---- STOCK ARRIVE. ---- */

bool arrive_check(struct hold_engine *e, const struct hold_command *c,
                  struct target at)
{
    if (stock_known_check(e, c, at))
        return true;
    return (uint64_t)c->amount >
               (uint64_t)HOLD_STOCK_MAX - product_at(e, at.number)->total &&
           refuse_overload(e, "stock-max", HOLD_STOCK_MAX);
}

/* Ends what is announced with that reference; returns how much it was. */
static uint64_t end_announcement(struct hold_engine *e, uint32_t number,
                                 struct hf_bytes ref)
{
    struct expect *x = expect_edit(e, number);
    uint32_t i = find_ref(e, x, ref);

    if (i == x->arrival_count)
        return 0;
    struct arrival arrival = take(x, i);
    hf_texts_drop(&e->texts, arrival.ref);
    return arrival.units;
}

void arrive(struct hold_engine *e, const struct hold_command *c,
            struct target at)
{
    const struct product *p = product_at(e, at.number);
    uint64_t units = (uint64_t)c->amount;
    uint64_t spare = p->waiting > 0 ? available(p) : 0;
    uint32_t number = expect_find(e, c->name);
    uint64_t announced = 0;
    uint64_t booked = 0;
    uint32_t served = 0;

    stock_set_total(e, at.number, p->total + units, c);
    if (number != 0) {
        const struct expect *x = expect_at(e, number);
        uint64_t uncovered = expect_uncovered(x);
        announced = end_announcement(e, number, c->note);
        served = bookings_serve(e, number, spare);
        booked = x->booked;
        /* of what arrives some may be too little for the next booking */
        if (units < announced || expect_uncovered(x) > uncovered)
            tell(e, EVENT_ARRIVAL_SHORT, c->name, c->note, announced, units,
                 expect_uncovered(x));
        settle(e, number);
    }
    reply_product(e, p, 3);
    reply_field_number(&e->body, FIELD_ANNOUNCED, (int64_t)announced);
    reply_field_number(&e->body, FIELD_SERVED, served);
    reply_field_number(&e->body, FIELD_BOOKED, (int64_t)booked);
    waitlist_later(e, at.number);
    waitlist_serve(e);
}

/* ---- STOCK EXPECTED. ---- */

static void show_arrivals(struct hold_engine *e, const struct expect *x)
{
    struct hf_buf *body = &e->body;

    reply_field(body, FIELD_ARRIVALS);
    reply_list(body, x->arrival_count);
    for (uint32_t i = 0; i < x->arrival_count; i++) {
        const struct arrival *arrival = &x->arrivals[i];
        reply_map(body, 4);
        reply_field_text(body, FIELD_REF,
                         hf_text_bytes(&e->texts, arrival->ref));
        reply_field_number(body, FIELD_QUANTITY, (int64_t)arrival->units);
        reply_field_number(body, FIELD_EXPECTED_MS,
                           (int64_t)(arrival->at_us / US_PER_MS));
        reply_field_number(body, FIELD_LATE, arrival->late);
    }
}

/* The longest entry of the list. */
#define SHOWN_BYTES (HOLD_ID_MAX + HOLD_OWNER_MAX + 128u)

static void show_booking(struct hold_engine *e, const struct expect *x,
                         const struct reservation *r, uint64_t quantity,
                         uint64_t position, uint64_t units)
{
    struct hf_buf *body = &e->body;

    reply_map(body, 6);
    reply_field_text(body, FIELD_ID, hf_index_name(&e->reservations, r));
    reply_field_text(body, FIELD_OWNER, hf_text_bytes(&e->texts, r->owner));
    reply_field_number(body, FIELD_QUANTITY, (int64_t)quantity);
    reply_field_number(body, FIELD_CREATED_MS,
                       (int64_t)(r->created_us / US_PER_MS));
    reply_field_number(body, FIELD_POSITION, (int64_t)position);
    reply_field_number(body, FIELD_EXPECTED_MS, expect_time_ms(x, units));
}

/* The cursor is the position to go on with. */
static void show_bookings(struct hold_engine *e, const struct hold_command *c,
                          const struct expect *x)
{
    uint64_t most = c->count > 0 ? c->count : HOLD_LIST_MAX;
    struct hf_buf *body = &e->body;
    uint64_t position = 1;
    uint64_t units = 0;
    uint32_t count = 0;
    uint32_t n = x->bookings.first;

    reply_field(body, FIELD_BOOKINGS);
    reply_list(body, 0);
    size_t count_at = body->len - 4;
    for (; n != 0; n = reservation_at(e, n)->listed.links.next, position++) {
        const struct reservation *r = reservation_at(e, n);
        struct hold_item item;
        size_t at = 0;
        (void)hold_next_item(items_of(e, r), &at, &item);
        units += item.quantity;
        if (position < c->cursor)
            continue;
        if (count == most || count == HOLD_LIST_MAX ||
            body->cap - body->len < 2 * SHOWN_BYTES)
            break;
        show_booking(e, x, r, item.quantity, position, units);
        count++;
    }
    e->out.work += position;
    hf_put_u32(body->data + count_at, count);
    reply_field_number(body, FIELD_CURSOR, n != 0 ? (int64_t)position : 0);
}

void expect_show(struct hold_engine *e, const struct hold_command *c)
{
    static const struct expect none;
    uint32_t number = expect_find(e, c->name);

    if (hf_index_find(&e->products, c->name) == 0) {
        reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_SKU, c->name);
        return;
    }
    const struct expect *x = number == 0 ? &none : expect_at(e, number);
    reply_map(&e->body, 7);
    reply_field_text(&e->body, FIELD_SKU, c->name);
    reply_expect(e, number);
    show_arrivals(e, x);
    show_bookings(e, c, x);
}
