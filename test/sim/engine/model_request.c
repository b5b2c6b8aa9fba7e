/* model_request.c - requests with an id in the model. */
#include <assert.h>

#include "sim/engine/model_lock.h"

static void append(struct hf_buf *out, struct hf_bytes bytes)
{
    if (hf_buf_append(out, bytes.data, bytes.len) != HF_OK)
        abort();
}

uint64_t model_stored_until(const struct model *model,
                            const struct model_request *request)
{
    return request->stored_us + model->bounds.request_keep_ms * 1000;
}

struct model_request *model_find_request(struct model *model,
                                         struct hf_bytes id)
{
    for (size_t i = 0; i < model->request_count; i++) {
        if (model_is(&model->requests[i].id, id))
            return &model->requests[i];
    }
    return NULL;
}

void model_forget_request(struct model *model, struct model_request *request)
{
    hf_buf_destroy(&request->record);
    hf_buf_destroy(&request->body);
    model_close_gap(model->requests, sizeof *request, &model->request_count,
                    (size_t)(request - model->requests));
}

void model_store(struct model *model, struct model_request *request,
                 enum hold_code code, struct hf_bytes body)
{
    request->waiting = false;
    request->stored_us = model->now_us;
    request->stored_order = ++model->order;
    request->code = code;
    request->body.len = 0;
    append(&request->body, body);
}

void model_store_answer(struct model *model, struct hf_bytes id)
{
    struct model_answer *answer = &model->answers[model->answer_count - 1];
    struct model_request *request = model_find_request(model, id);

    if (request != NULL)
        model_store(model, request, answer->code, hf_buf_bytes(&answer->body));
}

/* Somebody asks again for what is still waiting: the wait is theirs now. */
static void move_wait(struct model *model, struct hf_bytes id)
{
    for (size_t i = 0; i < model->wait_count; i++) {
        struct model_wait *wait = &model->waits[i];
        if (!model_is(&wait->request, id))
            continue;
        model_answer(model, HOLD_MOVED, wait->ticket);
        wait->ticket = ++model->seq;
        model_reply(model, HOLD_WAITING);
        model->ticket = wait->ticket;
        return;
    }
    for (size_t i = 0; i < model->buyer_count; i++) {
        struct model_buyer *buyer = &model->buyers[i];
        if (!model_is(&buyer->request, id))
            continue;
        model_answer(model, HOLD_MOVED, buyer->ticket);
        buyer->ticket = ++model->seq;
        model_reply(model, HOLD_WAITING);
        model->ticket = buyer->ticket;
        return;
    }
    abort(); /* a request that waits has a wait */
}

bool model_request_over(const struct model *model,
                        const struct model_request *request)
{
    return !request->waiting &&
           model_stored_until(model, request) <= model->now_us;
}

/* Does its answer tell how long it is safe? */
static bool tells_safe(enum hold_kind kind)
{
    return hold_kind_locks(kind) || kind == HOLD_RENEW ||
           kind == HOLD_RENEWSET || kind == HOLD_DOWNGRADE;
}

void model_bound_safe(struct model *model, const struct hold_command *c)
{
    if (!tells_safe(c->kind))
        return;
    struct hf_bytes body = hf_buf_bytes(&model->body);
    bool locks = hold_kind_locks(c->kind);
    uint64_t token =
        locks ? (uint64_t)reply_get_number(body, FIELD_TOKEN) : c->token;
    int64_t left_ms = 0;

    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_grant *grant = &model->grants[i];
        if (grant->token == token &&
            !model_grant_is_over(model, grant, model->now_us))
            left_ms =
                (int64_t)(model_left_us(model, grant, model->now_us) / 1000);
    }
    if (left_ms < reply_get_number(body, FIELD_SAFE_MS))
        reply_set_number(&model->body, FIELD_SAFE_MS, left_ms);
}

static void no_room(struct model *model)
{
    model_overloaded(model, "requests-max", model->bounds.requests_max);
    model->full++;
}

static struct model_request *oldest_refusal(struct model *model)
{
    struct model_request *oldest = NULL;

    for (size_t i = 0; i < model->request_count; i++) {
        struct model_request *request = &model->requests[i];
        if (!request->waiting && request->code != HOLD_OK &&
            (oldest == NULL || request->stored_order < oldest->stored_order))
            oldest = request;
    }
    return oldest;
}

/* Is there room for a new request? Refusals make some, if that is enough. */
static bool make_room(struct model *model, struct hf_bytes id)
{
    struct model_request *own = model_find_request(model, id);
    size_t needed = 0;

    for (size_t i = 0; i < model->request_count; i++) {
        struct model_request *request = &model->requests[i];
        needed +=
            request->waiting || (request->code == HOLD_OK && request != own);
    }
    if (needed >= model->bounds.requests_max) {
        no_room(model);
        return false;
    }
    if (own != NULL)
        model_forget_request(model, own);
    for (unsigned steps = 0; steps < HOLD_STEP_MAX; steps++) {
        struct model_request *oldest = oldest_refusal(model);
        if (oldest == NULL || model->request_count < model->bounds.requests_max)
            break;
        model_forget_request(model, oldest);
        model->dropped++;
    }
    if (model->request_count < model->bounds.requests_max)
        return true;
    no_room(model);
    return false;
}

bool model_answer_from_request(struct model *model,
                               const struct hold_command *command,
                               struct hf_bytes shared)
{
    struct model_request *known = model_find_request(model, command->request);

    /* More may be due than one sweep takes; what is over is over. */
    if (known == NULL || model_request_over(model, known)) {
        return !make_room(model, command->request);
    } else if (!hf_bytes_equal(hf_buf_bytes(&known->record), shared)) {
        struct hf_buf *out = model_reply(model, HOLD_CONFLICT);
        reply_map(out, 1);
        reply_field_text(out, FIELD_ID, command->request);
    } else if (known->waiting) {
        move_wait(model, command->request);
    } else {
        append(model_reply(model, known->code), hf_buf_bytes(&known->body));
        uint64_t passed_ms = (model->now_us - known->stored_us + 999) / 1000;
        if (command->kind == HOLD_GROUP && known->code == HOLD_OK)
            model_group_retell(model, command, passed_ms);
        else if (known->code == HOLD_OK || known->code == HOLD_BUSY ||
                 known->code == HOLD_DONE)
            reply_age(&model->body, passed_ms);
        if (known->code == HOLD_OK)
            model_bound_safe(model, command);
    }
    return true;
}

/* Of a deadlock only its name and its reason are kept, the first two fields. */
static void store_deadlock(struct model *model, struct model_request *request)
{
    char space[HOLD_NAME_MAX + 64];
    struct hf_buf kept = {space, 0, sizeof space};
    struct hf_bytes body = hf_buf_bytes(&model->body);
    size_t at = 0;

    reply_next(body, &at);
    reply_map(&kept, 2);
    for (unsigned i = 0; i < 2; i++) {
        enum hold_field field = reply_next_field(body, &at);
        reply_field_text(&kept, field, reply_next(body, &at).text);
    }
    model_store(model, request, HOLD_DEADLOCK, hf_buf_bytes(&kept));
}

void model_remember_request(struct model *model, struct hf_bytes id,
                            struct hf_bytes shared)
{
    assert(model_find_request(model, id) == NULL);
    assert(model->request_count < MODEL_MAX);
    struct model_request *request = &model->requests[model->request_count++];
    *request = (struct model_request){.id = model_text(id)};
    append(&request->record, shared);
    if (model->code == HOLD_WAITING)
        request->waiting = true;
    else if (model->code == HOLD_DEADLOCK)
        store_deadlock(model, request);
    else
        model_store(model, request, model->code, hf_buf_bytes(&model->body));
}

void model_remember_told(struct model *model, const struct hold_command *c,
                         struct hf_bytes shared)
{
    struct model_request *known = model_find_request(model, c->request);

    model_reply(model, HOLD_TIMED_OUT);
    if (c->request.len == 0 ||
        (known != NULL && !model_request_over(model, known)) ||
        !make_room(model, c->request))
        return;
    model_remember_request(model, c->request, shared);
}

/* Refusals go first of those that were answered at the same time. */
static bool before(const struct model_request *a, const struct model_request *b)
{
    if (a->stored_us != b->stored_us)
        return a->stored_us < b->stored_us;
    if ((a->code == HOLD_OK) != (b->code == HOLD_OK))
        return b->code == HOLD_OK;
    return a->stored_order < b->stored_order;
}

struct model_request *model_oldest_request(struct model *model)
{
    struct model_request *oldest = NULL;

    for (size_t i = 0; i < model->request_count; i++) {
        struct model_request *request = &model->requests[i];
        if (request->waiting)
            continue;
        if (oldest == NULL || before(request, oldest))
            oldest = request;
    }
    return oldest;
}
