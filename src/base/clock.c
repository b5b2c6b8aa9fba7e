/* clock.c - the operating system's monotonic and wall clocks. */
#include "base/clock.h"

#include <time.h>

static uint64_t system_now_ns(void *context)
{
    struct timespec t;

    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t system_wall_us(void *context)
{
    struct timespec t;

    (void)context;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000000u + (uint64_t)t.tv_nsec / 1000;
}

const struct hf_clock *hf_clock_system(void)
{
    static const struct hf_clock clock = {system_now_ns, system_wall_us, 0};
    return &clock;
}
