/* push.c - what happens to a lock is told to its holder. */
#include "server/push.h"

#include "server/answer.h"
#include "server/conn.h"
#include "server/server.h"

#define TOKEN_BYTES sizeof(uint64_t)

/* A grant that a connection knows of. */
struct pushed {
    struct hf_named named; /* the token */
    struct conn *conn;
    uint32_t prev; /* of the same connection */
    uint32_t next;
};

enum hf_status pushes_open(struct pushes *pushes)
{
    struct hf_hash_seed seed = {{0, 0}}; /* they are our own numbers */

    hf_texts_init(&pushes->texts, &pushes->bytes);
    return hf_index_init(&pushes->grants, sizeof(struct pushed), &pushes->texts,
                         seed, &pushes->bytes);
}

void pushes_close(struct pushes *pushes)
{
    hf_index_destroy(&pushes->grants);
    hf_texts_destroy(&pushes->texts);
}

static struct pushed *pushed_at(const struct server *server, uint32_t number)
{
    return hf_index_at(&server->pushes.grants, number);
}

static uint32_t find(const struct server *server, uint64_t token)
{
    return hf_index_find(&server->pushes.grants,
                         hf_bytes((const char *)&token, TOKEN_BYTES));
}

static void forget(struct server *server, uint32_t number)
{
    const struct pushed *pushed = pushed_at(server, number);

    *(pushed->prev != 0 ? &pushed_at(server, pushed->prev)->next
                        : &pushed->conn->pushed) = pushed->next;
    if (pushed->next != 0)
        pushed_at(server, pushed->next)->prev = pushed->prev;
    hf_index_remove(&server->pushes.grants, number);
}

void push_grant(struct server *server, struct conn *conn, struct hf_bytes grant)
{
    uint64_t token = (uint64_t)reply_get_number(grant, FIELD_TOKEN);

    if (conn == NULL || conn->closing || conn->reply.codec->push == NULL)
        return;
    uint32_t number = find(server, token);
    if (number != 0)
        forget(server, number);
    number = hf_index_add(&server->pushes.grants,
                          hf_bytes((const char *)&token, TOKEN_BYTES));
    if (number == 0)
        return;
    struct pushed *pushed = pushed_at(server, number);
    pushed->conn = conn;
    pushed->next = conn->pushed;
    if (conn->pushed != 0)
        pushed_at(server, conn->pushed)->prev = number;
    conn->pushed = number;
}

static void push(struct conn *conn, const char *what, struct hf_bytes name,
                 uint64_t token)
{
    struct reply *reply = &conn->reply;

    if (conn->closing || reply->codec->push == NULL)
        return;
    reply->codec->push(reply, 3);
    reply_put_text(reply, what);
    reply_put_bytes(reply, name);
    reply_put_number(reply, (int64_t)token);
    answer_done(conn);
}

static void tell(struct server *server, const struct hold_event *event)
{
    uint32_t number = find(server, event->token);

    if (number == 0)
        return;
    struct conn *conn = pushed_at(server, number)->conn;
    if (event->kind == EVENT_LOCK_WOUNDED) {
        push(conn, "lock_wounded", event->name, event->token);
        return;
    }
    if (event->kind != EVENT_LOCK_RELEASED)
        push(conn, "lock_lost", event->name, event->token);
    else if (event->age_us == HOLD_NO_AGE)
        return; /* one re-entry of several */
    number = find(server, event->token);
    if (number != 0) /* sending may have closed the connection */
        forget(server, number);
}

/* Everything was flushed: nobody holds anything, and nobody is told. */
static void forget_all(struct server *server)
{
    for (struct conn *conn = server->conns; conn != NULL; conn = conn->next)
        conn->pushed = 0;
    hf_index_clear(&server->pushes.grants);
    hf_texts_clear(&server->pushes.texts);
}

void push_events(struct server *server, const struct hold_out *out)
{
    if (hf_index_count(&server->pushes.grants) == 0)
        return;
    for (size_t i = 0; i < out->event_count; i++) {
        enum hold_event_kind kind = out->events[i].kind;
        if (kind == EVENT_LOCK_RELEASED || kind == EVENT_LOCK_EXPIRED ||
            kind == EVENT_LOCK_LOST || kind == EVENT_LOCK_WOUNDED)
            tell(server, &out->events[i]);
        else if (kind == EVENT_FLUSHED)
            forget_all(server);
    }
}

void push_wanted(struct server *server, struct hf_bytes name)
{
    if (hf_index_count(&server->pushes.grants) == 0)
        return;
    uint64_t token = hold_oldest_token(server->engine, name);
    uint32_t number = find(server, token);
    struct conn *conn = number == 0 ? NULL : pushed_at(server, number)->conn;
    if (conn != NULL && !conn_is_full(conn)) /* others decide how many come */
        push(conn, "lock_wanted", name, token);
}

void push_leave(struct server *server, struct conn *conn)
{
    while (conn->pushed != 0)
        forget(server, conn->pushed);
}
