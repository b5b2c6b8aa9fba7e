/* wait.h - condition variables with a deadline on the monotonic clock. */
#ifndef JOURNAL_WAIT_H
#define JOURNAL_WAIT_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "holdfast/clock.h"

/* A condition for wait_until(). */
static inline void wait_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

/* The instant `timeout_ns` from now; UINT64_MAX: as good as never. */
static inline struct timespec wait_deadline(uint64_t timeout_ns)
{
    uint64_t end_ns;

    if (__builtin_add_overflow(hf_clock_now_ns(hf_clock_system()), timeout_ns,
                               &end_ns))
        end_ns = UINT64_MAX;
    struct timespec deadline = {.tv_sec = (time_t)(end_ns / 1000000000u),
                                .tv_nsec = (long)(end_ns % 1000000000u)};
    return deadline;
}

/* Waits for one signal; false once the deadline has passed. */
static inline bool wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex,
                              const struct timespec *deadline)
{
    return pthread_cond_timedwait(cond, mutex, deadline) == 0;
}

#endif
