/* waits.c - from a ticket of the engine to the connection that waits. */
#include "server/waits.h"

#include "base/little.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/server.h"

static struct wait *wait_find(struct server *server, uint64_t ticket,
                              uint32_t *number)
{
    char name[8];

    hf_put_u64(name, ticket);
    *number = hf_index_find(&server->waits, hf_bytes(name, sizeof name));
    return *number == 0 ? NULL : hf_index_at(&server->waits, *number);
}

static void wait_remove(struct server *server, uint32_t number)
{
    struct wait *wait = hf_index_at(&server->waits, number);

    hf_texts_drop(&server->wait_texts, wait->lock);
    hf_index_remove(&server->waits, number);
}

static void abandon(struct server *server, uint64_t ticket)
{
    struct hold_command *c = &server->command;

    *c = (struct hold_command){.kind = HOLD_ABANDON, .token = ticket};
    commit_submit(server, NULL, c);
}

/* One with a REQ is not given back: whoever
 * asked may ask again, and is then told. */
void waits_give_back(struct server *server, struct hf_bytes lock,
                     struct hf_bytes grant)
{
    struct hold_command *c = &server->command;

    *c = (struct hold_command){.kind = HOLD_ABANDON, .name = lock};
    c->token = (uint64_t)reply_get_number(grant, FIELD_TOKEN);
    commit_submit(server, NULL, c);
}

static enum hf_status keep_text(struct server *server, struct hf_bytes text,
                                struct hf_text *out)
{
    return hf_texts_put(&server->wait_texts, text, text.len, out);
}

/* The connection's lock is in a queue now. Also one that is gone gets its
 * wait: the grant may come before the record that abandons it. */
void waits_begin(struct server *server, const struct entry *entry,
                 uint64_t ticket, const struct hold_command *command)
{
    struct conn *conn = entry->conn;
    bool gone = conn == NULL || conn->closing || conn->ended;
    char name[8];

    hf_put_u64(name, ticket);
    uint32_t number = hf_index_add(&server->waits, hf_bytes(name, 8));
    struct wait *wait =
        number == 0 ? NULL : hf_index_at(&server->waits, number);
    bool kept =
        wait != NULL && keep_text(server, command->name, &wait->lock) == HF_OK;
    if (kept) {
        wait->conn = gone ? NULL : conn;
        wait->ticket = ticket;
        wait->deadline_us = entry->deadline_us;
        wait->came_ns = entry->came_ns;
        wait->has_request = command->request.len > 0;
    } else if (wait != NULL) {
        wait_remove(server, number);
    }
    if (gone || !kept)
        abandon(server, ticket);
    if (gone && conn != NULL)
        conn_close(conn); /* what follows must not take this one's place */
    else if (!gone && kept)
        conn->ticket = ticket;
    else if (!gone) {
        answer_no_memory(server, conn);
        answer_error(server, conn, "OVERLOADED out of memory");
    }
}

/* A wait is over; once, also if its end was told before the engine knew. */
static uint64_t note_wait(struct server *server, struct wait *wait,
                          enum metrics_wait end)
{
    uint64_t waited_ns = server->answer_ns - wait->came_ns;

    if (wait->came_ns == 0)
        return 0;
    metrics_waited(&server->metrics, end, waited_ns);
    if (end != WAIT_LEFT)
        answer_note(server, HOLD_LOCK, wait->came_ns);
    wait->came_ns = 0;
    return waited_ns;
}

/* The engine answers one who waited. */
void waits_end(struct server *server, const struct hold_answer *given)
{
    uint32_t number;
    struct wait *wait = wait_find(server, given->ticket, &number);

    if (wait == NULL)
        return;
    struct conn *conn = wait->conn;
    enum metrics_wait end = conn == NULL                    ? WAIT_LEFT
                            : given->code == HOLD_OK        ? WAIT_GRANTED
                            : given->code == HOLD_TIMED_OUT ? WAIT_TIMED_OUT
                                                            : WAIT_LEFT;
    uint64_t waited_ns = note_wait(server, wait, end);
    if (end == WAIT_GRANTED)
        answer_note_grant(server, waited_ns);
    if (conn != NULL) {
        conn->ticket = 0;
        answer_give(server, conn, given->code, given->body);
    } else if (given->code == HOLD_OK && !wait->has_request) {
        waits_give_back(server, hf_text_bytes(&server->wait_texts, wait->lock),
                        given->body);
    }
    wait_remove(server, number);
}

/* A wait that was given up gets no answer to be forgotten by. */
void waits_forget(struct server *server, struct hf_bytes record)
{
    struct hold_command command;
    uint32_t number;

    if (record.data[HOLD_RECORD_BODY] != HOLD_ABANDON ||
        hold_decode(record, &command) != HF_OK || command.name.len > 0)
        return;
    struct wait *wait = wait_find(server, command.token, &number);
    if (wait == NULL)
        return;
    note_wait(server, wait, WAIT_LEFT);
    wait_remove(server, number);
}

/* While the engine cannot be told that time passed, because the disk hangs or
 * has failed, waits end here. */
void waits_time_out(struct server *server, uint64_t now_us)
{
    for (uint32_t i = 1; i < hf_index_top(&server->waits); i++) {
        struct wait *wait = hf_index_used(&server->waits, i);
        if (wait == NULL || wait->conn == NULL || wait->deadline_us > now_us)
            continue;
        struct conn *conn = wait->conn;
        wait->conn = NULL;
        conn->ticket = 0;
        answer_timeout(server, conn);
        note_wait(server, wait, WAIT_TIMED_OUT);
        if (!server->failed)
            abandon(server, wait->ticket);
    }
}

void waits_leave(struct server *server, struct conn *conn)
{
    uint32_t number;

    if (conn->ticket == 0 || server->journal == NULL)
        return;
    struct wait *wait = wait_find(server, conn->ticket, &number);
    conn->ticket = 0;
    if (wait == NULL)
        return;
    wait->conn = NULL;
    abandon(server, wait->ticket);
}
