/* commit.c - from a command to its answer: batch, journal, engine.
 *
 * Two batches: one is being built, one may be flying (its commit outlasted
 * the turn). Their entries stand in the order in which the journal has their
 * records, so applying walks both side by side.
 *
 * Waits: a lock that must wait is in the engine's queue under a ticket; here a
 * `struct wait` leads from the ticket to the connection. When nobody is there
 * to be told any more, the wait is abandoned by a record of its own; a grant
 * that comes before that record is given back at once, unless it has a REQ
 * under which it can still be asked for.
 */
#include <assert.h>

#include "base/little.h"
#include "base/memory.h"
#include "server/conn.h"
#include "server/server.h"

/* Beyond this much in one batch, or half a segment, which a batch must fit
 * into, connections are not read further. */
#define BATCH_FULL_BYTES (2u << 20)

/* Rounds of commit and answer in one turn; what is left goes to the next. */
#define TURN_ROUNDS_MAX 4

static void answer(struct server *server, struct conn *conn,
                   enum hold_code code, struct hf_bytes body)
{
    if (conn == NULL || conn->closing)
        return;
    if (code != HOLD_OK)
        server->stats.errors_total++;
    if (reply_write(&conn->out, conn->version, code, body) == HF_OK)
        conn_touch(conn);
    else
        conn_close_no_memory(conn); /* better no answer than half of one */
}

static void answer_error(struct server *server, struct conn *conn,
                         const char *text)
{
    if (conn == NULL || conn->closing)
        return;
    server->stats.errors_total++;
    if (resp_error(&conn->out, hf_bytes_text(text)) == HF_OK)
        conn_touch(conn);
    else
        conn_close_no_memory(conn);
}

static void answer_failed(struct server *server, struct conn *conn)
{
    char text[JOURNAL_ERROR_MAX + 64];

    snprintf(text, sizeof text,
             "JOURNAL not acknowledged, writes are "
             "refused: %s",
             journal_error(server->journal));
    answer_error(server, conn, text);
}

/* A place in the batch being built; NULL without memory. */
static struct entry *add_entry(struct batch *batch)
{
    if (batch->count == batch->cap) {
        size_t cap = batch->cap ? batch->cap * 2 : 64;
        void *entries = hf_realloc(batch->entries, cap * sizeof(struct entry));
        if (entries == NULL)
            return NULL;
        batch->entries = entries;
        batch->cap = cap;
    }
    batch->entries[batch->count] = (struct entry){0};
    return &batch->entries[batch->count++];
}

/* Appends the record to the journal's batch. */
static enum hf_status append_record(struct server *server,
                                    const struct hold_command *command)
{
    char *space;

    if (hold_prepare(server->engine, command) != HF_OK)
        return HF_NOMEM;
    enum hf_status status =
        journal_prepare(server->journal, hold_record_bound(command), &space);
    if (status != HF_OK) {
        hold_forget(server->engine, command);
        return status;
    }
    journal_finish(server->journal, hold_encode(command, space));
    return HF_OK;
}

static void tell_no_memory(struct server *server, const struct conn *conn)
{
    struct hold_counts counts;

    hold_count(server->engine, &counts);
    report_no_memory(&server->report, conn, counts.memory_bytes);
}

static void answer_refused(struct server *server, struct conn *conn,
                           enum hf_status why)
{
    if (why == HF_IO) {
        answer_failed(server, conn);
    } else if (why == HF_FULL) {
        report_behind(&server->report, conn);
        answer_error(server, conn, "OVERLOADED the disk does not keep up");
    } else {
        tell_no_memory(server, conn);
        answer_error(server, conn,
                     "OVERLOADED no memory: memory-max-bytes is reached, or "
                     "the machine has no more");
    }
}

/* A request that cannot be taken is answered in its turn, too. */
static void queue_refused(struct server *server, struct conn *conn,
                          struct entry *entry, enum hf_status why)
{
    if (conn == NULL || conn->pending == 0) {
        if (entry != NULL)
            server->building.count--;
        answer_refused(server, conn, why);
    } else if (entry != NULL) {
        entry->conn = conn;
        entry->refused = why;
        conn->pending++;
    } else {
        conn_close_no_memory(conn); /* not even to remember the refusal */
    }
}

static void queue_write(struct server *server, struct conn *conn,
                        const struct hold_command *command)
{
    struct entry *entry = add_entry(&server->building);
    enum hf_status status = HF_NOMEM;

    if (server->failed)
        status = HF_IO;
    else if (entry != NULL)
        status = append_record(server, command);
    if (status != HF_OK) {
        queue_refused(server, conn, entry, status);
        return;
    }
    entry->conn = conn;
    if (command->kind == HOLD_LOCK && command->wait_ms > 0)
        entry->deadline_us = command->now_us + command->wait_ms * 1000;
    if (conn != NULL)
        conn->pending++;
}

static void queue_ask(struct server *server, struct conn *conn,
                      const struct hold_command *command)
{
    struct batch *batch = &server->building;
    size_t bytes = hold_record_bound(command);
    struct entry *entry = NULL;

    if (hf_buf_reserve(&batch->asks, bytes) == HF_OK)
        entry = add_entry(batch);
    if (entry == NULL) {
        queue_refused(server, conn, entry, HF_NOMEM);
        return;
    }
    entry->conn = conn;
    entry->ask_at = (uint32_t)batch->asks.len;
    entry->ask_len =
        (uint32_t)hold_encode(command, batch->asks.data + batch->asks.len);
    batch->asks.len += entry->ask_len;
    conn->pending++;
}

static void ask(struct server *server, struct conn *conn,
                const struct hold_command *command)
{
    const struct hold_out *out = hold_ask(server->engine, command);

    if (command->kind == HOLD_LIMIT && out->code == HOLD_OK) {
        if (reply_get_number(out->body, FIELD_ALLOWED))
            server->stats.limits_allowed++;
        else
            server->stats.limits_denied++;
    }
    answer(server, conn, out->code, out->body);
}

void commit_submit(struct server *server, struct conn *conn,
                   struct hold_command *command)
{
    bool alone = conn == NULL || conn->pending == 0;

    command->now_us = server_now_us(server);
    if (!hold_kind_is_write(command->kind)) {
        if (alone)
            ask(server, conn, command);
        else
            queue_ask(server, conn, command);
        return;
    }
    if (alone && conn != NULL) {
        const struct hold_out *out = hold_refuse(server->engine, command);
        if (out != NULL) {
            server->stats.refusals_total++;
            answer(server, conn, out->code, out->body);
            return;
        }
    }
    queue_write(server, conn, command);
}

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

/* A grant that nobody was told of goes back. One with a REQ does not: whoever
 * asked may ask again, and is then told. */
static void give_back(struct server *server, struct hf_bytes lock,
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
static void begin_wait(struct server *server, const struct entry *entry,
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
        tell_no_memory(server, conn);
        answer_error(server, conn, "OVERLOADED out of memory");
    }
}

/* The engine answers one who waited. */
static void end_wait(struct server *server, const struct hold_answer *given)
{
    uint32_t number;
    struct wait *wait = wait_find(server, given->ticket, &number);

    if (wait == NULL)
        return;
    struct conn *conn = wait->conn;
    if (conn != NULL) {
        conn->ticket = 0;
        answer(server, conn, given->code, given->body);
    } else if (given->code == HOLD_OK && !wait->has_request) {
        give_back(server, hf_text_bytes(&server->wait_texts, wait->lock),
                  given->body);
    }
    wait_remove(server, number);
}

static void count_events(struct server *server, const struct hold_out *out)
{
    for (size_t i = 0; i < out->event_count; i++) {
        server->stats.events[out->events[i].kind]++;
        if (out->events[i].lag_us > server->stats.expiry_lag_max_us)
            server->stats.expiry_lag_max_us = out->events[i].lag_us;
    }
}

/* A wait that was given up gets no answer to be forgotten by. */
static void forget_abandoned(struct server *server, struct hf_bytes record)
{
    struct hold_command command;
    uint32_t number;

    if (record.data[HOLD_RECORD_BODY] != HOLD_ABANDON ||
        hold_decode(record, &command) != HF_OK || command.name.len > 0)
        return;
    if (wait_find(server, command.token, &number) != NULL)
        wait_remove(server, number);
}

static void apply_write(struct server *server, const struct entry *entry,
                        struct hf_bytes record)
{
    const struct hold_out *out = hold_apply(server->engine, record);
    struct hold_command command;

    assert(out != NULL); /* we encoded it */
    count_events(server, out);
    forget_abandoned(server, record);
    /* The answers refer to the engine's memory: all of them before anything
     * is asked of the engine again. */
    for (size_t i = 0; i < out->answer_count; i++)
        end_wait(server, &out->answers[i]);
    if (out->code != HOLD_WAITING) {
        answer(server, entry->conn, out->code, out->body);
        if (entry->conn != NULL || entry->deadline_us == 0 ||
            out->code != HOLD_OK)
            return;
    }
    if (hold_decode(record, &command) != HF_OK)
        return;
    if (out->code == HOLD_WAITING)
        begin_wait(server, entry, out->ticket, &command);
    else if (command.request.len == 0)
        /* granted, but its time-out was told while the disk hung */
        give_back(server, command.name, out->body);
}

static void apply_ask(struct server *server, const struct entry *entry)
{
    struct hf_bytes record =
        hf_bytes(server->flying.asks.data + entry->ask_at, entry->ask_len);
    struct hold_command *c = &server->command;
    enum hf_status status = hold_decode(record, c);

    assert(status == HF_OK); /* we encoded it */
    (void)status;
    c->now_us = server_now_us(server);
    ask(server, entry->conn, c);
}

/* The flying batch is durable: apply it and answer. */
static void apply_batch(struct server *server, bool journaled)
{
    struct batch *batch = &server->flying;
    struct hf_bytes record;
    size_t at = 0;

    for (size_t i = 0; i < batch->count; i++) {
        struct entry *entry = &batch->entries[i];
        if (entry->refused != HF_OK) {
            answer_refused(server, entry->conn, entry->refused);
        } else if (entry->ask_len > 0) {
            apply_ask(server, entry);
        } else if (!journaled) {
            answer_failed(server, entry->conn);
        } else {
            enum hf_status status =
                journal_committed(server->journal, &at, &record);
            assert(status == HF_OK);
            (void)status;
            apply_write(server, entry, record);
        }
        if (entry->conn != NULL)
            conn_unpend(entry->conn);
    }
    batch->count = 0;
    batch->asks.len = 0;
    batch->has_tick = false;
    server->in_flight = false;
    if (!journaled) {
        server->failed = true;
        report_journal(&server->report, server->journal);
    }
}

/* Commits what was gathered. False: nothing to do, or the disk is busy. */
static bool commit_round(struct server *server)
{
    struct batch batch = server->building;

    if (server->in_flight || batch.count == 0)
        return false;
    server->building = server->flying;
    server->flying = batch;
    server->in_flight = true;
    if (journal_batch_bytes(server->journal) == 0) {
        apply_batch(server, true); /* questions only */
        return true;
    }
    server->stats.commits_total++;
    enum hf_status status = journal_commit(server->journal);
    if (status == HF_PENDING) {
        server->slow_since_ns = hf_clock_now_ns(server->clock) - SERVER_SLOW_NS;
        report_slow(&server->report, SERVER_SLOW_NS, false);
        return false;
    }
    apply_batch(server, status == HF_OK);
    return true;
}

void commit_turn(struct server *server)
{
    conn_flush_dirty(server);
    for (int i = 0; i < TURN_ROUNDS_MAX && commit_round(server); i++)
        conn_flush_dirty(server);
    commit_arm(server);
    if ((server->building.count > 0 || server->dirty != NULL) &&
        !server->in_flight)
        uv_idle_start(&server->again, server_again);
    else
        uv_idle_stop(&server->again);
}

void commit_poll(struct server *server)
{
    enum hf_status status = journal_poll(server->journal);

    if (status == HF_PENDING || !server->in_flight)
        return; /* asked all the same: asking clears the wake-up */
    report_slow(&server->report,
                hf_clock_now_ns(server->clock) - server->slow_since_ns, true);
    apply_batch(server, status == HF_OK);
    commit_turn(server);
}

bool commit_is_full(const struct server *server)
{
    size_t bytes = journal_batch_bytes(server->journal);

    if (server->failed)
        return false; /* what comes is refused, not gathered */
    bytes += server->building.asks.len +
             server->building.count * sizeof(struct entry);
    return bytes > BATCH_FULL_BYTES || bytes > server->config.segment_bytes / 2;
}

bool commit_is_idle(const struct server *server)
{
    return !server->in_flight && server->building.count == 0;
}

static void tell_timeout(struct server *server, struct conn *conn)
{
    answer_error(server, conn,
                 server->stopping
                     ? "TIMEOUT the server stops, nobody waits any more"
                     : "TIMEOUT waited for the lock while the disk did not "
                       "answer");
}

/* While the engine cannot be told that time passed, because the disk hangs or
 * has failed, waits end here. */
static void time_out_waits(struct server *server, uint64_t now_us)
{
    for (uint32_t i = 1; i < hf_index_top(&server->waits); i++) {
        struct wait *wait = hf_index_used(&server->waits, i);
        if (wait == NULL || wait->conn == NULL || wait->deadline_us > now_us)
            continue;
        struct conn *conn = wait->conn;
        wait->conn = NULL;
        conn->ticket = 0;
        tell_timeout(server, conn);
        if (!server->failed)
            abandon(server, wait->ticket);
    }
}

/* The same for locks whose record is still on its way. One that has other
 * requests before it must not be answered before them. */
static void time_out_entries(struct server *server, struct batch *batch,
                             uint64_t now_us)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct entry *entry = &batch->entries[i];
        struct conn *conn = entry->conn;
        if (conn == NULL || entry->deadline_us == 0 ||
            entry->deadline_us > now_us || conn->pending != 1)
            continue;
        entry->conn = NULL;
        tell_timeout(server, conn);
        conn_unpend(conn);
    }
}

void commit_end_waits(struct server *server)
{
    time_out_waits(server, UINT64_MAX);
}

void commit_due(struct server *server)
{
    uint64_t now_us = server_now_us(server);

    if (server->in_flight || server->failed) {
        time_out_waits(server, now_us);
        time_out_entries(server, &server->flying, now_us);
        time_out_entries(server, &server->building, now_us);
    } else if (hold_next_due_us(server->engine) <= now_us &&
               !server->building.has_tick) {
        struct hold_command *c = &server->command;
        *c = (struct hold_command){.kind = HOLD_TICK};
        size_t before = server->building.count;
        commit_submit(server, NULL, c);
        server->building.has_tick = server->building.count > before;
    }
    commit_turn(server);
}

/* The timer is moved only when something is due earlier than it would ring:
 * one that rings in vain is set again, which is cheaper than moving it with
 * every lock that is taken and given back. */
void commit_arm(struct server *server)
{
    uint64_t due_us = hold_next_due_us(server->engine);
    uint64_t now_us = server_now_us(server);

    if (due_us == UINT64_MAX || server->in_flight || server->failed)
        return; /* the tending timer looks after waits meanwhile */
    if (due_us >= server->due_armed_us)
        return;
    uint64_t delay_ms = due_us <= now_us ? 0 : (due_us - now_us) / 1000 + 1;
    server->due_armed_us = due_us;
    uv_timer_start(&server->due_timer, server_due, delay_ms, 0);
}

void commit_leave(struct server *server, struct conn *conn)
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
