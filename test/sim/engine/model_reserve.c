/* model_reserve.c - reservations in the model. */
#include <assert.h>

#include "base/memory.h"
#include "sim/engine/model.h"

const char *model_status_name(enum model_status status)
{
    static const char *const names[] = {"PENDING", "CONFIRMED", "CANCELLED",
                                        "EXPIRED"};
    return names[status];
}

struct model_reservation *model_find_reservation(struct model *model,
                                                 struct hf_bytes id)
{
    for (size_t i = 0; i < model->reservation_count; i++) {
        if (model_is(&model->reservations[i].id, id))
            return &model->reservations[i];
    }
    return NULL;
}

void model_forget_reservation(struct model *model,
                              struct model_reservation *reservation)
{
    hf_free(reservation->items);
    model_close_gap(model->reservations, sizeof *reservation,
                    &model->reservation_count,
                    (size_t)(reservation - model->reservations));
}

/* 26 digits of 5 bits: 130 bits, of which the highest two are always 0. */
void model_make_id(char *out, uint64_t now_us, uint64_t seq)
{
    static const char digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    uint64_t ms = now_us / 1000;

    for (int i = 9; i >= 0; i--, ms /= 32)
        out[i] = digits[i == 0 ? ms % 8 : ms % 32];
    for (int i = 25; i >= 10; i--, seq /= 32)
        out[i] = digits[seq % 32];
}

void model_write_reservation(struct model *model, struct hf_buf *out,
                             const struct model_reservation *r, uint32_t more)
{
    uint64_t left_us =
        r->status == MODEL_PENDING ? r->expires_us - model->now_us : 0;

    reply_map(out, 4 + more);
    reply_field_text(out, FIELD_ID, model_bytes(&r->id));
    reply_field_text(out, FIELD_STATUS,
                     hf_bytes_text(model_status_name(r->status)));
    reply_field_number(out, FIELD_EXPIRES_MS, (int64_t)(left_us / 1000));
    reply_field(out, FIELD_ITEMS);
    reply_list(out, (uint32_t)r->item_count);
    for (size_t i = 0; i < r->item_count; i++) {
        reply_map(out, 2);
        reply_field_text(out, FIELD_SKU, model_bytes(&r->items[i].sku));
        reply_field_number(out, FIELD_QUANTITY, (int64_t)r->items[i].quantity);
    }
}

/* The reply about the state of a reservation; `more` fields follow. */
static struct hf_buf *show(struct model *model,
                           const struct model_reservation *r, uint32_t more)
{
    struct hf_buf *out = model_reply(model, HOLD_OK);

    model_write_reservation(model, out, r, more);
    return out;
}

void model_show_reservation(struct model *model,
                            const struct model_reservation *r)
{
    show(model, r, 0);
}

/* Begins a refusal with `count` facts, of which `id` is the first. */
static struct hf_buf *refuse(struct model *model, enum hold_code code,
                             uint32_t count, enum hold_field field,
                             struct hf_bytes id)
{
    struct hf_buf *out = model_reply(model, code);

    reply_map(out, count);
    reply_field_text(out, field, id);
    return out;
}

/* Units that are reserved become available, or are sold. */
static void give(struct model *model, struct hf_bytes sku, uint64_t quantity,
                 bool sold, uint64_t seq)
{
    struct model_product *product = model_find_product(model, sku);

    assert(product != NULL);
    product->reserved -= (int64_t)quantity;
    assert(product->reserved >= 0);
    if (sold)
        product->sold += (int64_t)quantity;
    product->version = seq;
    product->updated_us = model->now_us;
    if (!sold)
        model_call_product(model, sku);
}

static void tell_levels(struct model *model, const struct model_reservation *r)
{
    for (size_t i = 0; i < r->item_count; i++)
        model_tell_level(
            model, model_find_product(model, model_bytes(&r->items[i].sku)));
}

static void end(struct model *model, struct model_reservation *r,
                enum model_status status, uint64_t seq)
{
    for (size_t i = 0; i < r->item_count; i++)
        give(model, model_bytes(&r->items[i].sku), r->items[i].quantity,
             status == MODEL_CONFIRMED, seq);
    r->status = status;
    r->ended_us = model->now_us;
    r->ended_order = ++model->order;
    tell_levels(model, r);
}

static void tell(struct model *model, const struct model_reservation *r,
                 struct hf_bytes reason)
{
    model_tell(model, &(struct model_facts){.owner = model_bytes(&r->owner),
                                            .note = reason,
                                            .group = model_group_of(r),
                                            .item_count = r->item_count,
                                            .items = r->items});
}

void model_reservation_due(struct model *model, void *thing)
{
    struct model_reservation *reservation = thing;
    uint64_t seq = model_event(model, EVENT_RESERVATION_EXPIRED,
                               model_bytes(&reservation->id),
                               model->now_us - reservation->expires_us);

    model_age(model, reservation->created_us);
    tell(model, reservation, hf_bytes("", 0));
    end(model, reservation, MODEL_EXPIRED, seq);
    model_serve_products(model);
}

void model_give_up_reservation(struct model *model, struct hf_bytes id,
                               uint64_t seq_made)
{
    struct model_reservation *r = model_find_reservation(model, id);

    if (r == NULL || r->seq != seq_made || r->status != MODEL_PENDING)
        return;
    if (r->expires_us <= model->now_us) {
        model_reservation_due(model, r);
        return;
    }
    uint64_t seq = model_event(model, EVENT_CANCELLED, id, 0);
    model_age(model, r->created_us);
    tell(model, r, hf_bytes("", 0));
    end(model, r, MODEL_CANCELLED, seq);
    model_serve_products(model);
    model->figures[FIGURE_STOCK_GIVEN_UP]++;
}

void model_settle_reservation(struct model *model, struct hf_bytes id)
{
    struct model_reservation *r = model_find_reservation(model, id);

    if (r != NULL && r->status == MODEL_PENDING &&
        r->expires_us <= model->now_us)
        model_reservation_due(model, r);
}

static bool same_items(const struct model_reservation *r,
                       const struct hold_command *c)
{
    if (r->item_count != c->item_count)
        return false;
    for (size_t i = 0; i < r->item_count; i++) {
        if (!model_is(&r->items[i].sku, c->items[i].sku) ||
            r->items[i].quantity != c->items[i].quantity)
            return false;
    }
    return true;
}

bool model_make_room(struct model *model)
{
    struct model_reservation *oldest = NULL;

    if (model->reservation_count + model->buyer_count + model->booking_count <
        model->bounds.reservations_max)
        return true;
    for (size_t i = 0; i < model->reservation_count; i++) {
        struct model_reservation *r = &model->reservations[i];
        if (r->status != MODEL_PENDING &&
            (oldest == NULL || r->ended_order < oldest->ended_order))
            oldest = r;
    }
    if (oldest == NULL || model_has_grace(model, oldest, model->now_us))
        return false;
    model_forget_reservation(model, oldest);
    return true;
}

struct model_reservation *model_add_reservation(struct model *model,
                                                const struct model_buyer *what,
                                                enum hold_event_kind kind)
{
    assert(model->reservation_count < MODEL_MAX);
    struct model_reservation *r =
        &model->reservations[model->reservation_count++];
    *r = (struct model_reservation){
        .id = what->id,
        .owner = what->owner,
        .group = what->group,
        .status = MODEL_PENDING,
        .created_us = model->now_us,
        .expires_us = model->now_us + what->ttl_ms * 1000,
        .class = what->class,
        .item_count = what->item_count,
        .items = what->items,
    };
    uint64_t seq = model_event(model, kind, model_bytes(&r->id), 0);
    if (what->joined)
        model_age(model, what->queued_us);
    r->seq = what->order;
    for (size_t i = 0; i < r->item_count; i++) {
        struct model_product *p =
            model_find_product(model, model_bytes(&r->items[i].sku));
        model_set_aside(model, p, (int64_t)r->items[i].quantity, r);
        p->version = seq;
        p->updated_us = model->now_us;
    }
    tell(model, r, hf_bytes("", 0));
    tell_levels(model, r);
    return r;
}

static void add(struct model *model, struct hf_bytes id,
                const struct hold_command *c)
{
    assert(model->reservation_count < MODEL_MAX);
    struct model_reservation *r =
        &model->reservations[model->reservation_count++];
    *r = (struct model_reservation){
        .id = model_text(id),
        .owner = model_text(c->owner),
        .group = model_text(c->bundle),
        .status = MODEL_PENDING,
        .created_us = model->now_us,
        .expires_us = model->now_us + model_ttl_ms(model, c) * 1000,
        .class = model_class_number(model, c->class),
        .items = hf_alloc((c->item_count + 1) * sizeof *r->items),
    };
    if (r->items == NULL)
        abort();
    uint32_t failed = model_count_short(model, c);
    struct hf_buf kept = {0}; /* as it is before anything is taken */
    if (hf_buf_reserve(&kept, 65536) != HF_OK)
        abort();
    model_write_list(model, &kept, c, failed);
    r->seq = model_event(
        model, c->kind == HOLD_RESERVE ? EVENT_RESERVED : EVENT_OFFERED, id, 0);
    for (uint32_t i = 0; i < c->item_count; i++) {
        struct model_product *p = model_find_product(model, c->items[i].sku);
        uint64_t units = model_free_units(model, c->items[i].sku);
        uint64_t left = model_left(model, p, c->owner);
        if (units > left)
            units = left;
        if (units > c->items[i].quantity)
            units = c->items[i].quantity;
        if (model_lacks_item(model, c, i))
            continue;
        model_set_aside(model, p, (int64_t)units, r);
        p->version = r->seq;
        p->updated_us = model->now_us;
        r->items[r->item_count].sku = p->sku;
        r->items[r->item_count++].quantity = units;
    }
    tell(model, r, hf_bytes("", 0));
    tell_levels(model, r);
    bool best = (c->flags & HOLD_BEST) != 0;
    struct hf_buf *out = show(model, r, best);
    if (best) {
        reply_field(out, FIELD_FAILED);
        memcpy(out->data + out->len, kept.data, kept.len);
        out->len += kept.len;
    }
    hf_buf_destroy(&kept);
}

static void refuse_state(struct model *model, struct hf_bytes id,
                         const char *status)
{
    struct hf_buf *out = refuse(model, HOLD_STATE, 2, FIELD_ID, id);

    reply_field_text(out, FIELD_STATUS, hf_bytes_text(status));
}

void model_reserve(struct model *model, const struct hold_command *c)
{
    static struct hold_command placed;
    char made[26];
    struct hf_bytes id = c->name;

    model_settle_limits(model);
    if (id.len == 0) {
        model_make_id(made, model->now_us, model->seq + 1);
        id = hf_bytes(made, sizeof made);
    }
    struct model_reservation *known = model_find_reservation(model, id);
    struct model_buyer *buyer = model_find_buyer(model, id);
    struct model_booking *booking = model_find_booking(model, id);
    if (booking != NULL && c->name.len > 0 && hold_may_book(c) &&
        model_is_booking_of(booking, c))
        model_show_booked(model, booking);
    else if (booking != NULL && c->name.len > 0)
        refuse_state(model, id, "BOOKED");
    else if (buyer != NULL && c->name.len > 0 && buyer->joined &&
             c->kind == HOLD_WAITLIST_JOIN &&
             model_is(&buyer->items[0].sku, c->items[0].sku) &&
             buyer->items[0].quantity == c->items[0].quantity)
        model_show_joined(model, buyer);
    else if (buyer != NULL && c->name.len > 0)
        refuse_state(model, id, "WAITING");
    else if (known != NULL && c->name.len > 0 && known->status != MODEL_PENDING)
        refuse_state(model, id, model_status_name(known->status));
    else if (known != NULL && c->name.len > 0 && model_may_be_of(known, c))
        show(model, known, 0);
    else if (known != NULL || buyer != NULL || booking != NULL)
        refuse(model, HOLD_CONFLICT, 1, FIELD_ID, id);
    else if (c->class.len > 0 && model_find_class(model, c->class) == NULL)
        refuse(model, HOLD_NOTFOUND, 1, FIELD_CLASS, c->class);
    else if (hold_is_placed(c) && !model_choose_places(model, c, &placed))
        return;
    else if (hold_is_placed(c) && model_group_is_full(model, c))
        return;
    else if (hold_is_placed(c) && !model_make_room(model))
        model_overloaded(model, "reservations-max",
                         model->bounds.reservations_max);
    else if (hold_is_placed(c))
        add(model, id, &placed);
    else if (model_lacks_product(model, c) || model_exceeds(model, c))
        return;
    else if (model_must_wait(model, c))
        model_queue_buyer(model, id, c);
    else if (hold_may_book(c) && model_count_short(model, c) > 0)
        model_book(model, id, c);
    else if (model_lacks_stock(model, c) || model_group_is_full(model, c))
        return;
    else if (!model_make_room(model))
        model_overloaded(model, "reservations-max",
                         model->bounds.reservations_max);
    else
        add(model, id, c);
}

/* How much of an item the command names. */
static uint64_t named(const struct hold_command *c,
                      const struct model_item *item)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (model_is(&item->sku, c->items[i].sku))
            return c->items[i].quantity;
    }
    return 0;
}

/* True if the command names what the reservation does not have, with the
 * refusal written. */
static bool lacks_part(struct model *model, const struct model_reservation *r,
                       const struct hold_command *c)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint64_t has = 0;
        for (size_t j = 0; j < r->item_count; j++) {
            if (model_is(&r->items[j].sku, c->items[i].sku))
                has = r->items[j].quantity;
        }
        if (has >= c->items[i].quantity)
            continue;
        struct hf_buf *out = refuse(model, HOLD_BADARG, 4, FIELD_ID, c->name);
        reply_field_text(out, FIELD_SKU, c->items[i].sku);
        reply_field_number(out, FIELD_REQUESTED, (int64_t)c->items[i].quantity);
        reply_field_number(out, FIELD_RESERVED, (int64_t)has);
        return true;
    }
    return false;
}

/* CANCEL of some items frees them, CONFIRM of some all others; the reservation
 * has the rest. */
static void reduce(struct model *model, struct model_reservation *r,
                   const struct hold_command *c)
{
    struct model_reservation freed = {.owner = r->owner, .group = r->group};
    size_t left = 0;

    freed.items = hf_alloc((r->item_count + 1) * sizeof *r->items);
    if (freed.items == NULL)
        abort();
    for (size_t i = 0; i < r->item_count; i++) {
        struct model_item item = r->items[i];
        uint64_t all = item.quantity;
        item.quantity = named(c, &item);
        if (c->kind == HOLD_CONFIRM)
            item.quantity = all - item.quantity;
        if (item.quantity > 0)
            freed.items[freed.item_count++] = item;
        item.quantity = all - item.quantity;
        if (item.quantity > 0)
            r->items[left++] = item;
    }
    r->item_count = left;
    uint64_t seq = model_event(model, EVENT_REDUCED, c->name, 0);
    tell(model, &freed, c->reason);
    for (size_t i = 0; i < freed.item_count; i++)
        give(model, model_bytes(&freed.items[i].sku), freed.items[i].quantity,
             false, seq);
    tell_levels(model, &freed);
    hf_free(freed.items);
}

/* A CONFIRM in the time of grace: what was free again is sold. */
void model_sell_late(struct model *model, struct model_reservation *r)
{
    uint64_t seq =
        model_event(model, EVENT_CONFIRMED_LATE, model_bytes(&r->id), 0);

    model_age(model, r->created_us);
    for (size_t i = 0; i < r->item_count; i++) {
        struct model_product *p =
            model_find_product(model, model_bytes(&r->items[i].sku));
        p->sold += (int64_t)r->items[i].quantity;
        p->version = seq;
        p->updated_us = model->now_us;
    }
    tell(model, r, hf_bytes("", 0));
    r->status = MODEL_CONFIRMED;
    r->ended_us = model->now_us;
    r->ended_order = ++model->order;
    tell_levels(model, r);
}

static void confirm_late(struct model *model, struct model_reservation *r,
                         const struct hold_command *c)
{
    struct hold_command wanted = {.kind = HOLD_CONFIRM};

    if (lacks_part(model, r, c))
        return;
    for (size_t i = 0; i < r->item_count; i++) {
        uint64_t quantity =
            c->item_count > 0 ? named(c, &r->items[i]) : r->items[i].quantity;
        if (quantity > 0)
            hold_add_item(&wanted, model_bytes(&r->items[i].sku), quantity);
    }
    if (model_lacks_product(model, &wanted))
        return;
    uint64_t behind = model->figures[FIGURE_STOCK_BEHIND];
    if (model_lacks_stock(model, &wanted)) {
        model->figures[FIGURE_STOCK_LATE_BEHIND] +=
            model->figures[FIGURE_STOCK_BEHIND] > behind;
        return;
    }
    model->figures[FIGURE_STOCK_LATE]++;
    for (uint32_t i = 0; i < wanted.item_count; i++) {
        r->items[i].quantity = wanted.items[i].quantity;
        r->items[i].sku = model_text(wanted.items[i].sku);
    }
    r->item_count = wanted.item_count;
    model_sell_late(model, r);
    show(model, r, 0);
}

void model_finish(struct model *model, struct model_reservation *r,
                  bool confirm, struct hf_bytes reason)
{
    uint64_t seq =
        model_event(model, confirm ? EVENT_CONFIRMED : EVENT_CANCELLED,
                    model_bytes(&r->id), 0);

    model_age(model, r->created_us);
    tell(model, r, reason);
    end(model, r, confirm ? MODEL_CONFIRMED : MODEL_CANCELLED, seq);
    r->reason = model_text(reason);
}

static void change(struct model *model, struct model_reservation *r,
                   const struct hold_command *c)
{
    bool part = c->item_count > 0 && !same_items(r, c);

    if (part)
        reduce(model, r, c);
    if (c->kind == HOLD_EXTEND) {
        r->expires_us = model->now_us + c->ttl_ms * 1000;
        model_ends_earlier(model, r);
        r->extends++;
        model_event(model, EVENT_EXTENDED, c->name, 0);
        tell(model, r, hf_bytes("", 0));
    } else if (c->kind == HOLD_CONFIRM) {
        model_finish(model, r, true, hf_bytes("", 0));
    } else if (!part) {
        model_finish(model, r, false, c->reason);
    }
    show(model, r, 0);
    model_serve_products(model);
}

static void reserve_command(struct model *model, const struct hold_command *c)
{
    struct model_reservation *r = model_find_reservation(model, c->name);
    struct model_booking *booking = model_find_booking(model, c->name);

    if (c->kind == HOLD_RESERVE) {
        model_reserve(model, c);
    } else if (c->kind == HOLD_GROUP_CONFIRM || c->kind == HOLD_GROUP_CANCEL) {
        model_end_group(model, c);
    } else if (booking != NULL && c->kind == HOLD_CANCEL &&
               (c->item_count == 0 || model_is_booking_of(booking, c))) {
        model_cancel_booking(model, booking, c);
    } else if (booking != NULL) {
        refuse_state(model, c->name, "BOOKED");
    } else if (model_find_buyer(model, c->name) != NULL) {
        refuse_state(model, c->name, "WAITING");
    } else if (r == NULL) {
        refuse(model, HOLD_NOTFOUND, 1, FIELD_ID, c->name);
    } else if (r->status == MODEL_EXPIRED && c->kind == HOLD_CONFIRM &&
               model_has_grace(model, r, model->now_us)) {
        confirm_late(model, r, c);
    } else if (r->status == MODEL_EXPIRED) {
        struct hf_buf *out = refuse(model, HOLD_EXPIRED, 2, FIELD_ID, c->name);
        reply_field_number(out, FIELD_EXPIRES_MS,
                           (int64_t)((model->now_us - r->expires_us) / 1000));
    } else if (r->status != MODEL_PENDING) {
        refuse_state(model, c->name, model_status_name(r->status));
    } else if (!lacks_part(model, r, c) && !model_meets_cap(model, r, c)) {
        change(model, r, c);
    }
}

static void clear(struct model *model)
{
    while (model->reservation_count > 0)
        model_forget_reservation(model, &model->reservations[0]);
}

MODEL_PART("reservation", reserve_command, clear);
