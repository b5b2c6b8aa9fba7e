/* Stress of holdfast/tiered.h on real threads, without Redis.
 *
 * tests: also under sanitizers
 */
#include "holdfast/tiered.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "support/memory_store.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32
#define WRITERS 2
#define KEYS    8u

static struct {
    struct memory_store memory;
    struct hf_tiered *tiered;
    struct hf_atomic_u64 floors[KEYS];
    struct hf_atomic_u64 stale;
    struct hf_atomic_u64 failed;
    unsigned rounds;
} test;

static enum hf_status put(unsigned key, uint64_t value)
{
    char name = (char)('a' + key), text[MEMORY_BYTES];
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)value);

    return hf_tiered_put(test.tiered, &name, 1, text, (size_t)len, HF_FOREVER);
}

/* Each writer has its own keys, so that their numbers only grow. */
static void run(void *context, int index)
{
    (void)context;
    for (uint64_t i = 1; i <= test.rounds; i++) {
        unsigned key = (unsigned)(i % KEYS);
        char name = (char)('a' + key), text[MEMORY_BYTES] = "";
        size_t len = 0;
        if (index < WRITERS && key % WRITERS == (unsigned)index) {
            if (put(key, i) != HF_OK)
                hf_u64_add(&test.failed, 1, __ATOMIC_SEQ_CST);
            hf_u64_store(&test.floors[key], i, __ATOMIC_SEQ_CST);
            continue;
        }
        uint64_t least = hf_u64_load(&test.floors[key], __ATOMIC_SEQ_CST);
        if (hf_tiered_get(test.tiered, &name, 1, HF_FOREVER, text,
                          sizeof text - 1, &len) != HF_OK)
            hf_u64_add(&test.failed, 1, __ATOMIC_SEQ_CST);
        else if (strtoull(text, NULL, 10) < least)
            hf_u64_add(&test.stale, 1, __ATOMIC_SEQ_CST);
    }
}

TEST(nobody_reads_what_a_change_replaced)
{
    struct hf_tiered_opts opts = {.store = &test.memory.store, .l1_count = 4};
    const char *kind = getenv("HOLDFAST_SAN");
    struct hf_tiered_stats stats;

    memory_store_init(&test.memory);
    test.rounds = kind != NULL && kind[0] != '\0' ? 5000 : 50000;
    CHECK_EQ(hf_tiered_open(&test.tiered, &opts), HF_OK);
    for (unsigned key = 0; key < KEYS; key++)
        CHECK_EQ(put(key, 0), HF_OK);
    test_threads(THREADS, run, NULL);
    hf_tiered_stats(test.tiered, &stats);
    CHECK_EQ(test.failed.value, 0);
    CHECK_EQ(test.stale.value, 0);
    CHECK(stats.l1_hits > 0 && stats.l2_hits > 0);
    hf_tiered_close(test.tiered);
}
