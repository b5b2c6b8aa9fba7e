/* future.c - tests of futures, those of a pool and those of one's own. */
#include "holdfast/future.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "holdfast/pool.h"
#include "support/clock.h"
#include "support/test.h"

static struct hf_future *future_new_one(void)
{
    struct hf_future *future = NULL;

    CHECK_EQ(hf_future_open(&future, NULL), HF_OK);
    return future;
}

static const struct hf_outcome fine = {HF_OK, 0, NULL};

TEST(bad_arguments_are_refused)
{
    struct hf_future *future = future_new_one();
    const struct hf_outcome bad = {HF_TIMEOUT, 0, NULL};
    struct hf_future *none = NULL;
    size_t index;

    CHECK_EQ(hf_future_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_future_complete(NULL, &fine), HF_INVALID);
    CHECK_EQ(hf_future_complete(future, NULL), HF_INVALID);
    CHECK_EQ(hf_future_complete(future, &bad), HF_INVALID);
    CHECK_EQ(hf_future_get(NULL, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_future_cancel(NULL), HF_INVALID);
    CHECK_EQ(hf_future_then(future, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_future_all(NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_future_all(&none, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_future_all(NULL, 0, HF_NOW), HF_OK);
    CHECK_EQ(hf_future_any(NULL, 1, HF_NOW, &index), HF_INVALID);
    CHECK_EQ(hf_future_any(&none, 1, HF_NOW, &index), HF_INVALID);
    CHECK_EQ(hf_future_any(&future, 0, HF_NOW, &index), HF_INVALID);
    CHECK_EQ(hf_future_any(&future, 1, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_future_get(future, HF_NOW, NULL), HF_TIMEOUT);
    hf_future_release(future);
    hf_future_release(NULL);
}

TEST(a_future_is_completed_once)
{
    struct hf_future *future = future_new_one();
    const struct hf_outcome failed = {HF_FAILED, 4, &future};
    struct hf_outcome outcome;

    CHECK_EQ(hf_future_complete(future, &failed), HF_OK);
    CHECK_EQ(hf_future_complete(future, &fine), HF_EXISTS);
    CHECK_EQ(hf_future_cancel(future), HF_NOTFOUND);
    CHECK_EQ(hf_future_get(future, HF_NOW, &outcome), HF_OK);
    CHECK_EQ(outcome.status, HF_FAILED);
    CHECK_EQ(outcome.code, 4);
    CHECK(outcome.result == &future);
    hf_future_retain(future);
    hf_future_release(future);
    CHECK_EQ(hf_future_get(future, HF_FOREVER, NULL), HF_OK);
    hf_future_release(future);
}

struct wait {
    struct hf_future *futures[3];
    size_t count;
    uint64_t deadline_ns;
    bool any;
    enum hf_status status;
    size_t index;
    pthread_t thread;
};

static void *wait_main(void *arg)
{
    struct wait *wait = arg;

    wait->status = wait->any ? hf_future_any(wait->futures, wait->count,
                                             wait->deadline_ns, &wait->index)
                             : hf_future_all(wait->futures, wait->count,
                                             wait->deadline_ns);
    return NULL;
}

static void wait_start(struct wait *wait, struct test_clock *clock)
{
    CHECK_EQ(pthread_create(&wait->thread, NULL, wait_main, wait), 0);
    test_clock_await_sleepers(clock, 1);
}

static enum hf_status wait_end(struct wait *wait)
{
    CHECK_EQ(pthread_join(wait->thread, NULL), 0);
    return wait->status;
}

static void wait_init(struct wait *wait, struct test_clock *clock, bool any)
{
    const struct hf_clock *by = test_clock(clock);

    *wait = (struct wait){.count = 3, .any = any, .deadline_ns = 2000};
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_future_open(&wait->futures[i], by), HF_OK);
}

static void wait_free(struct wait *wait)
{
    for (int i = 0; i < 3; i++)
        hf_future_release(wait->futures[i]);
}

TEST(all_waits_for_the_last_and_any_for_the_first)
{
    struct test_clock clock = {.now_ns = 1000};
    struct wait wait;

    wait_init(&wait, &clock, false);
    wait_start(&wait, &clock);
    for (int i = 2; i >= 0; i--)
        CHECK_EQ(hf_future_complete(wait.futures[i], &fine), HF_OK);
    CHECK_EQ(wait_end(&wait), HF_OK);
    wait_free(&wait);

    wait_init(&wait, &clock, true);
    wait_start(&wait, &clock);
    CHECK_EQ(hf_future_cancel(wait.futures[1]), HF_OK);
    CHECK_EQ(wait_end(&wait), HF_OK);
    CHECK_EQ(wait.index, 1);
    /* Those that come later find nobody, and one that is there is told. */
    CHECK_EQ(hf_future_complete(wait.futures[0], &fine), HF_OK);
    CHECK_EQ(hf_future_any(wait.futures, 3, HF_NOW, &wait.index), HF_OK);
    CHECK_EQ(wait.index, 0);
    wait_free(&wait);
}

TEST(all_and_any_end_at_their_deadline)
{
    for (int any = 0; any < 2; any++) {
        struct test_clock clock = {.now_ns = 1000};
        struct wait wait;

        wait_init(&wait, &clock, any);
        if (any == 0)
            CHECK_EQ(hf_future_complete(wait.futures[0], &fine), HF_OK);
        wait_start(&wait, &clock);
        test_clock_advance(&clock, 1000);
        CHECK_EQ(wait_end(&wait), HF_TIMEOUT);
        CHECK_EQ(hf_future_all(wait.futures, 3, HF_NOW), HF_TIMEOUT);
        wait_free(&wait);
    }
}

static void note(void *context, const struct hf_outcome *outcome)
{
    int *seen = context;

    *seen = *seen * 10 + outcome->code;
}

TEST(then_calls_in_order_once_before_or_after)
{
    struct hf_future *future = future_new_one();
    const struct hf_outcome one = {HF_FAILED, 1, NULL};
    int seen[3] = {2, 3, 4};

    CHECK_EQ(hf_future_then(future, note, &seen[0]), HF_OK);
    CHECK_EQ(hf_future_then(future, note, &seen[1]), HF_OK);
    hf_memory_fail_after(0);
    CHECK_EQ(hf_future_then(future, note, &seen[2]), HF_NOMEM);
    hf_memory_fail_never();
    CHECK_EQ(seen[0], 2);
    CHECK_EQ(hf_future_complete(future, &one), HF_OK);
    CHECK_EQ(seen[0], 21);
    CHECK_EQ(seen[1], 31);
    CHECK_EQ(seen[2], 4);
    CHECK_EQ(hf_future_then(future, note, &seen[0]), HF_OK);
    CHECK_EQ(seen[0], 211);
    hf_future_release(future);

    future = future_new_one(); /* nobody completes it: as if cancelled */
    CHECK_EQ(hf_future_then(future, note, &seen[0]), HF_OK);
    hf_future_release(future);
    CHECK_EQ(seen[0], 2110);
}

TEST(without_memory_opening_and_any_fail)
{
    struct hf_future *future = NULL;
    struct hf_future *two[2] = {future_new_one(), future_new_one()};
    size_t index;
    uint64_t soon = hf_clock_now_ns(hf_clock_system());

    hf_memory_fail_after(0);
    CHECK_EQ(hf_future_open(&future, NULL), HF_NOMEM);
    hf_memory_fail_never();
    CHECK(future == NULL);
    for (uint64_t i = 0; i < 3; i++) {
        hf_memory_fail_after(i);
        CHECK_EQ(hf_future_any(two, 2, soon, &index), HF_NOMEM);
        hf_memory_fail_never();
    }
    CHECK_EQ(hf_future_any(two, 2, soon, &index), HF_TIMEOUT);
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(hf_future_complete(two[i], &fine), HF_OK);
        hf_future_release(two[i]);
    }
}

/* ---- Of a pool. ---- */

struct scene {
    struct hf_pool *pool;
    struct hf_future *gate;
    struct hf_atomic_u32 ran;
};

static int at_gate(void *arg)
{
    return hf_future_get(arg, HF_FOREVER, NULL) == HF_OK ? 0 : 1;
}

static int add_one(void *arg)
{
    hf_u32_add(arg, 1, __ATOMIC_ACQ_REL);
    return 0;
}

static void scene_open(struct scene *scene)
{
    struct hf_pool_opts opts = {.kind = HF_POOL_SINGLE};

    *scene = (struct scene){.gate = future_new_one()};
    CHECK_EQ(hf_pool_open(&scene->pool, &opts), HF_OK);
    CHECK_EQ(hf_pool_submit(scene->pool, at_gate, scene->gate, NULL, NULL),
             HF_OK);
}

TEST(a_task_is_cancelled_before_it_begins_and_not_after)
{
    struct scene scene;
    struct hf_future *future;
    struct hf_outcome outcome;
    struct hf_pool_stats stats;
    int seen = 9;

    scene_open(&scene);
    CHECK_EQ(hf_pool_submit(scene.pool, add_one, &scene.ran, NULL, &future),
             HF_OK);
    CHECK_EQ(hf_future_complete(future, &fine), HF_INVALID);
    CHECK_EQ(hf_future_then(future, note, &seen), HF_OK);
    CHECK_EQ(hf_future_cancel(future), HF_OK);
    CHECK_EQ(seen, 90);
    CHECK_EQ(hf_future_get(future, HF_NOW, &outcome), HF_OK);
    CHECK_EQ(outcome.status, HF_CANCELLED);
    hf_future_release(future);
    CHECK_EQ(hf_pool_submit(scene.pool, add_one, &scene.ran, NULL, &future),
             HF_OK);
    CHECK_EQ(hf_future_complete(scene.gate, &fine), HF_OK);
    CHECK_EQ(hf_future_get(future, HF_FOREVER, &outcome), HF_OK);
    CHECK_EQ(outcome.status, HF_OK);
    CHECK_EQ(hf_future_cancel(future), HF_NOTFOUND);
    hf_pool_stats(scene.pool, &stats);
    CHECK_EQ(stats.cancelled, 1);
    CHECK_EQ(stats.completed, 2);
    hf_pool_close(scene.pool);
    CHECK_EQ(hf_u32_load(&scene.ran, __ATOMIC_ACQUIRE), 1);
    CHECK_EQ(hf_future_get(future, HF_FOREVER, NULL), HF_OK);
    hf_future_release(future);
    hf_future_release(scene.gate);
}

/* In the pool's only worker: any of a future that nobody completes and of two
 * that have not begun. */
static int waits_for_any(void *arg)
{
    struct scene *scene = arg;
    struct hf_future *futures[3] = {scene->gate, NULL, NULL};
    size_t index = 9;

    for (int i = 1; i < 3; i++)
        if (hf_pool_submit(scene->pool, add_one, &scene->ran, NULL,
                           &futures[i]) != HF_OK)
            return 1;
    /* One that only looks runs nothing. */
    int wrong = hf_future_any(futures, 3, HF_NOW, &index) != HF_TIMEOUT;
    wrong |= hf_future_get(futures[1], HF_NOW, NULL) != HF_TIMEOUT;
    wrong |= hf_future_any(futures, 3, HF_FOREVER, &index) != HF_OK;
    wrong |= index != 1;
    wrong |= hf_u32_load(&scene->ran, __ATOMIC_ACQUIRE) != 1;
    for (int i = 1; i < 3; i++)
        hf_future_release(futures[i]);
    return wrong;
}

TEST(a_task_that_waits_for_any_runs_one_itself)
{
    struct scene scene = {.gate = future_new_one()};
    const struct hf_pool_opts opts = {.kind = HF_POOL_SINGLE};
    struct hf_future *future;
    struct hf_outcome outcome;

    CHECK_EQ(hf_pool_open(&scene.pool, &opts), HF_OK);
    CHECK_EQ(hf_pool_submit(scene.pool, waits_for_any, &scene, NULL, &future),
             HF_OK);
    CHECK_EQ(hf_future_get(future, HF_FOREVER, &outcome), HF_OK);
    CHECK_EQ(outcome.code, 0);
    hf_future_release(future);
    hf_pool_close(scene.pool);
    CHECK_EQ(hf_u32_load(&scene.ran, __ATOMIC_ACQUIRE), 2);
    hf_future_release(scene.gate);
}
