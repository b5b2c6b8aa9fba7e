/* pool_size.c - tests of how many threads a pool has: series of counts, by a
 * clock that the test moves. */
#include <sched.h>

#include "holdfast/pool.h"
#include "support/clock.h"
#include "support/test.h"

#define IDLE_NS 1000
#define MAX     4

/* A pool, and tasks that hold their workers until they are let go. */
struct load {
    struct test_clock clock;
    struct hf_pool *pool;
    struct hf_future *gate;
    uint32_t held; /* tasks at the gate, or queued for it */
};

static struct hf_pool_stats stats_of(struct load *load)
{
    struct hf_pool_stats stats;

    hf_pool_stats(load->pool, &stats);
    return stats;
}

static uint32_t threads_of(struct load *load)
{
    return stats_of(load).threads;
}

static void await_threads(struct load *load, uint32_t count)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    while (threads_of(load) != count) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
}

static void await_active(struct load *load, uint32_t count)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);

    while (stats_of(load).active != count) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
}

static int at_gate(void *arg)
{
    struct hf_future *gate = arg;
    int code = hf_future_get(gate, HF_FOREVER, NULL) == HF_OK ? 0 : 1;

    hf_future_release(gate);
    return code;
}

static void load_open(struct load *load, enum hf_pool_kind kind,
                      uint32_t min_threads)
{
    *load = (struct load){.clock = {.now_ns = 1000000}};
    struct hf_pool_opts opts = {.kind = kind,
                                .min_threads = min_threads,
                                .max_threads = MAX,
                                .idle_ns = IDLE_NS,
                                .clock = test_clock(&load->clock)};

    CHECK_EQ(hf_pool_open(&load->pool, &opts), HF_OK);
}

/* One more task; returns when a worker has it, if there can be one for it. */
static void load_add(struct load *load)
{
    if (load->gate == NULL)
        CHECK_EQ(hf_future_open(&load->gate, NULL), HF_OK);
    hf_future_retain(load->gate);
    CHECK_EQ(hf_pool_submit(load->pool, at_gate, load->gate, NULL, NULL),
             HF_OK);
    load->held++;
    await_active(load, load->held < MAX ? load->held : MAX);
}

/* All tasks end; returns when all workers sleep. */
static void load_drop(struct load *load)
{
    const struct hf_outcome done = {HF_OK, 0, NULL};
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);
    uint64_t before = stats_of(load).submitted - load->held;

    CHECK_EQ(hf_future_complete(load->gate, &done), HF_OK);
    hf_future_release(load->gate);
    load->gate = NULL;
    while (stats_of(load).completed != before + load->held) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
    load->held = 0;
    test_clock_await_sleepers(&load->clock, threads_of(load));
}

TEST(grows_under_load_to_the_most_and_shrinks_after_idleness_to_the_least)
{
    static const uint32_t expected[] = {1, 2, 3, 4, 4, 4};
    struct load load;

    load_open(&load, HF_POOL_DYNAMIC, 1);
    for (int i = 0; i < 6; i++) {
        load_add(&load);
        CHECK_EQ(threads_of(&load), expected[i]);
    }
    test_clock_advance(&load.clock, 100 * IDLE_NS); /* busy is not idle */
    CHECK_EQ(threads_of(&load), 4);
    load_drop(&load);
    CHECK_EQ(threads_of(&load), 4);
    test_clock_advance(&load.clock, IDLE_NS - 1);
    CHECK_EQ(threads_of(&load), 4);
    test_clock_await_sleepers(&load.clock, 4);
    CHECK_EQ(threads_of(&load), 4);
    test_clock_advance(&load.clock, 1);
    await_threads(&load, 1);
    test_clock_await_sleepers(&load.clock, 1);
    test_clock_advance(&load.clock, 100 * IDLE_NS);
    CHECK_EQ(threads_of(&load), 1);
    load_add(&load);
    CHECK_EQ(threads_of(&load), 1);
    load_add(&load);
    CHECK_EQ(threads_of(&load), 2);
    load_drop(&load);
    CHECK_EQ(stats_of(&load).threads_peak, 4);
    hf_pool_close(load.pool);
}

TEST(a_cached_pool_has_no_thread_without_work)
{
    struct load load;

    load_open(&load, HF_POOL_CACHED, 0);
    for (int round = 0; round < 3; round++) {
        CHECK_EQ(threads_of(&load), 0);
        for (uint32_t i = 1; i <= 6; i++) {
            load_add(&load);
            CHECK_EQ(threads_of(&load), i < MAX ? i : MAX);
        }
        load_drop(&load);
        CHECK_EQ(threads_of(&load), MAX);
        test_clock_advance(&load.clock, IDLE_NS);
        await_threads(&load, 0);
    }
    hf_pool_close(load.pool);
}

/* The load goes up and down around what two can do, faster than idle_ns. */
TEST(a_load_at_the_threshold_does_not_make_it_oscillate)
{
    uint32_t series[200];
    unsigned changes = 0;
    struct load load;

    load_open(&load, HF_POOL_DYNAMIC, 1);
    for (unsigned i = 0; i < 200; i++) {
        load_add(&load);
        if (i % 2 == 0)
            load_add(&load);
        series[i] = threads_of(&load);
        load_drop(&load);
        test_clock_advance(&load.clock, IDLE_NS / 4);
    }
    for (unsigned i = 1; i < 200; i++)
        changes += series[i] != series[i - 1];
    CHECK_EQ(series[0], 2);
    CHECK_EQ(changes, 0);
    hf_pool_close(load.pool);
}

TEST(fixed_pools_keep_their_threads)
{
    struct load load;

    load_open(&load, HF_POOL_FIXED, 0);
    CHECK_EQ(threads_of(&load), MAX);
    test_clock_await_sleepers(&load.clock, MAX);
    test_clock_advance(&load.clock, 100 * IDLE_NS);
    CHECK_EQ(threads_of(&load), MAX);
    for (int i = 0; i < 6; i++)
        load_add(&load);
    CHECK_EQ(threads_of(&load), MAX);
    load_drop(&load);
    hf_pool_shutdown(load.pool);
    CHECK_EQ(hf_pool_await(load.pool, HF_FOREVER), HF_OK);
    CHECK_EQ(threads_of(&load), 0);
    CHECK_EQ(stats_of(&load).threads_peak, MAX);
    hf_pool_close(load.pool);
}

TEST(shutdown_lets_idle_workers_go_and_none_is_born_after)
{
    static const enum hf_pool_kind kinds[] = {HF_POOL_CACHED, HF_POOL_DYNAMIC};

    for (unsigned i = 0; i < 2; i++) {
        struct load load;

        load_open(&load, kinds[i], 0);
        load_add(&load);
        load_add(&load);
        load_drop(&load);
        hf_pool_shutdown(load.pool);
        CHECK_EQ(hf_pool_submit(load.pool, at_gate, NULL, NULL, NULL),
                 HF_CLOSED);
        CHECK_EQ(hf_pool_await(load.pool, HF_FOREVER), HF_OK);
        CHECK_EQ(hf_pool_submit(load.pool, at_gate, NULL, NULL, NULL),
                 HF_CLOSED);
        CHECK_EQ(threads_of(&load), 0);
        CHECK_EQ(stats_of(&load).threads_peak, 2);
        hf_pool_close(load.pool);
    }
}
