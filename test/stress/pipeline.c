/* pipeline.c - hf_pipeline under real threads.
 * tests: also under sanitizers
 *
 * A million items through a slow end with memory that stays as it is; order
 * with many workers; and rounds of pipelines of any shape, with failures, drops
 * and shuts, in which every item must be accounted for.
 */
#include "holdfast/pipeline.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/random.h"
#include "support/pipeline.h"
#include "support/test.h"
#include "support/threads.h"

/* How much of the work is done: a sanitizer makes it slow. */
static unsigned share(unsigned work)
{
    const char *san = getenv("HOLDFAST_SAN");
    return san != NULL && *san != '\0' ? work / 10 : work;
}

/* ---- A million items. ---- */

#define PRODUCERS 2
#define WINDOW    16

struct flow {
    struct hf_pipeline *line;
    unsigned items;                /* of a producer */
    struct hf_atomic_u64 live;     /* items that exist */
    struct hf_atomic_u64 live_max; /* the most that ever did */
    struct hf_atomic_u64 came;     /* out at the end */
    struct hf_atomic_u64 wrong;    /* of any kind */
};

static void wrong(struct flow *flow)
{
    (void)hf_u64_add(&flow->wrong, 1, __ATOMIC_RELAXED);
}

static void raise_max(struct flow *flow, uint64_t live)
{
    uint64_t most = hf_u64_load(&flow->live_max, __ATOMIC_RELAXED);

    while (live > most &&
           !hf_u64_cas(&flow->live_max, &most, live, __ATOMIC_RELAXED))
        continue;
}

static void flow_produce(void *context, int index)
{
    struct flow *flow = context;
    uint64_t before = hf_memory_count();

    (void)index;
    for (unsigned i = 0; i < flow->items; i++) {
        uint64_t *item = malloc(sizeof *item);
        *item = i;
        raise_max(flow, hf_u64_add(&flow->live, 1, __ATOMIC_RELAXED) + 1);
        if (hf_pipeline_put(flow->line, 0, item, HF_FOREVER) != HF_OK)
            wrong(flow);
    }
    if (hf_memory_count() != before)
        wrong(flow); /* something was allocated */
}

/* No worker's call before this one has allocated anything. */
static int flow_look(void *context, void *item, void **out)
{
    static _Thread_local uint64_t before;

    (void)item;
    (void)out;
    if (before == 0)
        before = hf_memory_count() + 1;
    if (hf_memory_count() + 1 != before)
        wrong(context);
    return 0;
}

static int flow_slow(void *context, void *item, void **out)
{
    struct flow *flow = context;

    for (int i = 0; i < 50; i++)
        hf_thread_pause();
    free(item);
    *out = NULL;
    (void)hf_u64_sub(&flow->live, 1, __ATOMIC_RELAXED);
    (void)hf_u64_add(&flow->came, 1, __ATOMIC_RELAXED);
    return 0;
}

TEST(memory_stays_flat_over_a_million_items)
{
    struct flow flow = {.items = share(1000000) / PRODUCERS};
    struct hf_stage_opts first = {
        .work = flow_look, .context = &flow, .workers = 2, .queue_max = 256};
    struct hf_stage_opts second = {.work = flow_look,
                                   .context = &flow,
                                   .workers = 4,
                                   .ordered = true,
                                   .window = WINDOW,
                                   .queue_max = 128};
    struct hf_stage_opts third = {
        .work = flow_slow, .context = &flow, .queue_max = 64};
    struct hf_stage_stats stats;

    CHECK_EQ(hf_pipeline_open(&flow.line, NULL), HF_OK);
    (void)stage(flow.line, &first);
    (void)stage(flow.line, &second);
    (void)stage(flow.line, &third);
    CHECK_EQ(hf_pipeline_link(flow.line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_link(flow.line, 1, 2), HF_OK);
    CHECK_EQ(hf_pipeline_start(flow.line), HF_OK);
    test_threads(PRODUCERS, flow_produce, &flow);
    hf_pipeline_shutdown(flow.line);
    CHECK_EQ(hf_pipeline_await(flow.line, HF_FOREVER), HF_OK);
    CHECK_EQ(flow.wrong.value, 0);
    CHECK_EQ(flow.came.value, flow.items * PRODUCERS);
    CHECK_EQ(flow.live.value, 0);
    /* The queues, the workers' hands, the window, the producers' hands. */
    CHECK(flow.live_max.value <=
          256 + 128 + 64 + 2 + 4 + 1 + WINDOW + PRODUCERS);
    CHECK_EQ(hf_pipeline_stage_stats(flow.line, 0, &stats), HF_OK);
    CHECK(stats.waits > 0); /* the slow end was felt at the beginning */
    check_balance(flow.line, 2);
    hf_pipeline_close(flow.line);
}

/* ---- Order. ---- */

struct series {
    uint64_t *values;
    uint64_t next; /* of the one worker at the end */
    uint64_t wrong;
};

static int uneven(void *context, void *item, void **out)
{
    uint64_t value = *(uint64_t *)item;

    (void)context;
    (void)out;
    for (uint64_t i = value * 7919 % 64; i > 0; i--)
        hf_thread_pause();
    if (value % 100 == 50)
        *out = NULL;
    return value % 100 == 77;
}

static int expect_next(void *context, void *item, void **out)
{
    struct series *series = context;
    uint64_t value = *(uint64_t *)item;

    (void)out;
    while (series->next % 100 == 50 || series->next % 100 == 77)
        series->next++; /* filtered, or dead */
    series->wrong += value != series->next;
    series->next = value + 1;
    return 0;
}

TEST(two_stages_of_four_workers_keep_the_order)
{
    unsigned count = share(100000);
    struct series series = {.values = malloc(count * sizeof(uint64_t))};
    struct hf_stage_opts wide = {
        .work = uneven, .workers = 4, .ordered = true, .queue_max = 8};
    struct hf_stage_opts last = {.work = expect_next, .context = &series};
    struct hf_pipeline *line;
    struct hf_stage_stats stats;

    CHECK_EQ(hf_pipeline_open(&line, NULL), HF_OK);
    (void)stage(line, &wide);
    (void)stage(line, &wide);
    (void)stage(line, &last);
    CHECK_EQ(hf_pipeline_link(line, 0, 1), HF_OK);
    CHECK_EQ(hf_pipeline_link(line, 1, 2), HF_OK);
    CHECK_EQ(hf_pipeline_start(line), HF_OK);
    for (unsigned i = 0; i < count; i++) {
        series.values[i] = i;
        CHECK_EQ(hf_pipeline_put(line, 0, &series.values[i], HF_FOREVER),
                 HF_OK);
    }
    hf_pipeline_shutdown(line);
    CHECK_EQ(hf_pipeline_await(line, HF_FOREVER), HF_OK);
    CHECK_EQ(series.wrong, 0);
    CHECK_EQ(hf_pipeline_stage_stats(line, 2, &stats), HF_OK);
    CHECK_EQ(stats.in, count / 100 * 98);
    check_balance(line, 2);
    hf_pipeline_close(line);
    free(series.values);
}

/* ---- Any shape. ---- */

#define ROUND_STAGES    5
#define ROUND_PRODUCERS 3
#define ROUND_ITEMS     300

struct round {
    struct hf_pipeline *line;
    uint64_t seed;
    uint32_t sources;
    bool fails;
    struct hf_atomic_u64 put, out, filtered, dead, dropped;
    struct hf_atomic_u64 calls, first_calls;
};

static void add(struct hf_atomic_u64 *figure)
{
    (void)hf_u64_add(figure, 1, __ATOMIC_RELAXED);
}

static int round_work(void *context, void *item, void **out)
{
    struct round *round = context;
    uint64_t call = hf_u64_add(&round->calls, 1, __ATOMIC_RELAXED);
    uint64_t chance = (call + round->seed) * UINT64_C(0x9e3779b97f4a7c15) >> 54;

    (void)item;
    if (chance < 30)
        return (int)chance + 1;
    if (chance < 60) {
        *out = NULL;
        add(&round->filtered);
    }
    return 0;
}

/* Of a first stage that is bound to fail. */
static int round_fail(void *context, void *item, void **out)
{
    struct round *round = context;

    if (hf_u64_add(&round->first_calls, 1, __ATOMIC_RELAXED) == 20)
        return -1;
    return round_work(context, item, out);
}

static void round_out(void *context, void *item)
{
    (void)item;
    add(&((struct round *)context)->out);
}

static void round_dead(void *context, void *item, int code)
{
    (void)item;
    (void)code;
    add(&((struct round *)context)->dead);
}

static void round_drop(void *context, void *item, enum hf_status why)
{
    (void)item;
    (void)why;
    add(&((struct round *)context)->dropped);
}

static uint32_t round_route(void *context, void *item)
{
    struct round *round = context;
    (void)item;
    /* Now and then to a link that is not there. */
    return (uint32_t)(hf_u64_load(&round->calls, __ATOMIC_RELAXED) % 5);
}

/* Producers put by any deadline; one of them shuts in some rounds. */
static void round_produce(void *context, int index)
{
    struct round *round = context;
    struct hf_random random;
    static int item;

    hf_random_init(&random, round->seed * 8 + (uint64_t)index);
    bool shuts = index == 0 && hf_random_below(&random, 2) == 0;
    for (unsigned i = 0; i < ROUND_ITEMS; i++) {
        uint32_t to = (uint32_t)hf_random_below(&random, round->sources);
        uint64_t until_ns =
            hf_random_below(&random, 4) == 0 ? HF_NOW : HF_FOREVER;
        if (hf_pipeline_put(round->line, to, &item, until_ns) == HF_OK)
            add(&round->put);
        if (shuts && i == ROUND_ITEMS / 2)
            hf_pipeline_shutdown(round->line);
    }
}

struct shape {
    enum hf_stage_fan fan[ROUND_STAGES];
    bool links[ROUND_STAGES][ROUND_STAGES];
    uint32_t count[ROUND_STAGES]; /* of links */
};

/* Links lead from lower to higher numbers; the sources are the first ones. */
static void build(struct round *round, struct shape *shape)
{
    struct hf_random random;

    hf_random_init(&random, round->seed);
    CHECK_EQ(hf_pipeline_open(&round->line, NULL), HF_OK);
    round->sources = 1 + (uint32_t)hf_random_below(&random, 2);
    round->fails = round->seed % 4 == 0;
    for (uint32_t i = 0; i < ROUND_STAGES; i++) {
        struct hf_stage_opts opts = {
            .work = round_work,
            .out = round_out,
            .dead = round_dead,
            .drop = round_drop,
            .route = round_route,
            .context = round,
            .workers = 1 + (uint32_t)hf_random_below(&random, 3),
            .queue_max = 1 + (uint32_t)hf_random_below(&random, 8),
            .ordered = hf_random_below(&random, 2) == 0,
            .on_full = (enum hf_stage_full)hf_random_below(&random, 3),
            .full_ns = 20000,
            .retries = (uint32_t)hf_random_below(&random, 3),
            .pause_ns = 1000,
            .fan = (enum hf_stage_fan)hf_random_below(&random, 3),
        };
        if (round->fails && (i == 0 || i == ROUND_STAGES - 1))
            opts.on_failure = HF_STAGE_FAIL_FAST;
        if (round->fails && i == 0) {
            opts.work = round_fail;
            opts.retries = 0;
            opts.on_full = HF_STAGE_BLOCK; /* so that enough come */
        }
        shape->fan[i] = opts.fan;
        CHECK_EQ(stage(round->line, &opts), i);
    }
    for (uint32_t to = round->sources; to < ROUND_STAGES; to++) {
        uint32_t sure = (uint32_t)hf_random_below(&random, to);
        for (uint32_t from = 0; from < to; from++) {
            if (from != sure && hf_random_below(&random, 3) != 0)
                continue;
            CHECK_EQ(hf_pipeline_link(round->line, from, to), HF_OK);
            shape->links[from][to] = true;
            shape->count[from]++;
        }
    }
    CHECK_EQ(hf_pipeline_start(round->line), HF_OK);
}

/* What came to each stage is what was sent to it, as far as that is known. */
static void check_links(struct round *round, const struct shape *shape,
                        const struct hf_stage_stats *stats)
{
    for (uint32_t to = round->sources; to < ROUND_STAGES; to++) {
        uint64_t sent = 0;
        bool known = true;
        for (uint32_t from = 0; from < to; from++) {
            if (!shape->links[from][to])
                continue;
            known = known && (shape->fan[from] == HF_STAGE_TO_ALL ||
                              shape->count[from] == 1);
            sent += stats[from].out;
        }
        if (known)
            CHECK_EQ(stats[to].in + stats[to].dropped, sent);
    }
}

static void check_round(struct round *round, const struct shape *shape)
{
    struct hf_stage_stats stats[ROUND_STAGES];
    struct hf_pipeline_stats all;
    uint64_t given = 0; /* results beyond the first that an item made */
    uint64_t dead = 0, dropped = 0, filtered = 0;

    check_balance(round->line, ROUND_STAGES - 1);
    for (uint32_t i = 0; i < ROUND_STAGES; i++) {
        CHECK_EQ(hf_pipeline_stage_stats(round->line, i, &stats[i]), HF_OK);
        if (shape->fan[i] == HF_STAGE_TO_ALL && shape->count[i] > 1)
            given += stats[i].out * (shape->count[i] - 1);
        dead += stats[i].dead;
        dropped += stats[i].dropped + stats[i].cancelled;
        filtered += stats[i].filtered;
    }
    check_links(round, shape, stats);
    CHECK_EQ(round->dead.value, dead);
    CHECK_EQ(round->dropped.value, dropped);
    CHECK_EQ(round->filtered.value, filtered);
    CHECK_EQ(round->put.value + given,
             round->out.value + dead + dropped + filtered);
    CHECK_EQ(hf_pipeline_stats(round->line, &all), HF_OK);
    CHECK_EQ(all.put, round->put.value);
    CHECK_EQ(all.failed, round->fails);
}

TEST(pipelines_of_any_shape_account_for_every_item)
{
    unsigned rounds = share(200);

    for (unsigned i = 0; i < rounds; i++) {
        struct round round = {.seed = test_seed() + i};
        struct shape shape = {0};
        build(&round, &shape);
        test_threads(ROUND_PRODUCERS, round_produce, &round);
        hf_pipeline_shutdown(round.line);
        enum hf_status end = hf_pipeline_await(round.line, HF_FOREVER);
        CHECK_EQ(end, round.fails ? HF_FAILED : HF_OK);
        check_round(&round, &shape);
        hf_pipeline_close(round.line);
    }
}
