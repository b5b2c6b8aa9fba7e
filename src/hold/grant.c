/* grant.c - grants: how they begin, go on and end. */
#include "hold/tree.h"

uint32_t claim_terms(struct hold_engine *e, const struct hold_command *c)
{
    if (!has_terms(c))
        return 0;
    uint32_t number = hf_slab_take(&e->terms);
    assert(number != 0); /* promised */
    struct terms *terms = terms_edit(e, number);
    *terms = (struct terms){
        .is_used = 1, .maxhold_us = UINT64_MAX, .delay_ms = c->delay_ms};
    if (c->maxhold_ms > 0)
        terms->maxhold_us = c->maxhold_ms * US_PER_MS;
    keep_text(e, c->note, &terms->note);
    return number;
}

void terms_need(struct hold_engine *e, const struct hold_command *c,
                struct need *need)
{
    uint32_t names = c->item_count > 0 ? c->item_count : 1;

    need_item(need, &e->terms);
    need_text(e, need, c->note.len);
    if (c->delay_ms == 0)
        return;
    for (uint32_t i = 0; i < names; i++)
        need_item(need, &e->marks);
    need->due += names;
}

void claim_drop(struct hold_engine *e, const struct claim *claim)
{
    hf_texts_drop(&e->texts, claim->owner);
    if (claim->terms == 0)
        return;
    hf_texts_drop(&e->texts, terms_at(e, claim->terms)->note);
    hf_slab_give(&e->terms, claim->terms);
}

/* When a grant ends that is taken or renewed now. */
uint64_t claim_expires_us(const struct hold_engine *e,
                          const struct claim *claim, uint64_t acquired_us,
                          uint64_t ttl_ms)
{
    uint64_t expires_us =
        ttl_ms == 0 ? UINT64_MAX : e->now_us + ttl_ms * US_PER_MS;

    if (claim->terms == 0)
        return expires_us;
    uint64_t maxhold_us = terms_at(e, claim->terms)->maxhold_us;
    if (maxhold_us < UINT64_MAX && acquired_us + maxhold_us < expires_us)
        expires_us = acquired_us + maxhold_us;
    return expires_us;
}

int64_t session_safe_ms(const struct hold_engine *e, const struct claim *claim,
                        uint64_t expires_us)
{
    const struct session *session = session_at(e, claim->session);
    uint64_t end_us = session->expires_us;
    if (end_us == UINT64_MAX) /* so long after its connection at least */
        end_us = e->now_us + session->ttl_ms * US_PER_MS;
    return left_ms(e, end_us < expires_us ? end_us : expires_us);
}

int64_t grant_safe_ms(const struct hold_engine *e, const struct part *part)
{
    return claim_safe_ms(e, part_claim(e, part), part_expires_us(e, part));
}

/* Always inlined: most grants are new ones. */
__attribute__((always_inline)) static inline void
join(struct hold_engine *e, struct lock *lock, uint32_t number,
     const struct part *part, uint64_t token, uint32_t max)
{
    if (lock->granted++ == 0) {
        e->held++;
        lock->fence = part->mode == MODE_SHARED ? token : 0;
        if (part->mode == MODE_COUNTING) {
            lock->used = 0;
            lock->max = max;
        }
    } else if (part->mode == MODE_EXCLUSIVE ||
               part->mode != part_at(e, lock->grants.first)->mode ||
               (part->mode == MODE_COUNTING &&
                (uint64_t)lock->used + part->permits > lock->max)) {
        e->double_grants++; /* never; it would raise an alarm */
    }
    if (part->mode == MODE_COUNTING)
        lock->used += part->permits;
    list_append(GRANTS(e), &lock->grants, number);
    if ((part->tree | e->trees.used) != 0)
        tree_granted(e, part);
}

void grants_join(struct hold_engine *e, uint32_t number, uint64_t token,
                 uint32_t max)
{
    const struct part *part = part_at(e, number);

    join(e, lock_edit(e, part->lock), number, part, token, max);
}

void grants_leave(struct hold_engine *e, uint32_t number)
{
    const struct part *part = part_at(e, number);
    struct lock *lock = lock_edit(e, part->lock);

    list_remove(GRANTS(e), &lock->grants, number);
    if (part->mode == MODE_COUNTING)
        lock->used -= part->permits;
    if (--lock->granted == 0) {
        e->held--;
        lock->turn = part->mode != MODE_SHARED;
    }
    uint32_t lock_number = part->lock;
    bool tree = part->tree;
    if (tree)
        tree_ended(e, part);
    hf_slab_give(&e->parts, number);
    bool idle = lock->granted + lock->waiting + lock->mark == 0 &&
                !lock->is_kept && !lock->is_listed;
    if (!idle)
        serve_later(e, lock_number);
    serve_related(e, lock_number, tree);
    if (idle)
        lock_remove(e, lock_number);
}

static inline void begin(struct hold_engine *e, uint32_t number,
                         struct part *part, uint64_t ttl_ms, uint32_t max)
{
    struct lock *lock = lock_edit(e, part->lock);

    part->count = 1;
    part->token = emit_at(e, EVENT_LOCK_GRANTED, lock, part, 0, 0);
    part->acquired_us = e->now_us;
    join(e, lock, number, part, part->token, max);
    due_add(e, DUE_GRANT, number,
            claim_expires_us(e, &part->claim, part->acquired_us, ttl_ms),
            part->token);
    if (part->claim.session != 0)
        session_join(e, part->claim.session, number);
}

void grant_begin(struct hold_engine *e, uint32_t number, uint64_t ttl_ms,
                 uint32_t max)
{
    struct part *part = part_edit(e, number);

    part->waits = false;
    part->group = 0;
    begin(e, number, part, ttl_ms, max);
}

uint32_t grant_start(struct hold_engine *e, const struct hold_command *c,
                     const struct wanted *wanted, uint32_t lock)
{
    uint32_t number = part_new(e, lock, wanted);
    struct part *part = part_edit(e, number);

    part->claim.session = wanted->session;
    keep_text(e, wanted->owner, &part->claim.owner);
    if (has_terms(c)) {
        part->claim.terms = claim_terms(e, c);
        enum hf_status status = claim_promise(e, &part->claim, 1);
        assert(status == HF_OK); /* promised */
        (void)status;
    }
    begin(e, number, part, c->ttl_ms, wanted->max);
    return number;
}

void grant_new(struct hold_engine *e, const struct hold_command *c,
               const struct wanted *wanted, uint32_t lock)
{
    uint32_t number = grant_start(e, c, wanted, lock);

    reply_grant(&e->body, e, number, e->now_us);
}

void grant_reenter(struct hold_engine *e, uint32_t number, uint64_t ttl_ms)
{
    struct part *part = part_edit(e, number);

    if (part->group != 0) {
        set_reenter(e, part->group, ttl_ms);
        return;
    }
    emit_lock(e, EVENT_LOCK_REENTERED, part, part->token, 0);
    part->count++;
    uint64_t end_us =
        claim_expires_us(e, &part->claim, part->acquired_us, ttl_ms);
    if (end_us > part_expires_us(e, part) && !part->sealed)
        grant_set_expiry(e, number, end_us);
}

void grant_renew(struct hold_engine *e, uint32_t number, uint64_t ttl_ms)
{
    const struct part *part = part_at(e, number);
    uint64_t end_us = claim_expires_us(e, part_claim(e, part),
                                       part_acquired_us(e, part), ttl_ms);

    if (!part_is_sealed(e, part) || end_us < part_expires_us(e, part))
        grant_set_expiry(e, number, end_us);
}

void grant_seal(struct hold_engine *e, uint32_t number, uint64_t end_us,
                enum seal seal, struct hf_bytes by)
{
    struct part *part = part_edit(e, number);
    enum seal before = part_seal(e, part);

    if (part->group != 0)
        part = part_edit(e, set_at(e, part->group)->first);
    emit_lock(e, EVENT_LOCK_WOUNDED, part, part_token(e, part), 0);
    past_say(e, seal == SEAL_REVOKED ? WHY_REVOKED : WHY_WOUNDED, by);
    bool sooner = end_us < part_expires_us(e, part);
    if (sooner || before == SEAL_NONE)
        *(part->group == 0 ? &part->sealed
                           : &set_edit(e, part->group)->sealed) = (uint8_t)seal;
    if (sooner)
        grant_set_expiry(e, number, end_us);
}

void grant_set_expiry(struct hold_engine *e, uint32_t number,
                      uint64_t expires_us)
{
    struct part *part = part_edit(e, number);

    if (part->group != 0) {
        struct set *set = set_edit(e, part->group);
        set->expires_us = expires_us;
        hf_agenda_change(&e->due, set->due, expires_us, set->token);
        return;
    }
    hf_agenda_change(&e->due, part->due, expires_us, part->token);
}

static uint64_t delay_of(const struct hold_engine *e, const struct claim *claim)
{
    return claim->terms == 0 ? 0 : terms_at(e, claim->terms)->delay_ms;
}

enum hf_status claim_promise(struct hold_engine *e, const struct claim *claim,
                             uint32_t names)
{
    return delay_of(e, claim) == 0 ? HF_OK : mark_promise(e, names);
}

void claim_unpromise(struct hold_engine *e, const struct claim *claim,
                     uint32_t names)
{
    if (delay_of(e, claim) > 0)
        mark_unpromise(e, names);
}

/* An end that was no release closes the name, if that was asked for. */
void claim_delay(struct hold_engine *e, const struct claim *claim,
                 uint32_t lock_number, bool tree, bool clean)
{
    uint64_t delay_ms = delay_of(e, claim);

    if (delay_ms == 0)
        return;
    mark_unpromise(e, 1);
    if (!clean)
        mark_close(e, lock_number, e->now_us + delay_ms * US_PER_MS, tree);
}

void grant_end(struct hold_engine *e, uint32_t number, bool clean)
{
    struct part *part = part_edit(e, number);

    assert(part->group == 0);
    hf_agenda_remove(&e->due, part->due);
    if (part->claim.session != 0)
        session_leave(e, part->claim.session, number);
    claim_delay(e, &part->claim, part->lock, part->tree, clean);
    claim_drop(e, &part->claim);
    grants_leave(e, number);
}

void grant_lose(struct hold_engine *e, uint32_t number, enum past_why why,
                uint64_t lag_us)
{
    const struct part *part = part_at(e, number);

    if (part->group != 0) {
        set_lose(e, part->group, EVENT_LOCK_LOST, why, lag_us);
        return;
    }
    emit_lock(e, EVENT_LOCK_LOST, part, part->token, lag_us);
    past_say(e, why, hf_bytes("", 0));
    emit_age(e, part->acquired_us);
    grant_end(e, number, false);
}

/* Why it ends that is over by its own time. */
static enum past_why expiry_why(const struct hold_engine *e,
                                const struct part *part)
{
    const struct claim *claim = part_claim(e, part);

    switch (part_seal(e, part)) {
    case SEAL_WOUNDED:
        return WHY_WOUNDED;
    case SEAL_REVOKED:
        return WHY_REVOKED;
    default:
        break;
    }
    bool is_capped = claim->terms != 0 &&
                     part_expires_us(e, part) - part_acquired_us(e, part) >=
                         terms_at(e, claim->terms)->maxhold_us;
    return is_capped ? WHY_MAXHOLD : WHY_PLAIN;
}

void grant_end_expired(struct hold_engine *e, uint32_t number)
{
    const struct part *part = part_at(e, number);
    uint64_t lag_us = e->now_us - part_expires_us(e, part);
    enum past_why why = expiry_why(e, part);

    if (part->group != 0) {
        set_lose(e, part->group, EVENT_LOCK_EXPIRED, why, lag_us);
        return;
    }
    emit_lock(e, EVENT_LOCK_EXPIRED, part, part->token, lag_us);
    past_say(e, why, hf_bytes("", 0));
    emit_age(e, part->acquired_us);
    grant_end(e, number, false);
}

void grant_expire(struct hold_engine *e, uint32_t number)
{
    grant_end_expired(e, number);
    serve_all(e);
}

static inline void reply_times(struct hf_buf *body, const struct hold_engine *e,
                               uint64_t token, int64_t safe_ms, uint32_t count,
                               uint64_t queued_us)
{
    reply_field_number(body, FIELD_TOKEN, (int64_t)token);
    reply_field_number(body, FIELD_SAFE_MS, safe_ms);
    reply_field_number(body, FIELD_COUNT, count);
    reply_field_number(body, FIELD_WAITED_MS,
                       (int64_t)((e->now_us - queued_us) / US_PER_MS));
}

void reply_grant(struct hf_buf *body, const struct hold_engine *e,
                 uint32_t number, uint64_t queued_us)
{
    const struct part *part = part_at(e, number);

    if (part->group != 0) {
        const struct set *set = set_at(e, part->group);
        reply_map(body, 4);
        reply_times(body, e, set->token, grant_safe_ms(e, part), set->count,
                    queued_us);
        return;
    }
    reply_map(body, part->mode == MODE_SHARED ? 5 : 4);
    reply_times(body, e, part->token,
                claim_safe_ms(e, &part->claim, part_expires_us(e, part)),
                part->count, queued_us);
    if (part->mode == MODE_SHARED)
        reply_field_number(body, FIELD_FENCE,
                           (int64_t)lock_at(e, part->lock)->fence);
}

uint32_t grant_of(const struct hold_engine *e, const struct lock *lock,
                  uint32_t session, struct hf_bytes owner)
{
    uint32_t number = lock->grants.first;

    while (number != 0 && !part_is_of(e, part_at(e, number), session, owner))
        number = part_at(e, number)->place.next;
    return number;
}

const char *mode_name(enum lock_mode mode)
{
    static const char *const names[] = {"exclusive", "shared", "counting"};

    return names[mode];
}
