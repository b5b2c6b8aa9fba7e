/* clock.c - a clock whose hands the test moves. */
#include "support/clock.h"

#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "support/test.h"

struct test_sleeper {
    struct test_sleeper *next;
    const uint32_t *word;
    uint64_t deadline_ns;
};

/* A sleeper that is counted may not be asleep yet, and miss the wake-up: it
 * looks at the hands again after this time. */
#define LOOK_AGAIN_NS 10000000

static uint64_t read_now(void *context)
{
    return __atomic_load_n(&((struct test_clock *)context)->now_ns,
                           __ATOMIC_ACQUIRE);
}

static uint64_t read_wall(void *context)
{
    return __atomic_load_n(&((struct test_clock *)context)->wall_us,
                           __ATOMIC_ACQUIRE);
}

static void wait_by(void *context, const uint32_t *word, uint32_t expected,
                    uint64_t deadline_ns)
{
    const struct timespec again = {.tv_nsec = LOOK_AGAIN_NS};
    struct test_clock *clock = context;
    struct test_sleeper self = {.word = word, .deadline_ns = deadline_ns};
    struct test_sleeper **at;

    pthread_mutex_lock(&clock->mutex);
    self.next = clock->sleepers;
    clock->sleepers = &self;
    pthread_mutex_unlock(&clock->mutex);
    while (read_now(clock) < deadline_ns &&
           __atomic_load_n(word, __ATOMIC_ACQUIRE) == expected &&
           syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected, &again, NULL,
                   0) != 0)
        continue;
    pthread_mutex_lock(&clock->mutex);
    for (at = &clock->sleepers; *at != &self; at = &(*at)->next)
        continue;
    *at = self.next;
    pthread_mutex_unlock(&clock->mutex);
}

const struct hf_clock *test_clock(struct test_clock *clock)
{
    clock->clock = (struct hf_clock){.now_ns = read_now,
                                     .wall_us = read_wall,
                                     .wait = wait_by,
                                     .context = clock};
    pthread_mutex_init(&clock->mutex, NULL);
    clock->sleepers = NULL;
    return &clock->clock;
}

void test_clock_advance(struct test_clock *clock, uint64_t ns)
{
    pthread_mutex_lock(&clock->mutex);
    uint64_t now_ns = __atomic_add_fetch(&clock->now_ns, ns, __ATOMIC_ACQ_REL);
    __atomic_add_fetch(&clock->wall_us, ns / 1000, __ATOMIC_ACQ_REL);
    for (struct test_sleeper *at = clock->sleepers; at; at = at->next) {
        if (at->deadline_ns <= now_ns)
            syscall(SYS_futex, at->word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL,
                    NULL, 0);
    }
    pthread_mutex_unlock(&clock->mutex);
}

static unsigned sleeper_count(struct test_clock *clock)
{
    unsigned count = 0;

    pthread_mutex_lock(&clock->mutex);
    for (struct test_sleeper *at = clock->sleepers; at; at = at->next)
        count++;
    pthread_mutex_unlock(&clock->mutex);
    return count;
}

void test_clock_await_sleepers(struct test_clock *clock, unsigned count)
{
    const struct hf_clock *real = hf_clock_system();
    uint64_t deadline_ns = hf_clock_after_ms(real, 60000);

    while (sleeper_count(clock) < count) {
        CHECK(hf_clock_now_ns(real) < deadline_ns);
        sched_yield();
    }
}
