/* barrier.c - cyclic barrier: one word, and an event for those who wait.
 *
 * A generation ends by exactly one change of the word: it goes on (the number
 * of the generation changes), or it is broken (the number stays until all its
 * waiters have counted themselves out). So a waiter that finds another number
 * knows that its generation went on, however late it looks.
 *
 * Every arrival is a release and the end of the generation an acquire-release
 * of the same word; a waiter's look is an acquire. So all that was done before
 * comes before all that is done after.
 */
#include "holdfast/barrier.h"

#include <assert.h>
#include <stddef.h>

#include "base/atomic.h"

#define ARRIVED        UINT64_C(0xffff)
#define SHUT           (UINT64_C(1) << 16)
#define BROKEN         (UINT64_C(1) << 17)
#define RESET          (UINT64_C(1) << 18) /* broken, begins anew when empty */
#define GENERATION_ONE (UINT64_C(1) << 20)

static uint32_t arrived_of(uint64_t state)
{
    return (uint32_t)(state & ARRIVED);
}

static uint64_t generation_of(uint64_t state)
{
    return state / GENERATION_ONE;
}

/* The first state of the next generation. */
static uint64_t next_of(uint64_t state)
{
    return (generation_of(state) + 1) * GENERATION_ONE | (state & SHUT);
}

/* Acquire: what others did before they changed the word. */
static uint64_t look(const struct hf_barrier *barrier)
{
    return hf_u64_load(&barrier->state, __ATOMIC_ACQUIRE);
}

/* Acquire and release: see above. */
static bool change(struct hf_barrier *barrier, uint64_t *state, uint64_t to)
{
    return hf_u64_cas(&barrier->state, state, to, __ATOMIC_ACQ_REL);
}

enum hf_status hf_barrier_init(struct hf_barrier *barrier,
                               const struct hf_barrier_opts *opts)
{
    if (barrier == NULL || opts == NULL || opts->parties == 0 ||
        opts->parties > HF_BARRIER_PARTIES_MAX)
        return HF_INVALID;
    *barrier = (struct hf_barrier){.parties = opts->parties,
                                   .action = opts->action,
                                   .context = opts->context,
                                   .clock = opts->clock};
    return HF_OK;
}

void hf_barrier_destroy(struct hf_barrier *barrier)
{
    if (barrier == NULL)
        return;
    assert(arrived_of(look(barrier)) == 0);
    (void)barrier;
}

struct visit {
    struct hf_barrier *barrier;
    uint64_t state; /* as we found it when we were counted */
};

/* One try to be counted. The last one of a generation without an action ends
 * it with the same change. */
static enum hf_status join(void *context)
{
    struct visit *visit = context;
    struct hf_barrier *barrier = visit->barrier;
    uint64_t state = look(barrier);
    uint64_t to;

    do {
        if (state & SHUT)
            return HF_CLOSED;
        if (state & RESET)
            return HF_PENDING; /* the broken ones are leaving */
        if (state & BROKEN)
            return HF_CANCELLED;
        if (arrived_of(state) == barrier->parties)
            return HF_PENDING; /* the action is running */
        bool last = arrived_of(state) + 1 == barrier->parties;
        to = last && barrier->action == NULL ? next_of(state) : state + 1;
    } while (!change(barrier, &state, to));
    visit->state = state;
    return HF_OK;
}

/* One look whether our generation has ended. */
static enum hf_status ended(void *context)
{
    const struct visit *visit = context;
    uint64_t state = look(visit->barrier);

    if (generation_of(state) != generation_of(visit->state))
        return HF_OK;
    if (state & SHUT)
        return HF_CLOSED;
    return state & BROKEN ? HF_CANCELLED : HF_PENDING;
}

/* Counted, and not going on: the last of a generation that was reset begins
 * the next one. */
static void count_out(struct hf_barrier *barrier)
{
    uint64_t state = look(barrier);
    uint64_t to;

    do {
        assert(state & (BROKEN | SHUT));
        assert(arrived_of(state) > 0);
        bool anew = (state & RESET) && arrived_of(state) == 1;
        to = anew ? next_of(state) : state - 1;
    } while (!change(barrier, &state, to));
    if (generation_of(to) != generation_of(state))
        hf_event_wake_all(&barrier->event);
}

/* Ends our generation, if it has not ended: all go on, or it is broken by our
 * time-out. Tells how it has ended. */
static enum hf_status end(struct visit *visit, bool going_on)
{
    struct hf_barrier *barrier = visit->barrier;
    uint64_t state = look(barrier);

    do {
        if (generation_of(state) != generation_of(visit->state))
            return HF_OK;
        if (state & SHUT)
            return HF_CLOSED;
        if (state & BROKEN)
            return HF_CANCELLED;
    } while (
        !change(barrier, &state, going_on ? next_of(state) : state | BROKEN));
    hf_event_wake_all(&barrier->event);
    return going_on ? HF_OK : HF_TIMEOUT;
}

/* Waits for the rest of our generation. */
static enum hf_status stay(struct visit *visit, uint64_t deadline_ns)
{
    struct hf_barrier *barrier = visit->barrier;
    enum hf_status status;

    if (arrived_of(visit->state) + 1 < barrier->parties) {
        status = hf_event_until(&barrier->event, ended, visit, barrier->clock,
                                deadline_ns);
        if (status == HF_TIMEOUT)
            status = end(visit, false);
    } else {
        barrier->action(barrier->context);
        status = end(visit, true);
    }
    if (status != HF_OK)
        count_out(barrier);
    return status;
}

enum hf_status hf_barrier_wait(struct hf_barrier *barrier, uint64_t deadline_ns,
                               uint32_t *index)
{
    if (barrier == NULL)
        return HF_INVALID;
    struct visit visit = {.barrier = barrier};
    enum hf_status status = join(&visit);

    if (status == HF_PENDING)
        status = hf_event_until(&barrier->event, join, &visit, barrier->clock,
                                deadline_ns);
    if (status != HF_OK)
        return status;
    if (barrier->action == NULL &&
        arrived_of(visit.state) + 1 == barrier->parties)
        hf_event_wake_all(&barrier->event);
    else
        status = stay(&visit, deadline_ns);
    if (status == HF_OK && index != NULL)
        *index = arrived_of(visit.state);
    return status;
}

void hf_barrier_break(struct hf_barrier *barrier)
{
    if (barrier == NULL)
        return;
    uint64_t state = look(barrier);
    uint64_t to;

    do {
        /* A reset that is under way is taken back. */
        to = (state | BROKEN) & ~RESET;
        if ((state & SHUT) || to == state)
            return;
    } while (!change(barrier, &state, to));
    hf_event_wake_all(&barrier->event);
}

enum hf_status hf_barrier_reset(struct hf_barrier *barrier)
{
    if (barrier == NULL)
        return HF_INVALID;
    uint64_t state = look(barrier);
    uint64_t to;

    do {
        if (state & SHUT)
            return HF_CLOSED;
        to = arrived_of(state) == 0 ? next_of(state) : state | BROKEN | RESET;
    } while (!change(barrier, &state, to));
    hf_event_wake_all(&barrier->event);
    return HF_OK;
}

void hf_barrier_shutdown(struct hf_barrier *barrier)
{
    if (barrier == NULL)
        return;
    /* Release: for those who find it shut. */
    hf_u64_or(&barrier->state, SHUT, __ATOMIC_RELEASE);
    hf_event_wake_all(&barrier->event);
}

void hf_barrier_stats(const struct hf_barrier *barrier,
                      struct hf_barrier_stats *out)
{
    if (barrier == NULL || out == NULL)
        return;
    uint64_t state = look(barrier);

    *out = (struct hf_barrier_stats){.generation = generation_of(state),
                                     .parties = barrier->parties,
                                     .arrived = arrived_of(state),
                                     .broken = (state & BROKEN) != 0,
                                     .shutdown = (state & SHUT) != 0};
}
