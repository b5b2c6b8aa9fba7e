/* scheduler_every.c - tests of periodic tasks: no drift, what is missed, no
 * overlap, and how they end. */
#include "base/random.h"
#include "support/timed.h"

static uint64_t every(uint64_t first_ns, uint64_t period_ns, uintptr_t value)
{
    const struct hf_every plan = {.first_ns = first_ns, .period_ns = period_ns};
    uint64_t id;

    CHECK_EQ(
        hf_scheduler_every(test.scheduler, &plan, note, argument(value), &id),
        HF_OK);
    return id;
}

static uint64_t next_ns(void)
{
    return hf_scheduler_next_ns(test.scheduler);
}

/* A run that takes time: the clock moves meanwhile. */
static uint64_t run_takes_ns;

static int take_time(void *arg)
{
    (void)note(arg);
    test_clock_advance(&test.clock, run_takes_ns);
    return 0;
}

/* ---- Fixed rate. ---- */

/* However late each run is, the plan stays at multiples of the period. */
TEST(a_fixed_rate_does_not_drift)
{
    struct hf_random random;
    uint64_t runs = 0;

    hf_random_init(&random, test_seed());
    begin();
    every(2000, 100, 'a');
    CHECK_EQ(next_ns(), 2000);
    advance(1000);
    for (int i = 0; i < 2000; i++) {
        runs = (test.clock.now_ns - 2000) / 100 + 1;
        CHECK_EQ(stats().fired, runs);
        CHECK_EQ(next_ns(), 2000 + 100 * runs);
        advance(1 + hf_random_below(&random, 100));
    }
    CHECK(runs > 500);
    CHECK(stats().late_max_ns < 100);
    CHECK_EQ(stats().missed, 0);
    hf_scheduler_close(test.scheduler);
}

TEST(without_a_first_time_it_is_a_period_from_now)
{
    begin();
    every(0, 50, 'a');
    CHECK_EQ(next_ns(), START_NS + 50);
    hf_scheduler_close(test.scheduler);
}

/* The run lasts from 2000 to 2350: 2100 and 2200 are missed, 2300 is late. */
TEST(times_that_passed_are_made_up_for_once_and_counted)
{
    const struct hf_every plan = {.first_ns = 2000, .period_ns = 100};
    uint64_t id;

    begin();
    run_takes_ns = 350;
    CHECK_EQ(hf_scheduler_every(test.scheduler, &plan, take_time, argument('a'),
                                &id),
             HF_OK);
    test_clock_await_sleepers(&test.clock, 1);
    test_clock_advance(&test.clock, 1000);
    await(&test.told, 1);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, id) != HF_NOTFOUND, 1);
    CHECK_EQ(test.notes[0].event, HF_SCHEDULER_MISSED);
    CHECK_EQ(test.notes[0].id, id);
    CHECK_EQ(test.notes[0].count, 2);
    hf_scheduler_close(test.scheduler);
}

TEST(a_long_sleep_is_one_run)
{
    begin();
    every(2000, 100, 'a');
    test_clock_await_sleepers(&test.clock, 1);
    advance(1000 + 1050); /* 2000 .. 2900 are missed, 3000 is late */
    CHECK_EQ(stats().fired, 1);
    CHECK_EQ(stats().missed, 10);
    CHECK_EQ(stats().late_max_ns, 50);
    CHECK_EQ(next_ns(), 3100);
    hf_scheduler_close(test.scheduler);
}

TEST(catching_up_leaves_no_time_out)
{
    const struct hf_every plan = {
        .first_ns = 2000, .period_ns = 100, .catch_up = true};

    begin();
    CHECK_EQ(
        hf_scheduler_every(test.scheduler, &plan, note, argument('a'), NULL),
        HF_OK);
    test_clock_await_sleepers(&test.clock, 1);
    advance(1000 + 1050);
    CHECK_EQ(stats().fired, 11);
    CHECK_EQ(stats().missed, 0);
    CHECK_EQ(next_ns(), 3100);
    hf_scheduler_close(test.scheduler);
}

TEST(periodic_tasks_keep_their_order)
{
    begin();
    every(2000, 100, 'b');
    every(2000, 100, 'c');
    const struct hf_every plan = {
        .first_ns = 2000, .period_ns = 100, .priority = -1};
    CHECK_EQ(
        hf_scheduler_every(test.scheduler, &plan, note, argument('a'), NULL),
        HF_OK);
    advance(1000);
    advance(100);
    advance(100);
    check_seen("abcabcabc");
    hf_scheduler_close(test.scheduler);
}

/* ---- Fixed delay. ---- */

TEST(a_fixed_delay_counts_from_the_end)
{
    const struct hf_every plan = {.first_ns = 2000, .period_ns = 100};

    begin();
    run_takes_ns = 30;
    CHECK_EQ(hf_scheduler_every_after(test.scheduler, &plan, take_time,
                                      argument('a'), NULL),
             HF_OK);
    advance(1000);
    CHECK_EQ(next_ns(), 2130);
    advance(105); /* 2135, five late; the run ends at 2165 */
    CHECK_EQ(next_ns(), 2265);
    CHECK_EQ(stats().fired, 2);
    CHECK_EQ(stats().missed, 0);
    hf_scheduler_close(test.scheduler);
}

/* ---- Overlap. ---- */

TEST(a_task_does_not_overlap_itself)
{
    const struct hf_every plan = {.first_ns = 2000, .period_ns = 100};
    struct hf_pool *pool;

    begin_on(&pool, &(struct hf_pool_opts){.max_threads = 4});
    CHECK_EQ(hf_scheduler_every(test.scheduler, &plan, wait_at_gate,
                                argument('a'), NULL),
             HF_OK);
    test_clock_advance(&test.clock, 1000);
    await(&test.runs, 1);
    test_clock_advance(&test.clock, 550);
    CHECK_EQ(hf_scheduler_pending(test.scheduler), 0); /* nothing can come */
    CHECK_EQ(stats().active, 1);
    hf_u32_store(&test.gate, 1, __ATOMIC_RELEASE);
    await_quiet();
    CHECK_EQ(stats().fired, 2);  /* 2000, and 2500 late */
    CHECK_EQ(stats().missed, 4); /* 2100 .. 2400 */
    CHECK_EQ(next_ns(), 2600);
    hf_scheduler_close(test.scheduler);
    hf_pool_close(pool);
}

TEST(overlap_is_allowed_if_asked_for)
{
    const struct hf_every plan = {
        .first_ns = 2000, .period_ns = 100, .overlap = true};
    struct hf_pool *pool;
    uint64_t id;

    begin_on(&pool, &(struct hf_pool_opts){.max_threads = 3});
    CHECK_EQ(hf_scheduler_every(test.scheduler, &plan, wait_at_gate,
                                argument('a'), &id),
             HF_OK);
    for (uint32_t i = 1; i <= 3; i++) {
        test_clock_advance(&test.clock, i == 1 ? 1000 : 100);
        await(&test.runs, i);
    }
    CHECK_EQ(next_ns(), 2300);
    CHECK_EQ(stats().fired, 3);
    test_clock_advance(&test.clock, 100); /* no thread is left for this one */
    while (next_ns() != 2400)
        sched_yield();
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, id), HF_PENDING);
    CHECK_EQ(hf_scheduler_join(test.scheduler, id, HF_NOW), HF_TIMEOUT);
    hf_u32_store(&test.gate, 1, __ATOMIC_RELEASE);
    CHECK_EQ(hf_scheduler_join(test.scheduler, id, HF_FOREVER), HF_OK);
    await_quiet();
    CHECK_EQ(stats().fired, 3); /* the fourth was cancelled in the queue */
    check_sum();
    hf_scheduler_close(test.scheduler);
    hf_pool_close(pool);
}

/* ---- Their end. ---- */

static uint64_t own_id;
static enum hf_status own_status;

static int cancel_myself(void *arg)
{
    if (hf_u32_load(&test.runs, __ATOMIC_RELAXED) == 2)
        own_status = hf_scheduler_cancel(test.scheduler, own_id);
    return note(arg);
}

TEST(a_task_ends_itself)
{
    const struct hf_every plan = {.first_ns = 2000, .period_ns = 100};

    begin();
    CHECK_EQ(hf_scheduler_every(test.scheduler, &plan, cancel_myself,
                                argument('a'), &own_id),
             HF_OK);
    for (int i = 0; i < 12; i++)
        advance(i == 0 ? 1000 : 100);
    check_seen("aaa");
    CHECK_EQ(own_status, HF_PENDING);
    CHECK_EQ(stats().cancelled, 1);
    CHECK_EQ(next_ns(), HF_FOREVER);
    check_sum();
    hf_scheduler_close(test.scheduler);
}

TEST(a_cancelled_one_does_not_come_back)
{
    begin();
    uint64_t a = every(2000, 100, 'a');
    every(2000, 100, 'b');
    advance(1000);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, a), HF_OK);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, a), HF_NOTFOUND);
    advance(100);
    check_seen("abb");
    hf_scheduler_close(test.scheduler);
}

TEST(a_failing_one_goes_on)
{
    const struct hf_every plan = {.first_ns = 2000, .period_ns = 100};

    begin();
    CHECK_EQ(
        hf_scheduler_every(test.scheduler, &plan, fail, argument('a'), NULL),
        HF_OK);
    advance(1000);
    advance(100);
    CHECK_EQ(stats().failed, 2);
    await(&test.told, 2);
    hf_scheduler_close(test.scheduler);
}

TEST(one_that_the_pool_refuses_goes_on)
{
    struct hf_pool *pool;

    begin_on(&pool, &(struct hf_pool_opts){.kind = HF_POOL_SINGLE});
    every(2000, 100, 'a');
    test_clock_await_sleepers(&test.clock, 1);
    advance(1000);
    check_seen("a");
    hf_pool_shutdown(pool);
    advance(100);
    advance(100);
    CHECK_EQ(stats().dropped, 2);
    CHECK_EQ(stats().fired, 1);
    CHECK_EQ(next_ns(), 2300);
    await(&test.told, 2);
    CHECK_EQ(test.notes[1].status, HF_CLOSED);
    hf_scheduler_close(test.scheduler);
    hf_pool_close(pool);
}

TEST(shut_ends_them)
{
    begin();
    every(2000, 100, 'a');
    at(2050, 0, 'b');
    advance(1000);
    hf_scheduler_shutdown(test.scheduler);
    CHECK_EQ(hf_scheduler_pending(test.scheduler), 1);
    CHECK_EQ(stats().ended, 1);
    advance(200);
    check_seen("ab");
    CHECK_EQ(hf_scheduler_await(test.scheduler, HF_NOW), HF_OK);
    CHECK_EQ(stats().ended, 2);
    check_sum();
    hf_scheduler_close(test.scheduler);
}

TEST(shut_lets_a_run_end_and_no_other_begin)
{
    const struct hf_every plan = {.first_ns = 2000, .period_ns = 100};

    begin();
    CHECK_EQ(hf_scheduler_every(test.scheduler, &plan, wait_at_gate,
                                argument('a'), NULL),
             HF_OK);
    test_clock_advance(&test.clock, 1500);
    await(&test.runs, 1);
    hf_scheduler_shutdown(test.scheduler);
    CHECK_EQ(stats().ended, 0);
    hf_u32_store(&test.gate, 1, __ATOMIC_RELEASE);
    CHECK_EQ(hf_scheduler_await(test.scheduler, HF_FOREVER), HF_OK);
    CHECK_EQ(stats().fired, 1);
    CHECK_EQ(stats().ended, 1);
    hf_scheduler_close(test.scheduler);
}

TEST(bad_plans_are_refused)
{
    const uint64_t far = HF_SCHEDULER_TIME_MAX_NS + 1;
    const struct hf_every bad[] = {
        {.period_ns = 0},
        {.period_ns = far},
        {.period_ns = far - 1}, /* from now it is beyond the end */
        {.period_ns = 10, .first_ns = far},
        {.period_ns = 10, .priority = HF_SCHEDULER_PRIORITY_MAX + 1},
        {.period_ns = 10, .overlap = true}, /* direct */
    };
    const struct hf_every good = {.period_ns = 10};
    const struct hf_every catches_up = {.period_ns = 10, .catch_up = true};
    struct hf_scheduler *s;

    begin();
    s = test.scheduler;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(hf_scheduler_every(s, &bad[i], note, NULL, NULL), HF_INVALID);
        CHECK_EQ(hf_scheduler_every_after(s, &bad[i], note, NULL, NULL),
                 HF_INVALID);
    }
    CHECK_EQ(hf_scheduler_every_after(s, &catches_up, note, NULL, NULL),
             HF_INVALID);
    CHECK_EQ(hf_scheduler_every(s, &good, NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_scheduler_every(s, NULL, note, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_scheduler_every(NULL, &good, note, NULL, NULL), HF_INVALID);
    CHECK_EQ(stats().scheduled, 0);
    hf_scheduler_close(s);
}
