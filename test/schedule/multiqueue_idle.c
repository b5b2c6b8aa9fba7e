/* multiqueue_idle.c - no consumer is idle while any queue has work, step by
 * step: as many takers as items, each takes one and is gone. A taker that
 * sleeps on while there is an item for it is a deadlock. */
#include "base/atomic.h"
#include "holdfast/multiqueue.h"
#include "support/schedule.h"
#include "support/test.h"

#define TAKERS  3
#define CLASSES 3

static struct {
    struct hf_multiqueue *queue;
    bool homes;   /* takers have homes, which are not where the items are */
    bool promote; /* what was put is moved at once */
    bool late;    /* one more taker leaves at a deadline: it may be woken */
    struct hf_atomic_u32 taken[TAKERS + 1]; /* by number of the item */
    char items[TAKERS + 1];
} test;

static void setup(void *context, uint64_t seed)
{
    (void)context;
    (void)seed;
    if (hf_multiqueue_open(&test.queue, NULL) != HF_OK)
        test_fail(__FILE__, __LINE__, "no memory");
    for (unsigned i = 0; i <= TAKERS; i++)
        hf_u32_store(&test.taken[i], 0, __ATOMIC_RELAXED);
}

static void take(unsigned fiber, uint64_t deadline_ns)
{
    void *item;
    enum hf_status status =
        test.homes ? hf_multiqueue_take_from(test.queue, fiber % CLASSES, &item,
                                             deadline_ns, NULL)
                   : hf_multiqueue_take(test.queue, &item, deadline_ns);

    if (status == HF_OK)
        hf_u32_add(&test.taken[(char *)item - test.items], 1, __ATOMIC_RELAXED);
    else if (deadline_ns == HF_FOREVER || status != HF_TIMEOUT)
        schedule_wrong("take: status %d", status);
}

static void put(unsigned number)
{
    struct hf_multiqueue_ticket ticket;
    uint32_t class_index = (uint32_t)schedule_random(CLASSES);

    if (hf_multiqueue_put(test.queue, class_index, &test.items[number],
                          HF_FOREVER, &ticket) != HF_OK)
        schedule_wrong("put failed");
    if (test.promote)
        (void)hf_multiqueue_promote(test.queue, &ticket, 0);
}

/* Fibers 0 and 1 put, the last one may be late, the others take. With one who
 * is late there is one item more, so that nobody else goes without. */
static void body(void *context, unsigned fiber)
{
    (void)context;
    if (fiber == 0) {
        put(0);
        put(1);
    } else if (fiber == 1) {
        put(2);
        if (test.late)
            put(3);
    } else if (fiber < 2 + TAKERS) {
        take(fiber, HF_FOREVER);
    } else {
        take(fiber, schedule_now_ns() + schedule_random(2000));
    }
}

static bool check(void *context, FILE *explain)
{
    unsigned total = 0;

    (void)context;
    for (unsigned i = 0; i <= TAKERS; i++) {
        unsigned times = hf_u32_load(&test.taken[i], __ATOMIC_RELAXED);
        fprintf(explain, "item %u taken %u times; ", i, times);
        if (times > 1)
            return false;
        total += times;
    }
    uint64_t left = hf_multiqueue_size(test.queue);
    hf_multiqueue_close(test.queue);
    return total + left == TAKERS + (test.late ? 1u : 0u) && left <= test.late;
}

static void run(const char *name, bool homes, bool promote, bool late)
{
    struct schedule_case c = {.name = name,
                              .fibers = 2u + TAKERS + late,
                              .setup = setup,
                              .body = body,
                              .check = check};
    test.homes = homes;
    test.promote = promote;
    test.late = late;
    schedule_check(&c);
}

TEST(every_taker_gets_an_item_of_any_class)
{
    run("takers", false, false, false);
}

TEST(every_taker_gets_an_item_that_is_not_of_its_home)
{
    run("homes", true, false, false);
}

TEST(every_taker_gets_an_item_that_was_promoted)
{
    run("promoted", true, true, false);
}

TEST(a_taker_that_leaves_late_takes_no_wake_up_with_it)
{
    run("late", true, false, true);
}
