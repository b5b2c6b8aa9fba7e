/* push.h - what happens to a lock is told to its holder.
 *
 * A client that speaks RESP3 is sent, besides its replies,
 *
 *   lock_lost     name token   it expired, was revoked, or its session ended
 *   lock_wounded  name token   it will be taken away soon
 *   lock_wanted   name token   somebody waits for it
 *
 * on the connection on which it was last told that it holds the lock; of a set,
 * with its first name. It is a help, not a promise: nothing is sent to a
 * connection that is gone, and without memory nothing is noted.
 */
#ifndef SERVER_PUSH_H
#define SERVER_PUSH_H

#include "base/index.h"
#include "hold/engine.h"

struct conn;
struct server;

struct pushes {
    struct hf_texts texts;
    struct hf_index grants; /* by token: struct pushed */
    size_t bytes;
};

enum hf_status pushes_open(struct pushes *pushes);
void pushes_close(struct pushes *pushes);

/* The connection was told that it holds what `grant`, a reply, says. */
void push_grant(struct server *server, struct conn *conn,
                struct hf_bytes grant);
/* Events of a record that was applied. */
void push_events(struct server *server, const struct hold_out *out);
/* Somebody waits for that lock. */
void push_wanted(struct server *server, struct hf_bytes name);
/* The connection goes. */
void push_leave(struct server *server, struct conn *conn);

#endif
