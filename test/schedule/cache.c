/* cache.c - the cache, each step in the hands of a seed: answers of get, put
 * and remove in some order, values that last while they are read, and listeners
 * that are told once.
 */
#include "holdfast/cache.h"

#include "base/atomic.h"
#include "base/memory.h"
#include "keep/cache_state.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS_MAX 4
#define VALUES_MAX 64

/* A value that counts what happens to it. */
struct value {
    struct hf_atomic_u32 alive;
    uint32_t told;
    uint32_t released;
};

static struct {
    struct hf_cache *cache;
    struct calls *history;
    struct linear *checker;
    struct value values[VALUES_MAX];
    struct hf_atomic_u32 used; /* values that were made */
    struct hf_atomic_u32 in;   /* of these: that got in */
} scene;

static void on_release(void *context, void *value)
{
    struct value *v = value;

    (void)context;
    v->released++;
    hf_u32_store(&v->alive, 0, __ATOMIC_RELAXED);
}

static void on_removed(void *context, const void *key, size_t key_len,
                       void *value, enum hf_cache_cause cause)
{
    struct value *v = value;

    (void)context;
    (void)key;
    (void)key_len;
    (void)cause;
    if (v->released != 0)
        schedule_wrong("told after the release");
    v->told++;
}

static void open_cache(uint64_t seed, const struct hf_cache_opts *more)
{
    struct hf_cache_opts opts = *more;

    opts.seed[0] = seed;
    opts.seed[1] = 2;
    opts.segments = 1;
    if (hf_cache_open(&scene.cache, &opts) != HF_OK)
        schedule_wrong("no cache");
    memset(scene.values, 0, sizeof scene.values);
    scene.used.value = 0;
    scene.in.value = 0;
}

static void teardown(void *context)
{
    (void)context;
    hf_cache_close(scene.cache);
}

/* ---- One order explains all answers. ---- */

static uint64_t number_of(enum hf_status status, const void *value)
{
    return status == HF_OK || status == HF_EXISTS ? (uint64_t)(uintptr_t)value
                                                  : MODEL_ANY;
}

static void one_call(unsigned fiber, unsigned char key, uint64_t number)
{
    struct calls *history = scene.history;
    struct hf_cache *cache = scene.cache;
    void *value = NULL;
    void *put = (void *)(uintptr_t)number;
    struct call *call;
    uint64_t out = MODEL_ANY;
    enum hf_status status;

    switch (schedule_random(5)) {
    case 0:
        call = calls_begin(history, fiber, MODEL_SET, key, number);
        calls_end(history, call, hf_cache_put(cache, &key, 1, put, 0),
                  MODEL_ANY);
        break;
    case 1:
        call = calls_begin(history, fiber, MODEL_SET_IF_ABSENT, key, number);
        status = hf_cache_put_if_absent(cache, &key, 1, put, 0, &value);
        out = status == HF_OK ? MODEL_ANY : number_of(status, value);
        calls_end(history, call, status, out);
        break;
    case 2:
        call = calls_begin(history, fiber, MODEL_REMOVE, key, 0);
        status = hf_cache_remove(cache, &key, 1);
        calls_end(history, call, status, MODEL_ANY);
        break;
    default:
        call = calls_begin(history, fiber, MODEL_GET, key, 0);
        status = hf_cache_get(cache, &key, 1, &value);
        out = number_of(status, value);
        calls_end(history, call, status, out);
        break;
    }
}

static void setup_linear(void *context, uint64_t seed)
{
    (void)context;
    open_cache(
        seed, &(struct hf_cache_opts){
                  .max_count = 64, .policy = (enum hf_cache_policy)(seed % 3)});
    calls_clear(scene.history);
}

static void body_linear(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < 4; i++)
        one_call(fiber, (unsigned char)schedule_random(2), 1 + fiber * 16 + i);
}

static bool check_linear(void *context, FILE *explain)
{
    (void)context;
    return linear_check(scene.checker, scene.history, explain) == LINEAR_YES;
}

static void run_linear(const char *name, void (*setup)(void *, uint64_t),
                       void (*body)(void *, unsigned))
{
    struct linear_model model = model_map();
    struct schedule_case c = {.name = name,
                              .fibers = 3,
                              .setup = setup,
                              .body = body,
                              .check = check_linear,
                              .teardown = teardown};

    scene.history = calls_new(FIBERS_MAX, 16);
    scene.checker = linear_new(&model, FIBERS_MAX * 16);
    schedule_check(&c);
    linear_free(scene.checker);
    calls_free(scene.history);
}

TEST(answers_have_an_order)
{
    run_linear("linear", setup_linear, body_linear);
}

/* A table that is full grows while others look for keys that are there. */
static void setup_growth(void *context, uint64_t seed)
{
    setup_linear(context, seed);
    for (unsigned char key = 10; key < 18; key++) {
        if (hf_cache_put(scene.cache, &key, 1, &scene, 0) != HF_OK)
            schedule_wrong("put");
    }
}

static void body_growth(void *context, unsigned fiber)
{
    unsigned char there = (unsigned char)(10 + schedule_random(8));
    unsigned char more = 20;

    (void)context;
    if (fiber == 0 && hf_cache_put(scene.cache, &more, 1, &scene, 0) != HF_OK)
        schedule_wrong("put");
    for (int i = 0; i < 3; i++)
        if (hf_cache_get(scene.cache, &there, 1, NULL) != HF_OK)
            schedule_wrong("a key is not found while the table grows");
    one_call(fiber, 0, 1 + fiber);
    if (fiber == 0 && hf_cache_get(scene.cache, &more, 1, NULL) != HF_OK)
        schedule_wrong("a new key is not found");
    one_call(fiber, 0, 17 + fiber);
}

TEST(tables_grow_under_readers)
{
    run_linear("growth", setup_growth, body_growth);
}

/* ---- Values last while they are read; listeners are told once. ---- */

static void setup_small(void *context, uint64_t seed)
{
    (void)context;
    open_cache(seed, &(struct hf_cache_opts){
                         .max_count = 1 + seed / 3 % 2,
                         .policy = (enum hf_cache_policy)(seed % 3),
                         .ttl_ns = seed % 2 ? 300 : 0,
                         .idle_ns = seed % 5 == 0 ? 200 : 0,
                         .release = on_release,
                         .removed = on_removed});
}

static void put_value(unsigned char key)
{
    struct value *value =
        &scene.values[hf_u32_add(&scene.used, 1, __ATOMIC_RELAXED)];

    hf_u32_store(&value->alive, 1, __ATOMIC_RELAXED);
    if (hf_cache_put(scene.cache, &key, 1, value, 0) != HF_OK)
        schedule_wrong("put");
    hf_u32_add(&scene.in, 1, __ATOMIC_RELAXED);
}

static void read_value(unsigned char key)
{
    void *value;

    (void)hf_cache_enter(scene.cache);
    if (hf_cache_get(scene.cache, &key, 1, &value) == HF_OK)
        for (int i = 0; i < 3; i++)
            if (hf_u32_load(&((struct value *)value)->alive,
                            __ATOMIC_RELAXED) == 0)
                schedule_wrong("released while it is read");
    hf_cache_leave(scene.cache);
}

/* A table grows, and what was in the old one is removed and released, while
 * another still looks through that. */
static void setup_old(void *context, uint64_t seed)
{
    (void)context;
    open_cache(seed, &(struct hf_cache_opts){.max_count = 64,
                                             .release = on_release,
                                             .removed = on_removed});
    for (unsigned char key = 1; key < 8; key++)
        put_value(key);
}

/* The entry that goes is born in a later era than the reader may have seen. */
static void body_old(void *context, unsigned fiber)
{
    (void)context;
    if (fiber != 0) {
        for (int i = 0; i < 3; i++)
            read_value(0);
        return;
    }
    unsigned char key = 0;
    hf_epoch_flush(scene.cache->epoch);
    put_value(key);
    put_value(8); /* the table grows */
    (void)hf_cache_remove(scene.cache, &key, 1);
    hf_epoch_flush(scene.cache->epoch);
}

static bool keep_even(void *context, const void *key, size_t key_len,
                      void *value)
{
    (void)context;
    (void)key;
    (void)key_len;
    return ((struct value *)value - scene.values) % 2 == 1;
}

static void body_small(void *context, unsigned fiber)
{
    (void)context;
    (void)fiber;
    for (unsigned i = 0; i < 4; i++) {
        unsigned char key = (unsigned char)schedule_random(3);
        switch (schedule_random(10)) {
        case 0:
            (void)hf_cache_remove(scene.cache, &key, 1);
            break;
        case 1:
            (void)hf_cache_sweep(scene.cache, 1);
            break;
        case 2:
            (void)hf_cache_remove_if(scene.cache, keep_even, NULL, NULL);
            break;
        case 3:
            (void)hf_cache_clear(scene.cache);
            break;
        case 4:
            hf_epoch_flush(scene.cache->epoch);
            break;
        case 5:
        case 6:
            read_value(key);
            break;
        default:
            put_value(key);
            break;
        }
    }
}

/* Closes it, which tells the listener of what is left. */
static bool check_once(void *context, FILE *explain)
{
    struct hf_cache_stats stats;
    uint64_t left = 0;

    (void)context;
    hf_cache_stats(scene.cache, &stats);
    for (int cause = 0; cause < HF_CACHE_CAUSES; cause++)
        left += stats.removals[cause];
    bool sums =
        stats.puts == scene.in.value && stats.puts == left + stats.count;
    hf_cache_close(scene.cache);
    scene.cache = NULL;
    for (uint32_t i = 0; i < scene.used.value; i++) {
        const struct value *value = &scene.values[i];
        fprintf(explain, "%u told %u released %u; ", i, value->told,
                value->released);
        if (value->told != 1 || value->released != 1)
            return false;
    }
    fprintf(explain, "puts %llu left %llu count %llu",
            (unsigned long long)stats.puts, (unsigned long long)left,
            (unsigned long long)stats.count);
    return sums;
}

TEST(put_evict_and_expiry_tell_each_value_once)
{
    struct schedule_case c = {.name = "small",
                              .fibers = 3,
                              .setup = setup_small,
                              .body = body_small,
                              .check = check_once,
                              .teardown = teardown};

    schedule_check(&c);
}

TEST(an_old_table_leads_to_nothing_that_is_gone)
{
    struct schedule_case c = {.name = "old",
                              .fibers = 3,
                              .setup = setup_old,
                              .body = body_old,
                              .check = check_once,
                              .teardown = teardown};

    schedule_check(&c);
}

/* ---- What a stamp promises. ---- */

static struct hf_atomic_u32 truth;   /* what the store has */
static struct hf_atomic_u32 changed; /* an invalidation has returned */

static void setup_stamp(void *context, uint64_t seed)
{
    unsigned char key = 0;

    (void)context;
    open_cache(seed, &(struct hf_cache_opts){.max_count = 8});
    truth.value = 1;
    changed.value = 0;
    if (seed % 2 &&
        hf_cache_put(scene.cache, &key, 1, (void *)(uintptr_t)1, 0) != HF_OK)
        schedule_wrong("put");
}

static void *read_truth(void)
{
    return (void *)(uintptr_t)hf_u32_load(&truth, __ATOMIC_SEQ_CST);
}

/* Keeps a copy of its own, as a thread's first level does. */
static void copy_and_use(unsigned char key)
{
    uint64_t stamp = hf_cache_stamp(scene.cache, &key, 1);
    void *copy = NULL;

    if (hf_cache_get(scene.cache, &key, 1, &copy) != HF_OK) {
        copy = read_truth();
        (void)hf_cache_put_loaded(scene.cache, &key, 1, copy, 0, stamp);
    }
    for (int i = 0; i < 3; i++) {
        bool after = hf_u32_load(&changed, __ATOMIC_SEQ_CST) != 0;
        if (hf_cache_stamp(scene.cache, &key, 1) != stamp)
            return;
        if (after && copy != (void *)(uintptr_t)2)
            schedule_wrong("the old value after the invalidation");
    }
}

static void body_stamp(void *context, unsigned fiber)
{
    unsigned char key = 0;
    void *value = NULL;

    (void)context;
    if (fiber != 0) {
        copy_and_use(key);
        bool after = hf_u32_load(&changed, __ATOMIC_SEQ_CST) != 0;
        if (hf_cache_get(scene.cache, &key, 1, &value) == HF_OK && after &&
            value != (void *)(uintptr_t)2)
            schedule_wrong("the cache kept the old value");
        return;
    }
    hf_u32_store(&truth, 2, __ATOMIC_SEQ_CST);
    if (schedule_random(2) == 0)
        (void)hf_cache_remove(scene.cache, &key, 1);
    else if (hf_cache_clear(scene.cache) != HF_OK)
        schedule_wrong("clear");
    hf_u32_store(&changed, 1, __ATOMIC_SEQ_CST);
}

TEST(no_copy_outlives_its_stamp)
{
    struct schedule_case c = {.name = "stamp",
                              .fibers = 3,
                              .setup = setup_stamp,
                              .body = body_stamp,
                              .teardown = teardown};

    schedule_check(&c);
}

/* A change by version: of those who read one version one succeeds. */
static void body_version(void *context, unsigned fiber)
{
    unsigned char key = 0;
    enum hf_status status;

    (void)context;
    (void)fiber;
    for (;;) {
        struct hf_cache_found found;
        if (hf_cache_look(scene.cache, &key, 1, &found) != HF_OK)
            schedule_wrong("look");
        status = hf_cache_put_if(scene.cache, &key, 1, (char *)found.value + 1,
                                 0, found.version);
        if (status == HF_OK)
            return;
        if (status != HF_EXISTS)
            schedule_wrong("put_if");
    }
}

static void setup_version(void *context, uint64_t seed)
{
    unsigned char key = 0;

    (void)context;
    open_cache(seed, &(struct hf_cache_opts){.max_count = 8});
    if (hf_cache_put(scene.cache, &key, 1, (void *)(uintptr_t)1, 0) != HF_OK)
        schedule_wrong("put");
}

static bool check_version(void *context, FILE *explain)
{
    unsigned char key = 0;
    void *value = NULL;

    (void)context;
    (void)hf_cache_get(scene.cache, &key, 1, &value);
    fprintf(explain, "counted to %llu", (unsigned long long)(uintptr_t)value);
    return value == (void *)(uintptr_t)4;
}

TEST(versions_make_changes_one_after_the_other)
{
    struct schedule_case c = {.name = "version",
                              .fibers = 3,
                              .setup = setup_version,
                              .body = body_version,
                              .check = check_version,
                              .teardown = teardown};

    schedule_check(&c);
}
