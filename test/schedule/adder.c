/* adder.c - sums between what had ended and what had begun; none lost, none
 * counted twice by resets.
 *
 * Each add is announced before and after: a sum that is asked for meanwhile
 * lies between the two.
 */
#include "holdfast/adder.h"

#include "base/atomic.h"
#include "support/schedule.h"
#include "support/test.h"

static struct {
    unsigned adders;
    unsigned resetters;
    unsigned rounds;
    struct hf_adder adder;
    struct hf_atomic_u64 begun;
    struct hf_atomic_u64 ended;
    struct hf_atomic_u64 taken; /* by resets */
} rig;

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    CHECK_EQ(hf_adder_init(&rig.adder), HF_OK);
    rig.begun.value = rig.ended.value = rig.taken.value = 0;
}

static void add(void)
{
    uint64_t amount = 1 + schedule_random(1000);

    hf_u64_add(&rig.begun, amount, __ATOMIC_ACQ_REL);
    hf_adder_add(&rig.adder, (int64_t)amount);
    hf_u64_add(&rig.ended, amount, __ATOMIC_ACQ_REL);
}

static void reset(void)
{
    int64_t sum = hf_adder_sum_and_reset(&rig.adder);

    if (sum < 0)
        schedule_wrong("a reset took %lld", (long long)sum);
    hf_u64_add(&rig.taken, (uint64_t)sum, __ATOMIC_ACQ_REL);
}

static void sum(void)
{
    uint64_t least = hf_u64_load(&rig.ended, __ATOMIC_ACQUIRE);
    int64_t found = hf_adder_sum(&rig.adder);
    uint64_t most = hf_u64_load(&rig.begun, __ATOMIC_ACQUIRE);

    if (rig.resetters > 0)
        least = 0;
    if (found < 0 || (uint64_t)found < least || (uint64_t)found > most)
        schedule_wrong("sum %lld is not in %llu .. %llu", (long long)found,
                       (unsigned long long)least, (unsigned long long)most);
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < rig.rounds; i++) {
        if (fiber < rig.adders)
            add();
        else if (fiber < rig.adders + rig.resetters)
            reset();
        else
            sum();
    }
}

static void body_reversed(void *context, unsigned fiber)
{
    body(context, 15 - fiber);
}

static bool check(void *context, FILE *explain)
{
    uint64_t left = (uint64_t)hf_adder_sum(&rig.adder);

    (void)context;
    fprintf(explain, "added %llu, resets took %llu, left %llu",
            (unsigned long long)rig.ended.value,
            (unsigned long long)rig.taken.value, (unsigned long long)left);
    hf_adder_destroy(&rig.adder);
    return rig.ended.value == rig.taken.value + left;
}

static void run(const char *name, unsigned adders, unsigned resetters,
                unsigned summers, unsigned rounds)
{
    struct schedule_case c = {.name = name,
                              .fibers = adders + resetters + summers,
                              .setup = setup,
                              .body = body,
                              .check = check};
    rig.adders = adders;
    rig.resetters = resetters;
    rig.rounds = rounds;
    schedule_check(&c);
}

TEST(a_sum_has_all_that_ended_and_nothing_that_had_not_begun)
{
    run("two add, one sums", 2, 0, 1, 4);
}

TEST(every_add_is_in_exactly_one_reset)
{
    run("two add, two reset", 2, 2, 0, 3);
}

TEST(a_sum_is_never_of_what_a_reset_took_and_more)
{
    run("one adds, one resets, one sums", 1, 1, 1, 4);
}

/* Slot 16 lies in a chunk that its thread makes. */
TEST(a_sum_finds_records_that_are_made_meanwhile)
{
    struct schedule_case c = {.name = "sixteen",
                              .fibers = 16,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .schedules = 2000};
    rig.rounds = 1;
    rig.resetters = 0;
    rig.adders = 16;
    schedule_check(&c);
    c.body = body_reversed; /* so that the last one adds */
    rig.resetters = 1;
    rig.adders = 12;
    schedule_check(&c);
}
