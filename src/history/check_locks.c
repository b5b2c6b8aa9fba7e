/* check_locks.c - judges what is said of each lock.
 *
 * Not checked: keys (see check_keys.c), -STATE, the numbers in BUSY and TIMEOUT
 * (waiting, position), which of several readers is served first, and that a
 * wound or a revocation is carried out in time. Who waits with WOUNDWAIT may
 * end the holds of those it waits for, so nothing is sure of these any more.
 */
#include "history/locks.h"

static void add_presences(struct lock_view *view)
{
    struct check *c = view->check;

    for (size_t i = 0; i < view->hold_count; i++) {
        const struct hold *hold = &view->holds[i];
        if (hold->proof == NULL)
            continue;
        struct presence *place = check_push(c, &c->presences, sizeof *place);
        *place = (struct presence){.key = {view->name, {hold->lo}},
                                   .owner = hold->owner,
                                   .lo = hold->lo,
                                   .hi = hold->over};
    }
    for (size_t i = 0; i < view->timed_end; i++) {
        const struct fact *asked = &view->loose[i];
        struct presence *place = check_push(c, &c->presences, sizeof *place);
        uint64_t over_us = check_over_us(c, asked->hi, asked->call->ttl_ms);
        *place = (struct presence){.key = {view->name, {asked->lo}},
                                   .owner = asked->owner,
                                   .lo = asked->lo,
                                   .hi = check_last(c, over_us)};
    }
}

/* Of a key only listings tell: nobody asked for it with LOCK. */
static bool is_key(const struct check *c, const struct fact *facts,
                   size_t count)
{
    size_t shown = 0;

    for (size_t i = 0; i < count; i++)
        shown += facts[i].kind == FACT_SHOWN;
    return c->keys && shown == count;
}

/* All facts of one lock. */
static void judge(struct check *c, void *items, size_t count)
{
    const struct fact *facts = items;
    if (is_key(c, facts, count))
        return;
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
    while (i < count && facts[i].kind == FACT_WAITED)
        i++;
    view.waited_end = i;
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
        trees_add(c, view.name, hold);
    }
    modes_judge(&view);
    lock_judge(&view);
    add_presences(&view);
}

static bool has_member(const struct call *set, struct hf_bytes wanted)
{
    struct hf_bytes name;
    enum mode mode;
    size_t at = 0;

    while (check_member(set, &at, &name, &mode)) {
        if (hf_bytes_equal(name, wanted))
            return true;
    }
    return false;
}

/* All grants and reads with one token: of one lock, or of one set. */
static void judge_token(struct check *c, const struct ref *refs, size_t count)
{
    const struct fact *one = refs[0].thing;
    const struct fact *wrong = NULL;

    for (size_t i = 0; i < count; i++) {
        const struct fact *fact = refs[i].thing;
        if (fact->kind == FACT_GRANT)
            one = fact;
    }
    for (size_t i = 0; i < count; i++) {
        const struct fact *fact = refs[i].thing;
        bool named = hf_bytes_equal(fact->key.name, one->key.name);
        if (one->kind == FACT_GRANT && one->call->verb == VERB_LOCKSET)
            named = has_member(one->call, fact->key.name);
        else if (one->kind != FACT_GRANT)
            named = true; /* of a set, perhaps */
        bool other = fact->session != one->session &&
                     fact->session != CHECK_UNKNOWN &&
                     one->session != CHECK_UNKNOWN;
        if (!named || other || !hf_bytes_equal(one->owner, fact->owner))
            wrong = fact;
    }
    if (wrong != NULL)
        check_found(c, "token", wrong->call->id, one->call->id,
                    "token %llu is of two locks, two owners or two sessions",
                    (unsigned long long)one->token);
}

static void judge_tokens(struct check *c)
{
    const struct fact *facts = c->facts.data;
    struct list list = {0};

    for (size_t i = 0; i < c->facts.count; i++) {
        if (facts[i].kind == FACT_GRANT || facts[i].kind == FACT_SHOWN)
            check_refer(c, &list, hf_bytes("", 0), facts[i].token, &facts[i]);
    }
    check_sort(&list, sizeof(struct ref));
    const struct ref *refs = list.data;
    for (size_t i = 0, count = 0; i < list.count; i += count) {
        count = 1;
        while (i + count < list.count &&
               refs[i + count].key.by[0] == refs[i].key.by[0])
            count++;
        judge_token(c, refs + i, count);
    }
}

void check_locks(struct check *c)
{
    facts_gather(c);
    for (size_t i = 0; i < c->facts.count; i++) {
        struct fact *fact = (struct fact *)c->facts.data + i;
        bool loose = fact->kind < FACT_GRANT;
        fact->key.by[0] = loose ? fact->kind : FACT_GRANT;
        fact->key.by[1] = loose ? 0 : fact->token;
        fact->key.by[2] = (uint64_t)fact->lo << 32 | fact->call->call_at;
    }
    check_groups(c, &c->facts, sizeof(struct fact), judge);
    trees_judge(c);
    judge_tokens(c);
}
