/* model_session.c - sessions in the model. */
#include <assert.h>

#include "sim/engine/model_lock.h"

struct model_session *model_find_session(const struct model *model, uint64_t id)
{
    for (size_t i = 0; i < model->session_count; i++) {
        if (model->sessions[i].id == id)
            return (struct model_session *)&model->sessions[i];
    }
    return NULL;
}

bool model_session_is_over(const struct model *model, uint64_t id,
                           uint64_t now_us)
{
    const struct model_session *session = model_find_session(model, id);

    return id != 0 && (session == NULL || session->expires_us <= now_us);
}

uint64_t model_session_left_us(const struct model_session *session,
                               uint64_t now_us)
{
    return session->expires_us == UINT64_MAX ? session->ttl_ms * 1000
                                             : session->expires_us - now_us;
}

static struct hf_bytes id_text(uint64_t id)
{
    static char text[24];

    return hf_bytes(text, (size_t)snprintf(text, sizeof text, "%llu",
                                           (unsigned long long)id));
}

static size_t count_grants(const struct model *model, uint64_t id)
{
    size_t count = 0;

    for (size_t i = 0; i < model->grant_count; i++)
        count += model->grants[i].claim.session == id;
    return count;
}

static size_t count_waits(const struct model *model, uint64_t id)
{
    size_t count = 0;

    for (size_t i = 0; i < model->wait_count; i++)
        count += model->waits[i].claim.session == id;
    return count;
}

void model_part_ended(struct model *model, uint64_t id)
{
    struct model_session *session = model_find_session(model, id);

    if (session == NULL || !session->ending ||
        count_grants(model, id) + count_waits(model, id) > 0)
        return;
    model_close_gap(model->sessions, sizeof *session, &model->session_count,
                    (size_t)(session - model->sessions));
}

/* Ends the oldest part of a session that has some. */
static void end_part(struct model *model, uint64_t id)
{
    const struct model_session *session = model_find_session(model, id);
    struct model_grant *grant = NULL;
    struct model_wait *wait = NULL;

    for (size_t i = 0; i < model->grant_count && grant == NULL; i++) {
        if (model->grants[i].claim.session == id)
            grant = &model->grants[i];
    }
    for (size_t i = 0; i < model->wait_count && wait == NULL; i++) {
        if (model->waits[i].claim.session == id)
            wait = &model->waits[i];
    }
    model->figures[FIGURE_SESSION_PARTS]++;
    if (grant != NULL && (wait == NULL || grant->token < wait->order)) {
        model->figures[FIGURE_LOST]++;
        model_end_grant(model, grant, EVENT_LOCK_LOST, "session",
                        model->now_us - session->expires_us);
    } else {
        model_end_wait(model, wait, HOLD_LOST);
    }
    model_serve(model);
}

void model_session_due(struct model *model, void *thing)
{
    struct model_session *session = thing;

    if (session->ending) {
        end_part(model, session->id);
        return;
    }
    model_event(model, EVENT_SESSION_EXPIRED, id_text(session->id),
                model->now_us - session->expires_us);
    model->figures[FIGURE_SESSION_EXPIRED]++;
    session->ending = true;
    model_part_ended(model, session->id);
}

void model_refuse_session(struct model *model, enum hold_code code, uint64_t id)
{
    struct hf_buf *out = model_reply(model, code);

    reply_map(out, 1);
    reply_field_number(out, FIELD_SESSION, (int64_t)id);
}

static uint64_t end_us(const struct model *model,
                       const struct model_session *session)
{
    return session->bound ? UINT64_MAX : model->now_us + session->ttl_ms * 1000;
}

static void tell(struct model *model, const struct model_session *session)
{
    struct hf_buf *out = model_reply(model, HOLD_OK);

    reply_map(out, 3);
    reply_field_number(out, FIELD_SESSION, (int64_t)session->id);
    reply_field_number(out, FIELD_TTL_MS, (int64_t)session->ttl_ms);
    reply_field_number(out, FIELD_BOUND, session->bound);
}

static void open_session(struct model *model, const struct hold_command *c)
{
    if (model->session_count >= model->bounds.sessions_max) {
        model_overloaded(model, "sessions-max", model->bounds.sessions_max);
        return;
    }
    assert(model->session_count < MODEL_MAX);
    struct model_session *session = &model->sessions[model->session_count++];
    *session = (struct model_session){
        .id = model_event(model, EVENT_SESSION_OPENED, id_text(model->seq + 1),
                          0),
        .ttl_ms = c->ttl_ms,
        .bound = (c->flags & HOLD_BIND) != 0,
        .note = model_text(c->note),
    };
    model_tell(model, &(struct model_facts){.note = c->note});
    session->newest = session->id;
    session->expires_us = end_us(model, session);
    tell(model, session);
}

static void keep(struct model *model, struct model_session *session)
{
    session->newest =
        model_event(model, EVENT_SESSION_KEPT, id_text(session->id), 0);
    session->expires_us = end_us(model, session);
    tell(model, session);
}

static void close_session(struct model *model, struct model_session *session)
{
    uint64_t id = session->id;

    model_event(model, EVENT_SESSION_CLOSED, id_text(id), 0);
    model->figures[FIGURE_SESSION_CLOSED]++;
    session->expires_us = model->now_us;
    session->ending = true;
    model_part_ended(model, id);
    model->steps = 0;
    while (model_find_session(model, id) != NULL &&
           model->steps++ < HOLD_STEP_MAX)
        end_part(model, id);
    model_reply(model, HOLD_OK);
}

void model_session_left(struct model *model, const struct hold_command *c)
{
    struct model_session *session = model_find_session(model, c->token);

    if (session == NULL || session->expires_us != UINT64_MAX ||
        session->newest != (uint64_t)c->amount)
        return;
    session->expires_us = model->now_us + session->ttl_ms * 1000;
    model->figures[FIGURE_SESSION_LEFT]++;
}

static void session_command(struct model *model, const struct hold_command *c)
{
    if (c->kind == HOLD_SESSION_OPEN)
        open_session(model, c);
    else if (model_session_is_over(model, c->token, model->now_us))
        model_refuse_session(model, HOLD_LOST, c->token);
    else if (c->kind == HOLD_SESSION_KEEP)
        keep(model, model_find_session(model, c->token));
    else
        close_session(model, model_find_session(model, c->token));
}

void model_write_session(const struct model *model, struct hf_buf *out,
                         const struct model_session *session, uint64_t now_us)
{
    uint64_t left_us = model_session_left_us(session, now_us);

    reply_map(out, 7);
    reply_field_number(out, FIELD_SESSION, (int64_t)session->id);
    reply_field_text(out, FIELD_NAME, model_bytes(&session->note));
    reply_field_number(out, FIELD_TTL_MS, (int64_t)session->ttl_ms);
    reply_field_number(out, FIELD_EXPIRES_MS, (int64_t)(left_us / 1000));
    reply_field_number(out, FIELD_BOUND, session->bound);
    reply_field_number(out, FIELD_LOCKS,
                       (int64_t)count_grants(model, session->id));
    reply_field_number(out, FIELD_WAITS,
                       (int64_t)count_waits(model, session->id));
}

static void clear(struct model *model)
{
    model->session_count = 0;
}

MODEL_PART("session", session_command, clear);
