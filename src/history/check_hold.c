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
    return fact->call->may &&
           (fact->kind == FACT_REVOKED ||
            (fact->kind == FACT_UNLOCKED &&
             (fact->call->outcome == OUTCOME_UNKNOWN || fact->count == 0)));
}

static bool proves(const struct fact *fact)
{
    return fact->kind >= FACT_GRANT && fact->kind != FACT_MISSED &&
           (fact->kind == FACT_SHOWN || fact->kind == FACT_GRANT ||
            fact->call->outcome == OUTCOME_DONE);
}

static bool is_read(const struct fact *fact)
{
    return fact->kind == FACT_SHOWN || fact->kind == FACT_HELD;
}

/* One that tells how long it is held. */
static bool tells_end(const struct fact *fact)
{
    return fact->kind == FACT_GRANT || fact->kind == FACT_RENEWED ||
           fact->kind == FACT_DOWNGRADED;
}

/* The owner of a hold is not known if only its token was ever used. */
static bool owned(const struct fact *asked, const struct hold *hold)
{
    return (hold->owner.data == NULL ||
            hf_bytes_equal(asked->owner, hold->owner)) &&
           (hold->session == CHECK_UNKNOWN || asked->session == CHECK_UNKNOWN ||
            asked->session == hold->session);
}

/* One that is shared may have been exclusive when it was given. */
static bool may_be_as(const struct fact *asked, const struct hold *hold)
{
    return hold->mode == MODE_NONE || asked->mode == hold->mode ||
           (hold->mode == MODE_SHARED && asked->mode == MODE_EXCLUSIVE);
}

bool hold_may_begin(const struct fact *asked, const struct hold *hold,
                    uint32_t floor)
{
    return asked->lo <= hold->hi && asked->hi >= floor && owned(asked, hold) &&
           may_be_as(asked, hold);
}

uint32_t hold_floor(const struct lock_view *view, const struct hold *hold)
{
    uint32_t floor = 0;

    for (const struct hold *other = view->holds; other < hold; other++) {
        if (other->proof != NULL && modes_exclude(other, hold))
            floor = most(floor, other->end);
    }
    return floor;
}

bool hold_is_reentered(const struct hold *hold, uint32_t until)
{
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        if (fact->kind == FACT_GRANT && fact->count > 1 && fact->call->may &&
            fact->lo <= until)
            return true;
    }
    return false;
}

/* May this LOCK with WOUNDWAIT end the hold? Not if the hold is older. */
static bool may_wound(const struct lock_view *view, const struct hold *hold,
                      const struct call *call)
{
    bool known =
        hold->session != CHECK_UNKNOWN && call->terms.session != CHECK_UNKNOWN;
    uint64_t age = hold->session != 0 ? hold->session : hold->token;

    if (!hold->set && call->verb == VERB_LOCK &&
        !hf_bytes_equal(call->name, view->name) &&
        !trees_relate(view->check, call->name, view->name))
        return false;
    return !known || hold->begin == NULL ||
           hold->begin->call->terms.priority > call->terms.priority ||
           age >= call->terms.session;
}

/* The first position at which somebody else may have ended it, of what may have
 * come after `from`. */
static uint32_t find_cut(const struct lock_view *view, const struct hold *hold,
                         uint32_t from)
{
    const struct check *c = view->check;
    const struct call *const *closes = c->closes.data;
    const struct call *const *wounds = c->wounds.data;
    uint32_t cut = check_next_flush(c, from);

    for (size_t i = 0; i < c->closes.count && hold->session != 0; i++) {
        if (closes[i]->may && closes[i]->hi >= from &&
            (hold->session == CHECK_UNKNOWN ||
             closes[i]->terms.session == hold->session))
            cut = least(cut, closes[i]->first);
    }
    for (size_t i = 0; i < c->wounds.count; i++) {
        if (wounds[i]->hi >= from && may_wound(view, hold, wounds[i]))
            cut = least(cut, wounds[i]->first);
    }
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        if (fact->hi >= from && may_end(fact))
            cut = least(cut, fact->lo);
    }
    return cut;
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
        if (other->kind == FACT_RENEWED) {
            uint64_t other_us =
                check_us(c, other->lo) + other->call->ttl_ms * US_PER_MS;
            until_us = other_us < until_us ? other_us : until_us;
        }
    }
    uint32_t cut = find_cut(view, hold, call->lo);
    if (until_us > hold->until_us) {
        hold->until_us = until_us;
        hold->until_at = fact->hi;
        hold->until_cut = cut;
    }
    hold->end = most(hold->end, least(check_until(c, call->lo, until_us), cut));
}

/* One without a TTL is held as long as its session lives. */
static void live_on(struct lock_view *view, struct hold *hold)
{
    const struct check *c = view->check;
    const struct session *session = check_session(c, hold->session);
    const struct call *begin = hold->begin != NULL ? hold->begin->call : NULL;

    if (session == NULL || begin == NULL || !begin->sure ||
        begin->ttl_ms != CHECK_NO_END_MS || begin->lo > hold->over)
        return;
    for (size_t i = 0; i < hold->count; i++) {
        if (hold->facts[i].kind == FACT_RENEWED)
            return; /* it has one from then on */
    }
    uint32_t from = begin->first;
    uint32_t until = least(session->end, find_cut(view, hold, from));
    uint64_t most_us;
    if (begin->terms.maxhold_ms > 0 &&
        !__builtin_mul_overflow(begin->terms.maxhold_ms, (uint64_t)US_PER_MS,
                                &most_us))
        until = least(until, check_until(c, from, check_us(c, from) + most_us));
    hold->end = most(hold->end, until);
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

    const struct session *session = check_session(c, hold->session);

    if (session != NULL && session->over_us < hold->over_us)
        hold->over_us = session->over_us;
    if (hold->begin != NULL && hold->begin->call->sure &&
        hold->begin->call->terms.maxhold_ms > 0) {
        uint64_t most_us = check_over_us(c, hold->begin->hi,
                                         hold->begin->call->terms.maxhold_ms);
        hold->over_us = most_us < hold->over_us ? most_us : hold->over_us;
    }
    hold->over = check_last(c, hold->over_us);
    if (session != NULL)
        hold->over = least(hold->over, session->over);
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        uint64_t grace_ms = fact->call->terms.grace_ms;
        if (fact->kind == FACT_REVOKED && fact->call->sure)
            hold->over = least(
                hold->over,
                grace_ms == 0
                    ? fact->hi
                    : check_last(c, check_over_us(c, fact->hi, grace_ms)));
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

/* What a grant or a read says of it. */
static void describe(struct hold *hold, const struct fact *fact)
{
    bool grant = fact->kind == FACT_GRANT;

    hold->owner = fact->owner;
    if (hold->session == CHECK_UNKNOWN)
        hold->session = fact->session;
    if (grant || hold->mode == MODE_NONE || fact->mode == MODE_EXCLUSIVE) {
        hold->mode = fact->mode;
        hold->permits = fact->permits;
    }
    hold->set = hold->set || (grant && fact->call->verb == VERB_LOCKSET);
    if (grant && fact->count == 1 && fact->call->may &&
        (hold->begin == NULL || fact->lo < hold->begin->lo))
        hold->begin = fact;
}

static void find_proof(const struct check *c, struct hold *hold)
{
    hold->hi = c->end;
    hold->softened = CHECK_NEVER;
    hold->session = CHECK_UNKNOWN;
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        if (fact->kind == FACT_DOWNGRADED && fact->call->may)
            hold->softened = least(hold->softened, fact->lo);
        if (!proves(fact))
            continue;
        if (hold->proof == NULL || fact->hi < hold->hi) {
            hold->hi = fact->hi;
            hold->proof = fact->call;
        }
        if (fact->fence != 0)
            hold->fence = fact->fence;
        if (fact->kind == FACT_GRANT || fact->kind == FACT_SHOWN)
            describe(hold, fact);
    }
    /* one that was exclusive, and is not told to be any more */
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        if (hold->mode == MODE_SHARED && fact->kind == FACT_GRANT &&
            fact->mode == MODE_EXCLUSIVE)
            hold->mode = MODE_EXCLUSIVE;
        if (hold->mode == MODE_EXCLUSIVE && fact->mode == MODE_SHARED)
            hold->softened = least(hold->softened, fact->lo);
    }
}

/* If nobody may have ended it, its time did, which closes the name. */
static uint32_t find_closed(const struct check *c, const struct hold *hold)
{
    const struct call *begin = hold->begin != NULL ? hold->begin->call : NULL;
    uint64_t until_us;

    if (begin == NULL || !begin->sure || hold->until_us == 0 ||
        begin->terms.delay_ms == 0 ||
        __builtin_mul_overflow(begin->terms.delay_ms, (uint64_t)US_PER_MS,
                               &until_us) ||
        __builtin_add_overflow(until_us, hold->until_us, &until_us))
        return hold->kept;
    return most(hold->kept,
                least(check_until(c, begin->lo, until_us), hold->until_cut));
}

void hold_settle(struct lock_view *view, size_t n)
{
    struct hold *hold = &view->holds[n];
    const struct check *c = view->check;

    find_proof(c, hold);
    if (hold->proof == NULL)
        return;
    modes_find_next(view, hold);
    if (view->first[hold->mode] == NULL ||
        hold->hi < view->first[hold->mode]->hi)
        view->first[hold->mode] = hold;
    find_origin(view, hold);
    for (size_t i = 0; i < hold->count; i++) {
        const struct fact *fact = &hold->facts[i];
        bool sets = fact->kind == FACT_GRANT || fact->kind == FACT_RENEWED;
        if (sets && fact->call->may) {
            uint64_t over_us = check_over_us(c, fact->hi, fact->call->ttl_ms);
            hold->over_us = over_us > hold->over_us ? over_us : hold->over_us;
        }
        /* it was held when it was changed, so all along */
        if (proves(fact) && !is_read(fact) && fact->call->may)
            hold->end = most(hold->end, fact->lo);
    }
    find_over(view, hold);
    for (size_t i = hold->count; i-- > 0;) {
        const struct fact *fact = &hold->facts[i];
        if (tells_end(fact) && fact->call->outcome == OUTCOME_DONE)
            promise(view, hold, fact);
    }
    live_on(view, hold);
    hold->kept = hold->end;
    hold->closed = find_closed(c, hold);
    for (size_t i = 0; i < hold->count; i++) {
        if (is_read(&hold->facts[i]))
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
    if (fact->count < 0)
        return; /* LEADER does not tell it */
    count_bounds(view, hold, fact, &low, &high);
    if (fact->count < low || (fact->count > high && c->closed))
        check_found(c, "count", fact->call->id, hold->proof->id,
                    "lock %.*s, token %llu is held %lld times, but was taken "
                    "and given back so that it is held %lld to %lld times",
                    SHOW(view->name), (unsigned long long)hold->token,
                    (long long)fact->count, (long long)low, (long long)high);
}

/* True: it is shown when it can be held, with its count. */
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
    if (fact->kind == FACT_HELD)
        return false;
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
        bool told = fact->kind == FACT_TIMED_OUT && hold->end > fact->hi &&
                    !hold_is_reentered(hold, fact->hi);
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
    const struct session *session = check_session(c, hold->session);
    uint64_t until_us;

    if (session != NULL && (uint64_t)fact->safe_ms > session->ttl_ms)
        return true;
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
    bool promises = tells_end(fact);

    if (is_read(fact) || !proves(fact))
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
    bool shared = hold->next != NULL && hold->next->hi < hold->closed;

    if (!judge_origin(view, hold))
        return; /* the rest is about one that there is */
    if (shared)
        check_found(c, "exclusion", hold->next->proof->id, hold->proof->id,
                    "lock %.*s: token %llu was given while token %llu was "
                    "held, or closed it by its DELAY",
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
        if (!is_read(fact) || judge_shown(view, hold, fact))
            judge_count(view, hold, fact);
    }
}
