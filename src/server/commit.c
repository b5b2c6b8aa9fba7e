/* commit.c - from a command to its answer: batch, journal, engine.
 *
 * Two batches: one is being built, one may be flying (its commit outlasted
 * the turn). Their entries stand in the order in which the journal has their
 * records, so applying walks both side by side.
 */
#include <assert.h>

#include "base/memory.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/server.h"
#include "server/waits.h"

/* Beyond this much in one batch, or half a segment, which a batch must fit
 * into, connections are not read further. */
#define BATCH_FULL_BYTES (2u << 20)

/* Rounds of commit and answer in one turn; what is left goes to the next. */
#define TURN_ROUNDS_MAX 4

/* A place in the batch being built; NULL without memory. */
static struct entry *add_entry(struct batch *batch, enum hold_kind kind,
                               uint64_t came_ns)
{
    if (batch->count == batch->cap) {
        size_t cap = batch->cap ? batch->cap * 2 : 64;
        void *entries = hf_realloc(batch->entries, cap * sizeof(struct entry));
        if (entries == NULL)
            return NULL;
        batch->entries = entries;
        batch->cap = cap;
    }
    batch->entries[batch->count] =
        (struct entry){.kind = kind, .came_ns = came_ns};
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

/* A request that cannot be taken is answered in its turn, too. */
static void queue_refused(struct server *server, struct conn *conn,
                          struct entry *entry,
                          const struct hold_command *command,
                          enum hf_status why)
{
    if (conn == NULL || conn->pending == 0) {
        if (entry != NULL)
            server->building.count--;
        answer_refused(server, conn, why);
        if (conn != NULL)
            answer_note(server, command->kind, server->answer_ns);
    } else if (entry != NULL) {
        entry->conn = conn;
        entry->refused = why;
        conn->pending++;
    } else {
        conn_close_no_memory(conn); /* not even to remember the refusal */
    }
}

static void queue_write(struct server *server, struct conn *conn,
                        const struct hold_command *command, uint64_t came_ns)
{
    struct entry *entry = add_entry(&server->building, command->kind, came_ns);
    enum hf_status status = HF_NOMEM;

    if (server->failed)
        status = HF_IO;
    else if (entry != NULL)
        status = append_record(server, command);
    if (status != HF_OK) {
        queue_refused(server, conn, entry, command, status);
        return;
    }
    entry->conn = conn;
    if (command->kind == HOLD_LOCK && command->wait_ms > 0)
        entry->deadline_us = command->now_us + command->wait_ms * 1000;
    if (conn != NULL)
        conn->pending++;
}

static void queue_ask(struct server *server, struct conn *conn,
                      const struct hold_command *command, uint64_t came_ns)
{
    struct batch *batch = &server->building;
    size_t bytes = hold_record_bound(command);
    struct entry *entry = NULL;

    if (hf_buf_reserve(&batch->asks, bytes) == HF_OK)
        entry = add_entry(batch, command->kind, came_ns);
    if (entry == NULL) {
        queue_refused(server, conn, entry, command, HF_NOMEM);
        return;
    }
    entry->conn = conn;
    entry->ask_at = (uint32_t)batch->asks.len;
    entry->ask_len =
        (uint32_t)hold_encode(command, batch->asks.data + batch->asks.len);
    batch->asks.len += entry->ask_len;
    conn->pending++;
}

/* False: time must pass first. */
static bool ask(struct server *server, struct conn *conn,
                const struct hold_command *command)
{
    const struct hold_out *out = hold_ask(server->engine, command);

    if (out != NULL)
        answer_give(server, conn, out->code, out->body);
    return out != NULL;
}

void commit_submit(struct server *server, struct conn *conn,
                   struct hold_command *command)
{
    bool alone = conn == NULL || conn->pending == 0;
    uint64_t came_ns = hf_clock_now_ns(server->clock);

    command->now_us = server->epoch_us + came_ns / 1000;
    if (!hold_kind_is_write(command->kind)) {
        if (alone && ask(server, conn, command)) {
            answer_now(server);
            answer_note(server, command->kind, came_ns);
            return;
        }
        if (alone && server->failed) { /* no time passes any more */
            answer_failed(server, conn);
            return;
        }
        struct hold_command tick = {.kind = HOLD_TICK,
                                    .now_us = command->now_us};
        if (alone)
            queue_write(server, NULL, &tick, came_ns);
        queue_ask(server, conn, command, came_ns);
        return;
    }
    if (alone && conn != NULL) {
        const struct hold_out *out = hold_refuse(server->engine, command);
        if (out != NULL) {
            hf_counter_add(server->metrics.refusals, 1);
            answer_give(server, conn, out->code, out->body);
            answer_now(server);
            answer_note(server, command->kind, came_ns);
            return;
        }
    }
    queue_write(server, conn, command, came_ns);
}

static void apply_write(struct server *server, const struct entry *entry,
                        struct hf_bytes record)
{
    const struct hold_out *out = hold_apply(server->engine, record);
    struct hold_command command;

    assert(out != NULL); /* we encoded it */
    for (; out->code == HOLD_AGAIN; out = hold_apply(server->engine, record)) {
        metrics_events(&server->metrics, out);
        for (size_t i = 0; i < out->answer_count; i++)
            waits_end(server, &out->answers[i]);
    }
    metrics_events(&server->metrics, out);
    waits_forget(server, record);
    /* The answers refer to the engine's memory: all of them before anything
     * is asked of the engine again. */
    for (size_t i = 0; i < out->answer_count; i++)
        waits_end(server, &out->answers[i]);
    if (out->code != HOLD_WAITING) {
        answer_give(server, entry->conn, out->code, out->body);
        if (entry->conn != NULL) {
            uint64_t took_ns = answer_note(server, entry->kind, entry->came_ns);
            if (entry->kind == HOLD_LOCK && out->code == HOLD_OK)
                answer_note_grant(server, took_ns);
        }
        if (entry->conn != NULL || entry->deadline_us == 0 ||
            out->code != HOLD_OK)
            return;
    }
    if (hold_decode(record, &command) != HF_OK)
        return;
    if (out->code == HOLD_WAITING)
        waits_begin(server, entry, out->ticket, &command);
    else if (command.request.len == 0)
        /* granted, but its time-out was told while the disk hung */
        waits_give_back(server, command.name, out->body);
}

static void apply_ask(struct server *server, const struct entry *entry)
{
    struct hf_bytes record =
        hf_bytes(server->flying.asks.data + entry->ask_at, entry->ask_len);
    struct hold_command *c = &server->command;
    enum hf_status status = hold_decode(record, c);

    assert(status == HF_OK); /* we encoded it */
    (void)status;
    c->now_us = hold_now_us(server->engine);
    if (!ask(server, entry->conn, c))
        answer_error(server, entry->conn, "OVERLOADED too much is over");
    answer_note(server, entry->kind, entry->came_ns);
}

/* The flying batch is durable: apply it and answer. */
static void apply_batch(struct server *server, bool journaled)
{
    struct batch *batch = &server->flying;
    struct hf_bytes record;
    size_t at = 0;
    uint64_t records = 0;

    answer_now(server);
    for (size_t i = 0; i < batch->count; i++) {
        struct entry *entry = &batch->entries[i];
        if (entry->refused != HF_OK) {
            answer_refused(server, entry->conn, entry->refused);
            answer_note(server, entry->kind, entry->came_ns);
        } else if (entry->ask_len > 0) {
            apply_ask(server, entry);
        } else if (!journaled) {
            answer_failed(server, entry->conn);
            if (entry->conn != NULL)
                answer_note(server, entry->kind, entry->came_ns);
        } else {
            enum hf_status status =
                journal_committed(server->journal, &at, &record);
            assert(status == HF_OK);
            (void)status;
            records++;
            apply_write(server, entry, record);
        }
        if (entry->conn != NULL)
            conn_unpend(entry->conn);
    }
    batch->count = 0;
    batch->asks.len = 0;
    batch->has_tick = false;
    server->in_flight = false;
    if (records > 0)
        metrics_batch(&server->metrics, records, server->flying_bytes,
                      journal_sync_ns(server->journal));
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
    server->flying_bytes = journal_batch_bytes(server->journal);
    hf_counter_add(server->metrics.commits, 1);
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
        answer_timeout(server, conn);
        answer_note(server, entry->kind, entry->came_ns);
        entry->came_ns = 0;
        conn_unpend(conn);
    }
}

void commit_end_waits(struct server *server)
{
    answer_now(server);
    waits_time_out(server, UINT64_MAX);
}

void commit_due(struct server *server)
{
    answer_now(server);
    uint64_t now_us = server->epoch_us + server->answer_ns / 1000;

    if (server->in_flight || server->failed) {
        waits_time_out(server, now_us);
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
