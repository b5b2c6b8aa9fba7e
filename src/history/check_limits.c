/* check_limits.c - no more than the burst and what time earns, in one run, and
 * no less; holds of permits and how they were settled.
 *
 * Judged are keys that are only asked about with numbers of their own, always
 * the same (LIMIT key RATE n PER ms [BURST n] with COST, WAIT, HOLD, PEEK,
 * HEADERS and REQ). A run of the server starts with full buckets and without
 * holds. What a bucket has lies between two bounds:
 *
 *   at most   its burst and what was earned, without what was surely taken;
 *             holds from before may come back
 *   at least  its burst without all that may have been taken, less what was
 *             surely earned in between; what came back is left out
 *
 * Settling above the hold may leave a bucket in debt, by its burst at most.
 */
#include "history/check.h"

/* Beyond so many calls of one key only spans from the first call count. */
#define SPANS_MAX 1000u

/* A cost that nothing is known beyond. */
#define COST_ANY (1ull << 40)

struct rule {
    uint64_t rate;
    uint64_t per_ms;
    uint64_t burst;
    uint64_t cost;
    uint64_t hold_ms;
    bool peek;
    bool repeats; /* with a REQ: the answer may be of an earlier call */
};

struct taking {
    struct key key; /* by lo */
    const struct call *call;
    struct rule rule;
    bool plain;
    bool allowed;
    bool judged; /* what it was told is of its own moment */
    uint32_t lo;
    uint32_t hi;
    uint64_t least; /* taken, and not given back */
    uint64_t most;  /* taken */
    uint64_t debt;  /* taken, though it may not be there */
    uint64_t back;  /* may come back, until: */
    uint64_t back_us;
    uint64_t hold; /* its number; 0: none */
    uint64_t lent; /* taken by a group, and given back when it was told */
};

/* A call about a hold, by its number and run; those that make it first. */
struct step {
    struct key key;
    const struct call *call; /* NULL: it makes the hold */
    size_t taking;
    uint64_t cost;
};

struct limits {
    struct list takings; /* of struct taking */
    struct list steps;   /* of struct step */
    struct list strays;  /* of const struct call *: of holds nobody was told */
};

static bool read_rule(const struct call *call, struct rule *rule)
{
    uint64_t skipped;

    *rule = (struct rule){.cost = 1};
    for (uint32_t i = 2; i < call->word_count; i++) {
        struct hf_bytes word = call->words[i];
        uint64_t *place = hf_bytes_is(word, "RATE")    ? &rule->rate
                          : hf_bytes_is(word, "PER")   ? &rule->per_ms
                          : hf_bytes_is(word, "BURST") ? &rule->burst
                          : hf_bytes_is(word, "COST")  ? &rule->cost
                          : hf_bytes_is(word, "HOLD")  ? &rule->hold_ms
                          : hf_bytes_is(word, "WAIT")  ? &skipped
                                                       : NULL;
        if (hf_bytes_is(word, "PEEK")) {
            rule->peek = true;
        } else if (hf_bytes_is(word, "REQ")) {
            rule->repeats = true;
            i++;
        } else if (!hf_bytes_is(word, "HEADERS")) {
            if (place == NULL || ++i >= call->word_count ||
                hf_parse_u64(call->words[i], place) != HF_OK)
                return false;
        }
    }
    if (rule->burst == 0)
        rule->burst = rule->rate;
    return rule->rate > 0 && rule->per_ms > 0 && rule->cost <= UINT32_MAX;
}

/* Permits that groups had meanwhile which gave them back. */
static uint64_t lent_to_groups(const struct taking *all, size_t count,
                               const struct taking *t)
{
    uint64_t lent = 0;

    for (size_t i = 0; i < count; i++) {
        if (all[i].lo <= t->hi && all[i].hi >= t->lo)
            lent += all[i].lent;
    }
    return lent;
}

static bool same_rule(const struct rule *a, const struct rule *b)
{
    return a->rate == b->rate && a->per_ms == b->per_ms && a->burst == b->burst;
}

static double earned_in(const struct rule *rule, uint64_t from_us,
                        uint64_t to_us)
{
    return to_us <= from_us ? 0
                            : (double)(to_us - from_us) * (double)rule->rate /
                                  ((double)rule->per_ms * US_PER_MS);
}

/* ---- At most. ---- */

/* What may come back in a span from there on, of holds from before it. */
static uint64_t may_come_back(const struct check *c, const struct taking *all,
                              const struct taking *first)
{
    uint64_t back = 0;

    for (const struct taking *t = all; t < first; t++) {
        if (t->call->run_end == first->call->run_end &&
            t->back_us >= check_us(c, first->lo))
            back += t->back;
    }
    return back;
}

/* Costs of calls that lie inside a span add up to what it can give. */
static void judge_span(struct check *c, const struct taking *first,
                       const struct taking *end, uint64_t back)
{
    const struct rule *rule = &first->rule;
    uint64_t spent = 0;
    uint64_t last_us = 0;

    /* once: what is beyond the debt that a bucket can have is not taken */
    if (first->debt > 0)
        spent = first->debt < 2 * rule->burst ? first->debt : 2 * rule->burst;
    for (const struct taking *t = first; t < end; t++) {
        if (t->call->run_end != first->call->run_end ||
            (t->least == 0 && t != first))
            continue;
        uint64_t hi_us = check_us(c, t->hi);
        last_us = hi_us > last_us ? hi_us : last_us;
        spent += t->least;
        double most = (double)(rule->burst + back) +
                      earned_in(rule, check_us(c, first->lo), last_us);
        if (t->least > 0 && (double)spent > most + 1) {
            check_found(c, "limit", t->call->id, first->call->id,
                        "key %.*s was allowed %llu, and can have had %.0f only",
                        SHOW(t->key.name), (unsigned long long)spent, most);
            return;
        }
    }
}

/* ---- At least. ---- */

/* What may have been taken up to a position, all in all, and what of it time
 * had not surely earned back then. */
struct sum {
    struct key key; /* by position */
    uint64_t most;
    double left;
};

static size_t sums_until(const struct sum *sums, size_t count, uint64_t at)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;
        if (sums[middle].key.by[0] <= at)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/* Sums by `lo` or by `hi`. */
static struct sum *add_up(struct check *c, const struct taking *all,
                          size_t count, bool by_hi)
{
    struct list list = {0};
    const struct rule *rule = &all[0].rule;

    for (size_t i = 0; i < count; i++) {
        struct sum *sum = check_push(c, &list, sizeof *sum);
        *sum = (struct sum){.key.by = {by_hi ? all[i].hi : all[i].lo},
                            .most = all[i].most};
    }
    check_sort(&list, sizeof(struct sum));
    struct sum *sums = list.data;
    for (size_t i = 0; i < count; i++) {
        sums[i].left = (double)sums[i].most;
        if (i == 0)
            continue;
        double before =
            sums[i - 1].left -
            earned_in(rule, check_us(c, (uint32_t)sums[i - 1].key.by[0]),
                      check_us(c, (uint32_t)sums[i].key.by[0]));
        sums[i].left += before > 0 ? before : 0;
        sums[i].most += sums[i - 1].most;
    }
    return sums;
}

/* Denied, or told of fewer, though all that may have been taken leaves more.
 * One permit of doubt where times count, another where it is rounded. */
static void judge_told(struct check *c, const struct taking *t, double least,
                       double surely)
{
    int64_t told = 0;

    if (t->rule.peek || t->allowed)
        (void)resp_field_number(t->call->reply, "remaining", &told);
    if (!t->allowed &&
        ((double)t->rule.cost <= surely || (double)t->rule.cost <= least - 1))
        check_found(c, "denied", t->call->id, 0,
                    "key %.*s was denied %llu, though at least %.0f were there",
                    SHOW(t->key.name), (unsigned long long)t->rule.cost,
                    surely > least - 1 ? surely : least - 1);
    else if (t->allowed && ((double)told < surely || (double)told < least - 2))
        check_found(c, "denied", t->call->id, 0,
                    "key %.*s: %lld remaining were told, and at least %.0f "
                    "were there",
                    SHOW(t->key.name), (long long)told,
                    surely > least - 2 ? surely : least - 2);
}

/* All calls about one key in one run. */
static void judge_least(struct check *c, const struct taking *all, size_t count)
{
    const struct sum *by_lo = add_up(c, all, count, false);
    const struct sum *by_hi = add_up(c, all, count, true);
    const struct rule *rule = &all[0].rule;

    for (size_t i = 0; i < count; i++) {
        const struct taking *t = &all[i];
        if (!t->judged)
            continue;
        /* What was surely before it, and what may have been. */
        size_t past = sums_until(by_hi, count, t->lo);
        size_t until = sums_until(by_lo, count, t->hi);
        uint64_t most = by_lo[until - 1].most + lent_to_groups(all, count, t);
        double left = 0;
        if (past > 0) {
            const struct sum *sum = &by_hi[past - 1];
            left = sum->left - earned_in(rule,
                                         check_us(c, (uint32_t)sum->key.by[0]),
                                         check_us(c, t->lo));
            left = left > 0 ? left : 0;
            left += (double)(most - sum->most);
        } else {
            left = (double)most;
        }
        judge_told(c, t, (double)rule->burst - left,
                   (double)rule->burst - (double)most);
    }
}

/* All calls about one key. */
static void judge(struct check *c, void *items, size_t count)
{
    const struct taking *all = items;
    const struct taking *end = all + count;

    for (size_t i = 0; i < count; i++) {
        if (!all[i].plain || !same_rule(&all[i].rule, &all[0].rule))
            return;
    }
    for (const struct taking *t = all; t < end; t++) {
        bool begins = t == all || t[-1].call->run_end != t->call->run_end;
        if (begins || count <= SPANS_MAX)
            judge_span(c, t, end, may_come_back(c, all, t));
    }
    for (size_t from = 0, next; c->closed && from < count; from = next) {
        next = from + 1;
        while (next < count &&
               all[next].call->run_end == all[from].call->run_end)
            next++;
        judge_least(c, all + from, next - from);
    }
}

/* ---- Holds. ---- */

static bool is_settle(const struct call *call, struct step *step)
{
    return call->verb == VERB_LIMIT && call->word_count == 5 &&
           hf_bytes_is(call->words[1], "SETTLE") &&
           hf_bytes_is(call->words[3], "COST") &&
           hf_parse_u64(call->words[2], &step->key.by[0]) == HF_OK &&
           hf_parse_u64(call->words[4], &step->cost) == HF_OK;
}

/* When what was held is back by itself, if it was not settled. */
static uint64_t back_by(const struct check *c, uint32_t at, uint64_t hold_ms)
{
    uint64_t us = check_us(c, at);

    if (__builtin_mul_overflow(hold_ms, (uint64_t)US_PER_MS, &hold_ms) ||
        __builtin_add_overflow(us, hold_ms, &us))
        return UINT64_MAX;
    return us;
}

/* Of a hold that a settling was told about: it was there, and is there. */
static void judge_settling(struct check *c, const struct taking *held,
                           const struct call *call, bool others)
{
    uint64_t early_us = back_by(c, held->lo, held->rule.hold_ms);
    uint64_t late_us = back_by(c, held->hi, held->rule.hold_ms);

    if (call->outcome == OUTCOME_DONE && late_us < UINT64_MAX &&
        check_us(c, call->lo) > late_us + CHECK_ROUNDED_US)
        check_found(c, "settled", call->id, held->call->id,
                    "hold %llu of key %.*s was settled when it was over",
                    (unsigned long long)held->hold, SHOW(held->key.name));
    if (held->judged && check_code(call, "NOTFOUND") && !others &&
        held->hi < call->lo &&
        check_us(c, call->hi) + CHECK_ROUNDED_US < early_us)
        check_found(c, "settled", call->id, held->call->id,
                    "hold %llu of key %.*s is not found, and nobody settled it",
                    (unsigned long long)held->hold, SHOW(held->key.name));
}

/* What was spent beyond the hold, when it was settled. */
static void add_debt(struct check *c, struct limits *limits, size_t held,
                     const struct call *call, uint64_t cost)
{
    struct taking *debt = check_push(c, &limits->takings, sizeof *debt);
    const struct taking *hold = (struct taking *)limits->takings.data + held;

    *debt = (struct taking){.key = {hold->key.name, {call->lo}},
                            .call = call,
                            .rule = hold->rule,
                            .plain = true,
                            .lo = call->lo,
                            .hi = call->hi,
                            .most = cost - hold->rule.cost};
    if (call->outcome == OUTCOME_DONE)
        debt->debt = debt->most;
}

/* All calls about one hold: steps[0] makes it. */
static void follow(struct check *c, struct limits *limits,
                   const struct step *steps, size_t count)
{
    size_t held = steps[0].taking;
    struct taking *hold = (struct taking *)limits->takings.data + held;
    const struct step *done = NULL;
    size_t may = 0;

    for (size_t i = 1; i < count; i++) {
        if (steps[i].call == NULL || steps[i].call->outcome == OUTCOME_REFUSED)
            continue;
        may++;
        if (done != NULL && steps[i].call->outcome == OUTCOME_DONE)
            check_found(c, "settled", steps[i].call->id, done->call->id,
                        "hold %llu was settled twice",
                        (unsigned long long)hold->hold);
        if (steps[i].call->outcome == OUTCOME_DONE)
            done = &steps[i];
    }
    for (size_t i = 1; i < count && hold->plain; i++) {
        if (steps[i].call != NULL)
            judge_settling(c, hold, steps[i].call, may > 0);
    }
    if (done != NULL && hold->judged) {
        uint64_t cost = hold->rule.cost;
        hold->least = done->cost < cost ? done->cost : cost;
        hold->back = cost - hold->least;
        hold->back_us = check_us(c, done->call->hi);
    }
    for (size_t i = 1; i < count; i++) {
        const struct call *call = steps[i].call;
        if (call != NULL && (done == NULL || done == &steps[i]) &&
            call->outcome != OUTCOME_REFUSED &&
            steps[i].cost >
                ((struct taking *)limits->takings.data + held)->rule.cost)
            add_debt(c, limits, held, call, steps[i].cost);
    }
}

/* A hold whose number nobody was told may have been settled by chance, with
 * the number of one from before a restart. */
static void judge_strays(struct limits *limits)
{
    struct taking *all = limits->takings.data;
    struct call *const *strays = limits->strays.data;

    for (size_t i = 0; i < limits->takings.count; i++) {
        struct taking *t = &all[i];
        for (size_t j = 0; t->plain && t->rule.hold_ms > 0 &&
                           t->call->outcome == OUTCOME_UNKNOWN &&
                           t->most < COST_ANY && j < limits->strays.count;
             j++) {
            if (strays[j]->run_end == t->call->run_end &&
                strays[j]->hi >= t->lo)
                t->most = COST_ANY;
        }
    }
}

static void follow_holds(struct check *c, struct limits *limits)
{
    const struct step *steps;
    size_t next;

    check_sort(&limits->steps, sizeof *steps);
    steps = limits->steps.data;
    for (size_t i = 0; i < limits->steps.count; i = next) {
        next = i + 1;
        while (next < limits->steps.count &&
               steps[next].key.by[0] == steps[i].key.by[0] &&
               steps[next].key.by[1] == steps[i].key.by[1])
            next++;
        if (steps[i].call == NULL) {
            follow(c, limits, steps + i, next - i);
            continue;
        }
        for (size_t j = i; j < next; j++) {
            if (steps[j].call->outcome != OUTCOME_REFUSED)
                *(const struct call **)check_push(
                    c, &limits->strays, sizeof steps[j].call) = steps[j].call;
        }
    }
    judge_strays(limits);
}

/* ---- What was asked. ---- */

/* A key that is named in any other way is not plain. */
static bool is_limit(const struct call *call)
{
    return call->verb == VERB_LIMIT ||
           hf_bytes_is(call->words[0], "CL.THROTTLE") ||
           hf_bytes_is(call->words[0], "GCRA");
}

static bool read_taking(const struct check *c, struct taking *t)
{
    const struct call *call = t->call;
    int64_t number = 0;

    if (call->verb != VERB_LIMIT || !read_rule(call, &t->rule) ||
        (call->outcome == OUTCOME_DONE &&
         !resp_field_number(call->reply, "allowed", &number)))
        return false;
    t->allowed = call->outcome == OUTCOME_DONE && number == 1;
    t->rule.repeats = t->rule.repeats || check_repeats(call);
    t->judged = (call->outcome == OUTCOME_DONE && !t->rule.repeats) ||
                check_code(call, "DENIED");
    if (t->rule.peek)
        return true;
    /* a group that is told again, or refused, gives back what it had */
    bool again = t->allowed && call->group != NULL && !call->may;
    if (again ||
        (call->outcome == OUTCOME_REFUSED && !check_code(call, "DENIED")))
        t->lent = t->rule.cost;
    else if (t->allowed || call->outcome == OUTCOME_UNKNOWN)
        t->most = t->rule.cost;
    if (t->rule.hold_ms > 0) {
        t->back = t->most;
        t->back_us = back_by(c, t->hi, t->rule.hold_ms);
    } else if (t->allowed && t->judged) {
        t->least = t->rule.cost;
    }
    return true;
}

static void add_taking(struct check *c, struct limits *limits,
                       const struct call *call)
{
    struct hf_bytes name = call->name;
    size_t number = limits->takings.count;
    int64_t hold;

    if (name.data == NULL && call->word_count > 1)
        name = call->words[1];
    struct taking *taking = check_push(c, &limits->takings, sizeof *taking);
    *taking = (struct taking){.key = {name, {call->lo}},
                              .call = call,
                              .lo = call->lo,
                              .hi = call->hi};
    taking->plain = read_taking(c, taking);
    if (call->outcome != OUTCOME_DONE ||
        !resp_field_number(call->reply, "hold", &hold) || hold == 0)
        return;
    taking->hold = (uint64_t)hold;
    struct step *step = check_push(c, &limits->steps, sizeof *step);
    *step = (struct step){.key.by = {taking->hold, call->run_end, 0},
                          .taking = number};
}

void check_limits(struct check *c)
{
    struct limits limits = {0};

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        struct step settle = {.call = call};
        if (is_settle(call, &settle)) {
            settle.key.by[1] = call->run_end;
            settle.key.by[2] = 1;
            *(struct step *)check_push(c, &limits.steps, sizeof settle) =
                settle;
        } else if (is_limit(call) &&
                   (call->outcome != OUTCOME_REFUSED || call->group != NULL)) {
            add_taking(c, &limits, call);
        }
    }
    follow_holds(c, &limits);
    check_groups(c, &limits.takings, sizeof(struct taking), judge);
}
