/* serve.c - who is next, when something has ended.
 *
 * A name is served from the front of its queue, in the same step that freed it,
 * so that nobody can slip in:
 *
 *   held by A, queue B C D
 *     UNLOCK by A, or A's time is over
 *   held by B, queue C D          (new token)
 *
 * Readers and writers take turns: when a writer has ended, the readers who wait
 * come before the next writer; readers who come later wait behind it.
 *
 * A wait for several names stands in several queues and is granted when it is
 * at the front of all of them and all are free. Until then it lets nobody pass
 * but readers where it is one. When it leaves, all its names are served.
 */
#include "hold/tree.h"

/* Nobody holds it, waits for it or marked it: it costs nothing. */
static bool is_idle(const struct lock *lock)
{
    return lock->granted == 0 && lock->waiting == 0 && lock->mark == 0;
}

void serve_later(struct hold_engine *e, uint32_t number)
{
    struct lock *lock = lock_edit(e, number);

    if (e->undo.on && (is_idle(lock) || (lock->path & LOCK_HAS_TREE) != 0))
        e->serve_idle = true;
    if (lock->is_listed)
        return;
    lock->is_listed = true;
    lock->next = 0;
    if (e->serve.last == 0)
        e->serve.first = number;
    else
        lock_edit(e, e->serve.last)->next = number;
    e->serve.last = number;
}

/* Is `own`, a grant of the same holder, just what the waiter asks for? */
static bool is_same(const struct hold_engine *e, const struct waiter *waiter,
                    const struct part *part, const struct part *own)
{
    if (own->key || own->mode != part->mode || own->permits != part->permits)
        return false;
    if (own->mode == MODE_COUNTING && lock_at(e, own->lock)->max != waiter->max)
        return false;
    bool is_set = (waiter->flags & WAITER_IS_SET) != 0;
    if (own->tree != part->tree && (is_set || part->tree))
        return false;
    return is_set == (own->group != 0) &&
           (!is_set || set_at(e, own->group)->names == waiter->names);
}

/* ---- Whose grants are there. ---- */

/* Each who waits is asked whether it holds the lock already. When a second one
 * is and there are so many grants, it is noted for all who wait: otherwise a
 * queue of readers, or of permits, would take ever longer to be let in. */
#define NOTED_MIN 4u

static struct noted *noted_of(struct hold_engine *e, uint32_t lock)
{
    return &e->noted[lock % HOLD_SET_MAX];
}

static bool has_notes(struct hold_engine *e, uint32_t lock)
{
    const struct noted *noted = noted_of(e, lock);

    return noted->turn == e->serve_turns && noted->lock == lock && noted->done;
}

static void note_own(struct hold_engine *e, uint32_t grant, uint32_t here)
{
    const struct part *part = part_at(e, grant);
    uint32_t number =
        holder_find(e, part_claim(e, part)->session, part_owner(e, part));

    if (number == 0)
        return; /* it waits for nothing */
    struct holder *holder = holder_edit(e, number);
    if (holder->noted != e->serve_turns) {
        holder->noted = e->serve_turns;
        holder->held = 0;
        holder->own = 0;
    }
    holder->held |= UINT64_C(1) << part->lock % HOLD_SET_MAX;
    if (part->lock == here)
        holder->own = grant;
}

/* Notes who holds it, if that is asked for again. */
static void note_lock(struct hold_engine *e, uint32_t number, uint32_t here)
{
    struct noted *noted = noted_of(e, number);
    const struct lock *lock = lock_at(e, number);

    if (noted->turn != e->serve_turns) {
        *noted = (struct noted){.turn = e->serve_turns, .lock = number};
        return;
    }
    if (noted->lock != number || noted->done || lock->granted < NOTED_MIN)
        return;
    for (uint32_t n = lock->grants.first; n != 0; n = part_at(e, n)->place.next)
        note_own(e, n, here);
    e->out.work += lock->granted;
    noted->done = true;
}

/* The grant that the waiter's holder has on the lock of that part; 0: none. */
static uint32_t own_at(struct hold_engine *e, const struct waiter *waiter,
                       const struct part *part, uint32_t here)
{
    const struct lock *lock = lock_at(e, part->lock);
    const struct holder *holder = holder_at(e, waiter->holder);
    uint64_t bit = UINT64_C(1) << part->lock % HOLD_SET_MAX;

    note_lock(e, part->lock, here);
    if (has_notes(e, part->lock)) {
        if (holder->noted != e->serve_turns || (holder->held & bit) == 0)
            return 0;
        if (part->lock == here)
            return holder->own;
    }
    e->out.work += lock->granted;
    return grant_of(e, lock, waiter->claim.session,
                    hf_text_bytes(&e->texts, waiter->claim.owner));
}

/* ---- Who is ready. ---- */

/* May it be granted, as far as this name goes? `*own` is the grant that it
 * re-enters, 0 for a new one. `here` is served; with `turn` its place there
 * does not count. */
static bool is_ready_at(struct hold_engine *e, const struct waiter *waiter,
                        const struct part *part, uint32_t here, bool turn,
                        uint32_t *own)
{
    const struct lock *lock = lock_at(e, part->lock);
    struct wanted wanted = waiter_wants(e, waiter, part);

    e->out.work++;
    *own = 0;
    if (part->tree && is_covered(e, waiter->first, part))
        wanted.tree = TREE_COVERED;
    if (is_closed(e, lock) ||
        (!(turn && part->lock == here) && is_blocked(e, lock, &wanted)))
        return false;
    if (lock->granted > 0)
        *own = own_at(e, waiter, part, here);
    if (*own != 0 && (part_is_over(e, part_at(e, *own)) ||
                      !is_same(e, waiter, part, part_at(e, *own))))
        return false;
    if (*own == 0 && lock->granted > 0 &&
        (lock->granted >= e->bounds.holders_max ||
         conflicts(lock, &wanted, part_at(e, lock->grants.first))))
        return false;
    return !waits_for_related(e, part->lock, &wanted);
}

/* The same for all its names: all of them are free, or all are its own. What
 * stopped it last mostly does so still. */
static bool is_ready(struct hold_engine *e, struct waiter *waiter,
                     uint32_t here, bool turn, uint32_t *own)
{
    uint32_t first_own = 0;

    if (waiter_is_over(e, waiter))
        return false; /* it is ended in its turn, which serves again */
    if (waiter->stopped != 0 &&
        !is_ready_at(e, waiter, part_at(e, waiter->stopped), here, turn, own))
        return false;
    for (uint32_t n = waiter->first; n != 0; n = part_at(e, n)->more) {
        if (!is_ready_at(e, waiter, part_at(e, n), here, turn, own)) {
            waiter->stopped = waiter->names > 1 ? n : 0;
            return false;
        }
        if (n == waiter->first)
            first_own = *own;
        else if ((*own != 0) != (first_own != 0) ||
                 (*own != 0 &&
                  part_at(e, *own)->group != part_at(e, first_own)->group))
            return false;
    }
    *own = first_own;
    return true;
}

/* Its names are its own now; returns the part that stands for the grant. */
static uint32_t take_over(struct hold_engine *e, const struct waiter *waiter)
{
    uint32_t number = waiter->first;

    if ((waiter->flags & WAITER_IS_SET) != 0) {
        hf_slab_unpromise(&e->sets.slab, 1);
        set_begin(e, &waiter->claim, number, waiter->ttl_ms);
        return number;
    }
    part_edit(e, number)->claim = waiter->claim;
    grant_begin(e, number, waiter->ttl_ms, waiter->max);
    return number;
}

/* It has the same already: its parts go, the grant counts once more. */
static void join_own(struct hold_engine *e, const struct waiter *waiter,
                     uint32_t own)
{
    uint32_t next;

    grant_reenter(e, own, waiter->ttl_ms);
    waiter_unpromise(e, waiter);
    claim_drop(e, &waiter->claim);
    for (uint32_t n = waiter->first; n != 0; n = next) {
        next = part_at(e, n)->more;
        hf_slab_give(&e->parts, n);
    }
}

static void grant_waiter(struct hold_engine *e, uint32_t number, uint32_t own,
                         uint32_t here)
{
    struct waiter waiter = waiter_leave(e, number);

    for (uint32_t n = waiter.first; n != 0; n = part_at(e, n)->more) {
        if (part_at(e, n)->lock != here)
            serve_later(e, part_at(e, n)->lock);
    }
    if (own != 0)
        join_own(e, &waiter, own);
    else
        own = take_over(e, &waiter);
    for (uint32_t n = own; n != 0;
         n = part_at(e, n)->group == 0 ? 0 : part_at(e, n)->more) {
        if (has_notes(e, part_at(e, n)->lock))
            note_own(e, n, here);
    }
    struct hf_buf *body = answer_begin(e, waiter.ticket, HOLD_OK);
    reply_grant(body, e, own, waiter.queued_us);
    waiter_answer_end(e, waiter.request);
}

/* Grants it, if it is ready. */
static bool try_grant(struct hold_engine *e, uint32_t number, uint32_t here,
                      bool turn)
{
    uint32_t waiter = part_at(e, number)->group;
    uint32_t own;

    if (!is_ready(e, waiter_edit(e, waiter), here, turn, &own))
        return false;
    grant_waiter(e, waiter, own, here);
    return true;
}

/* The same, counted: a grant takes longer than a look. */
#define GRANT_STEPS 8u

static bool try_counted(struct hold_engine *e, uint32_t number, uint32_t here,
                        bool turn)
{
    uint32_t names = waiter_at(e, part_at(e, number)->group)->names;
    bool granted = try_grant(e, number, here, turn);

    count_walked(e, granted ? GRANT_STEPS * names : names, 0);
    return granted;
}

static bool is_by_age(const struct waiter *waiter)
{
    enum hold_policy policy = policy_of(waiter->flags);

    return policy == POLICY_WAITDIE || policy == POLICY_WOUNDWAIT;
}

/* A writer has ended and another one waits: all readers go before it. But they
 * do not pass one who waits by age, which would come to wait for a senior or
 * for a junior that it did not wound. */
static void serve_readers(struct hold_engine *e, uint32_t here)
{
    const struct lock *lock = lock_at(e, here);
    uint32_t left = lock->readers;
    uint32_t next;

    if (lock->writer == 0)
        return;
    uint32_t rank =
        rank_of(waiter_at(e, part_at(e, lock->writer)->group)->flags);

    for (uint32_t n = lock->queue.first; left > 0; n = next) {
        const struct part *part = part_at(e, n);
        const struct waiter *waiter = waiter_at(e, part->group);
        bool shared = part->mode == MODE_SHARED;
        next = part->place.next;
        if (rank_of(waiter->flags) > rank || (!shared && is_by_age(waiter)))
            break;
        if (!shared) {
            count_walked(e, 1, 1);
            continue;
        }
        (void)try_counted(e, n, here, true);
        left--;
    }
}

static void serve(struct hold_engine *e, uint32_t here)
{
    struct lock *lock = lock_edit(e, here);
    bool passed = false; /* a reader that waits elsewhere */
    bool turn = lock->turn;
    uint32_t next;

    lock->turn = false;
    if (is_closed(e, lock))
        return;
    if (turn && lock->granted == 0)
        serve_readers(e, here);
    for (uint32_t n = lock->queue.first; n != 0; n = next) {
        const struct part *part = part_at(e, n);
        bool shared = part->mode == MODE_SHARED;
        next = part->place.next;
        if ((shared || !passed) && try_counted(e, n, here, false))
            continue;
        if (!shared || (lock->granted > 0 &&
                        part_at(e, lock->grants.first)->mode != MODE_SHARED))
            break;
        passed = true;
    }
}

/* The same as a journal from before HOLD_GRAPH has it: only when nobody holds
 * it, the waits at its front that are over end first, and behind the one that
 * is granted only those of the same owner. */
static void serve_old(struct hold_engine *e, uint32_t here)
{
    const struct lock *lock = lock_at(e, here);

    if (lock->granted > 0)
        return;
    while (lock->queue.first != 0 &&
           part_is_over(e, part_at(e, lock->queue.first)))
        waiter_time_out(e, part_at(e, lock->queue.first)->group);
    while (lock->queue.first != 0 &&
           try_grant(e, lock->queue.first, here, false))
        continue;
}

/* A group serves at its end, but what its commands have ended is not in use for
 * the next one: neither names nor trees count, for the bounds on them. */
void serve_drop_idle(struct hold_engine *e)
{
    uint32_t prev = 0;
    uint32_t next;

    e->serve_idle = false;
    for (uint32_t n = e->serve.first; n != 0; n = next) {
        const struct lock *lock = lock_at(e, n);
        next = lock->next;
        e->out.work++;
        if (lock->path != 0)
            tree_settle(e, n);
        if (!is_idle(lock)) {
            prev = n;
            continue;
        }
        *(prev == 0 ? &e->serve.first : &lock_edit(e, prev)->next) = next;
        if (next == 0)
            e->serve.last = prev;
        lock_edit(e, n)->is_listed = false;
        lock_remove(e, n);
    }
}

void serve_listed(struct hold_engine *e)
{
    while (e->serve.first != 0) {
        uint32_t number = e->serve.first;
        struct lock *lock = lock_edit(e, number);
        e->serve.first = lock->next;
        if (e->serve.first == 0)
            e->serve.last = 0;
        lock->is_listed = false;
        e->stops.of = 0;
        e->serve_turns++;
        if (lock->waiting > 0 && e->old_queues)
            serve_old(e, number);
        else if (lock->waiting > 0)
            serve(e, number);
        lock->turn = false;
        if (lock->path != 0)
            tree_settle(e, number);
        if (!lock->is_listed && is_idle(lock))
            lock_remove(e, number);
    }
}
