/* model_claim.c - who conflicts with whom, and the queues. */
#include <assert.h>

#include "base/memory.h"
#include "sim/engine/model_lock.h"

uint32_t model_name(struct model *model, struct hf_bytes name)
{
    uint32_t i = 0;

    while (i < model->name_count && !model_is(&model->names[i], name))
        i++;
    if (i == model->name_count) {
        assert(i < MODEL_MAX);
        model->names[model->name_count++] = model_text(name);
    }
    return i;
}

struct hf_bytes model_name_bytes(const struct model *model, uint32_t name)
{
    return model_bytes(&model->names[name]);
}

static bool barges(const struct hold_command *c)
{
    return (c->flags & HOLD_BARGE) != 0 &&
           (hold_policy(c) == POLICY_DETECT || hold_policy(c) == POLICY_NONE);
}

struct model_claim model_claim(struct model *model,
                               const struct hold_command *c)
{
    bool is_set = c->kind == HOLD_LOCKSET;
    size_t count = is_set ? c->item_count : 1;
    struct model_claim claim = {
        .session = c->session,
        .owner = model_text(c->owner),
        .note = model_text(c->note),
        .is_set = is_set,
        .key = c->kind == HOLD_KEY_SET,
        .tree = (c->flags & HOLD_TREE) != 0,
        .barge = barges(c),
        .priority = hold_priority(c),
        .policy = hold_policy(c),
        .ttl_ms = c->ttl_ms,
        .maxhold_ms = c->maxhold_ms,
        .delay_ms = c->delay_ms,
        .want_count = count,
        .wants = hf_alloc_zeroed(count * sizeof *claim.wants),
    };

    if (claim.wants == NULL)
        abort();
    for (size_t i = 0; i < count; i++) {
        struct model_want *want = &claim.wants[i];
        bool shared = is_set ? c->items[i].quantity == HOLD_PART_SHARED
                             : (c->flags & HOLD_SHARED) != 0;
        want->name = model_name(model, is_set ? c->items[i].sku : c->name);
        want->mode = shared ? MODEL_SHARED : MODEL_EXCLUSIVE;
        if (c->permits != 0 && !is_set) {
            want->mode = MODEL_COUNTING;
            want->permits = c->permits & UINT32_MAX;
            want->of = c->permits >> 32;
        }
    }
    return claim;
}

void model_claim_free(struct model_claim *claim)
{
    hf_free(claim->wants);
}

const char *model_mode_name(enum model_mode mode)
{
    return mode == MODEL_EXCLUSIVE ? "exclusive"
           : mode == MODEL_SHARED  ? "shared"
                                   : "counting";
}

struct model_want *model_want_of(const struct model_claim *claim, uint32_t name)
{
    for (size_t i = 0; i < claim->want_count; i++) {
        if (claim->wants[i].name == name)
            return &claim->wants[i];
    }
    return NULL;
}

bool model_same_holder(const struct model_claim *a, const struct model_claim *b)
{
    return a->session == b->session &&
           model_is(&a->owner, model_bytes(&b->owner));
}

bool model_reenters(const struct model_claim *claim,
                    const struct model_grant *grant)
{
    const struct model_claim *held = &grant->claim;

    if (held->key || claim->key || claim->is_set != held->is_set ||
        claim->want_count != held->want_count ||
        !model_same_holder(claim, held))
        return false;
    if (claim->is_set ? claim->tree != held->tree : claim->tree && !held->tree)
        return false;
    for (size_t i = 0; i < claim->want_count; i++) {
        const struct model_want *a = &claim->wants[i];
        const struct model_want *b = &held->wants[i];
        if (a->name != b->name || a->mode != b->mode ||
            a->permits != b->permits || a->of != b->of)
            return false;
    }
    return true;
}

struct model_grant *model_find_reentry(struct model *model,
                                       const struct model_claim *claim)
{
    for (size_t i = 0; i < model->grant_count; i++) {
        if (model_reenters(claim, &model->grants[i]) &&
            !model_grant_is_over(model, &model->grants[i], model->now_us))
            return &model->grants[i];
    }
    return NULL;
}

bool model_conflicts(const struct model *model, const struct model_claim *claim,
                     const struct model_want *want, uint32_t place,
                     const struct model_grant *grant, uint64_t used)
{
    const struct model_want *held = model_want_of(&grant->claim, place);

    if (held == NULL)
        return false;
    if (place != want->name)
        return model_tree_conflicts(model, claim, want, &grant->claim, held);
    if (want->mode != held->mode || want->mode == MODEL_EXCLUSIVE)
        return true;
    if (want->mode == MODEL_SHARED)
        return false;
    return want->of != held->of || used + want->permits > want->of;
}

bool model_stops(const struct model *model, const struct model_wait *other,
                 const struct model_wait *wait, const struct model_want *want,
                 uint32_t place)
{
    const struct model_want *theirs = model_want_of(&other->claim, place);

    if (other == wait || theirs == NULL || !model_is_before(other, wait))
        return false;
    if (place != want->name)
        return model_tree_conflicts(model, &wait->claim, want, &other->claim,
                                    theirs);
    return !model_compatible(theirs, want);
}

bool model_compatible(const struct model_want *a, const struct model_want *b)
{
    return a->mode == MODEL_SHARED && b->mode == MODEL_SHARED;
}

static uint64_t age_of(const struct model_wait *wait)
{
    return wait->claim.policy == POLICY_WOUNDWAIT ? wait->claim.session
                                                  : wait->order;
}

uint32_t model_rank(const struct model_wait *wait)
{
    return wait->claim.policy == POLICY_WAITDIE ? HOLD_PRIORITY_MAX
                                                : wait->claim.priority;
}

bool model_is_before(const struct model_wait *a, const struct model_wait *b)
{
    if (model_rank(a) != model_rank(b))
        return model_rank(a) < model_rank(b);
    if (age_of(a) != age_of(b))
        return age_of(a) < age_of(b);
    int owners = hf_bytes_compare(model_bytes(&a->claim.owner),
                                  model_bytes(&b->claim.owner));
    return owners != 0 ? owners < 0 : a->order < b->order;
}

size_t model_queue(const struct model *model, uint32_t name,
                   const struct model_wait **out)
{
    size_t count = 0;

    for (size_t i = 0; i < model->wait_count; i++) {
        const struct model_wait *wait = &model->waits[i];
        size_t at = count;
        if (model_want_of(&wait->claim, name) == NULL)
            continue;
        for (; at > 0 && model_is_before(wait, out[at - 1]); at--)
            out[at] = out[at - 1];
        out[at] = wait;
        count++;
    }
    return count;
}

size_t model_waiting(const struct model *model, uint32_t name)
{
    size_t count = 0;

    for (size_t i = 0; i < model->wait_count; i++)
        count += model_want_of(&model->waits[i].claim, name) != NULL;
    return count;
}

size_t model_count_before(const struct model *model,
                          const struct model_wait *wait, uint32_t name)
{
    size_t count = 0;

    for (size_t i = 0; i < model->wait_count; i++) {
        const struct model_wait *other = &model->waits[i];
        count += other != wait && model_want_of(&other->claim, name) != NULL &&
                 model_is_before(other, wait);
    }
    return count;
}

size_t model_count_grants(const struct model *model, uint32_t name)
{
    size_t count = 0;

    for (size_t i = 0; i < model->grant_count; i++)
        count += model_want_of(&model->grants[i].claim, name) != NULL;
    return count;
}

struct model_grant *model_oldest_grant(struct model *model, uint32_t name)
{
    for (size_t i = 0; i < model->grant_count; i++) {
        if (model_want_of(&model->grants[i].claim, name) != NULL)
            return &model->grants[i];
    }
    return NULL;
}

uint64_t model_used_permits(const struct model *model, uint32_t name)
{
    uint64_t used = 0;

    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_want *held =
            model_want_of(&model->grants[i].claim, name);
        used += held == NULL ? 0 : held->permits;
    }
    return used;
}

bool model_is_free_at(struct model *model, const struct model_wait *wait,
                      const struct model_want *want, uint32_t place, bool queue)
{
    bool reentry = model_find_reentry(model, &wait->claim) != NULL;
    uint64_t used = model_used_permits(model, want->name);

    if (model_closed_until(model, want->name, place) > model->now_us)
        return false;
    for (size_t i = 0; i < model->grant_count && !reentry; i++) {
        const struct model_grant *grant = &model->grants[i];
        bool own = model_want_of(&grant->claim, want->name) != NULL &&
                   model_same_holder(&wait->claim, &grant->claim);
        if (own ||
            model_conflicts(model, &wait->claim, want, place, grant, used))
            return false;
    }
    for (size_t i = 0; i < model->wait_count && queue; i++) {
        if (model_stops(model, &model->waits[i], wait, want, place))
            return false;
    }
    return true;
}

bool model_is_free(struct model *model, const struct model_wait *wait,
                   const struct model_want *want, bool queue, bool related,
                   uint32_t *place)
{
    uint32_t places[MODEL_MAX + 1];
    size_t count =
        model_places(model, want->name, wait->claim.tree, NULL, places);

    for (size_t i = 0; i < count; i++) {
        *place = places[i];
        if (!model_is_free_at(model, wait, want, *place,
                              i == 0 ? queue : related))
            return false;
    }
    return true;
}
