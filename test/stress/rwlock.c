/* rwlock.c - real threads at read-write locks and stamped locks.
 *
 * tests: also under sanitizers
 *
 * More threads than processors, so that the system stops them at any place.
 * Whoever is forgotten leaves the run hanging, and it is stopped as failed.
 */
#include "holdfast/rwlock.h"

#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/random.h"
#include "holdfast/stamped.h"
#include "support/calls.h"
#include "support/linear.h"
#include "support/models.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32
#define CALLERS 4
#define CALLS   8

static int rounds(int count)
{
    const char *san = getenv("HOLDFAST_SAN");

    return san != NULL && *san != '\0' ? count / 4 : count;
}

static struct {
    struct hf_rwlock lock;
    struct hf_stamped stamped;
    struct hf_atomic_u64 x; /* guarded by the stamped lock */
    struct hf_atomic_u64 y; /* the same as x, when nobody writes */
    struct calls *history;
    uint64_t plain; /* guarded by the lock that the test is about */
    uint64_t written;
    uint64_t seed;
    int rounds;
    struct hf_atomic_u64 errors;
    struct hf_atomic_u64 writes; /* of all threads */
} test;

static void begin(void)
{
    memset(&test, 0, sizeof test);
    CHECK_EQ(hf_rwlock_init(&test.lock, NULL), HF_OK);
    CHECK_EQ(hf_stamped_init(&test.stamped, NULL), HF_OK);
}

static void end(void)
{
    CHECK_EQ(test.errors.value, 0);
    CHECK_EQ(test.lock.state.value, 0);
    CHECK_EQ(test.stamped.lock.state.value, 0);
    hf_rwlock_destroy(&test.lock);
    hf_stamped_destroy(&test.stamped);
}

static void expect(bool condition)
{
    if (!condition)
        hf_u64_add(&test.errors, 1, __ATOMIC_RELAXED);
}

/* Now and then another thread runs while we are inside. */
static void dawdle(struct hf_random *random)
{
    if (hf_random_below(random, 8) == 0)
        sched_yield();
}

static uint64_t some_deadline(struct hf_random *random)
{
    uint64_t draw = hf_random_below(random, 4);

    if (draw == 0)
        return HF_NOW;
    if (draw > 1)
        return HF_FOREVER;
    return hf_clock_now_ns(hf_clock_system()) + hf_random_below(random, 100000);
}

/* ---- Readers and writers of plain words. ---- */

static void read_some(struct hf_random *random)
{
    if (hf_rwlock_lock_read(&test.lock, some_deadline(random)) != HF_OK)
        return;
    expect(test.plain == test.written);
    dawdle(random);
    expect(test.plain == test.written);
    expect(hf_rwlock_unlock_read(&test.lock) == HF_OK);
}

static void write_some(struct hf_random *random)
{
    uint64_t value;

    if (hf_rwlock_lock_write(&test.lock, some_deadline(random)) != HF_OK)
        return;
    hf_u64_add(&test.writes, 1, __ATOMIC_RELAXED);
    test.plain++;
    dawdle(random);
    value = ++test.written;
    if (hf_random_below(random, 2) == 0) {
        expect(hf_rwlock_unlock_write(&test.lock) == HF_OK);
        return;
    }
    expect(hf_rwlock_downgrade(&test.lock) == HF_OK);
    expect(test.plain == value && test.written == value);
    expect(hf_rwlock_unlock_read(&test.lock) == HF_OK);
}

static void mixed_body(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = 0; i < test.rounds; i++) {
        if (hf_random_below(&random, 4) == 0)
            write_some(&random);
        else
            read_some(&random);
    }
}

TEST(readers_and_writers_keep_apart)
{
    begin();
    test.rounds = rounds(1500);
    test_threads(THREADS, mixed_body, NULL);
    CHECK_EQ(test.plain, test.writes.value);
    end();
}

/* ---- A stamped lock: validated reads, upgrades, writes. ---- */

/* Held for writing; `value` is what was read under the stamp before. */
static void raise_from(uint64_t value, uint64_t stamp)
{
    expect(hf_stamped_load_u64(&test.x) == value);
    hf_stamped_store_u64(&test.x, value + 1);
    if (value % 4 == 0)
        sched_yield();
    hf_stamped_store_u64(&test.y, value + 1);
    test.plain++;
    hf_u64_add(&test.writes, 1, __ATOMIC_RELAXED);
    expect(hf_stamped_unlock(&test.stamped, stamp) == HF_OK);
}

static void look_and_raise(bool raise)
{
    uint64_t stamp = hf_stamped_optimistic(&test.stamped);
    uint64_t x = hf_stamped_load_u64(&test.x);
    uint64_t y = hf_stamped_load_u64(&test.y);

    if (!hf_stamped_validate(&test.stamped, stamp))
        return;
    expect(x == y);
    if (raise && hf_stamped_to_write(&test.stamped, &stamp) == HF_OK)
        raise_from(x, stamp);
}

static void read_and_raise(uint64_t deadline_ns, bool raise)
{
    uint64_t stamp;
    uint64_t x;

    if (hf_stamped_lock_read(&test.stamped, deadline_ns, &stamp) != HF_OK)
        return;
    x = hf_stamped_load_u64(&test.x);
    expect(x == hf_stamped_load_u64(&test.y) && x == test.plain);
    if (raise && hf_stamped_to_write(&test.stamped, &stamp) == HF_OK)
        raise_from(x, stamp);
    else
        expect(hf_stamped_unlock(&test.stamped, stamp) == HF_OK);
}

static void stamped_body(void *context, int index)
{
    struct hf_random random;
    uint64_t stamp;

    (void)context;
    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = 0; i < test.rounds; i++) {
        uint64_t deadline_ns = some_deadline(&random);
        uint64_t draw = hf_random_below(&random, 16);
        if (draw < 2)
            read_and_raise(deadline_ns, draw == 0);
        else if (draw > 2)
            look_and_raise(draw == 3);
        else if (hf_stamped_lock_write(&test.stamped, deadline_ns, &stamp) ==
                 HF_OK)
            raise_from(hf_stamped_load_u64(&test.x), stamp);
    }
}

TEST(what_is_validated_is_whole)
{
    struct hf_stamped_stats stats;

    begin();
    test.rounds = rounds(8000);
    test_threads(THREADS, stamped_body, NULL);
    hf_stamped_stats(&test.stamped, &stats);
    CHECK_EQ(test.x.value, test.writes.value);
    CHECK_EQ(test.y.value, test.writes.value);
    CHECK_EQ(test.plain, test.writes.value);
    CHECK_EQ(stats.writes, test.writes.value);
    end();
}

/* ---- Values read and written through either lock are linearizable. ---- */

static uint64_t get_locked(void)
{
    uint64_t value;

    expect(hf_rwlock_lock_read(&test.lock, HF_FOREVER) == HF_OK);
    value = test.plain;
    expect(hf_rwlock_unlock_read(&test.lock) == HF_OK);
    return value;
}

static uint64_t get_stamped(void)
{
    uint64_t stamp;
    uint64_t value;

    do {
        stamp = hf_stamped_optimistic(&test.stamped);
        value = hf_stamped_load_u64(&test.x);
    } while (!hf_stamped_validate(&test.stamped, stamp));
    return value;
}

static void set_both(uint64_t key, uint64_t value)
{
    uint64_t stamp;

    if (key == 0) {
        expect(hf_rwlock_lock_write(&test.lock, HF_FOREVER) == HF_OK);
        test.plain = value;
        expect(hf_rwlock_unlock_write(&test.lock) == HF_OK);
    } else {
        expect(hf_stamped_lock_write(&test.stamped, HF_FOREVER, &stamp) ==
               HF_OK);
        hf_stamped_store_u64(&test.x, value);
        expect(hf_stamped_unlock(&test.stamped, stamp) == HF_OK);
    }
}

/* Key 0 is guarded by the one lock, key 1 by the other. */
static void values_body(void *context, int index)
{
    struct hf_random random;

    (void)context;
    hf_random_init(&random, test.seed + (uint64_t)index);
    for (int i = 0; i < CALLS; i++) {
        uint32_t op = hf_random_below(&random, 3) == 0 ? MODEL_SET : MODEL_GET;
        uint64_t key = hf_random_below(&random, 2);
        uint64_t value = (uint64_t)(1 + index * CALLS + i);
        struct call *call =
            calls_begin(test.history, (unsigned)index, op, key, value);
        if (op == MODEL_SET)
            set_both(key, value);
        else
            value = key == 0 ? get_locked() : get_stamped();
        calls_end(test.history, call,
                  op == MODEL_GET && value == 0 ? HF_NOTFOUND : HF_OK, value);
    }
}

TEST(values_are_linearizable)
{
    struct linear_model model = model_map();
    struct linear *checker = linear_new(&model, CALLERS * CALLS);
    struct calls *history = calls_new(CALLERS, CALLS);
    int count = rounds(3000);

    for (int i = 0; i < count; i++) {
        begin();
        test.seed = test_seed() + (uint64_t)i * CALLERS;
        test.history = history;
        calls_clear(history);
        test_threads(CALLERS, values_body, NULL);
        CHECK_EQ(linear_check(checker, history, stdout), LINEAR_YES);
        end();
    }
    linear_free(checker);
    calls_free(history);
}

/* ---- A stopped reader stops no reader. ---- */

static struct hf_atomic_u32 over;

static void read_both(void)
{
    uint64_t stamp;

    expect(hf_rwlock_lock_read(&test.lock, HF_NOW) == HF_OK);
    expect(hf_rwlock_unlock_read(&test.lock) == HF_OK);
    expect(hf_stamped_lock_read(&test.stamped, HF_NOW, &stamp) == HF_OK);
    expect(hf_stamped_unlock(&test.stamped, stamp) == HF_OK);
    stamp = hf_stamped_optimistic(&test.stamped);
    expect(hf_stamped_validate(&test.stamped, stamp));
}

static void *victim_main(void *unused)
{
    while (!hf_u32_load(&over, __ATOMIC_RELAXED))
        read_both();
    return unused;
}

TEST(a_stopped_reader_stops_no_reader)
{
    pthread_t victim;
    int count = rounds(500);

    begin();
    stall_init();
    hf_u32_store(&over, 0, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_create(&victim, NULL, victim_main, NULL), 0);
    for (int i = 0; i < count; i++) {
        struct stall *stall = stall_stop(victim);
        for (int j = 0; j < 1000; j++)
            read_both();
        stall_resume(stall);
        sched_yield();
    }
    hf_u32_store(&over, 1, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_join(victim, NULL), 0);
    end();
}
