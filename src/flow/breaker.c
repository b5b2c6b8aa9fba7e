/* breaker.c - the circuit breaker.
 *
 * One word says in which state the breaker is and how often that changed:
 *
 *   | 61 bits changes | 3 bits state |
 *
 * It is written under the mutex only, so that each change has one author. A
 * call carries the word that it saw when it began; what it reports counts only
 * while the word is the same. `until_ns` is written before the word says OPEN,
 * so who reads OPEN may trust it without the lock: it can be newer than the
 * word, never older.
 */
#include "holdfast/breaker.h"

#include <assert.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "flow/breaker_window.h"
#include "holdfast/backoff.h"
#include "sync/listed.h"
#include "sync/mutex.h"

#define STATE_BITS      3
#define STATE_MASK      ((UINT64_C(1) << STATE_BITS) - 1)
#define PERCENT_DEFAULT 50u

struct hf_breaker {
    struct hf_listed listed;
    struct hf_breaker_opts opts;   /* (i) with every default filled in */
    struct hf_atomic_u64 word;     /* (a) see above */
    struct hf_atomic_u64 until_ns; /* (a) OPEN: when a probe may go */
    struct hf_atomic_u64 refused;  /* (a) a count only */
    struct hf_mutex mutex;         /* guards what follows */
    struct window window;          /* (m) */
    struct hf_backoff growth;      /* (m) of the time that it is open */
    uint64_t latest_ns;            /* (m) the newest now_ns under the lock */
    uint64_t newest_ns;            /* (m) when a probe last began */
    uint32_t failures;             /* (m) in a row */
    uint32_t probes;               /* (m) let through in this half-open state */
    uint32_t probes_back;          /* (m) of these: that worked */
    uint64_t worked;               /* (m) this and the next: for stats */
    uint64_t failed;               /* (m) */
    uint64_t ignored;              /* (m) */
    uint64_t slow;                 /* (m) */
    uint64_t late;                 /* (m) */
    uint64_t trips;                /* (m) */
    uint64_t lost;                 /* (m) */
};

static enum hf_breaker_state state_of(uint64_t word)
{
    return (enum hf_breaker_state)(word & STATE_MASK);
}

/* Acquire: until_ns, if the state is OPEN. */
static uint64_t look(const struct hf_breaker *breaker)
{
    return hf_u64_load(&breaker->word, __ATOMIC_ACQUIRE);
}

/* ---- Opening and closing the object. ---- */

static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_breaker_stats stats;

    /* `listed` is the first member. */
    hf_breaker_stats((const struct hf_breaker *)listed, &stats);
    row->depth = stats.window_calls;
    row->capacity =
        stats.state == HF_BREAKER_OPEN || stats.state == HF_BREAKER_FORCED_OPEN
            ? 0
        : stats.state == HF_BREAKER_HALF_OPEN
            ? ((const struct hf_breaker *)listed)->opts.probes
            : HF_INSPECT_NONE;
    row->rejected = stats.refused;
}

static bool fill_defaults(struct hf_breaker_opts *o)
{
    if (o->failure_percent > 100 || o->slow_percent > 100 ||
        (o->slow_percent != 0 && o->slow_ns == 0) ||
        o->window_calls > HF_BREAKER_WINDOW_CALLS_MAX ||
        o->probes > HF_BREAKER_PROBES_MAX ||
        (o->window_ns != 0 && o->window_ns < WINDOW_PARTS))
        return false;
    if (o->failure_percent == 0 && o->failures_max == 0)
        o->failure_percent = PERCENT_DEFAULT;
    if (o->window_calls == 0)
        o->window_calls = 100;
    if (o->calls_min == 0)
        o->calls_min =
            o->window_ns != 0 || o->window_calls > 10 ? 10 : o->window_calls;
    if (o->window_ns == 0 && o->calls_min > o->window_calls)
        return false;
    if (o->probes == 0)
        o->probes = 1;
    if (o->probe_ns == 0)
        o->probe_ns = 60 * HF_NS_PER_S;
    if (o->open_ns == 0)
        o->open_ns = 30 * HF_NS_PER_S;
    if (o->open_max_ns == 0)
        o->open_max_ns = o->open_ns;
    return o->open_max_ns >= o->open_ns;
}

enum hf_status hf_breaker_new(struct hf_breaker **out,
                              const struct hf_breaker_opts *opts)
{
    struct hf_breaker_opts o = {0};

    if (out == NULL)
        return HF_INVALID;
    if (opts != NULL)
        o = *opts;
    if (!fill_defaults(&o))
        return HF_INVALID;
    size_t circle = o.window_ns == 0 ? o.window_calls : 0;
    struct hf_breaker *breaker = hf_alloc_zeroed(sizeof *breaker + circle);
    if (breaker == NULL)
        return HF_NOMEM;
    struct hf_backoff_opts growth = {.base_ns = o.open_ns,
                                     .cap_ns = o.open_max_ns,
                                     .seed = o.seed,
                                     .jitter = o.spread ? HF_JITTER_EQUAL
                                                        : HF_JITTER_NONE};
    (void)hf_backoff_init(&breaker->growth, &growth);
    breaker->opts = o;
    breaker->window.part_ns = o.window_ns / WINDOW_PARTS;
    breaker->window.size = o.window_calls;
    breaker->window.circle = (uint8_t *)(breaker + 1);
    hf_listed_add(&breaker->listed, "breaker", o.name, fill);
    breaker->opts.name = breaker->listed.name;
    *out = breaker;
    return HF_OK;
}

void hf_breaker_free(struct hf_breaker *breaker)
{
    if (breaker == NULL)
        return;
    hf_listed_remove(&breaker->listed);
    hf_free(breaker);
}

/* ---- Changes of state. ---- */

static uint64_t later(uint64_t now_ns, uint64_t ns)
{
    return ns > UINT64_MAX - 1 - now_ns ? UINT64_MAX - 1 : now_ns + ns;
}

/* The only place where the state changes. `*change` is for the listener. */
static void become(struct hf_breaker *breaker, enum hf_breaker_state to,
                   uint64_t now_ns, struct hf_breaker_change *change)
{
    uint64_t word = hf_u64_load(&breaker->word, __ATOMIC_RELAXED); /* ours */
    uint64_t sequence = (word >> STATE_BITS) + 1;
    uint64_t open_ns;

    assert(hf_mutex_held(&breaker->mutex));
    *change = (struct hf_breaker_change){.from = state_of(word),
                                         .to = to,
                                         .sequence = sequence,
                                         .now_ns = now_ns};
    breaker->failures = 0;
    breaker->probes = 0;
    breaker->probes_back = 0;
    if (to == HF_BREAKER_OPEN) {
        breaker->trips++;
        (void)hf_backoff_next(&breaker->growth, 0, UINT64_MAX, &open_ns);
        /* Relaxed: published by the word, below. */
        hf_u64_store(&breaker->until_ns, later(breaker->latest_ns, open_ns),
                     __ATOMIC_RELAXED);
    } else if (to != HF_BREAKER_HALF_OPEN) {
        hf_backoff_reset(&breaker->growth);
        hf_breaker_window_clear(&breaker->window);
    }
    /* Release: until_ns. */
    hf_u64_store(&breaker->word, sequence << STATE_BITS | (uint64_t)to,
                 __ATOMIC_RELEASE);
}

/* Time that seems to go back stands still: an old now_ns shortens nothing. */
static void lock_at(struct hf_breaker *breaker, uint64_t now_ns)
{
    hf_mutex_lock(&breaker->mutex);
    if (now_ns > breaker->latest_ns)
        breaker->latest_ns = now_ns;
}

static void unlock_and_tell(struct hf_breaker *breaker,
                            const struct hf_breaker_change *change)
{
    hf_mutex_unlock(&breaker->mutex);
    if (change->sequence != 0 && breaker->opts.on_change != NULL)
        breaker->opts.on_change(breaker->opts.context, change);
}

/* ---- Before a call. ---- */

static uint64_t refuse(struct hf_breaker *breaker, uint64_t wait_ns)
{
    hf_u64_add(&breaker->refused, 1, __ATOMIC_RELAXED); /* a count only */
    return wait_ns;
}

/* OPEN: how long until a probe may go, 0 if it may. */
static uint64_t until_due(const struct hf_breaker *breaker, uint64_t now_ns)
{
    /* Relaxed: as new as the word that was read, at least. */
    uint64_t until_ns = hf_u64_load(&breaker->until_ns, __ATOMIC_RELAXED);

    return until_ns > now_ns ? until_ns - now_ns : 0;
}

/* Half-open and locked: 0 and one more probe, or how long to wait. All probes
 * may be out: whoever comes after the last one's time opens the breaker again.
 */
static uint64_t enter_half_open(struct hf_breaker *breaker, uint64_t now_ns,
                                struct hf_breaker_change *change)
{
    if (breaker->probes < breaker->opts.probes) {
        breaker->probes++;
        breaker->newest_ns = breaker->latest_ns;
        return 0;
    }
    uint64_t lost_ns = later(breaker->newest_ns, breaker->opts.probe_ns);
    if (now_ns < lost_ns)
        return lost_ns - now_ns;
    breaker->lost++;
    become(breaker, HF_BREAKER_OPEN, now_ns, change);
    return until_due(breaker, now_ns);
}

static uint64_t enter_slow(struct hf_breaker *breaker, uint64_t now_ns,
                           struct hf_breaker_call *call)
{
    struct hf_breaker_change change = {.sequence = 0};
    uint64_t wait_ns = 0;

    lock_at(breaker, now_ns);
    uint64_t word = look(breaker);
    if (state_of(word) == HF_BREAKER_OPEN) {
        wait_ns = until_due(breaker, now_ns);
        if (wait_ns == 0)
            become(breaker, HF_BREAKER_HALF_OPEN, now_ns, &change);
        word = look(breaker);
    }
    if (state_of(word) == HF_BREAKER_HALF_OPEN) {
        wait_ns = enter_half_open(breaker, now_ns, &change);
        word = look(breaker);
    } else if (state_of(word) == HF_BREAKER_FORCED_OPEN) {
        wait_ns = HF_BREAKER_NEVER;
    }
    unlock_and_tell(breaker, &change);
    if (wait_ns != 0)
        return refuse(breaker, wait_ns);
    *call = (struct hf_breaker_call){.state = word, .began_ns = now_ns};
    return 0;
}

uint64_t hf_breaker_enter(struct hf_breaker *breaker, uint64_t now_ns,
                          struct hf_breaker_call *call)
{
    if (breaker == NULL || call == NULL)
        return HF_BREAKER_NEVER;
    uint64_t word = look(breaker);
    enum hf_breaker_state state = state_of(word);

    if (state == HF_BREAKER_CLOSED || state == HF_BREAKER_FORCED_CLOSED) {
        *call = (struct hf_breaker_call){.state = word, .began_ns = now_ns};
        return 0;
    }
    if (state == HF_BREAKER_FORCED_OPEN)
        return refuse(breaker, HF_BREAKER_NEVER);
    if (state == HF_BREAKER_OPEN) {
        uint64_t wait_ns = until_due(breaker, now_ns);
        if (wait_ns != 0)
            return refuse(breaker, wait_ns);
    }
    return enter_slow(breaker, now_ns, call);
}

/* ---- After a call. ---- */

static bool share_reached(uint32_t part, uint32_t calls, uint32_t percent)
{
    return percent != 0 && (uint64_t)part * 100 >= (uint64_t)calls * percent;
}

static bool must_trip(const struct hf_breaker *breaker)
{
    const struct hf_breaker_opts *o = &breaker->opts;
    const struct window_sums *sums = &breaker->window.all;

    if (o->failures_max != 0 && breaker->failures >= o->failures_max)
        return true;
    if (sums->calls < o->calls_min)
        return false;
    return share_reached(sums->failed, sums->calls, o->failure_percent) ||
           share_reached(sums->slow, sums->calls, o->slow_percent);
}

static void leave_closed(struct hf_breaker *breaker, bool failed, bool slow,
                         uint64_t now_ns, struct hf_breaker_change *change)
{
    hf_breaker_window_add(&breaker->window, failed, slow, now_ns);
    if (!failed)
        breaker->failures = 0;
    else if (breaker->failures < UINT32_MAX)
        breaker->failures++;
    if (state_of(look(breaker)) == HF_BREAKER_CLOSED && must_trip(breaker))
        become(breaker, HF_BREAKER_OPEN, now_ns, change);
}

static void leave_half_open(struct hf_breaker *breaker, bool failed, bool slow,
                            uint64_t now_ns, struct hf_breaker_change *change)
{
    if (failed || (slow && breaker->opts.slow_percent != 0)) {
        become(breaker, HF_BREAKER_OPEN, now_ns, change);
        return;
    }
    breaker->probes_back++;
    if (breaker->probes_back == breaker->opts.probes)
        become(breaker, HF_BREAKER_CLOSED, now_ns, change);
}

enum hf_status hf_breaker_leave(struct hf_breaker *breaker,
                                const struct hf_breaker_call *call,
                                enum hf_breaker_outcome outcome,
                                uint64_t now_ns)
{
    struct hf_breaker_change change = {.sequence = 0};

    if (breaker == NULL || call == NULL ||
        (unsigned)outcome > HF_BREAKER_IGNORED)
        return HF_INVALID;
    bool failed = outcome == HF_BREAKER_FAILED;
    bool slow = breaker->opts.slow_ns != 0 && now_ns >= call->began_ns &&
                now_ns - call->began_ns >= breaker->opts.slow_ns;

    lock_at(breaker, now_ns);
    uint64_t word = look(breaker);
    bool ignored = outcome == HF_BREAKER_IGNORED;
    breaker->worked += !failed && !ignored;
    breaker->failed += failed;
    breaker->ignored += ignored;
    breaker->slow += slow && !ignored;
    if (word != call->state)
        breaker->late++;
    else if (ignored && state_of(word) == HF_BREAKER_HALF_OPEN)
        breaker->probes--; /* its place is free again */
    else if (!ignored && state_of(word) == HF_BREAKER_HALF_OPEN)
        leave_half_open(breaker, failed, slow, now_ns, &change);
    else if (!ignored)
        leave_closed(breaker, failed, slow, now_ns, &change);
    unlock_and_tell(breaker, &change);
    return HF_OK;
}

/* ---- The rest. ---- */

enum hf_breaker_state hf_breaker_state(const struct hf_breaker *breaker)
{
    return breaker == NULL ? HF_BREAKER_CLOSED : state_of(look(breaker));
}

enum hf_status hf_breaker_force(struct hf_breaker *breaker,
                                enum hf_breaker_state state, uint64_t now_ns)
{
    struct hf_breaker_change change = {.sequence = 0};

    if (breaker == NULL || (unsigned)state > HF_BREAKER_FORCED_CLOSED ||
        state == HF_BREAKER_HALF_OPEN)
        return HF_INVALID;
    lock_at(breaker, now_ns);
    become(breaker, state, now_ns, &change);
    unlock_and_tell(breaker, &change);
    return HF_OK;
}

void hf_breaker_stats(const struct hf_breaker *breaker,
                      struct hf_breaker_stats *out)
{
    if (breaker == NULL || out == NULL)
        return;
    /* The lock is the only thing that changes. */
    struct hf_breaker *b = (struct hf_breaker *)(uintptr_t)breaker;
    hf_mutex_lock(&b->mutex);
    uint64_t word = look(b);
    *out = (struct hf_breaker_stats){
        .state = state_of(word),
        .worked = b->worked,
        .failed = b->failed,
        .ignored = b->ignored,
        .slow = b->slow,
        .late = b->late,
        .trips = b->trips,
        .lost = b->lost,
        .window_calls = b->window.all.calls,
        .window_failed = b->window.all.failed,
        .window_slow = b->window.all.slow,
        .failures = b->failures,
        .probes = state_of(word) == HF_BREAKER_HALF_OPEN ? b->probes : 0};
    /* Relaxed: written under the lock; a count. */
    if (out->state == HF_BREAKER_OPEN)
        out->until_ns = hf_u64_load(&b->until_ns, __ATOMIC_RELAXED);
    out->refused = hf_u64_load(&b->refused, __ATOMIC_RELAXED);
    hf_mutex_unlock(&b->mutex);
}
