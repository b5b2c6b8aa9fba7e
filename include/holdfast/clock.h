/* clock.h - time as a parameter, and deadlines.
 *
 * Whoever needs the time takes a `struct hf_clock`; NULL means the operating
 * system's clocks. A test passes a clock whose hands it moves, and nothing has
 * to sleep to see time pass.
 *
 *   now_ns   monotonic: never goes back, unrelated to the date
 *   wall_us  microseconds since 1970: may jump when the date is set
 *   wait     how a thread sleeps by this clock; NULL: as the system does
 *
 * Deadlines are absolute, by now_ns. HF_NOW has always passed (the call tries
 * and does not wait), HF_FOREVER never does.
 *
 * Example:
 *
 *   const struct hf_clock *clock = hf_clock_system();
 *   uint64_t deadline_ns = hf_clock_after_ms(clock, 250);
 *   assert(deadline_ns > hf_clock_now_ns(clock));
 *   assert(hf_clock_now_ns(NULL) > 0); // the same
 */
#ifndef HOLDFAST_CLOCK_H
#define HOLDFAST_CLOCK_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define HF_NOW     0u
#define HF_FOREVER UINT64_MAX

#define HF_NS_PER_MS UINT64_C(1000000)
#define HF_NS_PER_S  UINT64_C(1000000000)

struct hf_clock {
    uint64_t (*now_ns)(void *context);
    uint64_t (*wall_us)(void *context);
    /* Sleeps while `*word == expected`, until the word is woken or now_ns()
     * has reached `deadline_ns`. May return early for no reason. */
    void (*wait)(void *context, const uint32_t *word, uint32_t expected,
                 uint64_t deadline_ns);
    void *context;
};

/* The operating system's clocks; valid for ever, safe from any thread. */
const struct hf_clock *hf_clock_system(void);

static inline uint64_t hf_clock_now_ns(const struct hf_clock *clock)
{
    if (clock == NULL)
        clock = hf_clock_system();
    return clock->now_ns(clock->context);
}

static inline uint64_t hf_clock_wall_us(const struct hf_clock *clock)
{
    if (clock == NULL)
        clock = hf_clock_system();
    return clock->wall_us(clock->context);
}

/* The deadline that long from now; HF_FOREVER if that is beyond the end of
 * time. */
uint64_t hf_clock_after_ns(const struct hf_clock *clock, uint64_t ns);
uint64_t hf_clock_after_ms(const struct hf_clock *clock, uint64_t ms);

#ifdef __cplusplus
}
#endif

#endif
