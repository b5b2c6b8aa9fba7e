/* rate_slots.c - permits in a circle, oldest first. */
#include "flow/rate_slots.h"

#include <assert.h>

/* The k-th from head. */
static uint64_t place(const struct hf_rate_plan *plan,
                      const struct rate_slots *slots, uint64_t k)
{
    assert(k < plan->limit);
    k += slots->head;
    return k < plan->limit ? k : k - plan->limit;
}

static uint64_t slot(const struct hf_rate_plan *plan,
                     const struct rate_slots *slots, uint64_t k)
{
    return slots->back_ns[place(plan, slots, k)];
}

static uint64_t newest(const struct hf_rate_plan *plan,
                       const struct rate_slots *slots)
{
    return slot(plan, slots, plan->limit - 1);
}

/* How many slots are `back_ns` or less: they are sorted. Looked for from the
 * newest on, in steps that double: what is asked about is mostly near it. */
static uint64_t count_until(const struct hf_rate_plan *plan,
                            const struct rate_slots *slots, uint64_t back_ns)
{
    uint64_t high = plan->limit;
    uint64_t low = high;

    for (uint64_t step = 1; low > 0; step *= 2) {
        low = low > step ? low - step : 0;
        if (slot(plan, slots, low) <= back_ns)
            break;
        high = low;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (slot(plan, slots, middle) <= back_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

uint64_t hf_rate_slots_wait(const struct hf_rate_plan *plan,
                            const struct rate_slots *slots, uint64_t count,
                            uint64_t keep_back, uint64_t now_ns)
{
    if (keep_back > plan->limit || count > plan->limit - keep_back)
        return HF_RATE_NEVER;
    if (count + keep_back == 0)
        return 0;
    now_ns = rate_clip(now_ns);
    uint64_t back_ns = slot(plan, slots, count + keep_back - 1);
    return back_ns > now_ns ? back_ns - now_ns : 0;
}

uint64_t hf_rate_slots_take(const struct hf_rate_plan *plan,
                            struct rate_slots *slots, uint64_t count,
                            uint64_t keep_back, uint64_t now_ns)
{
    uint64_t wait_ns =
        hf_rate_slots_wait(plan, slots, count, keep_back, now_ns);

    if (wait_ns != 0)
        return wait_ns;
    uint64_t back_ns = rate_clip(now_ns) + plan->span_ns;
    if (back_ns < newest(plan, slots))
        back_ns = newest(plan, slots);
    for (uint64_t i = 0; i < count; i++) {
        slots->back_ns[slots->head] = back_ns;
        slots->head = slots->head + 1 == plan->limit ? 0 : slots->head + 1;
    }
    return 0;
}

void hf_rate_slots_tell(const struct hf_rate_plan *plan,
                        const struct rate_slots *slots, uint64_t now_ns,
                        struct hf_rate_answer *answer)
{
    uint64_t last_ns = newest(plan, slots);

    now_ns = rate_clip(now_ns);
    answer->limit = plan->limit;
    answer->remaining = count_until(plan, slots, now_ns);
    answer->reset_ns = last_ns > now_ns ? last_ns - now_ns : 0;
    answer->taken_ns =
        last_ns > now_ns + plan->span_ns ? last_ns - plan->span_ns : now_ns;
}

/* The free ones become the first. Either the newer ones close the gap and head
 * goes back, or the older ones make room: whichever are fewer. */
static void remove_slots(const struct hf_rate_plan *plan,
                         struct rate_slots *slots, uint64_t first,
                         uint64_t count)
{
    uint64_t newer = plan->limit - first - count;

    if (newer <= first) {
        for (uint64_t i = 0; i < newer; i++)
            slots->back_ns[place(plan, slots, first + i)] =
                slot(plan, slots, first + count + i);
        slots->head = place(plan, slots, plan->limit - count);
        first = 0;
    }
    for (; first > 0 && slot(plan, slots, first - 1) != 0; first--)
        slots->back_ns[place(plan, slots, first - 1 + count)] =
            slot(plan, slots, first - 1);
    for (uint64_t i = 0; i < count; i++)
        slots->back_ns[place(plan, slots, first + i)] = 0;
}

void hf_rate_slots_refund(const struct hf_rate_plan *plan,
                          struct rate_slots *slots, uint64_t count,
                          uint64_t taken_ns)
{
    uint64_t back_ns = rate_clip(taken_ns) + plan->span_ns;
    uint64_t end = count_until(plan, slots, back_ns);
    uint64_t equal = 0;

    while (equal < count && equal < end &&
           slot(plan, slots, end - equal - 1) == back_ns)
        equal++;
    if (equal > 0)
        remove_slots(plan, slots, end - equal, equal);
}

void hf_rate_slots_convert(const struct hf_rate_plan *from_plan,
                           const struct rate_slots *from,
                           const struct hf_rate_plan *to_plan,
                           struct rate_slots *to)
{
    uint64_t kept =
        from_plan->limit < to_plan->limit ? from_plan->limit : to_plan->limit;

    to->head = 0;
    for (uint64_t i = 0; i < to_plan->limit - kept; i++)
        to->back_ns[i] = 0;
    for (uint64_t i = 0; i < kept; i++) {
        uint64_t back_ns = slot(from_plan, from, from_plan->limit - kept + i);
        if (back_ns != 0)
            back_ns += to_plan->span_ns - from_plan->span_ns;
        to->back_ns[to_plan->limit - kept + i] = back_ns;
    }
}

bool hf_rate_slots_idle(const struct hf_rate_plan *plan,
                        const struct rate_slots *slots, uint64_t now_ns)
{
    return newest(plan, slots) <= rate_clip(now_ns);
}
