/* agenda.c - tests of what is due next, in runs and a heap. */
#include "base/agenda.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/test.h"

TEST_ONE_THREAD;

#define REFS 3000

struct fixture {
    size_t bytes;
    struct hf_agenda agenda;
    struct hf_undo undo;
    uint64_t moves;
    uint32_t positions[REFS];
    struct hf_heap_entry entries[REFS]; /* what should be there */
};

static struct fixture f;

static void moved(void *context, uint32_t ref, uint32_t position)
{
    CHECK(context == &f);
    *(uint32_t *)hf_undo_keep(&f.undo, &f.positions[ref], sizeof(uint32_t)) =
        position;
    f.moves++;
}

static void start(void)
{
    memset(&f, 0, sizeof f);
    hf_agenda_init(&f.agenda, moved, &f, &f.bytes);
    f.agenda.heap.undo = &f.undo;
}

static void stop(void)
{
    CHECK(hf_agenda_is_sound(&f.agenda));
    CHECK_EQ(f.bytes, f.agenda.node_cap * sizeof(struct hf_agenda_node) +
                          f.agenda.heap.cap * sizeof(struct hf_heap_entry));
    hf_agenda_destroy(&f.agenda);
    CHECK_EQ(hf_agenda_count(&f.agenda), 0);
    hf_agenda_destroy(&f.agenda); /* has no effect */
    hf_undo_destroy(&f.undo);
}

static void add(uint32_t ref, uint64_t when, uint64_t tie)
{
    f.entries[ref] = (struct hf_heap_entry){when, tie, ref};
    CHECK_EQ(hf_agenda_promise(&f.agenda), HF_OK);
    hf_agenda_unpromise(&f.agenda);
    hf_memory_fail_after(0);
    CHECK_EQ(hf_agenda_add(&f.agenda, f.entries[ref]), HF_OK);
    hf_memory_fail_never();
}

static void change(uint32_t ref, uint64_t when, uint64_t tie)
{
    hf_agenda_change(&f.agenda, f.positions[ref], when, tie);
    f.entries[ref].when = when;
    f.entries[ref].tie = tie;
}

/* The first in order among those that are in, by looking at all; or REFS. */
static uint32_t naive_first(void)
{
    uint32_t first = REFS;

    for (uint32_t i = 0; i < REFS; i++) {
        if (f.positions[i] != 0 &&
            (first == REFS || hf_heap_before(&f.entries[i], &f.entries[first])))
            first = i;
    }
    return first;
}

static bool is_in_run(uint32_t ref)
{
    return (f.positions[ref] & HF_AGENDA_IN_RUN) != 0;
}

static void check_entry(uint32_t ref)
{
    const struct hf_heap_entry *at = hf_agenda_at(&f.agenda, f.positions[ref]);

    CHECK((at != NULL) == (f.positions[ref] != 0));
    if (at == NULL)
        return;
    CHECK_EQ(at->ref, ref);
    CHECK_EQ(at->when, f.entries[ref].when);
    CHECK_EQ(at->tie, f.entries[ref].tie);
    CHECK_EQ(hf_agenda_when(&f.agenda, f.positions[ref]), at->when);
}

TEST(an_empty_agenda_has_no_first)
{
    start();
    CHECK(hf_agenda_first(&f.agenda) == NULL);
    CHECK(hf_agenda_at(&f.agenda, 0) == NULL);
    CHECK(hf_agenda_at(&f.agenda, 1) == NULL);
    CHECK(hf_agenda_at(&f.agenda, HF_AGENDA_IN_RUN) == NULL);
    CHECK(hf_agenda_at(&f.agenda, HF_AGENDA_IN_RUN | 1) == NULL);
    add(5, 10, 1);
    CHECK_EQ(hf_agenda_first(&f.agenda)->ref, 5);
    CHECK_EQ(hf_agenda_count(&f.agenda), 1);
    hf_agenda_remove(&f.agenda, f.positions[5]);
    CHECK_EQ(f.positions[5], 0);
    CHECK(hf_agenda_first(&f.agenda) == NULL);
    CHECK_EQ(hf_agenda_count(&f.agenda), 0);
    stop();
}

/* As locks and reservations are: a few lengths, each in order, some ended
 * early, some renewed. Nothing goes to the heap, and an entry is told of its
 * place once. */
TEST(a_few_lengths_need_no_heap)
{
    struct hf_random random;
    uint64_t count = 0;
    const uint64_t lengths[] = {30, 600, 5, 10000};

    start();
    hf_random_init(&random, test_seed());
    for (uint64_t now = 0; now < 60000; now++) {
        uint32_t ref = (uint32_t)hf_random_below(&random, REFS);
        uint64_t when = now + lengths[ref % 4];
        if (f.positions[ref] == 0)
            add(ref, when, now);
        else if (hf_random_below(&random, 3) > 0)
            hf_agenda_remove(&f.agenda, f.positions[ref]);
        else
            change(ref, when, now);
        count++;
        CHECK_EQ(f.agenda.heap.count, 0);
        check_entry(ref);
    }
    CHECK_EQ(f.moves, count);
    CHECK(hf_agenda_count(&f.agenda) > 1000);
    stop();
}

TEST(ties_decide_between_equal_times)
{
    const uint32_t order[] = {3, 2, 4, 1};

    start();
    add(1, 10, 3);
    add(2, 10, 1);
    add(3, 9, 9);
    add(4, 10, 2);
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(hf_agenda_first(&f.agenda)->ref, order[i]);
        hf_agenda_remove(&f.agenda, f.positions[order[i]]);
    }
    stop();
}

static bool is_odd(uint32_t ref)
{
    return ref % 2 == 1;
}

/* The first odd one up to a time, by looking at all. */
static uint32_t naive_odd(uint64_t until)
{
    uint32_t first = REFS;

    for (uint32_t i = 1; i < REFS; i += 2) {
        if (f.positions[i] != 0 && f.entries[i].when <= until &&
            (first == REFS || hf_heap_before(&f.entries[i], &f.entries[first])))
            first = i;
    }
    return first;
}

static void check_find(uint64_t until)
{
    const struct hf_heap_entry *found =
        hf_agenda_find(&f.agenda, until, is_odd, UINT32_MAX);

    CHECK_EQ(found == NULL ? REFS : found->ref, naive_odd(until));
    CHECK(hf_agenda_find(&f.agenda, until, is_odd, 0) == NULL);
}

static void check_count(uint64_t until)
{
    uint32_t due = 0;

    for (uint32_t i = 0; i < REFS; i++)
        due += f.positions[i] != 0 && f.entries[i].when <= until;
    CHECK_EQ(hf_agenda_count_due(&f.agenda, until, UINT32_MAX), due);
    CHECK_EQ(hf_agenda_count_due(&f.agenda, until, due), due);
    CHECK_EQ(hf_agenda_count_due(&f.agenda, until, due / 2), due / 2);
}

/* Adds, removes or changes a random one. */
static void step_random(struct hf_random *random, uint64_t step)
{
    uint32_t ref = (uint32_t)hf_random_below(random, REFS);
    uint64_t when = step / 100 + hf_random_below(random, 50);

    if (f.positions[ref] == 0)
        add(ref, when, step);
    else if (hf_random_below(random, 2) == 0)
        hf_agenda_remove(&f.agenda, f.positions[ref]);
    else
        change(ref, when, step);
    check_entry(ref);
}

static void empty_in_order(void)
{
    while (hf_agenda_count(&f.agenda) > 0) {
        uint32_t first = hf_agenda_first(&f.agenda)->ref;
        CHECK_EQ(first, naive_first());
        hf_agenda_remove(&f.agenda, f.positions[first]);
    }
    CHECK_EQ(naive_first(), REFS);
}

TEST(random_use_agrees_with_a_search)
{
    struct hf_random random;
    uint32_t in_runs = 0;

    start();
    hf_random_init(&random, test_seed());
    for (uint64_t step = 0; step < 60000; step++) {
        step_random(&random, step);
        if (step % 64 == 0 && hf_agenda_count(&f.agenda) > 0)
            CHECK_EQ(hf_agenda_first(&f.agenda)->ref, naive_first());
        if (step % 1000 == 0)
            CHECK(hf_agenda_is_sound(&f.agenda));
        if (step % 250 == 0) {
            check_find(step / 100 + hf_random_below(&random, 60));
            check_count(step / 100 + hf_random_below(&random, 60));
        }
    }
    for (uint32_t i = 0; i < REFS; i++)
        in_runs += is_in_run(i);
    CHECK_EQ(in_runs, f.agenda.used);
    CHECK(in_runs > 100 && f.agenda.heap.count > 100);
    empty_in_order();
    stop();
}

/* Runs whose ends are late: what follows goes to the heap. */
static void fill_runs(uint32_t from)
{
    for (uint32_t i = 0; i < HF_AGENDA_RUNS; i++) {
        add(from + i, 1000000 - i, from + i);
        CHECK(is_in_run(from + i));
    }
}

TEST(what_fits_no_run_goes_to_the_heap_and_stays_there)
{
    start();
    fill_runs(0);
    add(100, 50, 1);
    CHECK_EQ(f.positions[100], 1);
    CHECK_EQ(hf_agenda_first(&f.agenda)->ref, 100);
    change(100, 2000000, 2);
    CHECK_EQ(f.positions[100], 1);
    CHECK_EQ(hf_agenda_first(&f.agenda)->ref, HF_AGENDA_RUNS - 1);
    change(HF_AGENDA_RUNS - 1, 1000000, 3); /* to the end of another run */
    CHECK(is_in_run(HF_AGENDA_RUNS - 1));
    CHECK_EQ(hf_agenda_first(&f.agenda)->ref, HF_AGENDA_RUNS - 2);
    change(0, 5, 4);
    CHECK_EQ(hf_agenda_first(&f.agenda)->ref, 0);
    empty_in_order();
    stop();
}

/* A change never fails, and takes nothing that is promised to an add. */
TEST(without_memory_a_change_finds_its_place_in_a_run)
{
    uint32_t promised = 0;
    uint32_t late = 0;

    start();
    fill_runs(0);
    for (uint32_t i = 100; i < 2000; i++)
        add(i, 1000000 + i, i);
    CHECK_EQ(f.agenda.heap.count, 0);
    hf_memory_fail_after(0);
    while (hf_agenda_promise(&f.agenda) == HF_OK && promised < 200)
        promised++;
    CHECK_EQ(promised, 200);
    for (uint32_t i = 100; i < 2000; i++) {
        change(i, (i * 7919) % 500000, i);
        late += is_in_run(i);
    }
    CHECK(late > 1000 && f.agenda.heap.count > 0);
    CHECK(hf_agenda_is_sound(&f.agenda));
    for (uint32_t i = 2000; i < 2000 + promised; i++) {
        f.entries[i] = (struct hf_heap_entry){i, i, i};
        CHECK_EQ(hf_agenda_add(&f.agenda, f.entries[i]), HF_OK);
        hf_agenda_unpromise(&f.agenda);
    }
    hf_memory_fail_never();
    hf_agenda_unpromise(&f.agenda); /* the one that ended the loop */
    CHECK_EQ(f.agenda.heap.promised, 0);
    empty_in_order();
    stop();
}

TEST(without_memory_for_nodes_all_go_to_the_heap)
{
    start();
    CHECK_EQ(hf_agenda_promise(&f.agenda), HF_OK);
    hf_agenda_unpromise(&f.agenda);
    hf_free(f.agenda.nodes);
    f.agenda.nodes = NULL;
    f.bytes -= f.agenda.node_cap * sizeof(struct hf_agenda_node);
    f.agenda.node_cap = 0;
    for (uint32_t i = 0; i < 100; i++) {
        f.entries[i] = (struct hf_heap_entry){i, i, i};
        hf_memory_fail_after(0);
        CHECK(!hf_agenda_has_room(&f.agenda, 1));
        CHECK_EQ(hf_agenda_promise(&f.agenda), HF_OK);
        hf_agenda_unpromise(&f.agenda);
        CHECK_EQ(hf_agenda_add(&f.agenda, f.entries[i]), HF_OK);
        hf_memory_fail_never();
        CHECK(!is_in_run(i));
    }
    empty_in_order();
    stop();
    start();
    hf_memory_fail_after(0);
    CHECK_EQ(hf_agenda_promise(&f.agenda), HF_NOMEM);
    CHECK_EQ(hf_agenda_add(&f.agenda, (struct hf_heap_entry){1, 1, 1}),
             HF_NOMEM);
    hf_memory_fail_never();
    CHECK_EQ(f.bytes, 0);
    stop();
}

/* What a group does is taken back to the byte. */
TEST(everything_can_be_taken_back)
{
    struct hf_random random;
    static struct fixture before;
    static struct hf_agenda_node nodes[2 * REFS];

    start();
    hf_random_init(&random, test_seed());
    for (uint64_t step = 0; step < 4000; step++)
        step_random(&random, step);
    for (uint64_t round = 0; round < 50; round++) {
        before = f;
        CHECK(f.agenda.node_cap <= 2 * REFS);
        memcpy(nodes, f.agenda.nodes, f.agenda.top * sizeof nodes[0]);
        CHECK_EQ(hf_undo_reserve(&f.undo, 1 << 20), HF_OK);
        hf_undo_begin(&f.undo);
        for (uint64_t i = 0; i < 100; i++) {
            uint32_t ref = (uint32_t)hf_random_below(&random, REFS);
            uint64_t when = hf_random_below(&random, 200);
            if (f.positions[ref] == 0)
                CHECK_EQ(hf_agenda_add(&f.agenda,
                                       (struct hf_heap_entry){when, i, ref}),
                         HF_OK);
            else if (i % 2 == 0)
                hf_agenda_remove(&f.agenda, f.positions[ref]);
            else
                hf_agenda_change(&f.agenda, f.positions[ref], when, i);
        }
        CHECK(hf_agenda_is_sound(&f.agenda));
        CHECK(f.agenda.nodes == before.agenda.nodes);
        CHECK(f.agenda.heap.entries == before.agenda.heap.entries);
        hf_undo_back(&f.undo);
        f.agenda = before.agenda; /* which is not in the notes */
        CHECK_EQ(memcmp(nodes, f.agenda.nodes, f.agenda.top * sizeof nodes[0]),
                 0);
        CHECK_EQ(memcmp(before.positions, f.positions, sizeof f.positions), 0);
        CHECK(hf_agenda_is_sound(&f.agenda));
        step_random(&random, 5000 + round);
    }
    empty_in_order();
    stop();
}

TEST(promised_entries_that_come_in_order_need_no_heap)
{
    start();
    for (uint32_t i = 0; i < 1000; i++)
        CHECK_EQ(hf_agenda_promise(&f.agenda), HF_OK);
    for (uint32_t i = 0; i < 1000; i++) {
        f.entries[i] = (struct hf_heap_entry){i, i, i};
        hf_agenda_unpromise(&f.agenda);
        CHECK_EQ(hf_agenda_add(&f.agenda, f.entries[i]), HF_OK);
    }
    CHECK_EQ(f.agenda.heap.count, 0);
    empty_in_order();
    stop();
}

TEST(a_cleared_agenda_keeps_room_and_promises)
{
    start();
    for (uint32_t i = 0; i < 1000; i++)
        add(i, i, i);
    fill_runs(1000);
    add(1100, 5, 5);
    CHECK_EQ(f.agenda.heap.count, 1);
    CHECK_EQ(hf_agenda_promise(&f.agenda), HF_OK);
    hf_agenda_clear(&f.agenda);
    memset(f.positions, 0, sizeof f.positions);
    CHECK(hf_agenda_first(&f.agenda) == NULL);
    CHECK_EQ(hf_agenda_count(&f.agenda), 0);
    CHECK_EQ(f.agenda.heap.promised, 1);
    CHECK(hf_agenda_has_room(&f.agenda, 200));
    hf_agenda_unpromise(&f.agenda);
    for (uint32_t i = 0; i < 1000; i++)
        add(i, i, i);
    CHECK_EQ(f.agenda.heap.count, 0);
    empty_in_order();
    stop();
}

/* The last node is used, and not one more. */
TEST(what_finds_no_node_goes_to_the_heap)
{
    start();
    CHECK_EQ(hf_agenda_promise(&f.agenda), HF_OK);
    hf_agenda_unpromise(&f.agenda);
    uint32_t last = f.agenda.node_cap - 1;
    for (uint32_t i = 1; i <= last + 1; i++) {
        CHECK_EQ(hf_agenda_has_room(&f.agenda, 1), i <= last);
        f.entries[i] = (struct hf_heap_entry){i, i, i};
        CHECK_EQ(hf_agenda_add(&f.agenda, f.entries[i]), HF_OK);
        CHECK_EQ(is_in_run(i), i <= last);
    }
    empty_in_order();
    stop();
}

/* Room in the heap is made for a change, unless it may be taken back. */
TEST(a_change_makes_room_in_the_heap)
{
    for (int taken_back = 0; taken_back < 2; taken_back++) {
        start();
        fill_runs(0);
        for (uint32_t i = 100; i < 2000; i++)
            add(i, 1000000 + i, i);
        uint32_t cap = f.agenda.heap.cap;
        CHECK_EQ(hf_undo_reserve(&f.undo, 1 << 20), HF_OK);
        if (taken_back)
            hf_undo_begin(&f.undo);
        for (uint32_t i = 100; i < 2000; i++)
            change(i, 500000 - i, i);
        if (taken_back)
            hf_undo_end(&f.undo);
        CHECK_EQ(f.agenda.heap.cap == cap, taken_back);
        CHECK_EQ(f.agenda.heap.count < 1900, taken_back);
        empty_in_order();
        stop();
    }
}

TEST(what_is_not_in_order_is_seen)
{
    start();
    fill_runs(0);
    add(100, 50, 1);
    add(101, 60, 1);
    f.agenda.heap.entries[2].when = 40;
    CHECK(!hf_agenda_is_sound(&f.agenda));
    f.agenda.heap.entries[2].when = 60;
    CHECK(hf_agenda_is_sound(&f.agenda));
    f.agenda.used++;
    CHECK(!hf_agenda_is_sound(&f.agenda));
    f.agenda.used--;
    stop();
}
