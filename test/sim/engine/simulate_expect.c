/* simulate_expect.c - what is random about announced stock. */
#include "sim/engine/simulate_parts.h"

static const char *const refs[] = {"", "po-1", "po-2", "x"};
#define REFS (sizeof refs / sizeof refs[0])

enum hold_kind sim_pick_expect_kind(struct sim *sim)
{
    static const enum hold_kind kinds[] = {
        HOLD_EXPECT,  HOLD_EXPECT,  HOLD_EXPECT,  HOLD_ARRIVE, HOLD_RESERVE,
        HOLD_RESERVE, HOLD_RESERVE, HOLD_RESERVE, HOLD_CANCEL};

    return kinds[sim_below(sim, sizeof kinds / sizeof kinds[0])];
}

static const char many[] = "abcdefghijklmnopqrst";

/* As a rule one of few; else one of more than there may be. */
static struct hf_bytes pick_ref(struct sim *sim)
{
    if (sim_chance(sim, 20))
        return hf_bytes(many + sim_below(sim, sizeof many - 1), 1);
    return hf_bytes_text(refs[sim_below(sim, REFS)]);
}

/* The one of them that is equal. */
static struct hf_bytes find_ref(const struct model_text *ref)
{
    for (size_t i = 0; i < REFS; i++) {
        if (model_is(ref, hf_bytes_text(refs[i])))
            return hf_bytes_text(refs[i]);
    }
    return hf_bytes(strchr(many, ref->data[0]), 1);
}

/* One that is announced, of a product that is. */
static void pick_announced(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;

    if (model->arrival_count == 0 || !sim_chance(sim, 60))
        return;
    const struct model_arrival *arrival =
        &model->arrivals[sim_below(sim, model->arrival_count)];
    c->name = sim_pool_name(sim, model_bytes(&arrival->sku));
    c->note = find_ref(&arrival->ref);
    c->amount = (int64_t)arrival->units;
    if (c->amount > 0 && sim_chance(sim, 50))
        c->amount -= (int64_t)sim_below(sim, (uint64_t)c->amount);
}

/* Too little for who booked first, but with what gathered for those who wait
 * enough. */
static void make_tempting(struct sim *sim, struct hold_command *c)
{
    struct model *model = sim->model;
    size_t count = model->booking_count;
    size_t from = count == 0 ? 0 : sim_below(sim, count);

    for (size_t i = 0; i < count; i++) {
        const struct model_item *item =
            &model->bookings[(from + i) % count].item;
        struct hf_bytes sku = model_bytes(&item->sku);
        uint64_t free = model_free_units(model, sku);
        if (free == 0 || item->quantity < 2 ||
            model_count_buyers(model, sku) == 0)
            continue;
        c->name = sim_pool_name(sim, sku);
        c->amount =
            (int64_t)(item->quantity > free ? item->quantity - free : 1);
        return;
    }
}

void sim_make_expect(struct sim *sim, struct hold_command *c)
{
    uint64_t now_ms = sim->now_us / 1000;

    c->amount = 1 + (int64_t)sim_below(sim, 8);
    c->note = pick_ref(sim);
    pick_announced(sim, c);
    if (sim_below(sim, 200) == 0)
        c->amount = INT64_MAX;
    if (c->kind == HOLD_ARRIVE && sim_chance(sim, 40))
        make_tempting(sim, c);
    if (c->kind == HOLD_ARRIVE)
        return;
    if (sim_chance(sim, 10))
        c->amount = 0;
    c->delay_ms = now_ms + sim_below(sim, sim->profile.ttl_max_ms * 2);
    if (sim_chance(sim, 10))
        c->delay_ms = now_ms - sim_below(sim, 5);
    if (sim_chance(sim, 10))
        c->delay_ms = 0;
}

void sim_make_preorder(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;

    if (!sim_chance(sim, sim_expects(sim) ? 60 : 15))
        return;
    c->flags = (c->flags & ~(uint64_t)HOLD_BEST) | HOLD_PREORDER;
    c->wait_ms = 0;
    c->mins = false;
    c->bundle = hf_bytes("", 0);
    if (model->arrival_count > 0 && sim_chance(sim, 70)) {
        uint64_t i = sim_below(sim, model->arrival_count);
        c->item_count = 0;
        (void)hold_add_item(
            c, sim_pool_name(sim, model_bytes(&model->arrivals[i].sku)),
            1 + sim_below(sim, 4));
    }
    c->item_count = 1;
}
