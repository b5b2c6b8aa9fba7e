/* model_fence.c - fences in the model. */
#include <assert.h>

#include "sim/engine/model_lock.h"

static struct model_fence *find_fence(struct model *model, struct hf_bytes name)
{
    for (size_t i = 0; i < model->fence_count; i++) {
        if (model_is(&model->fences[i].name, name))
            return &model->fences[i];
    }
    return NULL;
}

void model_check_fence(struct model *model, const struct hold_command *c)
{
    struct model_fence *fence = find_fence(model, c->name);
    uint64_t newest = fence == NULL ? 0 : fence->newest;

    if (c->token > model->seq) {
        struct hf_buf *out = model_reply(model, HOLD_BADARG);
        reply_map(out, 2);
        reply_field_number(out, FIELD_TOKEN, (int64_t)c->token);
        reply_field_number(out, FIELD_NEWEST, (int64_t)model->seq);
        return;
    }
    if (c->token < newest) {
        struct hf_buf *out = model_reply(model, HOLD_STALE);
        reply_map(out, 3);
        reply_field_text(out, FIELD_NAME, c->name);
        reply_field_number(out, FIELD_TOKEN, (int64_t)c->token);
        reply_field_number(out, FIELD_NEWEST, (int64_t)newest);
        return;
    }
    model_reply(model, HOLD_OK);
    if (c->token == newest)
        return;
    if (fence == NULL && model->fence_count >= model->bounds.fences_max) {
        model_overloaded(model, "fences-max", model->bounds.fences_max);
        return;
    }
    if (fence == NULL) {
        assert(model->fence_count < MODEL_MAX);
        fence = &model->fences[model->fence_count++];
        fence->name = model_text(c->name);
    }
    fence->newest = c->token;
    model_event(model, EVENT_FENCE_RAISED, c->name, 0);
    model->events[model->event_count - 1].token = c->token;
}

void model_delete_fence(struct model *model, const struct hold_command *c)
{
    struct model_fence *fence = find_fence(model, c->name);

    if (fence == NULL) {
        struct hf_buf *out = model_reply(model, HOLD_NOTFOUND);
        reply_map(out, 1);
        reply_field_text(out, FIELD_RESOURCE, c->name);
        return;
    }
    model_close_gap(model->fences, sizeof *fence, &model->fence_count,
                    (size_t)(fence - model->fences));
    model_event(model, EVENT_FENCE_DELETED, c->name, 0);
    model_reply(model, HOLD_OK);
}
