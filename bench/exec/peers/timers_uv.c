/* timers_uv.c - libuv's uv_timer_t. */
#include <stdlib.h>
#include <uv.h>

#include "bench/exec/timers.h"

struct timers {
    struct timers_board board; /* first */
    uv_loop_t loop;
    uint64_t inited;
    uv_timer_t *timers;
};

static void called(uv_timer_t *timer)
{
    struct timers *timers = timer->data;

    timers_called(&timers->board, (uint64_t)(timer - timers->timers));
}

CONTEST_INLINE void add(void *self, uint64_t number, uint32_t after_ms)
{
    struct timers *timers = self;
    uv_timer_t *timer = &timers->timers[number];

    uv_timer_init(&timers->loop, timer);
    timer->data = timers;
    timers->inited++;
    if (uv_timer_start(timer, called, after_ms, 0))
        contest_fail("uv_timer_start");
}

CONTEST_INLINE void cancel(void *self, uint64_t number)
{
    struct timers *timers = self;

    if (uv_timer_stop(&timers->timers[number]))
        contest_fail("uv_timer_stop");
}

/* The loop looks at the clock, and then everything is due. */
CONTEST_INLINE void fire(void *self)
{
    struct timers *timers = self;

    uv_run(&timers->loop, UV_RUN_DEFAULT);
}

static void *open_timers(const struct contest_work *work)
{
    struct timers *timers = contest_alloc(sizeof *timers);

    timers->timers = contest_alloc(work->size * sizeof *timers->timers);
    if (uv_loop_init(&timers->loop))
        contest_fail("uv_loop_init");
    return timers;
}

static void close_timers(void *self)
{
    struct timers *timers = self;

    for (uint64_t i = 0; i < timers->inited; i++)
        uv_close((uv_handle_t *)&timers->timers[i], NULL);
    uv_run(&timers->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&timers->loop))
        contest_fail("uv_loop_close");
    free(timers->timers);
    free(timers);
}

/* Times are counted from what the loop takes for now. */
static void enter(struct contest_thread *thread)
{
    struct timers *timers = thread->self;

    uv_update_time(&timers->loop);
    if (thread->work->shape == TIMERS_FIRE)
        timers->loop.time -= TIMERS_RANGE_MS;
    timers_before(thread, add, cancel);
}

static void run(struct contest_thread *thread)
{
    timers_run(thread, add, cancel, fire);
}

const struct contest_side timers_uv = {
    .name = "libuv",
    .open = open_timers,
    .close = close_timers,
    .run = run,
    .enter = enter,
    .check = timers_check,
};
