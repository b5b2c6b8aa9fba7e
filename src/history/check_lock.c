/* check_lock.c - one lock: reads that tell no token, order of the queue, and
 * holds of those who were gone. */
#include "base/memory.h"
#include "history/locks.h"

/* Requests that arrive closer together may overtake each other. */
#define ORDER_SLACK_US 50000u
/* So long after an end the server may not have acted on it yet. */
#define GONE_SLACK_US 50000u

static int by_hi(const void *a, const void *b)
{
    const struct hold *left = *(const struct hold *const *)a;
    const struct hold *right = *(const struct hold *const *)b;

    return (left->hi > right->hi) - (left->hi < right->hi);
}

/* Holds in the order in which they were known, each replaced by the one up to
 * it that surely lasts longest: so the last one known before a read tells
 * whether any of them was held all through it. */
static size_t sort_holds(const struct lock_view *view, const struct hold **out)
{
    size_t count = 0;

    for (size_t i = 0; i < view->hold_count; i++) {
        if (view->holds[i].proof != NULL && view->holds[i].end > 0)
            out[count++] = &view->holds[i];
    }
    qsort(out, count, sizeof *out, by_hi);
    return count;
}

/* Keys: where each of the sorted holds was known. */
static const struct hold *held_through(const struct hold *const *longest,
                                       const uint32_t *known, size_t count,
                                       const struct fact *fact)
{
    size_t low = check_below(known, count, sizeof *known, 0, fact->lo);

    if (low == 0 || longest[low - 1]->end <= fact->hi)
        return NULL;
    return longest[low - 1];
}

/* May the owner whom a BUSY names have held the lock then? Tokens are given in
 * order, so the search ends at the first that was known before. */
static bool may_hold(const struct lock_view *view, const struct fact *busy)
{
    for (size_t i = view->hold_count; i-- > 0;) {
        const struct hold *hold = &view->holds[i];
        if (hold->proof == NULL || hold->lo > busy->hi)
            continue;
        if (busy->lo <= hold->over &&
            (hold->owner.data == NULL ||
             hf_bytes_equal(hold->owner, busy->owner)))
            return true;
        if (hold->hi < busy->lo)
            break;
    }
    for (size_t i = 0; i < view->timed_end; i++) {
        const struct fact *asked = &view->loose[i];
        uint64_t over_us =
            check_over_us(view->check, asked->hi, asked->call->ttl_ms);
        bool told = asked->kind == FACT_TIMED_OUT && asked->hi < busy->lo;
        if (!told && asked->lo <= busy->hi &&
            over_us >= check_us(view->check, busy->lo) &&
            hf_bytes_equal(asked->owner, busy->owner))
            return true;
    }
    return false;
}

static void judge_loose(const struct lock_view *view, const struct fact *fact,
                        const struct hold *held)
{
    struct check *c = view->check;

    if (held != NULL && fact->kind == FACT_FREE)
        check_found(c, "missing", fact->call->id, held->proof->id,
                    "lock %.*s is free, but was held with token %llu all the "
                    "time",
                    SHOW(view->name), (unsigned long long)held->token);
    if (fact->kind != FACT_BUSY)
        return;
    if (held != NULL && held->owner.data != NULL &&
        (hf_bytes_equal(fact->call->owner, held->owner) ||
         (fact->owner.data != NULL &&
          !hf_bytes_equal(fact->owner, held->owner)))) {
        check_found(c, "busy", fact->call->id, held->proof->id,
                    "lock %.*s is busy with another, but %.*s held it with "
                    "token %llu all the time",
                    SHOW(view->name), SHOW(held->owner),
                    (unsigned long long)held->token);
        return;
    }
    if (c->closed && fact->owner.data != NULL && !may_hold(view, fact))
        check_found(c, "busy", fact->call->id, 0,
                    "lock %.*s is busy with %.*s, who cannot hold it",
                    SHOW(view->name), SHOW(fact->owner));
}

static bool is_shown(const struct hold *hold, const struct call *listing)
{
    for (size_t i = 0; i < hold->count; i++) {
        if (hold->facts[i].kind == FACT_SHOWN && hold->facts[i].call == listing)
            return true;
    }
    return false;
}

/* Lists that show all there is. */
static void judge_listings(const struct lock_view *view,
                           const struct hold *const *longest,
                           const uint32_t *known, size_t count)
{
    struct check *c = view->check;
    const struct call *const *listings =
        (const struct call *const *)(void *)c->listings.data;

    for (size_t i = 0; i < c->listings.count; i++) {
        struct fact fact = {.lo = listings[i]->lo, .hi = listings[i]->hi};
        const struct hold *held = held_through(longest, known, count, &fact);
        if (held != NULL && listings[i]->verb == VERB_LOCKS &&
            check_lists(listings[i], view->name) &&
            !is_shown(held, listings[i]))
            check_found(c, "missing", listings[i]->id, held->proof->id,
                        "lock %.*s is not in the list, but was held with "
                        "token %llu all the time",
                        SHOW(view->name), (unsigned long long)held->token);
    }
}

/* Order of the queue. */

static int by_arrival(const void *a, const void *b)
{
    const struct fact *left = *(const struct fact *const *)a;
    const struct fact *right = *(const struct fact *const *)b;

    return (left->lo > right->lo) - (left->lo < right->lo);
}

static bool was_queued(const struct hold *hold)
{
    const struct fact *begin = hold->begin;

    return hold->proof != NULL && begin != NULL && begin->call->alone &&
           begin->call->arrived_at != CHECK_NEVER && begin->call->sure &&
           begin->call->wait_ms > 0 && begin->call->request.len == 0;
}

static void judge_order(const struct lock_view *view, const struct fact **queue)
{
    struct check *c = view->check;
    const struct fact *newest = NULL; /* of those who came well before */
    size_t count = 0;
    size_t seen = 0;

    for (size_t i = 0; i < view->hold_count; i++) {
        if (was_queued(&view->holds[i]))
            queue[count++] = view->holds[i].begin;
    }
    qsort(queue, count, sizeof *queue, by_arrival);
    for (size_t i = 0; i < count; i++) {
        const struct fact *fact = queue[i];
        while (check_us(c, queue[seen]->lo) + ORDER_SLACK_US <
               check_us(c, fact->lo)) {
            bool newer = newest == NULL ||
                         newest->call->run_end != queue[seen]->call->run_end ||
                         newest->token < queue[seen]->token;
            newest = newer ? queue[seen] : newest;
            seen++;
        }
        if (newest != NULL && newest->token > fact->token &&
            newest->call->run_end == fact->call->run_end &&
            !hf_bytes_equal(newest->owner, fact->owner))
            check_found(c, "fifo", fact->call->id, newest->call->id,
                        "lock %.*s: who came later was given token %llu "
                        "after %llu",
                        SHOW(view->name), (unsigned long long)fact->token,
                        (unsigned long long)newest->token);
    }
}

/* Holds of those who were gone. */

/* Must this LOCK, if it was granted, have been given back before the read?
 * It had no REQ, its connection had ended, and either the hold is younger than
 * that end, or nobody was ever told of it. A journal that fails meanwhile
 * cannot take the record that gives it back. */
static bool was_gone(const struct check *c, const struct fact *asked,
                     const struct fact *shown)
{
    const struct call *call = asked->call;
    uint32_t gone = check_gone(c, call->client);

    if (call->request.len > 0 || gone == CHECK_NEVER || call->broken ||
        call->outcome != OUTCOME_UNKNOWN || !call->alone ||
        shown->hi > call->run_end)
        return false;
    uint64_t gone_us = check_us(c, gone) + GONE_SLACK_US;
    uint64_t held_us = (uint64_t)(shown->held_ms + 1) * US_PER_MS;
    if (shown->held_ms >= 0 && check_us(c, shown->lo) > gone_us + held_us)
        return true;
    return call->arrived_at != CHECK_NEVER && call->sent_at == CHECK_NEVER &&
           check_us(c, shown->lo) > gone_us;
}

static void judge_gone(const struct lock_view *view, const struct hold *hold,
                       const struct fact *shown)
{
    uint32_t floor = hold_floor(view, hold);
    const struct fact *last = NULL;

    for (size_t i = 0; i < view->asked_count; i++) {
        const struct fact *asked = &view->loose[i];
        if (!hold_may_begin(asked, hold, floor))
            continue;
        if (!was_gone(view->check, asked, shown))
            return;
        last = asked;
    }
    if (last != NULL)
        check_found(view->check, "gone", shown->call->id, last->call->id,
                    "lock %.*s, token %llu is held by one who was gone before "
                    "it was granted",
                    SHOW(view->name), (unsigned long long)hold->token);
}

static void judge_orphans(const struct lock_view *view)
{
    for (size_t i = 0; i < view->hold_count; i++) {
        const struct hold *hold = &view->holds[i];
        if (hold->proof == NULL || hold->begin != NULL || !view->check->closed)
            continue;
        for (size_t j = 0; j < hold->count; j++) {
            if (hold->facts[j].kind == FACT_SHOWN)
                judge_gone(view, hold, &hold->facts[j]);
        }
    }
}

enum hf_status lock_judge(struct lock_view *view)
{
    size_t size = view->hold_count + 1;
    const struct hold **longest = hf_alloc(size * sizeof *longest);
    const struct fact **queue = hf_alloc(size * sizeof *queue);
    uint32_t *known = hf_alloc(size * sizeof *known);
    enum hf_status status = HF_NOMEM;

    if (longest == NULL || known == NULL || queue == NULL)
        goto done;
    size_t count = sort_holds(view, longest);
    for (size_t i = 0; i < count; i++) {
        known[i] = longest[i]->hi;
        if (i > 0 && longest[i - 1]->end > longest[i]->end)
            longest[i] = longest[i - 1];
    }
    for (size_t i = view->asked_count; i < view->loose_count; i++) {
        const struct fact *fact = &view->loose[i];
        judge_loose(view, fact, held_through(longest, known, count, fact));
    }
    judge_listings(view, longest, known, count);
    judge_order(view, queue);
    judge_orphans(view);
    status = HF_OK;
done:
    hf_free(longest);
    hf_free(queue);
    hf_free(known);
    return status;
}
