/* Tests of hf_lender with a pool: a borrower leaves a validate that takes too
 * long, and what it left is not lost. */
#include "base/memory.h"
#include "base/thread.h"
#include "holdfast/event.h"
#include "support/lending.h"
#include "support/threads.h"

static struct hf_event gate;
static struct hf_atomic_u32 inside; /* calls of validate that have begun */
static struct hf_atomic_u32 opened;

static enum hf_status look_opened(void *context)
{
    (void)context;
    return things_read(&opened) != 0 ? HF_OK : HF_PENDING;
}

/* Does not return while the gate is closed. */
static int stuck_validate(void *context, void *resource)
{
    hf_u32_add(&inside, 1, __ATOMIC_SEQ_CST);
    (void)hf_event_until(&gate, look_opened, NULL, NULL, HF_FOREVER);
    return thing_validate(context, resource) == 0 ? 0 : 9;
}

static void open_gate(void)
{
    hf_u32_store(&opened, 1, __ATOMIC_SEQ_CST);
    hf_event_wake_all(&gate);
}

static void close_gate(void)
{
    hf_u32_store(&opened, 0, __ATOMIC_SEQ_CST);
    hf_u32_store(&inside, 0, __ATOMIC_SEQ_CST);
}

static void await(bool (*is_so)(struct hf_lender *lender),
                  struct hf_lender *lender)
{
    uint64_t end_ns = hf_clock_after_ms(NULL, 60000);

    while (!is_so(lender) && hf_clock_now_ns(NULL) < end_ns)
        hf_thread_pause();
    CHECK(is_so(lender));
}

static bool is_inside(struct hf_lender *lender)
{
    (void)lender;
    return things_read(&inside) == 1;
}

static bool is_idle(struct hf_lender *lender)
{
    return stats_of(lender).idle == 1;
}

static bool is_broken(struct hf_lender *lender)
{
    return stats_of(lender).broken == 1 && stats_of(lender).out == 0;
}

static struct hf_pool *open_pool(struct hf_pool_opts opts)
{
    struct hf_pool *pool;

    opts.max_threads = 1;
    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
    return pool;
}

/* With one resource that was lent and is back. */
static struct hf_lender *open_one(struct hf_pool *pool, bool unfair)
{
    struct hf_lender_opts opts = opts_of(0, 1);
    struct hf_loan loan;

    opts.direct = false;
    opts.unfair = unfair;
    opts.pool = pool;
    opts.validate = stuck_validate;
    open_gate();
    struct hf_lender *lender = open_with(&opts);
    CHECK_EQ(hf_lender_borrow(lender, "a", HF_FOREVER, &loan), HF_OK);
    CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    close_gate();
    return lender;
}

/* ---- A borrower that leaves. ---- */

static void leave(bool unfair, bool bad)
{
    struct hf_pool *pool = open_pool((struct hf_pool_opts){.name = "checks"});
    struct borrower borrower = {.lender = open_one(pool, unfair)};
    struct hf_thread thread;

    hf_u32_store(&things.all[0].bad, bad, __ATOMIC_SEQ_CST);
    borrower.deadline_ns = hands.now_ns + 50;
    CHECK_EQ(hf_thread_start(&thread, "borrower", borrower_run, &borrower),
             HF_OK);
    await(is_inside, borrower.lender);
    test_clock_await_sleepers(&hands, 2); /* the lender's thread, too */
    test_clock_advance(&hands, 50);
    hf_thread_join(&thread); /* though validate has not returned */
    CHECK_EQ(borrower.status, HF_TIMEOUT);
    CHECK_EQ(stats_of(borrower.lender).timeouts, 1);
    CHECK_EQ(stats_of(borrower.lender).out, 1); /* it is being looked at */
    open_gate();
    await(bad ? is_broken : is_idle, borrower.lender);
    CHECK_EQ(things_read(&things.events[HF_LENDER_BROKEN]), bad);
    CHECK_EQ(stats_of(borrower.lender).borrows, 1);
    /* and it is lent again, or another is made */
    CHECK_EQ(hf_lender_borrow(borrower.lender, "c", HF_FOREVER, &borrower.loan),
             HF_OK);
    CHECK_EQ(number_of(&borrower.loan), bad ? 1 : 0);
    CHECK_EQ(hf_lender_return(borrower.lender, &borrower.loan), HF_OK);
    end(borrower.lender);
    hf_pool_close(pool);
}

TEST(who_leaves_at_its_deadline_leaves_a_fit_one_to_others)
{
    leave(false, false);
    leave(true, false);
}

TEST(who_leaves_at_its_deadline_leaves_no_broken_one_behind)
{
    leave(false, true);
    leave(true, true);
}

/* What was left is handed to who waits by then. */
TEST(what_was_left_serves_the_next)
{
    struct hf_pool *pool = open_pool((struct hf_pool_opts){.name = "checks"});
    struct borrower one = {.lender = open_one(pool, false)};
    struct borrower two = {.lender = one.lender, .deadline_ns = HF_FOREVER};
    struct hf_thread threads[2];

    one.deadline_ns = hands.now_ns + 50;
    CHECK_EQ(hf_thread_start(&threads[0], "one", borrower_run, &one), HF_OK);
    await(is_inside, one.lender);
    CHECK_EQ(hf_thread_start(&threads[1], "two", borrower_run, &two), HF_OK);
    test_clock_await_sleepers(&hands, 3);
    test_clock_advance(&hands, 50);
    hf_thread_join(&threads[0]);
    CHECK_EQ(one.status, HF_TIMEOUT);
    open_gate();
    hf_thread_join(&threads[1]);
    CHECK_EQ(two.status, HF_OK);
    CHECK_EQ(number_of(&two.loan), 0);
    CHECK_EQ(hf_lender_return(two.lender, &two.loan), HF_OK);
    end(two.lender);
    hf_pool_close(pool);
}

/* ---- In time. ---- */

TEST(what_the_pool_finds_in_time_is_lent_or_replaced)
{
    struct hf_pool *pool = open_pool((struct hf_pool_opts){.name = "checks"});
    struct hf_lender *lender = open_one(pool, false);
    struct hf_loan loan;

    open_gate();
    for (uint32_t i = 0; i < 2; i++) {
        hf_u32_store(&things.all[0].bad, i, __ATOMIC_SEQ_CST);
        CHECK_EQ(hf_lender_borrow(lender, "b", HF_FOREVER - 1, &loan), HF_OK);
        CHECK_EQ(number_of(&loan), i);
        CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    }
    CHECK_EQ(stats_of(lender).broken, 1);
    CHECK_EQ(stats_of(lender).timeouts, 0);
    end(lender);
    hf_pool_close(pool);
}

/* ---- Where the pool does not do it, the borrower does. ---- */

TEST(a_pool_that_is_shut_is_no_obstacle)
{
    struct hf_pool *pool = open_pool((struct hf_pool_opts){.name = "checks"});
    struct hf_lender *lender = open_one(pool, false);
    struct hf_loan loan;

    hf_pool_shutdown(pool);
    open_gate();
    CHECK_EQ(hf_lender_borrow(lender, "b", HF_FOREVER - 1, &loan), HF_OK);
    CHECK_EQ(things_read(&inside), 1);
    CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    end(lender);
    hf_pool_close(pool);
}

static int hold_pool(void *arg)
{
    struct hf_atomic_u32 *begun = arg;

    hf_u32_store(begun, 1, __ATOMIC_SEQ_CST);
    (void)hf_event_until(&gate, look_opened, NULL, NULL, HF_FOREVER);
    return 0;
}

/* The only thread is busy, and the queue full: the task is dropped. */
TEST(a_pool_that_drops_the_task_is_no_obstacle)
{
    struct hf_pool *pool = open_pool(
        (struct hf_pool_opts){.queue_max = 1, .reject = HF_POOL_DISCARD});
    struct hf_lender *lender = open_one(pool, false);
    struct hf_atomic_u32 begun[2] = {{0}, {0}};
    struct borrower borrower = {.lender = lender,
                                .deadline_ns = HF_FOREVER - 1};
    struct hf_thread thread;

    CHECK_EQ(hf_pool_submit(pool, hold_pool, &begun[0], NULL, NULL), HF_OK);
    while (things_read(&begun[0]) == 0)
        hf_thread_pause();
    CHECK_EQ(hf_pool_submit(pool, hold_pool, &begun[1], NULL, NULL), HF_OK);
    CHECK_EQ(hf_thread_start(&thread, "borrower", borrower_run, &borrower),
             HF_OK);
    await(is_inside, lender); /* not in the pool: that is held */
    open_gate();
    hf_thread_join(&thread);
    CHECK_EQ(borrower.status, HF_OK);
    CHECK_EQ(hf_lender_return(lender, &borrower.loan), HF_OK);
    end(lender);
    hf_pool_close(pool);
}

static int borrow_task(void *arg)
{
    borrower_run(arg);
    return 0;
}

/* It would wait for itself. */
TEST(a_task_of_the_pool_validates_for_itself)
{
    struct hf_pool *pool = open_pool((struct hf_pool_opts){.name = "checks"});
    struct borrower borrower = {.lender = open_one(pool, false),
                                .deadline_ns = HF_FOREVER - 1};
    struct hf_future *future;

    open_gate();
    CHECK_EQ(hf_pool_submit(pool, borrow_task, &borrower, NULL, &future),
             HF_OK);
    CHECK_EQ(hf_future_get(future, HF_FOREVER, NULL), HF_OK);
    hf_future_release(future);
    CHECK_EQ(borrower.status, HF_OK);
    CHECK_EQ(hf_lender_return(borrower.lender, &borrower.loan), HF_OK);
    end(borrower.lender);
    hf_pool_close(pool);
}

/* ---- Without memory. ---- */

TEST(no_memory_is_told_and_nothing_is_left)
{
    struct hf_pool *pool = open_pool((struct hf_pool_opts){.name = "checks"});
    struct hf_lender_opts opts = opts_of(0, 2);
    struct hf_lender *lender = NULL;
    enum hf_status status = HF_NOMEM;
    struct hf_loan loan;

    opts.direct = false;
    opts.pool = pool;
    opts.validate = stuck_validate;
    for (uint64_t i = 0; status == HF_NOMEM; i++) {
        hf_memory_fail_after(i);
        status = hf_lender_open(&lender, &opts);
        hf_memory_fail_never();
    }
    CHECK_EQ(status, HF_OK);
    open_gate();
    /* a check that cannot be handed over is made by the borrower */
    CHECK_EQ(hf_lender_borrow(lender, "a", HF_FOREVER, &loan), HF_OK);
    CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    for (uint64_t i = 0; i < 4; i++) {
        hf_memory_fail_after(i);
        status = hf_lender_borrow(lender, "a", HF_FOREVER - 1, &loan);
        hf_memory_fail_never();
        CHECK_EQ(status, HF_OK);
        CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    }
    end(lender);
    hf_pool_close(pool);
}
