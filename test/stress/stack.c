/* stack.c - the stack under real threads, both kinds.
 *
 * tests: also under sanitizers
 */
#include "holdfast/stack.h"

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

static struct hf_stack *open_stack(uint64_t capacity, enum hf_stack_kind kind)
{
    struct hf_stack *stack = NULL;
    struct hf_stack_opts opts = {.capacity = capacity, .kind = kind};

    CHECK_EQ(hf_stack_open(&stack, &opts), HF_OK);
    return stack;
}

struct item {
    uint64_t number; /* plain: written before push, read after pop */
};

/* ---- Histories: is there an order that explains all answers? ---- */

#define ROUND_THREADS 3
#define ROUND_CALLS   12 /* the orders of a stack are many: short rounds */

struct rounds {
    struct hf_stack *stack;
    struct calls *history;
    struct linear *checker;
    pthread_barrier_t gate;
    bool sized; /* asks for the size as well, which is exact */
    uint64_t count;
    uint64_t good;    /* of thread 0 */
    uint64_t refused; /* of thread 0: answers "full" and "empty" */
    struct item items[ROUND_THREADS][ROUND_CALLS];
};

static void round_calls(struct rounds *rounds, unsigned thread,
                        struct hf_random *random)
{
    struct calls *history = rounds->history;
    struct call *call;

    for (unsigned i = 0; i < ROUND_CALLS; i++) {
        uint64_t draw = hf_random_below(random, rounds->sized ? 9 : 8);
        struct item *item = &rounds->items[thread][i];
        void *found = NULL;

        if (draw < 4) {
            item->number = thread * 1000 + i + 1;
            call = calls_begin(history, thread, MODEL_PUT, 0, item->number);
            calls_end(history, call, hf_stack_push(rounds->stack, item), 0);
        } else if (draw < 8) {
            call = calls_begin(history, thread, MODEL_TAKE_LAST, 0, 0);
            enum hf_status status = hf_stack_pop(rounds->stack, &found);
            calls_end(history, call, status,
                      status == HF_OK ? ((struct item *)found)->number : 0);
        } else {
            call = calls_begin(history, thread, MODEL_SIZE, 0, 0);
            calls_end(history, call, HF_OK, hf_stack_size(rounds->stack));
        }
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
    while (hf_stack_pop(rounds->stack, &item) == HF_OK)
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
        round_calls(rounds, (unsigned)index, &random);
        pthread_barrier_wait(&rounds->gate);
        if (index == 0)
            round_end(rounds);
    }
}

static void check_rounds(enum hf_stack_kind kind, uint32_t capacity)
{
    static struct rounds rounds;
    struct model_list list = {
        .room = capacity != 0 ? capacity : ROUND_THREADS * ROUND_CALLS,
        .bounded = capacity != 0};
    struct linear_model model = model_list(&list);

    memset(&rounds, 0, sizeof rounds);
    rounds.stack = open_stack(capacity, kind);
    rounds.sized = capacity != 0 && kind == HF_STACK_LOCK_FREE;
    rounds.history = calls_new(ROUND_THREADS, ROUND_CALLS);
    rounds.checker = linear_new(&model, ROUND_THREADS * ROUND_CALLS);
    rounds.count = scaled(10000, 500);
    CHECK_EQ(pthread_barrier_init(&rounds.gate, NULL, ROUND_THREADS), 0);
    test_threads(ROUND_THREADS, round_body, &rounds);
    CHECK_EQ(rounds.good, rounds.count);
    CHECK(rounds.refused > 0); /* else the test asked nothing */
    pthread_barrier_destroy(&rounds.gate);
    linear_free(rounds.checker);
    calls_free(rounds.history);
    hf_stack_close(rounds.stack);
}

TEST(every_history_has_an_order)
{
    check_rounds(HF_STACK_LOCK_FREE, 0);
    check_rounds(HF_STACK_LOCK_FREE, 1);
    check_rounds(HF_STACK_LOCK_FREE, 3);
    check_rounds(HF_STACK_LOCKED, 2);
}

/* ---- Long runs: each item comes out once. ---- */

#define ITEMS_MAX 300000

struct crowd {
    struct hf_stack *stack;
    unsigned threads;
    unsigned pushers; /* threads that only push; as many only pop; 0: all do
                       * both */
    uint64_t items;   /* of each that pushes */
    struct hf_atomic_u64 left;
    struct hf_atomic_u64 doubled;
};

static struct item crowd_items[ITEMS_MAX];

static bool crowd_pop(struct crowd *crowd)
{
    void *found;

    if (hf_stack_pop(crowd->stack, &found) != HF_OK)
        return false;
    struct item *item = found; /* ours alone now: plain */
    if (item->number != 1)
        hf_u64_add(&crowd->doubled, 1, __ATOMIC_RELAXED);
    item->number = 2;
    hf_u64_sub(&crowd->left, 1, __ATOMIC_RELAXED);
    return true;
}

static void crowd_body(void *context, int index)
{
    struct crowd *crowd = context;
    unsigned thread = (unsigned)index;
    bool pushes = crowd->pushers == 0 || thread < crowd->pushers;
    bool pops = crowd->pushers == 0 || !pushes;

    for (uint64_t i = 0; pushes && i < crowd->items; i++) {
        struct item *item = &crowd_items[thread * crowd->items + i];

        item->number = 1;
        while (hf_stack_push(crowd->stack, item) != HF_OK)
            if (!pops || !crowd_pop(crowd))
                hf_thread_yield();
        if (pops && i % 3 != 0)
            (void)crowd_pop(crowd);
    }
    while (pops && hf_u64_load(&crowd->left, __ATOMIC_RELAXED) > 0)
        if (!crowd_pop(crowd))
            hf_thread_yield();
}

static void check_crowd(enum hf_stack_kind kind, uint64_t capacity,
                        unsigned threads, unsigned pushers)
{
    unsigned sources = pushers == 0 ? threads : pushers;
    struct crowd crowd = {.stack = open_stack(capacity, kind),
                          .threads = threads,
                          .pushers = pushers,
                          .items = scaled(ITEMS_MAX, ITEMS_MAX / 30) / sources};
    struct hf_stack_stats stats;

    crowd.left.value = crowd.items * sources;
    test_threads((int)threads, crowd_body, &crowd);
    CHECK_EQ(crowd.doubled.value, 0);
    CHECK_EQ(crowd.left.value, 0);
    for (unsigned t = 0; t < sources; t++)
        for (uint64_t i = 0; i < crowd.items; i++)
            CHECK_EQ(crowd_items[t * crowd.items + i].number, 2);
    hf_stack_stats(crowd.stack, &stats);
    CHECK_EQ(stats.size, 0);
    CHECK_EQ(stats.pushes, crowd.items * sources);
    CHECK_EQ(stats.pops, crowd.items * sources);
    if (kind == HF_STACK_LOCK_FREE && capacity != 0) /* nodes go round */
        CHECK(stats.nodes <= capacity + threads * 48);
    hf_stack_close(crowd.stack);
}

TEST(each_item_comes_out_once)
{
    for (enum hf_stack_kind kind = HF_STACK_LOCK_FREE; kind <= HF_STACK_LOCKED;
         kind++) {
        check_crowd(kind, 0, 4, 0);
        check_crowd(kind, 0, 4, 2); /* nodes change hands in batches */
        check_crowd(kind, 3, 4, 0);
        check_crowd(kind, 50, 2, 1);
    }
}

TEST(thirty_two_threads_on_few_processors)
{
    check_crowd(HF_STACK_LOCK_FREE, 0, 32, 0);
    check_crowd(HF_STACK_LOCK_FREE, 5, 32, 0);
    check_crowd(HF_STACK_LOCK_FREE, 100, 32, 16);
    check_crowd(HF_STACK_LOCKED, 5, 32, 0);
}

/* ---- A stopped thread stops nobody. ---- */

#define STALL_THREADS 3

struct stalled {
    struct hf_stack *stack;
    uint64_t burst; /* pushes on end, then as many pops */
    struct hf_atomic_u32 over;
    struct hf_atomic_u64 calls[STALL_THREADS]; /* each its thread's own */
    uint64_t balance[STALL_THREADS];           /* pushed minus popped */
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
        bool push = i / stalled->burst % 2 == self->index % 2;

        if (push && hf_stack_push(stalled->stack, item) == HF_OK)
            balance += (uintptr_t)item;
        if (!push && hf_stack_pop(stalled->stack, &item) == HF_OK)
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

static void check_stalled(uint64_t capacity, uint64_t burst, uint64_t stops)
{
    static struct stalled stalled;
    static struct stalled_thread selves[STALL_THREADS];
    bool alive = true;
    uint64_t balance = 0;
    void *item;

    memset(&stalled, 0, sizeof stalled);
    stalled.burst = burst;
    stalled.stack = open_stack(capacity, HF_STACK_LOCK_FREE);
    /* All memory is there before: a thread may be stopped inside malloc. */
    for (uintptr_t i = 0; i < capacity; i++)
        CHECK_EQ(hf_stack_push(stalled.stack, (void *)(i + 1)), HF_OK);
    while (hf_stack_pop(stalled.stack, &item) == HF_OK)
        continue;
    for (unsigned i = 0; i < STALL_THREADS; i++) {
        selves[i] = (struct stalled_thread){&stalled, i};
        CHECK_EQ(
            pthread_create(&stalled.threads[i], NULL, stalled_main, &selves[i]),
            0);
    }
    for (uint64_t i = 0; i < stops && alive; i++) {
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
    while (hf_stack_pop(stalled.stack, &item) == HF_OK)
        balance -= (uintptr_t)item;
    CHECK_EQ(balance, 0);
    hf_stack_close(stalled.stack);
}

TEST(a_stopped_thread_stops_nobody)
{
    stall_init();
    /* Bursts longer than what a thread keeps: batches go round too. */
    check_stalled(500, 50, scaled(40, 10));
    /* Few nodes: one that was stopped may find the same one first again. */
    check_stalled(4, 2, scaled(40, 10));
}
