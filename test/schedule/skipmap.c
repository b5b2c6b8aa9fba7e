/* skipmap.c - few keys, few calls, every order of their steps.
 *
 * Fibers do random calls on keys that are neighbours. Nodes get more levels
 * than chance would give them, eras move on all the time and garbage is swept
 * after each call, so that what is freed too early is read late. Afterwards:
 * the results must be explained by some order of the calls, all that left must
 * be unlinked from all levels and retired once, and with free_value each value
 * that left freed once.
 */
#include "holdfast/skipmap.h"

#include "support/ordered.h"
#include "support/schedule.h"
#include "support/test.h"
#include "sync/skipmap_state.h"

#define CALLS_MAX  8 /* of each fiber */
#define FIBERS_MAX 4
#define VALUES_MAX 64
#define HEIGHT_MAX 4

/* A call that is not left to chance. */
struct scripted {
    enum op op;
    uint64_t key;
    uint32_t height; /* of a node that is made; 0: any */
};

struct scene {
    struct ordered_scene at;
    struct linear *checker;
    struct ordered first;          /* values at the start */
    struct hf_atomic_u32 removals; /* (a) nodes that must have been retired */
    struct hf_atomic_u32 used;     /* (a) values that were made */
    char values[VALUES_MAX];       /* their addresses are the values */
    uint8_t got_in[VALUES_MAX];
    uint8_t freed[VALUES_MAX];
    /* Of the case: */
    unsigned ops[12]; /* to choose from, ends with OPS */
    unsigned calls;   /* of each fiber */
    unsigned keys;    /* to choose from */
    unsigned from;    /* the first of them */
    bool owns;        /* the map frees values */
    bool full;        /* most keys are there at the start */
    bool scripted;
    bool no_sweep;
    /* What a fiber does instead, up to OPS; NULL: chance decides. */
    const struct scripted *scripts[FIBERS_MAX];
    unsigned start; /* then these keys are there at the start: bits */
};

static struct scene scene;

static void free_value(void *context, void *value)
{
    (void)context;
    scene.freed[(char *)value - scene.values]++;
}

/* The next node of this fiber is so many levels high, or one more than the map
 * has. */
static uint64_t draws[HEIGHT_MAX + 1]; /* states that give that height */

static void find_draws(void)
{
    for (uint32_t height = 1; height <= HEIGHT_MAX; height++) {
        uint64_t random;
        do
            random = draws[height] += 77;
        while (skipmap_draw(&random) != height);
    }
}

static void draw_next(uint32_t height)
{
    struct skipmap_local *local =
        hf_locals_mine(&scene.at.map->locals, sizeof *local);

    local->random = draws[height];
}

static void put_first(uint64_t key)
{
    unsigned char at[KEY_BYTES];
    uint32_t number = ++scene.used.value;

    draw_next(1 + (uint32_t)schedule_random(3));
    key_make(at, key);
    CHECK_EQ(hf_skipmap_put(scene.at.map, at, KEY_BYTES, &scene.values[number],
                            NULL),
             HF_OK);
    scene.first.value[key] = number;
    scene.got_in[number] = 1;
}

static void setup(void *context, uint64_t seed)
{
    const struct hf_skipmap_opts opts = {
        .seed = seed, .free_value = scene.owns ? free_value : NULL};

    (void)context;
    memset(&scene.first, 0, sizeof scene.first);
    memset(scene.got_in, 0, sizeof scene.got_in);
    memset(scene.freed, 0, sizeof scene.freed);
    scene.removals.value = 0;
    scene.used.value = 0;
    calls_clear(scene.at.history);
    CHECK_EQ(hf_skipmap_open(&scene.at.map, &opts), HF_OK);
    for (uint64_t key = 0; key < KEYS; key++) {
        if (scene.scripted ? (scene.start >> key & 1)
                           : schedule_random(4) < (scene.full ? 3 : 1))
            put_first(key);
    }
}

/* One call, and garbage is swept, which also moves the era on. */
static void call_once(unsigned fiber, const struct scripted *call)
{
    enum op op = call->op;
    uint32_t fresh = 1 + hf_u32_add(&scene.used, 1, __ATOMIC_RELAXED);

    draw_next(call->height != 0 ? call->height
                                : 1 + (uint32_t)schedule_random(HEIGHT_MAX));
    enum hf_status status = ordered_do(&scene.at, fiber, op, call->key, fresh,
                                       1 + schedule_random(fresh));
    if (status == HF_OK && (op == REMOVE || op == REMOVE_IF_EQUAL ||
                            op == TAKE_FIRST || op == TAKE_LOOSE))
        hf_u32_add(&scene.removals, 1, __ATOMIC_RELAXED);
    if (status == HF_OK &&
        (op == PUT || op == PUT_IF_ABSENT || op == REPLACE_IF_EQUAL))
        scene.got_in[fresh] = 1;
    if (!scene.no_sweep && (scene.scripted || schedule_random(2)))
        hf_epoch_flush(scene.at.map->epoch);
}

static void call_any(unsigned fiber)
{
    unsigned count = 0;

    while (scene.ops[count] != OPS)
        count++;
    const struct scripted call = {.op = scene.ops[schedule_random(count)],
                                  .key =
                                      scene.from + schedule_random(scene.keys)};
    call_once(fiber, &call);
}

static void body(void *context, unsigned fiber)
{
    const struct scripted *script = scene.scripts[fiber];

    (void)context;
    for (; script != NULL && script->op != OPS; script++)
        call_once(fiber, script);
    for (unsigned i = 0; scene.scripts[fiber] == NULL && i < scene.calls; i++)
        call_any(fiber);
}

/* Every level must hold nodes that are in, in order, and all of them. */
static bool shape_is_good(struct hf_skipmap *map, FILE *explain)
{
    uint32_t linked[KEYS] = {0};

    for (uint32_t level = SKIPMAP_LEVELS; level-- > 0;) {
        struct skipmap_node *node = map->head->next[level].value;
        int last = -1;
        while (node != NULL) {
            if (skipmap_marked(node) || node->value.value == NULL ||
                skipmap_marked(node->next[level].value)) {
                fprintf(explain, "level %u holds a node that is out", level);
                return false;
            }
            int key = skipmap_key_of(node)[8];
            if (key <= last || level >= node->height) {
                fprintf(explain, "level %u is out of order", level);
                return false;
            }
            linked[key]++;
            if (level == 0 && (linked[key] != node->height ||
                               node->left.value != node->height)) {
                fprintf(explain, "key %d is linked at %u of %u levels", key,
                        linked[key], node->height);
                return false;
            }
            last = key;
            node = node->next[level].value;
        }
    }
    return true;
}

static bool values_are_freed_once(uint64_t retired, FILE *explain)
{
    if (!scene.owns && retired != scene.removals.value) {
        fprintf(explain, "%u nodes were removed, %u retired",
                scene.removals.value, (unsigned)retired);
        return false;
    }
    for (uint32_t i = 1; scene.owns && i <= scene.used.value; i++) {
        if (scene.freed[i] != scene.got_in[i]) {
            fprintf(explain, "value %u was freed %u times, expected %u", i,
                    scene.freed[i], scene.got_in[i]);
            return false;
        }
    }
    return true;
}

static bool check(void *context, FILE *explain)
{
    struct hf_epoch_stats stats;

    (void)context;
    if (!shape_is_good(scene.at.map, explain))
        return false;
    hf_epoch_stats(scene.at.map->epoch, &stats);
    hf_skipmap_close(scene.at.map);
    return values_are_freed_once(stats.retired, explain) &&
           linear_check(scene.checker, scene.at.history, explain) == LINEAR_YES;
}

static void run_with(const struct schedule_case *c, const struct scene *wanted)
{
    const struct linear_model model = ordered_model(&scene.first);

    find_draws();
    scene = *wanted;
    scene.at.values = scene.values;
    scene.at.threads = FIBERS_MAX;
    scene.at.history = calls_new(2 * FIBERS_MAX, CALLS_MAX);
    scene.checker = linear_new(&model, 2 * FIBERS_MAX * CALLS_MAX);
    schedule_check(c);
    linear_free(scene.checker);
    calls_free(scene.at.history);
}

static void run(const char *name, unsigned fibers, const struct scene *wanted)
{
    /* A script is short, and what it waits for rare. */
    const struct schedule_case c = {.name = name,
                                    .fibers = fibers,
                                    .setup = setup,
                                    .body = body,
                                    .check = check,
                                    .schedules = wanted->no_sweep ? 30000 : 0};

    run_with(&c, wanted);
}

TEST(calls_on_one_key_are_linearizable)
{
    run("one key", 3,
        &(struct scene){.ops = {GET, PUT, PUT_IF_ABSENT, REMOVE, REMOVE, OPS},
                        .calls = 3,
                        .keys = 1});
    run("conditions", 3,
        &(struct scene){
            .ops = {PUT, REPLACE_IF_EQUAL, REMOVE_IF_EQUAL, REMOVE, GET, OPS},
            .calls = 3,
            .keys = 1});
}

TEST(inserters_and_removers_of_neighbours_leave_nothing_behind)
{
    run("two keys", 4,
        &(struct scene){
            .ops = {PUT, REMOVE, REMOVE, GET, OPS}, .calls = 3, .keys = 2});
}

TEST(values_are_freed_once)
{
    run("owned values", 3,
        &(struct scene){.ops = {PUT, PUT_IF_ABSENT, REPLACE_IF_EQUAL, REMOVE,
                                REMOVE_IF_EQUAL, TAKE_LOOSE, FIRST, OPS},
                        .calls = 3,
                        .keys = 2,
                        .owns = true});
}

TEST(neighbours_and_ends_are_linearizable_with_their_values)
{
    run("ordered", 3,
        &(struct scene){.ops = {PUT, PUT, REMOVE, FIRST, LAST, FLOOR, LOWER,
                                CEILING, HIGHER, OPS},
                        .calls = 4,
                        .keys = KEYS});
    run("ends", 3,
        &(struct scene){
            .ops = {PUT, REMOVE, FIRST, LAST, OPS}, .calls = 4, .keys = 2});
}

TEST(what_is_taken_first_was_first)
{
    run("takers and putters", 3,
        &(struct scene){
            .ops = {TAKE_LOOSE, PUT, REMOVE, OPS}, .calls = 3, .keys = KEYS});
    run("takers only", 3,
        &(struct scene){.ops = {TAKE_FIRST, FIRST, REMOVE, OPS},
                        .calls = 2,
                        .keys = KEYS,
                        .full = true});
}

/* Fiber 0 visits while the others change the two keys in the middle. */

struct tour {
    unsigned count;
    unsigned char keys[2 * KEYS];
};

static bool tour_note(void *context, const void *key, size_t key_len,
                      void *value)
{
    struct tour *tour = context;

    if (key_len != KEY_BYTES || value == NULL || tour->count == 2 * KEYS)
        schedule_wrong("visited what is not there");
    tour->keys[tour->count++] = ((const unsigned char *)key)[8];
    return true;
}

static void visit_body(void *context, unsigned fiber)
{
    struct tour tour = {.count = 0};

    if (fiber != 0) {
        body(context, fiber);
        return;
    }
    if (hf_skipmap_visit(scene.at.map, NULL, 0, NULL, 0, tour_note, &tour) !=
        HF_OK)
        schedule_wrong("the visit failed");
    if (tour.count < 2 || tour.keys[0] != 0 ||
        tour.keys[tour.count - 1] != KEYS - 1)
        schedule_wrong("a key that is there was not visited");
    for (unsigned i = 1; i < tour.count; i++) {
        if (tour.keys[i] <= tour.keys[i - 1])
            schedule_wrong("key %d after key %d", tour.keys[i],
                           tour.keys[i - 1]);
    }
}

static void visit_setup(void *context, uint64_t seed)
{
    setup(context, seed);
    if (scene.first.value[0] == 0)
        put_first(0);
    if (scene.first.value[KEYS - 1] == 0)
        put_first(KEYS - 1);
}

TEST(a_visit_is_in_order_and_misses_nothing_that_stays)
{
    const struct schedule_case c = {.name = "visit",
                                    .fibers = 3,
                                    .setup = visit_setup,
                                    .body = visit_body,
                                    .check = check};

    run_with(&c, &(struct scene){.ops = {REMOVE, REMOVE, PUT, OPS},
                                 .calls = 4,
                                 .keys = KEYS - 2,
                                 .from = 1});
}

static void visit_any_body(void *context, unsigned fiber)
{
    struct tour tour = {.count = 0};

    if (fiber != 0)
        body(context, fiber);
    else
        (void)hf_skipmap_visit(scene.at.map, NULL, 0, NULL, 0, tour_note,
                               &tour);
}

/* Fiber 0 is slow to read a value. */
static void read_slowly(void *context, void *value)
{
    (void)context;
    for (int i = 0; i < 4; i++) {
        hf_thread_pause();
        if (scene.freed[(char *)value - scene.values] != 0)
            schedule_wrong("a value was freed while it was read");
    }
}

static void read_body(void *context, unsigned fiber)
{
    struct hf_skipmap_entry entry = {.key = NULL};
    unsigned char at[KEY_BYTES];

    if (fiber != 0) {
        body(context, fiber);
        return;
    }
    key_make(at, 0);
    (void)hf_skipmap_read(scene.at.map, at, KEY_BYTES, read_slowly, NULL);
    (void)hf_skipmap_enter(scene.at.map);
    if (hf_skipmap_first(scene.at.map, &entry) == HF_OK)
        read_slowly(NULL, entry.value);
    hf_skipmap_leave(scene.at.map);
}

/* Scripts that make rare things happen often. Under the address sanitizer they
 * show what is freed too early. */

TEST(a_value_is_of_the_same_instant_as_its_place)
{
    static const struct scripted ask[] = {{FIRST, 0, 0}, {OPS, 0, 0}};
    static const struct scripted change[] = {
        {PUT, 0, 1}, {PUT, 1, 1}, {PUT, 1, 1}, {REMOVE, 0, 0}, {OPS, 0, 0}};

    run("changing first", 2,
        &(struct scene){.scripted = true,
                        .no_sweep = true,
                        .scripts = {ask, change},
                        .start = 2});
}

TEST(what_is_behind_a_removed_node_is_not_followed)
{
    static const struct scripted change[] = {
        {GET, 3, 0},    {PUT, 1, 1}, {REMOVE, 0, 0}, {REMOVE, 1, 0},
        {REMOVE, 1, 0}, {PUT, 0, 0}, {OPS, 0, 0}};
    static const struct scripted get[] = {{GET, 2, 0}, {OPS, 0, 0}};
    static const struct scripted put[] = {{PUT, 2, 0}, {OPS, 0, 0}};
    const struct schedule_case c = {.name = "visit of what goes",
                                    .fibers = 2,
                                    .setup = setup,
                                    .body = visit_any_body,
                                    .check = check};

    run("get", 2,
        &(struct scene){
            .scripted = true, .scripts = {get, change}, .start = 1});
    run("put", 2,
        &(struct scene){
            .scripted = true, .scripts = {put, change}, .start = 1});
    run("last and lower", 2,
        &(struct scene){.scripted = true,
                        .ops = {LAST, LOWER, FLOOR, HIGHER, OPS},
                        .keys = 2,
                        .calls = 1,
                        .scripts = {NULL, change},
                        .start = 9});
    run_with(&c, &(struct scene){
                     .scripted = true, .scripts = {NULL, change}, .start = 1});
}

TEST(an_inserter_may_look_at_its_node_after_others_removed_it)
{
    static const struct scripted put[] = {{PUT, 0, 2}, {OPS, 0, 0}};
    static const struct scripted change[] = {
        {GET, 0, 0}, {REMOVE, 0, 0}, {REMOVE, 0, 0}, {OPS, 0, 0}};

    run("put and gone", 2,
        &(struct scene){.scripted = true, .scripts = {put, change}});
}

TEST(a_value_lasts_while_it_is_read)
{
    static const struct scripted change[] = {{PUT, 0, 1},    {PUT, 0, 1},
                                             {REMOVE, 0, 0}, {PUT, 0, 1},
                                             {PUT, 0, 1},    {OPS, 0, 0}};
    const struct schedule_case c = {.name = "slow reader",
                                    .fibers = 2,
                                    .setup = setup,
                                    .body = read_body,
                                    .check = check};

    run_with(&c, &(struct scene){.scripted = true,
                                 .owns = true,
                                 .scripts = {NULL, change},
                                 .start = 3});
}
