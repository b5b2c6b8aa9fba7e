/* health.c - ratios over a window, and what is late. */
#include "server/health.h"

#include <assert.h>

#include "server/server.h"

void health_init(struct health *health)
{
    *health = (struct health){.success = 1};
}

static struct health_reading read_now(const struct metrics *metrics,
                                      uint64_t now_ns)
{
    const uint64_t *events = metrics->events;

    return (struct health_reading){
        .at_ns = now_ns,
        .granted = events[EVENT_RESERVED],
        .refused = metrics->reserves_refused,
        .ended = events[EVENT_CONFIRMED] + events[EVENT_CANCELLED] +
                 events[EVENT_RESERVATION_EXPIRED],
        .expired = events[EVENT_RESERVATION_EXPIRED],
    };
}

static double ratio(uint64_t part, uint64_t all, double otherwise)
{
    return all < HEALTH_LEAST ? otherwise : (double)part / (double)all;
}

void health_tend(struct health *health, const struct metrics *metrics,
                 uint64_t now_ns)
{
    struct health_reading now = read_now(metrics, now_ns);
    uint32_t last = (health->first + health->count - 1) % HEALTH_READINGS;

    while (health->count > 0 &&
           health->readings[health->first].at_ns + HEALTH_WINDOW_NS < now_ns) {
        health->first = (health->first + 1) % HEALTH_READINGS;
        health->count--;
    }
    if (health->count == 0 ||
        health->readings[last].at_ns + HEALTH_STEP_NS <= now_ns) {
        assert(health->count < HEALTH_READINGS);
        uint32_t next = (health->first + health->count) % HEALTH_READINGS;
        health->readings[next] = now;
        health->count++;
    }
    const struct health_reading *from = &health->readings[health->first];
    uint64_t granted = now.granted - from->granted;
    health->success = ratio(granted, granted + now.refused - from->refused, 1);
    health->expiry =
        ratio(now.expired - from->expired, now.ended - from->ended, 0);
}

static double seconds_since(uint64_t due_us, uint64_t now_us)
{
    return due_us < now_us ? (double)(now_us - due_us) / 1e6 : 0;
}

double health_behind(const struct server *server)
{
    return seconds_since(hold_due_us(server->engine), server_now_us(server));
}

double health_overdue(const struct server *server)
{
    uint64_t now_us = server_now_us(server);

    return seconds_since(hold_pending_due_us(server->engine, now_us), now_us);
}
