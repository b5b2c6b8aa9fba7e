/* forkjoin.c - fork, join, run and the end, step by step.
 *
 * Besides results: that nobody sleeps while there is a piece. The pieces of
 * some cases wait for each other, which users must not do: it makes each of
 * them need a thread of its own, so a wake-up that is lost is a deadlock.
 */
#include "holdfast/forkjoin.h"

#include <string.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/event.h"
#include "support/schedule.h"
#include "support/test.h"

static struct {
    struct hf_forkjoin *forkjoin;
    struct hf_atomic_u32 arrived;
    struct hf_atomic_u32 ran;
    struct hf_event event;
} shared;

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    memset(&shared, 0, sizeof shared);
}

static void open_forkjoin(uint32_t threads)
{
    struct hf_forkjoin_opts opts = {.threads = threads};

    if (hf_forkjoin_open(&shared.forkjoin, &opts) != HF_OK)
        schedule_wrong("open failed");
}

static void run(hf_forkjoin_fn *fn, void *arg)
{
    if (hf_forkjoin_run(shared.forkjoin, fn, arg) != HF_OK)
        schedule_wrong("run failed");
}

/* ---- Results. ---- */

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

static void run_fib(uint32_t n, uint32_t expected)
{
    struct job job = {n, 0};

    run(fib, &job);
    if (job.result != expected)
        schedule_wrong("fib(%u) is %u", n, job.result);
}

static void fib_body(void *context, unsigned fiber)
{
    struct hf_forkjoin_stats stats;

    (void)context;
    (void)fiber;
    open_forkjoin(1 + (uint32_t)schedule_random(4));
    run_fib(6, 8);
    run_fib(4, 3);
    hf_forkjoin_stats(shared.forkjoin, &stats);
    if (stats.forks != 12 + 4 || stats.queued != 0 || stats.runs != 2)
        schedule_wrong("%llu forks", (unsigned long long)stats.forks);
    hf_forkjoin_close(shared.forkjoin);
}

TEST(a_tree_of_forks_gives_its_result)
{
    struct schedule_case c = {
        .name = "fib", .fibers = 1, .setup = setup, .body = fib_body};
    schedule_check(&c);
}

static void mark(struct hf_forkjoin_worker *worker, void *arg)
{
    uint32_t *ran = arg;

    (void)worker;
    ++*ran; /* twice would be a race or a wrong count */
}

/* Joins in an order of its own, also of the zeroed and of the refused. */
static void order_task(struct hf_forkjoin_worker *worker, void *arg)
{
    struct hf_fork forks[5] = {{0}};
    uint32_t ran[4] = {0};
    uint32_t first = (uint32_t)schedule_random(4);
    uint32_t step = schedule_random(2) == 0 ? 1 : 3;

    (void)arg;
    for (uint32_t i = 0; i < 4; i++)
        (void)hf_fork(worker, &forks[i], mark, &ran[i]);
    (void)hf_join(worker, &forks[4]);
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t which = (first + i * step) % 4;
        (void)hf_join(worker, &forks[which]);
        if (ran[which] != 1)
            schedule_wrong("piece %u ran %u times", which, ran[which]);
    }
}

static void order_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    open_forkjoin(3);
    run(order_task, NULL);
    hf_forkjoin_close(shared.forkjoin);
}

TEST(joins_come_in_any_order)
{
    struct schedule_case c = {
        .name = "order", .fibers = 1, .setup = setup, .body = order_body};
    schedule_check(&c);
}

/* ---- Several runs. ---- */

static void run_thread(void *argument)
{
    (void)argument;
    run_fib(4, 3);
    run_fib(3, 2);
}

static void runs_body(void *context, unsigned fiber)
{
    struct hf_thread threads[2];

    (void)context;
    (void)fiber;
    open_forkjoin(2);
    for (int i = 0; i < 2; i++)
        (void)hf_thread_start(&threads[i], NULL, run_thread, NULL);
    run_thread(NULL);
    for (int i = 0; i < 2; i++)
        hf_thread_join(&threads[i]);
    hf_forkjoin_close(shared.forkjoin);
}

TEST(runs_share_the_workers)
{
    struct schedule_case c = {
        .name = "runs", .fibers = 1, .setup = setup, .body = runs_body};
    schedule_check(&c);
}

static void inner(void *context, uint64_t from, uint64_t to)
{
    (void)context;
    hf_u32_add(&shared.ran, (uint32_t)(to - from), __ATOMIC_RELAXED);
}

/* A loop in a task, in spite of the shut that comes meanwhile. */
static void nested_task(struct hf_forkjoin_worker *worker, void *arg)
{
    (void)arg;
    if (hf_parallel_for(hf_forkjoin_of(worker), 0, 4, 1, inner, NULL) != HF_OK)
        schedule_wrong("a loop in a task was refused");
}

static void shut_thread(void *argument)
{
    (void)argument;
    for (;;) {
        uint32_t before = hf_u32_load(&shared.ran, __ATOMIC_RELAXED);
        enum hf_status status =
            hf_forkjoin_run(shared.forkjoin, nested_task, NULL);
        if (status == HF_CLOSED)
            return;
        uint32_t after = hf_u32_load(&shared.ran, __ATOMIC_RELAXED);
        if (status != HF_OK || after - before < 4)
            schedule_wrong("status %d after %u", status, after - before);
    }
}

static void shut_body(void *context, unsigned fiber)
{
    struct hf_thread threads[2];
    struct hf_forkjoin_stats stats;

    (void)context;
    (void)fiber;
    open_forkjoin(2);
    for (int i = 0; i < 2; i++)
        (void)hf_thread_start(&threads[i], NULL, shut_thread, NULL);
    for (uint64_t i = schedule_random(50); i > 0; i--)
        hf_thread_yield();
    hf_forkjoin_shutdown(shared.forkjoin);
    for (int i = 0; i < 2; i++)
        hf_thread_join(&threads[i]);
    hf_forkjoin_stats(shared.forkjoin, &stats);
    if (!stats.shutdown || stats.rejected != 2 ||
        stats.runs * 4 != hf_u32_load(&shared.ran, __ATOMIC_RELAXED))
        schedule_wrong("%llu runs", (unsigned long long)stats.runs);
    hf_forkjoin_close(shared.forkjoin);
}

TEST(shut_refuses_new_runs_and_lets_the_others_end)
{
    struct schedule_case c = {.name = "shut",
                              .fibers = 1,
                              .setup = setup,
                              .body = shut_body,
                              .schedules = 5000};
    schedule_check(&c);
}

/* ---- Nobody sleeps while there is a piece. ---- */

static enum hf_status all_arrived(void *context)
{
    uint32_t *count = context;

    return hf_u32_load(&shared.arrived, __ATOMIC_ACQUIRE) >= *count
               ? HF_OK
               : HF_PENDING;
}

/* Returns when so many have called it; helps nobody. */
static void meet(uint32_t count)
{
    hf_u32_add(&shared.arrived, 1, __ATOMIC_RELEASE);
    hf_event_wake_all(&shared.event);
    (void)hf_event_until(&shared.event, all_arrived, &count, NULL, HF_FOREVER);
}

static void meet_piece(struct hf_forkjoin_worker *worker, void *arg)
{
    (void)worker;
    meet(*(uint32_t *)arg);
}

/* All at once: as many pieces as there are threads. */
static void meet_task(struct hf_forkjoin_worker *worker, void *arg)
{
    uint32_t count = *(uint32_t *)arg;
    struct hf_fork forks[4];

    for (uint32_t i = 1; i < count; i++)
        (void)hf_fork(worker, &forks[i], meet_piece, arg);
    meet(count);
    for (uint32_t i = 1; i < count; i++)
        (void)hf_join(worker, &forks[i]);
}

static void meet_body(void *context, unsigned fiber)
{
    uint32_t count = 2 + (uint32_t)schedule_random(3);

    (void)context;
    (void)fiber;
    open_forkjoin(count);
    for (int i = 0; i < 2; i++) {
        hf_u32_store(&shared.arrived, 0, __ATOMIC_RELAXED);
        run(meet_task, &count);
    }
    hf_forkjoin_close(shared.forkjoin);
}

TEST(every_worker_is_woken_while_there_are_pieces)
{
    struct schedule_case c = {.name = "meet",
                              .fibers = 1,
                              .setup = setup,
                              .body = meet_body,
                              .schedules = 60000};
    schedule_check(&c);
}

/* A piece that was stolen forks another; only the joiner can take that. */
static void stolen_piece(struct hf_forkjoin_worker *worker, void *arg)
{
    struct hf_fork fork;
    uint32_t four = 4;

    meet(2); /* now the owner joins */
    (void)arg;
    (void)hf_fork(worker, &fork, meet_piece, &four);
    meet(4);
    (void)hf_join(worker, &fork);
}

static void joiner_task(struct hf_forkjoin_worker *worker, void *arg)
{
    struct hf_fork fork;

    (void)arg;
    (void)hf_fork(worker, &fork, stolen_piece, NULL);
    meet(2); /* it was stolen */
    (void)hf_join(worker, &fork);
}

static void joiner_body(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    open_forkjoin(2);
    run(joiner_task, NULL);
    hf_forkjoin_close(shared.forkjoin);
}

TEST(a_join_that_sleeps_is_woken_to_help)
{
    struct schedule_case c = {.name = "joiner",
                              .fibers = 1,
                              .setup = setup,
                              .body = joiner_body,
                              .schedules = 60000};
    schedule_check(&c);
}

/* ---- Reduction keeps the order. ---- */

struct span {
    uint64_t from;
    uint64_t to;
    uint64_t parts;
};

static void span_fn(void *context, uint64_t from, uint64_t to, void *value)
{
    struct span *span = value;

    (void)context;
    *span = (struct span){from, to, span->parts + 1};
}

static void span_combine(void *context, void *value, const void *right)
{
    struct span *span = value;
    const struct span *next = right;

    (void)context;
    if (span->to != next->from)
        schedule_wrong("%llu next to %llu", (unsigned long long)span->to,
                       (unsigned long long)next->from);
    span->to = next->to;
    span->parts += next->parts;
}

static void reduce_body(void *context, unsigned fiber)
{
    struct span none = {0};
    struct span span;
    struct hf_reduction reduction = {.bytes = sizeof none,
                                     .identity = &none,
                                     .fn = span_fn,
                                     .combine = span_combine};

    (void)context;
    (void)fiber;
    open_forkjoin(3);
    if (hf_parallel_reduce(shared.forkjoin, 5, 14, 2, &reduction, &span))
        schedule_wrong("reduce failed");
    if (span.from != 5 || span.to != 14 || span.parts != 5)
        schedule_wrong("%llu parts", (unsigned long long)span.parts);
    hf_forkjoin_close(shared.forkjoin);
}

TEST(a_reduction_combines_neighbours_in_order)
{
    struct schedule_case c = {
        .name = "reduce", .fibers = 1, .setup = setup, .body = reduce_body};
    schedule_check(&c);
}
