/* timer.c - the scheduler of tasks, step by step: waking, cancelling, ending.
 *
 * Fiber 0 opens it, and a pool where there is one, and closes both when the
 * others have gone. Where it matters what comes first, time is a hand that
 * stands still until the test moves it: a wake-up that is lost shows as a
 * schedule that does not end.
 */
#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/scheduler.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS    3
#define TASKS     4 /* of a fiber */
#define SECOND_NS UINT64_C(1000000000)

struct task {
    struct hf_atomic_u32 runs;
    struct hf_atomic_u32 inside; /* a run of it */
    uint64_t when_ns;            /* not before */
    uint32_t place;              /* in the order, from 1 */
    uint64_t id;
    enum hf_status added;
    enum hf_status cancelled; /* what cancel said */
    uint32_t runs_then;       /* when cancel and join were back */
};

static struct {
    struct hf_scheduler *scheduler;
    struct hf_pool *pool;
    struct hf_atomic_u32 ready;
    struct hf_atomic_u32 gone; /* fibers that have ended their part */
    struct task tasks[FIBERS][TASKS];
    struct hf_scheduler_stats stats;
    uint32_t returned;
    struct hf_atomic_u64 hand_ns; /* 0: virtual time */
    uint32_t place;               /* of the task that ran last */
} test;

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    memset(&test, 0, sizeof test);
}

/* ---- What the fibers do. ---- */

static uint64_t read_now(void *context)
{
    (void)context;
    uint64_t hand_ns = hf_u64_load(&test.hand_ns, __ATOMIC_ACQUIRE);
    return hand_ns != 0 ? hand_ns : schedule_now_ns();
}

static void open_both(bool direct, const struct hf_pool_opts *pool_opts)
{
    static const struct hf_clock clock = {.now_ns = read_now};
    struct hf_scheduler_opts opts = {.direct = direct, .clock = &clock};

    if (!direct && hf_pool_open(&test.pool, pool_opts) != HF_OK)
        schedule_wrong("no pool");
    opts.pool = test.pool;
    if (hf_scheduler_open(&test.scheduler, &opts) != HF_OK)
        schedule_wrong("no scheduler");
    /* Release: both. */
    hf_u32_store(&test.ready, 1, __ATOMIC_RELEASE);
}

static void await_word(struct hf_atomic_u32 *word, uint32_t value)
{
    while (hf_u32_load(word, __ATOMIC_ACQUIRE) < value)
        hf_thread_pause();
}

/* Returns when the last task is over, and everything is closed. */
static void close_both(void)
{
    hf_scheduler_shutdown(test.scheduler);
    if (hf_scheduler_await(test.scheduler, HF_FOREVER) != HF_OK)
        schedule_wrong("await");
    hf_scheduler_stats(test.scheduler, &test.stats);
    hf_scheduler_close(test.scheduler);
    hf_pool_close(test.pool);
}

static int run_task(void *arg)
{
    struct task *task = arg;

    if (hf_u32_add(&task->inside, 1, __ATOMIC_RELAXED) != 0)
        schedule_wrong("it overlaps itself");
    if (read_now(NULL) < task->when_ns)
        schedule_wrong("too early");
    hf_u32_add(&task->runs, 1, __ATOMIC_RELAXED);
    hf_thread_pause();
    hf_u32_sub(&task->inside, 1, __ATOMIC_RELAXED);
    return 0;
}

static void add(struct task *task, uint64_t when_ns)
{
    task->when_ns = when_ns;
    task->added =
        hf_scheduler_at(test.scheduler, when_ns, 0, run_task, task, &task->id);
}

/* What must be so after cancel, and after join if it was running. */
static void cancel(struct task *task)
{
    task->cancelled = hf_scheduler_cancel(test.scheduler, task->id);
    if (task->cancelled == HF_PENDING &&
        hf_scheduler_join(test.scheduler, task->id, HF_FOREVER) != HF_OK)
        schedule_wrong("join");
    if (hf_u32_load(&task->inside, __ATOMIC_RELAXED) != 0)
        schedule_wrong("it runs after cancel said no");
    task->runs_then = hf_u32_load(&task->runs, __ATOMIC_RELAXED);
}

static uint32_t runs_of(const struct task *task)
{
    return task->runs.value;
}

static bool sum_check(FILE *explain)
{
    const struct hf_scheduler_stats *s = &test.stats;

    fprintf(explain, "%llu: %llu ended, %llu cancelled, %llu returned; ",
            (unsigned long long)s->scheduled, (unsigned long long)s->ended,
            (unsigned long long)s->cancelled, (unsigned long long)s->returned);
    return s->pending == 0 && s->active == 0 &&
           s->scheduled == s->ended + s->cancelled + s->returned;
}

/* ---- An earlier task wakes the sleeper. ---- */

static void hand_setup(void *context, uint64_t seed)
{
    setup(context, seed);
    test.hand_ns.value = SCHEDULE_START_NS;
}

/* Far ones, of which each is earlier than the last, and one that is due; the
 * hand never comes to the far ones. */
static void wake_body(void *context, unsigned fiber)
{
    struct task *due = &test.tasks[fiber][TASKS - 1];

    (void)context;
    if (fiber == 0)
        open_both(true, NULL);
    await_word(&test.ready, 1);
    for (unsigned i = 0; i < TASKS - 1; i++)
        add(&test.tasks[fiber][i],
            SCHEDULE_START_NS + (TASKS - i) * SECOND_NS + fiber);
    add(due, SCHEDULE_START_NS);
    if (hf_scheduler_join(test.scheduler, due->id, HF_FOREVER) != HF_OK)
        schedule_wrong("join");
    hf_u32_add(&test.gone, 1, __ATOMIC_RELEASE);
    if (fiber != 0)
        return;
    await_word(&test.gone, FIBERS);
    test.returned =
        (uint32_t)hf_scheduler_shutdown_now(test.scheduler, NULL, NULL);
    close_both();
}

static bool wake_check(void *context, FILE *explain)
{
    (void)context;
    for (unsigned fiber = 0; fiber < FIBERS; fiber++) {
        if (runs_of(&test.tasks[fiber][TASKS - 1]) != 1)
            return false;
    }
    return test.stats.fired == FIBERS &&
           test.returned == FIBERS * (TASKS - 1) && sum_check(explain);
}

TEST(an_earlier_task_wakes_the_sleeper)
{
    struct schedule_case c = {.name = "timer wakes",
                              .fibers = FIBERS,
                              .setup = hand_setup,
                              .body = wake_body,
                              .check = wake_check};
    schedule_check(&c);
}

/* ---- Order. ---- */

static int note_order(void *arg)
{
    const struct task *task = arg;

    if (task->place <= test.place)
        schedule_wrong("%u after %u", task->place, test.place);
    test.place = task->place;
    return run_task(arg);
}

/* All at one time; the first in priority comes last, from any fiber. */
static void order_body(void *context, unsigned fiber)
{
    const uint64_t when_ns = SCHEDULE_START_NS + SECOND_NS;

    (void)context;
    if (fiber == 0)
        open_both(true, NULL);
    await_word(&test.ready, 1);
    for (unsigned i = TASKS; i-- > 0;) {
        struct task *task = &test.tasks[fiber][i];
        task->when_ns = when_ns;
        task->place = 1 + i * FIBERS + fiber;
        task->added = hf_scheduler_at(test.scheduler, when_ns, (int)task->place,
                                      note_order, task, &task->id);
    }
    hf_u32_add(&test.gone, 1, __ATOMIC_RELEASE);
    if (fiber != 0)
        return;
    await_word(&test.gone, FIBERS);
    hf_u64_store(&test.hand_ns, when_ns, __ATOMIC_RELEASE);
    close_both();
}

static bool order_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%llu runs; ", (unsigned long long)test.stats.fired);
    return test.stats.fired == FIBERS * TASKS && sum_check(explain);
}

TEST(priority_decides_among_those_of_one_time)
{
    struct schedule_case c = {.name = "timer order",
                              .fibers = FIBERS,
                              .setup = hand_setup,
                              .body = order_body,
                              .check = order_check};
    schedule_check(&c);
}

/* ---- Cancelling what is about to run, on a pool. ---- */

static void cancel_body(void *context, unsigned fiber)
{
    const struct hf_pool_opts pool_opts = {.kind = HF_POOL_SINGLE};

    (void)context;
    if (fiber == 0) {
        open_both(schedule_random(2) == 0, &pool_opts);
    } else {
        await_word(&test.ready, 1);
        for (unsigned i = 0; i < TASKS; i++)
            add(&test.tasks[fiber][i],
                schedule_now_ns() + schedule_random(500));
        for (unsigned i = 0; i < TASKS; i++)
            cancel(&test.tasks[fiber][i]);
        hf_u32_add(&test.gone, 1, __ATOMIC_RELEASE);
        return;
    }
    await_word(&test.gone, FIBERS - 1);
    close_both();
}

static bool cancel_check(void *context, FILE *explain)
{
    (void)context;
    for (unsigned i = TASKS; i < FIBERS * TASKS; i++) {
        const struct task *task = &test.tasks[i / TASKS][i % TASKS];
        fprintf(explain, "task %u: %s, %u runs; ", i,
                hf_status_text(task->cancelled), runs_of(task));
        if (runs_of(task) != (task->cancelled != HF_OK))
            return false;
    }
    return sum_check(explain) && test.stats.dropped == 0;
}

TEST(a_task_runs_or_is_cancelled)
{
    struct schedule_case c = {.name = "timer cancel",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = cancel_body,
                              .check = cancel_check};
    schedule_check(&c);
}

/* ---- Periodic tasks. ---- */

static void add_every(struct task *task, uint64_t period_ns)
{
    const struct hf_every plan = {.period_ns = period_ns};

    task->added =
        (schedule_random(2) ? hf_scheduler_every : hf_scheduler_every_after)(
            test.scheduler, &plan, run_task, task, &task->id);
}

static void every_body(void *context, unsigned fiber)
{
    const struct hf_pool_opts pool_opts = {.max_threads = 2};
    struct task *task = &test.tasks[fiber][0];

    (void)context;
    if (fiber == 0) {
        open_both(schedule_random(2) == 0, &pool_opts);
        await_word(&test.gone, 1); /* the other is ended by shut */
        await_word(&test.tasks[2][0].runs, 1);
        close_both();
        return;
    }
    await_word(&test.ready, 1);
    add_every(task, 200 + schedule_random(300));
    if (fiber == 1) {
        await_word(&task->runs, 2);
        cancel(task);
        if (task->cancelled == HF_NOTFOUND)
            schedule_wrong("a periodic task was lost");
        hf_u32_add(&test.gone, 1, __ATOMIC_RELEASE);
    }
}

static bool every_check(void *context, FILE *explain)
{
    const struct task *task = &test.tasks[1][0];

    (void)context;
    fprintf(explain, "%u runs when cancelled, %u in the end; ", task->runs_then,
            runs_of(task));
    return task->runs_then == runs_of(task) && sum_check(explain) &&
           test.stats.cancelled == 1 && test.stats.ended == 1 &&
           test.stats.fired == runs_of(task) + runs_of(&test.tasks[2][0]);
}

TEST(a_periodic_task_goes_on_until_cancel_or_shut)
{
    struct schedule_case c = {.name = "timer periodic",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = every_body,
                              .check = every_check};
    schedule_check(&c);
}

/* ---- Ends. ---- */

static void count_back(void *context, void *arg)
{
    struct task *task = arg;

    (void)context;
    if (hf_u32_load(&task->runs, __ATOMIC_RELAXED) != 0)
        schedule_wrong("handed back and run");
    test.returned++;
}

/* Others schedule while one shuts: each is refused, runs or comes back. */
static void shut_body(void *context, unsigned fiber)
{
    const struct hf_pool_opts pool_opts = {.kind = HF_POOL_SINGLE};

    (void)context;
    if (fiber == 0) {
        open_both(schedule_random(2) == 0, &pool_opts);
        for (uint64_t i = schedule_random(10); i > 0; i--)
            hf_thread_pause();
        hf_scheduler_shutdown_now(test.scheduler, count_back, NULL);
        await_word(&test.gone, FIBERS - 1);
        close_both();
        return;
    }
    await_word(&test.ready, 1);
    for (unsigned i = 0; i < TASKS; i++)
        add(&test.tasks[fiber][i], schedule_now_ns() + schedule_random(1000));
    hf_u32_add(&test.gone, 1, __ATOMIC_RELEASE);
}

static bool shut_check(void *context, FILE *explain)
{
    uint32_t ran = 0;
    uint32_t refused = 0;

    (void)context;
    for (unsigned i = TASKS; i < FIBERS * TASKS; i++) {
        const struct task *task = &test.tasks[i / TASKS][i % TASKS];
        ran += runs_of(task);
        refused += task->added == HF_CLOSED;
    }
    fprintf(explain, "%u ran, %u refused, %u came back; ", ran, refused,
            test.returned);
    return ran + refused + test.returned == (FIBERS - 1) * TASKS &&
           test.returned == test.stats.returned && sum_check(explain);
}

TEST(shut_now_loses_nothing)
{
    struct schedule_case c = {.name = "timer shut",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = shut_body,
                              .check = shut_check};
    schedule_check(&c);
}

/* Straight away, with runs in the pool: the last worker that leaves a run must
 * find the scheduler's memory. */
static void close_body(void *context, unsigned fiber)
{
    const struct hf_pool_opts pool_opts = {.max_threads = 2};

    (void)context;
    (void)fiber;
    open_both(false, &pool_opts);
    for (unsigned i = 0; i < TASKS; i++)
        add(&test.tasks[0][i], schedule_now_ns() + schedule_random(300));
    add_every(&test.tasks[1][0], 100);
    for (uint64_t i = schedule_random(40); i > 0; i--)
        hf_thread_pause();
    hf_scheduler_close(test.scheduler);
    for (unsigned i = 0; i < TASKS; i++)
        test.tasks[0][i].runs_then = runs_of(&test.tasks[0][i]);
    hf_pool_close(test.pool);
}

static bool close_check(void *context, FILE *explain)
{
    (void)context;
    for (unsigned i = 0; i < TASKS; i++) {
        const struct task *task = &test.tasks[0][i];
        fprintf(explain, "%u runs, then %u; ", task->runs_then, runs_of(task));
        if (task->runs_then != runs_of(task))
            return false;
    }
    return true;
}

TEST(after_close_nothing_runs)
{
    struct schedule_case c = {.name = "timer close",
                              .fibers = 1,
                              .setup = setup,
                              .body = close_body,
                              .check = close_check};
    schedule_check(&c);
}

/* The pool gives up what it has: nobody waits for it for ever. */
static void lost_body(void *context, unsigned fiber)
{
    const struct hf_pool_opts pool_opts = {
        .kind = HF_POOL_SINGLE,
        .queue_max = 2,
        .reject = schedule_random(2) ? HF_POOL_DISCARD_OLDEST : HF_POOL_ABORT};

    (void)context;
    if (fiber == 0) {
        open_both(false, &pool_opts);
        for (unsigned i = 0; i < TASKS; i++)
            add(&test.tasks[0][i], schedule_now_ns() + schedule_random(300));
        await_word(&test.gone, 1);
        close_both();
        return;
    }
    await_word(&test.ready, 1);
    for (uint64_t i = schedule_random(40); i > 0; i--)
        hf_thread_pause();
    hf_pool_shutdown_now(test.pool, NULL, NULL);
    hf_u32_add(&test.gone, 1, __ATOMIC_RELEASE);
}

static bool lost_check(void *context, FILE *explain)
{
    uint32_t ran = 0;

    (void)context;
    for (unsigned i = 0; i < TASKS; i++)
        ran += runs_of(&test.tasks[0][i]);
    fprintf(explain, "%u ran, %llu dropped; ", ran,
            (unsigned long long)test.stats.dropped);
    return ran == test.stats.fired && ran + test.stats.dropped == TASKS &&
           test.stats.ended == TASKS;
}

TEST(what_the_pool_gives_up_is_counted)
{
    struct schedule_case c = {.name = "timer lost",
                              .fibers = 2,
                              .setup = setup,
                              .body = lost_body,
                              .check = lost_check};
    schedule_check(&c);
}
