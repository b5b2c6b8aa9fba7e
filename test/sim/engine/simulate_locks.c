/* simulate_locks.c - what is random about locks and sessions. */
#include <assert.h>

#include "sim/engine/simulate_parts.h"

/* Names are few, so that queues, sets and cycles form. Mostly all follow one
 * policy, for mixed ones promise nothing. */
void sim_make_lock_profile(struct sim *sim)
{
    struct sim_profile *p = &sim->profile;
    uint64_t policy = sim_below(sim, 10);

    p->deadlock = false;
    p->ring = false;
    p->mixed = false;
    p->paths = sim_chance(sim, 50);
    p->tree_percent = p->wide ? 2 : sim_below(sim, p->paths ? 60 : 5);
    sim_mix_paths(sim);
    if (p->paths && !p->wide)
        p->locks += 2 + sim_below(sim, 4);
    p->sessions = sim_below(sim, 5);
    p->session_percent = sim_below(sim, 100);
    p->shared_percent = sim_chance(sim, 30) ? 0 : 20 + sim_below(sim, 60);
    p->counting_percent = sim_chance(sim, 50) ? 0 : sim_below(sim, 60);
    p->forever_percent = sim_below(sim, 40);
    p->priority_percent = sim_chance(sim, 50) ? 0 : sim_below(sim, 60);
    p->policy = policy < 6    ? POLICY_DETECT
                : policy == 6 ? POLICY_NONE
                : policy == 7 ? POLICY_WAITDIE
                              : POLICY_WOUNDWAIT;
    if (p->policy == POLICY_WAITDIE || p->policy == POLICY_WOUNDWAIT) {
        p->sessions += 2;
        p->session_percent = 100;
    }
    if (p->wide) {
        p->policy = POLICY_NONE; /* a search takes the model too long */
        p->sessions += 2 + sim_below(sim, 20);
        if (sim_chance(sim, 50)) { /* long queues */
            p->locks = 50;
            p->wait_percent = 95;
        }
        if (sim_chance(sim, 60)) { /* many holders of each */
            p->locks = 50;
            p->sessions = 30;
            p->session_percent = 95;
            p->shared_percent = 100;
            p->counting_percent = 0;
            p->wait_percent = 10;
        }
        return;
    }
    p->deadlock = sim_chance(sim, 25);
    if (!p->deadlock)
        return;
    p->locks = 2 + sim_below(sim, 7);
    p->owners = 3 + sim_below(sim, SIM_OWNERS_MAX - 2);
    p->session_percent = sim_below(sim, 30);
    p->shared_percent = sim_chance(sim, 50) ? 0 : sim_below(sim, 40);
    p->counting_percent = sim_chance(sim, 60) ? 0 : 30 + sim_below(sim, 50);
    p->policy = POLICY_DETECT;
    p->ttl_max_ms = 1000 + sim_below(sim, 5000);
    p->jump_percent = 1 + sim_below(sim, 20);
    p->wait_percent = 95;
    p->ring = sim_chance(sim, 40);
    p->mixed = !p->ring && sim_chance(sim, 50);
    if (p->mixed)
        p->owners = SIM_OWNERS_MAX;
    p->patience = sim_below(sim, 7);
}

/* One that is over, but the last that a sweep comes to. */
static const struct model_grant *pick_late(struct sim *sim)
{
    const struct model *model = sim->model;
    const struct model_grant *late = NULL;

    for (unsigned i = 0; i < 16; i++) {
        const struct model_grant *grant =
            &model->grants[sim_below(sim, model->grant_count)];
        if (grant->expires_us <= sim->now_us &&
            (late == NULL || grant->expires_us > late->expires_us))
            late = grant;
    }
    return late;
}

static const struct model_grant *pick_grant(struct sim *sim, bool of_set)
{
    const struct model *model = sim->model;
    const struct model_grant *grant = NULL;

    if (model->grant_count == 0)
        return NULL;
    if (sim->profile.wide && model_is_behind(model, sim->now_us))
        grant = pick_late(sim);
    if (grant != NULL)
        return grant;
    for (unsigned i = 0; i < 8; i++) {
        grant = &model->grants[sim_below(sim, model->grant_count)];
        if (grant->claim.is_set == of_set)
            break;
    }
    return grant;
}

/* One of the names of a grant. */
static struct hf_bytes name_of(struct sim *sim, const struct model_grant *grant)
{
    uint64_t i = sim_below(sim, grant->claim.want_count);

    return sim_pool_name(
        sim, model_name_bytes(sim->model, grant->claim.wants[i].name));
}

/* A name that is above or below another, if chance finds one. */
static struct hf_bytes pick_related(struct sim *sim, struct hf_bytes to)
{
    struct hf_bytes name = to;

    for (unsigned i = 0; i < 8; i++) {
        name = sim_pick_lock_name(sim);
        if (model_is_below(sim->model, model_name(sim->model, name),
                           model_name(sim->model, to)) ||
            model_is_below(sim->model, model_name(sim->model, to),
                           model_name(sim->model, name)))
            break;
    }
    return name;
}

struct hf_bytes sim_pick_lock(struct sim *sim)
{
    uint64_t percent = model_is_behind(sim->model, sim->now_us) ? 90
                       : sim->profile.wide                      ? 20
                                                                : 50;

    if (sim->model->grant_count == 0 || !sim_chance(sim, percent))
        return sim_pick_lock_name(sim);
    struct hf_bytes name = name_of(sim, pick_grant(sim, false));
    if (sim->profile.paths && sim_chance(sim, 50))
        name = pick_related(sim, name);
    return name;
}

void sim_make_token(struct sim *sim, struct hold_command *c, bool of_lock)
{
    const struct model *model = sim->model;
    bool of_set = c->kind == HOLD_UNLOCKSET || c->kind == HOLD_RENEWSET;

    c->token = sim_below(sim, model->seq + 2);
    if (model->grant_count > 0 && sim_chance(sim, 80)) {
        const struct model_grant *grant =
            pick_grant(sim, of_set || sim_chance(sim, 10));
        if (of_lock && sim_chance(sim, 90))
            c->name = name_of(sim, grant);
        c->token = grant->token;
    }
    if (!of_lock && sim_chance(sim, 5))
        c->token = sim_chance(sim, 50) ? model->seq + 1 : (uint64_t)INT64_MAX;
}

uint64_t sim_pick_session(struct sim *sim)
{
    const struct model *model = sim->model;

    if (model->session_count == 0 || sim_chance(sim, 4))
        return 1 + sim_below(sim, model->seq + 2);
    return model->sessions[sim_below(sim, model->session_count)].id;
}

enum hold_kind sim_pick_settling(struct sim *sim)
{
    static const enum hold_kind kinds[] = {
        HOLD_LOCK,   HOLD_LOCK,      HOLD_LOCK,    HOLD_LOCKSET,
        HOLD_UNLOCK, HOLD_RENEW,     HOLD_ABANDON, HOLD_UNLOCKSET,
        HOLD_REVOKE, HOLD_DOWNGRADE, HOLD_TIMEOUT, HOLD_SESSION_CLOSE};
    static const enum hold_kind stock[] = {
        HOLD_RESERVE, HOLD_RESERVE,   HOLD_RESERVE,    HOLD_CONFIRM,
        HOLD_CANCEL,  HOLD_EXTEND,    HOLD_STOCK_SET,  HOLD_STOCK_ADD,
        HOLD_RESERVE, HOLD_STOCK_LOW, HOLD_STOCK_ATTR, HOLD_STOCK_LIMIT};

    if (sim_chance(sim, 40))
        return stock[sim_below(sim, sizeof stock / sizeof stock[0])];
    return kinds[sim_below(sim, sizeof kinds / sizeof kinds[0])];
}

void sim_make_abandon(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;

    if (sim_chance(sim, 40)) {
        c->name = sim_pick_lock_name(sim);
        sim_make_token(sim, c, true);
        return;
    }
    c->token = sim_below(sim, model->seq + 2);
    if (model->wait_count > 0 && sim_chance(sim, 80))
        c->token = model->waits[sim_below(sim, model->wait_count)].ticket;
}

void sim_make_timeout(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;

    if (sim_chance(sim, 80))
        sim_make_abandon(sim, c);
    if (model->request_count == 0 || !sim_chance(sim, 60))
        return;
    c->request = sim_pool_name(
        sim,
        model_bytes(&model->requests[sim_below(sim, model->request_count)].id));
}

/* The names of a set; sometimes those of one that is held or waited for. */
static void make_members(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;
    const struct model_claim *known = NULL;
    uint64_t count = sim_below(sim, 200) == 0 ? 64 : 1 + sim_below(sim, 4);

    if (model->grant_count > 0 && sim_chance(sim, 25))
        known = &pick_grant(sim, true)->claim;
    else if (model->wait_count > 0 && sim_chance(sim, 10))
        known = &model->waits[sim_below(sim, model->wait_count)].claim;
    if (known != NULL && known->is_set) {
        for (size_t i = 0; i < known->want_count; i++)
            hold_add_name(c,
                          sim_pool_name(sim, model_name_bytes(
                                                 model, known->wants[i].name)),
                          known->wants[i].mode == MODEL_SHARED);
        if (sim_chance(sim, 70)) {
            c->owner = sim_pool_owner(&known->owner);
            c->session = known->session;
        }
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        hold_add_name(c, sim_pick_lock_name(sim),
                      sim_chance(sim, sim->profile.shared_percent));
}

static struct hf_bytes pick_note(struct sim *sim)
{
    static const char *const notes[] = {"nightly", "moves a large file", "x"};

    if (!sim_chance(sim, 30))
        return hf_bytes("", 0);
    return hf_bytes_text(notes[sim_below(sim, 3)]);
}

/* A counting lock mostly has the maximum that its name stands for. */
static uint64_t pick_permits(struct sim *sim, struct hf_bytes name)
{
    uint64_t of = 1 + name.len % 3 + (name.len > 0 ? name.data[1] & 1 : 0);

    if (sim_chance(sim, 5))
        of = 1 + sim_below(sim, 6);
    if (sim_below(sim, 500) == 0)
        of = HOLD_PERMITS_MAX;
    return of << 32 | (sim_chance(sim, 60) ? 1 : 1 + sim_below(sim, of));
}

void sim_make_lock_option(struct sim *sim, struct hold_command *c,
                          enum hold_arg_bit option)
{
    const struct sim_profile *p = &sim->profile;
    enum hold_policy policy = p->policy;

    switch (option) {
    case ARG_SHARED:
        if (sim_chance(sim, p->shared_percent))
            c->flags |= HOLD_SHARED;
        break;
    case ARG_BARGE:
        if (sim_chance(sim, 5))
            c->flags |= HOLD_BARGE;
        break;
    case ARG_BIND:
        if (sim_chance(sim, 40))
            c->flags |= HOLD_BIND;
        break;
    case ARG_SESSION:
        if (sim_chance(sim, p->session_percent) &&
            (sim->model->session_count > 0 || sim_chance(sim, 5)))
            c->session = sim_pick_session(sim);
        break;
    case ARG_PERMITS:
        if (sim_chance(sim, p->counting_percent))
            c->permits = pick_permits(sim, c->name);
        break;
    case ARG_MAXHOLD:
        if (sim_chance(sim, 10))
            c->maxhold_ms = sim_pick_ttl_ms(sim);
        break;
    case ARG_DELAY:
        if (sim_chance(sim, 10))
            c->delay_ms = 1 + sim_below(sim, p->ttl_max_ms / 4 + 1);
        break;
    case ARG_DONE:
        if (sim_chance(sim, 4))
            c->done_ms = 1 + sim_below(sim, p->ttl_max_ms / 4 + 1);
        break;
    case ARG_GRACE:
        if (sim_chance(sim, 40))
            c->grace_ms = sim_pick_ttl_ms(sim);
        break;
    case ARG_NOTE:
    case ARG_VALUE:
    case ARG_RESULT:
    case ARG_TITLE:
        c->note = pick_note(sim);
        break;
    case ARG_MEMBER:
        make_members(sim, c);
        break;
    case ARG_DEADLOCK:
        if (!p->wide && sim_chance(sim, 2))
            policy = (enum hold_policy)sim_below(sim, 4);
        c->flags |= (uint64_t)policy << HOLD_POLICY_SHIFT;
        break;
    case ARG_PRIORITY:
        if (sim_chance(sim, p->priority_percent))
            c->flags |= sim_below(sim, 4) << HOLD_PRIORITY_SHIFT;
        break;
    default:
        break;
    }
}

/* True if the owner waits for something, without a session. */
static bool is_waiting(struct sim *sim, struct hf_bytes owner)
{
    const struct model *model = sim->model;

    for (size_t i = 0; i < model->wait_count; i++) {
        if (model_is(&model->waits[i].claim.owner, owner))
            return true;
    }
    return false;
}

/* True if the owner has the name. */
static bool has(struct sim *sim, struct hf_bytes owner, struct hf_bytes text)
{
    const struct model *model = sim->model;
    uint32_t name = model_name(sim->model, text);

    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_claim *claim = &model->grants[i].claim;
        if (claim->session == 0 && model_is(&claim->owner, owner) &&
            model_want_of(claim, name) != NULL)
            return true;
    }
    return false;
}

/* Each owner takes its own name, then that of the next. */
static void make_ring(struct sim *sim, struct hold_command *c)
{
    uint64_t size = sim->profile.locks;
    uint64_t i = sim_below(sim, size);
    uint64_t next = (i + 1) % size;
    struct hf_bytes own = sim_lock_name(sim, i);
    struct hf_bytes other = sim_lock_name(sim, next);
    bool first = !has(sim, sim_owner(i), own);
    bool ready = has(sim, sim_owner(next), other);

    c->session = 0;
    c->flags &= ~(uint64_t)(HOLD_SHARED | HOLD_BARGE);
    c->permits = 0;
    c->owner = sim_owner(first || ready ? i : next);
    c->name = first ? own : other;
}

/* Owners that hold something and do not wait ask for the next name. */
static void make_chain(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;
    const struct sim_profile *p = &sim->profile;

    if (p->ring && c->kind == HOLD_LOCK && sim_chance(sim, 98)) {
        make_ring(sim, c);
        return;
    }
    for (unsigned i = 0; i < p->patience && is_waiting(sim, c->owner); i++)
        c->owner = sim_pick_owner(sim);
    if (c->kind != HOLD_LOCK || model->grant_count == 0 || !sim_chance(sim, 60))
        return;
    const struct model_grant *grant =
        &model->grants[sim_below(sim, model->grant_count)];
    struct hf_bytes name = name_of(sim, grant);
    for (unsigned i = 0; i < sim->profile.locks; i++) {
        if (hf_bytes_equal(sim_lock_name(sim, i), name))
            c->name = sim_lock_name(sim, (i + 1) % sim->profile.locks);
    }
    if (is_waiting(sim, model_bytes(&grant->claim.owner)))
        return;
    c->owner = sim_pool_owner(&grant->claim.owner);
    c->session = grant->claim.session;
}

/* Every other name has permits of which each takes one: who waits for them
 * gets on when any of the holders does. */
static void make_mixed(struct sim *sim, struct hold_command *c)
{
    unsigned i = 0;

    while (!model_is(&sim->names[i], c->name))
        i++;
    c->flags &= ~(uint64_t)HOLD_SHARED;
    c->permits = i % 2 == 0 ? 3ull << 32 | 1 : 0;
    if (sim_chance(sim, 50))
        c->flags &= ~(3ull << HOLD_PRIORITY_SHIFT);
}

void sim_make_lock(struct sim *sim, struct hold_command *c)
{
    const struct sim_profile *p = &sim->profile;

    if (c->kind == HOLD_UNLOCK) {
        if (c->done_ms == 0)
            c->note = hf_bytes("", 0);
        return;
    }
    if (p->deadlock)
        make_chain(sim, c);
    if (p->mixed && c->kind == HOLD_LOCK && sim_chance(sim, 80))
        make_mixed(sim, c);
    if (sim_chance(sim, p->forever_percent) && c->wait_ms > 0) {
        c->wait_ms = 0;
        c->flags |= HOLD_FOREVER;
    }
    if (c->permits != 0)
        c->flags &= ~(uint64_t)HOLD_SHARED;
    else if (c->kind != HOLD_ELECT && sim_chance(sim, p->tree_percent))
        c->flags |= HOLD_TREE;
    if (c->session == 0 && (hold_policy(c) == POLICY_WAITDIE ||
                            hold_policy(c) == POLICY_WOUNDWAIT))
        c->flags &= ~(3ull << HOLD_POLICY_SHIFT);
    if (c->session != 0 && sim_chance(sim, p->wide ? 10 : 50))
        c->ttl_ms = 0;
}

/* There is always something to say. */
void sim_make_proclaim(struct sim *sim, struct hold_command *c)
{
    while (c->note.len == 0)
        c->note = pick_note(sim);
}

/* Few sessions, which live for a while. */
void sim_make_open(struct sim *sim, struct hold_command *c)
{
    c->ttl_ms += sim_below(sim, 1 + sim->profile.ttl_max_ms * 3);
    if (c->ttl_ms > HOLD_TTL_MAX_MS)
        c->ttl_ms = HOLD_TTL_MAX_MS;
    if (sim->model->session_count < sim->profile.sessions ||
        sim_chance(sim, 10))
        return;
    c->kind = HOLD_SESSION_KEEP;
    c->flags = 0;
    c->ttl_ms = 0;
    c->note = hf_bytes("", 0);
    const struct model_session *session;

    c->token = sim_pick_session(sim);
    session = model_find_session(sim->model, c->token);
    c->amount = (int64_t)c->token;
    if (session != NULL && sim_chance(sim, 90))
        c->amount = (int64_t)session->newest;
}

void sim_make_left(struct sim *sim, struct hold_command *c)
{
    c->token = sim_pick_session(sim);
    const struct model_session *session =
        model_find_session(sim->model, c->token);
    c->amount = (int64_t)c->token; /* right, if it was never kept */
    if (session != NULL && sim_chance(sim, 80))
        c->amount = (int64_t)session->newest;
}
