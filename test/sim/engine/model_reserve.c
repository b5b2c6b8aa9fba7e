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

/* The reply about the state of a reservation. */
static void show(struct model *model, const struct model_reservation *r)
{
    struct hf_buf *out = model_reply(model, HOLD_OK);
    uint64_t left_us =
        r->status == MODEL_PENDING ? r->expires_us - model->now_us : 0;

    reply_map(out, 4);
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

/* Moves what is reserved back to available, or to sold. */
static void end(struct model *model, struct model_reservation *r,
                enum model_status status, uint64_t seq)
{
    for (size_t i = 0; i < r->item_count; i++) {
        struct model_product *product =
            model_find_product(model, model_bytes(&r->items[i].sku));
        assert(product != NULL);
        product->reserved -= (int64_t)r->items[i].quantity;
        assert(product->reserved >= 0);
        if (status == MODEL_CONFIRMED)
            product->sold += (int64_t)r->items[i].quantity;
        product->version = seq;
        product->updated_us = model->now_us;
    }
    r->status = status;
    r->ended_us = model->now_us;
    r->ended_order = ++model->order;
}

static void tell(struct model *model, const struct model_reservation *r,
                 struct hf_bytes reason)
{
    model_tell(model, &(struct model_facts){.owner = model_bytes(&r->owner),
                                            .note = reason,
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

/* True if a product is missing or short, with the refusal written. */
static bool lacks_stock(struct model *model, const struct hold_command *c)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (model_find_product(model, c->items[i].sku) == NULL) {
            refuse(model, HOLD_NOTFOUND, 1, FIELD_SKU, c->items[i].sku);
            return true;
        }
    }
    for (uint32_t i = 0; i < c->item_count; i++) {
        struct model_product *p = model_find_product(model, c->items[i].sku);
        int64_t free = p->total - p->reserved - p->sold;
        if ((uint64_t)free < c->items[i].quantity) {
            struct hf_buf *out =
                refuse(model, HOLD_SHORT, 3, FIELD_SKU, c->items[i].sku);
            reply_field_number(out, FIELD_REQUESTED,
                               (int64_t)c->items[i].quantity);
            reply_field_number(out, FIELD_AVAILABLE, free);
            return true;
        }
    }
    return false;
}

/* True if there is room for one more, if need be by forgetting the one that
 * ended first. */
static bool make_room(struct model *model)
{
    struct model_reservation *oldest = NULL;

    if (model->reservation_count < model->bounds.reservations_max)
        return true;
    for (size_t i = 0; i < model->reservation_count; i++) {
        struct model_reservation *r = &model->reservations[i];
        if (r->status != MODEL_PENDING &&
            (oldest == NULL || r->ended_order < oldest->ended_order))
            oldest = r;
    }
    if (oldest == NULL)
        return false;
    model_forget_reservation(model, oldest);
    return true;
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
        .status = MODEL_PENDING,
        .created_us = model->now_us,
        .expires_us = model->now_us + c->ttl_ms * 1000,
        .item_count = c->item_count,
        .items = hf_alloc((c->item_count + 1) * sizeof *r->items),
    };
    if (r->items == NULL)
        abort();
    r->seq = model_event(model, EVENT_RESERVED, id, 0);
    for (uint32_t i = 0; i < c->item_count; i++) {
        struct model_product *p = model_find_product(model, c->items[i].sku);
        p->reserved += (int64_t)c->items[i].quantity;
        p->version = r->seq;
        p->updated_us = model->now_us;
        r->items[i].sku = p->sku;
        r->items[i].quantity = c->items[i].quantity;
    }
    tell(model, r, hf_bytes("", 0));
    show(model, r);
}

static void reserve(struct model *model, const struct hold_command *c)
{
    char made[26];
    struct hf_bytes id = c->name;

    if (id.len == 0) {
        model_make_id(made, model->now_us, model->seq + 1);
        id = hf_bytes(made, sizeof made);
    }
    struct model_reservation *known = model_find_reservation(model, id);
    if (known != NULL && c->name.len > 0 && same_items(known, c))
        show(model, known);
    else if (known != NULL)
        refuse(model, HOLD_CONFLICT, 1, FIELD_ID, id);
    else if (lacks_stock(model, c))
        return;
    else if (!make_room(model))
        model_overloaded(model, "reservations-max",
                         model->bounds.reservations_max);
    else
        add(model, id, c);
}

static void change(struct model *model, struct model_reservation *r,
                   const struct hold_command *c)
{
    if (c->kind == HOLD_EXTEND) {
        r->expires_us = model->now_us + c->ttl_ms * 1000;
        model_event(model, EVENT_EXTENDED, c->name, 0);
        tell(model, r, hf_bytes("", 0));
    } else if (c->kind == HOLD_CONFIRM) {
        uint64_t seq = model_event(model, EVENT_CONFIRMED, c->name, 0);
        model_age(model, r->created_us);
        tell(model, r, hf_bytes("", 0));
        end(model, r, MODEL_CONFIRMED, seq);
    } else {
        uint64_t seq = model_event(model, EVENT_CANCELLED, c->name, 0);
        model_age(model, r->created_us);
        tell(model, r, c->reason);
        end(model, r, MODEL_CANCELLED, seq);
        r->reason = model_text(c->reason);
    }
    show(model, r);
}

static void reserve_command(struct model *model, const struct hold_command *c)
{
    struct model_reservation *r = model_find_reservation(model, c->name);

    if (c->kind == HOLD_RESERVE) {
        reserve(model, c);
    } else if (r == NULL) {
        refuse(model, HOLD_NOTFOUND, 1, FIELD_ID, c->name);
    } else if (r->status == MODEL_EXPIRED) {
        struct hf_buf *out = refuse(model, HOLD_EXPIRED, 2, FIELD_ID, c->name);
        reply_field_number(out, FIELD_EXPIRES_MS,
                           (int64_t)((model->now_us - r->expires_us) / 1000));
    } else if (r->status != MODEL_PENDING) {
        struct hf_buf *out = refuse(model, HOLD_STATE, 2, FIELD_ID, c->name);
        reply_field_text(out, FIELD_STATUS,
                         hf_bytes_text(model_status_name(r->status)));
    } else {
        change(model, r, c);
    }
}

static void clear(struct model *model)
{
    while (model->reservation_count > 0)
        model_forget_reservation(model, &model->reservations[0]);
}

MODEL_PART("reservation", reserve_command, clear);
