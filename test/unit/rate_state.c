/* rate_state.c - shares kept back, refunds, changes of rule, idle keys, and
 * rules that are refused. */
#include "flow/rate_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "flow/rate_slots.h"
#include "support/test.h"

#define SECOND UINT64_C(1000000000)

static struct hf_rate_plan plan_of(enum hf_rate_kind kind, uint32_t permits,
                                   uint64_t span_ns, uint32_t burst)
{
    struct hf_rate_rule rule = {
        .kind = kind, .permits = permits, .span_ns = span_ns, .burst = burst};
    struct hf_rate_plan plan;

    CHECK_EQ(hf_rate_plan_make(&plan, &rule), HF_OK);
    return plan;
}

/* One plan of each kind with a limit of 10; SLIDING in one word and in two. */
static const struct hf_rate_rule rules[] = {
    {.kind = HF_RATE_BUCKET, .permits = 10, .span_ns = 1000},
    {.kind = HF_RATE_BUCKET, .permits = 7, .span_ns = 1000, .burst = 10},
    {.kind = HF_RATE_GCRA, .permits = 1, .span_ns = 100, .burst = 9},
    {.kind = HF_RATE_FIXED, .permits = 10, .span_ns = 1000},
    {.kind = HF_RATE_SLIDING, .permits = 10, .span_ns = 1000},
    {.kind = HF_RATE_SLIDING, .permits = 10, .span_ns = 100},
    {.kind = HF_RATE_LOG, .permits = 10, .span_ns = 1000},
    {.kind = HF_RATE_LEASES, .permits = 10, .span_ns = 1000},
};

#define RULES (sizeof rules / sizeof rules[0])

/* Any kind behind one face. */
struct any {
    struct hf_rate_plan plan;
    struct rate_state state;
    struct rate_slots *slots;
};

static void any_open(struct any *any, const struct hf_rate_rule *rule)
{
    memset(any, 0, sizeof *any);
    CHECK_EQ(hf_rate_plan_make(&any->plan, rule), HF_OK);
    if (any->plan.words == 0)
        any->slots = calloc(1, RATE_SLOTS_BYTES(any->plan.limit));
}

static uint64_t any_take(struct any *any, uint64_t count, uint64_t keep_back,
                         uint64_t now_ns)
{
    struct rate_state next = any->state;
    uint64_t wait_ns;

    if (any->slots != NULL)
        return hf_rate_slots_take(&any->plan, any->slots, count, keep_back,
                                  now_ns);
    wait_ns = hf_rate_state_take(&any->plan, &any->state, count, keep_back,
                                 now_ns, &next);
    if (wait_ns == 0)
        any->state = next;
    return wait_ns;
}

static void any_refund(struct any *any, uint64_t count, uint64_t taken_ns)
{
    struct rate_state next = any->state;

    if (any->slots != NULL) {
        hf_rate_slots_refund(&any->plan, any->slots, count, taken_ns);
        return;
    }
    hf_rate_state_refund(&any->plan, &any->state, count, taken_ns, &next);
    any->state = next;
}

static struct hf_rate_answer any_tell(struct any *any, uint64_t now_ns)
{
    struct hf_rate_answer answer = {0};

    if (any->slots != NULL)
        hf_rate_slots_tell(&any->plan, any->slots, now_ns, &answer);
    else
        hf_rate_state_tell(&any->plan, &any->state, now_ns, &answer);
    return answer;
}

static bool any_idle(struct any *any, uint64_t now_ns)
{
    return any->slots != NULL
               ? hf_rate_slots_idle(&any->plan, any->slots, now_ns)
               : hf_rate_state_idle(&any->plan, &any->state, now_ns);
}

TEST(a_lower_class_leaves_a_share_to_the_others)
{
    for (unsigned i = 0; i < RULES; i++) {
        struct any any;
        any_open(&any, &rules[i]);
        CHECK(any_take(&any, 8, 3, 5000) == HF_RATE_NEVER);
        CHECK(any_take(&any, 0, 11, 5000) == HF_RATE_NEVER);
        CHECK(any_take(&any, 1, UINT64_MAX, 5000) == HF_RATE_NEVER);
        CHECK_EQ(any_take(&any, 7, 3, 5000), 0);
        uint64_t wait_ns = any_take(&any, 1, 3, 5000);
        CHECK(wait_ns > 0 && wait_ns != HF_RATE_NEVER);
        CHECK_EQ(any_take(&any, 1, 3, 5000 + wait_ns - 1), 1);
        CHECK_EQ(any_tell(&any, 5000).remaining, 3);
        CHECK_EQ(any_take(&any, 3, 0, 5000), 0); /* the highest class */
        CHECK(any_take(&any, 1, 0, 5000) > 0);
        free(any.slots);
    }
}

TEST(a_refund_at_once_is_the_inverse_of_the_take)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (unsigned i = 0; i < RULES; i++) {
        struct any any;
        uint64_t now_ns = 5000;
        any_open(&any, &rules[i]);
        for (int j = 0; j < 2000; j++) {
            struct hf_rate_answer before = any_tell(&any, now_ns);
            uint64_t count = hf_random_below(&random, 4);
            uint64_t wait_ns = any_take(&any, count, 0, now_ns);
            if (wait_ns == 0 && hf_random_below(&random, 2) == 0) {
                any_refund(&any, count, now_ns);
                struct hf_rate_answer after = any_tell(&any, now_ns);
                CHECK_EQ(after.remaining, before.remaining);
                CHECK_EQ(after.reset_ns, before.reset_ns);
            }
            now_ns += hf_random_below(&random, 150);
        }
        free(any.slots);
    }
}

TEST(a_refund_never_gives_more_than_all)
{
    for (unsigned i = 0; i < RULES; i++) {
        struct any any;
        any_open(&any, &rules[i]);
        any_refund(&any, 5, 5000); /* nothing was taken */
        CHECK_EQ(any_take(&any, 10, 0, 5000), 0);
        any_refund(&any, UINT32_MAX, 5000);
        CHECK_EQ(any_take(&any, 10, 0, 5000), 0);
        CHECK(any_take(&any, 1, 0, 5000) > 0);
        any_refund(&any, 0, 5000);
        CHECK(any_take(&any, 1, 0, 5000) > 0);
        free(any.slots);
    }
}

TEST(a_refund_of_another_window_gives_nothing)
{
    struct any any;

    any_open(&any, &rules[3]); /* FIXED */
    CHECK_EQ(any_take(&any, 10, 0, 5999), 0);
    CHECK_EQ(any_take(&any, 10, 0, 6000), 0);
    any_refund(&any, 10, 5999);
    CHECK_EQ(any_take(&any, 1, 0, 6000), 1000);
    any_refund(&any, 4, 6000);
    CHECK_EQ(any_take(&any, 4, 0, 6000), 0);
    CHECK_EQ(any_take(&any, 1, 0, 6000), 1000);
    any_open(&any, &rules[4]); /* SLIDING: the window before counts */
    CHECK_EQ(any_take(&any, 10, 0, 5000), 0);
    CHECK_EQ(any_take(&any, 5, 0, 6500), 0);
    any_refund(&any, 10, 5000);
    CHECK_EQ(any_take(&any, 5, 0, 6500), 0);
    CHECK(any_take(&any, 1, 0, 6500) > 0);
    any_refund(&any, 10, 4999);
    CHECK(any_take(&any, 1, 0, 6500) > 0);
}

TEST(an_idle_key_is_as_good_as_a_new_one)
{
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (unsigned i = 0; i < RULES; i++) {
        struct any any;
        uint64_t now_ns = 5000;
        any_open(&any, &rules[i]);
        CHECK(any_idle(&any, 0));
        for (int j = 0; j < 2000; j++) {
            (void)any_take(&any, 1 + hf_random_below(&random, 3), 0, now_ns);
            struct hf_rate_answer told = any_tell(&any, now_ns);
            CHECK_EQ(any_idle(&any, now_ns), told.reset_ns == 0);
            if (told.reset_ns > 0) {
                CHECK(!any_idle(&any, now_ns + told.reset_ns - 1));
                CHECK(any_idle(&any, now_ns + told.reset_ns));
                CHECK_EQ(any_tell(&any, now_ns + told.reset_ns).remaining, 10);
            }
            now_ns += hf_random_below(&random, 400);
        }
        free(any.slots);
    }
}

/* ---- Another rule. ---- */

TEST(a_change_of_rule_keeps_what_was_spent)
{
    for (unsigned i = 0; i < RULES; i++) {
        for (unsigned j = 0; j < RULES; j++) {
            struct any from;
            struct rate_state next = {{0, 0}};
            struct hf_rate_answer told;
            any_open(&from, &rules[i]);
            struct hf_rate_rule other = rules[j];
            if (other.kind == HF_RATE_BUCKET || other.kind == HF_RATE_GCRA)
                other.burst = other.kind == HF_RATE_GCRA ? 19 : 20;
            else
                other.permits = 20;
            struct hf_rate_plan to;
            CHECK_EQ(hf_rate_plan_make(&to, &other), HF_OK);
            if (from.plan.words == 0 || to.words == 0) {
                free(from.slots);
                continue;
            }
            CHECK_EQ(any_take(&from, 6, 0, 5000), 0);
            hf_rate_state_convert(&from.plan, &to, &from.state, 5000, &next);
            hf_rate_state_tell(&to, &next, 5000, &told);
            CHECK_EQ(told.limit, 20);
            CHECK_EQ(told.remaining, 14);
            /* and to a rule that has less than was spent */
            CHECK_EQ(any_take(&from, 4, 0, 5000), 0);
            other.permits = other.kind <= HF_RATE_GCRA ? 1 : 3;
            other.burst = other.kind == HF_RATE_BUCKET ? 3
                          : other.kind == HF_RATE_GCRA ? 2
                                                       : 0;
            other.span_ns = 2000;
            CHECK_EQ(hf_rate_plan_make(&to, &other), HF_OK);
            hf_rate_state_convert(&from.plan, &to, &from.state, 5000, &next);
            hf_rate_state_tell(&to, &next, 5000, &told);
            CHECK_EQ(told.remaining, 0);
            CHECK(told.reset_ns <= 3 * 2000);
        }
    }
}

TEST(from_bucket_to_bucket_fractions_stay_too)
{
    struct hf_rate_plan slow = plan_of(HF_RATE_BUCKET, 1, 1000, 10);
    struct hf_rate_plan fast = plan_of(HF_RATE_BUCKET, 1, 100, 10);
    struct rate_state state = {{0, 0}};
    struct rate_state next;

    CHECK_EQ(hf_rate_state_take(&slow, &state, 10, 0, 5000, &state), 0);
    /* a quarter of a permit is back */
    hf_rate_state_convert(&slow, &fast, &state, 5250, &next);
    CHECK_EQ(hf_rate_state_take(&fast, &next, 1, 0, 5250, &next), 75);
    hf_rate_state_convert(&fast, &slow, &next, 5250, &next);
    CHECK_EQ(hf_rate_state_take(&slow, &next, 1, 0, 5250, &next), 750);
    /* the same rule: the same state */
    CHECK_EQ(next.word[0], state.word[0]);
}

TEST(windows_of_one_length_stay_what_they_are)
{
    struct hf_rate_plan small = plan_of(HF_RATE_SLIDING, 10, 1000, 0);
    struct hf_rate_plan large = plan_of(HF_RATE_SLIDING, 100, 1000, 0);
    struct rate_state state = {{0, 0}};
    struct hf_rate_answer told;

    CHECK_EQ(hf_rate_state_take(&small, &state, 10, 0, 5000, &state), 0);
    CHECK_EQ(hf_rate_state_take(&small, &state, 2, 0, 6200, &state), 0);
    hf_rate_state_convert(&small, &large, &state, 6200, &state);
    hf_rate_state_tell(&large, &state, 6500, &told);
    CHECK_EQ(told.remaining, 100 - 5 - 2);
    struct hf_rate_plan few = plan_of(HF_RATE_FIXED, 10, 1000, 0);
    struct hf_rate_plan many = plan_of(HF_RATE_FIXED, 100, 1000, 0);
    state.word[0] = 0;
    CHECK_EQ(hf_rate_state_take(&few, &state, 10, 0, 5000, &state), 0);
    /* the call that changes the rule comes late */
    hf_rate_state_convert(&few, &many, &state, 4000, &state);
    hf_rate_state_tell(&many, &state, 5000, &told);
    CHECK_EQ(told.remaining, 90);
}

TEST(slots_are_kept_for_as_long_as_the_new_rule_says)
{
    struct hf_rate_plan from = plan_of(HF_RATE_LEASES, 3, 100, 0);
    struct hf_rate_plan more = plan_of(HF_RATE_LEASES, 5, 1000, 0);
    struct hf_rate_plan less = plan_of(HF_RATE_LEASES, 1, 10, 0);
    struct rate_slots *a = calloc(1, RATE_SLOTS_BYTES(3));
    struct rate_slots *b = calloc(1, RATE_SLOTS_BYTES(5));
    struct rate_slots *c = calloc(1, RATE_SLOTS_BYTES(1));

    CHECK_EQ(hf_rate_slots_take(&from, a, 1, 0, 500), 0);
    CHECK_EQ(hf_rate_slots_take(&from, a, 1, 0, 510), 0);
    hf_rate_slots_convert(&from, a, &more, b);
    CHECK_EQ(hf_rate_slots_wait(&more, b, 3, 0, 511), 0);
    CHECK_EQ(hf_rate_slots_wait(&more, b, 4, 0, 511), 989);
    CHECK_EQ(hf_rate_slots_wait(&more, b, 5, 0, 511), 999);
    hf_rate_slots_refund(&more, b, 1,
                         500); /* a lease is given back as before */
    CHECK_EQ(hf_rate_slots_wait(&more, b, 4, 0, 511), 0);
    hf_rate_slots_convert(&from, a, &less, c);
    CHECK_EQ(hf_rate_slots_wait(&less, c, 1, 0, 511), 9); /* the newest stays */
    free(a);
    free(b);
    free(c);
}

/* ---- Rules that are refused. ---- */

TEST(bad_rules_are_refused_and_change_nothing)
{
    static const struct hf_rate_rule bad[] = {
        {.permits = 0, .span_ns = 1},
        {.permits = 1, .span_ns = 0},
        {.permits = 1, .span_ns = HF_RATE_SPAN_MAX_NS + 1},
        {.permits = 2, .span_ns = 1},
        {.permits = 3, .span_ns = 2},
        {.permits = 1, .span_ns = HF_RATE_SPAN_MAX_NS, .burst = 2},
        {.permits = 3, .span_ns = HF_RATE_SPAN_MAX_NS, .burst = 4},
        {.kind = HF_RATE_GCRA,
         .permits = 1,
         .span_ns = HF_RATE_SPAN_MAX_NS,
         .burst = 1},
        {.kind = HF_RATE_FIXED, .permits = 2, .span_ns = 1},
        {.kind = HF_RATE_FIXED, .permits = 1, .span_ns = 1, .burst = 1},
        {.kind = HF_RATE_SLIDING, .permits = 1, .span_ns = 1, .burst = 1},
        {.kind = HF_RATE_LOG, .permits = 1, .span_ns = 1, .burst = 1},
        {.kind = HF_RATE_LEASES, .permits = 1, .span_ns = 1, .burst = 1},
        {.kind = HF_RATE_LOG, .permits = HF_RATE_SLOTS_MAX + 1, .span_ns = 1},
        {.kind = (enum hf_rate_kind)6, .permits = 1, .span_ns = 1},
        {.kind = (enum hf_rate_kind)70000, .permits = 1, .span_ns = 1},
    };
    struct hf_rate rate = {.word = {9}, .plan = {.limit = 7}};
    struct hf_rate_rule log = {
        .kind = HF_RATE_LOG, .permits = 4, .span_ns = 10};
    uint64_t memory[16];

    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        CHECK_EQ(hf_rate_open(&rate, &bad[i], memory), HF_INVALID);
        CHECK_EQ(hf_rate_memory(&bad[i]), 0);
    }
    CHECK_EQ(hf_rate_open(&rate, NULL, memory), HF_INVALID);
    CHECK_EQ(hf_rate_open(NULL, &log, memory), HF_INVALID);
    CHECK_EQ(hf_rate_open(&rate, &log, NULL), HF_INVALID);
    CHECK_EQ(hf_rate_open(&rate, &log, (char *)memory + 1), HF_INVALID);
    CHECK_EQ(rate.word.value, 9);
    CHECK_EQ(rate.plan.limit, 7);
    CHECK_EQ(hf_rate_memory(NULL), 0);
    CHECK(hf_rate_memory(&log) <= sizeof memory);
    CHECK_EQ(hf_rate_open(&rate, &log, memory), HF_OK);
}

TEST(the_largest_rules_are_taken)
{
    static const struct hf_rate_rule good[] = {
        {.permits = 1, .span_ns = 1, .burst = UINT32_MAX},
        {.permits = UINT32_MAX, .span_ns = UINT32_MAX},
        {.permits = 3, .span_ns = HF_RATE_SPAN_MAX_NS, .burst = 3},
        {.kind = HF_RATE_GCRA, .permits = 1, .span_ns = HF_RATE_SPAN_MAX_NS},
        {.kind = HF_RATE_GCRA, .permits = 1, .span_ns = 1, .burst = UINT32_MAX},
        {.kind = HF_RATE_FIXED, .permits = 1, .span_ns = 1},
        {.kind = HF_RATE_FIXED,
         .permits = UINT32_MAX,
         .span_ns = HF_RATE_SPAN_MAX_NS},
        {.kind = HF_RATE_SLIDING, .permits = UINT32_MAX, .span_ns = 1},
    };
    static uint64_t memory[16];

    for (unsigned i = 0; i < sizeof good / sizeof good[0]; i++) {
        struct hf_rate rate;
        CHECK(hf_rate_memory(&good[i]) <= sizeof memory);
        CHECK_EQ(hf_rate_open(&rate, &good[i], memory), HF_OK);
        uint32_t most = rate.plan.limit < UINT32_MAX ? (uint32_t)rate.plan.limit
                                                     : UINT32_MAX;
        CHECK_EQ(hf_rate_take(&rate, most, 1), 0);
        CHECK(hf_rate_take(&rate, most, 1) > 0);
    }
}

TEST(null_is_refused)
{
    struct hf_rate rate;
    struct hf_rate_answer answer = {.limit = 77};

    CHECK_EQ(hf_rate_init(&rate, 1, 1), HF_OK);
    CHECK(hf_rate_take(NULL, 1, 0) == HF_RATE_NEVER);
    CHECK(hf_rate_wait(NULL, 1, 0) == HF_RATE_NEVER);
    CHECK(hf_rate_ask(NULL, 1, 0, &answer) == HF_RATE_NEVER);
    CHECK(hf_rate_look(NULL, 1, 0, &answer) == HF_RATE_NEVER);
    CHECK_EQ(answer.limit, 77);
    CHECK(hf_rate_ask(&rate, 1, 0, NULL) == HF_RATE_NEVER);
    CHECK(hf_rate_look(&rate, 1, 0, NULL) == HF_RATE_NEVER);
    hf_rate_refund(NULL, 1, 0);
    CHECK_EQ(hf_rate_take(&rate, 1, 0), 0); /* nothing was taken above */
}
