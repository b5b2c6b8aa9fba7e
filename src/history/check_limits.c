/* check_limits.c - no more than the burst and what time earns, in one run.
 *
 * Only plain rules are judged (LIMIT key RATE n PER ms [BURST n] [COST n]) and
 * only keys that are never asked about in another way. A run of the server
 * starts with full buckets.
 */
#include "history/check.h"

/* Beyond so many calls of one key only spans from the first call count. */
#define SPANS_MAX 1000u

struct rule {
    uint64_t rate;
    uint64_t per_ms;
    uint64_t burst;
    uint64_t cost;
};

struct taking {
    struct key key; /* by lo */
    const struct call *call;
    struct rule rule;
    bool plain;
    bool allowed;
};

static bool read_rule(const struct call *call, struct rule *rule)
{
    *rule = (struct rule){.cost = 1};
    for (uint32_t i = 2; i < call->word_count; i += 2) {
        uint64_t *place = hf_bytes_is(call->words[i], "RATE")    ? &rule->rate
                          : hf_bytes_is(call->words[i], "PER")   ? &rule->per_ms
                          : hf_bytes_is(call->words[i], "BURST") ? &rule->burst
                          : hf_bytes_is(call->words[i], "COST")  ? &rule->cost
                                                                 : NULL;
        if (place == NULL || i + 1 >= call->word_count ||
            hf_parse_u64(call->words[i + 1], place) != HF_OK)
            return false;
    }
    if (rule->burst == 0)
        rule->burst = rule->rate;
    return rule->rate > 0 && rule->per_ms > 0 && rule->cost <= UINT32_MAX;
}

static bool same_rule(const struct rule *a, const struct rule *b)
{
    return a->rate == b->rate && a->per_ms == b->per_ms && a->burst == b->burst;
}

/* Costs of calls that lie inside a span add up to what it can give. */
static void judge_span(struct check *c, const struct taking *all, size_t count)
{
    const struct rule *rule = &all[0].rule;
    const struct call *first = all[0].call;
    uint64_t spent = 0;
    uint64_t last_us = 0;

    for (size_t i = 0; i < count; i++) {
        const struct call *call = all[i].call;
        if (!all[i].allowed || call->run_end != first->run_end)
            continue;
        uint64_t hi_us = check_us(c, call->hi);
        last_us = hi_us > last_us ? hi_us : last_us;
        spent += all[i].rule.cost;
        double earned = (double)(last_us - check_us(c, first->lo)) *
                        (double)rule->rate / ((double)rule->per_ms * US_PER_MS);
        if ((double)spent > (double)rule->burst + earned + 1) {
            check_found(c, "limit", call->id, first->id,
                        "key %.*s was allowed %llu, and can have had %.0f only",
                        SHOW(call->name), (unsigned long long)spent,
                        (double)rule->burst + earned);
            return;
        }
    }
}

/* Denied, though all that may have been taken leaves enough. */
static void judge_denied(struct check *c, const struct taking *all,
                         size_t count)
{
    uint64_t taken = 0;
    const struct call *run = all[0].call;

    for (size_t i = 0; i < count; i++) {
        const struct call *call = all[i].call;
        uint64_t cost = all[i].rule.cost;
        if (call->run_end != run->run_end) {
            run = call;
            taken = 0;
        }
        for (size_t j = i; all[i].call->outcome == OUTCOME_DONE &&
                           !all[i].allowed && j < count;
             j++) {
            if (j == i)
                continue;
            if (all[j].call->lo > call->hi)
                break;
            if (all[j].allowed || all[j].call->outcome == OUTCOME_UNKNOWN)
                cost += all[j].rule.cost;
        }
        if (call->outcome == OUTCOME_DONE && !all[i].allowed &&
            taken + cost <= all[i].rule.burst)
            check_found(c, "denied", call->id, 0,
                        "key %.*s was denied, though at most %llu of %llu were "
                        "taken",
                        SHOW(call->name), (unsigned long long)taken,
                        (unsigned long long)all[i].rule.burst);
        if (all[i].allowed || call->outcome == OUTCOME_UNKNOWN)
            taken += all[i].rule.cost;
    }
}

/* All calls about one key. */
static void judge(struct check *c, void *items, size_t count)
{
    const struct taking *all = items;

    for (size_t i = 0; i < count; i++) {
        if (!all[i].plain || !same_rule(&all[i].rule, &all[0].rule))
            return;
    }
    for (size_t i = 0; i < count; i++) {
        bool begins =
            i == 0 || all[i - 1].call->run_end != all[i].call->run_end;
        if (begins || count <= SPANS_MAX)
            judge_span(c, all + i, count - i);
    }
    if (c->closed)
        judge_denied(c, all, count);
}

/* A key that is named in any other way is not plain. */
static bool is_limit(const struct call *call)
{
    return call->verb == VERB_LIMIT ||
           hf_bytes_is(call->words[0], "CL.THROTTLE") ||
           hf_bytes_is(call->words[0], "GCRA");
}

void check_limits(struct check *c)
{
    struct list all = {0};
    int64_t allowed;

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        struct hf_bytes name = call->name;
        if (!is_limit(call) || call->outcome == OUTCOME_REFUSED)
            continue;
        if (name.data == NULL && call->word_count > 1)
            name = call->words[1];
        struct taking *taking = check_push(c, &all, sizeof *taking);
        *taking = (struct taking){.key = {name, {call->lo}}, .call = call};
        taking->plain = call->verb == VERB_LIMIT &&
                        read_rule(call, &taking->rule) &&
                        (call->outcome == OUTCOME_UNKNOWN ||
                         resp_field_number(call->reply, "allowed", &allowed));
        taking->allowed =
            taking->plain && call->outcome == OUTCOME_DONE && allowed == 1;
    }
    check_groups(c, &all, sizeof(struct taking), judge);
}
