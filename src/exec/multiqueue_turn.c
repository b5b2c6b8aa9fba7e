/* multiqueue_turn.c - whose turn it is, who is too old, who starves.
 *
 * Turns. Each class stands some way ahead of the point from which takers come,
 * and a take is a step to the nearest class that has work:
 *
 *     takers ->|-----a--------b--------------------c------>
 *
 * The class that is reached is served and put back by 1 / weight; so in a walk
 * of length L it is met L * weight times, give or take one, and so are the
 * others: these are the shares. A class without work waits at the point, where
 * it gets no credit for turns that it had no use for, and one that comes back
 * soon has not lost its debt. Between two turns of a class of weight w the walk
 * is 1 / w long: that is W / w takes, and one more for each other class, where
 * W is the sum of all weights.
 */
#include <assert.h>

#include "exec/multiqueue_state.h"

#define LENGTH (UINT64_C(1) << 40) /* that a weight of 1 is put back by */

void hf_multiqueue_list_add(struct hf_multiqueue *queue, uint32_t class_index,
                            uint32_t number)
{
    struct class_state *class_state = &queue->classes[class_index];
    struct record *record = record_at(queue, number);
    uint32_t after = class_state->last;

    assert(hf_mutex_held(&queue->mutex));
    while (after != 0 && record_at(queue, after)->number > record->number)
        after = record_at(queue, after)->prev;
    record->class_index = class_index;
    record->prev = after;
    record->next =
        after == 0 ? class_state->first : record_at(queue, after)->next;
    *(after == 0 ? &class_state->first : &record_at(queue, after)->next) =
        number;
    *(record->next == 0 ? &class_state->last
                        : &record_at(queue, record->next)->prev) = number;
    class_state->counts.depth++;
}

void hf_multiqueue_list_remove(struct hf_multiqueue *queue, uint32_t number)
{
    struct record *record = record_at(queue, number);
    struct class_state *class_state = &queue->classes[record->class_index];

    assert(hf_mutex_held(&queue->mutex));
    *(record->prev == 0 ? &class_state->first
                        : &record_at(queue, record->prev)->next) = record->next;
    *(record->next == 0 ? &class_state->last
                        : &record_at(queue, record->next)->prev) = record->prev;
    class_state->counts.depth--;
}

/* ---- Turns. ---- */

uint64_t hf_multiqueue_stride(const struct hf_multiqueue *queue,
                              uint32_t class_index)
{
    uint64_t weight = queue->opts.weights[class_index];

    if (queue->opts.adaptive) {
        const uint64_t capacity = queue->opts.capacity;
        uint64_t depth = queue->classes[class_index].counts.depth;
        weight += weight * (depth < capacity ? depth : capacity) / capacity;
    }
    return LENGTH / weight;
}

static uint32_t next_class(struct hf_multiqueue *queue)
{
    uint32_t best = MULTIQUEUE_NONE;

    for (uint32_t i = 0; i < queue->opts.classes; i++) {
        if (queue->classes[i].first != 0 &&
            (best == MULTIQUEUE_NONE ||
             queue->classes[i].ahead < queue->classes[best].ahead))
            best = i;
    }
    assert(best != MULTIQUEUE_NONE);
    uint64_t step = queue->classes[best].ahead;
    for (uint32_t i = 0; i < queue->opts.classes; i++) {
        uint64_t ahead = queue->classes[i].ahead;
        queue->classes[i].ahead = ahead > step ? ahead - step : 0;
    }
    queue->classes[best].ahead += hf_multiqueue_stride(queue, best);
    return best;
}

/* How long the first item of the class has waited; it has one. */
static uint64_t waited_ns(const struct hf_multiqueue *queue,
                          uint32_t class_index, uint64_t now_ns)
{
    uint32_t first = queue->classes[class_index].first;
    return now_ns - record_at(queue, first)->put_ns;
}

/* The class whose first item has waited longest, and long enough. */
static uint32_t aged_class(const struct hf_multiqueue *queue, uint64_t now_ns)
{
    uint32_t oldest = MULTIQUEUE_NONE;
    uint64_t oldest_number = UINT64_MAX;

    if (queue->opts.age_ns == 0 || queue->aged_last)
        return MULTIQUEUE_NONE;
    for (uint32_t i = 0; i < queue->opts.classes; i++) {
        uint32_t first = queue->classes[i].first;
        if (first == 0 || waited_ns(queue, i, now_ns) < queue->opts.age_ns)
            continue;
        if (record_at(queue, first)->number < oldest_number) {
            oldest = i;
            oldest_number = record_at(queue, first)->number;
        }
    }
    return oldest;
}

uint32_t hf_multiqueue_choose(struct hf_multiqueue *queue, uint32_t home,
                              uint64_t now_ns)
{
    assert(hf_mutex_held(&queue->mutex));
    uint32_t chosen = aged_class(queue, now_ns);
    queue->aged_last = chosen != MULTIQUEUE_NONE;
    if (chosen != MULTIQUEUE_NONE) {
        queue->classes[chosen].counts.aged++;
        return chosen;
    }
    if (home < queue->opts.classes && queue->classes[home].first != 0)
        return home;
    return next_class(queue);
}

/* ---- Starving. ---- */

void hf_multiqueue_look(struct hf_multiqueue *queue, uint64_t now_ns,
                        struct multiqueue_alarms *alarms)
{
    assert(hf_mutex_held(&queue->mutex));
    alarms->count = 0;
    if (queue->opts.starve_ns == 0)
        return;
    for (uint32_t i = 0; i < queue->opts.classes; i++) {
        struct class_state *class_state = &queue->classes[i];
        uint64_t waited =
            class_state->first == 0 ? 0 : waited_ns(queue, i, now_ns);
        if (waited < queue->opts.starve_ns) {
            class_state->starving = false;
        } else if (!class_state->starving) {
            class_state->starving = true;
            class_state->counts.alarms++;
            alarms->classes[alarms->count] = i;
            alarms->waited_ns[alarms->count++] = waited;
        }
    }
}

void hf_multiqueue_calm(struct hf_multiqueue *queue, uint32_t class_index,
                        uint64_t now_ns)
{
    struct class_state *class_state = &queue->classes[class_index];

    class_state->starving =
        class_state->starving && class_state->first != 0 &&
        waited_ns(queue, class_index, now_ns) >= queue->opts.starve_ns;
}

uint64_t hf_multiqueue_next_look_ns(const struct hf_multiqueue *queue,
                                    uint64_t now_ns)
{
    const uint64_t starve_ns = queue->opts.starve_ns;
    uint64_t longest_ns = 0;

    if (starve_ns == 0)
        return HF_FOREVER;
    for (uint32_t i = 0; i < queue->opts.classes; i++) {
        const struct class_state *class_state = &queue->classes[i];
        if (class_state->first == 0 || class_state->starving)
            continue;
        uint64_t waited = waited_ns(queue, i, now_ns);
        longest_ns = waited > longest_ns ? waited : longest_ns;
    }
    /* What is put from now on starves later than that. */
    uint64_t left_ns = longest_ns < starve_ns ? starve_ns - longest_ns : 0;
    return left_ns < HF_FOREVER - now_ns ? now_ns + left_ns : HF_FOREVER;
}
