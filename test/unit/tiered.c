/* Tests of holdfast/tiered.h without Redis; test/system/tiered.c has one. */
#include "holdfast/tiered.h"

#include "base/atomic.h"
#include "base/memory.h"
#include "base/thread.h"
#include "holdfast/inspect.h"
#include "holdfast/latch.h"
#include "holdfast/writebehind.h"
#include "support/clock.h"
#include "support/memory_store.h"
#include "support/test.h"
#include "support/threads.h"

#define SECOND UINT64_C(1000000000)

static struct {
    struct memory_store memory;
    struct hf_tiered *tiered;
} test;

static void open_with(struct hf_tiered_opts opts)
{
    memory_store_init(&test.memory);
    opts.store = &test.memory.store;
    test.tiered = NULL;
    CHECK_EQ(hf_tiered_open(&test.tiered, &opts), HF_OK);
}

static void put(const char *key, const char *value)
{
    CHECK_EQ(hf_tiered_put(test.tiered, key, strlen(key), value, strlen(value),
                           HF_FOREVER),
             HF_OK);
}

static enum hf_status get(const char *key, char out[64])
{
    size_t len = 0;
    enum hf_status status =
        hf_tiered_get(test.tiered, key, strlen(key), HF_FOREVER, out, 63, &len);

    out[status == HF_OK ? len : 0] = '\0';
    return status;
}

static void expect(const char *key, const char *value)
{
    char out[64];

    CHECK_EQ(get(key, out), HF_OK);
    CHECK_TEXT(out, strlen(out), value);
}

static struct hf_tiered_stats stats(void)
{
    struct hf_tiered_stats out;

    hf_tiered_stats(test.tiered, &out);
    return out;
}

TEST(a_value_comes_nearer_with_each_read)
{
    open_with((struct hf_tiered_opts){.name = "levels"});
    put("k", "v");
    expect("k", "v"); /* from the store */
    CHECK_EQ(stats().store_reads, 1);
    expect("k", "v"); /* from L2 */
    CHECK_EQ(stats().l2_hits, 1);
    expect("k", "v"); /* from L1 */
    expect("k", "v");
    CHECK_EQ(stats().l1_hits, 2);
    CHECK_EQ(stats().l2_hits, 1);
    CHECK_EQ(stats().store_reads, 1);
    CHECK_EQ(stats().l2_count, 1);
    CHECK(stats().leased);
    char text[4096];
    CHECK(hf_inspect_text(HF_INSPECT_TEXT, text, sizeof text) < sizeof text);
    CHECK(strstr(text, "tiered") != NULL && strstr(text, "levels") != NULL);
    hf_tiered_close(test.tiered);
}

TEST(a_change_is_seen_by_the_next_read)
{
    open_with((struct hf_tiered_opts){0});
    for (int i = 0; i < 20; i++) {
        char value[8];
        snprintf(value, sizeof value, "v%d", i);
        put("k", value);
        for (int reads = 0; reads < 3; reads++)
            expect("k", value);
    }
    CHECK_EQ(hf_tiered_delete(test.tiered, "k", 1, HF_FOREVER), HF_OK);
    char out[64];
    CHECK_EQ(get("k", out), HF_NOTFOUND);
    CHECK_EQ(stats().changes, 21);
    hf_tiered_close(test.tiered);
}

TEST(invalidate_makes_others_changes_of_the_store_seen)
{
    struct hf_store_change change = {
        .key = "k", .key_len = 1, .value = "new", .value_len = 3};

    open_with((struct hf_tiered_opts){0});
    put("k", "old");
    expect("k", "old");
    expect("k", "old");
    CHECK_EQ(memory_apply(&test.memory, &change, 1), HF_OK);
    expect("k", "old"); /* nobody said so */
    CHECK_EQ(hf_tiered_invalidate(test.tiered, "k", 1, HF_FOREVER), HF_OK);
    expect("k", "new");
    hf_tiered_close(test.tiered);
}

TEST(what_has_lived_its_time_is_read_again)
{
    struct test_clock clock = {.now_ns = 1000};

    open_with(
        (struct hf_tiered_opts){.ttl_ns = SECOND, .clock = test_clock(&clock)});
    put("k", "v");
    for (int i = 0; i < 3; i++)
        expect("k", "v");
    test_clock_advance(&clock, SECOND - 1);
    expect("k", "v");
    CHECK_EQ(stats().store_reads, 1);
    test_clock_advance(&clock, 1);
    expect("k", "v");
    CHECK_EQ(stats().store_reads, 2);
    hf_tiered_close(test.tiered);
}

TEST(that_there_is_none_is_kept_if_asked)
{
    struct test_clock clock = {.now_ns = 1000};
    char out[64];

    open_with((struct hf_tiered_opts){.negative_ttl_ns = SECOND,
                                      .clock = test_clock(&clock)});
    CHECK_EQ(get("k", out), HF_NOTFOUND);
    CHECK_EQ(get("k", out), HF_NOTFOUND);
    CHECK_EQ(stats().store_reads, 1);
    CHECK_EQ(stats().l2_hits, 1);
    put("k", "v");
    expect("k", "v");
    hf_tiered_close(test.tiered);
}

TEST(one_hit_in_n_goes_to_l1)
{
    open_with((struct hf_tiered_opts){.promote = 4});
    put("k", "v");
    expect("k", "v");
    expect("k", "v"); /* the first hit of L2 is kept near */
    expect("k", "v");
    CHECK_EQ(stats().l1_hits, 1);
    put("k", "w"); /* the next three are not */
    expect("k", "w");
    for (int i = 0; i < 3; i++)
        expect("k", "w");
    CHECK_EQ(stats().l1_hits, 1);
    hf_tiered_close(test.tiered);

    open_with((struct hf_tiered_opts){.no_l1 = true});
    put("k", "v");
    for (int i = 0; i < 5; i++)
        expect("k", "v");
    CHECK_EQ(stats().l1_hits, 0);
    hf_tiered_close(test.tiered);
}

#define HITTERS 60

/* Two reads; all threads are there until the last has made its own. */
static void hit_twice(void *context, int index)
{
    char out[64];

    (void)index;
    (void)get("k", out);
    (void)get("k", out);
    (void)hf_latch_count_down(context, 1);
    (void)hf_latch_wait(context, HF_FOREVER);
}

/* Many threads that come for the first time do not all keep it. */
TEST(one_hit_in_n_of_many_threads_goes_to_l1)
{
    struct hf_latch latch;

    open_with((struct hf_tiered_opts){.promote = 10});
    put("k", "v");
    expect("k", "v"); /* now L2 has it */
    CHECK_EQ(hf_latch_init(&latch, HITTERS, NULL), HF_OK);
    test_threads(HITTERS, hit_twice, &latch);
    hf_latch_destroy(&latch);
    CHECK_EQ(stats().l1_hits, HITTERS / 10);
    CHECK_EQ(stats().l2_hits, 2 * HITTERS - HITTERS / 10);
    hf_tiered_close(test.tiered);
}

TEST(a_small_l1_serves_many_keys)
{
    open_with((struct hf_tiered_opts){.l1_count = 2});
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 50; i++) {
            char key[8], value[8];
            snprintf(key, sizeof key, "k%d", i);
            snprintf(value, sizeof value, "v%d.%d", i, round);
            put(key, value);
            expect(key, value);
            expect(key, value);
            expect(key, value);
        }
    }
    hf_tiered_close(test.tiered);
}

/* Reads another key, and the same, while it looks at a value of L1. */
static void read_more(void *arg, const void *value, size_t len)
{
    CHECK_TEXT(value, len, "value-of-a");
    expect("b", "b");
    expect("c", "c");
    expect("b", "b");
    put("a", "changed");
    CHECK_TEXT(value, len, "value-of-a");
    ++*(int *)arg;
}

TEST(a_reader_may_call_again)
{
    int calls = 0;

    open_with((struct hf_tiered_opts){.l1_count = 2});
    put("a", "value-of-a");
    put("b", "b");
    put("c", "c");
    for (int i = 0; i < 3; i++) {
        expect("a", "value-of-a");
        expect("b", "b");
    }
    for (int i = 0; i < 3; i++) {
        put("a", "value-of-a");
        expect("a", "value-of-a");
        expect("a", "value-of-a");
        CHECK_EQ(
            hf_tiered_read(test.tiered, "a", 1, HF_FOREVER, read_more, &calls),
            HF_OK);
        expect("a", "changed");
    }
    CHECK_EQ(calls, 3);
    hf_tiered_close(test.tiered);
}

TEST(a_store_that_fails_is_told_and_nothing_old_is_kept)
{
    char out[64];
    bool written = true;
    struct hf_store_change change = {
        .key = "k", .key_len = 1, .value = "new", .value_len = 3};

    open_with((struct hf_tiered_opts){0});
    put("k", "v");
    test.memory.reads = HF_IO;
    CHECK_EQ(get("k", out), HF_IO);
    test.memory.reads = HF_OK;
    expect("k", "v");
    test.memory.fail = 1;
    test.memory.status = HF_FULL;
    CHECK_EQ(hf_tiered_apply(test.tiered, &change, 1, HF_FOREVER, &written),
             HF_FULL);
    CHECK(!written);
    expect("k", "v");
    CHECK_EQ(hf_tiered_apply(test.tiered, &change, 1, HF_FOREVER, &written),
             HF_OK);
    CHECK(written);
    expect("k", "new");
    hf_tiered_close(test.tiered);
}

/* HF_TIMEOUT is a store's word too: nobody asks it again and again. */
TEST(a_store_that_is_late_is_told_once)
{
    char out[64];

    open_with((struct hf_tiered_opts){0});
    put("k", "v");
    test.memory.reads = HF_TIMEOUT;
    CHECK_EQ(get("k", out), HF_TIMEOUT);
    CHECK_EQ(stats().store_reads, 1);
    test.memory.reads = HF_OK;
    expect("k", "v");
    hf_tiered_close(test.tiered);
}

#define CROWD 24 /* more than have their records from the start */

struct crowd {
    struct hf_atomic_u32 there;
    enum hf_status answers[CROWD];
};

/* In threads whose first call this is, and which get no memory. */
static void invalidate_without_memory(void *context, int index)
{
    struct crowd *crowd = context;

    /* All at once, so that each has a number of its own. */
    (void)hf_thread_slot();
    hf_u32_add(&crowd->there, 1, __ATOMIC_SEQ_CST);
    while (hf_u32_load(&crowd->there, __ATOMIC_SEQ_CST) < CROWD)
        hf_thread_yield();
    hf_memory_fail_after(0);
    crowd->answers[index] =
        hf_tiered_invalidate(test.tiered, "k", 1, HF_FOREVER);
    hf_memory_fail_never();
}

TEST(a_change_without_memory_does_not_say_that_all_is_well)
{
    struct hf_store_change change = {
        .key = "k", .key_len = 1, .value = "new", .value_len = 3};
    struct crowd crowd = {.answers = {HF_OK}};
    int refused = 0;

    open_with((struct hf_tiered_opts){0});
    put("k", "old");
    CHECK_EQ(memory_apply(&test.memory, &change, 1), HF_OK);
    test_threads(CROWD, invalidate_without_memory, &crowd);
    for (int i = 0; i < CROWD; i++) {
        CHECK(crowd.answers[i] == HF_OK || crowd.answers[i] == HF_NOMEM);
        refused += crowd.answers[i] == HF_NOMEM;
    }
    CHECK(refused > 0);
    hf_tiered_close(test.tiered);
}

/* A load that does not end, one who waits for it, and one who shuts. */
static struct {
    struct hf_atomic_u32 loading, left;
    enum hf_status answers[2];
} shutting;

static enum hf_status stuck_read(void *context, const void *key, size_t key_len,
                                 void (*found)(void *arg, const void *value,
                                               size_t value_len),
                                 void *arg)
{
    (void)context, (void)key, (void)key_len;
    hf_u32_store(&shutting.loading, 1, __ATOMIC_SEQ_CST);
    while (hf_u32_load(&shutting.left, __ATOMIC_SEQ_CST) == 0)
        hf_thread_yield();
    found(arg, "v", 1);
    return HF_OK;
}

static void read_and_shut(void *context, int index)
{
    char out[64];

    (void)context;
    while (index > 0 && hf_u32_load(&shutting.loading, __ATOMIC_SEQ_CST) == 0)
        hf_thread_yield();
    if (index == 2) {
        hf_tiered_shutdown(test.tiered);
        return;
    }
    shutting.answers[index] = get("k", out);
    if (index == 1)
        hf_u32_store(&shutting.left, 1, __ATOMIC_SEQ_CST);
}

TEST(who_waits_leaves_when_it_is_shut)
{
    struct hf_store stuck = {.read = stuck_read, .apply = memory_apply};
    struct hf_tiered_opts opts = {.store = &stuck};
    struct hf_tiered_key key = {"k", 1};
    struct hf_store_change change = {.key = "k", .key_len = 1};
    bool written = true;
    char out[64];

    CHECK_EQ(hf_tiered_open(&test.tiered, &opts), HF_OK);
    test_threads(3, read_and_shut, NULL);
    CHECK_EQ(shutting.answers[0], HF_OK);
    CHECK_EQ(shutting.answers[1], HF_CLOSED);
    hf_tiered_shutdown(test.tiered);
    CHECK_EQ(get("k", out), HF_CLOSED);
    CHECK_EQ(hf_tiered_put(test.tiered, "k", 1, "v", 1, HF_NOW), HF_CLOSED);
    CHECK_EQ(hf_tiered_apply(test.tiered, &change, 1, HF_NOW, &written),
             HF_CLOSED);
    CHECK(!written);
    CHECK_EQ(hf_tiered_invalidate(test.tiered, "k", 1, HF_NOW), HF_CLOSED);
    CHECK_EQ(hf_tiered_warm(test.tiered, &key, 1, NULL, HF_FOREVER, NULL),
             HF_CLOSED);
    hf_tiered_close(test.tiered);
    hf_tiered_shutdown(NULL);
}

TEST(get_tells_how_long_a_value_is)
{
    char out[4];
    size_t len = 0;

    open_with((struct hf_tiered_opts){0});
    put("k", "12345");
    put("none", "");
    CHECK_EQ(hf_tiered_get(test.tiered, "k", 1, HF_FOREVER, out, 4, &len),
             HF_MORE);
    CHECK_EQ(len, 5);
    CHECK_EQ(hf_tiered_get(test.tiered, "k", 1, HF_FOREVER, NULL, 0, &len),
             HF_MORE);
    CHECK_EQ(hf_tiered_get(test.tiered, "none", 4, HF_FOREVER, NULL, 0, &len),
             HF_OK);
    CHECK_EQ(len, 0);
    hf_tiered_close(test.tiered);
}

TEST(warm_up_reads_what_is_there)
{
    char keys[40][8];
    struct hf_tiered_key list[40];
    size_t loaded = 0;

    open_with((struct hf_tiered_opts){0});
    for (int i = 0; i < 40; i++) {
        snprintf(keys[i], sizeof keys[i], "k%d", i);
        list[i] = (struct hf_tiered_key){keys[i], strlen(keys[i])};
        if (i % 2 == 0)
            put(keys[i], "v");
    }
    CHECK_EQ(hf_tiered_warm(test.tiered, list, 40, NULL, HF_FOREVER, &loaded),
             HF_OK);
    CHECK_EQ(loaded, 20);
    CHECK_EQ(stats().l2_count, 20);
    CHECK_EQ(hf_tiered_warm(test.tiered, list, 40, NULL, HF_NOW, &loaded),
             HF_TIMEOUT);
    CHECK_EQ(hf_tiered_warm(test.tiered, NULL, 0, NULL, HF_FOREVER, &loaded),
             HF_OK);
    hf_tiered_close(test.tiered);
}

static void no_dead(void *context, enum hf_status why,
                    const struct hf_store_change *group, size_t count)
{
    (void)context, (void)why, (void)group, (void)count;
}

static void note(void *arg, const void *value, size_t len)
{
    snprintf(arg, 64, "%.*s", (int)len, (const char *)value);
}

TEST(write_behind_stands_on_it)
{
    struct hf_writebehind *behind;
    struct hf_store levels;
    char seen[64] = "";

    open_with((struct hf_tiered_opts){0});
    put("k", "old");
    expect("k", "old");
    expect("k", "old");
    CHECK_EQ(hf_tiered_as_store(test.tiered, &levels), HF_OK);
    struct hf_writebehind_opts opts = {
        .store = &levels, .dead = no_dead, .age_ns = HF_FOREVER};
    CHECK_EQ(hf_writebehind_open(&behind, &opts), HF_OK);
    CHECK_EQ(hf_writebehind_put(behind, "k", 1, "new", 3, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_writebehind_get(behind, "k", 1, note, seen), HF_OK);
    CHECK_TEXT(seen, strlen(seen), "new");
    expect("k", "old"); /* it is not in the store yet */
    CHECK_EQ(hf_writebehind_flush(behind, HF_FOREVER), HF_OK);
    expect("k", "new");
    CHECK_EQ(hf_writebehind_close(behind, HF_FOREVER), HF_OK);
    hf_tiered_close(test.tiered);
}

TEST(every_allocation_may_fail)
{
    bool failed = true;

    for (uint64_t after = 0; failed; after++) {
        enum hf_status status;
        char out[64];
        size_t len = 0;
        memory_store_init(&test.memory);
        struct hf_tiered_opts opts = {.store = &test.memory.store};
        test.tiered = NULL;
        hf_memory_fail_after(after);
        status = hf_tiered_open(&test.tiered, &opts);
        if (status == HF_OK)
            status = hf_tiered_put(test.tiered, "k", 1, "value", 5, HF_FOREVER);
        for (int i = 0; i < 3 && status == HF_OK; i++)
            status =
                hf_tiered_get(test.tiered, "k", 1, HF_FOREVER, out, 64, &len);
        bool short_of_l1 = test.tiered != NULL && stats().l1_hits == 0;
        hf_memory_fail_never();
        failed = status != HF_OK || short_of_l1;
        CHECK(status == HF_OK || status == HF_NOMEM);
        if (test.tiered != NULL) {
            put("k", "value");
            expect("k", "value");
        }
        hf_tiered_close(test.tiered);
    }
}

TEST(bad_input_is_refused)
{
    struct hf_store half = {.read = memory_read};
    char long_prefix[100];
    size_t len;

    memset(long_prefix, 'p', 99);
    long_prefix[99] = '\0';
    open_with((struct hf_tiered_opts){0});
    struct hf_tiered_opts bad[] = {
        {.store = NULL},
        {.store = &half},
        {.store = &test.memory.store, .l1_count = 3},
        {.store = &test.memory.store, .l1_count = 1},
        {.store = &test.memory.store, .l1_count = 2 * HF_TIERED_L1_MAX},
        {.store = &test.memory.store, .l2_bytes = UINT64_MAX},
        {.store = &test.memory.store, .ttl_ns = 1},
        {.store = &test.memory.store, .prefix = ""},
        {.store = &test.memory.store, .prefix = long_prefix},
        {.store = &test.memory.store, .lease_ms = HF_TIERED_LEASE_MIN - 1},
        {.store = &test.memory.store, .lease_ms = HF_TIERED_LEASE_MAX + 1},
        {.store = &test.memory.store, .connections = 100000},
        {.store = &test.memory.store, .timeout_ms = UINT32_MAX},
        {.store = &test.memory.store, .load_ms = UINT32_MAX},
    };
    struct hf_tiered *other = NULL;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        CHECK_EQ(hf_tiered_open(&other, &bad[i]), HF_INVALID);
    CHECK_EQ(hf_tiered_open(&other, NULL), HF_INVALID);
    CHECK_EQ(hf_tiered_open(NULL, &bad[0]), HF_INVALID);
    CHECK(other == NULL);
    struct hf_tiered *t = test.tiered;
    CHECK_EQ(hf_tiered_read(t, "k", 1, HF_NOW, NULL, NULL), HF_INVALID);
    CHECK_EQ(hf_tiered_read(t, NULL, 1, HF_NOW, note, NULL), HF_INVALID);
    CHECK_EQ(hf_tiered_read(t, "k", 0, HF_NOW, note, NULL), HF_INVALID);
    CHECK_EQ(hf_tiered_read(NULL, "k", 1, HF_NOW, note, NULL), HF_INVALID);
    CHECK_EQ(hf_tiered_get(t, "k", 1, HF_NOW, NULL, 1, &len), HF_INVALID);
    CHECK_EQ(hf_tiered_get(t, "k", 1, HF_NOW, NULL, 0, NULL), HF_INVALID);
    CHECK_EQ(hf_tiered_put(t, "k", 1, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_put(t, "", 0, "v", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_put(NULL, "k", 1, "v", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_delete(t, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_apply(t, NULL, 1, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_tiered_apply(t, NULL, 0, HF_NOW, NULL), HF_OK);
    CHECK_EQ(hf_tiered_invalidate(t, NULL, 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_invalidate(NULL, "k", 1, HF_NOW), HF_INVALID);
    CHECK_EQ(hf_tiered_warm(NULL, NULL, 0, NULL, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_tiered_warm(t, NULL, 1, NULL, HF_NOW, NULL), HF_INVALID);
    CHECK_EQ(hf_tiered_as_store(t, NULL), HF_INVALID);
    CHECK_EQ(hf_tiered_as_store(NULL, &half), HF_INVALID);
    hf_tiered_stats(NULL, NULL);
    hf_tiered_stats(t, NULL);
    CHECK_EQ(test.memory.applies, 0);
    hf_tiered_close(t);
    hf_tiered_close(NULL);
}
