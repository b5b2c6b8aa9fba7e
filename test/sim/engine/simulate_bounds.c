/* simulate_bounds.c - settings that the commands come to meet. */
#include "sim/engine/simulate_parts.h"

/* Values that are met now and then. */
static uint64_t usual_bound(struct sim *sim, const char *name)
{
    const struct sim_profile *p = &sim->profile;

    bool many = p->deadlock || p->wide || (p->paths && sim_chance(sim, 70));

    if (strcmp(name, "locks_max") == 0)
        return many ? SIM_NAMES_MAX : p->locks - p->locks / 4;
    if (strcmp(name, "products_max") == 0)
        return p->products - p->products / 6;
    if (strcmp(name, "fences_max") == 0)
        return p->fences;
    if (strcmp(name, "sessions_max") == 0)
        return p->sessions + 2;
    if (strcmp(name, "wound_grace_ms") == 0)
        return sim_below(sim, 4);
    if (strcmp(name, "tree_names_max") == 0 && p->wide)
        return 100 + sim_below(sim, SIM_NAMES_MAX);
    if (strcmp(name, "grace_ms") == 0 && p->shop)
        return sim_below(sim, p->ttl_max_ms * 2);
    if (strcmp(name, "grace_ms") == 0 || strcmp(name, "extends_max") == 0)
        return sim_below(sim, 4);
    if (strcmp(name, "reserve_ttl_ms") == 0 ||
        strcmp(name, "extend_total_ms") == 0)
        return sim_below(sim, p->ttl_max_ms * 3);
    if (strcmp(name, "holders_max") == 0)
        return 3 + sim_below(sim, p->wide ? 1000 : 10);
    if (strstr(name, "_keep_ms") != NULL)
        return sim_below(sim, p->ttl_max_ms * 3);
    if (p->wide)
        return strcmp(name, "waiters_max") == 0 ? 100 : SIM_NAMES_MAX;
    if (p->shop && sim_chance(sim, 80))
        return 20 + sim_below(sim, 100);
    return 1 + sim_below(sim, 25);
}

void sim_make_bounds(struct sim *sim, struct hold_command *c)
{
    bool wide = sim->profile.wide;

    for (size_t i = 0; i < HOLD_BOUNDS_COUNT; i++) {
        const char *name = hold_bound_rows[i].name;
        uint64_t value = usual_bound(sim, name);
        if (!wide && sim_chance(sim, 10))
            value = sim_below(sim, 5);
        /* the model has room for so many reservations only */
        if (strcmp(name, "reservations_max") != 0 && sim_chance(sim, 5))
            value = (uint64_t)INT64_MAX;
        if (wide || sim_chance(sim, 90))
            hold_add_item(c, hf_bytes_text(name), value);
    }
    if (sim_chance(sim, 10))
        hold_add_item(c, hf_bytes_text("colour"), 7);
    sim->bounds_due = false;
}
