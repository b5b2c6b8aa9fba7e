/* cache_load.c - loaders of the cache, each step in the hands of a seed: once
 * for all who ask, nothing old after an invalidation, deadlines, the end.
 */
#include "base/atomic.h"
#include "base/memory.h"
#include "base/thread.h"
#include "holdfast/cache.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS_MAX 4
#define VALUES_MAX 64

struct value {
    struct hf_atomic_u32 alive;
    uint32_t number; /* what the store had when it was read */
    uint32_t released;
};

static struct {
    struct hf_cache *cache;
    struct value values[VALUES_MAX];
    struct hf_atomic_u32 used;
    struct hf_atomic_u32 runs;    /* so far */
    struct hf_atomic_u32 truth;   /* what the store has */
    struct hf_atomic_u32 changed; /* an invalidation has returned */
    bool fails;
    enum hf_status status[FIBERS_MAX];
    void *value[FIBERS_MAX];
} scene;

static void on_release(void *context, void *value)
{
    struct value *v = value;

    (void)context;
    v->released++;
    hf_u32_store(&v->alive, 0, __ATOMIC_RELAXED);
}

static enum hf_status load(void *context, const void *key, size_t key_len,
                           struct hf_cache_loaded *out)
{
    struct value *value =
        &scene.values[hf_u32_add(&scene.used, 1, __ATOMIC_RELAXED)];

    (void)context;
    (void)key;
    (void)key_len;
    hf_u32_add(&scene.runs, 1, __ATOMIC_SEQ_CST);
    value->number = hf_u32_load(&scene.truth, __ATOMIC_SEQ_CST);
    for (uint64_t i = schedule_random(6); i > 0; i--)
        (void)hf_u32_load(&scene.runs, __ATOMIC_RELAXED); /* takes time */
    hf_u32_store(&value->alive, 1, __ATOMIC_RELAXED);
    if (scene.fails) {
        value->released = 1; /* never the cache's */
        return HF_IO;
    }
    out->value = value;
    return HF_OK;
}

static void open_with(uint64_t seed, struct hf_cache_opts opts)
{
    memset(&scene, 0, sizeof scene);
    opts.seed[0] = seed;
    opts.seed[1] = 3;
    opts.segments = 1;
    opts.max_count = 4;
    opts.load = load;
    opts.release = on_release;
    if (hf_cache_open(&scene.cache, &opts) != HF_OK)
        schedule_wrong("no cache");
    scene.truth.value = 1;
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    open_with(seed, (struct hf_cache_opts){0});
}

static void teardown(void *context)
{
    (void)context;
    hf_cache_close(scene.cache);
}

/* What was loaded was released once, when all are gone. */
static bool all_released(FILE *explain)
{
    hf_cache_close(scene.cache);
    scene.cache = NULL;
    for (uint32_t i = 0; i < scene.used.value; i++) {
        fprintf(explain, "; value %u released %u", i, scene.values[i].released);
        if (scene.values[i].released != 1)
            return false;
    }
    return true;
}

static unsigned count_of(enum hf_status status)
{
    unsigned count = 0;

    for (unsigned i = 0; i < FIBERS_MAX; i++)
        count += scene.status[i] == status;
    return count;
}

/* Asks, and reads what it got while the guard lasts. */
static enum hf_status ask(unsigned char key, uint64_t deadline_ns, void **out)
{
    void *value = NULL;

    (void)hf_cache_enter(scene.cache);
    enum hf_status status = hf_cache_get_or_load(scene.cache, &key, 1, NULL,
                                                 NULL, deadline_ns, &value);
    if (status == HF_OK &&
        hf_u32_load(&((struct value *)value)->alive, __ATOMIC_RELAXED) == 0)
        schedule_wrong("released while it is read");
    hf_cache_leave(scene.cache);
    if (out != NULL)
        *out = value;
    return status;
}

static void ask_once(void *context, unsigned fiber)
{
    (void)context;
    scene.status[fiber] = ask(0, HF_FOREVER, &scene.value[fiber]);
}

static bool check_once(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%u runs", scene.runs.value);
    for (unsigned i = 0; i < FIBERS_MAX; i++)
        if (scene.status[i] != HF_OK || scene.value[i] != scene.value[0])
            return false;
    return scene.runs.value == 1 && all_released(explain);
}

TEST(one_load_for_all)
{
    struct schedule_case c = {.name = "once",
                              .fibers = FIBERS_MAX,
                              .setup = setup,
                              .body = ask_once,
                              .check = check_once,
                              .teardown = teardown};

    schedule_check(&c);
}

static void setup_failing(void *context, uint64_t seed)
{
    setup(context, seed);
    scene.fails = true;
}

static bool check_failed(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%u runs, %u failed", scene.runs.value, count_of(HF_IO));
    return count_of(HF_IO) == FIBERS_MAX && scene.runs.value >= 1 &&
           hf_cache_count(scene.cache) == 0 && all_released(explain);
}

TEST(a_failure_goes_to_all_who_wait)
{
    struct schedule_case c = {.name = "failure",
                              .fibers = FIBERS_MAX,
                              .setup = setup_failing,
                              .body = ask_once,
                              .check = check_failed,
                              .teardown = teardown};

    schedule_check(&c);
}

/* ---- After an invalidation nobody gets what was there before. ---- */

static void body_invalidate(void *context, unsigned fiber)
{
    unsigned char key = 0;
    void *value = NULL;

    (void)context;
    if (fiber == 0) {
        hf_u32_store(&scene.truth, 2, __ATOMIC_SEQ_CST);
        if (schedule_random(2) == 0)
            (void)hf_cache_remove(scene.cache, &key, 1);
        else
            (void)hf_cache_clear(scene.cache);
        hf_u32_store(&scene.changed, 1, __ATOMIC_SEQ_CST);
        return;
    }
    for (unsigned i = 0; i < 3; i++) {
        bool after = hf_u32_load(&scene.changed, __ATOMIC_SEQ_CST) != 0;
        if (ask(key, HF_FOREVER, &value) != HF_OK)
            schedule_wrong("not loaded");
        if (after && ((struct value *)value)->number != 2)
            schedule_wrong("the old value after the invalidation");
    }
}

static bool check_invalidate(void *context, FILE *explain)
{
    (void)context;
    return all_released(explain);
}

TEST(a_load_that_began_before_an_invalidation_is_not_kept)
{
    struct schedule_case c = {.name = "invalidate",
                              .fibers = 3,
                              .setup = setup,
                              .body = body_invalidate,
                              .check = check_invalidate,
                              .teardown = teardown};

    schedule_check(&c);
}

/* ---- Loads, evictions, expiry and refreshes, all at once. ---- */

static void setup_all(void *context, uint64_t seed)
{
    (void)context;
    open_with(seed,
              (struct hf_cache_opts){.policy = (enum hf_cache_policy)(seed % 3),
                                     .ttl_ns = seed % 2 ? 400 : 0,
                                     .refresh_ns = seed % 3 ? 100 : 0,
                                     .negative_ttl_ns = 100});
}

static void body_all(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < 4; i++) {
        unsigned char key = (unsigned char)schedule_random(6);
        if (fiber == 0 && schedule_random(3) == 0)
            (void)hf_cache_remove(scene.cache, &key, 1);
        else if (ask(key, HF_FOREVER, NULL) != HF_OK)
            schedule_wrong("not loaded");
    }
}

TEST(values_are_released_once_whatever_happens)
{
    struct schedule_case c = {.name = "all",
                              .fibers = 3,
                              .setup = setup_all,
                              .body = body_all,
                              .check = check_invalidate,
                              .teardown = teardown};

    schedule_check(&c);
}

/* ---- Deadlines and the end. ---- */

static void body_deadline(void *context, unsigned fiber)
{
    uint64_t deadline_ns = schedule_now_ns() + schedule_random(400);

    (void)context;
    scene.status[fiber] = ask(0, deadline_ns, &scene.value[fiber]);
    if (scene.status[fiber] == HF_TIMEOUT && schedule_now_ns() < deadline_ns)
        schedule_wrong("left before its deadline");
}

static bool check_deadline(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%u runs, %u got it, %u too late", scene.runs.value,
            count_of(HF_OK), count_of(HF_TIMEOUT));
    return scene.runs.value == 1 && count_of(HF_OK) >= 1 &&
           count_of(HF_OK) + count_of(HF_TIMEOUT) == FIBERS_MAX &&
           all_released(explain);
}

TEST(each_waits_until_its_own_deadline)
{
    struct schedule_case c = {.name = "deadline",
                              .fibers = FIBERS_MAX,
                              .setup = setup,
                              .body = body_deadline,
                              .check = check_deadline,
                              .teardown = teardown};

    schedule_check(&c);
}

static void body_shut(void *context, unsigned fiber)
{
    if (fiber == 0)
        hf_cache_shutdown(scene.cache);
    else
        ask_once(context, fiber);
}

static bool check_shut(void *context, FILE *explain)
{
    (void)context;
    scene.status[0] = HF_CLOSED;
    fprintf(explain, "%u runs, %u got it, %u closed", scene.runs.value,
            count_of(HF_OK), count_of(HF_CLOSED));
    return count_of(HF_OK) + count_of(HF_CLOSED) == FIBERS_MAX &&
           (scene.runs.value == 0 || count_of(HF_OK) > 0) &&
           all_released(explain);
}

TEST(who_waits_leaves_when_it_is_shut)
{
    struct schedule_case c = {.name = "shut",
                              .fibers = FIBERS_MAX,
                              .setup = setup,
                              .body = body_shut,
                              .check = check_shut,
                              .teardown = teardown};

    schedule_check(&c);
}

/* A loader that does not end before one who waits for it has left. */
static enum hf_status load_long(void *context, const void *key, size_t key_len,
                                struct hf_cache_loaded *out)
{
    enum hf_status status = load(context, key, key_len, out);

    while (hf_u32_load(&scene.changed, __ATOMIC_ACQUIRE) == 0)
        hf_thread_pause();
    return status;
}

static void body_shut_long(void *context, unsigned fiber)
{
    unsigned char key = 0;

    if (fiber == 1) {
        scene.status[1] = hf_cache_get_or_load(scene.cache, &key, 1, load_long,
                                               context, HF_FOREVER, NULL);
        return;
    }
    while (hf_u32_load(&scene.runs, __ATOMIC_ACQUIRE) == 0)
        hf_thread_pause();
    if (fiber == 0) {
        hf_cache_shutdown(scene.cache);
        return;
    }
    scene.status[2] = ask(0, HF_FOREVER, NULL);
    hf_u32_store(&scene.changed, 1, __ATOMIC_RELEASE);
}

static bool check_shut_long(void *context, FILE *explain)
{
    (void)context;
    return scene.status[1] == HF_OK && scene.status[2] == HF_CLOSED &&
           all_released(explain);
}

TEST(who_waits_does_not_wait_for_the_loader_when_it_is_shut)
{
    struct schedule_case c = {.name = "shut-long",
                              .fibers = 3,
                              .setup = setup,
                              .body = body_shut_long,
                              .check = check_shut_long,
                              .teardown = teardown};

    schedule_check(&c);
}

/* Two loaders that need each other's key: one of them is refused. */
static enum hf_status load_crossed(void *context, const void *key,
                                   size_t key_len, struct hf_cache_loaded *out)
{
    unsigned char other = (unsigned char)(1 - *(const unsigned char *)key);
    enum hf_status status = hf_cache_get_or_load(
        scene.cache, &other, key_len, load_crossed, context, HF_FOREVER, NULL);

    if (status == HF_INVALID)
        hf_u32_add(&scene.runs, 1, __ATOMIC_RELAXED);
    return load(context, key, key_len, out);
}

static void body_crossed(void *context, unsigned fiber)
{
    unsigned char key = (unsigned char)(fiber % 2);

    scene.status[fiber] = hf_cache_get_or_load(
        scene.cache, &key, 1, load_crossed, context, HF_FOREVER, NULL);
}

static bool check_crossed(void *context, FILE *explain)
{
    (void)context;
    for (unsigned i = 0; i < 3; i++)
        if (scene.status[i] != HF_OK && scene.status[i] != HF_INVALID)
            return false;
    return all_released(explain);
}

TEST(loaders_that_wait_for_each_other_do_not_wait_for_ever)
{
    struct schedule_case c = {.name = "crossed",
                              .fibers = 3,
                              .setup = setup,
                              .body = body_crossed,
                              .check = check_crossed,
                              .teardown = teardown};

    schedule_check(&c);
}
