/* lender_make.c - resources come and go: create, destroy, upkeep.
 *
 * A slot is reserved under the mutex before create is called and given up only
 * after destroy has returned, so that there are never more than max. Both are
 * called outside of it.
 *
 * The thread sleeps until the next thing is due. A loan that begins after its
 * last pass cannot be a leak, nor a resource idle for too long, before leak_ns
 * or idle_ns have passed since: so it need not be told of loans.
 */
#include <assert.h>

#include "holdfast/future.h"
#include "keep/lender_state.h"

static void tell(struct hf_lender *lender, struct hf_lender_note *note)
{
    if (lender->opts.observe != NULL)
        lender->opts.observe(lender->opts.context, note);
}

/* The name that the last borrower of a slot gave. */
static const char *who_of(const struct lender_slot *slot)
{
    /* Acquire: then the word is this loan's, or of a later one. */
    const char *who = hf_ptr_load(&slot->who, __ATOMIC_ACQUIRE);

    return who != NULL ? who : "";
}

/* ---- Create. ---- */

uint32_t hf_lender_reserve(struct hf_lender *lender)
{
    assert(hf_mutex_held(&lender->mutex));
    if (lender->total >= lender->max)
        return LENDER_NONE;
    uint32_t index = 0;
    uint64_t word = slot_look(&lender->slots[0]);
    while ((word & SLOT_STATE) != SLOT_EMPTY)
        word = slot_look(&lender->slots[++index]);
    assert(index < lender->opts.room);
    /* Relaxed: read under the mutex, or as a guess. Release: for who looks at
     * slots below `used`. */
    hf_u32_store(&lender->slots[index].age, lender->renewals, __ATOMIC_RELAXED);
    hf_u64_store(&lender->slots[index].word, slot_with(word, SLOT_BUSY),
                 __ATOMIC_RELEASE);
    if (index >= lender_used(lender))
        hf_u32_store(&lender->used, index + 1, __ATOMIC_RELEASE);
    lender->asked = false;
    lender->total++;
    lender->making++;
    return index;
}

/* Under mutex: a BUSY slot without a resource. */
static void empty(struct hf_lender *lender, uint32_t index)
{
    struct lender_slot *slot = &lender->slots[index];
    uint64_t word = slot_look(slot);

    assert(hf_mutex_held(&lender->mutex));
    assert((word & SLOT_STATE) == SLOT_BUSY);
    /* Relaxed: the word publishes it. Release: for the next who reserves. */
    hf_ptr_store(&slot->resource, NULL, __ATOMIC_RELAXED);
    hf_u64_store(&slot->word, slot_with(word, SLOT_EMPTY) + SLOT_LOAN,
                 __ATOMIC_RELEASE);
    lender_count(&lender->undone);
    lender->total--;
}

void hf_lender_unreserve(struct hf_lender *lender, uint32_t index)
{
    hf_mutex_lock(&lender->mutex);
    lender->making--;
    empty(lender, index);
    hf_lender_unlock(lender, LENDER_NONE);
}

static uint64_t add_time(uint64_t at_ns, uint64_t ns)
{
    return at_ns > HF_FOREVER - ns ? HF_FOREVER : at_ns + ns;
}

/* Under mutex: what was made last is no good; a pause is due. */
static void made_bad(struct hf_lender *lender, uint64_t now_ns, int code)
{
    uint64_t pause_ns = 0;

    assert(hf_mutex_held(&lender->mutex));
    (void)hf_backoff_next(&lender->backoff, now_ns, HF_FOREVER, &pause_ns);
    lender->retry_ns = add_time(now_ns, pause_ns);
    /* Relaxed: a figure. */
    hf_u32_store(&lender->code, (uint32_t)code, __ATOMIC_RELAXED);
}

static void made_good(struct hf_lender *lender)
{
    assert(hf_mutex_held(&lender->mutex));
    hf_backoff_reset(&lender->backoff);
    lender->retry_ns = 0;
    /* Relaxed: a figure. */
    hf_u32_store(&lender->code, 0, __ATOMIC_RELAXED);
}

void hf_lender_made_bad(struct hf_lender *lender, int code)
{
    uint64_t now_ns = lender_now(lender);

    hf_mutex_lock(&lender->mutex);
    made_bad(lender, now_ns, code);
    hf_mutex_unlock(&lender->mutex);
}

void hf_lender_made_good(struct hf_lender *lender)
{
    hf_mutex_lock(&lender->mutex);
    made_good(lender);
    hf_lender_unlock(lender, LENDER_NONE); /* others need not wait for it */
}

static enum hf_status not_made(struct hf_lender *lender, uint32_t index,
                               int code)
{
    struct hf_lender_note note = {.event = HF_LENDER_FAILED,
                                  .who = "",
                                  .since_ns = HF_INSPECT_NONE,
                                  .held_ns = HF_INSPECT_NONE,
                                  .code = code};
    uint64_t now_ns = lender_now(lender);

    lender_count(&lender->failed);
    tell(lender, &note);
    hf_mutex_lock(&lender->mutex);
    made_bad(lender, now_ns, code);
    lender->making--;
    empty(lender, index);
    hf_lender_unlock(lender, LENDER_NONE);
    return HF_FAILED;
}

static uint64_t expiry(struct hf_lender *lender, uint64_t now_ns)
{
    uint64_t age_ns = lender->opts.age_ns;
    uint64_t share_ns = age_ns / 100 * lender->opts.spread;

    if (age_ns == 0)
        return HF_FOREVER;
    return add_time(now_ns,
                    age_ns - hf_random_below(&lender->random, share_ns + 1));
}

enum hf_status hf_lender_make(struct hf_lender *lender, uint32_t index,
                              bool lent)
{
    struct lender_slot *slot = &lender->slots[index];
    void *resource = NULL;
    int code = lender->opts.create(lender->opts.context, &resource);

    if (code != 0)
        return not_made(lender, index, code);
    struct hf_lender_note note = {.event = HF_LENDER_CREATED,
                                  .resource = resource,
                                  .who = "",
                                  .since_ns = HF_INSPECT_NONE,
                                  .held_ns = HF_INSPECT_NONE};
    lender_count(&lender->created);
    tell(lender, &note);
    uint64_t now_ns = lender_now(lender);
    hf_mutex_lock(&lender->mutex);
    lender->making--;
    slot->fresh = lender->looks && !lent;
    if (!slot->fresh)
        made_good(lender);
    /* Relaxed: the word publishes them. Release: whoever sees the resource of a
     * BUSY slot must not take the last one's end for its. */
    hf_u64_store(&slot->expires_ns, expiry(lender, now_ns), __ATOMIC_RELAXED);
    hf_u64_store(&slot->idle_ns, now_ns, __ATOMIC_RELAXED);
    hf_ptr_store(&slot->who, NULL, __ATOMIC_RELAXED);
    hf_ptr_store(&slot->resource, resource, __ATOMIC_RELEASE);
    uint64_t word = slot_look(slot);
    if (lender_is_closed(lender) || (!lent && hf_lender_is_tight(lender))) {
        hf_mutex_unlock(&lender->mutex);
        hf_lender_destroy(lender, index, HF_LENDER_RETIRED, 0);
        return HF_CLOSED;
    }
    /* Release: what create did. Lent with ASK: who visited it while it was BUSY
     * could not leave that. */
    hf_u64_store(&slot->word,
                 lent ? slot_with(word, SLOT_OUT | SLOT_ASK) + SLOT_LOAN
                      : slot_with(word, SLOT_IDLE),
                 __ATOMIC_RELEASE);
    hf_lender_unlock(lender, lent ? LENDER_NONE : index);
    return HF_OK;
}

/* ---- On a pool. ---- */

static int make_task(void *argument)
{
    struct lender_slot *slot = argument;
    struct hf_lender *lender = slot->lender;

    (void)hf_lender_make(lender, (uint32_t)(slot - lender->slots), false);
    return 0;
}

/* The task is over, or was dropped and will not run. */
static void make_over(void *context, const struct hf_outcome *outcome)
{
    struct lender_slot *slot = context;
    struct hf_lender *lender = slot->lender;

    if (outcome->status == HF_CANCELLED)
        (void)not_made(lender, (uint32_t)(slot - lender->slots), 0);
    hf_lender_release(lender);
}

static void make_elsewhere(struct hf_lender *lender, uint32_t index)
{
    static const struct hf_task_opts opts = {.name = "lender"};
    struct lender_slot *slot = &lender->slots[index];
    struct hf_future *future;

    lender_retain(lender);
    if (hf_pool_submit(lender->opts.pool, make_task, slot, &opts, &future) !=
        HF_OK) {
        (void)hf_lender_make(lender, index, false);
        hf_lender_release(lender);
        return;
    }
    if (hf_future_then(future, make_over, slot) != HF_OK) {
        /* No memory: we take it back, or wait for it ourselves. */
        struct hf_outcome outcome;
        (void)hf_future_cancel(future);
        (void)hf_future_get(future, HF_FOREVER, &outcome);
        make_over(slot, &outcome);
    }
    hf_future_release(future);
}

/* ---- Destroy. ---- */

void hf_lender_end(struct hf_lender *lender, uint32_t index,
                   enum hf_lender_event why, int code)
{
    struct lender_slot *slot = &lender->slots[index];
    /* Relaxed: the slot is ours. */
    void *resource = hf_ptr_load(&slot->resource, __ATOMIC_RELAXED);
    struct hf_lender_note note = {.event = why,
                                  .resource = resource,
                                  .who = who_of(slot),
                                  .since_ns = HF_INSPECT_NONE,
                                  .held_ns = HF_INSPECT_NONE,
                                  .code = code};
    bool closing = why == HF_LENDER_RETIRED && lender_is_closed(lender);

    if (!closing) {
        lender_count(why == HF_LENDER_BROKEN ? &lender->broken
                                             : &lender->retired);
        tell(lender, &note);
    }
    lender->opts.destroy(lender->opts.context, resource);
    lender_count(&lender->destroyed);
    hf_mutex_lock(&lender->mutex);
    lender->leaving--;
    empty(lender, index);
    hf_lender_unlock(lender, LENDER_NONE);
}

void hf_lender_destroy(struct hf_lender *lender, uint32_t index,
                       enum hf_lender_event why, int code)
{
    lender_retain(lender);
    hf_mutex_lock(&lender->mutex);
    lender->leaving++;
    hf_mutex_unlock(&lender->mutex);
    hf_lender_end(lender, index, why, code);
    hf_lender_release(lender);
}

bool hf_lender_is_tight(const struct hf_lender *lender)
{
    assert(hf_mutex_held(&lender->mutex));
    return lender->total - lender->leaving > lender->max;
}

/* What is being made or destroyed overwrites the mark. */
bool hf_lender_retire(struct hf_lender *lender, uint32_t index, uint64_t word)
{
    struct lender_slot *slot = &lender->slots[index];
    uint64_t loans = word / SLOT_LOAN;

    while (word / SLOT_LOAN == loans && (word & SLOT_STATE) != SLOT_EMPTY) {
        if ((word & SLOT_STATE) == SLOT_IDLE) {
            if (!hf_lender_claim(slot, &word))
                continue;
            hf_lender_destroy(lender, index, HF_LENDER_RETIRED, 0);
            return true;
        }
        if ((word & SLOT_RETIRE) ||
            slot_change(slot, &word, word | SLOT_RETIRE))
            return true;
    }
    return false;
}

/* ---- Upkeep. ---- */

static void sooner(uint64_t *next_ns, uint64_t at_ns)
{
    if (at_ns < *next_ns)
        *next_ns = at_ns;
}

bool hf_lender_describe(struct lender_slot *slot, uint64_t word,
                        uint64_t now_ns, struct hf_lender_note *note)
{
    uint64_t loan = word / SLOT_LOAN;

    /* Acquire: what is written after the next loan began is read only together
     * with that loan's word, and then this is not the one. */
    bool noted = hf_u64_load(&slot->noted, __ATOMIC_ACQUIRE) == loan;
    uint64_t since_ns = hf_u64_load(&slot->since_ns, __ATOMIC_ACQUIRE);
    bool told = hf_u64_load(&slot->told, __ATOMIC_ACQUIRE) == loan;

    *note = (struct hf_lender_note){
        .event = told ? HF_LENDER_LEAKED : HF_LENDER_CREATED,
        .resource = hf_ptr_load(&slot->resource, __ATOMIC_ACQUIRE),
        .who = noted ? who_of(slot) : "",
        .since_ns = noted ? since_ns : HF_INSPECT_NONE,
        .held_ns = HF_INSPECT_NONE};
    if (note->since_ns != HF_INSPECT_NONE)
        note->held_ns = now_ns > since_ns ? now_ns - since_ns : 0;
    uint64_t again = slot_look(slot);
    return again / SLOT_LOAN == loan && (again & SLOT_STATE) == SLOT_OUT;
}

static void tend_loan(struct hf_lender *lender, struct lender_slot *slot,
                      uint64_t word, uint64_t now_ns, uint64_t *next_ns)
{
    struct hf_lender_note note;
    uint64_t loan = word / SLOT_LOAN;

    if (!hf_lender_describe(slot, word, now_ns, &note) ||
        note.since_ns == HF_INSPECT_NONE || note.event == HF_LENDER_LEAKED)
        return;
    if (note.held_ns < lender->opts.leak_ns) {
        sooner(next_ns, add_time(note.since_ns, lender->opts.leak_ns));
        return;
    }
    uint64_t told = hf_u64_load(&slot->told, __ATOMIC_RELAXED);
    /* Relaxed: it only says who tells. */
    if (told >= loan || !hf_u64_cas(&slot->told, &told, loan, __ATOMIC_RELAXED))
        return;
    lender_count(&lender->leaked);
    note.event = HF_LENDER_LEAKED;
    tell(lender, &note);
}

/* One that is idle for too long goes, unless that would be fewer than min. */
static void tend_idle(struct hf_lender *lender, uint32_t index, uint64_t word,
                      uint64_t now_ns, uint64_t *next_ns)
{
    struct lender_slot *slot = &lender->slots[index];
    /* Acquire: as in describe; the claim looks at the word again. */
    uint64_t due_ns = add_time(hf_u64_load(&slot->idle_ns, __ATOMIC_ACQUIRE),
                               lender->opts.idle_ns);

    hf_mutex_lock(&lender->mutex);
    bool spare = lender->total - lender->leaving > lender->min;
    bool ours = spare && due_ns <= now_ns && hf_lender_claim(slot, &word);
    lender->leaving += ours;
    hf_mutex_unlock(&lender->mutex);
    if (ours)
        hf_lender_end(lender, index, HF_LENDER_RETIRED, 0);
    else if (spare)
        sooner(next_ns, due_ns > now_ns ? due_ns : HF_FOREVER);
}

static void tend_slot(struct hf_lender *lender, uint32_t index, uint64_t now_ns,
                      uint64_t *next_ns)
{
    struct lender_slot *slot = &lender->slots[index];
    uint64_t word = slot_look(slot);
    uint64_t state = word & SLOT_STATE;

    /* Acquire: see hf_lender_make. Without one it is being made. */
    if (state == SLOT_EMPTY ||
        (state == SLOT_BUSY &&
         hf_ptr_load(&slot->resource, __ATOMIC_ACQUIRE) == NULL))
        return;
    if (lender->opts.leak_ns != 0 && state == SLOT_OUT)
        tend_loan(lender, slot, word, now_ns, next_ns);
    /* Acquire: as in describe. If it is another's by now, retire says so. */
    uint64_t expires_ns = hf_u64_load(&slot->expires_ns, __ATOMIC_ACQUIRE);
    if (expires_ns <= now_ns) {
        if (!hf_lender_retire(lender, index, word))
            sooner(next_ns, now_ns); /* look again */
        return;
    }
    sooner(next_ns, expires_ns);
    if (lender->opts.idle_ns != 0 && state == SLOT_IDLE)
        tend_idle(lender, index, word, now_ns, next_ns);
}

bool hf_lender_wants(const struct hf_lender *lender)
{
    assert(hf_mutex_held(&lender->mutex));
    return !lender_is_closed(lender) && lender->total < lender->max &&
           (lender->total - lender->leaving < lender->min ||
            lender_waiting(lender) > lender->making ||
            (lender->asked && lender->making == 0));
}

/* Makes what is needed, as far as the last failure allows. */
static void tend_makes(struct hf_lender *lender, uint64_t *next_ns)
{
    for (;;) {
        uint64_t now_ns = lender_now(lender);
        uint32_t index = LENDER_NONE;
        hf_mutex_lock(&lender->mutex);
        if (hf_lender_wants(lender)) {
            if (lender->retry_ns <= now_ns)
                index = hf_lender_reserve(lender);
            else
                sooner(next_ns, lender->retry_ns);
        }
        hf_mutex_unlock(&lender->mutex);
        if (index == LENDER_NONE)
            return;
        if (lender->opts.pool != NULL)
            make_elsewhere(lender, index);
        else
            (void)hf_lender_make(lender, index, false);
    }
}

uint64_t hf_lender_tend(struct hf_lender *lender)
{
    uint64_t next_ns = HF_FOREVER;

    if (lender == NULL)
        return HF_FOREVER;
    uint64_t now_ns = lender_now(lender);
    uint32_t count = lender_used(lender);
    /* Of what is lent or comes back after this. */
    if (lender->opts.leak_ns != 0)
        sooner(&next_ns, add_time(now_ns, lender->opts.leak_ns));
    if (lender->opts.idle_ns != 0)
        sooner(&next_ns, add_time(now_ns, lender->opts.idle_ns));
    for (uint32_t i = 0; i < count; i++)
        tend_slot(lender, i, now_ns, &next_ns);
    tend_makes(lender, &next_ns);
    return next_ns;
}

void hf_lender_run(void *argument)
{
    struct hf_lender *lender = argument;

    for (;;) {
        uint32_t key = hf_event_prepare(&lender->work);
        /* Relaxed: prepare acquires what the waker wrote. */
        if (hf_u32_load(&lender->stop, __ATOMIC_RELAXED) != 0) {
            hf_event_cancel(&lender->work, key);
            return;
        }
        uint64_t next_ns = hf_lender_tend(lender);
        (void)hf_event_wait(&lender->work, key, lender->clock, next_ns);
    }
}
