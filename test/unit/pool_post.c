/* pool_post.c - tests of tasks in the caller's memory: when they may be posted
 * again, that they need no memory, and that every rule of the pool holds. */
#include <sched.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "holdfast/pool.h"
#include "support/test.h"

#define WORKS 4

struct scene {
    struct hf_pool *pool;
    struct hf_future *gate;
    struct hf_pool_work at_gate;
    struct hf_pool_work works[WORKS];
    uint32_t order[2 * WORKS]; /* which ran, one after the other */
    uint32_t ran;
    uint32_t back[WORKS]; /* handed back */
    uint32_t notes[HF_POOL_DISCARDED + 1];
};

static struct hf_pool_stats stats_of(struct scene *scene)
{
    struct hf_pool_stats stats;

    hf_pool_stats(scene->pool, &stats);
    CHECK_EQ(stats.submitted, stats.completed + stats.failed + stats.cancelled +
                                  stats.discarded + stats.returned +
                                  stats.queued + stats.active);
    return stats;
}

/* A place of `back` stands for a work. */
static struct scene *scene;

static int runs(void *arg)
{
    scene->order[scene->ran++] = (uint32_t)((uint32_t *)arg - scene->back);
    return 0;
}

static int at_gate(void *arg)
{
    return hf_future_get(arg, HF_FOREVER, NULL) == HF_OK ? 0 : 1;
}

static void observe(void *context, const struct hf_pool_note *note)
{
    struct scene *s = context;

    if (strcmp(note->task, "work") == 0)
        __atomic_add_fetch(&s->notes[note->event], 1, __ATOMIC_RELAXED);
}

/* One worker, which stands at a gate, a queue of two, works of the priorities
 * 1 to 4. */
static void scene_open(struct scene *s, struct hf_pool_opts opts)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    memset(s, 0, sizeof *s);
    scene = s;
    opts.kind = HF_POOL_SINGLE;
    opts.queue_max = 2;
    opts.observe = observe;
    opts.context = s;
    CHECK_EQ(hf_future_open(&s->gate, NULL), HF_OK);
    CHECK_EQ(hf_pool_open(&s->pool, &opts), HF_OK);
    for (uint32_t i = 0; i < WORKS; i++) {
        const struct hf_task_opts task = {.name = "work", .priority = i + 1};
        CHECK_EQ(
            hf_pool_work_init(&s->works[i], s->pool, runs, &s->back[i], &task),
            HF_OK);
    }
    CHECK_EQ(hf_pool_work_init(&s->at_gate, s->pool, at_gate, s->gate, NULL),
             HF_OK);
    CHECK_EQ(hf_pool_post(&s->at_gate), HF_OK);
    while (stats_of(s).active == 0) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
}

static void scene_close(struct scene *s, uint32_t ran)
{
    (void)hf_future_cancel(s->gate);
    hf_pool_shutdown(s->pool);
    CHECK_EQ(hf_pool_await(s->pool, HF_FOREVER), HF_OK);
    (void)stats_of(s);
    hf_pool_close(s->pool);
    hf_future_release(s->gate);
    CHECK_EQ(s->ran, ran);
}

static void note_back(void *context, void *arg)
{
    struct hf_pool_work *works = context;
    uint32_t *back = arg;

    ++*back;
    /* It may go now. */
    memset(&works[back - scene->back], 0xee, sizeof *works);
}

/* ---- What is refused. ---- */

TEST(bad_works_are_refused_and_change_nothing)
{
    const struct hf_task_opts bad = {.priority = HF_POOL_PRIORITIES + 1};
    struct hf_pool *pool;
    struct hf_pool_work work;
    struct hf_pool_work before;

    CHECK_EQ(hf_pool_open(&pool, NULL), HF_OK);
    memset(&work, 0x55, sizeof work);
    memcpy(&before, &work, sizeof work);
    CHECK_EQ(hf_pool_work_init(NULL, pool, runs, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_pool_work_init(&work, NULL, runs, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_pool_work_init(&work, pool, NULL, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_pool_work_init(&work, pool, runs, NULL, &bad), HF_INVALID);
    CHECK_EQ(memcmp(&before, &work, sizeof work), 0);
    CHECK_EQ(hf_pool_post(NULL), HF_INVALID);
    hf_pool_close(pool);
}

TEST(a_queued_work_exists_also_when_full_and_when_shut_down)
{
    static const enum hf_pool_reject policies[] = {
        HF_POOL_ABORT, HF_POOL_DISCARD, HF_POOL_DISCARD_OLDEST,
        HF_POOL_CALLER_RUNS, HF_POOL_BLOCK};

    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        struct scene s;
        scene_open(&s, (struct hf_pool_opts){.reject = policies[i]});
        CHECK_EQ(hf_pool_post(&s.works[0]), HF_OK);
        CHECK_EQ(hf_pool_post(&s.works[0]), HF_EXISTS);
        CHECK_EQ(hf_pool_post(&s.works[1]), HF_OK); /* full */
        CHECK_EQ(hf_pool_post(&s.works[0]), HF_EXISTS);
        CHECK_EQ(hf_pool_post(&s.works[1]), HF_EXISTS);
        hf_pool_shutdown(s.pool);
        CHECK_EQ(hf_pool_post(&s.works[1]), HF_EXISTS);
        struct hf_pool_stats stats = stats_of(&s);
        CHECK_EQ(stats.submitted, 3);
        CHECK_EQ(stats.rejected + stats.discarded, 0);
        scene_close(&s, 2);
        CHECK_EQ(s.notes[HF_POOL_SUBMITTED], 2);
        CHECK_EQ(s.notes[HF_POOL_STARTED], 2);
        CHECK_EQ(s.notes[HF_POOL_COMPLETED], 2);
        CHECK_EQ(s.notes[HF_POOL_REJECTED] + s.notes[HF_POOL_DISCARDED], 0);
    }
}

TEST(policies_hold_for_works)
{
    struct scene s;

    scene_open(&s, (struct hf_pool_opts){.reject = HF_POOL_ABORT});
    CHECK_EQ(hf_pool_post(&s.works[2]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[3]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_FULL);
    CHECK_EQ(stats_of(&s).rejected, 1);
    hf_pool_shutdown(s.pool);
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_CLOSED);
    CHECK_EQ(stats_of(&s).rejected, 2);
    scene_close(&s, 2);
    CHECK_EQ(s.notes[HF_POOL_REJECTED], 2);

    scene_open(&s, (struct hf_pool_opts){.reject = HF_POOL_DISCARD});
    CHECK_EQ(hf_pool_post(&s.works[2]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[3]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_OK);
    CHECK_EQ(stats_of(&s).discarded, 1);
    scene_close(&s, 2);
    CHECK_EQ(s.notes[HF_POOL_DISCARDED], 1);

    scene_open(&s, (struct hf_pool_opts){.reject = HF_POOL_DISCARD_OLDEST});
    CHECK_EQ(hf_pool_post(&s.works[2]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[3]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_OK); /* 3 goes, and is at rest */
    CHECK_EQ(hf_pool_post(&s.works[3]), HF_OK); /* goes, not 2 */
    CHECK_EQ(hf_pool_post(&s.works[2]), HF_EXISTS);
    CHECK_EQ(hf_pool_post(&s.works[1]), HF_OK); /* 2 goes */
    scene_close(&s, 2);
    CHECK_EQ(s.order[0], 0);
    CHECK_EQ(s.order[1], 1);
    CHECK_EQ(s.notes[HF_POOL_DISCARDED], 3);

    scene_open(&s, (struct hf_pool_opts){.reject = HF_POOL_CALLER_RUNS});
    CHECK_EQ(hf_pool_post(&s.works[2]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[3]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_OK);
    CHECK_EQ(s.ran, 1);
    CHECK_EQ(stats_of(&s).caller_ran, 1);
    scene_close(&s, 3);

    scene_open(&s,
               (struct hf_pool_opts){.reject = HF_POOL_BLOCK, .block_ns = 1});
    CHECK_EQ(hf_pool_post(&s.works[2]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[3]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_TIMEOUT);
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_TIMEOUT); /* it is at rest */
    CHECK_EQ(stats_of(&s).rejected, 2);
    scene_close(&s, 2);
}

/* ---- What runs. ---- */

TEST(works_and_tasks_run_by_priority_then_by_order)
{
    const struct hf_task_opts second = {.priority = 2};
    struct scene s;
    uint32_t *middle;

    scene_open(&s, (struct hf_pool_opts){0});
    middle = &s.back[2];
    CHECK_EQ(hf_pool_submit(s.pool, runs, middle, &second, NULL), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[1]), HF_OK);
    scene_close(&s, 2);
    CHECK_EQ(s.order[0], 2);
    CHECK_EQ(s.order[1], 1);

    scene_open(&s, (struct hf_pool_opts){.times = true});
    CHECK_EQ(hf_pool_post(&s.works[3]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_OK);
    scene_close(&s, 2);
    CHECK_EQ(s.order[0], 0);
    CHECK_EQ(s.order[1], 3);
}

/* Posts itself again, as soon as it has begun. */
static struct hf_pool_work again;

static int posts_itself(void *arg)
{
    struct hf_atomic_u32 *left = arg;

    if (hf_u32_sub(left, 1, __ATOMIC_ACQ_REL) == 1)
        return 0;
    return hf_pool_post(&again) == HF_OK ? 0 : 1;
}

TEST(a_work_that_has_begun_may_be_posted_again)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);
    struct hf_atomic_u32 left = {1000};
    struct hf_pool *pool;
    struct hf_pool_stats stats;

    CHECK_EQ(hf_pool_open(&pool, NULL), HF_OK);
    CHECK_EQ(hf_pool_work_init(&again, pool, posts_itself, &left, NULL), HF_OK);
    CHECK_EQ(hf_pool_post(&again), HF_OK);
    do {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
        hf_pool_stats(pool, &stats);
    } while (stats.completed < 1000);
    CHECK_EQ(stats.submitted, 1000);
    CHECK_EQ(stats.failed, 0);
    hf_pool_close(pool);
}

/* Its own memory goes while it runs. */
static int frees_itself(void *arg)
{
    memset(arg, 0xee, sizeof(struct hf_pool_work));
    hf_free(arg);
    return 3;
}

TEST(a_work_may_go_when_it_has_begun)
{
    struct hf_pool *pool;
    struct hf_pool_work *work = hf_alloc(sizeof *work);
    struct hf_pool_stats stats;

    CHECK_EQ(hf_pool_open(&pool, NULL), HF_OK);
    CHECK_EQ(hf_pool_work_init(work, pool, frees_itself, work, NULL), HF_OK);
    CHECK_EQ(hf_pool_post(work), HF_OK);
    hf_pool_shutdown(pool);
    CHECK_EQ(hf_pool_await(pool, HF_FOREVER), HF_OK);
    hf_pool_stats(pool, &stats);
    CHECK_EQ(stats.failed, 1);
    hf_pool_close(pool);
}

/* ---- Memory. ---- */

TEST(a_post_needs_no_memory)
{
    struct scene s;

    scene_open(&s, (struct hf_pool_opts){.reject = HF_POOL_DISCARD_OLDEST});
    uint64_t before = hf_memory_count();
    hf_memory_fail_after(0);
    for (int round = 0; round < 100; round++)
        for (int i = 0; i < WORKS; i++) {
            enum hf_status status = hf_pool_post(&s.works[i]);
            CHECK(status == HF_OK || status == HF_EXISTS);
        }
    hf_memory_fail_never();
    CHECK_EQ(hf_memory_count(), before);
    scene_close(&s, 2);
}

TEST(a_growing_pool_that_gets_no_memory_runs_what_was_posted)
{
    const struct hf_pool_opts opts = {
        .kind = HF_POOL_DYNAMIC, .max_threads = 4, .grow_depth = 1};
    struct hf_atomic_u32 left = {1};
    struct hf_pool_stats stats;
    struct hf_pool *pool;

    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
    CHECK_EQ(hf_pool_work_init(&again, pool, posts_itself, &left, NULL), HF_OK);
    hf_memory_fail_after(0);
    enum hf_status status = hf_pool_post(&again);
    hf_memory_fail_never();
    CHECK_EQ(status, HF_OK);
    hf_pool_shutdown(pool);
    CHECK_EQ(hf_pool_await(pool, HF_FOREVER), HF_OK);
    hf_pool_stats(pool, &stats);
    CHECK_EQ(stats.completed, 1);
    hf_pool_close(pool);
}

TEST(a_cached_pool_without_a_thread_gives_the_work_back)
{
    const struct hf_pool_opts opts = {.kind = HF_POOL_CACHED};
    struct hf_atomic_u32 left = {1};
    struct hf_pool_stats stats;
    struct hf_pool *pool;

    CHECK_EQ(hf_pool_open(&pool, &opts), HF_OK);
    CHECK_EQ(hf_pool_work_init(&again, pool, posts_itself, &left, NULL), HF_OK);
    hf_memory_fail_after(0);
    CHECK_EQ(hf_pool_post(&again), HF_NOMEM);
    CHECK_EQ(hf_pool_post(&again), HF_NOMEM); /* it is at rest */
    hf_memory_fail_never();
    hf_pool_stats(pool, &stats);
    CHECK_EQ(stats.submitted, 0);
    CHECK_EQ(stats.rejected, 2);
    CHECK_EQ(hf_pool_post(&again), HF_OK);
    hf_pool_close(pool);
    CHECK_EQ(hf_u32_load(&left, __ATOMIC_ACQUIRE), 0);
}

/* ---- The end. ---- */

TEST(shutdown_now_hands_works_back_in_order_and_they_may_go)
{
    struct scene s;

    scene_open(&s, (struct hf_pool_opts){0});
    CHECK_EQ(hf_pool_post(&s.works[3]), HF_OK);
    CHECK_EQ(hf_pool_submit(s.pool, runs, &s.back[2], NULL, NULL), HF_OK);
    CHECK_EQ(hf_pool_shutdown_now(s.pool, note_back, s.works), 2);
    CHECK_EQ(s.back[2], 1);
    CHECK_EQ(s.back[3], 1);
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_CLOSED);
    CHECK_EQ(stats_of(&s).returned, 2);
    scene_close(&s, 0);
}

TEST(shutdown_now_without_a_callback_leaves_works_at_rest)
{
    struct scene s;

    scene_open(&s, (struct hf_pool_opts){0});
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_OK);
    CHECK_EQ(hf_pool_post(&s.works[1]), HF_OK);
    CHECK_EQ(hf_pool_shutdown_now(s.pool, NULL, NULL), 2);
    CHECK_EQ(hf_pool_post(&s.works[0]), HF_CLOSED);
    memset(s.works, 0xee, sizeof s.works);
    scene_close(&s, 0);
}
