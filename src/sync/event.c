/* event.c - event count on a futex.
 *
 * Why no wake-up is lost. prepare and wake both change the one word, so they
 * have an order. If wake comes second, it finds the waiter counted and adds to
 * the epoch: a waiter that has not gone to sleep finds another epoch than its
 * key, and one that has is woken by the futex. If wake comes first, prepare
 * reads what it wrote (acquire from release), so the waiter's second look sees
 * all that the waker had written.
 *
 * Why `called` is there. A thread that was woken needs some 20 microseconds to
 * run; a waker that comes meanwhile must not pay for a system call again. So
 * a waiter that is on its way is counted as called, and only those who are not
 * are woken. It looks after it has left the count, so it sees whatever was
 * made true by a waker that found it called.
 *
 * Why `called` is never too high for long. A waker counts one as called when a
 * waiter with an older key is there. Either that waiter leaves by itself, with
 * an epoch that is not its key, and takes one off; or it sleeps, and the futex
 * wakes it or a younger waiter in its place, who finds its own key still
 * current, takes one off and sleeps on: that one had looked after the change.
 * To take off too many is harmless: it costs a system call.
 */
#include "holdfast/event.h"

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/atomic.h"
#include "base/futex.h"
#include "base/thread.h"

/* Looks before the first sleep: as long as a thread on another processor needs
 * for a short operation, and far less than a sleep and a wake-up cost. */
#define SPINS 40

#define EPOCH_ONE   (UINT64_C(1) << 32)
#define CALLED_ONE  (UINT64_C(1) << 16)
#define WAITERS_MAX UINT16_MAX

static uint32_t epoch_of(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static uint32_t called_of(uint64_t word)
{
    return (uint16_t)(word >> 16);
}

static uint32_t waiters_of(uint64_t word)
{
    return (uint16_t)word;
}

/* Where the kernel finds the epoch. */
static const uint32_t *futex_of(const struct hf_event *event)
{
    const char *word = (const char *)&event->word.value;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    word += sizeof(uint32_t);
#endif
    return (const uint32_t *)(const void *)word;
}

void hf_event_init(struct hf_event *event)
{
    if (event == NULL)
        return;
    /* Relaxed: whoever shares the event orders that. */
    hf_u64_store(&event->word, 0, __ATOMIC_RELAXED);
}

uint32_t hf_event_prepare(struct hf_event *event)
{
    if (event == NULL)
        return 0;
    /* See above: the order of this and the waker's change is what counts. */
    uint64_t word = hf_u64_add(&event->word, 1, __ATOMIC_ACQ_REL);

    assert(waiters_of(word) < WAITERS_MAX);
    return epoch_of(word);
}

/* A waiter goes; true if somebody has woken since it prepared. */
static bool leave(struct hf_event *event, uint32_t key)
{
    uint64_t word = hf_u64_load(&event->word, __ATOMIC_RELAXED);
    uint64_t left;

    do {
        assert(waiters_of(word) > 0);
        left = word - 1;
        if (called_of(left) > 0 &&
            (epoch_of(word) != key || called_of(left) > waiters_of(left)))
            left -= CALLED_ONE;
        /* Acquire: what was made true by wakers who found us called. */
    } while (!hf_u64_cas(&event->word, &word, left, __ATOMIC_ACQ_REL));
    return epoch_of(word) != key;
}

void hf_event_cancel(struct hf_event *event, uint32_t key)
{
    if (event != NULL)
        (void)leave(event, key);
}

/* Back from a sleep, and nobody has woken since it prepared: a wake-up that
 * was meant for an older waiter, or none at all. */
static void decline(struct hf_event *event, uint32_t key)
{
    uint64_t word = hf_u64_load(&event->word, __ATOMIC_RELAXED);

    /* Relaxed: counts. */
    while (epoch_of(word) == key && called_of(word) > 0) {
        if (hf_u64_cas(&event->word, &word, word - CALLED_ONE,
                       __ATOMIC_RELAXED))
            return;
    }
}

enum hf_status hf_event_wait(struct hf_event *event, uint32_t key,
                             const struct hf_clock *clock, uint64_t deadline_ns)
{
    if (event == NULL)
        return HF_INVALID;
    if (clock == NULL)
        clock = hf_clock_system();
    /* Relaxed: leave() acquires. */
    while (epoch_of(hf_u64_load(&event->word, __ATOMIC_RELAXED)) == key) {
        if (deadline_ns != HF_FOREVER && hf_clock_now_ns(clock) >= deadline_ns)
            break;
        hf_futex_wait(futex_of(event), key, clock, deadline_ns);
        decline(event, key);
    }
    return leave(event, key) ? HF_OK : HF_TIMEOUT;
}

void hf_event_wake(struct hf_event *event, uint32_t count)
{
    if (event == NULL)
        return;
    /* A change that changes nothing: see above. Release: what the caller made
     * true. Acquire: that a waiter is counted. */
    uint64_t word = hf_u64_add(&event->word, 0, __ATOMIC_ACQ_REL);

    while (waiters_of(word) > called_of(word) && count > 0) {
        uint32_t asleep = waiters_of(word) - called_of(word);
        uint32_t woken = asleep < count ? asleep : count;
        if (hf_u64_cas(&event->word, &word,
                       word + EPOCH_ONE + woken * CALLED_ONE,
                       __ATOMIC_ACQ_REL)) {
            /* All means all who sleep: a younger waiter must not be woken in
             * the place of one who has not looked since the change. */
            hf_futex_wake(futex_of(event), woken < asleep ? woken : UINT32_MAX);
            return;
        }
    }
}

void hf_event_wake_all(struct hf_event *event)
{
    hf_event_wake(event, WAITERS_MAX);
}

/* Looks for a while without announcing it: whoever wakes then pays nothing. */
static enum hf_status spin(enum hf_status (*attempt)(void *context),
                           void *context)
{
    enum hf_status status = attempt(context);

    for (int i = hf_thread_spins(SPINS); i > 0 && status == HF_PENDING; i--) {
        hf_thread_pause();
        status = attempt(context);
    }
    return status;
}

enum hf_status hf_event_until(struct hf_event *event,
                              enum hf_status (*attempt)(void *context),
                              void *context, const struct hf_clock *clock,
                              uint64_t deadline_ns)
{
    enum hf_status status;

    if (event == NULL || attempt == NULL)
        return HF_INVALID;
    if (deadline_ns == HF_NOW) {
        status = attempt(context);
        return status == HF_PENDING ? HF_TIMEOUT : status;
    }
    status = spin(attempt, context);
    while (status == HF_PENDING) {
        uint32_t key = hf_event_prepare(event);
        status = attempt(context);
        if (status != HF_PENDING) {
            hf_event_cancel(event, key);
            break;
        }
        enum hf_status waited = hf_event_wait(event, key, clock, deadline_ns);
        status = attempt(context);
        if (status == HF_PENDING && waited == HF_TIMEOUT)
            return HF_TIMEOUT;
    }
    return status;
}
