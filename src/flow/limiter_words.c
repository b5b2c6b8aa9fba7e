/* limiter_words.c - words or an array behind them: see limiter_words.h. */
#include "flow/limiter_words.h"

#include <string.h>

#include "base/memory.h"

static struct rate_slots *slots_of(const struct rate_state *words)
{
    return (struct rate_slots *)(uintptr_t)words->word[0];
}

static bool has_slots(const struct hf_rate_plan *plan)
{
    return plan->words == 0;
}

enum hf_status hf_words_ready(const struct hf_rate_plan *plan,
                              struct rate_state *words)
{
    if (!has_slots(plan) || slots_of(words) != NULL)
        return HF_OK;
    void *slots = hf_alloc_zeroed(RATE_SLOTS_BYTES(plan->limit));
    words->word[0] = (uint64_t)(uintptr_t)slots;
    return slots == NULL ? HF_NOMEM : HF_OK;
}

uint64_t hf_words_wait(const struct hf_rate_plan *plan,
                       const struct rate_state *words, uint64_t count,
                       uint64_t keep_back, uint64_t now_ns)
{
    struct rate_state next;

    if (!has_slots(plan))
        return hf_rate_state_take(plan, words, count, keep_back, now_ns, &next);
    if (slots_of(words) != NULL)
        return hf_rate_slots_wait(plan, slots_of(words), count, keep_back,
                                  now_ns);
    return keep_back > plan->limit || count > plan->limit - keep_back
               ? HF_RATE_NEVER
               : 0;
}

enum hf_status hf_words_take(const struct hf_rate_plan *plan,
                             struct rate_state *words, uint64_t count,
                             uint64_t keep_back, uint64_t now_ns)
{
    struct rate_state next = *words;

    if (count == 0)
        return HF_OK;
    if (hf_words_ready(plan, words) != HF_OK)
        return HF_NOMEM;
    if (has_slots(plan)) {
        (void)hf_rate_slots_take(plan, slots_of(words), count, keep_back,
                                 now_ns);
        return HF_OK;
    }
    if (hf_rate_state_take(plan, words, count, keep_back, now_ns, &next) == 0)
        *words = next;
    return HF_OK;
}

void hf_words_tell(const struct hf_rate_plan *plan,
                   const struct rate_state *words, uint64_t now_ns,
                   struct hf_rate_answer *answer)
{
    if (!has_slots(plan))
        hf_rate_state_tell(plan, words, now_ns, answer);
    else if (slots_of(words) != NULL)
        hf_rate_slots_tell(plan, slots_of(words), now_ns, answer);
    else
        *answer = (struct hf_rate_answer){
            .limit = plan->limit, .remaining = plan->limit, .taken_ns = now_ns};
}

/* On a line, debt: the mark goes beyond the edge, by one edge at most. */
static void line_spend(const struct hf_rate_plan *plan,
                       struct rate_state *words, uint64_t count,
                       uint64_t now_ns)
{
    uint64_t mark = rate_mark(plan, rate_clip(now_ns));
    uint64_t from = words->word[0] > mark ? words->word[0] : mark;
    uint64_t most = mark + plan->edge;
    uint64_t to;

    most = most > UINT64_MAX - 2 * plan->edge ? most : most + plan->edge;
    if (__builtin_mul_overflow(count, plan->cost, &to) ||
        __builtin_add_overflow(from, to, &to) || to > most)
        to = most;
    if (to > from)
        words->word[0] = to;
}

void hf_words_spend(const struct hf_rate_plan *plan, struct rate_state *words,
                    uint64_t count, uint64_t now_ns)
{
    struct hf_rate_answer answer;

    if (rate_on_line(plan)) {
        line_spend(plan, words, count, now_ns);
        return;
    }
    hf_words_tell(plan, words, now_ns, &answer);
    if (count > answer.remaining)
        count = answer.remaining;
    (void)hf_words_take(plan, words, count, 0, now_ns);
}

void hf_words_refund(const struct hf_rate_plan *plan, struct rate_state *words,
                     uint64_t count, uint64_t taken_ns)
{
    struct rate_state next = *words;

    if (!has_slots(plan)) {
        hf_rate_state_refund(plan, words, count, taken_ns, &next);
        *words = next;
    } else if (slots_of(words) != NULL) {
        hf_rate_slots_refund(plan, slots_of(words), count, taken_ns);
    }
}

bool hf_words_idle(const struct hf_rate_plan *plan,
                   const struct rate_state *words, uint64_t now_ns)
{
    if (!has_slots(plan))
        return hf_rate_state_idle(plan, words, now_ns);
    return slots_of(words) == NULL ||
           hf_rate_slots_idle(plan, slots_of(words), now_ns);
}

void hf_words_clear(const struct hf_rate_plan *plan, struct rate_state *words)
{
    if (has_slots(plan))
        hf_free(slots_of(words));
    memset(words, 0, sizeof *words);
}

bool hf_words_fit(const struct hf_rate_plan *plan,
                  const struct rate_state *words,
                  const struct hf_atomic_u64 *used, uint64_t most)
{
    /* Relaxed: a figure, which others may see a little late. */
    return !has_slots(plan) || slots_of(words) != NULL ||
           hf_u64_load(used, __ATOMIC_RELAXED) +
                   RATE_SLOTS_BYTES(plan->limit) <=
               most;
}

uint64_t hf_words_bytes(const struct hf_rate_plan *plan,
                        const struct rate_state *words)
{
    return has_slots(plan) && slots_of(words) != NULL
               ? RATE_SLOTS_BYTES(plan->limit)
               : 0;
}

/* Between kinds that keep different things only the number spent is kept. */
static enum hf_status convert_count(const struct hf_rate_plan *from,
                                    const struct hf_rate_plan *to,
                                    struct rate_state *words,
                                    struct rate_state *next, uint64_t now_ns)
{
    struct hf_rate_answer answer;

    hf_words_tell(from, words, now_ns, &answer);
    uint64_t spent = answer.limit - answer.remaining;
    return hf_words_take(to, next, spent < to->limit ? spent : to->limit, 0,
                         now_ns);
}

enum hf_status hf_words_convert(const struct hf_rate_plan *from,
                                const struct hf_rate_plan *to,
                                struct rate_state *words, uint64_t now_ns)
{
    struct rate_state next = {{0, 0}};

    if (!has_slots(from) && !has_slots(to)) {
        hf_rate_state_convert(from, to, words, now_ns, &next);
    } else if (has_slots(from) && has_slots(to)) {
        if (slots_of(words) != NULL) {
            if (hf_words_ready(to, &next) != HF_OK)
                return HF_NOMEM;
            hf_rate_slots_convert(from, slots_of(words), to, slots_of(&next));
        }
    } else if (convert_count(from, to, words, &next, now_ns) != HF_OK) {
        return HF_NOMEM;
    }
    hf_words_clear(from, words);
    *words = next;
    return HF_OK;
}
