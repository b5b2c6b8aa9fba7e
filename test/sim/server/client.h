/* client.h - simulated clients: they ask, wait, lose patience and come back.
 *
 * Each client has turns. A turn sends one request or several, waits for the
 * answers, thinks, and goes on to the next. What a turn does is drawn from the
 * seed, the client's number and the turn's, so that a turn that is left out
 * changes nothing in the others but their luck.
 *
 * A visit is one connection of a client. What was asked with a REQ and not
 * answered when it ended is asked again in the next one, as a rule.
 */
#ifndef SIM_SERVER_CLIENT_H
#define SIM_SERVER_CLIENT_H

#include "sim/server/mix.h"

struct words;

/* Turns that are left out, by client. */
#define TURNS_MAX 8192

struct client_masks {
    bool clients[CLIENTS_MAX];
    uint8_t turns[CLIENTS_MAX][TURNS_MAX / 8];
};

/* `masks` may be NULL. The clients send `limit` requests in all, then rest. */
void clients_begin(const struct mix *mix, const struct client_masks *masks,
                   uint64_t limit);
void clients_end(void);
/* Requests sent so far. */
uint64_t clients_sent(void);
/* No client has anything left to send. */
bool clients_done(void);
/* Nothing is unanswered on a connection that stands. */
bool clients_quiet(void);
/* No more whims: those who read slowly read, those who left stay. */
void clients_heal(void);
/* Everybody stops for so long. */
void clients_pause(uint64_t ns);
/* The next batch takes that long. */
void clients_stall(uint64_t ns);
/* Somebody who waits for nothing asks this; false: there is nobody. */
bool clients_ask_one(const struct words *words);
/* A last one reads all that there is; clients_quiet() once it is answered. */
void clients_read_all(void);
/* The server has stopped cleanly, as it was asked to at that time. */
void clients_stopped(uint64_t asked_ns);
/* The journal failed at that time, and everybody had time to be told. */
void clients_failed(uint64_t failed_ns);
/* The server may close any connection from now on, or not; it stops. */
void clients_excuse(bool on, bool stops);
/* What a client saw that no server may do; NULL: nothing. */
const char *clients_wrong(void);
/* A number for a request that somebody else makes. */
uint64_t clients_next_id(void);
/* Turns that the client has had. */
uint64_t clients_turns(uint64_t client);

#endif
