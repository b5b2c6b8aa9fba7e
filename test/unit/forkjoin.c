/* forkjoin.c - tests of fork, join, runs, sleep and the end. */
#include "holdfast/forkjoin.h"

#include <sched.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/thread.h"
#include "support/clock.h"
#include "support/test.h"

static struct hf_forkjoin *open_forkjoin(uint32_t threads)
{
    struct hf_forkjoin *forkjoin = NULL;
    struct hf_forkjoin_opts opts = {.name = "jobs", .threads = threads};

    CHECK_EQ(hf_forkjoin_open(&forkjoin, &opts), HF_OK);
    return forkjoin;
}

static struct hf_forkjoin_stats stats_of(const struct hf_forkjoin *forkjoin)
{
    struct hf_forkjoin_stats stats;

    hf_forkjoin_stats(forkjoin, &stats);
    return stats;
}

static uint32_t get(const struct hf_atomic_u32 *word)
{
    return hf_u32_load(word, __ATOMIC_ACQUIRE);
}

static void set(struct hf_atomic_u32 *word, uint32_t value)
{
    hf_u32_store(word, value, __ATOMIC_RELEASE);
}

/* Until the word is `value` or more; false after a minute. */
static bool await(const struct hf_atomic_u32 *word, uint32_t value)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    while (get(word) < value) {
        if (hf_clock_now_ns(hf_clock_system()) >= deadline_ns)
            return false;
        sched_yield();
    }
    return true;
}

static bool await_sleeping(const struct hf_forkjoin *forkjoin, uint32_t count)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    while (stats_of(forkjoin).sleeping < count) {
        if (hf_clock_now_ns(hf_clock_system()) >= deadline_ns)
            return false;
        sched_yield();
    }
    return true;
}

/* ---- Fork and join. ---- */

struct job {
    uint32_t n;
    uint32_t result;
};

static void fib(struct hf_forkjoin_worker *worker, void *arg)
{
    struct job *job = arg;

    if (job->n < 2) {
        job->result = job->n;
        return;
    }
    struct job a = {job->n - 1, 0};
    struct job b = {job->n - 2, 0};
    struct hf_fork fork;
    (void)hf_fork(worker, &fork, fib, &a);
    fib(worker, &b);
    (void)hf_join(worker, &fork);
    job->result = a.result + b.result;
}

TEST(a_tree_of_forks_gives_its_result_with_any_number_of_threads)
{
    for (uint32_t threads = 1; threads <= 4; threads++) {
        struct hf_forkjoin *forkjoin = open_forkjoin(threads);
        struct job job = {18, 0};
        CHECK_EQ(hf_forkjoin_run(forkjoin, fib, &job), HF_OK);
        CHECK_EQ(job.result, 2584);
        struct hf_forkjoin_stats stats = stats_of(forkjoin);
        CHECK_EQ(stats.threads, threads);
        CHECK_EQ(stats.runs, 1);
        CHECK_EQ(stats.forks, 4180);
        CHECK_EQ(stats.queued, 0);
        CHECK(stats.steals <= stats.forks);
        if (threads == 1)
            CHECK_EQ(stats.steals + stats.parks, 0);
        hf_forkjoin_close(forkjoin);
    }
}

static void add_one(struct hf_forkjoin_worker *worker, void *arg)
{
    (void)worker;
    hf_u32_add((struct hf_atomic_u32 *)arg, 1, __ATOMIC_RELAXED);
}

#define MANY 3000

/* More forks at once than the deque has room for at first, without memory for
 * more if the argument says so. */
static void many_task(struct hf_forkjoin_worker *worker, void *arg)
{
    static struct hf_fork forks[MANY];
    struct hf_atomic_u32 *counts = arg;

    if (get(&counts[1]) != 0)
        hf_memory_fail_after(0);
    for (int i = 0; i < MANY; i++)
        if (hf_fork(worker, &forks[i], add_one, &counts[0]) != HF_OK)
            set(&counts[2], 1);
    hf_memory_fail_never();
    for (int i = 0; i < MANY; i++)
        if (hf_join(worker, &forks[i]) != HF_OK)
            set(&counts[2], 1);
}

TEST(many_forks_run_once_each_also_without_memory)
{
    for (uint32_t fail = 0; fail <= 1; fail++) {
        struct hf_atomic_u32 counts[3] = {{0}, {fail}, {0}};
        struct hf_forkjoin *forkjoin = open_forkjoin(2);
        CHECK_EQ(hf_forkjoin_run(forkjoin, many_task, counts), HF_OK);
        CHECK_EQ(get(&counts[0]), MANY);
        CHECK_EQ(get(&counts[2]), 0);
        CHECK_EQ(stats_of(forkjoin).forks, MANY);
        hf_forkjoin_close(forkjoin);
    }
}

static void invalid_task(struct hf_forkjoin_worker *worker, void *arg)
{
    struct hf_atomic_u32 *wrong = arg;
    struct hf_fork fork;

    if (hf_fork(worker, NULL, fib, NULL) != HF_INVALID ||
        hf_join(worker, NULL) != HF_INVALID)
        set(wrong, 1);
    memset(&fork, 0xff, sizeof fork);
    if (hf_fork(NULL, &fork, fib, NULL) != HF_INVALID ||
        hf_join(NULL, &fork) != HF_INVALID || hf_join(worker, &fork) != HF_OK)
        set(wrong, 2);
    memset(&fork, 0xff, sizeof fork);
    if (hf_fork(worker, &fork, NULL, NULL) != HF_INVALID ||
        hf_join(worker, &fork) != HF_OK)
        set(wrong, 3);
}

TEST(a_fork_that_was_refused_can_be_joined)
{
    struct hf_atomic_u32 wrong = {0};
    struct hf_forkjoin *forkjoin = open_forkjoin(1);

    CHECK_EQ(hf_forkjoin_run(forkjoin, invalid_task, &wrong), HF_OK);
    CHECK_EQ(get(&wrong), 0);
    CHECK_EQ(stats_of(forkjoin).forks, 0);
    hf_forkjoin_close(forkjoin);
}

/* ---- Open, run, the end. ---- */

static void nothing(struct hf_forkjoin_worker *worker, void *arg)
{
    (void)worker;
    (void)arg;
}

TEST(bad_input_is_refused)
{
    struct hf_forkjoin *forkjoin = NULL;
    struct hf_forkjoin_opts opts = {.threads = HF_FORKJOIN_THREADS_MAX + 1};

    CHECK_EQ(hf_forkjoin_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_forkjoin_open(&forkjoin, &opts), HF_INVALID);
    CHECK(forkjoin == NULL);
    CHECK_EQ(hf_forkjoin_run(NULL, nothing, NULL), HF_INVALID);
    CHECK(hf_forkjoin_of(NULL) == NULL);
    CHECK_EQ(stats_of(NULL).threads, 0);
    hf_forkjoin_stats(NULL, NULL);
    hf_forkjoin_shutdown(NULL);
    hf_forkjoin_close(NULL);

    CHECK_EQ(hf_forkjoin_open(&forkjoin, NULL), HF_OK);
    CHECK(stats_of(forkjoin).threads >= 1);
    CHECK_EQ(stats_of(forkjoin).join_p99_ns, HF_INSPECT_NONE);
    CHECK_EQ(hf_forkjoin_run(forkjoin, NULL, NULL), HF_INVALID);
    CHECK_EQ(stats_of(forkjoin).runs, 0);
    hf_forkjoin_close(forkjoin);
}

TEST(open_fails_whole_when_any_allocation_does)
{
    struct hf_forkjoin_opts opts = {.threads = 3};
    uint64_t failed = 0;

    for (;; failed++) {
        struct hf_forkjoin *forkjoin = NULL;
        hf_memory_fail_after(failed);
        enum hf_status status = hf_forkjoin_open(&forkjoin, &opts);
        hf_memory_fail_never();
        if (status == HF_OK) {
            CHECK_EQ(hf_forkjoin_run(forkjoin, nothing, NULL), HF_OK);
            hf_forkjoin_close(forkjoin);
            break;
        }
        CHECK_EQ(status, HF_NOMEM);
        CHECK(forkjoin == NULL);
    }
    CHECK(failed >= 3 * 3); /* worker, deque, array; and the threads */
}

/* A run inside a run: the same thread, the same worker, no other run. */
static void nested_task(struct hf_forkjoin_worker *worker, void *arg)
{
    struct hf_atomic_ptr *outer = arg;
    void *before = hf_ptr_swap(outer, worker, __ATOMIC_RELAXED);
    struct hf_forkjoin *forkjoin = hf_forkjoin_of(worker);

    if (before != NULL) {
        if (before != worker)
            hf_ptr_store(outer, NULL, __ATOMIC_RELAXED);
        return;
    }
    hf_forkjoin_shutdown(forkjoin); /* does not concern what is inside */
    if (hf_forkjoin_run(forkjoin, nested_task, arg) != HF_OK)
        hf_ptr_store(outer, NULL, __ATOMIC_RELAXED);
}

TEST(a_run_in_a_task_goes_on_with_its_worker_also_after_shut)
{
    struct hf_atomic_ptr outer = {NULL};
    struct hf_forkjoin *forkjoin = open_forkjoin(2);

    CHECK(!stats_of(forkjoin).shutdown);
    CHECK_EQ(hf_forkjoin_run(forkjoin, nested_task, &outer), HF_OK);
    CHECK(hf_ptr_load(&outer, __ATOMIC_RELAXED) != NULL);
    CHECK_EQ(stats_of(forkjoin).runs, 1);
    CHECK(stats_of(forkjoin).shutdown);
    CHECK_EQ(hf_forkjoin_run(forkjoin, nothing, NULL), HF_CLOSED);
    CHECK_EQ(stats_of(forkjoin).rejected, 1);
    hf_forkjoin_shutdown(forkjoin);
    hf_forkjoin_close(forkjoin);
}

/* Callers that stay inside until the gate opens. */
struct crowd {
    struct hf_forkjoin *forkjoin;
    struct hf_atomic_u32 inside;
    struct hf_atomic_u32 gate;
    struct hf_atomic_u32 starved; /* runs that had no memory */
};

static void gate_task(struct hf_forkjoin_worker *worker, void *arg)
{
    struct crowd *crowd = arg;

    (void)worker;
    hf_u32_add(&crowd->inside, 1, __ATOMIC_RELEASE);
    (void)await(&crowd->gate, 1);
}

static void crowd_thread(void *argument)
{
    struct crowd *crowd = argument;

    (void)hf_forkjoin_run(crowd->forkjoin, gate_task, crowd);
}

static void starved_thread(void *argument)
{
    struct crowd *crowd = argument;

    hf_memory_fail_after(0);
    if (hf_forkjoin_run(crowd->forkjoin, gate_task, crowd) == HF_NOMEM)
        hf_u32_add(&crowd->starved, 1, __ATOMIC_RELAXED);
    hf_memory_fail_never();
}

TEST(callers_beyond_the_most_are_refused_and_those_without_memory_too)
{
    struct crowd crowd = {.forkjoin = open_forkjoin(1)};
    static struct hf_thread threads[HF_FORKJOIN_RUNS_MAX];
    struct hf_thread starved;

    for (uint32_t i = 0; i < HF_FORKJOIN_RUNS_MAX; i++) {
        CHECK_EQ(hf_thread_start(&threads[i], NULL, crowd_thread, &crowd),
                 HF_OK);
        if (i > 0)
            continue;
        CHECK(await(&crowd.inside, 1)); /* the place that open made is taken */
        CHECK_EQ(hf_thread_start(&starved, NULL, starved_thread, &crowd),
                 HF_OK);
        hf_thread_join(&starved);
        CHECK_EQ(get(&crowd.starved), 1);
    }
    CHECK(await(&crowd.inside, HF_FORKJOIN_RUNS_MAX));
    CHECK_EQ(hf_forkjoin_run(crowd.forkjoin, nothing, NULL), HF_FULL);
    CHECK_EQ(stats_of(crowd.forkjoin).rejected, 2);
    set(&crowd.gate, 1);
    for (uint32_t i = 0; i < HF_FORKJOIN_RUNS_MAX; i++)
        hf_thread_join(&threads[i]);
    CHECK_EQ(hf_forkjoin_run(crowd.forkjoin, nothing, NULL), HF_OK);
    CHECK_EQ(stats_of(crowd.forkjoin).runs, HF_FORKJOIN_RUNS_MAX + 1);
    hf_forkjoin_close(crowd.forkjoin);
}

/* ---- Sleep. ---- */

struct scene {
    struct hf_forkjoin *forkjoin;
    struct hf_atomic_u32 begun;
    struct hf_atomic_u32 gate;
    struct hf_atomic_u32 failed;
};

static void gated_piece(struct hf_forkjoin_worker *worker, void *arg)
{
    struct scene *scene = arg;

    (void)worker;
    set(&scene->begun, 1);
    if (!await(&scene->gate, 1))
        set(&scene->failed, 1);
}

static void sleeping_task(struct hf_forkjoin_worker *worker, void *arg)
{
    struct scene *scene = arg;
    struct hf_fork fork;

    (void)hf_fork(worker, &fork, gated_piece, scene);
    if (!await(&scene->begun, 1)) /* it was stolen */
        set(&scene->failed, 2);
    (void)hf_join(worker, &fork);
}

static void sleeping_thread(void *argument)
{
    struct scene *scene = argument;

    (void)hf_forkjoin_run(scene->forkjoin, sleeping_task, scene);
}

static void find_row(void *context, const struct hf_inspect_row *row)
{
    struct hf_inspect_row *found = context;

    if (strcmp(row->kind, "forkjoin") == 0 && strcmp(row->name, "nap") == 0)
        *found = *row;
}

TEST(a_join_sleeps_by_the_clock_given_and_its_wait_is_told)
{
    struct test_clock clock = {.now_ns = 1000};
    struct hf_forkjoin_opts opts = {
        .name = "nap", .threads = 2, .clock = test_clock(&clock)};
    struct scene scene = {0};
    struct hf_thread thread;
    struct hf_inspect_row row = {.kind = ""};

    CHECK_EQ(hf_forkjoin_open(&scene.forkjoin, &opts), HF_OK);
    test_clock_await_sleepers(&clock, 1); /* the worker */
    CHECK_EQ(hf_thread_start(&thread, NULL, sleeping_thread, &scene), HF_OK);
    CHECK(await(&scene.begun, 1));
    test_clock_await_sleepers(&clock, 1); /* the join; the worker has work */
    CHECK_EQ(stats_of(scene.forkjoin).sleeping, 1);
    test_clock_advance(&clock, 5000000);
    set(&scene.gate, 1);
    hf_thread_join(&thread);
    CHECK_EQ(get(&scene.failed), 0);
    struct hf_forkjoin_stats stats = stats_of(scene.forkjoin);
    CHECK_EQ(stats.steals, 1);
    CHECK(stats.parks >= 2);
    CHECK(stats.join_p99_ns >= 5000000 && stats.join_p99_ns < 7000000);
    hf_forkjoin_shutdown(scene.forkjoin);
    CHECK_EQ(hf_forkjoin_run(scene.forkjoin, nothing, NULL), HF_CLOSED);
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_TEXT(row.kind, strlen(row.kind), "forkjoin");
    CHECK_EQ(row.depth, 0);
    CHECK_EQ(row.rejected, 1);
    CHECK_EQ(row.wait_p99_ns, stats.join_p99_ns);
    CHECK_EQ(row.oldest_ns, HF_INSPECT_NONE);
    hf_forkjoin_close(scene.forkjoin);
}

/* A join is woken for a piece of another run, and its own is done as well: it
 * ends, and must tell the worker, who has fallen asleep meanwhile. The clock,
 * which the join reads when it wakes, holds it there until that is so. */
struct pass {
    struct hf_forkjoin *forkjoin;
    struct hf_atomic_u32 looks;  /* of the join at the clock */
    struct hf_atomic_u32 joiner; /* 1 + its slot */
    struct hf_atomic_u32 other_inside;
    struct hf_atomic_u32 other_goes;
    struct hf_atomic_u32 forked;
    struct hf_atomic_u32 ran;
    struct hf_atomic_u32 failed;
};

static uint64_t pass_now_ns(void *context)
{
    struct pass *pass = context;

    if (get(&pass->joiner) == hf_thread_slot() + 1 &&
        hf_u32_add(&pass->looks, 1, __ATOMIC_ACQ_REL) == 1) {
        if (!await_sleeping(pass->forkjoin, 2)) /* it still counts itself */
            set(&pass->failed, 1);
        set(&pass->other_goes, 1);
        if (!await(&pass->forked, 1))
            set(&pass->failed, 2);
    }
    return 1000;
}

static void pass_piece(struct hf_forkjoin_worker *worker, void *arg)
{
    struct pass *pass = arg;

    (void)worker;
    if (!await(&pass->looks, 1)) /* the join is about to sleep */
        set(&pass->failed, 3);
}

static void pass_join(struct hf_forkjoin_worker *worker, void *arg)
{
    struct pass *pass = arg;
    struct hf_fork fork;

    set(&pass->joiner, hf_thread_slot() + 1);
    (void)hf_fork(worker, &fork, pass_piece, pass);
    while (stats_of(pass->forkjoin).steals == 0)
        sched_yield();
    (void)hf_join(worker, &fork);
}

static void pass_other(struct hf_forkjoin_worker *worker, void *arg)
{
    struct pass *pass = arg;
    struct hf_fork fork;

    set(&pass->other_inside, 1);
    if (!await(&pass->other_goes, 1))
        set(&pass->failed, 4);
    (void)hf_fork(worker, &fork, add_one, &pass->ran);
    set(&pass->forked, 1);
    if (!await(&pass->ran, 1)) /* it could run it itself, but does not */
        set(&pass->failed, 5);
    (void)hf_join(worker, &fork);
}

static void pass_thread(void *argument)
{
    struct pass *pass = argument;

    (void)hf_forkjoin_run(pass->forkjoin, pass_other, pass);
}

TEST(a_join_that_is_woken_and_ends_tells_another)
{
    struct pass pass = {0};
    struct hf_clock clock = *hf_clock_system();
    struct hf_forkjoin_opts opts = {.threads = 2, .clock = &clock};
    struct hf_thread thread;

    clock.now_ns = pass_now_ns;
    clock.wait = NULL;
    clock.context = &pass;
    CHECK_EQ(hf_forkjoin_open(&pass.forkjoin, &opts), HF_OK);
    CHECK_EQ(hf_thread_start(&thread, NULL, pass_thread, &pass), HF_OK);
    CHECK(await(&pass.other_inside, 1));
    CHECK_EQ(hf_forkjoin_run(pass.forkjoin, pass_join, &pass), HF_OK);
    hf_thread_join(&thread);
    CHECK_EQ(get(&pass.failed), 0);
    CHECK_EQ(get(&pass.ran), 1);
    hf_forkjoin_close(pass.forkjoin);
}
