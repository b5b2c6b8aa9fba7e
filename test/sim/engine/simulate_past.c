/* simulate_past.c - is what EXPLAIN tells what the model has noted?
 *
 * The engine may have noted more: before it was replaced, and refusals that it
 * told without the journal. So deadlocks are left out, whose answers are
 * compared; and of the others the newest are compared, as far back as the model
 * goes.
 */
#include "sim/engine/simulate_parts.h"

#define SHOWN_MAX 32u

static struct hf_bytes write_past(const struct model *model,
                                  const struct model_past *entry)
{
    static char space[1024];
    struct hf_buf out = {space, 0, sizeof space};
    uint64_t age_us = model->now_us - entry->now_us;
    const char *mode = model_mode_name(entry->mode);

    reply_map(&out, 9);
    reply_field_text(&out, FIELD_WHAT, hf_bytes_text(entry->what));
    reply_field_number(&out, FIELD_SEQ, (int64_t)entry->seq);
    reply_field_number(&out, FIELD_AGE_MS, (int64_t)(age_us / 1000));
    reply_field_text(&out, FIELD_OWNER,
                     hf_bytes(entry->owner, entry->owner_len));
    reply_field_number(&out, FIELD_TOKEN, (int64_t)entry->token);
    reply_field_text(&out, FIELD_MODE, hf_bytes_text(mode));
    reply_field_number(&out, FIELD_TREE, entry->tree);
    reply_field_text(&out, FIELD_WHY, hf_bytes_text(entry->why));
    reply_field_text(&out, FIELD_BY, hf_bytes(entry->by, entry->by_len));
    return hf_buf_bytes(&out);
}

static bool is_deadlock(struct hf_bytes entry)
{
    return hf_bytes_equal(reply_get_text(entry, FIELD_WHAT),
                          hf_bytes_text("deadlock"));
}

void sim_compare_past(struct sim *sim)
{
    const struct model *model = sim->model;
    static struct hold_command ask;
    size_t at = 0;

    if (model->past_count == 0)
        return;
    uint32_t name = model->past[sim_below(sim, model->past_count)].name;
    ask.kind = HOLD_EXPLAIN;
    ask.now_us = model->now_us;
    ask.name = model_name_bytes(model, name);
    const struct hold_out *out = hold_ask(sim->engine, &ask);
    if (out == NULL)
        return; /* too early */
    uint32_t shown = reply_next(out->body, &at).count;
    uint32_t left = shown;
    for (size_t i = model->past_count; i-- > 0;) {
        struct hf_bytes found = {NULL, 0};
        if (model->past[i].name != name)
            continue;
        while (found.len == 0 && left-- > 0) {
            size_t start = at;
            reply_skip(out->body, &at);
            found = hf_bytes(out->body.data + start, at - start);
            found.len = is_deadlock(found) ? 0 : found.len;
        }
        if (found.len == 0 && shown == SHOWN_MAX)
            return;
        struct hf_bytes expected = write_past(model, &model->past[i]);
        if (found.len == 0)
            sim_fail(sim, "explain", "found: %u entries, not so many", shown);
        else if (!hf_bytes_equal(expected, found))
            sim_fail_reply(sim, "explain", HOLD_OK, expected, HOLD_OK, found);
        if (sim->failed)
            return;
        sim->past++;
    }
}

void sim_lose_past(struct sim *sim)
{
    struct model *model = sim->model;

    model->past_count = 0;
    for (size_t i = 0; i < model->grant_count; i++) {
        struct model_grant *grant = &model->grants[i];
        if (grant->sealed && grant->sealed_at <= sim->saved_seq)
            grant->seal = "";
    }
}
