/* permits.c - hf_semaphore, hf_latch and hf_barrier beside nsync and pthread.
 */
#include "permits.h"

#include <stdlib.h>

#include "holdfast/barrier.h"
#include "holdfast/latch.h"
#include "holdfast/semaphore.h"

extern const struct contest_side permits_nsync;
extern const struct contest_side permits_pthread;

#define ROUNDS(text, kind, count)                      \
    {                                                  \
        .name = text, .threads = count, .shape = kind, \
        .most = PERMITS_ROUNDS_MAX, .fresh = true,     \
    }

static const struct contest_work works[] = {
    {.name = "semaphore-1", .threads = 1, .shape = PERMITS_SEMAPHORE},
    {.name = "semaphore-2", .threads = 2, .shape = PERMITS_SEMAPHORE},
    {.name = "semaphore-8", .threads = 8, .shape = PERMITS_SEMAPHORE},
    ROUNDS("latch-2", PERMITS_LATCH, 2),
    ROUNDS("latch-4", PERMITS_LATCH, 4),
    ROUNDS("barrier-2", PERMITS_BARRIER, 2),
    ROUNDS("barrier-4", PERMITS_BARRIER, 4),
    {.name = NULL},
};

struct ours {
    struct permits permits; /* first */
    struct hf_semaphore semaphore;
    char apart[CONTEST_LINE];
    struct hf_barrier barrier;
    struct hf_latch *latches;
};

static void *ours_open(const struct contest_work *work)
{
    struct ours *ours = contest_alloc(sizeof *ours);
    struct hf_semaphore_opts semaphore = {.permits = 1};
    struct hf_barrier_opts barrier = {.parties = work->threads};

    permits_open(&ours->permits);
    ours->latches = contest_alloc(PERMITS_ROUNDS_MAX * sizeof *ours->latches);
    if (hf_semaphore_init(&ours->semaphore, &semaphore) ||
        hf_barrier_init(&ours->barrier, &barrier))
        contest_fail("init");
    for (size_t i = 0; i < PERMITS_ROUNDS_MAX; i++)
        if (hf_latch_init(&ours->latches[i], work->threads, NULL))
            contest_fail("hf_latch_init");
    return ours;
}

static void ours_close(void *self)
{
    struct ours *ours = self;

    for (size_t i = 0; i < PERMITS_ROUNDS_MAX; i++)
        hf_latch_destroy(&ours->latches[i]);
    hf_barrier_destroy(&ours->barrier);
    hf_semaphore_destroy(&ours->semaphore);
    free(ours->permits.arrived);
    free(ours->latches);
    free(ours);
}

CONTEST_INLINE void ours_acquire(struct permits *permits)
{
    struct ours *ours = (struct ours *)permits;

    if (hf_semaphore_acquire(&ours->semaphore, 1, HF_FOREVER))
        contest_fail("hf_semaphore_acquire");
}

CONTEST_INLINE void ours_give(struct permits *permits)
{
    struct ours *ours = (struct ours *)permits;

    if (hf_semaphore_release(&ours->semaphore, 1))
        contest_fail("hf_semaphore_release");
}

CONTEST_INLINE void ours_latch(struct permits *permits, uint64_t round)
{
    struct hf_latch *latch = &((struct ours *)permits)->latches[round];

    if (hf_latch_count_down(latch, 1) || hf_latch_wait(latch, HF_FOREVER))
        contest_fail("hf_latch");
}

CONTEST_INLINE void ours_barrier(struct permits *permits, uint64_t round)
{
    (void)round;
    if (hf_barrier_wait(&((struct ours *)permits)->barrier, HF_FOREVER, NULL))
        contest_fail("hf_barrier_wait");
}

static void ours_run(struct contest_thread *thread)
{
    permits_run(thread, ours_acquire, ours_give, ours_latch, ours_barrier);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
    .check = permits_check,
};

static const struct contest_side *const sides[] = {
    &ours,
    &permits_nsync,
    &permits_pthread,
    NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
