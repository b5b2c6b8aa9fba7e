/* heap.c - tests of what is due next. */
#include "base/heap.h"

#include "base/memory.h"
#include "base/random.h"
#include "support/test.h"

#define REFS 3000

struct fixture {
    size_t bytes;
    struct hf_heap heap;
    uint32_t positions[REFS];
    struct hf_heap_entry entries[REFS]; /* what should lie there */
};

static void moved(void *context, uint32_t ref, uint32_t position)
{
    struct fixture *f = context;
    f->positions[ref] = position;
}

static struct fixture *start(void)
{
    static struct fixture f;

    memset(&f, 0, sizeof f);
    hf_heap_init(&f.heap, moved, &f, &f.bytes);
    return &f;
}

static void add(struct fixture *f, uint32_t ref, uint64_t when, uint64_t tie)
{
    f->entries[ref] = (struct hf_heap_entry){when, tie, ref};
    CHECK_EQ(hf_heap_add(&f->heap, f->entries[ref]), HF_OK);
}

/* The first in order among those that are in, by looking at all; or REFS. */
static uint32_t naive_first(const struct fixture *f)
{
    uint32_t first = REFS;

    for (uint32_t i = 0; i < REFS; i++) {
        const struct hf_heap_entry *e = &f->entries[i];
        const struct hf_heap_entry *least = &f->entries[first % REFS];
        if (f->positions[i] == 0)
            continue;
        if (first == REFS || e->when < least->when ||
            (e->when == least->when && e->tie < least->tie))
            first = i;
    }
    return first;
}

TEST(an_empty_heap_has_no_first)
{
    struct fixture *f = start();
    CHECK(hf_heap_first(&f->heap) == NULL);
    add(f, 5, 10, 1);
    CHECK_EQ(f->positions[5], 1);
    hf_heap_remove(&f->heap, 1);
    CHECK_EQ(f->positions[5], 0);
    CHECK(hf_heap_first(&f->heap) == NULL);
    hf_heap_destroy(&f->heap);
}

TEST(ties_decide_between_equal_times)
{
    struct fixture *f = start();
    add(f, 1, 10, 3);
    add(f, 2, 10, 1);
    add(f, 3, 9, 9);
    add(f, 4, 10, 2);
    uint32_t order[] = {3, 2, 4, 1};
    for (unsigned i = 0; i < 4; i++) {
        CHECK_EQ(hf_heap_first(&f->heap)->ref, order[i]);
        hf_heap_remove(&f->heap, 1);
    }
    hf_heap_destroy(&f->heap);
}

TEST(random_use_agrees_with_a_search_and_positions_are_told)
{
    struct fixture *f = start();
    struct hf_random random;

    hf_random_init(&random, test_seed());
    for (uint64_t step = 0; step < 60000; step++) {
        uint32_t ref = (uint32_t)hf_random_below(&random, REFS);
        uint64_t when = hf_random_below(&random, 50);
        if (f->positions[ref] == 0) {
            add(f, ref, when, step);
        } else if (hf_random_below(&random, 2) == 0) {
            hf_heap_remove(&f->heap, f->positions[ref]);
            CHECK_EQ(f->positions[ref], 0);
        } else {
            hf_heap_change(&f->heap, f->positions[ref], when, step);
            f->entries[ref].when = when;
            f->entries[ref].tie = step;
        }
        uint32_t at = f->positions[ref];
        if (at != 0) {
            CHECK_EQ(f->heap.entries[at].ref, ref);
            CHECK_EQ(f->heap.entries[at].when, f->entries[ref].when);
            CHECK_EQ(f->heap.entries[at].tie, f->entries[ref].tie);
        }
        if (step % 16 == 0 && f->heap.count > 0)
            CHECK_EQ(hf_heap_first(&f->heap)->ref, naive_first(f));
    }
    while (f->heap.count > 0) {
        CHECK_EQ(hf_heap_first(&f->heap)->ref, naive_first(f));
        hf_heap_remove(&f->heap, 1);
    }
    CHECK_EQ(naive_first(f), REFS);
    hf_heap_destroy(&f->heap);
}

TEST(the_order_of_leaving_does_not_depend_on_the_order_of_coming)
{
    struct fixture *f = start();
    struct hf_random random;
    uint32_t refs[500];

    hf_random_init(&random, test_seed());
    for (int round = 0; round < 5; round++) {
        for (uint32_t i = 0; i < 500; i++) {
            uint32_t at = (uint32_t)hf_random_below(&random, i + 1);
            refs[i] = refs[at];
            refs[at] = i;
        }
        for (uint32_t i = 0; i < 500; i++)
            add(f, refs[i], refs[i] / 10, refs[i]);
        for (uint32_t i = 0; i < 500; i++) {
            CHECK_EQ(hf_heap_first(&f->heap)->ref, i);
            hf_heap_remove(&f->heap, 1);
        }
    }
    hf_heap_destroy(&f->heap);
}

TEST(a_promised_add_needs_no_memory_and_others_may_fail_cleanly)
{
    struct fixture *f = start();

    hf_memory_fail_after(0);
    CHECK_EQ(hf_heap_promise(&f->heap), HF_NOMEM);
    CHECK_EQ(f->heap.promised, 0);
    CHECK_EQ(hf_heap_add(&f->heap, (struct hf_heap_entry){1, 1, 1}), HF_NOMEM);
    CHECK_EQ(f->heap.count, 0);
    hf_memory_fail_never();
    for (uint32_t i = 0; i < REFS; i++)
        CHECK_EQ(hf_heap_promise(&f->heap), HF_OK);
    hf_memory_fail_after(0);
    for (uint32_t i = 0; i < REFS; i++) {
        add(f, i, REFS - i, i);
        hf_heap_unpromise(&f->heap);
    }
    hf_memory_fail_never();
    CHECK_EQ(hf_heap_first(&f->heap)->ref, REFS - 1);
    CHECK(f->bytes >= REFS * sizeof(struct hf_heap_entry));
    hf_heap_destroy(&f->heap);
}

TEST(a_large_heap_has_an_eighth_to_spare)
{
    struct fixture *f = start();
    size_t entry = sizeof(struct hf_heap_entry);

    for (uint32_t count = 1; count < 300000; count++) {
        CHECK_EQ(hf_heap_promise(&f->heap), HF_OK);
        if (count > 10000)
            CHECK(f->bytes <= (count + 2) * entry * 9 / 8);
    }
    hf_heap_destroy(&f->heap);
}

TEST(a_cleared_heap_keeps_room_and_promises)
{
    struct fixture *f = start();

    for (uint32_t i = 0; i < 1000; i++)
        add(f, i, i, i);
    CHECK_EQ(hf_heap_promise(&f->heap), HF_OK);
    hf_heap_clear(&f->heap);
    CHECK(hf_heap_first(&f->heap) == NULL);
    CHECK_EQ(f->heap.promised, 1);
    hf_memory_fail_after(0);
    for (uint32_t i = 0; i < 1000; i++)
        add(f, i, 1000 - i, i);
    hf_memory_fail_never();
    CHECK_EQ(hf_heap_first(&f->heap)->ref, 999);
    hf_heap_unpromise(&f->heap);
    hf_heap_destroy(&f->heap);
}
