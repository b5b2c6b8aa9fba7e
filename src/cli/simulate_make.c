/* simulate_make.c - random commands, mostly sensible, sometimes not. */
#include <assert.h>

#include "cli/simulate_parts.h"

#define DAY_US (24u * 3600 * 1000000ull)

uint64_t sim_below(struct sim *sim, uint64_t bound)
{
    return hf_random_below(&sim->random, bound);
}

bool sim_chance(struct sim *sim, uint64_t percent)
{
    return sim_below(sim, 100) < percent;
}

/* One pool of names for everything: short ones, long ones, one with bytes
 * that are no letters, and some of which each is the start of the next. */
void sim_make_names(struct sim *sim)
{
    for (unsigned i = 0; i < SIM_NAMES_MAX; i++) {
        struct model_text *name = &sim->names[i];
        name->len = (size_t)snprintf(name->data, sizeof name->data, "n%u", i);
        if (i % 9 == 3) {
            size_t len = 20 + sim_below(sim, HOLD_ID_MAX - 20);
            memset(name->data + name->len, 'x', len - name->len);
            name->len = len;
        }
    }
    sim->names[5] = model_text(hf_bytes("a\0*[\xff", 5));
    sim->names[6] = model_text(hf_bytes("a\0*[", 4));
}

void sim_make_profile(struct sim *sim)
{
    struct sim_profile *p = &sim->profile;
    uint64_t spread = 1 + sim_below(sim, 4);

    p->wide = sim_below(sim, 12) == 0;
    p->locks = p->wide ? SIM_NAMES_MAX : 1 + sim_below(sim, 3 * spread);
    p->owners = 2 + sim_below(sim, SIM_OWNERS_MAX - 1);
    p->products = p->wide ? 20 : 1 + sim_below(sim, 3 * spread);
    p->ids = p->wide ? SIM_NAMES_MAX : 1 + sim_below(sim, 6 * spread);
    p->requests = p->wide ? SIM_NAMES_MAX : 1 + sim_below(sim, 8 * spread);
    p->fences = 1 + sim_below(sim, 5);
    p->ttl_max_ms = 2 + sim_below(sim, sim_chance(sim, 50) ? 20 : 5000);
    p->request_percent = sim_below(sim, 40);
    p->wait_percent = sim_below(sim, 100);
    p->jump_percent = 10 + sim_below(sim, 70);
    if (p->wide)
        p->ttl_max_ms += 100;
    sim->profile_until =
        sim->step + (p->wide ? 5000 : 200) + sim_below(sim, 1500);
    sim->bounds_due = true;
}

/* Time: a backlog grows while it nearly stands still, and is due at once. Else
 * it is often the same instant, often the instant at which something is due or
 * the last one before it, sometimes far ahead, sometimes back. */
static uint64_t make_time(struct sim *sim)
{
    uint64_t due_us = model_next_due_us(sim->model);
    uint64_t now_us = sim->now_us;

    if (sim_chance(sim, 2) && sim_chance(sim, 50))
        return now_us - sim_below(sim, 5000000);
    if (sim->profile.wide) {
        sim->now_us += sim_below(sim, 700) == 0 ? sim->profile.ttl_max_ms * 2000
                                                : sim_below(sim, 3);
        return sim->now_us;
    }
    if (!sim_chance(sim, sim->profile.jump_percent))
        return now_us;
    switch (sim_below(sim, 10)) {
    case 0:
    case 1:
        if (due_us > now_us && due_us - now_us < DAY_US)
            now_us = due_us;
        break;
    case 2:
        if (due_us > now_us + 1 && due_us - now_us < DAY_US)
            now_us = due_us - 1;
        break;
    case 3:
        now_us += sim_below(sim, sim->profile.ttl_max_ms * 3000);
        break;
    case 4:
        now_us += sim_chance(sim, 10) ? sim->profile.ttl_max_ms * 10000 : 1;
        break;
    default:
        now_us += sim_below(sim, 2000);
        break;
    }
    sim->now_us = now_us;
    return now_us;
}

static struct hf_bytes pick_name(struct sim *sim, uint64_t count)
{
    return model_bytes(&sim->names[sim_below(sim, count)]);
}

/* The name of the pool that is equal to `text`, which may go away. */
static struct hf_bytes pool_name(struct sim *sim, const struct model_text *text)
{
    unsigned i = 0;

    while (!model_is(text, model_bytes(&sim->names[i])))
        i++;
    return model_bytes(&sim->names[i]);
}

static struct hf_bytes pick_owner(struct sim *sim)
{
    static const char *const owners[SIM_OWNERS_MAX - 1] = {
        "ann", "bob", "worker-17.rack-4.example:4711:thread-12", "d", "e"};
    static char longest[HOLD_OWNER_MAX];
    uint64_t owner = sim_below(sim, sim->profile.owners);

    if (owner < SIM_OWNERS_MAX - 1)
        return hf_bytes_text(owners[owner]);
    memset(longest, 'o', sizeof longest);
    return hf_bytes(longest, sizeof longest);
}

static uint64_t pick_ttl_ms(struct sim *sim)
{
    uint64_t kind = sim_below(sim, 100);

    if (kind == 0)
        return HOLD_TTL_MAX_MS;
    if (kind < 10 || sim->profile.wide)
        return sim->profile.ttl_max_ms;
    return 1 + sim_below(sim, sim->profile.ttl_max_ms);
}

static void make_lock(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;

    c->name = pick_name(sim, sim->profile.locks);
    if (model->lock_count > 0 && sim_chance(sim, sim->profile.wide ? 20 : 50))
        c->name = pool_name(
            sim, &model->locks[sim_below(sim, model->lock_count)].name);
    c->owner = pick_owner(sim);
    c->ttl_ms = pick_ttl_ms(sim);
    if (sim_chance(sim, sim->profile.wait_percent) &&
        model->waiter_count < MODEL_MAX / 2)
        c->wait_ms = pick_ttl_ms(sim);
}

/* UNLOCK, RENEW, FENCE: mostly with a token that is right. */
static void make_token(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;

    c->name = pick_name(sim, sim->profile.locks);
    c->ttl_ms = c->kind == HOLD_RENEW ? pick_ttl_ms(sim) : 0;
    if (model->lock_count > 0 && sim_chance(sim, 80)) {
        const struct model_lock *lock =
            &model->locks[sim_below(sim, model->lock_count)];
        if (sim_chance(sim, 90))
            c->name = pool_name(sim, &lock->name);
        c->token = lock->token;
    } else {
        c->token = sim_below(sim, model->seq + 2);
    }
    if (c->kind == HOLD_FENCE && sim_chance(sim, 5))
        c->token = sim_chance(sim, 50) ? model->seq + 1 : (uint64_t)INT64_MAX;
    if (c->kind == HOLD_FENCE)
        c->name = pick_name(sim, sim->profile.fences);
}

/* Gives up a wait, or a hold. */
static void make_abandon(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;

    if (sim_chance(sim, 40)) {
        make_token(sim, c);
        return;
    }
    c->token = sim_below(sim, model->seq + 2);
    if (model->waiter_count > 0 && sim_chance(sim, 80))
        c->token = model->waiters[sim_below(sim, model->waiter_count)].ticket;
}

/* TIMEOUT was told: to a wait, a hold or a request, or several of them. */
static void make_timeout(struct sim *sim, struct hold_command *c)
{
    const struct model *model = sim->model;

    if (sim_chance(sim, 80))
        make_abandon(sim, c);
    if (model->request_count == 0 || !sim_chance(sim, 60))
        return;
    c->request = pool_name(
        sim, &model->requests[sim_below(sim, model->request_count)].id);
}

static void make_stock(struct sim *sim, struct hold_command *c)
{
    uint64_t extreme = sim_below(sim, 200);

    c->name = pick_name(sim, sim->profile.products);
    if (c->kind == HOLD_STOCK_SET)
        c->amount = extreme == 0        ? INT64_MAX
                    : sim->profile.wide ? 100000
                                        : (int64_t)sim_below(sim, 60);
    if (c->kind != HOLD_STOCK_ADD)
        return;
    c->amount = extreme == 0   ? INT64_MAX
                : extreme == 1 ? INT64_MIN
                               : (int64_t)sim_below(sim, 60) - 25;
    if (sim_chance(sim, 30))
        c->reason = hf_bytes_text("counted again");
}

static void make_items(struct sim *sim, struct hold_command *c)
{
    const struct model_reservation *known =
        model_find_reservation(sim->model, c->name);
    uint64_t count = sim_chance(sim, 2) ? 40 : 1 + sim_below(sim, 4);

    if (known != NULL && sim_chance(sim, 50)) {
        for (size_t i = 0; i < known->item_count; i++)
            hold_add_item(c, pool_name(sim, &known->items[i].sku),
                          known->items[i].quantity);
        return;
    }
    for (uint64_t i = 0; i < count; i++) {
        uint64_t extreme = sim_below(sim, 300);
        uint64_t quantity = extreme == 0 ? INT64_MAX : 1 + sim_below(sim, 5);
        hold_add_item(c, pick_name(sim, sim->profile.products + (extreme == 1)),
                      quantity);
    }
}

/* Reservation ids: of the pool, made by the engine, or made by the engine in
 * the near future. */
static void make_id(struct sim *sim, struct sim_command *out)
{
    struct hold_command *c = &out->command;
    const struct model *model = sim->model;

    c->name = pick_name(sim, sim->profile.ids);
    if (c->kind == HOLD_RESERVE) {
        if (sim_chance(sim, 3)) {
            model_make_id(out->id, sim->now_us,
                          model->seq + 1 + sim_below(sim, 3));
            c->name = hf_bytes(out->id, 26);
        } else if (sim_chance(sim, 25)) {
            c->name = hf_bytes(NULL, 0);
        }
    } else if (model->reservation_count > 0 && sim_chance(sim, 80)) {
        const struct model_reservation *r =
            &model->reservations[sim_below(sim, model->reservation_count)];
        memcpy(out->id, r->id.data, r->id.len);
        c->name = hf_bytes(out->id, r->id.len);
    }
}

static void make_reservation(struct sim *sim, struct sim_command *out)
{
    struct hold_command *c = &out->command;

    make_id(sim, out);
    if (c->kind == HOLD_RESERVE) {
        make_items(sim, c);
        if (sim_chance(sim, 50))
            c->owner = pick_owner(sim);
    }
    if (c->kind == HOLD_RESERVE || c->kind == HOLD_EXTEND)
        c->ttl_ms = pick_ttl_ms(sim);
    if (c->kind == HOLD_CANCEL && sim_chance(sim, 50))
        c->reason = hf_bytes_text("changed my mind");
}

static void add_bound(struct sim *sim, struct hold_command *c, const char *name,
                      uint64_t usual, bool may_be_huge)
{
    uint64_t value = usual;

    if (!sim->profile.wide && sim_chance(sim, 10))
        value = sim_below(sim, 5);
    if (may_be_huge && sim_chance(sim, 5))
        value = (uint64_t)INT64_MAX;
    if (sim->profile.wide || sim_chance(sim, 90))
        hold_add_item(c, hf_bytes_text(name), value);
}

static void make_bounds(struct sim *sim, struct hold_command *c)
{
    const struct sim_profile *p = &sim->profile;
    uint64_t keep_ms = sim_below(sim, p->ttl_max_ms * 3);

    add_bound(sim, c, "locks_max", p->locks - p->locks / 4, true);
    add_bound(sim, c, "waiters_max", p->wide ? 100 : 1 + sim_below(sim, 8),
              true);
    add_bound(sim, c, "products_max", p->products - p->products / 6, true);
    add_bound(sim, c, "reservations_max",
              p->wide ? SIM_NAMES_MAX : 1 + sim_below(sim, 25), false);
    add_bound(sim, c, "fences_max", p->fences, true);
    add_bound(sim, c, "requests_max",
              p->wide ? SIM_NAMES_MAX : 2 + sim_below(sim, 20), true);
    add_bound(sim, c, "request_keep_ms", keep_ms, true);
    add_bound(sim, c, "ended_keep_ms", keep_ms, true);
    if (sim_chance(sim, 10))
        hold_add_item(c, hf_bytes_text("colour"), 7);
    sim->bounds_due = false;
}

static enum hold_kind pick_kind(struct sim *sim)
{
    static const struct {
        enum hold_kind kind;
        uint64_t weight;
    } table[] = {
        {HOLD_TICK, 40},      {HOLD_ABANDON, 15},   {HOLD_LOCK, 230},
        {HOLD_UNLOCK, 120},   {HOLD_RENEW, 40},     {HOLD_FENCE, 30},
        {HOLD_STOCK_SET, 60}, {HOLD_STOCK_ADD, 50}, {HOLD_STOCK_DEL, 5},
        {HOLD_RESERVE, 160},  {HOLD_CONFIRM, 50},   {HOLD_CANCEL, 50},
        {HOLD_EXTEND, 30},    {HOLD_TIMEOUT, 20},   {HOLD_FENCE_DEL, 5},
    };
    uint64_t total = 0;

    if (sim->bounds_due || (!sim->profile.wide && sim_below(sim, 500) == 0))
        return HOLD_BOUNDS;
    if (sim_below(sim, 1500) == 0)
        return HOLD_RESTART;
    if (sim_below(sim, 3000) == 0)
        return HOLD_FLUSH;
    if (sim->profile.wide && sim_chance(sim, 70))
        return sim_chance(sim, 60) ? HOLD_LOCK : HOLD_RESERVE;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        total += table[i].weight;
    uint64_t at = sim_below(sim, total);
    for (size_t i = 0;; i++) {
        if (at < table[i].weight)
            return table[i].kind;
        at -= table[i].weight;
    }
}

/* Sends a command with a REQ again, sometimes with another argument. */
static bool make_repeat(struct sim *sim, struct sim_command *out)
{
    struct hf_buf *recent = &sim->recent[sim_below(sim, SIM_RECENT)];
    struct hold_command *c = &out->command;

    if (recent->len == 0)
        return false;
    memcpy(out->source, recent->data, recent->len);
    if (hold_decode(hf_bytes(out->source, recent->len), c) != HF_OK)
        abort(); /* what was encoded can be decoded */
    if (c->ttl_ms > 0 && c->ttl_ms < HOLD_TTL_MAX_MS && sim_chance(sim, 20))
        c->ttl_ms++;
    c->told = c->kind == HOLD_LOCK && sim_chance(sim, 20);
    c->now_us = make_time(sim);
    return true;
}

static void fill(struct sim *sim, struct sim_command *out)
{
    struct hold_command *c = &out->command;

    switch (c->kind) {
    case HOLD_LOCK:
        make_lock(sim, c);
        break;
    case HOLD_UNLOCK:
    case HOLD_RENEW:
    case HOLD_FENCE:
        make_token(sim, c);
        break;
    case HOLD_STOCK_SET:
    case HOLD_STOCK_ADD:
    case HOLD_STOCK_DEL:
        make_stock(sim, c);
        break;
    case HOLD_FENCE_DEL:
        c->name = pick_name(sim, sim->profile.fences);
        break;
    case HOLD_ABANDON:
        make_abandon(sim, c);
        break;
    case HOLD_TIMEOUT:
        make_timeout(sim, c);
        break;
    case HOLD_RESTART:
        c->amount = (int64_t)sim_below(sim, 5);
        break;
    case HOLD_BOUNDS:
        make_bounds(sim, c);
        break;
    case HOLD_TICK:
        c->amount = (int64_t)sim_below(sim, 2); /* all that is due, or a part */
        break;
    case HOLD_FLUSH:
        break;
    default:
        make_reservation(sim, out);
        break;
    }
}

static void clear(struct hold_command *c)
{
    memset(c, 0, offsetof(struct hold_command, items));
}

void sim_make_write(struct sim *sim, struct sim_command *out)
{
    struct hold_command *c = &out->command;

    clear(c);
    if (sim_chance(sim, 5) && make_repeat(sim, out)) {
        out->record_len = hold_encode(c, out->record);
        return;
    }
    c->now_us = make_time(sim);
    c->kind = pick_kind(sim);
    fill(sim, out);
    if (c->kind == HOLD_LOCK)
        c->told = sim_chance(sim, 4);
    if (sim_chance(sim, sim->profile.request_percent))
        c->request = pick_name(sim, sim->profile.requests);
    out->record_len = hold_encode(c, out->record);
    if (c->request.len == 0)
        return;
    struct hf_buf *recent = &sim->recent[sim->recent_next];
    recent->len = 0;
    if (hf_buf_append(recent, out->record, out->record_len) != HF_OK)
        abort();
    sim->recent_next = (sim->recent_next + 1) % SIM_RECENT;
}

void sim_make_ask(struct sim *sim, struct sim_command *out)
{
    static const enum hold_kind kinds[] = {HOLD_LOCK_INFO, HOLD_STOCK_GET,
                                           HOLD_LOCK_LIST, HOLD_STOCK_LIST,
                                           HOLD_RESERVATION};
    static const char *const patterns[] = {"",       "*",  "n1*",
                                           "?[0-5]", "a*", "*?*?[x0-9]"};
    struct hold_command *c = &out->command;

    clear(c);
    c->now_us = make_time(sim);
    c->kind = kinds[sim_below(sim, sizeof kinds / sizeof kinds[0])];
    switch (c->kind) {
    case HOLD_LOCK_INFO:
        c->name = pick_name(sim, sim->profile.locks);
        break;
    case HOLD_RESERVATION:
        make_id(sim, out);
        break;
    case HOLD_STOCK_GET:
        c->item_count = 1 + (uint32_t)sim_below(sim, 4);
        for (uint32_t i = 0; i < c->item_count; i++)
            c->items[i].sku = pick_name(sim, sim->profile.products + 1);
        break;
    default: /* lists */
        c->name = hf_bytes_text(
            patterns[sim_below(sim, sizeof patterns / sizeof patterns[0])]);
        c->count = sim_below(sim, 6);
        break;
    }
}
