/* meter.c - real threads count and record while others scrape: all of it is
 * told, once.
 *
 * tests: also under sanitizers
 */
#include "holdfast/meter.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/memory.h"
#include "base/random.h"
#include "support/prometheus.h"
#include "support/stall.h"
#include "support/test.h"
#include "support/threads.h"

#define THREADS 32
#define READERS 2
#define KINDS   4

static struct {
    struct hf_meter *meter;
    struct hf_histogram *histogram;
    struct hf_window *window;
    struct hf_counter *counter;
    struct hf_atomic_u64 recorded;
    struct hf_atomic_u64 sum;
    struct hf_atomic_u64 taken;
    struct hf_atomic_u64 taken_sum;
    struct hf_atomic_u64 running;
    struct hf_atomic_u64 wrong;
    struct hf_atomic_u32 stop;
    char said[256];
} rig;

static int work(int plain)
{
    const char *san = getenv("HOLDFAST_SAN");
    return san != NULL && *san != '\0' ? plain / 20 : plain;
}

static void start(void)
{
    memset(&rig, 0, sizeof rig);
    CHECK_EQ(hf_meter_open(&rig.meter, NULL), HF_OK);
    CHECK_EQ(hf_meter_histogram(rig.meter, &(struct hf_metric){.name = "h"},
                                &rig.histogram),
             HF_OK);
    CHECK_EQ(hf_meter_window(rig.meter, &(struct hf_metric){.name = "w"}, NULL,
                             &rig.window),
             HF_OK);
    CHECK_EQ(hf_meter_counter(rig.meter, &(struct hf_metric){.name = "c"},
                              &rig.counter),
             HF_OK);
    rig.running.value = THREADS - READERS;
}

static void update(int index)
{
    struct hf_random random;
    uint64_t sum = 0;
    int rounds = work(1000000);

    hf_random_init(&random, test_seed() + (uint64_t)index);
    for (int i = 0; i < rounds; i++) {
        uint64_t value = hf_random_next(&random) >> 34;
        hf_histogram_record(rig.histogram, value);
        hf_counter_add(rig.counter, 1);
        /* Half a second a round: edges pass all the time. */
        hf_window_record(rig.window, value, (uint64_t)i * 500000000);
        sum += value;
        if (i % 1000 == 0) { /* the same series, found again and again */
            char text[8];
            struct hf_label label = {"kind", text};
            struct hf_metric metric = {
                .name = "k", .labels = &label, .label_count = 1};
            struct hf_counter *counter;
            snprintf(text, sizeof text, "%d", i / 1000 % KINDS);
            if (hf_meter_counter(rig.meter, &metric, &counter) == HF_OK)
                hf_counter_add(counter, 1);
        }
    }
    hf_u64_add(&rig.recorded, (uint64_t)rounds, __ATOMIC_RELAXED);
    hf_u64_add(&rig.sum, sum, __ATOMIC_RELAXED);
    hf_u64_sub(&rig.running, 1, __ATOMIC_RELEASE);
}

static void scrape(void)
{
    size_t cap = 64 * 1024;
    char *text = malloc(cap);
    struct prometheus told;

    if (text == NULL)
        abort();
    size_t len = hf_meter_text(rig.meter, 0, text, cap);
    if (len == 0 || len >= cap || !prometheus_read(&told, text, len)) {
        hf_u64_add(&rig.wrong, 1, __ATOMIC_RELAXED);
        memcpy(rig.said, told.wrong, sizeof rig.said);
    }
    prometheus_release(&told);
    free(text);
}

/* Takes intervals until the others have ended, and then the last one. */
static void read_intervals(int index)
{
    struct hf_spread *last;
    struct hf_spread *since;
    struct hf_spread_stats stats;
    bool over;

    if (hf_histogram_spread(rig.histogram, &last) ||
        hf_histogram_spread(rig.histogram, &since))
        abort();
    do {
        over = hf_u64_load(&rig.running, __ATOMIC_ACQUIRE) == 0;
        if (hf_histogram_interval(rig.histogram, last, since) != HF_OK)
            hf_u64_add(&rig.wrong, 1, __ATOMIC_RELAXED);
        hf_spread_stats(since, &stats);
        if (index == 0) {
            hf_u64_add(&rig.taken, stats.count, __ATOMIC_RELAXED);
            hf_u64_add(&rig.taken_sum, stats.sum, __ATOMIC_RELAXED);
        } else {
            scrape();
        }
    } while (!over);
    hf_spread_close(last);
    hf_spread_close(since);
}

static void body(void *context, int index)
{
    (void)context;
    if (index < READERS)
        read_intervals(index);
    else
        update(index);
}

TEST(every_update_is_in_exactly_one_interval_with_32_threads)
{
    struct hf_window_stats window;
    uint64_t kinds = 0;

    start();
    test_threads(THREADS, body, NULL);
    if (rig.wrong.value > 0)
        test_fail(__FILE__, __LINE__, "a reading is wrong: %s", rig.said);
    CHECK_EQ(rig.taken.value, rig.recorded.value);
    CHECK_EQ(rig.taken_sum.value, rig.sum.value);
    CHECK_EQ(hf_counter_value(rig.counter), rig.recorded.value);
    hf_window_stats(rig.window, &window);
    CHECK_EQ(window.count, rig.recorded.value);
    CHECK_EQ(window.sum, rig.sum.value);
    for (int i = 0; i < KINDS; i++) {
        char text[8];
        struct hf_label label = {"kind", text};
        struct hf_counter *counter;
        snprintf(text, sizeof text, "%d", i);
        CHECK_EQ(hf_meter_counter(rig.meter,
                                  &(struct hf_metric){.name = "k",
                                                      .labels = &label,
                                                      .label_count = 1},
                                  &counter),
                 HF_OK);
        kinds += hf_counter_value(counter);
    }
    CHECK_EQ(kinds, (THREADS - READERS) * ((work(1000000) + 999) / 1000));
    hf_meter_close(rig.meter);
}

/* Every second thread has no memory for counts of its own. */
static void record_starved(void *context, int index)
{
    int rounds = work(200000);
    uint64_t sum = 0;

    (void)context;
    if (index % 2 == 0)
        hf_memory_fail_after((uint64_t)index % 8);
    for (uint64_t i = 0; i < (uint64_t)rounds; i++) {
        uint64_t value = (i * i + (uint64_t)index) % 100000;
        hf_histogram_record(rig.histogram, value);
        sum += value;
    }
    hf_memory_fail_never();
    hf_u64_add(&rig.recorded, (uint64_t)rounds, __ATOMIC_RELAXED);
    hf_u64_add(&rig.sum, sum, __ATOMIC_RELAXED);
}

TEST(nothing_is_lost_where_memory_is)
{
    struct hf_histogram_stats stats;

    start();
    test_threads(THREADS, record_starved, NULL);
    /* Those may have found what others left; this thread has nothing. */
    hf_memory_fail_after(0);
    hf_histogram_record(rig.histogram, 200000);
    hf_memory_fail_never();
    hf_histogram_stats(rig.histogram, &stats);
    CHECK_EQ(stats.count, rig.recorded.value + 1);
    CHECK_EQ(stats.sum, rig.sum.value + 200000);
    CHECK(stats.coarse > 0);
    CHECK(stats.min < THREADS && stats.max == 200000);
    hf_meter_close(rig.meter);
}

static void *record_until_stopped(void *context)
{
    uint64_t count = 0;

    (void)context;
    while (!hf_u32_load(&rig.stop, __ATOMIC_RELAXED))
        hf_histogram_record(rig.histogram, count++ % 5000);
    hf_u64_add(&rig.recorded, count, __ATOMIC_RELAXED);
    return NULL;
}

TEST(a_stopped_thread_stops_nobody)
{
    pthread_t thread;
    struct hf_histogram_stats before;
    struct hf_histogram_stats after;

    start();
    stall_init();
    CHECK_EQ(pthread_create(&thread, NULL, record_until_stopped, NULL), 0);
    for (int i = 0; i < 50; i++) {
        struct stall *stall = stall_stop(thread);
        hf_histogram_stats(rig.histogram, &before);
        for (uint64_t n = 0; n < 100; n++)
            hf_histogram_record(rig.histogram, n);
        hf_histogram_stats(rig.histogram, &after);
        CHECK_EQ(after.count - before.count, 100); /* it stands still */
        CHECK_EQ(after.sum - before.sum, 4950);
        scrape();
        stall_resume(stall);
    }
    hf_u32_store(&rig.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    hf_histogram_stats(rig.histogram, &after);
    CHECK_EQ(after.count, rig.recorded.value + 5000);
    CHECK_EQ(rig.wrong.value, 0);
    hf_meter_close(rig.meter);
}
