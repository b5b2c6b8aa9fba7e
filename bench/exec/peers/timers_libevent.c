/* timers_libevent.c - libevent's timers. */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>

#include "bench/exec/timers.h"

struct timers {
    struct timers_board board; /* first */
    struct event_base *base;
    bool past; /* times are counted from 10 s ago */
    struct event *events;
};

static void called(evutil_socket_t socket, short what, void *arg)
{
    struct timers *timers = arg;
    struct event *event = event_base_get_running_event(timers->base);

    (void)socket;
    (void)what;
    timers_called(&timers->board, (uint64_t)(event - timers->events));
}

CONTEST_INLINE void add(void *self, uint64_t number, uint32_t after_ms)
{
    struct timers *timers = self;
    struct event *event = &timers->events[number];
    struct timeval after = {
        .tv_sec = after_ms / 1000,
        .tv_usec = after_ms % 1000 * 1000,
    };

    if (timers->past)
        after.tv_sec -= TIMERS_RANGE_MS / 1000;
    if (evtimer_assign(event, timers->base, called, timers) ||
        evtimer_add(event, &after))
        contest_fail("evtimer_add");
}

CONTEST_INLINE void cancel(void *self, uint64_t number)
{
    struct timers *timers = self;

    if (evtimer_del(&timers->events[number]))
        contest_fail("evtimer_del");
}

CONTEST_INLINE void fire(void *self)
{
    struct timers *timers = self;

    if (event_base_dispatch(timers->base) < 0)
        contest_fail("event_base_dispatch");
}

/* For one thread, without locks, as the others have it. */
static void *open_timers(const struct contest_work *work)
{
    struct timers *timers = contest_alloc(sizeof *timers);
    struct event_config *config = event_config_new();

    if (config == NULL || event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK))
        contest_fail("event_config_new");
    timers->base = event_base_new_with_config(config);
    if (timers->base == NULL)
        contest_fail("event_base_new_with_config");
    event_config_free(config);
    timers->events = contest_alloc(work->size * sizeof *timers->events);
    timers->past = work->shape == TIMERS_FIRE;
    return timers;
}

static void close_timers(void *self)
{
    struct timers *timers = self;

    event_base_free(timers->base);
    free(timers->events);
    free(timers);
}

static void enter(struct contest_thread *thread)
{
    timers_before(thread, add, cancel);
}

static void run(struct contest_thread *thread)
{
    timers_run(thread, add, cancel, fire);
}

const struct contest_side timers_libevent = {
    .name = "libevent",
    .open = open_timers,
    .close = close_timers,
    .run = run,
    .enter = enter,
    .check = timers_check,
};
