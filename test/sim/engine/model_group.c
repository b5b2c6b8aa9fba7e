/* model_group.c - several commands as one, in the model: what there is is
 * copied, the commands are carried out, and if one is refused the copy is what
 * there is. */
#include <assert.h>

#include "base/memory.h"
#include "hold/group.h"
#include "sim/engine/model_lock.h"

static void *copy_of(const void *data, size_t bytes)
{
    void *copy = hf_alloc(bytes + 1);

    if (copy == NULL)
        abort();
    memcpy(copy, data, bytes);
    return copy;
}

static void copy_claim(struct model_claim *claim)
{
    claim->wants =
        copy_of(claim->wants, claim->want_count * sizeof claim->wants[0]);
}

static void copy_buf(struct hf_buf *buf)
{
    struct hf_buf copy = {0};

    if (hf_buf_append(&copy, buf->data, buf->len) != HF_OK)
        abort();
    *buf = copy;
}

#define COPY(array, count) \
    memcpy(to->array, from->array, from->count * sizeof from->array[0])

/* All that a command of a group can change. */
static void copy(struct model *to, const struct model *from)
{
    to->seq = from->seq;
    to->order = from->order;
    to->grant_count = from->grant_count;
    to->wait_count = from->wait_count;
    to->session_count = from->session_count;
    to->mark_count = from->mark_count;
    to->call_count = from->call_count;
    to->product_count = from->product_count;
    to->reservation_count = from->reservation_count;
    to->buyer_count = from->buyer_count;
    to->hungry_count = from->hungry_count;
    to->arrival_count = from->arrival_count;
    to->booking_count = from->booking_count;
    to->fence_count = from->fence_count;
    to->request_count = from->request_count;
    to->class_count = from->class_count;
    to->class_last = from->class_last;
    to->past_count = from->past_count;
    COPY(grants, grant_count);
    COPY(waits, wait_count);
    COPY(sessions, session_count);
    COPY(marks, mark_count);
    COPY(calls, call_count);
    COPY(products, product_count);
    COPY(reservations, reservation_count);
    COPY(buyers, buyer_count);
    COPY(hungry, hungry_count);
    COPY(arrivals, arrival_count);
    COPY(bookings, booking_count);
    COPY(classes, class_count);
    COPY(fences, fence_count);
    COPY(requests, request_count);
    COPY(past, past_count);
    for (size_t i = 0; i < to->grant_count; i++)
        copy_claim(&to->grants[i].claim);
    for (size_t i = 0; i < to->wait_count; i++)
        copy_claim(&to->waits[i].claim);
    for (size_t i = 0; i < to->reservation_count; i++) {
        struct model_reservation *r = &to->reservations[i];
        r->items = copy_of(r->items, r->item_count * sizeof r->items[0]);
    }
    for (size_t i = 0; i < to->buyer_count; i++) {
        struct model_buyer *b = &to->buyers[i];
        b->items = copy_of(b->items, b->item_count * sizeof b->items[0]);
    }
    for (size_t i = 0; i < to->request_count; i++) {
        copy_buf(&to->requests[i].record);
        copy_buf(&to->requests[i].body);
    }
}

static void drop(struct model *model)
{
    for (size_t i = 0; i < model->grant_count; i++)
        model_claim_free(&model->grants[i].claim);
    for (size_t i = 0; i < model->wait_count; i++)
        model_claim_free(&model->waits[i].claim);
    for (size_t i = 0; i < model->reservation_count; i++)
        hf_free(model->reservations[i].items);
    for (size_t i = 0; i < model->buyer_count; i++)
        hf_free(model->buyers[i].items);
    for (size_t i = 0; i < model->request_count; i++) {
        hf_buf_destroy(&model->requests[i].record);
        hf_buf_destroy(&model->requests[i].body);
    }
}

/* Carries one out; its reply is the model's. */
static void run_member(struct model *model, const struct hold_command *c)
{
    if (c->kind == HOLD_SAID) {
        struct hf_buf *out = model_reply(model, HOLD_OK);
        if (hf_buf_append(out, c->note.data, c->note.len) != HF_OK)
            abort();
    } else if (hold_operations[c->kind].class == CLASS_WRITE) {
        model_run(model, c);
    } else {
        model_answer_ask(model, c, model->now_us);
        if (model->code == HOLD_OK && model->body.len > HOLD_GROUP_READ_MAX)
            model_overloaded(model, "group-read", HOLD_GROUP_READ_MAX);
    }
}

static void refuse(struct model *model, uint32_t position, uint64_t count)
{
    enum hold_code code = model->code;
    struct hf_buf facts = {0};

    if (hf_buf_append(&facts, model->body.data, model->body.len) != HF_OK)
        abort();
    struct hf_buf *out = model_reply(model, HOLD_ABORTED);
    reply_map(out, 3);
    reply_field_number(out, FIELD_POSITION, position);
    reply_field_number(out, FIELD_COUNT, (int64_t)count);
    reply_field_number(out, FIELD_STATUS, code);
    if (hf_buf_append(out, facts.data, facts.len) != HF_OK)
        abort();
    hf_buf_destroy(&facts);
}

static void run_group(struct model *model, const struct hold_command *c)
{
    static struct model before;
    static struct hold_command member;
    size_t events = model->event_count;
    size_t answers = model->answer_count;
    struct hf_buf replies = {0};
    struct hf_bytes record;
    uint32_t position = 0;
    size_t at = 0;

    copy(&before, model);
    model->grouping = true;
    model->below = 0;
    model->code = HOLD_OK;
    while (model->code == HOLD_OK && hold_group_next(c->group, &at, &record)) {
        if (hold_decode(record, &member) != HF_OK)
            abort();
        position++;
        run_member(model, &member);
        bool empty = model->body.len == 0;
        if (hf_buf_append(&replies, empty ? "K" : model->body.data,
                          empty ? 1 : model->body.len) != HF_OK)
            abort();
    }
    model->grouping = false;
    model->figures[model->code == HOLD_OK ? FIGURE_GROUP : FIGURE_ABORT]++;
    if (model->code == HOLD_OK) {
        drop(&before);
        struct hf_buf *out = model_reply(model, HOLD_OK);
        reply_list(out, position);
        if (hf_buf_append(out, replies.data, replies.len) != HF_OK)
            abort();
        model_serve(model);
        model_serve_products(model);
    } else {
        drop(model);
        copy(model, &before);
        drop(&before);
        model->event_count = events;
        model->answer_count = answers;
        refuse(model, position, c->count);
    }
    hf_buf_destroy(&replies);
}

static void clear(struct model *model)
{
    (void)model; /* it has no state */
}

MODEL_PART("group", run_group, clear);

size_t model_group_shared(const struct hold_command *c, char *out)
{
    struct hf_bytes record;
    size_t len = 0;

    for (size_t at = 0; hold_group_next(c->group, &at, &record);) {
        if ((unsigned char)record.data[8] == HOLD_SAID)
            record = hf_bytes(record.data + 12, 8);
        memcpy(out + len, record.data, record.len);
        len += record.len;
    }
    return len;
}

void model_group_retell(struct model *model, const struct hold_command *c,
                        uint64_t passed_ms)
{
    static struct hold_command member;
    struct hf_buf all = model->body;
    struct hf_bytes record;
    size_t next = 0;
    size_t at = 0;

    (void)reply_next(hf_buf_bytes(&all), &next);
    while (hold_group_next(c->group, &at, &record)) {
        size_t from = next;
        if (hold_decode(record, &member) != HF_OK)
            abort();
        reply_skip(hf_buf_bytes(&all), &next);
        model->body =
            (struct hf_buf){all.data + from, next - from, next - from};
        reply_age(&model->body, passed_ms);
        model_bound_safe(model, &member);
    }
    model->body = all;
}
