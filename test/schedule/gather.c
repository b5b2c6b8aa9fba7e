/* gather.c - a gather, its tasks and those who wait for it, step by step. */
#include "holdfast/gather.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "holdfast/event.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 3
#define EACH   3 /* tasks of each fiber that adds */
#define TASKS  (2 * EACH)

struct task {
    bool fails;
    enum hf_status added; /* HF_PENDING: it was not */
    struct hf_atomic_u32 ran;
    struct hf_atomic_u32 shown;
    struct hf_atomic_u32 dropped;
};

static struct {
    struct hf_pool *pool;
    struct hf_gather *gather;
    struct hf_pool_opts pool_opts;
    size_t need;
    struct hf_atomic_u32 open; /* so that others may begin */
    struct hf_atomic_u32 left; /* fibers that are done with it */
    struct hf_event event;
    struct hf_atomic_u32 flag;
    struct task tasks[TASKS];
} test;

static void prepare(void)
{
    memset(&test, 0, sizeof test);
    for (int i = 0; i < TASKS; i++)
        test.tasks[i].added = HF_PENDING;
    test.pool_opts = (struct hf_pool_opts){.max_threads = 1};
}

static void drop(void *context, void *result)
{
    (void)context;
    hf_u32_add(&((struct task *)result)->dropped, 1, __ATOMIC_RELAXED);
}

/* Fiber 0 opens, the others wait for that. */
static void arrive(unsigned fiber)
{
    if (fiber == 0) {
        if (hf_pool_open(&test.pool, &test.pool_opts) != HF_OK)
            schedule_wrong("pool");
        struct hf_gather_opts opts = {
            .pool = test.pool, .need = test.need, .drop = drop};
        if (hf_gather_open(&test.gather, &opts) != HF_OK)
            schedule_wrong("gather");
        hf_u32_store(&test.open, 1, __ATOMIC_RELEASE);
    }
    while (!hf_u32_load(&test.open, __ATOMIC_ACQUIRE))
        hf_thread_pause();
}

/* And closes when the others have left, with tasks still under way. */
static void depart(unsigned fiber, unsigned fibers)
{
    hf_u32_add(&test.left, 1, __ATOMIC_RELEASE);
    if (fiber > 0)
        return;
    while (hf_u32_load(&test.left, __ATOMIC_ACQUIRE) < fibers)
        hf_thread_pause();
    hf_gather_close(test.gather);
    hf_pool_close(test.pool);
}

/* ---- All at once. ---- */

static int work(void *arg, void **result)
{
    struct task *task = arg;

    hf_u32_add(&task->ran, 1, __ATOMIC_RELAXED);
    for (uint64_t i = schedule_random(3); i > 0; i--)
        hf_thread_pause();
    *result = task->fails ? NULL : task;
    return task->fails ? 3 : 0;
}

static void *show(void *context, void *so_far, void *result)
{
    (void)context;
    hf_u32_add(&((struct task *)result)->shown, 1, __ATOMIC_RELAXED);
    return so_far;
}

static void any_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare();
    test.need = seed % 4;
    test.pool_opts.max_threads = 1 + (uint32_t)(seed / 4 % 2);
    test.pool_opts.queue_max = seed / 8 % 2 ? 2 : 0;
    test.pool_opts.reject = (enum hf_pool_reject)(seed / 16 % 5);
    for (int i = 0; i < TASKS; i++)
        test.tasks[i].fails = schedule_random(4) == 0;
}

static void check_counts(void)
{
    struct hf_gather_stats stats;

    hf_gather_stats(test.gather, &stats);
    if (stats.added > TASKS ||
        stats.pending + stats.succeeded + stats.failed + stats.cancelled !=
            stats.added)
        schedule_wrong("counts");
}

static void wait_some(void)
{
    uint64_t deadline_ns = schedule_random(2)
                               ? HF_FOREVER
                               : schedule_now_ns() + schedule_random(5000);
    enum hf_status status = schedule_random(3) == 0
                                ? hf_gather_settle(test.gather, deadline_ns)
                                : hf_gather_wait(test.gather, deadline_ns);

    if (status != HF_OK && status != HF_FAILED &&
        (status != HF_TIMEOUT || deadline_ns == HF_FOREVER))
        schedule_wrong("wait: %s", hf_status_text(status));
    check_counts();
}

static void any_body(void *context, unsigned fiber)
{
    (void)context;
    arrive(fiber);
    for (unsigned i = 0; fiber < 2 && i < EACH; i++) {
        struct task *task = &test.tasks[fiber * EACH + i];
        task->added = hf_gather_add(test.gather, work, task);
    }
    wait_some();
    if (fiber == 2) {
        uint64_t draw = schedule_random(4);
        if (draw == 0)
            (void)hf_gather_cancel(test.gather);
        if (draw == 1)
            hf_pool_shutdown(test.pool);
        if (draw == 2)
            (void)hf_pool_shutdown_now(test.pool, NULL, NULL);
        if (draw == 3)
            (void)hf_gather_merge(test.gather, show, NULL, NULL);
        wait_some();
    }
    depart(fiber, FIBERS);
}

/* What ran and succeeded was shown or dropped; nothing ran twice. */
static bool any_check(void *context, FILE *explain)
{
    (void)context;
    for (int i = 0; i < TASKS; i++) {
        const struct task *task = &test.tasks[i];
        fprintf(explain, "task %d: %s, ran %u, shown %u, dropped %u; ", i,
                hf_status_text(task->added), task->ran.value, task->shown.value,
                task->dropped.value);
        uint32_t succeeded = task->fails ? 0 : task->ran.value;
        if (task->ran.value > 1 ||
            (task->added != HF_OK && task->ran.value > 0) ||
            (task->shown.value > 0) + task->dropped.value != succeeded)
            return false;
    }
    return true;
}

TEST(every_task_is_counted_once_and_every_result_shown_or_dropped)
{
    struct schedule_case c = {.name = "gather any",
                              .fibers = FIBERS,
                              .setup = any_setup,
                              .body = any_body,
                              .check = any_check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- The last end wakes those who wait. ---- */

static void wait_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare();
    test.need = seed % 3; /* all, the first, two */
    test.pool_opts.max_threads = 2;
    for (int i = 0; i < TASKS; i++)
        test.tasks[i].fails = schedule_random(2) == 0;
}

/* Fiber 0 adds all; then all wait for ever, and must agree. */
static void wait_body(void *context, unsigned fiber)
{
    uint32_t good = 0;

    (void)context;
    if (fiber == 0) {
        arrive(0);
        for (int i = 0; i < 3; i++)
            test.tasks[i].added =
                hf_gather_add(test.gather, work, &test.tasks[i]);
        hf_u32_store(&test.flag, 1, __ATOMIC_RELEASE);
    }
    while (!hf_u32_load(&test.flag, __ATOMIC_ACQUIRE))
        hf_thread_pause();
    for (int i = 0; i < 3; i++)
        good += !test.tasks[i].fails;
    enum hf_status expected =
        good >= (test.need == 0 ? 3 : test.need) ? HF_OK : HF_FAILED;
    if (hf_gather_wait(test.gather, HF_FOREVER) != expected)
        schedule_wrong("not %s", hf_status_text(expected));
    if (fiber == 1 && hf_gather_settle(test.gather, HF_FOREVER) != HF_OK)
        schedule_wrong("settle");
    depart(fiber, FIBERS);
}

TEST(who_waits_is_woken)
{
    struct schedule_case c = {.name = "gather wait",
                              .fibers = FIBERS,
                              .setup = wait_setup,
                              .body = wait_body,
                              .check = any_check,
                              .schedules = 20000};
    schedule_check(&c);
}

/* ---- A task that waits, and tasks that come later. ---- */

static int set_flag(void *arg, void **result)
{
    (void)arg;
    *result = &test.tasks[0];
    hf_u32_store(&test.flag, 1, __ATOMIC_RELEASE);
    hf_event_wake_all(&test.event);
    return 0;
}

static enum hf_status flag_is_set(void *context)
{
    (void)context;
    return hf_u32_load(&test.flag, __ATOMIC_ACQUIRE) ? HF_OK : HF_PENDING;
}

/* Cannot end before set_flag has run. */
static int await_flag(void *arg, void **result)
{
    (void)arg;
    *result = &test.tasks[1];
    return hf_event_until(&test.event, flag_is_set, NULL, NULL, HF_FOREVER) !=
           HF_OK;
}

static int outer(void *arg)
{
    (void)arg;
    if (hf_gather_wait(test.gather, HF_FOREVER) != HF_OK)
        schedule_wrong("the task's wait");
    return 0;
}

static void help_setup(void *context, uint64_t seed)
{
    (void)context;
    prepare();
    test.need = seed % 2 ? 1 : 0;
    test.pool_opts.max_threads = 2;
}

/* Two workers: one is in a task that waits for the gather, one in an item that
 * waits for the second. Who waits must do that one. */
static void help_body(void *context, unsigned fiber)
{
    (void)context;
    arrive(fiber);
    if (fiber == 0) {
        if (hf_gather_add(test.gather, await_flag, NULL) != HF_OK ||
            hf_pool_submit(test.pool, outer, NULL, NULL, NULL) != HF_OK)
            schedule_wrong("submit");
        hf_u32_add(&test.left, 1, __ATOMIC_RELEASE);
        while (hf_u32_load(&test.left, __ATOMIC_ACQUIRE) < 2)
            hf_thread_pause();
        if (hf_gather_settle(test.gather, HF_FOREVER) != HF_OK)
            schedule_wrong("settle");
        hf_pool_close(test.pool); /* the task is inside the gather before */
        hf_gather_close(test.gather);
        return;
    }
    for (uint64_t i = schedule_random(20); i > 0; i--)
        hf_thread_pause();
    while (hf_u32_load(&test.left, __ATOMIC_ACQUIRE) < 1)
        hf_thread_pause();
    if (hf_gather_add(test.gather, set_flag, NULL) != HF_OK)
        schedule_wrong("add");
    hf_u32_add(&test.left, 1, __ATOMIC_RELEASE);
}

static bool help_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "dropped %u and %u", test.tasks[0].dropped.value,
            test.tasks[1].dropped.value);
    return test.tasks[0].dropped.value == 1 && test.tasks[1].dropped.value == 1;
}

TEST(a_task_that_waits_helps_with_what_comes_later)
{
    struct schedule_case c = {.name = "gather help",
                              .fibers = 2,
                              .setup = help_setup,
                              .body = help_body,
                              .check = help_check,
                              .schedules = 20000};
    schedule_check(&c);
}
