/* sessions.h - what the history says of one session.
 *
 *      lo ..... hi =============== end ........ over
 *       |opened|     surely lives       may be    |surely ended
 *
 * One that is bound surely lives as long as its connection, that is up to the
 * last call that the server took from it, and for its TTL from then on. That it
 * has ended is sure when its TTL is over since the server can be seen to have
 * written something after it was told that the connection had gone.
 */
#ifndef HISTORY_SESSIONS_H
#define HISTORY_SESSIONS_H

#include "history/check.h"

struct session {
    struct key key; /* by id */
    uint64_t id;
    const struct call *opened; /* NULL: not in this history */
    uint64_t ttl_ms;
    bool bound;
    uint32_t lo;
    uint32_t hi;
    uint32_t end;
    uint32_t over;
    uint64_t over_us;
};

/* NULL: nothing is known of it. */
const struct session *check_session(const struct check *c, uint64_t id);

#endif
