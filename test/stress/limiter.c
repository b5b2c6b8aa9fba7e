/* Stress of the limiter: the budget is exact while keys come and go.
 *
 * tests: also under sanitizers
 *
 * 32 threads. Time is a counter that they all move, so that keys become whole
 * again and are forgotten while others are used.
 */
#include "holdfast/limiter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32
#define SECOND  UINT64_C(1000000000)

static uint64_t rounds(uint64_t plain)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && san[0] != 0 ? plain / 10 : plain;
}

struct stage {
    struct hf_limiter *limiter;
    uint32_t budget_rule;
    uint32_t other_rule;
    uint64_t rounds;
    struct hf_atomic_u64 now_ns;
    struct hf_atomic_u64 taken;
    struct hf_atomic_u64 broken;
};

static void stage_open(struct stage *stage, uint64_t plain)
{
    struct hf_limiter_opts opts = {.shards = 4};

    memset(stage, 0, sizeof *stage);
    CHECK_EQ(hf_limiter_open(&stage->limiter, &opts), HF_OK);
    stage->rounds = rounds(plain);
    hf_u64_store(&stage->now_ns, 1, __ATOMIC_RELAXED);
}

static uint32_t define(struct hf_limiter *limiter, const char *name,
                       uint32_t permits, uint64_t span_ns, uint32_t burst)
{
    struct hf_limiter_rule rule = {
        .rate = {.permits = permits, .span_ns = span_ns, .burst = burst}};
    uint32_t number = 0;

    CHECK_EQ(hf_limiter_define(limiter, name, &rule, &number), HF_OK);
    return number;
}

static bool take(struct stage *stage, uint32_t rule, const void *key,
                 size_t len, uint64_t now_ns)
{
    struct hf_limiter_ask ask = {
        .rule = rule, .key = key, .key_len = len, .cost = 1};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = now_ns};
    struct hf_limiter_answer answer;

    if (hf_limiter_take(stage->limiter, &call, &answer) != HF_OK) {
        hf_u64_add(&stage->broken, 1, __ATOMIC_RELAXED);
        return false;
    }
    return answer.allowed;
}

/* Some seconds in all, also with a tenth of the rounds: keys are forgotten
 * after one. */
#define BUDGET_STEP_NS 100000u

static void budget_body(void *context, int index)
{
    struct stage *stage = context;
    struct hf_random random;
    uint64_t mine = 0;

    hf_random_init(&random, (uint64_t)index + 1);
    for (uint64_t i = 0; i < stage->rounds; i++) {
        uint64_t now_ns =
            hf_u64_add(&stage->now_ns, BUDGET_STEP_NS, __ATOMIC_RELAXED);
        /* late: other threads are ahead, and may have forgotten keys by a time
         * that is not yet come here */
        uint64_t late = hf_random_below(&random, 2 * SECOND);
        uint64_t fresh = (uint64_t)index << 40 | i;
        now_ns = now_ns > late ? now_ns - late : 1;
        mine += take(stage, stage->budget_rule, "the one", 7, now_ns);
        (void)take(stage, stage->other_rule, &fresh, sizeof fresh, now_ns);
    }
    hf_u64_add(&stage->taken, mine, __ATOMIC_RELAXED);
}

/* 1000 permits that come back after years: exactly 1000 go, however many keys
 * come and are forgotten. */
TEST(one_budget_is_exact_while_keys_come_and_go)
{
    struct stage stage;
    struct hf_limiter_stats stats;

    stage_open(&stage, 20000);
    stage.budget_rule = define(stage.limiter, "one", 1,
                               UINT64_C(100000000) * SECOND / 1000, 1000);
    stage.other_rule = define(stage.limiter, "other", 1, 1000000, 1);
    test_threads(THREADS, budget_body, &stage);
    CHECK_EQ(hf_u64_load(&stage.taken, __ATOMIC_RELAXED), 1000);
    CHECK_EQ(hf_u64_load(&stage.broken, __ATOMIC_RELAXED), 0);
    hf_limiter_stats(stage.limiter, &stats);
    CHECK(stats.evictions > 0);
    CHECK_EQ(stats.allowed + stats.denied, 2 * THREADS * stage.rounds);
    hf_limiter_close(stage.limiter);
}

/* Threads take from random pairs of few keys; the sums must be what the keys
 * say at the end: nothing burned, nothing lost. */
#define KEYS 8

struct ledger {
    struct stage stage;
    struct hf_atomic_u64 spent[KEYS];
};

static void pairs_body(void *context, int index)
{
    struct ledger *ledger = context;
    struct stage *stage = &ledger->stage;
    struct hf_random random;

    hf_random_init(&random, (uint64_t)index + 77);
    for (uint64_t i = 0; i < stage->rounds; i++) {
        struct hf_limiter_ask asks[3];
        struct hf_limiter_answer answer;
        char keys[3];
        for (int j = 0; j < 3; j++) {
            keys[j] = (char)hf_random_below(&random, KEYS);
            asks[j] = (struct hf_limiter_ask){
                .rule = j == 2 ? stage->other_rule : stage->budget_rule,
                .key = &keys[j],
                .key_len = 1,
                .cost = 1 + hf_random_below(&random, 3)};
        }
        struct hf_limiter_call call = {.asks = asks, .count = 3, .now_ns = 5};
        if (hf_limiter_take(stage->limiter, &call, &answer) != HF_OK) {
            hf_u64_add(&stage->broken, 1, __ATOMIC_RELAXED);
            continue;
        }
        for (int j = 0; j < 2 && answer.allowed; j++)
            hf_u64_add(&ledger->spent[(int)keys[j]], asks[j].cost,
                       __ATOMIC_RELAXED);
    }
}

TEST(several_pairs_burn_nothing)
{
    static struct ledger ledger;

    memset(&ledger, 0, sizeof ledger);
    stage_open(&ledger.stage, 5000);
    struct hf_limiter *limiter = ledger.stage.limiter;
    /* the second rule denies about half of what the first would allow */
    ledger.stage.budget_rule = define(limiter, "much", 1, SECOND, 1000000);
    ledger.stage.other_rule = define(limiter, "little", 1, SECOND, 3000);
    test_threads(THREADS, pairs_body, &ledger);
    CHECK_EQ(hf_u64_load(&ledger.stage.broken, __ATOMIC_RELAXED), 0);
    for (int i = 0; i < KEYS; i++) {
        char key = (char)i;
        struct hf_limiter_ask ask = {
            .rule = ledger.stage.budget_rule, .key = &key, .key_len = 1};
        struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 5};
        struct hf_limiter_answer answer;
        CHECK_EQ(hf_limiter_peek(limiter, &call, &answer), HF_OK);
        CHECK_EQ(answer.limit - answer.remaining,
                 hf_u64_load(&ledger.spent[i], __ATOMIC_RELAXED));
    }
    hf_limiter_close(limiter);
}

/* Rules are changed and numbers vary while all threads take; holds are opened
 * and settled for nothing: at the end only what was taken is spent. */
static void change_body(void *context, int index)
{
    struct stage *stage = context;
    struct hf_random random;
    uint64_t mine = 0;
    char name[8];

    hf_random_init(&random, (uint64_t)index + 5);
    snprintf(name, sizeof name, "v%d", index % 4);
    for (uint64_t i = 0; i < stage->rounds; i++) {
        struct hf_limiter_rule rule = {
            .rate = {.permits = 1,
                     .span_ns = 1000 * SECOND,
                     .burst =
                         (uint32_t)(1000000 + hf_random_below(&random, 100))}};
        struct hf_limiter_ask ask = {
            .rule = stage->budget_rule, .key = "k", .key_len = 1, .cost = 1};
        struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 5};
        struct hf_limiter_answer answer;
        uint64_t hold;
        enum hf_status status = HF_OK;
        switch (hf_random_below(&random, 5)) {
        case 0:
            status = hf_limiter_define(stage->limiter, "one", &rule, NULL);
            break;
        case 1:
            status =
                hf_limiter_hold(stage->limiter, &call, SECOND, &answer, &hold);
            if (status == HF_OK && answer.allowed)
                status = hf_limiter_settle(stage->limiter, hold, 0, 6);
            break;
        case 2:
            ask.own = &rule;
            status = hf_limiter_take(stage->limiter, &call, &answer);
            break;
        case 3:
            status = hf_limiter_define(stage->limiter, name, &rule, NULL);
            if (status == HF_OK)
                status = hf_limiter_remove(stage->limiter, name);
            if (status == HF_NOTFOUND) /* another thread's was quicker */
                status = HF_OK;
            break;
        default:
            status = hf_limiter_take(stage->limiter, &call, &answer);
            mine += status == HF_OK && answer.allowed;
        }
        if (status != HF_OK)
            hf_u64_add(&stage->broken, 1, __ATOMIC_RELAXED);
    }
    hf_u64_add(&stage->taken, mine, __ATOMIC_RELAXED);
}

TEST(rules_change_under_load_and_nothing_spent_is_lost)
{
    struct stage stage;

    stage_open(&stage, 5000);
    stage.budget_rule = define(stage.limiter, "one", 1, 1000 * SECOND, 1000000);
    test_threads(THREADS, change_body, &stage);
    CHECK_EQ(hf_u64_load(&stage.broken, __ATOMIC_RELAXED), 0);
    struct hf_limiter_ask ask = {
        .rule = stage.budget_rule, .key = "k", .key_len = 1};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 5};
    struct hf_limiter_answer answer;
    CHECK_EQ(hf_limiter_peek(stage.limiter, &call, &answer), HF_OK);
    CHECK_EQ(answer.limit - answer.remaining,
             hf_u64_load(&stage.taken, __ATOMIC_RELAXED));
    struct hf_limiter_stats stats;
    hf_limiter_stats(stage.limiter, &stats);
    CHECK_EQ(stats.holds, 0);
    hf_limiter_close(stage.limiter);
}
