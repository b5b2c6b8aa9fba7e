/* model_ask.c - what the model answers without a change. */
#include <assert.h>

#include "sim/engine/model_lock.h"

static int64_t passed_ms(uint64_t now_us, uint64_t since_us)
{
    return (int64_t)((now_us - since_us) / 1000);
}

static int64_t left_ms(const struct model *model,
                       const struct model_grant *grant, uint64_t now_us)
{
    return (int64_t)(model_left_us(model, grant, now_us) / 1000);
}

static void write_mode(struct hf_buf *out, const struct model_want *want)
{
    reply_field_text(out, FIELD_MODE,
                     hf_bytes_text(model_mode_name(want->mode)));
}

/* At most so many holders, and so many waiters, are shown. */
#define SHOWN_MAX 100u

static void write_holders(const struct model *model, struct hf_buf *out,
                          uint32_t name, uint64_t now_us)
{
    size_t count = model_count_grants(model, name);
    size_t left = count < SHOWN_MAX ? count : SHOWN_MAX;

    reply_field(out, FIELD_HOLDERS);
    reply_list(out, (uint32_t)left);
    for (size_t i = 0; left > 0; i++) {
        const struct model_grant *grant = &model->grants[i];
        const struct model_want *want = model_want_of(&grant->claim, name);
        if (want == NULL)
            continue;
        left--;
        reply_map(out, 10);
        reply_field_text(out, FIELD_OWNER, model_bytes(&grant->claim.owner));
        reply_field_number(out, FIELD_SESSION, (int64_t)grant->claim.session);
        reply_field_number(out, FIELD_TOKEN, (int64_t)grant->token);
        write_mode(out, want);
        reply_field_number(out, FIELD_PERMITS, (int64_t)want->permits);
        reply_field_number(out, FIELD_COUNT, (int64_t)grant->count);
        reply_field_number(out, FIELD_EXPIRES_MS,
                           left_ms(model, grant, now_us));
        reply_field_number(out, FIELD_HELD_MS,
                           passed_ms(now_us, grant->acquired_us));
        reply_field_text(out, FIELD_NOTE, model_bytes(&grant->claim.note));
        reply_field_number(out, FIELD_TREE, grant->claim.tree);
    }
}

static void write_waiters(const struct model *model, struct hf_buf *out,
                          uint32_t name, uint64_t now_us)
{
    const struct model_wait *queue[MODEL_MAX];
    size_t count = model_queue(model, name, queue);

    if (count > SHOWN_MAX)
        count = SHOWN_MAX;
    reply_field(out, FIELD_WAITERS);
    reply_list(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        const struct model_claim *claim = &queue[i]->claim;
        const struct model_want *want = model_want_of(claim, name);
        reply_map(out, 8);
        reply_field_text(out, FIELD_OWNER, model_bytes(&claim->owner));
        reply_field_number(out, FIELD_SESSION, (int64_t)claim->session);
        write_mode(out, want);
        reply_field_number(out, FIELD_PERMITS, (int64_t)want->permits);
        reply_field_number(out, FIELD_PRIORITY, claim->priority);
        reply_field_number(out, FIELD_WAITED_MS,
                           passed_ms(now_us, queue[i]->queued_us));
        reply_field_text(out, FIELD_NOTE, model_bytes(&claim->note));
        reply_field_number(out, FIELD_TREE, claim->tree);
    }
}

/* A name that nobody holds. */
static void write_unheld(struct model *model, struct hf_buf *out, uint32_t name,
                         uint64_t now_us)
{
    const struct model_mark *mark = model_find_mark(model, name);
    bool done = mark != NULL && mark->done_us != 0;
    bool closed = mark != NULL && !done;
    uint64_t end_us = done ? mark->done_us : closed ? mark->delay_us : now_us;

    reply_field_text(out, FIELD_OWNER, hf_bytes("", 0));
    reply_field_number(out, FIELD_TOKEN, 0);
    reply_field_number(out, FIELD_EXPIRES_MS, passed_ms(end_us, now_us));
    reply_field_number(out, FIELD_COUNT, 0);
    reply_field_number(out, FIELD_WAITING, (int64_t)model_waiting(model, name));
    reply_field_number(out, FIELD_HELD_MS, 0);
    reply_field_text(out, FIELD_MODE,
                     hf_bytes_text(done     ? "done"
                                   : closed ? "closed"
                                            : "free"));
    reply_field_number(out, FIELD_SESSION, 0);
    reply_field_number(out, FIELD_NAMES, 0);
    reply_field_text(out, FIELD_NOTE,
                     done ? model_bytes(&mark->result) : hf_bytes("", 0));
    reply_field_number(out, FIELD_TREE, 0);
}

static void write_oldest(struct model *model, struct hf_buf *out,
                         const struct model_grant *grant, uint32_t name,
                         uint64_t now_us)
{
    const struct model_claim *claim = &grant->claim;

    reply_field_text(out, FIELD_OWNER, model_bytes(&claim->owner));
    reply_field_number(out, FIELD_TOKEN, (int64_t)grant->token);
    reply_field_number(out, FIELD_EXPIRES_MS, left_ms(model, grant, now_us));
    reply_field_number(out, FIELD_COUNT, (int64_t)grant->count);
    reply_field_number(out, FIELD_WAITING, (int64_t)model_waiting(model, name));
    reply_field_number(out, FIELD_HELD_MS,
                       passed_ms(now_us, grant->acquired_us));
    write_mode(out, model_want_of(claim, name));
    reply_field_number(out, FIELD_SESSION, (int64_t)claim->session);
    reply_field_number(out, FIELD_NAMES,
                       claim->is_set ? (int64_t)claim->want_count : 0);
    reply_field_text(out, FIELD_NOTE, model_bytes(&claim->note));
    reply_field_number(out, FIELD_TREE, claim->tree);
}

static void lock_info(struct model *model, const struct hold_command *c,
                      uint64_t now_us)
{
    uint32_t name = model_name(model, c->name);
    const struct model_grant *grant = model_oldest_grant(model, name);

    if (!model_is_in_use(model, name)) {
        struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_NAME, c->name);
        return;
    }
    struct hf_buf *out = model_reply(model, HOLD_OK);
    reply_map(out, 14);
    reply_field_text(out, FIELD_NAME, c->name);
    if (grant == NULL)
        write_unheld(model, out, name, now_us);
    else
        write_oldest(model, out, grant, name, now_us);
    write_holders(model, out, name, now_us);
    write_waiters(model, out, name, now_us);
}

static void leader(struct model *model, const struct hold_command *c,
                   uint64_t now_us)
{
    uint32_t name = model_name(model, c->name);
    const struct model_grant *grant = model_oldest_grant(model, name);

    if (grant == NULL) {
        struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_NAME, c->name);
        return;
    }
    struct hf_buf *out = model_reply(model, HOLD_OK);
    reply_map(out, 7);
    reply_field_text(out, FIELD_NAME, c->name);
    reply_field_text(out, FIELD_OWNER, model_bytes(&grant->claim.owner));
    reply_field_number(out, FIELD_TOKEN, (int64_t)grant->token);
    reply_field_text(out, FIELD_VALUE, model_bytes(&grant->claim.note));
    reply_field_number(out, FIELD_EXPIRES_MS, left_ms(model, grant, now_us));
    reply_field_number(out, FIELD_HELD_MS,
                       passed_ms(now_us, grant->acquired_us));
    reply_field_number(out, FIELD_WAITING, (int64_t)model_waiting(model, name));
}

static void held(struct model *model, const struct hold_command *c)
{
    if (model_find_grant(model, model_name(model, c->name), c->token) != NULL) {
        model_reply(model, HOLD_OK);
        return;
    }
    struct hf_buf *out = model_reply(model, HOLD_LOST);
    reply_map(out, 2);
    reply_field_text(out, FIELD_NAME, c->name);
    reply_field_number(out, FIELD_TOKEN, (int64_t)c->token);
}

static void session_info(struct model *model, const struct hold_command *c,
                         uint64_t now_us)
{
    const struct model_session *session = model_find_session(model, c->token);

    if (session == NULL)
        model_refuse_session(model, HOLD_NOTFOUND, c->token);
    else
        model_write_session(model, model_reply(model, HOLD_OK), session,
                            now_us);
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
            model_write_product(model, out, product, true);
        } else if (c->item_count > 1) {
            reply_null(out);
        } else {
            out = model_reply(model, HOLD_NOTFOUND);
            reply_map(out, 1);
            reply_field_text(out, FIELD_SKU, c->items[i].sku);
        }
    }
}

static void write_items(struct hf_buf *out, const struct model_item *items,
                        size_t count)
{
    reply_field(out, FIELD_ITEMS);
    reply_list(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        reply_map(out, 2);
        reply_field_text(out, FIELD_SKU, model_bytes(&items[i].sku));
        reply_field_number(out, FIELD_QUANTITY, (int64_t)items[i].quantity);
    }
}

/* A reservation that is to come. */
static void waiting(struct model *model, const struct hold_command *c)
{
    const struct model_buyer *buyer = model_find_buyer(model, c->name);
    const struct model_class *class = model_class_of(model, buyer->class);
    struct hf_buf *out = model_reply(model, HOLD_OK);

    reply_map(out, 11 + (buyer->group.len > 0));
    reply_field_text(out, FIELD_ID, c->name);
    reply_field_text(out, FIELD_STATUS, hf_bytes_text("WAITING"));
    reply_field_number(out, FIELD_EXPIRES_MS, 0);
    write_items(out, buyer->items, buyer->item_count);
    reply_field_text(out, FIELD_OWNER, model_bytes(&buyer->owner));
    reply_field_number(out, FIELD_CREATED_MS,
                       (int64_t)(buyer->queued_us / 1000));
    reply_field_number(out, FIELD_ENDED_MS, 0);
    reply_field_text(out, FIELD_REASON, hf_bytes("", 0));
    reply_field_text(out, FIELD_CLASS,
                     class == NULL ? hf_bytes("", 0)
                                   : model_bytes(&class->name));
    reply_field_number(out, FIELD_EXTENDS, 0);
    reply_field_number(out, FIELD_PRIORITY, buyer->priority);
    if (buyer->group.len > 0)
        reply_field_text(out, FIELD_GROUP, model_bytes(&buyer->group));
}

static void reservation(struct model *model, const struct hold_command *c,
                        uint64_t now_us)
{
    struct model_reservation *r = model_find_reservation(model, c->name);
    struct model_booking *booking = model_find_booking(model, c->name);

    if (booking != NULL) {
        model_show_booking(model, booking);
        return;
    }
    if (model_find_buyer(model, c->name) != NULL) {
        waiting(model, c);
        return;
    }
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

    const struct model_class *class = model_class_of(model, r->class);
    struct hf_bytes group = model_group_of(r);
    reply_map(out, 10 + (group.len > 0));
    reply_field_text(out, FIELD_ID, c->name);
    reply_field_text(out, FIELD_STATUS, hf_bytes_text(status));
    reply_field_number(out, FIELD_EXPIRES_MS, (int64_t)(left_us / 1000));
    write_items(out, r->items, r->item_count);
    reply_field_text(out, FIELD_OWNER, model_bytes(&r->owner));
    reply_field_number(out, FIELD_CREATED_MS, (int64_t)(r->created_us / 1000));
    reply_field_number(out, FIELD_ENDED_MS,
                       pending ? 0 : (int64_t)(ended_us / 1000));
    reply_field_text(out, FIELD_REASON, model_bytes(&r->reason));
    reply_field_text(out, FIELD_CLASS,
                     class == NULL ? hf_bytes("", 0)
                                   : model_bytes(&class->name));
    reply_field_number(out, FIELD_EXTENDS, (int64_t)r->extends);
    if (group.len > 0)
        reply_field_text(out, FIELD_GROUP, group);
}

/* True if the answer depends on what is over and was not swept. */
static bool is_early(struct model *model, const struct hold_command *c,
                     uint64_t now_us)
{
    struct model_reservation *r = model_find_reservation(model, c->name);

    if (c->kind == HOLD_LOCK_INFO || c->kind == HOLD_HELD ||
        c->kind == HOLD_LEADER || c->kind == HOLD_KEY_GET)
        return model_name_is_over(model, c->name, now_us);
    if (c->kind == HOLD_RESERVATION && model_find_buyer(model, c->name) == NULL)
        return r != NULL && r->status == MODEL_PENDING &&
               r->expires_us <= now_us;
    return model_is_behind(model, now_us) &&
           !(c->kind == HOLD_STOCK_GET && model_is_settled(model, c, now_us));
}

void model_answer_ask(struct model *model, const struct hold_command *command,
                      uint64_t now_us)
{
    if (command->kind == HOLD_LOCK_INFO) {
        lock_info(model, command, now_us);
    } else if (command->kind == HOLD_LEADER) {
        leader(model, command, now_us);
    } else if (command->kind == HOLD_HELD) {
        held(model, command);
    } else if (command->kind == HOLD_SESSION_INFO) {
        session_info(model, command, now_us);
    } else if (hold_is_key(command->kind)) {
        model_key_ask(model, command, now_us);
    } else if (command->kind == HOLD_WAITLIST_LIST) {
        model_list_buyers(model, command, now_us);
    } else if (command->kind == HOLD_STOCK_PLACES) {
        model_show_places(model, command);
    } else if (command->kind == HOLD_GROUP_SHOW) {
        model_show_group(model, command, now_us);
    } else if (command->kind == HOLD_EXPECTED) {
        model_show_expected(model, command);
    } else if (command->kind == HOLD_STOCK_GET) {
        stock_get(model, command);
    } else {
        assert(command->kind == HOLD_RESERVATION);
        reservation(model, command, now_us);
    }
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
    model_answer_ask(model, command, now_us);
    return true;
}
