/* limiter.c - decisions, keys that come and go, holds and waiters, step by
 * step. */
#include "holdfast/limiter.h"

#include <string.h>

#include "base/atomic.h"
#include "base/step.h"
#include "base/thread.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 3
#define CALLS  5
#define KEYS   3
#define LONG   UINT64_C(1000000000000) /* ns: no permit comes back in time */

static struct {
    struct hf_limiter *limiter;
    uint32_t rule;
    struct calls *history;
    struct linear *checker;
    enum hf_status status[FIBERS + 1];
    struct hf_atomic_u64 taken[32];
    uint64_t at_ns[FIBERS];
    uint64_t hold;
} test;

static struct hf_limiter_rule rule_of(uint32_t burst, uint64_t span_ns)
{
    return (struct hf_limiter_rule){
        .rate = {.permits = 1, .span_ns = span_ns, .burst = burst}};
}

/* A clock that stands still: whoever is not woken sleeps for ever, and the
 * scheduler tells. */
static uint64_t still_now_ns(void *context)
{
    (void)context;
    return SCHEDULE_START_NS;
}

static void still_wait(void *context, const uint32_t *word, uint32_t expected,
                       uint64_t deadline_ns)
{
    (void)context;
    (void)deadline_ns;
    step_wait(word, expected, HF_FOREVER);
}

static const struct hf_clock still = {.now_ns = still_now_ns,
                                      .wait = still_wait};

static void begin(uint32_t burst, uint64_t span_ns,
                  const struct hf_clock *clock)
{
    struct hf_limiter_opts opts = {.shards = 1, .seed = 5, .clock = clock};
    struct hf_limiter_rule rule = rule_of(burst, span_ns);

    memset(test.taken, 0, sizeof test.taken);
    memset(test.at_ns, 0, sizeof test.at_ns);
    test.hold = 0;
    if (hf_limiter_open(&test.limiter, &opts) != HF_OK ||
        hf_limiter_define(test.limiter, "r", &rule, &test.rule) != HF_OK)
        test_fail(__FILE__, __LINE__, "no limiter");
}

static void end(void *context)
{
    (void)context;
    hf_limiter_close(test.limiter);
}

static struct hf_limiter_answer ask_key(char key, uint64_t cost,
                                        uint64_t now_ns, bool peek)
{
    struct hf_limiter_ask ask = {
        .rule = test.rule, .key = &key, .key_len = 1, .cost = cost};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = now_ns};
    struct hf_limiter_answer answer = {.allowed = false};
    enum hf_status status = peek
                                ? hf_limiter_peek(test.limiter, &call, &answer)
                                : hf_limiter_take(test.limiter, &call, &answer);

    if (status != HF_OK)
        schedule_wrong("a call failed: %s", hf_status_text(status));
    return answer;
}

/* ---- Results: there is one order of all calls that explains them. ---- */

enum { OP_TAKE, OP_PEEK, OP_REFUND, OP_GROW, OP_SWEEP };

static const char *const op_names[] = {"take", "peek", "refund", "grow",
                                       "sweep"};

struct budget {
    uint64_t limit;
    uint64_t spent[KEYS];
};

static void budget_init(void *state, void *context)
{
    (void)context;
    ((struct budget *)state)->limit = 2;
}

/* The argument of a take is a set of keys, one permit of each. */
static bool budget_apply(void *state, const struct call *call, void *context)
{
    struct budget *budget = state;
    uint64_t least = UINT64_MAX;
    bool allowed = true;

    (void)context;
    if (call->op == OP_GROW)
        budget->limit = 3;
    if (call->op == OP_REFUND && budget->spent[call->argument] > 0)
        budget->spent[call->argument]--;
    if (call->op != OP_TAKE && call->op != OP_PEEK)
        return true;
    for (unsigned i = 0; i < KEYS; i++)
        allowed &=
            !(call->argument >> i & 1) || budget->spent[i] < budget->limit;
    if (allowed != (call->result != 0))
        return false;
    for (unsigned i = 0; i < KEYS; i++) {
        if (!(call->argument >> i & 1))
            continue;
        budget->spent[i] += allowed && call->op == OP_TAKE;
        if (least > budget->limit - budget->spent[i])
            least = budget->limit - budget->spent[i];
    }
    return !allowed || call->value == least;
}

static void results_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin(2, LONG, NULL);
    if (test.history == NULL) {
        struct linear_model model = {.state_bytes = sizeof(struct budget),
                                     .init = budget_init,
                                     .apply = budget_apply,
                                     .op_names = op_names};
        test.history = calls_new(FIBERS, CALLS);
        test.checker = linear_new(&model, FIBERS * CALLS);
    }
    calls_clear(test.history);
}

static void results_set(unsigned fiber, uint32_t op, uint64_t set)
{
    static const char keys[] = "abc";
    struct hf_limiter_ask asks[KEYS];
    struct hf_limiter_call call = {.asks = asks, .now_ns = 10};
    struct hf_limiter_answer answer = {.allowed = false};
    enum hf_status status;

    for (unsigned i = 0; i < KEYS; i++)
        if (set >> i & 1)
            asks[call.count++] = (struct hf_limiter_ask){
                .rule = test.rule, .key = &keys[i], .key_len = 1, .cost = 1};
    struct call *noted = calls_begin(test.history, fiber, op, 0, set);
    status = op == OP_TAKE ? hf_limiter_take(test.limiter, &call, &answer)
                           : hf_limiter_peek(test.limiter, &call, &answer);
    calls_end(test.history, noted, answer.allowed, answer.remaining);
    if (status != HF_OK)
        schedule_wrong("a decision failed: %s", hf_status_text(status));
}

static void results_other(unsigned fiber, uint32_t op, uint64_t key)
{
    char name = (char)('a' + key);
    struct hf_limiter_ask ask = {
        .rule = test.rule, .key = &name, .key_len = 1, .cost = 1};
    struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 10};
    struct hf_limiter_rule rule = rule_of(3, LONG);
    enum hf_status status = HF_OK;
    struct call *noted = calls_begin(test.history, fiber, op, 0, key);

    if (op == OP_REFUND)
        status = hf_limiter_refund(test.limiter, &call, 10);
    else if (op == OP_GROW)
        status = hf_limiter_define(test.limiter, "r", &rule, NULL);
    else
        (void)hf_limiter_sweep(test.limiter, 100, 10);
    calls_end(test.history, noted, 0, 0);
    if (status != HF_OK)
        schedule_wrong("a call failed: %s", hf_status_text(status));
}

static void results_body(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < CALLS; i++) {
        switch (schedule_random(8)) {
        case 0:
            results_other(fiber, OP_REFUND, schedule_random(KEYS));
            break;
        case 1:
            results_other(fiber, OP_GROW, 0);
            break;
        case 2:
            results_other(fiber, OP_SWEEP, 0);
            break;
        case 3:
            results_set(fiber, OP_PEEK, 1 + schedule_random(7));
            break;
        default:
            results_set(fiber, OP_TAKE, 1 + schedule_random(7));
        }
    }
}

static bool results_check(void *context, FILE *explain)
{
    (void)context;
    return linear_check(test.checker, test.history, explain) == LINEAR_YES;
}

TEST(all_or_nothing_at_one_instant)
{
    struct schedule_case c = {.name = "results",
                              .fibers = FIBERS,
                              .setup = results_setup,
                              .teardown = end,
                              .body = results_body,
                              .check = results_check};
    schedule_check(&c);
}

/* ---- Keys: the table grows, keys are forgotten and come again. ---- */

#define TABLE_KEYS 28

static void keys_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin(100, LONG, NULL);
    /* so many that a few more make the table grow */
    for (char key = 0; key < TABLE_KEYS - 6; key++) {
        struct hf_limiter_ask ask = {
            .rule = test.rule, .key = &key, .key_len = 1, .cost = 1};
        struct hf_limiter_call call = {.asks = &ask, .count = 1, .now_ns = 10};
        struct hf_limiter_answer answer;
        if (hf_limiter_take(test.limiter, &call, &answer) != HF_OK)
            test_fail(__FILE__, __LINE__, "no key");
    }
}

static void keys_body(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < 6; i++) {
        char fleeting = (char)(100 + fiber * 10 + i);
        char key = (char)(TABLE_KEYS - 8 + schedule_random(8));
        struct hf_limiter_ask ask = {.key = &fleeting, .key_len = 1, .cost = 1};
        struct hf_limiter_call call = {.asks = &ask, .count = 1};
        struct hf_limiter_answer answer;
        /* the default rule: whole again a second later, and forgotten */
        call.now_ns = 10 + i * UINT64_C(1000000000);
        if (hf_limiter_take(test.limiter, &call, &answer) != HF_OK)
            schedule_wrong("a new key failed");
        if (!ask_key(key, 1, 10, false).allowed)
            schedule_wrong("a permit was not to be had");
        hf_u64_add(&test.taken[(int)key], 1, __ATOMIC_RELAXED);
    }
}

static bool keys_check(void *context, FILE *explain)
{
    (void)context;
    for (char key = 0; key < TABLE_KEYS; key++) {
        /* later than all of them: parts of permits are back */
        uint64_t spent =
            100 - ask_key(key, 0, UINT64_C(9000000000), true).remaining;
        uint64_t expected = test.taken[(int)key].value + (key < TABLE_KEYS - 6);
        if (spent != expected) {
            fprintf(explain, "key %d: %llu spent, %llu taken", key,
                    (unsigned long long)spent, (unsigned long long)expected);
            return false;
        }
    }
    return true;
}

TEST(no_key_is_lost_or_doubled)
{
    struct schedule_case c = {.name = "keys",
                              .fibers = FIBERS,
                              .setup = keys_setup,
                              .teardown = end,
                              .body = keys_body,
                              .check = keys_check,
                              .schedules = 4000};
    schedule_check(&c);
}

/* ---- A hold: settled or over, never both. ---- */

static void hold_setup(void *context, uint64_t seed)
{
    static const char keys[] = "ab";
    struct hf_limiter_answer answer;

    (void)context;
    (void)seed;
    begin(10, LONG, NULL);
    struct hf_limiter_ask asks[] = {
        {.rule = test.rule, .key = &keys[0], .key_len = 1, .cost = 4},
        {.rule = test.rule, .key = &keys[1], .key_len = 1, .cost = 4}};
    struct hf_limiter_call call = {.asks = asks, .count = 2, .now_ns = 10};
    if (hf_limiter_hold(test.limiter, &call, 10, &answer, &test.hold) != HF_OK)
        test_fail(__FILE__, __LINE__, "no hold");
}

static void hold_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) /* in time by its own clock */
        test.status[0] = hf_limiter_settle(test.limiter, test.hold, 3, 19);
    else /* and over by another's */
        (void)ask_key((char)('a' + fiber - 1), 1, 20, false);
}

static bool hold_check(void *context, FILE *explain)
{
    uint64_t held = test.status[0] == HF_OK ? 3 : 0;
    uint64_t a = 10 - ask_key('a', 0, 20, true).remaining;
    uint64_t b = 10 - ask_key('b', 0, 20, true).remaining;
    struct hf_limiter_stats stats;

    (void)context;
    hf_limiter_stats(test.limiter, &stats);
    fprintf(explain, "settle: %s, spent %llu and %llu, holds %llu",
            hf_status_text(test.status[0]), (unsigned long long)a,
            (unsigned long long)b, (unsigned long long)stats.holds);
    return a == held + 1 && b == held + 1 && stats.holds == 0;
}

TEST(a_hold_is_settled_or_over)
{
    struct schedule_case c = {.name = "hold",
                              .fibers = 3,
                              .setup = hold_setup,
                              .teardown = end,
                              .body = hold_body,
                              .check = hold_check};
    schedule_check(&c);
}

/* ---- Waiters. ---- */

static enum hf_status acquire(uint64_t deadline_ns)
{
    struct hf_limiter_ask ask = {
        .rule = test.rule, .key = "k", .key_len = 1, .cost = 1};
    struct hf_limiter_call call = {.asks = &ask, .count = 1};

    return hf_limiter_acquire(test.limiter, &call, deadline_ns, NULL);
}

static void turns_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin(1, 1000000, NULL);
}

static void turns_body(void *context, unsigned fiber)
{
    (void)context;
    test.status[fiber] = acquire(HF_FOREVER);
    test.at_ns[fiber] = schedule_now_ns();
}

static bool turns_check(void *context, FILE *explain)
{
    uint64_t last_ns = 0;

    (void)context;
    for (unsigned i = 0; i < FIBERS; i++) {
        fprintf(explain, "%s at %llu; ", hf_status_text(test.status[i]),
                (unsigned long long)test.at_ns[i]);
        if (test.status[i] != HF_OK)
            return false;
        if (last_ns < test.at_ns[i])
            last_ns = test.at_ns[i];
    }
    /* three permits, a million ns each: not sooner and not much later */
    return last_ns >= SCHEDULE_START_NS + 2000000 &&
           last_ns < SCHEDULE_START_NS + 2900000;
}

TEST(waiters_are_served_when_permits_come)
{
    struct schedule_case c = {.name = "turns",
                              .fibers = FIBERS,
                              .setup = turns_setup,
                              .teardown = end,
                              .body = turns_body,
                              .check = turns_check};
    schedule_check(&c);
}

static void refund_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    begin(2, LONG, &still);
    /* all are taken, for long */
    struct hf_limiter_ask ask = {
        .rule = test.rule, .key = "k", .key_len = 1, .cost = 2};
    struct hf_limiter_call call = {
        .asks = &ask, .count = 1, .now_ns = SCHEDULE_START_NS};
    struct hf_limiter_answer answer;
    if (hf_limiter_take(test.limiter, &call, &answer) != HF_OK)
        test_fail(__FILE__, __LINE__, "no key");
}

static void refund_body(void *context, unsigned fiber)
{
    struct hf_limiter_ask ask = {
        .rule = test.rule, .key = "k", .key_len = 1, .cost = 1};
    struct hf_limiter_call call = {.asks = &ask, .count = 1};

    (void)context;
    if (fiber < 2) {
        test.status[fiber] = acquire(HF_FOREVER);
        test.at_ns[fiber] = schedule_now_ns();
        return;
    }
    for (int i = 0; i < 2; i++)
        if (hf_limiter_refund(test.limiter, &call, SCHEDULE_START_NS) != HF_OK)
            schedule_wrong("a refund failed");
}

static bool refund_check(void *context, FILE *explain)
{
    (void)context;
    for (unsigned i = 0; i < 2; i++) {
        fprintf(explain, "%s at %llu; ", hf_status_text(test.status[i]),
                (unsigned long long)test.at_ns[i]);
        if (test.status[i] != HF_OK)
            return false;
    }
    return true;
}

TEST(what_is_given_back_is_not_slept_over)
{
    struct schedule_case c = {.name = "refund",
                              .fibers = 3,
                              .setup = refund_setup,
                              .teardown = end,
                              .body = refund_body,
                              .check = refund_check};
    schedule_check(&c);
}

static void shut_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 2)
        hf_limiter_shutdown(test.limiter);
    else
        test.status[fiber] = acquire(HF_FOREVER);
}

static bool shut_check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "%s, %s", hf_status_text(test.status[0]),
            hf_status_text(test.status[1]));
    return test.status[0] == HF_CLOSED && test.status[1] == HF_CLOSED;
}

TEST(shut_reaches_every_waiter)
{
    struct schedule_case c = {.name = "shut",
                              .fibers = 3,
                              .setup = refund_setup,
                              .teardown = end,
                              .body = shut_body,
                              .check = shut_check};
    schedule_check(&c);
}

/* A waiter whose time is over leaves the turn to the next. */
static void deadline_body(void *context, unsigned fiber)
{
    (void)context;
    test.status[fiber] =
        acquire(fiber == 0 ? SCHEDULE_START_NS + 500000 : HF_FOREVER);
}

static bool deadline_check(void *context, FILE *explain)
{
    unsigned served = 0;

    (void)context;
    for (unsigned i = 0; i < FIBERS; i++) {
        fprintf(explain, "%s; ", hf_status_text(test.status[i]));
        served += test.status[i] == HF_OK;
    }
    return test.status[1] == HF_OK && test.status[2] == HF_OK && served >= 2;
}

TEST(who_gives_up_leaves_the_turn_to_the_next)
{
    struct schedule_case c = {.name = "deadline",
                              .fibers = FIBERS,
                              .setup = turns_setup,
                              .teardown = end,
                              .body = deadline_body,
                              .check = deadline_check};
    schedule_check(&c);
}
