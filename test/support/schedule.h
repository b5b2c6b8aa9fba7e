/* schedule.h - runs threads step by step, in an order that a seed decides.
 *
 * A real machine shows a rare order of events once a week and never again.
 * Here the threads of a test are fibers of one thread. Before every atomic
 * access, wait, wake-up and yield of the code under test (base/step.h) the
 * scheduler decides by the seed who goes on:
 *
 *   fiber 0   load ------.                .--- store ...
 *   fiber 1               `- cas - load -'
 *   seed      17: 0 1 1 0 ...        the same seed: the same order, for ever
 *
 * The seed also picks how it decides: evenly, or mostly staying with one fiber,
 * or by priorities that change at a few points (this finds bugs that need
 * few but well placed switches). A fiber that yields lets others run.
 *
 * Memory: for half of the seeds each fiber has a store buffer as x86 has. A
 * store that is not seq_cst waits in it for some steps, seen by its own fiber
 * only; read-modify-writes, seq_cst stores, waits and wake-ups empty it. So
 * a store that must come before a later load is caught if it does not. Loads
 * are never late: what only weaker processors do is left to the thread
 * sanitizer, which sees every fiber as a thread and every access with its
 * order, and so reports plain accesses that race in any schedule. (A plain
 * write does not wait behind stores: code under test must not write plainly to
 * a word right after storing to it atomically.)
 *
 * Time: virtual, from 1,000,000,000 ns. Each step takes some nanoseconds; when
 * all fibers sleep, the earliest deadline is next; now and then it comes while
 * others could still run. All asleep without a deadline is a deadlock.
 *
 * Threads: everything here is called from one thread. In a body use no CHECK,
 * since it would leave the fiber's stack: call schedule_wrong, or note what
 * happened and look at it in `check`. What the fibers share is made in `setup`.
 *
 * Example:
 *     static void body(void *context, unsigned fiber) {
 *         (void)fiber;
 *         counter_add(context, 1);
 *     }
 *     static bool check(void *context, FILE *explain) {
 *         fprintf(explain, "sum %u", counter_sum(context));
 *         return counter_sum(context) == 2;
 *     }
 *     TEST(nothing_is_lost) {
 *         struct schedule_case c = {.name = "counter", .fibers = 2,
 *             .setup = setup, .body = body, .check = check,
 *             .context = &counter};
 *         schedule_check(&c);
 *     }
 */
#ifndef TEST_SUPPORT_SCHEDULE_H
#define TEST_SUPPORT_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SCHEDULE_FIBERS_MAX 16
#define SCHEDULE_START_NS   UINT64_C(1000000000)

struct schedule_case {
    const char *name;
    unsigned fibers; /* 1 .. SCHEDULE_FIBERS_MAX */
    /* Before the fibers start, and after check; outside of fibers. Both are
     * called once per schedule; each may be NULL. */
    void (*setup)(void *context, uint64_t seed);
    void (*teardown)(void *context);
    /* Runs as fiber 0 .. fibers - 1. Its slot is fiber + 1; outside is 0. */
    void (*body)(void *context, unsigned fiber);
    /* After all fibers have ended; false: this schedule went wrong, and
     * `explain` says why. May be NULL. */
    bool (*check)(void *context, FILE *explain);
    void *context;
    unsigned schedules; /* 0: 10,000 */
    unsigned steps_max; /* 0: 100,000; more steps than that is a livelock */
};

enum schedule_result {
    SCHEDULE_OK,
    SCHEDULE_DEADLOCK, /* all fibers that are left sleep for ever */
    SCHEDULE_LIVELOCK, /* steps_max steps, and it was not over */
    SCHEDULE_WRONG,    /* check said no, or schedule_wrong was called */
};

/* Runs seeds 1 .. n; n is SCHEDULES from the environment, else the case's. The
 * first that fails is told with its reason and fails the running test. With
 * SCHEDULE_SEED=n in the environment only that seed runs, and every step is
 * printed to stderr. */
void schedule_check(const struct schedule_case *c);

/* Runs `count` seeds from `seed_first` up to the first that fails, puts that
 * into `failed_seed` (which may be NULL) and returns what happened. For tests
 * that show that a fault is found.
 *
 * Fibers that did not end (deadlock, livelock, schedule_wrong) are given up
 * where they stand: teardown is not called, what they held is leaked. */
enum schedule_result schedule_try(const struct schedule_case *c,
                                  uint64_t seed_first, uint64_t count,
                                  uint64_t *failed_seed);

/* Seeded, uniform in [0, bound); for setup, bodies and check. */
uint64_t schedule_random(uint64_t bound);
uint64_t schedule_now_ns(void);
/* From a body: this schedule has gone wrong, for the reason given. */
void schedule_wrong(const char *format, ...)
    __attribute__((format(printf, 1, 2), noreturn));
/* From a body: a line of the trace, when one is printed. */
void schedule_note(const char *format, ...)
    __attribute__((format(printf, 1, 2)));

/* About the last schedule that ran. */
struct schedule_facts {
    uint64_t steps;
    uint64_t switches;
    uint64_t trace;  /* a digest of who took which step, and when */
    char text[1024]; /* why it failed */
};
const struct schedule_facts *schedule_last(void);

#endif
