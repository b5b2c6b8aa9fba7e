/* timers.c - tasks in a slab, their order in a heap.
 *
 * A sweep looks at every entry once, in a row, which is far cheaper than to
 * take them out at the top one by one. It comes after so many withdrawals that
 * each of them pays for a few entries: one for each task that is left, or an
 * eighth if dead entries are in the way of those that are due.
 */
#include "exec/timers.h"

#include <assert.h>

#define SUBMISSION_BITS 48u
#define ID_BITS         (64u - TIMERS_NUMBER_BITS)
#define DEAD_MIN        1024u /* entries that are not worth a sweep */

_Static_assert(sizeof(struct timer) == 64, "a task fills one line");

static uint64_t low_bits(uint64_t value, unsigned bits)
{
    return value & ((UINT64_C(1) << bits) - 1);
}

/* Nobody needs to know where an entry lies. */
static void moved(void *context, uint32_t ref, uint32_t position)
{
    (void)context;
    (void)ref;
    (void)position;
}

void hf_timers_init(struct timers *timers)
{
    *timers = (struct timers){0};
    hf_slab_init(&timers->slab, sizeof(struct timer), &timers->bytes);
    hf_heap_init(&timers->heap, moved, NULL, &timers->bytes);
}

void hf_timers_destroy(struct timers *timers)
{
    hf_heap_destroy(&timers->heap);
    hf_slab_destroy(&timers->slab);
}

/* There is room for it, by a promise. */
static void insert(struct timers *timers, struct timer *timer)
{
    const struct hf_heap_entry entry = {timer->when_ns, timer->tie,
                                        timer->number};
    enum hf_status status = hf_heap_add(&timers->heap, entry);

    assert(status == HF_OK && !timer->waiting);
    (void)status;
    hf_heap_unpromise(&timers->heap);
    timer->waiting = true;
    timer->promised = false;
    timers->waiting++;
}

struct timer *hf_timers_add(struct timers *timers, const struct timer *form,
                            int priority)
{
    uint32_t number;

    if (hf_heap_promise(&timers->heap) != HF_OK)
        return NULL;
    if ((number = hf_slab_take(&timers->slab)) == 0) {
        hf_heap_unpromise(&timers->heap);
        return NULL;
    }
    assert(number < 1u << TIMERS_NUMBER_BITS);
    struct timer *timer = hf_slab_at(&timers->slab, number);
    *timer = *form;
    timer->number = number;
    timer->tie = (uint64_t)(priority - HF_SCHEDULER_PRIORITY_MIN)
                     << SUBMISSION_BITS |
                 low_bits(++timers->submissions, SUBMISSION_BITS);
    insert(timers, timer);
    return timer;
}

void hf_timers_free(struct timers *timers, struct timer *timer)
{
    assert(!timer->waiting && timer->queued == 0 && timer->running == 0);
    if (timer->promised)
        hf_heap_unpromise(&timers->heap);
    hf_slab_give(&timers->slab, timer->number);
}

/* The task that waits by this entry; NULL if the entry is dead. */
static struct timer *waits_by(const struct timers *timers,
                              const struct hf_heap_entry *entry)
{
    struct timer *timer = hf_slab_at(&timers->slab, entry->ref);

    return timer->number != 0 && timer->tie == entry->tie && timer->waiting
               ? timer
               : NULL;
}

static uint32_t dead_count(const struct timers *timers)
{
    return timers->heap.count - timers->waiting;
}

/* Builds the heap anew of those entries that are not dead. They are in almost
 * the right order, and each is read before its place is written. */
static void sweep(struct timers *timers)
{
    struct hf_heap *heap = &timers->heap;
    uint32_t count = heap->count;

    hf_heap_clear(heap);
    for (uint32_t i = 1; i <= count; i++) {
        struct hf_heap_entry entry = heap->entries[i];
        if (waits_by(timers, &entry) == NULL)
            continue;
        enum hf_status status = hf_heap_add(heap, entry);
        assert(status == HF_OK);
        (void)status;
    }
    assert(heap->count == timers->waiting);
}

struct timer *hf_timers_first(struct timers *timers)
{
    const struct hf_heap_entry *first;

    while ((first = hf_heap_first(&timers->heap)) != NULL) {
        struct timer *timer = waits_by(timers, first);
        if (timer != NULL)
            return timer;
        if (dead_count(timers) > timers->waiting / 8 + DEAD_MIN)
            sweep(timers);
        else
            hf_heap_remove(&timers->heap, 1);
    }
    return NULL;
}

struct timer *hf_timers_any(struct timers *timers)
{
    while (timers->heap.count > 0) {
        uint32_t last = timers->heap.count;
        struct timer *timer = waits_by(timers, &timers->heap.entries[last]);
        if (timer != NULL)
            return timer;
        hf_heap_remove(&timers->heap, last);
    }
    return NULL;
}

static void stop_waiting(struct timers *timers, struct timer *timer)
{
    assert(timer->waiting && timers->waiting > 0);
    timer->waiting = false;
    timers->waiting--;
}

void hf_timers_take_first(struct timers *timers, struct timer *timer)
{
    assert(hf_heap_first(&timers->heap)->tie == timer->tie);
    stop_waiting(timers, timer);
    hf_heap_remove(&timers->heap, 1);
    /* The place that has become free is kept for it. */
    enum hf_status status = hf_heap_promise(&timers->heap);
    assert(status == HF_OK);
    (void)status;
    timer->promised = true;
    /* The next task's record is far away: fetched while this one runs. */
    const struct hf_heap_entry *next = hf_heap_first(&timers->heap);
    if (next != NULL)
        __builtin_prefetch(hf_slab_at(&timers->slab, next->ref));
}

void hf_timers_put(struct timers *timers, struct timer *timer)
{
    assert(timer->promised);
    insert(timers, timer);
}

void hf_timers_withdraw(struct timers *timers, struct timer *timer)
{
    stop_waiting(timers, timer);
    if (dead_count(timers) > timers->waiting + DEAD_MIN)
        sweep(timers);
}

uint64_t hf_timer_id(const struct timer *timer)
{
    return low_bits(timer->tie, ID_BITS) << TIMERS_NUMBER_BITS | timer->number;
}

struct timer *hf_timers_find(const struct timers *timers, uint64_t id)
{
    uint32_t number = (uint32_t)low_bits(id, TIMERS_NUMBER_BITS);

    if (number == 0 || number >= timers->slab.top)
        return NULL;
    struct timer *timer = hf_slab_at(&timers->slab, number);
    return timer->number != 0 && hf_timer_id(timer) == id ? timer : NULL;
}

struct timer *hf_timers_walk(const struct timers *timers, uint32_t *number)
{
    while (*number < timers->slab.top) {
        struct timer *timer =
            *number == 0 ? NULL : hf_slab_at(&timers->slab, *number);
        ++*number;
        if (timer != NULL && timer->number != 0)
            return timer;
    }
    return NULL;
}
