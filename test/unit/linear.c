/* linear.c - tests of the history checker that other tests rely on. */
#include "support/linear.h"

#include "base/random.h"
#include "holdfast/status.h"
#include "support/models.h"
#include "support/test.h"

TEST_ONE_THREAD;

#define CALLS_MAX 8u

/* A call by thread `from % 100`, for tests in which that does not matter. */
static struct call call_of(uint64_t from, uint64_t until, uint32_t op,
                           uint64_t argument, uint64_t result, uint64_t value)
{
    return (struct call){
        .thread = (uint32_t)(from % 100),
        .op = op,
        .argument = argument,
        .result = result,
        .value = value,
        .called_at = from,
        .returned_at = until,
    };
}

static struct call put(uint64_t from, uint64_t until, uint64_t value)
{
    return call_of(from, until, MODEL_PUT, value, HF_OK, 0);
}

static struct call take(uint64_t from, uint64_t until, uint64_t value)
{
    return call_of(from, until, MODEL_TAKE_FIRST, 0, HF_OK, value);
}

static struct call empty(uint64_t from, uint64_t until)
{
    return call_of(from, until, MODEL_TAKE_FIRST, 0, HF_EMPTY, 0);
}

static struct call full(uint64_t from, uint64_t until, uint64_t value)
{
    return call_of(from, until, MODEL_PUT, value, HF_FULL, 0);
}

static enum linear_result check_with(struct linear_model model,
                                     const struct call *calls, size_t count,
                                     FILE *explain)
{
    struct linear *checker = linear_new(&model, count);
    enum linear_result result =
        linear_check_calls(checker, calls, count, explain);

    linear_free(checker);
    return result;
}

static enum linear_result check_list(const struct call *calls, size_t count)
{
    static const struct model_list two = {.room = 2, .bounded = true};

    return check_with(model_list(&two), calls, count, NULL);
}

static enum linear_result check_map(const struct call *calls, size_t count)
{
    return check_with(model_map(), calls, count, NULL);
}

#define CALLS(...)         ((const struct call[]){__VA_ARGS__})
#define COUNT(...)         (sizeof CALLS(__VA_ARGS__) / sizeof(struct call))
#define YES(check, ...)    CHECK_EQ(RESULT(check, __VA_ARGS__), LINEAR_YES)
#define NO(check, ...)     CHECK_EQ(RESULT(check, __VA_ARGS__), LINEAR_NO)
#define RESULT(check, ...) check(CALLS(__VA_ARGS__), COUNT(__VA_ARGS__))
#define NEVER              CALLS_PENDING

TEST(an_empty_history_is_fine)
{
    CHECK_EQ(check_list(NULL, 0), LINEAR_YES);
    CHECK_EQ(check_map(NULL, 0), LINEAR_YES);
}

TEST(a_queue_gives_out_in_the_order_of_puts)
{
    YES(check_list, put(1, 2, 7), put(3, 4, 8), take(5, 6, 7), take(7, 8, 8));
    NO(check_list, put(1, 2, 7), put(3, 4, 8), take(5, 6, 8), take(7, 8, 7));
    NO(check_list, put(1, 2, 7), put(3, 4, 8), take(5, 6, 8));
}

TEST(puts_that_overlap_may_come_in_either_order)
{
    YES(check_list, put(1, 4, 7), put(2, 3, 8), take(5, 6, 8), take(7, 8, 7));
    YES(check_list, put(1, 4, 7), put(2, 3, 8), take(5, 6, 7), take(7, 8, 8));
    /* Both takes overlap too: anything goes. */
    YES(check_list, put(1, 2, 7), put(3, 4, 8), take(5, 8, 8), take(6, 7, 7));
    /* 7 overlaps 8 and 9, but 8 ended before 9 began. */
    YES(check_list, put(1, 6, 7), put(2, 3, 8), take(4, 5, 8), take(7, 8, 7));
    NO(check_list, put(1, 6, 7), put(2, 3, 8), put(4, 5, 9), take(7, 8, 9));
}

TEST(empty_must_be_true_at_some_instant)
{
    YES(check_list, empty(1, 2), put(3, 4, 7));
    YES(check_list, put(1, 4, 7), empty(2, 3), take(5, 6, 7));
    YES(check_list, put(1, 2, 7), take(3, 6, 7), empty(4, 5));
    NO(check_list, put(1, 2, 7), empty(3, 4));
    /* 8 is in before 7 is out: at no instant was it empty. */
    NO(check_list, put(1, 2, 7), put(3, 4, 8), take(5, 8, 7), empty(6, 7));
    YES(check_list, put(1, 2, 7), take(3, 6, 7), empty(4, 9), put(7, 8, 8));
}

TEST(full_must_be_true_at_some_instant)
{
    YES(check_list, put(1, 2, 7), put(3, 4, 8), full(5, 6, 9));
    YES(check_list, put(1, 2, 7), put(3, 6, 8), full(4, 5, 9));
    NO(check_list, put(1, 2, 7), full(3, 4, 9), put(5, 6, 8));
    NO(check_list, put(1, 2, 7), put(3, 4, 8), take(5, 6, 7), full(7, 8, 9));
    /* And a third put cannot succeed. */
    NO(check_list, put(1, 2, 7), put(3, 4, 8), put(5, 6, 9));
}

TEST(nothing_comes_out_twice_or_out_of_nothing)
{
    NO(check_list, put(1, 2, 7), take(3, 4, 7), take(5, 6, 7));
    NO(check_list, put(1, 2, 7), take(3, 6, 7), take(4, 5, 7));
    NO(check_list, put(1, 2, 7), take(3, 4, 8));
    NO(check_list, take(1, 2, 7), put(3, 4, 7));
    YES(check_list, take(1, 4, 7), put(2, 3, 7));
    /* Two items of one value may. */
    YES(check_list, put(1, 2, 7), put(3, 4, 7), take(5, 6, 7), take(7, 8, 7));
}

TEST(a_stack_gives_out_the_last)
{
    struct call last = call_of(5, 6, MODEL_TAKE_LAST, 0, HF_OK, 8);
    struct call first = call_of(5, 6, MODEL_TAKE_LAST, 0, HF_OK, 7);
    struct call size = call_of(7, 8, MODEL_SIZE, 0, HF_OK, 1);

    YES(check_list, put(1, 2, 7), put(3, 4, 8), last, size);
    NO(check_list, put(1, 2, 7), put(3, 4, 8), first);
    YES(check_list, put(1, 4, 7), put(2, 3, 8), first);
    size.value = 2;
    NO(check_list, put(1, 2, 7), put(3, 4, 8), last, size);
}

TEST(a_pending_call_may_have_happened_or_not)
{
    YES(check_list, put(1, NEVER, 7), take(2, 3, 7));
    YES(check_list, put(1, NEVER, 7), empty(2, 3));
    YES(check_list, put(1, NEVER, 7), empty(2, 3), take(4, 5, 7), empty(6, 7));
    NO(check_list, put(1, NEVER, 7), take(2, 3, 7), take(4, 5, 7));
    NO(check_list, take(1, 2, 7), put(3, NEVER, 7));
    YES(check_list, put(1, 2, 7), take(3, NEVER, 0), empty(4, 5));
    YES(check_list, put(1, 2, 7), take(3, NEVER, 0), take(4, 5, 7));
    NO(check_list, put(1, 2, 7), put(3, 4, 8), take(5, NEVER, 0), empty(6, 7));
    NO(check_list, put(1, 2, 7), empty(3, 4), take(5, NEVER, 0));
}

TEST(a_register_forgets_no_write)
{
    struct call set1 = call_of(1, 2, MODEL_SET, 1, HF_OK, 0);
    struct call set2 = call_of(3, 4, MODEL_SET, 2, HF_OK, 0);
    struct call slow2 = call_of(3, 8, MODEL_SET, 2, HF_OK, 0);
    struct call old = call_of(5, 6, MODEL_GET, 0, HF_OK, 1);
    struct call new = call_of(5, 6, MODEL_GET, 0, HF_OK, 2);
    struct call old_later = call_of(7, 9, MODEL_GET, 0, HF_OK, 1);

    YES(check_map, set1, set2, new);
    NO(check_map, set1, set2, old); /* stale */
    YES(check_map, set1, slow2, old);
    YES(check_map, set1, slow2, new);
    NO(check_map, set1, slow2, new, old_later); /* new, then old again */
    NO(check_map, set1, call_of(3, 4, MODEL_GET, 0, HF_NOTFOUND, 0));
}

TEST(an_update_is_not_lost)
{
    struct call first = call_of(1, 4, MODEL_ADD, 1, HF_OK, 1);
    struct call second = call_of(2, 3, MODEL_ADD, 1, HF_OK, 2);
    struct call lost = call_of(2, 3, MODEL_ADD, 1, HF_OK, 1);

    YES(check_map, first, second, call_of(5, 6, MODEL_GET, 0, HF_OK, 2));
    NO(check_map, first, second, call_of(5, 6, MODEL_GET, 0, HF_OK, 1));
    NO(check_map, first, lost);
}

TEST(one_of_two_wins_a_place)
{
    struct call one = call_of(1, 4, MODEL_SET_IF_ABSENT, 1, HF_OK, 0);
    struct call both = call_of(2, 3, MODEL_SET_IF_ABSENT, 2, HF_OK, 0);
    struct call lost = call_of(2, 3, MODEL_SET_IF_ABSENT, 2, HF_EXISTS, 1);
    struct call remove = call_of(5, 8, MODEL_REMOVE, 0, HF_OK, 1);
    struct call twice = call_of(6, 7, MODEL_REMOVE, 0, HF_OK, 1);
    struct call replace = call_of(6, 7, MODEL_REPLACE_IF_EQUAL, 1, HF_OK, 0);

    replace.argument2 = 9;
    YES(check_map, one, lost);
    NO(check_map, one, both);
    YES(check_map, one, lost, remove);
    NO(check_map, one, lost, remove, twice);
    NO(check_map, one, lost, remove, replace); /* it removed 1, not 9 */
    remove.value = 9;
    YES(check_map, one, lost, remove, replace);
}

TEST(each_key_is_checked_on_its_own)
{
    struct call here = call_of(1, 2, MODEL_SET, 1, HF_OK, 0);
    struct call there = call_of(3, 4, MODEL_GET, 0, HF_NOTFOUND, 0);

    NO(check_map, here, there);
    there.key = 5;
    YES(check_map, here, there);
    NO(check_map, here, there, call_of(5, 6, MODEL_REMOVE, 0, HF_NOTFOUND, 0));
}

TEST(a_counter_counts)
{
    static const uint64_t start = 3;
    struct linear_model model = model_counter(&start);
    struct call calls[] = {
        call_of(1, 6, MODEL_COUNT_TAKE, 2, HF_OK, 3),
        call_of(2, 3, MODEL_COUNT_TAKE, 2, HF_EMPTY, 1),
        call_of(4, 5, MODEL_COUNT_ADD, 1, HF_OK, MODEL_ANY),
        call_of(7, 8, MODEL_COUNT_RESET, 0, HF_OK, 2),
        call_of(9, 10, MODEL_COUNT_READ, 0, HF_OK, 0),
    };

    CHECK_EQ(check_with(model, calls, 5, NULL), LINEAR_YES);
    calls[1].result = HF_OK;
    CHECK_EQ(check_with(model, calls, 5, NULL), LINEAR_NO);
    calls[1].result = HF_EMPTY;
    calls[4].value = 2;
    CHECK_EQ(check_with(model, calls, 5, NULL), LINEAR_NO);
}

TEST(what_was_not_checked_does_not_pass)
{
    static const struct model_list shape = {.room = 40, .bounded = true};
    struct linear_model model = model_list(&shape);
    struct linear *checker = linear_new(&model, 40);
    struct calls *history = calls_new(1, 2);
    struct call calls[40];

    for (int i = 0; i < 3; i++) {
        struct call *call = calls_begin(history, 0, MODEL_PUT, 0, 1);
        CHECK(i < 2 ? call != NULL : call == NULL);
        calls_end(history, call, HF_OK, 0);
    }
    CHECK_EQ(calls_count(history), 2);
    CHECK_EQ(linear_check(checker, history, NULL), LINEAR_UNKNOWN);
    calls_clear(history);
    CHECK_EQ(linear_check(checker, history, NULL), LINEAR_YES);

    for (uint64_t i = 0; i < 39; i++) /* one value: no hint can help */
        calls[i] = put(1 + i, 100 + i, i % 20);
    calls[39] = call_of(200, 201, MODEL_TAKE_LAST, 0, HF_OK, 99);
    CHECK_EQ(linear_check_calls(checker, calls, 41, NULL), LINEAR_UNKNOWN);
    linear_limit(checker, 10000);
    CHECK_EQ(linear_check_calls(checker, calls, 40, NULL), LINEAR_UNKNOWN);
    /* Afterwards the checker is as good as new. */
    CHECK_EQ(linear_check_calls(checker, calls, 39, NULL), LINEAR_YES);
    linear_free(checker);

    model.apply_pending = NULL;
    calls[0].returned_at = CALLS_PENDING;
    CHECK_EQ(check_with(model, calls, 1, NULL), LINEAR_UNKNOWN);
    calls_free(history);
}

TEST(a_failure_is_explained)
{
    static const struct model_list two = {.room = 2, .bounded = true};
    const struct call calls[] = {put(1, 2, 7), put(3, 4, 8), take(5, 6, 8),
                                 take(7, 8, 7)};
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    CHECK_EQ(check_with(model_list(&two), calls, 4, out), LINEAR_NO);
    fclose(out);
    CHECK_TEXT(
        text, len,
        "not linearizable: the longest order found explains 2 of 4 calls:\n"
        "       1-2      thread 1: put key 0 (7) -> ok, value 0\n"
        "       3-4      thread 3: put key 0 (8) -> ok, value 0\n"
        "none of these can come next:\n"
        "       5-6      thread 5: take first key 0 (0) -> ok, value 8\n");
    free(text);
}

/* Random histories of a simulated object, with the truth found by trying every
 * order: slow and too simple to be wrong. */

struct world { /* the object, written without the models */
    bool stack;
    bool deque;
    bool bounded;
    uint64_t distinct; /* 0: values come from a few */
    uint64_t items[CALLS_MAX];
    unsigned count;
    bool present[2];
    uint64_t values[2];
};

static void world_list(struct world *world, struct call *call)
{
    call->result = HF_OK;
    if (call->op == MODEL_SIZE) {
        call->value = world->count;
    } else if (call->op == MODEL_PUT) {
        if (world->bounded && world->count == 2)
            call->result = HF_FULL;
        else
            world->items[world->count++] = call->argument;
    } else if (world->count == 0) {
        call->result = HF_EMPTY;
    } else if (call->op == MODEL_TAKE_LAST) {
        call->value = world->items[--world->count];
    } else {
        call->value = world->items[0];
        world->count--;
        memmove(world->items, world->items + 1,
                world->count * sizeof world->items[0]);
    }
}

static void world_compare(struct world *world, struct call *call)
{
    uint64_t *value = &world->values[call->key];
    bool *present = &world->present[call->key];

    if (!*present) {
        call->result = HF_NOTFOUND;
    } else if (*value != call->argument) {
        call->result = HF_EXISTS;
        call->value = *value;
    } else if (call->op == MODEL_REPLACE_IF_EQUAL) {
        *value = call->argument2;
    } else {
        *present = false;
    }
}

static void world_map(struct world *world, struct call *call)
{
    uint64_t *value = &world->values[call->key];
    bool *present = &world->present[call->key];
    bool was = *present;

    call->result = HF_OK;
    if (call->op == MODEL_REPLACE_IF_EQUAL ||
        call->op == MODEL_REMOVE_IF_EQUAL) {
        world_compare(world, call);
        return;
    }
    call->value = was ? *value : 0;
    if (call->op == MODEL_SET_IF_ABSENT)
        call->result = was ? HF_EXISTS : HF_OK;
    else if (!was && call->op != MODEL_SET && call->op != MODEL_ADD)
        call->result = HF_NOTFOUND;
    if (call->op == MODEL_SET || call->op == MODEL_SWAP ||
        (call->op == MODEL_SET_IF_ABSENT && !was) ||
        (call->op == MODEL_SET_IF_PRESENT && was)) {
        *present = true;
        *value = call->argument;
    } else if (call->op == MODEL_ADD) {
        *value = (was ? *value : 0) + call->argument;
        *present = true;
        call->value = *value;
    } else if (call->op == MODEL_REMOVE) {
        *present = false;
    }
}

static struct call random_call(struct hf_random *random, struct world *world,
                               bool map)
{
    struct call call = {.returned_at = CALLS_PENDING};

    call.argument = 1 + hf_random_below(random, 3);
    call.argument2 = 1 + hf_random_below(random, 3);
    if (map) {
        call.op = (uint32_t)hf_random_below(random, MODEL_ADD + 1);
        call.key = hf_random_below(random, 2);
        return call;
    }
    if (world->distinct > 0)
        call.argument = world->distinct++;
    call.op = MODEL_PUT;
    if (hf_random_below(random, 2) == 0)
        call.op = world->stack ? MODEL_TAKE_LAST : MODEL_TAKE_FIRST;
    if (world->deque && hf_random_below(random, 4) == 0)
        call.op = MODEL_TAKE_FIRST;
    if (hf_random_below(random, 10) == 0)
        call.op = MODEL_SIZE;
    return call;
}

/* Calls of 3 threads. Each begins, happens at one instant and ends; at every
 * step one of the threads goes on. Some calls never end. */
static size_t random_history(struct hf_random *random, struct world *world,
                             bool map, struct call *calls, size_t count)
{
    struct call *running[3] = {NULL};
    bool happened[3] = {false};
    uint64_t ticket = 0;
    size_t begun = 0;

    for (unsigned steps = 0; steps < 100; steps++) {
        unsigned thread = (unsigned)hf_random_below(random, 3);
        struct call *call = running[thread];

        if (call == NULL) {
            if (begun == count)
                continue;
            calls[begun] = random_call(random, world, map);
            calls[begun].thread = thread;
            calls[begun].called_at = ++ticket;
            running[thread] = &calls[begun++];
            happened[thread] = false;
        } else if (!happened[thread]) {
            if (map)
                world_map(world, call);
            else
                world_list(world, call);
            happened[thread] = true;
        } else if (hf_random_below(random, 20) > 0) {
            call->returned_at = ++ticket;
            running[thread] = NULL;
        }
    }
    return begun;
}

static void spoil(struct hf_random *random, struct call *calls, size_t count)
{
    struct call *one = &calls[hf_random_below(random, count)];
    struct call *other = &calls[hf_random_below(random, count)];
    struct call kept = *one;

    if (hf_random_below(random, 4) == 0) {
        one->returned_at = CALLS_PENDING;
        return;
    }
    if (hf_random_below(random, 4) == 0) {
        one->value = 1 + hf_random_below(random, 3);
        return;
    }
    one->result = other->result;
    one->value = other->value;
    other->result = kept.result;
    other->value = kept.value;
}

struct brute {
    struct linear_model model;
    const struct call *calls;
    size_t count;
};

static bool may_come_next(const struct brute *brute, size_t next, unsigned done)
{
    for (size_t i = 0; i < brute->count; i++) {
        if ((done >> i & 1) == 0 &&
            brute->calls[i].returned_at < brute->calls[next].called_at)
            return false;
    }
    return (done >> next & 1) == 0;
}

static bool all_placed(const struct brute *brute, unsigned done)
{
    for (size_t i = 0; i < brute->count; i++) {
        if ((done >> i & 1) == 0 &&
            brute->calls[i].returned_at != CALLS_PENDING)
            return false;
    }
    return true;
}

static bool try_orders(const struct brute *brute, unsigned done,
                       const uint64_t *state)
{
    const struct linear_model *model = &brute->model;

    if (all_placed(brute, done))
        return true;
    for (size_t i = 0; i < brute->count; i++) {
        const struct call *call = &brute->calls[i];
        uint64_t after[32];

        if (!may_come_next(brute, i, done))
            continue;
        memcpy(after, state, sizeof after);
        if (call->returned_at == CALLS_PENDING
                ? model->apply_pending(after, call, model->context)
                : model->apply(after, call, model->context)) {
            if (try_orders(brute, done | 1u << i, after))
                return true;
        }
    }
    return false;
}

/* The truth about the calls of one key, or of all. */
static bool brute_check(struct linear_model model, const struct call *calls,
                        size_t count, bool one_key, uint64_t key)
{
    struct call chosen[CALLS_MAX];
    struct brute brute = {.model = model, .calls = chosen};
    uint64_t state[32] = {0};

    for (size_t i = 0; i < count; i++) {
        if (!one_key || calls[i].key == key)
            chosen[brute.count++] = calls[i];
    }
    return try_orders(&brute, 0, state);
}

static void compare(struct linear_model model, struct world start, bool map,
                    unsigned rounds)
{
    struct linear *checker = linear_new(&model, CALLS_MAX);
    struct call calls[CALLS_MAX];
    struct hf_random random;
    unsigned refused = 0;
    FILE *nowhere = fopen("/dev/null", "w");

    hf_random_init(&random, test_seed() + map + 2 * start.bounded);
    for (unsigned i = 0; i < rounds; i++) {
        struct world world = start;
        size_t count = random_history(&random, &world, map, calls,
                                      1 + hf_random_below(&random, 7));
        bool good;

        CHECK_EQ(linear_check_calls(checker, calls, count, stdout), LINEAR_YES);
        spoil(&random, calls, count);
        good = brute_check(model, calls, count, map, 0) &&
               (!map || brute_check(model, calls, count, true, 1));
        refused += !good;
        CHECK_EQ(linear_check_calls(checker, calls, count, nowhere),
                 good ? LINEAR_YES : LINEAR_NO);
    }
    CHECK(refused > rounds / 10 && refused < rounds * 9 / 10);
    fclose(nowhere);
    linear_free(checker);
}

TEST(agrees_with_trying_every_order_of_a_list)
{
    static const struct model_list two = {.room = 2, .bounded = true};
    static const struct model_list any = {.room = CALLS_MAX};

    for (unsigned kind = 0; kind < 16; kind++) {
        struct world world = {
            .stack = kind & 1,
            .deque = kind & 2,
            .bounded = kind & 4,
            .distinct = kind & 8,
        };
        compare(model_list(world.bounded ? &two : &any), world, false, 4000);
    }
}

TEST(agrees_with_trying_every_order_of_a_map)
{
    compare(model_map(), (struct world){0}, true, 40000);
}
