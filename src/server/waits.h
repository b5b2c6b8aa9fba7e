/* waits.h - clients that wait for a lock.
 *
 * A lock that must wait is in the engine's queue under a ticket; a `struct
 * wait` leads from the ticket to the connection. When nobody is there to be
 * told any more, the wait is abandoned by a record of its own; a grant that
 * comes before that record is given back at once, unless it has a REQ under
 * which it can still be asked for.
 */
#ifndef SERVER_WAITS_H
#define SERVER_WAITS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "hold/engine.h"

struct conn;
struct entry;
struct server;

/* A client in the queue of a lock. Found by its ticket (8 bytes). */
struct wait {
    struct hf_named named;
    struct conn *conn; /* NULL: gone; a grant goes back at once */
    uint64_t ticket;
    uint64_t deadline_us;
    uint64_t came_ns; /* when the request was read; 0: its end was told */
    struct hf_text lock;
    bool has_request; /* it carried a REQ */
};

/* The connection's lock is in a queue now. */
void waits_begin(struct server *server, const struct entry *entry,
                 uint64_t ticket, const struct hold_command *command);
/* The engine answers one who waited. */
void waits_end(struct server *server, const struct hold_answer *given);
/* A record was applied that may have abandoned a wait. */
void waits_forget(struct server *server, struct hf_bytes record);
/* Gives a lock back whose grant nobody was told of. */
void waits_give_back(struct server *server, struct hf_bytes lock,
                     struct hf_bytes grant);
/* Ends the waits whose deadline has come, without the engine. */
void waits_time_out(struct server *server, uint64_t now_us);
/* The connection goes: nobody waits there any more. */
void waits_leave(struct server *server, struct conn *conn);

#endif
