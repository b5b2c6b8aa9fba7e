/* stack.c - the stack, one thread: both kinds answer alike. */
#include "holdfast/stack.h"

#include <stdlib.h>

#include "base/memory.h"
#include "support/test.h"

static struct hf_stack *stack;

static void *item(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static void start(uint64_t capacity, enum hf_stack_kind kind)
{
    struct hf_stack_opts opts = {
        .name = "tested", .capacity = capacity, .kind = kind};
    CHECK_EQ(hf_stack_open(&stack, &opts), HF_OK);
}

static uint64_t pop(void)
{
    void *popped = NULL;

    CHECK_EQ(hf_stack_pop(stack, &popped), HF_OK);
    return (uint64_t)(uintptr_t)popped;
}

#define FOR_EACH_KIND(kind)                            \
    for (enum hf_stack_kind kind = HF_STACK_LOCK_FREE; \
         kind <= HF_STACK_LOCKED; kind++)

TEST(gives_back_the_last_first)
{
    FOR_EACH_KIND(kind)
    {
        void *none = NULL;

        start(0, kind);
        CHECK_EQ(hf_stack_pop(stack, &none), HF_EMPTY);
        CHECK(none == NULL);
        for (uint64_t i = 1; i <= 3; i++)
            CHECK_EQ(hf_stack_push(stack, item(i)), HF_OK);
        CHECK_EQ(pop(), 3);
        CHECK_EQ(hf_stack_push(stack, item(4)), HF_OK);
        CHECK_EQ(pop(), 4);
        CHECK_EQ(pop(), 2);
        CHECK_EQ(pop(), 1);
        CHECK_EQ(hf_stack_pop(stack, &none), HF_EMPTY);
        hf_stack_close(stack);
    }
}

/* Over many chunks, down to nothing and up again: the nodes are used again. */
TEST(grows_and_uses_its_nodes_again)
{
    FOR_EACH_KIND(kind)
    {
        struct hf_stack_stats stats;

        start(0, kind);
        for (int round = 0; round < 3; round++) {
            for (uint64_t i = 1; i <= 5000; i++) {
                CHECK_EQ(hf_stack_push(stack, item(i)), HF_OK);
                CHECK_EQ(hf_stack_size(stack), i);
            }
            for (uint64_t i = 5000; i >= 1; i--)
                CHECK_EQ(pop(), i);
            hf_stack_stats(stack, &stats);
            CHECK(stats.nodes >= 5000);
            CHECK(stats.nodes <= 8192);
        }
        if (kind == HF_STACK_LOCK_FREE)
            CHECK(stats.nodes <= 5000 + 48);
        hf_stack_close(stack);
    }
}

TEST(is_full_at_its_capacity_exactly)
{
    static const uint64_t capacities[] = {1, 2, 3, 16, 33, 100};

    FOR_EACH_KIND(kind)
    {
        for (size_t c = 0; c < sizeof capacities / sizeof *capacities; c++) {
            uint64_t capacity = capacities[c];

            start(capacity, kind);
            for (int round = 0; round < 3; round++) {
                for (uint64_t i = 1; i <= capacity; i++)
                    CHECK_EQ(hf_stack_push(stack, item(i)), HF_OK);
                CHECK_EQ(hf_stack_push(stack, item(9)), HF_FULL);
                CHECK_EQ(hf_stack_size(stack), capacity);
                CHECK_EQ(pop(), capacity);
                CHECK_EQ(hf_stack_push(stack, item(capacity)), HF_OK);
                CHECK_EQ(hf_stack_push(stack, item(9)), HF_FULL);
                for (uint64_t i = capacity; i >= 1; i--)
                    CHECK_EQ(pop(), i);
            }
            hf_stack_close(stack);
        }
    }
}

TEST(behaves_as_a_plain_array_does)
{
    static uint64_t model[200];
    uint64_t count;

    FOR_EACH_KIND(kind)
    {
        uint64_t random = test_seed() | 1;

        count = 0;
        start(200, kind);
        for (uint64_t i = 1; i <= 20000; i++) {
            random = random * UINT64_C(6364136223846793005) + 1;
            bool pushes = (random >> 33) % 100 < (i / 2000 % 2 ? 40 : 60);
            void *popped = NULL;

            if (pushes) {
                CHECK_EQ(hf_stack_push(stack, item(i)),
                         count == 200 ? HF_FULL : HF_OK);
                if (count < 200)
                    model[count++] = i;
            } else {
                CHECK_EQ(hf_stack_pop(stack, &popped),
                         count == 0 ? HF_EMPTY : HF_OK);
                if (count > 0)
                    CHECK(popped == item(model[--count]));
            }
            CHECK_EQ(hf_stack_size(stack), count);
        }
        hf_stack_close(stack);
    }
}

TEST(statistics_count)
{
    FOR_EACH_KIND(kind)
    {
        struct hf_stack_stats stats;

        start(2, kind);
        for (uint64_t i = 1; i <= 3; i++)
            hf_stack_push(stack, item(i));
        pop();
        hf_stack_stats(stack, &stats);
        CHECK_EQ(stats.size, 1);
        CHECK_EQ(stats.capacity, 2);
        CHECK_EQ(stats.pushes, 2);
        CHECK_EQ(stats.pops, 1);
        CHECK_EQ(stats.refused, 1);
        CHECK(stats.nodes >= 2);
        hf_stack_stats(stack, NULL);
        hf_stack_stats(NULL, &stats);
        CHECK_EQ(stats.capacity, 0);
        CHECK_EQ(hf_stack_size(NULL), 0);
        hf_stack_close(stack);
    }
}

TEST(bad_input_is_refused_and_changes_nothing)
{
    struct hf_stack_opts opts = {.capacity = HF_STACK_CAPACITY_MAX + 1};
    struct hf_stack *untouched = NULL;
    void *popped;

    CHECK_EQ(hf_stack_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_stack_open(&untouched, &opts), HF_INVALID);
    opts.capacity = UINT64_MAX;
    CHECK_EQ(hf_stack_open(&untouched, &opts), HF_INVALID);
    opts.capacity = 1;
    opts.kind = (enum hf_stack_kind)2;
    CHECK_EQ(hf_stack_open(&untouched, &opts), HF_INVALID);
    CHECK(untouched == NULL);
    FOR_EACH_KIND(kind)
    {
        start(2, kind);
        CHECK_EQ(hf_stack_push(stack, NULL), HF_INVALID);
        CHECK_EQ(hf_stack_push(NULL, item(1)), HF_INVALID);
        CHECK_EQ(hf_stack_pop(stack, NULL), HF_INVALID);
        CHECK_EQ(hf_stack_pop(NULL, &popped), HF_INVALID);
        CHECK_EQ(hf_stack_size(stack), 0);
        hf_stack_close(stack);
    }
    hf_stack_close(NULL);
}

/* Every allocation fails once: the push changes nothing and works after. */
TEST(without_memory_nothing_changes)
{
    FOR_EACH_KIND(kind)
    {
        struct hf_stack_opts opts = {.kind = kind};
        enum hf_status status = HF_NOMEM;
        uint64_t refusals = 0;

        for (uint64_t allowed = 0; status != HF_OK; allowed++) {
            stack = NULL;
            hf_memory_fail_after(allowed);
            status = hf_stack_open(&stack, &opts);
            hf_memory_fail_never();
            CHECK(status == HF_OK || (status == HF_NOMEM && stack == NULL));
        }
        for (uint64_t i = 1; i <= 1000; i++) {
            hf_memory_fail_after(0);
            status = hf_stack_push(stack, item(i));
            hf_memory_fail_never();
            if (status == HF_OK)
                continue;
            refusals++;
            CHECK_EQ(status, HF_NOMEM);
            CHECK_EQ(hf_stack_size(stack), i - 1);
            CHECK_EQ(hf_stack_push(stack, item(i)), HF_OK);
        }
        CHECK(refusals >= 4); /* as often as it grew */
        CHECK(refusals <= 6);
        hf_memory_fail_after(0); /* pop needs no memory */
        for (uint64_t i = 1000; i >= 1; i--)
            if (pop() != i)
                break;
        hf_memory_fail_never();
        CHECK_EQ(hf_stack_size(stack), 0);
        hf_stack_close(stack);
    }
}

static struct hf_inspect_row found;

static void find(void *context, const struct hf_inspect_row *row)
{
    (void)context;
    if (strcmp(row->kind, "stack") == 0 && strcmp(row->name, "tested") == 0)
        found = *row;
}

TEST(is_listed_while_it_is_open)
{
    FOR_EACH_KIND(kind)
    {
        memset(&found, 0, sizeof found);
        start(2, kind);
        for (uint64_t i = 1; i <= 3; i++)
            hf_stack_push(stack, item(i));
        CHECK_EQ(hf_inspect(find, NULL), HF_OK);
        CHECK_EQ(found.depth, 2);
        CHECK_EQ(found.capacity, 2);
        CHECK_EQ(found.rejected, 1);
        hf_stack_close(stack);
        memset(&found, 0, sizeof found);
        CHECK_EQ(hf_inspect(find, NULL), HF_OK);
        CHECK_EQ(found.kind[0], 0);
    }
    start(0, HF_STACK_LOCK_FREE); /* without bound */
    CHECK_EQ(hf_inspect(find, NULL), HF_OK);
    CHECK_EQ(found.capacity, HF_INSPECT_NONE);
    hf_stack_close(stack);
}
