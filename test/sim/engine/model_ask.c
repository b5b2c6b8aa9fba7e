/* model_ask.c - what the model answers without a change. */
#include <assert.h>

#include "sim/engine/model.h"

static void lock_info(struct model *model, const struct hold_command *c,
                      uint64_t now_us)
{
    struct model_lock *lock = model_find_lock(model, c->name);

    if (lock == NULL) {
        struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_NAME, c->name);
        return;
    }
    struct hf_buf *out = model_reply(model, HOLD_OK);
    reply_map(out, 7);
    reply_field_text(out, FIELD_NAME, c->name);
    reply_field_text(out, FIELD_OWNER, model_bytes(&lock->owner));
    reply_field_number(out, FIELD_TOKEN, (int64_t)lock->token);
    reply_field_number(out, FIELD_EXPIRES_MS,
                       (int64_t)((lock->expires_us - now_us) / 1000));
    reply_field_number(out, FIELD_COUNT, (int64_t)lock->count);
    reply_field_number(out, FIELD_WAITING,
                       (int64_t)model_waiting(model, c->name));
    reply_field_number(out, FIELD_HELD_MS,
                       (int64_t)((now_us - lock->acquired_us) / 1000));
}

static void stock_get(struct model *model, const struct hold_command *c)
{
    struct hf_buf *out = model_reply(model, HOLD_OK);

    if (c->item_count > 1)
        reply_list(out, c->item_count);
    for (uint32_t i = 0; i < c->item_count; i++) {
        struct model_product *product =
            model_find_product(model, c->items[i].sku);
        if (product != NULL) {
            model_write_product(out, product);
        } else if (c->item_count > 1) {
            reply_null(out);
        } else {
            out = model_reply(model, HOLD_NOTFOUND);
            reply_map(out, 1);
            reply_field_text(out, FIELD_SKU, c->items[i].sku);
        }
    }
}

static void write_items(struct hf_buf *out, const struct model_reservation *r)
{
    reply_field(out, FIELD_ITEMS);
    reply_list(out, (uint32_t)r->item_count);
    for (size_t i = 0; i < r->item_count; i++) {
        reply_map(out, 2);
        reply_field_text(out, FIELD_SKU, model_bytes(&r->items[i].sku));
        reply_field_number(out, FIELD_QUANTITY, (int64_t)r->items[i].quantity);
    }
}

static void reservation(struct model *model, const struct hold_command *c,
                        uint64_t now_us)
{
    struct model_reservation *r = model_find_reservation(model, c->name);

    if (r == NULL) {
        struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_ID, c->name);
        return;
    }
    bool pending = r->status == MODEL_PENDING;
    uint64_t left_us = pending ? r->expires_us - now_us : 0;
    uint64_t ended_us =
        r->status == MODEL_EXPIRED ? r->expires_us : r->ended_us;
    const char *status = model_status_name(r->status);
    struct hf_buf *out = model_reply(model, HOLD_OK);

    reply_map(out, 8);
    reply_field_text(out, FIELD_ID, c->name);
    reply_field_text(out, FIELD_STATUS, hf_bytes_text(status));
    reply_field_number(out, FIELD_EXPIRES_MS, (int64_t)(left_us / 1000));
    write_items(out, r);
    reply_field_text(out, FIELD_OWNER, model_bytes(&r->owner));
    reply_field_number(out, FIELD_CREATED_MS, (int64_t)(r->created_us / 1000));
    reply_field_number(out, FIELD_ENDED_MS,
                       pending ? 0 : (int64_t)(ended_us / 1000));
    reply_field_text(out, FIELD_REASON, model_bytes(&r->reason));
}

/* True if the answer depends on what is over and was not swept. */
static bool is_early(struct model *model, const struct hold_command *c,
                     uint64_t now_us)
{
    struct model_lock *lock = model_find_lock(model, c->name);
    struct model_reservation *r = model_find_reservation(model, c->name);

    if (c->kind == HOLD_LOCK_INFO)
        return lock != NULL && lock->expires_us <= now_us;
    if (c->kind == HOLD_RESERVATION)
        return r != NULL && r->status == MODEL_PENDING &&
               r->expires_us <= now_us;
    return model_is_behind(model, now_us);
}

bool model_ask(struct model *model, const struct hold_command *command)
{
    uint64_t now_us =
        command->now_us > model->now_us ? command->now_us : model->now_us;

    model->event_count = 0;
    model->answer_count = 0;
    model->ticket = 0;
    if (is_early(model, command, now_us))
        return false;
    if (command->kind == HOLD_LOCK_INFO) {
        lock_info(model, command, now_us);
    } else if (command->kind == HOLD_STOCK_GET) {
        stock_get(model, command);
    } else {
        assert(command->kind == HOLD_RESERVATION);
        reservation(model, command, now_us);
    }
    return true;
}
