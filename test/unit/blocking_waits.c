/* Tests of hf_blocking with threads that wait, by a clock that the test moves:
 * who is woken, when, and with what. */
#include "holdfast/blocking.h"

#include <pthread.h>
#include <time.h>

#include "support/clock.h"
#include "support/test.h"

#define CALLERS 4

static struct test_clock hands;
static struct hf_blocking *queue;

/* A thread in one call. */
struct caller {
    pthread_t thread;
    bool takes;
    bool transfers;
    uint64_t deadline_ns;
    void *item;
    enum hf_status status;
};

static void *number(uintptr_t n)
{
    return (void *)n;
}

static void start_queue(enum hf_blocking_kind kind, uint64_t capacity)
{
    hands = (struct test_clock){.now_ns = 1000};
    struct hf_blocking_opts opts = {
        .kind = kind, .capacity = capacity, .clock = test_clock(&hands)};
    CHECK_EQ(hf_blocking_open(&queue, &opts), HF_OK);
}

static void *call(void *context)
{
    struct caller *self = context;

    if (self->takes)
        self->status = hf_blocking_take(queue, &self->item, self->deadline_ns);
    else if (self->transfers)
        self->status =
            hf_blocking_transfer(queue, self->item, self->deadline_ns);
    else
        self->status = hf_blocking_put(queue, self->item, self->deadline_ns);
    return NULL;
}

/* Starts the call and returns when `asleep` threads sleep by the clock. */
static void start(struct caller *caller, unsigned asleep)
{
    CHECK_EQ(pthread_create(&caller->thread, NULL, call, caller), 0);
    test_clock_await_sleepers(&hands, asleep);
}

static enum hf_status end_of(struct caller *caller)
{
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    CHECK_EQ(pthread_timedjoin_np(caller->thread, NULL, &limit), 0);
    return caller->status;
}

static struct hf_blocking_stats figures(void)
{
    struct hf_blocking_stats stats;
    hf_blocking_stats(queue, &stats);
    return stats;
}

/* Returns when that many takers wait, or items are inside. */
static void await(uint64_t takers, uint64_t depth)
{
    const struct hf_clock *real = hf_clock_system();
    uint64_t deadline_ns = hf_clock_after_ms(real, 60000);

    while (figures().takers != takers || figures().depth != depth) {
        CHECK(hf_clock_now_ns(real) < deadline_ns);
        sched_yield();
    }
}

TEST(a_taker_leaves_at_its_deadline)
{
    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++) {
        struct caller taker = {.takes = true, .deadline_ns = 1500};
        start_queue((enum hf_blocking_kind)kind, 0);
        start(&taker, 1);
        test_clock_advance(&hands, 499);
        CHECK_EQ(figures().takers, 1);
        test_clock_advance(&hands, 1);
        CHECK_EQ(end_of(&taker), HF_TIMEOUT);
        CHECK_EQ(figures().takers, 0);
        CHECK_EQ(figures().take_timeouts, 1);
        CHECK_EQ(figures().take_waits, 1);
        CHECK(figures().take_wait_p99_ns >= 500);
        CHECK(figures().take_wait_p99_ns <= 500 + 500 / 4);
        hf_blocking_close(queue);
    }
}

TEST(a_waiting_taker_gets_what_is_put)
{
    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++) {
        struct caller taker = {.takes = true, .deadline_ns = HF_FOREVER};
        start_queue((enum hf_blocking_kind)kind, 0);
        start(&taker, 1);
        CHECK_EQ(hf_blocking_put(queue, number(7), HF_NOW), HF_OK);
        CHECK_EQ(end_of(&taker), HF_OK);
        CHECK(taker.item == number(7));
        CHECK_EQ(hf_blocking_size(queue), 0);
        CHECK_EQ(figures().put, 1);
        CHECK_EQ(figures().taken, 1);
        hf_blocking_close(queue);
    }
}

TEST(a_waiting_putter_gets_the_room)
{
    for (int kind = HF_BLOCKING_ARRAY; kind <= HF_BLOCKING_DELAY; kind++) {
        struct caller putter = {.item = number(2), .deadline_ns = HF_FOREVER};
        void *item;
        start_queue((enum hf_blocking_kind)kind, 1);
        CHECK_EQ(hf_blocking_put(queue, number(1), HF_NOW), HF_OK);
        start(&putter, 1);
        CHECK_EQ(hf_blocking_size(queue), 1);
        CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_OK);
        CHECK(item == number(1));
        CHECK_EQ(end_of(&putter), HF_OK);
        CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_OK);
        CHECK(item == number(2));
        CHECK_EQ(figures().put_waits, 1);
        hf_blocking_close(queue);
    }
}

TEST(drained_places_wake_as_many_putters)
{
    struct caller putters[3];
    void *items[8];

    start_queue(HF_BLOCKING_ARRAY, 4);
    for (uintptr_t i = 0; i < 4; i++)
        CHECK_EQ(hf_blocking_put(queue, number(i), HF_NOW), HF_OK);
    for (unsigned i = 0; i < 3; i++) {
        putters[i] = (struct caller){.deadline_ns = HF_FOREVER};
        start(&putters[i], i + 1);
    }
    CHECK_EQ(hf_blocking_drain(queue, items, 3), 3);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQ(end_of(&putters[i]), HF_OK);
    CHECK_EQ(hf_blocking_size(queue), 4);
    hf_blocking_close(queue);
}

TEST(one_item_ends_one_wait)
{
    struct caller takers[CALLERS];

    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++) {
        start_queue((enum hf_blocking_kind)kind, 0);
        for (unsigned i = 0; i < CALLERS; i++) {
            takers[i] =
                (struct caller){.takes = true, .deadline_ns = 1000 + 100};
            start(&takers[i], i + 1);
        }
        CHECK_EQ(hf_blocking_put(queue, number(7), HF_NOW), HF_OK);
        await(CALLERS - 1, 0);
        test_clock_advance(&hands, 100);
        int got = 0;
        for (unsigned i = 0; i < CALLERS; i++)
            got += end_of(&takers[i]) == HF_OK;
        CHECK_EQ(got, 1);
        CHECK_EQ(figures().take_timeouts, CALLERS - 1);
        hf_blocking_close(queue);
    }
}

TEST(those_who_wait_to_meet_are_served_in_order)
{
    struct caller callers[CALLERS];
    void *item;

    start_queue(HF_BLOCKING_SYNCHRONOUS, 0);
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] =
            (struct caller){.item = number(i), .deadline_ns = HF_FOREVER};
        start(&callers[i], i + 1);
    }
    CHECK_EQ(hf_blocking_size(queue), CALLERS);
    for (unsigned i = 0; i < CALLERS; i++) {
        CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_OK);
        CHECK(item == number(i));
        CHECK_EQ(end_of(&callers[i]), HF_OK);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.takes = true, .deadline_ns = HF_FOREVER};
        start(&callers[i], i + 1);
    }
    for (unsigned i = 0; i < CALLERS; i++) {
        CHECK_EQ(hf_blocking_put(queue, number(i), HF_NOW), HF_OK);
        CHECK_EQ(end_of(&callers[i]), HF_OK);
        CHECK(callers[i].item == number(i));
    }
    hf_blocking_close(queue);
}

TEST(a_transfer_ends_when_its_item_is_taken_after_those_before_it)
{
    struct caller putter = {
        .transfers = true, .item = number(2), .deadline_ns = 1100};
    void *items[4];

    start_queue(HF_BLOCKING_TRANSFER, 0);
    CHECK_EQ(hf_blocking_put(queue, number(1), HF_NOW), HF_OK);
    CHECK_EQ(hf_blocking_transfer(queue, number(9), HF_NOW), HF_TIMEOUT);
    start(&putter, 1);
    CHECK_EQ(hf_blocking_put(queue, number(3), HF_NOW), HF_OK);
    test_clock_advance(&hands, 40);
    CHECK_EQ(hf_blocking_size(queue), 3);
    CHECK_EQ(figures().putters, 1);
    CHECK_EQ(figures().oldest_ns, 40);
    CHECK_EQ(hf_blocking_drain(queue, items, 4), 3);
    for (uintptr_t i = 0; i < 3; i++)
        CHECK(items[i] == number(i + 1));
    CHECK_EQ(end_of(&putter), HF_OK);
    start(&putter, 1); /* again; nobody takes it */
    test_clock_advance(&hands, 60);
    CHECK_EQ(end_of(&putter), HF_TIMEOUT);
    CHECK_EQ(hf_blocking_size(queue), 0);
    CHECK_EQ(hf_blocking_drain(queue, items, 4), 0);
    hf_blocking_close(queue);
}

TEST(shut_sends_all_who_wait_away)
{
    struct caller callers[CALLERS];
    void *item;

    for (int kind = 0; kind < HF_BLOCKING_KINDS; kind++)
        for (int takes = 0; takes < 2; takes++) {
            bool meets = kind >= HF_BLOCKING_SYNCHRONOUS;
            start_queue((enum hf_blocking_kind)kind, meets ? 0 : 1);
            if (!takes && !meets)
                CHECK_EQ(hf_blocking_put(queue, number(9), HF_NOW), HF_OK);
            for (unsigned i = 0; i < CALLERS; i++) {
                callers[i] = (struct caller){.takes = takes != 0,
                                             .transfers = meets,
                                             .deadline_ns = HF_FOREVER};
                start(&callers[i], i + 1);
            }
            hf_blocking_shutdown(queue);
            for (unsigned i = 0; i < CALLERS; i++)
                CHECK_EQ(end_of(&callers[i]), HF_CLOSED);
            CHECK_EQ(hf_blocking_size(queue), !takes && !meets);
            if (!takes && !meets)
                CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_OK);
            CHECK_EQ(hf_blocking_take(queue, &item, HF_NOW), HF_CLOSED);
            hf_blocking_close(queue);
        }
}

TEST(takers_wait_for_a_delayed_item_also_when_shut)
{
    struct caller takers[CALLERS];
    int got = 0;

    start_queue(HF_BLOCKING_DELAY, 0);
    CHECK_EQ(hf_blocking_put_at(queue, number(7), 1500, HF_NOW), HF_OK);
    for (unsigned i = 0; i < CALLERS; i++) {
        takers[i] = (struct caller){.takes = true, .deadline_ns = HF_FOREVER};
        start(&takers[i], i + 1);
    }
    hf_blocking_shutdown(queue);
    test_clock_await_sleepers(&hands, CALLERS);
    test_clock_advance(&hands, 500);
    for (unsigned i = 0; i < CALLERS; i++)
        got += end_of(&takers[i]) == HF_OK ? 1 : 0;
    CHECK_EQ(got, 1); /* the others: HF_CLOSED */
    CHECK_EQ(figures().taken, 1);
    CHECK_EQ(figures().take_timeouts, 0);
    hf_blocking_close(queue);
}

TEST(an_item_that_becomes_visible_at_the_deadline_is_taken)
{
    struct caller taker = {.takes = true, .deadline_ns = 1500};

    start_queue(HF_BLOCKING_DELAY, 0);
    CHECK_EQ(hf_blocking_put_at(queue, number(7), 1500, HF_NOW), HF_OK);
    start(&taker, 1);
    test_clock_advance(&hands, 500);
    CHECK_EQ(end_of(&taker), HF_OK);
    CHECK(taker.item == number(7));
    hf_blocking_close(queue);
}

TEST(an_earlier_item_is_taken_earlier)
{
    struct caller takers[2];

    start_queue(HF_BLOCKING_DELAY, 0);
    CHECK_EQ(hf_blocking_put_at(queue, number(2), 3000, HF_NOW), HF_OK);
    for (unsigned i = 0; i < 2; i++) {
        takers[i] = (struct caller){.takes = true, .deadline_ns = 9000};
        start(&takers[i], i + 1);
    }
    CHECK_EQ(hf_blocking_put_at(queue, number(1), 1500, HF_NOW), HF_OK);
    test_clock_advance(&hands, 500);
    await(1, 1);
    test_clock_advance(&hands, 1500);
    CHECK_EQ(end_of(&takers[0]), HF_OK);
    CHECK_EQ(end_of(&takers[1]), HF_OK);
    CHECK((uintptr_t)takers[0].item + (uintptr_t)takers[1].item == 3);
    hf_blocking_close(queue);
}
