/* tiered.c - reads beside changes, step by step: what a change replaced is
 * not read once the change has returned. */
#include "holdfast/tiered.h"

#include "base/atomic.h"
#include "support/memory_store.h"
#include "support/schedule.h"
#include "support/test.h"

#define CHANGES 3u

static struct {
    struct memory_store memory;
    struct hf_tiered *tiered;
    struct hf_atomic_u64 floor; /* the last value whose change returned */
} test;

static void setup(void *context, uint64_t seed)
{
    (void)context;
    memory_store_init(&test.memory);
    struct hf_tiered_opts opts = {
        .store = &test.memory.store, .l1_count = 2, .no_l1 = seed % 4 == 0};
    struct hf_store_change change = {
        .key = "k", .key_len = 1, .value = "0", .value_len = 1};
    if (hf_tiered_open(&test.tiered, &opts) != HF_OK ||
        memory_apply(&test.memory, &change, 1) != HF_OK)
        test_fail(__FILE__, __LINE__, "no tiered");
    test.floor.value = 0;
}

static void teardown(void *context)
{
    (void)context;
    hf_tiered_close(test.tiered);
}

static void body(void *context, unsigned fiber)
{
    (void)context;
    for (uint64_t i = 1; fiber == 0 && i <= CHANGES; i++) {
        char digit = (char)('0' + i);
        if (hf_tiered_put(test.tiered, "k", 1, &digit, 1, HF_FOREVER) != HF_OK)
            schedule_wrong("put failed");
        hf_u64_store(&test.floor, i, __ATOMIC_SEQ_CST);
    }
    for (unsigned i = 0; fiber > 0 && i < 4; i++) {
        uint64_t least = hf_u64_load(&test.floor, __ATOMIC_SEQ_CST);
        char digit = 0;
        size_t len;
        enum hf_status status =
            hf_tiered_get(test.tiered, "k", 1, HF_FOREVER, &digit, 1, &len);
        uint64_t value = (uint64_t)(digit - '0');
        if (status != HF_OK)
            schedule_wrong("get says %s", hf_status_text(status));
        if (value < least || value > CHANGES)
            schedule_wrong("%llu read after %llu", (unsigned long long)value,
                           (unsigned long long)least);
    }
}

TEST(nobody_reads_what_a_change_replaced)
{
    struct schedule_case c = {.name = "tiered",
                              .fibers = 3,
                              .setup = setup,
                              .teardown = teardown,
                              .body = body};

    schedule_check(&c);
}
