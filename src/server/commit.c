/* commit.c - from a batch to its answers: log, engine.
 *
 * What a turn gathers is a batch: requests in the order of their arrival,
 * with their records in the server's own buffer. A commit hands the records
 * to the log and makes the batch a flying one; when it is durable its records
 * are applied and its requests answered in the same order. Verdicts
 * (lock_wait.h) are a batch of their own, before the gathered one.
 *
 *   gathered --.
 *               >-- commit --> flying, flying, ... --> applied, answered
 *   verdicts --'               as many as the log      in the same order
 *                              takes
 */
#include <assert.h>

#include "server/admin.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/lock_wait.h"
#include "server/server.h"

/* Beyond this much in one batch, or half a segment, which a batch must fit
 * into, connections are not read further. */
#define BATCH_FULL_BYTES (2u << 20)

/* Ticks in one batch while more is due than one of them handles. */
#define TICKS_MAX 16

/* Calls of the engine in one turn that only swept what was due, 256 things
 * each: a turn stays short, however much is due at once. */
#define TURN_SWEEPS_MAX 16

/* Answers for one look at the clock. */
#define ANSWERS_A_CLOCK 16u

/* What the journal adds to a record. */
#define RECORD_HEAD_BYTES 4u

/* ---- A batch that is durable. ---- */

static struct batch *flight_at(struct server *server, uint32_t index)
{
    return &server
                ->flights[(server->flight_first + index) % SERVER_FLIGHTS_MAX];
}

/* A search for what a client has sent: its requests that are left, and steps.
 */
struct search {
    const struct conn *conn;
    uint64_t left;
    uint32_t steps;
};
#define SEARCH_STEPS 1000u

/* An UNLOCK of this hold that will be carried out, from `from` on in the batch.
 * Each is found once. */
static bool find_unlock(struct server *server, struct search *search,
                        struct batch *batch, size_t from, struct hf_bytes name,
                        uint64_t token)
{
    struct hold_command *c = &server->command;

    for (size_t i = from;
         i < batch->count && search->left > 0 && search->steps++ < SEARCH_STEPS;
         i++) {
        struct entry *entry = &batch->entries[i];
        if (entry->conn != search->conn)
            continue;
        search->left--;
        if (entry->kind != HOLD_UNLOCK || entry->gives_back ||
            entry->refused != HF_OK ||
            hold_decode(entry_record(batch, entry), c) != HF_OK ||
            c->token != token || !hf_bytes_equal(c->name, name) ||
            (c->request.len > 0 && hold_answer_now(server->engine, c) != NULL))
            continue; /* the last: it was carried out before */
        entry->gives_back = true;
        return true;
    }
    return false;
}

/* Has the client itself sent for the re-entry to be given back, behind the LOCK
 * that is being applied? */
static bool gives_back_itself(struct server *server, const struct conn *conn,
                              struct hf_bytes name, uint64_t token)
{
    struct search search = {conn, conn->pending - 1, 0};
    size_t from = server->apply_next + 1;

    for (uint32_t i = 0; i < server->flight_count && search.left > 0; i++) {
        if (find_unlock(server, &search, flight_at(server, i), from, name,
                        token))
            return true;
        from = 0;
    }
    return find_unlock(server, &search, &server->building, 0, name, token);
}

/* A lock that was granted to a client that is gone is given back, unless it
 * can be asked for again. */
static void give_back(struct server *server, struct conn *conn,
                      struct hf_bytes record, struct hf_bytes grant)
{
    struct hold_command *c = &server->command;
    uint64_t token = (uint64_t)reply_get_number(grant, FIELD_TOKEN);
    bool again = reply_get_number(grant, FIELD_COUNT) > 1;

    if (hold_decode(record, c) != HF_OK || c->request.len > 0)
        return;
    struct hf_bytes name = c->name; /* in the record */
    if (!again || !gives_back_itself(server, conn, name, token))
        lock_wait_orphan(server, name, token);
    conn_close(conn); /* what it sent and was not begun is left */
}

/* One that is read from is closed when it ends; else its end lies unread. */
static bool is_gone(const struct conn *conn)
{
    return conn->closing || (!conn->reading && conn_is_gone(conn));
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
    bool granted = hold_kind_waits(entry->kind) && out->code == HOLD_OK;
    answer_applied(server, entry->conn, out->code, out->body);
    uint64_t took_ns = answer_note(server, entry->kind, entry->came_ns);
    entry->succeeded = out->code == HOLD_OK && out->stored;
    if (granted && is_gone(entry->conn))
        give_back(server, entry->conn, record, out->body);
    else if (granted)
        answer_note_grant(server, took_ns);
}

/* False: so much was due that the rest of it is left to the next turn, or there
 * is no memory to give a grant back that reaches nobody. */
static bool apply_write(struct server *server, struct entry *entry,
                        struct hf_bytes record)
{
    const struct hold_out *out;

    if (hold_kind_waits(entry->kind) && entry->wait == NULL &&
        !lock_wait_spare(server))
        return false;

    do {
        if (server->turn_sweeps >= TURN_SWEEPS_MAX)
            return false;
        server->turn_sweeps++;
        out = hold_apply(server->engine, record);
        assert(out != NULL); /* we encoded it */
        metrics_events(&server->metrics, out);
        /* The answers refer to the engine's memory: all of them before
         * anything is asked of the engine again. */
        for (size_t i = 0; i < out->answer_count; i++)
            lock_wait_answered(server, &out->answers[i]);
        if (out->code == HOLD_AGAIN)
            answer_now(server);
    } while (out->code == HOLD_AGAIN);
    if (entry->wait == NULL)
        answer_write(server, entry, record, out);
    else if (entry->verdict)
        lock_wait_judged(server, entry->wait);
    else if (entry->told)
        lock_wait_drop(server, entry->wait);
    else
        lock_wait_applied(server, entry->wait, out);
    server->turn_sweeps--; /* what was not all swept counts */
    return true;
}

/* Answers a question, or a write that is not carried out because its client has
 * filled its share: see refuse_share(). Time has passed for it up to the time
 * of the engine: see queue_ask(). A commit that ended well shows that the log
 * leads; without one it is asked. If the log has failed, or had no memory
 * for that record, what is over cannot be noted, and nothing that depends on it
 * can be told. */
static void apply_ask(struct server *server, const struct batch *batch,
                      const struct entry *entry)
{
    struct hold_command *c = &server->command;
    enum hf_status status = hold_decode(entry_record(batch, entry), c);
    const struct hold_out *out = NULL;

    assert(status == HF_OK); /* we encoded it */
    (void)status;
    c->now_us =
        server->failed ? server_now_us(server) : hold_now_us(server->engine);
    bool is_write = hold_kind_is_write(c->kind);
    if (server->orphans > 0 && !is_write && !server->failed) {
        submit_ask_again(server, entry->conn, c, entry->came_ns);
        return;
    }
    bool leads = batch->record_count > 0 && batch->end == HF_OK;
    if (leads || log_leads(server->log))
        out = is_write ? hold_answer_now(server->engine, c)
                       : hold_ask(server->engine, c);
    if (out == NULL && is_write && !server->failed) {
        submit_refuse_share(server, entry->conn);
    } else if (out == NULL) {
        answer_refused(server, entry->conn, server->failed ? HF_IO : HF_NOMEM);
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
    if (entry->verdict && why != HF_IO) {
        lock_wait_owe_again(server, entry->wait); /* a verdict stands */
    } else if (entry->wait != NULL) {
        struct conn *conn = entry->wait->base.conn;
        if (why == HF_IO)
            lock_wait_give_up(server, entry->wait);
        else
            lock_wait_drop(server, entry->wait);
        answer_refused(server, conn, why);
        if (conn != NULL)
            answer_note(server, entry->kind, entry->came_ns);
    } else if (entry->conn != NULL) {
        answer_refused(server, entry->conn, why);
        answer_note(server, entry->kind, entry->came_ns);
    }
}

/* False: it is to be called again in the next turn. */
static bool apply_entry(struct server *server, const struct batch *batch,
                        struct entry *entry)
{
    struct hf_bytes record;
    size_t at = server->apply_at;

    if (entry->dropped)
        return true;
    if (entry->refused != HF_OK) {
        refuse_write(server, entry, entry->refused);
    } else if (entry->ask) {
        apply_ask(server, batch, entry);
    } else if (batch->end != HF_OK) {
        refuse_write(server, entry, HF_IO);
    } else {
        enum hf_status status = log_committed(server->log, &at, &record);
        assert(status == HF_OK);
        (void)status;
        if (!apply_write(server, entry, record))
            return false;
        server->apply_at = at;
    }
    return true;
}

/* Nobody can be granted anything any more, so nobody waits; nor for a batch,
 * since there may be none. */
static void fail(struct server *server)
{
    server->failed = true;
    server->applied = true;
    report_journal(&server->report, server->log);
    waits_end(server, WAIT_FAIL);
}

/* The oldest batch is durable, or has failed: apply it and answer. When so much
 * is due that this would take long, it is done over several turns. */
static void apply_batch(struct server *server, struct batch *batch)
{
    answer_now(server);
    if (batch->end != HF_OK && !server->failed)
        fail(server);
    for (; server->apply_next < batch->count; server->apply_next++) {
        struct entry *entry = &batch->entries[server->apply_next];
        if (server->apply_next % ANSWERS_A_CLOCK == 0)
            answer_now(server);
        server->applying = !apply_entry(server, batch, entry);
        if (server->applying)
            return;
        if (entry->shared)
            share_settle(server, conn_host(entry->conn), entry->succeeded);
        if (entry->conn != NULL)
            conn_unpend(entry->conn);
        entry->conn = NULL;
    }
    if (batch->end == HF_OK && batch->record_count > 0)
        metrics_batch(&server->metrics, batch->record_count, batch->byte_count,
                      log_sync_ns(server->log));
    batch->count = 0;
    batch->records.len = 0;
    batch->has_tick = false;
    batch->wait_count = 0;
    batch->may_orphan = false;
    batch->reenters = false;
    server->apply_next = 0;
    server->apply_at = 0;
    server->flight_first = (server->flight_first + 1) % SERVER_FLIGHTS_MAX;
    server->flight_count--;
    server->applied = true;
}

static void tell_slow(struct server *server, const struct batch *batch,
                      bool ended)
{
    uint64_t took_ns = hf_clock_now_ns(server->clock) - batch->begun_ns;

    if (took_ns >= SERVER_SLOW_NS)
        report_slow(&server->report, took_ns, ended);
}

/* Has the oldest batch ended? */
static bool has_ended(struct server *server)
{
    struct batch *batch = flight_at(server, 0);

    server->news = server->news && server->flight_count > 0;
    if (server->flight_count == 0)
        return false;
    if (batch->end == HF_PENDING && server->news) {
        batch->end = log_poll(server->log);
        server->news = batch->end != HF_PENDING;
        if (batch->end != HF_PENDING)
            tell_slow(server, batch, true);
    }
    return batch->end != HF_PENDING;
}

/* Applies the batches that have ended, in order. False: there was none. */
static bool apply_ended(struct server *server)
{
    bool any = false;

    while (has_ended(server)) {
        apply_batch(server, flight_at(server, 0));
        if (server->applying)
            return false;
        any = true;
    }
    return any;
}

/* ---- Commit. ---- */

/* Has the wait of a LOCK ended, or has its client gone, before it is journaled?
 */
static bool is_over(const struct entry *entry)
{
    if (entry->verdict)
        return false;
    if (entry->wait != NULL)
        return entry->wait->end != END_NONE;
    return hold_kind_waits(entry->kind) && entry->conn != NULL &&
           is_gone(entry->conn);
}

/* Such a LOCK is not journaled if it cannot be asked for again. If a TIMEOUT
 * was told for it, it is journaled as told. */
static void withdraw(struct server *server, struct batch *batch,
                     struct entry *entry)
{
    struct hold_command *c = &server->command;
    enum hf_status status = hold_decode(entry_record(batch, entry), c);

    assert(status == HF_OK);
    (void)status;
    if (entry->wait != NULL)
        entry->dropped = lock_wait_withdraw(server, entry->wait, &entry->told);
    else /* the end of a re-entry may be behind it: see give_back() */
        entry->dropped = c->request.len == 0 && entry->conn->pending == 1;
    if (entry->dropped && entry->conn != NULL)
        conn_close(entry->conn); /* what is behind it is left, too */
    if (entry->dropped || entry->told)
        hold_forget(server->engine, c);
    if (entry->told) {
        c->told = true;
        hold_record_tell(batch->records.data + entry->at);
        /* it needs less than was given back */
        entry->refused = hold_prepare(server->engine, c);
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
        if (is_over(entry))
            withdraw(server, batch, entry);
        if (entry->dropped || entry->refused != HF_OK)
            continue;
        struct hf_bytes record = entry_record(batch, entry);
        entry->refused = log_append(server->log, record);
        if (entry->refused != HF_OK) {
            struct hold_command *c = &server->command;
            if (hold_decode(record, c) == HF_OK)
                hold_forget(server->engine, c);
            takes = takes && entry->refused != HF_IO;
            continue;
        }
        batch->record_count++;
    }
    return takes;
}

static bool batch_is_full(const struct server *server,
                          const struct batch *batch)
{
    size_t bytes = batch->records.len + batch->count * RECORD_HEAD_BYTES;

    return bytes + batch->count * sizeof(struct entry) > BATCH_FULL_BYTES ||
           bytes > server->config.segment_bytes / 2;
}

/* Makes a batch of the verdicts that are owed. */
static void gather_verdicts(struct server *server)
{
    struct batch *batch = &server->verdicts;
    struct hold_command *c = &server->command;
    struct lock_wait *wait;

    while (!batch_is_full(server, batch) &&
           lock_wait_verdict(server, c, &wait)) {
        struct entry *entry = NULL;
        if (entry_reserve(batch, c) == HF_OK)
            entry = entry_add(batch, c->kind, 0);
        if (entry == NULL || hold_prepare(server->engine, c) != HF_OK) {
            batch->count -= entry != NULL;
            lock_wait_owe_again(server, wait);
            return; /* it is tried again in the next round */
        }
        entry_put(batch, entry, c);
        entry->wait = wait;
        entry->verdict = true;
    }
}

/* A batch that was gathered goes behind others on their way only while nobody
 * waits. Otherwise one of those may grant a lock to a client that is told
 * TIMEOUT meanwhile, and what comes behind would meet that lock: the verdict
 * must be first. The same holds for a lock whose client may be gone. */
static bool may_follow(struct server *server, const struct batch *batch)
{
    for (uint32_t i = 0; i < server->flight_count; i++) {
        if (flight_at(server, i)->may_orphan)
            return false;
    }
    return server->flight_count == 0 ||
           server->waits.counts[WAIT_LOCK] == batch->wait_count;
}

/* The batch to be committed next: verdicts first. NULL: none, or not now. */
static struct batch *next_batch(struct server *server)
{
    if (server->applying || server->flight_count == SERVER_FLIGHTS_MAX ||
        server->flight_count >= server->log->flights_max)
        return NULL;
    gather_verdicts(server);
    if (server->verdicts.count > 0)
        return &server->verdicts;
    struct batch *batch = &server->building;
    return batch->count > 0 && may_follow(server, batch) ? batch : NULL;
}

/* Commits the next batch. False: there is none, or the log takes none now. */
static bool commit_next(struct server *server)
{
    struct batch *batch = next_batch(server);

    if (batch == NULL)
        return false;
    struct batch *flight = flight_at(server, server->flight_count++);
    struct batch empty = *flight;
    *flight = *batch;
    *batch = empty;
    flight->record_count = 0;
    bool takes = hand_over(server, flight);
    flight->byte_count = log_batch_bytes(server->log);
    if (flight->record_count == 0) {
        /* questions only, or all of it was refused */
        flight->end = takes || server->failed ? HF_OK : HF_IO;
        return true;
    }
    server->metrics.commits++;
    flight->begun_ns = hf_clock_now_ns(server->clock);
    flight->end = log_commit(server->log);
    if (flight->end == HF_PENDING)
        tell_slow(server, flight, false);
    return true;
}

bool commit_round(struct server *server)
{
    if (apply_ended(server))
        return true;
    while (commit_next(server))
        ;
    return apply_ended(server);
}

void commit_tend(struct server *server)
{
    if (!server->failed && server->flight_count == 0 &&
        log_error(server->log)[0] != '\0')
        fail(server);
    if (server->lead_awaited && log_leads(server->log)) {
        server->lead_awaited = false;
        server->applied = true;
    }
}

bool commit_has_work(struct server *server)
{
    return server->applying || server->news || next_batch(server) != NULL;
}

void commit_poll(struct server *server)
{
    server->news = server->flight_count > 0;
    if (!server->news)
        (void)log_poll(server->log); /* asking clears the wake-up */
}

uint64_t commit_waiting_ns(const struct server *server)
{
    const struct batch *batch =
        &server->flights[server->flight_first % SERVER_FLIGHTS_MAX];

    if (server->flight_count == 0 || batch->end != HF_PENDING)
        return 0;
    return hf_clock_now_ns(server->clock) - batch->begun_ns;
}

bool commit_is_full(const struct server *server)
{
    return !server->failed && /* else what comes is refused, not gathered */
           batch_is_full(server, &server->building);
}

bool commit_is_idle(const struct server *server)
{
    return server->flight_count == 0 && server->building.count == 0 &&
           server->verdicts.count == 0 && server->lock_waits.owed == NULL;
}

void commit_due(struct server *server)
{
    answer_now(server);
    uint64_t now_us = server->epoch_us + server->answer_ns / 1000;

    waits_due(server, server->answer_ns);
    if (server->flight_count == 0 && !server->failed &&
        hold_next_due_us(server->engine) <= now_us &&
        !server->building.has_tick) {
        int count = hold_is_behind(server->engine) ? TICKS_MAX : 1;
        size_t before = server->building.count;
        for (int i = 0; i < count; i++)
            submit_tick(server);
        server->building.has_tick = server->building.count > before;
    }
}

/* The timer is moved only when something is due earlier than it would ring:
 * one that rings in vain is set again, which is cheaper than moving it with
 * every lock that is taken and given back. */
void commit_arm(struct server *server)
{
    uint64_t wait_ns = waits_next_ns(&server->waits);
    uint64_t wait_us = UINT64_MAX;
    uint64_t due_us = UINT64_MAX;

    if (wait_ns != UINT64_MAX)
        wait_us = server->epoch_us + (wait_ns + 999) / 1000;
    if (server->flight_count == 0 && !server->failed)
        due_us = hold_next_due_us(server->engine);
    if (wait_us < due_us)
        due_us = wait_us;
    if (due_us >= server->due_armed_us)
        return;
    uint64_t now_us = server_now_us(server);
    uint64_t delay_ms = due_us > now_us ? (due_us - now_us) / 1000 + 1 : 0;
    /* Not 0, but for one who waits: a timer that rings at once would keep the
     * loop from all else. */
    if (delay_ms == 0 && wait_us > now_us)
        delay_ms = 1;
    server->due_armed_us = due_us;
    uv_timer_start(&server->due_timer, server_due, delay_ms, 0);
}
