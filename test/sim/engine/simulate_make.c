/* simulate_make.c - random commands, mostly sensible, sometimes not. */
#include <assert.h>

#include "sim/engine/simulate_parts.h"

#define DAY_US  (24u * 3600 * 1000000ull)
#define BACKLOG 320u /* more than one step sweeps */

uint64_t sim_below(struct sim *sim, uint64_t bound)
{
    return hf_random_below(&sim->random, bound);
}

bool sim_chance(struct sim *sim, uint64_t percent)
{
    return sim_below(sim, 100) < percent;
}

/* Paths that are related, or only look so: the bytes before and behind the
 * slash come next to it in the order of names. */
static const char *const paths[] = {
    "a",     "a/b",  "a/b/c", "a/c", "b",    "ab",        "a/b/d",   "b/a",
    "b/a/c", "ab/c", "a/",    "/",   "/a",   "a//b",      "a.",      "a./b",
    "a0",    "a0/b", "a/b.",  "b/",  "\xff", "\xff/\xff", "a/b/c/d", "a/e/f",
};
#define PATHS      (sizeof paths / sizeof paths[0])
#define PATHS_CORE 8u /* that come first, as a rule */

void sim_mix_paths(struct sim *sim)
{
    struct model_text *names = &sim->names[SIM_NAMES_MAX];
    unsigned count = sim_chance(sim, 70) ? PATHS_CORE : PATHS;

    for (unsigned i = 0; i < PATHS; i++)
        names[i] = model_text(hf_bytes_text(paths[i]));
    for (unsigned i = count - 1; i > 0; i--) {
        uint64_t j = sim_below(sim, i + 1);
        struct model_text name = names[i];
        names[i] = names[j];
        names[j] = name;
    }
}

static void make_paths(struct sim *sim)
{
    static const char *const forms[] = {"a/%u", "a/b/%u", "a/%u/x", "b/%u/c"};

    for (unsigned i = 0; i < SIM_NAMES_MAX; i++) {
        struct model_text *name = &sim->names[SIM_NAMES_MAX + i];
        name->len = (size_t)snprintf(name->data, sizeof name->data,
                                     forms[i % 4], i / 4);
    }
    sim_mix_paths(sim);
}

struct hf_bytes sim_lock_name(const struct sim *sim, uint64_t i)
{
    return model_bytes(&sim->names[sim->profile.paths ? SIM_NAMES_MAX + i : i]);
}

struct hf_bytes sim_pick_lock_name(struct sim *sim)
{
    return sim_lock_name(sim, sim_below(sim, sim->profile.locks));
}

/* One pool of names for everything: short ones, long ones, one with bytes
 * that are no letters, and some of which each is the start of the next; and a
 * second one for locks, of paths. */
void sim_make_names(struct sim *sim)
{
    make_paths(sim);
    for (unsigned i = 0; i < SIM_NAMES_MAX; i++) {
        struct model_text *name = &sim->names[i];
        name->len = (size_t)snprintf(name->data, sizeof name->data, "n%u", i);
        if (i % 9 == 3) {
            size_t len = 20 + sim_below(sim, HOLD_ID_MAX - 20);
            memset(name->data + name->len, 'x', len - name->len);
            name->len = len;
        }
    }
    sim_name_places(sim);
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
    p->products = p->wide ? 40 : 1 + sim_below(sim, 3 * spread);
    p->ids = p->wide ? SIM_NAMES_MAX : 1 + sim_below(sim, 6 * spread);
    p->requests = p->wide ? SIM_NAMES_MAX : 1 + sim_below(sim, 8 * spread);
    p->fences = 1 + sim_below(sim, 5);
    p->ttl_max_ms = 2 + sim_below(sim, sim_chance(sim, 50) ? 20 : 5000);
    p->request_percent = sim_below(sim, 25);
    p->wait_percent = sim_below(sim, 100);
    p->jump_percent = 10 + sim_below(sim, 70);
    if (p->wide)
        p->ttl_max_ms += 100;
    sim_make_lock_profile(sim);
    sim_make_stock_profile(sim);
    sim->profile_until =
        sim->step + (p->wide ? 5000 : 200) + sim_below(sim, 1500);
    sim->bounds_due = true;
}

/* How much will be due at a time. */
static size_t count_due(const struct model *model, uint64_t when_us)
{
    size_t count = 0;

    for (size_t i = 0; i < model->grant_count; i++)
        count += model->grants[i].expires_us <= when_us;
    for (size_t i = 0; i < model->wait_count; i++)
        count += model->waits[i].deadline_us <= when_us;
    for (size_t i = 0; i < model->buyer_count; i++)
        count += model->buyers[i].deadline_us <= when_us;
    for (size_t i = 0; i < model->reservation_count; i++)
        count += model->reservations[i].status == MODEL_PENDING &&
                 model->reservations[i].expires_us <= when_us;
    return count;
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
        uint64_t far_us = sim->profile.ttl_max_ms * 2000;
        bool backlog = count_due(sim->model, now_us + far_us) > BACKLOG;
        bool jump = sim_below(sim, backlog ? 10 : 5000) == 0;
        sim->now_us += jump ? far_us : sim_below(sim, 3);
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

struct hf_bytes sim_pick_name(struct sim *sim, uint64_t count)
{
    return model_bytes(&sim->names[sim_below(sim, count)]);
}

struct hf_bytes sim_pool_name(struct sim *sim, struct hf_bytes text)
{
    unsigned i = 0;

    while (!model_is(&sim->names[i], text))
        i++;
    return model_bytes(&sim->names[i]);
}

struct hf_bytes sim_owner(uint64_t i)
{
    static const char *const owners[SIM_OWNERS_MAX - 1] = {
        "ann", "bob", "worker-17.rack-4.example:4711:thread-12", "d", "e",
        "f",   "go"};
    static char longest[HOLD_OWNER_MAX];

    if (i < SIM_OWNERS_MAX - 1)
        return hf_bytes_text(owners[i]);
    memset(longest, 'o', sizeof longest);
    return hf_bytes(longest, sizeof longest);
}

struct hf_bytes sim_pick_owner(struct sim *sim)
{
    return sim_owner(sim_below(sim, sim->profile.owners));
}

struct hf_bytes sim_pool_owner(const struct model_text *text)
{
    uint64_t i = 0;

    while (!model_is(text, sim_owner(i)))
        i++;
    return sim_owner(i);
}

uint64_t sim_pick_ttl_ms(struct sim *sim)
{
    uint64_t kind = sim_below(sim, 100);

    if (kind == 0)
        return HOLD_TTL_MAX_MS;
    if (kind < 10 || sim->profile.wide)
        return sim->profile.ttl_max_ms;
    return 1 + sim_below(sim, sim->profile.ttl_max_ms);
}

static void make_tick(struct sim *sim, struct hold_command *c)
{
    c->amount = (int64_t)sim_below(sim, 2); /* all that is due, or a part */
}

/* How often each is made, and what no word or option says. A write that is not
 * here is made, too. */
static const struct {
    uint64_t weight;
    void (*make)(struct sim *sim, struct hold_command *c);
} mix[HOLD_KINDS] = {
    [HOLD_TICK] = {40, make_tick},
    [HOLD_ABANDON] = {25, sim_make_abandon},
    [HOLD_BOUNDS] = {0, sim_make_bounds},
    [HOLD_TIMEOUT] = {20, sim_make_timeout},
    [HOLD_GROUP] = {90, NULL},
    [HOLD_LOCK] = {400, sim_make_lock},
    [HOLD_UNLOCK] = {140, sim_make_lock},
    [HOLD_RENEW] = {40, NULL},
    [HOLD_FENCE_DEL] = {5, NULL},
    [HOLD_LOCKSET] = {120, sim_make_lock},
    [HOLD_UNLOCKSET] = {40, NULL},
    [HOLD_REVOKE] = {15, NULL},
    [HOLD_ELECT] = {20, sim_make_lock},
    [HOLD_RESIGN] = {10, NULL},
    [HOLD_PROCLAIM] = {10, sim_make_proclaim},
    [HOLD_KEY_SET] = {110, sim_make_key},
    [HOLD_KEY_DEL] = {60, sim_make_key},
    [HOLD_KEY_EXPIRE] = {50, sim_make_key},
    [HOLD_KEY_GET] = {0, sim_make_key},
    [HOLD_KEY_COUNT] = {0, sim_make_key},
    [HOLD_KEY_SCAN] = {0, sim_make_key},
    [HOLD_SESSION_OPEN] = {30, sim_make_open},
    [HOLD_SESSION_KEEP] = {20, NULL},
    [HOLD_SESSION_CLOSE] = {8, NULL},
    [HOLD_SESSION_LEFT] = {8, sim_make_left},
    [HOLD_STOCK_SET] = {40, NULL},
    [HOLD_STOCK_ADD] = {30, NULL},
    [HOLD_STOCK_DEL] = {5, NULL},
    [HOLD_STOCK_LOW] = {15, NULL},
    [HOLD_STOCK_ATTR] = {20, NULL},
    [HOLD_STOCK_LIMIT] = {20, sim_make_stock_limit},
    [HOLD_RESERVE] = {100, NULL},
    [HOLD_CONFIRM] = {30, NULL},
    [HOLD_CANCEL] = {30, NULL},
    [HOLD_EXPECT] = {25, sim_make_expect},
    [HOLD_ARRIVE] = {15, sim_make_expect},
    [HOLD_CLASS_SET] = {12, NULL},
    [HOLD_CLASS_DEL] = {2, NULL},
};
#define WEIGHT_USUAL 30u

static uint64_t weight_of(unsigned kind)
{
    bool write = hold_operations[kind].class == CLASS_WRITE;

    return write && mix[kind].weight == 0 ? WEIGHT_USUAL : mix[kind].weight;
}

enum hold_kind sim_pick_kind(struct sim *sim)
{
    uint64_t total = 0;
    unsigned kind = 0;

    if (sim->bounds_due || (!sim->profile.wide && sim_below(sim, 500) == 0))
        return HOLD_BOUNDS;
    if (sim_below(sim, 1500) == 0)
        return HOLD_RESTART;
    if (sim_below(sim, 3000) == 0)
        return HOLD_FLUSH;
    if (model_is_behind(sim->model, sim->now_us) && sim_chance(sim, 80))
        return sim_pick_settling(sim);
    if (sim->profile.wide && sim_chance(sim, 2))
        return HOLD_STOCK_SET;
    if (sim->profile.wide && sim_chance(sim, 85))
        return sim_chance(sim, 70)   ? HOLD_LOCK
               : sim_chance(sim, 70) ? HOLD_RESERVE
                                     : HOLD_LOCKSET;
    if (sim->profile.shop && sim_chance(sim, 80))
        return sim_pick_stock_kind(sim);
    if (sim->profile.deadlock && sim_chance(sim, 70))
        return sim->profile.ring || sim_chance(sim, 80) ? HOLD_LOCK
                                                        : HOLD_LOCKSET;
    for (unsigned i = 0; i < HOLD_KINDS; i++)
        total += weight_of(i);
    uint64_t at = sim_below(sim, total);
    for (; at >= weight_of(kind); kind++)
        at -= weight_of(kind);
    return (enum hold_kind)kind;
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
    c->told = hold_kind_waits(c->kind) && sim_chance(sim, 20);
    c->now_us = make_time(sim);
    return true;
}

static void make_word(struct sim *sim, struct sim_command *out,
                      enum hold_word word)
{
    static const char *const patterns[] = {"",       "*",  "n1*",
                                           "?[0-5]", "a*", "*?*?[x0-9]"};
    struct hold_command *c = &out->command;

    switch (word) {
    case WORD_NAME:
        c->name = sim_pick_lock(sim);
        break;
    case WORD_RESOURCE:
        c->name = sim_pick_name(sim, sim->profile.fences);
        break;
    case WORD_SKU:
        c->name = sim_pick_product(sim);
        break;
    case WORD_ID:
    case WORD_NEW_ID:
        sim_make_id(sim, out, word == WORD_NEW_ID);
        break;
    case WORD_PATTERN:
        c->name = hf_bytes_text(
            patterns[sim_below(sim, sizeof patterns / sizeof patterns[0])]);
        break;
    case WORD_TOKEN:
        sim_make_token(sim, c, hold_operations[c->kind].words[0] == WORD_NAME);
        break;
    case WORD_SESSION:
        c->token = sim_pick_session(sim);
        break;
    case WORD_TOTAL:
        c->amount = sim_pick_total(sim);
        break;
    case WORD_CHANGE:
        c->amount = sim_pick_change(sim);
        break;
    case WORD_SKUS:
        c->item_count = 1 + (uint32_t)sim_below(sim, 4);
        for (uint32_t i = 0; i < c->item_count; i++)
            c->items[i].sku =
                sim_chance(sim, 50)
                    ? sim_pick_product(sim)
                    : sim_pick_name(sim, sim->profile.products + 1);
        break;
    case WORD_LOW:
    case WORD_ATTRIBUTE:
    case WORD_VALUE:
        sim_make_stock_word(sim, c, word);
        break;
    case WORD_WANTED:
        hold_add_item(c, sim_pick_product(sim), 1 + sim_below(sim, 3));
        break;
    case WORD_QUEUE:
        c->note = sim_pick_name(sim, sim->profile.products);
        break;
    case WORD_CLASS:
        c->name = sim_pick_name(sim, SIM_CLASSES);
        break;
    case WORD_GROUP:
        sim_make_group_name(sim, c);
        break;
    case WORD_SKIP:
        c->amount = (int64_t)sim_below(sim, 5);
        c->flags = HOLD_GRAPH | (sim_chance(sim, 75) ? HOLD_SETTLED : 0);
        break;
    case WORD_UNITS: /* sim_make_expect() */
    case WORD_END:
    case HOLD_WORDS:
        break;
    }
}

static void make_option(struct sim *sim, struct sim_command *out,
                        enum hold_arg_bit option, bool required)
{
    struct hold_command *c = &out->command;

    switch (option) {
    case ARG_OWNER:
        if (required || sim_chance(sim, 50))
            c->owner = sim_pick_owner(sim);
        break;
    case ARG_REASON:
        if (sim_chance(sim, 40))
            c->reason = hf_bytes_text("changed my mind");
        break;
    case ARG_IF:
    case ARG_REF:
    case ARG_GROUP:
    case ARG_PREORDER:
        sim_make_stock_option(sim, c, option);
        break;
    case ARG_TTL: /* a class may do without, and what has one */
        if ((c->kind != HOLD_CLASS_SET && c->kind != HOLD_RESERVE &&
             c->kind != HOLD_WAITLIST_JOIN) ||
            sim_chance(sim, 70))
            c->ttl_ms = c->kind == HOLD_EXTEND && sim_chance(sim, 50)
                            ? 1 + sim_below(sim, sim->profile.ttl_max_ms)
                            : sim_pick_ttl_ms(sim);
        break;
    case ARG_CLASS:
        if (sim_chance(sim, sim->model->class_count > 0 ? 30 : 2))
            c->class = sim_pick_class(sim);
        break;
    case ARG_EXTENDS:
        c->count = sim_below(sim, 3);
        break;
    case ARG_LIFE:
        if (sim_chance(sim, 40))
            c->maxhold_ms = sim_pick_ttl_ms(sim) / 2 + 1;
        break;
    case ARG_WAIT:
        if (sim_chance(sim, sim->profile.wait_percent) &&
            sim->model->wait_count < MODEL_MAX / 2 &&
            sim->model->buyer_count < MODEL_MAX / 2)
            c->wait_ms = sim_pick_ttl_ms(sim);
        break;
    case ARG_ID:
        sim_make_id(sim, out, true);
        break;
    case ARG_STAY:
        if (sim_chance(sim, 70))
            c->delay_ms = sim_pick_ttl_ms(sim);
        break;
    case ARG_COUNT:
        c->count = sim_below(sim, 6);
        break;
    case ARG_ITEM:
    case ARG_PART:
        sim_make_items(sim, c);
        break;
    case ARG_BEST:
        c->flags |= sim_chance(sim, 15) ? HOLD_BEST : 0;
        break;
    case ARG_PLACE:
        if (!hold_may_book(c))
            sim_make_places(sim, c);
        break;
    default: /* REQ comes with any of them; pages begin at the front */
        sim_make_lock_option(sim, c, option);
        break;
    }
}

void sim_fill(struct sim *sim, struct sim_command *out)
{
    struct hold_command *c = &out->command;
    const struct hold_operation *operation = &hold_operations[c->kind];

    for (unsigned i = 0; i < HOLD_WORDS_MAX; i++)
        make_word(sim, out, (enum hold_word)operation->words[i]);
    for (unsigned bit = 0; bit < HOLD_ARGS; bit++) {
        if ((operation->options & HOLD_BIT(bit)) != 0)
            make_option(sim, out, (enum hold_arg_bit)bit,
                        (operation->required & HOLD_BIT(bit)) != 0);
    }
    if (mix[c->kind].make != NULL)
        mix[c->kind].make(sim, c);
    if (c->kind == HOLD_ABANDON || c->kind == HOLD_TIMEOUT)
        sim_make_give_up(sim, out);
    if (c->kind == HOLD_WAITLIST_LEAVE)
        sim_make_leave(sim, out);
    if (c->kind == HOLD_WAITLIST_LIST || c->kind == HOLD_EXPECTED)
        c->cursor = sim_below(sim, 4);
    if (c->kind == HOLD_STOCK_PLACES)
        sim_make_show_places(sim, c);
    if (c->wait_ms > 0)
        c->flags &= ~(uint64_t)HOLD_BEST;
    if (hold_kind_waits(c->kind))
        c->told = sim_chance(sim, 4);
}

static void clear(struct hold_command *c)
{
    memset(c, 0, offsetof(struct hold_command, items));
}

enum hold_kind sim_pick_ask(struct sim *sim)
{
    enum hold_kind kinds[HOLD_KINDS];
    unsigned count = 0;

    for (unsigned i = 0; i < HOLD_KINDS; i++) {
        if (hold_operations[i].class != CLASS_NONE &&
            !hold_kind_is_write((enum hold_kind)i) && i != HOLD_EXPLAIN)
            kinds[count++] = (enum hold_kind)i;
    }
    return kinds[sim_below(sim, count)];
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
    c->kind = sim_pick_kind(sim);
    sim_fill(sim, out);
    if (c->kind == HOLD_GROUP)
        sim_make_group(sim, out);
    if (sim_chance(sim, sim->profile.request_percent))
        c->request = sim_pick_name(sim, sim->profile.requests);
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
    struct hold_command *c = &out->command;

    clear(c);
    c->now_us = make_time(sim);
    c->kind = sim_pick_ask(sim);
    sim_fill(sim, out);
}
