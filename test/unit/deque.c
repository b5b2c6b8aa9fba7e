/* deque.c - tests of the work-stealing deque in one thread. */
#include "holdfast/deque.h"

#include <string.h>

#include "base/memory.h"
#include "support/test.h"

static struct hf_deque *open_deque(uint64_t capacity)
{
    struct hf_deque *deque = NULL;
    struct hf_deque_opts opts = {.name = "jobs", .capacity = capacity};

    CHECK_EQ(hf_deque_open(&deque, &opts), HF_OK);
    return deque;
}

static void *item_of(uint64_t number)
{
    return (void *)(uintptr_t)number;
}

static void push(struct hf_deque *deque, uint64_t number)
{
    CHECK_EQ(hf_deque_push(deque, item_of(number)), HF_OK);
}

static void check_pop(struct hf_deque *deque, uint64_t number)
{
    void *item = NULL;

    CHECK_EQ(hf_deque_pop(deque, &item), HF_OK);
    CHECK(item == item_of(number));
}

static void check_steal(struct hf_deque *deque, uint64_t number)
{
    void *item = NULL;

    CHECK_EQ(hf_deque_steal(deque, &item), HF_OK);
    CHECK(item == item_of(number));
}

static void check_empty(struct hf_deque *deque)
{
    void *item = deque;

    CHECK_EQ(hf_deque_pop(deque, &item), HF_EMPTY);
    CHECK_EQ(hf_deque_steal(deque, &item), HF_EMPTY);
    CHECK_EQ(hf_deque_pop(deque, &item), HF_EMPTY);
    CHECK(item == deque); /* as it was */
    CHECK_EQ(hf_deque_size(deque), 0);
}

TEST(the_owner_gets_the_newest_and_a_thief_the_oldest)
{
    struct hf_deque *deque = open_deque(0);

    check_empty(deque);
    for (uint64_t i = 1; i <= 6; i++)
        push(deque, i);
    CHECK_EQ(hf_deque_size(deque), 6);
    check_pop(deque, 6);
    check_steal(deque, 1);
    check_steal(deque, 2);
    check_pop(deque, 5);
    CHECK_EQ(hf_deque_size(deque), 2);
    check_steal(deque, 3);
    check_pop(deque, 4);
    check_empty(deque);
    hf_deque_close(deque);
}

TEST(the_last_item_goes_once_and_the_deque_works_on)
{
    struct hf_deque *deque = open_deque(4);

    for (uint64_t i = 1; i <= 40; i++) {
        push(deque, i);
        if (i % 2 == 0)
            check_pop(deque, i);
        else
            check_steal(deque, i);
        check_empty(deque);
    }
    hf_deque_close(deque);
}

TEST(items_survive_wrapping_and_growing)
{
    static const uint64_t capacities[] = {0, 1, 2, 3, 8, 1000};

    for (size_t c = 0; c < sizeof capacities / sizeof capacities[0]; c++) {
        struct hf_deque *deque = open_deque(capacities[c]);
        uint64_t in = 1;
        uint64_t out = 1;
        for (uint64_t round = 1; round <= 100; round++) {
            for (uint64_t i = 0; i < round; i++)
                push(deque, in++);
            for (uint64_t i = 0; i < round / 2 + 1; i++)
                check_steal(deque, out++);
            push(deque, in);
            check_pop(deque, in);
            CHECK_EQ(hf_deque_size(deque), in - out);
        }
        while (in > out)
            check_pop(deque, --in);
        check_empty(deque);
        hf_deque_close(deque);
    }
}

TEST(room_is_used_anew_before_it_grows)
{
    struct hf_deque *deque = open_deque(4);
    struct hf_deque_stats stats;

    for (uint64_t i = 1; i <= 3; i++)
        push(deque, i);
    for (uint64_t i = 4; i <= 100; i++) {
        push(deque, i);
        check_steal(deque, i - 3);
    }
    hf_deque_stats(deque, &stats);
    CHECK_EQ(stats.size, 3);
    CHECK_EQ(stats.capacity, 4);
    CHECK_EQ(stats.grown, 0);
    CHECK_EQ(stats.taken, 97);
    push(deque, 101);
    push(deque, 102);
    hf_deque_stats(deque, &stats);
    CHECK_EQ(stats.size, 5);
    CHECK_EQ(stats.capacity, 8);
    CHECK_EQ(stats.grown, 1);
    hf_deque_close(deque); /* items are inside */
}

TEST(capacity_is_rounded_up)
{
    struct hf_deque *deque = open_deque(5);
    struct hf_deque_stats stats;

    hf_deque_stats(deque, &stats);
    CHECK_EQ(stats.capacity, 8);
    hf_deque_close(deque);
    CHECK_EQ(hf_deque_open(&deque, NULL), HF_OK);
    hf_deque_stats(deque, &stats);
    CHECK_EQ(stats.capacity, HF_DEQUE_CAPACITY);
    hf_deque_close(deque);
}

TEST(bad_input_is_refused)
{
    struct hf_deque *deque = NULL;
    struct hf_deque_stats stats;
    void *item = NULL;
    static const uint64_t bad[] = {HF_DEQUE_CAPACITY_MAX + 1, UINT64_MAX};

    CHECK_EQ(hf_deque_open(NULL, NULL), HF_INVALID);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct hf_deque_opts opts = {.capacity = bad[i]};
        CHECK_EQ(hf_deque_open(&deque, &opts), HF_INVALID);
        CHECK(deque == NULL);
    }
    CHECK_EQ(hf_deque_push(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_deque_pop(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_deque_steal(NULL, &item), HF_INVALID);
    CHECK_EQ(hf_deque_size(NULL), 0);
    hf_deque_stats(NULL, &stats);
    CHECK_EQ(stats.capacity, 0);
    hf_deque_close(NULL);

    deque = open_deque(0);
    CHECK_EQ(hf_deque_push(deque, NULL), HF_INVALID);
    CHECK_EQ(hf_deque_pop(deque, NULL), HF_INVALID);
    CHECK_EQ(hf_deque_steal(deque, NULL), HF_INVALID);
    hf_deque_stats(deque, NULL);
    check_empty(deque);
    hf_deque_close(deque);
}

TEST(what_cannot_be_had_changes_nothing)
{
    struct hf_deque *deque = NULL;
    uint64_t count = 0;

    for (;; count++) {
        hf_memory_fail_after(count);
        enum hf_status status = hf_deque_open(&deque, NULL);
        hf_memory_fail_never();
        if (status == HF_OK)
            break;
        CHECK_EQ(status, HF_NOMEM);
        CHECK(deque == NULL);
    }
    CHECK_EQ(count, 2);
    hf_deque_close(deque);

    deque = open_deque(2);
    push(deque, 1);
    push(deque, 2);
    hf_memory_fail_after(0);
    CHECK_EQ(hf_deque_push(deque, item_of(3)), HF_NOMEM);
    CHECK_EQ(hf_deque_push(deque, item_of(3)), HF_NOMEM);
    CHECK_EQ(hf_deque_size(deque), 2);
    check_steal(deque, 1);
    push(deque, 3); /* there is room again */
    hf_memory_fail_never();
    push(deque, 4);
    check_steal(deque, 2);
    check_pop(deque, 4);
    check_pop(deque, 3);
    check_empty(deque);
    hf_deque_close(deque);
}

struct found {
    uint64_t depth;
    unsigned rows;
};

static void look(void *context, const struct hf_inspect_row *row)
{
    struct found *found = context;

    if (strcmp(row->kind, "deque") != 0 || strcmp(row->name, "jobs") != 0)
        return;
    found->rows++;
    found->depth = row->depth;
}

TEST(an_open_deque_is_listed)
{
    struct hf_deque *deque = open_deque(0);
    struct found found = {0};

    push(deque, 1);
    push(deque, 2);
    CHECK_EQ(hf_inspect(look, &found), HF_OK);
    CHECK_EQ(found.rows, 1);
    CHECK_EQ(found.depth, 2);
    hf_deque_close(deque);
    CHECK_EQ(hf_inspect(look, &found), HF_OK);
    CHECK_EQ(found.rows, 1);
}
