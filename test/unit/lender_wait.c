/* Tests of hf_lender: its thread, and those who wait. */
#include "base/thread.h"
#include "holdfast/event.h"
#include "holdfast/pool.h"
#include "support/lending.h"
#include "support/threads.h"

/* ---- With its thread. ---- */

static struct hf_lender_opts threaded(uint32_t min, uint32_t max)
{
    struct hf_lender_opts opts = opts_of(min, max);
    opts.direct = false;
    return opts;
}

static void await_figure(struct hf_lender *lender, size_t offset, uint64_t want)
{
    uint64_t end_ns = hf_clock_after_ms(NULL, 60000);
    uint64_t found;

    do {
        struct hf_lender_stats stats = stats_of(lender);
        memcpy(&found, (const char *)&stats + offset, sizeof found);
    } while (found < want && hf_clock_now_ns(hf_clock_system()) < end_ns);
    CHECK_EQ(found, want);
}

#define AWAIT(lender, figure, want) \
    await_figure((lender), offsetof(struct hf_lender_stats, figure), (want))

TEST(the_thread_makes_what_is_needed)
{
    struct hf_lender_opts opts = threaded(2, 3);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loans[3];

    AWAIT(lender, created, 2);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_lender_borrow(lender, NULL, HF_FOREVER, &loans[i]), HF_OK);
    CHECK_EQ(stats_of(lender).created, 3);
    CHECK_EQ(hf_lender_discard(lender, &loans[0]), HF_OK);
    CHECK_EQ(hf_lender_discard(lender, &loans[1]), HF_OK);
    AWAIT(lender, created, 4); /* up to min again */
    CHECK_EQ(hf_lender_return(lender, &loans[2]), HF_OK);
    end(lender);
}

TEST(without_its_thread_it_is_not_opened)
{
    struct hf_lender_opts opts = threaded(1, 2);
    struct hf_lender *lender = NULL;

    hf_thread_fail_after(0);
    CHECK_EQ(hf_lender_open(&lender, &opts), HF_NOMEM);
    CHECK(lender == NULL);
    opts.direct = true; /* needs none */
    CHECK_EQ(hf_lender_open(&lender, &opts), HF_OK);
    hf_thread_fail_never();
    end(lender);
}

/* Whoever only tries leaves the wish behind. */
TEST(a_try_leads_to_a_create)
{
    struct hf_lender_opts opts = threaded(0, 3);
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loan;
    enum hf_status status = hf_lender_borrow(lender, NULL, HF_NOW, &loan);

    AWAIT(lender, created, 1);
    if (status != HF_OK)
        while (hf_lender_borrow(lender, NULL, HF_NOW, &loan) != HF_OK)
            ;
    CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    end(lender);
}

TEST(creates_that_fail_are_tried_again_after_pauses)
{
    struct hf_lender_opts opts = threaded(1, 1);
    opts.pause_ns = 1000;
    opts.pause_max_ns = 4000;
    things_begin(&things);
    hf_u32_store(&things.fail, 4, __ATOMIC_SEQ_CST);
    opts.clock = test_clock(&hands);
    struct hf_lender *lender = open_with(&opts);
    static const uint64_t ceilings_ns[] = {1000, 2000, 4000, 4000};

    for (uint64_t i = 0; i < 4; i++) {
        AWAIT(lender, failed, i + 1);
        test_clock_await_sleepers(&hands, 1);
        test_clock_advance(&hands, ceilings_ns[i] / 2 - 1);
        CHECK_EQ(stats_of(lender).failed, i + 1);
        test_clock_advance(&hands, ceilings_ns[i] / 2 + 1);
    }
    AWAIT(lender, created, 1);
    struct hf_loan loan = borrow(lender, NULL);
    give_back(lender, &loan);
    end(lender);
}

TEST(the_thread_tells_of_leaks_when_they_are_due)
{
    struct hf_lender_opts opts = threaded(1, 1);
    opts.leak_ns = 1000;
    struct hf_lender *lender = open_with(&opts);
    struct hf_loan loan;

    CHECK_EQ(hf_lender_borrow(lender, "me", HF_FOREVER, &loan), HF_OK);
    test_clock_await_sleepers(&hands, 1);
    test_clock_advance(&hands, 1000);
    AWAIT(lender, leaked, 1);
    CHECK_EQ(hf_lender_return(lender, &loan), HF_OK);
    end(lender);
    CHECK_TEXT(things_leak(&things), strlen(things_leak(&things)), "me");
}

/* A create that hangs; whoever waits is served by a return. */
static struct hf_event stuck;
static struct hf_atomic_u32 stuck_now;
static struct hf_atomic_u32 let_go;

static enum hf_status look_let_go(void *context)
{
    (void)context;
    return things_read(&let_go) != 0 ? HF_OK : HF_PENDING;
}

static int create_stuck(void *context, void **resource)
{
    if (things_read(&things.made) > 0) {
        hf_u32_store(&stuck_now, 1, __ATOMIC_SEQ_CST);
        (void)hf_event_until(&stuck, look_let_go, NULL, NULL, HF_FOREVER);
    }
    return thing_create(context, resource);
}

static void slow_create_body(void *context, int index)
{
    struct hf_lender *lender = context;
    struct hf_loan loan;

    if (index == 0) {
        if (hf_lender_borrow(lender, "first", HF_FOREVER, &loan) != HF_OK)
            return;
        while (things_read(&stuck_now) == 0 || stats_of(lender).waiting == 0)
            ;
        (void)hf_lender_return(lender, &loan);
    } else {
        while (things_read(&things.made) == 0 || stats_of(lender).out == 0)
            ;
        /* Nothing but a return can serve this one. */
        if (hf_lender_borrow(lender, "second", HF_FOREVER, &loan) == HF_OK)
            (void)hf_lender_return(lender, &loan);
        hf_u32_store(&let_go, 1, __ATOMIC_SEQ_CST);
        hf_event_wake_all(&stuck);
    }
}

static void slow_create(struct hf_pool *pool)
{
    struct hf_lender_opts opts = threaded(0, 2);
    opts.create = create_stuck;
    opts.pool = pool;
    stuck_now.value = 0;
    let_go.value = 0;
    struct hf_lender *lender = open_with(&opts);
    test_threads(2, slow_create_body, lender);
    end(lender);
    CHECK_EQ(things_read(&things.made), 2);
}

TEST(a_slow_create_keeps_nobody_from_a_return)
{
    slow_create(NULL);
}

TEST(creates_run_on_a_pool)
{
    struct hf_pool *pool;
    struct hf_pool_opts opts = {.max_threads = 2};

    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
    slow_create(pool);
    hf_pool_close(pool);
}

/* A pool that is shut down: the lender's own thread creates. */
TEST(a_pool_that_refuses_is_no_obstacle)
{
    struct hf_pool *pool;
    struct hf_pool_opts pool_opts = {.max_threads = 1};
    struct hf_lender_opts opts = threaded(2, 2);

    CHECK_EQ(hf_pool_open(&pool, &pool_opts), HF_OK);
    hf_pool_shutdown(pool);
    opts.pool = pool;
    struct hf_lender *lender = open_with(&opts);
    AWAIT(lender, created, 2);
    end(lender);
    hf_pool_close(pool);
}

/* ---- Those who wait. ---- */

static struct {
    struct hf_lender *lender;
    struct hf_atomic_u32 turn; /* who may come */
    struct hf_atomic_u32 next; /* who is to be served */
    struct hf_atomic_u32 wrong;
    enum hf_status ends[8];
    uint64_t start_ns;
} line;

static void await_waiting(uint32_t count)
{
    uint64_t end_ns = hf_clock_after_ms(NULL, 60000);

    while (stats_of(line.lender).waiting != count)
        if (hf_clock_now_ns(hf_clock_system()) >= end_ns)
            abort();
}

static void in_line(void *context, int index)
{
    struct hf_loan loan;

    (void)context;
    while (things_read(&line.turn) != (uint32_t)index)
        ;
    if (index == 0) { /* has it, and lets the others come one by one */
        if (hf_lender_borrow(line.lender, NULL, HF_FOREVER, &loan) != HF_OK)
            abort();
        for (uint32_t i = 1; i < 8; i++) {
            hf_u32_store(&line.turn, i, __ATOMIC_SEQ_CST);
            await_waiting(i);
        }
        (void)hf_lender_return(line.lender, &loan);
        return;
    }
    if (hf_lender_borrow(line.lender, NULL, HF_FOREVER, &loan) != HF_OK ||
        hf_u32_add(&line.next, 1, __ATOMIC_SEQ_CST) != (uint32_t)index - 1)
        hf_u32_add(&line.wrong, 1, __ATOMIC_SEQ_CST);
    (void)hf_lender_return(line.lender, &loan);
}

TEST(who_waits_is_served_in_order)
{
    struct hf_lender_opts opts = opts_of(0, 1);

    memset(&line, 0, sizeof line);
    line.lender = open_with(&opts);
    test_threads(8, in_line, NULL);
    CHECK_EQ(things_read(&line.wrong), 0);
    CHECK_EQ(stats_of(line.lender).borrows, 8);
    CHECK_EQ(stats_of(line.lender).waits, 7);
    CHECK(stats_of(line.lender).wait_p99_ns != HF_INSPECT_NONE);
    end(line.lender);
}

static void with_deadline(void *context, int index)
{
    struct hf_loan loan;

    (void)context;
    if (index == 0) {
        await_waiting(2);
        test_clock_await_sleepers(&hands, 2);
        test_clock_advance(&hands, 99);
        test_clock_advance(&hands, 1);
        await_waiting(1);
        hf_lender_shutdown(line.lender);
        return;
    }
    line.ends[index] = hf_lender_borrow(
        line.lender, NULL, line.start_ns + (index == 1 ? 100 : 1000), &loan);
}

TEST(a_deadline_and_a_shut_end_a_wait)
{
    struct hf_lender_opts opts = opts_of(0, 1);

    memset(&line, 0, sizeof line);
    line.lender = open_with(&opts);
    struct hf_loan loan = borrow(line.lender, NULL);
    line.start_ns = hands.now_ns;
    test_threads(3, with_deadline, NULL);
    CHECK_EQ(line.ends[1], HF_TIMEOUT);
    CHECK_EQ(line.ends[2], HF_CLOSED);
    CHECK_EQ(stats_of(line.lender).timeouts, 1);
    give_back(line.lender, &loan);
    end(line.lender);
}

TEST(unfair_lends_as_well)
{
    struct hf_lender_opts opts = opts_of(0, 1);
    opts.unfair = true;

    memset(&line, 0, sizeof line);
    line.lender = open_with(&opts);
    struct hf_loan loan = borrow(line.lender, NULL);
    struct hf_loan none;
    CHECK_EQ(hf_lender_borrow(line.lender, NULL, HF_NOW, &none), HF_TIMEOUT);
    give_back(line.lender, &loan);
    loan = borrow(line.lender, NULL);
    line.start_ns = hands.now_ns;
    test_threads(3, with_deadline, NULL);
    CHECK_EQ(line.ends[1], HF_TIMEOUT);
    CHECK_EQ(line.ends[2], HF_CLOSED);
    give_back(line.lender, &loan);
    end(line.lender);
}
