/* map.c - the concurrent map, each step in the hands of a seed: one key, and
 * keys that move to a larger table.
 *
 * Values are numbers in memory that is allocated for each: in half of the
 * cases the map frees them, and the address sanitizer and a count of what is
 * left watch it.
 */
#include "holdfast/map.h"

#include "base/memory.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS_MAX 4
#define CALLS_MAX  24 /* of one fiber */
#define KEYS_MAX   16

struct shape {
    const char *name;
    unsigned fibers;
    unsigned calls;
    unsigned keys;    /* that the fibers use */
    unsigned filled;  /* of these: there at the start */
    unsigned removes; /* of ten calls so many take away */
    bool owns;        /* the map frees the values */
    bool alike;       /* all hashes are nearly the same */
    unsigned schedules;
};

struct value {
    uint64_t number; /* plain: whoever reads it after it was freed is caught */
};

struct scene {
    const struct shape *shape;
    struct hf_map *map;
    struct calls *history;
    struct linear *checker;
    uint64_t next;
    int64_t living; /* values that were made and not freed */
};

static struct value *value_new(struct scene *scene, uint64_t number)
{
    struct value *value = hf_alloc(sizeof *value);

    if (value == NULL)
        schedule_wrong("no memory");
    value->number = number;
    __atomic_fetch_add(&scene->living, 1, __ATOMIC_RELAXED);
    return value;
}

static void value_free(void *context, void *value)
{
    struct scene *scene = context;

    ((struct value *)value)->number = UINT64_MAX;
    __atomic_fetch_add(&scene->living, -1, __ATOMIC_RELAXED);
    hf_free(value);
}

/* Values that the map does not own are numbers and no memory. */
static void *value_of(struct scene *scene, uint64_t number)
{
    return scene->shape->owns ? (void *)value_new(scene, number)
                              : (void *)(uintptr_t)number;
}

static uint64_t number_in(const struct scene *scene, void *value)
{
    return scene->shape->owns ? ((struct value *)value)->number
                              : (uint64_t)(uintptr_t)value;
}

static void drop(struct scene *scene, void *value)
{
    if (scene->shape->owns)
        value_free(scene, value);
}

static uint64_t hash_alike(void *context, const void *key, size_t len)
{
    (void)context;
    (void)len;
    return *(const unsigned char *)key % 4u; /* tag 1 for all */
}

static uint64_t fresh(struct scene *scene)
{
    return __atomic_add_fetch(&scene->next, 1, __ATOMIC_RELAXED);
}

/* One call each, recorded. */

static void *get(struct scene *scene, unsigned thread, unsigned char key)
{
    void *value = NULL;
    struct call *call = calls_begin(scene->history, thread, MODEL_GET, key, 0);
    enum hf_status status = hf_map_get(scene->map, &key, 1, &value);
    calls_end(scene->history, call, status,
              status == HF_OK ? number_in(scene, value) : 0);
    return value;
}

static void put(struct scene *scene, unsigned thread, unsigned char key)
{
    uint64_t number = fresh(scene);
    void *value = value_of(scene, number);
    void *old = NULL;
    struct call *call =
        calls_begin(scene->history, thread, MODEL_SWAP, key, number);

    if (hf_map_put(scene->map, &key, 1, value, &old) != HF_OK)
        schedule_wrong("put");
    calls_end(scene->history, call, old == NULL ? HF_NOTFOUND : HF_OK,
              old == NULL ? 0 : number_in(scene, old));
}

static void put_if_absent(struct scene *scene, unsigned thread,
                          unsigned char key)
{
    uint64_t number = fresh(scene);
    void *value = value_of(scene, number);
    void *there = NULL;
    struct call *call =
        calls_begin(scene->history, thread, MODEL_SET_IF_ABSENT, key, number);
    enum hf_status status =
        hf_map_put_if_absent(scene->map, &key, 1, value, &there);

    calls_end(scene->history, call, status,
              status == HF_EXISTS ? number_in(scene, there) : 0);
    if (status != HF_OK)
        drop(scene, value);
}

static void drop_key(struct scene *scene, unsigned thread, unsigned char key)
{
    void *old = NULL;
    struct call *call =
        calls_begin(scene->history, thread, MODEL_REMOVE, key, 0);
    enum hf_status status = hf_map_remove(scene->map, &key, 1, &old);

    calls_end(scene->history, call, status,
              status == HF_OK ? number_in(scene, old) : 0);
}

/* Reads the value and replaces or removes it if it is still that. */
static void if_equal(struct scene *scene, unsigned thread, unsigned char key,
                     bool removes)
{
    void *found = get(scene, thread, key);
    uint64_t number = fresh(scene);
    void *value = removes ? NULL : value_of(scene, number);
    enum hf_status status;

    if (found == NULL) {
        if (!removes)
            drop(scene, value);
        return;
    }
    struct call *call =
        calls_begin(scene->history, thread,
                    removes ? MODEL_REMOVE_IF_EQUAL : MODEL_REPLACE_IF_EQUAL,
                    key, number_in(scene, found));
    call->argument2 = number;
    status = removes
                 ? hf_map_remove_if_equal(scene->map, &key, 1, found)
                 : hf_map_replace_if_equal(scene->map, &key, 1, found, value);
    calls_end(scene->history, call, status, MODEL_ANY);
    if (!removes && status != HF_OK)
        drop(scene, value);
}

static void *sum(void *context, void *old, void *value)
{
    struct scene *scene = context;
    return value_of(scene, number_in(scene, old) + number_in(scene, value));
}

static void merge(struct scene *scene, unsigned thread, unsigned char key)
{
    /* No two sums are the same. */
    uint64_t number = UINT64_C(256) << fresh(scene) % 48;
    void *value = value_of(scene, number);
    void *result = NULL;
    struct call *call =
        calls_begin(scene->history, thread, MODEL_ADD, key, number);

    if (hf_map_merge(scene->map, &key, 1, value, sum, scene, &result) != HF_OK)
        schedule_wrong("merge");
    calls_end(scene->history, call, HF_OK, number_in(scene, result));
    if (result != value)
        drop(scene, value);
}

struct changing {
    struct scene *scene;
    uint64_t number;
    uint64_t before;
};

static enum hf_status change(void *context, const void *key, size_t len,
                             void **value)
{
    struct changing *changing = context;

    (void)key;
    (void)len;
    changing->before = number_in(changing->scene, *value);
    *value = value_of(changing->scene, changing->number);
    return HF_OK;
}

static void compute(struct scene *scene, unsigned thread, unsigned char key)
{
    struct changing changing = {.scene = scene, .number = fresh(scene)};
    struct call *call = calls_begin(scene->history, thread,
                                    MODEL_SET_IF_PRESENT, key, changing.number);
    enum hf_status status =
        hf_map_compute_if_present(scene->map, &key, 1, change, &changing, NULL);

    calls_end(scene->history, call, status, changing.before);
}

/* A call that takes nothing away, at random. */
static void random_call(struct scene *scene, unsigned thread, unsigned char key)
{
    switch (schedule_random(7)) {
    case 0:
    case 1:
        (void)get(scene, thread, key);
        break;
    case 2:
        put(scene, thread, key);
        break;
    case 3:
        put_if_absent(scene, thread, key);
        break;
    case 4:
        if_equal(scene, thread, key, false);
        break;
    case 5:
        merge(scene, thread, key);
        break;
    default:
        compute(scene, thread, key);
    }
}

static void body(void *context, unsigned fiber)
{
    struct scene *scene = context;
    const struct shape *shape = scene->shape;

    for (unsigned i = 0; i < shape->calls; i++) {
        unsigned char key = (unsigned char)schedule_random(shape->keys);
        /* What the map owns may be looked at only inside a guard. */
        if (shape->owns && hf_map_enter(scene->map) != HF_OK)
            schedule_wrong("enter");
        if (schedule_random(10) >= shape->removes)
            random_call(scene, fiber, key);
        else if (schedule_random(3) == 0)
            if_equal(scene, fiber, key, true);
        else
            drop_key(scene, fiber, key);
        if (shape->owns)
            hf_map_leave(scene->map);
    }
}

static void setup(void *context, uint64_t seed)
{
    struct scene *scene = context;
    struct hf_map_opts opts = {
        .capacity = 1, .seed = {seed, 1}, .context = scene};

    opts.free_value = scene->shape->owns ? value_free : NULL;
    opts.hash = scene->shape->alike ? hash_alike : NULL;
    scene->next = 0;
    scene->living = 0;
    if (hf_map_open(&scene->map, &opts) != HF_OK)
        schedule_wrong("no map");
    calls_clear(scene->history);
    for (unsigned i = 0; i < scene->shape->filled; i++)
        put(scene, FIBERS_MAX, (unsigned char)i);
}

static bool check(void *context, FILE *explain)
{
    struct scene *scene = context;
    uint64_t there = 0;

    for (unsigned i = 0; i < scene->shape->keys; i++)
        there += get(scene, FIBERS_MAX, (unsigned char)i) != NULL;
    uint64_t size = hf_map_size(scene->map);
    hf_map_close(scene->map);
    fprintf(explain, "size %llu of %llu, %lld values left; ",
            (unsigned long long)size, (unsigned long long)there,
            (long long)scene->living);
    return size == there && scene->living == 0 &&
           linear_check(scene->checker, scene->history, explain) == LINEAR_YES;
}

static void run(const struct shape *shape)
{
    struct linear_model model = model_map();
    size_t calls = 2 * CALLS_MAX * (FIBERS_MAX + 1);
    struct scene scene = {
        .shape = shape,
        .history = calls_new(FIBERS_MAX + 1, 2 * CALLS_MAX),
        .checker = linear_new(&model, calls),
    };
    struct schedule_case c = {.name = shape->name,
                              .fibers = shape->fibers,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .context = &scene,
                              .schedules = shape->schedules};
    CHECK(shape->calls <= CALLS_MAX && shape->fibers <= FIBERS_MAX);
    CHECK(shape->keys <= KEYS_MAX && shape->filled <= shape->keys);
    schedule_check(&c);
    linear_free(scene.checker);
    calls_free(scene.history);
}

TEST(one_key_in_three_hands)
{
    run(&(struct shape){
        .name = "one key", .fibers = 3, .calls = 5, .keys = 1, .removes = 3});
}

TEST(one_key_whose_values_the_map_frees)
{
    run(&(struct shape){.name = "one key, owned",
                        .fibers = 3,
                        .calls = 5,
                        .keys = 1,
                        .removes = 3,
                        .owns = true});
}

/* The seventh key makes the first table grow: every fiber may be the one that
 * begins it, helps it, finishes it or reads through it. */
TEST(keys_move_to_a_larger_table_while_they_are_used)
{
    run(&(struct shape){.name = "growth",
                        .fibers = 3,
                        .calls = 6,
                        .keys = 10,
                        .filled = 6,
                        .removes = 2});
}

TEST(keys_whose_values_the_map_frees_move)
{
    run(&(struct shape){.name = "growth, owned",
                        .fibers = 3,
                        .calls = 6,
                        .keys = 10,
                        .filled = 6,
                        .removes = 2,
                        .owns = true});
}

/* From one bucket to four and more, two growths on end. */
TEST(two_growths_come_one_after_the_other)
{
    run(&(struct shape){.name = "two growths",
                        .fibers = 3,
                        .calls = 9,
                        .keys = 16,
                        .filled = 6,
                        .schedules = 5000});
}

/* Buckets behind buckets, tags that tell nothing, removal and insertion of the
 * same slots. */
TEST(keys_with_nearly_equal_hashes_move)
{
    run(&(struct shape){.name = "alike",
                        .fibers = 3,
                        .calls = 6,
                        .keys = 14,
                        .filled = 9,
                        .removes = 3,
                        .alike = true});
}

TEST(two_keys_go_and_come_again_in_four_hands)
{
    run(&(struct shape){.name = "go and come",
                        .fibers = 4,
                        .calls = 5,
                        .keys = 2,
                        .filled = 1,
                        .removes = 5,
                        .owns = true});
}
