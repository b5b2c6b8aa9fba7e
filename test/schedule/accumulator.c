/* accumulator.c - every value is in exactly one result, and in all until then.
 *
 * With + as the function, results add up to what was added only if nothing is
 * lost or taken twice. With max, a value that changes nothing writes nothing:
 * it must still be in a result.
 */
#include "holdfast/accumulator.h"

#include "base/atomic.h"
#include "support/schedule.h"
#include "support/test.h"

static uint64_t plus(uint64_t a, uint64_t b)
{
    return a + b;
}

static struct {
    uint64_t (*function)(uint64_t a, uint64_t b);
    uint64_t identity;
    unsigned adders;
    unsigned resetters;
    unsigned rounds;
    struct hf_accumulator acc;
    struct hf_atomic_u64 begun; /* all values that were begun, combined */
    struct hf_atomic_u64 ended;
    struct hf_atomic_u64 taken; /* all results of resets, combined */
} rig;

static void combine(struct hf_atomic_u64 *into, uint64_t value)
{
    uint64_t old = hf_u64_load(into, __ATOMIC_RELAXED);

    while (!hf_u64_cas(into, &old, rig.function(old, value), __ATOMIC_ACQ_REL))
        continue;
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    CHECK_EQ(hf_accumulator_init(&rig.acc, rig.function, rig.identity), HF_OK);
    rig.begun.value = rig.ended.value = rig.taken.value = rig.identity;
}

static void add(void)
{
    uint64_t value = 1 + schedule_random(10);

    combine(&rig.begun, value);
    hf_accumulator_add(&rig.acc, value);
    combine(&rig.ended, value);
}

/* With resets: a value that ended before is in it, or in what was taken, and
 * that is known only after. */
static void look(void)
{
    uint64_t ended = hf_u64_load(&rig.ended, __ATOMIC_ACQUIRE);
    uint64_t found = hf_accumulator_value(&rig.acc);
    uint64_t begun = hf_u64_load(&rig.begun, __ATOMIC_ACQUIRE);

    if (rig.resetters > 0)
        ended = rig.identity;
    bool inside = rig.function == hf_accumulate_min
                      ? found <= ended && found >= begun
                      : found >= ended && found <= begun;
    if (!inside)
        schedule_wrong("value %llu is not in %llu .. %llu",
                       (unsigned long long)found, (unsigned long long)ended,
                       (unsigned long long)begun);
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < rig.rounds; i++) {
        if (fiber < rig.adders)
            add();
        else if (fiber < rig.adders + rig.resetters)
            combine(&rig.taken, hf_accumulator_value_and_reset(&rig.acc));
        else
            look();
    }
}

static void body_reversed(void *context, unsigned fiber)
{
    body(context, 15 - fiber);
}

static bool check(void *context, FILE *explain)
{
    uint64_t left = hf_accumulator_value(&rig.acc);
    uint64_t all = rig.function(rig.taken.value, left);

    (void)context;
    fprintf(explain, "added %llu, resets took %llu, left %llu",
            (unsigned long long)rig.ended.value,
            (unsigned long long)rig.taken.value, (unsigned long long)left);
    hf_accumulator_destroy(&rig.acc);
    return all == rig.ended.value;
}

static void run(const char *name, uint64_t (*function)(uint64_t, uint64_t),
                uint64_t identity, unsigned adders, unsigned resetters,
                unsigned lookers)
{
    struct schedule_case c = {.name = name,
                              .fibers = adders + resetters + lookers,
                              .setup = setup,
                              .body = body,
                              .check = check};
    rig.function = function;
    rig.identity = identity;
    rig.adders = adders;
    rig.resetters = resetters;
    rig.rounds = 3;
    schedule_check(&c);
}

TEST(a_value_has_all_that_ended_and_nothing_that_had_not_begun)
{
    run("max", hf_accumulate_max, 0, 2, 0, 1);
    run("min", hf_accumulate_min, UINT64_MAX, 2, 0, 1);
    run("plus", plus, 0, 2, 0, 1);
}

TEST(every_add_is_in_exactly_one_reset)
{
    run("plus, two reset", plus, 0, 2, 2, 0);
    run("plus, one resets, one looks", plus, 0, 2, 1, 1);
}

TEST(a_value_that_changes_nothing_is_in_a_result_too)
{
    run("max, two reset", hf_accumulate_max, 0, 2, 2, 0);
    run("min, two reset", hf_accumulate_min, UINT64_MAX, 2, 2, 0);
}

/* Slot 16 lies in a chunk that its thread makes. */
TEST(records_are_made_while_others_look)
{
    struct schedule_case c = {.name = "sixteen",
                              .fibers = 16,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .schedules = 1000};
    rig.function = plus;
    rig.identity = 0;
    rig.adders = 16;
    rig.resetters = 0;
    rig.rounds = 1;
    schedule_check(&c);
    c.body = body_reversed; /* so that the last one adds */
    rig.adders = 8;
    rig.resetters = 2;
    schedule_check(&c);
}
