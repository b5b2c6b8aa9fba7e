/* snapshot.c - reads, sets and updates have one order; each value is freed
 * once, and never under a reader.
 *
 * Values lie in an array and are used once. Those that `make` made in vain are
 * values too. What listeners are told is in snapshot_tell.c.
 */
#include "holdfast/snapshot.h"

#include "base/atomic.h"
#include "base/thread.h"
#include "support/calls.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS_MAX 4
#define CALLS_MAX  4
#define VALUES_MAX 256

struct value {
    uint64_t number;
    struct hf_atomic_u32 freed; /* (a) times */
};

enum role { READS, SETS, UPDATES, MIXES };

static struct {
    enum role roles[FIBERS_MAX];
    unsigned calls;
    struct hf_snapshot *snapshot;
    struct calls *history;
    struct linear *checker;
    struct value values[VALUES_MAX];
    struct hf_atomic_u32 used; /* (a) of values */
} rig;

static struct value *value_new(uint64_t number)
{
    uint32_t index = hf_u32_add(&rig.used, 1, __ATOMIC_RELAXED);
    struct value *value = &rig.values[index];

    if (index >= VALUES_MAX)
        schedule_wrong("%u values", index);
    value->number = number;
    return value;
}

static void value_free(void *context, void *value)
{
    (void)context;
    hf_u32_add(&((struct value *)value)->freed, 1, __ATOMIC_RELAXED);
}

static void check_alive(const struct value *value)
{
    if (hf_u32_load(&value->freed, __ATOMIC_RELAXED) != 0)
        schedule_wrong("value %d is read after it was freed",
                       (int)(value - rig.values));
}

static void setup(void *context, uint64_t seed)
{
    const struct hf_snapshot_opts opts = {.free = value_free};

    (void)context;
    (void)seed;
    memset(rig.values, 0, sizeof rig.values);
    rig.used.value = 0;
    calls_clear(rig.history);
    CHECK_EQ(hf_snapshot_open(&rig.snapshot, value_new(1000), &opts), HF_OK);
    struct call *call =
        calls_begin(rig.history, FIBERS_MAX, MODEL_SET, 0, 1000);
    calls_end(rig.history, call, HF_OK, 0);
}

static void read_one(unsigned fiber)
{
    struct hf_snapshot_view view, inner;
    struct call *call = calls_begin(rig.history, fiber, MODEL_GET, 0, 0);
    enum hf_status status = hf_snapshot_read(rig.snapshot, &view);
    const struct value *value = view.value;

    calls_end(rig.history, call, status, value->number);
    uint64_t version = view.version;
    for (int i = 0; i < 3; i++) {
        hf_thread_pause(); /* be slow */
        check_alive(value);
    }
    if (hf_snapshot_read(rig.snapshot, &inner) != HF_OK ||
        inner.version < version)
        schedule_wrong("version %llu after %llu",
                       (unsigned long long)inner.version,
                       (unsigned long long)version);
    check_alive(inner.value);
    hf_snapshot_leave(&inner);
    check_alive(value);
    hf_snapshot_leave(&view);
}

static void set_one(unsigned fiber)
{
    uint64_t number = 1 + schedule_random(100000);
    struct call *call = calls_begin(rig.history, fiber, MODEL_SET, 0, number);

    calls_end(rig.history, call,
              hf_snapshot_set(rig.snapshot, value_new(number)), 0);
}

/* Adds the number at `context`, which becomes the sum. */
struct step {
    uint64_t number;
    uint64_t sum;
};

static enum hf_status make_sum(void *context, const void *old, void **fresh)
{
    struct step *step = context;
    const struct value *value = old;

    hf_thread_pause();
    check_alive(value);
    step->sum = value->number + step->number;
    *fresh = value_new(step->sum);
    return HF_OK;
}

static void update_one(unsigned fiber)
{
    struct step step = {1 + schedule_random(1000), 0};
    struct call *call =
        calls_begin(rig.history, fiber, MODEL_ADD, 0, step.number);
    enum hf_status status = hf_snapshot_update(rig.snapshot, make_sum, &step);

    calls_end(rig.history, call, status, step.sum);
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < rig.calls; i++) {
        enum role role = rig.roles[fiber];
        if (role == MIXES)
            role = (enum role)schedule_random(MIXES);
        if (role == READS)
            read_one(fiber);
        else if (role == SETS)
            set_one(fiber);
        else
            update_one(fiber);
    }
}

static bool check(void *context, FILE *explain)
{
    struct hf_snapshot_stats stats;

    (void)context;
    hf_snapshot_flush(rig.snapshot);
    hf_snapshot_stats(rig.snapshot, &stats);
    hf_snapshot_close(rig.snapshot);
    if (stats.kept != 0) {
        fprintf(explain, "%llu versions are kept",
                (unsigned long long)stats.kept);
        return false;
    }
    for (uint32_t i = 0; i < rig.used.value; i++) {
        if (rig.values[i].freed.value == 1)
            continue;
        fprintf(explain, "value %u of %u was freed %u times", i, rig.used.value,
                rig.values[i].freed.value);
        return false;
    }
    return linear_check(rig.checker, rig.history, explain) == LINEAR_YES;
}

static void run(const char *name, unsigned fibers, enum role a, enum role b,
                enum role c, unsigned calls)
{
    struct linear_model model = model_map();
    struct schedule_case test = {.name = name,
                                 .fibers = fibers,
                                 .setup = setup,
                                 .body = body,
                                 .check = check};

    rig.roles[0] = a;
    rig.roles[1] = b;
    rig.roles[2] = c;
    rig.calls = calls;
    rig.history = calls_new(FIBERS_MAX + 1, CALLS_MAX);
    rig.checker = linear_new(&model, (FIBERS_MAX + 1) * CALLS_MAX);
    schedule_check(&test);
    linear_free(rig.checker);
    calls_free(rig.history);
}

TEST(readers_see_the_order_of_changes_and_nothing_freed)
{
    run("one reads, one sets", 2, READS, SETS, 0, 4);
    run("one reads, two set", 3, READS, SETS, SETS, 3);
}

TEST(no_update_is_lost)
{
    run("two update", 2, UPDATES, UPDATES, 0, 3);
    run("one updates, one sets, one reads", 3, UPDATES, SETS, READS, 3);
}

TEST(anything_goes)
{
    run("three mix", 3, MIXES, MIXES, MIXES, 4);
}
