/* latch.c - the count-down latch, step by step. */
#include "holdfast/latch.h"

#include "base/memory.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 4

static struct {
    struct hf_latch *latch;
    struct hf_latch in_place;
    uint32_t plain[FIBERS]; /* written before counting, read after waiting */
    struct calls *history;
    struct linear *checker;
} test;

/* ---- The memory goes as soon as the wait is over. ---- */

static void own_setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    memset(test.plain, 0, sizeof test.plain);
    test.latch = hf_alloc(sizeof *test.latch);
    if (test.latch == NULL || hf_latch_init(test.latch, 3, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no latch");
}

/* Three count down; one waits and frees. */
static void free_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber < 3) {
        test.plain[fiber] = 7;
        if (hf_latch_count_down(test.latch, 1) != HF_OK)
            schedule_wrong("count down");
        return;
    }
    uint64_t deadline_ns = schedule_random(2)
                               ? HF_FOREVER
                               : SCHEDULE_START_NS + schedule_random(20000);
    while (hf_latch_wait(test.latch, deadline_ns) != HF_OK)
        deadline_ns = HF_FOREVER;
    if (test.plain[0] + test.plain[1] + test.plain[2] != 21)
        schedule_wrong("the work is not seen");
    hf_latch_destroy(test.latch);
    hf_free(test.latch);
}

TEST(the_waiter_may_free_it)
{
    struct schedule_case c = {.name = "latch freed",
                              .fibers = 4,
                              .setup = own_setup,
                              .body = free_body};
    schedule_check(&c);
}

/* The same without an address sanitizer: the memory gets another content. */
static void scribble_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber < 3) {
        if (hf_latch_count_down(test.latch, 1) != HF_OK)
            schedule_wrong("count down");
        return;
    }
    if (hf_latch_wait(test.latch, HF_FOREVER) != HF_OK)
        schedule_wrong("wait");
    memset(test.latch, 0x5a, sizeof *test.latch);
}

static bool scribble_check(void *context, FILE *explain)
{
    const unsigned char *bytes = (const unsigned char *)test.latch;

    (void)context;
    fprintf(explain, "touched after the wait was over");
    for (size_t i = 0; i < sizeof *test.latch; i++)
        if (bytes[i] != 0x5a)
            return false;
    return true;
}

static void own_teardown(void *context)
{
    (void)context;
    hf_free(test.latch);
}

TEST(nobody_touches_it_when_a_wait_is_over)
{
    struct schedule_case c = {.name = "latch reused",
                              .fibers = 4,
                              .setup = own_setup,
                              .body = scribble_body,
                              .check = scribble_check,
                              .teardown = own_teardown};
    schedule_check(&c);
}

/* The one that shuts touches it no more, either. */
static void shut_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        hf_latch_shutdown(test.latch);
        return;
    }
    if (hf_latch_wait(test.latch, HF_FOREVER) != HF_CLOSED)
        schedule_wrong("wait");
    memset(test.latch, 0x5a, sizeof *test.latch);
}

TEST(shut_touches_it_no_more_when_a_wait_is_over)
{
    struct schedule_case c = {.name = "latch shut and reused",
                              .fibers = 2,
                              .setup = own_setup,
                              .body = shut_body,
                              .check = scribble_check,
                              .teardown = own_teardown};
    schedule_check(&c);
}

/* ---- Results. ---- */

enum { DOWN, WAIT, COUNT, SHUT };

struct model {
    uint64_t left;
    uint64_t shut;
};

static void model_init(void *state, void *context)
{
    (void)context;
    ((struct model *)state)->left = 3;
}

static bool model_apply(void *state, const struct call *call, void *context)
{
    struct model *model = state;

    (void)context;
    switch (call->op) {
    case DOWN:
        if (model->shut)
            return call->result == HF_CLOSED;
        if (call->argument > model->left)
            return call->result == HF_INVALID;
        model->left -= call->argument;
        return call->result == HF_OK;
    case WAIT:
        return call->result == (model->left == 0 ? HF_OK
                                : model->shut    ? HF_CLOSED
                                                 : HF_TIMEOUT);
    case COUNT:
        return call->value == model->left;
    default:
        model->shut |= model->left > 0;
        return true;
    }
}

static void mixed_setup(void *context, uint64_t seed)
{
    static const char *const names[] = {"down", "wait", "count", "shut"};
    static const struct linear_model model = {.state_bytes =
                                                  sizeof(struct model),
                                              .init = model_init,
                                              .apply = model_apply,
                                              .op_names = names};
    (void)context;
    (void)seed;
    if (test.history == NULL) {
        test.history = calls_new(FIBERS, 4);
        test.checker = linear_new(&model, FIBERS * 4);
    }
    calls_clear(test.history);
    test.latch = &test.in_place;
    if (hf_latch_init(test.latch, 3, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no latch");
}

static void mixed_call(unsigned fiber, uint32_t op, uint64_t argument)
{
    struct call *call = calls_begin(test.history, fiber, op, 0, argument);
    uint64_t value = 0;
    uint64_t result = HF_OK;

    if (op == DOWN)
        result = hf_latch_count_down(test.latch, (uint32_t)argument);
    else if (op == WAIT)
        result = hf_latch_wait(test.latch, argument);
    else if (op == COUNT)
        value = hf_latch_count(test.latch);
    else
        hf_latch_shutdown(test.latch);
    calls_end(test.history, call, result, value);
}

static void mixed_body(void *context, unsigned fiber)
{
    (void)context;
    for (int i = 0; i < 3; i++) {
        uint64_t draw = schedule_random(10);
        if (draw < 4)
            mixed_call(fiber, DOWN, 1 + schedule_random(2));
        else if (draw < 6)
            mixed_call(fiber, WAIT, HF_NOW);
        else if (draw < 8)
            mixed_call(fiber, WAIT, SCHEDULE_START_NS + schedule_random(20000));
        else
            mixed_call(fiber, draw == 8 ? COUNT : SHUT, 0);
    }
}

static bool mixed_check(void *context, FILE *explain)
{
    struct hf_latch_stats stats;

    (void)context;
    hf_latch_stats(test.latch, &stats);
    fprintf(explain, "%u waiting; ", stats.waiting);
    hf_latch_destroy(test.latch);
    return stats.waiting == 0 &&
           linear_check(test.checker, test.history, explain) == LINEAR_YES;
}

TEST(results_are_linearizable)
{
    struct schedule_case c = {.name = "latch mixed",
                              .fibers = FIBERS,
                              .setup = mixed_setup,
                              .body = mixed_body,
                              .check = mixed_check};
    schedule_check(&c);
}

/* Several wait for ever, until it opens or is shut: none stays behind. */
static void all_body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0)
        mixed_call(fiber, schedule_random(2) ? DOWN : SHUT, 3);
    else if (fiber == 1)
        mixed_call(fiber, schedule_random(2) ? DOWN : SHUT, 3);
    else
        mixed_call(fiber, WAIT, HF_FOREVER);
}

TEST(all_waiters_leave)
{
    struct schedule_case c = {.name = "latch all leave",
                              .fibers = FIBERS,
                              .setup = mixed_setup,
                              .body = all_body,
                              .check = mixed_check};
    schedule_check(&c);
}
