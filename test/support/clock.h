/* clock.h - a clock whose hands the test moves.
 *
 *   struct test_clock clock = {.now_ns = 1000, .wall_us = 5};
 *   pool_opts.clock = test_clock(&clock);
 *   clock.now_ns += 10;
 *
 * Threads: moved by one thread while no other reads it.
 */
#ifndef TEST_SUPPORT_CLOCK_H
#define TEST_SUPPORT_CLOCK_H

#include "base/clock.h"

struct test_clock {
    uint64_t now_ns;
    uint64_t wall_us;
    struct hf_clock clock;
};

const struct hf_clock *test_clock(struct test_clock *clock);

#endif
