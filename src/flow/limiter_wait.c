/* limiter_wait.c - those who wait for permits.
 *
 * Who is denied joins the queue of the key that denied it. Only the first of a
 * queue tries; it sleeps exactly as long as it was told to wait, then tries
 * again. When it leaves, with permits or without, the next is woken. So at any
 * time one thread a key is awake, whatever is given back. If another key than
 * before denies, the waiter moves to that queue's end.
 *
 * What can end a wait early wakes the first: a refund, a settled hold, another
 * rule. Nothing of that is missed: a waiter is counted and in its queue before
 * its last try, and whoever gives back looks for waiters after.
 *
 * A queue is the waiters in a stripe's list that have the same id, which is
 * what a cell tells of its key without the key: half of the hash, rule, length.
 */
#include "flow/limiter_state.h"

/* On the stack of a thread inside acquire. */
struct limiter_waiter {
    struct limiter_waiter *next; /* (m) of the stripe */
    struct limiter_waiter *prev; /* (m) */
    uint64_t id;                 /* (m) what it waits for */
    bool called;                 /* (m) it is to look again */
    struct hf_event event;       /* (a) */
};

static struct limiter_stripe *stripe_of(struct hf_limiter *limiter, uint64_t id)
{
    return &limiter->stripes[id % WAIT_STRIPES];
}

uint64_t hf_limiter_wait_id(uint32_t hash, uint32_t identity)
{
    return (uint64_t)(identity & IDENTITY_MASK) << 32 | hash;
}

/* The first of a queue, or NULL. (m) */
static struct limiter_waiter *queue_first(struct limiter_stripe *stripe,
                                          uint64_t id)
{
    struct limiter_waiter *waiter = stripe->first;

    while (waiter != NULL && waiter->id != id)
        waiter = waiter->next;
    return waiter;
}

/* Under the lock, so that the waiter cannot go while it is woken. (m) */
static void call(struct limiter_waiter *waiter)
{
    if (waiter == NULL)
        return;
    waiter->called = true;
    hf_event_wake(&waiter->event, 1);
}

static void join(struct hf_limiter *limiter, struct limiter_waiter *waiter,
                 uint64_t id)
{
    struct limiter_stripe *stripe = stripe_of(limiter, id);

    hf_mutex_lock(&stripe->mutex);
    waiter->id = id;
    waiter->next = NULL;
    waiter->prev = stripe->last;
    *(waiter->prev != NULL ? &waiter->prev->next : &stripe->first) = waiter;
    stripe->last = waiter;
    hf_mutex_unlock(&stripe->mutex);
}

static void leave(struct hf_limiter *limiter, struct limiter_waiter *waiter)
{
    struct limiter_stripe *stripe = stripe_of(limiter, waiter->id);

    hf_mutex_lock(&stripe->mutex);
    bool first = queue_first(stripe, waiter->id) == waiter;
    *(waiter->prev != NULL ? &waiter->prev->next : &stripe->first) =
        waiter->next;
    *(waiter->next != NULL ? &waiter->next->prev : &stripe->last) =
        waiter->prev;
    if (first)
        call(queue_first(stripe, waiter->id));
    hf_mutex_unlock(&stripe->mutex);
}

static bool is_first(struct hf_limiter *limiter, struct limiter_waiter *waiter)
{
    struct limiter_stripe *stripe = stripe_of(limiter, waiter->id);

    hf_mutex_lock(&stripe->mutex);
    bool first = queue_first(stripe, waiter->id) == waiter;
    hf_mutex_unlock(&stripe->mutex);
    return first;
}

/* Sleeps until it is called or the time has come. True: it is the first. */
static bool sleep_until(struct hf_limiter *limiter,
                        struct limiter_waiter *waiter, uint64_t retry_ns,
                        uint64_t deadline_ns)
{
    struct limiter_stripe *stripe = stripe_of(limiter, waiter->id);
    bool first;

    for (;;) {
        hf_mutex_lock(&stripe->mutex);
        first = queue_first(stripe, waiter->id) == waiter;
        /* Only the first has anything to try; the others wait for a call. */
        uint64_t until_ns =
            first && retry_ns < deadline_ns ? retry_ns : deadline_ns;
        if (waiter->called || limiter_shut(limiter)) {
            waiter->called = false;
            hf_mutex_unlock(&stripe->mutex);
            return first;
        }
        uint32_t key = hf_event_prepare(&waiter->event);
        hf_mutex_unlock(&stripe->mutex);
        if (hf_event_wait(&waiter->event, key, limiter->clock, until_ns) ==
            HF_TIMEOUT)
            return first;
    }
}

void hf_limiter_wait_call(struct hf_limiter *limiter, uint64_t id)
{
    struct limiter_stripe *stripe = stripe_of(limiter, id);

    if (limiter->freed != NULL)
        limiter->freed(limiter->freed_context, id);
    /* seq_cst, and a change: see above. */
    if (hf_u32_add(&limiter->waiting, 0, __ATOMIC_SEQ_CST) == 0)
        return;
    hf_mutex_lock(&stripe->mutex);
    call(queue_first(stripe, id));
    hf_mutex_unlock(&stripe->mutex);
}

void hf_limiter_wait_call_all(struct hf_limiter *limiter)
{
    if (limiter->freed != NULL)
        limiter->freed(limiter->freed_context, HF_LIMITER_WATCH_ALL);
    /* As above. */
    if (hf_u32_add(&limiter->waiting, 0, __ATOMIC_SEQ_CST) == 0)
        return;
    for (uint32_t i = 0; i < WAIT_STRIPES; i++) {
        struct limiter_stripe *stripe = &limiter->stripes[i];
        hf_mutex_lock(&stripe->mutex);
        for (struct limiter_waiter *waiter = stripe->first; waiter != NULL;
             waiter = waiter->next)
            call(waiter);
        hf_mutex_unlock(&stripe->mutex);
    }
}

/* One try. HF_PENDING: denied, and a wait may help. */
static enum hf_status attempt(struct hf_limiter *limiter,
                              const struct hf_limiter_call *call_,
                              uint64_t *now_ns,
                              struct hf_limiter_answer *answer)
{
    struct hf_limiter_call now = *call_;

    *now_ns = now.now_ns = hf_clock_now_ns(limiter->clock);
    enum hf_status status = hf_limiter_try(limiter, &now, answer);
    if (status != HF_OK || answer->allowed)
        return status;
    return answer->retry_after_ns == HF_LIMITER_NEVER ? HF_FULL : HF_PENDING;
}

void hf_limiter_watch(struct hf_limiter *limiter,
                      void (*freed)(void *context, uint64_t id), void *context)
{
    if (limiter == NULL)
        return;
    limiter->freed = freed;
    limiter->freed_context = context;
}

uint64_t hf_limiter_watch_id(struct hf_limiter *limiter,
                             const struct hf_limiter_ask *ask)
{
    struct limiter_key key = {.hash = 0};

    if (limiter == NULL || ask == NULL)
        return HF_LIMITER_WATCH_ALL;
    (void)limiter_key_make(limiter, ask, &key);
    return hf_limiter_wait_id((uint32_t)key.hash, key.identity);
}

static uint64_t ask_id(struct hf_limiter *limiter,
                       const struct hf_limiter_call *call_, uint32_t ask)
{
    return hf_limiter_watch_id(limiter, &call_->asks[ask]);
}

/* The first of the call's keys that others wait for already; or NOBODY. */
static uint32_t queued_ask(struct hf_limiter *limiter,
                           const struct hf_limiter_call *call_)
{
    struct limiter_key key;

    for (uint32_t i = 0; i < call_->count; i++) {
        if (limiter_key_make(limiter, &call_->asks[i], &key) != HF_OK)
            break;
        uint64_t id = hf_limiter_wait_id((uint32_t)key.hash, key.identity);
        struct limiter_stripe *stripe = stripe_of(limiter, id);
        hf_mutex_lock(&stripe->mutex);
        bool queued = queue_first(stripe, id) != NULL;
        hf_mutex_unlock(&stripe->mutex);
        if (queued)
            return i;
    }
    return HF_LIMITER_NOBODY;
}

/* In a queue: that of `ask`. Leaves it in any case. */
static enum hf_status wait_turn(struct hf_limiter *limiter,
                                const struct hf_limiter_call *call_,
                                uint64_t deadline_ns, uint32_t ask,
                                struct hf_limiter_answer *answer)
{
    struct limiter_waiter waiter = {.called = false};
    enum hf_status status = HF_PENDING;
    uint64_t now_ns = 0;

    join(limiter, &waiter, ask_id(limiter, call_, ask));
    bool first = is_first(limiter, &waiter);
    while (status == HF_PENDING) {
        uint64_t retry_ns = HF_FOREVER;
        if (limiter_shut(limiter)) {
            status = HF_CLOSED;
            break;
        }
        if (first) {
            status = attempt(limiter, call_, &now_ns, answer);
            if (status != HF_PENDING)
                break;
            uint64_t id = ask_id(limiter, call_, answer->denied_by);
            if (id != waiter.id) {
                leave(limiter, &waiter);
                join(limiter, &waiter, id);
                first = is_first(limiter, &waiter);
                continue;
            }
            retry_ns = now_ns + answer->retry_after_ns;
        } else {
            now_ns = hf_clock_now_ns(limiter->clock);
        }
        if (now_ns >= deadline_ns)
            status = HF_TIMEOUT;
        else
            first = sleep_until(limiter, &waiter, retry_ns, deadline_ns);
    }
    leave(limiter, &waiter);
    return status;
}

enum hf_status hf_limiter_await(struct hf_limiter *limiter,
                                const struct hf_limiter_call *call_,
                                uint64_t deadline_ns,
                                struct hf_limiter_answer *answer)
{
    enum hf_status status = HF_PENDING;
    uint32_t ask = HF_LIMITER_NOBODY;
    uint64_t start_ns;

    /* Relaxed: who begins to wait while we look comes after us. */
    if (hf_u32_load(&limiter->waiting, __ATOMIC_RELAXED) != 0 &&
        deadline_ns != HF_NOW)
        ask = queued_ask(limiter, call_);
    if (ask == HF_LIMITER_NOBODY) {
        status = attempt(limiter, call_, &start_ns, answer);
        if (status != HF_PENDING)
            return status;
        if (start_ns >= deadline_ns)
            return HF_TIMEOUT;
        ask = answer->denied_by;
    } else {
        start_ns = hf_clock_now_ns(limiter->clock);
    }
    /* seq_cst: see above; the last try comes after. */
    hf_u32_add(&limiter->waiting, 1, __ATOMIC_SEQ_CST);
    status = wait_turn(limiter, call_, deadline_ns, ask, answer);
    /* Relaxed: we have left. */
    hf_u32_sub(&limiter->waiting, 1, __ATOMIC_RELAXED);
    uint64_t end_ns = hf_clock_now_ns(limiter->clock);
    hf_waits_note(&limiter->waits, end_ns > start_ns ? end_ns - start_ns : 0);
    return status;
}
