/* locks.c - real threads at the lock manager.
 *
 * tests: also under sanitizers
 *
 * More threads than processors, so that the system stops them at any place.
 * Whoever is forgotten leaves the run hanging, and it is stopped as failed.
 */
#include "holdfast/locks.h"

#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/random.h"
#include "support/test.h"
#include "support/threads.h"

static const char *const names[] = {"Database", "FileSystem", "Network"};

static int rounds(int count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 4 : count;
}

static struct {
    struct hf_locks *locks;
    int rounds;
    uint64_t plain[3];           /* each guarded by the lock of its name */
    struct hf_atomic_u64 writes; /* what they must come to, in all */
    struct hf_atomic_u64 errors;
    struct hf_atomic_u64 timeouts;
    struct hf_atomic_u64 deadlocks;
    struct hf_atomic_u64 token; /* the newest that was seen while held */
} test;

static void begin(const struct hf_locks_opts *opts)
{
    memset(&test, 0, sizeof test);
    CHECK_EQ(hf_locks_open(&test.locks, opts), HF_OK);
}

static void end(void)
{
    struct hf_locks_stats stats;

    CHECK_EQ(hf_locks_stats(test.locks, NULL, &stats), HF_OK);
    CHECK_EQ(stats.held, 0);
    CHECK_EQ(stats.waiting, 0);
    CHECK_EQ(stats.deadlocks, test.deadlocks.value);
    CHECK_EQ(stats.timeouts, test.timeouts.value);
    CHECK_EQ(test.plain[0] + test.plain[1] + test.plain[2], test.writes.value);
    CHECK_EQ(test.errors.value, 0);
    hf_locks_close(test.locks);
}

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
}

/* ---- 100 threads, one lock, one counter. ---- */

#define MANY 100

static void *count_up(void *argument)
{
    (void)argument;
    for (int i = 0; i < test.rounds; i++) {
        struct hf_locks_answer answer;
        expect(hf_locks_acquire(test.locks, "a", NULL, HF_FOREVER, &answer) ==
               HF_OK);
        uint64_t value = test.plain[0];
        if (i % 16 == 0)
            sched_yield(); /* so that others come while we hold */
        test.plain[0] = value + 1;
        /* Relaxed: under the lock. */
        expect(hf_u64_load(&test.token, __ATOMIC_RELAXED) < answer.token);
        hf_u64_store(&test.token, answer.token, __ATOMIC_RELAXED);
        expect(hf_locks_release(test.locks, "a", 0) == HF_OK);
    }
    hf_u64_add(&test.writes, (uint64_t)test.rounds, __ATOMIC_RELAXED);
    return NULL;
}

TEST(a_hundred_threads_count_exactly)
{
    pthread_t threads[MANY];

    begin(NULL);
    test.rounds = rounds(400);
    for (int i = 0; i < MANY; i++)
        CHECK_EQ(pthread_create(&threads[i], NULL, count_up, NULL), 0);
    for (int i = 0; i < MANY; i++)
        pthread_join(threads[i], NULL);
    CHECK_EQ(test.plain[0], (uint64_t)MANY * (uint64_t)test.rounds);
    end();
}

/* ---- Readers, writers, permits, deadlines. ---- */

#define THREADS 32

static void write_one(int name, uint64_t token)
{
    uint64_t value = test.plain[name];

    sched_yield();
    test.plain[name] = value + 1;
    hf_u64_add(&test.writes, 1, __ATOMIC_RELAXED);
    expect(hf_locks_holds(test.locks, names[name], token));
}

/* Two reads must agree. */
static void read_one(int name)
{
    uint64_t value = test.plain[name];

    sched_yield();
    expect(test.plain[name] == value);
}

static void torture_body(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = 0; i < test.rounds; i++) {
        int name = (int)hf_random_below(&random, 3);
        bool writes = hf_random_below(&random, 4) == 0;
        struct hf_locks_request request = {
            .mode = writes ? HF_LOCKS_EXCLUSIVE : HF_LOCKS_SHARED,
            .priority = (uint32_t)hf_random_below(&random, 2)};
        struct hf_locks_answer answer;
        uint64_t deadline_ns = i % 3 == 0 ? hf_clock_now_ns(NULL) +
                                                hf_random_below(&random, 100000)
                                          : HF_FOREVER;
        enum hf_status status = hf_locks_acquire(
            test.locks, names[name], &request, deadline_ns, &answer);
        if (status == HF_TIMEOUT) {
            expect(deadline_ns != HF_FOREVER && answer.position > 0);
            hf_u64_add(&test.timeouts, 1, __ATOMIC_RELAXED);
            continue;
        }
        expect(status == HF_OK);
        if (writes)
            write_one(name, answer.token);
        if (writes && i % 2 == 0)
            expect(hf_locks_downgrade(test.locks, names[name], 0) == HF_OK);
        if (!writes || i % 2 == 0)
            read_one(name);
        expect(hf_locks_release(test.locks, names[name], answer.token) ==
               HF_OK);
    }
}

TEST(readers_and_writers_in_any_order)
{
    begin(NULL);
    test.rounds = rounds(600);
    test_threads(THREADS, torture_body, NULL);
    end();
}

/* ---- 8 threads on 3 names: finishes, whatever the order. ---- */

/* Takes two or three names one after the other, in any order. Who is refused
 * gives back all it has and begins again. */
static void cycle_once(struct hf_random *random)
{
    int first = (int)hf_random_below(random, 3);
    int step = 1 + (int)hf_random_below(random, 2);
    int count = 2 + (int)hf_random_below(random, 2);
    int held = 0;

    while (held < count) {
        enum hf_status status =
            hf_locks_acquire(test.locks, names[(first + held * step) % 3], NULL,
                             HF_FOREVER, NULL);
        if (status == HF_OK) {
            held++;
            sched_yield();
            continue;
        }
        expect(status == HF_DEADLOCK);
        hf_u64_add(&test.deadlocks, 1, __ATOMIC_RELAXED);
        while (held > 0)
            expect(hf_locks_release(test.locks,
                                    names[(first + --held * step) % 3],
                                    0) == HF_OK);
        sched_yield();
    }
    for (int i = 0; i < count; i++)
        test.plain[(first + i * step) % 3]++;
    hf_u64_add(&test.writes, (uint64_t)count, __ATOMIC_RELAXED);
    while (held > 0)
        expect(hf_locks_release(test.locks, names[(first + --held * step) % 3],
                                0) == HF_OK);
}

static void cycle_body(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = 0; i < test.rounds; i++)
        cycle_once(&random);
}

TEST(eight_threads_on_three_names_finish)
{
    begin(NULL);
    test.rounds = rounds(2000);
    test_threads(8, cycle_body, NULL);
    CHECK(test.deadlocks.value > 0);
    end();
}

TEST(the_same_by_age)
{
    struct hf_locks_opts opts = {.policy = HF_LOCKS_WAITDIE};

    begin(&opts);
    test.rounds = rounds(1000);
    test_threads(8, cycle_body, NULL);
    end();
}

/* ---- The same in the order in which they came. ---- */

#define QUEUERS 8

static struct {
    struct hf_atomic_u64 turn; /* counts: whose turn it is to ask */
    struct hf_atomic_u64 done; /* counts those who had it */
    struct queuer {
        int place; /* among those who ask */
        int name;
        enum hf_locks_mode mode;
        uint64_t token; /* tells when it was granted */
    } queuers[QUEUERS];
} queue;

static void await(const struct hf_atomic_u64 *word, uint64_t value)
{
    /* Acquire: what was written before it. */
    while (hf_u64_load(word, __ATOMIC_ACQUIRE) < value)
        sched_yield();
}

static void queue_up(struct queuer *queuer, uint64_t round)
{
    await(&queue.turn, round * (QUEUERS + 1) + 1); /* there is a plan */
    await(&queue.turn, round * (QUEUERS + 1) + 1 + (uint64_t)queuer->place + 1);
    bool counts = queuer->mode == HF_LOCKS_COUNTING;
    struct hf_locks_request request = {
        .mode = queuer->mode, .permits = counts, .of = counts ? 2 : 0};
    struct hf_locks_answer answer;
    expect(hf_locks_acquire(test.locks, names[queuer->name], &request,
                            HF_FOREVER, &answer) == HF_OK);
    queuer->token = answer.token;
    expect(hf_locks_release(test.locks, names[queuer->name], 0) == HF_OK);
    /* Release: the token. */
    hf_u64_add(&queue.done, 1, __ATOMIC_RELEASE);
}

/* Must `a` be granted before `b`, for the same name? The readers' turn comes
 * first. */
static bool goes_before(const struct queuer *a, const struct queuer *b)
{
    bool reads = a->mode == HF_LOCKS_SHARED;

    if (reads != (b->mode == HF_LOCKS_SHARED))
        return reads;
    return a->place < b->place;
}

static void check_order(void)
{
    for (int i = 0; i < QUEUERS * QUEUERS; i++) {
        const struct queuer *a = &queue.queuers[i % QUEUERS];
        const struct queuer *b = &queue.queuers[i / QUEUERS];
        if (a->name == b->name && goes_before(a, b))
            expect(a->token < b->token);
    }
}

/* All names are held until all have asked, one after the other. */
static void lead(uint64_t round, struct hf_random *random)
{
    struct hf_locks_stats stats = {0};

    for (int i = 0; i < QUEUERS; i++) {
        int other = (int)hf_random_below(random, (uint64_t)i + 1);
        queue.queuers[i] = (struct queuer){
            .name = (int)hf_random_below(random, 3),
            .mode = (enum hf_locks_mode)hf_random_below(random, 3),
            .place = queue.queuers[other].place};
        queue.queuers[other].place = i;
    }
    for (int i = 0; i < 3; i++)
        expect(hf_locks_acquire(test.locks, names[i], NULL, HF_NOW, NULL) ==
               HF_OK);
    for (uint32_t i = 0; i <= QUEUERS; i++) {
        /* Release: the plan. */
        hf_u64_add(&queue.turn, 1, __ATOMIC_RELEASE);
        while (stats.waiting < i) {
            expect(hf_locks_stats(test.locks, NULL, &stats) == HF_OK);
            sched_yield();
        }
    }
    for (uint64_t i = 0; i < 3; i++)
        expect(hf_locks_release(test.locks, names[(round + i) % 3], 0) ==
               HF_OK);
    await(&queue.done, (round + 1) * QUEUERS);
    check_order();
}

static void order_body(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed());
    for (uint64_t i = 0; i < (uint64_t)test.rounds; i++) {
        if (index == QUEUERS)
            lead(i, &random);
        else
            queue_up(&queue.queuers[index], i);
    }
}

TEST(eight_threads_on_three_names_get_them_in_the_order_in_which_they_came)
{
    begin(NULL);
    memset(&queue, 0, sizeof queue);
    test.rounds = rounds(400);
    test_threads(QUEUERS + 1, order_body, NULL);
    end();
}

/* Sets and single names mixed. */
static void set_body(void *context, int index)
{
    (void)context;
    for (int i = 0; i < test.rounds; i++) {
        struct hf_locks_item items[3];
        struct hf_locks_answer answer;
        size_t count = 1 + (size_t)((index + i) % 3);
        for (size_t k = 0; k < count; k++)
            items[k] =
                (struct hf_locks_item){.name = names[((size_t)index + k) % 3]};
        expect(hf_locks_acquire_set(test.locks, items, count, NULL, HF_FOREVER,
                                    &answer) == HF_OK);
        for (size_t k = 0; k < count; k++)
            test.plain[((size_t)index + k) % 3]++;
        hf_u64_add(&test.writes, count, __ATOMIC_RELAXED);
        if (i % 8 == 0)
            sched_yield();
        expect(hf_locks_release_set(test.locks, answer.token) == HF_OK);
        expect(hf_locks_acquire(test.locks, names[i % 3], NULL, HF_FOREVER,
                                &answer) == HF_OK);
        expect(hf_locks_release(test.locks, names[i % 3], answer.token) ==
               HF_OK);
    }
}

TEST(sets_and_single_names_finish_without_a_deadlock)
{
    begin(NULL);
    test.rounds = rounds(1000);
    test_threads(16, set_body, NULL);
    end();
}
