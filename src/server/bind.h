/* bind.h - sessions that live as long as a connection.
 *
 *   SESSION OPEN ... BIND     the session is one of the connection's
 *   SESSION KEEP, elsewhere   it is one of that connection's from now on
 *   the connection goes       a record, HOLD_SESSION_LEFT: the session lives
 * for its TTL more
 *
 * The record says as of which OPEN or KEEP: if another KEEP was before it in
 * the log, it has no effect. It is owed until it was applied. A server that
 * starts unbinds all sessions.
 */
#ifndef SERVER_BIND_H
#define SERVER_BIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/index.h"
#include "hold/engine.h"

struct conn;
struct entry;
struct server;

struct bound {
    struct hf_named named; /* the session's id */
    struct conn *conn;     /* NULL: a record is owed, or on its way */
    bool sent;             /* it is on its way */
    uint32_t prev;         /* of the same connection, owed, or on their way */
    uint32_t next;
    uint64_t id;
    uint64_t kept; /* the number of the OPEN or KEEP */
};

struct binds {
    struct hf_texts texts;
    struct hf_index sessions;
    uint32_t owed; /* the first */
    uint32_t sent; /* likewise */
    size_t bytes;
};

enum hf_status binds_open(struct binds *binds);
void binds_close(struct binds *binds);

/* Makes sure that the session of this command can be bound when it is applied;
 * `binds` says whether there is a promise. False without memory. */
bool bind_promise(struct server *server, const struct hold_command *command,
                  bool *binds);
/* It was applied, or not. */
void bind_unpromise(struct server *server);
/* `reply` is that of OPEN or KEEP. */
void bind_session(struct server *server, struct conn *conn,
                  struct hf_bytes reply);
/* The connection goes. */
void bind_leave(struct server *server, struct conn *conn);
/* The session that SESSION 0 means; 0: none. */
uint64_t bind_own(const struct server *server, const struct conn *conn);
/* The next record that is owed; false: none. bind_sent() when it is in a batch;
 * bind_left() when that was applied, or the record was refused. */
bool bind_owed(const struct server *server, struct hold_command *command);
void bind_sent(struct server *server);
void bind_left(struct server *server, const struct hold_command *command,
               bool applied);
/* The session was closed. */
void bind_close(struct server *server, uint64_t id);
/* All were. */
void bind_clear(struct server *server);

#endif
