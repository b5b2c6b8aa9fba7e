/* Tests of the limiter: holds, the most denied, bad input, no memory. */
#include <stdio.h>
#include <string.h>

#include "base/memory.h"
#include "support/limiting.h"

TEST_ONE_THREAD;

/* ---- Holds. ---- */

static uint64_t hold(struct hf_limiter *limiter, uint32_t rule, const char *key,
                     uint64_t cost, uint64_t hold_ns, uint64_t now_ns)
{
    struct hf_limiter_ask one = ask(rule, key, cost);
    struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = now_ns};
    struct hf_limiter_answer answer;
    uint64_t number;

    CHECK_EQ(hf_limiter_hold(limiter, &call, hold_ns, &answer, &number), HF_OK);
    CHECK_EQ(answer.allowed, number != 0);
    return number;
}

TEST(a_hold_is_settled_with_its_true_cost)
{
    struct hf_limiter *limiter = open_small();

    uint64_t first = hold(limiter, 0, "a", 8, SECOND, 10);
    CHECK_EQ(peek(limiter, 0, "a", 1, 10).remaining, 2);
    CHECK_EQ(stats_of(limiter).holds, 1);
    CHECK_EQ(hf_limiter_settle(limiter, first, 3, 11), HF_OK);
    CHECK_EQ(peek(limiter, 0, "a", 1, 11).remaining, 7);
    CHECK_EQ(hf_limiter_settle(limiter, first, 3, 11), HF_NOTFOUND);
    CHECK_EQ(stats_of(limiter).holds, 0);
    /* more than was held: what is above is spent in any case */
    uint64_t second = hold(limiter, 0, "a", 7, SECOND, 11);
    CHECK_EQ(hold(limiter, 0, "a", 1, SECOND, 11), 0);
    CHECK_EQ(hf_limiter_settle(limiter, second, 9, 12), HF_OK);
    CHECK_EQ(take(limiter, 0, "a", 1, 12).retry_after_ns, 3 * SECOND - 2);
    CHECK_EQ(hf_limiter_settle(limiter, 0, 1, 12), HF_NOTFOUND);
    CHECK_EQ(hf_limiter_settle(limiter, UINT64_MAX, 1, 12), HF_NOTFOUND);
    hf_limiter_close(limiter);
}

/* Where there is room for it, what is above the hold is spent once. */
TEST(what_is_settled_above_the_hold_is_charged_once)
{
    static const enum hf_rate_kind kinds[] = {HF_RATE_BUCKET, HF_RATE_GCRA,
                                              HF_RATE_FIXED, HF_RATE_SLIDING,
                                              HF_RATE_LOG};

    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        struct hf_limiter *limiter = open_small();
        bool on_line = kinds[i] <= HF_RATE_GCRA;
        uint32_t rule = define(
            limiter, "r",
            (struct hf_limiter_rule){.rate = {.kind = kinds[i],
                                              .permits = on_line ? 1 : 20,
                                              .span_ns = 1000 * SECOND,
                                              .burst = on_line ? 20 : 0}});
        struct hf_limiter_ask one = ask(rule, "k", 2);
        struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = 10};
        struct hf_limiter_answer answer;
        uint64_t number;
        CHECK_EQ(hf_limiter_hold(limiter, &call, SECOND, &answer, &number),
                 HF_OK);
        CHECK(answer.allowed);
        CHECK_EQ(hf_limiter_settle(limiter, number, 5, 11), HF_OK);
        answer = peek(limiter, rule, "k", 0, 11);
        CHECK_EQ(answer.limit - answer.remaining, 5);
        hf_limiter_close(limiter);
    }
}

TEST(a_hold_that_is_not_settled_comes_back_by_itself)
{
    struct hf_limiter *limiter = open_small();
    uint32_t slow = define(limiter, "slow", bucket(1, 1000 * SECOND, 10));

    uint64_t first = hold(limiter, slow, "a", 6, 50, 100);
    uint64_t second = hold(limiter, slow, "a", 4, 90, 100);
    CHECK(first != 0 && second != 0);
    /* the wait counts on what comes back */
    CHECK_EQ(take(limiter, slow, "a", 1, 100).retry_after_ns, 50);
    CHECK_EQ(take(limiter, slow, "a", 7, 100).retry_after_ns, 90);
    CHECK(!take(limiter, slow, "a", 1, 149).allowed);
    CHECK_EQ(peek(limiter, slow, "a", 1, 150).remaining, 6);
    CHECK_EQ(hf_limiter_settle(limiter, first, 1, 150), HF_NOTFOUND);
    CHECK_EQ(hf_limiter_settle(limiter, second, 4, 189), HF_OK);
    CHECK_EQ(peek(limiter, slow, "a", 1, 200).remaining, 6);
    /* settled late, before anybody looked */
    uint64_t third = hold(limiter, slow, "b", 6, 50, 100);
    CHECK_EQ(hf_limiter_settle(limiter, third, 1, 150), HF_NOTFOUND);
    CHECK_EQ(peek(limiter, slow, "b", 1, 150).remaining, 10);
    hf_limiter_close(limiter);
}

TEST(a_key_with_holds_is_forgotten_only_after_them)
{
    struct hf_limiter *limiter = open_small();

    uint64_t number = hold(limiter, 0, "a", 1, 100 * SECOND, 10);
    CHECK_EQ(hf_limiter_sweep(limiter, 10, 50 * SECOND), 0);
    CHECK_EQ(hf_limiter_sweep(limiter, 10, 101 * SECOND), 1);
    CHECK_EQ(hf_limiter_settle(limiter, number, 1, 50 * SECOND), HF_NOTFOUND);
    CHECK_EQ(stats_of(limiter).holds, 0);
    /* and of a removed rule at once */
    uint32_t rule = define(limiter, "r", bucket(1, SECOND, 10));
    number = hold(limiter, rule, "a", 1, 100 * SECOND, 200 * SECOND);
    CHECK_EQ(hf_limiter_remove(limiter, "r"), HF_OK);
    CHECK_EQ(hf_limiter_sweep(limiter, 10, 200 * SECOND), 1);
    CHECK_EQ(hf_limiter_settle(limiter, number, 0, 201 * SECOND), HF_NOTFOUND);
    CHECK_EQ(stats_of(limiter).holds, 0);
    (void)hold(limiter, 0, "b", 1, SECOND, 1); /* left open at close */
    hf_limiter_close(limiter);
}

/* What is settled above a hold of nothing is memory, too: it counts, and comes
 * back with the key. */
TEST(memory_is_counted_when_a_hold_of_nothing_is_settled)
{
    static const enum hf_rate_kind kinds[] = {HF_RATE_LOG, HF_RATE_LEASES};

    for (size_t i = 0; i < 2; i++) {
        struct hf_limiter *limiter;
        struct hf_limiter_opts opts = {.log_bytes_max = 1000};
        CHECK_EQ(hf_limiter_open(&limiter, &opts), HF_OK);
        struct hf_limiter_rule log = {
            .rate = {.kind = kinds[i], .permits = 3, .span_ns = SECOND}};
        uint32_t rule = define(limiter, "r", log);
        /* at once, and by way of a rule that keeps no log */
        uint64_t first = hold(limiter, rule, "a", 0, 500 * SECOND, 10);
        uint64_t second = hold(limiter, rule, "b", 0, 500 * SECOND, 10);
        (void)define(limiter, "r", bucket(3, SECOND, 3));
        CHECK_EQ(peek(limiter, rule, "b", 1, 10).remaining, 3);
        (void)define(limiter, "r", log);
        CHECK_EQ(peek(limiter, rule, "b", 1, 10).remaining, 3);
        CHECK_EQ(hf_limiter_settle(limiter, first, 2, 11), HF_OK);
        CHECK_EQ(hf_limiter_settle(limiter, second, 2, 11), HF_OK);
        CHECK_EQ(hf_limiter_remove(limiter, "r"), HF_OK);
        while (stats_of(limiter).keys > 0)
            (void)hf_limiter_sweep(limiter, 1000, 1000 * SECOND);
        /* were it counted wrongly, nothing would fit any more */
        rule = define(limiter, "s", log);
        CHECK(take(limiter, rule, "c", 3, 2000 * SECOND).allowed);
        hf_limiter_close(limiter);
    }
}

/* It holds nothing, and ends all the same. */
TEST(a_hold_that_only_a_shadow_would_deny_ends_in_time)
{
    struct hf_limiter *limiter = open_small();
    struct hf_limiter_rule shadow = bucket(1, 100 * SECOND, 1);

    shadow.shadow = true;
    uint32_t rule = define(limiter, "s", shadow);
    CHECK(take(limiter, rule, "a", 1, 10).allowed);
    uint64_t first = hold(limiter, rule, "a", 1, SECOND, 10);
    (void)hold(limiter, rule, "a", 1, SECOND, 10);
    CHECK_EQ(stats_of(limiter).holds, 2);
    CHECK_EQ(hf_limiter_settle(limiter, first, 1, 11), HF_OK);
    CHECK_EQ(peek(limiter, rule, "a", 1, 11).remaining, 0);
    CHECK_EQ(take(limiter, rule, "a", 1, 2 * SECOND).shadow, 1);
    CHECK_EQ(stats_of(limiter).holds, 0);
    /* nothing came back, and nothing was spent */
    CHECK_EQ(peek(limiter, rule, "a", 1, 99 * SECOND).remaining, 0);
    CHECK_EQ(peek(limiter, rule, "a", 1, 100 * SECOND + 10).remaining, 1);
    hf_limiter_close(limiter);
}

TEST(open_holds_are_bounded)
{
    struct hf_limiter *limiter;
    struct hf_limiter_opts opts = {.holds_max = 3};
    struct hf_limiter_ask ask = {.key = "a", .key_len = 1};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 10};
    struct hf_limiter_answer answer;
    uint64_t number;

    CHECK_EQ(hf_limiter_open(&limiter, &opts), HF_OK);
    uint64_t first = hold(limiter, 0, "a", 1, SECOND, 10);
    (void)hold(limiter, 0, "b", 0, 2 * SECOND, 10); /* also of nothing */
    (void)hold(limiter, 0, "b", 0, 3 * SECOND, 10);
    CHECK_EQ(hf_limiter_hold(limiter, &call, SECOND, &answer, &number),
             HF_FULL);
    CHECK_EQ(stats_of(limiter).holds, 3);
    CHECK_EQ(hf_limiter_settle(limiter, first, 1, 10), HF_OK);
    (void)hold(limiter, 0, "a", 0, SECOND, 10);
    CHECK_EQ(hf_limiter_hold(limiter, &call, SECOND, &answer, &number),
             HF_FULL);
    /* Those that are over make room, also if nobody asks for their keys. */
    /* It may meet one of the two by chance, and leave the other. */
    CHECK(hold(limiter, 0, "c", 1, SECOND, 100 * SECOND) != 0);
    (void)hf_limiter_sweep(limiter, 1000, 100 * SECOND);
    CHECK_EQ(stats_of(limiter).holds, 1);
    hf_limiter_close(limiter);
}

/* However they are nested, and whichever ends first: each comes back once. */
TEST(many_holds_on_one_key_end_in_any_order)
{
    enum { HOLDS = 200000 };
    static uint64_t numbers[HOLDS];
    struct hf_limiter_rule rule = {
        .rate = {.permits = HOLDS, .span_ns = HF_RATE_SPAN_MAX_NS / 4}};
    struct hf_limiter *limiter;

    CHECK_EQ(
        hf_limiter_open(&limiter, &(struct hf_limiter_opts){.rule = &rule}),
        HF_OK);
    for (uint32_t i = 0; i < HOLDS; i++)
        numbers[i] =
            hold(limiter, 0, "a", 1, 1000 + i / 16 * 16 + 15 - i % 16, 10);
    CHECK_EQ(stats_of(limiter).holds, HOLDS);
    CHECK_EQ(hold(limiter, 0, "a", 1, 10, 10), 0);
    for (uint32_t i = HOLDS; i-- > 0;) /* the last first */
        if (i % 2 != 0)
            CHECK_EQ(hf_limiter_settle(limiter, numbers[i], 0, 10), HF_OK);
    CHECK_EQ(stats_of(limiter).holds, HOLDS / 2);
    CHECK(hold(limiter, 0, "a", HOLDS / 2, 10, 10) != 0);
    /* 1000 + 15 - 14 is when the first of the rest is over. */
    CHECK_EQ(hold(limiter, 0, "a", 1, 10, 10), 0);
    CHECK(hold(limiter, 0, "a", HOLDS, 10, 10 + 1000 + HOLDS) != 0);
    CHECK_EQ(stats_of(limiter).holds, 1);
    hf_limiter_close(limiter);
}

TEST(a_hold_of_several_pairs_ends_as_one)
{
    struct hf_limiter *limiter = open_small();
    struct hf_limiter_ask asks[] = {ask(0, "a", 4), ask(0, "b", 4),
                                    ask(0, "a", 1)};
    struct hf_limiter_call call = {.asks = asks, .count = 3, .now_ns = 10};
    struct hf_limiter_answer answer;
    uint64_t number;

    CHECK_EQ(hf_limiter_hold(limiter, &call, SECOND, &answer, &number), HF_OK);
    CHECK(number != 0);
    CHECK_EQ(peek(limiter, 0, "a", 1, 10).remaining, 5);
    CHECK_EQ(peek(limiter, 0, "b", 1, 10).remaining, 6);
    CHECK_EQ(hf_limiter_settle(limiter, number, 1, 11), HF_OK);
    CHECK_EQ(peek(limiter, 0, "a", 1, 11).remaining, 9);
    CHECK_EQ(peek(limiter, 0, "b", 1, 11).remaining, 9);
    asks[1].cost = 11; /* denies: nothing is held */
    CHECK_EQ(hf_limiter_hold(limiter, &call, SECOND, &answer, &number), HF_OK);
    CHECK_EQ(number, 0);
    CHECK_EQ(answer.denied_by, 1);
    CHECK_EQ(peek(limiter, 0, "a", 1, 11).remaining, 9);
    hf_limiter_close(limiter);
}

/* ---- Whom it denies most. ---- */

TEST(the_most_denied_keys_are_told)
{
    struct hf_limiter *limiter = open_small();
    struct hf_limiter_top rows[8];
    char key[24];

    CHECK_EQ(hf_limiter_top(limiter, rows, 8), 0);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "rare-%u", i);
        (void)take(limiter, 0, key, 11, 10);
        (void)take(limiter, 0, "often", 11, 10);
        if (i % 2 == 0)
            (void)take(limiter, 0, "half", 11, 10);
    }
    CHECK_EQ(hf_limiter_top(limiter, rows, 8), 8);
    CHECK_TEXT(rows[0].key, rows[0].key_len, "often");
    CHECK_EQ(rows[0].denied - rows[0].error, 1000);
    CHECK_EQ(strcmp(rows[0].rule, "default"), 0);
    CHECK_TEXT(rows[1].key, rows[1].key_len, "half");
    CHECK(rows[1].denied >= 500 && rows[1].denied - rows[1].error <= 500);
    CHECK(rows[2].denied <= 2500 / 64 + 1);
    CHECK_EQ(stats_of(limiter).keys, 0); /* nobody has spent anything */
    CHECK_EQ(hf_limiter_top(limiter, rows, 1), 1);
    hf_limiter_close(limiter);
}

/* ---- Bad input. ---- */

TEST(bad_input_changes_nothing)
{
    struct hf_limiter *limiter = NULL;
    struct hf_limiter_opts opts = {.shards = 3};
    struct hf_limiter_ask one = ask(0, "a", 1);
    struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = 1};
    struct hf_limiter_answer answer;
    struct hf_limiter_rule rule = bucket(1, SECOND, 1);
    struct hf_limiter_rule bad = bucket(0, SECOND, 1);
    uint64_t number;

    CHECK_EQ(hf_limiter_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_open(&limiter, &opts), HF_INVALID);
    opts = (struct hf_limiter_opts){.shards = 512};
    CHECK_EQ(hf_limiter_open(&limiter, &opts), HF_INVALID);
    opts = (struct hf_limiter_opts){.rule = &bad};
    CHECK_EQ(hf_limiter_open(&limiter, &opts), HF_INVALID);
    CHECK(limiter == NULL);
    limiter = open_small();
    CHECK_EQ(hf_limiter_define(limiter, "r", &bad, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_define(limiter, "", &rule, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_define(limiter, NULL, &rule, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_define(limiter, "r", NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_define(limiter, "a name of more than thirty-two bytes",
                               &rule, NULL),
             HF_INVALID);
    CHECK_EQ(hf_limiter_list(limiter, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_take(limiter, &call, NULL), HF_INVALID);
    CHECK_EQ(hf_limiter_take(limiter, NULL, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_hold(limiter, &call, 0, &answer, &number), HF_INVALID);
    CHECK_EQ(hf_limiter_hold(limiter, &call, 1, &answer, NULL), HF_INVALID);
    call.count = 0;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_INVALID);
    call.count = HF_LIMITER_ASKS_MAX + 1;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_INVALID);
    call.count = 1;
    call.priority = HF_LIMITER_CLASSES;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_INVALID);
    CHECK_EQ(hf_limiter_refund(limiter, &call, 1), HF_INVALID);
    CHECK_EQ(hf_limiter_acquire(limiter, &call, HF_NOW, NULL), HF_INVALID);
    call.priority = 0;
    one.rule = 77;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_NOTFOUND);
    one.rule = 0xffff;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_NOTFOUND);
    CHECK_EQ(stats_of(limiter).keys, 0);
    CHECK(!hf_limiter_allow(limiter, NULL));
    hf_limiter_shutdown(limiter);
    one.rule = 0;
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_CLOSED);
    CHECK_EQ(hf_limiter_peek(limiter, &call, &answer), HF_CLOSED);
    CHECK_EQ(hf_limiter_acquire(limiter, &call, HF_FOREVER, NULL), HF_CLOSED);
    CHECK(!hf_limiter_allow(limiter, "a"));
    hf_limiter_close(limiter);
}

/* ---- Without memory. ---- */

static void everything(struct hf_limiter *limiter)
{
    struct hf_limiter_rule log = {
        .rate = {.kind = HF_RATE_LOG, .permits = 4, .span_ns = SECOND}};
    struct hf_limiter_rule own = bucket(7, SECOND, 9);
    uint32_t number = 0;
    struct hf_limiter_answer answer;
    uint64_t hold_number = 0;
    char key[24] = "";

    (void)hf_limiter_define(limiter, "log", &log, &number);
    for (uint64_t i = 0; i < 60; i++) {
        snprintf(key, sizeof key, "key-%llu", (unsigned long long)i);
        struct hf_limiter_ask asks[] = {ask(number, key, 1), ask(0, "all", 1)};
        struct hf_limiter_call call = {
            .asks = asks, .count = 1 + i % 2, .now_ns = 10 + i};
        if (i % 3 == 2)
            asks[1].own = &own;
        (void)hf_limiter_take(limiter, &call, &answer);
        asks[0].rule = 0;
        (void)hf_limiter_hold(limiter, &call, 5, &answer, &hold_number);
        if (i % 4 == 0)
            (void)hf_limiter_settle(limiter, hold_number, 0, 11 + i);
    }
    log.rate.permits = 6;
    (void)hf_limiter_define(limiter, "log", &log, &number);
    struct hf_limiter_ask one = ask(number, "key-1", 9);
    struct hf_limiter_call call = {.asks = &one, .count = 1, .now_ns = 99};
    (void)hf_limiter_take(limiter, &call, &answer);
}

TEST(every_allocation_may_fail)
{
    bool failed = true;

    for (uint64_t i = 0; failed; i++) {
        struct hf_limiter *limiter = NULL;
        struct hf_limiter_opts opts = {.shards = 1, .seed = 9};
        struct hf_limiter_top rows[4];
        hf_memory_fail_after(i);
        enum hf_status status = hf_limiter_open(&limiter, &opts);
        if (status == HF_OK) {
            everything(limiter);
            (void)hf_limiter_top(limiter, rows, 4);
        }
        hf_memory_fail_never();
        CHECK(status == HF_OK || status == HF_NOMEM);
        failed = status != HF_OK;
        if (status != HF_OK)
            continue;
        /* it goes on where there is memory again, with nothing lost */
        uint64_t before = hf_memory_count();
        everything(limiter);
        failed = i < 400 && before > 0;
        CHECK(peek(limiter, 0, "some other", 1, 200).allowed);
        hf_limiter_close(limiter);
    }
}

TEST(what_could_not_be_added_costs_nothing)
{
    struct hf_limiter *limiter = open_small();
    struct hf_limiter_rule log = {
        .rate = {.kind = HF_RATE_LOG, .permits = 4, .span_ns = SECOND}};
    uint32_t rule = define(limiter, "log", log);
    struct hf_limiter_ask asks[] = {ask(0, "a", 1), ask(rule, "a", 1)};
    struct hf_limiter_call call = {.asks = asks, .count = 2, .now_ns = 10};
    struct hf_limiter_answer answer;

    CHECK(take(limiter, 0, "a", 1, 10).allowed);
    hf_memory_fail_after(0);
    enum hf_status status = hf_limiter_take(limiter, &call, &answer);
    hf_memory_fail_never();
    CHECK_EQ(status, HF_NOMEM);
    CHECK_EQ(peek(limiter, 0, "a", 1, 10).remaining, 9);
    CHECK_EQ(stats_of(limiter).refused, 1);
    CHECK_EQ(hf_limiter_take(limiter, &call, &answer), HF_OK);
    CHECK_EQ(answer.remaining, 3);
    hf_limiter_close(limiter);
}

TEST(it_is_listed)
{
    struct hf_limiter *limiter = open_small();
    char text[4096];

    CHECK(take(limiter, 0, "a", 11, 10).retry_after_ns == HF_LIMITER_NEVER);
    CHECK(take(limiter, 0, "a", 1, 10).allowed);
    CHECK(hf_inspect_text(HF_INSPECT_TEXT, text, sizeof text) > 0);
    CHECK(strstr(text, "limiter") != NULL);
    CHECK(strstr(text, "small") != NULL);
    hf_limiter_close(limiter);
}

/* A server that starts again forgets its holds: a number of before must not be
 * that of another's, and clients that count with doubles know all of them. */
TEST(numbers_of_another_limiter_are_not_ours)
{
    const struct hf_limiter_rule rule = {
        .rate = {.permits = 10, .span_ns = SECOND}};
    uint64_t numbers[2];

    for (uint64_t i = 0; i < 2; i++) {
        struct hf_limiter *limiter;
        const struct hf_limiter_opts opts = {.rule = &rule, .seed = 1 + i};
        CHECK_EQ(hf_limiter_open(&limiter, &opts), HF_OK);
        numbers[i] = hold(limiter, 0, "key", 1, SECOND, 10);
        CHECK(numbers[i] < UINT64_C(1) << 53);
        if (i == 1)
            CHECK_EQ(hf_limiter_settle(limiter, numbers[0], 1, 10),
                     HF_NOTFOUND);
        CHECK_EQ(hf_limiter_settle(limiter, numbers[i], 1, 10), HF_OK);
        hf_limiter_close(limiter);
    }
    CHECK(numbers[0] != numbers[1]);
}
