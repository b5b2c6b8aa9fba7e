/* health.h - how reservations fare, over the last five minutes.
 *
 *   success = granted / (granted + refused)     of RESERVEs
 *   expiry  = expired / (confirmed + cancelled + expired)
 *
 * Counters are read every ten seconds; a ratio is of what was counted since the
 * oldest reading that is within the window:
 *
 *   readings  |  |  |  |  |  |  |  |  |
 *             |<---- window -------->| now
 *
 * Of fewer than HEALTH_LEAST a ratio says nothing: success is 1 then, and
 * expiry is 0, so that one refusal in a quiet night wakes nobody.
 *
 * Threads: the loop's. Time: passed in.
 */
#ifndef SERVER_HEALTH_H
#define SERVER_HEALTH_H

#include <stdint.h>

struct metrics;
struct server;

#define HEALTH_WINDOW_NS UINT64_C(300000000000)
#define HEALTH_STEP_NS   UINT64_C(10000000000)
#define HEALTH_READINGS  (HEALTH_WINDOW_NS / HEALTH_STEP_NS + 1)
#define HEALTH_LEAST     20u

struct health_reading {
    uint64_t at_ns;
    uint64_t granted; /* RESERVEs */
    uint64_t refused;
    uint64_t ended; /* reservations */
    uint64_t expired;
};

struct health {
    struct health_reading readings[HEALTH_READINGS]; /* a ring */
    uint32_t first;
    uint32_t count;
    double success;
    double expiry;
};

/* Before the first request. */
void health_init(struct health *health);
/* Reads the counters and works the ratios out; about once a second. */
void health_tend(struct health *health, const struct metrics *metrics,
                 uint64_t now_ns);

/* How long the oldest thing that is over waits to be cleaned up, in seconds;
 * and the oldest pending reservation. 0: nothing does. */
double health_behind(const struct server *server);
double health_overdue(const struct server *server);

#endif
