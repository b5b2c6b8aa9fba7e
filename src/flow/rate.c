/* rate.c - one limiter: the arithmetic of rate_state.h on a shared word, or
 * under a lock where the state is more than a word. */
#include "holdfast/rate.h"

#include <string.h>

#include "base/atomic.h"
#include "flow/rate_slots.h"
#include "flow/rate_state.h"
#include "sync/mutex.h"

/* What lies in the caller's memory. */
struct store {
    struct hf_mutex mutex;
    uint64_t state[]; /* (m) a rate_state or rate_slots */
};

static struct rate_state *words_of(struct store *store)
{
    return (struct rate_state *)(void *)store->state;
}

static struct rate_slots *slots_of(struct store *store)
{
    return (struct rate_slots *)(void *)store->state;
}

static size_t memory_of(const struct hf_rate_plan *plan)
{
    if (plan->words == 1)
        return 0;
    return sizeof(struct store) + (plan->words == 2
                                       ? sizeof(struct rate_state)
                                       : RATE_SLOTS_BYTES(plan->limit));
}

size_t hf_rate_memory(const struct hf_rate_rule *rule)
{
    struct hf_rate_plan plan;

    if (rule == NULL || hf_rate_plan_make(&plan, rule) != HF_OK)
        return 0;
    return memory_of(&plan);
}

enum hf_status hf_rate_open(struct hf_rate *rate,
                            const struct hf_rate_rule *rule, void *memory)
{
    struct hf_rate_plan plan;

    if (rate == NULL || hf_rate_plan_make(&plan, rule) != HF_OK)
        return HF_INVALID;
    size_t bytes = memory_of(&plan);
    if (bytes != 0 && (memory == NULL || (uintptr_t)memory % 8 != 0))
        return HF_INVALID;
    if (bytes != 0)
        memset(memory, 0, bytes);
    *rate =
        (struct hf_rate){.plan = plan, .memory = bytes == 0 ? NULL : memory};
    return HF_OK;
}

enum hf_status hf_rate_init(struct hf_rate *rate, uint32_t burst,
                            uint64_t period_ns)
{
    struct hf_rate_rule rule = {.kind = HF_RATE_BUCKET,
                                .permits = 1,
                                .burst = burst,
                                .span_ns = period_ns};

    return burst == 0 ? HF_INVALID : hf_rate_open(rate, &rule, NULL);
}

/* Relaxed throughout: the word guards no other memory, and every decision is
 * made on the value that the swap confirms. */
static uint64_t load(const struct hf_rate *rate)
{
    return hf_u64_load(&rate->word, __ATOMIC_RELAXED);
}

static bool swap(struct hf_rate *rate, uint64_t *word, uint64_t next)
{
    return hf_u64_cas(&rate->word, word, next, __ATOMIC_RELAXED);
}

/* What locks changes nothing that the caller can see. */
static struct store *lock(const struct hf_rate *rate)
{
    struct store *store = rate->memory;

    hf_mutex_lock(&store->mutex);
    return store;
}

/* The slower half of take: any kind but those on a line. */
static __attribute__((noinline)) uint64_t
take_other(struct hf_rate *rate, uint32_t count, uint64_t now_ns)
{
    const struct hf_rate_plan *plan = &rate->plan;
    struct rate_state state;
    struct rate_state next;
    uint64_t wait_ns;

    if (plan->words == 1) {
        state.word[0] = load(rate);
        do {
            wait_ns = hf_rate_state_take(plan, &state, count, 0, now_ns, &next);
            if (wait_ns != 0)
                return wait_ns;
        } while (!swap(rate, &state.word[0], next.word[0]));
        return 0;
    }
    struct store *store = lock(rate);
    wait_ns = plan->words == 2
                  ? hf_rate_state_take(plan, words_of(store), count, 0, now_ns,
                                       words_of(store))
                  : hf_rate_slots_take(plan, slots_of(store), count, 0, now_ns);
    hf_mutex_unlock(&store->mutex);
    return wait_ns;
}

/* rate_line_take() with all that does not depend on the word done once. */
uint64_t hf_rate_take(struct hf_rate *rate, uint32_t count, uint64_t now_ns)
{
    if (rate == NULL)
        return HF_RATE_NEVER;
    const struct hf_rate_plan *plan = &rate->plan;
    if (!rate_on_line(plan))
        return take_other(rate, count, now_ns);
    if (count > plan->limit)
        return HF_RATE_NEVER;
    now_ns = rate_clip(now_ns);
    uint64_t mark = rate_mark(plan, now_ns);
    uint64_t cost = count * plan->cost;
    uint64_t word = load(rate);
    uint64_t end;
    do {
        end = rate_line_end(word, mark, cost);
        if (end > mark + plan->edge)
            return hf_rate_line_wait(plan, end - plan->edge, now_ns);
    } while (!swap(rate, &word, end));
    return 0;
}

/* ---- With all that can be told. ---- */

static void tell(const struct hf_rate_plan *plan,
                 const struct rate_state *state, uint64_t wait_ns,
                 uint64_t now_ns, struct hf_rate_answer *answer)
{
    answer->wait_ns = wait_ns;
    hf_rate_state_tell(plan, state, now_ns, answer);
}

static uint64_t decide_locked(const struct hf_rate *rate, uint32_t count,
                              uint64_t now_ns, bool takes,
                              struct hf_rate_answer *answer)
{
    const struct hf_rate_plan *plan = &rate->plan;
    struct store *store = lock(rate);
    struct rate_state unused;
    uint64_t wait_ns;

    if (plan->words == 2) {
        wait_ns = hf_rate_state_take(plan, words_of(store), count, 0, now_ns,
                                     takes ? words_of(store) : &unused);
        tell(plan, words_of(store), wait_ns, now_ns, answer);
    } else {
        wait_ns =
            takes ? hf_rate_slots_take(plan, slots_of(store), count, 0, now_ns)
                  : hf_rate_slots_wait(plan, slots_of(store), count, 0, now_ns);
        answer->wait_ns = wait_ns;
        hf_rate_slots_tell(plan, slots_of(store), now_ns, answer);
    }
    hf_mutex_unlock(&store->mutex);
    return wait_ns;
}

uint64_t hf_rate_ask(struct hf_rate *rate, uint32_t count, uint64_t now_ns,
                     struct hf_rate_answer *answer)
{
    struct rate_state state;
    struct rate_state next;

    if (rate == NULL || answer == NULL)
        return HF_RATE_NEVER;
    if (rate->plan.words != 1)
        return decide_locked(rate, count, now_ns, true, answer);
    state.word[0] = load(rate);
    for (;;) {
        uint64_t wait_ns =
            hf_rate_state_take(&rate->plan, &state, count, 0, now_ns, &next);
        if (wait_ns == 0 && !swap(rate, &state.word[0], next.word[0]))
            continue;
        tell(&rate->plan, wait_ns == 0 ? &next : &state, wait_ns, now_ns,
             answer);
        return wait_ns;
    }
}

uint64_t hf_rate_look(const struct hf_rate *rate, uint32_t count,
                      uint64_t now_ns, struct hf_rate_answer *answer)
{
    struct rate_state state;
    struct rate_state next;

    if (rate == NULL || answer == NULL)
        return HF_RATE_NEVER;
    if (rate->plan.words != 1)
        return decide_locked(rate, count, now_ns, false, answer);
    state.word[0] = load(rate);
    uint64_t wait_ns =
        hf_rate_state_take(&rate->plan, &state, count, 0, now_ns, &next);
    tell(&rate->plan, &state, wait_ns, now_ns, answer);
    return wait_ns;
}

uint64_t hf_rate_wait(const struct hf_rate *rate, uint32_t count,
                      uint64_t now_ns)
{
    struct hf_rate_answer answer;

    return hf_rate_look(rate, count, now_ns, &answer);
}

void hf_rate_refund(struct hf_rate *rate, uint32_t count, uint64_t taken_ns)
{
    struct rate_state state;
    struct rate_state next;

    if (rate == NULL)
        return;
    const struct hf_rate_plan *plan = &rate->plan;
    if (plan->words == 1) {
        state.word[0] = load(rate);
        do {
            hf_rate_state_refund(plan, &state, count, taken_ns, &next);
        } while (!swap(rate, &state.word[0], next.word[0]));
        return;
    }
    struct store *store = lock(rate);
    if (plan->words == 2)
        hf_rate_state_refund(plan, words_of(store), count, taken_ns,
                             words_of(store));
    else
        hf_rate_slots_refund(plan, slots_of(store), count, taken_ns);
    hf_mutex_unlock(&store->mutex);
}
