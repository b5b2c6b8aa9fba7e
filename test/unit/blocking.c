/* Tests of hf_blocking by one thread: every kind's order and bounds, bad input,
 * missing memory, shutting, what is left, figures. */
#include "holdfast/blocking.h"

#include <string.h>

#include "base/memory.h"
#include "support/clock.h"
#include "support/test.h"

static void *number(uintptr_t n)
{
    return (void *)n;
}

static struct hf_blocking *open_kind(enum hf_blocking_kind kind,
                                     uint64_t capacity)
{
    struct hf_blocking *queue = NULL;
    struct hf_blocking_opts opts = {.kind = kind, .capacity = capacity};

    CHECK_EQ(hf_blocking_open(&queue, &opts), HF_OK);
    return queue;
}

/* The next item as a number; fails if there is none. */
static uintptr_t take_now(struct hf_blocking *queue)
{
    void *item = NULL;

    CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_OK);
    return (uintptr_t)item;
}

static enum hf_status put_now(struct hf_blocking *queue, uintptr_t n)
{
    return hf_blocking_put(queue, number(n), HF_NOW);
}

TEST(bad_options_are_refused)
{
    struct hf_blocking *queue = number(7);
    const struct hf_blocking_opts bad[] = {
        {.kind = HF_BLOCKING_KINDS},
        {.kind = (enum hf_blocking_kind) - 1},
        {.capacity = (uint64_t)HF_BLOCKING_CAPACITY_MAX + 1},
        {.capacity = UINT64_MAX},
        {.kind = HF_BLOCKING_LINKED, .capacity = UINT64_MAX},
        {.kind = HF_BLOCKING_SYNCHRONOUS, .capacity = 1},
        {.kind = HF_BLOCKING_TRANSFER, .capacity = 1},
    };

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(hf_blocking_open(&queue, &bad[i]), HF_INVALID);
    CHECK(queue == number(7));
    CHECK_EQ(hf_blocking_open(NULL, NULL), HF_INVALID);
}

TEST(bad_arguments_are_refused_and_change_nothing)
{
    struct hf_blocking *queue = open_kind(HF_BLOCKING_ARRAY, 4);
    struct hf_blocking *priority = open_kind(HF_BLOCKING_PRIORITY, 4);
    void *item;

    CHECK_EQ(hf_blocking_put(NULL, NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_take(NULL, &item, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_take(queue, NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_put_ranked(queue, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_put_at(queue, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_transfer(queue, NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_put_at(priority, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_blocking_drain(NULL, &item, 1), 0);
    CHECK_EQ(hf_blocking_drain(queue, NULL, 1), 0);
    CHECK_EQ(hf_blocking_size(NULL), 0);
    CHECK_EQ(hf_blocking_size(queue), 0);
    CHECK_EQ(hf_blocking_size(priority), 0);
    hf_blocking_shutdown(NULL);
    hf_blocking_close(NULL);
    hf_blocking_close(queue);
    hf_blocking_close(priority);
}

TEST(no_options_are_an_array_of_the_default_size)
{
    struct hf_blocking *queue;

    CHECK_EQ(hf_blocking_open(&queue, NULL), HF_OK);
    for (unsigned i = 0; i < HF_BLOCKING_CAPACITY_DEFAULT; i++)
        CHECK_EQ(put_now(queue, i), HF_OK);
    CHECK_EQ(put_now(queue, 0), HF_TIMEOUT);
    hf_blocking_close(queue);
}

TEST(bounded_kinds_are_full_and_empty_exactly)
{
    const enum hf_blocking_kind kinds[] = {
        HF_BLOCKING_ARRAY, HF_BLOCKING_LINKED, HF_BLOCKING_PRIORITY,
        HF_BLOCKING_DELAY};
    void *item = number(99);

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (uintptr_t capacity = 1; capacity < 10; capacity++) {
            struct hf_blocking *queue = open_kind(kinds[k], capacity);
            for (int round = 0; round < 5; round++) {
                for (uintptr_t i = 0; i < capacity; i++) {
                    CHECK_EQ(hf_blocking_size(queue), i);
                    CHECK_EQ(put_now(queue, i), HF_OK);
                }
                CHECK_EQ(put_now(queue, 77), HF_TIMEOUT);
                for (uintptr_t i = 0; i < capacity; i++)
                    CHECK_EQ(take_now(queue), i);
                CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_TIMEOUT);
                CHECK(item == number(99));
            }
            hf_blocking_close(queue);
        }
}

TEST(unbounded_kinds_take_what_comes_in_order)
{
    const enum hf_blocking_kind kinds[] = {
        HF_BLOCKING_LINKED, HF_BLOCKING_PRIORITY, HF_BLOCKING_DELAY,
        HF_BLOCKING_TRANSFER};

    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        struct hf_blocking *queue = open_kind(kinds[k], 0);
        uintptr_t in = 0;
        uintptr_t out = 0;
        while (in < 5000) { /* two in, one out: over many edges of blocks */
            CHECK_EQ(put_now(queue, in++), HF_OK);
            CHECK_EQ(put_now(queue, in++), HF_OK);
            CHECK_EQ(take_now(queue), out++);
        }
        CHECK_EQ(hf_blocking_size(queue), 2500);
        while (out < in)
            CHECK_EQ(take_now(queue), out++);
        CHECK_EQ(hf_blocking_size(queue), 0);
        hf_blocking_close(queue);
    }
}

TEST(lower_ranks_first_and_equal_ones_as_they_came)
{
    struct hf_blocking *queue = open_kind(HF_BLOCKING_PRIORITY, 0);
    const uint64_t ranks[] = {5, 1, UINT64_MAX, 5, 0, 1, 5};
    const uintptr_t order[] = {4, 1, 5, 0, 3, 6, 2};

    for (uintptr_t i = 0; i < 7; i++)
        CHECK_EQ(hf_blocking_put_ranked(queue, number(i), ranks[i], HF_NOW),
                 HF_OK);
    for (uintptr_t i = 0; i < 7; i++)
        CHECK_EQ(take_now(queue), order[i]);
    hf_blocking_close(queue);
}

TEST(a_null_item_is_an_item)
{
    struct hf_blocking *queue = open_kind(HF_BLOCKING_ARRAY, 1);
    void *item = &queue;

    CHECK_EQ(hf_blocking_put(queue, NULL, HF_NOW), HF_OK);
    CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_OK);
    CHECK(item == NULL);
    hf_blocking_close(queue);
}

TEST(delayed_items_are_visible_at_their_time_and_not_before)
{
    struct test_clock hands = {.now_ns = 1000};
    struct hf_blocking_opts opts = {.kind = HF_BLOCKING_DELAY,
                                    .clock = test_clock(&hands)};
    struct hf_blocking *queue;
    void *items[4];

    CHECK_EQ(hf_blocking_open(&queue, &opts), HF_OK);
    CHECK_EQ(hf_blocking_put_at(queue, number(3), HF_FOREVER, HF_NOW), HF_OK);
    CHECK_EQ(hf_blocking_put_at(queue, number(2), 1500, HF_NOW), HF_OK);
    CHECK_EQ(hf_blocking_put_at(queue, number(1), 1200, HF_NOW), HF_OK);
    CHECK_EQ(hf_blocking_put_at(queue, number(0), 1000, HF_NOW), HF_OK);
    CHECK_EQ(hf_blocking_size(queue), 4);
    CHECK_EQ(take_now(queue), 0);
    hands.now_ns = 1199;
    CHECK_EQ(hf_blocking_take(queue, items, HF_NOW), HF_TIMEOUT);
    CHECK_EQ(hf_blocking_take(queue, items, 1199), HF_TIMEOUT);
    CHECK_EQ(hf_blocking_drain(queue, items, 4), 0);
    hands.now_ns = 1200;
    CHECK_EQ(take_now(queue), 1);
    hf_blocking_shutdown(queue); /* what was accepted keeps its time */
    CHECK_EQ(hf_blocking_take(queue, items, HF_NOW), HF_TIMEOUT);
    hands.now_ns = 1500;
    CHECK_EQ(hf_blocking_drain(queue, items, 4), 1);
    CHECK(items[0] == number(2));
    hf_blocking_close(queue);
}

TEST(nobody_to_meet_is_a_timeout_and_leaves_nothing)
{
    struct test_clock hands = {.now_ns = 1000};
    const enum hf_blocking_kind kinds[] = {HF_BLOCKING_SYNCHRONOUS,
                                           HF_BLOCKING_TRANSFER};
    const uint64_t deadlines[] = {HF_NOW, 1, 1000};

    for (int k = 0; k < 2; k++) {
        struct hf_blocking_opts opts = {.kind = kinds[k],
                                        .clock = test_clock(&hands)};
        struct hf_blocking *queue;
        struct hf_blocking_stats stats;
        void *item;
        CHECK_EQ(hf_blocking_open(&queue, &opts), HF_OK);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(hf_blocking_transfer(queue, NULL, deadlines[i]),
                     HF_TIMEOUT);
            CHECK_EQ(hf_blocking_take(queue, &item, deadlines[i]), HF_TIMEOUT);
            CHECK_EQ(hf_blocking_size(queue), 0);
        }
        CHECK_EQ(hf_blocking_drain(queue, &item, 1), 0);
        hf_blocking_stats(queue, &stats);
        CHECK_EQ(stats.rejected, 3);
        CHECK_EQ(stats.take_timeouts, 3);
        CHECK_EQ(stats.put_waits, 2);
        CHECK_EQ(stats.take_waits, 2);
        CHECK_EQ(stats.put + stats.taken + stats.putters + stats.takers, 0);
        hf_blocking_close(queue);
    }
}

TEST(shut_refuses_puts_and_gives_out_the_rest)
{
    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++) {
        struct hf_blocking *queue = open_kind((enum hf_blocking_kind)kind, 0);
        bool holds = kind != HF_BLOCKING_SYNCHRONOUS;
        void *item;
        if (holds) {
            CHECK_EQ(put_now(queue, 1), HF_OK);
            CHECK_EQ(put_now(queue, 2), HF_OK);
        }
        hf_blocking_shutdown(queue);
        hf_blocking_shutdown(queue);
        CHECK_EQ(put_now(queue, 3), HF_CLOSED);
        CHECK_EQ(hf_blocking_put(queue, NULL, HF_FOREVER), HF_CLOSED);
        if (holds) {
            CHECK_EQ(take_now(queue), 1);
            CHECK_EQ(take_now(queue), 2);
        }
        CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_CLOSED);
        CHECK_EQ(hf_blocking_take(queue, &item, HF_FOREVER), HF_CLOSED);
        hf_blocking_close(queue);
    }
}

static void drop(void *context, void *item)
{
    *(uintptr_t *)context = *(uintptr_t *)context * 10 + (uintptr_t)item;
}

TEST(close_drops_what_is_left_once_and_in_order)
{
    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++) {
        uintptr_t dropped = 0;
        struct hf_blocking_opts opts = {.kind = (enum hf_blocking_kind)kind,
                                        .drop = drop,
                                        .context = &dropped};
        struct hf_blocking *queue;
        CHECK_EQ(hf_blocking_open(&queue, &opts), HF_OK);
        for (uintptr_t i = 1; i <= 4; i++)
            (void)put_now(queue, i);
        if (kind != HF_BLOCKING_SYNCHRONOUS)
            CHECK_EQ(take_now(queue), 1);
        if (kind == HF_BLOCKING_DELAY) /* also what is not visible */
            CHECK_EQ(hf_blocking_put_at(queue, number(5), HF_FOREVER, HF_NOW),
                     HF_OK);
        hf_blocking_close(queue);
        CHECK_EQ(dropped, kind == HF_BLOCKING_SYNCHRONOUS ? 0
                          : kind == HF_BLOCKING_DELAY     ? 2345
                                                          : 234);
    }
}

TEST(drain_takes_at_most_so_many_in_order)
{
    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++) {
        struct hf_blocking *queue = open_kind((enum hf_blocking_kind)kind, 0);
        void *items[8];
        if (kind == HF_BLOCKING_SYNCHRONOUS) {
            CHECK_EQ(hf_blocking_drain(queue, items, 8), 0);
        } else {
            for (uintptr_t i = 0; i < 5; i++)
                CHECK_EQ(put_now(queue, i), HF_OK);
            CHECK_EQ(hf_blocking_drain(queue, items, 0), 0);
            CHECK_EQ(hf_blocking_drain(queue, items, 3), 3);
            CHECK_EQ(hf_blocking_drain(queue, items + 3, 5), 2);
            for (uintptr_t i = 0; i < 5; i++)
                CHECK(items[i] == number(i));
        }
        hf_blocking_close(queue);
    }
}

/* 300 puts and as many takes; the number of HF_NOMEMs. */
static unsigned fill_and_empty(struct hf_blocking *queue)
{
    unsigned refused = 0;
    uintptr_t in = 0;
    void *item;

    for (uintptr_t i = 0; i < 300; i++) {
        enum hf_status status = put_now(queue, in);
        CHECK(status == HF_OK || status == HF_NOMEM);
        if (status == HF_OK)
            in++;
        else
            refused++;
    }
    CHECK_EQ(hf_blocking_size(queue), in);
    hf_memory_fail_never();
    for (uintptr_t i = 0; i < in; i++)
        CHECK_EQ(take_now(queue), i);
    CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_TIMEOUT);
    return refused;
}

TEST(without_memory_nothing_is_lost_or_changed)
{
    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++) {
        struct hf_blocking_opts opts = {.kind = (enum hf_blocking_kind)kind};
        unsigned refused = 0;
        if (kind == HF_BLOCKING_SYNCHRONOUS)
            continue;
        for (uint64_t at = 0; at < 12; at++) {
            struct hf_blocking *queue = NULL;
            hf_memory_fail_after(at);
            enum hf_status status = hf_blocking_open(&queue, &opts);
            CHECK(status == HF_OK || status == HF_NOMEM);
            CHECK((queue == NULL) == (status == HF_NOMEM));
            if (queue != NULL)
                refused += fill_and_empty(queue);
            hf_memory_fail_never();
            if (queue != NULL)
                CHECK_EQ(fill_and_empty(queue), 0);
            hf_blocking_close(queue);
        }
        CHECK_EQ(refused == 0, kind == HF_BLOCKING_ARRAY);
    }
}

static void check_figures(enum hf_blocking_kind kind)
{
    struct test_clock hands = {.now_ns = 1000};
    struct hf_blocking_opts opts = {
        .kind = kind, .capacity = 2, .clock = test_clock(&hands), .ages = true};
    struct hf_blocking *queue;
    struct hf_blocking_stats stats;
    void *item;

    CHECK_EQ(hf_blocking_open(&queue, &opts), HF_OK);
    hf_blocking_stats(queue, &stats);
    CHECK_EQ(stats.oldest_ns, HF_INSPECT_NONE);
    CHECK_EQ(stats.put_wait_p99_ns, HF_INSPECT_NONE);
    CHECK_EQ(put_now(queue, 1), HF_OK);
    hands.now_ns += 10;
    CHECK_EQ(put_now(queue, 2), HF_OK);
    CHECK_EQ(put_now(queue, 3), HF_TIMEOUT);
    CHECK_EQ(hf_blocking_put(queue, number(3), 1010), HF_TIMEOUT);
    hands.now_ns += 5;
    hf_blocking_stats(queue, &stats);
    CHECK_EQ(stats.put, 2);
    CHECK_EQ(stats.rejected, 2);
    CHECK_EQ(stats.put_waits, 1);
    CHECK_EQ(stats.put_wait_p99_ns, 0);
    CHECK_EQ(stats.depth, 2);
    CHECK_EQ(stats.capacity, 2);
    CHECK_EQ(stats.oldest_ns, 15);
    CHECK(!stats.shutdown);
    CHECK_EQ(take_now(queue), 1);
    hf_blocking_shutdown(queue);
    CHECK_EQ(put_now(queue, 3), HF_CLOSED);
    CHECK_EQ(take_now(queue), 2);
    CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_CLOSED);
    hf_blocking_stats(queue, &stats);
    CHECK_EQ(stats.taken, 2);
    CHECK_EQ(stats.rejected, 3);
    CHECK_EQ(stats.take_timeouts, 0);
    CHECK(stats.shutdown);
    hf_blocking_close(queue);
}

TEST(figures_tell_what_happened)
{
    for (int kind = 0; kind < HF_BLOCKING_SYNCHRONOUS; kind++)
        check_figures((enum hf_blocking_kind)kind);
}

TEST(the_oldest_is_the_first_that_came_whatever_its_rank)
{
    struct test_clock hands = {.now_ns = 1000};
    struct hf_blocking_opts opts = {.kind = HF_BLOCKING_PRIORITY,
                                    .clock = test_clock(&hands)};
    struct hf_blocking *queue;
    struct hf_blocking_stats stats;
    const uint64_t ranks[] = {7, 3, 9, 1};
    const uint64_t ages[] = {40, 40, 40, 20}; /* before 1, 3, 7, 9 go */

    CHECK_EQ(hf_blocking_open(&queue, &opts), HF_OK);
    for (int i = 0; i < 4; i++) {
        CHECK_EQ(hf_blocking_put_ranked(queue, NULL, ranks[i], HF_NOW), HF_OK);
        hands.now_ns += 10;
    }
    for (int i = 0; i < 4; i++) {
        hf_blocking_stats(queue, &stats);
        CHECK_EQ(stats.oldest_ns, ages[i]);
        CHECK_EQ(take_now(queue), 0);
    }
    hf_blocking_close(queue);
}

static struct hf_inspect_row found;

static void find_row(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->name, context) == 0)
        found = *row;
}

TEST(an_open_queue_is_listed)
{
    struct hf_blocking_opts opts = {
        .kind = HF_BLOCKING_LINKED, .capacity = 1, .name = "orders"};
    struct hf_blocking *queue;
    char name[] = "orders";

    CHECK_EQ(hf_blocking_open(&queue, &opts), HF_OK);
    CHECK_EQ(put_now(queue, 1), HF_OK);
    CHECK_EQ(put_now(queue, 2), HF_TIMEOUT);
    CHECK_EQ(hf_inspect(find_row, name), HF_OK);
    CHECK(strcmp(found.kind, "linked-queue") == 0);
    CHECK_EQ(found.depth, 1);
    CHECK_EQ(found.capacity, 1);
    CHECK_EQ(found.rejected, 1);
    CHECK_EQ(found.oldest_ns, HF_INSPECT_NONE);
    CHECK_EQ(found.wait_p99_ns, HF_INSPECT_NONE);
    hf_blocking_close(queue);
    found.name[0] = '\0';
    CHECK_EQ(hf_inspect(find_row, name), HF_OK);
    CHECK(found.name[0] == '\0');
}
