/* group.c - MULTI, EXEC, DISCARD. */
#include "server/group.h"

#include <assert.h>
#include <stdio.h>

#include "base/memory.h"
#include "hold/group.h"
#include "server/admin.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/limit.h"
#include "server/server.h"

/* What was queued, one after the other: 4 bytes length and a record, as the
 * group will have them; or, with the highest bit, a hash of the words
 * behind a LIMIT, and the words. */
struct group {
    struct hf_buf queued;
    uint32_t count;
    uint32_t limits; /* of them */
    uint32_t owed;   /* of OK and QUEUED, the last so many are not told yet */
    bool wrong;      /* one could not be queued: EXEC refuses */
};
#define IS_LIMIT 0x80000000u

/* The longest record of a LIMIT's answer, which is a map of numbers and the
 * name of a policy. */
#define SAID_BYTES 320u

/* What EXEC waits for: longer than any commit that does not fail. */
#define HOLD_NS (3600 * HF_NS_PER_S)

struct group_holds {
    uint32_t count;
    struct {
        uint64_t hold;
        uint64_t cost;
    } of[];
};

enum hf_status groups_open(struct server *server)
{
    server->group_args = hf_alloc(RESP_ARGS_MAX * sizeof *server->group_args);
    return server->group_args == NULL
               ? HF_NOMEM
               : hf_buf_reserve(&server->group, HOLD_GROUP_BYTES);
}

void groups_close(struct server *server)
{
    hf_free(server->group_args);
    hf_buf_destroy(&server->group);
}

void group_leave(struct conn *conn)
{
    if (conn->group == NULL)
        return;
    hf_buf_destroy(&conn->group->queued);
    hf_free(conn->group);
    conn->group = NULL;
}

/* ---- What is told later. ---- */

void group_say(struct conn *conn, uint32_t count, bool first)
{
    if (conn == NULL || conn->closing || count == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        reply_put_simple(&conn->reply, first && i == 0 ? "OK" : "QUEUED");
    answer_done(conn);
}

/* Is OK, the answer to MULTI, among those that are owed? */
static bool owes_first(const struct group *group)
{
    return group->owed > group->count;
}

void group_catch_up(struct conn *conn)
{
    struct group *group = conn->group;

    if (group == NULL)
        return;
    group_say(conn, group->owed, owes_first(group));
    group->owed = 0;
}

uint32_t group_take_owed(struct conn *conn, bool *first)
{
    uint32_t owed = conn->group->owed;

    *first = owes_first(conn->group);
    conn->group->owed = 0;
    return owed;
}

/* Behind requests that are on their way it is told after them. */
static void say_or_owe(struct conn *conn, const char *text)
{
    if (conn->pending > 0)
        conn->group->owed++;
    else
        reply_put_simple(&conn->reply, text);
}

void group_multi(const struct asked *asked)
{
    struct conn *conn = asked->conn;

    if (conn->group != NULL) {
        answer_error(asked->server, conn, ERROR_NESTED);
        return;
    }
    conn->group = hf_alloc_zeroed(sizeof *conn->group);
    if (conn->group == NULL)
        conn_close_no_memory(conn);
    else
        say_or_owe(conn, "OK");
}

void group_discard(const struct asked *asked)
{
    if (asked->conn->group == NULL) {
        answer_error(asked->server, asked->conn, ERROR_NO_MULTI, "DISCARD");
        return;
    }
    group_leave(asked->conn);
    reply_put_simple(asked->reply, "OK");
}

/* ---- Queueing. ---- */

bool group_takes(const struct command *command)
{
    if (command->run != NULL)
        return command->run == limit_take;
    return (command->flags & COMMAND_ADMIN) == 0 &&
           (command->kind == 0 /* a script tells */ ||
            hold_may_group(command->kind));
}

bool group_begins(const struct conn *conn, const struct command *command,
                  size_t words)
{
    return conn->group == NULL && command != NULL &&
           command->run == group_multi && words == 1;
}

bool group_queues(const struct conn *conn, const struct command *command)
{
    return conn->group != NULL &&
           (command == NULL ||
            (command->kind != HOLD_GROUP && command->run != group_multi &&
             command->run != group_discard && command->run != admin_quit));
}

void group_spoil(struct conn *conn)
{
    if (conn->group != NULL)
        conn->group->wrong = true;
}

void group_bad(struct server *server, struct conn *conn,
               const struct command *command, enum hf_status status,
               const char *error)
{
    if (conn->group == NULL || command->kind != HOLD_GROUP) {
        group_spoil(conn);
        answer_bad(server, conn, status, error);
        return;
    }
    answer_error(server, conn, ERROR_EXEC, error);
    group_leave(conn);
}

static bool has_room(const struct group *group, size_t more)
{
    return group->count < HOLD_GROUP_MAX &&
           group->queued.len + group->limits * SAID_BYTES + more <=
               HOLD_GROUP_BYTES;
}

static enum hf_status queue_record(struct server *server, struct conn *conn)
{
    struct group *group = conn->group;
    struct hold_command *c = &server->command;

    hold_group_plain(c);
    size_t bound = HOLD_GROUP_HEAD + hold_record_bound(c);
    if (hf_buf_reserve(&group->queued, bound) != HF_OK)
        return HF_NOMEM;
    char *place = group->queued.data + group->queued.len;
    size_t len = hold_encode(c, place + HOLD_GROUP_HEAD);
    if (!has_room(group, HOLD_GROUP_HEAD + len))
        return HF_FULL;
    hf_put_u32(place, (uint32_t)len);
    group->queued.len += HOLD_GROUP_HEAD + len;
    return HF_OK;
}

static enum hf_status queue_limit(const struct asked *asked, uint64_t words)
{
    struct group *group = asked->conn->group;
    size_t len = 8 + 4;

    for (size_t i = 0; i < asked->count; i++)
        len += 4 + asked->args[i].len;
    if (!has_room(group, HOLD_GROUP_HEAD + len + SAID_BYTES))
        return HF_FULL;
    if (hf_buf_reserve(&group->queued, HOLD_GROUP_HEAD + len) != HF_OK)
        return HF_NOMEM;
    char *at = group->queued.data + group->queued.len;
    hf_put_u32(at, (uint32_t)len | IS_LIMIT);
    hf_put_u64(at + 4, words);
    hf_put_u32(at + 12, (uint32_t)asked->count);
    at += 16;
    for (size_t i = 0; i < asked->count; i++) {
        hf_put_u32(at, (uint32_t)asked->args[i].len);
        memcpy(at + 4, asked->args[i].data, asked->args[i].len);
        at += 4 + asked->args[i].len;
    }
    group->queued.len += HOLD_GROUP_HEAD + len;
    group->limits++;
    return HF_OK;
}

/* Tells what is wrong with it; not before what is on its way is answered, then
 * it is tried again. */
#define REFUSE(asked, ...)                                             \
    do {                                                               \
        if ((asked)->conn->pending == 0)                               \
            answer_error((asked)->server, (asked)->conn, __VA_ARGS__); \
    } while (0)

/* Is there something wrong with it? */
static bool refuse_engine(const struct asked *asked,
                          const struct command *command)
{
    struct server *server = asked->server;
    struct hold_command *c = &server->command;

    if (!group_takes(command) || !hold_may_group(c->kind)) {
        REFUSE(asked, ERROR_NOT_GROUPED, command->name);
        return true;
    }
    if (c->request.len > 0) {
        REFUSE(asked, ERROR_GROUP_REQ);
        return true;
    }
    if (c->session != HOLD_SESSION_OWN)
        return false;
    if (asked->conn->pending > 0)
        return true; /* one that is on its way may bind another */
    c->session = bind_own(server, asked->conn);
    if (c->session == 0)
        REFUSE(asked, ERROR_NO_SESSION);
    return c->session == 0;
}

static bool refuse_limit(const struct asked *asked,
                         const struct command *command, uint64_t *words)
{
    struct server *server = asked->server;
    char error[PARSE_ERROR_MAX];
    struct limit_call call;

    if (!group_takes(command)) {
        REFUSE(asked, ERROR_NOT_GROUPED, command->name);
        return true;
    }
    enum hf_status status =
        limit_parse(&server->limits, asked->args, asked->count, &call, error);
    if (status != HF_OK)
        REFUSE(asked, answer_bad_code(status), "%s", error);
    else if (!limit_is_simple(&call))
        REFUSE(asked, ERROR_GROUP_LIMIT);
    else /* never 0, which a record leaves out */
        *words = limit_hash(asked->args, asked->count, &call) | 1;
    return *words == 0;
}

/* True if it was queued. */
static bool take(const struct asked *asked, const struct command *command)
{
    enum hf_status status;
    uint64_t words = 0;

    if (command->run == NULL) {
        if (refuse_engine(asked, command))
            return false;
        status = queue_record(asked->server, asked->conn);
    } else {
        if (refuse_limit(asked, command, &words))
            return false;
        status = queue_limit(asked, words);
    }
    if (status == HF_FULL)
        REFUSE(asked, ERROR_GROUP_FULL, HOLD_GROUP_MAX, HOLD_GROUP_BYTES);
    else if (status != HF_OK && asked->conn->pending == 0)
        answer_refused(asked->server, asked->conn, status);
    return status == HF_OK;
}

bool group_queue(const struct asked *asked, const struct command *command,
                 enum hf_status parsed, const char *error)
{
    struct conn *conn = asked->conn;

    if (parsed == HF_OK && take(asked, command)) {
        say_or_owe(conn, "QUEUED");
        conn->group->count++;
        answer_done(conn);
        return true;
    }
    if (conn->pending > 0)
        return false;
    conn->group->wrong = true;
    if (parsed != HF_OK)
        answer_bad(asked->server, conn, parsed, error);
    return true;
}

/* ---- EXEC. ---- */

/* The words behind a LIMIT that was queued. */
static size_t unpack(const char *at, struct hf_bytes args[RESP_ARGS_MAX])
{
    size_t count = hf_get_u32(at);

    at += 4;
    for (size_t i = 0; i < count; i++) {
        args[i] = hf_bytes(at + 4, hf_get_u32(at));
        at += 4 + args[i].len;
    }
    return count;
}

/* Appends the record of a LIMIT that was asked in those words. */
static void append_said(struct hf_buf *out, uint64_t words,
                        struct hf_bytes answer)
{
    struct hold_command said;

    hold_command_clear(&said);
    said.kind = HOLD_SAID;
    said.token = words;
    said.note = answer;
    char *place = out->data + out->len;
    size_t len = hold_encode(&said, place + HOLD_GROUP_HEAD);
    assert(HOLD_GROUP_HEAD + len <= SAID_BYTES);
    hf_put_u32(place, (uint32_t)len);
    out->len += HOLD_GROUP_HEAD + len;
}

/* The LIMITs of a group, and what was taken for them so far. */
struct limited {
    struct server *server;
    struct group_holds *holds; /* NULL: nothing is to be taken */
    char error[PARSE_ERROR_MAX];
};

/* Takes the permits of one. */
static bool hold_one(struct limited *limited, const struct hf_bytes *args,
                     size_t count, struct hf_buf *answer)
{
    struct group_holds *holds = limited->holds;
    uint64_t hold = 0;
    uint64_t cost = 0;

    if (!limit_hold(limited->server, args, count, HOLD_NS, answer, &hold, &cost,
                    limited->error))
        return false;
    if (hold != 0) {
        holds->of[holds->count].hold = hold;
        holds->of[holds->count++].cost = cost;
    }
    return true;
}

/* Appends one, which lies at `item`. */
static bool append_limit(struct limited *limited, const char *item,
                         struct hf_buf *out)
{
    struct hf_bytes *args = limited->server->group_args;
    char bytes[SAID_BYTES];
    struct hf_buf answer = {bytes, 0, sizeof bytes};

    if (limited->holds != NULL &&
        !hold_one(limited, args, unpack(item + 8, args), &answer))
        return false;
    append_said(out, hf_get_u64(item), hf_buf_bytes(&answer));
    return true;
}

/* Makes the group's records of what was queued. With holds, permits are taken
 * and the answers are theirs. The position at which that failed, or 0. */
static uint32_t compile(struct limited *limited, const struct group *group,
                        struct hf_buf *out)
{
    uint32_t position = 0;

    out->len = 0;
    for (size_t at = 0; at < group->queued.len;) {
        const char *item = group->queued.data + at;
        uint32_t len = hf_get_u32(item) & ~IS_LIMIT;
        position++;
        at += HOLD_GROUP_HEAD + len;
        if ((hf_get_u32(item) & IS_LIMIT) == 0) {
            memcpy(out->data + out->len, item, HOLD_GROUP_HEAD + len);
            out->len += HOLD_GROUP_HEAD + len;
        } else if (!append_limit(limited, item + HOLD_GROUP_HEAD, out)) {
            return position;
        }
    }
    return 0;
}

void group_fill(struct server *server, const struct conn *conn,
                struct hold_command *command)
{
    struct limited limited = {.server = server};

    if (conn->group == NULL)
        return;
    (void)compile(&limited, conn->group, &server->group);
    command->group = hf_buf_bytes(&server->group);
    command->count = conn->group->count;
}

enum hf_status group_hold(struct server *server, struct conn *conn,
                          struct hold_command *command,
                          struct group_holds **holds,
                          char error[GROUP_ERROR_MAX])
{
    const struct group *group = conn->group;
    struct limited limited = {.server = server};

    *holds = NULL;
    if (group->limits == 0)
        return HF_OK;
    limited.holds = hf_alloc(sizeof *limited.holds +
                             group->limits * sizeof limited.holds->of[0]);
    if (limited.holds == NULL)
        return HF_NOMEM;
    limited.holds->count = 0;
    uint32_t position = compile(&limited, group, &server->group);
    if (position != 0) {
        group_settle(server, limited.holds, false);
        snprintf(error, GROUP_ERROR_MAX, GROUP_REFUSED, position, group->count,
                 limited.error);
        return HF_FAILED;
    }
    command->group = hf_buf_bytes(&server->group);
    *holds = limited.holds;
    return HF_OK;
}

void group_settle(struct server *server, struct group_holds *holds, bool spent)
{
    for (uint32_t i = 0; holds != NULL && i < holds->count; i++)
        (void)hf_limiter_settle(server->limits.limiter, holds->of[i].hold,
                                spent ? holds->of[i].cost : 0, 0);
    hf_free(holds);
}

bool group_is_plain(const struct conn *conn)
{
    const struct group *group = conn->group;

    return group == NULL || group->wrong || group->count == 0;
}

void group_exec(struct server *server, struct conn *conn,
                struct hold_command *command)
{
    const struct group *group = conn->group;

    if (group == NULL) {
        answer_error(server, conn, ERROR_NO_MULTI, "EXEC");
        return;
    }
    if (group->wrong) {
        answer_error(server, conn, ERROR_GROUP_WRONG);
    } else if (group->count == 0) {
        reply_put_list(&conn->reply, 0);
        answer_done(conn);
    } else {
        submit_command(server, conn, command);
    }
    group_leave(conn);
}

void group_granted(struct server *server, struct conn *conn,
                   struct hf_bytes group, struct hf_bytes body)
{
    struct hf_bytes member;
    size_t next = 0;
    size_t at = 0;

    if (conn->reply.codec->push == NULL)
        return;
    (void)reply_next(body, &next);
    while (hold_group_next(group, &at, &member)) {
        size_t from = next;
        reply_skip(body, &next);
        if (hold_kind_locks(hold_record_kind(member)))
            push_grant(server, conn, hf_bytes(body.data + from, next - from));
    }
}

void group_answered(struct server *server, struct hf_bytes group,
                    const struct hold_out *out)
{
    struct hf_bytes member = {NULL, 0};
    size_t at = 0;

    if (out->code != HOLD_ABORTED)
        return;
    /* What EXEC is told counts by its own code, yet who wrote too late did so
     * in a group as well: an alarm is about that. */
    if (reply_get_number(out->body, FIELD_STATUS) == HOLD_STALE)
        metrics_refused(&server->metrics, HOLD_STALE);
    for (int64_t left = reply_get_number(out->body, FIELD_POSITION);
         left > 0 && hold_group_next(group, &at, &member); left--)
        continue;
    assert(member.len > 0);
    metrics_answered(&server->metrics, hold_record_kind(member), out->code);
}
