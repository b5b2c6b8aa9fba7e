/* hold_check_due.c - does hold_check() see what is wrong with what is due? */
#include "hold/part.h"
#include "support/engine.h"

TEST_ONE_THREAD;

static struct part *the_grant(const char *name)
{
    uint32_t number = hf_index_find(&engine->locks, hf_bytes_text(name));

    CHECK(number != 0);
    return part_edit(engine, lock_at(engine, number)->grants.first);
}

/* What is locked from here on for less than an hour goes to the heap. */
static void fill_runs(void)
{
    char name[16];

    for (uint32_t i = 0; i < HF_AGENDA_RUNS; i++) {
        snprintf(name, sizeof name, "run%u", i);
        engine_lock(name, "ann", 3600000 * (HF_AGENDA_RUNS - i), 0);
    }
}

/* The entry behind the last one may still look right. */
TEST(runs_or_a_heap_that_end_too_early_are_seen)
{
    engine_start();
    engine_lock("door", "ann", 5000, 0);
    engine->due.top = 1;
    BROKEN("lock door is not among what is due");
    engine_start();
    fill_runs();
    engine_lock("door", "ann", 5000, 0);
    CHECK_EQ(the_grant("door")->due, 1);
    engine->due.heap.count = 0;
    BROKEN("lock door is not among what is due");
}

/* Six locks in the heap, one second apart: 1 is above 2 to 5, 2 is above 6. */
TEST(a_heap_that_is_not_in_order_is_seen)
{
    static const char *const names[] = {"1", "2", "3", "4", "5", "6"};

    for (unsigned low = 1; low < 6; low++) {
        engine_start();
        fill_runs();
        for (unsigned i = 0; i < 6; i++)
            engine_lock(names[i], "ann", 1000 + 1000 * i, 0);
        const struct part *above = the_grant(names[low == 5 ? 1 : 0]);
        const struct part *below = the_grant(names[low]);
        struct hf_heap_entry *entries = engine->due.heap.entries;
        CHECK_EQ(below->due, low + 1);
        entries[below->due].when = entries[above->due].when;
        CHECK_ENGINE();
        entries[below->due].when--;
        BROKEN("what is due is out of order");
    }
}

/* Three nodes in a run, of which the second is number 2. */
static void break_order(struct hf_agenda *agenda)
{
    agenda->nodes[2].entry.when = agenda->nodes[1].entry.when - 1;
}
static void break_prev(struct hf_agenda *agenda)
{
    agenda->nodes[2].prev = 3;
}
static void break_next(struct hf_agenda *agenda)
{
    agenda->nodes[3].next = 1;
}
static void break_last(struct hf_agenda *agenda)
{
    agenda->runs[0].last = 2;
}
static void break_earliest(struct hf_agenda *agenda)
{
    agenda->earliest = 2;
}

TEST(runs_that_are_not_in_order_are_seen)
{
    static void (*const breaks[])(struct hf_agenda *) = {
        break_order, break_prev, break_next, break_last, break_earliest};

    for (unsigned i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
        engine_start();
        for (unsigned j = 0; j < 3; j++)
            engine_lock((const char *[]){"1", "2", "3"}[j], "ann", 1000, 0);
        CHECK_ENGINE();
        breaks[i](&engine->due);
        BROKEN("what is due is out of order");
    }
}
