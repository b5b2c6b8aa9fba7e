/* lender.c - borrowers and a lender without a thread, step by step. */
#include "holdfast/lender.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "support/lending.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 4

static struct {
    struct hf_lender *lender;
    struct hf_lender_opts opts;
    struct hf_atomic_u32 ready; /* a fiber has its loan, or has shut */
    struct hf_atomic_u32 served;
    struct hf_atomic_u32 accepted; /* of returns of one loan */
    struct hf_loan loan;           /* that several return */
    uint32_t place[FIBERS];        /* in which order they were served */
    enum hf_status seen[FIBERS];
} test;

static void prepare(uint32_t max)
{
    things_begin(&things);
    memset(&test, 0, sizeof test);
    test.opts = things_opts(&things, 0, max);
    test.opts.direct = true;
}

static void open_it(void)
{
    if (hf_lender_open(&test.lender, &test.opts) != HF_OK)
        test_fail(__FILE__, __LINE__, "no lender");
}

static struct hf_lender_stats figures(void)
{
    struct hf_lender_stats stats;

    hf_lender_stats(test.lender, &stats);
    return stats;
}

/* Nothing is out, nothing was lent twice, and all goes with the lender. */
static bool ends_well(FILE *explain)
{
    struct hf_lender_stats stats = figures();
    uint32_t max = stats.max;

    fprintf(explain, "out %u, waiting %u, borrows %llu, returns %llu; ",
            stats.out, stats.waiting, (unsigned long long)stats.borrows,
            (unsigned long long)stats.returns);
    if (stats.out != 0 || stats.waiting != 0 || stats.making != 0 ||
        stats.borrows != stats.returns)
        return false;
    hf_lender_close(test.lender);
    fprintf(explain, "alive %u, at most %u, wrong %u",
            things_read(&things.alive), things_read(&things.alive_most),
            things_read(&things.wrong));
    return things_read(&things.alive) == 0 &&
           things_read(&things.alive_most) <= max &&
           things_read(&things.wrong) == 0;
}

static uint64_t some_deadline(void)
{
    uint64_t kind = schedule_random(3);

    return kind == 0   ? HF_NOW
           : kind == 1 ? HF_FOREVER
                       : schedule_now_ns() + schedule_random(3000);
}

/* ---- Anything goes. ---- */

static void mixed_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare(1 + (uint32_t)(seed % 2));
    test.opts.unfair = seed / 2 % 2 == 1;
    if (seed / 4 % 2 == 1)
        test.opts.validate = thing_validate;
    if (seed / 8 % 3 == 1)
        test.opts.reset = thing_reset;
    if (seed / 24 % 2 == 1)
        things.fail.value = 2;
    open_it();
}

static void mixed_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    for (int i = 0; i < 3; i++) {
        struct hf_loan loan;
        if (hf_lender_borrow(test.lender, "x", some_deadline(), &loan) != HF_OK)
            continue;
        struct thing *thing = loan.resource;
        thing_begin(&things, thing);
        hf_thread_pause();
        if (schedule_random(4) == 0)
            hf_u32_store(&thing->bad, 1, __ATOMIC_RELEASE);
        thing_end(thing);
        enum hf_status status = schedule_random(4) == 0
                                    ? hf_lender_discard(test.lender, &loan)
                                    : hf_lender_return(test.lender, &loan);
        if (status != HF_OK)
            schedule_wrong("a loan was not taken back");
        if (hf_lender_return(test.lender, &loan) != HF_INVALID)
            schedule_wrong("a loan was taken back twice");
        if (schedule_random(8) == 0)
            hf_lender_renew(test.lender);
    }
}

static bool mixed_check(void *context, FILE *explain)
{
    (void)context;
    return ends_well(explain);
}

TEST(nothing_is_lent_twice_or_lost_and_nobody_is_forgotten)
{
    struct schedule_case c = {.name = "lender mixed",
                              .fibers = FIBERS,
                              .setup = mixed_setup,
                              .body = mixed_body,
                              .check = mixed_check,
                              .schedules = 30000};
    schedule_check(&c);
}

/* ---- Strict order. ---- */

static void order_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    prepare(1);
    open_it();
}

/* Fiber 0 has it while the others come, one after the other; then it gives it
 * back and wants it again, as quickly as it can. */
static void order_body(void *context, unsigned fiber)
{
    struct hf_loan loan;

    (void)context;
    if (fiber == 0) {
        if (hf_lender_borrow(test.lender, "0", HF_NOW, &loan) != HF_OK)
            schedule_wrong("nothing to begin with");
        hf_u32_store(&test.ready, 1, __ATOMIC_RELEASE);
        while (figures().waiting < FIBERS - 1)
            hf_thread_pause();
        if (hf_lender_return(test.lender, &loan) != HF_OK)
            schedule_wrong("return");
    } else {
        while (hf_u32_load(&test.ready, __ATOMIC_ACQUIRE) == 0 ||
               figures().waiting < fiber - 1)
            hf_thread_pause();
    }
    if (hf_lender_borrow(test.lender, "again", HF_FOREVER, &loan) != HF_OK)
        schedule_wrong("borrow");
    test.place[fiber] = hf_u32_add(&test.served, 1, __ATOMIC_RELAXED);
    if (hf_lender_return(test.lender, &loan) != HF_OK)
        schedule_wrong("return");
}

static bool order_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "places %u %u %u %u; ", test.place[0], test.place[1],
            test.place[2], test.place[3]);
    return test.place[1] == 0 && test.place[2] == 1 && test.place[3] == 2 &&
           test.place[0] == 3 && ends_well(explain);
}

TEST(nobody_passes_a_waiter)
{
    struct schedule_case c = {.name = "lender order",
                              .fibers = FIBERS,
                              .setup = order_setup,
                              .body = order_body,
                              .check = order_check};
    schedule_check(&c);
}

/* The one it gets turns out to be broken: fiber 1 keeps its place. */
static void kept_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    prepare(1);
    test.opts.validate = thing_validate;
    open_it();
}

static void kept_body(void *context, unsigned fiber)
{
    struct hf_loan loan;

    (void)context;
    if (fiber == 0) {
        if (hf_lender_borrow(test.lender, "0", HF_NOW, &loan) != HF_OK)
            schedule_wrong("nothing to begin with");
        struct thing *thing = loan.resource;
        hf_u32_store(&test.ready, 1, __ATOMIC_RELEASE);
        while (figures().waiting < FIBERS - 1)
            hf_thread_pause();
        hf_u32_store(&thing->bad, 1, __ATOMIC_RELEASE);
        if (hf_lender_return(test.lender, &loan) != HF_OK)
            schedule_wrong("return");
        test.place[0] = 3;
        return;
    }
    order_body(context, fiber);
}

TEST(who_got_a_broken_one_keeps_its_place)
{
    struct schedule_case c = {.name = "lender place kept",
                              .fibers = FIBERS,
                              .setup = kept_setup,
                              .body = kept_body,
                              .check = order_check};
    schedule_check(&c);
}

/* ---- A deadline and a hand-over at the same time. ---- */

static void deadline_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare(1);
    test.opts.unfair = seed % 2 == 1;
    open_it();
}

static void deadline_body(void *context, unsigned fiber)
{
    struct hf_loan loan;
    uint64_t deadline_ns = SCHEDULE_START_NS + 1000 + schedule_random(4000);

    (void)context;
    if (fiber == 0) {
        if (hf_lender_borrow(test.lender, "0", HF_NOW, &loan) != HF_OK)
            schedule_wrong("nothing to begin with");
        hf_u32_store(&test.ready, 1, __ATOMIC_RELEASE);
        while (schedule_now_ns() < deadline_ns)
            hf_thread_pause();
        if (hf_lender_return(test.lender, &loan) != HF_OK)
            schedule_wrong("return");
        return;
    }
    while (hf_u32_load(&test.ready, __ATOMIC_ACQUIRE) == 0)
        hf_thread_pause();
    test.seen[fiber] = hf_lender_borrow(
        test.lender, "x", fiber == 1 ? HF_FOREVER : deadline_ns, &loan);
    if (test.seen[fiber] == HF_TIMEOUT && schedule_now_ns() < deadline_ns)
        schedule_wrong("too early");
    if (test.seen[fiber] == HF_OK &&
        hf_lender_return(test.lender, &loan) != HF_OK)
        schedule_wrong("return");
}

static bool deadline_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%s; ", hf_status_text(test.seen[1]));
    struct hf_loan loan;
    return test.seen[1] == HF_OK &&
           hf_lender_borrow(test.lender, "end", HF_NOW, &loan) == HF_OK &&
           hf_lender_return(test.lender, &loan) == HF_OK &&
           things_read(&things.made) == 1 && ends_well(explain);
}

TEST(a_deadline_races_a_hand_over_and_nothing_is_lost)
{
    struct schedule_case c = {.name = "lender deadline",
                              .fibers = FIBERS,
                              .setup = deadline_setup,
                              .body = deadline_body,
                              .check = deadline_check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- A create that fails. ---- */

static void failing_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare(1);
    test.opts.unfair = seed % 2 == 1;
    things.fail.value = 2;
    open_it();
}

static void failing_body(void *context, unsigned fiber)
{
    struct hf_loan loan;

    (void)context;
    test.seen[fiber] = hf_lender_borrow(test.lender, "x", HF_FOREVER, &loan);
    if (test.seen[fiber] != HF_OK)
        return;
    hf_u32_add(&test.served, 1, __ATOMIC_RELAXED);
    if (hf_lender_return(test.lender, &loan) != HF_OK)
        schedule_wrong("return");
}

static bool failing_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%u served; ", test.served.value);
    return test.served.value == FIBERS - 2 && ends_well(explain);
}

/* There is room for one. Two creates fail, each for its borrower only: the next
 * who waits must be told to try. */
TEST(a_create_that_fails_wakes_the_next)
{
    struct schedule_case c = {.name = "lender failing create",
                              .fibers = FIBERS,
                              .setup = failing_setup,
                              .body = failing_body,
                              .check = failing_check};
    schedule_check(&c);
}

/* ---- One loan, returned by several. ---- */

static void twice_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare(1);
    test.opts.unfair = seed % 2 == 1;
    if (seed / 2 % 2 == 1)
        test.opts.reset = thing_reset;
    open_it();
    if (hf_lender_borrow(test.lender, "x", HF_NOW, &test.loan) != HF_OK)
        test_fail(__FILE__, __LINE__, "borrow");
}

static void twice_body(void *context, unsigned fiber)
{
    struct hf_loan loan;

    (void)context;
    enum hf_status status = fiber == 0
                                ? hf_lender_discard(test.lender, &test.loan)
                                : hf_lender_return(test.lender, &test.loan);
    if (status == HF_OK)
        hf_u32_add(&test.accepted, 1, __ATOMIC_RELAXED);
    else if (status != HF_INVALID)
        schedule_wrong("%s", hf_status_text(status));
    if (hf_lender_borrow(test.lender, "y", HF_FOREVER, &loan) != HF_OK)
        schedule_wrong("borrow");
    thing_begin(&things, loan.resource);
    if (hf_lender_return(test.lender, &test.loan) != HF_INVALID)
        schedule_wrong("another's was taken back");
    thing_end(loan.resource);
    if (hf_lender_return(test.lender, &loan) != HF_OK)
        schedule_wrong("return");
}

static bool twice_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%u accepted; ", test.accepted.value);
    return test.accepted.value == 1 && ends_well(explain);
}

TEST(a_loan_is_taken_back_once)
{
    struct schedule_case c = {.name = "lender twice",
                              .fibers = 3,
                              .setup = twice_setup,
                              .body = twice_body,
                              .check = twice_check};
    schedule_check(&c);
}
