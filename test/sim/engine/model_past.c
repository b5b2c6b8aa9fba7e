/* model_past.c - what happened to locks of late, in the model. */
#include "sim/engine/model_lock.h"

static size_t keep(char *to, struct hf_bytes text)
{
    size_t len = text.len < MODEL_PAST_OWNER ? text.len : MODEL_PAST_OWNER;

    memcpy(to, text.data, len);
    return len;
}

void model_past(struct model *model, const char *what,
                const struct model_claim *claim, const struct model_want *want,
                uint64_t token)
{
    if (model->past_count == MODEL_PAST) { /* the older half goes */
        model->past_count = MODEL_PAST / 2;
        memcpy(model->past, &model->past[MODEL_PAST / 2],
               MODEL_PAST / 2 * sizeof model->past[0]);
    }
    struct model_past *entry = &model->past[model->past_count++];
    *entry = (struct model_past){.seq = model->seq,
                                 .now_us = model->now_us,
                                 .token = token,
                                 .what = what,
                                 .why = "",
                                 .name = want->name,
                                 .mode = want->mode,
                                 .tree = claim->tree};
    entry->owner_len = keep(entry->owner, model_bytes(&claim->owner));
}

void model_past_why(struct model *model, const char *why, struct hf_bytes by)
{
    struct model_past *entry = &model->past[model->past_count - 1];

    entry->why = why;
    entry->by_len = keep(entry->by, by);
}

void model_past_all(struct model *model, const char *what, const char *why,
                    const struct model_claim *claim)
{
    for (size_t i = 0; i < claim->want_count; i++) {
        model_past(model, what, claim, &claim->wants[i], 0);
        model_past_why(model, why, hf_bytes("", 0));
    }
}
