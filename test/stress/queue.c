/* queue.c - the unbounded queue under real threads.
 *
 * tests: also under sanitizers
 */
#include "holdfast/queue.h"

#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/random.h"
#include "holdfast/clock.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/server.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define DEADLINE_MS 60000

static uint64_t scaled(uint64_t plain, uint64_t sanitized)
{
    return test_is_sanitized() ? sanitized : plain;
}

static struct hf_queue *open_queue(uint32_t segment)
{
    struct hf_queue *queue = NULL;
    struct hf_queue_opts opts = {.segment = segment};

    CHECK_EQ(hf_queue_open(&queue, &opts), HF_OK);
    return queue;
}

/* ---- Histories: is there an order that explains all answers? ---- */

#define ROUND_THREADS 4
#define ROUND_CALLS   400

struct item {
    uint64_t number; /* plain: written before put, read after take */
};

struct rounds {
    struct hf_queue *queue;
    struct calls *history;
    struct linear *checker;
    pthread_barrier_t gate;
    uint64_t count;
    uint64_t good; /* of thread 0 */
    struct item items[ROUND_THREADS][ROUND_CALLS];
};

static void round_calls(struct rounds *rounds, unsigned thread,
                        struct hf_random *random, unsigned calls)
{
    for (unsigned i = 0; i < calls; i++) {
        if (hf_random_below(random, 2) == 0) {
            struct item *item = &rounds->items[thread][i];
            item->number = thread * 1000 + i + 1;
            struct call *call = calls_begin(rounds->history, thread, MODEL_PUT,
                                            0, item->number);
            calls_end(rounds->history, call, hf_queue_put(rounds->queue, item),
                      0);
        } else {
            void *found = NULL;
            struct call *call =
                calls_begin(rounds->history, thread, MODEL_TAKE_FIRST, 0, 0);
            enum hf_status status = hf_queue_take(rounds->queue, &found);
            calls_end(rounds->history, call, status,
                      status == HF_OK ? ((struct item *)found)->number : 0);
        }
    }
}

/* Rounds of few calls start together more often, rounds of many go further. */
static unsigned round_length(uint64_t round)
{
    return round % 8 == 0 ? ROUND_CALLS : 20;
}

static void round_body(void *context, int index)
{
    struct rounds *rounds = context;
    struct hf_random random;

    hf_random_init(&random, test_seed() + (unsigned)index);
    for (uint64_t round = 0; round < rounds->count; round++) {
        pthread_barrier_wait(&rounds->gate);
        round_calls(rounds, (unsigned)index, &random, round_length(round));
        pthread_barrier_wait(&rounds->gate);
        if (index != 0)
            continue;
        void *item;
        rounds->good += linear_check(rounds->checker, rounds->history,
                                     stdout) == LINEAR_YES;
        while (hf_queue_take(rounds->queue, &item) == HF_OK)
            continue;
        calls_clear(rounds->history);
    }
}

TEST(every_history_has_an_order)
{
    struct model_list list = {.room = ROUND_THREADS * ROUND_CALLS};
    struct linear_model model = model_list(&list);
    static struct rounds rounds;

    rounds.history = calls_new(ROUND_THREADS, ROUND_CALLS);
    rounds.checker = linear_new(&model, ROUND_THREADS * ROUND_CALLS);
    rounds.count = scaled(600, 100);
    CHECK_EQ(pthread_barrier_init(&rounds.gate, NULL, ROUND_THREADS), 0);
    for (uint32_t segment = 2; segment <= 16; segment *= 8) {
        rounds.queue = open_queue(segment);
        rounds.good = 0;
        test_threads(ROUND_THREADS, round_body, &rounds);
        CHECK_EQ(rounds.good, rounds.count);
        hf_queue_close(rounds.queue);
    }
    pthread_barrier_destroy(&rounds.gate);
    linear_free(rounds.checker);
    calls_free(rounds.history);
}

/* ---- Long runs: nothing is lost, doubled or overtaken. ---- */

#define CROWD_MAX 32

struct crowd {
    struct hf_queue *queue;
    unsigned puts;  /* threads that put; the others take */
    uint64_t items; /* of each */
    struct hf_atomic_u64 left;
    struct hf_atomic_u64 wrong;
    uint64_t sums[CROWD_MAX];
};

#define FROM_SHIFT 40

static void crowd_put(struct crowd *crowd, uint64_t from)
{
    for (uint64_t i = 1; i <= crowd->items; i++) {
        uint64_t value = (from << FROM_SHIFT) | i;
        if (hf_queue_put(crowd->queue, (void *)(uintptr_t)value) != HF_OK)
            hf_u64_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
    }
}

/* What one putter put must come in its order to each taker. */
static void crowd_take(struct crowd *crowd, int index)
{
    uint64_t last[CROWD_MAX] = {0};

    /* Relaxed: a count, and no item is left when it is 0. */
    while (hf_u64_load(&crowd->left, __ATOMIC_RELAXED) > 0) {
        void *item = NULL;
        if (hf_queue_take(crowd->queue, &item) != HF_OK) {
            sched_yield();
            continue;
        }
        uint64_t from = (uint64_t)(uintptr_t)item >> FROM_SHIFT;
        uint64_t number =
            (uint64_t)(uintptr_t)item & ((UINT64_C(1) << FROM_SHIFT) - 1);
        if (from >= crowd->puts || number <= last[from])
            hf_u64_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
        else
            last[from] = number;
        crowd->sums[index] += number;
        hf_u64_sub(&crowd->left, 1, __ATOMIC_RELAXED);
    }
}

static void crowd_body(void *context, int index)
{
    struct crowd *crowd = context;

    if ((unsigned)index < crowd->puts)
        crowd_put(crowd, (uint64_t)index);
    else
        crowd_take(crowd, index);
}

static void run_crowd(unsigned puts, unsigned takes, uint64_t items,
                      uint32_t segment)
{
    struct crowd crowd = {.puts = puts, .items = items};
    uint64_t sum = 0;

    crowd.queue = open_queue(segment);
    hf_u64_store(&crowd.left, puts * items, __ATOMIC_RELAXED);
    test_threads((int)(puts + takes), crowd_body, &crowd);
    for (int i = 0; i < CROWD_MAX; i++)
        sum += crowd.sums[i];
    CHECK_EQ(hf_u64_load(&crowd.wrong, __ATOMIC_RELAXED), 0);
    CHECK_EQ(sum, puts * (items * (items + 1) / 2));
    CHECK_EQ(hf_queue_size(crowd.queue), 0);
    hf_queue_close(crowd.queue);
}

TEST(each_item_comes_once_and_in_its_putters_order)
{
    run_crowd(1, 1, scaled(2000000, 100000), 0);
    run_crowd(2, 2, scaled(1000000, 50000), 0);
    run_crowd(4, 4, scaled(200000, 10000), 2); /* every other call a segment */
    run_crowd(1, 4, scaled(400000, 20000), 8);
    run_crowd(4, 1, scaled(200000, 10000), 8);
}

TEST(thirty_two_threads_on_few_processors)
{
    run_crowd(16, 16, scaled(100000, 5000), 0);
    run_crowd(16, 16, scaled(50000, 2000), 4);
}

/* ---- One thread is stopped, the others go on. ---- */

#define WORKERS 4

struct worker {
    pthread_t thread;
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 done; /* (a) calls */
    struct hf_atomic_u32 *stop;
    struct hf_queue *queue;
    uint64_t put;
    uint64_t taken;
};

static void *work(void *context)
{
    struct worker *worker = context;

    /* Relaxed: only counts and a flag. */
    while (hf_u32_load(worker->stop, __ATOMIC_RELAXED) == 0) {
        void *item = worker;
        worker->put += hf_queue_put(worker->queue, item) == HF_OK;
        worker->taken += hf_queue_take(worker->queue, &item) == HF_OK;
        hf_u64_add(&worker->done, 2, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* True when every other worker has made `more` calls. */
static bool others_go_on(struct worker *workers, int stopped, uint64_t more)
{
    uint64_t from[WORKERS];
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), DEADLINE_MS);

    for (int i = 0; i < WORKERS; i++)
        from[i] = hf_u64_load(&workers[i].done, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++) {
        while (i != stopped && hf_u64_load(&workers[i].done, __ATOMIC_RELAXED) <
                                   from[i] + more) {
            if (hf_clock_now_ns(hf_clock_system()) > deadline_ns)
                return false;
            sched_yield();
        }
    }
    return true;
}

/* Segments of 16 slots: the others fill and empty hundreds while one stands
 * still, and what it may be looking at is two of them. */
TEST(a_stopped_thread_stops_nobody_and_keeps_little)
{
    static struct worker workers[WORKERS];
    struct hf_atomic_u32 stop = {0};
    struct hf_queue *queue = open_queue(16);
    uint64_t inside = 0;
    uint64_t most = 0;
    bool went_on = true;

    stall_init();
    for (int i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.stop = &stop, .queue = queue};
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]),
                 0);
    }
    (void)others_go_on(workers, -1, 1000);
    for (uint64_t round = 0; round < scaled(60, 20) && went_on; round++) {
        int stopped = (int)(round % WORKERS);
        struct stall *stall = stall_stop(workers[stopped].thread);
        went_on = others_go_on(workers, stopped, scaled(5000, 500));
        struct hf_queue_stats stats;
        hf_queue_stats(queue, &stats);
        most = stats.segments > most ? stats.segments : most;
        stall_resume(stall);
    }
    hf_u32_store(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        inside += workers[i].put - workers[i].taken;
    }
    printf("at most %llu segments\n", (unsigned long long)most);
    CHECK(went_on);
    CHECK_EQ(hf_queue_size(queue), inside);
    /* Spare ones, a few in use, and of those that may be looked at three
     * times two for each thread. */
    CHECK(most <= 16 + WORKERS + 3 * 2 * (WORKERS + 1));
    hf_queue_close(queue);
}

/* ---- After a burst by many threads the memory goes back. ---- */

struct burst {
    struct hf_queue *queue;
    pthread_barrier_t gate;
    uint64_t items;
    uint64_t most; /* segments, of thread 0 */
    struct hf_atomic_u64 taken;
};

static void burst_body(void *context, int index)
{
    struct burst *burst = context;
    struct hf_queue_stats stats;
    void *item;

    for (uint64_t i = 0; i < burst->items; i++)
        (void)hf_queue_put(burst->queue, burst);
    pthread_barrier_wait(&burst->gate);
    if (index == 0) {
        hf_queue_stats(burst->queue, &stats);
        burst->most = stats.segments;
    }
    pthread_barrier_wait(&burst->gate);
    while (hf_queue_take(burst->queue, &item) == HF_OK)
        hf_u64_add(&burst->taken, 1, __ATOMIC_RELAXED);
}

TEST(after_a_burst_of_a_million_the_memory_goes_back)
{
    struct burst burst = {.queue = open_queue(0)};
    struct hf_queue_stats stats;
    const unsigned threads = 4;

    burst.items = scaled(1000000, 100000) / threads;
    CHECK_EQ(pthread_barrier_init(&burst.gate, NULL, threads), 0);
    test_threads((int)threads, burst_body, &burst);
    pthread_barrier_destroy(&burst.gate);
    hf_queue_stats(burst.queue, &stats);
    CHECK_EQ(hf_u64_load(&burst.taken, __ATOMIC_RELAXED),
             burst.items * threads);
    CHECK(burst.most >= burst.items * threads / HF_QUEUE_SEGMENT);
    CHECK_EQ(stats.size, 0);
    CHECK(stats.segments <= 16 + 1 + 3 * 2 * (threads + 1));
    hf_queue_close(burst.queue);
}
