/* key.c - locks as the keys of Redis.
 *
 * A key is an exclusive lock whose owner is the value: SET takes it, DEL gives
 * it back, and EXPIRE renews it. With permits it is a counting lock, which the
 * sorted sets of semaphores stand for. Such a grant has no session and is
 * marked as a key: what LOCK made is not to be changed here.
 *
 * A command names one key, or several, which are changed together. Those that
 * are set have one value, or one each: hold_owner_at().
 */
#include "hold/tree.h"

/* What a command finds at a name. */
enum found {
    FOUND_RIGHT, /* it can be done */
    FOUND_NONE,  /* no key */
    FOUND_OTHER, /* another key, or what NX does not get */
    FOUND_LATE,  /* less is left of it than `grace_ms` */
    FOUND_WRONG, /* no key of this kind */
    FOUND_BUSY,  /* it is free, but not for this one */
};

static uint32_t name_count(const struct hold_command *c)
{
    return c->item_count > 0 ? c->item_count : 1;
}

/* How many of them are told: a client may have named one twice. */
static uint64_t told_count(const struct hold_command *c)
{
    return c->count > 0 ? c->count : name_count(c);
}

static struct hf_bytes name_at(const struct hold_command *c, uint32_t i)
{
    return c->item_count > 0 ? c->items[i].sku : c->name;
}

/* Which of the client's keys it was. */
static uint64_t place_at(const struct hold_command *c, uint32_t i)
{
    return c->owners ? c->items[i].quantity : 1 + i;
}

/* The lock of that name; 0: not in use. */
static uint32_t lock_of(const struct hold_engine *e,
                        const struct hold_command *c, uint32_t i,
                        struct target at)
{
    return c->item_count > 0 ? hf_index_find(&e->locks, c->items[i].sku)
                             : at.number;
}

/* The grant that it is about: of a semaphore that of the holder who is named,
 * else the first; 0: none. */
static uint32_t grant_named(const struct hold_engine *e,
                            const struct hold_command *c, uint32_t lock)
{
    struct hf_bytes holder = c->kind == HOLD_KEY_SET ? c->owner : c->reason;

    if (lock == 0)
        return 0;
    return c->permits == 0 ? lock_at(e, lock)->grants.first
                           : grant_of(e, lock_at(e, lock), 0, holder);
}

/* When it ends, also by its session; UINT64_MAX: never. */
static uint64_t end_of(const struct hold_engine *e, const struct part *part)
{
    uint32_t session = part_claim(e, part)->session;
    uint64_t end_us = part_expires_us(e, part);

    if (session != 0 && session_at(e, session)->expires_us < end_us)
        end_us = session_at(e, session)->expires_us;
    return end_us;
}

int64_t key_rest_ms(const struct hold_engine *e, uint32_t grant)
{
    if (grant == 0)
        return -2;
    uint64_t end_us = end_of(e, part_at(e, grant));
    return end_us == UINT64_MAX ? -1 : left_ms(e, end_us + US_PER_MS - 1);
}

static struct hf_bytes value_of(const struct hold_engine *e, uint32_t grant)
{
    return part_owner(e, part_at(e, grant));
}

/* ---- What is told. ---- */

bool key_refuse_type(struct hold_engine *e, uint32_t lock)
{
    const struct part *part = part_at(e, lock_at(e, lock)->grants.first);
    struct hf_buf *body = refuse(e, HOLD_WRONGTYPE, 2);

    reply_field_text(body, FIELD_NAME, lock_name(e, lock));
    reply_field_text(body, FIELD_MODE,
                     hf_bytes_text(mode_name((enum lock_mode)part->mode)));
    return true;
}

static void say_rest(struct hold_engine *e, enum found found, uint32_t grant)
{
    reply_list(&e->body, 2);
    reply_number(&e->body, found == FOUND_RIGHT  ? 1
                           : found == FOUND_LATE ? 0
                                                 : -1);
    reply_number(&e->body, key_rest_ms(e, grant));
}

/* The answer, before a change; `count` is how many keys it is made to. */
static void say(struct hold_engine *e, const struct hold_command *c,
                enum found found, uint64_t count, uint32_t grant)
{
    bool right = found == FOUND_RIGHT;
    bool zero = false;

    switch (hold_say(c)) {
    case SAY_COUNT:
        reply_number(&e->body, right ? (int64_t)count : 0);
        return;
    case SAY_VALUE:
        if (grant != 0)
            reply_text(&e->body, value_of(e, grant));
        else
            reply_null(&e->body);
        return;
    case SAY_WHICH:
        reply_number(&e->body, right ? 1 : found == FOUND_NONE ? -1 : 0);
        return;
    case SAY_ONE_MINUS:
        reply_number(&e->body, right ? 1 : -1);
        return;
    case SAY_ONE_NULL:
        if (right)
            reply_number(&e->body, 1);
        else
            reply_null(&e->body);
        return;
    case SAY_REST:
        say_rest(e, found, grant);
        return;
    case SAY_FIRST: /* the other one is said in refuse_set() */
        reply_list(&e->body, 2);
        reply_number(&e->body, 1);
        reply_number(&e->body, (int64_t)count);
        return;
    case SAY_OK_ZERO:
        zero = true;
        break;
    default:
        break;
    }
    if (right)
        reply_ok(&e->body);
    else if (zero)
        reply_number(&e->body, 0);
    else
        reply_null(&e->body);
}

void key_need(struct hold_engine *e, const struct hold_command *c,
              struct need *need)
{
    (void)e, (void)c; /* no memory, but a name and a value may be told */
    need->reply_len += HOLD_NAME_MAX + HOLD_OWNER_MAX;
}

/* ---- SET. ---- */

void key_set_need(struct hold_engine *e, const struct hold_command *c,
                  struct need *need)
{
    uint32_t count = name_count(c);

    for (uint32_t i = 0; i < count; i++) {
        need_record(e, need, &e->locks, name_at(c, i).len);
        need_item(need, &e->parts);
        need_text(e, need, hold_owner_at(c, i).len);
        tree_need(e, need, name_is_path(name_at(c, i)), 0);
    }
    need->due = count;
    need->reply_len += 2 * HOLD_NAME_MAX + HOLD_OWNER_MAX;
}

static struct wanted wants(const struct hold_engine *e,
                           const struct hold_command *c, uint32_t i)
{
    struct wanted wanted = command_wants(e, c, 0);

    wanted.owner = hold_owner_at(c, i);
    return wanted;
}

/* It was revoked or wounded, and ends before that: a client that is told that
 * it has it for so long would go on when another has it. */
static bool ends_before(const struct hold_engine *e,
                        const struct hold_command *c, uint32_t grant)
{
    const struct part *part = part_at(e, grant);

    return part_is_sealed(e, part) &&
           ((c->flags & HOLD_ADDED) != 0 ||
            claim_expires_us(e, part_claim(e, part), part_acquired_us(e, part),
                             c->ttl_ms) > part_expires_us(e, part));
}

/* The part of look_to_set() for a name that is held. */
static enum found look_at_held(const struct hold_engine *e,
                               const struct hold_command *c, uint32_t lock)
{
    const struct part *part = part_at(e, lock_at(e, lock)->grants.first);
    struct hf_bytes value = part_owner(e, part);

    if ((c->flags & HOLD_NX) != 0)
        return (c->flags & HOLD_OWN) != 0 && part->key &&
                       part->mode == MODE_EXCLUSIVE &&
                       hf_bytes_equal(value, c->owner) &&
                       !ends_before(e, c, lock_at(e, lock)->grants.first)
                   ? FOUND_RIGHT
                   : FOUND_OTHER;
    if (part->mode != MODE_EXCLUSIVE)
        return FOUND_WRONG;
    if ((c->flags & HOLD_EQUAL) != 0 && !hf_bytes_equal(value, c->reason))
        return FOUND_OTHER;
    return part->key ? FOUND_RIGHT : FOUND_WRONG;
}

/* Nobody else has it, wants it first or has closed it, there or at a related
 * name. Whoever has the key only looks at holders of related names. */
static bool is_open(const struct hold_engine *e, struct hf_bytes name,
                    uint32_t lock, const struct wanted *wanted, bool held)
{
    if (!held && lock != 0 &&
        (is_done(e, lock_at(e, lock)) || !is_free(e, lock, wanted, false)))
        return false;
    return is_related_free(e, name, wanted, held);
}

/* NX is told null if it does not get a name. With GET that would say that the
 * name was free, and got: it is refused. */
static bool is_null(const struct hold_command *c)
{
    return (c->flags & HOLD_NX) != 0 && hold_say(c) != SAY_VALUE;
}

/* The part of look_to_set() for permits of who has some, which are renewed: as
 * in the sorted set of a semaphore, which is looked at first, only if as many
 * are free. With OWN, which earlier builds wrote, in any case. */
static enum found look_at_own(const struct hold_engine *e,
                              const struct hold_command *c, uint32_t lock,
                              const struct wanted *wanted, uint32_t own)
{
    return part_at(e, own)->key &&
                   part_at(e, own)->permits == wanted->permits &&
                   ((c->flags & HOLD_OWN) != 0 ||
                    !conflicts(lock_at(e, lock), wanted, part_at(e, own))) &&
                   !ends_before(e, c, own)
               ? FOUND_RIGHT
               : FOUND_OTHER;
}

static enum found look_to_set(const struct hold_engine *e,
                              const struct hold_command *c, uint32_t i,
                              uint32_t lock)
{
    struct wanted wanted = wants(e, c, i);
    bool held = key_is_held(e, lock) && c->permits == 0;
    uint32_t own = c->permits == 0 ? 0 : grant_named(e, c, lock);
    enum found found = FOUND_RIGHT;

    if (own != 0)
        return look_at_own(e, c, lock, &wanted, own);
    if (held)
        found = look_at_held(e, c, lock);
    else if ((c->flags & (HOLD_XX | HOLD_EQUAL)) != 0)
        return FOUND_NONE;
    if (found != FOUND_RIGHT || is_open(e, name_at(c, i), lock, &wanted, held))
        return found;
    return is_null(c) ? FOUND_OTHER : FOUND_BUSY;
}

/* Says why it is not done; what a NX does not get is no error. */
static bool refuse_set(struct hold_engine *e, const struct hold_command *c,
                       enum found found, uint32_t i, uint32_t lock)
{
    struct wanted wanted = wants(e, c, i);
    uint32_t grant = key_is_held(e, lock) ? lock_at(e, lock)->grants.first : 0;
    bool shows = hold_say(c) == SAY_VALUE && grant != 0;

    if (found == FOUND_BUSY)
        return (lock != 0 && refuse_done(e, lock)) ||
               refuse_busy(e, name_at(c, i), lock, &wanted, false);
    if (found == FOUND_WRONG ||
        (shows && part_at(e, grant)->mode != MODE_EXCLUSIVE))
        return key_refuse_type(e, lock);
    if (hold_say(c) != SAY_FIRST) {
        say(e, c, found, 0, grant);
        return true;
    }
    reply_list(&e->body, 3);
    reply_number(&e->body, 0);
    reply_number(&e->body, (int64_t)place_at(c, i));
    reply_text(&e->body, name_at(c, i));
    return true;
}

/* More names, holders or names below a TREE than there may be. */
static bool refuse_bounds(struct hold_engine *e, const struct hold_command *c,
                          struct target at)
{
    struct wanted wanted = command_wants(e, c, 0);
    uint64_t names = hf_index_count(&e->locks);

    for (uint32_t i = 0; i < name_count(c); i++) {
        uint32_t lock = lock_of(e, c, i, at);
        names += lock == 0;
        if (lock == 0 && names > e->bounds.locks_max)
            return refuse_overload(e, "locks-max", e->bounds.locks_max);
        if (lock != 0 && c->permits != 0 && grant_named(e, c, lock) == 0 &&
            lock_at(e, lock)->granted >= e->bounds.holders_max)
            return refuse_overload(e, "holders-max", e->bounds.holders_max);
        if (has_relatives(e, &wanted) &&
            refuse_tree_names(e, name_at(c, i), lock, &wanted))
            return true;
    }
    return false;
}

bool key_set_check(struct hold_engine *e, const struct hold_command *c,
                   struct target at)
{
    enum found why = FOUND_RIGHT;
    uint32_t first = 0; /* in the client's order */

    for (uint32_t i = 0; i < name_count(c); i++) {
        enum found found = look_to_set(e, c, i, lock_of(e, c, i, at));
        if (found != FOUND_RIGHT &&
            (why == FOUND_RIGHT || place_at(c, i) < place_at(c, first))) {
            why = found;
            first = i;
        }
    }
    return why != FOUND_RIGHT
               ? refuse_set(e, c, why, first, lock_of(e, c, first, at))
               : refuse_bounds(e, c, at);
}

/* Ends a key in favour of another one; its lock stays. */
static void end_replaced(struct hold_engine *e, uint32_t lock, uint32_t grant)
{
    lock_edit(e, lock)->is_kept = true;
    grant_lose(e, grant, WHY_REPLACED, 0);
    lock_edit(e, lock)->is_kept = false;
}

static void set_one(struct hold_engine *e, const struct hold_command *c,
                    uint32_t i, uint32_t lock)
{
    struct wanted wanted = wants(e, c, i);
    struct hf_bytes name = name_at(c, i);
    uint32_t grant = grant_named(e, c, lock);
    uint64_t end_us = UINT64_MAX;

    if (grant != 0 && ((c->flags & HOLD_OWN) != 0 || c->permits != 0)) {
        emit_lock(e, EVENT_LOCK_RENEWED, part_at(e, grant),
                  part_at(e, grant)->token, 0);
        grant_renew(e, grant, c->ttl_ms);
        return;
    }
    if ((c->flags & HOLD_AT) != 0)
        end_us = c->ttl_ms * US_PER_MS;
    else if ((c->flags & HOLD_KEEPTTL) != 0 && grant != 0)
        end_us = part_expires_us(e, part_at(e, grant));
    if (grant != 0)
        end_replaced(e, lock, grant);
    if (end_us <= e->now_us)
        return; /* that time is over: it ends at once */
    if (lock == 0)
        lock = lock_add(e, hf_index_hash(&e->locks, name), name,
                        name_is_path(name));
    assert(lock != 0); /* promised */
    grant = grant_start(e, c, &wanted, lock);
    if ((c->flags & (HOLD_AT | HOLD_KEEPTTL)) != 0)
        grant_set_expiry(e, grant, end_us);
}

void key_set(struct hold_engine *e, const struct hold_command *c,
             struct target at)
{
    uint32_t count = name_count(c);

    say(e, c, FOUND_RIGHT, told_count(c),
        grant_named(e, c, lock_of(e, c, 0, at)));
    for (uint32_t i = 0; i < count; i++)
        set_one(e, c, i, lock_of(e, c, i, at));
    serve_all(e);
}

/* ---- DEL and EXPIRE. ---- */

static enum found look_at(const struct hold_engine *e,
                          const struct hold_command *c, uint32_t lock)
{
    uint32_t grant = grant_named(e, c, lock);
    bool counting = c->permits != 0;

    if (!key_is_held(e, lock))
        return FOUND_NONE;
    const struct part *part = part_at(e, lock_at(e, lock)->grants.first);
    if (part->mode != (counting ? MODE_COUNTING : MODE_EXCLUSIVE))
        return FOUND_WRONG;
    if (grant == 0)
        return FOUND_NONE;
    if (c->grace_ms > 0 && key_rest_ms(e, grant) < (int64_t)c->grace_ms)
        return FOUND_LATE;
    if ((c->flags & HOLD_EQUAL) != 0 &&
        !hf_bytes_equal(value_of(e, grant), c->reason))
        return FOUND_OTHER;
    return part_at(e, grant)->key ? FOUND_RIGHT : FOUND_WRONG;
}

bool key_del_check(struct hold_engine *e, const struct hold_command *c,
                   struct target at)
{
    enum found found = FOUND_NONE;
    bool any = false;

    for (uint32_t i = 0; i < name_count(c); i++) {
        found = look_at(e, c, lock_of(e, c, i, at));
        if (found == FOUND_WRONG)
            return key_refuse_type(e, lock_of(e, c, i, at));
        any = any || found == FOUND_RIGHT;
    }
    if (any)
        return false;
    say(e, c, found, 0, grant_named(e, c, lock_of(e, c, 0, at)));
    return true;
}

void key_del(struct hold_engine *e, const struct hold_command *c,
             struct target at)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < name_count(c); i++)
        count += look_at(e, c, lock_of(e, c, i, at)) == FOUND_RIGHT;
    uint32_t first = grant_named(e, c, lock_of(e, c, 0, at));
    say(e, c, FOUND_RIGHT, c->permits != 0 ? part_at(e, first)->permits : count,
        first);
    for (uint32_t i = 0; i < name_count(c); i++) {
        uint32_t lock = lock_of(e, c, i, at);
        if (look_at(e, c, lock) != FOUND_RIGHT)
            continue;
        uint32_t grant = grant_named(e, c, lock);
        const struct part *part = part_at(e, grant);
        emit_lock(e, EVENT_LOCK_RELEASED, part, part->token, 0);
        past_say(e, WHY_DELETED, hf_bytes("", 0));
        emit_age(e, part->acquired_us);
        lock_release(e, grant, lock);
    }
    serve_all(e);
}

/* Of one that has no end there is nothing to be taken away or added to. */
static enum found look_to_expire(const struct hold_engine *e,
                                 const struct hold_command *c, uint32_t lock)
{
    enum found found = look_at(e, c, lock);
    uint32_t grant = grant_named(e, c, lock);
    bool needs_end = c->ttl_ms == 0 || (c->flags & HOLD_XX) != 0;

    if (found == FOUND_RIGHT && needs_end && key_rest_ms(e, grant) < 0)
        return FOUND_NONE;
    return found == FOUND_RIGHT && ends_before(e, c, grant) ? FOUND_OTHER
                                                            : found;
}

bool key_expire_check(struct hold_engine *e, const struct hold_command *c,
                      struct target at)
{
    for (uint32_t i = 0; i < name_count(c); i++) {
        uint32_t lock = lock_of(e, c, i, at);
        enum found found = look_to_expire(e, c, lock);
        if (found == FOUND_RIGHT)
            continue;
        if (found == FOUND_WRONG)
            return key_refuse_type(e, lock);
        say(e, c, found, 0, grant_named(e, c, lock));
        return true;
    }
    return false;
}

void key_expire(struct hold_engine *e, const struct hold_command *c,
                struct target at)
{
    uint32_t count = name_count(c);

    say(e, c, FOUND_RIGHT, told_count(c),
        grant_named(e, c, lock_of(e, c, 0, at)));
    for (uint32_t i = 0; i < count; i++) {
        uint32_t grant = grant_named(e, c, lock_of(e, c, i, at));
        const struct part *part = part_at(e, grant);
        uint64_t ttl_ms = c->ttl_ms;
        if ((c->flags & HOLD_ADDED) != 0)
            ttl_ms += (uint64_t)key_rest_ms(e, grant);
        if (ttl_ms > HOLD_TTL_MAX_MS)
            ttl_ms = HOLD_TTL_MAX_MS;
        emit_lock(e, EVENT_LOCK_RENEWED, part, part->token, 0);
        grant_renew(e, grant, ttl_ms);
    }
}
