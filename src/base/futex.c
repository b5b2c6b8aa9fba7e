/* futex.c - Linux futexes with absolute monotonic deadlines. */
#include "base/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/step.h"

#ifdef HF_STEPPED

void hf_futex_wait(const uint32_t *word, uint32_t expected,
                   const struct hf_clock *clock, uint64_t deadline_ns)
{
    (void)clock; /* virtual time is the only one here */
    step_wait(word, expected, deadline_ns);
}

void hf_futex_wake(const uint32_t *word, uint32_t count)
{
    step_wake(word, count);
}

#else

void hf_futex_wait(const uint32_t *word, uint32_t expected,
                   const struct hf_clock *clock, uint64_t deadline_ns)
{
    if (clock->wait != NULL) {
        clock->wait(clock->context, word, expected, deadline_ns);
        return;
    }
    struct timespec until = {
        .tv_sec = (time_t)(deadline_ns / 1000000000u),
        .tv_nsec = (long)(deadline_ns % 1000000000u),
    };
    /* The bitset form takes an absolute monotonic time. Every way to return
     * means the same to the caller: look again. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected,
                  deadline_ns == HF_FOREVER ? NULL : &until, NULL,
                  FUTEX_BITSET_MATCH_ANY);
}

void hf_futex_wake(const uint32_t *word, uint32_t count)
{
    int most = count > INT_MAX ? INT_MAX : (int)count;

    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, most, NULL, NULL, 0);
}

#endif
