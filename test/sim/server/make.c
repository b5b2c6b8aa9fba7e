/* make.c - draws requests. */
#include "sim/server/making.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/server/past.h"

#define BULK_ITEMS 15u

uint64_t make_epoch;

void words_add(struct words *words, const char *format, ...)
{
    va_list args;
    size_t room = sizeof words->text - words->len;

    assert(words->count < WORDS_MAX);
    va_start(args, format);
    int len = vsnprintf(words->text + words->len, room, format, args);
    va_end(args);
    assert(len >= 0 && (size_t)len < room);
    words->at[words->count] = (uint16_t)words->len;
    words->lens[words->count++] = (uint16_t)len;
    words->len += (size_t)len;
}

size_t words_list(const struct words *words, struct hf_bytes *out)
{
    for (size_t i = 0; i < words->count; i++)
        out[i] = hf_bytes(words->text + words->at[i], words->lens[i]);
    return words->count;
}

bool words_is(const struct words *words, size_t i, const char *text)
{
    return i < words->count && strlen(text) == words->lens[i] &&
           memcmp(words->text + words->at[i], text, words->lens[i]) == 0;
}

bool words_has(const struct words *words, const char *word)
{
    for (size_t i = 0; i < words->count; i++) {
        if (words_is(words, i, word))
            return true;
    }
    return false;
}

/* ---- Parts. ---- */

void add_name(struct making *m)
{
    words_add(m->out, "%s",
              mix_name(m->mix, dice_below(m->dice, m->mix->names)));
}

void add_sku(struct making *m)
{
    words_add(m->out, "%s", mix_sku(m->mix, dice_below(m->dice, m->mix->skus)));
}

void add_owner(struct making *m)
{
    uint64_t owner = m->client;

    if (dice_hit(m->dice, m->mix->share))
        owner = dice_below(m->dice, 3);
    words_add(m->out, "OWNER");
    words_add(m->out, "o%llu", ULL(owner));
}

void add_ms(struct making *m, const char *option, uint64_t most)
{
    words_add(m->out, "%s", option);
    words_add(m->out, "%llu", ULL(dice_scale(m->dice, 10, most)));
}

const struct known *pick(struct making *m, const struct known *own,
                         size_t count, const struct known *all,
                         size_t all_count)
{
    if (count > 0 && !dice_hit(m->dice, 150))
        return &own[dice_below(m->dice, count)];
    return all_count > 0 ? &all[dice_below(m->dice, all_count)] : NULL;
}

void add_pattern(struct making *m)
{
    static const char *const patterns[] = {
        "*", "a*", "s*", "[ab]", "?", "*a*a*a*a*a*a*z", "nothing",
    };

    if (dice_hit(m->dice, 700))
        words_add(m->out, "%s", patterns[dice_below(m->dice, 7)]);
    else
        words_add(m->out, "*");
    if (dice_hit(m->dice, 300)) {
        words_add(m->out, "COUNT");
        words_add(m->out, "%llu", ULL(dice_between(m->dice, 1, 1000)));
    }
    if (dice_hit(m->dice, 100)) {
        words_add(m->out, "CURSOR");
        words_add(m->out, "%llu", ULL(dice_below(m->dice, 10)));
    }
}

/* ---- Families. ---- */

/* IF a version that was told, or of a product that is not there. */
static void add_version(struct making *m)
{
    const char *sku = m->out->text + m->out->at[2];
    uint64_t version = knows_all.versions[(unsigned char)sku[1] % KNOWN_SKUS];

    words_add(m->out, "IF");
    words_add(m->out, "%llu", ULL(dice_hit(m->dice, 150) ? 0 : version));
}

/* How many units an owner may have: as a rule few, at times any number. */
static void make_limit_of(struct making *m)
{
    words_add(m->out, "STOCK");
    words_add(m->out, "LIMIT");
    add_sku(m);
    words_add(m->out, "%llu",
              ULL(dice_hit(m->dice, 200) ? 0 : dice_between(m->dice, 1, 6)));
}

/* A threshold, an attribute, or a limit. */
static void make_product(struct making *m)
{
    if (m->mix->quotas > 0 && dice_hit(m->dice, m->mix->quotas)) {
        make_limit_of(m);
        return;
    }
    bool low = dice_hit(m->dice, 500);

    words_add(m->out, "STOCK");
    words_add(m->out, low ? "LOW" : "ATTR");
    add_sku(m);
    if (low) {
        words_add(m->out, "%llu", ULL(dice_below(m->dice, m->mix->stock)));
        return;
    }
    words_add(m->out, "a%llu", ULL(dice_below(m->dice, 3)));
    if (dice_hit(m->dice, 700))
        words_add(m->out, "v%llu", ULL(dice_below(m->dice, 1000)));
}

static void make_stock(struct making *m, enum make_kind kind)
{
    static const char *const verbs[] = {
        [MAKE_STOCK_SET] = "SET", [MAKE_STOCK_ADD] = "ADD",
        [MAKE_STOCK_GET] = "GET", [MAKE_STOCK_LIST] = "LIST",
        [MAKE_STOCK_DEL] = "DEL",
    };
    uint64_t units = dice_scale(m->dice, 1, m->mix->stock);

    if (m->mix->books > 0 && dice_hit(m->dice, m->mix->books)) {
        make_expect(m);
        return;
    }
    if (kind <= MAKE_STOCK_ADD && dice_hit(m->dice, m->mix->products)) {
        make_product(m);
        return;
    }
    words_add(m->out, "STOCK");
    if (kind == MAKE_STOCK_LIST && dice_hit(m->dice, m->mix->places)) {
        words_add(m->out, "PLACES");
        words_add(m->out, "s");
        return;
    }
    words_add(m->out, "%s", verbs[kind]);
    if (kind == MAKE_STOCK_LIST) {
        add_pattern(m);
        return;
    }
    add_sku(m);
    if (kind == MAKE_STOCK_SET)
        words_add(m->out, "%llu", ULL(dice_below(m->dice, m->mix->stock + 1)));
    else if (kind == MAKE_STOCK_ADD)
        words_add(m->out, "%s%llu", dice_hit(m->dice, 300) ? "-" : "",
                  ULL(units));
    else if (kind == MAKE_STOCK_GET && dice_hit(m->dice, 300))
        add_sku(m);
    if (kind != MAKE_STOCK_GET && dice_hit(m->dice, m->mix->versions))
        add_version(m);
}

void add_items(struct making *m)
{
    uint64_t count = dice_scale(m->dice, 1, 3);

    for (uint64_t i = 0; i < count; i++) {
        words_add(m->out, "ITEM");
        add_sku(m);
        words_add(m->out, "%llu",
                  ULL(dice_scale(m->dice, 1, m->mix->stock / 2 + 1)));
    }
}

static void make_config(struct making *m)
{
    words_add(m->out, "CONFIG");
    if (dice_hit(m->dice, 500)) {
        words_add(m->out, "GET");
        words_add(m->out, "*");
        return;
    }
    words_add(m->out, "SET");
    switch (dice_below(m->dice, 4)) {
    case 0:
        words_add(m->out, "output-max-bytes");
        words_add(m->out, "%llu", ULL(dice_between(m->dice, 65536, 200000)));
        break;
    case 1:
        words_add(m->out, "locks-max");
        words_add(m->out, "%llu", ULL(dice_between(m->dice, 1000, 2000)));
        break;
    case 2:
        words_add(m->out, "log-level");
        words_add(m->out, dice_hit(m->dice, 500) ? "debug" : "info");
        break;
    default:
        words_add(m->out, "port");
        words_add(m->out, "1");
        break;
    }
}

static void make_describe(struct making *m)
{
    static const char *const lines[][3] = {
        {"COMMAND", "COUNT", NULL},  {"COMMAND", NULL, NULL},
        {"COMMAND", "DOCS", "LOCK"}, {"HELP", NULL, NULL},
        {"CLIENT", "ID", NULL},      {"CLIENT", "INFO", NULL},
        {"HELLO", "3", NULL},        {"HELLO", "2", NULL},
        {"SELECT", "0", NULL},       {"HELLO", "9", NULL},
    };
    const char *const *line = lines[dice_below(m->dice, 10)];

    for (int i = 0; i < 3 && line[i] != NULL; i++)
        words_add(m->out, "%s", line[i]);
}

static void make_wrong(struct making *m)
{
    switch (dice_below(m->dice, 6)) {
    case 0:
        words_add(m->out, "NONSENSE");
        words_add(m->out, "x");
        break;
    case 1:
        words_add(m->out, "LOCK"); /* no owner */
        add_name(m);
        break;
    case 2:
        words_add(m->out, "UNLOCK");
        add_name(m);
        words_add(m->out, "-5");
        break;
    case 3:
        words_add(m->out, "RESERVE");
        words_add(m->out, "*");
        words_add(m->out, "ITEM");
        add_sku(m); /* no quantity */
        break;
    case 4:
        words_add(m->out, "LIMIT");
        words_add(m->out, "k0");
        break;
    default:
        words_add(m->out, "STOCK");
        words_add(m->out, "SET");
        add_sku(m);
        words_add(m->out, "many");
        break;
    }
}

static void make_other(struct making *m, enum make_kind kind)
{
    switch (kind) {
    case MAKE_PING:
        words_add(m->out, dice_hit(m->dice, 500) ? "PING" : "ECHO");
        words_add(m->out, "x%llu", ULL(dice_below(m->dice, 1000)));
        break;
    case MAKE_INFO:
        words_add(m->out, dice_hit(m->dice, 500) ? "INFO" : "METRICS");
        break;
    case MAKE_CONFIG:
        make_config(m);
        break;
    case MAKE_DESCRIBE:
        make_describe(m);
        break;
    case MAKE_QUIT:
        words_add(m->out, "QUIT");
        break;
    case MAKE_FLUSH:
        words_add(m->out, "FLUSHALL");
        make_epoch++;
        break;
    default:
        make_wrong(m);
        break;
    }
}

static enum make_kind draw_kind(const struct mix *mix, struct dice *dice)
{
    uint64_t sum = 0;

    for (int i = 0; i < MAKE_KINDS; i++)
        sum += mix->weights[i];
    uint64_t at = dice_below(dice, sum);
    for (int i = 0; i < MAKE_KINDS; i++) {
        if (at < mix->weights[i])
            return (enum make_kind)i;
        at -= mix->weights[i];
    }
    return MAKE_PING;
}

static bool takes_request(enum make_kind kind)
{
    switch (kind) {
    case MAKE_LOCK:
    case MAKE_LOCK_WAIT:
    case MAKE_UNLOCK:
    case MAKE_RENEW:
    case MAKE_FENCE:
    case MAKE_LOCKSET:
    case MAKE_UNLOCKSET:
    case MAKE_RENEWSET:
    case MAKE_DOWNGRADE:
    case MAKE_REVOKE:
    case MAKE_SESSION_OPEN:
    case MAKE_SESSION_CLOSE:
    case MAKE_STOCK_SET:
    case MAKE_STOCK_ADD:
    case MAKE_STOCK_DEL:
    case MAKE_RESERVE:
    case MAKE_CONFIRM:
    case MAKE_CANCEL:
    case MAKE_EXTEND:
    case MAKE_LIMIT:
    case MAKE_LIMIT_POLICY:
        return true;
    default:
        return false;
    }
}

void add_request(struct making *m, uint64_t turn)
{
    if (!dice_hit(m->dice, m->mix->request))
        return;
    words_add(m->out, "REQ");
    words_add(m->out, "q%llu-%llu", ULL(m->client), ULL(turn));
}

void make_request(const struct mix *mix, struct dice *dice,
                  const struct knows *knows, uint64_t client, uint64_t turn,
                  struct words *out)
{
    struct making making = {mix, dice, knows, client, out};

    out->count = out->len = 0;
    if (mix->groups > 0 && dice_hit(dice, mix->groups)) {
        make_group(&making, turn);
        return;
    }
    if (mix->loose > 0 && dice_hit(dice, mix->loose)) {
        make_loose(&making);
        return;
    }
    if (mix->redis > 0 && dice_hit(dice, mix->redis)) {
        make_key(&making);
        return;
    }
    if (mix->past > 0 && dice_hit(dice, mix->past)) {
        make_past(&making);
        return;
    }
    if (mix->events > 0 && dice_hit(dice, mix->events)) {
        make_events(&making);
        return;
    }
    if (mix->elects > 0 && dice_hit(dice, mix->elects)) {
        make_election(&making, turn);
        return;
    }
    if (mix->seldom > 0 && dice_hit(dice, mix->seldom)) {
        make_seldom(&making);
        return;
    }
    enum make_kind kind = draw_kind(mix, dice);
    if (kind <= MAKE_LOCKS_LAST)
        make_lock(&making, kind);
    else if (kind <= MAKE_STOCK_DEL)
        make_stock(&making, kind);
    else if (kind <= MAKE_RESERVATION)
        make_reservation(&making, kind);
    else if (kind <= MAKE_LIMIT_OTHER)
        make_limit(&making, kind);
    else
        make_other(&making, kind);
    bool lists = (words_is(out, 0, "WAITLIST") && words_is(out, 1, "LIST")) ||
                 words_is(out, 1, "EXPECTED");
    if (takes_request(kind) && !lists && !words_has(out, "PEEK") &&
        !words_has(out, "BIND") && !words_has(out, "SETTLE"))
        add_request(&making, turn);
}

void make_first(const struct mix *mix, uint64_t sku, struct words *out)
{
    out->count = out->len = 0;
    words_add(out, "STOCK");
    words_add(out, "SET");
    words_add(out, "%s", mix_sku(mix, sku));
    words_add(out, "%llu", ULL(mix->stock));
}

void make_parting(const struct mix *mix, struct dice *dice, bool followed,
                  struct words *out, struct words *behind)
{
    bool set = mix->weights[MAKE_LOCKSET] > 0 && dice_hit(dice, 300);

    out->count = out->len = 0;
    if (mix->queue > 0 && dice_hit(dice, 400)) {
        struct making m = {.mix = mix, .dice = dice, .out = out};
        uint64_t id = dice_below(dice, 1ull << 40);
        words_add(out, "RESERVE");
        words_add(out, "w%llx", ULL(id));
        add_items(&m);
        add_queue(&m);
        behind->count = behind->len = 0;
        words_add(behind, "RESERVATION");
        words_add(behind, "w%llx", ULL(id));
        return;
    }
    words_add(out, set ? "LOCKSET" : "LOCK");
    if (set)
        words_add(out, "NAME");
    bool apart = followed && dice_hit(dice, 700);
    words_add(out, "%s",
              apart ? "p" : mix_name(mix, dice_below(dice, mix->names)));
    words_add(out, "OWNER");
    words_add(out, "p%llu", ULL(dice_below(dice, 1u << 30)));
    if (!mix->nowait && dice_hit(dice, apart ? 200 : 700)) {
        words_add(out, "WAIT");
        words_add(out, "%llu", ULL(dice_scale(dice, 10, mix->wait_ms)));
    }
    behind->count = behind->len = 0;
    words_add(behind, "FENCE");
    words_add(behind, "f0");
    words_add(behind, "1");
}

bool make_reentry(struct dice *dice, const struct knows *knows, uint64_t client,
                  struct words *out, struct words *behind)
{
    if (knows->lock_count == 0 || !dice_hit(dice, 500))
        return false;
    const struct known *lock =
        &knows->locks[dice_below(dice, knows->lock_count)];
    out->count = out->len = behind->count = behind->len = 0;
    words_add(out, "LOCK");
    words_add(out, "%s", lock->name);
    words_add(out, "OWNER");
    words_add(out, "o%llu", ULL(client));
    words_add(behind, "UNLOCK");
    words_add(behind, "%s", lock->name);
    words_add(behind, "%llu", ULL(lock->number));
    return true;
}

void make_bulk(const struct mix *mix, uint64_t style, struct words *out)
{
    out->count = out->len = 0;
    if (style == 0) {
        words_add(out, "STOCK");
        words_add(out, "LIST");
        words_add(out, "*a*a*a*a*z");
        return;
    }
    words_add(out, "RESERVE");
    words_add(out, "*");
    for (uint64_t i = 0; i < (style == 1 ? 1 : BULK_ITEMS); i++) {
        words_add(out, "ITEM");
        words_add(out, i == 0 ? "s0" : "a-product-with-a-long-name-%llu",
                  ULL(i));
        words_add(out, "1");
    }
    words_add(out, "TTL");
    words_add(out, "%llu", ULL(mix->ttl_ms));
}
