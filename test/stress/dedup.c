/* Stress of holdfast/dedup.h on real threads.
 *
 * tests: also under sanitizers
 */
#include "holdfast/dedup.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32
#define WINDOWS 5u
#define WINDOW  1000u

static struct {
    struct hf_dedup *dedup;
    uint64_t items;
    struct hf_atomic_u32 *told; /* how often each was told new */
    struct hf_atomic_u64 wrong;
} test;

/* All threads add all items, each in an order of its own, in every window. The
 * threads' times differ a little, as they do on real machines. */
static void add_all(void *context, int index)
{
    uint64_t step = 2 * (uint64_t)index + 1;

    for (uint64_t i = 0; i < test.items; i++) {
        uint64_t item = (i * step + (uint64_t)index) % test.items;
        uint64_t now_ns =
            *(uint64_t *)context + ((uint64_t)index * 7 + i) % (WINDOW / 2);
        uint64_t value = item;
        enum hf_status status =
            hf_dedup_add(test.dedup, &item, sizeof item, now_ns, &value);
        if (status == HF_OK)
            hf_u32_add(&test.told[item], 1, __ATOMIC_RELAXED);
        if ((status != HF_OK && status != HF_EXISTS) || value != item)
            hf_u64_add(&test.wrong, 1, __ATOMIC_RELAXED);
    }
}

static void each_window_tells_one(struct hf_dedup_opts opts, uint64_t items)
{
    struct hf_dedup_stats stats;

    opts.window_ns = WINDOW;
    opts.value_bytes = sizeof(uint64_t);
    test.items = items;
    test.told = calloc(items, sizeof test.told[0]);
    test.wrong.value = 0;
    CHECK(test.told != NULL);
    CHECK_EQ(hf_dedup_open(&test.dedup, &opts), HF_OK);
    for (uint64_t window = 0; window < WINDOWS; window++) {
        /* Far enough apart that all of the last one has expired. */
        uint64_t start_ns = 1 + window * 2 * WINDOW;
        test_threads(THREADS, add_all, &start_ns);
        for (uint64_t i = 0; i < items; i++)
            CHECK_EQ(test.told[i].value, window + 1);
    }
    CHECK_EQ(test.wrong.value, 0);
    hf_dedup_stats(test.dedup, &stats);
    CHECK_EQ(stats.added, WINDOWS * items);
    CHECK_EQ(stats.added + stats.seen, WINDOWS * items * THREADS);
    hf_dedup_close(test.dedup);
    free(test.told);
}

static uint64_t scaled(uint64_t items)
{
    const char *kind = getenv("HOLDFAST_SAN");

    return kind != NULL && kind[0] != '\0' ? items / 8 | 1 : items | 1;
}

TEST(one_of_32_threads_is_told_new_in_every_window)
{
    each_window_tells_one((struct hf_dedup_opts){0}, scaled(20000));
}

TEST(also_with_most_items_on_disk)
{
    each_window_tells_one((struct hf_dedup_opts){.items_max = 512,
                                                 .shards = 4,
                                                 .folder = test_folder()},
                          scaled(4000));
}
