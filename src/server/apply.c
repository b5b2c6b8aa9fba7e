/* apply.c - a durable batch: records to the engine, answers to clients. */
#include <assert.h>

#include "base/memory.h"
#include "server/admin.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/group.h"
#include "server/lock_wait.h"
#include "server/server.h"

/* Calls of the engine in one turn that only swept what was due, 256 things
 * each: a turn stays short, however much is due at once. */
#define TURN_SWEEPS_MAX 16

/* Steps of the engine in one turn, for all records that are applied; the last
 * one is finished. */
#define TURN_APPLIED_MAX 100000u

/* Answers for one look at the clock. */
#define ANSWERS_A_CLOCK 16u

/* Requests of a batch that are applied before their answers go out: those
 * clients send again while the others are answered. */
#define PART_REQUESTS 128u

/* A search for what a client has sent: requests that are left, and steps. */
struct search {
    const struct conn *conn;
    bool is_set; /* by UNLOCKSET, which has no name */
    bool keeps;  /* for a LOCK that is not journaled yet */
    uint64_t left;
    uint32_t steps;
};
#define SEARCH_STEPS 1000u

/* Does this kind give back what is searched for? */
static bool is_unlock(const struct search *search, enum hold_kind kind)
{
    const struct hold_operation *operation = &hold_operations[kind];

    return operation->gives_lock && operation->of_set == search->is_set;
}

/* An UNLOCK of this hold that will be carried out, from `from` on in the batch.
 * Each is found once, for a LOCK before it is journaled and for the same when
 * it is applied. */
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
        bool *found = search->keeps ? &entry->keeps : &entry->gives_back;
        search->left--;
        if (!is_unlock(search, entry->kind) || *found ||
            entry->refused != HF_OK ||
            hold_decode(entry_record(batch, entry), c) != HF_OK ||
            c->token != token || !hf_bytes_equal(c->name, name) ||
            (c->request.len > 0 && hold_answer_now(server->engine, c) != NULL))
            continue; /* the last: it was carried out before */
        *found = true;
        return true;
    }
    return false;
}

bool apply_finds_unlock(struct server *server, struct batch *batch,
                        const struct entry *lock, struct hf_bytes name,
                        uint64_t token)
{
    struct search search = {lock->conn, lock->kind == HOLD_LOCKSET, true,
                            lock->conn->pending - 1, 0};
    size_t from = (size_t)(lock - batch->entries) + 1;

    return find_unlock(server, &search, batch, from, name, token);
}

/* Has the client itself sent for the re-entry to be given back, behind the LOCK
 * that is being applied? */
static bool gives_back_itself(struct server *server, const struct conn *conn,
                              bool is_set, struct hf_bytes name, uint64_t token)
{
    struct search search = {conn, is_set, false, conn->pending - 1, 0};
    size_t from = server->apply_next + 1;

    for (uint32_t i = 0; i < server->flight_count && search.left > 0; i++) {
        if (find_unlock(server, &search, server_flight(server, i), from, name,
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
    struct hf_bytes first = c->item_count > 0 ? c->items[0].sku : name;
    if (!again ||
        !gives_back_itself(server, conn, c->kind == HOLD_LOCKSET, name, token))
        lock_wait_orphan(server, first, token);
    conn_close(conn); /* what it sent and was not begun is left */
}

/* What the record says of sessions that are bound to connections. */
static void note_sessions(struct server *server, struct entry *entry,
                          struct hf_bytes record, const struct hold_out *out)
{
    struct hold_command *c = &server->command;

    if (entry->kind == HOLD_FLUSH)
        bind_clear(server);
    if ((entry->kind == HOLD_SESSION_LEFT ||
         entry->kind == HOLD_SESSION_CLOSE) &&
        hold_decode(record, c) == HF_OK) {
        if (entry->kind == HOLD_SESSION_LEFT)
            bind_left(server, c, true);
        else if (out->code == HOLD_OK)
            bind_close(server, c->token);
    }
    if (entry->binds && out->code == HOLD_OK) {
        bind_unpromise(server);
        entry->binds = false;
        bind_session(server, entry->conn, out->body);
    }
}

static void answer_write(struct server *server, struct entry *entry,
                         struct hf_bytes record, const struct hold_out *out)
{
    if (entry->kind == HOLD_FLUSH)
        shares_clear(&server->shares);
    if (entry->kind == HOLD_BOUNDS)
        admin_bounds_changed(server, entry->conn);
    note_sessions(server, entry, record, out);
    if (entry->conn == NULL)
        return; /* the server's own */
    metrics_answered(&server->metrics, entry->kind, out->code);
    if (entry->kind == HOLD_GROUP &&
        hold_decode(record, &server->command) == HF_OK)
        group_answered(server, server->command.group, out);
    bool granted = hold_kind_locks(entry->kind) && out->code == HOLD_OK;
    answer_applied(server, entry->conn, out->code, out->body);
    uint64_t took_ns = answer_note(server, entry->kind, entry->came_ns);
    entry->succeeded = out->code == HOLD_OK && out->stored;
    if (entry->kind == HOLD_GROUP && out->code == HOLD_OK)
        entry->spent = !entry->shared || out->stored; /* else told again */
    if (granted && conn_is_gone(entry->conn))
        give_back(server, entry->conn, record, out->body);
    else if (granted) {
        push_grant(server, entry->conn, out->body);
        answer_note_grant(server, took_ns);
    }
}

/* False: so much was due that the rest of it is left to the next turn, events
 * have to be written first, or there is no memory to give a grant back that
 * reaches nobody. */
static bool apply_write(struct server *server, struct entry *entry,
                        struct hf_bytes record)
{
    const struct hold_out *out;

    if (hold_kind_locks(entry->kind) && entry->wait == NULL &&
        !lock_wait_spare(server))
        return false;

    do {
        if (server->turn_sweeps >= TURN_SWEEPS_MAX ||
            server->turn_applied >= TURN_APPLIED_MAX ||
            events_are_behind(server))
            return false;
        server->turn_sweeps++;
        out = hold_apply(server->engine, record);
        assert(out != NULL); /* we encoded it */
        server->turn_applied += out->work;
        metrics_events(&server->metrics, out);
        /* Before its events: what it took and gave back is forgotten again. */
        if (entry->kind == HOLD_GROUP && out->code == HOLD_OK &&
            hold_decode(record, &server->command) == HF_OK)
            group_granted(server, entry->conn, server->command.group,
                          out->body);
        events_tell(server, out);
        if (server->turn_applied > server->turn_applied_max)
            server->turn_applied_max = server->turn_applied;
        /* The answers refer to the engine's memory: all of them before
         * anything is asked of the engine again. */
        for (size_t i = 0; i < out->answer_count; i++)
            lock_wait_answered(server, &out->answers[i]);
        if (out->code == HOLD_AGAIN)
            answer_now(server);
    } while (out->code == HOLD_AGAIN);
    if (entry->wait == NULL)
        answer_write(server, entry, record, out);
    else if (entry->told)
        lock_wait_told(server, entry->wait, record);
    else if (entry->verdict)
        lock_wait_judged(server, entry->wait);
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
    if (out == NULL && entry->denied != NULL && !server->failed) {
        answer_error(server, entry->conn, ERROR_GROUP_DENIED, entry->denied);
    } else if (out == NULL && is_write && !server->failed) {
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
static void refuse_write(struct server *server, const struct batch *batch,
                         const struct entry *entry, enum hf_status why)
{
    if (entry->kind == HOLD_SESSION_LEFT && why != HF_IO) {
        struct hold_command *c = &server->command;
        if (hold_decode(entry_record(batch, entry), c) == HF_OK)
            bind_left(server, c, false);
    } else if ((entry->verdict || entry->told) && why != HF_IO) {
        lock_wait_owe_again(server, entry->wait); /* what was told stands */
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
        if (entry->denied != NULL)
            answer_error(server, entry->conn, ERROR_GROUP_DENIED,
                         entry->denied);
        else
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
        refuse_write(server, batch, entry, entry->refused);
    } else if (entry->ask) {
        apply_ask(server, batch, entry);
    } else if (batch->end != HF_OK) {
        refuse_write(server, batch, entry, HF_IO);
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

void apply_failure(struct server *server)
{
    server->failed = true;
    server->applied = true;
    report_journal(&server->report, server->log);
    waits_end(server, WAIT_FAIL);
}

bool apply_batch(struct server *server, struct batch *batch)
{
    size_t enough = server->apply_next + PART_REQUESTS;
    const struct conn *conn = NULL;

    answer_now(server);
    server->flooded = false;
    server->counted_ns = 0;
    if (batch->end != HF_OK && !server->failed)
        apply_failure(server);
    for (; server->apply_next < batch->count; server->apply_next++) {
        struct entry *entry = &batch->entries[server->apply_next];
        server->applying = true;
        if (server->apply_next >= enough && entry->conn != conn)
            return true;
        conn = entry->conn;
        if (server->apply_next % ANSWERS_A_CLOCK == 0)
            answer_now(server);
        group_say(entry->conn, entry->owed, entry->owed_first);
        entry->owed = 0;
        if (!apply_entry(server, batch, entry))
            return false;
        if (entry->binds)
            bind_unpromise(server);
        if (entry->holds != NULL)
            group_settle(server, entry->holds, entry->spent);
        entry->holds = NULL;
        entry_free(entry);
        if (entry->shared)
            share_settle(server, conn_host(entry->conn), entry->succeeded);
        if (entry->conn != NULL)
            conn_unpend(entry->conn);
        entry->conn = NULL;
    }
    if (batch->end == HF_OK && batch->record_count > 0)
        metrics_batch(&server->metrics, batch->record_count, batch->byte_count,
                      log_sync_ns(server->log));
    server->applying = false;
    batch->count = 0;
    batch->records.len = 0;
    batch->has_tick = false;
    batch->wait_count = 0;
    batch->weight = 0;
    batch->may_orphan = false;
    batch->reenters = false;
    server->apply_next = 0;
    server->apply_at = 0;
    server->flight_first = (server->flight_first + 1) % SERVER_FLIGHTS_MAX;
    server->flight_count--;
    server->applied = true;
    return true;
}
