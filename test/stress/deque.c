/* deque.c - the work-stealing deque under real threads.
 *
 * tests: also under sanitizers
 */
#include "holdfast/deque.h"

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

static struct hf_deque *open_deque(uint64_t capacity)
{
    struct hf_deque *deque = NULL;
    struct hf_deque_opts opts = {.capacity = capacity};

    CHECK_EQ(hf_deque_open(&deque, &opts), HF_OK);
    return deque;
}

/* ---- Histories: is there an order that explains all answers? ---- */

#define ROUND_THREADS 4
#define OWNER_CALLS   24
#define THIEF_CALLS   8

struct item {
    uint64_t number; /* plain: written before push, read after it is taken */
};

struct rounds {
    struct hf_deque *deque;
    struct calls *history;
    struct linear *checker;
    pthread_barrier_t gate;
    uint64_t count;
    uint64_t good; /* of the owner */
    struct item items[OWNER_CALLS];
};

static void take(struct rounds *rounds, unsigned thread, uint32_t op)
{
    void *found = NULL;
    struct call *call = calls_begin(rounds->history, thread, op, 0, 0);
    enum hf_status status = op == MODEL_TAKE_LAST
                                ? hf_deque_pop(rounds->deque, &found)
                                : hf_deque_steal(rounds->deque, &found);

    calls_end(rounds->history, call, status,
              status == HF_OK ? ((struct item *)found)->number : 0);
}

static void owner_calls(struct rounds *rounds, struct hf_random *random)
{
    for (unsigned i = 0; i < OWNER_CALLS; i++) {
        if (hf_random_below(random, 2) == 0) {
            take(rounds, 0, MODEL_TAKE_LAST);
            continue;
        }
        struct item *item = &rounds->items[i];
        item->number = i + 1;
        struct call *call =
            calls_begin(rounds->history, 0, MODEL_PUT, 0, i + 1);
        calls_end(rounds->history, call, hf_deque_push(rounds->deque, item), 0);
    }
}

static void round_body(void *context, int index)
{
    struct rounds *rounds = context;
    struct hf_random random;

    hf_random_init(&random, test_seed() + (unsigned)index);
    for (uint64_t round = 0; round < rounds->count; round++) {
        pthread_barrier_wait(&rounds->gate);
        for (unsigned i = 0; index != 0 && i < THIEF_CALLS; i++)
            take(rounds, (unsigned)index, MODEL_TAKE_FIRST);
        if (index == 0)
            owner_calls(rounds, &random);
        pthread_barrier_wait(&rounds->gate);
        if (index != 0)
            continue;
        void *item;
        rounds->good += linear_check(rounds->checker, rounds->history,
                                     stdout) == LINEAR_YES;
        while (hf_deque_pop(rounds->deque, &item) == HF_OK)
            continue;
        calls_clear(rounds->history);
    }
}

TEST(every_history_has_an_order)
{
    struct model_list list = {.room = OWNER_CALLS};
    struct linear_model model = model_list(&list);
    static struct rounds rounds;

    rounds.history = calls_new(ROUND_THREADS, OWNER_CALLS);
    rounds.checker = linear_new(&model, ROUND_THREADS * OWNER_CALLS);
    rounds.count = scaled(4000, 400);
    CHECK_EQ(pthread_barrier_init(&rounds.gate, NULL, ROUND_THREADS), 0);
    for (uint64_t capacity = 1; capacity <= 16; capacity *= 4) {
        rounds.deque = open_deque(capacity);
        rounds.good = 0;
        test_threads(ROUND_THREADS, round_body, &rounds);
        CHECK_EQ(rounds.good, rounds.count);
        hf_deque_close(rounds.deque);
    }
    pthread_barrier_destroy(&rounds.gate);
    linear_free(rounds.checker);
    calls_free(rounds.history);
}

/* ---- Long runs: every item goes once. ---- */

struct crowd {
    struct hf_deque *deque;
    uint64_t items;
    unsigned char *seen; /* (a) one for each item */
    struct hf_atomic_u64 left;
    struct hf_atomic_u64 wrong;
};

static void crowd_seen(struct crowd *crowd, const void *item)
{
    uint64_t number = (uint64_t)(uintptr_t)item;

    /* Relaxed: read after the threads have ended. */
    if (number == 0 || number > crowd->items ||
        __atomic_fetch_add(&crowd->seen[number - 1], 1, __ATOMIC_RELAXED) != 0)
        hf_u64_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
    hf_u64_sub(&crowd->left, 1, __ATOMIC_RELAXED);
}

/* Pushes in bursts and pops what thieves leave; stays near empty, where owner
 * and thieves meet. */
static void crowd_own(struct crowd *crowd)
{
    struct hf_random random;
    uint64_t next = 1;
    void *item;

    hf_random_init(&random, test_seed());
    while (next <= crowd->items) {
        uint64_t burst = 1 + hf_random_below(&random, 6);
        for (uint64_t i = 0; i < burst && next <= crowd->items; i++)
            if (hf_deque_push(crowd->deque, (void *)(uintptr_t)next++))
                hf_u64_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
        for (uint64_t i = hf_random_below(&random, 7); i > 0; i--)
            if (hf_deque_pop(crowd->deque, &item) == HF_OK)
                crowd_seen(crowd, item);
    }
    while (hf_deque_pop(crowd->deque, &item) == HF_OK)
        crowd_seen(crowd, item);
}

static void crowd_body(void *context, int index)
{
    struct crowd *crowd = context;
    void *item;

    if (index == 0)
        crowd_own(crowd);
    while (hf_u64_load(&crowd->left, __ATOMIC_RELAXED) > 0) {
        if (hf_deque_steal(crowd->deque, &item) == HF_OK)
            crowd_seen(crowd, item);
        else
            sched_yield();
    }
}

static void run_crowd(int threads, uint64_t items, uint64_t capacity)
{
    struct crowd crowd = {.items = items};

    crowd.deque = open_deque(capacity);
    crowd.seen = calloc(items, 1);
    CHECK(crowd.seen != NULL);
    hf_u64_store(&crowd.left, items, __ATOMIC_RELAXED);
    test_threads(threads, crowd_body, &crowd);
    CHECK_EQ(hf_u64_load(&crowd.wrong, __ATOMIC_RELAXED), 0);
    CHECK_EQ(hf_deque_size(crowd.deque), 0);
    free(crowd.seen);
    hf_deque_close(crowd.deque);
}

TEST(each_item_goes_once)
{
    run_crowd(2, scaled(2000000, 100000), 0);
    run_crowd(2, scaled(2000000, 100000), 1);
    run_crowd(4, scaled(1000000, 50000), 4);
}

TEST(thirty_two_threads_on_few_processors)
{
    run_crowd(32, scaled(500000, 30000), 0);
}

/* ---- One thread is stopped, the others go on. ---- */

#define WORKERS 4 /* the first is the owner */

struct worker {
    pthread_t thread;
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 done; /* (a) calls */
    struct hf_atomic_u32 *stop;
    struct hf_deque *deque;
    bool owner;
    uint64_t pushed;
    uint64_t taken;
};

/* Relaxed throughout: only counts and a flag. */
static void *work(void *context)
{
    struct worker *worker = context;
    void *item = worker;

    while (hf_u32_load(worker->stop, __ATOMIC_RELAXED) == 0) {
        if (worker->owner) {
            worker->pushed += hf_deque_push(worker->deque, worker) == HF_OK;
            worker->pushed += hf_deque_push(worker->deque, worker) == HF_OK;
            worker->taken += hf_deque_pop(worker->deque, &item) == HF_OK;
            if (hf_deque_size(worker->deque) > 100) /* thieves are slow */
                while (hf_deque_pop(worker->deque, &item) == HF_OK)
                    worker->taken++;
        } else {
            worker->taken += hf_deque_steal(worker->deque, &item) == HF_OK;
        }
        hf_u64_add(&worker->done, 1, __ATOMIC_RELAXED);
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

TEST(a_stopped_thread_stops_nobody)
{
    static struct worker workers[WORKERS];
    struct hf_atomic_u32 stop = {0};
    struct hf_deque *deque = open_deque(256);
    uint64_t inside = 0;
    bool went_on = true;

    stall_init();
    for (int i = 0; i < WORKERS; i++) {
        workers[i] =
            (struct worker){.stop = &stop, .deque = deque, .owner = i == 0};
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]),
                 0);
    }
    for (uint64_t round = 0; round < scaled(60, 20) && went_on; round++) {
        int stopped = (int)(round % WORKERS);
        struct stall *stall = stall_stop(workers[stopped].thread);
        went_on = others_go_on(workers, stopped, scaled(5000, 500));
        stall_resume(stall);
    }
    hf_u32_store(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        inside += workers[i].pushed - workers[i].taken;
    }
    CHECK(went_on);
    CHECK_EQ(hf_deque_size(deque), inside);
    hf_deque_close(deque);
}
