/* model.c - what the model does with every command: time, REQ, settings. */
#include "sim/engine/model.h"

#include <assert.h>

#include "base/memory.h"
#include "sim/engine/model_lock.h"

struct model *model_new(void)
{
    struct model *model = hf_alloc_zeroed(sizeof *model);

    if (model == NULL)
        abort();
    model->bounds = hold_bounds_default();
    return model;
}

struct model_text model_text(struct hf_bytes bytes)
{
    struct model_text text = {.len = bytes.len};

    assert(bytes.len <= sizeof text.data);
    if (bytes.len > 0)
        memcpy(text.data, bytes.data, bytes.len);
    return text;
}

struct hf_bytes model_bytes(const struct model_text *text)
{
    return hf_bytes(text->data, text->len);
}

bool model_is(const struct model_text *text, struct hf_bytes bytes)
{
    return hf_bytes_equal(model_bytes(text), bytes);
}

void model_close_gap(void *array, size_t item_bytes, size_t *count, size_t at)
{
    char *gap = (char *)array + at * item_bytes;

    assert(at < *count);
    memmove(gap, gap + item_bytes, (*count - at - 1) * item_bytes);
    (*count)--;
}

/* Room for the longest body, and the longest answer, that the model writes. */
#define BODY_MAX   (256u * 1024)
#define ANSWER_MAX (16u * 1024)

static void reserve_body(struct hf_buf *out)
{
    if (hf_buf_reserve(out, BODY_MAX) != HF_OK)
        abort();
}

struct hf_buf *model_reply(struct model *model, enum hold_code code)
{
    model->code = code;
    model->body.len = 0;
    reserve_body(&model->body);
    return &model->body;
}

void model_overloaded(struct model *model, const char *name, uint64_t maximum)
{
    struct hf_buf *out = model_reply(model, HOLD_OVERLOADED);

    reply_map(out, 2);
    reply_field_text(out, FIELD_NAME, hf_bytes_text(name));
    reply_field_number(out, FIELD_MAXIMUM, (int64_t)maximum);
}

uint64_t model_event(struct model *model, enum hold_event_kind kind,
                     struct hf_bytes name, uint64_t lag_us)
{
    assert(model->event_count < MODEL_EVENTS_MAX);
    model->events[model->event_count++] =
        (struct model_event){.seq = ++model->seq,
                             .kind = kind,
                             .lag_us = lag_us,
                             .age_us = HOLD_NO_AGE,
                             .name = model_text(name)};
    model_tell(model, &(struct model_facts){.total = 0});
    return model->seq;
}

uint64_t model_hash(uint64_t hash, const void *data, size_t len)
{
    const unsigned char *at = data;

    hash = (hash ^ len) * UINT64_C(0x100000001b3);
    for (size_t i = 0; i < len; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

void model_tell(struct model *model, const struct model_facts *facts)
{
    uint64_t hash = model_hash(0, facts->owner.data, facts->owner.len);

    hash = model_hash(hash, facts->note.data, facts->note.len);
    for (size_t i = 0; i < facts->item_count; i++) {
        const struct model_item *item = &facts->items[i];
        hash = model_hash(hash, item->sku.data, item->sku.len);
        hash = model_hash(hash, &item->quantity, sizeof item->quantity);
    }
    hash = model_hash(hash, facts->group.data, facts->group.len);
    hash = model_hash(hash, &facts->total, sizeof facts->total);
    hash = model_hash(hash, &facts->available, sizeof facts->available);
    model->events[model->event_count - 1].facts = hash;
}

void model_age(struct model *model, uint64_t since_us)
{
    model->events[model->event_count - 1].age_us = model->now_us - since_us;
}

struct hf_buf *model_answer(struct model *model, enum hold_code code,
                            uint64_t ticket)
{
    assert(model->answer_count < MODEL_MAX);
    struct model_answer *answer = &model->answers[model->answer_count++];
    answer->ticket = ticket;
    answer->code = code;
    answer->body.len = 0;
    if (answer->body.cap == 0 &&
        hf_buf_reserve(&answer->body, ANSWER_MAX) != HF_OK)
        abort();
    return &answer->body;
}

/* Time. */

/* The next of the things that are due in order of (when, tie). */
struct due {
    uint64_t when;
    uint64_t tie;
    void (*expire)(struct model *model, void *thing);
    void *thing;
};

static void look(struct due *due, uint64_t when, uint64_t tie,
                 void (*expire)(struct model *, void *), void *thing)
{
    if (when < due->when || (when == due->when && tie < due->tie))
        *due = (struct due){when, tie, expire, thing};
}

static struct due first_due(struct model *model)
{
    struct due due = {.when = UINT64_MAX, .tie = 0};

    for (size_t i = 0; i < model->grant_count; i++)
        look(&due, model->grants[i].expires_us, model->grants[i].token,
             model_grant_due, &model->grants[i]);
    for (size_t i = 0; i < model->wait_count; i++)
        look(&due, model->waits[i].deadline_us, model->waits[i].ticket,
             model_wait_due, &model->waits[i]);
    for (size_t i = 0; i < model->session_count; i++)
        look(&due, model->sessions[i].expires_us, model->sessions[i].id,
             model_session_due, &model->sessions[i]);
    for (size_t i = 0; i < model->mark_count; i++)
        look(&due, model_mark_end_us(&model->marks[i]), model->marks[i].seq,
             model_mark_due, &model->marks[i]);
    for (size_t i = 0; i < model->reservation_count; i++) {
        struct model_reservation *r = &model->reservations[i];
        if (r->status == MODEL_PENDING)
            look(&due, r->expires_us, r->seq, model_reservation_due, r);
    }
    for (size_t i = 0; i < model->buyer_count; i++)
        look(&due, model->buyers[i].deadline_us, model->buyers[i].ticket,
             model_buyer_due, &model->buyers[i]);
    for (size_t i = 0; i < model->arrival_count; i++) {
        struct model_arrival *arrival = &model->arrivals[i];
        if (!arrival->late)
            look(&due, arrival->at_us, arrival->seq, model_arrival_due,
                 arrival);
    }
    return due;
}

static struct model_reservation *oldest_ended(struct model *model)
{
    struct model_reservation *oldest = NULL;

    for (size_t i = 0; i < model->reservation_count; i++) {
        struct model_reservation *r = &model->reservations[i];
        if (r->status != MODEL_PENDING &&
            (oldest == NULL || r->ended_order < oldest->ended_order))
            oldest = r;
    }
    return oldest;
}

static uint64_t ended_until(const struct model *model,
                            const struct model_reservation *reservation)
{
    uint64_t keep_ms = model->bounds.ended_keep_ms;

    if (model_grace_ms(model) > keep_ms)
        keep_ms = model_grace_ms(model);
    return reservation->ended_us + keep_ms * 1000;
}

static void sweep(struct model *model)
{
    model->steps = 0;
    while (model->steps++ < HOLD_STEP_MAX) {
        struct due due = first_due(model);
        struct model_reservation *ended = oldest_ended(model);
        struct model_request *request = model_oldest_request(model);

        if (due.when <= model->now_us)
            due.expire(model, due.thing);
        else if (ended != NULL && ended_until(model, ended) <= model->now_us)
            model_forget_reservation(model, ended);
        else if (request != NULL &&
                 model_stored_until(model, request) <= model->now_us)
            model_forget_request(model, request);
        else
            break;
    }
}

uint64_t model_next_due_us(const struct model *model)
{
    struct model *all = (struct model *)model; /* only looked at */
    uint64_t next = first_due(all).when;
    struct model_reservation *ended = oldest_ended(all);
    struct model_request *request = model_oldest_request(all);

    if (ended != NULL && ended_until(model, ended) < next)
        next = ended_until(model, ended);
    if (request != NULL && model_stored_until(model, request) < next)
        next = model_stored_until(model, request);
    return next;
}

bool model_is_behind(const struct model *model, uint64_t now_us)
{
    return first_due((struct model *)model).when <= now_us;
}

/* Commands about the whole. */

static struct model_wait *find_ticket(struct model *model, uint64_t ticket)
{
    for (size_t i = 0; i < model->wait_count; i++) {
        if (model->waits[i].ticket == ticket)
            return &model->waits[i];
    }
    return NULL;
}

static void abandon(struct model *model, const struct hold_command *c)
{
    struct model_wait *wait = find_ticket(model, c->token);
    struct model_buyer *buyer = model_find_buyer_ticket(model, c->token);

    if (c->name.len > 0)
        model_abandon_grant(model, c);
    if (c->note.len > 0)
        model_give_up_reservation(model, c->note, c->token);
    if (c->name.len + c->note.len == 0 && wait != NULL)
        model_drop_wait(model, wait, "gone");
    if (c->name.len + c->note.len == 0 && buyer != NULL)
        model_drop_buyer(model, buyer);
    model_serve(model);
    model_serve_products(model);
    model_reply(model, HOLD_OK);
}

static void time_out(struct model *model, const struct hold_command *c)
{
    struct model_wait *wait = find_ticket(model, c->token);
    struct model_buyer *buyer = model_find_buyer_ticket(model, c->token);

    if (c->name.len > 0)
        model_abandon_grant(model, c);
    if (c->note.len > 0)
        model_give_up_reservation(model, c->note, c->token);
    if (c->name.len + c->note.len == 0 && wait != NULL)
        model_end_wait(model, wait, HOLD_TIMED_OUT);
    if (c->name.len + c->note.len == 0 && buyer != NULL)
        model_end_buyer(model, buyer);
    model_serve(model);
    model_serve_products(model);
    model_reply(model, HOLD_OK);
    struct model_request *request = model_find_request(model, c->request);
    if (c->request.len == 0 || request == NULL ||
        model_request_over(model, request))
        return;
    for (size_t i = 0; request->waiting && i < model->wait_count; i++) {
        if (model_is(&model->waits[i].request, c->request))
            model_end_wait(model, &model->waits[i], HOLD_TIMED_OUT);
    }
    for (size_t i = 0; request->waiting && i < model->buyer_count; i++) {
        if (model_is(&model->buyers[i].request, c->request))
            model_end_buyer(model, &model->buyers[i]);
    }
    model_serve(model);
    model_serve_products(model);
    if (request->code != HOLD_TIMED_OUT)
        model_store(model, request, HOLD_TIMED_OUT, hf_bytes("", 0));
}

static struct model_part *parts;

void model_part_add(struct model_part *part)
{
    part->next = parts;
    parts = part;
}

static void clear(struct model *model)
{
    for (struct model_part *part = parts; part != NULL; part = part->next)
        part->clear(model);
    while (model->request_count > 0)
        model_forget_request(model, &model->requests[0]);
}

static void flush(struct model *model, const struct hold_command *command)
{
    (void)command;
    for (size_t i = 0; i < model->wait_count; i++)
        model_answer(model, HOLD_NOTHELD, model->waits[i].ticket);
    for (size_t i = 0; i < model->buyer_count; i++) {
        if (!model->buyers[i].joined)
            model_answer(model, HOLD_NOTHELD, model->buyers[i].ticket);
    }
    clear(model);
    model_event(model, EVENT_FLUSHED, hf_bytes("", 0), 0);
}

static void restart(struct model *model, const struct hold_command *command)
{
    model->seq += (uint64_t)command->amount;
    model->old_waits = (command->flags & HOLD_SETTLED) == 0;
}

static void set_bounds(struct model *model, const struct hold_command *command)
{
    for (uint32_t i = 0; i < command->item_count; i++)
        hold_bounds_set(&model->bounds, command->items[i].sku,
                        command->items[i].quantity);
}

static void whole_command(struct model *model,
                          const struct hold_command *command)
{
    static void (*const runs[HOLD_KINDS])(struct model *,
                                          const struct hold_command *) = {
        [HOLD_RESTART] = restart,  [HOLD_ABANDON] = abandon,
        [HOLD_TIMEOUT] = time_out, [HOLD_BOUNDS] = set_bounds,
        [HOLD_FLUSH] = flush,      [HOLD_SESSION_LEFT] = model_session_left,
    };

    model_reply(model, HOLD_OK);
    if (runs[command->kind] != NULL)
        runs[command->kind](model, command);
}

void model_run(struct model *model, const struct hold_command *command)
{
    for (struct model_part *part = parts; part != NULL; part = part->next) {
        if (strcmp(part->group, hold_operations[command->kind].group) == 0) {
            part->run(model, command);
            return;
        }
    }
    assert(!"a group that the model does not know");
}

/* Is it about one lock? */
static bool names_lock(const struct hold_command *c)
{
    return hold_operations[c->kind].words[0] == WORD_NAME ||
           (hold_is_key(c->kind) && c->name.len > 0);
}

/* What a client asked for. More may be due than one sweep takes, so the lock
 * or reservation that the command names is looked at on its own. */
static void action(struct model *model, const struct hold_command *command,
                   struct hf_bytes shared)
{
    unsigned named = hold_operations[command->kind].words[0];

    if (names_lock(command))
        model_settle_lock(model, command->name);
    else if (named == WORD_ID)
        model_settle_reservation(model, command->name);
    if (command->request.len > 0 &&
        model_answer_from_request(model, command, shared))
        return;
    model_run(model, command);
    if (command->request.len > 0)
        model_remember_request(model, command->request, shared);
}

static bool about_end(const struct hold_command *c)
{
    return c->kind == HOLD_CONFIRM || c->kind == HOLD_CANCEL ||
           c->kind == HOLD_EXTEND;
}

/* It waits for what may be there; or is late, and may still be confirmed. */
static bool may_change(struct model *model, const struct hold_command *c)
{
    const struct model_reservation *r = model_find_reservation(model, c->name);

    if (model_find_buyer(model, c->name) != NULL)
        return !model->old_waits;
    return c->kind == HOLD_CONFIRM && r != NULL &&
           model_has_grace(model, r, model->now_us);
}

/* Must all that is over be swept first? Also if it would meet a bound, or if
 * the lock that it names has too much to be settled on its own. */
static bool is_exact(struct model *model, const struct hold_command *c)
{
    bool of_lock =
        names_lock(c) || c->kind == HOLD_ABANDON || c->kind == HOLD_TIMEOUT;
    bool takes = c->kind == HOLD_LOCK || c->kind == HOLD_ELECT ||
                 c->kind == HOLD_KEY_SET;

    if (c->kind == HOLD_TICK && c->amount != 0)
        return true;
    if (about_end(c) && may_change(model, c))
        return true;
    if (hold_is_key(c->kind) && c->item_count > 0)
        return true;
    if (takes && model_names_in_use(model) >= model->bounds.locks_max)
        return true;
    if (takes && ((c->flags & HOLD_TREE) != 0 ||
                  (memchr(c->name.data, '/', c->name.len) != NULL &&
                   model_any_tree(model))))
        return true;
    if (c->kind == HOLD_SESSION_OPEN &&
        model->session_count >= model->bounds.sessions_max)
        return true;
    if (of_lock && c->name.len > 0) {
        uint32_t name = model_name(model, c->name);
        if (model_count_grants(model, name) + model_waiting(model, name) >
            HOLD_SETTLE_MAX)
            return true;
    }
    if (c->request.len > 0 &&
        model->request_count >= model->bounds.requests_max)
        return true;
    if (hold_kind_is_exact(c->kind) && !model->old_waits)
        return !model_is_settled(model, c, model->now_us);
    return hold_kind_is_exact(c->kind);
}

void model_apply(struct model *model, const struct hold_command *command,
                 struct hf_bytes record)
{
    static char same[HOLD_RECORD_MAX]; /* whether told or not */
    struct hf_bytes shared =
        hf_bytes(same + HOLD_RECORD_BODY, record.len - HOLD_RECORD_BODY);

    memcpy(same, record.data, record.len);
    hold_record_untell(same);
    if (command->kind == HOLD_GROUP)
        shared = hf_bytes(same, model_group_shared(command, same));
    model->event_count = 0;
    model->ended_members = 0;
    model->answer_count = 0;
    model->ticket = 0;
    if (command->now_us > model->now_us)
        model->now_us = command->now_us;
    if (command->kind == HOLD_RESTART) {
        model_restart_locks(model);
        model_restart_waitlist(model);
    }
    sweep(model);
    if (is_exact(model, command) && model_is_behind(model, model->now_us))
        model_reply(model, HOLD_AGAIN);
    else if (hold_operations[command->kind].class == CLASS_INTERNAL)
        whole_command(model, command);
    else if (command->told)
        model_remember_told(model, command, shared);
    else
        action(model, command, shared);
}

void model_free(struct model *model)
{
    clear(model);
    hf_buf_destroy(&model->body);
    for (size_t i = 0; i < MODEL_MAX; i++)
        hf_buf_destroy(&model->answers[i].body);
    hf_free(model);
}
