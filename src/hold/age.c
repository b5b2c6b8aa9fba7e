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

static bool refuse_younger(struct search *s, uint32_t number)
{
    struct hold_engine *e = s->e;
    const struct part *part = part_at(e, number);

    e->out.work += s->steps;
    deadlock_begin(e, s->c->owner, part->lock, "younger", 1);
    if (part->waits)
        deadlock_waiter(e, number);
    else
        deadlock_entry(e, part_claim(e, part), part->lock,
                       (enum lock_mode)part->mode, part_acquired_us(e, part));
    return true;
}

/* WAITDIE: it may wait for those who are younger only. */
static bool die(struct search *s, uint32_t lock_number,
                const struct wanted *wanted)
{
    const struct hold_engine *e = s->e;
    const struct lock *lock = lock_at(e, lock_number);
    uint32_t n = lock->grants.first;

    if (n != 0 && !conflicts(lock, wanted, part_at(e, n)))
        n = 0;
    for (; n != 0; n = part_at(e, n)->place.next) {
        const struct part *part = part_at(e, n);
        s->steps++;
        if (!part_is_over(e, part) && !is_requester(s, part_claim(e, part)) &&
            is_senior(s, part))
            return refuse_younger(s, n);
    }
    for (n = lock->queue.first; n != 0; n = part_at(e, n)->place.next) {
        const struct part *part = part_at(e, n);
        if (!is_before(e, part, wanted))
            break;
        s->steps++;
        if ((part->mode != MODE_SHARED || wanted->mode != MODE_SHARED) &&
            !part_is_over(e, part) && !is_requester(s, part_claim(e, part)) &&
            is_senior(s, part))
            return refuse_younger(s, n);
    }
    return false;
}

/* The next grant from `n` on that WOUNDWAIT takes away. */
static uint32_t next_junior(struct search *s, uint32_t n)
{
    for (; n != 0; n = part_at(s->e, n)->place.next) {
        const struct part *part = part_at(s->e, n);
        s->steps++;
        if (!part_is_over(s->e, part) && !part_is_sealed(s->e, part) &&
            !is_requester(s, part_claim(s->e, part)) && !is_senior(s, part))
            break;
    }
    return n;
}

static uint32_t first_junior(struct search *s, uint32_t lock_number,
                             const struct wanted *wanted)
{
    const struct lock *lock = lock_at(s->e, lock_number);
    uint32_t n = lock->grants.first;

    if (n == 0 || !conflicts(lock, wanted, part_at(s->e, n)))
        return 0;
    return next_junior(s, n);
}

void wound(struct hold_engine *e, const struct hold_command *c,
           const struct wanted *wanted, uint32_t lock_number)
{
    struct search s = {.e = e, .c = c, .wanted = *wanted};
    uint64_t end_us = e->now_us + e->bounds.wound_grace_ms * US_PER_MS;

    for (uint32_t n = first_junior(&s, lock_number, wanted); n != 0;
         n = next_junior(&s, part_at(e, n)->place.next)) {
        grant_seal(e, n, end_us);
    }
}

bool refuse_by_age(struct search *s)
{
    enum hold_policy policy = hold_policy(s->c);
    uint32_t juniors = 0;

    for (uint32_t i = 0; i < s->count && !gives_up(s); i++) {
        if (s->locks[i] == 0)
            continue;
        struct wanted here = *want(s, i);
        if (policy == POLICY_WAITDIE && die(s, s->locks[i], &here))
            return true;
        uint32_t n = policy == POLICY_WOUNDWAIT
                         ? first_junior(s, s->locks[i], &here)
                         : 0;
        for (; n != 0 && juniors <= HOLD_STEP_MAX;
             n = next_junior(s, part_at(s->e, n)->place.next))
            juniors++;
    }
    return refuse_long(s) ||
           (juniors > HOLD_STEP_MAX &&
            refuse_overload(s->e, "wounds-max", HOLD_STEP_MAX));
}
