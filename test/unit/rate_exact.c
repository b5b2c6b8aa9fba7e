/* rate_exact.c - buckets at rates that do not divide, over simulated years. */
#include "base/random.h"
#include "flow/rate_state.h"
#include "holdfast/rate.h"
#include "support/test.h"

typedef unsigned __int128 u128;

#define SECOND UINT64_C(1000000000)
#define DAY    (86400 * SECOND)
#define YEAR   (365 * DAY)

static const struct hf_rate_rule rates[] = {
    {.permits = 1, .span_ns = DAY, .burst = 1},
    {.permits = 7, .span_ns = DAY, .burst = 2},
    {.permits = 1000003, .span_ns = DAY, .burst = 1},
    {.permits = 1, .span_ns = 7 * DAY + 1, .burst = 3},
    {.permits = 3, .span_ns = SECOND, .burst = 3},
    {.permits = 7, .span_ns = 60 * SECOND, .burst = 7},
    {.permits = 1234, .span_ns = SECOND, .burst = 100},
    {.permits = 999999937, .span_ns = 2 * SECOND, .burst = 1000000000},
    {.permits = 999999999, .span_ns = SECOND, .burst = 4000000000},
    {.permits = 1000000000, .span_ns = SECOND, .burst = 4000000000},
    {.permits = 2, .span_ns = 3, .burst = 10},
    {.permits = 4294967295, .span_ns = 4294967296, .burst = 4294967295},
    {.permits = 4294967291, .span_ns = DAY, .burst = 5},
};

#define RATES (sizeof rates / sizeof rates[0])

static void open_rate(struct hf_rate *rate, const struct hf_rate_rule *rule)
{
    CHECK_EQ(hf_rate_memory(rule), 0);
    CHECK_EQ(hf_rate_open(rate, rule, NULL), HF_OK);
}

/* The last unit passed at now, and the first instant of a unit, by long
 * division: bit by bit, so that nothing is shared with the code. */
static u128 divide(u128 high, uint64_t by)
{
    u128 quotient = 0;
    u128 rest = 0;

    for (int bit = 127; bit >= 0; bit--) {
        rest = rest << 1 | (high >> bit & 1);
        quotient <<= 1;
        if (rest >= by) {
            rest -= by;
            quotient |= 1;
        }
    }
    return quotient;
}

static u128 naive_mark(const struct hf_rate_rule *rule, uint64_t now_ns)
{
    uint64_t part = rule->span_ns / rule->permits;

    /* now * permits * part / span: the product may pass 128 bits only for
     * instants that no test here uses */
    return divide((u128)now_ns * (rule->permits * part), rule->span_ns);
}

TEST(the_product_with_the_inverse_is_the_quotient)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (unsigned i = 0; i < RATES; i++) {
        struct hf_rate rate;
        open_rate(&rate, &rates[i]);
        for (int j = 0; j < 1000; j++) {
            uint64_t now_ns =
                hf_random_next(&random) >> (1 + hf_random_below(&random, 63));
            if (j < 10)
                now_ns = HF_RATE_NOW_MAX_NS - (uint64_t)j;
            CHECK_EQ(rate_mark(&rate.plan, now_ns),
                     naive_mark(&rates[i], now_ns));
        }
    }
}

/* At whole numbers of spans everything is a whole number of units, and the
 * instant before is not: the worst places for a product with an inverse. */
TEST(the_quotient_is_right_where_it_changes)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (unsigned i = 0; i < RATES; i++) {
        struct hf_rate rate;
        open_rate(&rate, &rates[i]);
        for (int j = 0; j < 1000; j++) {
            uint64_t mark =
                hf_random_next(&random) >> (2 + hf_random_below(&random, 62));
            uint64_t at_ns = rate.plan.inverse == 0
                                 ? mark
                                 : hf_rate_instant(&rate.plan, mark);
            if (at_ns == 0 || at_ns > HF_RATE_NOW_MAX_NS)
                continue;
            CHECK(naive_mark(&rates[i], at_ns) >= mark);
            CHECK(naive_mark(&rates[i], at_ns - 1) < mark);
            CHECK_EQ(rate_mark(&rate.plan, at_ns),
                     naive_mark(&rates[i], at_ns));
        }
    }
}

/* Takes all there is, waits exactly as told, and so on for years: permit n of
 * those earned must come n * span / permits after the start, but for the unit
 * to which instants are rounded. */
TEST(nothing_drifts_over_years)
{
    for (unsigned i = 0; i < RATES; i++) {
        const struct hf_rate_rule *rule = &rates[i];
        struct hf_rate rate;
        uint64_t start_ns = 12345678901 + i;
        uint64_t now_ns = start_ns;
        u128 taken = 0;
        open_rate(&rate, rule);
        CHECK_EQ(hf_rate_take(&rate, rule->burst, now_ns), 0);
        for (int j = 0; j < 100000 && now_ns < 20 * YEAR; j++) {
            uint32_t count = j % 2 == 0 ? rule->burst : 1;
            uint64_t wait_ns = hf_rate_take(&rate, count, now_ns);
            if (wait_ns == 0) { /* parts of a unit were saved up */
                taken += count;
                continue;
            }
            CHECK(wait_ns != HF_RATE_NEVER);
            CHECK_EQ(hf_rate_take(&rate, count, now_ns + wait_ns - 1), 1);
            now_ns += wait_ns;
            CHECK_EQ(hf_rate_take(&rate, count, now_ns), 0);
            taken += count;
            u128 exact = taken * rule->span_ns;
            u128 lived = (u128)(now_ns - start_ns) * rule->permits;
            /* never later than due, and by less than 2 ns earlier */
            CHECK(lived < exact + rule->permits);
            CHECK(lived + 2 * (u128)rule->permits > exact);
        }
    }
}

/* Long leaps: after n spans exactly n times the permits have been earned. */
TEST(a_leap_of_many_spans_earns_exactly_their_permits)
{
    for (unsigned i = 0; i < RATES; i++) {
        const struct hf_rate_rule *rule = &rates[i];
        struct hf_rate rate;
        open_rate(&rate, rule);
        uint64_t spans = rule->burst / rule->permits;
        if (spans == 0)
            continue;
        for (uint64_t at = 1; at < 9 * YEAR / rule->span_ns; at = at * 3 + 1) {
            uint64_t now_ns = at * rule->span_ns;
            CHECK_EQ(hf_rate_take(&rate, rule->burst, now_ns), 0);
            now_ns += spans * rule->span_ns;
            uint32_t earned = (uint32_t)(spans * rule->permits);
            CHECK(hf_rate_wait(&rate, earned, now_ns - 1) >= 1);
            CHECK_EQ(hf_rate_take(&rate, earned, now_ns), 0);
            CHECK(hf_rate_wait(&rate, 1, now_ns) >= 1);
            open_rate(&rate, rule);
        }
    }
}

/* The engine's arithmetic (units of 1/permits ns, nothing rounded) beside
 * ours, on random calls. */
struct engine {
    u128 full;
};

static bool engine_allows(const struct engine *engine,
                          const struct hf_rate_rule *rule, uint64_t limit,
                          uint64_t count, uint64_t now_ns, u128 *full)
{
    u128 now = (u128)now_ns * rule->permits;

    *full =
        (engine->full > now ? engine->full : now) + (u128)count * rule->span_ns;
    return *full <= now + (u128)limit * rule->span_ns;
}

static void check_beside_engine(const struct hf_rate_rule *rule, uint64_t seed)
{
    struct hf_random random;
    struct engine engine = {0};
    struct hf_rate rate;
    uint64_t now_ns = 1000;
    bool divides = rule->span_ns % rule->permits == 0;
    uint64_t period_ns = rule->span_ns / rule->permits;

    hf_random_init(&random, seed);
    open_rate(&rate, rule);
    uint64_t limit = rate.plan.limit;
    for (int i = 0; i < 1000; i++) {
        uint32_t count = (uint32_t)hf_random_below(&random, limit + 2);
        struct hf_rate_answer answer;
        u128 full;
        if (hf_random_below(&random, 3) != 0)
            count = (uint32_t)hf_random_below(&random, 3);
        now_ns += hf_random_below(&random, 2 * period_ns + 2);
        uint64_t back_ns = hf_random_below(&random, 20) == 0
                               ? hf_random_below(&random, now_ns)
                               : 0;
        uint64_t at_ns = now_ns - back_ns;
        bool allows = engine_allows(&engine, rule, limit, count, at_ns, &full);
        uint64_t wait_ns = hf_rate_ask(&rate, count, at_ns, &answer);
        CHECK_EQ(wait_ns == HF_RATE_NEVER, count > limit);
        if (allows) /* we refuse nothing that it allows */
            CHECK_EQ(wait_ns, 0);
        if (wait_ns == 0 && !allows) { /* and are less than 2 ns early */
            CHECK(!divides);
            CHECK(engine_allows(&engine, rule, limit, count, at_ns + 2, &full));
            (void)engine_allows(&engine, rule, limit, count, at_ns, &full);
        }
        if (wait_ns == 0)
            engine.full = full;
        if (wait_ns != 0 && wait_ns != HF_RATE_NEVER) {
            u128 ignore;
            CHECK(wait_ns == 1 || !engine_allows(&engine, rule, limit, count,
                                                 at_ns + wait_ns - 1, &ignore));
            CHECK(engine_allows(&engine, rule, limit, count,
                                at_ns + wait_ns + (divides ? 0 : 2), &ignore));
        }
        u128 now = (u128)at_ns * rule->permits;
        u128 spent = engine.full > now ? engine.full - now : 0;
        u128 edge = (u128)limit * rule->span_ns;
        u128 left = spent < edge ? (edge - spent) / rule->span_ns : 0;
        u128 reset = (spent + rule->permits - 1) / rule->permits;
        if (divides) {
            CHECK_EQ(answer.remaining, left);
            CHECK_EQ(answer.reset_ns, reset);
        }
        CHECK(answer.remaining >= left);
        CHECK(answer.remaining <= left + 1);
        CHECK(answer.reset_ns <= reset);
        CHECK(answer.reset_ns + 2 >= reset);
    }
}

TEST(random_calls_are_answered_as_by_the_engines_arithmetic)
{
    for (unsigned i = 0; i < RATES; i++) {
        for (uint64_t seed = 0; seed < 10; seed++) {
            struct hf_rate_rule rule = rates[i];
            check_beside_engine(&rule, test_seed() + seed);
            rule.kind = HF_RATE_GCRA;
            rule.burst = rule.burst > 5 ? 5 : rule.burst;
            check_beside_engine(&rule, test_seed() + seed);
        }
    }
}

/* Whatever the instants and their order: between any two of them no more went
 * through than the burst and what was earned. */
TEST(instants_out_of_order_let_no_more_through)
{
    enum { CALLS = 80 };
    static const struct hf_rate_rule rules[] = {
        {.permits = 1, .span_ns = 10, .burst = 5},
        {.permits = 3, .span_ns = 10, .burst = 4},
        {.permits = 7, .span_ns = 9, .burst = 9},
        {.kind = HF_RATE_GCRA, .permits = 2, .span_ns = 7, .burst = 3},
    };
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (int round = 0; round < 200; round++) {
        const struct hf_rate_rule *rule = &rules[round % 4];
        uint64_t at_ns[CALLS];
        uint32_t got[CALLS];
        struct hf_rate rate;
        open_rate(&rate, rule);
        for (int i = 0; i < CALLS; i++) {
            at_ns[i] = hf_random_below(&random, 300);
            got[i] = 1 + (uint32_t)hf_random_below(&random, 3);
            if (hf_rate_take(&rate, got[i], at_ns[i]) != 0)
                got[i] = 0;
        }
        for (int i = 0; i < CALLS; i++) {
            for (int j = 0; j < CALLS; j++) {
                uint64_t units = rate.plan.edge;
                uint64_t sum = 0;
                if (at_ns[j] < at_ns[i])
                    continue;
                for (int k = 0; k < CALLS; k++)
                    if (at_ns[k] >= at_ns[i] && at_ns[k] <= at_ns[j])
                        sum += got[k];
                units += (uint64_t)(naive_mark(rule, at_ns[j]) -
                                    naive_mark(rule, at_ns[i]));
                CHECK(sum * rate.plan.cost <= units);
            }
        }
    }
}

TEST(the_end_of_time_is_no_trap)
{
    for (unsigned i = 0; i < RATES; i++) {
        struct hf_rate rate;
        open_rate(&rate, &rates[i]);
        CHECK_EQ(hf_rate_take(&rate, rates[i].burst, UINT64_MAX), 0);
        CHECK(hf_rate_take(&rate, 1, UINT64_MAX) > 0);
        CHECK(hf_rate_take(&rate, 1, HF_RATE_NOW_MAX_NS) > 0);
        CHECK(hf_rate_take(&rate, 1, 0) > 0);
        CHECK(hf_rate_take(&rate, 1, 0) < HF_RATE_NEVER);
        hf_rate_refund(&rate, UINT32_MAX, UINT64_MAX);
        CHECK_EQ(hf_rate_take(&rate, rates[i].burst, UINT64_MAX), 0);
    }
}
