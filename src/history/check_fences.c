/* check_fences.c - the newest token that each resource has accepted.
 *
 *   FENCE r 9   |.... OK|
 *   FENCE r 7               |.... must be STALE|
 */
#include "base/memory.h"
#include "history/check.h"

/* One call makes less than that: it waits, is granted, and its hold ends. */
#define NUMBERS_PER_CALL 16u

static int by_resource(const void *a, const void *b)
{
    const struct call *left = *(const struct call *const *)a;
    const struct call *right = *(const struct call *const *)b;
    int order = check_compare(left->name, right->name);

    if (order != 0)
        return order;
    return (left->call_at > right->call_at) - (left->call_at < right->call_at);
}

static int by_hi(const void *a, const void *b)
{
    const struct call *left = *(const struct call *const *)a;
    const struct call *right = *(const struct call *const *)b;

    return (left->hi > right->hi) - (left->hi < right->hi);
}

static bool is_delete(const struct call *call)
{
    return hf_bytes_is(call->name, "DEL");
}

/* Accepted ones, by hi; each replaced by the newest up to it. Those behind a
 * deletion that may come between count for nothing, so a resource that is ever
 * deleted or flushed is not judged by what was accepted. */
static void judge_accepted(struct check *c, const struct call **calls,
                           size_t count, const struct call **accepted,
                           uint32_t *known)
{
    size_t n = 0;

    for (size_t i = 0; i < count; i++) {
        if (calls[i]->outcome == OUTCOME_DONE)
            accepted[n++] = calls[i];
    }
    qsort(accepted, n, sizeof *accepted, by_hi);
    for (size_t i = 0; i < n; i++) {
        known[i] = accepted[i]->hi;
        if (i > 0 && accepted[i - 1]->token > accepted[i]->token)
            accepted[i] = accepted[i - 1];
    }
    for (size_t i = 0; i < count; i++) {
        const struct call *call = calls[i];
        size_t before = check_below(known, n, sizeof *known, 0, call->first);
        if (before > 0 && call->sure &&
            accepted[before - 1]->token > call->token)
            check_found(c, "fence", call->id, accepted[before - 1]->id,
                        "resource %.*s accepted token %llu after %llu",
                        SHOW(call->name), (unsigned long long)call->token,
                        (unsigned long long)accepted[before - 1]->token);
    }
}

/* STALE: somebody showed a newer token before. */
static void judge_stale(struct check *c, const struct call **calls,
                        size_t count)
{
    const struct call *newest = NULL; /* of those called so far */
    size_t next = 0;

    for (size_t i = 0; i < count; i++) {
        const struct call *call = calls[i];
        if (!check_code(call, "STALE"))
            continue;
        for (; next < count && calls[next]->call_at <= call->hi; next++) {
            if (calls[next]->outcome != OUTCOME_REFUSED &&
                (newest == NULL || calls[next]->token > newest->token))
                newest = calls[next];
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
    const struct number *all = (const struct number *)c->numbers.data;

    if (!check_code(call, "BADARG") ||
        memmem(call->reply.data, call->reply.len, "never given", 11) == NULL)
        return; /* malformed words are another matter */
    for (size_t i = 0; i < c->numbers.count; i++) {
        if (all[i].number >= call->token && all[i].hi < call->first) {
            check_found(c, "badarg", call->id, all[i].id,
                        "resource %.*s refuses token %llu as never given, but "
                        "%llu was",
                        SHOW(call->name), (unsigned long long)call->token,
                        (unsigned long long)all[i].number);
            return;
        }
    }
}

static enum hf_status judge(struct check *c, const struct call **calls,
                            size_t count, const struct call **deletes,
                            size_t delete_count)
{
    const struct call **accepted = hf_alloc(count * sizeof *accepted);
    uint32_t *known = hf_alloc(count * sizeof *known);
    bool deleted = c->flush_count > 0;
    enum hf_status status = HF_OK;

    for (size_t i = 0; i < delete_count; i++)
        deleted =
            deleted || (deletes[i]->may && deletes[i]->word_count > 2 &&
                        hf_bytes_equal(deletes[i]->words[2], calls[0]->name));
    if (accepted == NULL || known == NULL)
        status = HF_NOMEM;
    else if (!deleted)
        judge_accepted(c, calls, count, accepted, known);
    if (status == HF_OK && c->closed)
        judge_stale(c, calls, count);
    for (size_t i = 0; status == HF_OK && i < count; i++)
        judge_badarg(c, calls[i]);
    hf_free(accepted);
    hf_free(known);
    return status;
}

/* For each run the smallest number that was surely given in it or later;
 * UINT64_MAX: none. A start may leave numbers out. */
static void find_least(const struct check *c, uint64_t *least)
{
    const struct number *all = (const struct number *)c->numbers.data;

    for (size_t i = 0; i <= c->start_count; i++)
        least[i] = UINT64_MAX;
    for (size_t i = 0; i < c->numbers.count; i++) {
        size_t run = check_next_start(c, all[i].lo);
        if (all[i].lo > 0 && all[i].number < least[run])
            least[run] = all[i].number;
    }
    for (size_t i = c->start_count; i-- > 0;)
        least[i] = least[i + 1] < least[i] ? least[i + 1] : least[i];
}

/* What is accepted was given: so it is not above all that can have been, and
 * what is given later is larger. */
static enum hf_status judge_given(struct check *c, const struct call **fences,
                                  size_t count)
{
    uint64_t *least = hf_alloc((c->start_count + 1) * sizeof *least);
    enum hf_status status = least == NULL ? HF_NOMEM : HF_OK;

    if (status == HF_OK)
        find_least(c, least);
    for (size_t i = 0; status == HF_OK && i < count; i++) {
        const struct call *call = fences[i];
        if (call->outcome != OUTCOME_DONE)
            continue;
        uint64_t number = least[check_next_start(c, call->hi)];
        uint64_t more = check_calls_until(c, call->hi) * NUMBERS_PER_CALL;
        if (c->closed && call->token > number && call->token - number > more)
            check_found(c, "fence", call->id, 0,
                        "resource %.*s accepted token %llu, which cannot have "
                        "been given",
                        SHOW(call->name), (unsigned long long)call->token);
        else
            status = check_number_given(c, call->token, 0, call->hi, call->id);
    }
    hf_free(least);
    return status;
}

enum hf_status check_fences(struct check *c)
{
    const struct call **all = hf_alloc((c->count + 1) * sizeof *all);
    size_t count = 0;
    size_t deletes = 0;
    enum hf_status status = HF_OK;

    if (all == NULL)
        return HF_NOMEM;
    /* deletions from the end of the array, the rest from its start */
    for (size_t i = 0; i < c->count; i++) {
        const struct call *call = &c->calls[i];
        if (call->verb != VERB_FENCE)
            continue;
        if (is_delete(call))
            all[c->count - ++deletes] = call;
        else
            all[count++] = call;
    }
    status = judge_given(c, all, count);
    qsort(all, count, sizeof *all, by_resource);
    for (size_t start = 0, i = 1; status == HF_OK && i <= count; i++) {
        if (i < count && hf_bytes_equal(all[i]->name, all[start]->name))
            continue;
        status =
            judge(c, all + start, i - start, all + c->count - deletes, deletes);
        start = i;
    }
    hf_free(all);
    return status;
}
