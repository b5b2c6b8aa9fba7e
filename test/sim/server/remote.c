/* remote.c - keeps the batches in memory, in the order of their commits. */
#include "sim/server/remote.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/reply.h"
#include "server/server.h"
#include "sim/server/client.h"
#include "sim/server/disk_state.h"
#include "sim/server/loop.h"
#include "sim/server/mix.h"
#include "sim/server/record.h"
#include "support/failing.h"

/* Numbers of the clients of the other server. */
#define OTHERS 900000u

enum flight_state { FLIGHT_ON, FLIGHT_DONE, FLIGHT_LOST };

struct batch_bytes {
    char *data; /* records, each behind its length */
    size_t len;
    size_t cap;
    uint32_t count;
};

struct flight {
    struct batch_bytes batch;
    enum flight_state state;
    uint64_t begun_ns;
    uint64_t end_ns;
    uint64_t number;
};

static struct {
    struct log log;
    const struct mix *mix;
    const struct server *server;
    const struct journal_machine *machine;
    struct dice dice;
    uint64_t run; /* of the server; what it left behind is ignored */
    struct batch_bytes *kept; /* the log itself */
    size_t kept_count;
    size_t kept_cap;
    struct batch_bytes building;
    size_t batch_max;
    size_t prepared;
    struct flight flights[REMOTE_FLIGHTS_MAX];
    size_t flight_count;
    struct batch_bytes told; /* whose end was told last */
    uint64_t number;         /* of the last flight */
    uint64_t done_ns;
    bool lapsed;
    uint64_t lapsed_ns;
    bool taken; /* another server leads */
    bool lost;  /* and this one knows */
    bool clean; /* the last end */
    uint64_t others;
    uint64_t note;
    struct log_stats stats;
} remote;

static const char lost_text[] = "another server leads the log";

/* ---- Bytes. ---- */

static void put(struct batch_bytes *batch, const void *data, size_t len)
{
    if (batch->len + len > batch->cap) {
        batch->cap = 2 * (batch->len + len) + 4096;
        batch->data = realloc(batch->data, batch->cap);
        assert(batch->data != NULL);
    }
    if (data != NULL)
        memcpy(batch->data + batch->len, data, len);
    batch->len += len;
}

static enum hf_status next_record(const struct batch_bytes *batch, size_t *at,
                                  struct hf_bytes *record)
{
    uint32_t len;

    if (*at >= batch->len)
        return HF_EMPTY;
    memcpy(&len, batch->data + *at, sizeof len);
    *record = hf_bytes(batch->data + *at + sizeof len, len);
    *at += sizeof len + len;
    return HF_OK;
}

static void keep(const struct batch_bytes *batch)
{
    if (remote.kept_count == remote.kept_cap) {
        remote.kept_cap = remote.kept_cap ? 2 * remote.kept_cap : 256;
        remote.kept =
            realloc(remote.kept, remote.kept_cap * sizeof *remote.kept);
        assert(remote.kept != NULL);
    }
    struct batch_bytes *kept = &remote.kept[remote.kept_count++];
    *kept = (struct batch_bytes){.count = batch->count};
    put(kept, batch->data, batch->len);
}

static void clear(struct batch_bytes *batch)
{
    free(batch->data);
    *batch = (struct batch_bytes){.len = 0};
}

static enum hf_status replay(const struct journal_machine *machine, void *state)
{
    struct hf_bytes record;
    enum hf_status status = HF_OK;

    for (size_t i = 0; i < remote.kept_count && status == HF_OK; i++) {
        size_t at = 0;
        while (status == HF_OK &&
               next_record(&remote.kept[i], &at, &record) == HF_OK)
            status = machine->apply(state, record);
    }
    return status;
}

/* ---- The other server. ---- */

/* Carries a command out as the other leader, and tells a client of its own. */
static void do_other(struct hold_engine *engine, struct hold_command *command,
                     const struct hf_bytes *words, size_t count)
{
    struct batch_bytes batch = {.count = 1};
    char record[HOLD_RECORD_MAX];
    struct hf_buf told = {.len = 0};
    struct reply reply = {.out = &told, .codec = &resp2_codec};
    uint64_t wire = OTHERS + remote.others;
    const struct hold_out *out;

    command->now_us = server_now_us(remote.server);
    uint32_t len = (uint32_t)hold_encode(command, record);
    enum hf_status status = hold_prepare(engine, command);
    assert(status == HF_OK);
    do
        out = hold_apply(engine, hf_bytes(record, len));
    while (out->code == HOLD_AGAIN);
    put(&batch, &len, sizeof len);
    put(&batch, record, len);
    keep(&batch);
    clear(&batch);
    if (count == 0 || out->code != HOLD_OK)
        return;
    reply_write(&reply, out->code, out->body, 0);
    assert(!reply.failed);
    uint64_t id = clients_next_id();
    record_call(wire, id, words, count);
    record_answer(wire, id, hf_buf_bytes(&told));
    hf_buf_destroy(&told);
}

static void do_others(struct hold_engine *engine)
{
    struct hold_command c = {.kind = HOLD_RESTART,
                             .flags = HOLD_GRAPH | HOLD_SETTLED};
    char text[2][32];

    do_other(engine, &c, NULL, 0);
    for (uint64_t i = 0; i < remote.mix->names; i++) {
        snprintf(text[0], sizeof text[0], "%s", mix_name(remote.mix, i));
        struct hf_bytes words[] = {
            hf_bytes_text("LOCK"),  hf_bytes_text(text[0]),
            hf_bytes_text("OWNER"), hf_bytes_text("other"),
            hf_bytes_text("TTL"),   hf_bytes_text("1500")};
        c = (struct hold_command){.kind = HOLD_LOCK,
                                  .name = words[1],
                                  .owner = words[3],
                                  .ttl_ms = 1500};
        if (dice_hit(&remote.dice, 500))
            do_other(engine, &c, words, 6);
    }
    for (uint64_t i = 0; i < remote.mix->skus; i++) {
        uint64_t amount = dice_between(&remote.dice, 1, remote.mix->stock);
        snprintf(text[0], sizeof text[0], "%s", mix_sku(remote.mix, i));
        snprintf(text[1], sizeof text[1], "%llu", (unsigned long long)amount);
        struct hf_bytes words[] = {hf_bytes_text("STOCK"), hf_bytes_text("SET"),
                                   hf_bytes_text(text[0]),
                                   hf_bytes_text(text[1])};
        c = (struct hold_command){.kind = HOLD_STOCK_SET,
                                  .name = words[2],
                                  .amount = (int64_t)amount};
        do_other(engine, &c, words, 4);
    }
}

/* The server hears that another one leads. */
static void on_lost(void *context, uint64_t run)
{
    (void)context;
    if (run != remote.run || world_is_dead())
        return;
    remote.lost = true;
    remote.done_ns = world_now_ns();
    for (size_t i = 0; i < remote.flight_count; i++) {
        if (remote.flights[i].state == FLIGHT_ON)
            remote.flights[i].state = FLIGHT_LOST;
    }
    record_say("the log is lost");
    record_mark(0, 0, HISTORY_FAILED); /* also if no client hears of it */
    loop_wake(1);
}

/* Some of what is on its way is in the log. */
static void keep_some(void)
{
    uint64_t count = dice_below(&remote.dice, remote.flight_count + 1);

    for (size_t i = 0; i < count; i++) {
        if (remote.flights[i].state == FLIGHT_ON)
            keep(&remote.flights[i].batch);
    }
}

static void take_over(void)
{
    hf_memory_fail_never(); /* it is another machine */
    void *state = remote.machine->create(remote.machine->context);

    assert(state != NULL);
    remote.lapsed = true;
    remote.taken = true;
    remote.others++;
    keep_some();
    enum hf_status status = replay(remote.machine, state);
    assert(status == HF_OK);
    (void)status;
    record_say("another server takes over");
    record_mark(OTHERS + remote.others, 0, HISTORY_OPEN);
    do_others(state);
    record_mark(OTHERS + remote.others, 0, HISTORY_CLOSED);
    remote.machine->destroy(state);
    world_after(dice_scale(&remote.dice, 1 * MS, 3 * S), on_lost, NULL,
                remote.run);
}

/* ---- Lapses. ---- */

static void on_taken(void *context, uint64_t run)
{
    (void)context;
    if (run == remote.run && !world_is_dead() && !remote.taken)
        take_over();
}

static void on_lapse_end(void *context, uint64_t run)
{
    (void)context;
    if (run == remote.run && !remote.taken)
        remote.lapsed = false;
}

static void on_lapse(void *context, uint64_t run)
{
    (void)context;
    if (run != remote.run || world_is_dead() || disk.healed)
        return;
    world_after(
        dice_scale(&remote.dice, 1 * MS, 2 * remote.mix->remote.lapse_ns),
        on_lapse, NULL, run);
    if (remote.lapsed)
        return;
    uint64_t ns = dice_scale(&remote.dice, 1 * MS, 2 * S);
    bool taken = dice_hit(&remote.dice, remote.mix->remote.taken);
    remote.lapsed = true;
    remote.lapsed_ns = world_now_ns();
    record_say("the log does not lead");
    world_after(ns, taken ? on_taken : on_lapse_end, NULL, run);
}

/* ---- The seam. ---- */

static enum hf_status remote_prepare(struct log *log, size_t len, char **space)
{
    struct batch_bytes *batch = &remote.building;
    size_t need = sizeof(uint32_t) + len;

    (void)log;
    if (remote.lost || world_is_dead())
        return HF_IO;
    if (len == 0 || need > remote.batch_max)
        return HF_INVALID;
    if (batch->len + need > remote.batch_max)
        return HF_FULL;
    put(batch, NULL, need);
    batch->len -= need;
    remote.prepared = len;
    *space = batch->data + batch->len + sizeof(uint32_t);
    return HF_OK;
}

static void remote_finish(struct log *log, size_t used)
{
    uint32_t len = (uint32_t)used;

    (void)log;
    assert(used > 0 && used <= remote.prepared);
    memcpy(remote.building.data + remote.building.len, &len, sizeof len);
    remote.building.len += sizeof len + used;
    remote.building.count++;
    remote.prepared = 0;
}

static size_t remote_batch_bytes(const struct log *log)
{
    (void)log;
    return remote.building.len;
}

static void on_end(void *context, uint64_t number)
{
    (void)context;
    if (world_is_dead() || remote.taken)
        return;
    for (size_t i = 0; i < remote.flight_count; i++) {
        struct flight *flight = &remote.flights[i];
        if (flight->number != number)
            continue;
        assert(i == 0 || remote.flights[i - 1].state == FLIGHT_DONE);
        flight->state = FLIGHT_DONE;
        keep(&flight->batch);
        remote.done_ns = world_now_ns();
        remote.stats.batch_count++;
        remote.stats.record_count += flight->batch.count;
        remote.stats.byte_count += flight->batch.len;
        remote.stats.sync_last_ns = world_now_ns() - flight->begun_ns;
        if (flight->begun_ns > remote.lapsed_ns &&
            remote.mix->remote.taken == 0)
            remote.lapsed = false; /* whoever appends leads */
        loop_wake(1);
    }
}

static enum hf_status remote_commit(struct log *log)
{
    uint64_t latency_ns =
        dice_scale(&remote.dice, disk.mix.write_ns,
                   disk.healed ? disk.mix.write_ns : disk.mix.write_max_ns);
    uint64_t end_ns = world_now_ns() + latency_ns + disk.stall_ns;

    (void)log;
    if (disk.kill_in > 0 && --disk.kill_in == 0)
        world_kill();
    if (remote.lost || world_is_dead()) {
        clear(&remote.building);
        return HF_IO;
    }
    assert(remote.building.count > 0);
    assert(remote.flight_count < remote.log.flights_max);
    if (remote.flight_count > 0 &&
        remote.flights[remote.flight_count - 1].end_ns >= end_ns)
        end_ns = remote.flights[remote.flight_count - 1].end_ns + US;
    if (disk.fail != 0)
        world_after(US, on_taken, NULL, remote.run);
    disk.fail = 0;
    disk.stall_ns = 0;
    remote.flights[remote.flight_count++] =
        (struct flight){.batch = remote.building,
                        .begun_ns = world_now_ns(),
                        .end_ns = end_ns,
                        .number = ++remote.number};
    remote.building = (struct batch_bytes){.len = 0};
    remote.stats.pending_count++;
    world_at(end_ns, on_end, NULL, remote.number);
    return HF_PENDING;
}

static enum hf_status remote_poll(struct log *log)
{
    struct flight *oldest = &remote.flights[0];

    (void)log;
    loop_wake(0);
    if (remote.flight_count == 0)
        return HF_EMPTY;
    if (oldest->state == FLIGHT_ON && !world_is_dead() && !remote.lost)
        return HF_PENDING;
    bool done = oldest->state == FLIGHT_DONE;
    clear(&remote.told);
    if (done)
        remote.told = oldest->batch;
    else
        clear(&oldest->batch);
    remote.flight_count--;
    memmove(oldest, oldest + 1, remote.flight_count * sizeof *oldest);
    return done ? HF_OK : HF_IO;
}

static enum hf_status remote_committed(const struct log *log, size_t *at,
                                       struct hf_bytes *record)
{
    (void)log;
    return next_record(&remote.told, at, record);
}

static bool remote_leads(const struct log *log)
{
    (void)log;
    return !remote.lapsed;
}

static int remote_wake_fd(const struct log *log)
{
    (void)log;
    return -1;
}

static void remote_tend(struct log *log, uint64_t now_ns)
{
    (void)log;
    (void)now_ns;
}

static enum hf_status remote_flush(struct log *log)
{
    (void)log;
    for (size_t i = 0; i < remote.flight_count; i++) {
        while (remote.flights[i].state == FLIGHT_ON && !world_is_dead())
            world_step();
    }
    return remote.lost || world_is_dead() ? HF_IO : HF_OK;
}

static void remote_note_later(struct log *log, uint64_t note)
{
    (void)log;
    if (!world_is_dead())
        remote.note = note;
}

static enum hf_status remote_note(struct log *log, uint64_t note)
{
    remote_note_later(log, note);
    return remote.lost || world_is_dead() ? HF_IO : HF_OK;
}

static enum hf_status remote_snapshot(struct log *log)
{
    (void)log;
    return HF_OK;
}

static bool remote_snapshot_running(const struct log *log)
{
    (void)log;
    return false;
}

static void remote_snapshot_error(const struct log *log,
                                  char out[JOURNAL_ERROR_MAX])
{
    (void)log;
    out[0] = '\0';
}

static const char *remote_error(const struct log *log)
{
    (void)log;
    return remote.lost ? lost_text : "";
}

static void remote_stats(const struct log *log, struct log_stats *out)
{
    (void)log;
    *out = remote.stats;
}

static uint64_t remote_sync_ns(const struct log *log)
{
    (void)log;
    return remote.stats.sync_last_ns;
}

static enum hf_status remote_stop(struct log *log)
{
    enum hf_status status = remote_flush(log);

    if (remote.building.count > 0)
        return HF_INVALID;
    remote.clean = status == HF_OK;
    return status;
}

static void remote_close(struct log *log)
{
    (void)log;
    assert(loop_polls() == 0); /* its descriptor ends here */
    for (size_t i = 0; i < remote.flight_count; i++)
        clear(&remote.flights[i].batch);
    remote.flight_count = 0;
    clear(&remote.building);
    clear(&remote.told);
    remote.run++; /* nothing that was planned happens any more */
}

static const struct log_ops ops = {
    .prepare = remote_prepare,
    .finish = remote_finish,
    .batch_bytes = remote_batch_bytes,
    .commit = remote_commit,
    .poll = remote_poll,
    .committed = remote_committed,
    .leads = remote_leads,
    .wake_fd = remote_wake_fd,
    .tend = remote_tend,
    .flush = remote_flush,
    .note = remote_note,
    .note_later = remote_note_later,
    .snapshot = remote_snapshot,
    .snapshot_running = remote_snapshot_running,
    .snapshot_error = remote_snapshot_error,
    .error = remote_error,
    .stats = remote_stats,
    .sync_ns = remote_sync_ns,
    .stop = remote_stop,
    .close = remote_close,
};

/* ---- Begin and end. ---- */

enum hf_status remote_open(struct log **out, const struct journal_opts *opts,
                           void **machine, char *error)
{
    void *state = opts->machine->create(opts->machine->context);
    enum hf_status status =
        state == NULL ? HF_NOMEM : replay(opts->machine, state);

    if (status != HF_OK) {
        snprintf(error, JOURNAL_ERROR_MAX, "cannot open the log: %s",
                 hf_status_text(status));
        if (state != NULL)
            opts->machine->destroy(state);
        return status;
    }
    remote.run++;
    remote.machine = opts->machine;
    remote.log = (struct log){
        .ops = &ops, .flights_max = (uint32_t)remote.mix->remote.flights};
    remote.batch_max = (size_t)opts->segment_bytes - 8192;
    remote.lapsed = remote.taken = remote.lost = false;
    remote.stats = (struct log_stats){.replayed_batches = remote.kept_count,
                                      .note = remote.note,
                                      .unclean = !remote.clean};
    remote.clean = false;
    if (remote.mix->remote.lapse_ns > 0)
        world_after(
            dice_scale(&remote.dice, 1 * MS, 2 * remote.mix->remote.lapse_ns),
            on_lapse, NULL, remote.run);
    *out = &remote.log;
    *machine = state;
    return HF_OK;
}

void remote_cut(void)
{
    if (!remote.taken)
        keep_some();
    remote.done_ns = world_now_ns();
}

uint64_t remote_done_ns(void)
{
    return remote.flight_count > 0 ? UINT64_MAX : remote.done_ns;
}

void remote_begin(const struct mix *mix, const struct server *server)
{
    memset(&remote, 0, sizeof remote);
    remote.mix = mix;
    remote.server = server;
    remote.clean = true; /* it is new */
    remote.dice = dice_make(world_seed(), "remote", 0, 0);
}

void remote_end(void)
{
    for (size_t i = 0; i < remote.kept_count; i++)
        clear(&remote.kept[i]);
    free(remote.kept);
    remote.kept = NULL;
}
