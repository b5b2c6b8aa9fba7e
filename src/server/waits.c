/* waits.c - the one place that knows who waits for a lock, and how it ends. */
#include "server/waits.h"

#include <assert.h>

#include "base/little.h"
#include "base/memory.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/server.h"

#define TICKET_BYTES sizeof(uint64_t)

enum hf_status waits_open(struct waits *waits)
{
    struct hf_hash_seed tickets = {{0, 0}}; /* they are our own numbers */
    struct hf_hash_seed requests;
    size_t bytes = (sizeof(struct wait_ref) + 7) / 8 * 8;

    if (server_random(&requests, sizeof requests) != HF_OK)
        return HF_IO;
    hf_texts_init(&waits->texts, &waits->bytes);
    enum hf_status status = hf_index_init(&waits->tickets, bytes, &waits->texts,
                                          tickets, &waits->bytes);
    if (status == HF_OK)
        status = hf_index_init(&waits->requests, bytes, &waits->texts, requests,
                               &waits->bytes);
    return status;
}

void waits_close(struct waits *waits)
{
    while (waits->all != NULL) {
        struct wait *wait = waits->all;
        waits->all = wait->next;
        hf_free(wait);
    }
    hf_index_release(&waits->tickets);
    hf_index_release(&waits->requests);
    hf_texts_release(&waits->texts);
}

/* ---- How a wait is found. ---- */

static struct hf_bytes ticket_name(uint64_t ticket, char bytes[TICKET_BYTES])
{
    hf_put_u64(bytes, ticket);
    return hf_bytes(bytes, TICKET_BYTES);
}

static struct wait *find(const struct hf_index *index, struct hf_bytes name)
{
    uint32_t number = hf_index_find(index, name);

    if (number == 0)
        return NULL;
    return ((struct wait_ref *)hf_index_at(index, number))->wait;
}

static bool put_ref(struct hf_index *index, struct hf_bytes name,
                    struct wait *wait)
{
    uint32_t number = hf_index_add(index, name);

    if (number != 0)
        ((struct wait_ref *)hf_index_at(index, number))->wait = wait;
    return number != 0;
}

static void drop_ref(struct hf_index *index, struct hf_bytes name)
{
    hf_index_remove(index, hf_index_find(index, name));
}

static void forget_ticket(struct waits *waits, struct wait *wait)
{
    char bytes[TICKET_BYTES];

    if (wait->has_ticket)
        drop_ref(&waits->tickets, ticket_name(wait->ticket, bytes));
    wait->has_ticket = false;
}

/* Two waits may bear one REQ, if their other words differ: the engine tells
 * the second of the conflict. Only the first is found. */
static void forget_request(struct waits *waits, const struct wait *wait)
{
    if (wait->request.len > 0 && find(&waits->requests, wait->request) == wait)
        drop_ref(&waits->requests, wait->request);
}

bool waits_knows(const struct waits *waits, struct hf_bytes request)
{
    return find(&waits->requests, request) != NULL;
}

bool waits_was_told(const struct waits *waits, struct hf_bytes request)
{
    const struct wait *wait = find(&waits->requests, request);

    return wait != NULL && wait->end == END_TOLD;
}

/* ---- Life and death of the struct. ---- */

static void link_all(struct waits *waits, struct wait *wait)
{
    wait->next = waits->all;
    if (waits->all != NULL)
        waits->all->prev = wait;
    waits->all = wait;
}

static struct hf_bytes copy(char **to, struct hf_bytes text)
{
    struct hf_bytes copied = hf_bytes(*to, text.len);

    if (text.len > 0)
        memcpy(*to, text.data, text.len);
    *to += text.len;
    return copied;
}

/* The texts stand behind the struct. */
static struct wait *allocate(struct hf_bytes name, struct hf_bytes request,
                             struct hf_bytes host)
{
    size_t bytes = name.len + request.len + host.len;
    struct wait *wait = hf_alloc_zeroed(sizeof *wait + bytes);
    char *text = (char *)(wait + 1);

    if (wait == NULL)
        return NULL;
    wait->name = copy(&text, name);
    wait->request = copy(&text, request);
    wait->host = copy(&text, host);
    return wait;
}

static void owe(struct waits *waits, struct wait *wait)
{
    assert(!wait->owed && !wait->judged);
    wait->owed = true;
    wait->prev_owed = waits->owed_last;
    wait->next_owed = NULL;
    *(waits->owed_last != NULL ? &waits->owed_last->next_owed : &waits->owed) =
        wait;
    waits->owed_last = wait;
}

static void owe_no_more(struct waits *waits, struct wait *wait)
{
    if (!wait->owed)
        return;
    wait->owed = false;
    *(wait->prev_owed != NULL ? &wait->prev_owed->next_owed : &waits->owed) =
        wait->next_owed;
    *(wait->next_owed != NULL ? &wait->next_owed->prev_owed
                              : &waits->owed_last) = wait->prev_owed;
}

static void detach(struct wait *wait)
{
    if (wait->conn != NULL)
        wait->conn->wait = NULL;
    wait->conn = NULL;
}

static void release(struct server *server, struct wait *wait)
{
    struct waits *waits = &server->waits;

    owe_no_more(waits, wait);
    detach(wait);
    if (wait->promised)
        hf_index_unpromise(&waits->tickets, TICKET_BYTES);
    forget_ticket(waits, wait);
    forget_request(waits, wait);
    if (wait->request.len > 0)
        share_settle(server, wait->host, wait->granted);
    if (wait->state == WAIT_HELD)
        server->orphans--;
    if (wait->prev != NULL)
        wait->prev->next = wait->next;
    else
        waits->all = wait->next;
    if (wait->next != NULL)
        wait->next->prev = wait->prev;
    hf_free(wait);
}

struct wait *waits_new(struct server *server, struct conn *conn,
                       const struct hold_command *command, uint64_t fingerprint,
                       uint64_t came_ns)
{
    struct waits *waits = &server->waits;
    struct wait *wait =
        allocate(command->name, command->request, conn_host(conn));

    if (wait == NULL)
        return NULL;
    link_all(waits, wait);
    if (wait->request.len > 0)
        share_take(server, wait->host);
    wait->promised = hf_index_promise(&waits->tickets, TICKET_BYTES) == HF_OK;
    wait->fingerprint = fingerprint;
    wait->came_ns = came_ns;
    wait->deadline_us = command->now_us + command->wait_ms * 1000;
    bool found = wait->request.len == 0 ||
                 find(&waits->requests, wait->request) != NULL ||
                 put_ref(&waits->requests, wait->request, wait);
    if (!wait->promised || !found) {
        release(server, wait);
        return NULL;
    }
    wait->conn = conn;
    conn->wait = wait;
    return wait;
}

void waits_drop(struct server *server, struct wait *wait)
{
    release(server, wait);
}

/* ---- What is told. ---- */

/* Counted once, however it ends. */
static void count(struct server *server, struct wait *wait,
                  enum metrics_wait end)
{
    if (wait->counted)
        return;
    wait->counted = true;
    metrics_waited(&server->metrics, end, server->answer_ns - wait->came_ns);
    if (end != METRICS_LEFT)
        answer_note(server, HOLD_LOCK, wait->came_ns);
}

static void tell(struct server *server, struct wait *wait, enum hold_code code,
                 struct hf_bytes body)
{
    struct conn *conn = wait->conn;

    detach(wait);
    if (code == HOLD_TIMED_OUT && server->stopping)
        answer_timeout(server, conn);
    else
        answer_applied(server, conn, code, body);
}

/* The server decides: TIMEOUT is told, and stands. */
static void tell_timeout(struct server *server, struct wait *wait)
{
    struct conn *conn = wait->conn;

    detach(wait);
    answer_timeout(server, conn);
    count(server, wait, METRICS_TIMED_OUT);
    wait->end = END_TOLD;
}

bool waits_is_queued(const struct wait *wait)
{
    return wait != NULL && wait->state == WAIT_QUEUED;
}

/* True if a grant would reach nobody. The client's end may lie unread in the
 * socket, so that is asked. One that waits in a queue must not close its side;
 * one that asked for a free lock may have, and still reads. */
static bool is_gone(const struct wait *wait)
{
    bool may_read = wait->state == WAIT_SENT;

    return wait->conn == NULL || wait->conn->closing ||
           conn_peer_is_gone(wait->conn, may_read);
}

/* The lock was granted to one who was told otherwise, or is gone. */
static void held_in_vain(struct server *server, struct wait *wait,
                         struct hf_bytes grant)
{
    bool keep = wait->end == END_GONE && wait->request.len > 0;

    wait->granted = keep;
    if (!keep) { /* else it can still be asked for */
        wait->state = WAIT_HELD;
        wait->token = (uint64_t)reply_get_number(grant, FIELD_TOKEN);
        server->orphans++;
    }
    if (wait->judged)
        return; /* a verdict before its own has granted it */
    if (keep)
        release(server, wait);
    else if (!wait->owed)
        owe(&server->waits, wait);
}

/* True: the client was told that the lock is its own. False: it is gone, or
 * went before it could be told. */
static bool grant(struct server *server, struct wait *wait,
                  struct hf_bytes body)
{
    struct conn *conn = wait->conn;

    if (!is_gone(wait)) {
        tell(server, wait, HOLD_OK, body);
        if (!conn->closing) {
            wait->granted = true;
            answer_note_grant(server, server->answer_ns - wait->came_ns);
            return true;
        }
    } else if (conn != NULL) {
        conn_close(conn); /* which takes leave of the wait */
    }
    count(server, wait, METRICS_LEFT);
    owe_no_more(&server->waits, wait);
    wait->end = END_GONE;
    held_in_vain(server, wait, body);
    return false;
}

/* ---- What happens to a wait. ---- */

bool waits_join(struct server *server, struct conn *conn,
                const struct hold_command *command, uint64_t fingerprint)
{
    struct waits *waits = &server->waits;
    struct wait *wait = find(&waits->requests, command->request);

    if (wait == NULL || wait->fingerprint != fingerprint)
        return false;
    if (wait->end == END_TOLD) {
        answer_timeout(server, conn); /* the first answer, again */
        return true;
    }
    assert(!wait->judged);
    if (wait->conn != NULL)
        tell(server, wait, HOLD_MOVED, hf_bytes("", 0));
    owe_no_more(waits, wait);
    wait->end = END_NONE;
    wait->counted = false;
    wait->conn = conn;
    conn->wait = wait;
    return true;
}

bool waits_withdraw(struct server *server, struct wait *wait, bool *told)
{
    assert(wait->state == WAIT_SENT);
    *told = wait->end == END_TOLD;
    if (wait->end == END_NONE || wait->request.len > 0)
        return false;
    release(server, wait);
    return true;
}

static void queued(struct server *server, struct wait *wait, uint64_t ticket)
{
    struct waits *waits = &server->waits;
    char bytes[TICKET_BYTES];

    wait->state = WAIT_QUEUED;
    wait->ticket = ticket;
    hf_index_unpromise(&waits->tickets, TICKET_BYTES);
    wait->promised = false;
    wait->has_ticket =
        put_ref(&waits->tickets, ticket_name(ticket, bytes), wait);
    assert(wait->has_ticket); /* promised */
    if (wait->conn != NULL && wait->conn->ended)
        conn_close(wait->conn); /* it will not hear of a later grant */
    if (wait->end == END_NONE && server->stopping)
        wait->end = END_STOP;
    if (wait->end != END_NONE && !wait->owed)
        owe(waits, wait);
}

void waits_applied(struct server *server, struct wait *wait,
                   const struct hold_out *out)
{
    assert(wait->state == WAIT_SENT);
    if (out->code == HOLD_WAITING) {
        queued(server, wait, out->ticket);
        return;
    }
    if (wait->end == END_NONE) {
        if (out->code == HOLD_OK && !grant(server, wait, out->body))
            return;
        if (out->code != HOLD_OK)
            tell(server, wait, out->code, out->body);
        answer_note(server, HOLD_LOCK, wait->came_ns);
    } else if (out->code == HOLD_OK) {
        held_in_vain(server, wait, out->body);
        return;
    } else if (wait->end == END_TOLD && wait->request.len > 0 &&
               out->code != HOLD_CONFLICT) { /* that REQ is another's */
        wait->state = WAIT_REFUSED;
        owe(&server->waits, wait);
        return;
    }
    release(server, wait);
}

void waits_answered(struct server *server, const struct hold_answer *given)
{
    struct waits *waits = &server->waits;
    char bytes[TICKET_BYTES];
    struct wait *wait =
        find(&waits->tickets, ticket_name(given->ticket, bytes));

    if (wait == NULL)
        return;
    forget_ticket(waits, wait);
    if (given->code != HOLD_OK && wait->conn != NULL) {
        bool timed_out = given->code == HOLD_TIMED_OUT;
        tell(server, wait, given->code, given->body);
        count(server, wait, timed_out ? METRICS_TIMED_OUT : METRICS_LEFT);
    } else if (given->code == HOLD_OK) {
        if (wait->conn == NULL) {
            held_in_vain(server, wait, given->body);
            return;
        }
        if (!grant(server, wait, given->body))
            return;
        count(server, wait, METRICS_GRANTED);
    }
    if (!wait->judged) /* else it is freed with its verdict */
        release(server, wait);
}

/* Without memory the lock stays held until its time is over. */
void waits_orphan(struct server *server, struct hf_bytes name, uint64_t token)
{
    struct hf_bytes none = hf_bytes("", 0);
    struct wait *wait = allocate(name, none, none);

    if (wait == NULL)
        return;
    link_all(&server->waits, wait);
    wait->counted = true; /* it never waited */
    wait->end = END_GONE;
    wait->state = WAIT_HELD;
    wait->token = token;
    server->orphans++;
    owe(&server->waits, wait);
}

void waits_due(struct server *server, uint64_t now_us)
{
    struct wait *next;

    for (struct wait *wait = server->waits.all; wait != NULL; wait = next) {
        next = wait->next;
        if (wait->conn == NULL || wait->deadline_us > now_us)
            continue;
        tell_timeout(server, wait);
        if (wait->state == WAIT_QUEUED && !wait->owed && !wait->judged)
            owe(&server->waits, wait);
    }
}

void waits_stop(struct server *server)
{
    struct wait *next;

    for (struct wait *wait = server->waits.all; wait != NULL; wait = next) {
        next = wait->next;
        if (wait->conn == NULL || wait->state != WAIT_QUEUED)
            continue; /* one that is on its way ends when it is applied */
        wait->end = END_STOP;
        owe(&server->waits, wait);
    }
}

/* Those whose record is in a batch are told when the batch is refused. */
void waits_fail(struct server *server)
{
    struct wait *next;

    for (struct wait *wait = server->waits.all; wait != NULL; wait = next) {
        next = wait->next;
        if (wait->state == WAIT_SENT || wait->judged)
            continue;
        struct conn *conn = wait->conn;
        detach(wait);
        if (conn != NULL) {
            answer_failed(server, conn);
            answer_note(server, HOLD_LOCK, wait->came_ns);
        }
        count(server, wait, METRICS_LEFT);
        release(server, wait);
    }
}

void waits_leave(struct server *server, struct conn *conn)
{
    struct wait *wait = conn->wait;

    if (wait == NULL)
        return;
    detach(wait);
    if (wait->end != END_NONE)
        return; /* its verdict is owed already */
    wait->end = END_GONE;
    if (wait->state != WAIT_QUEUED)
        return;
    answer_now(server);
    count(server, wait, METRICS_LEFT);
    if (wait->has_ticket)
        owe(&server->waits, wait);
}

/* ---- Verdicts. ---- */

bool waits_verdict(struct server *server, struct hold_command *command,
                   struct wait **out)
{
    struct wait *wait = server->waits.owed;

    if (wait == NULL)
        return false;
    owe_no_more(&server->waits, wait);
    assert(wait->end != END_NONE);
    wait->judged = true;
    if (wait->end == END_GONE)
        forget_request(&server->waits, wait); /* who asks again asks anew */
    *command = (struct hold_command){
        .kind = wait->end == END_GONE ? HOLD_ABANDON : HOLD_TIMEOUT,
        .now_us = hold_now_us(server->engine), /* no time passes by it */
    };
    wait->judged_queued = wait->state == WAIT_QUEUED;
    if (wait->judged_queued) {
        command->token = wait->ticket;
    } else {
        if (wait->end == END_TOLD)
            command->request = wait->request;
        if (wait->state == WAIT_HELD) {
            command->name = wait->name;
            command->token = wait->token;
        }
    }
    *out = wait;
    return true;
}

void waits_owe_again(struct server *server, struct wait *wait)
{
    wait->judged = false;
    owe(&server->waits, wait);
}

void waits_judged(struct server *server, struct wait *wait)
{
    if (wait->conn != NULL)
        tell_timeout(server, wait);
    if (wait->judged_queued && wait->state == WAIT_HELD)
        waits_owe_again(server, wait); /* it came too late: another one */
    else
        release(server, wait);
}
