/* limit_parse.c - the arguments of the commands about limits. */
#include <assert.h>
#include <stdio.h>

#include "base/hash.h"
#include "holdfast/rate.h"
#include "server/errors.h"
#include "server/limit.h"

#define MS_MAX LIMIT_PER_MAX_MS

static const char *const kinds[] = {
    [HF_RATE_BUCKET] = "BUCKET", [HF_RATE_GCRA] = "GCRA",
    [HF_RATE_FIXED] = "FIXED",   [HF_RATE_SLIDING] = "SLIDING",
    [HF_RATE_LOG] = "LOG",       [HF_RATE_LEASES] = "LEASES",
};
#define KINDS (sizeof kinds / sizeof kinds[0])

const char *limit_kind_name(enum hf_rate_kind kind)
{
    return kinds[kind];
}

#define AT(field) .place = offsetof(struct limit_words, field)

/* In the order in which the syntax shows them. */
#define OPTIONS(OPTION)                                                     \
    OPTION(RATE, "n", .type = TYPE_NUMBER, AT(rate), .min = 1,              \
           .max = LIMIT_RATE_MAX)                                           \
    OPTION(PER, "ms", .type = TYPE_NUMBER, AT(per_ms), .min = 1,            \
           .max = LIMIT_PER_MAX_MS)                                         \
    OPTION(BURST, "n", .type = TYPE_NUMBER, AT(burst), .min = 1,            \
           .max = LIMIT_RATE_MAX)                                           \
    OPTION(ALGORITHM, "BUCKET|GCRA|FIXED|SLIDING|LOG|LEASES",               \
           .type = TYPE_OWN, .min = 1)                                      \
    OPTION(KEEP, "n,n,n", .type = TYPE_OWN, .min = 1)                       \
    OPTION(POLICY, "name,...", .type = TYPE_OWN, .min = 1)                  \
    OPTION(ALSO, "key name,...", .type = TYPE_OWN, .many = true, .min = 2)  \
    OPTION(COST, "n", .type = TYPE_NUMBER, AT(cost), .max = LIMIT_RATE_MAX) \
    OPTION(PRIORITY, "0-3", .type = TYPE_NUMBER, AT(priority),              \
           .max = HF_LIMITER_CLASSES - 1)                                   \
    OPTION(PEEK, "", "[PEEK", .type = TYPE_FLAG)                            \
    OPTION(REFUND, "taken", "| REFUND taken", TYPE_NUMBER, AT(refund_ns),   \
           .min = 1, .max = INT64_MAX)                                      \
    OPTION(HOLD, "ms", "| HOLD ms]", TYPE_NUMBER, AT(hold_ms), .min = 1,    \
           .max = MS_MAX)                                                   \
    OPTION(WAIT, "ms", .type = TYPE_NUMBER, AT(wait_ms), .max = MS_MAX)     \
    OPTION(SHADOW, "", .type = TYPE_FLAG)                                   \
    OPTION(HEADERS, "", .type = TYPE_FLAG)                                  \
    OPTION(REQ, "id", .type = TYPE_TEXT, AT(request), .max = HOLD_ID_MAX)   \
    OPTION(TOKENS, "n", .type = TYPE_SIGNED, AT(quantity))

/* The key of CL.THROTTLE and GCRA is looked at last. */
#define WORDS(WORD)                                                           \
    WORD(KEY, "key", .type = TYPE_TEXT, AT(key), .max = HF_LIMITER_KEY_MAX)   \
    WORD(ANY_KEY, "key", .type = TYPE_BYTES, AT(key))                         \
    WORD(NAME, "name", .type = TYPE_TEXT, AT(name), .max = HF_NAME_BYTES - 1) \
    WORD(HOLD, "hold", .type = TYPE_NUMBER, AT(hold), .min = 1,               \
         .max = INT64_MAX)                                                    \
    WORD(COUNT, "count", .type = TYPE_NUMBER, .optional = true, AT(count),    \
         .min = 1, .max = LIMIT_TOP_MAX)                                      \
    WORD(MAX_BURST, "max_burst", .type = TYPE_SIGNED, AT(max_burst))          \
    WORD(PERMITS, "count", .type = TYPE_SIGNED, AT(permits))                  \
    WORD(TOKENS_PER_PERIOD, "tokens_per_period", .type = TYPE_SIGNED,         \
         AT(permits))                                                         \
    WORD(PERIOD, "period", .type = TYPE_SIGNED, AT(period_s))                 \
    WORD(QUANTITY, "quantity", .type = TYPE_SIGNED, .optional = true,         \
         AT(quantity))

#define OPTION_NUMBER(option, ...) OPT_##option,
#define WORD_NUMBER(word, ...)     word,
#define OPTION_ROW(option, ...)    {#option, __VA_ARGS__},
#define WORD_ROW(word, ...)        {__VA_ARGS__},
enum option { OPTIONS(OPTION_NUMBER) OPTION_COUNT };
enum word { END, WORDS(WORD_NUMBER) };
static const struct hold_arg options[] = {OPTIONS(OPTION_ROW)};
static const struct hold_arg words[] = {{.name = NULL}, WORDS(WORD_ROW)};

static struct vocabulary vocabulary = {.words = words,
                                       .options = options,
                                       .option_count = OPTION_COUNT,
                                       .last = OPT_REQ};

#define BIT(option) HOLD_BIT(OPT_##option)
#define PLAIN       (BIT(RATE) | BIT(PER) | BIT(BURST) | BIT(COST))
#define RULE                                                          \
    (BIT(RATE) | BIT(PER) | BIT(BURST) | BIT(ALGORITHM) | BIT(KEEP) | \
     BIT(SHADOW))

const struct shape limit_take_shape = {&vocabulary, {KEY}, BIT(TOKENS) - 1, 0};
const struct shape limit_define_shape = {
    &vocabulary, {NAME}, RULE, BIT(RATE) | BIT(PER)};
const struct shape limit_drop_shape = {&vocabulary, {NAME}, 0, 0};
const struct shape limit_policies_shape = {&vocabulary, {END}, 0, 0};
const struct shape limit_settle_shape = {
    &vocabulary, {HOLD}, BIT(COST), BIT(COST)};
const struct shape limit_top_shape = {&vocabulary, {COUNT}, 0, 0};
const struct shape limit_cell_shape = {
    &vocabulary, {ANY_KEY, MAX_BURST, PERMITS, PERIOD, QUANTITY}, 0, 0};
const struct shape limit_gcra_shape = {
    &vocabulary,
    {ANY_KEY, MAX_BURST, TOKENS_PER_PERIOD, PERIOD},
    BIT(TOKENS),
    0};

/* A LIMIT or a LIMIT DEFINE that is being read. */
struct reading {
    struct parse parse;
    struct limit_words *words;
    struct limits *limits;
    struct limit_call *call; /* NULL: of a DEFINE */
    struct hf_limiter_rule *rule;
};

static enum hf_status misses(struct reading *r, const char *what)
{
    snprintf(r->parse.error, PARSE_ERROR_MAX, "%s", what);
    return HF_INVALID;
}

static enum hf_status algorithm(struct reading *r)
{
    struct hf_bytes word = r->parse.args[r->parse.at++];

    for (size_t i = 0; i < KINDS; i++) {
        if (!hf_bytes_is(word, kinds[i]))
            continue;
        r->rule->rate.kind = (enum hf_rate_kind)i;
        return HF_OK;
    }
    return parse_wrong(&r->parse, WRONG_ALGORITHM, word);
}

/* The next piece of a list with commas. */
static struct hf_bytes piece(struct hf_bytes *list)
{
    const char *comma = memchr(list->data, ',', list->len);
    size_t len = comma == NULL ? list->len : (size_t)(comma - list->data);
    struct hf_bytes first = hf_bytes(list->data, len);

    if (comma == NULL)
        *list = hf_bytes(NULL, 0);
    else
        *list = hf_bytes(comma + 1, list->len - len - 1);
    return first;
}

/* KEEP n,n,n: what classes 1, 2 and 3 leave to those above. */
static enum hf_status keep(struct reading *r)
{
    struct hf_bytes list = r->parse.args[r->parse.at++];

    for (unsigned i = 1; list.data != NULL; i++) {
        struct hf_bytes word = piece(&list);
        if (i == HF_LIMITER_CLASSES)
            return parse_wrong(&r->parse, WRONG_KEEPS, word);
        if (parse_number(word, "KEEP", 0, LIMIT_RATE_MAX,
                         &r->rule->keep_back[i], r->parse.error) != HF_OK)
            return HF_INVALID;
    }
    return HF_OK;
}

/* The names of policies, with commas, for one key. */
static enum hf_status policies(struct reading *r, struct hf_bytes key)
{
    struct hf_bytes list = r->parse.args[r->parse.at++];
    struct limit_call *call = r->call;
    char name[HF_NAME_BYTES];

    while (list.data != NULL) {
        struct hf_bytes word = piece(&list);
        if (word.len == 0 || word.len >= sizeof name ||
            memchr(word.data, '\0', word.len) != NULL)
            return parse_wrong(&r->parse, WRONG_POLICY, word);
        if (call->count == HF_LIMITER_ASKS_MAX)
            return misses(r, WRONG_POLICIES);
        memcpy(name, word.data, word.len);
        name[word.len] = '\0';
        if (call->count == 0)
            memcpy(call->policy, name, word.len + 1);
        struct hf_limiter_ask *ask = &call->asks[call->count];
        *ask = (struct hf_limiter_ask){.key = key.data, .key_len = key.len};
        if (hf_limiter_find(r->limits->limiter, name, &ask->rule, NULL) !=
            HF_OK) {
            snprintf(r->parse.error, PARSE_ERROR_MAX, WRONG_NO_POLICY,
                     PRINTED(word));
            return HF_NOTFOUND;
        }
        call->count++;
    }
    return HF_OK;
}

static enum hf_status take_own(struct parse *p, unsigned option)
{
    struct reading *r = p->context;
    struct hf_bytes key;

    switch (option) {
    case OPT_ALGORITHM:
        return algorithm(r);
    case OPT_KEEP:
        return keep(r);
    case OPT_POLICY:
        return policies(r, r->words->key);
    default:
        assert(option == OPT_ALSO);
        if (parse_text(p->args[p->at++], "key", HF_LIMITER_KEY_MAX, &key,
                       p->error) != HF_OK)
            return HF_INVALID;
        return policies(r, key);
    }
}

/* Can the rule be worked out? Mostly it is the one of the call before. */
static bool works(const struct hf_rate_rule *rule)
{
    static struct hf_rate_rule good; /* the last that could; the loop's */
    struct hf_rate_plan plan;

    if (rule->kind == good.kind && rule->permits == good.permits &&
        rule->burst == good.burst && rule->span_ns == good.span_ns)
        return true;
    if (hf_rate_plan_make(&plan, rule) != HF_OK)
        return false;
    good = *rule;
    return true;
}

/* RATE, PER and BURST have been read: the rule that they make. */
static enum hf_status finish_rule(struct reading *r)
{
    struct hf_rate_rule *rate = &r->rule->rate;
    bool has_burst = rate->kind == HF_RATE_BUCKET || rate->kind == HF_RATE_GCRA;
    uint64_t permits = r->words->rate;
    uint64_t burst = r->words->burst;
    uint64_t keeps = burst != 0 ? burst : permits;

    if (permits == 0 || r->words->per_ms == 0)
        return misses(r, WRONG_RULE);
    if (!has_burst && burst != 0)
        return misses(r, WRONG_BURST);
    for (unsigned i = 1; i < HF_LIMITER_CLASSES; i++) {
        if (r->rule->keep_back[i] <= keeps)
            continue;
        snprintf(r->parse.error, PARSE_ERROR_MAX, WRONG_KEEP,
                 (unsigned long long)keeps);
        return HF_INVALID;
    }
    rate->permits = (uint32_t)permits;
    rate->span_ns = r->words->per_ms * HF_NS_PER_MS;
    rate->burst = (uint32_t)burst;
    if (rate->kind == HF_RATE_BUCKET && burst == 0)
        rate->burst = (uint32_t)permits;
    if ((rate->kind == HF_RATE_LOG || rate->kind == HF_RATE_LEASES) &&
        rate->permits > LIMIT_SLOTS_MAX)
        return misses(r, WRONG_SLOTS);
    if (!works(rate))
        return misses(r, WRONG_RATE);
    return HF_OK;
}

/* Reads the words; HF_OK, or the error says why not. */
static enum hf_status read_words(struct reading *r, const struct shape *shape,
                                 const struct hf_bytes *args, size_t count,
                                 char *error)
{
    r->parse = (struct parse){.shape = shape,
                              .args = args,
                              .count = count,
                              .out = r->words,
                              .error = error,
                              .own = take_own,
                              .context = r};
    *r->words = (struct limit_words){.cost = 1};
    *r->rule = (struct hf_limiter_rule){0};
    return parse_shape(&r->parse);
}

enum hf_status limit_parse_words(const struct shape *shape,
                                 const struct asked *asked,
                                 struct limit_words *out, size_t *at,
                                 char error[PARSE_ERROR_MAX])
{
    struct parse p = {.shape = shape,
                      .args = asked->args,
                      .count = asked->count,
                      .out = out,
                      .error = error};
    enum hf_status status = parse_shape(&p);

    *at = p.at;
    return status;
}

enum hf_status limit_parse_rule(const struct hf_bytes *args, size_t count,
                                struct hf_bytes *name,
                                struct hf_limiter_rule *out,
                                char error[PARSE_ERROR_MAX])
{
    struct limit_words given;
    struct reading r = {.words = &given, .rule = out};
    enum hf_status status =
        read_words(&r, &limit_define_shape, args, count, error);

    *name = given.name;
    if ((r.parse.seen & BIT(SHADOW)) != 0)
        out->shadow = true;
    return status == HF_OK ? finish_rule(&r) : status;
}

static enum hf_status check_together(struct reading *r)
{
    const struct limit_call *call = r->call;
    bool waits = call->words.wait_ms > 0, named = call->words.request.len > 0;
    uint64_t actions = r->parse.seen & (BIT(PEEK) | BIT(REFUND) | BIT(HOLD));

    if ((actions & (actions - 1)) != 0) /* more than one */
        return misses(r, WRONG_ACTIONS);
    if (waits && (actions & ~BIT(HOLD)) != 0)
        return misses(r, WRONG_WAIT);
    if (named && waits)
        return misses(r, WRONG_REQ);
    if (named && call->peek)
        return misses(r, WRONG_PEEK);
    return HF_OK;
}

enum hf_status limit_parse(struct limits *limits, const struct hf_bytes *args,
                           size_t count, struct limit_call *out,
                           char error[PARSE_ERROR_MAX])
{
    struct reading r;

    r.limits = limits;
    r.call = out;
    r.words = &out->words;
    r.rule = &out->own;
    out->count = 0;
    out->policy[0] = '\0';
    enum hf_status status =
        read_words(&r, &limit_take_shape, args, count, error);
    if (status != HF_OK)
        return status;
    uint64_t seen = r.parse.seen;
    bool has_own = (seen & RULE) != 0, has_policy = out->count > 0;
    out->own.shadow = (seen & BIT(SHADOW)) != 0;
    out->plain = (seen & ~PLAIN) == 0;
    out->peek = (seen & BIT(PEEK)) != 0;
    out->headers = (seen & BIT(HEADERS)) != 0;
    if ((seen & BIT(ALSO)) != 0 && (seen & (BIT(POLICY) | BIT(RATE))) == 0)
        return misses(&r, WRONG_ALSO);
    if (has_own && has_policy && (seen & BIT(RATE)) == 0)
        return misses(&r, WRONG_OWN);
    if (has_own || !has_policy) {
        if (finish_rule(&r) != HF_OK)
            return HF_INVALID;
        if (out->count == HF_LIMITER_ASKS_MAX)
            return misses(&r, WRONG_POLICIES);
        out->asks[out->count++] =
            (struct hf_limiter_ask){.own = &out->own,
                                    .key = r.words->key.data,
                                    .key_len = r.words->key.len};
    }
    for (uint32_t i = 0; i < out->count; i++)
        out->asks[i].cost = out->words.cost;
    return check_together(&r);
}

static uint64_t hash_word(uint64_t hash, struct hf_bytes word)
{
    struct hf_hash_seed seed = {{1, 2}}; /* compares requests of one client */

    return (hash ^ hf_hash(seed, word)) * UINT64_C(0x9e3779b97f4a7c15);
}

uint64_t limit_hash(const struct hf_bytes *args, size_t count,
                    const struct limit_call *call)
{
    uint64_t hash = hash_word(count, args[0]);

    for (size_t i = 1; i < count;) {
        unsigned option = parse_option(&limit_take_shape, args[i++]);
        hash = hash_word(hash, hf_bytes_text(options[option].name));
        for (size_t left = parse_values(&options[option]); left > 0; left--) {
            struct hf_bytes value = args[i++];
            if (option == OPT_ALGORITHM)
                value = hf_bytes_text(limit_kind_name(call->own.rate.kind));
            hash = hash_word(hash, value);
        }
    }
    return hash;
}
