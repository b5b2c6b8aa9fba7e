/* model_lock.c - the commands of locks in the model. */
#include <assert.h>

#include "sim/engine/model_lock.h"

#define POSITION_MAX 1000u

/* Refusals. */

static struct hf_buf *refuse_name(struct model *model, enum hold_code code,
                                  uint32_t count, uint32_t name)
{
    struct hf_buf *out = model_reply(model, code);

    reply_map(out, count);
    reply_field_text(out, FIELD_NAME, model_name_bytes(model, name));
    return out;
}

static void refuse_token(struct model *model, enum hold_code code,
                         const struct hold_command *c)
{
    struct hf_buf *out = model_reply(model, code);

    reply_map(out, c->name.len > 0 ? 2 : 1);
    if (c->name.len > 0)
        reply_field_text(out, FIELD_NAME, c->name);
    reply_field_number(out, FIELD_TOKEN, (int64_t)c->token);
}

static void refuse_mode(struct model *model, const struct model_grant *grant,
                        uint32_t name)
{
    bool is_set = grant->claim.is_set;
    struct hf_buf *out = refuse_name(model, HOLD_STATE, is_set ? 3 : 2, name);
    enum model_mode mode = model_want_of(&grant->claim, name)->mode;

    reply_field_text(out, FIELD_MODE, hf_bytes_text(model_mode_name(mode)));
    if (is_set)
        reply_field_number(out, FIELD_NAMES, (int64_t)grant->claim.want_count);
    model->figures[grant->claim.is_set ? FIGURE_STATE_MEMBER
                                       : FIGURE_STATE_MODE]++;
}

/* The single grant that it has is the same but for TREE, which it lacks. */
static void refuse_tree(struct model *model, const struct model_grant *grant)
{
    const struct model_want *want = &grant->claim.wants[0];
    struct hf_buf *out = refuse_name(model, HOLD_STATE, 3, want->name);

    reply_field_text(out, FIELD_MODE,
                     hf_bytes_text(model_mode_name(want->mode)));
    reply_field_number(out, FIELD_TREE, 0);
    model->figures[FIGURE_TREE_STATE]++;
}

/* Who is told to have a place: the oldest holder that conflicts. */
static const struct model_grant *find_holder(struct model *model,
                                             const struct model_wait *wait,
                                             const struct model_want *want,
                                             uint32_t place)
{
    uint64_t used = place == want->name ? model_used_permits(model, place) : 0;

    for (size_t i = 0; i < model->grant_count; i++) {
        if (model_conflicts(model, &wait->claim, want, place, &model->grants[i],
                            used))
            return &model->grants[i];
    }
    return NULL;
}

/* The first that stands before it at a place, and stops it. */
static const struct model_wait *find_first(struct model *model,
                                           const struct model_wait *wait,
                                           const struct model_want *want,
                                           uint32_t place)
{
    const struct model_wait *queue[MODEL_MAX];
    size_t count = model_queue(model, place, queue);

    for (size_t i = 0; i < count; i++) {
        if (model_stops(model, queue[i], wait, want, place))
            return queue[i];
    }
    abort(); /* then it would be free */
}

void model_refuse_busy(struct model *model, const struct model_wait *wait,
                       const struct model_want *want, uint32_t place)
{
    const struct model_grant *oldest = find_holder(model, wait, want, place);
    size_t before = model_count_before(model, wait, want->name);
    uint64_t closed_us = model_closed_until(model, want->name, place);
    bool related = place != want->name;
    bool above = related && model_is_below(model, want->name, place);
    bool closed = closed_us > model->now_us && (related || oldest == NULL);
    uint32_t facts = 4u + !closed + related + above;
    struct hf_buf *out = refuse_name(model, HOLD_BUSY, facts, want->name);

    if (closed) {
        reply_field_number(out, FIELD_EXPIRES_MS,
                           (int64_t)((closed_us - model->now_us) / 1000));
        model->figures[FIGURE_BUSY_CLOSED]++;
    } else if (oldest != NULL) {
        reply_field_text(out, FIELD_OWNER, model_bytes(&oldest->claim.owner));
        reply_field_number(
            out, FIELD_EXPIRES_MS,
            (int64_t)(model_left_us(model, oldest, model->now_us) / 1000));
    } else {
        const struct model_wait *first = find_first(model, wait, want, place);
        reply_field_text(out, FIELD_OWNER, model_bytes(&first->claim.owner));
        reply_field_number(
            out, FIELD_WAITED_MS,
            (int64_t)((model->now_us - first->queued_us) / 1000));
        model->figures[FIGURE_BUSY_WAITED]++;
    }
    reply_field_number(out, FIELD_WAITING,
                       (int64_t)model_waiting(model, want->name));
    reply_field_number(out, FIELD_POSITION,
                       before < POSITION_MAX ? (int64_t)before + 1
                                             : POSITION_MAX);
    if (related) {
        reply_field_text(out, FIELD_RELATED, model_name_bytes(model, place));
        if (above)
            reply_field_number(out, FIELD_TREE, 1);
        model->figures[above ? FIGURE_TREE_ABOVE : FIGURE_TREE_BELOW]++;
    }
}

/* LOCK and LOCKSET, rule by rule: each function returns true if it settled the
 * request. */

/* The session is over, or the work is done. */
static bool is_too_late(struct model *model, const struct model_claim *claim)
{
    uint64_t left_us;

    if (model_session_is_over(model, claim->session, model->now_us)) {
        model_refuse_session(model, HOLD_LOST, claim->session);
        return true;
    }
    for (size_t i = 0; i < claim->want_count; i++) {
        uint32_t name = claim->wants[i].name;
        if (!model_is_done(model, name, &left_us))
            continue;
        model_write_done(model, model_reply(model, HOLD_DONE), name);
        model->figures[FIGURE_DONE_TOLD]++;
        return true;
    }
    return false;
}

/* The first name that the holder has, and its grant there; or NULL. */
static struct model_grant *
find_own(struct model *model, const struct model_claim *claim, uint32_t *name)
{
    for (size_t i = 0; i < claim->want_count; i++) {
        *name = claim->wants[i].name;
        for (size_t j = 0; j < model->grant_count; j++) {
            struct model_grant *grant = &model->grants[j];
            if (model_want_of(&grant->claim, *name) != NULL &&
                model_same_holder(claim, &grant->claim))
                return grant;
        }
    }
    return NULL;
}

static bool differs_in_maximum(struct model *model,
                               const struct model_claim *claim)
{
    const struct model_want *want = &claim->wants[0];
    const struct model_grant *grant = model_oldest_grant(model, want->name);
    const struct model_want *held =
        grant == NULL ? NULL : model_want_of(&grant->claim, want->name);

    if (want->mode != MODEL_COUNTING || held == NULL ||
        held->mode != MODEL_COUNTING || held->of == want->of)
        return false;
    reply_field_number(refuse_name(model, HOLD_STATE, 2, want->name),
                       FIELD_MAXIMUM, (int64_t)held->of);
    model->figures[FIGURE_STATE_MAXIMUM]++;
    return true;
}

/* The first that cannot be granted now, and at which place; or NULL. */
static const struct model_want *first_taken(struct model *model,
                                            const struct model_wait *wait,
                                            bool barge, uint32_t *place)
{
    for (size_t i = 0; i < wait->claim.want_count; i++) {
        const struct model_want *want = &wait->claim.wants[i];
        if (!model_is_free(model, wait, want, !barge, !barge, place))
            return want;
    }
    return NULL;
}

static bool exceeds_locks(struct model *model, const struct model_claim *claim)
{
    uint64_t max = model->bounds.locks_max;
    size_t new = 0;

    for (size_t i = 0; i < claim->want_count; i++)
        new += !model_is_in_use(model, claim->wants[i].name);
    if (new == 0 || new + model_names_in_use(model) <= max)
        return false;
    model_overloaded(model, "locks-max", max);
    return true;
}

static bool exceeds_bounds(struct model *model, const struct model_claim *claim)
{
    const struct hold_bounds *bounds = &model->bounds;

    if (exceeds_locks(model, claim))
        return true;
    for (size_t i = 0; i < claim->want_count; i++) {
        uint32_t name = claim->wants[i].name;
        if (!model_is_in_use(model, name) ||
            model_count_grants(model, name) < bounds->holders_max)
            continue;
        model_overloaded(model, "holders-max", bounds->holders_max);
        return true;
    }
    return false;
}

static bool queue_is_full(struct model *model, const struct model_claim *claim)
{
    for (size_t i = 0; i < claim->want_count; i++) {
        if (model_waiting(model, claim->wants[i].name) <
            model->bounds.waiters_max)
            continue;
        model_overloaded(model, "waiters-max", model->bounds.waiters_max);
        return true;
    }
    return false;
}

static void start_waiting(struct model *model, struct model_wait *wait)
{
    for (size_t i = 0; i < wait->claim.want_count; i++) {
        uint32_t name = wait->claim.wants[i].name;
        if (model_count_before(model, wait, name) < model_waiting(model, name))
            model->figures[FIGURE_PRIORITY]++;
    }
    wait->ticket = ++model->seq;
    wait->order = wait->ticket;
    assert(model->wait_count < MODEL_MAX);
    model->waits[model->wait_count++] = *wait;
    model_past_all(model, "queued", "", &wait->claim);
    model_reply(model, HOLD_WAITING);
    model->ticket = wait->ticket;
}

/* It holds nothing of what it asks for. True if the claim is settled; then
 * `*waits` tells whether it waits. */
static bool settle_new(struct model *model, struct model_wait *wait,
                       bool may_wait, bool *waits)
{
    struct model_claim *claim = &wait->claim;
    uint32_t place;

    if (differs_in_maximum(model, claim))
        return true;
    if (!claim->is_set && exceeds_locks(model, claim))
        return true; /* also if it would wait for a related name */
    if (model_exceeds_tree(model, claim))
        return true;
    const struct model_want *taken =
        first_taken(model, wait, claim->barge, &place);
    if (taken != NULL && !may_wait) {
        model_refuse_busy(model, wait, taken, place);
        return true;
    }
    if (taken != NULL) {
        if (queue_is_full(model, claim) || model_refuse_deadlock(model, wait))
            return true;
        model->figures[FIGURE_TREE_WAITS] += place != taken->name;
        start_waiting(model, wait);
        *waits = true;
        return true;
    }
    if (exceeds_bounds(model, claim))
        return true;
    model->figures[FIGURE_BARGED] +=
        first_taken(model, wait, false, &place) != NULL;
    return false;
}

/* True if the claim's memory is in use now. */
static bool acquire(struct model *model, struct model_wait *wait, bool may_wait)
{
    struct model_claim *claim = &wait->claim;
    struct model_claim plain = *claim;
    bool waits = false;
    uint32_t name;

    plain.tree = false;
    if (is_too_late(model, claim))
        return false;
    struct model_grant *own = find_own(model, claim, &name);
    if (own != NULL && !model_reenters(claim, own)) {
        if (!claim->is_set && model_reenters(&plain, own))
            refuse_tree(model, own);
        else
            refuse_mode(model, own, name);
        return false;
    }
    if (own == NULL && settle_new(model, wait, may_wait, &waits))
        return waits;
    own = model_take(model, claim);
    model_write_grant(model, model_reply(model, HOLD_OK), own, 0);
    return true;
}

static void lock(struct model *model, const struct hold_command *c)
{
    bool forever = (c->flags & HOLD_FOREVER) != 0;
    struct model_wait wait = {
        .claim = model_claim(model, c),
        .order = UINT64_MAX, /* behind all */
        .queued_us = model->now_us,
        .deadline_us = forever ? UINT64_MAX : model->now_us + c->wait_ms * 1000,
        .request = model_text(c->request),
    };

    if (!acquire(model, &wait, hold_may_wait(c)))
        model_claim_free(&wait.claim);
}

/* What is done with a grant. */

/* Those who waited for work that is done now leave before the grant ends. */
static void give_done(struct model *model, struct model_grant *grant,
                      const struct hold_command *c)
{
    static struct model_call calls[MODEL_MAX];
    uint32_t name = grant->claim.wants[0].name;

    model_give(model, grant, "done");
    size_t count = model->call_count;
    memcpy(calls, model->calls, count * sizeof calls[0]);
    model->call_count = 0;
    model_mark_done(model, name, c->done_ms, c->note);
    model_end_done(model, name);
    for (size_t i = 0; i < count; i++)
        model_call(model, calls[i].name, calls[i].turn);
}

static void unlock(struct model *model, struct model_grant *grant,
                   const struct hold_command *c)
{
    uint32_t name = grant->claim.wants[0].name;

    if (c->done_ms > 0 && grant->count > 1) {
        reply_field_number(refuse_name(model, HOLD_STATE, 2, name), FIELD_COUNT,
                           (int64_t)grant->count);
        model->figures[FIGURE_STATE_COUNT]++;
        return;
    }
    struct hf_buf *out = model_reply(model, HOLD_OK);
    reply_map(out, 1);
    reply_field_number(out, FIELD_REMAINING, (int64_t)grant->count - 1);
    if (c->done_ms > 0)
        give_done(model, grant, c);
    else
        model_give(model, grant, "released");
    model_serve(model);
}

static void write_safe(struct model *model, struct hf_buf *out,
                       const struct model_grant *grant)
{
    reply_field_number(
        out, FIELD_SAFE_MS,
        (int64_t)(model_left_us(model, grant, model->now_us) / 1000));
}

static void renew(struct model *model, struct model_grant *grant,
                  const struct hold_command *c)
{
    struct hf_buf *out = model_reply(model, HOLD_OK);

    model_grant_event(model, grant, 0, EVENT_LOCK_RENEWED, 0);
    model_set_end(model, grant, c->ttl_ms, false);
    reply_map(out, 1);
    write_safe(model, out, grant);
}

static void downgrade(struct model *model, struct model_grant *grant,
                      const struct hold_command *c)
{
    (void)c;
    struct model_want *want = &grant->claim.wants[0];

    if (want->mode == MODEL_COUNTING || grant->claim.key) {
        struct hf_buf *why = refuse_name(model, HOLD_STATE, 3, want->name);
        reply_field_text(why, FIELD_MODE,
                         hf_bytes_text(model_mode_name(want->mode)));
        reply_field_number(why, FIELD_TOKEN, (int64_t)grant->token);
        model->figures[FIGURE_STATE_MODE]++;
        return;
    }
    if (want->mode == MODEL_EXCLUSIVE) {
        want->mode = MODEL_SHARED;
        model_grant_event(model, grant, 0, EVENT_LOCK_DOWNGRADED, 0);
        want->fence = grant->token;
        model->figures[FIGURE_DOWNGRADED]++;
        model_call_related(model, want->name, false, grant->claim.tree);
    }
    struct hf_buf *out = model_reply(model, HOLD_OK);
    reply_map(out, 3);
    reply_field_number(out, FIELD_TOKEN, (int64_t)grant->token);
    write_safe(model, out, grant);
    reply_field_number(out, FIELD_FENCE, (int64_t)want->fence);
    model_serve(model);
}

static void revoke(struct model *model, struct model_grant *grant,
                   const struct hold_command *c)
{
    uint64_t end_us = model->now_us + c->grace_ms * 1000;

    model->figures[FIGURE_REVOKED]++;
    if (c->grace_ms == 0)
        model_end_grant(model, grant, EVENT_LOCK_LOST, "revoked", 0);
    else
        model_seal(model, grant, end_us, "revoked", hf_bytes("", 0));
    model_serve(model);
    model_reply(model, HOLD_OK);
}

static void proclaim(struct model *model, struct model_grant *grant,
                     const struct hold_command *c)
{
    grant->claim.note = model_text(c->note);
    model_grant_event(model, grant, 0, EVENT_LEADER_PROCLAIMED, 0);
    model_reply(model, HOLD_OK);
}

void model_abandon_grant(struct model *model, const struct hold_command *c)
{
    model_settle_lock(model, c->name);
    struct model_grant *grant =
        model_find_grant(model, model_name(model, c->name), c->token);
    if (grant != NULL)
        model_give(model, grant, "released");
}

void model_restart_locks(struct model *model)
{
    while (model->wait_count > 0)
        model_drop_wait(model, &model->waits[0], "gone");
    model->call_count = 0; /* nobody is left to be served */
    for (size_t i = 0; i < model->session_count; i++) {
        struct model_session *session = &model->sessions[i];
        if (session->expires_us == UINT64_MAX)
            session->expires_us = model->now_us + session->ttl_ms * 1000;
    }
}

/* What is done with one grant, and how it is refused without it. */
static const struct {
    void (*run)(struct model *model, struct model_grant *grant,
                const struct hold_command *c);
    enum hold_code missing;
    bool of_set;
    bool of_member;
} acts[HOLD_KINDS] = {
    [HOLD_UNLOCK] = {unlock, HOLD_NOTHELD, false, false},
    [HOLD_RENEW] = {renew, HOLD_LOST, false, false},
    [HOLD_DOWNGRADE] = {downgrade, HOLD_LOST, false, false},
    [HOLD_REVOKE] = {revoke, HOLD_NOTHELD, false, true},
    [HOLD_RESIGN] = {unlock, HOLD_NOTHELD, false, false},
    [HOLD_PROCLAIM] = {proclaim, HOLD_LOST, false, false},
    [HOLD_UNLOCKSET] = {unlock, HOLD_NOTHELD, true, true},
    [HOLD_RENEWSET] = {renew, HOLD_LOST, true, true},
};

static void grant_command(struct model *model, const struct hold_command *c)
{
    struct model_grant *grant = NULL;

    if (acts[c->kind].of_set)
        grant = model_find_set(model, c->token);
    else
        grant = model_find_grant(model, model_name(model, c->name), c->token);
    if (grant == NULL)
        refuse_token(model, acts[c->kind].missing, c);
    else if (grant->claim.is_set && !acts[c->kind].of_member)
        refuse_mode(model, grant, model_name(model, c->name));
    else
        acts[c->kind].run(model, grant, c);
}

void model_lock_command(struct model *model, const struct hold_command *c)
{
    if (c->kind == HOLD_FENCE)
        model_check_fence(model, c);
    else if (c->kind == HOLD_FENCE_DEL)
        model_delete_fence(model, c);
    else if (acts[c->kind].run != NULL)
        grant_command(model, c);
    else
        lock(model, c);
}

static void clear(struct model *model)
{
    for (size_t i = 0; i < model->grant_count; i++)
        model_claim_free(&model->grants[i].claim);
    for (size_t i = 0; i < model->wait_count; i++)
        model_claim_free(&model->waits[i].claim);
    model->grant_count = 0;
    model->wait_count = 0;
    model->mark_count = 0;
    model->name_count = 0;
    model->fence_count = 0;
}

MODEL_PART("lock", model_lock_command, clear);
