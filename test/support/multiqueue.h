/* multiqueue.h - a multiqueue under test by a clock that the test moves, driven
 * in one line per call. For test/unit. */
#ifndef TEST_SUPPORT_MULTIQUEUE_H
#define TEST_SUPPORT_MULTIQUEUE_H

#include <pthread.h>

#include "holdfast/multiqueue.h"
#include "support/clock.h"
#include "support/test.h"

static struct {
    struct hf_multiqueue *queue;
    struct test_clock clock;
} test;

static inline void begin(struct hf_multiqueue_opts opts)
{
    test.clock = (struct test_clock){.now_ns = 1000};
    opts.clock = test_clock(&test.clock);
    CHECK_EQ(hf_multiqueue_open(&test.queue, &opts), HF_OK);
}

static inline struct hf_multiqueue_stats stats(void)
{
    struct hf_multiqueue_stats out;

    hf_multiqueue_stats(test.queue, &out);
    return out;
}

/* What came in went out or is there. */
static inline void end(void)
{
    struct hf_multiqueue_stats out = stats();
    uint64_t size = 0;

    for (uint32_t i = 0; i < out.classes; i++) {
        const struct hf_multiqueue_class_stats *one = &out.by_class[i];
        CHECK_EQ(one->depth,
                 one->put + one->promoted - one->raised - one->taken);
        size += one->depth;
    }
    CHECK_EQ(hf_multiqueue_size(test.queue), size);
    hf_multiqueue_close(test.queue);
}

static inline void *item_of(uintptr_t value)
{
    return (void *)value; /* a number is all that the tests need */
}

static inline enum hf_status put_status(uint32_t class_index, uintptr_t value)
{
    return hf_multiqueue_put(test.queue, class_index, item_of(value), HF_NOW,
                             NULL);
}

static inline struct hf_multiqueue_ticket put(uint32_t class_index,
                                              uintptr_t value)
{
    struct hf_multiqueue_ticket ticket = {0};

    CHECK_EQ(hf_multiqueue_put(test.queue, class_index, item_of(value), HF_NOW,
                               &ticket),
             HF_OK);
    return ticket;
}

struct taken {
    uintptr_t value;
    uint32_t from;
};

static inline struct taken take_home(uint32_t home)
{
    struct taken taken;
    void *item;

    CHECK_EQ(
        hf_multiqueue_take_from(test.queue, home, &item, HF_NOW, &taken.from),
        HF_OK);
    taken.value = (uintptr_t)item;
    return taken;
}

static inline struct taken take(void)
{
    return take_home(HF_MULTIQUEUE_NO_HOME);
}

/* For a take that gets nothing. */
static inline enum hf_status take_status(void)
{
    void *item = &test;
    enum hf_status status = hf_multiqueue_take(test.queue, &item, HF_NOW);

    CHECK(item == &test);
    return status;
}

/* ---- A put and a take in a thread, which wait. ---- */

struct putter {
    uint32_t class_index;
    uintptr_t value;
    uint64_t deadline_ns;
    enum hf_status status;
    pthread_t thread;
};

static inline void *putter_main(void *argument)
{
    struct putter *putter = argument;

    putter->status =
        hf_multiqueue_put(test.queue, putter->class_index,
                          item_of(putter->value), putter->deadline_ns, NULL);
    return NULL;
}

/* Returns when it waits as the `place`th. */
static inline void putter_start(struct putter *putter, unsigned place)
{
    CHECK_EQ(pthread_create(&putter->thread, NULL, putter_main, putter), 0);
    test_clock_await_sleepers(&test.clock, place);
}

static inline enum hf_status putter_end(struct putter *putter)
{
    CHECK_EQ(pthread_join(putter->thread, NULL), 0);
    return putter->status;
}

struct taker {
    uint32_t home;
    uint64_t deadline_ns;
    struct taken taken;
    enum hf_status status;
    pthread_t thread;
};

static inline void *taker_main(void *argument)
{
    struct taker *taker = argument;
    void *item = NULL;

    taker->status = hf_multiqueue_take_from(
        test.queue, taker->home, &item, taker->deadline_ns, &taker->taken.from);
    taker->taken.value = (uintptr_t)item;
    return NULL;
}

static inline void taker_start(struct taker *taker, unsigned place)
{
    CHECK_EQ(pthread_create(&taker->thread, NULL, taker_main, taker), 0);
    test_clock_await_sleepers(&test.clock, place);
}

static inline enum hf_status taker_end(struct taker *taker)
{
    CHECK_EQ(pthread_join(taker->thread, NULL), 0);
    return taker->status;
}

#endif
