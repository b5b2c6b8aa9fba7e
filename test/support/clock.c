/* clock.c - a clock whose hands the test moves. */
#include "support/clock.h"

static uint64_t read_now(void *context)
{
    return ((struct test_clock *)context)->now_ns;
}

static uint64_t read_wall(void *context)
{
    return ((struct test_clock *)context)->wall_us;
}

const struct hf_clock *test_clock(struct test_clock *clock)
{
    clock->clock = (struct hf_clock){read_now, read_wall, clock};
    return &clock->clock;
}
