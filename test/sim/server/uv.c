/* uv.c - a libuv whose loop waits for simulated time.
 *
 * The calls that the server uses, on the types of the real header; what each
 * promises is taken from libuv 1.44 for Unix: the order of a turn (timers,
 * idle, poll, check, closing), callbacks of unfinished writes before that of a
 * close, a stream that reads no more after its end was told, a listener that
 * stops when a connection was announced and not accepted.
 *
 * Fields of the real types that are used here, with another meaning:
 *   loop->handle_queue      first and last handle
 *   handle->handle_queue    next and previous handle
 *   handle->u.reserved[0]   the wire of a TCP handle
 *   handle->flags           the bits of uv_state.h
 */
#include <uv.h>

#include <arpa/inet.h>
#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "sim/server/loop.h"
#include "sim/server/net.h"
#include "sim/server/uv_state.h"
#include "sim/server/world.h"

#define READY_MAX 512

void (*loop_between)(void);

static struct {
    int signal;
    int wake;
    uint64_t turns;
    struct dice dice;
    uv_handle_t *closing;
    uv_tcp_t *listener;
    jmp_buf exit; /* back into uv_run() */
    bool running;
    int polls; /* handles that watch a descriptor, not closed */
} state;

void loop_signal(int number)
{
    state.signal = number;
}

void loop_wake(int readable)
{
    state.wake = readable;
}

uint64_t loop_turns(void)
{
    return state.turns;
}

/* ---- Handles. ---- */

struct wire *loop_wire(const void *handle)
{
    return ((const uv_handle_t *)handle)->u.reserved[0];
}

static uv_handle_t *first_of(const uv_loop_t *loop)
{
    return loop->handle_queue[0];
}

static uv_handle_t *next_of(const uv_handle_t *handle)
{
    return handle->handle_queue[0];
}

void loop_init_handle(uv_loop_t *loop, void *handle, uv_handle_type type,
                      size_t size)
{
    uv_handle_t *h = handle;
    void *data = h->data; /* the user's */

    memset(h, 0, size);
    h->data = data;
    h->loop = loop;
    h->type = type;
    state.polls += type == UV_POLL;
    h->handle_queue[1] = loop->handle_queue[1];
    if (loop->handle_queue[1] != NULL)
        ((uv_handle_t *)loop->handle_queue[1])->handle_queue[0] = h;
    else
        loop->handle_queue[0] = h;
    loop->handle_queue[1] = h;
}

static void take_out(uv_handle_t *h)
{
    uv_loop_t *loop = h->loop;
    uv_handle_t *next = h->handle_queue[0];
    uv_handle_t *prev = h->handle_queue[1];

    if (prev != NULL)
        prev->handle_queue[0] = next;
    else
        loop->handle_queue[0] = next;
    if (next != NULL)
        next->handle_queue[1] = prev;
    else
        loop->handle_queue[1] = prev;
}

void loop_listens(void *handle)
{
    loop_set(handle, LISTENS | ACTIVE, true);
    state.listener = handle;
}

void loop_accepted(void *listener)
{
    loop_set(listener, BLOCKED, false);
}

void loop_reads(void *handle, bool on)
{
    loop_set(handle, READING | ACTIVE, on);
}

/* What has arrived before it is read first, so that a server hears of a reset
 * when it comes to it; one that does not read could ask. */
void loop_tell_reset(struct wire *wire)
{
    if (wire->reset_told)
        return;
    wire->reset_told = true;
    wire->calls->gone(wire);
}

int loop_polls(void)
{
    return state.polls;
}

int uv_is_closing(const uv_handle_t *handle)
{
    return loop_has(handle, CLOSING);
}

int uv_is_active(const uv_handle_t *handle)
{
    return loop_has(handle, ACTIVE);
}

void uv_close(uv_handle_t *handle, uv_close_cb call)
{
    assert(!loop_has(handle, CLOSING));
    state.polls -= handle->type == UV_POLL;
    loop_set(handle, CLOSING, true);
    loop_set(handle, ACTIVE | READING, false);
    handle->close_cb = call;
    handle->next_closing = state.closing;
    state.closing = handle;
    if (handle == (uv_handle_t *)state.listener) {
        state.listener = NULL;
        net_listen(false);
    }
}

void uv_walk(uv_loop_t *loop, uv_walk_cb call, void *context)
{
    for (uv_handle_t *h = first_of(loop), *next; h != NULL; h = next) {
        next = next_of(h);
        call(h, context);
    }
}

/* ---- Loop. ---- */

int uv_loop_init(uv_loop_t *loop)
{
    void *data = loop->data;

    memset(loop, 0, sizeof *loop);
    loop->data = data;
    memset(&state, 0, sizeof state);
    state.dice = dice_make(world_seed(), "loop", world_now_ns(), 0);
    uv_update_time(loop);
    return 0;
}

int uv_loop_close(uv_loop_t *loop)
{
    return first_of(loop) != NULL ? UV_EBUSY : 0;
}

void uv_update_time(uv_loop_t *loop)
{
    loop->time = world_now_ns() / MS;
}

uint64_t uv_now(const uv_loop_t *loop)
{
    return loop->time;
}

uint64_t uv_hrtime(void)
{
    return world_now_ns();
}

void uv_stop(uv_loop_t *loop)
{
    loop->stop_flag = 1;
}

static bool between(void)
{
    if (loop_between != NULL)
        loop_between();
    return !world_is_dead();
}

static void run_timers(uv_loop_t *loop)
{
    for (;;) {
        uv_timer_t *first = NULL;
        for (uv_handle_t *h = first_of(loop); h != NULL; h = next_of(h)) {
            uv_timer_t *timer = (uv_timer_t *)h;
            if (h->type != UV_TIMER || !loop_has(h, ACTIVE) ||
                timer->timeout > loop->time)
                continue;
            if (first == NULL || timer->timeout < first->timeout ||
                (timer->timeout == first->timeout &&
                 timer->start_id < first->start_id))
                first = timer;
        }
        if (first == NULL || !between())
            return;
        uv_timer_stop(first);
        if (first->repeat != 0)
            uv_timer_start(first, first->timer_cb, first->repeat,
                           first->repeat);
        first->timer_cb(first);
    }
}

static void run_each(uv_loop_t *loop, uv_handle_type type)
{
    for (uv_handle_t *h = first_of(loop), *next; h != NULL; h = next) {
        next = next_of(h);
        if (h->type != type || !loop_has(h, ACTIVE))
            continue;
        if (!between())
            return;
        if (type == UV_IDLE)
            ((uv_idle_t *)h)->idle_cb((uv_idle_t *)h);
        else if (type == UV_PREPARE)
            ((uv_prepare_t *)h)->prepare_cb((uv_prepare_t *)h);
        else
            ((uv_check_t *)h)->check_cb((uv_check_t *)h);
    }
}

static void end_write(struct wire *wire, int status)
{
    uv_write_t *write = wire->write;

    wire_write_end(wire);
    write->cb(write, status);
}

static void run_closing(void)
{
    while (state.closing != NULL) {
        uv_handle_t *h = state.closing;
        state.closing = h->next_closing;
        if (h->type == UV_TCP && loop_wire(h) != NULL) {
            struct wire *wire = loop_wire(h);
            if (wire->write != NULL)
                end_write(wire, UV_ECANCELED);
            wire_shut(wire);
        }
        take_out(h);
        if (h->close_cb != NULL)
            h->close_cb(h);
    }
}

/* ---- Poll. ---- */

/* True if the wire has something to say to its handle. */
static bool wire_ready(const uv_handle_t *h)
{
    const struct wire *wire = loop_wire(h);

    if (wire == NULL)
        return false;
    if (wire->reset && !wire->reset_told && !loop_has(h, READING))
        return true; /* told by a look at the socket, if at all */
    if (wire->write != NULL && (wire->reset || wire_window(wire) > 0))
        return true;
    return loop_has(h, READING) &&
           (wire->up.arrived > wire->up.taken || wire->reset ||
            (wire->up.fin_arrived && !wire->eof_told));
}

static bool is_ready(const uv_handle_t *h)
{
    if (loop_has(h, CLOSING))
        return false;
    switch (h->type) {
    case UV_TCP:
        if (loop_has(h, LISTENS))
            return !loop_has(h, BLOCKED) && net_waiting() != NULL;
        return wire_ready(h);
    case UV_POLL:
        return loop_has(h, ACTIVE) && state.wake;
    case UV_ASYNC:
        return ((const uv_async_t *)h)->pending != 0;
    case UV_SIGNAL:
        return loop_has(h, ACTIVE) && state.signal != 0 &&
               ((const uv_signal_t *)h)->signum == state.signal;
    default:
        return false;
    }
}

static size_t find_ready(uv_loop_t *loop, uv_handle_t **out)
{
    size_t count = 0;

    for (uv_handle_t *h = first_of(loop); h != NULL; h = next_of(h)) {
        if (is_ready(h) && count < READY_MAX)
            out[count++] = h;
    }
    return count;
}

static uint64_t poll_until_ns(uv_loop_t *loop)
{
    uint64_t until_ms = UINT64_MAX;

    if (state.closing != NULL || loop->stop_flag)
        return 0;
    for (uv_handle_t *h = first_of(loop); h != NULL; h = next_of(h)) {
        const uv_timer_t *timer = (uv_timer_t *)h;
        if (h->type == UV_IDLE && loop_has(h, ACTIVE))
            return 0;
        if (h->type == UV_TIMER && loop_has(h, ACTIVE) &&
            timer->timeout < until_ms)
            until_ms = timer->timeout;
    }
    return until_ms == UINT64_MAX ? UINT64_MAX : until_ms * MS;
}

static void accept_one(uv_stream_t *listener)
{
    loop_set(listener, BLOCKED, true);
    if (net_accept_fails(net_waiting())) {
        loop_set(listener, BLOCKED, false); /* tried again in the next turn */
        listener->connection_cb(listener, UV_EMFILE);
        return;
    }
    listener->connection_cb(listener, 0);
}

static void go_on_writing(struct wire *wire)
{
    size_t room = wire_window(wire);

    if (wire->reset) {
        end_write(wire, UV_EPIPE);
        return;
    }
    size_t len = wire->write_len < room ? wire->write_len : room;
    wire_send(wire, wire->write_data, len);
    wire->write_data += len;
    wire->write_len -= len;
    ((uv_stream_t *)wire->tcp)->write_queue_size = wire->write_len;
    if (wire->write_len == 0)
        end_write(wire, 0);
}

static void read_some(uv_stream_t *stream, struct wire *wire)
{
    uv_buf_t buf = {0};

    if (wire->up.arrived > wire->up.taken) {
        stream->alloc_cb((uv_handle_t *)stream, 65536, &buf);
        size_t got = wire_take(wire, buf.base, buf.len);
        stream->read_cb(stream, (ssize_t)got, &buf);
    } else if (wire->reset) {
        loop_tell_reset(wire);
        loop_set(stream, READING | ACTIVE, false);
        stream->read_cb(stream, UV_ECONNRESET, &buf);
    } else if (wire->up.fin_arrived && !wire->eof_told) {
        wire->eof_told = true;
        loop_set(stream, READING | ACTIVE, false);
        stream->read_cb(stream, UV_EOF, &buf);
    }
}

static void run_ready(uv_handle_t *h)
{
    struct wire *wire = loop_wire(h);

    if (h->type == UV_POLL) {
        ((uv_poll_t *)h)->poll_cb((uv_poll_t *)h, 0, UV_READABLE);
    } else if (h->type == UV_ASYNC) {
        ((uv_async_t *)h)->pending = 0;
        ((uv_async_t *)h)->async_cb((uv_async_t *)h);
    } else if (h->type == UV_SIGNAL) {
        int number = state.signal;
        state.signal = 0;
        ((uv_signal_t *)h)->signal_cb((uv_signal_t *)h, number);
    } else if (loop_has(h, LISTENS)) {
        accept_one((uv_stream_t *)h);
    } else {
        if (wire->reset && !loop_has(h, READING))
            loop_tell_reset(wire);
        if (loop_has(h, READING))
            read_some((uv_stream_t *)h, wire);
        if (!loop_has(h, CLOSING) && wire->write != NULL)
            go_on_writing(wire);
    }
}

static void poll_once(uv_loop_t *loop)
{
    uv_handle_t *ready[READY_MAX];
    uint64_t until_ns = poll_until_ns(loop);
    size_t count;

    world_run_until(world_now_ns());
    while ((count = find_ready(loop, ready)) == 0 && !world_is_dead() &&
           world_now_ns() < until_ns) {
        uint64_t next_ns = world_next_ns();
        assert(next_ns != UINT64_MAX || until_ns != UINT64_MAX);
        if (next_ns > until_ns)
            world_run_until(until_ns);
        else
            world_step();
    }
    world_spend(dice_between(&state.dice, 1 * US, 20 * US));
    uv_update_time(loop);
    for (size_t left = count; left > 0; left--) {
        size_t pick = (size_t)dice_below(&state.dice, left);
        uv_handle_t *h = ready[pick];
        ready[pick] = ready[left - 1];
        if (!between())
            return;
        if (is_ready(h))
            run_ready(h);
    }
}

_Noreturn void __wrap__exit(int code);
_Noreturn void __real__exit(int code);

/* The process ends at once: as if it were killed. */
_Noreturn void __wrap__exit(int code)
{
    if (!state.running)
        __real__exit(code);
    world_kill();
    longjmp(state.exit, 1);
}

int uv_run(uv_loop_t *loop, uv_run_mode mode)
{
    assert(mode == UV_RUN_DEFAULT);
    state.running = true;
    (void)setjmp(state.exit); /* then the world is dead */
    while (first_of(loop) != NULL && loop->stop_flag == 0) {
        if (world_is_dead()) {
            if (state.closing == NULL) {
                state.running = false;
                return 1;
            }
            run_closing();
            continue;
        }
        state.turns++;
        uv_update_time(loop);
        run_timers(loop);
        run_each(loop, UV_IDLE);
        run_each(loop, UV_PREPARE);
        poll_once(loop);
        run_each(loop, UV_CHECK);
        if (between())
            run_closing();
    }
    loop->stop_flag = 0;
    state.running = false;
    return first_of(loop) != NULL;
}
