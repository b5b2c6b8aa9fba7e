/* age.c - requests that would wait against their age: WAITDIE, WOUNDWAIT.
 *
 * Whoever is older may wait, or takes what it needs; so there is no circle.
 */
#include "hold/deadlock.h"

/* Is the part senior to the request? */
static bool is_senior(const struct search *s, const struct part *part)
{
    const struct hold_engine *e = s->e;
    const struct claim *claim = part_claim(e, part);
    uint64_t own = s->c->session != 0 ? s->c->session : UINT64_MAX;
    uint64_t age;

    if (claim->session != 0)
        age = session_at(e, claim->session)->id;
    else
        age = part->waits ? waiter_at(e, part->group)->order
                          : part_token(e, part);
    if (part->priority != s->wanted.priority)
        return part->priority < s->wanted.priority;
    if (age != own)
        return age < own;
    return hf_bytes_compare(hf_text_bytes(&e->texts, claim->owner),
                            s->wanted.owner) < 0;
}

static bool refuse_younger(struct search *s, uint32_t i, uint32_t number)
{
    struct hold_engine *e = s->e;
    const struct part *part = part_at(e, number);

    e->out.work += s->steps;
    deadlock_begin(s, i, WHY_YOUNGER, part_owner(e, part), 1);
    if (part->waits)
        deadlock_waiter(e, number);
    else
        deadlock_entry(e, part_claim(e, part), part->lock,
                       (enum lock_mode)part->mode, part_acquired_us(e, part));
    return true;
}

/* Is it one of another holder, whom the request must not wait for? */
static bool is_other_senior(struct search *s, uint32_t number)
{
    const struct part *part = part_at(s->e, number);

    s->steps++;
    return !part_is_over(s->e, part) &&
           !is_requester(s, part_claim(s->e, part)) && is_senior(s, part);
}

/* The first senior whom it would wait for at this name; 0: none. */
static uint32_t find_senior(struct search *s, uint32_t lock_number,
                            const struct wanted *wanted)
{
    const struct hold_engine *e = s->e;
    const struct lock *lock = lock_at(e, lock_number);
    uint32_t n = lock->grants.first;

    if (n != 0 && !conflicts(lock, wanted, part_at(e, n)))
        n = 0;
    for (; n != 0; n = part_at(e, n)->place.next) {
        if (is_other_senior(s, n))
            return n;
    }
    for (n = lock->queue.first; n != 0; n = part_at(e, n)->place.next) {
        const struct part *part = part_at(e, n);
        if (!is_before(e, part, wanted))
            break;
        if ((part->mode != MODE_SHARED || wanted->mode != MODE_SHARED) &&
            is_other_senior(s, n))
            return n;
    }
    return 0;
}

/* The same at related names. */
static uint32_t find_related_senior(struct search *s, struct hf_bytes name,
                                    const struct wanted *wanted)
{
    struct relatives r = relatives_of(s->e, name, wanted);
    uint32_t n;

    while (next_relative(s, &r)) {
        for (n = relative_grant(&r); n != 0; n = relative_next_grant(&r, n)) {
            if (is_other_senior(s, n))
                return n;
        }
        for (n = relative_wait(&r); n != 0; n = relative_next_wait(&r, n)) {
            if (is_other_senior(s, n))
                return n;
        }
    }
    return 0;
}

/* WAITDIE: it may wait for those who are younger only. */
static bool die(struct search *s, uint32_t i)
{
    struct wanted wanted = *want(s, i);
    uint32_t senior =
        s->locks[i] == 0 ? 0 : find_senior(s, s->locks[i], &wanted);

    if (senior == 0 && has_relatives(s->e, &wanted))
        senior = find_related_senior(s, want_name(s, i), &wanted);
    return senior != 0 && refuse_younger(s, i, senior);
}

static uint64_t wound_end_us(const struct hold_engine *e)
{
    return e->now_us + e->bounds.wound_grace_ms * US_PER_MS;
}

/* Does WOUNDWAIT take it away? Not if that was done, unless by a REVOKE with
 * more grace. */
static bool is_junior(struct search *s, uint32_t number)
{
    const struct part *part = part_at(s->e, number);
    bool ends = part_is_sealed(s->e, part) &&
                part_expires_us(s->e, part) <= wound_end_us(s->e);

    s->steps++;
    return !part_is_over(s->e, part) && !ends &&
           !is_requester(s, part_claim(s->e, part)) && !is_senior(s, part);
}

/* Calls `found` for each grant that keeps the request from this name and that
 * WOUNDWAIT takes away; returns how many, of more than HOLD_STEP_MAX not all.
 */
static uint32_t each_junior(struct search *s, struct hf_bytes name,
                            uint32_t lock_number, const struct wanted *wanted,
                            void (*found)(struct search *s, uint32_t number))
{
    const struct hold_engine *e = s->e;
    const struct lock *lock = lock_number == 0 ? NULL : lock_at(e, lock_number);
    uint32_t n = lock == NULL ? 0 : lock->grants.first;
    uint32_t count = 0;

    if (n != 0 && !conflicts(lock, wanted, part_at(e, n)))
        n = 0;
    for (; n != 0 && count <= HOLD_STEP_MAX; n = part_at(e, n)->place.next) {
        if (!is_junior(s, n))
            continue;
        found(s, n);
        count++;
    }
    if (!has_relatives(e, wanted))
        return count;
    struct relatives r = relatives_of(e, name, wanted);
    while (count <= HOLD_STEP_MAX && next_relative(s, &r)) {
        for (n = relative_grant(&r); n != 0 && count <= HOLD_STEP_MAX;
             n = relative_next_grant(&r, n)) {
            if (!is_junior(s, n))
                continue;
            found(s, n);
            count++;
        }
    }
    return count;
}

static void wound_one(struct search *s, uint32_t number)
{
    grant_seal(s->e, number, wound_end_us(s->e), SEAL_WOUNDED, s->wanted.owner);
}

static void leave_one(struct search *s, uint32_t number)
{
    (void)s, (void)number; /* it is only counted */
}

void wound(struct hold_engine *e, const struct hold_command *c,
           const struct wanted *wanted, struct hf_bytes name,
           uint32_t lock_number)
{
    struct search s = {.e = e, .c = c, .wanted = *wanted};

    (void)each_junior(&s, name, lock_number, wanted, wound_one);
}

bool refuse_by_age(struct search *s)
{
    bool dies = hold_policy(s->c) == POLICY_WAITDIE;
    uint32_t juniors = 0;

    for (uint32_t i = 0;
         i < s->count && juniors <= HOLD_STEP_MAX && !gives_up(s); i++) {
        if (dies && die(s, i))
            return true;
        struct wanted here = *want(s, i);
        if (!dies)
            juniors +=
                each_junior(s, want_name(s, i), s->locks[i], &here, leave_one);
    }
    return refuse_long(s) ||
           (juniors > HOLD_STEP_MAX &&
            refuse_overload(s->e, "wounds-max", HOLD_STEP_MAX));
}
