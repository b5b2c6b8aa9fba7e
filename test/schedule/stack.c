/* stack.c - push and pop in every order that a seed can give.
 *
 * Nodes of the stepped build come in batches of two and chunks of four, so
 * that a few calls grow the stack, pass nodes between fibers and use them
 * again.
 */
#include "holdfast/stack.h"

#include "support/calls.h"
#include "support/models.h"
#include "support/schedule.h"
#include "support/test.h"

#define FIBERS_MAX    4
#define INSIDE_MAX    128 /* items at a time */
#define CALLS_OUTSIDE (2 * INSIDE_MAX)
#define VALUES_MAX    (1000 * (FIBERS_MAX + 1))

enum { PUSH, POP, SIZE, REST };

struct config {
    enum hf_stack_kind kind;
    unsigned capacity; /* 0: without bound */
    unsigned before;   /* items that setup pushes */
    unsigned popped;   /* of these it pops again */
    unsigned again;    /* and so many it pushes then */
    unsigned calls;    /* of each fiber */
    /* What fiber f does at call i; NULL: as the seed says. */
    int (*script)(unsigned fiber, unsigned call);
    /* So many calls that all orders cannot be tried: each item must come out
     * once, and that is all. */
    bool once_only;
};

static struct {
    struct config config;
    struct hf_stack *stack;
    struct calls *history;
    struct linear *checker;
} rig;

static void call(unsigned thread, int what, uint64_t value)
{
    static const uint32_t ops[] = {MODEL_PUT, MODEL_TAKE_LAST, MODEL_SIZE};
    struct call *record = calls_begin(rig.history, thread, ops[what], 0, value);
    void *item = NULL;

    if (what == PUSH)
        calls_end(rig.history, record,
                  hf_stack_push(rig.stack, (void *)(uintptr_t)value), 0);
    else if (what == SIZE)
        calls_end(rig.history, record, HF_OK, hf_stack_size(rig.stack));
    else {
        enum hf_status status = hf_stack_pop(rig.stack, &item);
        calls_end(rig.history, record, status, (uint64_t)(uintptr_t)item);
    }
}

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    calls_clear(rig.history);
    struct hf_stack_opts opts = {.capacity = rig.config.capacity,
                                 .kind = rig.config.kind};
    CHECK_EQ(hf_stack_open(&rig.stack, &opts), HF_OK);
    for (unsigned i = 0; i < rig.config.before; i++)
        call(FIBERS_MAX, PUSH, i + 1);
    for (unsigned i = 0; i < rig.config.popped; i++)
        call(FIBERS_MAX, POP, 0);
    for (unsigned i = 0; i < rig.config.again; i++)
        call(FIBERS_MAX, PUSH, 100 + i);
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < rig.config.calls; i++) {
        /* The size is exact at one instant if there is a bound. */
        uint64_t draw = schedule_random(rig.config.capacity != 0 ? 9 : 8);
        int what = rig.config.script != NULL ? rig.config.script(fiber, i)
                   : draw < 4                ? PUSH
                   : draw < 8                ? POP
                                             : SIZE;
        if (what != REST)
            call(fiber, what, 1000 * (fiber + 1) + i);
    }
}

/* Each item that was pushed came out once. */
static bool came_out_once(FILE *explain)
{
    static struct call calls[(FIBERS_MAX + 1) * CALLS_OUTSIDE];
    static int inside[VALUES_MAX];
    size_t count = calls_collect(rig.history, calls);

    memset(inside, 0, sizeof inside);
    for (size_t i = 0; i < count; i++)
        if (calls[i].result == HF_OK && calls[i].op != MODEL_SIZE) {
            bool put = calls[i].op == MODEL_PUT;
            inside[put ? calls[i].argument : calls[i].value] += put ? 1 : -1;
        }
    for (unsigned i = 0; i < VALUES_MAX; i++)
        if (inside[i] != 0) {
            fprintf(explain, "item %u: %d", i, inside[i]);
            return false;
        }
    return true;
}

/* All that is left comes out, and the whole history has an order. */
static bool check(void *context, FILE *explain)
{
    struct hf_stack_stats stats;
    unsigned left = (unsigned)hf_stack_size(rig.stack);

    (void)context;
    if (left > INSIDE_MAX) {
        fprintf(explain, "a size of %u", left);
        return false;
    }
    for (unsigned i = 0; i <= left; i++)
        call(FIBERS_MAX, POP, 0);
    hf_stack_stats(rig.stack, &stats);
    if (stats.size != 0 || stats.pushes != stats.pops) {
        fprintf(explain, "%u left, %u pushed, %u popped", (unsigned)stats.size,
                (unsigned)stats.pushes, (unsigned)stats.pops);
        return false;
    }
    if (rig.config.once_only)
        return came_out_once(explain);
    return linear_check(rig.checker, rig.history, explain) == LINEAR_YES;
}

static void teardown(void *context)
{
    (void)context;
    hf_stack_close(rig.stack);
}

static void run(const char *name, unsigned fibers, unsigned schedules,
                struct config config)
{
    struct schedule_case c = {.name = name,
                              .fibers = fibers,
                              .setup = setup,
                              .body = body,
                              .check = check,
                              .teardown = teardown,
                              .schedules = schedules};
    struct model_list list = {.room = config.capacity != 0 ? config.capacity
                                                           : INSIDE_MAX,
                              .bounded = config.capacity != 0};
    struct linear_model model = model_list(&list);

    rig.config = config;
    rig.history = calls_new(FIBERS_MAX + 1, CALLS_OUTSIDE);
    rig.checker = linear_new(&model, (FIBERS_MAX + 1) * CALLS_OUTSIDE);
    schedule_check(&c);
    linear_free(rig.checker);
    calls_free(rig.history);
}

#define RUN(name, fibers, schedules, ...) \
    run(name, fibers, schedules, (struct config){__VA_ARGS__})

TEST(three_with_any_calls)
{
    RUN("three", 3, 10000, .calls = 4);
}

TEST(four_with_any_calls)
{
    RUN("four", 4, 5000, .calls = 3, .before = 2);
}

/* "Full" and "empty" come often. */
TEST(full_and_empty_are_exact)
{
    RUN("room for one", 3, 10000, .capacity = 1, .calls = 4);
    RUN("room for two", 3, 10000, .capacity = 2, .before = 2, .calls = 4);
}

/* One pops A and stops before its swap, knowing that B is next. The second
 * pops A, the third pops B and keeps its node, the second pushes again: its
 * node is A's. */
static int reuse_script(unsigned fiber, unsigned i)
{
    static const int scripts[3][3] = {
        {POP, PUSH, POP},
        {POP, PUSH, POP},
        {POP, POP, PUSH},
    };
    return scripts[fiber][i];
}

TEST(a_node_that_comes_back_deceives_nobody)
{
    RUN("reuse", 3, 20000, .script = reuse_script, .before = 4, .calls = 3);
}

/* One is about to look how deep the first node lies. The other pops all, and
 * gives the node away as the first of a batch: where the depth was, there is
 * now the number of the batch below, which is 8. */
static int full_script(unsigned fiber, unsigned i)
{
    return fiber == 1 ? POP : i == 0 ? PUSH : REST;
}

TEST(full_is_never_said_because_of_a_node_that_moved)
{
    RUN("moved", 2, 10000, .script = full_script, .capacity = 8, .before = 8,
        .popped = 8, .again = 5, .calls = 5);
}

/* The same with the list of batches, of which setup leaves some there. One is
 * about to take the first batch, knowing the second. The other two take both,
 * one of them gives back a batch that begins with the same node. */
static int batch_script(unsigned fiber, unsigned i)
{
    static const int scripts[3][9] = {
        {PUSH, PUSH, PUSH, REST, REST, REST, REST, REST, REST},
        {PUSH, POP, POP, POP, POP, POP, PUSH, PUSH, PUSH},
        {PUSH, PUSH, PUSH, REST, REST, REST, REST, REST, REST},
    };
    return scripts[fiber][i];
}

TEST(a_batch_that_comes_back_deceives_nobody)
{
    RUN("batch reuse", 3, 40000, .script = batch_script, .before = 18,
        .popped = 10, .calls = 9, .once_only = true);
}

/* Two fibers give nodes back all the time, two take them. */
static int round_script(unsigned fiber, unsigned i)
{
    return fiber < 2 ? (i % 12 < 6 ? POP : PUSH) : (i % 12 < 6 ? PUSH : POP);
}

TEST(batches_go_round)
{
    RUN("batches", 4, 4000, .script = round_script, .before = 20, .calls = 24,
        .once_only = true);
}

/* Pushes only: chunk after chunk is made, by several at once. */
static int grow_script(unsigned fiber, unsigned i)
{
    (void)fiber;
    return i < 10 ? PUSH : POP;
}

TEST(grows_while_others_work)
{
    RUN("growth", 3, 3000, .script = grow_script, .calls = 12,
        .once_only = true);
}

TEST(the_locked_kind_does_the_same)
{
    RUN("locked", 3, 5000, .kind = HF_STACK_LOCKED, .capacity = 2, .calls = 4);
}
