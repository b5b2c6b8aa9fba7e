/* barrier.c - the cyclic barrier, step by step. */
#include "holdfast/barrier.h"

#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 4
#define ROUNDS 3

static struct {
    struct hf_barrier barrier;
    uint32_t actions;                /* runs of the action */
    uint32_t plain[2][FIBERS];       /* of this round and of the one before */
    uint32_t summed[2];              /* by the action */
    uint32_t indexes[ROUNDS];        /* bits of the indexes that were told */
    unsigned count[HF_STATUS_COUNT]; /* how waits ended */
    uint64_t index_sum;              /* of those that went on */
    unsigned gone;                   /* fibers that are done */
} test;

static void begin(uint32_t parties, void (*action)(void *context))
{
    struct hf_barrier_opts opts = {.parties = parties, .action = action};

    memset(&test, 0, sizeof test);
    if (hf_barrier_init(&test.barrier, &opts) != HF_OK)
        test_fail(__FILE__, __LINE__, "no barrier");
}

/* ---- Meeting again and again. ---- */

static void sum_up(void *context)
{
    const uint32_t *plain = test.plain[test.actions % 2];

    (void)context;
    test.summed[test.actions % 2] = plain[0] + plain[1] + plain[2];
    test.actions++;
}

static void meet_setup(void *context, uint64_t seed)
{
    (void)context;
    begin(3, seed % 2 == 0 ? sum_up : NULL);
}

/* All is plain: a thread sanitizer sees who does not come before whom. */
static void meet_body(void *context, unsigned fiber)
{
    (void)context;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t *plain = test.plain[round % 2];
        uint32_t index = FIBERS;
        plain[fiber] = round + 1;
        if (hf_barrier_wait(&test.barrier, HF_FOREVER, &index) != HF_OK)
            schedule_wrong("wait");
        if (plain[0] + plain[1] + plain[2] != 3 * (round + 1))
            schedule_wrong("the others had not come");
        if (test.barrier.action != NULL &&
            test.summed[round % 2] != 3 * (round + 1))
            schedule_wrong("the action had not run");
        if (index >= 3)
            schedule_wrong("index %u", index);
        __atomic_fetch_or(&test.indexes[round], 1u << index, __ATOMIC_RELAXED);
    }
}

static bool meet_check(void *context, FILE *explain)
{
    struct hf_barrier_stats stats;

    (void)context;
    hf_barrier_stats(&test.barrier, &stats);
    hf_barrier_destroy(&test.barrier);
    fprintf(explain, "generation %llu, %u actions, indexes %x %x %x",
            (unsigned long long)stats.generation, test.actions, test.indexes[0],
            test.indexes[1], test.indexes[2]);
    for (int i = 0; i < ROUNDS; i++)
        if (test.indexes[i] != 7)
            return false;
    return stats.generation == ROUNDS && stats.arrived == 0 &&
           (test.barrier.action == NULL || test.actions == ROUNDS);
}

TEST(all_meet_in_each_round)
{
    struct schedule_case c = {.name = "barrier rounds",
                              .fibers = 3,
                              .setup = meet_setup,
                              .body = meet_body,
                              .check = meet_check};
    schedule_check(&c);
}

/* ---- More threads than parties. ---- */

static void count_up(void *context)
{
    (void)context;
    test.actions++;
}

static void crowd_setup(void *context, uint64_t seed)
{
    (void)context;
    begin(2, seed % 2 == 0 ? count_up : NULL);
}

static void come(uint64_t deadline_ns)
{
    uint32_t index = 0;
    enum hf_status status = hf_barrier_wait(&test.barrier, deadline_ns, &index);

    __atomic_fetch_add(&test.count[status], 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&test.index_sum, index, __ATOMIC_RELAXED);
}

static unsigned gone(void)
{
    return __atomic_load_n(&test.gone, __ATOMIC_SEQ_CST);
}

static void go(void)
{
    __atomic_fetch_add(&test.gone, 1, __ATOMIC_SEQ_CST);
}

/* Three come twice each, and any two of them may meet. Whoever is left alone
 * meets the fourth. */
static void crowd_body(void *context, unsigned fiber)
{
    struct hf_barrier_stats stats;

    (void)context;
    if (fiber < FIBERS - 1) {
        come(HF_FOREVER);
        come(HF_FOREVER);
        go();
        return;
    }
    while (gone() < FIBERS - 1) {
        hf_barrier_stats(&test.barrier, &stats);
        if (stats.arrived == 1)
            come(schedule_now_ns() + 100000000);
    }
}

static bool crowd_check(void *context, FILE *explain)
{
    struct hf_barrier_stats stats;
    unsigned met = test.count[HF_OK];

    (void)context;
    hf_barrier_stats(&test.barrier, &stats);
    fprintf(explain, "%u went on in %llu generations, %u timed out", met,
            (unsigned long long)stats.generation, test.count[HF_TIMEOUT]);
    /* Of each pair one was 0 and one was 1. */
    return met == 2 * stats.generation && test.index_sum == stats.generation &&
           (test.barrier.action == NULL || test.actions == stats.generation ||
            stats.broken);
}

TEST(any_two_of_many_meet)
{
    struct schedule_case c = {.name = "barrier crowd",
                              .fibers = FIBERS,
                              .setup = crowd_setup,
                              .body = crowd_body,
                              .check = crowd_check};
    schedule_check(&c);
}

/* ---- All or none. ---- */

static void some_setup(void *context, uint64_t seed)
{
    (void)context;
    begin(3, seed % 2 == 0 ? count_up : NULL);
}

static uint64_t some_deadline(void)
{
    static const uint64_t spans[] = {0, 300, 3000, 30000};

    return schedule_random(2) ? HF_FOREVER
                              : SCHEDULE_START_NS + spans[schedule_random(4)];
}

/* Three come; the fourth may break, reset or shut it. Nobody stays behind,
 * since whoever is cancelled comes no more, and the fourth shuts in the end. */
static void some_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber < 3) {
        come(some_deadline());
        go();
        return;
    }
    switch (schedule_random(5)) {
    case 0:
        hf_barrier_break(&test.barrier);
        break;
    case 1:
        (void)hf_barrier_reset(&test.barrier);
        break;
    case 2:
        (void)hf_barrier_reset(&test.barrier);
        hf_barrier_break(&test.barrier);
        (void)hf_barrier_reset(&test.barrier);
        break;
    default:
        break;
    }
    /* After a reset those who came later wait for those who have gone. */
    uint64_t until_ns = schedule_now_ns() + 1000000;
    while (schedule_now_ns() < until_ns && gone() < 3)
        hf_barrier_stats(&test.barrier, &(struct hf_barrier_stats){0});
    hf_barrier_shutdown(&test.barrier);
}

static bool some_check(void *context, FILE *explain)
{
    struct hf_barrier_stats stats;
    const unsigned *count = test.count;

    (void)context;
    hf_barrier_stats(&test.barrier, &stats);
    hf_barrier_destroy(&test.barrier);
    fprintf(explain, "%u ok, %u timed out, %u cancelled, %u closed",
            count[HF_OK], count[HF_TIMEOUT], count[HF_CANCELLED],
            count[HF_CLOSED]);
    if (count[HF_OK] != 0 && (count[HF_OK] != 3 || test.index_sum != 3))
        return false;
    if (count[HF_OK] == 3 && test.barrier.action != NULL && test.actions != 1)
        return false;
    return stats.arrived == 0 && count[HF_OK] + count[HF_TIMEOUT] +
                                         count[HF_CANCELLED] +
                                         count[HF_CLOSED] ==
                                     3;
}

TEST(all_go_on_or_none_does)
{
    struct schedule_case c = {.name = "barrier all or none",
                              .fibers = FIBERS,
                              .setup = some_setup,
                              .body = some_body,
                              .check = some_check,
                              .schedules = 40000};
    schedule_check(&c);
}

/* ---- After a reset the next generation is whole. ---- */

static void reset_setup(void *context, uint64_t seed)
{
    (void)context;
    begin(2, seed % 2 == 0 ? count_up : NULL);
}

/* Two meet three times. Whoever is cancelled tries the same meeting again; the
 * third resets now and then. Were a waiter of a generation that was reset told
 * that it went on, one would be a meeting ahead and the last would be left. */
static void reset_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 2) {
        for (int i = 0; i < 3; i++)
            (void)hf_barrier_reset(&test.barrier);
        return;
    }
    for (uint32_t meeting = 1; meeting <= 3; meeting++) {
        enum hf_status status;
        do
            status = hf_barrier_wait(&test.barrier, HF_FOREVER, NULL);
        while (status == HF_CANCELLED);
        if (status != HF_OK)
            schedule_wrong("%s", hf_status_text(status));
        test.plain[0][fiber] = meeting;
    }
}

static bool reset_check(void *context, FILE *explain)
{
    struct hf_barrier_stats stats;

    (void)context;
    hf_barrier_stats(&test.barrier, &stats);
    fprintf(explain, "meetings %u and %u, arrived %u", test.plain[0][0],
            test.plain[0][1], stats.arrived);
    return stats.arrived == 0 && !stats.broken && stats.generation >= 3 &&
           stats.generation <= 6;
}

TEST(a_reset_ends_one_generation_and_no_other)
{
    struct schedule_case c = {.name = "barrier reset",
                              .fibers = 3,
                              .setup = reset_setup,
                              .body = reset_body,
                              .check = reset_check,
                              .schedules = 20000};
    schedule_check(&c);
}
