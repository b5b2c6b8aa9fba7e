/* check_locks.c - gathers what is said of each lock, and judges it. */
#include "base/memory.h"
#include "history/locks.h"

struct gather {
    struct check *check;
    struct list facts;
};

static struct fact *add(struct gather *g, const struct call *call,
                        enum fact_kind kind)
{
    struct fact *fact = check_push(&g->facts, sizeof *fact);

    if (fact == NULL)
        return NULL;
    fact->call = call;
    fact->kind = kind;
    fact->name = call->name;
    fact->owner = call->owner;
    fact->token = call->token;
    fact->held_ms = -1;
    fact->lo = call->first;
    fact->hi = call->hi;
    return fact;
}

/* "lock 'a' is held by 'b' for 5 ms more": the owner, if it can be read. */
static struct hf_bytes busy_owner(struct hf_bytes reply)
{
    static const char before[] = "' is held by '";
    static const char behind[] = "' for ";
    struct hf_bytes none = {NULL, 0};
    const char *at = memmem(reply.data, reply.len, before, sizeof before - 1);

    if (at == NULL)
        return none;
    at += sizeof before - 1;
    size_t left = (size_t)(reply.data + reply.len - at);
    const char *end = memmem(at, left, behind, sizeof behind - 1);
    if (end == NULL)
        return none;
    struct hf_bytes owner = hf_bytes(at, (size_t)(end - at));
    for (size_t i = 0; i < owner.len; i++) {
        if (owner.data[i] <= ' ' || owner.data[i] == '\'' ||
            owner.data[i] == '?' || owner.data[i] == '.')
            return none; /* perhaps not as it is: shortened or cleaned */
    }
    return owner;
}

static enum hf_status add_lock(struct gather *g, const struct call *call)
{
    struct fact *fact = NULL;
    int64_t token;

    if (call->outcome == OUTCOME_DONE) {
        fact = add(g, call, FACT_GRANT);
        if (fact == NULL)
            return HF_NOMEM;
        if (!check_number(call->reply, "token", &token) ||
            !check_number(call->reply, "safe_ms", &fact->safe_ms) ||
            !check_number(call->reply, "count", &fact->count)) {
            g->facts.count--;
            check_found(g->check, "reply", call->id, 0,
                        "a LOCK is granted with token, safe_ms and count");
            return HF_OK;
        }
        fact->token = (uint64_t)token;
        g->check->report->grants++;
    } else if (check_code(call, "BUSY")) {
        fact = add(g, call, FACT_BUSY);
        if (fact != NULL)
            fact->owner = busy_owner(call->reply);
    } else if (call->may) {
        fact = add(g, call, FACT_ASKED);
    } else if (check_code(call, "TIMEOUT")) {
        fact = add(g, call, FACT_TIMED_OUT);
        /* what was told may be undone, at the end of the run; or earlier, if
         * the journal failed before it took the record that says so */
        if (fact != NULL && call->doubtful) {
            fact = add(g, call, FACT_ASKED);
            if (fact != NULL) {
                fact->lo = call->broken ? call->hi : call->run_end;
                fact->hi = call->run_end;
            }
        }
    } else {
        return HF_OK;
    }
    return fact == NULL ? HF_NOMEM : HF_OK;
}

static enum hf_status add_change(struct gather *g, const struct call *call)
{
    bool renew = call->verb == VERB_RENEW;
    bool missed = check_code(call, "LOST") || check_code(call, "NOTHELD");

    if (!missed && call->outcome == OUTCOME_REFUSED)
        return HF_OK;
    if (!missed && !call->may && call->outcome != OUTCOME_DONE)
        return HF_OK;
    struct fact *fact = add(g, call,
                            missed  ? FACT_MISSED
                            : renew ? FACT_RENEWED
                                    : FACT_UNLOCKED);
    if (fact == NULL)
        return HF_NOMEM;
    const char *field = renew ? "safe_ms" : "remaining";
    int64_t *place = renew ? &fact->safe_ms : &fact->count;
    if (call->outcome == OUTCOME_DONE &&
        !check_number(call->reply, field, place)) {
        g->facts.count--;
        check_found(g->check, "reply", call->id, 0, "the reply has no %s",
                    field);
    }
    return HF_OK;
}

/* A map with a lock in it, of a read. */
static enum hf_status add_shown(struct gather *g, const struct call *call,
                                struct hf_bytes entry)
{
    struct fact *fact = add(g, call, FACT_SHOWN);
    int64_t token;

    if (fact == NULL)
        return HF_NOMEM;
    if (!check_text(entry, "name", &fact->name) ||
        !check_text(entry, "owner", &fact->owner) ||
        !check_number(entry, "token", &token) ||
        !check_number(entry, "expires_ms", &fact->safe_ms) ||
        !check_number(entry, "count", &fact->count)) {
        g->facts.count--;
        check_found(g->check, "reply", call->id, 0,
                    "a lock is shown by name, owner, token, expires_ms and "
                    "count");
        return HF_OK;
    }
    fact->token = (uint64_t)token;
    if (!check_number(entry, "held_ms", &fact->held_ms))
        fact->held_ms = -1;
    return HF_OK;
}

static enum hf_status add_read(struct gather *g, const struct call *call)
{
    struct reply_list list;
    struct hf_bytes entry;
    enum hf_status status = HF_OK;

    if (check_code(call, "NOTFOUND"))
        return add(g, call, FACT_FREE) == NULL ? HF_NOMEM : HF_OK;
    if (call->outcome != OUTCOME_DONE)
        return HF_OK;
    if (call->verb == VERB_LOCKINFO)
        return add_shown(g, call, call->reply);
    if (!check_list(call->reply, "locks", &list))
        return HF_OK;
    while (status == HF_OK && check_list_next(&list, &entry))
        status = add_shown(g, call, entry);
    return status;
}

static enum hf_status gather(struct gather *g)
{
    enum hf_status status = HF_OK;

    for (size_t i = 0; status == HF_OK && i < g->check->count; i++) {
        const struct call *call = &g->check->calls[i];
        switch (call->verb) {
        case VERB_LOCK:
            status = add_lock(g, call);
            break;
        case VERB_UNLOCK:
        case VERB_RENEW:
            status = add_change(g, call);
            break;
        case VERB_LOCKS:
        case VERB_LOCKINFO:
            g->check->report->reads += call->answer_at != CHECK_NEVER;
            status = add_read(g, call);
            break;
        default:
            break;
        }
    }
    return status;
}

static int by_lock(const void *a, const void *b)
{
    const struct fact *left = a;
    const struct fact *right = b;
    uint64_t left_token = left->kind < FACT_GRANT ? 0 : left->token;
    uint64_t right_token = right->kind < FACT_GRANT ? 0 : right->token;
    bool left_loose = left->kind < FACT_GRANT;
    bool right_loose = right->kind < FACT_GRANT;
    int order = check_compare(left->name, right->name);

    if (order != 0)
        return order;
    if (left_loose != right_loose)
        return left_loose ? -1 : 1;
    if (left_loose && left->kind != right->kind)
        return left->kind < right->kind ? -1 : 1;
    if (left_token != right_token)
        return left_token < right_token ? -1 : 1;
    if (left->lo != right->lo)
        return left->lo < right->lo ? -1 : 1;
    return (left->call->id > right->call->id) -
           (left->call->id < right->call->id);
}

/* facts[0..count) are of one lock. */
static enum hf_status judge(struct check *c, const struct fact *facts,
                            size_t count, struct hold *holds)
{
    struct lock_view view = {
        .check = c, .name = facts[0].name, .loose = facts, .holds = holds};
    size_t i = 0;
    enum hf_status status = HF_OK;

    while (i < count && facts[i].kind == FACT_ASKED)
        i++;
    view.asked_count = i;
    while (i < count && facts[i].kind == FACT_TIMED_OUT)
        i++;
    view.timed_end = i;
    while (i < count && facts[i].kind < FACT_GRANT)
        i++;
    view.loose_count = i;
    for (; i < count; i++) {
        if (view.hold_count == 0 ||
            holds[view.hold_count - 1].token != facts[i].token)
            holds[view.hold_count++] =
                (struct hold){.token = facts[i].token, .facts = &facts[i]};
        holds[view.hold_count - 1].count++;
    }
    for (size_t n = view.hold_count; n-- > 0;)
        hold_settle(&view, n);
    for (size_t n = 0; status == HF_OK && n < view.hold_count; n++) {
        const struct hold *hold = &holds[n];
        if (hold->proof == NULL)
            continue; /* only ever missed or asked for: nothing was given */
        hold_judge(&view, hold);
        status = check_number_given(c, hold->token, hold->lo, hold->hi,
                                    hold->proof->id);
    }
    return status == HF_OK ? lock_judge(&view) : status;
}

/* The same token of two locks. */
static int by_token(const void *a, const void *b)
{
    const struct fact *left = *(const struct fact *const *)a;
    const struct fact *right = *(const struct fact *const *)b;

    return (left->token > right->token) - (left->token < right->token);
}

static enum hf_status judge_tokens(struct check *c, const struct fact *facts,
                                   size_t count)
{
    const struct fact **all = hf_alloc((count + 1) * sizeof *all);
    size_t n = 0;

    if (all == NULL)
        return HF_NOMEM;
    for (size_t i = 0; i < count; i++) {
        if (facts[i].kind == FACT_GRANT || facts[i].kind == FACT_SHOWN)
            all[n++] = &facts[i];
    }
    qsort(all, n, sizeof *all, by_token);
    for (size_t i = 1; i < n; i++) {
        const struct fact *one = all[i - 1];
        const struct fact *two = all[i];
        if (one->token == two->token &&
            (!hf_bytes_equal(one->name, two->name) ||
             !hf_bytes_equal(one->owner, two->owner)))
            check_found(c, "token", two->call->id, one->call->id,
                        "token %llu is of two locks or two owners",
                        (unsigned long long)one->token);
    }
    hf_free(all);
    return HF_OK;
}

enum hf_status check_locks(struct check *c)
{
    struct gather g = {.check = c};
    enum hf_status status = gather(&g);
    struct fact *facts = (struct fact *)g.facts.data;
    size_t count = g.facts.count;
    struct hold *holds = hf_alloc((count + 1) * sizeof *holds);

    if (holds == NULL)
        status = HF_NOMEM;
    if (status == HF_OK && count > 0)
        qsort(facts, count, sizeof *facts, by_lock);
    for (size_t start = 0, i = 1; status == HF_OK && i <= count; i++) {
        if (i < count && hf_bytes_equal(facts[i].name, facts[start].name))
            continue;
        status = judge(c, facts + start, i - start, holds);
        start = i;
    }
    if (status == HF_OK)
        status = judge_tokens(c, facts, count);
    hf_free(holds);
    hf_free(facts);
    return status;
}
