/* rate_windows.c - windows, logs and leases against models that keep a list of
 * all that was ever taken. */
#include <stdlib.h>

#include "base/random.h"
#include "holdfast/rate.h"
#include "support/test.h"

typedef unsigned __int128 u128;

#define CALLS 400

/* All that a model knows: what was taken and when. */
struct taken {
    uint64_t at_ns;
    uint64_t count;
};

struct model {
    struct hf_rate_rule rule;
    unsigned many;
    struct taken taken[CALLS * 4];
};

static uint64_t sum_between(const struct model *model, uint64_t from_ns,
                            uint64_t until_ns)
{
    uint64_t sum = 0;

    for (unsigned i = 0; i < model->many; i++)
        if (model->taken[i].at_ns >= from_ns &&
            model->taken[i].at_ns < until_ns)
            sum += model->taken[i].count;
    return sum;
}

/* The rule itself: may `count` more be taken at now, which is not before
 * anything that was taken? */
static bool allows(const struct model *model, uint64_t count, uint64_t now_ns)
{
    uint64_t span = model->rule.span_ns;
    uint64_t start = now_ns / span * span;
    uint64_t limit = model->rule.permits;
    uint64_t current = sum_between(model, start, start + span);
    uint64_t before =
        start < span ? 0 : sum_between(model, start - span, start);

    switch (model->rule.kind) {
    case HF_RATE_FIXED:
        return current + count <= limit;
    case HF_RATE_SLIDING:
        return (u128)before * (span - (now_ns - start)) +
                   (u128)(current + count) * span <=
               (u128)limit * span;
    default: /* from one span ago, which is excluded */
        return sum_between(model, now_ns < span ? 0 : now_ns - span + 1,
                           UINT64_MAX) +
                   count <=
               limit;
    }
}

static uint64_t remaining(const struct model *model, uint64_t now_ns)
{
    uint64_t count = 0;

    while (count < model->rule.permits && allows(model, count + 1, now_ns))
        count++;
    return count;
}

static uint64_t first_instant(const struct model *model, uint64_t count,
                              uint64_t now_ns)
{
    uint64_t low = now_ns;
    uint64_t high = now_ns + 3 * model->rule.span_ns;

    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (allows(model, count, middle))
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static void *open_rate(struct hf_rate *rate, const struct hf_rate_rule *rule)
{
    size_t bytes = hf_rate_memory(rule);
    void *memory = bytes == 0 ? NULL : malloc(bytes);

    CHECK_EQ(hf_rate_open(rate, rule, memory), HF_OK);
    return memory;
}

static void check_trace(const struct hf_rate_rule *rule, uint64_t seed)
{
    static struct model model;
    struct hf_random random;
    struct hf_rate rate;
    uint64_t now_ns = 0;
    void *memory = open_rate(&rate, rule);

    hf_random_init(&random, seed);
    model.rule = *rule;
    model.many = 0;
    for (int i = 0; i < CALLS; i++) {
        uint32_t count = (uint32_t)hf_random_below(&random, 4);
        struct hf_rate_answer answer;
        if (hf_random_below(&random, 20) == 0)
            count = (uint32_t)hf_random_below(&random, rule->permits + 2);
        now_ns += hf_random_below(&random, 1 + rule->span_ns / rule->permits);
        if (hf_random_below(&random, 30) == 0)
            now_ns += hf_random_below(&random, 3 * rule->span_ns);
        uint64_t peeked_ns = hf_rate_wait(&rate, count, now_ns);
        uint64_t wait_ns = hf_rate_ask(&rate, count, now_ns, &answer);
        CHECK_EQ(peeked_ns, wait_ns);
        CHECK_EQ(answer.wait_ns, wait_ns);
        if (count > rule->permits) {
            CHECK(wait_ns == HF_RATE_NEVER);
        } else if (wait_ns == 0) {
            CHECK(allows(&model, count, now_ns));
            CHECK_EQ(answer.taken_ns, now_ns);
            model.taken[model.many].at_ns = now_ns;
            model.taken[model.many++].count = count;
        } else {
            CHECK(!allows(&model, count, now_ns));
            CHECK_EQ(now_ns + wait_ns, first_instant(&model, count, now_ns));
            CHECK_EQ(hf_rate_take(&rate, count, now_ns + wait_ns - 1), 1);
            CHECK_EQ(hf_rate_wait(&rate, count, now_ns + wait_ns), 0);
        }
        CHECK_EQ(answer.limit, rule->permits);
        CHECK_EQ(answer.remaining, remaining(&model, now_ns));
        CHECK_EQ(now_ns + answer.reset_ns,
                 first_instant(&model, rule->permits, now_ns));
        if (wait_ns == 0 && hf_random_below(&random, 4) == 0) {
            uint32_t back = (uint32_t)hf_random_below(&random, count + 1);
            hf_rate_refund(&rate, back, answer.taken_ns);
            model.taken[model.many - 1].count -= back;
        } else if (model.many > 0 && hf_random_below(&random, 8) == 0) {
            /* one of an earlier call, if it still counts */
            struct taken *old =
                &model.taken[hf_random_below(&random, model.many)];
            if (old->count > 0) {
                hf_rate_refund(&rate, 1, old->at_ns);
                old->count--;
            }
        }
    }
    free(memory);
}

static const enum hf_rate_kind kinds[] = {HF_RATE_FIXED, HF_RATE_SLIDING,
                                          HF_RATE_LOG, HF_RATE_LEASES};

TEST(random_traces_are_answered_as_by_a_list_of_all_calls)
{
    static const struct hf_rate_rule sizes[] = {
        {.permits = 1, .span_ns = 5},       {.permits = 4, .span_ns = 7},
        {.permits = 10, .span_ns = 10},     {.permits = 10, .span_ns = 1000},
        {.permits = 13, .span_ns = 999983}, {.permits = 30, .span_ns = 41},
    };

    for (unsigned k = 0; k < 4; k++) {
        for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            struct hf_rate_rule rule = sizes[i];
            rule.kind = kinds[k];
            for (uint64_t seed = 0; seed < 6; seed++)
                check_trace(&rule, test_seed() + seed);
        }
    }
}

/* Too large for one word: the same algorithm on two, under a lock. */
TEST(a_sliding_counter_of_two_words_answers_the_same)
{
    struct hf_rate_rule rule = {
        .kind = HF_RATE_SLIDING, .permits = 30, .span_ns = 41};
    struct hf_rate rate;

    CHECK(hf_rate_memory(&rule) > 0); /* windows of 41 ns: many of them */
    rule.span_ns = 1000000000;
    rule.permits = 16383;
    CHECK_EQ(hf_rate_memory(&rule), 0);
    rule.permits = 100000;
    CHECK(hf_rate_memory(&rule) > 0);
    CHECK_EQ(hf_rate_open(&rate, &rule, NULL), HF_INVALID);
    char memory[128] __attribute__((aligned(8)));
    CHECK(hf_rate_memory(&rule) <= sizeof memory);
    CHECK_EQ(hf_rate_open(&rate, &rule, memory + 4), HF_INVALID);
    CHECK_EQ(hf_rate_open(&rate, &rule, memory), HF_OK);
    CHECK_EQ(hf_rate_take(&rate, 100000, 1999999999), 0);
    /* a second later all count, then 1 comes back every 10 us */
    CHECK_EQ(hf_rate_take(&rate, 1, 1999999999), 10001);
    CHECK_EQ(hf_rate_take(&rate, 1, 2000010000), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 2000010000), 10000);
}

/* Windows as callers see them, whatever the order of their instants: at most
 * `permits` of any one window, and of any span for a log. */
TEST(instants_out_of_order_let_no_more_through)
{
    enum { SPAN = 10, PERMITS = 4, TRIES = 300 };
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (int round = 0; round < 400; round++) {
        struct hf_rate_rule rule = {
            .kind = kinds[round % 4], .permits = PERMITS, .span_ns = SPAN};
        uint32_t at[200] = {0};
        struct hf_rate rate;
        void *memory = open_rate(&rate, &rule);
        uint64_t center_ns = 20;
        for (int i = 0; i < TRIES; i++) {
            uint64_t now_ns = hf_random_below(&random, 40) + center_ns - 20;
            uint32_t count = 1 + (uint32_t)hf_random_below(&random, 2);
            center_ns += hf_random_below(&random, 10) == 0 && center_ns < 170;
            if (hf_rate_take(&rate, count, now_ns) == 0)
                at[now_ns] += count;
        }
        for (uint32_t i = 0; i + SPAN <= 200; i++) {
            uint32_t sum = 0;
            if (i % SPAN != 0 && rule.kind <= HF_RATE_SLIDING)
                continue;
            for (uint32_t j = i; j < i + SPAN; j++)
                sum += at[j];
            CHECK(sum <= PERMITS);
        }
        free(memory);
    }
}

TEST(a_window_that_was_left_is_not_opened_again)
{
    struct hf_rate_rule rule = {
        .kind = HF_RATE_FIXED, .permits = 2, .span_ns = 100};
    struct hf_rate rate;

    CHECK_EQ(hf_rate_open(&rate, &rule, NULL), HF_OK);
    CHECK_EQ(hf_rate_take(&rate, 1, 350), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 250), 50); /* window 2 is over */
    CHECK_EQ(hf_rate_take(&rate, 2, 250), 150);
    CHECK_EQ(hf_rate_take(&rate, 1, 399), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 399), 1);
    rule.kind = HF_RATE_SLIDING;
    CHECK_EQ(hf_rate_memory(&rule), 0);
    CHECK_EQ(hf_rate_open(&rate, &rule, NULL), HF_OK);
    CHECK_EQ(hf_rate_take(&rate, 2, 250), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 350), 0); /* half of the two counts */
    CHECK_EQ(hf_rate_take(&rate, 1, 299), 101);
    CHECK_EQ(hf_rate_take(&rate, 0, 299), 51); /* also for none */
    CHECK_EQ(hf_rate_take(&rate, 0, 350), 0);
}

TEST(a_lease_that_is_given_back_is_free_and_one_that_ended_is_too)
{
    struct hf_rate_rule rule = {
        .kind = HF_RATE_LEASES, .permits = 2, .span_ns = 100};
    struct hf_rate rate;
    struct hf_rate_answer first;
    void *memory = open_rate(&rate, &rule);

    CHECK_EQ(hf_rate_ask(&rate, 1, 10, &first), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 20), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 30), 80); /* the first ends at 110 */
    hf_rate_refund(&rate, 1, 20);
    CHECK_EQ(hf_rate_take(&rate, 1, 30), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 109), 1);
    CHECK_EQ(hf_rate_take(&rate, 1, 110), 0); /* nobody gave it back */
    /* who comes back late frees nobody else's */
    hf_rate_refund(&rate, 1, first.taken_ns);
    CHECK_EQ(hf_rate_take(&rate, 1, 111), 19);
    hf_rate_refund(&rate, 1, 30);
    hf_rate_refund(&rate, 1, 30); /* twice: the second is nothing */
    CHECK_EQ(hf_rate_take(&rate, 1, 112), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 112), 98);
    hf_rate_refund(&rate, 1, 112);
    hf_rate_refund(&rate, 1, 112); /* nor is that the older one's */
    CHECK_EQ(hf_rate_wait(&rate, 1, 113), 0);
    CHECK_EQ(hf_rate_wait(&rate, 2, 113), 97);
    free(memory);
}

TEST(a_late_instant_is_given_back_by_the_one_it_was_told)
{
    struct hf_rate_rule rule = {
        .kind = HF_RATE_LEASES, .permits = 3, .span_ns = 100};
    struct hf_rate rate;
    struct hf_rate_answer answer;
    void *memory = open_rate(&rate, &rule);

    CHECK_EQ(hf_rate_take(&rate, 1, 500), 0);
    CHECK_EQ(hf_rate_ask(&rate, 1, 400, &answer), 0);
    CHECK_EQ(answer.taken_ns, 500);
    hf_rate_refund(&rate, 1, 400); /* nothing is known of that */
    CHECK_EQ(hf_rate_wait(&rate, 2, 500), 100);
    hf_rate_refund(&rate, 1, answer.taken_ns);
    CHECK_EQ(hf_rate_wait(&rate, 2, 500), 0);
    free(memory);
}

TEST(large_limits_do_not_wrap_round)
{
    for (unsigned k = 0; k < 2; k++) {
        struct hf_rate_rule rule = {.kind = kinds[k],
                                    .permits = UINT32_MAX,
                                    .span_ns = HF_RATE_SPAN_MAX_NS};
        struct hf_rate rate;
        void *memory = open_rate(&rate, &rule);
        uint64_t now_ns = HF_RATE_NOW_MAX_NS;
        CHECK_EQ(hf_rate_take(&rate, UINT32_MAX, UINT64_MAX), 0);
        uint64_t wait_ns = hf_rate_take(&rate, UINT32_MAX, now_ns);
        CHECK(wait_ns > 0 && wait_ns <= 2 * HF_RATE_SPAN_MAX_NS);
        CHECK(hf_rate_take(&rate, 1, 0) > 0);
        hf_rate_refund(&rate, UINT32_MAX, UINT64_MAX);
        CHECK_EQ(hf_rate_take(&rate, UINT32_MAX, now_ns), 0);
        free(memory);
    }
    struct hf_rate_rule rule = {
        .kind = HF_RATE_LOG, .permits = 2, .span_ns = HF_RATE_SPAN_MAX_NS};
    struct hf_rate rate;
    void *memory = open_rate(&rate, &rule);
    CHECK_EQ(hf_rate_take(&rate, 2, UINT64_MAX), 0);
    CHECK_EQ(hf_rate_take(&rate, 1, UINT64_MAX), HF_RATE_SPAN_MAX_NS);
    free(memory);
}
