/* rate.c - takes and refunds of every kind, step by step.
 *
 * The arithmetic is tested elsewhere; here the model is the same arithmetic
 * done by one thread, and the question is whether every answer is that of some
 * order of the calls.
 */
#include "holdfast/rate.h"

#include "flow/rate_slots.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 3
#define CALLS  4
#define LIMIT  3

enum { OP_TAKE, OP_LOOK, OP_REFUND };

static const struct hf_rate_rule rules[] = {
    {.kind = HF_RATE_BUCKET, .permits = 1, .span_ns = 10, .burst = LIMIT},
    {.kind = HF_RATE_BUCKET, .permits = 3, .span_ns = 10, .burst = LIMIT},
    {.kind = HF_RATE_GCRA, .permits = 2, .span_ns = 9, .burst = LIMIT - 1},
    {.kind = HF_RATE_FIXED, .permits = LIMIT, .span_ns = 10},
    {.kind = HF_RATE_SLIDING, .permits = LIMIT, .span_ns = 16},
    {.kind = HF_RATE_SLIDING, .permits = LIMIT, .span_ns = 7},
    {.kind = HF_RATE_LOG, .permits = LIMIT, .span_ns = 10},
    {.kind = HF_RATE_LEASES, .permits = LIMIT, .span_ns = 10},
};

#define RULES (sizeof rules / sizeof rules[0])

struct state {
    struct rate_state words;
    uint64_t slots[1 + LIMIT]; /* a struct rate_slots */
};

static struct {
    struct hf_rate rate;
    uint64_t memory[32];
    struct calls *history;
    struct linear *checker;
} test;

static bool apply(void *block, const struct call *call, void *context)
{
    struct state *state = block;
    struct rate_slots *slots = (struct rate_slots *)(void *)state->slots;
    const struct hf_rate_plan *plan = &test.rate.plan;
    struct hf_rate_answer answer = {0};
    struct rate_state next = state->words;
    uint64_t wait_ns = 0;
    bool takes = call->op == OP_TAKE;

    (void)context;
    if (plan->words == 0 && call->op == OP_REFUND)
        hf_rate_slots_refund(plan, slots, call->argument, call->argument2);
    else if (plan->words == 0)
        wait_ns = takes ? hf_rate_slots_take(plan, slots, call->argument, 0,
                                             call->argument2)
                        : hf_rate_slots_wait(plan, slots, call->argument, 0,
                                             call->argument2);
    else if (call->op == OP_REFUND)
        hf_rate_state_refund(plan, &state->words, call->argument,
                             call->argument2, &state->words);
    else
        wait_ns = hf_rate_state_take(plan, &state->words, call->argument, 0,
                                     call->argument2, &next);
    if (plan->words != 0 && takes && wait_ns == 0)
        state->words = next;
    if (call->op == OP_REFUND)
        return true;
    if (plan->words == 0)
        hf_rate_slots_tell(plan, slots, call->argument2, &answer);
    else
        hf_rate_state_tell(plan, &state->words, call->argument2, &answer);
    return wait_ns == call->result &&
           answer.remaining * 1000 + answer.reset_ns == call->value;
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    if (hf_rate_memory(&rules[seed % RULES]) > sizeof test.memory ||
        hf_rate_open(&test.rate, &rules[seed % RULES], test.memory) != HF_OK)
        test_fail(__FILE__, __LINE__, "no limiter");
    if (test.history == NULL) {
        struct linear_model model = {.state_bytes = sizeof(struct state),
                                     .apply = apply};
        test.history = calls_new(FIBERS, CALLS);
        test.checker = linear_new(&model, FIBERS * CALLS);
    }
    calls_clear(test.history);
}

static void body(void *context, unsigned fiber)
{
    uint64_t taken_ns = 100;

    (void)context;
    for (int i = 0; i < CALLS; i++) {
        uint32_t op = (uint32_t)schedule_random(3);
        uint32_t count = 1 + (uint32_t)schedule_random(3);
        uint64_t now_ns = 100 + schedule_random(30);
        struct hf_rate_answer answer = {0};
        uint64_t wait_ns = 0;
        if (op == OP_REFUND)
            now_ns = taken_ns;
        struct call *call = calls_begin(test.history, fiber, op, 0, count);
        call->argument2 = now_ns;
        if (op == OP_TAKE)
            wait_ns = hf_rate_ask(&test.rate, count, now_ns, &answer);
        else if (op == OP_LOOK)
            wait_ns = hf_rate_look(&test.rate, count, now_ns, &answer);
        else
            hf_rate_refund(&test.rate, count, now_ns);
        calls_end(test.history, call, wait_ns,
                  answer.remaining * 1000 + answer.reset_ns);
        if (op == OP_TAKE && wait_ns == 0)
            taken_ns = answer.taken_ns;
    }
}

static bool check(void *context, FILE *explain)
{
    (void)context;
    fprintf(explain, "kind %u; ", test.rate.plan.kind);
    return linear_check(test.checker, test.history, explain) == LINEAR_YES;
}

TEST(takes_looks_and_refunds_are_linearizable)
{
    struct schedule_case c = {.name = "rate",
                              .fibers = FIBERS,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .schedules = 40000};
    schedule_check(&c);
}

/* ---- The plain take, whose loop is its own. ---- */

static struct {
    uint32_t granted[4];
} count;

static void count_setup(void *context, uint64_t seed)
{
    setup(context, seed);
    memset(&count, 0, sizeof count);
}

static void instant_body(void *context, unsigned fiber)
{
    (void)context;
    for (int i = 0; i < 3; i++)
        if (hf_rate_take(&test.rate, 1, 100) == 0)
            count.granted[fiber]++;
}

static bool instant_check(void *context, FILE *explain)
{
    uint64_t sum = 0;

    (void)context;
    for (unsigned i = 0; i < 4; i++)
        sum += count.granted[i];
    fprintf(explain, "kind %u: %u of %u", test.rate.plan.kind, (unsigned)sum,
            LIMIT);
    return sum == LIMIT;
}

TEST(at_one_instant_exactly_the_limit_is_granted)
{
    struct schedule_case c = {.name = "rate at one instant",
                              .fibers = 4,
                              .setup = count_setup,
                              .body = instant_body,
                              .check = instant_check,
                              .schedules = 20000};
    schedule_check(&c);
}
