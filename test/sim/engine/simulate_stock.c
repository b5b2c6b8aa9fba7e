/* simulate_stock.c - random commands about products and reservations. */
#include "sim/engine/simulate_parts.h"

struct hf_bytes sim_pick_class(struct sim *sim)
{
    const struct model *model = sim->model;

    if (model->class_count == 0 || sim_chance(sim, 5))
        return sim_pick_name(sim, SIM_CLASSES);
    uint64_t i = sim_below(sim, model->class_count);
    return sim_pool_name(sim, model_bytes(&model->classes[i].name));
}

/* Of a wide profile most of what is to expire is of one half of the products,
 * and while that is due much is asked of the other. */
struct hf_bytes sim_pick_product(struct sim *sim)
{
    uint64_t half = sim->profile.products / 2;
    bool behind = model_is_behind(sim->model, sim->now_us);

    if (!sim->profile.wide || sim_chance(sim, 2))
        return sim_pick_name(sim, sim->profile.products);
    if (!behind || sim_chance(sim, 20))
        return sim_pick_name(sim, half);
    return model_bytes(&sim->names[half + sim_below(sim, half)]);
}

int64_t sim_pick_total(struct sim *sim)
{
    if (sim_below(sim, 200) == 0)
        return INT64_MAX;
    if (sim->profile.scarce)
        return (int64_t)sim_below(sim, 8);
    return sim->profile.wide ? 100000 : (int64_t)sim_below(sim, 60);
}

int64_t sim_pick_change(struct sim *sim)
{
    uint64_t extreme = sim_below(sim, 200);

    return extreme == 0          ? INT64_MAX
           : extreme == 1        ? INT64_MIN
           : sim->profile.scarce ? (int64_t)sim_below(sim, 8) - 3
                                 : (int64_t)sim_below(sim, 60) - 25;
}

/* As a rule the version that is, or was. */
static uint64_t pick_version(struct sim *sim, struct hf_bytes sku)
{
    const struct model_product *product = model_find_product(sim->model, sku);
    uint64_t version = product == NULL ? 0 : product->version;

    return sim_chance(sim, 70) ? version : sim_below(sim, version + 2);
}

/* Short values, and some that fill a product up. */
static struct hf_bytes pick_value(struct sim *sim)
{
    static char longest[HOLD_NOTE_MAX];

    if (sim_chance(sim, 25))
        return hf_bytes("", 0);
    if (!sim_chance(sim, 20))
        return hf_bytes_text(sim_chance(sim, 50) ? "red" : "12.50 EUR");
    memset(longest, 'v', sizeof longest);
    return hf_bytes(longest, sizeof longest - sim_below(sim, 30));
}

void sim_make_stock_word(struct sim *sim, struct hold_command *c,
                         enum hold_word word)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

    if (word == WORD_LOW) /* of a wide profile, near what is there */
        c->amount = sim_chance(sim, 20) ? 0
                    : sim->profile.wide ? 100000 - (int64_t)sim_below(sim, 3000)
                                        : (int64_t)sim_below(sim, 30);
    else if (word == WORD_ATTRIBUTE)
        c->reason = hf_bytes(letters + sim_below(sim, sizeof letters - 1), 1);
    else
        c->note = pick_value(sim);
}

void sim_make_stock_limit(struct sim *sim, struct hold_command *c)
{
    c->amount = sim_chance(sim, 25) ? 0 : 1 + (int64_t)sim_below(sim, 8);
}

/* Of few, which are small, many have no member that is over. */
static struct hf_bytes pick_group_name(struct sim *sim)
{
    return sim_pick_name(sim,
                         sim->profile.shop ? 4 * SIM_CLASSES : SIM_CLASSES);
}

/* One in its time of grace, by preference one whose units somebody waits for,
 * and could not use alone; NULL: there is none. */
static const struct model_reservation *find_late(struct sim *sim, bool grouped)
{
    struct model *model = sim->model;
    size_t count = model->reservation_count;
    size_t from = count == 0 ? 0 : sim_below(sim, count);
    const struct model_reservation *late = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct model_reservation *r =
            &model->reservations[(from + i) % count];
        struct hf_bytes sku = model_bytes(&r->items[0].sku);
        if (r->status != MODEL_EXPIRED || (grouped && r->group.len == 0) ||
            !model_has_grace(model, r, sim->now_us))
            continue;
        if (model_count_buyers(model, sku) > 0 &&
            model_find_product(model, sku) != NULL &&
            model_free_units(model, sku) >= r->items[0].quantity)
            return r;
        late = r;
    }
    return late;
}

/* In a shop mostly of one that has a member in its time of grace. */
void sim_make_group_name(struct sim *sim, struct hold_command *c)
{
    const struct model_reservation *late = NULL;

    if (sim->profile.shop && c->kind == HOLD_GROUP_CONFIRM &&
        sim_chance(sim, 70))
        late = find_late(sim, true);
    c->name = late != NULL ? sim_pool_name(sim, model_bytes(&late->group))
                           : pick_group_name(sim);
}

void sim_make_stock_option(struct sim *sim, struct hold_command *c,
                           enum hold_arg_bit option)
{
    if (option == ARG_IF && sim_chance(sim, 30))
        c->token = 1 + pick_version(sim, c->name);
    else if (option == ARG_PREORDER)
        sim_make_preorder(sim, c);
    else if (option == ARG_REF && sim_chance(sim, 20))
        c->note = hf_bytes_text("delivery 4711");
    else if (option == ARG_GROUP && c->wait_ms == 0 && !hold_may_book(c) &&
             sim_chance(sim, 30))
        c->bundle = pick_group_name(sim);
}

/* As much as the reservation has, or less of some; sometimes more. */
static void make_parts(struct sim *sim, struct hold_command *c,
                       const struct model_reservation *known, bool all)
{
    for (size_t i = 0; i < known->item_count; i++) {
        uint64_t quantity = known->items[i].quantity;
        if (!all && sim_chance(sim, 40))
            continue;
        if (!all && sim_chance(sim, 50))
            quantity = 1 + sim_below(sim, quantity + 1);
        hold_add_item(c, sim_pool_name(sim, model_bytes(&known->items[i].sku)),
                      quantity);
    }
}

void sim_make_items(struct sim *sim, struct hold_command *c)
{
    const struct model_reservation *known =
        model_find_reservation(sim->model, c->name);
    uint64_t count = sim_chance(sim, 2) ? 40 : 1 + sim_below(sim, 4);
    bool reserve = c->kind == HOLD_RESERVE;

    if (sim->profile.shop && sim_chance(sim, 70))
        count = 1;
    if (!reserve && sim_chance(sim, 50))
        return;
    if (known != NULL && sim_chance(sim, reserve ? 50 : 90)) {
        make_parts(sim, c, known, reserve || sim_chance(sim, 20));
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t extreme = sim_below(sim, 300);
        uint64_t most = !sim->profile.shop || sim_chance(sim, 15) ? 5 : 2;
        uint64_t quantity = extreme == 0 ? INT64_MAX : 1 + sim_below(sim, most);
        bool less = reserve && c->wait_ms == 0 && sim_chance(sim, 15);
        hold_add_some(c,
                      extreme == 1
                          ? sim_pick_name(sim, sim->profile.products + 1)
                          : sim_pick_product(sim),
                      quantity, less ? 1 + sim_below(sim, quantity) : quantity);
    }
}

/* Reservation ids: of the pool, made by the engine, or made by the engine in
 * the near future. */
void sim_make_id(struct sim *sim, struct sim_command *out, bool is_new)
{
    struct hold_command *c = &out->command;
    const struct model *model = sim->model;

    c->name = sim_pick_name(sim, sim->profile.ids);
    if (is_new) {
        if (sim_chance(sim, 3)) {
            model_make_id(out->id, sim->now_us,
                          model->seq + 1 + sim_below(sim, 3));
            c->name = hf_bytes(out->id, 26);
        } else if (sim_chance(sim, 25)) {
            c->name = hf_bytes(NULL, 0);
        }
    } else if (model->reservation_count > 0 && sim_chance(sim, 80)) {
        const struct model_reservation *late = NULL;
        const struct model_reservation *r =
            &model->reservations[sim_below(sim, model->reservation_count)];
        for (unsigned i = 0;
             sim->profile.shop && r->status != MODEL_PENDING && i < 5; i++)
            r = &model->reservations[sim_below(sim, model->reservation_count)];
        if (sim->profile.shop && c->kind == HOLD_CONFIRM && sim_chance(sim, 60))
            late = find_late(sim, false);
        r = late != NULL ? late : r;
        memcpy(out->id, r->id.data, r->id.len);
        c->name = hf_bytes(out->id, r->id.len);
    }
}

/* ---- Who waits for stock. ---- */

void sim_make_stock_profile(struct sim *sim)
{
    struct sim_profile *p = &sim->profile;

    p->shop = !p->wide && sim_chance(sim, 30);
    p->expects = sim_chance(sim, 40);
    p->scarce = p->shop || sim_chance(sim, 30);
    if (p->shop) {
        p->ids = SIM_NAMES_MAX;
        p->products = sim_chance(sim, 60) ? 1 + sim_below(sim, 5) : SIM_PLACED;
        p->wait_percent = 30 + sim_below(sim, 70);
        p->jump_percent = 5 + sim_below(sim, 30);
        p->priority_percent = sim_below(sim, 80);
        p->ttl_max_ms = 20 + sim_below(sim, 2000);
    }
}

enum hold_kind sim_pick_stock_kind(struct sim *sim)
{
    static const enum hold_kind kinds[] = {
        HOLD_RESERVE,       HOLD_RESERVE,        HOLD_RESERVE,
        HOLD_RESERVE,       HOLD_STOCK_SET,      HOLD_CANCEL,
        HOLD_CANCEL,        HOLD_CONFIRM,        HOLD_CONFIRM,
        HOLD_STOCK_ADD,     HOLD_ABANDON,        HOLD_WAITLIST_JOIN,
        HOLD_WAITLIST_JOIN, HOLD_WAITLIST_LEAVE, HOLD_STOCK_LIMIT,
        HOLD_GROUP_CONFIRM, HOLD_GROUP_CANCEL};

    if (sim_expects(sim) && sim_chance(sim, 60))
        return sim_pick_expect_kind(sim);
    if (sim_has_places(sim) && sim_chance(sim, 50))
        return sim_chance(sim, 50) ? HOLD_STOCK_SET : HOLD_RESERVE;

    return kinds[sim_below(sim, sizeof kinds / sizeof kinds[0])];
}

void sim_make_give_up(struct sim *sim, struct sim_command *out)
{
    const struct model *model = sim->model;
    struct hold_command *c = &out->command;

    if (!sim_chance(sim, 40))
        return;
    c->name = hf_bytes(NULL, 0);
    if (model->buyer_count > 0 && sim_chance(sim, 50)) {
        c->token = model->buyers[sim_below(sim, model->buyer_count)].ticket;
    } else if (model->reservation_count > 0) {
        const struct model_reservation *r =
            &model->reservations[sim_below(sim, model->reservation_count)];
        memcpy(out->id, r->id.data, r->id.len);
        c->note = hf_bytes(out->id, r->id.len);
        c->token = r->seq + (sim_chance(sim, 10) ? 1 : 0);
    }
}

void sim_make_leave(struct sim *sim, struct sim_command *out)
{
    const struct model *model = sim->model;
    struct hold_command *c = &out->command;

    if (model->buyer_count == 0 || sim_chance(sim, 20))
        return;
    const struct model_buyer *buyer =
        &model->buyers[sim_below(sim, model->buyer_count)];
    memcpy(out->id, buyer->id.data, buyer->id.len);
    c->name = hf_bytes(out->id, buyer->id.len);
    if (sim_chance(sim, 90))
        c->note = sim_pool_name(sim, model_bytes(&buyer->items[0].sku));
}
