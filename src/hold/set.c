/* set.c - several names, granted as one: all of them or none.
 *
 * The names of a command are sorted, so that two sets are equal if their names
 * and modes are, one by one.
 */
#include "base/little.h"
#include "hold/tree.h"

static enum lock_mode mode_of(const struct hold_item *item)
{
    return item->quantity == HOLD_PART_SHARED ? MODE_SHARED : MODE_EXCLUSIVE;
}

uint32_t set_find(const struct hold_engine *e, uint64_t token)
{
    char bytes[8];

    hf_put_u64(bytes, token);
    return hf_index_find(&e->sets, hf_bytes(bytes, sizeof bytes));
}

uint32_t set_add(struct hold_engine *e, const struct claim *claim,
                 uint32_t first, uint64_t token)
{
    char bytes[8];

    hf_put_u64(bytes, token);
    uint32_t number = hf_index_add(&e->sets, hf_bytes(bytes, sizeof bytes));
    if (number == 0)
        return 0;
    struct set *set = set_edit(e, number);
    set->claim = *claim;
    set->token = token;
    set->first = first;
    for (uint32_t n = first; n != 0; n = part_at(e, n)->more) {
        part_edit(e, n)->group = number;
        part_edit(e, n)->waits = false;
        grants_join(e, n, token, 0);
        set->names++;
    }
    if (claim->session != 0)
        session_join(e, claim->session, first);
    return number;
}

void set_begin(struct hold_engine *e, const struct claim *claim, uint32_t first,
               uint64_t ttl_ms)
{
    uint64_t token = e->seq + 1; /* of the first event */
    uint32_t number = set_add(e, claim, first, token);

    assert(number != 0); /* promised */
    struct set *set = set_edit(e, number);
    for (uint32_t n = first; n != 0; n = part_at(e, n)->more)
        emit_lock(e, EVENT_LOCK_GRANTED, part_at(e, n), token, 0);
    set->count = 1;
    set->acquired_us = e->now_us;
    set->expires_us = claim_expires_us(e, claim, e->now_us, ttl_ms);
    due_add(e, DUE_SET, number, set->expires_us, token);
}

/* Tells of the set by its first name. */
static void emit_set(struct hold_engine *e, enum hold_event_kind kind,
                     const struct set *set)
{
    emit_lock(e, kind, part_at(e, set->first), set->token, 0);
}

void set_reenter(struct hold_engine *e, uint32_t number, uint64_t ttl_ms)
{
    struct set *set = set_edit(e, number);

    emit_set(e, EVENT_LOCK_REENTERED, set);
    set->count++;
    uint64_t end_us =
        claim_expires_us(e, &set->claim, set->acquired_us, ttl_ms);
    if (end_us > set->expires_us && !set->sealed)
        grant_set_expiry(e, set->first, end_us);
}

void set_lose(struct hold_engine *e, uint32_t number, enum hold_event_kind kind,
              enum past_why why, uint64_t lag_us)
{
    struct set set = *set_at(e, number);
    uint32_t next;

    hf_agenda_remove(&e->due, set.due);
    if (set.claim.session != 0)
        session_leave(e, set.claim.session, set.first);
    for (uint32_t n = set.first; n != 0; n = next) {
        next = part_at(e, n)->more;
        emit_lock(e, kind, part_at(e, n), set.token, lag_us);
        past_say(e, why, hf_bytes("", 0));
        emit_age(e, set.acquired_us);
        claim_delay(e, &set.claim, part_at(e, n)->lock, part_at(e, n)->tree,
                    kind == EVENT_LOCK_RELEASED);
        grants_leave(e, n);
    }
    claim_drop(e, &set.claim);
    hf_index_remove(&e->sets, number);
    e->steps += set.names - 1; /* it counts by its names */
}

void set_expire(struct hold_engine *e, uint32_t number)
{
    grant_end_expired(e, set_at(e, number)->first);
    serve_all(e);
}

void set_give(struct hold_engine *e, uint32_t number)
{
    struct set *set = set_edit(e, number);

    set->count--;
    reply_map(&e->body, 1);
    reply_field_number(&e->body, FIELD_REMAINING, set->count);
    if (set->count > 0) {
        emit_set(e, EVENT_LOCK_RELEASED, set);
        past_say(e, WHY_STILL_HELD, hf_bytes("", 0));
        return;
    }
    set_lose(e, number, EVENT_LOCK_RELEASED, WHY_PLAIN, 0);
    serve_all(e);
}

/* ---- Commands. ---- */

void lockset_need(struct hold_engine *e, const struct hold_command *c,
                  struct need *need)
{
    need->names = c->item_count;
    need->name_bytes = 0;
    for (uint32_t i = 0; i < c->item_count; i++) {
        need_record(e, need, &e->locks, c->items[i].sku.len);
        need_item(need, &e->parts);
        need->name_bytes += c->items[i].sku.len;
        tree_need(e, need, name_is_path(c->items[i].sku), c->flags);
    }
    need_record(e, need, &e->sets, sizeof(uint64_t));
    need_text(e, need, c->owner.len);
    need->due = 1;
    need->reply_len += 2 * HOLD_NAME_MAX + HOLD_OWNER_MAX; /* and related */
    if (has_terms(c))
        terms_need(e, c, need);
    if (hold_may_wait(c))
        wait_need(e, c, need);
}

/* The locks that a set names; 0: not in use. */
static void find_locks(const struct hold_engine *e,
                       const struct hold_command *c, uint32_t *locks)
{
    for (uint32_t i = 0; i < c->item_count; i++)
        locks[i] = hf_index_find(&e->locks, c->items[i].sku);
}

static uint32_t own_of(const struct hold_engine *e,
                       const struct hold_command *c, uint32_t session,
                       uint32_t lock)
{
    return lock == 0 ? 0 : grant_of(e, lock_at(e, lock), session, c->owner);
}

/* Its holder has just this set: the number of the set, else 0. */
static uint32_t find_same(const struct hold_engine *e,
                          const struct hold_command *c, uint32_t session,
                          const uint32_t *locks)
{
    uint32_t own = own_of(e, c, session, locks[0]);
    uint32_t number = own == 0 ? 0 : part_at(e, own)->group;

    if (number == 0 || set_at(e, number)->names != c->item_count)
        return 0;
    uint32_t n = set_at(e, number)->first;
    for (uint32_t i = 0; i < c->item_count; i++) {
        const struct part *part = part_at(e, n);
        if (part->lock != locks[i] || part->mode != mode_of(&c->items[i]) ||
            part->tree != ((c->flags & HOLD_TREE) != 0))
            return 0;
        n = part->more;
    }
    return number;
}

/* Is what the name meets below met by a name before it? */
static bool is_item_covered(const struct hold_command *c, uint32_t number)
{
    const struct hold_item *item = &c->items[number];

    for (uint32_t i = 0; i < number; i++) {
        if (tree_covers(c->items[i].sku, mode_of(&c->items[i]), item->sku,
                        mode_of(item)))
            return true;
    }
    return false;
}

/* What the command wants at that name. */
static void want_item(const struct hold_command *c, uint32_t number,
                      struct wanted *wanted)
{
    wanted->mode = mode_of(&c->items[number]);
    if (wanted->tree != 0)
        wanted->tree = is_item_covered(c, number) ? TREE_COVERED : TREE_ALL;
}

/* The first name that is not free, or item_count. */
static uint32_t find_busy(const struct hold_engine *e,
                          const struct hold_command *c, const uint32_t *locks,
                          struct wanted *wanted)
{
    bool barge = hold_barges(c);
    uint32_t i = 0;

    for (; i < c->item_count; i++) {
        want_item(c, i, wanted);
        if ((locks[i] != 0 && !is_free(e, locks[i], wanted, barge)) ||
            !is_related_free(e, c->items[i].sku, wanted, barge))
            break;
    }
    wanted->tree &= TREE_ALL;
    return i;
}

static bool check_bounds(struct hold_engine *e, const struct hold_command *c,
                         const uint32_t *locks)
{
    uint64_t used = hf_index_count(&e->locks);
    uint64_t names = used;

    for (uint32_t i = 0; i < c->item_count; i++)
        names += locks[i] == 0;
    if (names > used && names > e->bounds.locks_max)
        return refuse_overload(e, "locks-max", e->bounds.locks_max);
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (locks[i] != 0 &&
            lock_at(e, locks[i])->granted >= e->bounds.holders_max)
            return refuse_overload(e, "holders-max", e->bounds.holders_max);
    }
    return false;
}

static bool check_queues(struct hold_engine *e, const struct hold_command *c,
                         const uint32_t *locks)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint32_t waiting = locks[i] == 0 ? 0 : lock_at(e, locks[i])->waiting;
        if (waiting >= e->bounds.waiters_max)
            return refuse_overload(e, "waiters-max", e->bounds.waiters_max);
    }
    return false;
}

/* Answers if there are too many names below a TREE. */
static bool check_trees(struct hold_engine *e, const struct hold_command *c,
                        const uint32_t *locks, struct wanted *wanted)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        want_item(c, i, wanted);
        if (refuse_tree_names(e, c->items[i].sku, locks[i], wanted))
            return true;
    }
    return false;
}

/* Answers if one of the names is done, or the holder's own otherwise. */
static bool check_own_names(struct hold_engine *e, const struct hold_command *c,
                            uint32_t session, const uint32_t *locks)
{
    for (uint32_t i = 0; i < c->item_count; i++) {
        if (locks[i] != 0 && refuse_done(e, locks[i]))
            return true;
    }
    uint32_t same = find_same(e, c, session, locks);
    if (same != 0)
        return set_at(e, same)->count == HOLD_COUNT_MAX &&
               refuse_overload(e, "count-max", HOLD_COUNT_MAX);
    for (uint32_t i = 0; i < c->item_count; i++) {
        uint32_t own = own_of(e, c, session, locks[i]);
        if (own != 0)
            return refuse_mode(e, part_at(e, own));
    }
    return false;
}

bool lockset_check(struct hold_engine *e, const struct hold_command *c,
                   struct target at)
{
    uint32_t locks[HOLD_SET_MAX];
    uint32_t session = 0;

    (void)at;
    if (c->session != 0 && refuse_session(e, c->session, &session))
        return true;
    find_locks(e, c, locks);
    for (uint32_t i = 0; i < c->item_count; i++)
        e->out.work += locks[i] == 0 ? 0 : lock_at(e, locks[i])->granted;
    if (check_own_names(e, c, session, locks))
        return true;
    if (find_same(e, c, session, locks) != 0)
        return false;
    struct wanted wanted = command_wants(e, c, session);
    if (has_relatives(e, &wanted) && check_trees(e, c, locks, &wanted))
        return true;
    uint32_t busy = find_busy(e, c, locks, &wanted);
    if (busy == c->item_count)
        return check_bounds(e, c, locks);
    if (!hold_may_wait(c))
        return refuse_busy(e, c->items[busy].sku, locks[busy], &wanted,
                           hold_barges(c));
    return check_queues(e, c, locks) ||
           refuse_deadlock(e, c, &wanted, locks, c->item_count);
}

/* A part for each name, linked; returns the first. */
static uint32_t make_parts(struct hold_engine *e, const struct hold_command *c,
                           const uint32_t *locks, struct wanted *wanted)
{
    uint32_t first = 0;

    for (uint32_t i = c->item_count; i-- > 0;) {
        uint32_t lock = locks[i];
        if (lock == 0)
            lock = lock_add(e, hf_index_hash(&e->locks, c->items[i].sku),
                            c->items[i].sku, name_is_path(c->items[i].sku));
        assert(lock != 0); /* promised */
        wanted->mode = mode_of(&c->items[i]);
        uint32_t number = part_new(e, lock, wanted);
        part_edit(e, number)->more = first;
        first = number;
    }
    return first;
}

static void take_set(struct hold_engine *e, const struct hold_command *c,
                     const uint32_t *locks, struct wanted *wanted)
{
    struct claim claim = {.session = wanted->session,
                          .terms = claim_terms(e, c)};

    keep_text(e, c->owner, &claim.owner);
    enum hf_status status = claim_promise(e, &claim, c->item_count);
    assert(status == HF_OK); /* promised */
    (void)status;
    uint32_t first = make_parts(e, c, locks, wanted);
    set_begin(e, &claim, first, c->ttl_ms);
    reply_grant(&e->body, e, first, e->now_us);
}

void lockset_take(struct hold_engine *e, const struct hold_command *c,
                  struct target at)
{
    uint32_t locks[HOLD_SET_MAX];
    uint32_t session = c->session == 0 ? 0 : session_find(e, c->session);
    struct wanted wanted = command_wants(e, c, session);

    (void)at;
    find_locks(e, c, locks);
    uint32_t same = find_same(e, c, session, locks);
    if (same != 0) {
        set_reenter(e, same, c->ttl_ms);
        reply_grant(&e->body, e, set_at(e, same)->first, e->now_us);
        return;
    }
    if (find_busy(e, c, locks, &wanted) == c->item_count) {
        take_set(e, c, locks, &wanted);
        return;
    }
    for (uint32_t i = 0; i < c->item_count; i++) {
        wanted.mode = mode_of(&c->items[i]);
        if (hold_policy(c) == POLICY_WOUNDWAIT)
            wound(e, c, &wanted, c->items[i].sku, locks[i]);
    }
    waiter_new(e, c, &wanted, make_parts(e, c, locks, &wanted));
}

/* For what gives a set back, or renews it. */
bool set_check(struct hold_engine *e, const struct hold_command *c,
               struct target at)
{
    enum hold_code code = c->kind == HOLD_RENEWSET ? HOLD_LOST : HOLD_NOTHELD;

    (void)at;
    if (set_find(e, c->token) != 0)
        return false;
    reply_field_number(refuse(e, code, 1), FIELD_TOKEN, (int64_t)c->token);
    return true;
}

void lockset_give(struct hold_engine *e, const struct hold_command *c,
                  struct target at)
{
    (void)at;
    set_give(e, set_find(e, c->token));
}

void lockset_renew(struct hold_engine *e, const struct hold_command *c,
                   struct target at)
{
    const struct set *set = set_at(e, set_find(e, c->token));

    (void)at;
    emit_set(e, EVENT_LOCK_RENEWED, set);
    grant_renew(e, set->first, c->ttl_ms);
    reply_map(&e->body, 1);
    reply_field_number(&e->body, FIELD_SAFE_MS,
                       claim_safe_ms(e, &set->claim, set->expires_us));
}
