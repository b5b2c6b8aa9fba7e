/* limit_parse.c - the words of LIMIT. */
#include <stdio.h>

#include "flow/rate_state.h"
#include "server/limit.h"

#define NS_PER_MS      UINT64_C(1000000)
#define MS_MAX         LIMIT_PER_MAX_MS
#define ID_MAX         128u
#define PRINTED(bytes) (int)((bytes).len < 64 ? (bytes).len : 64), (bytes).data

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

/* Every option, NAME value or NAME alone, in any order. */
enum {
    OPT_RATE = 1 << 0,
    OPT_PER = 1 << 1,
    OPT_BURST = 1 << 2,
    OPT_ALGORITHM = 1 << 3,
    OPT_KEEP = 1 << 4,
    OPT_SHADOW = 1 << 5,
    OPT_POLICY = 1 << 6,
    OPT_ALSO = 1 << 7,
    OPT_COST = 1 << 8,
    OPT_PRIORITY = 1 << 9,
    OPT_PEEK = 1 << 10,
    OPT_REFUND = 1 << 11,
    OPT_HOLD = 1 << 12,
    OPT_WAIT = 1 << 13,
    OPT_REQ = 1 << 14,
    OPT_HEADERS = 1 << 15,
    PLAIN_OPTIONS = OPT_RATE | OPT_PER | OPT_BURST | OPT_COST,
    RULE_OPTIONS =
        OPT_RATE | OPT_PER | OPT_BURST | OPT_ALGORITHM | OPT_KEEP | OPT_SHADOW,
};

static const struct {
    const char *name;
    unsigned option;
    unsigned values;
} options[] = {
    {"RATE", OPT_RATE, 1},     {"PER", OPT_PER, 1},
    {"BURST", OPT_BURST, 1},   {"ALGORITHM", OPT_ALGORITHM, 1},
    {"KEEP", OPT_KEEP, 1},     {"SHADOW", OPT_SHADOW, 0},
    {"POLICY", OPT_POLICY, 1}, {"ALSO", OPT_ALSO, 2},
    {"COST", OPT_COST, 1},     {"PRIORITY", OPT_PRIORITY, 1},
    {"PEEK", OPT_PEEK, 0},     {"REFUND", OPT_REFUND, 1},
    {"HOLD", OPT_HOLD, 1},     {"WAIT", OPT_WAIT, 1},
    {"REQ", OPT_REQ, 1},       {"HEADERS", OPT_HEADERS, 0},
};
#define OPTIONS (sizeof options / sizeof options[0])

struct reading {
    struct limits *limits;
    const struct hf_bytes *args;
    size_t count;
    size_t at;
    unsigned seen;
    struct limit_call *call;
    struct hf_limiter_rule *rule;
    uint64_t rate;
    uint64_t per_ms;
    uint64_t burst;
    char *error;
};

static enum hf_status wrong(struct reading *r, const char *what,
                            struct hf_bytes value)
{
    snprintf(r->error, PARSE_ERROR_MAX, "BADARG %s: '%.*s'%s", what,
             PRINTED(value), value.len > 64 ? "..." : "");
    return HF_INVALID;
}

static enum hf_status misses(struct reading *r, const char *what)
{
    snprintf(r->error, PARSE_ERROR_MAX, "BADARG %s", what);
    return HF_INVALID;
}

static enum hf_status number(struct reading *r, const char *what, uint64_t min,
                             uint64_t max, uint64_t *out)
{
    return parse_number(r->args[r->at++], what, min, max, out, r->error);
}

static enum hf_status algorithm(struct reading *r)
{
    struct hf_bytes word = r->args[r->at++];

    for (size_t i = 0; i < KINDS; i++) {
        if (!hf_bytes_is(word, kinds[i]))
            continue;
        r->rule->rate.kind = (enum hf_rate_kind)i;
        return HF_OK;
    }
    return wrong(r, "ALGORITHM is BUCKET, GCRA, FIXED, SLIDING, LOG or LEASES",
                 word);
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
    struct hf_bytes list = r->args[r->at++];

    for (unsigned i = 1; list.data != NULL; i++) {
        struct hf_bytes word = piece(&list);
        if (i == HF_LIMITER_CLASSES)
            return wrong(r, "KEEP has three numbers at most", word);
        if (parse_number(word, "KEEP", 0, LIMIT_RATE_MAX,
                         &r->rule->keep_back[i], r->error) != HF_OK)
            return HF_INVALID;
    }
    return HF_OK;
}

/* The names of policies, with commas, for one key. */
static enum hf_status policies(struct reading *r, struct hf_bytes key)
{
    struct hf_bytes list = r->args[r->at++];
    struct limit_call *call = r->call;
    char name[HF_NAME_BYTES];

    call->has_policy = true;
    while (list.data != NULL) {
        struct hf_bytes word = piece(&list);
        if (word.len == 0 || word.len >= sizeof name ||
            memchr(word.data, '\0', word.len) != NULL)
            return wrong(r, "a policy's name has 1 to 31 bytes", word);
        if (call->count == HF_LIMITER_ASKS_MAX)
            return misses(r, "at most 16 policies in one call");
        memcpy(name, word.data, word.len);
        name[word.len] = '\0';
        if (call->count == 0)
            memcpy(call->policy, name, word.len + 1);
        struct hf_limiter_ask *ask = &call->asks[call->count];
        *ask = (struct hf_limiter_ask){.key = key.data, .key_len = key.len};
        if (hf_limiter_find(r->limits->limiter, name, &ask->rule, NULL) !=
            HF_OK) {
            snprintf(r->error, PARSE_ERROR_MAX,
                     "NOTFOUND no policy '%.*s', LIMIT DEFINE makes one",
                     PRINTED(word));
            return HF_NOTFOUND;
        }
        call->count++;
    }
    return HF_OK;
}

static enum hf_status take_key(struct reading *r, struct hf_bytes *key)
{
    return parse_text(r->args[r->at++], "key", HF_LIMITER_KEY_MAX, key,
                      r->error);
}

static enum hf_status rule_value(struct reading *r, unsigned option)
{
    switch (option) {
    case OPT_RATE:
        return number(r, "RATE", 1, LIMIT_RATE_MAX, &r->rate);
    case OPT_PER:
        return number(r, "PER", 1, LIMIT_PER_MAX_MS, &r->per_ms);
    case OPT_BURST:
        return number(r, "BURST", 1, LIMIT_RATE_MAX, &r->burst);
    case OPT_ALGORITHM:
        return algorithm(r);
    case OPT_KEEP:
        return keep(r);
    default:
        r->rule->shadow = true;
        return HF_OK;
    }
}

static enum hf_status call_value(struct reading *r, unsigned option)
{
    struct limit_call *call = r->call;
    struct hf_bytes key;

    switch (option) {
    case OPT_POLICY:
        return policies(r, r->args[0]);
    case OPT_ALSO:
        return take_key(r, &key) == HF_OK ? policies(r, key) : HF_INVALID;
    case OPT_COST:
        return number(r, "COST", 0, LIMIT_RATE_MAX, &call->cost);
    case OPT_PRIORITY:
        return number(r, "PRIORITY", 0, HF_LIMITER_CLASSES - 1,
                      &call->priority);
    case OPT_REFUND:
        call->refund = true;
        return number(r, "REFUND", 1, INT64_MAX, &call->refund_ns);
    case OPT_HOLD:
        return number(r, "HOLD", 1, MS_MAX, &call->hold_ms);
    case OPT_WAIT:
        return number(r, "WAIT", 0, MS_MAX, &call->wait_ms);
    case OPT_REQ:
        return parse_text(r->args[r->at++], "request id", ID_MAX,
                          &call->request, r->error);
    case OPT_PEEK:
        call->peek = true;
        return HF_OK;
    default:
        call->headers = true;
        return HF_OK;
    }
}

static enum hf_status read_options(struct reading *r, unsigned allowed)
{
    while (r->at < r->count) {
        struct hf_bytes word = r->args[r->at];
        size_t i = 0;
        while (i < OPTIONS && !hf_bytes_is(word, options[i].name))
            i++;
        if (i == OPTIONS || (options[i].option & allowed) == 0)
            return wrong(r, "unknown option", word);
        if ((r->seen & options[i].option) != 0 && options[i].option != OPT_ALSO)
            return wrong(r, "option given twice", word);
        r->at++;
        r->seen |= options[i].option;
        if (r->count - r->at < options[i].values)
            return wrong(r, "a value is missing behind", word);
        enum hf_status status = (options[i].option & RULE_OPTIONS) != 0
                                    ? rule_value(r, options[i].option)
                                    : call_value(r, options[i].option);
        if (status != HF_OK)
            return status;
    }
    return HF_OK;
}

/* RATE, PER and BURST have been read: the rule that they make. */
static enum hf_status finish_rule(struct reading *r)
{
    struct hf_rate_rule *rate = &r->rule->rate;
    bool has_burst = rate->kind == HF_RATE_BUCKET || rate->kind == HF_RATE_GCRA;
    uint64_t keeps = r->burst != 0 ? r->burst : r->rate;
    struct hf_rate_plan plan;

    if (r->rate == 0 || r->per_ms == 0)
        return misses(r, "RATE n and PER ms are needed, or POLICY name");
    if (!has_burst && r->burst != 0)
        return misses(r, "BURST is for BUCKET and GCRA");
    for (unsigned i = 1; i < HF_LIMITER_CLASSES; i++) {
        if (r->rule->keep_back[i] > keeps)
            return misses(r, "KEEP is more than there ever is");
    }
    rate->permits = (uint32_t)r->rate;
    rate->span_ns = r->per_ms * NS_PER_MS;
    rate->burst = (uint32_t)r->burst;
    if (rate->kind == HF_RATE_BUCKET && r->burst == 0)
        rate->burst = (uint32_t)r->rate;
    if ((rate->kind == HF_RATE_LOG || rate->kind == HF_RATE_LEASES) &&
        rate->permits > LIMIT_SLOTS_MAX)
        return misses(r, "LOG and LEASES have a RATE of 10000 at most");
    if (rate_plan_make(&plan, rate) != HF_OK)
        return misses(r, "these numbers cannot be: more than a billion a "
                         "second, or a burst that takes over 146 years");
    return HF_OK;
}

enum hf_status limit_parse_rule(const struct hf_bytes *args, size_t count,
                                struct hf_limiter_rule *out,
                                char error[PARSE_ERROR_MAX])
{
    struct reading r = {
        .args = args, .count = count, .rule = out, .error = error};

    *out = (struct hf_limiter_rule){0};
    enum hf_status status = read_options(&r, RULE_OPTIONS);
    return status == HF_OK ? finish_rule(&r) : status;
}

static enum hf_status check_together(struct reading *r)
{
    struct limit_call *call = r->call;
    unsigned actions = (call->peek ? 1u : 0) + (call->refund ? 1u : 0) +
                       (call->hold_ms > 0 ? 1u : 0);

    if (actions > 1)
        return misses(r, "PEEK, REFUND and HOLD exclude each other");
    if (call->wait_ms > 0 && (call->peek || call->refund))
        return misses(r, "PEEK and REFUND do not wait");
    if (call->request.len > 0 && call->wait_ms > 0)
        return misses(r, "REQ and WAIT exclude each other");
    if (call->request.len > 0 && call->peek)
        return misses(r, "PEEK changes nothing and takes no REQ");
    return HF_OK;
}

enum hf_status limit_parse(struct limits *limits, const struct hf_bytes *args,
                           size_t count, struct limit_call *out,
                           char error[PARSE_ERROR_MAX])
{
    struct reading r = {.limits = limits,
                        .args = args,
                        .count = count,
                        .call = out,
                        .rule = &out->own,
                        .error = error};
    struct hf_bytes key;

    *out = (struct limit_call){.cost = 1};
    if (take_key(&r, &key) != HF_OK)
        return HF_INVALID;
    enum hf_status status = read_options(&r, ~0u);
    if (status != HF_OK)
        return status;
    out->plain = (r.seen & ~(unsigned)PLAIN_OPTIONS) == 0;
    out->has_own = (r.seen & RULE_OPTIONS) != 0;
    if ((r.seen & OPT_ALSO) != 0 && (r.seen & (OPT_POLICY | OPT_RATE)) == 0)
        return misses(&r, "ALSO goes with POLICY or RATE for the first key");
    if (out->has_own && out->has_policy && (r.seen & OPT_RATE) == 0)
        return misses(&r, "BURST, ALGORITHM, KEEP and SHADOW go with RATE; a "
                          "policy has its own");
    if (out->has_own || !out->has_policy) {
        if (finish_rule(&r) != HF_OK)
            return HF_INVALID;
        if (out->count == HF_LIMITER_ASKS_MAX)
            return misses(&r, "at most 16 policies in one call");
        out->asks[out->count++] = (struct hf_limiter_ask){
            .own = &out->own, .key = key.data, .key_len = key.len};
    }
    for (uint32_t i = 0; i < out->count; i++)
        out->asks[i].cost = out->cost;
    return check_together(&r);
}
