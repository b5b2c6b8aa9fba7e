/* facts.c - what the calls say of each lock. */
#include "history/locks.h"

static struct fact *add(struct check *c, const struct call *call,
                        struct hf_bytes name, enum fact_kind kind)
{
    struct fact *fact = check_push(c, &c->facts, sizeof *fact);

    *fact = (struct fact){.key.name = name,
                          .call = call,
                          .owner = call->owner,
                          .token = call->token,
                          .session = call->terms.session,
                          .held_ms = -1,
                          .permits = call->terms.permits,
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

    if (!check_between(reply, "' is held by '", "' for ", &owner) ||
        owner.len == 0)
        return none;
    for (size_t i = 0; i < owner.len; i++) {
        if (owner.data[i] <= ' ' || owner.data[i] == '\'' ||
            owner.data[i] == '?' || owner.data[i] == '.')
            return none; /* perhaps not as it is: shortened or cleaned */
    }
    return owner;
}

static void add_presence(struct check *c, const struct call *call,
                         struct hf_bytes name)
{
    struct presence *place = check_push(c, &c->presences, sizeof *place);

    *place = (struct presence){.key = {name, {call->first}},
                               .owner = call->owner,
                               .lo = call->first,
                               .hi = call->hi,
                               .waits = true};
}

/* A LOCK, or a LOCKSET of which this is one name. */
static void add_lock(struct check *c, const struct call *call,
                     struct hf_bytes name, enum mode mode)
{
    struct hf_bytes busy;
    struct fact *fact;
    int64_t token;

    if (check_waits(call))
        add_presence(c, call, name);
    if (call->outcome == OUTCOME_DONE) {
        fact = add(c, call, name, FACT_GRANT);
        fact->mode = mode;
        (void)resp_field_number(call->reply, "fence", &fact->fence);
        if (!resp_field_number(call->reply, "token", &token) ||
            !resp_field_number(call->reply, "safe_ms", &fact->safe_ms) ||
            !resp_field_number(call->reply, "count", &fact->count) ||
            (call->verb == VERB_LOCK) * (mode == MODE_SHARED) !=
                (fact->fence != 0)) {
            c->facts.count--;
            check_found(c, "reply", call->id, 0,
                        "a lock is granted with token, safe_ms and count, and "
                        "a shared one with its fence");
            return;
        }
        fact->token = (uint64_t)token;
        c->report->grants++;
    } else if (check_code(call, "BUSY")) {
        if (call->verb == VERB_LOCK ||
            (check_between(call->reply, "lock '", "' is ", &busy) &&
             hf_bytes_equal(busy, name)))
            add(c, call, name, FACT_BUSY)->owner = busy_owner(call->reply);
    } else if (call->may) {
        add(c, call, name, FACT_ASKED)->mode = mode;
    } else if (check_code(call, "TIMEOUT")) {
        add(c, call, name, FACT_TIMED_OUT)->mode = mode;
        /* what was told may be undone, at the end of the run; or earlier, if
         * the journal failed before it took the record that says so */
        if (call->doubtful) {
            fact = add(c, call, name, FACT_ASKED);
            fact->mode = mode;
            fact->lo = call->broken ? call->hi : call->run_end;
            fact->hi = call->run_end;
        }
    } else if (check_waits(call)) {
        add(c, call, name, FACT_WAITED);
    }
}

static void add_set(struct check *c, const struct call *call)
{
    struct hf_bytes name;
    enum mode mode;
    size_t at = 0;

    while (check_member(call, &at, &name, &mode))
        add_lock(c, call, name, mode);
}

/* UNLOCK and so on, of a name or of a set, whose names are `name`. */
static void add_change(struct check *c, const struct call *call,
                       struct hf_bytes name, enum fact_kind kind)
{
    bool missed = check_code(call, "LOST") || check_code(call, "NOTHELD");
    bool unlock = kind == FACT_UNLOCKED;

    if (!missed && call->outcome == OUTCOME_REFUSED)
        return;
    if (!missed && call->outcome != OUTCOME_DONE &&
        (!call->may || kind == FACT_HELD))
        return;
    struct fact *fact = add(c, call, name, missed ? FACT_MISSED : kind);
    if (kind == FACT_DOWNGRADED)
        (void)resp_field_number(call->reply, "fence", &fact->fence);
    const char *field = unlock ? "remaining" : "safe_ms";
    int64_t *place = unlock ? &fact->count : &fact->safe_ms;
    if (call->outcome == OUTCOME_DONE && kind != FACT_REVOKED &&
        kind != FACT_HELD && !resp_field_number(call->reply, field, place)) {
        c->facts.count--;
        check_found(c, "reply", call->id, 0, "the reply has no %s", field);
    }
}

static enum mode mode_of(struct hf_bytes entry)
{
    struct hf_bytes text;

    if (!check_text(entry, "mode", &text))
        return MODE_NONE;
    return hf_bytes_is(text, "exclusive") ? MODE_EXCLUSIVE
           : hf_bytes_is(text, "shared")  ? MODE_SHARED
                                          : MODE_COUNTING;
}

/* A map with a lock in it, of a read. */
static void add_shown(struct check *c, const struct call *call,
                      struct hf_bytes name, struct hf_bytes entry)
{
    struct fact *fact = add(c, call, name, FACT_SHOWN);
    int64_t token;
    int64_t number;

    fact->session = CHECK_UNKNOWN;
    fact->count = -1;
    if (!check_text(entry, "owner", &fact->owner) ||
        !resp_field_number(entry, "token", &token) ||
        !resp_field_number(entry, "expires_ms", &fact->safe_ms) ||
        (call->verb != VERB_LEADER &&
         !resp_field_number(entry, "count", &fact->count))) {
        c->facts.count--;
        check_found(c, "reply", call->id, 0,
                    "a lock is shown by owner, token, expires_ms and count");
        return;
    }
    fact->token = (uint64_t)token;
    fact->mode = mode_of(entry);
    if (resp_field_number(entry, "session", &number))
        fact->session = (uint64_t)number;
    if (resp_field_number(entry, "permits", &number))
        fact->permits = (uint32_t)number;
    if (!resp_field_number(entry, "held_ms", &fact->held_ms))
        fact->held_ms = -1;
}

/* LOCKINFO: everybody who holds it. */
static void add_info(struct check *c, const struct call *call)
{
    struct reply_list list;
    struct hf_bytes entry;
    struct hf_bytes mode;

    if (!check_text(call->reply, "mode", &mode) ||
        !check_list(call->reply, "holders", &list)) {
        add_shown(c, call, call->name, call->reply); /* an older server */
        return;
    }
    if (hf_bytes_is(mode, "free") || hf_bytes_is(mode, "closed") ||
        hf_bytes_is(mode, "done"))
        add(c, call, call->name, FACT_FREE);
    while (check_list_next(&list, &entry))
        add_shown(c, call, call->name, entry);
}

static void add_read(struct check *c, const struct call *call)
{
    struct reply_list list;
    struct hf_bytes entry;
    struct hf_bytes name;

    c->report->reads += call->answer_at != CHECK_NEVER;
    if (check_code(call, "NOTFOUND"))
        add(c, call, call->name, FACT_FREE);
    if (call->outcome != OUTCOME_DONE)
        return;
    if (call->verb == VERB_LOCKINFO) {
        add_info(c, call);
    } else if (call->verb == VERB_LEADER) {
        add_shown(c, call, call->name, call->reply);
    } else if (check_list(call->reply, "locks", &list)) {
        while (check_list_next(&list, &entry)) {
            if (check_text(entry, "name", &name))
                add_shown(c, call, name, entry);
            else
                check_found(c, "reply", call->id, 0, "a lock has no name");
        }
    }
}

/* What is said of a set, or of one name of it, is said of all its names. */
static void spread_to(struct check *c, const struct call *call,
                      struct hf_bytes name)
{
    bool missed = call->outcome == OUTCOME_REFUSED;
    bool named = call->name.len > 0 && call->verb != VERB_UNLOCKSET &&
                 call->verb != VERB_RENEWSET;

    if (named && (missed || hf_bytes_equal(name, call->name)))
        return;
    if (call->verb == VERB_UNLOCKSET || call->verb == VERB_RENEWSET)
        add_change(c, call, name,
                   call->verb == VERB_UNLOCKSET ? FACT_UNLOCKED : FACT_RENEWED);
    else if (call->verb == VERB_REVOKE)
        add_change(c, call, name, FACT_REVOKED);
    else if (call->outcome == OUTCOME_DONE)
        add(c, call, name, FACT_HELD);
}

/* The names that were shown with the token of a set whose grant is not known.
 * Only UNLOCKSET and RENEWSET are surely about a set. */
static void spread_shown(struct check *c, const struct call *call, size_t first,
                         size_t last, const struct ref *refs)
{
    if (call->verb != VERB_UNLOCKSET && call->verb != VERB_RENEWSET)
        return;
    for (size_t i = first; i < last; i++) {
        const struct fact *fact = refs[i].thing;
        bool seen = fact->kind != FACT_SHOWN;
        for (size_t j = first; j < i && !seen; j++) {
            const struct fact *other = refs[j].thing;
            seen = other->kind == FACT_SHOWN &&
                   hf_bytes_equal(other->key.name, fact->key.name);
        }
        if (!seen)
            spread_to(c, call, fact->key.name);
    }
}

/* The facts from `first` up to `last` have the token of the call. */
static void spread(struct check *c, const struct call *call, size_t first,
                   size_t last, const struct ref *refs)
{
    const struct call *set = NULL;
    struct hf_bytes name;
    enum mode mode;
    size_t at = 0;

    for (size_t i = first; i < last; i++) {
        const struct fact *fact = refs[i].thing;
        if (fact->kind == FACT_GRANT && fact->call->verb == VERB_LOCKSET)
            set = fact->call;
    }
    if (set == NULL) {
        spread_shown(c, call, first, last, refs);
        return;
    }
    while (check_member(set, &at, &name, &mode))
        spread_to(c, call, name);
}

static size_t find_token(const struct list *refs, uint64_t token)
{
    const struct ref *before = check_last_below(refs, token);

    return before == NULL
               ? 0
               : (size_t)(before - (const struct ref *)refs->data) + 1;
}

static void spread_sets(struct check *c)
{
    struct list refs = {0};
    size_t count = c->facts.count;

    /* they move when there are more */
    struct fact *facts = check_alloc(c, (count + 1) * sizeof *facts);
    if (count > 0)
        memcpy(facts, c->facts.data, count * sizeof *facts);
    for (size_t i = 0; i < count; i++) {
        if (facts[i].kind >= FACT_GRANT)
            check_refer(c, &refs, hf_bytes("", 0), facts[i].token, &facts[i]);
    }
    check_sort(&refs, sizeof(struct ref));
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb != VERB_UNLOCKSET && call->verb != VERB_RENEWSET &&
            call->verb != VERB_REVOKE && call->verb != VERB_HELD)
            continue;
        size_t first = find_token(&refs, call->token);
        size_t last = find_token(&refs, call->token + 1);
        spread(c, call, first, last, refs.data);
    }
}

void facts_gather(struct check *c)
{
    static const enum fact_kind kinds[] = {
        [VERB_UNLOCK] = FACT_UNLOCKED,      [VERB_RENEW] = FACT_RENEWED,
        [VERB_DOWNGRADE] = FACT_DOWNGRADED, [VERB_HELD] = FACT_HELD,
        [VERB_PROCLAIM] = FACT_HELD,        [VERB_REVOKE] = FACT_REVOKED,
    };

    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        c->trees = c->trees || call->terms.tree;
        c->keys = c->keys || call->verb == VERB_KEY;
        if (call->terms.wounds && check_waits(call))
            *(const struct call **)check_push(c, &c->wounds, sizeof call) =
                call;
        if (call->verb == VERB_LOCK)
            add_lock(c, call, call->name, call->terms.mode);
        else if (call->verb == VERB_LOCKSET)
            add_set(c, call);
        else if (call->verb == VERB_LOCKS || call->verb == VERB_LOCKINFO ||
                 call->verb == VERB_LEADER)
            add_read(c, call);
        else if (call->verb <= VERB_REVOKE && kinds[call->verb] != 0)
            add_change(c, call, call->name, kinds[call->verb]);
    }
    spread_sets(c);
}
