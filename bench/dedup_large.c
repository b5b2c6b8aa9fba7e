/* dedup_large.c - how hf_dedup does with more items than memory should hold.
 *
 *   dedup_large FOLDER COUNT
 *
 * Adds COUNT items, of which memory holds 2 million, then asks about some of
 * them again. Prints nanoseconds an item and bytes an item. Every answer is
 * checked.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "holdfast/clock.h"
#include "holdfast/dedup.h"

#define IN_MEMORY 2000000
#define ASKED     1000000

static void fail(const char *what)
{
    fprintf(stderr, "dedup_large: %s\n", what);
    exit(1);
}

static uint64_t now_ns(void)
{
    return hf_clock_now_ns(hf_clock_system());
}

int main(int argc, char **argv)
{
    struct hf_dedup_opts opts = {.items_max = IN_MEMORY,
                                 .window_ns = UINT64_C(3600000000000)};
    struct hf_dedup_stats stats;
    struct hf_dedup *dedup;

    if (argc != 3)
        fail("usage: dedup_large FOLDER COUNT");
    opts.folder = argv[1];
    uint64_t count = strtoull(argv[2], NULL, 10);
    opts.disk_max = count;
    if (count < ASKED || hf_dedup_open(&dedup, &opts) != HF_OK)
        fail("cannot be opened, or too few items");
    uint64_t start_ns = now_ns();
    for (uint64_t i = 0; i < count; i++) {
        if (hf_dedup_add(dedup, &i, sizeof i, 1, NULL) != HF_OK)
            fail("a new item was not told new");
    }
    uint64_t added_ns = now_ns();
    for (uint64_t i = 0; i < ASKED; i++) {
        uint64_t item = i * (count / ASKED);
        if (hf_dedup_add(dedup, &item, sizeof item, 1, NULL) != HF_EXISTS)
            fail("a seen item was told new");
    }
    uint64_t asked_ns = now_ns();
    hf_dedup_stats(dedup, &stats);
    printf("dedup new_ns %.1f\n",
           (double)(added_ns - start_ns) / (double)count);
    printf("dedup seen_ns %.1f\n", (double)(asked_ns - added_ns) / ASKED);
    printf("dedup memory_bytes %.2f\n",
           (double)stats.memory_bytes / (double)count);
    printf("dedup disk_bytes %.2f\n", (double)stats.disk_bytes / (double)count);
    printf("dedup filter_errors %.5f\n",
           (double)stats.filter_errors / (double)(count * (stats.runs / 64)));
    hf_dedup_close(dedup);
    return 0;
}
