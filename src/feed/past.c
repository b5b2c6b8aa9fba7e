/* past.c - forward and backward through what events changed. */
#include "feed/past.h"

void past_init(struct past *past, struct hf_bytes sku, uint64_t at)
{
    /* before the first number there was nothing */
    *past =
        (struct past){.sku = sku, .at = at, .known = true, .total_known = true};
}

void past_gap(struct past *past, uint64_t from, uint64_t to)
{
    if (from < past->at) {
        past->known = false;
        past->total_known = false;
        past->then = (struct hold_numbers){.exists = false};
    }
    past->broken = past->broken || to > past->at;
    past->backward_from = to;
    past->total_from = 0;
}

/* An event up to `at`. */
static void go_forward(struct past *past, const struct hold_change *change)
{
    struct hold_numbers *then = &past->then;

    switch (change->effect) {
    case EFFECT_GONE:
        past->known = past->total_known = true;
        *then = (struct hold_numbers){.exists = false};
        break;
    case EFFECT_TOTAL:
        past->total_known = true;
        then->exists = true;
        then->total = change->total;
        if (change->committed == 0) {
            past->known = true;
            then->reserved = then->sold = 0;
        }
        break;
    default:
        then->reserved += (uint64_t)change->reserved;
        then->sold += (uint64_t)change->sold;
        break;
    }
}

/* An event behind it. */
static void go_on(struct past *past, const struct hold_change *change,
                  uint64_t seq)
{
    bool whole = change->effect == EFFECT_GONE ||
                 (change->effect == EFFECT_TOTAL && change->committed == 0);

    past->changed = true;
    past->reserved += change->reserved;
    past->sold += change->sold;
    if (whole && past->forward_from == 0)
        past->forward_from = seq;
    if (change->effect == EFFECT_TOTAL)
        past->total_changed = true;
    if (change->effect == EFFECT_GONE)
        past->broken = true;
}

void past_event(struct past *past, const struct hold_event *event,
                uint64_t now_us)
{
    struct hold_change change = hold_event_change(event, past->sku);

    if (change.effect == EFFECT_NONE)
        return;
    if (event->seq <= past->at) {
        go_forward(past, &change);
        past->then.version = event->seq;
        past->then.updated_us = now_us;
    } else {
        go_on(past, &change, event->seq);
    }
    if (change.effect == EFFECT_GONE) {
        past->backward_from = event->seq;
        past->total_from = 0;
    } else if (change.effect == EFFECT_TOTAL && past->total_from == 0) {
        past->total_from = event->seq;
    }
}

enum hf_status past_numbers(const struct past *past,
                            const struct hold_numbers *now,
                            struct hold_numbers *out)
{
    *out = past->then;
    if (past->known)
        return HF_OK;
    if (past->broken)
        return HF_NOTFOUND;
    if (!now->exists) { /* nothing made or deleted it since */
        *out = (struct hold_numbers){.exists = false};
        return HF_OK;
    }
    if (!past->total_known && past->total_changed)
        return HF_NOTFOUND;
    out->exists = true;
    if (!past->total_known)
        out->total = now->total;
    out->reserved = now->reserved - (uint64_t)past->reserved;
    out->sold = now->sold - (uint64_t)past->sold;
    if (!past->changed) {
        out->version = now->version;
        out->updated_us = now->updated_us;
    }
    return HF_OK;
}

uint64_t past_known_from(const struct past *past)
{
    uint64_t backward =
        past->total_from != 0 ? past->total_from : past->backward_from;

    return past->forward_from != 0 && past->forward_from < backward
               ? past->forward_from
               : backward;
}
