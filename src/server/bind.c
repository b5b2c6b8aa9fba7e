/* bind.c - sessions that live as long as a connection. */
#include "server/bind.h"

#include <assert.h>

#include "server/conn.h"
#include "server/server.h"

#define ID_BYTES sizeof(uint64_t)

enum hf_status binds_open(struct binds *binds)
{
    struct hf_hash_seed seed = {{0, 0}}; /* they are our own numbers */

    hf_texts_init(&binds->texts, &binds->bytes);
    return hf_index_init(&binds->sessions, sizeof(struct bound), &binds->texts,
                         seed, &binds->bytes);
}

void binds_close(struct binds *binds)
{
    hf_index_destroy(&binds->sessions);
    hf_texts_destroy(&binds->texts);
}

static uint32_t find(const struct server *server, uint64_t id)
{
    return hf_index_find(&server->binds.sessions,
                         hf_bytes((const char *)&id, ID_BYTES));
}

static struct bound *bound_at(const struct server *server, uint32_t number)
{
    return hf_index_at(&server->binds.sessions, number);
}

/* The list that it is in. */
static uint32_t *list_of(struct server *server, const struct bound *bound)
{
    return bound->conn != NULL ? &bound->conn->bound
           : bound->sent       ? &server->binds.sent
                               : &server->binds.owed;
}

static void unlink_bound(struct server *server, uint32_t number)
{
    const struct bound *bound = bound_at(server, number);

    *(bound->prev != 0 ? &bound_at(server, bound->prev)->next
                       : list_of(server, bound)) = bound->next;
    if (bound->next != 0)
        bound_at(server, bound->next)->prev = bound->prev;
}

/* Puts it at the front of the connection's, or of those that are owed, or on
 * their way. */
static void link_bound(struct server *server, uint32_t number,
                       struct conn *conn, bool sent)
{
    struct bound *bound = bound_at(server, number);

    bound->conn = conn;
    bound->sent = sent;
    uint32_t *list = list_of(server, bound);
    bound->prev = 0;
    bound->next = *list;
    if (*list != 0)
        bound_at(server, *list)->prev = number;
    *list = number;
}

bool bind_promise(struct server *server, const struct hold_command *command,
                  bool *binds)
{
    bool may_bind = command->kind == HOLD_SESSION_KEEP ||
                    (command->kind == HOLD_SESSION_OPEN &&
                     (command->flags & HOLD_BIND) != 0);

    *binds = may_bind &&
             hf_index_promise(&server->binds.sessions, ID_BYTES) == HF_OK;
    return *binds == may_bind;
}

void bind_unpromise(struct server *server)
{
    hf_index_unpromise(&server->binds.sessions, ID_BYTES);
}

void bind_session(struct server *server, struct conn *conn,
                  struct hf_bytes reply)
{
    uint64_t id = (uint64_t)reply_get_number(reply, FIELD_SESSION);

    if (reply_get_number(reply, FIELD_BOUND) == 0)
        return;
    uint32_t number = find(server, id);
    if (number != 0)
        unlink_bound(server, number);
    else
        number = hf_index_add(&server->binds.sessions,
                              hf_bytes((const char *)&id, ID_BYTES));
    assert(number != 0); /* promised */
    bound_at(server, number)->id = id;
    bound_at(server, number)->kept = hold_seq(server->engine);
    link_bound(server, number, conn_is_gone(conn) ? NULL : conn, false);
}

void bind_leave(struct server *server, struct conn *conn)
{
    while (conn->bound != 0) {
        uint32_t number = conn->bound;
        unlink_bound(server, number);
        link_bound(server, number, NULL, false);
    }
}

uint64_t bind_own(const struct server *server, const struct conn *conn)
{
    return conn->bound == 0 ? 0 : bound_at(server, conn->bound)->id;
}

bool bind_owed(const struct server *server, struct hold_command *command)
{
    if (server->binds.owed == 0 || server->failed)
        return false;
    const struct bound *bound = bound_at(server, server->binds.owed);
    *command = (struct hold_command){.kind = HOLD_SESSION_LEFT,
                                     .now_us = server_now_us(server),
                                     .token = bound->id,
                                     .amount = (int64_t)bound->kept};
    return true;
}

void bind_sent(struct server *server)
{
    uint32_t number = server->binds.owed;

    unlink_bound(server, number);
    link_bound(server, number, NULL, true);
}

static void forget(struct server *server, uint32_t number)
{
    unlink_bound(server, number);
    hf_index_remove(&server->binds.sessions, number);
}

void bind_left(struct server *server, const struct hold_command *command,
               bool applied)
{
    uint32_t number = find(server, command->token);

    if (number == 0 || !bound_at(server, number)->sent ||
        bound_at(server, number)->kept != (uint64_t)command->amount)
        return; /* it was kept or closed meanwhile */
    if (applied) {
        forget(server, number);
        return;
    }
    unlink_bound(server, number);
    link_bound(server, number, NULL, false);
}

void bind_close(struct server *server, uint64_t id)
{
    uint32_t number = find(server, id);

    if (number != 0)
        forget(server, number);
}

void bind_clear(struct server *server)
{
    const struct hf_index *sessions = &server->binds.sessions;

    for (uint32_t i = 1; i < hf_index_top(sessions); i++) {
        if (hf_index_used(sessions, i) != NULL)
            forget(server, i);
    }
}
