/* scheduler.c - tests of the scheduler: order, times, cancelling, the end, and
 * what goes wrong, by a clock that the test moves. */
#include "holdfast/scheduler.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/memory.h"
#include "support/timed.h"

/* ---- Order and time. ---- */

TEST(tasks_run_by_time_then_priority_then_submission)
{
    begin();
    at(3000, 0, 'g');
    at(2000, 5, 'e');
    at(2000, -5, 'b');
    at(2000, 5, 'f');
    at(2000, 0, 'd');
    at(2000, -5, 'c');
    at(1500, HF_SCHEDULER_PRIORITY_MAX, 'a');
    at(3000, HF_SCHEDULER_PRIORITY_MAX, 'i');
    at(3000, 1, 'h');
    CHECK_EQ(hf_scheduler_pending(test.scheduler), 9);
    CHECK_EQ(hf_scheduler_next_ns(test.scheduler), 1500);
    advance(2000);
    check_seen("abcdefghi");
    CHECK_EQ(stats().fired, 9);
    CHECK_EQ(hf_scheduler_next_ns(test.scheduler), HF_FOREVER);
    check_sum();
    hf_scheduler_close(test.scheduler);
}

TEST(nothing_runs_before_its_time)
{
    begin();
    at(1101, 0, 'b');
    at(1100, 0, 'a');
    advance(99);
    check_seen("");
    advance(1);
    check_seen("a");
    advance(1);
    check_seen("ab");
    CHECK_EQ(stats().late_max_ns, 0);
    hf_scheduler_close(test.scheduler);
}

TEST(a_time_that_has_passed_is_due_now)
{
    begin();
    at(0, 0, 'a');
    await_quiet();
    at(999, 0, 'b');
    await_quiet();
    CHECK_EQ(
        hf_scheduler_after(test.scheduler, 0, 0, note, argument('c'), NULL),
        HF_OK);
    await_quiet();
    check_seen("abc");
    CHECK_EQ(stats().late_max_ns, 1000);
    hf_scheduler_close(test.scheduler);
}

/* The thread sleeps for ever, then until 9000, where nobody moves the clock. */
TEST(an_earlier_task_wakes_the_sleeper_and_a_later_one_does_not)
{
    begin();
    test_clock_await_sleepers(&test.clock, 1);
    at(9000, 0, 'c');
    CHECK_EQ(stats().wakes, 1);
    at(9000, -1, 'b'); /* is first, but not earlier */
    at(9500, 0, 'd');
    CHECK_EQ(stats().wakes, 1);
    at(2000, 0, 'a');
    CHECK(stats().wakes <= 2); /* 1: it was awake still */
    advance(1000);
    check_seen("a");
    advance(8000);
    check_seen("abcd");
    hf_scheduler_close(test.scheduler);
}

TEST(after_counts_from_now)
{
    uint64_t id;

    begin();
    test_clock_advance(&test.clock, 500);
    CHECK_EQ(
        hf_scheduler_after(test.scheduler, 100, 0, note, argument('a'), &id),
        HF_OK);
    CHECK_EQ(hf_scheduler_next_ns(test.scheduler), START_NS + 600);
    hf_scheduler_close(test.scheduler);
}

TEST(lateness_is_measured)
{
    begin();
    CHECK_EQ(stats().late_p50_ns, HF_INSPECT_NONE);
    CHECK_EQ(stats().late_max_ns, HF_INSPECT_NONE);
    for (int i = 0; i < 99; i++)
        at(START_NS + 100, 0, 'a');
    at(START_NS + 40, 0, 'b');
    advance(100);
    CHECK_EQ(stats().fired, 100);
    CHECK_EQ(stats().late_p50_ns, 0);
    CHECK_EQ(stats().late_p99_ns, 0);
    CHECK_EQ(stats().late_max_ns, 60);
    hf_scheduler_close(test.scheduler);
}

/* ---- Cancelling. ---- */

TEST(what_is_cancelled_does_not_run)
{
    begin();
    uint64_t a = at(2000, 0, 'a');
    uint64_t b = at(2000, 0, 'b');
    uint64_t c = at(2000, 0, 'c');
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, b), HF_OK);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, b), HF_NOTFOUND);
    CHECK_EQ(hf_scheduler_pending(test.scheduler), 2);
    advance(1000);
    check_seen("ac");
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, a), HF_NOTFOUND);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, c), HF_NOTFOUND);
    CHECK_EQ(stats().cancelled, 1);
    check_sum();
    hf_scheduler_close(test.scheduler);
}

/* The record is used again at once; its old names are nobody's. */
TEST(an_old_id_is_never_another_tasks)
{
    uint64_t old[100];

    begin();
    for (int i = 0; i < 100; i++) {
        old[i] = at(2000, 0, 'a');
        CHECK_EQ(hf_scheduler_cancel(test.scheduler, old[i]), HF_OK);
    }
    uint64_t last = at(2000, 0, 'a');
    for (int i = 0; i < 100; i++)
        CHECK_EQ(hf_scheduler_cancel(test.scheduler, old[i]), HF_NOTFOUND);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, 0), HF_NOTFOUND);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, last + (1u << 24)),
             HF_NOTFOUND);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, last + 1), HF_NOTFOUND);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, UINT64_MAX), HF_NOTFOUND);
    CHECK_EQ(hf_scheduler_pending(test.scheduler), 1);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, last), HF_OK);
    hf_scheduler_close(test.scheduler);
}

TEST(a_task_that_runs_is_pending_until_it_is_over)
{
    uint64_t id;

    begin();
    CHECK_EQ(
        hf_scheduler_at(test.scheduler, 0, 0, wait_at_gate, argument('a'), &id),
        HF_OK);
    await(&test.runs, 1);
    CHECK_EQ(stats().active, 1);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, id), HF_PENDING);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, id), HF_PENDING);
    CHECK_EQ(hf_scheduler_join(test.scheduler, id, HF_NOW), HF_TIMEOUT);
    hf_u32_store(&test.gate, 1, __ATOMIC_RELEASE);
    CHECK_EQ(hf_scheduler_join(test.scheduler, id, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, id), HF_NOTFOUND);
    CHECK_EQ(hf_scheduler_join(test.scheduler, id, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_scheduler_join(test.scheduler, 0, HF_NOW), HF_OK);
    CHECK_EQ(stats().cancelled, 0);
    CHECK_EQ(stats().ended, 1);
    hf_scheduler_close(test.scheduler);
}

/* A thread that is busy holds up the second task, which is with the pool. */
TEST(what_the_pool_has_not_begun_can_be_cancelled)
{
    struct hf_pool *pool;
    uint64_t second;

    begin_on(&pool, &(struct hf_pool_opts){.kind = HF_POOL_SINGLE});
    CHECK_EQ(hf_scheduler_at(test.scheduler, 0, 0, wait_at_gate, argument('a'),
                             NULL),
             HF_OK);
    await(&test.runs, 1);
    second = at(0, 0, 'b');
    at(0, 0, 'c');
    while (hf_scheduler_pending(test.scheduler) > 0)
        sched_yield();
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, second), HF_OK);
    CHECK_EQ(hf_scheduler_join(test.scheduler, second, HF_NOW), HF_OK);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, second), HF_NOTFOUND);
    hf_u32_store(&test.gate, 1, __ATOMIC_RELEASE);
    await_quiet();
    check_seen("ac");
    CHECK_EQ(stats().fired, 2);
    check_sum();
    hf_scheduler_close(test.scheduler);
    hf_pool_close(pool);
}

/* ---- Failures. ---- */

TEST(a_failure_is_counted_and_told)
{
    uint64_t id;

    begin();
    CHECK_EQ(hf_scheduler_at(test.scheduler, 0, 0, fail, argument('a'), &id),
             HF_OK);
    at(0, 0, 'b');
    await_quiet();
    check_seen("ab");
    await(&test.told, 1);
    CHECK_EQ(test.notes[0].event, HF_SCHEDULER_FAILED);
    CHECK_EQ(test.notes[0].id, id);
    CHECK_EQ(test.notes[0].code, 7);
    CHECK_EQ((uintptr_t)test.notes[0].arg, 'a');
    CHECK_EQ(stats().failed, 1);
    CHECK_EQ(stats().fired, 2);
    hf_scheduler_close(test.scheduler);
}

TEST(what_the_pool_refuses_is_counted_and_told)
{
    struct hf_pool *pool;

    begin_on(&pool, &(struct hf_pool_opts){.kind = HF_POOL_SINGLE});
    hf_pool_shutdown(pool);
    at(0, 0, 'a');
    await_quiet();
    await(&test.told, 1);
    CHECK_EQ(test.notes[0].event, HF_SCHEDULER_DROPPED);
    CHECK_EQ(test.notes[0].status, HF_CLOSED);
    CHECK_EQ(stats().dropped, 1);
    CHECK_EQ(stats().fired, 0);
    check_sum();
    hf_scheduler_close(test.scheduler);
    hf_pool_close(pool);
}

/* Accepted by the pool, and then given up: by its policy, and by its end. */
TEST(what_the_pool_gives_up_is_not_forgotten)
{
    struct hf_pool *pool;
    const struct hf_pool_opts opts = {.kind = HF_POOL_SINGLE,
                                      .queue_max = 1,
                                      .reject = HF_POOL_DISCARD_OLDEST};

    begin_on(&pool, &opts);
    CHECK_EQ(hf_scheduler_at(test.scheduler, 0, 0, wait_at_gate, argument('a'),
                             NULL),
             HF_OK);
    await(&test.runs, 1);
    at(0, 0, 'b'); /* pushed out by the next */
    at(0, 0, 'c');
    await(&test.told, 1);
    while (hf_scheduler_pending(test.scheduler) > 0)
        sched_yield();
    hf_pool_shutdown_now(pool, NULL, NULL); /* hands the third back */
    await(&test.told, 2);
    hf_u32_store(&test.gate, 1, __ATOMIC_RELEASE);
    await_quiet();
    check_seen("a");
    CHECK_EQ(stats().dropped, 2);
    CHECK_EQ(test.notes[0].status, HF_CANCELLED);
    CHECK_EQ((uintptr_t)test.notes[0].arg, 'b');
    CHECK_EQ((uintptr_t)test.notes[1].arg, 'c');
    check_sum();
    hf_scheduler_close(test.scheduler);
    hf_pool_close(pool);
}

TEST(bad_input_is_refused)
{
    const uint64_t far = HF_SCHEDULER_TIME_MAX_NS + 1;
    const int low = HF_SCHEDULER_PRIORITY_MIN - 1;
    const int high = HF_SCHEDULER_PRIORITY_MAX + 1;
    struct hf_pool *pool;
    struct hf_scheduler *s = NULL;
    uint64_t id = 77;

    CHECK_EQ(hf_scheduler_open(NULL, NULL), HF_INVALID);
    prepare();
    test.opts.tasks_max = HF_SCHEDULER_TASKS_MAX + 1;
    CHECK_EQ(hf_scheduler_open(&s, &test.opts), HF_INVALID);
    begin_on(&pool, NULL);
    hf_scheduler_close(test.scheduler);
    test.opts.direct = true; /* and a pool */
    CHECK_EQ(hf_scheduler_open(&s, &test.opts), HF_INVALID);
    hf_pool_close(pool);

    begin();
    s = test.scheduler;
    CHECK_EQ(hf_scheduler_at(NULL, 0, 0, note, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_scheduler_at(s, 0, 0, NULL, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_scheduler_at(s, far, 0, note, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_scheduler_at(s, HF_FOREVER, 0, note, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_scheduler_at(s, 0, low, note, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_scheduler_at(s, 0, high, note, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_scheduler_after(NULL, 0, 0, note, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_scheduler_after(s, far - 1, 0, note, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_scheduler_after(s, HF_FOREVER, 0, note, NULL, &id), HF_INVALID);
    CHECK_EQ(hf_scheduler_cancel(NULL, 1), HF_INVALID);
    CHECK_EQ(hf_scheduler_join(NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_scheduler_await(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_scheduler_shutdown_now(NULL, NULL, NULL), 0);
    hf_scheduler_shutdown(NULL);
    hf_scheduler_close(NULL);
    CHECK_EQ(id, 77);
    CHECK_EQ(stats().scheduled, 0);
    hf_scheduler_close(s);
}

static enum hf_status refuse(void *context, int (*fn)(void *arg), void *arg)
{
    (void)context;
    (void)fn;
    (void)arg;
    return HF_FULL;
}

TEST(a_pool_that_asks_is_refused)
{
    struct hf_scheduler *s;
    struct hf_pool *pool;
    const struct hf_pool_opts opts = {
        .kind = HF_POOL_SINGLE, .reject = HF_POOL_ASK, .ask = refuse};

    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
    prepare();
    test.opts.direct = false;
    test.opts.pool = pool;
    CHECK_EQ(hf_scheduler_open(&s, &test.opts), HF_INVALID);
    hf_pool_close(pool);
}

TEST(more_than_tasks_max_are_refused)
{
    prepare();
    test.opts.tasks_max = 2;
    CHECK_EQ(hf_scheduler_open(&test.scheduler, &test.opts), HF_OK);
    at(2000, 0, 'a');
    uint64_t b = at(2000, 0, 'b');
    CHECK_EQ(hf_scheduler_at(test.scheduler, 2000, 0, note, NULL, NULL),
             HF_FULL);
    CHECK_EQ(hf_scheduler_cancel(test.scheduler, b), HF_OK);
    at(2000, 0, 'c');
    CHECK_EQ(stats().rejected, 1);
    hf_scheduler_close(test.scheduler);
}

TEST(without_memory_nothing_changes)
{
    struct hf_scheduler *s;
    int refused = 0;

    prepare();
    hf_memory_fail_after(0);
    CHECK_EQ(hf_scheduler_open(&s, &test.opts), HF_NOMEM);
    hf_memory_fail_never();
    begin();
    for (uint64_t room = 0;; room++) {
        hf_memory_fail_after(room);
        enum hf_status status =
            hf_scheduler_at(test.scheduler, 2000, 0, note, argument('a'), NULL);
        hf_memory_fail_never();
        if (status == HF_OK)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK_EQ(hf_scheduler_pending(test.scheduler), 0);
        refused++;
    }
    CHECK(refused >= 2); /* its place, its record */
    advance(1000);
    check_seen("a");
    CHECK_EQ(stats().rejected, refused);
    hf_scheduler_close(test.scheduler);
}

/* A clock that makes the scheduler's own thread run out of memory. */
static pthread_t test_thread;
static uint64_t allocations_left;

static uint64_t now_without_memory(void *context)
{
    const struct hf_clock *clock = context;

    if (!pthread_equal(pthread_self(), test_thread))
        hf_memory_fail_after(allocations_left);
    return hf_clock_now_ns(clock);
}

/* Each allocation of the hand-over fails once: the task ran or was dropped. */
TEST(a_hand_over_without_memory_is_a_dropped_run)
{
    struct hf_clock clock = {.now_ns = now_without_memory};
    struct hf_pool *pool;
    uint64_t dropped = 0;

    prepare();
    test_thread = pthread_self();
    clock.context = (void *)(uintptr_t)hf_clock_system();
    CHECK_EQ(hf_pool_open(&pool, &(struct hf_pool_opts){.max_threads = 1}),
             HF_OK);
    test.opts.direct = false;
    test.opts.pool = pool;
    test.opts.clock = &clock;
    for (allocations_left = 0; allocations_left < 6; allocations_left++) {
        CHECK_EQ(hf_scheduler_open(&test.scheduler, &test.opts), HF_OK);
        at(0, 0, 'a');
        hf_scheduler_shutdown(test.scheduler);
        CHECK_EQ(hf_scheduler_await(test.scheduler, HF_FOREVER), HF_OK);
        CHECK_EQ(stats().fired + stats().dropped, 1);
        check_sum();
        dropped += stats().dropped;
        hf_scheduler_close(test.scheduler);
    }
    CHECK(dropped > 0);
    CHECK_EQ(hf_u32_load(&test.runs, __ATOMIC_RELAXED), 6 - dropped);
    hf_pool_close(pool);
}

/* ---- The end. ---- */

static void count_back(void *context, void *arg)
{
    uintptr_t *sum = context;

    *sum += (uintptr_t)arg;
}

TEST(shut_takes_nothing_new_and_runs_the_rest)
{
    begin();
    at(2000, 0, 'a');
    CHECK_EQ(hf_scheduler_await(test.scheduler, HF_NOW), HF_TIMEOUT);
    hf_scheduler_shutdown(test.scheduler);
    hf_scheduler_shutdown(test.scheduler);
    CHECK_EQ(hf_scheduler_at(test.scheduler, 2000, 0, note, NULL, NULL),
             HF_CLOSED);
    CHECK_EQ(hf_scheduler_await(test.scheduler, START_NS), HF_TIMEOUT);
    advance(1000);
    CHECK_EQ(hf_scheduler_await(test.scheduler, HF_NOW), HF_OK);
    check_seen("a");
    CHECK_EQ(stats().rejected, 1);
    check_sum();
    hf_scheduler_close(test.scheduler);
}

TEST(shut_now_hands_back_what_waits)
{
    uintptr_t sum = 0;

    begin();
    CHECK_EQ(
        hf_scheduler_at(test.scheduler, 0, 0, wait_at_gate, argument(1), NULL),
        HF_OK);
    await(&test.runs, 1);
    at(2000, 0, 10);
    at(0, 0, 100);
    CHECK_EQ(hf_scheduler_shutdown_now(test.scheduler, count_back, &sum), 2);
    CHECK_EQ(sum, 110);
    CHECK_EQ(hf_scheduler_await(test.scheduler, HF_NOW), HF_TIMEOUT);
    hf_u32_store(&test.gate, 1, __ATOMIC_RELEASE);
    CHECK_EQ(hf_scheduler_await(test.scheduler, HF_FOREVER), HF_OK);
    CHECK_EQ(stats().returned, 2);
    check_sum();
    hf_scheduler_close(test.scheduler);
}

TEST(close_abandons_what_waits)
{
    begin();
    for (int i = 0; i < 1000; i++)
        at(START_NS + 1 + (uint64_t)i, 0, 'a');
    hf_scheduler_close(test.scheduler);
    check_seen("");
}

static void find_row(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->kind, "scheduler") == 0)
        *(struct hf_inspect_row *)context = *row;
}

TEST(it_is_listed)
{
    struct hf_inspect_row row = {.name = ""};

    prepare();
    test.opts.tasks_max = 10;
    CHECK_EQ(hf_scheduler_open(&test.scheduler, &test.opts), HF_OK);
    at(0, 0, 'a');
    await_quiet();
    at(2000, 0, 'b');
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_TEXT(row.name, strlen(row.name), "timers");
    CHECK_EQ(row.depth, 1);
    CHECK_EQ(row.capacity, 10);
    CHECK_EQ(row.oldest_ns, 0);
    CHECK_EQ(row.rejected, 0);
    CHECK(row.wait_p99_ns >= 1000 && row.wait_p99_ns < 1250);
    CHECK(stats().memory_bytes > 0);
    hf_scheduler_close(test.scheduler);
}
