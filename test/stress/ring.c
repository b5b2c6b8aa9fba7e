/* ring.c - the bounded queue under real threads, every mode.
 *
 * tests: also under sanitizers
 */
#include "holdfast/ring.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/random.h"
#include "base/thread.h"
#include "holdfast/clock.h"
#include "support/calls.h"
#include "support/models.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define DEADLINE_MS 60000

static uint64_t scaled(uint64_t plain, uint64_t sanitized)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? sanitized : plain;
}

static struct hf_ring *open_ring(uint64_t capacity, enum hf_ring_mode mode)
{
    struct hf_ring *ring = NULL;
    struct hf_ring_opts opts = {.capacity = capacity, .mode = mode};

    CHECK_EQ(hf_ring_open(&ring, &opts), HF_OK);
    return ring;
}

/* May this thread put, may it take? Thread 0 is the one of a side that has
 * one; in HF_RING_SPSC thread 1 is the other. */
static bool puts_in(enum hf_ring_mode mode, unsigned thread)
{
    return mode == HF_RING_MPMC || (mode == HF_RING_MPSC) == (thread != 0);
}

static bool takes_in(enum hf_ring_mode mode, unsigned thread)
{
    return mode == HF_RING_MPMC || !puts_in(mode, thread);
}

struct item {
    uint64_t number; /* plain: written before put, read after take */
};

/* ---- Histories: is there an order that explains all answers? ---- */

#define ROUND_THREADS 3
#define ROUND_CALLS   200

struct rounds {
    struct hf_ring *ring;
    enum hf_ring_mode mode;
    unsigned threads;
    struct calls *history;
    struct linear *checker;
    pthread_barrier_t gate;
    uint64_t count;
    uint64_t good;    /* of thread 0 */
    uint64_t refused; /* of thread 0: answers "full" and "empty" */
    struct item items[ROUND_THREADS][ROUND_CALLS];
};

static void round_calls(struct rounds *rounds, unsigned thread,
                        struct hf_random *random, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        bool put = puts_in(rounds->mode, thread);

        if (put && takes_in(rounds->mode, thread))
            put = hf_random_below(random, 2) == 0;
        struct item *item = &rounds->items[thread][i];
        if (put)
            item->number = thread * 1000 + i + 1;
        struct call *call = calls_begin(rounds->history, thread,
                                        put ? MODEL_PUT : MODEL_TAKE_FIRST, 0,
                                        put ? item->number : 0);
        if (put) {
            calls_end(rounds->history, call, hf_ring_put(rounds->ring, item),
                      0);
            continue;
        }
        void *found = NULL;
        enum hf_status status = hf_ring_take(rounds->ring, &found);
        calls_end(rounds->history, call, status,
                  status == HF_OK ? ((struct item *)found)->number : 0);
    }
}

static void round_end(struct rounds *rounds)
{
    static struct call calls[ROUND_THREADS * ROUND_CALLS];
    size_t count = calls_collect(rounds->history, calls);
    void *item;

    for (size_t i = 0; i < count; i++)
        rounds->refused += calls[i].result != HF_OK;
    rounds->good +=
        linear_check(rounds->checker, rounds->history, stdout) == LINEAR_YES;
    while (hf_ring_take(rounds->ring, &item) == HF_OK)
        continue;
    calls_clear(rounds->history);
}

static void round_body(void *context, int index)
{
    struct rounds *rounds = context;
    struct hf_random random;

    hf_random_init(&random, test_seed() + (unsigned)index);
    for (uint64_t round = 0; round < rounds->count; round++) {
        pthread_barrier_wait(&rounds->gate);
        /* Short rounds start together more often, long ones go further. */
        round_calls(rounds, (unsigned)index, &random,
                    round % 4 == 0 ? ROUND_CALLS : 20);
        pthread_barrier_wait(&rounds->gate);
        if (index == 0)
            round_end(rounds);
    }
}

static void check_rounds(enum hf_ring_mode mode, uint32_t capacity)
{
    static struct rounds rounds;
    struct model_list list = {.room = capacity, .bounded = true};
    struct linear_model model = model_list(&list);

    memset(&rounds, 0, sizeof rounds);
    rounds.ring = open_ring(capacity, mode);
    rounds.mode = mode;
    rounds.threads = mode == HF_RING_SPSC ? 2 : ROUND_THREADS;
    rounds.history = calls_new(ROUND_THREADS, ROUND_CALLS);
    rounds.checker = linear_new(&model, ROUND_THREADS * ROUND_CALLS);
    rounds.count = scaled(1500, 60);
    CHECK_EQ(pthread_barrier_init(&rounds.gate, NULL, rounds.threads), 0);
    test_threads((int)rounds.threads, round_body, &rounds);
    CHECK_EQ(rounds.good, rounds.count);
    CHECK(rounds.refused > 0); /* else the test asked nothing */
    pthread_barrier_destroy(&rounds.gate);
    linear_free(rounds.checker);
    calls_free(rounds.history);
    hf_ring_close(rounds.ring);
}

TEST(every_history_has_an_order)
{
    for (enum hf_ring_mode mode = HF_RING_MPMC; mode <= HF_RING_SPMC; mode++) {
        check_rounds(mode, 1);
        check_rounds(mode, 3);
        check_rounds(mode, 16);
    }
}

/* ---- Long runs: nothing is lost, doubled or overtaken. ---- */

#define CROWD_MAX  32
#define ITEMS_MAX  200000
#define BULK       7
#define FROM_SHIFT 32

struct crowd {
    struct hf_ring *ring;
    unsigned puts;  /* threads that put; the others take */
    uint64_t items; /* of each that puts */
    bool bulk;
    bool first_takes;           /* thread 0 takes, else it puts */
    struct hf_atomic_u64 left;  /* items to be taken */
    struct hf_atomic_u64 wrong; /* items out of order */
    uint64_t sums[CROWD_MAX];
};

static struct item crowd_items[ITEMS_MAX];

static void crowd_put(struct crowd *crowd, unsigned thread)
{
    struct item *own =
        &crowd_items[(thread - crowd->first_takes) * crowd->items];
    void *items[BULK];
    uint64_t sum = 0;
    size_t held = 0;

    for (uint64_t i = 0; i < crowd->items || held > 0;) {
        for (; held < (crowd->bulk ? BULK : 1) && i < crowd->items; i++) {
            struct item *item = &own[i];
            item->number = (uint64_t)thread << FROM_SHIFT | (i + 1);
            sum += item->number;
            items[held++] = item;
        }
        size_t done = crowd->bulk ? hf_ring_put_many(crowd->ring, items, held)
                                  : hf_ring_put(crowd->ring, items[0]) == HF_OK;
        held -= done;
        memmove(items, items + done, held * sizeof *items);
        if (done == 0)
            hf_thread_yield();
    }
    crowd->sums[thread] = sum;
}

static void crowd_take(struct crowd *crowd, unsigned thread)
{
    uint64_t last[CROWD_MAX] = {0};
    void *items[BULK];
    uint64_t sum = 0;

    while (hf_u64_load(&crowd->left, __ATOMIC_RELAXED) > 0) {
        size_t done = crowd->bulk ? hf_ring_take_many(crowd->ring, items, BULK)
                                  : hf_ring_take(crowd->ring, items) == HF_OK;
        for (size_t i = 0; i < done; i++) {
            uint64_t number = ((struct item *)items[i])->number;
            uint64_t from = number >> FROM_SHIFT;

            if (from >= CROWD_MAX || number <= last[from]) {
                hf_u64_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
                continue;
            }
            last[from] = number;
            sum += number;
        }
        if (done > 0)
            hf_u64_sub(&crowd->left, done, __ATOMIC_RELAXED);
        else
            hf_thread_yield();
    }
    crowd->sums[thread] = sum;
}

static void crowd_body(void *context, int index)
{
    struct crowd *crowd = context;
    unsigned thread = (unsigned)index;
    bool takes = crowd->first_takes ? thread == 0 : thread >= crowd->puts;

    if (takes)
        crowd_take(crowd, thread);
    else
        crowd_put(crowd, thread);
}

static void check_crowd(enum hf_ring_mode mode, uint64_t capacity,
                        unsigned puts, unsigned takes, bool bulk)
{
    struct crowd crowd = {.ring = open_ring(capacity, mode),
                          .puts = puts,
                          .items = scaled(ITEMS_MAX, ITEMS_MAX / 20) / puts,
                          .bulk = bulk,
                          .first_takes = mode == HF_RING_MPSC};
    struct hf_ring_stats stats;
    uint64_t put = 0;
    uint64_t taken = 0;

    crowd.left.value = crowd.items * puts;
    test_threads((int)(puts + takes), crowd_body, &crowd);
    for (unsigned i = 0; i < puts + takes; i++)
        if (crowd.first_takes ? i == 0 : i >= puts)
            taken += crowd.sums[i];
        else
            put += crowd.sums[i];
    CHECK_EQ(crowd.wrong.value, 0);
    CHECK_EQ(crowd.left.value, 0);
    CHECK_EQ(taken, put);
    hf_ring_stats(crowd.ring, &stats);
    CHECK_EQ(stats.size, 0);
    CHECK_EQ(stats.puts, crowd.items * puts);
    CHECK_EQ(stats.takes, crowd.items * puts);
    hf_ring_close(crowd.ring);
}

TEST(nothing_is_lost_doubled_or_overtaken)
{
    for (int bulk = 0; bulk <= 1; bulk++) {
        check_crowd(HF_RING_MPMC, 5, 2, 2, bulk);
        check_crowd(HF_RING_MPMC, 100, 4, 4, bulk);
        check_crowd(HF_RING_SPSC, 5, 1, 1, bulk);
        check_crowd(HF_RING_SPSC, 100, 1, 1, bulk);
        check_crowd(HF_RING_MPSC, 5, 3, 1, bulk);
        check_crowd(HF_RING_SPMC, 5, 1, 3, bulk);
    }
}

/* More threads than records come with open. */
TEST(thirty_two_threads_on_few_processors)
{
    check_crowd(HF_RING_MPMC, 3, 16, 16, false);
    check_crowd(HF_RING_MPMC, 1000, 16, 16, true);
    check_crowd(HF_RING_MPSC, 8, 31, 1, false);
}

/* ---- A stopped thread stops nobody. ---- */

#define STALL_THREADS 3

struct stalled {
    struct hf_ring *ring;
    struct hf_atomic_u32 over;
    struct hf_atomic_u64 calls[STALL_THREADS]; /* each its thread's own */
    uint64_t balance[STALL_THREADS];           /* put minus taken */
    pthread_t threads[STALL_THREADS];
};

struct stalled_thread {
    struct stalled *stalled;
    unsigned index;
};

static void *stalled_main(void *argument)
{
    struct stalled_thread *self = argument;
    struct stalled *stalled = self->stalled;
    uint64_t balance = 0;

    for (uint64_t i = 1; hf_u32_load(&stalled->over, __ATOMIC_RELAXED) == 0;
         i++) {
        void *item = (void *)(uintptr_t)(i << 2 | self->index);

        if (hf_ring_put(stalled->ring, item) == HF_OK)
            balance += (uintptr_t)item;
        if (hf_ring_take(stalled->ring, &item) == HF_OK)
            balance -= (uintptr_t)item;
        hf_u64_add(&stalled->calls[self->index], 1, __ATOMIC_RELAXED);
    }
    stalled->balance[self->index] = balance;
    return NULL;
}

/* Waits until the thread has made so many calls more. */
static bool gets_on(struct stalled *stalled, unsigned thread, uint64_t calls)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), DEADLINE_MS);
    uint64_t from = hf_u64_load(&stalled->calls[thread], __ATOMIC_RELAXED);

    while (hf_u64_load(&stalled->calls[thread], __ATOMIC_RELAXED) <
           from + calls) {
        if (hf_clock_now_ns(hf_clock_system()) > deadline_ns)
            return false;
        hf_thread_yield();
    }
    return true;
}

static void check_stalled(uint64_t capacity)
{
    static struct stalled stalled;
    static struct stalled_thread selves[STALL_THREADS];
    bool alive = true;
    uint64_t balance = 0;
    void *item;

    memset(&stalled, 0, sizeof stalled);
    stalled.ring = open_ring(capacity, HF_RING_MPMC);
    for (unsigned i = 0; i < STALL_THREADS; i++) {
        selves[i] = (struct stalled_thread){&stalled, i};
        CHECK_EQ(
            pthread_create(&stalled.threads[i], NULL, stalled_main, &selves[i]),
            0);
    }
    for (uint64_t i = 0; i < scaled(40, 10) && alive; i++) {
        unsigned stopped = (unsigned)(i % STALL_THREADS);
        struct stall *stall = stall_stop(stalled.threads[stopped]);

        for (unsigned k = 0; k < STALL_THREADS; k++)
            alive = alive && (k == stopped || gets_on(&stalled, k, 200));
        stall_resume(stall);
    }
    hf_u32_store(&stalled.over, 1, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < STALL_THREADS; i++) {
        pthread_join(stalled.threads[i], NULL);
        balance += stalled.balance[i];
    }
    CHECK(alive);
    while (hf_ring_take(stalled.ring, &item) == HF_OK)
        balance -= (uintptr_t)item;
    CHECK_EQ(balance, 0);
    hf_ring_close(stalled.ring);
}

TEST(a_stopped_thread_stops_nobody)
{
    stall_init();
    check_stalled(2);
    check_stalled(64);
}
