/* multiqueue_turns.c - tests of what goes out of turn: ageing, inheritance,
 * homes and the alarm. */
#include <sched.h>

#include "support/multiqueue.h"

/* ---- Ageing. ---- */

TEST(an_old_item_is_taken_next)
{
    begin((struct hf_multiqueue_opts){.age_ns = 500});
    put(2, 1);
    test_clock_advance(&test.clock, 1);
    for (int i = 0; i < 100; i++)
        put(0, 2);
    test_clock_advance(&test.clock, 498);
    CHECK_EQ(take().from, 0); /* one ns early */
    test_clock_advance(&test.clock, 1);
    CHECK_EQ(take().from, 2);
    CHECK_EQ(stats().by_class[2].aged, 1);
    end();
}

TEST(old_items_take_every_other_turn_at_most)
{
    uint64_t taken[3] = {0};

    begin((struct hf_multiqueue_opts){.age_ns = 500});
    for (int i = 0; i < 1000; i++)
        put(2, 1);
    test_clock_advance(&test.clock, 500);
    for (int i = 0; i < 1000; i++)
        put(0, 1);
    for (int i = 0; i < 800; i++) {
        uint32_t from = take().from;
        taken[from]++;
        if (i % 2 == 0)
            CHECK_EQ(from, 2);
    }
    CHECK_EQ(stats().by_class[2].aged, 400);
    CHECK_EQ(taken[0], 350); /* 70 of 80 of the turns that are left */
    CHECK_EQ(taken[2], 450);
    end();
}

TEST(ageing_serves_a_class_that_is_nobodys_home)
{
    begin((struct hf_multiqueue_opts){.age_ns = 500});
    put(2, 1);
    for (int i = 0; i < 100; i++) {
        put(0, 2);
        CHECK_EQ(take_home(0).from, 0);
    }
    test_clock_advance(&test.clock, 500);
    put(0, 2);
    CHECK_EQ(take_home(0).from, 2);
    end();
}

/* ---- Inheritance. ---- */

TEST(a_promoted_item_stands_where_its_put_would_have_put_it)
{
    struct hf_multiqueue_ticket tickets[4];

    begin((struct hf_multiqueue_opts){.capacity = 4});
    tickets[0] = put(2, 1);
    put(0, 2);
    tickets[1] = put(1, 3);
    put(0, 4);
    tickets[2] = put(2, 5);
    tickets[3] = put(2, 6);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(hf_multiqueue_promote(test.queue, &tickets[i], 0), HF_OK);
    CHECK_EQ(stats().by_class[0].depth, 5); /* over its capacity */
    CHECK_EQ(put_status(0, 9), HF_TIMEOUT);
    for (uintptr_t i = 1; i <= 5; i++)
        CHECK_EQ(take_home(0).value, i);
    CHECK_EQ(take().value, 6);
    CHECK_EQ(stats().by_class[0].promoted, 3);
    CHECK_EQ(stats().by_class[1].raised, 1);
    CHECK_EQ(stats().by_class[2].raised, 2);
    end();
}

TEST(an_item_is_never_moved_down)
{
    begin((struct hf_multiqueue_opts){0});
    struct hf_multiqueue_ticket ticket = put(1, 1);
    CHECK_EQ(hf_multiqueue_promote(test.queue, &ticket, 2), HF_OK);
    CHECK_EQ(hf_multiqueue_promote(test.queue, &ticket, 1), HF_OK);
    CHECK_EQ(stats().by_class[1].depth, 1);
    CHECK_EQ(stats().by_class[1].promoted, 0);
    end();
}

TEST(the_ticket_of_an_item_that_was_taken_names_nothing)
{
    struct hf_multiqueue_ticket forged = {1, UINT32_MAX};

    begin((struct hf_multiqueue_opts){0});
    struct hf_multiqueue_ticket old = put(2, 1);
    CHECK_EQ(take().value, 1);
    CHECK_EQ(hf_multiqueue_promote(test.queue, &old, 0), HF_NOTFOUND);
    struct hf_multiqueue_ticket young = put(2, 2); /* in the same record */
    CHECK_EQ(young.record, old.record);
    CHECK_EQ(hf_multiqueue_promote(test.queue, &old, 0), HF_NOTFOUND);
    /* So is one that is older by as many puts as 32 bits can count. */
    old.number = young.number + (UINT64_C(1) << 32);
    CHECK_EQ(hf_multiqueue_promote(test.queue, &old, 0), HF_NOTFOUND);
    CHECK_EQ(hf_multiqueue_promote(test.queue, &forged, 0), HF_NOTFOUND);
    CHECK_EQ(stats().by_class[2].depth, 1);
    CHECK_EQ(hf_multiqueue_promote(test.queue, &young, 0), HF_OK);
    end();
}

TEST(the_room_that_a_promoted_item_leaves_is_used)
{
    struct putter putter = {
        .class_index = 1, .value = 7, .deadline_ns = HF_FOREVER};

    begin((struct hf_multiqueue_opts){.capacity = 1});
    struct hf_multiqueue_ticket ticket = put(1, 1);
    putter_start(&putter, 1);
    CHECK_EQ(hf_multiqueue_promote(test.queue, &ticket, 0), HF_OK);
    CHECK_EQ(putter_end(&putter), HF_OK);
    CHECK_EQ(hf_multiqueue_size(test.queue), 2);
    end();
}

/* ---- Homes. ---- */

TEST(a_home_is_served_first_and_then_the_others_by_their_shares)
{
    begin((struct hf_multiqueue_opts){0});
    put(0, 1);
    put(1, 2);
    put(2, 3);
    put(2, 4);
    CHECK_EQ(take_home(2).value, 3);
    CHECK_EQ(take_home(2).value, 4);
    CHECK_EQ(stats().stolen, 0);
    CHECK_EQ(take_home(2).value, 1);
    CHECK_EQ(take_home(2).value, 2);
    CHECK_EQ(stats().stolen, 2);
    end();
}

/* ---- The alarm. ---- */

static struct {
    unsigned count;
    uint32_t classes[16];
    uint64_t waited_ns[16];
    bool takes; /* from inside */
} alarms;

static void on_alarm(void *context, uint32_t class_index, uint64_t waited_ns)
{
    void *item;

    (void)context;
    alarms.classes[alarms.count % 16] = class_index;
    alarms.waited_ns[alarms.count++ % 16] = waited_ns;
    if (alarms.takes)
        (void)hf_multiqueue_take_from(test.queue, class_index, &item, HF_NOW,
                                      NULL);
}

static void begin_with_alarm(uint32_t capacity)
{
    memset(&alarms, 0, sizeof alarms);
    begin((struct hf_multiqueue_opts){
        .capacity = capacity, .starve_ns = 500, .alarm = on_alarm});
}

TEST(the_alarm_is_given_once_for_each_time_that_a_class_starves)
{
    begin_with_alarm(0);
    put(1, 1);
    test_clock_advance(&test.clock, 499);
    put(0, 1);
    CHECK_EQ(alarms.count, 0);
    test_clock_advance(&test.clock, 1);
    put(0, 1);
    CHECK_EQ(alarms.count, 1);
    CHECK_EQ(alarms.classes[0], 1);
    CHECK_EQ(alarms.waited_ns[0], 500);
    put(0, 1);
    CHECK_EQ(take().from, 0);
    CHECK_EQ(alarms.count, 1);
    CHECK_EQ(take_home(1).from, 1);
    put(1, 1);
    CHECK_EQ(alarms.count, 1);
    test_clock_advance(&test.clock, 700);
    CHECK_EQ(take_home(1).from, 1); /* the taker gives it as well */
    CHECK_EQ(stats().by_class[1].alarms, 2);
    end();
}

/* What came later than the item that starved may starve in its turn. */
TEST(the_next_item_of_a_class_gives_the_alarm_again)
{
    begin_with_alarm(0);
    put(1, 1);
    test_clock_advance(&test.clock, 400);
    put(1, 2);
    test_clock_advance(&test.clock, 100);
    CHECK_EQ(take().value, 1);
    CHECK_EQ(alarms.count, 1);
    test_clock_advance(&test.clock, 400);
    CHECK_EQ(take().value, 2);
    CHECK_EQ(alarms.count, 2);
    CHECK_EQ(alarms.waited_ns[1], 500);
    end();
}

TEST(classes_that_starve_together_each_give_the_alarm)
{
    begin_with_alarm(0);
    for (uint32_t i = 0; i < 3; i++)
        put(i, 1);
    test_clock_advance(&test.clock, 500);
    CHECK_EQ(take().from, 0);
    CHECK_EQ(alarms.count, 3);
    for (uint32_t i = 0; i < 3; i++)
        CHECK_EQ(alarms.classes[i], i);
    end();
}

/* All takers may be stuck: those who wait for room see it then. */
TEST(who_waits_for_room_gives_the_alarm)
{
    struct putter putter = {
        .class_index = 0, .value = 7, .deadline_ns = HF_FOREVER};

    begin_with_alarm(1);
    put(0, 1);
    putter_start(&putter, 1);
    test_clock_advance(&test.clock, 500);
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), 60000);
    while (stats().by_class[0].alarms == 0) {
        CHECK(hf_clock_now_ns(hf_clock_system()) < deadline_ns);
        sched_yield();
    }
    test_clock_await_sleepers(&test.clock, 1);
    CHECK_EQ(alarms.count, 1);
    CHECK_EQ(alarms.waited_ns[0], 500);
    CHECK_EQ(take().value, 1);
    CHECK_EQ(putter_end(&putter), HF_OK);
    end();
}

TEST(an_alarm_does_not_make_a_deadline_later)
{
    struct putter putter = {.class_index = 0, .value = 7, .deadline_ns = 1600};

    begin_with_alarm(1);
    put(0, 1);
    putter_start(&putter, 1);
    test_clock_advance(&test.clock, 600); /* both have come */
    CHECK_EQ(putter_end(&putter), HF_TIMEOUT);
    CHECK_EQ(alarms.count, 1);
    end();
}

TEST(the_alarm_may_use_the_queue)
{
    begin_with_alarm(1);
    alarms.takes = true;
    put(1, 1);
    test_clock_advance(&test.clock, 500);
    CHECK_EQ(hf_multiqueue_put(test.queue, 1, item_of(2), HF_FOREVER, NULL),
             HF_OK); /* the alarm makes room */
    CHECK_EQ(alarms.count, 1);
    CHECK_EQ(take().value, 2);
    end();
}
