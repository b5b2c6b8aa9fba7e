/* gates.c - real threads at latches, barriers and phasers.
 *
 * tests: also under sanitizers
 *
 * More threads than processors, so that the system stops them at any place.
 * Whoever is forgotten leaves the run hanging, and it is stopped as failed.
 */
#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/random.h"
#include "holdfast/barrier.h"
#include "holdfast/latch.h"
#include "holdfast/phaser.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32

/* Fewer rounds where each step takes longer. */
static int rounds(int count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 4 : count;
}

static struct hf_atomic_u32 errors;

static void expect(bool condition)
{
    if (!condition)
        hf_u32_add(&errors, 1, __ATOMIC_RELAXED);
}

static void check_errors(void)
{
    CHECK_EQ(hf_u32_swap(&errors, 0, __ATOMIC_RELAXED), 0);
}

/* ---- A latch on the stack of the one who waits. ---- */

#define WORKERS 3

static struct hf_atomic_ptr jobs[WORKERS];
static int results[WORKERS]; /* plain: the latch orders it */

static void count_down(int worker)
{
    struct hf_latch *latch;

    /* Acquire: the latch that was made. */
    while ((latch = hf_ptr_swap(&jobs[worker], NULL, __ATOMIC_ACQUIRE)) == NULL)
        sched_yield();
    results[worker]++;
    expect(hf_latch_count_down(latch, 1) == HF_OK);
}

__attribute__((noinline)) static void wait_for_workers(int round)
{
    struct hf_latch latch;

    expect(hf_latch_init(&latch, WORKERS, NULL) == HF_OK);
    /* Release: the latch. */
    for (int i = 0; i < WORKERS; i++)
        hf_ptr_store(&jobs[i], &latch, __ATOMIC_RELEASE);
    expect(hf_latch_wait(&latch, HF_FOREVER) == HF_OK);
    hf_latch_destroy(&latch);
    for (int i = 0; i < WORKERS; i++)
        expect(results[i] == round + 1);
    memset(&latch, 0x5a, sizeof latch);
}

static void latch_body(void *context, int index)
{
    int count = *(int *)context;

    for (int i = 0; i < count; i++) {
        if (index == 0)
            wait_for_workers(i);
        else
            count_down(index - 1);
    }
}

TEST(a_latch_may_live_on_the_stack_of_the_waiter)
{
    int count = rounds(20000);

    memset(results, 0, sizeof results);
    test_threads(1 + WORKERS, latch_body, &count);
    check_errors();
}

/* ---- A barrier for many threads. ---- */

static struct {
    struct hf_barrier barrier;
    int rounds;
    int plain[2][THREADS];
    int actions;
} meeting;

static void add_action(void *context)
{
    (void)context;
    meeting.actions++;
}

static void meet_body(void *context, int index)
{
    (void)context;
    for (int round = 0; round < meeting.rounds; round++) {
        int *plain = meeting.plain[round % 2];
        uint32_t order = THREADS;
        plain[index] = round;
        expect(hf_barrier_wait(&meeting.barrier, HF_FOREVER, &order) == HF_OK);
        expect(order < THREADS);
        expect(meeting.actions == round + 1);
        for (int i = 0; i < THREADS; i++)
            expect(plain[i] == round);
    }
}

TEST(thirty_two_threads_meet_at_a_barrier)
{
    struct hf_barrier_opts opts = {.parties = THREADS, .action = add_action};

    memset(&meeting, 0, sizeof meeting);
    meeting.rounds = rounds(3000);
    CHECK_EQ(hf_barrier_init(&meeting.barrier, &opts), HF_OK);
    test_threads(THREADS, meet_body, NULL);
    check_errors();
    CHECK_EQ(meeting.actions, meeting.rounds);
    hf_barrier_destroy(&meeting.barrier);
}

/* ---- All or none, with deadlines that are all but over. ---- */

static struct {
    struct hf_barrier barrier;
    struct hf_barrier start; /* of each round, and its end */
    int rounds;
    struct hf_atomic_u32 went_on;
    int whole; /* rounds in which all did */
} luck;

static void luck_body(void *context, int index)
{
    const struct hf_clock *clock = hf_clock_system();
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int round = 0; round < luck.rounds; round++) {
        uint32_t order = 0;
        uint64_t span_ns = hf_random_below(&random, 200000);
        expect(hf_barrier_wait(&luck.start, HF_FOREVER, &order) == HF_OK);
        enum hf_status status = hf_barrier_wait(
            &luck.barrier, hf_clock_now_ns(clock) + span_ns, NULL);
        expect(status == HF_OK || status == HF_TIMEOUT ||
               status == HF_CANCELLED);
        if (status == HF_OK)
            hf_u32_add(&luck.went_on, 1, __ATOMIC_RELAXED);
        expect(hf_barrier_wait(&luck.start, HF_FOREVER, &order) == HF_OK);
        if (order != 0)
            continue;
        /* One looks, the others are on their way to the next start. */
        uint32_t went_on = hf_u32_swap(&luck.went_on, 0, __ATOMIC_RELAXED);
        expect(went_on == 0 || went_on == 4);
        luck.whole += went_on == 4;
        expect(hf_barrier_reset(&luck.barrier) == HF_OK);
    }
}

TEST(all_go_on_or_none_does)
{
    struct hf_barrier_opts opts = {.parties = 4};

    memset(&luck, 0, sizeof luck);
    luck.rounds = rounds(5000);
    CHECK_EQ(hf_barrier_init(&luck.barrier, &opts), HF_OK);
    CHECK_EQ(hf_barrier_init(&luck.start, &opts), HF_OK);
    test_threads(4, luck_body, NULL);
    check_errors();
    printf("all met in %d of %d rounds\n", luck.whole, luck.rounds);
    hf_barrier_destroy(&luck.barrier);
    hf_barrier_destroy(&luck.start);
}

/* ---- A phaser whose parties come and go. ---- */

static struct {
    struct hf_phaser phaser;
    int rounds;
    struct hf_atomic_u64 arrivals;
    uint64_t advances;
} party;

static bool add_advance(void *context, uint32_t phase, uint32_t parties)
{
    (void)context;
    expect(phase == (uint32_t)party.advances);
    party.advances++;
    return parties == 0;
}

/* A guest takes part for some phases and leaves; the host is always there and
 * goes last. */
static void guest(struct hf_random *random)
{
    uint32_t phase = 0;
    uint32_t next = 0;
    uint64_t stay = 1 + hf_random_below(random, 4);

    expect(hf_phaser_register(&party.phaser, 1, HF_FOREVER, &phase) == HF_OK);
    for (; stay > 0; stay--, phase++) {
        expect(hf_phaser_arrive_and_wait(&party.phaser, HF_FOREVER, &next) ==
               HF_OK);
        expect(next == phase + 1);
    }
    expect(hf_phaser_arrive_and_deregister(&party.phaser, &next) == HF_OK);
    expect(next == phase);
}

static void party_body(void *context, int index)
{
    struct hf_random random;
    struct hf_phaser_stats stats;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    if (index > 0) {
        for (int i = 0; i < party.rounds; i++)
            guest(&random);
        hf_u64_add(&party.arrivals, 1, __ATOMIC_SEQ_CST);
        return;
    }
    do {
        expect(hf_phaser_arrive_and_wait(&party.phaser, HF_FOREVER, NULL) ==
               HF_OK);
        hf_phaser_stats(&party.phaser, &stats);
        expect(stats.arrived <= stats.parties);
    } while (hf_u64_load(&party.arrivals, __ATOMIC_SEQ_CST) < 15);
    expect(hf_phaser_arrive_and_deregister(&party.phaser, NULL) == HF_OK);
}

TEST(parties_come_and_go)
{
    struct hf_phaser_opts opts = {.parties = 1, .on_advance = add_advance};
    struct hf_phaser_stats stats;

    memset(&party, 0, sizeof party);
    party.rounds = rounds(1000);
    CHECK_EQ(hf_phaser_init(&party.phaser, &opts), HF_OK);
    test_threads(16, party_body, NULL);
    check_errors();
    hf_phaser_stats(&party.phaser, &stats);
    CHECK(stats.ended);
    CHECK_EQ(stats.phase, party.advances);
    hf_phaser_destroy(&party.phaser);
}

/* ---- A thread that is stopped while it arrives stops nobody. ---- */

static struct {
    struct hf_latch latch;
    struct hf_phaser phaser;
    struct hf_atomic_u32 over;
    struct hf_atomic_u64 arrivals; /* of both threads */
} road;

static void arrive(void)
{
    expect(hf_latch_count_down(&road.latch, 1) == HF_OK);
    expect(hf_phaser_arrive(&road.phaser, NULL) == HF_OK);
    hf_u64_add(&road.arrivals, 1, __ATOMIC_RELAXED);
}

static void *victim_main(void *unused)
{
    while (!hf_u32_load(&road.over, __ATOMIC_RELAXED))
        arrive();
    return unused;
}

TEST(a_stopped_thread_stops_nobody)
{
    struct hf_phaser_opts opts = {.parties = 7};
    pthread_t victim;
    int count = rounds(500);

    memset(&road, 0, sizeof road);
    CHECK_EQ(hf_phaser_init(&road.phaser, &opts), HF_OK);
    CHECK_EQ(hf_latch_init(&road.latch, UINT32_MAX, NULL), HF_OK);
    stall_init();
    CHECK_EQ(pthread_create(&victim, NULL, victim_main, NULL), 0);
    for (int i = 0; i < count; i++) {
        struct stall *stall = stall_stop(victim);
        for (int j = 0; j < 1000; j++)
            arrive();
        stall_resume(stall);
        sched_yield();
    }
    hf_u32_store(&road.over, 1, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_join(victim, NULL), 0);
    check_errors();
    CHECK_EQ(hf_latch_count(&road.latch), UINT32_MAX - road.arrivals.value);
    CHECK_EQ(hf_phaser_phase(&road.phaser), road.arrivals.value / 7);
    hf_latch_destroy(&road.latch);
    hf_phaser_destroy(&road.phaser);
}
