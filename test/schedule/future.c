/* future.c - futures, step by step: one outcome, every wait ends, every call
 * is made once, and nothing is used after the last release. */
#include "holdfast/future.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "support/schedule.h"
#include "support/test.h"

static struct {
    struct hf_future *futures[2];
    struct hf_atomic_u32 won;    /* completions and cancellations */
    struct hf_atomic_u32 called; /* then() */
    struct hf_atomic_u32 codes;  /* outcomes seen, by the winner's bit */
    enum hf_status statuses[4];
    size_t index;
    bool any;
} test;

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    for (int i = 0; i < 2; i++)
        if (hf_future_open(&test.futures[i], NULL) != HF_OK)
            test_fail(__FILE__, __LINE__, "no memory");
    test.won.value = 0;
    test.called.value = 0;
    test.codes.value = 0;
}

static void see(const struct hf_outcome *outcome)
{
    hf_u32_or(&test.codes, 1u << (outcome->code + 1), __ATOMIC_RELAXED);
}

static void called(void *context, const struct hf_outcome *outcome)
{
    (void)context;
    hf_u32_add(&test.called, 1, __ATOMIC_RELAXED);
    see(outcome);
}

/* ---- One future: two complete, one cancels, all wait and let go. ---- */

static void one_body(void *context, unsigned fiber)
{
    const struct hf_outcome mine = {HF_FAILED, (int)fiber, NULL};
    struct hf_outcome outcome;
    struct hf_future *future = test.futures[0];

    (void)context;
    if (fiber > 0) /* each has a reference of its own */
        hf_future_retain(future);
    if (fiber == 3 && hf_future_then(future, called, NULL) != HF_OK)
        schedule_wrong("then failed");
    enum hf_status status = fiber == 2 ? hf_future_cancel(future)
                                       : hf_future_complete(future, &mine);
    hf_u32_add(&test.won, status == HF_OK, __ATOMIC_RELAXED);
    if (fiber != 3 && hf_future_then(future, called, NULL) != HF_OK)
        schedule_wrong("then failed");
    if (hf_future_get(future, HF_FOREVER, &outcome) != HF_OK)
        schedule_wrong("a wait without deadline ended");
    if ((status == HF_OK) && fiber != 2 && outcome.code != (int)fiber)
        schedule_wrong("the outcome is another's");
    see(&outcome);
    if (fiber > 0)
        hf_future_release(future);
}

static bool one_check(void *context, FILE *explain)
{
    uint32_t codes = hf_u32_load(&test.codes, __ATOMIC_RELAXED);
    uint32_t won = hf_u32_load(&test.won, __ATOMIC_RELAXED);
    uint32_t calls = hf_u32_load(&test.called, __ATOMIC_RELAXED);

    (void)context;
    fprintf(explain, "won %u, called %u, outcomes %x", won, calls, codes);
    hf_future_release(test.futures[0]);
    hf_future_release(test.futures[1]);
    return won == 1 && calls == 4 && (codes & (codes - 1)) == 0;
}

TEST(one_of_many_completes_and_all_see_the_same)
{
    struct schedule_case c = {.name = "one",
                              .fibers = 4,
                              .setup = setup,
                              .body = one_body,
                              .check = one_check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- Two futures: some wait for both, some for any, some not for long. ----
 */

static void two_body(void *context, unsigned fiber)
{
    const struct hf_outcome mine = {HF_OK, 0, NULL};
    const bool *late = context;
    size_t index = 9;

    if (fiber < 2) {
        if (hf_future_complete(test.futures[fiber], &mine) != HF_OK)
            schedule_wrong("somebody else has completed it");
        hf_future_release(test.futures[fiber]); /* ours was the first */
        return;
    }
    uint64_t deadline_ns =
        *late ? schedule_now_ns() + schedule_random(3000) : HF_FOREVER;
    enum hf_status status =
        fiber == 2 ? hf_future_any(test.futures, 2, deadline_ns, &index)
                   : hf_future_all(test.futures, 2, deadline_ns);
    if (status != HF_OK && !(*late && status == HF_TIMEOUT))
        schedule_wrong("status %d", status);
    if (status == HF_OK && fiber == 2 && index > 1)
        schedule_wrong("index %u", (unsigned)index);
    if (status == HF_OK && fiber == 2 &&
        hf_future_get(test.futures[index], HF_NOW, NULL) != HF_OK)
        schedule_wrong("that one is not completed");
    for (int i = 0; i < 2; i++)
        hf_future_release(test.futures[i]);
}

static void two_setup(void *context, uint64_t seed)
{
    setup(context, seed);
    for (int i = 0; i < 2; i++)
        for (int waiter = 0; waiter < 2; waiter++)
            hf_future_retain(test.futures[i]);
}

static void run_two(const char *name, bool late)
{
    struct schedule_case c = {.name = name,
                              .fibers = 4,
                              .setup = two_setup,
                              .body = two_body,
                              .context = &late,
                              .schedules = 20000};
    schedule_check(&c);
}

TEST(any_and_all_end)
{
    run_two("any and all", false);
}

TEST(any_and_all_end_in_time)
{
    run_two("any and all, with deadlines", true);
}
