/* pool_exit.c - tests of tasks that fail, and of those that end their thread
 * instead of returning: no hang, right counts. */
#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/thread.h"
#include "exec/pool_state.h"
#include "holdfast/pool.h"
#include "support/test.h"

#define TASKS 60

static struct hf_pool_stats stats_of(struct hf_pool *pool)
{
    struct hf_pool_stats stats;

    hf_pool_stats(pool, &stats);
    return stats;
}

static void check_sum(struct hf_pool *pool)
{
    struct hf_pool_stats s = stats_of(pool);

    CHECK_EQ(s.submitted, s.completed + s.failed + s.cancelled + s.discarded +
                              s.returned + s.queued + s.active);
}

static void await_threads(struct hf_pool *pool, uint32_t count)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    while (stats_of(pool).threads != count) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
}

static struct hf_pool *pool_with(struct hf_pool_opts opts)
{
    struct hf_pool *pool = NULL;

    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
    return pool;
}

static struct hf_future *submit(struct hf_pool *pool, int (*fn)(void *arg),
                                void *arg)
{
    struct hf_future *future = NULL;

    CHECK_EQ(hf_pool_submit(pool, fn, arg, NULL, &future), HF_OK);
    return future;
}

/* Waits for it, and takes the reference. */
static struct hf_outcome outcome_of(struct hf_future *future)
{
    struct hf_outcome outcome = {HF_PENDING, 0, NULL};
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    CHECK_EQ(hf_future_get(future, deadline_ns, &outcome), HF_OK);
    hf_future_release(future);
    return outcome;
}

/* Waits for the end, not for ever. */
static void end(struct hf_pool *pool)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    hf_pool_shutdown(pool);
    CHECK_EQ(hf_pool_await(pool, deadline_ns), HF_OK);
    CHECK_EQ(stats_of(pool).threads, 0);
    CHECK_EQ(stats_of(pool).active, 0);
    CHECK_EQ(stats_of(pool).queued, 0);
    check_sum(pool);
}

/* ---- Tasks. ---- */

static int succeeds(void *arg)
{
    (void)arg;
    return 0;
}

static int returns_arg(void *arg)
{
    return *(int *)arg;
}

static int leaves_arg(void *arg, void **result)
{
    *result = arg;
    return *(int *)arg;
}

static int exits(void *arg)
{
    (void)arg;
    pthread_exit(NULL);
}

static int is_cancelled(void *arg)
{
    (void)arg;
    (void)pthread_cancel(pthread_self());
    pthread_testcancel();
    return 0; /* not reached */
}

static int call_exits(void *arg, void **result)
{
    *result = arg;
    pthread_exit(arg);
}

static int at_gate(void *arg)
{
    return hf_future_get(arg, HF_FOREVER, NULL) == HF_OK ? 0 : 1;
}

/* ---- Tasks that return an error. ---- */

TEST(what_a_task_returns_is_the_code_of_its_future)
{
    static int codes[] = {0, 1, 7, -1, 255, 2147483647, HF_POOL_EXITED};
    const size_t count = sizeof codes / sizeof *codes;
    struct hf_pool *pool = pool_with((struct hf_pool_opts){.max_threads = 2});

    for (size_t i = 0; i < count; i++) {
        enum hf_status expected = codes[i] == 0 ? HF_OK : HF_FAILED;
        struct hf_outcome got =
            outcome_of(submit(pool, returns_arg, &codes[i]));
        CHECK_EQ(got.status, expected);
        CHECK_EQ(got.code, codes[i]);
        struct hf_future *future;
        CHECK_EQ(hf_pool_call(pool, leaves_arg, &codes[i], NULL, &future),
                 HF_OK);
        got = outcome_of(future);
        CHECK_EQ(got.status, expected);
        CHECK_EQ(got.code, codes[i]);
        CHECK(got.result == &codes[i]); /* a failure may leave one as well */
    }
    CHECK_EQ(stats_of(pool).completed, 2);
    CHECK_EQ(stats_of(pool).failed, 2 * (count - 1));
    CHECK_EQ(stats_of(pool).threads, 2);
    end(pool);
    hf_pool_close(pool);
}

/* ---- Tasks that end their thread. ---- */

TEST(tasks_that_end_their_thread_have_failed_and_the_others_run)
{
    for (int kind = HF_POOL_FIXED; kind <= HF_POOL_DYNAMIC; kind++) {
        struct hf_pool *pool = pool_with((struct hf_pool_opts){
            .kind = (enum hf_pool_kind)kind,
            .max_threads = kind == HF_POOL_SINGLE ? 1 : 3});
        int (*const kinds[])(void *) = {succeeds, exits, is_cancelled};
        struct hf_future *futures[TASKS];

        for (int i = 0; i < TASKS; i++)
            futures[i] = submit(pool, kinds[i % 3], NULL);
        for (int i = 0; i < TASKS; i++) {
            struct hf_outcome got = outcome_of(futures[i]);
            CHECK_EQ(got.status, i % 3 == 0 ? HF_OK : HF_FAILED);
            CHECK_EQ(got.code, i % 3 == 0 ? 0 : HF_POOL_EXITED);
            CHECK(got.result == NULL);
        }
        CHECK_EQ(stats_of(pool).completed, TASKS / 3);
        CHECK_EQ(stats_of(pool).failed, TASKS - TASKS / 3);
        if (kind == HF_POOL_FIXED || kind == HF_POOL_SINGLE)
            await_threads(pool, kind == HF_POOL_FIXED ? 3 : 1);
        CHECK_EQ(outcome_of(submit(pool, succeeds, NULL)).status, HF_OK);
        CHECK(stats_of(pool).threads_peak <= 3);
        end(pool);
        hf_pool_close(pool);
    }
}

TEST(shutdown_finishes_what_is_queued_behind_tasks_that_end_their_thread)
{
    struct hf_future *gate = NULL;
    struct hf_future *futures[TASKS];

    CHECK_EQ(hf_future_open(&gate, NULL), HF_OK);
    struct hf_pool *pool =
        pool_with((struct hf_pool_opts){.kind = HF_POOL_SINGLE});
    hf_future_release(submit(pool, at_gate, gate));
    for (int i = 0; i < TASKS; i++)
        futures[i] = submit(pool, i % 2 == 0 ? exits : succeeds, NULL);
    hf_pool_shutdown(pool);
    CHECK_EQ(hf_future_complete(gate, &(struct hf_outcome){.code = 0}), HF_OK);
    end(pool);
    CHECK_EQ(stats_of(pool).completed, 1 + TASKS / 2);
    CHECK_EQ(stats_of(pool).failed, TASKS / 2);
    CHECK_EQ(stats_of(pool).threads_peak, 1);
    hf_pool_close(pool);
    for (int i = 0; i < TASKS; i++)
        CHECK_EQ(outcome_of(futures[i]).code, i % 2 == 0 ? HF_POOL_EXITED : 0);
    hf_future_release(gate);
}

TEST(a_close_right_after_them_does_not_hang)
{
    for (int i = 0; i < 50; i++) {
        struct hf_pool *pool = pool_with((struct hf_pool_opts){
            .kind = i % 2 == 0 ? HF_POOL_FIXED : HF_POOL_CACHED,
            .max_threads = 2});
        for (int task = 0; task < 4; task++)
            CHECK_EQ(hf_pool_submit(pool, exits, NULL, NULL, NULL), HF_OK);
        hf_pool_close(pool);
    }
}

/* A task of a pool of one, which runs another of its pool, which exits. */
static struct hf_pool *own;
static struct hf_future *inner;

static int waits_for_exit(void *arg)
{
    (void)arg;
    if (hf_pool_call(own, call_exits, &own, NULL, &inner) != HF_OK)
        return 1;
    return hf_future_get(inner, HF_FOREVER, NULL) == HF_OK ? 0 : 1;
}

TEST(a_task_fails_with_the_one_that_it_runs_while_it_waits)
{
    own = pool_with((struct hf_pool_opts){.kind = HF_POOL_SINGLE});
    struct hf_outcome got = outcome_of(submit(own, waits_for_exit, NULL));

    CHECK_EQ(got.code, HF_POOL_EXITED);
    got = outcome_of(inner);
    CHECK_EQ(got.status, HF_FAILED);
    CHECK_EQ(got.code, HF_POOL_EXITED);
    CHECK(got.result == NULL);
    CHECK_EQ(stats_of(own).failed, 2);
    CHECK_EQ(outcome_of(submit(own, succeeds, NULL)).status, HF_OK);
    end(own);
    hf_pool_close(own);
}

static void *submits_exits(void *pool)
{
    (void)hf_pool_submit(pool, exits, NULL, NULL, NULL);
    return pool; /* not reached: its own thread has ended */
}

TEST(a_submitter_that_runs_it_ends_and_the_counts_are_right)
{
    struct hf_future *gate = NULL;
    pthread_t thread;
    void *returned = &thread;

    CHECK_EQ(hf_future_open(&gate, NULL), HF_OK);
    struct hf_pool *pool = pool_with((struct hf_pool_opts){
        .kind = HF_POOL_SINGLE, .queue_max = 1, .reject = HF_POOL_CALLER_RUNS});
    struct hf_future *held = submit(pool, at_gate, gate);
    while (stats_of(pool).active == 0)
        sched_yield();
    hf_future_release(submit(pool, succeeds, NULL));
    CHECK_EQ(pthread_create(&thread, NULL, submits_exits, pool), 0);
    CHECK_EQ(pthread_join(thread, &returned), 0);
    CHECK(returned == NULL);
    CHECK_EQ(stats_of(pool).caller_ran, 1);
    CHECK_EQ(stats_of(pool).failed, 1);
    CHECK_EQ(stats_of(pool).active, 1);
    CHECK_EQ(stats_of(pool).threads, 1);
    CHECK_EQ(hf_future_complete(gate, &(struct hf_outcome){.code = 0}), HF_OK);
    CHECK_EQ(outcome_of(held).status, HF_OK);
    end(pool);
    hf_pool_close(pool);
    hf_future_release(gate);
}

struct seen {
    struct hf_atomic_u32 exited;    /* told as failed, by that */
    struct hf_atomic_u32 discarded; /* told as dropped */
};

static void observe(void *context, const struct hf_pool_note *note)
{
    struct seen *seen = context;

    if (note->event == HF_POOL_FAILED && note->code == HF_POOL_EXITED)
        hf_u32_add(&seen->exited, 1, __ATOMIC_RELAXED);
    if (note->event == HF_POOL_DISCARDED)
        hf_u32_add(&seen->discarded, 1, __ATOMIC_RELAXED);
}

/* No memory for another worker, or no thread: counted for each thread. */
static int exits_without_memory(void *arg)
{
    (void)hf_future_get(arg, HF_FOREVER, NULL);
    hf_memory_fail_after(0);
    pthread_exit(NULL);
}

static int exits_without_threads(void *arg)
{
    (void)hf_future_get(arg, HF_FOREVER, NULL);
    hf_thread_fail_after(0);
    pthread_exit(NULL);
}

static void lose_the_last(int (*fn)(void *arg), bool shut)
{
    struct seen seen = {0};
    struct hf_future *gate = NULL;
    struct hf_future *futures[3];

    CHECK_EQ(hf_future_open(&gate, NULL), HF_OK);
    struct hf_pool *pool =
        pool_with((struct hf_pool_opts){.kind = HF_POOL_SINGLE,
                                        .times = true,
                                        .observe = observe,
                                        .context = &seen});
    struct hf_future *lost = submit(pool, fn, gate);
    for (int i = 0; i < 3; i++)
        futures[i] = submit(pool, succeeds, NULL);
    if (shut)
        hf_pool_shutdown(pool);
    CHECK_EQ(hf_future_complete(gate, &(struct hf_outcome){.code = 0}), HF_OK);
    CHECK_EQ(outcome_of(lost).code, HF_POOL_EXITED);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(outcome_of(futures[i]).status, HF_CANCELLED);
    if (!shut) { /* the next may have better luck */
        CHECK_EQ(outcome_of(submit(pool, succeeds, NULL)).status, HF_OK);
        CHECK_EQ(stats_of(pool).threads, 1);
    }
    end(pool);
    CHECK_EQ(stats_of(pool).discarded, 3);
    CHECK_EQ(stats_of(pool).failed, 1);
    CHECK_EQ(hf_u32_load(&seen.exited, __ATOMIC_RELAXED), 1);
    CHECK_EQ(hf_u32_load(&seen.discarded, __ATOMIC_RELAXED), 3);
    hf_pool_close(pool);
    hf_future_release(gate);
}

TEST(what_is_queued_is_discarded_if_nobody_can_take_the_last_ones_place)
{
    lose_the_last(exits_without_memory, false);
    lose_the_last(exits_without_memory, true);
    lose_the_last(exits_without_threads, false);
    lose_the_last(exits_without_threads, true);
}

/* ---- All at once. ---- */

struct crowd {
    struct hf_pool *pool;
    struct hf_atomic_u32 ok;
    struct hf_atomic_u32 lost;
};

static void *crowd_main(void *context)
{
    struct crowd *crowd = context;

    for (int i = 0; i < 300; i++) {
        struct hf_outcome got = outcome_of(
            submit(crowd->pool, i % 5 == 0 ? exits : succeeds, NULL));
        hf_u32_add(got.code == 0 ? &crowd->ok : &crowd->lost, 1,
                   __ATOMIC_RELAXED);
    }
    return NULL;
}

TEST(many_threads_submit_while_workers_are_lost)
{
    static const enum hf_pool_kind kinds[] = {HF_POOL_FIXED, HF_POOL_CACHED,
                                              HF_POOL_DYNAMIC};

    for (unsigned k = 0; k < 3; k++) {
        struct crowd crowd = {
            .pool = pool_with((struct hf_pool_opts){
                .kind = kinds[k], .max_threads = 3, .idle_ns = 1000})};
        pthread_t threads[4];

        for (int i = 0; i < 4; i++)
            CHECK_EQ(pthread_create(&threads[i], NULL, crowd_main, &crowd), 0);
        for (int i = 0; i < 4; i++)
            CHECK_EQ(pthread_join(threads[i], NULL), 0);
        CHECK_EQ(hf_u32_load(&crowd.ok, __ATOMIC_RELAXED), 4 * 240);
        CHECK_EQ(hf_u32_load(&crowd.lost, __ATOMIC_RELAXED), 4 * 60);
        CHECK_EQ(stats_of(crowd.pool).failed, 4 * 60);
        CHECK(stats_of(crowd.pool).threads_peak <= 3);
        end(crowd.pool);
        hf_pool_close(crowd.pool);
    }
}

static bool has_gone(struct hf_pool *pool)
{
    hf_mutex_lock(&pool->mutex);
    bool any = pool->gone != NULL;
    hf_mutex_unlock(&pool->mutex);
    return any;
}

/* The thread sanitizer reports it at the end of the process if it is not. */
TEST(a_thread_of_the_default_pool_that_ended_is_joined_at_the_end)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);
    struct hf_pool *pool = hf_pool_default();

    CHECK_EQ(outcome_of(submit(pool, exits, NULL)).code, HF_POOL_EXITED);
    while (!has_gone(pool)) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
}
