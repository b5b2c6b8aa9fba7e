/* deadlock.c - requests that would wait in a circle.
 *
 * Nodes are waits. A wait leads
 *
 *   - to what the holders of its lock wait for, if their grants conflict with
 * it,
 *   - to the waits before it, if those conflict with it,
 *   - to the same at related names: see tree.h.
 *
 * DETECT looks from the new request, breadth first, for a way back to itself: a
 * grant of its own holder, or a wait that it would stand before. The first that
 * it finds is a shortest circle. Every wait that would close one is refused, so
 * there is none yet, unless somebody asked for NONE.
 *
 * Counting locks need more: a permit may come from any of the holders, so one
 * circle alone is no deadlock. If the search met such a lock, all that it met
 * is taken to be stuck, and whoever could go on after the others had given back
 * all they have is not, until nobody is left who could. The circle must then be
 * one of those who are stuck.
 *
 * In most queues everybody waits for one name, which leads to its holders only:
 * they are passed over. `several` counts the others. In every other queue each
 * wait is met once, however many look at it from behind.
 */
#include "hold/deadlock.h"

#define CYCLE_MAX 64u

/* As the holder of one who looks. */
#define REQUESTER UINT32_MAX

/* Would the request stand before this part, and keep it waiting? */
static bool is_overtaken(struct search *s, const struct part *part)
{
    bool related = s->wanted.tree != 0 || part->tree;

    s->steps += related ? s->count : 0; /* names are compared */
    for (uint32_t i = 0; i < s->count; i++) {
        const struct wanted *wanted = want(s, i);
        if (s->locks[i] == part->lock
                ? (wanted->mode != MODE_SHARED || part->mode != MODE_SHARED) &&
                      !is_before(s->e, part, wanted)
                : related &&
                      is_related_overtaken(s->e, part, want_name(s, i), wanted))
            return true;
    }
    return false;
}

/* A wait that is waited for, by the part `from`; 0: by the request, for that
 * one of its names. */
static void meet(struct search *s, uint32_t number, uint32_t from)
{
    struct waiter *waiter = waiter_edit(s->e, number);

    s->steps++;
    if (waiter->seen == s->e->search || (s->stuck_only && !waiter->stuck) ||
        waiter_is_over(s->e, waiter))
        return;
    waiter->seen = s->e->search;
    waiter->from = from;
    waiter->via = s->at;
    waiter->next = 0;
    *(s->last == 0 ? &s->first : &waiter_edit(s->e, s->last)->next) = number;
    s->last = number;
}

/* The holder of a grant leads to all that it waits for. True if it is the
 * request's own. */
static bool follow(struct search *s, const struct part *grant,
                   const struct wanted *wanted, uint32_t from)
{
    const struct claim *claim = part_claim(s->e, grant);
    struct hf_bytes owner = hf_text_bytes(&s->e->texts, claim->owner);

    s->steps++;
    if (part_is_of(s->e, grant, wanted->session, wanted->owner)) {
        s->own = true;
        return false;
    }
    if (part_is_over(s->e, grant))
        return false;
    if (is_requester(s, claim))
        return !s->all;
    uint32_t holder = holder_find(s->e, claim->session, owner);
    uint32_t w = holder == 0 ? 0 : holder_at(s->e, holder)->waiters.first;
    for (; w != 0 && !gives_up(s); w = waiter_at(s->e, w)->peers.next)
        meet(s, w, from);
    return false;
}

/* Do the grants of a lock, which conflict with it, keep it waiting? Permits of
 * those that are over do not count, and none if it has the same already. */
static bool is_kept_out(struct search *s, const struct lock *lock,
                        const struct wanted *wanted)
{
    const struct hold_engine *e = s->e;
    const struct part *first = part_at(e, lock->grants.first);
    uint64_t used = 0;

    if (wanted->mode != MODE_COUNTING || first->mode != MODE_COUNTING ||
        wanted->max != lock->max)
        return true;
    for (uint32_t n = lock->grants.first; n != 0;
         n = part_at(e, n)->place.next) {
        const struct part *grant = part_at(e, n);
        s->steps++;
        if (part_is_over(e, grant))
            continue;
        used += grant->permits;
        if (grant->permits == wanted->permits &&
            part_is_of(e, grant, wanted->session, wanted->owner))
            return false;
    }
    return used + wanted->permits > wanted->max;
}

/* Follows the grants of a lock, if they keep the part `from` waiting, or the
 * request if that is 0. Once is enough for all who wait there, but those of its
 * own holder, which lead it nowhere, are left to others. */
static bool follow_grants(struct search *s, uint32_t lock_number,
                          const struct wanted *wanted, uint32_t from)
{
    struct hold_engine *e = s->e;
    const struct lock *lock = lock_at(e, lock_number);
    struct part *front =
        lock->queue.first == 0 ? NULL : part_edit(e, lock->queue.first);
    bool again = front != NULL && front->followed == e->search;
    uint32_t holder = REQUESTER;

    if (from != 0) {
        const struct waiter *waiter = waiter_at(e, part_at(e, from)->group);
        holder = is_requester(s, &waiter->claim) ? REQUESTER : waiter->holder;
    }
    if ((again && (front->skipped == 0 || front->skipped == holder)) ||
        !is_kept_out(s, lock, wanted))
        return false;
    s->counting =
        s->counting || part_at(e, lock->grants.first)->mode == MODE_COUNTING;
    s->own = false;
    for (uint32_t n = lock->grants.first; n != 0;
         n = part_at(e, n)->place.next) {
        if (follow(s, part_at(e, n), wanted, from))
            return true;
    }
    if (front != NULL) {
        front->followed = e->search;
        front->skipped = s->own && !again ? holder : 0;
    }
    return false;
}

/* Would the request stand before this part, whatever their modes? */
static bool is_passed(const struct search *s, const struct part *part)
{
    for (uint32_t i = 0; i < s->count; i++) {
        if (s->locks[i] == part->lock)
            return !is_before(s->e, part, &s->wanted);
    }
    return false;
}

/* Is everybody in the queue led to the holders of this lock only, who are
 * followed anyway? This holds for a way, but not for who is stuck. */
static bool is_plain(const struct search *s, const struct lock *lock,
                     const struct wanted *wanted)
{
    if (s->all || s->stuck_only || lock->several > 0 || lock->granted == 0 ||
        (lock->path != 0 && has_relatives(s->e, &s->wanted)))
        return false;
    const struct part *grant = part_at(s->e, lock->grants.first);
    return grant->mode != MODE_COUNTING && conflicts(lock, wanted, grant) &&
           !is_passed(s, part_at(s->e, lock->queue.last));
}

/* Meets the waits before the part `from`, or before the place of the request if
 * that is 0, that it conflicts with. What is before a part that somebody came
 * by was met already. */
static void meet_queue(struct search *s, const struct lock *lock,
                       const struct wanted *wanted, uint32_t from)
{
    struct hold_engine *e = s->e;
    bool shared = wanted->mode == MODE_SHARED;
    uint32_t end = from != 0 ? from : lock->queue.last;
    uint32_t n;

    while (from == 0 && end != 0 && !is_before(e, part_at(e, end), wanted)) {
        end = part_at(e, end)->place.prev;
        s->steps++;
    }
    for (n = end; n != 0; n = part_at(e, n)->place.prev) {
        const struct part *part = part_at(e, n);
        if (part->met == e->search ||
            (shared && part->met_writers == e->search))
            break;
        s->steps++;
    }
    if (n == 0)
        n = end == 0 ? 0 : lock->queue.first;
    for (; n != 0; n = part_at(e, n)->place.next) {
        struct part *part = part_edit(e, n);
        *(shared ? &part->met_writers : &part->met) = e->search;
        if (n == from)
            break;
        if (part->mode != MODE_SHARED || !shared)
            meet(s, part->group, from);
        if (n == end)
            break;
    }
}

/* The same at related names. */
static bool follow_relatives(struct search *s, struct hf_bytes name,
                             const struct wanted *wanted, uint32_t from)
{
    const struct hold_engine *e = s->e;
    struct relatives r = relatives_of(e, name, wanted);

    while (next_relative(s, &r)) {
        for (uint32_t n = relative_grant(&r); n != 0;
             n = relative_next_grant(&r, n)) {
            if (follow(s, part_at(e, n), wanted, from))
                return true;
        }
        for (uint32_t n = relative_wait(&r); n != 0;
             n = relative_next_wait(&r, n))
            meet(s, part_at(e, n)->group, from);
    }
    return false;
}

/* Follows what a part waits for, `from`, or the request if that is 0. */
static bool follow_all(struct search *s, uint32_t lock_number,
                       const struct wanted *wanted, uint32_t from)
{
    const struct hold_engine *e = s->e;
    const struct lock *lock = lock_at(e, lock_number);

    if (lock->granted > 0 &&
        conflicts(lock, wanted, part_at(e, lock->grants.first)) &&
        follow_grants(s, lock_number, wanted, from))
        return true;
    if (lock->queue.first != 0 && !is_plain(s, lock, wanted))
        meet_queue(s, lock, wanted, from);
    if (from != 0 && has_relatives(e, wanted) &&
        follow_relatives(s, lock_name(e, lock_number), wanted, from))
        return true;
    return from != 0 && !s->all && is_overtaken(s, part_at(e, from));
}

/* True if the wait leads back: `*from` is its part that does. */
static bool look_from(struct search *s, uint32_t number, uint32_t *from)
{
    const struct hold_engine *e = s->e;
    const struct waiter *waiter = waiter_at(e, number);

    for (*from = waiter->first; *from != 0 && !gives_up(s);
         *from = part_at(e, *from)->more) {
        const struct part *part = part_at(e, *from);
        struct wanted wanted = waiter_wants(e, waiter, part);
        if (follow_all(s, part->lock, &wanted, *from))
            return true;
    }
    return false;
}

/* The part that leads back to the request, or 0. */
static uint32_t find_circle(struct search *s)
{
    uint32_t from = 0;

    s->first = s->last = 0;
    s->e->search++;
    for (uint32_t i = 0; i < s->count && !gives_up(s); i++) {
        struct wanted wanted = *want(s, i);
        s->at = i;
        if (s->locks[i] != 0)
            (void)follow_all(s, s->locks[i], &wanted, 0);
        if (has_relatives(s->e, &wanted))
            (void)follow_relatives(s, want_name(s, i), &wanted, 0);
    }
    for (uint32_t w = s->first; w != 0 && !gives_up(s);
         w = waiter_at(s->e, w)->next) {
        if (look_from(s, w, &from))
            return from;
    }
    return 0;
}

/* ---- Who is stuck. ---- */

static bool is_stuck(const struct search *s, uint32_t number)
{
    const struct waiter *waiter = waiter_edit(s->e, number);

    return waiter->seen == s->e->search && waiter->stuck;
}

/* Does the holder of that grant keep it? */
static bool is_kept(struct search *s, const struct part *grant)
{
    const struct claim *claim = part_claim(s->e, grant);

    if (s->stuck && is_requester(s, claim))
        return true;
    uint32_t holder = holder_find(s->e, claim->session,
                                  hf_text_bytes(&s->e->texts, claim->owner));
    uint32_t w = holder == 0 ? 0 : holder_at(s->e, holder)->waiters.first;
    for (; w != 0 && !is_stuck(s, w) && !gives_up(s); s->steps++)
        w = waiter_at(s->e, w)->peers.next;
    return w != 0;
}

/* Would the grants of those who are stuck keep it waiting? */
static bool grants_stop(struct search *s, const struct lock *lock,
                        const struct wanted *wanted)
{
    const struct hold_engine *e = s->e;
    uint64_t kept = 0;
    bool others = false; /* its own alone do not keep it waiting */

    if (lock->granted == 0 ||
        !conflicts(lock, wanted, part_at(e, lock->grants.first)))
        return false;
    bool by_number = wanted->mode == MODE_COUNTING &&
                     part_at(e, lock->grants.first)->mode == MODE_COUNTING &&
                     lock->max == wanted->max;
    for (uint32_t n = lock->grants.first; n != 0;
         n = part_at(e, n)->place.next) {
        const struct part *grant = part_at(e, n);
        bool own = part_is_of(e, grant, wanted->session, wanted->owner);
        s->steps++;
        if (part_is_over(e, grant) || (!own && !is_kept(s, grant)))
            continue;
        if (!by_number && !own)
            return true;
        if (by_number && own && grant->permits == wanted->permits)
            return false; /* it enters that one again */
        others = others || !own;
        kept += grant->permits;
    }
    return others && kept + wanted->permits > wanted->max;
}

/* Do those who are stuck keep it waiting at a related name? */
static bool relatives_stop(struct search *s, struct hf_bytes name,
                           const struct wanted *wanted)
{
    const struct hold_engine *e = s->e;
    struct relatives r = relatives_of(e, name, wanted);

    while (next_relative(s, &r)) {
        for (uint32_t n = relative_grant(&r); n != 0;
             n = relative_next_grant(&r, n)) {
            if (!part_is_over(e, part_at(e, n)) && is_kept(s, part_at(e, n)))
                return true;
        }
        for (uint32_t n = relative_wait(&r); n != 0;
             n = relative_next_wait(&r, n)) {
            if (is_stuck(s, part_at(e, n)->group))
                return true;
        }
    }
    return false;
}

/* `from` is the part; 0: the request. */
static bool is_stopped(struct search *s, uint32_t lock_number,
                       const struct wanted *wanted, uint32_t from)
{
    const struct hold_engine *e = s->e;
    const struct lock *lock = lock_at(e, lock_number);

    for (uint32_t n = lock->queue.first; n != 0 && n != from;
         n = part_at(e, n)->place.next) {
        const struct part *part = part_at(e, n);
        if (from == 0 && !is_before(e, part, wanted))
            break;
        s->steps++;
        if ((part->mode != MODE_SHARED || wanted->mode != MODE_SHARED) &&
            is_stuck(s, part->group))
            return true;
    }
    return grants_stop(s, lock, wanted) ||
           (from != 0 && s->stuck && is_overtaken(s, part_at(e, from)));
}

static bool waiter_is_stopped(struct search *s, uint32_t number)
{
    const struct hold_engine *e = s->e;
    const struct waiter *waiter = waiter_at(e, number);

    for (uint32_t n = waiter->first; n != 0 && !gives_up(s);
         n = part_at(e, n)->more) {
        struct wanted wanted = waiter_wants(e, waiter, part_at(e, n));
        if (is_stopped(s, part_at(e, n)->lock, &wanted, n) ||
            (has_relatives(e, &wanted) &&
             relatives_stop(s, lock_name(e, part_at(e, n)->lock), &wanted)))
            return true;
    }
    return false;
}

static bool request_is_stopped(struct search *s)
{
    for (uint32_t i = 0; i < s->count && !gives_up(s); i++) {
        struct wanted wanted = *want(s, i);
        if ((s->locks[i] != 0 && is_stopped(s, s->locks[i], &wanted, 0)) ||
            (has_relatives(s->e, &wanted) &&
             relatives_stop(s, want_name(s, i), &wanted)))
            return true;
    }
    return false;
}

/* Finds out who is stuck among those who were met. */
static void reduce(struct search *s)
{
    bool changed = true;

    s->stuck = true;
    for (uint32_t w = s->first; w != 0; w = waiter_at(s->e, w)->next)
        waiter_edit(s->e, w)->stuck = true;
    while (changed && !gives_up(s)) {
        changed = s->stuck && !request_is_stopped(s);
        s->stuck = s->stuck && !changed;
        for (uint32_t w = s->first; w != 0; w = waiter_at(s->e, w)->next) {
            struct waiter *waiter = waiter_edit(s->e, w);
            if (gives_up(s))
                return;
            if (!waiter->stuck || waiter_is_stopped(s, w))
                continue;
            waiter->stuck = false;
            changed = true;
        }
    }
}

/* ---- The answer. ---- */

void deadlock_entry(struct hold_engine *e, const struct claim *claim,
                    uint32_t lock, enum lock_mode mode, uint64_t since_us)
{
    struct hf_buf *body = &e->body;
    const struct hf_text *note =
        claim->terms == 0 ? NULL : &terms_at(e, claim->terms)->note;

    reply_map(body, 6);
    reply_field_text(body, FIELD_OWNER, hf_text_bytes(&e->texts, claim->owner));
    reply_field_number(
        body, FIELD_SESSION,
        claim->session == 0 ? 0 : (int64_t)session_at(e, claim->session)->id);
    reply_field_text(body, FIELD_NAME, lock_name(e, lock));
    reply_field_text(body, FIELD_MODE, hf_bytes_text(mode_name(mode)));
    reply_field_number(body, FIELD_SINCE_MS,
                       (int64_t)((e->now_us - since_us) / US_PER_MS));
    reply_field_text(body, FIELD_NOTE,
                     note == NULL ? hf_bytes("", 0)
                                  : hf_text_bytes(&e->texts, *note));
}

/* The entry of the request itself, for one of its names. */
static void reply_request(struct search *s, uint32_t i)
{
    struct hf_buf *body = &s->e->body;

    reply_map(body, 6);
    reply_field_text(body, FIELD_OWNER, s->c->owner);
    reply_field_number(body, FIELD_SESSION, (int64_t)s->c->session);
    reply_field_text(body, FIELD_NAME, want_name(s, i));
    reply_field_text(body, FIELD_MODE,
                     hf_bytes_text(mode_name(want(s, i)->mode)));
    reply_field_number(body, FIELD_SINCE_MS, 0);
    reply_field_text(body, FIELD_NOTE, s->c->note);
}

void deadlock_begin(struct search *s, uint32_t i, enum past_why why,
                    struct hf_bytes by, uint32_t length)
{
    struct hold_engine *e = s->e;
    struct hf_bytes name = want_name(s, i);
    const struct wanted *wanted = want(s, i);
    struct hf_buf *body = refuse(e, HOLD_DEADLOCK, 4);

    past_add(e, PAST_DEADLOCK, hf_index_hash(&e->locks, name), name,
             s->c->owner, 0, wanted->mode, wanted->tree != 0);
    past_say(e, why, by);
    reply_field_text(body, FIELD_NAME, name);
    reply_field_text(body, FIELD_REASON, hf_bytes_text(why_name(why)));
    reply_field_number(body, FIELD_LENGTH, length);
    reply_field(body, FIELD_CYCLE);
    reply_list(body, length < CYCLE_MAX ? length : CYCLE_MAX);
}

void deadlock_waiter(struct hold_engine *e, uint32_t number)
{
    const struct part *part = part_at(e, number);
    const struct waiter *waiter = waiter_at(e, part->group);

    deadlock_entry(e, &waiter->claim, part->lock, (enum lock_mode)part->mode,
                   waiter->queued_us);
}

/* `last` leads back to the request. The way to it is turned round first, in
 * the places that the search is done with. */
static void reply_circle(struct search *s, uint32_t last)
{
    struct hold_engine *e = s->e;
    uint32_t length = 1;
    uint32_t next = 0; /* the wait by which the circle goes on */
    uint32_t via = 0;

    for (uint32_t part = last; part != 0; length++) {
        uint32_t number = part_at(e, part)->group;
        struct waiter *waiter = waiter_edit(e, number);
        uint32_t from = waiter->from;
        via = waiter->via;
        waiter->from = part; /* it waits by this one */
        waiter->next = next;
        next = number;
        part = from;
    }
    const struct claim *behind = &waiter_at(e, next)->claim;
    deadlock_begin(s, via, WHY_CYCLE, hf_text_bytes(&e->texts, behind->owner),
                   length);
    reply_request(s, via);
    for (uint32_t i = 1; i < length && i < CYCLE_MAX; i++) {
        const struct waiter *waiter = waiter_at(e, next);
        deadlock_waiter(e, waiter->from);
        next = waiter->next;
    }
}

bool refuse_long(struct search *s)
{
    s->e->out.work += s->steps;
    return gives_up(s) && refuse_overload(s->e, "detect-max", HOLD_DETECT_MAX);
}

static bool detect(struct search *s)
{
    uint32_t last = find_circle(s);

    if (last != 0 && s->counting && !gives_up(s)) {
        s->all = true;
        (void)find_circle(s);
        s->all = false;
        reduce(s);
        s->stuck_only = true;
        last = s->stuck ? find_circle(s) : 0;
    }
    if (refuse_long(s))
        return true;
    if (last != 0)
        reply_circle(s, last);
    return last != 0;
}

bool refuse_deadlock(struct hold_engine *e, const struct hold_command *c,
                     const struct wanted *wanted, const uint32_t *locks,
                     uint32_t count)
{
    struct search s = {
        .e = e, .c = c, .wanted = *wanted, .locks = locks, .count = count};

    if (e->old_queues)
        return false;
    switch (hold_policy(c)) {
    case POLICY_DETECT:
        return detect(&s);
    case POLICY_NONE:
        return false;
    default:
        return refuse_by_age(&s);
    }
}
