/* lender_check.c - validate on a pool while deadlines pass, step by step. */
#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/lender.h"
#include "support/lending.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 3

static struct {
    struct hf_lender *lender;
    struct hf_pool *pool;
    struct hf_lender_opts opts;
    enum hf_pool_reject reject;
    bool ends; /* the pool is shut while it is used */
    struct hf_atomic_u32 open;
    struct hf_atomic_u32 left;
    struct hf_atomic_u64 lent;
    struct hf_lender_stats stats; /* before close */
} test;

static int slow_validate(void *context, void *resource)
{
    for (uint64_t i = schedule_random(12); i > 0; i--)
        hf_thread_pause();
    return thing_validate(context, resource);
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    things_begin(&things);
    memset(&test, 0, sizeof test);
    test.opts = things_opts(&things, 0, 1 + (uint32_t)(seed % 2));
    test.opts.unfair = seed / 2 % 2 == 1;
    test.opts.validate = slow_validate;
    test.opts.pause_ns = 500;
    test.opts.pause_max_ns = 1000;
    test.ends = seed / 4 % 4 == 1;
    test.reject = seed / 4 % 4 == 2 ? HF_POOL_DISCARD : HF_POOL_ABORT;
    things.spoil.value = (uint32_t)(seed / 16 % 3);
}

static void open_it(void)
{
    const struct hf_pool_opts opts = {
        .max_threads = 1, .queue_max = 1, .reject = test.reject};

    if (hf_pool_open(&test.pool, &opts) != HF_OK)
        schedule_wrong("no pool");
    test.opts.pool = test.pool;
    if (hf_lender_open(&test.lender, &test.opts) != HF_OK)
        schedule_wrong("no lender");
    hf_u32_store(&test.open, 1, __ATOMIC_RELEASE);
}

static void await(struct hf_atomic_u32 *word, uint32_t count)
{
    while (hf_u32_load(word, __ATOMIC_ACQUIRE) < count)
        hf_thread_pause();
}

static void use(void)
{
    uint64_t kind = schedule_random(4);
    uint64_t deadline_ns =
        kind == 0 ? HF_FOREVER
                  : schedule_now_ns() + schedule_random(3000) * kind;
    struct hf_loan loan;
    enum hf_status status =
        hf_lender_borrow(test.lender, "x", deadline_ns, &loan);

    if (status == HF_TIMEOUT && deadline_ns != HF_FOREVER)
        return;
    if (status != HF_OK)
        schedule_wrong("borrow: %s", hf_status_text(status));
    struct thing *thing = loan.resource;
    thing_begin(&things, thing);
    hf_u64_add(&test.lent, 1, __ATOMIC_RELAXED);
    if (schedule_random(3) == 0)
        hf_u32_store(&thing->bad, 1, __ATOMIC_RELEASE);
    thing_end(thing);
    if (hf_lender_return(test.lender, &loan) != HF_OK)
        schedule_wrong("return");
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0)
        open_it();
    await(&test.open, 1);
    use();
    if (fiber == 1 && test.ends)
        (void)hf_pool_shutdown_now(test.pool, NULL, NULL);
    use();
    hf_u32_add(&test.left, 1, __ATOMIC_RELEASE);
    if (fiber != 0)
        return;
    await(&test.left, FIBERS);
    hf_lender_shutdown(test.lender);
    if (hf_lender_await(test.lender, HF_FOREVER) != HF_OK)
        schedule_wrong("something is out for ever");
    hf_lender_stats(test.lender, &test.stats);
    hf_lender_close(test.lender);
    hf_pool_close(test.pool);
}

static bool check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "alive %u, at most %u, wrong %u; lent %llu and %llu",
            things_read(&things.alive), things_read(&things.alive_most),
            things_read(&things.wrong), (unsigned long long)test.lent.value,
            (unsigned long long)test.stats.borrows);
    return things_read(&things.alive) == 0 &&
           things_read(&things.alive_most) <= test.opts.max &&
           things_read(&things.wrong) == 0 &&
           test.stats.borrows == test.lent.value;
}

/* Whoever leaves, and whatever the pool does, nothing is lost or lent twice,
 * and who waits for ever is served. */
TEST(nothing_is_lost_when_borrowers_leave_a_validate)
{
    struct schedule_case c = {.name = "lender check",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = body,
                              .check = check};
    schedule_check(&c);
}
