/* semaphore.c - permits in one word; who waits is counted in the same word.
 *
 * Why no wake-up is lost. A waiter counts itself in the word that holds the
 * permits, and looks for permits after that. So a giver either finds it
 * counted and wakes, or has given before and is seen.
 *
 * Unfair: each given permit wakes one of those who want one. Those who want
 * more have an event of their own and are all woken: any of them may find too
 * few while another would have had enough. Were they among the others, one of
 * them could be woken in the place of one whom a single permit would help.
 *
 * Fair: permits are handed over. The queue may be changed by whoever has set
 * LOCKED in the word; all others leave a LOCKED word alone, and give and
 * acquire leave it alone while there is a queue. A waiter's place lies on its
 * stack: what is handed to it is written before its bell is rung, and nothing
 * of it is touched after.
 */
#include "holdfast/semaphore.h"

#include <assert.h>
#include <stddef.h>

#include "sync/bell.h"

#define PERMITS     UINT64_C(0x0fffffff)
#define SHUT        (UINT64_C(1) << 28)
#define QUEUED      (UINT64_C(1) << 29)
#define LOCKED      (UINT64_C(1) << 30)
#define WAITING_ONE (UINT64_C(1) << 32)
#define MANY_ONE    (UINT64_C(1) << 48)

/* Exists while its thread is inside acquire. */
struct hf_semaphore_waiter {
    struct hf_semaphore *semaphore;
    struct hf_semaphore_waiter *next; /* (l) */
    struct hf_semaphore_waiter *prev; /* (l) */
    struct hf_event bell;             /* (a) rung when status is set */
    enum hf_status status;            /* HF_PENDING: in the queue */
    uint32_t count;
};

static uint32_t permits_of(uint64_t state)
{
    return (uint32_t)(state & PERMITS);
}

static uint32_t waiting_of(uint64_t state)
{
    return (uint32_t)(state / WAITING_ONE & 0xffff);
}

static uint32_t many_of(uint64_t state)
{
    return (uint32_t)(state / MANY_ONE);
}

/* What a waiter for `count` adds to the word. */
static uint64_t waiter_units(uint32_t count)
{
    return WAITING_ONE + (count > 1 ? MANY_ONE : 0);
}

/* Relaxed: the exchange that follows decides. */
static uint64_t look(const struct hf_semaphore *semaphore)
{
    return hf_u64_load(&semaphore->state, __ATOMIC_RELAXED);
}

/* Acquire: what was done before the permits that we take were given. Release:
 * what we did before we give. */
static bool change(struct hf_semaphore *semaphore, uint64_t *state, uint64_t to)
{
    return hf_u64_cas(&semaphore->state, state, to, __ATOMIC_ACQ_REL);
}

enum hf_status hf_semaphore_init(struct hf_semaphore *semaphore,
                                 const struct hf_semaphore_opts *opts)
{
    if (semaphore == NULL || opts == NULL ||
        opts->permits > HF_SEMAPHORE_PERMITS_MAX)
        return HF_INVALID;
    *semaphore = (struct hf_semaphore){
        .state = {opts->permits}, .clock = opts->clock, .fair = opts->fair};
    return HF_OK;
}

void hf_semaphore_destroy(struct hf_semaphore *semaphore)
{
    if (semaphore == NULL)
        return;
    assert(waiting_of(look(semaphore)) == 0);
    assert(semaphore->first == NULL);
    (void)semaphore;
}

/* ---- The queue of a fair semaphore. ---- */

static enum hf_status try_lock(void *context)
{
    struct hf_semaphore *semaphore = context;
    uint64_t state = look(semaphore);

    do {
        if (state & LOCKED)
            return HF_PENDING;
    } while (!change(semaphore, &state, state | LOCKED));
    return HF_OK;
}

/* Returns the word, which is ours until it is unlocked. */
static uint64_t lock(struct hf_semaphore *semaphore)
{
    (void)hf_event_until(&semaphore->event, try_lock, semaphore, NULL,
                         HF_FOREVER);
    /* Relaxed: nobody changes it. */
    return hf_u64_load(&semaphore->state, __ATOMIC_RELAXED) & ~LOCKED;
}

static void unlock(struct hf_semaphore *semaphore, uint64_t state)
{
    assert(!(state & LOCKED));
    assert((semaphore->first != NULL) == ((state & QUEUED) != 0));
    /* Release: the queue, and what was done before permits were given. */
    hf_u64_store(&semaphore->state, state, __ATOMIC_RELEASE);
    hf_event_wake(&semaphore->event, 1);
}

static void append(struct hf_semaphore *semaphore,
                   struct hf_semaphore_waiter *waiter)
{
    waiter->prev = semaphore->last;
    waiter->next = NULL;
    *(waiter->prev != NULL ? &waiter->prev->next : &semaphore->first) = waiter;
    semaphore->last = waiter;
}

static void detach(struct hf_semaphore *semaphore,
                   struct hf_semaphore_waiter *waiter)
{
    *(waiter->prev != NULL ? &waiter->prev->next : &semaphore->first) =
        waiter->next;
    *(waiter->next != NULL ? &waiter->next->prev : &semaphore->last) =
        waiter->prev;
}

/* Takes from the front of the queue whoever can have what it wants, or all if
 * the semaphore is shut. They are chained by `next`, to be rung after unlock.
 */
static struct hf_semaphore_waiter *serve(struct hf_semaphore *semaphore,
                                         uint64_t *state)
{
    struct hf_semaphore_waiter *served = NULL;
    struct hf_semaphore_waiter **end = &served;
    bool shut = (*state & SHUT) != 0;

    while (semaphore->first != NULL) {
        struct hf_semaphore_waiter *waiter = semaphore->first;
        if (!shut && waiter->count > permits_of(*state))
            break;
        if (!shut)
            *state -= waiter->count;
        *state -= waiter_units(waiter->count);
        waiter->status = shut ? HF_CLOSED : HF_OK;
        detach(semaphore, waiter);
        waiter->next = NULL;
        *end = waiter;
        end = &waiter->next;
    }
    if (semaphore->first == NULL)
        *state &= ~QUEUED;
    return served;
}

static void unlock_and_ring(struct hf_semaphore *semaphore, uint64_t state)
{
    struct hf_semaphore_waiter *served = serve(semaphore, &state);

    unlock(semaphore, state);
    while (served != NULL) {
        struct hf_semaphore_waiter *next = served->next;
        hf_bell_ring(&served->bell); /* it may be gone from here on */
        served = next;
    }
}

/* The deadline has passed. Whoever is first now may want less. */
static enum hf_status give_up(struct hf_semaphore_waiter *waiter)
{
    struct hf_semaphore *semaphore = waiter->semaphore;
    uint64_t state = lock(semaphore);

    if (waiter->status == HF_PENDING) {
        detach(semaphore, waiter);
        unlock_and_ring(semaphore, state - waiter_units(waiter->count));
        return HF_TIMEOUT;
    }
    /* It was served just now; the bell may still have to ring. */
    unlock(semaphore, state);
    (void)hf_bell_wait(&waiter->bell, NULL, HF_FOREVER);
    return waiter->status;
}

static enum hf_status acquire_fair(struct hf_semaphore_waiter *waiter,
                                   uint64_t deadline_ns)
{
    struct hf_semaphore *semaphore = waiter->semaphore;
    uint64_t state = lock(semaphore);
    enum hf_status status = HF_PENDING;

    if (state & SHUT) {
        status = HF_CLOSED;
    } else if (!(state & QUEUED) && waiter->count <= permits_of(state)) {
        state -= waiter->count;
        status = HF_OK;
    } else if (deadline_ns == HF_NOW) {
        status = HF_TIMEOUT;
    } else if (waiting_of(state) == HF_SEMAPHORE_WAITERS_MAX) {
        status = HF_FULL;
    } else {
        append(semaphore, waiter);
        state = (state | QUEUED) + waiter_units(waiter->count);
    }
    unlock(semaphore, state);
    if (status != HF_PENDING)
        return status;
    if (hf_bell_wait(&waiter->bell, semaphore->clock, deadline_ns) == HF_OK)
        return waiter->status;
    return give_up(waiter);
}

/* ---- Unfair. ---- */

/* One try of a waiter that is counted; it is no longer if it returns HF_OK. */
static enum hf_status take(void *context)
{
    struct hf_semaphore_waiter *waiter = context;
    uint64_t state = look(waiter->semaphore);
    uint64_t off = waiter->count + waiter_units(waiter->count);

    do {
        if (state & SHUT)
            return HF_CLOSED;
        if (permits_of(state) < waiter->count)
            return HF_PENDING;
    } while (!change(waiter->semaphore, &state, state - off));
    return HF_OK;
}

static enum hf_status acquire_unfair(struct hf_semaphore_waiter *waiter,
                                     uint64_t deadline_ns)
{
    struct hf_semaphore *semaphore = waiter->semaphore;
    uint64_t units = waiter_units(waiter->count);
    uint64_t state = look(semaphore);
    enum hf_status status;

    do {
        if (waiting_of(state) == HF_SEMAPHORE_WAITERS_MAX)
            return HF_FULL;
    } while (!change(semaphore, &state, state + units));
    status =
        hf_event_until(waiter->count > 1 ? &semaphore->many : &semaphore->event,
                       take, waiter, semaphore->clock, deadline_ns);
    /* Relaxed: how many wait guards nothing. */
    if (status != HF_OK)
        hf_u64_sub(&semaphore->state, units, __ATOMIC_RELAXED);
    return status;
}

/* ---- What both have. ---- */

/* Apart from acquire, which has no need of a stack when there are permits. */
__attribute__((noinline)) static enum hf_status
wait_for(struct hf_semaphore *semaphore, uint32_t count, uint64_t deadline_ns)
{
    struct hf_semaphore_waiter waiter = {
        .semaphore = semaphore, .status = HF_PENDING, .count = count};

    return semaphore->fair ? acquire_fair(&waiter, deadline_ns)
                           : acquire_unfair(&waiter, deadline_ns);
}

enum hf_status hf_semaphore_acquire(struct hf_semaphore *semaphore,
                                    uint32_t count, uint64_t deadline_ns)
{
    if (semaphore == NULL)
        return HF_INVALID;
    uint64_t state = look(semaphore);

    if (count == 0 || count > HF_SEMAPHORE_PERMITS_MAX)
        return HF_INVALID;
    while (!(state & (SHUT | QUEUED | LOCKED)) && count <= permits_of(state))
        if (change(semaphore, &state, state - count))
            return HF_OK;
    if (state & SHUT)
        return HF_CLOSED;
    /* Too few, or there is a queue and we are not to pass it. */
    if (deadline_ns == HF_NOW && !(state & LOCKED))
        return HF_TIMEOUT;
    return wait_for(semaphore, count, deadline_ns);
}

enum hf_status hf_semaphore_release(struct hf_semaphore *semaphore,
                                    uint32_t count)
{
    if (semaphore == NULL)
        return HF_INVALID;
    uint64_t state = look(semaphore);

    if (count == 0 || count > HF_SEMAPHORE_PERMITS_MAX)
        return HF_INVALID;
    while (!(state & (QUEUED | LOCKED))) {
        if (permits_of(state) + count > HF_SEMAPHORE_PERMITS_MAX)
            return HF_INVALID;
        if (!change(semaphore, &state, state + count))
            continue;
        if (waiting_of(state) > many_of(state))
            hf_event_wake(&semaphore->event, count);
        if (many_of(state) > 0)
            hf_event_wake_all(&semaphore->many);
        return HF_OK;
    }
    state = lock(semaphore);
    bool fits = permits_of(state) + count <= HF_SEMAPHORE_PERMITS_MAX;
    if (fits)
        unlock_and_ring(semaphore, state + count);
    else
        unlock(semaphore, state);
    return fits ? HF_OK : HF_INVALID;
}

uint32_t hf_semaphore_drain(struct hf_semaphore *semaphore)
{
    if (semaphore == NULL)
        return 0;
    uint64_t state = look(semaphore);

    while (!(state & LOCKED))
        if (change(semaphore, &state, state & ~PERMITS))
            return permits_of(state);
    state = lock(semaphore);
    unlock(semaphore, state & ~PERMITS);
    return permits_of(state);
}

uint32_t hf_semaphore_available(const struct hf_semaphore *semaphore)
{
    if (semaphore == NULL)
        return 0;
    return permits_of(look(semaphore));
}

void hf_semaphore_shutdown(struct hf_semaphore *semaphore)
{
    if (semaphore == NULL)
        return;
    if (semaphore->fair) {
        unlock_and_ring(semaphore, lock(semaphore) | SHUT);
        return;
    }
    /* Release: for those who find it shut. */
    hf_u64_or(&semaphore->state, SHUT, __ATOMIC_RELEASE);
    hf_event_wake_all(&semaphore->event);
    hf_event_wake_all(&semaphore->many);
}

void hf_semaphore_stats(const struct hf_semaphore *semaphore,
                        struct hf_semaphore_stats *out)
{
    if (semaphore == NULL || out == NULL)
        return;
    uint64_t state = look(semaphore);

    *out = (struct hf_semaphore_stats){.permits = permits_of(state),
                                       .waiting = waiting_of(state),
                                       .shutdown = (state & SHUT) != 0};
}
