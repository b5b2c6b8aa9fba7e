/* lender_check.c - is a resource fit to be lent?
 *
 * validate is called by the borrower or, if there is a pool and the borrower
 * has a deadline, by a task of the pool that the borrower waits for:
 *
 *   RUNNING --- validate has returned ------> DONE: the borrower has the slot
 *      `------- the borrower's time is over -> LEFT: the task has it
 *
 * Who changes the state first says which. A task that finds LEFT gives the
 * resource back, or destroys it, for somebody who has gone.
 */
#include <assert.h>

#include "base/memory.h"
#include "exec/pool_state.h"
#include "holdfast/future.h"
#include "keep/lender_state.h"

enum {
    CHECK_RUNNING,
    CHECK_DONE,    /* `code` says whether it is fit */
    CHECK_NOT_RUN, /* the pool dropped the task */
    CHECK_LEFT,
};

struct lender_check {
    struct hf_atomic_u32 state; /* (a) */
    int code;                   /* the task's, then the borrower's */
    struct hf_event ended;
};

enum hf_status hf_lender_checks_open(struct hf_lender *lender)
{
    if (lender->opts.pool == NULL || !lender->looks)
        return HF_OK;
    lender->checks =
        hf_alloc_zeroed(lender->opts.room * sizeof *lender->checks);
    return lender->checks == NULL ? HF_NOMEM : HF_OK;
}

static int validate(struct hf_lender *lender, uint32_t index)
{
    /* Relaxed: the slot is the caller's. */
    void *resource =
        hf_ptr_load(&lender->slots[index].resource, __ATOMIC_RELAXED);

    lender_count(&lender->validated);
    return lender->opts.validate(lender->opts.context, resource);
}

/* What is learned of one that was never lent before is learned of how it was
 * made. */
static void learn(struct hf_lender *lender, uint32_t index, int code)
{
    struct lender_slot *slot = &lender->slots[index];

    if (!slot->fresh)
        return;
    slot->fresh = false;
    if (code == 0)
        hf_lender_made_good(lender);
    else
        hf_lender_made_bad(lender, code);
}

/* ---- On the pool. ---- */

/* The task is over in this way, or did not run. */
static void end_check(struct hf_lender *lender, uint32_t index, uint32_t how,
                      int code)
{
    struct lender_check *check = &lender->checks[index];
    uint32_t state = CHECK_RUNNING;

    check->code = code;
    /* Release: the code. Acquire: what who has left did before. */
    if (hf_u32_cas(&check->state, &state, how, __ATOMIC_ACQ_REL)) {
        hf_event_wake(&check->ended, 1);
        return;
    }
    assert(state == CHECK_LEFT);
    if (how == CHECK_DONE)
        learn(lender, index, code);
    if (code == 0)
        hf_lender_put_back(lender, index);
    else
        hf_lender_drop(lender, index, code);
}

static int check_task(void *argument)
{
    struct lender_slot *slot = argument;
    struct hf_lender *lender = slot->lender;
    uint32_t index = (uint32_t)(slot - lender->slots);

    end_check(lender, index, CHECK_DONE, validate(lender, index));
    return 0;
}

/* It was dropped; or validate has ended its thread, and may not be asked
 * again. Else the slot may be another's by now. */
static void check_over(void *context, const struct hf_outcome *outcome)
{
    struct lender_slot *slot = context;
    struct hf_lender *lender = slot->lender;
    uint32_t index = (uint32_t)(slot - lender->slots);

    if (outcome->status == HF_CANCELLED)
        end_check(lender, index, CHECK_NOT_RUN, 0);
    else if (outcome->status != HF_OK)
        end_check(lender, index, CHECK_DONE, outcome->code);
    hf_lender_release(lender);
}

static bool start_check(struct hf_lender *lender, uint32_t index)
{
    static const struct hf_task_opts opts = {.name = "lender"};
    struct lender_slot *slot = &lender->slots[index];
    struct hf_future *future;

    /* Relaxed: the pool publishes it. */
    hf_u32_store(&lender->checks[index].state, CHECK_RUNNING, __ATOMIC_RELAXED);
    lender_retain(lender);
    if (hf_pool_submit(lender->opts.pool, check_task, slot, &opts, &future) !=
        HF_OK) {
        hf_lender_release(lender);
        return false;
    }
    if (hf_future_then(future, check_over, slot) != HF_OK) {
        /* No memory: we take it back, or wait for it ourselves. */
        struct hf_outcome outcome;
        (void)hf_future_cancel(future);
        (void)hf_future_get(future, HF_FOREVER, &outcome);
        check_over(slot, &outcome);
    }
    hf_future_release(future);
    return true;
}

static enum hf_status look_ended(void *context)
{
    struct lender_check *check = context;

    /* Acquire: the code. */
    return hf_u32_load(&check->state, __ATOMIC_ACQUIRE) == CHECK_RUNNING
               ? HF_PENDING
               : HF_OK;
}

/* HF_TIMEOUT: the slot is no longer the caller's. */
static enum hf_status check_elsewhere(struct hf_lender *lender, uint32_t index,
                                      uint64_t deadline_ns, int *code)
{
    struct lender_check *check = &lender->checks[index];
    uint32_t state = CHECK_RUNNING;

    if (!start_check(lender, index)) {
        *code = validate(lender, index);
        return HF_OK;
    }
    if (hf_event_until(&check->ended, look_ended, check, lender->clock,
                       deadline_ns) != HF_OK &&
        hf_u32_cas(&check->state, &state, CHECK_LEFT, __ATOMIC_ACQ_REL))
        return HF_TIMEOUT;
    /* Acquire: as above; it may have ended just now. */
    if (hf_u32_load(&check->state, __ATOMIC_ACQUIRE) == CHECK_NOT_RUN)
        *code = validate(lender, index);
    else
        *code = check->code;
    return HF_OK;
}

/* ---- For the borrower. ---- */

/* A task that waited for another of its pool could wait in vain. */
static bool is_bounded(const struct hf_lender *lender, uint64_t deadline_ns)
{
    return lender->checks != NULL && deadline_ns != HF_NOW &&
           deadline_ns != HF_FOREVER && !hf_pool_is_mine(lender->opts.pool);
}

bool hf_lender_trusts(struct hf_lender *lender, uint32_t index,
                      uint64_t *now_ns)
{
    uint64_t trust_ns = lender->opts.trust_ns;

    *now_ns = 0;
    if (!lender->looks)
        return true;
    if (trust_ns == 0)
        return false;
    *now_ns = lender_now(lender);
    /* Relaxed: written by who had it before us. */
    uint64_t back_ns =
        hf_u64_load(&lender->slots[index].idle_ns, __ATOMIC_RELAXED);
    if (*now_ns - back_ns >= trust_ns) {
        *now_ns = 0;
        return false;
    }
    learn(lender, index, 0);
    return true;
}

enum hf_status hf_lender_check(struct hf_lender *lender, uint32_t index,
                               uint64_t deadline_ns, int *code)
{
    *code = 0;
    if (is_bounded(lender, deadline_ns)) {
        enum hf_status status =
            check_elsewhere(lender, index, deadline_ns, code);
        if (status != HF_OK) {
            hf_lender_miss(lender);
            return status;
        }
    } else {
        *code = validate(lender, index);
    }
    learn(lender, index, *code);
    return HF_OK;
}
