/* lender.c - a lender's beginning, end, bounds and figures. */
#include <assert.h>

#include "base/memory.h"
#include "keep/lender_state.h"

#define SPREAD_DEFAULT   10u
#define PAUSE_DEFAULT_NS UINT64_C(10000000)
#define PAUSE_MOST_NS    UINT64_C(1000000000)

static bool set_defaults(struct hf_lender_opts *opts)
{
    if (opts->max == 0)
        opts->max = opts->min > HF_LENDER_MAX_DEFAULT ? opts->min
                                                      : HF_LENDER_MAX_DEFAULT;
    if (opts->room == 0)
        opts->room = opts->max;
    if (opts->spread == 0)
        opts->spread = SPREAD_DEFAULT;
    if (opts->pause_ns == 0)
        opts->pause_ns = PAUSE_DEFAULT_NS;
    if (opts->pause_max_ns == 0)
        opts->pause_max_ns =
            opts->pause_ns > PAUSE_MOST_NS ? opts->pause_ns : PAUSE_MOST_NS;
    return opts->create != NULL && opts->destroy != NULL &&
           opts->min <= opts->max && opts->max <= opts->room &&
           opts->room <= HF_LENDER_MAX && opts->spread <= 100 &&
           opts->pause_ns <= opts->pause_max_ns &&
           !(opts->direct && opts->pool != NULL);
}

static void free_all(struct hf_lender *lender)
{
    hf_locals_destroy(&lender->locals);
    hf_free(lender->checks);
    hf_free(lender->slots);
    hf_free(lender);
}

void hf_lender_release(struct hf_lender *lender)
{
    /* Release: what we did with it. Acquire: what the others did. */
    if (hf_u32_sub(&lender->references, 1, __ATOMIC_ACQ_REL) == 1)
        free_all(lender);
}

/* The longest loan of those whose beginning is known. */
static void fill(const struct hf_listed *listed, struct hf_inspect_row *row)
{
    struct hf_lender *lender = (struct hf_lender *)(uintptr_t)listed;
    uint64_t now_ns = lender_now(lender);
    uint32_t count = lender_used(lender);
    struct hf_lender_stats stats;

    static_assert(offsetof(struct hf_lender, listed) == 0, "it comes first");
    hf_lender_stats(lender, &stats);
    row->depth = stats.out;
    row->capacity = stats.max;
    row->rejected = stats.timeouts;
    row->wait_p99_ns = stats.wait_p99_ns;
    for (uint32_t i = 0; i < count; i++) {
        struct hf_lender_note note;
        uint64_t word = slot_look(&lender->slots[i]);
        if ((word & SLOT_STATE) == SLOT_OUT &&
            hf_lender_describe(&lender->slots[i], word, now_ns, &note) &&
            note.held_ns != HF_INSPECT_NONE &&
            (row->oldest_ns == HF_INSPECT_NONE ||
             row->oldest_ns < note.held_ns))
            row->oldest_ns = note.held_ns;
    }
}

static void set_up(struct hf_lender *lender, const struct hf_lender_opts *opts)
{
    bool trusts = opts->trust_ns != 0 && opts->trust_ns != HF_FOREVER;

    lender->opts = *opts;
    lender->clock = opts->clock != NULL ? opts->clock : hf_clock_system();
    lender->min = opts->min;
    lender->max = opts->max;
    lender->gate_mask = opts->unfair ? LENDER_CLOSED : UINT32_MAX;
    lender->looks = opts->validate != NULL && opts->trust_ns != HF_FOREVER;
    lender->notes_lend = opts->times || opts->leak_ns != 0;
    lender->notes_back = opts->idle_ns != 0 || (lender->looks && trusts);
    lender->references.value = 1;
    struct hf_backoff_opts pause = {.base_ns = opts->pause_ns,
                                    .cap_ns = opts->pause_max_ns,
                                    .jitter = HF_JITTER_EQUAL};
    (void)hf_backoff_init(&lender->backoff, &pause);
    hf_random_init(&lender->random,
                   lender_now(lender) ^ (uint64_t)(uintptr_t)lender);
    for (uint32_t i = 0; i < opts->room; i++)
        lender->slots[i] = (struct lender_slot){.lender = lender};
}

/* Makes what has to be there when open returns. There is no thread yet. */
static enum hf_status make_first(struct hf_lender *lender)
{
    uint32_t count = lender->min > 0 ? lender->min : 1;
    enum hf_status status = HF_OK;

    for (uint32_t i = 0; i < count && status == HF_OK; i++) {
        hf_mutex_lock(&lender->mutex);
        uint32_t index = hf_lender_reserve(lender);
        hf_mutex_unlock(&lender->mutex);
        status = hf_lender_make(lender, index, false);
    }
    return status;
}

enum hf_status hf_lender_open(struct hf_lender **out,
                              const struct hf_lender_opts *opts)
{
    enum hf_status status = HF_OK;
    struct hf_lender_opts set;

    if (out == NULL || opts == NULL)
        return HF_INVALID;
    set = *opts;
    if (!set_defaults(&set))
        return HF_INVALID;
    struct hf_lender *lender = hf_alloc_lines(sizeof *lender);
    if (lender == NULL)
        return HF_NOMEM;
    lender->slots = hf_alloc_aligned(_Alignof(struct lender_slot),
                                     set.room * sizeof *lender->slots);
    if (lender->slots == NULL ||
        hf_locals_init(&lender->locals, sizeof(struct lender_local)) != HF_OK) {
        hf_free(lender->slots);
        hf_free(lender);
        return HF_NOMEM;
    }
    set_up(lender, &set);
    status = hf_lender_checks_open(lender);
    if (status == HF_OK && set.eager)
        status = make_first(lender);
    if (status == HF_OK && !set.direct &&
        hf_thread_start(&lender->thread, set.name, hf_lender_run, lender) !=
            HF_OK)
        status = HF_NOMEM;
    if (status != HF_OK) {
        hf_lender_shutdown(lender); /* destroys what was made */
        hf_lender_release(lender);
        return status;
    }
    hf_listed_add(&lender->listed, "lender", set.name, fill);
    *out = lender;
    return HF_OK;
}

void hf_lender_shutdown(struct hf_lender *lender)
{
    if (lender == NULL)
        return;
    hf_mutex_lock(&lender->mutex);
    /* seq_cst: as all that `gate` tells borrowers. */
    uint32_t gate = hf_u32_or(&lender->gate, LENDER_CLOSED, __ATOMIC_SEQ_CST);
    hf_lender_unlock(lender, LENDER_NONE);
    hf_event_wake_all(&lender->freed);
    if (gate & LENDER_CLOSED)
        return;
    /* What is BUSY becomes idle under the mutex only, and not any more. */
    for (uint32_t i = 0; i < lender_used(lender); i++) {
        uint64_t word = slot_look(&lender->slots[i]);
        while ((word & SLOT_STATE) != SLOT_EMPTY &&
               !hf_lender_retire(lender, i, word))
            word = slot_look(&lender->slots[i]);
    }
}

static enum hf_status look_over(void *context)
{
    struct hf_lender *lender = context;

    hf_mutex_lock(&lender->mutex);
    bool over = lender->total == 0;
    hf_mutex_unlock(&lender->mutex);
    return over ? HF_OK : HF_PENDING;
}

enum hf_status hf_lender_await(struct hf_lender *lender, uint64_t deadline_ns)
{
    if (lender == NULL || !lender_is_closed(lender))
        return HF_INVALID;
    return hf_event_until(&lender->over, look_over, lender, lender->clock,
                          deadline_ns);
}

void hf_lender_close(struct hf_lender *lender)
{
    if (lender == NULL)
        return;
    hf_lender_shutdown(lender);
    (void)hf_lender_await(lender, HF_FOREVER);
    if (!lender->opts.direct) {
        /* Relaxed: the wake-up carries it. */
        hf_u32_store(&lender->stop, 1, __ATOMIC_RELAXED);
        hf_event_wake(&lender->work, 1);
        hf_thread_join(&lender->thread);
    }
    hf_listed_remove(&lender->listed);
    hf_lender_release(lender);
}

static bool is_tight(struct hf_lender *lender)
{
    hf_mutex_lock(&lender->mutex);
    bool tight = hf_lender_is_tight(lender);
    hf_mutex_unlock(&lender->mutex);
    return tight;
}

enum hf_status hf_lender_resize(struct hf_lender *lender, uint32_t min,
                                uint32_t max)
{
    if (lender == NULL || max == 0 || min > max || max > lender->opts.room)
        return HF_INVALID;
    hf_mutex_lock(&lender->mutex);
    lender->min = min;
    lender->max = max;
    hf_lender_unlock(lender, LENDER_NONE); /* there may be room for who waits */
    hf_event_wake_all(&lender->freed);
    uint32_t count = lender_used(lender);
    for (uint32_t i = count; i-- > 0 && is_tight(lender);) {
        uint64_t word = slot_look(&lender->slots[i]);
        if ((word & SLOT_STATE) == SLOT_IDLE)
            (void)hf_lender_retire(lender, i, word);
    }
    /* The others come by the long way, and the first ones go. */
    for (uint32_t i = 0; i < count && is_tight(lender); i++) {
        uint64_t word = slot_look(&lender->slots[i]);
        while ((word & SLOT_STATE) == SLOT_OUT && !(word & SLOT_ASK) &&
               !slot_change(&lender->slots[i], &word, word | SLOT_ASK))
            ;
    }
    return HF_OK;
}

void hf_lender_renew(struct hf_lender *lender)
{
    if (lender == NULL)
        return;
    hf_mutex_lock(&lender->mutex);
    uint32_t renewals = ++lender->renewals;
    hf_mutex_unlock(&lender->mutex);
    for (uint32_t i = 0; i < lender_used(lender); i++) {
        uint64_t word = slot_look(&lender->slots[i]);
        /* Relaxed: a slot that was reserved since is not from before. */
        while (hf_u32_load(&lender->slots[i].age, __ATOMIC_RELAXED) <
                   renewals &&
               (word & SLOT_STATE) != SLOT_EMPTY &&
               !hf_lender_retire(lender, i, word))
            word = slot_look(&lender->slots[i]);
    }
}

uint32_t hf_lender_out(struct hf_lender *lender,
                       void (*visit)(void *context,
                                     const struct hf_lender_note *note),
                       void *context)
{
    uint32_t found = 0;

    if (lender == NULL)
        return 0;
    uint64_t now_ns = lender_now(lender);
    for (uint32_t i = 0; i < lender_used(lender); i++) {
        struct hf_lender_note note;
        uint64_t word = slot_look(&lender->slots[i]);
        if ((word & SLOT_STATE) != SLOT_OUT ||
            !hf_lender_describe(&lender->slots[i], word, now_ns, &note))
            continue;
        found++;
        if (visit != NULL)
            visit(context, &note);
    }
    return found;
}

/* Relaxed: figures guard nothing. */
static uint64_t figure(const struct hf_atomic_u64 *word)
{
    return hf_u64_load(word, __ATOMIC_RELAXED);
}

void hf_lender_stats(struct hf_lender *lender, struct hf_lender_stats *out)
{
    uint64_t loans = 0;

    if (lender == NULL || out == NULL)
        return;
    *out = (struct hf_lender_stats){
        .waiting = lender_waiting(lender),
        .timeouts = figure(&lender->timeouts),
        .waits = hf_waits_count(&lender->waits),
        .created = figure(&lender->created),
        .failed = figure(&lender->failed),
        /* Relaxed: as the others. */
        .code = (int)hf_u32_load(&lender->code, __ATOMIC_RELAXED),
        .destroyed = figure(&lender->destroyed),
        .broken = figure(&lender->broken),
        .retired = figure(&lender->retired),
        .validated = figure(&lender->validated),
        .leaked = figure(&lender->leaked),
        .refused = figure(&lender->refused),
        .wait_p50_ns = hf_waits_percentile_ns(&lender->waits, 50),
        .wait_p99_ns = hf_waits_percentile_ns(&lender->waits, 99)};
    uint64_t undone = figure(&lender->undone);
    for (uint32_t i = 0; i < lender_used(lender); i++) {
        uint64_t word = slot_look(&lender->slots[i]);
        loans += word / SLOT_LOAN;
        out->idle += (word & SLOT_STATE) == SLOT_IDLE;
        out->out += (word & SLOT_STATE) == SLOT_OUT;
    }
    out->borrows = loans > undone ? loans - undone : 0;
    out->returns = out->borrows > out->out ? out->borrows - out->out : 0;
    hf_mutex_lock(&lender->mutex);
    out->min = lender->min;
    out->max = lender->max;
    out->making = lender->making;
    hf_mutex_unlock(&lender->mutex);
}
