/* clock.h - time as a parameter.
 *
 * Whoever needs the time takes a `struct hf_clock`; production passes
 * hf_clock_system(), tests pass a clock whose hands they move.
 *
 *   now_ns  monotonic: never goes back, unrelated to the date
 *   wall_us microseconds since 1970: may jump when the date is set
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

struct hf_clock {
    uint64_t (*now_ns)(void *context);
    uint64_t (*wall_us)(void *context);
    void *context;
};

/* The operating system's clocks; valid for ever, safe from any thread. */
const struct hf_clock *hf_clock_system(void);

static inline uint64_t hf_clock_now_ns(const struct hf_clock *clock)
{
    return clock->now_ns(clock->context);
}

static inline uint64_t hf_clock_wall_us(const struct hf_clock *clock)
{
    return clock->wall_us(clock->context);
}

#endif
