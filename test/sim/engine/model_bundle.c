/* model_bundle.c - groups of reservations, in the model: who belongs to one is
 * looked for among all. */
#include "sim/engine/model.h"

/* One of a group: a reservation, or who waits for one. */
struct one {
    struct model_reservation *r;
    struct model_buyer *buyer;
};

static uint64_t number_of(const struct one *one)
{
    return one->r != NULL ? one->r->seq : one->buyer->order;
}

struct hf_bytes model_group_of(const struct model_reservation *r)
{
    return r->status == MODEL_PENDING || r->status == MODEL_EXPIRED
               ? model_bytes(&r->group)
               : hf_bytes("", 0);
}

static bool belongs(const struct model_reservation *r, struct hf_bytes group)
{
    return hf_bytes_equal(model_group_of(r), group);
}

/* The member with the least number above `*after`, which becomes `*after`. */
static bool next(struct model *model, struct hf_bytes group, uint64_t *after,
                 struct one *out)
{
    *out = (struct one){NULL, NULL};
    for (size_t i = 0; i < model->reservation_count; i++) {
        struct one one = {&model->reservations[i], NULL};
        if (belongs(one.r, group) && one.r->seq > *after &&
            (out->r == NULL || one.r->seq < number_of(out)))
            *out = one;
    }
    for (size_t i = 0; i < model->buyer_count; i++) {
        struct one one = {NULL, &model->buyers[i]};
        bool none = out->r == NULL && out->buyer == NULL;
        if (model_is(&one.buyer->group, group) && one.buyer->order > *after &&
            (none || one.buyer->order < number_of(out)))
            *out = one;
    }
    if (out->r == NULL && out->buyer == NULL)
        return false;
    *after = number_of(out);
    return true;
}

static size_t count_of(struct model *model, struct hf_bytes group)
{
    struct one one;
    size_t count = 0;

    for (uint64_t after = 0; next(model, group, &after, &one);)
        count++;
    return count;
}

bool model_group_is_full(struct model *model, const struct hold_command *c)
{
    if (c->bundle.len == 0 || count_of(model, c->bundle) < HOLD_MEMBERS_MAX)
        return false;
    model_overloaded(model, "group-members", HOLD_MEMBERS_MAX);
    return true;
}

static bool refuse_unknown(struct model *model, struct hf_bytes group)
{
    struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);

    reply_map(out, 1);
    reply_field_text(out, FIELD_GROUP, group);
    return true;
}

static void refuse_member(struct model *model, const struct one *one)
{
    bool expired = one->r != NULL;
    struct hf_buf *out =
        model_reply(model, expired ? HOLD_EXPIRED : HOLD_STATE);

    reply_map(out, 2);
    reply_field_text(out, FIELD_ID,
                     model_bytes(expired ? &one->r->id : &one->buyer->id));
    if (expired)
        reply_field_number(
            out, FIELD_EXPIRES_MS,
            (int64_t)((model->now_us - one->r->expires_us) / 1000));
    else
        reply_field_text(out, FIELD_STATUS, hf_bytes_text("WAITING"));
}

static bool is_late(struct model *model, const struct one *one)
{
    return one->r != NULL && one->r->status == MODEL_EXPIRED &&
           model_has_grace(model, one->r, model->now_us);
}

/* How much those who are late had of a product. */
static uint64_t count_late(struct model *model, struct hf_bytes group,
                           struct hf_bytes sku)
{
    __extension__ unsigned __int128 sum = 0;
    struct one one;

    for (uint64_t after = 0; next(model, group, &after, &one);) {
        for (size_t i = 0; is_late(model, &one) && i < one.r->item_count; i++)
            sum += model_is(&one.r->items[i].sku, sku)
                       ? one.r->items[i].quantity
                       : 0;
    }
    return sum > HOLD_STOCK_MAX ? (uint64_t)HOLD_STOCK_MAX + 1 : (uint64_t)sum;
}

/* The first sku of those behind `last`; false: there is none. */
static bool next_late(struct model *model, struct hf_bytes group,
                      struct hf_bytes last, struct hf_bytes *sku)
{
    struct one one;

    *sku = hf_bytes("", 0);
    for (uint64_t after = 0; next(model, group, &after, &one);) {
        for (size_t i = 0; is_late(model, &one) && i < one.r->item_count; i++) {
            struct hf_bytes other = model_bytes(&one.r->items[i].sku);
            if (hf_bytes_compare(other, last) > 0 &&
                (sku->len == 0 || hf_bytes_compare(other, *sku) < 0))
                *sku = other;
        }
    }
    return sku->len > 0;
}

/* True, and refused, if what those who are late had is not free. */
static bool lacks_late(struct model *model, const struct hold_command *c)
{
    struct hold_command wanted = {.kind = HOLD_CONFIRM};
    struct hf_bytes sku = {"", 0};

    while (next_late(model, c->name, sku, &sku)) {
        struct hold_command one = {.kind = HOLD_CONFIRM};
        uint64_t units = count_late(model, c->name, sku);
        hold_add_item(&one, sku,
                      units > HOLD_STOCK_MAX ? HOLD_STOCK_MAX : units);
        if (model_lacks_product(model, &one))
            return true;
        if (wanted.item_count < 8 && model_is_short(model, &one, sku, units))
            hold_add_item(&wanted, sku, one.items[0].quantity);
    }
    return model_lacks_stock(model, &wanted);
}

/* True, and refused, if they cannot all end so. */
static bool refuses(struct model *model, const struct hold_command *c)
{
    bool confirm = c->kind == HOLD_GROUP_CONFIRM;
    struct one first = {NULL, NULL};
    struct one one;
    size_t open = 0;
    size_t count = count_of(model, c->name);

    if (count == 0)
        return refuse_unknown(model, c->name);
    for (uint64_t after = 0; next(model, c->name, &after, &one);) {
        bool pending = one.r != NULL && one.r->status == MODEL_PENDING;
        bool late = confirm && is_late(model, &one);
        bool ends = pending || late || (one.buyer != NULL && !confirm);
        open += ends;
        if (!ends && first.r == NULL && first.buyer == NULL)
            first = one;
    }
    bool stops = first.r != NULL || first.buyer != NULL;
    if (stops && (confirm || open == 0)) {
        refuse_member(model, &first);
        return true;
    }
    if (confirm && lacks_late(model, c))
        return true;
    if (model->ended_members + count <= HOLD_MEMBERS_MAX)
        return false;
    model_overloaded(model, "group-members", HOLD_MEMBERS_MAX);
    return true;
}

static void sell_late(struct model *model, struct model_reservation *r)
{
    model_sell_late(model, r);
    model->figures[FIGURE_GROUP_LATE]++;
}

void model_end_group(struct model *model, const struct hold_command *c)
{
    bool confirm = c->kind == HOLD_GROUP_CONFIRM;
    struct one one;
    int64_t ended = 0;

    if (refuses(model, c))
        return;
    model->ended_members += count_of(model, c->name);
    for (uint64_t after = 0; next(model, c->name, &after, &one);) {
        if (one.buyer != NULL)
            model_drop_buyer(model, one.buyer);
        else if (one.r->status == MODEL_PENDING)
            model_finish(model, one.r, confirm, c->reason);
        else if (confirm)
            sell_late(model, one.r);
        else
            one.r->group.len = 0;
        ended += one.buyer != NULL || one.r->group.len > 0;
    }
    model->figures[confirm ? FIGURE_GROUP_CONFIRMED : FIGURE_GROUP_CANCELLED]++;
    struct hf_buf *out = model_reply(model, HOLD_OK);
    reply_map(out, 3);
    reply_field_text(out, FIELD_GROUP, c->name);
    reply_field_text(out, FIELD_STATUS,
                     hf_bytes_text(confirm ? "CONFIRMED" : "CANCELLED"));
    reply_field_number(out, FIELD_COUNT, ended);
    model_serve_products(model);
}

void model_show_group(struct model *model, const struct hold_command *c,
                      uint64_t now_us)
{
    size_t count = count_of(model, c->name);
    size_t most = c->count > 0 ? c->count : HOLD_LIST_MAX;
    size_t end = c->cursor + most < count ? c->cursor + most : count;
    struct hf_buf *out;
    struct one one;
    size_t at = 0;

    if (count == 0) {
        (void)refuse_unknown(model, c->name);
        return;
    }
    out = model_reply(model, HOLD_OK);
    reply_map(out, 4);
    reply_field_text(out, FIELD_GROUP, c->name);
    reply_field_number(out, FIELD_COUNT, (int64_t)count);
    reply_field(out, FIELD_RESERVATIONS);
    reply_list(out, (uint32_t)(c->cursor < end ? end - c->cursor : 0));
    for (uint64_t after = 0; next(model, c->name, &after, &one); at++) {
        bool pending = one.r != NULL && one.r->status == MODEL_PENDING;
        if (at < c->cursor || at >= end)
            continue;
        reply_map(out, 3);
        reply_field_text(
            out, FIELD_ID,
            model_bytes(one.r != NULL ? &one.r->id : &one.buyer->id));
        reply_field_text(out, FIELD_STATUS,
                         hf_bytes_text(one.r != NULL
                                           ? model_status_name(one.r->status)
                                           : "WAITING"));
        reply_field_number(
            out, FIELD_EXPIRES_MS,
            pending ? (int64_t)((one.r->expires_us - now_us) / 1000) : 0);
    }
    reply_field_number(out, FIELD_CURSOR, end < count ? (int64_t)end : 0);
}
