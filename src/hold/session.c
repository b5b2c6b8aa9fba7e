/* session.c - what belongs together and ends together.
 *
 * A session that is over ends what it has one by one, in the steps of the
 * sweep, so that a large one stops nobody. Meanwhile all of it is over: whoever
 * looks at a lock asks the lock's session, too.
 */
#include "base/little.h"
#include "hold/part.h"

uint32_t session_find(const struct hold_engine *e, uint64_t id)
{
    char bytes[8];

    hf_put_u64(bytes, id);
    return hf_index_find(&e->sessions, hf_bytes(bytes, sizeof bytes));
}

uint64_t session_order(const struct hold_engine *e, const struct part *part)
{
    return part->waits ? waiter_at(e, part->group)->order : part_token(e, part);
}

void session_join(struct hold_engine *e, uint32_t session_number,
                  uint32_t number)
{
    struct session *session = session_edit(e, session_number);
    uint64_t order = session_order(e, part_at(e, number));
    uint32_t behind = session->parts.last;

    while (behind != 0 && session_order(e, part_at(e, behind)) > order)
        behind = part_at(e, behind)->kin.prev;
    list_insert(KIN(e), &session->parts, number, behind);
    *(part_at(e, number)->waits ? &session->waits : &session->grants) += 1;
}

static void remove_session(struct hold_engine *e, uint32_t number)
{
    struct session *session = session_edit(e, number);

    hf_agenda_remove(&e->due, session->due);
    hf_texts_drop(&e->texts, session->title);
    hf_index_remove(&e->sessions, number);
}

void session_leave(struct hold_engine *e, uint32_t session_number,
                   uint32_t number)
{
    struct session *session = session_edit(e, session_number);

    list_remove(KIN(e), &session->parts, number);
    *(part_at(e, number)->waits ? &session->waits : &session->grants) -= 1;
    if (session->ended && session->parts.first == 0)
        remove_session(e, session_number);
}

/* Sessions are named by their id. */
static void emit_session(struct hold_engine *e, enum hold_event_kind kind,
                         uint64_t id, uint64_t lag_us)
{
    char name[24];

    emit(e, kind, hf_bytes(name, hf_print_u64(name, id)), lag_us);
}

/* Ends the oldest of its parts. */
static void end_part(struct hold_engine *e, const struct session *session)
{
    const struct part *part = part_at(e, session->parts.first);

    if (part->waits)
        waiter_lose(e, part->group);
    else
        grant_lose(e, session->parts.first, WHY_SESSION,
                   e->now_us - session->expires_us);
    serve_all(e);
}

void session_expire(struct hold_engine *e, uint32_t number)
{
    struct session *session = session_edit(e, number);

    if (!session->ended) {
        emit_session(e, EVENT_SESSION_EXPIRED, session->id,
                     e->now_us - session->expires_us);
        session->ended = 1;
        if (session->parts.first == 0)
            remove_session(e, number);
    } else {
        end_part(e, session);
    }
}

static void set_end_us(struct hold_engine *e, struct session *session,
                       uint64_t end_us)
{
    session->expires_us = end_us;
    hf_agenda_change(&e->due, session->due, end_us, session->id);
}

void session_need(struct hold_engine *e, const struct hold_command *c,
                  struct need *need)
{
    need_record(e, need, &e->sessions, sizeof(uint64_t));
    need_text(e, need, c->note.len);
    need->due = 1;
}

bool session_open_check(struct hold_engine *e, const struct hold_command *c,
                        struct target at)
{
    (void)c, (void)at;
    return hf_index_count(&e->sessions) >= e->bounds.sessions_max &&
           refuse_overload(e, "sessions-max", e->bounds.sessions_max);
}

static void reply_session(struct hold_engine *e, const struct session *session)
{
    reply_map(&e->body, 3);
    reply_field_number(&e->body, FIELD_SESSION, (int64_t)session->id);
    reply_field_number(&e->body, FIELD_TTL_MS, (int64_t)session->ttl_ms);
    reply_field_number(&e->body, FIELD_BOUND, session->bound);
}

void session_open(struct hold_engine *e, const struct hold_command *c,
                  struct target at)
{
    char bytes[8];
    uint64_t id = e->seq + 1;

    (void)at;
    emit_session(e, EVENT_SESSION_OPENED, id, 0);
    if (e->tells)
        told(e)->note = tell_text(e, c->note);
    hf_put_u64(bytes, id);
    uint32_t number = hf_index_add(&e->sessions, hf_bytes(bytes, sizeof bytes));
    assert(number != 0); /* promised */
    struct session *session = session_edit(e, number);
    session->id = id;
    session->kept = id;
    session->ttl_ms = c->ttl_ms;
    session->bound = (c->flags & HOLD_BIND) != 0;
    session->expires_us =
        session->bound ? UINT64_MAX : e->now_us + c->ttl_ms * US_PER_MS;
    keep_text(e, c->note, &session->title);
    due_add(e, DUE_SESSION, number, session->expires_us, id);
    reply_session(e, session);
}

bool session_check(struct hold_engine *e, const struct hold_command *c,
                   struct target at)
{
    uint32_t number;

    (void)at;
    return refuse_session(e, c->token, &number);
}

void session_keep(struct hold_engine *e, const struct hold_command *c,
                  struct target at)
{
    struct session *session = session_edit(e, session_find(e, c->token));

    (void)at;
    emit_session(e, EVENT_SESSION_KEPT, session->id, 0);
    session->kept = e->seq;
    set_end_us(e, session,
               session->bound ? UINT64_MAX
                              : e->now_us + session->ttl_ms * US_PER_MS);
    reply_session(e, session);
}

void session_close(struct hold_engine *e, const struct hold_command *c,
                   struct target at)
{
    uint32_t number = session_find(e, c->token);
    struct session *session = session_edit(e, number);

    (void)at;
    emit_session(e, EVENT_SESSION_CLOSED, session->id, 0);
    session->ended = 1;
    set_end_us(e, session, e->now_us);
    if (session->parts.first == 0) {
        remove_session(e, number);
        return;
    }
    for (e->steps = 0;
         e->steps < HOLD_STEP_MAX && session_find(e, c->token) != 0; e->steps++)
        end_part(e, session);
}

/* From now on it lives for its time. */
static void unbind(struct hold_engine *e, struct session *session)
{
    if (session->bound && session->expires_us == UINT64_MAX)
        set_end_us(e, session, e->now_us + session->ttl_ms * US_PER_MS);
}

void run_session_left(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = session_find(e, c->token);

    if (number != 0 && session_at(e, number)->kept == (uint64_t)c->amount)
        unbind(e, session_edit(e, number));
}

void sessions_unbind(struct hold_engine *e)
{
    for (uint32_t i = 1; i < hf_index_top(&e->sessions); i++) {
        struct session *session = hf_index_used(&e->sessions, i);
        if (session != NULL)
            unbind(e, session);
    }
}

static void show_session(struct hold_engine *e, const void *record)
{
    const struct session *session = record;
    struct claim claim = {
        .session = session_find(e, session->id),
    };

    reply_map(&e->body, 7);
    reply_field_number(&e->body, FIELD_SESSION, (int64_t)session->id);
    reply_field_text(&e->body, FIELD_NAME,
                     hf_text_bytes(&e->texts, session->title));
    reply_field_number(&e->body, FIELD_TTL_MS, (int64_t)session->ttl_ms);
    reply_field_number(&e->body, FIELD_EXPIRES_MS,
                       claim_safe_ms(e, &claim, UINT64_MAX));
    reply_field_number(&e->body, FIELD_BOUND, session->bound);
    reply_field_number(&e->body, FIELD_LOCKS, session->grants);
    reply_field_number(&e->body, FIELD_WAITS, session->waits);
}

void session_info(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = session_find(e, c->token);

    if (number == 0)
        reply_field_number(refuse(e, HOLD_NOTFOUND, 1), FIELD_SESSION,
                           (int64_t)c->token);
    else
        show_session(e, session_at(e, number));
}

void session_list(struct hold_engine *e, const struct hold_command *c)
{
    list_page(e, c, FIELD_SESSIONS, &e->sessions, NULL, show_session);
}

enum hf_status session_loaded(struct hold_engine *e, uint32_t number,
                              uint64_t link)
{
    const struct session *session = session_at(e, number);

    (void)link;
    return due_load(e, DUE_SESSION, number, session->expires_us, session->id);
}
