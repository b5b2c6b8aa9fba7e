/* commit.c - from what was gathered to the log; batches on their way.
 *
 * What a turn gathers is a batch: requests in the order of their arrival,
 * with their records in the server's own buffer. A commit hands the records
 * to the log and makes the batch a flying one; when it is durable its records
 * are applied and its requests answered in the same order (apply.c). Verdicts
 * (lock_wait.h) are a batch of their own, before the gathered one.
 *
 *   gathered --.
 *               >-- commit --> flying, flying, ... --> applied, answered
 *   verdicts --'               as many as the log      in the same order
 *                              takes
 */
#include <assert.h>

#include "server/answer.h"
#include "server/conn.h"
#include "server/lock_wait.h"
#include "server/server.h"

/* Beyond this much in one batch, or half a segment, which a batch must fit
 * into, or names below a TREE to be looked at, connections are not read
 * further. */
#define BATCH_FULL_BYTES  (2u << 20)
#define BATCH_FULL_WEIGHT 50000u

/* What the journal adds to a record. */
#define RECORD_HEAD_BYTES 4u

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
    struct batch *batch = server_flight(server, 0);

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

/* Applies the batches that have ended, in order, or a part of the first. False:
 * there was none, or no more can be applied in this turn. */
static bool apply_ended(struct server *server)
{
    bool any = false;

    while (has_ended(server)) {
        if (!apply_batch(server, server_flight(server, 0)))
            return false;
        any = true;
        if (server->applying)
            break; /* what was answered goes out first */
    }
    return any;
}

/* Has the wait of a LOCK ended, or has its client gone, before it is journaled?
 */
static bool is_over(const struct entry *entry)
{
    if (entry->verdict)
        return false;
    if (entry->wait != NULL)
        return entry->wait->end != END_NONE;
    return hold_kind_locks(entry->kind) && entry->conn != NULL &&
           conn_is_gone(entry->conn);
}

/* Such a LOCK is not journaled if it cannot be asked for again. If a TIMEOUT
 * was told for it, it is journaled as told. */
static void withdraw(struct server *server, struct batch *batch,
                     struct entry *entry)
{
    struct hold_command *c = &server->command;
    enum hf_status status = hold_decode(entry_record(batch, entry), c);

    if (entry->wait != NULL)
        entry->dropped = lock_wait_withdraw(server, entry->wait, &entry->told);
    else if (c->request.len == 0) { /* see give_back() */
        uint64_t token = hold_reenters(server->engine, c);
        entry->dropped = token == 0 || !apply_finds_unlock(server, batch, entry,
                                                           c->name, token);
        status = hold_decode(entry_record(batch, entry), c);
    }
    assert(status == HF_OK);
    (void)status;
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
           bytes > server->config.segment_bytes / 2 ||
           (batch->weight > BATCH_FULL_WEIGHT && batch->count > 0);
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
        entry->told = c->told;
    }
}

/* A batch that was gathered goes behind others on their way only while nobody
 * waits. Otherwise one of those may grant a lock to a client that is told
 * TIMEOUT meanwhile, and what comes behind would meet that lock: the verdict
 * must be first. The same holds for a lock whose client may be gone. */
static bool may_follow(struct server *server, const struct batch *batch)
{
    for (uint32_t i = 0; i < server->flight_count; i++) {
        if (server_flight(server, i)->may_orphan)
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
    submit_left(server);
    struct batch *batch = &server->building;
    return batch->count > 0 && may_follow(server, batch) ? batch : NULL;
}

/* Clients that were just answered send again while a batch is gathered, and
 * whoever comes too late for it waits for another flush. So the loop looks at
 * the sockets once more before it commits, as long as each look brings more,
 * the batch is smaller than the last one, and less than half a flush, of a disk
 * that is not slow, has passed since its first request came. */
bool commit_looks_again(struct server *server)
{
    const struct batch *batch = &server->building;
    size_t seen = server->looked;
    uint64_t flush_ns = log_sync_ns(server->log);

    if (flush_ns > SERVER_SLOW_NS)
        flush_ns = SERVER_SLOW_NS;
    server->looked = batch->count;
    return batch->count > seen && batch->count < server->last_count &&
           next_batch(server) == batch &&
           server->heard_ns - batch->entries[0].came_ns < flush_ns / 2;
}

/* Commits the next batch. False: there is none, or the log takes none now. */
static bool commit_next(struct server *server)
{
    struct batch *batch = next_batch(server);

    if (batch == NULL)
        return false;
    struct batch *flight = server_flight(server, server->flight_count++);
    struct batch empty = *flight;
    *flight = *batch;
    *batch = empty;
    flight->record_count = 0;
    if (batch == &server->building) {
        server->last_count = flight->count;
        server->looked = 0;
    }
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
    audits_begin(server);
    bool full = commit_is_full(server);
    while (commit_next(server))
        ;
    /* There is room again: whoever found none comes before those who come. */
    bool room = full && !commit_is_full(server) && server->parked != NULL;
    server->applied = server->applied || room;
    return apply_ended(server) || room;
}

void commit_tend(struct server *server)
{
    if (!server->failed && server->flight_count == 0 &&
        log_error(server->log)[0] != '\0')
        apply_failure(server);
    if (server->lead_awaited && log_leads(server->log)) {
        server->lead_awaited = false;
        server->applied = true;
    }
}

bool commit_has_work(struct server *server)
{
    bool ended = server->applying || server->news;

    return (ended && !events_are_behind(server)) || next_batch(server) != NULL;
}

void commit_poll(struct server *server)
{
    server->news = server->flight_count > 0;
    if (!server->news)
        (void)log_poll(server->log); /* asking clears the wake-up */
}

uint64_t commit_waiting_ns(const struct server *server)
{
    const struct batch *batch = server_flight(server, 0);

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
           server->verdicts.count == 0 && server->lock_waits.owed == NULL &&
           (server->binds.owed == 0 || server->failed);
}

void commit_due(struct server *server)
{
    answer_now(server);
    uint64_t now_us = server->epoch_us + server->answer_ns / 1000;

    waits_due(server, server->answer_ns);
    if (server->flight_count == 0 && !server->failed &&
        hold_next_due_us(server->engine) <= now_us &&
        !server->building.has_tick) {
        int count = hold_is_behind(server->engine) ? COMMIT_TICKS_MAX : 1;
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
