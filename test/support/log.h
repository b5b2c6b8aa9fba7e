/* log.h - a log under test: its lines are kept in memory, by a sink that stalls
 * or fails when it is told to. For test/unit and test/stress.
 *
 * Threads: the sink is called by the log's writer, the rest by the test.
 */
#ifndef TEST_SUPPORT_LOG_H
#define TEST_SUPPORT_LOG_H

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "holdfast/log.h"
#include "support/clock.h"
#include "support/test.h"

static struct {
    struct hf_log *log;
    struct test_clock clock;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    bool held;   /* the sink waits */
    bool inside; /* it does now */
    bool fails;
    char *text;
    size_t len;
    size_t cap;
} test = {.mutex = PTHREAD_MUTEX_INITIALIZER,
          .changed = PTHREAD_COND_INITIALIZER};

static inline int sink(void *context, const void *data, size_t len)
{
    (void)context;
    pthread_mutex_lock(&test.mutex);
    test.inside = true;
    pthread_cond_broadcast(&test.changed);
    while (test.held)
        pthread_cond_wait(&test.changed, &test.mutex);
    test.inside = false;
    bool fails = test.fails;
    if (!fails) {
        while (test.len + len + 1 > test.cap) {
            test.cap = test.cap * 2 + len + 1;
            test.text = realloc(test.text, test.cap);
            if (test.text == NULL)
                abort();
        }
        memcpy(test.text + test.len, data, len);
        test.len += len;
        test.text[test.len] = '\0';
    }
    pthread_cond_broadcast(&test.changed);
    pthread_mutex_unlock(&test.mutex);
    return fails ? EIO : 0;
}

static inline void sink_set(bool held, bool fails)
{
    pthread_mutex_lock(&test.mutex);
    test.held = held;
    test.fails = fails;
    pthread_cond_broadcast(&test.changed);
    pthread_mutex_unlock(&test.mutex);
}

static inline void sink_await_inside(void)
{
    pthread_mutex_lock(&test.mutex);
    while (!test.inside)
        pthread_cond_wait(&test.changed, &test.mutex);
    pthread_mutex_unlock(&test.mutex);
}

/* Until so many bytes have come, by themselves. */
static inline void sink_await_bytes(size_t len)
{
    pthread_mutex_lock(&test.mutex);
    while (test.len < len)
        pthread_cond_wait(&test.changed, &test.mutex);
    pthread_mutex_unlock(&test.mutex);
}

static inline void sink_clear(void)
{
    pthread_mutex_lock(&test.mutex);
    test.held = false;
    test.inside = false;
    test.fails = false;
    test.len = 0;
    if (test.text != NULL)
        test.text[0] = '\0';
    pthread_mutex_unlock(&test.mutex);
}

/* With a clock that the test moves, at 2026-11-15T23:20:01.000007Z. */
static inline void begin(struct hf_log_opts opts)
{
    sink_clear();
    test.clock = (struct test_clock){.now_ns = 1000,
                                     .wall_us = UINT64_C(1794784801000007)};
    opts.clock = test_clock(&test.clock);
    if (opts.path == NULL && opts.fd == 0)
        opts.sink = sink;
    CHECK_EQ(hf_log_open(&test.log, &opts), HF_OK);
}

static inline struct hf_log_stats stats(void)
{
    struct hf_log_stats out;

    hf_log_stats(test.log, &out);
    return out;
}

static inline void end(void)
{
    hf_log_close(test.log);
    test.log = NULL;
}

/* All that was logged up to now is `expected`. */
static inline void check_text(const char *expected)
{
    CHECK_EQ(hf_log_flush(test.log, HF_FOREVER), HF_OK);
    CHECK_TEXT(test.text == NULL ? "" : test.text, test.len, expected);
}

static inline uint64_t count_lines(const char *text, size_t len)
{
    uint64_t lines = 0;

    for (size_t i = 0; i < len; i++)
        lines += text[i] == '\n';
    return lines;
}

#endif
