/* rate.c - tests of the token bucket. */
#include "holdfast/rate.h"

#include "base/random.h"
#include "support/test.h"
#include "support/threads.h"

TEST(burst_is_granted_then_refused_with_the_exact_wait)
{
    struct hf_rate rate;
    CHECK_EQ(hf_rate_init(&rate, 3, 100), HF_OK);
    CHECK_EQ(hf_rate_take(&rate, 3, 1000), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 1000), 100); /* wait one period */
    CHECK_EQ(hf_rate_take(&rate, 1, 1099), 1);   /* one ns early */
    CHECK_EQ(hf_rate_take(&rate, 1, 1100), 0);
}

TEST(count_above_the_burst_is_refused_for_ever)
{
    struct hf_rate rate;
    CHECK_EQ(hf_rate_init(&rate, 3, 100), HF_OK);
    CHECK_EQ(hf_rate_take(&rate, 4, 1000), HF_RATE_NEVER);
    CHECK_EQ(hf_rate_wait(&rate, UINT32_MAX, 1000), HF_RATE_NEVER);
    CHECK_EQ(hf_rate_take(&rate, 3, 1000), 0); /* nothing was burned */
}

TEST(a_huge_period_times_count_does_not_wrap_round)
{
    struct hf_rate rate;
    CHECK_EQ(hf_rate_init(&rate, 1, HF_RATE_SPAN_MAX_NS), HF_OK);
    CHECK_EQ(hf_rate_take(&rate, 4, 0), HF_RATE_NEVER);
    CHECK_EQ(hf_rate_take(&rate, 5, 0), HF_RATE_NEVER);
    CHECK_EQ(hf_rate_take(&rate, 1, UINT64_MAX / 2), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, UINT64_MAX / 2), HF_RATE_SPAN_MAX_NS);
}

TEST(wait_tells_and_takes_nothing)
{
    struct hf_rate rate;
    CHECK_EQ(hf_rate_init(&rate, 2, 10), HF_OK);
    CHECK_EQ(hf_rate_wait(&rate, 2, 50), 0);
    CHECK_EQ(hf_rate_wait(&rate, 2, 50), 0);
    CHECK_EQ(hf_rate_take(&rate, 2, 50), 0);
    CHECK_EQ(hf_rate_wait(&rate, 2, 55), 15);
}

TEST(bad_arguments_are_refused_and_change_nothing)
{
    struct hf_rate rate = {.word = {9}, .plan = {.limit = 7}};
    CHECK_EQ(hf_rate_init(NULL, 1, 1), HF_INVALID);
    CHECK_EQ(hf_rate_init(&rate, 0, 1), HF_INVALID);
    CHECK_EQ(hf_rate_init(&rate, 1, 0), HF_INVALID);
    CHECK_EQ(hf_rate_init(&rate, 1, HF_RATE_SPAN_MAX_NS + 1), HF_INVALID);
    CHECK_EQ(hf_rate_init(&rate, 2, HF_RATE_SPAN_MAX_NS), HF_INVALID);
    CHECK_EQ(rate.plan.limit, 7);
    CHECK_EQ(rate.word.value, 9);
}

TEST(time_that_goes_back_lets_nothing_more_through)
{
    struct hf_rate rate;
    CHECK_EQ(hf_rate_init(&rate, 5, 100), HF_OK);
    CHECK_EQ(hf_rate_take(&rate, 5, 1000), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 400), 700);
    CHECK_EQ(hf_rate_take(&rate, 1, 1000), 100);
}

#define THREADS 32
#define BURST   1000
#define SPAN_NS 100000

struct race {
    struct hf_rate rate;
    uint64_t granted[THREADS];
};

/* Every thread walks its own jumble of instants inside [0, SPAN_NS]. */
static void race_body(void *context, int index)
{
    struct race *race = context;
    struct hf_random random;

    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = 0; i < 20000; i++) {
        uint64_t now_ns = hf_random_below(&random, SPAN_NS + 1);
        uint32_t count = 1 + (uint32_t)hf_random_below(&random, 3);
        if (hf_rate_take(&race->rate, count, now_ns) == 0)
            race->granted[index] += count;
    }
}

TEST(many_threads_with_times_out_of_order_get_exactly_the_budget)
{
    struct race race = {.granted = {0}};
    uint64_t granted = 0;

    CHECK_EQ(hf_rate_init(&race.rate, BURST, 100), HF_OK);
    test_threads(THREADS, race_body, &race);
    for (int i = 0; i < THREADS; i++)
        granted += race.granted[i];
    while (hf_rate_take(&race.rate, 1, SPAN_NS) == 0)
        granted++;
    /* the burst, and what SPAN_NS earned; jumbled times may only lose some */
    CHECK(granted <= BURST + SPAN_NS / 100);
    CHECK(granted >= BURST);
}

static void same_instant_body(void *context, int index)
{
    struct race *race = context;

    for (int i = 0; i < 1000; i++)
        race->granted[index] += hf_rate_take(&race->rate, 1, SPAN_NS) == 0;
}

TEST(many_threads_at_one_instant_get_the_burst_and_no_more)
{
    struct race race = {.granted = {0}};
    uint64_t granted = 0;

    CHECK_EQ(hf_rate_init(&race.rate, BURST, 100), HF_OK);
    test_threads(THREADS, same_instant_body, &race);
    for (int i = 0; i < THREADS; i++)
        granted += race.granted[i];
    CHECK_EQ(granted, BURST);
}
