/* check_hold.c - one token of one lock: when it was surely held, and what
 * contradicts that. */
#include "history/locks.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static uint32_t most(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* Does the fact end the hold, or may it? */
static bool may_end(const struct fact *fact)
{
    return fact->kind == FACT_UNLOCKED && fact->call->may &&
           (fact->call->outcome == OUTCOME_UNKNOWN || fact->count == 0);
}

static bool proves(const struct fact *fact)
{
    return fact->kind == FACT_SHOWN || fact->kind == FACT_GRANT ||
           ((fact->kind == FACT_RENEWED || fact->kind == FACT_UNLOCKED) &&
            fact->call->outcome == OUTCOME_DONE);
}

/* The owner of a hold is not known if only its token was ever used. */
static bool owned(const struct fact *asked, const struct hold *hold)
{
    return hold->owner.data == NULL ||
           hf_bytes_equal(asked->owner, hold->owner);
}

bool hold_may_begin(const struct fact *asked, const struct hold *hold,
                    uint32_t floor)
{
    return asked->lo <= hold->hi && asked->hi >= floor && owned(asked, hold);
}

uint32_t hold_floor(const struct lock_view *view, const struct hold *hold)
{
    uint32_t floor = 0;

    for (const struct hold *other = view->holds; other < hold; other++) {
        if (other->proof != NULL)
            floor = most(floor, other->end);
    }
    return floor;
}

/* The promise of `fact` (a grant or a renewal): up to where it surely holds.
 * Whatever may come after it and make it shorter is taken to have come. One
 * that was made when the hold was over is a violation of its own. */
static void promise(struct lock_view *view, struct hold *hold,
                    const struct fact *fact)
{
    const struct check *c = view->check;
    const struct call *call = fact->call;
    uint64_t safe_us = (uint64_t)fact->safe_ms * US_PER_MS;
    uint64_t until_us;
    uint32_t cut = check_next_flush(c, call->lo);

    if (fact->safe_ms <= 0 || call->lo > hold->over ||
        __builtin_add_overflow(call->told_us, safe_us, &until_us))
        return;
    if (check_until(c, call->lo, until_us) <= hold->end &&
        until_us <= hold->until_us)
        return;
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *other = &hold->facts[i];
        if (other == fact || other->hi < call->lo)
            continue;
        if (may_end(other))
            cut = least(cut, other->lo);
        if (other->kind == FACT_RENEWED) {
            uint64_t other_us =
                check_us(c, other->lo) + other->call->ttl_ms * US_PER_MS;
            until_us = other_us < until_us ? other_us : until_us;
        }
    }
    if (until_us > hold->until_us) {
        hold->until_us = until_us;
        hold->until_at = fact->hi;
        hold->until_cut = cut;
    }
    hold->end = most(hold->end, least(check_until(c, call->lo, until_us), cut));
}

/* When it may have begun, and how long it can last at the most. */
static void find_origin(struct lock_view *view, struct hold *hold)
{
    const struct check *c = view->check;
    bool asked = false;

    hold->lo = hold->begin != NULL ? hold->begin->lo : c->end;
    for (size_t i = 0; i < view->timed_end; i++) {
        const struct fact *fact = &view->loose[i];
        if (hold->next != NULL && fact->lo > hold->next->hi) {
            /* by then it was over; those that timed out begin anew */
            if (i >= view->asked_count)
                break;
            i = view->asked_count - 1;
            continue;
        }
        if ((hold->begin != NULL && fact->hi < hold->begin->lo) ||
            !owned(fact, hold))
            continue;
        /* of one that timed out until its end is written down, at the latest
         * with the run's */
        uint64_t over_us = check_over_us(c, fact->hi, fact->call->ttl_ms);
        hold->over_us = over_us > hold->over_us ? over_us : hold->over_us;
        asked = true;
        if (hold->begin == NULL)
            hold->lo = least(hold->lo, fact->call->first);
    }
    if (hold->begin == NULL && !asked)
        hold->lo = 0;
    if (hold->begin == NULL && !c->closed) {
        hold->lo = 0;
        hold->over_us = UINT64_MAX;
    }
}

static void find_over(struct lock_view *view, struct hold *hold)
{
    const struct check *c = view->check;

    hold->over = check_last(c, hold->over_us);
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        if (fact->kind == FACT_UNLOCKED && fact->count == 0 &&
            fact->call->outcome == OUTCOME_DONE)
            hold->over = least(hold->over, fact->hi);
    }
    for (size_t i = 0; i < c->flush_count; i++) {
        if (c->flushes[i].sure && c->flushes[i].lo > hold->hi)
            hold->over = least(hold->over, c->flushes[i].hi);
    }
    if (hold->next != NULL)
        hold->over = least(hold->over, hold->next->hi);
}

/* Of the later holds, the one that was known first. */
static const struct hold *find_next(const struct lock_view *view, size_t n)
{
    for (size_t i = n + 1; i < view->hold_count; i++) {
        const struct hold *later = &view->holds[i];
        if (later->proof == NULL)
            continue;
        return later->next != NULL && later->next->hi < later->hi ? later->next
                                                                  : later;
    }
    return NULL;
}

void hold_settle(struct lock_view *view, size_t n)
{
    struct hold *hold = &view->holds[n];
    const struct check *c = view->check;

    hold->hi = c->end;
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        if (!proves(fact))
            continue;
        if (hold->proof == NULL || fact->hi < hold->hi) {
            hold->hi = fact->hi;
            hold->proof = fact->call;
        }
        if (fact->kind == FACT_GRANT || fact->kind == FACT_SHOWN)
            hold->owner = fact->owner;
        if (fact->kind == FACT_GRANT && fact->count == 1 && fact->call->may &&
            (hold->begin == NULL || fact->lo < hold->begin->lo))
            hold->begin = fact;
    }
    if (hold->proof == NULL)
        return;
    hold->next = find_next(view, n);
    find_origin(view, hold);
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        bool sets = fact->kind == FACT_GRANT || fact->kind == FACT_RENEWED;
        if (sets && fact->call->may) {
            uint64_t over_us = check_over_us(c, fact->hi, fact->call->ttl_ms);
            hold->over_us = over_us > hold->over_us ? over_us : hold->over_us;
        }
        /* it was held when it was changed, so all along */
        if (proves(fact) && fact->kind != FACT_SHOWN && fact->call->may)
            hold->end = most(hold->end, fact->lo);
    }
    find_over(view, hold);
    for (size_t i = hold->count; i-- > 0;) {
        const struct fact *fact = &hold->facts[i];
        if ((fact->kind == FACT_GRANT || fact->kind == FACT_RENEWED) &&
            fact->call->outcome == OUTCOME_DONE)
            promise(view, hold, fact);
    }
    hold->kept = hold->end;
    for (size_t i = 0; i < hold->count; i++) {
        if (hold->facts[i].kind == FACT_SHOWN)
            hold->end = most(hold->end, hold->facts[i].lo);
    }
}

/* How many times it is held, by what was told: at least and at most, while
 * `fact` was answered. Its own step is in both. */
static void count_bounds(const struct lock_view *view, const struct hold *hold,
                         const struct fact *fact, int64_t *low, int64_t *high)
{
    *low = *high = 0;
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *other = &hold->facts[i];
        bool adds = other->kind == FACT_GRANT;
        if ((!adds && other->kind != FACT_UNLOCKED) || !other->call->may)
            continue;
        bool surely = other->call->sure && other->hi < fact->lo;
        bool possibly = other->lo <= fact->hi;
        surely = surely || (other == fact && other->call->sure);
        if (adds && surely)
            (*low)++;
        if (adds && possibly)
            (*high)++;
        if (!adds && surely)
            (*high)--;
        if (!adds && possibly)
            (*low)--;
    }
    for (size_t i = 0; i < view->timed_end && fact->count > *high; i++) {
        const struct fact *asked = &view->loose[i];
        bool over = asked->kind == FACT_TIMED_OUT && asked->hi < fact->lo;
        if (asked->lo <= fact->hi && !over && owned(asked, hold))
            (*high)++;
    }
}

static void judge_count(struct lock_view *view, const struct hold *hold,
                        const struct fact *fact)
{
    struct check *c = view->check;
    int64_t low;
    int64_t high;

    if (fact->kind != FACT_SHOWN &&
        (!fact->call->sure ||
         (fact->kind != FACT_GRANT && fact->kind != FACT_UNLOCKED)))
        return;
    count_bounds(view, hold, fact, &low, &high);
    if (fact->count < low || (fact->count > high && c->closed))
        check_found(c, "count", fact->call->id, hold->proof->id,
                    "lock %.*s, token %llu is held %lld times, but was taken "
                    "and given back so that it is held %lld to %lld times",
                    SHOW(view->name), (unsigned long long)hold->token,
                    (long long)fact->count, (long long)low, (long long)high);
}

/* True: it is shown when it can be held. */
static bool judge_shown(struct lock_view *view, const struct hold *hold,
                        const struct fact *fact)
{
    struct check *c = view->check;
    unsigned long long token = hold->token;

    if (fact->hi < hold->lo) {
        check_found(c, "phantom", fact->call->id, hold->proof->id,
                    "lock %.*s is shown with token %llu before it was asked "
                    "for",
                    SHOW(view->name), token);
        return false;
    }
    if (fact->lo > hold->over) {
        check_found(c, "stale-read", fact->call->id, hold->proof->id,
                    "lock %.*s is shown with token %llu, whose hold was over",
                    SHOW(view->name), token);
        return false;
    }
    uint64_t left_us = (uint64_t)fact->safe_ms * US_PER_MS;
    if (hold->over_us != UINT64_MAX &&
        check_us(c, fact->lo) + left_us > hold->over_us + CHECK_ROUNDED_US)
        check_found(c, "expiry", fact->call->id, hold->proof->id,
                    "lock %.*s, token %llu expires in %lld ms, which is later "
                    "than anybody asked for",
                    SHOW(view->name), token, (long long)fact->safe_ms);
    if (fact->lo > hold->until_at && fact->hi < hold->until_cut &&
        check_us(c, fact->hi) + left_us + CHECK_ROUNDED_US <
            check_kept_us(c, hold->until_at, fact->hi, hold->until_us))
        check_found(c, "expiry", fact->call->id, hold->proof->id,
                    "lock %.*s, token %llu expires in %lld ms, which is "
                    "earlier than was promised",
                    SHOW(view->name), token, (long long)fact->safe_ms);
    return true;
}

/* Who began a hold of which no grant was told? False: nobody. */
static bool judge_origin(struct lock_view *view, const struct hold *hold)
{
    struct check *c = view->check;
    const struct fact *asked = NULL;

    if (hold->begin != NULL || !c->closed)
        return true;
    uint32_t floor = hold_floor(view, hold);
    for (size_t i = 0; i < view->timed_end; i++) {
        const struct fact *fact = &view->loose[i];
        bool told = fact->kind == FACT_TIMED_OUT && hold->end > fact->hi;
        if (!told && hold_may_begin(fact, hold, floor))
            asked = fact;
    }
    /* a repetition of which it is not sure whether it is one */
    for (size_t i = 0; i < hold->count; i++) {
        if (hold->facts[i].kind == FACT_GRANT && !hold->facts[i].call->sure)
            asked = &hold->facts[i];
    }
    if (asked == NULL)
        check_found(c, "phantom", hold->proof->id, 0,
                    "lock %.*s has token %llu for owner %.*s, whom nobody can "
                    "have given it",
                    SHOW(view->name), (unsigned long long)hold->token,
                    SHOW(hold->owner));
    return asked != NULL;
}

/* Is more time promised than anybody can have asked for? */
static bool promises_too_much(const struct check *c, const struct hold *hold,
                              const struct fact *fact)
{
    uint64_t until_us;

    if (!c->closed || hold->over_us > UINT64_MAX - CHECK_ROUNDED_US)
        return false;
    return __builtin_mul_overflow((uint64_t)fact->safe_ms, (uint64_t)US_PER_MS,
                                  &until_us) ||
           __builtin_add_overflow(until_us, fact->call->told_us, &until_us) ||
           until_us > hold->over_us + CHECK_ROUNDED_US;
}

/* Something was done with it, or promised of it, when it was over; or more was
 * promised than there is. */
static void judge_late(struct lock_view *view, const struct hold *hold,
                       const struct fact *fact)
{
    struct check *c = view->check;
    bool promises = fact->kind == FACT_GRANT || fact->kind == FACT_RENEWED;

    if (fact->kind == FACT_SHOWN || !proves(fact))
        return;
    if (fact->call->may && fact->lo > hold->over)
        check_found(c, "revived", fact->call->id, hold->proof->id,
                    "lock %.*s, token %llu was over, and is held again",
                    SHOW(view->name), (unsigned long long)hold->token);
    else if (promises && fact->safe_ms > 0 && fact->call->lo > hold->over)
        check_found(c, "promise", fact->call->id, hold->proof->id,
                    "lock %.*s, token %llu was over, and safe_ms is %lld",
                    SHOW(view->name), (unsigned long long)hold->token,
                    (long long)fact->safe_ms);
    else if (promises && fact->safe_ms > 0 && promises_too_much(c, hold, fact))
        check_found(c, "expiry", fact->call->id, hold->proof->id,
                    "lock %.*s, token %llu is promised for %lld ms, which is "
                    "longer than anybody asked for",
                    SHOW(view->name), (unsigned long long)hold->token,
                    (long long)fact->safe_ms);
}

void hold_judge(struct lock_view *view, const struct hold *hold)
{
    struct check *c = view->check;
    bool shared = hold->next != NULL && hold->next->hi < hold->kept;

    if (!judge_origin(view, hold))
        return; /* the rest is about one that there is */
    if (shared)
        check_found(c, "exclusion", hold->next->proof->id, hold->proof->id,
                    "lock %.*s: token %llu was given while token %llu was "
                    "held",
                    SHOW(view->name), (unsigned long long)hold->next->token,
                    (unsigned long long)hold->token);
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        if (fact->kind == FACT_MISSED && fact->lo > hold->hi &&
            fact->hi < hold->end)
            check_found(c, "lost", fact->call->id, hold->proof->id,
                        "lock %.*s was held with token %llu all the time",
                        SHOW(view->name), (unsigned long long)hold->token);
        if (!shared)
            judge_late(view, hold, fact);
        if (fact->kind != FACT_SHOWN || judge_shown(view, hold, fact))
            judge_count(view, hold, fact);
    }
}
