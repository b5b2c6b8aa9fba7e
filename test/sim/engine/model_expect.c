/* model_expect.c - stock that is announced, and who booked it, in the model. */
#include <assert.h>

#include "base/memory.h"
#include "sim/engine/model.h"

/* ---- Sums, by looking at everything. ---- */

__int128 model_announced(const struct model *model, struct hf_bytes sku)
{
    __int128 units = 0;

    for (size_t i = 0; i < model->arrival_count; i++) {
        if (model_is(&model->arrivals[i].sku, sku))
            units += model->arrivals[i].units;
    }
    return units;
}

__int128 model_booked(const struct model *model, struct hf_bytes sku)
{
    __int128 units = 0;

    for (size_t i = 0; i < model->booking_count; i++) {
        if (model_is(&model->bookings[i].item.sku, sku))
            units += model->bookings[i].item.quantity;
    }
    return units;
}

static int64_t uncovered(const struct model *model, struct hf_bytes sku)
{
    __int128 units = model_booked(model, sku) - model_announced(model, sku);

    return units > 0 ? (int64_t)units : 0;
}

static size_t count_arrivals(const struct model *model, struct hf_bytes sku)
{
    size_t count = 0;

    for (size_t i = 0; i < model->arrival_count; i++)
        count += model_is(&model->arrivals[i].sku, sku);
    return count;
}

static size_t count_bookings(const struct model *model, struct hf_bytes sku)
{
    size_t count = 0;

    for (size_t i = 0; i < model->booking_count; i++)
        count += model_is(&model->bookings[i].item.sku, sku);
    return count;
}

bool model_is_expected(const struct model *model, struct hf_bytes sku)
{
    return count_arrivals(model, sku) + count_bookings(model, sku) > 0;
}

/* When the last of so many units is to arrive. */
static int64_t time_ms(const struct model *model, struct hf_bytes sku,
                       __int128 units)
{
    for (size_t i = 0; i < model->arrival_count; i++) {
        const struct model_arrival *arrival = &model->arrivals[i];
        if (!model_is(&arrival->sku, sku))
            continue;
        units -= arrival->units;
        if (units <= 0)
            return (int64_t)(arrival->at_us / 1000);
    }
    return 0;
}

static void write_sums(const struct model *model, struct hf_buf *out,
                       struct hf_bytes sku)
{
    reply_field_number(out, FIELD_EXPECTED,
                       (int64_t)model_announced(model, sku));
    reply_field_number(out, FIELD_BOOKED, (int64_t)model_booked(model, sku));
    reply_field_number(out, FIELD_UNCOVERED, uncovered(model, sku));
}

/* ---- Bookings. ---- */

struct model_booking *model_find_booking(struct model *model,
                                         struct hf_bytes id)
{
    for (size_t i = 0; i < model->booking_count; i++) {
        if (model_is(&model->bookings[i].id, id))
            return &model->bookings[i];
    }
    return NULL;
}

bool model_is_booking_of(const struct model_booking *booking,
                         const struct hold_command *c)
{
    return c->item_count == 1 &&
           model_is(&booking->item.sku, c->items[0].sku) &&
           booking->item.quantity == c->items[0].quantity;
}

/* Position and time of it. */
static void write_place(const struct model *model, struct hf_buf *out,
                        const struct model_booking *booking)
{
    struct hf_bytes sku = model_bytes(&booking->item.sku);
    int64_t position = 0;
    __int128 units = 0;

    for (const struct model_booking *b = model->bookings; b <= booking; b++) {
        if (!model_is(&b->item.sku, sku))
            continue;
        position++;
        units += b->item.quantity;
    }
    reply_field_number(out, FIELD_POSITION, position);
    reply_field_number(out, FIELD_EXPECTED_MS, time_ms(model, sku, units));
}

void model_show_booked(struct model *model, const struct model_booking *booking)
{
    struct hf_buf *out = model_reply(model, HOLD_OK);

    reply_map(out, 4);
    reply_field_text(out, FIELD_ID, model_bytes(&booking->id));
    reply_field_text(out, FIELD_STATUS, hf_bytes_text("BOOKED"));
    write_place(model, out, booking);
}

void model_show_booking(struct model *model,
                        const struct model_booking *booking)
{
    const struct model_class *class = model_class_of(model, booking->class);
    struct hf_buf *out = model_reply(model, HOLD_OK);

    reply_map(out, 12);
    reply_field_text(out, FIELD_ID, model_bytes(&booking->id));
    reply_field_text(out, FIELD_STATUS, hf_bytes_text("BOOKED"));
    reply_field_number(out, FIELD_EXPIRES_MS, 0);
    reply_field(out, FIELD_ITEMS);
    reply_list(out, 1);
    reply_map(out, 2);
    reply_field_text(out, FIELD_SKU, model_bytes(&booking->item.sku));
    reply_field_number(out, FIELD_QUANTITY, (int64_t)booking->item.quantity);
    reply_field_text(out, FIELD_OWNER, model_bytes(&booking->owner));
    reply_field_number(out, FIELD_CREATED_MS,
                       (int64_t)(booking->created_us / 1000));
    reply_field_number(out, FIELD_ENDED_MS, 0);
    reply_field_text(out, FIELD_REASON, hf_bytes("", 0));
    reply_field_text(out, FIELD_CLASS,
                     class == NULL ? hf_bytes("", 0)
                                   : model_bytes(&class->name));
    reply_field_number(out, FIELD_EXTENDS, 0);
    write_place(model, out, booking);
}

static void tell_booking(struct model *model, const struct model_booking *b,
                         struct hf_bytes reason)
{
    model_tell(model, &(struct model_facts){.owner = model_bytes(&b->owner),
                                            .note = reason,
                                            .item_count = 1,
                                            .items = &b->item});
}

void model_book(struct model *model, struct hf_bytes id,
                const struct hold_command *c)
{
    struct hf_bytes sku = c->items[0].sku;
    __int128 quantity = c->items[0].quantity;
    size_t waiting = model_count_buyers(model, sku);

    if (model_booked(model, sku) + quantity > model_announced(model, sku)) {
        struct hf_buf *out = model_reply(model, HOLD_SHORT);
        reply_map(out, waiting > 0 ? 7 : 6);
        reply_field_text(out, FIELD_SKU, sku);
        reply_field_number(out, FIELD_REQUESTED, (int64_t)quantity);
        reply_field_number(out, FIELD_AVAILABLE,
                           (int64_t)model_free_units(model, sku));
        if (waiting > 0)
            reply_field_number(out, FIELD_WAITING, (int64_t)waiting);
        write_sums(model, out, sku);
        return;
    }
    if (count_bookings(model, sku) >= model->bounds.waiters_max) {
        model_overloaded(model, "waiters-max", model->bounds.waiters_max);
        return;
    }
    if (!model_make_room(model)) {
        model_overloaded(model, "reservations-max",
                         model->bounds.reservations_max);
        return;
    }
    assert(model->booking_count < MODEL_MAX);
    struct model_booking *b = &model->bookings[model->booking_count++];
    *b = (struct model_booking){
        .id = model_text(id),
        .owner = model_text(c->owner),
        .item = {model_text(sku), (uint64_t)quantity},
        .created_us = model->now_us,
        .ttl_ms = model_ttl_ms(model, c),
        .class = model_class_number(model, c->class),
    };
    b->seq = model_event(model, EVENT_BOOKED, id, 0);
    tell_booking(model, b, hf_bytes("", 0));
    model->figures[FIGURE_BOOKED]++;
    model_show_booked(model, b);
}

/* It leaves the queue. */
static struct model_booking leave(struct model *model,
                                  struct model_booking *booking)
{
    struct model_booking left = *booking;

    model_close_gap(model->bookings, sizeof *booking, &model->booking_count,
                    (size_t)(booking - model->bookings));
    return left;
}

static struct model_item *one_item(const struct model_booking *booking)
{
    struct model_item *items = hf_alloc(2 * sizeof *items);

    if (items == NULL)
        abort();
    items[0] = booking->item;
    return items;
}

void model_cancel_booking(struct model *model, struct model_booking *booking,
                          const struct hold_command *c)
{
    struct model_booking left = leave(model, booking);

    model_event(model, EVENT_BOOKING_CANCELLED, c->name, 0);
    tell_booking(model, &left, c->reason);
    assert(model->reservation_count < MODEL_MAX);
    struct model_reservation *r =
        &model->reservations[model->reservation_count++];
    *r = (struct model_reservation){.id = left.id,
                                    .owner = left.owner,
                                    .reason = model_text(c->reason),
                                    .status = MODEL_CANCELLED,
                                    .seq = left.seq,
                                    .created_us = left.created_us,
                                    .ended_us = model->now_us,
                                    .ended_order = ++model->order,
                                    .class = left.class,
                                    .item_count = 1,
                                    .items = one_item(&left)};
    model->figures[FIGURE_BOOKED_CANCELLED]++;
    model_show_reservation(model, r);
}

/* The first of the product. */
static struct model_booking *first_booking(struct model *model,
                                           struct hf_bytes sku)
{
    for (size_t i = 0; i < model->booking_count; i++) {
        if (model_is(&model->bookings[i].item.sku, sku))
            return &model->bookings[i];
    }
    return NULL;
}

/* Serves bookings with all that is there but `kept` units. */
static int64_t serve(struct model *model, struct hf_bytes sku, uint64_t kept)
{
    struct model_booking *b;
    int64_t served = 0;

    for (; (b = first_booking(model, sku)) != NULL; served++) {
        uint64_t units = model_free_units(model, sku);
        if (units - kept < b->item.quantity) {
            model->figures[FIGURE_BOOKED_SPARED] += units >= b->item.quantity;
            model->figures[FIGURE_BOOKED_STOPPED] +=
                count_bookings(model, sku) > 1;
            break;
        }
        struct model_booking left = leave(model, b);
        model_add_reservation(model,
                              &(struct model_buyer){.id = left.id,
                                                    .owner = left.owner,
                                                    .order = left.seq,
                                                    .ttl_ms = left.ttl_ms,
                                                    .class = left.class,
                                                    .item_count = 1,
                                                    .items = one_item(&left)},
                              EVENT_OFFERED);
        model->figures[FIGURE_BOOKED_SERVED]++;
    }
    return served;
}

/* ---- Arrivals. ---- */

static struct model_arrival *
find_arrival(struct model *model, struct hf_bytes sku, struct hf_bytes ref)
{
    for (size_t i = 0; i < model->arrival_count; i++) {
        if (model_is(&model->arrivals[i].sku, sku) &&
            model_is(&model->arrivals[i].ref, ref))
            return &model->arrivals[i];
    }
    return NULL;
}

static struct model_arrival take(struct model *model,
                                 struct model_arrival *arrival)
{
    struct model_arrival taken = *arrival;

    model_close_gap(model->arrivals, sizeof taken, &model->arrival_count,
                    (size_t)(arrival - model->arrivals));
    return taken;
}

static void put(struct model *model, const struct model_arrival *arrival)
{
    size_t at = 0;

    assert(model->arrival_count < MODEL_MAX);
    while (at < model->arrival_count &&
           model->arrivals[at].at_us <= arrival->at_us)
        at++;
    memmove(&model->arrivals[at + 1], &model->arrivals[at],
            (model->arrival_count - at) * sizeof *arrival);
    model->arrivals[at] = *arrival;
    model->arrival_count++;
}

static uint64_t tell(struct model *model, enum hold_event_kind kind,
                     const struct model_arrival *arrival, uint64_t announced,
                     uint64_t arrived, uint64_t token)
{
    uint64_t lag_us =
        kind == EVENT_ARRIVAL_LATE ? model->now_us - arrival->at_us : 0;
    uint64_t seq = model_event(model, kind, model_bytes(&arrival->sku), lag_us);

    model->events[model->event_count - 1].token = token;
    model_tell(model, &(struct model_facts){.owner = model_bytes(&arrival->ref),
                                            .total = (int64_t)announced,
                                            .available = (int64_t)arrived});
    return seq;
}

void model_arrival_due(struct model *model, void *thing)
{
    struct model_arrival *arrival = thing;

    tell(model, EVENT_ARRIVAL_LATE, arrival, arrival->units, 0,
         arrival->at_us / 1000);
    arrival->late = true;
    model->figures[FIGURE_ARRIVED_LATE]++;
}

void model_forget_arrivals(struct model *model, struct hf_bytes sku)
{
    for (size_t i = model->arrival_count; i-- > 0;) {
        if (model_is(&model->arrivals[i].sku, sku))
            take(model, &model->arrivals[i]);
    }
}

static void refuse_ref(struct model *model, const struct hold_command *c,
                       enum hold_code code)
{
    struct hf_buf *out = model_reply(model, code);

    reply_map(out, 2);
    reply_field_text(out, FIELD_SKU, c->name);
    reply_field_text(out, FIELD_REF, c->note);
}

/* True if it cannot be announced, with the refusal written. */
static bool refuse(struct model *model, const struct hold_command *c,
                   const struct model_arrival *known)
{
    __int128 units = model_announced(model, c->name) + c->amount -
                     (known == NULL ? 0 : (__int128)known->units);

    if (known == NULL && c->amount == 0)
        refuse_ref(model, c, HOLD_NOTFOUND);
    else if (known == NULL && c->delay_ms == 0)
        refuse_ref(model, c, HOLD_BADARG);
    else if (units > HOLD_STOCK_MAX)
        model_overloaded(model, "stock-max", HOLD_STOCK_MAX);
    else if (known == NULL && count_arrivals(model, c->name) == HOLD_EXPECT_MAX)
        model_overloaded(model, "arrivals-max", HOLD_EXPECT_MAX);
    else
        return false;
    return true;
}

static void announce(struct model *model, const struct hold_command *c)
{
    struct model_arrival *known = find_arrival(model, c->name, c->note);
    struct model_arrival arrival = {.sku = model_text(c->name),
                                    .ref = model_text(c->note)};

    if (refuse(model, c, known))
        return;
    int64_t bare = uncovered(model, c->name);
    if (known != NULL)
        arrival = take(model, known);
    uint64_t before = arrival.units;
    arrival.units = (uint64_t)c->amount;
    if (c->delay_ms > 0)
        arrival.at_us = c->delay_ms * 1000;
    arrival.late = false;
    arrival.seq = tell(model, EVENT_ARRIVAL_EXPECTED, &arrival, arrival.units,
                       0, arrival.at_us / 1000);
    if (arrival.units > 0 && arrival.at_us <= model->now_us)
        model_arrival_due(model, &arrival);
    if (arrival.units > 0)
        put(model, &arrival);
    if (uncovered(model, c->name) > bare) {
        tell(model, EVENT_ARRIVAL_SHORT, &arrival, before, arrival.units,
             (uint64_t)uncovered(model, c->name));
        model->figures[FIGURE_UNCOVERED]++;
    }
    struct hf_buf *out = model_reply(model, HOLD_OK);
    reply_map(out, 4);
    reply_field_text(out, FIELD_SKU, c->name);
    write_sums(model, out, c->name);
    model->figures[FIGURE_ANNOUNCED]++;
}

static void arrive(struct model *model, struct model_product *product,
                   const struct hold_command *c)
{
    uint64_t kept = model_count_buyers(model, c->name) > 0
                        ? model_free_units(model, c->name)
                        : 0;
    struct model_arrival *known = find_arrival(model, c->name, c->note);
    struct model_arrival arrival = {.units = 0};

    if ((__int128)product->total + c->amount > HOLD_STOCK_MAX) {
        model_overloaded(model, "stock-max", HOLD_STOCK_MAX);
        return;
    }
    model_set_total(model, product, product->total + c->amount, c);
    int64_t bare = uncovered(model, c->name);
    if (known != NULL)
        arrival = take(model, known);
    int64_t served = serve(model, c->name, kept);
    if ((uint64_t)c->amount < arrival.units ||
        uncovered(model, c->name) > bare) {
        tell(model, EVENT_ARRIVAL_SHORT, &arrival, arrival.units,
             (uint64_t)c->amount, (uint64_t)uncovered(model, c->name));
        model->figures[FIGURE_ARRIVED_SHORT]++;
    }
    model->figures[FIGURE_ARRIVED] += known != NULL;
    struct hf_buf *out = model_reply(model, HOLD_OK);
    model_write_product(model, out, product, false);
    hf_put_u32(out->data + 1, 12); /* and three more */
    reply_field_number(out, FIELD_ANNOUNCED, (int64_t)arrival.units);
    reply_field_number(out, FIELD_SERVED, served);
    reply_field_number(out, FIELD_BOOKED,
                       (int64_t)model_booked(model, c->name));
    model_call_product(model, c->name);
    model_serve_products(model);
}

static void write_arrivals(const struct model *model, struct hf_buf *out,
                           struct hf_bytes sku)
{
    reply_field(out, FIELD_ARRIVALS);
    reply_list(out, (uint32_t)count_arrivals(model, sku));
    for (size_t i = 0; i < model->arrival_count; i++) {
        const struct model_arrival *arrival = &model->arrivals[i];
        if (!model_is(&arrival->sku, sku))
            continue;
        reply_map(out, 4);
        reply_field_text(out, FIELD_REF, model_bytes(&arrival->ref));
        reply_field_number(out, FIELD_QUANTITY, (int64_t)arrival->units);
        reply_field_number(out, FIELD_EXPECTED_MS,
                           (int64_t)(arrival->at_us / 1000));
        reply_field_number(out, FIELD_LATE, arrival->late);
    }
}

void model_show_expected(struct model *model, const struct hold_command *c)
{
    size_t count = count_bookings(model, c->name);
    size_t from = c->cursor > 0 ? c->cursor - 1 : 0;
    size_t most = c->count > 0 ? c->count : HOLD_LIST_MAX;
    size_t to = from + most < count ? from + most : count;
    bool known = model_find_product(model, c->name) != NULL;
    struct hf_buf *out = model_reply(model, known ? HOLD_OK : HOLD_NOTFOUND);
    size_t place = 0;

    reply_map(out, known ? 7 : 1);
    reply_field_text(out, FIELD_SKU, c->name);
    if (!known)
        return;
    write_sums(model, out, c->name);
    write_arrivals(model, out, c->name);
    reply_field(out, FIELD_BOOKINGS);
    reply_list(out, (uint32_t)(to > from ? to - from : 0));
    for (size_t i = 0; i < model->booking_count; i++) {
        const struct model_booking *b = &model->bookings[i];
        if (!model_is(&b->item.sku, c->name) || place++ < from || place > to)
            continue;
        reply_map(out, 6);
        reply_field_text(out, FIELD_ID, model_bytes(&b->id));
        reply_field_text(out, FIELD_OWNER, model_bytes(&b->owner));
        reply_field_number(out, FIELD_QUANTITY, (int64_t)b->item.quantity);
        reply_field_number(out, FIELD_CREATED_MS,
                           (int64_t)(b->created_us / 1000));
        write_place(model, out, b);
    }
    reply_field_number(out, FIELD_CURSOR, to < count ? (int64_t)to + 1 : 0);
}

static void preorder_command(struct model *model, const struct hold_command *c)
{
    struct model_product *product = model_find_product(model, c->name);

    if (product == NULL) {
        struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_SKU, c->name);
    } else if (c->kind == HOLD_EXPECT) {
        announce(model, c);
    } else {
        arrive(model, product, c);
    }
}

static void clear(struct model *model)
{
    model->arrival_count = 0;
    model->booking_count = 0;
}

MODEL_PART("preorder", preorder_command, clear);
