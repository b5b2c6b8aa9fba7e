/* check_lock.c - one lock: reads that tell no token, order of the queue, and
 * holds of those who were gone. */
#include "history/locks.h"

/* So long after an end the server may not have acted on it yet. */
#define GONE_SLACK_US 50000u
#define PRIORITIES    4u

/* Holds in the order in which they were known, each replaced by the one up to
 * it that surely lasts longest: so the last one known before a read tells
 * whether any of them was held all through it. */
static struct list sort_holds(const struct lock_view *view)
{
    struct list longest = {0};

    for (size_t i = 0; i < view->hold_count; i++) {
        const struct hold *hold = &view->holds[i];
        if (hold->proof != NULL && hold->end > 0)
            check_refer(view->check, &longest, view->name, hold->hi, hold);
    }
    check_sort(&longest, sizeof(struct ref));
    struct ref *refs = longest.data;
    for (size_t i = 1; i < longest.count; i++) {
        const struct hold *before = refs[i - 1].thing;
        if (before->end > ((const struct hold *)refs[i].thing)->end)
            refs[i].thing = before;
    }
    return longest;
}

static const struct hold *held_through(const struct list *longest, uint32_t lo,
                                       uint32_t hi)
{
    const struct ref *last = check_last_below(longest, lo);
    const struct hold *hold = last == NULL ? NULL : last->thing;

    return hold != NULL && hold->end > hi ? hold : NULL;
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
        if (hold->hi < busy->lo && hold->mode == MODE_EXCLUSIVE)
            break;
    }
    for (size_t i = 0; i < view->waited_end; i++) {
        const struct fact *asked = &view->loose[i];
        uint64_t over_us =
            check_over_us(view->check, asked->hi, asked->call->ttl_ms);
        bool told = asked->kind != FACT_ASKED && asked->hi < busy->lo;
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
        ((hf_bytes_equal(fact->call->owner, held->owner) &&
          held->session == fact->session && held->session != CHECK_UNKNOWN) ||
         (fact->owner.data != NULL && held->mode == MODE_EXCLUSIVE &&
          held->softened == CHECK_NEVER &&
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

static bool shows(const struct hold *hold, const struct call *listing)
{
    for (size_t i = 0; i < hold->count; i++) {
        if (hold->facts[i].kind == FACT_SHOWN && hold->facts[i].call == listing)
            return true;
    }
    return false;
}

/* Of several who hold it together the oldest is shown. */
static bool is_shown(const struct lock_view *view, const struct hold *held,
                     const struct call *listing)
{
    bool shown = shows(held, listing);

    for (size_t i = 0; i < view->hold_count && !shown; i++)
        shown = shows(&view->holds[i], listing);
    return shown;
}

/* Lists that show all there is. */
static void judge_listings(const struct lock_view *view,
                           const struct list *longest)
{
    struct check *c = view->check;
    const struct call *const *listings = c->listings.data;

    for (size_t i = 0; i < c->listings.count; i++) {
        const struct hold *held =
            held_through(longest, listings[i]->lo, listings[i]->hi);
        if (held != NULL && listings[i]->verb == VERB_LOCKS &&
            check_lists(listings[i], view->name) &&
            !is_shown(view, held, listings[i]))
            check_found(c, "missing", listings[i]->id, held->proof->id,
                        "lock %.*s is not in the list, but was held with "
                        "token %llu all the time",
                        SHOW(view->name), (unsigned long long)held->token);
    }
}

/* Order of the queue. */

bool lock_was_queued(const struct hold *hold)
{
    const struct fact *begin = hold->begin;

    return hold->proof != NULL && begin != NULL && begin->call->alone &&
           begin->call->arrived_at != CHECK_NEVER && begin->call->sure &&
           check_waits(begin->call) && begin->call->request.len == 0 &&
           hold->mode == MODE_EXCLUSIVE && !begin->call->terms.barge &&
           !begin->call->terms.aged;
}

static void judge_order(const struct lock_view *view, uint64_t priority)
{
    struct check *c = view->check;
    const struct fact *newest = NULL; /* of those who came well before */
    struct list queue = {0};
    size_t seen = 0;

    for (size_t i = 0; i < view->hold_count; i++) {
        const struct hold *hold = &view->holds[i];
        if (lock_was_queued(hold) &&
            hold->begin->call->terms.priority == priority)
            check_refer(c, &queue, view->name, hold->begin->lo, hold->begin);
    }
    check_sort(&queue, sizeof(struct ref));
    const struct ref *refs = queue.data;
    for (size_t i = 0; i < queue.count; i++) {
        const struct fact *fact = refs[i].thing;
        const struct fact *early = refs[seen].thing;
        while (check_us(c, early->lo) + ORDER_SLACK_US <
               check_us(c, fact->lo)) {
            if (newest == NULL ||
                newest->call->run_end != early->call->run_end ||
                newest->token < early->token)
                newest = early;
            early = refs[++seen].thing;
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
static bool was_gone(const struct check *c, const struct hold *hold,
                     const struct fact *asked, const struct fact *shown)
{
    const struct call *call = asked->call;
    uint32_t gone = check_gone(c, call->client, false);

    if (call->group != NULL || call->request.len > 0 || gone == CHECK_NEVER ||
        call->broken || call->outcome != OUTCOME_UNKNOWN || !call->alone ||
        shown->hi > call->run_end || hold_is_reentered(hold, gone))
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
        if (!was_gone(view->check, hold, asked, shown))
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
            const struct fact *fact = &hold->facts[j];
            bool again = fact->kind == FACT_GRANT && fact->call->sure;
            if (fact->kind == FACT_SHOWN || again)
                judge_gone(view, hold, fact);
        }
    }
}

/* ---- What is seen of groups. ---- */

/* The only LOCK that can have begun the hold; or NULL. */
static const struct call *find_origin(const struct lock_view *view,
                                      const struct hold *hold)
{
    uint32_t floor = hold_floor(view, hold);
    const struct call *only = NULL;

    if (hold->begin != NULL)
        return hold->begin->call;
    for (size_t i = 0; i < view->timed_end; i++) {
        const struct fact *asked = &view->loose[i];
        if (!hold_may_begin(asked, hold, floor))
            continue;
        if (only != NULL || asked->kind != FACT_ASKED)
            return NULL;
        only = asked->call;
    }
    for (size_t i = 0; i < hold->count; i++) {
        if (hold->facts[i].kind == FACT_GRANT && !hold->facts[i].call->sure)
            return NULL;
    }
    return only;
}

static void see_hold(const struct lock_view *view, const struct hold *hold)
{
    const struct call *origin = find_origin(view, hold);

    if (origin == NULL || origin->group == NULL)
        return;
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        if (fact->call != origin && fact->kind != FACT_MISSED &&
            fact->call->outcome == OUTCOME_DONE)
            check_seen(view->check, origin, fact->call, true);
    }
    for (size_t i = view->waited_end; i < view->loose_count; i++) {
        const struct fact *fact = &view->loose[i];
        if (fact->kind == FACT_FREE && fact->hi < hold->end &&
            fact->hi >= origin->first)
            check_seen(view->check, origin, fact->call, false);
    }
}

/* May anybody have ended a hold of which nobody was told the token? */
static bool may_be_ended(const struct lock_view *view)
{
    bool may = view->check->wounds.count > 0 || view->check->flush_count > 0;

    for (size_t i = 0; i < view->hold_count && !may; i++) {
        const struct hold *hold = &view->holds[i];
        for (size_t j = 0; hold->begin == NULL && j < hold->count; j++)
            may = may || hold->facts[j].kind == FACT_UNLOCKED ||
                  hold->facts[j].kind == FACT_REVOKED;
    }
    return may;
}

/* A LOCK of unknown outcome was not granted if the lock is free before its TTL
 * can be over. */
static void see_asked(const struct lock_view *view, const struct fact *asked)
{
    const struct check *c = view->check;
    const struct call *call = asked->call;
    uint64_t ttl_ms = call->ttl_ms;

    if (call->group == NULL || asked->session != 0 ||
        call->ttl_ms == CHECK_NO_END_MS)
        return;
    if (call->terms.maxhold_ms > 0 && call->terms.maxhold_ms < ttl_ms)
        ttl_ms = call->terms.maxhold_ms;
    uint32_t until =
        check_until(c, asked->lo, check_us(c, asked->lo) + ttl_ms * US_PER_MS);
    for (size_t i = view->waited_end; i < view->loose_count; i++) {
        const struct fact *fact = &view->loose[i];
        if (fact->kind == FACT_FREE && fact->hi < until &&
            fact->hi >= asked->lo)
            check_seen(view->check, call, fact->call, false);
    }
}

static void see_groups(const struct lock_view *view)
{
    if (view->check->groups.count == 0 || !view->check->closed)
        return;
    for (size_t i = 0; i < view->hold_count; i++) {
        if (view->holds[i].proof != NULL)
            see_hold(view, &view->holds[i]);
    }
    for (size_t i = 0; i < view->asked_count && !may_be_ended(view); i++)
        see_asked(view, &view->loose[i]);
}

void lock_judge(struct lock_view *view)
{
    struct list longest = sort_holds(view);

    for (size_t i = view->waited_end; i < view->loose_count; i++) {
        const struct fact *fact = &view->loose[i];
        judge_loose(view, fact, held_through(&longest, fact->lo, fact->hi));
    }
    judge_listings(view, &longest);
    for (uint64_t priority = 0; priority < PRIORITIES; priority++)
        judge_order(view, priority);
    judge_orphans(view);
    see_groups(view);
}
