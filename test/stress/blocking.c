/* blocking.c - hf_blocking under real threads.
 * tests: also under sanitizers
 *
 * Short rounds whose histories are checked for linearizability, and long runs
 * of every kind in which each item must come out once if its put was told
 * HF_OK and never if not, with time-outs, few places, many threads, and a
 * queue that is shut in the middle.
 */
#include "holdfast/blocking.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/test.h"
#include "support/threads.h"

/* How much of the work is done: a sanitizer makes it slow. */
static unsigned share(unsigned work)
{
    const char *san = getenv("HOLDFAST_SAN");
    return san != NULL && *san != '\0' ? work / 8 + 1 : work;
}

static uint64_t soon(struct hf_random *random, uint64_t most_ns)
{
    return hf_clock_now_ns(hf_clock_system()) +
           hf_random_below(random, most_ns);
}

/* ---- Rounds. ---- */

#define ROUND_THREADS 4
#define ROUND_CALLS   12

struct round {
    struct hf_blocking *queue;
    struct calls *history;
    uint64_t seed;
};

/* Tries, and calls with a deadline that is near: each thread puts and takes,
 * and nobody waits for ever. */
static void round_body(void *context, int index)
{
    struct round *round = context;
    unsigned thread = (unsigned)index;
    struct hf_random random;

    hf_random_init(&random, round->seed + thread);
    for (uintptr_t i = 0; i < ROUND_CALLS; i++) {
        bool puts = hf_random_below(&random, 2) == 0;
        bool tries = hf_random_below(&random, 4) != 0;
        uintptr_t value = thread * 100 + i + 1;
        uint64_t until_ns = tries ? HF_NOW : soon(&random, 20000);
        void *item = NULL;
        struct call *call =
            calls_begin(round->history, thread,
                        puts ? MODEL_PUT : MODEL_TAKE_FIRST, 0, value);
        enum hf_status status =
            puts ? hf_blocking_put(round->queue, (void *)value, until_ns)
                 : hf_blocking_take(round->queue, &item, until_ns);
        uint64_t result = status;
        if (status == HF_TIMEOUT && tries)
            result = puts ? HF_FULL : HF_EMPTY;
        calls_end(round->history, call, result, (uintptr_t)item);
    }
}

static void run_rounds(enum hf_blocking_kind kind, uint64_t capacity)
{
    struct hf_blocking_opts opts = {.kind = kind, .capacity = capacity};
    struct model_list list = {.room = capacity ? (uint32_t)capacity
                                               : ROUND_THREADS * ROUND_CALLS,
                              .bounded = capacity != 0};
    struct linear_model model = model_list(&list);
    struct linear *checker = linear_new(&model, ROUND_THREADS * ROUND_CALLS);
    struct round round = {.history = calls_new(ROUND_THREADS, ROUND_CALLS)};

    for (unsigned i = 0; i < share(800); i++) {
        round.seed = test_seed() + i * ROUND_THREADS;
        CHECK_EQ(hf_blocking_open(&round.queue, &opts), HF_OK);
        calls_clear(round.history);
        test_threads(ROUND_THREADS, round_body, &round);
        CHECK_EQ(linear_check(checker, round.history, stdout), LINEAR_YES);
        hf_blocking_close(round.queue);
    }
    calls_free(round.history);
    linear_free(checker);
}

TEST(array_rounds_are_linearizable)
{
    run_rounds(HF_BLOCKING_ARRAY, 3);
}

TEST(linked_rounds_are_linearizable)
{
    run_rounds(HF_BLOCKING_LINKED, 2);
    run_rounds(HF_BLOCKING_LINKED, 0);
}

/* Of equal rank, and visible at once: first in, first out. */
TEST(ordered_rounds_are_linearizable)
{
    run_rounds(HF_BLOCKING_PRIORITY, 3);
    run_rounds(HF_BLOCKING_DELAY, 3);
}

TEST(transfer_rounds_are_linearizable)
{
    run_rounds(HF_BLOCKING_TRANSFER, 0);
}

/* ---- Long runs. ---- */

#define THREADS_MAX 32

struct flow {
    enum hf_blocking_kind kind;
    uint64_t capacity;
    int putters;
    int takers;
    unsigned puts;  /* of each putter; taken by all takers together */
    bool impatient; /* calls have near deadlines; puts are given up then */
    bool cut;       /* the last thread shuts the queue in the middle */
    struct hf_blocking *queue;
    struct hf_atomic_u32 left; /* (a) putters that are not done */
    struct hf_atomic_u32 wrong;
    unsigned char *accepted; /* by item, written by its putter */
    struct hf_atomic_u32 *taken;
};

static enum hf_status flow_put(struct flow *flow, struct hf_random *random,
                               void *item)
{
    uint64_t until_ns = flow->impatient ? soon(random, 50000) : HF_FOREVER;

    if (flow->impatient && hf_random_below(random, 4) == 0)
        until_ns = HF_NOW;
    switch (flow->kind) {
    case HF_BLOCKING_PRIORITY:
        return hf_blocking_put_ranked(flow->queue, item,
                                      hf_random_below(random, 3), until_ns);
    case HF_BLOCKING_DELAY:
        return hf_blocking_put_at(flow->queue, item, soon(random, 20000),
                                  until_ns);
    case HF_BLOCKING_TRANSFER:
        if (hf_random_below(random, 2) == 0)
            return hf_blocking_transfer(flow->queue, item, until_ns);
        return hf_blocking_put(flow->queue, item, until_ns);
    default:
        return hf_blocking_put(flow->queue, item, until_ns);
    }
}

static void run_putter(struct flow *flow, unsigned index)
{
    struct hf_random random;

    hf_random_init(&random, test_seed() + index);
    for (unsigned i = 0; i < flow->puts; i++) {
        uintptr_t item = index * flow->puts + i;
        enum hf_status status = flow_put(flow, &random, (void *)item);
        flow->accepted[item] = status == HF_OK;
        if (flow->cut && i == flow->puts / 2 && index == 0)
            hf_blocking_shutdown(flow->queue);
        if (status == HF_CLOSED && flow->cut)
            break;
        if (status != HF_OK && !(flow->impatient && status == HF_TIMEOUT))
            hf_u32_store(&flow->wrong, 1, __ATOMIC_RELAXED);
    }
    if (hf_u32_sub(&flow->left, 1, __ATOMIC_ACQ_REL) == 1)
        hf_blocking_shutdown(flow->queue);
}

static bool is_fifo(const struct flow *flow)
{
    return flow->kind != HF_BLOCKING_PRIORITY &&
           flow->kind != HF_BLOCKING_DELAY;
}

/* Notes an item; those of one putter come in order, if the kind is such. */
static void note(struct flow *flow, void *item, uintptr_t *next)
{
    uintptr_t number = (uintptr_t)item;
    uintptr_t putter = number / flow->puts;

    hf_u32_add(&flow->taken[number], 1, __ATOMIC_RELAXED);
    if (is_fifo(flow) && number < next[putter])
        hf_u32_store(&flow->wrong, 1, __ATOMIC_RELAXED);
    next[putter] = number + 1;
}

static void run_taker(struct flow *flow, unsigned index)
{
    uintptr_t next[THREADS_MAX] = {0};
    struct hf_random random;
    enum hf_status status = HF_OK;
    void *items[5];

    hf_random_init(&random, test_seed() + 1000 + index);
    while (status != HF_CLOSED) {
        uint64_t until_ns = flow->impatient ? soon(&random, 50000) : HF_FOREVER;
        status = hf_blocking_take(flow->queue, items, until_ns);
        if (status == HF_OK)
            note(flow, items[0], next);
        else if (status == HF_TIMEOUT && !flow->impatient)
            hf_u32_store(&flow->wrong, 1, __ATOMIC_RELAXED);
        if (hf_random_below(&random, 8) != 0)
            continue;
        size_t count = hf_blocking_drain(flow->queue, items, 5);
        for (size_t i = 0; i < count; i++)
            note(flow, items[i], next);
    }
}

static void flow_body(void *context, int index)
{
    struct flow *flow = context;

    if (index < flow->putters)
        run_putter(flow, (unsigned)index);
    else
        run_taker(flow, (unsigned)index);
}

static void check_items(const struct flow *flow, unsigned items)
{
    struct hf_blocking_stats stats;
    unsigned accepted = 0;

    for (unsigned i = 0; i < items; i++) {
        CHECK_EQ(flow->taken[i].value, flow->accepted[i]);
        accepted += flow->accepted[i];
    }
    hf_blocking_stats(flow->queue, &stats);
    CHECK_EQ(stats.put, accepted);
    CHECK_EQ(stats.taken, accepted);
    CHECK_EQ(stats.depth, 0);
    CHECK_EQ(stats.takers, 0);
    CHECK_EQ(stats.putters, 0);
    CHECK_EQ(flow->wrong.value, 0);
    if (!flow->impatient && !flow->cut)
        CHECK_EQ(accepted, items);
}

static void run_flow(struct flow flow)
{
    struct hf_blocking_opts opts = {.kind = flow.kind,
                                    .capacity = flow.capacity};

    flow.puts = share(flow.puts);
    flow.left.value = (uint32_t)flow.putters;
    unsigned items = (unsigned)flow.putters * flow.puts;
    flow.accepted = calloc(items, 1);
    flow.taken = calloc(items, sizeof *flow.taken);
    CHECK(flow.accepted != NULL && flow.taken != NULL);
    CHECK_EQ(hf_blocking_open(&flow.queue, &opts), HF_OK);
    test_threads(flow.putters + flow.takers, flow_body, &flow);
    check_items(&flow, items);
    hf_blocking_close(flow.queue);
    free(flow.taken);
    free(flow.accepted);
}

/* Does a kind take a capacity? */
static uint64_t few(int kind, uint64_t capacity)
{
    return kind < HF_BLOCKING_SYNCHRONOUS ? capacity : 0;
}

TEST(all_items_come_through_few_places)
{
    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++) {
        run_flow((struct flow){.kind = (enum hf_blocking_kind)kind,
                               .capacity = few(kind, 1),
                               .putters = 2,
                               .takers = 2,
                               .puts = 4000});
        run_flow((struct flow){.kind = (enum hf_blocking_kind)kind,
                               .capacity = few(kind, 64),
                               .putters = 3,
                               .takers = 1,
                               .puts = 10000});
    }
}

TEST(what_timed_out_is_nowhere_else)
{
    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++)
        run_flow((struct flow){.kind = (enum hf_blocking_kind)kind,
                               .capacity = few(kind, 2),
                               .putters = 3,
                               .takers = 2,
                               .puts = 5000,
                               .impatient = true});
}

TEST(many_more_threads_than_processors)
{
    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++)
        run_flow((struct flow){.kind = (enum hf_blocking_kind)kind,
                               .capacity = few(kind, 3),
                               .putters = 16,
                               .takers = 16,
                               .puts = 500});
}

TEST(shut_in_the_middle_loses_nothing)
{
    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++)
        for (unsigned i = 0; i < share(40); i++)
            run_flow((struct flow){.kind = (enum hf_blocking_kind)kind,
                                   .capacity = few(kind, 1 + i % 3),
                                   .putters = 3,
                                   .takers = 3,
                                   .puts = 100,
                                   .impatient = i % 2 != 0,
                                   .cut = true});
}
