/* model_wait.c - waits end, and names are served. */
#include <assert.h>

#include "sim/engine/model_lock.h"

/* Places in a queue are counted up to here. */
#define POSITION_MAX 1000u

bool model_wait_is_over(const struct model *model,
                        const struct model_wait *wait, uint64_t now_us)
{
    return wait->deadline_us <= now_us ||
           model_session_is_over(model, wait->claim.session, now_us);
}

/* It leaves all its queues. */
static void remove_wait(struct model *model, struct model_wait *wait)
{
    struct model_claim claim = wait->claim;

    model_close_gap(model->waits, sizeof *wait, &model->wait_count,
                    (size_t)(wait - model->waits));
    for (size_t i = 0; i < claim.want_count; i++)
        model_call_related(model, claim.wants[i].name, false, claim.tree);
}

/* The answer of `wait` is written: stores it under its REQ, and it goes. */
static void finish(struct model *model, struct model_wait *wait)
{
    struct model_claim claim = wait->claim;

    if (wait->request.len > 0)
        model_store_answer(model, model_bytes(&wait->request));
    remove_wait(model, wait);
    model_claim_free(&claim);
    model_part_ended(model, claim.session);
}

void model_end_wait(struct model *model, struct model_wait *wait,
                    enum hold_code code)
{
    struct hf_buf *out = model_answer(model, code, wait->ticket);
    uint32_t name = wait->claim.wants[0].name;
    size_t before = model_count_before(model, wait, name);
    bool lost = code == HOLD_LOST;

    model_past_all(model, lost ? "wait_lost" : "timeout", lost ? "session" : "",
                   &wait->claim);
    if (lost) {
        reply_map(out, 1);
        reply_field_number(out, FIELD_SESSION, (int64_t)wait->claim.session);
        model->figures[FIGURE_WAIT_LOST]++;
    } else {
        assert(code == HOLD_TIMED_OUT);
        reply_map(out, 3);
        reply_field_number(out, FIELD_WAITED_MS,
                           (int64_t)((model->now_us - wait->queued_us) / 1000));
        reply_field_number(out, FIELD_WAITING,
                           (int64_t)model_waiting(model, name) - 1);
        reply_field_number(out, FIELD_POSITION,
                           before < POSITION_MAX ? (int64_t)before + 1
                                                 : POSITION_MAX);
        model->figures[FIGURE_TIMEOUT]++;
    }
    finish(model, wait);
}

void model_write_done(struct model *model, struct hf_buf *out, uint32_t name)
{
    uint64_t left_us = 0;

    model_is_done(model, name, &left_us);
    reply_map(out, 3);
    reply_field_text(out, FIELD_NAME, model_name_bytes(model, name));
    reply_field_text(out, FIELD_RESULT,
                     model_bytes(&model_find_mark(model, name)->result));
    reply_field_number(out, FIELD_EXPIRES_MS, (int64_t)(left_us / 1000));
}

/* The wait with that `order`, or NULL. */
static struct model_wait *find_wait(struct model *model, uint64_t order)
{
    for (size_t i = 0; i < model->wait_count; i++) {
        if (model->waits[i].order == order)
            return &model->waits[i];
    }
    return NULL;
}

/* The queue of a name, by `order`, since waits move in their array. */
static size_t list_queue(const struct model *model, uint32_t name,
                         uint64_t *out)
{
    const struct model_wait *queue[MODEL_MAX];
    size_t count = model_queue(model, name, queue);

    for (size_t i = 0; i < count; i++)
        out[i] = queue[i]->order;
    return count;
}

void model_end_done(struct model *model, uint32_t name)
{
    uint64_t queue[MODEL_MAX];
    size_t count = list_queue(model, name, queue);

    for (size_t i = 0; i < count; i++) {
        struct model_wait *wait = find_wait(model, queue[i]);
        model_write_done(model, model_answer(model, HOLD_DONE, wait->ticket),
                         name);
        model->figures[FIGURE_DONE_WAITS]++;
        model_drop_wait(model, wait, "done"); /* asked again, the same */
    }
}

void model_drop_wait(struct model *model, struct model_wait *wait,
                     const char *why)
{
    struct model_claim claim = wait->claim;
    struct model_request *request =
        model_find_request(model, model_bytes(&wait->request));

    model_past_all(model, "left", why, &claim);
    if (request != NULL && wait->request.len > 0)
        model_forget_request(model, request);
    remove_wait(model, wait);
    model_claim_free(&claim);
    model_part_ended(model, claim.session);
}

void model_wait_due(struct model *model, void *wait)
{
    model_end_wait(model, wait, HOLD_TIMED_OUT);
    model_serve(model);
}

/* Serving: the names that are called, first in, first out. */

void model_call(struct model *model, uint32_t name, bool turn)
{
    for (size_t i = 0; i < model->call_count; i++) {
        if (model->calls[i].name == name) {
            model->calls[i].turn |= turn;
            return;
        }
    }
    assert(model->call_count < MODEL_MAX);
    model->calls[model->call_count++] = (struct model_call){name, turn};
}

/* Has the name as many holders as it may have? */
static bool is_full(const struct model *model, uint32_t name)
{
    uint64_t holders = 0;

    for (size_t i = 0; i < model->grant_count; i++)
        holders += model_want_of(&model->grants[i].claim, name) != NULL;
    return holders > 0 && holders >= model->bounds.holders_max;
}

/* Is it ready, those before it in the queue of `turn` left out? */
static bool is_ready(struct model *model, const struct model_wait *wait,
                     uint32_t turn)
{
    uint32_t place;

    if (model_wait_is_over(model, wait, model->now_us))
        return false;
    bool reentry = model_find_reentry(model, &wait->claim) != NULL;
    for (size_t i = 0; i < wait->claim.want_count; i++) {
        const struct model_want *want = &wait->claim.wants[i];
        if (!model_is_free(model, wait, want, want->name != turn, true,
                           &place) ||
            (!reentry && is_full(model, want->name)))
            return false;
    }
    return true;
}

bool model_find_ready(struct model *model)
{
    for (size_t i = 0; i < model->wait_count; i++) {
        if (is_ready(model, &model->waits[i], UINT32_MAX))
            return true;
    }
    return false;
}

/* Its other names are called; the one that is served is under way. */
static void grant(struct model *model, struct model_wait *wait, uint32_t name)
{
    struct model_claim claim = wait->claim;
    uint64_t waited_us = model->now_us - wait->queued_us;
    struct model_grant *grant = model_find_reentry(model, &claim);
    struct hf_buf *out = model_answer(model, HOLD_OK, wait->ticket);

    if (grant != NULL)
        model->figures[FIGURE_REENTRY_QUEUED]++;
    else
        model->figures[claim.is_set ? FIGURE_QUEUED_SET : FIGURE_QUEUED]++;
    model->figures[FIGURE_TREE_QUEUED] += claim.tree;
    for (size_t i = 0; i < claim.want_count; i++) {
        if (claim.wants[i].name != name)
            model_call(model, claim.wants[i].name, false);
    }
    grant = model_take(model, &claim);
    model_write_grant(model, out, grant, waited_us);
    if (wait->request.len > 0)
        model_store_answer(model, model_bytes(&wait->request));
    model_close_gap(model->waits, sizeof *wait, &model->wait_count,
                    (size_t)(wait - model->waits));
}

static enum model_mode mode_of(const struct model_wait *wait, uint32_t name)
{
    return model_want_of(&wait->claim, name)->mode;
}

/* Readers who waited go before the first writer, unless it waits by age. */
static void serve_readers(struct model *model, uint32_t name)
{
    uint64_t queue[MODEL_MAX];
    size_t count = list_queue(model, name, queue);
    uint64_t readers = 0;
    size_t first = 0;

    while (first < count &&
           mode_of(find_wait(model, queue[first]), name) == MODEL_SHARED)
        first++;
    if (first == count)
        return;
    uint32_t rank = model_rank(find_wait(model, queue[first]));
    for (size_t i = 0; i < count; i++) {
        struct model_wait *wait = find_wait(model, queue[i]);
        enum hold_policy policy = wait->claim.policy;
        bool reader = mode_of(wait, name) == MODEL_SHARED;
        bool by_age = policy == POLICY_WAITDIE || policy == POLICY_WOUNDWAIT;
        if (!reader && by_age)
            break; /* nobody passes it */
        if (!reader || model_rank(wait) > rank || !is_ready(model, wait, name))
            continue;
        grant(model, wait, name);
        readers++;
    }
    model->figures[FIGURE_TURN] += readers > 0;
    model->figures[FIGURE_TURN_READERS] += readers;
}

static void serve_name(struct model *model, struct model_call call)
{
    uint64_t queue[MODEL_MAX];
    bool readers_only = false;

    if (model_is_closed(model, call.name))
        return;
    if (call.turn && model_count_grants(model, call.name) == 0)
        serve_readers(model, call.name);
    size_t count = list_queue(model, call.name, queue);
    for (size_t i = 0; i < count; i++) {
        struct model_wait *wait = find_wait(model, queue[i]);
        bool shared = mode_of(wait, call.name) == MODEL_SHARED;
        if (readers_only && !shared)
            return;
        if (is_ready(model, wait, UINT32_MAX)) {
            model->figures[FIGURE_SHARED_PASSED] += readers_only;
            grant(model, wait, call.name);
            continue;
        }
        if (!shared)
            return;
        readers_only = true;
    }
}

void model_serve(struct model *model)
{
    while (model->call_count > 0 && !model->grouping) {
        struct model_call call = model->calls[0];
        model_close_gap(model->calls, sizeof call, &model->call_count, 0);
        serve_name(model, call);
    }
}

/* Settling. */

static bool is_over(struct model *model, uint32_t name, uint64_t now_us)
{
    const struct model_mark *mark = model_find_mark(model, name);

    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_grant *grant = &model->grants[i];
        if (model_want_of(&grant->claim, name) != NULL &&
            model_grant_is_over(model, grant, now_us))
            return true;
    }
    for (size_t i = 0; i < model->wait_count; i++) {
        const struct model_wait *wait = &model->waits[i];
        if (model_want_of(&wait->claim, name) != NULL &&
            model_wait_is_over(model, wait, now_us))
            return true;
    }
    return mark != NULL && model_mark_end_us(mark) <= now_us;
}

bool model_name_is_over(struct model *model, struct hf_bytes name,
                        uint64_t now_us)
{
    return is_over(model, model_name(model, name), now_us);
}

void model_settle_lock(struct model *model, struct hf_bytes name_bytes)
{
    uint32_t name = model_name(model, name_bytes);
    uint64_t queue[MODEL_MAX];

    if (!model_is_behind(model, model->now_us))
        return;
    model->figures[FIGURE_SETTLED] += is_over(model, name, model->now_us);
    for (size_t i = 0; i < model->grant_count;) {
        struct model_grant *grant = &model->grants[i];
        if (model_want_of(&grant->claim, name) != NULL &&
            model_grant_is_over(model, grant, model->now_us)) {
            model_end_over(model, grant);
        } else {
            i++;
        }
    }
    size_t count = list_queue(model, name, queue);
    for (size_t i = 0; i < count; i++) {
        struct model_wait *wait = find_wait(model, queue[i]);
        if (model_wait_is_over(model, wait, model->now_us))
            model_end_wait(model, wait,
                           wait->deadline_us <= model->now_us ? HOLD_TIMED_OUT
                                                              : HOLD_LOST);
    }
    struct model_mark *mark = model_find_mark(model, name);
    if (mark != NULL)
        model_clear_mark(model, mark);
    model_call(model, name, false);
    model_serve(model);
}
