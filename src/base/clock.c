/* clock.c - the operating system's monotonic and wall clocks. */
#include "holdfast/clock.h"

#include <time.h>

#include "base/step.h"

static uint64_t system_now_ns(void *context)
{
    struct timespec t;

    (void)context;
#ifdef HF_STEPPED
    return step_now_ns();
#endif
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
    static const struct hf_clock clock = {.now_ns = system_now_ns,
                                          .wall_us = system_wall_us};
    return &clock;
}

uint64_t hf_clock_after_ns(const struct hf_clock *clock, uint64_t ns)
{
    uint64_t deadline_ns;

    if (__builtin_add_overflow(hf_clock_now_ns(clock), ns, &deadline_ns))
        return HF_FOREVER;
    return deadline_ns;
}

uint64_t hf_clock_after_ms(const struct hf_clock *clock, uint64_t ms)
{
    uint64_t ns;

    if (__builtin_mul_overflow(ms, 1000000u, &ns))
        return HF_FOREVER;
    return hf_clock_after_ns(clock, ns);
}
