/* lock.c - the commands about one lock. */
#include "hold/tree.h"

/* Answers LOST if the command's session is none, or is over. */
bool refuse_session(struct hold_engine *e, uint64_t id, uint32_t *number)
{
    *number = session_find(e, id);
    if (*number != 0 && !session_is_over(e, *number))
        return false;
    reply_field_number(refuse(e, HOLD_LOST, 1), FIELD_SESSION, (int64_t)id);
    return true;
}

/* STATE: which name, how it is held, and what the caller adds. */
static struct hf_buf *refuse_held(struct hold_engine *e,
                                  const struct part *part, uint32_t facts)
{
    struct hf_buf *body = refuse(e, HOLD_STATE, facts);

    reply_field_text(body, FIELD_NAME, lock_name(e, part->lock));
    reply_field_text(body, FIELD_MODE,
                     hf_bytes_text(mode_name((enum lock_mode)part->mode)));
    return body;
}

bool refuse_mode(struct hold_engine *e, const struct part *part)
{
    bool is_set = part->group != 0;
    struct hf_buf *body = refuse_held(e, part, is_set ? 3 : 2);

    if (is_set)
        reply_field_number(body, FIELD_NAMES, set_at(e, part->group)->names);
    return true;
}

/* Is it free for a new request that does not hold it? */
bool is_free(const struct hold_engine *e, uint32_t number,
             const struct wanted *wanted, bool barge)
{
    const struct lock *lock = lock_at(e, number);

    if (lock->granted > 0 &&
        conflicts(lock, wanted, part_at(e, lock->grants.first)))
        return false;
    return !is_closed(e, lock) && (barge || !is_blocked(e, lock, wanted));
}

/* What stops it there, if it is not. */
static struct stop stop_at(const struct hold_engine *e, uint32_t number,
                           const struct wanted *wanted)
{
    const struct lock *lock = lock_at(e, number);
    struct stop stop = {.lock = number};

    if (lock->granted > 0 &&
        conflicts(lock, wanted, part_at(e, lock->grants.first)))
        stop.part = lock->grants.first;
    else if (!is_closed(e, lock))
        stop.part = first_before(lock, wanted);
    return stop;
}

/* Who holds it, and for how long; who waits for it, and how long; or how long
 * it is closed. */
static void reply_stop(struct hf_buf *body, const struct hold_engine *e,
                       struct stop stop)
{
    const struct lock *lock = lock_at(e, stop.lock);
    const struct part *part = stop.part == 0 ? NULL : part_at(e, stop.part);

    if (part == NULL) {
        const struct mark *mark = mark_at(e, lock->mark);
        reply_field_number(
            body, FIELD_EXPIRES_MS,
            left_ms(e, stop.above ? mark->below_us : mark->closed_us));
        return;
    }
    reply_field_text(body, FIELD_OWNER, part_owner(e, part));
    if (part->waits)
        reply_field_number(body, FIELD_WAITED_MS,
                           passed_ms(e, waiter_at(e, part->group)->queued_us));
    else
        reply_field_number(body, FIELD_EXPIRES_MS, grant_safe_ms(e, part));
}

bool refuse_busy(struct hold_engine *e, struct hf_bytes name, uint32_t number,
                 const struct wanted *wanted, bool barge)
{
    const struct lock *lock = number == 0 ? NULL : lock_at(e, number);
    bool here = number != 0 && !is_free(e, number, wanted, barge);
    struct stop stop =
        here ? stop_at(e, number, wanted) : find_stop(e, name, wanted, barge);
    uint32_t facts = 4u + (stop.part != 0) + !here + stop.above;
    struct hf_buf *body = refuse(e, HOLD_BUSY, facts);

    reply_field_text(body, FIELD_NAME, name);
    reply_stop(body, e, stop);
    reply_field_number(body, FIELD_WAITING, lock == NULL ? 0 : lock->waiting);
    reply_field_number(body, FIELD_POSITION,
                       lock == NULL ? 1 : queue_position(e, lock, wanted));
    if (!here)
        reply_field_text(body, FIELD_RELATED, lock_name(e, stop.lock));
    if (stop.above)
        reply_field_number(body, FIELD_TREE, 1);
    return true;
}

void wait_need(struct hold_engine *e, const struct hold_command *c,
               struct need *need)
{
    need->waiter = true;
    need_record(e, need, &e->waiters, sizeof(uint64_t));
    need_record(e, need, &e->holders, sizeof(uint64_t) + c->owner.len);
}

void lock_need(struct hold_engine *e, const struct hold_command *c,
               struct need *need)
{
    grant_need(e, c, need);
    need->reply_len += HOLD_OWNER_MAX; /* of who holds it, or of a result */
    if (need->path || (c->flags & HOLD_TREE) != 0)
        need->reply_len += HOLD_NAME_MAX; /* of a related name */
    tree_need(e, need, need->path, c->flags);
    if (has_terms(c))
        terms_need(e, c, need);
    if (!hold_may_wait(c))
        return;
    wait_need(e, c, need);
    need->names = 1;
    need->name_bytes = c->name.len;
}

/* It asks for TREE and holds the name without. */
static bool refuse_no_tree(struct hold_engine *e, const struct part *own)
{
    reply_field_number(refuse_held(e, own, 3), FIELD_TREE, 0);
    return true;
}

/* What the holder's own grant, `own`, says to the request. */
static bool check_own(struct hold_engine *e, const struct wanted *wanted,
                      const struct part *own)
{
    if (own->group != 0 || own->key || own->mode != wanted->mode ||
        own->permits != wanted->permits ||
        (own->mode == MODE_COUNTING &&
         lock_at(e, own->lock)->max != wanted->max))
        return refuse_mode(e, own);
    if (wanted->tree && !own->tree)
        return refuse_no_tree(e, own);
    return own->count == HOLD_COUNT_MAX &&
           refuse_overload(e, "count-max", HOLD_COUNT_MAX);
}

static bool refuse_maximum(struct hold_engine *e, uint32_t number)
{
    struct hf_buf *body = refuse(e, HOLD_STATE, 2);

    reply_field_text(body, FIELD_NAME, lock_name(e, number));
    reply_field_number(body, FIELD_MAXIMUM, lock_at(e, number)->max);
    return true;
}

/* Another number of permits than its holders fixed. */
static bool has_other_maximum(const struct hold_engine *e,
                              const struct lock *lock,
                              const struct wanted *wanted)
{
    return wanted->mode == MODE_COUNTING && lock->granted > 0 &&
           part_at(e, lock->grants.first)->mode == MODE_COUNTING &&
           lock->max != wanted->max;
}

/* The part of lock_check for a name that is in use. */
static bool check_used(struct hold_engine *e, const struct hold_command *c,
                       uint32_t number, uint32_t session)
{
    const struct lock *lock = lock_at(e, number);
    struct wanted wanted = command_wants(e, c, session);
    uint32_t own = grant_of(e, lock, session, c->owner);

    if (refuse_done(e, number))
        return true;
    if (own != 0)
        return check_own(e, &wanted, part_at(e, own));
    if (has_other_maximum(e, lock, &wanted))
        return refuse_maximum(e, number);
    if (has_relatives(e, &wanted) &&
        refuse_tree_names(e, c->name, number, &wanted))
        return true;
    bool barge = hold_barges(c);
    if (is_free(e, number, &wanted, barge) &&
        is_related_free(e, c->name, &wanted, barge))
        return lock->granted >= e->bounds.holders_max &&
               refuse_overload(e, "holders-max", e->bounds.holders_max);
    if (!hold_may_wait(c))
        return refuse_busy(e, c->name, number, &wanted, barge);
    if (lock->waiting >= e->bounds.waiters_max)
        return refuse_overload(e, "waiters-max", e->bounds.waiters_max);
    return refuse_deadlock(e, c, &wanted, &number, 1);
}

/* The part for a name that is not, which only a related name can stop. Apart,
 * as whatever is seldom needed. */
__attribute__((noinline)) static bool check_new(struct hold_engine *e,
                                                const struct hold_command *c)
{
    uint32_t session = c->session == 0 ? 0 : session_find(e, c->session);
    struct wanted wanted = command_wants(e, c, session);
    bool barge = hold_barges(c);
    uint32_t none = 0;

    if (hf_index_count(&e->locks) >= e->bounds.locks_max)
        return refuse_overload(e, "locks-max", e->bounds.locks_max);
    if (!has_relatives(e, &wanted))
        return false;
    if (refuse_tree_names(e, c->name, 0, &wanted))
        return true;
    if (is_related_free(e, c->name, &wanted, barge))
        return false;
    if (!hold_may_wait(c))
        return refuse_busy(e, c->name, 0, &wanted, barge);
    if (e->bounds.waiters_max == 0)
        return refuse_overload(e, "waiters-max", 0);
    return refuse_deadlock(e, c, &wanted, &none, 1);
}

bool lock_check(struct hold_engine *e, const struct hold_command *c,
                struct target at)
{
    uint32_t session = 0;

    if (c->session != 0 && refuse_session(e, c->session, &session))
        return true;
    if (at.number != 0)
        return check_used(e, c, at.number, session);
    return (hf_index_count(&e->locks) >= e->bounds.locks_max ||
            ((c->flags & HOLD_TREE) | e->trees.used) != 0) &&
           check_new(e, c);
}

/* It waits. */
__attribute__((noinline)) static void queue_up(struct hold_engine *e,
                                               const struct hold_command *c,
                                               const struct wanted *wanted,
                                               uint32_t number)
{
    if (hold_policy(c) == POLICY_WOUNDWAIT)
        wound(e, c, wanted, c->name, number);
    waiter_new(e, c, wanted, part_new(e, number, wanted));
}

/* The name is in use. */
static void take_used(struct hold_engine *e, const struct hold_command *c,
                      const struct wanted *wanted, uint32_t number)
{
    const struct lock *lock = lock_at(e, number);
    uint32_t own = grant_of(e, lock, wanted->session, c->owner);
    bool barge = hold_barges(c);

    if (own != 0) {
        grant_reenter(e, own, c->ttl_ms);
        reply_grant(&e->body, e, own, e->now_us);
    } else if (is_free(e, number, wanted, barge) &&
               is_related_free(e, c->name, wanted, barge)) {
        grant_new(e, c, wanted, number);
    } else {
        queue_up(e, c, wanted, number);
    }
}

/* The name is not in use, but related ones may be, or it has a '/'. */
__attribute__((noinline)) static void take_related(struct hold_engine *e,
                                                   const struct hold_command *c,
                                                   const struct wanted *wanted,
                                                   uint32_t hash)
{
    bool free = is_related_free(e, c->name, wanted, hold_barges(c));
    uint32_t number = lock_add(e, hash, c->name, e->spent.path);

    assert(number != 0); /* promised */
    if (free)
        grant_new(e, c, wanted, number);
    else
        queue_up(e, c, wanted, number);
}

void lock_take(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    uint32_t session = c->session == 0 ? 0 : session_find(e, c->session);
    struct wanted wanted = command_wants(e, c, session);

    if (at.number != 0) {
        take_used(e, c, &wanted, at.number);
        return;
    }
    if ((e->spent.path | e->trees.used | (c->flags & HOLD_TREE)) != 0) {
        take_related(e, c, &wanted, at.hash);
        return;
    }
    at.number = hf_index_add_hashed(&e->locks, at.hash, c->name);
    assert(at.number != 0); /* promised */
    grant_new(e, c, &wanted, at.number);
}

bool refuse_token(struct hold_engine *e, const struct hold_command *c,
                  enum hold_code code)
{
    struct hf_buf *body = refuse(e, code, 2);

    reply_field_text(body, FIELD_NAME, c->name);
    reply_field_number(body, FIELD_TOKEN, (int64_t)c->token);
    return true;
}

/* Of a grant that is there: is it one of a set? */
static bool check_single(struct hold_engine *e, const struct hold_command *c,
                         struct target at, enum hold_code code)
{
    uint32_t number = grant_find(e, at.number, c->token);

    if (number == 0)
        return refuse_token(e, c, code);
    return part_at(e, number)->group != 0 && refuse_mode(e, part_at(e, number));
}

void unlock_need(struct hold_engine *e, const struct hold_command *c,
                 struct need *need)
{
    if (c->done_ms == 0)
        return;
    need_item(need, &e->marks);
    need_text(e, need, c->note.len);
    need->due = 1;
}

bool unlock_check(struct hold_engine *e, const struct hold_command *c,
                  struct target at)
{
    uint32_t number = grant_find(e, at.number, c->token);

    if (number == 0)
        return refuse_token(e, c, HOLD_NOTHELD);
    const struct part *part = part_at(e, number);
    if (part->group != 0)
        return refuse_mode(e, part);
    if (c->done_ms == 0 || part->count == 1)
        return false;
    struct hf_buf *body = refuse(e, HOLD_STATE, 2);
    reply_field_text(body, FIELD_NAME, c->name);
    reply_field_number(body, FIELD_COUNT, part->count);
    return true;
}

/* Ends a grant that nobody waits behind, without session and terms. */
static inline void end_plain(struct hold_engine *e, uint32_t number,
                             struct part *part, uint32_t lock)
{
    hf_agenda_remove(&e->due, part->due);
    hf_texts_drop(&e->texts, part->claim.owner);
    hf_slab_give_at(&e->parts, number, part);
    e->held--;
    lock_remove(e, lock);
}

static inline void release(struct hold_engine *e, uint32_t number,
                           struct part *part, const struct lock *lock,
                           uint32_t lock_number)
{
    if (lock->granted == 1 &&
        (lock->waiting | lock->mark | lock->is_listed) == 0 &&
        (part->claim.session | part->claim.terms | e->trees.used) == 0)
        end_plain(e, number, part, lock_number);
    else
        grant_end(e, number, true);
}

void lock_release(struct hold_engine *e, uint32_t number, uint32_t lock_number)
{
    release(e, number, part_edit(e, number), lock_at(e, lock_number),
            lock_number);
}

void lock_give(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    uint32_t number = grant_find(e, at.number, c->token);
    struct part *part = part_edit(e, number);
    const struct lock *lock = lock_at(e, at.number);

    if (part->group != 0) { /* given up by the server */
        set_give(e, part->group);
        return;
    }
    emit_at(e, EVENT_LOCK_RELEASED, lock, part, part->token, 0);
    if (--part->count == 0)
        emit_age(e, part->acquired_us);
    reply_map(&e->body, 1);
    reply_field_number(&e->body, FIELD_REMAINING, part->count);
    if (part->count > 0) {
        past_say(e, WHY_STILL_HELD, hf_bytes("", 0));
        return;
    }
    if (c->done_ms > 0) {
        past_say(e, WHY_DONE, hf_bytes("", 0));
        mark_done(e, at.number, e->now_us + c->done_ms * US_PER_MS, c->note);
    }
    release(e, number, part, lock, at.number);
    serve_all(e);
}

bool renew_check(struct hold_engine *e, const struct hold_command *c,
                 struct target at)
{
    return check_single(e, c, at, HOLD_LOST);
}

void lock_renew(struct hold_engine *e, const struct hold_command *c,
                struct target at)
{
    uint32_t number = grant_find(e, at.number, c->token);
    const struct part *part = part_at(e, number);

    emit_lock(e, EVENT_LOCK_RENEWED, part, part->token, 0);
    grant_renew(e, number, c->ttl_ms);
    reply_map(&e->body, 1);
    reply_field_number(&e->body, FIELD_SAFE_MS, grant_safe_ms(e, part));
}

static void reply_downgraded(struct hold_engine *e, const struct part *part)
{
    reply_map(&e->body, 3);
    reply_field_number(&e->body, FIELD_TOKEN, (int64_t)part->token);
    reply_field_number(&e->body, FIELD_SAFE_MS, grant_safe_ms(e, part));
    reply_field_number(&e->body, FIELD_FENCE,
                       (int64_t)lock_at(e, part->lock)->fence);
}

bool downgrade_check(struct hold_engine *e, const struct hold_command *c,
                     struct target at)
{
    if (check_single(e, c, at, HOLD_LOST))
        return true;
    const struct part *part = part_at(e, grant_find(e, at.number, c->token));
    if (part->mode == MODE_COUNTING || part->key) {
        reply_field_number(refuse_held(e, part, 3), FIELD_TOKEN,
                           (int64_t)c->token);
        return true;
    }
    if (part->mode == MODE_EXCLUSIVE)
        return false;
    reply_downgraded(e, part);
    return true;
}

void lock_downgrade(struct hold_engine *e, const struct hold_command *c,
                    struct target at)
{
    struct part *part = part_edit(e, grant_find(e, at.number, c->token));

    part->mode = MODE_SHARED;
    lock_edit(e, at.number)->fence = part->token;
    emit_lock(e, EVENT_LOCK_DOWNGRADED, part, part->token, 0);
    reply_downgraded(e, part);
    serve_later(e, at.number);
    serve_related(e, at.number, part->tree);
    serve_all(e);
}

bool revoke_check(struct hold_engine *e, const struct hold_command *c,
                  struct target at)
{
    return grant_find(e, at.number, c->token) == 0 &&
           refuse_token(e, c, HOLD_NOTHELD);
}

void lock_revoke(struct hold_engine *e, const struct hold_command *c,
                 struct target at)
{
    uint32_t number = grant_find(e, at.number, c->token);
    uint64_t end_us = e->now_us + c->grace_ms * US_PER_MS;

    if (c->grace_ms > 0) {
        grant_seal(e, number, end_us, SEAL_REVOKED, hf_bytes("", 0));
        return;
    }
    grant_lose(e, number, WHY_REVOKED, 0);
    serve_all(e);
}

bool lock_is_over(const struct hold_engine *e, uint32_t number)
{
    if (number == 0 || !is_behind(e))
        return false;
    const struct lock *lock = lock_at(e, number);
    if (lock->mark != 0 &&
        hf_agenda_when(&e->due, mark_at(e, lock->mark)->due) <= e->now_us)
        return true;
    for (uint32_t n = lock->grants.first; n != 0;
         n = part_at(e, n)->place.next) {
        if (part_is_over(e, part_at(e, n)))
            return true;
    }
    for (uint32_t n = lock->queue.first; n != 0;
         n = part_at(e, n)->place.next) {
        if (part_is_over(e, part_at(e, n)))
            return true;
    }
    return false;
}

/* Ends a grant whose time, or whose session's, is over. */
static void end_over(struct hold_engine *e, uint32_t number)
{
    const struct part *part = part_at(e, number);
    uint64_t expires_us = part_expires_us(e, part);

    if (expires_us > e->now_us) {
        const struct session *session =
            session_at(e, part_claim(e, part)->session);
        grant_lose(e, number, WHY_SESSION, e->now_us - session->expires_us);
    } else {
        grant_end_expired(e, number);
    }
}

/* Ends what is over on that name. */
void lock_settle_named(struct hold_engine *e, const struct hold_command *c)
{
    uint32_t number = hf_index_find(&e->locks, c->name);
    uint32_t next;

    if (number == 0)
        return;
    struct lock *lock = lock_edit(e, number);
    lock->is_kept = true;
    for (uint32_t n = lock->grants.first; n != 0; n = next) {
        next = part_at(e, n)->place.next;
        if (part_is_over(e, part_at(e, n)))
            end_over(e, n);
    }
    for (uint32_t n = lock->queue.first; n != 0 && !e->old_queues; n = next) {
        next = part_at(e, n)->place.next;
        if (part_is_over(e, part_at(e, n)))
            waiter_end(e, part_at(e, n)->group);
    }
    mark_settle(e, lock->mark);
    lock->is_kept = false;
    serve_later(e, number);
    serve_all(e);
}
