/* multiqueue.c - tests of the classes: order, shares, room, figures. */
#include "holdfast/multiqueue.h"

#include "base/memory.h"
#include "support/multiqueue.h"

TEST(bad_arguments_are_refused)
{
    struct hf_multiqueue *none = NULL;
    struct hf_multiqueue_opts opts = {.classes = 17};
    struct hf_multiqueue_ticket ticket = {0};
    void *item = NULL;

    CHECK_EQ(hf_multiqueue_open(NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_multiqueue_open(&none, &opts), HF_INVALID);
    opts.classes = 2; /* without weights */
    CHECK_EQ(hf_multiqueue_open(&none, &opts), HF_INVALID);
    opts.weights[0] = 1;
    opts.weights[1] = HF_MULTIQUEUE_WEIGHT_MAX + 1;
    CHECK_EQ(hf_multiqueue_open(&none, &opts), HF_INVALID);
    opts =
        (struct hf_multiqueue_opts){.capacity = HF_MULTIQUEUE_CAPACITY_MAX + 1};
    CHECK_EQ(hf_multiqueue_open(&none, &opts), HF_INVALID);
    opts = (struct hf_multiqueue_opts){
        .overflow = (enum hf_multiqueue_overflow)(HF_MULTIQUEUE_LOWER + 1)};
    CHECK_EQ(hf_multiqueue_open(&none, &opts), HF_INVALID);
    CHECK(none == NULL);
    hf_multiqueue_shutdown(NULL);
    hf_multiqueue_close(NULL);
    CHECK_EQ(hf_multiqueue_size(NULL), 0);

    begin((struct hf_multiqueue_opts){0});
    CHECK_EQ(hf_multiqueue_put(NULL, 0, item_of(1), HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_multiqueue_put(test.queue, 3, item_of(1), HF_NOW, NULL),
             HF_INVALID);
    CHECK_EQ(hf_multiqueue_put(test.queue, 0, NULL, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_multiqueue_take(NULL, &item, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_multiqueue_take(test.queue, NULL, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_multiqueue_take_from(test.queue, 3, &item, HF_NOW, NULL),
             HF_INVALID);
    CHECK_EQ(hf_multiqueue_promote(NULL, &ticket, 0), HF_INVALID);
    CHECK_EQ(hf_multiqueue_promote(test.queue, NULL, 0), HF_INVALID);
    CHECK_EQ(hf_multiqueue_promote(test.queue, &ticket, 3), HF_INVALID);
    CHECK_EQ(hf_multiqueue_promote(test.queue, &ticket, 0), HF_NOTFOUND);
    CHECK_EQ(stats().by_class[0].rejected, 0);
    CHECK_EQ(hf_multiqueue_size(test.queue), 0);
    end();
}

/* ---- Shares. ---- */

/* Takes `count` times; what was taken is put back, so that every class that
 * had work keeps it. Counts by class. */
static void take_and_put_back(unsigned count, uint64_t *by_class)
{
    for (unsigned i = 0; i < count; i++) {
        uint32_t from = take().from;
        by_class[from]++;
        put(from, 1);
    }
}

TEST(turns_are_evenly_spread)
{
    char turns[11] = "";

    begin((struct hf_multiqueue_opts){0});
    for (uint32_t i = 0; i < 3; i++)
        for (int j = 0; j < 10; j++)
            put(i, 1);
    for (int i = 0; i < 10; i++)
        turns[i] = (char)('a' + take().from);
    CHECK_TEXT(turns, 10, "aabaacabaa");
    end();
}

/* Over any number of takes from the start, and in the long run, whatever the
 * weights. */
static void check_shares(uint32_t classes, const uint32_t *weights)
{
    struct hf_multiqueue_opts opts = {.classes = classes};
    uint64_t taken[HF_MULTIQUEUE_CLASSES_MAX] = {0};
    uint64_t sum = 0;

    for (uint32_t i = 0; i < classes; i++) {
        opts.weights[i] = weights[i];
        sum += weights[i];
    }
    begin(opts);
    for (uint32_t i = 0; i < classes; i++)
        put(i, 1);
    for (uint64_t takes = 1; takes <= 20000; takes++) {
        take_and_put_back(1, taken);
        for (uint32_t i = 0; i < classes; i++) {
            int64_t share = (int64_t)(takes * weights[i] / sum);
            int64_t off = (int64_t)taken[i] - share;
            CHECK(off <= (int64_t)classes && off >= -(int64_t)classes);
        }
    }
    end();
}

TEST(shares_are_those_of_the_weights)
{
    check_shares(3, (const uint32_t[]){70, 20, 10});
    check_shares(2, (const uint32_t[]){1, HF_MULTIQUEUE_WEIGHT_MAX});
    check_shares(5, (const uint32_t[]){1, 1, 1, 1, 1});
    check_shares(4, (const uint32_t[]){997, 3, 13, 501});
    check_shares(1, (const uint32_t[]){5});
}

TEST(shares_are_exactly_70_20_10_by_default)
{
    uint64_t taken[3] = {0};

    begin((struct hf_multiqueue_opts){0});
    for (uint32_t i = 0; i < 3; i++)
        put(i, 1);
    take_and_put_back(100000, taken);
    CHECK_EQ(taken[0], 70000);
    CHECK_EQ(taken[1], 20000);
    CHECK_EQ(taken[2], 10000);
    end();
}

TEST(a_class_without_work_gives_its_share_to_the_others)
{
    uint64_t taken[3] = {0};

    begin((struct hf_multiqueue_opts){0});
    put(1, 1);
    put(2, 1);
    take_and_put_back(30000, taken);
    CHECK_EQ(taken[1], 20000);
    CHECK_EQ(taken[2], 10000);
    end();
}

/* A class that had no work, or whose work others took out of turn, has no
 * claim to the turns that it missed; nor have the others lost theirs. */
TEST(turns_that_a_class_had_no_use_for_are_not_saved_up)
{
    uint64_t taken[3] = {0};

    begin((struct hf_multiqueue_opts){0});
    put(0, 1);
    put(1, 1);
    for (int i = 0; i < 10000; i++) {
        put(2, 1);
        CHECK_EQ(take_home(2).from, 2);
        take_and_put_back(1, taken);
    }
    put(2, 1);
    memset(taken, 0, sizeof taken);
    take_and_put_back(100, taken);
    CHECK(taken[0] >= 69 && taken[0] <= 71);
    CHECK(taken[1] >= 19 && taken[1] <= 21);
    CHECK(taken[2] >= 9 && taken[2] <= 11);
    end();
}

TEST(the_lowest_class_is_never_passed_over_for_longer_than_its_weight_says)
{
    uint64_t since = 0;

    begin((struct hf_multiqueue_opts){.classes = 3, .weights = {997, 2, 1}});
    for (uint32_t i = 0; i < 3; i++)
        put(i, 1);
    for (int i = 0; i < 100000; i++) {
        uint32_t from = take().from;
        since = from == 2 ? 0 : since + 1;
        CHECK(since <= 1000 + 3);
        put(from, 1);
    }
    end();
}

TEST(an_adaptive_class_counts_for_more_the_fuller_it_is)
{
    uint64_t taken[2] = {0};

    begin((struct hf_multiqueue_opts){
        .classes = 2, .weights = {10, 10}, .capacity = 1000, .adaptive = true});
    put(0, 1);
    for (int i = 0; i < 1000; i++)
        put(1, 1);
    take_and_put_back(30000, taken);
    CHECK(taken[1] > 19900 && taken[1] <= 20000);
    end();
}

/* ---- Order and room. ---- */

TEST(items_of_a_class_leave_in_the_order_in_which_they_came)
{
    begin((struct hf_multiqueue_opts){.capacity = 10000});
    for (uintptr_t i = 1; i <= 10000; i++)
        put(1, i);
    CHECK_EQ(hf_multiqueue_size(test.queue), 10000);
    for (uintptr_t i = 1; i <= 10000; i++)
        CHECK_EQ(take().value, i);
    CHECK_EQ(take_status(), HF_TIMEOUT);
    end();
}

TEST(a_full_class_refuses)
{
    begin((struct hf_multiqueue_opts){.capacity = 1,
                                      .overflow = HF_MULTIQUEUE_REJECT});
    put(0, 1);
    CHECK_EQ(put_status(0, 2), HF_FULL);
    CHECK_EQ(hf_multiqueue_put(test.queue, 0, item_of(2), HF_FOREVER, NULL),
             HF_FULL);
    put(1, 3);
    CHECK_EQ(stats().by_class[0].rejected, 2);
    CHECK_EQ(stats().by_class[0].put, 1);
    end();
}

TEST(a_full_class_flows_over_into_the_next_with_room)
{
    begin((struct hf_multiqueue_opts){.capacity = 1,
                                      .overflow = HF_MULTIQUEUE_LOWER});
    put(1, 1);
    put(0, 2);
    put(0, 3); /* past class 1, which is full */
    CHECK_EQ(put_status(0, 4), HF_TIMEOUT);
    CHECK_EQ(put_status(2, 4), HF_TIMEOUT);
    CHECK_EQ(stats().by_class[0].overflowed, 1);
    CHECK_EQ(stats().by_class[0].put, 1);
    CHECK_EQ(stats().by_class[2].put, 1);
    CHECK_EQ(stats().by_class[0].rejected, 1);
    CHECK_EQ(stats().by_class[2].rejected, 1);
    CHECK_EQ(take_home(2).value, 3);
    CHECK_EQ(take_home(0).value, 2);
    put(1, 5); /* not upwards */
    CHECK_EQ(stats().by_class[1].overflowed, 1);
    end();
}

TEST(a_put_waits_for_room_until_its_deadline)
{
    struct putter late = {.class_index = 1, .value = 7, .deadline_ns = 2000};
    struct putter lucky = {
        .class_index = 1, .value = 8, .deadline_ns = HF_FOREVER};

    begin((struct hf_multiqueue_opts){.capacity = 1});
    put(1, 1);
    putter_start(&late, 1);
    putter_start(&lucky, 2);
    test_clock_advance(&test.clock, 1000);
    CHECK_EQ(putter_end(&late), HF_TIMEOUT);
    CHECK_EQ(take().value, 1);
    CHECK_EQ(putter_end(&lucky), HF_OK);
    CHECK_EQ(take().value, 8);
    CHECK_EQ(stats().by_class[1].rejected, 1);
    end();
}

TEST(room_goes_to_a_waiter_of_the_highest_class_that_can_use_it)
{
    struct putter low = {
        .class_index = 2, .value = 7, .deadline_ns = HF_FOREVER};
    struct putter high = {
        .class_index = 0, .value = 8, .deadline_ns = HF_FOREVER};

    begin((struct hf_multiqueue_opts){.capacity = 1,
                                      .overflow = HF_MULTIQUEUE_LOWER});
    for (uint32_t i = 0; i < 3; i++)
        put(i, 1);
    putter_start(&low, 1);
    putter_start(&high, 2);
    CHECK_EQ(take_home(2).from, 2);
    CHECK_EQ(putter_end(&high), HF_OK);
    CHECK_EQ(stats().by_class[2].depth, 1);
    CHECK_EQ(take_home(0).from, 0); /* of no use to the other */
    test_clock_await_sleepers(&test.clock, 1);
    CHECK_EQ(take_home(2).value, 8);
    CHECK_EQ(putter_end(&low), HF_OK);
    CHECK_EQ(take_home(2).value, 7);
    end();
}

/* ---- Waiting to take, and the end. ---- */

TEST(a_taker_that_waits_gets_what_comes_into_any_class)
{
    begin((struct hf_multiqueue_opts){0});
    for (uint32_t i = 0; i < 3; i++) {
        struct taker taker = {.home = (i + 1) % 3, .deadline_ns = HF_FOREVER};
        taker_start(&taker, 1);
        put(i, 5 + i);
        CHECK_EQ(taker_end(&taker), HF_OK);
        CHECK_EQ(taker.taken.value, 5 + i);
        CHECK_EQ(taker.taken.from, i);
    }
    CHECK_EQ(stats().stolen, 3);
    end();
}

TEST(a_taker_waits_until_its_deadline)
{
    struct taker taker = {.home = HF_MULTIQUEUE_NO_HOME, .deadline_ns = 2000};

    begin((struct hf_multiqueue_opts){0});
    CHECK_EQ(take_status(), HF_TIMEOUT);
    taker_start(&taker, 1);
    test_clock_advance(&test.clock, 999);
    test_clock_await_sleepers(&test.clock, 1);
    test_clock_advance(&test.clock, 1);
    CHECK_EQ(taker_end(&taker), HF_TIMEOUT);
    put(0, 1);
    CHECK_EQ(take().value, 1);
    end();
}

TEST(shut_lets_waiters_go_and_hands_out_what_is_inside)
{
    struct taker takers[2] = {{.home = 0, .deadline_ns = HF_FOREVER},
                              {.home = 1, .deadline_ns = HF_FOREVER}};
    struct putter putter = {
        .class_index = 0, .value = 9, .deadline_ns = HF_FOREVER};

    begin((struct hf_multiqueue_opts){.capacity = 1});
    taker_start(&takers[0], 1);
    taker_start(&takers[1], 2);
    hf_multiqueue_shutdown(test.queue);
    CHECK_EQ(taker_end(&takers[0]), HF_CLOSED);
    CHECK_EQ(taker_end(&takers[1]), HF_CLOSED);
    end();

    begin((struct hf_multiqueue_opts){.capacity = 1});
    put(0, 1);
    put(2, 2);
    putter_start(&putter, 1);
    hf_multiqueue_shutdown(test.queue);
    hf_multiqueue_shutdown(test.queue);
    CHECK_EQ(putter_end(&putter), HF_CLOSED);
    CHECK_EQ(put_status(1, 3), HF_CLOSED);
    CHECK_EQ(take().value, 1);
    CHECK_EQ(take().value, 2);
    CHECK_EQ(take_status(), HF_CLOSED);
    CHECK_EQ(stats().by_class[0].rejected, 1);
    CHECK_EQ(stats().by_class[1].rejected, 1);
    end();
}

/* ---- Memory and figures. ---- */

TEST(without_memory_nothing_is_changed)
{
    struct hf_multiqueue *queue = NULL;
    struct hf_multiqueue_ticket ticket = {7, 7};
    uint64_t before = hf_memory_count();

    CHECK_EQ(hf_multiqueue_open(&queue, NULL), HF_OK);
    uint64_t needed = hf_memory_count() - before;
    hf_multiqueue_close(queue);
    queue = NULL;
    for (uint64_t i = 0; i < needed; i++) {
        hf_memory_fail_after(i);
        CHECK_EQ(hf_multiqueue_open(&queue, NULL), HF_NOMEM);
        hf_memory_fail_never();
        CHECK(queue == NULL);
    }
    begin((struct hf_multiqueue_opts){0});
    for (uint64_t i = 0; i < 2; i++) {
        hf_memory_fail_after(i);
        CHECK_EQ(hf_multiqueue_put(test.queue, 0, item_of(1), HF_NOW, &ticket),
                 HF_NOMEM);
        hf_memory_fail_never();
        CHECK_EQ(ticket.number, 7);
        CHECK_EQ(hf_multiqueue_size(test.queue), 0);
        CHECK_EQ(stats().by_class[0].put, 0);
        CHECK_EQ(stats().by_class[0].rejected, i + 1);
    }
    CHECK_EQ(take_status(), HF_TIMEOUT);
    put(0, 2);
    CHECK_EQ(take().value, 2);
    end();
}

static void find_row(void *context, const struct hf_inspect_row *row)
{
    if (strcmp(row->name, "work") == 0)
        *(struct hf_inspect_row *)context = *row;
}

TEST(it_is_listed_with_its_figures)
{
    struct hf_inspect_row row = {.name = ""};

    begin((struct hf_multiqueue_opts){
        .name = "work", .capacity = 2, .overflow = HF_MULTIQUEUE_REJECT});
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_EQ(row.oldest_ns, HF_INSPECT_NONE);
    CHECK_EQ(row.wait_p99_ns, HF_INSPECT_NONE);
    put(1, 1);
    test_clock_advance(&test.clock, 100);
    put(0, 1);
    put(0, 1);
    CHECK_EQ(put_status(0, 1), HF_FULL);
    test_clock_advance(&test.clock, 28);
    CHECK_EQ(take().from, 0);
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_TEXT(row.kind, strlen(row.kind), "multiqueue");
    CHECK_EQ(row.depth, 2);
    CHECK_EQ(row.capacity, 6);
    CHECK_EQ(row.oldest_ns, 128);
    CHECK_EQ(row.rejected, 1);
    CHECK_EQ(row.wait_p99_ns, 31);
    CHECK_EQ(stats().classes, 3);
    CHECK_EQ(stats().by_class[0].oldest_ns, 28);
    CHECK_EQ(stats().by_class[1].oldest_ns, 128);
    CHECK_EQ(stats().by_class[2].oldest_ns, HF_INSPECT_NONE);
    end();
    row.name[0] = '\0';
    CHECK_EQ(hf_inspect(find_row, &row), HF_OK);
    CHECK_EQ(row.name[0], '\0');
}
