/* out.c - what one call gives: reply, answers, events.
 *
 * All of it has its memory before a record is applied: the body and the names
 * from the start, answers and events in step with the number of waiters, each
 * of whom is answered at most once.
 */
#include <assert.h>

#include "base/little.h"
#include "base/memory.h"
#include "hold/group.h"
#include "hold/state.h"

/* The longest body: a list stops short of it, a reservation fits well. */
#define BODY_BYTES (256u * 1024)

/* Events other than grants to those who waited, and the bytes of the names that
 * they can bear: what ends in the steps of a sweep, what a record ends, wounds
 * or grants itself. A set counts by its names. Products that come to be low, or
 * are not any more, count as steps of the sweep; besides, those of the last
 * reservation that it ends, of one that is settled, and of the record itself.
 */
#define SETTLED_MAX (HOLD_SETTLE_MAX * HOLD_SET_MAX)
#define LEVELS_MAX  (HOLD_STEP_MAX + 3 * HOLD_ITEMS_MAX)
#define EVENTS_BASE \
    (3 * HOLD_STEP_MAX + 4 * HOLD_SET_MAX + SETTLED_MAX + LEVELS_MAX)
#define NAMES_BYTES (EVENTS_BASE * HOLD_NAME_MAX)
/* The same of a group: each command may be about a set, or a reservation; and
 * all reservations of some groups of them may end. */
#define GROUP_PARTS       (HOLD_GROUP_MAX + HOLD_MEMBERS_MAX)
#define GROUP_EVENTS      (GROUP_PARTS * (HOLD_ITEMS_MAX + 1))
#define GROUP_NAMES_BYTES (GROUP_PARTS * (HOLD_SET_MAX + 1) * HOLD_NAME_MAX)
_Static_assert(HOLD_SET_MAX <= HOLD_ITEMS_MAX &&
                   (HOLD_SET_MAX + 1) * HOLD_NAME_MAX >=
                       HOLD_ID_MAX + HOLD_ITEMS_MAX * HOLD_SKU_MAX,
               "a reservation has more names than a set");
/* What an event has beyond its name, if all is to be told: of a lock, and of a
 * reservation. */
#define LOCK_BYTES  (HOLD_OWNER_MAX + HOLD_NOTE_MAX)
#define ITEMS_BYTES (HOLD_ITEMS_MAX * (2 + HOLD_SKU_MAX + 8))
#define RESERVATION_BYTES \
    (2 * HOLD_ID_MAX + HOLD_OWNER_MAX + HOLD_REASON_MAX + ITEMS_BYTES)
#define TOLD_BYTES \
    (EVENTS_BASE * LOCK_BYTES + (HOLD_STEP_MAX + 2) * RESERVATION_BYTES)
/* A CONFIRM in part is two events. */
#define GROUP_TOLD_BYTES (2 * GROUP_PARTS * RESERVATION_BYTES)
_Static_assert(RESERVATION_BYTES >= (HOLD_SET_MAX + 1) * LOCK_BYTES,
               "a set has more to tell than a reservation");
/* The longest answer to those who waited for what is done. */
#define DONE_BYTES (HOLD_NAME_MAX + HOLD_NOTE_MAX + 64)

static enum hf_status fixed(struct hf_buf *buf, size_t bytes)
{
    buf->data = hf_alloc(bytes);
    buf->cap = bytes;
    buf->len = 0;
    return buf->data == NULL ? HF_NOMEM : HF_OK;
}

const char *hold_event_name(enum hold_event_kind kind)
{
#define NAME(event, subject, name) name,
    static const char *const names[] = {HOLD_EVENTS(NAME)};
#undef NAME

    return names[kind];
}

enum hold_subject hold_event_subject(enum hold_event_kind kind)
{
#define SUBJECT(event, subject, name) SUBJECT_##subject,
    static const enum hold_subject subjects[] = {HOLD_EVENTS(SUBJECT)};
#undef SUBJECT

    return subjects[kind];
}

enum hf_status out_init(struct hold_engine *e)
{
    if (fixed(&e->body, HOLD_GROUP_REPLIES_MAX + BODY_BYTES) != HF_OK ||
        fixed(&e->event_names, NAMES_BYTES) != HF_OK ||
        fixed(&e->done_body, DONE_BYTES) != HF_OK ||
        fixed(&e->record, HOLD_RECORD_MAX) != HF_OK)
        return HF_NOMEM;
    e->body.cap = BODY_BYTES; /* the rest is for groups */
    return out_reserve(e, 16, 0) == HF_OK ? out_reserve_events(e, 16, 0)
                                          : HF_NOMEM;
}

void out_destroy(struct hold_engine *e)
{
    hf_free(e->body.data);
    hf_free(e->event_names.data);
    hf_free(e->done_body.data);
    hf_free(e->record.data);
    hf_free(e->answers);
    hf_free(e->answer_bodies.data);
    hf_free(e->events);
}

/* More memory for what the last call gave, which is over: nothing is copied. */
static void *larger(void *old, size_t bytes)
{
    void *fresh = hf_alloc(bytes);

    if (fresh != NULL)
        hf_free(old);
    return fresh;
}

enum hf_status out_reserve(struct hold_engine *e, size_t waiters, size_t bytes)
{
    size_t cap = e->answer_cap ? e->answer_cap : 16;

    while (cap < waiters)
        cap *= 2;
    if (cap > e->answer_cap) {
        void *answers = larger(e->answers, cap * sizeof *e->answers);
        if (answers == NULL)
            return HF_NOMEM;
        e->answers = answers;
        e->answer_cap = cap;
    }
    if (cap * HOLD_ANSWER_BYTES + bytes > e->answer_bodies.cap) {
        size_t bodies_cap = cap * HOLD_ANSWER_BYTES + 2 * bytes;
        void *bodies = larger(e->answer_bodies.data, bodies_cap);
        if (bodies == NULL)
            return HF_NOMEM;
        e->answer_bodies.data = bodies;
        e->answer_bodies.cap = bodies_cap;
    }
    return HF_OK;
}

enum hf_status out_reserve_events(struct hold_engine *e, size_t parts,
                                  size_t name_bytes)
{
    size_t events = EVENTS_BASE + (e->groups ? GROUP_EVENTS : 0);
    size_t bytes = NAMES_BYTES + (e->groups ? GROUP_NAMES_BYTES : 0);

    if (e->tells)
        bytes += TOLD_BYTES + (e->groups ? GROUP_TOLD_BYTES : 0) +
                 parts * LOCK_BYTES;
    if (parts + events > e->event_cap) {
        size_t cap = 2 * parts + events;
        void *more = larger(e->events, cap * sizeof *e->events);
        if (more == NULL)
            return HF_NOMEM;
        e->events = more;
        e->event_cap = cap;
    }
    if (name_bytes + bytes > e->event_names.cap) {
        size_t cap = 2 * name_bytes + bytes;
        void *names = larger(e->event_names.data, cap);
        if (names == NULL)
            return HF_NOMEM;
        e->event_names.data = names;
        e->event_names.cap = cap;
    }
    return HF_OK;
}

enum hf_status out_reserve_group(struct hold_engine *e)
{
    bool before = e->groups;

    e->groups = true; /* from now on with every promise */
    if (before ||
        out_reserve_events(e, e->waited_parts + e->promised_parts,
                           e->waited_bytes + e->promised_bytes) == HF_OK)
        return HF_OK;
    e->groups = false;
    return HF_NOMEM;
}

void out_reset(struct hold_engine *e)
{
    e->body.len = 0;
    e->below = 0;
    e->ended_members = 0;
    e->answer_bodies.len = 0;
    e->event_names.len = 0;
    /* One by one: for a whole struct gcc makes a loop, which costs more. */
    _Static_assert(sizeof e->out == 96, "a new field has to be cleared");
    e->out.code = HOLD_OK;
    e->out.body = (struct hf_bytes){NULL, 0};
    e->out.ticket = 0;
    e->out.stored = false;
    e->out.work = 1;
    e->out.now_us = 0;
    e->out.seq = 0;
    e->out.answer_count = 0;
    e->out.answers = e->answers;
    e->out.event_count = 0;
    e->out.events = e->events;
}

uint64_t emit(struct hold_engine *e, enum hold_event_kind kind,
              struct hf_bytes name, uint64_t lag_us)
{
    struct hold_event *event = &e->events[e->out.event_count];
    const struct hf_bytes none = {NULL, 0};

    assert(e->out.event_count < e->event_cap);
    _Static_assert(sizeof *event == 136, "a new field has to be cleared");
    event->seq = ++e->seq; /* one by one, as in out_reset() */
    event->token = 0;
    event->age_us = HOLD_NO_AGE;
    event->total = 0;
    event->available = 0;
    event->lag_us = lag_us;
    event->kind = kind;
    event->mode = 0;
    event->name = tell_text(e, name);
    event->owner = none;
    event->note = none;
    event->items = none;
    event->group = none;
    e->out.event_count++;
    return event->seq;
}

enum hf_status hold_tell(struct hold_engine *e)
{
    if (e->tells)
        return HF_OK;
    e->tells = true;
    if (out_reserve_events(e, e->waited_parts + e->promised_parts,
                           e->waited_bytes + e->promised_bytes) == HF_OK)
        return HF_OK;
    e->tells = false;
    return HF_NOMEM;
}

void emit_age(struct hold_engine *e, uint64_t since_us)
{
    assert(e->out.event_count > 0);
    assert(since_us <= e->now_us);
    e->events[e->out.event_count - 1].age_us = e->now_us - since_us;
}

struct hf_buf *answer_begin(struct hold_engine *e, uint64_t ticket,
                            enum hold_code code)
{
    assert(e->out.answer_count < e->answer_cap);
    e->answers[e->out.answer_count++] = (struct hold_answer){
        ticket, code,
        hf_bytes(e->answer_bodies.data + e->answer_bodies.len, 0)};
    return &e->answer_bodies;
}

void answer_end(struct hold_engine *e)
{
    struct hold_answer *answer = &e->answers[e->out.answer_count - 1];
    const char *end = e->answer_bodies.data + e->answer_bodies.len;

    answer->body.len = (size_t)(end - answer->body.data);
    assert(e->answer_bodies.len <= e->answer_bodies.cap);
}

struct hf_buf *refuse(struct hold_engine *e, enum hold_code code,
                      uint32_t facts)
{
    e->out.code = code;
    reply_map(&e->body, facts);
    return &e->body;
}

bool refuse_overload(struct hold_engine *e, const char *limit, uint64_t maximum)
{
    struct hf_buf *body = refuse(e, HOLD_OVERLOADED, 2);

    reply_field_text(body, FIELD_NAME, hf_bytes_text(limit));
    reply_field_number(body, FIELD_MAXIMUM, (int64_t)maximum);
    return true;
}

/* The longest entry of a listing: a product with its attributes. */
#define ENTRY_BYTES (HOLD_SKU_MAX + HOLD_ATTRS_BYTES + 2 * HOLD_ATTRS_MAX + 160)
_Static_assert(ENTRY_BYTES >= HOLD_NAME_MAX + HOLD_OWNER_MAX + 128,
               "a lock is longer than a product");

void list_page(struct hold_engine *e, const struct hold_command *c,
               enum hold_field field, const struct hf_index *index,
               bool (*among)(const void *record),
               void (*show)(struct hold_engine *e, const void *record))
{
    struct hf_buf *body = &e->body;
    uint32_t top = hf_index_top(index);
    uint64_t from = c->cursor > 0 ? c->cursor : 1;
    uint64_t most = c->count > 0 ? c->count : HOLD_LIST_MAX;
    uint32_t number = from < top ? (uint32_t)from : top;
    uint64_t steps = 0;
    uint32_t count = 0;

    reply_map(body, 2);
    reply_field(body, field);
    reply_list(body, 0);
    size_t count_at = body->len - 4;
    for (; number < top && steps < HOLD_STEPS_MAX && count < most &&
           count < HOLD_LIST_MAX && body->cap - body->len >= 2 * ENTRY_BYTES;
         number++) {
        const void *record = hf_index_used(index, number);
        steps++;
        if (record == NULL || (among != NULL && !among(record)) ||
            (c->name.len > 0 &&
             !hf_bytes_match_steps(c->name, hf_index_name(index, record),
                                   &steps)))
            continue;
        show(e, record);
        count++;
    }
    e->out.work += steps;
    hf_put_u32(body->data + count_at, count);
    reply_field_number(body, FIELD_CURSOR, number < top ? number : 0);
}
