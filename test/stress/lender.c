/* lender.c - 32 real threads borrow, return, break and wait.
 *
 * tests: also under sanitizers
 *
 * Whoever is forgotten leaves the run hanging, and it is stopped as failed.
 */
#include "holdfast/lender.h"

#include <sched.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/lending.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32
#define LENT    4u /* at the same time, when it is closed */

static struct {
    struct hf_lender *lender;
    uint32_t loans; /* of each thread */
    struct hf_atomic_u32 wrong;
    struct hf_atomic_u64 got;
    struct hf_atomic_u64 late;
    struct hf_atomic_u32 go; /* close has begun, or will */
} test;

static uint32_t rounds(uint32_t count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 8 : count;
}

static void expect(bool condition)
{
    if (!condition)
        hf_u32_add(&test.wrong, 1, __ATOMIC_RELAXED);
}

static void one_loan(struct hf_random *random)
{
    struct hf_loan loan;
    uint64_t deadline_ns = HF_FOREVER;

    if (hf_random_below(random, 8) == 0)
        deadline_ns = HF_NOW;
    else if (hf_random_below(random, 8) == 0)
        deadline_ns = hf_clock_now_ns(hf_clock_system()) +
                      hf_random_below(random, 200000);
    enum hf_status status =
        hf_lender_borrow(test.lender, "stress", deadline_ns, &loan);
    if (status == HF_TIMEOUT) {
        expect(deadline_ns != HF_FOREVER &&
               hf_clock_now_ns(hf_clock_system()) >= deadline_ns);
        hf_u64_add(&test.late, 1, __ATOMIC_RELAXED);
        return;
    }
    expect(status == HF_OK);
    if (status != HF_OK)
        return;
    hf_u64_add(&test.got, 1, __ATOMIC_RELAXED);
    struct thing *thing = loan.resource;
    thing_begin(&things, thing);
    uint64_t what = hf_random_below(random, 4000);
    if (what < 10)
        hf_u32_store(&thing->bad, 1, __ATOMIC_SEQ_CST);
    if (what % 4 == 0)
        sched_yield(); /* others find it out */
    thing_end(thing);
    expect((what >= 10 && what < 20
                ? hf_lender_discard(test.lender, &loan)
                : hf_lender_return(test.lender, &loan)) == HF_OK);
    if (what < 80)
        expect(hf_lender_return(test.lender, &loan) == HF_INVALID);
    if (what == 80)
        hf_lender_renew(test.lender);
    if (what == 81)
        (void)hf_lender_tend(test.lender);
    if (what > 3980)
        (void)hf_lender_out(test.lender, NULL, NULL);
}

static void body(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (uint32_t i = 0; i < test.loans; i++)
        one_loan(&random);
}

static void run(struct hf_lender_opts *opts, uint32_t loans)
{
    struct hf_lender_stats stats;

    things_begin(&things);
    memset(&test, 0, sizeof test);
    test.loans = rounds(loans);
    opts->context = &things;
    CHECK_EQ(hf_lender_open(&test.lender, opts), HF_OK);
    test_threads(THREADS, body, NULL);
    hf_lender_stats(test.lender, &stats);
    CHECK_EQ(things_read(&test.wrong), 0);
    CHECK_EQ(stats.borrows, test.got.value);
    CHECK_EQ(stats.returns, test.got.value);
    CHECK_EQ(stats.timeouts, test.late.value);
    CHECK_EQ(stats.out, 0);
    CHECK_EQ(stats.waiting, 0);
    CHECK(stats.created < THINGS_MAX);
    hf_lender_close(test.lender);
    CHECK_EQ(things_read(&things.alive), 0);
    CHECK_EQ(things_read(&things.wrong), 0);
    CHECK(things_read(&things.alive_most) <= opts->max);
}

static struct hf_lender_opts opts_for(uint32_t max)
{
    struct hf_lender_opts opts = things_opts(&things, 1, max);

    opts.validate = thing_validate;
    return opts;
}

TEST(direct_in_order)
{
    struct hf_lender_opts opts = opts_for(4);

    opts.direct = true;
    run(&opts, 2500);
}

TEST(direct_unfair)
{
    struct hf_lender_opts opts = opts_for(4);

    opts.direct = true;
    opts.unfair = true;
    run(&opts, 5000);
}

TEST(with_a_thread_in_order)
{
    struct hf_lender_opts opts = opts_for(3);

    opts.reset = thing_reset;
    opts.age_ns = 20000000;
    opts.idle_ns = 5000000;
    opts.leak_ns = 1000000;
    run(&opts, 2500);
}

TEST(with_a_thread_unfair)
{
    struct hf_lender_opts opts = opts_for(5);

    opts.unfair = true;
    opts.trust_ns = 100000;
    run(&opts, 5000);
}

TEST(as_many_as_threads)
{
    struct hf_lender_opts opts = opts_for(THREADS);

    run(&opts, 4000);
}

/* ---- Close while others return and wait. ---- */

static void close_body(void *context, int index)
{
    struct hf_lender_stats stats;
    struct hf_loan loan;

    (void)context;
    if (index == 0) { /* when four have one and all others wait */
        /* One after the other: who waits may have one a moment later. */
        do {
            hf_lender_stats(test.lender, &stats);
        } while (stats.out < LENT);
        do {
            hf_lender_stats(test.lender, &stats);
        } while (stats.waiting < THREADS - 1 - LENT);
        hf_u32_store(&test.go, 1, __ATOMIC_SEQ_CST);
        hf_lender_close(test.lender);
        return;
    }
    enum hf_status status =
        hf_lender_borrow(test.lender, "x", HF_FOREVER, &loan);
    if (status == HF_OK) {
        while (things_read(&test.go) == 0)
            sched_yield();
        expect(hf_lender_return(test.lender, &loan) == HF_OK);
    } else {
        expect(status == HF_CLOSED);
    }
}

TEST(close_while_others_return_and_wait)
{
    for (uint32_t i = 0; i < rounds(80); i++) {
        struct hf_lender_opts opts = opts_for(LENT);
        opts.direct = i % 2 == 0;
        things_begin(&things);
        memset(&test, 0, sizeof test);
        CHECK_EQ(hf_lender_open(&test.lender, &opts), HF_OK);
        test_threads(THREADS, close_body, NULL);
        CHECK_EQ(things_read(&test.wrong), 0);
        CHECK_EQ(things_read(&things.wrong), 0);
        CHECK_EQ(things_read(&things.alive), 0);
    }
}
