/* Tests of hf_gather: all, the first, any k, the deadline, what is refused,
 * cancelled, helped with, and what becomes of results. */
#include "holdfast/gather.h"

#include <pthread.h>
#include <sched.h>

#include "base/memory.h"
#include "support/clock.h"
#include "support/test.h"

#define MS UINT64_C(1000000)

static struct {
    struct test_clock hands;
    struct hf_pool *pool;
    struct hf_gather *gather;
    pthread_mutex_t mutex; /* guards the rest */
    pthread_cond_t moved;
    bool hold;   /* tasks that can be held are */
    size_t held; /* so many are */
    size_t ran;
    uintptr_t dropped[16];
    size_t drop_count;
} test = {.mutex = PTHREAD_MUTEX_INITIALIZER,
          .moved = PTHREAD_COND_INITIALIZER};

static void drop(void *context, void *result)
{
    pthread_mutex_lock(&test.mutex);
    test.dropped[test.drop_count++] = context == &test ? (uintptr_t)result : 0;
    pthread_cond_broadcast(&test.moved);
    pthread_mutex_unlock(&test.mutex);
}

static void begin_on(struct hf_pool_opts pool, size_t need)
{
    struct hf_gather_opts opts = {
        .name = "answers", .need = need, .drop = drop, .context = &test};

    test.hands = (struct test_clock){.now_ns = 1000};
    pool.clock = test_clock(&test.hands);
    test.hold = true;
    test.held = test.ran = test.drop_count = 0;
    CHECK_EQ(hf_pool_open(&test.pool, &pool), HF_OK);
    opts.pool = test.pool;
    CHECK_EQ(hf_gather_open(&test.gather, &opts), HF_OK);
}

static void begin(uint32_t threads, size_t need)
{
    begin_on((struct hf_pool_opts){.max_threads = threads}, need);
}

static void let_go(void)
{
    pthread_mutex_lock(&test.mutex);
    test.hold = false;
    pthread_cond_broadcast(&test.moved);
    pthread_mutex_unlock(&test.mutex);
}

static void end(void)
{
    let_go();
    hf_gather_close(test.gather);
    hf_pool_close(test.pool);
}

/* Returns when `*counter` is `value`. */
static void await(const size_t *counter, size_t value)
{
    struct timespec limit;
    int result = 0;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    pthread_mutex_lock(&test.mutex);
    while (*counter != value && result == 0)
        result = pthread_cond_timedwait(&test.moved, &test.mutex, &limit);
    pthread_mutex_unlock(&test.mutex);
    CHECK_EQ(result, 0);
}

/* ---- Tasks. ---- */

static void *number(uintptr_t n)
{
    return (void *)n;
}

static int succeed(void *arg, void **result)
{
    pthread_mutex_lock(&test.mutex);
    test.ran++;
    pthread_mutex_unlock(&test.mutex);
    *result = arg;
    return 0;
}

static int fail(void *arg, void **result)
{
    (void)result;
    return (int)(uintptr_t)arg;
}

static int held(void *arg, void **result)
{
    pthread_mutex_lock(&test.mutex);
    test.held++;
    pthread_cond_broadcast(&test.moved);
    while (test.hold)
        pthread_cond_wait(&test.moved, &test.mutex);
    pthread_mutex_unlock(&test.mutex);
    *result = arg;
    return 0;
}

static enum hf_status add(int (*fn)(void *, void **), uintptr_t n)
{
    return hf_gather_add(test.gather, fn, number(n));
}

static enum hf_status wait_for_it(void)
{
    return hf_gather_wait(test.gather, HF_FOREVER);
}

static void check_item(size_t index, enum hf_status status, int code,
                       uintptr_t result)
{
    struct hf_gather_item item;

    CHECK_EQ(hf_gather_item(test.gather, index, &item), HF_OK);
    CHECK_EQ(item.status, status);
    CHECK_EQ(item.code, code);
    CHECK_EQ((uintptr_t)item.result, result);
}

static void check_counts(size_t pending, size_t succeeded, size_t failed,
                         size_t cancelled)
{
    struct hf_gather_stats stats;

    hf_gather_stats(test.gather, &stats);
    CHECK_EQ(stats.pending, pending);
    CHECK_EQ(stats.succeeded, succeeded);
    CHECK_EQ(stats.failed, failed);
    CHECK_EQ(stats.cancelled, cancelled);
    CHECK_EQ(stats.added, pending + succeeded + failed + cancelled);
}

/* Returns when no more than that many tasks have not ended. */
static void await_pending(size_t count)
{
    const struct hf_clock *real = hf_clock_system();
    uint64_t deadline_ns = hf_clock_after_ms(real, 60000);
    struct hf_gather_stats stats;

    do {
        CHECK(hf_clock_now_ns(real) < deadline_ns);
        sched_yield();
        hf_gather_stats(test.gather, &stats);
    } while (stats.pending > count);
}

/* ---- How many are enough. ---- */

static void *digits(void *context, void *so_far, void *result)
{
    CHECK(context == &test);
    return number((uintptr_t)so_far * 10 + (uintptr_t)result);
}

TEST(all_and_in_order)
{
    begin(2, 0);
    for (uintptr_t i = 1; i <= 9; i++)
        CHECK_EQ(add(succeed, i), HF_OK);
    CHECK_EQ(wait_for_it(), HF_OK);
    check_counts(0, 9, 0, 0);
    for (uintptr_t i = 0; i < 9; i++)
        check_item(i, HF_OK, 0, i + 1);
    CHECK_EQ((uintptr_t)hf_gather_merge(test.gather, digits, &test, number(0)),
             123456789);
    CHECK_EQ((uintptr_t)hf_gather_merge(test.gather, digits, &test, number(5)),
             5123456789);
    end();
    CHECK_EQ(test.drop_count, 0); /* all were shown */
}

TEST(all_fails_with_the_first_failure_and_the_rest_can_be_waited_for)
{
    struct hf_gather_item item;

    begin(2, 0);
    CHECK_EQ(add(held, 1), HF_OK);
    CHECK_EQ(add(fail, 7), HF_OK);
    CHECK_EQ(add(succeed, 3), HF_OK);
    CHECK_EQ(wait_for_it(), HF_FAILED);
    CHECK_EQ(hf_gather_settle(test.gather, HF_NOW), HF_TIMEOUT);
    check_item(0, HF_PENDING, 0, 0);
    check_item(1, HF_FAILED, 7, 0);
    let_go();
    CHECK_EQ(hf_gather_settle(test.gather, HF_FOREVER), HF_OK);
    check_item(0, HF_OK, 0, 1);
    check_item(2, HF_OK, 0, 3);
    CHECK_EQ(hf_gather_item(test.gather, 3, &item), HF_NOTFOUND);
    check_counts(0, 2, 1, 0);
    CHECK_EQ((uintptr_t)hf_gather_merge(test.gather, digits, &test, number(0)),
             13);
    end();
}

TEST(the_first_is_enough)
{
    begin(2, 1);
    CHECK_EQ(add(held, 1), HF_OK);
    CHECK_EQ(add(fail, 5), HF_OK);
    CHECK_EQ(add(succeed, 3), HF_OK);
    CHECK_EQ(add(fail, 6), HF_OK);
    CHECK_EQ(wait_for_it(), HF_OK);
    check_item(0, HF_PENDING, 0, 0);
    check_item(2, HF_OK, 0, 3);
    end();
}

TEST(any_k_until_it_cannot_be)
{
    begin(3, 2);
    CHECK_EQ(add(held, 1), HF_OK);
    CHECK_EQ(add(held, 2), HF_OK);
    CHECK_EQ(add(fail, 5), HF_OK);
    await(&test.held, 2);
    CHECK_EQ(hf_gather_wait(test.gather, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(add(fail, 5), HF_OK);
    CHECK_EQ(add(succeed, 3), HF_OK);
    let_go();
    CHECK_EQ(wait_for_it(), HF_OK);
    end();

    begin(1, 2);
    CHECK_EQ(add(succeed, 1), HF_OK);
    CHECK_EQ(add(fail, 5), HF_OK);
    CHECK_EQ(add(fail, 6), HF_OK);
    CHECK_EQ(wait_for_it(), HF_FAILED);
    check_counts(0, 1, 2, 0);
    CHECK_EQ(add(succeed, 2), HF_OK); /* and after all it can */
    CHECK_EQ(wait_for_it(), HF_OK);
    end();
}

TEST(more_are_needed_than_were_added)
{
    begin(1, 2);
    CHECK_EQ(wait_for_it(), HF_FAILED);
    CHECK_EQ(hf_gather_settle(test.gather, HF_FOREVER), HF_OK);
    CHECK_EQ(add(succeed, 1), HF_OK);
    CHECK_EQ(wait_for_it(), HF_FAILED);
    CHECK_EQ(add(succeed, 2), HF_OK);
    CHECK_EQ(wait_for_it(), HF_OK);
    end();
    begin(1, 0); /* all of none */
    CHECK_EQ(wait_for_it(), HF_OK);
    end();
}

static void *waiter_main(void *status)
{
    *(enum hf_status *)status = hf_gather_wait(test.gather, 1000 + 50 * MS);
    return NULL;
}

TEST(the_deadline_leaves_what_is_there)
{
    enum hf_status status = HF_OK;
    pthread_t waiter;

    begin(2, 0);
    CHECK_EQ(add(held, 1), HF_OK);
    CHECK_EQ(add(succeed, 2), HF_OK);
    await(&test.held, 1);
    await_pending(1);
    CHECK_EQ(pthread_create(&waiter, NULL, waiter_main, &status), 0);
    /* The waiter, and the worker that has nothing to do. */
    test_clock_await_sleepers(&test.hands, 2);
    test_clock_advance(&test.hands, 50 * MS - 1);
    test_clock_await_sleepers(&test.hands, 2);
    test_clock_advance(&test.hands, 1);
    pthread_join(waiter, NULL);
    CHECK_EQ(status, HF_TIMEOUT);
    check_counts(1, 1, 0, 0);
    CHECK_EQ((uintptr_t)hf_gather_merge(test.gather, digits, &test, number(0)),
             2);
    end();
}

/* ---- What is not run. ---- */

TEST(what_has_not_begun_is_cancelled)
{
    begin(1, 0);
    CHECK_EQ(add(held, 1), HF_OK);
    await(&test.held, 1);
    for (uintptr_t i = 2; i <= 4; i++)
        CHECK_EQ(add(succeed, i), HF_OK);
    CHECK_EQ(hf_gather_cancel(test.gather), 3);
    CHECK_EQ(hf_gather_cancel(test.gather), 0);
    CHECK_EQ(wait_for_it(), HF_FAILED);
    check_counts(1, 0, 0, 3);
    check_item(3, HF_CANCELLED, 0, 0);
    let_go();
    CHECK_EQ(hf_gather_settle(test.gather, HF_FOREVER), HF_OK);
    check_counts(0, 1, 0, 3);
    CHECK_EQ(test.ran, 0);
    end();
}

TEST(what_the_pool_refuses_has_failed)
{
    begin_on((struct hf_pool_opts){.kind = HF_POOL_SINGLE, .queue_max = 1}, 2);
    CHECK_EQ(add(held, 1), HF_OK);
    await(&test.held, 1);
    CHECK_EQ(add(succeed, 2), HF_OK);
    CHECK_EQ(add(succeed, 3), HF_FULL);
    hf_pool_shutdown(test.pool);
    CHECK_EQ(add(succeed, 4), HF_CLOSED);
    check_item(2, HF_FULL, 0, 0);
    check_item(3, HF_CLOSED, 0, 0);
    check_counts(2, 0, 2, 0);
    let_go();
    CHECK_EQ(wait_for_it(), HF_OK);
    check_counts(0, 2, 2, 0);
    end();
}

TEST(what_the_pool_drops_is_cancelled)
{
    begin_on((struct hf_pool_opts){.kind = HF_POOL_SINGLE,
                                   .queue_max = 1,
                                   .reject = HF_POOL_DISCARD},
             0);
    CHECK_EQ(add(held, 1), HF_OK);
    await(&test.held, 1);
    CHECK_EQ(add(succeed, 2), HF_OK);
    CHECK_EQ(add(succeed, 3), HF_OK); /* dropped at once */
    check_item(2, HF_CANCELLED, 0, 0);
    CHECK_EQ(hf_pool_shutdown_now(test.pool, NULL, NULL), 1);
    check_item(1, HF_CANCELLED, 0, 0);
    CHECK_EQ(wait_for_it(), HF_FAILED);
    check_counts(1, 0, 0, 2);
    end();
}

TEST(a_task_that_the_caller_runs_is_done_at_once)
{
    begin_on((struct hf_pool_opts){.kind = HF_POOL_SINGLE,
                                   .queue_max = 1,
                                   .reject = HF_POOL_CALLER_RUNS},
             1);
    CHECK_EQ(add(held, 1), HF_OK);
    await(&test.held, 1);
    CHECK_EQ(add(held, 2), HF_OK);
    CHECK_EQ(add(succeed, 3), HF_OK);
    check_item(2, HF_OK, 0, 3);
    CHECK_EQ(wait_for_it(), HF_OK);
    end();
}

/* ---- The end, and results that nobody has seen. ---- */

TEST(results_that_nobody_saw_are_dropped)
{
    begin(2, 1);
    CHECK_EQ(add(held, 1), HF_OK);
    await(&test.held, 1);
    CHECK_EQ(add(succeed, 2), HF_OK);
    CHECK_EQ(add(succeed, 3), HF_OK);
    CHECK_EQ(add(fail, 4), HF_OK);
    await_pending(1);
    CHECK_EQ(wait_for_it(), HF_OK);
    check_item(1, HF_OK, 0, 2); /* now it is ours */
    hf_gather_close(test.gather);
    CHECK_EQ(test.drop_count, 1);
    CHECK_EQ(test.dropped[0], 3);
    let_go();
    await(&test.drop_count, 2);
    CHECK_EQ(test.dropped[1], 1); /* came after close */
    hf_pool_close(test.pool);
    CHECK_EQ(test.drop_count, 2);
}

TEST(close_cancels_what_has_not_begun)
{
    begin(1, 0);
    CHECK_EQ(add(held, 1), HF_OK);
    await(&test.held, 1);
    CHECK_EQ(add(succeed, 2), HF_OK);
    CHECK_EQ(add(succeed, 3), HF_OK);
    hf_gather_close(test.gather);
    let_go();
    hf_pool_close(test.pool);
    CHECK_EQ(test.ran, 0);
    CHECK_EQ(test.drop_count, 1);
    CHECK_EQ(test.dropped[0], 1);
}

TEST(without_drop_results_are_let_go)
{
    struct hf_gather *gather;

    begin(1, 0);
    struct hf_gather_opts opts = {.pool = test.pool};
    CHECK_EQ(hf_gather_open(&gather, &opts), HF_OK);
    CHECK_EQ(hf_gather_add(gather, held, number(1)), HF_OK);
    await(&test.held, 1);
    hf_gather_close(gather);
    end();
    CHECK_EQ(test.drop_count, 0);
}

/* ---- A task that waits. ---- */

static enum hf_status inner_status;

static int outer(void *arg, void **result)
{
    bool all = arg == NULL;
    struct hf_gather_opts opts = {.pool = test.pool, .need = all ? 0 : 1};
    struct hf_gather *gather;

    (void)result;
    if (hf_gather_open(&gather, &opts) != HF_OK)
        return 1;
    for (uintptr_t i = 1; i <= 5; i++)
        if (hf_gather_add(gather, succeed, number(i)) != HF_OK)
            return 2;
    inner_status = hf_gather_wait(gather, HF_FOREVER);
    hf_gather_close(gather);
    return 0;
}

TEST(a_task_may_wait_for_a_gather_on_its_own_pool)
{
    begin(1, 0);
    inner_status = HF_PENDING;
    CHECK_EQ(add(outer, 0), HF_OK);
    CHECK_EQ(wait_for_it(), HF_OK);
    CHECK_EQ(inner_status, HF_OK);
    CHECK_EQ(test.ran, 5);
    CHECK_EQ(add(outer, 1), HF_OK); /* the first is enough */
    CHECK_EQ(wait_for_it(), HF_OK);
    CHECK_EQ(inner_status, HF_OK);
    CHECK_EQ(test.ran, 6);
    end();
}

static int pass_time(void *arg, void **result)
{
    test_clock_advance(&test.hands, (uintptr_t)arg);
    return succeed(arg, result);
}

static int outer_late(void *arg, void **result)
{
    struct hf_gather_opts opts = {.pool = test.pool};
    struct hf_gather *gather;

    (void)arg;
    (void)result;
    if (hf_gather_open(&gather, &opts) != HF_OK)
        return 1;
    for (int i = 0; i < 5; i++)
        if (hf_gather_add(gather, pass_time, number(10)) != HF_OK)
            return 2;
    inner_status = hf_gather_wait(gather, HF_NOW);
    if (inner_status == HF_TIMEOUT && test.ran == 0)
        inner_status = hf_gather_wait(gather, 1000 + 20);
    hf_gather_close(gather);
    return 0;
}

TEST(a_task_that_waits_helps_no_longer_than_its_deadline)
{
    begin(1, 0);
    CHECK_EQ(add(outer_late, 0), HF_OK);
    CHECK_EQ(wait_for_it(), HF_OK);
    CHECK_EQ(inner_status, HF_TIMEOUT);
    CHECK_EQ(test.ran, 2);
    end();
}

/* ---- Input, memory, inspection. ---- */

TEST(bad_input_is_refused)
{
    struct hf_gather_item item;

    CHECK_EQ(hf_gather_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_gather_add(NULL, succeed, NULL), HF_INVALID);
    CHECK_EQ(hf_gather_wait(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_gather_settle(NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_gather_item(NULL, 0, &item), HF_INVALID);
    CHECK_EQ(hf_gather_cancel(NULL), 0);
    CHECK(hf_gather_merge(NULL, digits, NULL, &item) == &item);
    hf_gather_stats(NULL, NULL);
    hf_gather_close(NULL);
    begin(1, 0);
    CHECK_EQ(hf_gather_add(test.gather, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_gather_item(test.gather, 0, NULL), HF_INVALID);
    CHECK_EQ(hf_gather_item(test.gather, 0, &item), HF_NOTFOUND);
    CHECK(hf_gather_merge(test.gather, NULL, NULL, &item) == &item);
    check_counts(0, 0, 0, 0);
    end();
}

TEST(the_default_pool_does_as_well)
{
    struct hf_gather *gather;

    CHECK_EQ(hf_gather_open(&gather, NULL), HF_OK);
    CHECK_EQ(hf_gather_add(gather, succeed, number(1)), HF_OK);
    CHECK_EQ(hf_gather_wait(gather, HF_FOREVER), HF_OK);
    hf_gather_close(gather);
}

/* One task on a pool whose worker is busy, with room for so many allocations.
 */
static enum hf_status add_with(uint64_t allocations)
{
    begin(1, 0);
    CHECK_EQ(hf_pool_call(test.pool, held, NULL, NULL, NULL), HF_OK);
    await(&test.held, 1);
    hf_memory_fail_after(allocations);
    enum hf_status status = add(succeed, 1);
    hf_memory_fail_never();
    size_t added = status == HF_OK;
    check_counts(added, 0, 0, 0);
    let_go();
    CHECK_EQ(wait_for_it(), HF_OK);
    check_counts(0, added, 0, 0);
    end();
    CHECK_EQ(test.ran, added);
    return status;
}

TEST(without_memory_there_is_no_item)
{
    struct hf_gather *gather = NULL;
    uint64_t allocations = 0;
    enum hf_status status;

    hf_memory_fail_after(0);
    status = hf_gather_open(&gather, NULL);
    hf_memory_fail_never();
    CHECK_EQ(status, HF_NOMEM);
    CHECK(gather == NULL);
    while ((status = add_with(allocations)) != HF_OK) {
        CHECK_EQ(status, HF_NOMEM);
        allocations++;
    }
    CHECK(allocations >= 4); /* places, item, future, its call */
}

static void find_row(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->name, "answers") == 0)
        *(struct hf_inspect_row *)context = *row;
}

TEST(it_is_listed)
{
    struct hf_inspect_row row = {.depth = 77};

    begin_on((struct hf_pool_opts){.kind = HF_POOL_SINGLE, .queue_max = 1}, 0);
    CHECK_EQ(add(held, 1), HF_OK);
    await(&test.held, 1);
    CHECK_EQ(add(succeed, 2), HF_OK);
    CHECK_EQ(add(succeed, 3), HF_FULL);
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_EQ(strcmp(row.kind, "gather"), 0);
    CHECK_EQ(row.depth, 2);
    CHECK_EQ(row.rejected, 1);
    CHECK_EQ(row.capacity, HF_INSPECT_NONE);
    end();
    row.depth = 77;
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_EQ(row.depth, 77);
}
