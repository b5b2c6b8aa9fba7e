/* make_group.c - draws groups: MULTI, commands, EXEC, as one list of words. */
#include "sim/server/making.h"

/* Limits of which groups take permits, and nobody else has. */
void add_group_limit(struct making *m)
{
    words_add(m->out, "LIMIT");
    words_add(m->out, "g%llu", ULL(dice_below(m->dice, m->mix->keys)));
    words_add(m->out, "RATE");
    words_add(m->out, "6");
    words_add(m->out, "PER");
    words_add(m->out, "6000");
    if (dice_hit(m->dice, 300)) {
        words_add(m->out, "COST");
        words_add(m->out, "%llu", ULL(dice_between(m->dice, 1, 4)));
    }
}

void add_group_name(struct making *m)
{
    if (dice_hit(m->dice, 500))
        add_name(m);
    else
        words_add(m->out, "x%llu", ULL(dice_below(m->dice, m->mix->clients)));
}

static void next(struct making *m)
{
    words_add(m->out, ";");
}

/* Reservations have names of their own, so that nobody else can have made
 * them. */
static void add_booking(struct making *m, uint64_t turn)
{
    struct known *ids = knows_all.ids;

    next(m);
    words_add(m->out, "RESERVE");
    words_add(m->out, "g%llu-%llu", ULL(m->client), ULL(turn));
    size_t last = m->out->count - 1;
    add_items(m);
    add_ms(m, "TTL", m->mix->ttl_ms);
    knows_keep(ids, &knows_all.id_count,
               hf_bytes(m->out->text + m->out->at[last], m->out->lens[last]));
    if (!dice_hit(m->dice, 400))
        return;
    next(m);
    words_add(m->out, dice_hit(m->dice, 700) ? "CONFIRM" : "CANCEL");
    words_add(m->out, "g%llu-%llu", ULL(m->client), ULL(turn));
}

static void add_lock(struct making *m)
{
    next(m);
    words_add(m->out, "LOCK");
    add_group_name(m);
    words_add(m->out, "OWNER");
    words_add(m->out, "g%llu", ULL(dice_below(m->dice, 1u << 30)));
    add_ms(m, "TTL", m->mix->ttl_ms);
    if (dice_hit(m->dice, m->mix->shared))
        words_add(m->out, "SHARED");
    if (dice_hit(m->dice, m->mix->trees))
        words_add(m->out, "TREE");
}

/* A limit, a fence, units. */
static void make_checkout(struct making *m, uint64_t turn)
{
    for (int i = 0; i < 2 && dice_hit(m->dice, i == 0 ? 700 : 300); i++) {
        next(m);
        add_group_limit(m);
    }
    if (dice_hit(m->dice, 400))
        add_lock(m);
    if (dice_hit(m->dice, 300)) {
        next(m);
        words_add(m->out, "FENCE");
        words_add(m->out, "f%llu", ULL(dice_below(m->dice, 2)));
        words_add(m->out, "%llu", ULL(knows_all.token_max));
    }
    add_booking(m, turn);
}

/* Units go from one product to another. */
static void make_transfer(struct making *m)
{
    uint64_t units = dice_scale(m->dice, 1, m->mix->stock / 10 + 1);
    uint64_t from = dice_below(m->dice, m->mix->skus);
    uint64_t to = (from + 1) % m->mix->skus;

    for (int i = 0; i < 2; i++) {
        next(m);
        words_add(m->out, "STOCK");
        words_add(m->out, "ADD");
        words_add(m->out, "%s", mix_sku(m->mix, i == 0 ? from : to));
        words_add(m->out, "%s%llu", i == 0 ? "-" : "", ULL(units));
    }
    if (dice_hit(m->dice, 300)) {
        next(m);
        words_add(m->out, "STOCK");
        words_add(m->out, "GET");
        words_add(m->out, "%s", mix_sku(m->mix, from));
        words_add(m->out, "%s", mix_sku(m->mix, to));
    }
    if (dice_hit(m->dice, 300)) {
        next(m);
        add_group_limit(m);
    }
}

/* One lock is given back, if it is held, and another taken. */
static void make_change(struct making *m)
{
    const struct known *lock = pick(m, m->knows->locks, m->knows->lock_count,
                                    knows_all.locks, knows_all.lock_count);
    static const char *const verbs[] = {"HELD", "RENEW", "UNLOCK"};

    if (dice_hit(m->dice, 300))
        add_lock(m); /* so that both sides of an UNLOCK have a number */
    for (uint64_t i = dice_below(m->dice, 3); lock != NULL && i < 3; i += 2) {
        next(m);
        words_add(m->out, "%s", verbs[i]);
        words_add(m->out, "%s", lock->name);
        words_add(m->out, "%llu", ULL(lock->number));
        if (i == 1)
            add_ms(m, "TTL", m->mix->ttl_ms);
    }
    add_lock(m);
    next(m);
    words_add(m->out, "LOCKINFO");
    add_group_name(m);
}

/* Anything, also what cannot be queued. */
static void make_mixed(struct making *m, uint64_t turn)
{
    uint64_t count = dice_below(m->dice, 5);
    struct words words;

    for (uint64_t i = 0; i < count; i++) {
        struct hf_bytes list[WORDS_MAX];
        struct mix plain = *m->mix;
        bool any = dice_hit(m->dice, 50);
        plain.groups = plain.loose = 0;
        plain.request = any ? 200 : 0;
        for (int tries = 0; tries < 8; tries++) {
            make_request(&plain, m->dice, m->knows, m->client, turn, &words);
            if (any || words_may_group(&words))
                break;
        }
        size_t words_count = words_list(&words, list);
        if (m->out->count + words_count + 8 > WORDS_MAX ||
            m->out->len + words.len + 100 > WORDS_TEXT_MAX)
            break;
        next(m);
        for (size_t j = 0; j < words_count; j++)
            words_add(m->out, "%.*s", (int)list[j].len, list[j].data);
    }
}

size_t words_until(const struct words *words, size_t i, struct words *out)
{
    size_t from = i;

    out->count = out->len = 0;
    for (; i < words->count && !words_is(words, i, ";"); i++)
        words_add(out, "%.*s", (int)words->lens[i], words->text + words->at[i]);
    return i - from;
}

bool words_may_group(const struct words *words)
{
    static const char *const verbs[] = {
        "LOCK",      "UNLOCK",   "RENEW",  "DOWNGRADE", "LOCKSET",
        "UNLOCKSET", "RENEWSET", "HELD",   "LOCKINFO",  "FENCE",
        "RESERVE",   "CONFIRM",  "CANCEL", "EXTEND",    "RESERVATION",
        "ELECT",     "RESIGN",   "LEADER", "PROCLAIM",
    };

    if (words_is(words, 0, "STOCK"))
        return !words_is(words, 1, "LIST");
    if (words_is(words, 0, "LIMIT"))
        return words->count > 4 && !words_is(words, 1, "SETTLE") &&
               !words_is(words, 1, "DEFINE") && !words_has(words, "WAIT") &&
               !words_has(words, "HOLD") && !words_has(words, "PEEK") &&
               !words_has(words, "HEADERS");
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        if (words_is(words, 0, verbs[i]))
            return true;
    }
    return false;
}

void make_group(struct making *m, uint64_t turn)
{
    words_add(m->out, "MULTI");
    switch (dice_below(m->dice, 6)) {
    case 0:
    case 1:
        make_checkout(m, turn);
        break;
    case 2:
    case 3:
        make_transfer(m);
        break;
    case 4:
        make_change(m);
        break;
    default:
        make_mixed(m, turn);
        break;
    }
    next(m);
    if (dice_hit(m->dice, 30)) {
        words_add(m->out, "DISCARD");
        return;
    }
    words_add(m->out, "EXEC");
    if (dice_hit(m->dice, m->mix->request)) {
        bool used = dice_hit(m->dice, 30); /* for something else, perhaps */
        words_add(m->out, "REQ");
        words_add(m->out, "q%llu-%llu", ULL(m->client),
                  ULL(used ? turn / 10000 : turn));
    }
}

void make_loose(struct making *m)
{
    static const char *const verbs[] = {"MULTI", "MULTI", "EXEC", "EXEC",
                                        "DISCARD"};

    words_add(m->out, "%s", verbs[dice_below(m->dice, 5)]);
}
