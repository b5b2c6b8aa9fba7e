/* phaser.c - one word of phase, parties and who is missing.
 *
 * While on_advance runs, nobody is missing and the word is its: arrivals are
 * refused, registrations wait, only shut changes it.
 *
 * Every arrival is a release of the word and the advance an acquire-release;
 * a waiter's look is an acquire: so all that was done in a phase comes before
 * whatever is done by those who waited for its end.
 */
#include "holdfast/phaser.h"

#include <assert.h>
#include <stddef.h>

#include "base/atomic.h"

#define PARTY_ONE (UINT64_C(1) << 16)
#define PHASE_ONE (UINT64_C(1) << 32)

/* The lower half, when there are no parties; 0 while on_advance runs. */
#define NONE_YET 1u
#define ENDED    2u

static uint32_t phase_of(uint64_t state)
{
    return (uint32_t)(state / PHASE_ONE);
}

static uint32_t parties_of(uint64_t state)
{
    return (uint32_t)(state / PARTY_ONE & 0xffff);
}

static uint32_t unarrived_of(uint64_t state)
{
    return (uint32_t)(state & 0xffff);
}

static bool is_empty(uint64_t state)
{
    return (uint32_t)state == NONE_YET;
}

static bool is_ended(uint64_t state)
{
    return (uint32_t)state == ENDED;
}

static uint64_t state_of(uint32_t phase, uint32_t parties, uint32_t unarrived)
{
    return phase * PHASE_ONE | parties * PARTY_ONE | unarrived;
}

/* A phase in which all parties are missing. */
static uint64_t fresh(uint32_t phase, uint32_t parties)
{
    return state_of(phase, parties, parties == 0 ? NONE_YET : parties);
}

/* Acquire: what others did before they changed the word. */
static uint64_t look(const struct hf_phaser *phaser)
{
    return hf_u64_load(&phaser->state, __ATOMIC_ACQUIRE);
}

/* Acquire and release: see above. */
static bool change(struct hf_phaser *phaser, uint64_t *state, uint64_t to)
{
    return hf_u64_cas(&phaser->state, state, to, __ATOMIC_ACQ_REL);
}

enum hf_status hf_phaser_init(struct hf_phaser *phaser,
                              const struct hf_phaser_opts *opts)
{
    if (phaser == NULL || opts == NULL || opts->parties > HF_PHASER_PARTIES_MAX)
        return HF_INVALID;
    *phaser = (struct hf_phaser){.state = {fresh(0, opts->parties)},
                                 .on_advance = opts->on_advance,
                                 .context = opts->context,
                                 .clock = opts->clock};
    return HF_OK;
}

void hf_phaser_destroy(struct hf_phaser *phaser)
{
    if (phaser == NULL)
        return;
    /* All are woken at a time, so the event's count of sleepers is exact.
     * Relaxed: nobody else is inside. */
    assert((uint32_t)hf_u64_load(&phaser->event.word, __ATOMIC_RELAXED) == 0);
    (void)phaser;
}

struct joining {
    struct hf_phaser *phaser;
    uint32_t count;
    uint32_t phase;
};

static enum hf_status join(void *context)
{
    struct joining *joining = context;
    uint64_t state = look(joining->phaser);
    uint64_t to;

    do {
        if (is_ended(state))
            return HF_CLOSED;
        if (unarrived_of(state) == 0)
            return HF_PENDING;
        if (parties_of(state) + joining->count > HF_PHASER_PARTIES_MAX)
            return HF_FULL;
        to = is_empty(state) ? fresh(phase_of(state), joining->count)
                             : state + joining->count * (PARTY_ONE + 1);
    } while (!change(joining->phaser, &state, to));
    joining->phase = phase_of(state);
    return HF_OK;
}

enum hf_status hf_phaser_register(struct hf_phaser *phaser, uint32_t count,
                                  uint64_t deadline_ns, uint32_t *phase)
{
    if (phaser == NULL)
        return HF_INVALID;
    struct joining joining = {.phaser = phaser, .count = count};
    enum hf_status status;

    if (count == 0 || count > HF_PHASER_PARTIES_MAX)
        return HF_INVALID;
    status = join(&joining);
    if (status == HF_PENDING)
        status = hf_event_until(&phaser->event, join, &joining, phaser->clock,
                                deadline_ns);
    if (status == HF_OK && phase != NULL)
        *phase = joining.phase;
    return status;
}

/* The state after the last arrival of a phase. */
static uint64_t advanced(uint64_t state, uint32_t parties, bool end)
{
    uint32_t phase = phase_of(state) + 1; /* goes from its highest to 0 */

    return end ? state_of(phase, 0, ENDED) : fresh(phase, parties);
}

/* All have arrived and nobody but us and shut changes the word. */
static void advance(struct hf_phaser *phaser, uint64_t state)
{
    uint32_t parties = parties_of(state);

    assert(unarrived_of(state) == 0);
    bool end = phaser->on_advance(phaser->context, phase_of(state), parties);
    bool done = change(phaser, &state, advanced(state, parties, end));
    assert(done || is_ended(state));
    (void)done;
}

/* One party arrives; `leaving` is 1 if it is a party no more. */
static enum hf_status arrive(struct hf_phaser *phaser, uint32_t leaving,
                             uint32_t *phase)
{
    uint64_t state = look(phaser);
    uint64_t to;
    bool last;

    do {
        if (is_ended(state))
            return HF_CLOSED;
        if (is_empty(state) || unarrived_of(state) == 0)
            return HF_INVALID;
        last = unarrived_of(state) == 1;
        to = state - 1 - leaving * PARTY_ONE;
        if (last && phaser->on_advance == NULL)
            to = advanced(to, parties_of(to), parties_of(to) == 0);
    } while (!change(phaser, &state, to));
    if (last && phaser->on_advance != NULL)
        advance(phaser, to);
    if (last)
        hf_event_wake_all(&phaser->event);
    *phase = phase_of(state);
    return HF_OK;
}

enum hf_status hf_phaser_arrive(struct hf_phaser *phaser, uint32_t *phase)
{
    if (phaser == NULL)
        return HF_INVALID;
    uint32_t at;

    return arrive(phaser, 0, phase != NULL ? phase : &at);
}

enum hf_status hf_phaser_arrive_and_deregister(struct hf_phaser *phaser,
                                               uint32_t *phase)
{
    if (phaser == NULL)
        return HF_INVALID;
    uint32_t at;

    return arrive(phaser, 1, phase != NULL ? phase : &at);
}

struct waiting {
    const struct hf_phaser *phaser;
    uint32_t phase;
};

static enum hf_status over(void *context)
{
    const struct waiting *waiting = context;
    uint64_t state = look(waiting->phaser);

    if (phase_of(state) != waiting->phase)
        return HF_OK;
    return is_ended(state) ? HF_CLOSED : HF_PENDING;
}

enum hf_status hf_phaser_await_phase(struct hf_phaser *phaser, uint32_t phase,
                                     uint64_t deadline_ns)
{
    if (phaser == NULL)
        return HF_INVALID;
    struct waiting waiting = {.phaser = phaser, .phase = phase};

    return hf_event_until(&phaser->event, over, &waiting, phaser->clock,
                          deadline_ns);
}

enum hf_status hf_phaser_arrive_and_wait(struct hf_phaser *phaser,
                                         uint64_t deadline_ns, uint32_t *phase)
{
    if (phaser == NULL)
        return HF_INVALID;
    uint32_t at;
    enum hf_status status = arrive(phaser, 0, &at);

    if (status == HF_OK)
        status = hf_phaser_await_phase(phaser, at, deadline_ns);
    if (status == HF_OK && phase != NULL)
        *phase = at + 1;
    return status;
}

uint32_t hf_phaser_phase(const struct hf_phaser *phaser)
{
    if (phaser == NULL)
        return 0;
    return phase_of(look(phaser));
}

void hf_phaser_shutdown(struct hf_phaser *phaser)
{
    if (phaser == NULL)
        return;
    uint64_t state = look(phaser);

    do {
        if (is_ended(state))
            return;
    } while (!change(phaser, &state, state_of(phase_of(state), 0, ENDED)));
    hf_event_wake_all(&phaser->event);
}

void hf_phaser_stats(const struct hf_phaser *phaser,
                     struct hf_phaser_stats *out)
{
    if (phaser == NULL || out == NULL)
        return;
    uint64_t state = look(phaser);
    uint32_t parties = parties_of(state);

    *out = (struct hf_phaser_stats){
        .phase = phase_of(state),
        .parties = parties,
        .arrived = parties == 0 ? 0 : parties - unarrived_of(state),
        .ended = is_ended(state)};
}
