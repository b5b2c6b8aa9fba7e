/* check_locks.c - gathers what is said of each lock, and judges it. */
#include "history/locks.h"

static struct fact *add(struct check *c, const struct call *call,
                        enum fact_kind kind)
{
    struct fact *fact = check_push(c, &c->facts, sizeof *fact);

    *fact = (struct fact){.key.name = call->name,
                          .call = call,
                          .owner = call->owner,
                          .token = call->token,
                          .held_ms = -1,
                          .lo = call->first,
                          .hi = call->hi,
                          .kind = kind};
    return fact;
}

/* "lock 'a' is held by 'b' for 5 ms more": the owner, if it can be read. */
static struct hf_bytes busy_owner(struct hf_bytes reply)
{
    struct hf_bytes none = {NULL, 0};
    struct hf_bytes owner;

    if (!check_between(reply, "' is held by '", "' for ", &owner))
        return none;
    for (size_t i = 0; i < owner.len; i++) {
        if (owner.data[i] <= ' ' || owner.data[i] == '\'' ||
            owner.data[i] == '?' || owner.data[i] == '.')
            return none; /* perhaps not as it is: shortened or cleaned */
    }
    return owner;
}

static void add_lock(struct check *c, const struct call *call)
{
    struct fact *fact;
    int64_t token;

    if (call->outcome == OUTCOME_DONE) {
        fact = add(c, call, FACT_GRANT);
        if (!resp_field_number(call->reply, "token", &token) ||
            !resp_field_number(call->reply, "safe_ms", &fact->safe_ms) ||
            !resp_field_number(call->reply, "count", &fact->count)) {
            c->facts.count--;
            check_found(c, "reply", call->id, 0,
                        "a LOCK is granted with token, safe_ms and count");
            return;
        }
        fact->token = (uint64_t)token;
        c->report->grants++;
    } else if (check_code(call, "BUSY")) {
        add(c, call, FACT_BUSY)->owner = busy_owner(call->reply);
    } else if (call->may) {
        add(c, call, FACT_ASKED);
    } else if (check_code(call, "TIMEOUT")) {
        add(c, call, FACT_TIMED_OUT);
        /* what was told may be undone, at the end of the run; or earlier, if
         * the journal failed before it took the record that says so */
        if (call->doubtful) {
            fact = add(c, call, FACT_ASKED);
            fact->lo = call->broken ? call->hi : call->run_end;
            fact->hi = call->run_end;
        }
    }
}

static void add_change(struct check *c, const struct call *call)
{
    bool renew = call->verb == VERB_RENEW;
    bool missed = check_code(call, "LOST") || check_code(call, "NOTHELD");

    if (!missed && call->outcome == OUTCOME_REFUSED)
        return;
    if (!missed && !call->may && call->outcome != OUTCOME_DONE)
        return;
    struct fact *fact = add(c, call,
                            missed  ? FACT_MISSED
                            : renew ? FACT_RENEWED
                                    : FACT_UNLOCKED);
    const char *field = renew ? "safe_ms" : "remaining";
    int64_t *place = renew ? &fact->safe_ms : &fact->count;
    if (call->outcome == OUTCOME_DONE &&
        !resp_field_number(call->reply, field, place)) {
        c->facts.count--;
        check_found(c, "reply", call->id, 0, "the reply has no %s", field);
    }
}

/* A map with a lock in it, of a read. */
static void add_shown(struct check *c, const struct call *call,
                      struct hf_bytes entry)
{
    struct fact *fact = add(c, call, FACT_SHOWN);
    int64_t token;

    if (!check_text(entry, "name", &fact->key.name) ||
        !check_text(entry, "owner", &fact->owner) ||
        !resp_field_number(entry, "token", &token) ||
        !resp_field_number(entry, "expires_ms", &fact->safe_ms) ||
        !resp_field_number(entry, "count", &fact->count)) {
        c->facts.count--;
        check_found(c, "reply", call->id, 0,
                    "a lock is shown by name, owner, token, expires_ms and "
                    "count");
        return;
    }
    fact->token = (uint64_t)token;
    if (!resp_field_number(entry, "held_ms", &fact->held_ms))
        fact->held_ms = -1;
}

static void add_read(struct check *c, const struct call *call)
{
    struct reply_list list;
    struct hf_bytes entry;

    c->report->reads += call->answer_at != CHECK_NEVER;
    if (check_code(call, "NOTFOUND"))
        add(c, call, FACT_FREE);
    if (call->outcome != OUTCOME_DONE)
        return;
    if (call->verb == VERB_LOCKINFO)
        add_shown(c, call, call->reply);
    else if (check_list(call->reply, "locks", &list)) {
        while (check_list_next(&list, &entry))
            add_shown(c, call, entry);
    }
}

/* All facts of one lock. */
static void judge(struct check *c, void *items, size_t count)
{
    const struct fact *facts = items;
    struct hold *holds = check_alloc(c, count * sizeof *holds);
    struct lock_view view = {
        .check = c, .name = facts[0].key.name, .loose = facts, .holds = holds};
    size_t i = 0;

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
    for (size_t n = 0; n < view.hold_count; n++) {
        const struct hold *hold = &holds[n];
        if (hold->proof == NULL)
            continue; /* only ever missed or asked for: nothing was given */
        hold_judge(&view, hold);
        check_number_given(c, hold->token, hold->lo, hold->hi, hold->proof->id);
    }
    lock_judge(&view);
}

/* The same token of two locks. */
static void judge_tokens(struct check *c)
{
    const struct fact *facts = c->facts.data;
    struct list refs = {0};

    for (size_t i = 0; i < c->facts.count; i++) {
        if (facts[i].kind == FACT_GRANT || facts[i].kind == FACT_SHOWN)
            check_refer(c, &refs, hf_bytes("", 0), facts[i].token, &facts[i]);
    }
    check_sort(&refs, sizeof(struct ref));
    for (size_t i = 1; i < refs.count; i++) {
        const struct fact *one = ((const struct ref *)refs.data)[i - 1].thing;
        const struct fact *two = ((const struct ref *)refs.data)[i].thing;
        if (one->token == two->token &&
            (!hf_bytes_equal(one->key.name, two->key.name) ||
             !hf_bytes_equal(one->owner, two->owner)))
            check_found(c, "token", two->call->id, one->call->id,
                        "token %llu is of two locks or two owners",
                        (unsigned long long)one->token);
    }
}

void check_locks(struct check *c)
{
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb == VERB_LOCK)
            add_lock(c, call);
        else if (call->verb == VERB_UNLOCK || call->verb == VERB_RENEW)
            add_change(c, call);
        else if (call->verb == VERB_LOCKS || call->verb == VERB_LOCKINFO)
            add_read(c, call);
    }
    for (size_t i = 0; i < c->facts.count; i++) {
        struct fact *fact = (struct fact *)c->facts.data + i;
        bool loose = fact->kind < FACT_GRANT;
        fact->key.by[0] = loose ? fact->kind : FACT_GRANT;
        fact->key.by[1] = loose ? 0 : fact->token;
        fact->key.by[2] = (uint64_t)fact->lo << 32 | fact->call->call_at;
    }
    check_groups(c, &c->facts, sizeof(struct fact), judge);
    judge_tokens(c);
}
