/* pool.c - tests of thread pools: every kind, every policy, every end. */
#include "holdfast/pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "support/clock.h"
#include "support/test.h"

static struct hf_pool_stats stats_of(struct hf_pool *pool)
{
    struct hf_pool_stats stats;

    hf_pool_stats(pool, &stats);
    return stats;
}

/* Nothing is lost: what came in is somewhere. */
static void check_sum(struct hf_pool *pool)
{
    struct hf_pool_stats s = stats_of(pool);

    CHECK_EQ(s.submitted, s.completed + s.failed + s.cancelled + s.discarded +
                              s.returned + s.queued + s.active);
}

static void await_active(struct hf_pool *pool, uint32_t count)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    while (stats_of(pool).active != count) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
}

/* ---- Tasks. ---- */

static int add_one(void *arg)
{
    hf_u32_add(arg, 1, __ATOMIC_ACQ_REL);
    return 0;
}

static uint32_t value_of(struct hf_atomic_u32 *word)
{
    return hf_u32_load(word, __ATOMIC_ACQUIRE);
}

static int fails(void *arg)
{
    (void)arg;
    return 7;
}

/* Keeps its worker until the gate, a future, is opened. */
static int at_gate(void *arg)
{
    return hf_future_get(arg, HF_FOREVER, NULL) == HF_OK ? 0 : 1;
}

static struct hf_future *gate_new(void)
{
    struct hf_future *gate = NULL;

    CHECK_EQ(hf_future_open(&gate, NULL), HF_OK);
    return gate;
}

static void gate_open(struct hf_future *gate)
{
    CHECK_EQ(hf_future_complete(gate, &(struct hf_outcome){.code = 0}), HF_OK);
}

static struct hf_pool *pool_with(struct hf_pool_opts opts)
{
    struct hf_pool *pool = NULL;

    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
    return pool;
}

/* A pool of one whose worker stands at the gate, and whose queue of `room` is
 * empty. */
static struct hf_pool *busy_pool(struct hf_pool_opts opts, uint64_t room,
                                 struct hf_future *gate)
{
    opts.kind = HF_POOL_SINGLE;
    opts.queue_max = room;
    struct hf_pool *pool = pool_with(opts);
    CHECK_EQ(hf_pool_submit(pool, at_gate, gate, NULL, NULL), HF_OK);
    await_active(pool, 1);
    return pool;
}

/* ---- Opening. ---- */

TEST(bad_options_are_refused)
{
    static const struct hf_pool_opts bad[] = {
        {.kind = (enum hf_pool_kind)99},
        {.reject = (enum hf_pool_reject)99},
        {.reject = HF_POOL_ASK},
        {.max_threads = HF_POOL_THREADS_MAX + 1},
        {.min_threads = HF_POOL_THREADS_MAX + 1},
        {.kind = HF_POOL_DYNAMIC, .min_threads = 3, .max_threads = 2},
        {.kind = HF_POOL_SINGLE, .max_threads = 2},
        {.kind = HF_POOL_SINGLE, .min_threads = 2},
    };
    struct hf_pool *pool = NULL;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_EQ(hf_pool_open(&pool, &bad[i]), HF_INVALID);
    CHECK_EQ(hf_pool_open(NULL, NULL), HF_INVALID);
    CHECK(pool == NULL);
    hf_pool_close(NULL);
    hf_pool_shutdown(NULL);
    CHECK_EQ(hf_pool_shutdown_now(NULL, NULL, NULL), 0);
    CHECK_EQ(hf_pool_await(NULL, HF_NOW), HF_INVALID);
    hf_pool_stats(NULL, NULL);
}

TEST(bad_tasks_are_refused_and_change_nothing)
{
    struct hf_pool *pool = pool_with((struct hf_pool_opts){.max_threads = 1});
    const struct hf_task_opts bad = {.priority = HF_POOL_PRIORITIES + 1};
    struct hf_atomic_u32 ran = {0};

    CHECK_EQ(hf_pool_submit(pool, NULL, NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_pool_call(pool, NULL, NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_pool_submit(NULL, add_one, &ran, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_pool_submit(pool, add_one, &ran, &bad, NULL), HF_INVALID);
    CHECK_EQ(stats_of(pool).submitted, 0);
    CHECK_EQ(stats_of(pool).rejected, 0);
    hf_pool_close(pool);
    CHECK_EQ(value_of(&ran), 0);
}

TEST(every_kind_runs_10000_tasks_once)
{
    for (int kind = HF_POOL_FIXED; kind <= HF_POOL_DYNAMIC; kind++) {
        struct hf_pool *pool = pool_with((struct hf_pool_opts){
            .kind = (enum hf_pool_kind)kind,
            .max_threads = kind == HF_POOL_SINGLE ? 1 : 4});
        struct hf_atomic_u32 *ran = calloc(10000, sizeof *ran);

        for (int i = 0; i < 10000; i++)
            CHECK_EQ(hf_pool_submit(pool, add_one, &ran[i], NULL, NULL), HF_OK);
        CHECK_EQ(hf_pool_await(pool, HF_NOW), HF_TIMEOUT);
        hf_pool_shutdown(pool);
        CHECK_EQ(hf_pool_await(pool, HF_FOREVER), HF_OK);
        for (int i = 0; i < 10000; i++)
            CHECK_EQ(value_of(&ran[i]), 1);
        CHECK_EQ(stats_of(pool).state, HF_POOL_STOPPED);
        CHECK_EQ(stats_of(pool).threads, 0);
        CHECK_EQ(stats_of(pool).completed, 10000);
        CHECK(stats_of(pool).threads_peak <= 4);
        check_sum(pool);
        hf_pool_close(pool);
        free(ran);
    }
}

TEST(the_default_pool_is_one_and_runs)
{
    struct hf_pool *pool = hf_pool_default();
    struct hf_atomic_u32 ran = {0};
    struct hf_future *future;

    CHECK(pool != NULL && pool == hf_pool_default());
    CHECK_EQ(hf_pool_submit(pool, add_one, &ran, NULL, &future), HF_OK);
    CHECK_EQ(hf_future_get(future, HF_FOREVER, NULL), HF_OK);
    CHECK_EQ(value_of(&ran), 1);
    hf_future_release(future);
    hf_pool_close(pool); /* changes nothing: others have it, too */
    CHECK(pool == hf_pool_default());
    CHECK_EQ(stats_of(pool).state, HF_POOL_RUNNING);
    CHECK_EQ(hf_pool_submit(pool, add_one, &ran, NULL, &future), HF_OK);
    CHECK_EQ(hf_future_get(future, HF_FOREVER, NULL), HF_OK);
    CHECK_EQ(value_of(&ran), 2);
    hf_future_release(future);
}

TEST(without_memory_opening_and_submitting_fail_cleanly)
{
    struct hf_pool *pool = NULL;
    struct hf_future *future = NULL;
    struct hf_atomic_u32 ran = {0};
    const struct hf_pool_opts cached = {.kind = HF_POOL_CACHED};
    enum hf_status status = HF_NOMEM;

    for (uint64_t i = 0; status != HF_OK; i++) {
        hf_memory_fail_after(i);
        status = hf_pool_open(&pool, &(struct hf_pool_opts){.max_threads = 2});
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
    }
    hf_pool_close(pool);
    /* No thread is there, so each allocation counts: future, record, worker,
     * thread; the record is kept. */
    CHECK_EQ(hf_pool_open(&pool, &cached), HF_OK);
    for (uint64_t i = 0; i < 4; i++) {
        hf_memory_fail_after(i < 3 ? i : 2);
        status = hf_pool_submit(pool, add_one, &ran, NULL, &future);
        hf_memory_fail_never();
        CHECK_EQ(status, HF_NOMEM);
        CHECK_EQ(stats_of(pool).submitted, 0);
        CHECK_EQ(stats_of(pool).queued, 0);
        CHECK_EQ(stats_of(pool).threads, 0);
        CHECK_EQ(stats_of(pool).rejected, i);
    }
    CHECK_EQ(hf_pool_submit(pool, add_one, &ran, NULL, NULL), HF_OK);
    check_sum(pool);
    hf_pool_close(pool);
    CHECK_EQ(value_of(&ran), 1);
}

/* ---- Running. ---- */

static int with_result(void *arg, void **result)
{
    *result = arg;
    return arg == NULL ? 3 : 0;
}

TEST(a_failing_task_is_counted_and_the_worker_goes_on)
{
    struct hf_pool *pool = pool_with((struct hf_pool_opts){.max_threads = 1});
    struct hf_outcome outcome;
    struct hf_future *future;
    struct hf_atomic_u32 ran = {0};

    CHECK_EQ(hf_pool_submit(pool, fails, NULL, NULL, &future), HF_OK);
    CHECK_EQ(hf_pool_submit(pool, add_one, &ran, NULL, NULL), HF_OK);
    CHECK_EQ(hf_future_get(future, HF_FOREVER, &outcome), HF_OK);
    CHECK_EQ(outcome.status, HF_FAILED);
    CHECK_EQ(outcome.code, 7);
    hf_future_release(future);
    CHECK_EQ(hf_pool_call(pool, with_result, &ran, NULL, &future), HF_OK);
    CHECK_EQ(hf_future_get(future, HF_FOREVER, &outcome), HF_OK);
    CHECK_EQ(outcome.status, HF_OK);
    CHECK(outcome.result == &ran);
    CHECK_EQ(stats_of(pool).failed, 1);
    CHECK_EQ(stats_of(pool).completed, 2);
    CHECK_EQ(stats_of(pool).threads, 1);
    hf_pool_close(pool);
    hf_future_release(future); /* it outlives its pool */
    CHECK_EQ(value_of(&ran), 1);
}

static char ran_order[16];

static int note_order(void *arg)
{
    ran_order[strlen(ran_order)] = *(const char *)arg;
    return 0;
}

TEST(priorities_come_first_then_the_order_of_submission)
{
    struct hf_future *gate = gate_new();
    struct hf_pool *pool = busy_pool((struct hf_pool_opts){0}, 0, gate);
    static char names[8][2] = {"a", "b", "c", "d", "e", "f", "g", "h"};
    static const uint32_t priorities[8] = {4, 0, 1, 2, 3, 1, 4, 2};

    memset(ran_order, 0, sizeof ran_order);
    for (int i = 0; i < 8; i++) {
        const struct hf_task_opts opts = {.priority = priorities[i]};
        CHECK_EQ(hf_pool_submit(pool, note_order, names[i], &opts, NULL),
                 HF_OK);
    }
    gate_open(gate);
    hf_pool_close(pool);
    CHECK_TEXT(ran_order, strlen(ran_order), "cfdhbeag");
    hf_future_release(gate);
}

/* A tree of tasks in which each waits for its two children. */
struct tree {
    struct hf_pool *pool;
    struct hf_atomic_u32 ran;
};
struct node {
    struct tree *tree;
    int depth;
};

static int grow_tree(void *arg)
{
    struct node *node = arg;
    struct node below = {node->tree, node->depth - 1};
    struct hf_future *futures[2];
    int wrong = 0;

    add_one(&node->tree->ran);
    if (node->depth == 0)
        return 0;
    for (int i = 0; i < 2; i++)
        wrong |= hf_pool_submit(node->tree->pool, grow_tree, &below, NULL,
                                &futures[i]) != HF_OK;
    if (wrong)
        return 1;
    wrong = hf_future_all(futures, 2, HF_FOREVER) != HF_OK;
    for (int i = 0; i < 2; i++) {
        struct hf_outcome outcome = {HF_FAILED, 1, NULL};
        (void)hf_future_get(futures[i], HF_NOW, &outcome);
        wrong |= outcome.code;
        hf_future_release(futures[i]);
    }
    return wrong;
}

TEST(tasks_wait_for_tasks_of_their_own_pool)
{
    for (uint32_t threads = 1; threads <= 3; threads++) {
        struct hf_pool *pool =
            pool_with((struct hf_pool_opts){.max_threads = threads});
        struct tree tree = {.pool = pool};
        struct node root = {&tree, 12};
        struct hf_outcome outcome;
        struct hf_future *future;

        CHECK_EQ(hf_pool_submit(pool, grow_tree, &root, NULL, &future), HF_OK);
        CHECK_EQ(hf_future_get(future, HF_FOREVER, &outcome), HF_OK);
        CHECK_EQ(outcome.code, 0);
        CHECK_EQ(value_of(&tree.ran), (1 << 13) - 1);
        CHECK_EQ(stats_of(pool).completed, (1 << 13) - 1);
        hf_future_release(future);
        check_sum(pool);
        hf_pool_close(pool);
    }
}

/* Submits many to its own pool, whose queue has one place. */
static int floods(void *arg)
{
    struct tree *tree = arg;
    int wrong = 0;

    for (int i = 0; i < 1000; i++)
        wrong |= hf_pool_submit(tree->pool, add_one, &tree->ran, NULL, NULL) !=
                 HF_OK;
    return wrong;
}

TEST(a_task_may_submit_to_its_own_full_pool)
{
    static const enum hf_pool_reject policies[] = {
        HF_POOL_BLOCK, HF_POOL_CALLER_RUNS, HF_POOL_DISCARD,
        HF_POOL_DISCARD_OLDEST};

    for (unsigned i = 0; i < 4; i++) {
        struct tree tree = {.pool = pool_with((struct hf_pool_opts){
                                .max_threads = 1,
                                .queue_max = 1,
                                .reject = policies[i],
                            })};

        CHECK_EQ(hf_pool_submit(tree.pool, floods, &tree, NULL, NULL), HF_OK);
        hf_pool_shutdown(tree.pool);
        CHECK_EQ(hf_pool_await(tree.pool, HF_FOREVER), HF_OK);
        struct hf_pool_stats stats = stats_of(tree.pool);
        CHECK_EQ(stats.completed + stats.failed, value_of(&tree.ran) + 1);
        CHECK_EQ(stats.submitted,
                 stats.completed + stats.failed + stats.discarded);
        check_sum(tree.pool);
        hf_pool_close(tree.pool);
    }
}

static int shuts_down(void *arg)
{
    struct tree *tree = arg;

    hf_pool_shutdown(tree->pool);
    return hf_pool_await(tree->pool, HF_NOW) == HF_INVALID ? 0 : 1;
}

TEST(a_task_may_shut_its_pool_down_but_not_await_it)
{
    struct tree tree = {.pool = pool_with((struct hf_pool_opts){
                            .max_threads = 2,
                        })};

    CHECK_EQ(hf_pool_submit(tree.pool, shuts_down, &tree, NULL, NULL), HF_OK);
    CHECK_EQ(hf_pool_await(tree.pool, HF_FOREVER), HF_OK);
    CHECK_EQ(stats_of(tree.pool).completed, 1);
    CHECK_EQ(hf_pool_submit(tree.pool, add_one, &tree.ran, NULL, NULL),
             HF_CLOSED);
    hf_pool_close(tree.pool);
}

/* A task of one pool that a submitter, itself a task of another, runs: both
 * pools are its own. */
static int asks_inner(void *arg)
{
    struct tree *tree = arg; /* of the outer pool */
    struct hf_future *future;
    struct hf_outcome outcome = {HF_FAILED, 1, NULL};

    if (hf_pool_submit(tree->pool, add_one, &tree->ran, NULL, &future) != HF_OK)
        return 1;
    (void)hf_future_get(future, HF_FOREVER, &outcome);
    hf_future_release(future);
    return outcome.code;
}

struct two {
    struct tree *outer;
    struct hf_pool *inner;
};

static int asks_outer(void *arg)
{
    struct two *two = arg;

    return hf_pool_submit(two->inner, asks_inner, two->outer, NULL, NULL) !=
           HF_OK;
}

TEST(a_caller_that_runs_the_task_of_another_pool_still_helps_its_own)
{
    struct hf_future *gate = gate_new();
    struct hf_pool *inner = busy_pool(
        (struct hf_pool_opts){.reject = HF_POOL_CALLER_RUNS}, 1, gate);
    struct tree outer = {
        .pool = pool_with((struct hf_pool_opts){.max_threads = 1})};
    struct two two = {&outer, inner};
    struct hf_atomic_u32 ran = {0};
    struct hf_outcome outcome;
    struct hf_future *future;

    CHECK_EQ(hf_pool_submit(inner, add_one, &ran, NULL, NULL), HF_OK);
    CHECK_EQ(hf_pool_submit(outer.pool, asks_outer, &two, NULL, &future),
             HF_OK);
    CHECK_EQ(hf_future_get(future, HF_FOREVER, &outcome), HF_OK);
    CHECK_EQ(outcome.code, 0);
    CHECK_EQ(stats_of(inner).caller_ran, 1);
    CHECK_EQ(value_of(&outer.ran), 1);
    hf_future_release(future);
    gate_open(gate);
    hf_pool_close(outer.pool);
    hf_pool_close(inner);
    hf_future_release(gate);
}

/* ---- The end. ---- */

static void count_back(void *context, void *arg)
{
    uint32_t *sum = context;

    *sum += *(uint32_t *)arg;
}

TEST(shutdown_now_hands_back_exactly_what_had_not_begun)
{
    struct hf_future *gate = gate_new();
    struct hf_pool *pool = busy_pool((struct hf_pool_opts){0}, 0, gate);
    static uint32_t args[5] = {1, 10, 100, 1000, 10000};
    struct hf_future *futures[5];
    struct hf_outcome outcome;
    uint32_t sum = 0;

    for (int i = 0; i < 5; i++)
        CHECK_EQ(hf_pool_submit(pool, fails, &args[i], NULL, &futures[i]),
                 HF_OK);
    CHECK_EQ(hf_future_cancel(futures[2]), HF_OK);
    CHECK_EQ(hf_future_cancel(futures[2]), HF_NOTFOUND);
    CHECK_EQ(hf_pool_shutdown_now(pool, count_back, &sum), 4);
    CHECK_EQ(sum, 11011);
    CHECK_EQ(hf_pool_shutdown_now(pool, count_back, &sum), 0);
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(hf_future_get(futures[i], HF_NOW, &outcome), HF_OK);
        CHECK_EQ(outcome.status, HF_CANCELLED);
        hf_future_release(futures[i]);
    }
    CHECK_EQ(stats_of(pool).returned, 4);
    CHECK_EQ(stats_of(pool).cancelled, 1);
    CHECK_EQ(stats_of(pool).state, HF_POOL_SHUTDOWN);
    check_sum(pool);
    gate_open(gate);
    hf_pool_close(pool);
    hf_future_release(gate);
}

static void *await_until_2000(void *pool)
{
    return (void *)(uintptr_t)hf_pool_await(pool, 2000);
}

TEST(await_returns_in_time_while_a_task_hangs)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_future *gate = gate_new();
    struct hf_pool *pool =
        busy_pool((struct hf_pool_opts){.clock = test_clock(&clock)}, 0, gate);
    pthread_t thread;
    void *status;

    hf_pool_shutdown(pool);
    CHECK_EQ(hf_pool_await(pool, 1000), HF_TIMEOUT);
    CHECK_EQ(pthread_create(&thread, NULL, await_until_2000, pool), 0);
    test_clock_await_sleepers(&clock, 1);
    test_clock_advance(&clock, 1000);
    CHECK_EQ(pthread_join(thread, &status), 0);
    CHECK_EQ((uintptr_t)status, HF_TIMEOUT);
    gate_open(gate);
    hf_pool_close(pool);
    hf_future_release(gate);
}
