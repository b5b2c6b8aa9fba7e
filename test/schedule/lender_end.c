/* lender_end.c - a lender's thread, its bounds and its end, step by step. */
#include "base/atomic.h"
#include "base/memory.h"
#include "base/thread.h"
#include "holdfast/lender.h"
#include "support/lending.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 4

static struct {
    struct hf_lender *lender;
    struct hf_lender_opts opts;
    struct hf_atomic_u32 open;
    struct hf_atomic_u32 left; /* fibers that begin no call any more */
    struct hf_atomic_u32 lent;
    enum hf_status seen[FIBERS];
} test;

static void prepare(uint32_t min, uint32_t max)
{
    things_begin(&things);
    memset(&test, 0, sizeof test);
    test.opts = things_opts(&things, min, max);
}

static void open_it(void)
{
    if (hf_lender_open(&test.lender, &test.opts) != HF_OK)
        schedule_wrong("open");
    hf_u32_store(&test.open, 1, __ATOMIC_RELEASE);
}

static void await(struct hf_atomic_u32 *word, uint32_t count)
{
    while (hf_u32_load(word, __ATOMIC_ACQUIRE) < count)
        hf_thread_pause();
}

static void leave(void)
{
    hf_u32_add(&test.left, 1, __ATOMIC_RELEASE);
}

static bool all_gone(FILE *explain)
{
    fprintf(explain, "alive %u, at most %u, wrong %u",
            things_read(&things.alive), things_read(&things.alive_most),
            things_read(&things.wrong));
    return things_read(&things.alive) == 0 &&
           things_read(&things.alive_most) <= test.opts.max &&
           things_read(&things.wrong) == 0;
}

static bool gone_check(void *context, FILE *explain)
{
    (void)context;
    return all_gone(explain);
}

/* ---- With its thread. ---- */

static void thread_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare((uint32_t)(seed % 2), 2);
    test.opts.unfair = seed / 2 % 2 == 1;
    test.opts.pause_ns = 1000;
    test.opts.pause_max_ns = 3000;
    things.fail.value = (uint32_t)(seed / 4 % 3);
    if (seed / 12 % 2 == 1) {
        test.opts.idle_ns = 2000;
        test.opts.age_ns = 5000;
        test.opts.leak_ns = 3000;
    }
    if (seed / 24 % 2 == 1) { /* new ones that are no good */
        test.opts.validate = thing_validate;
        test.opts.trust_ns = seed / 48 % 2 * 1000;
        things.spoil.value = (uint32_t)(seed / 96 % 3);
    }
}

static void use(uint64_t deadline_ns)
{
    struct hf_loan loan;
    enum hf_status status =
        hf_lender_borrow(test.lender, "x", deadline_ns, &loan);

    if (status == HF_OK) {
        thing_begin(&things, loan.resource);
        hf_thread_pause();
        thing_end(loan.resource);
        status = schedule_random(4) == 0 ? hf_lender_discard(test.lender, &loan)
                                         : hf_lender_return(test.lender, &loan);
        if (status != HF_OK)
            schedule_wrong("return");
    } else if (status != HF_TIMEOUT || deadline_ns == HF_FOREVER) {
        schedule_wrong("borrow: %s", hf_status_text(status));
    }
}

static void thread_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0)
        open_it();
    await(&test.open, 1);
    for (int i = 0; i < 2; i++)
        use(schedule_random(2) == 0
                ? HF_FOREVER
                : schedule_now_ns() + schedule_random(4000));
    leave();
    if (fiber == 0) {
        await(&test.left, 3);
        hf_lender_close(test.lender);
    }
}

/* Whoever waits for ever is served, whatever fails and breaks. */
TEST(the_thread_makes_what_is_waited_for)
{
    struct schedule_case c = {.name = "lender thread",
                              .fibers = 3,
                              .setup = thread_setup,
                              .body = thread_body,
                              .check = gone_check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- The end. ---- */

static void close_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare(0, 2);
    test.opts.direct = true;
    test.opts.unfair = seed % 2 == 1;
    if (seed / 2 % 2 == 1)
        test.opts.reset = thing_reset;
    if (hf_lender_open(&test.lender, &test.opts) != HF_OK)
        test_fail(__FILE__, __LINE__, "open");
}

static uint32_t waiting(void)
{
    struct hf_lender_stats stats;

    hf_lender_stats(test.lender, &stats);
    return stats.waiting;
}

/* Two have one each, a third waits; then the lender is closed, and freed as
 * soon as the last is back: whoever is still inside a call must not mind. */
static void close_body(void *context, unsigned fiber)
{
    struct hf_loan loan;

    (void)context;
    if (fiber == 0) {
        await(&test.lent, 2);
        while (waiting() == 0 && things_read(&test.left) == 0)
            hf_thread_pause();
        hf_lender_close(test.lender);
        return;
    }
    if (fiber == 3) {
        await(&test.lent, 2);
        uint64_t deadline_ns = schedule_random(2) == 0
                                   ? HF_FOREVER
                                   : schedule_now_ns() + schedule_random(4000);
        test.seen[3] = hf_lender_borrow(test.lender, "3", deadline_ns, &loan);
        hf_u32_add(&test.left, 1, __ATOMIC_SEQ_CST);
        if (test.seen[3] == HF_OK &&
            hf_lender_return(test.lender, &loan) != HF_OK)
            schedule_wrong("return");
        return;
    }
    if (hf_lender_borrow(test.lender, "x", HF_FOREVER, &loan) != HF_OK)
        schedule_wrong("borrow");
    hf_u32_add(&test.lent, 1, __ATOMIC_SEQ_CST);
    /* the third has come, and none of these goes before it has */
    while (waiting() == 0 && things_read(&test.left) == 0)
        hf_thread_pause();
    if (hf_lender_return(test.lender, &loan) != HF_OK)
        schedule_wrong("return");
}

static bool close_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%s; ", hf_status_text(test.seen[3]));
    return (test.seen[3] == HF_CLOSED || test.seen[3] == HF_OK ||
            test.seen[3] == HF_TIMEOUT) &&
           all_gone(explain);
}

TEST(close_waits_and_frees_behind_the_last)
{
    struct schedule_case c = {.name = "lender close",
                              .fibers = FIBERS,
                              .setup = close_setup,
                              .body = close_body,
                              .check = close_check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- Bounds that change, and upkeep by several. ---- */

static void bounds_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare(0, 3);
    test.opts.direct = true;
    test.opts.unfair = seed % 2 == 1;
    test.opts.idle_ns = 500;
    test.opts.age_ns = 3000;
    test.opts.leak_ns = 100;
    if (hf_lender_open(&test.lender, &test.opts) != HF_OK)
        test_fail(__FILE__, __LINE__, "open");
}

static void ignore(void *context, const struct hf_lender_note *note)
{
    (void)context;
    if (note->resource == NULL || note->who == NULL ||
        (note->who[0] != 'x' && note->who[0] != '\0'))
        schedule_wrong("a loan of nothing to nobody");
}

static void bounds_body(void *context, unsigned fiber)
{
    (void)context;
    for (int i = 0; i < 3; i++) {
        if (fiber > 0) {
            use(HF_FOREVER);
            continue;
        }
        uint32_t max = 1 + (uint32_t)schedule_random(3);
        if (hf_lender_resize(test.lender, (uint32_t)schedule_random(max), max))
            schedule_wrong("resize");
        (void)hf_lender_tend(test.lender);
        (void)hf_lender_out(test.lender, ignore, NULL);
        if (schedule_random(2) == 0)
            hf_lender_renew(test.lender);
    }
    (void)hf_lender_tend(test.lender);
}

static bool bounds_check(void *context, FILE *explain)
{
    struct hf_lender_stats stats;

    (void)context;
    hf_lender_stats(test.lender, &stats);
    fprintf(explain, "idle %u, max %u, leaked %llu; ", stats.idle, stats.max,
            (unsigned long long)stats.leaked);
    if (stats.out != 0 || stats.idle > stats.max ||
        stats.leaked != things_read(&things.events[HF_LENDER_LEAKED]) ||
        stats.leaked > stats.borrows)
        return false;
    hf_lender_close(test.lender);
    return all_gone(explain);
}

TEST(bounds_change_while_others_borrow)
{
    struct schedule_case c = {.name = "lender bounds",
                              .fibers = 3,
                              .setup = bounds_setup,
                              .body = bounds_body,
                              .check = bounds_check};
    schedule_check(&c);
}
