/* pool_reject.c - tests of a pool's refusals: what happens to a task when the
 * queue is full or the pool shut down; observers, figures, hf_inspect. */
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "base/atomic.h"
#include "holdfast/pool.h"
#include "support/clock.h"
#include "support/test.h"

struct scene {
    struct hf_pool *pool;
    struct hf_future *gate;
    struct hf_atomic_u32 ran;
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

static int add_one(void *arg)
{
    hf_u32_add(arg, 1, __ATOMIC_ACQ_REL);
    return 0;
}

static int at_gate(void *arg)
{
    return hf_future_get(arg, HF_FOREVER, NULL) == HF_OK ? 0 : 1;
}

static enum hf_status submit(struct scene *scene, struct hf_future **future)
{
    return hf_pool_submit(scene->pool, add_one, &scene->ran, NULL, future);
}

/* One worker, which stands at a gate, and a queue of two, which is full. */
static void scene_open(struct scene *scene, struct hf_pool_opts opts,
                       struct hf_future **queued)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    memset(scene, 0, sizeof *scene);
    opts.kind = HF_POOL_SINGLE;
    opts.queue_max = 2;
    CHECK_EQ(hf_future_open(&scene->gate, NULL), HF_OK);
    CHECK_EQ(hf_pool_open(&scene->pool, &opts), HF_OK);
    CHECK_EQ(hf_pool_submit(scene->pool, at_gate, scene->gate, NULL, NULL),
             HF_OK);
    while (stats_of(scene).active == 0) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
    CHECK_EQ(submit(scene, queued == NULL ? NULL : &queued[0]), HF_OK);
    CHECK_EQ(submit(scene, queued == NULL ? NULL : &queued[1]), HF_OK);
}

static void gate_open(struct scene *scene)
{
    const struct hf_outcome done = {HF_OK, 0, NULL};

    CHECK_EQ(hf_future_complete(scene->gate, &done), HF_OK);
}

/* Lets all run that is queued, and closes. */
static void scene_close(struct scene *scene, uint32_t ran)
{
    (void)hf_future_cancel(scene->gate);
    hf_pool_shutdown(scene->pool);
    CHECK_EQ(hf_pool_await(scene->pool, HF_FOREVER), HF_OK);
    (void)stats_of(scene);
    hf_pool_close(scene->pool);
    hf_future_release(scene->gate);
    CHECK_EQ(hf_u32_load(&scene->ran, __ATOMIC_ACQUIRE), ran);
}

static enum hf_status outcome_of(struct hf_future *future)
{
    struct hf_outcome outcome;

    CHECK_EQ(hf_future_get(future, HF_FOREVER, &outcome), HF_OK);
    hf_future_release(future);
    return outcome.status;
}

TEST(abort_tells_full_and_closed)
{
    struct scene scene;
    struct hf_future *future = NULL;

    scene_open(&scene, (struct hf_pool_opts){0}, NULL);
    CHECK_EQ(submit(&scene, &future), HF_FULL);
    CHECK_EQ(stats_of(&scene).rejected, 1);
    hf_pool_shutdown(scene.pool);
    CHECK_EQ(submit(&scene, &future), HF_CLOSED);
    CHECK_EQ(stats_of(&scene).rejected, 2);
    CHECK(future == NULL);
    scene_close(&scene, 2);
}

TEST(discard_drops_the_new_one_and_counts_it)
{
    struct scene scene;
    struct hf_future *future;

    scene_open(&scene, (struct hf_pool_opts){.reject = HF_POOL_DISCARD}, NULL);
    CHECK_EQ(submit(&scene, &future), HF_OK);
    CHECK_EQ(outcome_of(future), HF_CANCELLED);
    CHECK_EQ(submit(&scene, NULL), HF_OK);
    CHECK_EQ(stats_of(&scene).discarded, 2);
    hf_pool_shutdown(scene.pool);
    CHECK_EQ(submit(&scene, NULL), HF_OK);
    CHECK_EQ(stats_of(&scene).discarded, 3);
    CHECK_EQ(stats_of(&scene).rejected, 0);
    scene_close(&scene, 2);
}

TEST(discard_oldest_drops_the_oldest_of_the_least)
{
    struct scene scene;
    struct hf_future *queued[2];
    struct hf_future *urgent;
    const struct hf_task_opts first = {.priority = 1};

    scene_open(&scene, (struct hf_pool_opts){.reject = HF_POOL_DISCARD_OLDEST},
               queued);
    CHECK_EQ(hf_pool_submit(scene.pool, add_one, &scene.ran, &first, &urgent),
             HF_OK);
    CHECK_EQ(outcome_of(queued[0]), HF_CANCELLED);
    CHECK_EQ(submit(&scene, NULL), HF_OK);
    CHECK_EQ(outcome_of(queued[1]), HF_CANCELLED);
    CHECK_EQ(stats_of(&scene).discarded, 2);
    CHECK_EQ(stats_of(&scene).queued, 2);
    hf_pool_shutdown(scene.pool);
    CHECK_EQ(submit(&scene, NULL), HF_CLOSED);
    gate_open(&scene);
    CHECK_EQ(outcome_of(urgent), HF_OK);
    scene_close(&scene, 2);
}

/* However old, what is more urgent than the new one stays. */
TEST(discard_oldest_never_drops_what_is_more_urgent)
{
    struct scene scene;
    struct hf_future *queued[2];
    struct hf_future *late[3];
    const struct hf_task_opts last = {.priority = 4};
    const struct hf_task_opts first = {.priority = 1};

    scene_open(&scene, (struct hf_pool_opts){.reject = HF_POOL_DISCARD_OLDEST},
               queued);
    CHECK_EQ(hf_pool_submit(scene.pool, add_one, &scene.ran, &last, &late[0]),
             HF_OK);
    CHECK_EQ(hf_future_get(queued[0], HF_NOW, NULL), HF_TIMEOUT); /* stays */
    CHECK_EQ(outcome_of(late[0]), HF_CANCELLED);
    CHECK_EQ(stats_of(&scene).discarded, 1);
    CHECK_EQ(stats_of(&scene).rejected, 0);
    CHECK_EQ(stats_of(&scene).queued, 2);
    for (int i = 1; i < 3; i++)
        CHECK_EQ(
            hf_pool_submit(scene.pool, add_one, &scene.ran, &first, &late[i]),
            HF_OK);
    CHECK_EQ(outcome_of(queued[0]), HF_CANCELLED);
    CHECK_EQ(outcome_of(queued[1]), HF_CANCELLED);
    CHECK_EQ(submit(&scene, NULL), HF_OK); /* goes at once */
    CHECK_EQ(stats_of(&scene).discarded, 4);
    gate_open(&scene);
    CHECK_EQ(outcome_of(late[1]), HF_OK);
    CHECK_EQ(outcome_of(late[2]), HF_OK);
    scene_close(&scene, 2);
}

TEST(discard_oldest_prefers_those_that_were_cancelled)
{
    struct scene scene;
    struct hf_future *queued[2];

    scene_open(&scene, (struct hf_pool_opts){.reject = HF_POOL_DISCARD_OLDEST},
               queued);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(hf_future_cancel(queued[i]), HF_OK);
        hf_future_release(queued[i]);
    }
    CHECK_EQ(submit(&scene, NULL), HF_OK);
    CHECK_EQ(submit(&scene, NULL), HF_OK);
    CHECK_EQ(stats_of(&scene).discarded, 0);
    CHECK_EQ(stats_of(&scene).cancelled, 2);
    CHECK_EQ(stats_of(&scene).queued, 2);
    scene_close(&scene, 2);
}

TEST(the_caller_runs_it_unless_shut_down)
{
    struct scene scene;
    struct hf_future *future;

    scene_open(&scene, (struct hf_pool_opts){.reject = HF_POOL_CALLER_RUNS},
               NULL);
    CHECK_EQ(submit(&scene, &future), HF_OK);
    CHECK_EQ(hf_u32_load(&scene.ran, __ATOMIC_ACQUIRE), 1);
    CHECK_EQ(outcome_of(future), HF_OK);
    CHECK_EQ(stats_of(&scene).caller_ran, 1);
    CHECK_EQ(stats_of(&scene).completed, 1);
    hf_pool_shutdown(scene.pool);
    CHECK_EQ(submit(&scene, NULL), HF_CLOSED);
    scene_close(&scene, 3);
}

struct blocked {
    struct scene *scene;
    enum hf_status status;
    pthread_t thread;
};

static void *block(void *arg)
{
    struct blocked *blocked = arg;

    blocked->status = submit(blocked->scene, NULL);
    return NULL;
}

static void block_start(struct blocked *blocked, struct scene *scene,
                        struct test_clock *clock, unsigned sleepers)
{
    blocked->scene = scene;
    CHECK_EQ(pthread_create(&blocked->thread, NULL, block, blocked), 0);
    test_clock_await_sleepers(clock, sleepers);
}

static enum hf_status block_end(struct blocked *blocked)
{
    CHECK_EQ(pthread_join(blocked->thread, NULL), 0);
    return blocked->status;
}

TEST(block_waits_for_room)
{
    struct test_clock clock = {.now_ns = 1000};
    struct scene scene;
    struct blocked blocked[2];

    scene_open(&scene,
               (struct hf_pool_opts){.reject = HF_POOL_BLOCK,
                                     .clock = test_clock(&clock)},
               NULL);
    block_start(&blocked[0], &scene, &clock, 1);
    block_start(&blocked[1], &scene, &clock, 2);
    gate_open(&scene);
    CHECK_EQ(block_end(&blocked[0]), HF_OK);
    CHECK_EQ(block_end(&blocked[1]), HF_OK);
    scene_close(&scene, 4);
}

TEST(block_ends_at_its_deadline)
{
    struct test_clock clock = {.now_ns = 1000};
    struct scene scene;
    struct blocked blocked;

    scene_open(&scene,
               (struct hf_pool_opts){.reject = HF_POOL_BLOCK,
                                     .block_ns = 500,
                                     .clock = test_clock(&clock)},
               NULL);
    block_start(&blocked, &scene, &clock, 1);
    test_clock_advance(&clock, 500);
    CHECK_EQ(block_end(&blocked), HF_TIMEOUT);
    CHECK_EQ(stats_of(&scene).rejected, 1);
    scene_close(&scene, 2);
}

TEST(block_ends_when_the_pool_is_shut_down)
{
    struct test_clock clock = {.now_ns = 1000};
    struct scene scene;
    struct blocked blocked;

    scene_open(&scene,
               (struct hf_pool_opts){.reject = HF_POOL_BLOCK,
                                     .block_ns = UINT64_MAX,
                                     .clock = test_clock(&clock)},
               NULL);
    block_start(&blocked, &scene, &clock, 1);
    hf_pool_shutdown(scene.pool);
    CHECK_EQ(block_end(&blocked), HF_CLOSED);
    CHECK_EQ(submit(&scene, NULL), HF_CLOSED);
    scene_close(&scene, 2);
}

static enum hf_status answer;

static enum hf_status asked(void *context, int (*fn)(void *arg), void *arg)
{
    (void)context;
    if (answer == HF_OK)
        (void)fn(arg);
    return answer;
}

TEST(ask_decides)
{
    struct scene scene;
    struct hf_future *future;

    scene_open(&scene,
               (struct hf_pool_opts){.reject = HF_POOL_ASK, .ask = asked},
               NULL);
    answer = HF_IO;
    CHECK_EQ(submit(&scene, NULL), HF_IO);
    answer = HF_OK;
    CHECK_EQ(submit(&scene, &future), HF_OK);
    CHECK_EQ(outcome_of(future), HF_CANCELLED); /* it is not the pool's */
    hf_pool_shutdown(scene.pool);
    CHECK_EQ(submit(&scene, NULL), HF_OK);
    CHECK_EQ(stats_of(&scene).rejected, 3);
    scene_close(&scene, 4);
}

/* ---- What is told. ---- */

struct told {
    struct hf_atomic_u32 events[6];
    struct hf_atomic_u32 code;
    struct hf_atomic_u64 queue_ns;
    struct hf_atomic_u64 run_ns;
    struct hf_atomic_u32 named;
};

static void observe(void *context, const struct hf_pool_note *note)
{
    struct told *told = context;

    hf_u32_add(&told->events[note->event], 1, __ATOMIC_ACQ_REL);
    hf_u32_add(&told->named, strcmp(note->task, "named") == 0,
               __ATOMIC_ACQ_REL);
    if (note->event != HF_POOL_FAILED)
        return;
    hf_u32_store(&told->code, (uint32_t)note->code, __ATOMIC_RELEASE);
    hf_u64_store(&told->queue_ns, note->queue_ns, __ATOMIC_RELEASE);
    hf_u64_store(&told->run_ns, note->run_ns, __ATOMIC_RELEASE);
}

static int takes_30(void *arg)
{
    test_clock_advance(arg, 30);
    return 5;
}

static void find_row(void *context, const struct hf_inspect_row *row)
{
    struct hf_inspect_row *found = context;

    if (strcmp(row->name, "told") == 0)
        *found = *row;
}

TEST(observer_figures_and_inspect_tell_the_same_story)
{
    struct test_clock clock = {.now_ns = 1000};
    struct told told = {0};
    struct hf_inspect_row row = {.depth = 99};
    const struct hf_task_opts named = {.name = "named"};
    struct scene scene;

    scene_open(&scene,
               (struct hf_pool_opts){.name = "told",
                                     .times = true,
                                     .observe = observe,
                                     .context = &told,
                                     .reject = HF_POOL_DISCARD_OLDEST,
                                     .clock = test_clock(&clock)},
               NULL);
    test_clock_advance(&clock, 100);
    CHECK_EQ(hf_pool_submit(scene.pool, takes_30, &clock, &named, NULL), HF_OK);
    test_clock_advance(&clock, 20);
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_EQ(row.depth, 2);
    CHECK_EQ(row.capacity, 2);
    CHECK_EQ(row.rejected, 1);
    CHECK_EQ(row.oldest_ns, 120);
    gate_open(&scene);
    hf_pool_shutdown(scene.pool);
    CHECK_EQ(hf_pool_await(scene.pool, HF_FOREVER), HF_OK);
    CHECK_EQ(submit(&scene, NULL), HF_CLOSED);

    CHECK_EQ(hf_u32_load(&told.events[HF_POOL_SUBMITTED], 0), 4);
    CHECK_EQ(hf_u32_load(&told.events[HF_POOL_STARTED], 0), 3);
    CHECK_EQ(hf_u32_load(&told.events[HF_POOL_COMPLETED], 0), 2);
    CHECK_EQ(hf_u32_load(&told.events[HF_POOL_FAILED], 0), 1);
    CHECK_EQ(hf_u32_load(&told.events[HF_POOL_REJECTED], 0), 1);
    CHECK_EQ(hf_u32_load(&told.events[HF_POOL_DISCARDED], 0), 1);
    CHECK_EQ(hf_u32_load(&told.named, 0), 3);
    CHECK_EQ(hf_u32_load(&told.code, 0), 5);
    CHECK_EQ(hf_u64_load(&told.queue_ns, 0), 20);
    CHECK_EQ(hf_u64_load(&told.run_ns, 0), 30);

    struct hf_pool_stats stats = stats_of(&scene);
    CHECK_EQ(stats.queue_p99_ns, 127); /* the bucket of 120 */
    CHECK_EQ(stats.run_p99_ns, 127);
    CHECK_EQ(stats.queue_p50_ns, 23); /* of 20 */
    CHECK(stats.utilisation > 0.99 && stats.utilisation < 1.01);
    scene_close(&scene, 1);
    row.depth = 99;
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_EQ(row.depth, 99); /* it is no longer listed */
}
