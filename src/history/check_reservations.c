/* check_reservations.c - reservations: pending, then ended once and for all.
 *
 * Works as for locks: a reservation is surely pending up to the longest
 * promise that nothing may have shortened, and up to the last call that found
 * it pending. An id that may have been forgotten and used again is left to the
 * rules that need no state.
 */
#include "history/bookings.h"

/* The server needs so long to hear of the end of a connection. */
#define GONE_SLACK_US 50000u

/* Did the call find it pending, and is it the one that its REQ stands for? */
static bool found_pending(const struct check *c, const struct mention *m)
{
    if (c->grace_us > 0 && m->kind == MENTION_END &&
        m->call->verb == VERB_CONFIRM)
        return false; /* it may have expired */
    if (m->kind == MENTION_SEEN)
        return m->status == BOOKING_PENDING;
    return mention_is_done(m) && m->call->may &&
           (m->kind == MENTION_END || m->kind == MENTION_EXTEND ||
            m->status == BOOKING_PENDING);
}

static bool proves(const struct mention *m)
{
    return m->kind != MENTION_ABSENT && m->status != BOOKING_NONE;
}

/* A repeated REQ is told what was, from its first call on. A time that is told
 * again is rounded to either side: less a millisecond. */
static void promise(struct booking_view *view, const struct mention *m)
{
    const struct check *c = view->check;
    const struct call *call = m->call;
    struct booking *b = view->booking;
    uint64_t left_ms = m->expires_ms > 0 ? (uint64_t)m->expires_ms - 1 : 0;
    uint64_t until_us = call->told_us + left_ms * US_PER_MS;
    uint32_t cut = check_next_flush(c, call->first);
    uint32_t given_back = cut;

    if (left_ms == 0)
        return; /* it says no more than that it was */
    for (size_t i = 0; i < view->count; i++) {
        const struct mention *other = &view->mentions[i];
        if (other == m || other->call->hi < call->first || !other->call->may)
            continue;
        if (mention_may_end(other) && other->call->first < cut)
            cut = other->call->first;
        if (mention_may_end(other) && other->call->verb == VERB_CANCEL &&
            other->call->first < given_back)
            given_back = other->call->first;
        if (other->kind == MENTION_EXTEND) {
            uint64_t other_us = check_us(c, other->call->first) +
                                other->call->ttl_ms * US_PER_MS;
            until_us = other_us < until_us ? other_us : until_us;
        }
    }
    uint32_t end = check_until(c, call->first, until_us);
    if (until_us > view->until_us) {
        view->until_us = until_us;
        view->until_at = call->hi;
        view->until_cut = cut;
    }
    uint32_t kept = end < given_back ? end : given_back;
    end = end < cut ? end : cut;
    b->end = end > b->end ? end : b->end;
    b->kept = kept > b->kept ? kept : b->kept;
}

/* When it may have begun, and how long it can be pending at the most. */
static void find_origin(struct booking_view *view)
{
    const struct check *c = view->check;
    struct booking *b = view->booking;

    b->lo = b->hi = b->sold_lo = b->sold_hi = c->end;
    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        if (m->kind == MENTION_RESERVE && m->call->may) {
            if (m->call->first < b->lo)
                b->lo = m->call->first;
            b->reserve = m->call;
        }
        if (m->kind <= MENTION_EXTEND && m->kind != MENTION_END &&
            m->call->may) {
            uint64_t over_us = check_over_us(c, m->call->hi, m->call->ttl_ms);
            view->over_us = over_us > view->over_us ? over_us : view->over_us;
        }
        if (proves(m) && m->call->hi < b->hi) {
            b->hi = m->call->hi;
            b->proof = m->call;
        }
        if (m->kind == MENTION_END && m->call->verb == VERB_CONFIRM &&
            m->call->may && m->call->first < b->sold_lo)
            b->sold_lo = m->call->first;
        if (m->status == BOOKING_CONFIRMED && m->call->hi < b->sold_hi)
            b->sold_hi = m->call->hi;
    }
    if (b->reserve == NULL) {
        b->lo = 0;
        view->over_us = UINT64_MAX;
    }
}

static bool same_items(const struct call *a, const struct call *b)
{
    struct hf_bytes sku[2];
    int64_t quantity[2];
    size_t left = 0;
    size_t right = 0;

    while (check_item(a, &left, &sku[0], &quantity[0])) {
        if (!check_item(b, &right, &sku[1], &quantity[1]) ||
            quantity[0] != quantity[1] || !hf_bytes_equal(sku[0], sku[1]))
            return false;
    }
    return !check_item(b, &right, &sku[1], &quantity[1]);
}

/* When it can have ended at the earliest. */
static uint64_t earliest_end_us(const struct booking_view *view)
{
    uint64_t earliest_us = UINT64_MAX;

    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        uint64_t us = check_us(view->check, m->call->first);
        if (!m->call->may || (m->kind > MENTION_EXTEND && !mention_may_end(m)))
            continue;
        if (!mention_may_end(m) && !m->call->terms.any_ttl)
            us += m->call->ttl_ms * US_PER_MS;
        earliest_us = us < earliest_us ? us : earliest_us;
    }
    return earliest_us;
}

/* Up to where it is surely remembered, if it was made at all. */
static uint32_t remembered_until(const struct booking_view *view)
{
    const struct check *c = view->check;
    uint64_t end_us = earliest_end_us(view);
    uint64_t keep_us = c->opts.ended_full ? 0 : c->opts.ended_keep_us;

    return end_us == UINT64_MAX
               ? c->end
               : check_until(c, view->booking->lo, end_us + keep_us);
}

/* A RESERVE that waited, and was told TIMEOUT, or nobody is told of: what it
 * got is cancelled. */
static bool is_left(const struct mention *m)
{
    return m->kind == MENTION_LEFT ||
           (m->kind == MENTION_RESERVE && m->call->wait_ms > 0 &&
            m->call->request.len == 0 && m->call->outcome == OUTCOME_UNKNOWN);
}

/* May the id have had several lives, or several sets of items? Then what is
 * said of it says little. */
static bool is_unsure(const struct booking_view *view)
{
    const struct check *c = view->check;
    const struct booking *b = view->booking;
    uint32_t kept = remembered_until(view);
    size_t reserves = 0;
    size_t others = 0; /* than those that are left */
    size_t left = 0;
    bool late = false;
    bool loose = false;

    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        left += is_left(m);
        if (m->kind != MENTION_RESERVE || !m->call->may)
            continue;
        others += !is_left(m);
        reserves++;
        loose = loose || check_is_loose(m->call);
        late = late || m->call->hi >= kept;
        if (!same_items(m->call, b->reserve))
            return true;
    }
    /* what it got only its own answer tells */
    if (loose && (reserves > 1 || b->reserve->outcome != OUTCOME_DONE))
        return true;
    return (reserves > 1 && late) || (left > 0 && others > 0) || left > 1 ||
           check_flushed(c, b->lo, c->end);
}

void booking_settle(struct booking_view *view)
{
    const struct check *c = view->check;
    struct booking *b = view->booking;

    find_origin(view);
    for (size_t i = view->count; i-- > 0;) {
        const struct mention *m = &view->mentions[i];
        if (found_pending(c, m) && m->call->first > b->end)
            b->end = m->call->first;
        if (m->status == BOOKING_PENDING && mention_is_done(m) && m->call->may)
            promise(view, m);
    }
    b->kept = b->kept > b->end ? b->kept : b->end;
    b->over = check_last(c, view->over_us);
    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        bool ended = m->status != BOOKING_NONE && m->status != BOOKING_PENDING;
        if (ended && m->call->hi < b->over)
            b->over = m->call->hi;
    }
    b->unsure = is_unsure(view);
}

/* Rules. */

/* EXPIRED, and then CONFIRMED in the time of grace? */
static bool may_be_late(const struct check *c, const struct mention *a,
                        const struct mention *b)
{
    const struct mention *expired = a->status == BOOKING_EXPIRED ? a : b;
    const struct mention *confirmed = expired == a ? b : a;

    return c->grace_us > 0 && expired->status == BOOKING_EXPIRED &&
           confirmed->status == BOOKING_CONFIRMED &&
           expired->call->first <= confirmed->call->hi;
}

/* Was it confirmed after its end, but before the time of grace was over? */
static bool is_late(const struct booking_view *view, const struct mention *m)
{
    const struct check *c = view->check;

    return c->grace_us > 0 && m->call->verb == VERB_CONFIRM &&
           (view->over_us == UINT64_MAX ||
            check_us(c, m->call->first) <= view->over_us + c->grace_us);
}

/* Is the reservation told to be what the call makes of it? */
static bool is_fitting(const struct mention *m)
{
    bool goes_on = m->status == BOOKING_PENDING;

    if (!mention_is_done(m))
        return true;
    switch (m->call->verb) {
    case VERB_CONFIRM:
        return m->status == BOOKING_CONFIRMED;
    case VERB_CANCEL:
        return m->status == BOOKING_CANCELLED ||
               (goes_on && check_has_items(m->call));
    case VERB_EXTEND:
        return goes_on;
    default:
        return true;
    }
}

static void judge_status(struct booking_view *view, const struct mention *m,
                         const struct mention **ended)
{
    struct check *c = view->check;
    const struct booking *b = view->booking;

    if (!is_fitting(m))
        check_found(c, "status", m->call->id, b->proof->id,
                    "reservation %.*s is told to be what %.*s does not make "
                    "of it",
                    SHOW(view->id), SHOW(m->call->words[0]));
    if (m->status == BOOKING_PENDING && m->kind != MENTION_EXTEND &&
        m->call->may && m->call->first > b->over)
        check_found(c, "status", m->call->id, b->proof->id,
                    "reservation %.*s had ended, and is pending again",
                    SHOW(view->id));
    if (m->status == BOOKING_NONE || m->status == BOOKING_PENDING)
        return;
    if (m->kind == MENTION_RESERVE)
        check_found(c, "status", m->call->id, b->proof->id,
                    "reservation %.*s had ended, and was reserved again",
                    SHOW(view->id));
    if (*ended != NULL && (*ended)->status != m->status &&
        !may_be_late(c, *ended, m))
        check_found(c, "status", m->call->id, (*ended)->call->id,
                    "reservation %.*s has ended in two ways", SHOW(view->id));
    if (*ended == NULL || m->status == BOOKING_CONFIRMED)
        *ended = m;
    if (m->kind == MENTION_END)
        return;
    if (m->call->first > b->hi && m->call->hi < b->end)
        check_found(c, "status", m->call->id, b->proof->id,
                    "reservation %.*s was pending all the time",
                    SHOW(view->id));
    if (!c->closed || m->status == BOOKING_EXPIRED)
        return;
    for (size_t i = 0; i < view->count; i++) {
        const struct mention *other = &view->mentions[i];
        bool confirms = other->call->verb == VERB_CONFIRM;
        if (m->status == BOOKING_CANCELLED && is_left(other))
            return; /* the server did */
        if (mention_may_end(other) && other->call->first <= m->call->hi &&
            confirms == (m->status == BOOKING_CONFIRMED))
            return;
    }
    check_found(c, "status", m->call->id, 0,
                "reservation %.*s was ended by nobody", SHOW(view->id));
}

/* One who waited and is gone, without a REQ, has nothing: what it got is
 * cancelled before anybody is shown it. */
static void judge_left(struct booking_view *view, const struct mention *m)
{
    const struct check *c = view->check;
    const struct call *reserve = view->booking->reserve;

    if (m->status != BOOKING_PENDING || reserve == NULL || reserve->broken ||
        reserve->wait_ms == 0 || reserve->request.len > 0 ||
        reserve->outcome != OUTCOME_UNKNOWN || !reserve->alone ||
        reserve->arrived_at == CHECK_NEVER || reserve->sent_at != CHECK_NEVER ||
        m->call->hi > reserve->run_end)
        return;
    uint32_t gone = check_gone(c, reserve->client, false);
    if (gone != CHECK_NEVER &&
        check_us(c, m->call->first) > check_us(c, gone) + GONE_SLACK_US)
        check_found(view->check, "gone", m->call->id, reserve->id,
                    "reservation %.*s is of one who was gone before it was "
                    "told",
                    SHOW(view->id));
}

static void judge_time(struct booking_view *view, const struct mention *m)
{
    struct check *c = view->check;
    const struct booking *b = view->booking;
    const struct call *call = m->call;
    uint64_t left_us = (uint64_t)m->expires_ms * US_PER_MS;

    if (m->status != BOOKING_PENDING || !call->may)
        return;
    if (view->over_us != UINT64_MAX &&
        check_us(c, call->first) + left_us > view->over_us + CHECK_ROUNDED_US)
        check_found(c, "expiry", call->id, b->proof->id,
                    "reservation %.*s expires in %lld ms, which is later than "
                    "anybody asked for",
                    SHOW(view->id), (long long)m->expires_ms);
    if (call->first > view->until_at && call->hi < view->until_cut &&
        check_us(c, call->hi) + left_us + CHECK_ROUNDED_US <
            check_kept_us(c, view->until_at, call->hi, view->until_us))
        check_found(c, "expiry", call->id, b->proof->id,
                    "reservation %.*s expires in %lld ms, which is earlier "
                    "than was promised",
                    SHOW(view->id), (long long)m->expires_ms);
}

/* From when on it may be remembered as ended, at the earliest: a call that
 * ends it has the time at which the server read it, and may be applied long
 * after. */
static uint64_t ended_from_us(const struct booking_view *view, uint32_t last)
{
    uint64_t from_us = check_us(view->check, last);

    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        uint64_t us = check_us(view->check, m->call->first);
        if (mention_may_end(m) && m->call->may && us < from_us)
            from_us = us;
    }
    return from_us;
}

static void judge_absent(struct booking_view *view, const struct mention *m)
{
    struct check *c = view->check;
    const struct booking *b = view->booking;
    uint32_t last = b->end > b->lo ? b->end - 1 : b->lo;
    uint32_t kept = b->end;

    if (!c->opts.ended_full)
        kept = check_until(c, last,
                           ended_from_us(view, last) + c->opts.ended_keep_us);
    if (m->call->first > b->hi && m->call->hi < kept)
        check_found(c, "missing", m->call->id, b->proof->id,
                    "reservation %.*s is not found, but cannot be forgotten",
                    SHOW(view->id));
}

/* CONFLICT: somebody used the id before, perhaps. */
static void judge_clash(struct booking_view *view, const struct mention *m)
{
    struct check *c = view->check;

    if (!c->closed || c->anonymous)
        return;
    for (size_t i = 0; i < view->count; i++) {
        const struct mention *other = &view->mentions[i];
        if (other->kind == MENTION_RESERVE && other->call->first <= m->call->hi)
            return;
    }
    check_found(c, "conflict", m->call->id, 0,
                "reservation %.*s is another's, but nobody can have made it",
                SHOW(view->id));
}

/* ---- What is seen of groups. ---- */

/* The only call of this kind that can have had an effect; or NULL. */
static const struct call *find_only(const struct booking_view *view,
                                    enum verb verb)
{
    const struct call *only = NULL;

    for (size_t i = 0; i < view->count; i++) {
        const struct call *call = view->mentions[i].call;
        if (call->verb != verb || !call->may ||
            view->mentions[i].kind > MENTION_EXTEND)
            continue;
        if (only != NULL)
            return NULL;
        only = call;
    }
    return only;
}

static void see_end(const struct booking_view *view, const struct mention *m,
                    enum verb verb, enum booking_status status)
{
    const struct call *end = find_only(view, verb);

    if (end != NULL && end != m->call && m->status != BOOKING_NONE)
        check_seen(view->check, end, m->call, m->status == status);
}

static void see_groups(const struct booking_view *view)
{
    const struct call *made = find_only(view, VERB_RESERVE);
    uint32_t until = remembered_until(view);

    for (size_t i = 0; i < view->count && !view->booking->unsure; i++) {
        const struct mention *m = &view->mentions[i];
        see_end(view, m, VERB_CONFIRM, BOOKING_CONFIRMED);
        see_end(view, m, VERB_CANCEL, BOOKING_CANCELLED);
        if (made == NULL || made == m->call)
            continue;
        if (proves(m))
            check_seen(view->check, made, m->call, true);
        else if (m->kind == MENTION_ABSENT && m->call->hi < until)
            check_seen(view->check, made, m->call, false);
    }
}

/* One who was told TIMEOUT may have had it, and all that is shown of it is that
 * it was cancelled. */
static bool is_given_up(const struct booking_view *view)
{
    bool left = false;

    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        left = left || is_left(m);
        if (proves(m) && m->status != BOOKING_CANCELLED)
            return false;
    }
    return left;
}

void booking_judge(struct booking_view *view)
{
    struct check *c = view->check;
    const struct booking *b = view->booking;
    const struct mention *ended = NULL;

    for (size_t i = 0; i < view->count; i++) {
        if (view->mentions[i].kind == MENTION_CLASH)
            judge_clash(view, &view->mentions[i]);
    }
    if (c->closed)
        see_groups(view);
    if (b->proof == NULL)
        return;
    if (b->reserve == NULL && c->closed && !c->anonymous && !is_given_up(view))
        check_found(c, "phantom", b->proof->id, 0,
                    "reservation %.*s was made by nobody", SHOW(view->id));
    if (b->unsure)
        return;
    for (size_t i = 0; i < view->count; i++) {
        const struct mention *m = &view->mentions[i];
        judge_status(view, m, &ended);
        judge_time(view, m);
        judge_left(view, m);
        booking_judge_items(view, m);
        if (m->kind == MENTION_ABSENT)
            judge_absent(view, m);
        if (b->reserve != NULL && proves(m) && m->call->hi < b->lo)
            check_found(c, "phantom", m->call->id, b->reserve->id,
                        "reservation %.*s is shown before it was asked for",
                        SHOW(view->id));
        if ((m->kind == MENTION_END || m->kind == MENTION_EXTEND ||
             m->kind == MENTION_REDUCE) &&
            mention_is_done(m) && m->call->may && m->call->first > b->over &&
            !is_late(view, m))
            check_found(c, "revived", m->call->id, b->proof->id,
                        "reservation %.*s had ended, and was changed",
                        SHOW(view->id));
    }
}
