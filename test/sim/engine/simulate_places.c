/* simulate_places.c - what is random about places. */
#include "sim/engine/simulate_parts.h"

static const char *const skus[] = {"pen", "pen", "pen", "ink",
                                   "ink", "a@b", "n0"};
static const char *const places[] = {"p", "q", "r", "pq", "s", "t"};
#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Among the first names, which small shops have; the last are of no place. */
void sim_name_places(struct sim *sim)
{
    static const struct {
        unsigned number;
        const char *name;
    } rows[] = {{1, "pen@p"},  {2, "pen@q"},  {4, "ink@q"},   {8, "pen@r"},
                {9, "ink@p"},  {10, "ink@r"}, {11, "a@b@p"},  {13, "pen@pq"},
                {14, "pen@s"}, {15, "n0@p"},  {16, "a@b@pq"}, {17, "@p"},
                {18, "ink@"},  {19, "pen@t"}};

    for (size_t i = 0; i < COUNT(rows); i++)
        sim->names[rows[i].number] = model_text(hf_bytes_text(rows[i].name));
}

/* What the reservation has, by sku. */
static void make_known(struct sim *sim, struct hold_command *c,
                       const struct model_reservation *known)
{
    for (size_t i = 0; i < known->item_count; i++) {
        struct hf_bytes name =
            sim_pool_name(sim, model_bytes(&known->items[i].sku));
        size_t len = name.len;
        while (len > 0 && name.data[len - 1] != '@')
            len--;
        hold_add_item(c, hf_bytes(name.data, len > 1 ? len - 1 : name.len),
                      known->items[i].quantity);
    }
}

void sim_make_places(struct sim *sim, struct hold_command *c)
{
    const struct model_reservation *known =
        model_find_reservation(sim->model, c->name);
    uint64_t count = 1 + sim_below(sim, 3);
    uint64_t most = sim_chance(sim, 50) ? 12 : 4;

    if (!sim_chance(sim, sim_has_places(sim) ? 70 : 20))
        return;
    c->wait_ms = 0;
    c->item_count = 0;
    c->mins = false;
    c->flags &= ~(uint64_t)HOLD_BEST;
    if (known != NULL && sim_chance(sim, 60))
        make_known(sim, c, known);
    else
        for (uint64_t i = 0; i < count; i++)
            hold_add_item(c, hf_bytes_text(skus[sim_below(sim, COUNT(skus))]),
                          sim_below(sim, 300) == 0 ? (uint64_t)INT64_MAX
                                                   : 1 + sim_below(sim, most));
    for (count = 1 + sim_below(sim, 6); count > 0; count--)
        (void)hold_add_place(
            c, hf_bytes_text(places[sim_below(sim, COUNT(places))]));
    c->flags |= sim_below(sim, 4) << HOLD_SPLIT_SHIFT;
    if (hold_find_wrong(c) == HOLD_RIGHT)
        return;
    c->note = hf_bytes("", 0); /* too many, or too long: the plain way */
    c->flags &= ~(uint64_t)HOLD_SPLIT_MASK;
}

void sim_make_show_places(struct sim *sim, struct hold_command *c)
{
    c->name = hf_bytes_text(skus[sim_below(sim, COUNT(skus))]);
    c->cursor = sim_below(sim, 4);
}
