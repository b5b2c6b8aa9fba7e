/* check_fences.c - the newest token that each resource has accepted.
 *
 *   FENCE r 9   |.... OK|
 *   FENCE r 7               |.... must be STALE|
 */
#include "history/check.h"

/* One call makes less than that: it waits, is granted, and its hold ends. */
#define NUMBERS_PER_CALL 16u

/* Accepted ones, by hi; each replaced by the newest up to it. Those behind a
 * deletion that may come between count for nothing, so a resource that is ever
 * deleted or flushed is not judged by what was accepted. */
static void judge_accepted(struct check *c, const struct ref *refs,
                           size_t count)
{
    struct list accepted = {0};

    for (size_t i = 0; i < count; i++) {
        const struct call *call = refs[i].thing;
        if (call->outcome == OUTCOME_DONE)
            check_refer(c, &accepted, hf_bytes("", 0), call->hi, call);
    }
    check_sort(&accepted, sizeof(struct ref));
    struct ref *known = accepted.data;
    for (size_t i = 1; i < accepted.count; i++) {
        const struct call *before = known[i - 1].thing;
        if (before->token > ((const struct call *)known[i].thing)->token)
            known[i].thing = before;
    }
    for (size_t i = 0; i < count; i++) {
        const struct call *call = refs[i].thing;
        const struct ref *last = check_last_below(&accepted, call->first);
        const struct call *newest = last == NULL ? NULL : last->thing;
        if (newest != NULL && call->sure && newest->token > call->token)
            check_found(c, "fence", call->id, newest->id,
                        "resource %.*s accepted token %llu after %llu",
                        SHOW(call->name), (unsigned long long)call->token,
                        (unsigned long long)newest->token);
    }
}

/* STALE: somebody showed a newer token before. */
static void judge_stale(struct check *c, const struct ref *refs, size_t count)
{
    const struct call *newest = NULL; /* of those called so far */
    size_t next = 0;

    for (size_t i = 0; i < count; i++) {
        const struct call *call = refs[i].thing;
        if (!check_code(call, "STALE"))
            continue;
        for (; next < count && refs[next].key.by[0] <= call->hi; next++) {
            const struct call *other = refs[next].thing;
            if (other->outcome != OUTCOME_REFUSED &&
                (newest == NULL || other->token > newest->token))
                newest = other;
        }
        if (newest == NULL || newest->token <= call->token)
            check_found(c, "stale", call->id, 0,
                        "resource %.*s refuses token %llu, but was shown no "
                        "newer one",
                        SHOW(call->name), (unsigned long long)call->token);
    }
}

/* BADARG: a number that was never given, so none that large may be known. */
static void judge_badarg(struct check *c, const struct call *call)
{
    const struct number *all = c->numbers.data;

    if (!check_code(call, "BADARG") ||
        memmem(call->reply.data, call->reply.len, "never given", 11) == NULL)
        return; /* malformed words are another matter */
    for (size_t i = 0; i < c->numbers.count; i++) {
        if (all[i].key.by[0] >= call->token && all[i].hi < call->first) {
            check_found(c, "badarg", call->id, all[i].id,
                        "resource %.*s refuses token %llu as never given, but "
                        "%llu was",
                        SHOW(call->name), (unsigned long long)call->token,
                        (unsigned long long)all[i].key.by[0]);
            return;
        }
    }
}

/* Who refuses a token has seen a newer one, and who accepts it has not. */
static void see_groups(struct check *c, const struct ref *refs, size_t count,
                       const struct call *told)
{
    const struct call *newer = NULL;
    size_t others = 0;

    for (size_t i = 0; i < count; i++) {
        const struct call *call = refs[i].thing;
        if (!call->may || call->token <= told->token || call->first > told->hi)
            continue;
        others++;
        newer = call;
        if (told->sure)
            check_seen(c, call, told, false);
    }
    if (others == 1 && check_code(told, "STALE"))
        check_seen(c, newer, told, true);
}

/* All calls about one resource, in the order of calling. */
static void judge(struct check *c, void *items, size_t count)
{
    const struct ref *refs = items;
    const struct call *const *deletes = c->deletes.data;
    bool deleted = c->flush_count > 0;

    for (size_t i = 0; i < c->deletes.count; i++)
        deleted =
            deleted || (deletes[i]->may && deletes[i]->word_count > 2 &&
                        hf_bytes_equal(deletes[i]->words[2], refs[0].key.name));
    if (!deleted)
        judge_accepted(c, refs, count);
    if (c->closed)
        judge_stale(c, refs, count);
    for (size_t i = 0; i < count && c->groups.count > 0 && !deleted; i++) {
        if (c->closed)
            see_groups(c, refs, count, refs[i].thing);
    }
    for (size_t i = 0; i < count; i++)
        judge_badarg(c, refs[i].thing);
}

/* For each run the smallest number that was surely given in it or later;
 * UINT64_MAX: none. A start may leave numbers out. */
static void find_least(const struct check *c, uint64_t *least)
{
    const struct number *all = c->numbers.data;

    for (size_t i = 0; i <= c->start_count; i++)
        least[i] = UINT64_MAX;
    for (size_t i = 0; i < c->numbers.count; i++) {
        size_t run = check_next_start(c, all[i].lo);
        if (all[i].lo > 0 && all[i].key.by[0] < least[run])
            least[run] = all[i].key.by[0];
    }
    for (size_t i = c->start_count; i-- > 0;)
        least[i] = least[i + 1] < least[i] ? least[i + 1] : least[i];
}

/* What is accepted was given: so it is not above all that can have been, and
 * what is given later is larger. */
static void judge_given(struct check *c, const uint64_t *least,
                        const struct call *call)
{
    uint64_t number = least[check_next_start(c, call->hi)];
    uint64_t more = check_calls_until(c, call->hi) * NUMBERS_PER_CALL;

    if (call->outcome != OUTCOME_DONE)
        return;
    if (c->closed && call->token > number && call->token - number > more)
        check_found(c, "fence", call->id, 0,
                    "resource %.*s accepted token %llu, which cannot have "
                    "been given",
                    SHOW(call->name), (unsigned long long)call->token);
    else
        check_number_given(c, call->token, 0, call->hi, call->id);
}

void check_fences(struct check *c)
{
    uint64_t *least = check_alloc(c, (c->start_count + 1) * sizeof *least);
    struct list refs = {0};

    find_least(c, least);
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb != VERB_FENCE)
            continue;
        if (hf_bytes_is(call->name, "DEL")) {
            *(const struct call **)check_push(c, &c->deletes, sizeof call) =
                call;
            continue;
        }
        judge_given(c, least, call);
        check_refer(c, &refs, call->name, call->call_at, call);
    }
    check_groups(c, &refs, sizeof(struct ref), judge);
}
