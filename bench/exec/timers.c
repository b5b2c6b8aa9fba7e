/* timers.c - hf_scheduler beside the timers of libuv and libevent.
 *
 * Theirs belong to one loop and its thread, and lie in the user's memory. Ours
 * are added and cancelled from any thread, under a lock, beside the thread that
 * waits for them.
 */
#include "timers.h"

#include <semaphore.h>
#include <stdlib.h>

#include "holdfast/scheduler.h"

extern const struct contest_side timers_uv;
extern const struct contest_side timers_libevent;

#define COUNT 1000000

#define WORK(text, kind)                                          \
    {                                                             \
        .name = text, .threads = 1, .shape = kind, .size = COUNT, \
        .exact = COUNT, .fresh = true, .roam = true,              \
    }

static const struct contest_work works[] = {
    WORK("add-1m", TIMERS_ADD),
    WORK("cancel-1m", TIMERS_CANCEL),
    WORK("fire-1m", TIMERS_FIRE),
    {.name = NULL},
};

struct ours_timer {
    struct ours *of;
    uint64_t id;
};

struct ours {
    struct timers_board board; /* first */
    struct hf_scheduler *scheduler;
    uint64_t zero_ns; /* what times are counted from */
    sem_t held;       /* the scheduler's thread is, before it fires */
    struct ours_timer *timers;
};

static int ours_called(void *arg)
{
    struct ours_timer *timer = arg;

    timers_called(&timer->of->board, (uint64_t)(timer - timer->of->timers));
    return 0;
}

static int hold(void *arg)
{
    struct ours *ours = arg;

    while (sem_wait(&ours->held) != 0)
        continue;
    return 0;
}

CONTEST_INLINE void ours_add(void *self, uint64_t number, uint32_t after_ms)
{
    struct ours *ours = self;
    struct ours_timer *timer = &ours->timers[number];

    timer->of = ours;
    if (hf_scheduler_at(ours->scheduler,
                        ours->zero_ns + UINT64_C(1000000) * after_ms, 0,
                        ours_called, timer, &timer->id))
        contest_fail("hf_scheduler_at");
}

CONTEST_INLINE void ours_cancel(void *self, uint64_t number)
{
    struct ours *ours = self;

    if (hf_scheduler_cancel(ours->scheduler, ours->timers[number].id))
        contest_fail("hf_scheduler_cancel");
}

CONTEST_INLINE void ours_fire(void *self)
{
    struct ours *ours = self;

    sem_post(&ours->held);
    hf_scheduler_shutdown(ours->scheduler);
    if (hf_scheduler_await(ours->scheduler, HF_FOREVER))
        contest_fail("hf_scheduler_await");
}

static void *ours_open(const struct contest_work *work)
{
    struct hf_scheduler_opts opts = {.name = work->name, .direct = true};
    struct ours *ours = contest_alloc(sizeof *ours);

    ours->timers = contest_alloc(work->size * sizeof *ours->timers);
    sem_init(&ours->held, 0, 0);
    if (hf_scheduler_open(&ours->scheduler, &opts))
        contest_fail("hf_scheduler_open");
    return ours;
}

static void ours_close(void *self)
{
    struct ours *ours = self;

    hf_scheduler_close(ours->scheduler);
    sem_destroy(&ours->held);
    free(ours->timers);
    free(ours);
}

/* The scheduler has memory for all timers once it had them. In FIRE its thread
 * is held in a task until all that is due is there. */
static void ours_enter(struct contest_thread *thread)
{
    struct ours *ours = thread->self;

    ours->zero_ns = hf_clock_now_ns(hf_clock_system());
    for (uint64_t i = 0; i < thread->total; i++)
        ours_add(ours, i, TIMERS_AHEAD_MS);
    for (uint64_t i = 0; i < thread->total; i++)
        ours_cancel(ours, i);
    if (thread->work->shape == TIMERS_FIRE) {
        if (hf_scheduler_at(ours->scheduler, 0, 0, hold, ours, NULL))
            contest_fail("hf_scheduler_at");
        ours->zero_ns -= UINT64_C(1000000) * TIMERS_RANGE_MS;
    }
    timers_before(thread, ours_add, ours_cancel);
}

static void ours_run(struct contest_thread *thread)
{
    timers_run(thread, ours_add, ours_cancel, ours_fire);
}

static const struct contest_side ours = {
    .name = "ours",
    .open = ours_open,
    .close = ours_close,
    .run = ours_run,
    .enter = ours_enter,
    .check = timers_check,
};

static const struct contest_side *const sides[] = {
    &ours,
    &timers_uv,
    &timers_libevent,
    NULL,
};

int main(int argc, char **argv)
{
    return contest_main(argc, argv, works, sides);
}
