/* commit.c - from a batch to its answers: journal, engine.
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
 */
#include <assert.h>

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

/* Calls of the engine in one turn that only swept what was due, 256 things
 * each: a turn stays short, however much is due at once. */
#define TURN_SWEEPS_MAX 16

/* What the journal adds to a record. */
#define RECORD_HEAD_BYTES 4u

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

static void answer_write(struct server *server, struct entry *entry,
                         struct hf_bytes record, const struct hold_out *out)
{
    if (entry->kind == HOLD_FLUSH)
        shares_clear(&server->shares);
    if (entry->kind == HOLD_BOUNDS)
        admin_bounds_changed(server, entry->conn);
    if (entry->conn == NULL)
        return; /* the server's own */
    bool granted = entry->kind == HOLD_LOCK && out->code == HOLD_OK;
    answer_applied(server, entry->conn, out->code, out->body);
    uint64_t took_ns = answer_note(server, entry->kind, entry->came_ns);
    entry->succeeded = out->code == HOLD_OK && out->stored;
    if (granted && entry->conn->closing)
        give_back(server, record, out->body);
    else if (granted)
        answer_note_grant(server, took_ns);
}

/* False: so much was due that the rest of it is left to the next turn. */
static bool apply_write(struct server *server, struct entry *entry,
                        struct hf_bytes record)
{
    const struct hold_out *out;

    do {
        if (server->turn_sweeps++ >= TURN_SWEEPS_MAX)
            return false;
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
    server->turn_sweeps--; /* what was not all swept counts */
    return true;
}

/* As of the time of the engine, which passed for it: see queue_ask(). If the
 * journal has failed, what is over cannot be noted, and nothing that depends
 * on it can be told. */
static void apply_ask(struct server *server, const struct entry *entry)
{
    struct hold_command *c = &server->command;
    enum hf_status status =
        hold_decode(entry_record(&server->flying, entry), c);

    assert(status == HF_OK); /* we encoded it */
    (void)status;
    c->now_us =
        server->failed ? server_now_us(server) : hold_now_us(server->engine);
    const struct hold_out *out = hold_ask(server->engine, c);
    assert(out != NULL || server->failed); /* time has passed for it */
    if (out == NULL) {
        answer_failed(server, entry->conn);
    } else {
        conn_spend(entry->conn, out->work);
        if (server->failed)
            answer_give(server, entry->conn, out->code, out->body);
        else
            answer_applied(server, entry->conn, out->code, out->body);
    }
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

/* False: it is to be called again in the next turn. */
static bool apply_entry(struct server *server, struct entry *entry,
                        bool journaled)
{
    struct hf_bytes record;
    size_t at = server->apply_at;

    if (entry->dropped)
        return true;
    if (entry->refused != HF_OK) {
        refuse_write(server, entry, entry->refused);
    } else if (entry->ask) {
        apply_ask(server, entry);
    } else if (!journaled) {
        refuse_write(server, entry, HF_IO);
    } else {
        enum hf_status status =
            journal_committed(server->journal, &at, &record);
        assert(status == HF_OK);
        (void)status;
        if (!apply_write(server, entry, record))
            return false;
        server->apply_at = at;
    }
    return true;
}

/* Nobody can be granted anything any more, so nobody waits. */
static void fail(struct server *server)
{
    server->failed = true;
    report_journal(&server->report, server->journal);
    waits_fail(server);
}

/* The flying batch is durable, or has failed: apply it and answer. When so
 * much is due that this would take long, it is done over several turns. */
static void apply_batch(struct server *server, bool journaled)
{
    struct batch *batch = &server->flying;

    answer_now(server);
    if (!journaled)
        fail(server);
    for (; server->apply_next < batch->count; server->apply_next++) {
        struct entry *entry = &batch->entries[server->apply_next];
        server->applying = !apply_entry(server, entry, journaled);
        if (server->applying)
            return;
        if (entry->shared)
            share_settle(server, conn_host(entry->conn), entry->succeeded);
        if (entry->conn != NULL)
            conn_unpend(entry->conn);
        entry->conn = NULL;
    }
    batch->count = 0;
    batch->records.len = 0;
    batch->has_tick = false;
    server->in_flight = false;
    if (journaled && server->flying_records > 0)
        metrics_batch(&server->metrics, server->flying_records,
                      server->flying_bytes, journal_sync_ns(server->journal));
    conn_unpark(server);
}

/* ---- Commit. ---- */

/* A lock whose wait has ended already is not journaled, or only as told. */
static void withdraw(struct server *server, struct batch *batch,
                     struct entry *entry)
{
    struct hold_command *c = &server->command;
    enum hf_status status = hold_decode(entry_record(batch, entry), c);

    assert(status == HF_OK);
    (void)status;
    entry->dropped = waits_withdraw(server, entry->wait, &entry->told);
    if (entry->dropped) {
        hold_forget(server->engine, c);
    } else if (entry->told) {
        hold_forget(server->engine, c);
        c->told = true;
        hold_record_tell(batch->records.data + entry->at);
        status = hold_prepare(server->engine, c);
        entry->refused = status; /* it needs less than was given back */
    }
}

/* Gives the batch's records to the journal. False: it has failed, perhaps
 * before, in the background. */
static bool hand_over(struct server *server, struct batch *batch)
{
    bool takes = true;

    for (size_t i = 0; i < batch->count; i++) {
        struct entry *entry = &batch->entries[i];
        if (entry->ask || entry->refused != HF_OK)
            continue;
        if (entry->wait != NULL && entry->kind == HOLD_LOCK &&
            entry->wait->end != END_NONE)
            withdraw(server, batch, entry);
        if (entry->dropped || entry->refused != HF_OK)
            continue;
        struct hf_bytes record = entry_record(batch, entry);
        entry->refused = journal_append(server->journal, record);
        if (entry->refused != HF_OK) {
            struct hold_command *c = &server->command;
            if (hold_decode(record, c) == HF_OK)
                hold_forget(server->engine, c);
            takes = takes && entry->refused != HF_IO;
            continue;
        }
        server->flying_records++;
    }
    return takes;
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
        if (entry_reserve(batch, c) == HF_OK)
            entry = entry_add(batch, c->kind, 0);
        if (entry == NULL || hold_prepare(server->engine, c) != HF_OK) {
            batch->count -= entry != NULL;
            waits_owe_again(server, wait);
            return; /* it is tried again in the next round */
        }
        entry_put(batch, entry, c);
        entry->wait = wait;
    }
}

/* Commits what was gathered. False: nothing to do, or the disk is busy. */
static bool commit_round(struct server *server)
{
    if (server->applying) {
        apply_batch(server, true);
        return !server->applying;
    }
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
    server->apply_next = 0;
    server->apply_at = 0;
    server->flying_records = 0;
    bool takes = hand_over(server, &server->flying);
    server->flying_bytes = journal_batch_bytes(server->journal);
    if (server->flying_records == 0) {
        /* questions only, or all of it was refused */
        apply_batch(server, takes || server->failed);
        return !server->applying;
    }
    hf_counter_add(server->metrics.commits, 1);
    enum hf_status status = journal_commit(server->journal);
    if (status == HF_PENDING) {
        server->slow_since_ns = hf_clock_now_ns(server->clock) - SERVER_SLOW_NS;
        report_slow(&server->report, SERVER_SLOW_NS, false);
        return false;
    }
    apply_batch(server, status == HF_OK);
    return !server->applying;
}

void commit_tend(struct server *server)
{
    if (!server->failed && !server->in_flight &&
        journal_error(server->journal)[0] != '\0')
        fail(server);
}

void commit_turn(struct server *server)
{
    conn_flush_dirty(server);
    for (int i = 0; i < TURN_ROUNDS_MAX && commit_round(server); i++)
        conn_flush_dirty(server);
    commit_arm(server);
    if (server->applying || server->dirty != NULL ||
        (!server->in_flight && !commit_is_idle(server)))
        uv_idle_start(&server->again, server_again);
    else
        uv_idle_stop(&server->again);
}

void commit_poll(struct server *server)
{
    enum hf_status status = journal_poll(server->journal);

    if (status == HF_PENDING || !server->in_flight || server->applying)
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
            submit_tick(server);
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
    /* Not 0: a timer that rings at once would keep the loop from all else. */
    uint64_t delay_ms = due_us <= now_us ? 1 : (due_us - now_us) / 1000 + 1;
    server->due_armed_us = due_us;
    uv_timer_start(&server->due_timer, server_due, delay_ms, 0);
}
