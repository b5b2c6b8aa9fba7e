/* batcher.c - real threads at one batcher, in every mode.
 *
 * tests: also under sanitizers
 *
 * Every item that was accepted is handled or dead, once; items of one thread
 * in their order. Whoever is forgotten leaves the run hanging, and it is
 * stopped as failed.
 */
#include "holdfast/batcher.h"

#include <sched.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS   8
#define ITEMS_MAX 40000 /* of a thread */

struct item {
    uint32_t thread;
    uint32_t number;
    bool accepted; /* by the thread that adds */
    uint8_t over;  /* by the handler: how often */
};

static struct item items[THREADS][ITEMS_MAX];
static struct {
    struct hf_batcher *batcher;
    struct hf_batcher_opts opts;
    uint32_t each;       /* items of a thread */
    uint32_t shut_after; /* of thread 0's items; 0: not */
    struct hf_atomic_u64 errors;
    /* By the handler, one at a time: */
    struct hf_random random;
    uint32_t fail_odds;
    uint32_t last[THREADS]; /* 1 + number of its last item */
    bool inside;
    uint64_t calls;
} test;

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
}

static void over(void *const *batch, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct item *item = batch[i];
        expect(item->number >= test.last[item->thread]);
        test.last[item->thread] = item->number + 1;
        item->over++;
    }
}

static int handle(void *context, void *const *batch, size_t count)
{
    (void)context;
    expect(!test.inside); /* a second one would also be a data race */
    test.inside = true;
    expect(count > 0 && count <= test.opts.batch_max);
    if (test.calls++ % 16 == 0) /* slower than those who add */
        sched_yield();
    int code = test.fail_odds > 0 &&
               hf_random_below(&test.random, test.fail_odds) == 0;
    if (code == 0)
        over(batch, count);
    test.inside = false;
    return code;
}

static void dead(void *context, void *const *batch, size_t count)
{
    (void)context;
    expect(!test.inside);
    over(batch, count);
}

/* Whoever is to shut waits for nothing: there may be a pause that only ends
 * with that. */
static void add_body(void *context, int index)
{
    bool shuts = index == 0 && test.shut_after > 0;
    const struct hf_clock *clock = hf_clock_system();
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (uint32_t i = 0; i < test.each; i++) {
        struct item *item = &items[index][i];
        *item = (struct item){.thread = (uint32_t)index, .number = i};
        uint64_t draw = hf_random_below(&random, 8);
        uint64_t deadline_ns = HF_FOREVER;
        if (draw == 0 || shuts)
            deadline_ns = HF_NOW;
        else if (draw == 1)
            deadline_ns =
                hf_clock_now_ns(clock) + hf_random_below(&random, 50000);
        enum hf_status status = hf_batcher_add(test.batcher, item, deadline_ns);
        item->accepted = status == HF_OK;
        expect(status == HF_OK || status == HF_CLOSED || status == HF_FULL ||
               (status == HF_TIMEOUT && deadline_ns != HF_FOREVER));
        expect(status != HF_FULL || test.opts.full == HF_BATCHER_DROP);
        expect(status != HF_CLOSED || test.shut_after > 0);
        if (!shuts && hf_random_below(&random, 2000) == 0)
            expect(hf_batcher_flush(test.batcher, HF_FOREVER) == HF_OK);
        if (shuts && i + 1 == test.shut_after)
            hf_batcher_shutdown(test.batcher);
    }
}

static void run(uint32_t each, uint32_t shut_after, uint32_t fail_odds)
{
    struct hf_batcher_stats stats;
    uint64_t accepted = 0;

    test.each = each;
    test.shut_after = shut_after;
    test.fail_odds = fail_odds;
    test.calls = 0;
    memset(test.last, 0, sizeof test.last);
    hf_random_init(&test.random, test_seed());
    test.opts.handle = handle;
    test.opts.dead = dead;
    CHECK_EQ(hf_batcher_open(&test.batcher, &test.opts), HF_OK);
    test_threads(THREADS, add_body, NULL);
    CHECK_EQ(hf_batcher_flush(test.batcher, HF_FOREVER), HF_OK);
    hf_batcher_stats(test.batcher, &stats);
    hf_batcher_close(test.batcher);
    for (int i = 0; i < THREADS; i++) {
        for (uint32_t j = 0; j < each; j++) {
            accepted += items[i][j].accepted;
            CHECK_EQ(items[i][j].over, items[i][j].accepted);
        }
    }
    CHECK_EQ(hf_u64_load(&test.errors, __ATOMIC_RELAXED), 0);
    CHECK_EQ(stats.added, accepted);
    CHECK_EQ(stats.handled + stats.dead, accepted);
    CHECK_EQ(stats.refused, (uint64_t)each * THREADS - accepted);
    CHECK_EQ(stats.depth, 0);
}

static uint32_t scaled(uint32_t count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 8 : count;
}

TEST(nothing_is_lost_or_doubled_in_any_mode)
{
    for (uint32_t i = 0; i < 12; i++) {
        test.opts = (struct hf_batcher_opts){
            .full = (enum hf_batcher_full)(i % 3),
            .shards = i / 3 % 2 ? 4 : 1,
            .batch_max = 64,
            .queue_max = 128,
            .age_ns = 100000,
            .retries = 1,
            .pause_ns = 1000,
        };
        run(scaled(ITEMS_MAX), 0, i / 6 ? 4 : 0);
    }
}

TEST(a_queue_of_one)
{
    for (uint32_t i = 0; i < 3; i++) {
        test.opts = (struct hf_batcher_opts){
            .full = (enum hf_batcher_full)i, .batch_max = 1, .queue_max = 1};
        run(scaled(4000), 0, 0);
    }
}

TEST(shut_while_all_add)
{
    uint32_t rounds = scaled(160);

    for (uint32_t i = 0; i < rounds; i++) {
        test.opts = (struct hf_batcher_opts){
            .full = (enum hf_batcher_full)(i % 3),
            .shards = 1 + i % 2,
            .batch_max = 4,
            .queue_max = 8,
            .age_ns = HF_FOREVER,
            .pause_ns = UINT64_C(3600000000000), /* nobody waits for it */
        };
        run(400, 1 + i, i % 4 == 3 ? 1000 : 0);
    }
}
