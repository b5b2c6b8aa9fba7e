/* limiter_rules.c - rules of a limiter that change while they are used, step
 * by step. */
#include "holdfast/limiter.h"

#include <string.h>

#include "base/atomic.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 3
#define LONG   UINT64_C(1000000000000) /* ns: no permit comes back in time */

static struct {
    struct hf_limiter *limiter;
    uint32_t rule;
    struct hf_atomic_u64 taken[2];
    uint32_t other; /* the number of a rule that came later */
} test;

static struct hf_limiter_rule rule_of(uint32_t burst)
{
    return (struct hf_limiter_rule){
        .rate = {.permits = 1, .span_ns = LONG, .burst = burst}};
}

static void begin(void)
{
    struct hf_limiter_opts opts = {.shards = 1, .seed = 5};
    struct hf_limiter_rule rule = rule_of(100);

    memset(test.taken, 0, sizeof test.taken);
    if (hf_limiter_open(&test.limiter, &opts) != HF_OK ||
        hf_limiter_define(test.limiter, "r", &rule, &test.rule) != HF_OK)
        test_fail(__FILE__, __LINE__, "no limiter");
}

static void end(void *context)
{
    (void)context;
    hf_limiter_close(test.limiter);
}

static struct hf_limiter_answer ask_key(char key, uint64_t cost, bool peek)
{
    struct hf_limiter_ask ask = {
        .rule = test.rule, .key = &key, .key_len = 1, .cost = cost};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 10};
    struct hf_limiter_answer answer = {.allowed = false};
    enum hf_status status = peek
                                ? hf_limiter_peek(test.limiter, &call, &answer)
                                : hf_limiter_take(test.limiter, &call, &answer);

    if (status != HF_OK)
        schedule_wrong("a call failed: %s", hf_status_text(status));
    return answer;
}

/* ---- What is spent stays spent. ---- */

/* A place of the table of rules has had another before, so that what one rule
 * leaves behind is taken up by one of another kind of number. */
static void rules_setup(void *context, uint64_t seed)
{
    struct hf_limiter_rule rule = rule_of(100);

    (void)context;
    (void)seed;
    begin();
    if (hf_limiter_define(test.limiter, "x", &rule, NULL) != HF_OK ||
        hf_limiter_remove(test.limiter, "x") != HF_OK)
        test_fail(__FILE__, __LINE__, "no rule");
    for (char key = 'a'; key < 'a' + 2; key++)
        (void)ask_key(key, 3, false);
    if (hf_limiter_define(test.limiter, "r", &rule, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no rule");
}

static enum hf_status hold_nothing(char key)
{
    struct hf_limiter_ask ask = {
        .rule = test.rule, .key = &key, .key_len = 1, .cost = 2};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 10};
    struct hf_limiter_answer answer;
    uint64_t hold;
    enum hf_status status =
        hf_limiter_hold(test.limiter, &call, LONG, &answer, &hold);

    return status != HF_OK ? status
                           : hf_limiter_settle(test.limiter, hold, 0, 10);
}

static void rules_body(void *context, unsigned fiber)
{
    struct hf_limiter_rule rule = rule_of(101 + fiber);
    enum hf_status status = HF_OK;

    (void)context;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t pick = schedule_random(fiber == 0 ? 2 : 7);
        if (pick < 2) {
            (void)ask_key((char)('a' + pick), 1, false);
            hf_u64_add(&test.taken[pick], 1, __ATOMIC_RELAXED);
        } else if (pick < 4) {
            status = hf_limiter_define(test.limiter, "r", &rule, NULL);
        } else if (pick < 5) {
            status = hf_limiter_define(test.limiter, "x", &rule, NULL);
        } else if (pick < 6) {
            (void)hf_limiter_remove(test.limiter, "x");
        } else { /* held, and all of it given back */
            status = hold_nothing('a');
        }
        if (status != HF_OK)
            schedule_wrong("a call failed: %s", hf_status_text(status));
    }
}

static bool rules_check(void *context, FILE *explain)
{
    (void)context;
    for (unsigned i = 0; i < 2; i++) {
        struct hf_limiter_answer answer = ask_key((char)('a' + i), 0, true);
        uint64_t spent = answer.limit - answer.remaining;
        uint64_t expected = 3 + test.taken[i].value;
        fprintf(explain, "%llu spent, %llu taken; ", (unsigned long long)spent,
                (unsigned long long)expected);
        if (spent != expected)
            return false;
    }
    return true;
}

TEST(what_is_spent_stays_while_rules_change)
{
    struct schedule_case c = {.name = "rules",
                              .fibers = FIBERS,
                              .setup = rules_setup,
                              .teardown = end,
                              .body = rules_body,
                              .check = rules_check};
    schedule_check(&c);
}

/* ---- A rule that was removed. ---- */

/* One who still has the number of a rule that was removed, while another rule
 * takes its place and has the same key. */
static void removed_setup(void *context, uint64_t seed)
{
    struct hf_limiter_rule rule = rule_of(101);

    (void)context;
    (void)seed;
    begin();
    (void)ask_key('a', 1, false);
    /* so that the next call has to look for the rule */
    if (hf_limiter_define(test.limiter, "r", &rule, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no rule");
}

static void removed_body(void *context, unsigned fiber)
{
    struct hf_limiter_rule rule = rule_of(100);
    struct hf_limiter_ask ask = {
        .rule = test.rule, .key = "a", .key_len = 1, .cost = 1};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 10};
    struct hf_limiter_answer answer;
    enum hf_status status;

    (void)context;
    if (fiber != 0) {
        status = hf_limiter_take(test.limiter, &call, &answer);
        if (status != HF_OK && status != HF_NOTFOUND)
            schedule_wrong("a call failed: %s", hf_status_text(status));
        return;
    }
    if (hf_limiter_remove(test.limiter, "r") != HF_OK ||
        hf_limiter_define(test.limiter, "s", &rule, &ask.rule) != HF_OK ||
        hf_limiter_take(test.limiter, &call, &answer) != HF_OK)
        schedule_wrong("a call failed");
    test.other = ask.rule;
}

static bool removed_check(void *context, FILE *explain)
{
    (void)context;
    test.rule = test.other;
    uint64_t spent = 100 - ask_key('a', 0, true).remaining;
    fprintf(explain, "%llu spent of the new rule", (unsigned long long)spent);
    return spent == 1;
}

TEST(a_rule_that_was_removed_spends_from_no_other)
{
    struct schedule_case c = {.name = "removed",
                              .fibers = 2,
                              .setup = removed_setup,
                              .teardown = end,
                              .body = removed_body,
                              .check = removed_check};
    schedule_check(&c);
}
