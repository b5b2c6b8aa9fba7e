/* dedup.c - one caller is told "new", step by step. */
#include "holdfast/dedup.h"

#include <stdlib.h>

#include "support/schedule.h"
#include "support/test.h"

#define FIBERS 4
#define ITEMS  3
#define WINDOW 100u

static struct {
    struct hf_dedup *dedup;
    char folder[4096];
    unsigned fresh[FIBERS][ITEMS]; /* times that a fiber was told new */
    unsigned back[FIBERS][ITEMS];  /* times that it forgot */
} test;

static void setup(void *context, uint64_t seed)
{
    struct hf_dedup_opts opts = {.window_ns = WINDOW,
                                 .seed = {seed, 1},
                                 .value_bytes = 4,
                                 .items_max = ITEMS};

    (void)context;
    /* Every other one has no room in memory for more than one. */
    if (seed % 2 == 0) {
        opts.items_max = 1;
        opts.folder = test.folder;
    }
    if (hf_dedup_open(&test.dedup, &opts) != HF_OK)
        test_fail(__FILE__, __LINE__, "no dedup");
    memset(test.fresh, 0, sizeof test.fresh);
    memset(test.back, 0, sizeof test.back);
}

static void teardown(void *context)
{
    (void)context;
    hf_dedup_close(test.dedup);
}

/* Adds each item, and now and then takes back what it was told is new. */
static void once(void *context, unsigned fiber)
{
    (void)context;
    for (unsigned i = 0; i < 2 * ITEMS; i++) {
        unsigned item = (i + fiber) % ITEMS;
        uint32_t value = fiber;
        uint64_t now_ns = 1 + schedule_random(WINDOW);
        enum hf_status status =
            hf_dedup_add(test.dedup, &item, sizeof item, now_ns, &value);
        if (status != HF_OK && status != HF_EXISTS)
            schedule_wrong("add says %s", hf_status_text(status));
        if (status == HF_OK)
            test.fresh[fiber][item]++;
        else if (value >= FIBERS)
            schedule_wrong("a value that nobody left");
        if (status == HF_OK && schedule_random(4) == 0) {
            if (hf_dedup_forget(test.dedup, &item, sizeof item, 1) != HF_OK)
                schedule_wrong("what I added is not there");
            test.back[fiber][item]++;
        }
    }
}

static bool told_once(void *context, FILE *explain)
{
    (void)context;
    for (unsigned item = 0; item < ITEMS; item++) {
        unsigned fresh = 0, back = 0;
        uint32_t owner;
        for (unsigned fiber = 0; fiber < FIBERS; fiber++) {
            fresh += test.fresh[fiber][item];
            back += test.back[fiber][item];
        }
        enum hf_status status =
            hf_dedup_find(test.dedup, &item, sizeof item, 1, &owner);
        unsigned there = status == HF_OK;
        fprintf(explain, "item %u: new %u, forgotten %u, there %u\n", item,
                fresh, back, there);
        if (fresh - back != there || fresh == 0)
            return false;
    }
    return true;
}

TEST(one_is_told_new)
{
    struct schedule_case c = {.name = "dedup",
                              .fibers = FIBERS,
                              .setup = setup,
                              .teardown = teardown,
                              .body = once,
                              .check = told_once};

    snprintf(test.folder, sizeof test.folder, "%s", test_folder());
    schedule_check(&c);
}

/* The window ends while all look: each of two windows has one who is told. */
static void across(void *context, unsigned fiber)
{
    unsigned item = 0;
    uint32_t value = fiber;

    (void)context;
    for (unsigned window = 0; window < 2; window++) {
        enum hf_status status = hf_dedup_add(test.dedup, &item, sizeof item,
                                             1 + window * WINDOW, &value);
        test.fresh[fiber][window] += status == HF_OK;
    }
}

static bool twice(void *context, FILE *explain)
{
    unsigned fresh = 0;

    (void)context;
    for (unsigned fiber = 0; fiber < FIBERS; fiber++)
        fresh += test.fresh[fiber][0] + test.fresh[fiber][1];
    fprintf(explain, "told new %u times", fresh);
    /* One, if all came when the second window had begun. */
    return fresh == 2;
}

TEST(an_expired_item_is_new_again_once)
{
    struct schedule_case c = {.name = "window",
                              .fibers = FIBERS,
                              .setup = setup,
                              .teardown = teardown,
                              .body = across,
                              .check = twice};

    snprintf(test.folder, sizeof test.folder, "%s", test_folder());
    schedule_check(&c);
}
