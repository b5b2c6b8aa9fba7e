/* Tests of the limiter: decisions, several pairs, rules, keys that go. */
#include "holdfast/limiter.h"

#include <stdio.h>
#include <string.h>

#include "flow/limiter_state.h"
#include "support/clock.h"
#include "support/limiting.h"

TEST_ONE_THREAD;

TEST(the_classic_lets_ten_go_and_then_one_a_second)
{
    struct test_clock clock = {.now_ns = 5 * SECOND};
    struct hf_limiter_opts opts = {.clock = test_clock(&clock)};
    struct hf_limiter *limiter;

    CHECK_EQ(hf_limiter_open(&limiter, &opts), HF_OK);
    for (int i = 0; i < 10; i++)
        CHECK(hf_limiter_allow(limiter, "user-1"));
    CHECK(!hf_limiter_allow(limiter, "user-1"));
    CHECK(hf_limiter_allow(limiter, "user-2"));
    test_clock_advance(&clock, SECOND - 1);
    CHECK(!hf_limiter_allow(limiter, "user-1"));
    test_clock_advance(&clock, 1);
    CHECK(hf_limiter_allow(limiter, "user-1"));
    CHECK(!hf_limiter_allow(limiter, "user-1"));
    CHECK_EQ(stats_of(limiter).allowed, 12);
    CHECK_EQ(stats_of(limiter).denied, 3);
    CHECK_EQ(stats_of(limiter).keys, 2);
    hf_limiter_close(limiter);
}

/* Nobody can be told by a bool: it is counted, and take says what it is. */
TEST(a_key_that_is_too_long_is_refused_and_counted)
{
    struct hf_limiter *limiter = open_small();
    char key[HF_LIMITER_KEY_MAX + 2];
    struct hf_limiter_ask one = {.key = key, .cost = 1};
    struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = 5};
    struct hf_limiter_answer answer;
    uint64_t hold;

    memset(key, 'k', sizeof key);
    key[HF_LIMITER_KEY_MAX] = 0;
    CHECK(hf_limiter_allow(limiter, key)); /* as long as may be */
    CHECK_EQ(stats_of(limiter).refused, 0);
    key[HF_LIMITER_KEY_MAX] = 'k';
    key[HF_LIMITER_KEY_MAX + 1] = 0;
    CHECK(!hf_limiter_allow(limiter, key));
    CHECK_EQ(stats_of(limiter).refused, 1);
    CHECK_EQ(stats_of(limiter).denied, 0);
    one.key_len = strlen(key);
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_hold(limiter, &call, SECOND, &answer, &hold),
             HF_INVALID);
    CHECK_EQ(hf_limiter_acquire(limiter, &call, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(stats_of(limiter).refused, 4);
    CHECK_EQ(stats_of(limiter).keys, 1);
    hf_limiter_close(limiter);
}

TEST(an_answer_tells_all_figures_to_the_nanosecond)
{
    struct hf_limiter *limiter = open_small();
    uint32_t rule = define(limiter, "user", bucket(10, SECOND, 5));
    struct hf_limiter_answer answer = take(limiter, rule, "ann", 4, 100);

    CHECK(answer.allowed);
    CHECK_EQ(answer.limit, 5);
    CHECK_EQ(answer.remaining, 1);
    CHECK_EQ(answer.retry_after_ns, 0);
    CHECK_EQ(answer.reset_after_ns, 4 * SECOND / 10);
    CHECK_EQ(answer.denied_by, HF_LIMITER_NOBODY);
    CHECK_EQ(answer.rule[0], 0);
    answer = take(limiter, rule, "ann", 2, 100);
    CHECK(!answer.allowed);
    CHECK_EQ(answer.denied_by, 0);
    CHECK_EQ(strcmp(answer.rule, "user"), 0);
    CHECK_EQ(answer.remaining, 1);
    CHECK_EQ(answer.retry_after_ns, SECOND / 10);
    CHECK(!take(limiter, rule, "ann", 2, 100 + SECOND / 10 - 1).allowed);
    CHECK(take(limiter, rule, "ann", 2, 100 + SECOND / 10).allowed);
    answer = take(limiter, rule, "ann", 6, 100 + SECOND);
    CHECK(!answer.allowed);
    CHECK_EQ(answer.retry_after_ns, HF_LIMITER_NEVER);
    hf_limiter_close(limiter);
}

TEST(peek_takes_nothing_and_makes_no_key)
{
    struct hf_limiter *limiter = open_small();

    CHECK(peek(limiter, 0, "a", 10, 1).allowed);
    CHECK_EQ(peek(limiter, 0, "a", 3, 1).remaining, 10);
    CHECK_EQ(peek(limiter, 0, "a", 11, 1).retry_after_ns, HF_LIMITER_NEVER);
    CHECK_EQ(stats_of(limiter).keys, 0);
    CHECK(take(limiter, 0, "a", 9, 1).allowed);
    CHECK_EQ(peek(limiter, 0, "a", 2, 1).retry_after_ns, SECOND);
    CHECK_EQ(peek(limiter, 0, "a", 1, 1).remaining, 1);
    CHECK_EQ(stats_of(limiter).allowed, 1);
    CHECK_EQ(stats_of(limiter).denied, 0);
    hf_limiter_close(limiter);
}

TEST(several_pairs_all_or_nothing_and_the_denier_is_named)
{
    struct hf_limiter *limiter = open_small();
    uint32_t user = define(limiter, "user", bucket(1, SECOND, 5));
    uint32_t address = define(limiter, "address", bucket(1, SECOND, 2));
    uint32_t all = define(limiter, "all", bucket(1, SECOND, 100));
    struct hf_limiter_ask asks[] = {
        ask(user, "ann", 1), ask(address, "10.0.0.7", 1), ask(all, "", 1)};
    struct hf_limiter_call call = {.asks = asks, .count = 3, .now_ns = 10};
    struct hf_limiter_answer answer;

    for (int i = 0; i < 2; i++) {
        CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
        CHECK(answer.allowed);
        CHECK_EQ(answer.remaining, (uint64_t)(1 - i)); /* the tightest */
    }
    for (int i = 0; i < 5; i++) {
        CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
        CHECK(!answer.allowed);
        CHECK_EQ(answer.denied_by, 1);
        CHECK_EQ(strcmp(answer.rule, "address"), 0);
        CHECK_EQ(answer.retry_after_ns, SECOND);
    }
    CHECK_EQ(peek(limiter, user, "ann", 1, 10).remaining, 3);
    CHECK_EQ(peek(limiter, all, "", 1, 10).remaining, 98);
    CHECK_EQ(peek(limiter, address, "10.0.0.7", 1, 10).remaining, 0);
    hf_limiter_close(limiter);
}

TEST(the_same_pair_twice_counts_together)
{
    struct hf_limiter *limiter = open_small();
    struct hf_limiter_ask asks[] = {ask(0, "a", 6), ask(0, "b", 1),
                                    ask(0, "a", 5)};
    struct hf_limiter_call call = {.asks = asks, .count = 3, .now_ns = 10};
    struct hf_limiter_answer answer;

    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK(!answer.allowed);
    CHECK_EQ(answer.retry_after_ns, HF_LIMITER_NEVER);
    asks[2].cost = 4;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK(answer.allowed);
    CHECK_EQ(answer.remaining, 0);
    CHECK_EQ(peek(limiter, 0, "b", 1, 10).remaining, 9);
    asks[2].cost = UINT64_MAX;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK(!answer.allowed);
    hf_limiter_close(limiter);
}

TEST(a_call_may_bring_its_own_numbers)
{
    struct hf_limiter *limiter = open_small();
    struct hf_limiter_rule five = bucket(5, SECOND, 5);
    struct hf_limiter_rule ten = bucket(10, SECOND, 10);
    struct hf_limiter_ask one = ask(0, "k", 4);
    struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = 10};
    struct hf_limiter_answer answer;

    one.own = &five;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK_EQ(answer.remaining, 1);
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK(!answer.allowed);
    CHECK_EQ(answer.rule[0], 0);
    one.own = &ten; /* what was spent stays spent */
    one.cost = 0;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK_EQ(answer.limit, 10);
    CHECK_EQ(answer.remaining, 6);
    /* not the keys of rules with a name */
    CHECK_EQ(peek(limiter, 0, "k", 1, 10).remaining, 10);
    five.rate.permits = 0;
    one.own = &five;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_INVALID);
    hf_limiter_close(limiter);
}

TEST(a_rule_changes_live_and_keeps_what_was_spent)
{
    struct hf_limiter *limiter = open_small();
    uint32_t rule = define(limiter, "r", bucket(1, SECOND, 10));
    struct hf_limiter_rule found;
    uint32_t number;

    CHECK(take(limiter, rule, "a", 8, 10).allowed);
    CHECK_EQ(define(limiter, "r", bucket(1, SECOND, 20)), rule);
    CHECK_EQ(peek(limiter, rule, "a", 0, 10).remaining, 12);
    CHECK_EQ(peek(limiter, rule, "a", 0, 10).limit, 20);
    CHECK_EQ(define(limiter, "r", bucket(1, SECOND, 8)), rule);
    CHECK(!take(limiter, rule, "a", 1, 10).allowed);
    CHECK_EQ(take(limiter, rule, "a", 1, 10).retry_after_ns, SECOND);
    CHECK_EQ(hf_limiter_find(limiter, "r", &number, &found), HF_OK);
    CHECK_EQ(number, rule);
    CHECK_EQ(found.rate.burst, 8);
    CHECK_EQ(hf_limiter_find(limiter, "none", &number, &found), HF_NOTFOUND);
    /* thousands of versions, of which few are in use */
    for (uint32_t i = 0; i < 100000; i++)
        define(limiter, "r", bucket(1, SECOND, 8 + i % 2));
    CHECK_EQ(take(limiter, rule, "a", 0, 10).remaining, 1);
    hf_limiter_close(limiter);
}

TEST(a_removed_rule_is_gone_with_what_was_spent)
{
    struct hf_limiter *limiter = open_small();
    uint32_t rule = define(limiter, "r", bucket(1, SECOND, 10));
    struct hf_limiter_ask one = ask(rule, "a", 1);
    struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = 10};
    struct hf_limiter_answer answer;

    CHECK(take(limiter, rule, "a", 8, 10).allowed);
    CHECK_EQ(stats_of(limiter).rules, 2);
    CHECK_EQ(hf_limiter_remove(limiter, "r"), HF_OK);
    CHECK_EQ(hf_limiter_remove(limiter, "r"), HF_NOTFOUND);
    CHECK_EQ(hf_limiter_remove(limiter, "default"), HF_INVALID);
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_NOTFOUND);
    CHECK_EQ(stats_of(limiter).rules, 1);
    uint32_t again = define(limiter, "s", bucket(1, SECOND, 10));
    CHECK(again != rule);
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_NOTFOUND);
    CHECK_EQ(peek(limiter, again, "a", 1, 10).remaining, 10);
    CHECK_EQ(take(limiter, again, "a", 1, 10).remaining, 9);
    CHECK_EQ(hf_limiter_remove(limiter, "s"), HF_OK);
    CHECK_EQ(hf_limiter_sweep(limiter, 100, 10), 1); /* it has no rule */
    CHECK_EQ(stats_of(limiter).keys, 0);
    hf_limiter_close(limiter);
}

struct listing {
    unsigned count;
    unsigned burst_sum;
};

static void note_rule(void *context, const char *name, uint32_t number,
                      const struct hf_limiter_rule *rule)
{
    struct listing *listing = context;

    (void)number;
    if (strcmp(name, "default") != 0) {
        listing->count++;
        listing->burst_sum += rule->rate.burst;
    }
}

TEST(rules_are_listed)
{
    struct hf_limiter *limiter = open_small();
    struct listing listing = {0, 0};
    char name[16];

    for (unsigned i = 1; i <= 300; i++) {
        snprintf(name, sizeof name, "rule-%u", i);
        define(limiter, name, bucket(1, SECOND, i));
    }
    CHECK_EQ(hf_limiter_remove(limiter, "rule-300"), HF_OK);
    CHECK_EQ(hf_limiter_list(limiter, note_rule, &listing), HF_OK);
    CHECK_EQ(listing.count, 299);
    CHECK_EQ(listing.burst_sum, 299 * 300 / 2);
    hf_limiter_close(limiter);
}

TEST(lower_classes_leave_a_share_to_higher_ones)
{
    struct hf_limiter *limiter = open_small();
    struct hf_limiter_rule rule = bucket(1, SECOND, 10);

    rule.keep_back[1] = 3;
    rule.keep_back[2] = 11; /* above the limit: never */
    uint32_t number = define(limiter, "r", rule);
    struct hf_limiter_ask one = ask(number, "a", 7);
    struct hf_limiter_call call = {
        .asks = &one, .count = 1, .priority = 1, .now_ns = 10};
    struct hf_limiter_answer answer;

    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK(answer.allowed);
    CHECK_EQ(answer.remaining, 0);
    one.cost = 1;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK(!answer.allowed);
    CHECK_EQ(answer.retry_after_ns, SECOND);
    call.priority = 2;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK_EQ(answer.retry_after_ns, HF_LIMITER_NEVER);
    call.priority = 0;
    one.cost = 3;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK(answer.allowed);
    hf_limiter_close(limiter);
}

TEST(a_shadow_rule_counts_and_never_denies)
{
    struct hf_limiter *limiter = open_small();
    struct hf_limiter_rule rule = bucket(1, SECOND, 2);

    rule.shadow = true;
    uint32_t shadow = define(limiter, "shadow", rule);
    struct hf_limiter_ask asks[] = {ask(0, "a", 1), ask(shadow, "a", 1)};
    struct hf_limiter_call call = {.asks = asks, .count = 2, .now_ns = 10};
    struct hf_limiter_answer answer;

    for (int i = 0; i < 5; i++) {
        CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
        CHECK(answer.allowed);
        CHECK_EQ(answer.shadow, i < 2 ? 0 : 2);
    }
    CHECK_EQ(peek(limiter, 0, "a", 1, 10).remaining, 5);
    answer = take(limiter, shadow, "a", 1, 10);
    CHECK(answer.allowed);
    CHECK_EQ(answer.shadow, 1);
    CHECK_EQ(stats_of(limiter).shadow_denied, 4);
    CHECK_EQ(stats_of(limiter).denied, 0);
    hf_limiter_close(limiter);
}

TEST(a_refund_gives_back_and_never_more_than_was_spent)
{
    struct hf_limiter *limiter = open_small();
    struct hf_limiter_ask one = ask(0, "a", 3);
    struct hf_limiter_call call = {.asks = &one, .count = 1};

    struct hf_limiter_answer answer = take(limiter, 0, "a", 7, 10);
    CHECK_EQ(hf_limiter_refund(limiter, &call, answer.taken_ns), HF_OK);
    CHECK_EQ(peek(limiter, 0, "a", 1, 10).remaining, 6);
    one.cost = 100;
    CHECK_EQ(hf_limiter_refund(limiter, &call, answer.taken_ns), HF_OK);
    CHECK_EQ(peek(limiter, 0, "a", 1, 10).remaining, 10);
    hf_limiter_close(limiter);
}

TEST(all_kinds_of_rules_by_key)
{
    static const enum hf_rate_kind kinds[] = {HF_RATE_BUCKET, HF_RATE_GCRA,
                                              HF_RATE_FIXED,  HF_RATE_SLIDING,
                                              HF_RATE_LOG,    HF_RATE_LEASES};

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        struct hf_limiter *limiter = open_small();
        struct hf_limiter_rule rule = {
            .rate = {.kind = kinds[i], .permits = 5, .span_ns = SECOND}};
        if (kinds[i] == HF_RATE_GCRA)
            rule.rate.burst = 4;
        uint32_t number = define(limiter, "r", rule);
        for (uint64_t left = 5; left-- > 0;) {
            CHECK_EQ(take(limiter, number, "a", 1, SECOND).remaining, left);
            CHECK(take(limiter, number, "b", 1, SECOND).allowed);
        }
        struct hf_limiter_answer answer = take(limiter, number, "a", 1, SECOND);
        CHECK(!answer.allowed);
        uint64_t at_ns = SECOND + answer.retry_after_ns;
        CHECK(!take(limiter, number, "a", 1, at_ns - 1).allowed);
        CHECK(take(limiter, number, "a", 1, at_ns).allowed);
        CHECK_EQ(take(limiter, number, "a", 6, at_ns).retry_after_ns,
                 HF_LIMITER_NEVER);
        CHECK_EQ(hf_limiter_sweep(limiter, 100, SECOND), 0);
        CHECK_EQ(hf_limiter_sweep(limiter, 100, 100 * SECOND), 2);
        hf_limiter_close(limiter);
    }
}

TEST(idle_keys_are_forgotten_and_memory_stays_flat)
{
    struct hf_limiter *limiter = open_small();
    uint64_t bytes = 0;
    char key[24];

    /* each key is whole again a second later, and kept for a second more: 2000
     * are alive */
    for (uint64_t i = 0; i < 200000; i++) {
        int len = snprintf(key, sizeof key, "key-%llu", (unsigned long long)i);
        struct hf_limiter_ask one = {
            .key = key, .key_len = (size_t)len, .cost = 1};
        struct hf_limiter_call call = {
            .asks = &one, .count = 1, .now_ns = 1 + i * SECOND / 1000};
        struct hf_limiter_answer answer;
        CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
        if (i == 20000)
            bytes = stats_of(limiter).bytes;
    }
    CHECK(stats_of(limiter).keys <= 2 * 2000 + 100);
    CHECK_EQ(stats_of(limiter).bytes, bytes);
    CHECK_EQ(stats_of(limiter).evictions, 200000 - stats_of(limiter).keys);
    hf_limiter_close(limiter);
}

TEST(a_key_that_is_used_again_within_a_second_is_not_made_again)
{
    struct hf_limiter *limiter = open_small();
    uint32_t quick = define(limiter, "quick", bucket(1, SECOND / 1000, 1));
    char key[24];

    for (uint64_t i = 0; i < 5000; i++) { /* each key every half second */
        snprintf(key, sizeof key, "key-%llu", (unsigned long long)(i % 500));
        CHECK(take(limiter, quick, key, 1, SECOND + i * SECOND / 1000).allowed);
    }
    CHECK_EQ(stats_of(limiter).keys, 500);
    CHECK_EQ(stats_of(limiter).evictions, 0);
    hf_limiter_close(limiter);
}

TEST(what_is_spent_is_never_forgotten)
{
    struct hf_limiter *limiter = open_small();
    uint32_t slow = define(limiter, "slow", bucket(1, 1000 * SECOND, 3));
    char key[24];

    CHECK(take(limiter, slow, "mine", 3, 1).allowed);
    for (uint64_t i = 0; i < 20000; i++) {
        uint64_t now_ns = 1 + i * SECOND / 20;
        snprintf(key, sizeof key, "key-%llu", (unsigned long long)i);
        CHECK(take(limiter, 0, key, 1, now_ns).allowed);
        if (now_ns < 1000 * SECOND)
            CHECK(!peek(limiter, slow, "mine", 1, now_ns).allowed);
    }
    CHECK(take(limiter, slow, "mine", 1, 1000 * SECOND + 1).allowed);
    hf_limiter_close(limiter);
}

TEST(a_late_call_does_not_profit_from_a_forgotten_key)
{
    struct hf_limiter *limiter = open_small();

    CHECK(take(limiter, 0, "a", 10, 100 * SECOND).allowed);
    CHECK_EQ(hf_limiter_sweep(limiter, 10, 110 * SECOND), 1);
    /* a thread that read its clock at 100: it counts from 110 */
    CHECK(take(limiter, 0, "a", 10, 100 * SECOND).allowed);
    CHECK(!take(limiter, 0, "a", 1, 110 * SECOND).allowed);
    struct hf_limiter_answer answer = take(limiter, 0, "a", 1, 105 * SECOND);
    CHECK(!answer.allowed);
    CHECK_EQ(answer.retry_after_ns, 6 * SECOND);
    hf_limiter_close(limiter);
}

TEST(keys_max_is_a_clear_refusal)
{
    struct hf_limiter *limiter;
    struct hf_limiter_opts opts = {.keys_max = 100};
    struct hf_limiter_answer answer;
    char key[24];

    CHECK_EQ(hf_limiter_open(&limiter, &opts), HF_OK);
    struct hf_limiter_ask one = {.key = key, .cost = 1};
    struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = 10};
    for (int i = 0; i < 200; i++) {
        one.key_len = (size_t)snprintf(key, sizeof key, "key-%d", i);
        CHECK_EQ(hf_limiter_take(limiter, &call, &answer),
                 i < 100 ? HF_OK : HF_FULL);
    }
    CHECK_EQ(stats_of(limiter).keys, 100);
    CHECK_EQ(stats_of(limiter).refused, 100);
    call.now_ns = 10 + SECOND; /* all are whole again */
    for (int i = 200; i < 250; i++) {
        one.key_len = (size_t)snprintf(key, sizeof key, "key-%d", i);
        CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    }
    hf_limiter_close(limiter);
}

TEST(a_key_that_is_idle_makes_room_whatever_its_shard)
{
    struct hf_limiter *limiter;
    struct hf_limiter_opts opts = {.keys_max = 1, .shards = 256, .seed = 7};
    char key[24];

    CHECK_EQ(hf_limiter_open(&limiter, &opts), HF_OK);
    for (uint64_t i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "key-%llu", (unsigned long long)i);
        CHECK(take(limiter, 0, key, 1, (1 + i) * SECOND).allowed);
    }
    CHECK_EQ(stats_of(limiter).keys, 1);
    hf_limiter_close(limiter);
}

/* Each new key finds an empty bucket, which must not count as work to be done
 * later: that would grow without an end. */
TEST(in_an_empty_table_there_is_nothing_to_look_at_later)
{
    struct hf_limiter *limiter = open_small();
    char key[24];

    for (uint64_t i = 0; i < 20000; i++) {
        snprintf(key, sizeof key, "key-%llu", (unsigned long long)i);
        CHECK(take(limiter, 0, key, 1, SECOND).allowed);
    }
    CHECK_EQ(hf_limiter_sweep(limiter, 40000, 9 * SECOND), 20000);
    for (uint64_t i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "new-%llu", (unsigned long long)i);
        CHECK(take(limiter, 0, key, 1, (10 + i) * SECOND).allowed);
        CHECK(limiter->shards[0].evict_credit <= 0);
        (void)hf_limiter_sweep(limiter, 40000, (11 + i) * SECOND);
    }
    hf_limiter_close(limiter);
}

TEST(keys_of_every_length_are_told_apart)
{
    struct hf_limiter *limiter = open_small();
    char key[HF_LIMITER_KEY_MAX + 1];
    struct hf_limiter_ask one = {.key = key, .cost = 1};
    struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = 10};
    struct hf_limiter_answer answer;

    memset(key, 0, sizeof key);
    for (int round = 0; round < 2; round++) {
        for (size_t len = 0; len <= HF_LIMITER_KEY_MAX; len++) {
            one.key_len = len;
            CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
            CHECK_EQ(answer.remaining, (uint64_t)(9 - round));
            if (len == 0)
                continue;
            key[len - 1] = 1;
            CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
            CHECK_EQ(answer.remaining, (uint64_t)(9 - round));
            key[len - 1] = 0;
        }
    }
    one.key_len = HF_LIMITER_KEY_MAX + 1;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_INVALID);
    one.key = NULL;
    one.key_len = 1;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_INVALID);
    hf_limiter_close(limiter);
}

/* Each of 300,000 keys has its own count, in and out of order. */
TEST(many_keys_keep_their_own_counts)
{
    struct hf_limiter *limiter = open_small();
    enum { KEYS = 300000 };

    for (unsigned round = 1; round <= 3; round++)
        for (unsigned i = 0; i < KEYS; i++) {
            unsigned number = i * 7919u % KEYS;
            struct hf_limiter_ask one = {
                .key = &number, .key_len = sizeof number, .cost = number % 3};
            struct hf_limiter_call call = {
                .asks = &one, .count = 1, .now_ns = 10};
            struct hf_limiter_answer answer;
            CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
            CHECK_EQ(answer.remaining, 10 - round * (number % 3));
        }
    CHECK_EQ(stats_of(limiter).keys, KEYS / 3 * 2);
    hf_limiter_close(limiter);
}

TEST(a_million_keys_take_64_bytes_each_and_the_key)
{
    static const size_t lengths[] = {4, 11, 16, 24, 40};
    enum { KEYS = 1000000 };
    char key[40] = {0};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct hf_limiter *limiter;
        /* all lengths would take long where every step is checked */
        uint32_t count = i == 2 ? KEYS : KEYS / 4;
        CHECK_EQ(hf_limiter_open(&limiter, NULL), HF_OK);
        uint64_t before = stats_of(limiter).bytes;
        for (uint32_t number = 0; number < count; number++) {
            memcpy(key, &number, sizeof number);
            struct hf_limiter_ask one = {
                .key = key, .key_len = lengths[i], .cost = 1};
            struct hf_limiter_call call = {
                .asks = &one, .count = 1, .now_ns = 10};
            struct hf_limiter_answer answer;
            CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
        }
        CHECK_EQ(stats_of(limiter).keys, count);
        uint64_t each = (stats_of(limiter).bytes - before) / count;
        /* of fewer keys the last, half-empty blocks weigh more */
        CHECK(each <= 64 + lengths[i] + (i == 2 ? 0 : 8));
        hf_limiter_close(limiter);
    }
}
