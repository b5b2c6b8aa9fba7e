/* model_grant.c - grants begin and end; delays and done marks. */
#include <assert.h>

#include "sim/engine/model_lock.h"

bool model_grant_is_over(const struct model *model,
                         const struct model_grant *grant, uint64_t now_us)
{
    return grant->expires_us <= now_us ||
           model_session_is_over(model, grant->claim.session, now_us);
}

uint64_t model_left_us(const struct model *model,
                       const struct model_grant *grant, uint64_t now_us)
{
    const struct model_session *session =
        model_find_session(model, grant->claim.session);
    uint64_t left_us = HOLD_TTL_MAX_MS * 1000;

    if (grant->expires_us != UINT64_MAX)
        left_us = grant->expires_us - now_us;
    if (session != NULL && model_session_left_us(session, now_us) < left_us)
        left_us = model_session_left_us(session, now_us);
    return left_us;
}

struct model_grant *model_find_grant(struct model *model, uint32_t name,
                                     uint64_t token)
{
    for (size_t i = 0; i < model->grant_count; i++) {
        struct model_grant *grant = &model->grants[i];
        if (grant->token == token && model_want_of(&grant->claim, name) != NULL)
            return grant;
    }
    return NULL;
}

struct model_grant *model_find_set(struct model *model, uint64_t token)
{
    for (size_t i = 0; i < model->grant_count; i++) {
        struct model_grant *grant = &model->grants[i];
        if (grant->token == token && grant->claim.is_set)
            return grant;
    }
    return NULL;
}

void model_set_end(struct model *model, struct model_grant *grant,
                   uint64_t ttl_ms, bool later)
{
    uint64_t end_us = ttl_ms == 0 ? UINT64_MAX : model->now_us + ttl_ms * 1000;
    uint64_t cap_us = grant->acquired_us + grant->claim.maxhold_ms * 1000;

    if (later && end_us < grant->expires_us)
        return;
    if (grant->sealed && end_us > grant->expires_us) {
        model->figures[FIGURE_SEALED]++;
        return;
    }
    if (grant->claim.maxhold_ms > 0 && end_us > cap_us) {
        end_us = cap_us;
        model->figures[FIGURE_MAXHOLD]++;
    }
    grant->expires_us = end_us;
}

uint64_t model_grant_event(struct model *model, const struct model_grant *grant,
                           size_t want, enum hold_event_kind kind,
                           uint64_t lag_us)
{
    const struct model_want *on = &grant->claim.wants[want];
    uint64_t seq =
        model_event(model, kind, model_name_bytes(model, on->name), lag_us);

    model->events[model->event_count - 1].token = grant->token;
    model->events[model->event_count - 1].mode = on->mode;
    struct model_facts facts = {.owner = model_bytes(&grant->claim.owner)};
    if (kind == EVENT_LOCK_GRANTED || kind == EVENT_LEADER_PROCLAIMED)
        facts.note = model_bytes(&grant->claim.note);
    model_tell(model, &facts);
    model_past(model, hold_event_name(kind), &grant->claim, on, grant->token);
    return seq;
}

/* The fence of the readers that hold a name, or 0. */
static uint64_t fence_of(const struct model *model, uint32_t name)
{
    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_want *held =
            model_want_of(&model->grants[i].claim, name);
        if (held != NULL && held->mode == MODEL_SHARED)
            return held->fence;
    }
    return 0;
}

static void reenter(struct model *model, struct model_grant *grant,
                    uint64_t ttl_ms)
{
    model_grant_event(model, grant, 0, EVENT_LOCK_REENTERED, 0);
    grant->count++;
    model_set_end(model, grant, ttl_ms, true);
    model->figures[grant->claim.is_set ? FIGURE_REENTRY_SET : FIGURE_REENTRY]++;
}

struct model_grant *model_take(struct model *model, struct model_claim *claim)
{
    static const enum model_figure figures[] = {FIGURE_EXCLUSIVE, FIGURE_SHARED,
                                                FIGURE_COUNTING};
    struct model_grant *grant = model_find_reentry(model, claim);
    struct model_grant new = {
        .claim = *claim, .count = 1, .acquired_us = model->now_us};

    if (grant != NULL) {
        model->figures[FIGURE_TREE_REENTRY] +=
            grant->claim.tree && !claim->tree;
        reenter(model, grant, claim->ttl_ms);
        model_claim_free(claim);
        return grant;
    }
    for (size_t i = 0; i < claim->want_count; i++) {
        struct model_want *want = &new.claim.wants[i];
        if (i == 0)
            new.token = model->seq + 1;
        model_grant_event(model, &new, i, EVENT_LOCK_GRANTED, 0);
        want->fence = fence_of(model, want->name);
        if (want->fence == 0)
            want->fence = new.token;
    }
    model_set_end(model, &new, claim->ttl_ms, false);
    model
        ->figures[claim->is_set ? FIGURE_SET : figures[claim->wants[0].mode]]++;
    if (claim->tree)
        model->figures[claim->is_set ? FIGURE_TREE_SET
                       : claim->wants[0].mode == MODEL_SHARED
                           ? FIGURE_TREE_SHARED
                           : FIGURE_TREE]++;
    assert(model->grant_count < MODEL_MAX);
    model->grants[model->grant_count] = new;
    return &model->grants[model->grant_count++];
}

void model_write_grant(struct model *model, struct hf_buf *out,
                       const struct model_grant *grant, uint64_t waited_us)
{
    const struct model_want *want = &grant->claim.wants[0];
    bool fence = !grant->claim.is_set && want->mode == MODEL_SHARED;
    uint64_t left_us = model_left_us(model, grant, model->now_us);

    reply_map(out, fence ? 5 : 4);
    reply_field_number(out, FIELD_TOKEN, (int64_t)grant->token);
    reply_field_number(out, FIELD_SAFE_MS, (int64_t)(left_us / 1000));
    reply_field_number(out, FIELD_COUNT, (int64_t)grant->count);
    reply_field_number(out, FIELD_WAITED_MS, (int64_t)(waited_us / 1000));
    if (fence)
        reply_field_number(out, FIELD_FENCE, (int64_t)want->fence);
}

struct model_mark *model_find_mark(struct model *model, uint32_t name)
{
    for (size_t i = 0; i < model->mark_count; i++) {
        if (model->marks[i].name == name)
            return &model->marks[i];
    }
    return NULL;
}

static struct model_mark *make_mark(struct model *model, uint32_t name)
{
    struct model_mark *mark = model_find_mark(model, name);

    if (mark != NULL)
        return mark;
    assert(model->mark_count < MODEL_MAX);
    mark = &model->marks[model->mark_count++];
    *mark = (struct model_mark){.name = name, .seq = ++model->seq};
    return mark;
}

static void close_name(struct model *model, uint32_t name, uint64_t delay_ms,
                       bool tree)
{
    struct model_mark *mark = make_mark(model, name);
    uint64_t end_us = model->now_us + delay_ms * 1000;

    if (end_us > mark->delay_us)
        mark->delay_us = end_us;
    if (tree && end_us > mark->tree_us)
        mark->tree_us = end_us;
    model->figures[tree ? FIGURE_TREE_CLOSED : FIGURE_CLOSED]++;
}

void model_mark_done(struct model *model, uint32_t name, uint64_t ms,
                     struct hf_bytes result)
{
    struct model_mark *mark = make_mark(model, name);

    mark->done_us = model->now_us + ms * 1000;
    mark->result = model_text(result);
    model->figures[FIGURE_DONE]++;
}

bool model_is_closed(const struct model *model, uint32_t name)
{
    return model_closed_until(model, name, name) > model->now_us;
}

bool model_is_done(const struct model *model, uint32_t name, uint64_t *left_us)
{
    struct model_mark *mark = model_find_mark((struct model *)model, name);

    if (mark == NULL || mark->done_us <= model->now_us)
        return false;
    *left_us = mark->done_us - model->now_us;
    return true;
}

uint64_t model_mark_end_us(const struct model_mark *mark)
{
    uint64_t end_us = UINT64_MAX;

    if (mark->delay_us != 0)
        end_us = mark->delay_us;
    if (mark->tree_us != 0 && mark->tree_us < end_us)
        end_us = mark->tree_us;
    if (mark->done_us != 0 && mark->done_us < end_us)
        end_us = mark->done_us;
    return end_us;
}

void model_clear_mark(struct model *model, struct model_mark *mark)
{
    uint32_t name = mark->name;
    bool opened = mark->delay_us != 0 && mark->delay_us <= model->now_us;
    bool tree = mark->tree_us != 0 && mark->tree_us <= model->now_us;

    if (mark->tree_us <= model->now_us)
        mark->tree_us = 0;
    if (mark->delay_us <= model->now_us)
        mark->delay_us = 0;
    if (mark->done_us <= model->now_us)
        mark->done_us = 0;
    if (mark->delay_us == 0 && mark->done_us == 0)
        model_close_gap(model->marks, sizeof *mark, &model->mark_count,
                        (size_t)(mark - model->marks));
    if (!opened && !tree)
        return;
    model->figures[FIGURE_OPENED] += model_waiting(model, name) > 0;
    model_call_related(model, name, false, tree);
}

void model_mark_due(struct model *model, void *thing)
{
    model_clear_mark(model, thing);
    model_serve(model);
}

static void remove_grant(struct model *model, struct model_grant *grant)
{
    model_close_gap(model->grants, sizeof *grant, &model->grant_count,
                    (size_t)(grant - model->grants));
}

void model_end_grant(struct model *model, struct model_grant *grant,
                     enum hold_event_kind kind, const char *why,
                     uint64_t lag_us)
{
    struct model_grant ended = *grant;

    remove_grant(model, grant);
    for (size_t i = 0; i < ended.claim.want_count; i++) {
        const struct model_want *want = &ended.claim.wants[i];
        model_grant_event(model, &ended, i, kind, lag_us);
        model_past_why(model, why, hf_bytes("", 0));
        model_age(model, ended.acquired_us);
        if (kind != EVENT_LOCK_RELEASED && ended.claim.delay_ms > 0)
            close_name(model, want->name, ended.claim.delay_ms,
                       ended.claim.tree);
        model_call_related(model, want->name,
                           want->mode != MODEL_SHARED &&
                               model_count_grants(model, want->name) == 0,
                           ended.claim.tree);
    }
    model->steps += (unsigned)ended.claim.want_count - 1;
    model_claim_free(&ended.claim);
    model_part_ended(model, ended.claim.session);
}

/* Why its own time is over. */
static const char *expiry_why(const struct model_grant *grant)
{
    uint64_t most_us = grant->claim.maxhold_ms * 1000;

    if (grant->sealed && grant->seal[0] != '\0')
        return grant->seal;
    return most_us > 0 && grant->expires_us - grant->acquired_us >= most_us
               ? "maxhold"
               : "ttl";
}

void model_end_over(struct model *model, struct model_grant *grant)
{
    if (grant->expires_us <= model->now_us) {
        model->figures[grant->claim.is_set ? FIGURE_EXPIRED_SET
                                           : FIGURE_EXPIRED]++;
        model_end_grant(model, grant, EVENT_LOCK_EXPIRED, expiry_why(grant),
                        model->now_us - grant->expires_us);
        return;
    }
    model->figures[FIGURE_LOST]++;
    model_end_grant(
        model, grant, EVENT_LOCK_LOST, "session",
        model->now_us -
            model_find_session(model, grant->claim.session)->expires_us);
}

void model_give(struct model *model, struct model_grant *grant, const char *why)
{
    if (--grant->count == 0) {
        model_end_grant(model, grant, EVENT_LOCK_RELEASED, why, 0);
        return;
    }
    model_grant_event(model, grant, 0, EVENT_LOCK_RELEASED, 0);
    model_past_why(model, "still_held", hf_bytes("", 0));
}

void model_grant_due(struct model *model, void *grant)
{
    model_end_over(model, grant);
    model_serve(model);
}

void model_seal(struct model *model, struct model_grant *grant, uint64_t end_us,
                const char *why, struct hf_bytes by)
{
    bool sooner = end_us < grant->expires_us;

    model_grant_event(model, grant, 0, EVENT_LOCK_WOUNDED, 0);
    model_past_why(model, why, by);
    if (sooner || !grant->sealed) {
        grant->seal = why;
        grant->sealed_at = model->seq;
    }
    grant->sealed = true;
    if (sooner)
        grant->expires_us = end_us;
}

bool model_is_in_use(struct model *model, uint32_t name)
{
    return model_count_grants(model, name) > 0 ||
           model_waiting(model, name) > 0 ||
           model_find_mark(model, name) != NULL;
}

static size_t count_names(const struct model *model, bool all)
{
    static bool used[MODEL_MAX];
    size_t count = 0;

    memset(used, 0, sizeof used);
    for (size_t i = 0; i < model->grant_count; i++) {
        for (size_t j = 0; j < model->grants[i].claim.want_count; j++)
            used[model->grants[i].claim.wants[j].name] = true;
    }
    for (size_t i = 0; i < model->wait_count && all; i++) {
        for (size_t j = 0; j < model->waits[i].claim.want_count; j++)
            used[model->waits[i].claim.wants[j].name] = true;
    }
    for (size_t i = 0; i < model->mark_count && all; i++)
        used[model->marks[i].name] = true;
    for (size_t i = 0; i < model->name_count; i++)
        count += used[i];
    return count;
}

size_t model_names_in_use(const struct model *model)
{
    return count_names(model, true);
}

size_t model_names_held(const struct model *model)
{
    return count_names(model, false);
}
