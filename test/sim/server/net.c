/* net.c - wires and what becomes of their bytes. */
#include "sim/server/net.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "resp/resp.h"

/* Which way, and up to which byte; or what else arrives. */
#define WAY_DOWN (UINT64_C(1) << 63)
#define WAY_FIN  (UINT64_C(1) << 62)

/* As long as a host is probed: keepalive-ms and ten seconds. */
#define VANISH_NS (70 * S)

static struct {
    struct net_mix mix;
    struct wire *wires;
    struct wire *waiting; /* to be accepted, the oldest first */
    uint64_t count;
    bool listening;
    bool healed;
    uint64_t owed_ns; /* when a write of the server ended */
} net;

void net_begin(const struct net_mix *mix)
{
    net.mix = *mix;
    net.wires = net.waiting = NULL;
    net.count = 0;
    net.listening = false;
    net.healed = false;
}

void net_end(void)
{
    while (net.wires != NULL) {
        struct wire *wire = net.wires;
        net.wires = wire->next;
        free(wire->up.data);
        free(wire->down.data);
        free(wire->reply);
        free(wire);
    }
}

void net_heal(void)
{
    net.healed = true;
    for (struct wire *wire = net.wires; wire != NULL; wire = wire->next) {
        if (!wire->broken)
            wire->up.cut_at = wire->down.cut_at = UINT64_MAX;
        wire->window = 1u << 20;
    }
}

struct wire *net_first(void)
{
    return net.wires;
}

/* ---- Arrivals. ---- */

static void pipe_append(struct pipe *pipe, const char *data, size_t len)
{
    size_t held = (size_t)(pipe->written - pipe->taken);

    if (held + len > pipe->cap) {
        pipe->cap = 2 * (held + len) + 64;
        pipe->data = realloc(pipe->data, pipe->cap);
        assert(pipe->data != NULL);
    }
    memcpy(pipe->data + held, data, len);
    pipe->written += len;
}

static size_t pipe_take(struct pipe *pipe, char *data, size_t len)
{
    size_t held = (size_t)(pipe->written - pipe->taken);
    size_t ready = (size_t)(pipe->arrived - pipe->taken);

    if (len > ready)
        len = ready;
    if (len == 0)
        return 0;
    memcpy(data, pipe->data, len);
    memmove(pipe->data, pipe->data + len, held - len);
    pipe->taken += len;
    return len;
}

static void end_client(struct wire *wire)
{
    if (wire->client_ended)
        return;
    wire->client_ended = true;
    wire->calls->ended(wire);
}

static void on_client_reset(void *context, uint64_t number)
{
    struct wire *wire = context;

    (void)number;
    wire->broken = true;
    end_client(wire);
}

static void on_server_reset(void *context, uint64_t number)
{
    struct wire *wire = context;

    (void)number;
    wire->reset = true;
    wire->broken = true;
    wire->calls->cut(wire);
}

/* Somebody cut it: each end hears of it in its own time. The end of a host
 * that has vanished is heard of when the system has probed it in vain. */
static void break_wire(struct wire *wire)
{
    uint64_t most = net.healed ? 10 * MS : 3 * S;

    wire->broken = true;
    if (dice_hit(&wire->dice, net.mix.vanish)) {
        world_after(1, on_client_reset, wire, 0);
        world_after(VANISH_NS, on_server_reset, wire, 0);
        return;
    }
    world_after(dice_scale(&wire->dice, 10 * US, most), on_client_reset, wire,
                0);
    world_after(dice_scale(&wire->dice, 10 * US, most), on_server_reset, wire,
                0);
}

static void arrive_down(struct wire *wire, uint64_t number)
{
    struct pipe *pipe = &wire->down;

    if (wire->client_closed) {
        on_server_reset(wire, 0); /* nobody is there to take it */
        return;
    }
    if ((number & WAY_FIN) != 0)
        pipe->fin_arrived = true;
    else
        pipe->arrived = number & ~WAY_DOWN;
    if (!wire->client_ended)
        wire->calls->readable(wire);
    if (pipe->fin_arrived && pipe->taken == pipe->arrived)
        end_client(wire);
}

static void on_arrive(void *context, uint64_t number)
{
    struct wire *wire = context;

    if (wire->broken)
        return;
    if ((number & WAY_DOWN) != 0) {
        arrive_down(wire, number);
        return;
    }
    if ((number & WAY_FIN) != 0)
        wire->up.fin_arrived = true;
    else
        wire->up.arrived = number;
    if (wire->server_closed)
        world_after(wire->delay_ns, on_client_reset, wire, 0);
}

static uint64_t arrival(struct wire *wire, struct pipe *pipe)
{
    uint64_t most = net.mix.delay_max;
    uint64_t at_ns = world_now_ns() + wire->delay_ns;

    if (dice_hit(&wire->dice, 200) && !net.healed)
        at_ns += dice_scale(&wire->dice, 1 * US, most > US ? most : US);
    if (at_ns < pipe->arrival_ns)
        at_ns = pipe->arrival_ns;
    pipe->arrival_ns = at_ns;
    return at_ns;
}

static void pipe_write(struct wire *wire, struct pipe *pipe, const char *data,
                       size_t len, uint64_t way)
{
    bool cut = pipe->written + len >= pipe->cut_at;

    if (wire->broken || len == 0)
        return;
    if (cut)
        len = (size_t)(pipe->cut_at - pipe->written);
    pipe_append(pipe, data, len);
    uint64_t from = pipe->written - len;
    while (!net.healed && pipe->written - from > 1 &&
           dice_hit(&wire->dice, net.mix.split)) {
        from += dice_between(&wire->dice, 1, pipe->written - from - 1);
        world_at(arrival(wire, pipe), on_arrive, wire, from | way);
    }
    world_at(arrival(wire, pipe), on_arrive, wire, pipe->written | way);
    if (cut)
        break_wire(wire);
}

/* ---- The client's end. ---- */

static void on_connect(void *context, uint64_t number)
{
    struct wire *wire = context;

    (void)number;
    if (wire->client_closed || wire->client_ended)
        return;
    if (!net.listening || world_is_dead() || wire->server_closed) {
        end_client(wire);
        return;
    }
    struct wire **last = &net.waiting;
    while (*last != NULL)
        last = &(*last)->next_waiting;
    *last = wire;
    wire->calls->connected(wire);
}

struct wire *wire_connect(const struct wire_calls *calls, void *owner,
                          bool local)
{
    struct wire *wire = calloc(1, sizeof *wire);
    struct net_mix *mix = &net.mix;

    assert(wire != NULL);
    wire->number = ++net.count;
    wire->dice = dice_make(world_seed(), "wire", wire->number, 0);
    wire->calls = calls;
    wire->owner = owner;
    wire->local = local;
    wire->six = dice_hit(&wire->dice, 50);
    wire->up.cut_at = wire->down.cut_at = UINT64_MAX;
    wire->delay_ns = dice_scale(&wire->dice, mix->delay_ns, mix->delay_max);
    wire->window = dice_between(&wire->dice, mix->window_min, mix->window_max);
    if (dice_hit(&wire->dice, mix->cut) && !net.healed) {
        struct pipe *pipe =
            dice_below(&wire->dice, 2) == 0 ? &wire->up : &wire->down;
        pipe->cut_at = dice_scale(&wire->dice, 1, mix->cut_bytes);
    }
    if (net.healed)
        wire->window = 1u << 20;
    wire->next = net.wires;
    net.wires = wire;
    world_after(wire->delay_ns, on_connect, wire, 0);
    return wire;
}

void wire_write(struct wire *wire, const void *data, size_t len)
{
    if (!wire->client_closed && !wire->up.fin)
        pipe_write(wire, &wire->up, data, len, 0);
}

static void finish(struct wire *wire, struct pipe *pipe, uint64_t way)
{
    if (pipe->fin || wire->broken)
        return;
    pipe->fin = true;
    world_at(arrival(wire, pipe), on_arrive, wire, way | WAY_FIN);
}

void wire_finish(struct wire *wire)
{
    finish(wire, &wire->up, 0);
}

static void on_drained(void *context, uint64_t number)
{
    (void)number;
    end_client(context);
}

size_t wire_read(struct wire *wire, char *data, size_t len)
{
    struct pipe *pipe = &wire->down;
    size_t got = pipe_take(pipe, data, len);

    if (got > 0 && pipe->fin_arrived && pipe->taken == pipe->arrived)
        world_after(0, on_drained, wire, 0);
    return got;
}

void wire_close(struct wire *wire, bool reset)
{
    if (wire->client_closed)
        return;
    wire->client_closed = true;
    wire->client_ended = true;
    if (!reset) {
        finish(wire, &wire->up, 0);
        return;
    }
    world_after(wire->delay_ns, on_server_reset, wire, 0);
}

/* ---- The server's end. ---- */

/* Those that were not accepted are turned away when it ends. */
void net_listen(bool on)
{
    net.listening = on;
    while (net.waiting != NULL && !on) {
        struct wire *wire = net.waiting;
        net.waiting = wire->next_waiting;
        wire->server_closed = true;
        world_after(wire->delay_ns, on_client_reset, wire, 0);
    }
}

struct wire *net_waiting(void)
{
    return net.waiting;
}

bool net_accept_fails(struct wire *wire)
{
    return !net.healed && dice_hit(&wire->dice, net.mix.refuse);
}

void wire_accept(struct wire *wire, void *tcp)
{
    assert(net.waiting == wire);
    net.waiting = wire->next_waiting;
    wire->tcp = tcp;
    wire->heard_ns = wire->sent_ns = world_now_ns();
}

size_t wire_window(const struct wire *wire)
{
    uint64_t held = wire->down.written - wire->down.taken;

    return held >= wire->window ? 0 : (size_t)(wire->window - held);
}

/* Finds the ends of replies in what the server writes. */
static void follow_replies(struct wire *wire, const char *data, size_t len)
{
    if (wire->reply_len + len > wire->reply_cap) {
        wire->reply_cap = 2 * (wire->reply_len + len) + 64;
        wire->reply = realloc(wire->reply, wire->reply_cap);
        assert(wire->reply != NULL);
    }
    memcpy(wire->reply + wire->reply_len, data, len);
    wire->reply_len += len;
    size_t from = 0;
    size_t at = 0;
    struct hf_bytes input = hf_bytes(wire->reply, wire->reply_len);
    while (at < input.len && resp_skip(input, &at) == HF_OK) {
        wire->calls->replied(wire, hf_bytes(input.data + from, at - from));
        from = at;
    }
    memmove(wire->reply, wire->reply + from, wire->reply_len - from);
    wire->reply_len -= from;
}

void wire_send(struct wire *wire, const char *data, size_t len)
{
    if (world_is_dead())
        return;
    wire->sent_ns = world_now_ns();
    follow_replies(wire, data, len);
    pipe_write(wire, &wire->down, data, len, WAY_DOWN);
}

size_t wire_take(struct wire *wire, char *data, size_t len)
{
    size_t got = pipe_take(&wire->up, data, len);

    wire->heard_ns = world_now_ns();
    if (!world_is_dead())
        wire->calls->taken(wire);
    return got;
}

void wire_write_end(struct wire *wire)
{
    wire->write = NULL;
    net.owed_ns = world_now_ns();
}

uint64_t net_owed_ns(void)
{
    return net.owed_ns;
}

void wire_shut(struct wire *wire)
{
    bool unread = wire->up.written > wire->up.taken;

    wire->tcp = NULL;
    wire->write = NULL;
    if (wire->server_closed || world_is_dead())
        return;
    wire->server_closed = true;
    wire->calls->shut(wire);
    if (unread)
        world_after(wire->delay_ns, on_client_reset, wire, 0);
    else
        finish(wire, &wire->down, WAY_DOWN);
}

/* A process that is killed has its bytes sent by the system, and then a reset;
 * a machine that loses power says nothing until it is back. */
void net_kill(void)
{
    net_listen(false);
    for (struct wire *wire = net.wires; wire != NULL; wire = wire->next) {
        bool power = dice_hit(&wire->dice, 500);
        if (wire->server_closed || wire->client_closed)
            continue;
        wire->server_closed = true;
        wire->broken = wire->broken || power;
        uint64_t after_ns =
            power ? dice_scale(&wire->dice, 1 * MS, 5 * S) : wire->delay_ns;
        uint64_t at_ns = world_now_ns() + after_ns;
        if (at_ns < wire->down.arrival_ns)
            at_ns = wire->down.arrival_ns;
        world_at(at_ns, on_client_reset, wire, 0);
    }
}
