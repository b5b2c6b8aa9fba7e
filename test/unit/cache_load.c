/* cache_load.c - loaders of the cache: once for all who ask, what becomes of
 * those who wait, what is kept of a failure, refresh ahead. */
#include <pthread.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "holdfast/cache.h"
#include "holdfast/event.h"
#include "support/clock.h"
#include "support/test.h"
#include "support/threads.h"

static char one, two;

static struct {
    struct hf_cache *cache;
    struct hf_atomic_u32 runs;
    struct hf_atomic_u32 answers[HF_STATUS_COUNT];
    struct hf_atomic_u32 released;
    unsigned told[HF_CACHE_CAUSES];
    enum hf_status status; /* what the loader returns */
    void *value;           /* and loads */
    uint64_t ttl_ns;
    uint32_t wait_for; /* the loader waits until so many wait for it */
    struct test_clock clock;
} scene;

static void on_removed(void *context, const void *key, size_t key_len,
                       void *value, enum hf_cache_cause cause)
{
    (void)context;
    (void)key;
    (void)key_len;
    (void)value;
    scene.told[cause]++;
}

static void on_release(void *context, void *value)
{
    (void)context;
    (void)value;
    hf_u32_add(&scene.released, 1, __ATOMIC_RELAXED);
}

static void await_waits(uint64_t count)
{
    uint64_t until_ns = hf_clock_after_ms(NULL, 60000);
    struct hf_cache_stats stats;

    do
        hf_cache_stats(scene.cache, &stats);
    while (stats.load_waits < count &&
           hf_clock_now_ns(hf_clock_system()) < until_ns);
}

static enum hf_status load(void *context, const void *key, size_t key_len,
                           struct hf_cache_loaded *out)
{
    (void)context;
    (void)key;
    (void)key_len;
    hf_u32_add(&scene.runs, 1, __ATOMIC_RELAXED);
    await_waits(scene.wait_for);
    out->value = scene.value;
    out->ttl_ns = scene.ttl_ns;
    return scene.status;
}

static void open_scene(struct hf_cache_opts opts)
{
    memset(&scene, 0, sizeof scene);
    scene.clock.now_ns = 1000;
    scene.value = &one;
    opts.load = load;
    opts.removed = on_removed;
    opts.release = on_release;
    opts.clock = test_clock(&scene.clock);
    CHECK_EQ(hf_cache_open(&scene.cache, &opts), HF_OK);
}

static enum hf_status ask(const char *key, void **value)
{
    return hf_cache_get_or_load(scene.cache, key, strlen(key), NULL, NULL,
                                HF_FOREVER, value);
}

static struct hf_cache_stats stats(void)
{
    struct hf_cache_stats out;

    hf_cache_stats(scene.cache, &out);
    return out;
}

TEST(what_is_not_there_is_loaded_once)
{
    void *value = NULL;

    open_scene((struct hf_cache_opts){0});
    scene.ttl_ns = 10;
    CHECK_EQ(ask("a", &value), HF_OK);
    CHECK(value == &one);
    CHECK_EQ(ask("a", &value), HF_OK);
    CHECK_EQ(scene.runs.value, 1);
    test_clock_advance(&scene.clock, 9);
    CHECK_EQ(hf_cache_get(scene.cache, "a", 1, NULL), HF_OK);
    test_clock_advance(&scene.clock, 1);
    CHECK_EQ(hf_cache_get(scene.cache, "a", 1, NULL), HF_NOTFOUND);
    scene.value = &two;
    CHECK_EQ(ask("a", &value), HF_OK);
    CHECK(value == &two);
    CHECK_EQ(stats().loads, 2);
    CHECK_EQ(stats().hits, 2);
    CHECK_EQ(stats().misses, 3);
    CHECK_EQ(scene.told[HF_CACHE_EXPIRED], 1);
    hf_cache_close(scene.cache);
    CHECK_EQ(scene.released.value, 2);
}

TEST(a_failure_is_told_and_not_kept)
{
    void *value = &two;

    open_scene((struct hf_cache_opts){0});
    scene.status = HF_IO;
    CHECK_EQ(ask("a", &value), HF_IO);
    CHECK(value == &two);
    scene.status = HF_OK;
    scene.value = NULL;
    CHECK_EQ(ask("a", &value), HF_FAILED);
    scene.value = &one;
    CHECK_EQ(ask("a", &value), HF_OK);
    CHECK_EQ(stats().loads, 3);
    CHECK_EQ(stats().load_failures, 2);
    hf_cache_close(scene.cache);
    CHECK_EQ(scene.released.value, 1);
}

TEST(no_such_thing_is_kept_for_its_own_time)
{
    open_scene((struct hf_cache_opts){.negative_ttl_ns = 50});
    scene.status = HF_NOTFOUND;
    CHECK_EQ(ask("a", NULL), HF_NOTFOUND);
    CHECK_EQ(ask("a", NULL), HF_NOTFOUND);
    CHECK_EQ(hf_cache_get(scene.cache, "a", 1, NULL), HF_NOTFOUND);
    CHECK_EQ(scene.runs.value, 1);
    CHECK_EQ(stats().hits_negative, 2);
    CHECK_EQ(stats().load_negatives, 1);
    test_clock_advance(&scene.clock, 49);
    CHECK_EQ(ask("a", NULL), HF_NOTFOUND);
    CHECK_EQ(scene.runs.value, 1);
    test_clock_advance(&scene.clock, 1);
    CHECK_EQ(ask("a", NULL), HF_NOTFOUND);
    CHECK_EQ(scene.runs.value, 2);
    /* It is absent, and nobody is told when it goes. */
    CHECK_EQ(hf_cache_put_if_absent(scene.cache, "a", 1, &one, 0, NULL), HF_OK);
    CHECK_EQ(hf_cache_get(scene.cache, "a", 1, NULL), HF_OK);
    CHECK_EQ(hf_cache_remove(scene.cache, "a", 1), HF_OK);
    CHECK_EQ(ask("a", NULL), HF_NOTFOUND);
    CHECK_EQ(hf_cache_remove(scene.cache, "a", 1), HF_NOTFOUND);
    CHECK_EQ(ask("a", NULL), HF_NOTFOUND);
    CHECK_EQ(scene.runs.value, 4);
    hf_cache_close(scene.cache);
    CHECK_EQ(scene.told[HF_CACHE_EXPLICIT], 1);
    CHECK_EQ(scene.told[HF_CACHE_CLOSED], 0);

    open_scene((struct hf_cache_opts){0}); /* without: not kept */
    scene.status = HF_NOTFOUND;
    CHECK_EQ(ask("a", NULL), HF_NOTFOUND);
    CHECK_EQ(ask("a", NULL), HF_NOTFOUND);
    CHECK_EQ(scene.runs.value, 2);
    CHECK_EQ(hf_cache_count(scene.cache), 0);
    hf_cache_close(scene.cache);
}

/* ---- Many who ask. ---- */

static void ask_many(void *context, int index)
{
    void *value = NULL;

    (void)context;
    (void)index;
    (void)hf_cache_enter(scene.cache);
    enum hf_status status = ask("a", &value);
    if (status == HF_OK && value != &one)
        status = HF_CORRUPT;
    hf_cache_leave(scene.cache);
    hf_u32_add(&scene.answers[status], 1, __ATOMIC_RELAXED);
}

TEST(one_loader_serves_all_who_wait)
{
    open_scene((struct hf_cache_opts){0});
    scene.wait_for = 49;
    test_threads(50, ask_many, NULL);
    CHECK_EQ(scene.runs.value, 1);
    CHECK_EQ(scene.answers[HF_OK].value, 50);
    CHECK_EQ(stats().load_waits, 49);
    hf_cache_close(scene.cache);
    CHECK_EQ(scene.released.value, 1);
}

TEST(a_failing_loader_fails_all_who_wait)
{
    open_scene((struct hf_cache_opts){0});
    scene.wait_for = 19;
    scene.status = HF_IO;
    test_threads(20, ask_many, NULL);
    CHECK_EQ(scene.runs.value, 1);
    CHECK_EQ(scene.answers[HF_IO].value, 20);
    scene.status = HF_OK;
    CHECK_EQ(ask("a", NULL), HF_OK);
    hf_cache_close(scene.cache);
}

/* One loads and waits until another has asked; what that one is told. */
static void ask_or_wait(void *context, int index)
{
    uint64_t deadline_ns = *(const uint64_t *)context;
    enum hf_status status = HF_OK;

    if (index == 1) {
        while (hf_u32_load(&scene.runs, __ATOMIC_ACQUIRE) == 0)
            continue;
        status = hf_cache_get_or_load(scene.cache, "a", 1, NULL, NULL,
                                      deadline_ns, NULL);
    } else if (index == 2) {
        await_waits(1);
        if (deadline_ns == HF_FOREVER)
            hf_cache_shutdown(scene.cache);
        else
            test_clock_advance(&scene.clock, deadline_ns);
    } else {
        (void)ask("a", NULL);
    }
    if (index == 1) {
        hf_u32_add(&scene.answers[status], 1, __ATOMIC_RELAXED);
        scene.wait_for = 0;
    }
}

static enum hf_status load_until_told(void *context, const void *key,
                                      size_t key_len,
                                      struct hf_cache_loaded *out)
{
    uint64_t until_ns = hf_clock_after_ms(NULL, 60000);

    (void)context;
    (void)key;
    (void)key_len;
    hf_u32_add(&scene.runs, 1, __ATOMIC_RELEASE);
    /* Until the one who waits has left. */
    while (hf_u32_load(&scene.answers[HF_TIMEOUT], __ATOMIC_ACQUIRE) +
                   hf_u32_load(&scene.answers[HF_CLOSED], __ATOMIC_ACQUIRE) ==
               0 &&
           hf_clock_now_ns(hf_clock_system()) < until_ns)
        continue;
    out->value = &one;
    return HF_OK;
}

static void check_leaves_with(uint64_t deadline_ns, enum hf_status expected)
{
    struct hf_cache_opts opts = {.load = load_until_told};

    memset(&scene, 0, sizeof scene);
    scene.clock.now_ns = 1000;
    opts.clock = test_clock(&scene.clock);
    CHECK_EQ(hf_cache_open(&scene.cache, &opts), HF_OK);
    test_threads(3, ask_or_wait, &deadline_ns);
    CHECK_EQ(scene.answers[expected].value, 1);
    /* What was being loaded is kept, unless it was shut. */
    CHECK_EQ(hf_cache_get(scene.cache, "a", 1, NULL),
             expected == HF_CLOSED ? HF_NOTFOUND : HF_OK);
    if (expected == HF_CLOSED)
        CHECK_EQ(ask("b", NULL), HF_CLOSED);
    CHECK_EQ(scene.runs.value, 1);
    hf_cache_close(scene.cache);
}

TEST(each_waits_until_its_own_deadline)
{
    check_leaves_with(5000, HF_TIMEOUT);
    check_leaves_with(HF_NOW + 1, HF_TIMEOUT);
}

TEST(those_who_wait_leave_when_it_is_shut)
{
    check_leaves_with(HF_FOREVER, HF_CLOSED);
}

/* ---- Loaders that use the cache. ---- */

static enum hf_status load_itself(void *context, const void *key,
                                  size_t key_len, struct hf_cache_loaded *out)
{
    enum hf_status status = hf_cache_get_or_load(
        scene.cache, key, key_len, load_itself, context, HF_FOREVER, NULL);

    hf_u32_add(&scene.answers[status], 1, __ATOMIC_RELAXED);
    out->value = &two;
    return hf_cache_get_or_load(scene.cache, "other", 5, NULL, NULL, HF_FOREVER,
                                NULL);
}

TEST(a_loader_that_asks_for_its_own_key_is_refused)
{
    void *value = NULL;

    open_scene((struct hf_cache_opts){0});
    CHECK_EQ(hf_cache_get_or_load(scene.cache, "a", 1, load_itself, NULL,
                                  HF_FOREVER, &value),
             HF_OK);
    CHECK(value == &two);
    CHECK_EQ(scene.answers[HF_INVALID].value, 1);
    CHECK_EQ(hf_cache_count(scene.cache), 2);
    hf_cache_close(scene.cache);
}

static enum hf_status load_crossed(void *context, const void *key,
                                   size_t key_len, struct hf_cache_loaded *out)
{
    const char *other = *(const char *)key == 'x' ? "y" : "x";
    uint64_t until_ns = hf_clock_after_ms(NULL, 60000);

    (void)context;
    (void)key_len;
    hf_u32_add(&scene.runs, 1, __ATOMIC_ACQ_REL);
    while (hf_u32_load(&scene.runs, __ATOMIC_ACQUIRE) < 2 &&
           hf_clock_now_ns(hf_clock_system()) < until_ns)
        continue;
    out->value = &one;
    return hf_cache_get_or_load(scene.cache, other, 1, load_crossed, NULL,
                                HF_FOREVER, NULL);
}

static void ask_crossed(void *context, int index)
{
    enum hf_status status =
        hf_cache_get_or_load(scene.cache, index == 0 ? "x" : "y", 1,
                             load_crossed, context, HF_FOREVER, NULL);

    hf_u32_add(&scene.answers[status], 1, __ATOMIC_RELAXED);
}

TEST(loaders_that_wait_for_each_other_are_refused)
{
    open_scene((struct hf_cache_opts){0});
    test_threads(2, ask_crossed, NULL);
    /* One is refused, and so fails the one that waits for it. */
    CHECK_EQ(scene.answers[HF_INVALID].value, 2);
    CHECK_EQ(scene.runs.value, 2);
    hf_cache_close(scene.cache);
}

/* A loader during which the key is changed: what it loads is old. */
static enum hf_status load_overtaken(void *context, const void *key,
                                     size_t key_len,
                                     struct hf_cache_loaded *out)
{
    int how = *(const int *)context;

    if (how == 0)
        (void)hf_cache_remove(scene.cache, key, key_len);
    else if (how == 1)
        (void)hf_cache_put(scene.cache, key, key_len, &two, 0);
    else
        (void)hf_cache_clear(scene.cache);
    out->value = &one;
    return HF_OK;
}

TEST(what_was_loaded_before_a_change_is_not_kept)
{
    for (int how = 0; how < 3; how++) {
        void *value = NULL;
        void *kept = NULL;
        open_scene((struct hf_cache_opts){0});
        CHECK_EQ(hf_cache_enter(scene.cache), HF_OK);
        CHECK_EQ(hf_cache_get_or_load(scene.cache, "a", 1, load_overtaken, &how,
                                      HF_FOREVER, &value),
                 HF_OK);
        CHECK(value == &one);
        CHECK_EQ(scene.released.value, 0); /* it lasts as long as the guard */
        hf_cache_leave(scene.cache);
        CHECK_EQ(hf_cache_get(scene.cache, "a", 1, &kept),
                 how == 1 ? HF_OK : HF_NOTFOUND);
        CHECK(kept == (how == 1 ? &two : NULL));
        CHECK_EQ(stats().load_discards, 1);
        hf_cache_close(scene.cache);
        CHECK_EQ(scene.released.value, how == 1 ? 2 : 1);
    }
}

/* ---- Refresh ahead. ---- */

TEST(what_is_old_is_loaded_again_while_it_is_served)
{
    void *value = NULL;

    open_scene((struct hf_cache_opts){.ttl_ns = 100, .refresh_ns = 60});
    CHECK_EQ(ask("a", &value), HF_OK);
    test_clock_advance(&scene.clock, 59);
    CHECK_EQ(ask("a", &value), HF_OK);
    CHECK_EQ(scene.runs.value, 1);
    test_clock_advance(&scene.clock, 1);
    scene.value = &two;
    CHECK_EQ(ask("a", &value), HF_OK); /* what is there, and a new load */
    CHECK(value == &one);
    CHECK_EQ(scene.runs.value, 2);
    CHECK_EQ(ask("a", &value), HF_OK);
    CHECK(value == &two);
    CHECK_EQ(scene.told[HF_CACHE_REPLACED], 1);
    test_clock_advance(&scene.clock, 99); /* the new one's time has begun */
    scene.status = HF_IO;
    CHECK_EQ(ask("a", &value), HF_OK);
    CHECK(value == &two);
    CHECK_EQ(scene.runs.value, 3);
    CHECK_EQ(ask("a", &value), HF_OK); /* a failure is not tried at once */
    CHECK_EQ(scene.runs.value, 3);
    CHECK_EQ(stats().refreshes, 2);
    CHECK_EQ(stats().load_failures, 1);
    hf_cache_close(scene.cache);
    CHECK_EQ(scene.released.value, 2);
}

TEST(a_refresh_may_find_that_it_is_gone)
{
    open_scene((struct hf_cache_opts){.refresh_ns = 60});
    CHECK_EQ(ask("a", NULL), HF_OK);
    test_clock_advance(&scene.clock, 60);
    scene.status = HF_NOTFOUND;
    CHECK_EQ(ask("a", NULL), HF_OK);
    CHECK_EQ(hf_cache_get(scene.cache, "a", 1, NULL), HF_NOTFOUND);
    CHECK_EQ(scene.told[HF_CACHE_EXPLICIT], 1);
    hf_cache_close(scene.cache);
}

TEST(a_pool_refreshes)
{
    struct hf_pool *pool;
    void *value = NULL;

    CHECK_EQ(hf_pool_open(&pool, NULL), HF_OK);
    open_scene((struct hf_cache_opts){.refresh_ns = 60, .refresher = pool});
    CHECK_EQ(ask("a", NULL), HF_OK);
    test_clock_advance(&scene.clock, 60);
    CHECK_EQ(ask("a", NULL), HF_OK);
    uint64_t until_ns = hf_clock_after_ms(NULL, 60000);
    while (stats().removals[HF_CACHE_REPLACED] == 0 &&
           hf_clock_now_ns(hf_clock_system()) < until_ns)
        continue;
    CHECK_EQ(hf_u32_load(&scene.runs, __ATOMIC_ACQUIRE), 2);
    test_clock_advance(&scene.clock, 60);
    CHECK_EQ(ask("a", &value), HF_OK); /* close waits for this one */
    hf_cache_close(scene.cache);
    CHECK_EQ(scene.runs.value, 3);
    CHECK_EQ(scene.released.value, 3);

    /* A pool that takes nothing: the caller does it. */
    open_scene((struct hf_cache_opts){.refresh_ns = 60, .refresher = pool});
    hf_pool_shutdown(pool);
    CHECK_EQ(ask("a", NULL), HF_OK);
    test_clock_advance(&scene.clock, 60);
    CHECK_EQ(ask("a", NULL), HF_OK);
    CHECK_EQ(scene.runs.value, 2);
    hf_cache_close(scene.cache);
    hf_pool_close(pool);
}

TEST(no_memory)
{
    open_scene((struct hf_cache_opts){.negative_ttl_ns = 1000});
    for (int kind = 0; kind < 2; kind++) {
        enum hf_status expected = kind == 0 ? HF_OK : HF_NOTFOUND;
        for (char i = 'a'; i < 'z'; i++) {
            char key[2] = {(char)kind + '0', i};
            enum hf_status status = HF_NOMEM;
            for (uint64_t after = 0; status == HF_NOMEM; after++) {
                scene.status = expected;
                hf_memory_fail_after(after);
                status = hf_cache_get_or_load(scene.cache, key, 2, NULL, NULL,
                                              HF_FOREVER, NULL);
                hf_memory_fail_never();
            }
            CHECK_EQ(status, expected);
        }
    }
    CHECK(scene.runs.value > 50);
    hf_cache_close(scene.cache);
    CHECK_EQ(scene.told[HF_CACHE_CLOSED], 25);
}
