/* writebehind.c - real threads at one writebehind, with and without a log.
 *
 * tests: also under sanitizers
 *
 * Each thread has a key of its own, whose numbers grow, and puts groups of
 * pairs that all threads share; both halves of a pair get the same value. After
 * every transaction both halves are equal and no number has gone back. At the
 * end every change is accounted for and each key is what was put last.
 */
#include <stdlib.h>

#include "base/random.h"
#include "holdfast/writebehind.h"
#include "support/memory_store.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32
#define PAIRS   24

static struct {
    struct memory_store memory;
    struct hf_writebehind *behind;
    int rounds;
    bool fails;
    struct hf_atomic_u64 errors;
    uint64_t last[THREADS];  /* put by the thread, the last that was taken */
    uint64_t there[THREADS]; /* (store's mutex) seen by the store */
    struct hf_random random; /* (store's mutex) */
} test;

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
}

static void check_store(void *context, struct memory_store *memory)
{
    char left[16], right[16];

    (void)context;
    for (int i = 0; i < PAIRS; i++) {
        snprintf(left, sizeof left, "l%d", i);
        snprintf(right, sizeof right, "r%d", i);
        const char *a = memory_value(memory, left);
        const char *b = memory_value(memory, right);
        expect((a == NULL) == (b == NULL) && (a == NULL || !strcmp(a, b)));
    }
    for (int i = 0; i < THREADS; i++) {
        snprintf(left, sizeof left, "t%d", i);
        const char *own = memory_value(memory, left);
        uint64_t number = own == NULL ? 0 : strtoull(own, NULL, 10);
        expect(number >= test.there[i]);
        test.there[i] = number;
    }
    if (test.fails && hf_random_below(&test.random, 8) == 0) {
        memory->fail = 1;
        memory->status = HF_IO;
        memory->lie = hf_random_below(&test.random, 2) == 0;
    }
}

static void never_dead(void *context, enum hf_status why,
                       const struct hf_store_change *group, size_t count)
{
    (void)context, (void)why, (void)group;
    hf_u64_add(&test.errors, count, __ATOMIC_RELAXED);
}

static void note(void *arg, const void *value, size_t len)
{
    char *text = arg;

    memcpy(text, value, len);
    text[len] = 0;
}

static void put_own(int index, int round, struct hf_random *random)
{
    char key[16], value[16], text[16] = "";
    int key_len = snprintf(key, sizeof key, "t%d", index);
    int value_len = snprintf(value, sizeof value, "%d", round);
    uint64_t deadline_ns =
        hf_random_below(random, 4) == 0 ? HF_NOW : HF_FOREVER;
    enum hf_status status =
        hf_writebehind_put(test.behind, key, (size_t)key_len, value,
                           (size_t)value_len, deadline_ns);

    if (status == HF_OK)
        test.last[index] = (uint64_t)round;
    else
        expect(status == HF_TIMEOUT && deadline_ns == HF_NOW);
    if (test.last[index] == 0)
        return;
    expect(hf_writebehind_get(test.behind, key, (size_t)key_len, note, text) ==
           HF_OK);
    expect(strtoull(text, NULL, 10) == test.last[index]);
}

static void put_pairs(int index, int round, struct hf_random *random)
{
    struct hf_store_change changes[6];
    char keys[6][16], value[16];
    size_t count = 0;
    bool remove = hf_random_below(random, 10) == 0;
    int value_len = snprintf(value, sizeof value, "%d.%d", index, round);

    for (uint64_t n = 1 + hf_random_below(random, 3); n > 0; n--) {
        int pair = (int)hf_random_below(random, PAIRS);
        for (int half = 0; half < 2; half++, count++) {
            snprintf(keys[count], sizeof keys[0], "%c%d", half ? 'r' : 'l',
                     pair);
            changes[count] =
                (struct hf_store_change){.key = keys[count],
                                         .key_len = strlen(keys[count]),
                                         .value = value,
                                         .value_len = (size_t)value_len,
                                         .remove = remove};
        }
    }
    if (hf_random_below(random, 50) == 0)
        expect(hf_writebehind_through(test.behind, changes, count,
                                      HF_FOREVER) == HF_OK);
    else
        expect(hf_writebehind_put_all(test.behind, changes, count,
                                      HF_FOREVER) == HF_OK);
}

static void work(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int round = 1; round <= test.rounds; round++) {
        put_own(index, round, &random);
        if (hf_random_below(&random, 2) == 0)
            put_pairs(index, round, &random);
        if (hf_random_below(&random, 100) == 0)
            expect(hf_writebehind_flush(test.behind, HF_FOREVER) == HF_OK);
    }
}

static void run(const char *log_dir, int rounds, bool fails)
{
    struct hf_writebehind_opts opts = {.store = &test.memory.store,
                                       .dead = never_dead,
                                       .batch_max = 32,
                                       .dirty_max = 64,
                                       .age_ns = 200000,
                                       .pause_ns = 20000,
                                       .pause_max_ns = 200000,
                                       .log_dir = log_dir,
                                       .segment_bytes = 65536,
                                       .log_bytes = 1048576};
    struct hf_writebehind_stats stats;

    memset(&test, 0, sizeof test);
    memory_store_init(&test.memory);
    hf_random_init(&test.random, test_seed());
    test.memory.applied = check_store;
    test.rounds = rounds;
    test.fails = fails;
    CHECK_EQ(hf_writebehind_open(&test.behind, &opts), HF_OK);
    test_threads(THREADS, work, NULL);
    CHECK_EQ(hf_writebehind_flush(test.behind, HF_FOREVER), HF_OK);
    hf_writebehind_stats(test.behind, &stats);
    CHECK_EQ(stats.dirty, 0);
    CHECK_EQ(stats.dirty_bytes, 0);
    CHECK_EQ(stats.changes, stats.coalesced + stats.flushed);
    CHECK(stats.coalesced > 0 && stats.merged > 0);
    CHECK_EQ(hf_writebehind_close(test.behind, HF_FOREVER), HF_OK);
    CHECK_EQ(hf_u64_load(&test.errors, __ATOMIC_RELAXED), 0);
    for (int i = 0; i < THREADS; i++) {
        char key[16];
        snprintf(key, sizeof key, "t%d", i);
        const char *value = memory_value(&test.memory, key);
        CHECK_EQ(value == NULL ? 0 : strtoull(value, NULL, 10), test.last[i]);
    }
}

static int scaled(int rounds)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && san[0] != 0 ? rounds / 10 : rounds;
}

TEST(many_threads_and_a_small_bound)
{
    run(NULL, scaled(3000), false);
}

TEST(many_threads_and_a_store_that_fails)
{
    run(NULL, scaled(1500), true);
}

TEST(many_threads_and_a_log)
{
    char folder[512];

    snprintf(folder, sizeof folder, "%s/log", test_folder());
    run(folder, scaled(300), true);
}
