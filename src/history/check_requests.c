/* check_requests.c - a repeated REQ gets the first answer and does nothing.
 *
 *   call REQ r    |..............| (no answer)
 *   again                   |............ token 7|
 *   and again                                   |.... token 7|
 *
 * Calls with the same id and the same words, so close together that the
 * server cannot have forgotten, are one generation: all that are told an
 * answer are told the same but for times, and at most one effect is theirs.
 * One call stands for it, from the first call to the first answer.
 *
 * A generation that may or may not be the one before, because the id may have
 * been forgotten, is not sure to have an effect of its own.
 */
#include "history/check.h"

static bool equal_words(const struct call *a, const struct call *b)
{
    if (a->word_count != b->word_count)
        return false;
    for (uint32_t i = 0; i < a->word_count; i++) {
        if (!hf_bytes_equal(a->words[i], b->words[i]))
            return false;
    }
    return true;
}

/* Of an EXEC: of all that it carries out. */
static bool same_words(const struct call *a, const struct call *b)
{
    const struct group *one = a->group;
    const struct group *other = b->group;

    if (!equal_words(a, b) || (one == NULL) != (other == NULL))
        return false;
    for (uint32_t i = 0; one != NULL && i < one->count; i++) {
        if (one->count != other->count ||
            !equal_words(one->members[i], other->members[i]))
            return false;
    }
    return one == NULL || one->count == other->count;
}

/* The same words in another order may mean the same. */
static bool surely_other(const struct call *a, const struct call *b)
{
    if (a->verb != b->verb)
        return true;
    if (a->verb == VERB_EXEC && a->group != NULL && b->group != NULL) {
        bool other = a->group->count != b->group->count;
        for (uint32_t i = 0; i < a->group->count && !other; i++)
            other = surely_other(a->group->members[i], b->group->members[i]);
        return other;
    }
    if (!hf_bytes_equal(a->name, b->name) || a->token != b->token ||
        a->amount != b->amount)
        return true;
    return a->verb == VERB_LOCK &&
           (!hf_bytes_equal(a->owner, b->owner) || a->ttl_ms != b->ttl_ms);
}

/* Fields that tell a time, which passes between two answers. */
static bool is_time(struct hf_bytes field)
{
    static const char *const names[] = {"safe_ms", "expires_ms", "waited_ms",
                                        "retry_ms", "reset_ms"};

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (hf_bytes_equal(field, hf_bytes_text(names[i])))
            return true;
    }
    return false;
}

static bool same_value(const struct resp_value *a, const struct resp_value *b)
{
    bool lists = (a->kind == RESP_ARRAY || a->kind == RESP_MAP) &&
                 (b->kind == RESP_ARRAY || b->kind == RESP_MAP);

    if (lists) /* the same map in both versions of the protocol */
        return a->number * (a->kind == RESP_MAP ? 2 : 1) ==
               b->number * (b->kind == RESP_MAP ? 2 : 1);
    return a->kind == b->kind && a->number == b->number &&
           hf_bytes_equal(a->text, b->text);
}

static bool same_answer(const struct call *a, const struct call *b)
{
    struct resp_value left;
    struct resp_value right;
    size_t i = 0;
    size_t j = 0;
    bool skip = false;

    if (check_is_aborted(a) && check_is_aborted(b))
        return a->group->position == b->group->position &&
               hf_bytes_equal(a->group->code, b->group->code);
    if (a->code.len > 0 || b->code.len > 0)
        return hf_bytes_equal(a->code, b->code);
    while (i < a->reply.len && j < b->reply.len) {
        if (resp_read(a->reply, &i, &left) != HF_OK ||
            resp_read(b->reply, &j, &right) != HF_OK)
            return false;
        if (!skip && !same_value(&left, &right))
            return false;
        skip = left.kind == RESP_BULK && is_time(left.text);
    }
    return i == a->reply.len && j == b->reply.len;
}

/* An answer that was given for the words, and is kept. */
static bool is_kept(const struct call *call)
{
    if (call->outcome == OUTCOME_UNKNOWN ||
        (check_code(call, "EXECABORT") && !check_is_aborted(call)))
        return false;
    /* who waited and was told DONE may ask anew */
    if (check_is_clash(call))
        return true;
    return !check_code(call, "CONFLICT") && !check_code(call, "ERR") &&
           !check_code(call, "BADARG") && !check_code(call, "NOPERM") &&
           !check_code(call, "DONE");
}

/* TIMEOUT was told while the disk hung, and the server ended before it could
 * be written down. */
static bool is_undone(const struct call *timeout, const struct call *other)
{
    return check_code(timeout, "TIMEOUT") && timeout->doubtful &&
           other->hi >= timeout->run_end;
}

static bool may_differ(const struct check *c, const struct call *a,
                       const struct call *b)
{
    if (is_undone(a, b) || is_undone(b, a))
        return true;
    return c->opts.requests_full &&
           (a->outcome == OUTCOME_REFUSED || b->outcome == OUTCOME_REFUSED);
}

/* The call that stands for the generation calls[0..count). */
static struct call *choose(struct call **calls, size_t count)
{
    struct call *chosen = NULL;

    for (size_t i = 0; i < count; i++) {
        struct call *call = calls[i];
        bool better = chosen == NULL || call->outcome > chosen->outcome;
        if (call->outcome == OUTCOME_REFUSED)
            continue;
        if (!better && call->outcome == chosen->outcome)
            better = call->outcome == OUTCOME_DONE ? call->hi < chosen->hi
                                                   : call->hi > chosen->hi;
        if (better)
            chosen = call;
    }
    return chosen;
}

static void settle(struct check *c, struct call **calls, size_t count,
                   bool loose)
{
    struct call *kept = NULL;
    bool refused = false;

    for (size_t i = 0; i < count; i++) {
        struct call *call = calls[i];
        call->may = call->sure = false;
        refused =
            refused || (is_kept(call) && call->outcome == OUTCOME_REFUSED &&
                        !(check_code(call, "TIMEOUT") && call->doubtful));
        if (!is_kept(call))
            continue;
        /* a loose one's first answer may be an old one, forgotten earlier */
        if (kept != NULL && !loose && !same_answer(kept, call) &&
            !may_differ(c, kept, call))
            check_found(c, "request", call->id, kept->id,
                        "REQ %.*s was answered twice, and not alike",
                        SHOW(call->request));
        if (kept == NULL)
            kept = call;
    }
    struct call *chosen = choose(calls, count);
    if (chosen == NULL || (refused && chosen->outcome == OUTCOME_UNKNOWN &&
                           !c->opts.requests_full))
        return; /* else the refusal may have been forgotten */
    chosen->may = true;
    chosen->sure = chosen->outcome == OUTCOME_DONE && !loose;
    for (size_t i = 0; i < count && loose; i++) {
        if (calls[i]->outcome == OUTCOME_DONE)
            calls[i]->may = true; /* it was forgotten again, perhaps */
    }
}

/* Any of them may be what was carried out, so that all begin with the earliest
 * to arrive; that need not be the first to be sent. */
static void find_first(struct call **calls, size_t count)
{
    uint32_t first = calls[0]->lo;

    for (size_t i = 1; i < count; i++)
        first = calls[i]->lo < first ? calls[i]->lo : first;
    for (size_t i = 0; i < count; i++)
        calls[i]->first = first;
}

/* All calls with one id and one set of words, in the order of calling. A
 * generation may be carried out at any time from `lo` to `hi`, by any of its
 * calls: one that was sent first and read late may find the id forgotten. */
static void split(struct check *c, struct call **calls, size_t count)
{
    size_t start = 0;
    uint32_t lo = CHECK_NEVER;
    uint32_t hi = 0;

    for (size_t i = 0; i < count; i++) {
        const struct call *first = calls[start];
        uint32_t until = check_until(c, first->call_at,
                                     first->call_us + c->opts.request_keep_us);
        uint32_t last = calls[i]->hi < c->end ? calls[i]->hi : c->end - 1;
        lo = calls[i]->lo < lo ? calls[i]->lo : lo;
        hi = last > hi ? last : hi;
        if (i == start || (hi < until && !check_flushed(c, lo, hi)))
            continue;
        settle(c, calls + start, i - start, start > 0);
        start = i;
        lo = calls[i]->lo;
        hi = last;
    }
    settle(c, calls + start, count - start, start > 0);
}

/* The first of the calls in the words of `call`: from then on they may have
 * been remembered. */
static const struct call *find_same(struct call *const *calls,
                                    const struct call *call)
{
    while (!same_words(*calls, call))
        calls++;
    return *calls;
}

/* Is `call` refused as CONFLICT, though nobody used its id for anything else?
 * Or taken, though the id stood for something else? `others`: somebody did who
 * is not among these calls. */
static void judge_conflict(struct check *c, struct call **calls, size_t count,
                           struct call *call, bool others)
{
    call->clashes = call->clashes || others;
    for (size_t i = 0; i < count; i++) {
        const struct call *other = calls[i];
        if (other == call || same_words(other, call))
            continue;
        call->clashes = others = true;
        const struct call *first = find_same(calls, other);
        uint32_t until = check_until(c, first->call_at,
                                     first->call_us + c->opts.request_keep_us);
        if (call->outcome == OUTCOME_DONE && other->outcome == OUTCOME_DONE &&
            other->hi < call->lo && call->hi < until &&
            surely_other(call, other) &&
            !check_flushed(c, other->lo, call->hi)) {
            check_found(c, "conflict", call->id, other->id,
                        "REQ %.*s stood for something else and was taken",
                        SHOW(call->request));
            return;
        }
    }
    /* these may mean the id of the reservation */
    bool reserves = call->verb == VERB_RESERVE || call->verb == VERB_JOIN;
    if (c->closed && !others && check_code(call, "CONFLICT") &&
        call->outcome == OUTCOME_REFUSED && !reserves && !check_is_clash(call))
        check_found(c, "conflict", call->id, 0,
                    "REQ %.*s was never used with other words",
                    SHOW(call->request));
}

/* All calls with one id: those with the same words come together. One with
 * SESSION 0 only shows that the id is used. */
static void group(struct check *c, void *items, size_t all)
{
    const struct ref *refs = items;
    struct call **calls = check_alloc(c, all * sizeof *calls);
    size_t count = 0;

    for (size_t i = 0; i < all; i++) {
        struct call *call = &c->calls[refs[i].key.by[0]];
        if (!call->terms.own_session)
            calls[count++] = call;
    }
    if (all == 1 && (count == 0 || !check_code(calls[0], "CONFLICT")))
        return;
    for (size_t i = 0; i < count; i++)
        judge_conflict(c, calls, count, calls[i], count < all);
    while (count > 0) {
        size_t same = 1;
        for (size_t i = 1; i < count; i++) {
            struct call *call = calls[i];
            if (!same_words(calls[0], call))
                continue;
            /* keeps the order of both parts */
            memmove(calls + same + 1, calls + same, (i - same) * sizeof *calls);
            calls[same++] = call;
        }
        find_first(calls, same);
        split(c, calls, same);
        calls += same;
        count -= same;
    }
}

/* SESSION 0 may be another session when it is asked again: whether it is the
 * same request is not known. */
static void forget_answer(struct call *call)
{
    call->outcome = OUTCOME_UNKNOWN;
    call->code.len = call->reply.len = 0;
    call->sure = false;
    call->may = true;
}

void check_requests(struct check *c)
{
    struct list refs = {0};

    for (size_t i = 0; i < c->count; i++) {
        struct call *call = &c->calls[i];
        if (call->request.len == 0)
            continue;
        if (call->terms.own_session)
            forget_answer(call);
        check_refer(c, &refs, call->request, i, NULL);
    }
    check_groups(c, &refs, sizeof(struct ref), group);
}
