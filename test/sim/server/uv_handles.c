/* uv_handles.c - idle, prepare, check, timer, signal, async, poll: see uv.c. */
#include <assert.h>

#include "sim/server/uv_state.h"

#define SIMPLE(name, kind)                                            \
    int uv_##name##_init(uv_loop_t *loop, uv_##name##_t *handle)      \
    {                                                                 \
        loop_init_handle(loop, handle, kind, sizeof *handle);         \
        return 0;                                                     \
    }                                                                 \
    int uv_##name##_start(uv_##name##_t *handle, uv_##name##_cb call) \
    {                                                                 \
        handle->name##_cb = call;                                     \
        loop_set(handle, ACTIVE, true);                               \
        return 0;                                                     \
    }                                                                 \
    int uv_##name##_stop(uv_##name##_t *handle)                       \
    {                                                                 \
        loop_set(handle, ACTIVE, false);                              \
        return 0;                                                     \
    }

SIMPLE(idle, UV_IDLE)
SIMPLE(prepare, UV_PREPARE)
SIMPLE(check, UV_CHECK)

int uv_timer_init(uv_loop_t *loop, uv_timer_t *timer)
{
    loop_init_handle(loop, timer, UV_TIMER, sizeof *timer);
    return 0;
}

int uv_timer_start(uv_timer_t *timer, uv_timer_cb call, uint64_t timeout,
                   uint64_t repeat)
{
    if (loop_has(timer, CLOSING) || call == NULL)
        return UV_EINVAL;
    timer->timer_cb = call;
    timer->timeout = timer->loop->time + timeout;
    if (timer->timeout < timeout)
        timer->timeout = UINT64_MAX;
    timer->repeat = repeat;
    timer->start_id = timer->loop->timer_counter++;
    loop_set(timer, ACTIVE, true);
    return 0;
}

int uv_timer_stop(uv_timer_t *timer)
{
    loop_set(timer, ACTIVE, false);
    return 0;
}

int uv_signal_init(uv_loop_t *loop, uv_signal_t *handle)
{
    loop_init_handle(loop, handle, UV_SIGNAL, sizeof *handle);
    return 0;
}

int uv_signal_start(uv_signal_t *handle, uv_signal_cb call, int number)
{
    handle->signal_cb = call;
    handle->signum = number;
    loop_set(handle, ACTIVE, true);
    return 0;
}

int uv_signal_stop(uv_signal_t *handle)
{
    loop_set(handle, ACTIVE, false);
    return 0;
}

int uv_async_init(uv_loop_t *loop, uv_async_t *handle, uv_async_cb call)
{
    loop_init_handle(loop, handle, UV_ASYNC, sizeof *handle);
    handle->async_cb = call;
    handle->pending = 0;
    return 0;
}

int uv_async_send(uv_async_t *handle)
{
    handle->pending = 1;
    return 0;
}

int uv_poll_init(uv_loop_t *loop, uv_poll_t *handle, int fd)
{
    (void)fd;
    loop_init_handle(loop, handle, UV_POLL, sizeof *handle);
    return 0;
}

int uv_poll_start(uv_poll_t *handle, int events, uv_poll_cb call)
{
    assert(events == UV_READABLE);
    handle->poll_cb = call;
    loop_set(handle, ACTIVE, true);
    return 0;
}

int uv_poll_stop(uv_poll_t *handle)
{
    loop_set(handle, ACTIVE, false);
    return 0;
}
