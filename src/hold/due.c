/* due.c - what falls due, in the order of time. */
#include "hold/expect.h"
#include "hold/locks.h"
#include "hold/request.h"
#include "hold/waitlist.h"

#include <assert.h>

/* What falls due: where a record notes its place in the heap, and what happens.
 */
static uint32_t *place_of(struct hold_engine *e, uint32_t ref)
{
    uint32_t number = ref & DUE_NUMBER;

    switch ((enum due_kind)(ref >> DUE_SHIFT)) {
    case DUE_GRANT:
        return &part_edit(e, number)->due;
    case DUE_SET:
        return &set_edit(e, number)->due;
    case DUE_WAITER:
        return &waiter_edit(e, number)->due;
    case DUE_SESSION:
        return &session_edit(e, number)->due;
    case DUE_MARK:
        return &mark_edit(e, number)->due;
    case DUE_BUYER:
        return &buyer_edit(e, number)->due;
    case DUE_ARRIVAL:
        return &expect_edit(e, number)->due;
    default:
        return &reservation_edit(e, number)->due;
    }
}

static void moved(void *context, uint32_t ref, uint32_t position)
{
    *place_of(context, ref) = position;
}

void due_init(struct hold_engine *e)
{
    hf_agenda_init(&e->due, moved, e, &e->memory_bytes);
}

void due_add(struct hold_engine *e, enum due_kind kind, uint32_t number,
             uint64_t when_us, uint64_t tie)
{
    assert(number <= DUE_NUMBER);
    struct hf_heap_entry entry = {when_us, tie,
                                  (uint32_t)kind << DUE_SHIFT | number};
    enum hf_status status = hf_agenda_add(&e->due, entry);
    assert(status == HF_OK); /* promised */
    (void)status;
}

enum hf_status due_load(struct hold_engine *e, enum due_kind kind,
                        uint32_t number, uint64_t when, uint64_t tie)
{
    if (hf_agenda_promise(&e->due) != HF_OK)
        return HF_NOMEM;
    hf_agenda_unpromise(&e->due);
    due_add(e, kind, number, when, tie);
    return HF_OK;
}

/* Handles the first entry of the heap, which is due: seldom, so that the sweep
 * before every record is short. */
__attribute__((noinline)) static void handle(struct hold_engine *e,
                                             uint32_t ref)
{
    static void (*const expire[])(struct hold_engine * e, uint32_t number) = {
        [DUE_GRANT] = grant_expire,   [DUE_SET] = set_expire,
        [DUE_WAITER] = waiter_expire, [DUE_SESSION] = session_expire,
        [DUE_MARK] = mark_expire,     [DUE_RESERVATION] = reservation_expire,
        [DUE_BUYER] = buyer_expire,   [DUE_ARRIVAL] = arrival_late,
    };

    expire[ref >> DUE_SHIFT](e, ref & DUE_NUMBER);
}

static uint64_t ended_due_us(const struct hold_engine *e)
{
    if (e->ended.first == 0)
        return UINT64_MAX;
    return reservation_at(e, e->ended.first)->ended_us +
           max_u64(e->bounds.ended_keep_ms, e->grace_ms) * US_PER_MS;
}

static uint64_t answered_due_us(const struct hold_engine *e)
{
    if ((e->done.first | e->refused.first) == 0)
        return UINT64_MAX;
    return request_at(e, request_oldest(e))->stored_us +
           e->bounds.request_keep_ms * US_PER_MS;
}

void due_sweep(struct hold_engine *e)
{
    const struct hf_heap_entry *first;

    e->steps = e->walked = 0;
    while (e->steps < HOLD_STEP_MAX &&
           (first = hf_agenda_first(&e->due)) != NULL &&
           first->when <= e->now_us) {
        handle(e, first->ref);
        e->steps++;
    }
    for (; e->steps < HOLD_STEP_MAX && ended_due_us(e) <= e->now_us; e->steps++)
        ended_forget_first(e);
    for (; e->steps < HOLD_STEP_MAX && answered_due_us(e) <= e->now_us;
         e->steps++)
        request_forget(e, request_oldest(e));
}

uint64_t hold_due_us(const struct hold_engine *e)
{
    const struct hf_heap_entry *first = hf_agenda_first(&e->due);

    return first == NULL ? UINT64_MAX : first->when;
}

static bool is_reservation(uint32_t ref)
{
    return ref >> DUE_SHIFT == DUE_RESERVATION;
}

uint64_t hold_pending_due_us(const struct hold_engine *e, uint64_t now_us)
{
    const struct hf_heap_entry *first =
        hf_agenda_find(&e->due, now_us, is_reservation, HOLD_STEPS_MAX);

    return first == NULL ? UINT64_MAX : first->when;
}

uint64_t hold_next_due_us(const struct hold_engine *e)
{
    uint64_t next_us = hold_due_us(e);

    uint64_t ended_us = ended_due_us(e);
    uint64_t answered_us = answered_due_us(e);

    if (ended_us < next_us)
        next_us = ended_us;
    return answered_us < next_us ? answered_us : next_us;
}

bool hold_is_due(const struct hold_engine *e, uint64_t now_us, uint32_t most)
{
    return hold_due_us(e) <= now_us &&
           hf_agenda_count_due(&e->due, now_us, most + 1) > most;
}

bool hold_is_behind(const struct hold_engine *e)
{
    return hold_due_us(e) <= e->now_us;
}
