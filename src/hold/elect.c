/* elect.c - elections: an exclusive lock whose holder shows a value. */
#include "hold/part.h"

void proclaim_need(struct hold_engine *e, const struct hold_command *c,
                   struct need *need)
{
    need_item(need, &e->terms);
    need_text(e, need, c->note.len);
}

void lock_proclaim(struct hold_engine *e, const struct hold_command *c,
                   struct target at)
{
    struct part *part = part_edit(e, grant_find(e, at.number, c->token));

    emit_lock(e, EVENT_LEADER_PROCLAIMED, part, part->token, 0);
    if (e->tells)
        told(e)->note = tell_text(e, c->note);
    if (part->claim.terms == 0) {
        part->claim.terms = claim_terms(e, c);
        return;
    }
    struct terms *terms = terms_edit(e, part->claim.terms);
    hf_texts_drop(&e->texts, terms->note);
    keep_text(e, c->note, &terms->note);
}

void lock_leader(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->locks, c->name);
    struct hf_buf *body = &e->body;

    if (number == 0 || lock_at(e, number)->granted == 0) {
        reply_field_text(refuse(e, HOLD_NOTFOUND, 1), FIELD_NAME, c->name);
        return;
    }
    const struct lock *lock = lock_at(e, number);
    const struct part *grant = part_at(e, lock->grants.first);
    const struct claim *claim = part_claim(e, grant);
    struct hf_bytes value = hf_bytes("", 0);
    if (claim->terms != 0)
        value = hf_text_bytes(&e->texts, terms_at(e, claim->terms)->note);
    reply_map(body, 7);
    reply_field_text(body, FIELD_NAME, c->name);
    reply_field_text(body, FIELD_OWNER, part_owner(e, grant));
    reply_field_number(body, FIELD_TOKEN, (int64_t)part_token(e, grant));
    reply_field_text(body, FIELD_VALUE, value);
    reply_field_number(body, FIELD_EXPIRES_MS, grant_safe_ms(e, grant));
    reply_field_number(
        body, FIELD_HELD_MS,
        (int64_t)((e->now_us - part_acquired_us(e, grant)) / US_PER_MS));
    reply_field_number(body, FIELD_WAITING, lock->waiting);
}
