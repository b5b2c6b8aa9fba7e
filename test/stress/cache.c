/* cache.c - the cache on real threads: answers in some order, one load for all
 * who wait, nothing old after an invalidation, each value told and released
 * once, and readers that a stopped thread does not stop.
 *
 * tests: also under sanitizers
 */
#include "holdfast/cache.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32
#define KEYS    256u

struct value {
    uint64_t key;
    uint64_t number;
    struct hf_atomic_u32 told;
    uint32_t alive; /* ALIVE until it is released */
};
#define ALIVE 0x51u

static struct {
    struct hf_cache *cache;
    struct hf_atomic_u64 made;
    struct hf_atomic_u64 released;
    struct hf_atomic_u64 told;
    struct hf_atomic_u64 wrong;
    struct hf_atomic_u64 truth; /* what the store has */
    struct hf_atomic_u64 runs;
    struct hf_atomic_u64 done;
    struct hf_atomic_u32 stop;
    struct calls *history;
} scene;

static bool sanitized(void)
{
    const char *san = getenv("HOLDFAST_SAN");
    return san != NULL && *san != '\0';
}

static void wrong(void)
{
    hf_u64_add(&scene.wrong, 1, __ATOMIC_RELAXED);
}

static struct value *make(uint64_t key, uint64_t number)
{
    struct value *value = malloc(sizeof *value);

    if (value == NULL)
        abort();
    *value = (struct value){.key = key, .number = number, .alive = ALIVE};
    hf_u64_add(&scene.made, 1, __ATOMIC_RELAXED);
    return value;
}

static void on_release(void *context, void *data)
{
    struct value *value = data;

    (void)context;
    if (value->alive != ALIVE)
        wrong();
    value->alive = 0;
    hf_u64_add(&scene.released, 1, __ATOMIC_RELAXED);
    free(value);
}

static void on_removed(void *context, const void *key, size_t key_len,
                       void *data, enum hf_cache_cause cause)
{
    struct value *value = data;

    (void)context;
    (void)cause;
    if (key_len != sizeof value->key ||
        memcmp(key, &value->key, key_len) != 0 ||
        hf_u32_add(&value->told, 1, __ATOMIC_RELAXED) != 0)
        wrong();
    hf_u64_add(&scene.told, 1, __ATOMIC_RELAXED);
}

static enum hf_status load(void *context, const void *key, size_t key_len,
                           struct hf_cache_loaded *out)
{
    uint64_t number = 0;

    (void)context;
    memcpy(&number, key, key_len);
    hf_u64_add(&scene.runs, 1, __ATOMIC_RELAXED);
    out->value = make(number, hf_u64_load(&scene.truth, __ATOMIC_SEQ_CST));
    return HF_OK;
}

static void open_with(struct hf_cache_opts opts)
{
    memset(&scene, 0, sizeof scene);
    opts.release = on_release;
    opts.removed = on_removed;
    opts.load = load;
    CHECK_EQ(hf_cache_open(&scene.cache, &opts), HF_OK);
}

static void close_and_count(void)
{
    struct hf_cache_stats stats;

    hf_cache_stats(scene.cache, &stats);
    hf_cache_close(scene.cache);
    CHECK_EQ(scene.wrong.value, 0);
    CHECK_EQ(scene.released.value, scene.made.value);
    CHECK_EQ(scene.told.value, stats.puts);
}

/* ---- Everything at once. ---- */

static void use(void *context, int index)
{
    int operations = *(const int *)context;
    struct hf_random random;
    uint64_t key;
    void *data;

    hf_random_init(&random, (uint64_t)index + 1);
    for (int i = 0; i < operations; i++) {
        key = hf_random_below(&random, KEYS);
        (void)hf_cache_enter(scene.cache);
        data = NULL;
        switch (hf_random_below(&random, 16)) {
        case 0:
            data = make(key, 0);
            if (hf_cache_put(scene.cache, &key, sizeof key, data, 0) != HF_OK)
                wrong();
            data = NULL;
            break;
        case 1:
            (void)hf_cache_remove(scene.cache, &key, sizeof key);
            break;
        case 2:
            (void)hf_cache_sweep(scene.cache, 4);
            break;
        case 3:
        case 4:
        case 5:
            if (hf_cache_get_or_load(scene.cache, &key, sizeof key, NULL, NULL,
                                     HF_FOREVER, &data) != HF_OK)
                wrong();
            break;
        default:
            (void)hf_cache_get(scene.cache, &key, sizeof key, &data);
            break;
        }
        if (data != NULL && (((struct value *)data)->key != key ||
                             ((struct value *)data)->alive != ALIVE))
            wrong();
        hf_cache_leave(scene.cache);
        if (hf_random_below(&random, 4096) == 0)
            (void)hf_cache_clear(scene.cache);
    }
}

TEST(values_last_and_are_told_and_released_once)
{
    int operations = sanitized() ? 1000 : 20000;

    for (int policy = HF_CACHE_TINYLFU; policy <= HF_CACHE_S3FIFO; policy++) {
        open_with((struct hf_cache_opts){.max_count = 100,
                                         .policy = (enum hf_cache_policy)policy,
                                         .segments = policy == 0 ? 1 : 4,
                                         .ttl_ns = 2000000,
                                         .idle_ns = 1000000,
                                         .refresh_ns = 500000});
        test_threads(THREADS, use, &operations);
        CHECK(hf_cache_count(scene.cache) <= 100);
        close_and_count();
    }
}

/* ---- One order explains all answers. ---- */

static void record(void *context, int index)
{
    struct hf_random random;
    unsigned thread = (unsigned)index;

    hf_random_init(&random, *(const uint64_t *)context * 8 + thread);
    for (uint64_t i = 0; i < 16; i++) {
        uint64_t key = hf_random_below(&random, 3);
        uint64_t number = 1 + thread * 100 + i;
        void *data = NULL;
        struct call *call;
        enum hf_status status;
        switch (hf_random_below(&random, 4)) {
        case 0:
            call = calls_begin(scene.history, thread, MODEL_SET, key, number);
            status = hf_cache_put(scene.cache, &key, sizeof key,
                                  (void *)(uintptr_t)number, 0);
            calls_end(scene.history, call, status, MODEL_ANY);
            break;
        case 1:
            call = calls_begin(scene.history, thread, MODEL_REMOVE, key, 0);
            status = hf_cache_remove(scene.cache, &key, sizeof key);
            calls_end(scene.history, call, status, MODEL_ANY);
            break;
        default:
            call = calls_begin(scene.history, thread, MODEL_GET, key, 0);
            status = hf_cache_get(scene.cache, &key, sizeof key, &data);
            calls_end(scene.history, call, status,
                      status == HF_OK ? (uint64_t)(uintptr_t)data : MODEL_ANY);
            break;
        }
    }
}

TEST(answers_have_an_order)
{
    struct linear_model model = model_map();
    struct linear *checker = linear_new(&model, 8 * 16);
    uint64_t rounds = sanitized() ? 20 : 300;

    memset(&scene, 0, sizeof scene);
    scene.history = calls_new(8, 16);
    for (uint64_t round = 0; round < rounds; round++) {
        struct hf_cache_opts opts = {.max_count = 64};
        CHECK_EQ(hf_cache_open(&scene.cache, &opts), HF_OK);
        calls_clear(scene.history);
        test_threads(8, record, &round);
        CHECK_EQ(linear_check(checker, scene.history, stdout), LINEAR_YES);
        hf_cache_close(scene.cache);
    }
    calls_free(scene.history);
    linear_free(checker);
}

/* ---- A hundred threads, one load. ---- */

#define CROWD 100

static void *ask_one(void *context)
{
    uint64_t key = *(const uint64_t *)context;
    void *data = NULL;

    (void)hf_cache_enter(scene.cache);
    if (hf_cache_get_or_load(scene.cache, &key, sizeof key, NULL, NULL,
                             HF_FOREVER, &data) != HF_OK ||
        ((struct value *)data)->key != key ||
        ((struct value *)data)->alive != ALIVE)
        wrong();
    hf_cache_leave(scene.cache);
    return NULL;
}

/* Loads when all the others wait. */
static enum hf_status load_late(void *context, const void *key, size_t key_len,
                                struct hf_cache_loaded *out)
{
    uint64_t until_ns = hf_clock_after_ms(NULL, 60000);
    struct hf_cache_stats stats;

    do
        hf_cache_stats(scene.cache, &stats);
    while (stats.load_waits < CROWD - 1 &&
           hf_clock_now_ns(hf_clock_system()) < until_ns);
    return load(context, key, key_len, out);
}

TEST(a_hundred_wait_for_one_load)
{
    struct hf_cache_opts opts = {
        .load = load_late, .release = on_release, .removed = on_removed};
    pthread_t threads[CROWD];
    uint64_t key = 7;

    memset(&scene, 0, sizeof scene);
    CHECK_EQ(hf_cache_open(&scene.cache, &opts), HF_OK);
    for (int i = 0; i < CROWD; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, ask_one, &key), 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(scene.runs.value, 1);
    close_and_count();
}

/* ---- Nothing old after an invalidation. ---- */

static void change_or_ask(void *context, int index)
{
    int rounds = *(const int *)context;
    uint64_t key = 1;

    if (index == 0) { /* the only one that changes the store */
        for (int i = 1; i <= rounds; i++) {
            hf_u64_store(&scene.truth, (uint64_t)i * 2 - 1, __ATOMIC_SEQ_CST);
            (void)hf_cache_remove(scene.cache, &key, sizeof key);
            hf_u64_store(&scene.done, (uint64_t)i * 2 - 1, __ATOMIC_SEQ_CST);
        }
        hf_u32_store(&scene.stop, 1, __ATOMIC_RELEASE);
        return;
    }
    while (hf_u32_load(&scene.stop, __ATOMIC_ACQUIRE) == 0) {
        uint64_t least = hf_u64_load(&scene.done, __ATOMIC_SEQ_CST);
        void *data = NULL;
        (void)hf_cache_enter(scene.cache);
        if (hf_cache_get_or_load(scene.cache, &key, sizeof key, NULL, NULL,
                                 HF_FOREVER, &data) != HF_OK ||
            ((struct value *)data)->number < least)
            wrong();
        hf_cache_leave(scene.cache);
    }
}

TEST(nobody_gets_what_was_there_before_an_invalidation)
{
    int rounds = sanitized() ? 300 : 20000;

    open_with((struct hf_cache_opts){.max_count = 10});
    test_threads(8, change_or_ask, &rounds);
    close_and_count();
}

/* ---- A stopped thread stops no reader. ---- */

static void *read_on(void *context)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, 9);
    while (hf_u32_load(&scene.stop, __ATOMIC_RELAXED) == 0) {
        uint64_t key = hf_random_below(&random, KEYS);
        struct value *value = NULL;
        if (hf_random_below(&random, 4) == 0)
            (void)hf_cache_put(scene.cache, &key, sizeof key, &scene, 0);
        else
            (void)hf_cache_get(scene.cache, &key, sizeof key, (void **)&value);
        hf_u64_add(&scene.done, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

TEST(a_stopped_writer_stops_no_reader)
{
    struct hf_cache_opts opts = {.max_count = 1000};
    int stops = sanitized() ? 20 : 200;
    pthread_t thread;

    memset(&scene, 0, sizeof scene);
    stall_init();
    CHECK_EQ(hf_cache_open(&scene.cache, &opts), HF_OK);
    CHECK_EQ(hf_cache_get(scene.cache, "", 0, NULL), HF_NOTFOUND);
    CHECK_EQ(pthread_create(&thread, NULL, read_on, NULL), 0);
    for (int i = 0; i < stops; i++) {
        uint64_t before = hf_u64_load(&scene.done, __ATOMIC_RELAXED);
        while (hf_u64_load(&scene.done, __ATOMIC_RELAXED) < before + 50)
            continue;
        struct stall *stall = stall_stop(thread);
        for (uint64_t key = 0; key < 500; key++)
            (void)hf_cache_get(scene.cache, &key, sizeof key, NULL);
        (void)hf_cache_stamp(scene.cache, "", 0);
        (void)hf_cache_count(scene.cache);
        stall_resume(stall);
    }
    hf_u32_store(&scene.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    hf_cache_close(scene.cache);
}
