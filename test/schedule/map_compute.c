/* map_compute.c - functions of the map, each step in the hands of a seed: who
 * makes a value, who waits for it, and visits while keys move.
 */
#include "holdfast/map.h"

#include "base/atomic.h"
#include "base/memory.h"
#include "base/thread.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS_MAX 4
#define KEYS_MAX   16

static struct {
    struct hf_map *map;
    struct hf_atomic_u32 running[KEYS_MAX]; /* functions now */
    struct hf_atomic_u32 runs;              /* so far */
    struct hf_atomic_u32 failures;          /* how many of them shall fail */
    struct hf_atomic_u32 refused;           /* circles that were found */
    struct hf_atomic_u32 living; /* values, where the map owns them */
    bool owns;
    enum hf_status status[FIBERS_MAX][4];
    void *value[FIBERS_MAX][4];
    struct calls *history;
    struct linear *checker;
} scene;

static void value_free(void *context, void *value)
{
    (void)context;
    *(uint64_t *)value = UINT64_MAX;
    hf_u32_sub(&scene.living, 1, __ATOMIC_RELAXED);
    hf_free(value);
}

static void open_map(uint64_t seed, bool owns)
{
    struct hf_map_opts opts = {.capacity = 1,
                               .seed = {seed, 2},
                               .free_value = owns ? value_free : NULL};

    if (hf_map_open(&scene.map, &opts) != HF_OK)
        schedule_wrong("no map");
    memset(scene.running, 0, sizeof scene.running);
    memset(scene.status, 0, sizeof scene.status);
    scene.runs.value = 0;
    scene.failures.value = 0;
    scene.refused.value = 0;
    scene.living.value = 0;
    scene.owns = owns;
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    open_map(seed, false);
}

static void teardown(void *context)
{
    (void)context;
    hf_map_close(scene.map);
}

static void check_alone(unsigned char key)
{
    if (hf_u32_add(&scene.running[key], 1, __ATOMIC_RELAXED) != 0)
        schedule_wrong("two functions make one key");
    for (uint64_t i = schedule_random(8); i > 0; i--)
        (void)hf_u32_load(&scene.runs, __ATOMIC_RELAXED); /* takes time */
    hf_u32_sub(&scene.running[key], 1, __ATOMIC_RELAXED);
}

/* Makes the number of its run; the first `failures` runs fail. */
static enum hf_status make(void *context, const void *key, size_t len,
                           void **value)
{
    (void)context;
    (void)len;
    check_alone(*(const unsigned char *)key);
    uint32_t run = hf_u32_add(&scene.runs, 1, __ATOMIC_RELAXED) + 1;
    *value = (void *)(uintptr_t)run;
    return run <= scene.failures.value ? HF_IO : HF_OK;
}

static void ask(unsigned fiber, unsigned index, unsigned char key,
                uint64_t deadline_ns)
{
    scene.status[fiber][index] =
        hf_map_compute_if_absent(scene.map, &key, 1, make, NULL, deadline_ns,
                                 &scene.value[fiber][index]);
}

static unsigned count_of(enum hf_status status, unsigned fibers)
{
    unsigned count = 0;

    for (unsigned i = 0; i < fibers; i++)
        count += scene.status[i][0] == status;
    return count;
}

/* ---- One key, asked for by all. ---- */

static void ask_once(void *context, unsigned fiber)
{
    (void)context;
    ask(fiber, 0, 0, HF_FOREVER);
}

static bool ran_once(void *context, FILE *explain)
{
    unsigned failures = scene.failures.value;
    unsigned made = count_of(HF_OK, 3);
    unsigned good = failures >= 3 ? 0 : 1;
    struct hf_map_stats stats;

    (void)context;
    hf_map_stats(scene.map, &stats);
    fprintf(explain, "%u runs, %u made, %u found, %u failed", scene.runs.value,
            made, count_of(HF_EXISTS, 3), count_of(HF_IO, 3));
    for (unsigned i = 0; i < 3; i++) {
        if (scene.status[i][0] != HF_IO &&
            scene.value[i][0] != (void *)(uintptr_t)(failures + 1))
            return false;
    }
    return scene.runs.value == failures + good && made == good &&
           count_of(HF_IO, 3) == failures &&
           count_of(HF_EXISTS, 3) == 3 - failures - good &&
           stats.made == scene.runs.value && stats.made_failed == failures &&
           hf_map_size(scene.map) == good;
}

static void setup_failing(void *context, uint64_t seed)
{
    setup(context, seed);
    scene.failures.value = (uint32_t)(seed % 4);
}

TEST(the_function_runs_once_however_many_ask)
{
    struct schedule_case c = {.name = "once",
                              .fibers = 3,
                              .setup = setup,
                              .teardown = teardown,
                              .body = ask_once,
                              .check = ran_once};
    schedule_check(&c);
}

TEST(a_function_that_fails_fails_its_caller_and_another_tries)
{
    struct schedule_case c = {.name = "fails",
                              .fibers = 3,
                              .setup = setup_failing,
                              .teardown = teardown,
                              .body = ask_once,
                              .check = ran_once};
    schedule_check(&c);
}

/* ---- Deadlines and shutting. ---- */

static void ask_briefly(void *context, unsigned fiber)
{
    uint64_t deadline_ns =
        fiber == 0 ? HF_FOREVER : schedule_now_ns() + schedule_random(600);

    (void)context;
    ask(fiber, 0, 0, deadline_ns);
    if (scene.status[fiber][0] == HF_TIMEOUT && schedule_now_ns() < deadline_ns)
        schedule_wrong("too early");
}

static bool ran_or_timed_out(void *context, FILE *explain)
{
    unsigned timeouts = count_of(HF_TIMEOUT, 3);

    (void)context;
    fprintf(explain, "%u runs, %u timeouts", scene.runs.value, timeouts);
    return scene.runs.value == 1 && count_of(HF_OK, 3) == 1 &&
           count_of(HF_EXISTS, 3) == 2 - timeouts;
}

TEST(who_waits_leaves_at_its_deadline)
{
    struct schedule_case c = {.name = "deadline",
                              .fibers = 3,
                              .setup = setup,
                              .teardown = teardown,
                              .body = ask_briefly,
                              .check = ran_or_timed_out};
    schedule_check(&c);
}

/* Makes nothing before the map is shut. */
static enum hf_status make_late(void *context, const void *key, size_t len,
                                void **value)
{
    (void)context;
    (void)key;
    (void)len;
    /* Acquire: after the shutting. */
    while (hf_u32_load(&scene.refused, __ATOMIC_ACQUIRE) == 0)
        hf_thread_pause();
    hf_u32_add(&scene.runs, 1, __ATOMIC_RELAXED);
    *value = &scene;
    return HF_OK;
}

static void ask_or_shut(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 2) {
        hf_map_shutdown(scene.map);
        hf_u32_store(&scene.refused, 1, __ATOMIC_RELEASE);
        return;
    }
    scene.status[fiber][0] = hf_map_compute_if_absent(
        scene.map, "k", 1, make_late, NULL, HF_FOREVER, &scene.value[fiber][0]);
}

static bool shut_well(void *context, FILE *explain)
{
    unsigned made = count_of(HF_OK, 2);

    (void)context;
    fprintf(explain, "%u runs, %u closed", scene.runs.value,
            count_of(HF_CLOSED, 2));
    return made <= 1 && made == scene.runs.value &&
           made + count_of(HF_CLOSED, 2) + count_of(HF_EXISTS, 2) == 2;
}

TEST(who_waits_leaves_when_the_map_is_shut)
{
    struct schedule_case c = {.name = "shut",
                              .fibers = 3,
                              .setup = setup,
                              .teardown = teardown,
                              .body = ask_or_shut,
                              .check = shut_well};
    schedule_check(&c);
}

/* ---- Functions that ask for other keys. ---- */

/* For key n asks for key n + 1, up to `context`'s number and from there, in a
 * circle, for key 0; or for none. */
struct chain {
    unsigned keys;
    bool circle;
};

static enum hf_status make_chain(void *context, const void *key, size_t len,
                                 void **value)
{
    const struct chain *chain = context;
    unsigned char next = (unsigned char)(*(const unsigned char *)key + 1);
    enum hf_status status = HF_EXISTS;

    (void)len;
    check_alone((unsigned char)(next - 1));
    if (next == chain->keys && chain->circle)
        next = 0;
    if (next < chain->keys)
        status = hf_map_compute_if_absent(scene.map, &next, 1, make_chain,
                                          context, HF_FOREVER, NULL);
    *value = &scene;
    if (status == HF_INVALID) {
        hf_u32_add(&scene.refused, 1, __ATOMIC_RELAXED);
        return HF_CANCELLED;
    }
    return status == HF_CANCELLED ? HF_CANCELLED : HF_OK;
}

static void ask_chain(void *context, unsigned fiber)
{
    unsigned char key = (unsigned char)fiber;

    scene.status[fiber][0] = hf_map_compute_if_absent(
        scene.map, &key, 1, make_chain, context, HF_FOREVER, NULL);
}

/* Back from a key: who waits for it may not have noticed that it is there
 * when its maker goes on to what that one is making. */
static void ask_chain_back(void *context, unsigned fiber)
{
    for (unsigned char key = (unsigned char)(3 - fiber); key-- > 0;) {
        enum hf_status status = hf_map_compute_if_absent(
            scene.map, &key, 1, make_chain, context, HF_FOREVER, NULL);
        if (status != HF_OK && status != HF_EXISTS)
            schedule_wrong("refused");
        scene.status[fiber][0] = status;
    }
}

static bool circle_found(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%u refused", scene.refused.value);
    return scene.refused.value > 0 && hf_map_size(scene.map) == 0 &&
           count_of(HF_CANCELLED, 3) == 3;
}

static bool no_circle_found(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%u refused", scene.refused.value);
    return scene.refused.value == 0 && hf_map_size(scene.map) == 3 &&
           count_of(HF_OK, 3) + count_of(HF_EXISTS, 3) == 3;
}

TEST(functions_that_would_wait_for_each_other_are_refused)
{
    static struct chain chain = {.keys = 3, .circle = true};
    struct schedule_case c = {.name = "circle",
                              .fibers = 3,
                              .setup = setup,
                              .teardown = teardown,
                              .body = ask_chain,
                              .check = circle_found,
                              .context = &chain};
    schedule_check(&c);
}

TEST(functions_that_wait_in_one_direction_are_not)
{
    static struct chain chain = {.keys = 3};
    struct schedule_case c = {.name = "chain",
                              .fibers = 3,
                              .setup = setup,
                              .teardown = teardown,
                              .body = ask_chain,
                              .check = no_circle_found,
                              .context = &chain};
    schedule_check(&c);
    c.body = ask_chain_back;
    schedule_check(&c);
}

/* ---- One fails while others make the same key anew. ---- */

static enum hf_status make_in_vain(void *context, const void *key, size_t len,
                                   void **value)
{
    (void)context;
    (void)key;
    (void)len;
    (void)value;
    (void)hf_u32_load(&scene.runs, __ATOMIC_RELAXED); /* takes time */
    return HF_IO;
}

static enum hf_status make_second(void *context, const void *key, size_t len,
                                  void **value)
{
    hf_u32_store(&scene.refused, 1, __ATOMIC_RELEASE); /* it has begun */
    return make(context, key, len, value);
}

/* A value is put and removed while 0 makes one: then 1 makes one, and 0, when
 * it fails, must not let 2 begin as well. */
static void fail_late(void *context, unsigned fiber)
{
    unsigned char key = 0;

    (void)context;
    if (fiber == 0) {
        (void)hf_map_compute_if_absent(scene.map, &key, 1, make_in_vain, NULL,
                                       HF_FOREVER, NULL);
    } else if (fiber == 1) {
        if (hf_map_put(scene.map, &key, 1, &scene, NULL) != HF_OK ||
            hf_map_remove(scene.map, &key, 1, NULL) != HF_OK)
            schedule_wrong("put and remove");
        (void)hf_map_compute_if_absent(scene.map, &key, 1, make_second, NULL,
                                       HF_FOREVER, NULL);
        hf_u32_store(&scene.refused, 1, __ATOMIC_RELEASE);
    } else {
        while (hf_u32_load(&scene.refused, __ATOMIC_ACQUIRE) == 0)
            hf_thread_pause();
        ask(fiber, 0, 0, HF_FOREVER);
    }
}

TEST(a_late_failure_does_not_disturb_who_makes_it_now)
{
    struct schedule_case c = {.name = "late",
                              .fibers = 3,
                              .setup = setup,
                              .teardown = teardown,
                              .body = fail_late};
    schedule_check(&c);
}

/* ---- A put, a removal and functions, for one key. ---- */

static void *number_new(uint64_t number)
{
    if (!scene.owns)
        return (void *)(uintptr_t)number;
    uint64_t *value = hf_alloc(sizeof *value);
    if (value == NULL)
        schedule_wrong("no memory");
    *value = number;
    hf_u32_add(&scene.living, 1, __ATOMIC_RELAXED);
    return value;
}

static uint64_t number_in(const void *value)
{
    return value == NULL ? 0
           : scene.owns  ? *(const uint64_t *)value
                         : (uint64_t)(uintptr_t)value;
}

static enum hf_status make_number(void *context, const void *key, size_t len,
                                  void **value)
{
    (void)key;
    (void)len;
    (void)hf_u32_load(&scene.runs, __ATOMIC_RELAXED); /* takes time */
    *value = number_new(*(const uint64_t *)context);
    return HF_OK;
}

static void mixed_call(unsigned fiber, uint64_t number)
{
    struct calls *history = scene.history;
    enum hf_status status;
    void *value = NULL;
    struct call *call;

    switch (schedule_random(5)) {
    case 0:
        call = calls_begin(history, fiber, MODEL_GET, 0, 0);
        status = hf_map_get(scene.map, "k", 1, &value);
        break;
    case 1:
        call = calls_begin(history, fiber, MODEL_SWAP, 0, number);
        status = hf_map_put(scene.map, "k", 1, number_new(number), &value);
        status = status == HF_OK && value == NULL ? HF_NOTFOUND : status;
        break;
    case 2:
        call = calls_begin(history, fiber, MODEL_REMOVE, 0, 0);
        status = hf_map_remove(scene.map, "k", 1, &value);
        break;
    default:
        call = calls_begin(history, fiber, MODEL_SET_IF_ABSENT, 0, number);
        status = hf_map_compute_if_absent(scene.map, "k", 1, make_number,
                                          &number, HF_FOREVER, &value);
    }
    calls_end(history, call, status, number_in(value));
}

static void mixed(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < 4; i++) {
        if (scene.owns && hf_map_enter(scene.map) != HF_OK)
            schedule_wrong("enter");
        mixed_call(fiber, 10 * fiber + i + 1);
        if (scene.owns)
            hf_map_leave(scene.map);
    }
}

static void setup_mixed(void *context, uint64_t seed)
{
    (void)context;
    open_map(seed, seed % 2 == 0);
    calls_clear(scene.history);
}

static bool mixed_check(void *context, FILE *explain)
{
    uint64_t size = hf_map_size(scene.map);
    bool there = hf_map_get(scene.map, "k", 1, NULL) == HF_OK;

    (void)context;
    hf_map_close(scene.map);
    fprintf(explain, "size %llu, %u values left; ", (unsigned long long)size,
            scene.living.value);
    return size == there && scene.living.value == 0 &&
           linear_check(scene.checker, scene.history, explain) == LINEAR_YES;
}

TEST(a_put_does_not_wait_for_a_function_and_all_have_an_order)
{
    struct linear_model model = model_map();
    struct schedule_case c = {.name = "mixed",
                              .fibers = 3,
                              .setup = setup_mixed,
                              .body = mixed,
                              .check = mixed_check,
                              .schedules = 20000};

    scene.history = calls_new(FIBERS_MAX, 8);
    scene.checker = linear_new(&model, 8 * FIBERS_MAX);
    schedule_check(&c);
    linear_free(scene.checker);
    calls_free(scene.history);
}

/* ---- Visits while keys move. ---- */

#define STABLE 6u

static bool note_visit(void *context, const void *key, size_t len, void *value)
{
    unsigned *times = context;

    if (len != 1 || value != &scene)
        schedule_wrong("a key that never was");
    times[*(const unsigned char *)key]++;
    return true;
}

static void visit_or_change(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; fiber == 0 && i < 2; i++) {
        unsigned times[256] = {0};
        if (hf_map_visit(scene.map, note_visit, times) != HF_OK)
            schedule_wrong("visit");
        for (unsigned key = 0; key < STABLE; key++) {
            if (times[key] != 1)
                schedule_wrong("key %u came %u times", key, times[key]);
        }
    }
    for (unsigned i = 0; fiber > 0 && i < 5; i++) {
        unsigned char key = (unsigned char)(STABLE + schedule_random(8));
        if (schedule_random(4) == 0)
            (void)hf_map_remove(scene.map, &key, 1, NULL);
        else if (hf_map_put(scene.map, &key, 1, &scene, NULL) != HF_OK)
            schedule_wrong("put");
    }
}

static void setup_visit(void *context, uint64_t seed)
{
    setup(context, seed);
    for (unsigned char key = 0; key < STABLE; key++) {
        if (hf_map_put(scene.map, &key, 1, &scene, NULL) != HF_OK)
            schedule_wrong("put");
    }
}

TEST(a_visit_finds_each_key_once_while_they_move)
{
    struct schedule_case c = {.name = "visit",
                              .fibers = 3,
                              .setup = setup_visit,
                              .teardown = teardown,
                              .body = visit_or_change};
    schedule_check(&c);
}
