/* lock_wait.c - who waits for a lock or for stock, and how that ends. */
#include "server/lock_wait.h"

#include <assert.h>

#include "base/memory.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/server.h"

#define TICKET_BYTES sizeof(uint64_t)
#define NS_PER_MS    UINT64_C(1000000)

/* For ever: a longer time in nanoseconds would overflow. */
#define WAIT_MAX_MS (UINT64_MAX / 4 / NS_PER_MS)

/* The engine ends a wait in time while nothing is on its way to the disk; that
 * is looked at again. */
#define LOOK_AGAIN_NS (5 * NS_PER_MS)

/* ---- How a wait is found. ---- */

static struct hf_bytes ticket_name(const uint64_t *ticket)
{
    return hf_bytes((const char *)ticket, TICKET_BYTES);
}

static bool put_ref(struct hf_index *index, struct hf_bytes name,
                    struct lock_wait *wait)
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

static void forget_ticket(struct lock_waits *waits, struct lock_wait *wait)
{
    if (wait->has_ticket)
        drop_ref(&waits->tickets, ticket_name(&wait->ticket));
    wait->has_ticket = false;
}

/* Two waits may bear one REQ, if their other words differ: the engine tells
 * the second of the conflict. Only the first is found. */
static void forget_request(struct lock_waits *waits,
                           const struct lock_wait *wait)
{
    if (wait->request.len > 0 &&
        lock_wait_find(&waits->requests, wait->request) == wait)
        drop_ref(&waits->requests, wait->request);
}

/* ---- Life and death of the struct. ---- */

static struct hf_bytes copy(char **to, struct hf_bytes text)
{
    struct hf_bytes copied = hf_bytes(*to, text.len);

    if (text.len > 0)
        memcpy(*to, text.data, text.len);
    *to += text.len;
    return copied;
}

/* The texts stand behind the struct. */
static struct lock_wait *allocate(struct hf_bytes name, struct hf_bytes request,
                                  struct hf_bytes record, struct hf_bytes host)
{
    size_t bytes = name.len + request.len + record.len + host.len;
    struct lock_wait *wait = hf_alloc_zeroed(sizeof *wait + bytes);
    char *text = (char *)(wait + 1);

    if (wait == NULL)
        return NULL;
    wait->name = copy(&text, name);
    wait->request = copy(&text, request);
    wait->record = copy(&text, record);
    wait->host = copy(&text, host);
    wait->base.kind = WAIT_LOCK;
    return wait;
}

static void owe(struct lock_waits *waits, struct lock_wait *wait)
{
    assert(!wait->owed && !wait->judged);
    wait->owed = true;
    wait->prev_owed = waits->owed_last;
    wait->next_owed = NULL;
    *(waits->owed_last != NULL ? &waits->owed_last->next_owed : &waits->owed) =
        wait;
    waits->owed_last = wait;
}

static void owe_no_more(struct lock_waits *waits, struct lock_wait *wait)
{
    if (!wait->owed)
        return;
    wait->owed = false;
    *(wait->prev_owed != NULL ? &wait->prev_owed->next_owed : &waits->owed) =
        wait->next_owed;
    *(wait->next_owed != NULL ? &wait->next_owed->prev_owed
                              : &waits->owed_last) = wait->prev_owed;
}

void lock_wait_drop(struct server *server, struct lock_wait *wait)
{
    struct lock_waits *waits = &server->lock_waits;

    owe_no_more(waits, wait);
    if (wait->promised)
        hf_index_unpromise(&waits->tickets, TICKET_BYTES);
    forget_ticket(waits, wait);
    forget_request(waits, wait);
    if (wait->request.len > 0)
        share_settle(server, wait->host, wait->granted);
    if (wait->state == WAIT_HELD)
        server->orphans--;
    waits_remove(&server->waits, &wait->base);
}

void lock_wait_give_up(struct server *server, struct lock_wait *wait)
{
    if (wait->end != END_TOLD || wait->request.len == 0) {
        lock_wait_drop(server, wait);
        return;
    }
    owe_no_more(&server->lock_waits, wait);
    if (wait->state == WAIT_HELD)
        server->orphans--;
    wait->state = WAIT_REFUSED;
}

struct lock_wait *lock_wait_new(struct server *server, struct conn *conn,
                                const struct hold_command *command,
                                struct hf_bytes record, uint64_t came_ns)
{
    struct lock_waits *waits = &server->lock_waits;
    static const char longest_id[HOLD_ID_MAX];
    bool stock = !hold_kind_locks(command->kind);
    struct hf_bytes name = stock ? hf_bytes(longest_id, sizeof longest_id)
                           : command->item_count > 0 ? command->items[0].sku
                                                     : command->name;

    if (command->request.len == 0)
        record.len = 0;
    struct lock_wait *wait =
        allocate(name, command->request, record, conn_host(conn));
    if (wait == NULL)
        return NULL;
    wait->kind = command->kind;
    wait->stock = stock;
    wait->base.came_ns = came_ns;
    bool ends = (command->flags & HOLD_FOREVER) == 0;
    uint64_t wait_ms =
        ends && command->wait_ms < WAIT_MAX_MS ? command->wait_ms : WAIT_MAX_MS;
    wait->base.deadline_ns = came_ns + wait_ms * NS_PER_MS;
    if (waits_add(&server->waits, &wait->base, conn) != HF_OK) {
        hf_free(wait);
        return NULL;
    }
    if (wait->request.len > 0)
        share_take(server, wait->host);
    wait->promised = hf_index_promise(&waits->tickets, TICKET_BYTES) == HF_OK;
    bool found = wait->request.len == 0 ||
                 lock_wait_find(&waits->requests, wait->request) != NULL ||
                 put_ref(&waits->requests, wait->request, wait);
    if (!wait->promised || !found) {
        lock_wait_drop(server, wait);
        return NULL;
    }
    return wait;
}

/* ---- What is told. ---- */

/* Counted once, however it ends. */
static void count(struct server *server, struct lock_wait *wait,
                  enum metrics_wait end)
{
    if (wait->counted)
        return;
    wait->counted = true;
    metrics_waited(&server->metrics, wait->stock, end,
                   server->answer_ns - wait->base.came_ns);
    if (end == METRICS_TIMED_OUT)
        metrics_answered(&server->metrics, wait->kind, HOLD_TIMED_OUT);
    if (end != METRICS_LEFT)
        answer_note(server, wait->kind, wait->base.came_ns);
}

static void tell(struct server *server, struct lock_wait *wait,
                 enum hold_code code, struct hf_bytes body)
{
    struct conn *conn = waits_detach(&server->waits, &wait->base);

    if (code == HOLD_TIMED_OUT && server->stopping)
        answer_timeout(server, conn);
    else
        answer_applied(server, conn, code, body);
}

/* The server decides: TIMEOUT is told, and stands. */
static void tell_timeout(struct server *server, struct lock_wait *wait)
{
    answer_timeout(server, waits_detach(&server->waits, &wait->base));
    count(server, wait, METRICS_TIMED_OUT);
    wait->end = END_TOLD;
}

/* What is to be given back, as the grant names it. */
static void note_held(const struct server *server, struct lock_wait *wait,
                      struct hf_bytes grant)
{
    if (!wait->stock) {
        wait->token = (uint64_t)reply_get_number(grant, FIELD_TOKEN);
        return;
    }
    struct hf_bytes id = reply_get_text(grant, FIELD_ID);
    char *text = (char *)(wait + 1);
    wait->name = copy(&text, id);
    wait->token = hold_reserved_by(server->engine, id);
}

/* The lock was granted to one who was told otherwise, or is gone. */
static void held_in_vain(struct server *server, struct lock_wait *wait,
                         struct hf_bytes grant)
{
    bool keep = wait->end == END_GONE && wait->request.len > 0;

    wait->granted = keep;
    if (!keep) { /* else it can still be asked for */
        wait->state = WAIT_HELD;
        note_held(server, wait, grant);
        server->orphans++;
    }
    if (wait->judged)
        return; /* a verdict before its own has granted it */
    if (keep)
        lock_wait_drop(server, wait);
    else if (!wait->owed)
        owe(&server->lock_waits, wait);
}

/* True: the client was told that the lock is its own. False: it is gone, or
 * went before it could be told. */
static bool grant(struct server *server, struct lock_wait *wait,
                  struct hf_bytes body)
{
    struct conn *conn = wait->base.conn;

    if (conn != NULL && !conn_is_gone(conn)) {
        tell(server, wait, HOLD_OK, body);
        if (!conn->closing) {
            wait->granted = true;
            if (wait->stock)
                return true;
            push_grant(server, conn, body);
            answer_note_grant(server, server->answer_ns - wait->base.came_ns);
            return true;
        }
    } else if (conn != NULL) {
        conn_close(conn); /* which takes leave of the wait */
    }
    count(server, wait, METRICS_LEFT);
    owe_no_more(&server->lock_waits, wait);
    wait->end = END_GONE;
    held_in_vain(server, wait, body);
    return false;
}

/* ---- What happens to a wait. ---- */

/* Two records are of one request if they differ in nothing but their times. */
static struct hf_bytes body_of(struct hf_bytes record)
{
    return hf_bytes(record.data + HOLD_RECORD_BODY,
                    record.len - HOLD_RECORD_BODY);
}

bool lock_wait_join(struct server *server, struct conn *conn,
                    const struct hold_command *command, struct hf_bytes record)
{
    struct lock_waits *waits = &server->lock_waits;
    struct lock_wait *wait = lock_wait_find(&waits->requests, command->request);

    if (wait == NULL || !hf_bytes_equal(body_of(wait->record), body_of(record)))
        return false;
    if (wait->end == END_TOLD) {
        answer_timeout(server, conn); /* the first answer, again */
        return true;
    }
    assert(!wait->judged);
    if (wait->base.conn != NULL)
        tell(server, wait, HOLD_MOVED, hf_bytes("", 0));
    owe_no_more(waits, wait);
    wait->end = END_NONE;
    wait->counted = false;
    waits_attach(&server->waits, &wait->base, conn);
    return true;
}

bool lock_wait_withdraw(struct server *server, struct lock_wait *wait,
                        bool *told)
{
    assert(wait->state == WAIT_SENT);
    *told = wait->end == END_TOLD;
    if (wait->end == END_NONE || wait->request.len > 0)
        return false;
    lock_wait_drop(server, wait);
    return true;
}

static void queued(struct server *server, struct lock_wait *wait,
                   uint64_t ticket)
{
    struct lock_waits *waits = &server->lock_waits;

    wait->state = WAIT_QUEUED;
    wait->ticket = ticket;
    hf_index_unpromise(&waits->tickets, TICKET_BYTES);
    wait->promised = false;
    wait->has_ticket =
        put_ref(&waits->tickets, ticket_name(&wait->ticket), wait);
    assert(wait->has_ticket); /* promised */
    waits_queue(&wait->base);
    if (!wait->stock)
        events_wanted(server, wait->name, ticket);
    if (wait->end == END_NONE && server->stopping)
        wait->end = END_STOP;
    if (wait->end != END_NONE && !wait->owed)
        owe(waits, wait);
}

void lock_wait_applied(struct server *server, struct lock_wait *wait,
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
        answer_note(server, wait->kind, wait->base.came_ns);
    } else if (out->code == HOLD_OK) {
        held_in_vain(server, wait, out->body);
        return;
    } else if (wait->end == END_TOLD && out->stored) {
        /* else what is kept for that REQ is another's */
        wait->state = WAIT_REFUSED;
        owe(&server->lock_waits, wait);
        return;
    }
    lock_wait_drop(server, wait);
}

/* A wait with the same REQ, whose client went, may have been granted while its
 * verdict was on its way. That hold was kept for whoever asks again: this one
 * did, and was told TIMEOUT. */
void lock_wait_told(struct server *server, struct lock_wait *wait,
                    struct hf_bytes record)
{
    struct hold_command *c = &server->command;
    const struct hold_out *out = NULL;

    wait->judged = false;
    if (hold_decode(record, c) == HF_OK) {
        c->told = false;
        out = hold_answer_now(server->engine, c);
    }
    if (out != NULL && out->code == HOLD_OK)
        held_in_vain(server, wait, out->body);
    else
        lock_wait_drop(server, wait);
}

/* Is TIMEOUT, which was told, to be kept for its REQ in the place of what the
 * engine says? It keeps a LOST, and forgets the REQ of a DONE: then the record
 * itself says TIMEOUT, as if it had not been journaled yet. */
static bool was_told_otherwise(struct server *server, struct lock_wait *wait,
                               enum hold_code code)
{
    if (wait->end != END_TOLD || wait->request.len == 0 ||
        (code != HOLD_LOST && code != HOLD_DONE))
        return false;
    wait->state = code == HOLD_LOST ? WAIT_REFUSED : WAIT_SENT;
    if (!wait->owed && !wait->judged)
        owe(&server->lock_waits, wait);
    return true;
}

void lock_wait_answered(struct server *server, const struct hold_answer *given)
{
    struct lock_waits *waits = &server->lock_waits;
    struct lock_wait *wait =
        lock_wait_find(&waits->tickets, ticket_name(&given->ticket));

    if (wait == NULL)
        return;
    forget_ticket(waits, wait);
    if (given->code != HOLD_OK && wait->base.conn != NULL) {
        bool timed_out = given->code == HOLD_TIMED_OUT;
        tell(server, wait, given->code, given->body);
        count(server, wait, timed_out ? METRICS_TIMED_OUT : METRICS_LEFT);
    } else if (given->code != HOLD_OK) {
        if (was_told_otherwise(server, wait, given->code))
            return;
    } else {
        if (wait->base.conn == NULL) {
            held_in_vain(server, wait, given->body);
            return;
        }
        if (!grant(server, wait, given->body))
            return;
        count(server, wait, METRICS_GRANTED);
    }
    if (!wait->judged) /* else it is freed with its verdict */
        lock_wait_drop(server, wait);
}

bool lock_wait_spare(struct server *server)
{
    static const char longest[HOLD_NAME_MAX];
    struct lock_waits *waits = &server->lock_waits;
    struct hf_bytes none = hf_bytes("", 0);

    if (waits->spare == NULL)
        waits->spare =
            allocate(hf_bytes(longest, sizeof longest), none, none, none);
    return waits->spare != NULL;
}

void lock_wait_orphan(struct server *server, struct hf_bytes name,
                      uint64_t token)
{
    struct lock_wait *wait = server->lock_waits.spare;
    char *text = (char *)(wait + 1);

    assert(wait != NULL);
    server->lock_waits.spare = NULL;
    wait->name = copy(&text, name);
    (void)waits_add(&server->waits, &wait->base, NULL); /* cannot fail */
    wait->counted = true;                               /* it never waited */
    wait->end = END_GONE;
    wait->state = WAIT_HELD;
    wait->token = token;
    server->orphans++;
    owe(&server->lock_waits, wait);
}

/* While nothing is on its way to the disk, the engine ends it. */
void lock_wait_due(struct server *server, struct wait *base)
{
    struct lock_wait *wait = (struct lock_wait *)base;

    if (server->flight_count == 0) {
        waits_look(&server->waits, base, server->answer_ns + LOOK_AGAIN_NS);
        return;
    }
    if (wait->known && wait->state == WAIT_SENT) {
        /* what the engine answers is not TIMEOUT, and cannot be told now */
        answer_error(server, waits_detach(&server->waits, base), ERROR_SILENT);
        count(server, wait, METRICS_LEFT);
        wait->end = END_GONE;
        return;
    }
    tell_timeout(server, wait);
    if (wait->state == WAIT_QUEUED && !wait->owed && !wait->judged)
        owe(&server->lock_waits, wait);
}

void lock_wait_stop(struct server *server, struct wait *base)
{
    struct lock_wait *wait = (struct lock_wait *)base;

    if (base->conn == NULL || wait->state != WAIT_QUEUED)
        return; /* one that is on its way ends when it is applied */
    wait->end = END_STOP;
    owe(&server->lock_waits, wait);
}

/* Those whose record is in a batch are told when the batch is refused. */
void lock_wait_fail(struct server *server, struct wait *base)
{
    struct lock_wait *wait = (struct lock_wait *)base;

    if (wait->state == WAIT_SENT || wait->judged)
        return;
    struct conn *conn = waits_detach(&server->waits, base);
    if (conn != NULL) {
        answer_failed(server, conn);
        answer_note(server, wait->kind, base->came_ns);
    }
    count(server, wait, METRICS_LEFT);
    lock_wait_give_up(server, wait);
}

void lock_wait_left(struct server *server, struct wait *base)
{
    struct lock_wait *wait = (struct lock_wait *)base;

    if (wait->end != END_NONE)
        return; /* its verdict is owed already */
    wait->end = END_GONE;
    if (wait->state != WAIT_QUEUED)
        return;
    answer_now(server);
    count(server, wait, METRICS_LEFT);
    if (wait->has_ticket)
        owe(&server->lock_waits, wait);
}

/* ---- Verdicts. ---- */

bool lock_wait_verdict(struct server *server, struct hold_command *command,
                       struct lock_wait **out)
{
    struct lock_wait *wait = server->lock_waits.owed;

    if (wait == NULL)
        return false;
    owe_no_more(&server->lock_waits, wait);
    assert(wait->end != END_NONE);
    wait->judged = true;
    *out = wait;
    if (wait->state == WAIT_SENT) {
        (void)hold_decode(wait->record, command); /* we encoded it */
        command->told = true;
        command->now_us = hold_now_us(server->engine);
        return true;
    }
    if (wait->end == END_GONE)
        forget_request(&server->lock_waits,
                       wait); /* who asks again asks anew */
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
            *(wait->stock ? &command->note : &command->name) = wait->name;
            command->token = wait->token;
        }
    }
    return true;
}

void lock_wait_owe_again(struct server *server, struct lock_wait *wait)
{
    wait->judged = false;
    owe(&server->lock_waits, wait);
}

void lock_wait_judged(struct server *server, struct lock_wait *wait)
{
    if (wait->base.conn != NULL)
        tell_timeout(server, wait);
    if (wait->judged_queued && wait->state != WAIT_QUEUED)
        lock_wait_owe_again(server, wait); /* it came too late: another one */
    else
        lock_wait_drop(server, wait);
}
