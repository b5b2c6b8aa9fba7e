/* snapshot_list.c - add, remove, contains and visit have one order; an item is
 * freed once, after the last visit of a version that has it.
 *
 * Each item is a key of a map that the checker knows. A visit is a look at all
 * of them at one instant: to the checker, as many calls that last as long.
 */
#include "holdfast/snapshot_list.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "support/calls.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS_MAX 4
#define ITEMS      2
#define CALLS_MAX  32

struct item {
    struct hf_atomic_u32 freed; /* (a) times */
    uint64_t key;
};

enum role { CHANGES, LOOKS, MIXES };

static struct {
    enum role roles[FIBERS_MAX];
    unsigned calls;
    bool owning; /* each item comes once, and the list frees it */
    struct hf_snapshot_list *list;
    struct calls *history;
    struct linear *checker;
    struct item items[FIBERS_MAX * 8];
    struct hf_atomic_u32 added[FIBERS_MAX * 8]; /* (a) with HF_OK */
} rig;

static void item_free(void *context, void *item)
{
    (void)context;
    hf_u32_add(&((struct item *)item)->freed, 1, __ATOMIC_RELAXED);
}

static void setup(void *context, uint64_t seed)
{
    const struct hf_snapshot_list_opts opts = {.free = rig.owning ? item_free
                                                                  : NULL};

    (void)context;
    (void)seed;
    memset(rig.items, 0, sizeof rig.items);
    memset(rig.added, 0, sizeof rig.added);
    for (unsigned i = 0; i < FIBERS_MAX * 8; i++)
        rig.items[i].key = i;
    calls_clear(rig.history);
    CHECK_EQ(hf_snapshot_list_open(&rig.list, &opts), HF_OK);
}

static void add(unsigned fiber, struct item *item)
{
    struct call *call = calls_begin(rig.history, fiber, MODEL_SET_IF_ABSENT,
                                    item->key, item->key);
    enum hf_status status = hf_snapshot_list_add(rig.list, item);

    calls_end(rig.history, call, status, item->key);
    if (status == HF_OK)
        hf_u32_add(&rig.added[item->key], 1, __ATOMIC_RELAXED);
}

static void take(unsigned fiber, struct item *item)
{
    struct call *call =
        calls_begin(rig.history, fiber, MODEL_REMOVE, item->key, 0);

    calls_end(rig.history, call, hf_snapshot_list_remove(rig.list, item),
              item->key);
}

struct visit {
    uint64_t seen[FIBERS_MAX * 8];
};

static bool note(void *context, void *found)
{
    struct visit *visit = context;
    struct item *item = found;

    hf_thread_pause(); /* be slow */
    if (hf_u32_load(&item->freed, __ATOMIC_RELAXED) != 0)
        schedule_wrong("item %llu is visited after it was freed",
                       (unsigned long long)item->key);
    if (visit->seen[item->key]++ != 0)
        schedule_wrong("item %llu is visited twice",
                       (unsigned long long)item->key);
    return true;
}

static void look(unsigned fiber)
{
    struct visit visit = {{0}};
    struct call *calls[ITEMS];

    for (unsigned i = 0; i < ITEMS; i++)
        calls[i] = calls_begin(rig.history, fiber, MODEL_GET, i, 0);
    enum hf_status status = hf_snapshot_list_visit(rig.list, note, &visit);
    if (status != HF_OK)
        schedule_wrong("visit failed");
    for (unsigned i = 0; i < ITEMS; i++)
        calls_end(rig.history, calls[i],
                  visit.seen[i] != 0 ? HF_OK : HF_NOTFOUND, i);

    struct item *item = &rig.items[schedule_random(ITEMS)];
    struct call *call =
        calls_begin(rig.history, fiber, MODEL_GET, item->key, 0);
    calls_end(rig.history, call, hf_snapshot_list_contains(rig.list, item),
              item->key);
}

/* With items that come once, a fiber adds its own and removes any. */
static void change(unsigned fiber, unsigned round)
{
    if (!rig.owning) {
        struct item *item = &rig.items[schedule_random(ITEMS)];
        if (schedule_random(2) == 0)
            add(fiber, item);
        else
            take(fiber, item);
        return;
    }
    add(fiber, &rig.items[fiber * 8 + round]);
    take(fiber, &rig.items[schedule_random(2) * 8 + round]);
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < rig.calls; i++) {
        enum role role = rig.roles[fiber];
        if (role == MIXES)
            role = (enum role)schedule_random(MIXES);
        if (role == CHANGES)
            change(fiber, i);
        else
            look(fiber);
    }
}

static bool check(void *context, FILE *explain)
{
    struct hf_snapshot_list_stats stats;
    size_t count = 0;

    (void)context;
    hf_snapshot_list_flush(rig.list);
    hf_snapshot_list_stats(rig.list, &stats);
    CHECK_EQ(hf_snapshot_list_count(rig.list, &count), HF_OK);
    for (unsigned i = 0; i < FIBERS_MAX * 8; i++) {
        struct item *item = &rig.items[i];
        bool gone = rig.added[i].value != 0 &&
                    hf_snapshot_list_contains(rig.list, item) != HF_OK;
        if (item->freed.value != (rig.owning && gone)) {
            fprintf(explain, "item %u is %s and was freed %u times", i,
                    gone ? "gone" : "there", item->freed.value);
            return false;
        }
    }
    hf_snapshot_list_close(rig.list);
    for (unsigned i = 0; rig.owning && i < FIBERS_MAX * 8; i++)
        if (rig.items[i].freed.value != rig.added[i].value) {
            fprintf(explain, "item %u was freed %u times", i,
                    rig.items[i].freed.value);
            return false;
        }
    fprintf(explain, "kept %llu, count %llu, not %zu; ",
            (unsigned long long)stats.kept, (unsigned long long)stats.count,
            count);
    return stats.kept == 0 && stats.count == count &&
           linear_check(rig.checker, rig.history, explain) == LINEAR_YES;
}

static void run(const char *name, bool owning, unsigned fibers, enum role last,
                unsigned calls)
{
    struct linear_model model = model_map();
    struct schedule_case test = {.name = name,
                                 .fibers = fibers,
                                 .setup = setup,
                                 .body = body,
                                 .check = check};

    for (unsigned i = 0; i < fibers; i++)
        rig.roles[i] = i == fibers - 1 ? last : CHANGES;
    rig.calls = calls;
    rig.owning = owning;
    rig.history = calls_new(FIBERS_MAX, CALLS_MAX);
    rig.checker = linear_new(&model, FIBERS_MAX * CALLS_MAX);
    schedule_check(&test);
    linear_free(rig.checker);
    calls_free(rig.history);
}

TEST(changes_and_visits_have_one_order)
{
    run("two change", false, 2, CHANGES, 5);
    run("one changes, one looks", false, 2, LOOKS, 4);
    run("two change, one mixes", false, 3, MIXES, 3);
}

TEST(an_item_is_freed_once_and_not_under_a_visitor)
{
    run("two add and remove", true, 2, CHANGES, 3);
    run("two add and remove, one looks", true, 3, LOOKS, 3);
}

/* One of two items is always there; the other comes before it goes. */
static void body_swaps(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        for (unsigned i = 0; i < 4; i++) {
            add(fiber, &rig.items[i % 2]);
            take(fiber, &rig.items[(i + 1) % 2]);
        }
        return;
    }
    for (unsigned i = 0; i < 4; i++) {
        struct visit visit = {{0}};
        (void)hf_snapshot_list_visit(rig.list, note, &visit);
        if (visit.seen[0] + visit.seen[1] == 0)
            schedule_wrong("a visit saw parts of two versions");
    }
}

static void setup_swaps(void *context, uint64_t seed)
{
    setup(context, seed);
    add(FIBERS_MAX - 1, &rig.items[1]);
}

TEST(a_visit_is_of_one_version)
{
    struct linear_model model = model_map();
    struct schedule_case test = {.name = "one swaps, one looks",
                                 .fibers = 2,
                                 .setup = setup_swaps,
                                 .body = body_swaps,
                                 .check = check};

    rig.owning = false;
    rig.history = calls_new(FIBERS_MAX, CALLS_MAX);
    rig.checker = linear_new(&model, FIBERS_MAX * CALLS_MAX);
    schedule_check(&test);
    linear_free(rig.checker);
    calls_free(rig.history);
}
