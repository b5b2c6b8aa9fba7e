/* clock.h - a clock whose hands the test moves.
 *
 *   struct test_clock clock = {.now_ns = 1000, .wall_us = 5};
 *   pool_opts.clock = test_clock(&clock);
 *   test_clock_advance(&clock, 10);
 *
 * Threads: a thread that waits by this clock sleeps until it is woken or until
 *          the test has moved the hands to its deadline. The fields are moved
 *          directly only while no other thread reads them.
 */
#ifndef TEST_SUPPORT_CLOCK_H
#define TEST_SUPPORT_CLOCK_H

#include <pthread.h>

#include "holdfast/clock.h"

struct test_sleeper;

struct test_clock {
    uint64_t now_ns;
    uint64_t wall_us;
    struct hf_clock clock;
    pthread_mutex_t mutex;         /* guards the sleepers */
    struct test_sleeper *sleepers; /* (m) */
};

const struct hf_clock *test_clock(struct test_clock *clock);

/* Moves both hands on and wakes whose deadline has come. */
void test_clock_advance(struct test_clock *clock, uint64_t ns);
/* Returns when `count` threads or more sleep by this clock; fails the test
 * after a minute. */
void test_clock_await_sleepers(struct test_clock *clock, unsigned count);

#endif
