/* simulate_key.c - what is random about keys, and their listing. */
#include "sim/engine/simulate_parts.h"

/* The value that is there, if it is, and likely the right one. */
static struct hf_bytes pick_value(struct sim *sim, struct hf_bytes name)
{
    for (size_t i = 0; i < sim->model->grant_count; i++) {
        const struct model_claim *claim = &sim->model->grants[i].claim;
        if (model_is(&sim->model->names[claim->wants[0].name], name) &&
            sim_chance(sim, 70))
            return sim_pool_owner(&claim->owner);
    }
    return sim_pick_owner(sim);
}

/* Often one that is a key already. */
static struct hf_bytes pick_key(struct sim *sim)
{
    const struct model *model = sim->model;
    size_t from = sim_below(sim, model->grant_count + 1);

    for (size_t i = from; i < model->grant_count && sim_chance(sim, 90); i++) {
        const struct model_claim *claim = &model->grants[i].claim;
        if (claim->key)
            return sim_pool_name(sim,
                                 model_name_bytes(model, claim->wants[0].name));
    }
    return sim_pick_lock(sim);
}

/* Permits, often those that their holder has. */
static void make_permits(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;
    uint64_t of = 1 + sim_below(sim, 3);

    c->flags = HOLD_NX | (sim_chance(sim, 30) ? HOLD_OWN : 0) |
               (c->flags & HOLD_SAY_MASK);
    c->permits = (1 + sim_below(sim, of)) | of << 32;
    c->ttl_ms = sim_pick_ttl_ms(sim);
    for (size_t i = 0; i < model->grant_count; i++) {
        const struct model_claim *claim = &model->grants[i].claim;
        const struct model_want *want = &claim->wants[0];
        if (!claim->key || want->mode != MODEL_COUNTING || sim_chance(sim, 40))
            continue;
        c->name = sim_pool_name(sim, model_name_bytes(model, want->name));
        c->owner = sim_pool_owner(&claim->owner);
        c->permits = want->permits | want->of << 32;
    }
}

static void make_set(struct sim *sim, struct hold_command *c)
{
    static const uint64_t conditions[] = {
        0, 0, HOLD_NX, HOLD_NX, HOLD_NX | HOLD_OWN, HOLD_XX, HOLD_EQUAL};
    uint64_t end = sim_below(sim, 10);

    c->owner =
        sim_chance(sim, 60) ? sim_pick_owner(sim) : pick_value(sim, c->name);
    c->flags |= conditions[sim_below(sim, 7)];
    if (end < 6)
        c->ttl_ms = sim_pick_ttl_ms(sim);
    else if (end == 6)
        c->flags |= HOLD_KEEPTTL;
    if (end == 7) {
        c->flags |= HOLD_AT;
        c->ttl_ms = sim->now_us / 1000 + sim_below(sim, 10) - 2;
    }
    if (sim_chance(sim, 20)) {
        make_permits(sim, c);
    } else if (sim_chance(sim, 15)) {
        c->flags = HOLD_NX | (c->flags & (HOLD_SAY_MASK | HOLD_AT));
        c->item_count = 0; /* several, which follow */
        c->count = 1;
    }
}

/* Several names, each once, instead of one. */
static void make_names(struct sim *sim, struct hold_command *c)
{
    uint64_t count = 1 + sim_below(sim, 4);

    c->count = 0;
    (void)hold_add_name(c, c->name, false);
    for (uint64_t i = 1; i < count; i++)
        (void)hold_add_name(c, pick_key(sim), false);
    c->name = hf_bytes("", 0);
    if (count > c->item_count && hold_kind_is_write(c->kind))
        c->count = count;
}

/* The names as a client may have had them in any order, some perhaps twice,
 * each with a value of its own. */
static void make_owners(struct sim *sim, struct hold_command *c)
{
    uint64_t turn = 0;

    c->owners = true;
    c->owner = hf_bytes("", 0);
    for (uint32_t i = 0; i < c->item_count; i++) {
        *hold_own_owner(c, i) = sim_pick_owner(sim);
        c->items[i].quantity = 0;
    }
    for (uint32_t left = c->item_count; left > 0; left--) {
        uint64_t skip = sim_below(sim, left);
        uint32_t i = 0;
        while (c->items[i].quantity > 0 || skip-- > 0)
            i++;
        turn += sim_chance(sim, 10) && turn > 0; /* one again */
        c->items[i].quantity = ++turn;
    }
    c->count = turn > c->item_count ? turn : 0;
}

static void make_change(struct sim *sim, struct hold_command *c)
{
    if (sim_chance(sim, 70)) {
        c->flags |= HOLD_EQUAL;
        c->reason = pick_value(sim, c->name);
    }
    if (c->kind == HOLD_KEY_EXPIRE && sim_chance(sim, 80))
        c->ttl_ms = sim_pick_ttl_ms(sim);
    if (c->ttl_ms > 0 && sim_chance(sim, 20))
        c->flags |= HOLD_XX | HOLD_ADDED;
    if (sim_chance(sim, 10))
        c->grace_ms = 1 + sim_below(sim, sim->profile.ttl_max_ms);
    if (sim_chance(sim, 20)) {
        c->permits = 1 | UINT64_C(1) << 32;
        c->reason = pick_value(sim, c->name);
    } else if (sim_chance(sim, 20)) {
        c->count = 1;
    }
}

void sim_make_key(struct sim *sim, struct hold_command *c)
{
    bool write = hold_kind_is_write(c->kind);

    if (c->kind == HOLD_KEY_SCAN) {
        c->amount = (int64_t)sim_below(sim, KEY_TYPES + 1);
        c->count = sim_below(sim, 6);
        return;
    }
    c->name = pick_key(sim);
    c->flags = (write ? sim_below(sim, SAY_PTTL)
                      : SAY_PTTL + sim_below(sim, SAY_ALL - SAY_PTTL))
               << HOLD_SAY_SHIFT;
    if (c->kind == HOLD_KEY_GET && sim_chance(sim, 50))
        c->flags = (uint64_t)SAY_VALUE << HOLD_SAY_SHIFT;
    else if (c->kind == HOLD_KEY_GET && sim_chance(sim, 20))
        c->flags = (uint64_t)SAY_BOTH << HOLD_SAY_SHIFT;
    else if (write && sim_chance(sim, 10))
        c->flags = (uint64_t)SAY_ONE_MINUS << HOLD_SAY_SHIFT;
    if (c->kind == HOLD_KEY_SET)
        make_set(sim, c);
    else if (write)
        make_change(sim, c);
    if (c->kind == HOLD_KEY_SET && (c->flags & HOLD_EQUAL) != 0)
        c->reason = pick_value(sim, c->name);
    if (c->count != 0)
        make_names(sim, c);
    if (c->kind == HOLD_KEY_SET && c->permits == 0 &&
        (c->flags & ~(uint64_t)(HOLD_SAY_MASK | HOLD_AT)) == HOLD_NX &&
        sim_chance(sim, 50)) {
        c->flags &= ~(uint64_t)HOLD_SAY_MASK;
        c->flags |= (uint64_t)SAY_FIRST << HOLD_SAY_SHIFT;
        if (c->item_count > 0)
            make_owners(sim, c);
    }
    if (c->kind == HOLD_KEY_COUNT && sim_chance(sim, 80))
        make_names(sim, c);
    if (c->kind == HOLD_KEY_COUNT)
        c->name = hf_bytes("", 0);
}

static bool is_listed(struct sim *sim, const struct hold_command *c,
                      uint32_t name)
{
    enum hold_key_type type = model_key_type(sim->model, name);

    return type != KEY_ANY &&
           (c->amount == KEY_ANY || c->amount == (int64_t)type) &&
           (c->name.len == 0 ||
            hf_bytes_match(c->name, model_name_bytes(sim->model, name)));
}

/* Marks the names of a page, which follow; each must be listed, once. */
static void take_page(struct sim *sim, const struct hold_command *c,
                      struct hf_bytes page, size_t at, bool found[MODEL_MAX])
{
    for (uint32_t left = reply_next(page, &at).count; left > 0; left--) {
        uint32_t name = model_name(sim->model, reply_next(page, &at).text);
        if (found[name] || !is_listed(sim, c, name))
            sim_fail(sim, "scan", "found: a name too many");
        found[name] = true;
    }
}

void sim_compare_keys(struct sim *sim, struct hold_command *c)
{
    uint64_t now_us =
        c->now_us > sim->model->now_us ? c->now_us : sim->model->now_us;
    bool found[MODEL_MAX] = {false};

    c->cursor = 0;
    do {
        const struct hold_out *out = hold_ask(sim->engine, c);
        size_t at = 0;
        if (model_is_behind(sim->model, now_us) != (out == NULL))
            sim_fail(sim, "scan", "found: it was %s",
                     out == NULL ? "not told" : "told too early");
        if (out == NULL || sim->failed)
            return;
        reply_next(out->body, &at);
        struct hf_bytes cursor = reply_next(out->body, &at).text;
        if (hf_parse_u64(cursor, &c->cursor) != HF_OK)
            sim_fail(sim, "scan", "found: no cursor");
        take_page(sim, c, out->body, at, found);
    } while (c->cursor != 0 && !sim->failed);
    for (uint32_t i = 0; i < sim->model->name_count && !sim->failed; i++) {
        if (is_listed(sim, c, i) && !found[i])
            sim_fail(sim, "scan", "found: a name is missing");
    }
}
