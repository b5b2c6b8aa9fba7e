/* stall.c - holds threads inside a signal handler, or where they leave the
 * allocator. */
#include "support/stall.h"

#include <errno.h>
#include <signal.h>

#include "base/atomic.h"
#include "base/futex.h"
#include "support/failing.h"
#include "support/test.h"

#define STALL_SIGNAL     (SIGRTMIN + 3)
#define NUDGE_SIGNAL     (SIGRTMIN + 4)
#define NUDGE_MS         20u
#define STOP_DEADLINE_MS 60000u

enum { FREE, ASKED, STOPPED, GO_ON };

/* One thread's way: FREE -> ASKED -> STOPPED -> GO_ON -> FREE. The handler
 * makes the second and the last step. All accesses are relaxed: the word alone
 * tells what it tells, and stopping must not order anything else. */
struct stall {
    struct hf_atomic_u32 word; /* (a) */
};

static struct stall stalls[STALLS_MAX];

static void set(struct stall *stall, uint32_t value)
{
    hf_u32_store(&stall->word, value, __ATOMIC_RELAXED);
    hf_futex_wake(&stall->word.value, 1);
}

/* Waits until the word is no longer `value`; false if the deadline passed. */
static bool wait_while(struct stall *stall, uint32_t value,
                       uint64_t deadline_ns)
{
    const struct hf_clock *clock = hf_clock_system();

    while (hf_u32_load(&stall->word, __ATOMIC_RELAXED) == value) {
        if (deadline_ns != HF_FOREVER && hf_clock_now_ns(clock) >= deadline_ns)
            return false;
        hf_futex_wait(&stall->word.value, value, clock, deadline_ns);
    }
    return true;
}

/* Of this thread, between it and its handler. */
static _Thread_local struct stall *volatile postponed;

/* System calls and atomics only: safe wherever the thread was. */
static void stand_still(struct stall *stall)
{
    int kept = errno;

    set(stall, STOPPED);
    wait_while(stall, STOPPED, HF_FOREVER);
    /* The last touch: from here on the place is another's. */
    hf_u32_store(&stall->word, FREE, __ATOMIC_RELAXED);
    errno = kept;
}

static void hold(int signal_number, siginfo_t *info, void *context)
{
    (void)signal_number;
    (void)context;
    if (failing_allocates())
        postponed = info->si_value.sival_ptr;
    else
        stand_still(info->si_value.sival_ptr);
}

/* From here on a signal stops it at once. */
static void left_allocator(void)
{
    struct stall *stall = postponed;

    if (stall == NULL)
        return;
    postponed = NULL;
    stand_still(stall);
}

static void nothing(int signal_number)
{
    (void)signal_number;
}

void stall_init(void)
{
    /* Without SA_RESTART: a thread that sleeps must come out of the kernel for
     * a thread sanitizer to see the signal, at the next atomic access. */
    struct sigaction action = {
        .sa_sigaction = hold,
        .sa_flags = SA_SIGINFO,
    };
    struct sigaction nudge = {.sa_handler = nothing};

    failing_left = left_allocator;
    CHECK_EQ(sigaction(STALL_SIGNAL, &action, NULL), 0);
    CHECK_EQ(sigaction(NUDGE_SIGNAL, &nudge, NULL), 0);
}

static void die(const char *why)
{
    fprintf(stderr, "stall: %s\n", why);
    abort();
}

static struct stall *take_place(void)
{
    for (unsigned i = 0; i < STALLS_MAX; i++) {
        uint32_t expected = FREE;

        if (hf_u32_cas(&stalls[i].word, &expected, ASKED, __ATOMIC_RELAXED))
            return &stalls[i];
    }
    die("no place left");
    return NULL;
}

struct stall *stall_stop(pthread_t thread)
{
    const struct hf_clock *clock = hf_clock_system();
    uint64_t deadline_ns = hf_clock_after_ms(clock, STOP_DEADLINE_MS);
    struct stall *stall = take_place();
    union sigval value = {.sival_ptr = stall};

    if (pthread_sigqueue(thread, STALL_SIGNAL, value) != 0)
        die("the signal could not be sent");
    /* Under a thread sanitizer a signal that comes right before a thread falls
     * asleep is not seen until it wakes; a second one ends the sleep. */
    while (!wait_while(stall, ASKED, hf_clock_after_ms(clock, NUDGE_MS))) {
        if (hf_clock_now_ns(clock) >= deadline_ns)
            die("the thread did not stop in 60 seconds");
        pthread_kill(thread, NUDGE_SIGNAL);
    }
    return stall;
}

void stall_resume(struct stall *stall)
{
    set(stall, GO_ON);
}
