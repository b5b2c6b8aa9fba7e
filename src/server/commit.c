/* commit.c - from a command to its answer: batch, journal, engine.
 *
 * What a turn gathers is a batch: requests in the order of their arrival,
 * with their records in the server's own buffer. A commit hands the records
 * to the journal and makes the batch the flying one; when it is durable its
 * records are applied and its requests answered in the same order. Verdicts
 * (waits.h) are a batch of their own, before the gathered one.
 *
 *   gathered --.
 *               >-- commit --> flying --> applied, answered
 *   verdicts --'               one at a time
 *
 * Nothing is told that a record on its way could contradict. A write that is
 * not applied yet is not acknowledged, so that reading what was before it is
 * right; but time passes meanwhile. So an answer that depends on something
 * that is due and not applied waits behind a record that lets time pass.
 */
#include <assert.h>

#include "base/hash.h"
#include "base/memory.h"
#include "server/admin.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/server.h"
#include "server/waits.h"

/* Beyond this much in one batch, or half a segment, which a batch must fit
 * into, connections are not read further. */
#define BATCH_FULL_BYTES (2u << 20)

/* Rounds of commit and answer in one turn; what is left goes to the next. */
#define TURN_ROUNDS_MAX 4

/* Ticks in one batch while more is due than one of them handles. */
#define TICKS_MAX 16

/* Steps of listings in one turn; the last one may pass it. */
#define TURN_STEPS_MAX 50000u

/* What the journal adds to a record. */
#define RECORD_HEAD_BYTES 4u

/* A place in the batch; NULL without memory. */
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

static struct hf_bytes record_of(const struct batch *batch,
                                 const struct entry *entry)
{
    return hf_bytes(batch->records.data + entry->at, entry->len);
}

/* Encodes the command at the end of the batch's records; there is room. */
static void put_record(struct batch *batch, struct entry *entry,
                       const struct hold_command *command)
{
    entry->at = (uint32_t)batch->records.len;
    entry->len =
        (uint32_t)hold_encode(command, batch->records.data + entry->at);
    batch->records.len += entry->len;
}

static enum hf_status reserve_record(struct batch *batch,
                                     const struct hold_command *command)
{
    return hf_buf_reserve(&batch->records, hold_record_bound(command));
}

/* A rejected request is still answered in order. */
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

/* Takes the record into the batch. The entry may be there in spite of a
 * failure: it can carry the refusal. */
static enum hf_status take_write(struct server *server,
                                 const struct hold_command *command,
                                 uint64_t came_ns, struct entry **out)
{
    struct batch *batch = &server->building;
    enum hf_status status = reserve_record(batch, command);
    struct entry *entry = add_entry(batch, command->kind, came_ns);

    *out = entry;
    if (entry != NULL)
        entry->has_request = command->request.len > 0;
    if (server->failed)
        return HF_IO;
    if (entry == NULL || status != HF_OK)
        return HF_NOMEM;
    if (hold_prepare(server->engine, command) != HF_OK)
        return HF_NOMEM;
    put_record(batch, entry, command);
    return HF_OK;
}

static void queue_write(struct server *server, struct conn *conn,
                        const struct hold_command *command, uint64_t came_ns)
{
    struct entry *entry;
    enum hf_status status = take_write(server, command, came_ns, &entry);

    if (status != HF_OK) {
        queue_refused(server, conn, entry, command, status);
        return;
    }
    entry->conn = conn;
    if (conn != NULL)
        conn->pending++;
}

/* A fixed key: it only compares requests of one run. */
static uint64_t fingerprint_of(struct hf_bytes record)
{
    struct hf_hash_seed seed = {{0x776169747320666fu, 0x722061206c6f636bu}};

    return hf_hash(seed, hf_bytes(record.data + HOLD_RECORD_BODY,
                                  record.len - HOLD_RECORD_BODY));
}

/* A lock that may wait. Its connection runs nothing else meanwhile: the wait
 * leads to it, and the entry to the wait. */
static void queue_wait(struct server *server, struct conn *conn,
                       const struct hold_command *command, uint64_t came_ns)
{
    struct batch *batch = &server->building;
    struct entry *entry;
    enum hf_status status = take_write(server, command, came_ns, &entry);

    assert(conn->pending == 0 && conn->wait == NULL);
    if (status != HF_OK) {
        queue_refused(server, conn, entry, command, status);
        return;
    }
    uint64_t fingerprint = fingerprint_of(record_of(batch, entry));
    bool joined = command->request.len > 0 &&
                  waits_join(server, conn, command, fingerprint);
    if (!joined)
        entry->wait = waits_new(server, conn, command, fingerprint, came_ns);
    if (entry->wait != NULL)
        return;
    batch->count--;
    batch->records.len = entry->at;
    hold_forget(server->engine, command);
    if (!joined)
        queue_refused(server, conn, NULL, command, HF_NOMEM);
}

static void tick(struct server *server, bool all)
{
    struct hold_command *c = &server->command;

    *c = (struct hold_command){.kind = HOLD_TICK, .amount = all};
    c->now_us = server_now_us(server);
    queue_write(server, NULL, c, 0);
}

/* The question is answered in its place, as of a time at which everything
 * that is due has been applied. */
static void queue_ask(struct server *server, struct conn *conn,
                      struct hold_command *command, uint64_t came_ns)
{
    struct batch *batch = &server->building;
    struct hold_command pass = {
        .kind = HOLD_TICK, .now_us = command->now_us, .amount = 1};

    if (!server->failed)
        queue_write(server, NULL, &pass, 0);
    enum hf_status status = reserve_record(batch, command);
    struct entry *entry = add_entry(batch, command->kind, came_ns);
    if (entry == NULL || status != HF_OK) {
        queue_refused(server, conn, entry, command, HF_NOMEM);
        return;
    }
    put_record(batch, entry, command);
    entry->conn = conn;
    entry->ask = true;
    conn->pending++;
}

static void answer_at_once(struct server *server, struct conn *conn,
                           const struct hold_out *out, enum hold_kind kind,
                           uint64_t came_ns)
{
    conn_spend(conn, out->work);
    answer_now(server);
    answer_give(server, conn, out->code, out->body);
    answer_note(server, kind, came_ns);
}

static void apply_alone(struct server *server, struct hold_command *command)
{
    char record[HOLD_RECORD_BODY + 32];
    const struct hold_out *out;

    command->now_us = server_now_us(server);
    size_t len = hold_encode(command, record);
    assert(len <= sizeof record);
    do
        out = hold_apply(server->engine, hf_bytes(record, len));
    while (out->code == HOLD_AGAIN);
}

/* After the journal has failed time goes on for those who look: what is over
 * is over, as it will be after a restart. */
static void pass_time_alone(struct server *server)
{
    struct hold_command pass = {.kind = HOLD_TICK, .amount = 1};

    if (server->failed)
        apply_alone(server, &pass);
}

/* The journal has failed: nobody can be granted anything any more, so nobody
 * waits; the next start would say the same. */
static void fail(struct server *server)
{
    struct hold_command nobody_waits = {.kind = HOLD_RESTART};

    server->failed = true;
    report_journal(&server->report, server->journal);
    waits_fail(server);
    apply_alone(server, &nobody_waits);
}

/* The answer that can be given without the journal, or NULL. */
static const struct hold_out *answer_of(struct server *server,
                                        const struct hold_command *command)
{
    bool is_write = hold_kind_is_write(command->kind);

    /* The engine shows a hold that somebody was told not to have; only what
     * it told before is certain. */
    if (server->orphans > 0 && (!is_write || command->request.len == 0))
        return NULL;
    if (is_write)
        return hold_refuse(server->engine, command);
    pass_time_alone(server);
    return hold_ask(server->engine, command);
}

/* A REQ whose TIMEOUT was told is answered so, whatever the engine knows. */
static bool was_told(struct server *server, const struct hold_command *command)
{
    return command->request.len > 0 &&
           waits_was_told(&server->waits, command->request);
}

static bool may_wait(const struct hold_command *command)
{
    return command->kind == HOLD_LOCK && command->wait_ms > 0;
}

/* True if it would be remembered, and its client has filled its share. */
static bool is_too_much(const struct server *server, const struct conn *conn,
                        const struct hold_command *command)
{
    return command->request.len > 0 && share_is_spent(server, conn_host(conn));
}

bool commit_admits(const struct server *server, const struct conn *conn,
                   const struct hold_command *command)
{
    bool is_write = hold_kind_is_write(command->kind);

    /* a wait is alone on its connection */
    if (conn->pending > 0 &&
        (may_wait(command) || is_too_much(server, conn, command)))
        return false;
    if (!is_write && server->turn_steps >= TURN_STEPS_MAX)
        return false; /* listings of all clients share a budget */
    /* While more is due than one record handles, ticks go first: what depends
     * on all of it would have to handle it in one step. */
    return !hold_is_behind(server->engine) || server->failed ||
           (is_write && !hold_kind_is_exact(command->kind));
}

static void refuse_share(struct server *server, struct conn *conn,
                         enum hold_kind kind, uint64_t came_ns)
{
    hf_counter_add(server->metrics.shares_refused, 1);
    report_requests_full(&server->report, conn);
    answer_now(server);
    answer_error(server, conn,
                 "OVERLOADED this client has filled its share of the REQ ids "
                 "remembered: requests-share of requests-max");
    answer_note(server, kind, came_ns);
}

void commit_submit(struct server *server, struct conn *conn,
                   struct hold_command *command)
{
    uint64_t came_ns = hf_clock_now_ns(server->clock);

    command->now_us = server->epoch_us + came_ns / 1000;
    if (conn->pending == 0 && !was_told(server, command)) {
        const struct hold_out *out = answer_of(server, command);
        if (out != NULL) {
            if (hold_kind_is_write(command->kind))
                hf_counter_add(server->metrics.refusals, 1);
            answer_at_once(server, conn, out, command->kind, came_ns);
            return;
        }
    }
    if (!hold_kind_is_write(command->kind))
        queue_ask(server, conn, command, came_ns);
    else if (conn->pending == 0 && is_too_much(server, conn, command))
        refuse_share(server, conn, command->kind, came_ns);
    else if (may_wait(command))
        queue_wait(server, conn, command, came_ns);
    else
        queue_write(server, conn, command, came_ns);
}

/* ---- A batch that is durable. ---- */

/* A lock that was granted to a client that is gone is given back, unless it
 * can be asked for again. */
static void give_back(struct server *server, struct hf_bytes record,
                      struct hf_bytes grant)
{
    struct hold_command *c = &server->command;
    uint64_t token = (uint64_t)reply_get_number(grant, FIELD_TOKEN);

    if (hold_decode(record, c) == HF_OK && c->request.len == 0)
        waits_orphan(server, c->name, token);
}

static void answer_write(struct server *server, const struct entry *entry,
                         struct hf_bytes record, const struct hold_out *out)
{
    if (entry->kind == HOLD_BOUNDS)
        admin_bounds_changed(server, entry->conn);
    if (entry->conn == NULL)
        return; /* the server's own */
    bool granted = entry->kind == HOLD_LOCK && out->code == HOLD_OK;
    answer_applied(server, entry->conn, out->code, out->body);
    uint64_t took_ns = answer_note(server, entry->kind, entry->came_ns);
    if (entry->has_request && out->code == HOLD_OK)
        share_add(server, conn_host(entry->conn));
    if (granted && entry->conn->closing)
        give_back(server, record, out->body);
    else if (granted)
        answer_note_grant(server, took_ns);
}

static void apply_write(struct server *server, const struct entry *entry,
                        struct hf_bytes record)
{
    const struct hold_out *out;

    do {
        out = hold_apply(server->engine, record);
        assert(out != NULL); /* we encoded it */
        metrics_events(&server->metrics, out);
        /* The answers refer to the engine's memory: all of them before
         * anything is asked of the engine again. */
        for (size_t i = 0; i < out->answer_count; i++)
            waits_answered(server, &out->answers[i]);
    } while (out->code == HOLD_AGAIN);
    if (entry->wait == NULL)
        answer_write(server, entry, record, out);
    else if (entry->kind != HOLD_LOCK)
        waits_judged(server, entry->wait);
    else if (entry->told)
        waits_drop(server, entry->wait);
    else
        waits_applied(server, entry->wait, out);
}

/* As of the time of the engine, which passed for it: see queue_ask(). */
static void apply_ask(struct server *server, const struct entry *entry)
{
    struct hold_command *c = &server->command;
    enum hf_status status = hold_decode(record_of(&server->flying, entry), c);

    assert(status == HF_OK); /* we encoded it */
    (void)status;
    pass_time_alone(server);
    c->now_us = hold_now_us(server->engine);
    const struct hold_out *out = hold_ask(server->engine, c);
    assert(out != NULL); /* time has passed for it */
    conn_spend(entry->conn, out->work);
    answer_applied(server, entry->conn, out->code, out->body);
    answer_note(server, entry->kind, entry->came_ns);
}

/* The record was not written. */
static void refuse_write(struct server *server, const struct entry *entry,
                         enum hf_status why)
{
    if (entry->wait != NULL) {
        struct conn *conn = entry->wait->conn;
        waits_drop(server, entry->wait);
        answer_refused(server, conn, why);
        if (conn != NULL)
            answer_note(server, entry->kind, entry->came_ns);
    } else if (entry->conn != NULL) {
        answer_refused(server, entry->conn, why);
        answer_note(server, entry->kind, entry->came_ns);
    }
}

static void apply_entry(struct server *server, struct entry *entry,
                        bool journaled, size_t *at)
{
    struct hf_bytes record;

    if (entry->dropped)
        return;
    if (entry->refused != HF_OK) {
        refuse_write(server, entry, entry->refused);
    } else if (entry->ask) {
        apply_ask(server, entry);
    } else if (!journaled) {
        refuse_write(server, entry, HF_IO);
    } else {
        enum hf_status status = journal_committed(server->journal, at, &record);
        assert(status == HF_OK);
        (void)status;
        apply_write(server, entry, record);
    }
}

/* The flying batch is durable, or has failed: apply it and answer. */
static void apply_batch(struct server *server, bool journaled)
{
    struct batch *batch = &server->flying;
    size_t at = 0;

    answer_now(server);
    for (size_t i = 0; i < batch->count; i++) {
        struct entry *entry = &batch->entries[i];
        apply_entry(server, entry, journaled, &at);
        if (entry->conn != NULL)
            conn_unpend(entry->conn);
    }
    batch->count = 0;
    batch->records.len = 0;
    batch->has_tick = false;
    server->in_flight = false;
    if (journaled && server->flying_records > 0)
        metrics_batch(&server->metrics, server->flying_records,
                      server->flying_bytes, journal_sync_ns(server->journal));
    if (!journaled)
        fail(server);
}

/* ---- Commit. ---- */

/* A lock whose wait has ended already is not journaled, or only as told. */
static void withdraw(struct server *server, struct batch *batch,
                     struct entry *entry)
{
    struct hold_command *c = &server->command;
    enum hf_status status = hold_decode(record_of(batch, entry), c);

    assert(status == HF_OK);
    (void)status;
    entry->dropped = waits_withdraw(server, entry->wait, &entry->told);
    if (entry->dropped) {
        hold_forget(server->engine, c);
    } else if (entry->told) {
        hold_record_tell(batch->records.data + entry->at);
    }
}

/* Gives the batch's records to the journal. */
static void hand_over(struct server *server, struct batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct entry *entry = &batch->entries[i];
        if (entry->ask || entry->refused != HF_OK)
            continue;
        if (entry->wait != NULL && entry->kind == HOLD_LOCK &&
            entry->wait->end != END_NONE)
            withdraw(server, batch, entry);
        if (entry->dropped)
            continue;
        struct hf_bytes record = record_of(batch, entry);
        entry->refused = journal_append(server->journal, record);
        if (entry->refused != HF_OK) {
            struct hold_command *c = &server->command;
            if (hold_decode(record, c) == HF_OK)
                hold_forget(server->engine, c);
            continue;
        }
        server->flying_records++;
    }
}

/* Makes a batch of the verdicts that are owed. */
static void gather_verdicts(struct server *server)
{
    struct batch *batch = &server->verdicts;
    struct hold_command *c = &server->command;
    struct wait *wait;

    while (!commit_batch_is_full(server, batch) &&
           waits_verdict(server, c, &wait)) {
        struct entry *entry = NULL;
        if (reserve_record(batch, c) == HF_OK)
            entry = add_entry(batch, c->kind, 0);
        if (entry == NULL || hold_prepare(server->engine, c) != HF_OK) {
            batch->count -= entry != NULL;
            waits_owe_again(server, wait);
            return; /* it is tried again in the next round */
        }
        put_record(batch, entry, c);
        entry->wait = wait;
    }
}

/* Commits what was gathered. False: nothing to do, or the disk is busy. */
static bool commit_round(struct server *server)
{
    if (server->in_flight)
        return false;
    gather_verdicts(server);
    struct batch *batch =
        server->verdicts.count > 0 ? &server->verdicts : &server->building;
    if (batch->count == 0)
        return false;
    struct batch empty = server->flying;
    server->flying = *batch;
    *batch = empty;
    server->in_flight = true;
    server->flying_records = 0;
    hand_over(server, &server->flying);
    server->flying_bytes = journal_batch_bytes(server->journal);
    if (server->flying_records == 0) {
        apply_batch(server, true); /* questions only */
        return true;
    }
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
    if (!server->in_flight && (!commit_is_idle(server) || server->dirty))
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

bool commit_batch_is_full(const struct server *server,
                          const struct batch *batch)
{
    size_t bytes = batch->records.len + batch->count * RECORD_HEAD_BYTES;

    return bytes + batch->count * sizeof(struct entry) > BATCH_FULL_BYTES ||
           bytes > server->config.segment_bytes / 2;
}

bool commit_is_full(const struct server *server)
{
    return !server->failed && /* else what comes is refused, not gathered */
           commit_batch_is_full(server, &server->building);
}

bool commit_is_idle(const struct server *server)
{
    return !server->in_flight && server->building.count == 0 &&
           server->verdicts.count == 0 && server->waits.owed == NULL;
}

void commit_end_waits(struct server *server)
{
    answer_now(server);
    waits_stop(server);
}

void commit_due(struct server *server)
{
    answer_now(server);
    uint64_t now_us = server->epoch_us + server->answer_ns / 1000;

    if (server->in_flight) {
        waits_due(server, now_us);
    } else if (!server->failed && hold_next_due_us(server->engine) <= now_us &&
               !server->building.has_tick) {
        int count = hold_is_behind(server->engine) ? TICKS_MAX : 1;
        size_t before = server->building.count;
        for (int i = 0; i < count; i++)
            tick(server, false);
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
