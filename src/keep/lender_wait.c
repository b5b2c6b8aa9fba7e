/* lender_wait.c - those who found nothing idle.
 *
 * In order. The queue is a list under the mutex. The first who comes into it
 * visits every slot: what is idle it is given, and what is out gets ASK. From
 * then on, while there is a queue, no slot is idle and every return comes by
 * the mutex: what is ASKed comes by the long way, and what is BUSY becomes idle
 * under the mutex only. So each return finds the queue, and hands over.
 *
 * A waiter's place lies on its stack. What it is given is written before its
 * bell is rung, and nothing of it is touched after.
 *
 * Unfair. Who waits visits every slot in the same way, again each time it is
 * woken. A return that was ASKed for calls one sleeper, and who takes a slot
 * while others wait leaves ASK on it: so as long as somebody sleeps, either one
 * is on its way, who will visit all slots, or all that is out is ASKed.
 */
#include <assert.h>

#include "keep/lender_state.h"

static void append(struct hf_lender *lender, struct lender_waiter *waiter)
{
    struct lender_waiter *before = lender->last;

    while (waiter->first && before != NULL && !before->first)
        before = before->prev;
    waiter->round = lender->rounds;
    waiter->prev = before;
    waiter->next = before != NULL ? before->next : lender->first;
    *(before != NULL ? &before->next : &lender->first) = waiter;
    *(waiter->next != NULL ? &waiter->next->prev : &lender->last) = waiter;
    /* seq_cst: before we look for idle slots, see lender_lend.c. */
    hf_u32_add(&lender->gate, 1, __ATOMIC_SEQ_CST);
}

static void detach(struct hf_lender *lender, struct lender_waiter *waiter)
{
    assert(hf_mutex_held(&lender->mutex));
    *(waiter->prev != NULL ? &waiter->prev->next : &lender->first) =
        waiter->next;
    *(waiter->next != NULL ? &waiter->next->prev : &lender->last) =
        waiter->prev;
    lender->swept = lender->swept && lender->first != NULL;
    /* seq_cst: as above. */
    hf_u32_sub(&lender->gate, 1, __ATOMIC_SEQ_CST);
}

/* Takes an idle slot, or leaves ASK on one that is out. `ask`: also on what it
 * takes. */
static bool visit_slot(struct lender_slot *slot, bool ask)
{
    /* seq_cst: after we were counted. */
    uint64_t word = hf_u64_load(&slot->word, __ATOMIC_SEQ_CST);

    for (;;) {
        uint64_t state = word & SLOT_STATE;
        if (state == SLOT_IDLE) {
            if (slot_lend(slot, &word, ask ? SLOT_ASK : 0))
                return true;
        } else if (state != SLOT_OUT || (word & SLOT_ASK) ||
                   slot_change(slot, &word, word | SLOT_ASK)) {
            return false;
        }
    }
}

/* A slot for the first of the queue. `index`: one that is idle; NONE: perhaps
 * none is. */
static uint32_t find_slot(struct hf_lender *lender, uint32_t index)
{
    bool others = lender->first->next != NULL;
    uint32_t count = lender_used(lender);

    if (index != LENDER_NONE && visit_slot(&lender->slots[index], others))
        return index;
    for (uint32_t i = 0; i < count && !lender->swept; i++)
        if (visit_slot(&lender->slots[i], others))
            return i;
    lender->swept = true;
    return LENDER_NONE;
}

/* Takes from the queue whoever can be served, chained by `next`. */
static struct lender_waiter *serve(struct hf_lender *lender, uint32_t index)
{
    struct lender_waiter *served = NULL;
    struct lender_waiter **end = &served;
    bool closed = lender_is_closed(lender);

    assert(hf_mutex_held(&lender->mutex));
    while (lender->first != NULL) {
        struct lender_waiter *waiter = lender->first;
        enum hf_status status = HF_OK;
        waiter->slot = LENDER_NONE;
        if (closed) {
            status = HF_CLOSED;
        } else {
            waiter->slot = find_slot(lender, index);
            index = LENDER_NONE;
            if (waiter->slot == LENDER_NONE && lender->opts.direct) {
                waiter->slot = hf_lender_reserve(lender);
                status = HF_MORE;
            }
            if (waiter->slot == LENDER_NONE)
                break;
        }
        detach(lender, waiter);
        waiter->status = status;
        waiter->waited = waiter->round != lender->rounds;
        waiter->next = NULL;
        *end = waiter;
        end = &waiter->next;
    }
    lender->rounds++;
    return served;
}

void hf_lender_unlock(struct hf_lender *lender, uint32_t index)
{
    struct lender_waiter *served = serve(lender, index);
    bool wanted = hf_lender_wants(lender);
    bool over = lender_is_closed(lender) && lender->total == 0;
    bool more = index != LENDER_NONE || lender->opts.direct;

    /* Relaxed: who has to know comes by after it was ASKed to. */
    hf_u32_store(&lender->tight, hf_lender_is_tight(lender), __ATOMIC_RELAXED);
    hf_mutex_unlock(&lender->mutex);
    while (served != NULL) {
        struct lender_waiter *next = served->next;
        hf_bell_ring(&served->bell); /* it may be gone from here on */
        served = next;
    }
    if (wanted && !lender->opts.direct)
        hf_event_wake(&lender->work, 1);
    if (lender->opts.unfair && more)
        hf_event_wake(&lender->freed, 1);
    if (over)
        hf_event_wake_all(&lender->over);
}

/* The deadline has passed; perhaps it was served just now. */
static enum hf_status give_up(struct hf_lender *lender,
                              struct lender_waiter *waiter)
{
    hf_mutex_lock(&lender->mutex);
    if (waiter->status == HF_PENDING) {
        detach(lender, waiter);
        lender->asked = lender->total < lender->max; /* for the next */
        hf_lender_unlock(lender, LENDER_NONE);
        return HF_TIMEOUT;
    }
    hf_mutex_unlock(&lender->mutex);
    (void)hf_bell_wait(&waiter->bell, NULL, HF_FOREVER);
    if (waiter->status != HF_MORE)
        return waiter->status;
    /* No time left to create: the next may. */
    hf_lender_unreserve(lender, waiter->slot);
    return HF_TIMEOUT;
}

void hf_lender_drop(struct hf_lender *lender, uint32_t index, int code)
{
    struct lender_slot *slot = &lender->slots[index];
    uint64_t word = slot_look(slot);

    lender_count(&lender->undone);
    (void)hf_lender_claim(slot, &word);
    hf_lender_destroy(lender, index, HF_LENDER_BROKEN, code);
}

/* Who gives up leaves the wish to make one, for the next. */
static void leave_wish(struct hf_lender *lender)
{
    hf_mutex_lock(&lender->mutex);
    lender->asked = lender->total < lender->max;
    hf_lender_unlock(lender, LENDER_NONE);
}

void hf_lender_miss(struct hf_lender *lender)
{
    lender_count(&lender->timeouts);
    leave_wish(lender);
}

/* Who had one that was not fit is in the queue before that is gone: what makes
 * up for it must not go to another. */
static enum hf_status wait_in_order(struct hf_lender *lender,
                                    uint64_t deadline_ns, uint32_t *index,
                                    int code)
{
    struct lender_waiter waiter = {.first = *index != LENDER_NONE,
                                   .status = HF_PENDING};
    uint64_t start_ns = lender_now(lender);
    enum hf_status status;

    hf_mutex_lock(&lender->mutex);
    append(lender, &waiter);
    hf_lender_unlock(lender, LENDER_NONE);
    if (*index != LENDER_NONE)
        hf_lender_drop(lender, *index, code);
    if (hf_bell_wait(&waiter.bell, lender->clock, deadline_ns) == HF_OK)
        status = waiter.status;
    else
        status = give_up(lender, &waiter);
    if (waiter.waited && status == HF_OK)
        hf_waits_note(&lender->waits, lender_now(lender) - start_ns);
    *index = waiter.slot;
    return status;
}

/* ---- Unfair. ---- */

struct attempt {
    struct hf_lender *lender;
    uint32_t index;
};

static enum hf_status attempt_unfair(void *context)
{
    struct attempt *attempt = context;
    struct hf_lender *lender = attempt->lender;
    uint32_t count = lender_used(lender);

    if (lender_is_closed(lender))
        return HF_CLOSED;
    for (uint32_t i = 0; i < count; i++) {
        if (visit_slot(&lender->slots[i], lender_waiting(lender) > 1)) {
            attempt->index = i;
            return HF_OK;
        }
    }
    if (!lender->opts.direct)
        return HF_PENDING;
    hf_mutex_lock(&lender->mutex);
    attempt->index =
        lender_is_closed(lender) ? LENDER_NONE : hf_lender_reserve(lender);
    hf_mutex_unlock(&lender->mutex);
    return attempt->index == LENDER_NONE ? HF_PENDING : HF_MORE;
}

static enum hf_status wait_unfair(struct hf_lender *lender,
                                  uint64_t deadline_ns, uint32_t *index,
                                  int code)
{
    struct attempt attempt = {.lender = lender, .index = LENDER_NONE};
    uint64_t start_ns = lender_now(lender);

    if (*index != LENDER_NONE)
        hf_lender_drop(lender, *index, code);
    /* seq_cst: before we look for idle slots. */
    hf_u32_add(&lender->gate, 1, __ATOMIC_SEQ_CST);
    hf_mutex_lock(&lender->mutex);
    bool wanted = hf_lender_wants(lender);
    hf_mutex_unlock(&lender->mutex);
    if (wanted && !lender->opts.direct)
        hf_event_wake(&lender->work, 1);
    enum hf_status status = hf_event_until(
        &lender->freed, attempt_unfair, &attempt, lender->clock, deadline_ns);
    /* Relaxed: how many wait guards nothing. */
    hf_u32_sub(&lender->gate, 1, __ATOMIC_RELAXED);
    if (status == HF_TIMEOUT)
        leave_wish(lender);
    if (status == HF_OK)
        hf_waits_note(&lender->waits, lender_now(lender) - start_ns);
    *index = attempt.index;
    return status;
}

enum hf_status hf_lender_wait(struct hf_lender *lender, uint64_t deadline_ns,
                              uint32_t *index, int code)
{
    enum hf_status status = HF_TIMEOUT;

    if (*index != LENDER_NONE && deadline_ns != HF_NOW &&
        lender_now(lender) >= deadline_ns) {
        hf_lender_drop(lender, *index, code);
        leave_wish(lender);
    } else if (lender->opts.unfair) {
        status = wait_unfair(lender, deadline_ns, index, code);
    } else {
        status = wait_in_order(lender, deadline_ns, index, code);
    }
    if (status == HF_TIMEOUT)
        lender_count(&lender->timeouts);
    return status;
}
