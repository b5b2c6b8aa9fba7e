/* map.c - the concurrent map under real threads.
 *
 * tests: also under sanitizers
 */
#include "holdfast/map.h"

#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/random.h"
#include "holdfast/clock.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/server.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define DEADLINE_MS 60000

static uint64_t scaled(uint64_t plain, uint64_t sanitized)
{
    return test_is_sanitized() ? sanitized : plain;
}

static struct hf_map *open_map(const struct hf_map_opts *opts)
{
    struct hf_map *map = NULL;
    CHECK_EQ(hf_map_open(&map, opts), HF_OK);
    return map;
}

static void *number(uint64_t value)
{
    return (void *)(uintptr_t)value;
}

static void *add_numbers(void *context, void *old, void *value)
{
    (void)context;
    return number((uintptr_t)old + (uintptr_t)value);
}

/* ---- Histories: is there an order that explains all answers? ---- */

#define ROUND_THREADS 4
#define ROUND_CALLS   64
#define ROUND_KEYS    12 /* the map starts with room for one: it grows */

struct rounds {
    struct hf_map *map;
    struct calls *history;
    struct linear *checker;
    pthread_barrier_t gate;
    uint64_t count;
    uint64_t good; /* of thread 0 */
};

static enum hf_status make_number(void *context, const void *key, size_t len,
                                  void **value)
{
    (void)key;
    (void)len;
    *value = *(void **)context;
    return HF_OK;
}

static void round_call(struct rounds *rounds, unsigned thread,
                       struct hf_random *random, uint64_t argument)
{
    static const uint32_t ops[] = {
        MODEL_GET,           MODEL_GET,
        MODEL_GET,           MODEL_SWAP,
        MODEL_SET_IF_ABSENT, MODEL_SET_IF_PRESENT,
        MODEL_REMOVE,        MODEL_REMOVE_IF_EQUAL,
        MODEL_ADD,           MODEL_REPLACE_IF_EQUAL,
    };
    struct hf_map *map = rounds->map;
    uint32_t op = ops[hf_random_below(random, sizeof ops / sizeof ops[0])];
    uint64_t key = hf_random_below(random, ROUND_KEYS);
    bool makes = hf_random_below(random, 2) == 0;
    void *value = NULL;
    void *given = number(argument);
    enum hf_status status = HF_OK;

    if (op == MODEL_REPLACE_IF_EQUAL || op == MODEL_REMOVE_IF_EQUAL) {
        if (hf_map_get(map, &key, 8, &value) == HF_OK)
            argument = (uintptr_t)value;
    }
    struct call *call = calls_begin(rounds->history, thread, op, key, argument);
    switch (op) {
    case MODEL_GET:
        status = hf_map_get(map, &key, 8, &value);
        break;
    case MODEL_SWAP:
        status = hf_map_put(map, &key, 8, given, &value);
        status = value == NULL ? HF_NOTFOUND : status;
        break;
    case MODEL_SET_IF_ABSENT:
        status = makes ? hf_map_compute_if_absent(map, &key, 8, make_number,
                                                  &given, HF_FOREVER, &value)
                       : hf_map_put_if_absent(map, &key, 8, given, &value);
        break;
    case MODEL_SET_IF_PRESENT:
        status =
            hf_map_compute_if_present(map, &key, 8, make_number, &given, NULL);
        value = (void *)UINTPTR_MAX; /* not told */
        break;
    case MODEL_REMOVE:
        status = hf_map_remove(map, &key, 8, &value);
        break;
    case MODEL_REMOVE_IF_EQUAL:
        status = hf_map_remove_if_equal(map, &key, 8, number(argument));
        value = (void *)UINTPTR_MAX;
        break;
    case MODEL_REPLACE_IF_EQUAL:
        call->argument2 = (uintptr_t)given;
        status = hf_map_replace_if_equal(map, &key, 8, number(argument), given);
        value = (void *)UINTPTR_MAX;
        break;
    default:
        status = hf_map_merge(map, &key, 8, given, add_numbers, NULL, &value);
    }
    calls_end(rounds->history, call, status, (uintptr_t)value);
}

static void round_body(void *context, int index)
{
    struct rounds *rounds = context;
    struct hf_random random;

    hf_random_init(&random, test_seed() + (unsigned)index);
    for (uint64_t round = 0; round < rounds->count; round++) {
        if (index == 0) {
            struct hf_map_opts opts = {.capacity = 1};
            if (hf_map_open(&rounds->map, &opts) != HF_OK)
                abort();
        }
        pthread_barrier_wait(&rounds->gate);
        for (unsigned i = 0; i < ROUND_CALLS; i++)
            round_call(rounds, (unsigned)index, &random,
                       (uint64_t)index * 1000 + i + 1);
        pthread_barrier_wait(&rounds->gate);
        if (index != 0)
            continue;
        rounds->good += linear_check(rounds->checker, rounds->history,
                                     stdout) == LINEAR_YES;
        calls_clear(rounds->history);
        hf_map_close(rounds->map);
    }
}

TEST(every_history_has_an_order)
{
    struct linear_model model = model_map();
    static struct rounds rounds;

    rounds.history = calls_new(ROUND_THREADS, ROUND_CALLS);
    rounds.checker = linear_new(&model, ROUND_THREADS * ROUND_CALLS);
    rounds.count = scaled(3000, 300);
    CHECK_EQ(pthread_barrier_init(&rounds.gate, NULL, ROUND_THREADS), 0);
    test_threads(ROUND_THREADS, round_body, &rounds);
    CHECK_EQ(rounds.good, rounds.count);
    pthread_barrier_destroy(&rounds.gate);
    linear_free(rounds.checker);
    calls_free(rounds.history);
}

/* ---- Long runs: nothing is lost or doubled. ---- */

#define CROWD_MAX 32

struct crowd {
    struct hf_map *map;
    uint64_t calls; /* of each thread */
    uint64_t keys;
    struct hf_atomic_u64 wrong;
    struct hf_atomic_u64 living; /* values not freed, or threads not ended */
    uint64_t sums[CROWD_MAX];
};

/* Adds 1 to random keys, and now and then takes a key with its sum. */
static void sum_body(void *context, int index)
{
    struct crowd *crowd = context;
    struct hf_random random;
    void *old;

    hf_random_init(&random, test_seed() + (unsigned)index);
    for (uint64_t i = 0; i < crowd->calls; i++) {
        uint64_t key = hf_random_below(&random, crowd->keys);
        if (hf_map_merge(crowd->map, &key, 8, number(1), add_numbers, NULL,
                         NULL) != HF_OK)
            hf_u64_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
        key = hf_random_below(&random, crowd->keys);
        if (i % 4 == 0 && hf_map_remove(crowd->map, &key, 8, &old) == HF_OK)
            crowd->sums[index] += (uintptr_t)old;
    }
}

static bool sum_visit(void *context, const void *key, size_t len, void *value)
{
    (void)key;
    (void)len;
    *(uint64_t *)context += (uintptr_t)value;
    return true;
}

static void run_sums(int threads, uint64_t calls, uint64_t keys)
{
    struct hf_map_opts opts = {.capacity = 1};
    struct crowd crowd = {.map = open_map(&opts), .calls = calls, .keys = keys};
    uint64_t sum = 0;

    test_threads(threads, sum_body, &crowd);
    CHECK_EQ(hf_map_visit(crowd.map, sum_visit, &sum), HF_OK);
    for (int i = 0; i < threads; i++)
        sum += crowd.sums[i];
    CHECK_EQ(hf_u64_load(&crowd.wrong, __ATOMIC_RELAXED), 0);
    CHECK_EQ(sum, (uint64_t)threads * calls);
    hf_map_close(crowd.map);
}

TEST(no_addition_is_lost)
{
    run_sums(2, scaled(400000, 40000), 4);
    run_sums(4, scaled(200000, 20000), 20000);
    run_sums(32, scaled(20000, 2000), 100);
}

/* All threads add the same keys, each in another order: each is new once. */
static void add_body(void *context, int index)
{
    struct crowd *crowd = context;

    for (uint64_t i = 0; i < crowd->keys; i++) {
        uint64_t key = (i + (uint64_t)index * 77) % crowd->keys;
        enum hf_status status = hf_map_add(crowd->map, &key, 8);
        crowd->sums[index] += status == HF_OK;
        if ((status != HF_OK && status != HF_EXISTS) ||
            hf_map_get(crowd->map, &key, 8, NULL) != HF_OK)
            hf_u64_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
    }
}

static enum hf_status make_once(void *context, const void *key, size_t len,
                                void **value)
{
    uint64_t *runs = context;
    uint64_t index;

    memcpy(&index, key, len);
    /* Relaxed: the map orders what the function writes. */
    __atomic_fetch_add(&runs[index], 1, __ATOMIC_RELAXED);
    *value = &runs[index];
    return HF_OK;
}

static uint64_t *once_runs;

static void make_body(void *context, int index)
{
    struct crowd *crowd = context;
    void *value;

    (void)index;
    for (uint64_t key = 0; key < crowd->keys; key++) {
        enum hf_status status = hf_map_compute_if_absent(
            crowd->map, &key, 8, make_once, once_runs, HF_FOREVER, &value);
        crowd->sums[index] += status == HF_OK;
        if ((status != HF_OK && status != HF_EXISTS) ||
            value != &once_runs[key])
            hf_u64_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
    }
}

static void run_once(int threads, uint64_t keys,
                     void (*body)(void *context, int index))
{
    struct hf_map_opts opts = {.capacity = 1};
    struct crowd crowd = {.map = open_map(&opts), .keys = keys};
    uint64_t sum = 0;

    test_threads(threads, body, &crowd);
    for (int i = 0; i < threads; i++)
        sum += crowd.sums[i];
    CHECK_EQ(hf_u64_load(&crowd.wrong, __ATOMIC_RELAXED), 0);
    CHECK_EQ(sum, keys);
    CHECK_EQ(hf_map_size(crowd.map), keys);
    hf_map_close(crowd.map);
}

TEST(each_key_is_new_to_one_thread)
{
    run_once(4, scaled(100000, 10000), add_body);
    run_once(32, scaled(20000, 2000), add_body);
}

TEST(a_value_is_made_once)
{
    uint64_t keys = scaled(50000, 5000);

    once_runs = calloc(keys, sizeof *once_runs);
    CHECK(once_runs != NULL);
    run_once(8, keys, make_body);
    for (uint64_t i = 0; i < keys; i++)
        CHECK_EQ(once_runs[i], 1);
    memset(once_runs, 0, keys * sizeof *once_runs);
    run_once(32, keys / 8, make_body);
    free(once_runs);
}

/* ---- Values that the map owns. ---- */

struct owned {
    uint64_t key;
    uint64_t check; /* ~key while it lives */
};

static void owned_free(void *context, void *value)
{
    struct crowd *crowd = context;
    struct owned *owned = value;

    owned->check = 0;
    free(owned);
    hf_u64_sub(&crowd->living, 1, __ATOMIC_RELAXED);
}

static struct owned *owned_new(struct crowd *crowd, uint64_t key)
{
    struct owned *owned = malloc(sizeof *owned);

    if (owned == NULL)
        abort();
    *owned = (struct owned){key, ~key};
    hf_u64_add(&crowd->living, 1, __ATOMIC_RELAXED);
    return owned;
}

struct reading {
    struct crowd *crowd;
    uint64_t key;
};

static void owned_read(void *context, void *value)
{
    struct reading *reading = context;
    struct owned *owned = value;

    if (owned->key != reading->key || owned->check != ~reading->key)
        hf_u64_add(&reading->crowd->wrong, 1, __ATOMIC_RELAXED);
}

static void *owned_merge(void *context, void *old, void *value)
{
    struct owned *before = old;

    (void)value;
    return owned_new(context, before->key);
}

static void owned_body(void *context, int index)
{
    struct crowd *crowd = context;
    struct hf_random random;

    hf_random_init(&random, test_seed() + (unsigned)index);
    for (uint64_t i = 0; i < crowd->calls; i++) {
        uint64_t key = hf_random_below(&random, crowd->keys);
        struct reading reading = {crowd, key};
        struct owned *fresh;

        switch (hf_random_below(&random, 6)) {
        case 0:
            (void)hf_map_put(crowd->map, &key, 8, owned_new(crowd, key), NULL);
            break;
        case 1:
            fresh = owned_new(crowd, key);
            if (hf_map_put_if_absent(crowd->map, &key, 8, fresh, NULL))
                owned_free(crowd, fresh);
            break;
        case 2:
            (void)hf_map_remove(crowd->map, &key, 8, NULL);
            break;
        case 3:
            fresh = owned_new(crowd, key);
            void *now = NULL;
            (void)hf_map_merge(crowd->map, &key, 8, fresh, owned_merge, crowd,
                               &now);
            if (now != fresh)
                owned_free(crowd, fresh);
            break;
        default:
            (void)hf_map_read(crowd->map, &key, 8, owned_read, &reading);
        }
    }
}

static void run_owned(int threads, uint64_t calls, uint64_t keys)
{
    struct crowd crowd = {.calls = calls, .keys = keys};
    struct hf_map_opts opts = {
        .capacity = 1, .free_value = owned_free, .context = &crowd};

    crowd.map = open_map(&opts);
    test_threads(threads, owned_body, &crowd);
    hf_map_close(crowd.map);
    CHECK_EQ(hf_u64_load(&crowd.wrong, __ATOMIC_RELAXED), 0);
    CHECK_EQ(hf_u64_load(&crowd.living, __ATOMIC_RELAXED), 0);
}

TEST(values_that_the_map_owns_live_while_they_are_read)
{
    run_owned(4, scaled(200000, 20000), 3);
    run_owned(4, scaled(100000, 10000), 5000);
    run_owned(32, scaled(10000, 1000), 50);
}

/* ---- Visits while the map grows. ---- */

#define STABLE 300u

static void grow_body(struct crowd *crowd, uint64_t index)
{
    for (uint64_t i = 0; i < crowd->calls; i++) {
        uint64_t key = STABLE + index * crowd->calls + i;
        if (hf_map_add(crowd->map, &key, 8) != HF_OK ||
            (i % 3 == 0 && hf_map_remove(crowd->map, &key, 8, NULL) != HF_OK))
            hf_u64_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
    }
    hf_u64_sub(&crowd->living, 1, __ATOMIC_RELAXED);
}

struct times {
    uint64_t stable[STABLE];
};

static bool count_stable(void *context, const void *key, size_t len,
                         void *value)
{
    struct times *times = context;
    uint64_t index;

    (void)value;
    memcpy(&index, key, len);
    if (index < STABLE)
        times->stable[index]++;
    return true;
}

static void visitor_body(void *context, int index)
{
    struct crowd *crowd = context;

    if (index > 1) {
        grow_body(crowd, (uint64_t)index);
        return;
    }
    do {
        struct times times = {{0}};
        (void)hf_map_visit(crowd->map, count_stable, &times);
        for (unsigned i = 0; i < STABLE; i++) {
            if (times.stable[i] != 1)
                hf_u64_add(&crowd->wrong, 1, __ATOMIC_RELAXED);
        }
    } while (hf_u64_load(&crowd->living, __ATOMIC_RELAXED) > 0);
}

TEST(a_visit_finds_each_key_once_while_the_map_grows)
{
    struct hf_map_opts opts = {.capacity = 1};

    for (uint64_t round = 0; round < scaled(20, 4); round++) {
        struct crowd crowd = {.map = open_map(&opts),
                              .calls = scaled(3000, 1000)};
        for (uint64_t key = 0; key < STABLE; key++)
            CHECK_EQ(hf_map_add(crowd.map, &key, 8), HF_OK);
        hf_u64_store(&crowd.living, 2, __ATOMIC_RELAXED);
        test_threads(4, visitor_body, &crowd);
        CHECK_EQ(hf_u64_load(&crowd.wrong, __ATOMIC_RELAXED), 0);
        hf_map_close(crowd.map);
    }
}

/* ---- One thread is stopped, the others go on. ---- */

#define WORKERS 4 /* the first two read */

struct worker {
    pthread_t thread;
    _Alignas(HF_CACHE_LINE) struct hf_atomic_u64 done; /* (a) calls */
    struct hf_atomic_u32 *stop;
    struct hf_map *map;
    uint64_t index;
    uint64_t wrong;
};

static void *work(void *context)
{
    struct worker *worker = context;

    /* Relaxed: only counts and a flag. */
    for (uint64_t i = 0; hf_u32_load(worker->stop, __ATOMIC_RELAXED) == 0;
         i++) {
        uint64_t key = i % 64;
        if (worker->index < 2) {
            enum hf_status status = hf_map_get(worker->map, &key, 8, NULL);
            worker->wrong += key % 2 == 0 && status != HF_OK;
        } else { /* even keys stay, odd ones come and go, and all grows */
            key = key * 2 + 1;
            (void)hf_map_put(worker->map, &key, 8, worker, NULL);
            (void)hf_map_remove(worker->map, &key, 8, NULL);
            key = 1000 + i % 20000;
            (void)hf_map_put(worker->map, &key, 8, worker, NULL);
        }
        hf_u64_add(&worker->done, 1, __ATOMIC_RELAXED);
    }
    return NULL;
}

/* True when the workers in [from, to) but `stopped` have made `more` calls. */
static bool others_go_on(struct worker *workers, int from, int to, int stopped,
                         uint64_t more)
{
    uint64_t deadline_ns = hf_clock_after_ms(hf_clock_system(), DEADLINE_MS);
    uint64_t before[WORKERS];

    for (int i = from; i < to; i++)
        before[i] = hf_u64_load(&workers[i].done, __ATOMIC_RELAXED);
    for (int i = from; i < to; i++) {
        while (i != stopped && hf_u64_load(&workers[i].done, __ATOMIC_RELAXED) <
                                   before[i] + more) {
            if (hf_clock_now_ns(hf_clock_system()) > deadline_ns)
                return false;
            sched_yield();
        }
    }
    return true;
}

/* A stopped reader stops nobody; a stopped writer, which may hold a bucket's
 * lock in the middle of a growth, stops no reader. */
TEST(a_stopped_thread_stops_no_reader)
{
    static struct worker workers[WORKERS];
    struct hf_map_opts opts = {.capacity = 1};
    struct hf_atomic_u32 stop = {0};
    struct hf_map *map = open_map(&opts);
    uint64_t garbage = 0;
    bool went_on = true;

    for (uint64_t key = 0; key < 64; key += 2)
        CHECK_EQ(hf_map_put(map, &key, 8, map, NULL), HF_OK);
    stall_init();
    for (unsigned i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.stop = &stop, .map = map, .index = i};
        CHECK_EQ(pthread_create(&workers[i].thread, NULL, work, &workers[i]),
                 0);
    }
    for (uint64_t round = 0; round < scaled(200, 40) && went_on; round++) {
        int stopped = (int)(round % WORKERS);
        struct stall *stall = stall_stop(workers[stopped].thread);
        went_on = others_go_on(workers, 0, stopped < 2 ? WORKERS : 2, stopped,
                               scaled(2000, 200));
        if (stopped < 2) { /* a writer could hold what stats need */
            struct hf_map_stats stats;
            hf_map_stats(map, &stats);
            garbage = stats.garbage > garbage ? stats.garbage : garbage;
        }
        stall_resume(stall);
    }
    hf_u32_store(&stop, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < WORKERS; i++) {
        pthread_join(workers[i].thread, NULL);
        CHECK_EQ(workers[i].wrong, 0);
    }
    printf("at most %llu nodes of garbage\n", (unsigned long long)garbage);
    CHECK(went_on);
    CHECK(garbage < 30000);
    hf_map_close(map);
}
