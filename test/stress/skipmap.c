/* skipmap.c - real threads on an ordered map, some stopped in the middle.
 *
 * tests: also under sanitizers
 */
#include "holdfast/skipmap.h"

#include <pthread.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/random.h"
#include "support/ordered.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

static bool sanitized(void)
{
    const char *san = getenv("HOLDFAST_SAN");
    return san != NULL && *san != '\0';
}

/* Histories: few threads, few keys, all calls; each round is checked. */

#define THREADS 4
#define CALLS   6

static struct {
    struct ordered_scene at;
    struct ordered first; /* all keys are absent */
    struct linear *checker;
    char values[THREADS * CALLS + 1];
    uint64_t round;
    bool strict; /* only takes, each at one instant */
} rounds;

static void round_body(void *context, int index)
{
    static const enum op all[] = {GET,           PUT,
                                  PUT_IF_ABSENT, REPLACE_IF_EQUAL,
                                  REMOVE,        REMOVE_IF_EQUAL,
                                  PUT,           FIRST,
                                  LAST,          FLOOR,
                                  LOWER,         CEILING,
                                  HIGHER,        TAKE_LOOSE};
    struct hf_random random;

    (void)context;
    hf_random_init(&random, rounds.round * THREADS + (uint64_t)index);
    for (unsigned i = 0; i < CALLS; i++) {
        enum op op =
            rounds.strict
                ? TAKE_FIRST
                : all[hf_random_below(&random, sizeof all / sizeof *all)];
        (void)ordered_do(&rounds.at, (unsigned)index, op,
                         hf_random_below(&random, KEYS),
                         1 + (uint64_t)index * CALLS + i,
                         1 + hf_random_below(&random, THREADS * CALLS));
    }
}

static void run_rounds(unsigned count)
{
    const struct linear_model model = ordered_model(&rounds.first);

    rounds.at.values = rounds.values;
    rounds.at.threads = THREADS;
    rounds.at.history = calls_new(2 * THREADS, CALLS);
    rounds.checker = linear_new(&model, 2 * THREADS * CALLS);
    for (rounds.round = 0; rounds.round < count; rounds.round++) {
        CHECK_EQ(hf_skipmap_open(&rounds.at.map, NULL), HF_OK);
        memset(&rounds.first, 0, sizeof rounds.first);
        for (uint64_t key = 0; rounds.strict && key < KEYS; key++) {
            unsigned char at[KEY_BYTES];
            key_make(at, key);
            rounds.first.value[key] = key + 1;
            CHECK_EQ(hf_skipmap_put(rounds.at.map, at, KEY_BYTES,
                                    rounds.values + key + 1, NULL),
                     HF_OK);
        }
        calls_clear(rounds.at.history);
        test_threads(THREADS, round_body, NULL);
        CHECK_EQ(linear_check(rounds.checker, rounds.at.history, stdout),
                 LINEAR_YES);
        hf_skipmap_close(rounds.at.map);
    }
    linear_free(rounds.checker);
    calls_free(rounds.at.history);
}

TEST(all_calls_on_few_keys_are_linearizable)
{
    rounds.strict = false;
    run_rounds(sanitized() ? 500 : 4000);
}

TEST(takers_alone_are_linearizable)
{
    rounds.strict = true;
    run_rounds(sanitized() ? 200 : 1000);
}

/* A long run: what was put is taken once, and values end once. */

#define ALIVE 0x600df00du

struct value {
    struct hf_atomic_u32 state; /* (a) ALIVE until it is freed */
    uint64_t number;            /* (i) the key */
};

static struct {
    struct hf_skipmap *map;
    struct hf_atomic_u64 made;
    struct hf_atomic_u64 freed;
    struct hf_atomic_u64 put_sum; /* of the numbers of keys that came in */
    struct hf_atomic_u64 out_sum; /* of those that left */
    struct hf_atomic_u64 wrong;
    struct hf_atomic_u32 stop;
} table;

static void wrong_unless(bool good)
{
    if (!good)
        hf_u64_add(&table.wrong, 1, __ATOMIC_RELAXED);
}

static void value_free(void *context, void *value)
{
    struct value *at = value;

    (void)context;
    wrong_unless(hf_u32_swap(&at->state, 0, __ATOMIC_RELAXED) == ALIVE);
    hf_u64_add(&table.freed, 1, __ATOMIC_RELAXED);
    hf_free(at);
}

static void value_check(void *context, void *value)
{
    const struct value *at = value;

    wrong_unless(hf_u32_load(&at->state, __ATOMIC_RELAXED) == ALIVE &&
                 at->number == *(uint64_t *)context);
}

static struct value *value_new(uint64_t number)
{
    struct value *value = hf_alloc(sizeof *value);

    value->number = number;
    hf_u32_store(&value->state, ALIVE, __ATOMIC_RELAXED);
    hf_u64_add(&table.made, 1, __ATOMIC_RELAXED);
    return value;
}

static void step_in(const unsigned char *key, uint64_t number, bool replace)
{
    struct value *value = value_new(number);
    void *old = NULL;
    enum hf_status status =
        replace ? hf_skipmap_put(table.map, key, 8, value, &old)
                : hf_skipmap_put_if_absent(table.map, key, 8, value, NULL);

    if (status == HF_OK && old == NULL)
        hf_u64_add(&table.put_sum, number, __ATOMIC_RELAXED);
    if (status == HF_EXISTS)
        value_free(NULL, value);
    wrong_unless(status == HF_OK || (status == HF_EXISTS && !replace));
}

/* Keys go up in a visit; each has its own value. */
struct tour {
    uint64_t next;
    unsigned room;
};

static bool tour_check(void *context, const void *key, size_t key_len,
                       void *value)
{
    struct tour *tour = context;
    uint64_t number = hf_skipmap_u64_of(key);

    wrong_unless(key_len == 8 && number >= tour->next);
    value_check(&number, value);
    tour->next = number + 1;
    return --tour->room > 0;
}

static void step_look(unsigned char *key, uint64_t number)
{
    unsigned char found[8];
    struct hf_skipmap_entry entry = {.key = found, .key_cap = 8};
    struct tour tour = {.next = number, .room = 8};

    (void)hf_skipmap_read(table.map, key, 8, value_check, &number);
    (void)hf_skipmap_visit(table.map, key, 8, NULL, 0, tour_check, &tour);
    wrong_unless(hf_skipmap_enter(table.map) == HF_OK);
    if (hf_skipmap_floor(table.map, key, 8, &entry) == HF_OK) {
        uint64_t other = hf_skipmap_u64_of(found);
        wrong_unless(other <= number);
        value_check(&other, entry.value);
    }
    hf_skipmap_leave(table.map);
}

static void step(struct hf_random *random, uint64_t keys)
{
    unsigned char key[8];
    uint64_t number = hf_random_below(random, keys);
    struct hf_skipmap_entry entry = {.key = key, .key_cap = 8};
    uint64_t what = hf_random_below(random, 8);

    hf_skipmap_key_u64(key, number);
    if (what < 4)
        step_in(key, number, what == 0);
    else if (what < 6 && hf_skipmap_remove(table.map, key, 8, NULL) == HF_OK)
        hf_u64_add(&table.out_sum, number, __ATOMIC_RELAXED);
    else if (what == 6 && hf_skipmap_take_first(table.map, &entry) == HF_OK)
        hf_u64_add(&table.out_sum, hf_skipmap_u64_of(key), __ATOMIC_RELAXED);
    else if (what == 7)
        step_look(key, number);
}

struct work {
    uint64_t keys;
    int steps;
};

static void work(void *context, int index)
{
    const struct work *at = context;
    struct hf_random random;

    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = at->steps; i > 0; i--)
        step(&random, at->keys);
}

static void open_table(void)
{
    const struct hf_skipmap_opts opts = {.free_value = value_free};

    memset(&table, 0, sizeof table);
    CHECK_EQ(hf_skipmap_open(&table.map, &opts), HF_OK);
}

static void close_table(void)
{
    unsigned char key[8];
    struct hf_skipmap_entry entry = {.key = key, .key_cap = 8};
    uint64_t size = hf_skipmap_size(table.map);

    while (hf_skipmap_take_first(table.map, &entry) == HF_OK) {
        table.out_sum.value += hf_skipmap_u64_of(key);
        size--;
    }
    CHECK_EQ(size, 0);
    CHECK_EQ(hf_skipmap_size(table.map), 0);
    hf_skipmap_close(table.map);
    CHECK_EQ(table.wrong.value, 0);
    CHECK_EQ(table.out_sum.value, table.put_sum.value);
    CHECK_EQ(table.freed.value, table.made.value);
}

TEST(nothing_is_lost_or_freed_twice_by_more_threads_than_processors)
{
    struct work at = {.keys = 64, .steps = sanitized() ? 1500 : 60000};

    open_table();
    test_threads(32, work, &at);
    close_table();
    at.keys = 2; /* all meet at one place */
    at.steps /= 2;
    open_table();
    test_threads(8, work, &at);
    close_table();
}

static void *work_until_stopped(void *context)
{
    const struct work *at = context;
    struct hf_random random;

    hf_random_init(&random, test_seed());
    while (!hf_u32_load(&table.stop, __ATOMIC_RELAXED))
        step(&random, at->keys);
    return NULL;
}

/* While a thread is stopped nobody may wait for a lock that it could hold. The
 * system's allocator has none that two threads need for blocks as small as
 * ours; the address sanitizer's has, so there nothing is allocated or freed:
 * the calls only look, and remove fewer keys than ask for a sweep. */
static void work_meanwhile(struct work *at, int round)
{
#ifdef __SANITIZE_ADDRESS__
    for (uint64_t i = 0; i < 500; i++) {
        unsigned char key[8];
        uint64_t number = i % at->keys;
        hf_skipmap_key_u64(key, number);
        step_look(key, number);
        if (i < 16 && hf_skipmap_remove(table.map, key, 8, NULL) == HF_OK)
            hf_u64_add(&table.out_sum, number, __ATOMIC_RELAXED);
    }
    (void)round;
#else
    work(at, round);
#endif
}

TEST(a_stopped_thread_stops_nobody_and_garbage_stays_bounded)
{
    struct work at = {.keys = 16, .steps = sanitized() ? 1000 : 10000};
    struct hf_skipmap_stats stats;
    pthread_t thread;

    open_table();
    stall_init();
    CHECK_EQ(pthread_create(&thread, NULL, work_until_stopped, &at), 0);
    for (int i = 0; i < 40; i++) {
        struct stall *stall = stall_stop(thread);
        work_meanwhile(&at, i);
        hf_skipmap_stats(table.map, &stats);
        stall_resume(stall);
        work(&at, i);
        CHECK(stats.garbage < 1500);
    }
    hf_u32_store(&table.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    close_table();
}
