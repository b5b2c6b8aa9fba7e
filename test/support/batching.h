/* batching.h - a batcher by a clock that the test moves, with a handler that
 * remembers what it got and can be told to fail, to wait or to call.
 *
 *   begin(opts); add(1, 3); await(handled_are, 3); end(3);
 *
 * Threads: `test` is written by the handler under its mutex, and by the test
 *          while the handler has nothing to do.
 */
#ifndef TEST_SUPPORT_BATCHING_H
#define TEST_SUPPORT_BATCHING_H

#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "holdfast/batcher.h"
#include "support/clock.h"
#include "support/test.h"

#define ITEMS_MAX   256
#define BATCHES_MAX 256
#define MS          UINT64_C(1000000)

/* What the handler saw, and what it is to do. */
static struct {
    struct hf_batcher *batcher;
    struct test_clock hands;
    struct hf_clock clock;                /* the same, and tells who waits */
    struct hf_atomic_u64 sleeps_until_ns; /* the last wait's deadline */
    pthread_mutex_t mutex;                /* guards the rest */
    pthread_cond_t moved;
    uintptr_t items[ITEMS_MAX]; /* handled with success */
    size_t item_count;
    size_t batches[BATCHES_MAX]; /* calls: how many items */
    uint64_t times[BATCHES_MAX]; /* and when */
    size_t batch_count;
    uintptr_t dead[ITEMS_MAX];
    size_t dead_count;
    size_t told; /* by `failed` */
    int fail;    /* so many calls fail */
    bool hold;   /* calls do not return */
    bool inside; /* a call is being made */
    void (*inner)(void);
} test = {.mutex = PTHREAD_MUTEX_INITIALIZER,
          .moved = PTHREAD_COND_INITIALIZER};

static inline void *number(uintptr_t n)
{
    return (void *)n;
}

static inline int handle(void *context, void *const *items, size_t count)
{
    if (context != &test) /* not CHECK: this is not the test's thread */
        return 9;
    pthread_mutex_lock(&test.mutex);
    test.batches[test.batch_count] = count;
    test.times[test.batch_count++] = hf_clock_now_ns(&test.hands.clock);
    test.inside = true;
    pthread_cond_broadcast(&test.moved);
    while (test.hold)
        pthread_cond_wait(&test.moved, &test.mutex);
    int code = test.fail > 0 ? 7 : 0;
    test.fail -= code != 0;
    for (size_t i = 0; i < count && code == 0; i++)
        test.items[test.item_count++] = (uintptr_t)items[i];
    void (*inner)(void) = test.inner;
    test.inner = NULL;
    pthread_mutex_unlock(&test.mutex);
    if (inner != NULL)
        inner();
    pthread_mutex_lock(&test.mutex);
    test.inside = false;
    pthread_cond_broadcast(&test.moved);
    pthread_mutex_unlock(&test.mutex);
    return code;
}

static inline void dead(void *context, void *const *items, size_t count)
{
    (void)context;
    pthread_mutex_lock(&test.mutex);
    for (size_t i = 0; i < count; i++)
        test.dead[test.dead_count++] = (uintptr_t)items[i];
    pthread_mutex_unlock(&test.mutex);
}

static inline void failed(void *context, int code, size_t count)
{
    (void)context;
    pthread_mutex_lock(&test.mutex);
    test.told += code == 7 && count > 0;
    pthread_mutex_unlock(&test.mutex);
}

static inline void note_wait(void *context, const uint32_t *word,
                             uint32_t expected, uint64_t deadline_ns)
{
    hf_u64_store(&test.sleeps_until_ns, deadline_ns, __ATOMIC_RELAXED);
    test.hands.clock.wait(context, word, expected, deadline_ns);
}

static inline void begin(struct hf_batcher_opts opts)
{
    opts.handle = handle;
    opts.dead = dead;
    opts.failed = failed;
    opts.context = &test;
    test.hands = (struct test_clock){.now_ns = 1000};
    test.clock = *test_clock(&test.hands);
    test.clock.wait = note_wait;
    opts.clock = &test.clock;
    test.item_count = test.batch_count = test.dead_count = test.told = 0;
    test.fail = 0;
    test.hold = test.inside = false;
    test.inner = NULL;
    hf_u64_store(&test.sleeps_until_ns, 0, __ATOMIC_RELAXED);
    CHECK_EQ(hf_batcher_open(&test.batcher, &opts), HF_OK);
}

static inline struct hf_batcher_stats figures(void)
{
    struct hf_batcher_stats stats;

    hf_batcher_stats(test.batcher, &stats);
    return stats;
}

static inline void add(uintptr_t from, uintptr_t to)
{
    for (uintptr_t n = from; n <= to; n++)
        CHECK_EQ(hf_batcher_add(test.batcher, number(n), HF_NOW), HF_OK);
}

/* The handler is free to go, or not. */
static inline void set_hold(bool hold)
{
    pthread_mutex_lock(&test.mutex);
    test.hold = hold;
    pthread_cond_broadcast(&test.moved);
    pthread_mutex_unlock(&test.mutex);
}

static inline void await(bool (*condition)(uint64_t), uint64_t value)
{
    const struct hf_clock *real = hf_clock_system();
    uint64_t deadline_ns = hf_clock_after_ms(real, 60000);

    while (!condition(value)) {
        CHECK(hf_clock_now_ns(real) < deadline_ns);
        sched_yield();
    }
}

static inline bool calls_are(uint64_t count)
{
    pthread_mutex_lock(&test.mutex);
    bool are = test.batch_count == count && (test.hold || !test.inside);
    pthread_mutex_unlock(&test.mutex);
    return are;
}

static inline bool handled_are(uint64_t count)
{
    pthread_mutex_lock(&test.mutex); /* what the handler wrote is seen */
    struct hf_batcher_stats stats = figures();
    /* Also by the depth, which is told last. */
    bool are = !test.inside && stats.handled == count &&
               stats.depth == stats.added - stats.handled - stats.dead;
    pthread_mutex_unlock(&test.mutex);
    return are;
}

static inline bool sleeps_until(uint64_t deadline_ns)
{
    return hf_u64_load(&test.sleeps_until_ns, __ATOMIC_RELAXED) == deadline_ns;
}

static inline bool depth_is(uint64_t depth)
{
    return figures().depth == depth;
}

/* Handled: 1 .. count, in order, and nothing else. */
static inline void check_handled(size_t count)
{
    CHECK_EQ(test.item_count, count);
    for (size_t i = 0; i < count; i++)
        CHECK_EQ(test.items[i], i + 1);
}

static inline void end(size_t count)
{
    hf_batcher_close(test.batcher);
    check_handled(count);
}

/* The handler is held with 1 and 2; 3 .. 6 wait: there is no room. */
static inline void fill_up(enum hf_batcher_full full)
{
    begin((struct hf_batcher_opts){
        .batch_max = 2, .queue_max = 4, .age_ns = HF_FOREVER, .full = full});
    test.hold = true;
    add(1, 2);
    await(calls_are, 1);
    add(3, 6);
    CHECK_EQ(figures().depth, 6);
}

/* A thread in one call of add. */
struct adder {
    pthread_t thread;
    uintptr_t item;
    uint64_t deadline_ns;
    enum hf_status status;
};

static inline void *adder_main(void *context)
{
    struct adder *self = context;

    self->status =
        hf_batcher_add(test.batcher, number(self->item), self->deadline_ns);
    return NULL;
}

static inline void start(struct adder *adder)
{
    CHECK_EQ(pthread_create(&adder->thread, NULL, adder_main, adder), 0);
}

static inline enum hf_status end_of(struct adder *adder)
{
    struct timespec limit;

    clock_gettime(CLOCK_REALTIME, &limit);
    limit.tv_sec += 60;
    CHECK_EQ(pthread_timedjoin_np(adder->thread, NULL, &limit), 0);
    return adder->status;
}

#endif
