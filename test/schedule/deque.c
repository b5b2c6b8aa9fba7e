/* deque.c - the work-stealing deque, each step in the hands of a seed.
 *
 * Fiber 0 is the owner, the others steal.
 */
#include "holdfast/deque.h"

#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define SCHEDULE_COUNT 60000 /* of each case */
#define FIBERS_MAX     4
#define OWNER_MAX      12 /* calls */
#define THIEF_MAX      6

struct item {
    uint64_t number; /* plain: the thread sanitizer watches the hand-over */
};

struct scene {
    struct hf_deque *deque;
    struct calls *history;
    struct linear *checker;
    struct item items[OWNER_MAX];
    uint64_t capacity;
    unsigned before;   /* items that are pushed before the fibers start */
    unsigned calls;    /* of the owner */
    unsigned steals;   /* of each thief */
    unsigned pops_pct; /* of the owner's calls */
    unsigned pushed;
};

static void push(struct scene *scene)
{
    unsigned index = scene->pushed++;
    struct item *item = &scene->items[index];

    item->number = index + 1;
    struct call *call = calls_begin(scene->history, 0, MODEL_PUT, 0, index + 1);
    calls_end(scene->history, call, hf_deque_push(scene->deque, item), 0);
}

static enum hf_status take(struct scene *scene, unsigned thread, uint32_t op)
{
    void *found = NULL;
    struct call *call = calls_begin(scene->history, thread, op, 0, 0);
    enum hf_status status = op == MODEL_TAKE_LAST
                                ? hf_deque_pop(scene->deque, &found)
                                : hf_deque_steal(scene->deque, &found);
    uint64_t number = status == HF_OK ? ((struct item *)found)->number : 0;

    calls_end(scene->history, call, status, number);
    return status;
}

static void setup(void *context, uint64_t seed)
{
    struct scene *scene = context;
    struct hf_deque_opts opts = {.capacity = scene->capacity};

    (void)seed;
    if (hf_deque_open(&scene->deque, &opts) != HF_OK)
        schedule_wrong("no deque");
    calls_clear(scene->history);
    scene->pushed = 0;
    for (unsigned i = 0; i < scene->before; i++)
        push(scene);
}

static void teardown(void *context)
{
    struct scene *scene = context;

    hf_deque_close(scene->deque);
}

static void body(void *context, unsigned fiber)
{
    struct scene *scene = context;

    for (unsigned i = 0; fiber != 0 && i < scene->steals; i++)
        (void)take(scene, fiber, MODEL_TAKE_FIRST);
    for (unsigned i = 0; fiber == 0 && i < scene->calls; i++) {
        if (schedule_random(100) < scene->pops_pct)
            (void)take(scene, 0, MODEL_TAKE_LAST);
        else
            push(scene);
    }
}

/* Takes what is left from both ends and looks at the whole. */
static bool check(void *context, FILE *explain)
{
    struct scene *scene = context;
    uint64_t left = hf_deque_size(scene->deque);

    for (uint64_t i = 0; i < left; i++)
        (void)take(scene, 0, i % 2 ? MODEL_TAKE_LAST : MODEL_TAKE_FIRST);
    if (take(scene, 0, MODEL_TAKE_LAST) != HF_EMPTY) {
        fprintf(explain, "size %llu is too small", (unsigned long long)left);
        return false;
    }
    return linear_check(scene->checker, scene->history, explain) == LINEAR_YES;
}

static void run(const char *name, unsigned fibers, struct scene scene)
{
    struct model_list list = {.room = OWNER_MAX};
    struct linear_model model = model_list(&list);
    struct schedule_case c = {.name = name,
                              .fibers = fibers,
                              .setup = setup,
                              .teardown = teardown,
                              .body = body,
                              .check = check,
                              .context = &scene,
                              .schedules = SCHEDULE_COUNT};

    CHECK(scene.before + scene.calls <= OWNER_MAX);
    CHECK(scene.steals <= THIEF_MAX && fibers <= FIBERS_MAX);
    scene.history = calls_new(FIBERS_MAX, 2 * OWNER_MAX + 1);
    scene.checker = linear_new(&model, FIBERS_MAX * (2 * OWNER_MAX + 1));
    schedule_check(&c);
    linear_free(scene.checker);
    calls_free(scene.history);
}

TEST(the_last_item_goes_to_one)
{
    run("last item", 2,
        (struct scene){.capacity = 4, .calls = 8, .steals = 4, .pops_pct = 55});
}

TEST(the_last_of_two_goes_to_one)
{
    run("last of two", 3,
        (struct scene){.capacity = 4,
                       .before = 2,
                       .calls = 4,
                       .steals = 3,
                       .pops_pct = 75});
}

TEST(thieves_find_their_item_while_it_grows)
{
    run("growth", 3,
        (struct scene){.capacity = 1, .calls = 9, .steals = 4, .pops_pct = 20});
}

TEST(slots_are_used_anew_when_their_items_are_gone)
{
    run("wrap", 3,
        (struct scene){.capacity = 2,
                       .before = 2,
                       .calls = 8,
                       .steals = 4,
                       .pops_pct = 35});
}

TEST(three_thieves_and_the_owner)
{
    run("three thieves", 4,
        (struct scene){.capacity = 2,
                       .before = 1,
                       .calls = 6,
                       .steals = 3,
                       .pops_pct = 45});
}
