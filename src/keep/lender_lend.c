/* lender_lend.c - borrow and return.
 *
 * Why nobody passes a waiter. A borrower looks at `gate` before it takes an
 * idle slot, and a waiter is counted there before it looks for idle slots. So
 * whoever comes after a waiter was counted goes behind it. One who looked at
 * the gate before may still take a slot that the waiter would have liked; it
 * came first.
 *
 * Affinity. A thread tries the slot that it had last: nobody else has touched
 * its line since, and what the resource has in the caches is this thread's.
 */

#include "keep/lender_state.h"

static struct lender_local *local_of(struct hf_lender *lender)
{
    struct lender_local *local =
        hf_locals_quick(&lender->locals, sizeof *local);

    return local != NULL ? local
                         : hf_locals_mine(&lender->locals, sizeof *local);
}

/* Writes down whose it is, and gives it out. Release: whoever reads the name of
 * this loan then finds its number in the word. */
static inline void give(struct hf_lender *lender, uint32_t index, uint64_t word,
                        const char *who, uint64_t now_ns, struct hf_loan *loan)
{
    struct lender_slot *slot = &lender->slots[index];

    hf_ptr_store(&slot->who, (void *)(uintptr_t)who, __ATOMIC_RELEASE);
    hf_u64_store(&slot->since_ns, now_ns, __ATOMIC_RELEASE);
    hf_u64_store(&slot->noted, word / SLOT_LOAN, __ATOMIC_RELEASE);
    /* Relaxed: it is ours. */
    loan->resource = hf_ptr_load(&slot->resource, __ATOMIC_RELAXED);
    loan->lender = lender;
    loan->id = loan_id(word, index);
}

/* The slot that this thread had last, or else the first that is idle. */
static uint32_t take_idle(struct hf_lender *lender)
{
    struct lender_local *local = local_of(lender);
    uint32_t count = lender_used(lender);
    uint32_t mine = local != NULL ? local->slot : 0;

    for (uint32_t i = 0; i <= count; i++) {
        uint32_t index = i == 0 ? mine : i - 1;
        uint64_t word = slot_look(&lender->slots[index]);
        if ((word & SLOT_FLAGS) == SLOT_IDLE &&
            slot_lend(&lender->slots[index], &word, 0))
            return index;
    }
    return LENDER_NONE;
}

/* seq_cst: the borrower's place in the order, see above. */
static inline bool may_take(const struct hf_lender *lender)
{
    return (hf_u32_load(&lender->gate, __ATOMIC_SEQ_CST) & lender->gate_mask) ==
           0;
}

/* Nothing was idle, or it was not fit: then `*index` has it still. */
static enum hf_status borrow_wait(struct hf_lender *lender,
                                  uint64_t deadline_ns, uint32_t *index,
                                  int code, uint64_t *now_ns)
{
    enum hf_status status;

    do {
        status = hf_lender_wait(lender, deadline_ns, index, code);
        code = 0;
        if (status == HF_OK && !hf_lender_trusts(lender, *index, now_ns))
            status = hf_lender_check(lender, *index, deadline_ns, &code);
    } while (code != 0);
    return status == HF_MORE ? hf_lender_make(lender, *index, true) : status;
}

/* Nothing is idle, or what `*index` has must be looked at. A lender that is
 * closed while we have no slot may have lost its last resource: before that we
 * hold it. */
static enum hf_status borrow_held(struct hf_lender *lender,
                                  uint64_t deadline_ns, uint32_t *index,
                                  struct hf_loan *loan, uint64_t *now_ns)
{
    bool held = *index == LENDER_NONE || lender->checks != NULL;
    enum hf_status status = HF_OK;
    int code = 0;

    if (held)
        lender_retain(lender);
    if (*index != LENDER_NONE)
        status = hf_lender_check(lender, *index, deadline_ns, &code);
    if (*index == LENDER_NONE || code != 0) {
        if (!held)
            lender_retain(lender);
        held = true;
        status = borrow_wait(lender, deadline_ns, index, code, now_ns);
    }
    /* Relaxed: a figure. */
    if (status == HF_TIMEOUT || status == HF_FAILED)
        loan->code = (int)hf_u32_load(&lender->code, __ATOMIC_RELAXED);
    if (held)
        hf_lender_release(lender);
    return status;
}

__attribute__((noinline)) static enum hf_status
borrow_long(struct hf_lender *lender, const char *who, uint64_t deadline_ns,
            struct hf_loan *loan)
{
    uint32_t index = may_take(lender) ? take_idle(lender) : LENDER_NONE;
    uint64_t now_ns = 0;

    if (index == LENDER_NONE || !hf_lender_trusts(lender, index, &now_ns)) {
        enum hf_status status =
            borrow_held(lender, deadline_ns, &index, loan, &now_ns);
        if (status != HF_OK)
            return status;
    }
    struct lender_local *local = local_of(lender);
    if (local != NULL)
        local->slot = index;
    if (now_ns == 0 || !lender->notes_lend)
        now_ns = lender->notes_lend ? lender_now(lender) : HF_INSPECT_NONE;
    give(lender, index, slot_look(&lender->slots[index]), who, now_ns, loan);
    return HF_OK;
}

enum hf_status hf_lender_borrow(struct hf_lender *lender, const char *who,
                                uint64_t deadline_ns, struct hf_loan *loan)
{
    if (lender == NULL || loan == NULL)
        return HF_INVALID;
    struct lender_local *local =
        hf_locals_quick(&lender->locals, sizeof *local);
    if (local != NULL && !lender->looks && may_take(lender)) {
        struct lender_slot *slot = &lender->slots[local->slot];
        uint64_t word = slot_look(slot);
        if ((word & SLOT_FLAGS) == SLOT_IDLE && slot_lend(slot, &word, 0)) {
            give(lender, local->slot, slot_with(word, SLOT_OUT) + SLOT_LOAN,
                 who, lender->notes_lend ? lender_now(lender) : HF_INSPECT_NONE,
                 loan);
            return HF_OK;
        }
    }
    return borrow_long(lender, who, deadline_ns, loan);
}

bool hf_lender_claim(struct lender_slot *slot, uint64_t *word)
{
    uint64_t loans = *word / SLOT_LOAN;
    uint64_t state = *word & SLOT_STATE;

    while (!slot_change(slot, word, slot_with(*word, SLOT_BUSY))) {
        if (*word / SLOT_LOAN != loans || (*word & SLOT_STATE) != state)
            return false;
    }
    return true;
}

/* The word of a loan that is out, as it is now; 0: it is not out of here. */
static uint64_t find_loan(struct hf_lender *lender, const struct hf_loan *loan)
{
    if (lender == NULL || loan == NULL)
        return 0;
    uint32_t index = (uint32_t)loan->id & LOAN_SLOT_MASK;
    if (loan->lender == lender && index < lender->opts.room) {
        uint64_t word = slot_look(&lender->slots[index]);
        if (loan_is_out(word, loan->id))
            return word;
    }
    lender_count(&lender->refused);
    return 0;
}

/* Without a queue: idle, and one of those who sleep is called. */
static bool back_unfair(struct hf_lender *lender, struct lender_slot *slot,
                        uint64_t word)
{
    uint64_t loans = word / SLOT_LOAN;

    /* Relaxed: set before we were ASKed to come this way. */
    if (hf_u32_load(&lender->tight, __ATOMIC_RELAXED) != 0)
        return false;
    while (word / SLOT_LOAN == loans && (word & SLOT_STATE) == SLOT_OUT) {
        if (word & SLOT_RETIRE)
            break;
        if (slot_change(slot, &word, slot_with(word, SLOT_IDLE))) {
            hf_event_wake(&lender->freed, 1);
            return true;
        }
    }
    return false;
}

/* A slot that the caller has BUSY, and that was `word`, is idle again; unless
 * `code` or something else is against it. */
static void put_back(struct hf_lender *lender, uint32_t index, uint64_t word,
                     int code)
{
    struct lender_slot *slot = &lender->slots[index];

    hf_mutex_lock(&lender->mutex);
    /* Relaxed: written under the mutex. */
    bool old = hf_u32_load(&slot->age, __ATOMIC_RELAXED) != lender->renewals;
    uint64_t busy = slot_with(word, SLOT_BUSY);
    /* RETIRE may have come while it was BUSY: then the exchange fails. */
    if (code == 0 && !(word & SLOT_RETIRE) && !old &&
        !hf_lender_is_tight(lender) && !lender_is_closed(lender) &&
        slot_change(slot, &busy, slot_with(word, SLOT_IDLE))) {
        hf_lender_unlock(lender, index);
    } else {
        lender->leaving++;
        hf_mutex_unlock(&lender->mutex);
        hf_lender_end(lender, index,
                      code != 0 ? HF_LENDER_BROKEN : HF_LENDER_RETIRED, code);
    }
}

void hf_lender_put_back(struct hf_lender *lender, uint32_t index)
{
    struct lender_slot *slot = &lender->slots[index];
    uint64_t word = slot_look(slot);

    lender_count(&lender->undone);
    if (lender->notes_back) /* Relaxed: what follows publishes it. */
        hf_u64_store(&slot->idle_ns, lender_now(lender), __ATOMIC_RELAXED);
    (void)hf_lender_claim(slot, &word);
    put_back(lender, index, word, 0);
}

/* Somebody wants to know of this return, or the resource is to be reset. */
__attribute__((noinline)) static enum hf_status
return_long(struct hf_lender *lender, const struct hf_loan *loan, uint64_t word)
{
    uint32_t index = (uint32_t)loan->id & LOAN_SLOT_MASK;
    struct lender_slot *slot = &lender->slots[index];
    int code = 0;

    lender_retain(lender); /* it is there while the loan is */
    if (lender->opts.unfair && lender->opts.reset == NULL &&
        back_unfair(lender, slot, word)) {
        hf_lender_release(lender);
        return HF_OK;
    }
    if (!hf_lender_claim(slot, &word)) { /* another has returned it meanwhile */
        lender_count(&lender->refused);
        hf_lender_release(lender);
        return HF_INVALID;
    }
    if (lender->opts.reset != NULL && !(word & SLOT_RETIRE))
        code = lender->opts.reset(lender->opts.context, loan->resource);
    put_back(lender, index, word, code);
    hf_lender_release(lender);
    return HF_OK;
}

enum hf_status hf_lender_return(struct hf_lender *lender,
                                const struct hf_loan *loan)
{
    uint64_t word = find_loan(lender, loan);

    if (word == 0)
        return HF_INVALID;
    struct lender_slot *slot = &lender->slots[loan->id & LOAN_SLOT_MASK];
    /* Relaxed: the exchange publishes it. */
    if (lender->notes_back)
        hf_u64_store(&slot->idle_ns, lender_now(lender), __ATOMIC_RELAXED);
    if ((word & SLOT_FLAGS) == SLOT_OUT && lender->opts.reset == NULL &&
        slot_change(slot, &word, slot_with(word, SLOT_IDLE)))
        return HF_OK;
    if (word / SLOT_LOAN != loan->id >> 16 || (word & SLOT_STATE) != SLOT_OUT) {
        lender_count(&lender->refused);
        return HF_INVALID;
    }
    return return_long(lender, loan, word);
}

enum hf_status hf_lender_discard(struct hf_lender *lender,
                                 const struct hf_loan *loan)
{
    uint64_t word = find_loan(lender, loan);

    if (word == 0)
        return HF_INVALID;
    uint32_t index = (uint32_t)loan->id & LOAN_SLOT_MASK;
    if (!hf_lender_claim(&lender->slots[index], &word)) {
        lender_count(&lender->refused);
        return HF_INVALID;
    }
    lender_retain(lender);
    hf_lender_destroy(lender, index, HF_LENDER_BROKEN, 0);
    hf_lender_release(lender);
    return HF_OK;
}
