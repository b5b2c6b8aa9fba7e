/* throttle.c - tests of the words of CL.THROTTLE and GCRA. */
#include "server/throttle.h"

#include "base/random.h"
#include "flow/rate_state.h"
#include "support/test.h"

#define MS     UINT64_C(1000000)
#define SECOND (1000 * MS)

static enum hf_status plan_of(enum throttle_form form, int64_t max_burst,
                              int64_t count, uint64_t period_ns,
                              struct hf_rate_plan *plan)
{
    struct hf_rate_rule rule;
    enum hf_status status =
        throttle_rule(form, max_burst, count, period_ns, &rule);

    return status == HF_OK ? hf_rate_plan_make(plan, &rule) : status;
}

/* `*word` is the state of the key, and is changed if the call is allowed. */
static void take(enum throttle_form form, const struct hf_rate_plan *plan,
                 uint64_t *word, uint64_t quantity, uint64_t now_ns,
                 struct throttle_answer *answer)
{
    struct hf_rate_answer told;
    struct rate_state state = {{*word, 0}};
    struct rate_state next = state;
    uint64_t wait_ns =
        hf_rate_state_take(plan, &state, quantity, 0, now_ns, &next);

    if (wait_ns == 0 && quantity > 0)
        *word = next.word[0];
    state.word[0] = *word;
    hf_rate_state_tell(plan, &state, now_ns, &told);
    told.wait_ns = wait_ns;
    throttle_tell(form, plan, &told, answer);
}

/* redis-cell's own table: 5 at once, one per second. reset and retry are told
 * here in milliseconds, as its library has them; the command rounds. */
static const struct {
    uint64_t now_ms;
    uint64_t quantity;
    bool limited;
    int64_t remaining;
    int64_t reset_ms;
    int64_t retry_ms;
} table[15] = {
    {0, 6, true, 5, 0, -1},         {0, 1, false, 4, 1000, -1},
    {0, 1, false, 3, 2000, -1},     {0, 1, false, 2, 3000, -1},
    {0, 1, false, 1, 4000, -1},     {0, 1, false, 0, 5000, -1},
    {0, 1, true, 0, 5000, 1000},    {3000, 1, false, 2, 3000, -1},
    {3100, 1, false, 1, 3900, -1},  {4000, 1, false, 1, 4000, -1},
    {8000, 1, false, 4, 1000, -1},  {9500, 1, false, 4, 1000, -1},
    {9500, 0, false, 4, 1000, -1},  {9500, 2, false, 2, 3000, -1},
    {9500, 5, true, 2, 3000, 3000},
};

static int64_t up(int64_t ms)
{
    return ms < 0 ? -1 : (ms + 999) / 1000;
}

static void check_table(enum throttle_form form, uint64_t start_ns)
{
    struct hf_rate_plan plan;
    uint64_t word = 0;

    CHECK_EQ(plan_of(form, 4, 1, SECOND, &plan), HF_OK);
    for (unsigned i = 0; i < 15; i++) {
        struct throttle_answer answer;
        take(form, &plan, &word, table[i].quantity,
             start_ns + table[i].now_ms * MS, &answer);
        CHECK_EQ(answer.limited, table[i].limited);
        CHECK_EQ(answer.limit, 5);
        CHECK_EQ(answer.remaining, table[i].remaining);
        CHECK_EQ(answer.reset_s, up(table[i].reset_ms));
        CHECK_EQ(answer.retry_s, up(table[i].retry_ms));
    }
}

TEST(the_table_of_redis_cell)
{
    check_table(THROTTLE_CELL, 0);
    check_table(THROTTLE_CELL, 1750000000 * SECOND + 7);
    check_table(THROTTLE_REDIS, 1750000000 * SECOND);
}

TEST(the_table_holds_to_the_nanosecond_for_the_plan_itself)
{
    struct hf_rate_rule rule = {
        .kind = HF_RATE_GCRA, .permits = 1, .burst = 4, .span_ns = SECOND};
    struct hf_rate rate;

    CHECK_EQ(hf_rate_open(&rate, &rule, NULL), HF_OK);
    for (unsigned i = 0; i < 15; i++) {
        struct hf_rate_answer answer;
        uint64_t now_ns = 12345 * SECOND + table[i].now_ms * MS;
        uint64_t wait_ns =
            hf_rate_ask(&rate, (uint32_t)table[i].quantity, now_ns, &answer);
        CHECK_EQ(wait_ns != 0, table[i].limited);
        if (table[i].limited && table[i].retry_ms >= 0)
            CHECK_EQ(wait_ns, (uint64_t)table[i].retry_ms * MS);
        if (table[i].limited && table[i].retry_ms < 0)
            CHECK(wait_ns == HF_RATE_NEVER);
        CHECK_EQ(answer.limit, 5);
        CHECK_EQ(answer.remaining, table[i].remaining);
        CHECK_EQ(answer.reset_ns, (uint64_t)table[i].reset_ms * MS);
    }
}

TEST(intervals_are_rounded_as_the_models_do)
{
    struct hf_rate_plan plan;

    CHECK_EQ(plan_of(THROTTLE_CELL, 0, 3, SECOND, &plan), HF_OK);
    CHECK_EQ(plan.cost, 333333333);
    CHECK_EQ(plan_of(THROTTLE_REDIS, 0, 3, SECOND, &plan), HF_OK);
    CHECK_EQ(plan.cost, 333333000);
    CHECK_EQ(plan_of(THROTTLE_REDIS, 0, 3, 2 * SECOND, &plan), HF_OK);
    CHECK_EQ(plan.cost, 666667000);
    CHECK_EQ(plan_of(THROTTLE_REDIS, 0, 2, 1000, &plan), HF_OK);
    CHECK_EQ(plan.cost, 1000); /* half a microsecond is rounded up */
    CHECK_EQ(plan_of(THROTTLE_REDIS, 0, 1000000000, 1000, &plan), HF_OK);
    CHECK_EQ(plan.cost, 1000); /* and is never 0 */
    CHECK_EQ(plan_of(THROTTLE_CELL, 0, 1000000000, SECOND, &plan), HF_OK);
    CHECK_EQ(plan.cost, 1);
}

TEST(bad_rules_are_refused)
{
    struct hf_rate_plan plan = {.limit = 7};

    for (int form = THROTTLE_CELL; form <= THROTTLE_REDIS; form++) {
        enum throttle_form f = (enum throttle_form)form;
        CHECK_EQ(plan_of(f, -1, 1, 1, &plan), HF_INVALID);
        CHECK_EQ(plan_of(f, UINT32_MAX, 1, 1, &plan), HF_INVALID);
        CHECK_EQ(plan_of(f, INT64_MAX, 1, 1, &plan), HF_INVALID);
        CHECK_EQ(plan_of(f, 1, 0, 1, &plan), HF_INVALID);
        CHECK_EQ(plan_of(f, 1, -1, 1, &plan), HF_INVALID);
        CHECK_EQ(plan_of(f, 1, 1, 0, &plan), HF_INVALID);
        CHECK_EQ(plan_of(f, 1, 1, UINT64_MAX, &plan), HF_INVALID);
        CHECK_EQ(plan_of(f, 4000000000, 1, SECOND * 1000, &plan), HF_INVALID);
    }
    CHECK_EQ(plan_of(THROTTLE_CELL, 1, 2, 1, &plan), HF_INVALID);
    CHECK_EQ(plan.limit, 7);
}

/* The algorithm as its papers tell it, in plain signed numbers of ns. */
struct naive {
    int64_t tat;
};

static void naive_take(struct naive *naive, enum throttle_form form,
                       int64_t interval, int64_t limit, int64_t quantity,
                       int64_t now, struct throttle_answer *answer)
{
    int64_t tat = naive->tat > now ? naive->tat : now;
    int64_t dvt = interval * limit;
    int64_t new_tat = tat + interval * quantity;
    int64_t diff = now - (new_tat - dvt);
    int64_t ttl = diff < 0 ? tat - now : new_tat - now;
    int64_t unit = form == THROTTLE_CELL ? 1000 : 1;
    /* redis-cell does not see a part below a millisecond. */
    int64_t part = form == THROTTLE_CELL ? 999000000 : 999999999;

    *answer = (struct throttle_answer){.limit = limit, .retry_s = -1};
    answer->limited = diff < 0;
    if (diff < 0 && interval * quantity <= dvt)
        answer->retry_s = (-diff + part) / 1000000000;
    if (diff >= 0)
        naive->tat = new_tat;
    answer->reset_s = (ttl + part) / 1000000000;
    if (dvt - ttl > -interval)
        answer->remaining = ((dvt - ttl) / unit) / (interval / unit);
}

TEST(random_calls_are_answered_as_by_the_plain_algorithm)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (int round = 0; round < 2000; round++) {
        enum throttle_form form = (enum throttle_form)(round % 2);
        struct naive naive = {.tat = 0};
        struct hf_rate_plan plan;
        uint64_t word = 0;
        int64_t burst = (int64_t)hf_random_below(&random, 20);
        int64_t count = 1 + (int64_t)hf_random_below(&random, 70);
        uint64_t period_s = 1 + hf_random_below(&random, 100);
        uint64_t now_ns = hf_random_below(&random, 1000 * SECOND);
        CHECK_EQ(plan_of(form, burst, count, period_s * SECOND, &plan), HF_OK);
        for (int i = 0; i < 100; i++) {
            struct throttle_answer found;
            struct throttle_answer want;
            uint64_t quantity = hf_random_below(&random, 5);
            now_ns += hf_random_below(&random, 2 * plan.cost);
            take(form, &plan, &word, quantity, now_ns, &found);
            naive_take(&naive, form, (int64_t)plan.cost, burst + 1,
                       (int64_t)quantity, (int64_t)now_ns, &want);
            CHECK_EQ(found.limited, want.limited);
            CHECK_EQ(found.limit, want.limit);
            CHECK_EQ(found.remaining, want.remaining);
            CHECK_EQ(found.retry_s, want.retry_s);
            CHECK_EQ(found.reset_s, want.reset_s);
        }
    }
}
