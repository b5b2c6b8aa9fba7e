/* pool.c - pools, step by step: growth and shutdown, idle workers, room, tasks
 * that wait for tasks, the end. */
#include "holdfast/pool.h"

#include <string.h>

#include "base/atomic.h"
#include "exec/pool_state.h"
#include "support/schedule.h"
#include "support/test.h"

#define TASKS 6

/* The plan of a case, and what came of it. */
struct scene {
    struct hf_pool_opts opts; /* (i) */
    bool now;                 /* (i) ended by shutdown_now */
    bool waits;               /* (i) each task waits for one of its own */
    bool cancels;             /* (i) submitters withdraw some */
    bool posts;               /* (i) tasks in their submitter's memory */
    struct hf_pool *pool;
    struct hf_future *gate; /* the fibers start when the pool is open */
    struct hf_atomic_u32 ran[TASKS];
    struct hf_atomic_u32 below; /* tasks of tasks that ran */
    struct hf_atomic_u32 submitters;
    enum hf_status statuses[TASKS];
    struct hf_future *futures[TASKS];
    struct hf_pool_work works[TASKS];
    bool cancelled[TASKS];
    uint32_t back[TASKS]; /* handed back */
    size_t returned;
    struct hf_pool_stats end;
};

static struct scene *scene; /* of the running case, for its tasks */

/* What must hold whenever somebody looks. */
static void look(void)
{
    struct hf_pool *pool = scene->pool;

    hf_mutex_lock(&pool->mutex);
    hf_pool_fetch_all(pool);
    struct hf_pool_stats s = pool->counts;
    uint32_t threads = pool->threads;
    uint32_t alive = pool_alive(pool);
    enum hf_pool_state state = pool->state;
    uint32_t idle = pool->idle;
    uint32_t awake = pool->asleep + pool->searching;
    hf_mutex_unlock(&pool->mutex);
    if (threads > pool->opts.max_threads || s.threads_peak < alive)
        schedule_wrong("%u threads", threads);
    if (state == HF_POOL_RUNNING && alive < pool->opts.min_threads)
        schedule_wrong("only %u threads", alive);
    if (state != HF_POOL_RUNNING && alive < threads)
        schedule_wrong("a birth after shutdown");
    if (state == HF_POOL_STOPPED && threads > 0)
        schedule_wrong("%u threads after the end", threads);
    if (idle > threads || awake > idle)
        schedule_wrong("%u threads, %u idle, %u waiting", threads, idle, awake);
    if (s.queued > pool->opts.queue_max)
        schedule_wrong("%u queued", (unsigned)s.queued);
    if (s.submitted != s.completed + s.failed + s.cancelled + s.discarded +
                           s.returned + s.queued + s.active)
        schedule_wrong("counts do not add up");
}

static int leaf(void *arg)
{
    hf_u32_add(arg, 1, __ATOMIC_RELAXED);
    look();
    return 0;
}

static int task(void *arg)
{
    struct hf_atomic_u32 *ran = arg;
    struct hf_future *future;

    hf_u32_add(ran, 1, __ATOMIC_RELAXED);
    look();
    if (!scene->waits)
        return (int)((ran - scene->ran) % 2); /* some fail */
    if (hf_pool_submit(scene->pool, leaf, &scene->below, NULL, &future) !=
        HF_OK)
        return 1;
    struct hf_outcome outcome;
    if (hf_future_get(future, HF_FOREVER, &outcome) != HF_OK)
        schedule_wrong("a wait without deadline ended");
    hf_future_release(future);
    return 0;
}

static void note_back(void *context, void *arg)
{
    struct hf_atomic_u32 *ran = arg;

    (void)context;
    if (ran >= scene->ran && ran < scene->ran + TASKS)
        scene->back[ran - scene->ran]++;
    else
        hf_u32_add(&scene->below, 1, __ATOMIC_RELAXED);
}

static void setup(void *context, uint64_t seed)
{
    struct scene *s = context;
    const struct scene plan = *s;

    (void)seed;
    *s = (struct scene){.opts = plan.opts,
                        .now = plan.now,
                        .waits = plan.waits,
                        .cancels = plan.cancels,
                        .posts = plan.posts};
    scene = s;
    if (hf_future_open(&s->gate, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no memory");
}

static void submit(unsigned i)
{
    const struct hf_task_opts opts = {.priority = i % HF_POOL_PRIORITIES + 1};
    bool wanted = scene->cancels && i % 2 == 0;

    if (scene->posts) {
        if (hf_pool_work_init(&scene->works[i], scene->pool, task,
                              &scene->ran[i], &opts) != HF_OK)
            schedule_wrong("init failed");
        scene->statuses[i] = hf_pool_post(&scene->works[i]);
    } else {
        scene->statuses[i] =
            hf_pool_submit(scene->pool, task, &scene->ran[i], &opts,
                           wanted ? &scene->futures[i] : NULL);
    }
    look();
    if (scene->futures[i] != NULL) {
        scene->cancelled[i] = hf_future_cancel(scene->futures[i]) == HF_OK;
        struct hf_outcome outcome;
        if (hf_future_get(scene->futures[i], HF_FOREVER, &outcome) != HF_OK)
            schedule_wrong("a wait without deadline ended");
        if (scene->cancelled[i] != (outcome.status == HF_CANCELLED) &&
            !scene->now)
            schedule_wrong("cancelled, and then not");
        hf_future_release(scene->futures[i]);
    }
}

/* Fiber 0 opens, ends and closes the pool; 1 and 2 submit. */
static void body(void *context, unsigned fiber)
{
    struct scene *s = context;

    if (fiber == 0) {
        if (hf_pool_open(&s->pool, &s->opts) != HF_OK)
            schedule_wrong("open failed");
        if (hf_future_complete(s->gate, &(struct hf_outcome){HF_OK, 0, NULL}))
            schedule_wrong("gate");
        submit(0);
        submit(1);
        if (s->now)
            s->returned = hf_pool_shutdown_now(s->pool, note_back, NULL);
        else
            hf_pool_shutdown(s->pool);
        look();
        if (hf_pool_await(s->pool, HF_FOREVER) != HF_OK)
            schedule_wrong("await failed");
        look();
        /* Nobody else is inside a call when it is closed. */
        while (hf_u32_load(&s->submitters, __ATOMIC_ACQUIRE) < 2)
            hf_thread_yield();
        hf_pool_stats(s->pool, &s->end);
        hf_pool_close(s->pool);
        return;
    }
    (void)hf_future_get(s->gate, HF_FOREVER, NULL);
    submit(2 * fiber);
    submit(2 * fiber + 1);
    hf_u32_add(&s->submitters, 1, __ATOMIC_RELEASE);
}

static bool check(void *context, FILE *explain)
{
    struct scene *s = context;
    uint64_t ran = 0;
    bool good = true;

    hf_future_release(s->gate);
    for (unsigned i = 0; i < TASKS; i++) {
        uint32_t times = hf_u32_load(&s->ran[i], __ATOMIC_RELAXED);
        bool once = times + s->back[i] + s->cancelled[i] == 1;
        bool dropped = s->opts.reject == HF_POOL_DISCARD ||
                       s->opts.reject == HF_POOL_DISCARD_OLDEST;
        ran += times;
        if (s->statuses[i] != HF_OK ? times + s->back[i] != 0
                                    : !once && !(dropped && times == 0)) {
            fprintf(explain, "task %u: status %d, ran %u, back %u; ", i,
                    s->statuses[i], times, s->back[i]);
            good = false;
        }
    }
    if (s->end.state != HF_POOL_STOPPED || s->end.queued + s->end.active > 0 ||
        (!s->waits && ran != s->end.completed + s->end.failed) ||
        s->end.returned != s->returned) {
        fprintf(explain, "state %d, ran %u of %u", s->end.state, (unsigned)ran,
                (unsigned)s->end.submitted);
        good = false;
    }
    return good;
}

static void run(const char *name, struct scene *plan, unsigned schedules)
{
    struct schedule_case c = {.name = name,
                              .fibers = 3,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .context = plan,
                              .schedules = schedules};

    plan->opts.idle_ns = 3000; /* some ten steps */
    schedule_check(&c);
}

TEST(a_cached_pool_loses_nothing_when_shut_down_while_it_grows)
{
    struct scene plan = {.opts = {.kind = HF_POOL_CACHED, .max_threads = 2}};
    run("cached", &plan, 10000);
}

TEST(a_cached_pool_of_one_thread)
{
    struct scene plan = {.opts = {.kind = HF_POOL_CACHED, .max_threads = 1},
                         .cancels = true};
    run("cached, one thread", &plan, 10000);
}

TEST(a_dynamic_pool_stays_within_its_bounds)
{
    struct scene plan = {.opts = {.kind = HF_POOL_DYNAMIC,
                                  .min_threads = 1,
                                  .max_threads = 3,
                                  .grow_depth = 1}};
    run("dynamic", &plan, 10000);
}

TEST(shutdown_now_hands_back_each_that_had_not_begun)
{
    struct scene plan = {.opts = {.max_threads = 2}, .now = true};
    run("shutdown now", &plan, 10000);
}

TEST(cancelled_tasks_never_run)
{
    struct scene plan = {
        .opts = {.max_threads = 2}, .cancels = true, .now = true};
    run("cancel", &plan, 10000);
}

TEST(blocked_submitters_leave_with_room_or_the_end)
{
    struct scene plan = {
        .opts = {.max_threads = 1, .queue_max = 1, .reject = HF_POOL_BLOCK}};
    run("block", &plan, 10000);
}

TEST(blocked_submitters_leave_at_their_deadline)
{
    struct scene plan = {.opts = {.max_threads = 1,
                                  .queue_max = 1,
                                  .block_ns = 500,
                                  .reject = HF_POOL_BLOCK}};
    run("block with a deadline", &plan, 10000);
}

TEST(the_oldest_are_discarded_once)
{
    struct scene plan = {.opts = {.max_threads = 1,
                                  .queue_max = 1,
                                  .reject = HF_POOL_DISCARD_OLDEST}};
    run("discard oldest", &plan, 10000);
}

TEST(callers_run_what_has_no_room)
{
    struct scene plan = {.opts = {.max_threads = 1,
                                  .queue_max = 1,
                                  .reject = HF_POOL_CALLER_RUNS},
                         .waits = true};
    run("caller runs", &plan, 10000);
}

TEST(tasks_wait_for_tasks)
{
    struct scene plan = {.opts = {.max_threads = 2}, .waits = true};
    run("waits", &plan, 10000);
}

TEST(tasks_that_wait_and_an_end_that_hands_back)
{
    struct scene plan = {.opts = {.kind = HF_POOL_DYNAMIC, .max_threads = 3},
                         .waits = true,
                         .now = true};
    run("waits, shutdown now", &plan, 10000);
}

/* ---- The same with tasks in their submitters' memory. ---- */

TEST(works_are_handed_back_or_run)
{
    struct scene plan = {
        .opts = {.max_threads = 2}, .posts = true, .now = true};
    run("posts, shutdown now", &plan, 10000);
}

TEST(works_of_a_cached_pool_that_is_shut_down_while_it_grows)
{
    struct scene plan = {.opts = {.kind = HF_POOL_CACHED, .max_threads = 2},
                         .posts = true};
    run("posts, cached", &plan, 10000);
}

TEST(the_oldest_works_are_discarded_once)
{
    struct scene plan = {.opts = {.max_threads = 1,
                                  .queue_max = 1,
                                  .reject = HF_POOL_DISCARD_OLDEST},
                         .posts = true};
    run("posts, discard oldest", &plan, 10000);
}

TEST(blocked_works_that_wait_for_tasks)
{
    struct scene plan = {
        .opts = {.max_threads = 2, .queue_max = 1, .reject = HF_POOL_BLOCK},
        .posts = true,
        .waits = true};
    run("posts, block", &plan, 10000);
}

/* ---- Tasks that meet: no worker sleeps while a task is queued. ---- */

static struct {
    enum hf_pool_kind kind;
    size_t group; /* tasks that meet, and threads */
    struct hf_pool *pool;
    struct hf_future *here[6]; /* by task: it has come */
    struct hf_atomic_u32 met;
} meeting;

static int meets(void *arg)
{
    struct hf_future **mine = arg;
    size_t first = (size_t)(mine - meeting.here);
    const struct hf_outcome come = {HF_OK, 0, NULL};

    first -= first % meeting.group;
    (void)hf_future_complete(*mine, &come);
    (void)hf_future_all(&meeting.here[first], meeting.group, HF_FOREVER);
    hf_u32_add(&meeting.met, 1, __ATOMIC_RELAXED);
    return 0;
}

static void meets_body(void *context, unsigned fiber)
{
    const struct hf_pool_opts opts = {.kind = meeting.kind,
                                      .max_threads = (uint32_t)meeting.group,
                                      .idle_ns = 2000};

    (void)context;
    (void)fiber;
    if (hf_pool_open(&meeting.pool, &opts) != HF_OK)
        schedule_wrong("open failed");
    for (int i = 0; i < 6; i++)
        if (hf_future_open(&meeting.here[i], NULL) != HF_OK)
            schedule_wrong("no memory");
    for (size_t i = 0; i < 6; i++) {
        if (hf_pool_submit(meeting.pool, meets, &meeting.here[i], NULL, NULL) !=
            HF_OK)
            schedule_wrong("submit failed");
        if ((i + 1) % meeting.group == 0) /* no end that would wake all */
            (void)hf_future_all(&meeting.here[i + 1 - meeting.group],
                                meeting.group, HF_FOREVER);
    }
    hf_pool_close(meeting.pool);
    for (int i = 0; i < 6; i++)
        hf_future_release(meeting.here[i]);
    if (hf_u32_swap(&meeting.met, 0, __ATOMIC_RELAXED) != 6)
        schedule_wrong("somebody did not come");
}

TEST(tasks_that_meet_find_a_worker_each)
{
    static const enum hf_pool_kind kinds[] = {HF_POOL_FIXED, HF_POOL_CACHED,
                                              HF_POOL_DYNAMIC};

    for (unsigned i = 0; i < 6; i++) {
        struct schedule_case c = {
            .name = "meeting", .fibers = 1, .body = meets_body};
        meeting.kind = kinds[i % 3];
        meeting.group = i < 3 ? 2 : 3;
        schedule_check(&c);
    }
}

/* ---- Idle workers that had to stay, and may leave after a birth. ---- */

static int at_gate(void *arg)
{
    return hf_future_get(arg, HF_FOREVER, NULL) == HF_OK ? 0 : 1;
}

static void pause_1s(struct hf_future *gate)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 1000);

    if (hf_future_get(gate, deadline_ns, NULL) != HF_TIMEOUT)
        schedule_wrong("the gate is open");
}

/* Three workers sleep, and must. Three tasks come, and more workers with them:
 * whichever of these have no task leave, those that were not woken too. */
static void spare_body(void *context, unsigned fiber)
{
    const struct hf_outcome open = {HF_OK, 0, NULL};
    const struct hf_pool_opts opts = {.kind = HF_POOL_DYNAMIC,
                                      .min_threads = 3,
                                      .max_threads = 6,
                                      .grow_depth = 1,
                                      .idle_ns = 1};
    struct hf_pool_stats s = {0};
    struct hf_future *gate;
    struct hf_pool *pool;

    (void)context;
    (void)fiber;
    if (hf_pool_open(&pool, &opts) != HF_OK ||
        hf_future_open(&gate, NULL) != HF_OK)
        schedule_wrong("open failed");
    pause_1s(gate);
    for (int i = 0; i < 3; i++)
        if (hf_pool_submit(pool, at_gate, gate, NULL, NULL) != HF_OK)
            schedule_wrong("submit failed");
    for (int i = 0; i < 10 && (s.active < 3 || s.threads > 3); i++) {
        pause_1s(gate);
        hf_pool_stats(pool, &s);
    }
    if (s.active != 3 || s.threads != 3)
        schedule_wrong("%u threads, %u busy", s.threads, s.active);
    (void)hf_future_complete(gate, &open);
    hf_pool_close(pool);
    hf_future_release(gate);
}

TEST(who_had_to_stay_may_leave_after_a_birth)
{
    struct schedule_case c = {.name = "spare", .fibers = 1, .body = spare_body};
    schedule_check(&c);
}
