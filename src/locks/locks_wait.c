/* locks_wait.c - commands, their answers, and those who wait for one.
 *
 * A bell is rung once: for an answer, or to have its waiter look at the time
 * (`poked`), and not again before the waiter has made it ready under the mutex.
 * An answer to a waiter whose bell has rung is found by it there.
 */
#include <assert.h>

#include "locks/locks_state.h"

void hf_locks_lock(struct hf_locks *locks)
{
    hf_mutex_lock(&locks->mutex);
    /* Under the mutex, so that time does not go back for the engine. */
    locks->now_ns = hf_clock_now_ns(locks->clock);
}

static void ring_later(struct hf_locks *locks, struct locks_waiter *waiter)
{
    if (waiter->rung)
        return;
    waiter->rung = true;
    waiter->next_rung = locks->rung;
    locks->rung = waiter;
}

/* When the engine has to be looked at again. */
static uint64_t due_ns(const struct hf_locks *locks)
{
    uint64_t due_us = hold_due_us(locks->engine);

    return due_us < UINT64_MAX / NS_PER_US ? due_us * NS_PER_US : HF_FOREVER;
}

/* One who waits must sleep no longer than until something is due. */
static void keep_time(struct hf_locks *locks)
{
    uint64_t due = locks->first == NULL ? HF_FOREVER : due_ns(locks);

    if (due == HF_FOREVER)
        return;
    if (locks->keeper == NULL)
        locks->keeper = locks->first;
    if (due < locks->keeper->until_ns && !locks->keeper->rung) {
        locks->keeper->poked = true;
        ring_later(locks, locks->keeper);
    }
}

void hf_locks_unlock(struct hf_locks *locks)
{
    keep_time(locks);
    struct locks_waiter *waiter = locks->rung;
    locks->rung = NULL;
    hf_mutex_unlock(&locks->mutex);
    while (waiter != NULL) {
        struct locks_waiter *next = waiter->next_rung;
        hf_bell_ring(&waiter->bell); /* it may be gone from here on */
        waiter = next;
    }
}

struct hold_command *hf_locks_command(struct hf_locks *locks,
                                      enum hold_kind kind)
{
    struct hold_command *c = &locks->command;

    memset(c, 0, offsetof(struct hold_command, items));
    c->kind = kind;
    c->now_us = locks->now_ns / NS_PER_US;
    return c;
}

/* ---- Answers. ---- */

static struct locks_waiter **bucket(struct hf_locks *locks, uint64_t ticket)
{
    return &locks->buckets[ticket % LOCKS_BUCKETS];
}

static void link_waiter(struct hf_locks *locks, struct locks_waiter *waiter)
{
    struct locks_waiter **head = bucket(locks, waiter->ticket);

    waiter->next_ticket = *head;
    *head = waiter;
    waiter->prev = locks->last;
    *(locks->last != NULL ? &locks->last->next : &locks->first) = waiter;
    locks->last = waiter;
}

static void unlink_waiter(struct hf_locks *locks, struct locks_waiter *waiter)
{
    struct locks_waiter **at = bucket(locks, waiter->ticket);

    while (*at != waiter)
        at = &(*at)->next_ticket;
    *at = waiter->next_ticket;
    *(waiter->prev != NULL ? &waiter->prev->next : &locks->first) =
        waiter->next;
    *(waiter->next != NULL ? &waiter->next->prev : &locks->last) = waiter->prev;
    if (locks->keeper == waiter)
        locks->keeper = NULL;
}

void hf_locks_end_wait(struct hf_locks *locks, struct locks_waiter *waiter,
                       enum hf_status status)
{
    uint64_t waited_ns = locks->now_ns - waiter->since_ns;

    assert(hf_mutex_held(&locks->mutex));
    unlink_waiter(locks, waiter);
    waiter->status = status;
    waiter->answer->waited_ns += waited_ns;
    hf_waits_note(&locks->waits, waited_ns);
    hf_locks_count(locks, waiter->wanted, status, true, waited_ns);
    ring_later(locks, waiter);
}

static void hear_answer(struct hf_locks *locks,
                        const struct hold_answer *answer)
{
    struct locks_waiter *waiter = *bucket(locks, answer->ticket);

    while (waiter != NULL && waiter->ticket != answer->ticket)
        waiter = waiter->next_ticket;
    assert(waiter != NULL); /* it is linked while the engine knows it */
    hf_locks_end_wait(
        locks, waiter,
        hf_locks_read_answer(answer->code, answer->body, waiter->answer));
}

static void tell_event(struct hf_locks *locks, const struct hold_event *event)
{
    char name[HF_LOCKS_NAME_MAX + 1];
    struct hf_locks_note note = {
        .name = name,
        .token = event->token,
        .mode = (enum hf_locks_mode)event->mode,
    };

    switch (event->kind) {
    case EVENT_LOCK_WOUNDED:
        note.event = HF_LOCKS_WOUNDED;
        break;
    case EVENT_LOCK_EXPIRED:
        note.event = HF_LOCKS_EXPIRED;
        break;
    case EVENT_LOCK_LOST:
        note.event = HF_LOCKS_LOST;
        break;
    default:
        return;
    }
    memcpy(name, event->name.data, event->name.len);
    name[event->name.len] = '\0';
    locks->observe(locks->context, &note);
}

const struct hold_out *hf_locks_run(struct hf_locks *locks)
{
    const struct hold_out *out;

    assert(hf_mutex_held(&locks->mutex));
    if (hold_prepare(locks->engine, &locks->command) != HF_OK)
        return NULL;
    do {
        out = hold_run(locks->engine, &locks->command);
        for (size_t i = 0; i < out->answer_count; i++)
            hear_answer(locks, &out->answers[i]);
        for (size_t i = 0; locks->observe != NULL && i < out->event_count; i++)
            tell_event(locks, &out->events[i]);
    } while (out->code == HOLD_AGAIN);
    return out;
}

void hf_locks_pass_time(struct hf_locks *locks)
{
    if (due_ns(locks) > locks->now_ns)
        return;
    hf_locks_command(locks, HOLD_TICK)->amount = 1;
    (void)hf_locks_run(locks); /* which needs no memory */
}

/* ---- Waiting. ---- */

/* It is about to sleep. */
static void arm(struct hf_locks *locks, struct locks_waiter *waiter)
{
    uint64_t due = due_ns(locks);

    hf_event_init(&waiter->bell);
    waiter->rung = false;
    waiter->poked = false;
    waiter->until_ns = waiter->deadline_ns;
    if (locks->keeper == NULL && due != HF_FOREVER)
        locks->keeper = waiter;
    if (locks->keeper == waiter && due < waiter->until_ns)
        waiter->until_ns = due;
}

/* Its bell has rung to wake it, or its time has come. True: it is answered. */
static bool look(struct hf_locks *locks, struct locks_waiter *waiter)
{
    waiter->rung = true; /* is awake */
    if (waiter->status == HF_PENDING)
        hf_locks_pass_time(locks);
    if (waiter->status == HF_PENDING && locks->now_ns >= waiter->deadline_ns) {
        hf_locks_command(locks, HOLD_TIMEOUT)->token = waiter->ticket;
        (void)hf_locks_run(locks); /* which needs no memory */
        assert(waiter->status != HF_PENDING);
    }
    if (waiter->status == HF_PENDING)
        arm(locks, waiter);
    return waiter->status != HF_PENDING;
}

static void sleep_on(struct hf_locks *locks, struct locks_waiter *waiter)
{
    uint64_t until_ns = waiter->until_ns;

    hf_locks_unlock(locks);
    for (;;) {
        enum hf_status slept =
            hf_bell_wait(&waiter->bell, locks->clock, until_ns);
        if (slept == HF_OK && !waiter->poked)
            return;
        hf_locks_lock(locks);
        if (slept != HF_OK && waiter->rung) { /* just now: the bell will ring */
            until_ns = HF_FOREVER;
            hf_locks_unlock(locks);
            continue;
        }
        bool answered = look(locks, waiter);
        until_ns = waiter->until_ns;
        hf_locks_unlock(locks);
        if (answered)
            return;
    }
}

enum hf_status hf_locks_wait(struct hf_locks *locks,
                             const struct locks_wanted *wanted, uint64_t ticket,
                             uint64_t deadline_ns,
                             struct hf_locks_answer *answer)
{
    struct locks_waiter waiter = {
        .wanted = wanted,
        .ticket = ticket,
        .since_ns = locks->now_ns,
        .deadline_ns = deadline_ns,
        .status = HF_PENDING,
        .answer = answer,
    };

    link_waiter(locks, &waiter);
    arm(locks, &waiter);
    sleep_on(locks, &waiter);
    return waiter.status;
}
