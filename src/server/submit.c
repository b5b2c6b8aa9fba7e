/* submit.c - from a command of a client to its place in a batch.
 *
 * Nothing is told that a record on its way could contradict. A write that is
 * not applied yet is not acknowledged, so that reading what was before it is
 * right; but time passes meanwhile. So an answer that depends on something
 * that is due and not applied waits behind a record that lets time pass.
 */
#include <assert.h>

#include "base/memory.h"
#include "server/answer.h"
#include "server/conn.h"
#include "server/errors.h"
#include "server/group.h"
#include "server/server.h"

/* What is admitted while more is due than was swept is applied by then, as a
 * rule: what it depends on does not fall due meanwhile. */
#define APPLIED_US 1000000u

/* Steps of listings in one turn; the last one may pass it. */
#define TURN_STEPS_MAX 50000u

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
            answer_note_now(server, server->metrics.by_kind[command->kind]);
    } else if (entry != NULL) {
        entry->conn = conn;
        entry->kind = command->kind; /* it was its TICK's, perhaps */
        entry->came_ns = server->answer_ns;
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
    enum hf_status status = entry_reserve(batch, command);
    struct entry *entry = entry_add(batch, command->kind, came_ns);

    *out = entry;
    if (server->failed)
        return HF_IO;
    if (entry == NULL || status != HF_OK)
        return HF_NOMEM;
    if (!bind_promise(server, command, &entry->binds))
        return HF_NOMEM;
    status = hold_prepare(server->engine, command);
    if (status != HF_OK) {
        if (entry->binds)
            bind_unpromise(server);
        entry->binds = false;
        return status;
    }
    entry_put(batch, entry, command);
    return HF_OK;
}

/* The entry; NULL: refused. */
static struct entry *queue_write(struct server *server, struct conn *conn,
                                 const struct hold_command *command,
                                 uint64_t came_ns)
{
    struct entry *entry;
    enum hf_status status = take_write(server, command, came_ns, &entry);

    if (status != HF_OK) {
        queue_refused(server, conn, entry, command, status);
        return NULL;
    }
    entry->conn = conn;
    if (conn == NULL)
        return entry;
    conn->pending++;
    if (hold_kind_locks(command->kind) && command->request.len == 0)
        server->building.may_orphan = true;
    entry->shared = command->request.len > 0;
    if (entry->shared)
        share_take(server, conn_host(conn));
    return entry;
}

/* The question is answered in its place, as of a time at which everything
 * that is due has been applied. */
static void queue_ask(struct server *server, struct conn *conn,
                      struct hold_command *command, uint64_t came_ns)
{
    struct batch *batch = &server->building;
    struct hold_command pass = {
        .kind = HOLD_TICK, .now_us = command->now_us, .amount = 1};

    struct entry *entry;
    enum hf_status status = HF_OK;

    if (!server->failed)
        status = take_write(server, &pass, 0, &entry);
    if (status != HF_OK) {
        queue_refused(server, conn, entry, command, status);
        return;
    }
    status = entry_reserve(batch, command);
    entry = entry_add(batch, command->kind, came_ns);
    if (entry == NULL || status != HF_OK) {
        queue_refused(server, conn, entry, command, HF_NOMEM);
        return;
    }
    entry_put(batch, entry, command);
    entry->conn = conn;
    entry->ask = true;
    conn->pending++;
}

/* Notes in the entry why one of its limits is denied. */
static enum hf_status note_denied(struct entry *entry, const char *error)
{
    size_t bytes = strlen(error) + 1;

    entry->denied = hf_alloc(bytes);
    if (entry->denied == NULL)
        return HF_NOMEM;
    memcpy(entry->denied, error, bytes);
    return HF_FAILED;
}

/* One of its limits is denied, or there is no memory for its holds. */
static void queue_denied(struct server *server, struct conn *conn,
                         const struct hold_command *command,
                         enum hf_status status, const char *error)
{
    if (status == HF_FAILED && conn->pending == 0) {
        answer_error(server, conn, ERROR_GROUP_DENIED, error);
        answer_note_now(server, server->metrics.by_kind[command->kind]);
        return;
    }
    struct entry *entry =
        entry_add(&server->building, command->kind, server->answer_ns);
    if (entry != NULL && status == HF_FAILED)
        status = note_denied(entry, error);
    queue_refused(server, conn, entry, command, status);
}

/* The same request may be on its way, and have the permits that this one did
 * not get. Then the refusal waits for it, as in refuse_share(). */
static void queue_doubt(struct server *server, struct conn *conn,
                        struct hold_command *command, uint64_t came_ns,
                        const char *error)
{
    size_t before = server->building.count;

    group_fill(server, conn, command); /* without what was held so far */
    queue_ask(server, conn, command, came_ns);
    if (server->building.count == before)
        return;
    struct entry *entry = &server->building.entries[server->building.count - 1];
    if (entry->ask && note_denied(entry, error) == HF_NOMEM)
        entry->refused = HF_NOMEM;
}

/* The permits of its limits are taken first. */
static void queue_group(struct server *server, struct conn *conn,
                        struct hold_command *command, uint64_t came_ns)
{
    struct group_holds *holds;
    char error[GROUP_ERROR_MAX];
    size_t before = server->building.count;
    struct entry *entry = NULL;
    enum hf_status status = group_hold(server, conn, command, &holds, error);

    if (status == HF_OK) {
        entry = queue_write(server, conn, command, came_ns);
        if (entry != NULL)
            entry->holds = holds;
        else
            group_settle(server, holds, false);
    } else if (status == HF_FAILED && command->request.len > 0 &&
               !commit_is_idle(server)) {
        queue_doubt(server, conn, command, came_ns, error);
    } else {
        queue_denied(server, conn, command, status, error);
    }
    if (server->building.count > before) { /* also one that was refused */
        entry = &server->building.entries[server->building.count - 1];
        entry->owed = group_take_owed(conn, &entry->owed_first);
    }
}

/* A request that may wait in the engine. Its connection runs nothing else
 * meanwhile: the wait leads to it, and the entry to the wait. */
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
    struct hf_bytes record = entry_record(batch, entry);
    bool joined = command->request.len > 0 &&
                  lock_wait_join(server, conn, command, record);
    if (!joined)
        entry->wait = lock_wait_new(server, conn, command, record, came_ns);
    if (entry->wait != NULL) {
        batch->wait_count++;
        batch->reenters =
            batch->reenters || (hold_kind_locks(command->kind) &&
                                hold_reenters(server->engine, command) != 0);
        entry->wait->known = !log_leads(server->log) &&
                             hold_answer_now(server->engine, command) != NULL;
        return;
    }
    batch->count--;
    batch->records.len = entry->at;
    hold_forget(server->engine, command);
    if (!joined)
        queue_refused(server, conn, NULL, command, HF_NOMEM);
}

void submit_tick(struct server *server)
{
    struct hold_command pass = {.kind = HOLD_TICK,
                                .now_us = server_now_us(server)};

    (void)queue_write(server, NULL, &pass, 0);
}

void submit_left(struct server *server)
{
    struct hold_command left;

    while (!commit_is_full(server) && bind_owed(server, &left)) {
        size_t before = server->building.count;
        (void)queue_write(server, NULL, &left, 0);
        if (server->building.count == before)
            return; /* it is tried again in the next round */
        bind_sent(server);
    }
}

/* May the engine come to show a hold that somebody was told not to have, before
 * the batch being built has been applied? */
static bool may_show_orphans(const struct server *server)
{
    bool may = server->orphans > 0 || server->building.may_orphan ||
               server->waits.counts[WAIT_LOCK] > 0;

    for (uint32_t i = 0; i < server->flight_count && !may; i++)
        may = server_flight(server, i)->may_orphan;
    return may;
}

void submit_ask_again(struct server *server, struct conn *conn,
                      struct hold_command *command, uint64_t came_ns)
{
    assert(conn->pending == 1); /* it was the last: see submit_command() */
    command->now_us = server_now_us(server);
    queue_ask(server, conn, command, came_ns);
}

static void answer_at_once(struct server *server, struct conn *conn,
                           const struct hold_out *out,
                           const struct hold_command *command)
{
    answer_give(server, conn, out->code, out->body);
    /* told again, by its REQ */
    if (out->code == HOLD_OK && hold_kind_locks(command->kind))
        push_grant(server, conn, out->body);
    if (out->code == HOLD_OK && command->kind == HOLD_GROUP)
        group_granted(server, conn, command->group, out->body);
    answer_note_now(server, server->metrics.by_kind[command->kind]);
}

/* The answer that can be given without the journal, or NULL. */
static const struct hold_out *answer_of(struct server *server,
                                        const struct hold_command *command)
{
    bool is_write = hold_kind_is_write(command->kind);

    if (!log_leads(server->log))
        return NULL; /* another server may know better */
    /* The engine shows a hold that somebody was told not to have; only what
     * it told before is certain. */
    if (server->orphans > 0 && (!is_write || command->request.len == 0))
        return NULL;
    if (is_write)
        return hold_answer_now(server->engine, command);
    return hold_ask(server->engine, command);
}

/* A REQ whose TIMEOUT was told is answered so, whatever the engine knows. */
static bool was_told(struct server *server, const struct hold_command *command)
{
    return command->request.len > 0 &&
           lock_wait_was_told(&server->lock_waits, command->request);
}

static bool may_wait(const struct hold_command *command)
{
    return hold_kind_waits(command->kind) && hold_may_wait(command);
}

/* A listing is not queued in a batch, where many of them would be run in one
 * turn: it is run when it can be answered. */
static bool can_list(const struct server *server, const struct conn *conn)
{
    return conn->pending == 0 && server->orphans == 0 &&
           !submit_is_spent(server) && /* all clients share a budget */
           (server->failed ||
            (log_leads(server->log) &&
             hold_due_us(server->engine) > server_now_us(server)));
}

bool submit_is_spent(const struct server *server)
{
    return server->turn_steps >= TURN_STEPS_MAX;
}

/* True if it would be remembered, and its client has filled its share. */
static bool is_too_much(const struct server *server, const struct conn *conn,
                        const struct hold_command *command)
{
    return command->request.len > 0 &&
           !lock_wait_knows(&server->lock_waits, command->request) &&
           share_is_spent(server, conn_host(conn));
}

/* Can it be answered in this turn, without the journal? */
static bool can_answer(struct server *server, const struct conn *conn,
                       struct hold_command *command)
{
    command->now_us = server_now_us(server);
    return conn->pending == 0 && answer_of(server, command) != NULL;
}

/* Is more due than the ticks of one batch handle, though the engine does not
 * know so yet, since no record told it what time it is? It stays so until a
 * batch is applied. To count thousands takes longer than a request: it is done
 * once for all requests that are read together, which have the same time. */
static bool is_flooded(struct server *server)
{
    if (!server->flooded && server->counted_ns != server->heard_ns) {
        server->counted_ns = server->heard_ns;
        server->flooded = hold_is_due(
            server->engine, server->epoch_us + server->heard_ns / 1000,
            COMMIT_TICKS_MAX * HOLD_STEP_MAX);
    }
    return server->flooded;
}

/* Is more due than one record handles? A log that does not lead takes no record
 * that lets time pass. */
static bool is_behind(struct server *server, const struct hold_command *command)
{
    bool depends = !hold_kind_is_write(command->kind) ||
                   hold_kind_is_exact(command->kind) ||
                   hold_kind_ends(command->kind); /* one that waits, or late */

    return hold_is_behind(server->engine) ||
           (depends && log_leads(server->log) && is_flooded(server));
}

/* While more is due than one record handles, ticks go first: what depends on
 * all of it would have to handle it in one step, and who asks for it, too. Not
 * for what may wait: it is told TIMEOUT in time, also while no tick can be
 * written. */
static bool admit_behind(struct server *server, const struct conn *conn,
                         struct hold_command *command)
{
    if (hold_kind_is_write(command->kind)) {
        command->now_us = server_now_us(server);
        /* a CONFIRM that comes in time is not made to be late */
        if (!hold_kind_ends(command->kind))
            command->now_us += APPLIED_US;
        if (hold_is_exact(server->engine, command))
            return false;
        if (!commit_is_full(server))
            return true;
    }
    return can_answer(server, conn, command);
}

bool submit_admits(struct server *server, const struct conn *conn,
                   struct hold_command *command)
{
    bool is_write = hold_kind_is_write(command->kind);

    if (command->session == HOLD_SESSION_OWN) {
        if (conn->pending > 0)
            return false; /* one that is on its way may bind another */
        uint64_t own = bind_own(server, conn);
        command->session = own != 0 ? own : HOLD_SESSION_OWN;
    }
    /* a wait is alone on its connection */
    if (conn->pending > 0 &&
        (may_wait(command) || is_too_much(server, conn, command)))
        return false;
    /* A re-entry that is told TIMEOUT is taken back after its batch: what would
     * count it in the same batch comes after it. */
    if (server->building.reenters && is_write && !may_wait(command) &&
        (hold_kind_locks(command->kind) || command->kind == HOLD_GROUP ||
         hold_operations[command->kind].words[0] == WORD_NAME ||
         hold_operations[command->kind].words[0] == WORD_TOKEN))
        return false;
    if (hold_operations[command->kind].class == CLASS_LISTING) {
        server->lead_awaited = server->lead_awaited || !log_leads(server->log);
        return can_list(server, conn);
    }
    if (is_behind(server, command) && !server->failed && !may_wait(command))
        return admit_behind(server, conn, command);
    return !commit_is_full(server) || can_answer(server, conn, command);
}

void submit_refuse_share(struct server *server, struct conn *conn)
{
    server->metrics.shares_refused++;
    report_requests_full(&server->report, conn);
    answer_error(server, conn, ERROR_SHARE);
}

/* While a batch is on its way the same request may be in it. Then the refusal
 * waits for the batch, and becomes the first answer if there is one by then. A
 * LOCK that waits is known before that: see is_too_much(). */
static void refuse_share(struct server *server, struct conn *conn,
                         struct hold_command *command, uint64_t came_ns)
{
    if (!commit_is_idle(server) && !may_wait(command)) {
        queue_ask(server, conn, command, came_ns);
        return;
    }
    submit_refuse_share(server, conn);
    answer_note_now(server, server->metrics.by_kind[command->kind]);
}

void submit_command(struct server *server, struct conn *conn,
                    struct hold_command *command)
{
    uint64_t came_ns = server->heard_ns;

    command->now_us = server->epoch_us + came_ns / 1000;
    if (command->session == HOLD_SESSION_OWN) {
        answer_error(server, conn, ERROR_NO_SESSION); /* see submit_admits() */
        return;
    }
    if (conn->pending == 0 && !was_told(server, command)) {
        const struct hold_out *out = answer_of(server, command);
        conn_spend(conn, hold_work(server->engine));
        if (out != NULL) {
            if (hold_kind_is_write(command->kind))
                server->metrics.refusals++;
            metrics_answered(&server->metrics, command->kind, out->code);
            if (command->kind == HOLD_GROUP)
                group_answered(server, command->group, out);
            answer_at_once(server, conn, out, command);
            return;
        }
    }
    server->building.weight += hold_weight(server->engine, command);
    if (!hold_kind_is_write(command->kind)) {
        queue_ask(server, conn, command, came_ns);
        /* it may have to wait for a verdict: nothing overtakes it */
        conn->barrier = conn->barrier || may_show_orphans(server);
    } else if (conn->pending == 0 && is_too_much(server, conn, command)) {
        refuse_share(server, conn, command, came_ns);
    } else if (may_wait(command)) {
        queue_wait(server, conn, command, came_ns);
    } else if (command->kind == HOLD_GROUP) {
        queue_group(server, conn, command, came_ns);
    } else {
        (void)queue_write(server, conn, command, came_ns);
    }
}
